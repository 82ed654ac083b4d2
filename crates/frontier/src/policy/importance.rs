//! SocWeb's importance: I(obj) = (1/n)·Σ EIR(u)·App(obj, u) over the users associated with it,
//! where EIR(u), the effective interaction rate, is a seventh of the actions of the last 7 days.

use super::{DAY_US, Policy, Shared, State, Visit, elapsed_days, tag};
use kittiwake_model::WorldTime;

/// Days that the effective interaction rate looks back.
pub const WINDOW_DAYS: usize = 7;

/// Whoever is important and waits is next: max(I·τ, τ/30 d). A user is associated with itself alone
/// here, so that its importance is its own interaction rate; an application's weight multiplies it
/// from outside, as it does for every policy.
#[derive(Debug, Clone, Copy, Default)]
pub struct Importance;

/// A seventh of the actions within 7 × 24 hours before `now`.
pub fn effective_interaction_rate(actions: &[WorldTime], now: WorldTime) -> f64 {
    let window_us = WINDOW_DAYS as i64 * DAY_US;
    let recent = actions
        .iter()
        .filter(|at| (0..window_us).contains(&now.since_us(**at)));
    recent.count() as f64 / WINDOW_DAYS as f64
}

/// The mean of rate times application weight over the users of an object.
pub fn importance(users: &[(f64, f64)]) -> f64 {
    if users.is_empty() {
        return 0.0;
    }
    let sum: f64 = users.iter().map(|(rate, weight)| rate * weight).sum();
    sum / users.len() as f64
}

/// Actions of the last eight days by day: the window of 7 × 24 hours touches eight.
#[derive(Debug, Clone, Copy, Default)]
struct Days {
    newest: i64,
    counts: [u16; WINDOW_DAYS + 1],
}

impl Days {
    fn read(state: &State) -> Self {
        if !state.is_of(tag::IMPORTANCE) {
            return Self::default();
        }
        let mut fields = state.fields();
        let newest = fields.i64();
        Self {
            newest,
            counts: std::array::from_fn(|_| fields.u16()),
        }
    }

    fn write(&self, state: &mut State, at: WorldTime) {
        let mut writer = state.begin(tag::IMPORTANCE, at, true);
        writer.i64(self.newest);
        for count in self.counts {
            writer.u16(count);
        }
    }

    /// Moves on to a later day.
    fn move_to(&mut self, day: i64) {
        let steps = day.saturating_sub(self.newest);
        if steps <= 0 {
            return;
        }
        let steps = usize::try_from(steps).unwrap_or(usize::MAX);
        let length = self.counts.len();
        if steps >= length {
            self.counts = [0; WINDOW_DAYS + 1];
        } else {
            self.counts.copy_within(..length - steps, steps);
            self.counts[..steps].fill(0);
        }
        self.newest = day;
    }

    fn add(&mut self, at: WorldTime) {
        let age = self.newest.saturating_sub(day_of(at));
        if let Ok(age) = usize::try_from(age)
            && let Some(count) = self.counts.get_mut(age)
        {
            *count = count.saturating_add(1);
        }
    }

    /// The rate at a time: the day that is only partly within the window counts in part.
    fn per_day(&self, now: WorldTime) -> f64 {
        let today = day_of(now);
        let passed = now.micros().rem_euclid(DAY_US) as f64 / DAY_US as f64;
        let counts = self.counts.iter().enumerate();
        let sum: f64 = counts
            .map(|(age, count)| {
                let age = today.saturating_sub(self.newest).saturating_add(age as i64);
                let share = match age {
                    ..=6 => 1.0,
                    7 => 1.0 - passed,
                    _ => 0.0,
                };
                share * f64::from(*count)
            })
            .sum();
        sum / WINDOW_DAYS as f64
    }
}

const fn day_of(at: WorldTime) -> i64 {
    at.micros().div_euclid(DAY_US)
}

impl Policy for Importance {
    fn name(&self) -> &'static str {
        "importance"
    }

    fn tag(&self) -> u8 {
        tag::IMPORTANCE
    }

    fn observe(&self, _shared: &mut Shared, state: &mut State, visit: &Visit<'_>) {
        let mut days = Days::read(state);
        days.move_to(day_of(visit.at));
        for post in visit.posts {
            days.add(*post);
        }
        days.write(state, visit.at);
    }

    /// The rate is the one at the last visit: nothing was observed since.
    fn index(&self, _shared: &Shared, state: &State, now: WorldTime) -> f64 {
        let rate = match state.visited() {
            Some(visited) if state.is_of(self.tag()) => Days::read(state).per_day(visited),
            _ => 0.0,
        };
        super::change_rate::index(Some(rate), elapsed_days(state, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interaction_rate_is_a_seventh_of_a_week() {
        let day = |days: f64| WorldTime((days * DAY_US as f64) as i64);
        let actions: Vec<WorldTime> = [0.5, 3.1, 3.2, 6.0, 7.4, 9.9].map(day).to_vec();
        // The window (2.9, 9.9] holds five of them.
        assert!((effective_interaction_rate(&actions, day(9.9)) - 5.0 / 7.0).abs() < 1e-12);
    }

    #[test]
    fn importance_is_a_mean_over_the_users_of_an_object() {
        // Three users; a search engine showed the object 10 times, once and never.
        let users = [(2.0, 10.0), (4.0, 1.0), (7.0, 0.0)];
        assert!((importance(&users) - 8.0).abs() < 1e-12);
        assert!(importance(&[]).abs() < 1e-12);
    }

    #[test]
    fn days_by_day_agree_with_the_definition() {
        let at = |hours: i64| WorldTime(hours * super::super::HOUR_US);
        let posts: Vec<WorldTime> = (0..40).map(|step| at(step * 24)).collect();
        let (mut shared, mut state) = (Shared::default(), State::default());
        Importance.observe(&mut shared, &mut state, &Visit::complete(at(936), &posts));
        let rate = Days::read(&state).per_day(at(936));
        assert!((rate - effective_interaction_rate(&posts, at(936))).abs() < 0.15);
        // A month later nothing is left of it.
        Importance.observe(&mut shared, &mut state, &Visit::complete(at(1_700), &[]));
        assert!(Days::read(&state).per_day(at(1_700)).abs() < 1e-12);
    }
}
