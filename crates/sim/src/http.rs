//! The network's HTTP edge: counts, enters in the ledger, answers.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, LINK};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;

use crate::Limits;
use crate::clock::Clock;
use crate::ledger::{Asked, Entered, Ledger};
use crate::limits::{Caller, Limiter, RateHeaders, Verdict};
use crate::mastodon::{AccountCache, Answer, Asking, Params, Problem, Renderer, Route, is_paging};
use crate::probe;
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
    pub(crate) accounts: AccountCache,
    pub(crate) books: Mutex<Books>,
}

/// What is counted. One lock, so that a call is counted and entered in one step.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) limiter: Limiter,
    pub(crate) ledger: Ledger,
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
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let (request, _body) = request.into_parts();
    if request.uri.path().starts_with("/_sim") {
        return probe::handle(shared, &request.uri).await;
    }
    let (caller, is_token_valid) = caller(&request.headers, peer);
    let params = Params::read(request.uri.query().unwrap_or_default());
    let route = if request.method == Method::GET {
        Route::read(request.uri.path(), &params)
    } else {
        Route::Unknown
    };
    let target = request
        .uri
        .path_and_query()
        .map_or("", |target| target.as_str());
    let asked = Asked {
        query: route.query(),
        subject: route.subject(),
        cursor: params.cursor(),
        target: target.to_owned(),
        credential: credential(&caller),
    };
    let (verdict, entered) = count(&shared, &caller, is_paging(&params), asked);
    if !shared.latency.is_zero() {
        tokio::time::sleep(shared.latency).await;
    }
    let answer = if verdict.refused_by.is_some() {
        Problem::TooManyRequests.into()
    } else if !is_token_valid {
        Problem::InvalidToken.into()
    } else {
        let host = request
            .headers
            .get(HOST)
            .and_then(|host| host.to_str().ok());
        let question = Question {
            route,
            params,
            url: format!("http://{}{}", host.unwrap_or_default(), request.uri.path()),
            is_signed_in: matches!(caller, Caller::Token { .. }),
        };
        answer(&shared, question).await
    };
    shared.books().ledger.answered(entered, answer.status);
    respond(answer, verdict.headers.as_ref())
}

/// What the world is asked, once a call has been let in.
#[derive(Debug)]
struct Question {
    route: Route,
    params: Params,
    /// Scheme, host and path, for the links to other pages.
    url: String,
    is_signed_in: bool,
}

impl Question {
    fn answer(&self, shared: &Shared) -> Answer {
        let renderer = Renderer {
            world: &shared.world,
            accounts: &shared.accounts,
            at_us: shared.clock.world().micros(),
            is_signed_in: self.is_signed_in,
        };
        renderer.answer(Asking {
            route: &self.route,
            params: &self.params,
            url: &self.url,
        })
    }
}

async fn answer(shared: &Arc<Shared>, question: Question) -> Answer {
    if !question.route.is_wide() {
        return question.answer(shared);
    }
    // Long work: the requests of others must not wait behind it.
    let shared = Arc::clone(shared);
    tokio::task::spawn_blocking(move || question.answer(&shared))
        .await
        .unwrap_or_else(|_| Problem::Broken.into())
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

fn respond(answer: Answer, rate: Option<&RateHeaders>) -> Response {
    let mut response = body_response(
        answer.status,
        "application/json; charset=utf-8",
        answer.body,
    );
    let headers = response.headers_mut();
    let mut set = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set("vary", "Authorization, Origin");
    set("cache-control", "private, no-store");
    if let Some(link) = &answer.link {
        set(LINK.as_str(), link);
    }
    if let Some(rate) = rate {
        set("x-ratelimit-limit", &rate.limit.to_string());
        set("x-ratelimit-remaining", &rate.remaining.to_string());
        set("x-ratelimit-reset", &rate.reset);
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
