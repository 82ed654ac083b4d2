//! How fresh a crawl's data is, and why somebody is due: what `status` shows. Reads the store, and asks the
//! policies that the crawl follows.

use crate::EngineError;
use crate::population::Kept;
use kittiwake_frontier::policy::{self, Policy, PolicySettings};
use kittiwake_frontier::{Class, Shared, State};
use kittiwake_model::{Key, Learnt, Name, WorldTime};
use kittiwake_store::{Arrival, DueQuestion, Remembered, Store};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Subjects of a lane that are looked at: beyond that, what is told is told of these.
const SUBJECTS_MAX: usize = 500_000;
/// Rows that are read at once.
const STEP: usize = 10_000;
/// Posts that "lately" means.
const ARRIVALS_MAX: usize = 20_000;
const HOUR_US: i64 = 3_600_000_000;
/// Weeks of posts that a class is taken from, and posts.
const CLASS_US: i64 = 8 * 7 * 24 * HOUR_US;
const CLASS_POSTS_MAX: usize = 1_000;

/// How fresh is what one robot keeps.
#[derive(Debug, Clone, PartialEq)]
pub struct RobotFreshness {
    /// Network, host and robot.
    pub lane: Name,
    pub policy: &'static str,
    pub everybody: Freshness,
    /// By CUVIM's classes; whoever has none yet is `unknown`.
    pub classes: BTreeMap<String, Freshness>,
}

/// How fresh is what is kept of some people.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Freshness {
    pub people: u64,
    pub visited: u64,
    /// Posts that are expected to wait now, and to be written in a day.
    pub waiting: f64,
    pub posts_per_day: f64,
    /// How long ago those who were visited were, all together.
    ages_us: f64,
    /// Posts that were found lately, how long after they were written, all together, and how many of
    /// them within an hour.
    pub found: u64,
    delays_us: f64,
    found_within_hour: u64,
}

impl Freshness {
    /// How old what is kept is, in the mean.
    pub fn age_hours(&self) -> Option<f64> {
        (self.visited > 0).then(|| self.ages_us / self.visited as f64 / HOUR_US as f64)
    }

    /// How long a post is expected to wait until it is found: as many wait as are written in that time.
    pub fn expected_delay_hours(&self) -> Option<f64> {
        let is_known = self.visited > 0 && self.posts_per_day > 1e-9;
        is_known.then(|| self.waiting / self.posts_per_day * 24.0)
    }

    /// How long after they were written posts were found lately.
    pub fn delay_hours(&self) -> Option<f64> {
        (self.found > 0).then(|| self.delays_us / self.found as f64 / HOUR_US as f64)
    }

    /// Which share of them within an hour.
    pub fn share_within_hour(&self) -> Option<f64> {
        (self.found > 0).then(|| self.found_within_hour as f64 / self.found as f64)
    }

    fn add_subject(&mut self, row: &Remembered, forecast: (f64, f64), now: WorldTime) {
        self.people += 1;
        self.waiting += forecast.0;
        self.posts_per_day += forecast.1;
        if let Some(visited) = row.visited {
            self.visited += 1;
            self.ages_us += now.since_us(visited).max(0) as f64;
        }
    }

    fn add_arrival(&mut self, arrival: &Arrival) {
        let delay_us = arrival.found.since_us(arrival.created).max(0);
        self.found += 1;
        self.delays_us += delay_us as f64;
        self.found_within_hour += u64::from(delay_us <= HOUR_US);
    }
}

/// Why somebody is due when they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Why {
    pub subject: Key,
    pub lane: Name,
    pub policy: Option<&'static str>,
    pub visits: u32,
    pub visited: Option<WorldTime>,
    /// When the store has it due: it is looked at then, or sooner where calls are left.
    pub due: WorldTime,
    pub posts_per_day: Option<f64>,
    pub waiting: Option<f64>,
    /// What a visit is worth now, and what it has to be worth to be looked for, in posts that wait for a
    /// day.
    pub worth: Option<f64>,
    pub price: Option<f64>,
    /// When it will be worth that.
    pub worth_at: Option<WorldTime>,
}

/// A lane as its policy knows it.
struct Judged {
    policy: Arc<dyn Policy>,
    kept: Kept,
}

impl Judged {
    fn of(state: &State, kept: Kept, settings: &PolicySettings) -> Option<Self> {
        let name = policy::writer_of(state)?;
        let policy = policy::by_name(name, settings)?;
        Some(Self {
            policy: Arc::from(policy),
            kept,
        })
    }

    fn shared(&self) -> &Shared {
        &self.kept.shared
    }

    /// What a visit is worth; a first one what calls are worth at present.
    fn worth(&self, state: &State, visited: Option<WorldTime>, now: WorldTime) -> f64 {
        let index = self.policy.index(self.shared(), state, now);
        match visited {
            Some(_) => index,
            None => index.max(self.kept.price),
        }
    }

    /// When a visit is worth the price.
    fn due(&self, state: &State, visited: Option<WorldTime>, now: WorldTime) -> WorldTime {
        let price = self.kept.price;
        match visited {
            Some(_) => self.policy.due(self.shared(), state, price, now),
            None => now,
        }
    }

    /// Posts that wait, and posts a day.
    fn forecast(&self, row: &Remembered, now: WorldTime) -> (f64, f64) {
        let state = State::from_bytes(row.state.clone()).unwrap_or_default();
        let waiting = self.policy.expected(self.shared(), &state, now);
        let rate = self.policy.posts_per_day(self.shared(), &state);
        let rate = rate.unwrap_or_else(|| self.shared().mean_rate());
        (waiting.unwrap_or(0.0), rate)
    }
}

/// How fresh a crawl's data is, robot by robot: of those whose subjects are ranked. Where all take turns, what
/// was found lately is all that can be told.
pub async fn freshness(
    store: &dyn Store,
    settings: &PolicySettings,
    now: WorldTime,
) -> Result<Vec<RobotFreshness>, EngineError> {
    let mut robots = Vec::new();
    let arrivals = store.arrivals(ARRIVALS_MAX).await?;
    for Learnt { lane, bytes } in store.learnt().await? {
        let Some(kept) = Kept::from_bytes(&bytes) else {
            continue;
        };
        let rows = rows_of(store, &lane).await?;
        let written = rows.iter().find(|row| !row.state.is_empty());
        let state = written.and_then(|row| State::from_bytes(row.state.clone()).ok());
        let Some(judged) = state.and_then(|state| Judged::of(&state, kept, settings)) else {
            continue;
        };
        let keys: Vec<Key> = rows.iter().map(|row| row.subject).collect();
        let classes = store.classes(keys).await?;
        robots.push(summed(lane, &judged, &rows, classes, &arrivals, now));
    }
    if robots.is_empty() && !arrivals.is_empty() {
        robots.push(in_turn(&arrivals));
    }
    Ok(robots)
}

/// What can be told where nobody is ranked and nothing is expected of anybody.
fn in_turn(arrivals: &[Arrival]) -> RobotFreshness {
    let mut everybody = Freshness::default();
    for arrival in arrivals {
        everybody.add_arrival(arrival);
    }
    RobotFreshness {
        lane: "posts".into(),
        policy: "in turn",
        everybody,
        classes: BTreeMap::new(),
    }
}

async fn rows_of(store: &dyn Store, lane: &Name) -> Result<Vec<Remembered>, EngineError> {
    let mut rows: Vec<Remembered> = Vec::new();
    loop {
        let question = DueQuestion {
            lane: lane.clone(),
            after: rows.last().map(|row| (row.due, row.subject)),
            not_visited_since: None,
            limit: STEP,
        };
        let more = store.remembered(question).await?;
        let is_last = more.len() < STEP;
        rows.extend(more);
        if is_last || rows.len() >= SUBJECTS_MAX {
            return Ok(rows);
        }
    }
}

fn summed(
    lane: Name,
    judged: &Judged,
    rows: &[Remembered],
    classes: Vec<Option<String>>,
    arrivals: &[Arrival],
    now: WorldTime,
) -> RobotFreshness {
    let mut everybody = Freshness::default();
    let mut by_class: BTreeMap<String, Freshness> = BTreeMap::new();
    let mut class_of: HashMap<Key, String> = HashMap::new();
    for (row, class) in rows.iter().zip(classes) {
        let class = class.unwrap_or_else(|| "unknown".to_owned());
        let forecast = judged.forecast(row, now);
        everybody.add_subject(row, forecast, now);
        let of_class = by_class.entry(class.clone()).or_default();
        of_class.add_subject(row, forecast, now);
        class_of.insert(row.subject, class);
    }
    for arrival in arrivals {
        let Some(class) = class_of.get(&arrival.author) else {
            continue;
        };
        everybody.add_arrival(arrival);
        by_class
            .entry(class.clone())
            .or_default()
            .add_arrival(arrival);
    }
    RobotFreshness {
        lane,
        policy: judged.policy.name(),
        everybody,
        classes: by_class,
    }
}

/// Why those who are called so are due when they are, robot by robot.
pub async fn why(
    store: &dyn Store,
    settings: &PolicySettings,
    called: &str,
    robots: &[Name],
    now: WorldTime,
) -> Result<Vec<Why>, EngineError> {
    let learnt = store.learnt().await?;
    let mut whys = Vec::new();
    for subject in store.named(called.to_owned()).await? {
        let tasks = robots.iter().map(|robot| (subject, robot.clone()));
        for record in store.tasks(tasks.collect()).await?.into_iter().flatten() {
            let row = record.row;
            let state = State::from_bytes(row.state).unwrap_or_default();
            let kept = learnt.iter().find(|it| it.lane == row.lane);
            let kept = kept.and_then(|it| Kept::from_bytes(&it.bytes));
            let judged = kept.and_then(|kept| Judged::of(&state, kept, settings));
            let price = judged.as_ref().map(|it| it.kept.price);
            let ask =
                |question: &dyn Fn(&Judged) -> Option<f64>| judged.as_ref().and_then(question);
            whys.push(Why {
                subject,
                lane: row.lane,
                policy: policy::writer_of(&state),
                visits: row.visits,
                visited: row.visited,
                due: row.due,
                posts_per_day: ask(&|it| it.policy.posts_per_day(it.shared(), &state)),
                waiting: ask(&|it| it.policy.expected(it.shared(), &state, now)),
                worth: ask(&|it| Some(it.worth(&state, row.visited, now))),
                price,
                worth_at: judged.as_ref().map(|it| it.due(&state, row.visited, now)),
            });
        }
    }
    Ok(whys)
}

/// The class of somebody who wrote at these times, as far as they are kept, and now.
pub(crate) async fn class_of(
    store: &dyn Store,
    subject: Key,
    newest: &[WorldTime],
    now: WorldTime,
) -> Result<Class, EngineError> {
    let since = now.plus_us(-CLASS_US);
    let kept = store.post_times(subject, since, CLASS_POSTS_MAX).await?;
    let is_cut_off = kept.len() == CLASS_POSTS_MAX;
    let mut posts: Vec<WorldTime> = kept.into_iter().chain(newest.iter().copied()).collect();
    posts.retain(|at| *at >= since && *at <= now);
    posts.sort_unstable();
    posts.dedup();
    let from = posts.first().copied().filter(|_| is_cut_off);
    Ok(Class::of(&posts, from.unwrap_or(since), now))
}
