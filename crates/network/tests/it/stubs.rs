//! What answers leave out and name: how definitions say it, how it is read, and how it is asked for.

use kittiwake_model::{Identity, Key, OutcomeCode};
use kittiwake_network::{Answer, Ask, Network, Page, Query, Reading, RequestError};
use proptest::prelude::*;
use serde_json::json;
use url::Url;

const DEFINITION: &str = r#"format = 1
name = "nests"
verified_on = "2026-11-18"
host = { kind = "fixed", address = "https://nests.example" }

[types.post]
table = "statuses"
canonical = ".id"

[types.user]
table = "users"
canonical = ".id"

[queries.tree]
subject = "post"
path = "/tree/{canonical}"

[[queries.tree.selects]]
at = ".posts[]"
descend = [".below[]"]
only = ".id"
as = "post"
stubs = [
    { ids = ".more", query = "rest" },
    { ids = 'if .goes_on then .id else null end', query = "deeper" },
]

[queries.rest]
subject = "post"
path = "/rest"
parameters = { of = "{canonical}" }
expands = { parameter = "ids", style = "comma", max = 3 }

[[queries.rest.selects]]
at = ".posts[]"
as = "post"
stubs = [{ ids = ".more", query = "rest" }]

[queries.deeper]
subject = "post"
path = "/tree/{canonical}/{stub}"
expands = {}

[[queries.deeper.selects]]
at = ".posts[]"
as = "post"

[[robots]]
name = "trees"
subject = "post"
steps = [{ query = "tree" }, { query = "rest" }, { query = "deeper" }]

[[seeds]]
pattern = "{id}"
type = "post"
value = "{id}"
"#;

fn network() -> Network {
    Network::parse("nests.toml", DEFINITION).unwrap()
}

fn post() -> Identity {
    Identity {
        network: "nests".into(),
        kind: "post".into(),
        canonical: Some("p".to_owned()),
        aliases: Vec::new(),
    }
}

fn ask(network: &Network, query: &str, page: Page<'_>) -> Result<(String, String), RequestError> {
    let base = Url::parse("https://nests.example").unwrap();
    let asked = network.request(&Ask {
        query: network.query(query).unwrap(),
        base: &base,
        host: "nests.example",
        subjects: &[&post()],
        page,
        authenticated: false,
    });
    asked.map(|plan| (plan.target, plan.cursor))
}

fn read(network: &Network, query: &str, page: Page<'_>, body: &str) -> Reading {
    let url = Url::parse("https://nests.example/tree/p").unwrap();
    network.read(&Answer {
        query: network.query(query).unwrap(),
        base: &url,
        host: "nests.example",
        subjects: &[(Key(1), &post())],
        page,
        url: &url,
        status: 200,
        header: &|_| None,
        body: body.as_bytes(),
        walk: Some(1),
    })
}

fn stubs(reading: &Reading) -> Vec<(&str, &str)> {
    let stubs = reading.stubs.iter();
    stubs.map(|(query, id)| (&**query, id.as_str())).collect()
}

#[test]
fn stubs_are_found_at_every_level_as_texts_numbers_and_lists() {
    let body = json!({ "posts": [
        { "id": "a", "more": ["b", 12, "c"], "below": [{ "id": "d", "goes_on": true, "more": "e" }] },
        { "id": "f", "more": null },
        { "more": ["of nothing that is taken"] },
    ] });
    let reading = read(&network(), "tree", Page::First, &body.to_string());
    assert_eq!((reading.outcome, reading.mended), (OutcomeCode::Ok, 0));
    let mut found = stubs(&reading);
    found.sort_unstable();
    let expected = [
        ("deeper", "d"),
        ("rest", "12"),
        ("rest", "b"),
        ("rest", "c"),
        ("rest", "e"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_is_no_id_is_counted_and_spoils_nothing() {
    let more = json!(["a,b", "", "c d", "\u{0}", ["e"], { "id": "f" }, 1.5, "ok", "\u{e9}"]);
    let body = json!({ "posts": [{ "id": "a", "more": more }] });
    let reading = read(&network(), "tree", Page::First, &body.to_string());
    assert_eq!(stubs(&reading), [("rest", "ok")]);
    assert_eq!(reading.mended, 8);
    assert_eq!(reading.objects.len(), 1);
}

#[test]
fn calls_are_made_for_as_many_ids_as_the_definition_says() {
    let network = network();
    let asked = ask(&network, "rest", Page::Next("a,b,c,d,e")).unwrap();
    assert_eq!(asked, ("/rest?of=p&ids=a%2Cb%2Cc".into(), "a,b,c".into()));
    let asked = ask(&network, "deeper", Page::Next("a/b,c")).unwrap();
    assert_eq!(asked, ("/tree/p/a%2Fb".into(), "a/b".into()));
    assert_eq!(
        ask(&network, "deeper", Page::Next("..")).unwrap_err(),
        RequestError::BadAlias {
            alias: "/tree/p/..".into()
        }
    );
    for query in ["rest", "deeper"] {
        let refused = ask(&network, query, Page::First).unwrap_err();
        assert_eq!(refused, RequestError::NothingOpen);
        let refused = ask(&network, query, Page::Next("")).unwrap_err();
        assert_eq!(refused, RequestError::BadCursor);
    }
}

#[test]
fn what_is_open_shrinks_with_every_call_and_grows_with_what_it_finds() {
    let network = network();
    let rest = network.query("rest").unwrap();
    let open = |before, is_asked, found: &[&str]| rest.open_after(before, is_asked, found).token;
    assert_eq!(open(None, false, &[]), None);
    assert_eq!(open(None, false, &["a", "b", "a"]).as_deref(), Some("a,b"));
    assert_eq!(open(Some("a,b,c,d"), true, &[]).as_deref(), Some("d"));
    assert_eq!(open(Some("a,b"), true, &[]), None);
    // What was just asked for is not asked for again, nor what waits already.
    let after = open(Some("a,b,c,d"), true, &["a", "d", "e"]);
    assert_eq!(after.as_deref(), Some("d,e"));
    let many: Vec<String> = (0..60_000).map(|id| id.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let cut = rest.open_after(None, false, &many);
    assert!(cut.is_cut);
    assert_eq!(cut.token.unwrap().split(',').count(), 50_000);
}

/// Asks for everything that is open, until nothing is.
fn walk(rest: &Query, first: &[&str], named_by: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let mut asked = Vec::new();
    let mut token = rest.open_after(None, false, first).token;
    while let Some(open) = token {
        let ids: Vec<String> = open.split(',').take(3).map(str::to_owned).collect();
        let found: Vec<String> = ids.iter().flat_map(|id| named_by(id)).collect();
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        asked.extend(ids);
        token = rest.open_after(Some(&open), true, &found).token;
    }
    asked
}

proptest! {
    #[test]
    fn every_id_of_a_tree_is_asked_for_once(parents in prop::collection::vec(0_usize..40, 1..40)) {
        let network = network();
        let rest = network.query("rest").unwrap();
        // Whoever comes later stands below whoever came before.
        let parent = |place: usize| (place > 0).then(|| parents[place] % place);
        let named_by = |id: &str| -> Vec<String> {
            let below = (0..parents.len()).filter(|place| parent(*place).map(|it| it.to_string()).as_deref() == Some(id));
            below.map(|place| place.to_string()).collect()
        };
        let mut asked = walk(rest, &["0"], named_by);
        asked.sort();
        let mut all: Vec<String> = (0..parents.len()).map(|place| place.to_string()).collect();
        all.sort();
        prop_assert_eq!(asked, all);
    }
}

/// What is right, what is written in its place, and what is said about it.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "{ ids = \".more\", query = \"rest\" },",
        "{ ids = \".more\", query = \"rset\" },",
        "nests.toml:24:30: the query `rset` cannot be asked for what is left out of `tree`; name one about the same `subject`, with `expands`",
    ),
    (
        "{ ids = \".more\", query = \"rest\" },",
        "{ ids = \".more\", query = \"tree\" },",
        "nests.toml:24:30: the query `tree` cannot be asked for what is left out of `tree`",
    ),
    (
        "{ ids = \".more\", query = \"rest\" },",
        "{ ids = \".more[]\", query = \"rest\" },",
        "nests.toml:24:13: `.more[]` stands for many values",
    ),
    (
        "{ ids = \".more\", query = \"rest\" },",
        "{ ids = \".more\", by = \"rest\" },",
        "nests.toml:24:22: unknown key `by`",
    ),
    (
        "{ ids = \".more\", query = \"rest\" },",
        "{ query = \"rest\" },",
        "has no `ids`",
    ),
    (
        "subject = \"post\"\npath = \"/tree/{canonical}/{stub}\"",
        "subject = \"user\"\npath = \"/tree/{canonical}/{stub}\"",
        "nests.toml:25:59: the query `deeper` cannot be asked for what is left out of `tree`",
    ),
    (
        "path = \"/tree/{canonical}/{stub}\"",
        "path = \"/tree/{canonical}\"",
        "nests.toml:42:11: the ids of stubs go into one parameter, or one of them into the path; write `parameter = \"children\"`, or `{stub}` in `path`",
    ),
    (
        "expands = {}",
        "expands = { parameter = \"id\", max = 2 }",
        "nests.toml:42:11: the ids of stubs go into one parameter, or one of them into the path",
    ),
    (
        "expands = {}",
        "expands = { max = 2 }",
        "nests.toml:42:19: `max` has no meaning for one id in the path",
    ),
    (
        "expands = {}",
        "",
        "nests.toml:41:8: a placeholder cannot be `stub`",
    ),
    (
        "style = \"comma\", max = 3 }",
        "style = \"comma\" }",
        "has no `max`",
    ),
    (
        "style = \"comma\", max = 3 }",
        "style = \"list\", max = 3 }",
        "nests.toml:32:40: ids cannot be put so into what is sent",
    ),
    (
        "expands = {}",
        "expands = {}\npage = { style = \"link\", size = 2 }",
        "nests.toml:42:11: `expands` and `page` exclude each other",
    ),
    (
        "steps = [{ query = \"tree\" }, { query = \"rest\" },",
        "steps = [{ query = \"rest\" },",
        "no step of this robot has stubs for `rest`; add a step whose answers name what it is asked for",
    ),
    (
        "path = \"/tree/{canonical}\"\n",
        "path = \"/tree\"\nbatch = { parameter = \"id\", alias = \"canonical\", max = 2 }\n",
        "a batch has no one subject whose answer could be completed; leave out `stubs`, or `batch`",
    ),
];

#[test]
fn every_mistake_is_reported_with_its_place_and_what_to_write_instead() {
    let mut wrong_words = Vec::new();
    for (right, wrong, message) in MISTAKES {
        assert_eq!(DEFINITION.matches(right).count(), 1, "{right}");
        let text = DEFINITION.replace(right, wrong);
        let told = match Network::parse("nests.toml", &text) {
            Ok(_) => panic!("nothing was said about {wrong}"),
            Err(errors) => errors.to_string(),
        };
        if !told.contains(message) {
            wrong_words.push(format!("{wrong}: {told}"));
        }
    }
    assert!(wrong_words.is_empty(), "{}", wrong_words.join("\n\n"));
}
