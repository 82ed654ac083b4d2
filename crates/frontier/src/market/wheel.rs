//! Who is looked at when: a wheel of slots of a quarter of a minute each.
//!
//! A heap of a million entries costs a dozen looks at far memory for every entry that goes in or comes
//! out. Nobody needs entries in order of microseconds: within a slot the first that was put in comes
//! out first, so that both ends cost the same however many there are.

use kittiwake_model::WorldTime;
use std::collections::{BTreeMap, VecDeque};

pub(super) const SLOT_US: i64 = 15_000_000;

/// A subject under a stamp.
pub(super) type Entry = (u32, u32);

#[derive(Debug, Default)]
pub(super) struct Wheel {
    /// By the beginning of the slot; none is empty.
    slots: BTreeMap<i64, VecDeque<Entry>>,
    count: usize,
}

const fn slot_of(at: WorldTime) -> i64 {
    at.micros().div_euclid(SLOT_US)
}

impl Wheel {
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    pub(super) fn push(&mut self, due: WorldTime, entry: Entry) {
        self.slots.entry(slot_of(due)).or_default().push_back(entry);
        self.count += 1;
    }

    /// Takes out the next entry, if its slot has begun by a time, or anyway.
    pub(super) fn pop(&mut self, by: Option<WorldTime>) -> Option<Entry> {
        let mut first = self.slots.first_entry()?;
        if by.is_some_and(|by| *first.key() > slot_of(by)) {
            return None;
        }
        let entry = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        self.count -= usize::from(entry.is_some());
        entry
    }

    /// Takes out the last entry, with the time at which its slot begins.
    pub(super) fn pop_last(&mut self) -> Option<(WorldTime, Entry)> {
        let mut last = self.slots.last_entry()?;
        let begins = WorldTime(last.key().saturating_mul(SLOT_US));
        let entry = last.get_mut().pop_back()?;
        if last.get().is_empty() {
            last.remove();
        }
        self.count -= 1;
        Some((begins, entry))
    }

    /// Throws away what is not wanted any more.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(Entry) -> bool) {
        self.slots.retain(|_, slot| {
            slot.retain(|entry| is_wanted(*entry));
            !slot.is_empty()
        });
        self.count = self.slots.values().map(VecDeque::len).sum();
    }

    /// Everything, in order, with the times at which their slots begin.
    pub(super) fn into_entries(self) -> impl Iterator<Item = (WorldTime, Entry)> {
        self.slots.into_iter().flat_map(|(slot, entries)| {
            let begins = WorldTime(slot.saturating_mul(SLOT_US));
            entries.into_iter().map(move |entry| (begins, entry))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> WorldTime {
        WorldTime(seconds * 1_000_000)
    }

    #[test]
    fn entries_come_out_by_slot_and_then_as_they_came_in() {
        let mut wheel = Wheel::default();
        for (seconds, subject) in [(100, 1), (3, 2), (-40, 3), (0, 4), (14, 5)] {
            wheel.push(at(seconds), (subject, 0));
        }
        assert_eq!(wheel.len(), 5);
        let mut order = Vec::new();
        while let Some((subject, _)) = wheel.pop(Some(at(90))) {
            order.push(subject);
        }
        // The slot of second 100 begins at 90.
        assert_eq!(order, [3, 2, 4, 5, 1]);
        assert_eq!((wheel.len(), wheel.pop(None)), (0, None));
    }

    #[test]
    fn what_is_not_due_comes_only_if_anything_is_wanted() {
        let mut wheel = Wheel::default();
        wheel.push(WorldTime(i64::MAX), (1, 0));
        wheel.push(at(60), (2, 0));
        assert_eq!(wheel.pop(Some(at(59))), None);
        assert_eq!(wheel.pop(Some(at(60))), Some((2, 0)));
        assert_eq!(wheel.pop(None), Some((1, 0)));
        wheel.push(WorldTime(i64::MIN), (3, 0));
        assert_eq!(wheel.pop(Some(at(0))), Some((3, 0)));
    }

    #[test]
    fn what_is_thrown_away_is_not_counted() {
        let mut wheel = Wheel::default();
        for subject in 0..10 {
            wheel.push(at(i64::from(subject) * 60), (subject, subject % 2));
        }
        wheel.retain(|(_, stamp)| stamp == 1);
        assert_eq!(wheel.len(), 5);
        let left: Vec<u32> = wheel
            .into_entries()
            .map(|(_, (subject, _))| subject)
            .collect();
        assert_eq!(left, [1, 3, 5, 7, 9]);
    }
}
