//! Summaries: for people as a table, for machines as JSON (docs/summary.md).

use crate::console::plain;
use crate::progress::amount;
use kittiwake_engine::{CrawlReport, End};
use kittiwake_store::{Location, Summary};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// What a file holds, as JSON.
pub(crate) fn held(file: &Location, summary: &Summary) -> Value {
    let robots: Map<String, Value> = summary
        .robots
        .iter()
        .map(|(robot, (filed, visited))| {
            (
                robot.to_string(),
                json!({ "subjects": filed, "visited": visited }),
            )
        })
        .collect();
    let reasons = summary.reasons.iter();
    let reasons: Vec<Value> = reasons
        .map(|it| {
            json!({
                "query": it.query,
                "outcome": it.outcome,
                "reason": it.reason,
                "subjects": it.subjects,
            })
        })
        .collect();
    json!({
        "file": file.to_string(),
        "rows": summary.rows,
        "robots": robots,
        "depths": summary.depths,
        "calls_total": summary.calls,
        "outcomes": summary.outcomes,
        "reasons": reasons,
    })
}

/// What a crawl did, as JSON.
pub(crate) fn crawled(file: &Location, report: &CrawlReport, seconds: f64) -> Value {
    let mut shown = held(file, &report.summary);
    if let Some(entries) = shown.as_object_mut() {
        let used: Map<String, Value> = report
            .budgets
            .iter()
            .map(|budget| {
                let spent = json!({
                    "calls": budget.calls,
                    "units": budget.units,
                    "unit": budget.unit,
                    "limit": budget.limit,
                    "window_seconds": budget.window_seconds,
                    "windows": budget.windows,
                    "share": budget.share(),
                });
                (budget.budget.to_string(), spent)
            })
            .collect();
        entries.insert("end".into(), json!(report.end));
        entries.insert("calls".into(), json!(report.calls));
        entries.insert("allowance_used".into(), Value::Object(used));
        entries.insert("violations".into(), json!(report.violations));
        entries.insert("given_up".into(), json!(report.given_up));
        let refused = report.refused.iter();
        let refused: Vec<Value> = refused
            .map(|(fingerprint, reason)| json!({ "credential": fingerprint, "reason": reason }))
            .collect();
        entries.insert("refused_credentials".into(), json!(refused));
        entries.insert("rows_new".into(), json!(report.rows_new));
        entries.insert("rows_changed".into(), json!(report.rows_changed));
        entries.insert("seconds".into(), json!(seconds));
        if let Some(robots) = entries.get_mut("robots").and_then(Value::as_object_mut) {
            for (name, done) in &report.robots {
                let Some(robot) = robots.get_mut(&**name).and_then(Value::as_object_mut) else {
                    continue;
                };
                robot.insert("calls".into(), json!(done.calls));
                robot.insert("visits".into(), json!(done.visits));
                robot.insert("rows_new".into(), json!(done.rows_new));
                robot.insert("rows_changed".into(), json!(done.rows_changed));
            }
        }
    }
    shown
}

/// The tables that people look for, in the order in which they do.
pub(crate) const SHOWN: [&str; 13] = [
    "users",
    "user_relations",
    "statuses",
    "comments",
    "tags",
    "user_tags",
    "links",
    "objects",
    "counts",
    "versions",
    "invalid_users",
    "invalid_relations",
    "query_log",
];

/// What a file holds, for people. Empty tables, and those of the machinery, are left out.
pub(crate) fn table(summary: &Summary) -> String {
    let mut text = String::new();
    for table in SHOWN {
        let rows = summary.rows.get(table).copied().unwrap_or(0);
        if rows > 0 {
            let _ = writeln!(text, "{table:<18} {rows:>10} rows");
        }
    }
    for (robot, (filed, visited)) in &summary.robots {
        let _ = writeln!(
            text,
            "robot {robot:<12} {visited:>10} of {filed} subjects visited"
        );
    }
    for (outcome, count) in &summary.outcomes {
        let _ = writeln!(text, "outcome {outcome:<10} {count:>10}");
    }
    for reason in &summary.reasons {
        let _ = writeln!(
            text,
            "why {:<14} {:>10} of {}: {}",
            reason.outcome,
            reason.subjects,
            reason.query,
            plain(&reason.reason)
        );
    }
    text
}

/// How a crawl ended, for people.
pub(crate) fn ending(report: &CrawlReport, seconds: f64) -> String {
    let end = match &report.end {
        End::Idle if report.given_up > 0 => "nothing is left to visit in this run".to_owned(),
        End::Idle => "every subject has been visited".to_owned(),
        End::Interrupted | End::Stopped => "stopped as asked; the same command goes on".to_owned(),
        End::Time => "the time of --max-time is over; the same command goes on".to_owned(),
        End::Calls => "the calls of --max-calls are used up; the same command goes on".to_owned(),
        End::Spend(cap) => format!(
            "another call could cost more than is left of --max-spend {cap}; the same command goes on \
             and spends up to that much again"
        ),
        End::HostDown(why) => {
            format!("the host cannot be reached ({why}); the same command goes on")
        }
        End::ShutOut(why) => {
            format!(
                "the network shuts us out ({why}); nothing more was asked. Look at the page in a \
                 browser, wait some hours, and go on more slowly; the same command goes on"
            )
        }
        End::AuthExpired(why) => {
            format!(
                "the server does not let us in ({why}); log in with kittiwake login, or set \
                 KITTIWAKE_<NETWORK>_TOKEN to a valid token, and run the same command"
            )
        }
    };
    let mut text = format!("{end}\n");
    if report.given_up > 0 {
        let _ = writeln!(
            text,
            "{} visits failed in spite of all tries; the same command tries them again",
            report.given_up
        );
    }
    for (fingerprint, reason) in &report.refused {
        let _ = writeln!(
            text,
            "the credential {fingerprint} was refused ({reason}); kittiwake auth list tells which it is"
        );
    }
    let _ = writeln!(
        text,
        "{} calls in {seconds:.1} s, {} of them refused for a limit",
        report.calls, report.violations
    );
    for budget in &report.budgets {
        let _ = writeln!(
            text,
            "allowance {:<14} {} of {} per {:.0} s in {} calls ({:.1} % used)",
            budget.budget,
            amount(budget.units, &budget.unit),
            amount(budget.limit, &budget.unit),
            budget.window_seconds,
            budget.calls,
            budget.share() * 100.0,
        );
    }
    text
}
