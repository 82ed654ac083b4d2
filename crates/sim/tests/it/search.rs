//! Searching.

use serde_json::Value;

use crate::client::{Sim, ids};

async fn found(sim: &Sim, query: &str, token: Option<&str>) -> Value {
    let reply = sim.get_as(&format!("/api/v2/search?{query}"), token).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}

fn accts(results: &Value) -> Vec<String> {
    let accounts = results["accounts"].as_array().unwrap().iter();
    accounts
        .map(|account| account["acct"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn accounts_are_found_by_the_beginning_of_handle_or_display_name() {
    let sim = Sim::frozen(900, 5).await;
    let users = sim.truth("users").await;
    for beginning in ["quiet", "Quiet_p", "mossy"] {
        let lower = beginning.to_lowercase();
        let mut expected: Vec<&str> = users
            .iter()
            .filter(|user| user["searchable"] == true)
            .filter(|user| {
                let begins = |key: &str| {
                    let name = user[key].as_str().unwrap().to_lowercase();
                    name.starts_with(&lower)
                };
                begins("acct") || begins("display_name")
            })
            .map(|user| user["acct"].as_str().unwrap())
            .collect();
        expected.sort_unstable();
        assert!(!expected.is_empty());
        let mut walked = Vec::new();
        loop {
            let query = format!(
                "q={beginning}&type=accounts&limit=5&offset={}",
                walked.len()
            );
            let page = accts(&found(&sim, &query, Some("ann")).await);
            if page.is_empty() {
                break;
            }
            walked.extend(page);
        }
        walked.sort_unstable();
        assert_eq!(walked, expected);
    }
    let name = users[17]["acct"].as_str().unwrap();
    for query in [
        name.to_owned(),
        format!("@{name}"),
        format!("{name}@sim.example"),
    ] {
        let results = found(&sim, &format!("q={query}"), None).await;
        let is_shown = users[17]["suspended"] == false;
        assert_eq!(
            accts(&results).first().map(String::as_str) == Some(name),
            is_shown
        );
    }
    let elsewhere = found(&sim, &format!("q={name}@other.example"), None).await;
    assert!(accts(&elsewhere).is_empty());
}

#[tokio::test]
async fn those_who_are_not_signed_in_may_not_page_or_resolve_and_find_no_posts() {
    let sim = Sim::frozen(300, 5).await;
    for (query, error) in [
        ("q=quiet&offset=20", "pagination is not supported"),
        ("q=quiet&offset=0", "pagination is not supported"),
        ("q=quiet&resolve=true", "resolve remote resources"),
    ] {
        let target = format!("/api/v2/search?{query}");
        let refused = sim.get(&target).await;
        assert_eq!(refused.status, 401, "{query}");
        let text = refused.json()["error"].as_str().unwrap().to_owned();
        assert!(text.contains(error), "{text}");
        assert_eq!(sim.get_as(&target, Some("ann")).await.status, 200);
    }
    for query in ["", "q=", "q=%20", "type=accounts"] {
        let target = format!("/api/v2/search?{query}");
        assert_eq!(sim.get(&target).await.status, 400, "{query}");
    }
    for query in ["q=a&limit=-1", "q=a&offset=-1"] {
        let target = format!("/api/v2/search?{query}");
        assert_eq!(sim.get_as(&target, Some("ann")).await.status, 400);
    }
    let results = found(&sim, "q=terns&type=statuses&resolve=0", None).await;
    assert!(results["statuses"].as_array().unwrap().is_empty());
    for key in ["accounts", "statuses", "hashtags", "collections"] {
        assert!(results[key].is_array(), "{key}");
    }
}

#[tokio::test]
async fn posts_are_found_by_their_words_as_the_truth_says() {
    let sim = Sim::frozen(300, 5).await;
    let statuses = sim.truth("statuses").await;
    let mut expected: Vec<String> = statuses
        .iter()
        .filter(|row| row["searchable"] == true)
        .filter(|row| {
            let text = row["content"].as_str().unwrap().to_lowercase();
            text.contains("terns") && text.contains("morning")
        })
        .map(|row| row["local_id"].as_str().unwrap().to_owned())
        .collect();
    expected.sort_unstable_by(|one, other| other.cmp(one));
    assert!(expected.len() > 3);
    let query = "q=Terns%20morning&type=statuses&limit=40";
    let results = found(&sim, query, Some("ann")).await;
    assert_eq!(ids(results["statuses"].as_array().unwrap()), expected);
    assert!(accts(&results).is_empty());
    let second = found(&sim, &format!("{query}&offset=2"), Some("ann")).await;
    assert_eq!(ids(second["statuses"].as_array().unwrap()), expected[2..]);
}

#[tokio::test]
async fn tags_are_found_with_their_history() {
    let sim = Sim::frozen(300, 5).await;
    let results = found(&sim, "q=%23mA&type=hashtags", None).await;
    let tags = results["hashtags"].as_array().unwrap();
    let names: Vec<&str> = tags
        .iter()
        .map(|tag| tag["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["maps", "mastoart"]);
    assert!(tags[0].get("following").is_none());
    let birds = &found(&sim, "q=birds", Some("ann")).await["hashtags"][0];
    assert_eq!(
        (&birds["name"], &birds["following"]),
        (&"birds".into(), &false.into())
    );
    let history = birds["history"].as_array().unwrap();
    assert_eq!(history.len(), 7);
    let mut uses = 0;
    for day in history {
        let number = |key: &str| day[key].as_str().unwrap().parse::<u64>().unwrap();
        assert_eq!(number("day") % 86_400, 0);
        assert!(number("accounts") <= number("uses"));
        uses += number("uses");
    }
    let oldest_s: u64 = history[6]["day"].as_str().unwrap().parse().unwrap();
    let timeline = sim.walk("/api/v1/timelines/tag/birds?limit=40").await;
    let statuses = sim.truth("statuses").await;
    let young = timeline.iter().filter(|status| {
        let row = statuses.iter().find(|row| row["local_id"] == status["id"]);
        row.unwrap()["created_us"].as_u64().unwrap() >= oldest_s * 1_000_000
    });
    assert_eq!(young.count() as u64, uses);
    assert!(uses > 3);
}

#[tokio::test]
async fn the_server_says_enough_about_itself() {
    let sim = Sim::frozen(300, 5).await;
    let instance = sim.get("/api/v2/instance").await.json();
    for pointer in [
        "/domain",
        "/title",
        "/version",
        "/source_url",
        "/description",
        "/usage/users/active_month",
        "/languages/0",
        "/configuration/urls/streaming",
        "/configuration/accounts/max_featured_tags",
        "/configuration/statuses/max_characters",
        "/configuration/timelines_access/hashtag_feeds/local",
        "/registrations/enabled",
        "/contact/email",
        "/rules/0/text",
    ] {
        assert!(instance.pointer(pointer).is_some(), "{pointer}");
    }
}
