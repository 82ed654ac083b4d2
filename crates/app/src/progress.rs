//! What is shown while a crawl runs, as lines of text. Pure: the terminal is in `console.rs`.

use kittiwake_engine::{Clock, Snapshot};
use kittiwake_model::{MONEY_SCALE, Unit};
use std::fmt::Write;
use std::time::Duration;

/// Before this time a rate is an accident.
const RATE_AFTER: Duration = Duration::from_secs(3);

/// One line that says it all, for logs.
pub(crate) fn line(shown: &Snapshot, clock: &Clock, elapsed: Duration) -> String {
    let mut text = summary(shown, elapsed);
    let visits: Vec<String> = shown
        .robots
        .iter()
        .filter(|(_, robot)| robot.calls > 0)
        .map(|(name, robot)| format!("{name} {}", robot.visits))
        .collect();
    if !visits.is_empty() {
        let _ = write!(text, " · visited: {}", visits.join(", "));
    }
    for note in notes(shown, clock) {
        let _ = write!(text, " · {note}");
    }
    text
}

/// A line for every robot that has something to do, between a summary and notes, for terminals.
pub(crate) fn block(shown: &Snapshot, clock: &Clock, elapsed: Duration) -> Vec<String> {
    let mut lines = vec![summary(shown, elapsed)];
    let robots = shown.robots.iter();
    for (name, robot) in robots.filter(|(_, robot)| robot.calls > 0 || robot.waiting > 0) {
        let state = if shown.paused.contains(name) {
            "  paused".to_owned()
        } else {
            left(shown.until_idle, robot.waiting, robot.visits, elapsed)
                .map_or_else(String::new, |time| format!("  {time} left"))
        };
        lines.push(format!(
            "  {name:<10} {:>9} calls {:>6.1}/s {:>10} rows {:>9} visited {:>9} waiting{state}",
            robot.calls,
            per_second(robot.calls, elapsed),
            robot.rows_new,
            robot.visits,
            robot.waiting,
        ));
    }
    lines.extend(
        notes(shown, clock)
            .into_iter()
            .map(|note| format!("  {note}")),
    );
    lines
}

fn summary(shown: &Snapshot, elapsed: Duration) -> String {
    let visits = shown.robots.values().map(|robot| robot.visits).sum();
    let eta = left(shown.until_idle, shown.waiting(), visits, elapsed)
        .map_or_else(String::new, |time| format!(" · at least {time} left"));
    format!(
        "{} · {} calls ({:.1}/s) · {} rows new, {} changed · {} · {} waiting, {} in flight{eta}",
        clock_text(elapsed),
        shown.calls,
        per_second(shown.calls, elapsed),
        shown.rows_new,
        shown.rows_changed,
        bytes(shown.bytes),
        shown.waiting(),
        shown.in_flight,
    )
}

/// Units as people read them: plain numbers, or money.
pub(crate) fn amount(units: u64, unit: &Unit) -> String {
    match unit {
        Unit::Calls | Unit::Points => units.to_string(),
        Unit::Money(currency) => format!("{:.2} {currency}", units as f64 / MONEY_SCALE as f64),
    }
}

/// Quotas, pauses and waits.
fn notes(shown: &Snapshot, clock: &Clock) -> Vec<String> {
    let mut notes = Vec::new();
    if !shown.budgets.is_empty() {
        let budgets: Vec<String> = shown
            .budgets
            .iter()
            .map(|budget| {
                let left = amount(budget.left, &budget.unit);
                let of = amount(budget.limit, &budget.unit);
                let resets = budget.resets.map_or_else(String::new, |resets| {
                    format!(" (resets in {})", clock_text(clock.until_limit(resets)))
                });
                format!("{} {left} of {of}{resets}", budget.budget)
            })
            .collect();
        notes.push(format!("quota left: {}", budgets.join(", ")));
    }
    if !shown.paused.is_empty() {
        notes.push(format!("paused: {}", shown.paused.join(", ")));
    }
    if let Some((until, budget)) = &shown.paused_until {
        let wait = clock_text(clock.until_limit(*until));
        notes.push(format!("waiting {wait} for {budget}"));
    }
    notes
}

/// How long it takes at this pace, where an end is in sight.
fn left(until_idle: bool, waiting: u64, visits: u64, elapsed: Duration) -> Option<String> {
    if !until_idle || waiting == 0 || visits == 0 || elapsed < RATE_AFTER {
        return None;
    }
    let seconds = elapsed.as_secs_f64() * waiting as f64 / visits as f64;
    Some(clock_text(Duration::try_from_secs_f64(seconds).ok()?))
}

fn per_second(count: u64, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64().max(0.001)
}

/// `42 s`, `3 min 20 s`, `5 h 10 min`, `2 d 4 h`.
pub(crate) fn clock_text(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// `812 B`, `9.1 kB`, `3.2 MB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1_000.0 && unit + 1 < UNITS.len() {
        value /= 1_000.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{count} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kittiwake_engine::{BudgetProgress, RobotProgress};
    use kittiwake_model::{BudgetId, ClockSpec, LimitTime, RealTime};
    use std::collections::BTreeMap;

    fn shown() -> Snapshot {
        let robot = RobotProgress {
            calls: 50,
            rows_new: 900,
            rows_changed: 3,
            visits: 10,
            waiting: 30,
        };
        Snapshot {
            calls: 50,
            rows_new: 900,
            bytes: 4_200_000,
            robots: BTreeMap::from([("statuses".into(), robot)]),
            budgets: vec![BudgetProgress {
                budget: "ip".into(),
                id: BudgetId("mastodon/ip@example.org:443#this-address".into()),
                unit: Unit::Calls,
                left: 250,
                limit: 300,
                resets: Some(LimitTime(200_000_000)),
                shut_until: None,
            }],
            paused: vec!["likes".into()],
            until_idle: true,
            ..Snapshot::default()
        }
    }

    #[test]
    fn progress_tells_rates_quota_and_what_is_left() {
        let clock = Clock::new(ClockSpec::real(), || RealTime(100_000_000));
        let text = line(&shown(), &clock, Duration::from_secs(10));
        assert_eq!(
            text,
            "10 s · 50 calls (5.0/s) · 900 rows new, 0 changed · 4.2 MB · 30 waiting, 0 in flight \
             · at least 30 s left · visited: statuses 10 · quota left: ip 250 of 300 (resets in \
             1 min 40 s) · paused: likes"
        );
        let lines = block(&shown(), &clock, Duration::from_secs(10));
        assert_eq!(lines.len(), 4);
        assert!(
            lines[1].contains("statuses") && lines[1].ends_with("30 s left"),
            "{}",
            lines[1]
        );
    }

    #[test]
    fn times_and_sizes_are_short() {
        let times =
            [5, 200, 18_600, 187_200].map(|seconds| clock_text(Duration::from_secs(seconds)));
        assert_eq!(times, ["5 s", "3 min 20 s", "5 h 10 min", "2 d 4 h"]);
        assert_eq!(
            [812, 9_100, 3_200_000].map(bytes),
            ["812 B", "9.1 kB", "3.2 MB"]
        );
    }
}
