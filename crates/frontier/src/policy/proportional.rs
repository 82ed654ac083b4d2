//! Visits in proportion to the rate of posting: SocWeb's change rate in its charitable reading.

use super::rate::Watched;
use super::{Policy, Shared, State, Visit, elapsed_days, tag};
use kittiwake_model::WorldTime;

/// Whoever is expected to have the most posts waiting is next: λτ.
#[derive(Debug, Clone, Copy, Default)]
pub struct Proportional;

/// Expected posts since the last visit.
pub fn index(rate_per_day: f64, elapsed_days: f64) -> f64 {
    rate_per_day * elapsed_days
}

impl Policy for Proportional {
    fn name(&self) -> &'static str {
        "proportional"
    }

    fn tag(&self) -> u8 {
        tag::PROPORTIONAL
    }

    fn observe(&self, shared: &mut Shared, state: &mut State, visit: &Visit<'_>) {
        Watched::observe(shared, state, visit, self.tag());
    }

    fn index(&self, shared: &Shared, state: &State, now: WorldTime) -> f64 {
        let watched = Watched::read(state, self.tag());
        index(watched.per_day(shared), elapsed_days(state, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_rate_is_visited_after_half_the_time() {
        assert!((index(4.0, 3.0) - index(8.0, 1.5)).abs() < 1e-12);
    }
}
