//! CUVIM's set division: parts by subset sums.
//!
//! The paper leaves open which of many equal subsets is taken. Here the search begins with round
//! robin's choice, so that busy and quiet ones are on both sides, and each side can be divided well
//! again.

use super::subset::nearest;
use super::{PartitionError, ascending, round_robin};

/// Rates are multiplied and rounded: the method is one for whole numbers.
const PER_RATE: f64 = 100.0;
/// Sums stay whole numbers of 64 bits.
const TOTAL_MAX: f64 = 1e15;

/// What set division found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Division {
    /// The part of each subject.
    pub part_of: Vec<u32>,
    /// Whether every split is the best of its numbers (or within epsilon of it): a search that would
    /// take too long is given up.
    pub is_proven: bool,
}

/// The epsilon of each split, so that the largest part is at most 1 + epsilon times the smallest
/// after all of them, where even splits exist: (R−1)/(R+1) with R = (1+epsilon)^(1/⌈log2 parts⌉).
pub fn epsilon_of_one_split(epsilon: f64, parts: u32) -> f64 {
    let splits = parts.max(2).next_power_of_two().ilog2();
    let ratio = (1.0 + epsilon).powf(1.0 / f64::from(splits));
    (ratio - 1.0) / (ratio + 1.0)
}

/// Divides by subset sums: in halves, and these again, where the parts are a power of two; else
/// one part is taken off and the rest divided.
pub fn set_division(
    rates: &[f64],
    parts: u32,
    epsilon: Option<f64>,
) -> Result<Division, PartitionError> {
    if parts == 0 {
        return Err(PartitionError::NoParts);
    }
    if let Some(wrong) = epsilon.filter(|epsilon| !epsilon.is_finite() || *epsilon <= 0.0) {
        return Err(PartitionError::Epsilon(wrong));
    }
    let total: f64 = rates.iter().sum();
    let mut all = rates.iter().chain(std::iter::once(&total));
    if let Some(wrong) = all.find(|rate| !(0.0..=TOTAL_MAX).contains(*rate)) {
        return Err(PartitionError::Rate(*wrong));
    }
    let weight = |rate: &f64| (rate * PER_RATE).round() as u64;
    let mut division = Dividing {
        weights: rates.iter().map(weight).collect(),
        epsilon: epsilon.map(|epsilon| epsilon_of_one_split(epsilon, parts)),
        part_of: vec![0; rates.len()],
        is_proven: true,
    };
    let mut descending = ascending(rates);
    descending.reverse();
    let counts = |subject: &u32| division.weights[*subject as usize] > 0;
    let (some, none): (Vec<u32>, Vec<u32>) = descending.into_iter().partition(counts);
    division.divide(&some, 0, parts);
    // Whoever weighs nothing is still somebody to be visited.
    for (subject, part) in none.into_iter().zip((0..parts).cycle()) {
        division.part_of[subject as usize] = part;
    }
    Ok(Division {
        part_of: division.part_of,
        is_proven: division.is_proven,
    })
}

struct Dividing {
    weights: Vec<u64>,
    epsilon: Option<f64>,
    part_of: Vec<u32>,
    is_proven: bool,
}

impl Dividing {
    /// Divides subjects, the fastest first, into the parts from `first` on.
    fn divide(&mut self, subjects: &[u32], first: u32, parts: u32) {
        let (mut rest, mut first, mut parts) = (subjects.to_vec(), first, parts);
        while !parts.is_power_of_two() {
            let (part, others) = self.split(&rest, parts);
            self.assign(&part, first);
            (rest, first, parts) = (others, first + 1, parts - 1);
        }
        if parts == 1 {
            self.assign(&rest, first);
            return;
        }
        let (one, other) = self.split(&rest, 2);
        self.divide(&one, first, parts / 2);
        self.divide(&other, first + parts / 2, parts / 2);
    }

    /// Takes subjects out that have a `parts`-th of all to do.
    fn split(&mut self, subjects: &[u32], parts: u32) -> (Vec<u32>, Vec<u32>) {
        let weights: Vec<u64> = subjects
            .iter()
            .map(|subject| self.weights[*subject as usize])
            .collect();
        let rates: Vec<f64> = weights.iter().map(|weight| *weight as f64).collect();
        let dealt = round_robin(&rates, parts).unwrap_or_default();
        let is_preferred: Vec<bool> = dealt.iter().map(|part| *part == 0).collect();
        let subset = nearest(&weights, &is_preferred, u64::from(parts), self.epsilon);
        self.is_proven &= subset.is_proven;
        let mut sides = (Vec::new(), Vec::new());
        for (subject, is_chosen) in subjects.iter().zip(subset.is_chosen) {
            if is_chosen {
                sides.0.push(*subject);
            } else {
                sides.1.push(*subject);
            }
        }
        sides
    }

    fn assign(&mut self, subjects: &[u32], part: u32) {
        for subject in subjects {
            self.part_of[*subject as usize] = part;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Workload, loads};
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    /// The least difference of two parts by trying all.
    fn least_difference(rates: &[f64]) -> f64 {
        let total: f64 = rates.iter().sum();
        let sum_of = |subset: u32| -> f64 {
            let places = (0..rates.len()).filter(|place| subset >> place & 1 == 1);
            places.map(|place| rates[place]).sum()
        };
        let subsets = 0..1_u32 << rates.len();
        let differences = subsets.map(|subset| (2.0 * sum_of(subset) - total).abs());
        differences.fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn epsilon_is_spread_over_the_splits() {
        for parts in [2_u32, 3, 4, 16, 17] {
            let one = epsilon_of_one_split(0.1, parts);
            let splits = f64::from(parts).log2().ceil();
            let ratio = ((1.0 + one) / (1.0 - one)).powf(splits);
            assert!((ratio - 1.1).abs() < 1e-9, "{parts}");
        }
    }

    #[test]
    fn what_cannot_be_divided_is_told() {
        let wrong =
            |rates: &[f64], parts, epsilon| set_division(rates, parts, epsilon).unwrap_err();
        assert_eq!(wrong(&[1.0], 0, None), PartitionError::NoParts);
        assert!(wrong(&[f64::NAN], 2, None).to_string().contains("NaN"));
        assert_eq!(wrong(&[-1.0], 2, None), PartitionError::Rate(-1.0));
        assert_eq!(wrong(&[1.0], 2, Some(0.0)), PartitionError::Epsilon(0.0));
        assert!(wrong(&[f64::INFINITY], 2, None).to_string().contains("inf"));
    }

    #[test]
    fn those_who_hardly_ever_post_are_dealt_in_turn() {
        let division = set_division(&[0.001; 12], 4, None).unwrap();
        let counts = loads(&[1.0; 12], &division.part_of, 4);
        assert_eq!(counts, [3.0; 4]);
    }

    #[test]
    fn a_population_is_divided_better_than_in_turn() {
        for seed in 1..4 {
            let mut random = Random::new(seed);
            let rates: Vec<f64> = (0..5_000).map(|_| 80.0 * random.share().powi(6)).collect();
            for parts in [2_u32, 3, 7, 16] {
                let division = set_division(&rates, parts, None).unwrap();
                let difference =
                    |part_of: &[u32]| Workload::of(&loads(&rates, part_of, parts)).difference;
                let ours = difference(&division.part_of);
                // Two hundredths, and what rounding hides: a standard deviation of 0.0029 each.
                let rounding = 8.0 * 0.0029 * (5_000.0 / f64::from(parts)).sqrt();
                assert!(division.is_proven, "seed {seed}, {parts}");
                assert!(ours <= 0.02 + rounding, "seed {seed}, {parts}: {ours}");
                let dealt = difference(&round_robin(&rates, parts).unwrap());
                assert!(ours < dealt, "seed {seed}, {parts}: {ours} {dealt}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_subject_is_in_one_part(
            rates in prop::collection::vec(0.0_f64..30.0, 0..60), parts in 1_u32..20,
            epsilon in prop::option::of(0.001_f64..2.0),
        ) {
            let division = set_division(&rates, parts, epsilon).unwrap();
            prop_assert_eq!(division.part_of.len(), rates.len());
            prop_assert!(division.part_of.iter().all(|part| *part < parts));
            prop_assert_eq!(&division, &set_division(&rates, parts, epsilon).unwrap());
        }

        #[test]
        fn no_two_parts_are_more_alike(
            hundredths in prop::collection::vec(0_u32..3_000, 0..11),
        ) {
            let rates: Vec<f64> = hundredths.iter().map(|rate| f64::from(*rate) / 100.0).collect();
            let division = set_division(&rates, 2, None).unwrap();
            let ours = Workload::of(&loads(&rates, &division.part_of, 2)).difference;
            prop_assert!((ours - least_difference(&rates)).abs() < 1e-6);
        }

        /// Where hundredths abound, every split can be even, whatever was split off before.
        #[test]
        fn the_ratio_is_bounded_where_even_splits_exist(
            large in prop::collection::vec(1_u32..500, 0..40),
            parts in 2_u32..17, epsilon in 0.01_f64..1.0,
        ) {
            let rates: Vec<f64> = large
                .iter()
                .map(|rate| f64::from(*rate) / 100.0)
                .chain(std::iter::repeat_n(0.01, 20_000))
                .collect();
            let division = set_division(&rates, parts, Some(epsilon)).unwrap();
            let loads = loads(&rates, &division.part_of, parts);
            let most = loads.iter().copied().fold(0.0, f64::max);
            let least = loads.iter().copied().fold(f64::INFINITY, f64::min);
            prop_assert!(most / least <= 1.0 + epsilon + 1e-9, "{} {}", most, least);
        }
    }
}
