//! The methods record of a crawl as Markdown. Pure.

use crate::progress::{bytes, clock_text};
use crate::standing::{asked, time_text};
use kittiwake_store::Summary;
use kittiwake_store::detail::{Methods, RunCalls, RunDetail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// Longer breaks between two runs are told as gaps.
const GAP_US: i64 = 60_000_000;

pub(crate) fn markdown(file: &str, summary: &Summary, record: &Methods) -> String {
    let mut text = format!("# How {} came about\n\n", escape(file));
    opening(&mut text, record);
    runs(&mut text, record);
    definitions(&mut text, record);
    hosts(&mut text, record);
    rows(&mut text, summary);
    coverage(&mut text, summary);
    calls(&mut text, record);
    outcomes(&mut text, record);
    gaps(&mut text, summary, record);
    opt_outs(&mut text, record);
    text
}

/// Words from outside must not become Markdown.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars().take(300) {
        match letter {
            // Nor are they for a terminal to obey.
            control if control.is_control() => out.push(' '),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' => {
                out.push('\\');
                out.push(letter);
            }
            other => out.push(other),
        }
    }
    out
}

fn settings(run: &RunDetail) -> Value {
    serde_json::from_str(&run.settings).unwrap_or_default()
}

fn opening(text: &mut String, record: &Methods) {
    let (Some((first, _)), Some((last, _))) = (record.runs.first(), record.runs.last()) else {
        text.push_str("No crawl was run into this file.\n");
        return;
    };
    let total: RunCalls = record
        .runs
        .iter()
        .fold(RunCalls::default(), |sum, (_, run)| RunCalls {
            calls: sum.calls + run.calls,
            bytes: sum.bytes + run.bytes,
            refused: sum.refused + run.refused,
            failed: sum.failed + run.failed,
            rows_new: sum.rows_new + run.rows_new,
            rows_changed: sum.rows_changed + run.rows_changed,
        });
    let version = settings(last)["version"].as_str().unwrap_or("?").to_owned();
    let _ = writeln!(
        text,
        "Collected from {} with Kittiwake {} between {} and {}: {} runs, {} calls, {}, \
         {} calls refused for a limit, {} calls that failed in passing.\n",
        escape(&asked(&last.network, &last.host)),
        escape(&version),
        time_text(first.started_us),
        time_text(last.ended_us.unwrap_or(last.started_us)),
        record.runs.len(),
        total.calls,
        bytes(total.bytes),
        total.refused,
        total.failed,
    );
}

fn runs(text: &mut String, record: &Methods) {
    text.push_str("## Runs\n\n| run | from | to | ended | calls | rows new | rows changed |\n|---|---|---|---|---|---|---|\n");
    for (run, done) in &record.runs {
        let ended = run.end_reason.as_deref().unwrap_or("broke off");
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            run.number,
            time_text(run.started_us),
            run.ended_us.map_or_else(String::new, time_text),
            escape(ended),
            done.calls,
            done.rows_new,
            done.rows_changed,
        );
    }
    text.push_str("\nSettings of each run:\n\n");
    for (run, _) in &record.runs {
        let settings = settings(run);
        let entries: Vec<String> = settings
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| format!("{} = {}", escape(name), escape(&plain(name, value))))
            .collect();
        let _ = writeln!(
            text,
            "- run {}: definition {}, clock {}; {}",
            run.number,
            escape(&run.definition),
            escape(&run.clock),
            entries.join(", ")
        );
    }
    text.push('\n');
}

/// A setting as people read it.
fn plain(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| plain("", item)).collect();
            items.join(" ")
        }
        Value::Number(number) if name.ends_with("_us") => {
            number.as_i64().map_or_else(String::new, time_text)
        }
        other => other.to_string(),
    }
}

fn definitions(text: &mut String, record: &Methods) {
    text.push_str("## Definitions\n\n| network | digest | verified on |\n|---|---|---|\n");
    for definition in &record.definitions {
        let parsed: Option<toml::Table> = definition.text.parse().ok();
        let verified = parsed
            .as_ref()
            .and_then(|table| table.get("verified_on")?.as_str())
            .unwrap_or("?");
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            escape(&definition.network),
            escape(&definition.digest),
            escape(verified)
        );
    }
    text.push_str("\nTheir full text is in the table `definitions` of the file.\n\n");
}

fn hosts(text: &mut String, record: &Methods) {
    if record.hosts.is_empty() {
        return;
    }
    text.push_str("## Hosts, as they describe themselves\n\n");
    for (name, fields) in &record.hosts {
        let fields: Value = serde_json::from_str(fields).unwrap_or_default();
        let of = |name: &str| escape(&plain("", &fields[name]));
        let rules = fields["rules"].as_array().map_or(0, Vec::len);
        let _ = writeln!(
            text,
            "- {}: {}, version {}, {} active users a month, {rules} rules of its own",
            escape(name),
            of("title"),
            of("version"),
            of("active_users_month"),
        );
    }
    text.push('\n');
}

fn rows(text: &mut String, summary: &Summary) {
    text.push_str("## What the file holds\n\n| table | rows |\n|---|---|\n");
    for table in crate::summary::SHOWN {
        let rows = summary.rows.get(table).copied().unwrap_or(0);
        let _ = writeln!(text, "| {} | {rows} |", escape(table));
    }
    text.push('\n');
}

fn coverage(text: &mut String, summary: &Summary) {
    text.push_str(
        "## Coverage\n\n| robot | subjects within reach | visited at least once |\n|---|---|---|\n",
    );
    for (robot, (filed, visited)) in &summary.robots {
        let _ = writeln!(text, "| {} | {filed} | {visited} |", escape(robot));
    }
    let depths: Vec<String> = summary
        .depths
        .iter()
        .map(|(depth, subjects)| format!("{subjects} at depth {depth}"))
        .collect();
    if !depths.is_empty() {
        let _ = writeln!(
            text,
            "\nSubjects by distance from the seeds: {}.",
            depths.join(", ")
        );
    }
    text.push('\n');
}

fn calls(text: &mut String, record: &Methods) {
    text.push_str("## Calls\n\n| query | outcome | calls | received |\n|---|---|---|---|\n");
    for ((query, outcome), count) in &record.calls {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            escape(query),
            escape(outcome),
            count.calls,
            bytes(count.bytes)
        );
    }
    let _ = writeln!(
        text,
        "\n{} values were dropped or mended because they were not what the network promises.\n",
        record.mended
    );
}

fn outcomes(text: &mut String, record: &Methods) {
    text.push_str("## Outcomes\n\nThe newest outcome of every subject that was asked for.\n\n| query | outcome | reason | subjects |\n|---|---|---|---|\n");
    for ((query, outcome, reason), subjects) in &record.outcomes {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {subjects} |",
            escape(query),
            escape(outcome),
            escape(reason)
        );
    }
    text.push('\n');
}

/// How many subjects have one of these outcomes, by reason.
fn with_outcome<'a>(record: &'a Methods, wanted: &[&str]) -> BTreeMap<(&'a str, &'a str), u64> {
    let mut found = BTreeMap::new();
    for ((query, outcome, reason), subjects) in &record.outcomes {
        if wanted.contains(&outcome.as_str()) {
            *found.entry((query.as_str(), reason.as_str())).or_default() += subjects;
        }
    }
    found
}

fn gaps(text: &mut String, summary: &Summary, record: &Methods) {
    text.push_str("## Gaps and caps\n\n");
    let mut lines = Vec::new();
    for pair in record.runs.windows(2) {
        let [(before, _), (after, _)] = pair else {
            continue;
        };
        let from_us = before.ended_us.unwrap_or(before.started_us);
        let gap_us = after.started_us.saturating_sub(from_us);
        if gap_us >= GAP_US {
            let gap = clock_text(Duration::from_micros(gap_us.unsigned_abs()));
            lines.push(format!(
                "nothing was asked for {gap} between run {} and run {}",
                before.number, after.number
            ));
        }
    }
    for ((query, reason), subjects) in with_outcome(record, &["cap reached", "too much data"]) {
        lines.push(format!(
            "{subjects} lists of {} were not walked to their end: {}",
            escape(query),
            escape(reason)
        ));
    }
    let failed = [
        "transient",
        "host down",
        "malformed",
        "rate limited",
        "quota exhausted",
    ];
    for ((query, reason), subjects) in with_outcome(record, &failed) {
        lines.push(format!(
            "{subjects} subjects have no answer to {}: {}",
            escape(query),
            escape(reason)
        ));
    }
    for (robot, (filed, visited)) in &summary.robots {
        if filed > visited {
            lines.push(format!(
                "{} subjects within reach were not visited by {}",
                filed - visited,
                escape(robot)
            ));
        }
    }
    if lines.is_empty() {
        lines.push("none".to_owned());
    }
    for line in lines {
        let _ = writeln!(text, "- {line}");
    }
    text.push('\n');
}

fn opt_outs(text: &mut String, record: &Methods) {
    text.push_str("## Opt-outs\n\n");
    let _ = writeln!(
        text,
        "- {} accounts within reach ask not to be indexed and were left alone",
        record.opted_out
    );
    for (run, _) in &record.runs {
        if let Some(reason) = settings(run)["include_opted_out"].as_str() {
            let _ = writeln!(
                text,
                "- run {} visited such accounts as well; the reason given: {}",
                run.number,
                escape(reason)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_tells_runs_caps_gaps_and_opt_outs_and_no_word_becomes_markdown() {
        let run = |number, started_us, settings: &str| RunDetail {
            number,
            network: "mastodon".into(),
            host: "sea.example".into(),
            definition: "abc".into(),
            settings: settings.into(),
            started_us,
            ended_us: Some(started_us + 1_000_000),
            end_reason: Some("idle".into()),
            ..RunDetail::default()
        };
        let outcome = |query: &str, outcome: &str, reason: &str| {
            (query.to_owned(), outcome.to_owned(), reason.to_owned())
        };
        let record = Methods {
            runs: vec![
                (run(1, 0, "{}"), RunCalls::default()),
                (
                    run(
                        2,
                        3_600_000_000,
                        r#"{"include_opted_out":"court order | 7"}"#,
                    ),
                    RunCalls::default(),
                ),
            ],
            outcomes: BTreeMap::from([
                (outcome("timeline", "cap reached", "end of the history"), 4),
                (outcome("profiles", "opted out", "asks"), 7),
                (outcome("profiles", "transient", "<script>\u{1b}[2J"), 1),
            ]),
            opted_out: 7,
            ..Methods::default()
        };
        let text = markdown("a.db", &Summary::default(), &record);
        for part in [
            "nothing was asked for 59 min 59 s between run 1 and run 2",
            "4 lists of timeline were not walked to their end: end of the history",
            "7 accounts within reach ask not to be indexed",
            "the reason given: court order \\| 7",
            "\\<script\\> \\[2J",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
    }
}
