//! Threads: what a post answers, and what answered it, at one time.

use super::World;
use super::block::Like;
use super::moment::Moment;
use super::posts::{Draft, Link, Post};
use super::time::day_of;

/// How far a thread is followed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadLimits {
    pub(crate) ancestors: usize,
    pub(crate) descendants: usize,
    pub(crate) depth: usize,
}

/// How many visible reactions a post has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReactionCounts {
    pub(crate) replies: u64,
    pub(crate) reposts: u64,
    pub(crate) likes: u64,
}

impl World {
    /// The post that a reply answers, as long as it is visible.
    pub(crate) fn parent(&self, post: &Post, now: Moment<'_>) -> Option<Draft> {
        match post.link {
            Link::Reply(target) if self.is_draft_visible(&target, now) => Some(target),
            _ => None,
        }
    }

    /// The first visible post of the thread a post belongs to.
    pub(crate) fn root(&self, post: &Post, now: Moment<'_>) -> Post {
        self.ancestors(post, now, usize::MAX)
            .first()
            .copied()
            .unwrap_or(*post)
    }

    /// The visible posts above, the first of the thread first.
    pub(crate) fn ancestors(
        &self,
        post: &Post,
        now: Moment<'_>,
        ancestors_max: usize,
    ) -> Vec<Post> {
        let mut ancestors = Vec::new();
        let mut current = *post;
        // Every parent is older than its reply, so this ends.
        while ancestors.len() < ancestors_max
            && let Some(parent) = self.parent(&current, now)
            && let Some(found) = self.post_with_id(parent.id())
        {
            ancestors.push(found);
            current = found;
        }
        ancestors.reverse();
        ancestors
    }

    /// The visible posts below, each before its own replies.
    pub(crate) fn descendants(
        &self,
        post: &Post,
        now: Moment<'_>,
        limits: ThreadLimits,
    ) -> Vec<Post> {
        let mut found = Vec::new();
        let mut open = vec![(*post, 0)];
        while let Some((current, depth)) = open.pop() {
            if depth > 0 {
                if found.len() >= limits.descendants {
                    break;
                }
                found.push(current);
            }
            if depth < limits.depth {
                let replies = self.replies(&current, now);
                open.extend(replies.into_iter().rev().map(|reply| (reply, depth + 1)));
            }
        }
        found
    }

    /// The post that a thread began with, whether or not it is still there, or what lies between.
    pub(crate) fn beginning(&self, post: &Post) -> Post {
        self.above(post).last().copied().unwrap_or(*post)
    }

    /// All that stands above a post, visible or not, its parent first.
    pub(crate) fn above(&self, post: &Post) -> Vec<Post> {
        let mut above = Vec::new();
        let mut current = *post;
        // Every parent is older than its reply, so this ends.
        while let Link::Reply(target) = current.link
            && let Some(parent) = self.post_with_id(target.id())
        {
            above.push(parent);
            current = parent;
        }
        above
    }

    /// All that is visible below a post, also below what is gone, oldest first.
    pub(crate) fn all_below(&self, post: &Post, now: Moment<'_>) -> Vec<Post> {
        let mut found = Vec::new();
        let mut open = vec![*post];
        while let Some(current) = open.pop() {
            let block = self.block(&current.draft);
            let Some(reactions) = block.of(current.id()) else {
                continue;
            };
            open.extend(&reactions.replies);
            found.extend(self.only_visible(&reactions.replies, now));
        }
        found.sort_unstable_by_key(Post::id);
        found
    }

    /// Visible replies, oldest first.
    pub(crate) fn replies(&self, post: &Post, now: Moment<'_>) -> Vec<Post> {
        let block = self.block(&post.draft);
        let mut replies: Vec<Post> = block
            .of(post.id())
            .map(|reactions| self.only_visible(&reactions.replies, now))
            .unwrap_or_default();
        replies.sort_unstable_by_key(Post::id);
        replies
    }

    /// Visible reposts, newest first.
    pub(crate) fn reposts(&self, post: &Post, now: Moment<'_>) -> Vec<Post> {
        let block = self.block(&post.draft);
        let mut reposts: Vec<Post> = block
            .of(post.id())
            .map(|reactions| self.only_visible(&reactions.reposts, now))
            .unwrap_or_default();
        reposts.sort_unstable_by_key(|repost| std::cmp::Reverse(repost.id()));
        reposts
    }

    /// Likes of users who are shown, newest first.
    pub(crate) fn likes_at(&self, post: &Post, now: Moment<'_>) -> Vec<Like> {
        let block = self.block(&post.draft);
        let mut likes: Vec<Like> = block
            .of(post.id())
            .map(|reactions| {
                let shown =
                    |like: &&Like| like.holds_at(now.at_us) && self.is_active(like.user, now);
                reactions.likes.iter().filter(shown).copied().collect()
            })
            .unwrap_or_default();
        likes.sort_unstable_by_key(|like| std::cmp::Reverse(like.id()));
        likes
    }

    /// Which visible posts a user likes, by day and place within the day, oldest first.
    pub(crate) fn liked_by(
        &self,
        user: u64,
        now: Moment<'_>,
    ) -> impl Iterator<Item = (i64, usize, Draft)> {
        let is_active = self.is_active(user, now);
        (self.history_start_day..=day_of(now.at_us))
            .filter(move |_| is_active)
            .flat_map(move |day| {
                let likes = self.likes(user, day).into_iter().enumerate();
                likes.map(move |(place, (target, like))| (day, place, target, like))
            })
            .filter(move |(_, _, target, like)| {
                like.holds_at(now.at_us) && self.is_draft_visible(target, now)
            })
            .map(|(day, place, target, _)| (day, place, target))
    }

    pub(crate) fn reaction_counts(&self, post: &Post, now: Moment<'_>) -> ReactionCounts {
        // Reactions to a repost go to what it repeats.
        if post.is_repost() {
            return ReactionCounts::default();
        }
        ReactionCounts {
            replies: self.replies(post, now).len() as u64,
            reposts: self.reposts(post, now).len() as u64,
            likes: self.likes_at(post, now).len() as u64,
        }
    }

    fn only_visible(&self, posts: &[Post], now: Moment<'_>) -> Vec<Post> {
        posts
            .iter()
            .filter(|post| self.is_visible(post, now))
            .copied()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_US: i64 = 1_790_000_000_000_000;
    const NOW: Moment<'static> = Moment::undisturbed(AT_US);
    const LIMITS: ThreadLimits = ThreadLimits {
        ancestors: 40,
        descendants: 60,
        depth: 20,
    };

    #[test]
    fn a_reply_is_below_each_of_its_ancestors() {
        let world = World::new(5, 1_100, AT_US).unwrap();
        let mut deepest = 0;
        for user in 0..200 {
            for post in world.timeline_down(user, NOW, i64::MAX as u64) {
                let ancestors = world.ancestors(&post, NOW, LIMITS.ancestors);
                deepest = deepest.max(ancestors.len());
                for ancestor in ancestors {
                    assert!(world.descendants(&ancestor, NOW, LIMITS).contains(&post));
                }
            }
        }
        assert!(deepest >= 2, "{deepest}");
    }
}
