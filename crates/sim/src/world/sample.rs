//! The sample: whose posts are found by tag and by searching.
//!
//! A real server keeps indexes over everybody. Here they are computed, so they cover only the most
//! followed users: all of them in a small world, a fixed number in a large one. The ground truth
//! says of every user and of every post whether they are covered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::World;
use super::ids;
use super::moment::Moment;
use super::posts::Post;
use super::tags::tag_place;
use super::time::{DAY_US, SECOND_US, day_of};
use super::vocabulary::TAGS;

/// So many of the most followed users are in the sample.
pub(crate) const SAMPLE_USERS: u64 = 2_048;
/// Posts are found by their words for so many days.
pub(crate) const SEARCH_DAYS: i64 = 7;
/// Days kept ready, some tens of kilobytes each.
const CACHED_DAYS_MAX: usize = 256;

/// The public posts of the sample on one day, whether or not they are still there.
#[derive(Debug)]
struct SampleDay {
    /// Ids in ascending order.
    all: Vec<u64>,
    /// The same by the tags' places in the vocabulary.
    by_tag: Vec<Vec<u64>>,
}

/// The days asked for last.
#[derive(Debug, Default)]
pub(crate) struct SampleCache {
    days: Mutex<HashMap<i64, Arc<SampleDay>>>,
}

impl World {
    /// Where a user stands among all, the most followed first.
    pub(crate) fn place_by_fame(&self, user: u64) -> u64 {
        self.graph.place_by_fame(user)
    }

    pub(crate) fn is_sampled(&self, user: u64) -> bool {
        self.place_by_fame(user) < SAMPLE_USERS
    }

    /// The users of the sample, the most followed first.
    pub(crate) fn sampled_users(&self) -> impl Iterator<Item = u64> {
        (0..self.users.min(SAMPLE_USERS)).map(|place| self.graph.by_fame(place))
    }

    /// Whether a post is in the timelines of its tags, as long as it is visible.
    pub(crate) fn is_in_tag_timelines(&self, post: &Post) -> bool {
        !post.is_repost()
            && self.is_sampled(post.user())
            && self.is_public(post)
            && !self.post_tags(post).is_empty()
    }

    /// Whether a post is found by its words, as long as it is visible.
    pub(crate) fn is_searchable(&self, post: &Post, at_us: i64) -> bool {
        !post.is_repost()
            && self.is_sampled(post.user())
            && self.is_public(post)
            && self.wishes(post.user()).is_indexable
            && post.draft.at_us > at_us - SEARCH_DAYS * DAY_US
    }

    /// Users of the sample whose handle or display name begins with some letters of lower case.
    pub(crate) fn users_named_like<'a>(
        &'a self,
        beginning: &'a str,
        now: Moment<'a>,
    ) -> impl Iterator<Item = u64> + 'a {
        self.sampled_users().filter(move |&user| {
            self.is_active(user, now)
                && (self.username(user, now.at_us).starts_with(beginning)
                    || self
                        .profile(user, now.at_us)
                        .display_name
                        .to_lowercase()
                        .starts_with(beginning))
        })
    }

    /// Visible posts that can be found by their words, newest first.
    pub(crate) fn searchable_posts(&self, now: Moment<'_>) -> impl Iterator<Item = Post> {
        let newest_day = day_of(now.at_us);
        (newest_day - SEARCH_DAYS..=newest_day)
            .rev()
            .flat_map(|day| self.sample_day(day).all.clone().into_iter().rev())
            .filter_map(move |id| self.visible_post(id, now))
            .filter(move |post| self.is_searchable(post, now.at_us))
    }

    /// Visible posts with any of some tags and with ids below a bound, newest first.
    pub(crate) fn tagged_down(
        &self,
        places: Vec<usize>,
        now: Moment<'_>,
        below_id: u64,
    ) -> impl Iterator<Item = Post> {
        let newest_day = day_of(now.at_us).min(day_of(ids::status_id_second(below_id) * SECOND_US));
        (self.history_start_day..=newest_day)
            .rev()
            .flat_map(move |day| self.tagged_on(day, &places).into_iter().rev())
            .filter(move |&id| id < below_id)
            .filter_map(move |id| self.visible_post(id, now))
    }

    /// Visible posts with any of some tags and with ids above a bound, oldest first.
    pub(crate) fn tagged_up(
        &self,
        places: Vec<usize>,
        now: Moment<'_>,
        above_id: u64,
    ) -> impl Iterator<Item = Post> {
        let oldest_day = day_of(ids::status_id_second(above_id) * SECOND_US);
        (self.history_start_day.max(oldest_day)..=day_of(now.at_us))
            .flat_map(move |day| self.tagged_on(day, &places))
            .filter(move |&id| id > above_id)
            .filter_map(move |id| self.visible_post(id, now))
    }

    fn tagged_on(&self, day: i64, places: &[usize]) -> Vec<u64> {
        let sample_day = self.sample_day(day);
        let mut ids: Vec<u64> = places
            .iter()
            .filter_map(|&place| sample_day.by_tag.get(place))
            .flatten()
            .copied()
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn sample_day(&self, day: i64) -> Arc<SampleDay> {
        if let Some(ready) = self.samples.lock().get(&day) {
            return Arc::clone(ready);
        }
        // Made without the lock: two who ask at once make the same day twice, and nobody waits.
        let made = Arc::new(self.make_sample_day(day));
        let mut days = self.samples.lock();
        if days.len() >= CACHED_DAYS_MAX {
            days.clear();
        }
        days.insert(day, Arc::clone(&made));
        made
    }

    fn make_sample_day(&self, day: i64) -> SampleDay {
        let mut all = Vec::new();
        let mut by_tag = vec![Vec::new(); TAGS.len()];
        for user in self.sampled_users() {
            for post in self.posts(user, day) {
                if post.is_repost() || !self.is_public(&post) {
                    continue;
                }
                all.push(post.id());
                for place in self.post_tags(&post).into_iter().filter_map(tag_place) {
                    by_tag[place].push(post.id());
                }
            }
        }
        all.sort_unstable();
        for ids in &mut by_tag {
            ids.sort_unstable();
        }
        SampleDay { all, by_tag }
    }
}

impl SampleCache {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<i64, Arc<SampleDay>>> {
        // A panic elsewhere leaves the cache complete: it is changed by whole entries only.
        self.days.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_US: i64 = 1_790_000_000_000_000;
    const NOW: Moment<'static> = Moment::undisturbed(AT_US);
    const NO_BOUND: u64 = i64::MAX as u64;

    #[test]
    fn a_small_world_is_sampled_whole_and_a_large_one_in_part() {
        let small = World::new(1, 500, AT_US).unwrap();
        assert!((0..500).all(|user| small.is_sampled(user)));
        let large = World::new(1, 100_000, AT_US).unwrap();
        let sampled = (0..100_000).filter(|&user| large.is_sampled(user)).count();
        assert_eq!(sampled as u64, SAMPLE_USERS);
        assert!(large.sampled_users().all(|user| large.is_sampled(user)));
    }

    #[test]
    fn tagged_posts_are_the_same_walked_up_and_down_and_told_one_by_one() {
        let world = World::new(6, 150, AT_US).unwrap();
        for place in [0, 3, 40] {
            let mut down: Vec<Post> = world.tagged_down(vec![place], NOW, NO_BOUND).collect();
            down.reverse();
            let up: Vec<Post> = world.tagged_up(vec![place], NOW, 0).collect();
            assert_eq!(down, up);
            let mut expected: Vec<Post> = (0..150)
                .flat_map(|user| world.timeline_up(user, NOW, 0))
                .filter(|post| world.is_in_tag_timelines(post))
                .filter(|post| world.post_tags(post).contains(&TAGS[place]))
                .collect();
            expected.sort_unstable_by_key(Post::id);
            assert!(!expected.is_empty());
            assert_eq!(up, expected);
        }
    }

    #[test]
    fn posts_found_by_words_are_young_and_public_and_of_those_who_agreed() {
        let world = World::new(6, 300, AT_US).unwrap();
        let found: Vec<Post> = world.searchable_posts(NOW).collect();
        let mut expected: Vec<Post> = (0..300)
            .flat_map(|user| world.timeline_up(user, NOW, 0))
            .filter(|post| world.is_searchable(post, AT_US))
            .collect();
        expected.sort_unstable_by_key(|post| std::cmp::Reverse(post.id()));
        assert!(expected.len() > 100);
        assert_eq!(found, expected);
    }
}
