//! Limits, headers and the ledger.

use std::sync::Arc;
use std::time::Duration;

use kittiwake_model::clock::ClockSpec;
use kittiwake_sim::{Limits, SimConfig};
use serde_json::Value;

use crate::client::{AT_US, Sim, now_us};

/// Limits whose clock hardly moves while a test runs, somewhere inside a window.
async fn strict() -> Sim {
    let aligned_us = now_us() / 900_000_000 * 900_000_000;
    let mut config = SimConfig::frozen(200, 1, AT_US, aligned_us);
    config.limits = Limits::Strict;
    config.limit_speed = Some(1e-3);
    Sim::start(config).await
}

async fn ledger(sim: &Sim) -> Value {
    sim.get("/_sim/ledger").await.json()
}

#[tokio::test]
async fn the_301st_call_is_refused_and_written_down() {
    let sim = strict().await;
    for call in 0..300_u64 {
        let reply = sim.get("/api/v2/instance").await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.headers["x-ratelimit-limit"], "300");
        assert_eq!(
            reply.headers["x-ratelimit-remaining"],
            (299 - call).to_string()
        );
    }
    let refused = sim.get("/api/v2/instance").await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.json()["error"], "Too many requests");
    assert_eq!(refused.headers["x-ratelimit-remaining"], "0");
    let reset = &refused.headers["x-ratelimit-reset"];
    assert!(
        reset.contains(":00.") && reset.ends_with('Z') && reset.len() == 27,
        "{reset}"
    );

    let ledger = ledger(&sim).await;
    assert_eq!(
        (&ledger["total"], &ledger["violations_total"]),
        (&301.into(), &1.into())
    );
    assert_eq!(ledger["violations"][0]["bucket"], "unauthenticated_api");
    assert_eq!(ledger["violations"][0]["query"], "instance");
    let window = &ledger["windows"][0];
    assert_eq!(
        (&window["used"], &window["refused"]),
        (&300.into(), &1.into())
    );
    assert_eq!(window["start_us"].as_i64().unwrap() % 300_000_000, 0);
    assert_eq!(ledger["calls"][0]["count"], 301);
}

#[tokio::test]
async fn tokens_pages_and_addresses_have_buckets_of_their_own() {
    let sim = strict().await;
    let account = sim.account_of_seed().await;
    let path = format!(
        "/api/v1/accounts/{}/followers",
        account["id"].as_str().unwrap()
    );
    let reply = sim
        .get_as(&format!("{path}?max_id=99&limit=1"), Some("ann:phone"))
        .await;
    assert_eq!(reply.headers["x-ratelimit-remaining"], "299");
    sim.get_as(&path, Some("ann:desk")).await;
    sim.get_as(&path, Some("bad:token")).await;
    let ledger = ledger(&sim).await;
    let windows: Vec<String> = ledger["windows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|window| {
            let text = |key: &str| window[key].as_str().unwrap();
            format!("{} {} {}", text("bucket"), text("scope"), window["used"])
        })
        .collect();
    let mut sorted = windows.clone();
    sorted.sort();
    assert_eq!(
        sorted,
        [
            "authenticated_api ann 2",
            "authenticated_paging ann 1",
            "token_api ann:desk 1",
            "token_api ann:phone 1",
            "unauthenticated_api 127.0.0.1 2",
        ]
    );
}

#[tokio::test]
async fn without_limits_nothing_is_refused_or_announced() {
    let sim = Sim::frozen(50, 1).await;
    for _ in 0..310 {
        let reply = sim.get("/api/v2/instance").await;
        assert_eq!(reply.status, 200);
        assert!(!reply.headers.contains_key("x-ratelimit-limit"));
    }
    assert_eq!(ledger(&sim).await["windows"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn the_ledger_lists_calls_in_order_with_everything_they_asked() {
    let sim = Sim::frozen(200, 1).await;
    let account = sim.account_of_seed().await;
    let id = account["id"].as_str().unwrap();
    let targets = [
        format!("/api/v1/accounts/{id}/followers?max_id=5&limit=2"),
        format!("/api/v1/accounts?id[]={id}&id%5B%5D=2"),
        "/api/v1/statuses/1".to_owned(),
    ];
    for target in &targets {
        sim.get_as(target, Some("ann")).await;
    }
    let calls = sim.get("/_sim/ledger/calls?after=0&limit=10").await.lines();
    let seen: Vec<&str> = calls
        .iter()
        .map(|call| call["target"].as_str().unwrap())
        .collect();
    assert_eq!(seen, targets);
    assert_eq!(
        (&calls[0]["seq"], &calls[0]["cursor"]),
        (&1.into(), &"max_id=5".into())
    );
    assert_eq!(calls[0]["credential"], "token:ann");
    assert_eq!(calls[1]["subject"], format!("{id},2"));
    assert_eq!(
        (&calls[2]["query"], &calls[2]["status"]),
        (&"status".into(), &404.into())
    );
    assert_eq!(sim.get("/_sim/ledger/calls?after=3").await.lines().len(), 0);
    assert_eq!(
        sim.get("/_sim/ledger?calls=0").await.json().get("calls"),
        None
    );
}

#[tokio::test]
async fn the_clock_is_published() {
    let sim = strict().await;
    let published: ClockSpec = serde_json::from_value(sim.get("/_sim/clock").await.json()).unwrap();
    assert_eq!(published, sim.server.clock());
    let ready: Value = serde_json::from_str(&sim.server.ready_line()).unwrap();
    assert_eq!(ready["listening"], sim.server.url());
    assert_eq!(ready["clock"]["world"]["rate"], 0.0);
    assert_eq!((&ready["users"], &ready["seed"]), (&200.into(), &1.into()));
}

#[tokio::test]
async fn short_windows_end_and_let_callers_in_again() {
    let mut config = SimConfig::frozen(50, 1, AT_US, now_us());
    config.limits = Limits::Strict;
    // A window of five minutes passes in a third of a second.
    config.limit_speed = Some(900.0);
    let sim = Sim::start(config).await;
    let mut statuses = Vec::new();
    for _ in 0..2_000 {
        statuses.push(sim.get("/api/v2/instance").await.status);
    }
    let ledger = ledger(&sim).await;
    let refused = statuses.iter().filter(|&&status| status == 429).count();
    assert_eq!(ledger["violations_total"], refused);
    let windows = ledger["windows"].as_array().unwrap();
    let used: u64 = windows
        .iter()
        .map(|window| window["used"].as_u64().unwrap())
        .sum();
    assert!(
        windows
            .iter()
            .all(|window| window["used"].as_u64().unwrap() <= 300)
    );
    assert_eq!(used as usize + refused, 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_arrive_together_are_counted_one_by_one() {
    let sim = Arc::new(strict().await);
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let sim = Arc::clone(&sim);
            tokio::spawn(async move {
                let mut passed = 0;
                for _ in 0..25 {
                    passed += u32::from(sim.get("/api/v2/instance").await.status == 200);
                }
                passed
            })
        })
        .collect();
    let mut passed = 0;
    for caller in callers {
        passed += caller.await.unwrap();
    }
    assert_eq!(passed, 300);
    let ledger = ledger(&sim).await;
    assert_eq!(
        (&ledger["total"], &ledger["violations_total"]),
        (&400.into(), &100.into())
    );
}

#[tokio::test]
async fn an_answer_is_held_back_for_the_latency_but_counted_at_once() {
    let mut config = SimConfig::frozen(50, 1, AT_US, now_us());
    config.latency_ms = 60_000;
    let sim = Sim::start(config).await;
    let waiting = tokio::time::timeout(Duration::from_millis(200), sim.get("/api/v2/instance"));
    assert!(waiting.await.is_err());
    let calls = sim.get("/_sim/ledger/calls").await.lines();
    assert_eq!((calls.len(), &calls[0]["status"]), (1, &0.into()));
}

#[tokio::test]
async fn settings_that_cannot_be_are_refused_and_a_server_stops_when_told() {
    let mut config = SimConfig::frozen(50, 1, AT_US, now_us());
    config.speed = -1.0;
    assert!(kittiwake_sim::serve(config.clone()).await.is_err());
    config.speed = 1.0;
    config.users = 0;
    assert!(kittiwake_sim::serve(config.clone()).await.is_err());
    config.users = 5;
    let server = kittiwake_sim::serve(config.clone()).await.unwrap();
    config.listen = server.address();
    let taken = kittiwake_sim::serve(config.clone()).await.unwrap_err();
    assert!(taken.to_string().starts_with("cannot listen on 127.0.0.1:"));
    server.shutdown().await;
    kittiwake_sim::serve(config).await.unwrap().shutdown().await;
}
