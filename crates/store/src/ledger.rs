//! The ledger of grants: who may still send how many calls in which window.
//!
//! A call is made only out of a grant, and a grant is on the disk before it is given out. What
//! was granted counts as spent until its window ends, unless it is handed back. A call that is
//! still unanswered when its window ends may reach the server in the next one, so it counts there
//! too: either exactly, because a living process says how many there are ([`Ledger::carry`]), or
//! in full, because the grant was never closed (a process that crashed).
//!
//! This file has the types and the arithmetic, `rules/ledger.rs` what is done with them. It is kept
//! in a file that all processes of a user share (`sqlite/ledger.rs`), or on a server that machines
//! share (`postgres/ledger.rs`).

use crate::rules::ledger_thread::LedgerThread;
use crate::{Location, StoreError, postgres, sqlite};
use kittiwake_model::{BudgetId, Grant, LimitTime, Window};

/// What one process wants of one budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want {
    pub budget: BudgetId,
    pub window: Window,
    /// Calls that may be made in the window, after what is held in reserve.
    pub limit: u32,
    /// Calls wanted; fewer may be granted, at least one.
    pub calls: u32,
    /// Who asks: a process, or a run of it.
    pub holder: String,
}

/// The answer to a list of wants: all of them, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquired {
    /// One grant for each want, in the same order.
    Granted(Vec<Grant>),
    /// This budget has nothing left; it is worth asking again at `until`.
    Exhausted { budget: BudgetId, until: LimitTime },
}

/// The end of a grant: its window is over, or its holder stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closing {
    pub grant: i64,
    /// Calls that were never sent.
    pub unused: u32,
}

/// Calls that were sent in earlier windows and were unanswered when `window` began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carry {
    pub budget: BudgetId,
    pub window: Window,
    pub holder: String,
    pub calls: u32,
}

/// How one window of one budget stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetUsage {
    pub budget: BudgetId,
    pub window: Window,
    /// The limit that the last grant was given under, if there was one.
    pub limit: Option<u32>,
    /// Calls granted in this window and not handed back.
    pub granted: u32,
    /// Calls of earlier windows that may arrive in this one.
    pub carried: u32,
    /// Calls that the server counted and nobody here made.
    pub foreign: u32,
    pub blocked_until: Option<LimitTime>,
}

/// What counts against the limit of one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Spent {
    pub granted: u64,
    pub carried: u64,
    /// The part of `carried` that stands for grants nobody has closed yet.
    pub unclosed: u64,
    /// The part of `carried` that this process has declared itself.
    pub own_carried: u64,
    pub foreign: u64,
}

impl Spent {
    pub(crate) fn available(self, limit: u32) -> u32 {
        let spent = self.granted + self.carried + self.foreign;
        u32::try_from(u64::from(limit).saturating_sub(spent)).unwrap_or(u32::MAX)
    }

    /// Whether a budget that has nothing left may have something before its window ends: when
    /// the grants of the last window are closed, or when answers show that calls which were taken
    /// for foreign are our own.
    pub(crate) fn may_recover(self, limit: u32) -> bool {
        self.granted + (self.carried - self.unclosed) < u64::from(limit)
    }

    /// The most calls by others that the server's count can hold. All that it counted, and all
    /// of ours that it may not have counted yet, are ours as far as they were granted or carried;
    /// what is beyond is foreign.
    pub(crate) fn foreign_calls(self, used_by_server: u32, unreflected: u32) -> u64 {
        (u64::from(used_by_server) + u64::from(unreflected))
            .saturating_sub(self.granted + self.own_carried)
    }
}

/// When to ask again for a budget that may have something left before its window ends.
pub(crate) fn ask_again_at(at: LimitTime, window: Window) -> LimitTime {
    let length_us = window.end.since_us(window.start);
    at.plus_us((length_us / 50).max(1)).min(window.end)
}

/// The shared ledger of all processes of one user, or of several machines.
#[derive(Debug)]
pub struct Ledger {
    thread: LedgerThread,
}

impl Ledger {
    /// Opens the ledger, and makes it and its folders, or its schema, if they are missing.
    pub fn open(place: &Location) -> Result<Self, StoreError> {
        Self::open_with(place, true)
    }

    /// The same without waiting for the disk: for tests, which have no power cuts.
    pub fn open_unsynced(place: &Location) -> Result<Self, StoreError> {
        Self::open_with(place, false)
    }

    fn open_with(place: &Location, is_synced: bool) -> Result<Self, StoreError> {
        let thread = match place.clone() {
            Location::File(path) => {
                LedgerThread::start(move |desk| sqlite::ledger::serve(&path, is_synced, desk))
            }
            Location::Server(url) => {
                LedgerThread::start(move |desk| postgres::ledger::serve(&url, is_synced, desk))
            }
        };
        Ok(Self {
            thread: thread.map_err(|error| error.context(&place.to_string()))?,
        })
    }

    /// One grant from each budget, all or none, durable when it returns.
    pub async fn acquire(&self, at: LimitTime, wants: Vec<Want>) -> Result<Acquired, StoreError> {
        self.thread.call(move |book| book.acquire(at, &wants)).await
    }

    /// Ends grants and hands back the calls that were not sent. Calls that are still unanswered
    /// at the end of a window are declared with [`Self::carry`] before its grants are closed.
    pub async fn close(&self, closings: Vec<Closing>) -> Result<(), StoreError> {
        self.thread.call(move |book| book.close(&closings)).await
    }

    /// Calls of earlier windows that were unanswered when `window` began count in it too. Said
    /// twice, the greater number holds.
    pub async fn carry(&self, carries: Vec<Carry>) -> Result<(), StoreError> {
        self.thread.call(move |book| book.carry(&carries)).await
    }

    /// The server's own count of a window. `unreflected` are the calls of this process that the
    /// server's count cannot be known to hold: in flight, whichever window they were sent in, or
    /// granted and unsent.
    pub async fn observe(
        &self,
        budget: &BudgetId,
        window: Window,
        used_by_server: u32,
        unreflected: u32,
    ) -> Result<(), StoreError> {
        let budget = budget.clone();
        self.thread
            .call(move |book| book.observe(&budget, window, used_by_server, unreflected))
            .await
    }

    /// No grants before `until`: the server said so. A later block extends an earlier one.
    pub async fn block(&self, budget: &BudgetId, until: LimitTime) -> Result<(), StoreError> {
        let budget = budget.clone();
        self.thread
            .call(move |book| book.block(&budget, until))
            .await
    }

    /// How the windows stand that contain `at`.
    pub async fn usage(&self, at: LimitTime) -> Result<Vec<BudgetUsage>, StoreError> {
        self.thread.call(move |book| book.usage(at)).await
    }

    /// Rows in the ledger, which stay few.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method itself is of one lifetime only"
    )]
    pub async fn rows(&self) -> Result<u64, StoreError> {
        self.thread.call(|book| book.rows()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_granted_carried_and_foreign_is_spent() {
        let spent = Spent {
            granted: 100,
            carried: 7,
            foreign: 3,
            ..Spent::default()
        };
        assert_eq!(spent.available(300), 190);
        assert_eq!(spent.available(50), 0);
    }

    #[test]
    fn calls_of_ours_are_not_taken_for_foreign_ones() {
        let spent = Spent {
            granted: 20,
            carried: 4,
            own_carried: 4,
            ..Spent::default()
        };
        // 12 of 20 were sent and answered, 4 were carried over, 8 are still to be sent.
        assert_eq!(spent.foreign_calls(16, 8), 0);
        assert_eq!(spent.foreign_calls(21, 8), 5);
    }

    #[test]
    fn one_asks_again_soon_when_a_budget_may_recover() {
        let window = Window {
            start: LimitTime(1_000),
            end: LimitTime(2_000),
        };
        assert_eq!(ask_again_at(LimitTime(1_100), window), LimitTime(1_120));
        assert_eq!(ask_again_at(LimitTime(1_999), window), LimitTime(2_000));
        let spent = Spent {
            carried: 300,
            unclosed: 300,
            ..Spent::default()
        };
        assert!(spent.may_recover(300));
        let spent = Spent {
            granted: 300,
            ..Spent::default()
        };
        assert!(!spent.may_recover(300));
    }
}
