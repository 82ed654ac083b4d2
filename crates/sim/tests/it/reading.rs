//! Lists, pages and single records.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::client::{Sim, ids};

#[tokio::test]
async fn a_walk_gives_the_whole_list_once_whatever_the_page_size() {
    let sim = Sim::frozen(2_000, 1).await;
    let account = sim.account_of_seed().await;
    let id = account["id"].as_str().unwrap();
    for (list, count) in [
        ("followers", "followers_count"),
        ("following", "following_count"),
        ("statuses", "statuses_count"),
    ] {
        let path = format!("/api/v1/accounts/{id}/{list}");
        let whole = ids(&sim.walk(&path).await);
        assert_eq!(account[count], whole.len(), "{list}");
        let distinct: BTreeSet<&String> = whole.iter().collect();
        assert_eq!(distinct.len(), whole.len());
        assert_eq!(ids(&sim.walk(&format!("{path}?limit=80")).await), whole);
        assert_eq!(ids(&sim.walk(&format!("{path}?limit=7")).await), whole);
    }
    assert!(account["followers_count"].as_u64().unwrap() > 80);
}

#[tokio::test]
async fn a_page_follows_directly_on_min_id_and_is_still_newest_first() {
    let sim = Sim::frozen(2_000, 1).await;
    let account = sim.account_of_seed().await;
    let path = format!(
        "/api/v1/accounts/{}/statuses",
        account["id"].as_str().unwrap()
    );
    let newest_first = ids(&sim.walk(&path).await);
    assert!(newest_first.len() > 12);
    let pivot = newest_first.len() - 3;
    let min_id = &newest_first[pivot];
    let page = sim.get(&format!("{path}?limit=5&min_id={min_id}")).await;
    assert_eq!(ids(&page.list()), newest_first[pivot - 5..pivot]);
    let newer = sim.get(&page.link("prev").unwrap()).await;
    assert_eq!(
        ids(&newer.list()),
        newest_first[pivot.saturating_sub(10)..pivot - 5]
    );
    let since = sim.get(&format!("{path}?limit=5&since_id={min_id}")).await;
    assert_eq!(ids(&since.list()), newest_first[..5]);
}

#[tokio::test]
async fn pages_have_the_sizes_of_the_network_and_larger_ones_are_lowered() {
    let sim = Sim::frozen(2_000, 1).await;
    let account = sim.account_of_seed().await;
    let path = format!(
        "/api/v1/accounts/{}/followers",
        account["id"].as_str().unwrap()
    );
    assert_eq!(sim.get(&path).await.list().len(), 40);
    assert_eq!(
        sim.get(&format!("{path}?limit=5000")).await.list().len(),
        80
    );
}

#[tokio::test]
async fn following_and_followers_agree_over_http() {
    let sim = Sim::frozen(300, 5).await;
    let mut following = BTreeSet::new();
    let mut followers = BTreeSet::new();
    let users = sim.truth("users").await;
    let hiding: BTreeSet<&str> = users
        .iter()
        .filter(|user| user["hide_collections"] == true)
        .map(|user| user["local_id"].as_str().unwrap())
        .collect();
    for user in &users {
        if user["gone"] == true {
            continue;
        }
        let id = user["local_id"].as_str().unwrap().to_owned();
        for target in ids(&sim
            .walk(&format!("/api/v1/accounts/{id}/following?limit=80"))
            .await)
        {
            following.insert((id.clone(), target));
        }
        for source in ids(&sim
            .walk(&format!("/api/v1/accounts/{id}/followers?limit=80"))
            .await)
        {
            followers.insert((source, id.clone()));
        }
    }
    let is_open = |(source, target): &(String, String)| {
        !hiding.contains(source.as_str()) && !hiding.contains(target.as_str())
    };
    following.retain(is_open);
    followers.retain(is_open);
    assert!(following.len() > 1_000);
    assert_eq!(following, followers);
}

#[tokio::test]
async fn single_records_and_batches_show_the_same() {
    let sim = Sim::frozen(500, 2).await;
    let account = sim.account_of_seed().await;
    let id = account["id"].as_str().unwrap();
    assert_eq!(
        sim.get(&format!("/api/v1/accounts/{id}")).await.json(),
        account
    );
    let batch = sim
        .get(&format!("/api/v1/accounts?id[]={id}&id%5B%5D=1&id[]=x"))
        .await
        .list();
    assert_eq!(batch, std::slice::from_ref(&account));
    let timeline = sim
        .get(&format!("/api/v1/accounts/{id}/statuses"))
        .await
        .list();
    let status = &timeline[0];
    let status_id = status["id"].as_str().unwrap();
    assert_eq!(
        sim.get(&format!("/api/v1/statuses/{status_id}"))
            .await
            .json(),
        *status
    );
    let batch = sim
        .get(&format!("/api/v1/statuses?id[]={status_id}&id[]=7"))
        .await
        .list();
    assert_eq!(batch, std::slice::from_ref(status));
}

#[tokio::test]
async fn what_does_not_exist_is_answered_as_the_network_does() {
    let sim = Sim::frozen(50, 2).await;
    for target in [
        "/api/v1/accounts/1",
        "/api/v1/accounts/%00",
        "/api/v1/accounts/1/followers",
        "/api/v1/accounts/lookup?acct=nobody",
        "/api/v1/accounts/lookup?acct=%F0%9F%90%A6_1",
        "/api/v1/accounts/lookup?acct=a%27%22%00_0",
        "/api/v1/accounts/lookup",
        "/api/v1/statuses/1",
        "/api/v1/statuses/1/context",
    ] {
        let reply = sim.get(target).await;
        assert_eq!(reply.status, 404, "{target}");
        assert_eq!(reply.json()["error"], "Record not found");
    }
    assert_eq!(
        sim.get("/api/v1/nonsense").await.json()["error"],
        "Not Found"
    );
    let many = |count: u64| {
        let ids: Vec<String> = (0..count).map(|id| format!("id[]={id}")).collect();
        ids.join("&")
    };
    assert_eq!(
        sim.get(&format!("/api/v1/accounts?{}", many(40)))
            .await
            .status,
        200
    );
    assert_eq!(
        sim.get(&format!("/api/v1/accounts?{}", many(41)))
            .await
            .status,
        422
    );
    assert_eq!(
        sim.get(&format!("/api/v1/statuses?{}", many(20)))
            .await
            .status,
        200
    );
    assert_eq!(
        sim.get(&format!("/api/v1/statuses?{}", many(21)))
            .await
            .status,
        422
    );
    assert_eq!(
        sim.get_as("/api/v2/instance", Some("bad-token"))
            .await
            .status,
        401
    );
    assert_eq!(
        sim.get_as("/api/v2/instance", Some("good")).await.status,
        200
    );
}

#[tokio::test]
async fn a_handle_may_name_the_host_of_the_data() {
    let sim = Sim::frozen(50, 2).await;
    let handle = sim.server.seed_handles(1).remove(0);
    for acct in [
        handle.clone(),
        format!("{handle}@sim.example"),
        format!("@{handle}@sim.example"),
    ] {
        let reply = sim
            .get(&format!("/api/v1/accounts/lookup?acct={acct}"))
            .await;
        assert_eq!(reply.json()["acct"], handle.as_str());
    }
    let elsewhere = sim
        .get(&format!(
            "/api/v1/accounts/lookup?acct={handle}@other.example"
        ))
        .await;
    assert_eq!(elsewhere.status, 404);
}

#[tokio::test]
async fn reactions_are_listed_as_often_as_they_are_counted() {
    let sim = Sim::frozen(300, 3).await;
    let statuses = sim.truth("statuses").await;
    assert_reactions_are_listed(&sim, &statuses).await;
}

/// Compares what some posts met with with what is counted, until enough of each kind was seen.
pub(crate) async fn assert_reactions_are_listed(sim: &Sim, statuses: &[Value]) {
    let (mut reposts, mut likes, mut replies) = (0, 0, 0);
    for status in statuses {
        let count = |key: &str| status[key].as_u64().unwrap() as usize;
        if count("reposts") + count("replies") == 0 || reposts > 20 && replies > 20 {
            continue;
        }
        let path = format!("/api/v1/statuses/{}", status["local_id"].as_str().unwrap());
        let reposters = sim.walk(&format!("{path}/reblogged_by")).await;
        let admirers = sim.walk(&format!("{path}/favourited_by?limit=1")).await;
        let thread = sim.get(&format!("{path}/context")).await.json();
        let direct = thread["descendants"].as_array().unwrap().iter();
        let direct = direct.filter(|reply| reply["in_reply_to_id"] == status["local_id"]);
        assert_eq!(direct.count(), count("replies"));
        assert_eq!(
            (reposters.len(), admirers.len()),
            (count("reposts"), count("likes"))
        );
        reposts += reposters.len();
        likes += admirers.len();
        replies += count("replies");
    }
    assert!(reposts > 20 && likes > 5 && replies > 20);
}

#[tokio::test]
async fn a_timeline_can_be_narrowed() {
    let sim = Sim::frozen(1_000, 3).await;
    let account = sim.account_of_seed().await;
    let path = format!(
        "/api/v1/accounts/{}/statuses",
        account["id"].as_str().unwrap()
    );
    let all = sim.walk(&format!("{path}?limit=40")).await;
    let without = sim
        .walk(&format!(
            "{path}?limit=3&exclude_reblogs=true&exclude_replies=1"
        ))
        .await;
    let expected: Vec<_> = all
        .iter()
        .filter(|status| status["reblog"].is_null() && status["in_reply_to_account_id"].is_null())
        .cloned()
        .collect();
    assert_eq!(without, expected);
    let media = sim.walk(&format!("{path}?only_media=true")).await;
    assert!(
        media
            .iter()
            .all(|status| !status["media_attachments"].as_array().unwrap().is_empty())
    );
}
