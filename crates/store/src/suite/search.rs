//! What is found by words and names.

use super::Make;
use super::browse::browse;
use super::build::{
    With as _, at, card, commit, group, key_of, log_row, object, of_kind, post, tell, text, user,
};
use crate::browse::{Browser, Hit, SearchIn, SearchQuestion, UsersOrder, UsersQuestion};
use kittiwake_model::{Commit, Identity, Object, OutcomeCode, Table, Value};
use std::time::Duration;

fn answer(at_us: i64, objects: Vec<Object>) -> Commit {
    Commit {
        objects,
        log: Some(log_row("posts")),
        ..at(at_us)
    }
}

fn status(id: &str) -> Identity {
    of_kind("status", id)
}

/// Waits until the index has everything.
pub(super) async fn indexed(browser: &Browser) {
    browser.keep_indexed().unwrap();
    for _ in 0..2_000 {
        let indexed = browser.indexed().await.unwrap();
        if indexed.is_filled && indexed.calls_behind == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the index never gets there");
}

async fn hits(browser: &Browser, words: &str, within: SearchIn) -> Vec<String> {
    let (mut hits, mut after) = (Vec::new(), None);
    for _ in 0..100 {
        let question = SearchQuestion {
            words: words.to_owned(),
            within,
            after,
            limit: 2,
        };
        let page = browser.search(question).await.unwrap();
        hits.extend(page.rows.iter().map(|hit| match hit {
            Hit::User(user) => user.label.id.clone(),
            Hit::Post(post) => post.label.id.clone(),
        }));
        after = page.next;
        if after.is_none() {
            return hits;
        }
    }
    panic!("there is no end of hits");
}

pub async fn words_are_found_in_every_script(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = user("alice");
    let said = [
        ("1", "The quick brown fox, jumps over the lazy dog"),
        ("2", "a quick note: brown bears"),
        ("3", "東京に行きたい。天気がいい"),
        ("4", "京都の東にある町"),
        ("5", "สวัสดีชาวโลก"),
        ("6", "CAFÉ crème, s'il vous plaît 🐦"),
        ("7", "привет Мир"),
        ("8", "<script>alert('quick')</script>"),
        ("9", "안녕하세요 세계"),
    ];
    let mut told = vec![card(alice.clone(), "Quick Alice")];
    told.extend(said.iter().map(|(id, says)| post(status(id), &alice, says)));
    commit(&*store, answer(1, told)).await;
    let browser = browse(&*place);
    indexed(&browser).await;
    for (words, wanted) in [
        ("quick", &["8", "2", "1", "alice"][..]),
        ("QUICK brown", &["2", "1"]),
        ("\"quick brown\"", &["1"]),
        ("quick -fox", &["8", "2", "alice"]),
        ("quick -\"brown fox\" -bears -script", &["alice"]),
        ("bro*", &["2", "1"]),
        ("br*", &[]),
        ("東京", &["3"]),
        ("東", &["4", "3"]),
        ("天気", &["3"]),
        ("気天", &[]),
        ("ชาวโลก", &["5"]),
        ("cafe creme", &["6"]),
        ("🐦", &["6"]),
        ("ПРИВЕТ", &["7"]),
        ("세계", &["9"]),
        ("-quick", &[]),
        ("nothing", &[]),
    ] {
        assert_eq!(
            hits(&browser, words, SearchIn::All).await,
            wanted,
            "{words}"
        );
    }
    assert_eq!(hits(&browser, "quick", SearchIn::Users).await, ["alice"]);
    assert_eq!(
        hits(&browser, "quick", SearchIn::Posts).await,
        ["8", "2", "1"]
    );
}

pub async fn the_index_follows_the_crawl(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = user("alice");
    let many = (0..1_200).map(|number| post(status(&format!("old {number}")), &alice, "ancient"));
    commit(&*store, answer(1, many.collect())).await;
    let browser = browse(&*place);
    indexed(&browser).await;
    let ancient = SearchQuestion {
        words: "ancient".to_owned(),
        limit: 200,
        ..SearchQuestion::default()
    };
    let page = browser.search(ancient).await.unwrap();
    assert_eq!((page.rows.len(), page.next.is_some()), (200, true));
    let search = |words: &'static str| hits(&browser, words, SearchIn::All);
    // What is new, what has changed, and what was written without a call.
    let changed = post(status("old 7"), &alice, "modern");
    commit(
        &*store,
        answer(2, vec![changed, post(status("new"), &alice, "modern art")]),
    )
    .await;
    commit(
        &*store,
        Commit {
            log: None,
            ..answer(3, vec![post(status("imported"), &alice, "modern")])
        },
    )
    .await;
    indexed(&browser).await;
    for _ in 0..500 {
        if search("modern").await.len() == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(search("modern").await, ["imported", "new", "old 7"]);
    // A post that was deleted is found, and marked.
    let key = key_of(&*store, &status("new")).await;
    tell(&*store, 9, key, OutcomeCode::Gone).await;
    let question = SearchQuestion {
        words: "art".to_owned(),
        limit: 5,
        ..SearchQuestion::default()
    };
    let page = browser.search(question).await.unwrap();
    let [Hit::Post(post)] = &page.rows[..] else {
        panic!("{page:?}");
    };
    assert_eq!(post.deleted.map(|at| at.0), Some(9));
}

pub async fn things_are_found_by_their_names(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = user("https://example.social/users/alice")
        .handle("alice@example.social")
        .local("17");
    let described = object(
        Table::Users,
        alice,
        vec![group(
            "card",
            &[
                ("handle", text("Alice@example.social")),
                ("url", text("https://example.social/@alice")),
            ],
        )],
    );
    let other = object(
        Table::Users,
        user("https://other.example/users/alice").handle("alice@other.example"),
        vec![group("card", &[("handle", text("alice@other.example"))])],
    );
    let said = post(
        status("https://example.social/1").address("https://example.social/@alice/1"),
        &user("https://example.social/users/alice"),
        "hello alice",
    );
    commit(&*store, answer(1, vec![described, other, said])).await;
    let browser = browse(&*place);
    indexed(&browser).await;
    for (text, wanted) in [
        (
            "https://example.social/users/alice",
            &["https://example.social/users/alice"][..],
        ),
        (
            "alice@example.social",
            &["https://example.social/users/alice"],
        ),
        (
            "@ALICE@example.social",
            &["https://example.social/users/alice"],
        ),
        (
            "https://example.social/@alice",
            &["https://example.social/users/alice"],
        ),
        (
            "https://example.social/@alice/",
            &["https://example.social/users/alice"],
        ),
        (
            "https://example.social/@alice/1",
            &["https://example.social/1"],
        ),
        ("17", &["https://example.social/users/alice"]),
        (
            " @alice ",
            &[
                "https://other.example/users/alice",
                "https://example.social/users/alice",
            ],
        ),
        ("nobody", &[]),
        ("", &[]),
        ("' OR 1=1 --", &[]),
        ("\0", &[]),
        ("@", &[]),
    ] {
        let found = browser.find(text.to_owned()).await.unwrap();
        let found: Vec<&str> = found.iter().map(|label| &*label.id).collect();
        assert_eq!(found, wanted, "{text}");
    }
    assert!(browser.find("x".repeat(100_000)).await.unwrap().is_empty());
}

pub async fn people_are_listed_by_their_followers(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let followed = |id: &str, followers: i64| {
        let counts = group("counts", &[("followers_count", Value::Int(followers))]);
        object(Table::Users, user(id), vec![counts])
    };
    let told = vec![
        followed("few", 3),
        followed("many", 1_000),
        followed("some", 50),
        followed("as many", 1_000),
        card(user("unknown"), "?"),
    ];
    commit(&*store, answer(1, told)).await;
    let browser = browse(&*place);
    indexed(&browser).await;
    commit(&*store, answer(2, vec![followed("few", 5_000)])).await;
    indexed(&browser).await;
    let (mut names, mut after) = (Vec::new(), None);
    for _ in 0..10 {
        let question = UsersQuestion {
            order: UsersOrder::Followers,
            after,
            limit: 2,
        };
        let page = browser.users(question).await.unwrap();
        names.extend(page.rows.into_iter().map(|user| user.label.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(names, ["few", "as many", "many", "some"]);
}

/// Whatever is typed is an answerable question.
pub async fn no_words_are_a_mistake(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let says = "near col a \u{FFFD} OR AND NOT emoji 🐦 \"quoted\" o'hara";
    commit(
        &*store,
        answer(1, vec![post(status("p"), &user("alice"), says)]),
    )
    .await;
    let browser = browse(&*place);
    let question = |words: &str| SearchQuestion {
        words: words.to_owned(),
        limit: 10,
        ..SearchQuestion::default()
    };
    // Before there is any index nothing is found, and nothing is wrong.
    assert_eq!(browser.search(question("near")).await.unwrap().rows, []);
    indexed(&browser).await;
    let (long, quotes) = ("wort ".repeat(20_000), "\"".repeat(50_001));
    let emoji = "🐦".repeat(25_000);
    for words in [
        "",
        " ",
        "\"",
        "\"\"",
        "*",
        "-",
        "--",
        "NEAR(",
        "NEAR(a b, 5)",
        "words:near",
        "col:a",
        "^near",
        "{a b}:c",
        "near*",
        "ne*",
        "a + b",
        "(",
        ")",
        "()",
        "AND",
        "OR",
        "NOT",
        "a AND",
        "NOT a",
        "-\"",
        "'",
        "''",
        "o'hara",
        "a:*",
        "a & b",
        "a | !b",
        "a <-> b",
        "<2>",
        "\\",
        "\\'",
        "\0",
        "a\0b",
        "near\u{FFFD}",
        "%",
        "_",
        ";",
        "a;DROP TABLE search_posts",
        "\u{E000}alice",
        "\u{202E}near",
        "٣",
        "ǅ",
        &long,
        &quotes,
        &emoji,
    ] {
        let page = browser.search(question(words)).await;
        assert!(page.is_ok(), "{words:?}: {page:?}");
    }
    for words in [
        "near*",
        "o'hara",
        "\"a OR\"",
        "or and not",
        "^near",
        "quoted",
        "(near) col:a",
    ] {
        assert_eq!(hits(&browser, words, SearchIn::All).await, ["p"], "{words}");
    }
}
