//! Rows of another crawl's file, as an export carries them.
//!
//! An answer is observed at one time by one call; a row is the sum of many answers. So it comes with
//! the times it was kept with, and a store merges it as if it had seen those answers itself.

use crate::{Alias, GroupState, Identity, Link, Name, OutcomeCode, Stamp, Table, Value, WorldTime};
use std::collections::BTreeMap;

/// One row of another file. Its objects are named by one id each, the best that the other file had.
#[derive(Debug, Clone, PartialEq)]
pub enum ImportedRow {
    Id(ImportedId),
    Object(ImportedObject),
    Link(ImportedLink),
    VanishedRelation(VanishedRelation),
    Spell(ImportedSpell),
    History(ImportedHistory),
}

/// Whose calls the numbers in imported rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ImportedCalls {
    /// Those of a file whose log stays where it is.
    #[default]
    Foreign,
    /// Those of the store's own log, which has taken in the other's.
    Own,
}

/// An id under which an object was met.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedId {
    pub object: Identity,
    /// The id; its name is empty for a canonical one.
    pub alias: Alias,
    pub first_seen: WorldTime,
    pub last_seen: WorldTime,
}

/// All that was known of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedObject {
    pub identity: Identity,
    pub table: Table,
    /// Whose calls its stamps name, the commit tells.
    pub groups: BTreeMap<Name, GroupState>,
    /// For posts: when it was first seen to be gone.
    pub deleted: Option<WorldTime>,
}

/// A relation, from its first to its last sight.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedLink {
    /// Both ends are identities.
    pub link: Link,
    pub first_seen: WorldTime,
    pub last_seen: WorldTime,
}

/// A follow relation that was found missing.
#[derive(Debug, Clone, PartialEq)]
pub struct VanishedRelation {
    pub source: Identity,
    pub target: Identity,
    pub first_seen: WorldTime,
    pub last_seen: WorldTime,
    pub vanished: WorldTime,
}

/// A spell during which a user was not there.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedSpell {
    pub user: Identity,
    pub reason: OutcomeCode,
    pub from: WorldTime,
    pub until: Option<WorldTime>,
}

/// Values that another observation overruled.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedHistory {
    pub object: Identity,
    pub group: Name,
    pub stamp: Stamp,
    pub fields: BTreeMap<Name, Value>,
}
