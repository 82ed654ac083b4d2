//! Looking a file over, for a person who doubts it. Nothing is changed.

use super::error::refused;
use super::ledger::{self, LedgerFile};
use super::migrate::{self, MIGRATIONS};
use super::open;
use super::schema::APPLICATION_ID;
use crate::OpenMode;
use crate::rules::ledger::Book;
use crate::{StoreError, StoreErrorKind};
use kittiwake_model::{RealTime, RunEnd};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

const BUSY_WAIT: Duration = Duration::from_secs(10);
/// Signs of damage beyond this many are not listed.
const DAMAGE_MAX: usize = 10;

/// What was found of a crawl's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrawlCheck {
    pub schema: i32,
    /// The schema that this program writes.
    pub schema_newest: i32,
    pub bytes: u64,
    /// What is still in the write-ahead log.
    pub wal_bytes: u64,
    /// A living process crawls into it.
    pub held: bool,
    /// Signs of damage, in SQLite's words; none in a sound file.
    pub damage: Vec<String>,
    /// The newest run; unknown in a damaged file.
    pub last_run: Option<RunCheck>,
}

/// The newest run of a crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCheck {
    pub number: i64,
    pub network: String,
    pub host: String,
    pub clock: String,
    pub started: RealTime,
    /// `None` while it runs, or if it was killed.
    pub end: Option<RunEnd>,
}

/// What was found of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerCheck {
    pub rows: u64,
    pub damage: Vec<String>,
}

/// An id of a crawl that begins with a digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumericId<'r> {
    pub network: &'r str,
    /// The definition's type: `user`, `status`, …
    pub kind: &'r str,
    pub id: &'r str,
    /// Whether it is a seed's: typed by a person, or pasted.
    pub of_seed: bool,
}

/// Looks a crawl's file over: whose it is, who holds it, whether it is sound, how its last run
/// ended. Reads all of it.
pub fn crawl(path: &Path) -> Result<CrawlCheck, StoreError> {
    let context = |error: StoreError| error.context(&path.display().to_string());
    crawl_inner(path).map_err(context)
}

fn crawl_inner(path: &Path) -> Result<CrawlCheck, StoreError> {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    check_form(path)?;
    // What belongs to a file lies beside the file itself, not beside a link to it.
    let path = &std::fs::canonicalize(path).map_err(unseen)?;
    let held = is_held(path)?;
    let connection = connect(path)?;
    let schema = migrate::version_of(&connection).map_err(refused)?;
    let damage = damage_of(&connection, "quick_check")?;
    let last_run = if damage.is_empty() {
        last_run(&connection)?
    } else {
        last_run(&connection).unwrap_or_default()
    };
    Ok(CrawlCheck {
        schema,
        schema_newest: MIGRATIONS.last().map_or(0, |step| step.to),
        bytes: size(path),
        wal_bytes: size(&open::beside(path, "-wal")),
        held,
        damage,
        last_run,
    })
}

/// Shows every id that begins with a digit, in no order.
pub fn numeric_ids(path: &Path, mut show: impl FnMut(NumericId<'_>)) -> Result<(), StoreError> {
    check_form(path)?;
    let connection = connect(path)?;
    let mut statement = connection.prepare(
        "SELECT ids.network, ids.type, ids.id, coalesce(subjects.depth = 0, 0)
         FROM ids LEFT JOIN subjects ON subjects.key = ids.key WHERE ids.id GLOB '[0-9]*'",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        show(NumericId {
            network: text(0)?,
            kind: text(1)?,
            id: text(2)?,
            of_seed: row.get(3)?,
        });
    }
    Ok(())
}

/// Looks the ledger over, which has to be there.
pub fn ledger(path: &Path) -> Result<LedgerCheck, StoreError> {
    let context = |error: StoreError| error.context(&path.display().to_string());
    ledger_inner(path).map_err(context)
}

fn ledger_inner(path: &Path) -> Result<LedgerCheck, StoreError> {
    check_form(path)?;
    let connection = ledger::open(path)?;
    let damage = damage_of(&connection, "integrity_check")?;
    let rows = if damage.is_empty() {
        Book::new(&LedgerFile::new(&connection)).rows()?
    } else {
        0
    };
    Ok(LedgerCheck { rows, damage })
}

/// Checks that there is a database. A pipe is not even opened: one would wait for its other end.
fn check_form(path: &Path) -> Result<(), StoreError> {
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(StoreError::new(
            StoreErrorKind::NotOurs,
            "it is not a regular file; name a crawl's file",
        ));
    }
    open::check_form(path, OpenMode::Read).map(|_| ())
}

/// A connection that leaves everything as it is, the write-ahead log too.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match open_with(path, flags) {
        // In a folder that may not be written it is read as it lies there.
        Err(error) if error.kind() == StoreErrorKind::Denied => return open::reader(path),
        other => other?,
    };
    let application_id = migrate::application_id_of(&connection).map_err(refused)?;
    if application_id != APPLICATION_ID {
        return Err(StoreError::new(
            StoreErrorKind::NotOurs,
            "it is a database of another program; name a crawl's file",
        ));
    }
    let version = migrate::version_of(&connection).map_err(refused)?;
    let newest = MIGRATIONS.last().map_or(0, |step| step.to);
    if version > newest {
        return Err(migrate::newer(version, newest));
    }
    Ok(connection)
}

fn open_with(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let connection = Connection::open_with_flags(path, flags).map_err(refused)?;
    connection.busy_timeout(BUSY_WAIT).map_err(refused)?;
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(refused)?;
    connection
        .pragma_update(None, "query_only", true)
        .map_err(refused)?;
    // The first look at the file: it tells whether it can be read at all.
    migrate::application_id_of(&connection).map_err(refused)?;
    Ok(connection)
}

/// Whether a living process crawls into the file. The operating system ends a lock with its
/// process, so a lock file that was left behind means nothing.
fn is_held(path: &Path) -> Result<bool, StoreError> {
    let file = match File::open(open::beside(path, "-lock")) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(unseen(error)),
    };
    // Shared, and for a moment only; it ends with the function.
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(unseen(error)),
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "an error is handed over where it is mapped"
)]
fn unseen(error: std::io::Error) -> StoreError {
    StoreError::new(
        StoreErrorKind::Denied,
        format!("whether somebody crawls into it cannot be seen: {error}"),
    )
}

fn damage_of(connection: &Connection, pragma: &str) -> Result<Vec<String>, StoreError> {
    let found = signs_of_damage(connection, pragma).map_err(refused);
    match found {
        Ok(signs) => Ok(signs),
        Err(error) if error.kind() == StoreErrorKind::Corrupt => Ok(vec![error.to_string()]),
        Err(error) => Err(error),
    }
}

fn signs_of_damage(connection: &Connection, pragma: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("PRAGMA {pragma}({DAMAGE_MAX})"))?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut signs = Vec::new();
    for row in rows {
        signs.extend(Some(row?).filter(|sign| sign != "ok"));
    }
    Ok(signs)
}

fn last_run(connection: &Connection) -> Result<Option<RunCheck>, StoreError> {
    let run = connection
        .prepare(
            "SELECT id, network, host, clock, started_us, ended_us, coalesce(end_reason, '')
             FROM runs ORDER BY id DESC LIMIT 1",
        )?
        .query_row([], |row| {
            let ended: Option<i64> = row.get(5)?;
            let reason = row.get(6)?;
            Ok(RunCheck {
                number: row.get(0)?,
                network: row.get(1)?,
                host: row.get(2)?,
                clock: row.get(3)?,
                started: RealTime(row.get(4)?),
                end: ended.map(|ended| RunEnd {
                    ended: RealTime(ended),
                    reason,
                }),
            })
        })
        .optional()?;
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SqliteStore, Store as _};
    use kittiwake_model::{Commit, RunRecord, RunUpdate, WorldTime};
    use std::io::{Seek as _, SeekFrom, Write as _};
    use std::path::PathBuf;

    async fn started(path: &Path) -> SqliteStore {
        let store = SqliteStore::open(path, OpenMode::Crawl).unwrap();
        let run = RunRecord {
            network: "mastodon".into(),
            host: "h".into(),
            definition: "d".into(),
            definition_text: "text ".repeat(40_000),
            clock: "real".into(),
            settings: "{}".into(),
            started: RealTime(5),
        };
        store
            .commit(vec![update(RunUpdate::Start(Box::new(run)))])
            .await
            .unwrap();
        store
    }

    fn update(run: RunUpdate) -> Commit {
        Commit {
            at: WorldTime(1),
            run: Some(run),
            ..Commit::default()
        }
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crawl.db");
        (folder, path)
    }

    #[tokio::test]
    async fn a_sound_file_is_found_sound_and_left_as_it_is() {
        let (_folder, path) = place();
        let store = started(&path).await;
        let running = crawl(&path).unwrap();
        assert!(running.held);
        assert!(running.wal_bytes > 0);
        assert_eq!(crawl(&path).unwrap(), running);
        let run = running.last_run.unwrap();
        assert_eq!((run.number, &*run.network, run.end), (1, "mastodon", None));

        let end = RunEnd {
            ended: RealTime(9),
            reason: "idle".into(),
        };
        let commit = update(RunUpdate::End {
            run: 1,
            end: end.clone(),
        });
        store.commit(vec![commit]).await.unwrap();
        drop(store);
        let before = std::fs::read(&path).unwrap();
        let ended = crawl(&path).unwrap();
        assert!(!ended.held);
        assert_eq!((ended.schema, ended.damage), (ended.schema_newest, vec![]));
        assert_eq!(ended.last_run.unwrap().end, Some(end));
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[tokio::test]
    async fn the_log_of_a_killed_crawl_is_left_for_its_next_run() {
        let (folder, path) = place();
        let store = started(&path).await;
        // A copy of the files of a living crawl is what a kill leaves.
        let copy = folder.path().join("killed.db");
        let wal = open::beside(&copy, "-wal");
        std::fs::copy(&path, &copy).unwrap();
        std::fs::copy(open::beside(&path, "-wal"), &wal).unwrap();
        drop(store);
        let bytes = std::fs::metadata(&wal).unwrap().len();
        let found = crawl(&copy).unwrap();
        assert!(!found.held);
        assert_eq!(found.last_run.unwrap().end, None);
        assert_eq!(std::fs::metadata(&wal).unwrap().len(), bytes);
    }

    #[tokio::test]
    async fn a_link_to_a_file_is_the_file() {
        let (folder, path) = place();
        let _store = started(&path).await;
        let link = folder.path().join("link.db");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let found = crawl(&link).unwrap();
        assert!(found.held && found.wal_bytes > 0);
    }

    #[tokio::test]
    async fn damage_is_found_wherever_it_is() {
        let (folder, path) = place();
        drop(started(&path).await);
        let sound = std::fs::read(&path).unwrap();
        let page_bytes = super::super::open::PAGE_BYTES as usize;
        let pages = sound.len() / page_bytes;
        assert!(pages > 20);
        // The pages of the first half hold the schema and its trees, not the text, in which no
        // check can tell right bytes from wrong ones.
        let mut found = 0;
        for page in 1..pages / 2 {
            let copy = folder.path().join(format!("{page}.db"));
            std::fs::write(&copy, &sound).unwrap();
            let mut file = std::fs::OpenOptions::new().write(true).open(&copy).unwrap();
            file.seek(SeekFrom::Start((page * page_bytes) as u64))
                .unwrap();
            file.write_all(&vec![0xA5; page_bytes]).unwrap();
            found += usize::from(!crawl(&copy).is_ok_and(|check| check.damage.is_empty()));
        }
        assert!(found * 10 >= (pages / 2 - 1) * 9, "{found} of {pages}");
        // A file that was cut off.
        let copy = folder.path().join("cut.db");
        std::fs::write(&copy, &sound[..sound.len() / 2]).unwrap();
        assert!(!crawl(&copy).is_ok_and(|check| check.damage.is_empty()));
    }

    #[tokio::test]
    async fn files_that_are_not_ours_are_told_apart() {
        let (folder, path) = place();
        assert_eq!(crawl(&path).unwrap_err().kind(), StoreErrorKind::Missing);
        std::fs::write(&path, "hello").unwrap();
        assert_eq!(crawl(&path).unwrap_err().kind(), StoreErrorKind::NotOurs);
        let other = folder.path().join("other.db");
        Connection::open(&other)
            .unwrap()
            .execute_batch("CREATE TABLE t(x)")
            .unwrap();
        assert_eq!(crawl(&other).unwrap_err().kind(), StoreErrorKind::NotOurs);
        let newer = folder.path().join("newer.db");
        drop(started(&newer).await);
        let connection = Connection::open(&newer).unwrap();
        connection
            .pragma_update(None, "user_version", 1000)
            .unwrap();
        drop(connection);
        assert_eq!(crawl(&newer).unwrap_err().kind(), StoreErrorKind::Newer);
    }

    #[tokio::test]
    async fn a_ledger_is_looked_over() {
        let (_folder, path) = place();
        assert_eq!(ledger(&path).unwrap_err().kind(), StoreErrorKind::Missing);
        drop(crate::Ledger::open(&crate::Location::File(path.clone())).unwrap());
        let found = ledger(&path).unwrap();
        assert_eq!((found.rows, found.damage), (0, vec![]));
        std::fs::write(&path, "SQLite format 3\0 and then nothing").unwrap();
        assert!(ledger(&path).is_err());
    }
}
