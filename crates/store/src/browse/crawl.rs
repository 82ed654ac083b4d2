//! The crawl itself, as it is shown: calls, runs, outcomes, and figures over them.

use super::objects::{Excerpt, Label};
use kittiwake_model::{Key, OutcomeCode, RealTime, WorldTime};
use serde::Serialize;
use std::collections::BTreeMap;

/// The log, the newest call first. Filters are not served by an index: every request looks at a
/// bounded stretch of the log, so that a page may have few rows and a next one all the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallsQuestion {
    pub query: Option<String>,
    pub outcome: Option<OutcomeCode>,
    pub subject: Option<Key>,
    /// Only calls that neither gave what was asked for nor found it empty or unchanged.
    pub failed_only: bool,
    /// [`super::Page::next`] of the page before.
    pub after: Option<String>,
    pub limit: usize,
}

/// A call in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallRow {
    pub id: i64,
    pub query: String,
    /// Whom it asked about, a few at the most.
    pub subjects: Vec<Label>,
    pub subjects_count: usize,
    pub target: Excerpt,
    pub status: Option<i64>,
    pub outcome: String,
    pub reason: String,
    /// World time of the request's start.
    pub at: WorldTime,
    pub sent: RealTime,
    pub answered: RealTime,
    pub bytes: i64,
    pub rows_new: i64,
    pub rows_changed: i64,
}

/// Everything that the log has of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallView {
    pub row: CallRow,
    pub cursor: String,
    pub credential: String,
    pub node: String,
    pub scheduled: RealTime,
    pub committed: RealTime,
    pub budgets: Vec<String>,
    pub rank_us: i64,
    pub read_us: i64,
    pub seed_us: i64,
    pub mended: i64,
    pub definition: String,
    /// Whether the answer was kept as it came.
    pub has_raw: bool,
}

/// The starts of the crawl, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunsQuestion {
    pub after: Option<String>,
    pub limit: usize,
}

/// Of which outcomes the newest of each query is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomesOf {
    Everybody,
    Subject(Key),
    /// Not served by an index: a page may have few rows and a next one all the same.
    Outcome(OutcomeCode),
    /// Those that are no success; as above.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomesQuestion {
    pub of: OutcomesOf,
    pub after: Option<String>,
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutcomeRow {
    pub subject: Label,
    pub query: String,
    pub outcome: String,
    pub reason: String,
    pub at: WorldTime,
    /// The row of the log, if there is one.
    pub call: Option<i64>,
    pub times: i64,
}

/// Outcomes of the newest calls.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Errors {
    /// How many calls were looked at.
    pub calls: u64,
    /// When the first of them was sent.
    pub since: Option<RealTime>,
    /// Calls by outcome, successes too.
    pub outcomes: BTreeMap<String, u64>,
    /// Calls that were no success, by query, outcome and reason, the most frequent first.
    pub reasons: Vec<ErrorReason>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorReason {
    pub query: String,
    pub outcome: String,
    pub reason: Excerpt,
    pub calls: u64,
    /// The newest of them.
    pub call: i64,
}

/// What the crawl did of late, in equal stretches of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivityQuestion {
    /// Calls that were committed at this time or later; as far back as is looked at if `None`.
    pub since: Option<RealTime>,
    /// Calls that are looked at, at most 20 000.
    pub calls_max: usize,
    /// Between 1 and 500.
    pub buckets: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Activity {
    /// When the first stretch begins; the machine's time.
    pub from: RealTime,
    pub bucket_us: i64,
    /// How many stretches there are.
    pub buckets: usize,
    /// How many calls were looked at.
    pub calls: u64,
    /// By query, for every stretch in order.
    pub queries: BTreeMap<String, Vec<Bucket>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Bucket {
    pub calls: u64,
    pub failed: u64,
    pub rows_new: u64,
    pub rows_changed: u64,
    pub bytes: u64,
}

/// A picture of who follows whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphQuestion {
    /// The neighbourhood of one user; else the best connected people that are found within bounds.
    pub around: Option<Key>,
    /// At most 1 000.
    pub nodes_max: usize,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Graph {
    pub nodes: Vec<GraphNode>,
    /// Who follows whom, as places in `nodes`.
    pub edges: Vec<(usize, usize)>,
    /// Whether there is more than was shown.
    pub is_cut: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphNode {
    pub label: Label,
    pub followers: Option<i64>,
    pub class: Option<String>,
    pub depth: Option<u32>,
}

/// How long ago the subjects of a lane were visited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgesQuestion {
    /// One of [`super::Browser::lanes`].
    pub lane: String,
    pub now: WorldTime,
    /// Subjects that are looked at, at most 4 000.
    pub sample_max: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Ages {
    /// How many subjects were looked at: all, or some from everywhere.
    pub sample: u64,
    /// Whether that was everybody.
    pub is_whole: bool,
    /// Those who were not visited yet.
    pub unvisited: u64,
    /// The upper ends of the stretches that ages are counted in, in microseconds; one more stretch
    /// has all that is older.
    pub edges_us: Vec<i64>,
    /// Subjects by class (empty where it is not known), for every stretch in order.
    pub classes: BTreeMap<String, Vec<u64>>,
}

/// At which hours of the day posts are made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Hours {
    /// How many posts were looked at: those that were met last.
    pub sample: u64,
    /// Posts by the hour of the day, UTC.
    pub hours: [u64; 24],
}

/// Rows by table, as counted some time ago.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Extent {
    /// Tables that were not counted yet are not here.
    pub rows: BTreeMap<String, Counted>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counted {
    pub rows: u64,
    /// When the counting ended; the machine's time.
    pub at: RealTime,
}
