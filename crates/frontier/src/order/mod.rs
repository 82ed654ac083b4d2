//! The due order: which subject of a lane is next.
//!
//! [`SortedIndex`] has it in memory, for a bounded number of subjects. [`DiskOrder`] has all of a
//! crawl beyond a million entries, on disk.

mod disk;
mod head;
mod runs;

pub use disk::{Change, DiskOrder, Entry, Found, LaneNumber, OrderError, Replaced, remove_within};

use kittiwake_model::{Key, WorldTime};
use std::collections::{BTreeSet, HashMap};

/// A subject's place in the order: by due time, then by key, which is the order of discovery.
pub type Place = (WorldTime, Key);

/// Subjects in due order, in memory. Whoever holds one bounds it: the last can be taken out as
/// well as the first.
#[derive(Debug, Default)]
pub struct SortedIndex {
    places: BTreeSet<Place>,
    filed: HashMap<Key, WorldTime>,
}

impl SortedIndex {
    /// Files a subject, or moves it if it is filed already.
    pub fn insert(&mut self, subject: Key, due: WorldTime) {
        if let Some(before) = self.filed.insert(subject, due) {
            self.places.remove(&(before, subject));
        }
        self.places.insert((due, subject));
    }

    pub fn remove(&mut self, subject: Key) {
        if let Some(due) = self.filed.remove(&subject) {
            self.places.remove(&(due, subject));
        }
    }

    pub fn contains(&self, subject: Key) -> bool {
        self.filed.contains_key(&subject)
    }

    /// The earliest subject, without taking it.
    pub fn first(&self) -> Option<Place> {
        self.places.first().copied()
    }

    /// Takes the earliest subject if it is due.
    pub fn pop_due(&mut self, now: WorldTime) -> Option<Key> {
        let (due, subject) = self.first()?;
        if due > now {
            return None;
        }
        self.remove(subject);
        Some(subject)
    }

    /// How many subjects are due, counted up to `max`.
    pub fn due(&self, now: WorldTime, max: usize) -> usize {
        self.places.range(..=(now, Key(i64::MAX))).take(max).count()
    }

    /// Takes the latest subject.
    pub fn pop_last(&mut self) -> Option<Place> {
        let place = self.places.pop_last()?;
        self.filed.remove(&place.1);
        Some(place)
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Insert(i64, i64),
        Remove(i64),
        Pop(i64),
        PopLast,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_i64..8, 0_i64..8).prop_map(|(subject, due)| Step::Insert(subject, due)),
            (0_i64..8).prop_map(Step::Remove),
            (0_i64..8).prop_map(Step::Pop),
            Just(Step::PopLast),
        ]
    }

    proptest! {
        #[test]
        fn the_index_agrees_with_a_sorted_list(steps in prop::collection::vec(step(), 0..60)) {
            let mut index = SortedIndex::default();
            let mut model: Vec<Place> = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(subject, due) => {
                        index.insert(Key(subject), WorldTime(due));
                        model.retain(|(_, key)| *key != Key(subject));
                        model.push((WorldTime(due), Key(subject)));
                    }
                    Step::Remove(subject) => {
                        index.remove(Key(subject));
                        model.retain(|(_, key)| *key != Key(subject));
                    }
                    Step::Pop(now) => {
                        let expected = model.first().copied().filter(|(due, _)| due.0 <= now);
                        model.retain(|place| Some(*place) != expected);
                        prop_assert_eq!(index.pop_due(WorldTime(now)), expected.map(|(_, key)| key));
                    }
                    Step::PopLast => prop_assert_eq!(index.pop_last(), model.pop()),
                }
                model.sort_unstable();
                prop_assert_eq!(index.len(), model.len());
                prop_assert_eq!(index.first(), model.first().copied());
                let due = model.iter().filter(|(due, _)| due.0 <= 4).count();
                prop_assert_eq!(index.due(WorldTime(4), 3), due.min(3));
            }
        }
    }
}
