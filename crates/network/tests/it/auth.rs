//! `[auth]`: what a definition may say, what is said about mistakes, and what comes of it.

use crate::support::root;
use kittiwake_model::{Identity, Key, Name};
use kittiwake_network::auth::{LoginKind, Sending};
use kittiwake_network::{Answer, Network, Page};

const SMALL: &str = r#"format = 1
name = "tiny"
verified_on = "2026-11-15"
host = { kind = "fixed", address = "https://api.tiny.example" }

[types.user]
table = "users"
canonical = ".id"

[queries.user]
subject = "user"
path = "/users/{canonical}"
selects = [{ at = ".", as = "user", is_subject = true }]
"#;

fn with_auth(auth: &str) -> Result<Network, String> {
    Network::parse("tiny.toml", &format!("{SMALL}{auth}")).map_err(|errors| errors.to_string())
}

#[test]
fn a_network_without_the_section_takes_a_bearer_token() {
    let network = with_auth("").unwrap();
    let [method] = network.auth().methods.as_slice() else {
        panic!("one way");
    };
    assert_eq!(method.sending, Sending::Bearer);
    assert!(matches!(method.kind, LoginKind::Token));
}

#[test]
fn every_kind_can_be_declared() {
    let network = with_auth(
        r#"
[auth.methods.key]
kind = "token"
send = { query = "key" }
variables = ["API_KEY"]

[auth.methods.app]
kind = "client_credentials"
token = "/oauth/token"
client_auth = "basic"

[auth.methods.user]
kind = "code"
authorize = "https://tiny.example/authorize"
token = "https://login.tiny.example/token"
client_auth = "none"
scopes = ["users.read", "offline.access"]
hosts = ["https://upload.tiny.example"]

[auth.methods.television]
kind = "device"
device = "/device"
token = "/oauth/token"

[auth.methods.signed]
kind = "oauth1"

[auth.methods.session]
kind = "session"
create = "/session/create"
refresh = "/session/refresh"
parameters = { identifier = "{identifier}", password = "{password}" }
answer = { access = "accessJwt", refresh = "refreshJwt", account = "handle" }
"#,
    )
    .unwrap();
    let auth = network.auth();
    let kinds: Vec<_> = auth.methods.iter().map(|it| it.kind.word()).collect();
    assert_eq!(
        kinds,
        [
            "token",
            "client_credentials",
            "code",
            "device",
            "oauth1",
            "session"
        ]
    );
    assert_eq!(auth.secret_parameters(), ["key"]);
    let asked = |name: &str| auth.method(name).unwrap().kind.asked();
    assert_eq!(asked("user"), ["client_id"]);
    assert_eq!(asked("app"), ["client_id", "client_secret"]);
    assert_eq!(asked("signed").len(), 4);
}

#[test]
fn every_mistake_is_named_with_its_place_and_a_remedy() {
    let method = |rest: &str| format!("\n[auth.methods.m]\n{rest}\n");
    let code = "kind = \"code\"\nauthorize = \"/a\"\ntoken = \"/t\"\n";
    for (text, expected) in [
        (
            "\n[auth]\nmethod = 1\n".to_owned(),
            "tiny.toml:16:1: unknown key `method` in [auth]; did you mean `methods`?",
        ),
        (
            method(""),
            "tiny.toml:15:15: [auth.methods.m] has no `kind`; write for example `kind = \"token\"`",
        ),
        (
            method("kind = \"oauth2\""),
            "tiny.toml:16:8: `kind` cannot be `oauth2`; did you mean `oauth1`?",
        ),
        (
            method("kind = \"token\"\ntoken = \"/t\""),
            "tiny.toml:17:9: `token` has no meaning for `kind = \"token\"`",
        ),
        (
            method("kind = \"code\"\nauthorize = \"/a\""),
            "[auth.methods.m] has no `token`; write for example `token = \"/oauth/token\"`",
        ),
        (
            method(&format!("{code}client_auth = \"header\"")),
            "tiny.toml:19:15: `client_auth` cannot be `header`; it is one of body, basic, none",
        ),
        (
            method("kind = \"code\"\nauthorize = \"http://a.example/\"\ntoken = \"/t\""),
            "tiny.toml:17:13: `http://a.example/` is no address",
        ),
        (
            method("kind = \"code\"\nauthorize = \"//a.example/\"\ntoken = \"/t\""),
            "`//a.example/` is no path",
        ),
        (
            method("kind = \"code\"\nauthorize = \"/../a\"\ntoken = \"/t\""),
            "`/../a` is no path",
        ),
        (
            method("kind = \"token\"\nsend = { header = \"host\" }"),
            "`host` is no header to send",
        ),
        (
            method("kind = \"token\"\nsend = { header = \"x\", query = \"y\" }"),
            "`send` names one place",
        ),
        (
            method("kind = \"oauth1\"\nsend = { query = \"y\" }"),
            "a signature always stands in `Authorization`; leave `send` out",
        ),
        (
            method("kind = \"token\"\nvariables = [\"my token\"]"),
            "tiny.toml:17:14: `my token` is no variable",
        ),
        (
            method(&format!("{code}scopes = [\"read write\"]")),
            "`read write` is not one permission",
        ),
        (
            method(
                "kind = \"session\"\ncreate = \"/c\"\nrefresh = \"/r\"\nparameters = { name = \"{identifier}\" }\nanswer = { access = \"a\", refresh = \"b\" }",
            ),
            "no parameter holds `{password}`",
        ),
        (
            method(
                "kind = \"session\"\ncreate = \"/c\"\nrefresh = \"/r\"\nparameters = { a = \"{identifier}\", b = \"{password}\" }",
            ),
            "[auth.methods.m] has no `answer`",
        ),
        (
            method(&format!(
                "{code}register = {{ path = \"/apps\", parameters = {{ redirect_uris = \"{{redirects}}\" }} }}"
            )),
            "a placeholder cannot be `{redirects}`; did you mean `{redirect}`?",
        ),
    ] {
        let found = with_auth(&text).unwrap_err();
        assert!(
            found.contains(expected),
            "{text}\n  found: {found}\n  expected: {expected}"
        );
    }
}

#[test]
fn a_network_can_say_how_programs_call_themselves() {
    let named = |template: &str| {
        let host = format!("address = \"https://api.tiny.example\", user_agent = \"{template}\"");
        let text = SMALL.replace("address = \"https://api.tiny.example\"", &host);
        Network::parse("tiny.toml", &text).map_err(|errors| errors.to_string())
    };
    let network = named("{platform}:kittiwake:{version} (by {contact})").unwrap();
    assert_eq!(
        network.user_agent("1.2", "/u/ada", "linux").as_deref(),
        Some("linux:kittiwake:1.2 (by /u/ada)")
    );
    let found = named("kittiwake/{version}").unwrap_err();
    assert!(
        found.contains("does not say who asks; put `{contact}` into it"),
        "{found}"
    );
    let found = named("{name} {contact}").unwrap_err();
    assert!(found.contains("placeholders are {version}"), "{found}");
}

#[test]
fn mastodon_asks_for_the_least_that_the_robots_need() {
    let text = std::fs::read_to_string(root().join("networks/mastodon.toml")).unwrap();
    let network = Network::parse("mastodon.toml", &text).unwrap();
    let scopes = |robots: &[&str]| {
        let names: Vec<Name> = robots.iter().map(|name| Name::from(*name)).collect();
        network.scopes_of(&names)
    };
    assert_eq!(scopes(&["profiles"]), ["read:accounts"]);
    assert_eq!(scopes(&["statuses"]), ["read:accounts", "read:statuses"]);
    assert_eq!(scopes(&[]), Vec::<String>::new());
    let user = network.auth().method("user").unwrap();
    assert!(user.kind.registration().is_some());
    assert_eq!(user.kind.asked(), [""; 0]);
}

#[test]
fn a_key_that_a_server_repeats_gets_into_no_cursor() {
    let text = SMALL.replace(
        "selects = [{ at = \".\", as = \"user\", is_subject = true }]",
        "page = { style = \"link\", size = 10 }\nselects = [{ at = \".[]\", as = \"user\" }]",
    );
    let auth = "\n[auth.methods.key]\nkind = \"token\"\nsend = { query = \"key\" }\n";
    let network = Network::parse("tiny.toml", &format!("{text}{auth}")).unwrap();
    let query = network.query("user").unwrap();
    let base = network.base("").unwrap();
    let url = base.join("/users/1").unwrap();
    let identity = Identity {
        network: "tiny".into(),
        kind: "user".into(),
        canonical: Some("1".to_owned()),
        aliases: Vec::new(),
    };
    let link = "<https://api.tiny.example/users/1?key=hunter2hunter2&page=2>; rel=\"next\"";
    let header = |name: &str| (name == "link").then(|| link.to_owned());
    let reading = network.read(&Answer {
        query,
        base: &base,
        host: "api.tiny.example",
        subjects: &[(Key(1), &identity)],
        page: Page::First,
        url: &url,
        status: 200,
        header: &header,
        body: br#"[{"id":"2"}]"#,
        walk: None,
    });
    assert_eq!(reading.next.as_deref(), Some("page=2"), "{reading:?}");
}
