//! PostgreSQL's errors in the store's words.

use crate::{StoreError, StoreErrorKind};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Says what the server's refusal means for the user.
#[expect(
    clippy::needless_pass_by_value,
    reason = "an error is handed over where it is mapped"
)]
pub(super) fn refused(error: Error) -> StoreError {
    let Some(said) = error.as_db_error() else {
        return without_answer(&error);
    };
    let (kind, advice) = meaning(said.code());
    let message = said.message();
    if advice.is_empty() {
        return StoreError::new(kind, format!("the server says: {message}"));
    }
    StoreError::new(kind, format!("{advice} (the server says: {message})"))
}

/// The server did not answer, or what it answered was not understood.
fn without_answer(error: &Error) -> StoreError {
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        message = format!("{message}: {inner}");
        cause = inner.source();
    }
    let has_io_cause =
        std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
    if error.is_closed() || has_io_cause || message.contains("timed out") {
        return StoreError::new(
            StoreErrorKind::Unreachable,
            format!(
                "the server cannot be reached; check that it runs and that host and port are right ({message})"
            ),
        );
    }
    if message.contains("password") {
        return StoreError::new(
            StoreErrorKind::Denied,
            format!(
                "the server wants a password; put it into the URL or into PGPASSWORD ({message})"
            ),
        );
    }
    StoreError::new(StoreErrorKind::Other, message)
}

fn meaning(code: &SqlState) -> (StoreErrorKind, &'static str) {
    const DENIED: &[SqlState] = &[
        SqlState::INSUFFICIENT_PRIVILEGE,
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    const UNDONE: &[SqlState] = &[
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    const GOING: &[SqlState] = &[
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    match code {
        code if *code == SqlState::INVALID_PASSWORD
            || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION =>
        {
            (
                StoreErrorKind::Denied,
                "the server refuses the user or the password; check both",
            )
        }
        code if *code == SqlState::INVALID_CATALOG_NAME => (
            StoreErrorKind::Missing,
            "there is no such database; make it first, with createdb",
        ),
        code if DENIED.contains(code) => (
            StoreErrorKind::Denied,
            "the user may not write there; take a user who owns the schema",
        ),
        code if *code == SqlState::DISK_FULL => (
            StoreErrorKind::DiskFull,
            "the server's disk is full; make room and start again, nothing was half-written",
        ),
        code if GOING.contains(code) => (
            StoreErrorKind::Unreachable,
            "the server is shutting down or starting",
        ),
        code if UNDONE.contains(code) => (
            StoreErrorKind::Unreachable,
            "the server undid the transaction because others were at work on the same rows",
        ),
        code if *code == SqlState::TOO_MANY_CONNECTIONS => (
            StoreErrorKind::Other,
            "the server has no connection left; close others or raise max_connections",
        ),
        code if *code == SqlState::DATA_CORRUPTED || *code == SqlState::INDEX_CORRUPTED => (
            StoreErrorKind::Corrupt,
            "the database is damaged; restore a copy",
        ),
        code if *code == SqlState::QUERY_CANCELED => (
            StoreErrorKind::Other,
            "the server cancelled the statement; raise its statement_timeout for this user",
        ),
        _ => (StoreErrorKind::Other, ""),
    }
}
