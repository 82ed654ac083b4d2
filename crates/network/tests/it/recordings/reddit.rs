//! Reddit: `reddit.jsonl`, what the real one answered from 2016 on.

use super::{Recording, Unmapped, read, recorded, unseen};
use crate::support::{field, shipped};
use kittiwake_model::{Cost, Identity, Key, LimitTime, Object, OutcomeCode, Reference, Standing};
use kittiwake_model::{Name, Value as Read};
use kittiwake_network::{Network, Query, Reading, Word};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The host of the API. Beside it are log-ins, redirects and uploads.
const HOST: &str = "oauth.reddit.com";

#[derive(Default)]
struct Tally {
    answers: usize,
    /// How many answers to each query; one may be read by several.
    queries: BTreeMap<String, usize>,
    /// How many things of each kind, wherever they stand.
    things: BTreeMap<String, usize>,
    seen: BTreeSet<String>,
    next_pages: usize,
    stubs: usize,
    gone: usize,
    unmapped: Unmapped,
}

#[test]
fn every_recorded_field_of_reddit_is_mapped_or_ignored_with_a_reason() {
    let Some(text) = recorded("reddit") else {
        return;
    };
    let network = reddit();
    let mut tally = Tally::default();
    for recording in of_the_api(&text).filter(|recording| recording.status == 200) {
        let Ok(body) = serde_json::from_str::<Value>(&recording.body) else {
            continue;
        };
        tally.answers += 1;
        for (query, subjects) in covering(&network, &recording) {
            check_answer(&network, query, &subjects, &body, &recording, &mut tally);
        }
        check_things(&network, &body, &recording, &mut tally);
        // Whoever asks is told without a kind.
        if let ("/api/v1/me", Some(own)) = (recording.url.path(), body.as_object()) {
            check_thing(&network, "t2", own, &recording, &mut tally);
        }
    }
    println!(
        "checked {} answers ({:?}), {:?}, {} next pages, {} ids in stubs, {} that are gone",
        tally.answers, tally.queries, tally.things, tally.next_pages, tally.stubs, tally.gone,
    );
    tally.unmapped.assert_none();
    assert!(tally.answers >= 1_000 && tally.next_pages >= 50 && tally.stubs >= 10_000);
    for (kind, least) in [("t1", 10_000), ("t2", 50), ("t3", 5_000), ("t5", 1_000)] {
        assert!(tally.things[kind] >= least, "{kind}");
    }
    assert!(tally.gone >= 300);
    // Everything was asked for by somebody, if in words of their own: searches in one subreddit, what was
    // linked to twice beside what was repeated.
    assert_eq!(unseen(&network, &tally.queries), [""; 0]);
}

/// Refusals that no query of ours was given are read as if one had been.
#[test]
fn every_recorded_refusal_has_its_outcome() {
    let Some(text) = recorded("reddit") else {
        return;
    };
    let network = reddit();
    let mut seen: BTreeMap<(u16, String), usize> = BTreeMap::new();
    for recording in of_the_api(&text).filter(|recording| recording.status >= 400) {
        let own = covering(&network, &recording);
        let other = || {
            (
                network.query("user_by_name").unwrap(),
                vec![seed(&network, "u/ann")],
            )
        };
        let (query, subjects) = own.into_iter().next().unwrap_or_else(other);
        let (status, body) = (recording.status, &recording.body);
        let reading = read(&network, query, &recording, &subjects, body, status);
        let is_quarantined = body.contains("\"reason\": \"quarantined\"");
        let expected = match status {
            401 => OutcomeCode::AuthExpired,
            403 => OutcomeCode::Forbidden,
            404 => OutcomeCode::NotFound,
            413 => OutcomeCode::TooMuchData,
            500.. => OutcomeCode::Transient,
            _ => OutcomeCode::BadRequest,
        };
        assert_eq!(reading.outcome, expected, "{}", recording.place());
        let told = reading.reason == "the subreddit is quarantined";
        assert_eq!(told, is_quarantined, "{}", recording.place());
        assert!(reading.objects.is_empty() && reading.next.is_none());
        *seen.entry((status, reading.reason)).or_default() += 1;
    }
    println!("checked refusals: {seen:?}");
    let has = |status: u16| seen.keys().any(|(it, _)| *it == status);
    assert!([400, 401, 403, 404, 500].into_iter().all(has));
    assert!(seen.contains_key(&(403, "the subreddit is quarantined".to_owned())));
}

#[test]
fn every_recorded_limit_is_understood() {
    const TEN_MINUTES_US: i64 = 600_000_000;
    let Some(text) = recorded("reddit") else {
        return;
    };
    let network = reddit();
    let costs = [Cost {
        budget: Name::from("client"),
        call: 1,
        item: 0,
        beside: 0,
        items_max: 0,
    }];
    let mut allowances: BTreeMap<u64, usize> = BTreeMap::new();
    let (mut count, mut elsewhere) = (0, 0);
    for recording in of_the_api(&text) {
        let (Some(left), Some(used)) = (
            recording.header("x-ratelimit-remaining"),
            recording.header("x-ratelimit-used"),
        ) else {
            continue;
        };
        let date = recording.header("date").unwrap();
        let now = jiff::fmt::rfc2822::parse(&date).unwrap().timestamp();
        let now = LimitTime(now.as_microsecond());
        let header = |name: &str| recording.header(name);
        let reports = network.limit_reports(&costs, &header, now);
        let [report] = reports.as_slice() else {
            panic!("{}: {reports:?}", recording.place());
        };
        let Word::Left { remaining, .. } = report.word else {
            panic!("{}", recording.place());
        };
        assert_eq!(remaining, left.parse::<f64>().unwrap() as u64);
        let reset = report.reset.unwrap();
        assert!((1..=TEN_MINUTES_US).contains(&reset.since_us(now)));
        // The windows begin with the clock; answers are some seconds on the way.
        let past_us = (reset.0 + TEN_MINUTES_US / 60) % TEN_MINUTES_US;
        elsewhere += usize::from(past_us > TEN_MINUTES_US / 30);
        *allowances
            .entry(remaining + used.parse::<u64>().unwrap())
            .or_default() += 1;
        count += 1;
    }
    println!("checked {count} limits; allowances of ten minutes: {allowances:?}");
    assert!(count >= 1_000 && elsewhere <= 1, "{elsewhere} of {count}");
    assert!(allowances.contains_key(&network.budget("client").unwrap().limit));
}

fn reddit() -> Network {
    let mut networks = shipped().into_iter();
    networks.find(|it| &**it.name() == "reddit").unwrap()
}

fn seed(network: &Network, seed: &str) -> Identity {
    network.seed(seed, HOST).unwrap()
}

/// What the API said; of what was written only what asks for comments.
fn of_the_api(text: &str) -> impl Iterator<Item = Recording> {
    text.lines().map(Recording::parse).filter(|recording| {
        let is_asking =
            recording.method == "GET" || recording.url.path().starts_with("/api/morechildren");
        recording.host() == HOST && is_asking
    })
}

/// The queries whose answers a recorded call has, each with what it is asked about.
fn covering<'n>(network: &'n Network, recording: &Recording) -> Vec<(&'n Query, Vec<Identity>)> {
    let path = recording.url.path().trim_end_matches('/');
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let parameter = |wanted: &str| {
        let mut pairs = recording.url.query_pairs();
        let found = pairs.find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.into_owned())
    };
    let about = |queries: &[&str], seeds: &[String]| {
        let subjects: Vec<Identity> = seeds.iter().map(|it| seed(network, it)).collect();
        let query = |name: &&str| (network.query(name).unwrap(), subjects.clone());
        queries.iter().map(query).collect()
    };
    let user = |query: &str, name: &str| about(&[query], &[format!("u/{name}")]);
    let subreddit = |query: &str, name: &str| about(&[query], &[format!("r/{name}")]);
    let post = |queries: &[&str], id: &str| about(queries, &[format!("post:{id}")]);
    match segments.as_slice() {
        ["user", name, "about"] => user("user_by_name", name),
        // The page of an account has the same list.
        ["user", name] | ["user", name, "overview"] => user("overview", name),
        ["user", name, "submitted"] => user("submitted", name),
        ["user", name, "comments"] => user("user_comments", name),
        ["api", "user_data_by_account_ids"] => {
            let ids = parameter("ids").unwrap_or_default();
            let seeds: Vec<String> = ids.split(',').map(|id| format!("id:{id}")).collect();
            let queries: &[&str] = match seeds.as_slice() {
                [_] => &["cards", "user_card"],
                _ => &["cards"],
            };
            about(queries, &seeds)
        }
        ["api", "info"] => {
            // Things are looked for by their addresses and names, too.
            let ids = parameter("id");
            let ids = ids.iter().flat_map(|ids| ids.split(','));
            let seeds: Vec<String> = ids.map(str::to_owned).collect();
            about(queries_by_id(&seeds), &seeds)
        }
        ["comments", id] => post(&["thread"], id),
        ["comments", id, _, comment] | ["r", _, "comments", id, _, comment] => {
            let mut both = post(&["deeper"], id);
            both.extend(about(&["branch"], &[format!("comment:{comment}")]));
            both
        }
        ["api", "morechildren"] => post(&["more_children"], "0"),
        ["duplicates", id] => post(&["crossposts"], id),
        ["r", name, "about"] => subreddit("subreddit", name),
        ["r", name, "about", "moderators"] => subreddit("moderators", name),
        ["r", name, "new"] => subreddit("new_posts", name),
        ["r", name, "hot"] => subreddit("hot_posts", name),
        ["r", name, "top"] => subreddit("top_posts", name),
        ["r", name, "controversial"] => subreddit("controversial_posts", name),
        ["r", name, "comments"] => subreddit("new_comments", name),
        ["r", _, "search"] => {
            let words = parameter("q").unwrap_or_default();
            about(&["search"], &[format!("search:{words}")])
        }
        _ => Vec::new(),
    }
}

/// One or many of one kind; a mixed lookup is none of ours.
fn queries_by_id(ids: &[String]) -> &'static [&'static str] {
    let are_all = |prefix: &str| ids.iter().all(|id| id.starts_with(prefix));
    match ids.len() {
        1 if are_all("t1_") => &["comment", "comments"],
        1 if are_all("t3_") => &["post", "post_by_name", "posts"],
        1 if are_all("t5_") => &["subreddit_by_id"],
        0 => &[],
        _ if are_all("t1_") => &["comments"],
        _ if are_all("t3_") => &["posts"],
        _ => &[],
    }
}

fn check_answer(
    network: &Network,
    query: &Query,
    subjects: &[Identity],
    body: &Value,
    recording: &Recording,
    tally: &mut Tally,
) {
    let reading = read(network, query, recording, subjects, &recording.body, 200);
    let context = format!("{} by {}", recording.place(), query.name);
    *tally.queries.entry(query.name.to_string()).or_default() += 1;
    let found = found_in(body);
    // Who is asked for by an id and is not there is left out.
    let is_missing = recording.url.path().starts_with("/api/info") && found.is_empty();
    assert_eq!(
        reading.outcome.is_success(),
        !is_missing,
        "{context}: {} {}",
        reading.outcome,
        reading.reason
    );
    assert_eq!(reading.mended, 0, "{context}");
    tally.unmapped.note_answer(network, query, body, recording);
    if is_missing {
        return;
    }
    check_found(&found, &reading, &context);
    check_links(query, body, &reading, &context);
    let after = &body["data"]["after"];
    let next = after.as_str().filter(|_| query.pages_max > 1);
    assert_eq!(reading.next.is_some(), next.is_some(), "{context}");
    tally.next_pages += usize::from(next.is_some());
    let stubs: BTreeSet<(String, String)> = reading
        .stubs
        .iter()
        .map(|(query, id)| (query.to_string(), id.clone()))
        .collect();
    let expected = match &*query.name {
        "thread" | "deeper" | "more_children" => found.stubs,
        _ => BTreeSet::new(),
    };
    assert_eq!(stubs, expected, "{context}");
    tally.stubs += stubs.len();
}

/// What an answer has, counted by hand.
#[derive(Default)]
struct Found {
    posts: BTreeSet<String>,
    comments: BTreeSet<String>,
    /// How many answers each comment of a tree has.
    replies: BTreeMap<String, i64>,
    stubs: BTreeSet<(String, String)>,
    others: usize,
}

impl Found {
    fn is_empty(&self) -> bool {
        self.posts.is_empty() && self.comments.is_empty() && self.others == 0
    }

    fn look(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.look(item)),
            Value::Object(entries) => {
                match entries.get("kind").and_then(Value::as_str) {
                    Some("t1") => self.note_comment(&value["data"]),
                    Some("t3") => self.note_post(&value["data"]),
                    Some("more") => self.note_stub(&value["data"]),
                    Some("Listing") => {}
                    _ => self.others += 1,
                }
                entries.values().for_each(|inner| self.look(inner));
            }
            _ => {}
        }
    }

    fn note_post(&mut self, post: &Value) {
        self.posts.insert(text(&post["name"]).to_owned());
        for repeated in post["crosspost_parent_list"]
            .as_array()
            .into_iter()
            .flatten()
        {
            self.posts.insert(text(&repeated["name"]).to_owned());
        }
    }

    fn note_comment(&mut self, comment: &Value) {
        let name = text(&comment["name"]).to_owned();
        if let Some(replies) = comment["replies"]["data"]["children"].as_array() {
            let count = replies.iter().map(|reply| {
                let left_out = reply["data"]["children"].as_array().map_or(0, Vec::len);
                i64::try_from(left_out.max(1)).unwrap()
            });
            self.replies.insert(name.clone(), count.sum());
        }
        self.comments.insert(name);
    }

    fn note_stub(&mut self, stub: &Value) {
        for child in stub["children"].as_array().unwrap() {
            let id = text(child).to_owned();
            self.stubs.insert(("more_children".to_owned(), id));
        }
        if stub["count"] == 0 {
            let parent = text(&stub["parent_id"]).trim_start_matches("t1_");
            self.stubs.insert(("deeper".to_owned(), parent.to_owned()));
        }
    }
}

fn found_in(body: &Value) -> Found {
    let mut found = Found::default();
    found.look(body);
    found
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// All that is there was read, and nothing else.
fn check_found(found: &Found, reading: &Reading, context: &str) {
    let of_kind = |kind: &str| -> BTreeSet<String> {
        let objects = reading.objects.iter();
        let objects = objects.filter(|object| &*object.identity.kind == kind);
        objects
            .filter_map(|object| object.identity.canonical.clone())
            .collect()
    };
    assert_eq!(of_kind("post"), found.posts, "{context}");
    assert_eq!(of_kind("comment"), found.comments, "{context}");
    for (comment, count) in &found.replies {
        let object = object_of(reading, "comment", comment);
        // Nothing is counted of one that is gone.
        let object = object.filter(|object| object.standing == Standing::Present);
        let told = object.and_then(|object| field(object, "replies_count"));
        let expected = object.map(|_| Read::Int(*count));
        assert_eq!(told, expected.as_ref(), "{context}: {comment}");
    }
}

fn object_of<'r>(reading: &'r Reading, kind: &str, id: &str) -> Option<&'r Object> {
    reading.objects.iter().find(|object| {
        let identity = &object.identity;
        &*identity.kind == kind && identity.canonical.as_deref() == Some(id)
    })
}

/// Lists and finds are linked to what was asked about, item by item.
fn check_links(query: &Query, body: &Value, reading: &Reading, context: &str) {
    let kind = match &*query.name {
        "search" => "found",
        "moderators" => "moderates",
        "new_posts" | "hot_posts" | "top_posts" | "controversial_posts" | "new_comments" => {
            "subreddit"
        }
        _ => return,
    };
    let subject = Reference::Key(Key(1));
    let linked = reading.links.iter();
    let linked = linked.filter(|link| &*link.kind == kind && link.to == subject);
    let items = body["data"]["children"].as_array().unwrap();
    assert_eq!(linked.count(), items.len(), "{context}");
}

/// Every thing of a kind that is known, wherever it stands.
fn check_things(network: &Network, value: &Value, recording: &Recording, tally: &mut Tally) {
    match value {
        Value::Object(entries) => {
            let kind = entries.get("kind").and_then(Value::as_str);
            let data = entries.get("data").and_then(Value::as_object);
            if let (Some(kind), Some(data)) = (kind, data) {
                check_thing(network, kind, data, recording, tally);
            }
            for inner in entries.values() {
                check_things(network, inner, recording, tally);
            }
        }
        Value::Array(items) => {
            for item in items {
                check_things(network, item, recording, tally);
            }
        }
        _ => {}
    }
}

/// One thing, as if it had been asked for alone.
fn check_thing(
    network: &Network,
    kind: &str,
    data: &Map<String, Value>,
    recording: &Recording,
    tally: &mut Tally,
) {
    let (object_kind, query, about) = match kind {
        "t1" => ("comment", "comment", text(&data["name"]).to_owned()),
        "t2" => ("user", "user_by_name", format!("u/{}", text(&data["name"]))),
        "t3" => ("post", "post_by_name", text(&data["name"]).to_owned()),
        "t5" => (
            "subreddit",
            "subreddit_by_id",
            text(&data["name"]).to_owned(),
        ),
        "more" => ("more", "more_children", "post:0".to_owned()),
        "Listing" => ("", "new_posts", "r/gulls".to_owned()),
        _ => return,
    };
    let one = json!({ "kind": kind, "data": alone(kind, data) });
    // The same is told again and again.
    if !tally.seen.insert(one.to_string()) {
        return;
    }
    *tally.things.entry(kind.to_owned()).or_default() += 1;
    let body = match kind {
        "t2" | "Listing" => one,
        "more" => json!({ "json": { "errors": [], "data": { "things": [one] } } }),
        _ => json!({ "kind": "Listing", "data": { "children": [one], "after": null } }),
    };
    let query = network.query(query).unwrap();
    tally.unmapped.note_answer(network, query, &body, recording);
    if kind == "Listing" {
        return;
    }
    let id = match kind {
        "t2" => format!("t2_{}", text(&data["id"])),
        "more" => format!("{}/{}", text(&data["parent_id"]), text(&data["id"])),
        _ => about.clone(),
    };
    let subject = seed(network, &about);
    let reading = read(
        network,
        query,
        recording,
        &[subject],
        &body.to_string(),
        200,
    );
    let place = || format!("{} {id}", recording.place());
    assert_eq!(
        (reading.outcome, reading.mended),
        (OutcomeCode::Ok, 0),
        "{}",
        place()
    );
    let object = object_of(&reading, object_kind, &id).unwrap_or_else(|| panic!("{}", place()));
    match kind {
        "t1" => check_meaning(data, &data["body"], object, &place, tally),
        "t3" => check_meaning(data, &data["selftext"], object, &place, tally),
        _ => assert_eq!(object.standing, Standing::Present, "{}", place()),
    }
}

/// A thing without those that stand below it.
fn alone(kind: &str, data: &Map<String, Value>) -> Value {
    let entries = data.iter().map(|(key, value)| {
        let value = match (kind, key.as_str()) {
            ("t1", "replies") => json!(""),
            ("Listing", "children") => json!([]),
            _ => value.clone(),
        };
        (key.clone(), value)
    });
    Value::Object(entries.collect())
}

/// What a post or a comment is read as, held against what it says, field by field.
fn check_meaning(
    thing: &Map<String, Value>,
    body: &Value,
    object: &Object,
    place: &dyn Fn() -> String,
    tally: &mut Tally,
) {
    let has_author = thing["author"] != "[deleted]";
    let is_removed = thing
        .get("removed_by_category")
        .is_some_and(|by| !by.is_null());
    let is_gone = is_removed || body == "[removed]" || (!has_author && body == "[deleted]");
    let standing = if is_gone {
        Standing::Invalid(OutcomeCode::Gone)
    } else {
        Standing::Present
    };
    assert_eq!(object.standing, standing, "{}", place());
    tally.gone += usize::from(is_gone);
    let unless_gone = |value: Option<Read>| value.filter(|_| !is_gone);
    let fields = [
        ("created_us", time(&thing["created_utc"])),
        ("text", unless_gone(Some(Read::Text(text(body).to_owned())))),
        ("edited_us", unless_gone(thing.get("edited").and_then(time))),
        (
            "likes_count",
            unless_gone(thing.get("score").and_then(Value::as_i64).map(Read::Int)),
        ),
    ];
    let told = |name: &str| field(object, name).filter(|value| **value != Read::Null);
    for (name, expected) in &fields {
        assert_eq!(told(name), expected.as_ref(), "{name} of {}", place());
    }
    let is_answer = thing.contains_key("parent_id");
    assert_eq!(told("reply_to").is_some(), is_answer, "{}", place());
    // Whoever removed a comment that is gone took its author's name away, too; a post keeps it.
    let keeps_author = has_author && (!is_gone || !is_answer);
    assert_eq!(told("author").is_some(), keeps_author, "{}", place());
}

fn time(seconds: &Value) -> Option<Read> {
    let at_us = (seconds.as_f64()? * 1e6) as i64;
    Some(Read::Time {
        at_us,
        clamped: false,
    })
}
