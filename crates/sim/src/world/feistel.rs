//! Permutations of 0..size that are computed, not stored, and can be run backwards.
//!
//! A Feistel network permutes a power of two; numbers outside the range are sent through again
//! until they fall inside (cycle walking), which keeps the whole a bijection.

use super::dice::{Dice, Purpose, mix};

const ROUNDS: usize = 6;

#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    size: u64,
    right_bits: u32,
    left_mask: u64,
    right_mask: u64,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// `which` tells apart the permutations of one seed.
    pub(crate) fn new(seed: u64, which: u64, size: u64) -> Self {
        let bits = (u64::BITS - size.saturating_sub(1).leading_zeros()).max(2);
        let right_bits = bits / 2;
        let left_bits = bits - right_bits;
        let mut dice = Dice::new(seed, Purpose::Permutation, which, size);
        Self {
            size,
            right_bits,
            left_mask: (1 << left_bits) - 1,
            right_mask: (1 << right_bits) - 1,
            keys: std::array::from_fn(|_| dice.next()),
        }
    }

    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn forward(&self, number: u64) -> u64 {
        debug_assert!(number < self.size, "{number} is outside 0..{}", self.size);
        let mut walked = self.rounds_forward(number);
        while walked >= self.size {
            walked = self.rounds_forward(walked);
        }
        walked
    }

    pub(crate) fn backward(&self, number: u64) -> u64 {
        debug_assert!(number < self.size, "{number} is outside 0..{}", self.size);
        let mut walked = self.rounds_backward(number);
        while walked >= self.size {
            walked = self.rounds_backward(walked);
        }
        walked
    }

    fn rounds_forward(&self, number: u64) -> u64 {
        let mut left = number >> self.right_bits;
        let mut right = number & self.right_mask;
        for pair in self.keys.chunks_exact(2) {
            left ^= mix(right ^ pair[0]) & self.left_mask;
            right ^= mix(left ^ pair[1]) & self.right_mask;
        }
        (left << self.right_bits) | right
    }

    fn rounds_backward(&self, number: u64) -> u64 {
        let mut left = number >> self.right_bits;
        let mut right = number & self.right_mask;
        for pair in self.keys.chunks_exact(2).rev() {
            right ^= mix(left ^ pair[1]) & self.right_mask;
            left ^= mix(right ^ pair[0]) & self.left_mask;
        }
        (left << self.right_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_number_of_a_small_range_is_hit_once() {
        for size in [1, 2, 3, 5, 64, 1_000, 1_025] {
            let permutation = Permutation::new(11, 0, size);
            let mut images: Vec<u64> = (0..size)
                .map(|number| permutation.forward(number))
                .collect();
            images.sort_unstable();
            assert_eq!(images, (0..size).collect::<Vec<_>>(), "size {size}");
        }
    }

    #[test]
    fn numbers_do_not_stay_where_they_were() {
        let permutation = Permutation::new(3, 0, 10_000);
        let fixed = (0..10_000)
            .filter(|&number| permutation.forward(number) == number)
            .count();
        assert!(fixed < 20, "{fixed}");
    }

    proptest! {
        #[test]
        fn backward_undoes_forward(seed: u64, size in 1_u64..1 << 40, share in 0.0..1.0_f64) {
            let permutation = Permutation::new(seed, 1, size);
            let number = ((size as f64 * share) as u64).min(size - 1);
            let image = permutation.forward(number);
            prop_assert!(image < size);
            prop_assert_eq!(permutation.backward(image), number);
        }
    }
}
