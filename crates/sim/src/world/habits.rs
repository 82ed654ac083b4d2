//! People who change their habits on one day of the world, all at the beginning of that day.
//!
//! A world has such a day only if it is asked for. Before it everything is as in the world without;
//! from then on those who belong to no group write at the times at which they would have written.

use serde::Serialize;

use super::dice::{Dice, Purpose};
use super::people::Kind;
use super::rhythm::{POSTS_PER_DAY_MAX, Pace};
use super::time::DAY_US;
use super::{HISTORY_DAYS, World, WorldError};

/// On which days after the world's start habits can change: somebody was there before, and lives on.
pub(crate) const FIRST_DAY: i64 = 1 - HISTORY_DAYS;
pub(crate) const LAST_DAY: i64 = 3_650;

/// In posts per thousand days, as all rates.
const WAKING_RATE_MIN: u64 = 8_000;
const WAKING_RATE_MAX: u64 = 15_000;
const MOVED_HOURS_MIN: u64 = 8;
const MOVED_HOURS_MAX: u64 = 12;
/// Thirty are left even if some of them fall on one second and become one.
const VIRAL_POSTS_MIN: u64 = 33;

/// What becomes of somebody's habits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Habit {
    /// Was quiet, and is busy from then on.
    Wakes,
    /// Writes nothing any more.
    Silent,
    /// Writes as much as before, at other hours.
    Moves,
    /// Writes all day long, on this one day.
    Viral,
}

/// How many of a thousand of a kind belong to each group.
#[derive(Debug, Clone, Copy)]
struct Shares {
    viral: u64,
    wakes: u64,
    silent: u64,
    moves: u64,
}

impl Shares {
    /// Each group comes to about 80 of a thousand of all.
    const fn of(kind: Kind) -> Self {
        let (wakes, silent, moves) = match kind {
            Kind::Inactive => (135, 0, 0),
            Kind::Regular => (0, 300, 320),
            // These write round the clock and have no hours that could move.
            Kind::Authority => (0, 300, 0),
            // Their weeks change by themselves.
            Kind::Unstable => (0, 0, 0),
        };
        Self {
            viral: 80,
            wakes,
            silent,
            moves,
        }
    }
}

impl World {
    /// Lets people change their habits, so many days after the day that the world starts on.
    pub(crate) fn change_habits(&mut self, days: i64) -> Result<(), WorldError> {
        if !(FIRST_DAY..=LAST_DAY).contains(&days) {
            return Err(WorldError::Habits { days });
        }
        self.habits_day = Some(self.anchor_day + days);
        Ok(())
    }

    /// When habits change, if they do.
    pub(crate) fn habits_from_us(&self) -> Option<i64> {
        self.habits_day.map(|day| day * DAY_US)
    }

    /// What becomes of somebody's habits, whether or not it has already.
    pub(crate) fn habit(&self, user: u64) -> Option<Habit> {
        self.habits_day?;
        self.habit_of_kind(user, self.kind(user))
    }

    fn habit_of_kind(&self, user: u64, kind: Kind) -> Option<Habit> {
        let shares = Shares::of(kind);
        let mut roll = self.habit_dice(user, 0).below(1_000);
        [
            (Habit::Viral, shares.viral),
            (Habit::Wakes, shares.wakes),
            (Habit::Silent, shares.silent),
            (Habit::Moves, shares.moves),
        ]
        .into_iter()
        .find_map(|(habit, share)| {
            if roll < share {
                return Some(habit);
            }
            roll -= share;
            None
        })
    }

    /// A user's habits on a day.
    pub(crate) fn pace_on(&self, user: u64, day: i64) -> Pace {
        let usual = self.pace(user);
        let Some(habits_day) = self.habits_day.filter(|&habits_day| day >= habits_day) else {
            return usual;
        };
        match self.habit_of_kind(user, usual.kind()) {
            Some(Habit::Viral) if day != habits_day => usual,
            Some(habit) => changed(usual, habit, &mut self.habit_dice(user, 1)),
            None => usual,
        }
    }

    const fn habit_dice(&self, user: u64, throw: u64) -> Dice {
        Dice::new(self.seed, Purpose::Habit, user, throw)
    }
}

fn changed(usual: Pace, habit: Habit, dice: &mut Dice) -> Pace {
    match habit {
        Habit::Wakes => Pace {
            kind: Kind::Regular,
            rate: WAKING_RATE_MIN + dice.below(WAKING_RATE_MAX - WAKING_RATE_MIN + 1),
            weekend_percent: 100,
            ..usual
        },
        Habit::Silent => Pace {
            fixed_count: Some(0),
            ..usual
        },
        Habit::Moves => Pace {
            hour_shift: usual.hour_shift
                + MOVED_HOURS_MIN
                + dice.below(MOVED_HOURS_MAX - MOVED_HOURS_MIN + 1),
            ..usual
        },
        Habit::Viral => Pace {
            fixed_count: Some(
                VIRAL_POSTS_MIN + dice.below(POSTS_PER_DAY_MAX - VIRAL_POSTS_MIN + 1),
            ),
            ..usual
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::moment::Moment;
    use super::super::posts::Link;
    use super::super::time::SECOND_US;
    use super::*;

    const AT_US: i64 = 1_790_000_000_000_000;
    const USERS: u64 = 1_000;
    const HABITS: [Habit; 4] = [Habit::Wakes, Habit::Silent, Habit::Moves, Habit::Viral];
    const DAYS: i64 = 14;

    fn worlds() -> (World, World) {
        let without = World::new(5, USERS, AT_US).unwrap();
        let mut with = World::new(5, USERS, AT_US).unwrap();
        with.change_habits(DAYS).unwrap();
        (without, with)
    }

    fn group(world: &World, habit: Option<Habit>) -> Vec<u64> {
        let belongs = |user: &u64| world.habit(*user) == habit;
        (0..world.users).filter(belongs).collect()
    }

    /// Posts a day over some days.
    fn daily(world: &World, user: u64, days: std::ops::Range<i64>) -> f64 {
        let count: usize = days.clone().map(|day| world.drafts(user, day).len()).sum();
        count as f64 / (days.end - days.start) as f64
    }

    /// The hour around which somebody writes, on the circle of the day, over eight weeks.
    fn middle_hour(world: &World, users: &[u64], from_day: i64) -> f64 {
        let (mut sine, mut cosine) = (0.0, 0.0);
        for &user in users {
            for draft in (from_day..from_day + 56).flat_map(|day| world.drafts(user, day)) {
                let share = (draft.at_us % DAY_US) as f64 / DAY_US as f64;
                let (one, other) = (share * std::f64::consts::TAU).sin_cos();
                sine += one;
                cosine += other;
            }
        }
        (sine.atan2(cosine) / std::f64::consts::TAU * 24.0).rem_euclid(24.0)
    }

    #[test]
    fn every_group_is_about_eight_in_a_hundred() {
        for (seed, users) in [(1, 500), (2, 2_000), (3, 20_000), (9, 100_000)] {
            let mut world = World::new(seed, users, AT_US).unwrap();
            world.change_habits(0).unwrap();
            for habit in HABITS {
                let permille = group(&world, Some(habit)).len() as u64 * 1_000 / users;
                assert!(
                    (55..=105).contains(&permille),
                    "{habit:?}: {permille} of {users}"
                );
            }
        }
    }

    #[test]
    fn everything_before_the_day_is_as_in_the_world_without() {
        let (without, with) = worlds();
        let habits_day = with.anchor_day + DAYS;
        for user in 0..USERS {
            for day in with.history_start_day..habits_day {
                assert_eq!(with.posts(user, day), without.posts(user, day));
                assert_eq!(with.likes(user, day), without.likes(user, day));
            }
        }
    }

    #[test]
    fn those_in_no_group_write_when_they_would_have_written() {
        let (without, with) = worlds();
        let habits_day = with.anchor_day + DAYS;
        assert!(group(&without, None).len() as u64 == USERS);
        let others = group(&with, None);
        assert!(others.len() > 500);
        for user in others {
            for day in habits_day..habits_day + 21 {
                assert_eq!(with.drafts(user, day), without.drafts(user, day));
            }
        }
    }

    #[test]
    fn who_wakes_was_quiet_and_is_busy_from_then_on() {
        let (_, world) = worlds();
        let day = world.anchor_day + DAYS;
        for user in group(&world, Some(Habit::Wakes)) {
            let (before, after) = (
                daily(&world, user, day - 42..day),
                daily(&world, user, day..day + 42),
            );
            assert!(before < 0.4, "{user}: {before}");
            assert!((7.0..16.5).contains(&after), "{user}: {after}");
            assert!(daily(&world, user, day + 300..day + 342) > 7.0);
        }
    }

    #[test]
    fn who_falls_silent_wrote_and_never_writes_again() {
        let (_, world) = worlds();
        let day = world.anchor_day + DAYS;
        let silent = group(&world, Some(Habit::Silent));
        for &user in &silent {
            assert!(daily(&world, user, day - 42..day) > 0.1, "{user}");
            assert!((day..day + 400).all(|day| world.drafts(user, day).is_empty()));
        }
        let kinds: Vec<Kind> = silent.iter().map(|&user| world.kind(user)).collect();
        assert!(kinds.contains(&Kind::Regular) && kinds.contains(&Kind::Authority));
    }

    #[test]
    fn who_moves_writes_as_much_as_before_at_other_hours() {
        let (without, world) = worlds();
        let day = world.anchor_day + DAYS;
        let movers = group(&world, Some(Habit::Moves));
        for &user in &movers {
            assert_eq!(world.kind(user), Kind::Regular);
            for day in day..day + 21 {
                let pace = world.pace_on(user, day);
                let hours = pace.hour_shift - world.pace(user).hour_shift;
                assert!((8..=12).contains(&hours));
                let counts = [&world, &without].map(|world| world.posts_count(user, pace, day));
                assert_eq!(counts[0], counts[1]);
            }
        }
        let hour = |world, day| middle_hour(world, &movers, day);
        let moved = (hour(&world, day) - hour(&world, day - 56)).rem_euclid(24.0);
        assert!((8.5..11.5).contains(&moved), "{moved}");
        let stayed = (hour(&without, day) - hour(&without, day - 56) + 12.0).rem_euclid(24.0);
        assert!((11.0..13.0).contains(&stayed), "{stayed}");
    }

    #[test]
    fn a_viral_day_is_one_day_and_nothing_is_different_afterwards() {
        let (without, world) = worlds();
        let habits_day = world.anchor_day + DAYS;
        let mut by_kind: BTreeMap<String, u32> = BTreeMap::new();
        for user in group(&world, Some(Habit::Viral)) {
            *by_kind
                .entry(format!("{:?}", world.kind(user)))
                .or_default() += 1;
            let count = world.drafts(user, habits_day).len();
            assert!((30..=48).contains(&count), "{count}");
            for day in habits_day + 1..habits_day + 30 {
                assert_eq!(world.drafts(user, day), without.drafts(user, day));
            }
        }
        assert!(by_kind.len() >= 3, "{by_kind:?}");
    }

    #[test]
    fn every_post_of_a_changed_world_is_found_by_its_id_and_points_at_one_that_is() {
        let (_, world) = worlds();
        let habits_day = world.anchor_day + DAYS;
        let mut linked = 0;
        for user in 0..300 {
            for day in habits_day - 2..habits_day + 3 {
                let posts = world.posts(user, day);
                assert!(posts.is_sorted_by(|one, other| one.id() < other.id()));
                for post in posts {
                    assert_eq!(world.post_with_id(post.id()), Some(post));
                    let (Link::Reply(target) | Link::Repost(target)) = post.link else {
                        continue;
                    };
                    linked += 1;
                    let found = world.post_with_id(target.id()).unwrap();
                    assert_eq!(found.draft, target);
                    assert!(!found.is_repost());
                }
            }
        }
        assert!(linked > 200, "{linked}");
    }

    #[test]
    fn walking_up_and_down_shows_the_same_posts_of_a_changed_world() {
        let (_, world) = worlds();
        let now = Moment::undisturbed(AT_US + (DAYS + 10) * DAY_US + 7 * SECOND_US);
        for habit in HABITS {
            for user in group(&world, Some(habit)).into_iter().take(20) {
                let mut down: Vec<u64> = world
                    .timeline_down(user, now, i64::MAX as u64)
                    .map(|post| post.id())
                    .collect();
                down.reverse();
                let up: Vec<u64> = world
                    .timeline_up(user, now, 0)
                    .map(|post| post.id())
                    .collect();
                assert_eq!(down, up);
                assert_eq!(world.counts(user, now).statuses, up.len() as u64);
            }
        }
    }

    #[test]
    fn days_without_a_before_or_far_away_are_refused() {
        let mut world = World::new(5, 10, AT_US).unwrap();
        for days in [i64::MIN, -60, 3_651, i64::MAX] {
            assert_eq!(world.change_habits(days), Err(WorldError::Habits { days }));
        }
        assert_eq!(
            world.change_habits(-60).unwrap_err().to_string(),
            "habits change -59 to 3650 days after the world's first, not -60"
        );
        assert_eq!(world.habits_from_us(), None);
        for days in [-59, 0, 3_650] {
            world.change_habits(days).unwrap();
            let from_us = (world.anchor_day + days) * DAY_US;
            assert_eq!(world.habits_from_us(), Some(from_us));
        }
    }
}
