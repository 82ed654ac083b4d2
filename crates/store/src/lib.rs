//! Keep and give back.
//!
//! Knows: tables, keys, merges of rows, transactions, and the ledger of grants. Every line of SQL
//! of the project is here, and each back end passes the same suite ([`suite`]). What a store does is
//! in `rules`, which knows no database; a back end keeps only what is that database's own.
//! Does not know: what a network is, how a definition looks, when a subject should be visited.

pub mod browse;
mod cell;
pub mod copy;
mod database;
pub mod detail;
mod error;
pub mod export;
mod hash;
mod index;
pub mod ledger;
mod location;
pub mod merge;
mod numbers;
mod observed;
pub mod outlook;
pub mod postgres;
mod record;
mod rules;
pub mod sqlite;
pub mod suite;
mod words;

pub use browse::Browser;
pub use detail::{Detail, Methods};
pub use error::{StoreError, StoreErrorKind};
pub use ledger::{
    Acquired, BudgetUsage, Grant, Ledger, Lesson, Observed, Opened, Part, Settling, Term, Want,
};
pub use location::Location;
pub use outlook::{Outlook, OutlookQuestion};
pub use postgres::PostgresStore;
pub use sqlite::SqliteStore;

use kittiwake_model::{
    Commit, CommitReport, Control, Cursor, FrontierRow, Identity, Key, Learnt, Name, RunRecord,
    Table, WorldTime,
};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

/// What every method of a store gives: a future that can be awaited from any thread.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// What an export gives.
pub type ExportFuture<'a> =
    Pin<Box<dyn Future<Output = Result<export::Exported, export::ExportError>> + Send + 'a>>;

/// What a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Makes the store if it is missing and holds it against other crawls.
    Crawl,
    /// Looks at a store that is there, also while somebody crawls into it.
    Read,
}

/// One crawl, kept.
pub trait Store: std::fmt::Debug + Send + Sync {
    /// Writes the commits, each whole, in one or more transactions, and returns when they are
    /// durable. The only way to write. Commits of concurrent callers are grouped.
    fn commit(&self, commits: Vec<Commit>) -> StoreFuture<'_, Vec<CommitReport>>;

    /// The next subjects of a lane, in the order of (due, subject): the crawl holds only the near
    /// future in memory and comes back for more.
    fn due(&self, question: DueQuestion) -> StoreFuture<'_, Vec<Due>>;

    /// The same with what policies remember of each: for lanes that are ranked.
    fn remembered(&self, question: DueQuestion) -> StoreFuture<'_, Vec<Remembered>>;

    /// The same of a whole lane, in the order of subjects: the quicker way through a lane that has most of
    /// the rows.
    fn remembered_by_subject(
        &self,
        lane: Name,
        after: Option<Key>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Remembered>>;

    /// What is known of people before they are visited, in the order of their keys.
    fn cards(&self, keys: Vec<Key>) -> StoreFuture<'_, Vec<Card>>;

    /// What policies have learnt of whole lanes.
    fn learnt(&self) -> StoreFuture<'_, Vec<Learnt>>;

    /// When an author's posts were made since a time, the newest first, so many at the most.
    fn post_times(
        &self,
        author: Key,
        since: WorldTime,
        limit: usize,
    ) -> StoreFuture<'_, Vec<WorldTime>>;

    /// The class that was last found of each user, in the order of the keys.
    fn classes(&self, keys: Vec<Key>) -> StoreFuture<'_, Vec<Option<String>>>;

    /// The posts that were found last, so many at the most, of authors who were known when they were made.
    fn arrivals(&self, limit: usize) -> StoreFuture<'_, Vec<Arrival>>;

    /// Whatever is called by an id or a name, a few at the most.
    fn named(&self, id: String) -> StoreFuture<'_, Vec<Key>>;

    /// When the newest answer was asked for, in the world's time.
    fn newest(&self) -> StoreFuture<'_, Option<WorldTime>>;

    /// How many subjects of a lane [`Self::due`] would give in all, counted up to `limit`.
    fn waiting(&self, question: DueQuestion) -> StoreFuture<'_, u64>;

    /// Commands after the one with this id, oldest first, at most a thousand; also those that
    /// were carried out, so that a new run knows what was left paused.
    fn controls(&self, after: i64) -> StoreFuture<'_, Vec<Control>>;

    /// Everything a visit needs to know of these tasks, in the same order; `None` for a task
    /// whose row is not there (any more).
    fn tasks(&self, tasks: Vec<(Key, Name)>) -> StoreFuture<'_, Vec<Option<TaskRecord>>>;

    /// The newest run, with its number.
    fn last_run(&self) -> StoreFuture<'_, Option<(i64, RunRecord)>>;

    /// Counts for summaries.
    fn summary(&self) -> StoreFuture<'_, Summary>;

    /// Since when all of each group of fields is known of these objects, in the same order.
    fn described(
        &self,
        table: Table,
        keys: Vec<Key>,
    ) -> StoreFuture<'_, Vec<BTreeMap<Name, WorldTime>>>;

    /// What is known of the objects of a type that has no table of its own, of so many at the most.
    fn facts(&self, network: Name, kind: Name, limit: usize) -> StoreFuture<'_, Vec<Facts>>;

    /// How the crawl stands.
    fn detail(&self) -> StoreFuture<'_, Detail>;

    /// What the crawl has before it, within bounds.
    fn outlook(&self, question: OutlookQuestion) -> StoreFuture<'_, Outlook>;

    /// How the data came about.
    fn methods(&self) -> StoreFuture<'_, Methods>;

    /// Hands the rows of the documented tables to `sink`, one by one, as they are at one moment,
    /// also while somebody crawls.
    fn export(
        &self,
        selection: export::Selection,
        sink: Box<dyn export::RowSink>,
    ) -> ExportFuture<'_>;
}

/// Which subjects of a lane are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueQuestion {
    pub lane: Name,
    /// Only those that come after this place in the order.
    pub after: Option<(WorldTime, Key)>,
    /// Only those that were not visited at this time or later.
    pub not_visited_since: Option<WorldTime>,
    pub limit: usize,
}

/// A subject's place in the order of its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    pub due: WorldTime,
    pub subject: Key,
}

/// A subject of a lane with what its policy remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    pub due: WorldTime,
    pub subject: Key,
    pub visited: Option<WorldTime>,
    /// Empty if no visit was completed.
    pub state: Vec<u8>,
}

/// What is known of somebody before a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Card {
    pub counts: Counts,
    pub created: Option<WorldTime>,
}

/// A post that was found, by somebody who was known when it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    pub author: Key,
    pub created: WorldTime,
    pub found: WorldTime,
}

/// A task as it stands in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    pub row: FrontierRow,
    /// How far from a seed the subject is, or the author of the post that it is; `None` for a
    /// post that is visited only because it repeats another.
    pub depth: Option<u32>,
    /// Everything by which the subject is known.
    pub identity: Identity,
    /// The subject's cursors, of all queries.
    pub cursors: Vec<Cursor>,
    /// The subject, or the author of the post that it is, asks not to be collected.
    pub opted_out: bool,
    /// How long its lists are, as far as it was told.
    pub counts: Counts,
}

/// How long the lists of a user are, as the network told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub statuses: Option<i64>,
    pub following: Option<i64>,
    pub followers: Option<i64>,
}

impl Counts {
    /// The count in a column of the users.
    pub fn get(&self, column: &str) -> Option<i64> {
        match column {
            "statuses_count" => self.statuses,
            "following_count" => self.following,
            "followers_count" => self.followers,
            _ => None,
        }
    }
}

/// What is known of one object that has no table of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Its canonical id.
    pub id: String,
    /// Its fields, as a text of JSON.
    pub fields: String,
    /// When it was last seen.
    pub observed: WorldTime,
}

/// Why an outcome is none of success, and how many subjects have it for that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    pub query: String,
    pub outcome: String,
    pub reason: String,
    pub subjects: u64,
}

/// What is in a store, counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Rows by table.
    pub rows: BTreeMap<String, u64>,
    /// Subjects by robot: (filed, visited at least once).
    pub robots: BTreeMap<Name, (u64, u64)>,
    /// Newest outcome of each (subject, query), counted by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Why those are no better that are no success: the most frequent reasons.
    pub reasons: Vec<Reason>,
    pub calls: u64,
    /// Subjects by depth.
    pub depths: BTreeMap<u32, u64>,
}
