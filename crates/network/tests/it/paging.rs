//! Every way of paging, of sending and of marking, without a server.

use kittiwake_model::{Alias, Identity, Key, OutcomeCode, WorldTime};
use kittiwake_network::{Answer, Ask, Network, Page, Query, Reading, RequestError, RequestPlan};
use proptest::prelude::*;
use serde_json::{Value, json};
use url::Url;

/// A network whose one list is walked as `lines` say.
fn definition(lines: &str) -> String {
    format!(
        r#"format = 1
name = "tiny"
verified_on = "2026-11-16"
host = {{ kind = "fixed", address = "https://api.tiny.example/v1" }}

[auth.methods.key]
kind = "token"
send = {{ query = "key" }}

[types.user]
table = "users"
canonical = ".id"

[types.post]
table = "statuses"
aliases.id = ".id"

[types.post.fields.content]
created_us = ".at"

[queries.posts]
subject = "user"
path = "/posts"
{lines}

[[queries.posts.selects]]
at = ".posts[]"
as = "post"

[[queries.posts.selects]]
at = ".authors[]"
as = "user"

[[robots]]
name = "posts"
subject = "user"
steps = [{{ query = "posts" }}]

[[seeds]]
pattern = "@{{name}}"
type = "user"
value = "{{name}}"
"#
    )
}

fn tiny(lines: &str) -> Network {
    Network::parse("tiny.toml", &definition(lines)).unwrap_or_else(|errors| panic!("{errors}"))
}

fn ann() -> Identity {
    Identity {
        network: "tiny".into(),
        kind: "user".into(),
        canonical: Some("u/1".into()),
        aliases: Vec::<Alias>::new(),
    }
}

fn query(network: &Network) -> &Query {
    network.query("posts").unwrap()
}

fn asked(network: &Network, page: Page<'_>) -> Result<RequestPlan, RequestError> {
    let base = network.base("").unwrap();
    network.request(&Ask {
        query: query(network),
        base: &base,
        host: "",
        subjects: &[&ann()],
        page,
        authenticated: false,
    })
}

fn plan(network: &Network, page: Page<'_>) -> RequestPlan {
    asked(network, page).unwrap()
}

fn read(network: &Network, page: Page<'_>, body: &str) -> Reading {
    let base = network.base("").unwrap();
    let url = plan(network, page).url;
    network.read(&Answer {
        query: query(network),
        base: &base,
        host: "",
        subjects: &[(Key(1), &ann())],
        page,
        url: &url,
        status: 200,
        header: &|_| None,
        body: body.as_bytes(),
        walk: None,
    })
}

fn posts(ids: &[u64]) -> Vec<Value> {
    let post = |id: &u64| json!({ "id": id.to_string(), "at": "2026-11-16T10:00:00Z" });
    ids.iter().map(post).collect()
}

/// The token after the first page, and the address that it leads to.
fn turned(network: &Network, body: &Value) -> Option<(String, String)> {
    let reading = read(network, Page::First, &body.to_string());
    assert!(reading.outcome.is_success(), "{}", reading.reason);
    let next = reading.next?;
    let target = plan(network, Page::Next(&next)).target;
    Some((next, target))
}

const CURSOR: &str = "page = { style = \"cursor\", at = \".meta.next\", more = \".meta.more\", parameter = \"after\", \
                      last = [0, \"-1\"], size_parameter = \"count\", size = 3 }";

#[test]
fn a_cursor_goes_where_the_definition_says_and_keeps_every_digit() {
    let network = tiny(CURSOR);
    assert_eq!(plan(&network, Page::First).target, "/v1/posts?count=3");
    for (cursor, token) in [
        (json!("a b&c=é"), "after=a+b%26c%3D%C3%A9"),
        (json!(7), "after=7"),
    ] {
        let body = json!({ "posts": posts(&[1]), "meta": { "next": cursor } });
        let (next, target) = turned(&network, &body).unwrap();
        assert_eq!(next, token);
        assert_eq!(target, format!("/v1/posts?count=3&{token}"));
        assert_eq!(plan(&network, Page::Next(&next)).cursor, token);
    }
    let long = "123456789012345678901234567890.25";
    let body = format!("{{\"posts\":[],\"meta\":{{\"next\":{long}}}}}");
    let next = read(&network, Page::First, &body).next;
    assert_eq!(next.as_deref(), Some(&*format!("after={long}")));
}

#[test]
fn a_cursor_that_is_missing_or_the_last_ends_the_walk_and_an_empty_page_does_not() {
    let network = tiny(CURSOR);
    for meta in [
        json!({}),
        json!(null),
        json!({ "next": null }),
        json!({ "next": "" }),
        json!({ "next": false }),
        json!({ "next": 0 }),
        json!({ "next": "0" }),
        json!({ "next": -1 }),
        json!({ "next": "x", "more": false }),
    ] {
        let body = json!({ "posts": posts(&[1, 2, 3]), "meta": meta });
        assert_eq!(turned(&network, &body), None, "{meta}");
    }
    // Neither a short page nor an empty one is the last, nor one whose list is left out.
    for body in [
        json!({ "posts": posts(&[1]), "meta": { "next": "x", "more": true } }),
        json!({ "posts": [], "meta": { "next": "x" } }),
        json!({ "meta": { "next": "x" } }),
    ] {
        assert_eq!(turned(&network, &body).unwrap().0, "after=x", "{body}");
    }
    // With nothing on it and nothing behind it, the list is empty.
    let reading = read(&network, Page::First, r#"{"meta":{"count":0}}"#);
    assert_eq!((reading.outcome, reading.next), (OutcomeCode::Empty, None));
    let reading = read(&network, Page::First, r#"{"message":"busy"}"#);
    assert_eq!(reading.outcome, OutcomeCode::Malformed);
}

#[test]
fn a_cursor_that_is_none_is_a_fault() {
    let network = tiny(CURSOR);
    for next in ["true", "[1]", "{}", "\"\\u0000\"", "\"\\ud800\""] {
        let body = format!("{{\"posts\":[],\"meta\":{{\"next\":{next}}}}}");
        let reading = read(&network, Page::First, &body);
        assert_eq!(reading.outcome, OutcomeCode::Malformed, "{next}");
        assert_eq!(reading.reason, "next page cannot be read");
    }
    let long = json!({ "posts": [], "meta": { "next": "x".repeat(3_000) } });
    let reading = read(&network, Page::First, &long.to_string());
    assert_eq!(reading.outcome, OutcomeCode::Malformed);
}

#[test]
fn an_address_in_the_answer_is_checked_and_loses_its_secrets() {
    let network = tiny(
        "page = { style = \"next\", at = \".paging.next\", size_parameter = \"n\", size = 3 }",
    );
    let told = |next: &str| {
        let body = json!({ "posts": posts(&[1]), "paging": { "next": next } });
        read(&network, Page::First, &body.to_string())
    };
    for next in [
        "https://api.tiny.example/v1/posts?n=3&after=x&key=secret&access_token=secret",
        "/v1/posts?after=x&n=3",
        "?after=x",
    ] {
        assert_eq!(told(next).next.as_deref(), Some("after=x"), "{next}");
    }
    for (next, reason) in [
        (
            "https://evil.example/v1/posts?after=x",
            "next page on another host",
        ),
        ("/v1/other?after=x", "next page on another path"),
        ("?n=3", "next page is the same page"),
        ("https://[", "next page cannot be read"),
    ] {
        let reading = told(next);
        assert_eq!(
            (reading.outcome, &*reading.reason),
            (OutcomeCode::Malformed, reason)
        );
    }
    assert_eq!(told("").next, None);
}

#[test]
fn numbers_and_offsets_count_what_came_even_if_it_cannot_be_read() {
    let network = tiny("page = { style = \"number\", parameter = \"page\", first = 0, size = 3 }");
    assert_eq!(plan(&network, Page::First).target, "/v1/posts?page=0");
    let body = json!({ "posts": posts(&[1, 2]), "authors": [{ "id": "u/2" }] });
    let (next, target) = turned(&network, &body).unwrap();
    assert_eq!(target, "/v1/posts?page=1");
    assert_eq!(plan(&network, Page::Next(&next)).cursor, "page=1");
    let second = read(
        &network,
        Page::Next(&next),
        &json!({ "posts": posts(&[3]) }).to_string(),
    );
    let third = plan(&network, Page::Next(&second.next.unwrap())).target;
    assert_eq!(third, "/v1/posts?page=2");
    // A server that answers any number with the same page leads back to that page.
    let same = read(&network, Page::Next(&next), &body.to_string());
    assert_eq!(same.next.as_deref(), Some(&*next));

    let network = tiny("page = { style = \"offset\", parameter = \"from\", size = 3 }");
    let body = json!({ "posts": [{ "id": "1" }, { "no": "id" }, 3], "authors": [{ "id": "u/2" }] });
    let (next, target) = turned(&network, &body).unwrap();
    assert_eq!(target, "/v1/posts?from=3");
    let second = read(
        &network,
        Page::Next(&next),
        &json!({ "posts": posts(&[4]) }).to_string(),
    );
    assert_eq!(second.listed, 1);
    let third = plan(&network, Page::Next(&second.next.unwrap())).target;
    assert_eq!(third, "/v1/posts?from=4");
    assert_eq!(turned(&network, &json!({ "posts": [] })), None);
}

#[test]
fn a_page_that_is_not_full_is_the_last_where_the_definition_says_so() {
    for page in [
        "style = \"number\", parameter = \"page\"",
        "style = \"offset\", parameter = \"from\"",
        "style = \"ids\", parameter = \"max_id\", alias = \"id\", bound = \"exclusive\"",
        "style = \"cursor\", at = \".next\", parameter = \"after\"",
    ] {
        let network = tiny(&format!("page = {{ {page}, size = 3, ends = \"short\" }}"));
        let full = json!({ "posts": posts(&[7, 8, 9]), "next": "x" });
        assert!(turned(&network, &full).is_some(), "{page}");
        let short = json!({ "posts": posts(&[7, 8]), "next": "x" });
        assert_eq!(turned(&network, &short), None, "{page}");
    }
}

#[test]
fn the_oldest_id_of_a_page_bounds_the_next() {
    let ids = |bound: &str| {
        tiny(&format!(
            "page = {{ style = \"ids\", parameter = \"max_id\", alias = \"id\", bound = \"{bound}\", size = 3 }}"
        ))
    };
    let page = |ids: &[u64]| json!({ "posts": posts(ids) }).to_string();
    let network = ids("exclusive");
    // Of 9 and 10, the longer is the newer.
    assert_eq!(
        read(&network, Page::First, &page(&[11, 9, 10]))
            .next
            .as_deref(),
        Some("max_id=9")
    );
    assert_eq!(
        read(&network, Page::Next("max_id=9"), &page(&[])).next,
        None
    );
    // An id that cannot be read is no id to go on from.
    let reading = read(&network, Page::First, r#"{"posts":[{"x":1}]}"#);
    assert_eq!(
        reading.outcome,
        OutcomeCode::Malformed,
        "{}",
        reading.reason
    );
    let network = ids("inclusive");
    let next = |ids: &[u64]| read(&network, Page::Next("max_id=9"), &page(ids)).next;
    assert_eq!(next(&[9, 8, 7]).as_deref(), Some("max_id=7"));
    assert_eq!(next(&[8, 7]).as_deref(), Some("max_id=7"));
    assert_eq!(next(&[9]), None);
    let reading = read(&network, Page::Next("max_id=9"), &page(&[9, 8]));
    assert_eq!((reading.items, reading.listed), (2, 1));
    // A server that ignores the bound leads back to the same page.
    assert_eq!(next(&[11, 10, 9]).as_deref(), Some("max_id=9"));
}

#[test]
fn a_mark_stays_with_every_page_of_its_walk() {
    let lines = format!("{CURSOR}\nincremental = {{ parameter = \"since_id\", alias = \"id\" }}");
    let network = tiny(&lines);
    assert!(!query(&network).goes_forward());
    let body = json!({ "posts": posts(&[12, 11]), "meta": { "next": "x" } }).to_string();
    let first = read(&network, Page::Since("9"), &body);
    assert_eq!(first.newest.as_deref(), Some("12"));
    let next = first.next.unwrap();
    assert_eq!(next, "since_id=9&after=x");
    let plan = plan(&network, Page::Next(&next));
    assert_eq!(plan.target, "/v1/posts?count=3&since_id=9&after=x");
    let second = read(&network, Page::Next(&next), &body.replace("\"x\"", "\"y\""));
    // What is older than the first page is no mark.
    assert_eq!(second.newest, None);
    assert_eq!(second.next.as_deref(), Some("since_id=9&after=y"));
}

fn time(text: &str) -> WorldTime {
    WorldTime(text.parse::<jiff::Timestamp>().unwrap().as_microsecond())
}

#[test]
fn marks_can_be_times() {
    let lines = format!(
        "{CURSOR}\nincremental = {{ until = \".pinned_at // .at\", format = \"rfc3339\", overlap = \"10m\" }}"
    );
    let network = tiny(&lines);
    let body = json!({
        "posts": [
            { "id": "1", "at": "2026-11-16T10:00:00Z" },
            { "id": "2", "at": "2026-11-16T11:00:00Z", "pinned_at": "2026-11-16T09:00:00Z" },
            { "id": "3", "at": "yesterday" },
            { "id": "4" },
            5,
        ],
        "meta": { "next": "x" },
    });
    let mark = "2026-11-16T12:00:00Z";
    // The mark is nothing that the network is told.
    assert_eq!(
        plan(&network, Page::Since(mark)).target,
        "/v1/posts?count=3"
    );
    let reading = read(&network, Page::Since(mark), &body.to_string());
    assert_eq!(reading.latest, Some(time("2026-11-16T10:00:00Z")));
    assert_eq!(reading.next.as_deref(), Some("after=x"));
    let query = query(&network);
    assert_eq!(query.ends_before(mark), Some(time("2026-11-16T11:50:00Z")));
    assert_eq!(query.ends_before("12"), None);
    let (started, later) = (time("2026-11-16T12:30:00Z"), time("2099-01-01T00:00:00Z"));
    let forged = query.mark_after(Some(mark), Some(later), started);
    assert_eq!(forged.as_deref(), Some("2026-11-16T12:30:00Z"));
    let older = query.mark_after(Some(mark), reading.latest, started);
    assert_eq!(older.as_deref(), Some(mark));
    assert_eq!(query.mark_after(None, None, started), None);
}

#[test]
fn a_time_can_be_a_parameter_in_the_networks_own_writing() {
    let mark = "2026-11-16T12:00:00.75Z";
    for (format, written) in [
        ("rfc3339", "2026-11-16T11%3A59%3A00Z"),
        ("epoch_s", "1794830340"),
        ("epoch_ms", "1794830340750"),
        ("date", "2026-11-16"),
        ("%d.%m.%Y %H:%M", "16.11.2026+11%3A59"),
    ] {
        let lines = format!(
            "{CURSOR}\nincremental = {{ parameter = \"since\", time = \".at\", format = \"{format}\", overlap = \"1m\" }}"
        );
        let network = tiny(&lines);
        let plan = plan(&network, Page::Since(mark));
        assert_eq!(plan.target, format!("/v1/posts?count=3&since={written}"));
        let body = json!({ "posts": posts(&[1]), "meta": { "next": "x" } }).to_string();
        let next = read(&network, Page::Since(mark), &body).next.unwrap();
        assert_eq!(next, format!("since={written}&after=x"));
        assert_eq!(query(&network).ends_before(mark), None);
    }
}

fn body_of(plan: &RequestPlan) -> Value {
    assert_eq!(plan.method, "POST");
    assert_eq!(plan.target, "/v1/posts");
    let kind = ("content-type".to_owned(), "application/json".to_owned());
    assert!(plan.headers.contains(&kind));
    serde_json::from_str(plan.body.as_deref().unwrap()).unwrap()
}

#[test]
fn a_body_of_json_keeps_the_types_of_its_values() {
    let parameters = "method = \"POST\"\nbody = \"json\"\n\
        parameters = { user = \"{canonical}\", deep = true, depth = 3, kinds = [\"a\", 1], filter = { of = \"x{canonical}\" } }\n";
    let network = tiny(&format!("{parameters}{CURSOR}"));
    let fixed = json!({
        "user": "u/1", "deep": true, "depth": 3, "kinds": ["a", 1], "filter": { "of": "xu/1" }, "count": 3,
    });
    assert_eq!(body_of(&plan(&network, Page::First)), fixed);
    // What came as a number goes back as one, what came as a text as a text.
    for cursor in [json!(7), json!("7"), json!("é \"")] {
        let body = json!({ "posts": [], "meta": { "next": cursor } });
        let (next, _) = turned(&network, &body).unwrap();
        let mut expected = fixed.clone();
        expected["after"] = cursor;
        assert_eq!(body_of(&plan(&network, Page::Next(&next))), expected);
    }
    for token in ["after%3A=x", "after%3A=", "after%3A=1%7D"] {
        let refused = asked(&network, Page::Next(token));
        assert_eq!(refused, Err(RequestError::BadCursor), "{token}");
    }
    let network = tiny(
        "method = \"POST\"\nbody = \"json\"\npage = { style = \"offset\", parameter = \"from\", size = 3 }",
    );
    let (next, _) = turned(&network, &json!({ "posts": posts(&[1, 2]) })).unwrap();
    assert_eq!(
        body_of(&plan(&network, Page::Next(&next))),
        json!({ "from": 2 })
    );
    let second = read(
        &network,
        Page::Next(&next),
        &json!({ "posts": posts(&[3]) }).to_string(),
    );
    let third = plan(&network, Page::Next(&second.next.unwrap()));
    assert_eq!(body_of(&third), json!({ "from": 3 }));
}

#[test]
fn a_form_is_sent_in_the_body_and_signed_as_if_it_were_in_the_address() {
    let lines =
        "method = \"POST\"\nbody = \"form\"\nparameters = { user = \"{canonical}\", deep = 1 }\n";
    let network = tiny(&format!("{lines}{CURSOR}"));
    let plan = plan(&network, Page::Next("after=a+b"));
    assert_eq!((plan.method, &*plan.target), ("POST", "/v1/posts"));
    assert_eq!(
        plan.body.as_deref(),
        Some("user=u%2F1&deep=1&count=3&after=a+b")
    );
    let kind = "application/x-www-form-urlencoded".to_owned();
    assert!(plan.headers.contains(&("content-type".to_owned(), kind)));
    let signed = plan.signed_url(&plan.url);
    assert_eq!(signed.query(), plan.body.as_deref());
    let other = tiny(CURSOR);
    let other = asked(&other, Page::First).unwrap();
    assert_eq!(other.signed_url(&other.url).as_ref(), &other.url);
}

#[test]
fn the_parameters_of_a_graphql_query_are_its_variables() {
    let lines = "method = \"POST\"\nparameters = { login = \"{canonical}\" }\n\
        graphql = \"\"\"query($login: String!, $after: String) { user(login: $login) { id } }\"\"\"\n";
    let network = tiny(&format!("{lines}{CURSOR}"));
    let sent = body_of(&plan(&network, Page::Next("after=x")));
    let document = "query($login: String!, $after: String) { user(login: $login) { id } }";
    let variables = json!({ "login": "u/1", "count": 3, "after": "x" });
    assert_eq!(sent, json!({ "query": document, "variables": variables }));
}

#[test]
fn a_batch_in_json_is_a_list() {
    let text = definition("").replace(
        "path = \"/posts\"\n",
        "path = \"/posts\"\nmethod = \"POST\"\nbody = \"json\"\n\
         batch = { parameter = \"ids\", alias = \"canonical\", max = 9 }\n",
    );
    let text = text.replace("as = \"user\"", "as = \"user\"\nis_subject = true");
    let network = Network::parse("tiny.toml", &text).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(
        body_of(&plan(&network, Page::First)),
        json!({ "ids": ["u/1"] })
    );
}

#[test]
fn subjects_that_share_a_call_share_its_path() {
    let text = definition("").replace(
        "path = \"/posts\"\n",
        "path = \"/users/{canonical}/posts\"\n\
         batch = { parameter = \"ids\", alias = \"canonical\", max = 9 }\n",
    );
    let text = text.replace("as = \"user\"", "as = \"user\"\nis_subject = true");
    let error = Network::parse("tiny.toml", &text).unwrap_err().to_string();
    let expected = "`{canonical}` differs among the subjects of a batch";
    assert!(error.contains(expected), "{error}");
}

/// Lines that contradict themselves, and what is said of them.
const CONTRADICTIONS: &[(&str, &str)] = &[
    (
        "page = { style = \"cursors\", size = 3 }",
        "did you mean `cursor`?",
    ),
    (
        "page = { style = \"cursor\", size = 3 }",
        "[queries.posts.page] has no `at`",
    ),
    (
        "page = { style = \"cursor\", at = \".x\", size = 3 }",
        "has no `parameter`",
    ),
    (
        "page = { style = \"cursor\", at = \".x[]\", parameter = \"a\", size = 3 }",
        "no plain path to one value",
    ),
    (
        "page = { style = \"link\", at = \".x\", size = 3 }",
        "`at` has no meaning with `style = \"link\"`; leave it out; it belongs to cursor, next",
    ),
    (
        "page = { style = \"number\", parameter = \"p\", size = 3, ends = \"token\" }",
        "write `ends = \"empty\"` or `ends = \"short\"`",
    ),
    (
        "page = { style = \"number\", parameter = \"p\", first = 2, size = 3 }",
        "a whole number from 0 to 1",
    ),
    (
        "page = { style = \"ids\", parameter = \"p\", alias = \"num\", bound = \"exclusive\", size = 3 }",
        "the alias of `post` cannot be `num`",
    ),
    (
        "page = { style = \"ids\", parameter = \"p\", alias = \"id\", size = 3 }",
        "write for example `bound = \"exclusive\"`",
    ),
    (
        "page = { style = \"ids\", parameter = \"p\", alias = \"id\", bound = \"inclusive\", size = 1 }",
        "write a larger `size`",
    ),
    (
        "page = { style = \"link\", size = 3, items_max = 0 }",
        "a whole number from 1",
    ),
    ("body = \"json\"", "`body` is for `method = \"POST\"`"),
    (
        "graphql = \"query { a }\"",
        "`graphql` is for `method = \"POST\"`",
    ),
    ("method = \"POST\"", "write for example `body = \"json\"`"),
    ("method = \"PUT\"", "`method` cannot be `PUT`"),
    (
        "parameters = { a = [1, 2] }",
        "the parameter `a` must be one text",
    ),
    (
        "incremental = { until = \".at\" }",
        "an incremental walk needs pages",
    ),
];

/// The same beside pages by a cursor.
const CONTRADICTIONS_OF_MARKS: &[(&str, &str)] = &[
    (
        "incremental = { until = \".at\", parameter = \"since\" }",
        "write `time` in place of `until`",
    ),
    (
        "incremental = { until = \".at[]\" }",
        "no plain path to a time",
    ),
    (
        "incremental = { until = \".at\", format = \"iso\" }",
        "`iso` is no format of times",
    ),
    (
        "incremental = { until = \".at\", overlap = \"soon\" }",
        "`soon` is no span of time",
    ),
    (
        "incremental = { until = \".at\", alias = \"id\" }",
        "`alias` has no meaning where marks are times",
    ),
    (
        "incremental = { parameter = \"a\", alias = \"id\", overlap = \"1m\" }",
        "`overlap` has no meaning where marks are ids",
    ),
    ("incremental = { time = \".at\" }", "has no `parameter`"),
    (
        "incremental = { parameter = \"a:\", alias = \"id\" }",
        "`a:` is no name for a parameter",
    ),
    (
        "incremental = { parameter = \"a\", alias = \"id\", short_page_ends = true }",
        "write `ends = \"short\"` in `page`",
    ),
];

#[test]
fn what_contradicts_itself_is_refused_with_what_to_write() {
    let json_body = "method = \"POST\"\nbody = \"json\"\n";
    let posts = [
        (format!("{json_body}page = {{ style = \"link\", size = 3 }}"), "write `style = \"cursor\"`"),
        (format!("{json_body}parameters = {{ a = 1.5 }}"), "a list or a table of them"),
        (format!("{json_body}parameters = {{ a = [\"{{nobody}}\"] }}"), "a placeholder cannot be `nobody`"),
        (format!("{json_body}batch = {{ parameter = \"i\", style = \"repeated\", alias = \"canonical\", max = 9 }}"), "write `style = \"list\"`"),
        ("batch = { parameter = \"i\", style = \"list\", alias = \"canonical\", max = 9 }".to_owned(), "write `style = \"repeated\"`"),
        ("method = \"POST\"\ngraphql = \"query\"\nbody = \"form\"".to_owned(), "leave out `body`"),
        ("page = { style = \"link\", order = \"unsorted\", size = 3 }\nincremental = { until = \".at\" }".to_owned(), "write `order = \"newest_first\"`"),
    ];
    let plain = CONTRADICTIONS
        .iter()
        .map(|(lines, expected)| ((*lines).to_owned(), *expected));
    let marks = CONTRADICTIONS_OF_MARKS.iter();
    let marks = marks.map(|(lines, expected)| (format!("{CURSOR}\n{lines}"), *expected));
    for (lines, expected) in plain.chain(marks).chain(posts) {
        let found = match Network::parse("tiny.toml", &definition(&lines)) {
            Ok(_) => "nothing".to_owned(),
            Err(errors) => errors.to_string(),
        };
        assert!(found.contains(expected), "{lines}\n  found: {found}");
        assert!(found.starts_with("tiny.toml:"), "{found}");
    }
}

#[test]
fn a_list_that_is_the_whole_answer_has_nothing_beside_it() {
    let lines = "page = { style = \"cursor\", at = \".x\", parameter = \"a\", size = 3 }";
    let text = definition(lines).replace("at = \".posts[]\"", "at = \".[]\"");
    let errors = Network::parse("tiny.toml", &text).unwrap_err().to_string();
    assert!(errors.contains("the answer is a list"), "{errors}");
}

#[test]
fn what_paging_reads_is_no_unread_part_of_an_answer() {
    let network = tiny(CURSOR);
    let answer = json!({ "posts": posts(&[1]), "meta": { "next": "x", "more": true, "took": 1 } });
    assert_eq!(
        network.unmapped_answer(query(&network), &answer),
        [".meta.took"]
    );
}

#[test]
fn another_way_of_paging_voids_cursors_and_another_way_of_writing_does_not() {
    let digest = |lines: &str| query(&tiny(lines)).paging_digest.clone();
    let spaced = "\n# a comment\n[queries.posts.page]\nsize = 3\nsize_parameter = 'count'\nlast = [0, \"-1\"]\n\
        parameter = \"after\"\nat = \".meta.next\"\nmore = \".meta.more\"\nstyle = \"cursor\"\n";
    assert_eq!(digest(CURSOR), digest(spaced));
    let other = CURSOR.replace("\"after\"", "\"behind\"");
    assert_ne!(digest(CURSOR), digest(&other));
}

fn styles() -> Vec<Network> {
    let until = "\nincremental = { until = \".at\" }";
    [
        "page = { style = \"next\", at = \".meta.next\", size = 3 }".to_owned(),
        "page = { style = \"number\", parameter = \"page\", size = 3 }".to_owned(),
        "page = { style = \"offset\", parameter = \"from\", size = 3, ends = \"short\" }".to_owned(),
        "page = { style = \"ids\", parameter = \"max\", alias = \"id\", bound = \"inclusive\", size = 3 }".to_owned(),
        CURSOR.to_owned(),
        format!("{CURSOR}{until}"),
        format!("method = \"POST\"\nbody = \"json\"\n{CURSOR}{until}"),
    ]
    .iter()
    .map(|lines| tiny(lines))
    .collect()
}

proptest! {
    #[test]
    fn any_cursor_is_sent_as_it_came(cursor in any::<String>()) {
        prop_assume!(!cursor.is_empty() && cursor != "0" && cursor != "-1" && !cursor.contains('\0'));
        let network = tiny(CURSOR);
        let body = json!({ "posts": [], "meta": { "next": cursor } }).to_string();
        let reading = read(&network, Page::First, &body);
        let Some(next) = reading.next else {
            // Only what is too long to be kept is refused.
            prop_assert!(cursor.len() > 500, "{}", reading.reason);
            return Ok(());
        };
        let url: Url = plan(&network, Page::Next(&next)).url;
        let sent = url.query_pairs().find(|(name, _)| name == "after");
        prop_assert_eq!(sent.map(|(_, value)| value.into_owned()), Some(cursor));
    }

    #[test]
    fn any_answer_is_survived_and_every_token_can_be_asked(
        body in "(\\{\"posts\":)?[\\[\\]{}:,\"a-z0-9.eE\\\\ -]{0,60}",
        next in "(null|true|\\[\\]|\\{\\}|-?[0-9]{1,40}|\"[a-z/?&=:.]{0,20}\")",
        at in "(null|3|\"[0-9TZ:-]{0,20}\")",
        style in 0_usize..7,
    ) {
        let network = &styles()[style];
        let sound = format!("{{\"posts\":[{{\"id\":{at},\"at\":{at}}},{next}],\"meta\":{{\"next\":{next},\"more\":{at}}}}}");
        for body in [body, sound] {
            let reading = read(network, Page::First, &body);
            if let Some(next) = reading.next {
                prop_assert!(asked(network, Page::Next(&next)).is_ok(), "{}", next);
                let again = read(network, Page::Next(&next), &body);
                if let Some(next) = again.next {
                    prop_assert!(asked(network, Page::Next(&next)).is_ok(), "{}", next);
                }
            }
        }
    }
}
