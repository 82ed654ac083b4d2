//! What one subscriber has yet to take: so much at the most, and nobody waits for it.

use super::batch::{Batch, Sent};
use bytes::{BufMut, Bytes, BytesMut};
use kittiwake_store::browse::EventId;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;

/// Packages that wait for a subscriber, and their bytes.
const PACKAGES_MAX: usize = 256;
const BYTES_MAX: usize = 1024 * 1024;

/// Something to send.
#[derive(Debug)]
pub(super) enum Package {
    Whole(Arc<Batch>),
    Some(Vec<Arc<Sent>>),
    Dropped(Dropped),
}

/// Events that were not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dropped {
    pub events: u64,
    /// They come after this one; whoever resumes there gets them.
    pub after: EventId,
    /// The last of them.
    pub last: EventId,
}

impl Dropped {
    fn json(self) -> String {
        serde_json::json!({
            "type": "dropped",
            "events": self.events,
            "after": self.after.to_string(),
            "last": self.last.to_string(),
        })
        .to_string()
    }
}

impl Package {
    fn bytes(&self) -> usize {
        match self {
            Self::Whole(batch) => batch.whole.len(),
            Self::Some(events) => events.iter().map(|event| event.frame.len()).sum(),
            Self::Dropped(_) => 0,
        }
    }

    /// As server-sent events.
    pub(super) fn frames(&self) -> Bytes {
        match self {
            Self::Whole(batch) => batch.whole.clone(),
            Self::Some(events) => {
                let mut frames = BytesMut::with_capacity(self.bytes());
                for event in events {
                    frames.put_slice(&event.frame);
                }
                frames.freeze()
            }
            Self::Dropped(dropped) => Bytes::from(format!(
                "id: {}\nevent: dropped\ndata: {}\n\n",
                dropped.last,
                dropped.json()
            )),
        }
    }

    /// As texts of JSON, one by one.
    pub(super) fn texts(&self) -> Vec<Bytes> {
        let of = |events: &[Arc<Sent>]| events.iter().map(|event| event.json.clone()).collect();
        match self {
            Self::Whole(batch) => of(&batch.events),
            Self::Some(events) => of(events),
            Self::Dropped(dropped) => vec![Bytes::from(dropped.json())],
        }
    }
}

/// The end that packages are put into.
#[derive(Debug)]
pub(super) struct Queue {
    sender: mpsc::Sender<Package>,
    waiting_bytes: Arc<AtomicUsize>,
    dropped: Option<Dropped>,
}

/// The end that they are taken from.
#[derive(Debug)]
pub(super) struct Taking {
    pub receiver: mpsc::Receiver<Package>,
    waiting_bytes: Arc<AtomicUsize>,
}

pub(super) fn queue() -> (Queue, Taking) {
    let (sender, receiver) = mpsc::channel(PACKAGES_MAX);
    let waiting_bytes = Arc::new(AtomicUsize::new(0));
    let queue = Queue {
        sender,
        waiting_bytes: Arc::clone(&waiting_bytes),
        dropped: None,
    };
    let taking = Taking {
        receiver,
        waiting_bytes,
    };
    (queue, taking)
}

impl Taking {
    /// Says that a package was taken.
    pub(super) fn took(&self, package: &Package) {
        self.waiting_bytes
            .fetch_sub(package.bytes(), Ordering::Relaxed);
    }
}

impl Queue {
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    pub(super) async fn closed(&self) {
        self.sender.closed().await;
    }

    /// Puts a package in if there is room; otherwise its events are counted as dropped. `if_not` says which
    /// these are. Gives how many were sent and how many dropped.
    pub(super) fn offer(&mut self, package: Package, if_not: Dropped) -> (u64, u64) {
        self.tell_dropped();
        let events = if_not.events;
        if self.dropped.is_none() && self.put(package) {
            return (events, 0);
        }
        let dropped = self.dropped.map_or(if_not, |before| Dropped {
            events: before.events + events,
            after: before.after,
            last: if_not.last,
        });
        self.dropped = Some(dropped);
        (0, events)
    }

    /// Says how many events were dropped, as soon as there is room to say it.
    pub(super) fn tell_dropped(&mut self) {
        if let Some(dropped) = self.dropped
            && self.put(Package::Dropped(dropped))
        {
            self.dropped = None;
        }
    }

    pub(super) fn has_dropped(&self) -> bool {
        self.dropped.is_some()
    }

    fn put(&self, package: Package) -> bool {
        let bytes = package.bytes();
        let waiting = self.waiting_bytes.load(Ordering::Relaxed);
        if waiting > 0 && waiting + bytes > BYTES_MAX {
            return false;
        }
        let Ok(place) = self.sender.try_reserve() else {
            return false;
        };
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        place.send(package);
        true
    }

    /// Puts a package in when there is room: for whoever catches up, at their own pace. Whether anybody is
    /// there to take it.
    pub(super) async fn put_patiently(&mut self, package: Package) -> bool {
        let bytes = package.bytes();
        let Ok(place) = self.sender.reserve().await else {
            return false;
        };
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        place.send(package);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> EventId {
        EventId { log: 1, number }
    }

    fn one(number: u32) -> Dropped {
        Dropped {
            events: 1,
            after: id(number),
            last: id(number + 1),
        }
    }

    #[test]
    fn whoever_takes_nothing_is_told_how_much_it_missed() {
        let (mut queue, mut taking) = queue();
        let mut sent = 0;
        for number in 0..1_000 {
            sent += queue.offer(Package::Some(Vec::new()), one(number)).0;
        }
        assert_eq!(sent, PACKAGES_MAX as u64);
        for _ in 0..2 {
            let package = taking.receiver.try_recv().unwrap();
            taking.took(&package);
        }
        assert_eq!(queue.offer(Package::Some(Vec::new()), one(1_000)), (1, 0));
        let mut told = Vec::new();
        while let Ok(package) = taking.receiver.try_recv() {
            if let Package::Dropped(dropped) = package {
                told.push(dropped);
            }
        }
        let missed = Dropped {
            events: 1_000 - PACKAGES_MAX as u64,
            after: id(PACKAGES_MAX as u32),
            last: id(1_000),
        };
        assert_eq!(told, [missed]);
        drop(taking);
        assert!(queue.is_closed());
    }
}
