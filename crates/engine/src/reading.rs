//! Tasks that are read from the store before they become work. Meanwhile others are sent.

use crate::EngineError;
use crate::exchange::Shop;
use crate::lanes::QueueId;
use crate::parking::Parked;
use crate::scheduler::Scheduler;
use kittiwake_model::{Key, Name};
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

/// Wanted tasks as the store has them, in the same order; none for subjects that became part of
/// others.
pub(crate) type Found = (Wanted, Vec<Option<TaskRecord>>);

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
            let records = shop.store.tasks(wanted.keys()).await?;
            Ok((wanted, records))
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
        for (wanted, _) in &found {
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

impl Scheduler {
    /// Makes what was read into work.
    pub(crate) async fn take_found(&mut self) -> Result<(), EngineError> {
        for (wanted, records) in self.reading.take() {
            let Wanted {
                lane,
                robot,
                subjects,
                begun,
            } = wanted;
            match subjects {
                Subjects::Fresh { keys, batch } => {
                    let found = keys.into_iter().zip(records).collect();
                    self.make_work((&lane, &robot), found, batch, begun).await?;
                }
                Subjects::Parked(_, parked) => self.make_ready(parked, records).await?,
            }
        }
        Ok(())
    }
}
