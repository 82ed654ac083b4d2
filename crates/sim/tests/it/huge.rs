//! A hundred million users, of whom none is stored.

use std::collections::BTreeSet;

use crate::client::{Sim, ids};

#[tokio::test]
async fn a_hundred_million_users_can_be_read_from_any_corner() {
    let sim = Sim::frozen(100_000_000, 7).await;
    let account = sim.account_of_seed().await;
    let id = account["id"].as_str().unwrap();
    let followers = sim
        .get(&format!("/api/v1/accounts/{id}/followers?limit=3"))
        .await
        .list();
    assert_eq!(followers.len(), 3);
    assert!(account["followers_count"].as_u64().unwrap() > 1_000);
    let timeline = sim
        .get(&format!("/api/v1/accounts/{id}/statuses?limit=5"))
        .await
        .list();
    assert!(!timeline.is_empty());
    for follower in ids(&followers) {
        let following = sim
            .walk(&format!("/api/v1/accounts/{follower}/following?limit=80"))
            .await;
        assert!(ids(&following).contains(&id.to_owned()));
    }
}

#[tokio::test]
async fn tags_and_searches_of_a_huge_world_cover_a_sample() {
    let sim = Sim::frozen(100_000_000, 7).await;
    let tagged = sim.get("/api/v1/timelines/tag/birds?limit=40").await.list();
    assert_eq!(tagged.len(), 40);
    let handle = sim.server.seed_handles(1).remove(0);
    let beginning = handle.rsplit_once('_').unwrap().0;
    let found = sim
        .get(&format!("/api/v2/search?q={beginning}&type=accounts"))
        .await
        .json();
    let accounts = found["accounts"].as_array().unwrap();
    assert!(
        accounts
            .iter()
            .any(|account| account["acct"] == handle.as_str())
    );
}

#[tokio::test]
async fn pages_of_the_truth_are_bounded_in_a_huge_world() {
    let sim = Sim::frozen(100_000_000, 7).await;
    for table in [
        "users",
        "user_relations",
        "statuses",
        "comments",
        "tags",
        "likes",
        "reposters",
        "user_tags",
    ] {
        let rows = sim
            .get(&format!("/_sim/truth/{table}?limit=20"))
            .await
            .lines();
        assert_eq!(rows.len(), 20, "{table}");
        let distinct: BTreeSet<String> = rows.iter().map(ToString::to_string).collect();
        assert_eq!(distinct.len(), 20);
    }
}
