//! What was observed of one thing.

use crate::{Identity, Key, Name, OutcomeCode, Table, Value};
use serde::{Deserialize, Serialize};

/// One object as one answer described it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Object {
    pub identity: Identity,
    /// The key under which it was asked for: the answer proves that both are one object.
    pub known_as: Option<Key>,
    pub table: Table,
    pub groups: Vec<Group>,
    pub standing: Standing,
}

/// Fields that are observed together. A group is filled whole: a field that is missing from the
/// answer was not observed, a field that is null was observed empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    pub name: Name,
    pub fields: Vec<(Name, Value)>,
}

/// Whether the answer shows the object as being there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    Present,
    /// A tombstone or a marker such as `suspended: true`.
    Invalid(OutcomeCode),
    /// Somebody tells of it who is not its own host: that says nothing of whether it is there, and
    /// gives way to whatever its own host says, earlier or later.
    Hearsay,
    /// It stands in a list that tells no more of it than its id and what the list itself means:
    /// whose posts these are, what they answer. It is still to be described, and gives way to
    /// whatever describes it.
    Named,
}
