//! What the API shows of the crawl itself: calls, outcomes, figures.

use super::views::{Excerpt, Label};
use kittiwake_model::RealTime;
use kittiwake_store::browse as store;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// One call of the query log.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Call {
    pub id: String,
    pub query: String,
    /// Whom it asked about, a few at the most.
    pub subjects: Vec<Label>,
    pub subjects_count: usize,
    pub target: Excerpt,
    pub status: Option<i64>,
    pub outcome: String,
    pub reason: String,
    /// In the crawl's world.
    pub at_us: i64,
    /// By the machine's clock.
    pub sent_us: i64,
    pub answered_us: i64,
    pub bytes: i64,
    pub rows_new: i64,
    pub rows_changed: i64,
}

impl From<store::CallRow> for Call {
    fn from(it: store::CallRow) -> Self {
        Self {
            id: it.id.to_string(),
            query: it.query,
            subjects: it.subjects.into_iter().map(Into::into).collect(),
            subjects_count: it.subjects_count,
            target: it.target.into(),
            status: it.status,
            outcome: it.outcome,
            reason: it.reason,
            at_us: it.at.micros(),
            sent_us: it.sent.micros(),
            answered_us: it.answered.micros(),
            bytes: it.bytes,
            rows_new: it.rows_new,
            rows_changed: it.rows_changed,
        }
    }
}

/// Everything that the log has of one call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WholeCall {
    #[serde(flatten)]
    pub call: Call,
    pub cursor: String,
    /// The fingerprint of the credential.
    pub credential: String,
    pub node: String,
    pub scheduled_us: i64,
    pub committed_us: i64,
    pub budgets: Vec<String>,
    pub rank_us: i64,
    pub read_us: i64,
    pub seed_us: i64,
    pub mended: i64,
    pub definition: String,
    pub has_raw: bool,
}

impl From<store::CallView> for WholeCall {
    fn from(it: store::CallView) -> Self {
        Self {
            call: it.row.into(),
            cursor: it.cursor,
            credential: it.credential,
            node: it.node,
            scheduled_us: it.scheduled.micros(),
            committed_us: it.committed.micros(),
            budgets: it.budgets,
            rank_us: it.rank_us,
            read_us: it.read_us,
            seed_us: it.seed_us,
            mended: it.mended,
            definition: it.definition,
            has_raw: it.has_raw,
        }
    }
}

/// The newest outcome of a query about somebody.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Outcome {
    pub subject: Label,
    pub query: String,
    pub outcome: String,
    pub reason: String,
    pub at_us: i64,
    pub call: Option<String>,
    pub times: i64,
}

impl From<store::OutcomeRow> for Outcome {
    fn from(it: store::OutcomeRow) -> Self {
        Self {
            subject: it.subject.into(),
            query: it.query,
            outcome: it.outcome,
            reason: it.reason,
            at_us: it.at.micros(),
            call: it.call.map(|call| call.to_string()),
            times: it.times,
        }
    }
}

/// Outcomes of the newest calls.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Errors {
    /// Calls that were looked at, and when the first of them was sent.
    pub calls: u64,
    pub since_us: Option<i64>,
    pub outcomes: BTreeMap<String, u64>,
    /// Calls that were no success, the most frequent first.
    pub reasons: Vec<ErrorReason>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorReason {
    pub query: String,
    pub outcome: String,
    pub reason: Excerpt,
    pub calls: u64,
    /// The newest of them.
    pub call: String,
}

impl From<store::Errors> for Errors {
    fn from(it: store::Errors) -> Self {
        let reasons = it.reasons.into_iter().map(|it| ErrorReason {
            query: it.query,
            outcome: it.outcome,
            reason: it.reason.into(),
            calls: it.calls,
            call: it.call.to_string(),
        });
        Self {
            calls: it.calls,
            since_us: it.since.map(RealTime::micros),
            outcomes: it.outcomes,
            reasons: reasons.collect(),
        }
    }
}

/// What the crawl did of late, in equal stretches of time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Activity {
    pub from_us: i64,
    pub bucket_us: i64,
    pub buckets: usize,
    /// Calls that were looked at.
    pub calls: u64,
    /// By query, for every stretch in order.
    pub queries: BTreeMap<String, Vec<Bucket>>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Bucket {
    pub calls: u64,
    pub failed: u64,
    pub rows_new: u64,
    pub rows_changed: u64,
    pub bytes: u64,
}

impl From<store::Activity> for Activity {
    fn from(it: store::Activity) -> Self {
        let bucket = |it: &store::Bucket| Bucket {
            calls: it.calls,
            failed: it.failed,
            rows_new: it.rows_new,
            rows_changed: it.rows_changed,
            bytes: it.bytes,
        };
        let queries = it.queries.iter();
        Self {
            from_us: it.from.micros(),
            bucket_us: it.bucket_us,
            buckets: it.buckets,
            calls: it.calls,
            queries: queries
                .map(|(query, buckets)| (query.clone(), buckets.iter().map(bucket).collect()))
                .collect(),
        }
    }
}

/// Who follows whom, in part.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Graph {
    pub nodes: Vec<Node>,
    /// Who follows whom, as places in `nodes`.
    pub edges: Vec<Vec<usize>>,
    /// Whether there is more.
    pub is_cut: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Node {
    #[serde(flatten)]
    pub label: Label,
    pub followers: Option<i64>,
    pub class: Option<String>,
    pub depth: Option<u32>,
}

impl From<store::Graph> for Graph {
    fn from(it: store::Graph) -> Self {
        let nodes = it.nodes.into_iter().map(|it| Node {
            label: it.label.into(),
            followers: it.followers,
            class: it.class,
            depth: it.depth,
        });
        let edges = it.edges.into_iter().map(|(from, to)| vec![from, to]);
        Self {
            nodes: nodes.collect(),
            edges: edges.collect(),
            is_cut: it.is_cut,
        }
    }
}

/// How long ago the subjects of a lane were visited.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Ages {
    /// Subjects that were looked at, and whether that was everybody.
    pub sample: u64,
    pub is_whole: bool,
    pub unvisited: u64,
    /// The upper ends of the stretches that ages are counted in; one more has all that is older.
    pub edges_us: Vec<i64>,
    /// Subjects by class, for every stretch in order.
    pub classes: BTreeMap<String, Vec<u64>>,
}

impl From<store::Ages> for Ages {
    fn from(it: store::Ages) -> Self {
        Self {
            sample: it.sample,
            is_whole: it.is_whole,
            unvisited: it.unvisited,
            edges_us: it.edges_us,
            classes: it.classes,
        }
    }
}

/// At which hours of the day posts are made, UTC.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Hours {
    pub sample: u64,
    pub hours: Vec<u64>,
}

impl From<store::Hours> for Hours {
    fn from(it: store::Hours) -> Self {
        Self {
            sample: it.sample,
            hours: it.hours.to_vec(),
        }
    }
}
