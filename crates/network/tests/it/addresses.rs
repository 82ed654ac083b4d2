//! Networks without a host of their own: ids that are addresses, answers that have not changed, and a
//! subject that is written in one form or another.

use crate::support::field;
use kittiwake_model::{Identity, Key, OutcomeCode, Value};
use kittiwake_network::{Answer, Ask, HostError, Network, Page, Reading, RequestPlan, Whom};

const DEFINITION: &str = r#"
format = 1
name = "logs"
verified_on = "2026-11-16"
host = { kind = "subject" }

[types.log]
table = "users"
home = "canonical"

[types.log.fields.card]
display_name = ".title"
url = { path = ".page", kind = "address" }

[types.log.shapes.short]

[types.log.shapes.short.fields.card]
display_name = ".t"

[types.entry]
table = "statuses"
canonical = ".n"
within = "subject"

[types.entry.fields.content]
text = ".text"

[queries.log]
subject = "log"
path = "{canonical:address}"
parameters = { format = "json" }
conditional = true

[[queries.log.selects]]
at = ".log"
as = "log"
is_subject = true

[[queries.log.selects]]
at = ".l"
as = "log"
shape = "short"
is_subject = true

[[queries.log.selects]]
at = ".entries[]"
as = "entry"

[[robots]]
name = "logs"
subject = "log"
steps = [{ query = "log" }]

[[seeds]]
pattern = "https://{address:any}"
type = "log"
value = "https://{address}"
"#;

fn network() -> Network {
    Network::parse("logs.toml", DEFINITION).unwrap_or_else(|errors| panic!("{errors}"))
}

fn plan(network: &Network, seed: &str, page: Page<'_>) -> RequestPlan {
    let identity = network.seed(seed, "").unwrap();
    let ask = Ask {
        query: network.query("log").unwrap(),
        base: &network.base("").unwrap(),
        host: "",
        subjects: &[&identity],
        page,
        authenticated: false,
    };
    network.request(&ask).unwrap()
}

/// An answer to the question about a log at `https://a.example/b/log?x=1`.
struct Sent<'a> {
    status: u16,
    headers: &'a [(&'a str, &'a str)],
    body: &'a str,
}

impl Sent<'_> {
    fn read(&self, network: &Network) -> Reading {
        let seed = "https://a.example/b/log?x=1";
        let identity: Identity = network.seed(seed, "").unwrap();
        let plan = plan(network, seed, Page::First);
        network.read(&Answer {
            query: network.query("log").unwrap(),
            base: &network.base("").unwrap(),
            host: "a.example",
            subjects: &[(Key(1), &identity)],
            page: Page::First,
            url: &plan.url,
            status: self.status,
            header: &|name| {
                let mut headers = self.headers.iter();
                headers.find_map(|(known, value)| (*known == name).then(|| (*value).to_owned()))
            },
            body: self.body.as_bytes(),
            walk: None,
        })
    }
}

fn read(body: &str) -> Reading {
    let (status, headers) = (200, [].as_slice());
    Sent {
        status,
        headers,
        body,
    }
    .read(&network())
}

#[test]
fn an_address_is_asked_as_it_is_with_its_parameters() {
    let network = network();
    for (seed, expected) in [
        (
            "https://a.example/b/log?x=1&y=a%20b",
            "https://a.example/b/log?x=1&y=a%20b&format=json",
        ),
        ("HTTPS://A.example", "https://a.example/?format=json"),
        (
            "https://a.example:8443/x#part",
            "https://a.example:8443/x?format=json",
        ),
        (
            "https://a.example/../c/%2e%2e/d",
            "https://a.example/d?format=json",
        ),
    ] {
        assert_eq!(plan(&network, seed, Page::First).url.as_str(), expected);
        let home = network.home(&network.seed(seed, "").unwrap()).unwrap();
        assert!(expected.starts_with(home.base.as_str()), "{home:?}");
    }
    assert_eq!(*network.query("log").unwrap().whom(), Whom::Own);
    // No host is asked for all, and none can be named.
    assert!(network.asks_subjects() && !network.needs_host());
    assert!(
        network
            .base("")
            .unwrap()
            .host_str()
            .unwrap()
            .ends_with(".invalid")
    );
    assert!(matches!(
        network.base("a.example"),
        Err(HostError::None { .. })
    ));
}

#[test]
fn what_cannot_be_asked_has_no_home() {
    let network = network();
    for seed in ["https://ann:secret@a.example/", "https:///", "https://a b/"] {
        let home = network.seed(seed, "").ok().and_then(|it| network.home(&it));
        assert!(home.is_none(), "{seed}");
    }
}

#[test]
fn a_subject_may_be_written_in_one_form_or_another() {
    let named = |reading: &Reading| field(&reading.objects[0], "display_name").cloned();
    for (body, name) in [
        (r#"{"log": {"title": "Long"}, "entries": []}"#, "Long"),
        (r#"{"l": {"t": "Short"}}"#, "Short"),
    ] {
        let reading = read(body);
        assert_eq!(reading.outcome, OutcomeCode::Ok, "{body}");
        assert_eq!(reading.subject_outcomes, [], "{body}");
        assert_eq!(named(&reading), Some(Value::Text(name.into())));
    }
    let reading = read(r#"{"log": null}"#);
    assert_eq!(reading.subject_outcomes[0].1, OutcomeCode::NotFound);
    // Something else altogether.
    for body in [r#"{"entries": []}"#, r#"{"error": 1}"#] {
        assert_eq!(read(body).outcome, OutcomeCode::Malformed, "{body}");
    }
}

#[test]
fn an_id_may_be_one_within_what_was_asked_about() {
    let endless = "x".repeat(2_030);
    let body = format!(
        r#"{{"log": {{"title": "x"}}, "entries": [{{"n": 7}}, {{"n": "https://b.example/#7"}}, {{"n": "{endless}"}}]}}"#
    );
    let reading = read(&body);
    let ids = reading
        .objects
        .iter()
        .map(|it| it.identity.canonical.as_deref().unwrap());
    let log = "https://a.example/b/log?x=1";
    let expected = [
        log.to_owned(),
        format!("{log}#7"),
        format!("{log}#https://b.example/#7"),
    ];
    assert_eq!(ids.collect::<Vec<_>>(), expected);
    // What would be longer than an id may be is left out.
    assert_eq!(reading.mended, 1);
}

#[test]
fn addresses_are_completed_by_the_one_that_was_asked() {
    for (written, expected) in [
        ("/c", Some("https://a.example/c")),
        ("c?d=1", Some("https://a.example/b/c?d=1")),
        ("//other.example/", Some("https://other.example/")),
        (
            "http://other.example/e f",
            Some("http://other.example/e%20f"),
        ),
        ("mailto:ann@a.example", Some("mailto:ann@a.example")),
        ("https://", None),
    ] {
        let reading = read(&format!(r#"{{"log": {{"page": "{written}"}}}}"#));
        let found = field(&reading.objects[0], "url").cloned();
        assert_eq!(
            found,
            expected.map(|it| Value::Text(it.into())),
            "{written}"
        );
        assert_eq!(reading.mended, u32::from(expected.is_none()), "{written}");
    }
}

#[test]
fn an_answer_that_is_the_same_is_not_asked_for_again() {
    let network = network();
    let body = r#"{"log": {"title": "x"}}"#;
    let headers = [
        ("etag", "W/\"a b\""),
        ("last-modified", "Sat, 14 Nov 2026 10:00:00 GMT"),
    ];
    let sent = Sent {
        status: 200,
        headers: &headers,
        body,
    };
    let mark = sent.read(&network).newest.unwrap();
    let seed = "https://a.example/b/log?x=1";
    let first = plan(&network, seed, Page::First);
    let later = plan(&network, seed, Page::Since(&mark));
    assert_eq!(
        (&later.url, later.headers.len()),
        (&first.url, first.headers.len() + 2)
    );
    for (name, value) in [
        ("if-none-match", "W/\"a b\""),
        ("if-modified-since", "Sat, 14 Nov 2026 10:00:00 GMT"),
    ] {
        let header = (name.to_owned(), value.to_owned());
        assert!(later.headers.contains(&header), "{:?}", later.headers);
    }
    let same = Sent {
        status: 304,
        headers: &headers,
        body: "",
    }
    .read(&network);
    assert_eq!(
        (same.outcome, same.newest),
        (OutcomeCode::NotModified, None)
    );
    // Another definition may read more of the same answer: no mark is good for it.
    let other = DEFINITION.replace(".text", ".words");
    let other = Network::parse("logs.toml", &other).unwrap_or_else(|errors| panic!("{errors}"));
    let digest = |network: &Network| network.query("log").unwrap().paging_digest.clone();
    assert_ne!(digest(&other), digest(&network));
    // A mark that was tampered with is no way to send other headers.
    let forged = plan(&network, seed, Page::Since("cookie=a&etag=b%0D%0Ac"));
    assert_eq!(forged.headers, first.headers);
    // Who says nothing, or something that cannot be sent back, is asked in full.
    for headers in [&[][..], &[("etag", "a\u{7}b")]] {
        assert_eq!(
            Sent {
                status: 200,
                headers,
                body
            }
            .read(&network)
            .newest,
            None
        );
    }
}

#[test]
fn mistakes_are_reported() {
    for (from, to, expected) in [
        (
            "home = \"canonical\"\n",
            "",
            "nothing says where a `log` lives",
        ),
        (
            "path = \"{canonical:address}\"",
            "path = \"/x/{canonical:address}\"",
            "`/x/{canonical:address}` is no path",
        ),
        (
            "path = \"{canonical:address}\"",
            "path = \"{canonical:address}\"\nhost = \"home\"",
            "there is no host that could be asked for all",
        ),
        (
            "conditional = true",
            "conditional = true\nmethod = \"POST\"",
            "`conditional` and `method` exclude each other",
        ),
        (
            "host = { kind = \"subject\" }",
            "host = { kind = \"fixed\", address = \"https://a.example\" }",
            "an address can be asked only where it leads to",
        ),
        (
            "within = \"subject\"",
            "within = \"host\"",
            "`within` cannot be `host`",
        ),
        (
            "text = \".text\"",
            "reply_to = { path = \".to\", type = \"entry\", alias = \"canonical\" }",
            "the alias of `entry` cannot be `canonical`",
        ),
        (
            "kind = \"subject\" }",
            "kind = \"subject\", address = \"https://a.example\" }",
            "`address` has no meaning",
        ),
    ] {
        let wrong = DEFINITION.replacen(from, to, 1);
        assert_ne!(wrong, DEFINITION, "{from}");
        let error = Network::parse("logs.toml", &wrong).unwrap_err().to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
}
