//! Follow lists and counts at one time.

use super::World;
use super::graph::Follow;
use super::moment::Moment;

/// The counts a profile shows: exactly what the lists would give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) followers: u64,
    pub(crate) following: u64,
    pub(crate) statuses: u64,
    pub(crate) last_post_day: Option<i64>,
}

/// Beyond every id.
const NO_BOUND: u64 = i64::MAX as u64;

impl World {
    /// Whom a user follows, the newest edge first.
    pub(crate) fn following_at(&self, user: u64, now: Moment<'_>) -> Vec<Follow> {
        self.shown(user, self.graph.following(user), now)
    }

    /// Who follows a user, the newest edge first.
    pub(crate) fn followers_at(&self, user: u64, now: Moment<'_>) -> Vec<Follow> {
        self.shown(user, self.graph.followers(user), now)
    }

    pub(crate) fn counts(&self, user: u64, now: Moment<'_>) -> Counts {
        let mut posts = self.timeline_down(user, now, NO_BOUND);
        let newest = posts.next();
        Counts {
            followers: self.followers_at(user, now).len() as u64,
            following: self.following_at(user, now).len() as u64,
            statuses: u64::from(newest.is_some()) + posts.count() as u64,
            last_post_day: newest.map(|post| post.draft.day),
        }
    }

    /// Users to begin with: the most followed who post, are shown and follow somebody, and let
    /// others see whom.
    pub(crate) fn seed_users(&self, now: Moment<'_>) -> impl Iterator<Item = u64> {
        (0..self.users)
            .map(|position| self.graph.by_fame(position))
            .filter(move |&user| {
                if self.hides_lists(user) {
                    return false;
                }
                let counts = self.counts(user, now);
                counts.statuses > 0 && counts.followers > 0 && counts.following > 0
            })
    }

    /// Whether a user keeps both lists to themselves. The counts stay, and so does the user's place
    /// in the lists of others.
    pub(crate) fn hides_lists(&self, user: u64) -> bool {
        self.wishes(user).hide_collections == Some(true)
    }

    /// A banned user's edges are hidden, from whichever end one looks.
    fn shown(&self, user: u64, mut edges: Vec<Follow>, now: Moment<'_>) -> Vec<Follow> {
        if !self.is_active(user, now) {
            return Vec::new();
        }
        edges.retain(|edge| {
            let other = if edge.source == user {
                edge.target
            } else {
                edge.source
            };
            edge.holds_at(now.at_us)
                && self.is_active(other, now)
                && !now.is_follow_withdrawn(edge.id)
        });
        edges.sort_unstable_by_key(|edge| std::cmp::Reverse(edge.id));
        edges
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::time::DAY_US;
    use super::*;

    const AT_US: i64 = 1_790_000_000_000_000;
    const NOW: Moment<'static> = Moment::undisturbed(AT_US);

    #[test]
    fn both_lists_agree_at_every_time() {
        for (seed, users) in [(1, 1), (7, 3), (2, 300), (3, 2_000)] {
            let world = World::new(seed, users, AT_US).unwrap();
            for days in [-400, 0, 1, 45, 200] {
                let now = Moment::undisturbed(AT_US + days * DAY_US);
                let pairs = |lists: Vec<Vec<Follow>>| -> BTreeSet<(u64, u64)> {
                    lists
                        .iter()
                        .flatten()
                        .map(|edge| (edge.source, edge.target))
                        .collect()
                };
                let following = pairs(
                    (0..users)
                        .map(|user| world.following_at(user, now))
                        .collect(),
                );
                let followers = pairs(
                    (0..users)
                        .map(|user| world.followers_at(user, now))
                        .collect(),
                );
                assert_eq!(following, followers, "seed {seed}, {days} days");
            }
        }
    }

    #[test]
    fn nobody_follows_or_is_followed_while_banned() {
        let world = World::new(3, 2_000, AT_US).unwrap();
        let banned: Vec<u64> = (0..2_000)
            .filter(|&user| !world.is_active(user, NOW))
            .collect();
        assert!(!banned.is_empty());
        for user in banned {
            let counts = world.counts(user, NOW);
            assert_eq!(
                (counts.followers, counts.following, counts.statuses),
                (0, 0, 0)
            );
        }
    }

    #[test]
    fn some_lists_need_several_pages() {
        let world = World::new(1, 2_000, AT_US).unwrap();
        let long = (0..2_000)
            .filter(|&user| world.followers_at(user, NOW).len() > 80)
            .count();
        assert!(long >= 20, "{long}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn lists_agree_in_any_world_at_any_time(seed: u64, users in 1_u64..80, days in -1_000_i64..700) {
            let world = World::new(seed, users, AT_US).unwrap();
            let now = Moment::undisturbed(AT_US + days * DAY_US);
            for source in 0..users {
                let following = world.following_at(source, now);
                for target in 0..users {
                    let is_listed = following.iter().any(|edge| edge.target == target);
                    let followers = world.followers_at(target, now);
                    prop_assert_eq!(is_listed, followers.iter().any(|edge| edge.source == source));
                }
            }
        }
    }
}
