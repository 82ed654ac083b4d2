//! Limits of a file, as callers meet them.

use std::sync::Arc;
use std::time::Duration;

use kittiwake_sim::{DeclaredLimits, Faults, Limits, SimConfig};
use serde_json::{Value, json};

use crate::client::{AT_US, Sim, now_us};

const QUARTER_US: i64 = 900_000_000;

/// Limits whose clock stands still for all that a test can tell, at the beginning of a quarter of an
/// hour.
fn config(limits: &str) -> SimConfig {
    let aligned_us = now_us() / QUARTER_US * QUARTER_US;
    let mut config = SimConfig::frozen(200, 1, AT_US, aligned_us);
    config.limits = Limits::Declared(DeclaredLimits::parse(limits).unwrap());
    config.limit_speed = Some(1e-9);
    config
}

/// When the quarter of an hour ends in which a test runs.
fn end_s(sim: &Sim) -> i64 {
    (sim.server.clock().limit.origin_us + QUARTER_US) / 1_000_000
}

async fn ledger(sim: &Sim) -> Value {
    sim.get("/_sim/ledger?calls=0").await.json()
}

async fn violations(sim: &Sim) -> u64 {
    ledger(sim).await["violations_total"].as_u64().unwrap()
}

const LOOKUP: &str = r#"
[[bucket]]
name = "lookup"
scope = "token"
queries = ["lookup"]
kind = "aligned"
limit = 2
window_seconds = 900
headers = "x-rate-limit"
reset = "epoch_s"
refusal = { status = 403, retry_after = true, body = '{"errors":[{"code":88}]}' }

[[bucket]]
name = "all"
scope = "app"
kind = "points"
limit = 50
window_seconds = 86400
cost = { lookup = 5 }
headers = "ratelimit"
reset = "seconds_left"
"#;

#[tokio::test]
async fn a_full_bucket_refuses_in_its_own_words_and_the_others_are_not_charged() {
    let sim = Sim::start(config(LOOKUP)).await;
    let target = "/api/v1/accounts/lookup?acct=nobody";
    let end_s = end_s(&sim);
    for remaining in ["1", "0"] {
        let reply = sim.get_as(target, Some("x/ann:1")).await;
        assert_eq!(reply.status, 404);
        assert_eq!(reply.headers["x-rate-limit-limit"], "2");
        assert_eq!(reply.headers["x-rate-limit-remaining"], remaining);
        assert_eq!(reply.headers["x-rate-limit-reset"], end_s.to_string());
        assert!(!reply.headers.contains_key("x-ratelimit-limit"));
    }
    let refused = sim.get_as(target, Some("x/ann:1")).await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.json()["errors"][0]["code"], 88);
    assert_eq!(refused.headers["x-rate-limit-remaining"], "0");
    assert_eq!(refused.headers["ratelimit-remaining"], "40");
    assert_eq!(refused.headers["retry-after"], "900");
    // Another token of the same application has a bucket of its own, and one in common.
    let other = sim.get_as(target, Some("x/bob:1")).await;
    assert_eq!(other.headers["x-rate-limit-remaining"], "1");
    assert_eq!(other.headers["ratelimit-remaining"], "35");

    let ledger = ledger(&sim).await;
    assert_eq!(ledger["violations_total"], 1);
    assert_eq!(ledger["violations"][0]["bucket"], "lookup");
    let mut windows: Vec<String> = ledger["windows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|window| {
            assert!(window["start_us"].as_i64() < window["end_us"].as_i64());
            format!(
                "{} {} {} {} {}",
                window["bucket"].as_str().unwrap(),
                window["scope"].as_str().unwrap(),
                window["limit"],
                window["used"],
                window["refused"],
            )
        })
        .collect();
    windows.sort();
    assert_eq!(
        windows,
        [
            "all x 50 15 0",
            "lookup x/ann:1 2 2 1",
            "lookup x/bob:1 2 1 0"
        ]
    );
}

#[tokio::test]
async fn the_status_page_is_not_charged_and_is_there_only_with_declared_limits() {
    let sim = Sim::start(config(LOOKUP)).await;
    sim.get_as("/api/v1/accounts/lookup?acct=nobody", Some("ann"))
        .await;
    for _ in 0..3 {
        let status = sim.get_as("/api/v1/limits", Some("ann")).await;
        assert_eq!(status.status, 200);
        let resources = &status.json()["resources"];
        assert_eq!(resources["lookup"]["remaining"], 1);
        assert_eq!(resources["lookup"]["limit"], 2);
        assert_eq!(resources["lookup"]["reset"], end_s(&sim));
        assert_eq!(resources["all"]["remaining"], 45);
    }
    assert_eq!(
        sim.get("/api/v1/limits").await.json(),
        json!({ "resources": {} })
    );
    assert_eq!(sim.get_as("/api/v1/limits", Some("bad")).await.status, 401);
    let calls = sim.get("/_sim/ledger/calls").await.lines();
    assert_eq!(calls[1]["query"], "limits");
    assert_eq!(
        Sim::frozen(50, 1).await.get("/api/v1/limits").await.status,
        404
    );
    let mut strict = SimConfig::frozen(50, 1, AT_US, now_us());
    strict.limits = Limits::Strict;
    let reply = Sim::start(strict).await.get("/api/v1/limits").await;
    assert_eq!(reply.status, 404);
    assert_eq!(reply.headers["x-ratelimit-remaining"], "299");
}

#[tokio::test]
async fn a_refusal_may_look_like_an_answer() {
    let sim = Sim::start(config(
        r#"
        [[bucket]]
        name = "hourly"
        scope = "ip"
        kind = "percent"
        limit = 2
        window_seconds = 3600
        usage_header = "x-usage"
        refusal = { status = 200, body = '{"error_code":10023}' }
        "#,
    ))
    .await;
    let first = sim.get("/api/v2/instance").await;
    assert_eq!(first.headers["x-usage"], r#"{"call_count":50}"#);
    sim.get("/api/v2/instance").await;
    let refused = sim.get("/api/v2/instance").await;
    assert_eq!(
        (refused.status, refused.json()),
        (200, json!({ "error_code": 10023 }))
    );
    assert_eq!(violations(&sim).await, 1);
    let calls = sim.get("/_sim/ledger/calls").await.lines();
    assert_eq!(calls[2]["status"], 200);
}

#[tokio::test]
async fn what_an_answer_holds_is_charged_when_it_is_made() {
    let sim = Sim::start(config(
        r#"
        [[bucket]]
        name = "money"
        scope = "host"
        kind = "monthly"
        time_zone = "America/Los_Angeles"
        limit = 10000
        cost = { followers = 0 }
        queries = ["followers"]
        item_cost = 3
        headers = "x-money"
        reset = "iso8601"
        "#,
    ))
    .await;
    let account = sim.account_of_seed().await;
    let target = format!(
        "/api/v1/accounts/{}/followers?limit=4",
        account["id"].as_str().unwrap()
    );
    let reply = sim.get(&target).await;
    assert_eq!(reply.list().len(), 4);
    assert_eq!(reply.headers["x-money-remaining"], "9988");
    let reset = &reply.headers["x-money-reset"];
    assert!(reset.ends_with("-01T07:00:00.000000Z") || reset.ends_with("-01T08:00:00.000000Z"));
    let missing = sim.get("/api/v1/accounts/1/followers").await;
    assert_eq!(
        (missing.status, &*missing.headers["x-money-remaining"]),
        (404, "9988")
    );
    assert_eq!(ledger(&sim).await["windows"][0]["used"], 12);
}

const ONE_AT_ONCE: &str = r#"
[[bucket]]
name = "at-once"
scope = "ip"
kind = "concurrency"
limit = 1
headers = "x-at-once"
"#;

/// Waits for something that is bound to happen; a test that waits in vain hangs no longer than this.
async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_call_counts_until_its_answer_has_ended_or_its_caller_has_gone() {
    let mut config = config(ONE_AT_ONCE);
    config.latency_ms = 600_000;
    let sim = Arc::new(Sim::start(config).await);
    let call = || {
        let sim = Arc::clone(&sim);
        tokio::spawn(async move { sim.get("/api/v2/instance").await })
    };
    let total = async || ledger(&sim).await["total"].as_u64().unwrap();
    let first = call();
    until(async || total().await == 1).await;
    let second = call();
    until(async || total().await == 2).await;
    assert_eq!(violations(&sim).await, 1);
    first.abort();
    // Refused calls count nothing, so that one of these gets in when the first is seen to be gone.
    until(async || {
        let (before, refused) = (total().await, violations(&sim).await);
        let third = call();
        until(async || total().await > before).await;
        let is_in = violations(&sim).await == refused;
        third.abort();
        is_in
    })
    .await;
    second.abort();
    let window = &ledger(&sim).await["windows"][0];
    assert_eq!(
        (&window["used"], &window["greatest"]),
        (&2.into(), &1.into())
    );
}

#[tokio::test]
async fn calls_one_after_another_are_never_two_at_once_whatever_goes_wrong() {
    for faults in [Faults::None, Faults::Hostile] {
        let mut config = config(ONE_AT_ONCE);
        config.faults = faults;
        config.stall_ms = 5;
        let sim = Sim::start(config).await;
        let account = sim.account_id_of_seed().await;
        for call in 0..200 {
            sim.try_get(&format!(
                "/api/v1/accounts/{account}/followers?max_id={call}"
            ))
            .await;
        }
        assert_eq!(violations(&sim).await, 0, "{faults:?}");
        let status = sim.get("/api/v1/limits").await.json();
        assert_eq!(status["resources"]["at-once"]["remaining"], 1, "{faults:?}");
    }
}

#[tokio::test]
async fn the_servers_own_clock_may_be_ahead_of_the_published_one_or_behind() {
    for (skew_us, seconds, start_us) in [(7_500_000, 7, 0), (0, 0, 0), (-250_000, -1, -QUARTER_US)]
    {
        let mut config = config(LOOKUP);
        config.clock_skew_us = skew_us;
        let origin_us = config.real_now_us;
        let sim = Sim::start(config).await;
        let clock = sim.get("/_sim/clock").await.json();
        assert_eq!(clock["limit"]["origin_us"], origin_us);
        let reply = sim
            .get_as("/api/v1/accounts/lookup?acct=nobody", Some("ann"))
            .await;
        let date = seconds_of(&reply.headers["date"]);
        assert_eq!(date, origin_us / 1_000_000 + seconds);
        let ledger = ledger(&sim).await;
        let windows = ledger["windows"].as_array().unwrap();
        let window = windows
            .iter()
            .find(|row| row["bucket"] == "lookup")
            .unwrap();
        assert_eq!(window["start_us"], origin_us + start_us);
        let end_s = (origin_us + start_us + QUARTER_US) / 1_000_000;
        assert_eq!(reply.headers["x-rate-limit-reset"], end_s.to_string());
    }
    let mut config = config(LOOKUP);
    config.clock_skew_us = i64::MIN;
    assert!(kittiwake_sim::serve(config).await.is_err());
}

/// Seconds since 1970 of a date such as `Tue, 13 Oct 2026 19:04:23 GMT`.
fn seconds_of(date: &str) -> i64 {
    assert!(date.ends_with(" GMT"), "{date}");
    let parsed = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date);
    parsed.unwrap().as_second()
}
