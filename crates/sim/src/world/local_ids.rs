//! The ids that one instance gives to people and to what they write.
//!
//! Every instance has ids of its own for whatever it knows, in the form of its software. All of them
//! decode, so that nothing has to be remembered: an id that an instance has shown is an id there.

use super::dice::{Dice, Purpose, mix};
use super::feistel::Permutation;
use super::ids::{self, EPOCH_S};

/// Bits of an id below its second.
const LOW_BITS: u32 = 33;
const LOW_MASK: u64 = (1 << LOW_BITS) - 1;
const ULID_DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID_LENGTH: usize = 26;
/// Bits of a ULID behind those that say something.
const ULID_FILL_BITS: u32 = 47;
const FLAKE_DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const FLAKE_LENGTH: usize = 18;
const FLAKE_FILL_BITS: u32 = 31;
const PLACE_BITS_BELOW: u32 = 5;

/// How the ids of a software look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdForm {
    /// Whole numbers.
    Decimal,
    /// 26 digits of base 32, the time first.
    Ulid,
    /// 18 digits of base 62, the time first.
    Flake,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct LocalIds {
    form: IdForm,
    /// Makes what fills an id differ between instances.
    salt: u64,
    /// The order in which this instance got to know everybody.
    places: Permutation,
    account_base: u64,
    account_step: u64,
    /// By how much its numbers for posts are below those of others.
    items_below: u64,
}

impl LocalIds {
    /// `spare_s`: so many seconds lie between the epoch of ids and the oldest thing that has one.
    pub(crate) fn new(seed: u64, instance: u64, users: u64, form: IdForm, spare_s: u64) -> Self {
        let mut dice = Dice::new(seed, Purpose::LocalId, instance, 0);
        let magnitude = 10_u64.pow(5 + dice.below(12) as u32);
        Self {
            form,
            salt: dice.next(),
            places: Permutation::new(seed, 100 + instance, users),
            account_base: magnitude + dice.below(magnitude),
            account_step: 3 + dice.below(50_000),
            items_below: match form {
                IdForm::Decimal => (dice.below(spare_s + 1) << LOW_BITS) | dice.below(1 << 20),
                // The time in these is that of what they stand for.
                IdForm::Ulid | IdForm::Flake => 0,
            },
        }
    }

    pub(crate) fn account(&self, user: u64) -> String {
        self.written(self.account_number(self.places.forward(user)))
    }

    /// Whom an id stands for.
    pub(crate) fn user(&self, text: &str) -> Option<u64> {
        let number = self.read(text)?;
        let place = match self.form {
            IdForm::Decimal => number.checked_sub(self.account_base)? / self.account_step,
            IdForm::Ulid | IdForm::Flake => (number & LOW_MASK) >> PLACE_BITS_BELOW,
        };
        (place < self.places.size() && self.account_number(place) == number)
            .then(|| self.places.backward(place))
    }

    /// The id of a post, a follow or a like. Grows with the number that it is made from.
    pub(crate) fn item(&self, id: u64) -> String {
        self.written(id.saturating_sub(self.items_below))
    }

    pub(crate) fn read_item(&self, text: &str) -> Option<u64> {
        self.read(text)?.checked_add(self.items_below)
    }

    /// Where a page begins or ends that is bounded by a text, whether or not it is an id.
    pub(crate) fn bound(&self, text: &str) -> u64 {
        let below_all = match self.form {
            IdForm::Decimal => ids::as_number(text),
            IdForm::Ulid => ulid_number(text).unwrap_or(0),
            IdForm::Flake => flake_number(text).unwrap_or(0),
        };
        below_all
            .saturating_add(self.items_below)
            .min(i64::MAX as u64)
    }

    fn account_number(&self, place: u64) -> u64 {
        let mut dice = Dice::new(self.salt, Purpose::LocalId, place, 1);
        match self.form {
            IdForm::Decimal => {
                self.account_base + place * self.account_step + dice.below(self.account_step)
            }
            // At some second within eight years of the epoch.
            IdForm::Ulid | IdForm::Flake => {
                (dice.below(1 << 28) << LOW_BITS) | (place << PLACE_BITS_BELOW)
            }
        }
    }

    fn written(&self, number: u64) -> String {
        let milliseconds = (EPOCH_S as u128 + u128::from(number >> LOW_BITS)) * 1_000;
        let low = u128::from(number & LOW_MASK);
        let fill = mix(self.salt ^ mix(number));
        match self.form {
            IdForm::Decimal => number.to_string(),
            IdForm::Ulid => {
                let fill = u128::from(fill & ((1 << ULID_FILL_BITS) - 1));
                let value = (milliseconds << 80) | (low << ULID_FILL_BITS) | fill;
                in_base(value, ULID_DIGITS, ULID_LENGTH)
            }
            IdForm::Flake => {
                let fill = u128::from(fill & ((1 << FLAKE_FILL_BITS) - 1));
                let value = (milliseconds << 64) | (low << FLAKE_FILL_BITS) | fill;
                in_base(value, FLAKE_DIGITS, FLAKE_LENGTH)
            }
        }
    }

    /// The number in an id that was given out here.
    fn read(&self, text: &str) -> Option<u64> {
        let number = match self.form {
            IdForm::Decimal => ids::parse(text),
            IdForm::Ulid => ulid_number(text),
            IdForm::Flake => flake_number(text),
        }?;
        (self.written(number) == text).then_some(number)
    }
}

fn ulid_number(text: &str) -> Option<u64> {
    let value = from_base(text, ULID_DIGITS, ULID_LENGTH)?;
    number_at(value >> 80, (value >> ULID_FILL_BITS) as u64)
}

fn flake_number(text: &str) -> Option<u64> {
    let value = from_base(text, FLAKE_DIGITS, FLAKE_LENGTH)?;
    number_at(value >> 64, (value >> FLAKE_FILL_BITS) as u64)
}

fn number_at(milliseconds: u128, low: u64) -> Option<u64> {
    let second = u64::try_from(milliseconds / 1_000).ok()?;
    let since = second.checked_sub(EPOCH_S as u64)?;
    (since < 1 << 30).then_some((since << LOW_BITS) | (low & LOW_MASK))
}

fn in_base(mut value: u128, digits: &[u8], length: usize) -> String {
    let base = digits.len() as u128;
    let mut written = vec![b'0'; length];
    for place in written.iter_mut().rev() {
        *place = digits[(value % base) as usize];
        value /= base;
    }
    written.into_iter().map(char::from).collect()
}

fn from_base(text: &str, digits: &[u8], length: usize) -> Option<u128> {
    if text.len() != length {
        return None;
    }
    text.bytes().try_fold(0_u128, |value, letter| {
        let digit = digits.iter().position(|&candidate| candidate == letter)?;
        value
            .checked_mul(digits.len() as u128)?
            .checked_add(digit as u128)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const USERS: u64 = 700;
    const FORMS: [IdForm; 3] = [IdForm::Decimal, IdForm::Ulid, IdForm::Flake];

    fn local_ids(instance: u64, form: IdForm) -> LocalIds {
        LocalIds::new(5, instance, USERS, form, 100_000_000)
    }

    #[test]
    fn ids_of_people_decode_are_never_the_same_twice_and_differ_between_instances() {
        for form in FORMS {
            let (one, other) = (local_ids(0, form), local_ids(1, form));
            let mut seen = BTreeSet::new();
            for user in 0..USERS {
                let id = one.account(user);
                assert_eq!(one.user(&id), Some(user));
                assert_ne!(id, other.account(user));
                assert_ne!(other.user(&id), Some(user));
                assert!(seen.insert(id));
            }
        }
    }

    #[test]
    fn instances_know_people_in_orders_of_their_own() {
        let order = |instance| {
            let ids = local_ids(instance, IdForm::Decimal);
            let mut users: Vec<u64> = (0..USERS).collect();
            users.sort_by_key(|&user| ids.account(user).parse::<u64>().unwrap());
            users
        };
        assert_ne!(order(0), order(1));
    }

    #[test]
    fn what_was_never_given_out_is_no_id_but_bounds_a_page() {
        for form in FORMS {
            let ids = local_ids(3, form);
            for text in ["", "0", "zzz", "é", "ILOU0123456789ABCDEFGHJKMN"] {
                assert_eq!((ids.user(text), ids.read_item(text)), (None, None));
            }
            assert!(i64::try_from(ids.bound("nonsense")).is_ok());
        }
        let ulid = local_ids(3, IdForm::Ulid);
        assert_eq!(ulid.bound("7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), 0);
    }

    proptest! {
        #[test]
        fn later_things_have_higher_ids_in_every_form(
            one in (100_000_001_u64 << LOW_BITS)..(1 << 62),
            more in 1_u64..(1 << 61),
        ) {
            for form in FORMS {
                let ids = local_ids(2, form);
                let (first, second) = (ids.item(one), ids.item(one + more));
                prop_assert_eq!(ids.read_item(&first), Some(one));
                prop_assert_eq!(ids.bound(&first), one);
                prop_assert!((first.len(), first) < (second.len(), second));
            }
        }
    }
}
