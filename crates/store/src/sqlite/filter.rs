//! Which hashes are certainly not in a table, from memory.
//!
//! Nearly all ids that a crawl meets are new, and the most that asking SQLite for them brings is that
//! nothing is there. A Bloom filter, of the size that SWORM gives its own, says so for all but a few, at
//! a fraction of the cost. It is made when a file is opened and never holds a hash that is not in the
//! table for long: one too many only means that somebody asks in vain.

/// Of a filter that is full, this share of answers is in vain.
const ERROR: f64 = 0.02;
/// Hashes that there is room for, at least: a filter of 2 MB. With more than it was made for a filter
/// says less and less, and takes no more room.
const CAPACITY_MIN: u64 = if cfg!(test) { 64 } else { 2_000_000 };
/// Rows beyond which making the filter would take longer than it is worth.
pub(super) const ROWS_MAX: u64 = 8_000_000;
/// All bits of a hash are in one block of 512, which is one line of the processor's cache: asking costs
/// one look at memory, however many bits there are.
const BLOCK_BITS: u64 = 512;
const BLOCK_WORDS: usize = 8;

/// How large a filter is: its bits, and how many of them each hash sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Dimensions {
    bits: u64,
    bits_each: u32,
}

impl Dimensions {
    /// SWORM's: m = −capacity · ln(error) / ln²2, rounded up; k = ln 2 · m / capacity, rounded, at least 1.
    fn of(capacity: u64, error: f64) -> Self {
        let capacity = capacity.max(1) as f64;
        let logarithm = std::f64::consts::LN_2;
        let bits = (-capacity * error.ln() / (logarithm * logarithm)).ceil();
        Self {
            bits: bits as u64,
            bits_each: (logarithm * bits / capacity).round().max(1.0) as u32,
        }
    }

    const fn blocks(self) -> u64 {
        self.bits.div_ceil(BLOCK_BITS)
    }
}

#[derive(Debug, Default)]
pub(super) struct Filter {
    /// Empty if nothing is known: then every hash may be there.
    blocks: Box<[[u64; BLOCK_WORDS]]>,
    dimensions: Dimensions,
}

impl Filter {
    /// An empty filter for a table that has so many rows, and is to grow.
    pub(super) fn for_rows(rows: u64) -> Self {
        let capacity = (2 * rows).clamp(CAPACITY_MIN, ROWS_MAX);
        let dimensions = Dimensions::of(capacity, ERROR);
        Self {
            blocks: vec![[0; BLOCK_WORDS]; dimensions.blocks() as usize].into(),
            dimensions,
        }
    }

    pub(super) fn insert(&mut self, hash: i64) {
        let (block, bits) = self.places_of(hash);
        if let Some(block) = self.blocks.get_mut(block) {
            for bit in bits {
                block[bit / 64] |= 1 << (bit % 64);
            }
        }
    }

    /// Whether the table may hold the hash.
    pub(super) fn may_hold(&self, hash: i64) -> bool {
        let (block, mut bits) = self.places_of(hash);
        self.blocks
            .get(block)
            .is_none_or(|block| bits.all(|bit| block[bit / 64] & (1 << (bit % 64)) != 0))
    }

    /// The block of a hash and its bits in it. Hashes are spread over all bits again, because anybody can
    /// choose ids whose hashes are near each other.
    fn places_of(&self, hash: i64) -> (usize, impl Iterator<Item = usize> + use<>) {
        let mixed = mixed(hash.cast_unsigned());
        let block = (u128::from(mixed) * self.blocks.len() as u128) >> 64;
        let steps = mixed_again(mixed);
        let (first, step) = (steps as u32, (steps >> 32) as u32 | 1);
        let bits = (0..self.dimensions.bits_each)
            .map(move |turn| first.wrapping_add(turn.wrapping_mul(step)))
            // The high bits of the sum are the ones that all bits of both numbers have had a part in.
            .map(|place| (place >> (u32::BITS - BLOCK_BITS.trailing_zeros())) as usize);
        (block as usize, bits)
    }
}

const fn mixed(hash: u64) -> u64 {
    let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ (mixed >> 32)
}

const fn mixed_again(hash: u64) -> u64 {
    mixed(hash ^ 0xA5A5_A5A5_A5A5_A5A5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter_for(capacity: u64, error: f64) -> Filter {
        let dimensions = Dimensions::of(capacity, error);
        Filter {
            blocks: vec![[0; BLOCK_WORDS]; dimensions.blocks() as usize].into(),
            dimensions,
        }
    }

    #[test]
    fn the_dimensions_are_those_of_sworm() {
        let of = |capacity, error| {
            let dimensions = Dimensions::of(capacity, error);
            (dimensions.bits, dimensions.bits_each)
        };
        assert_eq!(of(3_000, 0.01), (28_756, 7));
        assert_eq!(of(1, 0.9), (1, 1));
        assert_eq!(of(0, 0.5), of(1, 0.5));
    }

    #[test]
    fn what_was_put_in_may_be_there_and_most_of_the_rest_is_not() {
        for (capacity, error) in [(3_000, 0.01), (50_000, ERROR), (50_000, 0.2)] {
            let mut filter = filter_for(capacity, error);
            let hashes = || (0..capacity.cast_signed()).map(|number| number * 7_919);
            hashes().for_each(|hash| filter.insert(hash));
            assert!(hashes().all(|hash| filter.may_hold(hash)));
            let asked = 200_000_i64;
            let vain = (1..=asked).filter(|number| filter.may_hold(-number * 104_729));
            let share = vain.count() as f64 / asked as f64;
            // Blocks are not all equally full, which costs a little over the promise.
            assert!(share < 1.5 * error, "{share} of {error}");
            assert!(
                share > 0.5 * error,
                "{share} of {error}: too good to be true"
            );
        }
    }

    #[test]
    fn a_larger_table_gets_a_larger_filter_within_bounds() {
        let bits = |rows| Filter::for_rows(rows).dimensions.bits;
        assert_eq!(bits(0), bits(CAPACITY_MIN / 2));
        assert!(bits(1_000) > bits(0));
        assert_eq!(bits(ROWS_MAX / 2), bits(ROWS_MAX));
    }

    #[test]
    fn a_filter_that_knows_nothing_says_so() {
        let mut filter = Filter::default();
        filter.insert(1);
        assert!(filter.may_hold(1) && filter.may_hold(2));
    }
}
