//! Files of older versions: brought forward, and then as good as new ones.

use kittiwake_model::{Commit, Expansion, Follow, RobotFiling, WorldTime};
use kittiwake_store::{DueQuestion, OpenMode, SqliteStore, Store, StoreErrorKind};
use std::path::Path;
use std::sync::Arc;

/// A file as the first schema kept it.
fn first_schema(path: &Path) {
    rusqlite::Connection::open(path)
        .unwrap()
        .execute_batch(include_str!("../fixtures/schema-1.sql"))
        .unwrap();
}

fn robot(name: &str, kind: &str) -> RobotFiling {
    RobotFiling {
        robot: name.into(),
        lane: format!("example.social/{name}").into(),
        kind: kind.into(),
        unless_zero: None,
        names_parents: false,
        begins_visited: false,
        visited_when_zero: None,
        repost_steps: 0,
        reply_steps: 0,
    }
}

async fn drain(store: &SqliteStore) {
    let rules = Arc::new(Expansion {
        follow: Follow {
            following: true,
            followers: false,
        },
        depth_max: 1,
        robots: vec![
            robot("profiles", "user"),
            robot("relations", "user"),
            robot("threads", "status"),
        ],
        brings: Vec::new(),
    });
    for _ in 0..100 {
        let commit = Commit {
            at: WorldTime(100),
            expansion: Some(rules.clone()),
            ..Commit::default()
        };
        let reports = store.commit(vec![commit]).await.unwrap();
        if !reports[0].backlog {
            return;
        }
    }
    panic!("the backlog never ends");
}

async fn rows(store: &SqliteStore, sql: &str) -> Vec<String> {
    let rows = store.select_text(sql.to_owned()).await.unwrap();
    rows.into_iter()
        .map(|row| {
            let cells = row.into_iter().map(|cell| cell.unwrap_or("-".to_owned()));
            cells.collect::<Vec<_>>().join(" ")
        })
        .collect()
}

#[tokio::test]
async fn a_file_of_the_first_schema_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crawl.db");
    first_schema(&path);
    let error = SqliteStore::open(&path, OpenMode::Read).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Other);
    assert!(error.to_string().contains("older version"), "{error}");
    let store = SqliteStore::open(&path, OpenMode::Crawl).unwrap();
    // Who was visited was visited when the next visit was thought to be due.
    assert_eq!(
        rows(
            &store,
            "SELECT subject, robot, visits, visited_us, due_us FROM frontier
             ORDER BY subject, robot"
        )
        .await,
        [
            "1 profiles 2 77 77",
            "1 relations 0 - 10",
            "6 profiles 0 - 10",
            "6 relations 0 - 10"
        ]
    );
    assert_eq!(
        rows(&store, "SELECT walk, pages, items FROM cursors").await,
        ["3 2 0"]
    );
    assert_eq!(rows(&store, "SELECT opted_out FROM users").await, ["-"]);
    // What was left to do is done, and what is new is caught up with.
    drain(&store).await;
    assert_eq!(
        rows(&store, "SELECT key, depth FROM subjects ORDER BY key").await,
        ["1 0", "6 1", "7 2", "9 0", "10 1"]
    );
    assert_eq!(
        rows(
            &store,
            "SELECT key, status, parent, root, author, created_us, text FROM comments ORDER BY key"
        )
        .await,
        ["3 2 2 2 6 20 -", "4 2 3 2 7 30 -", "5 - 8 - 6 40 -"]
    );
    assert_eq!(
        rows(
            &store,
            "SELECT subject FROM frontier WHERE robot = 'threads' ORDER BY subject"
        )
        .await,
        ["2", "3", "5"]
    );
    let due = store
        .due(DueQuestion {
            lane: "example.social/profiles".into(),
            after: None,
            not_visited_since: Some(WorldTime(77)),
            limit: 10,
        })
        .await
        .unwrap();
    let due: Vec<(i64, i64)> = due.iter().map(|due| (due.due.0, due.subject.0)).collect();
    assert_eq!(due, [(10, 6), (100, 9), (100, 10)]);
}

#[tokio::test]
async fn a_file_that_was_brought_forward_has_the_tables_of_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old.db"), folder.path().join("new.db"));
    first_schema(&old);
    let old = SqliteStore::open(&old, OpenMode::Crawl).unwrap();
    let new = SqliteStore::open(&new, OpenMode::Crawl).unwrap();
    for sql in [
        // A column that came later stands last, so the order does not count.
        "SELECT m.type, m.name, c.name, c.type, c.\"notnull\", c.dflt_value, c.pk
         FROM sqlite_master AS m, pragma_table_info(m.name) AS c ORDER BY 1, 2, 3",
        "SELECT m.name, i.seqno, i.name FROM sqlite_master AS m, pragma_index_xinfo(m.name) AS i
         WHERE m.type = 'index' ORDER BY 1, 2",
        "SELECT name, sql FROM sqlite_master WHERE type IN ('index', 'view') ORDER BY 1",
        "SELECT user_version, application_id FROM pragma_user_version, pragma_application_id",
    ] {
        assert_eq!(rows(&old, sql).await, rows(&new, sql).await, "{sql}");
    }
}
