//! The network's HTTP edge: counts, enters in the ledger, answers.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;

use crate::Limits;
use crate::clock::Clock;
use crate::faults::{
    Disturbance, FaultLog, FaultState, Happened, Kind, Strike, Told, Withdrew, script,
};
use crate::ledger::{Asked, Entered, Ledger};
use crate::limits::{Caller, Limiter, RateHeaders, Verdict};
use crate::mastodon::{AccountCache, Answer, Asking, Params, Problem, Renderer, Route, is_paging};
use crate::probe;
use crate::wire::{Ending, Peer, Script};
use crate::world::{Moment, World};

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
    let mut question = Question::read(&request, &caller);
    if question.route == Route::Loop && shared.faults.is_off() {
        question.route = Route::Unknown;
    }
    let asked = question.asked(&caller);
    let (verdict, entered) = count(&shared, &caller, is_paging(&question.params), asked);
    let problem = if verdict.refused_by.is_some() {
        Some(Problem::TooManyRequests)
    } else if is_token_valid {
        None
    } else {
        Some(Problem::InvalidToken)
    };
    let disturbance = match problem {
        None if question.route != Route::Loop => {
            shared.faults.disturb(&question.target, &question.params)
        }
        _ => None,
    };
    if !shared.latency.is_zero() {
        tokio::time::sleep(shared.latency).await;
    }
    let reply = match problem {
        Some(problem) => problem.into(),
        None => answer(&shared, &question, disturbance).await,
    };
    finish(
        &shared,
        &question,
        reply,
        &Sending {
            verdict,
            entered,
            peer,
        },
    )
}

/// What the world is asked.
#[derive(Debug, Clone)]
struct Question {
    route: Route,
    params: Params,
    /// Path and query exactly as sent.
    target: String,
    host: String,
    /// Scheme, host and path, for the links to other pages.
    url: String,
    is_signed_in: bool,
}

impl Question {
    fn read(request: &Parts, caller: &Caller) -> Self {
        let params = Params::read(request.uri.query().unwrap_or_default());
        let route = if request.method == Method::GET {
            Route::read(request.uri.path(), &params)
        } else {
            Route::Unknown
        };
        let target = request.uri.path_and_query();
        let host = request.headers.get(HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
        Self {
            route,
            params,
            target: target.map_or_else(String::new, ToString::to_string),
            url: format!("http://{host}{}", request.uri.path()),
            host: host.to_owned(),
            is_signed_in: matches!(caller, Caller::Token { .. }),
        }
    }

    fn asked(&self, caller: &Caller) -> Asked {
        Asked {
            query: self.route.query(),
            subject: self.route.subject(),
            cursor: self.params.cursor(),
            target: self.target.clone(),
            credential: credential(caller),
        }
    }

    fn answer(&self, shared: &Shared, disturbance: Option<Disturbance>) -> Reply {
        let now_us = shared.clock.world().micros();
        let withdrawn = shared.faults.withdrawn();
        let renderer = Renderer {
            world: &shared.world,
            accounts: &shared.accounts,
            now: Moment::new(now_us, &withdrawn),
            is_signed_in: self.is_signed_in,
        };
        let asking = Asking {
            route: &self.route,
            params: &self.params,
            url: &self.url,
            spoil: None,
        };
        let spoil = match disturbance {
            Some(Disturbance::Transport(kind)) => {
                return Reply {
                    answer: renderer.answer(asking),
                    broken: Some(kind),
                    strike: None,
                };
            }
            Some(Disturbance::Spoil(spoil)) => Some(spoil),
            None => None,
        };
        let Some(strike) = shared.faults.strike(&renderer, asking) else {
            return renderer.answer(Asking { spoil, ..asking }).into();
        };
        let answer = if strike.is_after_answer {
            let answer = renderer.answer(asking);
            shared.faults.apply(&strike, now_us);
            answer
        } else {
            shared.faults.apply(&strike, now_us);
            let withdrawn = shared.faults.withdrawn();
            let now = Moment::new(now_us, &withdrawn);
            Renderer { now, ..renderer }.answer(asking)
        };
        Reply {
            answer,
            broken: None,
            strike: Some(strike),
        }
    }

    fn happened(&self, kind: Kind, withdrew: Option<Withdrew>) -> Happened {
        Happened {
            kind,
            target: self.target.clone(),
            subject: self.route.subject(),
            withdrew,
        }
    }
}

/// An answer and what goes wrong with it.
#[derive(Debug)]
struct Reply {
    answer: Answer,
    /// The transport fault it meets.
    broken: Option<Kind>,
    strike: Option<Strike>,
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self {
            answer,
            broken: None,
            strike: None,
        }
    }
}

impl From<Problem> for Reply {
    fn from(problem: Problem) -> Self {
        Answer::from(problem).into()
    }
}

async fn answer(
    shared: &Arc<Shared>,
    question: &Question,
    disturbance: Option<Disturbance>,
) -> Reply {
    if !question.route.is_wide() {
        return question.answer(shared, disturbance);
    }
    // Long work: the requests of others must not wait behind it.
    let (shared, question) = (Arc::clone(shared), question.clone());
    tokio::task::spawn_blocking(move || question.answer(&shared, disturbance))
        .await
        .unwrap_or_else(|_| Problem::Broken.into())
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
        (kind, script(kind, told))
    });
    let status = scripted
        .as_ref()
        .map_or(answer.status, |(_, (_, status))| *status);
    let happened = match (broken, answer.spoilt, strike) {
        (Some(kind), _, _) => Some(question.happened(kind, None)),
        (_, _, Some(strike)) => Some(question.happened(strike.kind, Some(strike.withdrew))),
        (_, Some(spoil), _) => Some(question.happened(spoil.into(), None)),
        (None, None, None) => None,
    };
    let kind = match &happened {
        Some(happened) => Some(happened.kind),
        // Whoever walks in a loop still meets the one fault that led there.
        None => (answer.location.is_some()).then_some(Kind::RedirectLoop),
    };
    let mut books = shared.books();
    books.ledger.answered(sending.entered, status, kind);
    if let Some(happened) = happened {
        books.faults.enter(sending.entered.seq(), happened);
    }
    drop(books);
    match scripted {
        Some((_, (script, _))) => stand_in(&sending.peer, script),
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
