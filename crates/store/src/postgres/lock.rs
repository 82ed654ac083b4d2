//! The right to crawl into a schema of the server. It ends with the connection, however that ends,
//! because the server holds it.

use super::error::refused;
use super::session::Session;
use crate::hash::id_hash;
use crate::{StoreError, StoreErrorKind};
use std::time::Duration;

/// "Kitt": tells our locks from those of other programs.
const CLASS: i32 = 0x4B69_7474;
/// How often and how long a crawl waits for another that is just ending.
const TRIES_MAX: usize = 20;
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// Takes the right, or says that somebody has it.
pub(super) fn take(session: &Session) -> Result<(), StoreError> {
    let (class, number) = (CLASS, number_of(session)?);
    let rows = session.rows(&format!("SELECT pg_try_advisory_lock({class}, {number})"))?;
    let is_taken: bool = match rows.first() {
        Some(row) => row.try_get(0).map_err(refused)?,
        None => false,
    };
    if is_taken {
        return Ok(());
    }
    Err(StoreError::new(
        StoreErrorKind::Locked,
        "another kittiwake is crawling into this database; wait for it, or take another database",
    ))
}

/// [`take`] for whoever starts: a crawl that has just ended may still hold the lock for a moment.
pub(super) fn take_soon(session: &Session) -> Result<(), StoreError> {
    for _ in 0..TRIES_MAX {
        match take(session) {
            Err(error) if error.kind() == StoreErrorKind::Locked => std::thread::sleep(TRY_AGAIN),
            other => return other,
        }
    }
    take(session)
}

/// Gives the right back, for whoever ends in good order: until the server notices that a connection is gone, it
/// may take a moment.
pub(super) fn give_back(session: &Session) {
    let given = number_of(session)
        .and_then(|number| session.rows(&format!("SELECT pg_advisory_unlock({CLASS}, {number})")));
    if let Err(error) = given {
        tracing::debug!(%error, "the right to crawl ends with the connection");
    }
}

/// Whether somebody has the right.
pub(super) fn is_taken(session: &Session) -> Result<bool, StoreError> {
    let number = number_of(session)?;
    let rows = session.rows(&format!(
        "SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
         WHERE locktype = 'advisory' AND datname = current_database() AND granted
           AND classid::bigint = {CLASS} AND objid::bigint = {}",
        i64::from(number.cast_unsigned())
    ))?;
    Ok(!rows.is_empty())
}

/// One number for each schema of a database.
fn number_of(session: &Session) -> Result<i32, StoreError> {
    let schema = session.text("SELECT current_schema()::text")?;
    let schema = schema.ok_or_else(|| {
        StoreError::new(
            StoreErrorKind::Missing,
            "the schema that the URL names does not exist; make it first, with CREATE SCHEMA",
        )
    })?;
    Ok(id_hash("kittiwake", "schema", "", "", &schema) as i32)
}
