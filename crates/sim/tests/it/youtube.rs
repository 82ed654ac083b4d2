//! The dialect of YouTube: parts, pages, marks, refusals and units.

use std::collections::BTreeSet;

use kittiwake_sim::{Dialect, Limits, SimConfig};
use serde_json::Value;

use crate::client::{AT_US, Reply, Sim, now_us};

const KEY: &str = "key=k";

async fn youtube(users: u64, limits: Limits) -> Sim {
    let config = SimConfig {
        dialect: Dialect::YouTube,
        limits,
        ..SimConfig::frozen(users, 5, AT_US, now_us())
    };
    Sim::start(config).await
}

async fn ask(sim: &Sim, call: &str) -> Reply {
    let sign = if call.contains('?') { '&' } else { '?' };
    sim.get(&format!("/youtube/v3/{call}{sign}{KEY}")).await
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

fn items(reply: &Reply) -> Vec<Value> {
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()["items"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

fn reason(reply: &Reply) -> (u16, String) {
    let body = reply.json();
    assert_eq!(body["error"]["code"], reply.status);
    let reason = text(&body["error"]["errors"][0], "reason");
    (reply.status, reason.to_owned())
}

/// All pages of a list.
async fn walk(sim: &Sim, call: &str) -> (Vec<Value>, usize) {
    let (mut found, mut token, mut pages) = (Vec::new(), String::new(), 0);
    for _ in 0..1_000 {
        let reply = ask(sim, &format!("{call}{token}")).await;
        found.extend(items(&reply));
        pages += 1;
        let body = reply.json();
        match body["nextPageToken"].as_str() {
            Some(next) => token = format!("&pageToken={next}"),
            None => return (found, pages),
        }
    }
    panic!("endless list");
}

/// Channels of some names.
async fn channels(sim: &Sim, is_wanted: impl Fn(&Value) -> bool) -> Vec<(Value, Value)> {
    let mut found = Vec::new();
    for user in sim.truth("users").await {
        if is_wanted(&user) {
            let handle = text(&user, "username");
            let call =
                format!("channels?part=snippet,contentDetails,statistics&forHandle={handle}");
            let channel = items(&ask(sim, &call).await).pop();
            found.push((user, channel.unwrap_or_default()));
        }
    }
    found
}

#[tokio::test]
async fn only_the_parts_are_sent_that_were_asked_for() {
    let sim = youtube(60, Limits::Off).await;
    let (user, channel) = channels(&sim, |user| user["suspended"] == false)
        .await
        .remove(0);
    assert_eq!(
        channel["snippet"]["customUrl"],
        format!("@{}", text(&user, "username"))
    );
    let id = text(&channel, "id");
    let bare = items(&ask(&sim, &format!("channels?part=id&id={id}")).await);
    let keys: Vec<&String> = bare[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["etag", "id", "kind"]);
    assert_eq!(
        reason(&ask(&sim, &format!("channels?id={id}")).await).0,
        400
    );
    let unknown = ask(&sim, &format!("channels?part=soul&id={id}")).await;
    assert_eq!(reason(&unknown), (400, "unknownPart".to_owned()));
    let none = ask(&sim, "channels?part=snippet").await;
    assert_eq!(reason(&none), (400, "missingRequiredParameter".to_owned()));
    assert_eq!(sim.get("/youtube/v4/channels?key=k").await.status, 404);
}

#[tokio::test]
async fn who_is_missing_is_left_out_and_a_batch_has_fifty() {
    let sim = youtube(80, Limits::Off).await;
    let all = channels(&sim, |_| true).await;
    let ids: Vec<&str> = all
        .iter()
        .map(|(_, channel)| text(channel, "id"))
        .filter(|id| !id.is_empty())
        .collect();
    let gone = all
        .iter()
        .filter(|(user, _)| user["suspended"] == true)
        .count();
    assert_eq!(ids.len() + gone, all.len());
    assert!(gone > 0);
    let call = |ids: &[&str], size: usize| {
        format!(
            "channels?part=id&maxResults={size}&id=UCnobody,{}",
            ids.join(",")
        )
    };
    assert_eq!(items(&ask(&sim, &call(&ids[..49], 50)).await).len(), 49);
    let short = ask(&sim, &call(&ids[..20], 5)).await;
    assert_eq!(items(&short).len(), 5);
    assert!(short.json()["nextPageToken"].is_string());
    let many = ask(&sim, &call(&ids[..50], 50)).await;
    assert_eq!(reason(&many), (400, "invalidFilters".to_owned()));
    let none = ask(&sim, "channels?part=id&id=UCnobody").await.json();
    assert!(none.get("items").is_none() && none["pageInfo"]["totalResults"] == 0);
    let large = ask(&sim, "channels?part=id&id=UCnobody&maxResults=51").await;
    assert_eq!(reason(&large), (400, "invalidParameter".to_owned()));
}

#[tokio::test]
async fn uploads_are_walked_newest_first_and_each_is_a_video() {
    let sim = youtube(60, Limits::Off).await;
    let all = channels(&sim, |user| user["suspended"] == false).await;
    let (_, channel) = all
        .iter()
        .max_by_key(|(_, channel)| {
            text(&channel["statistics"], "videoCount")
                .parse::<u64>()
                .unwrap()
        })
        .unwrap();
    let uploads = text(&channel["contentDetails"]["relatedPlaylists"], "uploads");
    let count: usize = text(&channel["statistics"], "videoCount").parse().unwrap();
    let call =
        format!("playlistItems?part=snippet,contentDetails&maxResults=7&playlistId={uploads}");
    let (found, pages) = walk(&sim, &call).await;
    assert_eq!((found.len(), pages), (count, count.div_ceil(7)));
    let times: Vec<&str> = found
        .iter()
        .map(|item| text(&item["contentDetails"], "videoPublishedAt"))
        .collect();
    assert!(times.is_sorted_by(|one, other| one >= other));
    let places: Vec<u64> = found
        .iter()
        .filter_map(|item| item["snippet"]["position"].as_u64())
        .collect();
    assert_eq!(places, (0..count as u64).collect::<Vec<_>>());
    let ids: Vec<&str> = found
        .iter()
        .take(50)
        .map(|item| text(&item["contentDetails"], "videoId"))
        .collect();
    let videos = items(&ask(&sim, &format!("videos?part=snippet&id={}", ids.join(","))).await);
    assert_eq!(
        videos
            .iter()
            .map(|video| text(video, "id"))
            .collect::<Vec<_>>(),
        ids
    );
    let bad = ask(&sim, &format!("{call}&pageToken=nonsense")).await;
    assert_eq!(reason(&bad), (400, "invalidPageToken".to_owned()));
    let missing = ask(&sim, "playlistItems?part=snippet&playlistId=UUnobody").await;
    assert_eq!(reason(&missing), (404, "playlistNotFound".to_owned()));
}

#[tokio::test]
async fn threads_have_two_levels_and_five_answers_at_the_most() {
    let sim = youtube(200, Limits::Off).await;
    let (mut threads, mut long, mut disabled) = (0, 0, 0);
    for (user, channel) in channels(&sim, |user| user["suspended"] == false)
        .await
        .into_iter()
        .take(60)
    {
        let uploads = text(&channel["contentDetails"]["relatedPlaylists"], "uploads");
        if channel["statistics"]["videoCount"] == "0" {
            continue;
        }
        let (entries, _) = walk(
            &sim,
            &format!("playlistItems?part=contentDetails&maxResults=50&playlistId={uploads}"),
        )
        .await;
        for entry in entries.iter().take(20) {
            let id = text(&entry["contentDetails"], "videoId");
            let video =
                items(&ask(&sim, &format!("videos?part=statistics&id={id}")).await).remove(0);
            let call = format!(
                "commentThreads?part=snippet,replies&order=time&textFormat=plainText&videoId={id}"
            );
            if user["locked"] == true {
                let refused = ask(&sim, &call).await;
                assert_eq!(reason(&refused), (403, "commentsDisabled".to_owned()));
                assert!(video["statistics"].get("commentCount").is_none());
                disabled += 1;
                continue;
            }
            let (found, _) = walk(&sim, &format!("{call}&maxResults=2")).await;
            let mut comments = found.len() as u64;
            for thread in &found {
                let total = thread["snippet"]["totalReplyCount"].as_u64().unwrap();
                let inline = thread["replies"]["comments"].as_array().map_or(0, Vec::len) as u64;
                assert_eq!(inline, total.min(5));
                let parent = text(thread, "id");
                let (replies, _) = walk(
                    &sim,
                    &format!("comments?part=snippet&maxResults=2&parentId={parent}"),
                )
                .await;
                assert_eq!(replies.len() as u64, total);
                assert!(
                    replies
                        .iter()
                        .all(|reply| reply["snippet"]["parentId"] == parent)
                );
                comments += total;
                long += usize::from(total > 0);
            }
            threads += found.len();
            assert_eq!(video["statistics"]["commentCount"], comments.to_string());
        }
    }
    assert!(
        threads > 30 && long > 3 && disabled > 3,
        "{threads} {long} {disabled}"
    );
    let missing = ask(&sim, "commentThreads?part=snippet&videoId=AAAAAAAAAAA").await;
    assert_eq!(reason(&missing), (404, "videoNotFound".to_owned()));
}

#[tokio::test]
async fn subscriptions_are_private_of_those_who_hide_them() {
    let sim = youtube(200, Limits::Off).await;
    let relations = sim.truth("user_relations").await;
    let mut hidden = 0;
    for (user, channel) in channels(&sim, |user| user["suspended"] == false).await {
        let call = format!(
            "subscriptions?part=snippet&maxResults=3&channelId={}",
            text(&channel, "id")
        );
        if user["hide_collections"] == true {
            let refused = ask(&sim, &call).await;
            assert_eq!(reason(&refused), (403, "subscriptionForbidden".to_owned()));
            assert_eq!(channel["statistics"]["hiddenSubscriberCount"], true);
            hidden += 1;
            continue;
        }
        let (found, _) = walk(&sim, &call).await;
        let ids: BTreeSet<&str> = found
            .iter()
            .map(|item| text(&item["snippet"]["resourceId"], "channelId"))
            .collect();
        let wanted = relations
            .iter()
            .filter(|row| row["source"] == user["id"])
            .count();
        assert_eq!((found.len(), ids.len()), (wanted, wanted));
    }
    assert!(hidden > 0);
}

#[tokio::test]
async fn an_answer_that_has_not_changed_is_not_sent_again() {
    let sim = youtube(60, Limits::Off).await;
    let (_, channel) = channels(&sim, |user| user["suspended"] == false)
        .await
        .remove(0);
    let target = format!(
        "/youtube/v3/channels?part=snippet&id={}&{KEY}",
        text(&channel, "id")
    );
    let first = sim.get(&target).await;
    let etag = first.headers["etag"].clone();
    assert_eq!(first.json()["etag"], etag);
    let again = sim.get_if_none_match(&target, &etag).await;
    assert_eq!((again.status, again.text.as_str()), (304, ""));
    let other = sim.get_if_none_match(&target, "another").await;
    assert_eq!(other.status, 200);
}

#[tokio::test]
async fn keys_and_tokens_are_refused_in_the_networks_words() {
    let sim = youtube(60, Limits::Off).await;
    let target = "/youtube/v3/channels?part=id&id=UCnobody";
    let with_key = |key: &str| format!("{target}&key={key}");
    let detail = |reply: &Reply| text(&reply.json()["error"]["details"][0], "reason").to_owned();
    let none = sim.get(target).await;
    assert_eq!(none.status, 403);
    assert!(none.text.contains("unregistered callers"));
    let wrong = sim.get(&with_key("bad")).await;
    assert_eq!(
        (wrong.status, detail(&wrong).as_str()),
        (400, "API_KEY_INVALID")
    );
    let revoked = sim.get(&with_key("revoked")).await;
    assert_eq!(
        (revoked.status, detail(&revoked).as_str()),
        (400, "API_KEY_INVALID")
    );
    let narrow = sim.get(&with_key("narrow")).await;
    assert_eq!(
        (narrow.status, detail(&narrow).as_str()),
        (403, "API_KEY_SERVICE_BLOCKED")
    );
    for token in ["bad", "revoked"] {
        let refused = sim.get_as(target, Some(token)).await;
        assert_eq!(reason(&refused), (401, "authError".to_owned()));
    }
    assert_eq!(sim.get_as(target, Some("narrow")).await.status, 200);
    let comments = "/youtube/v3/comments?part=snippet&id=x";
    let refused = sim.get_as(comments, Some("narrow")).await;
    assert_eq!(
        reason(&refused),
        (403, "insufficientPermissions".to_owned())
    );
}

#[tokio::test]
async fn searches_have_a_count_of_their_own() {
    let sim = youtube(60, Limits::Strict).await;
    for _ in 0..100 {
        assert_eq!(
            ask(&sim, "search?part=snippet&q=sea&type=video")
                .await
                .status,
            200
        );
    }
    let refused = ask(&sim, "search?part=snippet&q=sea").await;
    assert_eq!(reason(&refused), (429, "rateLimitExceeded".to_owned()));
    assert!(refused.text.contains("per day"));
    // Units are left, and no header tells how many.
    let other = ask(&sim, "videos?part=id&id=AAAAAAAAAAA").await;
    assert_eq!(other.status, 200);
    assert!(!other.headers.keys().any(|name| name.contains("limit")));
}
