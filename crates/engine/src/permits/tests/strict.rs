//! A server that counts as networks do: by its own clock, at the moment of arrival.

use super::Question;
use kittiwake_model::{BudgetId, BudgetRule, LimitTime, Name, WindowKind};
use kittiwake_network::{LimitReport, Word, budget};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone)]
pub(super) struct StrictServer {
    rules: BTreeMap<Name, BudgetRule>,
    counts: BTreeMap<BudgetId, Count>,
}

#[derive(Clone, Default)]
struct Count {
    window_us: i64,
    used: u64,
    /// When units were taken, and when they come back.
    log: VecDeque<(i64, u64)>,
}

pub(super) enum Verdict {
    Admitted,
    Refused { budget: String },
}

impl StrictServer {
    pub(super) fn new(rules: &[BudgetRule]) -> Self {
        let rules = rules.iter().map(|rule| (rule.name.clone(), rule.clone()));
        Self {
            rules: rules.collect(),
            counts: BTreeMap::new(),
        }
    }

    /// What is used of a budget at a moment.
    fn used(rule: &BudgetRule, count: &mut Count, at_us: i64) -> u64 {
        match &rule.kind {
            WindowKind::Aligned { .. } | WindowKind::Day { .. } | WindowKind::Month { .. } => {
                let window = budget::window_at(&rule.kind, LimitTime(at_us)).unwrap();
                if count.window_us != window.start.0 {
                    (count.window_us, count.used) = (window.start.0, 0);
                }
                count.used
            }
            WindowKind::FromFirst { length_us } => {
                if at_us >= count.window_us + length_us {
                    (count.window_us, count.used) = (at_us, 0);
                }
                count.used
            }
            WindowKind::Sliding { .. } | WindowKind::Percent { .. } | WindowKind::Concurrency => {
                count.log.retain(|(back_us, _)| *back_us > at_us);
                count.log.iter().map(|(_, units)| units).sum()
            }
        }
    }

    /// Whether a call would be let in at that moment.
    pub(super) fn refuser(&self, question: &Question, items: u64, at_us: i64) -> Option<String> {
        question.charges.iter().find_map(|charge| {
            let rule = &self.rules[&charge.cost.budget];
            let mut count = self.counts.get(&charge.budget).cloned().unwrap_or_default();
            let used = Self::used(rule, &mut count, at_us);
            (used + charge.cost.of(items) > rule.limit).then(|| charge.budget.0.clone())
        })
    }

    pub(super) fn admit(
        &mut self,
        question: &Question,
        items: u64,
        at_us: i64,
        ends_us: i64,
    ) -> Verdict {
        if let Some(budget) = self.refuser(question, items, at_us) {
            return Verdict::Refused { budget };
        }
        for charge in &question.charges {
            let rule = &self.rules[&charge.cost.budget];
            let count = self.counts.entry(charge.budget.clone()).or_default();
            Self::used(rule, count, at_us);
            let units = charge.cost.of(items);
            count.used += units;
            match rule.kind {
                WindowKind::Sliding { length_us } | WindowKind::Percent { length_us } => {
                    count.log.push_back((at_us + length_us, units));
                }
                WindowKind::Concurrency => count.log.push_back((ends_us, units)),
                _ => {}
            }
        }
        Verdict::Admitted
    }

    /// When a refused call is worth trying again. Calls begin windows; looking must not.
    pub(super) fn next_room_us(&self, question: &Question, at_us: i64) -> i64 {
        let rooms = question.charges.iter().filter_map(|charge| {
            let rule = &self.rules[&charge.cost.budget];
            let mut count = self.counts.get(&charge.budget)?.clone();
            if Self::used(rule, &mut count, at_us) + charge.cost.most() <= rule.limit {
                return None;
            }
            Some(match &rule.kind {
                WindowKind::FromFirst { length_us } => count.window_us + length_us,
                kind => match budget::window_at(kind, LimitTime(at_us)) {
                    Some(window) => window.end.0,
                    None => count.log.iter().map(|(back_us, _)| *back_us).min()?,
                },
            })
        });
        rooms.max().unwrap_or(at_us + 1)
    }

    /// What an answer says: only of limits that nobody else can know.
    pub(super) fn reports(&mut self, question: &Question, at_us: i64) -> Vec<LimitReport> {
        let mut reports = Vec::new();
        for charge in &question.charges {
            let rule = &self.rules[&charge.cost.budget];
            let WindowKind::Percent { .. } = rule.kind else {
                continue;
            };
            let count = self.counts.entry(charge.budget.clone()).or_default();
            let used = Self::used(rule, count, at_us);
            let percent = (used * 100 / rule.limit) as u32;
            if percent > 0 {
                reports.push(LimitReport {
                    budget: rule.name.clone(),
                    word: Word::Percent(percent),
                    reset: None,
                    is_named: true,
                });
            }
        }
        reports
    }
}
