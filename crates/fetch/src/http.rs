//! One HTTP exchange. This file and `http/failure.rs` are all of the project that knows reqwest.

mod failure;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kittiwake_model::Secret;
use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::{AcquireError, OwnedSemaphorePermit};
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use crate::address::{is_public, literal_address};
use crate::bodies::{BodyBudget, Reservation};
use crate::config::FetchConfig;
use crate::error::{FetchError, SafeUrl, TimeoutPhase, bounded};
use crate::hosts::{HostSlots, host_key};
use crate::request::{HostTrust, Method, Request};
use crate::resolve::{HostResolver, SystemResolver, dialled_addresses};
use crate::response::{Headers, Response};

/// Shorter than the minute or so after which common servers hang up, so that a pooled connection
/// is seldom found dead.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(45);
const TCP_KEEP_ALIVE: Duration = Duration::from_secs(30);
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(20);
/// What HTTP/2 has received and nobody has read yet lies outside the byte budget, so its windows
/// are fixed and small.
const HTTP2_STREAM_WINDOW_BYTES: u32 = 512 * 1024;
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 2 * 1024 * 1024;
/// First allocation for a body of unknown length.
const BODY_BYTES_FIRST: usize = 16 * 1024;
/// Headers that frame the message: one of these from a definition could smuggle a second request.
const FRAMING_HEADERS: [&str; 6] = [
    "connection",
    "content-length",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Makes ring the TLS provider of the process. May be called any number of times.
pub fn install_tls_provider() {
    // The only error is that a provider is there already.
    let _already_there = rustls::crypto::ring::default_provider().install_default();
}

/// Sends requests and reads answers within the bounds of its [`FetchConfig`]. Clones share
/// connections and bounds.
#[derive(Clone)]
pub struct Fetcher {
    config: Arc<FetchConfig>,
    named: Client,
    /// Never shares a connection with `named`: one made to a private address for a named host
    /// must not serve a learnt one.
    learnt: Client,
    hosts: Arc<HostSlots>,
    bodies: Arc<BodyBudget>,
}

/// The right to make one exchange with one host now. See [`Fetcher::slot`].
#[derive(Debug)]
pub struct FetchSlot {
    host_key: String,
    _host: OwnedSemaphorePermit,
    reservation: Reservation,
}

impl Fetcher {
    pub fn new(config: FetchConfig) -> Result<Self, FetchError> {
        Self::with_resolver(config, Arc::new(SystemResolver))
    }

    /// With another source of addresses than the machine's resolver.
    pub fn with_resolver(
        config: FetchConfig,
        resolver: Arc<dyn HostResolver>,
    ) -> Result<Self, FetchError> {
        config.check()?;
        install_tls_provider();
        Ok(Self {
            named: client(&config, HostTrust::Named, Arc::clone(&resolver))?,
            learnt: client(&config, HostTrust::Learnt, resolver)?,
            hosts: Arc::new(HostSlots::new(config.per_host_max)),
            bodies: Arc::new(BodyBudget::new(
                config.bodies_in_flight_bytes_max,
                config.largest_body_bytes(),
            )),
            config: Arc::new(config),
        })
    }

    /// One exchange: waits for a slot, sends, reads the whole answer.
    pub async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        let slot = self.slot(&request.url).await?;
        self.fetch_in(slot, request).await
    }

    /// Waits until the host has a free place and the byte budget a free share. The wait may be
    /// long; a caller whose permission to call is good for a short time only takes the slot
    /// first, the permission second, and then calls [`Fetcher::fetch_in`], which sends at once.
    pub async fn slot(&self, url: &Url) -> Result<FetchSlot, FetchError> {
        // The place at the host comes first: who waits for it holds no bytes, so a slow host does
        // not starve the others.
        let host_key = host_key(url);
        let host = self.hosts.acquire(&host_key).await.map_err(closed)?;
        let reservation = self.bodies.reserve().await.map_err(closed)?;
        Ok(FetchSlot {
            host_key,
            _host: host,
            reservation,
        })
    }

    /// One exchange in a slot that was taken for the same host.
    pub async fn fetch_in(
        &self,
        slot: FetchSlot,
        request: Request,
    ) -> Result<Response, FetchError> {
        let exchange = Exchange {
            url: SafeUrl::from(&request.url),
            config: &self.config,
            body_bytes_max: self.config.body_bytes(request.body_bytes_max),
            is_cut_off: request.is_cut_off,
        };
        check_url(&request.url, &exchange.url)?;
        check_literal(&request.url, request.trust)?;
        if slot.host_key != host_key(&request.url) {
            let reason = "the slot was taken for another host; take one for this host";
            return Err(FetchError::InvalidUrl {
                url: exchange.url,
                reason,
            });
        }
        let client = match request.trust {
            HostTrust::Named => &self.named,
            HostTrust::Learnt => &self.learnt,
        };
        let trust = request.trust;
        let outgoing = outgoing(request)?;
        let deadline = Instant::now() + self.config.total_timeout;
        let mut answer = timeout_at(deadline, client.execute(outgoing))
            .await
            .map_err(|_elapsed| exchange.timed_out(TimeoutPhase::Total))?
            .map_err(|error| exchange.failed_before_answer(&error))?;
        check_peer(&answer, trust)?;

        let status = answer.status().as_u16();
        let headers = exchange.headers(answer.headers())?;
        let wire_bytes = answer.content_length();
        let mut reservation = slot.reservation;
        let body = exchange
            .body(&mut answer, &mut reservation, exchange.deadline(deadline))
            .await?;
        let permit = reservation.settle(body.len());
        Ok(Response {
            status,
            headers,
            body,
            wire_bytes,
            permit,
        })
    }

    /// Bytes of the budget that are reserved now, by bodies being read and by permits still held.
    pub fn bodies_in_flight_bytes(&self) -> usize {
        self.bodies.reserved_bytes()
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Fetcher")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// What the steps of one exchange share.
struct Exchange<'a> {
    url: SafeUrl,
    config: &'a FetchConfig,
    body_bytes_max: usize,
    is_cut_off: bool,
}

impl Exchange<'_> {
    fn headers(&self, headers: &HeaderMap) -> Result<Headers, FetchError> {
        let header_bytes: usize = headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum();
        if header_bytes > self.config.header_bytes_max {
            return Err(self.headers_too_large());
        }
        Ok(headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect())
    }

    /// Reads the body piece by piece, so that neither an endless one nor a small one that unfolds
    /// to a huge one is ever held beyond the cap.
    async fn body(
        &self,
        answer: &mut reqwest::Response,
        reservation: &mut Reservation,
        mut deadline: Instant,
    ) -> Result<Bytes, FetchError> {
        // Lengths beyond the address space are beyond the cap as well.
        let declared_bytes = answer
            .content_length()
            .map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        if declared_bytes.is_some_and(|length| length > self.body_bytes_max) && !self.is_cut_off {
            return Err(self.body_too_large());
        }
        let most_bytes = declared_bytes.unwrap_or(self.body_bytes_max);
        let most_bytes = most_bytes.min(self.body_bytes_max);
        let first_bytes = declared_bytes
            .unwrap_or(BODY_BYTES_FIRST)
            .min(reservation.bytes());
        let mut body: Vec<u8> = Vec::with_capacity(first_bytes);
        while let Some(mut piece) = self.piece(answer, deadline).await? {
            let room = self.body_bytes_max.saturating_sub(body.len());
            let is_end = self.is_cut_off && piece.len() >= room;
            if is_end {
                piece.truncate(room);
            }
            let length = body.len().saturating_add(piece.len());
            if length > self.body_bytes_max {
                return Err(self.body_too_large());
            }
            if length > reservation.bytes() {
                let wait_start = Instant::now();
                let growth = reservation.grow(length, most_bytes);
                timeout(self.config.total_timeout, growth)
                    .await
                    .map_err(|_elapsed| self.timed_out(TimeoutPhase::Memory))?
                    .map_err(closed)?;
                // The server had no part in this wait.
                deadline += wait_start.elapsed();
            }
            if length > reservation.bytes() {
                return Err(self.body_too_large());
            }
            make_room(&mut body, length, reservation.bytes());
            body.extend_from_slice(&piece);
            if is_end {
                break;
            }
        }
        body.shrink_to_fit();
        Ok(Bytes::from(body))
    }

    /// The next piece of the body, decompressed; none at its end.
    async fn piece(
        &self,
        answer: &mut reqwest::Response,
        deadline: Instant,
    ) -> Result<Option<Bytes>, FetchError> {
        let now = Instant::now();
        // A wait that is over at once never runs out, so pieces that are always ready, such as an
        // endless row of empty ones, have to be stopped here.
        if now >= deadline {
            return Err(self.timed_out(TimeoutPhase::Total));
        }
        let idle_deadline = now + self.config.idle_timeout;
        let phase = if idle_deadline < deadline {
            TimeoutPhase::Idle
        } else {
            TimeoutPhase::Total
        };
        timeout_at(deadline.min(idle_deadline), answer.chunk())
            .await
            .map_err(|_elapsed| self.timed_out(phase))?
            .map_err(|error| self.failed_in_body(&error))
    }

    /// When the body has to be there, if an answer has to begin by then.
    fn deadline(&self, begin: Instant) -> Instant {
        begin + self.config.more_time(self.body_bytes_max)
    }

    fn timed_out(&self, phase: TimeoutPhase) -> FetchError {
        let limit = match phase {
            TimeoutPhase::Connect => self.config.connect_timeout,
            TimeoutPhase::Idle => self.config.idle_timeout,
            TimeoutPhase::Total | TimeoutPhase::Memory => self.config.total_timeout,
        };
        FetchError::Timeout {
            url: self.url.clone(),
            phase,
            limit,
        }
    }

    fn body_too_large(&self) -> FetchError {
        FetchError::BodyTooLarge {
            url: self.url.clone(),
            limit: self.body_bytes_max,
        }
    }

    fn headers_too_large(&self) -> FetchError {
        FetchError::HeadersTooLarge {
            url: self.url.clone(),
            limit: self.config.header_bytes_max,
        }
    }
}

/// Doubles the allocation as it fills, but never beyond what is reserved.
fn make_room(body: &mut Vec<u8>, length: usize, reserved_bytes: usize) {
    if length > body.capacity() {
        let capacity = body
            .capacity()
            .saturating_mul(2)
            .clamp(length, reserved_bytes);
        body.reserve_exact(capacity - body.len());
    }
}

fn check_url(url: &Url, safe_url: &SafeUrl) -> Result<(), FetchError> {
    let problem = if !matches!(url.scheme(), "http" | "https") {
        "only http and https are spoken here"
    } else if !url.username().is_empty() || url.password().is_some() {
        "a user or password in a url is not sent; give it as a credential"
    } else {
        return Ok(());
    };
    Err(FetchError::InvalidUrl {
        url: safe_url.clone(),
        reason: problem,
    })
}

fn check_literal(url: &Url, trust: HostTrust) -> Result<(), FetchError> {
    match literal_address(url) {
        Some(address) if trust == HostTrust::Learnt && !is_public(address) => {
            let host = bounded(url.host_str().unwrap_or_default());
            Err(FetchError::AddressRefused { host, address })
        }
        _ => Ok(()),
    }
}

/// The second lock on the same door: should a connection ever come about that the checks above
/// did not see, its answer is not used.
fn check_peer(answer: &reqwest::Response, trust: HostTrust) -> Result<(), FetchError> {
    match answer.remote_addr() {
        Some(peer) if trust == HostTrust::Learnt && !is_public(peer.ip()) => {
            let host = bounded(answer.url().host_str().unwrap_or_default());
            Err(FetchError::AddressRefused {
                host,
                address: peer.ip(),
            })
        }
        _ => Ok(()),
    }
}

fn outgoing(request: Request) -> Result<reqwest::Request, FetchError> {
    let method = match request.method {
        Method::Get => reqwest::Method::GET,
        Method::Post => reqwest::Method::POST,
    };
    let url = with_secret_query(request.url, &request.secret_query);
    let mut outgoing = reqwest::Request::new(method, url);
    for (name, value) in &request.headers {
        let (name, value) = header(name, value)?;
        outgoing.headers_mut().append(name, value);
    }
    for (name, secret) in &request.secret_headers {
        let (name, mut value) = header(name, secret.expose_secret())?;
        value.set_sensitive(true);
        outgoing.headers_mut().append(name, value);
    }
    *outgoing.body_mut() = request.body.map(reqwest::Body::from);
    Ok(outgoing)
}

/// The URL with the secret pairs. A server may have repeated them in a redirect; they are sent once.
fn with_secret_query(mut url: Url, secrets: &[(String, Secret)]) -> Url {
    if secrets.is_empty() {
        return url;
    }
    let is_secret = |name: &str| secrets.iter().any(|(secret, _)| secret == name);
    let others: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| !is_secret(name))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    let secrets = secrets
        .iter()
        .map(|(name, secret)| (name.as_str(), secret.expose_secret()));
    url.query_pairs_mut()
        .clear()
        .extend_pairs(others)
        .extend_pairs(secrets);
    url
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), FetchError> {
    let invalid = |reason| FetchError::InvalidHeader {
        name: bounded(name),
        reason,
    };
    let parsed_name = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_error| invalid("not a header name; use letters, digits and hyphens"))?;
    if FRAMING_HEADERS.contains(&parsed_name.as_str()) {
        return Err(invalid("set by the connection itself; leave it out"));
    }
    let parsed_value = HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_error| invalid("the value has a line break or another control character"))?;
    Ok((parsed_name, parsed_value))
}

fn client(
    config: &FetchConfig,
    trust: HostTrust,
    resolver: Arc<dyn HostResolver>,
) -> Result<Client, FetchError> {
    let public_only = trust == HostTrust::Learnt;
    let resolver = Arc::new(CheckedResolver {
        resolver,
        public_only,
    });
    let builder = || {
        let header_bytes_max = u32::try_from(config.header_bytes_max).unwrap_or(u32::MAX);
        Client::builder()
            .user_agent(config.user_agent.as_str())
            .connect_timeout(config.connect_timeout)
            // Each try and each hop has to be paid for by the caller, and a proxy would resolve
            // the host itself, unchecked.
            .retry(reqwest::retry::never())
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .dns_resolver(Arc::clone(&resolver))
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .pool_max_idle_per_host(config.per_host_max)
            .tcp_keepalive(TCP_KEEP_ALIVE)
            .http2_initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
            .http2_initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES)
            .http2_keep_alive_interval(HTTP2_PING_INTERVAL)
            .http2_keep_alive_timeout(config.idle_timeout)
            .http2_max_header_list_size(header_bytes_max)
    };
    builder().build().or_else(|error| {
        // Without root certificates (a bare container) plain http, such as the synthetic network
        // on loopback, still has to work; then every https host is refused.
        let without_roots = builder().tls_certs_only([]).build();
        if without_roots.is_ok() {
            let cause = failure::reason(&error);
            tracing::warn!(
                cause,
                "no root certificates: install them to reach https hosts"
            );
        }
        without_roots.map_err(|_second| FetchError::Setup {
            reason: failure::reason(&error),
        })
    })
}

/// A [`HostResolver`] in the form reqwest asks for. What it returns is what is dialled.
struct CheckedResolver {
    resolver: Arc<dyn HostResolver>,
    public_only: bool,
}

impl reqwest::dns::Resolve for CheckedResolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let resolving = self.resolver.resolve(name.as_str());
        let public_only = self.public_only;
        Box::pin(async move {
            let addresses = dialled_addresses(resolving.await, public_only)?;
            // Port 0 stands for the port of the URL.
            let dialled = addresses
                .into_iter()
                .map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(dialled) as reqwest::dns::Addrs)
        })
    }
}

/// The semaphores are never closed; if one were, the exchange would fail rather than run unbounded.
fn closed(_error: AcquireError) -> FetchError {
    FetchError::Setup {
        reason: "its bounds were closed".to_owned(),
    }
}
