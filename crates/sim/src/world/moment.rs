//! A moment: the time at which one looks, and what was taken away before its time.
//!
//! Left to itself the world is a pure function of its seed and the time. Faults that change the
//! world are laid over it: whoever is banned, whatever is withdrawn is so for every question that
//! is asked at a later moment, and the world itself stays what it was.

use std::collections::HashMap;

use super::people::Standing;

/// See the module's documentation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub(crate) at_us: i64,
    withdrawn: Option<&'a Withdrawn>,
}

impl<'a> Moment<'a> {
    pub(crate) const fn new(at_us: i64, withdrawn: &'a Withdrawn) -> Self {
        Self {
            at_us,
            withdrawn: Some(withdrawn),
        }
    }

    /// A moment of the world as it would be if nothing had been taken away.
    pub(crate) const fn undisturbed(at_us: i64) -> Self {
        Self {
            at_us,
            withdrawn: None,
        }
    }

    /// The world as it was some time ago.
    pub(crate) const fn earlier(self, span_us: i64) -> Self {
        Self {
            at_us: self.at_us.saturating_sub(span_us),
            ..self
        }
    }

    /// Tells moments apart: two with one time and one version show the same.
    pub(crate) fn version(&self) -> (i64, usize) {
        (self.at_us, self.withdrawn.map_or(0, Withdrawn::count))
    }

    /// How a user stands who was banned before the time.
    pub(super) fn ban(&self, user: u64) -> Option<Standing> {
        let &(standing, from_us) = self.withdrawn?.users.get(&user)?;
        (from_us <= self.at_us).then_some(standing)
    }

    pub(super) fn is_post_withdrawn(&self, post_id: impl FnOnce() -> u64) -> bool {
        self.withdrawn.is_some_and(|withdrawn| {
            !withdrawn.posts.is_empty() && self.is_over(withdrawn.posts.get(&post_id()))
        })
    }

    pub(super) fn is_follow_withdrawn(&self, follow_id: u64) -> bool {
        self.withdrawn
            .is_some_and(|withdrawn| self.is_over(withdrawn.follows.get(&follow_id)))
    }

    fn is_over(&self, from_us: Option<&i64>) -> bool {
        from_us.is_some_and(|&from_us| from_us <= self.at_us)
    }
}

/// What was taken away, each with the time from which on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Withdrawn {
    users: HashMap<u64, (Standing, i64)>,
    posts: HashMap<u64, i64>,
    follows: HashMap<u64, i64>,
}

impl Withdrawn {
    pub(crate) fn ban(&mut self, user: u64, standing: Standing, from_us: i64) {
        self.users.entry(user).or_insert((standing, from_us));
    }

    pub(crate) fn withdraw_post(&mut self, post_id: u64, from_us: i64) {
        self.posts.entry(post_id).or_insert(from_us);
    }

    pub(crate) fn withdraw_follow(&mut self, follow_id: u64, from_us: i64) {
        self.follows.entry(follow_id).or_insert(from_us);
    }

    /// Only ever grows, so it tells one state from the next.
    pub(crate) fn count(&self) -> usize {
        self.users.len() + self.posts.len() + self.follows.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::World;
    use super::super::posts::{Link, Post};
    use super::*;

    const AT_US: i64 = 1_790_000_000_000_000;
    const BEFORE: Moment<'static> = Moment::undisturbed(AT_US);

    fn world() -> World {
        World::new(3, 400, AT_US).unwrap()
    }

    #[test]
    fn a_banned_user_is_in_nobodys_lists_from_then_on() {
        let world = world();
        let user = world.seed_users(BEFORE).next().unwrap();
        let mut withdrawn = Withdrawn::default();
        withdrawn.ban(user, Standing::Suspended, AT_US);
        let now = Moment::new(AT_US, &withdrawn);
        assert_eq!(world.standing(user, now), Standing::Suspended);
        assert!(world.timeline_up(user, now, 0).next().is_none());
        let followers = world.followers_at(user, BEFORE);
        assert!(!followers.is_empty());
        for edge in followers {
            let following = world.following_at(edge.source, now);
            assert!(following.iter().all(|edge| edge.target != user));
        }
        let earlier = Moment::new(AT_US - 1, &withdrawn);
        assert!(world.is_active(user, earlier));
        assert_ne!(now.version(), BEFORE.version());
    }

    #[test]
    fn a_withdrawn_follow_is_missing_at_both_ends_and_nothing_else_is() {
        let world = world();
        let user = world.seed_users(BEFORE).next().unwrap();
        let edge = world.followers_at(user, BEFORE)[0];
        let mut withdrawn = Withdrawn::default();
        withdrawn.withdraw_follow(edge.id, AT_US);
        let now = Moment::new(AT_US, &withdrawn);
        for (old, new) in [
            (
                world.followers_at(user, BEFORE),
                world.followers_at(user, now),
            ),
            (
                world.following_at(edge.source, BEFORE),
                world.following_at(edge.source, now),
            ),
        ] {
            assert!(old.contains(&edge) && !new.contains(&edge));
            assert_eq!(old.len(), new.len() + 1);
        }
    }

    #[test]
    fn a_withdrawn_post_goes_with_its_reposts_likes_and_place_in_the_thread() {
        let world = world();
        let posts = || (0..400).flat_map(|user| world.timeline_up(user, BEFORE, 0));
        let repost = posts().find(Post::is_repost).unwrap();
        let Link::Repost(target) = repost.link else {
            panic!("a repost repeats something");
        };
        let answer = posts()
            .find(|post| {
                matches!(post.link, Link::Reply(_)) && world.parent(post, BEFORE).is_some()
            })
            .unwrap();
        let parent = world.parent(&answer, BEFORE).unwrap();
        let mut withdrawn = Withdrawn::default();
        withdrawn.withdraw_post(target.id(), AT_US);
        withdrawn.withdraw_post(parent.id(), AT_US);
        let now = Moment::new(AT_US, &withdrawn);
        assert!(world.visible_post(target.id(), now).is_none());
        assert!(!world.is_visible(&repost, now));
        assert!(world.is_visible(&answer, now));
        assert_eq!(world.parent(&answer, now), None);
        let liked = |moment| {
            (0..400)
                .flat_map(|user| world.liked_by(user, moment))
                .filter(|(_, _, liked)| liked.id() == target.id())
                .count()
        };
        assert_eq!(liked(now), 0);
    }
}
