//! What can go wrong with a store, in words for the person at the keyboard.

/// What kind of failure it was, for code that has to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreErrorKind {
    /// The file is missing and may not be made.
    Missing,
    /// The file is something else than a store of ours.
    NotOurs,
    /// The file was made by a newer version of the program.
    Newer,
    /// Another process holds the file.
    Locked,
    /// The disk (or a quota) is full, or could not be written.
    DiskFull,
    /// The file is damaged.
    Corrupt,
    /// The operating system does not allow it.
    Denied,
    /// The server cannot be reached, or the connection to it was lost.
    Unreachable,
    /// An earlier failure left doubt about what was written; nothing more is accepted.
    Poisoned,
    /// A copy or a merge that was interrupted.
    Unfinished,
    /// Whoever asked for it has asked for it to stop.
    Stopped,
    /// What was to be written contradicts itself: a fault of the program, not of the disk.
    Invalid,
    Other,
}

/// A failure of a store or of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
}

impl StoreError {
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The same failure, said together with what was being done.
    #[must_use]
    pub fn context(mut self, doing: &str) -> Self {
        self.message = format!("{doing}: {}", self.message);
        self
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Invalid, message)
    }

    pub(crate) fn closed() -> Self {
        Self::new(
            StoreErrorKind::Other,
            "the store has stopped; look for the first error in the log",
        )
    }
}

/// Our own JSON in the store cannot be read: it is damaged.
pub(crate) fn unreadable(key: i64, error: &serde_json::Error) -> StoreError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        format!("the row of key {key} cannot be read: {error}; restore a copy of the store"),
    )
}
