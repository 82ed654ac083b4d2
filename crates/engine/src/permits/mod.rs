//! Permits: the right to send one call, out of grants that are durable already.
//!
//! A call is charged to every budget that covers it. Grants are taken from the ledger in small
//! blocks, so that exactness does not cost a write per call; what a crash leaves unspent counts
//! as spent until it would have been over.

mod host;
mod pace;
mod pocket;
mod room;
mod skew;
mod word;

pub use pace::Pace;

use crate::progress::BudgetProgress;
use crate::settings::Limits;
use crate::{Clock, EngineError};
use host::{ClockKept, POLITENESS, Polite};
use kittiwake_model::{BudgetId, BudgetRule, Cost, LimitTime, Name, Unit, Window, WindowKind};
use kittiwake_network::budget;
use kittiwake_network::{Bearing, Bill, Charged, LimitReport};
use kittiwake_store::ledger::{Acquired, Ledger, Settling, Want};
use pocket::{Came, Drawn, Moment, Occasion, Pocket};
use serde::Serialize;
use skew::Skew;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Windows that are longer are spread evenly only by crawls that do not end by themselves.
const EVEN_WINDOW_US_MAX: i64 = 3_600_000_000;
/// A call that was sent arrives within this time, or never: longer than any call is waited for.
const TRANSIT_US: i64 = 60_000_000;

/// What one call takes of one budget, and which that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Charge {
    pub budget: BudgetId,
    pub cost: Cost,
}

/// The right to send one call. Has to be settled once the call is answered or given up.
#[derive(Debug)]
#[must_use]
pub(crate) struct Permit {
    drawn: Vec<Drawn>,
    sent: LimitTime,
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

/// How a call ended, as far as limits are concerned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered<'a> {
    /// Items in the answer; nothing is known of a call that failed.
    pub items: Option<u64>,
    /// What the call was charged to.
    pub charges: &'a [Charge],
    /// What those of its budgets charge for it that look at what came.
    pub bills: &'a [Bill],
    /// What the answer says of limits.
    pub reports: &'a [LimitReport],
    /// The second that the answer is dated with.
    pub date: Option<LimitTime>,
    /// How the host bears being asked.
    pub bearing: Bearing,
}

impl Default for Answered<'_> {
    fn default() -> Self {
        Self {
            items: None,
            charges: &[],
            bills: &[],
            reports: &[],
            date: None,
            bearing: Bearing::Unknown,
        }
    }
}

/// What a call has cost of a budget that looks at what came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paid {
    pub budget: BudgetId,
    pub name: Name,
    pub units: u64,
}

/// One budget's use in this run.
#[derive(Debug, Clone, Serialize)]
pub struct BudgetSpent {
    pub budget: Name,
    /// Calls that were sent.
    pub calls: u64,
    /// Units that they took.
    pub units: u64,
    pub unit: Unit,
    /// Units allowed in each window, after the reserve.
    pub limit: u64,
    pub window_seconds: f64,
    /// Windows that the run touched, the first and the last perhaps in part.
    pub windows: u64,
}

impl BudgetSpent {
    /// The share of what all these windows allowed that this run used.
    pub fn share(&self) -> f64 {
        self.units as f64 / (self.limit as f64 * self.windows as f64)
    }
}

/// The first call of a run goes alone: it tells what the server's clock shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Unsent,
    UnderWay,
    Answered,
}

/// How long to wait for the first answer before it is looked for again.
const FIRST_ANSWER_US: i64 = 50_000;

/// All budgets of one crawl.
#[derive(Debug)]
pub(crate) struct Purse {
    ledger: Option<Arc<Ledger>>,
    clock: Clock,
    holder: String,
    pockets: BTreeMap<BudgetId, Pocket>,
    /// What was charged today, where that makes it free for the rest of the day.
    charged: BTreeMap<BudgetId, Charged>,
    reserve: f64,
    guard_us: i64,
    transit_us: i64,
    pace: Pace,
    /// Whether windows of any length are spread evenly.
    is_endless: bool,
    skew: Skew,
    /// Whether anything was heard of the server.
    first: First,
    clock_kept: Option<ClockKept>,
    polite: Option<Polite>,
    started: LimitTime,
}

impl Purse {
    pub(crate) fn new(
        ledger: Option<Arc<Ledger>>,
        clock: Clock,
        holder: String,
        limits: Limits,
    ) -> Self {
        let started = clock.limit();
        let (reserve, guard_us, pace, ledger) = match limits {
            Limits::Keep {
                reserve,
                guard,
                pace,
            } => (reserve, guard.as_micros() as i64, pace, ledger),
            Limits::Off => (0.0, 0, Pace::Burst, None),
        };
        Self {
            ledger,
            clock,
            holder,
            pockets: BTreeMap::new(),
            charged: BTreeMap::new(),
            reserve,
            guard_us,
            transit_us: TRANSIT_US,
            pace,
            is_endless: false,
            skew: Skew::unheard(guard_us),
            first: First::Unsent,
            clock_kept: None,
            polite: None,
            started,
        }
    }

    /// The crawl does not end by itself: windows of any length are spread evenly.
    pub(crate) fn go_on_for_ever(&mut self) {
        self.is_endless = true;
    }

    /// Makes a budget known before it is drawn from.
    pub(crate) async fn add(&mut self, id: BudgetId, rule: &BudgetRule) -> Result<(), EngineError> {
        if self.pockets.contains_key(&id) {
            return Ok(());
        }
        let limit = budget::after_reserve(rule.limit, self.reserve);
        let mut pocket = Pocket::new(id.clone(), rule, limit, self.transit_us);
        if let Some(limit) = self.learnt_limit(&id, rule).await? {
            pocket.is_share_told = true;
            pocket.raise(limit);
        }
        self.pockets.insert(id, pocket);
        Ok(())
    }

    /// The present by the clock that a budget goes by: the calendar's windows end when the server's
    /// clock is sure to say so.
    fn now_for(&self, kind: &WindowKind) -> LimitTime {
        now_for(kind, &self.skew, self.clock.limit())
    }

    /// A time by a budget's clock as ours shows it.
    fn on_our_clock(&self, kind: &WindowKind, then: LimitTime) -> LimitTime {
        if is_of_the_calendar(kind) {
            self.skew.reached(then)
        } else {
            then
        }
    }

    /// Until when these budgets are known to give nothing.
    pub(crate) fn shut(&self, charges: &[Charge]) -> Option<(LimitTime, Name)> {
        let now = self.clock.limit();
        let polite = self.polite.as_ref().and_then(|it| it.gait.next(now));
        let polite = polite.map(|until| (until, Name::from(POLITENESS)));
        self.shut_by_budgets(charges)
            .into_iter()
            .chain(polite)
            .max()
    }

    fn shut_by_budgets(&self, charges: &[Charge]) -> Option<(LimitTime, Name)> {
        let waits = charges.iter().filter_map(|charge| {
            let pocket = self.pockets.get(&charge.budget)?;
            let kind = &pocket.rule.kind;
            let moment = moment_for(kind, &self.skew, self.clock.limit());
            let until = self.closed_at(pocket, moment, charge.cost.most())?;
            Some((self.on_our_clock(kind, until), pocket.rule.name.clone()))
        });
        waits.max()
    }

    /// Until when a budget gives nothing, if it does not: shut, or ahead of its beat.
    fn closed_at(&self, pocket: &Pocket, moment: Moment, units: u64) -> Option<LimitTime> {
        if let Some(until) = pocket.shut_at(moment, units) {
            return Some(until);
        }
        let window = pocket.window(moment.at);
        if window.is_some() && pocket.opened != window {
            return None;
        }
        pocket
            .beat
            .next()
            .filter(|next| self.pace == Pace::Even && *next > moment.at)
    }

    /// Every budget in its current window, for those who watch.
    pub(crate) fn now(&self) -> Vec<BudgetProgress> {
        if self.ledger.is_none() {
            return Vec::new();
        }
        let ours = self.clock.limit();
        let shown = self.pockets.values().map(|pocket| {
            let kind = &pocket.rule.kind;
            let moment = moment_for(kind, &self.skew, ours);
            let resets = pocket.window(moment.at).map(|window| window.end);
            BudgetProgress {
                budget: pocket.rule.name.clone(),
                id: pocket.id.clone(),
                unit: pocket.rule.unit.clone(),
                left: pocket.left(),
                limit: pocket.limit,
                resets: resets.map(|then| self.on_our_clock(kind, then)),
                shut_until: pocket
                    .shut_at(moment, 1)
                    .map(|then| self.on_our_clock(kind, then)),
            }
        });
        shown.collect()
    }

    /// Takes the right to one call from every one of the budgets, or from none.
    pub(crate) async fn take(&mut self, charges: &[Charge]) -> Result<Taken, EngineError> {
        let sent = self.clock.limit();
        if self.ledger.is_none() {
            let drawn = Vec::new();
            return Ok(Taken::Permit(Permit { drawn, sent }));
        }
        if self.first == First::UnderWay {
            return Ok(Taken::Wait {
                until: sent.plus_us(FIRST_ANSWER_US),
                budget: "first answer".into(),
            });
        }
        // Asking the ledger takes time, in which a window may end; then it is asked again.
        for _ in 0..4 {
            if let Some((until, budget)) = self.shut(charges) {
                return Ok(Taken::Wait { until, budget });
            }
            if self.first == First::Unsent {
                // Another process may have heard of the server meanwhile.
                self.read_clock().await?;
            }
            self.enter_windows(charges).await?;
            let wants = self.wants(charges);
            if wants.is_empty() {
                return Ok(Taken::Permit(self.spend(charges)));
            }
            if let Some(wait) = self.acquire(wants, charges).await? {
                return Ok(wait);
            }
        }
        let until = self.clock.limit().plus_us(1_000);
        Ok(Taken::Wait {
            until,
            budget: "window edge".into(),
        })
    }

    /// On entering a window: calls of earlier windows that are still unanswered count in it too,
    /// and what earlier grants left unspent is handed back.
    async fn enter_windows(&mut self, charges: &[Charge]) -> Result<(), EngineError> {
        let ours = self.clock.limit();
        let mut settlings = Vec::new();
        for charge in charges {
            let Some(pocket) = self.pockets.get_mut(&charge.budget) else {
                continue;
            };
            let moment = moment_for(&pocket.rule.kind, &self.skew, ours);
            if pocket.enter(moment.at) {
                settlings.extend(pocket.settlings(moment, Occasion::Entering));
            }
            pocket.make_room(&charge.cost, moment.at);
        }
        self.tell(settlings).await
    }

    fn wants(&self, charges: &[Charge]) -> Vec<Want> {
        let lacking = charges.iter().filter_map(|charge| {
            let pocket = self.pockets.get(&charge.budget)?;
            let moment = moment_for(&pocket.rule.kind, &self.skew, self.clock.limit());
            pocket.want(&charge.cost, moment, &self.holder)
        });
        lacking.collect()
    }

    async fn acquire(
        &mut self,
        wants: Vec<Want>,
        charges: &[Charge],
    ) -> Result<Option<Taken>, EngineError> {
        // A grant is of the windows that it was asked for in, however long the ledger takes.
        let asked = self.clock.limit();
        let settlings = self.settlings(Occasion::Passing);
        let Some(ledger) = &self.ledger else {
            return Ok(None);
        };
        match ledger.settle_and_acquire(settlings, wants).await? {
            Acquired::Granted(grants) => {
                let ours = self.clock.limit();
                for grant in grants {
                    if let Some(pocket) = self.pockets.get_mut(&grant.budget) {
                        let asked = moment_for(&pocket.rule.kind, &self.skew, asked);
                        let now = now_for(&pocket.rule.kind, &self.skew, ours);
                        pocket.take_in(&grant, asked, now);
                    }
                }
                Ok(None)
            }
            Acquired::Exhausted { budget, until } => {
                let Some(pocket) = self.pockets.get_mut(&budget) else {
                    let budget = Name::from(budget.0.as_str());
                    return Ok(Some(Taken::Wait { until, budget }));
                };
                let kind = pocket.rule.kind.clone();
                let now = now_for(&kind, &self.skew, self.clock.limit());
                let until = until.max(now.plus_us(1));
                pocket.dry_until = until;
                let rule = pocket.rule.clone();
                self.let_go(charges).await?;
                // Another process may have found out that there is more.
                let learnt = self.learnt_limit(&budget, &rule).await?;
                if let (Some(_), Some(pocket)) = (learnt, self.pockets.get_mut(&budget)) {
                    pocket.is_share_told = true;
                }
                let asked = charges.iter().find(|charge| charge.budget == budget);
                let units = asked.map_or(1, |charge| charge.cost.most());
                let unheard = self.room_unheard(&budget, units, now).await?;
                if let (Some(limit), Some(pocket)) =
                    (learnt.max(unheard), self.pockets.get_mut(&budget))
                    && limit > pocket.limit
                {
                    pocket.raise(limit);
                    return Ok(None);
                }
                Ok(Some(Taken::Wait {
                    until: self.on_our_clock(&kind, until),
                    budget: rule.name,
                }))
            }
        }
    }

    /// Hands back what is held of these budgets and cannot be used now.
    async fn let_go(&mut self, charges: &[Charge]) -> Result<(), EngineError> {
        let ours = self.clock.limit();
        for charge in charges {
            if let Some(pocket) = self.pockets.get_mut(&charge.budget) {
                pocket.let_go(now_for(&pocket.rule.kind, &self.skew, ours));
            }
        }
        self.settle_spent().await
    }

    fn spend(&mut self, charges: &[Charge]) -> Permit {
        let ours = self.clock.limit();
        if let Some(polite) = &mut self.polite {
            polite.gait.sent(ours);
        }
        let is_first = self.first == First::Unsent;
        if is_first {
            self.first = First::UnderWay;
        }
        let mut drawn = Vec::with_capacity(charges.len());
        for charge in charges {
            let Some(pocket) = self.pockets.get_mut(&charge.budget) else {
                continue;
            };
            let moment = moment_for(&pocket.rule.kind, &self.skew, ours);
            drawn.push(pocket.draw(&charge.cost, moment, is_first));
            let length_us = pocket.rule.kind.length_us().unwrap_or(0);
            if self.pace == Pace::Even && (self.is_endless || length_us <= EVEN_WINDOW_US_MAX) {
                pocket.keep_beat(&charge.cost, moment);
            }
        }
        Permit { drawn, sent: ours }
    }

    /// The call was answered, or is known not to be on its way any more. The server's word on a
    /// budget lowers it at once.
    pub(crate) async fn settle(
        &mut self,
        permit: Permit,
        answered: Answered<'_>,
    ) -> Result<(), EngineError> {
        self.settle_paid(permit, answered).await.map(|_| ())
    }

    /// The same; what was paid is told, as far as what came decides it.
    pub(crate) async fn settle_paid(
        &mut self,
        permit: Permit,
        answered: Answered<'_>,
    ) -> Result<Vec<Paid>, EngineError> {
        let ours = self.clock.limit();
        self.first = First::Answered;
        let written = answered
            .date
            .and_then(|date| self.skew.hear(date, permit.sent, ours));
        if written.is_some() {
            self.remember_clock().await?;
        } else if !self.skew.is_known() {
            self.skew = Skew::unknown(self.guard_us);
        }
        self.bear(permit.sent, answered.bearing).await?;
        let paid = self.reckon(permit.sent, ours, &answered);
        for drawn in &permit.drawn {
            let Some(pocket) = self.pockets.get_mut(&drawn.budget) else {
                continue;
            };
            let moment = moment_for(&pocket.rule.kind, &self.skew, ours);
            let now = moment.at;
            // The server had counted the call when it wrote the date.
            let counted = match written {
                Some(written) if is_of_the_calendar(&pocket.rule.kind) => {
                    moment.latest.min(written)
                }
                _ => moment.latest,
            };
            // What failed may have cost all that it could.
            let own = paid.iter().find(|it| it.budget == drawn.budget);
            let came = Came {
                items: answered.items.unwrap_or(u64::MAX),
                units: own.map(|own| own.units),
            };
            pocket.settle(drawn, came, counted);
            let narrower = pocket.heard_in_opened(drawn, now);
            if let (Some((window, opened)), Some(ledger)) = (narrower, &self.ledger) {
                let length_us = pocket.rule.kind.length_us().unwrap_or(0);
                ledger
                    .narrow(&drawn.budget, window, opened, length_us)
                    .await?;
            }
        }
        let reports = self
            .attribute(&permit.drawn, answered.reports, ours)
            .await?;
        for drawn in &permit.drawn {
            self.hear(drawn, &reports, ours).await?;
        }
        Ok(paid)
    }

    /// What a call has cost of the budgets that look at what came: no more than was set aside for it, whatever a
    /// server sends.
    fn reckon(&mut self, sent: LimitTime, ours: LimitTime, answered: &Answered<'_>) -> Vec<Paid> {
        let (earliest, latest) = (self.skew.earliest(sent), self.skew.latest(ours));
        let mut paid = Vec::with_capacity(answered.bills.len());
        for bill in answered.bills {
            let mut charges = answered.charges.iter();
            let Some(charge) = charges.find(|it| it.cost.budget == bill.budget) else {
                continue;
            };
            let today = self.charged.entry(charge.budget.clone()).or_default();
            let units = today.charge(bill, earliest, latest);
            paid.push(Paid {
                budget: charge.budget.clone(),
                name: bill.budget.clone(),
                units: units.min(charge.cost.most()),
            });
        }
        paid
    }

    /// Tells the ledger of grants of which every call was sent and answered, so that no other
    /// process takes them for calls that may still be on their way.
    pub(crate) async fn settle_spent(&mut self) -> Result<(), EngineError> {
        self.tell_of_all(Occasion::Passing).await
    }

    async fn tell_of_all(&mut self, occasion: Occasion) -> Result<(), EngineError> {
        let settlings = self.settlings(occasion);
        self.tell(settlings).await
    }

    /// What there is to tell of all budgets.
    fn settlings(&mut self, occasion: Occasion) -> Vec<Settling> {
        let ours = self.clock.limit();
        let mut settlings = Vec::new();
        for pocket in self.pockets.values_mut() {
            let moment = moment_for(&pocket.rule.kind, &self.skew, ours);
            settlings.extend(pocket.settlings(moment, occasion));
        }
        settlings
    }

    async fn tell(&self, settlings: Vec<Settling>) -> Result<(), EngineError> {
        match &self.ledger {
            Some(ledger) if !settlings.is_empty() => Ok(ledger.settle(settlings).await?),
            _ => Ok(()),
        }
    }

    /// Nothing is drawn from these budgets before `until`, by our clock.
    pub(crate) async fn block(
        &mut self,
        budgets: &[BudgetId],
        until: LimitTime,
    ) -> Result<(), EngineError> {
        for id in budgets {
            let Some(pocket) = self.pockets.get_mut(id) else {
                continue;
            };
            // Not a moment too early, should more be found out of the server's clock until then.
            let until = moment_for(&pocket.rule.kind, &self.skew, until).latest;
            pocket.shut_until = pocket.shut_until.max(until);
            if let Some(ledger) = &self.ledger {
                ledger.block(id, until).await?;
            }
        }
        Ok(())
    }

    /// Hands back everything unspent; the crawl is over.
    pub(crate) async fn close(&mut self) -> Result<(), EngineError> {
        // What may count in the present windows is said before its grants are closed.
        self.tell_of_all(Occasion::Entering).await?;
        self.tell_of_all(Occasion::Closing).await
    }

    pub(crate) fn spent(&self) -> Vec<BudgetSpent> {
        let now = self.clock.limit();
        let pockets = self.pockets.values().filter(|pocket| pocket.calls > 0);
        pockets
            .map(|pocket| BudgetSpent {
                budget: pocket.rule.name.clone(),
                calls: pocket.calls,
                units: pocket.spent,
                unit: pocket.rule.unit.clone(),
                limit: pocket.declared,
                window_seconds: pocket.rule.kind.length_us().unwrap_or(0) as f64 / 1e6,
                windows: windows_between(pocket, self.started, now),
            })
            .collect()
    }
}

/// How many windows a span of time touches.
fn windows_between(pocket: &Pocket, from: LimitTime, to: LimitTime) -> u64 {
    let length_us = pocket.rule.kind.length_us().unwrap_or(1).max(1);
    let start = |at: LimitTime| pocket.window(at).map_or(at, |window: Window| window.start);
    let apart_us = start(to).since_us(start(from)).max(0);
    (apart_us / length_us) as u64 + 1
}

const fn is_of_the_calendar(kind: &WindowKind) -> bool {
    matches!(
        kind,
        WindowKind::Aligned { .. } | WindowKind::Day { .. } | WindowKind::Month { .. }
    )
}

fn moment_for(kind: &WindowKind, skew: &Skew, ours: LimitTime) -> Moment {
    if is_of_the_calendar(kind) {
        Moment {
            at: skew.earliest(ours),
            latest: skew.latest(ours),
        }
    } else {
        Moment::certain(ours)
    }
}

fn now_for(kind: &WindowKind, skew: &Skew, ours: LimitTime) -> LimitTime {
    moment_for(kind, skew, ours).at
}

#[cfg(test)]
mod tests;
