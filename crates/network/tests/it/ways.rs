//! Values that are written in one way or another, and what one value is where XML has elements.

use crate::support::field;
use kittiwake_model::{Identity, Key, OutcomeCode, Value};
use kittiwake_network::{Answer, Network, Page, Reading};

const DEFINITION: &str = r#"
format = 1
name = "notes"
verified_on = "2026-11-17"
host = { kind = "fixed", address = "https://notes.example" }

[types.note]
table = "statuses"
canonical = ".id // .link"
aliases = { number = ".number" }

[types.note.fields.content]
text = [{ path = ".html", kind = "html" }, { path = ".plain // .title" }]
created_us = [{ path = ".at", format = "rfc2822" }, { path = ".epoch", format = "epoch_s" }]
likes_count = ".likes"
media = ".media"

[queries.note]
subject = "note"
path = "/{canonical}"
decode = "any"

[[queries.note.selects]]
at = ".note"
as = "note"
is_subject = true
"#;

fn read(body: &str) -> Reading {
    let network = Network::parse("notes.toml", DEFINITION).unwrap_or_else(|it| panic!("{it}"));
    let base = network.base("").unwrap();
    let identity = Identity {
        network: "notes".into(),
        kind: "note".into(),
        canonical: Some("1".into()),
        aliases: Vec::new(),
    };
    network.read(&Answer {
        query: network.query("note").unwrap(),
        base: &base,
        host: "notes.example",
        subjects: &[(Key(1), &identity)],
        page: Page::First,
        url: &base,
        status: 200,
        header: &|_| None,
        body: body.as_bytes(),
        walk: None,
    })
}

fn told(reading: &Reading, name: &str) -> Option<Value> {
    field(&reading.objects[0], name).cloned()
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

#[test]
fn a_value_is_read_in_the_first_way_that_holds_something() {
    for (members, expected, mended) in [
        (
            r#""html": "<p>A &amp; b", "plain": "<c>""#,
            Some(text("A & b")),
            0,
        ),
        (
            r#""plain": "1 < 2 &amp;\n3""#,
            Some(text("1 < 2 &amp;\n3")),
            0,
        ),
        (r#""html": null, "title": "T""#, Some(text("T")), 0),
        (r#""html": null"#, Some(Value::Null), 0),
        (r#""other": 1"#, None, 0),
        // Whatever cannot be read is no reason to take what stands for something else.
        (r#""html": [1], "plain": "p""#, None, 1),
    ] {
        let reading = read(&format!(r#"{{"note": {{"id": "1", {members}}}}}"#));
        assert_eq!(told(&reading, "text"), expected, "{members}");
        assert_eq!(reading.mended, mended, "{members}");
    }
    let reading = read(r#"{"note": {"id": "1", "epoch": 5}}"#);
    let at_us = 5_000_000;
    let clamped = false;
    assert_eq!(
        told(&reading, "created_us"),
        Some(Value::Time { at_us, clamped })
    );
}

#[test]
fn one_value_of_an_element_is_its_text() {
    let reading = read(
        "<note><id kind='x'>1</id><number n='1'>7</number><html class='y'>&lt;b&gt;z&lt;/b&gt;</html>\
         <at zone='?'>Fri, 13 Nov 2026 08:30:00 GMT</at><likes of='all'>3</likes>\
         <media u='a'>words</media></note>",
    );
    assert_eq!((reading.outcome, reading.mended), (OutcomeCode::Ok, 0));
    let identity = &reading.objects[0].identity;
    assert_eq!(identity.canonical.as_deref(), Some("1"));
    assert_eq!(identity.aliases[0].id, "7");
    assert_eq!(told(&reading, "text"), Some(text("z")));
    assert_eq!(told(&reading, "likes_count"), Some(Value::Int(3)));
    // What is kept whole is whole.
    let whole = Value::Json(r##"{"@u":"a","#text":"words"}"##.into());
    assert_eq!(told(&reading, "media"), Some(whole));
    assert!(matches!(
        told(&reading, "created_us"),
        Some(Value::Time { .. })
    ));
}

#[test]
fn of_several_elements_the_first_with_text_counts_and_one_without_is_nothing() {
    let reading = read(
        "<note><id kind='x'/><link rel='self' href='s'/><link>1</link><link>2</link>\
         <html class='y'/><plain/><title>T</title></note>",
    );
    assert_eq!((reading.outcome, reading.mended), (OutcomeCode::Ok, 0));
    assert_eq!(reading.objects[0].identity.canonical.as_deref(), Some("1"));
    assert_eq!(told(&reading, "text"), Some(text("T")));
    // In JSON an object is no text.
    let reading = read(r##"{"note": {"id": "1", "plain": {"#text": "x"}}}"##);
    assert_eq!((told(&reading, "text"), reading.mended), (None, 1));
}

#[test]
fn ways_are_to_values_or_to_objects() {
    let wrong = DEFINITION.replace(
        r#"{ path = ".plain // .title" }"#,
        r#"{ path = ".plain", type = "note", alias = "canonical" }"#,
    );
    let errors = Network::parse("notes.toml", &wrong)
        .unwrap_err()
        .to_string();
    assert!(
        errors.contains("`kind` has no meaning beside `type`"),
        "{errors}"
    );
}
