//! How answers fit a definition: the parts that nothing reads, and the rules that find nothing.

use kittiwake_model::{Cost, Identity, Key};
use kittiwake_network::{Answer, Fit, Further, Network, Page, Sightings};

fn network(page: &str) -> Network {
    let text = format!(
        r#"format = 1
name = "tiny"
verified_on = "2026-11-15"
host = {{ kind = "fixed", address = "https://api.tiny.example" }}

[limit_headers]
limit = "x-limit"
remaining = "x-left"
reset = "x-reset"
reset_format = "epoch_s"

[budgets.all]
scope = "ip"
limit = 10
window = "1m"

[budgets.dear]
scope = "ip"
limit = 5
window = "1h"
headers = {{ limit = "x-dear-limit", used = "x-dear-used", reset = "x-dear-reset", reset_format = "epoch_s" }}

[types.user]
table = "users"
canonical = ".id // .uid"
ignored = [{{ path = ".theme", reason = "how the page looks" }}]
states.suspended = ".banned"

[types.user.fields.card]
display_name = ".title"
created_us = ".since"
location = ".about.town"

[types.post]
table = "statuses"
canonical = ".id"

[types.post.fields.content]
author = {{ path = ".by", type = "user" }}
text = ".text"

[queries.posts]
subject = "user"
path = "/posts"
budgets = ["all"]
{page}

[[queries.posts.selects]]
at = ".posts[]"
as = "post"

[[queries.posts.selects]]
at = ".pinned"
as = "post"

[[errors]]
status = 200
match = '.ok == false and .pinned.gone == true'
outcome = "forbidden"

[[errors]]
status = 400
match = '.fault == 7'
outcome = "forbidden"

[[robots]]
name = "posts"
subject = "user"
steps = [{{ query = "posts" }}]

[[seeds]]
pattern = "{{id}}"
type = "user"
value = "{{id}}"
"#
    );
    Network::parse("tiny.toml", &text).unwrap_or_else(|errors| panic!("{errors}"))
}

const CURSOR: &str = r#"page = { style = "cursor", at = ".next", parameter = "after", size = 2 }"#;

fn fit_with(network: &Network, body: &str, link: &str, sightings: &mut Sightings) -> Fit {
    let subject = Identity {
        network: "tiny".into(),
        kind: "user".into(),
        canonical: Some("7".into()),
        aliases: Vec::new(),
    };
    let base = network.base("").unwrap();
    let url = base.join("/posts").unwrap();
    let answer = Answer {
        query: network.query("posts").unwrap(),
        base: &base,
        host: "api.tiny.example",
        subjects: &[(Key(1), &subject)],
        page: Page::First,
        url: &url,
        status: 200,
        header: &|name| (name == "link" && !link.is_empty()).then(|| link.to_owned()),
        body: body.as_bytes(),
        walk: None,
    };
    let reading = network.read(&answer);
    network.fit(&answer, &reading, sightings).unwrap()
}

fn fit(network: &Network, body: &str) -> Fit {
    fit_with(network, body, "", &mut Sightings::default())
}

#[test]
fn what_no_rule_reads_and_what_rules_miss_is_told() {
    let network = network(CURSOR);
    let body = r#"{"posts": [
        {"id": 1, "text": "a", "by": {"id": 7, "title": "Ada", "theme": "dark", "mood": "fine"}},
        {"id": 2, "txet": "b", "by": {"id": 7, "title": null}}], "next": null, "took_ms": 3}"#;
    let mut sightings = Sightings::default();
    let fit = fit_with(&network, body, "", &mut sightings);
    assert_eq!(
        fit.unread,
        [".posts[].by.mood", ".posts[].txet", ".took_ms"]
    );
    assert_eq!(fit.absent, [".pinned"]);
    assert!(fit.unreadable.is_empty());
    let never = network.never_seen(&sightings);
    let told: Vec<(&str, u64, Vec<&str>)> = never
        .iter()
        .map(|it| {
            let paths = it.paths.iter().map(String::as_str).collect();
            (it.kind.as_str(), it.objects, paths)
        })
        .collect();
    let user = vec![".about.town", ".banned", ".since", ".uid"];
    // One post has a text: that is enough.
    assert_eq!(told, [("user", 2, user)]);
}

#[test]
fn what_one_of_several_selects_reads_is_read() {
    let again = "[[queries.posts.selects]]\nat = \".posts[]\"\nas = \"user\"";
    let network = network(&format!("{CURSOR}\n\n{again}"));
    let body = r#"{"posts": [{"id": 1, "text": "a", "title": "Ada", "odd": 1}], "next": null}"#;
    assert_eq!(fit(&network, body).unread, [".posts[].odd"]);
}

#[test]
fn what_tells_an_answer_from_an_error_is_read() {
    let network = network(CURSOR);
    let body =
        r#"{"ok": true, "pinned": {"id": 1, "gone": false, "odd": 1}, "fault": 0, "next": null}"#;
    assert_eq!(fit(&network, body).unread, [".fault", ".pinned.odd"]);
}

#[test]
fn a_value_that_cannot_be_read_is_named_by_its_field() {
    let network = network(CURSOR);
    let fit_of = |by: &str| {
        let body =
            format!(r#"{{"pinned": {{"id": 1, "by": {by}}}, "posts": [{by}], "next": null}}"#);
        fit(&network, &body).unreadable
    };
    assert!(fit_of(r#"{"id": 7, "since": "2026-01-01"}"#).is_empty());
    // Of the nested user nothing is told here; as a post it has no text that is one.
    assert_eq!(fit_of(r#"{"id": 7, "text": [1]}"#), ["post.text"]);
    assert_eq!(
        fit_of(r#"{"text": "a"}"#),
        ["post, which has no id", "post.author"]
    );
}

#[test]
fn a_further_page_is_looked_for_in_every_place() {
    let post = |id: u32| format!(r#"{{"id": {id}}}"#);
    let full = format!("[{},{}]", post(1), post(2));
    let short = format!("[{}]", post(1));
    let body = |posts: &str, next: &str| format!(r#"{{"posts": {posts}, "next": {next}}}"#);
    let further = |page: &str, body: &str, link: &str| {
        fit_with(&network(page), body, link, &mut Sightings::default()).further
    };
    let is_lost = |further: Further, why: &str| match further {
        Further::Lost(reason) => assert!(reason.contains(why), "{reason}"),
        other => panic!("{other:?}"),
    };
    let link = r#"<https://api.tiny.example/posts?after=3>; rel="next""#;
    assert_eq!(further("", &body(&full, "null"), ""), Further::Unpaged);
    is_lost(further("", &body(&full, "null"), link), "no `page`");
    assert_eq!(further(CURSOR, &body(&short, "\"b\""), ""), Further::Found);
    assert_eq!(further(CURSOR, &body(&short, "null"), ""), Further::Last);
    is_lost(further(CURSOR, &body(&full, "null"), ""), "full (2 items)");
    is_lost(
        further(CURSOR, &body(&short, "null"), link),
        "in the Link header",
    );
    let more = r#"page = { style = "cursor", at = ".next", more = ".more", parameter = "after", size = 2 }"#;
    assert_eq!(further(more, &body(&full, "null"), ""), Further::Last);
    let by_link = r#"page = { style = "link", size = 2 }"#;
    assert_eq!(further(by_link, &body(&full, "null"), link), Further::Found);
    assert_eq!(further(by_link, &body(&short, "null"), ""), Further::Last);
    is_lost(further(by_link, &body(&full, "null"), ""), "no Link header");
    let by_number = r#"page = { style = "number", parameter = "page", size = 2 }"#;
    assert_eq!(further(by_number, &body(&full, "null"), ""), Further::Found);
    assert_eq!(further(by_number, &body("[]", "null"), ""), Further::Last);
}

#[test]
fn the_headers_that_are_looked_for_are_those_of_the_budgets_that_are_charged() {
    let network = network("");
    let cost = |budget: &str| Cost {
        budget: budget.into(),
        call: 1,
        item: 0,
        beside: 0,
        items_max: 1,
    };
    let unnamed = ["x-left", "x-limit", "x-reset"];
    assert_eq!(network.limit_headers_of(&[]), unnamed);
    assert_eq!(network.limit_headers_of(&[cost("all")]), unnamed);
    let dear = ["x-dear-limit", "x-dear-reset", "x-dear-used"];
    let both: Vec<&str> = dear.into_iter().chain(unnamed).collect();
    assert_eq!(network.limit_headers_of(&[cost("dear")]), both);
}
