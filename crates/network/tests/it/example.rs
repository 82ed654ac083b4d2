//! What the shipped definition has no use for, with the documentation's example: expressions,
//! several selects, places deep in an answer, bodies that tell what an error is.

use crate::support::{field, root};
use kittiwake_model::{Identity, Key, OutcomeCode, Reference, Standing, Value};
use kittiwake_network::{Answer, Ask, Network, Page, Reading};

fn example() -> Network {
    let document = std::fs::read_to_string(root().join("docs/definition-format.md")).unwrap();
    let example = document.split("```toml\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    Network::parse("example.toml", example).unwrap()
}

fn read(network: &Network, query: &str, status: u16, body: &str) -> Reading {
    let subject = subject();
    let base = network.base("").unwrap();
    network.read(&Answer {
        query: network.query(query).unwrap(),
        base: &base,
        host: "gulls.example",
        subjects: &[(Key(5), &subject)],
        page: Page::First,
        url: &base,
        status,
        header: &|_| None,
        body: body.as_bytes(),
        walk: None,
    })
}

fn subject() -> Identity {
    Identity {
        network: "gulls".into(),
        kind: "user".into(),
        canonical: Some("u/1".into()),
        aliases: Vec::new(),
    }
}

#[test]
fn a_network_is_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    shared(&example());
}

#[test]
fn a_fixed_address_keeps_its_path() {
    let network = example();
    let base = network.base("").unwrap();
    let subject = subject();
    let plan = network
        .request(&Ask {
            query: network.query("followers").unwrap(),
            base: &base,
            host: "",
            subjects: &[&subject],
            page: Page::First,
            authenticated: true,
        })
        .unwrap();
    assert_eq!(
        plan.url.as_str(),
        "https://api.gulls.example/v2/users/u%2F1/followers?count=100"
    );
    assert_eq!(plan.budgets.len(), 1);
    assert!(!network.needs_host());
}

#[test]
fn several_selects_and_expressions_are_read() {
    let network = example();
    let body = r#"{
        "posts": [
            {"id": 9007199254740993, "by": {"id": "u1", "name": "Ann"}, "text": "hi", "at": 1700000000123,
             "parent_id": 17, "words": [{"kind": "word", "text": "a"}, {"kind": "mark"}, {"kind": "word", "text": "b"}],
             "liked_by": [{"id": "u2", "name": "Bob"}]},
            {"id": "p2", "words": [{"kind": "word", "text": 3}]}
        ],
        "authors": [{"id": "u3", "name": "Eve", "status": "banned"}, {"id": "u4", "name": "Dan", "status": "ok"}]
    }"#;
    let reading = read(&network, "posts", 200, body);
    assert_eq!(reading.outcome, OutcomeCode::Ok, "{}", reading.reason);
    assert_eq!(reading.items, 4);
    let post = reading
        .objects
        .iter()
        .find(|object| object.identity.canonical.as_deref() == Some("9007199254740993"))
        .unwrap();
    assert_eq!(field(post, "words"), Some(&Value::Text("a b".into())));
    let at_us = 1_700_000_000_123_000;
    assert_eq!(
        field(post, "created_us"),
        Some(&Value::Time {
            at_us,
            clamped: false
        })
    );
    let Some(Value::Object(Reference::Identity(parent))) = field(post, "reply_to") else {
        panic!("{post:?}")
    };
    assert_eq!(parent.alias("number", ""), Some("17"));
    assert_eq!(reading.links.len(), 1);
    let standings: Vec<Standing> = reading
        .objects
        .iter()
        .map(|object| object.standing)
        .collect();
    let banned = Standing::Invalid(OutcomeCode::Suspended);
    assert_eq!(
        standings
            .iter()
            .filter(|standing| **standing == banned)
            .count(),
        1
    );
    assert_eq!(reading.newest.as_deref(), Some("9007199254740993"));
}

#[test]
fn a_missing_subject_is_told_from_an_answer_of_another_kind() {
    let network = example();
    let reading = read(&network, "user_by_name", 200, r#"{"user": null}"#);
    assert_eq!(reading.subject_outcomes[0].1, OutcomeCode::NotFound);
    let reading = read(&network, "user_by_name", 200, r#"{"user": {"id": "u1"}}"#);
    assert_eq!(reading.objects[0].known_as, Some(Key(5)));
    for body in [
        r#"{"message": "busy"}"#,
        r#"{"user": 3}"#,
        "[]",
        r#"{"user": {}}"#,
    ] {
        let reading = read(&network, "user_by_name", 200, body);
        assert_eq!(reading.outcome, OutcomeCode::Malformed, "{body}");
    }
}

#[test]
fn bodies_tell_what_an_error_is() {
    let network = example();
    let reading = read(&network, "posts", 403, r#"{"error": {"code": 17}}"#);
    assert_eq!(reading.outcome, OutcomeCode::Protected);
    assert_eq!(reading.reason, "the account is private");
    for body in [
        r#"{"error": {"code": 18}}"#,
        "<html>",
        "",
        r#"{"error": "x"}"#,
    ] {
        assert_eq!(
            read(&network, "posts", 403, body).outcome,
            OutcomeCode::Forbidden,
            "{body}"
        );
    }
}
