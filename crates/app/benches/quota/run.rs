//! A stretch of limit time in which everything is measured.

use crate::Bench;
use crate::crawler::{Crawl, Plan};
use crate::network::{Network, QUARTER_US};
use kittiwake_model::LimitTime;
use std::path::Path;
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Full quarters of an hour, from a start to an end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) start: LimitTime,
    pub(crate) end: LimitTime,
}

/// What is done to crawls while they are measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disturbance {
    None,
    /// The first crawl is killed and started again in the middle of a window.
    Kill,
}

/// Runs crawls beside each other over so many full quarters of an hour. The error says why one of
/// them ended before.
pub(crate) fn measure(
    bench: &Bench,
    plan: &Plan<'_>,
    network: &Network,
    folder: &Path,
    files: &[&str],
    disturbance: Disturbance,
) -> Result<Measured, String> {
    network.go_before_quarter();
    let start = |file: &&str| Crawl::start(bench, plan, network, folder, file);
    let mut crawls: Vec<Crawl> = files.iter().map(start).collect();
    wait(&mut crawls, || network.ledger().total > 0)?;
    let began_us = network.limit_now().micros();
    let start_us = (began_us.div_euclid(QUARTER_US) + 1) * QUARTER_US;
    let measured = Measured {
        start: LimitTime(start_us),
        end: LimitTime(start_us + bench.quarters * QUARTER_US),
    };
    if disturbance == Disturbance::Kill {
        // Half of the second window of five minutes.
        let middle = measured.start.plus_us(QUARTER_US / 2);
        wait(&mut crawls, || network.limit_now() >= middle)?;
        crawls[0].kill();
        crawls[0] = start(&files[0]);
    }
    wait(&mut crawls, || network.limit_now() >= measured.end)?;
    crawls.into_iter().for_each(Crawl::stop);
    Ok(measured)
}

fn wait(crawls: &mut [Crawl], mut is_so: impl FnMut() -> bool) -> Result<(), String> {
    while !is_so() {
        if let Some(reason) = crawls.iter_mut().find_map(Crawl::over) {
            return Err(reason);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
