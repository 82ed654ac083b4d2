//! The beginning of a run: is this the crawl it goes on with, what does it add, what is due.

use crate::EngineError;
use crate::exchange::Shop;
use crate::scheduler::Scheduler;
use crate::settings::{CrawlSettings, Parts};
use kittiwake_model::{
    Commit, Discovery, Expansion, Key, Name, Reference, RobotFiling, RunRecord, RunUpdate,
};
use kittiwake_store::Store;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Frontier rows read in one step while the order index is built.
const ROWS_PER_STEP: usize = 10_000;

/// Seeds written in one transaction.
const SEEDS_PER_STEP: usize = 1_000;

/// Begins or resumes the crawl in the store. `started` is when the run began.
pub(crate) async fn open(
    settings: CrawlSettings,
    parts: Parts,
    started: Instant,
) -> Result<Scheduler, EngineError> {
    let last = parts.store.last_run().await?;
    match &last {
        Some((_, record)) => check_same_crawl(&settings, record)?,
        None if settings.seeds.is_empty() => {
            return Err(EngineError::Usage(
                "nothing to begin with; name at least one seed: a handle, a profile address or id:…".into(),
            ));
        }
        None => {}
    }
    let expansion = expansion_of(&settings)?;
    let progress = Arc::clone(&parts.progress);
    let jitter_seed = parts.jitter_seed;
    let asked_to_stop = parts.stop.clone();
    let shop = Arc::new(Shop::new(settings, parts, expansion));
    let run = start_run(&shop).await?;
    let over = || {
        let time_max = shop.settings.time_max;
        *asked_to_stop.borrow() || time_max.is_some_and(|limit| started.elapsed() >= limit)
    };
    plant_seeds(&shop, &over).await?;
    let mut scheduler = Scheduler::new(Arc::clone(&shop), progress, run, jitter_seed, started);
    load_frontier(&*shop.store, &mut scheduler).await?;
    Ok(scheduler)
}

fn check_same_crawl(settings: &CrawlSettings, record: &RunRecord) -> Result<(), EngineError> {
    let other = |what, found: &str, wanted: &str, advice| {
        Err(EngineError::OtherCrawl {
            what,
            found: found.into(),
            wanted: wanted.into(),
            advice,
        })
    };
    let elsewhere = "use another file with --into";
    if record.network != *settings.network.name() {
        return other(
            "network",
            &record.network,
            settings.network.name(),
            elsewhere,
        );
    }
    if record.host != settings.host {
        return other("host", &record.host, &settings.host, elsewhere);
    }
    if record.clock != settings.clock_source {
        return other(
            "clock",
            &record.clock,
            &settings.clock_source,
            "go on with the same clock",
        );
    }
    let known: serde_json::Value = serde_json::from_str(&record.settings)
        .map_err(|error| EngineError::Broken(format!("the last run's settings: {error}")))?;
    let follow = follow_name(settings);
    let known_follow = known["follow"].as_str().unwrap_or(follow);
    if known_follow != follow {
        return other("--follow", known_follow, follow, elsewhere);
    }
    let known_depth = known["depth"].as_u64().unwrap_or(0);
    if known_depth > u64::from(settings.depth) {
        let (found, wanted) = (known_depth.to_string(), settings.depth.to_string());
        return other("--depth", &found, &wanted, "depth may grow, not shrink");
    }
    Ok(())
}

fn follow_name(settings: &CrawlSettings) -> &'static str {
    match (settings.follow.following, settings.follow.followers) {
        (true, true) => "both",
        (true, false) => "following",
        (false, true) => "followers",
        (false, false) => "none",
    }
}

fn expansion_of(settings: &CrawlSettings) -> Result<Expansion, EngineError> {
    let mut robots = Vec::with_capacity(settings.robots.len());
    for name in &settings.robots {
        let robot = settings.network.robot(name).ok_or_else(|| {
            let known: Vec<_> = settings
                .network
                .robots()
                .iter()
                .map(|robot| &*robot.name)
                .collect();
            EngineError::Usage(format!(
                "no robot {name:?}; this network has {}",
                known.join(", ")
            ))
        })?;
        let lane = format!(
            "{}/{}/{}",
            settings.network.name(),
            settings.host,
            robot.name
        );
        robots.push(RobotFiling {
            robot: robot.name.clone(),
            lane: lane.into(),
            kind: robot.kind.clone(),
        });
    }
    Ok(Expansion {
        follow: settings.follow,
        depth_max: settings.depth,
        robots,
    })
}

/// Writes the run's record and its seeds, and waits until all that is in reach is filed.
async fn start_run(shop: &Shop) -> Result<i64, EngineError> {
    let settings = &shop.settings;
    let mut record = settings.record.clone();
    if let Some(entries) = record.as_object_mut() {
        entries.insert("follow".into(), json!(follow_name(settings)));
        entries.insert("depth".into(), json!(settings.depth));
        entries.insert("robots".into(), json!(settings.robots));
    }
    let start = Commit {
        at: shop.clock.world(),
        expansion: Some(Arc::clone(&shop.expansion)),
        run: Some(RunUpdate::Start(Box::new(RunRecord {
            network: settings.network.name().clone(),
            host: settings.host.clone(),
            definition: settings.network.digest().clone(),
            definition_text: settings.network.text().to_owned(),
            clock: settings.clock_source.clone(),
            settings: record.to_string(),
            started: shop.clock.real(),
        }))),
        ..Commit::default()
    };
    let reports = shop.store.commit(vec![start]).await?;
    let report = reports
        .first()
        .ok_or_else(|| EngineError::Broken("no report".into()))?;
    let run = report
        .run
        .ok_or_else(|| EngineError::Broken("a run without a number".into()))?;
    Ok(run)
}

/// Files the seeds, and everybody whom a greater depth or another robot brings within reach. A
/// run that is over before that is done goes on with it next time.
async fn plant_seeds(shop: &Shop, over: &impl Fn() -> bool) -> Result<(), EngineError> {
    let settings = &shop.settings;
    for seeds in settings.seeds.chunks(SEEDS_PER_STEP) {
        if over() {
            return Ok(());
        }
        let mut discoveries = Vec::with_capacity(seeds.len());
        for seed in seeds {
            let identity = settings
                .network
                .seed(seed, &settings.host)
                .map_err(|error| EngineError::Usage(error.to_string()))?;
            let subject = Reference::Identity(Box::new(identity));
            discoveries.push(Discovery { subject, depth: 0 });
        }
        let commit = Commit {
            at: shop.clock.world(),
            expansion: Some(Arc::clone(&shop.expansion)),
            discoveries,
            ..Commit::default()
        };
        shop.store.commit(vec![commit]).await?;
    }
    let mut backlog = true;
    while backlog && !over() {
        let reports = shop.hand_on_depths().await?;
        backlog = reports.iter().any(|report| report.backlog);
    }
    Ok(())
}

async fn load_frontier(store: &dyn Store, scheduler: &mut Scheduler) -> Result<(), EngineError> {
    let mut after: Option<(Key, Name)> = None;
    loop {
        let rows = store.frontier(after.take(), ROWS_PER_STEP).await?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = Some((last.subject, last.robot.clone()));
        for row in rows {
            scheduler.file(&row.lane, row.subject, row.visits, row.due);
        }
    }
}
