//! Tags on profiles, and timelines of tags.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::client::{Sim, ids};

/// Local ids of the posts that the truth puts in a tag's timeline, newest first.
fn told(statuses: &[Value], tag: &str) -> Vec<String> {
    let mut told: Vec<u64> = statuses
        .iter()
        .filter(|row| row["in_tag_timelines"] == true)
        .filter(|row| row["tags"].as_array().unwrap().contains(&tag.into()))
        .map(|row| row["local_id"].as_str().unwrap().parse().unwrap())
        .collect();
    told.sort_unstable_by(|one, other| other.cmp(one));
    told.iter().map(u64::to_string).collect()
}

#[tokio::test]
async fn a_tags_timeline_shows_what_the_truth_says() {
    let sim = Sim::frozen(200, 3).await;
    let statuses = sim.truth("statuses").await;
    for (tag, escaped) in [
        ("birds", "birds"),
        ("café", "caf%C3%A9"),
        ("写真", "%E5%86%99%E7%9C%9F"),
    ] {
        let path = format!("/api/v1/timelines/tag/{escaped}");
        let expected = told(&statuses, tag);
        assert!(expected.len() > 1, "{tag}");
        for limit in ["", "?limit=40", "?limit=7"] {
            let walked = sim.walk(&format!("{path}{limit}")).await;
            assert_eq!(ids(&walked), expected, "{tag}");
            assert!(walked.iter().all(|status| status["visibility"] == "public"));
        }
    }
    let upper = sim.get("/api/v1/timelines/tag/BIRDS?limit=3").await.list();
    assert_eq!(ids(&upper), told(&statuses, "birds")[..3]);
    let unlisted = statuses
        .iter()
        .any(|row| row["in_tag_timelines"] == false && !row["tags"].as_array().unwrap().is_empty());
    assert!(unlisted);
}

#[tokio::test]
async fn a_tags_timeline_ends_with_an_empty_page_as_the_real_one_does() {
    let sim = Sim::frozen(200, 3).await;
    let path = "/api/v1/timelines/tag/birds";
    let all = ids(&sim.walk(path).await);
    let oldest = all.last().unwrap();
    let second = &all[all.len() - 2];
    let short = sim.get(&format!("{path}?max_id={second}&limit=20")).await;
    assert_eq!(ids(&short.list()), all[all.len() - 1..]);
    assert!(short.link("next").unwrap().contains(oldest));
    assert!(short.link("prev").unwrap().contains("min_id="));
    let empty = sim.get(&short.link("next").unwrap()).await;
    assert!(empty.list().is_empty() && !empty.headers.contains_key("link"));

    let newer = sim.get(&format!("{path}?min_id={oldest}&limit=2")).await;
    assert_eq!(ids(&newer.list()), all[all.len() - 3..all.len() - 1]);
    let since = sim.get(&format!("{path}?since_id={oldest}&limit=2")).await;
    assert_eq!(ids(&since.list()), all[..2]);
    assert_eq!(
        sim.get(&format!("{path}?limit=1000")).await.list().len(),
        40
    );
    assert!(
        sim.get("/api/v1/timelines/tag/nothing")
            .await
            .list()
            .is_empty()
    );
}

#[tokio::test]
async fn a_tags_timeline_can_be_narrowed_and_widened() {
    let sim = Sim::frozen(300, 3).await;
    let path = "/api/v1/timelines/tag/birds";
    let names = |status: &Value| -> BTreeSet<String> {
        let tags = status["tags"].as_array().unwrap().iter();
        tags.map(|tag| tag["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let birds = sim.walk(&format!("{path}?limit=40")).await;
    let both = sim.walk(&format!("{path}?limit=40&all[]=rust")).await;
    let without = sim.walk(&format!("{path}?limit=40&none[]=rust")).await;
    assert!(!both.is_empty() && both.iter().all(|status| names(status).contains("rust")));
    assert_eq!(both.len() + without.len(), birds.len());
    let rust = sim.walk("/api/v1/timelines/tag/rust?limit=40").await;
    let either = sim.walk(&format!("{path}?limit=40&any[]=rust")).await;
    assert_eq!(either.len() + both.len(), birds.len() + rust.len());
    assert!(ids(&either).is_sorted_by(|one, other| one > other));
    let media = sim.walk(&format!("{path}?only_media=1")).await;
    assert!(!media.is_empty() && media.len() < birds.len());
    assert!(sim.walk(&format!("{path}?remote=true")).await.is_empty());
}

#[tokio::test]
async fn profiles_show_tags_as_the_truth_says() {
    let sim = Sim::frozen(200, 3).await;
    let statuses = sim.truth("statuses").await;
    let mut shown = BTreeSet::new();
    let mut counted = 0;
    for user in sim.truth("users").await {
        let path = format!(
            "/api/v1/accounts/{}/featured_tags",
            user["local_id"].as_str().unwrap()
        );
        let reply = sim.get(&path).await;
        if user["gone"] == true {
            assert_eq!(reply.status, 410);
            continue;
        }
        for tag in reply.list() {
            let name = tag["name"].as_str().unwrap();
            let expected: Vec<&Value> = statuses
                .iter()
                .filter(|row| row["author"] == user["id"])
                .filter(|row| row["tags"].as_array().unwrap().contains(&name.into()))
                .collect();
            assert_eq!(tag["statuses_count"], expected.len().to_string());
            assert_eq!(tag["last_status_at"].is_null(), expected.is_empty());
            assert!(tag["id"].is_string());
            let url = tag["url"].as_str().unwrap();
            assert!(url.starts_with(&format!("{}/tagged/", user["url"].as_str().unwrap())));
            counted += expected.len();
            shown.insert((user["id"].to_string(), name.to_owned()));
        }
        if user["suspended"] == true {
            assert!(reply.list().is_empty());
        }
    }
    assert!(shown.len() > 50 && counted > 20);
    assert_eq!(
        sim.get("/api/v1/accounts/1/featured_tags").await.status,
        404
    );
}

#[tokio::test]
async fn wishes_are_told_and_about_as_common_as_declared() {
    let sim = Sim::frozen(2_000, 7).await;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let users = sim.truth("users").await;
    for user in users.iter().filter(|user| user["suspended"] == false) {
        let noindex = user["noindex"] == true;
        let unsearchable = user["indexable"] == false;
        assert!(!(noindex && unsearchable));
        for (name, holds) in [
            ("noindex", noindex),
            ("not indexable", unsearchable),
            ("hidden", user["hide_collections"] == true),
        ] {
            *counts.entry(name).or_default() += usize::from(holds);
        }
        if noindex || unsearchable {
            let path = format!("/api/v1/accounts/{}", user["local_id"].as_str().unwrap());
            let account = sim.get(&path).await.json();
            assert_eq!(account["noindex"], user["noindex"]);
            assert_eq!(account["indexable"], user["indexable"]);
        }
    }
    assert!((30..100).contains(&counts["noindex"]), "{counts:?}");
    assert!((60..150).contains(&counts["not indexable"]), "{counts:?}");
    assert!((30..100).contains(&counts["hidden"]), "{counts:?}");
}

#[tokio::test]
async fn hidden_lists_are_empty_while_counts_and_the_lists_of_others_stay() {
    let sim = Sim::frozen(600, 7).await;
    let relations = sim.truth("user_relations").await;
    let mut checked = 0;
    for user in sim.truth("users").await {
        if user["hide_collections"] != true || user["suspended"] == true {
            continue;
        }
        let path = format!("/api/v1/accounts/{}", user["local_id"].as_str().unwrap());
        let account = sim.get(&path).await.json();
        let own: Vec<&Value> = relations
            .iter()
            .filter(|edge| edge["source"] == user["id"])
            .collect();
        assert_eq!(account["following_count"], own.len());
        assert_eq!(account["hide_collections"], true);
        for list in ["following", "followers"] {
            for token in [None, Some("ann")] {
                let reply = sim.get_as(&format!("{path}/{list}"), token).await;
                assert!(reply.list().is_empty() && !reply.headers.contains_key("link"));
            }
        }
        for edge in own.iter().take(3) {
            assert_eq!(edge["in_following"], false);
            let shown = edge["in_followers"] == true;
            let other = edge["target"].as_str().unwrap().rsplit('/').next().unwrap();
            let followers = sim
                .walk(&format!("/api/v1/accounts/{other}/followers?limit=80"))
                .await;
            let is_listed = followers.iter().any(|account| account["uri"] == user["id"]);
            assert_eq!(is_listed, shown);
            checked += 1;
        }
    }
    assert!(checked > 10, "{checked}");
}
