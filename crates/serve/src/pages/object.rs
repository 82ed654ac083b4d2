//! The page of one object: what is known of it, since when, and by which call.

mod parts;

use super::frame::{Frame, Here, Refresh, Sheet};
use super::lists::{self, address, called, face, handle};
use super::words;
use crate::{Problem, Shared};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use kittiwake_model::{Key, Table, Value};
use kittiwake_store::browse::{FieldView, GroupView, ObjectView, ObservedView};
use maud::{Markup, html};
use parts::Part;
use serde::Deserialize;
use std::sync::Arc;

/// Observations of counts that the charts are drawn from.
const COUNTS: usize = 500;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    show: String,
    after: Option<String>,
}

pub(super) async fn get(
    frame: Frame,
    State(shared): State<Arc<Shared>>,
    Path(key): Path<String>,
    Query(asked): Query<Asked>,
) -> Response {
    let sheet = sheet(&frame, &shared, &key, &asked).await;
    frame.answer(sheet)
}

async fn sheet(frame: &Frame, shared: &Shared, key: &str, asked: &Asked) -> Result<Sheet, Problem> {
    let missing = || {
        Problem::missing(
            "Nothing was collected under this key. Search for a name or an id instead.",
        )
    };
    let key = Key(key.parse().map_err(|_| missing())?);
    let object = shared.browser.object(key).await?.ok_or_else(missing)?;
    let counts = shared.browser.counts(object.label.key, COUNTS).await?;
    let offered = Part::of(object.table);
    let part = Part::named(&asked.show, offered);
    let shown = parts::show(shared, &object, part, asked.after.clone()).await?;
    let body = html! {
        (headline(&object))
        (says(&object))
        (parts::counts(&counts))
        nav.tabs aria-label="Parts" {
            @for offered in offered {
                a href={ (address(object.label.key)) "?show=" (offered.name()) } aria-current=[(*offered == part).then_some("page")] { (offered.title()) }
            }
        }
        (shown)
        (visits(&object, frame))
    };
    Ok(Sheet {
        here: Here::Search,
        title: called(&object.label),
        refresh: Refresh::Standing,
        body,
    })
}

fn headline(object: &ObjectView) -> Markup {
    let label = &object.label;
    html! {
        div.head {
            div.who {
                (face(named(object, "author").unwrap_or(label), "large"))
                div {
                    h1 { (heading(object)) }
                    div.by.soft {
                        @if let Some(handle) = handle(label) { span { (handle) } }
                        span { (label.kind) " on " (label.network) }
                        @match object.depth {
                            Some(0) => { span { "a seed, or of one" } },
                            Some(depth) => { span { (words::many(u64::from(depth), "step", "steps")) " from a seed" } },
                            None => {},
                        }
                    }
                }
            }
            span.push {}
            @if object.deleted.is_some() { span.pill.bad { "deleted" } }
            @for spell in object.spells.iter().filter(|spell| spell.until.is_none()) { span.pill.bad { (spell.reason) } }
            @if object.table.is_none() { span.pill { "only named so far" } }
            @if object.table == Some(Table::Users) { a.button href={ "/graph?around=" (label.key.0) } { "Graph around" } }
            a.button href={ "/log?subject=" (label.key.0) } { "Its calls" }
        }
    }
}

/// What the page is called: a post has no name but its author's.
fn heading(object: &ObjectView) -> Markup {
    let author = named(object, "author").map(lists::link);
    html! {
        @match (object.table, author) {
            (Some(Table::Statuses), Some(author)) => { "Post by " (author) },
            (Some(Table::Comments), Some(author)) => { "Comment by " (author) },
            (Some(Table::Tags), _) => { "#" (called(&object.label)) },
            _ => { (called(&object.label)) },
        }
    }
}

fn field<'a>(object: &'a ObjectView, name: &str) -> Option<&'a Value> {
    let mut fields = object.groups.iter().flat_map(|group| &group.fields);
    fields
        .find(|field| &*field.name == name)
        .map(|it| &it.value)
}

fn text<'a>(object: &'a ObjectView, name: &str) -> Option<&'a str> {
    match field(object, name)? {
        Value::Text(text) if !text.trim().is_empty() => Some(text),
        _ => None,
    }
}

fn label_of<'a>(
    object: &'a ObjectView,
    value: &Value,
) -> Option<&'a kittiwake_store::browse::Label> {
    let Value::Object(kittiwake_model::Reference::Key(key)) = value else {
        return None;
    };
    object.labels.iter().find(|label| label.key == *key)
}

fn named<'a>(object: &'a ObjectView, name: &str) -> Option<&'a kittiwake_store::browse::Label> {
    label_of(object, field(object, name)?)
}

/// What a person says of themselves, or a post says.
fn says(object: &ObjectView) -> Markup {
    let said = text(object, "text").or_else(|| text(object, "description"));
    let created = match field(object, "created_us") {
        Some(Value::Time { at_us, .. }) => Some(*at_us),
        _ => None,
    };
    html! {
        section.part aria-label="In its own words" {
            @if let Some(warning) = text(object, "content_warning") { p.said { "Warning: " (warning) } }
            @match said {
                Some(said) => { p.text.post { (said) } },
                None => { p.empty { @if object.deleted.is_some() { "The post is gone." } @else { "It says nothing, as far as is known." } } },
            }
            dl.strip {
                @if let Some(at) = created { div { dt { "Made" } dd { (words::moment(at)) } } }
                @if let Some(at) = object.deleted { div { dt { "Seen to be gone" } dd { (words::moment(at.micros())) } } }
                @if let Some(location) = text(object, "location") { div { dt { "Place" } dd.text { (words::short(location)) } } }
                @if let Some(url) = text(object, "url") { div { dt { "On the web" } dd { (words::outside(url)) } } }
            }
        }
    }
}

/// Everything that is known, with where it comes from.
fn provenance(object: &ObjectView) -> Markup {
    html! {
        @for group in &object.groups { (group_part(object, group)) }
        section.part aria-labelledby="ids-title" {
            h2 #ids-title { "Ids" }
            div.scroll tabindex="0" role="region" aria-labelledby="ids-title" {
                table {
                    thead { tr { th scope="col" { "Id" } th scope="col" { "What it is" } th scope="col" { "Valid on" } th scope="col" { "First seen" } th scope="col" { "Last seen" } } }
                    tbody {
                        @for id in &object.ids {
                            tr {
                                td.wide.mono { (id.id) }
                                td { @if id.is_canonical { "canonical" } @else { (id.alias) } @if id.is_movable { ", may move" } }
                                td { @if id.host.is_empty() { (id.network) ", everywhere" } @else { (id.host) } }
                                td { (words::moment(id.first_seen.micros())) }
                                td { (words::moment(id.last_seen.micros())) }
                            }
                        }
                    }
                }
            }
        }
        @if !object.spells.is_empty() {
            section.part aria-labelledby="spells-title" {
                h2 #spells-title { "Times when it was not there" }
                table {
                    thead { tr { th scope="col" { "Reason" } th scope="col" { "From" } th scope="col" { "Until" } } }
                    tbody {
                        @for spell in &object.spells {
                            tr { td { (spell.reason) } td { (words::moment(spell.from.micros())) } td { (words::moment_or_dash(spell.until.map(kittiwake_model::WorldTime::micros))) } }
                        }
                    }
                }
            }
        }
    }
}

fn group_part(object: &ObjectView, group: &GroupView) -> Markup {
    html! {
        section.part aria-label={ "Fields of " (group.name) } {
            div.title { h2 { (group.name) } span.small.soft { "observed " (observed(&group.observed)) } }
            dl.facts {
                @for field in &group.fields { (fact(object, field)) }
            }
        }
    }
}

fn fact(object: &ObjectView, field: &FieldView) -> Markup {
    html! {
        dt { (field.name) }
        dd {
            (value(object, &field.value))
            @if let Some(older) = &field.observed { span.small.soft { " (last shown " (observed(older)) ")" } }
        }
    }
}

fn observed(observed: &ObservedView) -> Markup {
    html! {
        (words::moment(observed.at.micros()))
        @match observed.call {
            Some(call) => { " by " a href={ "/log/" (call) } { "call " (call) } },
            None => { " by no call of this file" },
        }
        @if observed.is_hearsay { ", told by another host" }
    }
}

fn value(object: &ObjectView, value: &Value) -> Markup {
    match value {
        Value::Null => html! { span.none { "empty" } },
        Value::Bool(is) => html! { @if *is { "yes" } @else { "no" } },
        Value::Int(number) => html! { data value=(number) { (number) } },
        Value::Float(number) => html! { (number) },
        Value::Text(text) if text.starts_with("http://") || text.starts_with("https://") => {
            words::outside(text)
        }
        Value::Text(text) => html! { span.text { (text) } },
        Value::Time { at_us, clamped } => {
            html! { (words::moment(*at_us)) @if *clamped { " (out of range, cut)" } }
        }
        Value::Json(json) => html! { pre { (json) } },
        Value::Object(reference) => match (label_of(object, value), reference) {
            (Some(label), _) => lists::link(label),
            (None, kittiwake_model::Reference::Key(key)) => {
                html! { a href=(address(*key)) { "object " (key.0) } }
            }
            _ => words::dash(),
        },
    }
}

/// Which robots come by, and when.
fn visits(object: &ObjectView, frame: &Frame) -> Markup {
    let now_us = frame.standing.world_us;
    html! {
        @if !object.visits.is_empty() {
            section.part aria-labelledby="visits-title" {
                h2 #visits-title { "Visits" }
                div.scroll tabindex="0" role="region" aria-labelledby="visits-title" {
                    table {
                        thead { tr { th scope="col" { "Robot" } th.number scope="col" { "Visits" } th scope="col" { "Last" } th scope="col" { "Due" } } }
                        tbody {
                            @for visit in &object.visits {
                                tr {
                                    th scope="row" { (visit.robot) }
                                    td.number { (words::number(visit.visits.max(0).unsigned_abs())) }
                                    td { @match visit.visited { Some(at) => { (words::ago(at.micros(), now_us)) }, None => { "never" } } }
                                    td { (words::due(visit.due.micros(), now_us)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
