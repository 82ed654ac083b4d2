//! What every handler knows.

use crate::desk::Desk;
use crate::guard::{Gate, RequestLine, sessions};
use crate::interest::Interest;
use crate::messages::Messages;
use crate::standing::{Message, Standing};
use crate::subscribe::Hub;
use crate::{Problem, Role};
use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kittiwake_frontier::policy::PolicySettings;
use kittiwake_model::{RealTime, Secret};
use kittiwake_store::browse::Browser;
use kittiwake_store::{Location, OpenMode, Store, StoreError};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Notify, watch};
use url::Url;

/// Questions of people that are answered at once.
const BROWSER_THREADS: usize = 4;

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

impl Settings {
    /// Whether browsers speak to it over TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.public_url
            .as_ref()
            .is_some_and(|url| url.scheme() == "https")
    }

    pub(crate) fn is_reached_by_loopback(&self) -> bool {
        let address = self.listen.ip();
        address.is_loopback() || address.is_unspecified()
    }

    /// Cookies know no ports: two servers of one machine have two names.
    pub(crate) fn cookie_name(&self) -> String {
        let port = self.listen.port();
        if self.is_encrypted() {
            return format!("__Host-kittiwake-{port}");
        }
        format!("kittiwake-{port}")
    }
}

/// What the server works with.
#[derive(Debug)]
pub struct Parts {
    /// Where the crawl is kept.
    pub location: Location,
    /// Where grants are kept, if they can be looked at.
    pub ledger: Option<Location>,
    pub policies: PolicySettings,
    pub desk: Arc<dyn Desk>,
    pub now: fn() -> RealTime,
    /// Bytes that nobody can guess.
    pub random: fn() -> [u8; 32],
    /// Is told every request that was answered.
    pub log: Option<fn(&RequestLine)>,
}

/// What every handler knows.
#[derive(Debug)]
pub struct Shared {
    pub settings: Settings,
    pub location: Location,
    pub browser: Browser,
    pub store: Arc<dyn Store>,
    pub desk: Arc<dyn Desk>,
    pub now: fn() -> RealTime,
    pub policies: PolicySettings,
    pub(crate) log: Option<fn(&RequestLine)>,
    pub(crate) gate: Gate,
    pub(crate) hub: Hub,
    pub(crate) interest: Interest,
    pub(crate) messages: Messages,
    /// Violations of the content security policy that browsers have told of.
    pub(crate) reports: AtomicU64,
    /// When somebody last looked at the picture.
    pub(crate) looked_us: AtomicU64,
    /// Asks for another picture at once.
    pub(crate) look_soon: Notify,
    /// Somebody looks after a time when nobody did.
    pub(crate) watched: Notify,
    pub(crate) stop: watch::Receiver<bool>,
    pub(crate) standing: watch::Sender<Arc<Standing>>,
}

/// What makes a browser remember a session, or forget it: the value of `Set-Cookie`.
#[derive(Debug, Clone)]
pub struct Cookie(pub HeaderValue);

impl Shared {
    pub(crate) fn new(
        settings: Settings,
        parts: &Parts,
        stop: watch::Receiver<bool>,
    ) -> Result<Self, StoreError> {
        let browser = Browser::open(&parts.location, BROWSER_THREADS)?;
        Ok(Self {
            settings,
            location: parts.location.clone(),
            hub: Hub::default(),
            browser,
            store: parts.location.open(OpenMode::Read)?.into(),
            desk: Arc::clone(&parts.desk),
            now: parts.now,
            policies: parts.policies.clone(),
            log: parts.log,
            gate: Gate::new(parts.random),
            interest: Interest::default(),
            messages: Messages::default(),
            reports: AtomicU64::new(0),
            looked_us: AtomicU64::new(0),
            look_soon: Notify::new(),
            watched: Notify::new(),
            stop,
            standing: watch::Sender::new(Arc::default()),
        })
    }

    /// The newest picture of the crawl. Costs nothing.
    pub fn standing(&self) -> Arc<Standing> {
        let now_us = (self.now)().micros().unsigned_abs();
        self.looked_us.store(now_us, Ordering::Relaxed);
        self.watched.notify_one();
        Arc::clone(&self.standing.borrow())
    }

    /// Tells when there is another picture.
    pub fn standing_changes(&self) -> watch::Receiver<Arc<Standing>> {
        self.watched.notify_one();
        self.standing.subscribe()
    }

    /// Something was changed that people want to see.
    pub(crate) fn look_soon(&self) {
        self.look_soon.notify_one();
    }

    /// What robots did last, the newest first; of one robot or of all.
    pub fn messages(&self, robot: Option<&str>, limit: usize) -> Vec<Message> {
        self.messages.newest(robot, limit)
    }

    /// Violations of the content security policy that browsers have told of.
    pub fn reports(&self) -> u64 {
        self.reports.load(Ordering::Relaxed)
    }

    /// Logs somebody in who asks from `from`.
    pub async fn log_in(
        &self,
        from: IpAddr,
        role: &str,
        password: Secret,
    ) -> Result<(Role, Cookie), Problem> {
        if !self.settings.has_password {
            return Err(Problem::conflict(
                "no password is set, and everybody on this machine may do everything; set one with: \
                 kittiwake auth password",
            ));
        }
        let role = crate::guard::check(self, from, role, password).await?;
        let token = self.gate.begin_session(role, (self.now)());
        let value = URL_SAFE_NO_PAD.encode(token.0);
        Ok((role, self.cookie(&value, sessions::AGE_MAX_S)))
    }

    /// Ends a session.
    pub fn log_out(&self, headers: &HeaderMap) -> Cookie {
        if let Some(token) = self.session_token(headers) {
            self.gate.end_session(&token);
        }
        self.cookie("", 0)
    }

    fn cookie(&self, value: &str, age_s: i64) -> Cookie {
        let name = self.settings.cookie_name();
        let secure = if self.settings.is_encrypted() {
            "; Secure"
        } else {
            ""
        };
        let text =
            format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age_s}{secure}");
        // Every part is ASCII.
        let value = HeaderValue::from_str(&text);
        Cookie(value.unwrap_or_else(|_| HeaderValue::from_static("")))
    }

    /// The session that a request's cookies name.
    pub(crate) fn session_token(&self, headers: &HeaderMap) -> Option<sessions::Token> {
        let name = self.settings.cookie_name();
        let cookies = headers.get_all(header::COOKIE).iter();
        let mut pairs = cookies
            .filter_map(|cookies| cookies.to_str().ok())
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        let (_, value) = pairs.find(|(found, _)| *found == name)?;
        let bytes = URL_SAFE_NO_PAD.decode(value).ok()?;
        Some(sessions::Token(bytes.try_into().ok()?))
    }
}
