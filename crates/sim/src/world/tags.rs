//! Tags: which of them users show on their profiles, and which posts carry them.

use super::World;
use super::dice::{Dice, Purpose};
use super::moment::Moment;
use super::posts::Post;
use super::time::day_of;
use super::vocabulary::TAGS;

const FEATURING_PERMILLE: u64 = 350;
/// How many of a thousand of those who feature tags choose anew from time to time.
const CHOOSING_ANEW_PERMILLE: u64 = 300;
const CHOOSING_ANEW_DAYS: i64 = 25;

/// A tag that a user shows on the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FeaturedTag {
    /// The same whenever this user features this tag.
    pub(crate) id: u64,
    pub(crate) name: &'static str,
}

/// How often a user's visible posts carry a tag.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TagUse {
    pub(crate) statuses: u64,
    pub(crate) last_post_day: Option<i64>,
}

/// The place of a tag in the vocabulary, however it is spelt.
pub(crate) fn tag_place(name: &str) -> Option<usize> {
    let lower = name.to_lowercase();
    TAGS.iter().position(|&tag| tag == lower)
}

impl World {
    /// What a user shows on the profile, in the order of ids.
    pub(crate) fn featured_tags(&self, user: u64, now: Moment<'_>) -> Vec<FeaturedTag> {
        if !self.is_active(user, now) {
            return Vec::new();
        }
        let mut lasting = Dice::new(self.seed, Purpose::FeaturedTags, user, 0);
        if !lasting.chance(FEATURING_PERMILLE) {
            return Vec::new();
        }
        let count = 1 + lasting.below(4);
        let chooses_anew = lasting.chance(CHOOSING_ANEW_PERMILLE);
        let mut places: Vec<usize> = (1..=count)
            .map(|slot| {
                let phase = lasting.below(CHOOSING_ANEW_DAYS as u64) as i64;
                let generation = if chooses_anew {
                    ((day_of(now.at_us) + phase) / CHOOSING_ANEW_DAYS) as u64
                } else {
                    0
                };
                let when = (slot << 32) | generation;
                let mut dice = Dice::new(self.seed, Purpose::FeaturedTags, user, when);
                dice.below(TAGS.len() as u64) as usize
            })
            .collect();
        places.sort_unstable();
        places.dedup();
        places
            .into_iter()
            .map(|place| FeaturedTag {
                id: user * TAGS.len() as u64 + place as u64 + 1,
                name: TAGS[place],
            })
            .collect()
    }

    /// How often a user's visible posts carry each of some tags.
    pub(crate) fn tag_uses(&self, user: u64, now: Moment<'_>, tags: &[FeaturedTag]) -> Vec<TagUse> {
        let mut counted = vec![TagUse::default(); tags.len()];
        if tags.is_empty() {
            return counted;
        }
        for post in self.timeline_up(user, now, 0) {
            let carried = self.post_tags(&post);
            for (tag, tag_use) in tags.iter().zip(&mut counted) {
                if carried.contains(&tag.name) {
                    tag_use.statuses += 1;
                    tag_use.last_post_day = Some(post.draft.day);
                }
            }
        }
        counted
    }

    /// The tags that visible posts use, sorted. Ends early once the whole vocabulary was met, which
    /// in a large world is after a few hundred users.
    pub(crate) fn used_tags(&self, now: Moment<'_>) -> Vec<&'static str> {
        let mut found = std::collections::BTreeSet::new();
        for user in 0..self.users {
            for post in self.timeline_up(user, now, 0) {
                found.extend(self.post_tags(&post));
            }
            if found.len() == TAGS.len() {
                break;
            }
        }
        found.into_iter().collect()
    }

    /// The tags of a post, without writing out the rest of it.
    pub(crate) fn post_tags(&self, post: &Post) -> Vec<&'static str> {
        if post.is_repost() {
            return Vec::new();
        }
        let (_, tags, _) = self.mentions_and_tags(post);
        tags
    }
}

#[cfg(test)]
mod tests {
    use super::super::time::DAY_US;
    use super::*;

    const AT_US: i64 = 1_790_000_000_000_000;
    const NOW: Moment<'static> = Moment::undisturbed(AT_US);

    #[test]
    fn the_tags_of_a_post_are_those_of_its_text() {
        let world = World::new(4, 300, AT_US).unwrap();
        let mut tagged = 0;
        for user in 0..100 {
            for post in world.timeline_up(user, NOW, 0) {
                let tags = world.post_tags(&post);
                assert_eq!(tags, world.content(&post, AT_US).tags);
                tagged += usize::from(!tags.is_empty());
            }
        }
        assert!(tagged > 100, "{tagged}");
    }

    #[test]
    fn some_feature_tags_and_some_of_them_choose_anew() {
        let world = World::new(4, 1_000, AT_US).unwrap();
        let later = Moment::undisturbed(AT_US + 30 * DAY_US);
        let (mut featuring, mut changed) = (0, 0);
        for user in 0..1_000 {
            let now = world.featured_tags(user, NOW);
            let then = world.featured_tags(user, later);
            featuring += u32::from(!now.is_empty());
            changed += u32::from(!now.is_empty() && !then.is_empty() && now != then);
            assert!(now.is_sorted_by(|one, other| one.id < other.id));
        }
        assert!((250..450).contains(&featuring), "{featuring}");
        assert!((40..150).contains(&changed), "{changed}");
    }

    #[test]
    fn a_tag_is_found_however_it_is_spelt() {
        assert_eq!(tag_place("Birds"), Some(0));
        assert_eq!(tag_place("КНИГИ").map(|place| TAGS[place]), Some("книги"));
        assert_eq!(tag_place("nothing"), None);
    }
}
