//! Which hashes are certainly not in a table, from memory.
//!
//! Nearly all ids that a crawl meets are new, and the most that asking SQLite for them brings is that
//! nothing is there. A Bloom filter, of the size that SWORM gives its own, says so for all but a few, at
//! a fraction of the cost. It never says of a hash that was put in that it is absent; that it takes one
//! for known that is not only means that somebody looks into the table in vain.
//!
//! Nobody knows beforehand how long a crawl will be. So when a filter has taken in what it was made for,
//! a layer of twice the capacity is put on top. A hash may be there if any layer says so, and so that
//! their mistakes do not add up, each layer makes half as many as the one before.

/// The share of hashes that are taken for known although they are not, when all layers are full.
const ERROR: f64 = 0.02;
/// The first layer's share of the errors. Those of all layers are at most twice as many: 4/5. The rest
/// is for blocks that are fuller than others, which counts the more the fewer errors a layer may make.
const ERROR_FIRST: f64 = ERROR * 0.4;
/// Hashes that a new file has room for: a first layer of 2 MB.
const CAPACITY_NEW: u64 = 1_600_000;
/// No layer is for fewer.
const CAPACITY_MIN: u64 = if cfg!(test) { 4 } else { CAPACITY_NEW };
/// What all layers take together, at most: enough for 130 million hashes. A filter that may not grow any
/// more says less and less, which costs time and nothing else.
const BYTES_MAX: u64 = 256 * 1024 * 1024;
/// All bits of a hash are in one block of 512, which is one line of the processor's cache: asking a layer
/// costs one look at memory, however many bits there are.
const BLOCK_BITS: u64 = 512;
const BLOCK_BYTES: u64 = BLOCK_BITS / 8;
const BLOCK_WORDS: usize = 8;

/// How large a layer is: its bits, and how many of them each hash sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dimensions {
    bits: u64,
    bits_each: u32,
}

impl Dimensions {
    /// SWORM's: m = −capacity · ln(error) / ln²2, rounded up; k = ln 2 · m / capacity, rounded, at least 1.
    fn of(capacity: u64, error: f64) -> Self {
        let capacity = capacity.max(1) as f64;
        let bits = (capacity * bits_per_hash(error)).ceil();
        Self {
            bits: bits as u64,
            bits_each: (std::f64::consts::LN_2 * bits / capacity).round().max(1.0) as u32,
        }
    }

    const fn blocks(self) -> u64 {
        self.bits.div_ceil(BLOCK_BITS)
    }
}

fn bits_per_hash(error: f64) -> f64 {
    let logarithm = std::f64::consts::LN_2;
    -error.ln() / (logarithm * logarithm)
}

/// The most hashes that so many bytes are enough for.
fn capacity_within(bytes: u64, error: f64) -> u64 {
    let bits = bytes / BLOCK_BYTES * BLOCK_BITS;
    (bits as f64 / bits_per_hash(error)) as u64
}

/// A hash, spread over all bits: anybody can choose ids whose hashes are near each other.
#[derive(Debug, Clone, Copy)]
struct Spread {
    /// Says which block of a layer it is.
    block: u64,
    /// Says which bits of the block they are.
    bits: u64,
}

impl Spread {
    const fn of(hash: i64) -> Self {
        let block = mixed(hash.cast_unsigned());
        Self {
            block,
            bits: mixed(block ^ 0xA5A5_A5A5_A5A5_A5A5),
        }
    }

    /// The places of its bits. Each is drawn anew: places at even steps from each other would, for one
    /// hash in some hundred, nearly all be the same, and a layer of few errors could not keep its word.
    fn places(self, count: u32) -> impl Iterator<Item = usize> {
        let next = |state: &u64| {
            let product = state.wrapping_mul(0x5851_F42D_4C95_7F2D);
            Some(product.wrapping_add(0x1405_7B7E_F767_814F))
        };
        std::iter::successors(Some(self.bits), next)
            .take(count as usize)
            // The high bits are the ones that all others have had a part in.
            .map(|state| (state >> (u64::BITS - BLOCK_BITS.trailing_zeros())) as usize)
    }
}

const fn mixed(hash: u64) -> u64 {
    let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ (mixed >> 32)
}

#[derive(Debug)]
struct Layer {
    blocks: Box<[[u64; BLOCK_WORDS]]>,
    bits_each: u32,
    capacity: u64,
    taken: u64,
}

impl Layer {
    fn new(capacity: u64, error: f64) -> Self {
        let dimensions = Dimensions::of(capacity, error);
        Self {
            blocks: vec![[0; BLOCK_WORDS]; dimensions.blocks() as usize].into(),
            bits_each: dimensions.bits_each,
            capacity,
            taken: 0,
        }
    }

    const fn bytes(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK_BYTES
    }

    const fn is_full(&self) -> bool {
        self.taken >= self.capacity
    }

    fn insert(&mut self, hash: Spread) {
        let block = &mut self.blocks[place_of_block(hash, self.blocks.len())];
        for place in hash.places(self.bits_each) {
            block[place / 64] |= 1 << (place % 64);
        }
        self.taken += 1;
    }

    fn may_hold(&self, hash: Spread) -> bool {
        let block = &self.blocks[place_of_block(hash, self.blocks.len())];
        hash.places(self.bits_each)
            .all(|place| block[place / 64] & (1 << (place % 64)) != 0)
    }
}

const fn place_of_block(hash: Spread, blocks: usize) -> usize {
    ((hash.block as u128 * blocks as u128) >> 64) as usize
}

#[derive(Debug, Default)]
pub(super) struct Filter {
    /// The newest is the last. There are none if nothing is known: then every hash may be there.
    layers: Vec<Layer>,
    /// What further layers may take.
    bytes_left: u64,
    /// The share of errors of the next layer.
    error_next: f64,
}

impl Filter {
    /// An empty filter for a table that has so many rows, and is to grow.
    pub(super) fn for_rows(rows: u64) -> Self {
        Self::new(rows.saturating_mul(2), BYTES_MAX)
    }

    fn new(capacity: u64, bytes_max: u64) -> Self {
        let mut filter = Self {
            layers: Vec::new(),
            bytes_left: bytes_max,
            error_next: ERROR_FIRST,
        };
        filter.grow(capacity.max(CAPACITY_MIN));
        filter
    }

    /// Puts a layer on top, of that capacity or of what there is room for.
    fn grow(&mut self, capacity: u64) {
        let capacity = capacity.min(capacity_within(self.bytes_left, self.error_next));
        // Every layer is one more to ask: it has to be worth that.
        if capacity < CAPACITY_MIN {
            return;
        }
        let layer = Layer::new(capacity, self.error_next);
        self.bytes_left = self.bytes_left.saturating_sub(layer.bytes());
        self.error_next /= 2.0;
        self.layers.push(layer);
    }

    pub(super) fn insert(&mut self, hash: i64) {
        let hash = Spread::of(hash);
        // It is taken for known anyway, so nobody will hear that it is absent. Thus what is put in
        // again and again makes no filter grow.
        if self.has(hash) {
            return;
        }
        if let Some(full) = self.layers.last().filter(|layer| layer.is_full()) {
            self.grow(full.capacity.saturating_mul(2));
        }
        if let Some(newest) = self.layers.last_mut() {
            newest.insert(hash);
        }
    }

    /// Whether the table may hold the hash.
    pub(super) fn may_hold(&self, hash: i64) -> bool {
        self.layers.is_empty() || self.has(Spread::of(hash))
    }

    fn has(&self, hash: Spread) -> bool {
        // The newest hold the most.
        self.layers.iter().rev().any(|layer| layer.may_hold(hash))
    }

    #[cfg(test)]
    pub(super) const fn layers(&self) -> usize {
        self.layers.len()
    }

    /// A filter that is so full that it takes every hash for known.
    #[cfg(test)]
    pub(super) fn overfull() -> Self {
        let mut filter = Self::new(CAPACITY_MIN, BLOCK_BYTES);
        (0..100_000).for_each(|hash| filter.insert(hash));
        filter
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The share of hashes that are taken for known, of many that are not.
    fn vain(mut may_hold: impl FnMut(i64) -> bool) -> f64 {
        let asked = 200_000_i64;
        let vain = (1..=asked).filter(|number| may_hold(-number * 104_729));
        vain.count() as f64 / asked as f64
    }

    fn hashes(count: u64) -> impl Iterator<Item = i64> {
        (0..count.cast_signed()).map(|number| number * 7_919)
    }

    fn bytes(filter: &Filter) -> u64 {
        filter.layers.iter().map(Layer::bytes).sum()
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
            let mut layer = Layer::new(capacity, error);
            hashes(capacity).for_each(|hash| layer.insert(Spread::of(hash)));
            assert!(layer.is_full());
            assert!(hashes(capacity).all(|hash| layer.may_hold(Spread::of(hash))));
            let share = vain(|hash| layer.may_hold(Spread::of(hash)));
            // Blocks are not all equally full, which costs a little over the promise.
            assert!(share < 1.3 * error, "{share} of {error}");
            assert!(
                share > 0.5 * error,
                "{share} of {error}: too good to be true"
            );
        }
    }

    #[test]
    fn however_often_a_filter_grows_it_keeps_to_its_share_of_errors() {
        let mut filter = Filter::new(2_000, BYTES_MAX);
        let mut taken = 0;
        let mut most: f64 = 0.0;
        for layers in 1..=7 {
            let full = 2_000 * ((1 << layers) - 1);
            // Half full, full but for one, full, and with the first hash of the next layer.
            for count in [taken + (full - taken) / 2, full - 1, full, full + 1] {
                let mut next = taken;
                while filter.layers.iter().map(|layer| layer.taken).sum::<u64>() < count {
                    // Those that are taken for known already take no room.
                    filter.insert(next.cast_signed() * 7_919);
                    next += 1;
                }
                taken = taken.max(next);
                assert_eq!(filter.layers(), layers + usize::from(count > full));
                let share = vain(|hash| filter.may_hold(hash));
                assert!(share < 1.3 * ERROR, "{share} with {count} in {layers}");
                most = most.max(share);
            }
        }
        assert!(hashes(taken).all(|hash| filter.may_hold(hash)));
        assert!(most > 0.7 * ERROR, "{most}: too good to be true");
        let sum: f64 = (0..64).map(|turn| ERROR_FIRST / 2_f64.powi(turn)).sum();
        assert!(sum < ERROR);
    }

    #[test]
    fn every_layer_has_twice_the_capacity_of_the_one_before() {
        let mut filter = Filter::new(100, BYTES_MAX);
        hashes(3_200).for_each(|hash| filter.insert(hash));
        let capacities: Vec<u64> = filter.layers.iter().map(|layer| layer.capacity).collect();
        assert_eq!(capacities, [100, 200, 400, 800, 1_600, 3_200]);
        assert!(filter.layers[..5].iter().all(Layer::is_full));
    }

    #[test]
    fn what_is_put_in_again_and_again_makes_no_filter_grow() {
        let mut filter = Filter::new(100, BYTES_MAX);
        for _ in 0..50 {
            hashes(100).for_each(|hash| filter.insert(hash));
        }
        assert_eq!(filter.layers(), 1);
    }

    #[test]
    fn a_filter_grows_to_its_bound_and_says_less_beyond() {
        let bytes_max = 64 * 1_024;
        let mut filter = Filter::new(1_000, bytes_max);
        hashes(200_000).for_each(|hash| filter.insert(hash));
        assert!(bytes(&filter) <= bytes_max);
        assert!(bytes(&filter) > bytes_max * 9 / 10, "{}", bytes(&filter));
        assert!(hashes(200_000).all(|hash| filter.may_hold(hash)));
        assert!(vain(|hash| filter.may_hold(hash)) > 10.0 * ERROR);
    }

    #[test]
    fn a_larger_table_gets_a_larger_filter_within_bounds() {
        let bits = |rows| Filter::for_rows(rows).layers[0].blocks.len();
        assert_eq!(bits(0), bits(CAPACITY_MIN / 2));
        assert!(bits(1_000) > bits(0));
        assert_eq!(bits(1 << 40), bits(u64::MAX));
        assert!(bytes(&Filter::for_rows(u64::MAX)) <= BYTES_MAX);
    }

    #[test]
    fn the_bytes_are_those_that_are_documented() {
        let mib_of = |layers: i32| {
            let error = |turn| ERROR_FIRST / 2_f64.powi(turn);
            let of_turn = |turn| Dimensions::of(CAPACITY_NEW << turn, error(turn)).blocks();
            (0..layers).map(of_turn).sum::<u64>() * BLOCK_BYTES / (1_024 * 1_024)
        };
        // For 1.6, 4.8, 11.2, 24, 49.6 and 100.8 million hashes; these are rounded down.
        assert_eq!([1, 2, 3, 4, 5, 6].map(mib_of), [1, 6, 16, 38, 86, 191]);
        assert!(mib_of(7) > 256, "the seventh is cut to what is left");
        assert_eq!(BYTES_MAX, 256 * 1_024 * 1_024);
    }

    #[test]
    fn a_filter_that_knows_nothing_says_so() {
        for mut filter in [Filter::default(), Filter::new(1_000, BLOCK_BYTES - 1)] {
            filter.insert(1);
            assert!(filter.may_hold(1) && filter.may_hold(2));
        }
    }

    #[test]
    fn an_overfull_filter_takes_every_hash_for_known() {
        let filter = Filter::overfull();
        assert!((-10_000..0).all(|hash| filter.may_hold(hash)));
        assert_eq!((filter.layers(), bytes(&filter)), (1, BLOCK_BYTES));
    }

    proptest! {
        #[test]
        fn nothing_that_was_put_in_is_ever_absent(
            capacity in 0_u64..200,
            bytes_max in prop_oneof![0_u64..2_000, Just(BYTES_MAX)],
            hashes in prop::collection::vec(prop_oneof![any::<i64>(), -50_i64..50], 0..1_500),
        ) {
            let mut filter = Filter::new(capacity, bytes_max);
            for (place, hash) in hashes.iter().enumerate() {
                filter.insert(*hash);
                prop_assert!(filter.may_hold(*hash));
                // One of those before, and at the end all of them.
                prop_assert!(filter.may_hold(hashes[place / 2]));
            }
            prop_assert!(hashes.iter().all(|hash| filter.may_hold(*hash)));
        }

        #[test]
        fn all_layers_together_keep_to_their_bytes(
            capacity in any::<u64>(),
            bytes_max in 0_u64..5_000_000,
            growths in 0_usize..40,
        ) {
            let mut filter = Filter::new(capacity, bytes_max);
            for _ in 0..growths {
                let capacity = filter.layers.last().map_or(1, |layer| 2 * layer.capacity);
                filter.grow(capacity);
            }
            prop_assert!(bytes(&filter) <= bytes_max);
            prop_assert_eq!(bytes(&filter) + filter.bytes_left, bytes_max);
        }
    }
}
