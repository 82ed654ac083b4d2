//! What is known of everybody whom a robot visits, and how each visit is judged: one policy and one
//! population for each robot, because what changes hourly and what changes yearly are not alike.

use crate::EngineError;
use crate::exchange::Shop;
use crate::found::Found;
use crate::freshness;
use crate::scheduler::Scheduler;
use crate::work::{Purpose, Work};
use kittiwake_frontier::policy::Facts;
use kittiwake_frontier::{
    Judge, Lease, Policy, ReadBy, RoundRobin, Shared, Spill, State, Visit, Wanted,
};
use kittiwake_model::{
    Commit, Filed, FrontierRow, Group, Key, Learnt, Name, Object, RobotFiling, Standing, Table,
    Value, WorldTime,
};
use kittiwake_store::{Card, DueQuestion, Remembered, Store, TaskRecord};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often a population is re-estimated, in world time.
const EPOCH_US: i64 = 6 * 3_600_000_000;
/// Nobody is out of sight for longer, as far as calls suffice.
const UNSEEN_US_MAX: i64 = 7 * 86_400_000_000;
const DAY_US: f64 = 86_400_000_000.0;
/// The version of what is kept between runs.
const VERSION: u8 = 2;

/// No visit takes fewer calls, in the mean.
const CALLS_MIN: f64 = 1e-3;
/// How much of the mean of calls the newest visit decides.
const CALLS_NEWEST: f64 = 1.0 / 64.0;

/// How somebody writes is told again after so many visits.
const CLASS_VISITS: u32 = 4;

/// A rate in steps of a quarter, with two digits.
fn rounded(rate: f64) -> f64 {
    const STEPS: f64 = 10.0;
    if rate < 1e-3 {
        return 0.0;
    }
    let stepped = 10_f64.powf((rate.log10() * STEPS).round() / STEPS);
    let digits = 10_f64.powf(1.0 - stepped.log10().floor());
    (stepped * digits).round() / digits
}

/// How a robot decides whom to visit again, and what it is worth that it does.
#[derive(Debug, Clone)]
pub struct Guide {
    pub policy: Arc<dyn Policy>,
    /// What one of the things that the robot finds is worth, against a post.
    pub worth: f64,
}

impl Default for Guide {
    fn default() -> Self {
        Self {
            policy: Arc::new(RoundRobin),
            worth: 1.0,
        }
    }
}

/// Everybody whom one robot visits.
#[derive(Debug)]
pub(crate) struct Population {
    policy: Arc<dyn Policy>,
    /// Whether each call goes to whoever it is worth most for; otherwise they take turns.
    is_ranked: bool,
    /// What one of the things that the robot finds is worth, against a post.
    worth: f64,
    known: Mutex<Known>,
}

/// What is kept of a population between runs.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub shared: Shared,
    /// What a visit has to be worth to be looked for.
    pub price: f64,
    /// Calls that a visit takes, in the mean.
    calls: f64,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            shared: Shared::default(),
            price: 0.0,
            calls: 1.0,
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Known {
    kept: Kept,
    /// When it is re-estimated.
    epoch: Option<WorldTime>,
}

impl Kept {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend(self.price.to_le_bytes());
        bytes.extend(self.calls.to_le_bytes());
        bytes.extend(self.shared.to_bytes());
        bytes
    }

    /// What cannot be read is learnt anew.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first()?;
        let (price, rest) = rest.split_first_chunk::<8>()?;
        let (calls, shared) = rest.split_first_chunk::<8>()?;
        let (price, calls) = (f64::from_le_bytes(*price), f64::from_le_bytes(*calls));
        let is_number = |number: f64| number.is_finite() && number >= 0.0;
        let is_sound = *version == VERSION && is_number(price) && is_number(calls);
        Some(Self {
            shared: Shared::from_bytes(shared).ok().filter(|_| is_sound)?,
            price,
            calls,
        })
    }

    /// Takes in how many calls a visit took.
    fn took(&mut self, calls: f64) {
        self.calls += CALLS_NEWEST * (calls - self.calls);
    }
}

impl Population {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is remembered of a subject, as it stands in its row. Whoever was visited without anything
    /// learnt of it is as if nothing had been found then.
    fn state_of(&self, shared: &Shared, row: &Row<'_>) -> State {
        let state = State::try_from(row.state).unwrap_or_default();
        match (state.since(), row.visited) {
            (None, None) => self.policy.meet(shared, &row.facts, row.due),
            (None, Some(visited)) => {
                let mut state = self.policy.meet(shared, &row.facts, visited);
                let nothing = Visit::complete(visited, &[]);
                self.policy
                    .observe(&mut shared.clone(), &mut state, &nothing);
                state
            }
            (Some(since), Some(visited)) if visited > since => state.at(visited),
            (Some(_), _) => state,
        }
    }
}

/// What a row tells of a subject.
struct Row<'a> {
    due: WorldTime,
    visited: Option<WorldTime>,
    state: &'a [u8],
    facts: Facts,
}

impl<'a> Row<'a> {
    fn of(row: &'a FrontierRow) -> Self {
        Self {
            due: row.due,
            visited: row.visited,
            state: &row.state,
            facts: Facts::default(),
        }
    }
}

/// What a card tells a policy.
fn facts_of(card: &Card, now: WorldTime) -> Facts {
    let count = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
    let age_days = card
        .created
        .map(|created| now.since_us(created).max(0) as f64 / DAY_US);
    Facts {
        followers: count(card.counts.followers),
        following: count(card.counts.following),
        posts: count(card.counts.statuses),
        age_days,
        depth: 0,
    }
}

/// The populations of all robots of a crawl, as earlier runs have left them.
pub(crate) async fn populations(
    store: &dyn Store,
    robots: &[RobotFiling],
    guides: &BTreeMap<Name, Guide>,
    is_endless: bool,
) -> Result<HashMap<Name, Population>, EngineError> {
    let mut learnt: HashMap<Name, Vec<u8>> = HashMap::new();
    for Learnt { lane, bytes } in store.learnt().await? {
        learnt.insert(lane, bytes);
    }
    let population = |filing: &RobotFiling| {
        let guide = guides.get(&filing.robot).cloned().unwrap_or_default();
        let policy = guide.policy;
        let kept = learnt.get(&filing.lane);
        let kept = kept.and_then(|it| Kept::from_bytes(it));
        Population {
            // Whoever visits everybody once needs no order but that of the queue, and a queue
            // keeps itself in the store.
            is_ranked: is_endless && policy.name() != RoundRobin.name(),
            policy,
            worth: guide.worth,
            known: Mutex::new(Known {
                kept: kept.unwrap_or_default(),
                epoch: None,
            }),
        }
    };
    let robots = robots.iter();
    Ok(robots
        .map(|filing| (filing.robot.clone(), population(filing)))
        .collect())
}

impl Shop {
    fn population(&self, robot: &str) -> Result<&Population, EngineError> {
        self.populations
            .get(robot)
            .ok_or_else(|| EngineError::Broken(format!("no population of {robot:?}")))
    }

    /// The frontier row after a completed visit, whose calls served so many.
    pub(crate) fn visited(
        &self,
        row: &FrontierRow,
        found: &Found,
        together: usize,
        at: WorldTime,
    ) -> Result<FrontierRow, EngineError> {
        let population = self.population(&row.robot)?;
        let mut state = State::from_bytes(row.state.clone())
            .map_err(|error| EngineError::Broken(error.to_string()))?;
        // What was seen before is not news.
        let is_new = |post: &&WorldTime| row.visited.is_none_or(|visited| **post > visited);
        let posts: Vec<WorldTime> = found.posts.iter().filter(is_new).copied().collect();
        let policy = &*population.policy;
        let calls = f64::from(found.calls().max(1)) / together.max(1) as f64;
        let visit = Visit {
            content: found.content(),
            calls: calls as f32,
            ..Visit::complete(at, &posts)
        };
        let mut known = population.known();
        // A first visit takes what no other will.
        if row.visited.is_some() {
            known.kept.took(calls);
        }
        let Kept { shared, price, .. } = &mut known.kept;
        policy.observe(shared, &mut state, &visit);
        let due = policy.due(shared, &state, *price, at);
        let due = due.min(at.plus_us(UNSEEN_US_MAX));
        drop(known);
        Ok(FrontierRow {
            visits: row.visits.saturating_add(1),
            visited: Some(at),
            due: due.max(self.rested(&row.robot, at)?),
            state: state.into_bytes(),
            ..row.clone()
        })
    }

    /// What the next call of work is worth, in posts that wait for a day; `None` where whose turn it is
    /// decides. A budget that several robots draw from is divided by it.
    pub(crate) fn worth(&self, work: &Work, now: WorldTime) -> Option<f64> {
        let population = self.populations.get(&work.robot)?;
        let policy = &*population.policy;
        let is_told = population.is_ranked && policy.tells_post_days();
        let is_first = work.tasks.iter().any(|task| task.row.visited.is_none());
        if !is_told || is_first || work.call.purpose != Purpose::Visit {
            return None;
        }
        let known = population.known();
        let Kept { shared, calls, .. } = &known.kept;
        let worth = |row: &FrontierRow| {
            let state = population.state_of(shared, &Row::of(row));
            let index = policy.index(shared, &state, now);
            if index.is_nan() { 0.0 } else { index }
        };
        let all: f64 = work.tasks.iter().map(|task| worth(&task.row)).sum();
        // Visits that share a call take a part of it each: together they are worth what they are worth for
        // each call in the mean.
        let each = all / work.tasks.len().max(1) as f64;
        let calls = if policy.knows_calls() {
            1.0
        } else {
            calls.max(CALLS_MIN)
        };
        Some(each / calls * population.worth)
    }

    /// What a visit has taught of how a subject writes, as fields of the subject: they change only when
    /// much has changed, so that few versions of them are kept.
    pub(crate) async fn rhythm(
        &self,
        task: &TaskRecord,
        row: &FrontierRow,
        posts: &[WorldTime],
    ) -> Result<Option<Object>, EngineError> {
        let population = self.population(&row.robot)?;
        let is_writer = self
            .settings
            .network
            .follows_writers(self.robot(&row.robot)?);
        let is_told = row.visits <= 1 || row.visits.is_multiple_of(CLASS_VISITS);
        let (Some(at), true, true, true) = (row.visited, population.is_ranked, is_writer, is_told)
        else {
            return Ok(None);
        };
        let state = State::from_bytes(row.state.clone()).unwrap_or_default();
        let rate = {
            let known = population.known();
            population.policy.posts_per_day(&known.kept.shared, &state)
        };
        let Some(rate) = rate else {
            return Ok(None);
        };
        let class = freshness::class_of(&*self.store, row.subject, posts, at).await?;
        let fields = vec![
            ("class".into(), Value::Text(class.name().to_owned())),
            ("posts_per_day".into(), Value::Float(rounded(rate))),
        ];
        Ok(Some(Object {
            identity: task.identity.clone(),
            known_as: Some(row.subject),
            table: Table::Users,
            groups: vec![Group {
                name: "rhythm".into(),
                fields,
            }],
            // That it writes so is our own word, and none on whether it is there.
            standing: Standing::Hearsay,
        }))
    }

    /// When a robot may come back at the earliest to a subject that it visited then.
    pub(crate) fn rested(&self, robot: &str, at: WorldTime) -> Result<WorldTime, EngineError> {
        Ok(at.plus_us(self.rest_us(robot)?))
    }

    fn rest_us(&self, robot: &str) -> Result<i64, EngineError> {
        let rest_us = self.robot(robot)?.revisit_after_us;
        // Just behind the visit, to keep the order of the queue.
        Ok(rest_us.unwrap_or(1))
    }

    /// What populations are now, to be kept.
    pub(crate) fn learnt(&self) -> Vec<Learnt> {
        let robots = self.expansion.robots.iter();
        let ranked = robots.filter_map(|filing| {
            let population = self.populations.get(&filing.robot)?;
            population.is_ranked.then(|| Learnt {
                lane: filing.lane.clone(),
                bytes: population.known().kept.to_bytes(),
            })
        });
        ranked.collect()
    }
}

impl Scheduler {
    /// Lanes whose policy ranks are ranked, at the prices of earlier runs.
    pub(crate) fn rank_lanes(&mut self, spill: Option<Spill>) {
        let shop = Arc::clone(&self.shop);
        let ranked = shop.populations.values().filter(|it| it.is_ranked);
        let lanes_max = ranked.count().max(1);
        if let Some(spill) = spill {
            // Robots share what memory holds.
            let ranked_max = (spill.ranked_max / lanes_max).max(1);
            self.frontier.spill_into(Spill {
                ranked_max,
                ..spill
            });
        }
        for filing in &shop.expansion.robots {
            let population = shop.populations.get(&filing.robot);
            if let Some(population) = population.filter(|it| it.is_ranked) {
                let price = population.known().kept.price;
                self.frontier.rank(&filing.lane, price, &*population.policy);
            }
        }
    }

    /// Files a subject of a ranked lane.
    pub(crate) fn file_ranked(&mut self, filed: &Filed) -> Result<(), EngineError> {
        let row = Row {
            due: filed.due,
            visited: filed.visited,
            state: &filed.state,
            facts: Facts::default(),
        };
        let population = self.shop.population(&filed.robot)?;
        let state = population.state_of(&population.known().kept.shared, &row);
        if filed.state.is_empty() && filed.visited.is_none() {
            let newcomers = self.newcomers.entry(filed.lane.clone()).or_default();
            newcomers.push(filed.subject);
            self.young.insert(filed.lane.clone());
        }
        let now = self.shop.clock.world();
        self.frontier
            .file_ranked(&filed.lane, filed.subject, filed.due, state, now);
        Ok(())
    }

    /// Reads a ranked lane from the store.
    pub(crate) async fn read_ranked(
        &mut self,
        filing: &RobotFiling,
        wanted: Wanted,
    ) -> Result<(), EngineError> {
        let shop = Arc::clone(&self.shop);
        let rows = match wanted.by {
            ReadBy::Due => {
                let question = DueQuestion {
                    after: wanted.after,
                    limit: wanted.limit,
                    ..self.due_question(&filing.lane)
                };
                shop.store.remembered(question).await?
            }
            ReadBy::Subject => {
                let after = wanted.after.map(|(_, subject)| subject);
                let lane = filing.lane.clone();
                let store = &shop.store;
                store
                    .remembered_by_subject(lane, after, wanted.limit)
                    .await?
            }
        };
        let now = shop.clock.world();
        let population = shop.population(&filing.robot)?;
        let cards = self.cards_of(&rows).await?;
        for row in &rows {
            let known = Row {
                due: row.due,
                visited: row.visited,
                state: &row.state,
                facts: cards.get(&row.subject).copied().unwrap_or_default(),
            };
            let state = population.state_of(&population.known().kept.shared, &known);
            self.frontier
                .file_ranked(&filing.lane, row.subject, row.due, state, now);
        }
        let last = rows.last().map(|row| (row.due, row.subject));
        self.frontier
            .read_ranked(&filing.lane, wanted, last, rows.len());
        Ok(self.frontier.tend(&filing.lane, now)?)
    }

    /// What cards tell of those whom nobody has visited.
    async fn cards_of(&self, rows: &[Remembered]) -> Result<HashMap<Key, Facts>, EngineError> {
        let is_new = |row: &&Remembered| row.state.is_empty() && row.visited.is_none();
        let keys: Vec<Key> = rows.iter().filter(is_new).map(|row| row.subject).collect();
        self.facts_of(keys).await
    }

    async fn facts_of(&self, keys: Vec<Key>) -> Result<HashMap<Key, Facts>, EngineError> {
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let now = self.shop.clock.world();
        let cards = self.shop.store.cards(keys.clone()).await?;
        let facts = cards.iter().map(|card| facts_of(card, now));
        Ok(keys.into_iter().zip(facts).collect())
    }

    /// Looks at the cards of those who have come since.
    async fn greet_newcomers(&mut self, filing: &RobotFiling) -> Result<(), EngineError> {
        let Some(newcomers) = self.newcomers.remove(&filing.lane) else {
            return Ok(());
        };
        let shop = Arc::clone(&self.shop);
        let population = shop.population(&filing.robot)?;
        let now = shop.clock.world();
        for (subject, facts) in self.facts_of(newcomers).await? {
            if !self.frontier.is_unvisited(&filing.lane, subject) {
                continue;
            }
            let state = population
                .policy
                .meet(&population.known().kept.shared, &facts, now);
            self.frontier
                .file_ranked(&filing.lane, subject, now, state, now);
        }
        Ok(())
    }

    /// Leases those of a ranked lane for whom a call is worth most.
    pub(crate) async fn lease_ranked(
        &mut self,
        filing: &RobotFiling,
        wanted: usize,
    ) -> Result<Vec<Lease>, EngineError> {
        self.greet_newcomers(filing).await?;
        let shop = Arc::clone(&self.shop);
        let population = shop.population(&filing.robot)?;
        let now = shop.clock.world();
        let rest_us = shop.rest_us(&filing.robot)?;
        self.frontier.tend(&filing.lane, now)?;
        let (leases, is_over) = {
            let mut known = population.known();
            let is_over = known.epoch.is_none_or(|epoch| now >= epoch);
            if is_over {
                population.policy.epoch(&mut known.kept.shared, now);
                known.epoch = Some(now.plus_us(EPOCH_US));
            }
            let judge = Judge {
                policy: &*population.policy,
                shared: &known.kept.shared,
                rest_us,
            };
            let (leases, price) = self.frontier.lease_ranked(&filing.lane, now, wanted, judge);
            known.kept.price = price;
            (leases, is_over)
        };
        let is_first = |lease: &Lease| self.frontier.is_unvisited(&filing.lane, lease.subject);
        if leases.iter().any(is_first) {
            self.young.insert(filing.lane.clone());
        } else if !leases.is_empty() {
            self.young.remove(&filing.lane);
        }
        if is_over {
            self.keep_learnt().await?;
        }
        Ok(leases)
    }

    /// Keeps what was learnt of populations. What a crash takes of it is learnt again.
    pub(crate) async fn keep_learnt(&self) -> Result<(), EngineError> {
        let learnt = self.shop.learnt();
        if learnt.is_empty() {
            return Ok(());
        }
        let commit = Commit {
            at: self.shop.clock.world(),
            learnt,
            ..Commit::default()
        };
        self.shop.store.commit(vec![commit]).await?;
        Ok(())
    }
}
