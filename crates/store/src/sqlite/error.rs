//! SQLite's errors in the store's words.

use crate::{StoreError, StoreErrorKind};
use rusqlite::ErrorCode;

/// Says what SQLite's refusal means for the user.
#[expect(
    clippy::needless_pass_by_value,
    reason = "an error is handed over where it is mapped"
)]
pub(super) fn refused(error: rusqlite::Error) -> StoreError {
    let code = error.sqlite_error_code();
    let (kind, advice) = match code {
        Some(ErrorCode::DiskFull) => (
            StoreErrorKind::DiskFull,
            "the disk is full; make room and start again, nothing was half-written",
        ),
        Some(ErrorCode::SystemIoFailure) => (
            StoreErrorKind::DiskFull,
            "the disk could not be read or written; check it (space, quota, health) and start again",
        ),
        Some(ErrorCode::DatabaseCorrupt) => (
            StoreErrorKind::Corrupt,
            "the file is damaged; restore a copy, or save what is left with sqlite3 and .recover",
        ),
        Some(ErrorCode::NotADatabase) => (
            StoreErrorKind::NotOurs,
            "it is not a kittiwake file; name another file",
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            StoreErrorKind::Locked,
            "another program holds the file; close it and start again",
        ),
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => (
            StoreErrorKind::Denied,
            "the file may not be written; check its permissions",
        ),
        Some(ErrorCode::CannotOpen) => (
            StoreErrorKind::Denied,
            "the file cannot be opened; check the path and its permissions",
        ),
        _ => return StoreError::new(StoreErrorKind::Other, error.to_string()),
    };
    StoreError::new(kind, format!("{advice} ({error})"))
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        refused(error)
    }
}
