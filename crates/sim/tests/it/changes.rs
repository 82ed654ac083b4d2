//! What changes when time passes: posts go, people are banned and renamed, edges end.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::client::Sim;

async fn before_and_after(users: u64, days: i64) -> (Sim, Sim) {
    (
        Sim::seen_after(users, 3, 0).await,
        Sim::seen_after(users, 3, days).await,
    )
}

fn by_id(rows: Vec<Value>) -> BTreeMap<String, Value> {
    rows.into_iter()
        .map(|row| (row["id"].as_str().unwrap().to_owned(), row))
        .collect()
}

#[tokio::test]
async fn users_are_renamed_and_keep_their_uri() {
    let (before, after) = before_and_after(600, 40).await;
    let old = by_id(before.truth("users").await);
    let new = by_id(after.truth("users").await);
    assert!(old.keys().eq(new.keys()));
    let renamed: Vec<(&Value, &Value)> = old
        .values()
        .zip(new.values())
        .filter(|(old, new)| old["acct"] != new["acct"])
        .collect();
    assert!(!renamed.is_empty());
    for (old, new) in renamed {
        let lookup = |row: &Value| {
            format!(
                "/api/v1/accounts/lookup?acct={}",
                row["acct"].as_str().unwrap()
            )
        };
        assert_eq!(after.get(&lookup(old)).await.status, 404);
        if new["gone"] == false {
            let account = after.get(&lookup(new)).await.json();
            assert_eq!(
                (&account["uri"], &account["url"]),
                (&old["id"], &new["url"])
            );
            assert_ne!(account["url"], old["url"]);
        }
    }
}

#[tokio::test]
async fn banned_users_vanish_from_lists_with_all_they_wrote() {
    let (before, after) = before_and_after(1_500, 45).await;
    let old = by_id(before.truth("users").await);
    let new = by_id(after.truth("users").await);
    let relations = after.truth("user_relations").await;
    let mut standings = BTreeSet::new();
    for (id, user) in &new {
        if user["suspended"] == false || old[id]["suspended"] == true {
            continue;
        }
        let path = format!("/api/v1/accounts/{}", user["local_id"].as_str().unwrap());
        let reply = after.get(&path).await;
        standings.insert(reply.status);
        let lists = [format!("{path}/statuses"), format!("{path}/following")];
        if user["gone"] == true {
            assert_eq!(reply.json()["error"], "Gone");
            for list in &lists {
                assert_eq!(after.get(list).await.status, 410);
            }
        } else {
            assert_eq!(reply.json()["suspended"], true);
            for list in &lists {
                assert!(after.get(list).await.list().is_empty());
            }
        }
        assert!(
            relations
                .iter()
                .all(|edge| edge["source"] != **id && edge["target"] != **id)
        );
        for status in before.get(&format!("{path}/statuses?limit=1")).await.list() {
            let status_path = format!("/api/v1/statuses/{}", status["id"].as_str().unwrap());
            assert_eq!(after.get(&status_path).await.status, 404);
        }
    }
    // Some are suspended, some deleted.
    assert_eq!(standings, BTreeSet::from([200, 410]));
}

#[tokio::test]
async fn posts_and_edges_come_and_go() {
    let (before, after) = before_and_after(250, 10).await;
    let old_posts = by_id(before.truth("statuses").await);
    let new_posts = by_id(after.truth("statuses").await);
    let deleted: Vec<&Value> = old_posts
        .iter()
        .filter(|(id, _)| !new_posts.contains_key(*id))
        .map(|(_, row)| row)
        .collect();
    assert!(!deleted.is_empty());
    for row in deleted.iter().take(30) {
        let path = format!("/api/v1/statuses/{}", row["local_id"].as_str().unwrap());
        assert_eq!(after.get(&path).await.status, 404);
        assert_eq!(after.get(&format!("{path}/context")).await.status, 404);
    }
    assert!(new_posts.keys().any(|id| !old_posts.contains_key(id)));
    let edited = |posts: &BTreeMap<String, Value>| {
        posts
            .values()
            .filter(|row| !row["edited_us"].is_null())
            .count()
    };
    assert!(edited(&new_posts) > 0 && edited(&old_posts) > 0);

    let edges = |rows: Vec<Value>| -> BTreeSet<String> {
        rows.iter()
            .map(|row| format!("{} {}", row["source"], row["target"]))
            .collect()
    };
    let old_edges = edges(before.truth("user_relations").await);
    let new_edges = edges(after.truth("user_relations").await);
    assert!(old_edges.difference(&new_edges).count() > 0);
    assert!(new_edges.difference(&old_edges).count() > 0);
}

#[tokio::test]
async fn a_repost_goes_with_what_it_repeats() {
    let (before, after) = before_and_after(250, 10).await;
    let new_posts = by_id(after.truth("statuses").await);
    let mut vanished = 0;
    for row in before.truth("statuses").await {
        if let Some(original) = row["repost_of"].as_str()
            && !new_posts.contains_key(original)
        {
            vanished += 1;
            assert!(!new_posts.contains_key(row["id"].as_str().unwrap()));
        }
    }
    assert!(vanished > 0);
}
