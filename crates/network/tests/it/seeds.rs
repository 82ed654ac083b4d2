//! Where a crawl begins: tags, words and posts, and texts that name nothing.

use crate::support::{HOST, mastodon};
use kittiwake_model::Identity;
use kittiwake_network::{Ask, Network, Page, SeedError};

fn seed(network: &Network, text: &str) -> Identity {
    network
        .seed(text, HOST)
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_tag_is_known_by_its_name_in_lower_case() {
    let network = mastodon();
    for (text, name) in [
        ("#Birds", "birds"),
        ("tag:Birds", "birds"),
        ("TAG:birds", "birds"),
        ("#Птицы", "птицы"),
        ("tag:#Birds", ""),
        ("#ÄRZTE", "ärzte"),
        ("#search:x", "search:x"),
    ] {
        if name.is_empty() {
            assert!(network.seed(text, HOST).is_err(), "{text}");
            continue;
        }
        let identity = seed(&network, text);
        assert_eq!(&*identity.kind, "tag");
        assert_eq!(identity.canonical.as_deref(), Some(name), "{text}");
        assert!(identity.aliases.is_empty());
    }
}

#[test]
fn a_search_keeps_its_words_as_they_are_written() {
    let network = mastodon();
    for (text, words) in [
        ("search:grey  gulls & terns", "grey  gulls & terns"),
        ("search: grey ", "grey"),
        (
            "search:https://sea.example/@ann?a=1#b",
            "https://sea.example/@ann?a=1#b",
        ),
        ("search:tag:birds", "tag:birds"),
        ("search:{words}", "{words}"),
    ] {
        let identity = seed(&network, text);
        assert_eq!(&*identity.kind, "search");
        assert_eq!(identity.canonical.as_deref(), Some(words), "{text}");
        assert!(identity.aliases.is_empty());
    }
    let identity = seed(&network, "search:grey  gulls & terns");
    let plan = network
        .request(&Ask {
            query: network.query("search").unwrap(),
            base: &network.base(HOST).unwrap(),
            host: HOST,
            subjects: &[&identity],
            page: Page::First,
            authenticated: false,
        })
        .unwrap();
    assert_eq!(
        plan.target,
        "/api/v2/search?q=grey++gulls+%26+terns&limit=40"
    );
}

#[test]
fn a_post_is_named_by_its_id_on_the_host() {
    let network = mastodon();
    let identity = seed(&network, "status:12");
    assert_eq!(&*identity.kind, "status");
    assert_eq!(identity.canonical, None);
    assert_eq!(identity.alias("id", HOST), Some("12"));
    assert_eq!(identity.alias("id", "sky.example"), None);
}

#[test]
fn a_text_that_begins_like_a_pattern_is_nothing_else() {
    let network = mastodon();
    for text in [
        "search:",
        "search:   ",
        "SEARCH:",
        "tag:",
        "tag:a b",
        "tag:a/b",
        "id:",
        "id:a b",
        "status:",
        "status:1/2",
        "status:@ann",
    ] {
        let error = network.seed(text, HOST).unwrap_err();
        assert!(matches!(error, SeedError::Unknown { .. }), "{text:?}");
        assert!(error.to_string().contains("search:{words:any}"), "{error}");
    }
}

#[test]
fn hostile_seeds_are_refused_in_few_words() {
    let network = mastodon();
    let long = "x".repeat(10_000);
    for text in [
        String::new(),
        "   ".to_owned(),
        "#".to_owned(),
        "#a/b".to_owned(),
        "#a#b".to_owned(),
        "#../../admin?x".to_owned(),
        "#a\u{0}b".to_owned(),
        "tag:\u{7}".to_owned(),
        "search:a\nb".to_owned(),
        "search:\u{0}".to_owned(),
        "status:1\u{1b}[2J".to_owned(),
        format!("#{long}"),
        format!("search:{long}"),
        format!("status:{long}"),
        format!("@{long}"),
    ] {
        let error = network.seed(&text, HOST).unwrap_err().to_string();
        assert!(error.len() < 1_000, "{}", error.len());
        assert!(!error.contains(char::is_control), "{error:?}");
    }
}

#[test]
fn a_handle_needs_a_host_and_a_tag_does_not() {
    let network = mastodon();
    let needs_host = network.seed("@ann", "");
    assert!(matches!(needs_host, Err(SeedError::NeedsHost { .. })));
    assert!(network.seed("#birds", "").is_ok());
    assert!(network.seed("search:birds", "").is_ok());
}

#[test]
fn a_word_and_a_colon_can_be_followed_by_different_patterns() {
    let text = include_str!("../../../../networks/bluesky.toml");
    let network = kittiwake_network::Network::parse("bluesky.toml", text).unwrap();
    for (seed, id) in [
        ("pds:pds.example", Some("https://pds.example")),
        (
            "PDS:https://pds.example:8443",
            Some("https://pds.example:8443"),
        ),
        ("pds:http://localhost:2583", Some("http://localhost:2583")),
        ("pds:", None),
        ("did:plc:abc", Some("did:plc:abc")),
    ] {
        let found = network.seed(seed, "public.api.bsky.app").ok();
        let found = found.and_then(|identity| identity.canonical);
        assert_eq!(found.as_deref(), id, "{seed}");
    }
}
