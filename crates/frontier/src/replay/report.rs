//! What came of a replay: for everybody, by class, for the most spread posts, and of each user.

use super::measure::{Figures, Measure};
use super::{Experiment, Trace};
use crate::classify::Class;
use crate::policy::{DAY_US, Visit, days_between};
use kittiwake_model::WorldTime;

/// The most spread posts are this share of all.
const TOP_SHARE: f64 = 0.01;

/// What came of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub policy: String,
    pub users: usize,
    /// Calls after the warm-up, and all of them.
    pub calls: u64,
    pub calls_all: u64,
    /// Posts that the calls after the warm-up brought.
    pub messages: u64,
    pub figures: Figures,
    pub classes: Vec<ClassReport>,
    /// The hundredth of all posts that spread the furthest, where the trace tells.
    pub top: Option<Figures>,
    /// How much of all posts was collected within so many seconds.
    pub distribution: Vec<(f64, f64)>,
    pub state_bytes: usize,
    /// In the order of the trace's subjects.
    pub observed: Vec<Observed>,
}

/// The figures of one of the four classes.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassReport {
    pub class: Class,
    pub users: usize,
    pub visits: u64,
    pub figures: Figures,
}

/// What was observed of one subject during the whole replay, and what was true.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    pub class: Class,
    pub visits: u64,
    /// Visits whose last answer was full.
    pub full_pages: u64,
    pub messages: u64,
    pub lost: u64,
    /// What a crawl can know of the loss: the pace of a full answer, over the time it left out.
    pub lost_estimated: f64,
}

impl Observed {
    /// The share that a crawl estimates to have lost.
    pub fn lost_share_estimated(&self) -> f64 {
        self.lost_estimated / (self.messages as f64 + self.lost_estimated).max(1.0)
    }
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

/// Measures while a replay runs.
#[derive(Debug)]
pub(super) struct Measures<'a> {
    trace: &'a Trace,
    order: Vec<u32>,
    from: WorldTime,
    all: Measure,
    classes: Vec<Measure>,
    top: Option<(u32, Measure)>,
    observed: Vec<Observed>,
    calls: u64,
    messages: u64,
}

impl<'a> Measures<'a> {
    pub(super) fn new(trace: &'a Trace, experiment: &Experiment, order: &[u32]) -> Self {
        let warm_up_us = (experiment.warm_up_days * DAY_US as f64) as i64;
        let from = trace.start.plus_us(warm_up_us);
        let measure = Measure::new(from, trace.end);
        let observed = trace.subjects.iter().map(|subject| Observed {
            class: Class::of(&subject.posts, trace.start, trace.end),
            visits: 0,
            full_pages: 0,
            messages: 0,
            lost: 0,
            lost_estimated: 0.0,
        });
        Self {
            trace,
            order: order.to_vec(),
            from,
            classes: vec![measure.clone(); Class::ALL.len()],
            top: top_spread(trace, from).map(|least| (least, measure.clone())),
            all: measure,
            observed: observed.collect(),
            calls: 0,
            messages: 0,
        }
    }

    /// Everything that a post is counted in.
    fn each(&mut self, place: usize, post: usize, count: impl Fn(&mut Measure, WorldTime)) {
        let subject = self.order[place] as usize;
        let source = &self.trace.subjects[subject];
        let posted = source.posts[post];
        count(&mut self.all, posted);
        count(
            &mut self.classes[self.observed[subject].class as usize],
            posted,
        );
        if let Some((least, top)) = &mut self.top
            && source
                .spreads
                .get(post)
                .is_some_and(|spread| *spread >= *least)
        {
            count(top, posted);
        }
    }

    /// One visit: posts from the second of `skipped` on were brought, those before it were lost.
    pub(super) fn visited(
        &mut self,
        place: usize,
        since: WorldTime,
        visit: &Visit<'_>,
        calls: usize,
        skipped: (usize, usize),
    ) {
        let (from, first) = skipped;
        let brought = visit.posts.len();
        if visit.at >= self.from {
            self.calls += calls as u64;
            self.messages += brought as u64;
        }
        for post in from..first {
            self.each(place, post, |measure, posted| {
                measure.lost(posted, visit.at);
            });
        }
        for post in first..first + brought {
            self.each(place, post, |measure, posted| {
                measure.collected(posted, visit.at);
            });
        }
        let observed = &mut self.observed[self.order[place] as usize];
        observed.visits += 1;
        observed.messages += brought as u64;
        observed.lost += (first - from) as u64;
        if visit.is_full
            && let Some(oldest) = visit.oldest()
        {
            observed.full_pages += 1;
            let covered = days_between(oldest, visit.at).max(1.0 / 86_400.0);
            let unseen = days_between(since, oldest);
            observed.lost_estimated += brought as f64 / covered * unseen;
        }
    }

    /// A post that nobody came for.
    pub(super) fn left(&mut self, place: usize, post: usize) {
        self.each(place, post, Measure::left);
    }

    pub(super) fn report(mut self, policy: &str, calls_all: u64, state_bytes: usize) -> Report {
        let figures = self.all.figures();
        let classes = Class::ALL.iter().zip(&mut self.classes);
        let classes = classes.map(|(class, measure)| {
            let members = self.observed.iter().filter(|user| user.class == *class);
            ClassReport {
                class: *class,
                users: members.clone().count(),
                visits: members.map(|user| user.visits).sum(),
                figures: measure.figures(),
            }
        });
        Report {
            policy: policy.to_owned(),
            users: self.trace.users.len(),
            calls: self.calls,
            calls_all,
            messages: self.messages,
            classes: classes.collect(),
            top: self.top.map(|(_, mut measure)| measure.figures()),
            distribution: self.all.distribution(),
            figures,
            state_bytes,
            observed: self.observed,
        }
    }
}

/// How far a post must have spread to be among the hundredth that spread the furthest.
fn top_spread(trace: &Trace, from: WorldTime) -> Option<u32> {
    let mut spreads: Vec<u32> = trace
        .subjects
        .iter()
        .flat_map(|subject| subject.posts.iter().zip(&subject.spreads))
        .filter(|(posted, _)| **posted >= from)
        .map(|(_, spread)| *spread)
        .collect();
    spreads.sort_unstable();
    let place = (spreads.len() as f64 * (1.0 - TOP_SHARE)) as usize;
    spreads.get(place).copied()
}
