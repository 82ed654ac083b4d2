//! The ledger of grants: who may still spend how much of which budget.
//!
//! A call is made only out of a grant, and a grant is on the disk before it is given out. Every
//! grant counts against its budget until a time. At first that is the latest time at which a call
//! made out of it could still matter to the server, should nobody be heard of any more; whoever
//! settles a grant says until when each part of it really counts, and hands back the rest. So one
//! rule serves every kind of window: what counts now is what was granted and whose time is not over.
//!
//! This file has the types and the arithmetic, `rules/ledger.rs` what is done with them. It is kept
//! in a file that all processes of a user share (`sqlite/ledger.rs`), or on a server that machines
//! share (`postgres/ledger.rs`).

use crate::rules::ledger::Book;
use crate::rules::ledger_thread::LedgerThread;
use crate::{Location, StoreError, postgres, sqlite};
use kittiwake_model::{BudgetId, LimitTime};

/// What one process wants of one budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want {
    pub budget: BudgetId,
    /// The present by the clock that the budget goes by.
    pub at: LimitTime,
    /// Units that may count at once, after what is held in reserve.
    pub limit: u64,
    /// Units that one call takes.
    pub call_units: u64,
    /// Calls wanted; fewer may be granted, at least one.
    pub calls: u32,
    pub term: Term,
    /// When to ask again for a budget of which others may hand something back.
    pub ask_again: LimitTime,
    /// For how long a grant is used.
    pub use_us: i64,
    /// Who asks: a process, or a run of it.
    pub holder: String,
}

/// Until when a grant counts that is never settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// Until then. `window` tells grants of one window from those of another; 0 where there are
    /// none.
    Until { until: LimitTime, window: LimitTime },
    /// Windows begin with the first call, which nobody sees arrive.
    FromFirst {
        length_us: i64,
        /// How long before a window may end nothing is granted any more, so that what was sent is
        /// answered when it ends.
        drain_us: i64,
        /// A call that was sent arrives within this time, or never.
        transit_us: i64,
    },
}

/// The answer to a list of wants: all of them, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquired {
    /// One grant for each want, in the same order.
    Granted(Vec<Grant>),
    /// This budget has nothing left; it is worth asking again at `until`.
    Exhausted { budget: BudgetId, until: LimitTime },
}

/// The right to spend units of one budget. It was durable before it was given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub id: i64,
    pub budget: BudgetId,
    pub units: u64,
    /// What counts beside it: of others, and by the server's word.
    pub others: u64,
    /// What others have spent for certain, and what counts for longer than a grant is used.
    pub spent_by_others: u64,
    /// The window it belongs to, where windows begin with the first call.
    pub opened: Option<Opened>,
}

/// A window that began with a call: at the earliest, and at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    pub earliest: LimitTime,
    pub latest: LimitTime,
}

/// What became of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settling {
    pub grant: i64,
    /// What was spent, and until when it counts.
    pub parts: Vec<Part>,
    /// What is still under way, and until when it counts at least. Without it the grant is closed.
    pub open: Option<Part>,
}

/// Units that count until a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub units: u64,
    pub until: LimitTime,
}

/// A server's own count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    pub budget: BudgetId,
    pub at: LimitTime,
    /// As in [`Term::Until`].
    pub window: LimitTime,
    /// Units that the server has counted.
    pub used: u64,
    /// Units of this process that the server's count cannot be known to hold: in flight, or granted
    /// and unspent.
    pub unreflected: u64,
    /// Until when calls of others count of which nothing else is known.
    pub until: LimitTime,
}

/// How one budget stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetUsage {
    pub budget: BudgetId,
    /// The limit that the last grant was given under.
    pub limit: u64,
    /// Units that count now.
    pub used: u64,
    /// Those of them that the server counted and nobody here made.
    pub foreign: u64,
    /// When the first of them come back.
    pub resets: Option<LimitTime>,
    pub blocked_until: Option<LimitTime>,
}

/// Something that was learnt and is worth remembering across runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lesson {
    pub topic: String,
    pub number: i64,
    pub at: LimitTime,
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
    pub async fn acquire(&self, wants: Vec<Want>) -> Result<Acquired, StoreError> {
        self.thread.call(move |book| book.acquire(&wants)).await
    }

    /// Says what became of grants, and then acquires others: one write to the disk for both.
    pub async fn settle_and_acquire(
        &self,
        settlings: Vec<Settling>,
        wants: Vec<Want>,
    ) -> Result<Acquired, StoreError> {
        let work = move |book: &Book<'_>| {
            book.settle(&settlings)?;
            book.acquire(&wants)
        };
        self.thread.call(work).await
    }

    /// Says what became of grants. One that was closed stays closed.
    pub async fn settle(&self, settlings: Vec<Settling>) -> Result<(), StoreError> {
        self.thread.call(move |book| book.settle(&settlings)).await
    }

    /// A call of the window that began at the earliest then was answered, or the server told when it
    /// ends: it began within these bounds. Grants of it count no longer than it may last.
    pub async fn narrow(
        &self,
        budget: &BudgetId,
        window: LimitTime,
        bounds: Opened,
        length_us: i64,
    ) -> Result<(), StoreError> {
        let budget = budget.clone();
        self.thread
            .call(move |book| book.narrow(&budget, window, bounds, length_us))
            .await
    }

    /// Takes in a server's own count.
    pub async fn observe(&self, observed: Observed) -> Result<(), StoreError> {
        self.thread.call(move |book| book.observe(&observed)).await
    }

    /// No grants before `until`: the server said so. A later block extends an earlier one.
    pub async fn block(&self, budget: &BudgetId, until: LimitTime) -> Result<(), StoreError> {
        let budget = budget.clone();
        self.thread
            .call(move |book| book.block(&budget, until))
            .await
    }

    /// Remembers what was learnt, in the place of what was known of the same topic.
    pub async fn learn(&self, lesson: Lesson) -> Result<(), StoreError> {
        self.thread.call(move |book| book.learn(&lesson)).await
    }

    /// What is known of all topics that begin with a prefix.
    pub async fn lessons(&self, prefix: &str) -> Result<Vec<Lesson>, StoreError> {
        let prefix = prefix.to_owned();
        self.thread.call(move |book| book.lessons(&prefix)).await
    }

    /// How the budgets stand of which something counts at `at`, or that are blocked.
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
