//! Time that is moved on: `/_sim/advance`, and all that happens to a small world in a month.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kittiwake_model::clock::ClockSpec;
use kittiwake_sim::{Limits, SimConfig};
use serde_json::Value;

use crate::client::{AT_US, DAY_US, Sim, now_us};

const MONTH_S: i64 = 30 * 86_400;

#[tokio::test]
async fn a_frozen_world_moves_on_when_told_and_its_limits_do_not() {
    let mut config = SimConfig::frozen(100, 1, AT_US, now_us());
    config.limits = Limits::Strict;
    config.limit_speed = Some(1e-3);
    let sim = Sim::start(config).await;
    let before = sim.server.clock();
    sim.get("/api/v2/instance").await;
    let reply = sim.get("/_sim/advance?seconds=86400").await;
    assert_eq!(reply.status, 200);
    let told: ClockSpec = serde_json::from_value(reply.json()).unwrap();
    assert_eq!(told, sim.server.clock());
    assert_eq!(told.world.origin_us, before.world.origin_us + DAY_US);
    assert_eq!(
        (told.limit, told.real_origin_us),
        (before.limit, before.real_origin_us)
    );
    let next = sim.get("/api/v2/instance").await;
    assert_eq!(next.headers["x-ratelimit-remaining"], "298");
    let later = Sim::seen_after(100, 1, 1).await;
    assert_eq!(
        sim.truth("user_relations").await,
        later.truth("user_relations").await
    );
}

#[tokio::test]
async fn limits_move_on_when_told_and_the_world_does_not() {
    let mut config = SimConfig::frozen(100, 1, AT_US, now_us());
    config.limits = Limits::Strict;
    config.limit_speed = Some(1e-3);
    let sim = Sim::start(config).await;
    let before = sim.server.clock();
    let remaining = async || {
        let reply = sim.get("/api/v2/instance").await;
        reply.headers["x-ratelimit-remaining"].clone()
    };
    assert_eq!(remaining().await, "299");
    assert_eq!(remaining().await, "298");
    let reply = sim.get("/_sim/advance?limit_seconds=300").await;
    let told: ClockSpec = serde_json::from_value(reply.json()).unwrap();
    assert_eq!(told.limit.origin_us, before.limit.origin_us + 300_000_000);
    assert_eq!(told.world, before.world);
    assert_eq!(remaining().await, "299", "a window of its own");
}

#[tokio::test]
async fn spans_that_cannot_be_are_refused_and_change_nothing() {
    let sim = Sim::frozen(50, 1).await;
    let before = sim.server.clock();
    for query in [
        "",
        "?seconds=",
        "?seconds=-5",
        "?seconds=1.5",
        "?seconds=x",
        "?seconds=18446744073709551615",
        "?seconds=9223372036854775807",
        "?seconds=1000000000",
        "?limit_seconds=",
        "?limit_seconds=-5",
        "?limit_seconds=9223372036854775807",
        "?limit_seconds=1000000000000",
        "?seconds=1&limit_seconds=1",
    ] {
        let reply = sim.get(&format!("/_sim/advance{query}")).await;
        assert_eq!(reply.status, 400, "{query}");
        assert!(reply.json()["error"].is_string());
    }
    assert_eq!(sim.server.clock(), before);
    assert_eq!(sim.get("/_sim/advance?seconds=0").await.status, 200);
    assert_eq!(sim.server.clock(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn time_moved_on_by_many_at_once_is_the_sum_while_calls_go_on() {
    let sim = Arc::new(Sim::frozen(200, 1).await);
    let handle = sim.server.seed_handles(1).remove(0);
    let before = sim.server.clock();
    let callers: Vec<_> = (0..8)
        .map(|number| {
            let (sim, handle) = (Arc::clone(&sim), handle.clone());
            tokio::spawn(async move {
                for _ in 0..20 {
                    if number % 2 == 0 {
                        let reply = sim.get("/_sim/advance?seconds=60").await;
                        assert_eq!(reply.status, 200);
                    } else {
                        let target = format!("/api/v1/accounts/lookup?acct={handle}");
                        assert_eq!(sim.get(&target).await.status, 200);
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let moved_us = sim.server.clock().world.origin_us - before.world.origin_us;
    assert_eq!(moved_us, 4 * 20 * 60 * 1_000_000);
}

/// The whole truth, by what identifies a row.
struct Snapshot {
    users: BTreeMap<String, Value>,
    statuses: BTreeMap<String, Value>,
    pairs: BTreeMap<&'static str, BTreeSet<(String, String)>>,
}

impl Snapshot {
    async fn take(sim: &Sim) -> Self {
        let by_id = |rows: Vec<Value>| {
            rows.into_iter()
                .map(|row| (row["id"].as_str().unwrap().to_owned(), row))
                .collect()
        };
        let mut pairs = BTreeMap::new();
        for (table, one, other) in [
            ("user_relations", "source", "target"),
            ("likes", "user", "status"),
            ("reposters", "user", "status"),
            ("user_tags", "user", "tag"),
        ] {
            let rows = sim.truth(table).await;
            let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
            let set = rows
                .iter()
                .map(|row| (text(row, one), text(row, other)))
                .collect();
            pairs.insert(table, set);
        }
        Self {
            users: by_id(sim.truth("users").await),
            statuses: by_id(sim.truth("statuses").await),
            pairs,
        }
    }

    fn is_active(&self, user: &str) -> bool {
        self.users
            .get(user)
            .is_some_and(|row| row["suspended"] == false)
    }

    /// Whether everything a pair is about is still there.
    fn stands(&self, pair: &(String, String)) -> bool {
        let is_there = |id: &String| {
            !id.starts_with("https:") || self.is_active(id) || self.statuses.contains_key(id)
        };
        is_there(&pair.0) && is_there(&pair.1)
    }
}

/// What happened between two snapshots, and how often.
fn happenings(old: &Snapshot, new: &Snapshot) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut count = |what: &str, happened: bool| {
        *counts.entry(what.to_owned()).or_default() += usize::from(happened);
    };
    for (before, after) in old.users.values().zip(new.users.values()) {
        let was_banned = before["suspended"] == true;
        let is_banned = after["suspended"] == true;
        count("banned", !was_banned && is_banned);
        count("returned", was_banned && !is_banned);
        count("deleted", before["gone"] == false && after["gone"] == true);
        count("renamed", before["acct"] != after["acct"]);
        let is_changed =
            before["note"] != after["note"] || before["display_name"] != after["display_name"];
        count("profile changed", !was_banned && !is_banned && is_changed);
    }
    for (id, before) in &old.statuses {
        let author = before["author"].as_str().unwrap();
        let original = before["repost_of"].as_str();
        let after = new.statuses.get(id);
        let is_plain = original.is_none() && new.is_active(author);
        count("post deleted", is_plain && after.is_none());
        let is_edited = after.is_some_and(|after| {
            after["edited_us"] != before["edited_us"] && after["content"] != before["content"]
        });
        count("post edited", is_edited);
    }
    let is_new = |id: &&String| !old.statuses.contains_key(*id);
    count("post written", new.statuses.keys().any(|id| is_new(&id)));
    for (table, before) in &old.pairs {
        let after = &new.pairs[table];
        for pair in before.difference(after) {
            count(&format!("{table} ended"), new.stands(pair));
        }
        for pair in after.difference(before) {
            count(
                &format!("{table} began"),
                old.stands(pair) || *table == "likes",
            );
        }
    }
    counts
}

#[tokio::test]
async fn every_kind_of_change_happens_within_a_month() {
    for seed in [2, 5] {
        let sim = Sim::frozen(300, seed).await;
        let old = Snapshot::take(&sim).await;
        let reply = sim.get(&format!("/_sim/advance?seconds={MONTH_S}")).await;
        assert_eq!(reply.status, 200);
        let new = Snapshot::take(&sim).await;
        let counts = happenings(&old, &new);
        println!("seed {seed}: {counts:?}");
        for what in [
            "banned",
            "returned",
            "deleted",
            "renamed",
            "profile changed",
            "post deleted",
            "post edited",
            "post written",
            "user_relations ended",
            "user_relations began",
            "likes ended",
            "likes began",
            "reposters ended",
            "user_tags ended",
            "user_tags began",
        ] {
            assert!(counts.get(what).is_some_and(|&count| count > 0), "{what}");
        }
    }
}

#[tokio::test]
async fn what_ended_is_gone_from_the_api_too() {
    let sim = Sim::frozen(300, 2).await;
    let old = Snapshot::take(&sim).await;
    sim.get(&format!("/_sim/advance?seconds={MONTH_S}")).await;
    let new = Snapshot::take(&sim).await;
    let (_, ended) = old.pairs["likes"]
        .difference(&new.pairs["likes"])
        .find(|pair| new.stands(pair))
        .unwrap();
    let liked = |snapshot: &Snapshot| snapshot.statuses[ended]["likes"].as_u64().unwrap();
    let local_id = new.statuses[ended]["local_id"].as_str().unwrap();
    let path = format!("/api/v1/statuses/{local_id}");
    let status = sim.get(&path).await.json();
    assert_eq!(status["favourites_count"], liked(&new));
    let listed = sim.walk(&format!("{path}/favourited_by")).await;
    assert_eq!(listed.len() as u64, liked(&new));
    let admirers = |snapshot: &Snapshot| -> BTreeSet<String> {
        let pairs = snapshot.pairs["likes"].iter();
        pairs
            .filter(|(_, status)| status == ended)
            .map(|(user, _)| user.clone())
            .collect()
    };
    let shown: BTreeSet<String> = listed
        .iter()
        .map(|account| account["uri"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(shown, admirers(&new));
    assert_ne!(shown, admirers(&old));

    let (source, target) = old.pairs["user_relations"]
        .difference(&new.pairs["user_relations"])
        .find(|pair| new.stands(pair) && new.users[&pair.0]["hide_collections"] != true)
        .unwrap();
    let local_id = new.users[source]["local_id"].as_str().unwrap();
    let following = sim
        .walk(&format!("/api/v1/accounts/{local_id}/following"))
        .await;
    assert!(following.iter().all(|account| account["uri"] != **target));
}
