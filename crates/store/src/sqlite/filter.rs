//! Which hashes are certainly not in a table, from memory.
//!
//! Nearly all ids that a crawl meets are new, and the most that asking SQLite for them brings is that
//! nothing is there. A Bloom filter says so for all but a few, at a fraction of the cost. It is made
//! when a file is opened and never holds a hash that is not in the table for long: one too many only
//! means that somebody asks in vain.

/// Words of the filter: 2 MiB, eight bits for each of two million hashes. With more of them it says less
/// and less, and takes no more room.
const WORDS: usize = if cfg!(test) { 8 } else { 1 << 18 };
/// Rows beyond which making the filter would take longer than it is worth.
pub(super) const ROWS_MAX: i64 = 8_000_000;

#[derive(Debug, Default)]
pub(super) struct Filter {
    /// Empty if nothing is known: then every hash may be there.
    words: Box<[u64]>,
}

impl Filter {
    /// A filter of a table that is empty.
    pub(super) fn of_nothing() -> Self {
        Self {
            words: vec![0; WORDS].into(),
        }
    }

    pub(super) fn insert(&mut self, hash: i64) {
        let (place, bits) = place_of(hash, self.words.len());
        if let Some(word) = self.words.get_mut(place) {
            *word |= bits;
        }
    }

    /// Whether the table may hold the hash.
    pub(super) fn may_hold(&self, hash: i64) -> bool {
        let (place, bits) = place_of(hash, self.words.len());
        self.words.get(place).is_none_or(|word| word & bits == bits)
    }
}

/// One word and four of its bits. The hashes are spread over all bits again, because anybody can choose
/// ids whose hashes are near each other.
const fn place_of(hash: i64, words: usize) -> (usize, u64) {
    let mixed = hash.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let mixed = mixed ^ (mixed >> 32);
    let place = if words == 0 {
        0
    } else {
        (mixed >> 24) as usize % words
    };
    let bits = 1 << (mixed & 63)
        | 1 << ((mixed >> 6) & 63)
        | 1 << ((mixed >> 12) & 63)
        | 1 << ((mixed >> 18) & 63);
    (place, bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_may_be_there_and_most_of_the_rest_is_not() {
        let mut filter = Filter {
            words: vec![0; 1 << 12].into(),
        };
        // As full as the real one with two million.
        let hashes = || (0_i64..1 << 15).map(|number| number * 7_919);
        hashes().for_each(|hash| filter.insert(hash));
        assert!(hashes().all(|hash| filter.may_hold(hash)));
        let wrong = (1_i64..100_000).filter(|number| filter.may_hold(-number * 104_729));
        let wrong = wrong.count();
        assert!(wrong < 10_000, "{wrong} of 100000");
    }

    #[test]
    fn a_filter_that_knows_nothing_says_so() {
        let mut filter = Filter::default();
        filter.insert(1);
        assert!(filter.may_hold(1) && filter.may_hold(2));
    }
}
