//! The square-root rule of Sia, Cho and Cho (2007): the sum of all delays is least when visits are
//! made in proportion to √(wλ).

use super::rate::Watched;
use super::{Policy, Shared, State, Visit, elapsed_days, tag};
use kittiwake_model::WorldTime;

/// C(τ) = λτ posts wait, so that a visit after τ is worth ∫ s dC(s) = λτ²/2.
#[derive(Debug, Clone, Copy, Default)]
pub struct SquareRoot;

/// λτ²/2.
pub fn index(rate_per_day: f64, elapsed_days: f64) -> f64 {
    rate_per_day * elapsed_days * elapsed_days / 2.0
}

impl Policy for SquareRoot {
    fn name(&self) -> &'static str {
        "square-root"
    }

    fn tag(&self) -> u8 {
        tag::SQUARE_ROOT
    }

    fn tells_post_days(&self) -> bool {
        true
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
    fn four_times_the_rate_is_visited_twice_as_often() {
        assert!((index(1.0, 2.0) - index(4.0, 1.0)).abs() < 1e-12);
    }
}
