//! The query log: every call, what it asked and what came of it.

use super::ROWS;
use super::chart::{self, Columns, Series};
use super::frame::{Frame, Here, Refresh, Sheet};
use super::lists::{self, empty, encoded};
use super::words;
use crate::{Problem, Shared};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use kittiwake_model::{Key, OutcomeCode};
use kittiwake_store::browse::{
    Activity, ActivityQuestion, CallRow, CallView, CallsQuestion, Errors, Page,
};
use maud::{Markup, html};
use serde::Deserialize;
use std::sync::Arc;

/// Calls that the chart and the table of failures are made of, and columns of the chart.
const LOOKED_AT: usize = 5_000;
const BUCKETS: usize = 48;
/// Queries that have a colour of their own.
const QUERIES: usize = 7;
const REASONS_SHOWN: usize = 12;
const SUBJECTS_SHOWN: usize = 2;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    query: String,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    subject: String,
    failed: Option<String>,
    after: Option<String>,
}

impl Asked {
    fn question(&self) -> Result<CallsQuestion, Problem> {
        let outcome = match self.outcome.as_str() {
            "" => None,
            name => Some(name.parse::<OutcomeCode>().map_err(|_| {
                Problem::invalid("There is no such outcome. Choose one of the list.")
            })?),
        };
        let subject = match self.subject.trim() {
            "" => None,
            key => Some(Key(key.parse().map_err(|_| {
                Problem::invalid("A subject is given by its key, a number: open the object and follow its calls.")
            })?)),
        };
        Ok(CallsQuestion {
            query: Some(self.query.trim().to_owned()).filter(|it| !it.is_empty()),
            outcome,
            subject,
            failed_only: self.failed.is_some(),
            after: self.after.clone(),
            limit: ROWS,
        })
    }

    fn is_plain(&self) -> bool {
        self.query.is_empty()
            && self.outcome.is_empty()
            && self.subject.is_empty()
            && self.failed.is_none()
    }

    /// The first page with the same filters.
    fn address(&self) -> String {
        let failed = if self.failed.is_some() {
            "&failed=1"
        } else {
            ""
        };
        format!(
            "/log?query={}&outcome={}&subject={}{failed}",
            encoded(&self.query),
            encoded(&self.outcome),
            encoded(&self.subject)
        )
    }
}

pub(super) async fn get(
    frame: Frame,
    State(shared): State<Arc<Shared>>,
    Query(asked): Query<Asked>,
) -> Response {
    let sheet = sheet(&frame, &shared, &asked).await;
    frame.answer(sheet)
}

async fn sheet(frame: &Frame, shared: &Shared, asked: &Asked) -> Result<Sheet, Problem> {
    let calls = shared.browser.calls(asked.question()?).await?;
    let is_first = asked.after.is_none();
    let figures = if is_first && asked.is_plain() {
        let question = ActivityQuestion {
            since: None,
            calls_max: LOOKED_AT,
            buckets: BUCKETS,
        };
        let activity = shared.browser.activity(question).await?;
        let errors = shared.browser.errors(LOOKED_AT).await?;
        html! { section.part { (activity_chart(&activity)) } (failures(&errors)) }
    } else {
        html! {}
    };
    let first = asked.address();
    let body = html! {
        div.head { h1 { "Query log" } p { "Every call that was answered or failed, the newest first." } }
        section.part { (form(frame, asked)) }
        (figures)
        section.part aria-labelledby="calls-title" {
            div.title { h2 #calls-title { "Calls" } @if is_first { span.push {} a.small href=(first) { "Look again" } } }
            (table(&calls, frame))
            @if calls.rows.is_empty() {
                (empty("No call here.", if calls.next.is_some() { "A part of the log was looked through; the next page goes on." } else { "Nothing in the log is like that." }))
            }
            (lists::more(&format!("{first}&after="), calls.next.as_deref(), is_first, &first))
        }
    };
    Ok(Sheet {
        here: Here::Log,
        title: "Query log".into(),
        refresh: Refresh::Standing,
        body,
    })
}

fn form(frame: &Frame, asked: &Asked) -> Markup {
    let robots = frame.standing.robots.iter();
    let mut queries: Vec<&str> = robots
        .flat_map(|robot| robot.queries.iter().map(String::as_str))
        .collect();
    queries.sort_unstable();
    queries.dedup();
    html! {
        form.filters action="/log" aria-label="Filters" {
            div.field {
                label for="query" { "Query" }
                input id="query" name="query" list="queries" value=(asked.query) autocomplete="off" maxlength="100";
                datalist #queries { @for query in queries { option value=(query) {} } }
            }
            div.field {
                label for="outcome" { "Outcome" }
                select id="outcome" name="outcome" {
                    option value="" { "any" }
                    @for outcome in OutcomeCode::ALL {
                        option value=(outcome.code()) selected[outcome.code() == asked.outcome] { (outcome.code()) }
                    }
                }
            }
            div.field {
                label for="subject" { "Subject (key)" }
                input id="subject" name="subject" value=(asked.subject) inputmode="numeric" size="12" maxlength="20" autocomplete="off";
            }
            label.check { input type="checkbox" name="failed" value="1" checked[asked.failed.is_some()]; "Only failures" }
            button.main { "Filter" }
            @if !asked.is_plain() { a href="/log" { "Everything" } }
        }
    }
}

fn table(calls: &Page<CallRow>, frame: &Frame) -> Markup {
    html! {
        @if !calls.rows.is_empty() {
            div.scroll tabindex="0" role="region" aria-labelledby="calls-title" {
                table {
                    thead { tr {
                        th scope="col" { "Call" } th scope="col" { "Sent" } th scope="col" { "Query" } th scope="col" { "About" }
                        th scope="col" { "Outcome" } th.number scope="col" { "Took" } th.number scope="col" { "Size" }
                        th.number scope="col" { "New" } th.number scope="col" { "Changed" }
                    } }
                    tbody { @for call in &calls.rows { (row(call, frame)) } }
                }
            }
        }
    }
}

fn row(call: &CallRow, frame: &Frame) -> Markup {
    html! {
        tr {
            th scope="row" { a href={ "/log/" (call.id) } { (call.id) } }
            td.nowrap { (words::ago(call.sent.micros(), frame.standing.at_us)) }
            td { (call.query) }
            td.wide { (about(call)) }
            td.nowrap { (outcome(call)) }
            td.number { (took(call)) }
            td.number { (words::bytes(call.bytes.max(0).unsigned_abs())) }
            td.number { (words::number(call.rows_new.max(0).unsigned_abs())) }
            td.number { (words::number(call.rows_changed.max(0).unsigned_abs())) }
        }
    }
}

/// Whom a call asked about; its address where that is nobody.
fn about(call: &CallRow) -> Markup {
    html! {
        @for (place, subject) in call.subjects.iter().take(SUBJECTS_SHOWN).enumerate() {
            @if place > 0 { ", " }
            (lists::link(subject))
        }
        @let more = call.subjects_count.saturating_sub(SUBJECTS_SHOWN);
        @if more > 0 { " and " (more) " more" }
        @if call.subjects.is_empty() { span.mono { (words::short_to(&call.target.text, 60)) } }
    }
}

fn outcome(call: &CallRow) -> Markup {
    let is_success = matches!(call.outcome.as_str(), "ok" | "empty" | "not modified");
    html! {
        span.pill.plain.(if is_success { "" } else { "bad" }) { (call.outcome) }
        @if let Some(status) = call.status { " " span.soft.small { (status) } }
    }
}

fn took(call: &CallRow) -> Markup {
    let took_us = call
        .answered
        .micros()
        .saturating_sub(call.sent.micros())
        .max(0);
    html! { (words::decimal(took_us as f64 / 1000.0)) " ms" }
}

fn activity_chart(activity: &Activity) -> Markup {
    if activity.calls == 0 {
        return html! { h2 { "Calls over time" } (empty("No call was made yet.", "The chart begins with the first.")) };
    }
    let mut queries: Vec<(&String, Vec<f64>)> = activity
        .queries
        .iter()
        .map(|(query, buckets)| (query, buckets.iter().map(|it| it.calls as f64).collect()))
        .collect();
    queries.sort_by(|one, other| sum(&other.1).total_cmp(&sum(&one.1)));
    let mut series: Vec<Series> = Vec::new();
    for (number, (query, values)) in queries.into_iter().enumerate() {
        if number < QUERIES {
            series.push(Series {
                name: query.clone(),
                colour: number,
                values,
            });
        } else if let Some(rest) = series.get_mut(QUERIES) {
            for (total, value) in rest.values.iter_mut().zip(values) {
                *total += value;
            }
        } else {
            series.push(Series {
                name: "others".into(),
                colour: QUERIES,
                values,
            });
        }
    }
    let clock = |bucket: usize| {
        let us = activity.from.micros() + activity.bucket_us * bucket as i64;
        words::iso(us).map_or_else(String::new, |iso| {
            iso.get(11..19).unwrap_or(&iso).to_owned()
        })
    };
    chart::columns(&Columns {
        id: "activity".into(),
        title: format!("The newest {} calls", words::grouped(activity.calls)),
        unit: "calls, times in UTC",
        places: (0..activity.buckets).map(clock).collect(),
        axis: "from",
        series,
    })
}

fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

/// What did not work, by query and reason.
fn failures(errors: &Errors) -> Markup {
    html! {
        @if !errors.reasons.is_empty() {
            section.part aria-labelledby="failures-title" {
                div.title { h2 #failures-title { "Failures" } span.soft.small { "among the newest " (words::many(errors.calls, "call", "calls")) } }
                div.scroll tabindex="0" role="region" aria-labelledby="failures-title" {
                    table {
                        thead { tr { th scope="col" { "Query" } th scope="col" { "Outcome" } th scope="col" { "Reason" } th.number scope="col" { "Calls" } th.number scope="col" { "Newest" } } }
                        tbody {
                            @for reason in errors.reasons.iter().take(REASONS_SHOWN) {
                                tr {
                                    td { (reason.query) }
                                    td { a href={ "/log?outcome=" (encoded(&reason.outcome)) "&query=" (encoded(&reason.query)) } { (reason.outcome) } }
                                    td.wide { (words::short(&reason.reason.text)) }
                                    td.number { (words::number(reason.calls)) }
                                    td.number { a href={ "/log/" (reason.call) } { (reason.call) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// `GET /log/{id}`.
pub(super) async fn call(
    frame: Frame,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
) -> Response {
    let sheet = call_sheet(&shared, &id).await;
    frame.answer(sheet)
}

async fn call_sheet(shared: &Shared, id: &str) -> Result<Sheet, Problem> {
    let missing =
        || Problem::missing("The log has no such call. It may have been made for another file.");
    let id: i64 = id.parse().map_err(|_| missing())?;
    let call = shared.browser.call(id).await?.ok_or_else(missing)?;
    Ok(Sheet {
        here: Here::Log,
        title: format!("Call {id}"),
        refresh: Refresh::Standing,
        body: html! {
            div.head { h1 { "Call " (id) } (outcome(&call.row)) }
            section.part { (facts(&call)) }
            section.part aria-labelledby="times-title" { h2 #times-title { "Times" } (times(&call)) }
        },
    })
}

fn facts(call: &CallView) -> Markup {
    let row = &call.row;
    html! {
        dl.facts {
            dt { "Query" } dd { (row.query) }
            dt { "About" } dd { (about(row)) }
            dt { "Asked for" } dd.mono { (row.target.text) @if row.target.is_cut { "…" } }
            dt { "Page" } dd.mono { @if call.cursor.is_empty() { "the first" } @else { (call.cursor) } }
            dt { "Answer" } dd { @match row.status { Some(status) => { (status) }, None => { "none came" } } }
            dt { "Reason" } dd { @if row.reason.is_empty() { (words::dash()) } @else { (row.reason) } }
            dt { "Size" } dd { (words::bytes(row.bytes.max(0).unsigned_abs())) @if call.has_raw { ", kept as it came" } }
            dt { "Rows" } dd { (row.rows_new) " new, " (row.rows_changed) " changed" }
            dt { "Mended" } dd { (call.mended) " values were dropped or mended" }
            dt { "Charged to" } dd { @if call.budgets.is_empty() { (words::dash()) } @else { (call.budgets.join(", ")) } }
            dt { "Credential" } dd.mono { (call.credential) }
            @if !call.node.is_empty() { dt { "Node" } dd { (call.node) } }
            dt { "Definition" } dd.mono { (words::short(&call.definition)) }
        }
    }
}

fn times(call: &CallView) -> Markup {
    let row = &call.row;
    let span = |from: i64, to: i64| {
        let span_us = to.saturating_sub(from).max(0);
        html! { (words::decimal(span_us as f64 / 1000.0)) " ms" }
    };
    html! {
        dl.facts {
            dt { "In the crawl's world" } dd { (words::moment(row.at.micros())) }
            dt { "Scheduled" } dd { (words::moment(call.scheduled.micros())) }
            dt { "Sent" } dd { (words::moment(row.sent.micros())) " after waiting " (span(call.scheduled.micros(), row.sent.micros())) }
            dt { "Answered" } dd { "after " (span(row.sent.micros(), row.answered.micros())) }
            dt { "Stored" } dd { "after " (span(row.answered.micros(), call.committed.micros())) " more" }
            dt { "Choosing" } dd { (words::decimal(call.rank_us as f64 / 1000.0)) " ms" }
            dt { "Reading" } dd { (words::decimal(call.read_us as f64 / 1000.0)) " ms" }
            dt { "What follows" } dd { (words::decimal(call.seed_us as f64 / 1000.0)) " ms" }
        }
    }
}
