//! CUVIM's Hash model (Algorithm 2): a table of what somebody posts in each slot of the day.
//!
//! a_i ← (1 − w)·a_i + w·n_i, once per slot and day, where n_i counts the posts of the newest day
//! by their own times and w weighs it. Somebody is visited when more than c posts are expected
//! since the last visit, or when that is longer than s ago. Under a budget the same two reasons
//! compete: max(expected/c, elapsed/s).

use super::rhythm::{HOURS, sum_of_hours};
use super::{HOUR_US, Policy, Shared, State, Visit, elapsed_days, tag};
use kittiwake_model::WorldTime;

/// The longest span without a visit, s: 30 days.
pub const LONGEST_SPAN_DAYS: f64 = 30.0;
/// Slots before the last month tell nothing any more: their weight is below 0.6³⁰.
const SLOTS_BACK: i64 = 60 * 24;

/// One profile of 24 slots.
#[derive(Debug, Clone, Copy)]
pub struct Hash {
    page: f64,
    weight: f64,
}

impl Hash {
    /// For answers of at most `page` posts; the newest day weighs `weight`.
    pub const fn new(page: f64, weight: f64) -> Self {
        Self { page, weight }
    }
}

/// Algorithm 2 for one user and one day: the slots (1 to k) after which to visit.
///
/// `last` is the slot of the last visit, 0 or negative if that was before this day, `remaining` what
/// is expected to be left over; both are carried over to the next day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DayPlan {
    pub last: i64,
    pub remaining: f64,
}

impl DayPlan {
    /// Plans one day of `slots` (already updated by [`update`]) and gives the slots of its visits.
    pub fn plan(&mut self, slots: &[f64], page: f64, longest_slots: i64) -> Vec<usize> {
        let mut visits = Vec::new();
        // sum_0 is minus what remained, so that it counts once.
        let (mut sum, mut sum_at_last) = (0.0, -self.remaining);
        for (place, expected) in slots.iter().enumerate() {
            let slot = place as i64 + 1;
            sum += expected;
            if sum - sum_at_last > page || slot - self.last > longest_slots {
                visits.push(place + 1);
                self.last = slot;
                sum_at_last = sum;
            }
        }
        self.remaining = sum - sum_at_last;
        self.last -= slots.len() as i64;
        visits
    }
}

/// a_i ← (1 − w)·a_i + w·n_i for every slot.
pub fn update(slots: &mut [f64], counts: &[f64], weight: f64) {
    for (slot, count) in slots.iter_mut().zip(counts) {
        *slot = (1.0 - weight) * *slot + weight * count;
    }
}

/// The table, with the posts of the slot in which the last visit fell.
#[derive(Debug, Clone, Copy)]
struct Table {
    slots: [f32; HOURS],
    begun: u16,
}

impl Table {
    fn read(state: &State) -> Self {
        if !state.is_of(tag::HASH) {
            return Self {
                slots: [0.0; HOURS],
                begun: 0,
            };
        }
        let mut fields = state.fields();
        Self {
            slots: std::array::from_fn(|_| short_to_float(fields.u16())),
            begun: fields.u16(),
        }
    }

    fn write(&self, state: &mut State, at: WorldTime) {
        let mut writer = state.begin(tag::HASH, at, true);
        for slot in self.slots {
            writer.u16(float_to_short(slot));
        }
        writer.u16(self.begun);
    }

    /// Applies every slot that has ended, in order; what belongs to the slot that runs is kept.
    fn take_in(&mut self, counts: &SlotCounts, weight: f32) {
        for (slot, count) in counts.ended(self.begun) {
            let value = &mut self.slots[slot];
            *value = (1.0 - weight) * *value + weight * count;
        }
        self.begun = counts.running(self.begun);
    }
}

/// The upper half of a float: seven bits of precision are plenty for an expectation.
fn float_to_short(value: f32) -> u16 {
    ((value.to_bits().saturating_add(0x8000)) >> 16) as u16
}

fn short_to_float(short: u16) -> f32 {
    let value = f32::from_bits(u32::from(short) << 16);
    if value.is_finite() {
        value.max(0.0)
    } else {
        0.0
    }
}

/// A visit's posts by slot, from the slot of the last visit to that of this one.
#[derive(Debug)]
pub(super) struct SlotCounts {
    first: i64,
    counts: Vec<u32>,
}

impl SlotCounts {
    pub(super) fn of(since: WorldTime, visit: &Visit<'_>) -> Self {
        let now = slot_of(visit.at);
        let first = slot_of(since.min(visit.at)).max(now.saturating_sub(SLOTS_BACK));
        let mut counts = vec![0; (now - first) as usize + 1];
        for post in visit.posts {
            let place = usize::try_from(slot_of(*post).saturating_sub(first));
            if let Some(count) = place.ok().and_then(|place| counts.get_mut(place)) {
                *count += 1;
            }
        }
        Self { first, counts }
    }

    /// The slots that have ended: their number since 1970, and the posts in them.
    pub(super) fn ended_slots(&self, begun: u16) -> impl Iterator<Item = (i64, f32)> + '_ {
        let ended = self.counts.len() - 1;
        let slots = (self.first..).zip(&self.counts[..ended]).enumerate();
        slots.map(move |(place, (slot, count))| {
            let before = if place == 0 { f32::from(begun) } else { 0.0 };
            (slot, *count as f32 + before)
        })
    }

    fn ended(&self, begun: u16) -> impl Iterator<Item = (usize, f32)> + '_ {
        self.ended_slots(begun)
            .map(|(slot, count)| (slot.rem_euclid(HOURS as i64) as usize, count))
    }

    /// The posts so far of the slot that runs.
    pub(super) fn running(&self, begun: u16) -> u16 {
        let last = self.counts.last().copied().unwrap_or(0);
        let before = if self.counts.len() == 1 { begun } else { 0 };
        before.saturating_add(u16::try_from(last).unwrap_or(u16::MAX))
    }
}

const fn slot_of(at: WorldTime) -> i64 {
    at.micros().div_euclid(HOUR_US)
}

impl Policy for Hash {
    fn name(&self) -> &'static str {
        "hash"
    }

    fn tag(&self) -> u8 {
        tag::HASH
    }

    fn observe(&self, _shared: &mut Shared, state: &mut State, visit: &Visit<'_>) {
        let mut table = Table::read(state);
        let since = state.since().unwrap_or(visit.at);
        table.take_in(&SlotCounts::of(since, visit), self.weight as f32);
        table.write(state, visit.at);
    }

    fn index(&self, _shared: &Shared, state: &State, now: WorldTime) -> f64 {
        let since = state.since().unwrap_or(now);
        let expected = sum_of_hours(&Table::read(state).slots, since, now);
        (expected / self.page).max(elapsed_days(state, now) / LONGEST_SPAN_DAYS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::DAY_US;

    #[test]
    fn the_weights_of_days_halve() {
        // The paper: 0.5 for today, 0.25 for yesterday.
        let mut slots = [0.0];
        for count in [8.0, 0.0, 4.0] {
            update(&mut slots, &[count], 0.5);
        }
        assert!((slots[0] - (4.0 * 0.5 + 8.0 * 0.125)).abs() < 1e-12);
    }

    #[test]
    fn a_day_is_planned_by_algorithm_2() {
        // Four slots, c = 10: 6 + 6 crosses in slot 2; 1 + 10 in slot 4.
        let mut plan = DayPlan {
            last: 0,
            remaining: 0.0,
        };
        assert_eq!(plan.plan(&[6.0, 6.0, 1.0, 10.0], 10.0, 100), [2, 4]);
        assert_eq!((plan.last, plan.remaining), (0, 0.0));
    }

    #[test]
    fn what_was_left_over_counts_once() {
        let mut plan = DayPlan {
            last: 0,
            remaining: 0.0,
        };
        assert_eq!(plan.plan(&[3.0, 3.0], 10.0, 100), Vec::<usize>::new());
        assert!((plan.remaining - 6.0).abs() < 1e-12);
        // 6 + 3 is not more than 10, 6 + 3 + 3 is.
        assert_eq!(plan.plan(&[3.0, 3.0], 10.0, 100), [2]);
        assert!(plan.remaining.abs() < 1e-12);
        // Exactly c is not more than c.
        assert_eq!(plan.plan(&[5.0, 5.0], 10.0, 100), Vec::<usize>::new());
    }

    #[test]
    fn the_longest_span_is_counted_over_days() {
        let mut plan = DayPlan {
            last: 0,
            remaining: 0.0,
        };
        let days: Vec<usize> = (0..6)
            .map(|_| plan.plan(&[0.0; 24], 100.0, 50).len())
            .collect();
        // After 51 slots: in slot 3 of day 2, then 51 later in slot 6 of day 4.
        assert_eq!(days, [0, 0, 1, 0, 1, 0]);
    }

    #[test]
    fn slots_are_learnt_from_the_times_of_posts() {
        let policy = Hash::new(100.0, 0.5);
        let at = |hours: i64| WorldTime(hours * HOUR_US);
        let (mut shared, mut state) = (Shared::default(), State::default());
        policy.observe(&mut shared, &mut state, &Visit::complete(at(0), &[]));
        let posts = [at(5), at(5), at(7), at(29)];
        // Seen in the middle of slot 29: it is not over, so that its post waits.
        let half_past = WorldTime(at(29).micros() + HOUR_US / 2);
        policy.observe(&mut shared, &mut state, &Visit::complete(half_past, &posts));
        let table = Table::read(&state);
        assert!((table.slots[5] - 1.0).abs() < 1e-6 && (table.slots[7] - 0.5).abs() < 1e-6);
        assert_eq!(table.begun, 1);
        policy.observe(
            &mut shared,
            &mut state,
            &Visit::complete(at(30), &[half_past]),
        );
        let table = Table::read(&state);
        assert!((table.slots[5] - 1.5).abs() < 1e-6, "{:?}", table.slots);
        let index = policy.index(&shared, &state, at(54));
        assert!((index - 0.02_f64.max(1.0 / 30.0)).abs() < 1e-6);
        // Whoever posts nothing is still visited after the longest span.
        let late = WorldTime(at(30).micros() + 31 * DAY_US);
        assert!(policy.index(&shared, &state, late) > 1.0);
    }
}
