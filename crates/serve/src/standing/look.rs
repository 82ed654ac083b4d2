//! Making the picture: quick looks at what moves, slow ones at what has to be counted. Looking takes a tenth
//! of the time at the most, however many people watch.

use super::{
    BudgetStanding, FreshnessFigures, LaneFreshness, Message, NextVisit, OutcomeCount, PacePoint,
    RecentCalls, RobotStanding, RobotState, RunStanding, Standing,
};
use crate::{ServeError, Shared};
use kittiwake_engine::{Freshness, RobotFreshness, Snapshot, Why};
use kittiwake_model::{LimitTime, Name, OutcomeCode, Unit, WorldTime};
use kittiwake_network::Network;
use kittiwake_store::browse::{Activity, ActivityQuestion, Bucket, CallRow, CallsQuestion};
use kittiwake_store::detail::{Recent, RunDetail};
use kittiwake_store::ledger::{BudgetUsage, Ledger};
use kittiwake_store::{Detail, Location, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The least time between two quick looks.
const QUICK_EVERY: Duration = Duration::from_secs(1);
/// The same where nobody has looked at the picture for a while.
const IDLE_EVERY: Duration = Duration::from_secs(10);
const IDLE_AFTER_US: u64 = 60_000_000;
const SLOW_EVERY: Duration = Duration::from_secs(5);
/// Looking must not become the crawl's main occupation.
const SHARE_OF_TIME: u32 = 10;
/// Calls that become messages with one look.
const MESSAGES_PER_LOOK: usize = 60;
/// Calls that outcomes are counted of.
const OUTCOME_CALLS: usize = 5_000;
/// How far back the pace is shown, and in how many steps.
const PACE_US: i64 = 10 * 60 * 1_000_000;
const PACE_STEPS: usize = 60;
const PACE_CALLS: usize = 10_000;
/// What "a second" is taken over.
const RATE_US: i64 = 60 * 1_000_000;
/// Visits that are explained.
const NEXT_MAX: usize = 24;

/// What is remembered from look to look.
#[derive(Debug)]
pub(crate) struct Looker {
    shared: Arc<Shared>,
    ledger_place: Option<Location>,
    ledger: Option<Ledger>,
    /// The robots of the definition of the last run, with their queries; by the definition's digest.
    definition: (String, Vec<(String, Vec<String>)>),
    last_call: i64,
    slow: Slow,
}

/// What is counted now and then.
#[derive(Debug, Default)]
struct Slow {
    freshness: Vec<RobotFreshness>,
    /// Subjects by robot: filed, and visited.
    subjects: BTreeMap<Name, (u64, u64)>,
    again: Option<Instant>,
}

impl Looker {
    pub(crate) fn new(shared: Arc<Shared>, ledger_place: Option<Location>) -> Self {
        Self {
            shared,
            ledger_place,
            ledger: None,
            definition: <_>::default(),
            last_call: 0,
            slow: Slow::default(),
        }
    }

    /// Looks again and again until the server stops.
    pub(crate) async fn run(mut self) {
        let mut stop = self.shared.stop.clone();
        loop {
            let started = Instant::now();
            self.refresh().await;
            let pause = QUICK_EVERY.max(started.elapsed() * SHARE_OF_TIME);
            tokio::select! {
                () = self.rest(pause) => {}
                () = self.shared.look_soon.notified() => {}
                () = crate::connection::stopped(&mut stop) => return,
            }
        }
    }

    /// Waits until it is time to look again: longer where nobody does.
    async fn rest(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
        if !self.is_watched() {
            tokio::select! {
                () = tokio::time::sleep(IDLE_EVERY) => {}
                () = self.shared.watched.notified() => {}
            }
        }
    }

    fn is_watched(&self) -> bool {
        let now_us = (self.shared.now)().micros().unsigned_abs();
        let looked_us = self
            .shared
            .looked_us
            .load(std::sync::atomic::Ordering::Relaxed);
        self.shared.standing.receiver_count() > 0
            || now_us.saturating_sub(looked_us) < IDLE_AFTER_US
    }

    /// Makes another picture, and shows it if it differs.
    pub(crate) async fn refresh(&mut self) {
        let before = Arc::clone(&self.shared.standing.borrow());
        let mut standing = match self.look().await {
            Ok(standing) => standing,
            Err(error) => Standing {
                trouble: Some(error.to_string()),
                ..(*before).clone()
            },
        };
        standing.version = before.version;
        let is_same = {
            let dated = Standing {
                at_us: before.at_us,
                world_us: before.world_us,
                limit_us: before.limit_us,
                ..standing.clone()
            };
            dated == *before
        };
        standing.version += u64::from(!is_same);
        // Those who ask see that it is fresh; those who are told are told of what is new.
        self.shared.standing.send_if_modified(|shown| {
            *shown = Arc::new(standing);
            !is_same
        });
    }

    async fn look(&mut self) -> Result<Standing, ServeError> {
        let shared = Arc::clone(&self.shared);
        let detail = shared.store.detail().await?;
        let place = shared.location.clone();
        let crawling = tokio::task::spawn_blocking(move || place.is_crawled())
            .await
            .unwrap_or(Ok(false))?;
        let progress = shared.desk.progress().filter(|_| crawling);
        let (world, limit) = self.clocks(&detail, crawling).await?;
        self.learn_definition(&detail).await?;
        self.count(world).await?;
        let calls = self.new_calls().await?;
        let messages = calls.iter().rev().map(|call| self.message(call));
        shared.messages.add(messages);
        let activity = self.activity().await?;
        let errors = shared.browser.errors(OUTCOME_CALLS).await?;
        let extent = shared.browser.extent().await?;
        let now = (shared.now)();
        Ok(Standing {
            version: 0,
            at_us: now.micros(),
            world_us: world.micros(),
            limit_us: limit.micros(),
            place: shared.location.to_string(),
            crawling,
            own: progress.is_some(),
            paused: detail.paused.contains(&None),
            run: detail.last_run.as_ref().map(run_standing),
            calls: extent.rows.get("query_log").map_or(0, |it| it.rows),
            robots: self.robots(&detail, crawling, progress.as_ref(), &activity),
            budgets: self.budgets(progress.as_ref(), limit).await,
            freshness: self.slow.freshness.iter().map(lane_freshness).collect(),
            outcomes: outcomes(&errors.outcomes),
            next: self.next(&detail, world).await?,
            recent: recent_calls(&detail.recent),
            pace: pace(&activity),
            rows_at_us: extent.rows.values().map(|it| it.at.micros()).min(),
            rows: extent
                .rows
                .into_iter()
                .map(|(table, it)| (table, it.rows))
                .collect(),
            trouble: None,
        })
    }

    /// The present of the crawl's world and of its limits. Where neither the crawl is ours nor its clock the
    /// machine's, the newest answer is as near as one gets.
    async fn clocks(
        &self,
        detail: &Detail,
        crawling: bool,
    ) -> Result<(WorldTime, LimitTime), StoreError> {
        if let Some(clocks) = self.shared.desk.clocks() {
            return Ok(clocks);
        }
        let now_us = (self.shared.now)().micros();
        let run = detail.last_run.as_ref();
        let is_real = run.is_none_or(|run| run.clock == "real");
        let world = if is_real && crawling {
            None
        } else {
            self.shared.store.newest().await?
        };
        Ok((world.unwrap_or(WorldTime(now_us)), LimitTime(now_us)))
    }

    /// Which robot asks which queries, as the definition has it that the last run used.
    async fn learn_definition(&mut self, detail: &Detail) -> Result<(), StoreError> {
        let Some(run) = &detail.last_run else {
            return Ok(());
        };
        if self.definition.0 == run.definition {
            return Ok(());
        }
        let Some((_, record)) = self.shared.store.last_run().await? else {
            return Ok(());
        };
        let network = Network::parse("the run's definition", &record.definition_text);
        let robots = network.map_or_else(|_| Vec::new(), |network| queries_by_robot(&network));
        self.definition = (record.definition.to_string(), robots);
        Ok(())
    }

    /// Counts what takes its time, if it is time again.
    async fn count(&mut self, now: WorldTime) -> Result<(), ServeError> {
        if self.slow.again.is_some_and(|again| Instant::now() < again) {
            return Ok(());
        }
        let started = Instant::now();
        let store = &*self.shared.store;
        let freshness = kittiwake_engine::freshness(store, &self.shared.policies, now).await?;
        let subjects = store.summary().await?.robots;
        let pause = SLOW_EVERY.max(started.elapsed() * SHARE_OF_TIME);
        self.slow = Slow {
            freshness,
            subjects,
            again: Some(Instant::now() + pause),
        };
        Ok(())
    }

    /// Calls that were made since the last look, the newest first, so many at the most.
    async fn new_calls(&mut self) -> Result<Vec<CallRow>, StoreError> {
        let question = CallsQuestion {
            limit: MESSAGES_PER_LOOK,
            ..CallsQuestion::default()
        };
        let mut calls = self.shared.browser.calls(question).await?.rows;
        let last_call = self.last_call;
        calls.retain(|call| call.id > last_call);
        self.last_call = calls.first().map_or(last_call, |call| call.id);
        Ok(calls)
    }

    fn message(&self, call: &CallRow) -> Message {
        let robots = &self.definition.1;
        let robot = robots
            .iter()
            .find(|(_, queries)| queries.contains(&call.query));
        let name = |label: &kittiwake_store::browse::Label| {
            label.name.clone().unwrap_or_else(|| label.id.clone())
        };
        let first = call.subjects.first().map(name).unwrap_or_default();
        let subject = match call.subjects_count {
            0 | 1 => first,
            count => format!("{first} and {} more", count - 1),
        };
        Message {
            log: call.id.to_string(),
            robot: robot.map_or_else(|| "others".to_owned(), |(robot, _)| robot.clone()),
            query: call.query.clone(),
            at_us: call.sent.micros(),
            text: message_text(call, &subject),
            subject,
            outcome: call.outcome.clone(),
            is_failure: is_failure(&call.outcome),
        }
    }

    async fn activity(&self) -> Result<Activity, StoreError> {
        let question = ActivityQuestion {
            since: Some((self.shared.now)().plus_us(-PACE_US)),
            calls_max: PACE_CALLS,
            buckets: PACE_STEPS,
        };
        self.shared.browser.activity(question).await
    }

    fn robots(
        &self,
        detail: &Detail,
        crawling: bool,
        progress: Option<&Snapshot>,
        activity: &Activity,
    ) -> Vec<RobotStanding> {
        let known = crate::control::Known::of(detail);
        let mut names = known.robots;
        if names.is_empty() {
            names = self.slow.subjects.keys().map(ToString::to_string).collect();
        }
        let is_paused = |name: &str| {
            let mut paused = detail.paused.iter();
            paused.any(|robot| robot.as_deref().is_none_or(|robot| robot == name))
        };
        let is_stopped =
            |name: &str| progress.is_some_and(|it| it.stopped.iter().any(|robot| &**robot == name));
        let robots = names.into_iter().map(|name| {
            let state = match crawling {
                _ if is_paused(&name) => RobotState::Paused,
                false => RobotState::Resting,
                true if is_stopped(&name) => RobotState::Stopped,
                true => RobotState::Running,
            };
            self.robot(name, state, progress, activity)
        });
        robots.collect()
    }

    fn robot(
        &self,
        name: String,
        state: RobotState,
        progress: Option<&Snapshot>,
        activity: &Activity,
    ) -> RobotStanding {
        let queries = self.definition.1.iter().find(|(robot, _)| *robot == name);
        let queries = queries
            .map(|(_, queries)| queries.clone())
            .unwrap_or_default();
        let own = progress
            .and_then(|it| it.robots.get(name.as_str()))
            .copied();
        let filed = self
            .slow
            .subjects
            .get(name.as_str())
            .copied()
            .unwrap_or_default();
        let lately = lately(activity, &queries);
        let seconds = lately_seconds(activity);
        let calls = own.map_or(lately.calls, |it| it.calls);
        RobotStanding {
            state,
            calls,
            rows_new: own.map_or(lately.rows_new, |it| it.rows_new),
            rows_changed: own.map_or(lately.rows_changed, |it| it.rows_changed),
            visits: own.map_or(filed.1, |it| it.visits),
            waiting: own.map_or(filed.0.saturating_sub(filed.1), |it| it.waiting),
            calls_per_second: lately.calls as f64 / seconds,
            rows_per_second: (lately.rows_new + lately.rows_changed) as f64 / seconds,
            last: self.shared.messages.last(&name),
            queries,
            name,
        }
    }

    /// How the budgets stand: as the crawl of this process knows them, and as the ledger does.
    async fn budgets(
        &mut self,
        progress: Option<&Snapshot>,
        now: LimitTime,
    ) -> Vec<BudgetStanding> {
        let mut budgets: Vec<BudgetStanding> = Vec::new();
        for budget in progress.map(|it| &it.budgets[..]).unwrap_or_default() {
            budgets.push(BudgetStanding {
                id: budget.id.0.to_string(),
                used: budget.limit.saturating_sub(budget.left),
                by_others: 0,
                limit: budget.limit,
                left: budget.left,
                unit: Some(unit_text(&budget.unit)),
                resets_us: budget.resets.map(LimitTime::micros),
                shut_until_us: budget.shut_until.map(LimitTime::micros),
            });
        }
        for usage in self.usage(now).await {
            let id = usage.budget.0.to_string();
            match budgets.iter_mut().find(|known| known.id == id) {
                Some(known) => known.by_others = usage.foreign,
                None => budgets.push(ledger_standing(id, &usage)),
            }
        }
        budgets.sort_by(|a, b| a.id.cmp(&b.id));
        budgets
    }

    /// What the ledger says; one that is not there yet says nothing.
    async fn usage(&mut self, now: LimitTime) -> Vec<BudgetUsage> {
        if self.ledger.is_none()
            && let Some(place) = self.ledger_place.clone()
            && place.file().is_none_or(std::path::Path::exists)
        {
            let opened = tokio::task::spawn_blocking(move || Ledger::open(&place)).await;
            self.ledger = opened.ok().and_then(Result::ok);
        }
        match &self.ledger {
            Some(ledger) => ledger.usage(now).await.unwrap_or_default(),
            None => Vec::new(),
        }
    }

    /// Who is next, with the reason where a policy has one.
    async fn next(&self, detail: &Detail, now: WorldTime) -> Result<Vec<NextVisit>, ServeError> {
        let mut next = Vec::new();
        for visit in detail.next.iter().take(NEXT_MAX) {
            let is_ranked = self.slow.freshness.iter().any(|it| {
                it.policy != "in turn" && it.lane.rsplit('/').next() == Some(&*visit.robot)
            });
            let why = if is_ranked {
                let robots = [visit.robot.clone()];
                let policies = &self.shared.policies;
                let store = &*self.shared.store;
                let whys =
                    kittiwake_engine::why(store, policies, &visit.subject, &robots, now).await?;
                whys.first().map(why_text)
            } else {
                None
            };
            let in_turn = if visit.is_revisit {
                "it is its turn again"
            } else {
                "it was not visited yet"
            };
            next.push(NextVisit {
                robot: visit.robot.to_string(),
                subject: visit.subject.clone(),
                due_us: visit.due_us,
                is_revisit: visit.is_revisit,
                why: why.unwrap_or_else(|| in_turn.to_owned()),
            });
        }
        Ok(next)
    }
}

fn queries_by_robot(network: &Network) -> Vec<(String, Vec<String>)> {
    let robots = network.robots().iter();
    robots
        .map(|robot| {
            let queries = robot.steps.iter().map(|step| step.query.to_string());
            (robot.name.to_string(), queries.collect())
        })
        .collect()
}

pub(crate) fn is_failure(outcome: &str) -> bool {
    outcome
        .parse::<OutcomeCode>()
        .is_ok_and(|it| !it.is_success())
}

fn message_text(call: &CallRow, subject: &str) -> String {
    let of = if subject.is_empty() {
        String::new()
    } else {
        format!(" of {subject}")
    };
    let found = match (call.rows_new, call.rows_changed) {
        _ if is_failure(&call.outcome) && call.reason.is_empty() => call.outcome.clone(),
        _ if is_failure(&call.outcome) => format!("{} ({})", call.outcome, call.reason),
        (0, 0) => format!("{}, nothing new", call.outcome),
        (new, 0) => format!("{new} new"),
        (0, changed) => format!("{changed} changed"),
        (new, changed) => format!("{new} new, {changed} changed"),
    };
    format!("{}{of}: {found}", call.query)
}

fn unit_text(unit: &Unit) -> String {
    match unit {
        Unit::Calls => "calls".to_owned(),
        Unit::Points => "points".to_owned(),
        Unit::Money(currency) => currency.to_string(),
    }
}

fn ledger_standing(id: String, usage: &BudgetUsage) -> BudgetStanding {
    BudgetStanding {
        id,
        used: usage.used,
        by_others: usage.foreign,
        limit: usage.limit,
        left: usage.limit.saturating_sub(usage.used),
        unit: None,
        resets_us: usage.resets.map(LimitTime::micros),
        shut_until_us: usage.blocked_until.map(LimitTime::micros),
    }
}

pub(crate) fn run_standing(run: &RunDetail) -> RunStanding {
    RunStanding {
        number: run.number,
        network: run.network.clone(),
        host: run.host.clone(),
        definition: run.definition.clone(),
        clock: run.clock.clone(),
        settings: serde_json::from_str(&run.settings).unwrap_or_default(),
        started_us: run.started_us,
        ended_us: run.ended_us,
        end_reason: run.end_reason.clone(),
    }
}

fn outcomes(counted: &BTreeMap<String, u64>) -> Vec<OutcomeCount> {
    let mut outcomes: Vec<OutcomeCount> = counted
        .iter()
        .map(|(outcome, calls)| OutcomeCount {
            outcome: outcome.clone(),
            is_failure: is_failure(outcome),
            calls: *calls,
        })
        .collect();
    outcomes.sort_by(|a, b| {
        b.calls
            .cmp(&a.calls)
            .then_with(|| a.outcome.cmp(&b.outcome))
    });
    outcomes
}

fn lane_freshness(robot: &RobotFreshness) -> LaneFreshness {
    let classes = robot.classes.iter();
    LaneFreshness {
        lane: robot.lane.to_string(),
        policy: robot.policy.to_owned(),
        everybody: figures(&robot.everybody),
        classes: classes
            .map(|(name, it)| (name.clone(), figures(it)))
            .collect(),
    }
}

fn figures(fresh: &Freshness) -> FreshnessFigures {
    FreshnessFigures {
        people: fresh.people,
        visited: fresh.visited,
        posts_per_day: fresh.posts_per_day,
        posts_waiting: fresh.waiting,
        expected_delay_hours: fresh.expected_delay_hours(),
        age_hours: fresh.age_hours(),
        found: fresh.found,
        delay_hours: fresh.delay_hours(),
        share_within_hour: fresh.share_within_hour(),
    }
}

fn why_text(why: &Why) -> String {
    let mut parts = Vec::new();
    if let Some(waiting) = why.waiting {
        parts.push(format!("{waiting:.1} posts are expected to wait"));
    }
    if let (Some(worth), Some(price)) = (why.worth, why.price) {
        parts.push(format!(
            "worth {worth:.3} post-days at a price of {price:.3}"
        ));
    }
    if parts.is_empty() {
        return "it was not visited yet".to_owned();
    }
    parts.join(", ")
}

fn recent_calls(recent: &Recent) -> RecentCalls {
    let seconds = recent.span_us as f64 / 1e6;
    let parts = [
        recent.ranking_us,
        recent.waiting_us,
        recent.network_us,
        recent.reading_us,
        recent.seeding_us,
        recent.storing_us,
    ];
    let total = parts.iter().sum::<u64>().max(1) as f64;
    let [choosing, waiting, network, reading, seeding, storing] =
        parts.map(|part_us| part_us as f64 / total);
    RecentCalls {
        calls: recent.calls,
        seconds,
        bytes: recent.bytes,
        calls_per_second: recent.calls as f64 / seconds.max(1e-6),
        bytes_per_second: recent.bytes as f64 / seconds.max(1e-6),
        choosing,
        waiting,
        network,
        reading,
        seeding,
        storing,
    }
}

/// The steps that "lately" is.
fn lately_steps(activity: &Activity) -> usize {
    let steps = RATE_US / activity.bucket_us.max(1);
    usize::try_from(steps)
        .unwrap_or(1)
        .clamp(1, activity.buckets.max(1))
}

fn lately_seconds(activity: &Activity) -> f64 {
    let span_us = activity
        .bucket_us
        .max(1)
        .saturating_mul(lately_steps(activity) as i64);
    span_us as f64 / 1e6
}

fn lately(activity: &Activity, queries: &[String]) -> Bucket {
    let skipped = activity.buckets.saturating_sub(lately_steps(activity));
    let buckets = queries
        .iter()
        .filter_map(|query| activity.queries.get(query));
    sum(buckets.flat_map(|buckets| buckets.iter().skip(skipped)))
}

fn sum<'a>(buckets: impl Iterator<Item = &'a Bucket>) -> Bucket {
    buckets.fold(Bucket::default(), |sum, it| Bucket {
        calls: sum.calls + it.calls,
        failed: sum.failed + it.failed,
        rows_new: sum.rows_new + it.rows_new,
        rows_changed: sum.rows_changed + it.rows_changed,
        bytes: sum.bytes + it.bytes,
    })
}

fn pace(activity: &Activity) -> Vec<PacePoint> {
    let seconds = activity.bucket_us.max(1) as f64 / 1e6;
    let point = |step: usize| {
        let all = sum(activity.queries.values().filter_map(|it| it.get(step)));
        let after_us = activity.bucket_us.saturating_mul(step as i64);
        PacePoint {
            at_us: activity.from.plus_us(after_us).micros(),
            calls_per_second: all.calls as f64 / seconds,
            rows_per_second: (all.rows_new + all.rows_changed) as f64 / seconds,
        }
    };
    (0..activity.buckets).map(point).collect()
}
