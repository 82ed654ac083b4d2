//! How often, on which days and at which hours the four kinds of user post.
//!
//! Rates are in posts per thousand days, so that all arithmetic stays with whole numbers.

use super::World;
use super::dice::{Dice, Purpose};
use super::people::Kind;
use super::time::{HOUR_S, weekday};

/// A regular person's day: a peak in the afternoon and a higher one in the evening.
const HOUR_WEIGHTS: [u64; 24] = [
    4, 2, 1, 1, 1, 2, 5, 10, 13, 14, 14, 16, 20, 25, 26, 24, 20, 18, 20, 26, 34, 36, 26, 12,
];
const HOUR_WEIGHTS_SUM: u64 = {
    let mut sum = 0;
    let mut hour = 0;
    while hour < 24 {
        sum += HOUR_WEIGHTS[hour];
        hour += 1;
    }
    sum
};

/// How many of a thousand weeks of an unstable user are full of posts.
const BURST_PERMILLE: u64 = 220;
/// No user writes more than this in a day, reposts included.
pub(crate) const POSTS_PER_DAY_MAX: u64 = 48;

/// A user's habits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(super) kind: Kind,
    pub(super) rate: u64,
    pub(super) weekend_percent: u64,
    pub(super) hour_shift: u64,
    /// How many posts every day has, where that is not left to chance.
    pub(super) fixed_count: Option<u64>,
}

impl World {
    /// A user's habits, as long as nothing changes them.
    pub(crate) fn pace(&self, user: u64) -> Pace {
        let kind = self.kind(user);
        let mut dice = Dice::new(self.seed, Purpose::Pace, user, 0);
        let rate = match kind {
            Kind::Inactive => 10 + dice.below(110),
            Kind::Regular => 300 + dice.below(900),
            Kind::Unstable => 2_500 + dice.below(2_000),
            Kind::Authority => 11_500 + dice.below(4_000),
        };
        let weekend_percent = if kind == Kind::Authority {
            100
        } else {
            dice.pick(&[60, 80, 100, 125, 150])
        };
        // Most live in two neighbouring time zones, some anywhere.
        let hour_shift = if dice.chance(700) {
            dice.below(2)
        } else {
            dice.below(24)
        };
        Pace {
            kind,
            rate,
            weekend_percent,
            hour_shift,
            fixed_count: None,
        }
    }

    /// How many posts a user writes on a day.
    pub(crate) fn posts_count(&self, user: u64, pace: Pace, day: i64) -> u64 {
        if let Some(count) = pace.fixed_count {
            return count;
        }
        let calm_or_burst = if pace.kind == Kind::Unstable && !self.is_burst_week(user, day) {
            40
        } else {
            pace.rate
        };
        let percent = if weekday(day) >= 5 {
            pace.weekend_percent
        } else {
            100
        };
        let rate = calm_or_burst * percent / 100;
        // Many unlikely trials come close to a Poisson process.
        let trials = (rate / 1_000 + 1) * 3;
        let permille = rate / trials;
        let mut dice = Dice::new(self.seed, Purpose::DayCount, user, day as u64);
        let count = (0..trials).filter(|_| dice.chance(permille.max(1))).count() as u64;
        count.min(POSTS_PER_DAY_MAX)
    }

    fn is_burst_week(&self, user: u64, day: i64) -> bool {
        let week = (day + 3).div_euclid(7);
        Dice::new(self.seed, Purpose::Burst, user, week as u64).chance(BURST_PERMILLE)
    }
}

impl Pace {
    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    /// A second of the day at which this user might do something.
    pub(crate) fn second_of_day(&self, dice: &mut Dice) -> i64 {
        let hour = if self.kind == Kind::Authority {
            dice.below(24)
        } else {
            (weighted_hour(dice.below(HOUR_WEIGHTS_SUM)) + self.hour_shift) % 24
        };
        hour as i64 * HOUR_S + dice.below(HOUR_S as u64) as i64
    }
}

fn weighted_hour(point: u64) -> u64 {
    let mut left = point;
    for (hour, weight) in (0..).zip(HOUR_WEIGHTS) {
        if left < weight {
            return hour;
        }
        left -= weight;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::super::time::day_of;
    use super::*;

    const AT_US: i64 = 1_790_000_000_000_000;
    const WEEKS: i64 = 26;

    /// The class a user's posting would be put in by its numbers alone.
    fn classified(daily: &[u64]) -> Kind {
        let days = daily.len() as f64;
        let total: u64 = daily.iter().sum();
        let active_days = daily.iter().filter(|&&count| count > 0).count() as f64;
        let weekly: Vec<f64> = daily
            .chunks(7)
            .map(|week| week.iter().sum::<u64>() as f64)
            .collect();
        let mean = total as f64 / weekly.len() as f64;
        let variance = weekly
            .iter()
            .map(|count| (count - mean).powi(2))
            .sum::<f64>()
            / weekly.len() as f64;
        if mean < 1.0 || active_days / days < 0.1 {
            Kind::Inactive
        } else if total as f64 / days >= 10.0 {
            Kind::Authority
        } else if variance.sqrt() / mean > 1.0 {
            Kind::Unstable
        } else {
            Kind::Regular
        }
    }

    #[test]
    fn posting_shows_the_kind_of_nearly_every_user() {
        let world = World::new(8, 2_000, AT_US).unwrap();
        let first_day = day_of(AT_US) / 7 * 7 + 4;
        let wrong = (0..2_000)
            .filter(|&user| {
                let pace = world.pace(user);
                let daily: Vec<u64> = (first_day..first_day + WEEKS * 7)
                    .map(|day| world.posts_count(user, pace, day))
                    .collect();
                classified(&daily) != pace.kind()
            })
            .count();
        assert!(wrong < 200, "{wrong} of 2000");
    }

    #[test]
    fn people_sleep_and_authorities_do_not() {
        let at_night = |kind| {
            let pace = Pace {
                kind,
                rate: 0,
                weekend_percent: 100,
                hour_shift: 0,
                fixed_count: None,
            };
            let mut dice = Dice::new(1, Purpose::DayTimes, 0, 0);
            (0..10_000)
                .filter(|_| pace.second_of_day(&mut dice) < 5 * HOUR_S)
                .count()
        };
        assert!(at_night(Kind::Regular) < 500);
        assert!(at_night(Kind::Authority) > 1_500);
    }
}
