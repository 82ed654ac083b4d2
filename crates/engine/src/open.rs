//! The beginning of a run: is this the crawl it goes on with, what does it add, what is due.

use crate::EngineError;
use crate::exchange::Shop;
use crate::introduce;
use crate::limit_status::set_calls_aside;
use crate::population::populations;
use crate::scheduler::Scheduler;
use crate::settings::{CrawlSettings, Limits, Parts, Rounds};
use kittiwake_model::{
    Commit, Discovery, Expansion, Reference, RobotFiling, Role, RunRecord, RunUpdate, WorldTime,
};
use kittiwake_store::{DueQuestion, Store};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// How a run ends that has visited everybody, in its record.
pub(crate) const IDLE: &str = "idle";

/// Seeds written in one transaction.
const SEEDS_PER_STEP: usize = 1_000;

/// Begins or resumes the crawl in the store. `started` is when the run began.
pub(crate) async fn open(
    mut settings: CrawlSettings,
    parts: Parts,
    started: Instant,
) -> Result<Scheduler, EngineError> {
    let last = parts.store.last_run().await?;
    match &last {
        Some((_, record)) => check_same_crawl(&settings, record)?,
        None if settings.seeds.is_empty() => return Err(no_seeds()),
        None => {}
    }
    name_hosts(&mut settings, last.as_ref().map(|(_, record)| record))?;
    let expansion = expansion_of(&settings)?;
    let progress = Arc::clone(&parts.progress);
    let jitter_seed = parts.jitter_seed;
    let spill = parts.spill.clone();
    let asked_to_stop = parts.stop.clone();
    let asks_for_limits = set_calls_aside(&mut settings);
    let now = parts.clock.world();
    let remembered = introduce::remembered(&*parts.store, &settings, now).await?;
    let is_endless = !settings.rounds.end();
    let robots = &expansion.robots;
    let populations = populations(&*parts.store, robots, &parts.guides, is_endless).await?;
    let people = (expansion, populations);
    let shop = Arc::new(Shop::new(settings, parts, people, remembered));
    shop.sites.home.recall(&shop.settings).await?;
    let place = RoundPlace {
        store: &*shop.store,
        settings: &shop.settings,
        expansion: &shop.expansion,
        now: shop.clock.world(),
    };
    let round = place.round(last.as_ref().map(|(_, record)| record)).await?;
    let run = start_run(&shop, round).await?;
    let over = || {
        let time_max = shop.settings.time_max;
        *asked_to_stop.borrow() || time_max.is_some_and(|limit| started.elapsed() >= limit)
    };
    plant_seeds(&shop, &over).await?;
    if asks_for_limits && !over() {
        shop.hear_limit_status().await?;
    }
    let numbers = (run, round);
    let mut scheduler = Scheduler::new(Arc::clone(&shop), progress, numbers, jitter_seed, started);
    scheduler.rank_lanes(spill);
    scheduler.take_earlier_controls().await?;
    scheduler.count_waiting().await?;
    Ok(scheduler)
}

/// The hosts of seeds, in a run's record.
const NAMED_HOSTS: &str = "seed_hosts";

/// Where a network has no host of its own, the user names hosts with the seeds, in this run or in an
/// earlier one.
pub(crate) fn name_hosts(
    settings: &mut CrawlSettings,
    last: Option<&RunRecord>,
) -> Result<(), EngineError> {
    let network = Arc::clone(&settings.network);
    if !network.asks_subjects() {
        return Ok(());
    }
    let known = last.and_then(|record| serde_json::from_str(&record.settings).ok());
    let known: serde_json::Value = known.unwrap_or_default();
    let known = known[NAMED_HOSTS].as_array().into_iter().flatten();
    for host in known.filter_map(serde_json::Value::as_str) {
        settings.hosts.name(host.to_owned());
    }
    for (place, text) in settings.seeds.iter().enumerate() {
        let seed = network.seed(text, &settings.host);
        let seed = seed.map_err(|error| EngineError::Usage(error.to_string()))?;
        match network.home(&seed) {
            Some(home) => settings.hosts.name(home.host),
            None if network.home_ids(&seed.kind).next().is_none() => {}
            None => {
                // It is not repeated here: it may hold a password.
                return Err(EngineError::Usage(format!(
                    "seed {} is no address that can be asked; write https://… without a password \
                     (http:// is taken for this machine only)",
                    place + 1
                )));
            }
        }
    }
    if settings.limits == Limits::Off && !settings.hosts.are_this_machine() {
        return Err(EngineError::Usage(
            "earlier runs have asked others than this machine, whose limits are kept: leave out \
             --limits off"
                .into(),
        ));
    }
    Ok(())
}

pub(crate) fn no_seeds() -> EngineError {
    EngineError::Usage(
        "nothing to begin with; name at least one seed: a handle, a profile address or id:…".into(),
    )
}

/// Where it is looked up which round it is.
pub(crate) struct RoundPlace<'a> {
    pub store: &'a dyn Store,
    pub settings: &'a CrawlSettings,
    pub expansion: &'a Expansion,
    pub now: WorldTime,
}

impl RoundPlace<'_> {
    /// When this round began. A round that was not completed goes on; another one begins only when
    /// it is asked for.
    pub(crate) async fn round(&self, last: Option<&RunRecord>) -> Result<WorldTime, EngineError> {
        let Some(record) = last else {
            return Ok(self.now);
        };
        let known: serde_json::Value = serde_json::from_str(&record.settings).unwrap_or_default();
        let round = known["round_us"].as_i64().map_or(self.now, WorldTime);
        if self.settings.rounds != Rounds::Another {
            return Ok(round);
        }
        if self.had_its_turn(&known).await? {
            return Ok(self.now);
        }
        for filing in &self.expansion.robots {
            let question = DueQuestion {
                lane: filing.lane.clone(),
                after: None,
                not_visited_since: Some(round),
                limit: 1,
            };
            if !self.store.due(question).await?.is_empty() {
                return Ok(round);
            }
        }
        Ok(self.now)
    }

    /// Whether the last run came to its end with everybody whom this one would visit. Whoever is
    /// still unvisited failed in spite of all tries, and must not keep the others from another
    /// round.
    async fn had_its_turn(&self, known: &serde_json::Value) -> Result<bool, EngineError> {
        let is_same = known["robots"] == json!(self.settings.robots)
            && known["depth"] == json!(self.settings.depth);
        let last = self.store.detail().await?.last_run;
        let ended = last.and_then(|run| run.end_reason);
        Ok(is_same && ended.as_deref() == Some(IDLE))
    }
}

pub(crate) fn check_same_crawl(
    settings: &CrawlSettings,
    record: &RunRecord,
) -> Result<(), EngineError> {
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

pub(crate) fn expansion_of(settings: &CrawlSettings) -> Result<Expansion, EngineError> {
    let mut robots = Vec::with_capacity(settings.robots.len());
    let mut brings: BTreeSet<Role> = BTreeSet::new();
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
        brings.extend(&robot.brings);
        robots.push(RobotFiling {
            robot: robot.name.clone(),
            lane: lane.into(),
            kind: robot.kind.clone(),
            unless_zero: robot.unless_zero.clone(),
            // On one host everybody is known by the ids of that host.
            names_parents: robot.names_parents && !settings.hosts.is_empty(),
            begins_visited: robot.begins_visited,
            visited_when_zero: robot.visited_when_zero.clone(),
            repost_steps: robot.repost_steps,
            reply_steps: robot.reply_steps,
        });
    }
    Ok(Expansion {
        follow: settings.follow,
        depth_max: settings.depth,
        robots,
        brings: brings.into_iter().collect(),
    })
}

/// Writes the run's record and its seeds, and waits until all that is in reach is filed.
async fn start_run(shop: &Shop, round: WorldTime) -> Result<i64, EngineError> {
    let settings = &shop.settings;
    let mut record = settings.record.clone();
    if let Some(entries) = record.as_object_mut() {
        entries.insert("follow".into(), json!(follow_name(settings)));
        entries.insert("depth".into(), json!(settings.depth));
        entries.insert("robots".into(), json!(settings.robots));
        entries.insert("round_us".into(), json!(round.micros()));
        let named = settings.hosts.named();
        if !named.is_empty() {
            entries.insert(NAMED_HOSTS.into(), json!(named));
        }
    }
    // What the host says of itself belongs to the record of a crawl.
    let host = settings.network.host_identity(&settings.host);
    let start = Commit {
        at: shop.clock.world(),
        expansion: Some(Arc::clone(&shop.expansion)),
        discoveries: host
            .map(|host| Discovery {
                subject: Reference::Identity(Box::new(host)),
                depth: 0,
            })
            .into_iter()
            .collect(),
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
