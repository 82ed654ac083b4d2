//! How long calls take that budgets let through: what each counter gives by when. Pure.

use super::Estimate;
use kittiwake_model::{LimitTime, Name, Unit};
use serde::Serialize;

/// Nothing is reckoned further ahead than this.
const HORIZON_US: i64 = 100 * 365 * 86_400_000_000;

/// One counter of a budget: one credential's, or everybody's.
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// Units per window, after the reserve.
    pub limit: u64,
    /// Units of the present window that are spent.
    pub used: u64,
    /// When the present window ends.
    pub resets: LimitTime,
    pub length_us: i64,
    /// Nothing is given before.
    pub blocked_until: Option<LimitTime>,
    /// Whether what a window allows is spread over it.
    pub is_even: bool,
}

impl Counter {
    /// Units that can have been spent by a time.
    fn given_by(&self, from: LimitTime, then: LimitTime) -> f64 {
        let from = self.blocked_until.unwrap_or(from).max(from);
        if then < from {
            return 0.0;
        }
        let (limit, length_us) = (self.limit as f64, self.length_us.max(1));
        let mut given = 0.0;
        let mut begins = from;
        if from < self.resets {
            let left = self.limit.saturating_sub(self.used) as f64;
            if then < self.resets {
                let part = share(then.since_us(from), self.resets.since_us(from));
                return left * if self.is_even { part } else { 1.0 };
            }
            given = left;
            begins = self.resets;
        }
        let since_us = then.since_us(begins).max(0);
        let whole = since_us / length_us;
        let part = share(since_us % length_us, length_us);
        given += whole as f64 * limit;
        given + limit * if self.is_even { part } else { 1.0 }
    }
}

fn share(part_us: i64, whole_us: i64) -> f64 {
    (part_us as f64 / whole_us.max(1) as f64).clamp(0.0, 1.0)
}

/// One budget, with all counters that calls can be charged to, and what they are to take of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowance {
    pub budget: Name,
    pub unit: Unit,
    /// Units needed.
    pub units: Estimate,
    /// Limits that are counted at once have no counters, but this many places.
    pub places: Option<u64>,
    pub counters: Vec<Counter>,
}

impl Allowance {
    /// When so many units have been given; `None` if never.
    fn seconds(&self, units: f64, now: LimitTime) -> Option<f64> {
        if units <= 0.0 {
            return Some(0.0);
        }
        let given_by = |then: LimitTime| -> f64 {
            let counters = self.counters.iter();
            counters.map(|counter| counter.given_by(now, then)).sum()
        };
        // What is given never shrinks, so the first time at which it is enough can be halved out.
        let (mut short_us, mut enough_us) = (-1, 1_000_000);
        while given_by(now.plus_us(enough_us)) < units {
            short_us = enough_us;
            enough_us *= 2;
            if enough_us > HORIZON_US {
                return None;
            }
        }
        while enough_us - short_us > 1 {
            let middle_us = short_us + (enough_us - short_us) / 2;
            if given_by(now.plus_us(middle_us)) < units {
                short_us = middle_us;
            } else {
                enough_us = middle_us;
            }
        }
        Some(enough_us as f64 / 1e6)
    }
}

/// How quickly calls are answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wire {
    pub latency_ms: f64,
    pub concurrency: u64,
}

impl Wire {
    fn seconds(&self, calls: f64, places: Option<u64>) -> f64 {
        let places = places.unwrap_or(self.concurrency).min(self.concurrency);
        calls * self.latency_ms / 1e3 / places.max(1) as f64
    }
}

/// What one budget makes of the duration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BudgetForecast {
    pub budget: Name,
    pub unit: Unit,
    pub units: Estimate,
    /// Units that one window gives, all credentials together; nothing where only calls at once
    /// count.
    pub limit: Option<u64>,
    pub window_seconds: Option<f64>,
    /// Units of it that are spent now.
    pub used: u64,
    /// How long this budget alone lets the crawl take; nothing if it never lets it end.
    pub seconds: Span,
}

/// An interval of time. What never ends has no number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Span {
    pub low: Option<f64>,
    pub likely: Option<f64>,
    pub high: Option<f64>,
}

impl Span {
    fn of(mut seconds: impl FnMut(fn(&Estimate) -> f64) -> Option<f64>) -> Self {
        Self {
            low: seconds(|it| it.low),
            likely: seconds(|it| it.likely),
            high: seconds(|it| it.high),
        }
    }

    /// The later of two, bound by bound.
    fn later(self, other: Self) -> Self {
        let later = |one: Option<f64>, two: Option<f64>| Some(one?.max(two?));
        Self {
            low: later(self.low, other.low),
            likely: later(self.likely, other.likely),
            high: later(self.high, other.high),
        }
    }

    /// For comparing: never is later than any time.
    fn likely_or_never(&self) -> f64 {
        self.likely.unwrap_or(f64::INFINITY)
    }
}

/// How long it all takes, and what decides it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Duration {
    pub seconds: Span,
    /// The budget that decides; none if the time that answers take does.
    pub bottleneck: Option<Name>,
    pub budgets: Vec<BudgetForecast>,
}

/// Reckons how long calls take, budget by budget: whichever takes longest decides.
pub fn duration(
    calls: &Estimate,
    allowances: &[Allowance],
    wire: &Wire,
    now: LimitTime,
) -> Duration {
    let mut seconds = Span::of(|bound| Some(wire.seconds(bound(calls), None)));
    let mut slowest = (seconds.likely_or_never(), None);
    let mut budgets = Vec::with_capacity(allowances.len());
    for allowance in allowances {
        let own = match allowance.places {
            Some(places) => Span::of(|bound| Some(wire.seconds(bound(calls), Some(places)))),
            None => Span::of(|bound| allowance.seconds(bound(&allowance.units), now)),
        };
        if own.likely_or_never() > slowest.0 {
            slowest = (own.likely_or_never(), Some(allowance.budget.clone()));
        }
        seconds = seconds.later(own);
        let counters = &allowance.counters;
        budgets.push(BudgetForecast {
            budget: allowance.budget.clone(),
            unit: allowance.unit.clone(),
            units: allowance.units,
            limit: allowance
                .places
                .is_none()
                .then(|| counters.iter().map(|counter| counter.limit).sum()),
            window_seconds: counters
                .first()
                .map(|counter| counter.length_us as f64 / 1e6),
            used: counters.iter().map(|counter| counter.used).sum(),
            seconds: own,
        });
    }
    Duration {
        seconds,
        bottleneck: slowest.1,
        budgets,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: LimitTime = LimitTime(1_000_000_000_000);

    fn counters() -> impl Strategy<Value = Counter> {
        (
            1_u64..2_000,
            0_u64..2_500,
            1_i64..900_000_000,
            1_000_000_i64..900_000_000,
            prop::option::of(0_i64..60_000_000),
            any::<bool>(),
        )
            .prop_map(
                |(limit, used, left_us, length_us, blocked_us, is_even)| Counter {
                    limit,
                    used,
                    resets: NOW.plus_us(left_us.min(length_us)),
                    length_us,
                    blocked_until: blocked_us.map(|us| NOW.plus_us(us)),
                    is_even,
                },
            )
    }

    fn allowances() -> impl Strategy<Value = Allowance> {
        (prop::collection::vec(counters(), 1..4), 0.0..1e5, 1.0..3.0).prop_map(
            |(counters, units, spread)| Allowance {
                budget: format!("budget {units}").into(),
                unit: Unit::Calls,
                units: Estimate {
                    low: units / spread,
                    likely: units,
                    high: units * spread,
                },
                places: None,
                counters,
            },
        )
    }

    fn wire() -> impl Strategy<Value = Wire> {
        (1.0..2_000.0, 1_u64..64).prop_map(|(latency_ms, concurrency)| Wire {
            latency_ms,
            concurrency,
        })
    }

    proptest! {
        #[test]
        fn another_credential_never_makes_it_slower(
            allowance in allowances(),
            more in counters(),
            wire in wire(),
        ) {
            let calls = allowance.units;
            let alone = duration(&calls, std::slice::from_ref(&allowance), &wire, NOW);
            let mut helped = allowance;
            helped.counters.push(more);
            let together = duration(&calls, &[helped], &wire, NOW);
            prop_assert!(together.seconds.likely <= alone.seconds.likely);
            prop_assert!(together.seconds.high <= alone.seconds.high);
        }

        #[test]
        fn more_units_are_never_had_sooner(
            allowance in allowances(),
            more in 0.0..1e5,
            wire in wire(),
        ) {
            let calls = allowance.units;
            let before = duration(&calls, std::slice::from_ref(&allowance), &wire, NOW);
            let mut longer = allowance;
            longer.units.likely += more;
            let after = duration(&calls, &[longer], &wire, NOW);
            prop_assert!(after.seconds.likely >= before.seconds.likely);
        }

        #[test]
        fn the_bottleneck_is_the_budget_that_decides(
            allowances in prop::collection::vec(allowances(), 1..5),
            wire in wire(),
        ) {
            let calls = Estimate::exact(allowances[0].units.likely);
            let all = duration(&calls, &allowances, &wire, NOW);
            prop_assert!(all.seconds.low <= all.seconds.likely);
            prop_assert!(all.seconds.likely <= all.seconds.high);
            let Some(name) = &all.bottleneck else {
                let answers = wire.seconds(calls.likely, None);
                prop_assert_eq!(all.seconds.likely, Some(answers));
                return Ok(());
            };
            let deciding = all.budgets.iter().find(|it| it.budget == *name).unwrap();
            prop_assert_eq!(deciding.seconds.likely, all.seconds.likely);
            // Without it, the rest would be through sooner.
            let others: Vec<_> = allowances.iter().filter(|it| it.budget != *name).cloned().collect();
            let rest = duration(&calls, &others, &wire, NOW);
            prop_assert!(rest.seconds.likely < all.seconds.likely);
        }
    }

    fn counter(is_even: bool) -> Counter {
        Counter {
            limit: 300,
            used: 200,
            resets: NOW.plus_us(100_000_000),
            length_us: 300_000_000,
            blocked_until: None,
            is_even,
        }
    }

    fn seconds(counter: Counter, units: f64) -> Option<f64> {
        let allowance = Allowance {
            budget: "ip".into(),
            unit: Unit::Calls,
            units: Estimate::exact(units),
            places: None,
            counters: vec![counter],
        };
        allowance.seconds(units, NOW)
    }

    #[test]
    fn what_is_left_goes_first_and_then_window_after_window() {
        // 100 are left for 100 s, then 300 every 300 s.
        assert_eq!(seconds(counter(true), 50.0), Some(50.0));
        assert_eq!(seconds(counter(true), 250.0), Some(250.0));
        assert_eq!(seconds(counter(false), 100.0), Some(0.0));
        assert_eq!(seconds(counter(false), 101.0), Some(100.0));
        assert_eq!(seconds(counter(false), 401.0), Some(400.0));
        let blocked = Counter {
            blocked_until: Some(NOW.plus_us(30_000_000)),
            ..counter(false)
        };
        assert_eq!(seconds(blocked, 1.0), Some(30.0));
        let shut = Counter {
            limit: 0,
            ..counter(false)
        };
        assert_eq!(seconds(shut, 1.0), None);
    }
}
