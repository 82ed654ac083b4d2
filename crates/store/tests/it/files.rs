//! Files that are ours, files that are not, and who may hold them.

use kittiwake_model::{Commit, WorldTime};
use kittiwake_store::{OpenMode, SqliteStore, Store, StoreError, StoreErrorKind};
use std::path::Path;

fn crawl(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, OpenMode::Crawl)
}

fn read(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, OpenMode::Read)
}

/// Refused with this kind, in one line that names the file.
fn refused(outcome: Result<SqliteStore, StoreError>, kind: StoreErrorKind, path: &Path) -> String {
    let error = outcome.unwrap_err();
    let message = error.to_string();
    assert_eq!(error.kind(), kind, "{message}");
    assert!(!message.contains('\n'), "{message}");
    assert!(message.contains(&path.display().to_string()), "{message}");
    message
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "dear diary, today I saw a kittiwake").unwrap();
    let short = folder.path().join("short");
    std::fs::write(&short, "x").unwrap();
    let magic_only = folder.path().join("magic");
    std::fs::write(
        &magic_only,
        b"SQLite format 3\0 and then nonsense".repeat(100),
    )
    .unwrap();
    let foreign = folder.path().join("foreign.db");
    rusqlite::Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE bookmarks(url TEXT)")
        .unwrap();
    let marked = folder.path().join("marked.db");
    rusqlite::Connection::open(&marked)
        .unwrap()
        .execute_batch("PRAGMA application_id = 42; CREATE TABLE t(x)")
        .unwrap();
    for path in [&text, &short, &magic_only, &foreign, &marked] {
        let before = std::fs::read(path).unwrap();
        refused(crawl(path), StoreErrorKind::NotOurs, path);
        refused(read(path), StoreErrorKind::NotOurs, path);
        assert_eq!(std::fs::read(path).unwrap(), before, "{}", path.display());
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 5, "nothing was made beside them: {left:?}");
    refused(crawl(folder.path()), StoreErrorKind::NotOurs, folder.path());
    refused(read(folder.path()), StoreErrorKind::NotOurs, folder.path());
}

#[test]
fn a_missing_file_is_made_for_a_crawl_and_never_for_reading() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new 'crawl' %20.db");
    refused(read(&path), StoreErrorKind::Missing, &path);
    assert!(!path.exists());
    drop(crawl(&path).unwrap());
    read(&path).unwrap();
    let nowhere = folder.path().join("no/such/folder/crawl.db");
    let message = refused(crawl(&nowhere), StoreErrorKind::Missing, &nowhere);
    assert!(message.contains("does not exist"), "{message}");
}

#[test]
fn an_empty_file_becomes_a_store_but_is_not_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.db");
    std::fs::write(&path, "").unwrap();
    refused(read(&path), StoreErrorKind::NotOurs, &path);
    drop(crawl(&path).unwrap());
    read(&path).unwrap();
}

#[test]
fn a_newer_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crawl.db");
    drop(crawl(&path).unwrap());
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA user_version = 9999")
        .unwrap();
    for outcome in [crawl(&path), read(&path)] {
        let message = refused(outcome, StoreErrorKind::Newer, &path);
        assert!(message.contains("made by a newer version"), "{message}");
    }
}

#[test]
fn a_file_whose_making_was_interrupted_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crawl.db");
    // A database without anything in it: what a kill between the first two steps leaves.
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t(x); DROP TABLE t; VACUUM")
        .unwrap();
    assert!(path.metadata().unwrap().len() > 0);
    drop(crawl(&path).unwrap());
    read(&path).unwrap();
}

#[tokio::test]
async fn a_second_crawl_is_refused_and_reading_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crawl.db");
    let store = crawl(&path).unwrap();
    let message = refused(crawl(&path), StoreErrorKind::Locked, &path);
    assert!(message.contains("another kittiwake"), "{message}");
    let reader = read(&path).unwrap();
    assert_eq!(reader.summary().await.unwrap().rows["users"], 0);
    let commit = Commit {
        at: WorldTime(1),
        ..Commit::default()
    };
    let error = reader.commit(vec![commit.clone()]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied);
    store.commit(vec![commit]).await.unwrap();
    drop(store);
    drop(crawl(&path).unwrap());
}

#[tokio::test]
async fn a_closed_store_leaves_one_tidy_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crawl.db");
    let store = crawl(&path).unwrap();
    store.commit(vec![Commit::default()]).await.unwrap();
    drop(store);
    let names: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        names.iter().all(|name| !name.ends_with("-wal")),
        "{names:?}"
    );
    // Reading leaves nothing behind either.
    let reader = read(&path).unwrap();
    reader.summary().await.unwrap();
    drop(reader);
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        names.len()
    );
}

#[tokio::test]
async fn views_show_text_ids_and_iso_times() {
    use kittiwake_model::{Group, Identity, Object, Standing, Table, Value};
    let folder = tempfile::tempdir().unwrap();
    let store = crawl(&folder.path().join("crawl.db")).unwrap();
    let object = Object {
        identity: Identity {
            network: "mastodon".into(),
            kind: "user".into(),
            canonical: Some("https://a/alice".to_owned()),
            aliases: Vec::new(),
        },
        known_as: None,
        table: Table::Users,
        groups: vec![Group {
            name: "card".into(),
            fields: vec![(
                "created_us".into(),
                Value::Time {
                    at_us: 1_000_001,
                    clamped: false,
                },
            )],
        }],
        standing: Standing::Present,
    };
    let commit = Commit {
        objects: vec![object],
        ..Commit::default()
    };
    store.commit(vec![commit]).await.unwrap();
    let rows = store
        .select_text("SELECT id, created FROM users_view".to_owned())
        .await
        .unwrap();
    let expected = ["https://a/alice", "1970-01-01T00:00:01.000001Z"];
    assert_eq!(
        rows,
        vec![expected.map(|cell| Some(cell.to_owned())).to_vec()]
    );
    for view in [
        "user_relations_view",
        "statuses_view",
        "links_view",
        "outcomes_view",
        "frontier_view",
        "query_log_view",
        "invalid_users_view",
    ] {
        store
            .select_text(format!("SELECT * FROM {view}"))
            .await
            .unwrap();
    }
}

#[test]
fn a_file_under_another_name_is_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crawl.db");
    let link = folder.path().join("link.db");
    // The link leads to where the file will be: whoever comes first makes it.
    std::os::unix::fs::symlink("crawl.db", &link).unwrap();
    let store = crawl(&link).unwrap();
    refused(crawl(&path), StoreErrorKind::Locked, &path);
    drop(store);
    let store = crawl(&path).unwrap();
    refused(crawl(&link), StoreErrorKind::Locked, &link);
    drop(store);
}
