//! The ground truth agrees with what the API shows.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::client::{AT_US, Sim};

#[tokio::test]
async fn the_truth_is_what_the_api_shows() {
    let told = assert_the_api_shows_the_truth(&Sim::frozen(150, 9).await).await;
    assert!(told > 1_000);
}

/// Compares every account and every timeline with the truth, and says how many posts that were.
pub(crate) async fn assert_the_api_shows_the_truth(sim: &Sim) -> usize {
    let mut shown = BTreeSet::new();
    for user in sim.truth("users").await {
        let path = format!("/api/v1/accounts/{}", user["local_id"].as_str().unwrap());
        let reply = sim.get(&path).await;
        if user["gone"] == true {
            assert_eq!(reply.status, 410);
            continue;
        }
        let account = reply.json();
        assert_eq!(account["suspended"] == true, user["suspended"] == true);
        for (ours, theirs) in [
            ("id", "uri"),
            ("acct", "acct"),
            ("display_name", "display_name"),
            ("url", "url"),
            ("note", "note"),
            ("followers", "followers_count"),
            ("following", "following_count"),
            ("statuses", "statuses_count"),
            ("bot", "bot"),
            ("locked", "locked"),
            ("discoverable", "discoverable"),
            ("indexable", "indexable"),
            ("noindex", "noindex"),
            ("hide_collections", "hide_collections"),
            ("last_status_at", "last_status_at"),
        ] {
            assert_eq!(user[ours], account[theirs], "{ours}");
        }
        for status in sim.walk(&format!("{path}/statuses?limit=40")).await {
            shown.insert(summary_of_status(&status).to_string());
        }
    }
    let told: BTreeSet<String> = sim
        .truth("statuses")
        .await
        .iter()
        .map(|row| summary_of_truth(row).to_string())
        .collect();
    assert_eq!(shown, told);
    told.len()
}

fn summary_of_status(status: &Value) -> Value {
    let names = status["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| tag["name"].clone());
    serde_json::json!([
        status["uri"],
        status["url"],
        status["id"],
        status["account"]["uri"],
        status["content"],
        status["language"],
        status["visibility"],
        status["sensitive"],
        status["spoiler_text"],
        status["reblog"]["uri"],
        status["replies_count"],
        status["reblogs_count"],
        status["favourites_count"],
        status["edited_at"].is_null(),
        status["in_reply_to_id"].is_null(),
        names.collect::<Vec<_>>(),
        status["mentions"].as_array().unwrap().len(),
    ])
}

fn summary_of_truth(row: &Value) -> Value {
    serde_json::json!([
        row["id"],
        row["url"],
        row["local_id"],
        row["author"],
        row["content"],
        row["language"],
        row["visibility"],
        row["sensitive"],
        row["spoiler_text"],
        row["repost_of"],
        row["replies"],
        row["reposts"],
        row["likes"],
        row["edited_us"].is_null(),
        row["reply_to"].is_null(),
        row["tags"],
        row["mentions"].as_array().unwrap().len(),
    ])
}

#[tokio::test]
async fn two_servers_with_one_seed_show_one_world() {
    let (one, other) = (Sim::frozen(100, 4).await, Sim::frozen(100, 4).await);
    let different = Sim::frozen(100, 5).await;
    for table in ["users", "user_relations", "statuses", "comments", "tags"] {
        let rows = one.truth(table).await;
        assert!(!rows.is_empty(), "{table}");
        assert_eq!(rows, other.truth(table).await, "{table}");
        if table != "tags" {
            assert_ne!(rows, different.truth(table).await, "{table}");
        }
    }
}

#[tokio::test]
async fn a_crawl_of_two_steps_reaches_most_of_a_small_world() {
    let sim = Sim::frozen(2_000, 1).await;
    let users = sim.truth("users").await;
    let relations = sim.truth("user_relations").await;
    let statuses = sim.truth("statuses").await;
    let seed = sim.account_of_seed().await["uri"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut reached = BTreeSet::from([seed]);
    for _ in 0..2 {
        let mut next = reached.clone();
        for edge in &relations {
            let source = edge["source"].as_str().unwrap();
            let target = edge["target"].as_str().unwrap();
            if reached.contains(source) {
                next.insert(target.to_owned());
            }
            if reached.contains(target) {
                next.insert(source.to_owned());
            }
        }
        reached = next;
    }
    println!(
        "{} users, {} relations, {} statuses, {} comments, {} users within two steps",
        users.len(),
        relations.len(),
        statuses.len(),
        sim.truth("comments").await.len(),
        reached.len()
    );
    assert!(reached.len() > 1_000, "{}", reached.len());
    assert!(
        (20_000..40_000).contains(&relations.len()),
        "{}",
        relations.len()
    );
    assert!(
        (30_000..90_000).contains(&statuses.len()),
        "{}",
        statuses.len()
    );
}

#[tokio::test]
async fn the_truth_of_another_time_can_be_asked_for() {
    let later = Sim::seen_after(60, 4, 30).await;
    let frozen = Sim::frozen(60, 4).await;
    let then = later.get(&format!("/_sim/truth/users?at_us={AT_US}")).await;
    assert_eq!(then.text, frozen.get("/_sim/truth/users").await.text);
    assert_ne!(then.text, later.get("/_sim/truth/users").await.text);
}

#[tokio::test]
async fn unknown_tables_and_tokens_are_refused() {
    let sim = Sim::frozen(10, 1).await;
    assert_eq!(sim.get("/_sim/truth/nonsense").await.status, 404);
    assert_eq!(sim.get("/_sim/truth/users?after=x").await.status, 400);
    assert_eq!(sim.get("/_sim").await.status, 404);
}
