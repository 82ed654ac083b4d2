//! Who is who: keys, canonical ids and aliases.
//!
//! The store gives every object an integer [`Key`]. A network knows the object by a canonical id
//! (an ActivityPub URI, a DID, a number) and by aliases: ids that are valid on one host only,
//! handles, addresses. Some aliases are as good as the canonical id (a host never gives a local id
//! twice), others move: a handle may belong to somebody else tomorrow.

use crate::Name;
use serde::{Deserialize, Serialize};

/// The integer that stands for one object in one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(pub i64);

/// Another name of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Alias {
    /// What the definition calls this alias, for example `id` or `handle`.
    pub name: Name,
    pub id: String,
    /// The host on which the alias is valid; empty when it is valid everywhere.
    pub host: String,
    /// A movable alias may belong to another object later, so it never proves that two keys are
    /// one; a stable alias does.
    pub movable: bool,
}

/// Everything an answer told about which object it speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    pub network: Name,
    /// The definition's type: `user`, `status`, `tag`, …
    pub kind: Name,
    pub canonical: Option<String>,
    pub aliases: Vec<Alias>,
}

impl Identity {
    /// Whether nothing in it can name an object.
    pub fn is_anonymous(&self) -> bool {
        self.canonical.is_none() && self.aliases.is_empty()
    }

    /// The alias of this name that is valid on `host`, or valid everywhere.
    pub fn alias(&self, name: &str, host: &str) -> Option<&str> {
        self.aliases
            .iter()
            .find(|alias| &*alias.name == name && (alias.host == host || alias.host.is_empty()))
            .map(|alias| alias.id.as_str())
    }
}

/// How one part of a commit points at an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reference {
    /// An object the store already knows.
    Key(Key),
    /// The object at this place in the same commit's `objects`.
    Object(u32),
    /// An object that is only named, not described; the store gives it a key and remembers it as
    /// pending until it is described.
    Identity(Box<Identity>),
}
