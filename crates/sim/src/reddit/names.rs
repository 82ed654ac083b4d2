//! How things are called: `t1_` and so on, and a number in letters and digits.

use crate::world::{Link, Post, TAGS, World, tag_place};

const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
/// Numbers of subreddits that belong to tags, and to people.
const TAG_BASE: u64 = 2_000_000;
const OWN_BASE: u64 = 1 << 40;

pub(super) fn base36(mut number: u64) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(DIGITS[(number % 36) as usize] as char);
        number /= 36;
        if number == 0 {
            break;
        }
    }
    letters.iter().rev().collect()
}

/// A number as it is written here, and in no other way.
pub(super) fn number(letters: &str) -> Option<u64> {
    let number = u64::from_str_radix(letters, 36).ok()?;
    (base36(number) == letters).then_some(number)
}

pub(super) const fn is_comment(post: &Post) -> bool {
    matches!(post.link, Link::Reply(_))
}

/// `t3_` or `t1_`, and the number.
pub(super) fn fullname(post: &Post) -> String {
    let kind = if is_comment(post) { "t1" } else { "t3" };
    format!("{kind}_{}", base36(post.id()))
}

/// Where a post is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subreddit {
    Tag(usize),
    Own(u64),
}

impl Subreddit {
    /// That of the post with which a thread began.
    pub(super) fn of(world: &World, post: &Post) -> Self {
        let first = world.post_tags(post).first().copied();
        let place = first.and_then(tag_place);
        place.map_or(Self::Own(post.user()), Self::Tag)
    }

    pub(super) fn named(world: &World, name: &str, at_us: i64) -> Option<Self> {
        if let Some(owner) = name.strip_prefix("u_") {
            return world.user_named(owner, at_us).map(Self::Own);
        }
        let place = match name.strip_prefix("tag_") {
            Some(place) => place.parse().ok(),
            None => tag_place(name),
        };
        let found = Self::Tag(place.filter(|&place| place < TAGS.len())?);
        // Names are found however they are spelt, but no subreddit has two.
        found
            .name(world, at_us)
            .eq_ignore_ascii_case(name)
            .then_some(found)
    }

    /// Names have letters and digits of ASCII only.
    pub(super) fn name(self, world: &World, at_us: i64) -> String {
        match self {
            Self::Tag(place) if TAGS[place].bytes().all(|it| it.is_ascii_alphanumeric()) => {
                TAGS[place].to_owned()
            }
            Self::Tag(place) => format!("tag_{place}"),
            Self::Own(user) => format!("u_{}", world.username(user, at_us)),
        }
    }

    pub(super) fn fullname(self) -> String {
        let number = match self {
            Self::Tag(place) => TAG_BASE + place as u64,
            Self::Own(user) => OWN_BASE + user,
        };
        format!("t5_{}", base36(number))
    }

    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Tag(_) => "public",
            Self::Own(_) => "user",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_one_way_only() {
        for value in [0, 35, 36, 1_000_000_007, u64::MAX] {
            assert_eq!(number(&base36(value)), Some(value));
        }
        for text in ["", "0a", "A", "+1", "zzzzzzzzzzzzzzzzz", "é"] {
            assert_eq!(number(text), None, "{text:?}");
        }
    }
}
