//! The ids of the network: letters of base64 that hold the world's numbers.
//!
//! Each id has the number in eleven letters at a fixed place, and what else belongs to its form is made from the
//! number: an id that somebody made up stands for nothing.

use crate::world::World;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// So many letters hold a number.
const NUMBER_LETTERS: usize = 11;
/// What all comments end with that begin a thread.
const THREAD_ENDING: &str = "4AaABAg";

/// A number in eleven letters.
pub(super) fn letters(number: u64) -> String {
    let digit = |place: u32| LETTERS[(number >> (6 * place) & 63) as usize] as char;
    (0..NUMBER_LETTERS as u32).rev().map(digit).collect()
}

fn number(text: &str) -> Option<u64> {
    if text.len() != NUMBER_LETTERS {
        return None;
    }
    let digits = text.bytes().map(|letter| {
        let place = LETTERS.iter().position(|known| *known == letter)?;
        u64::try_from(place).ok()
    });
    let mut number: u64 = 0;
    for digit in digits {
        // Eleven letters could hold two bits more than a number has.
        number = number.checked_mul(64)?.checked_add(digit?)?;
    }
    Some(number)
}

/// The number that stands in an id from some letter on.
fn number_at(id: &str, from: usize) -> Option<u64> {
    number(id.get(from..from + NUMBER_LETTERS)?)
}

/// Letters that say nothing, but are always the same for one number.
fn mixed(number: u64) -> String {
    letters((number ^ (number >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Channels: 24 letters that begin with `UC`.
#[derive(Debug)]
pub(super) struct ChannelId;

impl ChannelId {
    pub(super) fn of(world: &World, user: u64) -> String {
        format!("UC{}", Self::ending(world, user))
    }

    fn ending(world: &World, user: u64) -> String {
        let id = world.account_id(user);
        format!("{}{}", letters(id), mixed(id))
    }

    pub(super) fn user(world: &World, id: &str) -> Option<u64> {
        let user = world.user_with_id(number_at(id, 2)?)?;
        (Self::of(world, user) == id).then_some(user)
    }
}

/// The playlists of uploads: the channel's id that begins with `UU`.
#[derive(Debug)]
pub(super) struct PlaylistId;

impl PlaylistId {
    pub(super) fn of(world: &World, user: u64) -> String {
        format!("UU{}", ChannelId::ending(world, user))
    }

    pub(super) fn user(world: &World, id: &str) -> Option<u64> {
        let ending = id.strip_prefix("UU")?;
        ChannelId::user(world, &format!("UC{ending}"))
    }
}

/// Videos: 11 letters.
#[derive(Debug)]
pub(super) struct VideoId;

impl VideoId {
    pub(super) fn of(post_id: u64) -> String {
        letters(post_id)
    }

    pub(super) fn post(id: &str) -> Option<u64> {
        number(id)
    }
}

/// Comments: 26 letters that begin with `Ug`, and behind a point 22 more where one answers another.
#[derive(Debug)]
pub(super) struct CommentId;

impl CommentId {
    pub(super) fn of_thread(post_id: u64) -> String {
        format!(
            "Ug{}{}{THREAD_ENDING}",
            letters(post_id),
            &mixed(post_id)[..6]
        )
    }

    pub(super) fn of_reply(thread_id: u64, post_id: u64) -> String {
        let thread = Self::of_thread(thread_id);
        format!("{thread}.{}{}", letters(post_id), mixed(post_id))
    }

    /// The post, and the one that begins the thread if that is another.
    pub(super) fn post(id: &str) -> Option<(u64, Option<u64>)> {
        let (thread, reply) = match id.split_once('.') {
            Some((thread, reply)) => (thread, Some(reply)),
            None => (id, None),
        };
        let thread_id = number_at(thread, 2)?;
        if Self::of_thread(thread_id) != thread {
            return None;
        }
        let Some(reply) = reply else {
            return Some((thread_id, None));
        };
        let post_id = number_at(reply, 0)?;
        (Self::of_reply(thread_id, post_id) == id).then_some((post_id, Some(thread_id)))
    }
}

/// The number that no thing has: a page after it is the first.
pub(super) const BEGINNING: u64 = 0;

/// Where a page begins: after the thing with this number.
pub(super) fn page_token(after: u64) -> String {
    format!("CAE{}{}", letters(after), &mixed(after)[..4])
}

/// What a token says; none if it is no token.
pub(super) fn read_page_token(token: &str) -> Option<u64> {
    let after = number_at(token, 3)?;
    (page_token(after) == token).then_some(after)
}

/// A mark that is another one for another text: two halves of 64 bits each.
pub(super) fn mark(text: &[u8]) -> String {
    let half = |start: u64| {
        text.iter().fold(start, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
        })
    };
    let (first, second) = (half(0xCBF2_9CE4_8422_2325), half(0x6C62_272E_07BB_0142));
    format!("{}{}", mixed(first), mixed(second))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_are_read_as_they_are_written(post_id in any::<u64>(), thread_id in 1..u64::MAX) {
            prop_assert_eq!(VideoId::post(&VideoId::of(post_id)), Some(post_id));
            let thread = CommentId::of_thread(thread_id);
            prop_assert_eq!(thread.len(), 26);
            prop_assert_eq!(CommentId::post(&thread), Some((thread_id, None)));
            let reply = CommentId::of_reply(thread_id, post_id);
            prop_assert_eq!(CommentId::post(&reply), Some((post_id, Some(thread_id))));
            prop_assert_eq!(read_page_token(&page_token(thread_id)), Some(thread_id));
        }

        #[test]
        fn what_is_no_id_stands_for_nothing(text in "\\PC{0,40}") {
            prop_assert_eq!(CommentId::post(&text), None);
            prop_assert_eq!(read_page_token(&text), None);
            let found = VideoId::post(&text);
            prop_assert!(found.is_none_or(|post| VideoId::of(post) == text));
        }
    }

    #[test]
    fn channels_and_their_playlists_have_the_same_ending() {
        let world = World::new(3, 50, 1_790_000_000_000_000).unwrap();
        for user in 0..50 {
            let (channel, playlist) = (ChannelId::of(&world, user), PlaylistId::of(&world, user));
            assert_eq!((channel.len(), &channel[2..]), (24, &playlist[2..]));
            assert_eq!(ChannelId::user(&world, &channel), Some(user));
            assert_eq!(PlaylistId::user(&world, &playlist), Some(user));
            assert_eq!(ChannelId::user(&world, &playlist), None);
        }
        assert_eq!(ChannelId::user(&world, "UCé"), None);
        assert_eq!(read_page_token(&page_token(BEGINNING)), Some(BEGINNING));
    }
}
