//! What a crawl still has before it, as far as the store can tell: what `plan` reckons with.

use kittiwake_model::{Identity, Key, List, Name, WorldTime};
use std::collections::BTreeMap;

/// What is asked about the work ahead. Everything that is read for it is bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlookQuestion {
    /// Subjects at most so far from a seed are told one by one, those beyond only counted.
    pub depth_max: u32,
    /// How many subjects are told one by one.
    pub prospects_max: usize,
    /// The queries that walk follow relations, and in which direction.
    pub lists: Vec<(Name, List)>,
    pub posts: Vec<PostsQuestion>,
}

/// Which posts a robot has before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostsQuestion {
    pub robot: Name,
    /// A post whose column of this name holds 0 is not visited.
    pub unless_zero: Option<Name>,
    /// Being described counts as the first visit.
    pub begins_visited: bool,
    /// The column that tells how long its list is, and how many fit on a page.
    pub pages: Option<(Name, u32)>,
    /// Only those that were not visited at this time or later; all, if there is none.
    pub not_visited_since: Option<WorldTime>,
}

/// What a store tells of the work ahead.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outlook {
    /// Subjects by depth, all of them.
    pub depths: BTreeMap<u32, u64>,
    /// Subjects within reach, in the order of their keys, up to the number that was asked for.
    pub prospects: Vec<Prospect>,
    /// Relations on lists that were walked, of people whose own lists were not.
    pub leading_out: u64,
    pub posts: Vec<PostsOutlook>,
}

/// A subject and what is known of the calls it will take.
#[derive(Debug, Clone, PartialEq)]
pub struct Prospect {
    pub subject: Key,
    pub kind: Name,
    pub depth: u32,
    /// By what it is known; told of seeds only.
    pub identity: Option<Identity>,
    pub following: Option<u64>,
    pub followers: Option<u64>,
    pub posts: Option<u64>,
    pub created: Option<WorldTime>,
    pub opted_out: bool,
    /// Known to be gone, or suspended.
    pub is_invalid: bool,
    pub visits: Vec<ProspectVisit>,
    pub walks: Vec<ProspectWalk>,
}

/// How often a robot was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProspectVisit {
    pub robot: Name,
    pub visits: u32,
    pub visited: Option<WorldTime>,
    pub due: WorldTime,
}

/// How far a list was walked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProspectWalk {
    pub query: Name,
    pub walk: u32,
    pub digest: Name,
    pub pages: u32,
    pub items: u32,
    pub is_complete: bool,
    pub has_mark: bool,
}

/// The known posts of those within reach, as one robot sees them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostsOutlook {
    pub robot: Name,
    pub posts: u64,
    pub authors: u64,
    /// Those of them of which there is something to ask.
    pub asked: u64,
    /// Those of them that the robot has to visit, and the pages that they take.
    pub due: u64,
    pub due_pages: u64,
}
