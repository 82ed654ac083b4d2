//! Robots: what each does, what it did last, and the buttons that steer it.

use super::frame::{Frame, Here, Refresh, Sheet};
use super::lists::empty;
use super::{overview, words};
use crate::standing::{Message, RobotStanding, RobotState, Standing};
use crate::{Action, Problem, Shared};
use axum::extract::{Form, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use std::sync::Arc;

/// Messages of each robot that the page shows.
const MESSAGES: usize = 8;

pub(super) async fn get(frame: Frame, State(shared): State<Arc<Shared>>) -> Response {
    let messages = |robot: &str| shared.messages(Some(robot), MESSAGES);
    frame.answer(Ok(sheet(&frame, messages)))
}

pub(super) fn sheet(frame: &Frame, messages: impl Fn(&str) -> Vec<Message>) -> Sheet {
    let standing = &frame.standing;
    let body = html! {
        div.head {
            h1 { "Robots" } span.push {} (whole(frame))
            p { "Each robot collects one kind of thing. Pausing holds it until it is resumed, also after a restart; stopping switches it off until the next run." }
        }
        div #robots data-live {
            (overview::trouble(standing))
            @if standing.robots.is_empty() {
                (empty("There are no robots yet.", "They appear when a crawl begins."))
            }
            div.robots {
                @for robot in &standing.robots {
                    (card(frame, robot, &messages(&robot.name)))
                }
            }
        }
    };
    Sheet {
        here: Here::Robots,
        title: "Robots".into(),
        refresh: Refresh::Page,
        body,
    }
}

fn card(frame: &Frame, robot: &RobotStanding, messages: &[Message]) -> Markup {
    let title = format!("robot-{}", robot.name);
    html! {
        section.part id=(title) data-robot=(robot.name) aria-label={ "Robot " (robot.name) } {
            div.title {
                h2 { (robot.name) } (state_pill(robot.state)) span.push {}
                (buttons(frame, robot, "/robots"))
            }
            dl.strip {
                div { dt { "Calls" } dd data-figure="calls" { (words::number(robot.calls)) } }
                div { dt { "Calls a second" } dd { (words::decimal(robot.calls_per_second)) } }
                div { dt { "New rows" } dd { (words::number(robot.rows_new)) } }
                div { dt { "Changed" } dd { (words::number(robot.rows_changed)) } }
                div { dt { "Visits" } dd { (words::number(robot.visits)) } }
                div { dt { "Waiting" } dd { (words::number(robot.waiting)) } }
            }
            @if !robot.queries.is_empty() { p.note { "Asks: " (robot.queries.join(", ")) } }
            (message_list(messages, &frame.standing))
        }
    }
}

fn message_list(messages: &[Message], standing: &Standing) -> Markup {
    html! {
        @if messages.is_empty() { p.empty { "It has done nothing yet." } }
        @else {
            ol.messages aria-label="What it did last" {
                @for message in messages {
                    li {
                        a href={ "/log/" (message.log) } { (words::ago(message.at_us, standing.at_us)) }
                        span.text { (message.text) }
                        span.pill.plain.(if message.is_failure { "bad" } else { "" }) { (message.outcome) }
                    }
                }
            }
        }
    }
}

/// All robots in a table, for the overview.
pub(super) fn table(frame: &Frame) -> Markup {
    let standing = &frame.standing;
    html! {
        section.part aria-labelledby="robots-title" {
            div.title { h2 #robots-title { "Robots" } span.push {} a.small href="/robots" { "Messages of each" } }
            @if standing.robots.is_empty() {
                (empty("There are no robots yet.", "They appear when a crawl begins."))
            } @else {
                div.scroll tabindex="0" role="region" aria-labelledby="robots-title" {
                    table {
                        thead { tr {
                            th scope="col" { "Robot" } th scope="col" { "State" }
                            th.number scope="col" { "Calls" } th.number scope="col" { "New rows" }
                            th.number scope="col" { "Rows/s" } th.number scope="col" { "Visits" } th.number scope="col" { "Waiting" }
                            @if frame.is_operator() { th scope="col" { span.aside { "Steer" } } }
                        } }
                        tbody { @for robot in &standing.robots { (row(frame, robot)) } }
                    }
                }
            }
        }
    }
}

fn row(frame: &Frame, robot: &RobotStanding) -> Markup {
    html! {
        tr data-robot=(robot.name) {
            th scope="row" { a href={ "/robots#robot-" (robot.name) } { (robot.name) } }
            td { (state_pill(robot.state)) }
            td.number { (words::number(robot.calls)) }
            td.number { (words::number(robot.rows_new)) }
            td.number { (words::decimal(robot.rows_per_second)) }
            td.number { (words::number(robot.visits)) }
            td.number { (words::number(robot.waiting)) }
            @if frame.is_operator() { td.act { (buttons(frame, robot, "/")) } }
        }
    }
}

fn state_pill(state: RobotState) -> Markup {
    let (class, word) = match state {
        RobotState::Running => ("good", "running"),
        RobotState::Paused => ("warn", "paused"),
        RobotState::Stopped => ("bad", "stopped"),
        RobotState::Resting => ("", "resting"),
    };
    html! { span.pill.(class) { (word) } }
}

/// What can be done with a robot as it stands.
fn buttons(frame: &Frame, robot: &RobotStanding, back: &str) -> Markup {
    if !frame.is_operator() || !frame.standing.crawling {
        return html! {};
    }
    let name = Some(robot.name.as_str());
    html! {
        span.acts {
            @match robot.state {
                RobotState::Running => {
                    (button("pause", "Pause", name, back)) (button("stop", "Stop", name, back))
                },
                RobotState::Paused => {
                    (button("resume", "Resume", name, back)) (button("stop", "Stop", name, back))
                },
                RobotState::Stopped => { span.note { "off until the next run" } },
                RobotState::Resting => { (button("resume", "Start", name, back)) },
            }
        }
    }
}

/// What can be done with the crawl as it stands.
pub(super) fn whole(frame: &Frame) -> Markup {
    let standing = &frame.standing;
    html! {
        span.acts #crawl-acts data-live {
            @if frame.is_operator() {
                @if standing.crawling {
                    @if standing.paused { (button("resume", "Resume all", None, "/")) }
                    @else { (button("pause", "Pause all", None, "/")) }
                    (button("stop", "Stop the crawl", None, "/"))
                } @else if standing.run.is_some() {
                    (button("start", "Start the crawl", None, "/"))
                }
            }
        }
    }
}

fn button(command: &str, word: &str, robot: Option<&str>, back: &str) -> Markup {
    let sure = (command == "stop" && robot.is_none())
        .then_some("Stop the crawl? What is in flight is finished and saved.");
    html! {
        form action="/robots" method="post" data-stay data-sure=[sure] {
            input type="hidden" name="command" value=(command);
            input type="hidden" name="back" value=(back);
            @if let Some(robot) = robot { input type="hidden" name="robot" value=(robot); }
            button.(if command == "start" { "main" } else { "" }) { (word) @if let Some(robot) = robot { span.aside { " " (robot) } } }
        }
    }
}

/// A button that was pressed.
#[derive(Debug, Deserialize)]
pub(super) struct Steering {
    command: Action,
    robot: Option<String>,
    #[serde(default)]
    back: String,
}

pub(super) async fn steer(
    frame: Frame,
    State(shared): State<Arc<Shared>>,
    Form(steering): Form<Steering>,
) -> Response {
    let said = carry_out(&frame, &shared, &steering).await;
    frame.done(said, &steering.back)
}

async fn carry_out(frame: &Frame, shared: &Shared, steering: &Steering) -> Result<String, Problem> {
    frame.want_operator()?;
    let controlled = shared
        .control(steering.command, steering.robot.as_deref())
        .await?;
    Ok(capitalised(&controlled.detail))
}

/// A sentence.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    let mut sentence: String = first.into_iter().flatten().chain(letters).collect();
    if !sentence.ends_with('.') {
        sentence.push('.');
    }
    sentence
}
