//! What a card promises: a rate from followers, following, posts and age, before the first visit.

use crate::policy::regression::Regression;
use crate::policy::shared::CARD_FEATURES;
use crate::policy::{Facts, State, tag};
use kittiwake_model::WorldTime;

/// A rate of this many posts a day is as good as none.
const RATE_MIN: f64 = 0.02;
const RATE_MAX: f64 = 1_000.0;
/// First visits that see less than this teach nothing, in days.
const SEEN_DAYS_MIN: f64 = 0.25;
/// Before anything was learnt: as many posts a day as so far.
pub(in crate::policy) const WEIGHTS_FIRST: [f64; CARD_FEATURES] = [0.0, 0.0, 0.0, 1.0, 0.0];

/// The features of one card, as logarithms; they stay in the state until the first visit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Card([f32; CARD_FEATURES]);

impl Card {
    /// The features, if the card tells how many posts there are, and since when.
    pub(super) fn of(facts: &Facts) -> Option<Self> {
        let age_days = facts
            .age_days
            .filter(|days| days.is_finite() && *days > 0.0)?;
        let posts = facts.posts? as f64;
        let count = |count: Option<u64>| (count.unwrap_or(0) as f64).ln_1p() as f32;
        let so_far = (posts / age_days.max(1.0)).clamp(RATE_MIN, RATE_MAX);
        Some(Self([
            1.0,
            count(facts.followers),
            count(facts.following),
            so_far.ln() as f32,
            age_days.ln_1p() as f32,
        ]))
    }

    pub(super) fn read(state: &State) -> Option<Self> {
        if !state.is_of(tag::ADAPTIVE) || state.visited().is_some() {
            return None;
        }
        let mut fields = state.fields();
        let features = std::array::from_fn(|_| fields.f32());
        // The first is always 1 where there is a card.
        (features[0] > 0.5).then_some(Self(features))
    }

    fn features(self) -> [f64; CARD_FEATURES] {
        self.0.map(f64::from)
    }

    /// The rate that the card promises, in posts a day.
    pub(super) fn rate(self, weights: &[f64; CARD_FEATURES]) -> f64 {
        let features = self.features();
        let logarithm: f64 = features
            .iter()
            .zip(weights)
            .map(|(one, other)| one * other)
            .sum();
        logarithm.exp().clamp(RATE_MIN, RATE_MAX)
    }

    /// Learns from what the first visit saw.
    pub(super) fn learn(self, cards: &mut Regression<CARD_FEATURES>, posts: f64, days: f64) {
        if days < SEEN_DAYS_MIN {
            return;
        }
        let rate = ((posts + 0.25) / (days + 0.25)).clamp(RATE_MIN, RATE_MAX);
        cards.add(&self.features(), rate.ln(), 0.5 + 1.0 / (posts + 0.5));
    }
}

/// Writes the state of somebody who was met.
pub(super) trait Write {
    fn write(self, state: &mut State, now: WorldTime);
}

impl Write for Option<Card> {
    fn write(self, state: &mut State, now: WorldTime) {
        let mut writer = state.begin(tag::ADAPTIVE, now, false);
        for feature in self.iter().flat_map(|card| card.0) {
            writer.f32(feature);
        }
    }
}

/// The weights that first visits taught.
pub(super) fn solve(cards: &Regression<CARD_FEATURES>) -> [f64; CARD_FEATURES] {
    /// As many first visits must speak against the promise.
    const HELD: f64 = 5.0;
    cards.solve(&WEIGHTS_FIRST, HELD, false)
}
