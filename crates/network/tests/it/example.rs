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
    assert_eq!(plan.costs.len(), 1);
    assert!(!network.needs_host());
}

#[test]
fn a_batch_is_asked_by_canonical_ids_and_tells_who_is_absent() {
    let network = example();
    let base = network.base("").unwrap();
    let query = network.query("users").unwrap();
    let named = |id: &str| Identity {
        canonical: Some(id.to_owned()),
        ..subject()
    };
    let (ann, bob) = (named("u1"), named("u2"));
    let plan = network
        .request(&Ask {
            query,
            base: &base,
            host: "gulls.example",
            subjects: &[&ann, &bob],
            page: Page::First,
            authenticated: false,
        })
        .unwrap();
    assert_eq!(plan.target, "/v2/users?ids=u1%2Cu2");
    let reading = network.read(&Answer {
        query,
        base: &base,
        host: "gulls.example",
        subjects: &[(Key(1), &ann), (Key(2), &bob)],
        page: Page::First,
        url: &plan.url,
        status: 200,
        header: &|_| None,
        body: br#"{"users":[{"id":"u2","name":"Bob"}]}"#,
        walk: None,
    });
    assert_eq!(reading.objects[0].known_as, Some(Key(2)));
    let absent = (
        Key(1),
        OutcomeCode::NotFound,
        "absent from batch".to_owned(),
    );
    assert_eq!(reading.subject_outcomes, [absent]);
}

#[test]
fn a_type_that_only_a_seed_names_needs_no_paths() {
    let network = example();
    let topic = network.seed("topic: Gulls & terns ", "").unwrap();
    assert_eq!(topic.canonical.as_deref(), Some("Gulls & terns"));
    let base = network.base("").unwrap();
    let query = network.query("topic").unwrap();
    let plan = network
        .request(&Ask {
            query,
            base: &base,
            host: "gulls.example",
            subjects: &[&topic],
            page: Page::First,
            authenticated: false,
        })
        .unwrap();
    assert_eq!(plan.target, "/v2/topics?title=Gulls+%26+terns");
    let handle = network.seed("@Ann", "").unwrap();
    assert_eq!(handle.alias("handle", ""), Some("ann"));
}

#[test]
fn what_no_rule_reads_around_the_selects_is_found() {
    let network = example();
    let query = network.query("posts").unwrap();
    let answer = serde_json::json!({
        "took_ms": 3,
        "page": {"number": 1},
        "posts": [{"id": "p1", "mood": 1}],
        "authors": [{"id": "u1", "is_followed": true}, {"id": "u2", "shoes": []}],
    });
    assert_eq!(
        network.unmapped_answer(query, &answer),
        [".authors[].shoes", ".page.number", ".posts[].mood"]
    );
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
    assert_eq!(parent.canonical.as_deref(), Some("17"));
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
    let reading = read(&network, "user_by_name", 200, r#"{"user": {"id": "u/1"}}"#);
    assert_eq!(reading.objects[0].known_as, Some(Key(5)));
    // Whoever is described, it is not the one who was asked for.
    let reading = read(&network, "user_by_name", 200, r#"{"user": {"id": "u/2"}}"#);
    assert_eq!(reading.objects[0].known_as, None);
    assert_eq!(reading.subject_outcomes[0].1, OutcomeCode::Malformed);
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
