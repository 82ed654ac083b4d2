//! Numbers that a person may watch while a crawl runs.

use kittiwake_model::{LimitTime, Name};
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
    pub in_flight: u64,
    /// Subjects that are filed and wait for their turn.
    pub waiting: u64,
    /// Visits completed, by robot.
    pub visits: BTreeMap<Name, u64>,
    /// The limit clock's time until which nothing may be sent, and the budget that says so.
    pub paused_until: Option<(LimitTime, String)>,
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
