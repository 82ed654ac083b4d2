//! For those who watch over servers: is it alive, and its figures in Prometheus's text format.

use crate::Shared;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Is it alive? Anybody may ask.
#[utoipa::path(get, path = "/healthz", tag = "crawl", security(()),
    responses((status = 200, description = "it is", body = String, content_type = "text/plain")))]
pub(crate) async fn healthz() -> Response {
    (
        [(header::CONTENT_TYPE, "text/plain; charset=utf-8")],
        "ok\n",
    )
        .into_response()
}

/// The figures of the crawl and of the server, as Prometheus reads them.
#[utoipa::path(get, path = "/metrics", tag = "crawl",
    responses((status = 200, body = String, content_type = "text/plain")))]
pub(crate) async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text(&shared)).into_response()
}

/// One metric and its samples.
struct Metric<'a> {
    out: &'a mut String,
    name: &'static str,
}

impl<'a> Metric<'a> {
    fn new(out: &'a mut String, name: &'static str, kind: &str, help: &str) -> Self {
        let _ = writeln!(out, "# HELP kittiwake_{name} {help}");
        let _ = writeln!(out, "# TYPE kittiwake_{name} {kind}");
        Self { out, name }
    }

    fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let labels = match labels.as_slice() {
            [] => String::new(),
            labels => format!("{{{}}}", labels.join(",")),
        };
        let _ = writeln!(self.out, "kittiwake_{}{labels} {value}", self.name);
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn text(shared: &Shared) -> String {
    let standing = shared.standing();
    let mut text = String::new();
    let out = &mut text;
    let gauge = |out: &mut String, name, help, value: f64| {
        Metric::new(out, name, "gauge", help).sample(&[], value);
    };
    gauge(
        out,
        "crawling",
        "Whether a process crawls.",
        f64::from(u8::from(standing.crawling)),
    );
    let mut rows = Metric::new(out, "rows", "gauge", "Rows by table, as last counted.");
    for (table, count) in &standing.rows {
        rows.sample(&[("table", table)], *count as f64);
    }
    let mut calls = Metric::new(
        out,
        "robot_calls_per_second",
        "gauge",
        "Calls by robot, over a minute.",
    );
    for robot in &standing.robots {
        calls.sample(&[("robot", &robot.name)], robot.calls_per_second);
    }
    let mut rows = Metric::new(
        out,
        "robot_rows_per_second",
        "gauge",
        "Rows by robot, over a minute.",
    );
    for robot in &standing.robots {
        rows.sample(&[("robot", &robot.name)], robot.rows_per_second);
    }
    let mut waiting = Metric::new(
        out,
        "robot_waiting",
        "gauge",
        "Subjects that wait for their turn.",
    );
    for robot in &standing.robots {
        waiting.sample(&[("robot", &robot.name)], robot.waiting as f64);
    }
    let mut outcomes = Metric::new(out, "recent_calls", "gauge", "The newest calls by outcome.");
    for it in &standing.outcomes {
        outcomes.sample(&[("outcome", &it.outcome)], it.calls as f64);
    }
    budgets(out, &standing);
    let mut delay = Metric::new(
        out,
        "post_delay_hours",
        "gauge",
        "How long after they were written posts were found lately.",
    );
    for lane in &standing.freshness {
        if let Some(hours) = lane.everybody.delay_hours {
            delay.sample(&[("lane", &lane.lane)], hours);
        }
    }
    server(out, shared);
    text
}

fn budgets(out: &mut String, standing: &crate::Standing) {
    let mut used = Metric::new(
        out,
        "budget_used",
        "gauge",
        "Units of each limit that count now.",
    );
    for budget in &standing.budgets {
        used.sample(&[("budget", &budget.id)], budget.used as f64);
    }
    let mut limit = Metric::new(
        out,
        "budget_limit",
        "gauge",
        "Units that may count at once.",
    );
    for budget in &standing.budgets {
        limit.sample(&[("budget", &budget.id)], budget.limit as f64);
    }
}

fn server(out: &mut String, shared: &Shared) {
    let hub = &shared.hub;
    let streams = hub.streams() as f64;
    Metric::new(out, "streams", "gauge", "Event streams that are open.").sample(&[], streams);
    let subscribers = hub.subscribers() as f64;
    Metric::new(out, "subscribers", "gauge", "Those that follow the feed.")
        .sample(&[], subscribers);
    for (name, help, counter) in [
        (
            "events_sent_total",
            "Events that subscribers were sent.",
            &hub.sent,
        ),
        (
            "events_dropped_total",
            "Events that slow subscribers were not sent.",
            &hub.dropped,
        ),
        (
            "policy_violations_total",
            "Violations that browsers told of.",
            &shared.reports,
        ),
    ] {
        let value = counter.load(Ordering::Relaxed) as f64;
        Metric::new(out, name, "counter", help).sample(&[], value);
    }
}
