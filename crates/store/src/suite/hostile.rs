//! Questions that nobody means well with.

use super::Make;
use super::browse::browse;
use super::build::{at, card, commit, user};
use crate::browse::{
    ActivityQuestion, AgesQuestion, Browser, CallsQuestion, CommentsQuestion, EventId,
    GraphQuestion, LinkDirection, LinksQuestion, OutcomesOf, OutcomesQuestion, PostsQuestion,
    RelationsList, RelationsQuestion, RunsQuestion, SearchIn, SearchQuestion, UsersOrder,
    UsersQuestion, VersionsQuestion,
};
use crate::{StoreError, StoreErrorKind};
use kittiwake_model::{Commit, Key, WorldTime};

/// Texts that are no place in any list.
const GARBAGE: &[&str] = &[
    "",
    ".",
    "newest",
    "newest.",
    "newest.x",
    "newest.1.2",
    "posts.9223372036854775808",
    "followers.1",
    "by.1.2",
    "links.0.1.zz",
    "links.0.1.f",
    "links.0.1.ff",
    "calls.1e9",
    "versions.1.2.",
    "words.--1",
    "outcomes.1.6",
    "' OR 1=1 --",
    "\0",
    "🐦",
    "answers.1.1",
];

pub async fn hostile_questions_do_no_harm(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let told = Commit {
        objects: vec![card(user("alice"), "Alice")],
        ..at(1)
    };
    commit(&*store, told).await;
    let browser = browse(&*place);
    let long = "9".repeat(100_000);
    for after in GARBAGE.iter().copied().chain([&*long]) {
        let people = refusals_of_people(&browser, after).await;
        let crawl = refusals_of_the_crawl(&browser, after).await;
        for error in people.into_iter().chain(crawl) {
            let error = error.unwrap_or_else(|| panic!("{after:?} was taken for a place"));
            assert_eq!(error.kind(), StoreErrorKind::Invalid, "{after:?}: {error}");
        }
    }
    for number in [i64::MIN, -1, 0, 999, i64::MAX] {
        nothing_is_known_of(&browser, number).await;
    }
    for limit in [0, usize::MAX] {
        limits_are_clamped(&browser, limit).await;
    }
    // Places at the very ends of an order are places.
    for place in ["newest.-9223372036854775808", "newest.9223372036854775807"] {
        let users = UsersQuestion {
            after: Some(place.to_owned()),
            ..UsersQuestion::default()
        };
        browser.users(users).await.unwrap();
    }
}

/// What lists of people, posts and links say to a place.
async fn refusals_of_people(browser: &Browser, after: &str) -> Vec<Option<StoreError>> {
    let (key, limit, after) = (Key(1), 10, Some(after.to_owned()));
    let users = |order| UsersQuestion {
        order,
        after: after.clone(),
        limit,
    };
    let posts = |author| PostsQuestion {
        author,
        after: after.clone(),
        limit,
    };
    let comments = CommentsQuestion {
        post: key,
        after: after.clone(),
        limit,
    };
    let links = LinksQuestion {
        key,
        direction: LinkDirection::To,
        kind: None,
        after: after.clone(),
        limit,
    };
    let relations = RelationsQuestion {
        user: key,
        list: RelationsList::Following,
        after: after.clone(),
        limit,
    };
    let versions = VersionsQuestion {
        key,
        after: after.clone(),
        limit,
    };
    vec![
        browser.users(users(UsersOrder::Newest)).await.err(),
        browser.users(users(UsersOrder::Followers)).await.err(),
        browser.posts(posts(None)).await.err(),
        browser.posts(posts(Some(key))).await.err(),
        browser.comments_of(comments).await.err(),
        browser.links(links).await.err(),
        browser.relations(relations).await.err(),
        browser.versions(versions).await.err(),
    ]
}

async fn refusals_of_the_crawl(browser: &Browser, after: &str) -> Vec<Option<StoreError>> {
    let (limit, after) = (10, Some(after.to_owned()));
    let calls = CallsQuestion {
        after: after.clone(),
        ..CallsQuestion::default()
    };
    let runs = RunsQuestion {
        after: after.clone(),
        limit,
    };
    let outcomes = OutcomesQuestion {
        of: OutcomesOf::Failed,
        after: after.clone(),
        limit,
    };
    let words = SearchQuestion {
        words: "a".to_owned(),
        within: SearchIn::All,
        after,
        limit,
    };
    vec![
        browser.calls(calls).await.err(),
        browser.runs(runs).await.err(),
        browser.outcomes(outcomes).await.err(),
        browser.search(words).await.err(),
    ]
}

async fn nothing_is_known_of(browser: &Browser, number: i64) {
    let key = Key(number);
    assert_eq!(browser.object(key).await.unwrap(), None);
    assert_eq!(browser.counts(key, usize::MAX).await.unwrap(), []);
    assert_eq!(browser.call(number).await.unwrap(), None);
    assert_eq!(browser.labels(vec![key; 5_000]).await.unwrap(), []);
    let posts = PostsQuestion {
        author: Some(key),
        after: None,
        limit: usize::MAX,
    };
    assert_eq!(browser.posts(posts).await.unwrap().rows, []);
}

async fn limits_are_clamped(browser: &Browser, limit: usize) {
    let users = UsersQuestion {
        limit,
        ..UsersQuestion::default()
    };
    assert_eq!(browser.users(users).await.unwrap().rows.len(), 1);
    browser.errors(limit).await.unwrap();
    browser.hours(limit).await.unwrap();
    let activity = ActivityQuestion {
        since: None,
        calls_max: limit,
        buckets: limit,
    };
    browser.activity(activity).await.unwrap();
    let graph = GraphQuestion {
        around: None,
        nodes_max: limit,
    };
    browser.graph(graph).await.unwrap();
    let ages = AgesQuestion {
        lane: "' --\0".to_owned(),
        now: WorldTime(i64::MIN),
        sample_max: limit,
    };
    assert_eq!(browser.ages(ages).await.unwrap().sample, 0);
    for (log, number) in [(i64::MAX, u32::MAX), (i64::MIN, 0)] {
        browser.feed(EventId { log, number }, limit).await.unwrap();
    }
}
