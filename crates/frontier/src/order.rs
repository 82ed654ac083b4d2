//! The due order: which subject of a lane is next.

use kittiwake_model::{Key, WorldTime};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// The subjects of one lane, by due time, then by key (which is the order of discovery).
pub trait OrderedIndex: Send + std::fmt::Debug {
    /// Files a subject, or moves it if it is filed already.
    fn insert(&mut self, subject: Key, due: WorldTime);

    fn remove(&mut self, subject: Key);

    /// The earliest subject, without taking it.
    fn first(&mut self) -> Option<(WorldTime, Key)>;

    /// Takes the earliest subject if it is due.
    fn pop_due(&mut self, now: WorldTime) -> Option<Key>;

    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A heap in memory. An entry that was moved leaves its old place behind; such a stale place is
/// known by its time and skipped when it comes up.
#[derive(Debug, Default)]
pub struct HeapIndex {
    heap: BinaryHeap<Reverse<(WorldTime, Key)>>,
    filed: HashMap<Key, WorldTime>,
}

impl HeapIndex {
    fn drop_stale(&mut self) {
        while let Some(Reverse((due, subject))) = self.heap.peek() {
            if self.filed.get(subject) == Some(due) {
                return;
            }
            self.heap.pop();
        }
    }
}

impl OrderedIndex for HeapIndex {
    fn insert(&mut self, subject: Key, due: WorldTime) {
        if self.filed.insert(subject, due) == Some(due) {
            return;
        }
        self.heap.push(Reverse((due, subject)));
    }

    fn remove(&mut self, subject: Key) {
        self.filed.remove(&subject);
    }

    fn first(&mut self) -> Option<(WorldTime, Key)> {
        self.drop_stale();
        self.heap.peek().map(|Reverse(entry)| *entry)
    }

    fn pop_due(&mut self, now: WorldTime) -> Option<Key> {
        let (due, subject) = self.first()?;
        if due > now {
            return None;
        }
        self.heap.pop();
        self.filed.remove(&subject);
        Some(subject)
    }

    fn len(&self) -> usize {
        self.filed.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[derive(Debug, Clone)]
    enum Step {
        Insert(i64, i64),
        Remove(i64),
        Pop(i64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_i64..8, 0_i64..8).prop_map(|(subject, due)| Step::Insert(subject, due)),
            (0_i64..8).prop_map(Step::Remove),
            (0_i64..8).prop_map(Step::Pop),
        ]
    }

    proptest! {
        #[test]
        fn the_heap_agrees_with_a_sorted_set(steps in prop::collection::vec(step(), 0..60)) {
            let mut index = HeapIndex::default();
            let mut model: BTreeSet<(WorldTime, Key)> = BTreeSet::new();
            for step in steps {
                match step {
                    Step::Insert(subject, due) => {
                        index.insert(Key(subject), WorldTime(due));
                        model.retain(|(_, key)| *key != Key(subject));
                        model.insert((WorldTime(due), Key(subject)));
                    }
                    Step::Remove(subject) => {
                        index.remove(Key(subject));
                        model.retain(|(_, key)| *key != Key(subject));
                    }
                    Step::Pop(now) => {
                        let expected = model.first().copied().filter(|(due, _)| due.0 <= now);
                        if let Some(entry) = expected {
                            model.remove(&entry);
                        }
                        prop_assert_eq!(index.pop_due(WorldTime(now)), expected.map(|(_, key)| key));
                    }
                }
                prop_assert_eq!(index.len(), model.len());
                prop_assert_eq!(index.first(), model.first().copied());
            }
        }
    }
}
