//! Mastodon: `mastodon.jsonl`.

use super::{Recording, Unmapped, read, recorded, unseen};
use crate::support::mastodon;
use kittiwake_model::{Alias, Identity, Key, OutcomeCode, Reference};
use kittiwake_network::{Network, Query, Reading};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Default)]
struct Tally {
    conversations: usize,
    answers: usize,
    /// How many answers to each query.
    queries: BTreeMap<String, usize>,
    users: usize,
    statuses: usize,
    tags: usize,
    unmapped: Unmapped,
}

#[test]
fn every_recorded_field_is_mapped_or_ignored_with_a_reason() {
    let Some(text) = recorded("mastodon") else {
        return;
    };
    let network = mastodon();
    let mut tally = Tally::default();
    for line in text.lines() {
        let recording = Recording::parse(line);
        tally.conversations += 1;
        check_answer(&network, &recording, &mut tally);
        if let Ok(body) = serde_json::from_str(&recording.body) {
            check_entities(&network, &body, &recording, &mut tally);
        }
    }
    println!(
        "checked {} conversations: {} answers ({:?}), {} users, {} posts, {} tags",
        tally.conversations, tally.answers, tally.queries, tally.users, tally.statuses, tally.tags,
    );
    tally.unmapped.assert_none();
    assert!(tally.answers >= 150 && tally.users >= 1_000 && tally.statuses >= 500);
    // Nobody asked for a batch of posts; the posts themselves are checked wherever they stand. Accounts
    // by name are asked for in the words of `lookup`.
    assert_eq!(
        unseen(&network, &tally.queries),
        ["webfinger", "lookup_by_name", "statuses"]
    );
}

/// The query that a recorded call asks, and what it is asked about.
fn covering<'n>(network: &'n Network, recording: &Recording) -> Option<(&'n Query, Identity)> {
    let path = recording.url.path().trim_end_matches('/');
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let is_id = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let host = recording.host();
    let object = |name: &str, id: &str| {
        let query = network.query(name)?;
        Some((query, object_with_id(network, query, host, id)))
    };
    let seed = |name: &str, seed: String| {
        let identity = network.seed(&seed, host).unwrap();
        Some((network.query(name)?, identity))
    };
    let server = |name: &str| Some((network.query(name)?, network.host_identity(host)?));
    match segments.as_slice() {
        ["api", "v1", "accounts", "lookup"] => object("lookup", "0"),
        ["api", "v1", "accounts", id] if is_id(id) => object("profile", id),
        ["api", "v1", "accounts", id, "following"] => object("following", id),
        ["api", "v1", "accounts", id, "followers"] => object("followers", id),
        ["api", "v1", "accounts", id, "statuses"] => object("timeline", id),
        ["api", "v1", "accounts", id, "featured_tags"] => object("featured_tags", id),
        // One's own, in the same words.
        ["api", "v1", "featured_tags"] => object("featured_tags", "0"),
        ["api", "v1", "statuses", id] if is_id(id) => object("status", id),
        ["api", "v1", "statuses", id, "context"] => object("context", id),
        ["api", "v1", "statuses", id, "reblogged_by"] => object("reblogged_by", id),
        ["api", "v1", "statuses", id, "favourited_by"] => object("favourited_by", id),
        ["api", "v1", "statuses"] => object("statuses", "0"),
        ["api", "v1", "accounts"] => object("profiles", "0"),
        ["api", "v1", "timelines", "tag", tag] => seed("hashtag", format!("#{tag}")),
        ["api", "v2", "search"] => {
            let mut pairs = recording.url.query_pairs();
            let (_, words) = pairs.find(|(name, _)| name == "q")?;
            seed("search", format!("search:{words}"))
        }
        ["api", "v2", "instance"] => server("instance"),
        ["api", "v1", "instance"] => server("instance_before_4"),
        ["api", "v1", "instance", "peers"] => server("peers"),
        _ => None,
    }
}

fn object_with_id(network: &Network, query: &Query, host: &str, id: &str) -> Identity {
    Identity {
        network: network.name().clone(),
        kind: query.kind.clone(),
        canonical: None,
        aliases: vec![Alias {
            name: "id".into(),
            id: id.to_owned(),
            host: host.to_owned(),
            movable: false,
        }],
    }
}

fn check_answer(network: &Network, recording: &Recording, tally: &mut Tally) {
    let covering = covering(network, recording).filter(|_| recording.method == "GET");
    let Some((query, subject)) = covering else {
        return;
    };
    let reading = read(
        network,
        query,
        recording,
        &[subject],
        &recording.body,
        recording.status,
    );
    let context = recording.place();
    tally.answers += 1;
    *tally.queries.entry(query.name.to_string()).or_default() += 1;
    if recording.status != 200 {
        assert!(!reading.outcome.is_success(), "{context}");
        return;
    }
    assert!(
        reading.outcome.is_success(),
        "{context}: {} {}",
        reading.outcome,
        reading.reason
    );
    assert_eq!(reading.mended, 0, "{context}");
    let body: Value = serde_json::from_str(&recording.body).unwrap();
    assert_eq!(
        reading.items as usize,
        expected_items(query, &body),
        "{context}"
    );
    tally.unmapped.note_answer(network, query, &body, recording);
    check_links(query, &reading, &context);
    let has_next = recording
        .headers
        .get("link")
        .is_some_and(|link| link.contains("rel=\"next\""));
    assert_eq!(
        reading.next.is_some(),
        has_next && query.pages_max > 1,
        "{context}"
    );
}

/// How many items an answer holds, counted by hand.
fn expected_items(query: &Query, body: &Value) -> usize {
    let count = |key: &str| body[key].as_array().map_or(0, Vec::len);
    match &*query.name {
        "context" => count("ancestors") + count("descendants"),
        "search" => count("accounts") + count("statuses") + count("hashtags"),
        _ => body.as_array().map_or(1, Vec::len),
    }
}

/// Lists and finds are linked to what was asked about, item by item.
fn check_links(query: &Query, reading: &Reading, context: &str) {
    let kind = match &*query.name {
        "reblogged_by" => "repost",
        "favourited_by" => "like",
        "featured_tags" | "hashtag" => "tag",
        "search" => "found",
        _ => return,
    };
    let subject = Reference::Key(Key(1));
    let links = reading.links.iter();
    let linked = links.filter(|link| {
        let is_subject = link.from == subject || link.to == subject;
        &*link.kind == kind && is_subject
    });
    assert_eq!(linked.count(), reading.items as usize, "{context}");
}

/// Every user, post and tag, wherever they stand.
fn check_entities(network: &Network, value: &Value, recording: &Recording, tally: &mut Tally) {
    match value {
        Value::Object(entries) => {
            let has = |keys: &[&str]| keys.iter().all(|key| entries.contains_key(*key));
            if has(&["acct", "followers_count", "url"]) {
                tally.users += 1;
                check_entity(network, "user", "profile", value, recording, tally);
            } else if has(&["content", "visibility", "account", "uri"]) {
                tally.statuses += 1;
                check_entity(network, "status", "status", value, recording, tally);
            } else if has(&["name", "url", "history"]) && !has(&["title"]) {
                tally.tags += 1;
                tally.unmapped.note_object(network, "tag", value, recording);
            }
            for inner in entries.values() {
                check_entities(network, inner, recording, tally);
            }
        }
        Value::Array(items) => {
            for item in items {
                check_entities(network, item, recording, tally);
            }
        }
        _ => {}
    }
}

fn check_entity(
    network: &Network,
    kind: &str,
    query: &str,
    value: &Value,
    recording: &Recording,
    tally: &mut Tally,
) {
    tally.unmapped.note_object(network, kind, value, recording);
    let query = network.query(query).unwrap();
    let host = recording.host();
    let reading = read(
        network,
        query,
        recording,
        &[object_with_id(network, query, host, "0")],
        &value.to_string(),
        200,
    );
    assert_eq!(
        (reading.outcome, reading.mended),
        (OutcomeCode::Ok, 0),
        "{} {value}",
        recording.cassette
    );
}
