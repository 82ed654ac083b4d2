//! Freshness: how old what is kept is, for whom, and when people post.

use super::chart::{self, Columns, Series};
use super::classes::{class_colour, class_name};
use super::frame::{Frame, Here, Refresh, Sheet};
use super::lists::{empty, encoded};
use super::words;
use crate::standing::{FreshnessFigures, LaneFreshness, Standing};
use crate::{Problem, Shared};
use axum::extract::{Query, State};
use axum::response::Response;
use kittiwake_model::WorldTime;
use kittiwake_store::browse::{Ages, AgesQuestion, Hours};
use maud::{Markup, html};
use serde::Deserialize;
use std::sync::Arc;

/// Subjects and posts that the charts are drawn from, at the most.
const SAMPLE_MAX: usize = 20_000;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    lane: Option<String>,
    /// Only what moves, without the charts.
    only: Option<String>,
}

pub(super) async fn get(
    frame: Frame,
    State(shared): State<Arc<Shared>>,
    Query(asked): Query<Asked>,
) -> Response {
    let charts = if asked.only.is_some() {
        Ok(html! {})
    } else {
        charts(&frame, &shared, asked.lane.as_deref()).await
    };
    let sheet = charts.map(|charts| sheet(&frame, &charts));
    frame.answer(sheet)
}

pub(super) fn sheet(frame: &Frame, charts: &Markup) -> Sheet {
    Sheet {
        here: Here::Freshness,
        title: "Freshness".into(),
        refresh: Refresh::From("/freshness?only=figures".into()),
        body: html! {
            div.head {
                h1 { "Freshness" }
                p { "How long ago people were looked at, how long a post or a change waits until it is found, and how many are expected to wait now. Those who change often are worth more visits." }
            }
            (charts)
            div #figures data-live { (figures(&frame.standing)) }
        },
    }
}

fn figures(standing: &Standing) -> Markup {
    html! {
        @if standing.freshness.is_empty() {
            section.part { (nothing()) }
        }
        @for lane in &standing.freshness {
            section.part aria-label={ "Freshness of " (lane.lane) } {
                div.title { h2 { (lane.lane) } span.soft.small { "policy: " (lane.policy) } }
                (table(lane))
            }
        }
    }
}

fn table(lane: &LaneFreshness) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Figures of " (lane.lane) } {
            table {
                thead { tr {
                    th scope="col" { "Class" } th.number scope="col" { "People" } th.number scope="col" { "Visited" }
                    th.number scope="col" { "Expected a day" } th.number scope="col" { "Expected to wait" }
                    th.number scope="col" { "Expected delay" } th.number scope="col" { "Last seen" }
                    th.number scope="col" { "Found in" } th.number scope="col" { "Within 1 h" }
                } }
                tbody {
                    (row("all", &lane.everybody))
                    @if lane.classes.len() > 1 { @for (class, figures) in &lane.classes { (row(class, figures)) } }
                }
            }
        }
    }
}

fn row(class: &str, figures: &FreshnessFigures) -> Markup {
    html! {
        tr {
            th scope="row" { (class) }
            td.number { (words::number(figures.people)) }
            td.number { (words::number(figures.visited)) }
            td.number { (words::decimal(figures.posts_per_day)) }
            td.number { (words::decimal(figures.posts_waiting)) }
            td.number { (words::hours(figures.expected_delay_hours)) }
            td.number { (words::hours(figures.age_hours)) }
            td.number { (words::hours(figures.delay_hours)) }
            td.number { @match figures.share_within_hour { Some(share) => { (words::percent(share)) }, None => { (words::dash()) } } }
        }
    }
}

/// The same in a few lines, for the overview.
pub(super) fn short(standing: &Standing) -> Markup {
    html! {
        section.part aria-labelledby="fresh-title" {
            div.title { h2 #fresh-title { "Freshness" } span.push {} a.small href="/freshness" { "By class" } }
            @if standing.freshness.is_empty() { (nothing()) }
            @else {
                div.scroll tabindex="0" role="region" aria-labelledby="fresh-title" {
                    table {
                        thead { tr { th scope="col" { "Robot" } th.number scope="col" { "Wait" } th.number scope="col" { "Last seen" } th.number scope="col" { "Found in" } } }
                        tbody {
                            @for lane in &standing.freshness {
                                tr {
                                    th scope="row" { (lane.lane.rsplit('/').next().unwrap_or(&lane.lane)) }
                                    td.number { (words::decimal(lane.everybody.posts_waiting)) }
                                    td.number { (words::hours(lane.everybody.age_hours)) }
                                    td.number { (words::hours(lane.everybody.delay_hours)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn nothing() -> Markup {
    empty(
        "Nothing is known yet.",
        "Freshness is told of robots that visit people again and again, once they have visited some.",
    )
}

async fn charts(frame: &Frame, shared: &Shared, lane: Option<&str>) -> Result<Markup, Problem> {
    let lanes = shared.browser.lanes().await?;
    let chosen = chosen(&frame.standing, &lanes, lane);
    let ages = match chosen {
        Some(lane) => {
            let question = AgesQuestion {
                lane: lane.to_owned(),
                now: WorldTime(frame.standing.world_us),
                sample_max: SAMPLE_MAX,
            };
            Some((lane, shared.browser.ages(question).await?))
        }
        None => None,
    };
    let hours = shared.browser.hours(SAMPLE_MAX).await?;
    Ok(html! {
        div.columns {
            section.part {
                @if lanes.len() > 1 { (lane_form(&lanes, chosen)) }
                @match &ages {
                    Some((lane, ages)) => { (age_chart(lane, ages)) },
                    None => { h2 { "How long ago" } (nothing()) },
                }
            }
            section.part { (day_chart(&hours)) }
        }
    })
}

/// The lane that was asked for; else one whose freshness is told, else the first.
fn chosen<'a>(standing: &Standing, lanes: &'a [String], asked: Option<&str>) -> Option<&'a str> {
    let find = |name: &str| lanes.iter().find(|lane| *lane == name);
    let told = standing.freshness.first().map(|lane| lane.lane.as_str());
    let lane = asked.and_then(find).or_else(|| told.and_then(find));
    lane.or(lanes.first()).map(String::as_str)
}

fn lane_form(lanes: &[String], chosen: Option<&str>) -> Markup {
    html! {
        form.filters action="/freshness" {
            div.field {
                label for="lane" { "Robot" }
                select id="lane" name="lane" {
                    @for lane in lanes { option value=(lane) selected[chosen == Some(lane)] { (lane) } }
                }
            }
            button { "Show" }
        }
    }
}

pub(super) fn age_chart(lane: &str, ages: &Ages) -> Markup {
    if ages.sample == ages.unvisited {
        return html! { h2 { "How long ago" } (empty("Nobody was visited yet.", "The chart begins with the first visits.")) };
    }
    let mut places: Vec<String> = ages
        .edges_us
        .iter()
        .map(|edge| format!("≤ {}", round_span(*edge)))
        .collect();
    places.push("older".into());
    let mut series: Vec<Series> = ages
        .classes
        .iter()
        .map(|(class, counts)| Series {
            name: class_name(class).to_owned(),
            colour: class_colour(class),
            values: counts.iter().map(|count| *count as f64).collect(),
        })
        .collect();
    series.sort_by_key(|it| it.colour);
    let chart = Columns {
        id: "ages".into(),
        title: "How long ago they were visited".into(),
        unit: "subjects",
        places,
        axis: "age",
        series,
    };
    html! {
        (chart::columns(&chart))
        p.note {
            (lane) ": " (words::many(ages.sample, "subject", "subjects"))
            @if ages.is_whole { ", which is everybody" } @else { ", a part: those due first and last" }
            "; " (words::number(ages.unvisited)) " not visited yet. "
            a href={ "/freshness?lane=" (encoded(lane)) } { "Look again" }
        }
    }
}

/// A span of one unit.
fn round_span(span_us: i64) -> String {
    let seconds = span_us / 1_000_000;
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

pub(super) fn day_chart(hours: &Hours) -> Markup {
    if hours.sample == 0 {
        return html! { h2 { "Posts by hour of the day" } (empty("No posts yet.", "The chart begins with the first posts.")) };
    }
    let chart = Columns {
        id: "hours".into(),
        title: "Posts by hour of the day".into(),
        unit: "posts, hours in UTC",
        places: (0..24).map(|hour| format!("{hour:02}:00")).collect(),
        axis: "hour",
        series: vec![Series {
            name: "posts".into(),
            colour: 0,
            values: hours.hours.iter().map(|count| *count as f64).collect(),
        }],
    };
    html! {
        (chart::columns(&chart))
        p.note { "Over the " (words::many(hours.sample, "post", "posts")) " that were met last." }
    }
}
