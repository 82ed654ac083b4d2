//! What forums and forges need: ids that have to be put together, answers of two types, lists that
//! page together, names that are paths, and limits that only a header tells.

use crate::support::field;
use kittiwake_model::{Alias, Identity, Key, Object, OutcomeCode, Reference, Standing, Value};
use kittiwake_network::{Answer, Ask, Network, Page, Reading, RequestError};
use serde_json::json;
use url::Url;

/// A forum: threads with remarks under them, each remark with the way down to it.
const REEDS: &str = r#"format = 1
name = "reeds"
verified_on = "2026-11-16"
host = { kind = "fixed", address = "https://reeds.example/api" }

[types.user]
table = "users"
canonical = ".id"

[types.thread]
table = "statuses"
canonical = ".id"
aliases.place = { path = '.address | split("/at/") | last', movable = true }

[types.thread.fields.content]
author = { path = ".by", type = "user", alias = "canonical" }
created_us = ".written"

[types.remark]
table = "statuses"
canonical = ".id"

[types.remark.states]
gone = { path = ".gone", keeps = ["author", "reply_to"] }

[types.remark.fields.content]
author = { path = ".by", type = "user", alias = "canonical" }
created_us = ".written"
reply_to = [
    { path = '.way | split("/") | reverse | if length > 1 then .[1] else null end', type = "remark", alias = "canonical", link = "under" },
    { path = ".thread", type = "thread", alias = "canonical" },
]
asked = { path = "$subject", type = "thread" }
thread = { path = '.thread_address | split("/at/") | last', type = "thread", alias = "place" }

[queries.writings]
subject = "user"
path = "/users/{canonical}/writings"
page = { style = "number", parameter = "page", size_parameter = "per", size = 2, together = [".threads[]", ".remarks[]"] }
incremental = { until = ".written" }

[[queries.writings.selects]]
at = ".badges[]"
as = "user"

[[queries.writings.selects]]
at = ".threads[]"
as = "thread"

[[queries.writings.selects]]
at = ".remarks[]"
as = "remark"

[queries.remarks]
subject = "thread"
path = "/at/{place:path}/remarks"
page = { style = "link", size = 2, other_paths = true }

[[queries.remarks.selects]]
at = ".[]"
as = "remark"

[[robots]]
name = "writings"
subject = "user"
steps = [{ query = "writings" }]

[[robots]]
name = "remarks"
subject = "thread"
steps = [{ query = "remarks" }]

[[seeds]]
pattern = "@{name}"
type = "user"
value = "{name}"

[[errors]]
status = 403
header = { X-Left = "0" }
outcome = "rate limited"
reason = "nothing left"

[[errors]]
status = 403
header = { "retry-after" = "*" }
match = '.code == 9'
outcome = "quota exhausted"
"#;

fn reeds() -> Network {
    Network::parse("reeds.toml", REEDS).unwrap_or_else(|errors| panic!("{errors}"))
}

fn subject(kind: &str, place: &str) -> Identity {
    Identity {
        network: "reeds".into(),
        kind: kind.into(),
        canonical: Some("7".into()),
        aliases: vec![Alias {
            name: "place".into(),
            id: place.to_owned(),
            host: String::new(),
            movable: true,
        }],
    }
}

/// The address of a page of a query about what stands at a place.
fn asked(network: &Network, query: &str, place: &str, page: Page<'_>) -> Result<Url, RequestError> {
    let query = network.query(query).unwrap();
    let identity = subject(&query.kind, place);
    let plan = network.request(&Ask {
        query,
        base: &network.base("").unwrap(),
        host: "reeds.example",
        subjects: &[&identity],
        page,
        authenticated: false,
    })?;
    Ok(plan.url)
}

struct Sent<'a> {
    query: &'a str,
    page: Page<'a>,
    status: u16,
    headers: &'a [(&'a str, &'a str)],
}

impl<'a> Sent<'a> {
    fn ok(query: &'a str) -> Self {
        Self {
            query,
            page: Page::First,
            status: 200,
            headers: &[],
        }
    }

    fn read(&self, body: &serde_json::Value) -> Reading {
        let network = reeds();
        let query = network.query(self.query).unwrap();
        let identity = subject(&query.kind, "marsh/west");
        let told = |name: &str| {
            let mut headers = self.headers.iter();
            headers
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        network.read(&Answer {
            query,
            base: &network.base("").unwrap(),
            host: "reeds.example",
            subjects: &[(Key(1), &identity)],
            page: self.page,
            url: &asked(&network, self.query, "marsh/west", self.page).unwrap(),
            status: self.status,
            header: &told,
            body: body.to_string().as_bytes(),
            walk: Some(1),
        })
    }
}

fn remark(id: u32, way: &str) -> serde_json::Value {
    json!({
        "id": id, "by": "ann", "written": "2026-01-01T00:00:00Z", "way": way, "thread": 40,
        "thread_address": "https://reeds.example/at/marsh/west",
    })
}

/// Kind, canonical id and place of what a field refers to.
fn referred(object: &Object, name: &str) -> Option<(String, Option<String>, Option<String>)> {
    let Some(Value::Object(Reference::Identity(identity))) = field(object, name) else {
        return None;
    };
    let place = identity.alias("place", "reeds.example").map(str::to_owned);
    Some((identity.kind.to_string(), identity.canonical.clone(), place))
}

#[test]
fn an_answer_is_to_the_first_of_several_types_that_is_named() {
    let body = json!([remark(3, "1/2/3"), remark(1, "1")]);
    let reading = Sent::ok("remarks").read(&body);
    assert_eq!((reading.outcome, reading.mended), (OutcomeCode::Ok, 0));
    let [below, topmost] = reading.objects.as_slice() else {
        panic!("{:?}", reading.objects);
    };
    let named = |kind: &str, id: &str| Some((kind.to_owned(), Some(id.to_owned()), None));
    assert_eq!(referred(below, "reply_to"), named("remark", "2"));
    assert_eq!(referred(topmost, "reply_to"), named("thread", "40"));
    // What was asked about is known by its key; nothing was asked about a thread elsewhere.
    let asked = Some(&Value::Object(Reference::Key(Key(1))));
    assert_eq!(field(below, "asked"), asked);
    let body = json!({ "remarks": [remark(1, "1")] });
    let elsewhere = Sent::ok("writings").read(&body);
    assert_eq!(field(&elsewhere.objects[0], "asked"), None);
    // An id that was put together names by any alias; a link is made where the way says so.
    let place = Some("marsh/west".to_owned());
    assert_eq!(
        referred(below, "thread"),
        Some(("thread".into(), None, place))
    );
    let links: Vec<&str> = reading.links.iter().map(|link| &*link.kind).collect();
    assert_eq!(links, ["under"]);
}

#[test]
fn an_answer_to_nobody_is_told_from_one_that_says_nothing_of_it() {
    let bare = json!([{ "id": 1, "way": "1", "thread": null }, { "id": 2 }, { "id": 3, "way": 5 }]);
    let reading = Sent::ok("remarks").read(&bare);
    let answers: Vec<_> = reading
        .objects
        .iter()
        .map(|it| field(it, "reply_to"))
        .collect();
    assert_eq!(answers, [Some(&Value::Null), None, None]);
    // A number is no way.
    assert_eq!(reading.mended, 1);
}

#[test]
fn what_is_gone_keeps_its_place_in_the_conversation() {
    let mut gone = remark(2, "1/2");
    gone["gone"] = json!(true);
    let reading = Sent::ok("remarks").read(&json!([gone]));
    let [object] = reading.objects.as_slice() else {
        panic!("{:?}", reading.objects);
    };
    assert_eq!(object.standing, Standing::Invalid(OutcomeCode::Gone));
    let fields = object.groups.iter().flat_map(|group| &group.fields);
    let names: Vec<&str> = fields.map(|(name, _)| &**name).collect();
    assert_eq!(names, ["author", "reply_to"]);
}

#[test]
fn lists_that_page_together_go_on_as_long_as_the_longest() {
    let thread = |id: u32, written: &str| json!({ "id": id, "by": "ann", "written": written });
    let read = |threads: &[serde_json::Value], remarks: &[serde_json::Value], page| {
        // A list that does not page is on every page.
        let badges = [
            json!({ "id": "x" }),
            json!({ "id": "y" }),
            json!({ "id": "z" }),
        ];
        let body = json!({ "badges": badges, "threads": threads, "remarks": remarks });
        let sent = Sent {
            page,
            ..Sent::ok("writings")
        };
        sent.read(&body)
    };
    let old = thread(1, "2025-01-01T00:00:00Z");
    let reading = read(
        std::slice::from_ref(&old),
        &[remark(1, "1"), remark(2, "1/2")],
        Page::First,
    );
    assert_eq!(reading.listed, 2);
    let next = reading.next.expect("another page");
    assert!(next.starts_with("page=2&"), "{next}");
    assert_eq!(reading.latest.map(|it| it.0), Some(1_767_225_600_000_000));
    let reading = read(&[], &[remark(3, "3")], Page::Next(&next));
    let next = reading.next.expect("one list goes on");
    let reading = read(&[], &[], Page::Next(&next));
    assert_eq!((reading.listed, reading.next, reading.items), (0, None, 3));
}

#[test]
fn a_name_that_is_a_path_keeps_its_slashes_and_nothing_else() {
    let network = reeds();
    let target = |place: &str| {
        let url = asked(&network, "remarks", place, Page::First);
        url.map(|url| url.path().to_owned())
    };
    assert_eq!(
        target("marsh/we st?#%").unwrap(),
        "/api/at/marsh/we%20st%3F%23%25/remarks"
    );
    for wrong in ["marsh/../admin", "..", "a//b", "/a", "a/", "", "a/./b"] {
        let refused = target(wrong);
        assert!(
            matches!(refused, Err(RequestError::BadAlias { .. })),
            "{wrong}: {refused:?}"
        );
    }
}

#[test]
fn a_list_with_two_addresses_is_walked_under_its_own() {
    let link = "<https://reeds.example/threads/7/remarks?page=2>; rel=\"next\"";
    let headers = [("link", link)];
    let sent = Sent {
        headers: &headers,
        ..Sent::ok("remarks")
    };
    let reading = sent.read(&json!([remark(1, "1")]));
    assert_eq!(reading.next.as_deref(), Some("page=2"));
    let url = asked(&reeds(), "remarks", "marsh/west", Page::Next("page=2")).unwrap();
    assert_eq!(
        url.as_str(),
        "https://reeds.example/api/at/marsh/west/remarks?page=2"
    );
    // Another host is another matter.
    let headers = [(
        "link",
        "<https://evil.example/api/at/marsh/west/remarks?page=2>; rel=\"next\"",
    )];
    let sent = Sent {
        headers: &headers,
        ..Sent::ok("remarks")
    };
    let reading = sent.read(&json!([remark(1, "1")]));
    assert_eq!(
        (reading.outcome, reading.next),
        (OutcomeCode::Malformed, None)
    );
}

#[test]
fn a_header_can_tell_what_a_status_means() {
    let outcome = |headers: &[(&str, &str)], code: u32| {
        let sent = Sent {
            status: 403,
            headers,
            ..Sent::ok("remarks")
        };
        let reading = sent.read(&json!({ "code": code }));
        (reading.outcome, reading.reason)
    };
    let limited = (OutcomeCode::RateLimited, "nothing left".to_owned());
    assert_eq!(outcome(&[("x-left", " 0 ")], 1), limited);
    let forbidden = (OutcomeCode::Forbidden, "http 403".to_owned());
    assert_eq!(outcome(&[("x-left", "10")], 1), forbidden);
    assert_eq!(outcome(&[], 9), forbidden);
    assert_eq!(outcome(&[("retry-after", "60")], 1), forbidden);
    let exhausted = (OutcomeCode::QuotaExhausted, "http 403".to_owned());
    assert_eq!(outcome(&[("retry-after", "60")], 9), exhausted);
}

/// What is right, what is written in its place, and what is said about it.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "header = { X-Left = \"0\" }",
        "header = { X-Left = 0 }",
        "what the header `X-Left` says must be a text; write `\"X-Left\" = \"0\"`, or `\"*\"` for any word",
    ),
    (
        "keeps = [\"author\", \"reply_to\"]",
        "keeps = [\"autor\"]",
        "a field cannot be `autor`; did you mean `author`?",
    ),
    (
        "gone = { path = \".gone\", keeps = [\"author\", \"reply_to\"] }",
        "gone = true",
        "the state `gone` must be a path or a table; write `gone = \".suspended\"`",
    ),
    (
        "together = [\".threads[]\", \".remarks[]\"]",
        "together = [\".threads[]\", \".remrks[]\"]",
        "no select takes the list `.remrks[]`; write the `at` of selects that end in `[]`",
    ),
    (
        "incremental = { until = \".written\" }",
        "incremental = { parameter = \"since\", alias = \"canonical\" }",
        "items of several lists have no ids in common that marks could be made of; write `until",
    ),
    (
        "size = 2, other_paths = true",
        "size = 2, together = [\".[]\"]",
        "`together` has no meaning with `style = \"link\"`; leave it out; it belongs to number, offset",
    ),
    (
        "parameter = \"page\", size_parameter",
        "parameter = \"page\", other_paths = true, size_parameter",
        "`other_paths` has no meaning with `style = \"number\"`; leave it out; it belongs to link, next",
    ),
    (
        "path = \"/at/{place:path}/remarks\"",
        "path = \"/at/{place:paths}/remarks\"",
        "a placeholder cannot be `place:paths`",
    ),
    (
        "path = \"/at/{place:path}/remarks\"",
        "path = \"/remarks\"\nparameters = { at = \"{place:path}\" }",
        "a placeholder cannot be `place:path`",
    ),
    (
        "type = \"remark\", alias = \"canonical\", link",
        "type = \"remark\", link",
        "is no plain path to one object; write for example `.account`, or `alias` if it makes an id",
    ),
    (
        "{ path = \".thread\", type = \"thread\", alias = \"canonical\" },",
        "{ path = \".thread\", type = \"user\", alias = \"canonical\" },",
        "the column `reply_to` refers to statuses; use a type whose `table` is `statuses`",
    ),
    (
        "{ path = \".thread\", type = \"thread\", alias = \"canonical\" },",
        "{ path = \".thread\", kind = \"text\" },",
        "has no `type`; write for example `type = \"user\"`",
    ),
    (
        "created_us = \".written\"",
        "created_us = { path = \".written\", type = \"user\" }",
        "the column `created_us` holds time; write `kind = \"time\"`, or give the field another name",
    ),
];

#[test]
fn what_cannot_be_meant_is_refused_with_what_to_write() {
    for (right, wrong, said) in MISTAKES {
        assert!(REEDS.contains(right), "{right}");
        let found = match Network::parse("reeds.toml", &REEDS.replacen(right, wrong, 1)) {
            Ok(_) => "none".to_owned(),
            Err(errors) => errors.to_string(),
        };
        assert!(found.contains(said), "{wrong}\n{found}");
    }
}
