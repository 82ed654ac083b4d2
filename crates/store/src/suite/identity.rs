//! Identity: canonical ids and stable aliases name one object, movable aliases only hint.

use super::Make;
use super::build::{
    With, at, card, commit, follows, id_of, key, link, number, object, of_kind, post, seed, select,
    unnamed, user,
};
use kittiwake_model::{Commit, Identity, Key, Object, Reference, Table};

async fn key_of_seed(store: &dyn super::Inspect, identity: &Identity) -> Key {
    let report = commit(
        store,
        Commit {
            discoveries: vec![seed(identity, 0)],
            ..at(50)
        },
    )
    .await;
    report.discovered[0]
}

pub async fn an_object_is_found_by_every_stable_id(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let whole = user("https://a/alice").local("1");
    let first = key_of_seed(&*store, &whole).await;
    for part in [
        user("https://a/alice"),
        unnamed("user").local("1"),
        user("https://a/alice").handle("new@a"),
    ] {
        assert_eq!(key_of_seed(&*store, &part).await, first, "{part:?}");
    }
    // The same local id of another type, another host, another network is another object.
    let mut elsewhere = unnamed("user").local("1");
    elsewhere.aliases[0].host = String::from("other.social");
    let mut other_network = whole.clone();
    other_network.network = "lemmy".into();
    for other in [
        unnamed("status").local("1"),
        elsewhere,
        other_network,
        of_kind("tag", "https://a/alice"),
    ] {
        assert_ne!(key_of_seed(&*store, &other).await, first, "{other:?}");
    }
}

pub async fn a_handle_moves_and_merges_nobody(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    for (at_us, canonical) in [(1, "old"), (2, "new"), (3, "old"), (4, "new")] {
        let report = commit(
            &*store,
            Commit {
                objects: vec![card(user(canonical).handle("alice@a"), canonical)],
                ..at(at_us)
            },
        )
        .await;
        assert_eq!(report.merged, vec![]);
    }
    assert_eq!(number(&*store, "SELECT count(*) FROM users").await, 2);
    let holders = select(
        &*store,
        &format!(
            "SELECT {}, first_seen_us, last_seen_us FROM ids WHERE alias = 'handle' ORDER BY 1",
            "(SELECT i.id FROM ids AS i WHERE i.key = ids.key AND i.alias = '')"
        ),
    )
    .await;
    let expected = [["new", "2", "4"], ["old", "1", "3"]];
    let expected: super::TextRows = expected
        .iter()
        .map(|row| row.iter().map(|cell| Some((*cell).to_owned())).collect())
        .collect();
    assert_eq!(holders, expected);
}

pub async fn a_seed_known_by_handle_only_is_found_through_it(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let bare = unnamed("user").handle("alice@a");
    let first = key_of_seed(&*store, &bare).await;
    assert_eq!(key_of_seed(&*store, &bare).await, first);
    assert_eq!(number(&*store, "SELECT count(*) FROM pending").await, 1);
    // Somebody's list shows the same handle with a canonical id: that proves nothing yet.
    let full = user("https://a/alice").handle("alice@a");
    let other = key(&*store, &full).await;
    assert_ne!(other, first);
    // The answer to the question for the seed proves it.
    let report = commit(
        &*store,
        Commit {
            objects: vec![Object {
                known_as: Some(first),
                ..card(full, "Alice")
            }],
            ..at(60)
        },
    )
    .await;
    assert_eq!(report.merged, vec![(other, first)]);
    assert_eq!(key_of_seed(&*store, &user("https://a/alice")).await, first);
    assert_eq!(number(&*store, "SELECT count(*) FROM pending").await, 0);
}

pub async fn the_newest_holder_of_a_handle_is_found(make: Make<'_>) {
    // Whatever the order in which the observations come in.
    for order in [[1, 2], [2, 1]] {
        let place = make();
        let store = place.open().unwrap();
        for at_us in order {
            let holder = if at_us == 1 { "first" } else { "second" };
            commit(
                &*store,
                Commit {
                    objects: vec![card(user(holder).handle("alice@a"), holder)],
                    ..at(at_us)
                },
            )
            .await;
        }
        let second = key(&*store, &user("second")).await;
        let found = key_of_seed(&*store, &unnamed("user").handle("alice@a")).await;
        assert_eq!(found, second);
        // Being asked about is no sign of life: the time of the last sight stays.
        assert_eq!(
            number(
                &*store,
                "SELECT max(last_seen_us) FROM ids WHERE alias = 'handle'"
            )
            .await,
            2
        );
    }
}

pub async fn a_handle_moves_to_and_fro_within_one_transaction(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let held_by = |at_us: i64, holder: &str| Commit {
        objects: vec![card(user(holder).handle("alice@a"), holder)],
        ..at(at_us)
    };
    store
        .commit(vec![
            held_by(2, "first"),
            held_by(3, "second"),
            held_by(4, "first"),
            held_by(1, "first"),
        ])
        .await
        .unwrap();
    let first = key(&*store, &user("first")).await;
    let found = key_of_seed(&*store, &unnamed("user").handle("alice@a")).await;
    assert_eq!(found, first);
    let seen = format!(
        "SELECT first_seen_us || ' ' || last_seen_us FROM ids WHERE alias = 'handle' AND key = {}",
        first.0
    );
    let rows = select(&*store, &seen).await;
    assert_eq!(rows, vec![vec![Some("1 4".to_owned())]]);
}

pub async fn an_id_that_is_told_twice_is_kept_once(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let twice = user("alice").local("1").local("1").handle("a@a");
    for identity in [twice.clone().handle("a@a"), twice.handle("b@a").local("1")] {
        commit(
            &*store,
            Commit {
                objects: vec![card(identity, "Alice")],
                ..at(5)
            },
        )
        .await;
    }
    // The canonical id, the local id and two handles.
    assert_eq!(number(&*store, "SELECT count(*) FROM ids").await, 4);
}

pub async fn what_is_only_named_is_pending_until_described(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let (alice, bob) = (user("alice"), user("bob"));
    commit(
        &*store,
        Commit {
            objects: vec![
                post(of_kind("status", "s1"), &alice, "hello"),
                card(bob.clone(), "Bob"),
            ],
            links: vec![follows(&alice, &bob)],
            ..at(5)
        },
    )
    .await;
    let pending = format!(
        "SELECT {}, first_seen_us FROM pending",
        id_of("pending.key")
    );
    let rows = select(&*store, &pending).await;
    assert_eq!(
        rows,
        vec![vec![Some("alice".to_owned()), Some("5".to_owned())]]
    );
    commit(
        &*store,
        Commit {
            objects: vec![card(alice, "Alice")],
            ..at(6)
        },
    )
    .await;
    assert!(select(&*store, &pending).await.is_empty());
}

pub async fn an_answer_under_another_type_merges_nobody(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = key(&*store, &user("alice")).await;
    let report = commit(
        &*store,
        Commit {
            objects: vec![
                Object {
                    known_as: Some(alice),
                    ..post(of_kind("status", "s1"), &user("alice"), "hello")
                },
                object(Table::Tags, of_kind("tag", "t"), vec![]),
            ],
            links: vec![kittiwake_model::Link {
                from: Reference::Object(0),
                to: Reference::Object(1),
                ..link("tag", &user("alice"), &user("alice"))
            }],
            ..at(5)
        },
    )
    .await;
    assert_eq!(report.merged, vec![]);
    assert_eq!(number(&*store, "SELECT count(*) FROM statuses").await, 1);
    assert_eq!(number(&*store, "SELECT count(*) FROM links").await, 1);
}
