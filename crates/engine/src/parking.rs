//! Visits that have begun and wait for a limit which those that begin do not need. There may be many:
//! only what cannot be read from the store again is remembered of them.

use crate::EngineError;
use crate::found::Found;
use crate::lanes::{Place, QueueId};
use crate::prepare::Begun;
use crate::reading::{Subjects, Wanted};
use crate::scheduler::Scheduler;
use crate::site::Site;
use kittiwake_frontier::Back;
use kittiwake_model::{Key, Name};
use kittiwake_store::TaskRecord;
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

/// Visits that wait in a queue, ready to be sent, where little is sent at once; more are parked.
const READY_MIN: usize = 64;
/// The same for hosts that are not the crawl's own.
const OTHERS_READY_MAX: usize = 8;
/// Visits that are parked at once. A robot that has more begins no others.
pub(crate) const PARKED_MAX: usize = 20_000;

/// A visit that is left to the store until its turn comes.
#[derive(Debug)]
pub(crate) struct Parked {
    pub lane: Name,
    pub robot: Name,
    pub subject: Key,
    pub found: Found,
    /// Queries that failed for good in it.
    pub missed: Vec<Name>,
}

/// All of them, by the queue that they wait for.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    queues: BTreeMap<QueueId, VecDeque<Parked>>,
    count: usize,
}

impl Parking {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.count >= PARKED_MAX
    }

    pub(crate) fn park(&mut self, queue: QueueId, mut parked: Parked) {
        parked.found.posts.shrink_to_fit();
        self.queues.entry(queue).or_default().push_back(parked);
        self.count += 1;
    }

    /// The queues that somebody is parked for.
    fn awaited(&self) -> Vec<QueueId> {
        self.queues.keys().copied().collect()
    }

    /// Those who have waited longest for a queue.
    fn take(&mut self, queue: QueueId, count: usize) -> Vec<Parked> {
        let Some(parked) = self.queues.get_mut(&queue) else {
            return Vec::new();
        };
        let taken: Vec<Parked> = parked.drain(..count.min(parked.len())).collect();
        if parked.is_empty() {
            self.queues.remove(&queue);
        }
        self.count -= taken.len();
        taken
    }

    /// Takes out all of a sort.
    pub(crate) fn take_out(&mut self, is_meant: impl Fn(&Parked) -> bool) -> Vec<Parked> {
        let mut taken = Vec::new();
        for parked in self.queues.values_mut() {
            let all = std::mem::take(parked);
            let (out, kept) = all.into_iter().partition::<VecDeque<_>, _>(&is_meant);
            *parked = kept;
            taken.extend(out);
        }
        self.queues.retain(|_, parked| !parked.is_empty());
        self.count -= taken.len();
        taken
    }
}

impl Scheduler {
    /// Visits that wait in a queue, ready to be sent; more are parked. Of many hosts each has few.
    pub(crate) fn ready_max(&self, site: &Site) -> usize {
        if site.takes_credential {
            return self.enough().max(READY_MIN);
        }
        OTHERS_READY_MAX
    }

    /// Makes parked visits ready again where queues have become short.
    pub(crate) fn unpark(&mut self) {
        for queue in self.parking.awaited() {
            let ready = self.lanes.length(queue);
            let ready_max = self.ready_max(&self.lanes.site_of(queue));
            if ready > ready_max / 2 || self.reading.is_for(queue) {
                continue;
            }
            let parked = self.parking.take(queue, ready_max - ready);
            let Some(first) = parked.first() else {
                continue;
            };
            let wanted = Wanted {
                lane: first.lane.clone(),
                robot: first.robot.clone(),
                subjects: Subjects::Parked(queue, parked),
                begun: Instant::now(),
            };
            self.reading.start(&self.shop, wanted);
        }
    }

    pub(crate) async fn make_ready(
        &mut self,
        parked: Vec<Parked>,
        records: Vec<Option<TaskRecord>>,
        reading_began: Instant,
    ) -> Result<(), EngineError> {
        for (parked, record) in parked.into_iter().zip(records) {
            let Some(record) = record else {
                // The subject became part of another, whose own rows are filed.
                self.frontier
                    .release(&parked.lane, parked.subject, Back::Out);
                continue;
            };
            let task = (&parked.lane, parked.subject);
            if self.is_outdated(task, reading_began).await? {
                continue;
            }
            let begun = Begun {
                found: parked.found,
                missed: parked.missed,
                place: Place::Back,
                ..Begun::at(Instant::now())
            };
            self.prepare(&parked.lane, &parked.robot, vec![record], begun)
                .await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parked(robot: &str, subject: i64) -> Parked {
        Parked {
            lane: robot.into(),
            robot: robot.into(),
            subject: Key(subject),
            found: Found::default(),
            missed: Vec::new(),
        }
    }

    fn subjects(parked: &[Parked]) -> Vec<i64> {
        parked.iter().map(|it| it.subject.0).collect()
    }

    #[test]
    fn whoever_was_parked_first_is_taken_first_and_each_once() {
        let mut parking = Parking::default();
        (1..=3).for_each(|subject| parking.park(7, parked("posts", subject)));
        parking.park(8, parked("tags", 4));
        assert_eq!(parking.awaited(), [7, 8]);
        assert_eq!(subjects(&parking.take(7, 2)), [1, 2]);
        assert_eq!(subjects(&parking.take(7, 2)), [3]);
        assert!(parking.take(7, 2).is_empty() && !parking.is_empty());
        assert_eq!(subjects(&parking.take_out(|it| &*it.robot == "tags")), [4]);
        assert!(parking.is_empty() && parking.awaited().is_empty());
    }
}
