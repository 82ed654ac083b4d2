//! SocWeb's change rate: CR = changes/(t_l − t_s), the times of the last and the first change.
//!
//! It is defined for two changes at different times or more; before that, and whenever it is slow,
//! the longest window of a month decides. Taken at its word it never forgets, and two posts within
//! a minute make somebody the fastest of all.

use super::{Policy, Shared, State, Visit, days_between, elapsed_days, tag};
use kittiwake_model::WorldTime;

/// SocWeb's "time window of maximum expected change".
pub const WINDOW_DAYS: f64 = 30.0;

#[derive(Debug, Clone, Copy, Default)]
pub struct ChangeRate;

/// What SocWeb remembers of the changes of one object and link type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changes {
    pub first: WorldTime,
    pub last: WorldTime,
    pub count: u64,
}

impl Changes {
    /// With one more change.
    #[must_use]
    pub fn with(before: Option<Self>, at: WorldTime) -> Self {
        before.map_or(
            Self {
                first: at,
                last: at,
                count: 1,
            },
            |before| Self {
                first: before.first.min(at),
                last: before.last.max(at),
                count: before.count.saturating_add(1),
            },
        )
    }

    /// Changes a day, if there are two or more at different times.
    pub fn per_day(&self) -> Option<f64> {
        (self.count >= 2 && self.last > self.first)
            .then(|| self.count as f64 / days_between(self.first, self.last))
    }

    /// When the next change is expected: t_l + 1/CR.
    pub fn predicted(&self) -> Option<WorldTime> {
        let gap_us = super::DAY_US as f64 / self.per_day()?;
        Some(self.last.plus_us(gap_us as i64))
    }

    fn read(state: &State) -> Option<Self> {
        if !state.is_of(tag::CHANGE_RATE) {
            return None;
        }
        let mut fields = state.fields();
        let (first, last) = (WorldTime(fields.i64()), WorldTime(fields.i64()));
        let count = fields.i64();
        u64::try_from(count)
            .ok()
            .filter(|count| *count > 0)
            .map(|count| Self { first, last, count })
    }
}

/// max(CR·τ, τ/window).
pub fn index(rate_per_day: Option<f64>, elapsed_days: f64) -> f64 {
    elapsed_days * rate_per_day.unwrap_or(0.0).max(1.0 / WINDOW_DAYS)
}

impl Policy for ChangeRate {
    fn name(&self) -> &'static str {
        "change-rate"
    }

    fn tag(&self) -> u8 {
        tag::CHANGE_RATE
    }

    fn observe(&self, _shared: &mut Shared, state: &mut State, visit: &Visit<'_>) {
        let mut changes = Changes::read(state);
        for post in visit.posts {
            changes = Some(Changes::with(changes, *post));
        }
        let mut writer = state.begin(self.tag(), visit.at, true);
        if let Some(changes) = changes {
            writer
                .i64(changes.first.micros())
                .i64(changes.last.micros())
                .i64(changes.count as i64);
        }
    }

    fn index(&self, _shared: &Shared, state: &State, now: WorldTime) -> f64 {
        let rate = Changes::read(state).and_then(|changes| changes.per_day());
        index(rate, elapsed_days(state, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::DAY_US;

    fn changes(days: &[i64]) -> Option<Changes> {
        days.iter().fold(None, |before, day| {
            Some(Changes::with(before, WorldTime(day * DAY_US)))
        })
    }

    #[test]
    fn the_change_rate_is_changes_over_the_time_between_first_and_last() {
        let changes = changes(&[10, 12, 20]).unwrap();
        assert!((changes.per_day().unwrap() - 0.3).abs() < 1e-12);
        let expected_us = 20 * DAY_US + (DAY_US as f64 / 0.3) as i64;
        assert_eq!(changes.predicted(), Some(WorldTime(expected_us)));
    }

    #[test]
    fn less_than_two_different_times_are_no_rate() {
        assert_eq!(changes(&[]), None);
        assert_eq!(changes(&[3]).unwrap().per_day(), None);
        assert_eq!(changes(&[3, 3, 3]).unwrap().per_day(), None);
        // The longest window decides instead.
        assert!((index(None, 15.0) - 0.5).abs() < 1e-12);
        assert!((index(Some(0.001), 15.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn two_posts_within_a_minute_explode_and_never_decay() {
        let pair = [WorldTime(0), WorldTime(60_000_000)];
        let (mut shared, mut state) = (Shared::default(), State::default());
        ChangeRate.observe(&mut shared, &mut state, &Visit::complete(pair[1], &pair));
        let year = WorldTime(365 * DAY_US);
        ChangeRate.observe(&mut shared, &mut state, &Visit::complete(year, &[]));
        let index = ChangeRate.index(&shared, &state, year.plus_us(DAY_US));
        assert!((index - 2_880.0).abs() < 1e-9);
    }
}
