//! The ledger's file: one per user of the machine, shared by all processes.

use super::error::refused;
use super::migrate::{self, Migration};
use super::open;
use crate::ledger::{Acquired, BudgetUsage, Carry, Closing, Spent, Want, ask_again_at};
use crate::{StoreError, StoreErrorKind};
use kittiwake_model::{BudgetId, Grant, LimitTime, Window};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use std::cell::RefCell;
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

/// "KitL": marks the file as ours.
const APPLICATION_ID: i32 = 0x4B69_744C;
/// Other processes may be waiting for the disk while they hold the file.
const BUSY_WAIT: Duration = Duration::from_secs(30);
/// Rows of budgets that nobody uses any more are dropped once this many grants were made since.
const GRANTS_KEPT_MAX: i64 = 1_000_000;
/// Grants and names of this process that it remembers as its own.
const OWN_MAX: usize = 100_000;

const MIGRATIONS: &[Migration] = &[Migration {
    to: 1,
    apply: |connection| connection.execute_batch(TABLES),
}];

const TABLES: &str = "
CREATE TABLE grants(
  id INTEGER PRIMARY KEY AUTOINCREMENT, budget TEXT NOT NULL, start_us INTEGER NOT NULL,
  end_us INTEGER NOT NULL, budget_limit INTEGER NOT NULL, calls INTEGER NOT NULL,
  unused INTEGER NOT NULL DEFAULT 0, closed INTEGER NOT NULL DEFAULT 0, holder TEXT NOT NULL);
CREATE INDEX grants_by_window ON grants(budget, end_us);
CREATE TABLE carries(
  budget TEXT NOT NULL, start_us INTEGER NOT NULL, end_us INTEGER NOT NULL, holder TEXT NOT NULL,
  calls INTEGER NOT NULL, PRIMARY KEY (budget, start_us, holder)) WITHOUT ROWID;
CREATE TABLE observations(
  budget TEXT NOT NULL, start_us INTEGER NOT NULL, end_us INTEGER NOT NULL,
  used INTEGER NOT NULL, foreign_calls INTEGER NOT NULL,
  PRIMARY KEY (budget, start_us)) WITHOUT ROWID;
CREATE TABLE blocks(budget TEXT PRIMARY KEY, until_us INTEGER NOT NULL) WITHOUT ROWID;
";

/// The file as one thread of one process sees it. Every method runs inside a transaction that
/// holds the file against other processes.
#[derive(Debug)]
pub(crate) struct LedgerFile {
    pub(super) connection: Connection,
    /// Grants that were given out through this connection and are not closed.
    own: RefCell<HashSet<i64>>,
    /// The names under which this process has asked.
    holders: RefCell<HashSet<String>>,
}

impl LedgerFile {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        make_folder(path)?;
        open::check_form(path, crate::OpenMode::Crawl)?;
        // Turning a new file to a write-ahead log does not wait for others who do the same.
        let _turn = open::wait_for_turn(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(refused)?;
        connection.busy_timeout(BUSY_WAIT).map_err(refused)?;
        connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
            .map_err(refused)?;
        // A grant has to survive a power cut: calls made out of a lost one would not be counted.
        connection
            .pragma_update(None, "synchronous", "FULL")
            .map_err(refused)?;
        Self::set_up(connection)
    }

    fn set_up(mut connection: Connection) -> Result<Self, StoreError> {
        let found = migrate::application_id_of(&connection).map_err(refused)?;
        if found != APPLICATION_ID && (found != 0 || has_tables(&connection)?) {
            return Err(StoreError::new(
                StoreErrorKind::NotOurs,
                "it is not a ledger of kittiwake; move the file away",
            ));
        }
        migrate::migrate(&mut connection, APPLICATION_ID, MIGRATIONS)?;
        Ok(Self {
            connection,
            own: RefCell::new(HashSet::new()),
            holders: RefCell::new(HashSet::new()),
        })
    }

    /// For simulations, which have no power cuts.
    #[cfg(test)]
    pub(super) fn open_unsynced(path: &Path) -> Self {
        let file = Self::open(path).unwrap();
        file.connection
            .pragma_update(None, "synchronous", "OFF")
            .unwrap();
        file
    }

    fn execute(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<usize, StoreError> {
        self.connection
            .prepare_cached(sql)?
            .execute(parameters)
            .map_err(refused)
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
        self.execute(
            "INSERT INTO grants(budget, start_us, end_us, budget_limit, calls, holder)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                want.budget.0,
                want.window.start.0,
                want.window.end.0,
                want.limit,
                calls,
                want.holder
            ],
        )?;
        let id = self.connection.last_insert_rowid();
        let mut own = self.own.borrow_mut();
        if own.len() < OWN_MAX {
            own.insert(id);
        }
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
            self.execute(
                "UPDATE grants SET closed = 1, unused = min(?2, calls)
                 WHERE id = ?1 AND closed = 0",
                params![closing.grant, closing.unused],
            )?;
            self.own.borrow_mut().remove(&closing.grant);
        }
        Ok(())
    }

    pub(crate) fn carry(&self, carries: &[Carry]) -> Result<(), StoreError> {
        for carry in carries {
            self.remember(&carry.holder);
            self.execute(
                "INSERT INTO carries(budget, start_us, end_us, holder, calls)
                 VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET calls = max(calls, excluded.calls)",
                params![
                    carry.budget.0,
                    carry.window.start.0,
                    carry.window.end.0,
                    carry.holder,
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
        let last_used: i64 = self
            .connection
            .prepare_cached("SELECT used FROM observations WHERE budget = ?1 AND start_us = ?2")?
            .query_row(params![budget.0, window.start.0], |row| row.get(0))
            .optional()?
            .unwrap_or(0);
        // The server's count only grows within a window, so a greater one is a later one and
        // replaces what was known before. While others hold grants that nobody here can follow,
        // it can only lower the budget.
        let is_later = i64::from(used_by_server) >= last_used;
        let may_raise = is_later && !self.others_have_grants(budget, window)?;
        let foreign = if may_raise {
            foreign
        } else {
            foreign.max(spent.foreign)
        };
        if foreign == spent.foreign && !is_later {
            return Ok(());
        }
        self.execute(
            "INSERT INTO observations(budget, start_us, end_us, used, foreign_calls)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET used = max(used, excluded.used),
                                       foreign_calls = excluded.foreign_calls",
            params![
                budget.0,
                window.start.0,
                window.end.0,
                used_by_server,
                i64::try_from(foreign).unwrap_or(i64::MAX)
            ],
        )?;
        Ok(())
    }

    /// Calls that this process itself has carried into the window.
    fn own_carried(&self, budget: &BudgetId, window: Window) -> Result<u64, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT holder, calls FROM carries WHERE budget = ?1 AND start_us = ?2",
        )?;
        let mut rows = statement.query(params![budget.0, window.start.0])?;
        let holders = self.holders.borrow();
        let mut calls = 0_u64;
        while let Some(row) = rows.next()? {
            if holders.contains(row.get_ref(0)?.as_str().unwrap_or_default()) {
                calls += u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default();
            }
        }
        Ok(calls)
    }

    fn others_have_grants(&self, budget: &BudgetId, window: Window) -> Result<bool, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT id FROM grants
             WHERE budget = ?1 AND end_us = ?2 AND start_us = ?3 AND closed = 0",
        )?;
        let mut rows = statement.query(params![budget.0, window.end.0, window.start.0])?;
        let own = self.own.borrow();
        while let Some(row) = rows.next()? {
            if !own.contains(&row.get(0)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(crate) fn block(&self, budget: &BudgetId, until: LimitTime) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO blocks(budget, until_us) VALUES (?1, ?2)
             ON CONFLICT DO UPDATE SET until_us = max(until_us, excluded.until_us)",
            params![budget.0, until.0],
        )?;
        Ok(())
    }

    fn blocked_until(&self, budget: &BudgetId) -> Result<Option<LimitTime>, StoreError> {
        Ok(self
            .connection
            .prepare_cached("SELECT until_us FROM blocks WHERE budget = ?1")?
            .query_row([&budget.0], |row| Ok(LimitTime(row.get(0)?)))
            .optional()?)
    }

    /// Everything that counts against one window.
    pub(crate) fn spent(&self, budget: &BudgetId, window: Window) -> Result<Spent, StoreError> {
        let length_us = window.end.since_us(window.start);
        let mut statement = self.connection.prepare_cached(
            "SELECT
               (SELECT coalesce(sum(calls - unused), 0) FROM grants
                WHERE budget = ?1 AND end_us = ?3 AND start_us = ?2),
               (SELECT coalesce(sum(calls), 0) FROM carries WHERE budget = ?1 AND start_us = ?2),
               (SELECT coalesce(sum(calls - unused), 0) FROM grants
                WHERE budget = ?1 AND end_us > ?2 - ?4 AND end_us <= ?2 AND closed = 0),
               (SELECT coalesce(max(foreign_calls), 0) FROM observations
                WHERE budget = ?1 AND start_us = ?2)",
        )?;
        let spent = statement.query_row(
            params![budget.0, window.start.0, window.end.0, length_us],
            |row| {
                let number = |place| -> rusqlite::Result<u64> {
                    Ok(u64::try_from(row.get::<_, i64>(place)?).unwrap_or_default())
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
        )?;
        Ok(spent)
    }

    /// Keeps the file small: of each budget only the last windows matter. Budgets may run on
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
            self.execute(sql, params![want.budget.0, before_us])?;
        }
        self.execute(
            "DELETE FROM grants WHERE id <= (SELECT max(id) FROM grants) - ?1",
            [GRANTS_KEPT_MAX],
        )?;
        Ok(())
    }

    pub(crate) fn rows(&self) -> Result<u64, StoreError> {
        let rows: i64 = self.connection.query_row(
            "SELECT (SELECT count(*) FROM grants) + (SELECT count(*) FROM carries)
                  + (SELECT count(*) FROM observations) + (SELECT count(*) FROM blocks)",
            [],
            |row| row.get(0),
        )?;
        Ok(u64::try_from(rows).unwrap_or_default())
    }

    pub(crate) fn usage(&self, at: LimitTime) -> Result<Vec<BudgetUsage>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT budget, start_us, end_us,
                    max((SELECT g.budget_limit FROM grants AS g WHERE g.budget = b.budget
                         AND g.end_us = b.end_us ORDER BY g.id DESC LIMIT 1))
             FROM (SELECT budget, start_us, end_us FROM grants
                   UNION SELECT budget, start_us, end_us FROM carries
                   UNION SELECT budget, start_us, end_us FROM observations) AS b
             WHERE start_us <= ?1 AND ?1 < end_us GROUP BY 1, 2, 3 ORDER BY 1, 2",
        )?;
        let windows: Vec<(BudgetId, Window, Option<u32>)> = statement
            .query_map([at.0], |row| {
                let window = Window {
                    start: LimitTime(row.get(1)?),
                    end: LimitTime(row.get(2)?),
                };
                Ok((BudgetId(row.get(0)?), window, row.get(3)?))
            })?
            .collect::<Result<_, _>>()?;
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

fn has_tables(connection: &Connection) -> Result<bool, StoreError> {
    Ok(connection
        .prepare("SELECT 1 FROM sqlite_master LIMIT 1")?
        .exists([])?)
}

/// The folder is for its owner only: the ledger tells which accounts somebody crawls with.
fn make_folder(path: &Path) -> Result<(), StoreError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => folder,
        _ => return Ok(()),
    };
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| {
        StoreError::new(
            StoreErrorKind::Denied,
            format!("the folder {} cannot be made: {error}", folder.display()),
        )
    })
}
