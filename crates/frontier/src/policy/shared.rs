//! What a policy knows of the whole population: small, the same for all policies, and persisted.

use super::regression::Regression;
use super::rhythm::{HOURS, WEEK_HOURS, Week, hour_of_day, hour_of_week};
use kittiwake_model::WorldTime;

/// How the features of [`super::adaptive`] are weighed: everybody's, old and recent, and bursts.
pub(super) const FEATURES: usize = 6;
/// What a card tells: a constant, followers, following, posts a day, age.
pub(super) const CARD_FEATURES: usize = 5;

/// The version of the persisted bytes.
const VERSION: u8 = 1;
/// The rate before anything was seen, in posts a day.
const RATE_FIRST: f64 = 1.0;
/// Days that are watched before the mean rate is believed.
const RATE_FIRST_DAYS: f64 = 1.0;

/// What is known of everybody together.
#[derive(Debug, Clone, PartialEq)]
pub struct Shared {
    /// Posts that were seen, and days of somebody's life that were watched.
    posts: f64,
    days: f64,
    /// The mean gap between visits, in days: a moving average.
    pub(super) gap_days: f64,
    /// Posts by hour of the week.
    week_counts: [f64; WEEK_HOURS],
    /// The population's day, of mean 1, and how the week differs from it.
    pub(super) day: [f32; HOURS],
    pub(super) week: Week,
    pub(super) forecast: Regression<FEATURES>,
    pub(super) weights: [f64; FEATURES],
    pub(super) cards: Regression<CARD_FEATURES>,
    pub(super) card_weights: [f64; CARD_FEATURES],
}

/// The weights before anything was learnt: the recent rate, as it is.
pub(super) const WEIGHTS_FIRST: [f64; FEATURES] = [0.0, 0.0, 0.9, 0.0, 0.0, 0.1];

impl Default for Shared {
    fn default() -> Self {
        Self {
            posts: RATE_FIRST * RATE_FIRST_DAYS,
            days: RATE_FIRST_DAYS,
            gap_days: 0.0,
            week_counts: [0.0; WEEK_HOURS],
            day: [1.0; HOURS],
            week: Week::default(),
            forecast: Regression::default(),
            weights: WEIGHTS_FIRST,
            cards: Regression::default(),
            card_weights: super::adaptive::CARD_WEIGHTS_FIRST,
        }
    }
}

/// The bytes are not those of a population.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("what was kept of the population cannot be read; it is learnt anew")]
pub struct SharedUnreadable;

impl Shared {
    /// Posts a day of somebody of whom nothing is known.
    pub fn mean_rate(&self) -> f64 {
        self.posts / self.days
    }

    /// How the features of the forecast are weighed at present.
    pub const fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Takes in what was seen of somebody during a span of days.
    pub(super) fn watched(&mut self, posts: f64, days: f64) {
        self.posts += posts;
        self.days += days;
    }

    /// Takes in the gap between two visits.
    pub(super) fn visited_after(&mut self, days: f64) {
        const NEWEST: f64 = 0.001;
        self.gap_days += NEWEST * (days - self.gap_days);
    }

    /// Takes in the time of a post.
    pub(super) fn posted(&mut self, at: WorldTime) {
        self.week_counts[hour_of_week(at)] += 1.0;
    }

    /// Re-estimates the rhythm of the population.
    pub(super) fn learn_rhythm(&mut self) {
        /// Posts of an even week that are mixed in, so that few posts make no rhythm.
        const EVEN_POSTS: f64 = 500.0;
        /// How sure of the day one must be before the week is told apart from it.
        const EVEN_WEEK_POSTS: f64 = 30.0;
        /// What is kept of the past, once every few hours: half of it is gone after three months.
        const KEPT: f64 = 0.998;
        let total: f64 = self.week_counts.iter().sum::<f64>() + EVEN_POSTS;
        let by_hour: [f64; HOURS] = std::array::from_fn(|hour| {
            let counts = self.week_counts.iter().skip(hour).step_by(HOURS);
            counts.sum::<f64>() + EVEN_POSTS / HOURS as f64
        });
        self.day = std::array::from_fn(|hour| (by_hour[hour] * HOURS as f64 / total) as f32);
        let factors = std::array::from_fn(|hour| {
            let usual = by_hour[hour % HOURS] / 7.0;
            ((self.week_counts[hour] + EVEN_WEEK_POSTS) / (usual + EVEN_WEEK_POSTS)) as f32
        });
        self.week = Week::new(&factors, &self.day);
        for count in &mut self.week_counts {
            *count *= KEPT;
        }
    }

    /// The hour of the day of a post, as profiles count it.
    pub(super) const fn hour(at: WorldTime) -> usize {
        hour_of_day(at)
    }

    fn numbers(&self) -> impl Iterator<Item = f64> + '_ {
        [self.posts, self.days, self.gap_days]
            .into_iter()
            .chain(self.week_counts)
            .chain(self.weights)
            .chain(self.card_weights)
            .chain(self.forecast.numbers())
            .chain(self.cards.numbers())
    }

    /// The bytes to persist.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        for number in self.numbers() {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SharedUnreadable> {
        let (version, rest) = bytes.split_first().ok_or(SharedUnreadable)?;
        let (chunks, odd) = rest.as_chunks::<8>();
        let expected = 3
            + WEEK_HOURS
            + FEATURES
            + CARD_FEATURES
            + Regression::<FEATURES>::NUMBERS
            + Regression::<CARD_FEATURES>::NUMBERS;
        if *version != VERSION || chunks.len() != expected || !odd.is_empty() {
            return Err(SharedUnreadable);
        }
        let mut numbers = chunks.iter().map(|chunk| f64::from_le_bytes(*chunk));
        if numbers.clone().any(|number| !number.is_finite()) {
            return Err(SharedUnreadable);
        }
        let mut next = || numbers.next().unwrap_or(0.0);
        let mut shared = Self {
            posts: next(),
            days: next(),
            gap_days: next(),
            week_counts: std::array::from_fn(|_| next()),
            weights: std::array::from_fn(|_| next()),
            card_weights: std::array::from_fn(|_| next()),
            forecast: Regression::from_numbers(std::iter::from_fn(|| Some(next()))),
            cards: Regression::from_numbers(std::iter::from_fn(|| Some(next()))),
            ..Self::default()
        };
        if shared.days <= 0.0 || shared.posts < 0.0 {
            return Err(SharedUnreadable);
        }
        shared.learn_rhythm();
        Ok(shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::HOUR_US;

    #[test]
    fn the_population_is_the_same_after_it_was_kept() {
        let mut shared = Shared::default();
        shared.watched(300.0, 100.0);
        for hour in 0..5_000 {
            shared.posted(WorldTime(hour * hour * HOUR_US));
        }
        shared.forecast.add(&[1.0; FEATURES], 2.0, 1.0);
        shared.weights = [0.5; FEATURES];
        let mut kept = Shared::from_bytes(&shared.to_bytes()).unwrap();
        shared.learn_rhythm();
        assert_eq!(kept, shared);
        kept.posts = f64::NAN;
        assert_eq!(Shared::from_bytes(&kept.to_bytes()), Err(SharedUnreadable));
        for bytes in [vec![], vec![VERSION], vec![9; 100]] {
            assert_eq!(Shared::from_bytes(&bytes), Err(SharedUnreadable));
        }
    }

    #[test]
    fn a_population_that_posts_at_noon_has_its_day_there() {
        let mut shared = Shared::default();
        for day in 0..10_000 {
            shared.posted(WorldTime((day * 24 + 12) * HOUR_US));
        }
        shared.learn_rhythm();
        assert!(shared.day[12] > 20.0 && shared.day[3] < 0.1);
        assert!((shared.day.iter().sum::<f32>() - 24.0).abs() < 0.01);
    }
}
