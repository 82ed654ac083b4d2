//! The default: visits where posts are expected to have waited the most.

mod memory;

use super::rhythm::HOURS;
use super::shared::{FEATURES, WEIGHTS_FIRST};
use super::{DAY_US, Facts, HOUR_US, Policy, Shared, State, Visit, days_between, tag};
use kittiwake_model::WorldTime;
use memory::{BURST_DAYS, Memory};

/// What `adaptive` strives for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// From 1, the least mean delay, down to 0, the most posts within an hour.
    pub patience: f64,
    /// Whether a post weighs what it is expected to spread.
    pub is_hot: bool,
    /// How many days of waiting a lost post is worth.
    pub loss_days: f64,
    pub tune: [f64; 16],
}

impl Default for Objective {
    fn default() -> Self {
        Self {
            patience: 1.0,
            is_hot: false,
            loss_days: 100.0,
            tune: [
                10.0, 60.0, 1.0, 40.0, 3.0, 0.7, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
            ],
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Adaptive {
    page: f64,
    objective: Objective,
}

/// What is believed of one subject at its last visit.
#[derive(Debug)]
struct Belief {
    since: WorldTime,
    memory: Memory,
    /// By hour of the day, of mean 1.
    hours: [f32; HOURS],
    slow: f64,
    fast: f64,
}

impl Belief {
    /// The rate that does not depend on bursts, in posts a day.
    fn base(&self, shared: &Shared) -> f64 {
        let weights = &shared.weights;
        let base =
            weights[0] * shared.mean_rate() + weights[1] * self.slow + weights[2] * self.fast;
        base.max(1e-9)
    }

    /// The features, integrated from the last visit to a time.
    fn features(&self, shared: &Shared, from: WorldTime, to: WorldTime) -> [f64; FEATURES] {
        let weight = shared.week.weight_days(&self.hours, from, to);
        let (begun, ended) = (days_between(self.since, from), days_between(self.since, to));
        let burst = |which: usize| {
            let days = BURST_DAYS[which];
            let posts = f64::from(self.memory.bursts[which]);
            if posts < 1e-4 {
                return 0.0;
            }
            posts * ((-begun / days).exp() - (-ended / days).exp())
        };
        [
            weight * shared.mean_rate(),
            weight * self.slow,
            weight * self.fast,
            burst(0),
            burst(1),
            burst(2),
        ]
    }

    fn expected(&self, shared: &Shared, to: WorldTime) -> f64 {
        let features = self.features(shared, self.since, to);
        features
            .iter()
            .zip(&shared.weights)
            .map(|(feature, weight)| feature * weight)
            .sum()
    }
}

impl Adaptive {
    pub const fn new(page: usize, objective: Objective) -> Self {
        Self {
            page: page as f64,
            objective,
        }
    }

    fn tune(&self, which: usize) -> f64 {
        self.objective.tune[which]
    }

    fn fast_days(&self, shared: &Shared) -> f64 {
        self.tune(0).max(shared.gap_days)
    }

    fn slow_days(&self, shared: &Shared) -> f64 {
        self.tune(1).max(4.0 * shared.gap_days)
    }

    fn belief(&self, shared: &Shared, state: &State, now: WorldTime) -> Belief {
        let prior_days = self.tune(2);
        let memory = Memory::read(state);
        let slow = rate(memory.slow, prior_days, shared.mean_rate());
        let fast = rate(memory.fast, prior_days, slow);
        Belief {
            since: state.since().unwrap_or(now),
            hours: memory.hours_of_day(&shared.day, self.tune(3) as f32),
            memory,
            slow,
            fast,
        }
    }

    /// How busy the next hours are, against the mean.
    fn ahead(&self, shared: &Shared, belief: &Belief, now: WorldTime) -> f64 {
        let hours = self.tune(4);
        let until = now.plus_us((hours * HOUR_US as f64) as i64);
        let weight = shared.week.weight_days(&belief.hours, now, until) * 24.0 / hours;
        weight.max(0.02).powf(self.tune(5))
    }

    /// What a visit is worth at a time.
    fn worth(&self, shared: &Shared, belief: &Belief, now: WorldTime) -> f64 {
        let expected = belief.expected(shared, now);
        let forward = belief.base(shared) * self.ahead(shared, belief, now);
        let waiting = expected.min(self.page);
        let q = self.objective.patience;
        let forward = if q == 1.0 { forward } else { forward.powf(q) };
        waiting * waiting / (2.0 * forward)
            + self.objective.loss_days * self.page * self.overflow(&belief.memory, expected)
    }

    /// The first hour at which a visit is worth the price. Worth rises and falls with the day, so
    /// that hours are tried one by one, from the earliest day on at which it can be.
    fn first_hour_worth(
        &self,
        shared: &Shared,
        belief: &Belief,
        price: f64,
        now: WorldTime,
    ) -> WorldTime {
        const HOURS_MAX: usize = 14 * HOURS;
        let base = belief.base(shared);
        let exponent = self.tune(5);
        let ahead: [f64; HOURS] = std::array::from_fn(|hour| {
            let next = (0..3)
                .map(|step| belief.hours[(hour + step) % HOURS])
                .sum::<f32>()
                / 3.0;
            f64::from(next).max(0.02).powf(exponent)
        });
        let quietest = ahead.iter().copied().fold(f64::INFINITY, f64::min);
        let from = now.max(belief.since);
        let expected = belief.expected(shared, from);
        let needed = (2.0 * base.powf(self.objective.patience) * quietest * price)
            .sqrt()
            .min(self.page);
        // Twice the usual pace is the quickest that a day can be.
        let skipped_days = ((needed - expected) / base / 2.0 - 1.0)
            .clamp(0.0, 4_000.0)
            .floor();
        let start_us = from.plus_us(skipped_days as i64 * DAY_US).micros();
        let mut at = WorldTime(
            start_us
                .div_euclid(HOUR_US)
                .saturating_add(1)
                .saturating_mul(HOUR_US),
        );
        let mut expected = belief.expected(shared, at);
        let mut hour = super::rhythm::hour_of_week(at);
        let q = self.objective.patience;
        let forward = base.powf(q);
        for _ in 0..HOURS_MAX {
            let waiting = expected.min(self.page);
            let worth = waiting * waiting / (2.0 * forward * ahead[hour % HOURS].powf(q))
                + self.objective.loss_days * self.page * self.overflow(&belief.memory, expected);
            if worth >= price {
                return at;
            }
            expected += base * f64::from(shared.week.weight_of(&belief.hours, hour)) / HOURS as f64;
            hour = (hour + 1) % super::rhythm::WEEK_HOURS;
            at = at.plus_us(HOUR_US);
        }
        at
    }

    /// The probability that more than a page waits, when `expected` do: a gamma tail.
    fn overflow(&self, memory: &Memory, expected: f64) -> f64 {
        if expected <= self.page / 50.0 {
            return 0.0;
        }
        let shape = f64::from(memory.fast.posts + 0.2).min(4.0);
        let ninth = 1.0 / (9.0 * shape);
        let z = ((self.page / expected).cbrt() - (1.0 - ninth)) / ninth.sqrt();
        upper_tail(z)
    }
}

fn rate(watched: memory::Fading, prior_days: f64, prior: f64) -> f64 {
    (f64::from(watched.posts) + prior_days * prior) / (f64::from(watched.days) + prior_days)
}

/// The upper tail of the normal distribution, to 10⁻⁷ (Abramowitz and Stegun 26.2.17).
fn upper_tail(z: f64) -> f64 {
    if z > 8.0 {
        return 0.0;
    }
    if z < 0.0 {
        return 1.0 - upper_tail(-z);
    }
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let series = t
        * (0.319_381_530
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * series
}

impl Policy for Adaptive {
    fn name(&self) -> &'static str {
        "adaptive"
    }

    fn tag(&self) -> u8 {
        tag::ADAPTIVE
    }

    fn meet(&self, _shared: &Shared, _facts: &Facts, now: WorldTime) -> State {
        let mut state = State::default();
        state.begin(self.tag(), now, false);
        state
    }

    fn observe(&self, shared: &mut Shared, state: &mut State, visit: &Visit<'_>) {
        let belief = self.belief(shared, state, visit.at);
        let oldest = visit.oldest();
        let from = match oldest {
            Some(oldest) if visit.is_full || state.visited().is_none() => {
                if visit.is_full {
                    oldest.max(belief.since)
                } else {
                    oldest.min(belief.since)
                }
            }
            _ => belief.since,
        }
        .min(visit.at);
        let elapsed = days_between(belief.since, visit.at);
        let count = visit.posts.len() as f64;
        if state.visited().is_some() && elapsed > 0.0 {
            let features = belief.features(shared, belief.since, visit.at);
            let share = days_between(from, visit.at) / elapsed;
            let features = features.map(|feature| feature * share);
            let expected: f64 = features
                .iter()
                .zip(&shared.weights)
                .map(|(f, w)| f * w)
                .sum();
            let expected = expected.max(1e-3);
            shared
                .forecast
                .add(&features, count, expected * (1.0 + expected * self.tune(6)));
            shared.visited_after(elapsed);
        }
        let weight = shared.week.weight_days(&belief.hours, from, visit.at);
        shared.watched(count, days_between(from, visit.at));
        for post in visit.posts {
            shared.posted(*post);
        }
        let mut memory = belief.memory;
        let span = days_between(from, visit.at);
        memory
            .fast
            .take_in(self.fast_days(shared), elapsed, span, weight, visit);
        memory
            .slow
            .take_in(self.slow_days(shared), elapsed, span, weight, visit);
        memory.burst(elapsed, visit);
        memory.count_hours(visit.posts);
        memory.write(state, visit.at);
    }

    fn index(&self, shared: &Shared, state: &State, now: WorldTime) -> f64 {
        let belief = self.belief(shared, state, now);
        self.worth(shared, &belief, now)
    }

    fn due(&self, shared: &Shared, state: &State, price: f64, now: WorldTime) -> WorldTime {
        let belief = self.belief(shared, state, now);
        if self.worth(shared, &belief, now) >= price {
            return now.max(belief.since.plus_us(1));
        }
        self.first_hour_worth(shared, &belief, price, now)
    }

    fn epoch(&self, shared: &mut Shared, _now: WorldTime) {
        shared.learn_rhythm();
        shared.weights = shared.forecast.solve(&WEIGHTS_FIRST, 0.01, true);
        shared.forecast.decay(0.998);
    }
}
