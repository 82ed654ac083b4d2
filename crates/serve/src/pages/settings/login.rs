//! Logging in to a network: which way, with what, and how it stands.

use super::super::frame::{Frame, Here, Refresh, Sheet};
use super::super::lists::{empty, encoded};
use super::super::words;
use super::page;
use crate::desk::{GivenSecret, LoginMethodView, LoginQuestion, LoginState, LoginView};
use crate::{Problem, Shared};
use axum::extract::{Form, Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use kittiwake_model::Secret;
use maud::{Markup, html};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What fields that hold secrets begin with, so that they are told from the others.
const SECRET: &str = "secret-";

#[derive(Debug, Deserialize)]
pub(in super::super) struct Choice {
    network: String,
    #[serde(default)]
    host: String,
}

impl Choice {
    /// As the program has it: `NETWORK` or `NETWORK@HOST`.
    fn asked(&self) -> String {
        match self.host.trim() {
            "" => self.network.clone(),
            host if host.contains("://") => self.network.clone(),
            host => format!("{}@{host}", self.network),
        }
    }

    /// An address that is given whole, as of a server on this machine.
    fn address(&self) -> Option<String> {
        let host = self.host.trim();
        host.contains("://").then(|| host.to_owned())
    }
}

pub(in super::super) async fn choose(
    frame: Frame,
    State(shared): State<Arc<Shared>>,
    Query(choice): Query<Choice>,
) -> Response {
    let methods = shared.desk.login_methods(choice.network.clone()).await;
    let sheet = methods.map_err(Problem::from).map(|methods| {
        let title = format!("Log in to {}", choice.asked());
        let body = html! {
            div.head { h1 { (title) } p { "What you give goes into the encrypted vault and is used for calls to this network only. " a href="/settings" { "All settings" } } }
            @if methods.is_empty() {
                section.part { (empty("There is no way to log in to this network.", "It is collected without an account.")) }
            }
            @for method in &methods { (method_form(&frame, &choice, method)) }
        };
        page(title, body)
    });
    frame.answer(sheet)
}

fn method_form(frame: &Frame, choice: &Choice, method: &LoginMethodView) -> Markup {
    html! {
        section.part aria-label={ "Log in by " (method.name) } {
            div.title { h2 { (method.name) } span.small.soft { (method.kind) } }
            @if !method.description.is_empty() { p { (method.description) } }
            @if let Some(address) = &method.page { p.small { "What is asked for is found at " (words::outside(address)) } }
            @if frame.is_operator() {
                form.stack action="/settings/login" method="post" autocomplete="off" {
                    input type="hidden" name="network" value=(choice.network);
                    input type="hidden" name="host" value=(choice.host);
                    input type="hidden" name="method" value=(method.name);
                    @for asked in &method.asked {
                        @let id = format!("{}-{asked}", method.name);
                        div.field {
                            label for=(id) { (asked.replace('_', " ")) }
                            input id=(id) type="password" name={ (SECRET) (asked) } required maxlength="8192" autocomplete="off";
                        }
                    }
                    button.main { "Log in" span.aside { " by " (method.name) } }
                }
            }
        }
    }
}

pub(in super::super) async fn begin(
    frame: Frame,
    State(shared): State<Arc<Shared>>,
    Form(given): Form<BTreeMap<String, String>>,
) -> Response {
    let begun = match frame.want_operator() {
        Ok(()) => {
            let begun = shared.desk.begin_login(question(given)).await;
            begun.map_err(Problem::from)
        }
        Err(problem) => Err(problem),
    };
    match begun {
        Ok(login) => see(&login).into_response(),
        Err(problem) => frame.refuse(problem),
    }
}

fn see(login: &LoginView) -> Redirect {
    Redirect::to(&format!("/settings/login/{}", encoded(&login.id)))
}

fn question(mut given: BTreeMap<String, String>) -> LoginQuestion {
    let mut take = |name: &str| given.remove(name).unwrap_or_default();
    let choice = Choice {
        network: take("network"),
        host: take("host"),
    };
    let method = take("method");
    let secrets = given.into_iter().filter_map(|(name, value)| {
        let name = name.strip_prefix(SECRET)?.to_owned();
        Some((name, GivenSecret(Secret::new(value))))
    });
    LoginQuestion {
        network: choice.asked(),
        host: choice.address(),
        method: Some(method).filter(|it| !it.is_empty()),
        name: None,
        secrets: secrets.collect(),
    }
}

/// How a log-in stands.
pub(in super::super) async fn login(
    frame: Frame,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
) -> Response {
    let found = shared.desk.login(id).await.map_err(Problem::from);
    let sheet = found.map(|login| Sheet {
        here: Here::Settings,
        title: "Log in".into(),
        refresh: Refresh::Page,
        body: html! {
            div.head { h1 { "Log in" } }
            div #login data-live data-refresh-ms=[matches!(login.state, LoginState::Waiting { .. }).then_some("1500")] {
                (state(&login))
            }
        },
    });
    frame.answer(sheet)
}

fn state(login: &LoginView) -> Markup {
    let here = format!("/settings/login/{}", encoded(&login.id));
    match &login.state {
        LoginState::Done { credential, note } => html! {
            p.said.good role="status" { "Logged in as " strong { (words::short(credential.account.as_deref().unwrap_or(&credential.name))) } "." }
            @if let Some(note) = note { p { (note) } }
            p { a.button.main href="/settings" { "Back to the settings" } }
        },
        LoginState::Failed { detail } => html! {
            p.said.bad role="alert" { (detail) }
            p { a.button href="/settings" { "Back to the settings" } }
        },
        LoginState::Waiting {
            address,
            user_code,
            takes_answer,
        } => html! {
            section.part {
                h2.busy { "Waiting for you" }
                @if let Some(address) = address {
                    p { "Open this page of the network, and allow what it asks:" }
                    p { (words::outside(address)) }
                }
                @if let Some(code) = user_code { p { "Enter this code there: " strong.mono { (code) } } }
                @if *takes_answer {
                    form.stack action=(here) method="post" {
                        div.field {
                            label for="answer" { "If your browser does not come back by itself: the code that it shows, or the address that it ends at" }
                            input id="answer" name="answer" required maxlength="8192" autocomplete="off";
                        }
                        button.main { "Go on" }
                    }
                }
                p.note { "This page moves on when it is done. " a href=(here) { "Look again" } }
            }
        },
    }
}

#[derive(Deserialize)]
pub(in super::super) struct Answer {
    answer: String,
}

pub(in super::super) async fn finish(
    frame: Frame,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Form(given): Form<Answer>,
) -> Response {
    let finished = match frame.want_operator() {
        Ok(()) => {
            let finished = shared
                .desk
                .finish_login(id, Secret::new(given.answer))
                .await;
            finished.map_err(Problem::from)
        }
        Err(problem) => Err(problem),
    };
    match finished {
        Ok(login) => see(&login).into_response(),
        Err(problem) => frame.refuse(problem),
    }
}
