//! Who and what is still there: spells of users, posts that were deleted.

use super::build::{
    at, card, cell, commit, key, number, of_kind, outcome, post, select, tell, user,
};
use super::{Inspect, Make};
use kittiwake_model::{Commit, Key, Object, OutcomeCode, Standing};

async fn show(store: &dyn Inspect, at_us: i64, standing: Standing) {
    commit(
        store,
        Commit {
            objects: vec![Object {
                standing,
                ..card(user("alice"), "Alice")
            }],
            ..at(at_us)
        },
    )
    .await;
}

/// What others tell of somebody fills gaps and gives way to the word of their own host, whichever came
/// first; it neither ends nor begins a spell, and is no version of anything.
pub async fn hearsay_gives_way_to_the_own_host_in_any_order(make: Make<'_>) {
    let told = |standing, at_us, name: &str| Commit {
        objects: vec![Object {
            standing,
            ..card(user("alice"), name)
        }],
        ..at(at_us)
    };
    let tales = [
        told(Standing::Hearsay, 50, "A tale"),
        told(Standing::Present, 20, "Alice"),
        told(Standing::Hearsay, 10, "An older tale"),
    ];
    let name = "SELECT display_name FROM users";
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let place = make();
        let store = place.open().unwrap();
        for tale in order {
            commit(&*store, tales[tale].clone()).await;
        }
        assert_eq!(
            cell(&*store, name).await.as_deref(),
            Some("Alice"),
            "{order:?}"
        );
        let versions = number(&*store, "SELECT count(*) FROM versions").await;
        assert_eq!(versions, 0, "{order:?}");
    }
    let place = make();
    let store = place.open().unwrap();
    commit(&*store, tales[2].clone()).await;
    commit(&*store, tales[0].clone()).await;
    assert_eq!(cell(&*store, name).await.as_deref(), Some("A tale"));
    let alice = key(&*store, &user("alice")).await;
    tell(&*store, 60, alice, OutcomeCode::Suspended).await;
    commit(&*store, told(Standing::Hearsay, 70, "Another tale")).await;
    let open = "SELECT count(*) FROM invalid_users WHERE until_us IS NULL";
    assert_eq!(number(&*store, open).await, 1);
}

pub async fn spells_open_and_close(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = key(&*store, &user("alice")).await;
    let sql = "SELECT reason, from_us, until_us FROM invalid_users ORDER BY from_us";
    let spells = |rows: &[(&str, &str, Option<&str>)]| -> super::TextRows {
        rows.iter()
            .map(|(reason, from, until)| {
                vec![
                    Some((*reason).to_owned()),
                    Some((*from).to_owned()),
                    until.map(str::to_owned),
                ]
            })
            .collect()
    };
    tell(&*store, 10, alice, OutcomeCode::Suspended).await;
    tell(&*store, 11, alice, OutcomeCode::Suspended).await;
    assert_eq!(
        select(&*store, sql).await,
        spells(&[("suspended", "10", None)])
    );
    // Neither protected nor a passing fault says anything about the spell.
    tell(&*store, 12, alice, OutcomeCode::Protected).await;
    tell(&*store, 13, alice, OutcomeCode::Transient).await;
    show(&*store, 20, Standing::Present).await;
    let first = ("suspended", "10", Some("20"));
    assert_eq!(select(&*store, sql).await, spells(&[first]));
    // Whoever is shown to hide something is there.
    show(&*store, 25, Standing::Invalid(OutcomeCode::Protected)).await;
    assert_eq!(select(&*store, sql).await, spells(&[first]));
    show(&*store, 30, Standing::Invalid(OutcomeCode::Deactivated)).await;
    assert_eq!(
        select(&*store, sql).await,
        spells(&[first, ("deactivated", "30", None)])
    );
    // An empty list is what networks show of those who are gone, too.
    tell(&*store, 39, alice, OutcomeCode::Empty).await;
    assert_eq!(
        select(&*store, sql).await,
        spells(&[first, ("deactivated", "30", None)])
    );
    tell(&*store, 40, alice, OutcomeCode::Ok).await;
    let second = ("deactivated", "30", Some("40"));
    assert_eq!(select(&*store, sql).await, spells(&[first, second]));
    // An answer that comes in late tells of a spell that is over.
    tell(&*store, 35, alice, OutcomeCode::Suspended).await;
    assert_eq!(select(&*store, sql).await, spells(&[first, second]));
    // Shown as invalid and answered well in one commit: invalid.
    commit(
        &*store,
        Commit {
            objects: vec![Object {
                standing: Standing::Invalid(OutcomeCode::Suspended),
                ..card(user("alice"), "Alice")
            }],
            outcomes: vec![outcome(alice, OutcomeCode::Ok)],
            ..at(50)
        },
    )
    .await;
    let open = "SELECT count(*) FROM invalid_users WHERE until_us IS NULL";
    assert_eq!(number(&*store, open).await, 1);
}

pub async fn gone_and_not_found_are_told_apart(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = key(&*store, &user("alice")).await;
    let bob = key(&*store, &user("bob")).await;
    show(&*store, 5, Standing::Present).await;
    tell(&*store, 6, alice, OutcomeCode::NotFound).await;
    tell(&*store, 6, bob, OutcomeCode::NotFound).await;
    let sql = |key: Key| format!("SELECT outcome FROM outcomes WHERE key = {}", key.0);
    assert_eq!(cell(&*store, &sql(alice)).await.as_deref(), Some("gone"));
    assert_eq!(cell(&*store, &sql(bob)).await.as_deref(), Some("not found"));
    let sql = |key: Key| format!("SELECT reason FROM invalid_users WHERE key = {}", key.0);
    assert_eq!(cell(&*store, &sql(alice)).await.as_deref(), Some("gone"));
    assert_eq!(cell(&*store, &sql(bob)).await.as_deref(), Some("not found"));
    assert_eq!(
        number(&*store, "SELECT count(*) FROM users").await,
        1,
        "rows stay"
    );
}

pub async fn deleted_posts_are_marked(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let status = of_kind("status", "s");
    let seen = |at_us: i64, standing: Standing, says: &str| Commit {
        objects: vec![Object {
            standing,
            ..post(status.clone(), &user("alice"), says)
        }],
        ..at(at_us)
    };
    let sql = "SELECT deleted_us FROM statuses";
    commit(&*store, seen(1, Standing::Present, "hello")).await;
    assert_eq!(cell(&*store, sql).await, None);
    let tombstone = Commit {
        objects: vec![Object {
            standing: Standing::Invalid(OutcomeCode::Gone),
            groups: Vec::new(),
            ..post(status.clone(), &user("alice"), "")
        }],
        ..at(5)
    };
    commit(&*store, tombstone).await;
    assert_eq!(cell(&*store, sql).await.as_deref(), Some("5"));
    // An older sight of it that comes in late does not bring it back, a newer one does.
    commit(&*store, seen(3, Standing::Present, "hello")).await;
    assert_eq!(cell(&*store, sql).await.as_deref(), Some("5"));
    commit(&*store, seen(7, Standing::Present, "hello")).await;
    assert_eq!(cell(&*store, sql).await, None);
    let key = Key(number(&*store, "SELECT key FROM statuses").await);
    tell(&*store, 9, key, OutcomeCode::NotFound).await;
    assert_eq!(cell(&*store, sql).await.as_deref(), Some("9"));
    assert_eq!(
        cell(&*store, "SELECT text FROM statuses").await.as_deref(),
        Some("hello")
    );
}
