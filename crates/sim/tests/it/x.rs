//! The dialect of X: fields, pages, refusals and limits as the network's documentation has them.

use std::collections::BTreeSet;

use kittiwake_sim::{DeclaredLimits, Dialect, Limits, SimConfig};
use serde_json::Value;

use crate::client::{AT_US, Reply, Sim, now_us};

const APP: &str = "lab";
const POST_FIELDS: &str = "tweet.fields=created_at,author_id,conversation_id,referenced_tweets,\
                           public_metrics,in_reply_to_user_id,entities,lang";

async fn start(users: u64, limits: Limits) -> Sim {
    let mut config = SimConfig::frozen(users, 5, AT_US, now_us());
    config.dialect = Dialect::X;
    config.limits = limits;
    Sim::start(config).await
}

async fn get(sim: &Sim, target: &str) -> Reply {
    sim.get_as(target, Some(APP)).await
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

/// Everybody of a standing: shown, protected, suspended, gone.
struct People {
    users: Vec<Value>,
}

impl People {
    async fn of(sim: &Sim) -> Self {
        Self {
            users: sim.truth("users").await,
        }
    }

    fn one(&self, is_it: impl Fn(&Value) -> bool) -> &Value {
        self.users.iter().find(|user| is_it(user)).unwrap()
    }

    fn id(&self, is_it: impl Fn(&Value) -> bool) -> &str {
        text(self.one(is_it), "local_id")
    }

    fn open(&self) -> &Value {
        self.one(|user| {
            user["suspended"] == false
                && user["locked"] == false
                && user["statuses"].as_u64() > Some(20)
                && user["followers"].as_u64() > Some(5)
        })
    }
}

fn is_protected(user: &Value) -> bool {
    user["locked"] == true && user["suspended"] == false && user["following"].as_u64() > Some(0)
}

fn is_suspended(user: &Value) -> bool {
    user["suspended"] == true && user["gone"] == false
}

/// The id of a post here: its millisecond since 2010, and its author's number.
fn post_id(status: &Value) -> String {
    let at_ms = status["created_us"].as_u64().unwrap() / 1_000;
    let number = text(status, "local_id").parse::<u64>().unwrap();
    let user = (number >> 5) & ((1 << 22) - 1);
    (((at_ms - 1_288_834_974_657) << 22) | user).to_string()
}

#[tokio::test]
async fn only_what_is_asked_for_is_shown() {
    let sim = start(200, Limits::Off).await;
    let people = People::of(&sim).await;
    let id = text(people.open(), "local_id");
    let bare = get(&sim, &format!("/2/users/{id}")).await.json();
    assert_eq!(keys(&bare), BTreeSet::from(["data"]));
    assert_eq!(
        keys(&bare["data"]),
        BTreeSet::from(["id", "name", "username"])
    );
    let more = get(
        &sim,
        &format!("/2/users/{id}?user.fields=protected,public_metrics"),
    )
    .await;
    let data = &more.json()["data"];
    assert_eq!(data["protected"], false);
    assert_eq!(
        data["public_metrics"]["followers_count"],
        people.open()["followers"]
    );
    let page = get(&sim, &format!("/2/users/{id}/tweets?max_results=100"))
        .await
        .json();
    assert_eq!(
        keys(&page["data"][0]),
        BTreeSet::from(["edit_history_tweet_ids", "id", "text"])
    );
    assert!(page.get("includes").is_none());
    let wide = format!("/2/users/{id}/tweets?max_results=100&{POST_FIELDS}&expansions=author_id");
    let page = get(&sim, &wide).await.json();
    assert_eq!(keys(&page["includes"]), BTreeSet::from(["users"]));
    assert_eq!(page["includes"]["users"].as_array().unwrap().len(), 1);
    assert_eq!(page["includes"]["users"][0]["id"], id);
    assert_eq!(page["data"][0]["author_id"], id);
    let newest = page["data"].as_array().unwrap();
    assert_eq!(page["meta"]["result_count"], newest.len());
    assert_eq!(page["meta"]["newest_id"], newest[0]["id"]);
}

#[tokio::test]
async fn what_is_not_valid_is_refused_in_the_networks_words() {
    let sim = start(100, Limits::Off).await;
    let people = People::of(&sim).await;
    let id = text(people.open(), "local_id");
    let many = (1..=101)
        .map(|id| id.to_string())
        .collect::<Vec<_>>()
        .join(",");
    for (target, words) in [
        (
            format!("/2/users/{id}/tweets?max_results=4"),
            "The `max_results` query parameter value [4] is not between 5 and 100",
        ),
        (
            format!("/2/users/{id}/followers?max_results=1001"),
            "The `max_results` query parameter value [1001] is not between 1 and 1000",
        ),
        (
            format!("/2/users?ids={many}"),
            "The number of values in the `ids` query parameter list [101] is not between 1 and 100",
        ),
        (
            format!("/2/users?ids={id},x"),
            "The `ids` query parameter value [x] is not valid",
        ),
        (
            "/2/tweets?ids=".to_owned(),
            "The `ids` query parameter value [] is not valid",
        ),
        (
            format!("/2/users/{id}/tweets?user.fields=shoe_size"),
            "The `user.fields` query parameter value [shoe_size] is not one of",
        ),
        (
            format!("/2/users/{id}?max_results=10"),
            "The query parameter [max_results] is not one of",
        ),
        (
            format!("/2/users/{id}/following?pagination_token=abc"),
            "The `pagination_token` query parameter value [abc] is not valid",
        ),
        (
            "/2/users/12%2f3".to_owned(),
            "The `id` query parameter value",
        ),
        (
            "/2/tweets/search/recent?query=is:retweet".to_owned(),
            "at least one positive",
        ),
        (
            "/2/tweets/search/recent?query=a&start_time=2006-03-21T00:00:00Z".to_owned(),
            "'start_time' must be on or after 2026-09-14",
        ),
        (
            format!("/2/tweets/search/recent?query={}", "a".repeat(513)),
            "length [513] is not between 1 and 512",
        ),
    ] {
        let reply = get(&sim, &target).await;
        assert_eq!(reply.status, 400, "{target}");
        let body = reply.json();
        assert_eq!(body["title"], "Invalid Request", "{target}");
        let message = text(&body["errors"][0], "message");
        assert!(message.contains(words), "{target}: {message}");
    }
    assert_eq!(get(&sim, "/2/nothing").await.status, 404);
}

#[tokio::test]
async fn who_is_missing_is_named_with_the_reason() {
    let sim = start(300, Limits::Off).await;
    let people = People::of(&sim).await;
    let open = text(people.open(), "local_id");
    let suspended = people.id(is_suspended);
    let gone = people.id(|user| user["gone"] == true);
    let protected = people.id(is_protected);
    let target = format!("/2/users?ids={open},{suspended},{gone},{protected},7");
    let reply = get(&sim, &target).await;
    assert_eq!(reply.status, 200);
    let body = reply.json();
    assert_eq!(body["data"].as_array().unwrap().len(), 2);
    let errors = body["errors"].as_array().unwrap();
    let told: Vec<(&str, &str, &str)> = errors
        .iter()
        .map(|error| {
            let kind = text(error, "type").rsplit('/').next().unwrap();
            (text(error, "resource_id"), text(error, "title"), kind)
        })
        .collect();
    assert_eq!(
        told,
        [
            (suspended, "Forbidden", "resource-not-found"),
            (gone, "Not Found Error", "resource-not-found"),
            ("7", "Not Found Error", "resource-not-found"),
        ]
    );
    for list in ["tweets", "followers", "following"] {
        let body = get(&sim, &format!("/2/users/{protected}/{list}"))
            .await
            .json();
        let error = &body["errors"][0];
        assert!(
            text(error, "type").ends_with("/not-authorized-for-resource"),
            "{body}"
        );
        assert!(body.get("data").is_none() && body.get("meta").is_none());
    }
    let nobody = get(&sim, "/2/users/by/username/nobody_at_all").await;
    assert_eq!(nobody.status, 200);
    assert_eq!(nobody.json()["errors"][0]["parameter"], "username");
}

/// Follows tokens from a first page to the end.
async fn walk(sim: &Sim, first: &str) -> Vec<Value> {
    let (mut items, mut token) = (Vec::new(), String::new());
    for _ in 0..1_000 {
        let name = if first.contains("/search/") {
            "next_token"
        } else {
            "pagination_token"
        };
        let more = if token.is_empty() {
            String::new()
        } else {
            format!("&{name}={token}")
        };
        let reply = get(sim, &format!("{first}{more}")).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let page = reply.json();
        let data = page["data"].as_array().cloned().unwrap_or_default();
        assert_eq!(page["meta"]["result_count"], data.len());
        items.extend(data);
        text(&page["meta"], "next_token").clone_into(&mut token);
        if token.is_empty() {
            return items;
        }
    }
    panic!("endless pages");
}

#[tokio::test]
async fn walks_show_what_is_true_and_nothing_twice() {
    let sim = start(150, Limits::Off).await;
    let people = People::of(&sim).await;
    let open = people.open();
    let id = text(open, "local_id");
    for (list, counted) in [("followers", "followers"), ("following", "following")] {
        let found = walk(&sim, &format!("/2/users/{id}/{list}?max_results=3")).await;
        let unique: BTreeSet<&str> = found.iter().map(|user| text(user, "id")).collect();
        assert_eq!(unique.len() as u64, open[counted].as_u64().unwrap());
        assert_eq!(unique.len(), found.len());
    }
    let statuses = sim.truth("statuses").await;
    let locked: BTreeSet<&str> = people
        .users
        .iter()
        .filter(|user| user["locked"] == true)
        .map(|user| text(user, "id"))
        .collect();
    let authors: std::collections::BTreeMap<&str, &str> = statuses
        .iter()
        .map(|status| (text(status, "id"), text(status, "author")))
        .collect();
    let is_shown = |status: &Value| {
        let repeated = authors.get(text(status, "repost_of"));
        !repeated.is_some_and(|author| locked.contains(author))
    };
    let expected: BTreeSet<String> = statuses
        .iter()
        .filter(|status| status["author"] == open["id"] && is_shown(status))
        .map(post_id)
        .collect();
    let first = format!("/2/users/{id}/tweets?max_results=7&{POST_FIELDS}");
    let found = walk(&sim, &first).await;
    let ids: Vec<String> = found
        .iter()
        .map(|post| text(post, "id").to_owned())
        .collect();
    assert_eq!(ids.len(), expected.len());
    assert_eq!(ids.iter().cloned().collect::<BTreeSet<_>>(), expected);
    let mut sorted = ids.clone();
    sorted.sort_by_key(|id| std::cmp::Reverse(id.parse::<u64>().unwrap()));
    assert_eq!(ids, sorted, "newest first");
    let since = &ids[3];
    let newer = walk(&sim, &format!("{first}&since_id={since}")).await;
    assert_eq!(newer.len(), 3);
}

#[tokio::test]
async fn a_conversation_is_found_by_its_first_post_and_an_answer_by_what_it_answers() {
    let sim = start(150, Limits::Off).await;
    let people = People::of(&sim).await;
    let locked: BTreeSet<&str> = people
        .users
        .iter()
        .filter(|user| user["locked"] == true)
        .map(|user| text(user, "id"))
        .collect();
    let statuses = sim.truth("statuses").await;
    let week_us = 7 * 86_400_000_000_i64;
    let mut seen = 0;
    for parent in statuses
        .iter()
        .filter(|status| {
            status["replies"].as_u64() > Some(1)
                && status["created_us"].as_i64() > Some(AT_US - week_us + 1)
        })
        .take(10)
    {
        let id = post_id(parent);
        let expected: BTreeSet<String> = statuses
            .iter()
            .filter(|status| {
                status["reply_to"] == parent["id"] && !locked.contains(text(status, "author"))
            })
            .map(post_id)
            .collect();
        let query =
            format!("/2/tweets/search/recent?max_results=100&query=in_reply_to_tweet_id:{id}");
        let found: BTreeSet<String> = walk(&sim, &query)
            .await
            .iter()
            .map(|post| text(post, "id").to_owned())
            .collect();
        assert_eq!(found, expected);
        let query = format!(
            "/2/tweets/search/recent?max_results=10&{POST_FIELDS}&query=conversation_id:{id}"
        );
        let below = walk(&sim, &query).await;
        assert!(below.iter().all(|post| text(post, "conversation_id") == id));
        if parent["reply_to"].is_null() && !below.is_empty() {
            let below: BTreeSet<String> = below
                .iter()
                .map(|post| text(post, "id").to_owned())
                .collect();
            assert!(expected.is_subset(&below));
        }
        seen += found.len();
    }
    assert!(seen > 5, "{seen}");
}

#[tokio::test]
async fn searches_find_words_tags_and_authors_and_counts_count_them() {
    let sim = start(150, Limits::Off).await;
    let people = People::of(&sim).await;
    let name = text(people.open(), "username");
    let recent = "/2/tweets/search/recent?max_results=100";
    let of_name = walk(&sim, &format!("{recent}&{POST_FIELDS}&query=from:{name}")).await;
    let id = text(people.open(), "local_id");
    assert!(!of_name.is_empty());
    assert!(of_name.iter().all(|post| post["author_id"] == id));
    let own = walk(&sim, &format!("{recent}&query=from:{name}%20-is:retweet")).await;
    assert!(own.len() <= of_name.len());
    let tagged = walk(
        &sim,
        &format!("{recent}&{POST_FIELDS}&query=%23birds%20-is:retweet"),
    )
    .await;
    assert!(!tagged.is_empty());
    for post in &tagged {
        let tags = post["entities"]["hashtags"].as_array().unwrap();
        assert!(
            tags.iter()
                .any(|tag| text(tag, "tag").eq_ignore_ascii_case("birds")),
            "{post}"
        );
    }
    let counts = "/2/tweets/counts/recent?granularity=day&query=%23birds%20-is:retweet";
    let counts = get(&sim, counts).await.json();
    assert_eq!(counts["meta"]["total_tweet_count"], tagged.len());
    let days = counts["data"].as_array().unwrap();
    assert_eq!(
        days.len(),
        8,
        "seven days, of which the first and the last are not whole"
    );
    let sum: u64 = days
        .iter()
        .map(|day| day["tweet_count"].as_u64().unwrap())
        .sum();
    assert_eq!(sum, tagged.len() as u64);
    let all = "/2/tweets/counts/all?granularity=day&query=birds&start_time=2026-08-01T00:00:00Z";
    let first = get(&sim, all).await.json();
    let token = text(&first["meta"], "next_token");
    assert_eq!(first["data"].as_array().unwrap().len(), 31);
    let second = get(&sim, &format!("{all}&next_token={token}")).await.json();
    assert_eq!(second["data"].as_array().unwrap().len(), 21);
    assert!(second["meta"].get("next_token").is_none());
}

#[tokio::test]
async fn tokens_are_told_apart_and_refused_in_the_networks_words() {
    let sim = start(100, Limits::Off).await;
    let people = People::of(&sim).await;
    let open = people.open();
    let (id, name) = (text(open, "local_id"), text(open, "username"));
    let ask = async |path: String, token: &str| sim.get_as(&path, Some(token)).await;
    for token in ["bad", "revoked"] {
        let reply = ask(format!("/2/users/{id}"), token).await;
        assert_eq!(reply.status, 401);
        assert_eq!(reply.json()["title"], "Unauthorized");
    }
    assert_eq!(sim.get(&format!("/2/users/{id}")).await.status, 401);
    assert_eq!(
        ask(format!("/2/users/{id}/followers"), "narrow")
            .await
            .status,
        403
    );
    assert_eq!(
        ask(format!("/2/users/{id}/tweets"), "narrow").await.status,
        200
    );
    let app_only = ask("/2/users/me".to_owned(), APP).await;
    assert_eq!(app_only.status, 403);
    assert!(text(&app_only.json(), "type").ends_with("/unsupported-authentication"));
    let owner = format!("lab/{name}:phone");
    let me = ask("/2/users/me".to_owned(), &owner).await;
    assert_eq!(me.json()["data"]["id"], id);
    assert_eq!(
        ask(format!("/2/users/{id}/liked_tweets"), &owner)
            .await
            .status,
        200
    );
    assert_eq!(
        ask(format!("/2/users/{id}/liked_tweets"), "lab/else:a")
            .await
            .status,
        403
    );
    assert_eq!(ask("/2/usage/tweets".to_owned(), &owner).await.status, 403);
}

#[tokio::test]
async fn apps_and_users_have_limits_of_their_own() {
    let sim = start(50, Limits::Strict).await;
    let path = "/2/users?ids=1";
    for (token, limit) in [("lab", "300"), ("lab/ann:a", "900"), ("lab/bob:a", "900")] {
        let reply = sim.get_as(path, Some(token)).await;
        assert_eq!(reply.headers["x-rate-limit-limit"], limit);
        let left: u64 = reply.headers["x-rate-limit-remaining"].parse().unwrap();
        assert_eq!(left + 1, limit.parse::<u64>().unwrap());
        let reset: i64 = reply.headers["x-rate-limit-reset"].parse().unwrap();
        assert!(reset > now_us() / 1_000_000 + 800);
    }
    for _ in 0..74 {
        sim.get_as("/2/tweets/1/retweeted_by", Some("lab")).await;
    }
    assert_eq!(
        sim.get_as("/2/tweets/1/liking_users", Some("lab"))
            .await
            .status,
        403
    );
    let reply = sim.get_as("/2/tweets/1/retweeted_by", Some("lab")).await;
    assert_eq!(reply.status, 200);
    let reply = sim.get_as("/2/tweets/1/retweeted_by", Some("lab")).await;
    assert_eq!(
        (reply.status, text(&reply.json(), "type")),
        (429, "about:blank")
    );
}

#[tokio::test]
async fn the_cap_of_a_month_counts_posts_and_is_told() {
    let text_of = "[[bucket]]\nname = \"cap\"\nscope = \"app\"\nqueries = [\"timeline\"]\nkind = \"monthly\"\n\
                   time_zone = \"UTC\"\nlimit = 12\ncost = { timeline = 0 }\nitem_cost = 1\n\
                   refusal = { status = 429, body = '{\"title\":\"UsageCapExceeded\"}' }\n";
    let limits = DeclaredLimits::parse_for(text_of, Dialect::X).unwrap();
    let sim = start(100, Limits::Declared(limits)).await;
    let people = People::of(&sim).await;
    let id = text(people.open(), "local_id");
    let usage = async || get(&sim, "/2/usage/tweets").await.json()["data"].clone();
    assert_eq!(usage().await["project_usage"], "0");
    for used in ["10", "20"] {
        let reply = get(&sim, &format!("/2/users/{id}/tweets?max_results=10")).await;
        assert_eq!(reply.status, 200);
        assert_eq!(
            usage().await["project_usage"],
            if used == "20" { "12" } else { used }
        );
    }
    let reply = get(&sim, &format!("/2/users/{id}/tweets?max_results=10")).await;
    assert_eq!(
        (reply.status, text(&reply.json(), "title")),
        (429, "UsageCapExceeded")
    );
}
