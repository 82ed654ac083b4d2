//! Numbers that a person may watch while a crawl runs.

use kittiwake_model::{BudgetId, LimitTime, Name, Unit};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Counters of a running crawl; written by the scheduler, read by whoever shows them.
#[derive(Debug, Default)]
pub struct Progress(Mutex<Snapshot>);

/// The counters at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    pub calls: u64,
    pub rows_new: u64,
    pub rows_changed: u64,
    pub bytes: u64,
    pub in_flight: u64,
    pub robots: BTreeMap<Name, RobotProgress>,
    pub budgets: Vec<BudgetProgress>,
    /// Robots that were told to pause.
    pub paused: Vec<Name>,
    /// Robots that were switched off for this run.
    pub stopped: Vec<Name>,
    /// The limit clock's time until which nothing may be sent, and the budget that says so.
    pub paused_until: Option<(LimitTime, String)>,
    /// The crawl ends when nobody waits any more.
    pub until_idle: bool,
}

/// What one robot did in this run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RobotProgress {
    pub calls: u64,
    pub rows_new: u64,
    pub rows_changed: u64,
    /// Subjects whose visit was completed.
    pub visits: u64,
    /// Subjects that wait for their turn.
    pub waiting: u64,
}

/// One budget in its current window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetProgress {
    pub budget: Name,
    /// Whose it is.
    pub id: BudgetId,
    pub unit: Unit,
    /// Units that are left of the window, as far as is known here.
    pub left: u64,
    pub limit: u64,
    /// When all of it comes back, where it does at once.
    pub resets: Option<LimitTime>,
    /// Nothing may be sent before, because of this budget.
    pub shut_until: Option<LimitTime>,
}

impl Progress {
    pub fn snapshot(&self) -> Snapshot {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Snapshot)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Snapshot {
    /// Counts for one robot.
    pub(crate) fn robot(&mut self, name: &Name) -> &mut RobotProgress {
        self.robots.entry(name.clone()).or_default()
    }

    /// Subjects that wait, of all robots.
    pub fn waiting(&self) -> u64 {
        self.robots.values().map(|robot| robot.waiting).sum()
    }
}
