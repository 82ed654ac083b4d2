//! Definitions that read web pages: how they are checked, and what becomes of a page.

use crate::support::field;
use kittiwake_model::{Identity, Key, OutcomeCode, Value};
use kittiwake_network::{Answer, Ask, Network, Page, Reading};
use url::Url;

const DEFINITION: &str = r#"format = 1
name = "birds"
verified_on = "2026-11-18"
host = { kind = "fixed", address = "https://birds.example" }

[types.user]
table = "users"
canonical = ".url"
aliases = { handle = ".handle" }

[types.user.fields.card]
display_name = ".name"

[types.user.fields.counts]
followers_count = ".followers"

[types.post]
table = "statuses"
canonical = ".id"

[types.post.fields.content]
text = { path = ".text", kind = "html" }
url = ".url"

[queries.posts]
subject = "user"
path = "/{handle}"
decode = "html"
page = { style = "next", at = ".next", size = 2 }

[queries.posts.html]
next = { css = "a[rel=next]", address = "href", optional = true }

[queries.posts.html.user]
css = "header"

[queries.posts.html.user.each]
handle = "h1"
name = { css = "h2", optional = true }
url = { css = "a.self", address = "href", without = ["*"] }
followers = { css = "b", attribute = "data-count", optional = true }

[queries.posts.html.posts]
within = "ol"
css = "li"

[queries.posts.html.posts.each]
id = { attribute = "id" }
text = { css = "p", take = "html" }
url = { css = "a", address = "href", optional = true }

[[queries.posts.selects]]
at = ".posts[]"
as = "post"

[[queries.posts.selects]]
at = ".user[]"
as = "user"

[[robots]]
name = "posts"
subject = "user"
steps = [{ query = "posts" }]

[[seeds]]
pattern = "{name}"
type = "user"
alias = "handle"
value = "{name}"

[[errors]]
status = 200
css = "form#login"
outcome = "auth expired"
reason = "the log-in page"

[[errors]]
status = [302, 303]
redirect = "/login"
outcome = "auth expired"
"#;

const PAGE: &str = "<header><h1>ann</h1><h2>Ann Gull</h2><a class=self href='/ann?x=1#top'>me</a><b data-count=12>12 people</b></header>\
    <ol><li id=7><p>Hi <b>you</b> &amp; me</p><a href=/p/7>open</a><li id=8><p>Bye</p></ol>\
    <a rel=next href='?page=2'>more</a>";

fn network(text: &str) -> Network {
    Network::parse("birds.toml", text).unwrap_or_else(|errors| panic!("{errors}"))
}

struct Sent<'a> {
    page: Page<'a>,
    status: u16,
    headers: &'a [(&'a str, &'a str)],
    body: &'a [u8],
}

impl Sent<'_> {
    fn with<T>(&self, network: &Network, use_it: impl Fn(&Answer<'_>) -> T) -> T {
        let query = network.query("posts").unwrap();
        let subject: Identity = network.seed("ann", "birds.example").unwrap();
        let base = Url::parse("https://birds.example").unwrap();
        let plan = network
            .request(&Ask {
                query,
                base: &base,
                host: "birds.example",
                subjects: &[&subject],
                page: self.page,
                authenticated: false,
            })
            .unwrap();
        assert!(plan.headers[0].1.starts_with("text/html"));
        use_it(&Answer {
            query,
            base: &base,
            host: "birds.example",
            subjects: &[(Key(1), &subject)],
            page: self.page,
            url: &plan.url,
            status: self.status,
            header: &|name| {
                let mut headers = self.headers.iter();
                let found = headers.find(|(known, _)| *known == name)?;
                Some(found.1.to_owned())
            },
            body: self.body,
            walk: None,
        })
    }
}

fn read(body: &[u8], headers: &[(&str, &str)]) -> Reading {
    let sent = Sent {
        page: Page::First,
        status: 200,
        headers,
        body,
    };
    let network = network(DEFINITION);
    sent.with(&network, |answer| network.read(answer))
}

#[test]
fn a_page_is_read_by_the_rules_of_every_answer() {
    let reading = read(PAGE.as_bytes(), &[("content-type", "text/html")]);
    assert_eq!(reading.outcome, OutcomeCode::Ok, "{}", reading.reason);
    assert_eq!((reading.listed, reading.mended), (2, 0));
    assert_eq!(reading.next.as_deref(), Some("page=2"));
    let user = &reading.objects[2];
    assert_eq!(
        user.identity.canonical.as_deref(),
        Some("https://birds.example/ann")
    );
    assert_eq!(field(user, "followers_count"), Some(&Value::Int(12)));
    let texts: Vec<_> = reading.objects[..2]
        .iter()
        .map(|it| field(it, "text"))
        .collect();
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!(texts, [Some(&text("Hi you & me")), Some(&text("Bye"))]);
    assert_eq!(
        field(&reading.objects[0], "url"),
        Some(&text("https://birds.example/p/7"))
    );
    assert_eq!(field(&reading.objects[1], "url"), None);
}

#[test]
fn a_changed_layout_is_malformed_and_says_what_is_missing() {
    let changed = PAGE.replace("<h1>", "<h3>").replace("<ol>", "<ul>");
    let reading = read(changed.as_bytes(), &[]);
    assert_eq!(reading.outcome, OutcomeCode::Malformed);
    let unfound = ["user.handle (h1)", "posts (ol)"];
    assert_eq!(reading.unfound, unfound);
    assert_eq!(
        reading.reason,
        "nothing on the page fits user.handle (h1), posts (ol)"
    );
    for body in ["<p>We are down for maintenance", "{\"error\": 1}", "plain"] {
        let reading = read(body.as_bytes(), &[]);
        assert_eq!(
            (reading.outcome, reading.unfound.len()),
            (OutcomeCode::Malformed, 2),
            "{body}"
        );
    }
    let json = read(b"{}", &[("content-type", "application/json")]);
    assert_eq!(
        (json.outcome, json.reason.as_str()),
        (OutcomeCode::Malformed, "no html")
    );
    assert_eq!(read(b" \n", &[]).reason, "empty body");
}

#[test]
fn a_list_that_is_there_may_be_empty() {
    let start = PAGE.split("<ol>").next().unwrap();
    let reading = read(format!("{start}<ol></ol>").as_bytes(), &[]);
    assert_eq!(
        (reading.outcome, reading.objects.len()),
        (OutcomeCode::Ok, 1)
    );
}

#[test]
fn a_page_is_known_by_what_stands_on_it_and_a_redirect_by_where_it_leads() {
    let page = format!("{PAGE}<form id=login></form>");
    let reading = read(page.as_bytes(), &[]);
    assert_eq!(reading.outcome, OutcomeCode::AuthExpired);
    assert_eq!(reading.reason, "the log-in page");
    let network = network(DEFINITION);
    for (location, expected) in [
        ("/login?back=/ann", Some(OutcomeCode::AuthExpired)),
        ("/ann/", None),
    ] {
        let sent = Sent {
            page: Page::First,
            status: 302,
            headers: &[("location", location)],
            body: b"",
        };
        let read = sent.with(&network, |answer| network.read_redirect(answer));
        assert_eq!(read.map(|it| it.outcome), expected, "{location}");
    }
}

#[test]
fn a_block_page_is_known_by_what_the_site_says_and_not_by_what_people_say() {
    let text = format!(
        "{DEFINITION}\n[[blocks]]\ncss = \"title, h1.notice\"\ntext = \"Too much\"\nreason = \"blocked\"\n\
         [[blocks]]\ncss = \"#captcha\"\nreason = \"captcha\"\n"
    );
    let network = network(&text);
    let told = |body: &[u8], content_type: &str| {
        let found = network.block_page(200, (None, Some(content_type)), body);
        found.map(str::to_owned)
    };
    for (body, reason) in [
        ("<title>TOO <b>much</title>", None),
        ("<title>Sorry: too\n much traffic</title>", Some("blocked")),
        ("<h1 class=notice>Too <b>much</b></h1>", Some("blocked")),
        ("<title>Ann</title><p>This is too much!", None),
        ("<p>Solve it: <input id=captcha>", Some("captcha")),
    ] {
        let expected = reason.map(str::to_owned);
        assert_eq!(told(body.as_bytes(), "text/html"), expected, "{body}");
    }
    let wide: Vec<u8> = "<title>Too much</title>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let found = told(&wide, "text/html; charset=utf-16le");
    assert_eq!(found.as_deref(), Some("blocked"));
}

#[test]
fn hostile_pages_have_an_outcome() {
    for (page, outcome) in [
        ("<div>".repeat(1_000_000), OutcomeCode::TooMuchData),
        ("<br>".repeat(1_000_000), OutcomeCode::TooMuchData),
        ("x".repeat(20 << 20), OutcomeCode::TooMuchData),
        (
            format!("<p{}>", " a=1".repeat(1_000_000)),
            OutcomeCode::TooMuchData,
        ),
        ("<!--".repeat(1_000_000), OutcomeCode::Malformed),
    ] {
        let reading = read(page.as_bytes(), &[]);
        assert_eq!(
            reading.outcome,
            outcome,
            "{}: {}",
            &page[..20],
            reading.reason
        );
    }
    let mut wrong = PAGE.as_bytes().to_vec();
    wrong.extend(b"\xff\xfe\x80");
    let reading = read(&wrong, &[("content-type", "text/html; charset=utf-8")]);
    assert_eq!((reading.outcome, reading.mended), (OutcomeCode::Ok, 3));
}

#[test]
fn mistakes_are_reported_where_they_stand() {
    for (from, to, line, message) in [
        (
            "handle = \"h1\"",
            "handle = \"h1[\"",
            38,
            "`h1[` is no CSS selector",
        ),
        (
            "css = \"form#login\"",
            "css = \":nope\"",
            75,
            "`:nope` is no CSS selector",
        ),
        ("attribute = \"id\"", "atribute = \"id\"", 48, "`atribute`"),
        ("take = \"html\"", "take = \"soup\"", 49, "cannot be `soup`"),
        (
            "address = \"href\", without",
            "without",
            40,
            "`without` is for addresses",
        ),
        (
            "decode = \"html\"\n",
            "",
            30,
            "says what is taken of a web page",
        ),
        ("css = \"li\"\n", "", 44, "css"),
    ] {
        let text = DEFINITION.replacen(from, to, 1);
        assert_ne!(text, DEFINITION, "{from}");
        let errors = Network::parse("birds.toml", &text).unwrap_err();
        let found = errors
            .problems
            .iter()
            .find(|it| it.message.contains(message));
        let found = found.unwrap_or_else(|| panic!("{from}: {errors}"));
        assert!(
            found.line.abs_diff(line) <= 3 && found.column > 0,
            "{from}: {errors}"
        );
    }
    let all_optional = DEFINITION
        .replace("css = \"header\"", "css = \"header\"\noptional = true")
        .replace("within = \"ol\"", "within = \"ol\"\noptional = true");
    let errors = Network::parse("birds.toml", &all_optional).unwrap_err();
    assert!(
        errors.to_string().contains("nothing on the page is needed"),
        "{errors}"
    );
}
