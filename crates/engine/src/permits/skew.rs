//! How far a server's clock is from ours. Pure.

use kittiwake_model::LimitTime;

/// A second that a server names is over within a second.
const SECOND_US: i64 = 1_000_000;
/// How much two clocks may move apart, in millionths.
const DRIFT_PPM: i64 = 100;
/// A date that is further off tells nothing of a clock: it was made up, or never set.
const BELIEVED_US_MAX: i64 = 3_600_000_000;

/// The server's clock is ahead of ours by so much at least and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Skew {
    least_us: i64,
    most_us: i64,
    /// When that was last found so; never before the first answer.
    found: Option<LimitTime>,
}

impl Skew {
    /// Where nothing is told of it: as far off as clocks commonly are.
    pub(crate) const fn unknown(common_us: i64) -> Self {
        Self {
            least_us: -common_us,
            most_us: common_us,
            found: None,
        }
    }

    /// Before anything was heard: the first call may count in any window that a date could tell of.
    pub(crate) const fn unheard(common_us: i64) -> Self {
        Self {
            most_us: BELIEVED_US_MAX,
            ..Self::unknown(common_us)
        }
    }

    pub(crate) const fn is_known(&self) -> bool {
        self.found.is_some()
    }

    /// Takes in the second that an answer is dated with: it was written between these two instants
    /// of our clock. What the server's clock showed at most when it was, if the date is believed.
    pub(crate) fn hear(
        &mut self,
        date: LimitTime,
        sent: LimitTime,
        answered: LimitTime,
    ) -> Option<LimitTime> {
        let least_us = date.since_us(answered);
        let over = date.plus_us(SECOND_US);
        if least_us.saturating_abs() > BELIEVED_US_MAX {
            return None;
        }
        self.narrow(least_us, over.since_us(sent), answered);
        Some(over.plus_us(-1))
    }

    fn narrow(&mut self, least_us: i64, most_us: i64, answered: LimitTime) {
        let Some(found) = self.found else {
            *self = Self {
                least_us,
                most_us,
                found: Some(answered),
            };
            return;
        };
        let drift_us = answered.since_us(found).max(0) / 1_000_000 * DRIFT_PPM;
        let narrower = Self {
            least_us: least_us.max(self.least_us - drift_us),
            most_us: most_us.min(self.most_us + drift_us),
            found: Some(answered.max(found)),
        };
        // What contradicts itself shows that one of the clocks was set.
        *self = if narrower.least_us <= narrower.most_us {
            narrower
        } else {
            Self {
                least_us,
                most_us,
                found: Some(answered),
            }
        };
    }

    /// As it was found in an earlier run.
    pub(crate) fn remembered(
        least_us: i64,
        most_us: i64,
        found: LimitTime,
        now: LimitTime,
    ) -> Self {
        let drift_us = now.since_us(found).saturating_abs() / 1_000_000 * DRIFT_PPM;
        Self {
            least_us: least_us - drift_us,
            most_us: most_us + drift_us,
            found: Some(now),
        }
    }

    pub(crate) const fn bounds(&self) -> (i64, i64) {
        (self.least_us, self.most_us)
    }

    /// What the server's clock shows at least.
    pub(crate) fn earliest(&self, ours: LimitTime) -> LimitTime {
        ours.plus_us(self.least_us)
    }

    /// What the server's clock shows at most.
    pub(crate) fn latest(&self, ours: LimitTime) -> LimitTime {
        ours.plus_us(self.most_us)
    }

    /// When our clock shows that it is `theirs` on the server's for certain.
    pub(crate) fn reached(&self, theirs: LimitTime) -> LimitTime {
        theirs.plus_us(-self.least_us)
    }

    /// How far apart the least and the most are that the server's clock may show.
    pub(crate) const fn doubt_us(&self) -> i64 {
        self.most_us - self.least_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_true_difference_is_never_ruled_out(
            true_us in -100_000_000_i64..100_000_000,
            calls in prop::collection::vec((0_i64..5_000_000, 1_i64..900_000, 0_i64..900_000), 1..40),
        ) {
            let mut skew = Skew::unknown(1_000_000);
            let mut now = LimitTime(1_000_000_000_000);
            for (pause_us, out_us, back_us) in calls {
                let sent = now.plus_us(pause_us);
                let written = sent.plus_us(out_us);
                let answered = written.plus_us(back_us);
                let theirs = written.plus_us(true_us);
                let date = LimitTime(theirs.0 - theirs.0.rem_euclid(SECOND_US));
                let written_most = skew.hear(date, sent, answered);
                prop_assert!(written_most.is_some_and(|most| theirs <= most));
                prop_assert!(skew.least_us <= true_us && true_us <= skew.most_us, "{skew:?}");
                prop_assert!(skew.earliest(written) <= theirs && theirs <= skew.latest(written));
                now = answered;
            }
        }
    }

    #[test]
    fn a_date_of_another_year_is_no_clock() {
        let mut skew = Skew::unknown(7);
        for date in [
            LimitTime(0),
            LimitTime(i64::MAX - SECOND_US),
            LimitTime(i64::MIN),
        ] {
            let heard = skew.hear(
                date,
                LimitTime(1_790_000_000_000_000),
                LimitTime(1_790_000_000_000_001),
            );
            assert_eq!(heard, None);
        }
        assert_eq!(skew, Skew::unknown(7));
    }

    #[test]
    fn a_clock_that_was_set_is_believed_anew() {
        let mut skew = Skew::unknown(0);
        let at = |seconds: i64| LimitTime(seconds * SECOND_US);
        skew.hear(at(100), at(100), at(100));
        assert_eq!(skew.reached(skew.earliest(at(7))), at(7));
        skew.hear(at(500), at(101), at(101));
        assert_eq!(skew.bounds(), (399 * SECOND_US, 400 * SECOND_US));
    }
}
