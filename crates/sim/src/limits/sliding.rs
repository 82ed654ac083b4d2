//! Counts what was let through in the last so many seconds, call by call.

use std::collections::VecDeque;

use super::counter::Tally;
use super::period::Period;

#[derive(Debug, Clone)]
pub(super) struct Sliding {
    window_us: i64,
    /// Times and amounts, the oldest first.
    log: VecDeque<(i64, u64)>,
    used: u64,
    /// Of the stretch of time that is reported; stretches are aligned and as long as the window.
    stretch: Tally,
}

impl Sliding {
    pub(super) fn new(window_us: i64, now_us: i64) -> Self {
        Self {
            window_us,
            log: VecDeque::new(),
            used: 0,
            stretch: stretch_at(window_us, now_us, 0),
        }
    }

    pub(super) fn roll(&mut self, now_us: i64) -> Option<Tally> {
        while let Some((at_us, amount)) = self.log.front() {
            if now_us < at_us.saturating_add(self.window_us) {
                break;
            }
            self.used -= amount;
            self.log.pop_front();
        }
        if now_us < self.stretch.end_us {
            return None;
        }
        let fresh = stretch_at(self.window_us, now_us, self.used);
        let over = std::mem::replace(&mut self.stretch, fresh);
        (!over.is_empty()).then_some(over)
    }

    pub(super) fn charge(&mut self, now_us: i64, amount: u64) {
        if amount == 0 {
            return;
        }
        self.log.push_back((now_us, amount));
        self.used += amount;
        self.stretch.charge(amount, self.used);
    }

    pub(super) const fn refuse(&mut self) {
        self.stretch.refused += 1;
    }

    pub(super) const fn used(&self) -> u64 {
        self.used
    }

    /// When so much of what is counted has left the window; now if nothing has to.
    pub(super) fn free_us(&self, now_us: i64, amount: u64) -> i64 {
        let mut left = 0_u64;
        for (at_us, leaves) in &self.log {
            if left >= amount {
                break;
            }
            left += leaves;
            if left >= amount {
                return at_us.saturating_add(self.window_us);
            }
        }
        now_us
    }

    pub(super) fn logged(&self) -> usize {
        self.log.len()
    }

    pub(super) const fn tally(&self) -> Tally {
        self.stretch
    }
}

/// A stretch that begins while so much counts.
fn stretch_at(window_us: i64, now_us: i64, counting: u64) -> Tally {
    let span = Period::Aligned { window_us }.span(now_us);
    Tally {
        greatest: Some(counting),
        ..Tally::of(span)
    }
}
