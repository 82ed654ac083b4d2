//! Logging in to the dashboard, and out.

use super::frame::{Frame, own_path};
use crate::guard;
use crate::{Problem, Shared};
use axum::extract::{Form, FromRequestParts, Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Redirect, Response};
use kittiwake_model::Secret;
use maud::{Markup, html};
use serde::Deserialize;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

/// Where a request comes from.
pub(super) struct Peer(IpAddr);

impl FromRequestParts<Arc<Shared>> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        shared: &Arc<Shared>,
    ) -> Result<Self, Infallible> {
        let address = guard::address(&shared.settings, &parts.extensions, &parts.headers);
        Ok(Self(address))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Wanted {
    /// The page that was asked for before.
    #[serde(default)]
    next: String,
}

pub(super) async fn form(frame: Frame, Query(wanted): Query<Wanted>) -> Response {
    frame
        .bare("Log in", &page(None, &wanted.next))
        .into_response()
}

fn page(refused: Option<&Problem>, next: &str) -> Markup {
    html! {
        section.part {
            h1 { "Log in" }
            @if let Some(problem) = refused { p.said.bad role="alert" { (problem.detail) } }
            form.stack action="/login" method="post" {
                input type="hidden" name="next" value=(next);
                div.field {
                    label for="role" { "As" }
                    select id="role" name="role" autocomplete="username" {
                        option value="operator" { "operator: sees and steers" }
                        option value="viewer" { "viewer: sees" }
                    }
                }
                div.field {
                    label for="password" { "Password" }
                    input id="password" type="password" name="password" required autofocus maxlength="1000" autocomplete="current-password";
                }
                button.main { "Log in" }
            }
            p.note { "Passwords are set on the machine that crawls: kittiwake auth password" }
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Entering {
    role: String,
    password: String,
    #[serde(default)]
    next: String,
}

pub(super) async fn enter(
    frame: Frame,
    State(shared): State<Arc<Shared>>,
    Peer(from): Peer,
    Form(entering): Form<Entering>,
) -> Response {
    let password = Secret::new(entering.password);
    match shared.log_in(from, &entering.role, password).await {
        Ok((_, cookie)) => (
            [(header::SET_COOKIE, cookie.0)],
            Redirect::to(own_path(&entering.next)),
        )
            .into_response(),
        Err(problem) => {
            let page = frame.bare("Log in", &page(Some(&problem), &entering.next));
            (problem.status(), page).into_response()
        }
    }
}

pub(super) async fn leave(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let cookie = shared.log_out(&headers);
    ([(header::SET_COOKIE, cookie.0)], Redirect::to("/login")).into_response()
}
