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

/// How much an id says of who somebody is.
///
/// An id never makes one out of two objects that both have a weightier one: whoever says that
/// somebody's canonical id goes with the address or the local id of another is not believed. What
/// it named before it goes on naming, and the claim is dropped. So a host can mix up what it alone
/// has named, and nobody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weight {
    /// It may be somebody else's tomorrow.
    Hint,
    /// One host has given it, and gives it to nobody else. That an answer was given to a question about
    /// an object says as much.
    Host,
    /// It is valid everywhere.
    Everywhere,
    Canonical,
}

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

impl Alias {
    pub const fn weight(&self) -> Weight {
        match (self.movable, self.host.is_empty()) {
            (true, _) => Weight::Hint,
            (false, true) => Weight::Everywhere,
            (false, false) => Weight::Host,
        }
    }
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

    /// Whether it has an id: an alias of this name, wherever it is valid, or `canonical`.
    pub fn has_id(&self, name: &str) -> bool {
        match name {
            "canonical" => self.canonical.is_some(),
            _ => self.aliases.iter().any(|alias| &*alias.name == name),
        }
    }

    /// The weight of its best id.
    pub fn weight(&self) -> Weight {
        if self.canonical.is_some() {
            return Weight::Canonical;
        }
        let aliases = self.aliases.iter().map(Alias::weight);
        aliases.max().unwrap_or(Weight::Hint)
    }

    /// The weight of the best id that both have. Of handles nothing follows.
    pub fn shared(&self, other: &Self) -> Weight {
        if self.canonical.is_some() && self.canonical == other.canonical {
            return Weight::Canonical;
        }
        let shared = self.aliases.iter().filter(|it| other.aliases.contains(it));
        shared.map(Alias::weight).max().unwrap_or(Weight::Hint)
    }

    /// Takes in the ids that an answer has told of it.
    pub fn learn(&mut self, told: &Self) {
        if self.canonical.is_none() {
            self.canonical.clone_from(&told.canonical);
        }
        for alias in &told.aliases {
            let is_older = |known: &Alias| {
                known.movable && (&known.name, &known.host) == (&alias.name, &alias.host)
            };
            self.aliases
                .retain(|known| known != alias && !is_older(known));
            self.aliases.push(alias.clone());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn alias(name: &str, id: &str, movable: bool) -> Alias {
        Alias {
            name: name.into(),
            id: id.to_owned(),
            host: String::new(),
            movable,
        }
    }

    #[test]
    fn what_is_told_is_learnt_and_a_handle_gives_way_to_a_newer_one() {
        let identity = |canonical: Option<&str>, aliases| Identity {
            network: "tiny".into(),
            kind: "user".into(),
            canonical: canonical.map(str::to_owned),
            aliases,
        };
        let mut known = identity(
            None,
            vec![alias("handle", "ann", true), alias("url", "u", false)],
        );
        let told = vec![alias("handle", "anna", true), alias("url", "u", false)];
        known.learn(&identity(Some("7"), told.clone()));
        assert_eq!(known, identity(Some("7"), told));
        known.learn(&identity(Some("8"), Vec::new()));
        assert_eq!(known.canonical.as_deref(), Some("7"), "the first stays");
    }
}
