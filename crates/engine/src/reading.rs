//! Tasks that are read from the store before they become work. Meanwhile others are sent.

use crate::EngineError;
use crate::exchange::Shop;
use crate::lanes::QueueId;
use crate::parking::Parked;
use crate::scheduler::Scheduler;
use kittiwake_frontier::Back;
use kittiwake_model::{Commit, FrontierRow, Key, Name, WorldTime};
use kittiwake_network::Robot;
use kittiwake_store::TaskRecord;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;
use tokio::task::JoinSet;

/// Subjects of one robot whose tasks are wanted.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub lane: Name,
    pub robot: Name,
    pub subjects: Subjects,
    /// When choosing them began.
    pub begun: Instant,
}

#[derive(Debug)]
pub(crate) enum Subjects {
    /// Visits that begin, so many to a call.
    Fresh { keys: Vec<Key>, batch: usize },
    /// Visits that go on, for a queue that has become short.
    Parked(QueueId, Vec<Parked>),
}

impl Wanted {
    fn keys(&self) -> Vec<(Key, Name)> {
        let asked = |key: Key| (key, self.robot.clone());
        match &self.subjects {
            Subjects::Fresh { keys, .. } => keys.iter().copied().map(asked).collect(),
            Subjects::Parked(_, parked) => parked.iter().map(|it| asked(it.subject)).collect(),
        }
    }

    /// Calls that will begin visits.
    fn calls(&self) -> usize {
        match &self.subjects {
            Subjects::Fresh { keys, batch } => keys.len().div_ceil((*batch).max(1)),
            Subjects::Parked(..) => 0,
        }
    }
}

/// Wanted tasks as the store has them.
#[derive(Debug)]
pub(crate) struct Found {
    wanted: Wanted,
    /// In the same order; none for subjects that became part of others.
    records: Vec<Option<TaskRecord>>,
    /// The same, with when another answer told what a visit would; empty where none can.
    told: Vec<Option<WorldTime>>,
}

/// What is being read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    under_way: JoinSet<Result<Found, EngineError>>,
    found: Vec<Found>,
    /// Calls that will begin visits, of each robot.
    calls: HashMap<Name, usize>,
    /// Queues that visits are read for.
    queues: HashSet<QueueId>,
}

impl Reading {
    pub(crate) fn start(&mut self, shop: &Arc<Shop>, wanted: Wanted) {
        let calls = self.calls.entry(wanted.lane.clone()).or_default();
        *calls += wanted.calls();
        if let Subjects::Parked(queue, _) = wanted.subjects {
            self.queues.insert(queue);
        }
        let shop = Arc::clone(shop);
        self.under_way.spawn(async move {
            let mut records = shop.store.tasks(wanted.keys()).await?;
            shop.recall_places(&mut records);
            let told = shop.told_of(&wanted).await?;
            Ok(Found {
                wanted,
                records,
                told,
            })
        });
    }

    /// Waits until something was read; for ever, if nothing is.
    pub(crate) async fn progress(&mut self) -> Result<(), EngineError> {
        let Some(joined) = self.under_way.join_next().await else {
            return std::future::pending().await;
        };
        let found =
            joined.map_err(|error| EngineError::Broken(format!("a reading failed: {error}")))??;
        self.found.push(found);
        Ok(())
    }

    /// What was read since.
    fn take(&mut self) -> Vec<Found> {
        let found = std::mem::take(&mut self.found);
        for Found { wanted, .. } in &found {
            if let Some(calls) = self.calls.get_mut(&wanted.lane) {
                *calls = calls.saturating_sub(wanted.calls());
            }
            if let Subjects::Parked(queue, _) = wanted.subjects {
                self.queues.remove(&queue);
            }
        }
        found
    }

    pub(crate) fn calls(&self, lane: &Name) -> usize {
        self.calls.get(lane).copied().unwrap_or(0)
    }

    pub(crate) fn is_for(&self, queue: QueueId) -> bool {
        self.queues.contains(&queue)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.found.is_empty()
    }
}

impl Shop {
    /// How long a robot leaves a subject alone of which another answer has told all that it would
    /// ask for. A round visits everybody.
    fn leaves_alone_us(&self, robot: &Robot) -> Option<i64> {
        robot
            .revisit_after_us
            .filter(|_| !self.settings.rounds.end())
    }

    /// When any answer told all that a visit would, of each subject that is wanted.
    async fn told_of(&self, wanted: &Wanted) -> Result<Vec<Option<WorldTime>>, EngineError> {
        let robot = self.robot(&wanted.robot)?;
        let described = self.settings.network.described_by(robot);
        let (Some((table, groups)), Some(_), Subjects::Fresh { keys, .. }) =
            (described, self.leaves_alone_us(robot), &wanted.subjects)
        else {
            return Ok(Vec::new());
        };
        let known = self.store.described(table, keys.clone()).await?;
        let told = known.iter().map(|known| {
            let times = groups.iter().map(|group| known.get(group).copied());
            times.min().flatten()
        });
        Ok(told.collect())
    }
}

impl Scheduler {
    /// Leaves alone whom another answer has told of; they are due when they would be if they had
    /// been visited then.
    async fn put_off_told(
        &mut self,
        (lane, robot): (&Name, &Name),
        found: &mut Vec<(Key, Option<TaskRecord>)>,
        told: Vec<Option<WorldTime>>,
    ) -> Result<(), EngineError> {
        let shop = Arc::clone(&self.shop);
        let Some(rest_us) = shop.leaves_alone_us(shop.robot(robot)?) else {
            return Ok(());
        };
        let now = shop.clock.world();
        let mut rows = Vec::new();
        let mut told = told.into_iter();
        found.retain(|(key, record)| {
            let told = told.next().flatten();
            let (Some(record), Some(at)) = (record, told) else {
                return true;
            };
            // It rests after its last visit as well, whoever has brought it up before its time.
            let at = record.row.visited.map_or(at, |visited| visited.max(at));
            let due = at.plus_us(rest_us);
            if due <= now {
                return true;
            }
            self.frontier.release(lane, *key, Back::To(due));
            rows.push(FrontierRow {
                visited: Some(at),
                due,
                ..record.row.clone()
            });
            false
        });
        if rows.is_empty() {
            return Ok(());
        }
        let commit = Commit {
            at: now,
            frontier: rows,
            ..Commit::default()
        };
        let reports = shop.store.commit(vec![commit]).await?;
        self.take_in(&reports).await
    }

    /// Makes what was read into work.
    pub(crate) async fn take_found(&mut self) -> Result<(), EngineError> {
        for found in self.reading.take() {
            let Found {
                wanted,
                records,
                told,
            } = found;
            let Wanted {
                lane,
                robot,
                subjects,
                begun,
            } = wanted;
            match subjects {
                Subjects::Fresh { keys, batch } => {
                    let mut found: Vec<_> = keys.into_iter().zip(records).collect();
                    self.put_off_told((&lane, &robot), &mut found, told).await?;
                    self.make_work((&lane, &robot), found, batch, begun).await?;
                }
                Subjects::Parked(_, parked) => self.make_ready(parked, records, begun).await?,
            }
        }
        Ok(())
    }
}
