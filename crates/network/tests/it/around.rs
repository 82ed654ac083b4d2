//! Items with something around their objects: only some of them, objects inside them, trees of them, and
//! what expressions make out of objects.

use crate::support::field;
use kittiwake_model::{Identity, Key, OutcomeCode, Reference, Value, WorldTime};
use kittiwake_network::{Answer, Network, Page, Reading};
use proptest::prelude::*;
use serde_json::json;

const DEFINITION: &str = r#"format = 1
name = "nests"
verified_on = "2026-11-16"
host = { kind = "fixed", address = "https://nests.example" }

[types.user]
table = "users"
canonical = ".id"

[types.tag]
table = "tags"
canonical = ".name | downcase"
fields.card.name = ".name"

[types.post]
table = "statuses"
canonical = ".id"
fields.content.text = ".body.text"
fields.content.language = ".body.langs | first"

[types.post.links.mention]
path = '[.body.parts[]? | select(.who) | .who]'
type = "user"
alias = "canonical"
at = ".body.at"

[types.post.links.tag]
path = '[.body.parts[]? | select(.tag) | { name: .tag }]'
type = "tag"

[queries.feed]
subject = "user"
path = "/feed"

[[queries.feed.selects]]
at = ".feed[]"
item = ".post"
as = "post"

[[queries.feed.selects]]
at = ".feed[]"
only = ".reason.by"
item = ".post"
as = "post"
link = { kind = "repost", from = "subject", to = "item", at = ".reason.at" }

[[queries.feed.selects]]
at = ".feed[]"
only = '.reason.kind == "pin"'
item = ".post"
as = "post"
link = { kind = "pin", from = "subject", to = "item" }

[queries.thread]
subject = "post"
path = "/thread"
ignored = [{ path = ".thread.kind", reason = "always the same" }]

[[queries.thread.selects]]
at = ".thread"
descend = [".parent", ".replies[]"]
item = ".post"
as = "post"

[queries.users]
subject = "user"
path = "/users"
batch = { parameter = "id", alias = "canonical", max = 10, missing = "user" }
selects = [{ at = ".users[]", as = "user", is_subject = true }]

[queries.user]
subject = "user"
path = "/users/{canonical}"
selects = [{ at = ".", as = "user", is_subject = true }]

[[robots]]
name = "feed"
subject = "user"
steps = [{ query = "feed" }]

[[seeds]]
pattern = "@{name}"
type = "user"
value = "{name}"
"#;

fn network() -> Network {
    Network::parse("nests.toml", DEFINITION).unwrap_or_else(|it| panic!("{it}"))
}

fn read(query: &str, ids: &[&str], body: &serde_json::Value) -> Reading {
    let network = network();
    let query = network.query(query).unwrap();
    let base = network.base("").unwrap();
    let named = |id: &&str| Identity {
        network: "nests".into(),
        kind: query.kind.clone(),
        canonical: Some((*id).to_owned()),
        aliases: Vec::new(),
    };
    let subjects: Vec<Identity> = ids.iter().map(named).collect();
    let subjects: Vec<(Key, &Identity)> = (1..).map(Key).zip(&subjects).collect();
    network.read(&Answer {
        query,
        base: &base,
        host: "nests.example",
        subjects: &subjects,
        page: Page::First,
        url: &base,
        status: 200,
        header: &|_| None,
        body: body.to_string().as_bytes(),
        walk: None,
    })
}

/// Links of a kind: where to, and since when.
fn links(reading: &Reading, kind: &str) -> Vec<(String, Option<i64>)> {
    let links = reading.links.iter().filter(|link| &*link.kind == kind);
    links
        .map(|link| {
            let identity = match &link.to {
                Reference::Object(place) => &reading.objects[*place as usize].identity,
                Reference::Identity(identity) => identity,
                Reference::Key(_) => panic!("nobody was asked about that"),
            };
            let id = identity.canonical.clone().unwrap();
            (id, link.at.map(WorldTime::micros))
        })
        .collect()
}

fn ids(reading: &Reading) -> Vec<&str> {
    let all = reading.objects.iter();
    all.map(|object| object.identity.canonical.as_deref().unwrap())
        .collect()
}

#[test]
fn an_object_is_found_in_its_item_and_linked_by_what_stands_around_it() {
    let reading = read(
        "feed",
        &["ann"],
        &json!({ "feed": [
            { "post": { "id": "1", "body": { "text": "own" } } },
            { "post": { "id": "2" }, "reason": { "by": "ann", "at": "1970-01-01T00:00:05Z" } },
            { "post": { "id": "3" }, "reason": { "kind": "pin" } },
            { "blocked": true },
            null,
        ] }),
    );
    assert_eq!((reading.outcome, reading.mended), (OutcomeCode::Ok, 0));
    assert_eq!(ids(&reading), ["1", "2", "3"], "each is read once");
    assert_eq!(links(&reading, "repost"), [("2".into(), Some(5_000_000))]);
    assert_eq!(links(&reading, "pin"), [("3".into(), None)]);
    let text = field(&reading.objects[0], "text");
    assert_eq!(text, Some(&Value::Text("own".into())));
}

#[test]
fn a_tree_is_read_to_its_leaves() {
    let reading = read(
        "thread",
        &["2"],
        &json!({ "thread": {
            "post": { "id": "2" },
            "parent": { "post": { "id": "1" }, "parent": { "gone": true } },
            "replies": [
                { "post": { "id": "3" }, "replies": [{ "post": { "id": "5" }, "replies": [] }] },
                { "post": { "id": "4" }, "replies": null },
            ],
        } }),
    );
    assert_eq!((reading.outcome, reading.mended), (OutcomeCode::Ok, 0));
    let mut found = ids(&reading);
    found.sort_unstable();
    assert_eq!(found, ["1", "2", "3", "4", "5"]);
}

#[test]
fn a_tree_that_does_not_end_is_cut_off_and_counted() {
    let mut thread = json!({ "post": { "id": "deepest" } });
    for level in 0..400 {
        thread = json!({ "post": { "id": level.to_string() }, "replies": [thread] });
    }
    let reading = read("thread", &["399"], &json!({ "thread": thread }));
    assert_eq!(reading.outcome, OutcomeCode::Ok);
    assert_eq!((reading.objects.len(), reading.mended), (101, 1));
}

#[test]
fn expressions_make_ids_and_objects_to_link_to() {
    let parts = json!([{ "tag": "Gulls" }, { "who": "bob" }, { "url": "x" }, { "tag": "terns" }]);
    let body =
        json!({ "text": "t", "langs": ["de", "en"], "parts": parts, "at": "1970-01-01T00:00:01Z" });
    let reading = read(
        "feed",
        &["ann"],
        &json!({ "feed": [{ "post": { "id": "1", "body": body } }] }),
    );
    assert_eq!(reading.mended, 0);
    assert_eq!(
        links(&reading, "mention"),
        [("bob".into(), Some(1_000_000))]
    );
    let tags = [("gulls".into(), None), ("terns".into(), None)];
    assert_eq!(links(&reading, "tag"), tags);
    let tag = reading
        .objects
        .iter()
        .find(|it| &*it.identity.kind == "tag");
    let name = field(tag.unwrap(), "name");
    assert_eq!(name, Some(&Value::Text("Gulls".into())));
    let post = reading
        .objects
        .iter()
        .find(|it| &*it.identity.kind == "post");
    let language = field(post.unwrap(), "language");
    assert_eq!(language, Some(&Value::Text("de".into())));
}

#[test]
fn what_an_expression_does_not_look_at_is_not_observed() {
    let post = json!({ "id": "1", "body": { "text": "t" } });
    let reading = read("feed", &["ann"], &json!({ "feed": [{ "post": post }] }));
    assert_eq!(field(&reading.objects[0], "language"), None);
    assert_eq!((reading.links.len(), reading.mended), (0, 0));
}

#[test]
fn nothing_is_said_of_those_who_have_to_be_asked_for_alone() {
    let users = json!({ "users": [{ "id": "b" }, null] });
    let reading = read("users", &["a", "b", "c"], &users);
    assert_eq!(reading.absent, [Key(1), Key(3)]);
    assert!(reading.subject_outcomes.is_empty());
}

#[test]
fn what_is_left_out_of_an_item_is_left_out_of_those_in_it() {
    let network = network();
    let query = network.query("thread").unwrap();
    let answer = json!({ "thread": {
        "kind": "x", "post": { "id": "1" }, "odd": 1,
        "replies": [{ "kind": "x", "post": { "id": "2" }, "strange": 1 }],
    } });
    let unread = network.unmapped_answer(query, &answer);
    assert_eq!(unread, [".thread.odd", ".thread.replies[].strange"]);
}

#[test]
fn what_a_select_looks_at_and_what_its_type_reads_may_stand_in_one_place() {
    let text = r#"format = 1
name = "nests"
verified_on = "2026-11-16"
host = { kind = "fixed", address = "https://nests.example" }

[types.user]
table = "users"
canonical = ".id"

[types.post]
table = "statuses"
canonical = ".id"
fields.content.text = ".seen.text"
ignored = [{ path = ".seen.marks[].kind", reason = "what it is" }]

[queries.liked]
subject = "user"
path = "/liked"

[[queries.liked.selects]]
at = ".liked[]"
as = "post"
link = { kind = "like", from = "subject", to = "item", at = ".seen.at" }
"#;
    let network = Network::parse("nests.toml", text).unwrap();
    let query = network.query("liked").unwrap();
    let answer = json!({ "liked": [{ "id": "1", "seen": {
        "text": "x", "at": "2026-10-14T17:06:00Z", "odd": { "x": 1 }, "list": [1],
        "marks": [{ "kind": "x", "strange": 1 }],
    } }] });
    let unread = network.unmapped_answer(query, &answer);
    let expected = [
        ".liked[].seen.list",
        ".liked[].seen.marks[].strange",
        ".liked[].seen.odd.x",
    ];
    assert_eq!(unread, expected);
}

proptest! {
    #[test]
    fn whatever_stands_around_an_object_is_survived(
        reason in "[{}\\[\\]\":,a-z0-9 ]{0,30}",
        depth in 0_usize..300,
    ) {
        let nested = format!("{}{}", "{\"replies\":[".repeat(depth), "]}".repeat(depth));
        for value in [reason, nested] {
            if let Ok(value) = serde_json::from_str::<serde_json::Value>(&value) {
                read("feed", &["ann"], &json!({ "feed": [{ "post": value.clone(), "reason": value.clone() }] }));
                read("thread", &["1"], &json!({ "thread": { "post": value.clone(), "replies": value } }));
            }
        }
    }
}
