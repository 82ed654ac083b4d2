//! Who is let in: every request goes through here first.

pub(crate) mod attempts;
mod headers;
pub(crate) mod origin;
pub(crate) mod sessions;

use crate::connection::From as Source;
use crate::{Caller, Problem, Role, Shared};
use attempts::Attempts;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kittiwake_model::{RealTime, Secret};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sessions::{Sessions, Token};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// The largest body, which is a definition.
const BODY_BYTES_MAX: usize = 1_200_000;
/// How long a client may take to send one.
const BODY_PATIENCE: Duration = Duration::from_secs(20);
/// Passwords that are looked at at once: each takes tens of megabytes and a processor.
const CHECKS_AT_ONCE: usize = 2;
const PASSWORD_BYTES_MAX: usize = 1_024;
/// What anybody may ask for: they show nothing of the crawl.
const OPEN_PATHS: &[&str] = &["/healthz", "/login", "/api/login", "/api/reports"];
/// The folder of style sheets and scripts.
const ASSETS: &str = "/assets/";
/// What somebody may do who may change nothing.
const OWN_AFFAIRS: &[&str] = &[
    "/login",
    "/logout",
    "/api/login",
    "/api/logout",
    "/api/reports",
];
/// The same for everything that may be wrong with a log-in.
const NOT_LET_IN: &str =
    "the role and the password do not fit; set one with: kittiwake auth password";

/// What the guard remembers.
#[derive(Debug)]
pub(crate) struct Gate {
    random: fn() -> [u8; 32],
    sessions: Mutex<Sessions>,
    attempts: Mutex<Attempts>,
    checks: Semaphore,
}

impl Gate {
    pub(crate) fn new(random: fn() -> [u8; 32]) -> Self {
        Self {
            random,
            sessions: Mutex::new(Sessions::new(random())),
            attempts: Mutex::default(),
            checks: Semaphore::new(CHECKS_AT_ONCE),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin_session(&self, role: Role, now: RealTime) -> Token {
        let token = Token((self.random)());
        self.sessions().begin(&token, role, now);
        token
    }

    pub(crate) fn end_session(&self, token: &Token) {
        self.sessions().end(token);
    }
}

/// Looks at a request before anybody else does.
pub(crate) async fn guard(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let started = std::time::Instant::now();
    let line = RequestStart::of(&request);
    let mut response = match let_in(&shared, request).await {
        Ok(request) => next.run(request).await,
        Err(response) => *response,
    };
    headers::add(response.headers_mut(), &shared.settings);
    if let Some(log) = shared.log {
        log(&line.ended(&shared, &response, started.elapsed()));
    }
    response
}

/// One request, as it is logged. Neither queries nor bodies nor headers are in it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RequestLine {
    pub at_us: i64,
    pub method: String,
    /// The route, not the address: what stands in its place may be anything.
    pub path: String,
    pub status: u16,
    pub took_us: u64,
}

struct RequestStart {
    method: Method,
    path: String,
}

impl RequestStart {
    fn of(request: &Request) -> Self {
        let route = request.extensions().get::<MatchedPath>();
        Self {
            method: request.method().clone(),
            path: route.map_or_else(|| "(none)".to_owned(), |route| route.as_str().to_owned()),
        }
    }

    fn ended(self, shared: &Shared, response: &Response, took: Duration) -> RequestLine {
        RequestLine {
            at_us: (shared.now)().micros(),
            method: self.method.to_string(),
            path: self.path,
            status: response.status().as_u16(),
            took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

async fn let_in(shared: &Shared, request: Request) -> Result<Request, Box<Response>> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path();
    let is_api = path.starts_with("/api/") || path == "/metrics";
    let refused = |problem: Problem| Box::new(problem.into_response());
    let headers = &parts.headers;
    origin::check_host(&shared.settings, headers).map_err(refused)?;
    let is_safe = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
    let is_report = path == "/api/reports";
    if !is_report {
        let asked = origin::Asked {
            is_safe,
            is_api,
            is_upgrade: headers.contains_key(header::UPGRADE),
            has_cookie: headers.contains_key(header::COOKIE),
        };
        origin::check_origin(&shared.settings, headers, asked).map_err(refused)?;
    }
    let caller = caller(shared, &parts.extensions, headers)
        .await
        .map_err(refused)?;
    let is_open = OPEN_PATHS.contains(&path) || path.starts_with(ASSETS);
    match caller {
        None if is_open => {}
        None => return Err(Box::new(log_in_first(is_api, headers, &parts.uri))),
        Some(caller)
            if caller.role < Role::Operator && !is_safe && !OWN_AFFAIRS.contains(&path) =>
        {
            return Err(refused(Problem::new(
                StatusCode::FORBIDDEN,
                "a viewer changes nothing; log in as operator",
            )));
        }
        Some(caller) => {
            parts.extensions.insert(caller);
        }
    }
    let body = if is_safe {
        Body::empty()
    } else {
        whole_body(body).await.map_err(refused)?
    };
    Ok(Request::from_parts(parts, body))
}

/// Bodies are taken whole, within bounds of size and time, before anybody waits for them.
async fn whole_body(body: Body) -> Result<Body, Problem> {
    let read = axum::body::to_bytes(body, BODY_BYTES_MAX);
    match tokio::time::timeout(BODY_PATIENCE, read).await {
        Ok(Ok(bytes)) => Ok(Body::from(bytes)),
        Ok(Err(_)) => Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("a body has at most {BODY_BYTES_MAX} bytes, and comes to its end"),
        )),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("a body is sent within {} s", BODY_PATIENCE.as_secs()),
        )),
    }
}

/// Who it is; nobody if they have not said, and a refusal if they said wrong.
async fn caller(
    shared: &Shared,
    extensions: &axum::http::Extensions,
    headers: &HeaderMap,
) -> Result<Option<Caller>, Problem> {
    if !shared.settings.has_password {
        return Ok(Some(Caller {
            role: Role::Operator,
            has_session: false,
        }));
    }
    if let Some(given) = headers.get(header::AUTHORIZATION) {
        let Some((role, password)) = basic(given) else {
            return Err(not_let_in());
        };
        let from = address(&shared.settings, extensions, headers);
        let role = check(shared, from, &role, password).await?;
        return Ok(Some(Caller {
            role,
            has_session: false,
        }));
    }
    let token = shared.session_token(headers);
    let role = token.and_then(|token| shared.gate.sessions().role(&token, (shared.now)()));
    Ok(role.map(|role| Caller {
        role,
        has_session: true,
    }))
}

fn not_let_in() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, NOT_LET_IN)
}

/// The user name and the password of HTTP Basic.
fn basic(given: &HeaderValue) -> Option<(String, Secret)> {
    let (scheme, encoded) = given.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = zeroize::Zeroizing::new(STANDARD.decode(encoded.trim()).ok()?);
    let (name, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    Some((name.to_owned(), Secret::new(password)))
}

/// Looks at a password, at nobody's cost but that of whoever gave it.
pub(crate) async fn check(
    shared: &Shared,
    from: IpAddr,
    role: &str,
    password: Secret,
) -> Result<Role, Problem> {
    let now = (shared.now)();
    let gate = &shared.gate;
    if let Some(known) = gate.sessions().known(role, &password, now) {
        return Ok(known);
    }
    if let Err(wait) = gate.attempts().admit(from, now) {
        return Err(Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            format!(
                "too many log-ins have failed; try again in {} s",
                wait.as_secs().max(1)
            ),
        ));
    }
    let named = Role::from_name(role);
    let is_long = password.expose_secret().len() > PASSWORD_BYTES_MAX;
    let tried = if is_long {
        Secret::new("")
    } else {
        password.clone()
    };
    let Ok(_turn) = gate.checks.acquire().await else {
        return Err(not_let_in());
    };
    // Whoever names no role waits as long as whoever names one.
    let checked = shared
        .desk
        .check_password(named.unwrap_or(Role::Viewer), tried);
    let fits = checked.await.map_err(Problem::from)?;
    match named {
        Some(role) if fits && !is_long => {
            gate.attempts().succeeded(from);
            gate.sessions().remember(role, &password, now);
            Ok(role)
        }
        _ => Err(not_let_in()),
    }
}

/// Where a request comes from. A proxy on this machine says it of its clients.
pub(crate) fn address(
    settings: &crate::Settings,
    extensions: &axum::http::Extensions,
    headers: &HeaderMap,
) -> IpAddr {
    let source = extensions.get::<Source>();
    let peer = source.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |Source(from)| from.ip());
    if settings.public_url.is_none() || !peer.is_loopback() {
        return peer;
    }
    let told = headers.get_all("x-forwarded-for").iter().next_back();
    let told = told.and_then(|told| told.to_str().ok()?.rsplit(',').next()?.trim().parse().ok());
    told.unwrap_or(peer)
}

/// Programs are told so; people are shown the page.
fn log_in_first(is_api: bool, headers: &HeaderMap, uri: &axum::http::Uri) -> Response {
    if !is_api {
        let wanted = uri.path_and_query().map_or("/", |wanted| wanted.as_str());
        let wanted = utf8_percent_encode(wanted, NON_ALPHANUMERIC);
        return Redirect::to(&format!("/login?next={wanted}")).into_response();
    }
    let mut response = Problem::new(
        StatusCode::UNAUTHORIZED,
        "log in with POST /api/login, or send HTTP Basic with the role (viewer or operator) as the user \
         name",
    )
    .into_response();
    // A browser that is told of Basic asks for a password by itself, and keeps it.
    let is_browser = headers.contains_key("sec-fetch-mode");
    let scheme = if is_browser {
        "Session"
    } else {
        "Basic realm=\"kittiwake\""
    };
    let scheme = HeaderValue::from_static(scheme);
    response
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, scheme);
    response
}
