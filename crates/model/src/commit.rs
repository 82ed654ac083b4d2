//! The unit of durability: everything that one answer changes.

use crate::{
    ImportedCalls, ImportedRow, Key, Link, Name, Object, Outcome, OutcomeCode, RealTime, Reference,
    Walk, WorldTime,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Everything that one answer (or one start, or one end of a run) changes. A store writes it
/// whole or not at all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Commit {
    /// World time of the request's start: the time of every observation in this commit.
    pub at: WorldTime,
    /// The rules by which new subjects are filed; `None` files nobody.
    pub expansion: Option<Arc<Expansion>>,
    pub log: Option<LogRow>,
    pub objects: Vec<Object>,
    pub links: Vec<Link>,
    pub outcomes: Vec<Outcome>,
    /// Subjects that were met otherwise than by a follow relation: seeds, resolved handles.
    pub discoveries: Vec<Discovery>,
    pub cursors: Vec<Cursor>,
    /// Lists that were walked to their end.
    pub sweeps: Vec<Sweep>,
    pub frontier: Vec<FrontierRow>,
    /// What policies have learnt of whole lanes.
    pub learnt: Vec<Learnt>,
    pub run: Option<RunUpdate>,
    /// Commands of the table `control` that were carried out.
    pub controls_done: Vec<i64>,
    /// Rows of another file; they bring their own times.
    pub imported: Vec<ImportedRow>,
    pub imported_calls: ImportedCalls,
    /// The answer's bytes, kept on request.
    pub raw: Option<Vec<u8>>,
}

/// How a crawl grows: along follow relations, and along what people do with posts.
///
/// A user's depth is the least number of such steps from a seed; a post has its author's depth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expansion {
    pub follow: Follow,
    /// Subjects at this depth or less are visited.
    pub depth_max: u32,
    /// What a subject is filed for: one frontier row per robot.
    pub robots: Vec<RobotFiling>,
    /// Who else is brought in, one step further away than the subject that shows them.
    pub brings: Vec<Role>,
}

/// A robot for which subjects of one type are filed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotFiling {
    pub robot: Name,
    pub lane: Name,
    /// The type of subject it visits.
    pub kind: Name,
    /// A subject whose column of this name holds 0 is not filed: there is nothing to ask for.
    pub unless_zero: Option<Name>,
    /// A post that answers one which is only named is filed all the same: what is asked about it names
    /// the other as well.
    #[serde(default)]
    pub names_parents: bool,
    /// Being described counts as the first visit: this robot only looks again.
    pub begins_visited: bool,
    /// The same for a subject whose column or field of this name holds 0.
    #[serde(default)]
    pub visited_when_zero: Option<Name>,
    /// Reposts of a post that is filed are filed as well, and theirs, so many steps on, even if
    /// their authors are out of reach.
    pub repost_steps: u32,
    /// The same for posts that answer one that is filed.
    pub reply_steps: u32,
}

/// What somebody did that brings them within reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Wrote a comment to a post, or in the conversation that a post began.
    Commenters,
    /// Repeated a post.
    Reposters,
    /// Liked a post.
    Likers,
    /// Wrote a post, or is an account, that is linked to a subject which is neither: a tag, a
    /// search.
    Authors,
    /// Not a person: posts that are linked to a subject which is neither a user nor a post. They are
    /// as near as that.
    Posts,
}

/// The directions in which follow relations bring in new subjects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follow {
    pub following: bool,
    pub followers: bool,
}

/// A subject met at a depth. A lesser depth that was known before stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovery {
    pub subject: Reference,
    pub depth: u32,
}

/// One row of the frontier: when a robot is to visit a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontierRow {
    pub subject: Key,
    pub robot: Name,
    pub lane: Name,
    /// Visits that were completed.
    pub visits: u32,
    /// When the last of them was made.
    pub visited: Option<WorldTime>,
    pub due: WorldTime,
    /// The policy's memory of the subject, at most 64 bytes.
    pub state: Vec<u8>,
}

/// What a policy knows of everybody in a lane, in its own bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learnt {
    pub lane: Name,
    pub bytes: Vec<u8>,
}

/// How far the walk of one list has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub subject: Key,
    pub query: Name,
    /// The number of this walk; the first is 1.
    pub walk: u32,
    /// Digest of the query's paging rules: a cursor of other rules is void.
    pub digest: Name,
    /// Pages committed in this walk.
    pub pages: u32,
    /// Items on them.
    pub items: u32,
    pub state: CursorState,
    /// An earlier cursor of this walk against which later ones are compared (a walk in a circle
    /// comes back to it).
    pub checkpoint: Option<String>,
    /// The newest id seen by this walk; becomes `mark` when the walk completes.
    pub mark_next: Option<String>,
    /// Where an incremental walk begins: everything up to it was collected.
    pub mark: Option<String>,
    pub started: WorldTime,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CursorState {
    /// The next page to ask for, in the definition's own form.
    Next(String),
    /// There is a next page, and the network wants its place not to be kept: the walk begins anew
    /// unless whoever walks still knows it.
    NotKept,
    Complete,
}

/// A list that was walked from its beginning to its end, uncapped: relations that the walk did not
/// show have vanished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    pub subject: Key,
    pub walk: Walk,
    /// When the walk began: only what was last seen before can have vanished.
    pub started: WorldTime,
}

/// One row of the query log: one call that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    pub query: Name,
    pub subjects: Vec<Key>,
    /// Path and query of the request, without secrets.
    pub target: String,
    /// The page asked for; empty for the first.
    pub cursor: String,
    /// The credential's fingerprint, or `anonymous`.
    pub credential: String,
    pub node: String,
    pub status: Option<u16>,
    pub outcome: OutcomeCode,
    pub reason: String,
    pub scheduled: RealTime,
    pub sent: RealTime,
    pub answered: RealTime,
    /// Names of the budgets that were charged.
    pub budgets: Vec<Name>,
    /// Microseconds that choosing the call took.
    pub rank_us: u32,
    /// Microseconds that reading its answer took.
    pub read_us: u32,
    /// Microseconds that finding out what follows from it took, before it was committed.
    pub seed_us: u32,
    pub bytes: u64,
    /// Values that had to be dropped or mended (bad ids, NUL, dates out of range).
    pub mended: u32,
    /// Digest of the definition that was in force.
    pub definition: Name,
}

/// The beginning or the end of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunUpdate {
    Start(Box<RunRecord>),
    End { run: i64, end: RunEnd },
}

/// What a run was asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub network: Name,
    pub host: String,
    pub definition: Name,
    /// The definition's text, kept once per digest.
    pub definition_text: String,
    /// Where world and limit time come from: `real`, or an address.
    pub clock: String,
    /// All settings, as JSON.
    pub settings: String,
    pub started: RealTime,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    pub ended: RealTime,
    /// `idle`, `interrupted`, `calls`, `time`, `failed: …`
    pub reason: String,
}

/// What a store did with one commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommitReport {
    pub log: Option<i64>,
    pub run: Option<i64>,
    /// The keys of the commit's discoveries, in order.
    pub discovered: Vec<Key>,
    /// Frontier rows that were made or moved, for the order index.
    pub filed: Vec<Filed>,
    /// Keys that turned out to be another object's: (from, into).
    pub merged: Vec<(Key, Key)>,
    pub rows_new: u32,
    pub rows_changed: u32,
    /// Depths still have to be handed on, or lists to be swept; commit again to go on.
    pub backlog: bool,
}

/// A frontier row as the order index needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filed {
    pub subject: Key,
    pub robot: Name,
    pub lane: Name,
    pub visited: Option<WorldTime>,
    pub due: WorldTime,
    pub state: Vec<u8>,
}
