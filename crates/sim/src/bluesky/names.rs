//! Names: accounts, records, hashes and places in lists.

use crate::world::World;
use crate::world::dice::mix;

const BASE_32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// The alphabet in which record keys keep the order of time.
const SORTED_32: &[u8; 32] = b"234567abcdefghijklmnopqrstuvwxyz";
const DID_LENGTH: usize = 24;
const RECORD_KEY_LENGTH: usize = 13;
const CID_LENGTH: usize = 52;
/// What every name of the directory begins with.
const DID_PREFIX: &str = "did:plc:";
/// Where everybody's handle is.
pub(super) const HANDLE_DOMAIN: &str = crate::HOST;
pub(super) const POST: &str = "app.bsky.feed.post";
pub(super) const REPOST: &str = "app.bsky.feed.repost";

/// A number in one of the two alphabets, most significant digit first.
fn written(mut number: u128, alphabet: &[u8; 32], length: usize) -> String {
    let mut digits = vec![0_u8; length];
    for digit in digits.iter_mut().rev() {
        *digit = alphabet[(number % 32) as usize];
        number /= 32;
    }
    digits.into_iter().map(char::from).collect()
}

fn read(text: &str, alphabet: &[u8; 32], length: usize) -> Option<u128> {
    if text.len() != length {
        return None;
    }
    text.bytes().try_fold(0_u128, |number, letter| {
        let digit = alphabet.iter().position(|&known| known == letter)?;
        Some(number * 32 + digit as u128)
    })
}

/// Digits of the name that are not the account's number are a check of it.
pub(super) fn did(world: &World, user: u64) -> String {
    let id = world.account_id(user);
    let number = u128::from(mix(id) & 0xFFFF_FFFF) << 64 | u128::from(id);
    format!("{DID_PREFIX}{}", written(number, BASE_32, DID_LENGTH))
}

pub(super) fn user_with_did(world: &World, did: &str) -> Option<u64> {
    let name = did.strip_prefix(DID_PREFIX)?;
    let number = read(name, BASE_32, DID_LENGTH)?;
    let user = world.user_with_id(number as u64)?;
    (self::did(world, user) == did).then_some(user)
}

pub(super) fn record_key(id: u64) -> String {
    written(u128::from(id), SORTED_32, RECORD_KEY_LENGTH)
}

pub(super) fn uri(world: &World, user: u64, collection: &str, id: u64) -> String {
    format!("at://{}/{collection}/{}", did(world, user), record_key(id))
}

/// Author and id of a post.
pub(super) fn post_of_uri(world: &World, uri: &str) -> Option<(u64, u64)> {
    let rest = uri.strip_prefix("at://")?;
    let (author, rest) = rest.split_once('/')?;
    let key = rest.strip_prefix(POST)?.strip_prefix('/')?;
    let id = u64::try_from(read(key, SORTED_32, RECORD_KEY_LENGTH)?).ok()?;
    Some((user_with_did(world, author)?, id))
}

/// A name that looks like the hash of a record, the same for the same record.
pub(super) fn cid(id: u64) -> String {
    let [high, low] = [mix(id), mix(id ^ u64::MAX)];
    let number = u128::from(high) << 64 | u128::from(low);
    let half = written(number, BASE_32, CID_LENGTH / 2);
    format!("bafyrei{half}{half}")
}

/// A place in a list: behind the item with an id.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) id: u64,
}

impl Cursor {
    pub(super) const fn after(id: u64) -> Self {
        Self { id }
    }

    pub(super) fn write(&self) -> String {
        format!("{}__{}", self.id >> 16, record_key(self.id))
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        let (_, key) = text.split_once("__")?;
        let id = read(key, SORTED_32, RECORD_KEY_LENGTH)?;
        Some(Self {
            id: u64::try_from(id).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_and_others_lead_nowhere() {
        let world = World::new(1, 50, 1_790_000_000_000_000).unwrap();
        for user in 0..50 {
            let did = did(&world, user);
            assert_eq!(did.len(), DID_PREFIX.len() + DID_LENGTH);
            assert_eq!(user_with_did(&world, &did), Some(user));
            let uri = uri(&world, user, POST, u64::MAX - user);
            assert_eq!(post_of_uri(&world, &uri), Some((user, u64::MAX - user)));
        }
        for other in [
            "",
            "did:plc:",
            "did:web:a",
            "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa",
            "did:plc:é",
        ] {
            assert_eq!(user_with_did(&world, other), None, "{other}");
        }
        let zeros = format!("at://{}/{POST}/zzzzzzzzzzzzz", did(&world, 0));
        assert_eq!(post_of_uri(&world, &zeros), None, "more than 64 bits");
    }

    #[test]
    fn record_keys_and_cursors_keep_the_order() {
        let keys: Vec<String> = [0, 1, 31, 32, 1 << 40, u64::MAX].map(record_key).to_vec();
        assert!(keys.is_sorted());
        let cursor = Cursor::after(1 << 50);
        assert_eq!(Cursor::read(&cursor.write()), Some(cursor));
        assert_eq!(Cursor::read("nonsense"), None);
    }
}
