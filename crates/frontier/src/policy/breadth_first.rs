//! Breadth first, in SWORM's order of depths: whoever is nearer to a seed is visited first.
//!
//! Depth 0 are the seeds, 1 those whom they follow or who follow them, and so on; within one depth
//! the first met is the first visited. When everybody had a turn, the next round begins.

use super::{Facts, Policy, Shared, State, Visit, tag};
use kittiwake_model::WorldTime;

#[derive(Debug, Clone, Copy, Default)]
pub struct BreadthFirst;

/// Depths that can be told apart within a round.
const DEPTHS: f64 = 1e6;
/// A tie within one depth is broken by the time of waiting, in days; this is longer than any.
const WAIT_DAYS_MAX: f64 = 1e9;

#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    depth: u16,
    visits: u16,
}

impl Turn {
    fn read(state: &State) -> Self {
        if !state.is_of(tag::BREADTH_FIRST) {
            return Self::default();
        }
        let mut fields = state.fields();
        Self {
            depth: fields.u16(),
            visits: fields.u16(),
        }
    }
}

impl Policy for BreadthFirst {
    fn name(&self) -> &'static str {
        "breadth-first"
    }

    fn tag(&self) -> u8 {
        tag::BREADTH_FIRST
    }

    fn meet(&self, _shared: &Shared, facts: &Facts, now: WorldTime) -> State {
        let mut state = State::default();
        let depth = u16::try_from(facts.depth).unwrap_or(u16::MAX);
        state.begin(self.tag(), now, false).u16(depth).u16(0);
        state
    }

    fn observe(&self, _shared: &mut Shared, state: &mut State, visit: &Visit<'_>) {
        let turn = Turn::read(state);
        let visits = turn.visits.saturating_add(1);
        state
            .begin(self.tag(), visit.at, true)
            .u16(turn.depth)
            .u16(visits);
    }

    /// The negative of the place in the order; who waits longer comes first among equals.
    fn index(&self, _shared: &Shared, state: &State, now: WorldTime) -> f64 {
        let turn = Turn::read(state);
        let waited = super::elapsed_days(state, now).min(WAIT_DAYS_MAX) / WAIT_DAYS_MAX;
        waited - f64::from(turn.depth) - f64::from(turn.visits) * DEPTHS
    }

    /// Always due, in the order of the places: a microsecond for each.
    fn due(&self, _shared: &Shared, state: &State, _price: f64, now: WorldTime) -> WorldTime {
        state.visited().map_or(now, |at| at.plus_us(1)).max(now)
    }

    fn plans_rounds(&self) -> bool {
        true
    }

    fn round(&self, states: &[State], _random: &mut crate::random::Random) -> Vec<u32> {
        let mut order: Vec<u32> = (0..states.len() as u32).collect();
        order.sort_by_key(|subject| Turn::read(&states[*subject as usize]).depth);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn met(depths: &[u32]) -> Vec<State> {
        let facts = depths.iter().map(|depth| Facts {
            depth: *depth,
            ..Facts::default()
        });
        facts
            .map(|facts| BreadthFirst.meet(&Shared::default(), &facts, WorldTime(0)))
            .collect()
    }

    #[test]
    fn the_nearer_to_a_seed_the_sooner() {
        let states = met(&[2, 0, 1, 0, 1]);
        let order = BreadthFirst.round(&states, &mut Random::new(1));
        assert_eq!(order, [1, 3, 2, 4, 0]);
        let shared = Shared::default();
        let index = |state| BreadthFirst.index(&shared, state, WorldTime(9));
        assert!(index(&states[1]) > index(&states[2]));
        assert!(index(&states[2]) > index(&states[0]));
    }

    #[test]
    fn nobody_has_a_second_turn_before_everybody_had_one() {
        let mut states = met(&[0, 7]);
        let mut shared = Shared::default();
        BreadthFirst.observe(
            &mut shared,
            &mut states[0],
            &Visit::complete(WorldTime(1), &[]),
        );
        let index = |state| BreadthFirst.index(&shared, state, WorldTime(9));
        assert!(index(&states[1]) > index(&states[0]));
    }
}
