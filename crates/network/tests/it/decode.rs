//! Answers of every kind: XML and feeds, other charsets, maps, bare ids, numbers of any size, nulls,
//! and ids that tell the time.

use crate::support::field;
use kittiwake_model::{Identity, Key, Link, OutcomeCode, Reference, Standing, Value};
use kittiwake_network::{Answer, Ask, Network, Page, Reading, xml_to_json};
use proptest::prelude::*;
use serde_json::json;
use std::sync::LazyLock;

const HOST: &str = "birds.example";

const DEFINITION: &str = include_str!("birds.toml");

static NETWORK: LazyLock<Network> =
    LazyLock::new(|| Network::parse("birds.toml", DEFINITION).unwrap_or_else(|it| panic!("{it}")));

fn named(kind: &str, id: &str) -> Identity {
    Identity {
        network: "birds".into(),
        kind: kind.into(),
        canonical: Some(id.to_owned()),
        aliases: Vec::new(),
    }
}

struct Sent<'a> {
    query: &'a str,
    status: u16,
    content_type: Option<&'a str>,
    body: &'a [u8],
    ids: &'a [&'a str],
}

impl<'a> Sent<'a> {
    fn new(query: &'a str, body: &'a [u8]) -> Self {
        Self {
            query,
            status: 200,
            content_type: None,
            body,
            ids: &["7"],
        }
    }

    fn read(&self) -> Reading {
        let query = NETWORK.query(self.query).unwrap();
        let base = NETWORK.base("").unwrap();
        let subjects: Vec<Identity> = self.ids.iter().map(|id| named(&query.kind, id)).collect();
        let subjects: Vec<(Key, &Identity)> = (1..).map(Key).zip(&subjects).collect();
        NETWORK.read(&Answer {
            query,
            base: &base,
            host: HOST,
            subjects: &subjects,
            page: Page::First,
            url: &base,
            status: self.status,
            header: &|name| {
                let is_type = name == "content-type";
                self.content_type.filter(|_| is_type).map(str::to_owned)
            },
            body: self.body,
            walk: None,
        })
    }
}

fn read(query: &str, body: &str) -> Reading {
    Sent::new(query, body.as_bytes()).read()
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

fn canonicals(reading: &Reading) -> Vec<&str> {
    let identities = reading.objects.iter().map(|object| &object.identity);
    identities
        .filter_map(|it| it.canonical.as_deref())
        .collect()
}

fn time(value: &str) -> Value {
    // 2026-10-14 is the day 20740 since 1970.
    let (hours, minutes) = value.split_once(':').unwrap();
    let seconds = hours.parse::<i64>().unwrap() * 3_600 + minutes.parse::<i64>().unwrap() * 60;
    let at_us = (20_740 * 86_400 + seconds) * 1_000_000;
    Value::Time {
        at_us,
        clamped: false,
    }
}

const RSS: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<!-- A feed. -->
<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:slash="s">
  <channel>
    <title>Gulls &amp; terns</title>
    <link>https://gulls.example/</link>
    <count> 12 </count><machine>true</machine><noindex>true</noindex>
    <item>
      <guid isPermaLink="false">tag:1</guid>
      <link>https://gulls.example/1</link>
      <description><![CDATA[<p>One &amp; two</p>]]></description>
      <pubDate>Wed, 14 Oct 2026 19:06:00 +0200</pubDate>
      <dc:creator>Ann</dc:creator>
      <slash:comments>3</slash:comments>
      <category>sea</category><category>sky</category>
    </item>
    <item>
      <guid>tag:2</guid><category>sea</category><description/>
      <pubDate>soon</pubDate><slash:comments>many</slash:comments>
    </item>
  </channel>
</rss>"#;

#[test]
fn a_feed_in_xml_is_read_like_any_answer() {
    let sent = Sent {
        ids: &["https://gulls.example/"],
        ..Sent::new("rss", RSS.as_bytes())
    };
    let reading = sent.read();
    assert_eq!((reading.outcome, reading.items), (OutcomeCode::Ok, 3));
    // A time and a number that are none.
    assert_eq!(reading.mended, 2);
    assert_eq!(
        canonicals(&reading),
        ["https://gulls.example/", "tag:1", "tag:2"]
    );
    let feed = &reading.objects[0];
    assert_eq!(feed.known_as, Some(Key(1)));
    assert_eq!(field(feed, "display_name"), Some(&text("Gulls & terns")));
    assert_eq!(field(feed, "statuses_count"), Some(&Value::Int(12)));
    assert_eq!(field(feed, "is_bot"), Some(&Value::Bool(true)));
    assert_eq!(field(feed, "opted_out"), Some(&Value::Bool(true)));
    let entry = &reading.objects[1];
    assert_eq!(field(entry, "text"), Some(&text("One & two")));
    assert_eq!(field(entry, "url"), Some(&text("https://gulls.example/1")));
    assert_eq!(field(entry, "by"), Some(&text("Ann")));
    assert_eq!(field(entry, "created_us"), Some(&time("17:06")));
    assert_eq!(field(entry, "replies_count"), Some(&Value::Int(3)));
    assert_eq!(field(&reading.objects[2], "text"), Some(&Value::Null));
    // Two categories, then one: both are lists.
    let kinds: Vec<&str> = reading.links.iter().map(|link| &*link.kind).collect();
    assert_eq!(kinds, ["tag", "tag", "tag", "wrote", "wrote"]);
    let unmapped = NETWORK.unmapped_answer(
        NETWORK.query("rss").unwrap(),
        &serde_json::from_str(&xml_to_json(RSS).unwrap()).unwrap(),
    );
    let expected = [
        ".rss.channel.item[].guid[\"@isPermaLink\"]",
        ".rss[\"@version\"]",
    ];
    assert_eq!(unmapped, expected);
}

#[test]
fn one_query_reads_every_kind_of_feed() {
    let atom = r#"<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:1</id>
        <published>2026-10-14 17:06</published>
        <link rel="self" href="s"/><link rel="alternate" href="a"/>
        <author><name>Ann</name></author><category term="sea"/>
        <content type="xhtml"><div xmlns="x">One <b>&amp;</b> two</div></content></entry></feed>"#;
    let rdf = r#"<rdf:RDF xmlns:rdf="r" xmlns:dc="d"><channel/><item><guid>urn:1</guid>
        <dc:date>20261014T1706Z</dc:date><link>a</link><dc:creator>Ann</dc:creator>
        <category term="sea"/><description>&lt;p&gt;One &amp;amp; two</description></item></rdf:RDF>"#;
    let json = r#"{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"urn:1",
        "date_published":"2026-10-14T17:06:00Z","link":"a","author":{"name":"Ann"},
        "category":[{"@term":"sea"}],"content_html":"<p>One &amp; two"}]}"#;
    for feed in [atom, rdf, json] {
        let reading = read("any", feed);
        assert_eq!(
            (reading.outcome, reading.items),
            (OutcomeCode::Ok, 1),
            "{feed}"
        );
        assert_eq!(reading.mended, 0, "{feed}");
        let entry = reading.objects.last().unwrap();
        assert_eq!(entry.identity.canonical.as_deref(), Some("urn:1"));
        assert_eq!(field(entry, "text"), Some(&text("One & two")), "{feed}");
        assert_eq!(field(entry, "created_us"), Some(&time("17:06")));
        assert_eq!(field(entry, "url"), Some(&text("a")), "{feed}");
        assert_eq!(field(entry, "by"), Some(&text("Ann")));
        let [tag] = reading.links.as_slice() else {
            panic!("{feed}");
        };
        assert!(matches!(tag.to, Reference::Object(0)));
    }
}

#[test]
fn a_feed_without_items_is_empty_and_a_page_is_malformed() {
    for empty in [
        "<rss><channel><title>x</title></channel></rss>",
        "<rss><channel/></rss>",
    ] {
        let reading = read("any", empty);
        assert_eq!(
            (reading.outcome, reading.mended),
            (OutcomeCode::Empty, 0),
            "{empty}"
        );
    }
    for (query, body, reason) in [
        (
            "rss",
            "<!DOCTYPE html><html><body>busy</body></html>",
            "html instead of xml",
        ),
        ("any", " <html>", "html instead of xml"),
        ("user", "<rss/>", "html instead of json"),
        ("rss", "{\"rss\":{}}", "no xml"),
        ("rss", "<opml/>", "nothing stands where"),
        ("any", "{\"error\":1}", "nothing stands where"),
        ("any", "<rss><x/></rss>", "nothing stands where"),
        ("rss", " \n", "empty body"),
        ("any", &RSS[..RSS.len() - 8], "xml ends too early"),
        (
            "rss",
            &RSS.replace("</guid>", "</guil>"),
            "no xml at line 9",
        ),
    ] {
        let reading = read(query, body);
        assert_eq!(reading.outcome, OutcomeCode::Malformed, "{body}");
        assert!(
            reading.reason.starts_with(reason),
            "{body}: {}",
            reading.reason
        );
        assert!(reading.objects.is_empty() && reading.links.is_empty());
    }
    let reading = read("rss", &"<a>".repeat(1_000));
    assert_eq!(reading.outcome, OutcomeCode::TooMuchData);
}

#[test]
fn every_truncation_of_a_feed_is_malformed() {
    for end in 0..RSS.len() - 1 {
        let reading = Sent::new("rss", &RSS.as_bytes()[..end]).read();
        assert_eq!(reading.outcome, OutcomeCode::Malformed, "{end}");
        assert!(reading.objects.is_empty());
    }
}

#[test]
fn other_charsets_are_read_and_wrong_bytes_counted() {
    let feed = |title: &[u8], declared: &str| {
        let declaration =
            format!("<?xml version='1.0'{declared}?><rss><channel><link>x</link><title>");
        [declaration.as_bytes(), title, b"</title></channel></rss>"].concat()
    };
    for (body, content_type, title, mended) in [
        (feed(b"M\xF6we", " encoding='iso-8859-1'"), None, "Möwe", 0),
        (
            feed(b"M\xF6we", ""),
            Some("text/xml; charset=windows-1252"),
            "Möwe",
            0,
        ),
        (feed("Möwe".as_bytes(), ""), Some("text/xml"), "Möwe", 0),
        (feed(b"M\xF6we", ""), None, "M\u{FFFD}we", 1),
        (
            feed(b"\x83J\x83\x82\x83\x81", " encoding=\"Shift_JIS\""),
            None,
            "カモメ",
            0,
        ),
    ] {
        let mut sent = Sent::new("rss", &body);
        sent.content_type = content_type;
        let reading = sent.read();
        assert_eq!(
            field(&reading.objects[0], "display_name"),
            Some(&text(title))
        );
        assert_eq!(reading.mended, mended, "{title}");
    }
    let mut sent = Sent::new("user", b"{\"id\":\"7\",\"title\":\"M\xF6we\"}");
    sent.content_type = Some("application/json; charset=ISO-8859-1");
    let reading = sent.read();
    assert_eq!(
        field(&reading.objects[0], "display_name"),
        Some(&text("Möwe"))
    );
    assert_eq!(reading.mended, 0);
    let wide: Vec<u8> = "\u{FEFF}{\"id\":\"7\",\"title\":\"🐦\"}"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    let reading = Sent::new("user", &wide).read();
    assert_eq!(
        field(&reading.objects[0], "display_name"),
        Some(&text("🐦"))
    );
}

#[test]
fn errors_are_matched_in_xml_and_in_other_charsets_too() {
    let mut sent = Sent::new("rss", b"<error><code>17</code></error>");
    sent.status = 400;
    assert_eq!(sent.read().outcome, OutcomeCode::Protected);
    // The same in the notation that was not asked for, and pages that are neither.
    sent.body = b"{\"error\":{\"code\":\"17\"}}";
    assert_eq!(sent.read().outcome, OutcomeCode::Protected);
    for page in ["<html>17", "17", "", "<error><code>17"] {
        sent.body = page.as_bytes();
        assert_eq!(sent.read().outcome, OutcomeCode::BadRequest, "{page}");
    }
    let mut sent = Sent::new("user", b"{\"error\":\"sch\xF6n\"}");
    sent.status = 400;
    sent.content_type = Some("application/json;charset=latin1");
    assert_eq!(sent.read().outcome, OutcomeCode::Blocked);
}

#[test]
fn the_accept_header_fits_what_is_read() {
    let accept = |query: &str| {
        let base = NETWORK.base("").unwrap();
        let query = NETWORK.query(query).unwrap();
        let plan = NETWORK
            .request(&Ask {
                query,
                base: &base,
                host: HOST,
                subjects: &[&named(&query.kind, "7")],
                page: Page::First,
                authenticated: false,
            })
            .unwrap();
        plan.headers[0].1.clone()
    };
    assert_eq!(accept("user"), "application/json");
    assert!(accept("rss").contains("application/rss+xml") && !accept("rss").contains("json"));
    assert!(accept("any").contains("feed+json") && accept("any").contains("atom+xml"));
}

#[test]
fn every_value_of_a_map_is_an_item_and_its_key_may_be_its_id() {
    let body = r#"{"users":{"u1":{"title":"Ann"},"u2":{"id":"two","title":"Bob"},"U\u00e93":{}, "x":null,"y":3}}"#;
    let reading = read("known", body);
    assert_eq!(canonicals(&reading), ["u1", "two", "Ué3"]);
    // Only the number is no user.
    assert_eq!((reading.items, reading.mended), (3, 1));
    assert_eq!(
        reading.objects[2].identity.alias("handle", HOST),
        Some("ué3")
    );
    let known: Vec<&Link> = reading.links.iter().collect();
    assert_eq!(known.len(), 3);
    assert!(known.iter().all(|link| link.from == Reference::Key(Key(1))));
    let reading = read("map", r#"{"a":{},"b":{}}"#);
    assert_eq!(canonicals(&reading), ["a", "b"]);
    let reading = read("known", r#"{"users":{}}"#);
    assert_eq!(reading.outcome, OutcomeCode::Empty);
    for body in ["[]", "3", "\"x\"", "null"] {
        let reading = read("map", body);
        assert_eq!(reading.outcome, OutcomeCode::Malformed, "{body}");
        assert_eq!(reading.reason, "no map where one is expected");
    }
    assert_eq!(read("map", "{\"a\":{}").outcome, OutcomeCode::Malformed);
}

#[test]
fn links_go_to_every_value_of_a_map() {
    // Two friends who say the same of themselves are two.
    let body =
        r#"{"id":"7","friends":{"u1":{"title":"x"},"u2":{"title":"x"},"u3":"id3","u4":null}}"#;
    let reading = read("user", body);
    assert_eq!(canonicals(&reading), ["u1", "u2", "7"]);
    assert_eq!((reading.links.len(), reading.mended), (3, 0));
    assert!(
        matches!(&reading.links[2].to, Reference::Identity(it) if it.canonical.as_deref() == Some("id3"))
    );
    let reading = read("user", r#"{"id":"7","friends":["u1"]}"#);
    assert_eq!((reading.links.len(), reading.mended), (0, 1));
}

#[test]
fn a_key_names_nobody_outside_of_a_map() {
    let reading = read("users", r#"[{"title":"Ann"}]"#);
    assert_eq!((reading.items, reading.mended), (0, 1));
}

const LONG: &str = "123456789012345678901234567890";

#[test]
fn bare_ids_are_objects_that_nobody_has_described() {
    let body =
        format!(r#"[1, "two", {LONG}, null, {{"id":4,"text":"x"}}, 1.5, true, [], "", "a\u0000"]"#);
    let reading = read("top", &body);
    assert_eq!(canonicals(&reading), ["1", "two", LONG, "4"]);
    assert_eq!((reading.outcome, reading.items), (OutcomeCode::Ok, 4));
    assert_eq!(reading.mended, 5);
    assert_eq!(reading.newest.as_deref(), Some(LONG));
    let bare = &reading.objects[0];
    assert_eq!((bare.groups.len(), bare.standing), (0, Standing::Present));
    assert_eq!(&*bare.identity.kind, "post");
    let reading = read("shorts", "[9007199254740993]");
    let alias = reading.objects[0].identity.alias("short", HOST);
    assert_eq!(
        (alias, canonicals(&reading)),
        (Some("9007199254740993"), vec![])
    );
    let reading = read("submitted", r#"{"id":"7","submitted":[8863,9671]}"#);
    assert_eq!(canonicals(&reading), ["8863", "9671"]);
    assert_eq!(reading.links.len(), 2);
    assert_eq!(reading.links[1].from, Reference::Key(Key(1)));
}

#[test]
fn bare_ids_are_bounded() {
    let many: Vec<String> = (0..100_001).map(|id| id.to_string()).collect();
    let reading = read("top", &format!("[{}]", many[..100_000].join(",")));
    assert_eq!((reading.outcome, reading.items), (OutcomeCode::Ok, 100_000));
    let reading = read("top", &format!("[{}]", many.join(",")));
    assert_eq!(reading.outcome, OutcomeCode::TooMuchData);
    assert_eq!(reading.objects.len(), 100_000);
}

#[test]
fn numbers_of_any_size_are_kept_to_the_last_digit() {
    let body = format!(
        r#"[{{"id":{LONG},"short":9007199254740993,"by":18446744073709551617,"parent":9007199254740995,
            "likes":9007199254740997,"n":{LONG},"kids":[9007199254740999,{LONG}]}}]"#
    );
    let reading = read("top", &body);
    assert_eq!(
        reading.mended, 1,
        "the time of an id that is too long to hold one"
    );
    let post = &reading.objects[0];
    assert_eq!(post.identity.canonical.as_deref(), Some(LONG));
    assert_eq!(post.identity.alias("short", HOST), Some("9007199254740993"));
    let id_of = |value: &Value| match value {
        Value::Object(Reference::Identity(identity)) => identity.canonical.clone().unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        id_of(field(post, "author").unwrap()),
        "18446744073709551617"
    );
    assert_eq!(id_of(field(post, "reply_to").unwrap()), "9007199254740995");
    assert_eq!(
        field(post, "likes_count"),
        Some(&Value::Int(9_007_199_254_740_997))
    );
    assert_eq!(field(post, "twice"), Some(&text(LONG)));
    assert_eq!(
        field(post, "same"),
        Some(&Value::Json(format!("{{\"id\":{LONG}}}")))
    );
    assert_eq!(
        field(post, "next"),
        Some(&text("123456789012345678901234567891"))
    );
    let ids: Vec<String> = reading
        .links
        .iter()
        .map(|link| id_of(&Value::Object(link.to.clone())))
        .collect();
    assert_eq!(ids, ["9007199254740999", LONG]);
    assert_eq!(reading.newest.as_deref(), Some(LONG));
    // More than 64 bits are no number of a column.
    let reading = read(
        "top",
        r#"[{"id":"1541815603606036480","likes":9223372036854775808}]"#,
    );
    assert_eq!(
        (reading.mended, field(&reading.objects[0], "likes_count")),
        (1, None)
    );
    let reading = read(
        "top",
        r#"[{"id":1541815603606036480,"likes":9223372036854775807}]"#,
    );
    assert_eq!(
        field(&reading.objects[0], "likes_count"),
        Some(&Value::Int(i64::MAX))
    );
    assert_eq!(
        field(&reading.objects[0], "created_us"),
        Some(&Value::Time {
            at_us: 1_656_432_460_105_000,
            clamped: false
        })
    );
}

#[test]
fn null_in_place_of_the_subject_is_not_found() {
    let reading = read("user", "null");
    let absent = (
        Key(1),
        OutcomeCode::NotFound,
        "absent from answer".to_owned(),
    );
    assert_eq!(reading.subject_outcomes, [absent]);
    assert_eq!(reading.mended, 0);
    // There is nobody whose list it could be.
    let reading = read("submitted", " null\n");
    assert_eq!(reading.outcome, OutcomeCode::NotFound);
    // Whole lists are never null: the server is out of order.
    assert_eq!(read("top", "null").outcome, OutcomeCode::Malformed);
    // A list that is null is empty.
    let reading = read("submitted", r#"{"submitted":null}"#);
    assert_eq!((reading.outcome, reading.mended), (OutcomeCode::Empty, 0));
    let reading = read("submitted", r#"{"id":"7"}"#);
    assert_eq!(reading.outcome, OutcomeCode::Malformed);
}

#[test]
fn null_in_a_batch_is_the_one_that_is_missing() {
    let mut sent = Sent::new("users", br#"[{"id":"1"},null,{"id":"3"}]"#);
    sent.ids = &["1", "2", "3"];
    let reading = sent.read();
    let absent = (
        Key(2),
        OutcomeCode::NotFound,
        "absent from batch".to_owned(),
    );
    assert_eq!(reading.subject_outcomes, [absent]);
    assert_eq!((reading.items, reading.mended), (2, 0));
}

#[test]
fn what_is_read_by_no_rule_is_found_in_maps_and_in_xml() {
    let unmapped =
        |query: &str, answer| NETWORK.unmapped_answer(NETWORK.query(query).unwrap(), &answer);
    let answer =
        json!({"users": {"a": {"id": "1", "odd": 1}, "b": {"friends": {"c": {"even": 2}}}}});
    assert_eq!(
        unmapped("known", answer),
        [".users{}.friends{}.even", ".users{}.odd"]
    );
    let answer = json!({"rss": {"channel": {"title": "x", "item": {"guid": "1", "odd": "2"}}}});
    assert_eq!(
        unmapped("any", answer),
        [".rss.channel.item[].odd", ".rss.channel.title"]
    );
}

#[test]
fn mistakes_in_the_new_keys_are_reported() {
    for (from, to, message) in [
        ("decode = \"xml\"", "decode = \"yaml\"", "json, xml, any"),
        (
            "alias = \"short\"",
            "alias = \"shorter\"",
            "the alias of `post`",
        ),
        (", shift_bits = 22", "", "shift_bits = 22"),
        ("shift_bits = 22", "shift_bits = 64", "from 1 to 63"),
        (
            "epoch_ms = 1288834974657",
            "epoch_ms = -1",
            "a whole number from 0",
        ),
        (
            "format = \"snowflake\"",
            "format = \"tid\"",
            "for snowflakes only",
        ),
        (
            "\"rfc2822\", \"iso8601\"",
            "\"rfc2822\", \"soon\"",
            "`soon` is no format",
        ),
        (".users{}", ".users{}.x", "is no plain path"),
        (".id // $key", "$key // .id", "variable $key"),
        ("\".title\"", "\".titles{}\"", "stands for many values"),
        (
            "display_name = \".title\"",
            "display_name = { path = \".x\", epoch_ms = 1 }",
            "for times only",
        ),
    ] {
        assert!(DEFINITION.contains(from), "{from}");
        let text = DEFINITION.replacen(from, to, 1);
        let errors = Network::parse("birds.toml", &text).unwrap_err().to_string();
        assert!(errors.contains(message), "{to}: {errors}");
    }
}

fn user() -> impl Strategy<Value = serde_json::Value> {
    ("[a-z]{1,3}", prop::option::of("[A-Za-zé]{0,5}"), any::<u32>()).prop_map(|(id, title, followers)| {
        json!({"id": id, "title": title, "name": "N", "followers": followers, "friends": {"f": {"title": "x"}}})
    })
}

proptest! {
    #[test]
    fn a_map_is_read_as_the_list_of_its_values(users in prop::collection::vec(user(), 0..6)) {
        let map: serde_json::Map<String, serde_json::Value> =
            (0..).map(|place| format!("key{place}")).zip(users.clone()).collect();
        let (map, list) = (json!(map).to_string(), json!(users).to_string());
        let from_map = read("map", &map);
        let mut sent = Sent::new("users", list.as_bytes());
        sent.ids = &[];
        let from_list = sent.read();
        prop_assert_eq!(from_map.objects, from_list.objects);
        prop_assert_eq!(from_map.links, from_list.links);
        prop_assert_eq!((from_map.items, from_map.mended), (from_list.items, from_list.mended));
    }

    #[test]
    fn any_bytes_are_survived(
        body in prop::collection::vec(any::<u8>(), 0..200),
        start in prop::sample::select(vec!["", "<", "<rss>", "<?xml encoding='shift_jis'?><rss>", "{\"users\":{", "[1,"]),
        label in prop::sample::select(vec!["utf-8", "utf-16le", "big5", "iso-2022-jp", "x"]),
    ) {
        let whole = [start.as_bytes(), &body].concat();
        let content_type = format!("text/xml; charset={label}");
        for query in ["rss", "any", "known", "map", "top", "user", "users", "submitted"] {
            let mut sent = Sent::new(query, &whole);
            sent.read();
            sent.content_type = Some(&content_type);
            sent.read();
        }
    }

    #[test]
    fn any_change_to_a_feed_is_survived(place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut body = RSS.as_bytes().to_vec();
        let place = place.index(body.len());
        body[place] = byte;
        let reading = Sent::new("rss", &body).read();
        let is_whole = reading.outcome != OutcomeCode::Malformed;
        prop_assert!(is_whole || reading.objects.is_empty());
    }
}
