//! What people see of a crawl.

use super::build::{
    With as _, at, card, commit, drain, follows, group, key_of, link, log_row, named_value, object,
    of_kind, post, rules, seed, tell, text, user,
};
use super::{Inspect, Make, Place};
use crate::StoreError;
use crate::browse::{
    Browser, CommentsQuestion, EventId, LinkDirection, LinksQuestion, Page, PostsQuestion,
    RelationsList, RelationsQuestion, SearchQuestion, UsersOrder, UsersQuestion, VersionsQuestion,
};
use kittiwake_model::{Commit, Identity, Object, OutcomeCode, Table, Value, WorldTime};
use std::future::Future;

pub(super) fn browse(place: &dyn Place) -> Browser {
    Browser::open(&place.location(), 2).unwrap()
}

pub(super) fn status(id: &str) -> Identity {
    of_kind("status", id)
}

pub(super) fn dated(id: &str, author: &Identity, at_us: i64) -> Object {
    let mut said = post(status(id), author, id);
    let created = Value::Time {
        at_us,
        clamped: false,
    };
    said.groups[0].fields.push(("created_us".into(), created));
    said
}

/// All rows of a list, asked for page by page; no page is longer than asked for.
pub(super) async fn all<T, F: Future<Output = Result<Page<T>, StoreError>>>(
    limit: usize,
    ask: impl Fn(Option<String>) -> F,
) -> Vec<T> {
    let (mut rows, mut after) = (Vec::new(), None);
    for _ in 0..1_000 {
        let page = ask(after).await.unwrap();
        assert!(page.rows.len() <= limit, "{}", page.rows.len());
        rows.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return rows;
        }
    }
    panic!("the list never ends");
}

async fn number_of(store: &dyn Inspect, id: &str) -> i64 {
    key_of(store, &user(id)).await.0
}

pub async fn people_and_posts_are_read_page_by_page(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let (alice, bob) = (user("alice"), user("bob"));
    let people = (0..25).map(|number| card(user(&format!("user {number:02}")), "A person"));
    let mut told: Vec<Object> = people.collect();
    told.push(card(alice.clone(), "Alice"));
    told.extend((0..12).map(|number| dated(&format!("a{number}"), &alice, 100 - number / 3)));
    told.push(post(status("undated"), &alice, "when?"));
    told.push(dated("b", &bob, 500));
    commit(
        &*store,
        Commit {
            objects: told,
            ..at(1)
        },
    )
    .await;
    let browser = browse(&*place);
    let users = all(7, |after| {
        browser.users(UsersQuestion {
            order: UsersOrder::Newest,
            after,
            limit: 7,
        })
    })
    .await;
    let names: Vec<&str> = users.iter().map(|user| &*user.label.id).collect();
    assert_eq!(names.len(), 26);
    assert_eq!(
        (names[0], names[1], names[25]),
        ("alice", "user 24", "user 00")
    );
    assert_eq!(
        users[1].label.display_name.as_ref().unwrap().text,
        "A person"
    );
    let author = key_of(&*store, &alice).await;
    let posts = all(5, |after| {
        browser.posts(PostsQuestion {
            author: Some(author),
            after,
            limit: 5,
        })
    })
    .await;
    let said: Vec<&str> = posts.iter().map(|post| &*post.label.id).collect();
    // The newest first, of one time the one that was met last, and what has no time at the end.
    let wanted = [
        "a2", "a1", "a0", "a5", "a4", "a3", "a8", "a7", "a6", "a11", "a10", "a9", "undated",
    ];
    assert_eq!(said, wanted);
    let by = posts[0].author.as_ref().unwrap();
    assert_eq!((by.key, &*by.id), (author, "alice"));
    let everything = all(4, |after| {
        browser.posts(PostsQuestion {
            author: None,
            after,
            limit: 4,
        })
    })
    .await;
    assert_eq!(everything.len(), 14);
    assert_eq!(everything[0].label.id, "b");
}

pub async fn relations_and_links_are_read_page_by_page(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = user("alice");
    let friends: Vec<Identity> = (0..9)
        .map(|number| user(&format!("friend {number}")))
        .collect();
    let mut links: Vec<_> = friends
        .iter()
        .map(|friend| follows(&alice, friend))
        .collect();
    links.push(follows(&friends[0], &alice));
    links.extend((0..4).map(|number| link("mention", &status("p"), &friends[number])));
    links.push(link("tag", &status("p"), &of_kind("tag", "rust")));
    commit(
        &*store,
        Commit {
            objects: vec![
                card(alice.clone(), "Alice"),
                card(friends[0].clone(), "Fred"),
            ],
            links,
            ..at(7)
        },
    )
    .await;
    let browser = browse(&*place);
    let user = key_of(&*store, &alice).await;
    let list = |list| {
        let browser = browser.clone();
        async move {
            let ask = |after| {
                browser.relations(RelationsQuestion {
                    user,
                    list,
                    after,
                    limit: 4,
                })
            };
            all(4, ask).await
        }
    };
    let following = list(RelationsList::Following).await;
    assert_eq!(following.len(), 9);
    assert_eq!(following[0].user.label.id, "friend 8");
    assert_eq!(following[0].first_seen, WorldTime(7));
    // Most of them have a name, and nothing more is known of them.
    assert_eq!(
        following.iter().filter(|row| row.user.is_described).count(),
        1
    );
    assert_eq!(list(RelationsList::Followers).await.len(), 1);
    assert_eq!(list(RelationsList::GoneFollowing).await.len(), 0);
    let of_post = key_of(&*store, &status("p")).await;
    let linked = |kind: Option<&str>, direction, key| {
        let (browser, kind) = (browser.clone(), kind.map(str::to_owned));
        async move {
            let ask = |after| {
                browser.links(LinksQuestion {
                    key,
                    direction,
                    kind: kind.clone(),
                    after,
                    limit: 2,
                })
            };
            let rows = all(2, ask).await;
            let rows = rows
                .iter()
                .map(|row| format!("{} {}", row.kind, row.other.id));
            rows.collect::<Vec<_>>()
        }
    };
    let mentioned = [
        "mention friend 0",
        "mention friend 1",
        "mention friend 2",
        "mention friend 3",
    ];
    let from = linked(None, LinkDirection::From, of_post).await;
    assert_eq!(from, [&mentioned[..], &["tag rust"]].concat());
    assert_eq!(
        linked(Some("mention"), LinkDirection::From, of_post).await,
        mentioned
    );
    assert_eq!(
        linked(Some("user_tag"), LinkDirection::From, of_post).await,
        [""; 0]
    );
    let tag = key_of(&*store, &of_kind("tag", "rust")).await;
    assert_eq!(linked(None, LinkDirection::To, tag).await, ["tag p"]);
}

pub async fn a_conversation_is_read_whole(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = user("alice");
    let answer = |id: &str, to: &str| {
        let mut said = post(status(id), &alice, id);
        let parent = ("reply_to".into(), named_value(&status(to)));
        said.groups[0].fields.push(parent);
        said
    };
    let mut told = vec![post(status("root"), &alice, "first")];
    told.extend((0..5).map(|number| answer(&format!("r{number}"), "root")));
    told.push(answer("deep", "r2"));
    let rules = rules(0, true, true);
    commit(
        &*store,
        Commit {
            objects: told,
            expansion: Some(rules.clone()),
            ..at(3)
        },
    )
    .await;
    drain(&*store, 4, &rules).await;
    let browser = browse(&*place);
    let under = |id: &'static str| {
        let (browser, store) = (browser.clone(), &store);
        async move {
            let post = key_of(&**store, &status(id)).await;
            let ask = |after| {
                browser.comments_of(CommentsQuestion {
                    post,
                    after,
                    limit: 2,
                })
            };
            let rows = all(2, ask).await;
            rows.into_iter().map(|row| row.label.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(under("root").await, ["r0", "r1", "r2", "r3", "r4", "deep"]);
    assert_eq!(under("r2").await, ["deep"]);
    assert_eq!(under("deep").await, [""; 0]);
}

pub async fn an_object_tells_where_it_comes_from(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = user("alice").handle("alice@example.social").local("17");
    let long = "x".repeat(5_000);
    let described = object(
        Table::Users,
        alice.clone(),
        vec![
            group(
                "card",
                &[
                    ("display_name", text("Alice")),
                    ("pinned", named_value(&status("p"))),
                ],
            ),
            group(
                "profile",
                &[("description", text(&long)), ("joined", Value::Int(3))],
            ),
        ],
    );
    let rules = rules(0, true, true);
    let first = Commit {
        objects: vec![described],
        discoveries: vec![seed(&alice, 0)],
        expansion: Some(rules),
        log: Some(log_row("profile")),
        ..at(50)
    };
    let call = commit(&*store, first).await.log.unwrap();
    let alice_key = key_of(&*store, &user("alice")).await;
    tell(&*store, 60, alice_key, OutcomeCode::Suspended).await;
    let browser = browse(&*place);
    let view = browser.object(alice_key).await.unwrap().unwrap();
    assert_eq!(view.table, Some(Table::Users));
    let ids: Vec<_> = view
        .ids
        .iter()
        .map(|id| (&*id.alias, &*id.host, &*id.id))
        .collect();
    assert_eq!(ids[0], ("", "", "alice"));
    assert!(ids.contains(&("id", "example.social", "17")), "{ids:?}");
    assert!(
        ids.contains(&("handle", "", "alice@example.social")),
        "{ids:?}"
    );
    let names: Vec<&str> = view.groups.iter().map(|group| &*group.name).collect();
    assert_eq!(names, ["card", "profile"]);
    let card = &view.groups[0];
    assert_eq!(
        (card.observed.at, card.observed.call),
        (WorldTime(50), Some(call))
    );
    assert!(!card.observed.is_hearsay);
    let whole = view.groups[1]
        .fields
        .iter()
        .find(|field| &*field.name == "description");
    assert_eq!(whole.unwrap().value, Value::Text(long));
    assert_eq!(view.labels.len(), 1);
    assert_eq!(view.labels[0].id, "p");
    assert_eq!(view.depth, Some(0));
    assert_eq!(view.spells.len(), 1);
    assert_eq!(
        (&*view.spells[0].reason, view.spells[0].until),
        ("suspended", None)
    );
    let robots: Vec<&str> = view.visits.iter().map(|visit| &*visit.robot).collect();
    assert_eq!(robots, ["profiles", "relations"]);
    let call = browser.call(call).await.unwrap().unwrap();
    assert_eq!((&*call.row.query, &*call.row.outcome), ("profile", "ok"));
    assert_eq!(call.budgets, ["ip", "token"]);
    // In lists long texts are cut, and say so.
    let page = browser
        .users(UsersQuestion {
            limit: 10,
            ..UsersQuestion::default()
        })
        .await
        .unwrap();
    let shown = page.rows[0].description.as_ref().unwrap();
    assert!(
        shown.is_cut && shown.text.len() == 1_000,
        "{}",
        shown.text.len()
    );
    assert_eq!(page.rows[0].gone.as_ref().unwrap().1, "suspended");
    // What is only named has a page, too.
    let said = key_of(&*store, &status("p")).await;
    let said = browser.object(said).await.unwrap().unwrap();
    assert_eq!((said.table, said.groups.len()), (None, 0));
}

pub async fn what_an_object_was_before_is_read_page_by_page(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = user("alice");
    for round in 0..8_i64 {
        let told = object(
            Table::Users,
            alice.clone(),
            vec![
                group("card", &[("display_name", text(&format!("name {round}")))]),
                group("counts", &[("followers_count", Value::Int(10 * round))]),
            ],
        );
        let told = Commit {
            objects: vec![told],
            log: Some(log_row("profile")),
            ..at(100 + round)
        };
        commit(&*store, told).await;
    }
    let browser = browse(&*place);
    let key = key_of(&*store, &alice).await;
    let counts = browser.counts(key, 100).await.unwrap();
    let counts: Vec<_> = counts
        .iter()
        .map(|row| (row.observed.at.0, row.counts[0].1))
        .collect();
    let wanted: Vec<(i64, i64)> = (0..8)
        .rev()
        .map(|round| (100 + round, 10 * round))
        .collect();
    assert_eq!(counts, wanted);
    assert_eq!(browser.counts(key, 3).await.unwrap().len(), 3);
    let versions = all(3, |after| {
        browser.versions(VersionsQuestion {
            key,
            after,
            limit: 3,
        })
    })
    .await;
    let versions: Vec<_> = versions
        .iter()
        .map(|row| {
            (
                row.observed.at.0,
                row.observed.call,
                row.fields[0].1.clone(),
            )
        })
        .collect();
    let wanted: Vec<_> = (0..7_i64)
        .rev()
        .map(|round| (100 + round, Some(round + 1), text(&format!("name {round}"))))
        .collect();
    assert_eq!(versions, wanted);
}

pub async fn rows_are_counted_beside(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let people = (0..5).map(|number| card(user(&format!("user {number}")), "A person"));
    commit(
        &*store,
        Commit {
            objects: people.collect(),
            ..at(1)
        },
    )
    .await;
    let browser = browse(&*place);
    for _ in 0..1_000 {
        let extent = browser.extent().await.unwrap();
        if let Some(users) = extent.rows.get("users") {
            assert_eq!(users.rows, 5);
            assert!(users.at.0 > 0);
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("rows are never counted");
}

pub async fn a_crawl_is_browsed_while_it_goes_on(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    commit(
        &*store,
        Commit {
            objects: vec![card(user("first"), "First")],
            ..at(1)
        },
    )
    .await;
    let browser = browse(&*place);
    browser.keep_indexed().unwrap();
    let writing = async {
        for round in 0..40 {
            let people =
                (0..20).map(|number| card(user(&format!("user {round} {number}")), "bird"));
            let told = Commit {
                objects: people.collect(),
                log: Some(log_row("profile")),
                ..at(round)
            };
            commit(&*store, told).await;
        }
    };
    let reading = async {
        let (mut seen, mut after) = (0, EventId::FIRST);
        while seen < 800 {
            let feed = browser.feed(after, 100).await.unwrap();
            seen += feed.events.len();
            after = feed.next;
            let words = SearchQuestion {
                words: "bird".to_owned(),
                limit: 10,
                ..SearchQuestion::default()
            };
            browser.search(words).await.unwrap();
            let page = UsersQuestion {
                limit: 50,
                ..UsersQuestion::default()
            };
            assert!(!browser.users(page).await.unwrap().rows.is_empty());
        }
        seen
    };
    let ((), seen) = tokio::join!(writing, reading);
    assert_eq!(seen, 800);
    assert_eq!(number_of(&*store, "first").await, 1);
}
