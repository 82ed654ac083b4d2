//! Answers have the keys that recorded answers of real servers have.
//!
//! `KITTIWAKE_RECORDINGS` names a folder with `mastodon.jsonl`; each line has the `body` of a
//! recorded answer as text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::client::Sim;

type Keys = BTreeSet<String>;

/// The key sets that occurred, per kind of entity.
type Shapes = BTreeMap<&'static str, BTreeSet<Keys>>;

/// Entities that stand under a key of their own.
const NAMED: [(&str, &str); 7] = [
    ("media_attachments", "media"),
    ("mentions", "mention"),
    ("tags", "tag"),
    ("fields", "field"),
    ("application", "application"),
    ("feature_approval", "feature_approval"),
    ("quote_approval", "quote_approval"),
];

fn collect(value: &Value, shapes: &mut Shapes) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, shapes)),
        Value::Object(object) => {
            let has = |key: &str| object.contains_key(key);
            if has("acct") && has("followers_count") {
                note(shapes, "account", value);
            } else if has("reblog") && has("content") && has("account") {
                note(shapes, "status", value);
            }
            let is_entity = has("acct") || has("reblog");
            for (key, inner) in object {
                if let Some((_, kind)) = NAMED.iter().find(|(name, _)| name == key && is_entity) {
                    note(shapes, kind, inner);
                }
                collect(inner, shapes);
            }
        }
        _ => {}
    }
}

fn note(shapes: &mut Shapes, kind: &'static str, value: &Value) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| note(shapes, kind, item)),
        Value::Object(object) => {
            shapes
                .entry(kind)
                .or_default()
                .insert(object.keys().cloned().collect());
        }
        _ => {}
    }
}

/// Recorded calls (`GET http://…`) and the bodies of their answers, or none if there are no
/// recordings here.
fn recordings() -> Option<Vec<(String, Value)>> {
    let folder = std::env::var_os("KITTIWAKE_RECORDINGS")?;
    let text = std::fs::read_to_string(Path::new(&folder).join("mastodon.jsonl")).unwrap();
    let bodies = text.lines().filter_map(|line| {
        let record: Value = serde_json::from_str(line).unwrap();
        let body = serde_json::from_str(record["body"].as_str()?).ok()?;
        let text = |key: &str| record[key].as_str().unwrap().to_owned();
        Some((format!("{} {}", text("method"), text("url")), body))
    });
    Some(bodies.collect())
}

fn recorded() -> Option<Shapes> {
    let mut shapes = Shapes::new();
    for (_, body) in recordings()? {
        collect(&body, &mut shapes);
    }
    Some(shapes)
}

/// The keys of an object and of the objects in it, as paths; of lists the first item counts.
fn paths(value: &Value, prefix: &str, found: &mut Keys) {
    match value {
        Value::Array(items) => {
            if let Some(item) = items.first() {
                paths(item, &format!("{prefix}[]"), found);
            }
        }
        Value::Object(object) => {
            for (key, inner) in object {
                let path = format!("{prefix}.{key}");
                paths(inner, &path, found);
                found.insert(path);
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn tags_searches_and_the_server_itself_have_the_keys_of_recorded_answers() {
    let Some(recordings) = recordings() else {
        println!("skipped: KITTIWAKE_RECORDINGS is not set");
        return;
    };
    let sim = Sim::frozen(250, 3).await;
    let users = sim.truth("user_tags").await;
    let featuring = users[0]["user"].as_str().unwrap().rsplit('/').next();
    let featured = format!("/api/v1/accounts/{}/featured_tags", featuring.unwrap());
    for (ours, theirs, pointer) in [
        (featured.as_str(), "/featured_tags", ""),
        ("/api/v2/instance", "mastodon.social/api/v2/instance", ""),
        ("/api/v2/search?q=birds", "/api/v2/search?", "/hashtags"),
    ] {
        let keys = |body: &Value| {
            let mut found = Keys::new();
            if let Some(part) = body.pointer(pointer) {
                paths(part, "", &mut found);
            }
            found
        };
        let own = keys(&sim.get_as(ours, Some("ann")).await.json());
        let known: Keys = recordings
            .iter()
            .filter(|(call, _)| call.starts_with("GET ") && call.contains(theirs))
            .filter(|(call, _)| !call.contains("suggestions"))
            .flat_map(|(_, body)| keys(body))
            .collect();
        assert!(own.len() > 4 && !known.is_empty(), "{ours}");
        let unknown: Vec<_> = own.difference(&known).collect();
        assert!(unknown.is_empty(), "{ours} has {unknown:?}");
        let is_optional = |path: &&String| {
            [".contact.account.", ".thumbnail.", ".translations."]
                .iter()
                .any(|part| path.contains(part))
        };
        let missing: Vec<_> = known
            .difference(&own)
            .filter(|path| !is_optional(path))
            .collect();
        assert!(missing.is_empty(), "{ours} lacks {missing:?}");
    }
}

async fn ours(token: Option<&str>) -> Shapes {
    let sim = Sim::frozen(250, 3).await;
    let mut shapes = Shapes::new();
    for user in sim.truth("users").await {
        let path = format!("/api/v1/accounts/{}", user["local_id"].as_str().unwrap());
        for target in [path.clone(), format!("{path}/statuses?limit=6")] {
            let reply = sim.get_as(&target, token).await;
            if reply.status == 200 {
                collect(&reply.json(), &mut shapes);
            }
        }
    }
    shapes
}

#[tokio::test]
async fn answers_have_the_keys_of_recorded_answers() {
    let Some(recorded) = recorded() else {
        println!("skipped: KITTIWAKE_RECORDINGS is not set");
        return;
    };
    for token in [None, Some("ann")] {
        let ours = ours(token).await;
        assert_eq!(ours.len(), 2 + NAMED.len(), "{:?}", ours.keys());
        for (kind, key_sets) in &ours {
            let seen = &recorded[kind];
            let known: Keys = seen.iter().flatten().cloned().collect();
            // What every recorded entity of this kind has, ours must have too.
            let required: Keys = known
                .iter()
                .filter(|key| seen.iter().all(|keys| keys.contains(*key)))
                .cloned()
                .collect();
            for keys in key_sets {
                let unknown: Vec<_> = keys.difference(&known).collect();
                assert!(
                    unknown.is_empty(),
                    "{kind} has {unknown:?}, which no recording has"
                );
                let missing: Vec<_> = required.difference(keys).collect();
                assert!(
                    missing.is_empty(),
                    "{kind} lacks {missing:?}, which all recordings have"
                );
            }
            let is_recorded = |keys: &Keys| seen.contains(keys);
            assert!(
                key_sets.iter().any(is_recorded),
                "no {kind} of ours looks like a recorded one"
            );
        }
    }
}

#[tokio::test]
async fn those_who_are_signed_in_are_told_more() {
    let keys = |shapes: &Shapes| -> Keys { shapes["status"].iter().flatten().cloned().collect() };
    let (anonymous, signed_in) = (keys(&ours(None).await), keys(&ours(Some("ann")).await));
    let more: Vec<&String> = signed_in.difference(&anonymous).collect();
    assert_eq!(
        more,
        ["bookmarked", "favourited", "filtered", "muted", "reblogged"]
    );
}
