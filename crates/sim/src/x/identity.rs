//! Ids of posts, and what is shown of whom.
//!
//! An id of the real network tells the millisecond of its making, and so does one here; below it stands the author.
//! Ids of accounts are those of the world.

use super::problem::Hidden;
use crate::dialect::View;
use crate::world::time::DAY_US;
use crate::world::{Draft, Link, Post, Standing, World, ids};

/// 2010-11-04T01:42:54.657Z: ids of posts count their milliseconds from here.
const EPOCH_MS: i64 = 1_288_834_974_657;
const BELOW_MS_BITS: u32 = 22;
const USERS_TOLD_APART: u64 = 1 << BELOW_MS_BITS;
const MS_US: i64 = 1_000;

pub(super) fn post_id(draft: &Draft) -> u64 {
    let since_ms = (draft.at_us.div_euclid(MS_US) - EPOCH_MS).max(0) as u64;
    (since_ms << BELOW_MS_BITS) | (draft.user % USERS_TOLD_APART)
}

/// The time in an id; any number gives one.
pub(super) const fn time_of(id: u64) -> i64 {
    ((id >> BELOW_MS_BITS) as i64 + EPOCH_MS) * MS_US
}

/// The post that an id stands for, whether or not it is visible.
pub(super) fn post_with_id(world: &World, id: u64) -> Option<Post> {
    let at_us = time_of(id);
    let day = at_us.div_euclid(DAY_US);
    let is_it = |draft: &Draft| post_id(draft) == id;
    // In a world of more people than the bits tell apart there are some candidates; two of them do
    // not write in the same millisecond.
    let step = USERS_TOLD_APART as usize;
    let user = (id % USERS_TOLD_APART..world.users())
        .step_by(step)
        .find(|&user| world.drafts(user, day).iter().any(is_it))?;
    let posts = world.posts(user, day);
    posts.into_iter().find(|post| is_it(&post.draft))
}

impl View<'_> {
    pub(super) fn account_id(&self, user: u64) -> String {
        self.world.account_id(user).to_string()
    }

    pub(super) fn user_with_id(&self, text: &str) -> Option<u64> {
        ids::parse(text).and_then(|id| self.world.user_with_id(id))
    }

    pub(super) fn is_protected(&self, user: u64) -> bool {
        self.world.traits(user).is_locked
    }

    /// Why an account is not shown, if it is not.
    pub(super) fn hidden_user(&self, user: u64) -> Option<Hidden> {
        match self.world.standing(user, self.now) {
            Standing::Active => None,
            Standing::Suspended => Some(Hidden::Suspended),
            Standing::Gone => Some(Hidden::NotFound),
        }
    }

    /// Whether everybody sees a post.
    pub(super) fn shows(&self, post: &Post) -> bool {
        let repeats_protected = match post.link {
            Link::Repost(target) => self.is_protected(target.user),
            Link::None | Link::Reply(_) => false,
        };
        self.world.is_visible(post, self.now)
            && !self.is_protected(post.user())
            && !repeats_protected
    }

    /// A post that is shown, or why it is not.
    pub(super) fn shown_post(&self, id: u64) -> Result<Post, Hidden> {
        let post = post_with_id(self.world, id).ok_or(Hidden::NotFound)?;
        if self.shows(&post) {
            return Ok(post);
        }
        if self.world.standing(post.user(), self.now) == Standing::Suspended {
            return Err(Hidden::NotAuthorized);
        }
        let is_there = self.world.is_visible(&post, self.now);
        if is_there && self.is_protected(post.user()) {
            return Err(Hidden::NotAuthorized);
        }
        Err(Hidden::NotFound)
    }

    /// The first post of a conversation, shown or not.
    pub(super) fn first_of_conversation(&self, post: &Post) -> Draft {
        let mut first = *post;
        // Every parent is older than its reply, so this ends.
        while let Link::Reply(parent) = first.link
            && let Some(found) = self.world.post_with_id(parent.id())
        {
            first = found;
        }
        first.draft
    }

    /// What answers a post, shown or not; with the answers to answers, if so wanted.
    pub(super) fn answers(&self, post: &Post, is_whole_thread: bool) -> Vec<Post> {
        let mut found = Vec::new();
        let mut open = vec![*post];
        while let Some(current) = open.pop() {
            let block = self.world.block(&current.draft);
            let Some(reactions) = block.of(current.id()) else {
                continue;
            };
            found.extend_from_slice(&reactions.replies);
            if is_whole_thread {
                open.extend_from_slice(&reactions.replies);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Moment;

    #[test]
    fn ids_lead_back_to_their_posts_and_tell_their_times() {
        let at_us = 1_790_000_000_000_000;
        for (seed, users) in [(3, 300), (4, 20_000_000)] {
            let world = World::new(seed, users, at_us).unwrap();
            let now = Moment::undisturbed(at_us);
            let mut seen = 0;
            for user in (0..users).step_by(users as usize / 50) {
                for post in world.timeline_down(user, now, i64::MAX as u64).take(20) {
                    let id = post_id(&post.draft);
                    assert_eq!(post_with_id(&world, id), Some(post));
                    assert_eq!(time_of(id), post.draft.at_us);
                    seen += 1;
                }
            }
            assert!(seen > 100, "{seen}");
            for id in [0, 1, u64::MAX, i64::MAX as u64] {
                assert_eq!(post_with_id(&world, id), None);
            }
        }
    }
}
