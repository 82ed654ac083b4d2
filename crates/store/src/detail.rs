//! How a crawl stands and how it came about, counted: what `status` and `report` show.

use kittiwake_model::Name;
use std::collections::BTreeMap;

/// How a crawl stands now. Looks at a bounded number of recent calls only.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Detail {
    pub last_run: Option<RunDetail>,
    pub recent: Recent,
    /// Who is due next, by robot.
    pub next: Vec<NextVisit>,
    /// Robots that were told to pause; `None` stands for all.
    pub paused: Vec<Option<Name>>,
}

/// One run of a crawl.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunDetail {
    pub number: i64,
    pub network: String,
    pub host: String,
    /// The definition's digest.
    pub definition: String,
    pub clock: String,
    /// All settings, as JSON.
    pub settings: String,
    pub started_us: i64,
    pub ended_us: Option<i64>,
    pub end_reason: Option<String>,
}

/// What the latest calls took, in microseconds, all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recent {
    pub calls: u64,
    /// From the first of them to the last.
    pub span_us: u64,
    pub bytes: u64,
    /// Choosing the subject.
    pub ranking_us: u64,
    /// From being chosen to being sent: waiting for limits and for a free place.
    pub waiting_us: u64,
    /// From being sent to being answered.
    pub network_us: u64,
    /// Reading the answer.
    pub reading_us: u64,
    /// Finding out what follows from it.
    pub seeding_us: u64,
    /// From being answered to being committed, without that.
    pub storing_us: u64,
    /// What all but a hundredth of them stayed within.
    pub ranking_us_p99: u64,
    pub seeding_us_p99: u64,
}

/// A subject that is due next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextVisit {
    pub robot: Name,
    /// How the subject is called.
    pub subject: String,
    pub due_us: i64,
    /// Whether it has been visited before.
    pub is_revisit: bool,
}

/// How the data of a crawl came about: everything that a methods section needs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Methods {
    pub runs: Vec<(RunDetail, RunCalls)>,
    pub definitions: Vec<DefinitionUse>,
    /// Calls by query and outcome.
    pub calls: BTreeMap<(String, String), CallCount>,
    /// Subjects by query and their newest outcome, with the reason.
    pub outcomes: BTreeMap<(String, String, String), u64>,
    /// What hosts said of themselves: (name, fields as JSON).
    pub hosts: Vec<(String, String)>,
    /// Values that had to be dropped or mended.
    pub mended: u64,
    /// Users who ask not to be collected, and were left alone.
    pub opted_out: u64,
}

/// What one run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunCalls {
    pub calls: u64,
    pub bytes: u64,
    pub refused: u64,
    pub failed: u64,
    pub rows_new: u64,
    pub rows_changed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallCount {
    pub calls: u64,
    pub bytes: u64,
}

/// A definition that a run used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionUse {
    pub network: String,
    pub digest: String,
    pub text: String,
}
