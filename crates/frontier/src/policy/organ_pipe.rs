//! CUVIM's Poisson model: potentiality, and visits in the order of organ pipes (Algorithm 1).
//!
//! The potentiality of somebody visited at t_i within \[0, nΔ\] is the mean over that time of
//! λ_i·|t − t_i|, which is λ_i·ω(t_i)/(nΔ) with the penalty ω(t, n, Δ) = t² − t·nΔ + (nΔ)²/2. The
//! sum over all is least when the fastest are visited in the middle of the round and the slowest
//! at its ends, like the pipes of an organ.

use super::{Policy, Shared, State, Visit, days_between, tag};
use crate::random::Random;
use kittiwake_model::WorldTime;

/// Rounds in the order of organ pipes, planned anew from the rates that were seen.
#[derive(Debug, Clone, Copy, Default)]
pub struct OrganPipe;

/// Days that are added to the time watched, so that a first post makes nobody the fastest of all.
const WATCHED_MORE_DAYS: f64 = 1.0;

/// ω(t, n, Δ) = t² − t·nΔ + (nΔ)²/2.
pub fn penalty(at: f64, count: f64, gap: f64) -> f64 {
    let span = count * gap;
    at * at - at * span + span * span / 2.0
}

/// The potentiality of visits to rates `rates[i]` at time i·gap.
pub fn potentiality(rates: &[f64], gap: f64) -> f64 {
    if rates.is_empty() {
        return 0.0;
    }
    let count = rates.len() as f64;
    let places = rates.iter().enumerate();
    let sum: f64 = places
        .map(|(place, rate)| rate * penalty(place as f64 * gap, count, gap))
        .sum();
    sum / (count * gap)
}

/// Algorithm 1: from subjects sorted by rate, slowest first, to the order of visits. The printed
/// subscripts are transposed; this is the order of the paper's own example.
pub fn order<T: Clone>(ascending: &[T]) -> Vec<T> {
    let up = ascending.iter().step_by(2).cloned();
    let down = ascending.iter().skip(1).step_by(2).rev().cloned();
    up.chain(down).collect()
}

/// What was seen of one subject.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    posts: f32,
    /// From the first meeting to the last visit.
    days: f32,
}

impl Seen {
    fn read(state: &State) -> Self {
        if !state.is_of(tag::ORGAN_PIPE) {
            return Self::default();
        }
        let mut fields = state.fields();
        Self {
            posts: fields.f32(),
            days: fields.f32(),
        }
    }

    fn per_day(self) -> f64 {
        f64::from(self.posts) / (f64::from(self.days) + WATCHED_MORE_DAYS)
    }
}

impl Policy for OrganPipe {
    fn name(&self) -> &'static str {
        "organ-pipe"
    }

    fn tag(&self) -> u8 {
        tag::ORGAN_PIPE
    }

    fn observe(&self, _shared: &mut Shared, state: &mut State, visit: &Visit<'_>) {
        let seen = Seen::read(state);
        let days = days_between(state.since().unwrap_or(visit.at), visit.at);
        state
            .begin(self.tag(), visit.at, true)
            .f32(seen.posts + visit.posts.len() as f32)
            .f32(seen.days + days as f32);
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

    fn round(&self, states: &[State], _random: &mut Random) -> Vec<u32> {
        let mut rated: Vec<(f64, u32)> = states
            .iter()
            .zip(0_u32..)
            .map(|(state, subject)| (Seen::read(state).per_day(), subject))
            .collect();
        rated.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let ascending: Vec<u32> = rated.into_iter().map(|(_, subject)| subject).collect();
        order(&ascending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_papers_six_users_come_out_in_its_order() {
        assert_eq!(order(&[0, 1, 2, 3, 4, 5]), [0, 2, 4, 5, 3, 1]);
        assert_eq!(order(&[0, 1, 2, 3, 4]), [0, 2, 4, 3, 1]);
        assert!(order::<u8>(&[]).is_empty());
    }

    #[test]
    fn the_order_follows_the_ruling_for_every_place() {
        for count in 0_usize..40 {
            let subjects: Vec<usize> = (0..count).collect();
            let ordered = order(&subjects);
            for subject in subjects {
                let place = if subject % 2 == 0 {
                    subject / 2
                } else {
                    count - 1 - (subject - 1) / 2
                };
                assert_eq!(ordered[place], subject);
            }
        }
    }

    /// The least potentiality over all orders, by trying each.
    fn least(rates: &mut Vec<f64>, fixed: usize) -> f64 {
        if fixed == rates.len() {
            return potentiality(rates, 1.0);
        }
        let mut best = f64::INFINITY;
        for place in fixed..rates.len() {
            rates.swap(fixed, place);
            best = best.min(least(rates, fixed + 1));
            rates.swap(fixed, place);
        }
        best
    }

    #[test]
    fn no_other_order_has_less_potentiality() {
        for count in 1_u32..=7 {
            let mut rates: Vec<f64> = (0..count).map(f64::from).collect();
            let organ = potentiality(&order(&rates), 1.0);
            assert!((organ - least(&mut rates, 0)).abs() < 1e-9, "{count}");
        }
    }

    proptest! {
        #[test]
        fn theorem_1_doubling_the_delay_makes_four_times_the_penalty(
            place in 0_u32..100, more in 1_u32..100, gap in 0.01_f64..50.0,
        ) {
            let (place, count) = (f64::from(place), f64::from(place + more));
            let scaled = gap * gap * penalty(place, count, 1.0);
            prop_assert!((penalty(place * gap, count, gap) - scaled).abs() <= 1e-9 * scaled.abs());
        }

        #[test]
        fn theorem_1_potentiality_scales_with_the_gap(
            rates in prop::collection::vec(0.0_f64..20.0, 1..30), gap in 0.01_f64..50.0,
        ) {
            let scaled = gap * potentiality(&rates, 1.0);
            prop_assert!((potentiality(&rates, gap) - scaled).abs() <= 1e-9 * scaled.abs());
        }

        #[test]
        fn equation_1_gives_the_difference_of_two_parts(
            count in 1_usize..200, slowest in 0.0_f64..10.0, step in 0.0_f64..3.0,
        ) {
            let rates: Vec<f64> = (0..count).map(|i| slowest + i as f64 * step).collect();
            let part = |which: usize| -> f64 {
                order(&rates).iter().skip(which).step_by(2).sum()
            };
            let expected = [0.0, slowest, -step, slowest - step][count % 4];
            prop_assert!((part(0) - part(1) - expected).abs() < 1e-6);
        }
    }
}
