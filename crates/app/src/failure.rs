//! Failures and exit codes.

use kittiwake_engine::{EngineError, EngineErrorKind};
use kittiwake_store::StoreError;

/// Stable exit codes, documented in the README.
pub(crate) mod code {
    /// Anything that has no code of its own.
    pub(crate) const OTHER: u8 = 1;
    pub(crate) const USAGE: u8 = 2;
    /// Stopped before the end by a cap, an exhausted quota or a host out of reach; state is saved.
    pub(crate) const CAPPED: u8 = 3;
    pub(crate) const AUTHENTICATION: u8 = 4;
    pub(crate) const INTERRUPTED: u8 = 130;
}

/// Why a command failed: one line for a person, one number for a script.
#[derive(Debug)]
pub(crate) struct Failure {
    pub message: String,
    pub code: u8,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code: code::USAGE,
        }
    }

    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code: code::OTHER,
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let code = match error.kind() {
            EngineErrorKind::Usage => code::USAGE,
            EngineErrorKind::Store | EngineErrorKind::Fetch | EngineErrorKind::Broken => {
                code::OTHER
            }
        };
        Self {
            message: error.to_string(),
            code,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::other(error.to_string())
    }
}
