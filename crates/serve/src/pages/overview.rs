//! The first page: how much there is, how quick it goes, what stands in the way, what comes next.

use super::chart::{self, Columns, Series};
use super::frame::{Frame, Here, Refresh, Sheet};
use super::lists::{empty, encoded};
use super::{budgets, freshness, robots, words};
use crate::standing::{NextVisit, PacePoint, Standing};
use axum::response::Response;
use maud::{Markup, html};

/// Tables in the order in which people ask for them, and what they are called.
const TABLES: [(&str, &str); 7] = [
    ("users", "People"),
    ("statuses", "Posts"),
    ("comments", "Comments"),
    ("user_relations", "Follow relations"),
    ("links", "Links"),
    ("tags", "Tags"),
    ("query_log", "Calls"),
];
/// Rows of the short lists of this page.
const NEXT_SHOWN: usize = 12;
const BUDGETS_SHOWN: usize = 6;

pub(super) async fn get(frame: Frame) -> Response {
    frame.answer(Ok(sheet(&frame)))
}

pub(super) fn sheet(frame: &Frame) -> Sheet {
    let standing = &frame.standing;
    let body = html! {
        div.head { h1 { "Overview" } span.push {} (robots::whole(frame)) }
        div #overview data-live {
            (trouble(standing))
            (headline(standing))
            (tiles(standing))
            section.part { (pace(standing)) }
            div.columns.uneven {
                div {
                    (robots::table(frame))
                    (next(standing))
                }
                div {
                    (budgets::short(standing, BUDGETS_SHOWN))
                    (outcomes(standing))
                    (freshness::short(standing))
                    (stages(standing))
                }
            }
        }
    };
    Sheet {
        here: Here::Overview,
        title: "Overview".into(),
        refresh: Refresh::Page,
        body,
    }
}

pub(super) fn trouble(standing: &Standing) -> Markup {
    html! {
        @if let Some(trouble) = &standing.trouble {
            p.said.bad { "The crawl cannot be looked at: " (trouble) ". What is shown is of the last look." }
        }
    }
}

/// Since when, or why not.
fn headline(standing: &Standing) -> Markup {
    let Some(run) = &standing.run else {
        return empty(
            "No crawl was run into this place yet.",
            "Begin one with: kittiwake crawl NETWORK NAME --into FILE --serve",
        );
    };
    html! {
        p.note {
            "Run " (run.number) ", begun " (words::ago(run.started_us, standing.at_us))
            @if !standing.crawling {
                @match (run.ended_us, &run.end_reason) {
                    (Some(ended_us), reason) => {
                        ", ended " (words::ago(ended_us, standing.at_us))
                        @if let Some(reason) = reason { " (" (reason) ")" }
                    },
                    _ => "; it broke off. The same command goes on where it was.",
                }
            }
            @if standing.world_us != 0 && run.clock != "real" {
                ". In this crawl's world it is " (words::moment(standing.world_us))
            }
            "."
        }
    }
}

fn tiles(standing: &Standing) -> Markup {
    let known = TABLES
        .iter()
        .filter_map(|(table, name)| Some((*table, *name, *standing.rows.get(*table)?)));
    html! {
        dl.tiles {
            div { dt { "Calls a second" } dd { (words::decimal(standing.recent.calls_per_second)) } }
            div { dt { "Received" } dd { (words::bytes(standing.recent.bytes_per_second.max(0.0) as u64)) "/s" } }
            @for (table, name, rows) in known {
                div data-table=(table) { dt { (name) } dd { (words::number(rows)) } }
            }
        }
    }
}

fn pace(standing: &Standing) -> Markup {
    // Before the run began there was nothing to be quick with.
    let begun_us = standing.run.as_ref().map_or(0, |run| run.started_us);
    let points: Vec<_> = standing
        .pace
        .iter()
        .filter(|it| it.at_us >= begun_us)
        .collect();
    if points.len() < 2 {
        return html! {
            h2 { "Pace" }
            (empty("Nothing has been measured yet.", "The chart begins as soon as calls are made."))
        };
    }
    let values = |value: fn(&PacePoint) -> f64| points.iter().map(|it| value(it)).collect();
    let places = points
        .iter()
        .map(|point| format!("{} ago", words::span_text(standing.at_us - point.at_us)))
        .collect();
    chart::lines(&Columns {
        id: "pace".into(),
        title: "Pace".into(),
        unit: "a second",
        places,
        axis: "when",
        series: vec![
            Series {
                name: "calls".into(),
                colour: 0,
                values: values(|it| it.calls_per_second),
            },
            Series {
                name: "new rows".into(),
                colour: 1,
                values: values(|it| it.rows_per_second),
            },
        ],
    })
}

fn next(standing: &Standing) -> Markup {
    html! {
        section.part aria-labelledby="next-title" {
            h2 #next-title { "What runs next, and why" }
            @if standing.next.is_empty() {
                (empty("Nobody is waiting.", "Either everybody has been visited, or no crawl was begun."))
            } @else {
                div.scroll tabindex="0" role="region" aria-labelledby="next-title" {
                    table {
                        thead { tr { th scope="col" { "Robot" } th scope="col" { "Whom" } th scope="col" { "Due" } th scope="col" { "Why" } } }
                        tbody {
                            @for visit in standing.next.iter().take(NEXT_SHOWN) { (next_row(visit, standing)) }
                        }
                    }
                }
            }
        }
    }
}

fn next_row(visit: &NextVisit, standing: &Standing) -> Markup {
    html! {
        tr {
            td { (visit.robot) }
            td { a href={ "/search?words=" (encoded(&visit.subject)) } { (words::short_to(visit.subject.trim_start_matches("https://"), 40)) } }
            td.nowrap { (words::due(visit.due_us, standing.world_us)) }
            td.wide { (visit.why) }
        }
    }
}

/// What came of the newest calls.
fn outcomes(standing: &Standing) -> Markup {
    let total: u64 = standing.outcomes.iter().map(|it| it.calls).sum();
    html! {
        section.part aria-labelledby="outcomes-title" {
            div.title { h2 #outcomes-title { "Outcomes" } span.soft.small { "of the newest " (words::many(total, "call", "calls")) } }
            @if standing.outcomes.is_empty() {
                (empty("No call was answered yet.", "Successes and failures are counted here, by class."))
            } @else {
                table {
                    thead { tr { th scope="col" { "Outcome" } th scope="col" { span.aside { "Share" } } th.number scope="col" { "Calls" } } }
                    tbody {
                        @for outcome in &standing.outcomes {
                            tr {
                                th scope="row" {
                                    a href={ "/log?outcome=" (encoded(&outcome.outcome)) } { (outcome.outcome) }
                                    @if outcome.is_failure { " " span.pill.bad.plain { "failed" } }
                                }
                                td.meter-cell {
                                    (chart::meter(
                                        &[(if outcome.is_failure { "full" } else { "used" }, outcome.calls as f64)],
                                        total as f64,
                                        &format!("{} of {total} calls", outcome.calls),
                                    ))
                                }
                                td.number { (words::number(outcome.calls)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Where the time of a call goes.
fn stages(standing: &Standing) -> Markup {
    let recent = &standing.recent;
    let stages = [
        ("choosing", recent.choosing),
        ("waiting for limits", recent.waiting),
        ("network", recent.network),
        ("reading", recent.reading),
        ("finding what follows", recent.seeding),
        ("storing", recent.storing),
    ];
    html! {
        @if recent.calls > 0 {
            section.part aria-labelledby="stages-title" {
                h2 #stages-title { "Where a call's time goes" }
                table {
                    thead { tr { th scope="col" { "Stage" } th scope="col" { span.aside { "Share" } } th.number scope="col" { "Time" } } }
                    tbody {
                        @for (stage, share) in stages {
                            tr {
                                th scope="row" { (stage) }
                                td.meter-cell { (chart::meter(&[("used", share)], 1.0, &format!("{:.0} percent", share * 100.0))) }
                                td.number { (words::percent(share)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
