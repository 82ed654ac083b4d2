//! Dividing subjects among machines.
//!
//! CUVIM divides the order of organ pipes in turn (its round robin), or by subset sums (its set
//! division), and compares with chance. Both know everybody's rate and divide once. The ring knows
//! no rates; it divides by names alone, so that machines may come and go while few subjects move.

mod compare;
mod ring;
mod set_division;
mod subset;

pub use compare::{Comparison, Rated, Steadiness, compare, of_trace, steadiness, synthetic};
pub use ring::{Node, Ring};
pub use set_division::{Division, epsilon_of_one_split, set_division};

use crate::policy::organ_pipe;
use crate::random::Random;

/// Why work cannot be divided.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PartitionError {
    #[error("work cannot be divided into no parts")]
    NoParts,
    #[error("rates have to be numbers from 0 to 1e15 a day, also taken together; {0} is none")]
    Rate(f64),
    #[error("epsilon has to be a number above 0; {0} is none")]
    Epsilon(f64),
    #[error("a ring needs at least one node")]
    NoNodes,
    #[error("two nodes of a ring have the name {0:?}; give each its own")]
    SameName(String),
    #[error("there is no node {0:?} in the ring")]
    UnknownNode(String),
    #[error("the weight of a node has to be a number above 0; {0} is none")]
    Weight(f64),
    #[error(
        "the nodes of a ring have more than {0} points; give fewer virtual nodes or smaller weights"
    )]
    TooManyPoints(usize),
}

/// CUVIM's round robin: whoever is at place p of the order of organ pipes is in part p mod k.
/// Halving again and again gives the same parts where k is a power of two. Returns the part of each
/// subject.
pub fn round_robin(rates: &[f64], parts: u32) -> Result<Vec<u32>, PartitionError> {
    if parts == 0 {
        return Err(PartitionError::NoParts);
    }
    let mut part_of = vec![0; rates.len()];
    for (subject, part) in organ_pipe::order(&ascending(rates))
        .into_iter()
        .zip((0..parts).cycle())
    {
        part_of[subject as usize] = part;
    }
    Ok(part_of)
}

/// Subjects by rate, the slowest first; the first met of equals.
fn ascending(rates: &[f64]) -> Vec<u32> {
    let mut subjects: Vec<u32> = (0..rates.len() as u32).collect();
    subjects.sort_by(|one, other| rates[*one as usize].total_cmp(&rates[*other as usize]));
    subjects
}

/// The baseline: every subject in a part drawn for it alone.
pub fn random(
    subjects: usize,
    parts: u32,
    random: &mut Random,
) -> Result<Vec<u32>, PartitionError> {
    if parts == 0 {
        return Err(PartitionError::NoParts);
    }
    let draw = |_| random.below(parts as usize) as u32;
    Ok((0..subjects).map(draw).collect())
}

/// What each part has to do. A subject without a part counts nowhere.
pub fn loads(rates: &[f64], part_of: &[u32], parts: u32) -> Vec<f64> {
    let mut loads = vec![0.0; parts as usize];
    for (rate, part) in rates.iter().zip(part_of) {
        if let Some(load) = loads.get_mut(*part as usize) {
            *load += rate;
        }
    }
    loads
}

/// How unlike the parts' loads are.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Workload {
    /// The largest less the smallest: CUVIM's "workload difference".
    pub difference: f64,
    /// The sum over all pairs of parts, which CUVIM's set division is to make least.
    pub pairwise: f64,
}

impl Workload {
    pub fn of(loads: &[f64]) -> Self {
        let mut sorted = loads.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else {
            return Self::default();
        };
        // In order, the i-th of k is the larger one in i pairs and the smaller one in the others.
        let places = sorted.iter().zip(0_u32..);
        let others = sorted.len() as f64 - 1.0;
        let pairwise = places.map(|(load, place)| load * (2.0 * f64::from(place) - others));
        Self {
            difference: most - least,
            pairwise: pairwise.sum::<f64>().max(0.0),
        }
    }
}

/// The standard deviation of some loads over their mean.
pub fn variation(loads: &[f64]) -> f64 {
    let count = loads.len().max(1) as f64;
    let mean = loads.iter().sum::<f64>() / count;
    if mean <= 0.0 {
        return 0.0;
    }
    let squares: f64 = loads.iter().map(|load| (load - mean).powi(2)).sum();
    (squares / count).sqrt() / mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// CUVIM's recursion: halves by place, each halved again.
    fn halved(order: &[u32], parts: u32) -> Vec<Vec<u32>> {
        if parts == 1 {
            return vec![order.to_vec()];
        }
        let half = |which| -> Vec<u32> { order.iter().skip(which).step_by(2).copied().collect() };
        let mut sets = halved(&half(0), parts / 2);
        sets.extend(halved(&half(1), parts / 2));
        sets
    }

    fn sets(part_of: &[u32], order: &[u32], parts: u32) -> Vec<Vec<u32>> {
        let of = |part| {
            let subjects = order.iter().copied();
            subjects
                .filter(|subject| part_of[*subject as usize] == part)
                .collect()
        };
        (0..parts).map(of).collect()
    }

    #[test]
    fn the_papers_six_users_are_dealt_in_turn() {
        let rates = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        // The order is u0, u2, u4, u5, u3, u1.
        assert_eq!(round_robin(&rates, 2).unwrap(), [0, 1, 1, 0, 0, 1]);
        assert_eq!(round_robin(&rates, 3).unwrap(), [0, 2, 1, 1, 2, 0]);
    }

    #[test]
    fn differences_are_those_of_the_definition() {
        let workload = Workload::of(&[5.0, 1.0, 4.0]);
        assert_eq!((workload.difference, workload.pairwise), (4.0, 8.0));
        assert_eq!(Workload::of(&[]), Workload::default());
        assert!((variation(&[1.0, 3.0]) - 0.5).abs() < 1e-12);
        assert!(variation(&[0.0, 0.0]).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_divided_into_no_parts() {
        assert_eq!(round_robin(&[1.0], 0), Err(PartitionError::NoParts));
        assert_eq!(
            random(1, 0, &mut Random::new(1)),
            Err(PartitionError::NoParts)
        );
    }

    #[test]
    fn chance_gives_every_part_its_share() {
        let seed = 7;
        let part_of = random(40_000, 4, &mut Random::new(seed)).unwrap();
        for part in 0..4 {
            let count = part_of.iter().filter(|other| **other == part).count() as f64;
            // Five standard deviations of a binomial.
            let spread = 5.0 * (40_000.0 * 0.25 * 0.75_f64).sqrt();
            assert!((count - 10_000.0).abs() < spread, "seed {seed}: {count}");
        }
    }

    proptest! {
        #[test]
        fn every_subject_is_in_one_part_and_parts_are_alike_in_number(
            rates in prop::collection::vec(0.0_f64..50.0, 0..200), parts in 1_u32..20,
        ) {
            let part_of = round_robin(&rates, parts).unwrap();
            prop_assert_eq!(part_of.len(), rates.len());
            let counts = loads(&vec![1.0; rates.len()], &part_of, parts);
            prop_assert!((counts.iter().sum::<f64>() - rates.len() as f64).abs() < 1e-9);
            prop_assert!(Workload::of(&counts).difference <= 1.0);
        }

        #[test]
        fn halving_again_and_again_deals_in_turn(
            rates in prop::collection::vec(0.0_f64..50.0, 0..200), depth in 0_u32..6,
        ) {
            let parts = 1 << depth;
            let order = organ_pipe::order(&ascending(&rates));
            let mut dealt = sets(&round_robin(&rates, parts).unwrap(), &order, parts);
            let mut halves = halved(&order, parts);
            dealt.sort();
            halves.sort();
            prop_assert_eq!(dealt, halves);
        }

        #[test]
        fn equation_1_holds_of_two_parts(
            count in 1_usize..300, slowest in 0.0_f64..10.0, step in 0.001_f64..3.0, seed in any::<u64>(),
        ) {
            let mut rates: Vec<f64> = (0..count).map(|i| slowest + i as f64 * step).collect();
            // Whoever is met first makes no difference.
            Random::new(seed).shuffle(&mut rates);
            let loads = loads(&rates, &round_robin(&rates, 2).unwrap(), 2);
            let expected = [0.0, slowest, -step, slowest - step][count % 4];
            prop_assert!((loads[0] - loads[1] - expected).abs() < 1e-6);
        }

        #[test]
        fn pairs_are_summed_as_they_are_written(
            loads in prop::collection::vec(0.0_f64..100.0, 1..12),
        ) {
            let pairs = (0..loads.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
            let sum: f64 = pairs.map(|(one, other)| (loads[one] - loads[other]).abs()).sum();
            prop_assert!((Workload::of(&loads).pairwise - sum).abs() < 1e-6);
        }
    }
}
