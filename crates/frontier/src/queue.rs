//! Lanes and leases: the frontier as the engine uses it.

use crate::order::{HeapIndex, OrderedIndex};
use kittiwake_model::{Key, Name, WorldTime};
use std::collections::{BTreeMap, HashSet};

/// A subject that a visit works on. Leases live in memory: a crash gives them all back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub lane: Name,
    pub subject: Key,
}

/// All lanes of a crawl. A lane that has to wait blocks no other.
#[derive(Debug, Default)]
pub struct Frontier {
    lanes: BTreeMap<Name, Lane>,
}

#[derive(Debug, Default)]
struct Lane {
    order: HeapIndex,
    leased: HashSet<Key>,
}

impl Frontier {
    /// Files a subject, or moves it. A subject that is leased stays out: whoever holds the lease
    /// decides when it is due again.
    pub fn file(&mut self, lane: &Name, subject: Key, due: WorldTime) {
        let lane = self.lanes.entry(lane.clone()).or_default();
        if !lane.leased.contains(&subject) {
            lane.order.insert(subject, due);
        }
    }

    /// Leases up to `count` subjects of one lane that are due.
    pub fn lease(&mut self, lane: &Name, now: WorldTime, count: usize) -> Vec<Lease> {
        let Some(entry) = self.lanes.get_mut(lane) else {
            return Vec::new();
        };
        let mut leases = Vec::new();
        while leases.len() < count {
            let Some(subject) = entry.order.pop_due(now) else {
                break;
            };
            entry.leased.insert(subject);
            leases.push(Lease {
                lane: lane.clone(),
                subject,
            });
        }
        leases
    }

    /// Ends a lease; with a time, the subject is filed again.
    pub fn release(&mut self, lane: &Name, subject: Key, due: Option<WorldTime>) {
        let Some(entry) = self.lanes.get_mut(lane) else {
            return;
        };
        entry.leased.remove(&subject);
        if let Some(due) = due {
            entry.order.insert(subject, due);
        }
    }

    /// Forgets a subject that became part of another.
    pub fn forget(&mut self, subject: Key) {
        for lane in self.lanes.values_mut() {
            lane.order.remove(subject);
        }
    }

    pub fn lanes(&self) -> impl Iterator<Item = &Name> {
        self.lanes.keys()
    }

    /// When the next subject of a lane is due.
    pub fn next_due(&mut self, lane: &Name) -> Option<WorldTime> {
        self.lanes.get_mut(lane)?.order.first().map(|(due, _)| due)
    }

    /// Subjects that are filed and not leased.
    pub fn waiting(&self) -> usize {
        self.lanes.values().map(|lane| lane.order.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leased_subject_is_not_handed_out_twice() {
        let mut frontier = Frontier::default();
        let lane: Name = "net/host/profiles".into();
        frontier.file(&lane, Key(1), WorldTime(5));
        frontier.file(&lane, Key(2), WorldTime(9));
        let leases = frontier.lease(&lane, WorldTime(5), 10);
        assert_eq!(
            leases.iter().map(|lease| lease.subject).collect::<Vec<_>>(),
            [Key(1)]
        );
        frontier.file(&lane, Key(1), WorldTime(0));
        assert!(frontier.lease(&lane, WorldTime(5), 10).is_empty());
        frontier.release(&lane, Key(1), Some(WorldTime(7)));
        assert_eq!(frontier.next_due(&lane), Some(WorldTime(7)));
        assert_eq!(frontier.waiting(), 2);
    }

    #[test]
    fn an_empty_lane_blocks_no_other() {
        let mut frontier = Frontier::default();
        frontier.file(&"a".into(), Key(1), WorldTime(100));
        frontier.file(&"b".into(), Key(1), WorldTime(0));
        assert!(frontier.lease(&"a".into(), WorldTime(1), 1).is_empty());
        assert_eq!(frontier.lease(&"b".into(), WorldTime(1), 1).len(), 1);
    }
}
