//! A subject's rate from all that was ever seen of it: what the older policies go by.

use super::{Shared, State, Visit, days_between};
use kittiwake_model::WorldTime;

/// How many days of the population's mean rate a newcomer is credited with.
const PRIOR_DAYS: f64 = 3.0;

/// Posts seen and days watched.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Watched {
    pub(super) posts: f32,
    pub(super) days: f32,
}

impl Watched {
    pub(super) fn read(state: &State, tag: u8) -> Self {
        if !state.is_of(tag) {
            return Self::default();
        }
        let mut fields = state.fields();
        Self {
            posts: fields.f32().max(0.0),
            days: fields.f32().max(0.0),
        }
    }

    /// Takes in a visit, for the subject and for the population.
    pub(super) fn observe(shared: &mut Shared, state: &mut State, visit: &Visit<'_>, tag: u8) {
        let mut watched = Self::read(state, tag);
        let since = state.since().unwrap_or(visit.at);
        let days = days_between(since, visit.at);
        watched.posts += visit.posts.len() as f32;
        watched.days += days as f32;
        shared.watched(visit.posts.len() as f64, days);
        watched.write(state, tag, visit.at);
    }

    fn write(self, state: &mut State, tag: u8, at: WorldTime) {
        state.begin(tag, at, true).f32(self.posts).f32(self.days);
    }

    /// Posts a day, between what was seen and what is usual.
    pub(super) fn per_day(self, shared: &Shared) -> f64 {
        (f64::from(self.posts) + PRIOR_DAYS * shared.mean_rate())
            / (f64::from(self.days) + PRIOR_DAYS)
    }
}
