//! Settings: what the crawl was told, its definitions, and who is logged in to which network.

mod login;

pub(super) use login::{begin, choose, finish, login};

use super::frame::{Frame, Here, Refresh, Sheet};
use super::lists::{empty, encoded};
use super::words;
use crate::desk::{
    CheckedDefinition, CredentialName, CredentialView, DefinitionText, DefinitionView,
};
use crate::standing::RunStanding;
use crate::{Problem, Shared};
use axum::extract::{Form, Path, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

pub(super) async fn get(frame: Frame, State(shared): State<Arc<Shared>>) -> Response {
    let sheet = sheet(&frame, &shared).await;
    frame.answer(sheet)
}

fn page(title: impl Into<String>, body: Markup) -> Sheet {
    Sheet {
        here: Here::Settings,
        title: title.into(),
        refresh: Refresh::Standing,
        body,
    }
}

async fn sheet(frame: &Frame, shared: &Shared) -> Result<Sheet, Problem> {
    let credentials = shared.desk.credentials().await;
    let definitions = shared.desk.definitions().await?;
    let body = html! {
        div.head { h1 { "Settings" } p { "How this crawl was begun, and what it may use. Settings of a run are given on its command line and in kittiwake.toml; they are shown here as they are in force." } }
        (accounts(frame, &credentials, &definitions))
        @match &frame.standing.run {
            Some(run) => { (run_part(run)) },
            None => { section.part { (empty("No crawl was run into this place yet.", "Its settings appear here.")) } },
        }
        (definition_list(&definitions))
        section.part aria-labelledby="access-title" {
            h2 #access-title { "Who may use this page" }
            dl.facts {
                dt { "You are" } dd { (frame.caller.role) @if !frame.caller.has_session { ", without having logged in here" } }
                dt { "Password" } dd {
                    @if shared.settings.has_password { "set. Change it with: " code { "kittiwake auth password" } }
                    @else { "none: only this machine can open this page. Set one with: " code { "kittiwake auth password" } }
                }
            }
        }
    };
    Ok(page("Settings", body))
}

/// Whose accounts are logged in.
fn accounts(
    frame: &Frame,
    credentials: &Result<Vec<CredentialView>, crate::DeskError>,
    definitions: &[DefinitionView],
) -> Markup {
    html! {
        section.part aria-labelledby="accounts-title" {
            h2 #accounts-title { "Accounts" }
            @match credentials {
                Ok(credentials) if credentials.is_empty() => {
                    (empty("Nobody is logged in to any network.", "Much can be collected without. Where an account is needed or allows more, log in here."))
                },
                Ok(credentials) => { (credential_table(frame, credentials)) },
                Err(error) => { p.said.bad { "The vault cannot be read: " (error.message) } },
            }
            @if frame.is_operator() { (network_form(definitions)) }
            p.note { "Secrets go into the encrypted vault of the machine that crawls, and never come out again, not even here." }
        }
    }
}

fn credential_table(frame: &Frame, credentials: &[CredentialView]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-labelledby="accounts-title" {
            table {
                thead { tr {
                    th scope="col" { "Account" } th scope="col" { "Network" } th scope="col" { "How" } th scope="col" { "May" }
                    th scope="col" { "Expires" } th scope="col" { "Fingerprint" }
                    @if frame.is_operator() { th scope="col" { span.aside { "Remove" } } }
                } }
                tbody { @for credential in credentials { (credential_row(frame, credential)) } }
            }
        }
    }
}

fn credential_row(frame: &Frame, credential: &CredentialView) -> Markup {
    html! {
        tr {
            th scope="row" { (words::short(credential.account.as_deref().unwrap_or(&credential.name))) }
            td { (credential.network) @if !credential.host.is_empty() { " at " (credential.host) } }
            td { (credential.kind) " (" (credential.method) ")" }
            td { @if credential.scopes.is_empty() { (words::dash()) } @else { (words::short(&credential.scopes.join(", "))) } }
            td { (words::moment_or_dash(credential.expires_us)) }
            td.mono { (credential.fingerprint) }
            @if frame.is_operator() {
                td.act {
                    form action="/settings/forget" method="post" data-sure="Remove this account from the vault?" {
                        input type="hidden" name="network" value=(credential.network);
                        input type="hidden" name="host" value=(credential.host);
                        input type="hidden" name="name" value=(credential.name);
                        button.risky { "Remove" span.aside { " " (words::short(&credential.name)) } }
                    }
                }
            }
        }
    }
}

fn network_form(definitions: &[DefinitionView]) -> Markup {
    html! {
        form.filters action="/settings/login" {
            div.field {
                label for="network" { "Log in to" }
                select id="network" name="network" required {
                    @for definition in definitions { option value=(definition.name) selected[definition.in_use] { (definition.name) } }
                }
            }
            div.field {
                label for="host" { "Host, if the network has many" }
                input id="host" name="host" placeholder="example.social" maxlength="2000" autocomplete="off";
            }
            button { "Log in…" }
        }
    }
}

/// Everything that the run was told, as it is in force.
fn run_part(run: &RunStanding) -> Markup {
    let settings = run.settings.as_object();
    html! {
        section.part aria-labelledby="run-title" {
            div.title { h2 #run-title { "Run " (run.number) } span.small.soft { "robots, policies, limits and everything else that it was told" } }
            dl.facts {
                dt { "Network" } dd { (run.network) @if !run.host.is_empty() { " at " (run.host) } }
                dt { "Clock" } dd { (run.clock) }
                dt { "Definition" } dd.mono { (run.definition) }
                dt { "Begun" } dd { (words::moment(run.started_us)) }
                @if let Some(settings) = settings {
                    @for (name, value) in settings { dt { (name.replace('_', " ")) } dd { (setting(value)) } }
                }
            }
        }
    }
}

fn setting(value: &Value) -> Markup {
    match value {
        Value::Null => words::dash(),
        Value::Bool(is) => html! { @if *is { "yes" } @else { "no" } },
        Value::Number(number) => html! { (number) },
        Value::String(text) => html! { span.text { (text) } },
        Value::Array(list) if list.is_empty() => words::dash(),
        Value::Array(list) if list.iter().all(Value::is_string) => {
            let texts: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            html! { span.text { (texts.join(", ")) } }
        }
        Value::Object(map) if map.is_empty() => words::dash(),
        other => html! { pre { (other) } },
    }
}

fn definition_list(definitions: &[DefinitionView]) -> Markup {
    html! {
        section.part aria-labelledby="definitions-title" {
            h2 #definitions-title { "Networks" }
            div.scroll tabindex="0" role="region" aria-labelledby="definitions-title" {
                table {
                    thead { tr { th scope="col" { "Definition" } th scope="col" { "Where from" } th scope="col" { "Robots" } } }
                    tbody {
                        @for definition in definitions {
                            tr {
                                th scope="row" {
                                    a href={ "/settings/definitions/" (encoded(&definition.name)) } { (definition.name) }
                                    @if definition.in_use { " " span.pill.good { "in use" } }
                                }
                                td { @if definition.shipped { "comes with the program" } @else { "yours" } }
                                td.wide { (definition.robots.iter().map(|robot| robot.name.as_str()).collect::<Vec<_>>().join(", ")) }
                            }
                        }
                    }
                }
            }
        }
    }
}

pub(super) async fn forget(
    frame: Frame,
    State(shared): State<Arc<Shared>>,
    Form(which): Form<CredentialName>,
) -> Response {
    let said = match frame.want_operator() {
        Ok(()) => {
            let removed = shared.desk.remove_credential(which).await;
            removed
                .map(|()| "Removed.".to_owned())
                .map_err(Problem::from)
        }
        Err(problem) => Err(problem),
    };
    frame.done(said, "/settings")
}

pub(super) async fn definition(
    frame: Frame,
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
) -> Response {
    let found = shared.desk.definition(name).await.map_err(Problem::from);
    let sheet = found.map(|definition| {
        let text = definition.text.clone();
        page(
            format!("Definition of {}", definition.view.name),
            definition_page(&frame, &definition, &text, &html! {}),
        )
    });
    frame.answer(sheet)
}

fn definition_page(
    frame: &Frame,
    definition: &DefinitionText,
    text: &str,
    said: &Markup,
) -> Markup {
    let view = &definition.view;
    html! {
        div.head { h1 { "Definition of " (view.name) } p { "All that the program knows of this network. " a href="/settings" { "All settings" } } }
        (said)
        section.part aria-labelledby="asked-title" {
            h2 #asked-title { "Robots" }
            dl.facts { @for robot in &view.robots { dt { (robot.name) } dd { (robot.queries.join(", ")) } } }
        }
        section.part aria-labelledby="text-title" {
            div.title { h2 #text-title { "Text" } span.small.soft.mono { (words::short_to(&view.digest, 16)) } }
            @if frame.is_operator() {
                form.stack action={ "/settings/definitions/" (encoded(&view.name)) } method="post" {
                    label.aside for="text" { "Text of the definition" }
                    textarea id="text" name="text" spellcheck="false" rows="30" { (text) }
                    span.acts {
                        button.main name="do" value="check" { "Check" }
                        button name="do" value="apply" { "Apply to the crawl" }
                    }
                }
            } @else {
                div.scroll tabindex="0" role="region" aria-labelledby="text-title" { pre { (text) } }
            }
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Changing {
    text: String,
    #[serde(rename = "do")]
    action: String,
}

pub(super) async fn change(
    frame: Frame,
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    Form(changing): Form<Changing>,
) -> Response {
    let sheet = changed(&frame, &shared, &name, changing).await;
    frame.answer(sheet)
}

async fn changed(
    frame: &Frame,
    shared: &Shared,
    name: &str,
    changing: Changing,
) -> Result<Sheet, Problem> {
    frame.want_operator()?;
    let definition = shared.desk.definition(name.to_owned()).await?;
    // Browsers send lines that end in two characters.
    let text = changing.text.replace("\r\n", "\n");
    let checked = shared.desk.check_definition(text.clone()).await?;
    let said = if changing.action == "apply" && checked.is_sound {
        let applied = shared
            .desk
            .apply_definition(name.to_owned(), text.clone())
            .await;
        match applied {
            Ok(applied) => html! { p.said.good role="status" { (applied.detail) } },
            Err(error) => html! { p.said.bad role="alert" { (error.message) } },
        }
    } else {
        check_said(&checked)
    };
    let title = format!("Definition of {name}");
    Ok(page(
        title,
        definition_page(frame, &definition, &text, &said),
    ))
}

fn check_said(checked: &CheckedDefinition) -> Markup {
    html! {
        @if checked.is_sound { p.said.good role="status" { "It is sound." } }
        @else { div.said.bad role="alert" { pre { (checked.errors) } } }
    }
}
