//! CUVIM's four classes of users.

use crate::policy::DAY_US;
use kittiwake_model::WorldTime;
use std::collections::BTreeMap;

/// Posts a week below which somebody is inactive.
const INACTIVE_PER_WEEK: f64 = 1.0;
/// The share of days with a post below which somebody is inactive.
const INACTIVE_DAYS: f64 = 0.1;
/// Posts a day from which on somebody is an authority.
const AUTHORITY_PER_DAY: f64 = 10.0;
/// The coefficient of variation of weekly counts above which somebody is unstable.
const UNSTABLE_VARIATION: f64 = 1.0;
/// An unstable user who posts on each of so many last days is scheduled as a regular one.
const PROMOTED_AFTER_DAYS: i64 = 7;

/// How somebody posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Under one post a week, or posts on under a tenth of the days.
    Inactive,
    /// Now much, now nothing.
    Unstable,
    /// As constant as people are.
    Regular,
    /// Ten posts a day or more.
    Authority,
}

impl Class {
    pub const ALL: [Self; 4] = [
        Self::Inactive,
        Self::Unstable,
        Self::Regular,
        Self::Authority,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Inactive => "inactive",
            Self::Unstable => "unstable",
            Self::Regular => "regular",
            Self::Authority => "authority",
        }
    }

    /// The class of somebody who posted at these times (sorted) between two instants.
    pub fn of(posts: &[WorldTime], from: WorldTime, to: WorldTime) -> Self {
        let days = (to.since_us(from).max(1) as f64 / DAY_US as f64).max(1.0);
        let per_day = posts.len() as f64 / days;
        if per_day * 7.0 < INACTIVE_PER_WEEK || active_days(posts) < INACTIVE_DAYS * days {
            return Self::Inactive;
        }
        if per_day >= AUTHORITY_PER_DAY {
            return Self::Authority;
        }
        if weekly_variation(posts, from, to) > UNSTABLE_VARIATION {
            return Self::Unstable;
        }
        Self::Regular
    }

    /// How CUVIM schedules the class: an unstable user like an inactive one, unless there were posts
    /// on each of the last seven days.
    #[must_use]
    pub fn scheduled(self, posts: &[WorldTime], now: WorldTime) -> Self {
        if self != Self::Unstable {
            return self;
        }
        let is_active = |ago: i64| {
            let posts = posts.iter();
            let mut ages = posts.map(|at| now.since_us(*at).div_euclid(DAY_US));
            ages.any(|age| age == ago)
        };
        if (0..PROMOTED_AFTER_DAYS).all(is_active) {
            Self::Regular
        } else {
            Self::Inactive
        }
    }
}

fn active_days(posts: &[WorldTime]) -> f64 {
    let days = posts.iter().map(|at| at.micros().div_euclid(DAY_US));
    let mut days: Vec<i64> = days.collect();
    days.sort_unstable();
    days.dedup();
    days.len() as f64
}

/// The standard deviation of whole weeks' counts over their mean.
fn weekly_variation(posts: &[WorldTime], from: WorldTime, to: WorldTime) -> f64 {
    let weeks = to.since_us(from) / (7 * DAY_US);
    if weeks < 2 {
        return 0.0;
    }
    let mut counts: BTreeMap<i64, f64> = BTreeMap::new();
    for post in posts {
        let week = post.since_us(from).div_euclid(7 * DAY_US);
        if (0..weeks).contains(&week) {
            *counts.entry(week).or_default() += 1.0;
        }
    }
    let sum: f64 = counts.values().sum();
    let mean = sum / weeks as f64;
    if mean <= 0.0 {
        return 0.0;
    }
    let squares: f64 = counts.values().map(|count| count * count).sum();
    (squares / weeks as f64 - mean * mean).max(0.0).sqrt() / mean
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEKS: i64 = 8;

    /// Somebody who posts `posts` times on every day of which `is_active` says so.
    fn class(posts: i64, is_active: impl Fn(i64) -> bool) -> Class {
        let times: Vec<WorldTime> = (0..WEEKS * 7)
            .filter(|day| is_active(*day))
            .flat_map(|day| (0..posts).map(move |post| WorldTime(day * DAY_US + post * 1_000)))
            .collect();
        Class::of(&times, WorldTime(0), WorldTime(WEEKS * 7 * DAY_US))
    }

    #[test]
    fn four_ways_of_posting_are_told_apart() {
        assert_eq!(class(1, |day| day % 14 == 0), Class::Inactive);
        assert_eq!(class(2, |_| true), Class::Regular);
        assert_eq!(class(10, |_| true), Class::Authority);
        // Two wild weeks of eight.
        assert_eq!(class(9, |day| day < 14), Class::Unstable);
        // Many posts on few days are no activity.
        assert_eq!(class(200, |day| day % 28 == 0), Class::Inactive);
        assert_eq!(class(0, |_| true), Class::Inactive);
    }

    #[test]
    fn an_unstable_user_is_promoted_after_a_week_of_posts() {
        let now = WorldTime(60 * DAY_US);
        let daily: Vec<WorldTime> = (0..7).map(|day| now.plus_us(-day * DAY_US - 5)).collect();
        assert_eq!(Class::Unstable.scheduled(&daily, now), Class::Regular);
        assert_eq!(Class::Unstable.scheduled(&daily[1..], now), Class::Inactive);
        assert_eq!(Class::Authority.scheduled(&[], now), Class::Authority);
    }

    #[test]
    fn a_trace_of_one_instant_has_classes_too() {
        let posts = vec![WorldTime(5); 1_000];
        assert_eq!(
            Class::of(&posts, WorldTime(5), WorldTime(5)),
            Class::Authority
        );
    }
}
