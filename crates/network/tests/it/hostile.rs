//! What servers may send: never a panic, always an outcome, and one bad value spoils itself only.

use crate::support::{HOST, Sent, field, mastodon};
use kittiwake_model::clock::{EARLIEST_US, LATEST_US};
use kittiwake_model::{OutcomeCode, Value};
use kittiwake_network::{Network, Page};
use proptest::prelude::*;
use std::sync::LazyLock;

static NETWORK: LazyLock<Network> = LazyLock::new(mastodon);

fn timeline(body: &[u8]) -> kittiwake_network::Reading {
    Sent::ok("timeline", body).read(&NETWORK)
}

fn post(extra: &str) -> String {
    format!(r#"{{"id":"1","uri":"https://sea.example/1"{extra}}}"#)
}

#[test]
fn what_is_no_json_is_malformed_and_says_why() {
    for (body, reason) in [
        (
            "<!DOCTYPE html><html><body>busy</body></html>",
            "html instead of json",
        ),
        ("  \n<html>", "html instead of json"),
        ("", "empty body"),
        ("   ", "empty body"),
        ("[{\"id\":\"1\"", "json ends too early"),
        ("[{\"id\":\"1\"}] x", "no json at line 1 column"),
        ("upstream connect error", "no json at line 1 column 1"),
        ("{\"error\":\"busy\"}", "no list where one is expected"),
        ("3", "no list where one is expected"),
        ("null", "no list where one is expected"),
        ("\"text\"", "no list where one is expected"),
    ] {
        let reading = timeline(body.as_bytes());
        assert_eq!(reading.outcome, OutcomeCode::Malformed, "{body}");
        assert!(
            reading.reason.starts_with(reason),
            "{body}: {}",
            reading.reason
        );
        assert!(reading.objects.is_empty());
    }
    let reading = Sent::ok("profile", b"[]").read(&NETWORK);
    assert_eq!(reading.outcome, OutcomeCode::Malformed);
    let reading = Sent::ok("profile", b"null").read(&NETWORK);
    assert_eq!(reading.subject_outcomes[0].1, OutcomeCode::NotFound);
}

#[test]
fn one_bad_item_does_not_lose_the_others() {
    let bad = [
        "3",
        "true",
        "\"x\"",
        "[]",
        "[[{}]]",
        "{}",
        "1e400",
        "-1e999999999",
        r#"{"id":null}"#,
        r#"{"id":"a\u0000b"}"#,
        r#"{"id":["1"]}"#,
        r#"{"id":"\ud800"}"#,
        r#"{"id":1.5}"#,
        r#"{"id":"\n"}"#,
        r#"{"id":"","uri":""}"#,
    ];
    for item in bad {
        let body = format!("[{},{item},{}]", post(""), post(r#","content":"x""#));
        let reading = timeline(body.as_bytes());
        assert_eq!(
            reading.outcome,
            OutcomeCode::Ok,
            "{item}: {}",
            reading.reason
        );
        assert_eq!(reading.items, 2, "{item}");
        assert!(reading.mended >= 1, "{item}");
    }
    // A null says that somebody is gone; nothing is lost with it.
    let body = format!("[{},null,{}]", post(""), post(""));
    let reading = timeline(body.as_bytes());
    assert_eq!((reading.items, reading.mended), (2, 0));
}

#[test]
fn values_of_the_wrong_kind_are_dropped_and_counted() {
    let keys = [
        "content",
        "created_at",
        "sensitive",
        "replies_count",
        "account",
        "reblog",
        "tags",
        "mentions",
        "application",
        "in_reply_to_id",
        "quote",
        "visibility",
        "language",
    ];
    for key in keys {
        for value in [
            "[1]",
            "{\"x\":{}}",
            "1e400",
            "-0.5",
            "true",
            "[[]]",
            "[null]",
            "[3]",
        ] {
            let body = format!("[{}]", post(&format!(",\"{key}\":{value}")));
            let reading = timeline(body.as_bytes());
            assert_eq!(reading.outcome, OutcomeCode::Ok, "{key} {value}");
            assert_eq!(reading.items, 1, "{key} {value}");
        }
    }
    let body = format!(
        "[{}]",
        post(r#","replies_count":"12","sensitive":"no","created_at":"soon","language":{}"#)
    );
    let reading = timeline(body.as_bytes());
    assert_eq!(reading.mended, 4);
    for name in ["replies_count", "is_sensitive", "created_us", "language"] {
        assert_eq!(field(&reading.objects[0], name), None, "{name}");
    }
}

#[test]
fn null_is_observed_empty_and_a_missing_key_is_not_observed() {
    let body = format!("[{}]", post(r#","language":null,"application":null"#));
    let reading = timeline(body.as_bytes());
    let object = &reading.objects[0];
    assert_eq!(field(object, "language"), Some(&Value::Null));
    assert_eq!(field(object, "source"), Some(&Value::Null));
    assert_eq!(field(object, "visibility"), None);
    assert_eq!(reading.mended, 0);
}

#[test]
fn broken_text_is_mended_and_counted() {
    let body = format!(
        "[{}]",
        post(r#","content":"a\ud800b\u0000c 🐦","language":"\u0065n""#)
    );
    let reading = timeline(body.as_bytes());
    assert_eq!(
        field(&reading.objects[0], "html"),
        Some(&Value::Text("a\u{FFFD}b\u{FFFD}c 🐦".into()))
    );
    assert_eq!(
        field(&reading.objects[0], "language"),
        Some(&Value::Text("en".into()))
    );
    assert!(reading.mended >= 2);
    let mut bytes = format!("[{}]", post(r#","content":"caf?""#)).into_bytes();
    let place = bytes.iter().position(|byte| *byte == b'?').unwrap();
    bytes[place] = 0xE9;
    let reading = timeline(&bytes);
    assert_eq!(
        field(&reading.objects[0], "html"),
        Some(&Value::Text("caf\u{FFFD}".into()))
    );
    assert_eq!(reading.mended, 1);
}

#[test]
fn ids_keep_quotes_emoji_and_every_digit() {
    let body = r#"[{"id":1234567890123456789012345,"uri":"o'brien\"🐦;--"}]"#;
    let reading = timeline(body.as_bytes());
    let identity = &reading.objects[0].identity;
    assert_eq!(
        identity.alias("id", HOST),
        Some("1234567890123456789012345")
    );
    assert_eq!(identity.canonical.as_deref(), Some("o'brien\"🐦;--"));
    assert_eq!(reading.mended, 0);
}

#[test]
fn dates_out_of_range_are_clamped_with_a_flag() {
    for (text, at_us, clamped) in [
        ("9999-12-31T23:59:59.999Z", LATEST_US, true),
        ("12345-01-01T00:00:00Z", LATEST_US, true),
        ("-0100-01-01T00:00:00Z", EARLIEST_US, true),
        ("1970-01-01T00:00:01Z", 1_000_000, false),
    ] {
        let body = format!("[{}]", post(&format!(",\"created_at\":\"{text}\"")));
        let reading = timeline(body.as_bytes());
        assert_eq!(
            field(&reading.objects[0], "created_us"),
            Some(&Value::Time { at_us, clamped }),
            "{text}"
        );
        assert_eq!(reading.mended, u32::from(clamped));
    }
}

#[test]
fn nesting_is_bounded_wherever_it_stands() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for key in [
        "unknown",
        "media_attachments",
        "account",
        "content",
        "tags",
        "poll",
    ] {
        let body = format!("[{}]", post(&format!(",\"{key}\":{deep}")));
        let reading = timeline(body.as_bytes());
        assert_eq!(
            (reading.outcome, reading.items),
            (OutcomeCode::Ok, 1),
            "{key}"
        );
    }
    let reading = timeline(deep.as_bytes());
    assert_eq!(reading.items, 0);
    let reading = timeline("[{\"a\":".repeat(100_000).as_bytes());
    assert_eq!(reading.outcome, OutcomeCode::Malformed);
    // Reposts of reposts without end.
    let mut nested = post("");
    for level in 0..300 {
        nested =
            format!(r#"{{"id":"{level}","uri":"https://sea.example/{level}","reblog":{nested}}}"#);
    }
    let reading = timeline(format!("[{nested}]").as_bytes());
    assert_eq!(reading.outcome, OutcomeCode::Ok);
    assert_eq!(reading.objects.len(), 5);
    assert!(reading.mended >= 1);
}

#[test]
fn the_objects_of_one_answer_are_bounded() {
    let items: Vec<String> = (0..25_000).map(|id| format!(r#"{{"id":{id}}}"#)).collect();
    let reading = timeline(format!("[{}]", items.join(",")).as_bytes());
    assert_eq!(reading.outcome, OutcomeCode::TooMuchData);
    assert_eq!(reading.objects.len(), 20_000);
    let tags = r#"{"name":"a"},"#.repeat(200_000);
    let body = format!(
        "[{}]",
        post(&format!(",\"tags\":[{}]", tags.trim_end_matches(',')))
    );
    let reading = timeline(body.as_bytes());
    assert!(reading.links.len() <= 100_000 && reading.objects.len() <= 20_000);
}

#[test]
fn of_repeated_keys_the_last_counts() {
    let body =
        r#"[{"id":"1","uri":"https://a/1","language":"en","language":"de","uri":"https://a/2"}]"#;
    let reading = timeline(body.as_bytes());
    assert_eq!(
        field(&reading.objects[0], "language"),
        Some(&Value::Text("de".into()))
    );
    assert_eq!(
        reading.objects[0].identity.canonical.as_deref(),
        Some("https://a/2")
    );
}

#[test]
fn link_headers_full_of_garbage_are_survived() {
    let body = format!("[{}]", post(""));
    let many = "<https://x/>; rel=\"up\", ".repeat(10_000);
    let long = format!(
        "<https://sea.example/api/v1/accounts/7/statuses?max_id={}>; rel=next",
        "9".repeat(9_000)
    );
    for link in [
        "",
        "<",
        ">;<>;rel=next",
        ";;;,,,",
        many.as_str(),
        long.as_str(),
        "\u{0}<\u{0}>;rel=next",
    ] {
        let mut sent = Sent::ok("timeline", body.as_bytes());
        sent.link = Some(link);
        let reading = sent.read(&NETWORK);
        assert_eq!(reading.next, None);
        assert_eq!(reading.items, 1);
    }
}

#[test]
fn every_truncation_of_a_page_is_malformed() {
    let account =
        r#"{"id":"7","acct":"ann","uri":"https://sea.example/users/ann","note":"<p>é&amp;"}"#;
    let page = format!(
        "[{},{}]",
        post(&format!(",\"account\":{account}")),
        post(r#","tags":[{"name":"a"}]"#)
    );
    for end in 0..page.len() {
        let reading = timeline(&page.as_bytes()[..end]);
        assert_eq!(reading.outcome, OutcomeCode::Malformed, "{end}");
        assert!(reading.objects.is_empty());
    }
    assert_eq!(timeline(page.as_bytes()).items, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_bytes_are_survived(body in prop::collection::vec(any::<u8>(), 0..200), status in 100_u16..600) {
        for query in ["timeline", "profile", "profiles", "followers", "context", "search", "instance", "hashtag"] {
            let mut sent = Sent::ok(query, &body);
            sent.status = status;
            sent.read(&NETWORK);
        }
    }

    #[test]
    fn any_json_like_text_is_survived(body in "[\\[\\]{}:,\"\\\\ua-e0-9.\\-]{0,120}") {
        timeline(body.as_bytes());
    }

    #[test]
    fn any_change_to_a_page_is_survived(place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut page = format!("[{}]", post(r#","account":{"id":"7","acct":"a"},"tags":[{"name":"Ab"}],"created_at":"2026-01-01T00:00:00Z""#)).into_bytes();
        let place = place.index(page.len());
        page[place] = byte;
        timeline(&page);
    }

    #[test]
    fn any_link_header_and_token_is_survived(link in any::<String>(), token in any::<String>()) {
        let mut sent = Sent::ok("timeline", b"[]");
        sent.link = Some(&link);
        sent.read(&NETWORK);
        let query = NETWORK.query("timeline").unwrap();
        let identity = crate::support::subject("user", "7");
        let ask = kittiwake_network::Ask {
            query,
            base: &crate::support::base(),
            host: HOST,
            subjects: &[&identity],
            page: Page::Next(&token),
            authenticated: false,
        };
        if let Ok(plan) = NETWORK.request(&ask) {
            prop_assert_eq!(plan.url.host_str(), Some(HOST));
            prop_assert_eq!(plan.url.path(), "/api/v1/accounts/7/statuses");
        }
    }

    #[test]
    fn any_seed_is_survived(text in any::<String>(), host in any::<String>()) {
        let _ = NETWORK.seed(&text, &host);
        let _ = NETWORK.base(&host);
    }
}
