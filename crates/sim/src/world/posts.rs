//! What users write: a pure function of user, day and ordinal.
//!
//! A *draft* is what the die alone says about a post: when, and whether it means to answer or to
//! repost something. A *post* is a draft whose target was looked for among the drafts of the same
//! block and day. Targets are never reposts, so finding one needs drafts only.

use super::World;
use super::block;
use super::dice::{Dice, Purpose};
use super::ids;
use super::moment::Moment;
use super::people::Kind;
use super::rhythm::Pace;
use super::time::{DAY_S, DAY_US, SECOND_US, day_of};

/// How often a target is looked for before a post becomes one of its own.
const TARGET_TRIES: u32 = 24;
/// The ban of one of two authors may last until one of the other has begun, but bans are shorter than
/// the time between them: after so many turns neither is banned.
const SHOWN_TURNS: usize = 4;
const DELETED_PERMILLE: u64 = 60;
const EDITED_PERMILLE: u64 = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Intent {
    Original,
    Reply,
    Repost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) user: u64,
    pub(crate) day: i64,
    pub(crate) ordinal: u32,
    pub(crate) at_us: i64,
    intent: Intent,
}

/// What a post refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    None,
    Reply(Draft),
    Repost(Draft),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Post {
    pub(crate) draft: Draft,
    pub(crate) link: Link,
}

impl Draft {
    pub(crate) fn id(&self) -> u64 {
        ids::status_id(self.at_us.div_euclid(SECOND_US), self.user, self.ordinal)
    }
}

impl Post {
    pub(crate) fn id(&self) -> u64 {
        self.draft.id()
    }

    pub(crate) const fn user(&self) -> u64 {
        self.draft.user
    }

    pub(crate) const fn is_repost(&self) -> bool {
        matches!(self.link, Link::Repost(_))
    }
}

impl World {
    /// The drafts of a user's day, oldest first.
    pub(crate) fn drafts(&self, user: u64, day: i64) -> Vec<Draft> {
        if day < self.history_start_day || day >= ids::LAST_S / DAY_S {
            return Vec::new();
        }
        let pace = self.pace_on(user, day);
        let count = self.posts_count(user, pace, day);
        if count == 0 {
            return Vec::new();
        }
        let mut dice = Dice::new(self.seed, Purpose::DayTimes, user, day as u64);
        let mut seconds: Vec<i64> = (0..count).map(|_| pace.second_of_day(&mut dice)).collect();
        seconds.sort_unstable();
        // An id holds a second: two posts of one user never share one.
        seconds.dedup();
        (0..)
            .zip(seconds)
            .map(|(ordinal, second)| {
                let at_us = day * DAY_US + second * SECOND_US + dice.below(1_000) as i64 * 1_000;
                Draft {
                    user,
                    day,
                    ordinal,
                    at_us,
                    intent: intent(pace, &mut dice),
                }
            })
            .collect()
    }

    /// The posts of a user's day, oldest first, whether or not they are visible.
    pub(crate) fn posts(&self, user: u64, day: i64) -> Vec<Post> {
        let mut posts: Vec<Post> = Vec::new();
        for draft in self.drafts(user, day) {
            let target = match draft.intent {
                Intent::Original => None,
                Intent::Reply | Intent::Repost => {
                    let mut dice = Dice::new(self.seed, Purpose::Target, draft.id(), 0);
                    self.target(&mut dice, user, day, draft.at_us)
                }
            };
            let link = match (draft.intent, target) {
                (Intent::Reply, Some(target)) => Link::Reply(target),
                (Intent::Repost, Some(target)) => Link::Repost(target),
                _ => Link::None,
            };
            // Nobody reposts the same post twice.
            let is_twice =
                matches!(link, Link::Repost(_)) && posts.iter().any(|earlier| earlier.link == link);
            posts.push(Post {
                draft,
                link: if is_twice { Link::None } else { link },
            });
        }
        posts
    }

    /// A post of another user of the block, written earlier on the same day.
    pub(crate) fn target(
        &self,
        dice: &mut Dice,
        user: u64,
        day: i64,
        before_us: i64,
    ) -> Option<Draft> {
        let members = block::members(user, self.users);
        (0..TARGET_TRIES).find_map(|_| {
            let author = members.start + dice.below(members.end - members.start);
            if author == user {
                return None;
            }
            let drafts = self.drafts(author, day);
            let earlier = drafts.partition_point(|draft| draft.at_us < before_us);
            let chosen = drafts[..earlier].get(dice.below(earlier as u64) as usize)?;
            (chosen.intent != Intent::Repost).then_some(*chosen)
        })
    }

    /// The post an id stands for, whether or not it is visible.
    pub(crate) fn post_with_id(&self, id: u64) -> Option<Post> {
        let (at_s, user) = ids::status_id_parts(id);
        if user >= self.users {
            return None;
        }
        let day = at_s.div_euclid(DAY_S);
        // Most made-up ids end here, before any target is looked for.
        self.drafts(user, day)
            .iter()
            .find(|draft| draft.id() == id)?;
        self.posts(user, day)
            .into_iter()
            .find(|post| post.id() == id)
    }

    /// Whether a post that is no repost is shown.
    pub(crate) fn is_draft_visible(&self, draft: &Draft, now: Moment<'_>) -> bool {
        draft.at_us <= now.at_us
            && self.is_active(draft.user, now)
            && self
                .deleted_us(draft)
                .is_none_or(|deleted_us| now.at_us < deleted_us)
            && !now.is_post_withdrawn(|| draft.id())
    }

    /// Whether a post is shown; a repost goes with what it repeats.
    pub(crate) fn is_visible(&self, post: &Post, now: Moment<'_>) -> bool {
        self.is_draft_visible(&post.draft, now)
            && match post.link {
                Link::Repost(target) => self.is_draft_visible(&target, now),
                Link::None | Link::Reply(_) => true,
            }
    }

    /// Whether anybody could see a post at any time: not if its author, or that of what it repeats,
    /// had gone before, nor if it was written during a ban and deleted before the end.
    pub(crate) fn is_ever_shown(&self, post: &Post) -> bool {
        let target = match post.link {
            Link::Repost(target) => Some(target),
            Link::None | Link::Reply(_) => None,
        };
        let needed = || std::iter::once(post.draft).chain(target);
        let mut shown_us = post.draft.at_us;
        for draft in needed().cycle().take(SHOWN_TURNS) {
            match self.active_from_us(draft.user, shown_us) {
                Some(active_us) => shown_us = active_us,
                None => return false,
            }
        }
        let is_left = |draft: Draft| {
            let deleted_us = self.deleted_us(&draft);
            deleted_us.is_none_or(|deleted_us| shown_us < deleted_us)
        };
        needed().all(is_left)
    }

    pub(crate) fn visible_post(&self, id: u64, now: Moment<'_>) -> Option<Post> {
        self.post_with_id(id)
            .filter(|post| self.is_visible(post, now))
    }

    /// A user's visible posts with ids below a bound, newest first.
    pub(crate) fn timeline_down(
        &self,
        user: u64,
        now: Moment<'_>,
        below_id: u64,
    ) -> impl Iterator<Item = Post> {
        let newest_day = day_of(now.at_us).min(day_of(ids::status_id_second(below_id) * SECOND_US));
        (self.history_start_day..=newest_day)
            .rev()
            .flat_map(move |day| self.posts(user, day).into_iter().rev())
            .filter(move |post| post.id() < below_id && self.is_visible(post, now))
    }

    /// A user's visible posts with ids above a bound, oldest first.
    pub(crate) fn timeline_up(
        &self,
        user: u64,
        now: Moment<'_>,
        above_id: u64,
    ) -> impl Iterator<Item = Post> {
        let oldest_day = day_of(ids::status_id_second(above_id) * SECOND_US);
        (self.history_start_day.max(oldest_day)..=day_of(now.at_us))
            .flat_map(move |day| self.posts(user, day))
            .filter(move |post| post.id() > above_id && self.is_visible(post, now))
    }

    fn deleted_us(&self, draft: &Draft) -> Option<i64> {
        let mut dice = Dice::new(self.seed, Purpose::Deletion, draft.id(), 0);
        // From ten minutes to some weeks after it was written.
        dice.chance(DELETED_PERMILLE)
            .then(|| draft.at_us + dice.long_tail(600, 11) as i64 * SECOND_US)
    }

    /// When a post was last edited, if it has been by now.
    pub(crate) fn edited_us(&self, post: &Post, at_us: i64) -> Option<i64> {
        if post.is_repost() || !self.can_edit(post.user()) {
            return None;
        }
        let mut dice = Dice::new(self.seed, Purpose::Edit, post.id(), 0);
        dice.chance(EDITED_PERMILLE)
            // From ten minutes to some days after it was written.
            .then(|| post.draft.at_us + dice.long_tail(600, 10) as i64 * SECOND_US)
            .filter(|&edited_us| edited_us <= at_us)
    }
}

fn intent(pace: Pace, dice: &mut Dice) -> Intent {
    let (reply, repost) = match pace.kind() {
        Kind::Inactive => (150, 300),
        Kind::Regular => (280, 200),
        Kind::Unstable => (300, 250),
        Kind::Authority => (40, 70),
    };
    let roll = dice.below(1_000);
    if roll < reply {
        Intent::Reply
    } else if roll < reply + repost {
        Intent::Repost
    } else {
        Intent::Original
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_US: i64 = 1_790_000_000_000_000;
    const NOW: Moment<'static> = Moment::undisturbed(AT_US);

    fn world() -> World {
        World::new(21, 2_000, AT_US).unwrap()
    }

    #[test]
    fn every_post_is_found_by_its_id() {
        let world = world();
        for user in 0..60 {
            for day in world.history_start_day..world.anchor_day {
                for post in world.posts(user, day) {
                    assert_eq!(world.post_with_id(post.id()), Some(post));
                    assert!(post.id() > ids::status_id(day * DAY_S - 1, 0, 0));
                }
            }
        }
        assert_eq!(world.post_with_id(0), None);
        assert_eq!(world.post_with_id(i64::MAX as u64), None);
    }

    #[test]
    fn targets_are_earlier_posts_of_others_and_never_reposts() {
        let world = world();
        let mut seen = (0, 0);
        for user in 0..300 {
            for post in world.timeline_down(user, NOW, i64::MAX as u64) {
                let target = match post.link {
                    Link::None => continue,
                    Link::Reply(target) => {
                        seen.0 += 1;
                        target
                    }
                    Link::Repost(target) => {
                        seen.1 += 1;
                        target
                    }
                };
                assert!(target.at_us < post.draft.at_us && target.user != user);
                assert!(!world.post_with_id(target.id()).unwrap().is_repost());
            }
        }
        assert!(seen.0 > 100 && seen.1 > 100, "{seen:?}");
    }

    #[test]
    fn walking_up_and_down_shows_the_same_posts() {
        let world = world();
        for user in 0..100 {
            let mut down: Vec<Post> = world.timeline_down(user, NOW, i64::MAX as u64).collect();
            down.reverse();
            let up: Vec<Post> = world.timeline_up(user, NOW, 0).collect();
            assert_eq!(down, up);
            assert!(up.is_sorted_by(|one, other| one.id() < other.id()));
        }
    }

    #[test]
    fn posts_vanish_when_they_are_deleted() {
        let world = world();
        let later = Moment::undisturbed(AT_US + 10 * DAY_US);
        let vanished = (0..500)
            .flat_map(|user| world.timeline_down(user, NOW, i64::MAX as u64))
            .filter(|post| !world.is_visible(post, later))
            .count();
        assert!(vanished > 10, "{vanished}");
    }

    #[test]
    fn a_post_counts_as_shown_exactly_if_it_is_visible_at_some_time() {
        let world = world();
        let (mut shown, mut hidden, mut late, mut missed) = (0, 0, 0, 0);
        for user in 0..600 {
            for post in
                (world.anchor_day..world.anchor_day + 20).flat_map(|day| world.posts(user, day))
            {
                let at_us = post.draft.at_us;
                let is_visible = |at_us| world.is_visible(&post, Moment::undisturbed(at_us));
                let is_seen_late =
                    || (1..60 * 24).any(|hour| is_visible(at_us + hour * DAY_US / 24));
                match (world.is_ever_shown(&post), is_visible(at_us)) {
                    (true, true) => shown += 1,
                    (false, false) => {
                        assert!(!is_seen_late());
                        hidden += 1;
                    }
                    (true, false) if is_seen_late() => late += 1,
                    // Deleted within an hour of the end of a ban.
                    (true, false) => missed += 1,
                    (false, true) => panic!("{post:?} is visible"),
                }
            }
        }
        assert!(
            shown > 1_000 && hidden > 20 && late > 5,
            "{shown} {hidden} {late}"
        );
        assert!(missed <= 1, "{missed}");
    }

    #[test]
    fn volumes_are_moderate() {
        let world = world();
        let counts: Vec<usize> = (0..2_000)
            .map(|user| world.timeline_down(user, NOW, i64::MAX as u64).count())
            .collect();
        let mean = counts.iter().sum::<usize>() / counts.len();
        assert!((15..45).contains(&mean), "{mean}");
        let long = counts.iter().filter(|&&count| count > 300).count();
        assert!((5..100).contains(&long), "{long}");
    }
}
