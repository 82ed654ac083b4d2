//! The rules of the ledger, for a file and for a server.

use crate::StoreError;
use crate::cell::cells;
use crate::database::Database;
use crate::ledger::{
    Acquired, BudgetUsage, Grant, Lesson, Observed, Opened, Part, Settling, Term, Want,
};
use kittiwake_model::{BudgetId, LimitTime};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

/// Rows of budgets that nobody uses any more are dropped once this many grants were made since.
const GRANTS_KEPT_MAX: i64 = 1_000_000;
/// Lessons that are remembered at once; the oldest go first.
const LESSONS_MAX: i64 = 100_000;
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

    pub(crate) fn acquire(&self, wants: &[Want]) -> Result<Acquired, StoreError> {
        let mut offers = Vec::with_capacity(wants.len());
        for want in wants {
            match self.offer(want)? {
                Ok(offer) => offers.push(offer),
                Err(until) => {
                    return Ok(Acquired::Exhausted {
                        budget: want.budget.clone(),
                        until,
                    });
                }
            }
        }
        // Each call takes of every budget: what one of them lacks is of no use in the others.
        let calls = offers.iter().map(|offer| offer.calls).min().unwrap_or(0);
        let mut grants = Vec::with_capacity(wants.len());
        for (want, offer) in wants.iter().zip(offers) {
            grants.push(self.grant(want, offer, calls)?);
        }
        Ok(Acquired::Granted(grants))
    }

    /// What can be granted, or when it is worth asking again.
    fn offer(&self, want: &Want) -> Result<Result<Offer, LimitTime>, StoreError> {
        let blocked_until = self.blocked_until(&want.budget)?;
        if let Some(until) = blocked_until.filter(|until| *until > want.at) {
            return Ok(Err(until));
        }
        self.forget_what_is_over(want)?;
        let opening = match want.term {
            Term::Until { .. } => None,
            Term::FromFirst {
                length_us,
                drain_us,
                transit_us,
            } => match self.opening(want, length_us, drain_us, transit_us)? {
                Ok(opening) => Some(opening),
                Err(until) => return Ok(Err(until)),
            },
        };
        let counting = self.counting(&want.budget, want.at)?;
        let left = want.limit.saturating_sub(counting.units);
        let calls = left / want.call_units.max(1);
        if calls == 0 {
            let until = counting.first_back.unwrap_or(want.ask_again);
            // Whoever holds a grant may hand some of it back.
            let until = if counting.is_settled {
                until
            } else {
                until.min(want.ask_again)
            };
            return Ok(Err(until));
        }
        Ok(Ok(Offer {
            calls: u32::try_from(calls)
                .unwrap_or(u32::MAX)
                .min(want.calls.max(1)),
            others: counting.units,
            spent_by_others: self.spent_by_others(want)?,
            opening,
        }))
    }

    fn grant(&self, want: &Want, offer: Offer, calls: u32) -> Result<Grant, StoreError> {
        let units = want.call_units.saturating_mul(u64::from(calls));
        let (until, window) = match (want.term, offer.opening) {
            (Term::Until { until, window }, _) => (until, window),
            // Should nobody be heard of any more, it counts in the window after, too.
            (Term::FromFirst { length_us, .. }, Some(opened)) => {
                self.open(&want.budget, opened)?;
                (opened.latest.plus_us(2 * length_us), opened.earliest)
            }
            (Term::FromFirst { .. }, None) => {
                return Err(StoreError::invalid(
                    "a window that begins with a call and is not open",
                ));
            }
        };
        let id = self.insert(
            &want.budget,
            Part { units, until },
            window,
            &want.holder,
            false,
        )?;
        self.database().send(
            "INSERT INTO budgets AS known(budget, unit_limit, blocked_us) VALUES (?1, ?2, 0)
             ON CONFLICT (budget) DO UPDATE SET unit_limit = excluded.unit_limit
             WHERE known.unit_limit <> excluded.unit_limit"
                .into(),
            cells![&*want.budget.0, number(want.limit)],
        )?;
        self.fresh.borrow_mut().push(id);
        self.remember(&want.holder);
        Ok(Grant {
            id,
            budget: want.budget.clone(),
            units,
            others: offer.others,
            spent_by_others: offer.spent_by_others,
            opened: offer.opening,
        })
    }

    fn insert(
        &self,
        budget: &BudgetId,
        part: Part,
        window: LimitTime,
        holder: &str,
        is_closed: bool,
    ) -> Result<i64, StoreError> {
        self.database().only(
            "INSERT INTO grants(budget, units, until_us, window_us, closed, holder)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING id",
            cells![
                &*budget.0,
                number(part.units),
                part.until.0,
                window.0,
                i64::from(is_closed),
                holder
            ],
            |row| row.get(0),
        )
    }

    fn remember(&self, holder: &str) {
        let mut holders = self.holders.borrow_mut();
        if !holders.contains(holder) && holders.len() < OWN_MAX {
            holders.insert(holder.to_owned());
        }
    }

    /// The window that begins with a call, as it is open or would be opened now; or when nothing of
    /// the last one can be open any more.
    fn opening(
        &self,
        want: &Want,
        length_us: i64,
        drain_us: i64,
        transit_us: i64,
    ) -> Result<Result<Opened, LimitTime>, StoreError> {
        let last = self.opened(&want.budget)?;
        let fresh = Opened {
            earliest: want.at,
            latest: want.at.plus_us(transit_us),
        };
        let Some(last) = last else {
            return Ok(Ok(fresh));
        };
        let (first_end, last_end) = (
            last.earliest.plus_us(length_us),
            last.latest.plus_us(length_us),
        );
        if want.at < first_end.plus_us(-drain_us) {
            return Ok(Ok(last));
        }
        if want.at < last_end {
            return Ok(Err(last_end));
        }
        // A call of the last window that may still be under way, or came late, may have opened the
        // next one when the last was over.
        let is_doubtful: bool = self.database().only(
            "SELECT CAST(count(*) AS BIGINT) FROM grants
             WHERE budget = ?1 AND window_us = ?2 AND until_us > ?3",
            cells![&*want.budget.0, last.earliest.0, want.at.0],
            |row| Ok(row.get::<i64>(0)? > 0),
        )?;
        let earliest = if is_doubtful { first_end } else { want.at };
        // The window that it may have opened has to be over for certain, or be counted in.
        if is_doubtful && want.at >= earliest.plus_us(length_us - drain_us) {
            return Ok(Err(last_end.plus_us(length_us)));
        }
        Ok(Ok(Opened { earliest, ..fresh }))
    }

    fn opened(&self, budget: &BudgetId) -> Result<Option<Opened>, StoreError> {
        self.database().first(
            "SELECT earliest_us, latest_us FROM openings WHERE budget = ?1",
            cells![&*budget.0],
            |row| {
                Ok(Opened {
                    earliest: LimitTime(row.get(0)?),
                    latest: LimitTime(row.get(1)?),
                })
            },
        )
    }

    fn open(&self, budget: &BudgetId, opened: Opened) -> Result<(), StoreError> {
        self.database().send(
            "INSERT INTO openings AS known(budget, earliest_us, latest_us) VALUES (?1, ?2, ?3)
             ON CONFLICT (budget)
             DO UPDATE SET earliest_us = excluded.earliest_us, latest_us = excluded.latest_us
             WHERE known.earliest_us <> excluded.earliest_us"
                .into(),
            cells![&*budget.0, opened.earliest.0, opened.latest.0],
        )
    }

    pub(crate) fn narrow(
        &self,
        budget: &BudgetId,
        window: LimitTime,
        bounds: Opened,
        length_us: i64,
    ) -> Result<(), StoreError> {
        let Some(known) = self.opened(budget)?.filter(|it| it.earliest == window) else {
            return Ok(());
        };
        let latest = known.latest.min(bounds.latest);
        // The name of a window is when it began at the earliest: that stays, and so does the doubt.
        if latest >= known.latest {
            return Ok(());
        }
        self.database().send(
            "UPDATE openings SET latest_us = ?2 WHERE budget = ?1".into(),
            cells![&*budget.0, latest.0],
        )?;
        let shorter_us = known.latest.since_us(latest);
        let last_end = latest.plus_us(length_us);
        self.database().send(
            "UPDATE grants SET until_us = max(until_us - ?3, ?4)
             WHERE budget = ?1 AND window_us = ?2 AND until_us > ?4"
                .into(),
            cells![&*budget.0, window.0, shorter_us, last_end.0],
        )
    }

    pub(crate) fn settle(&self, settlings: &[Settling]) -> Result<(), StoreError> {
        for settling in settlings {
            let known: Option<(String, i64, String)> = self.database().first(
                "SELECT budget, window_us, holder FROM grants WHERE id = ?1 AND closed = 0",
                cells![settling.grant],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )?;
            // A grant that is closed twice is closed once.
            let Some((budget, window_us, holder)) = known else {
                continue;
            };
            let budget = BudgetId(budget);
            for part in settling.parts.iter().filter(|part| part.units > 0) {
                self.insert(&budget, *part, LimitTime(window_us), &holder, true)?;
            }
            if let Some(open) = settling.open {
                self.database().send(
                    "UPDATE grants SET units = ?2, until_us = ?3 WHERE id = ?1".into(),
                    cells![settling.grant, number(open.units), open.until.0],
                )?;
                continue;
            }
            self.database().send(
                "DELETE FROM grants WHERE id = ?1".into(),
                cells![settling.grant],
            )?;
            self.own.borrow_mut().remove(&settling.grant);
        }
        Ok(())
    }

    pub(crate) fn observe(&self, observed: &Observed) -> Result<(), StoreError> {
        let Observed { budget, at, .. } = observed;
        let ours = self.known_to_the_server(observed)?;
        let foreign = (observed.used + observed.unreflected).saturating_sub(ours);
        let known: Option<(u64, i64, u64)> = self.database().first(
            "SELECT units, window_us, used FROM observations WHERE budget = ?1 AND until_us > ?2",
            cells![&*budget.0, at.0],
            |row| Ok((unsigned(row.get(0)?), row.get(1)?, unsigned(row.get(2)?))),
        )?;
        let known = known.filter(|(_, window_us, _)| *window_us == observed.window.0);
        let (known_foreign, known_used) = known.map_or((0, 0), |(units, _, used)| (units, used));
        // Within a window the server's count only grows, so a greater one is a later one and
        // replaces what was known before. While others hold grants that nobody here can follow, it
        // can only lower the budget.
        let is_later = observed.window.0 != 0 && observed.used >= known_used;
        let foreign = if is_later && !self.others_have_grants(budget, *at)? {
            foreign
        } else {
            foreign.max(known_foreign)
        };
        if foreign == known_foreign && !is_later {
            return Ok(());
        }
        self.database().send(
            "INSERT INTO observations AS known(budget, units, until_us, window_us, used)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (budget) DO UPDATE SET units = excluded.units,
               until_us = excluded.until_us, window_us = excluded.window_us, used = excluded.used"
                .into(),
            cells![
                &*budget.0,
                number(foreign),
                observed.until.0,
                observed.window.0,
                number(observed.used.max(known_used))
            ],
        )
    }

    /// Units that are known to be in the server's count, or will be: all of the same window, and of
    /// earlier ones those of this process.
    fn known_to_the_server(&self, observed: &Observed) -> Result<u64, StoreError> {
        let holders = self.holders.borrow();
        // A window that began with a call is known to who draws from it, and to the ledger.
        let opened = self.opened(&observed.budget)?.map(|opened| opened.earliest);
        let window = match observed.window {
            LimitTime(0) => opened.unwrap_or(LimitTime(0)),
            window => window,
        };
        let mut units = 0_u64;
        self.database().each(
            "SELECT units, window_us, holder FROM grants WHERE budget = ?1 AND until_us > ?2",
            cells![&*observed.budget.0, observed.at.0],
            |row| {
                let is_now = row.get::<i64>(1)? == window.0;
                if is_now || holders.contains(&*row.text(2)?) {
                    units = units.saturating_add(unsigned(row.get(0)?));
                }
                Ok(())
            },
        )?;
        Ok(units)
    }

    fn others_have_grants(&self, budget: &BudgetId, at: LimitTime) -> Result<bool, StoreError> {
        let (own, fresh) = (self.own.borrow(), self.fresh.borrow());
        let mut others = false;
        self.database().each(
            "SELECT id FROM grants WHERE budget = ?1 AND until_us > ?2 AND closed = 0",
            cells![&*budget.0, at.0],
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
            "INSERT INTO budgets AS known(budget, unit_limit, blocked_us) VALUES (?1, 0, ?2)
             ON CONFLICT (budget)
             DO UPDATE SET blocked_us = max(known.blocked_us, excluded.blocked_us)"
                .into(),
            cells![&*budget.0, until.0],
        )
    }

    fn blocked_until(&self, budget: &BudgetId) -> Result<Option<LimitTime>, StoreError> {
        self.database().first(
            "SELECT blocked_us FROM budgets WHERE budget = ?1",
            cells![&*budget.0],
            |row| Ok(LimitTime(row.get(0)?)),
        )
    }

    /// Everything that counts against a budget.
    fn counting(&self, budget: &BudgetId, at: LimitTime) -> Result<Counting, StoreError> {
        self.database().only(
            "SELECT CAST(coalesce(sum(units), 0) AS BIGINT), min(until_us),
                    CAST(coalesce(sum(1 - closed), 0) AS BIGINT)
             FROM (SELECT units, until_us, closed FROM grants WHERE budget = ?1 AND until_us > ?2
                   UNION ALL
                   SELECT units, until_us, 1 FROM observations
                   WHERE budget = ?1 AND until_us > ?2 AND units > 0) AS counting",
            cells![&*budget.0, at.0],
            |row| {
                Ok(Counting {
                    units: unsigned(row.get(0)?),
                    first_back: row.get::<Option<i64>>(1)?.map(LimitTime),
                    is_settled: row.get::<i64>(2)? == 0,
                })
            },
        )
    }

    /// Units that others have settled, and that will count for as long as the grant is used.
    fn spent_by_others(&self, want: &Want) -> Result<u64, StoreError> {
        let holders = self.holders.borrow();
        let mut units = 0_u64;
        self.database().each(
            "SELECT units, holder FROM grants WHERE budget = ?1 AND until_us > ?2 AND closed = 1",
            cells![&*want.budget.0, want.at.plus_us(want.use_us).0],
            |row| {
                if !holders.contains(&*row.text(1)?) {
                    units = units.saturating_add(unsigned(row.get(0)?));
                }
                Ok(())
            },
        )?;
        Ok(units)
    }

    /// Keeps the ledger small. Budgets may run on different clocks, so each is measured by its own.
    fn forget_what_is_over(&self, want: &Want) -> Result<(), StoreError> {
        for sql in [
            "DELETE FROM grants WHERE budget = ?1 AND until_us <= ?2",
            "DELETE FROM observations WHERE budget = ?1 AND until_us <= ?2",
        ] {
            self.database()
                .send(sql.into(), cells![&*want.budget.0, want.at.0])?;
        }
        self.database().send(
            "DELETE FROM grants WHERE id <= (SELECT max(id) FROM grants) - ?1".into(),
            cells![GRANTS_KEPT_MAX],
        )
    }

    pub(crate) fn learn(&self, lesson: &Lesson) -> Result<(), StoreError> {
        self.database().send(
            "INSERT INTO lessons(topic, number, at_us) VALUES (?1, ?2, ?3)
             ON CONFLICT (topic) DO UPDATE SET number = excluded.number, at_us = excluded.at_us"
                .into(),
            cells![&*lesson.topic, lesson.number, lesson.at.0],
        )?;
        self.database().send(
            "DELETE FROM lessons WHERE (SELECT count(*) FROM lessons) > ?1
             AND at_us = (SELECT min(at_us) FROM lessons)"
                .into(),
            cells![LESSONS_MAX],
        )
    }

    pub(crate) fn lessons(&self, prefix: &str) -> Result<Vec<Lesson>, StoreError> {
        self.database().all(
            "SELECT topic, number, at_us FROM lessons
             WHERE substr(topic, 1, length(?1)) = ?1 ORDER BY topic",
            cells![prefix],
            |row| {
                Ok(Lesson {
                    topic: row.get(0)?,
                    number: row.get(1)?,
                    at: LimitTime(row.get(2)?),
                })
            },
        )
    }

    pub(crate) fn rows(&self) -> Result<u64, StoreError> {
        let rows: i64 = self.database().only(
            "SELECT (SELECT count(*) FROM grants) + (SELECT count(*) FROM openings)
                  + (SELECT count(*) FROM observations) + (SELECT count(*) FROM budgets)",
            &[],
            |row| row.get(0),
        )?;
        Ok(unsigned(rows))
    }

    pub(crate) fn usage(&self, at: LimitTime) -> Result<Vec<BudgetUsage>, StoreError> {
        let budgets: Vec<(BudgetId, u64, LimitTime, u64)> = self.database().all(
            "SELECT b.budget, b.unit_limit, b.blocked_us,
                    (SELECT CAST(coalesce(max(o.units), 0) AS BIGINT) FROM observations AS o
                     WHERE o.budget = b.budget AND o.until_us > ?1)
             FROM budgets AS b ORDER BY b.budget",
            cells![at.0],
            |row| {
                Ok((
                    BudgetId(row.get(0)?),
                    unsigned(row.get(1)?),
                    LimitTime(row.get(2)?),
                    unsigned(row.get(3)?),
                ))
            },
        )?;
        let mut usages = Vec::with_capacity(budgets.len());
        for (budget, limit, blocked, foreign) in budgets {
            let counting = self.counting(&budget, at)?;
            let blocked_until = (blocked > at).then_some(blocked);
            if counting.units == 0 && blocked_until.is_none() {
                continue;
            }
            usages.push(BudgetUsage {
                budget,
                limit,
                used: counting.units,
                foreign,
                resets: counting.first_back,
                blocked_until,
            });
        }
        Ok(usages)
    }
}

/// What a budget can give now.
#[derive(Debug, Clone, Copy)]
struct Offer {
    calls: u32,
    /// What counts already.
    others: u64,
    spent_by_others: u64,
    opening: Option<Opened>,
}

/// What counts against a budget.
#[derive(Debug, Clone, Copy)]
struct Counting {
    units: u64,
    /// When the first of it comes back.
    first_back: Option<LimitTime>,
    /// Whether nobody can hand back any of it.
    is_settled: bool,
}

/// Units as a database keeps numbers.
fn number(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
