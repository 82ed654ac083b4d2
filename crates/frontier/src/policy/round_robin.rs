//! Round robin: a circular queue. Whoever was visited longest ago is next.

use super::{Policy, Shared, State, Visit, tag};
use kittiwake_model::WorldTime;

/// The circular queue of MBCrawler's robots: a visited subject goes to the end of the queue.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundRobin;

impl Policy for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn tag(&self) -> u8 {
        tag::ROUND_ROBIN
    }

    fn observe(&self, _shared: &mut Shared, state: &mut State, visit: &Visit<'_>) {
        state.begin(self.tag(), visit.at, true);
    }

    /// The longer ago the visit, the more it is worth; a newcomer has waited forever.
    fn index(&self, _shared: &Shared, state: &State, now: WorldTime) -> f64 {
        super::waited_days(state, now)
    }

    /// Just behind the last visit: always reached, and in the order of the queue. Where time stands
    /// still it is not: a world in which nothing can change is visited once.
    fn due(&self, _shared: &Shared, state: &State, _price: f64, now: WorldTime) -> WorldTime {
        state.visited().map_or(now, |at| at.plus_us(1))
    }

    /// Everybody in the order in which they were met, round after round.
    fn plans_rounds(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visited_subject_goes_to_the_end_of_the_queue() {
        let (policy, mut shared) = (RoundRobin, Shared::default());
        let mut visited = State::default();
        policy.observe(
            &mut shared,
            &mut visited,
            &Visit::complete(WorldTime(70), &[]),
        );
        let known = policy.due(&shared, &visited, 0.0, WorldTime(90));
        let newcomer = policy.due(&shared, &State::default(), 0.0, WorldTime(90));
        assert_eq!(known, WorldTime(71));
        assert_eq!(newcomer, WorldTime(90));
        assert!(known < newcomer);
        // Where time stands still, it is not due again.
        assert!(known > WorldTime(70));
    }
}
