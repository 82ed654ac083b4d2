//! The number under which an id is filed.
//!
//! An index over numbers is a fraction of one over texts. The number only narrows a search down:
//! whoever looks an id up compares the texts as well, so two ids of one number do no harm.

/// In the crate's own tests the numbers are few, so that every property is also tried where
/// different ids have the same number.
const MASK: u64 = if cfg!(test) { 63 } else { u64::MAX };

/// The number of an id. It is written in files, so it never changes: FNV-1a (64 bits) over
/// network, type, alias, host and id, with the byte 0xFF, which no text contains, between them.
pub(crate) fn id_hash(network: &str, kind: &str, alias: &str, host: &str, id: &str) -> i64 {
    (fnv_1a([network, kind, alias, host, id]) & MASK).cast_signed()
}

fn fnv_1a(parts: [&str; 5]) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for (place, part) in parts.iter().enumerate() {
        let separator: &[u8] = if place == 0 { &[] } else { &[0xFF] };
        for byte in separator.iter().chain(part.as_bytes()) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_never_changes() {
        assert_eq!(
            fnv_1a(["mastodon", "user", "id", "example.social", "109"]),
            0x379D_C653_C277_6299
        );
    }

    #[test]
    fn what_stands_where_matters() {
        assert_ne!(
            fnv_1a(["a", "b", "", "", "c"]),
            fnv_1a(["a", "", "b", "", "c"])
        );
        assert_ne!(
            fnv_1a(["ab", "", "", "", ""]),
            fnv_1a(["a", "b", "", "", ""])
        );
    }
}
