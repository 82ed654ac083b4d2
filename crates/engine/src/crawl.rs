//! The crawl, on one page.
//!
//! A subject that is due is **leased** and becomes work. Work that every limit allows is
//! **granted** a call, which is counted before it is sent. The **request** is **fetched**, the
//! answer **mapped** to objects and links, and everything it changes is **committed** at once.
//! Only then is the lease acknowledged and the subject **rescheduled**. What a crash interrupts
//! is in the store or was never there; nothing is in between.

use crate::EngineError;
use crate::open::open;
use crate::scheduler::Scheduler;
use crate::settings::{CrawlReport, CrawlSettings, End, Parts};
use std::time::Instant;

/// Crawls until there is nothing left to do, a bound is met or a stop is asked for.
pub async fn crawl(settings: CrawlSettings, parts: Parts) -> Result<CrawlReport, EngineError> {
    let started = Instant::now();
    let mut stop = parts.stop.clone();
    let mut scheduler = open(settings, parts, started).await?;
    let end = loop {
        if *stop.borrow_and_update() {
            break End::Interrupted;
        }
        // lease: subjects that are due become work.
        scheduler.lease().await?;
        if let Some(end) = scheduler.end() {
            break scheduler.with_lock_outs(end);
        }
        // grant: work that every limit allows is sent; request, fetch, map and commit follow in a
        // task of its own (exchange.rs), so that many calls are in flight at once.
        while let Some((work, permit)) = scheduler.grant().await? {
            scheduler.send(work, permit);
        }
        // acknowledge: what was committed is counted, rescheduled and shown.
        tokio::select! {
            done = scheduler.done() => scheduler.take_answer(done?).await?,
            Ok(()) = stop.changed() => {}
        }
    };
    close(scheduler, end).await
}

/// Finishes what is in flight, hands back what was not spent, and says how it ended.
async fn close(mut scheduler: Scheduler, end: End) -> Result<CrawlReport, EngineError> {
    scheduler.finish_in_flight().await?;
    scheduler.close(end).await
}
