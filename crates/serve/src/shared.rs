//! What every handler knows.

use crate::desk::Desk;
use crate::standing::{Message, Standing};
use crate::{Problem, Role};
use kittiwake_frontier::policy::PolicySettings;
use kittiwake_model::{ControlCommand, RealTime, Secret};
use kittiwake_store::Location;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::sync::watch;
use url::Url;

/// How the server is to behave.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address that it listens on.
    pub listen: SocketAddr,
    /// Where a proxy that speaks TLS shows it to the world.
    pub public_url: Option<Url>,
    /// Whether a password is wanted. Only on loopback may there be none.
    pub has_password: bool,
}

/// What the server works with.
#[derive(Debug)]
pub struct Parts {
    /// Where the crawl is kept.
    pub location: Location,
    /// Where grants are kept.
    pub ledger: Option<Location>,
    pub policies: PolicySettings,
    pub desk: Arc<dyn Desk>,
    pub now: fn() -> RealTime,
}

/// What every handler knows.
#[derive(Debug)]
pub struct Shared {
    pub settings: Settings,
    pub location: Location,
    pub desk: Arc<dyn Desk>,
    pub now: fn() -> RealTime,
    standing: watch::Sender<Arc<Standing>>,
}

/// What became of a command to a robot.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct Controlled {
    /// Whether a running crawl has carried it out.
    pub done: bool,
    /// What happens now, in words.
    pub detail: String,
}

/// A log-in that succeeded: the value of `Set-Cookie`.
#[derive(Debug, Clone)]
pub struct Cookie(pub axum::http::HeaderValue);

impl Shared {
    pub fn new(settings: Settings, parts: &Parts) -> Self {
        Self {
            settings,
            location: parts.location.clone(),
            desk: Arc::clone(&parts.desk),
            now: parts.now,
            standing: watch::Sender::new(Arc::default()),
        }
    }

    /// The newest picture of the crawl. Costs nothing.
    pub fn standing(&self) -> Arc<Standing> {
        Arc::clone(&self.standing.borrow())
    }

    /// Tells when there is another picture.
    pub fn standing_changes(&self) -> watch::Receiver<Arc<Standing>> {
        self.standing.subscribe()
    }

    /// What robots did last, the newest first; of one robot or of all.
    pub fn messages(&self, _robot: Option<&str>, _limit: usize) -> Vec<Message> {
        Vec::new()
    }

    /// Tells the crawl what to do, and waits a little until it has taken notice. `robot` is one of the
    /// last run's, or `None` for all.
    pub async fn control(
        &self,
        _command: ControlCommand,
        _robot: Option<&str>,
    ) -> Result<Controlled, Problem> {
        Err(Problem::conflict("not yet"))
    }

    /// Logs somebody in who asks from `from`.
    pub async fn log_in(
        &self,
        _from: IpAddr,
        _role: Role,
        _password: Secret,
    ) -> Result<Cookie, Problem> {
        Err(Problem::conflict("not yet"))
    }

    /// Ends a session; gives the `Set-Cookie` that makes a browser forget it. `cookies` is the request's
    /// header.
    pub fn log_out(&self, _cookies: Option<&str>) -> Cookie {
        Cookie(axum::http::HeaderValue::from_static(""))
    }
}
