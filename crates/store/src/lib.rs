//! Keep and give back.
//!
//! Knows: tables, keys, merges of rows, transactions, and the ledger of grants. Every line of SQL
//! of the project is here, and each back end passes the same suite ([`suite`]).
//! Does not know: what a network is, how a definition looks, when a subject should be visited.

mod error;
mod hash;
pub mod ledger;
mod observed;
mod record;
pub mod sqlite;
pub mod suite;

pub use error::{StoreError, StoreErrorKind};
pub use ledger::{Acquired, BudgetUsage, Carry, Closing, Ledger, Want};
pub use sqlite::{OpenMode, SqliteStore};

use kittiwake_model::{Commit, CommitReport, Cursor, FrontierRow, Identity, Key, Name, RunRecord};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

/// What every method of a store gives: a future that can be awaited from any thread.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// One crawl, kept.
pub trait Store: std::fmt::Debug + Send + Sync {
    /// Writes the commits, each whole, in one or more transactions, and returns when they are
    /// durable. The only way to write. Commits of concurrent callers are grouped.
    fn commit(&self, commits: Vec<Commit>) -> StoreFuture<'_, Vec<CommitReport>>;

    /// The next `limit` frontier rows after `after`, in the order of (subject, robot): for
    /// building the order index in bounded steps.
    fn frontier(
        &self,
        after: Option<(Key, Name)>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<FrontierRow>>;

    /// Everything a visit needs to know of these tasks, in the same order; `None` for a task
    /// whose row is not there (any more).
    fn tasks(&self, tasks: Vec<(Key, Name)>) -> StoreFuture<'_, Vec<Option<TaskRecord>>>;

    /// The newest run, with its number.
    fn last_run(&self) -> StoreFuture<'_, Option<(i64, RunRecord)>>;

    /// Counts for summaries.
    fn summary(&self) -> StoreFuture<'_, Summary>;
}

/// A task as it stands in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    pub row: FrontierRow,
    pub depth: u32,
    /// Everything by which the subject is known.
    pub identity: Identity,
    /// The subject's cursors, of all queries.
    pub cursors: Vec<Cursor>,
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
    pub calls: u64,
    /// Subjects by depth.
    pub depths: BTreeMap<u32, u64>,
}
