//! Relations between objects.

use crate::{Name, Reference, WorldTime};
use serde::{Deserialize, Serialize};

/// One relation as one answer showed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    pub table: LinkTable,
    /// `follow`, `repost`, `like`, `quote`, `mention`, `tag`, …
    pub kind: Name,
    pub from: Reference,
    pub to: Reference,
    /// When the network says that the relation began.
    pub at: Option<WorldTime>,
    /// The walk of a list in which it was seen, for relations that can vanish.
    pub walk: Option<Walk>,
}

/// Where a link is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkTable {
    /// Who follows whom.
    UserRelations,
    /// Which tags users gave to themselves.
    UserTags,
    /// All other relations.
    Links,
}

/// One walk over all pages of one list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walk {
    pub list: List,
    pub number: u32,
}

/// From which side a relation was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum List {
    /// The list of those whom the subject follows: the subject is the source.
    Following,
    /// The list of those who follow the subject: the subject is the target.
    Followers,
}
