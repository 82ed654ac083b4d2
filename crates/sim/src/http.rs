//! The network's HTTP edge: counts, enters in the ledger, answers.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;

use crate::Limits;
use crate::clock::Clock;
use crate::faults::{FaultLog, FaultState, Kind, Told, script};
use crate::ledger::{Asked, Entered, Ledger};
use crate::limits::{Caller, Limiter, RateHeaders, Verdict};
use crate::mastodon::{AccountCache, Answer, Problem, Route, is_paging};
use crate::probe;
use crate::question::{Question, Reply};
use crate::wire::{Ending, Peer, Script};
use crate::world::World;

/// Longer tokens are no tokens.
const TOKEN_LENGTH_MAX: usize = 256;

/// Everything requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) world: World,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) latency: Duration,
    pub(crate) seed: u64,
    pub(crate) faults: FaultState,
    /// How long a fault keeps a caller waiting.
    pub(crate) stall: Duration,
    pub(crate) accounts: AccountCache,
    pub(crate) books: Mutex<Books>,
}

/// What is counted. One lock, so that a call is counted and entered in one step.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) limiter: Limiter,
    pub(crate) ledger: Ledger,
    pub(crate) faults: FaultLog,
}

impl Shared {
    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        // Nothing that is done under the lock can panic half way.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(handle).with_state(shared)
}

async fn handle(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Response {
    let (request, _body) = request.into_parts();
    if request.uri.path().starts_with("/_sim") {
        return probe::handle(shared, &request.uri).await;
    }
    let (caller, is_token_valid) = caller(&request.headers, peer.address);
    let mut question = Question::read(&request, matches!(caller, Caller::Token { .. }));
    if question.route == Route::Loop && shared.faults.is_off() {
        question.route = Route::Unknown;
    }
    let asked = question.asked(credential(&caller));
    let (verdict, entered) = count(&shared, &caller, is_paging(&question.params), asked);
    let problem = if verdict.refused_by.is_some() {
        Some(Problem::TooManyRequests)
    } else if is_token_valid {
        None
    } else {
        Some(Problem::InvalidToken)
    };
    let disturbance = match problem {
        None if !matches!(question.route, Route::Loop | Route::Unknown) => {
            shared.faults.disturb(&question.target, &question.params)
        }
        _ => None,
    };
    if !shared.latency.is_zero() {
        tokio::time::sleep(shared.latency).await;
    }
    let reply = match problem {
        Some(problem) => problem.into(),
        None => question.reply(&shared, disturbance).await,
    };
    let sending = Sending {
        verdict,
        entered,
        peer,
    };
    finish(&shared, &question, reply, &sending)
}

/// How an answer gets to its caller.
#[derive(Debug)]
struct Sending {
    verdict: Verdict,
    entered: Entered,
    peer: Peer,
}

/// Enters in the books how a call ended, and sends the answer, or what stands for it.
fn finish(shared: &Shared, question: &Question, reply: Reply, sending: &Sending) -> Response {
    let Reply {
        answer,
        broken,
        strike,
    } = reply;
    let headers = headers(&answer, sending.verdict.headers.as_ref());
    let scripted = broken.map(|kind| {
        let told = Told {
            status: answer.status,
            headers: &headers,
            body: &answer.body,
            target: &question.target,
            host: &question.host,
            stall: shared.stall,
            seed: shared.seed,
        };
        script(kind, told)
    });
    let status = scripted
        .as_ref()
        .map_or(answer.status, |(_, status)| *status);
    let happened = match (broken, answer.spoilt, strike) {
        (Some(kind), _, _) => Some(question.happened(kind, None)),
        (_, _, Some(strike)) => Some(question.happened(strike.kind, Some(strike.withdrew))),
        (_, Some(spoil), _) => Some(question.happened(spoil.into(), None)),
        (None, None, None) => None,
    };
    let kind = match &happened {
        Some(happened) => Some(happened.kind),
        // Whoever walks in a loop still meets the one fault that led there.
        None => (question.route == Route::Loop).then_some(Kind::RedirectLoop),
    };
    let mut books = shared.books();
    books.ledger.answered(sending.entered, status, kind);
    if let Some(happened) = happened {
        books.faults.enter(sending.entered.seq(), happened);
    }
    drop(books);
    match scripted {
        Some((script, _)) => stand_in(&sending.peer, script),
        None => respond(answer, headers),
    }
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
fn count(shared: &Shared, caller: &Caller, is_paging: bool, asked: Asked) -> (Verdict, Entered) {
    let mut books = shared.books();
    // Read under the lock, so that calls are entered in the order of their times.
    let real = shared.clock.real();
    let limit = shared.clock.limit_at(real);
    let verdict = match shared.limits {
        Limits::Strict => books.limiter.admit(caller, is_paging, limit),
        Limits::Off => Verdict::free(),
    };
    let entered = books.ledger.enter(asked, real, limit, verdict.refused_by);
    (verdict, entered)
}

/// Who calls, and whether what they showed is accepted. A token that is not counts for its address.
fn caller(headers: &HeaderMap, peer: SocketAddr) -> (Caller, bool) {
    let anonymous = || Caller::Anonymous {
        address: peer.ip().to_string(),
    };
    let Some(shown) = headers.get(AUTHORIZATION) else {
        return (anonymous(), true);
    };
    match shown
        .to_str()
        .ok()
        .and_then(|text| text.strip_prefix("Bearer "))
    {
        Some(token) if is_token(token) => {
            let user = token.split_once(':').map_or(token, |(user, _)| user);
            (
                Caller::Token {
                    token: token.to_owned(),
                    user: user.to_owned(),
                },
                true,
            )
        }
        _ => (anonymous(), false),
    }
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
fn headers(answer: &Answer, rate: Option<&RateHeaders>) -> Vec<(&'static str, String)> {
    let mut headers = vec![
        ("vary", "Authorization, Origin".to_owned()),
        ("cache-control", "private, no-store".to_owned()),
    ];
    if let Some(link) = &answer.link {
        headers.push(("link", link.clone()));
    }
    if let Some(location) = &answer.location {
        headers.push(("location", location.clone()));
    }
    if let Some(rate) = rate {
        headers.push(("x-ratelimit-limit", rate.limit.to_string()));
        headers.push(("x-ratelimit-remaining", rate.remaining.to_string()));
        headers.push(("x-ratelimit-reset", rate.reset.clone()));
    }
    headers
}

fn respond(answer: Answer, headers: Vec<(&'static str, String)>) -> Response {
    let mut response = body_response(
        answer.status,
        "application/json; charset=utf-8",
        answer.body,
    );
    for (name, value) in headers {
        // A value that is none came with the caller's own host header.
        if let Ok(value) = HeaderValue::from_str(&value) {
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
