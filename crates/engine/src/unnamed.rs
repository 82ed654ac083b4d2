//! Posts and the like are known by what others say of them before their own host has said what it calls
//! them, and there is no question that tells it: its lists do, in time. They wait until nothing
//! else is left to do; then the crawl's own host is asked, if that knows them.

use crate::scheduler::Scheduler;
use kittiwake_frontier::Back;
use kittiwake_model::{Key, Name};
use kittiwake_store::TaskRecord;
use std::collections::{BTreeSet, HashSet};

/// Tasks that wait at once; beyond that nobody waits.
const UNNAMED_MAX: usize = 200_000;

/// Tasks whose own hosts have not said what they call them.
#[derive(Debug, Default)]
pub(crate) struct Unnamed {
    waiting: BTreeSet<(Name, Key)>,
    /// Those who have waited.
    waited: HashSet<Key>,
}

impl Unnamed {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl Scheduler {
    /// Lets tasks wait for their own hosts' word; false if they have waited, or cannot.
    pub(crate) fn waits_for_name(&mut self, lane: &Name, tasks: &[TaskRecord]) -> bool {
        if !self.shop.settings.rounds.end() {
            let later_us = self.shop.settings.host_patience.as_micros() as i64;
            let later = self.shop.clock.world().plus_us(later_us);
            for task in tasks {
                self.frontier
                    .release(lane, task.row.subject, Back::Again(later));
            }
            return true;
        }
        let unnamed = &mut self.unnamed;
        let have_waited = tasks
            .iter()
            .all(|it| unnamed.waited.contains(&it.row.subject));
        if have_waited || unnamed.waiting.len() >= UNNAMED_MAX {
            return false;
        }
        let waiting = tasks.iter().map(|task| (lane.clone(), task.row.subject));
        unnamed.waiting.extend(waiting);
        true
    }

    /// Nothing else is left: whoever waits is asked for once more, wherever that can be.
    pub(crate) fn ask_for_unnamed(&mut self) {
        let now = self.shop.clock.world();
        for (lane, subject) in std::mem::take(&mut self.unnamed.waiting) {
            if self.unnamed.waited.len() < UNNAMED_MAX {
                self.unnamed.waited.insert(subject);
            } else {
                self.shop.stand_in_for(subject);
            }
            self.frontier.release(&lane, subject, Back::Again(now));
        }
    }
}
