//! One subscriber: reads what it missed from the store, and then takes part in what is handed out.

use super::Place;
use super::batch::{Batch, Sent};
use super::filter::Filter;
use super::queue::{Dropped, Package, Queue};
use crate::Shared;
use crate::connection::stopped;
use kittiwake_store::StoreError;
use kittiwake_store::browse::EventId;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Events that are read at once by whoever catches up.
const CATCH_UP_STEP: usize = 200;
/// How soon whoever was skipped over is told so, if nothing else happens.
const TELL_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Reader {
    pub shared: Arc<Shared>,
    pub batches: broadcast::Receiver<Arc<Batch>>,
    pub filter: Filter,
    /// The last event that was dealt with.
    pub at: EventId,
    pub queue: Queue,
    pub place: Place,
}

impl Reader {
    /// Goes on until nobody takes anything any more, or the server stops.
    pub(super) async fn run(mut self) {
        let mut stop = self.shared.stop.clone();
        tokio::select! {
            _ = self.read() => {}
            () = stopped(&mut stop) => {}
        }
        // Only now is the place free for another.
        drop(self.place);
    }

    async fn read(&mut self) -> Result<(), StoreError> {
        if !self.catch_up_with_others().await? {
            return Ok(());
        }
        loop {
            let received = tokio::select! {
                received = self.batches.recv() => received,
                () = self.queue.closed() => return Ok(()),
                () = tokio::time::sleep(TELL_EVERY), if self.queue.has_dropped() => {
                    self.queue.tell_dropped();
                    continue;
                }
            };
            let goes_on = match received {
                // Something was handed out that did not reach us: the store has it.
                Ok(batch) if batch.after > self.at => self.catch_up(batch.next).await?,
                Ok(batch) => self.take(&batch),
                Err(RecvError::Lagged(_)) => self.catch_up_with_others().await?,
                Err(RecvError::Closed) => false,
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// Takes what is wanted of a batch; never waits.
    fn take(&mut self, batch: &Arc<Batch>) -> bool {
        if batch.next <= self.at {
            return true;
        }
        let is_overlapping = batch.after < self.at;
        let (package, events) = match self.filter.pick(batch) {
            None if !is_overlapping => {
                let events = batch.events.len();
                (Package::Whole(Arc::clone(batch)), events)
            }
            picked => {
                let mut events = picked.unwrap_or_else(|| batch.events.clone());
                events.retain(|event| event.id > self.at);
                let count = events.len();
                (Package::Some(events), count)
            }
        };
        let after = std::mem::replace(&mut self.at, batch.next);
        if events > 0 {
            let if_not = Dropped {
                events: events as u64,
                after,
                last: batch.next,
            };
            let (sent, dropped) = self.queue.offer(package, if_not);
            self.shared.hub.count(sent, dropped);
        }
        !self.queue.is_closed()
    }

    /// Reads from the store up to where everybody is; from there on it is handed what is found.
    async fn catch_up_with_others(&mut self) -> Result<bool, StoreError> {
        match self.shared.hub.at().await {
            Ok(until) => self.catch_up(until).await,
            Err(_) => Ok(false),
        }
    }

    /// Reads from the store up to an event; as quickly as the subscriber takes it.
    async fn catch_up(&mut self, until: EventId) -> Result<bool, StoreError> {
        let mut is_end = false;
        while self.at < until && !is_end {
            let events;
            (events, is_end) = self.read_some().await?;
            if !events.is_empty() {
                self.queue.tell_dropped();
                self.shared.hub.count(events.len() as u64, 0);
                if !self.queue.put_patiently(Package::Some(events)).await {
                    return Ok(false);
                }
            }
        }
        Ok(!self.queue.is_closed())
    }

    /// What is wanted of the next stretch of the feed, and whether that was the last.
    async fn read_some(&mut self) -> Result<(Vec<Arc<Sent>>, bool), StoreError> {
        let _turn = self.shared.hub.catching_up.acquire().await;
        let feed = self.shared.browser.feed(self.at, CATCH_UP_STEP).await?;
        let events = feed.events.iter().map(|event| Arc::new(Sent::new(event)));
        let events = events.filter(|event| self.filter.takes(event)).collect();
        self.at = feed.next;
        Ok((events, feed.is_end))
    }
}
