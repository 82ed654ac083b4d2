//! The one reader of the feed: it reads while somebody is subscribed, and rests otherwise.

use super::batch::Batch;
use crate::Shared;
use crate::connection::stopped;
use kittiwake_store::browse::EventId;
use std::sync::Arc;
use std::time::Duration;

/// How often it looks: often enough to be quick, seldom enough that many events go out together.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// After a failure of the store, which may pass.
const TROUBLE_PAUSE: Duration = Duration::from_secs(2);
const EVENTS_AT_ONCE: usize = 1_000;

/// Hands out what the crawl finds until the server stops.
pub(crate) async fn follow(shared: Arc<Shared>) {
    let mut stop = shared.stop.clone();
    tokio::select! {
        () = read(&shared) => {}
        () = stopped(&mut stop) => {}
    }
}

async fn read(shared: &Shared) {
    let hub = &shared.hub;
    let mut at: Option<EventId> = None;
    loop {
        if hub.subscribers() == 0 {
            at = None;
            hub.at.send_replace(None);
            hub.wanted.notified().await;
            continue;
        }
        let Some(after) = at else {
            match shared.browser.newest_event().await {
                Ok(newest) => {
                    at = Some(newest);
                    hub.at.send_replace(at);
                }
                Err(_) => tokio::time::sleep(TROUBLE_PAUSE).await,
            }
            continue;
        };
        let Ok(feed) = shared.browser.feed(after, EVENTS_AT_ONCE).await else {
            tokio::time::sleep(TROUBLE_PAUSE).await;
            continue;
        };
        at = Some(feed.next);
        let is_end = feed.is_end;
        if !feed.events.is_empty() {
            let _ = hub.batches.send(Arc::new(Batch::new(after, &feed)));
        }
        hub.at.send_replace(at);
        if is_end {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
