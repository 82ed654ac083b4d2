//! What a crawl is asked to do, with what, and what it reports.

use crate::caps::SpendCap;
use crate::credential::Credential;
use crate::hosts::HostPatterns;
use crate::permits::{BudgetSpent, Pace};
use crate::population::Guide;
use crate::{Clock, CrashHook, Progress, RobotProgress};
use kittiwake_fetch::Fetcher;
use kittiwake_frontier::Spill;
use kittiwake_model::{Follow, Name, WorldTime};
use kittiwake_network::Network;
use kittiwake_store::ledger::Ledger;
use kittiwake_store::{Store, Summary};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use url::Url;

/// What a crawl is asked to do.
#[derive(Debug, Clone)]
pub struct CrawlSettings {
    pub network: Arc<Network>,
    /// Where the network is asked: scheme, host and port.
    pub base: Url,
    /// The same host as ids are valid on it: `host` or `host:port`.
    pub host: String,
    /// Which other hosts may be asked about those who live there.
    pub hosts: HostPatterns,
    /// Where the hosts are asked that the definition names.
    pub named_hosts: Vec<(Name, Url)>,
    /// Where to begin, as the user wrote it; each was found to be one of the network's seeds.
    pub seeds: Vec<String>,
    pub depth: u32,
    pub follow: Follow,
    pub robots: Vec<Name>,
    pub rounds: Rounds,
    /// How far back the first visit to a timeline goes.
    pub history: History,
    /// Visit those, too, who ask not to be collected.
    pub include_opted_out: bool,
    pub calls_max: Option<u64>,
    pub time_max: Option<Duration>,
    pub spend_max: Option<SpendCap>,
    pub concurrency: usize,
    pub limits: Limits,
    /// Who asks; nobody if there is none. Robots for which there is none ask as nobody, too.
    pub credentials: Vec<Credential>,
    /// What the clock is called in the file: `real`, or the address it was read from.
    pub clock_source: String,
    /// How long a host may be out of reach before the crawl gives up.
    pub host_patience: Duration,
    /// The first pause before a call is tried again; doubled each time.
    pub retry_pause: Duration,
    pub keep_raw: bool,
    /// Everything the user chose, for the run's record.
    pub record: serde_json::Value,
}

/// How often everybody is visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounds {
    /// Again and again.
    Endless,
    /// Once: the crawl ends when every subject has been visited.
    One,
    /// Once more, if the last round is complete; else that one is completed.
    Another,
}

impl Rounds {
    /// Whether the crawl ends when every subject has been visited.
    pub const fn end(self) -> bool {
        !matches!(self, Self::Endless)
    }
}

/// How far back the first visit to a timeline goes. Pages are kept whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    All,
    /// To at least so many posts.
    Posts(u32),
    /// To the first post that is older.
    Since(WorldTime),
}

/// Whether declared limits are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limits {
    /// `reserve` is the share of every allowance that is left unused. A call within `guard` of a
    /// window's edge takes of both windows where nothing is known of the server's clock.
    Keep {
        reserve: f64,
        guard: Duration,
        pace: Pace,
    },
    Off,
}

/// What a crawl works with.
#[derive(Debug)]
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub ledger: Option<Ledger>,
    pub fetcher: Fetcher,
    pub clock: Clock,
    /// How robots decide whom to visit again; those that are not named here take turns.
    pub guides: BTreeMap<Name, Guide>,
    pub progress: Arc<Progress>,
    pub crash: CrashHook,
    /// Set to ask the crawl to finish what is in flight and stop.
    pub stop: watch::Receiver<bool>,
    /// Seed of the jitter between tries.
    pub jitter_seed: u64,
    /// Where robots' orders go that memory does not hold; all are in memory if nowhere.
    pub spill: Option<Spill>,
    /// Names this process in the query log and the ledger.
    pub node: String,
}

/// Why a crawl ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason", content = "detail")]
pub enum End {
    /// Every subject has been visited.
    Idle,
    /// The user asked it to stop, by a signal.
    Interrupted,
    /// The user asked it to stop, by a command.
    Stopped,
    /// The time that was given is over.
    Time,
    /// The number of calls that was given is used up.
    Calls,
    /// What is left of the money that may be spent is less than another call may cost.
    Spend(String),
    /// The host could not be reached for too long.
    HostDown(String),
    /// The credential is no longer accepted.
    AuthExpired(String),
    /// The network shows a page with which it shuts somebody out.
    ShutOut(String),
}

/// What a crawl did.
#[derive(Debug, Clone)]
pub struct CrawlReport {
    pub end: End,
    /// Calls of this run.
    pub calls: u64,
    /// Calls that the server refused for a limit.
    pub violations: u64,
    /// Visits that failed for good; the same command tries them again.
    pub given_up: u64,
    /// Credentials that were refused for good, by fingerprint, and why.
    pub refused: Vec<(String, String)>,
    pub budgets: Vec<BudgetSpent>,
    /// What each robot did in this run.
    pub robots: BTreeMap<Name, RobotProgress>,
    pub summary: Summary,
    pub rows_new: u64,
    pub rows_changed: u64,
}
