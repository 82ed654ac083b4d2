//! What programs hear of a crawl.

use super::Make;
use super::browse::browse;
use super::build::{
    With as _, at, card, commit, follows, group, key_of, link, log_row, object, of_kind, post,
    tell, text, user,
};
use crate::browse::{Browser, Event, EventId, EventKind};
use kittiwake_model::{Commit, Identity, Object, OutcomeCode, Table, Value};

fn status(id: &str) -> Identity {
    of_kind("status", id)
}

fn answer(at_us: i64, objects: Vec<Object>) -> Commit {
    Commit {
        objects,
        log: Some(log_row("posts")),
        ..at(at_us)
    }
}

/// Everything after an event, a few at a time.
async fn everything(browser: &Browser, after: EventId, limit: usize) -> Vec<Event> {
    let (mut events, mut after) = (Vec::new(), after);
    for _ in 0..10_000 {
        let feed = browser.feed(after, limit).await.unwrap();
        assert!(feed.events.len() <= limit);
        events.extend(feed.events);
        after = feed.next;
        if feed.is_end {
            return events;
        }
    }
    panic!("the feed never ends");
}

fn shown(event: &Event) -> String {
    let kind = format!("{:?}", event.kind).to_lowercase();
    let link = event.link.as_deref().unwrap_or_default();
    let is_new = if event.is_new { "new" } else { "changed" };
    let to = event.to_id.as_deref().unwrap_or_default();
    format!(
        "{} {kind} {link} {} {to} {is_new}",
        event.id, event.object_id
    )
    .replace("  ", " ")
}

pub async fn the_feed_tells_what_answers_brought(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let (alice, bob) = (user("alice"), user("bob"));
    let browser = browse(&*place);
    assert_eq!(browser.newest_event().await.unwrap(), EventId::FIRST);
    let first = Commit {
        links: vec![follows(&alice, &bob), link("mention", &status("p"), &bob)],
        ..answer(
            10,
            vec![
                card(alice.clone(), "Alice"),
                post(status("p"), &alice, "hello"),
            ],
        )
    };
    commit(&*store, first).await;
    // The same again brings nothing.
    let again = answer(
        20,
        vec![
            card(alice.clone(), "Alice"),
            post(status("p"), &alice, "hello"),
        ],
    );
    commit(&*store, again).await;
    let newest = browser.newest_event().await.unwrap();
    assert_eq!(newest, EventId { log: 2, number: 0 });
    commit(
        &*store,
        answer(
            30,
            vec![card(alice.clone(), "Alice B."), card(bob.clone(), "Bob")],
        ),
    )
    .await;
    let said = key_of(&*store, &status("p")).await;
    tell(&*store, 40, said, OutcomeCode::Gone).await;
    let events = everything(&browser, EventId::FIRST, 100).await;
    let lines: Vec<String> = events.iter().map(shown).collect();
    assert_eq!(
        lines,
        [
            "1.1 user alice new",
            "1.2 status p new",
            "1.3 relation alice bob new",
            "1.4 link mention p bob new",
            "3.1 user bob new",
            "3.2 user alice changed",
            "4.1 status p changed",
        ]
        .map(|line| line.replace("  ", " "))
    );
    assert_eq!(everything(&browser, newest, 100).await.len(), 3);
    // An event has the object as it is now, and who wrote it.
    let said = &events[1];
    assert_eq!(
        (said.kind, said.at.0, &*said.network),
        (EventKind::Status, 10, "mastodon")
    );
    assert_eq!(said.author_id.as_deref(), Some("alice"));
    assert!(said.fields.iter().any(|field| field.value == text("hello")));
    assert_eq!(said.deleted.map(|at| at.0), Some(40));
    assert!(
        events[0]
            .fields
            .iter()
            .any(|field| field.value == text("Alice B."))
    );
}

pub async fn the_feed_goes_on_from_any_event(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    for round in 0..12 {
        let people = (0..round % 5).map(|number| card(user(&format!("{round} {number}")), "A"));
        commit(&*store, answer(round, people.collect())).await;
    }
    // What is written without a call is no event.
    commit(
        &*store,
        Commit {
            log: None,
            ..answer(99, vec![card(user("imported"), "I")])
        },
    )
    .await;
    let browser = browse(&*place);
    let whole = everything(&browser, EventId::FIRST, 1_000).await;
    assert_eq!(whole.len(), 10 + 10 + 1);
    assert!(whole.windows(2).all(|pair| pair[0].id < pair[1].id));
    for (place, event) in whole.iter().enumerate() {
        let rest = everything(&browser, event.id, 3).await;
        assert_eq!(rest[..], whole[place + 1..], "{}", event.id);
    }
    let id: EventId = whole[4].id.to_string().parse().unwrap();
    assert_eq!(id, whole[4].id);
}

pub async fn the_feed_follows_merged_keys(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    // Known by an address and by an id, and then it is one and the same.
    let by_address = super::build::unnamed("user").address("https://a.example/@alice");
    let told = object(
        Table::Users,
        by_address,
        vec![group("counts", &[("followers_count", Value::Int(1))])],
    );
    commit(&*store, answer(1, vec![told])).await;
    commit(&*store, answer(2, vec![card(user("alice"), "Alice")])).await;
    let both = user("alice").address("https://a.example/@alice");
    commit(&*store, answer(3, vec![card(both, "Alice")])).await;
    let browser = browse(&*place);
    let events = everything(&browser, EventId::FIRST, 10).await;
    let one = key_of(&*store, &user("alice")).await;
    assert!(events.len() >= 2, "{events:?}");
    for event in &events {
        assert_eq!((event.key, &*event.object_id), (one, "alice"));
        assert!(
            event
                .fields
                .iter()
                .any(|field| field.value == text("Alice"))
        );
    }
}
