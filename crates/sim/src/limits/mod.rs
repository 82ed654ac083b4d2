//! Limits: who may call how often, and what answers say about it.
//!
//! Pure: the time of a call is an argument. Either Mastodon's own limits hold, or those that a file
//! declares, or none.
//!
//! - `mastodon.rs`: the real server's five buckets
//! - `file.rs` reads a file of limits into the rules of `rule.rs`; `period.rs` knows when windows
//!   begin and end, in time zones too
//! - `declared.rs`: who is counted where, and the verdict over a call
//! - `counter.rs`, `window.rs`, `sliding.rs`, `at_once.rs`: what one bucket counts of one caller
//! - `announce.rs`: what answers and the status page say about limits
//! - `finished.rs`: windows that are over, as far as they are kept

mod announce;
mod at_once;
mod counter;
mod declared;
#[cfg(test)]
mod declared_test;
mod file;
mod finished;
mod mastodon;
mod period;
mod rule;
mod sliding;
mod window;

use std::borrow::Cow;

use kittiwake_model::clock::LimitTime;
use serde::Serialize;

pub use file::LimitsError;
pub use rule::DeclaredLimits;

pub(crate) use announce::{Allowance, StatusAnswer};
pub(crate) use declared::Held;

use crate::Limits;
use announce::Note;
use declared::DeclaredLimiter;
use finished::FinishedWindow;
use mastodon::{MastodonLimiter, RateHeaders};

/// A header of an answer.
pub(crate) type Header = (Cow<'static, str>, String);
pub(crate) type BucketName = Cow<'static, str>;

/// Callers that can be told apart at one time.
const OPEN_WINDOWS_MAX: usize = 500_000;

/// Who calls, as far as limits are concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    Anonymous {
        address: String,
    },
    Token {
        token: String,
        user: String,
        app: String,
        /// Whether it speaks for a user, not for the application alone.
        is_of_user: bool,
        address: String,
    },
}

impl Caller {
    /// Who is billed: the application, whoever it speaks for.
    pub(crate) fn payer(&self) -> &str {
        match self {
            Self::Anonymous { address } => address,
            Self::Token { app, .. } => app,
        }
    }
}

/// A call, as far as limits are concerned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) caller: &'a Caller,
    /// The name of its query in the ledger.
    pub(crate) query: &'static str,
    pub(crate) is_paging: bool,
}

/// Why a call was not let through, and how that is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) bucket: BucketName,
    pub(crate) status: u16,
    /// None: as the network words it.
    pub(crate) body: Option<String>,
}

/// What became of a call.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) refusal: Option<Refusal>,
    announced: Announced,
    /// What is counted until the answer has ended.
    held: Option<Held>,
    /// Items of the answer are still to be charged.
    pub(crate) charges_items: bool,
}

#[derive(Debug)]
enum Announced {
    Nothing,
    Mastodon(RateHeaders),
    Declared(Vec<Note>),
}

impl Verdict {
    /// The verdict where there are no limits.
    pub(crate) const fn free() -> Self {
        Self {
            refusal: None,
            announced: Announced::Nothing,
            held: None,
            charges_items: false,
        }
    }

    pub(crate) const fn take_held(&mut self) -> Option<Held> {
        self.held.take()
    }

    /// What the answer says about limits.
    pub(crate) fn headers(&self) -> Vec<Header> {
        match &self.announced {
            Announced::Nothing => Vec::new(),
            Announced::Mastodon(rate) => rate.headers(),
            Announced::Declared(notes) => announce::headers(notes),
        }
    }
}

/// A window of either kind of limit, as the ledger lists it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum WindowRow<'a> {
    Mastodon(&'a mastodon::Window),
    Declared(Cow<'a, FinishedWindow>),
}

#[derive(Debug)]
pub(crate) enum Limiter {
    Off,
    Mastodon(MastodonLimiter),
    Declared(DeclaredLimiter),
}

impl Limiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        match limits {
            Limits::Off => Self::Off,
            Limits::Strict => Self::Mastodon(MastodonLimiter::default()),
            Limits::Declared(limits) => Self::Declared(DeclaredLimiter::new(limits)),
        }
    }

    /// Counts a call and says whether it may pass.
    pub(crate) fn admit(&mut self, call: Call<'_>, now: LimitTime) -> Verdict {
        match self {
            Self::Off => Verdict::free(),
            Self::Mastodon(limiter) => limiter.admit(call.caller, call.is_paging, now).into(),
            Self::Declared(limiter) => limiter.admit(call, now),
        }
    }

    /// Charges what an answer holds.
    pub(crate) fn charge_items(&mut self, verdict: &mut Verdict, items: u64, now: LimitTime) {
        if let (Self::Declared(limiter), Announced::Declared(notes)) =
            (self, &mut verdict.announced)
        {
            limiter.charge_items(notes, items, now);
        }
    }

    /// An answer has ended.
    pub(crate) fn release(&mut self, held: &Held, now: LimitTime) {
        if let Self::Declared(limiter) = self {
            limiter.release(held, now);
        }
    }

    /// What a caller has left; none where the network has no such page.
    pub(crate) fn status(&mut self, caller: &Caller, now: LimitTime) -> Option<StatusAnswer> {
        match self {
            Self::Declared(limiter) => Some(limiter.status(caller, now)),
            Self::Off | Self::Mastodon(_) => None,
        }
    }

    /// The same, bucket by bucket; nothing where no limits are declared.
    pub(crate) fn allowances(&mut self, caller: &Caller, now: LimitTime) -> Vec<Allowance> {
        match self {
            Self::Declared(limiter) => limiter.allowances(caller, now),
            Self::Off | Self::Mastodon(_) => Vec::new(),
        }
    }

    /// All windows, the oldest first, and how many older ones are not kept.
    pub(crate) fn windows(&self) -> (Vec<WindowRow<'_>>, u64) {
        match self {
            Self::Off => (Vec::new(), 0),
            Self::Mastodon(limiter) => {
                let (windows, dropped) = limiter.windows();
                let rows = windows.into_iter().map(WindowRow::Mastodon);
                (rows.collect(), dropped)
            }
            Self::Declared(limiter) => {
                let (windows, dropped) = limiter.windows();
                let rows = windows.into_iter().map(WindowRow::Declared);
                (rows.collect(), dropped)
            }
        }
    }
}
