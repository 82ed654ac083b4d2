//! Permits: the right to send one call, out of grants that are durable already.
//!
//! A call is charged to every budget that covers it. Grants are taken from the ledger in small
//! blocks, so that exactness does not cost a write per call; what a crash leaves unspent counts
//! as spent until its window ends.

use crate::progress::BudgetProgress;
use crate::settings::Limits;
use crate::{Clock, EngineError};
use kittiwake_model::{BudgetId, BudgetRule, Grant, LimitTime, Name, Window};
use kittiwake_network::{LimitReport, budget};
use kittiwake_store::ledger::{Acquired, Carry, Closing, Ledger, Want};
use serde::Serialize;
use std::collections::BTreeMap;

/// A block of grants is this part of a window's allowance, so that a crash costs little.
const BLOCKS_PER_WINDOW: u32 = 20;
const BLOCK_CALLS_MAX: u32 = 25;

/// The right to send one call. Has to be settled once the call is answered or given up.
#[derive(Debug)]
#[must_use]
pub(crate) struct Permit {
    charged: Vec<Charge>,
}

/// One call of one budget.
#[derive(Debug)]
struct Charge {
    budget: BudgetId,
    grant: i64,
    /// The pocket's `silent` when the call was sent: those calls had been counted before it was.
    silent_before: u32,
}

/// What asking for a permit gave.
#[derive(Debug)]
pub(crate) enum Taken {
    Permit(Permit),
    /// Nothing may be sent before this time; the budget's name says why.
    Wait {
        until: LimitTime,
        budget: Name,
    },
}

/// One budget's use in this run.
#[derive(Debug, Clone, Serialize)]
pub struct BudgetSpent {
    pub budget: Name,
    /// Calls that were sent.
    pub calls: u64,
    /// Calls allowed in each window, after the reserve.
    pub limit: u32,
    pub window_seconds: f64,
    /// Windows that the run touched, the first and the last perhaps in part.
    pub windows: u64,
}

impl BudgetSpent {
    /// The share of what all these windows allowed that this run used.
    pub fn share(&self) -> f64 {
        self.calls as f64 / (f64::from(self.limit) * self.windows as f64)
    }
}

/// All budgets of one crawl.
#[derive(Debug)]
pub(crate) struct Purse {
    ledger: Option<Ledger>,
    clock: Clock,
    holder: String,
    pockets: BTreeMap<BudgetId, Pocket>,
    reserve: f64,
    guard_us: i64,
    started: LimitTime,
}

#[derive(Debug)]
struct Pocket {
    rule: BudgetRule,
    /// Calls a window, after the reserve.
    declared: u32,
    /// The same, as far as the server's word lowers it in the current window.
    limit: u32,
    /// Grants of the current window, and earlier ones with calls that are still unanswered.
    held: Vec<Held>,
    /// The window for which earlier unanswered calls were carried over.
    opened: Option<Window>,
    /// Calls of earlier windows that were answered in a window before it was opened: the server
    /// may have counted them there.
    late: Option<(Window, u32)>,
    shut_until: LimitTime,
    sent: u64,
    /// Calls of the current window that were answered, for comparison with the server's word.
    answered: u32,
    /// The greatest excess that the server's word showed in the current window.
    excess: u32,
    /// The least that the server said is left of the current window, without what we leave to
    /// others.
    least_left: Option<u32>,
    /// Calls of the current window that were answered without a word on this budget.
    silent: u32,
    /// The first of those that `least_left` is sure to reflect.
    silent_reflected: u32,
}

#[derive(Debug)]
struct Held {
    grant: Grant,
    unspent: u32,
    unanswered: u32,
    closed: bool,
}

impl Purse {
    pub(crate) fn new(
        ledger: Option<Ledger>,
        clock: Clock,
        holder: String,
        limits: Limits,
    ) -> Self {
        let started = clock.limit();
        let (reserve, guard_us, ledger) = match limits {
            Limits::Keep { reserve, guard } => (reserve, guard.as_micros() as i64, ledger),
            Limits::Off => (0.0, 0, None),
        };
        Self {
            ledger,
            clock,
            holder,
            pockets: BTreeMap::new(),
            reserve,
            guard_us,
            started,
        }
    }

    /// Makes a budget known before it is drawn from.
    pub(crate) fn add(&mut self, id: BudgetId, rule: &BudgetRule) {
        let limit = budget::after_reserve(rule.limit, self.reserve);
        self.pockets.entry(id).or_insert_with(|| Pocket {
            rule: rule.clone(),
            declared: limit,
            limit,
            held: Vec::new(),
            opened: None,
            late: None,
            shut_until: LimitTime(i64::MIN),
            sent: 0,
            answered: 0,
            excess: 0,
            least_left: None,
            silent: 0,
            silent_reflected: 0,
        });
    }

    /// Until when these budgets are known to give nothing.
    pub(crate) fn shut(&self, budgets: &[BudgetId]) -> Option<(LimitTime, Name)> {
        self.closed_now(budgets, self.clock.limit())
    }

    /// Every budget in its current window, for those who watch.
    pub(crate) fn now(&self) -> Vec<BudgetProgress> {
        if self.ledger.is_none() {
            return Vec::new();
        }
        let now = self.clock.limit();
        let pockets = self.pockets.values();
        let shown = pockets.map(|pocket| {
            let window = budget::window_at(&pocket.rule, now);
            let held = pocket
                .held
                .iter()
                .filter(|held| held.grant.window == window);
            BudgetProgress {
                budget: pocket.rule.name.clone(),
                sent: held
                    .map(|held| held.grant.calls.saturating_sub(held.unspent))
                    .sum(),
                limit: pocket.limit,
                resets: window.end,
            }
        });
        shown.collect()
    }

    /// Takes the right to one call from every one of the budgets, or from none.
    pub(crate) async fn take(&mut self, budgets: &[BudgetId]) -> Result<Taken, EngineError> {
        if self.ledger.is_none() {
            return Ok(Taken::Permit(Permit {
                charged: Vec::new(),
            }));
        }
        // Asking the ledger takes time, in which a window may end; then it is asked again.
        for _ in 0..4 {
            let now = self.clock.limit();
            if let Some((until, budget)) = self.closed_now(budgets, now) {
                return Ok(Taken::Wait { until, budget });
            }
            self.open_windows(budgets, now).await?;
            let wants = self.wants(budgets, now);
            if wants.is_empty() {
                return Ok(Taken::Permit(self.spend(budgets, now)));
            }
            if let Some(wait) = self.acquire(now, wants).await? {
                return Ok(wait);
            }
        }
        let until = self.clock.limit().plus_us(1_000);
        Ok(Taken::Wait {
            until,
            budget: "window edge".into(),
        })
    }

    /// Whether one of the budgets gives nothing at this moment: shut, or too near a window's edge.
    fn closed_now(&self, budgets: &[BudgetId], now: LimitTime) -> Option<(LimitTime, Name)> {
        let pockets = budgets.iter().filter_map(|id| self.pockets.get(id));
        pockets
            .filter_map(|pocket| {
                let name = pocket.rule.name.clone();
                if let Some(until) = pocket.shut_at(now) {
                    return Some((until, name));
                }
                let window = budget::window_at(&pocket.rule, now);
                let opens = window.start.plus_us(self.guard_us);
                if now < opens {
                    return Some((opens, name));
                }
                let closes = window.end.plus_us(-self.guard_us);
                (now >= closes).then(|| (window.end.plus_us(self.guard_us), name))
            })
            .max()
    }

    /// On entering a window: calls of earlier windows that are still unanswered count in it too,
    /// and what earlier grants left unspent is handed back.
    async fn open_windows(
        &mut self,
        budgets: &[BudgetId],
        now: LimitTime,
    ) -> Result<(), EngineError> {
        let (mut carries, mut closings) = (Vec::new(), Vec::new());
        for id in budgets {
            let Some(pocket) = self.pockets.get_mut(id) else {
                continue;
            };
            let window = budget::window_at(&pocket.rule, now);
            if pocket.opened == Some(window) {
                continue;
            }
            pocket.opened = Some(window);
            pocket.limit = pocket.declared;
            (pocket.answered, pocket.excess) = (0, 0);
            (pocket.least_left, pocket.silent, pocket.silent_reflected) = (None, 0, 0);
            pocket
                .held
                .retain(|held| !held.closed || held.unanswered > 0);
            let late = pocket
                .late
                .take()
                .filter(|(answered_in, _)| *answered_in == window);
            let unanswered: u32 = pocket.held.iter().map(|held| held.unanswered).sum();
            let calls = unanswered + late.map_or(0, |(_, calls)| calls);
            if calls > 0 {
                let holder = self.holder.clone();
                carries.push(Carry {
                    budget: id.clone(),
                    window,
                    holder,
                    calls,
                });
            }
            for held in pocket.held.iter_mut().filter(|held| !held.closed) {
                held.closed = true;
                closings.push(Closing {
                    grant: held.grant.id,
                    unused: held.unspent,
                });
                held.unspent = 0;
            }
        }
        let Some(ledger) = &self.ledger else {
            return Ok(());
        };
        // Carried first: between the two steps a call may count twice, never not at all.
        if !carries.is_empty() {
            ledger.carry(carries).await?;
        }
        self.close_grants(closings).await
    }

    fn wants(&self, budgets: &[BudgetId], now: LimitTime) -> Vec<Want> {
        let lacking = budgets.iter().filter_map(|id| {
            let pocket = self.pockets.get(id)?;
            let window = budget::window_at(&pocket.rule, now);
            if pocket.unspent(window) > 0 {
                return None;
            }
            let block = (pocket.limit / BLOCKS_PER_WINDOW).clamp(1, BLOCK_CALLS_MAX);
            Some(Want {
                budget: id.clone(),
                window,
                limit: pocket.limit,
                calls: block,
                holder: self.holder.clone(),
            })
        });
        lacking.collect()
    }

    async fn acquire(
        &mut self,
        now: LimitTime,
        wants: Vec<Want>,
    ) -> Result<Option<Taken>, EngineError> {
        self.settle_spent().await?;
        let Some(ledger) = &self.ledger else {
            return Ok(None);
        };
        match ledger.acquire(now, wants).await? {
            Acquired::Granted(grants) => {
                for grant in grants {
                    if let Some(pocket) = self.pockets.get_mut(&grant.budget) {
                        let unspent = grant.calls;
                        pocket.held.push(Held {
                            grant,
                            unspent,
                            unanswered: 0,
                            closed: false,
                        });
                    }
                }
                Ok(None)
            }
            Acquired::Exhausted { budget, until } => {
                let until = until.max(now.plus_us(1));
                let name = match self.pockets.get_mut(&budget) {
                    Some(pocket) => {
                        pocket.shut_until = until;
                        pocket.rule.name.clone()
                    }
                    None => Name::from(budget.0.as_str()),
                };
                Ok(Some(Taken::Wait {
                    until,
                    budget: name,
                }))
            }
        }
    }

    fn spend(&mut self, budgets: &[BudgetId], now: LimitTime) -> Permit {
        let mut charged = Vec::with_capacity(budgets.len());
        for id in budgets {
            let Some(pocket) = self.pockets.get_mut(id) else {
                continue;
            };
            let window = budget::window_at(&pocket.rule, now);
            let held = pocket
                .held
                .iter_mut()
                .find(|held| held.grant.window == window && held.unspent > 0);
            if let Some(held) = held {
                held.unspent -= 1;
                held.unanswered += 1;
                pocket.sent += 1;
                charged.push(Charge {
                    budget: id.clone(),
                    grant: held.grant.id,
                    silent_before: pocket.silent,
                });
            }
        }
        Permit { charged }
    }

    /// The call was answered, or is known not to be on its way any more; `reports` is what the
    /// answer says of limits. The server's word on a budget lowers it at once.
    pub(crate) async fn settle(
        &mut self,
        permit: Permit,
        reports: &[LimitReport],
    ) -> Result<(), EngineError> {
        let now = self.clock.limit();
        for charge in permit.charged {
            let Some(pocket) = self.pockets.get_mut(&charge.budget) else {
                continue;
            };
            let window = pocket.settle(charge.grant, now);
            let report = reports.iter().find(|report| {
                report.budget == pocket.rule.name
                    && pocket.speaks_of_now(report, now, self.guard_us)
            });
            let Some(report) = report else {
                pocket.silent = pocket.silent.saturating_add(1);
                continue;
            };
            // Whatever was answered before this call was sent, the server had counted.
            if window == pocket.opened {
                pocket.silent_reflected = pocket.silent_reflected.max(charge.silent_before);
            }
            self.observe(&charge.budget, report, now).await?;
        }
        Ok(())
    }

    /// Closes grants of which every call was sent and answered, so that no other process takes
    /// them for calls that may still be on their way when the next window begins. In a window
    /// that was not opened yet, nothing is closed: what may count there has not been carried over.
    pub(crate) async fn settle_spent(&mut self) -> Result<(), EngineError> {
        let now = self.clock.limit();
        let mut closings = Vec::new();
        for pocket in self.pockets.values_mut() {
            if pocket.opened != Some(budget::window_at(&pocket.rule, now)) {
                continue;
            }
            for held in &mut pocket.held {
                if !held.closed && held.unspent == 0 && held.unanswered == 0 {
                    held.closed = true;
                    closings.push(Closing {
                        grant: held.grant.id,
                        unused: 0,
                    });
                }
            }
            pocket
                .held
                .retain(|held| !held.closed || held.unanswered > 0);
        }
        self.close_grants(closings).await
    }

    async fn close_grants(&self, closings: Vec<Closing>) -> Result<(), EngineError> {
        match &self.ledger {
            Some(ledger) if !closings.is_empty() => Ok(ledger.close(closings).await?),
            _ => Ok(()),
        }
    }

    /// Takes in the server's word on the present window of a budget.
    async fn observe(
        &mut self,
        id: &BudgetId,
        report: &LimitReport,
        now: LimitTime,
    ) -> Result<(), EngineError> {
        let Some(pocket) = self.pockets.get_mut(id) else {
            return Ok(());
        };
        let window = budget::window_at(&pocket.rule, now);
        let told = budget::after_reserve(report.limit, self.reserve);
        if report.limit > 0 {
            pocket.limit = pocket.limit.min(told);
        }
        // On our own scale: what the server leaves us, without what we leave to others, is all
        // that is left of our limit.
        let reserved = report.limit.saturating_sub(told);
        let remaining = report.remaining.saturating_sub(reserved);
        let least = pocket.least_left.unwrap_or(remaining);
        pocket.least_left = Some(least.min(remaining));
        let used = pocket.limit.saturating_sub(remaining);
        let unanswered = pocket.unanswered();
        let excess = used.saturating_sub(pocket.answered + unanswered);
        if excess <= pocket.excess {
            return Ok(());
        }
        pocket.excess = excess;
        let unreflected = unanswered + pocket.unspent(window);
        match &self.ledger {
            Some(ledger) => Ok(ledger.observe(id, window, used, unreflected).await?),
            None => Ok(()),
        }
    }

    /// Nothing is drawn from these budgets before `until`.
    pub(crate) async fn block(
        &mut self,
        budgets: &[BudgetId],
        until: LimitTime,
    ) -> Result<(), EngineError> {
        for id in budgets {
            if let Some(pocket) = self.pockets.get_mut(id) {
                pocket.shut_until = pocket.shut_until.max(until);
            }
            if let Some(ledger) = &self.ledger {
                ledger.block(id, until).await?;
            }
        }
        Ok(())
    }

    /// Hands back everything unspent; the crawl is over.
    pub(crate) async fn close(&mut self) -> Result<(), EngineError> {
        // What may count in the present windows is carried over before its grants are closed.
        let budgets: Vec<BudgetId> = self.pockets.keys().cloned().collect();
        self.open_windows(&budgets, self.clock.limit()).await?;
        let mut closings = Vec::new();
        for held in self
            .pockets
            .values_mut()
            .flat_map(|pocket| pocket.held.iter_mut())
        {
            // A grant with a call that may still be on its way stays open, as after a crash.
            if held.closed || held.unanswered > 0 {
                continue;
            }
            held.closed = true;
            closings.push(Closing {
                grant: held.grant.id,
                unused: held.unspent,
            });
        }
        self.close_grants(closings).await
    }

    pub(crate) fn spent(&self) -> Vec<BudgetSpent> {
        let now = self.clock.limit();
        let pockets = self.pockets.values().filter(|pocket| pocket.sent > 0);
        pockets
            .map(|pocket| BudgetSpent {
                budget: pocket.rule.name.clone(),
                calls: pocket.sent,
                limit: pocket.declared,
                window_seconds: pocket.rule.window_us as f64 / 1e6,
                windows: {
                    let first = budget::window_at(&pocket.rule, self.started);
                    let last = budget::window_at(&pocket.rule, now);
                    let apart_us = last.start.since_us(first.start).max(0);
                    (apart_us / pocket.rule.window_us.max(1)) as u64 + 1
                },
            })
            .collect()
    }
}

impl Pocket {
    /// One call of a grant was answered; the window that it was granted in, if that is known.
    fn settle(&mut self, grant: i64, now: LimitTime) -> Option<Window> {
        let held = self.held.iter_mut().find(|held| held.grant.id == grant)?;
        held.unanswered = held.unanswered.saturating_sub(1);
        let granted_in = held.grant.window;
        if Some(granted_in) == self.opened {
            self.answered += 1;
        }
        let window = budget::window_at(&self.rule, now);
        // Counted where it was sent, or carried over when the window was opened.
        let is_counted = granted_in == window || self.opened == Some(window);
        if !is_counted {
            let before = self.late.filter(|(answered_in, _)| *answered_in == window);
            self.late = Some((window, before.map_or(0, |(_, calls)| calls) + 1));
        }
        Some(granted_in)
    }

    fn unspent(&self, window: Window) -> u32 {
        let current = self.held.iter().filter(|held| held.grant.window == window);
        current.map(|held| held.unspent).sum()
    }

    fn unanswered(&self) -> u32 {
        self.held.iter().map(|held| held.unanswered).sum()
    }

    /// Whether a report is about the present window. A reset that does not belong to it speaks of
    /// one that is over or of another clock.
    fn speaks_of_now(&self, report: &LimitReport, now: LimitTime, guard_us: i64) -> bool {
        let window = budget::window_at(&self.rule, now);
        let tolerance_us = (self.rule.window_us / 50).max(guard_us);
        report.reset.since_us(window.end).abs() <= tolerance_us && self.opened == Some(window)
    }

    /// Until when nothing may be sent, if that is so at this moment: because the ledger or the
    /// server said so, or because calls of which the server's count may not tell yet could take
    /// all that it has left. Each of their answers may make room again.
    fn shut_at(&self, now: LimitTime) -> Option<LimitTime> {
        if self.shut_until > now {
            return Some(self.shut_until);
        }
        let window = budget::window_at(&self.rule, now);
        let left = self.least_left.filter(|_| self.opened == Some(window))?;
        let silent = self.silent.saturating_sub(self.silent_reflected);
        (left <= self.unanswered().saturating_add(silent)).then_some(window.end)
    }
}

#[cfg(test)]
#[path = "permits_test.rs"]
mod tests;
