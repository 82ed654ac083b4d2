//! How a crawl stands, as text for people and as JSON for machines. Pure.

use crate::progress::{bytes, clock_text};
use kittiwake_model::{LimitTime, RealTime};
use kittiwake_store::detail::{Detail, NextVisit, Recent, RunDetail};
use kittiwake_store::ledger::BudgetUsage;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// A network and the host that is asked for all, if there is one.
pub(crate) fn asked(network: &str, host: &str) -> String {
    match host {
        "" => network.to_owned(),
        host => format!("{network} at {host}"),
    }
}

/// A time as people read it: ISO 8601, UTC, whole seconds.
pub(crate) fn time_text(us: i64) -> String {
    let at = jiff::Timestamp::from_microsecond(us).and_then(|at| at.round(jiff::Unit::Second));
    at.map_or_else(|_| us.to_string(), |at| at.to_string())
}

/// Which crawl it is, and whether it runs.
pub(crate) fn headline(detail: &Detail, is_crawled: bool, now: RealTime) -> String {
    let Some(run) = &detail.last_run else {
        return "no crawl was run into this file yet\n".to_owned();
    };
    let since =
        |us: i64| Duration::from_micros(now.micros().saturating_sub(us).max(0).unsigned_abs());
    let state = match (is_crawled, run.ended_us, &run.end_reason) {
        (true, _, _) => format!("crawling for {}", clock_text(since(run.started_us))),
        (false, Some(ended_us), Some(reason)) => {
            format!("ended {} ago ({reason})", clock_text(since(ended_us)))
        }
        _ => "broke off; the same command goes on".to_owned(),
    };
    let mut text = format!(
        "{}, run {}: {state}\n",
        asked(&run.network, &run.host),
        run.number
    );
    if !detail.paused.is_empty() {
        let paused: Vec<_> = detail
            .paused
            .iter()
            .map(|robot| robot.as_deref().unwrap_or("all robots"))
            .collect();
        let _ = writeln!(text, "paused: {}", paused.join(", "));
    }
    text
}

pub(crate) fn run_json(run: &RunDetail) -> Value {
    json!({
        "number": run.number,
        "network": run.network,
        "host": run.host,
        "definition": run.definition,
        "clock": run.clock,
        "settings": serde_json::from_str::<Value>(&run.settings).unwrap_or_default(),
        "started_us": run.started_us,
        "ended_us": run.ended_us,
        "end": run.end_reason,
    })
}

/// One budget of the ledger.
pub(crate) fn budget(usage: &BudgetUsage, now: LimitTime) -> String {
    let until = |then: LimitTime| {
        let wait_us = then.micros().saturating_sub(now.micros()).max(0);
        clock_text(Duration::from_micros(wait_us.unsigned_abs()))
    };
    let mut text = format!(
        "budget {}: {} of {} used",
        usage.budget.0, usage.used, usage.limit
    );
    if usage.foreign > 0 {
        let _ = write!(text, " ({} by others)", usage.foreign);
    }
    let left = usage.limit.saturating_sub(usage.used);
    let _ = write!(text, ", {left} left");
    if let Some(resets) = usage.resets {
        let _ = write!(text, ", resets in {}", until(resets));
    }
    if let Some(blocked) = usage.blocked_until {
        let _ = write!(text, "; shut by the server for {}", until(blocked));
    }
    text.push('\n');
    text
}

pub(crate) fn budget_json(usage: &BudgetUsage) -> Value {
    json!({
        "budget": usage.budget.0,
        "used": usage.used,
        "left": usage.limit.saturating_sub(usage.used),
        "by_others": usage.foreign,
        "limit": usage.limit,
        "resets_us": usage.resets.map(LimitTime::micros),
        "shut_until_us": usage.blocked_until.map(LimitTime::micros),
    })
}

/// The shares of time that the latest calls spent in each stage.
pub(crate) fn stages(recent: &Recent) -> String {
    if recent.calls == 0 {
        return String::new();
    }
    let seconds = (recent.span_us as f64 / 1e6).max(1e-6);
    let shares: Vec<String> = shares(recent)
        .iter()
        .map(|(stage, share)| format!("{stage} {:.1} %", share * 100.0))
        .collect();
    format!(
        "latest {} calls: {:.1} calls/s, {}/s; time: {}\n\
         each call: {:.3} ms to choose it, {:.3} ms to find what follows from it; 99 of 100 within \
         {:.3} and {:.3} ms\n",
        recent.calls,
        recent.calls as f64 / seconds,
        bytes((recent.bytes as f64 / seconds) as u64),
        shares.join(", "),
        mean_us(recent.ranking_us, recent.calls) / 1e3,
        mean_us(recent.seeding_us, recent.calls) / 1e3,
        recent.ranking_us_p99 as f64 / 1e3,
        recent.seeding_us_p99 as f64 / 1e3,
    )
}

fn mean_us(total_us: u64, calls: u64) -> f64 {
    total_us as f64 / calls.max(1) as f64
}

fn shares(recent: &Recent) -> [(&'static str, f64); 6] {
    let stages = [
        ("choosing", recent.ranking_us),
        ("waiting", recent.waiting_us),
        ("network", recent.network_us),
        ("reading", recent.reading_us),
        ("seeding", recent.seeding_us),
        ("storing", recent.storing_us),
    ];
    let total: u64 = stages.iter().map(|(_, us)| us).sum();
    stages.map(|(stage, us)| (stage, us as f64 / total.max(1) as f64))
}

pub(crate) fn recent_json(recent: &Recent) -> Value {
    let shares: BTreeMap<&str, f64> = shares(recent).into_iter().collect();
    json!({
        "calls": recent.calls,
        "seconds": recent.span_us as f64 / 1e6,
        "bytes": recent.bytes,
        "share_of_time": shares,
        "rank_us_mean": mean_us(recent.ranking_us, recent.calls),
        "rank_us_p99": recent.ranking_us_p99,
        "seed_us_mean": mean_us(recent.seeding_us, recent.calls),
        "seed_us_p99": recent.seeding_us_p99,
    })
}

/// Who is next, by robot.
pub(crate) fn next(visits: &[NextVisit]) -> String {
    let mut by_robot: BTreeMap<&str, Vec<&NextVisit>> = BTreeMap::new();
    for visit in visits {
        by_robot.entry(&visit.robot).or_default().push(visit);
    }
    let mut text = String::new();
    for (robot, visits) in by_robot {
        let names: Vec<String> = visits
            .iter()
            .map(|visit| {
                let again = if visit.is_revisit { " (again)" } else { "" };
                format!("{}{again}", visit.subject)
            })
            .collect();
        let _ = writeln!(text, "next {robot:<13} {}", names.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_left_no_end_broke_off() {
        let run = RunDetail {
            number: 2,
            network: "mastodon".into(),
            host: "sea.example".into(),
            started_us: 1_000_000,
            ..RunDetail::default()
        };
        let detail = Detail {
            last_run: Some(run),
            paused: vec![Some("likes".into())],
            ..Detail::default()
        };
        let now = RealTime(61_000_000);
        let broken = headline(&detail, false, now);
        assert_eq!(
            broken,
            "mastodon at sea.example, run 2: broke off; the same command goes on\npaused: likes\n"
        );
        assert!(headline(&detail, true, now).contains("crawling for 1 min 0 s"));
    }

    #[test]
    fn stages_are_shares_of_all_time() {
        let recent = Recent {
            calls: 10,
            span_us: 2_000_000,
            bytes: 5_000,
            waiting_us: 1_000,
            network_us: 3_000,
            ..Recent::default()
        };
        assert_eq!(
            stages(&recent),
            "latest 10 calls: 5.0 calls/s, 2.5 kB/s; time: choosing 0.0 %, waiting 25.0 %, \
             network 75.0 %, reading 0.0 %, seeding 0.0 %, storing 0.0 %\n\
             each call: 0.000 ms to choose it, 0.000 ms to find what follows from it; 99 of 100 \
             within 0.000 and 0.000 ms\n"
        );
    }
}
