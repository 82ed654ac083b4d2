//! A policy against a trace, in virtual time: what `simulate` runs.
//!
//! Calls are spaced evenly, the k-th at k·Δ. A call returns the newest posts since the last visit, at
//! most a page of them; older ones that nobody has seen are lost. The policy sees only that, and is
//! the very code that a crawl runs. Subjects are chosen in batches of at most n/256 calls and at
//! most 30 minutes, from what was known before the batch.

mod clairvoyant;
mod measure;
mod trace;

pub use measure::Figures;
pub use trace::{Subject, Trace, TraceError};

use crate::market::{Market, Worth};
use crate::policy::{DAY_US, Facts, HOUR_US, Policy, Shared, State, Visit};
use crate::random::Random;
use kittiwake_model::WorldTime;
use measure::Measure;

/// A population is re-estimated this often.
const EPOCH_US: i64 = 6 * HOUR_US;
/// A batch of choices is never longer.
const BATCH_US: f64 = 30.0 * 60e6;
/// A batch of choices is never more than this part of the population.
const BATCH_PART: usize = 256;
/// More calls than this are not replayed: a slip in the budget, or a trace over a thousand years.
const CALLS_MAX: f64 = 2e9;

/// How subjects are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// As a crawl does: by due times and a price.
    #[default]
    Market,
    /// By looking at everybody every time: slow, exact, and the measure of the other.
    Scan,
}

/// The rules of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    pub calls_per_day: f64,
    /// Posts that a call returns at most.
    pub page: usize,
    pub warm_up_days: f64,
    pub seed: u64,
    pub choice: Choice,
}

/// Why a replay cannot be run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReplayError {
    #[error("a budget of {0} calls a day is none")]
    NoBudget(f64),
    #[error("a page of no posts brings none")]
    NoPage,
    #[error(
        "the trace lasts {days:.1} days, which the warm-up of {warm_up_days:.1} days uses up; give a shorter --warm-up"
    )]
    WarmUp { days: f64, warm_up_days: f64 },
    #[error("{0:.0} calls are too many to be replayed; give a smaller budget or cut the trace")]
    TooManyCalls(f64),
}

/// What came of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub policy: String,
    pub subjects: usize,
    /// Calls after the warm-up, and all of them.
    pub calls: u64,
    pub calls_all: u64,
    /// Posts that these calls brought.
    pub messages: u64,
    pub figures: Figures,
    pub state_bytes: usize,
    pub looked_at: u64,
    pub weights: Vec<f64>,
}

impl Report {
    /// Posts that arrive for every call.
    pub fn posts_per_call_arriving(&self) -> f64 {
        self.figures.posts as f64 / self.calls.max(1) as f64
    }

    pub fn messages_per_call(&self) -> f64 {
        self.messages as f64 / self.calls.max(1) as f64
    }
}

/// Who decides.
#[derive(Debug, Clone, Copy)]
pub enum Decider<'a> {
    Policy(&'a dyn Policy),
    /// Knows the future: whoever has the most posts waiting, times the time to the next one.
    Clairvoyant,
    /// Knows what waits: whoever has the most.
    MostWaiting,
}

/// Replays a trace under one policy.
pub fn run(
    trace: &Trace,
    decider: Decider<'_>,
    experiment: &Experiment,
    progress: &mut dyn FnMut(f64),
) -> Result<Report, ReplayError> {
    check(trace, experiment)?;
    let mut replay = Replay::new(trace, decider, experiment);
    replay.go(progress);
    Ok(replay.report())
}

fn check(trace: &Trace, experiment: &Experiment) -> Result<(), ReplayError> {
    let budget = experiment.calls_per_day;
    if !budget.is_finite() || budget <= 0.0 {
        return Err(ReplayError::NoBudget(budget));
    }
    if experiment.page == 0 {
        return Err(ReplayError::NoPage);
    }
    if experiment.warm_up_days > 0.0 && experiment.warm_up_days >= trace.days() {
        return Err(ReplayError::WarmUp {
            days: trace.days(),
            warm_up_days: experiment.warm_up_days,
        });
    }
    let calls = trace.days() * budget;
    if calls > CALLS_MAX {
        return Err(ReplayError::TooManyCalls(calls));
    }
    Ok(())
}

struct Replay<'a> {
    trace: &'a Trace,
    decider: Decider<'a>,
    experiment: &'a Experiment,
    /// The subjects of the trace in the order in which they were met.
    order: Vec<u32>,
    population: Population<'a>,
    /// How many posts of each are behind its last visit.
    seen: Vec<u32>,
    random: Random,
    is_market: bool,
    market: Market,
    round: std::vec::IntoIter<u32>,
    epoch: WorldTime,
    measured_from: WorldTime,
    measure: Measure,
    calls: u64,
    calls_all: u64,
    messages: u64,
}

/// What the policy knows.
struct Population<'a> {
    policy: Option<&'a dyn Policy>,
    shared: Shared,
    states: Vec<State>,
}

impl Worth for Population<'_> {
    fn index(&self, subject: u32, now: WorldTime) -> f64 {
        let state = &self.states[subject as usize];
        self.policy
            .map_or(0.0, |policy| policy.index(&self.shared, state, now))
    }

    fn due(&self, subject: u32, price: f64, now: WorldTime) -> WorldTime {
        let state = &self.states[subject as usize];
        self.policy
            .map_or(now, |policy| policy.due(&self.shared, state, price, now))
    }

    fn since(&self, subject: u32) -> Option<WorldTime> {
        self.states[subject as usize].since()
    }
}

impl<'a> Replay<'a> {
    fn new(trace: &'a Trace, decider: Decider<'a>, experiment: &'a Experiment) -> Self {
        let count = trace.subjects.len();
        let mut random = Random::new(experiment.seed);
        let mut order: Vec<u32> = (0..count as u32).collect();
        random.shuffle(&mut order);
        let policy = match decider {
            Decider::Policy(policy) => Some(policy),
            _ => None,
        };
        let shared = Shared::default();
        let met = |policy: &dyn Policy| policy.meet(&shared, &Facts::default(), trace.start);
        let states = vec![policy.map_or_else(State::default, met); count];
        let measured_from = trace
            .start
            .plus_us((experiment.warm_up_days * DAY_US as f64) as i64);
        let is_round = policy.is_some_and(|policy| policy.round(&states, &mut random).is_some());
        let is_market = policy.is_some() && experiment.choice == Choice::Market && !is_round;
        let mut market = Market::default();
        for subject in 0..count as u32 {
            market.file(subject, trace.start);
        }
        Self {
            trace,
            decider,
            experiment,
            order,
            population: Population {
                policy,
                shared,
                states,
            },
            seen: vec![0; count],
            random,
            is_market,
            market,
            round: Vec::new().into_iter(),
            epoch: trace.start,
            measured_from,
            measure: Measure::new(measured_from, trace.end),
            calls: 0,
            calls_all: 0,
            messages: 0,
        }
    }

    fn go(&mut self, progress: &mut dyn FnMut(f64)) {
        let gap_us = DAY_US as f64 / self.experiment.calls_per_day;
        let part = (self.order.len() / BATCH_PART).max(1);
        let batch = part.min((BATCH_US / gap_us) as usize).max(1);
        let mut call = 0_u64;
        loop {
            let now = self.call_time(call, gap_us);
            if now > self.trace.end {
                break;
            }
            if call.is_multiple_of(1024) {
                progress(
                    now.since_us(self.trace.start) as f64
                        / (self.trace.end.since_us(self.trace.start).max(1)) as f64,
                );
            }
            if now >= self.epoch {
                if let Some(policy) = self.population.policy {
                    policy.epoch(&mut self.population.shared, now);
                }
                self.epoch = now.plus_us(EPOCH_US);
            }
            let chosen = self.choose(now, batch);
            for subject in &chosen {
                let at = self.call_time(call, gap_us);
                call += 1;
                if at > self.trace.end {
                    break;
                }
                self.visit(*subject, at);
            }
            if self.is_market {
                for subject in chosen {
                    self.market.file_again(subject, now, &self.population);
                }
            }
        }
        self.leave();
    }

    fn call_time(&self, call: u64, gap_us: f64) -> WorldTime {
        self.trace.start.plus_us((call as f64 * gap_us) as i64)
    }

    fn choose(&mut self, now: WorldTime, batch: usize) -> Vec<u32> {
        let batch = batch.min(self.order.len());
        match self.decider {
            Decider::Clairvoyant => self.foresee(now, batch, true),
            Decider::MostWaiting => self.foresee(now, batch, false),
            Decider::Policy(policy) => {
                if let Some(next) = self.next_of_round(policy, batch) {
                    return next;
                }
                match self.experiment.choice {
                    Choice::Market => self.market.take(now, batch, &self.population),
                    Choice::Scan => {
                        let population = &self.population;
                        best(self.order.len(), batch, |subject| {
                            population.index(subject, now)
                        })
                    }
                }
            }
        }
    }

    fn next_of_round(&mut self, policy: &dyn Policy, batch: usize) -> Option<Vec<u32>> {
        if self.round.len() == 0 {
            self.round = policy
                .round(&self.population.states, &mut self.random)?
                .into_iter();
        }
        Some(self.round.by_ref().take(batch).collect())
    }

    /// One call.
    fn visit(&mut self, subject: u32, at: WorldTime) {
        let trace = self.trace;
        let source = &trace.subjects[self.order[subject as usize] as usize];
        let from = self.seen[subject as usize] as usize;
        let waiting = source.posts[from..].partition_point(|post| *post <= at);
        let until = from + waiting;
        let first = until.saturating_sub(self.experiment.page).max(from);
        self.seen[subject as usize] = until as u32;
        self.calls_all += 1;
        if at >= self.measured_from {
            self.calls += 1;
            self.messages += (until - first) as u64;
        }
        for post in &source.posts[from..first] {
            self.measure.lost(*post, at);
        }
        for post in &source.posts[first..until] {
            self.measure.collected(*post, at);
        }
        if let Some(policy) = self.population.policy {
            let visit = Visit {
                at,
                posts: &source.posts[first..until],
                spreads: source.spreads.get(first..until).unwrap_or(&[]),
                is_full: until - first == self.experiment.page,
            };
            let state = &mut self.population.states[subject as usize];
            policy.observe(&mut self.population.shared, state, &visit);
        }
    }

    /// The trace is over: what was not collected is left.
    fn leave(&mut self) {
        for (place, subject) in self.order.iter().enumerate() {
            let posts = &self.trace.subjects[*subject as usize].posts;
            for post in &posts[self.seen[place] as usize..] {
                self.measure.left(*post);
            }
        }
    }

    fn report(mut self) -> Report {
        let states = self.population.states.iter();
        Report {
            policy: match self.decider {
                Decider::Policy(policy) => policy.name().to_owned(),
                Decider::Clairvoyant => "clairvoyant".to_owned(),
                Decider::MostWaiting => "most-waiting".to_owned(),
            },
            subjects: self.order.len(),
            calls: self.calls,
            calls_all: self.calls_all,
            messages: self.messages,
            figures: self.measure.figures(),
            state_bytes: states.map(|state| state.bytes().len()).max().unwrap_or(0),
            looked_at: self.market.looked_at(),
            weights: self.population.shared.weights().to_vec(),
        }
    }
}

/// The subjects of the highest index, at most `count`; the first of equals.
fn best(subjects: usize, count: usize, index: impl Fn(u32) -> f64) -> Vec<u32> {
    let mut best: Vec<(f64, u32)> = Vec::with_capacity(count + 1);
    for subject in 0..subjects as u32 {
        let index = index(subject);
        if best.len() == count && best.last().is_some_and(|last| last.0 >= index) {
            continue;
        }
        let place = best.partition_point(|other| other.0 >= index);
        best.insert(place, (index, subject));
        best.truncate(count);
    }
    best.into_iter().map(|(_, subject)| subject).collect()
}
