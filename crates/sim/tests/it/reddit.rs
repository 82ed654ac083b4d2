//! Reddit's dialect: its lists, its trees with stubs, its words for what goes wrong, and its limits.

use std::collections::BTreeSet;

use kittiwake_sim::{Dialect, Limits, SimConfig};
use serde_json::Value;

use crate::client::{AT_US, Reply, Sim, now_us};

/// Every program has to say who it is; the name goes with the token.
const ADA: &str = "ada\r\nuser-agent: linux:tests:1 (by /u/ada)";

async fn reddit(users: u64, limits: Limits) -> Sim {
    let mut config = SimConfig::frozen(users, 5, AT_US, now_us());
    config.dialect = Dialect::Reddit;
    config.limits = limits;
    Sim::start(config).await
}

async fn ask(sim: &Sim, target: &str) -> Reply {
    sim.get_as(target, Some(ADA)).await
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Names of all things in a tree, and the stubs of it.
fn walk(value: &Value, found: &mut BTreeSet<String>, stubs: &mut Vec<Value>) {
    for child in value["data"]["children"].as_array().into_iter().flatten() {
        if child["kind"] == "more" {
            stubs.push(child["data"].clone());
            continue;
        }
        assert!(found.insert(text(&child["data"]["name"])), "twice");
        walk(&child["data"]["replies"], found, stubs);
    }
}

/// The ids that a stub names.
fn children_of(stub: &Value) -> Vec<String> {
    let children = stub["children"].as_array().unwrap();
    children.iter().map(text).collect()
}

/// The post with the most comments, as letters and digits, and how many are told.
async fn longest(sim: &Sim) -> (String, u64) {
    let mut below: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    for row in sim.truth("threads").await {
        if row["beginning_shown"] == true {
            *below.entry(text(&row["beginning"])).or_default() += 1;
        }
    }
    let (uri, count) = below.into_iter().max_by_key(|(_, count)| *count).unwrap();
    let author = sim.truth("statuses").await;
    let row = author.iter().find(|row| row["id"] == uri).unwrap().clone();
    let users = sim.truth("users").await;
    let author = users
        .iter()
        .find(|user| user["id"] == row["author"])
        .unwrap();
    let listing = format!("/user/{}/submitted?limit=100", text(&author["acct"]));
    let mut after = String::new();
    for _ in 0..20 {
        let page = ask(sim, &format!("{listing}{after}")).await.json();
        for child in page["data"]["children"].as_array().unwrap() {
            if child["data"]["num_comments"] == count {
                return (text(&child["data"]["id"]), count);
            }
        }
        after = format!("&after={}", text(&page["data"]["after"]));
    }
    panic!("the post is not listed");
}

#[tokio::test]
async fn lists_go_by_what_came_last_and_show_posts_and_comments_apart() {
    let sim = reddit(150, Limits::Off).await;
    let users = sim.truth("users").await;
    let most = users
        .iter()
        .max_by_key(|user| user["statuses"].as_u64())
        .unwrap();
    let name = text(&most["acct"]);
    let mut sizes = Vec::new();
    for (list, kind) in [("submitted", "t3"), ("comments", "t1"), ("overview", "")] {
        let (mut seen, mut after) = (BTreeSet::new(), String::new());
        for _ in 0..500 {
            let page = ask(&sim, &format!("/user/{name}/{list}?limit=7{after}"))
                .await
                .json();
            for child in page["data"]["children"].as_array().unwrap() {
                assert!(text(&child["kind"]).starts_with(kind));
                assert!(seen.insert(text(&child["data"]["name"])));
            }
            let Some(next) = page["data"]["after"].as_str() else {
                break;
            };
            after = format!("&after={next}");
        }
        sizes.push(seen.len());
    }
    assert!(sizes[0] > 7 && sizes[1] > 0, "{sizes:?}");
    assert_eq!(sizes[0] + sizes[1], sizes[2]);
}

#[tokio::test]
async fn stubs_stand_for_what_a_tree_leaves_out() {
    let sim = reddit(200, Limits::Off).await;
    let (post, count) = longest(&sim).await;
    assert!(count > 4, "{count}");
    let whole = ask(&sim, &format!("/comments/{post}?limit=500"))
        .await
        .json();
    let (mut all, mut stubs) = (BTreeSet::new(), Vec::new());
    walk(&whole[1], &mut all, &mut stubs);
    assert!(stubs.is_empty());
    assert!(all.len() as u64 >= count, "with the places of what is gone");
    let part = ask(&sim, &format!("/comments/{post}?limit=2")).await.json();
    let mut found = BTreeSet::new();
    walk(&part[1], &mut found, &mut stubs);
    assert_eq!(found.len(), 2);
    let left: u64 = stubs
        .iter()
        .map(|stub| stub["count"].as_u64().unwrap())
        .sum();
    assert_eq!(left as usize, all.len() - 2);
    for stub in stubs {
        let children = children_of(&stub);
        let target = format!(
            "/api/morechildren?api_type=json&link_id=t3_{post}&children={}",
            children.join(",")
        );
        let more = ask(&sim, &target).await.json();
        for thing in more["json"]["data"]["things"].as_array().unwrap() {
            assert!(found.insert(text(&thing["data"]["name"])), "twice");
        }
    }
    assert_eq!(found, all);
    stubs_of_flat_lists_lead_on(&sim, &post, &all).await;
    let names: Vec<String> = all.iter().take(100).cloned().collect();
    let info = ask(
        &sim,
        &format!("/api/info?id={},t1_zz,nothing", names.join(",")),
    )
    .await;
    let info = info.json()["data"]["children"].as_array().unwrap().len();
    assert_eq!(info, names.len());
}

/// One level at a time, as a list that names comments and a stub that leads further down.
async fn stubs_of_flat_lists_lead_on(sim: &Sim, post: &str, all: &BTreeSet<String>) {
    let target = format!("/comments/{post}?limit=1&depth=1");
    let tree = ask(sim, &target).await.json();
    let (mut found, mut stubs) = (BTreeSet::new(), Vec::new());
    walk(&tree[1], &mut found, &mut stubs);
    for _ in 0..1_000 {
        let Some(stub) = stubs.pop() else { break };
        let children = children_of(&stub);
        if stub["id"] == "_" {
            assert!(children.is_empty());
            let parent = text(&stub["parent_id"]);
            let target = format!("/comments/{post}/_/{}?limit=2&depth=2", &parent[3..]);
            let branch = ask(sim, &target).await.json();
            let mut told = BTreeSet::new();
            walk(&branch[1], &mut told, &mut stubs);
            assert!(told.len() > 1 || !stubs.is_empty(), "{target}");
            found.extend(told);
            continue;
        }
        let target = format!(
            "/api/morechildren?api_type=json&depth=1&link_id=t3_{post}&children={}",
            children.join(",")
        );
        let more = ask(sim, &target).await.json();
        for thing in more["json"]["data"]["things"].as_array().unwrap() {
            if thing["kind"] == "more" {
                stubs.push(thing["data"].clone());
                continue;
            }
            assert_eq!(thing["data"]["replies"], "");
            assert!(found.insert(text(&thing["data"]["name"])), "twice");
        }
    }
    assert_eq!(&found, all);
}

#[tokio::test]
async fn callers_are_told_apart_and_programs_without_a_name_are_refused() {
    let sim = reddit(150, Limits::Off).await;
    let users = sim.truth("users").await;
    let named = |key: &str, value: bool| {
        let user = users.iter().find(|user| user[key] == value);
        text(&user.unwrap()["acct"])
    };
    let there = format!("/user/{}/submitted", named("suspended", false));
    let with = |token: &str| format!("{token}\r\nuser-agent: linux:tests:1 (by /u/ada)");
    for (token, status) in [
        ("bad", 401),
        ("revoked", 401),
        ("narrow", 403),
        ("ada", 200),
    ] {
        let reply = sim.get_as(&there, Some(&with(token))).await;
        assert_eq!(reply.status, status, "{token}");
        if status != 200 {
            assert_eq!(reply.json()["error"], status);
        }
    }
    assert_eq!(sim.get_as(&there, Some("ada")).await.status, 429);
    let gone = users.iter().find(|user| user["gone"] == true).unwrap();
    let gone = format!("/user/{}/about", text(&gone["acct"]));
    assert_eq!(ask(&sim, &gone).await.status, 404);
    let banned = users
        .iter()
        .find(|user| user["suspended"] == true && user["gone"] == false);
    let banned = text(&banned.unwrap()["acct"]);
    let about = ask(&sim, &format!("/user/{banned}/about")).await.json();
    assert_eq!(about["data"]["is_suspended"], true);
    assert_eq!(
        ask(&sim, &format!("/user/{banned}/submitted")).await.status,
        403
    );
    for (name, status) in [("private", 403), ("quarantined", 403), ("banned", 404)] {
        let reply = ask(&sim, &format!("/r/{name}_birds/new")).await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.json()["reason"], name);
    }
    for hostile in [
        "/comments/%00",
        "/comments/zzzzzzzzzzzzzz",
        "/r/u_/new",
        "/r/tag_9999/new",
    ] {
        assert_eq!(ask(&sim, hostile).await.status, 404, "{hostile}");
    }
}

#[tokio::test]
async fn headers_tell_what_was_used_and_the_seconds_that_are_left() {
    let sim = reddit(100, Limits::Strict).await;
    for used in 1..4 {
        let reply = ask(&sim, "/api/v1/me").await;
        assert_eq!(reply.headers["x-ratelimit-used"], used.to_string());
        assert_eq!(
            reply.headers["x-ratelimit-remaining"],
            format!("{}.0", 1_000 - used)
        );
        let seconds: u64 = reply.headers["x-ratelimit-reset"].parse().unwrap();
        assert!((1..=600).contains(&seconds), "{seconds}");
        assert!(!reply.headers.contains_key("x-ratelimit-limit"));
    }
}
