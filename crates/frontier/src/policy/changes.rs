//! For what is told without times: profiles, counts, lists of people. All that a visit shows is whether
//! something is another than it was, and how much longer a list has become.
//!
//! A change that waits for a day is worth as much as a post that does, so that a visit after τ days is
//! worth λτ²/2 ([`super::square_root`]), shared among the calls that it takes: a walk over a list of a
//! thousand pages has to bring a thousand times as much as a look at a profile.
//!
//! - λ is changes over time watched, both fading, held back by what is usual.
//! - Something that has changed may have changed more than once. As many changes are counted as are
//!   expected of somebody who changes at the pace known so far and did so at least once.
//! - Counts go up and down with everything that people do: that one has moved is a tenth of a change.

use super::{DAY_US, Policy, Shared, State, Visit, days_between, elapsed_days, tag};
use kittiwake_model::WorldTime;

/// How long changes are remembered, in days and in mean gaps between visits, at least.
const MEMORY_DAYS: f64 = 60.0;
const MEMORY_GAPS: f64 = 8.0;
/// What is usual counts as so many changes of the subject's own, seen for no longer than this.
const PRIOR_CHANGES: f64 = 0.5;
const PRIOR_DAYS_MAX: f64 = 60.0;
/// A count that has moved, against something that was changed.
const COUNT_PART: f64 = 0.1;
/// No pace is slower, in changes a day: a visit is worth little, not nothing.
const PACE_MIN: f64 = 1e-6;
/// A visit takes no fewer and no more calls than this, as far as choosing goes.
const CALLS_MIN: f32 = 1e-3;
const CALLS_MAX: f32 = 1e6;
/// Nothing is due later.
const FAR_DAYS: f64 = 4_000.0;

/// What a visit has shown that has no time, in brief.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// All of it. The same digest is the same content; counts have a digest of their own.
    Whole {
        digest: u64,
        counts: u32,
        /// How many entries a list has; 0 of what is no list.
        size: u32,
    },
    /// The server says that nothing has changed.
    Same,
    /// Only what is new: so many entries.
    New(u32),
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Changes;

/// What is remembered of one subject.
#[derive(Debug, Clone, Copy, Default)]
struct Memory {
    /// Changes and days watched, both fading.
    changes: f32,
    days: f32,
    /// Calls that the last visits took, in the mean.
    calls: f32,
    digest: u64,
    counts: u32,
    size: u32,
    has_content: bool,
}

impl Memory {
    fn read(state: &State) -> Self {
        if !state.is_of(tag::CHANGES) || state.visited().is_none() {
            return Self::default();
        }
        let mut fields = state.fields();
        Self {
            changes: fields.f32().max(0.0),
            days: fields.f32().max(0.0),
            calls: fields.f32().clamp(0.0, CALLS_MAX),
            digest: u64::from_le_bytes(fields.array()),
            counts: u32::from_le_bytes(fields.array()),
            size: u32::from_le_bytes(fields.array()),
            has_content: fields.u8() != 0,
        }
    }

    fn write(&self, state: &mut State, at: WorldTime) {
        let mut writer = state.begin(tag::CHANGES, at, true);
        writer.f32(self.changes).f32(self.days).f32(self.calls);
        writer.bytes(&self.digest.to_le_bytes());
        writer.bytes(&self.counts.to_le_bytes());
        writer.bytes(&self.size.to_le_bytes());
        writer.u8(u8::from(self.has_content));
    }

    /// Changes a day, between what was seen and what is usual.
    fn pace(&self, shared: &Shared) -> f64 {
        let usual = shared.mean_rate().max(PACE_MIN);
        let prior_days = (PRIOR_CHANGES / usual).min(PRIOR_DAYS_MAX);
        let changes = f64::from(self.changes) + usual * prior_days;
        (changes / (f64::from(self.days) + prior_days)).max(PACE_MIN)
    }

    /// Calls that a visit takes; one, before that is known.
    fn calls(&self) -> f64 {
        if self.calls > 0.0 {
            f64::from(self.calls.max(CALLS_MIN))
        } else {
            1.0
        }
    }

    /// How much has changed since the last visit; `None` if that cannot be told.
    fn changed(&self, visit: &Visit<'_>, expected: f64) -> Option<f64> {
        let posts = visit.posts.len() as f64;
        let content = match visit.content {
            Some(Content::New(entries)) => Some(f64::from(entries)),
            Some(Content::Same) => Some(0.0),
            Some(Content::Whole {
                digest,
                counts,
                size,
            }) if self.has_content => {
                let moved = if counts == self.counts {
                    0.0
                } else {
                    COUNT_PART
                };
                let longer = f64::from(size.abs_diff(self.size));
                let other = if digest == self.digest {
                    0.0
                } else {
                    at_least_one(expected).max(longer)
                };
                Some(other + moved)
            }
            Some(Content::Whole { .. }) => None,
            None => (posts > 0.0).then_some(0.0),
        };
        content.map(|changes| changes + posts)
    }

    fn remember(&mut self, visit: &Visit<'_>) {
        let calls = if visit.calls.is_finite() {
            visit.calls.clamp(CALLS_MIN, CALLS_MAX)
        } else {
            1.0
        };
        self.calls = if self.calls > 0.0 {
            f32::midpoint(self.calls, calls)
        } else {
            calls
        };
        if let Some(Content::Whole {
            digest,
            counts,
            size,
        }) = visit.content
        {
            (self.digest, self.counts, self.size) = (digest, counts, size);
            self.has_content = true;
        }
    }
}

/// How many of a random number of events there are, if so many are expected and there is one at least.
fn at_least_one(expected: f64) -> f64 {
    if expected < 1e-6 {
        return 1.0;
    }
    expected / -(-expected).exp_m1()
}

impl Changes {
    /// λτ²/2 for each call.
    fn worth(memory: &Memory, shared: &Shared, elapsed_days: f64) -> f64 {
        super::square_root::index(memory.pace(shared), elapsed_days) / memory.calls()
    }
}

impl Policy for Changes {
    fn name(&self) -> &'static str {
        "changes"
    }

    fn tag(&self) -> u8 {
        tag::CHANGES
    }

    fn tells_post_days(&self) -> bool {
        true
    }

    fn observe(&self, shared: &mut Shared, state: &mut State, visit: &Visit<'_>) {
        let mut memory = Memory::read(state);
        let is_revisit = state.visited().is_some();
        let days = days_between(state.since().unwrap_or(visit.at), visit.at);
        let expected = memory.pace(shared) * days;
        if let Some(changed) = memory.changed(visit, expected).filter(|_| is_revisit) {
            let memory_days = MEMORY_DAYS.max(MEMORY_GAPS * shared.gap_days);
            let kept = (-days / memory_days).exp();
            memory.changes = (f64::from(memory.changes) * kept + changed) as f32;
            memory.days = (f64::from(memory.days) * kept + days) as f32;
            shared.watched(changed, days);
            shared.visited_after(days);
        }
        memory.remember(visit);
        memory.write(state, visit.at);
    }

    fn index(&self, shared: &Shared, state: &State, now: WorldTime) -> f64 {
        Self::worth(&Memory::read(state), shared, elapsed_days(state, now))
    }

    /// The time after which λτ²/2 is the price.
    fn due(&self, shared: &Shared, state: &State, price: f64, now: WorldTime) -> WorldTime {
        let since = state.since().unwrap_or(now);
        let worth = Self::worth(&Memory::read(state), shared, 1.0);
        let days = (price / worth.max(f64::MIN_POSITIVE)).sqrt().min(FAR_DAYS);
        let wait_us = (days * DAY_US as f64) as i64;
        since.plus_us(wait_us.max(1)).max(now)
    }

    fn expected(&self, shared: &Shared, state: &State, now: WorldTime) -> Option<f64> {
        Some(Memory::read(state).pace(shared) * elapsed_days(state, now))
    }

    fn posts_per_day(&self, shared: &Shared, state: &State) -> Option<f64> {
        Some(Memory::read(state).pace(shared))
    }

    fn knows_calls(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Facts;

    fn day(days: f64) -> WorldTime {
        WorldTime((days * DAY_US as f64) as i64)
    }

    fn seen(at: f64, digest: u64, size: u32) -> Visit<'static> {
        Visit {
            content: Some(Content::Whole {
                digest,
                counts: 0,
                size,
            }),
            ..Visit::complete(day(at), &[])
        }
    }

    fn met(shared: &Shared) -> State {
        Changes.meet(shared, &Facts::default(), day(0.0))
    }

    fn pace(shared: &Shared, state: &State) -> f64 {
        Changes.posts_per_day(shared, state).unwrap()
    }

    /// Visits every `gap` days somebody who changes every `every` days.
    fn watched(shared: &mut Shared, gap: f64, every: f64, visits: u32) -> State {
        let mut state = met(shared);
        for visit in 1..=visits {
            let at = f64::from(visit) * gap;
            Changes.observe(shared, &mut state, &seen(at, (at / every) as u64, 0));
        }
        state
    }

    #[test]
    fn the_pace_is_learnt_from_whether_something_is_another() {
        let mut shared = Shared::default();
        let slow = watched(&mut shared, 1.0, 20.0, 200);
        let quick = watched(&mut shared, 1.0, 2.5, 200);
        let never = watched(&mut shared, 1.0, 1e9, 200);
        assert!((pace(&shared, &slow) - 0.05).abs() < 0.02);
        // Two changes between two visits look like one; that is made up for in part.
        assert!((0.35..0.6).contains(&pace(&shared, &quick)));
        assert!(pace(&shared, &never) < 0.02);
    }

    #[test]
    fn whoever_changes_between_all_visits_is_expected_to_change_more_often_than_that() {
        let mut shared = Shared::default();
        let state = watched(&mut shared, 1.0, 0.1, 100);
        assert!(pace(&shared, &state) > 1.5, "{}", pace(&shared, &state));
    }

    #[test]
    fn a_list_that_grows_changes_by_as_much() {
        let mut shared = Shared::default();
        let mut state = met(&shared);
        for visit in 1..100_u32 {
            let at = f64::from(visit);
            Changes.observe(
                &mut shared,
                &mut state,
                &seen(at, u64::from(visit), visit * 7),
            );
        }
        assert!((pace(&shared, &state) - 7.0).abs() < 1.0);
    }

    #[test]
    fn what_takes_many_calls_is_visited_more_seldom() {
        let mut shared = Shared::default();
        let mut states = [met(&shared), met(&shared)];
        for (state, calls) in states.iter_mut().zip([1.0, 100.0]) {
            for visit in 1..20_u32 {
                let visit = Visit {
                    calls,
                    ..seen(f64::from(visit), u64::from(visit / 4), 0)
                };
                Changes.observe(&mut shared, state, &visit);
            }
        }
        let due = states.map(|state| Changes.due(&shared, &state, 0.5, day(19.0)));
        let waits = due.map(|due| days_between(day(19.0), due));
        assert!((waits[1] / waits[0] - 10.0).abs() < 0.5, "{waits:?}");
    }

    #[test]
    fn a_visit_that_shows_nothing_teaches_nothing() {
        let mut shared = Shared::default();
        let mut state = watched(&mut shared, 1.0, 3.0, 50);
        let before = (pace(&shared, &state), shared.clone());
        Changes.observe(&mut shared, &mut state, &Visit::complete(day(51.0), &[]));
        assert_eq!((pace(&shared, &state), shared), before);
        assert_eq!(state.visited(), Some(day(51.0)));
    }

    #[test]
    fn due_is_when_the_index_reaches_the_price() {
        let mut shared = Shared::default();
        let state = watched(&mut shared, 1.0, 3.0, 50);
        for price in [1e-9, 0.01, 1.0, 40.0] {
            let due = Changes.due(&shared, &state, price, day(50.0));
            let then = Changes.index(&shared, &state, due.plus_us(2));
            assert!(then >= price * (1.0 - 1e-6), "{price} {then}");
            if due > day(50.0) {
                let before = Changes.index(&shared, &state, due.plus_us(-60_000_000));
                assert!(before < price);
            }
        }
    }
}
