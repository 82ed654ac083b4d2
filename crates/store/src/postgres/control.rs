//! Commands to a crawl that another process is running: the table `control` is where they meet.

use super::session::Session;
use super::{database::PostgresDatabase, lock, migrate, parse, shown};
use crate::cell::cells;
use crate::database::Database;
use crate::rules::service::no_thread;
use crate::rules::writer;
use crate::{OpenMode, StoreError, StoreErrorKind};
use kittiwake_model::ControlCommand;
use std::time::Duration;

/// Leaves a command for the crawl, for one robot or for all of them; gives its number.
pub fn ask(url: &str, command: ControlCommand, robot: Option<&str>) -> Result<i64, StoreError> {
    visit(url, |database| {
        database.only(
            "INSERT INTO control(at_us, command, robot) VALUES (?1, ?2, ?3) RETURNING id",
            cells![writer::now_us(), command.name(), robot],
            |row| row.get(0),
        )
    })
}

/// Whether the crawl has carried the command out.
pub fn is_done(url: &str, id: i64) -> Result<bool, StoreError> {
    let is_done = visit(url, |database| {
        database.first(
            "SELECT done_us IS NOT NULL FROM control WHERE id = ?1",
            cells![id],
            |row| row.get(0),
        )
    })?;
    is_done.ok_or_else(|| {
        StoreError::new(
            StoreErrorKind::Missing,
            format!("there is no command {id}; give it again"),
        )
    })
}

/// Whether somebody who is connected crawls into the database.
pub fn is_crawled(url: &str) -> Result<bool, StoreError> {
    on_a_connection(url, |session| lock::is_taken(&session))
}

fn visit<T: Send>(
    url: &str,
    work: impl FnOnce(&dyn Database) -> Result<T, StoreError> + Send,
) -> Result<T, StoreError> {
    on_a_connection(url, |session| {
        migrate::check_version(migrate::version_of(&session)?, OpenMode::Read)?;
        work(&PostgresDatabase::new(session))
    })
}

/// A connection for one thing, on a thread of its own: the caller's may be busy with other futures.
fn on_a_connection<T: Send>(
    url: &str,
    work: impl FnOnce(Session) -> Result<T, StoreError> + Send,
) -> Result<T, StoreError> {
    let address = parse(url)?;
    let name = shown(&address);
    let done = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, move || {
            Session::open(address, Duration::ZERO).and_then(work)
        });
        match thread {
            Ok(thread) => thread.join().unwrap_or_else(|_| Err(StoreError::closed())),
            Err(error) => Err(no_thread(&error)),
        }
    });
    done.map_err(|error| error.context(&name))
}
