//! How results are shown: tables for people, one JSON object a line for machines.

use super::Outcome;
use crate::console;
use crate::failure::Failure;
use jiff::Timestamp;
use kittiwake_frontier::replay::{Figures, Mispredictions, OneVisit, Trace, UnbudgetedHash};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
}

/// A delay; one that never ends is null.
fn seconds(value: f64) -> Value {
    if value.is_finite() {
        json!(value)
    } else {
        Value::Null
    }
}

pub(super) fn json(outcome: &Outcome) -> Value {
    let report = &outcome.report;
    let mut value = json!({
        "policy": report.policy,
        "visits_per_day": outcome.visits_per_day,
        "page": outcome.page,
        "users": report.users,
        "calls": report.calls,
        "posts_per_call_arriving": report.posts_per_call_arriving(),
        "messages": report.messages,
        "messages_per_call": report.messages_per_call(),
        "decisions_per_s": report.calls_all as f64 / outcome.took.as_secs_f64().max(1e-9),
        "state_bytes_per_user": report.state_bytes,
        "classes": report.classes.iter().map(|class| {
            let mut value = figures(&class.figures);
            value["class"] = json!(class.class.name());
            value["users"] = json!(class.users);
            value["visits"] = json!(class.visits);
            value
        }).collect::<Vec<_>>(),
    });
    merge(&mut value, figures(&report.figures));
    if let Some(top) = &report.top {
        value["top_1_percent"] = figures(top);
    }
    value
}

fn merge(value: &mut Value, more: Value) {
    if let (Value::Object(value), Value::Object(more)) = (value, more) {
        value.extend(more);
    }
}

fn figures(figures: &Figures) -> Value {
    json!({
        "posts": figures.posts,
        "lost_share": figures.lost_share(),
        "mean_delay_s": figures.mean_delay_s,
        "median_delay_s": seconds(figures.median_delay_s),
        "p95_delay_s": seconds(figures.p95_delay_s),
        "within_1h": figures.within_1h,
        "within_24h": figures.within_24h,
        "waiting_mean": figures.waiting_mean,
    })
}

/// `3.2 min`, `11.6 h`, `4.1 d`, or `never`.
fn delay(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "never".to_owned();
    }
    match seconds {
        ..3_600.0 => format!("{:.1} min", seconds / 60.0),
        ..172_800.0 => format!("{:.2} h", seconds / 3_600.0),
        _ => format!("{:.1} d", seconds / 86_400.0),
    }
}

pub(super) fn table(trace: &Trace, outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "{} users, {} posts, {:.1} days\n",
        trace.users.len(),
        trace.posts(),
        trace.days()
    );
    let mut budget = None;
    for outcome in outcomes {
        let report = &outcome.report;
        if budget != Some(outcome.visits_per_day) {
            budget = Some(outcome.visits_per_day);
            let _ = write!(
                text,
                "\n{:.4} visits per user and day, pages of {}, {:.3} posts arrive per call\n\
                 {:<14} {:>8} {:>7} {:>10} {:>10} {:>10} {:>6} {:>6} {:>9}\n",
                outcome.visits_per_day,
                outcome.page,
                report.posts_per_call_arriving(),
                "policy",
                "per call",
                "lost",
                "mean",
                "median",
                "p95",
                "<=1 h",
                "<=24 h",
                "waiting",
            );
        }
        let _ = writeln!(
            text,
            "{}",
            row(&report.policy, report.messages_per_call(), &report.figures)
        );
    }
    text.push_str(&classes(outcomes));
    text
}

fn row(name: &str, per_call: f64, figures: &Figures) -> String {
    format!(
        "{name:<14} {per_call:>8.3} {:>6.2}% {:>10} {:>10} {:>10} {:>5.1}% {:>5.1}% {:>9.0}",
        figures.lost_share() * 100.0,
        delay(figures.mean_delay_s),
        delay(figures.median_delay_s),
        delay(figures.p95_delay_s),
        figures.within_1h * 100.0,
        figures.within_24h * 100.0,
        figures.waiting_mean,
    )
}

/// The first budget by class of users, and the most spread posts.
fn classes(outcomes: &[Outcome]) -> String {
    let Some(first) = outcomes.first() else {
        return String::new();
    };
    let mut text = String::new();
    let same = outcomes
        .iter()
        .filter(|outcome| (outcome.visits_per_day - first.visits_per_day).abs() < f64::EPSILON);
    for outcome in same {
        let report = &outcome.report;
        let _ = write!(text, "\n{} by class\n", report.policy);
        for class in report.classes.iter().filter(|class| class.users > 0) {
            let name = format!("  {} ({})", class.class.name(), class.users);
            let per_call = class.figures.posts as f64 / class.visits.max(1) as f64;
            let _ = writeln!(text, "{}", row(&name, per_call, &class.figures));
        }
        if let Some(top) = &report.top {
            let _ = writeln!(text, "{}", row("  most spread", 0.0, top));
        }
    }
    text
}

/// What was observed of whom, as CSV.
pub(super) fn observed(trace: &Trace, outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "policy,visits_per_day,user,facet,class,visits,full_pages,posts,messages,lost,\
         lost_share_estimated\n",
    );
    for outcome in outcomes {
        for (subject, observed) in trace.subjects.iter().zip(&outcome.report.observed) {
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{:.6}",
                outcome.report.policy,
                outcome.visits_per_day,
                quoted(&trace.users[subject.user as usize]),
                quoted(&trace.facets[usize::from(subject.facet)]),
                observed.class.name(),
                observed.visits,
                observed.full_pages,
                subject.posts.len(),
                observed.messages,
                observed.lost,
                observed.lost_share_estimated(),
            );
        }
    }
    text
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

pub(super) fn show_one_visit(result: &OneVisit, is_json: bool) {
    let orders = [
        ("round-robin", result.round_robin),
        ("organ-pipe", result.organ_pipe),
        ("slow-first", result.slow_first),
    ];
    for (order, messages) in orders {
        let per_call = messages as f64 / result.visits.max(1) as f64;
        let gain = messages as f64 / result.round_robin.max(1) as f64 - 1.0;
        if is_json {
            let value = json!({
                "experiment": "one-visit", "policy": order, "windows": result.windows,
                "calls": result.visits, "messages": messages, "messages_per_call": per_call,
                "gain": gain,
            });
            console::output(&value.to_string());
        } else {
            console::output(&format!(
                "{order:<12} {messages:>9} messages in {} visits, {per_call:.2} each, {:+.1} %",
                result.visits,
                gain * 100.0
            ));
        }
    }
}

pub(super) fn show_unbudgeted(results: &[UnbudgetedHash], is_json: bool) {
    for result in results {
        let per_call = result.messages as f64 / result.calls.max(1) as f64;
        if is_json {
            let value = json!({
                "experiment": "hash-unbudgeted", "weight": result.weight, "calls": result.calls,
                "messages": result.messages, "messages_per_call": per_call,
                "visits_per_day": result.visits_per_day,
            });
            console::output(&value.to_string());
        } else {
            console::output(&format!(
                "w = {:.1}: {:>9} messages in {:>7} calls, {per_call:.2} each ({:.5} visits per user and day)",
                result.weight, result.messages, result.calls, result.visits_per_day
            ));
        }
    }
}

pub(super) fn show_mispredictions(months: &[Mispredictions], is_json: bool) {
    for month in months {
        let name = Timestamp::from_microsecond(month.month.micros())
            .map_or_else(|_| "?".to_owned(), |at| at.strftime("%Y-%m").to_string());
        let share = month.mispredicted as f64 / month.posts.max(1) as f64;
        if is_json {
            let value = json!({
                "experiment": "mispredictions", "month": name, "posts": month.posts,
                "predicted": month.predicted, "mispredicted": month.mispredicted, "share": share,
            });
            console::output(&value.to_string());
        } else {
            console::output(&format!(
                "{name}  {:>9} posts, {:>9} mispredicted, {:.1} %",
                month.posts,
                month.mispredicted,
                share * 100.0
            ));
        }
    }
}
