//! Uniform, for science: everybody is visited at the same, guaranteed rate, whatever was found.
//!
//! Every round visits everybody once, in an order drawn anew. A circular queue at one visit a day
//! comes to the same person at the same hour every day, and sees some people only at night; here
//! every hour is as likely as any other, so that what is measured can be extrapolated. Nobody waits
//! longer than two rounds.

use super::{Policy, Shared, State, Visit, tag};
use crate::random::Random;
use kittiwake_model::WorldTime;

#[derive(Debug, Clone, Copy, Default)]
pub struct Uniform;

impl Policy for Uniform {
    fn name(&self) -> &'static str {
        "uniform"
    }

    fn tag(&self) -> u8 {
        tag::UNIFORM
    }

    fn observe(&self, _shared: &mut Shared, state: &mut State, visit: &Visit<'_>) {
        state.begin(self.tag(), visit.at, true);
    }

    fn index(&self, _shared: &Shared, state: &State, now: WorldTime) -> f64 {
        super::waited_days(state, now)
    }

    fn due(&self, _shared: &Shared, state: &State, _price: f64, now: WorldTime) -> WorldTime {
        state.visited().map_or(now, |at| at.plus_us(1)).max(now)
    }

    fn plans_rounds(&self) -> bool {
        true
    }

    fn round(&self, states: &[State], random: &mut Random) -> Vec<u32> {
        let mut order: Vec<u32> = (0..states.len() as u32).collect();
        random.shuffle(&mut order);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_visits_everybody_once_in_another_order() {
        let states = vec![State::default(); 30];
        let mut random = Random::new(5);
        let mut rounds: Vec<Vec<u32>> = (0..2)
            .map(|_| Uniform.round(&states, &mut random))
            .collect();
        assert_ne!(rounds[0], rounds[1]);
        for round in &mut rounds {
            round.sort_unstable();
            assert_eq!(*round, (0..30).collect::<Vec<_>>());
        }
    }
}
