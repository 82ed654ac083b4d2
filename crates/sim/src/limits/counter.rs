//! What one bucket counts of one caller.

use serde::Serialize;

use super::at_once::AtOnce;
use super::period::Span;
use super::rule::Kind;
use super::sliding::Sliding;
use super::window::Windowed;

/// What was counted in a window, or in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Tally {
    pub(super) start_us: i64,
    pub(super) end_us: i64,
    /// What was let through.
    pub(super) used: u64,
    pub(super) refused: u64,
    /// Where the limit is not one of windows: the most that ever counted at one time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) greatest: Option<u64>,
}

impl Tally {
    pub(super) const fn of(span: Span) -> Self {
        Self {
            start_us: span.start_us,
            end_us: span.end_us,
            used: 0,
            refused: 0,
            greatest: None,
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.used == 0 && self.refused == 0
    }

    /// Counts what was let through at a time when so much counted.
    pub(super) fn charge(&mut self, amount: u64, counting: u64) {
        self.used = self.used.saturating_add(amount);
        self.greatest = Some(self.greatest.unwrap_or(0).max(counting));
    }
}

/// Times are arguments, and never go back.
#[derive(Debug, Clone)]
pub(super) enum Counter {
    Windowed(Windowed),
    Sliding(Sliding),
    AtOnce(AtOnce),
}

impl Counter {
    pub(super) fn new(kind: &Kind, now_us: i64) -> Self {
        match kind {
            Kind::Windows(period) => Self::Windowed(Windowed::new(period, now_us)),
            Kind::Sliding { window_us } => Self::Sliding(Sliding::new(*window_us, now_us)),
            Kind::Concurrency => Self::AtOnce(AtOnce::new(now_us)),
        }
    }

    /// Brings it up to now, and gives what is over.
    pub(super) fn roll(&mut self, kind: &Kind, now_us: i64) -> Option<Tally> {
        match (self, kind) {
            (Self::Windowed(windowed), Kind::Windows(period)) => windowed.roll(period, now_us),
            (Self::Sliding(sliding), _) => sliding.roll(now_us),
            (Self::Windowed(_) | Self::AtOnce(_), _) => None,
        }
    }

    /// What counts against the limit now.
    pub(super) const fn used(&self) -> u64 {
        match self {
            Self::Windowed(windowed) => windowed.used(),
            Self::Sliding(sliding) => sliding.used(),
            Self::AtOnce(at_once) => at_once.used(),
        }
    }

    pub(super) fn charge(&mut self, kind: &Kind, now_us: i64, amount: u64) {
        match (self, kind) {
            (Self::Windowed(windowed), Kind::Windows(period)) => {
                windowed.charge(period, now_us, amount);
            }
            (Self::Windowed(_), _) => {}
            (Self::Sliding(sliding), _) => sliding.charge(now_us, amount),
            (Self::AtOnce(at_once), _) => at_once.enter(now_us),
        }
    }

    pub(super) const fn refuse(&mut self) {
        match self {
            Self::Windowed(windowed) => windowed.refuse(),
            Self::Sliding(sliding) => sliding.refuse(),
            Self::AtOnce(at_once) => at_once.refuse(),
        }
    }

    /// The end of what is counted from arrival to answer.
    pub(super) fn leave(&mut self, now_us: i64) {
        if let Self::AtOnce(at_once) = self {
            at_once.leave(now_us);
        }
    }

    /// When so much of what counts now no longer does; none if no time can be named.
    pub(super) fn free_us(&self, now_us: i64, amount: u64) -> Option<i64> {
        match self {
            Self::Windowed(windowed) => Some(windowed.end_us()),
            Self::Sliding(sliding) => Some(sliding.free_us(now_us, amount)),
            Self::AtOnce(_) => None,
        }
    }

    /// Calls that it keeps one by one.
    pub(super) fn logged(&self) -> usize {
        match self {
            Self::Sliding(sliding) => sliding.logged(),
            Self::Windowed(_) | Self::AtOnce(_) => 0,
        }
    }

    /// Whether nothing that it has counted matters any more.
    pub(super) const fn is_over(&self, now_us: i64) -> bool {
        match self {
            Self::Windowed(windowed) => windowed.end_us() <= now_us,
            Self::Sliding(sliding) => sliding.used() == 0,
            Self::AtOnce(at_once) => at_once.used() == 0,
        }
    }

    pub(super) fn tally(&self) -> Option<Tally> {
        let tally = match self {
            Self::Windowed(windowed) => windowed.tally(),
            Self::Sliding(sliding) => sliding.tally(),
            Self::AtOnce(at_once) => at_once.tally(),
        };
        (!tally.is_empty()).then_some(tally)
    }
}
