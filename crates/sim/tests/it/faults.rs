//! Faults: which of them happen, what the log says, and that a patient caller gets through.

use std::collections::{BTreeMap, BTreeSet};

use kittiwake_sim::{Faults, Limits, SimConfig};
use serde_json::Value;

use crate::client::{AT_US, Reply, Sim, now_us};

async fn start(users: u64, seed: u64, faults: Faults) -> Sim {
    let mut config = SimConfig::frozen(users, seed, AT_US, now_us());
    config.faults = faults;
    config.stall_ms = 2;
    Sim::start(config).await
}

async fn faults(sim: &Sim) -> Vec<Value> {
    let rows = sim.get("/_sim/faults?limit=100000").await.lines();
    assert!((0..).zip(&rows).all(|(seq, row)| row["seq"] == seq));
    rows
}

/// Whether an answer is one that can be used: a list of objects that have an id.
fn usable(reply: &Reply) -> Option<Vec<Value>> {
    let is_json = reply.headers.get("content-type")?.contains("json");
    let length = reply.headers.get("content-length")?.parse::<usize>().ok()?;
    let is_whole = length == reply.text.len() && !reply.headers.contains_key("content-encoding");
    if reply.status != 200 || !is_json || !is_whole {
        return None;
    }
    let items: Vec<Value> = serde_json::from_str(&reply.text).ok()?;
    items
        .iter()
        .all(|item| item["id"].is_string())
        .then_some(items)
}

/// What a walk brought.
#[derive(Debug)]
enum Walk {
    Done(Vec<Value>),
    /// The account was deleted before the end.
    Gone,
}

/// Walks a list as a patient crawler does: asks again after a fault, three times at most, and does
/// not go in circles.
async fn walk(sim: &Sim, first: &str) -> Walk {
    let mut items = Vec::new();
    let mut target = first.to_owned();
    let mut circles = 0;
    loop {
        let mut page = None;
        for _ in 0..3 {
            let Some(reply) = sim.try_get(&target).await else {
                continue;
            };
            if reply.status == 410 {
                return Walk::Gone;
            }
            if let Some(found) = usable(&reply) {
                page = Some((found, reply.link("next")));
                break;
            }
        }
        let (found, next) = page.expect("a patient caller gets through");
        items.extend(found);
        match next {
            Some(next) if next == target && circles < 5 => circles += 1,
            Some(next) => target = next,
            None => return Walk::Done(items),
        }
    }
}

/// Everything the walks of all users showed, as in the ground truth.
#[derive(Debug, Default)]
struct Collected {
    relations: BTreeSet<(String, String)>,
    statuses: BTreeSet<String>,
    gone: BTreeSet<String>,
}

async fn collect(sim: &Sim, users: &[Value]) -> Collected {
    let mut collected = Collected::default();
    for user in users.iter().filter(|user| user["gone"] == false) {
        let id = user["id"].as_str().unwrap();
        let path = format!("/api/v1/accounts/{}", user["local_id"].as_str().unwrap());
        for list in ["following?limit=5", "followers?limit=5", "statuses?limit=8"] {
            let items = match walk(sim, &format!("{path}/{list}")).await {
                Walk::Done(items) => items,
                Walk::Gone => {
                    collected.gone.insert(id.to_owned());
                    continue;
                }
            };
            for uri in items.iter().map(|item| item["uri"].as_str().unwrap()) {
                match list.split_once('?').unwrap().0 {
                    "following" => collected.relations.insert((id.to_owned(), uri.to_owned())),
                    "followers" => collected.relations.insert((uri.to_owned(), id.to_owned())),
                    _ => collected.statuses.insert(uri.to_owned()),
                };
            }
        }
    }
    collected
}

async fn truth(sim: &Sim, table: &str, parameters: &str) -> Vec<Value> {
    sim.get(&format!("/_sim/truth/{table}?limit=10000{parameters}"))
        .await
        .lines()
}

fn relations(rows: &[Value]) -> BTreeSet<(String, String)> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    rows.iter()
        .filter(|row| row["in_following"] == true || row["in_followers"] == true)
        .map(|row| (text(row, "source"), text(row, "target")))
        .collect()
}

fn ids(rows: &[Value]) -> BTreeSet<String> {
    rows.iter()
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_patient_caller_gets_everything_out_of_a_hostile_network() {
    let sim = start(60, 3, Faults::Hostile).await;
    let users = truth(&sim, "users", "").await;
    let collected = collect(&sim, &users).await;
    let after = relations(&truth(&sim, "user_relations", "").await);
    let before = relations(&truth(&sim, "user_relations", "&before_faults=1").await);
    assert!(
        after.is_subset(&collected.relations),
        "relations were missed"
    );
    assert!(
        collected.relations.is_subset(&before),
        "relations were invented"
    );
    let after = ids(&truth(&sim, "statuses", "").await);
    let before = ids(&truth(&sim, "statuses", "&before_faults=1").await);
    assert!(after.is_subset(&collected.statuses), "posts were missed");
    assert!(collected.statuses.is_subset(&before), "posts were invented");
    assert!(after.len() < before.len());

    let summary = sim.get("/_sim/faults/summary").await.json();
    println!("{summary}");
    let kinds = summary["by_kind"].as_object().unwrap();
    assert_eq!(kinds.len(), 27);
    for (kind, count) in kinds {
        assert!(count.as_u64().unwrap() > 0, "{kind} never happened");
    }
}

#[tokio::test]
async fn every_kind_of_fault_happens_within_a_few_hundred_calls() {
    for seed in [1, 2] {
        let sim = start(2_000, seed, Faults::Hostile).await;
        for handle in sim.server.seed_handles(100) {
            let lookup = format!("/api/v1/accounts/lookup?acct={handle}");
            let account = ask(&sim, &lookup).await.json();
            let path = format!("/api/v1/accounts/{}", account["id"].as_str().unwrap());
            for list in [
                "following?limit=80",
                "followers?limit=80",
                "statuses?limit=40",
            ] {
                walk(&sim, &format!("{path}/{list}")).await;
            }
            let total = sim.get("/_sim/ledger?calls=0").await.json()["total"].clone();
            let summary = sim.get("/_sim/faults/summary").await.json();
            let kinds = summary["by_kind"].as_object().unwrap();
            let missing: Vec<&String> = kinds
                .iter()
                .filter(|(_, count)| **count == 0)
                .map(|(kind, _)| kind)
                .collect();
            if missing.is_empty() {
                println!("seed {seed}: all kinds within {total} calls");
                break;
            }
            assert!(total.as_u64().unwrap() < 700, "{missing:?} after {total}");
        }
    }
}

#[tokio::test]
async fn the_log_says_which_call_met_what_and_the_ledger_agrees() {
    let sim = start(60, 3, Faults::Hostile).await;
    let users = truth(&sim, "users", "").await;
    collect(&sim, &users[..20]).await;
    let rows = faults(&sim).await;
    let calls = sim.get("/_sim/ledger/calls?limit=100000").await.lines();
    let hit = calls.iter().filter(|call| !call["fault"].is_null()).count();
    assert_eq!(hit, rows.len());
    let mut by_kind: BTreeMap<&str, u64> = BTreeMap::new();
    for row in &rows {
        let call = &calls[row["call"].as_u64().unwrap() as usize];
        for key in ["target", "subject"] {
            assert_eq!(call[key], row[key]);
        }
        assert_eq!(call["fault"], row["kind"]);
        assert_eq!(row["withdrew"].is_null(), row["class"] != "world");
        let status = call["status"].as_u64().unwrap();
        match row["kind"].as_str().unwrap() {
            "reset_before_answer" => assert_eq!(status, 0),
            "bare_too_many_requests" => assert_eq!(status, 429),
            "bad_gateway" => assert_eq!(status, 502),
            "duplicate_items" | "shuffled_items" => assert_eq!(status, 200),
            _ => {}
        }
        *by_kind.entry(row["kind"].as_str().unwrap()).or_default() += 1;
    }
    let summary = sim.get("/_sim/faults/summary").await.json();
    assert_eq!(summary["total"], rows.len());
    assert_eq!(summary["dropped"], 0);
    for (kind, count) in by_kind {
        assert_eq!(summary["by_kind"][kind], count);
    }
    let page = sim.get("/_sim/faults?after=4&limit=3").await.lines();
    assert_eq!(page, rows[5..8]);
    let last = format!("/_sim/faults?after={}", rows.len() - 1);
    assert!(sim.get(&last).await.lines().is_empty());
}

#[tokio::test]
async fn the_same_target_meets_the_same_faults_whatever_the_order_of_calls() {
    let (one, other) = (
        start(100, 8, Faults::Hostile).await,
        start(100, 8, Faults::Hostile).await,
    );
    let targets: Vec<String> = (0..80)
        .map(|number| format!("/api/v2/instance?n={number}"))
        .collect();
    for target in &targets {
        for _ in 0..4 {
            one.try_get(target).await;
        }
    }
    for _ in 0..4 {
        for target in targets.iter().rev() {
            other.try_get(target).await;
        }
    }
    let by_target = |rows: Vec<Value>| -> BTreeMap<String, Vec<String>> {
        let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in rows {
            let target = row["target"].as_str().unwrap().to_owned();
            let kind = row["kind"].as_str().unwrap().to_owned();
            kinds.entry(target).or_default().push(kind);
        }
        kinds
    };
    let met = by_target(faults(&one).await);
    assert!(met.len() > 40);
    assert_eq!(met, by_target(faults(&other).await));
}

#[tokio::test]
async fn mild_faults_are_rare_and_pass() {
    let sim = start(200, 5, Faults::Mild).await;
    for number in 0..600 {
        sim.try_get(&format!("/api/v2/instance?n={number}")).await;
    }
    let rows = faults(&sim).await;
    assert!((5..50).contains(&rows.len()), "{}", rows.len());
    for row in rows {
        assert_eq!(row["class"], "transport");
        let target = row["target"].as_str().unwrap();
        let mut tries = 0;
        while sim
            .try_get(target)
            .await
            .is_none_or(|reply| reply.status != 200)
        {
            tries += 1;
            assert!(tries < 2, "{target}");
        }
    }
}

#[tokio::test]
async fn refusals_that_are_faults_are_no_violations() {
    let mut config = SimConfig::frozen(100, 5, AT_US, now_us() / 900_000_000 * 900_000_000);
    config.faults = Faults::Hostile;
    config.stall_ms = 0;
    config.limits = Limits::Strict;
    config.limit_speed = Some(1e-3);
    let sim = Sim::start(config).await;
    let mut refused = 0;
    for number in 0..300 {
        let reply = sim.try_get(&format!("/api/v2/instance?n={number}")).await;
        refused += u64::from(reply.is_some_and(|reply| reply.status == 429));
    }
    assert!(refused > 0);
    let ledger = sim.get("/_sim/ledger?calls=0").await.json();
    assert_eq!(ledger["violations_total"], 0);
    // Every call counted, those that met a fault too.
    assert_eq!(ledger["windows"][0]["used"], 300);
    let real = sim.get("/api/v2/instance?n=300").await;
    assert_eq!(real.status, 429);
    assert!(real.headers.contains_key("x-ratelimit-reset"));
    let ledger = sim.get("/_sim/ledger?calls=0").await.json();
    assert_eq!(ledger["violations_total"], 1);
}

/// Asks until an answer comes that meets no transport fault.
async fn ask(sim: &Sim, target: &str) -> Reply {
    for _ in 0..3 {
        let faults_before =
            sim.get("/_sim/faults/summary").await.json()["by_class"]["transport"].clone();
        let reply = sim.try_get(target).await;
        let faults_after =
            sim.get("/_sim/faults/summary").await.json()["by_class"]["transport"].clone();
        if faults_before == faults_after {
            return reply.unwrap();
        }
    }
    panic!("{target} met three transport faults in a row");
}

#[tokio::test]
async fn what_is_withdrawn_is_gone_everywhere() {
    let sim = start(300, 3, Faults::Hostile).await;
    let users = truth(&sim, "users", "").await;
    collect(&sim, &users).await;
    let rows = faults(&sim).await;
    let now: BTreeMap<String, Value> = truth(&sim, "users", "")
        .await
        .into_iter()
        .map(|row| (row["id"].as_str().unwrap().to_owned(), row))
        .collect();
    let all_relations = truth(&sim, "user_relations", "").await;
    let statuses = ids(&sim.truth("statuses").await);
    let mut checked: BTreeMap<String, u32> = BTreeMap::new();
    for row in rows.iter().filter(|row| row["class"] == "world") {
        let withdrew = &row["withdrew"];
        for id in withdrew["ids"].as_array().unwrap() {
            match withdrew["table"].as_str().unwrap() {
                "users" => check_ban(&sim, withdrew, &now[id.as_str().unwrap()]).await,
                "statuses" => {
                    let uri = id.as_str().unwrap();
                    assert!(!statuses.contains(uri));
                    let local_id = uri
                        .trim_end_matches("/activity")
                        .rsplit('/')
                        .next()
                        .unwrap();
                    let reply = ask(&sim, &format!("/api/v1/statuses/{local_id}")).await;
                    assert_eq!(reply.status, 404);
                }
                _ => check_relation(&sim, id, &all_relations).await,
            }
        }
        let what = format!(
            "{} {} {}",
            withdrew["table"], withdrew["shown"], withdrew["standing"]
        );
        *checked.entry(what).or_default() += 1;
    }
    println!("{checked:?}");
    // Bans of both sorts; posts and relations that were shown once, and such that never were.
    assert_eq!(checked.len(), 6, "{checked:?}");
    let struck = rows.iter().filter(|row| row["class"] == "world").count();
    assert!(struck * 100 / users.len() < 20, "{struck}");
}

async fn check_ban(sim: &Sim, withdrew: &Value, user: &Value) {
    let path = format!("/api/v1/accounts/{}", user["local_id"].as_str().unwrap());
    assert_eq!(user["suspended"], true);
    assert_eq!(user["gone"] == true, withdrew["standing"] == "gone");
    let account = ask(sim, &path).await;
    let lists = [format!("{path}/followers"), format!("{path}/statuses")];
    if user["gone"] == true {
        assert_eq!(account.status, 410);
        for list in &lists {
            assert_eq!(ask(sim, list).await.status, 410);
        }
    } else {
        assert_eq!(account.json()["suspended"], true);
        for list in &lists {
            assert!(ask(sim, list).await.list().is_empty());
        }
    }
}

async fn check_relation(sim: &Sim, pair: &Value, all_relations: &[Value]) {
    assert!(
        all_relations
            .iter()
            .all(|row| row["source"] != pair[0] || row["target"] != pair[1])
    );
    for (subject, list, other) in [(0, "following", 1), (1, "followers", 0)] {
        let local_id = pair[subject].as_str().unwrap().rsplit('/').next().unwrap();
        let path = format!("/api/v1/accounts/{local_id}/{list}?limit=80");
        if let Walk::Done(items) = walk(sim, &path).await {
            assert!(items.iter().all(|item| item["uri"] != pair[other]));
        }
    }
}

#[tokio::test]
async fn without_faults_there_are_none() {
    let sim = start(100, 5, Faults::None).await;
    for number in 0..100 {
        assert_eq!(
            sim.get(&format!("/api/v2/instance?n={number}"))
                .await
                .status,
            200
        );
    }
    assert!(faults(&sim).await.is_empty());
    let summary = sim.get("/_sim/faults/summary").await.json();
    assert_eq!(summary["total"], 0);
    assert_eq!(summary["by_kind"]["ban"], 0);
}
