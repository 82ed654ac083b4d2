//! Counts in windows, each of which begins with nothing used.

use super::counter::Tally;
use super::period::Period;

#[derive(Debug, Clone)]
pub(super) struct Windowed {
    tally: Tally,
    /// A window that begins with its first call may be yet to begin.
    has_begun: bool,
}

impl Windowed {
    pub(super) fn new(period: &Period, now_us: i64) -> Self {
        Self {
            tally: Tally::of(period.span(now_us)),
            has_begun: !period.begins_with_first_call(),
        }
    }

    pub(super) fn roll(&mut self, period: &Period, now_us: i64) -> Option<Tally> {
        let is_current = self.has_begun && now_us < self.tally.end_us;
        if is_current {
            return None;
        }
        let over = std::mem::replace(self, Self::new(period, now_us));
        (!over.tally.is_empty()).then_some(over.tally)
    }

    pub(super) fn charge(&mut self, period: &Period, now_us: i64, amount: u64) {
        if !self.has_begun {
            *self = Self::new(period, now_us);
            self.has_begun = true;
        }
        self.tally.used = self.tally.used.saturating_add(amount);
    }

    pub(super) const fn refuse(&mut self) {
        self.tally.refused += 1;
    }

    pub(super) const fn used(&self) -> u64 {
        self.tally.used
    }

    pub(super) const fn end_us(&self) -> i64 {
        self.tally.end_us
    }

    pub(super) const fn tally(&self) -> Tally {
        self.tally
    }
}
