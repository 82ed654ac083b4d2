//! What stops a crawl.

use kittiwake_fetch::FetchError;
use kittiwake_frontier::order::OrderError;
use kittiwake_store::StoreError;

/// Why a crawl could not begin or go on. State is saved up to the last commit in every case.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Order(#[from] OrderError),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The file holds a crawl that this command cannot go on with.
    #[error("this file holds a crawl with {what} {found}, not {wanted}; {advice}")]
    OtherCrawl {
        what: &'static str,
        found: String,
        wanted: String,
        advice: &'static str,
    },
    #[error("{0}")]
    Usage(String),
    /// Our own state is not what it must be.
    #[error("broken state: {0}; please report this, the file is as of the last commit")]
    Broken(String),
}

/// What a caller can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineErrorKind {
    Usage,
    Store,
    Fetch,
    Broken,
}

impl EngineError {
    pub fn kind(&self) -> EngineErrorKind {
        match self {
            Self::Store(_) | Self::Order(_) => EngineErrorKind::Store,
            Self::Fetch(_) => EngineErrorKind::Fetch,
            Self::OtherCrawl { .. } | Self::Usage(_) => EngineErrorKind::Usage,
            Self::Broken(_) => EngineErrorKind::Broken,
        }
    }
}
