//! How many calls a crawl will make, how long that takes and what it costs, without making one.
//!
//! Everything is reckoned three times: with the least that what is known allows, with what is
//! likely, and with the most. `visits.rs` tells how many calls a visit takes, `growth.rs` how many
//! people there will be, `pace.rs` how long budgets make it; all of them are pure. `read.rs` brings
//! together what they need. How it is reckoned is told in `docs/plan.md`.

mod growth;
mod pace;
mod read;
mod visits;

pub use pace::{
    Allowance, BudgetForecast, Counter, Duration as ForecastDuration, Span, Wire, duration,
};
pub use read::{Basis, forecast};

use kittiwake_model::{Follow, Name, WorldTime};
use kittiwake_network::{Length, PagePlace};
use kittiwake_store::outlook::{PostsOutlook, ProspectWalk};
use serde::Serialize;
use std::collections::BTreeMap;

use crate::settings::History;

/// A number that is not known exactly.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Estimate {
    pub low: f64,
    pub likely: f64,
    pub high: f64,
}

impl Estimate {
    pub const fn exact(number: f64) -> Self {
        Self {
            low: number,
            likely: number,
            high: number,
        }
    }

    /// The three ways of reckoning, put in order: none of them knows of the others.
    fn of(mut reckoned: impl FnMut(Case) -> f64) -> Self {
        let likely = reckoned(Case::Likely);
        Self {
            low: reckoned(Case::Low).min(likely),
            likely,
            high: reckoned(Case::High).max(likely),
        }
    }

    /// Whether the bounds are the same but for rounding.
    pub fn is_exact(&self) -> bool {
        self.high - self.low < 0.5
    }
}

/// One of the three ways of reckoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Case {
    Low,
    Likely,
    High,
}

impl Case {
    const fn pick<T: Copy>(self, (low, likely, high): (T, T, T)) -> T {
        match self {
            Self::Low => low,
            Self::Likely => likely,
            Self::High => high,
        }
    }
}

/// What a robot asks, as far as the number of its calls goes.
#[derive(Debug, Clone)]
struct RobotRules {
    name: Name,
    kind: Name,
    steps: Vec<StepRules>,
    /// Subjects that share a call.
    batch: u64,
    /// Visits posts, not people.
    is_of_posts: bool,
    begins_visited: bool,
    /// Brings people within reach whom its finds show.
    brings: bool,
}

#[derive(Debug, Clone)]
struct StepRules {
    query: Name,
    page_size: Option<u32>,
    pages_max: u32,
    length: Option<Length>,
    is_incremental: bool,
    digest: Name,
}

/// A subject: somebody, or anything else that robots visit.
#[derive(Debug, Clone)]
struct Subject {
    kind: Name,
    depth: u32,
    following: Option<u64>,
    followers: Option<u64>,
    posts: Option<u64>,
    created: Option<WorldTime>,
    /// Is left alone, as it wishes.
    opted_out: bool,
    /// Gone: one call finds that out again.
    is_invalid: bool,
    /// Its id on the host has to be asked for first.
    needs_lookup: bool,
    /// How much of its follow lists has been walked before.
    walked_following: Walked,
    walked_followers: Walked,
    /// What every robot has done, in the order of the robots.
    tasks: Vec<Task>,
    walks: Vec<ProspectWalk>,
}

/// How much of a list has been walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Walked {
    #[default]
    Nothing,
    Items(u64),
    All,
}

/// What a robot has done at a subject, and whether it has to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Task {
    visits: u32,
    is_due: bool,
    visited: Option<WorldTime>,
}

/// Somebody whom every robot has to visit.
fn all_due(robots: usize) -> Vec<Task> {
    let task = Task {
        is_due: true,
        ..Task::default()
    };
    vec![task; robots]
}

/// Everything that is known before the crawl.
#[derive(Debug, Clone)]
struct Known {
    robots: Vec<RobotRules>,
    /// The query that finds a subject by its handle, and the robot that has to ask it.
    lookup: Option<(usize, Name)>,
    follow: Follow,
    depth_max: u32,
    history: History,
    now: WorldTime,
    subjects: Vec<Subject>,
    /// What is usual of people, where nothing is known of one.
    usual: Usual,
    /// How many subjects each of them stands for.
    weight: f64,
    /// Relations from those whose lists were walked to those whose were not.
    leading_out: u64,
    posts: Vec<PostsOutlook>,
    /// Whether posts that are known are not going to be found again.
    are_posts_kept: bool,
}

/// How long lists are: at least, likely, at most.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Usual {
    following: (u64, u64, u64),
    followers: (u64, u64, u64),
    posts: (u64, u64, u64),
}

/// Calls and items, by robot, query and place in the walk.
#[derive(Debug, Clone, Default)]
struct Tally(BTreeMap<(usize, Name, PagePlace), (f64, f64)>);

impl Tally {
    fn add(&mut self, robot: usize, query: &Name, place: PagePlace, calls: f64, items: f64) {
        if calls > 0.0 {
            let sum = self.0.entry((robot, query.clone(), place)).or_default();
            sum.0 += calls;
            sum.1 += items;
        }
    }

    fn calls(&self) -> f64 {
        self.0.values().map(|(calls, _)| calls).sum()
    }
}

/// One way of reckoning, through to the end.
#[derive(Debug, Clone, Default)]
struct Reckoning {
    tally: Tally,
    /// People within reach, by depth.
    people: Vec<f64>,
}

fn reckon(known: &Known, case: Case) -> Reckoning {
    growth::reckon(known, case)
}

/// Calls of one query for one robot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueryForecast {
    pub robot: Name,
    pub query: Name,
    pub calls: Estimate,
}

/// What a crawl will take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    pub calls: Estimate,
    pub queries: Vec<QueryForecast>,
    /// People within reach, by depth.
    pub people: Vec<Estimate>,
    /// By currency.
    pub money: BTreeMap<Name, Estimate>,
    pub duration: ForecastDuration,
    pub assumptions: Assumptions,
    /// Subjects of which nothing is known that would tell how many calls they take.
    pub unknown_seeds: u64,
    /// Whether a few calls would make it more exact.
    pub is_vague: bool,
}

/// What was taken for granted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assumptions {
    pub latency_ms: f64,
    /// Whether earlier calls took as long.
    pub is_latency_measured: bool,
    pub concurrency: u64,
    pub credentials: u64,
    /// Whether the crawl goes on for ever, and this is its first round.
    pub is_endless: bool,
}
