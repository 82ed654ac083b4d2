//! Whom hosts are believed in, where several are asked: a made-up network of nests.

use kittiwake_model::{Identity, Key, Object, OutcomeCode, Standing};
use kittiwake_network::{Address, Answer, Ask, Network, Page, Reading, RequestError, Teller};
use url::Url;

const NESTS: &str = r#"
format = 1
name = "nests"
verified_on = "2026-11-17"
sources = ["https://nests.example"]
host = { kind = "instance" }

[types.bird]
table = "users"
canonical = ".uri"
home = ["canonical", "page"]
resolve = ["lookup", "find"]

[types.bird.aliases]
page = ".page"
id = { path = ".id", scope = "host" }
name = { path = ".name", qualify = true, movable = true }

[types.bird.states]
suspended = ".gone"

[types.bird.fields.card]
display_name = ".title"

[queries.lookup]
subject = "bird"
path = "/lookup/{name:local}"

[[queries.lookup.selects]]
at = "."
as = "bird"
is_subject = true

[queries.find]
subject = "bird"
path = "/find/{name:local}"
proof = "page"

[[queries.find.selects]]
at = "."
as = "bird"
is_subject = true

[queries.bird]
subject = "bird"
path = "/birds/{id}"

[[queries.bird.selects]]
at = "."
as = "bird"
is_subject = true

[[robots]]
name = "birds"
subject = "bird"
steps = [{ query = "bird" }]

[[seeds]]
pattern = "{name}@{host}"
type = "bird"
alias = "name"
value = "{name}@{host}"
"#;

fn nests() -> Network {
    Network::parse("nests.toml", NESTS).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Who tells something.
#[derive(Clone, Copy)]
struct Host {
    name: &'static str,
    is_trusted: bool,
}

const CLIFF: Host = Host {
    name: "cliff.example",
    is_trusted: false,
};
const MARSH: Host = Host {
    name: "marsh.example",
    is_trusted: false,
};
/// The crawl's own host; nobody asks at `far.example`.
const OWN: Host = Host {
    name: "own.example",
    is_trusted: true,
};

impl Host {
    fn answers(self, asked: &Identity, query: &str, body: &str) -> Reading {
        let network = nests();
        let base = Url::parse(&format!("https://{}", self.name)).unwrap();
        let asks_elsewhere = |home: &Address| {
            home.host != self.name && !(self.is_trusted && home.host == "far.example")
        };
        let teller = Teller {
            is_trusted: self.is_trusted,
            asks_elsewhere: &asks_elsewhere,
        };
        let answer = Answer {
            query: network.query(query).unwrap(),
            base: &base,
            host: self.name,
            subjects: &[(Key(7), asked)],
            page: Page::First,
            url: &base,
            status: 200,
            header: &|_| None,
            body: body.as_bytes(),
            walk: None,
        };
        network.read_from(Some(&teller), &answer)
    }

    /// What it says to somebody of whom nothing but a local id is known.
    fn tells(self, body: &str) -> Object {
        let asked = known(&[("id", self.name, "1")], None);
        let mut reading = self.answers(&asked, "bird", body);
        reading.objects.remove(0)
    }
}

fn known(aliases: &[(&str, &str, &str)], canonical: Option<&str>) -> Identity {
    let mut identity = nests().seed("x@y.example", "own.example").unwrap();
    identity.canonical = canonical.map(str::to_owned);
    let movable = identity.aliases.remove(0);
    for (name, host, id) in aliases {
        identity.aliases.push(kittiwake_model::Alias {
            name: (*name).into(),
            id: (*id).to_owned(),
            host: (*host).to_owned(),
            movable: *name == &*movable.name,
        });
    }
    identity
}

fn ids(object: &Object) -> Vec<&str> {
    let aliases = object.identity.aliases.iter();
    let aliases = aliases.map(|alias| alias.id.as_str());
    object
        .identity
        .canonical
        .as_deref()
        .into_iter()
        .chain(aliases)
        .collect()
}

#[test]
fn a_host_speaks_for_those_who_live_there() {
    let body = r#"{"uri":"https://cliff.example/u/ann","page":"https://cliff.example/@ann","id":"1","name":"ann","title":"Ann"}"#;
    let own = CLIFF.tells(body);
    assert_eq!(own.standing, Standing::Present);
    let expected = [
        "https://cliff.example/u/ann",
        "https://cliff.example/@ann",
        "1",
        "ann@cliff.example",
    ];
    assert_eq!(ids(&own), expected);
}

#[test]
fn what_it_tells_of_others_is_hearsay_and_ties_no_address_to_them() {
    let body = r#"{"uri":"https://cliff.example/u/ann","page":"https://cliff.example/@bob","id":"1","name":"ann@cliff.example","title":"Ann"}"#;
    let told = MARSH.tells(body);
    assert_eq!(told.standing, Standing::Hearsay);
    let expected = ["https://cliff.example/u/ann", "1", "ann@cliff.example"];
    assert_eq!(ids(&told), expected);
    // An address alone names somebody, whoever says it.
    let body = r#"{"page":"https://cliff.example/@bob","id":"1","name":"bob@cliff.example","title":"Bob"}"#;
    let told = MARSH.tells(body);
    assert_eq!(told.standing, Standing::Hearsay);
    let expected = ["https://cliff.example/@bob", "1", "bob@cliff.example"];
    assert_eq!(ids(&told), expected);
    // And what has no home was not told by its own.
    assert_eq!(MARSH.tells(r#"{"id":"1"}"#).standing, Standing::Hearsay);
    // That somebody is gone is for the home to say.
    let body = r#"{"uri":"https://cliff.example/u/ann","id":"1","gone":true}"#;
    assert_eq!(MARSH.tells(body).standing, Standing::Hearsay);
}

#[test]
fn an_address_on_another_host_than_the_canonical_id_proves_nothing() {
    for host in [CLIFF, OWN] {
        let uri = format!("https://{}/u/ann", host.name);
        let body = format!(
            r#"{{"uri":"{uri}","page":"https://marsh.example/@bob","id":"1","title":"Ann"}}"#
        );
        assert_eq!(ids(&host.tells(&body)), [uri.as_str(), "1"]);
    }
}

#[test]
fn nobody_takes_a_handle_of_another_host() {
    let body = r#"{"uri":"https://cliff.example/u/ann","id":"1","name":"bob@marsh.example"}"#;
    assert_eq!(
        ids(&CLIFF.tells(body)),
        ["https://cliff.example/u/ann", "1"]
    );
    // Servers under another name than that in their handles are known from the crawl's own.
    let expected = ["https://cliff.example/u/ann", "1", "bob@marsh.example"];
    assert_eq!(ids(&OWN.tells(body)), expected);
}

#[test]
fn the_crawls_own_host_speaks_for_those_whom_nobody_may_ask_about() {
    let body = r#"{"uri":"https://far.example/u/ann","page":"https://far.example/@ann","id":"1","name":"ann@far.example","title":"Ann"}"#;
    let told = OWN.tells(body);
    assert_eq!((told.standing, ids(&told).len()), (Standing::Present, 4));
    assert_eq!(CLIFF.tells(body).standing, Standing::Hearsay);
}

/// The outcome of one question, and whether the answer is taken for one about the subject.
fn settled(host: Host, asked: &Identity, query: &str, body: &str) -> (bool, String) {
    let reading = host.answers(asked, query, body);
    let is_known = reading.objects.iter().any(|it| it.known_as == Some(Key(7)));
    let outcome = reading.subject_outcomes.first();
    let is_refused = outcome.is_some_and(|(_, code, _)| *code == OutcomeCode::Malformed);
    assert_ne!(is_known, is_refused);
    let reason = outcome.map_or("", |(_, _, reason)| reason);
    (is_known, reason.to_owned())
}

const ANN: &str = r#"{"uri":"https://cliff.example/u/ann","page":"https://cliff.example/@ann","id":"1","name":"ann"}"#;
const ELSE: &str = "the answer is about somebody else";
const ELSEWHERE: &str = "the answer is about somebody who lives elsewhere";

#[test]
fn a_name_is_whoever_its_own_host_says_that_lives_there() {
    let name = known(&[("name", "", "ann@cliff.example")], None);
    assert!(settled(CLIFF, &name, "lookup", ANN).0);
    let (is_known, reason) = settled(MARSH, &name, "lookup", ANN);
    assert_eq!((is_known, &*reason), (false, ELSEWHERE));
    assert!(settled(OWN, &name, "lookup", ANN).0);
    // The same for somebody whom another host has only given a number.
    let numbered = known(
        &[
            ("id", "own.example", "4"),
            ("name", "", "ann@marsh.example"),
        ],
        None,
    );
    let (is_known, reason) = settled(MARSH, &numbered, "lookup", ANN);
    assert_eq!((is_known, &*reason), (false, ELSEWHERE));
}

#[test]
fn an_answer_about_somebody_else_is_refused() {
    let name = ("name", "", "bob@cliff.example");
    for asked in [
        known(&[name], Some("https://cliff.example/u/bob")),
        known(&[name, ("page", "", "https://cliff.example/@bob")], None),
    ] {
        let (is_known, reason) = settled(CLIFF, &asked, "lookup", ANN);
        assert_eq!((is_known, &*reason), (false, ELSE), "{asked:?}");
    }
    // Its own number proves less than the address that others know somebody by.
    let asked = known(
        &[
            ("id", "marsh.example", "1"),
            ("page", "", "https://cliff.example/@bob"),
        ],
        None,
    );
    let (is_known, reason) = settled(MARSH, &asked, "bird", ANN);
    assert_eq!((is_known, &*reason), (false, ELSE));
}

#[test]
fn an_answer_without_a_canonical_id_is_proved_by_the_address() {
    let network = nests();
    let uri = Some("https://cliff.example/u/ann");
    let name = ("name", "", "ann@cliff.example");
    let page = ("page", "", "https://cliff.example/@ann");
    let short = r#"{"page":"https://cliff.example/@ann","id":"1","name":"ann"}"#;
    let (is_known, reason) = settled(CLIFF, &known(&[name], uri), "lookup", short);
    assert_eq!((is_known, &*reason), (false, ELSE));
    assert!(settled(CLIFF, &known(&[name, page], uri), "find", short).0);
    // So it is not asked for before that is known, unless there is nothing to be proved.
    let base = Url::parse("https://cliff.example").unwrap();
    let asks = |subject: &Identity| {
        network.request(&Ask {
            query: network.query("find").unwrap(),
            base: &base,
            host: "cliff.example",
            subjects: &[subject],
            page: Page::First,
            authenticated: false,
        })
    };
    let missing = asks(&known(&[name], uri)).unwrap_err();
    let expected = RequestError::MissingAlias {
        alias: "page".to_owned(),
        kind: "bird".into(),
    };
    assert_eq!(missing, expected);
    assert!(asks(&known(&[name, page], uri)).is_ok());
    assert!(asks(&known(&[name], None)).is_ok());
}

#[test]
fn an_address_that_cannot_be_one_leaves_the_rest() {
    for page in [r#""""#, "\"\\u0000\"", "7", "null"] {
        let body = format!(r#"{{"uri":"https://cliff.example/u/ann","page":{page},"id":"1"}}"#);
        assert_eq!(
            ids(&CLIFF.tells(&body)),
            ["https://cliff.example/u/ann", "1"]
        );
    }
}
