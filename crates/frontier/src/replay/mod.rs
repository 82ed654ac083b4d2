//! A policy against a trace, in virtual time: what `simulate` runs.
//!
//! Calls are spaced evenly, the k-th at k·Δ. A call returns the newest posts since the last visit, at
//! most a page of them; older ones that nobody has seen are lost. The policy sees only that, and is
//! the very code that a crawl runs. Subjects are chosen in batches of at most n/256 calls and at
//! most 30 minutes, from what was known before the batch.

mod clairvoyant;
mod measure;
mod papers;
mod population;
mod report;
mod trace;

pub use measure::Figures;
pub use papers::{
    Mispredictions, OneVisit, UnbudgetedHash, mispredictions, one_visit, unbudgeted_hash,
};
pub use report::{ClassReport, Observed, Report};
pub use trace::{Subject, Trace, TraceError};

use crate::market::{Market, Worth};
use crate::policy::{DAY_US, Facts, HOUR_US, Policy, Visit, days_between};
use crate::random::Random;
use kittiwake_model::WorldTime;
use population::Population;
use report::Measures;

/// A population is re-estimated this often.
const EPOCH_US: i64 = 6 * HOUR_US;
/// A batch of choices is never longer.
const BATCH_US: f64 = 30.0 * 60e6;
/// A batch of choices is never more than this part of the population.
const BATCH_PART: usize = 256;
/// More calls than this are not replayed: a slip in the budget, or a trace over a thousand years.
const CALLS_MAX: f64 = 2e9;
/// Progress is told after so many batches.
const PROGRESS_BATCHES: u64 = 1_024;

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
    /// Nobody waits longer for a visit, as far as calls suffice.
    pub longest_span_days: Option<f64>,
    /// How much a subject's posts weigh, in the order of the trace's subjects; all alike if empty.
    pub weights: Vec<f64>,
    /// What cards tell of each, in the order of the trace's subjects; nothing if empty.
    pub facts: Vec<Facts>,
    /// Calls that one visit may take, when more posts wait than one returns.
    pub pages_max: usize,
}

impl Default for Experiment {
    fn default() -> Self {
        Self {
            calls_per_day: 1.0,
            page: 100,
            warm_up_days: 0.0,
            seed: 1,
            choice: Choice::Market,
            longest_span_days: None,
            weights: Vec::new(),
            facts: Vec::new(),
            pages_max: 1,
        }
    }
}

/// Why a replay cannot be run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReplayError {
    #[error("a budget of {0} calls a day is none")]
    NoBudget(f64),
    #[error("a page of no posts brings none")]
    NoPage,
    #[error(
        "the trace lasts {days:.1} days, which the warm-up of {warm_up_days:.1} days uses up; give \
         a shorter --warm-up"
    )]
    WarmUp { days: f64, warm_up_days: f64 },
    #[error(
        "the trace lasts {days:.1} days, which is less than two windows of {window_days:.1} days; \
         give a shorter --window"
    )]
    Window { days: f64, window_days: f64 },
    #[error("{0:.0} calls are too many to be replayed; give a smaller budget or cut the trace")]
    TooManyCalls(f64),
    #[error("a weight has to be a number above 0; {0} is none")]
    Weight(f64),
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

impl Decider<'_> {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Policy(policy) => policy.name(),
            Self::Clairvoyant => "clairvoyant",
            Self::MostWaiting => "most-waiting",
        }
    }
}

/// Replays a trace under one policy. `progress` is told the share of the time that is over.
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
    let is_wrong = |weight: &&f64| !weight.is_finite() || **weight <= 0.0;
    match experiment.weights.iter().find(is_wrong) {
        Some(weight) => Err(ReplayError::Weight(*weight)),
        None => Ok(()),
    }
}

/// A replay as it runs. Subjects go by their place in `order`.
struct Replay<'a> {
    trace: &'a Trace,
    decider: Decider<'a>,
    experiment: &'a Experiment,
    /// The subjects of the trace in the order in which they were met.
    order: Vec<u32>,
    population: Population<'a>,
    /// How many posts of each are behind its last visit.
    seen: Vec<usize>,
    random: Random,
    is_market: bool,
    market: Market,
    round: std::vec::IntoIter<u32>,
    epoch: WorldTime,
    measures: Measures<'a>,
    /// Calls that were made, and what the last ones were spent on.
    call: u64,
}

impl<'a> Replay<'a> {
    fn new(trace: &'a Trace, decider: Decider<'a>, experiment: &'a Experiment) -> Self {
        let count = trace.subjects.len();
        let mut random = Random::new(experiment.seed);
        let mut order: Vec<u32> = (0..count as u32).collect();
        random.shuffle(&mut order);
        let policy = match decider {
            Decider::Policy(policy) => Some(policy),
            Decider::Clairvoyant | Decider::MostWaiting => None,
        };
        let population = Population::new(trace, experiment, policy, &order);
        let is_round = policy.is_some_and(Policy::plans_rounds);
        let is_market = policy.is_some() && !is_round && experiment.choice == Choice::Market;
        let mut market = Market::default();
        if is_market {
            for subject in 0..count as u32 {
                market.file(subject, trace.start);
            }
        }
        Self {
            trace,
            decider,
            experiment,
            measures: Measures::new(trace, experiment, &order),
            order,
            population,
            seen: vec![0; count],
            random,
            is_market,
            market,
            round: Vec::new().into_iter(),
            epoch: trace.start,
            call: 0,
        }
    }

    fn go(&mut self, progress: &mut dyn FnMut(f64)) {
        let batch = self.batch();
        let span_us = self.trace.end.since_us(self.trace.start).max(1);
        for turn in 0_u64.. {
            let now = self.call_time();
            if now > self.trace.end {
                break;
            }
            if turn.is_multiple_of(PROGRESS_BATCHES) {
                progress(now.since_us(self.trace.start) as f64 / span_us as f64);
            }
            if now >= self.epoch {
                self.population.epoch(now);
                self.epoch = now.plus_us(EPOCH_US);
            }
            let chosen = self.choose(now, batch);
            for subject in &chosen {
                self.visit(*subject);
            }
            if self.is_market {
                for subject in chosen {
                    self.market.file_again(subject, now, &self.population);
                }
            }
        }
        for (place, subject) in self.order.iter().enumerate() {
            let posts = self.trace.subjects[*subject as usize].posts.len();
            for post in self.seen[place]..posts {
                self.measures.left(place, post);
            }
        }
    }

    fn gap_us(&self) -> f64 {
        DAY_US as f64 / self.experiment.calls_per_day
    }

    /// How many calls are decided together.
    fn batch(&self) -> usize {
        let part = (self.order.len() / BATCH_PART).max(1);
        part.min((BATCH_US / self.gap_us()) as usize).max(1)
    }

    /// When the next call is made.
    fn call_time(&self) -> WorldTime {
        let since_us = (self.call as f64 * self.gap_us()) as i64;
        self.trace.start.plus_us(since_us)
    }

    fn choose(&mut self, now: WorldTime, batch: usize) -> Vec<u32> {
        let policy = match self.decider {
            Decider::Clairvoyant => return self.foresee(now, batch, true),
            Decider::MostWaiting => return self.foresee(now, batch, false),
            Decider::Policy(policy) => policy,
        };
        if policy.plans_rounds() {
            return self.next_of_round(policy, batch);
        }
        if self.is_market {
            return self.market.take(now, batch, &self.population);
        }
        let population = &self.population;
        best(self.order.len(), batch, |subject| {
            population.index(subject, now)
        })
    }

    fn next_of_round(&mut self, policy: &dyn Policy, batch: usize) -> Vec<u32> {
        if self.round.len() == 0 {
            let round = policy.round(&self.population.states, &mut self.random);
            self.round = round.into_iter();
        }
        self.round.by_ref().take(batch).collect()
    }

    /// One visit: a call, and more if older posts wait and the policy thinks them worth it.
    fn visit(&mut self, subject: u32) {
        let at = self.call_time();
        if at > self.trace.end {
            return;
        }
        let trace = self.trace;
        let place = subject as usize;
        let source = &trace.subjects[self.order[place] as usize];
        let from = self.seen[place];
        let until = from + source.posts[from..].partition_point(|post| *post <= at);
        let since = self.population.states[place].since().unwrap_or(at);
        let mut first = until.saturating_sub(self.experiment.page).max(from);
        self.call += 1;
        let is_full = until - first == self.experiment.page;
        let mut visit = Visit {
            spreads: source.spreads.get(first..until).unwrap_or(&[]),
            is_full,
            ..Visit::complete(at, &source.posts[first..until])
        };
        let mut calls = 1;
        while visit.is_full && calls < self.experiment.pages_max && self.wants_more(place, &visit) {
            first = first.saturating_sub(self.experiment.page).max(from);
            calls += 1;
            self.call += 1;
            visit.posts = &source.posts[first..until];
            visit.spreads = source.spreads.get(first..until).unwrap_or(&[]);
            visit.is_full = until - first == self.experiment.page * calls;
        }
        self.seen[place] = until;
        self.measures
            .visited(place, since, &visit, calls, (from, first));
        self.population.observe(place, &visit);
    }

    fn wants_more(&self, place: usize, visit: &Visit<'_>) -> bool {
        let Some(since) = self.population.states[place].since() else {
            return false;
        };
        let unseen_days = visit
            .oldest()
            .map_or(0.0, |oldest| days_between(since, oldest));
        self.population
            .wants_more(place, visit, unseen_days, self.market.price())
    }

    fn report(self) -> Report {
        let states = self.population.states.iter();
        let state_bytes = states.map(|state| state.bytes().len()).max().unwrap_or(0);
        self.measures
            .report(self.decider.name(), self.call, state_bytes)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Adaptive, NAMES, Objective, PolicySettings, by_name};

    fn hour(hours: i64) -> WorldTime {
        WorldTime(hours * HOUR_US)
    }

    fn trace(posts: impl IntoIterator<Item = (&'static str, i64)>) -> Trace {
        let posts = posts.into_iter();
        Trace::of(posts.map(|(user, hours)| (user.to_owned(), hour(hours)))).unwrap()
    }

    fn replayed(trace: &Trace, name: &str, experiment: &Experiment) -> Report {
        let settings = PolicySettings {
            page: experiment.page,
            ..PolicySettings::default()
        };
        let policy = by_name(name, &settings).unwrap();
        run(
            trace,
            Decider::Policy(policy.as_ref()),
            experiment,
            &mut |_| {},
        )
        .unwrap()
    }

    #[test]
    fn a_call_brings_the_newest_page_and_the_rest_is_lost() {
        // Three calls, at 0, 24 and 48 h: the second finds five posts, of which three fit.
        let trace = trace([
            ("a", 0),
            ("a", 1),
            ("a", 2),
            ("a", 3),
            ("a", 4),
            ("a", 24),
            ("a", 48),
        ]);
        let experiment = Experiment {
            page: 3,
            ..Experiment::default()
        };
        let report = replayed(&trace, "round-robin", &experiment);
        assert_eq!((report.calls, report.messages), (3, 5));
        assert_eq!((report.figures.posts, report.figures.lost), (7, 2));
        // Delays of 0, 21, 20, 0 and 0 hours... the two oldest of the second call were lost.
        assert!((report.figures.mean_delay_s - 41.0 * 3_600.0 / 5.0).abs() < 60.0);
        let observed = &report.observed[0];
        assert_eq!(
            (observed.visits, observed.full_pages, observed.lost),
            (3, 1, 2)
        );
    }

    #[test]
    fn a_second_page_brings_what_one_call_does_not() {
        // Sixty posts within an hour every five days, and somebody who posts now and then.
        let bursts = (0..40).flat_map(|burst| std::iter::repeat_n(("a", burst * 120 + 7), 60));
        let trace = trace(bursts.chain((0..200).map(|post| ("b", post * 24))));
        let lost = |pages_max| {
            let experiment = Experiment {
                page: 20,
                calls_per_day: 3.0,
                pages_max,
                ..Experiment::default()
            };
            replayed(&trace, "adaptive", &experiment).figures.lost
        };
        assert_eq!(lost(1), 40 * 40);
        assert_eq!(lost(4), 0);
    }

    #[test]
    fn every_policy_replays_hostile_traces() {
        let million = (0..20_000).map(|_| ("a", 5));
        let years = [
            ("a", 0),
            ("b", 24 * 365 * 7),
            ("c", -24 * 365 * 3),
            ("a", 24 * 365 * 7 + 1),
        ];
        for trace in [
            trace(million),
            trace(years),
            trace([("a", 5)]),
            trace([("a", 0), ("b", 0), ("a", 1)]),
        ] {
            for name in NAMES {
                let report = replayed(&trace, name, &Experiment::default());
                let known = report.figures.posts as usize;
                assert!(known <= trace.posts(), "{name}");
                assert!(report.figures.mean_delay_s >= 0.0, "{name}");
            }
            for decider in [Decider::Clairvoyant, Decider::MostWaiting] {
                run(&trace, decider, &Experiment::default(), &mut |_| {}).unwrap();
            }
        }
    }

    #[test]
    fn what_cannot_be_replayed_is_told() {
        let trace = trace([("a", 0), ("a", 24 * 10)]);
        let wrong = |experiment: &Experiment| {
            let error = run(&trace, Decider::Clairvoyant, experiment, &mut |_| {});
            error.unwrap_err().to_string()
        };
        let with = |change: fn(&mut Experiment)| {
            let mut experiment = Experiment::default();
            change(&mut experiment);
            wrong(&experiment)
        };
        assert!(with(|experiment| experiment.calls_per_day = 0.0).contains("budget"));
        assert!(with(|experiment| experiment.calls_per_day = f64::NAN).contains("budget"));
        assert!(with(|experiment| experiment.calls_per_day = 1e12).contains("too many"));
        assert!(with(|experiment| experiment.page = 0).contains("page"));
        assert!(with(|experiment| experiment.warm_up_days = 10.0).contains("--warm-up"));
        assert!(with(|experiment| experiment.weights = vec![-1.0]).contains("weight"));
    }

    /// Forty users who post at different rates by day, for sixty days.
    fn town() -> Trace {
        let mut random = Random::new(3);
        let mut posts = Vec::new();
        for user in 0..40_u32 {
            let per_hour = 0.4 * 0.85_f64.powi(user as i32);
            for at in 0..24 * 60 {
                let is_day = (8..22).contains(&(at % 24));
                if is_day && random.share() < per_hour {
                    posts.push((format!("u{user}"), hour(at)));
                }
            }
        }
        Trace::of(posts).unwrap()
    }

    #[test]
    fn adaptive_is_fresher_than_round_robin_and_the_market_as_good_as_a_scan() {
        let trace = town();
        let experiment = Experiment {
            calls_per_day: 40.0,
            warm_up_days: 10.0,
            ..Experiment::default()
        };
        let scan = Experiment {
            choice: Choice::Scan,
            ..experiment.clone()
        };
        let delay = |name, experiment| replayed(&trace, name, experiment).figures.mean_delay_s;
        let round_robin = delay("round-robin", &experiment);
        let adaptive = delay("adaptive", &experiment);
        assert!(adaptive < 0.75 * round_robin, "{adaptive} {round_robin}");
        for name in ["adaptive", "square-root", "hash", "proportional"] {
            let (market, scan) = (delay(name, &experiment), delay(name, &scan));
            // A price that forty users make is a rough one.
            assert!(market < 1.1 * scan, "{name} {market} {scan}");
        }
    }

    #[test]
    fn nobody_is_forgotten_where_calls_do_not_suffice() {
        // Ten who post every hour to every tenth hour, and a call a day, of ten posts: most is lost
        // whatever is done.
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let posts = names.iter().zip(1..).flat_map(|(name, gap)| {
            let times = (0..24 * 200).filter(move |at| at % gap == 0);
            times.map(|at| (*name, at))
        });
        let trace = trace(posts);
        let experiment = Experiment {
            calls_per_day: 1.0,
            page: 10,
            ..Experiment::default()
        };
        let report = replayed(&trace, "adaptive", &experiment);
        let visits: Vec<u64> = report.observed.iter().map(|user| user.visits).collect();
        assert!(visits.iter().all(|visits| *visits >= 5), "{visits:?}");
        let full = replayed(&trace, "round-robin", &experiment);
        assert!(report.messages >= full.messages, "{visits:?}");
    }

    #[test]
    fn a_replay_is_the_same_every_time() {
        let trace = town();
        let experiment = Experiment {
            calls_per_day: 60.0,
            ..Experiment::default()
        };
        let one = replayed(&trace, "adaptive", &experiment);
        assert_eq!(one, replayed(&trace, "adaptive", &experiment));
    }

    #[test]
    fn nobody_waits_longer_than_the_longest_span() {
        let trace = town();
        let quiet = |span: Option<f64>| {
            let experiment = Experiment {
                calls_per_day: 80.0,
                longest_span_days: span,
                ..Experiment::default()
            };
            let report = replayed(&trace, "proportional", &experiment);
            report
                .observed
                .iter()
                .map(|user| user.visits)
                .min()
                .unwrap()
        };
        assert!(quiet(Some(2.0)) >= 29);
        assert!(quiet(None) < 29);
    }

    #[test]
    fn whoever_weighs_more_is_visited_more_often() {
        let trace = town();
        let mut weights = vec![1.0; trace.subjects.len()];
        let favourite = trace.users.iter().position(|user| user == "u12").unwrap();
        let place = trace
            .subjects
            .iter()
            .position(|subject| subject.user as usize == favourite)
            .unwrap();
        let visits = |weights: Vec<f64>| {
            let experiment = Experiment {
                calls_per_day: 40.0,
                weights,
                ..Experiment::default()
            };
            replayed(&trace, "adaptive", &experiment).observed[place].visits
        };
        let before = visits(weights.clone());
        weights[place] = 9.0;
        let after = visits(weights);
        assert!(after > 2 * before, "{before} {after}");
    }

    /// The most spread posts are those of a few authors, who are neither busy nor quiet; that they
    /// spread has to be found out on the way.
    #[test]
    fn what_spreads_the_furthest_is_seen_the_earliest_if_that_is_wanted() {
        let mut trace = town();
        let mut random = Random::new(9);
        for subject in &mut trace.subjects {
            let is_loud = trace.users[subject.user as usize].ends_with('7');
            let most = if is_loud { 4_000.0 } else { 40.0 };
            let spreads = (0..subject.posts.len()).map(|_| (most * random.share()) as u32);
            subject.spreads = spreads.collect();
        }
        let experiment = Experiment {
            calls_per_day: 40.0,
            warm_up_days: 10.0,
            ..Experiment::default()
        };
        let delays = |is_hot| {
            let objective = Objective {
                is_hot,
                ..Objective::default()
            };
            let policy = Adaptive::new(experiment.page, objective);
            let report = run(&trace, Decider::Policy(&policy), &experiment, &mut |_| {});
            let report = report.unwrap();
            let top = report.top.expect("the trace tells how far posts spread");
            (report.figures.mean_delay_s, top.mean_delay_s)
        };
        let ((all, top), (all_hot, top_hot)) = (delays(false), delays(true));
        assert!(top_hot < 0.6 * top, "{top_hot} {top}");
        // It is not for nothing: everybody else waits longer.
        assert!(all_hot > all, "{all_hot} {all}");
    }
}
