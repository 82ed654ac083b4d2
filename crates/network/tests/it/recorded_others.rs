//! X and Weibo against conversations that real servers had with others.
//!
//! They are no part of the project. Where `x/*.jsonl` and `weibo/*.jsonl` lie in `shared/recorded` beside it, or in
//! the folder that `KITTIWAKE_RECORDINGS` names, every answer to one of the definition's queries is read: with the
//! outcome that it has, no value mended, no item lost, no text changed, and every part of it mapped, or ignored for a
//! reason. A line is a conversation, as `scripts/recordings.py` writes them. Fields and addresses were fewer when these
//! were recorded, so that what is asked today is not compared.

use crate::support::{root, shipped};
use kittiwake_model::{Identity, Key, Object, Value};
use kittiwake_network::{Answer, Network, Page, Reading};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use url::Url;

struct Recording {
    cassette: String,
    method: String,
    url: Url,
    status: u16,
    headers: BTreeMap<String, String>,
    body: Json,
}

/// What a recorded call asks: a query, and seeds that name what it is about.
type Asked = (&'static str, Vec<String>);

#[test]
fn x_reads_recorded_conversations_without_remainder() {
    check("x", asked_of_x);
}

#[test]
fn weibo_reads_recorded_conversations_without_remainder() {
    check("weibo", asked_of_weibo);
}

fn check(name: &str, asked: fn(&Recording) -> Option<Asked>) {
    let Some(folder) = folder(name) else {
        println!("absent: ../shared/recorded/{name}");
        return;
    };
    let network = shipped()
        .into_iter()
        .find(|network| &**network.name() == name);
    let network = network.unwrap();
    let mut answers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut objects: BTreeMap<String, usize> = BTreeMap::new();
    let mut faults = Vec::new();
    for recording in recordings(&folder) {
        let Some((query, seeds)) = asked(&recording) else {
            continue;
        };
        let reading = hold(&network, query, &seeds, &recording, &mut faults);
        *answers.entry(query).or_default() += 1;
        for object in &reading.objects {
            *objects.entry(object.identity.kind.to_string()).or_default() += 1;
        }
    }
    println!("{name}: answers {answers:?}, objects {objects:?}");
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(!answers.is_empty(), "no answer to any query");
}

fn folder(name: &str) -> Option<PathBuf> {
    let named = std::env::var_os("KITTIWAKE_RECORDINGS").map(PathBuf::from);
    let beside = ["../shared/recorded", "../../shared/recorded"].map(|place| root().join(place));
    let mut places = named.into_iter().chain(beside);
    places
        .find(|place| place.join(name).is_dir())
        .map(|place| place.join(name))
}

fn recordings(folder: &PathBuf) -> Vec<Recording> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|it| it == "jsonl"));
    files.sort();
    let mut recordings = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        recordings.extend(text.lines().filter_map(parse));
    }
    recordings
}

/// Nothing where the body is none of JSON: definitions read nothing else.
fn parse(line: &str) -> Option<Recording> {
    let value: Json = serde_json::from_str(line).unwrap();
    let text = |key: &str| value[key].as_str().unwrap();
    Some(Recording {
        cassette: text("cassette").to_owned(),
        method: text("method").to_owned(),
        url: Url::parse(text("url")).unwrap(),
        status: value["status"].as_u64().unwrap() as u16,
        headers: serde_json::from_value(value["headers"].clone()).unwrap(),
        body: serde_json::from_str(text("body")).ok()?,
    })
}

fn asked_of_x(recording: &Recording) -> Option<Asked> {
    if recording.method != "GET" {
        return None;
    }
    let path = recording.url.path().trim_matches('/').to_owned();
    let segments: Vec<&str> = path.split('/').collect();
    let words = || vec![format!("search:{}", parameter(recording, "query"))];
    let about = |kind: &str, id: &str| vec![format!("{kind}:{id}")];
    let each = |kind: &str| -> Vec<String> {
        let ids = parameter(recording, "ids");
        ids.split(',').map(|id| format!("{kind}:{id}")).collect()
    };
    Some(match segments[1..] {
        ["users"] => ("users", each("id")),
        ["users", "by", "username", name] => ("user_by_name", vec![format!("@{name}")]),
        ["users", "search"] => ("search_users", words()),
        ["users", id, "following"] => ("following", about("id", id)),
        ["users", id, "followers"] => ("followers", about("id", id)),
        ["users", id, "tweets"] => ("user_posts", about("id", id)),
        ["users", id, "mentions"] => ("mentions", about("id", id)),
        ["users", id, "liked_tweets"] => ("liked_posts", about("id", id)),
        ["tweets"] => ("posts", each("status")),
        ["tweets", "search", "recent"] => ("search_recent", words()),
        ["tweets", "search", "all"] => ("search_all", words()),
        ["tweets", "counts", "recent"] => ("counts_recent", words()),
        ["tweets", "counts", "all"] => ("counts_all", words()),
        ["tweets", id, "liking_users"] => ("liking_users", about("status", id)),
        ["tweets", id, "retweeted_by"] => ("reposted_by", about("status", id)),
        ["tweets", id, "retweets"] => ("reposts", about("status", id)),
        ["tweets", id, "quote_tweets"] => ("quotes", about("status", id)),
        ["lists", id] => ("list", about("list", id)),
        ["lists", id, "members"] => ("list_members", about("list", id)),
        ["lists", id, "tweets"] => ("list_posts", about("list", id)),
        _ => return None,
    })
}

fn asked_of_weibo(recording: &Recording) -> Option<Asked> {
    if recording.method != "GET" {
        return None;
    }
    let path = recording.url.path();
    let path = path.trim_start_matches("/2/").trim_end_matches(".json");
    let user = || vec![format!("id:{}", parameter(recording, "uid"))];
    let users = || -> Vec<String> {
        let ids = parameter(recording, "uids");
        ids.split(',').map(|id| format!("id:{id}")).collect()
    };
    let posts = || -> Vec<String> {
        let ids = parameter(recording, "ids");
        ids.split(',').map(|id| format!("status:{id}")).collect()
    };
    let post = || vec![format!("status:{}", parameter(recording, "id"))];
    let home = || vec!["home:me".to_owned()];
    Some(match path {
        "users/show" => ("profile", user()),
        "users/show_batch/other" => ("profiles", users()),
        "tags" => ("tags", user()),
        "tags/tags_batch" => ("tags_batch", users()),
        "friendships/friends/ids" => ("following", user()),
        "friendships/followers/ids" => ("followers", user()),
        "friendships/friends" => ("friends", user()),
        "friendships/followers" => ("fans", user()),
        "statuses/user_timeline" => ("timeline", user()),
        "statuses/friends_timeline" | "statuses/home_timeline" => ("home", home()),
        "statuses/show" => ("status", post()),
        "statuses/count" => ("counts", posts()),
        "statuses/repost_timeline" => ("reposts", post()),
        "comments/show" => ("comments", post()),
        "attitudes/show" => ("likes", post()),
        "search/topics" => (
            "topic",
            vec![format!("topic:{}", parameter(recording, "q"))],
        ),
        _ => return None,
    })
}

fn parameter(recording: &Recording, name: &str) -> String {
    let mut pairs = recording.url.query_pairs();
    let found = pairs.find(|(key, _)| key == name);
    found.map_or_else(String::new, |(_, value)| value.into_owned())
}

fn hold(
    network: &Network,
    query: &str,
    seeds: &[String],
    recording: &Recording,
    faults: &mut Vec<String>,
) -> Reading {
    let query = network.query(query).unwrap();
    let base = network.base("").unwrap();
    let host = base.host_str().unwrap();
    let subjects: Vec<Identity> = seeds
        .iter()
        .map(|seed| network.seed(seed, host).unwrap())
        .collect();
    let keyed: Vec<(Key, &Identity)> = (1..).map(Key).zip(&subjects).collect();
    let text = recording.body.to_string();
    let reading = network.read(&Answer {
        query,
        base: &base,
        host,
        subjects: &keyed,
        page: Page::First,
        url: &recording.url,
        status: recording.status,
        header: &|name| recording.headers.get(name).cloned(),
        body: text.as_bytes(),
        walk: Some(1),
    });
    let mut fault = |what: String| {
        let name = &recording.cassette;
        faults.push(format!("{name}, {}: {what}", query.name));
    };
    let refused = recording.status != 200 || recording.body.get("error_code").is_some();
    if reading.outcome.is_success() == refused {
        fault(format!("{} {}", reading.outcome, reading.reason));
    }
    if reading.mended != 0 {
        fault(format!("{} values mended", reading.mended));
    }
    if refused {
        return reading;
    }
    let unmapped = network.unmapped_answer(query, &recording.body);
    if !unmapped.is_empty() {
        fault(format!("neither read nor ignored: {unmapped:?}"));
    }
    // The newest post beside an account is left out on purpose.
    let about_account = matches!(&*query.name, "profile" | "profiles" | "friends" | "fans");
    let texts = if about_account {
        Vec::new()
    } else {
        texts(&recording.body)
    };
    for (id, text) in texts {
        let read = reading
            .objects
            .iter()
            .find_map(|object| text_of(object, &id));
        if read != Some(text.as_str()) {
            fault(format!(
                "the text of {id} is {text:?}, and was read as {read:?}"
            ));
        }
    }
    reading
}

/// Posts that stand in an answer with a text, by their ids. Of those that were deleted the text is none of theirs.
fn texts(body: &Json) -> Vec<(String, String)> {
    let mut found = Vec::new();
    match body {
        Json::Object(entries) => {
            let id = entries.get("idstr").or_else(|| entries.get("id"));
            // Of a long post the beginning stands in its place.
            let note = entries.get("note_tweet").and_then(|note| note.get("text"));
            let text = note.or_else(|| entries.get("text")).and_then(Json::as_str);
            let gone = entries.contains_key("deleted");
            if let (Some(id), Some(text), false) = (id, text, gone) {
                let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
                found.push((id, plain(text)));
            }
            found.extend(entries.values().flat_map(texts));
        }
        Json::Array(items) => found.extend(items.iter().flat_map(texts)),
        _ => {}
    }
    found
}

fn plain(text: &str) -> String {
    let signs = text.replace("&lt;", "<").replace("&gt;", ">");
    signs.replace("&amp;", "&")
}

fn text_of<'o>(object: &'o Object, id: &str) -> Option<&'o str> {
    if object.identity.canonical.as_deref() != Some(id) {
        return None;
    }
    let fields = object.groups.iter().flat_map(|group| &group.fields);
    fields
        .filter(|(name, _)| &**name == "text")
        .find_map(|(_, value)| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
}
