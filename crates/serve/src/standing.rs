//! How the crawl stands: one picture, made now and then, that everybody is shown.

pub(crate) mod look;

use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How a crawl stands. Times are microseconds since 1970, UTC, by the clock that they belong to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
pub struct Standing {
    /// Counts up with every picture that differs from the one before.
    pub version: u64,
    /// When the picture was made, by this machine's clock.
    pub at_us: i64,
    /// The present in the crawl's world, and by the clock that its limits go by; they differ from this
    /// machine's only on a synthetic network.
    pub world_us: i64,
    pub limit_us: i64,
    /// Where the crawl is kept, without passwords.
    pub place: String,
    /// Whether a living process crawls into it.
    pub crawling: bool,
    /// Whether it is this very process, which can begin the crawl again.
    pub own: bool,
    /// All robots are told to pause.
    pub paused: bool,
    pub run: Option<RunStanding>,
    pub calls: u64,
    pub robots: Vec<RobotStanding>,
    pub budgets: Vec<BudgetStanding>,
    pub freshness: Vec<LaneFreshness>,
    /// Outcomes of the newest calls, the most frequent first.
    pub outcomes: Vec<OutcomeCount>,
    pub next: Vec<NextVisit>,
    pub recent: RecentCalls,
    /// What was done in the last minutes, the oldest first.
    pub pace: Vec<PacePoint>,
    /// Rows by table, and when they were counted.
    pub rows: BTreeMap<String, u64>,
    pub rows_at_us: Option<i64>,
    /// Why the crawl cannot be looked at, if it cannot; the rest is then of the last look.
    pub trouble: Option<String>,
}

/// One run of a crawl.
#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
pub struct RunStanding {
    pub number: i64,
    pub network: String,
    pub host: String,
    /// The definition's digest.
    pub definition: String,
    pub clock: String,
    #[schema(value_type = Object)]
    pub settings: serde_json::Value,
    pub started_us: i64,
    pub ended_us: Option<i64>,
    pub end_reason: Option<String>,
}

/// What a robot does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RobotState {
    Running,
    Paused,
    /// Switched off for this run.
    Stopped,
    /// Nobody crawls.
    #[default]
    Resting,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
pub struct RobotStanding {
    pub name: String,
    pub state: RobotState,
    /// The queries that it asks, as the definition has them.
    pub queries: Vec<String>,
    /// In this run where this process crawls; among the newest calls otherwise.
    pub calls: u64,
    pub rows_new: u64,
    pub rows_changed: u64,
    pub visits: u64,
    /// Subjects that wait for their turn.
    pub waiting: u64,
    pub calls_per_second: f64,
    pub rows_per_second: f64,
    /// What it did last.
    pub last: Option<Message>,
}

/// What a robot did, in words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct Message {
    /// The call's number in the query log.
    pub log: String,
    pub robot: String,
    pub query: String,
    /// When the call was sent, by this machine's clock.
    pub at_us: i64,
    pub subject: String,
    pub outcome: String,
    pub is_failure: bool,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct BudgetStanding {
    /// Network, host, budget and whose it is, as in the ledger.
    pub id: String,
    pub used: u64,
    /// Of it by others, as the server counts.
    pub by_others: u64,
    pub limit: u64,
    pub left: u64,
    /// `calls`, `points`, or millionths of a currency by its code; unknown where only the ledger tells.
    pub unit: Option<String>,
    /// When something comes back, by the clock of limits.
    pub resets_us: Option<i64>,
    pub shut_until_us: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
pub struct LaneFreshness {
    /// Network, host and robot.
    pub lane: String,
    pub policy: String,
    pub everybody: FreshnessFigures,
    /// By class; whoever has none yet is `unknown`.
    pub classes: BTreeMap<String, FreshnessFigures>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, ToSchema)]
pub struct FreshnessFigures {
    pub people: u64,
    pub visited: u64,
    pub posts_per_day: f64,
    /// Posts that are expected to wait to be found.
    pub posts_waiting: f64,
    pub expected_delay_hours: Option<f64>,
    pub age_hours: Option<f64>,
    /// Posts found lately, how long after they were written, and the share within an hour.
    pub found: u64,
    pub delay_hours: Option<f64>,
    pub share_within_hour: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct OutcomeCount {
    pub outcome: String,
    pub is_failure: bool,
    pub calls: u64,
}

/// Who is next, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct NextVisit {
    pub robot: String,
    pub subject: String,
    /// By the world's clock.
    pub due_us: i64,
    pub is_revisit: bool,
    pub why: String,
}

/// What the newest calls took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, ToSchema)]
pub struct RecentCalls {
    pub calls: u64,
    pub seconds: f64,
    pub bytes: u64,
    pub calls_per_second: f64,
    pub bytes_per_second: f64,
    /// Shares of the time of a call, which are 1 together.
    pub choosing: f64,
    pub waiting: f64,
    pub network: f64,
    pub reading: f64,
    pub seeding: f64,
    pub storing: f64,
}

/// What was done between two pictures.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, ToSchema)]
pub struct PacePoint {
    pub at_us: i64,
    pub calls_per_second: f64,
    pub rows_per_second: f64,
}
