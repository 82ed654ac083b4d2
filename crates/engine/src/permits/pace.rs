//! Even pacing: what a window allows is spread over what is left of it. Pure.

use kittiwake_model::LimitTime;
use serde::Serialize;

/// How what a window allows is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// Spread over the window.
    #[default]
    Even,
    /// As quickly as it can be.
    Burst,
}

/// The beat of one budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Beat {
    /// When the next call is due; none before the first.
    next: Option<LimitTime>,
}

impl Beat {
    pub(super) fn next(&self) -> Option<LimitTime> {
        self.next
    }

    /// A call was sent where calls come back one by one: the next is due a share later.
    pub(super) fn sent_regularly(&mut self, now: LimitTime, share_us: i64) {
        let due = self.next.unwrap_or(now);
        let is_idle = now.since_us(due) > 2 * share_us;
        let from = if is_idle { now } else { due };
        self.next = Some(from.plus_us(share_us));
    }

    /// A call was sent. The next is due after an even share of the time until `end`, counted from
    /// when this one was due and not from when it was sent, which would drift; unless there was
    /// nothing to send for more than two shares.
    pub(super) fn sent(&mut self, now: LimitTime, end: LimitTime, calls_left: u64) {
        let due = self.next.unwrap_or(now);
        let shares = i64::try_from(calls_left).unwrap_or(i64::MAX - 1).max(1) + 1;
        let share_us = end.since_us(due).max(0) / shares;
        let is_idle = now.since_us(due) > 2 * share_us;
        let from = if is_idle { now } else { due };
        let share_us = end.since_us(from).max(0) / shares;
        self.next = Some(from.plus_us(share_us));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whoever is late by less than a share still sends all of it, evenly.
        #[test]
        fn a_window_is_used_to_the_last_call_however_late_each_is(
            calls in 2_u64..2_000,
            lateness in prop::collection::vec(0.0_f64..0.9, 1..50),
        ) {
            let (start, end) = (LimitTime(0), LimitTime(900_000_000));
            let share_us = end.since_us(start) as f64 / calls as f64;
            let mut beat = Beat::default();
            let mut now = start;
            for call in 0..calls {
                prop_assert!(now < end, "call {call} of {calls} would be sent at {now:?}");
                beat.sent(now, end, calls - call - 1);
                let late_us = share_us * lateness[call as usize % lateness.len()];
                now = beat.next().unwrap().plus_us(late_us as i64);
            }
        }
    }

    #[test]
    fn what_is_left_after_an_idle_time_is_spread_over_the_rest() {
        let mut beat = Beat::default();
        beat.sent(LimitTime(0), LimitTime(1_000), 9);
        assert_eq!(beat.next(), Some(LimitTime(100)));
        beat.sent(LimitTime(500), LimitTime(1_000), 9);
        assert_eq!(beat.next(), Some(LimitTime(550)));
    }
}
