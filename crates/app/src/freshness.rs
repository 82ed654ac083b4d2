//! How fresh a crawl's data is, as text for people and as JSON for machines. Pure.

use crate::standing::time_text;
use kittiwake_engine::{Freshness, RobotFreshness, Why};
use kittiwake_model::WorldTime;
use serde_json::{Value, json};
use std::fmt::Write;

/// A time span as people say it.
fn hours(hours: Option<f64>) -> String {
    match hours {
        None => "-".to_owned(),
        Some(hours) if hours < 1.0 => format!("{:.0} min", hours * 60.0),
        Some(hours) if hours < 72.0 => format!("{hours:.1} h"),
        Some(hours) => format!("{:.1} d", hours / 24.0),
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

fn number(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// A row for everybody and one for each class, for every robot whose subjects are ranked.
pub(crate) fn table(robots: &[RobotFreshness]) -> String {
    let mut text = String::new();
    for robot in robots {
        let _ = writeln!(
            text,
            "freshness of {} ({})\n{:<12} {:>9} {:>10} {:>9} {:>10} {:>9} {:>9} {:>11}",
            robot.lane,
            robot.policy,
            "",
            "subjects",
            "finds/day",
            "waiting",
            "delay",
            "last seen",
            "found in",
            "within 1 h"
        );
        let classes = robot.classes.iter().map(|(name, it)| (&**name, it));
        for (name, fresh) in [("all", &robot.everybody)].into_iter().chain(classes) {
            let _ = writeln!(
                text,
                "  {name:<10} {:>9} {:>10} {:>9} {:>10} {:>9} {:>9} {:>11}",
                fresh.people,
                number(fresh.posts_per_day),
                number(fresh.waiting),
                hours(fresh.expected_delay_hours()),
                hours(fresh.age_hours()),
                hours(fresh.delay_hours()),
                percent(fresh.share_within_hour()),
            );
        }
    }
    text
}

fn fresh_json(fresh: &Freshness) -> Value {
    json!({
        "people": fresh.people,
        "visited": fresh.visited,
        "posts_per_day": fresh.posts_per_day,
        "posts_waiting": fresh.waiting,
        "expected_delay_hours": fresh.expected_delay_hours(),
        "age_hours": fresh.age_hours(),
        "found": fresh.found,
        "delay_hours": fresh.delay_hours(),
        "share_within_hour": fresh.share_within_hour(),
    })
}

pub(crate) fn json(robot: &RobotFreshness) -> Value {
    let classes = robot.classes.iter();
    let classes: serde_json::Map<String, Value> = classes
        .map(|(name, fresh)| (name.clone(), fresh_json(fresh)))
        .collect();
    json!({
        "lane": robot.lane,
        "policy": robot.policy,
        "all": fresh_json(&robot.everybody),
        "classes": classes,
    })
}

/// How long from one time to another, either way.
fn apart(from: WorldTime, to: WorldTime) -> String {
    let span_hours = to.since_us(from) as f64 / 3.6e9;
    if span_hours >= 0.0 {
        format!("in {}", hours(Some(span_hours)))
    } else {
        format!("{} ago", hours(Some(-span_hours)))
    }
}

pub(crate) fn why_text(called: &str, whys: &[Why], now: WorldTime) -> String {
    let mut text = format!("{called}, as of {}\n", time_text(now.micros()));
    for why in whys {
        let policy = why.policy.unwrap_or("in turn");
        let _ = writeln!(text, "{} ({policy})", why.lane);
        match why.visited {
            Some(visited) => {
                let ago = apart(now, visited);
                let at = time_text(visited.micros());
                let _ = writeln!(text, "  last visited  {at}, {ago}; {} visits", why.visits);
            }
            None => text.push_str("  last visited  never\n"),
        }
        if let (Some(waiting), Some(rate)) = (why.waiting, why.posts_per_day) {
            let what = if policy == "changes" {
                "changes"
            } else {
                "posts"
            };
            let _ = writeln!(
                text,
                "  expected      {waiting:.2} {what} wait; {rate:.2} a day"
            );
        }
        if let (Some(worth), Some(price)) = (why.worth, why.price) {
            let verdict = if worth >= price {
                "enough to be looked for"
            } else {
                "less than calls bring elsewhere"
            };
            let _ = writeln!(
                text,
                "  worth         {worth:.4} post-days now, the price is {price:.4}: {verdict}"
            );
        }
        let due = why.worth_at.unwrap_or(why.due);
        let when = if due <= now {
            "now".to_owned()
        } else {
            apart(now, due)
        };
        let _ = writeln!(text, "  due           {when}, {}", time_text(due.micros()));
    }
    text
}

pub(crate) fn why_json(called: &str, whys: &[Why], now: WorldTime) -> Value {
    let tasks: Vec<Value> = whys
        .iter()
        .map(|why| {
            json!({
                "key": why.subject.0,
                "lane": why.lane,
                "policy": why.policy,
                "visits": why.visits,
                "visited_us": why.visited.map(WorldTime::micros),
                "due_us": why.due.micros(),
                "posts_per_day": why.posts_per_day,
                "posts_waiting": why.waiting,
                "worth": why.worth,
                "price": why.price,
                "worth_at_us": why.worth_at.map(WorldTime::micros),
            })
        })
        .collect();
    json!({ "user": called, "now_us": now.micros(), "tasks": tasks })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kittiwake_model::Key;

    #[test]
    fn spans_are_told_in_units_that_fit() {
        let told = [0.5, 3.21, 100.0].map(|span| hours(Some(span)));
        assert_eq!(told, ["30 min", "3.2 h", "4.2 d"]);
        assert_eq!(hours(None), "-");
    }

    #[test]
    fn a_decision_is_explained() {
        let hour = |hours: i64| WorldTime(hours * 3_600_000_000);
        let why = Why {
            subject: Key(7),
            lane: "mastodon/sea.example/statuses".into(),
            policy: Some("adaptive"),
            visits: 4,
            visited: Some(hour(10)),
            due: hour(12),
            posts_per_day: Some(6.0),
            waiting: Some(0.75),
            worth: Some(0.05),
            price: Some(0.1),
            worth_at: Some(hour(15)),
        };
        let text = why_text("ada", &[why], hour(13));
        assert_eq!(
            text,
            "ada, as of 1970-01-01T13:00:00Z\n\
             mastodon/sea.example/statuses (adaptive)\n\
             \x20 last visited  1970-01-01T10:00:00Z, 3.0 h ago; 4 visits\n\
             \x20 expected      0.75 posts wait; 6.00 a day\n\
             \x20 worth         0.0500 post-days now, the price is 0.1000: less than calls bring elsewhere\n\
             \x20 due           in 2.0 h, 1970-01-01T15:00:00Z\n"
        );
    }
}
