//! Subscriptions: programs of others are told what the crawl finds.
//!
//! One reader follows the feed of the store, whoever writes it, and hands what it found to everybody at once,
//! written out once. Everybody picks what they asked for by an index of the batch, not by looking at every
//! event. Who resumes reads what they missed from the store themselves, a few at a time, up to where the one
//! reader is. Nobody waits for anybody: whoever does not take what it is sent is skipped over, and told how many
//! events that were.

mod batch;
mod filter;
mod page;
mod queue;
mod reader;
mod tail;
mod wire;

pub(crate) use page::{__path_events, events};
pub(crate) use tail::follow;
pub(crate) use wire::{__path_subscribe, subscribe};

use crate::Problem;
use axum::http::StatusCode;
use batch::Batch;
use kittiwake_store::browse::EventId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast, watch};

/// Streams at once, of events and of pictures.
pub(crate) const STREAMS_MAX: usize = 2_000;
/// Batches that somebody may be behind before they go back to the store.
const BATCHES_KEPT: usize = 64;
/// Those who read from the store what they missed, at once: if many have to, the others wait, and not the crawl.
const CATCHING_UP_MAX: usize = 2;
/// How long whoever subscribes waits for the reader of the feed to begin.
const BEGIN_PATIENCE: Duration = Duration::from_secs(10);

/// Where subscribers and the reader of the feed meet.
#[derive(Debug)]
pub(crate) struct Hub {
    places: Arc<Semaphore>,
    batches: broadcast::Sender<Arc<Batch>>,
    /// What was handed out last; nothing while the feed is not read.
    at: watch::Sender<Option<EventId>>,
    catching_up: Semaphore,
    /// Wakes the reader of the feed when there is somebody to read for.
    wanted: Notify,
    pub sent: AtomicU64,
    pub dropped: AtomicU64,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(STREAMS_MAX)),
            batches: broadcast::Sender::new(BATCHES_KEPT),
            at: watch::Sender::new(None),
            catching_up: Semaphore::new(CATCHING_UP_MAX),
            wanted: Notify::new(),
            sent: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }
}

/// A stream's place among those that are open.
#[derive(Debug)]
pub(crate) struct Place(
    #[expect(dead_code, reason = "it is held, not looked at")] OwnedSemaphorePermit,
);

impl Hub {
    /// A place, if one is free.
    pub(crate) fn place(&self) -> Option<Place> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        place.ok().map(Place)
    }

    /// Streams that are open.
    pub(crate) fn streams(&self) -> usize {
        STREAMS_MAX.saturating_sub(self.places.available_permits())
    }

    /// Those of them that follow the feed.
    pub(crate) fn subscribers(&self) -> usize {
        self.batches.receiver_count()
    }

    fn listen(&self) -> broadcast::Receiver<Arc<Batch>> {
        let receiver = self.batches.subscribe();
        self.wanted.notify_one();
        receiver
    }

    /// Where those are who are handed what is found. Whoever listens is handed what comes after it.
    async fn at(&self) -> Result<EventId, Problem> {
        let mut at = self.at.subscribe();
        let begun = at.wait_for(Option::is_some);
        let begun = tokio::time::timeout(BEGIN_PATIENCE, begun).await;
        let at = begun.ok().and_then(|at| at.ok().and_then(|at| *at));
        at.ok_or_else(|| {
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the feed of the crawl cannot be read at present; try again in a moment",
            )
        })
    }

    fn count(&self, sent: u64, dropped: u64) {
        self.sent.fetch_add(sent, Ordering::Relaxed);
        self.dropped.fetch_add(dropped, Ordering::Relaxed);
    }
}
