//! The dialect of Facebook: fields, pages that are short or empty, refusals, shares of limits.

use std::collections::BTreeSet;

use kittiwake_sim::{DeclaredLimits, Dialect, Limits, SimConfig};
use serde_json::Value;

use crate::client::{AT_US, Reply, Sim, now_us};

/// A page's token; that of an application has no `/`.
const TOKEN: &str = "access_token=app/page:secret";

async fn facebook(users: u64, limits: Limits) -> Sim {
    let config = SimConfig {
        dialect: Dialect::Facebook,
        limits,
        ..SimConfig::frozen(users, 5, AT_US, now_us())
    };
    Sim::start(config).await
}

async fn ask(sim: &Sim, call: &str) -> Reply {
    ask_as(sim, TOKEN, call).await
}

async fn ask_as(sim: &Sim, token: &str, call: &str) -> Reply {
    let sign = if call.contains('?') { '&' } else { '?' };
    sim.get(&format!("/v26.0/{call}{sign}{token}")).await
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

fn keys(value: &Value) -> Vec<&str> {
    let entries = value.as_object().expect("an object");
    entries.keys().map(String::as_str).collect()
}

/// HTTP's number, and the two of the network.
fn refusal(reply: &Reply) -> (u16, u64, u64) {
    let error = &reply.json()["error"];
    assert!(error["message"].is_string() && error["fbtrace_id"].is_string());
    let number = |name: &str| error[name].as_u64().unwrap_or(0);
    (reply.status, number("code"), number("error_subcode"))
}

struct Walk {
    found: Vec<Value>,
    /// How many items each page had.
    sizes: Vec<usize>,
}

/// All pages of a list, by the addresses that they name.
async fn walk(sim: &Sim, call: &str) -> Walk {
    let mut walk = Walk {
        found: Vec::new(),
        sizes: Vec::new(),
    };
    let mut reply = ask(sim, call).await;
    for _ in 0..2_000 {
        assert_eq!(reply.status, 200, "{}", reply.text);
        let body = reply.json();
        let data = body["data"].as_array().cloned().unwrap_or_default();
        walk.sizes.push(data.len());
        walk.found.extend(data);
        let Some(next) = body["paging"]["next"].as_str() else {
            return walk;
        };
        assert!(next.contains("access_token=app%2Fpage%3Asecret"), "{next}");
        let (_, target) = next.split_once("/v26.0/").expect("a version");
        reply = sim.get(&format!("/v26.0/{target}")).await;
    }
    panic!("endless list");
}

/// Pages that are there, the one with the most to show first.
async fn pages(sim: &Sim) -> Vec<Value> {
    let mut users = sim.truth("users").await;
    users.retain(|user| user["suspended"] == false);
    users.sort_by_key(|user| std::cmp::Reverse(user["statuses"].as_u64()));
    users
}

async fn posts_of(sim: &Sim, user: &Value) -> Vec<Value> {
    let all = sim.truth("statuses").await.into_iter();
    all.filter(|status| status["author"] == user["id"])
        .collect()
}

#[tokio::test]
async fn only_the_fields_are_sent_that_were_asked_for() {
    let sim = facebook(60, Limits::Off).await;
    let user = pages(&sim).await.remove(0);
    let id = text(&user, "local_id");
    let usual = ask(&sim, id).await.json();
    assert_eq!(keys(&usual), ["id", "name"]);
    let named = ask(
        &sim,
        &format!("{}?fields=username,fan_count", text(&user, "username")),
    )
    .await;
    let named = named.json();
    assert_eq!(keys(&named), ["fan_count", "id", "username"]);
    assert_eq!(
        (text(&named, "id"), &named["fan_count"]),
        (id, &user["followers"])
    );
    let unknown = ask(&sim, &format!("{id}?fields=soul")).await;
    assert_eq!(refusal(&unknown), (400, 100, 0));
    assert!(
        unknown
            .text
            .contains("nonexisting field (soul) on node type (Page)")
    );
    assert_eq!(
        refusal(&ask(&sim, &format!("{id}?fields=from{{")).await),
        (400, 2500, 0)
    );
    let fields = "created_time,reactions.limit(0).summary(true),reactions.type(LOVE).limit(0).summary(total_count).as(love)";
    let posts = walk(&sim, &format!("{id}/posts?limit=100&fields={fields}")).await;
    assert_eq!(
        keys(&posts.found[0]),
        ["created_time", "id", "love", "reactions"]
    );
    let love = &posts.found[0]["love"];
    assert_eq!(keys(&love["summary"]), ["total_count"]);
    assert_eq!(love["data"], Value::Array(Vec::new()));
    assert_eq!(
        keys(&posts.found[0]["reactions"]["summary"]),
        ["total_count", "viewer_reaction"]
    );
}

#[tokio::test]
async fn pages_of_a_list_are_short_or_empty_in_the_middle_and_it_is_whole_all_the_same() {
    let sim = facebook(120, Limits::Off).await;
    let answers = sim.truth("threads").await;
    let answers: BTreeSet<&str> = answers.iter().map(|row| text(row, "status")).collect();
    let mut has_been_empty = false;
    for user in pages(&sim).await.iter().take(20) {
        let posts = posts_of(&sim, user).await;
        // Nobody can share a comment.
        let is_post = |post: &&Value| {
            let shared = text(post, "repost_of");
            !answers.contains(text(post, "id")) && !answers.contains(shared)
        };
        let expected: BTreeSet<String> = posts
            .iter()
            .filter(is_post)
            .map(|post| format!("{}_{}", text(user, "local_id"), text(post, "local_id")))
            .collect();
        let list = walk(&sim, &format!("{}/posts?limit=3", text(user, "local_id"))).await;
        let ids = list.found.iter().map(|post| text(post, "id").to_owned());
        let shown: BTreeSet<String> = ids.collect();
        assert_eq!(shown, expected);
        assert_eq!(shown.len(), list.found.len());
        assert_eq!(list.sizes.len(), posts.len().div_ceil(3).max(1));
        let middle = &list.sizes[..list.sizes.len() - 1];
        has_been_empty |= middle.contains(&0);
    }
    assert!(has_been_empty, "no page was empty");
}

#[tokio::test]
async fn a_page_that_is_too_much_is_refused_until_less_is_asked_for() {
    let sim = facebook(200, Limits::Off).await;
    let edges = ["LIKE", "LOVE", "CARE", "WOW", "HAHA", "SAD", "ANGRY"];
    let edges = edges.map(|kind| format!("reactions.type({kind}).limit(0).summary(1).as({kind})"));
    let fields = format!(
        "id,message,{},comments.limit(0).summary(1)",
        edges.join(",")
    );
    let (mut refused, mut answered) = (0, 0);
    for user in pages(&sim).await {
        let call = format!("{}/posts?fields={fields}&limit=", text(&user, "local_id"));
        let whole = ask(&sim, &format!("{call}100")).await;
        if whole.status == 200 {
            answered += 1;
            continue;
        }
        refused += 1;
        assert_eq!(refusal(&whole), (500, 1, 0));
        assert!(whole.text.contains("Please reduce the amount of data"));
        assert_eq!(ask(&sim, &format!("{call}25")).await.status, 200);
    }
    assert!(refused > 0 && answered > refused, "{refused} of {answered}");
}

#[tokio::test]
async fn one_id_that_is_missing_spoils_the_call_and_fifty_are_the_most() {
    let sim = facebook(120, Limits::Off).await;
    let users = pages(&sim).await;
    let ids: Vec<&str> = users.iter().map(|user| text(user, "local_id")).collect();
    let fifty = ask(&sim, &format!("?ids={}", ids[..50].join(","))).await;
    assert_eq!(
        (fifty.status, fifty.json().as_object().unwrap().len()),
        (200, 50)
    );
    let more = ask(&sim, &format!("?ids={}", ids[..51].join(","))).await;
    assert_eq!(refusal(&more), (400, 100, 0));
    let everybody = sim.truth("users").await;
    let gone = everybody
        .iter()
        .find(|user| user["suspended"] == true)
        .unwrap();
    let gone = text(gone, "local_id");
    let spoilt = ask(&sim, &format!("?ids={},{gone}", ids[..9].join(","))).await;
    assert_eq!(refusal(&spoilt), (400, 100, 33));
    assert!(spoilt.text.contains(gone));
    assert_eq!(refusal(&ask(&sim, "nobody.at.all").await), (404, 803, 0));
    assert_eq!(refusal(&ask(&sim, "?ids=").await), (400, 100, 0));
}

#[tokio::test]
async fn comments_lie_in_two_levels_and_their_authors_are_for_pages_alone() {
    let sim = facebook(120, Limits::Off).await;
    let statuses = sim.truth("statuses").await;
    let users = sim.truth("users").await;
    let of = |uri: &str| users.iter().find(|user| text(user, "id") == uri).unwrap();
    let (mut shown, mut hidden, mut second_level) = (0, 0, 0);
    let own = statuses
        .iter()
        .filter(|it| it["reply_to"].is_null() && it["repost_of"].is_null());
    for status in own.filter(|it| it["replies"] != 0).take(150) {
        let author = of(text(status, "author"));
        let id = format!("{}_{}", text(author, "local_id"), text(status, "local_id"));
        let fields = "fields=from,parent,comment_count&summary=1&limit=4";
        let call = format!("{id}/comments?filter=stream&order=reverse_chronological&{fields}");
        let first = ask(&sim, &call).await;
        if first.status != 200 {
            // It answered something that is gone.
            assert_eq!(refusal(&first), (400, 100, 33));
            continue;
        }
        let list = walk(&sim, &call).await;
        shown += list.found.len() as u64;
        let total = first.json()["summary"]["total_count"].as_u64().unwrap();
        hidden += total - list.found.len() as u64;
        for comment in &list.found {
            let (post, _) = text(comment, "id").split_once('_').unwrap();
            assert_eq!(post, text(status, "local_id"));
            let name = text(&comment["from"], "id");
            let author = users.iter().find(|user| text(user, "local_id") == name);
            assert_eq!(author.unwrap()["locked"], false);
            second_level += u64::from(!comment["parent"].is_null());
        }
        let top = walk(
            &sim,
            &format!("{id}/comments?limit=2&fields=parent,comment_count"),
        )
        .await;
        assert!(top.found.iter().all(|comment| comment["parent"].is_null()));
        if let Some(first) = top.found.iter().find(|it| it["comment_count"] != 0) {
            let below = walk(
                &sim,
                &format!("{}/comments?fields=parent", text(first, "id")),
            )
            .await;
            assert!(
                below
                    .found
                    .iter()
                    .all(|it| it["parent"]["id"] == first["id"])
            );
        }
        let as_application = ask_as(&sim, "access_token=app", &call).await.json();
        let told = as_application["data"].as_array().unwrap();
        assert!(told.iter().all(|comment| comment["from"].is_null()));
    }
    assert!(
        shown > 50 && hidden > 0 && second_level > 5,
        "{shown} {hidden} {second_level}"
    );
}

#[tokio::test]
async fn albums_hold_the_photos_of_posts() {
    let sim = facebook(60, Limits::Off).await;
    for user in pages(&sim).await.iter().take(5) {
        let id = text(user, "local_id");
        let albums = walk(&sim, &format!("{id}/albums?fields=name,count,type&limit=1")).await;
        let mut photos = BTreeSet::new();
        for album in &albums.found {
            let call = format!(
                "{}/photos?fields=page_story_id,album&limit=2",
                text(album, "id")
            );
            let list = walk(&sim, &call).await;
            assert_eq!(album["count"], list.found.len());
            photos.extend(list.found.iter().map(|photo| text(photo, "id").to_owned()));
        }
        let uploaded = walk(&sim, &format!("{id}/photos?type=uploaded&limit=3")).await;
        let uploaded: BTreeSet<String> = uploaded
            .found
            .iter()
            .map(|photo| text(photo, "id").to_owned())
            .collect();
        assert_eq!(photos, uploaded);
        let media: u64 = posts_of(&sim, user)
            .await
            .iter()
            .filter(|post| post["reply_to"].is_null())
            .filter_map(|post| post["media"].as_u64())
            .sum();
        assert!(
            photos.len() as u64 <= media + 1,
            "{} of {media}",
            photos.len()
        );
    }
}

#[tokio::test]
async fn tokens_are_refused_in_the_words_of_the_network() {
    let sim = facebook(60, Limits::Off).await;
    let user = pages(&sim).await.remove(0);
    let id = text(&user, "local_id");
    assert_eq!(
        refusal(&sim.get(&format!("/v26.0/{id}")).await),
        (400, 104, 0)
    );
    for (token, told) in [("bad", (400, 190, 0)), ("revoked", (400, 190, 460))] {
        let reply = ask_as(&sim, &format!("access_token={token}"), id).await;
        assert_eq!(refusal(&reply), told, "{token}");
    }
    let narrow = "access_token=narrow/page:secret";
    assert_eq!(
        ask_as(&sim, narrow, &format!("{id}/posts")).await.status,
        200
    );
    let feed = ask_as(&sim, narrow, &format!("{id}/feed")).await;
    assert_eq!(refusal(&feed), (403, 10, 0));
    let albums = ask_as(&sim, narrow, &format!("{id}/albums")).await;
    assert_eq!(refusal(&albums), (403, 200, 0));
    assert_eq!(
        refusal(&ask_as(&sim, "access_token=app", "me").await),
        (400, 2500, 0)
    );
    let me = ask_as(&sim, &format!("access_token=app/{id}"), "me").await;
    assert_eq!(text(&me.json(), "id"), id);
    assert_eq!(
        refusal(&ask(&sim, &format!("{id}/friends")).await),
        (400, 2500, 0)
    );
}

#[tokio::test]
async fn what_is_used_is_told_in_percent_and_each_id_counts() {
    let limits =
        include_str!("../../src/facebook/limits.toml").replace("limit = 2000", "limit = 80");
    let limits = DeclaredLimits::parse_for(&limits, Dialect::Facebook).unwrap();
    let sim = facebook(120, Limits::Declared(limits)).await;
    let users = pages(&sim).await;
    let ids: Vec<&str> = users.iter().map(|user| text(user, "local_id")).collect();
    let application = "access_token=app";
    let usage = |reply: &Reply| -> Value {
        let told = reply.headers.get("x-app-usage").expect("a header");
        serde_json::from_str(told).expect("JSON")
    };
    let first = ask_as(&sim, application, ids[0]).await;
    assert_eq!(usage(&first)["call_count"], 1);
    let forty = ask_as(&sim, application, &format!("?ids={}", ids[..39].join(","))).await;
    let told = usage(&forty);
    assert_eq!(keys(&told), ["call_count", "total_cputime", "total_time"]);
    assert_eq!(told["call_count"], 50);
    let rest = ask_as(&sim, application, &format!("?ids={}", ids[..40].join(","))).await;
    assert_eq!(usage(&rest)["call_count"], 100);
    let refused = ask_as(&sim, application, ids[0]).await;
    assert_eq!(refusal(&refused), (403, 4, 0));
    // A page's token is counted for itself, and told in another way.
    for _ in 0..48 {
        ask(&sim, ids[0]).await;
    }
    let reply = ask(&sim, ids[0]).await;
    assert!(!reply.headers.contains_key("x-app-usage"));
    let told = &reply.headers["x-business-use-case-usage"];
    let told: Value = serde_json::from_str(told).expect("JSON");
    assert_eq!(told["1"][0]["call_count"], 1);
    assert_eq!(told["1"][0]["type"], "pages");
    assert_eq!(told["1"][0]["estimated_time_to_regain_access"], 0);
}
