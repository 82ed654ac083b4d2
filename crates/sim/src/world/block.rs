//! Blocks: who reacted to what, among 1 024 users on one day.
//!
//! Replies, reposts and likes stay inside a block, so the reverse index of a block is computed
//! from its members alone. Blocks are made when asked for and kept in a cache of fixed size.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::World;
use super::dice::{Dice, Purpose};
use super::ids;
use super::people::Kind;
use super::posts::{Draft, Link, Post};
use super::time::{DAY_US, SECOND_US};

const BLOCK_USERS: u64 = 1_024;
/// Reactions kept over all cached blocks; about 100 bytes each.
const CACHED_REACTIONS_MAX: usize = 400_000;
const CACHED_BLOCKS_MAX: usize = 4_096;
/// How many of a thousand likes are taken back, an hour to some weeks later.
const WITHDRAWN_PERMILLE: u64 = 100;

/// The users of the block a user belongs to.
pub(crate) fn members(user: u64, users: u64) -> Range<u64> {
    let first = user / BLOCK_USERS * BLOCK_USERS;
    first..users.min(first + BLOCK_USERS)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Like {
    pub(crate) user: u64,
    pub(crate) at_us: i64,
    until_us: i64,
}

impl Like {
    pub(crate) fn id(&self) -> u64 {
        ids::like_id(self.at_us.div_euclid(SECOND_US), self.user)
    }

    pub(crate) const fn holds_at(&self, at_us: i64) -> bool {
        self.at_us <= at_us && at_us < self.until_us
    }
}

/// What one post met with, oldest first within an author.
#[derive(Debug, Default, Clone)]
pub(crate) struct Reactions {
    pub(crate) replies: Vec<Post>,
    pub(crate) reposts: Vec<Post>,
    pub(crate) likes: Vec<Like>,
}

#[derive(Debug)]
pub(crate) struct Block {
    by_post: HashMap<u64, Reactions>,
    reactions_count: usize,
}

impl Block {
    pub(crate) fn of(&self, post_id: u64) -> Option<&Reactions> {
        self.by_post.get(&post_id)
    }
}

impl World {
    /// The block a post belongs to.
    pub(crate) fn block(&self, draft: &Draft) -> Arc<Block> {
        let key = (draft.user / BLOCK_USERS, draft.day);
        if let Some(block) = self.blocks.get(key) {
            return block;
        }
        let block = Arc::new(self.make_block(draft.user, draft.day));
        self.blocks.put(key, Arc::clone(&block));
        block
    }

    fn make_block(&self, user: u64, day: i64) -> Block {
        let mut by_post: HashMap<u64, Reactions> = HashMap::new();
        let mut reactions_count = 0;
        for member in members(user, self.users) {
            for post in self.posts(member, day) {
                match post.link {
                    Link::None => continue,
                    Link::Reply(target) => {
                        by_post.entry(target.id()).or_default().replies.push(post);
                    }
                    Link::Repost(target) => {
                        by_post.entry(target.id()).or_default().reposts.push(post);
                    }
                }
                reactions_count += 1;
            }
            for (target, like) in self.likes(member, day) {
                by_post.entry(target.id()).or_default().likes.push(like);
                reactions_count += 1;
            }
        }
        Block {
            by_post,
            reactions_count,
        }
    }

    /// What a user liked on a day, each post once.
    pub(crate) fn likes(&self, user: u64, day: i64) -> Vec<(Draft, Like)> {
        let pace = self.pace_on(user, day);
        let mut dice = Dice::new(self.seed, Purpose::Likes, user, day as u64);
        let likes_max = match pace.kind() {
            Kind::Inactive => u64::from(dice.chance(200)),
            Kind::Regular => dice.below(5),
            Kind::Unstable => dice.below(4),
            Kind::Authority => dice.below(2),
        };
        let mut liked = BTreeSet::new();
        (0..likes_max)
            .filter_map(|_| {
                let at_us = day * DAY_US + pace.second_of_day(&mut dice) * SECOND_US;
                let target = self.target(&mut dice, user, day, at_us)?;
                let until_us = if dice.chance(WITHDRAWN_PERMILLE) {
                    at_us + dice.long_tail(3_600, 9) as i64 * SECOND_US
                } else {
                    i64::MAX
                };
                let like = Like {
                    user,
                    at_us,
                    until_us,
                };
                liked.insert(target.id()).then_some((target, like))
            })
            .collect()
    }
}

/// The blocks asked for last.
#[derive(Debug, Default)]
pub(crate) struct BlockCache {
    inner: Mutex<CacheInner>,
}

#[derive(Debug, Default)]
struct CacheInner {
    blocks: HashMap<(u64, i64), (Arc<Block>, u64)>,
    reactions_count: usize,
    uses: u64,
}

impl BlockCache {
    fn get(&self, key: (u64, i64)) -> Option<Arc<Block>> {
        // A panic elsewhere leaves the cache complete: it is changed by whole entries only.
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.uses += 1;
        let now = inner.uses;
        inner.blocks.get_mut(&key).map(|(block, last_use)| {
            *last_use = now;
            Arc::clone(block)
        })
    }

    fn put(&self, key: (u64, i64), block: Arc<Block>) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.uses += 1;
        let now = inner.uses;
        inner.reactions_count += block.reactions_count;
        if let Some((old, _)) = inner.blocks.insert(key, (block, now)) {
            inner.reactions_count -= old.reactions_count;
        }
        while inner.blocks.len() > 1
            && (inner.blocks.len() > CACHED_BLOCKS_MAX
                || inner.reactions_count > CACHED_REACTIONS_MAX)
        {
            inner.drop_oldest();
        }
    }

    #[cfg(test)]
    pub(crate) fn size(&self) -> (usize, usize) {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        (inner.blocks.len(), inner.reactions_count)
    }
}

impl CacheInner {
    fn drop_oldest(&mut self) {
        let oldest = self
            .blocks
            .iter()
            .min_by_key(|(_, (_, last_use))| *last_use);
        if let Some(key) = oldest.map(|(key, _)| *key)
            && let Some((block, _)) = self.blocks.remove(&key)
        {
            self.reactions_count -= block.reactions_count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_US: i64 = 1_790_000_000_000_000;

    #[test]
    fn a_block_lists_what_its_members_did() {
        let world = World::new(2, 1_500, AT_US).unwrap();
        let day = world.anchor_day - 1;
        let mut replies = 0;
        for user in 0..1_500 {
            for post in world.posts(user, day) {
                if let Link::Reply(target) = post.link {
                    let block = world.block(&target);
                    assert!(block.of(target.id()).unwrap().replies.contains(&post));
                    replies += 1;
                }
            }
        }
        assert!(replies > 20, "{replies}");
    }

    #[test]
    fn the_cache_holds_no_more_than_so_many_blocks() {
        let cache = BlockCache::default();
        for number in 0..CACHED_BLOCKS_MAX as u64 + 5 {
            let block = Block {
                by_post: HashMap::new(),
                reactions_count: 1,
            };
            cache.put((number, 0), Arc::new(block));
        }
        assert_eq!(cache.size(), (CACHED_BLOCKS_MAX, CACHED_BLOCKS_MAX));
    }

    #[test]
    fn the_block_used_longest_ago_is_dropped_first() {
        let cache = BlockCache::default();
        let block = |reactions_count| {
            Arc::new(Block {
                by_post: HashMap::new(),
                reactions_count,
            })
        };
        cache.put((0, 0), block(CACHED_REACTIONS_MAX / 2));
        cache.put((1, 0), block(CACHED_REACTIONS_MAX / 2));
        assert!(cache.get((0, 0)).is_some());
        cache.put((2, 0), block(1));
        assert!(cache.get((1, 0)).is_none());
        assert!(cache.get((0, 0)).is_some() && cache.get((2, 0)).is_some());
    }
}
