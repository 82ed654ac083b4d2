//! Subset sums: some of the weights, as near as can be to a k-th of all.
//!
//! A greedy choice comes first; where weights are many and some are small, it is exact. Where it is
//! not, sums are listed: of the smallest weights only, then of more of them, and at last of all,
//! which proves the best one. With an epsilon the sums are listed one for each stretch, and small
//! weights fill the gap.

/// Sums that are kept at most, 16 bytes each.
const SUMS_MAX: u64 = 10_000_000;
/// Sums that are looked at for one choice at most.
const STEPS_MAX: u64 = 1_000_000_000;
/// The smallest weights whose sums are listed first; then four times as many, and so on.
const CORE: usize = 64;
const CORE_GROWS: usize = 4;

/// Some of the weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subset {
    pub is_chosen: Vec<bool>,
    /// Whether the search ended by itself: no other subset is nearer (or, with an epsilon, this one
    /// is within it wherever one is exact). It is given up where it would take too long.
    pub is_proven: bool,
}

/// Chooses weights whose sum is near a `parts`-th of all. The weights descend and none is 0;
/// preferred ones are chosen first. With an epsilon a sum is near enough within that share.
pub(super) fn nearest(
    weights: &[u64],
    is_preferred: &[bool],
    parts: u64,
    epsilon: Option<f64>,
) -> Subset {
    let divisor = weights.iter().copied().fold(0, greatest_common_divisor);
    let weights: Vec<u64> = weights.iter().map(|weight| weight / divisor).collect();
    let total: u64 = weights.iter().sum();
    let mut search = Search {
        is_chosen: vec![false; weights.len()],
        sum: 0,
        target: (total + parts / 2) / parts,
        weights: &weights,
        parts,
        total,
    };
    search.choose_greedily(is_preferred);
    let is_proven = match epsilon {
        None => search.improve(),
        Some(epsilon) => search.improve_within(epsilon),
    };
    Subset {
        is_chosen: search.is_chosen,
        is_proven,
    }
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    let (mut one, mut other) = (one, other);
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

struct Search<'a> {
    weights: &'a [u64],
    parts: u64,
    total: u64,
    /// The whole number nearest to total/parts.
    target: u64,
    is_chosen: Vec<bool>,
    sum: u64,
}

impl Search<'_> {
    /// How far a sum is from total/parts, times the parts.
    fn distance(&self, sum: u64) -> u128 {
        (u128::from(sum) * u128::from(self.parts)).abs_diff(u128::from(self.total))
    }

    /// The sum that is nearest with what is kept besides.
    fn nearest_state(&self, sums: &Sums, kept: u64) -> usize {
        (0..sums.states.len())
            .min_by_key(|state| self.distance(kept + sums.states[*state].sum))
            .unwrap_or(0)
    }

    /// Takes whatever fits, the largest first: preferred ones, then others.
    fn choose_greedily(&mut self, is_preferred: &[bool]) {
        for wanted in [true, false] {
            for (place, weight) in self.weights.iter().enumerate() {
                if is_preferred[place] == wanted && self.sum + weight <= self.target {
                    self.is_chosen[place] = true;
                    self.sum += weight;
                }
            }
        }
    }

    /// Chooses anew among the smallest, then among more of them, until nothing can be better.
    fn improve(&mut self) -> bool {
        let count = self.weights.len();
        let mut core = CORE.min(count);
        while self.sum != self.target {
            if !self.choose_again(count - core) {
                return false;
            }
            if core == count {
                return true;
            }
            core = (core * CORE_GROWS).min(count);
        }
        true
    }

    /// The best choice among the weights from a place on; `false` if there are too many sums.
    fn choose_again(&mut self, from: usize) -> bool {
        let chosen = (0..from).filter(|place| self.is_chosen[*place]);
        let kept: u64 = chosen.map(|place| self.weights[place]).sum();
        // Further beyond the target than now is no better.
        let max = self.target - kept + self.sum.abs_diff(self.target);
        let core = &self.weights[from..];
        let Some(sums) = Sums::list(core, max, 1, self.target - kept) else {
            return false;
        };
        let best = self.nearest_state(&sums, kept);
        let sum = kept + sums.states[best].sum;
        if self.distance(sum) < self.distance(self.sum) {
            self.is_chosen[from..].fill(false);
            for place in sums.items(best) {
                self.is_chosen[from + place] = true;
            }
            self.sum = sum;
        }
        true
    }

    /// Is near enough within a share of the target: at most 1/epsilon weights above that share fit
    /// below the target, so that their sums may each be off by a stretch of epsilon² of it; smaller
    /// ones fill the gap.
    fn improve_within(&mut self, epsilon: f64) -> bool {
        if self.distance(self.sum) as f64 <= epsilon * self.total as f64 {
            return true;
        }
        let target = self.target as f64;
        let large = self
            .weights
            .partition_point(|weight| *weight as f64 > epsilon * target);
        let width = ((epsilon * epsilon * target) as u64).max(1);
        let max = (target * (1.0 + epsilon)) as u64;
        let Some(sums) = Sums::list(&self.weights[..large], max, width, self.target) else {
            return false;
        };
        let best = self.nearest_state(&sums, 0);
        self.choose_and_fill(sums.items(best), large);
        true
    }

    /// Chooses some large weights and whatever else fits, unless what is chosen already is nearer.
    fn choose_and_fill(&mut self, chosen: impl Iterator<Item = usize>, large: usize) {
        let (mut is_chosen, mut sum) = (vec![false; self.weights.len()], 0);
        for place in chosen {
            is_chosen[place] = true;
            sum += self.weights[place];
        }
        for (place, weight) in self.weights.iter().enumerate().skip(large) {
            if sum + weight <= self.target {
                is_chosen[place] = true;
                sum += weight;
            }
        }
        if self.distance(sum) < self.distance(self.sum) {
            (self.is_chosen, self.sum) = (is_chosen, sum);
        }
    }
}

/// A sum, and how it was made: one weight more than another sum.
#[derive(Debug, Clone, Copy)]
struct State {
    sum: u64,
    item: u32,
    before: u32,
}

/// Sums of subsets, the first found in each stretch.
struct Sums {
    states: Vec<State>,
}

impl Sums {
    /// All sums up to `max`, one for each stretch of `width`, or those found until `wanted` is;
    /// `None` if they are too many.
    fn list(weights: &[u64], max: u64, width: u64, wanted: u64) -> Option<Self> {
        let max = max.min(weights.iter().sum());
        let stretches = max / width + 1;
        if stretches > SUMS_MAX {
            return None;
        }
        let mut is_found = vec![false; stretches as usize];
        is_found[0] = true;
        let nothing = State {
            sum: 0,
            item: u32::MAX,
            before: 0,
        };
        let mut states = vec![nothing];
        let mut steps = 0;
        for (weight, item) in weights.iter().zip(0_u32..) {
            steps += states.len() as u64;
            if steps > STEPS_MAX {
                return None;
            }
            // Sums that this weight has made are not made larger by it again.
            for before in 0..states.len() as u32 {
                let sum = states[before as usize].sum + weight;
                if sum > max || is_found[(sum / width) as usize] {
                    continue;
                }
                is_found[(sum / width) as usize] = true;
                states.push(State { sum, item, before });
                if sum == wanted {
                    return Some(Self { states });
                }
            }
        }
        Some(Self { states })
    }

    /// The places of the weights that a sum is made of.
    fn items(&self, state: usize) -> impl Iterator<Item = usize> {
        let mut state = state;
        std::iter::from_fn(move || {
            let State { item, before, .. } = self.states[state];
            state = before as usize;
            (item != u32::MAX).then_some(item as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    fn descending(mut weights: Vec<u64>) -> Vec<u64> {
        weights.sort_unstable_by(|one, other| other.cmp(one));
        weights
    }

    fn found(weights: &[u64], parts: u64, epsilon: Option<f64>) -> (u64, bool) {
        let every_other: Vec<bool> = (0..weights.len()).map(|place| place % 2 == 0).collect();
        let subset = nearest(weights, &every_other, parts, epsilon);
        let chosen = weights.iter().zip(&subset.is_chosen);
        let sum = chosen.filter(|(_, is_chosen)| **is_chosen);
        (sum.map(|(weight, _)| weight).sum(), subset.is_proven)
    }

    /// The least distance to total/parts of any subset, times the parts, by trying each.
    fn least_distance(weights: &[u64], parts: u64) -> u64 {
        let total: u64 = weights.iter().sum();
        let sum_of = |subset: u32| -> u64 {
            let places = (0..weights.len()).filter(|place| subset >> place & 1 == 1);
            places.map(|place| weights[place]).sum()
        };
        let subsets = 0..1_u32 << weights.len();
        let distances = subsets.map(|subset| (sum_of(subset) * parts).abs_diff(total));
        distances.min().unwrap_or(0)
    }

    #[test]
    fn a_choice_that_greed_misses_is_found() {
        // Greed takes 7 and is stuck; 6 + 4 is a half.
        assert_eq!(found(&[7, 6, 4, 3], 2, None), (10, true));
        assert_eq!(found(&[], 3, None), (0, true));
        assert_eq!(found(&[9], 3, None), (0, true));
    }

    #[test]
    fn large_weights_are_chosen_anew_where_small_ones_do_not_do() {
        // Greed takes 107 and 104, and tens make no 530 of them; 107 + 103 does.
        let mut weights = vec![107, 106, 104, 103];
        weights.resize(4 + CORE, 10);
        assert_eq!(found(&weights, 2, None), (530, true));
    }

    #[test]
    fn a_hundred_thousand_weights_are_halved_exactly() {
        let seed = 5;
        let mut random = Random::new(seed);
        let weights = (0..100_000).map(|_| 1 + (1e5 * random.share().powi(8)) as u64);
        let weights = descending(weights.collect());
        let total: u64 = weights.iter().sum();
        let (sum, is_proven) = found(&weights, 2, None);
        assert!(is_proven && sum.abs_diff(total - sum) <= 1, "seed {seed}");
    }

    #[test]
    fn a_search_that_would_take_too_long_is_given_up_and_says_so() {
        // One is odd, so that no half is even; only all sums together would prove it.
        let mut weights = vec![2_000_001];
        weights.extend((0..6_001).map(|place| 2_000_000 - 2 * (place / 10)));
        let total: u64 = weights.iter().sum();
        let (sum, is_proven) = found(&weights, 2, None);
        assert!(
            !is_proven && sum.abs_diff(total - sum) < 4_000_002,
            "{sum} of {total}"
        );
        let (near, is_proven) = found(&weights, 2, Some(0.01));
        assert!(is_proven && near.abs_diff(total - near) as f64 <= 0.01 * total as f64);
    }

    #[test]
    fn where_nothing_is_even_an_epsilon_spoils_nothing() {
        // Nothing comes near a half; the best is all the small ones against the large one.
        for epsilon in [0.001, 0.01, 0.1, 0.5] {
            assert_eq!(found(&[1_000, 30, 20, 10], 2, Some(epsilon)).0, 60);
        }
    }

    proptest! {
        #[test]
        fn no_subset_is_nearer(
            weights in prop::collection::vec(1_u64..400, 0..11), parts in 2_u64..8,
        ) {
            let weights = descending(weights);
            let total: u64 = weights.iter().sum();
            let (sum, is_proven) = found(&weights, parts, None);
            prop_assert!(is_proven);
            prop_assert_eq!((sum * parts).abs_diff(total), least_distance(&weights, parts));
        }

        /// More weights than the first core, and a half that exists because everything is there twice.
        #[test]
        fn a_half_that_exists_is_found_and_nearly_found_within_epsilon(
            half in prop::collection::vec(1_u64..3_000, 1..120), epsilon in 0.001_f64..0.4,
        ) {
            let total: u64 = 2 * half.iter().sum::<u64>();
            let weights = descending(half.iter().chain(&half).copied().collect());
            prop_assert_eq!(found(&weights, 2, None), (total / 2, true));
            let (sum, is_proven) = found(&weights, 2, Some(epsilon));
            prop_assert!(is_proven);
            let off = (2 * sum).abs_diff(total) as f64;
            prop_assert!(off <= epsilon * total as f64, "{} of {}", sum, total);
        }

        /// Few and large: greed alone does not do.
        #[test]
        fn the_bound_holds_of_few_large_weights(
            half in prop::collection::vec(1_000_000_u64..9_000_000, 1..7),
            other in prop::collection::vec(1_000_000_u64..9_000_000, 0..7),
            epsilon in 0.01_f64..0.3,
        ) {
            // One more weight makes both sides alike.
            let (one, two): (u64, u64) = (half.iter().sum(), other.iter().sum());
            let mut weights: Vec<u64> = half.into_iter().chain(other).collect();
            if one != two {
                weights.push(one.abs_diff(two));
            }
            let weights = descending(weights);
            let total: u64 = weights.iter().sum();
            let (sum, is_proven) = found(&weights, 2, Some(epsilon));
            prop_assert!(is_proven);
            prop_assert!((2 * sum).abs_diff(total) as f64 <= epsilon * total as f64);
        }
    }
}
