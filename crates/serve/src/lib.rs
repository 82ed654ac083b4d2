//! A crawl over HTTP: the API, what is sent to subscribers, and the dashboard.
//!
//! Knows: inbound HTTP, sessions and roles, who may ask for what, pages, streams of events.
//! Does not know: SQL, the environment, the vault, the terminal. What only the program can do is behind
//! [`Desk`].

pub mod desk;
pub mod pages;
pub mod problem;
pub mod role;
pub mod shared;
pub mod standing;

pub use desk::{Desk, DeskError, DeskErrorKind, DeskFuture};
pub use problem::Problem;
pub use role::{Caller, Role};
pub use shared::{Parts, Settings, Shared};
pub use standing::Standing;

/// Why the server could not begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Store(#[from] kittiwake_store::StoreError),
    #[error("cannot listen: {0}")]
    Listen(#[from] std::io::Error),
    #[error("{0}")]
    Usage(String),
}
