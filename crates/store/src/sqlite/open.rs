//! Opening a file: whose it is, who holds it, and how it is set up.

use super::error::refused;
use super::head;
use super::migrate::{self, MIGRATIONS};
use super::schema::APPLICATION_ID;
use crate::OpenMode;
use crate::{StoreError, StoreErrorKind};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

const SQLITE_MAGIC: &[u8; 16] = b"SQLite format 3\0";
const BUSY_WAIT: Duration = Duration::from_secs(10);
/// How often and how long a crawl waits for somebody who only looks at its lock.
const LOOKS_MAX: usize = 25;
const LOOK_WAIT: Duration = Duration::from_millis(20);
/// Prepared statements that a connection keeps: all of ours fit.
const STATEMENTS_MAX: usize = 256;
/// A post takes one to two kilobytes: larger pages than SQLite's own 4 096 bytes mean fewer writes.
pub(super) const PAGE_BYTES: i64 = 8_192;
/// Pages in the write-ahead log before the writer itself moves them into the file (384 MiB);
/// mostly they have been moved beside it before that.
const CHECKPOINT_PAGES: i64 = 49_152;
/// What the write-ahead log is cut down to after somebody's long reading made it grow.
const LOG_BYTES_MAX: i64 = 2 * 64 * 1024 * 1024;
/// The writer's pages in memory. Eight times as many brought nothing measurable: what is appended
/// to and the upper levels of the indexes fit.
const CACHE_KIB: i64 = 16_384;

/// The right to crawl into a file. It ends with the process, however that ends, because the
/// operating system holds it.
#[derive(Debug)]
pub(super) struct CrawlLock {
    _file: File,
}

/// Checks what lies at `path` before it is opened.
pub(super) fn check_file(path: &Path, mode: OpenMode) -> Result<(), StoreError> {
    if check_form(path, mode)? {
        check_owner(path, mode)?;
    }
    Ok(())
}

/// Checks that there is a database, or nothing yet; says whether there is one.
pub(super) fn check_form(path: &Path, mode: OpenMode) -> Result<bool, StoreError> {
    let head = match head::read(path, SQLITE_MAGIC.len()) {
        Ok(head) => head,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return match mode {
                OpenMode::Crawl => check_folder(path).map(|()| false),
                OpenMode::Read => Err(StoreError::new(
                    StoreErrorKind::Missing,
                    "there is no such file; check the name",
                )),
            };
        }
        Err(error) => {
            return Err(StoreError::new(
                StoreErrorKind::Denied,
                format!("the file cannot be read: {error}"),
            ));
        }
    };
    if !head.is_file {
        return Err(not_ours("it is not a regular file"));
    }
    let head = head.bytes;
    match (head.is_empty(), mode) {
        (true, OpenMode::Crawl) => Ok(false),
        (true, OpenMode::Read) => Err(not_ours("it is empty")),
        (false, _) if head == SQLITE_MAGIC => Ok(true),
        (false, _) => Err(not_ours("it is not a kittiwake file")),
    }
}

/// Looks whose database it is before anything is made beside it.
fn check_owner(path: &Path, mode: OpenMode) -> Result<(), StoreError> {
    let connection = unlocked(path)?;
    match check_ownership(&connection, mode) {
        // Whether it can be read after all is tried later.
        Err(error) if error.kind() == StoreErrorKind::Denied => Ok(()),
        other => other,
    }
}

/// A connection that creates nothing. It may write where that is allowed, so that the last one
/// out can tidy up the log of a crawl that was killed; SQLite itself falls back to reading.
fn unlocked(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(refused)?;
    connection.busy_timeout(BUSY_WAIT).map_err(refused)?;
    Ok(connection)
}

fn check_folder(path: &Path) -> Result<(), StoreError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => return Ok(()),
    };
    if folder.is_dir() {
        return Ok(());
    }
    Err(StoreError::new(
        StoreErrorKind::Missing,
        format!(
            "the folder {} does not exist; make it first",
            folder.display()
        ),
    ))
}

fn not_ours(what: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::NotOurs,
        format!("{what}; name another file, or one that does not exist yet"),
    )
}

/// Takes the right to crawl into the file, or says who has it.
pub(super) fn lock(path: &Path) -> Result<CrawlLock, StoreError> {
    let lock_path = beside(&real_path(path), "-lock");
    let file = lock_file(&lock_path)?;
    // Whoever only looks whether the file is crawled (see [`is_locked`]) is gone at once.
    for _ in 0..LOOKS_MAX {
        match file.try_lock() {
            Ok(()) => return Ok(CrawlLock { _file: file }),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK_WAIT),
            Err(TryLockError::Error(error)) => return Err(not_lockable(&lock_path, &error)),
        }
    }
    Err(StoreError::new(
        StoreErrorKind::Locked,
        "another kittiwake is crawling into this file; wait for it, or take another file",
    ))
}

/// Whether a process that is alive has the right to crawl into the file.
pub(super) fn is_locked(path: &Path) -> Result<bool, StoreError> {
    let lock_path = beside(&real_path(path), "-lock");
    let file = match File::open(&lock_path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(not_lockable(&lock_path, &error)),
    };
    // Shared, so that two who look do not take each other for a crawl.
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(not_lockable(&lock_path, &error)),
    }
}

fn not_lockable(lock_path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::new(
        StoreErrorKind::Denied,
        format!("{} cannot be locked: {error}", lock_path.display()),
    )
}

fn lock_file(lock_path: &Path) -> Result<File, StoreError> {
    let opened = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(lock_path);
    opened.map_err(|error| {
        StoreError::new(
            StoreErrorKind::Denied,
            format!("{} cannot be made: {error}", lock_path.display()),
        )
    })
}

/// Waits until no other process is making the file at `path`; holds them off until dropped.
pub(super) fn wait_for_turn(path: &Path) -> Result<CrawlLock, StoreError> {
    let lock_path = beside(&real_path(path), "-lock");
    let file = lock_file(&lock_path)?;
    file.lock()
        .map_err(|error| not_lockable(&lock_path, &error))?;
    Ok(CrawlLock { _file: file })
}

/// The one path of a file that may have several: a link is another name, not another file.
pub(super) fn real_path(path: &Path) -> PathBuf {
    const LINKS_MAX: usize = 40;
    if let Ok(found) = std::fs::canonicalize(path) {
        return found;
    }
    // Not there yet: links may lead to where it will be.
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = std::fs::read_link(&path) else {
            break;
        };
        path = match path.parent() {
            Some(folder) => folder.join(target),
            None => target,
        };
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match (std::fs::canonicalize(folder), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// What tells a file from another that has taken its place.
pub(super) type FileMark = (u64, u64);

/// `None` if nothing is there.
pub(super) fn mark_of(path: &Path) -> Option<FileMark> {
    let metadata = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        Some((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let made = metadata.created().ok()?;
        let made = made
            .duration_since(std::time::SystemTime::UNIX_EPOCH)
            .ok()?;
        Some((made.as_secs(), made.subsec_nanos().into()))
    }
}

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The connection that writes: makes or brings forward the schema.
pub(super) fn writer(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(refused)?;
    connection.busy_timeout(BUSY_WAIT).map_err(refused)?;
    check_ownership(&connection, OpenMode::Crawl)?;
    // Of a file that is there already, it stays what it was.
    connection
        .pragma_update(None, "page_size", PAGE_BYTES)
        .map_err(refused)?;
    let journal: String = connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(refused)?;
    if journal != "wal" {
        return Err(StoreError::new(
            StoreErrorKind::Other,
            "the file system does not allow a write-ahead log; take a file on a local disk",
        ));
    }
    for (name, value) in [
        // A kill loses nothing; a power cut may lose the last commits, which are crawled again.
        ("synchronous", "NORMAL".to_owned()),
        ("wal_autocheckpoint", CHECKPOINT_PAGES.to_string()),
        ("journal_size_limit", LOG_BYTES_MAX.to_string()),
        ("cache_size", (-CACHE_KIB).to_string()),
        ("temp_store", "MEMORY".to_owned()),
    ] {
        // Some of these answer with the new value.
        connection
            .execute_batch(&format!("PRAGMA {name} = {value}"))
            .map_err(refused)?;
    }
    keep_statements(&connection)?;
    migrate::migrate(&mut connection, APPLICATION_ID, MIGRATIONS)?;
    migrate::complete(&mut connection)?;
    Ok(connection)
}

/// A connection that moves the write-ahead log of a file that is being crawled into.
pub(super) fn mover(path: &Path) -> Result<Connection, StoreError> {
    let connection = unlocked(path)?;
    connection
        .pragma_update(None, "synchronous", "NORMAL")
        .map_err(refused)?;
    Ok(connection)
}

/// A connection that writes a word beside the crawl's own.
pub(super) fn visitor(path: &Path) -> Result<Connection, StoreError> {
    let connection = unlocked(path)?;
    check_ownership(&connection, OpenMode::Read)?;
    Ok(connection)
}

/// A connection that reads, beside a writer or alone.
pub(super) fn reader(path: &Path) -> Result<Connection, StoreError> {
    let connection = unlocked(path)?;
    let connection = match check_ownership(&connection, OpenMode::Read) {
        Err(error) if error.kind() == StoreErrorKind::Denied => immutable(path)?,
        Err(error) => return Err(error),
        Ok(()) => connection,
    };
    connection
        .pragma_update(None, "query_only", true)
        .map_err(refused)?;
    keep_statements(&connection)?;
    Ok(connection)
}

/// Statements are prepared once: SQLite would otherwise plan some of them anew for every value
/// that is bound to them.
fn keep_statements(connection: &Connection) -> Result<(), StoreError> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(refused)?;
    Ok(())
}

/// A file in a folder where nothing may be written (and so nobody can be crawling into it).
fn immutable(path: &Path) -> Result<Connection, StoreError> {
    let wal = beside(path, "-wal");
    if std::fs::metadata(&wal).is_ok_and(|metadata| metadata.len() > 0) {
        return Err(StoreError::new(
            StoreErrorKind::Denied,
            "the file has unfinished business in its -wal file and its folder may not be written; \
             copy both to a folder of yours",
        ));
    }
    let mut name = String::from("file:");
    for byte in path.to_string_lossy().bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) {
            name.push(char::from(byte));
        } else {
            use std::fmt::Write as _;
            let _ = write!(name, "%{byte:02X}");
        }
    }
    name.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(name, flags).map_err(refused)?;
    check_ownership(&connection, OpenMode::Read)?;
    Ok(connection)
}

/// Refuses databases of other programs and of newer versions of this one.
fn check_ownership(connection: &Connection, mode: OpenMode) -> Result<(), StoreError> {
    let application_id = migrate::application_id_of(connection).map_err(refused)?;
    let version = migrate::version_of(connection).map_err(refused)?;
    let newest = MIGRATIONS.last().map_or(0, |step| step.to);
    if application_id == APPLICATION_ID {
        if version > newest {
            return Err(migrate::newer(version, newest));
        }
        if mode == OpenMode::Read && version < newest {
            return Err(StoreError::new(
                StoreErrorKind::Other,
                format!(
                    "it was made by an older version (schema {version}, this program reads \
                     {newest}); crawl into it once to bring it forward"
                ),
            ));
        }
        return Ok(());
    }
    // A file that was killed while it was being made is an empty database: ours to finish.
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))
        .map_err(refused)?;
    if mode == OpenMode::Crawl && application_id == 0 && version == 0 && tables == 0 {
        return Ok(());
    }
    Err(not_ours("it is a database of another program"))
}
