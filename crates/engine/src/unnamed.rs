//! Those of whom nobody has said yet what their own host calls them. Posts and the like are known by
//! what others say of them before that, and there is no question that tells it: their host's lists do, in
//! time. People can be looked up by a handle, if anybody whose word counts has told it. Both wait until
//! nothing else is left to do: what comes of it must not hang on who is asked first.

use crate::scheduler::Scheduler;
use kittiwake_frontier::Back;
use kittiwake_model::{Key, Name};
use kittiwake_store::TaskRecord;
use std::collections::{BTreeSet, HashMap};

/// Tasks that wait at once; beyond that nobody waits.
const UNNAMED_MAX: usize = 200_000;

/// How often all who wait are tried in the hope that others have told of them.
const HOPES_MAX: u32 = 16;

/// What those who wait are let go with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Patience {
    /// Answers since may have told what was missing.
    #[default]
    Hopes,
    /// None has: the crawl's own host is asked, if that knows them.
    StandsIn,
    /// That brought nothing either.
    GivenUp,
}

impl Patience {
    const fn next(self) -> Self {
        match self {
            Self::Hopes => Self::StandsIn,
            Self::StandsIn | Self::GivenUp => Self::GivenUp,
        }
    }
}

/// Tasks whose own hosts have not said what they call them.
#[derive(Debug, Default)]
pub(crate) struct Unnamed {
    waiting: BTreeSet<(Name, Key)>,
    /// Those who have waited, and what they were let go with.
    let_go: HashMap<Key, Patience>,
    patience: Patience,
    /// Calls that had been made when all were let go the last time, and how often in hope.
    calls: Option<u64>,
    hopes: u32,
}

impl Unnamed {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What all who wait are let go with: with hope, if anything was asked since they were the last time.
    fn next_patience(&mut self, calls: u64) -> Patience {
        let is_hopeful = self.calls != Some(calls) && self.hopes < HOPES_MAX;
        self.hopes += u32::from(is_hopeful);
        self.calls = Some(calls);
        self.patience = if is_hopeful {
            Patience::Hopes
        } else {
            self.patience.next()
        };
        self.patience
    }
}

impl Scheduler {
    /// Lets tasks wait for their own hosts' word; false if they have waited long enough for what comes
    /// next, or cannot.
    pub(crate) fn waits_for_name(
        &mut self,
        lane: &Name,
        tasks: &[TaskRecord],
        next: Patience,
    ) -> bool {
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
        let has_waited = |task: &TaskRecord| {
            let let_go = unnamed.let_go.get(&task.row.subject);
            let_go.is_some_and(|patience| *patience >= next)
        };
        if tasks.iter().all(has_waited) || unnamed.waiting.len() >= UNNAMED_MAX {
            return false;
        }
        let waiting = tasks.iter().map(|task| (lane.clone(), task.row.subject));
        unnamed.waiting.extend(waiting);
        true
    }

    /// Nothing else is left: whoever waits is asked for once more, wherever that can be.
    pub(crate) fn ask_for_unnamed(&mut self) {
        let now = self.shop.clock.world();
        let patience = self.unnamed.next_patience(self.calls);
        for (lane, subject) in std::mem::take(&mut self.unnamed.waiting) {
            self.unnamed.let_go.insert(subject, patience);
            self.frontier.release(&lane, subject, Back::Again(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_wait_are_given_up_only_when_nothing_more_is_told() {
        let mut unnamed = Unnamed::default();
        let patience: Vec<Patience> = [10, 10, 12, 12, 12, 12]
            .into_iter()
            .map(|calls| unnamed.next_patience(calls))
            .collect();
        assert_eq!(
            patience,
            [
                Patience::Hopes,
                Patience::StandsIn,
                // Whoever stood in has told something.
                Patience::Hopes,
                Patience::StandsIn,
                Patience::GivenUp,
                Patience::GivenUp,
            ]
        );
    }

    #[test]
    fn hope_ends() {
        let mut unnamed = Unnamed::default();
        let last = (0..100).map(|calls| unnamed.next_patience(calls)).last();
        assert_eq!(last, Some(Patience::GivenUp));
    }
}
