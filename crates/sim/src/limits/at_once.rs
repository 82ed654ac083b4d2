//! Counts calls from their arrival to the end of their answers.

use super::counter::Tally;
use super::period::Span;

#[derive(Debug, Clone)]
pub(super) struct AtOnce {
    under_way: u64,
    /// Of all calls so far; it ends when the last of them came or went.
    tally: Tally,
}

impl AtOnce {
    pub(super) const fn new(now_us: i64) -> Self {
        Self {
            under_way: 0,
            tally: Tally::of(Span {
                start_us: now_us,
                end_us: now_us,
            }),
        }
    }

    pub(super) fn enter(&mut self, now_us: i64) {
        self.under_way += 1;
        self.tally.charge(1, self.under_way);
        self.tally.end_us = now_us;
    }

    pub(super) const fn leave(&mut self, now_us: i64) {
        self.under_way = self.under_way.saturating_sub(1);
        self.tally.end_us = now_us;
    }

    pub(super) const fn refuse(&mut self) {
        self.tally.refused += 1;
    }

    pub(super) const fn used(&self) -> u64 {
        self.under_way
    }

    pub(super) const fn tally(&self) -> Tally {
        self.tally
    }
}
