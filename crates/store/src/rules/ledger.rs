//! The rules of the ledger, for a file and for a server.

use crate::StoreError;
use crate::cell::cells;
use crate::database::Database;
use crate::ledger::{Acquired, BudgetUsage, Carry, Closing, Spent, Want, ask_again_at};
use kittiwake_model::{BudgetId, Grant, LimitTime, Window};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

/// Rows of budgets that nobody uses any more are dropped once this many grants were made since.
const GRANTS_KEPT_MAX: i64 = 1_000_000;
/// Grants and names of this process that it remembers as its own.
const OWN_MAX: usize = 100_000;

/// Where the ledger is kept.
pub(crate) trait LedgerKeeper: fmt::Debug {
    fn database(&self) -> &dyn Database;

    /// Begins a transaction that nobody else's runs beside, whoever shares the ledger.
    fn begin(&self) -> Result<(), StoreError>;

    /// Makes the transaction durable, whatever becomes of the machine.
    fn commit(&self) -> Result<(), StoreError>;

    /// Undoes the transaction, in whatever state it is.
    fn roll_back(&self);

    /// Sees to it that a transaction that failed can be done again, or gives its failure back. It
    /// may have been committed all the same: then what it granted counts as spent.
    fn recover(&self, failure: StoreError) -> Result<(), StoreError> {
        Err(failure)
    }
}

/// The ledger as one thread of one process sees it. Everything but [`Self::begin`] and how it ends
/// is done inside a transaction.
#[derive(Debug)]
pub(crate) struct Book<'k> {
    keeper: &'k dyn LedgerKeeper,
    /// Grants that were given out here and are not closed.
    own: RefCell<HashSet<i64>>,
    /// Those of them that the present transaction gives out.
    fresh: RefCell<Vec<i64>>,
    /// The names under which this process has asked.
    holders: RefCell<HashSet<String>>,
}

impl<'k> Book<'k> {
    pub(crate) fn new(keeper: &'k dyn LedgerKeeper) -> Self {
        Self {
            keeper,
            own: RefCell::default(),
            fresh: RefCell::default(),
            holders: RefCell::default(),
        }
    }

    pub(crate) fn begin(&self) -> Result<(), StoreError> {
        self.fresh.borrow_mut().clear();
        self.keeper.begin()
    }

    pub(crate) fn commit(&self) -> Result<(), StoreError> {
        self.keeper.commit()?;
        let mut own = self.own.borrow_mut();
        for grant in self.fresh.borrow_mut().drain(..) {
            if own.len() < OWN_MAX {
                own.insert(grant);
            }
        }
        Ok(())
    }

    pub(crate) fn roll_back(&self) {
        self.keeper.roll_back();
    }

    pub(crate) fn recover(&self, failure: StoreError) -> Result<(), StoreError> {
        self.keeper.recover(failure)
    }

    fn database(&self) -> &dyn Database {
        self.keeper.database()
    }

    pub(crate) fn acquire(&self, at: LimitTime, wants: &[Want]) -> Result<Acquired, StoreError> {
        let mut granted = Vec::with_capacity(wants.len());
        for want in wants {
            if !want.window.contains(at) {
                return Err(StoreError::invalid(format!(
                    "a grant for a window of {} that is not the present one",
                    want.budget.0
                )));
            }
            let blocked_until = self.blocked_until(&want.budget)?;
            if let Some(until) = blocked_until.filter(|until| *until > at) {
                return Ok(exhausted(want, until));
            }
            self.forget_old_windows(want)?;
            let spent = self.spent(&want.budget, want.window)?;
            let available = spent.available(want.limit);
            if available == 0 {
                let until = if spent.may_recover(want.limit) {
                    ask_again_at(at, want.window)
                } else {
                    want.window.end
                };
                return Ok(exhausted(want, until));
            }
            granted.push(available.min(want.calls.max(1)));
        }
        // Where each call costs one of every budget, what one of them lacks is of no use in the
        // others.
        let first_calls = wants.first().map_or(0, |want| want.calls);
        if wants.iter().all(|want| want.calls == first_calls) {
            let fewest = granted.iter().copied().min().unwrap_or(0);
            granted.fill(fewest);
        }
        let mut grants = Vec::with_capacity(wants.len());
        for (want, calls) in wants.iter().zip(granted) {
            grants.push(self.grant(want, calls)?);
        }
        Ok(Acquired::Granted(grants))
    }

    fn grant(&self, want: &Want, calls: u32) -> Result<Grant, StoreError> {
        let id = self.database().only(
            "INSERT INTO grants(budget, start_us, end_us, budget_limit, calls, unused, closed, holder)
             VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, ?6) RETURNING id",
            cells![
                &*want.budget.0,
                want.window.start.0,
                want.window.end.0,
                want.limit,
                calls,
                &*want.holder
            ],
            |row| row.get(0),
        )?;
        self.fresh.borrow_mut().push(id);
        self.remember(&want.holder);
        Ok(Grant {
            id,
            budget: want.budget.clone(),
            window: want.window,
            calls,
        })
    }

    fn remember(&self, holder: &str) {
        let mut holders = self.holders.borrow_mut();
        if !holders.contains(holder) && holders.len() < OWN_MAX {
            holders.insert(holder.to_owned());
        }
    }

    pub(crate) fn close(&self, closings: &[Closing]) -> Result<(), StoreError> {
        for closing in closings {
            // A grant that is closed twice is closed once.
            self.database().send(
                "UPDATE grants SET closed = 1, unused = min(?2, calls)
                 WHERE id = ?1 AND closed = 0"
                    .into(),
                cells![closing.grant, closing.unused],
            )?;
            self.own.borrow_mut().remove(&closing.grant);
        }
        Ok(())
    }

    pub(crate) fn carry(&self, carries: &[Carry]) -> Result<(), StoreError> {
        for carry in carries {
            self.remember(&carry.holder);
            self.database().send(
                "INSERT INTO carries AS known(budget, start_us, end_us, holder, calls)
                 VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (budget, start_us, holder)
                 DO UPDATE SET calls = max(known.calls, excluded.calls)"
                    .into(),
                cells![
                    &*carry.budget.0,
                    carry.window.start.0,
                    carry.window.end.0,
                    &*carry.holder,
                    carry.calls
                ],
            )?;
        }
        Ok(())
    }

    pub(crate) fn observe(
        &self,
        budget: &BudgetId,
        window: Window,
        used_by_server: u32,
        unreflected: u32,
    ) -> Result<(), StoreError> {
        let mut spent = self.spent(budget, window)?;
        spent.own_carried = self.own_carried(budget, window)?;
        let foreign = spent.foreign_calls(used_by_server, unreflected);
        let last_used: Option<i64> = self.database().first(
            "SELECT used FROM observations WHERE budget = ?1 AND start_us = ?2",
            cells![&*budget.0, window.start.0],
            |row| row.get(0),
        )?;
        // The server's count only grows within a window, so a greater one is a later one and
        // replaces what was known before. While others hold grants that nobody here can follow,
        // it can only lower the budget.
        let is_later = i64::from(used_by_server) >= last_used.unwrap_or(0);
        let may_raise = is_later && !self.others_have_grants(budget, window)?;
        let foreign = if may_raise {
            foreign
        } else {
            foreign.max(spent.foreign)
        };
        if foreign == spent.foreign && !is_later {
            return Ok(());
        }
        self.database().send(
            "INSERT INTO observations AS known(budget, start_us, end_us, used, foreign_calls)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (budget, start_us)
             DO UPDATE SET used = max(known.used, excluded.used),
                           foreign_calls = excluded.foreign_calls"
                .into(),
            cells![
                &*budget.0,
                window.start.0,
                window.end.0,
                used_by_server,
                i64::try_from(foreign).unwrap_or(i64::MAX)
            ],
        )
    }

    /// Calls that this process itself has carried into the window.
    fn own_carried(&self, budget: &BudgetId, window: Window) -> Result<u64, StoreError> {
        let holders = self.holders.borrow();
        let mut calls = 0_u64;
        self.database().each(
            "SELECT holder, calls FROM carries WHERE budget = ?1 AND start_us = ?2",
            cells![&*budget.0, window.start.0],
            |row| {
                if holders.contains(&*row.text(0)?) {
                    calls += u64::from(row.get::<u32>(1)?);
                }
                Ok(())
            },
        )?;
        Ok(calls)
    }

    fn others_have_grants(&self, budget: &BudgetId, window: Window) -> Result<bool, StoreError> {
        let (own, fresh) = (self.own.borrow(), self.fresh.borrow());
        let mut others = false;
        self.database().each(
            "SELECT id FROM grants
             WHERE budget = ?1 AND end_us = ?2 AND start_us = ?3 AND closed = 0",
            cells![&*budget.0, window.end.0, window.start.0],
            |row| {
                let grant = row.get(0)?;
                others |= !own.contains(&grant) && !fresh.contains(&grant);
                Ok(())
            },
        )?;
        Ok(others)
    }

    pub(crate) fn block(&self, budget: &BudgetId, until: LimitTime) -> Result<(), StoreError> {
        self.database().send(
            "INSERT INTO blocks AS known(budget, until_us) VALUES (?1, ?2)
             ON CONFLICT (budget)
             DO UPDATE SET until_us = max(known.until_us, excluded.until_us)"
                .into(),
            cells![&*budget.0, until.0],
        )
    }

    fn blocked_until(&self, budget: &BudgetId) -> Result<Option<LimitTime>, StoreError> {
        self.database().first(
            "SELECT until_us FROM blocks WHERE budget = ?1",
            cells![&*budget.0],
            |row| Ok(LimitTime(row.get(0)?)),
        )
    }

    /// Everything that counts against one window.
    pub(crate) fn spent(&self, budget: &BudgetId, window: Window) -> Result<Spent, StoreError> {
        let length_us = window.end.since_us(window.start);
        self.database().only(
            "SELECT
               CAST((SELECT coalesce(sum(calls - unused), 0) FROM grants
                     WHERE budget = ?1 AND end_us = ?3 AND start_us = ?2) AS BIGINT),
               CAST((SELECT coalesce(sum(calls), 0) FROM carries
                     WHERE budget = ?1 AND start_us = ?2) AS BIGINT),
               CAST((SELECT coalesce(sum(calls - unused), 0) FROM grants
                     WHERE budget = ?1 AND end_us > ?2 - ?4 AND end_us <= ?2 AND closed = 0)
                    AS BIGINT),
               (SELECT coalesce(max(foreign_calls), 0) FROM observations
                WHERE budget = ?1 AND start_us = ?2)",
            cells![&*budget.0, window.start.0, window.end.0, length_us],
            |row| {
                let number = |place| -> Result<u64, StoreError> {
                    Ok(u64::try_from(row.get::<i64>(place)?).unwrap_or_default())
                };
                let unclosed = number(2)?;
                Ok(Spent {
                    granted: number(0)?,
                    carried: number(1)? + unclosed,
                    unclosed,
                    own_carried: 0,
                    foreign: number(3)?,
                })
            },
        )
    }

    /// Keeps the ledger small: of each budget only the last windows matter. Budgets may run on
    /// different clocks, so each is measured by its own.
    fn forget_old_windows(&self, want: &Want) -> Result<(), StoreError> {
        let length_us = want.window.end.since_us(want.window.start);
        let before_us = want.window.start.0.saturating_sub(length_us);
        for sql in [
            "DELETE FROM grants WHERE budget = ?1 AND end_us <= ?2",
            "DELETE FROM carries WHERE budget = ?1 AND end_us <= ?2",
            "DELETE FROM observations WHERE budget = ?1 AND end_us <= ?2",
            "DELETE FROM blocks WHERE budget = ?1 AND until_us <= ?2",
        ] {
            self.database()
                .send(sql.into(), cells![&*want.budget.0, before_us])?;
        }
        self.database().send(
            "DELETE FROM grants WHERE id <= (SELECT max(id) FROM grants) - ?1".into(),
            cells![GRANTS_KEPT_MAX],
        )
    }

    pub(crate) fn rows(&self) -> Result<u64, StoreError> {
        let rows: i64 = self.database().only(
            "SELECT (SELECT count(*) FROM grants) + (SELECT count(*) FROM carries)
                  + (SELECT count(*) FROM observations) + (SELECT count(*) FROM blocks)",
            &[],
            |row| row.get(0),
        )?;
        Ok(u64::try_from(rows).unwrap_or_default())
    }

    pub(crate) fn usage(&self, at: LimitTime) -> Result<Vec<BudgetUsage>, StoreError> {
        let windows: Vec<(BudgetId, Window, Option<u32>)> = self.database().all(
            "SELECT b.budget, b.start_us, b.end_us,
                    (SELECT g.budget_limit FROM grants AS g WHERE g.budget = b.budget
                     AND g.end_us = b.end_us ORDER BY g.id DESC LIMIT 1)
             FROM (SELECT budget, start_us, end_us FROM grants
                   UNION SELECT budget, start_us, end_us FROM carries
                   UNION SELECT budget, start_us, end_us FROM observations) AS b
             WHERE b.start_us <= ?1 AND ?1 < b.end_us ORDER BY 1, 2",
            cells![at.0],
            |row| {
                let window = Window {
                    start: LimitTime(row.get(1)?),
                    end: LimitTime(row.get(2)?),
                };
                Ok((BudgetId(row.get(0)?), window, row.get(3)?))
            },
        )?;
        let mut usages = Vec::with_capacity(windows.len());
        for (budget, window, limit) in windows {
            let spent = self.spent(&budget, window)?;
            let blocked_until = self.blocked_until(&budget)?.filter(|until| *until > at);
            usages.push(BudgetUsage {
                budget,
                window,
                limit,
                granted: spent.granted as u32,
                carried: spent.carried as u32,
                foreign: spent.foreign as u32,
                blocked_until,
            });
        }
        Ok(usages)
    }
}

fn exhausted(want: &Want, until: LimitTime) -> Acquired {
    Acquired::Exhausted {
        budget: want.budget.clone(),
        until,
    }
}
