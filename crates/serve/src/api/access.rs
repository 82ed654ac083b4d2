//! Who is asking.

use super::{Answer, Body, Known};
use crate::api::refusal::{Forbidden, Invalid, NotJson, TooMany, Unknown};
use crate::desk::GivenSecret;
use crate::{Caller, Problem, Role};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use utoipa::ToSchema;

/// Who wants to be let in.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogIn {
    /// `viewer` or `operator`.
    #[schema(max_length = 50)]
    role: String,
    password: GivenSecret,
}

/// Who somebody is here.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Me {
    role: Role,
    /// Whether they can log out.
    has_session: bool,
}

/// Begins a session, for browsers. Programs send HTTP Basic instead.
#[utoipa::path(post, path = "/api/login", tag = "access", request_body = LogIn, security(()), responses(
    (status = 200, body = Me, headers(("set-cookie" = String))),
    Invalid, Unknown, Forbidden,
    (status = 409, description = "no password is set", body = Problem,
     content_type = "application/problem+json"),
    NotJson, TooMany))]
pub(crate) async fn log_in(State(shared): Known, request: Request) -> Result<Response, Problem> {
    use axum::extract::FromRequest as _;
    let from = crate::guard::address(&shared.settings, request.extensions(), request.headers());
    let Body(LogIn { role, password }) = Body::from_request(request, &()).await?;
    let (role, cookie) = shared.log_in(from, &role, password.0).await?;
    let me = Me {
        role,
        has_session: true,
    };
    Ok(([(header::SET_COOKIE, cookie.0)], Json(me)).into_response())
}

/// Ends the session.
#[utoipa::path(post, path = "/api/logout", tag = "access", responses(
    (status = 204, description = "the session is over"),
    Forbidden))]
pub(crate) async fn log_out(State(shared): Known, headers: HeaderMap) -> Response {
    let cookie = shared.log_out(&headers);
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie.0)]).into_response()
}

/// Who is asking, and what they may do.
#[utoipa::path(get, path = "/api/me", tag = "access", responses((status = 200, body = Me)))]
pub(crate) async fn me(Extension(caller): Extension<Caller>) -> Json<Me> {
    Json(Me {
        role: caller.role,
        has_session: caller.has_session,
    })
}

/// Takes a browser's word that a page tried what the content security policy forbids. It is counted.
#[utoipa::path(post, path = "/api/reports", tag = "access", security(()),
    request_body(content = String, content_type = "application/csp-report"),
    responses((status = 204, description = "it was counted")))]
pub(crate) async fn report(State(shared): Known) -> StatusCode {
    shared.reports.fetch_add(1, Ordering::Relaxed);
    StatusCode::NO_CONTENT
}

/// What browsers told of.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Reports {
    violations: u64,
}

/// How many violations of the content security policy browsers have told of.
#[utoipa::path(get, path = "/api/reports/count", tag = "access",
    responses((status = 200, body = Reports)))]
pub(crate) async fn reports(State(shared): Known) -> Answer<Reports> {
    Ok(Json(Reports {
        violations: shared.reports(),
    }))
}
