//! The server's word on its limits: it lowers ours at once, and tells limits that only it knows.

use super::pocket::Drawn;
use super::{Charge, Purse, now_for};
use crate::EngineError;
use kittiwake_model::{BudgetId, BudgetRule, LimitTime, WindowKind};
use kittiwake_network::budget::{self, least_limit};
use kittiwake_network::{LimitReport, Word};
use kittiwake_store::ledger::{Lesson, Observed};

/// What is known of a limit in percent is forgotten after this time.
const LESSON_KEPT_US: i64 = 30 * 86_400_000_000;

impl Purse {
    /// What anybody has found out of a limit that only the server knows.
    pub(super) async fn learnt_limit(
        &self,
        id: &BudgetId,
        rule: &BudgetRule,
    ) -> Result<Option<u64>, EngineError> {
        let (WindowKind::Percent { .. }, Some(ledger)) = (&rule.kind, &self.ledger) else {
            return Ok(None);
        };
        let since = self.clock.limit().plus_us(-LESSON_KEPT_US);
        let topic = lesson_topic(id);
        let lessons = ledger.lessons(&topic).await?;
        // Another budget's name may begin with this one's.
        let is_known = |lesson: &&Lesson| lesson.topic == topic && lesson.at > since;
        let known = lessons.iter().find(is_known);
        let told = known.map(|lesson| u64::try_from(lesson.number).unwrap_or(1));
        Ok(told.map(|told| budget::after_reserve(told, self.reserve)))
    }

    /// What an answer says, each word of one budget. Where several have the same limit and the same
    /// end, an answer that names none speaks of the one that has the least left: by our count, or, if
    /// that does not explain it, by that of all processes. Should it have meant another, calls that
    /// draw from both are held back all the same, and the answers to those that do not are plain.
    pub(super) async fn attribute(
        &self,
        drawn: &[Drawn],
        reports: &[LimitReport],
        ours: LimitTime,
    ) -> Result<Vec<LimitReport>, EngineError> {
        let (named, unnamed): (Vec<_>, Vec<_>) = reports.iter().partition(|it| it.is_named);
        let mut pockets = Vec::with_capacity(unnamed.len());
        for report in &unnamed {
            let mut drawn = drawn.iter().filter_map(|it| self.pockets.get(&it.budget));
            if let Some(pocket) = drawn.find(|pocket| pocket.rule.name == report.budget) {
                pockets.push((*report, pocket, pocket.left()));
            }
        }
        let is_doubtful = pockets.len() > 1
            && pockets
                .iter()
                .all(|(report, _, left)| self.told_left(report).is_some_and(|told| told < *left));
        if let (true, Some(ledger)) = (is_doubtful, &self.ledger) {
            for (_, pocket, left) in &mut pockets {
                let now = now_for(&pocket.rule.kind, &self.skew, ours);
                let usage = ledger.usage(now).await?;
                let usage = usage.iter().find(|usage| usage.budget == pocket.id);
                let used = usage.map_or(0, |usage| usage.used);
                *left = pocket.limit.saturating_sub(used);
            }
        }
        let meant = pockets.iter().min_by_key(|(_, _, left)| *left);
        let meant = meant.map(|(report, ..)| *report);
        Ok(named.into_iter().chain(meant).cloned().collect())
    }

    /// What a server leaves us by its word, without what we leave to others.
    fn told_left(&self, report: &LimitReport) -> Option<u64> {
        let Word::Left { limit, remaining } = report.word else {
            return None;
        };
        let told = budget::after_reserve(limit, self.reserve);
        Some(remaining.saturating_sub(limit.saturating_sub(told)))
    }

    /// By how much the server's word on when a window ends may differ from ours.
    fn edge_us(&self) -> i64 {
        if self.skew.is_known() {
            self.skew.doubt_us().max(self.guard_us)
        } else {
            self.guard_us
        }
    }

    /// Takes in what an answer says of a budget that it was charged to.
    pub(super) async fn hear(
        &mut self,
        drawn: &Drawn,
        reports: &[LimitReport],
        ours: LimitTime,
    ) -> Result<(), EngineError> {
        let edge_us = self.edge_us();
        let Some(pocket) = self.pockets.get_mut(&drawn.budget) else {
            return Ok(());
        };
        let now = now_for(&pocket.rule.kind, &self.skew, ours);
        let report = reports.iter().find(|report| {
            report.budget == pocket.rule.name && pocket.speaks_of_now(report, now, edge_us)
        });
        let Some(report) = report else {
            pocket.word.silent = pocket.word.silent.saturating_add(1);
            pocket.grow_unheard(now);
            return Ok(());
        };
        // Whatever was answered before this call was sent, the server had counted.
        if drawn.window == pocket.opened {
            pocket.word.silent_reflected = pocket.word.silent_reflected.max(drawn.silent_before);
        }
        match report.word {
            Word::Left { limit, remaining } => {
                let word = (limit, remaining, report.is_named);
                self.observe(&drawn.budget, word, report.reset, now).await
            }
            Word::Percent(percent) => self.learn_limit(drawn, percent, now).await,
        }
    }

    /// Takes in the server's word on the present window of a budget.
    async fn observe(
        &mut self,
        id: &BudgetId,
        (limit, remaining, is_named): (u64, u64, bool),
        reset: Option<LimitTime>,
        now: LimitTime,
    ) -> Result<(), EngineError> {
        // Of a clock that is not the server's, nor quite ours, the later time counts.
        let told_end = reset.map(|reset| self.skew.reached(reset).max(reset));
        let Some(pocket) = self.pockets.get_mut(id) else {
            return Ok(());
        };
        let told = budget::after_reserve(limit, self.reserve);
        if limit > 0 {
            // Only who names the budget can mean that it allows more than it was declared to.
            pocket.limit = if is_named {
                told
            } else {
                pocket.limit.min(told)
            };
        }
        // On our own scale: what the server leaves us, without what we leave to others, is all
        // that is left of our limit.
        let remaining = remaining.saturating_sub(limit.saturating_sub(told));
        let least = pocket.word.least_left.unwrap_or(remaining);
        pocket.word.least_left = Some(least.min(remaining));
        let used = pocket.limit.saturating_sub(remaining);
        let flying = pocket.flying();
        let window = pocket.window(now);
        let answered = match window {
            Some(_) => pocket.word.answered,
            None => pocket.answered_since(now),
        };
        let excess = used.saturating_sub(answered + flying);
        let known = window.map_or(0, |_| pocket.word.excess);
        if excess <= known {
            return Ok(());
        }
        pocket.word.excess = excess;
        let until = pocket.others_until(now);
        // Others may have begun a window before we did: it ends when the server says.
        let told_end = told_end.filter(|end| window.is_none() && *end > now);
        let until = told_end.map_or(until, |end| until.min(end));
        let observed = Observed {
            budget: id.clone(),
            at: now,
            window: window.map_or(LimitTime(0), |window| window.start),
            used,
            unreflected: flying + pocket.unspent(),
            until,
        };
        match &self.ledger {
            Some(ledger) => Ok(ledger.observe(observed).await?),
            None => Ok(()),
        }
    }

    /// So much of a limit is used that only the server knows: from what we have spent of it follows
    /// what it is at least.
    async fn learn_limit(
        &mut self,
        drawn: &Drawn,
        percent: u32,
        now: LimitTime,
    ) -> Result<(), EngineError> {
        let id = &drawn.budget;
        let Some(pocket) = self.pockets.get_mut(id) else {
            return Ok(());
        };
        let is_news = !std::mem::replace(&mut pocket.is_share_told, true);
        let told = least_limit(pocket.counted_before(drawn, now), percent);
        let limit = budget::after_reserve(told, self.reserve);
        if percent >= 100 {
            pocket.hear_of_all_used(pocket.counted_since(now), now);
        }
        let is_more = percent < 100 && limit > pocket.limit;
        if !is_more && !is_news {
            return Ok(());
        }
        if is_more {
            pocket.raise(limit);
        }
        let lesson = Lesson {
            topic: lesson_topic(id),
            number: i64::try_from(told).unwrap_or(i64::MAX),
            at: now,
        };
        match &self.ledger {
            Some(ledger) => Ok(ledger.learn(lesson).await?),
            None => Ok(()),
        }
    }

    /// Room for one more call of a limit that only the server knows and of which nobody was told anything: what
    /// other runs have spent of it does not say that there is no more. None if there is no such room.
    pub(super) async fn room_unheard(
        &self,
        id: &BudgetId,
        units: u64,
        now: LimitTime,
    ) -> Result<Option<u64>, EngineError> {
        let (Some(pocket), Some(ledger)) = (self.pockets.get(id), &self.ledger) else {
            return Ok(None);
        };
        let is_unheard = matches!(pocket.rule.kind, WindowKind::Percent { .. })
            && !pocket.is_share_told
            && pocket.flying() == 0;
        if !is_unheard {
            return Ok(None);
        }
        let usage = ledger.usage(now).await?;
        let used = usage.iter().find(|usage| usage.budget == *id);
        let used = used.map_or(0, |usage| usage.used);
        Ok(Some(used.saturating_add(units)).filter(|limit| *limit > pocket.limit))
    }

    /// Takes in what the server said of budgets when it was asked for that alone: none of their calls
    /// need have been made before.
    pub(crate) async fn hear_status(
        &mut self,
        charges: &[Charge],
        reports: &[LimitReport],
    ) -> Result<(), EngineError> {
        self.enter_windows(charges).await?;
        let ours = self.clock.limit();
        let edge_us = self.edge_us();
        for Charge { budget, .. } in charges {
            let Some(pocket) = self.pockets.get(budget) else {
                continue;
            };
            let now = now_for(&pocket.rule.kind, &self.skew, ours);
            let report = reports.iter().find(|report| {
                report.budget == pocket.rule.name && pocket.speaks_of_now(report, now, edge_us)
            });
            let Some(report) = report else {
                continue;
            };
            if let Word::Left { limit, remaining } = report.word {
                let word = (limit, remaining, true);
                self.observe(budget, word, report.reset, now).await?;
            }
        }
        Ok(())
    }
}

fn lesson_topic(id: &BudgetId) -> String {
    format!("limit {}", id.0)
}
