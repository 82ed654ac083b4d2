//! Commands to a crawl that another process is running: the table `control` is where they meet.

use super::open;
use crate::OpenMode;
use crate::rules::writer;
use crate::{StoreError, StoreErrorKind};
use kittiwake_model::ControlCommand;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::path::Path;
use std::time::Duration;

/// How long one try waits for the crawl's writer, which is seldom busy for longer than this.
const BUSY_WAIT: Duration = Duration::from_millis(500);
/// Tries before the file is called busy: a crawl that writes without pause still leaves gaps.
const TRIES_MAX: usize = 20;

/// Leaves a command for the crawl in the file, for one robot or for all of them; gives its number.
pub fn ask(path: &Path, command: ControlCommand, robot: Option<&str>) -> Result<i64, StoreError> {
    named(path, || {
        let connection = visit(path)?;
        patiently(|| {
            connection.execute(
                "INSERT INTO control(at_us, command, robot) VALUES (?1, ?2, ?3)",
                params![writer::now_us(), command.name(), robot],
            )
        })?;
        Ok(connection.last_insert_rowid())
    })
}

/// Whether the crawl has carried the command out.
pub fn is_done(path: &Path, id: i64) -> Result<bool, StoreError> {
    named(path, || {
        let connection = visit(path)?;
        let is_done = patiently(|| {
            connection
                .query_row(
                    "SELECT done_us IS NOT NULL FROM control WHERE id = ?1",
                    [id],
                    |row| row.get(0),
                )
                .optional()
        })?;
        is_done.ok_or_else(|| {
            StoreError::new(
                StoreErrorKind::Missing,
                format!("there is no command {id}; give it again"),
            )
        })
    })
}

/// Whether a process that is alive crawls into the file.
pub fn is_crawled(path: &Path) -> Result<bool, StoreError> {
    named(path, || {
        open::check_file(path, OpenMode::Read)?;
        open::is_locked(path)
    })
}

fn named<T>(path: &Path, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    work().map_err(|error| error.context(&path.display().to_string()))
}

/// A connection beside the crawl's own; it makes nothing and changes no schema.
fn visit(path: &Path) -> Result<Connection, StoreError> {
    open::check_file(path, OpenMode::Read)?;
    let connection = open::visitor(path)?;
    connection.busy_timeout(BUSY_WAIT)?;
    Ok(connection)
}

fn patiently<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> Result<T, StoreError> {
    for _ in 1..TRIES_MAX {
        match attempt().map_err(StoreError::from) {
            Err(error) if error.kind() == StoreErrorKind::Locked => {}
            other => return other,
        }
    }
    Ok(attempt()?)
}
