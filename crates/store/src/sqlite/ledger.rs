//! The ledger's file: one per user of the machine, shared by all processes.

use super::database::SqliteDatabase;
use super::error::refused;
use super::migrate::{self, Migration};
use super::open;
use crate::database::Database;
use crate::rules::ledger::LedgerKeeper;
use crate::rules::ledger_thread::Desk;
use crate::{StoreError, StoreErrorKind};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;

/// "KitL": marks the file as ours.
const APPLICATION_ID: i32 = 0x4B69_744C;
/// Other processes may be waiting for the disk while they hold the file.
const BUSY_WAIT: Duration = Duration::from_secs(30);

const MIGRATIONS: &[Migration] = &[
    Migration {
        to: 1,
        apply: |connection| connection.execute_batch(TABLES),
    },
    Migration {
        to: 2,
        apply: |connection| connection.execute_batch(SECOND),
    },
];

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

/// Grants of every kind of budget, each with the time until which it counts; one that nobody has
/// closed counted in the window after its own, too.
const SECOND: &str = "
ALTER TABLE grants RENAME TO old_grants;
ALTER TABLE observations RENAME TO old_observations;
DROP INDEX grants_by_window;
CREATE TABLE grants(
  id INTEGER PRIMARY KEY AUTOINCREMENT, budget TEXT NOT NULL, units INTEGER NOT NULL,
  until_us INTEGER NOT NULL, window_us INTEGER NOT NULL, closed INTEGER NOT NULL,
  holder TEXT NOT NULL);
CREATE INDEX grants_by_budget ON grants(budget, until_us);
CREATE TABLE observations(
  budget TEXT PRIMARY KEY, units INTEGER NOT NULL, until_us INTEGER NOT NULL,
  window_us INTEGER NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE budgets(
  budget TEXT PRIMARY KEY, unit_limit INTEGER NOT NULL, blocked_us INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE openings(
  budget TEXT PRIMARY KEY, earliest_us INTEGER NOT NULL, latest_us INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE lessons(
  topic TEXT PRIMARY KEY, number INTEGER NOT NULL, at_us INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO grants SELECT id, budget, calls - unused,
  CASE closed WHEN 0 THEN end_us + end_us - start_us ELSE end_us END, start_us, closed, holder
  FROM old_grants WHERE calls > unused;
INSERT INTO grants(budget, units, until_us, window_us, closed, holder)
  SELECT budget, calls, end_us, start_us, 1, holder FROM carries;
INSERT INTO observations SELECT budget, max(foreign_calls), max(end_us), max(start_us), max(used)
  FROM old_observations GROUP BY budget;
INSERT INTO budgets SELECT budget, max(budget_limit), 0 FROM old_grants GROUP BY budget;
INSERT INTO budgets SELECT budget, 0, until_us FROM blocks WHERE true
  ON CONFLICT (budget) DO UPDATE SET blocked_us = excluded.blocked_us;
DROP TABLE old_grants; DROP TABLE old_observations; DROP TABLE carries; DROP TABLE blocks;
";

/// Opens the file and answers whoever asks.
pub(crate) fn serve(path: &Path, is_synced: bool, desk: Desk) -> Result<(), StoreError> {
    let connection = open(path)?;
    if !is_synced {
        connection
            .pragma_update(None, "synchronous", "OFF")
            .map_err(refused)?;
    }
    desk.serve(&LedgerFile::new(&connection), mpsc::Receiver::blocking_recv);
    Ok(())
}

pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    make_folder(path)?;
    open::check_form(path, crate::OpenMode::Crawl)?;
    // Turning a new file to a write-ahead log does not wait for others who do the same.
    let _turn = open::wait_for_turn(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(refused)?;
    connection.busy_timeout(BUSY_WAIT).map_err(refused)?;
    connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
        .map_err(refused)?;
    // A grant has to survive a power cut: calls made out of a lost one would not be counted.
    connection
        .pragma_update(None, "synchronous", "FULL")
        .map_err(refused)?;
    set_up(&mut connection)?;
    Ok(connection)
}

fn set_up(connection: &mut Connection) -> Result<(), StoreError> {
    let found = migrate::application_id_of(connection).map_err(refused)?;
    if found != APPLICATION_ID && (found != 0 || has_tables(connection)?) {
        return Err(StoreError::new(
            StoreErrorKind::NotOurs,
            "it is not a ledger of kittiwake; move the file away",
        ));
    }
    migrate::migrate(connection, APPLICATION_ID, MIGRATIONS)
}

/// The file as the ledger's rules see it.
#[derive(Debug)]
pub(super) struct LedgerFile<'c> {
    connection: &'c Connection,
    database: SqliteDatabase<'c>,
}

impl<'c> LedgerFile<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self {
            connection,
            database: SqliteDatabase::new(connection),
        }
    }
}

impl LedgerKeeper for LedgerFile<'_> {
    fn database(&self) -> &dyn Database {
        &self.database
    }

    fn begin(&self) -> Result<(), StoreError> {
        self.connection
            .execute_batch("BEGIN IMMEDIATE")
            .map_err(refused)
    }

    fn commit(&self) -> Result<(), StoreError> {
        self.connection.execute_batch("COMMIT").map_err(refused)
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::debug!(%error, "a transaction of the ledger could not be undone");
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Acquired, Ledger, Part, Settling, Term, Want};
    use crate::location::Location;
    use kittiwake_model::{BudgetId, LimitTime};

    const WINDOW_US: i64 = 300;

    /// Two grants of the window from 300 to 600 are in it: one of which 20 calls were made, and one
    /// that nobody has closed; calls that were under way when it began; and calls of strangers.
    const FIRST: &str = "
    INSERT INTO grants(id, budget, start_us, end_us, budget_limit, calls, unused, closed, holder)
      VALUES (7, 'token', 300, 600, 100, 25, 5, 1, 'a'), (8, 'token', 300, 600, 100, 10, 0, 0, 'b'),
             (9, 'token', 300, 600, 100, 6, 6, 1, 'a'), (10, 'other', 300, 600, 50, 1, 0, 1, 'a');
    INSERT INTO carries VALUES ('token', 300, 600, 'a', 3);
    INSERT INTO observations VALUES ('token', 300, 600, 40, 4);
    INSERT INTO blocks VALUES ('shut', 700), ('other', 650);
    ";

    fn first_schema(path: &Path) {
        let mut connection = Connection::open(path).unwrap();
        migrate::migrate(&mut connection, APPLICATION_ID, &MIGRATIONS[..1]).unwrap();
        assert_eq!(migrate::version_of(&connection).unwrap(), 1);
        connection.execute_batch(FIRST).unwrap();
    }

    /// Wants all that there is at a time.
    fn want(budget: &str, at_us: i64) -> Want {
        let start_us = at_us - at_us.rem_euclid(WINDOW_US);
        Want {
            budget: BudgetId(budget.to_owned()),
            at: LimitTime(at_us),
            limit: 100,
            call_units: 1,
            calls: 1_000,
            term: Term::Until {
                until: LimitTime(start_us + WINDOW_US),
                window: LimitTime(start_us),
            },
            ask_again: LimitTime(at_us + 1),
            use_us: 0,
            holder: "here".to_owned(),
        }
    }

    /// What is granted, or when to ask again.
    async fn ask(ledger: &Ledger, budget: &str, at_us: i64) -> Result<u64, i64> {
        match ledger.acquire(vec![want(budget, at_us)]).await.unwrap() {
            Acquired::Granted(grants) => Ok(grants[0].units),
            Acquired::Exhausted { until, .. } => Err(until.0),
        }
    }

    #[tokio::test]
    async fn what_counted_in_a_file_of_the_first_schema_still_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("budgets.db");
        first_schema(&path);
        let ledger = Ledger::open_unsynced(&Location::File(path.clone())).unwrap();
        let usages = ledger.usage(LimitTime(400)).await.unwrap();
        let shown: Vec<(&str, u64, u64)> = usages
            .iter()
            .map(|usage| (&*usage.budget.0, usage.used, usage.foreign))
            .collect();
        assert_eq!(
            shown,
            [("other", 1, 0), ("shut", 0, 0), ("token", 37, 4)],
            "20 made, 10 not heard of, 3 carried over, 4 of strangers"
        );
        assert_eq!(ask(&ledger, "token", 400).await, Ok(63));
        assert_eq!(ask(&ledger, "shut", 699).await, Err(700));
        assert_eq!(ask(&ledger, "shut", 700).await, Ok(100));
        assert_eq!(ask(&ledger, "other", 649).await, Err(650));
        // What nobody has closed counts in the window after its own, too.
        assert_eq!(ask(&ledger, "token", 600).await, Ok(90));
        assert_eq!(
            ask(&ledger, "token", 601).await,
            Err(602),
            "until it is closed"
        );
        let settling = Settling {
            grant: 8,
            parts: vec![Part {
                units: 2,
                until: LimitTime(900),
            }],
            open: None,
        };
        ledger.settle(vec![settling]).await.unwrap();
        assert_eq!(ask(&ledger, "token", 602).await, Ok(8));
        assert_eq!(ask(&ledger, "token", 900).await, Ok(100));
    }

    #[test]
    fn a_file_that_was_brought_forward_has_the_tables_of_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old.db"), folder.path().join("new.db"));
        first_schema(&old);
        let tables = |path: &Path| -> Vec<(String, String)> {
            let connection = open(path).unwrap();
            assert_eq!(migrate::version_of(&connection).unwrap(), 2);
            let mut statement = connection
                .prepare("SELECT name, coalesce(sql, '') FROM sqlite_master ORDER BY name")
                .unwrap();
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
            rows.unwrap().collect::<Result<_, _>>().unwrap()
        };
        assert_eq!(tables(&old), tables(&new));
        // A file of this version is left as it is.
        assert_eq!(tables(&old), tables(&new));
    }
}
