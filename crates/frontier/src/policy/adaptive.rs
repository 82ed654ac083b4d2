//! The default: visits where posts are expected to have waited the most.
//!
//! A visit now is worth **min(N, c)²/(2·λ) + L·c·(P(N > c) + (√max(N/c, 1) − 1)/5)**, where N
//! posts are expected to wait, a call brings c of them, λ is the pace of the next hours and L what a
//! lost post costs. The first part is the renewal argument of Sia, Cho and Cho for a pace that changes:
//! it is best to come when N ≥ √(2·price·λ), so to wait while somebody is busy, and to sweep up when
//! they are about to go quiet. The second part comes before answers overflow, and is nothing elsewhere;
//! where they must overflow, because calls do not suffice, it lets everybody have a turn.
//!
//! - N is the integral of a forecast over the time since the visit: the population's mean rate, the
//!   subject's own rate over two months and over ten days, each along the hours of the subject's day
//!   and of the population's week; and what is left of bursts over a day, six hours and an hour.
//! - How these six are weighed is learnt by regression over all visits of the whole population.
//! - Rates are counts over exposure, both fading, held back by the population's mean; a full answer
//!   counts only for the time that it covers, so that what was lost does not look like silence.
//! - Before the first visit the rate comes from the counts on the subject's card, by a regression
//!   over those who were visited already.

mod cards;
mod memory;

use super::rhythm::{HOURS, WEEK_HOURS, hour_of_week};
use super::shared::{FEATURES, WEIGHTS_FIRST};
use super::{DAY_US, Facts, HOUR_US, Policy, Shared, State, Visit, days_between, tag};
use cards::{Card, Write};
use kittiwake_model::WorldTime;
use memory::{BURSTS, Fading, Memory, Seen, bursts_left};

/// How long rates are remembered, in days, at least; and in mean gaps between visits, at least.
const FAST_DAYS: f64 = 10.0;
const FAST_GAPS: f64 = 1.0;
const SLOW_DAYS: f64 = 60.0;
const SLOW_GAPS: f64 = 4.0;
/// How many days of what is usual are mixed into a rate.
const PRIOR_DAYS: f64 = 1.0;
/// How many posts of the population's day are mixed into a subject's.
const PRIOR_POSTS: f32 = 25.0;
/// The same where it is asked whether a post is one of another habit: what the subject itself has shown says more.
const PRIOR_POSTS_OF_CHANGE: f32 = 4.0;
/// How far the pace looks ahead. Its root is taken, because the next visit is as far away as it
/// likes and what comes later is of the mean pace again.
const AHEAD_HOURS: usize = 3;
/// The pace of the quietest hours, against the mean, at least.
const AHEAD_MIN: f64 = 0.02;
/// Counts vary by more than chance: N·(1 + N/2).
const EXCESS_VARIANCE: f64 = 0.5;
/// How a page is worth more when more than one waits, by the root of how many. What is beyond a page
/// is lost whenever the visit is made, so that it need not be much; but if it were nothing, all who
/// overflow would be worth the same, and of these the busiest and those who were never visited would
/// wait forever where calls do not suffice.
const BEYOND_PART: f64 = 0.2;
/// So much of a page that is lost for sure is worth a call whatever the price.
const SURE_PART: f64 = 0.75;
/// Below this part of a page nothing overflows.
const OVERFLOW_PART: f64 = 0.02;
/// What is kept of the regression, every few hours: half of it is gone after three months.
const KEPT: f64 = 0.998;
/// How firmly the weights are held near the first ones: as if so many posts had said so.
const HELD: f64 = 5.0;
/// A full answer tells of the hours of the day only if it covers as much: otherwise the hours before
/// a visit would look like the busy ones.
const PROFILE_DAYS: f64 = 1.0;
/// How many of the features are rates; the others are bursts.
const STEADY: usize = 3;
/// No pace is slower, in posts a day: a visit to somebody silent is worth little, not nothing.
const PACE_MIN: f64 = 1e-9;

pub(super) use cards::WEIGHTS_FIRST as CARD_WEIGHTS_FIRST;

/// What `adaptive` strives for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// From 1, the least mean delay, down to 0, the most posts within an hour.
    pub patience: f64,
    /// Whether a post weighs what posts of its author are expected to spread.
    pub is_hot: bool,
    /// How many days of waiting a lost post is worth.
    pub loss_days: f64,
}

impl Default for Objective {
    fn default() -> Self {
        Self {
            patience: 1.0,
            is_hot: false,
            loss_days: 100.0,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Adaptive {
    page: f64,
    objective: Objective,
}

/// What is believed of one subject since its last visit.
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
    /// The mean pace without bursts, in posts a day.
    fn pace(&self, shared: &Shared) -> f64 {
        self.steady_pace(shared).max(PACE_MIN)
    }

    fn steady_pace(&self, shared: &Shared) -> f64 {
        let weights = &shared.weights;
        let usual = weights[0] * shared.mean_rate();
        usual + weights[1] * self.slow + weights[2] * self.fast
    }

    /// The features of the forecast, integrated from the last visit to a time.
    fn features(&self, shared: &Shared, to: WorldTime) -> [f64; FEATURES] {
        let weight = shared.week.weight_days(&self.hours, self.since, to);
        let bursts = self.of_bursts(days_between(self.since, to));
        [
            weight * shared.mean_rate(),
            weight * self.slow,
            weight * self.fast,
            bursts[0],
            bursts[1],
            bursts[2],
        ]
    }

    /// What bursts that were felt at the last visit have brought since.
    fn of_bursts(&self, elapsed_days: f64) -> [f64; BURSTS] {
        let left = bursts_left(elapsed_days);
        std::array::from_fn(|which| f64::from(self.memory.bursts[which]) * (1.0 - left[which]))
    }

    /// How many posts are expected to wait: the features as they are weighed.
    fn expected(&self, shared: &Shared, to: WorldTime) -> f64 {
        let weight = shared.week.weight_days(&self.hours, self.since, to);
        let steady = weight * self.steady_pace(shared);
        let bursts = self.of_bursts(days_between(self.since, to));
        let pairs = bursts.iter().zip(&shared.weights[STEADY..]);
        steady + pairs.map(|(posts, weight)| posts * weight).sum::<f64>()
    }
}

fn weighed(features: &[f64; FEATURES], weights: &[f64; FEATURES]) -> f64 {
    let pairs = features.iter().zip(weights);
    pairs.map(|(feature, weight)| feature * weight).sum()
}

impl Adaptive {
    pub const fn new(page: usize, objective: Objective) -> Self {
        Self {
            page: page as f64,
            objective,
        }
    }

    fn belief(shared: &Shared, state: &State, now: WorldTime) -> Belief {
        let memory = Memory::read(state);
        let usual = Card::read(state).map_or_else(
            || shared.mean_rate(),
            |card| card.rate(&shared.card_weights),
        );
        let slow = memory.slow.rate(PRIOR_DAYS, usual);
        Belief {
            since: state.since().unwrap_or(now),
            hours: memory.hours_of_day(&shared.day, PRIOR_POSTS),
            fast: memory.fast.rate(PRIOR_DAYS, slow),
            slow,
            memory,
        }
    }

    /// What a visit is worth at a time.
    fn worth(&self, shared: &Shared, belief: &Belief, now: WorldTime) -> f64 {
        let until = now.plus_us(AHEAD_HOURS as i64 * HOUR_US);
        let ahead = shared.week.weight_days(&belief.hours, now, until);
        let ahead = ahead * HOURS as f64 / AHEAD_HOURS as f64;
        let pace = self.pace_ahead(belief.pace(shared), ahead);
        let expected = belief.expected(shared, now);
        self.worth_of(&belief.memory, expected, pace)
    }

    fn worth_of(&self, memory: &Memory, expected: f64, pace: f64) -> f64 {
        let waiting = expected.min(self.page);
        let turn = BEYOND_PART * ((expected / self.page).max(1.0).sqrt() - 1.0);
        let lost = self.page * (self.overflow(memory, expected) + turn);
        let worth = waiting * waiting / (2.0 * pace) + self.objective.loss_days * lost;
        if self.objective.is_hot {
            return worth * memory.spread();
        }
        worth
    }

    /// The pace of the next hours, if they are so busy against the mean. The less patience, the less a
    /// quick pace is a reason to wait.
    fn pace_ahead(&self, pace: f64, ahead: f64) -> f64 {
        let pace = pace * ahead.max(AHEAD_MIN).sqrt();
        if self.objective.patience >= 1.0 {
            return pace;
        }
        pace.powf(self.objective.patience)
    }

    /// The first hour at which a visit is worth the price. Worth rises and falls with the day, so
    /// that hours are tried one by one, from the first day on at which it can be.
    fn first_hour_worth(
        &self,
        shared: &Shared,
        belief: &Belief,
        price: f64,
        now: WorldTime,
    ) -> WorldTime {
        const DAYS_MAX: usize = 14;
        const HOURS_MAX: usize = 14 * HOURS;
        let pace = belief.pace(shared);
        let ahead: [f32; HOURS] = std::array::from_fn(|hour| {
            let next = (0..AHEAD_HOURS).map(|step| belief.hours[(hour + step) % HOURS]);
            next.sum::<f32>() / AHEAD_HOURS as f32
        });
        let pace_at = |ahead: f32| self.pace_ahead(pace, f64::from(ahead));
        let quietest = ahead.iter().copied().fold(f32::INFINITY, f32::min);
        let needed = self.needed(belief, pace_at(quietest), price);
        let mut at = Self::first_day_worth(shared, belief, needed, now);
        let mut expected = belief.expected(shared, at);
        let mut hour = hour_of_week(at);
        for _ in 0..DAYS_MAX {
            let day = pace * shared.week.weight_of_day(hour / HOURS);
            if expected + day >= needed {
                break;
            }
            expected += day;
            hour = (hour + HOURS) % WEEK_HOURS;
            at = at.plus_us(DAY_US);
        }
        for _ in 0..HOURS_MAX {
            let is_worth = expected >= needed && {
                let pace = pace_at(ahead[hour % HOURS]);
                self.worth_of(&belief.memory, expected, pace) >= price
            };
            if is_worth {
                break;
            }
            let weight = f64::from(shared.week.weight_of(&belief.hours, hour));
            expected += pace * weight / HOURS as f64;
            hour = (hour + 1) % WEEK_HOURS;
            at = at.plus_us(HOUR_US);
        }
        at
    }

    /// With fewer posts waiting a visit is not worth the price, not even at the quietest hour: neither
    /// what waits nor what may be lost is worth half of it.
    fn needed(&self, belief: &Belief, quietest_pace: f64, price: f64) -> f64 {
        let half = if self.objective.is_hot {
            price / belief.memory.spread() / 2.0
        } else {
            price / 2.0
        };
        let waiting = (2.0 * quietest_pace * half).sqrt();
        let lost = self.page * self.overflow(&belief.memory, waiting);
        if waiting <= self.page && self.objective.loss_days * lost < half {
            return waiting;
        }
        waiting.min(self.page * OVERFLOW_PART)
    }

    /// The beginning of an hour before which fewer posts wait than needed, even when every day is as
    /// busy as two.
    fn first_day_worth(shared: &Shared, belief: &Belief, needed: f64, now: WorldTime) -> WorldTime {
        const BUSY: f64 = 2.0;
        const DAYS_MAX: f64 = 4_000.0;
        let from = now.max(belief.since);
        let missing = needed - belief.expected(shared, from);
        let days = (missing / belief.pace(shared) / BUSY - 1.0).clamp(0.0, DAYS_MAX);
        let start_us = from.plus_us(days as i64 * DAY_US).micros();
        let hours = start_us.div_euclid(HOUR_US).saturating_add(1);
        WorldTime(hours.saturating_mul(HOUR_US))
    }

    /// The probability that more than a page waits when `expected` do: the tail of a gamma
    /// distribution (by Wilson and Hilferty), the wider the less was seen of the subject.
    fn overflow(&self, memory: &Memory, expected: f64) -> f64 {
        if expected <= self.page * OVERFLOW_PART {
            return 0.0;
        }
        let shape = f64::from(memory.fast.posts + 0.2).min(4.0);
        let ninth = 1.0 / (9.0 * shape);
        let deviation = ((self.page / expected).cbrt() - (1.0 - ninth)) / ninth.sqrt();
        upper_tail(deviation)
    }

    /// From when on everything was seen: since the last visit, unless the answer was full; a first
    /// visit reaches back as far as it brings posts.
    fn seen_from(state: &State, visit: &Visit<'_>, since: WorldTime) -> WorldTime {
        let from = match visit.oldest() {
            Some(oldest) if state.visited().is_none() => oldest.min(since),
            Some(oldest) if visit.is_full => oldest.max(since),
            _ => since,
        };
        let full_from = if visit.is_full { visit.oldest() } else { None };
        from.max(full_from.unwrap_or(from)).min(visit.at)
    }

    /// Learns how the features have to be weighed, from what they said of this visit.
    fn learn(shared: &mut Shared, belief: &Belief, visit: &Visit<'_>, seen_days: f64) {
        let elapsed = days_between(belief.since, visit.at);
        if elapsed <= 0.0 {
            return;
        }
        let share = (seen_days / elapsed).min(1.0);
        let features = belief.features(shared, visit.at);
        let features = features.map(|feature| feature * share);
        let expected = weighed(&features, &shared.weights).max(1e-3);
        let variance = expected * (1.0 + EXCESS_VARIANCE * expected);
        let count = visit.posts.len() as f64;
        shared.forecast.add(&features, count, variance);
        shared.visited_after(elapsed);
    }
}

/// The upper tail of the normal distribution, to 10⁻⁷ (Abramowitz and Stegun, 26.2.17).
fn upper_tail(deviation: f64) -> f64 {
    const FAR: f64 = 8.0;
    if deviation > FAR {
        return 0.0;
    }
    if deviation < 0.0 {
        return 1.0 - upper_tail(-deviation);
    }
    let t = 1.0 / (1.0 + 0.231_641_9 * deviation);
    let coefficients = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let series = coefficients
        .iter()
        .rev()
        .fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    (-deviation * deviation / 2.0).exp() / std::f64::consts::TAU.sqrt() * series
}

impl Policy for Adaptive {
    fn name(&self) -> &'static str {
        "adaptive"
    }

    fn tag(&self) -> u8 {
        tag::ADAPTIVE
    }

    fn tells_post_days(&self) -> bool {
        true
    }

    fn meet(&self, _shared: &Shared, facts: &Facts, now: WorldTime) -> State {
        let mut state = State::default();
        Card::of(facts).write(&mut state, now);
        state
    }

    fn observe(&self, shared: &mut Shared, state: &mut State, visit: &Visit<'_>) {
        let belief = Self::belief(shared, state, visit.at);
        let from = Self::seen_from(state, visit, belief.since);
        let seen_days = days_between(from, visit.at);
        let count = visit.posts.len() as f64;
        if state.visited().is_some() {
            Self::learn(shared, &belief, visit, seen_days);
        } else if let Some(card) = Card::read(state) {
            card.learn(&mut shared.cards, count, seen_days);
        }
        let seen = Seen {
            elapsed_days: days_between(belief.since, visit.at),
            days: seen_days,
            weight_days: shared.week.weight_days(&belief.hours, from, visit.at),
        };
        shared.watched(count, seen_days);
        let is_whole = !visit.is_full || seen_days >= PROFILE_DAYS;
        if is_whole {
            for post in visit.posts {
                shared.posted(*post);
            }
        }
        let mut memory = belief.memory;
        if state.visited().is_none() {
            // What the card promised is one more day of watching.
            memory.slow = Fading::of(PRIOR_DAYS, belief.slow);
        }
        let fast_days = FAST_DAYS.max(FAST_GAPS * shared.gap_days);
        let slow_days = SLOW_DAYS.max(SLOW_GAPS * shared.gap_days);
        memory.fast.take_in(fast_days, &seen, visit);
        memory.slow.take_in(slow_days, &seen, visit);
        memory.take_in(&seen, visit);
        if is_whole {
            memory.count_hours(visit.posts, &shared.day, PRIOR_POSTS_OF_CHANGE);
        }
        memory.write(state, visit.at);
    }

    fn index(&self, shared: &Shared, state: &State, now: WorldTime) -> f64 {
        let belief = Self::belief(shared, state, now);
        self.worth(shared, &belief, now)
    }

    fn due(&self, shared: &Shared, state: &State, price: f64, now: WorldTime) -> WorldTime {
        let belief = Self::belief(shared, state, now);
        if self.worth(shared, &belief, now) >= price {
            return now.max(belief.since.plus_us(1));
        }
        self.first_hour_worth(shared, &belief, price, now)
    }

    fn expected(&self, shared: &Shared, state: &State, now: WorldTime) -> Option<f64> {
        Some(Self::belief(shared, state, now).expected(shared, now))
    }

    fn posts_per_day(&self, shared: &Shared, state: &State) -> Option<f64> {
        let now = state.since()?;
        Some(Self::belief(shared, state, now).steady_pace(shared))
    }

    fn has_rhythm(&self) -> bool {
        true
    }

    fn epoch(&self, shared: &mut Shared, _now: WorldTime) {
        shared.learn_rhythm();
        shared.weights = shared.forecast.solve(&WEIGHTS_FIRST, HELD, true);
        shared.forecast.decay(KEPT);
        shared.card_weights = cards::solve(&shared.cards);
    }

    /// A post that is not fetched now is lost. As many wait as the pace of the pages makes likely,
    /// held back by what is usual for the subject.
    fn wants_more(
        &self,
        shared: &Shared,
        state: &State,
        visit: &Visit<'_>,
        unseen_days: f64,
        price: f64,
    ) -> bool {
        let Some(oldest) = visit.oldest() else {
            return false;
        };
        let usual = Self::belief(shared, state, visit.at).pace(shared);
        let brought = visit.posts.len() as f64;
        let pace = (brought + PRIOR_DAYS * usual) / (days_between(oldest, visit.at) + PRIOR_DAYS);
        let waiting = (pace * unseen_days).min(self.page);
        // What a page is worth that is lost for sure: no call elsewhere is worth more.
        let most = self.page * SURE_PART * self.objective.loss_days;
        waiting * self.objective.loss_days >= price.min(most)
    }
}

#[cfg(test)]
mod tests;
