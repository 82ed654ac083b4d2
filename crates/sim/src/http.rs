//! The network's HTTP edge: counts, enters in the ledger, answers.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;

use crate::Limits;
use crate::answer::{Answer, JSON};
use crate::bill::Bill;
use crate::clock::Clock;
use crate::dialect::{self, Speech};
use crate::faults::{Disturbance, FaultLog, FaultState, Kind, Told, script};
use crate::fediverse::{BAD_GATEWAY, Instance, Trouble};
use crate::hub::Hub;
use crate::ledger::{Entered, Ledger};
use crate::limits::{Call, Caller, Header, Limiter, Refusal, Verdict};
use crate::mastodon::{AccountCache, Problem, Route};
use crate::probe;
use crate::question::{Question, Reply, Topic, host_of};
use crate::stay::Stay;
use crate::wire::{Ending, Peer, Script};
use crate::world::World;
use crate::world::time::http_date;

/// The status for a call by a name that nobody here has.
const MISDIRECTED: u16 = 421;
/// Longer tokens are no tokens.
const TOKEN_LENGTH_MAX: usize = 256;

/// Everything requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) world: Arc<World>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) latency: Duration,
    pub(crate) seed: u64,
    pub(crate) faults: Arc<FaultState>,
    /// How long a fault keeps a caller waiting.
    pub(crate) stall: Duration,
    pub(crate) accounts: AccountCache,
    pub(crate) books: Mutex<Books>,
    /// Whether callers can ask what they have left.
    pub(crate) has_limits_page: bool,
    /// None where everybody is on one server.
    pub(crate) instance: Option<Instance>,
    /// How it speaks, if not as Mastodon does.
    pub(crate) speech: Option<&'static dyn Speech>,
}

/// What is counted. One lock, so that a call is counted and entered in one step.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) limiter: Limiter,
    pub(crate) ledger: Ledger,
    pub(crate) bill: Bill,
    pub(crate) faults: FaultLog,
}

impl Books {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            limiter: Limiter::new(limits),
            ledger: Ledger::default(),
            bill: Bill::default(),
            faults: FaultLog::default(),
        }
    }
}

impl Shared {
    /// What happens to the answer to a call. Instances do not share what happens to them.
    pub(crate) fn disturb(&self, topic: &Topic) -> Option<Disturbance> {
        match &self.instance {
            Some(instance) => {
                let target = format!("{}{}", instance.number, topic.target);
                self.faults.disturb(&target, topic.is_paging)
            }
            None => self.faults.disturb(&topic.target, topic.is_paging),
        }
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        // Nothing that is done under the lock can panic half way.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn router(hub: Arc<Hub>) -> Router {
    Router::new().fallback(dispatch).with_state(hub)
}

/// Finds out who is called.
async fn dispatch(
    State(hub): State<Arc<Hub>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Response {
    let (request, _body) = request.into_parts();
    if request.uri.path().starts_with("/_sim") {
        return probe::handle(hub, &request.uri).await;
    }
    let host = host_of(&request);
    let Some(shared) = hub.called(&host) else {
        hub.note_stranger(&host);
        let body = br#"{"error":"nobody here has that name"}"#.to_vec();
        return body_response(MISDIRECTED, JSON, body);
    };
    match shared.speech {
        Some(speech) => dialect::handle(Arc::clone(shared), speech, peer, request).await,
        None => handle(Arc::clone(shared), peer, request).await,
    }
}

async fn handle(shared: Arc<Shared>, peer: Peer, request: Parts) -> Response {
    let (caller, is_token_valid) = bearer(&request.headers, peer.address);
    let mut question = Question::read(&request, matches!(caller, Caller::Token { .. }));
    let has_no_such_page = match question.route {
        Route::Loop => shared.faults.is_off(),
        Route::Limits => !shared.has_limits_page,
        _ => shared.instance.is_none() && question.route.is_of_a_fediverse(),
    };
    if has_no_such_page {
        question.route = Route::Unknown;
    }
    let topic = question.topic();
    let is_free = question.route == Route::Limits;
    let (mut verdict, entered) = count(&shared, &caller, &topic, is_free);
    let stay = Stay::new(&shared, verdict.take_held());
    let trouble = shared
        .instance
        .as_ref()
        .and_then(|instance| instance.trouble);
    if let Some(script) = trouble.and_then(|trouble| trouble.script(shared.stall)) {
        return stand_in(&peer, Script { stay, ..script });
    }
    let refused = match &verdict.refusal {
        _ if trouble == Some(Trouble::BadGateway) => Some(bad_gateway()),
        Some(refusal) => Some(refused(refusal)),
        None if is_token_valid => None,
        None => Some(Problem::InvalidToken.into()),
    };
    let is_of_the_world = !matches!(question.route, Route::Limits | Route::Loop | Route::Unknown);
    let disturbance = match refused {
        None if is_of_the_world => shared.disturb(&topic),
        _ => None,
    };
    let delay = trouble.and_then(|trouble| trouble.delay(shared.stall));
    let delay = shared.latency + delay.unwrap_or_default();
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let reply = match refused {
        Some(answer) => answer.into(),
        None if question.route == Route::Limits => status(&shared, &caller).into(),
        None => question.reply(&shared, disturbance).await,
    };
    let sending = Sending {
        verdict,
        entered,
        payer: caller.payer().to_owned(),
        peer,
        stay,
    };
    finish(&shared, &topic, reply, sending)
}

/// How an answer gets to its caller.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) verdict: Verdict,
    pub(crate) entered: Entered,
    /// Who is billed for it.
    pub(crate) payer: String,
    pub(crate) peer: Peer,
    pub(crate) stay: Option<Stay>,
}

/// Enters in the books how a call ended, and sends the answer, or what stands for it.
pub(crate) fn finish(
    shared: &Shared,
    topic: &Topic,
    reply: Reply,
    mut sending: Sending,
) -> Response {
    let Reply {
        answer,
        broken,
        strike,
    } = reply;
    charge_items(shared, &mut sending.verdict, &answer);
    let headers = headers(&answer, &sending.verdict, shared.clock.limit().micros());
    let scripted = broken.map(|kind| {
        let told = Told {
            status: answer.status,
            headers: &headers,
            body: &answer.body,
            target: &topic.target,
            host: &topic.host,
            stall: shared.stall,
            seed: shared.seed,
        };
        script(kind, told)
    });
    let status = scripted
        .as_ref()
        .map_or(answer.status, |(_, status)| *status);
    let happened = match (broken, answer.spoilt, strike) {
        (Some(kind), _, _) => Some(topic.happened(kind, None)),
        (_, _, Some(strike)) => Some(topic.happened(strike.kind, Some(strike.withdrew))),
        (_, Some(spoil), _) => Some(topic.happened(spoil.into(), None)),
        (None, None, None) => None,
    };
    let kind = match &happened {
        Some(happened) => Some(happened.kind),
        // Whoever walks in a loop still meets the one fault that led there.
        None => topic.is_loop.then_some(Kind::RedirectLoop),
    };
    let mut books = shared.books();
    books.ledger.answered(sending.entered, status, kind);
    if answer.status == 200 {
        let now = shared.clock.limit();
        books.bill.enter(&sending.payer, &answer.billed, now);
    }
    if let Some(happened) = happened {
        books.faults.enter(sending.entered.seq(), happened);
    }
    drop(books);
    match (scripted, sending.stay) {
        (Some((mut script, _)), stay) => {
            script.stay = stay;
            stand_in(&sending.peer, script)
        }
        (None, Some(stay)) => stay.until_sent(respond(answer, headers)),
        (None, None) => respond(answer, headers),
    }
}

/// What some limits count is known only when the answer is made.
fn charge_items(shared: &Shared, verdict: &mut Verdict, answer: &Answer) {
    if !verdict.charges_items {
        return;
    }
    let items = answer.items();
    let mut books = shared.books();
    let now = shared.clock.limit();
    books.limiter.charge_items(verdict, items, now);
}

/// The answer to a call that a limit refused.
pub(crate) fn refused(refusal: &Refusal) -> Answer {
    let mut answer = Answer::from(Problem::TooManyRequests);
    answer.status = refusal.status;
    if let Some(body) = &refusal.body {
        answer.body = body.clone().into_bytes();
    }
    answer
}

/// The answer of a proxy whose server is gone.
fn bad_gateway() -> Answer {
    Answer::with_body(502, "text/html", BAD_GATEWAY.as_bytes().to_vec())
}

/// What the caller has left.
fn status(shared: &Shared, caller: &Caller) -> Answer {
    let mut books = shared.books();
    let now = shared.clock.limit();
    let status = books.limiter.status(caller, now);
    status.map_or_else(
        || Problem::NoSuchRoute.into(),
        |status| Answer::json(&status),
    )
}

/// Leaves a script with the connection. The response only tells the server how to go on; the
/// caller never sees it.
fn stand_in(peer: &Peer, script: Script) -> Response {
    let mut response = Response::new(Body::empty());
    if script.ending != Ending::KeepOpen {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    peer.play(script);
    response
}

/// Counts a call and enters it in the ledger, at the instant it arrived.
pub(crate) fn count(
    shared: &Shared,
    caller: &Caller,
    topic: &Topic,
    is_free: bool,
) -> (Verdict, Entered) {
    let call = Call {
        caller,
        query: topic.query,
        is_paging: topic.is_paging,
    };
    let asked = topic.asked(credential(caller));
    let mut books = shared.books();
    // Read under the lock, so that calls are entered in the order of their times.
    let real = shared.clock.real();
    let limit = shared.clock.limit_at(real);
    let verdict = if is_free {
        Verdict::free()
    } else {
        books.limiter.admit(call, limit)
    };
    let refused_by = verdict.refusal.as_ref();
    let refused_by = refused_by.map(|refusal| refusal.bucket.clone());
    let entered = books.ledger.enter(asked, real, limit, refused_by);
    (verdict, entered)
}

/// Who calls with `Authorization: Bearer`, and whether what they showed is accepted.
fn bearer(headers: &HeaderMap, peer: SocketAddr) -> (Caller, bool) {
    let Some(shown) = headers.get(AUTHORIZATION) else {
        return caller(None, peer);
    };
    let shown = shown.to_str().ok();
    let token = shown.and_then(|text| text.strip_prefix("Bearer "));
    caller(Some(token.unwrap_or_default()), peer)
}

/// Who calls, and whether what they showed is accepted. A token that is not counts for its address.
pub(crate) fn caller(shown: Option<&str>, peer: SocketAddr) -> (Caller, bool) {
    let address = peer.ip().to_string();
    let Some(token) = shown.filter(|token| is_token(token)) else {
        return (Caller::Anonymous { address }, shown.is_none());
    };
    // APP/USER:NAME, of which the first two can be left out.
    let (app, rest) = token.split_once('/').unwrap_or((token, token));
    let user = rest.split_once(':').map_or(rest, |(user, _)| user);
    let caller = Caller::Token {
        token: token.to_owned(),
        user: user.to_owned(),
        app: app.to_owned(),
        is_of_user: token.contains('/'),
        address,
    };
    (caller, true)
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= TOKEN_LENGTH_MAX && !text.starts_with("bad")
}

fn credential(caller: &Caller) -> String {
    match caller {
        Caller::Anonymous { address } => format!("ip:{address}"),
        Caller::Token { token, .. } => format!("token:{token}"),
    }
}

/// All headers of an answer but those of type and length.
fn headers(answer: &Answer, verdict: &Verdict, now_us: i64) -> Vec<Header> {
    let mut headers: Vec<Header> = vec![
        ("date".into(), http_date(now_us)),
        ("vary".into(), "Authorization, Origin".to_owned()),
        ("cache-control".into(), "private, no-store".to_owned()),
    ];
    headers.extend(answer.headers.iter().cloned());
    headers.extend(verdict.headers());
    headers
}

fn respond(answer: Answer, headers: Vec<Header>) -> Response {
    let mut response = body_response(answer.status, answer.content_type, answer.body);
    for (name, value) in headers {
        // A value that is none came with the caller's own host header; names were checked when they
        // were read.
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(&value),
        ) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

pub(crate) fn body_response(status: u16, content_type: &'static str, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::IM_A_TEAPOT);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
