//! How quickly a host may be asked whose limits nobody has written down. Pure.
//!
//! One begins politely. Every trouble slows down at once; a long time without any speeds up a little.
//! Near the rate at which there was trouble before, one tries much more rarely, because each try may
//! be refused.

use kittiwake_model::LimitTime;

/// How one begins, and how far one goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Politeness {
    pub start_per_second: f64,
    pub most_per_second: f64,
}

impl Default for Politeness {
    fn default() -> Self {
        Self {
            start_per_second: 1.0,
            most_per_second: 20.0,
        }
    }
}

impl Politeness {
    /// So slowly that there is no more than one call in so many seconds.
    #[must_use]
    pub fn with_pause(self, pause_s: f64) -> Self {
        let most = self.most_per_second.min(1.0 / pause_s.max(1e-3));
        Self {
            start_per_second: self.start_per_second.min(most),
            most_per_second: most,
        }
    }

    fn least_per_second(self) -> f64 {
        LEAST_PER_SECOND.min(self.most_per_second)
    }
}

/// What an answer tells of how a host bears being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bearing {
    Well,
    /// Refused for a limit, overloaded, or shut out.
    Badly,
    /// Nothing: the call failed on its way.
    Unknown,
}

/// No slower than once in so many seconds.
const LEAST_PER_SECOND: f64 = 1.0 / 60.0;
/// After trouble the rate is this part of what it was.
const AFTER_TROUBLE: f64 = 0.5;
/// After answers that take ever longer.
const AFTER_DELAY: f64 = 0.7;
/// An answer takes long when it takes so many times as long as they used to.
const DELAY_FACTOR: f64 = 3.0;
/// One tries a little more after so long without trouble.
const PROBE_EVERY_US: i64 = 10_000_000;
const PROBE_FACTOR: f64 = 1.1;
/// The same near a rate at which there was trouble.
const PROBE_NEAR_TROUBLE_US: i64 = 600_000_000;
const NEAR_TROUBLE: f64 = 0.9;
/// How long nothing is sent after trouble, when the server names no time.
const REST_US: i64 = 5_000_000;

/// The pace at which one host is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Gait {
    rule: Politeness,
    per_second: f64,
    /// The rate at which there was trouble last.
    trouble_at: Option<f64>,
    next: Option<LimitTime>,
    /// Since when all is well.
    well_since: Option<LimitTime>,
    slowed: Option<LimitTime>,
    usual_us: f64,
    lately_us: f64,
}

impl Gait {
    /// Begins as the definition says, or as was learnt before: never quicker than either.
    pub fn new(rule: Politeness, learnt_per_second: Option<f64>) -> Self {
        let start = rule.start_per_second;
        let learnt = learnt_per_second.filter(|rate| rate.is_finite());
        let per_second = learnt
            .unwrap_or(start)
            .clamp(rule.least_per_second(), rule.most_per_second);
        Self {
            rule,
            per_second,
            trouble_at: None,
            next: None,
            well_since: None,
            slowed: None,
            usual_us: 0.0,
            lately_us: 0.0,
        }
    }

    pub const fn per_second(&self) -> f64 {
        self.per_second
    }

    /// When the next call may be sent, if that is still to come.
    pub fn next(&self, now: LimitTime) -> Option<LimitTime> {
        self.next.filter(|next| *next > now)
    }

    pub fn sent(&mut self, now: LimitTime) {
        let due = self
            .next
            .unwrap_or(now)
            .max(now.plus_us(-self.interval_us()));
        self.next = Some(due.plus_us(self.interval_us()));
    }

    fn interval_us(&self) -> i64 {
        (1e6 / self.per_second) as i64
    }

    /// An answer came after so long. Says whether the rate is another one now.
    pub fn heard(&mut self, now: LimitTime, latency_us: i64, bearing: Bearing) -> bool {
        match bearing {
            Bearing::Unknown => false,
            Bearing::Badly => self.trouble(now),
            Bearing::Well if self.takes_ever_longer(latency_us) => self.slow_down(now),
            Bearing::Well => self.try_a_little_more(now),
        }
    }

    fn trouble(&mut self, now: LimitTime) -> bool {
        self.well_since = Some(now);
        self.next = self.next.max(Some(now.plus_us(REST_US)));
        // Calls that were under way meet the same trouble: it counts once.
        if self.is_just_slowed(now) {
            return false;
        }
        self.trouble_at = Some(self.per_second);
        self.change(now, AFTER_TROUBLE);
        true
    }

    fn slow_down(&mut self, now: LimitTime) -> bool {
        self.well_since = Some(now);
        if self.is_just_slowed(now) {
            return false;
        }
        self.change(now, AFTER_DELAY);
        // What is slow now is usual from here on, or one would slow down for ever.
        self.usual_us = self.lately_us;
        true
    }

    fn is_just_slowed(&self, now: LimitTime) -> bool {
        let span_us = REST_US.max(2 * self.interval_us());
        self.slowed
            .is_some_and(|slowed| now.since_us(slowed) < span_us)
    }

    fn change(&mut self, now: LimitTime, factor: f64) {
        self.per_second = (self.per_second * factor).max(self.rule.least_per_second());
        self.slowed = Some(now);
    }

    fn try_a_little_more(&mut self, now: LimitTime) -> bool {
        let since = *self.well_since.get_or_insert(now);
        let more = (self.per_second * PROBE_FACTOR).min(self.rule.most_per_second);
        let is_near = self
            .trouble_at
            .is_some_and(|trouble| more > trouble * NEAR_TROUBLE);
        let wait_us = if is_near {
            PROBE_NEAR_TROUBLE_US
        } else {
            PROBE_EVERY_US
        };
        if more <= self.per_second || now.since_us(since) < wait_us {
            return false;
        }
        self.per_second = more;
        self.well_since = Some(now);
        true
    }

    fn takes_ever_longer(&mut self, latency_us: i64) -> bool {
        let latency = latency_us.max(1) as f64;
        if self.usual_us == 0.0 {
            (self.usual_us, self.lately_us) = (latency, latency);
        }
        self.usual_us += (latency - self.usual_us) / 200.0;
        self.lately_us += (latency - self.lately_us) / 10.0;
        // Below a few hundredths of a second it is our own machine that is busy.
        self.lately_us > 50_000.0 && self.lately_us > DELAY_FACTOR * self.usual_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND_US: i64 = 1_000_000;

    /// A host that refuses whoever asks more often than so many times in ten seconds; how often it
    /// had to, and how many calls it answered, in an hour.
    fn hour(limit_per_second: f64, rule: Politeness, learnt: Option<f64>) -> (u32, u32, f64) {
        let mut gait = Gait::new(rule, learnt);
        let mut now = LimitTime(0);
        let (mut refused, mut answered) = (0, 0);
        let mut recent: std::collections::VecDeque<LimitTime> = std::collections::VecDeque::new();
        while now.0 < 3_600 * SECOND_US {
            if let Some(next) = gait.next(now) {
                now = next;
                continue;
            }
            gait.sent(now);
            recent.retain(|at| now.since_us(*at) < 10 * SECOND_US);
            let is_refused = recent.len() as f64 >= limit_per_second * 10.0;
            let bearing = if is_refused {
                refused += 1;
                Bearing::Badly
            } else {
                recent.push_back(now);
                answered += 1;
                Bearing::Well
            };
            gait.heard(now.plus_us(20_000), 20_000, bearing);
        }
        (refused, answered, gait.per_second())
    }

    proptest! {
        #[test]
        fn a_limit_that_nobody_told_of_is_found_and_seldom_met(
            limit in 0.5_f64..15.0,
            start in 0.1_f64..3.0,
        ) {
            let rule = Politeness { start_per_second: start, most_per_second: 20.0 };
            let (refused, answered, rate) = hour(limit, rule, None);
            prop_assert!(refused <= 12, "{refused} refusals");
            prop_assert!(f64::from(answered) > 0.45 * limit * 3_600.0 || start < limit / 8.0,
                "{answered} of {}", limit * 3_600.0);
            prop_assert!(rate <= limit * 1.25, "{rate} of {limit}");
        }

        #[test]
        fn no_answer_makes_it_quicker_than_it_may_be(
            answers in prop::collection::vec((0_i64..100_000_000, 0_i64..10_000_000, 0_u8..3), 1..200),
        ) {
            let rule = Politeness::default();
            let mut gait = Gait::new(rule, Some(f64::NAN));
            let mut now = LimitTime(0);
            for (pause_us, latency_us, bearing) in answers {
                now = now.plus_us(pause_us);
                gait.sent(now);
                let bearing = [Bearing::Well, Bearing::Badly, Bearing::Unknown][usize::from(bearing)];
                gait.heard(now, latency_us, bearing);
                prop_assert!(gait.per_second() <= rule.most_per_second);
                prop_assert!(gait.per_second() >= LEAST_PER_SECOND);
            }
        }
    }

    #[test]
    fn what_was_learnt_spares_the_next_run_the_refusals() {
        let rule = Politeness {
            start_per_second: 10.0,
            most_per_second: 20.0,
        };
        let (refused, _, rate) = hour(2.0, rule, None);
        assert!(refused > 0);
        let (again, answered, _) = hour(2.0, rule, Some(rate));
        println!("{refused} refusals, then {again}, with {answered} answers");
        assert!(again < refused && f64::from(answered) > 0.5 * 7_200.0);
    }

    #[test]
    fn a_pause_that_is_asked_for_is_kept_however_long() {
        for pause_s in [0.01, 2.5, 3_600.0] {
            let rule = Politeness::default().with_pause(pause_s);
            let mut gait = Gait::new(rule, Some(20.0));
            let mut now = LimitTime(0);
            gait.sent(now);
            for _ in 0..20 {
                let next = gait.next(now).expect("a pause");
                let pause_us = (pause_s.max(0.05) * 1e6) as i64;
                assert!(next.since_us(now) >= pause_us - 1, "{pause_s}");
                now = next;
                gait.sent(now);
                gait.heard(now, 1_000, Bearing::Well);
            }
            gait.heard(now, 1_000, Bearing::Badly);
            assert!(gait.per_second() <= 1.0 / pause_s);
        }
    }

    #[test]
    fn answers_that_take_ever_longer_slow_down() {
        let mut gait = Gait::new(Politeness::default(), None);
        for second in 0..100 {
            gait.heard(LimitTime(second * SECOND_US), 40_000, Bearing::Well);
        }
        let before = gait.per_second();
        for second in 100..130 {
            gait.heard(LimitTime(second * SECOND_US), 900_000, Bearing::Well);
        }
        assert!(
            gait.per_second() < before,
            "{} of {before}",
            gait.per_second()
        );
    }
}
