//! A world whose people change their habits, and the trace of who wrote when.

use std::collections::{BTreeMap, BTreeSet};

use kittiwake_sim::SimConfig;
use serde_json::Value;

use crate::client::{AT_US, DAY_US, Sim, ids, now_us};
use crate::fediverse;
use crate::reading::assert_reactions_are_listed;
use crate::truth::assert_the_api_shows_the_truth;

const HABITS: [&str; 4] = ["moves", "silent", "viral", "wakes"];
/// 2026-09-21T00:00:00Z, the beginning of the day of [`AT_US`].
const MIDNIGHT_US: i64 = AT_US / DAY_US * DAY_US;

/// Who wrote when: the lines of a trace.
type Written = Vec<(String, i64)>;

/// A frozen world in which habits change some days after the start, or before.
async fn changing(users: u64, seed: u64, days: i64) -> Sim {
    let mut config = SimConfig::frozen(users, seed, AT_US, now_us());
    config.habits_day = Some(days);
    Sim::start(config).await
}

async fn trace(sim: &Sim, parameters: &str) -> Written {
    let reply = sim.get(&format!("/_sim/truth/trace?{parameters}")).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert_eq!(reply.headers["content-type"], "text/csv; charset=utf-8");
    let text = reply.unchunked();
    let lines = text.strip_prefix("user,unix_seconds\n").unwrap().lines();
    let parsed = lines.map(|line| {
        let (user, seconds) = line.split_once(',').unwrap();
        // As the reader of traces does it.
        let at_us = (seconds.parse::<f64>().unwrap() * 1e6).round() as i64;
        (user.to_owned(), at_us)
    });
    parsed.collect()
}

/// Who belongs to which group.
async fn groups(sim: &Sim) -> BTreeMap<String, BTreeSet<String>> {
    let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for user in sim.truth("users").await {
        let habit = user["habit"].as_str().unwrap_or("none");
        let id = user["id"].as_str().unwrap();
        groups
            .entry(habit.to_owned())
            .or_default()
            .insert(id.to_owned());
    }
    groups
}

fn authors(rows: &[Value]) -> Written {
    let mut written: Written = rows
        .iter()
        .map(|row| {
            let author = row["author"].as_str().unwrap().to_owned();
            (author, row["created_us"].as_i64().unwrap())
        })
        .collect();
    written.sort_unstable();
    written
}

#[tokio::test]
async fn the_truth_says_who_changes_and_when_only_if_it_is_asked_for() {
    let (without, with) = (Sim::frozen(400, 4).await, changing(400, 4, 14).await);
    let from_us = MIDNIGHT_US + 14 * DAY_US;
    let ready: Value = serde_json::from_str(&with.server.ready_line()).unwrap();
    assert_eq!(ready["habits_from_us"], from_us);
    assert!(!without.server.ready_line().contains("habit"));
    let mut seen = BTreeMap::<String, u32>::new();
    for mut user in with.truth("users").await {
        let row = user.as_object_mut().unwrap();
        let (habit, when) = (row["habit"].clone(), row["habit_from_us"].clone());
        match habit.as_str() {
            Some(habit) => {
                *seen.entry(habit.to_owned()).or_default() += 1;
                assert_eq!(when, from_us);
            }
            None => assert!(habit.is_null() && when.is_null()),
        }
    }
    assert!(seen.keys().eq(HABITS), "{seen:?}");
    assert!(seen.values().all(|&count| count >= 20), "{seen:?}");
    let rows = without.truth("users").await;
    assert!(rows.iter().all(|row| row.get("habit").is_none()));
}

#[tokio::test]
async fn before_the_day_the_world_is_the_same_as_without() {
    let (without, with) = (Sim::frozen(150, 4).await, changing(150, 4, 3).await);
    let last_us = MIDNIGHT_US + 3 * DAY_US - 1;
    for table in ["statuses", "comments", "likes", "reposters", "user_tags"] {
        let rows = |at_us: i64| {
            let at = format!("&at_us={at_us}");
            let (one, other) = (&without, &with);
            async move {
                (
                    one.truth_where(table, &at).await,
                    other.truth_where(table, &at).await,
                )
            }
        };
        let (one, other) = rows(last_us).await;
        assert!(!one.is_empty() && one == other, "{table}");
        let (one, other) = rows(last_us + 2 * DAY_US).await;
        assert_ne!(one, other, "{table}");
    }
}

#[tokio::test]
async fn lists_agree_with_the_truth_before_on_and_after_the_day() {
    for days in [1, 0, -9] {
        let sim = changing(150, 9, days).await;
        let told = assert_the_api_shows_the_truth(&sim).await;
        assert!(told > 1_000);
    }
}

#[tokio::test]
async fn reactions_after_a_change_are_listed_as_often_as_they_are_counted() {
    let sim = changing(300, 3, -9).await;
    let from_us = MIDNIGHT_US - 9 * DAY_US;
    let mut statuses = sim.truth("statuses").await;
    statuses.retain(|row| row["created_us"].as_i64() >= Some(from_us));
    assert_reactions_are_listed(&sim, &statuses).await;
}

#[tokio::test]
async fn a_timeline_over_a_change_is_the_same_in_pages_of_any_size() {
    let sim = changing(200, 5, -9).await;
    let mut walked = BTreeSet::new();
    for user in sim.truth("users").await {
        let habit = user["habit"].as_str().unwrap_or("none").to_owned();
        if user["suspended"] == true || !walked.insert(habit) {
            continue;
        }
        let path = format!(
            "/api/v1/accounts/{}/statuses",
            user["local_id"].as_str().unwrap()
        );
        let whole = ids(&sim.walk(&format!("{path}?limit=40")).await);
        assert_eq!(user["statuses"], whole.len());
        assert_eq!(ids(&sim.walk(&format!("{path}?limit=7")).await), whole);
    }
    assert_eq!(walked.len(), 5);
}

#[tokio::test]
async fn every_group_does_in_the_trace_what_it_is_named_for() {
    let sim = changing(500, 2, 0).await;
    let groups = groups(&sim).await;
    let (from_us, until_us) = (MIDNIGHT_US - 28 * DAY_US, MIDNIGHT_US + 28 * DAY_US);
    let written = trace(&sim, &format!("from_us={from_us}&until_us={until_us}")).await;
    // Posts a day and head: four weeks before, the day itself, and the four weeks from it on.
    let rates = |habit: &str| {
        let members = &groups[habit];
        let rate = |from_us: i64, until_us: i64| {
            let count = written
                .iter()
                .filter(|(user, at_us)| {
                    members.contains(user) && (from_us..until_us).contains(at_us)
                })
                .count();
            count as f64 / members.len() as f64 / ((until_us - from_us) / DAY_US) as f64
        };
        [
            rate(from_us, MIDNIGHT_US),
            rate(MIDNIGHT_US, MIDNIGHT_US + DAY_US),
            rate(MIDNIGHT_US + DAY_US, until_us),
        ]
    };
    let [before, on, after] = rates("wakes");
    assert!(
        before < 0.2 && on > 6.0 && after > 6.0,
        "{:?}",
        rates("wakes")
    );
    let [before, on, after] = rates("silent");
    assert!(
        before > 0.4 && on == 0.0 && after == 0.0,
        "{:?}",
        rates("silent")
    );
    let [before, on, after] = rates("viral");
    assert!(
        on > 25.0 && after < before * 1.5 + 0.2,
        "{:?}",
        rates("viral")
    );
    for unchanged in ["moves", "none"] {
        let [before, _, after] = rates(unchanged);
        assert!((0.6..1.6).contains(&(after / before)), "{before} {after}");
    }
    let moved = middle_hour(&written, &groups["moves"], MIDNIGHT_US..until_us)
        - middle_hour(&written, &groups["moves"], from_us..MIDNIGHT_US);
    assert!((8.0..12.0).contains(&moved.rem_euclid(24.0)), "{moved}");
}

/// The hour around which a group writes, on the circle of the day.
fn middle_hour(written: &Written, group: &BTreeSet<String>, span_us: std::ops::Range<i64>) -> f64 {
    let angles = written
        .iter()
        .filter(|(user, at_us)| group.contains(user) && span_us.contains(at_us))
        .map(|(_, at_us)| (at_us % DAY_US) as f64 / DAY_US as f64 * std::f64::consts::TAU);
    let (sine, cosine) = angles.fold((0.0, 0.0), |(sine, cosine), angle| {
        (sine + angle.sin(), cosine + angle.cos())
    });
    f64::atan2(sine, cosine) / std::f64::consts::TAU * 24.0
}

#[tokio::test]
async fn a_trace_holds_whatever_was_shown_at_any_time_and_nothing_else() {
    let sim = changing(150, 6, 2).await;
    let (from_us, until_us) = (AT_US - 10 * DAY_US, AT_US + 5 * DAY_US);
    let told = trace(&sim, &format!("from_us={from_us}&until_us={until_us}")).await;
    assert!(told.is_sorted_by_key(|(_, at_us)| *at_us));
    let told: BTreeSet<(String, i64)> = told.into_iter().collect();
    // Bans pass within weeks: who looks often enough sees nearly everything, some of it late.
    let mut seen = BTreeSet::new();
    let mut at_us = from_us;
    while at_us < until_us + 45 * DAY_US {
        let rows = sim
            .truth_where("statuses", &format!("&at_us={at_us}"))
            .await;
        let rows = authors(&rows);
        let within = rows
            .into_iter()
            .filter(|(_, at_us)| (from_us..until_us).contains(at_us));
        seen.extend(within);
        at_us += 3 * DAY_US;
    }
    let missing: Vec<_> = seen.difference(&told).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // Between two looks a post can come and go.
    let unseen = told.difference(&seen).count();
    assert!(
        seen.len() > 1_000 && unseen < seen.len() / 10,
        "{unseen} of {}",
        seen.len()
    );
    let deleted = {
        let rows = sim
            .truth_where("statuses", &format!("&at_us={until_us}"))
            .await;
        let left: BTreeSet<(String, i64)> = authors(&rows).into_iter().collect();
        told.difference(&left).count()
    };
    assert!(deleted > 5, "{deleted}");
}

#[tokio::test]
async fn a_trace_without_bounds_ends_now_and_parts_of_it_make_up_the_whole() {
    let sim = Sim::frozen(120, 3).await;
    let whole = trace(&sim, "").await;
    assert!(whole.iter().all(|(_, at_us)| *at_us < AT_US));
    assert!(whole.len() > 1_000);
    let middle_us = AT_US - 17 * DAY_US - 12_345;
    let mut parts = trace(&sim, &format!("until_us={middle_us}")).await;
    parts.extend(trace(&sim, &format!("from_us={middle_us}")).await);
    assert_eq!(parts, whole);
    assert!(trace(&sim, "from_us=5&until_us=5").await.is_empty());
    let ahead = format!("from_us={AT_US}&until_us={}", AT_US + 7 * DAY_US);
    assert!(trace(&sim, &ahead).await.len() > 20);
    let users = sim.truth("users").await;
    let known: BTreeSet<&str> = users
        .iter()
        .map(|row| row["id"].as_str().unwrap())
        .collect();
    assert!(whole.iter().all(|(user, _)| known.contains(user.as_str())));
}

#[tokio::test]
async fn a_trace_can_be_that_of_some_hosts() {
    let mut config = fediverse::config(200, 3);
    config.habits_day = Some(-5);
    let sim = Sim::start(config).await;
    let host = sim.server.hosts().remove(0);
    let all = trace(&sim, "").await;
    let some = trace(&sim, "hosts=i01.*").await;
    let here = format!("//{host}/");
    let expected: Written = all
        .into_iter()
        .filter(|(user, _)| user.contains(&here))
        .collect();
    assert!(!some.is_empty());
    assert_eq!(some, expected);
}

#[tokio::test]
async fn a_trace_of_nonsense_or_of_too_many_is_refused() {
    let sim = Sim::frozen(10, 1).await;
    for parameters in ["from_us=soon", "until_us=1.5"] {
        let reply = sim.get(&format!("/_sim/truth/trace?{parameters}")).await;
        assert_eq!(reply.status, 400, "{parameters}");
    }
    let last = trace(&sim, &format!("from_us={}&until_us={}", i64::MIN, i64::MIN)).await;
    assert!(last.is_empty());
    let huge = Sim::frozen(100_000_000, 7).await;
    assert_eq!(huge.get("/_sim/truth/trace").await.status, 400);
}
