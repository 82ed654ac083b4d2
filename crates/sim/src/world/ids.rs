//! Ids that decode: nothing has to be remembered to find what an id stands for.
//!
//! All are whole numbers of at most 63 bits, written in decimal, and grow with time where the
//! network's own ids do.

use super::dice::{Dice, Purpose};
use super::feistel::Permutation;

/// 2015-01-01T00:00:00Z: ids of posts and edges count their seconds from here.
pub(crate) const EPOCH_S: i64 = 1_420_070_400;
/// As many users as the bits of a post's id can tell apart.
pub(crate) const USERS_MAX: u64 = 1 << USER_BITS;

const SECOND_BITS: u32 = 30;
const USER_BITS: u32 = 28;
const ORDINAL_BITS: u32 = 5;
const BELOW_SECOND_BITS: u32 = USER_BITS + ORDINAL_BITS;

/// The last second ids can express (2049).
pub(crate) const LAST_S: i64 = EPOCH_S + (1 << SECOND_BITS) - 1;

const ACCOUNT_BASE: u64 = 109_000_000_000_000_000;
const ACCOUNT_STEP: u64 = 99_999_989;

fn seconds_part(at_s: i64) -> u64 {
    (at_s.clamp(EPOCH_S, LAST_S) - EPOCH_S) as u64
}

/// Sorts edges by their beginning; unique because a leaving stub has one edge.
pub(crate) fn follow_id(from_s: i64, leaving_stub: u64) -> u64 {
    (seconds_part(from_s) << BELOW_SECOND_BITS) | leaving_stub
}

/// Sorts likes of one post by time; unique because a user likes a post once.
pub(crate) fn like_id(at_s: i64, user: u64) -> u64 {
    (seconds_part(at_s) << BELOW_SECOND_BITS) | (user << ORDINAL_BITS)
}

/// A user writes at most one post in a second.
pub(crate) fn status_id(at_s: i64, user: u64, ordinal: u32) -> u64 {
    let ordinal_part = u64::from(ordinal) & ((1 << ORDINAL_BITS) - 1);
    (seconds_part(at_s) << BELOW_SECOND_BITS) | (user << ORDINAL_BITS) | ordinal_part
}

/// Unique because a post has its second for itself and no more than 32 pictures.
pub(crate) const fn media_id(status_id: u64, place: u64) -> u64 {
    (status_id >> ORDINAL_BITS << ORDINAL_BITS) | place
}

/// The second and the user a post's id was made from.
pub(crate) const fn status_id_parts(id: u64) -> (i64, u64) {
    let user = (id >> ORDINAL_BITS) & (USERS_MAX - 1);
    (status_id_second(id), user)
}

/// The second in a post's id; any number gives one, so that made-up ids can bound a page.
pub(crate) const fn status_id_second(id: u64) -> i64 {
    EPOCH_S + (id >> BELOW_SECOND_BITS) as i64
}

/// Account ids: numbers in an order that says nothing about the users.
#[derive(Debug)]
pub(crate) struct AccountIds {
    seed: u64,
    places: Permutation,
}

impl AccountIds {
    pub(crate) fn new(seed: u64, users: u64) -> Self {
        Self {
            seed,
            places: Permutation::new(seed, 4, users),
        }
    }

    pub(crate) fn encode(&self, user: u64) -> u64 {
        self.at_place(self.places.forward(user))
    }

    pub(crate) fn decode(&self, id: u64) -> Option<u64> {
        let place = id.checked_sub(ACCOUNT_BASE)? / ACCOUNT_STEP;
        (place < self.places.size() && self.at_place(place) == id)
            .then(|| self.places.backward(place))
    }

    fn at_place(&self, place: u64) -> u64 {
        let offset = Dice::new(self.seed, Purpose::AccountId, place, 0).below(ACCOUNT_STEP);
        ACCOUNT_BASE + place * ACCOUNT_STEP + offset
    }
}

/// A decimal id as the network writes it: no sign, no leading zero.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    if is_plain { text.parse().ok() } else { None }
}

/// As the real server's database reads a number: what does not start with one is 0.
pub(crate) fn as_number(text: &str) -> u64 {
    let digits = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    match &text[..digits] {
        "" => 0,
        number => number
            .parse()
            .unwrap_or(i64::MAX as u64)
            .min(i64::MAX as u64),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_ids_that_were_given_out_decode() {
        let ids = AccountIds::new(9, 1_000);
        for user in 0..1_000 {
            let id = ids.encode(user);
            assert_eq!(ids.decode(id), Some(user));
            assert_ne!(ids.decode(id + 1), Some(user));
            assert_eq!(id.to_string().len(), 18);
        }
        assert_eq!(ids.decode(0), None);
        assert_eq!(ids.decode(u64::MAX), None);
    }

    #[test]
    fn ids_with_a_sign_a_space_or_a_leading_zero_are_no_ids() {
        for text in [
            "",
            "-1",
            "+1",
            " 1",
            "01",
            "1\0",
            "１",
            "abc",
            "99999999999999999999",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert_eq!(parse("117"), Some(117));
    }

    proptest! {
        #[test]
        fn a_status_id_gives_back_second_and_user(
            at_s in EPOCH_S..=LAST_S,
            user in 0..USERS_MAX,
            ordinal in 0_u32..100,
        ) {
            let id = status_id(at_s, user, ordinal);
            prop_assert!(i64::try_from(id).is_ok());
            prop_assert_eq!(status_id_parts(id), (at_s, user));
        }

        #[test]
        fn later_posts_have_higher_ids(at_s in EPOCH_S..LAST_S, one in 0..USERS_MAX, other in 0..USERS_MAX) {
            prop_assert!(status_id(at_s, one, 31) < status_id(at_s + 1, other, 0));
        }
    }
}
