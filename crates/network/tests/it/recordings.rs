//! The definition against what real servers answered.
//!
//! `KITTIWAKE_RECORDINGS` names the folder of `mastodon.jsonl`, which `scripts/recordings.py`
//! makes. Every field at every depth of every user and post in it is mapped, or named in
//! `ignored` with a reason.

use crate::support::mastodon;
use kittiwake_model::{Alias, Identity, Key, OutcomeCode};
use kittiwake_network::{Answer, Network, Page, Query, Reading};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use url::Url;

/// One recorded answer.
struct Recording {
    cassette: String,
    method: String,
    url: Url,
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
}

#[derive(Default)]
struct Tally {
    conversations: usize,
    answers: usize,
    queries: BTreeSet<String>,
    users: usize,
    statuses: usize,
    unmapped: BTreeMap<String, String>,
}

#[test]
fn every_recorded_field_is_mapped_or_ignored_with_a_reason() {
    let Some(folder) = std::env::var_os("KITTIWAKE_RECORDINGS").map(PathBuf::from) else {
        println!("skipped: KITTIWAKE_RECORDINGS names no folder");
        return;
    };
    let path = folder.join("mastodon.jsonl");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: {} cannot be read", path.display());
        return;
    };
    let network = mastodon();
    let mut tally = Tally::default();
    for line in text.lines() {
        let recording = parse(line);
        tally.conversations += 1;
        check_answer(&network, &recording, &mut tally);
        if let Ok(body) = serde_json::from_str(&recording.body) {
            check_entities(&network, &body, &recording, &mut tally);
        }
    }
    println!(
        "checked {} conversations: {} answers to {} queries ({}), {} users, {} posts",
        tally.conversations,
        tally.answers,
        tally.queries.len(),
        tally.queries.iter().cloned().collect::<Vec<_>>().join(", "),
        tally.users,
        tally.statuses,
    );
    assert!(
        tally.unmapped.is_empty(),
        "neither mapped nor ignored: {:#?}",
        tally.unmapped
    );
    assert!(tally.answers >= 60 && tally.users >= 1_000 && tally.statuses >= 500);
}

fn parse(line: &str) -> Recording {
    let value: Value = serde_json::from_str(line).unwrap();
    let text = |key: &str| value[key].as_str().unwrap().to_owned();
    Recording {
        cassette: text("cassette"),
        method: text("method"),
        url: Url::parse(&text("url")).unwrap(),
        status: value["status"].as_u64().unwrap() as u16,
        headers: serde_json::from_value(value["headers"].clone()).unwrap(),
        body: text("body"),
    }
}

fn covering<'n>(network: &'n Network, recording: &Recording) -> Option<(&'n Query, String)> {
    let segments: Vec<&str> = recording.url.path().split('/').skip(1).collect();
    let is_id = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (name, id) = match segments.as_slice() {
        ["api", "v1", "accounts", "lookup"] => ("lookup", "0"),
        ["api", "v1", "accounts", id] if is_id(id) => ("profile", *id),
        ["api", "v1", "accounts", id, "following"] => ("following", *id),
        ["api", "v1", "accounts", id, "followers"] => ("followers", *id),
        ["api", "v1", "accounts", id, "statuses"] => ("timeline", *id),
        ["api", "v1", "statuses", id] if is_id(id) => ("status", *id),
        ["api", "v1", "statuses"] => ("statuses", "0"),
        ["api", "v1", "accounts"] => ("profiles", "0"),
        _ => return None,
    };
    Some((network.query(name)?, id.to_owned()))
}

fn read(
    network: &Network,
    query: &Query,
    recording: &Recording,
    id: String,
    body: &str,
    status: u16,
) -> Reading {
    let mut base = recording.url.clone();
    base.set_path("/");
    base.set_query(None);
    let host = recording.url.host_str().unwrap();
    let subject = Identity {
        network: network.name().clone(),
        kind: query.kind.clone(),
        canonical: None,
        aliases: vec![Alias {
            name: "id".into(),
            id,
            host: host.to_owned(),
            movable: false,
        }],
    };
    network.read(&Answer {
        query,
        base: &base,
        host,
        subjects: &[(Key(1), &subject)],
        page: Page::First,
        url: &recording.url,
        status,
        header: &|name| recording.headers.get(name).cloned(),
        body: body.as_bytes(),
        walk: None,
    })
}

fn check_answer(network: &Network, recording: &Recording, tally: &mut Tally) {
    let Some((query, id)) = covering(network, recording).filter(|_| recording.method == "GET")
    else {
        return;
    };
    let reading = read(
        network,
        query,
        recording,
        id,
        &recording.body,
        recording.status,
    );
    let context = format!("{} {}", recording.cassette, recording.url);
    tally.answers += 1;
    tally.queries.insert(query.name.to_string());
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
    let expected = body.as_array().map_or(1, Vec::len);
    assert_eq!(reading.items as usize, expected, "{context}");
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

/// Every user and every post, wherever they stand.
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
    for path in network.unmapped(kind, value).unwrap() {
        let example = format!("{} {}", recording.cassette, recording.url);
        tally
            .unmapped
            .entry(format!("{kind} {path}"))
            .or_insert(example);
    }
    let query = network.query(query).unwrap();
    let reading = read(
        network,
        query,
        recording,
        "0".to_owned(),
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
