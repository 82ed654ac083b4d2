//! Maps by numbers that nobody outside can choose: keys that the store gave away, keyed hashes.
//!
//! The standard hasher defends against chosen keys, which costs more than all else that these maps
//! do.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;
pub(crate) type NumberSet<K> = HashSet<K, BuildHasherDefault<Spread>>;

/// Spreads numbers over all bits: consecutive ones must not end up side by side.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Spread(u64);

impl Spread {
    const fn mix(&mut self, number: u64) {
        let mixed = (self.0.rotate_left(26) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.mix(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.mix(number);
    }

    fn write_i64(&mut self, number: i64) {
        self.mix(number.cast_unsigned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::{BuildHasher as _, BuildHasherDefault};

    #[test]
    fn consecutive_keys_spread_over_the_table() {
        let build = BuildHasherDefault::<Spread>::default();
        let low: HashSet<u64> = (0_i64..4_096)
            .map(|key| build.hash_one(key) & 0xFFFF)
            .collect();
        let high: HashSet<u64> = (0_i64..4_096)
            .map(|key| build.hash_one(key) >> 57)
            .collect();
        assert!(low.len() > 3_800, "{}", low.len());
        assert_eq!(high.len(), 128);
    }
}
