//! A crawl over HTTP: the API, what is sent to subscribers, and the dashboard.
//!
//! Knows: inbound HTTP, sessions and roles, who may ask for what, pages, streams of events.
//! Does not know: SQL, the environment, the vault, the terminal. What only the program can do is behind
//! [`Desk`].

mod api;
mod connection;
pub mod control;
pub mod desk;
mod guard;
pub mod interest;
mod live;
mod messages;
mod metrics;
pub mod pages;
pub mod problem;
pub mod role;
pub mod shared;
pub mod standing;
mod subscribe;

pub use control::{Action, Controlled};
pub use desk::{Desk, DeskError, DeskErrorKind, DeskFuture};
pub use guard::RequestLine;
pub use problem::Problem;
pub use role::{Caller, Role};
pub use shared::{Cookie, Parts, Settings, Shared};
pub use standing::Standing;

use axum::middleware::from_fn_with_state;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Why the server could not begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Store(#[from] kittiwake_store::StoreError),
    #[error(transparent)]
    Engine(#[from] kittiwake_engine::EngineError),
    #[error(
        "{0} is not an address of this machine alone, and no password is set: set one with \
         `kittiwake auth password`, and put a proxy that speaks TLS in front, named by --public-url"
    )]
    Unprotected(std::net::SocketAddr),
}

/// Serves a crawl until it is told to stop.
pub async fn serve(
    listener: TcpListener,
    settings: Settings,
    parts: Parts,
    stop: watch::Receiver<bool>,
) -> Result<(), ServeError> {
    if !settings.listen.ip().is_loopback() && !settings.has_password {
        return Err(ServeError::Unprotected(settings.listen));
    }
    let shared = Arc::new(Shared::new(settings, &parts, stop.clone())?);
    shared.browser.keep_indexed()?;
    let mut looker = standing::look::Looker::new(Arc::clone(&shared), parts.ledger);
    looker.refresh().await;
    let looking = tokio::spawn(looker.run());
    let following = tokio::spawn(subscribe::follow(Arc::clone(&shared)));
    connection::accept(listener, router(&shared), stop).await;
    looking.abort();
    following.abort();
    Ok(())
}

fn router(shared: &Arc<Shared>) -> axum::Router {
    api::routes()
        .merge(pages::routes())
        .fallback(pages::missing)
        .layer(from_fn_with_state(Arc::clone(shared), guard::guard))
        .with_state(Arc::clone(shared))
}
