//! What a policy knows during a replay: a state for each subject, a population for each facet.

use super::{Experiment, Trace};
use crate::market::Worth;
use crate::policy::{DAY_US, Policy, Shared, State, Visit, days_between};
use kittiwake_model::WorldTime;

/// Whoever has waited for the longest span comes before everybody else, the longest waiting first.
const OVERDUE: f64 = 1e100;

pub(super) struct Population<'a> {
    policy: Option<&'a dyn Policy>,
    /// By facet: one budget is divided among them by what a visit is worth in each.
    shared: Vec<Shared>,
    pub(super) states: Vec<State>,
    facets: Vec<u16>,
    weights: Vec<f64>,
    longest_span_us: Option<i64>,
}

impl<'a> Population<'a> {
    pub(super) fn new(
        trace: &Trace,
        experiment: &Experiment,
        policy: Option<&'a dyn Policy>,
        order: &[u32],
    ) -> Self {
        let shared = vec![Shared::default(); trace.facets.len()];
        let met = |subject: usize| {
            let facts = experiment.facts.get(subject).copied().unwrap_or_default();
            policy.map_or_else(State::default, |policy| {
                policy.meet(&shared[0], &facts, trace.start)
            })
        };
        let subjects = || order.iter().map(|subject| *subject as usize);
        let weight = |subject: usize| experiment.weights.get(subject).copied().unwrap_or(1.0);
        let span_us = |days: f64| (days * DAY_US as f64) as i64;
        Self {
            policy,
            states: subjects().map(met).collect(),
            facets: subjects()
                .map(|subject| trace.subjects[subject].facet)
                .collect(),
            shared,
            weights: subjects().map(weight).collect(),
            longest_span_us: experiment.longest_span_days.map(span_us),
        }
    }

    pub(super) fn epoch(&mut self, now: WorldTime) {
        if let Some(policy) = self.policy {
            for shared in &mut self.shared {
                policy.epoch(shared, now);
            }
        }
    }

    pub(super) fn observe(&mut self, place: usize, visit: &Visit<'_>) {
        if let Some(policy) = self.policy {
            let shared = &mut self.shared[usize::from(self.facets[place])];
            policy.observe(shared, &mut self.states[place], visit);
        }
    }

    pub(super) fn wants_more(
        &self,
        place: usize,
        visit: &Visit<'_>,
        unseen_days: f64,
        price: f64,
    ) -> bool {
        let Some(policy) = self.policy else {
            return false;
        };
        let shared = &self.shared[usize::from(self.facets[place])];
        let price = price / self.weights[place];
        policy.wants_more(shared, &self.states[place], visit, unseen_days, price)
    }
}

impl Worth for Population<'_> {
    fn index(&self, subject: u32, now: WorldTime) -> f64 {
        let place = subject as usize;
        let Some(policy) = self.policy else {
            return 0.0;
        };
        let state = &self.states[place];
        if let (Some(span_us), Some(since)) = (self.longest_span_us, state.since())
            && now.since_us(since) >= span_us
        {
            return OVERDUE * (1.0 + days_between(since, now));
        }
        let shared = &self.shared[usize::from(self.facets[place])];
        self.weights[place] * policy.index(shared, state, now)
    }

    fn due(&self, subject: u32, price: f64, now: WorldTime) -> WorldTime {
        let place = subject as usize;
        let Some(policy) = self.policy else {
            return now;
        };
        let state = &self.states[place];
        let shared = &self.shared[usize::from(self.facets[place])];
        let due = policy.due(shared, state, price / self.weights[place], now);
        match (self.longest_span_us, state.since()) {
            (Some(span_us), Some(since)) => due.min(since.plus_us(span_us)),
            _ => due,
        }
    }

    fn since(&self, subject: u32) -> Option<WorldTime> {
        self.states[subject as usize].since()
    }

    fn has_rhythm(&self) -> bool {
        self.policy.is_some_and(Policy::has_rhythm)
    }
}
