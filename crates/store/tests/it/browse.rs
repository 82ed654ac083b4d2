//! The index beside a file: whatever becomes of it, it is made anew; and a file that goes away.

use crate::export::log_row;
use kittiwake_model::{Commit, Group, Identity, LogRow, Object};
use kittiwake_model::{Standing, Table, Value, WorldTime};
use kittiwake_store::browse::{Browser, EventId, SearchQuestion};
use kittiwake_store::{Location, OpenMode, SqliteStore, Store, StoreErrorKind};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn says(id: &str, text: &str) -> Object {
    Object {
        identity: Identity {
            network: "mastodon".into(),
            kind: "status".into(),
            canonical: Some(id.to_owned()),
            aliases: Vec::new(),
        },
        known_as: None,
        table: Table::Statuses,
        groups: vec![Group {
            name: "content".into(),
            fields: vec![("text".into(), Value::Text(text.to_owned()))],
        }],
        standing: Standing::Present,
    }
}

fn answer(at: i64, objects: Vec<Object>) -> Commit {
    Commit {
        at: WorldTime(at),
        objects,
        log: Some(LogRow {
            query: "posts".into(),
            ..log_row()
        }),
        ..Commit::default()
    }
}

struct Crawl {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Crawl {
    /// A crawl of so many posts, each of which says `bird`.
    async fn of(posts: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crawl.db");
        let crawl = Self {
            _folder: folder,
            path,
        };
        let posts = (0..posts).map(|number| says(&format!("post {number}"), "bird"));
        crawl.tell(1, posts.collect()).await;
        crawl
    }

    async fn tell(&self, at: i64, objects: Vec<Object>) {
        let store = SqliteStore::open(&self.path, OpenMode::Crawl).unwrap();
        store.commit(vec![answer(at, objects)]).await.unwrap();
    }

    fn index(&self) -> PathBuf {
        self.path.with_file_name("crawl.db.search")
    }

    fn browse(&self) -> Browser {
        Browser::open(&Location::File(self.path.clone()), 2).unwrap()
    }
}

async fn found(browser: &Browser, words: &str) -> usize {
    let question = SearchQuestion {
        words: words.to_owned(),
        limit: 200,
        ..SearchQuestion::default()
    };
    browser.search(question).await.unwrap().rows.len()
}

/// Waits until so many are found.
async fn finds(browser: &Browser, words: &str, wanted: usize) {
    browser.keep_indexed().unwrap();
    for _ in 0..2_000 {
        if found(browser, words).await == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} found for {words}", found(browser, words).await);
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[tokio::test]
async fn an_index_that_is_deleted_is_made_anew_also_while_it_is_kept() {
    let crawl = Crawl::of(30).await;
    let browser = crawl.browse();
    finds(&browser, "bird", 30).await;
    for suffix in ["", "-wal", "-shm"] {
        let mut file = crawl.index().into_os_string();
        file.push(suffix);
        let _ = std::fs::remove_file(file);
    }
    assert_eq!(found(&browser, "bird").await, 0);
    finds(&browser, "bird", 30).await;
}

#[tokio::test]
async fn an_index_that_is_damaged_is_made_anew() {
    let crawl = Crawl::of(30).await;
    finds(&crawl.browse(), "bird", 30).await;
    let whole = std::fs::read(crawl.index()).unwrap();
    // The mark is still there, what follows is not.
    let mut damaged = whole.clone();
    damaged[100..].fill(0xA5);
    for bytes in [&damaged[..], &whole[..whole.len() / 2], &whole[..100], b""] {
        std::fs::write(crawl.index(), bytes).unwrap();
        let browser = crawl.browse();
        finds(&browser, "bird", 30).await;
    }
    assert_eq!(
        files(crawl.path.parent().unwrap())
            .iter()
            .filter(|name| name.contains("aside"))
            .count(),
        0
    );
}

#[tokio::test]
async fn a_file_of_somebody_else_is_set_aside() {
    let crawl = Crawl::of(3).await;
    std::fs::write(crawl.index(), "what I have searched for").unwrap();
    let browser = crawl.browse();
    assert_eq!(found(&browser, "bird").await, 0);
    finds(&browser, "bird", 3).await;
    let aside = crawl.path.with_file_name("crawl.db.search.aside-1");
    assert_eq!(
        std::fs::read_to_string(aside).unwrap(),
        "what I have searched for"
    );
}

#[tokio::test]
async fn a_folder_in_the_place_of_the_index_is_left_alone() {
    let crawl = Crawl::of(3).await;
    std::fs::create_dir(crawl.index()).unwrap();
    std::fs::write(crawl.index().join("mine"), "mine").unwrap();
    let browser = crawl.browse();
    assert_eq!(found(&browser, "bird").await, 0);
    finds(&browser, "bird", 3).await;
    let aside = crawl.path.with_file_name("crawl.db.search.aside-1");
    assert_eq!(std::fs::read_to_string(aside.join("mine")).unwrap(), "mine");
}

#[tokio::test]
async fn an_older_copy_of_the_index_goes_on_from_where_it_was() {
    let crawl = Crawl::of(600).await;
    finds(&crawl.browse(), "bird", 200).await;
    let older = std::fs::read(crawl.index()).unwrap();
    let changed = vec![says("post 3", "fish"), says("later", "fish")];
    crawl.tell(2, changed).await;
    finds(&crawl.browse(), "fish", 2).await;
    std::fs::write(crawl.index(), older).unwrap();
    let browser = crawl.browse();
    assert_eq!(found(&browser, "fish").await, 0);
    finds(&browser, "fish", 2).await;
}

#[tokio::test]
async fn an_index_of_a_later_state_is_not_believed() {
    let crawl = Crawl::of(5).await;
    let copy = crawl.path.with_file_name("copy.db");
    std::fs::copy(&crawl.path, &copy).unwrap();
    crawl.tell(2, vec![says("later", "fish")]).await;
    finds(&crawl.browse(), "fish", 1).await;
    // The crawl is taken back to what it was, and goes another way.
    std::fs::rename(&copy, &crawl.path).unwrap();
    let browser = crawl.browse();
    finds(&browser, "bird", 5).await;
    crawl.tell(3, vec![says("other", "bird")]).await;
    finds(&browser, "bird", 6).await;
    assert_eq!(found(&browser, "fish").await, 0);
}

#[tokio::test]
async fn a_locked_index_holds_nobody_up_for_long() {
    let crawl = Crawl::of(5).await;
    let browser = crawl.browse();
    finds(&browser, "bird", 5).await;
    let connection = rusqlite::Connection::open(crawl.index()).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Reading goes on beside whoever writes, and the keeper tries again.
    assert_eq!(found(&browser, "bird").await, 5);
    crawl.tell(2, vec![says("later", "fish")]).await;
    connection.execute_batch("ROLLBACK").unwrap();
    drop(connection);
    finds(&browser, "fish", 1).await;
}

#[tokio::test]
async fn a_file_that_is_deleted_while_it_is_looked_at_is_said_to_be_missing() {
    let crawl = Crawl::of(5).await;
    let browser = crawl.browse();
    finds(&browser, "bird", 5).await;
    std::fs::rename(&crawl.path, crawl.path.with_file_name("away.db")).unwrap();
    let error = browser.newest_event().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Missing, "{error}");
    // When it is back, it is looked at again.
    std::fs::rename(crawl.path.with_file_name("away.db"), &crawl.path).unwrap();
    assert_eq!(browser.newest_event().await.unwrap().to_string(), "1.5");
}

#[tokio::test]
async fn crawls_that_are_merged_have_both_feeds() {
    let (one, other) = (Crawl::of(3).await, Crawl::of(2).await);
    // Known to both under different keys, and told by one of them only.
    other
        .tell(2, vec![says("only here", "fish"), says("post 0", "fish")])
        .await;
    let into = Location::File(one.path.with_file_name("merged.db"));
    let crawls = [&one, &other].map(|crawl| Location::File(crawl.path.clone()));
    kittiwake_store::merge::merge(&crawls, &into, &mut |_| ControlFlow::Continue(()))
        .await
        .unwrap();
    let browser = Browser::open(&into, 1).unwrap();
    let feed = browser.feed(EventId::FIRST, 100).await.unwrap();
    let told = feed.events.iter().map(|event| {
        let is_new = if event.is_new { "new" } else { "changed" };
        format!("{} {} {is_new}", event.id, event.object_id)
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            "1.1 post 0 new",
            "1.2 post 1 new",
            "1.3 post 2 new",
            "2.1 post 0 new",
            "2.2 post 1 new",
            "3.1 only here new",
            "3.2 post 0 changed",
        ]
    );
    assert!(feed.events.iter().all(|event| !event.fields.is_empty()));
}

#[tokio::test]
async fn two_who_keep_one_index_do_no_harm() {
    let crawl = Crawl::of(700).await;
    let (one, other) = (crawl.browse(), crawl.browse());
    one.keep_indexed().unwrap();
    other.keep_indexed().unwrap();
    finds(&one, "bird", 200).await;
    for round in 0..5 {
        crawl
            .tell(2 + round, vec![says(&format!("new {round}"), "fish")])
            .await;
    }
    finds(&one, "fish", 5).await;
    finds(&other, "fish", 5).await;
}
