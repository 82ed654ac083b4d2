//! One question to the world, and the reply to it with all that goes wrong.

use std::sync::Arc;

use axum::http::Method;
use axum::http::header::HOST;
use axum::http::request::Parts;

use crate::answer::Answer;
use crate::faults::{Disturbance, Happened, Kind, Strike, Withdrew};
use crate::http::Shared;
use crate::ledger::Asked;
use crate::mastodon::{Asking, Problem, Renderer, Route, cursor, is_paging};
use crate::params::Params;
use crate::world::Moment;

/// The name that a caller calls.
pub(crate) fn host_of(request: &Parts) -> String {
    let host = request.headers.get(HOST);
    let host = host.and_then(|host| host.to_str().ok());
    host.unwrap_or_default().to_owned()
}

/// What a call is about, as the books have it, whatever the dialect.
#[derive(Debug, Clone)]
pub(crate) struct Topic {
    pub(crate) query: &'static str,
    pub(crate) subject: String,
    /// The paging parameters; empty for a first page.
    pub(crate) cursor: String,
    /// Path and query exactly as sent.
    pub(crate) target: String,
    pub(crate) host: String,
    pub(crate) is_paging: bool,
    /// Whether a redirect that never ends led here.
    pub(crate) is_loop: bool,
}

impl Topic {
    pub(crate) fn asked(&self, credential: String) -> Asked {
        Asked {
            query: self.query,
            subject: self.subject.clone(),
            cursor: self.cursor.clone(),
            target: self.target.clone(),
            credential,
        }
    }

    pub(crate) fn happened(&self, kind: Kind, withdrew: Option<Withdrew>) -> Happened {
        Happened {
            kind,
            target: self.target.clone(),
            subject: self.subject.clone(),
            withdrew,
        }
    }
}

/// Path and query of a request exactly as sent.
pub(crate) fn target_of(request: &Parts) -> String {
    let target = request.uri.path_and_query();
    target.map_or_else(String::new, ToString::to_string)
}

/// What the world is asked.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) route: Route,
    params: Params,
    target: String,
    host: String,
    /// Scheme, host and path, for the links to other pages.
    url: String,
    is_signed_in: bool,
}

impl Question {
    pub(crate) fn read(request: &Parts, is_signed_in: bool) -> Self {
        let params = Params::read(request.uri.query().unwrap_or_default());
        let route = if request.method == Method::GET {
            Route::read(request.uri.path(), &params)
        } else {
            Route::Unknown
        };
        let host = host_of(request);
        Self {
            route,
            params,
            target: target_of(request),
            url: format!("http://{host}{}", request.uri.path()),
            host,
            is_signed_in,
        }
    }

    pub(crate) fn topic(&self) -> Topic {
        Topic {
            query: self.route.query(),
            subject: self.route.subject(),
            cursor: cursor(&self.params),
            target: self.target.clone(),
            host: self.host.clone(),
            is_paging: is_paging(&self.params),
            is_loop: self.route == Route::Loop,
        }
    }

    pub(crate) async fn reply(
        &self,
        shared: &Arc<Shared>,
        disturbance: Option<Disturbance>,
    ) -> Reply {
        if !self.route.is_wide() {
            return self.answer(shared, disturbance);
        }
        // Long work: the requests of others must not wait behind it.
        let (shared, question) = (Arc::clone(shared), self.clone());
        tokio::task::spawn_blocking(move || question.answer(&shared, disturbance))
            .await
            .unwrap_or_else(|_| Problem::Broken.into())
    }

    fn answer(&self, shared: &Shared, disturbance: Option<Disturbance>) -> Reply {
        let now_us = shared.clock.world().micros();
        let withdrawn = shared.faults.withdrawn();
        let renderer = Renderer {
            world: &shared.world,
            accounts: &shared.accounts,
            now: Moment::new(now_us, &withdrawn),
            is_signed_in: self.is_signed_in,
            instance: shared.instance.as_ref(),
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
        let strike = renderer.walk(asking).and_then(|walk| {
            let walked = || renderer.walked(asking);
            shared
                .faults
                .strike(renderer.world, renderer.now, walk, walked)
        });
        let Some(strike) = strike else {
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
}

/// An answer and what goes wrong with it.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    /// The transport fault it meets.
    pub(crate) broken: Option<Kind>,
    pub(crate) strike: Option<Strike>,
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
