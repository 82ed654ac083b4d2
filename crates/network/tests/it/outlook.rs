//! What is told of calls before they are made agrees with the calls themselves.

use crate::support::root;
use kittiwake_model::{Alias, Identity};
use kittiwake_network::{Ask, Length, Network, Page, PagePlace};

fn mastodon() -> Network {
    let text = std::fs::read_to_string(root().join("networks/mastodon.toml")).unwrap();
    Network::parse("mastodon.toml", &text).unwrap()
}

#[test]
fn the_length_of_a_list_is_known_by_a_count_of_its_subject() {
    let network = mastodon();
    for (query, length) in [
        ("following", Some(Length::Following)),
        ("followers", Some(Length::Followers)),
        ("timeline", Some(Length::Posts)),
        ("reblogged_by", Some(Length::Reposts)),
        ("favourited_by", Some(Length::Likes)),
        ("hashtag", None),
        ("profiles", None),
        ("context", None),
    ] {
        let known = network.query(query).unwrap();
        assert_eq!(network.length_of(known), length, "{query}");
    }
}

#[test]
fn costs_are_those_of_the_request() {
    let network = mastodon();
    let base = network.base("sea.example").unwrap();
    let alias = |name: &str, host: &str| Alias {
        name: name.into(),
        id: "7".into(),
        host: host.into(),
        movable: false,
    };
    let subject = Identity {
        network: "mastodon".into(),
        kind: "user".into(),
        canonical: Some("u".into()),
        aliases: vec![alias("id", "sea.example"), alias("handle", "")],
    };
    for query in network.queries() {
        let places = [
            (PagePlace::First, Page::First),
            (PagePlace::Since, Page::Since("5")),
            (PagePlace::Further, Page::Next("max_id=5")),
        ];
        for ((place, page), authenticated) in
            places.into_iter().flat_map(|it| [(it, true), (it, false)])
        {
            let asked = network.request(&Ask {
                query,
                base: &base,
                host: "sea.example",
                subjects: &[&subject],
                page,
                authenticated,
            });
            // Not every query has pages or marks.
            let Ok(plan) = asked else { continue };
            let told = network.costs_of(query, place, authenticated, 1);
            assert_eq!(told, plan.costs, "{} {place:?}", query.name);
        }
    }
}
