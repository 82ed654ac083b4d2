//! Weibo's dialect: its pages, its words for what goes wrong, and its limits.

use std::collections::BTreeSet;

use kittiwake_sim::{DeclaredLimits, Dialect, Limits, SimConfig};
use serde_json::Value;

use crate::client::{AT_US, Reply, Sim, now_us};

async fn weibo(users: u64) -> Sim {
    let mut config = SimConfig::frozen(users, 5, AT_US, now_us());
    config.dialect = Dialect::Weibo;
    config.limits = Limits::Off;
    Sim::start(config).await
}

async fn ask(sim: &Sim, target: &str) -> Reply {
    let sign = if target.contains('?') { '&' } else { '?' };
    sim.get(&format!("/2/{target}{sign}access_token=ada")).await
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn code(reply: &Reply) -> (u16, u64) {
    (reply.status, number(&reply.json()["error_code"]))
}

/// Somebody with the most of a count, as the truth tells it.
async fn with_most(sim: &Sim, count: &str) -> String {
    let users = sim.truth("users").await;
    let most = users.iter().max_by_key(|user| user[count].as_u64());
    most.unwrap()["local_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_timeline_goes_by_ids_that_are_part_of_the_page() {
    let sim = weibo(150).await;
    let uid = with_most(&sim, "statuses").await;
    let shown = ask(&sim, &format!("users/show.json?uid={uid}"))
        .await
        .json();
    assert_eq!(shown["idstr"], uid);
    assert_eq!(shown["id"].to_string(), uid, "digit by digit");
    let mut seen = Vec::new();
    let mut bound = String::new();
    for _ in 0..1_000 {
        let target = format!("statuses/user_timeline.json?uid={uid}&count=7{bound}");
        let page = ask(&sim, &target).await.json();
        let mut ids: Vec<u64> = page["statuses"]
            .as_array()
            .unwrap()
            .iter()
            .map(|post| number(&post["id"]))
            .collect();
        assert!(ids.is_sorted_by(|one, other| one > other));
        if !bound.is_empty() {
            assert_eq!(ids.first(), seen.last(), "the bound comes again");
            ids.remove(0);
        }
        if ids.is_empty() {
            assert_eq!(number(&page["next_cursor"]), 0);
            break;
        }
        seen.extend(ids);
        bound = format!("&max_id={}", seen.last().unwrap());
    }
    assert_eq!(seen.len() as u64, number(&shown["statuses_count"]));
    assert!(seen.len() > 20, "{}", seen.len());
    let since = format!("statuses/user_timeline.json?uid={uid}&since_id={}", seen[3]);
    let newer = ask(&sim, &since).await.json();
    assert_eq!(newer["statuses"].as_array().unwrap().len(), 3);
    let most = format!("statuses/user_timeline.json?uid={uid}&count=5000");
    let most = ask(&sim, &most).await.json();
    let most = most["statuses"].as_array().unwrap().len();
    assert_eq!(most, seen.len().min(100), "more than 100 is taken for 100");
    let second = format!("statuses/user_timeline.json?uid={uid}&count=4&page=2");
    let second = ask(&sim, &second).await.json();
    assert_eq!(number(&second["statuses"][0]["id"]), seen[4]);
}

#[tokio::test]
async fn relations_go_by_a_cursor_that_ends_with_zero() {
    let sim = weibo(150).await;
    let uid = with_most(&sim, "followers").await;
    let followers = number(
        &ask(&sim, &format!("users/show.json?uid={uid}"))
            .await
            .json()["followers_count"],
    );
    for (path, name, size) in [("followers/ids", "ids", 3), ("followers", "users", 5)] {
        let (mut seen, mut cursor) = (BTreeSet::new(), 0);
        for _ in 0..1_000 {
            let target = format!("friendships/{path}.json?uid={uid}&count={size}&cursor={cursor}");
            let page = ask(&sim, &target).await.json();
            for item in page[name].as_array().unwrap() {
                assert!(seen.insert(item.as_u64().unwrap_or_else(|| number(&item["id"]))));
            }
            assert_eq!(page["total_number"], followers);
            cursor = number(&page["next_cursor"]);
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(seen.len() as u64, followers);
    }
}

#[tokio::test]
async fn what_answers_a_post_is_a_comment_and_no_post() {
    let sim = weibo(200).await;
    let threads = sim.truth("threads").await;
    let local = |uri: &Value| uri.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let deep = threads.iter().find(|row| {
        row["beginning_shown"] == true
            && row["parent_shown"] == true
            && row["parent"] != row["beginning"]
    });
    let deep = deep.unwrap();
    let (comment, beginning) = (local(&deep["status"]), local(&deep["beginning"]));
    let refused = ask(&sim, &format!("statuses/show.json?id={comment}")).await;
    assert_eq!(code(&refused), (400, 20_101));
    let post = ask(&sim, &format!("statuses/show.json?id={beginning}"))
        .await
        .json();
    let page = ask(
        &sim,
        &format!("comments/show.json?id={beginning}&count=200"),
    )
    .await
    .json();
    assert_eq!(post["comments_count"], page["total_number"]);
    let comments = page["comments"].as_array().unwrap();
    let found = comments.iter().find(|it| it["idstr"] == comment).unwrap();
    assert_eq!(found["status"]["idstr"], beginning);
    assert_eq!(found["reply_comment"]["idstr"], local(&deep["parent"]));
    assert!(found["reply_comment"].get("status").is_none());
    // Orphans stay as long as the post is there.
    let below = threads
        .iter()
        .filter(|row| row["beginning"] == deep["beginning"])
        .count();
    assert_eq!(below, comments.len());
}

#[tokio::test]
async fn batches_leave_out_who_is_gone_and_fail_for_what_is_no_number() {
    let sim = weibo(200).await;
    let users = sim.truth("users").await;
    let id = |is_gone: bool| {
        let user = users
            .iter()
            .find(|user| user["suspended"] == is_gone)
            .unwrap();
        user["local_id"].as_str().unwrap().to_owned()
    };
    let (there, gone) = (id(false), id(true));
    let refused = ask(&sim, &format!("users/show.json?uid={gone}")).await;
    assert_eq!(code(&refused), (400, 20_003));
    let batch = ask(&sim, &format!("tags/tags_batch.json?uids={there},{gone}"))
        .await
        .list();
    assert_eq!(batch.len(), 1);
    assert_eq!(batch[0]["id"].to_string(), there);
    let spoilt = ask(&sim, &format!("tags/tags_batch.json?uids={there},puffin")).await;
    assert_eq!(code(&spoilt), (400, 10_008));
    let many = vec![there.as_str(); 21].join(",");
    let refused = ask(&sim, &format!("tags/tags_batch.json?uids={many}")).await;
    assert_eq!(code(&refused), (400, 20_009));
    let featured = sim.truth("user_tags").await;
    let uri = featured[0]["user"].as_str().unwrap();
    let owner = users.iter().find(|user| user["id"] == uri).unwrap();
    let tags = format!("tags.json?uid={}", owner["local_id"].as_str().unwrap());
    let tags = ask(&sim, &tags).await.list();
    let named = |tag: &Value| {
        tag.as_object()
            .unwrap()
            .values()
            .any(|it| *it == featured[0]["tag"])
    };
    assert!(tags.iter().any(named));
}

#[tokio::test]
async fn a_deleted_post_keeps_its_number_in_a_batch_and_nothing_else() {
    let sim = weibo(200).await;
    let before = format!(
        "/_sim/truth/statuses?limit=10000&at_us={}",
        AT_US - 20 * 86_400_000_000
    );
    let before = sim.get(&before).await.lines();
    let now: BTreeSet<String> = sim
        .truth("statuses")
        .await
        .iter()
        .map(|row| row["id"].to_string())
        .collect();
    let gone = before.iter().find(|row| {
        !now.contains(&row["id"].to_string())
            && row["reply_to"].is_null()
            && row["mentions"].as_array().unwrap().is_empty()
    });
    let gone = gone.unwrap()["local_id"].as_str().unwrap();
    assert_eq!(
        code(&ask(&sim, &format!("statuses/show.json?id={gone}")).await),
        (400, 20_101)
    );
    let batch = ask(&sim, &format!("statuses/show_batch/biz.json?ids={gone}"))
        .await
        .json();
    assert_eq!(batch["statuses"][0]["deleted"], "1");
    assert_eq!(batch["statuses"][0]["idstr"], gone);
    assert!(batch["statuses"][0].get("user").is_none());
}

#[tokio::test]
async fn tokens_are_told_apart() {
    let sim = weibo(100).await;
    let uid = with_most(&sim, "followers").await;
    let target = format!("/2/friendships/friends/ids.json?uid={uid}");
    for (token, expected) in [
        ("", (403, 10_006)),
        ("&access_token=bad", (403, 21_332)),
        ("&access_token=revoked", (403, 21_327)),
        ("&access_token=narrow", (400, 21_335)),
    ] {
        assert_eq!(
            code(&sim.get(&format!("{target}{token}")).await),
            expected,
            "{token}"
        );
    }
    let own = format!("{target}&access_token=narrow/{uid}");
    assert_eq!(sim.get(&own).await.status, 200);
    let whose = sim
        .get(&format!(
            "/2/account/get_uid.json?access_token=narrow/{uid}"
        ))
        .await;
    assert_eq!(whose.json()["uid"].to_string(), uid);
    let business = sim
        .get(&format!(
            "/2/users/show_batch/other.json?uids={uid}&access_token=narrow"
        ))
        .await;
    assert_eq!(code(&business), (403, 10_014));
    assert_eq!(code(&ask(&sim, "nothing.json").await), (404, 10_020));
    assert_eq!(code(&ask(&sim, "users/show.json").await), (400, 10_016));
    assert_eq!(
        ask(&sim, "nothing.json").await.json()["request"],
        "/2/nothing.json"
    );
}

#[tokio::test]
async fn the_page_about_limits_is_free_and_right() {
    let limits = include_str!("../../src/weibo/limits.toml").replace("limit = 150", "limit = 4");
    let mut config = SimConfig::frozen(100, 5, AT_US, now_us());
    config.dialect = Dialect::Weibo;
    config.limits = Limits::Declared(DeclaredLimits::parse_for(&limits, Dialect::Weibo).unwrap());
    let sim = Sim::start(config).await;
    for used in 0..4 {
        let left = ask(&sim, "account/rate_limit_status.json").await.json();
        assert_eq!(left["user_limit"], 4);
        assert_eq!(left["remaining_user_hits"], 4 - used);
        assert_eq!(left["remaining_ip_hits"], 1_000 - used);
        let seconds = number(&left["reset_time_in_seconds"]);
        assert!((1..=3_600).contains(&seconds), "{seconds}");
        assert_eq!(ask(&sim, "account/get_uid.json").await.status, 200);
    }
    let refused = ask(&sim, "account/get_uid.json").await;
    assert_eq!(code(&refused), (403, 10_023));
    assert_eq!(refused.json()["request"], "/2/account/get_uid.json");
    let ledger = sim.get("/_sim/ledger").await.json();
    assert_eq!(ledger["violations_total"], 1);
}
