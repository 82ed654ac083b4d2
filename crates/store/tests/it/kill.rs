//! Killed at any moment: everything that was acknowledged is there, whole.

use crate::export::log_row;
use kittiwake_model::{Commit, Group, Identity, Object, Standing, Table, Value, WorldTime};
use kittiwake_store::{OpenMode, SqliteStore, Store};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

const FILE: &str = "KITTIWAKE_TEST_KILL_FILE";
const USERS_PER_COMMIT: u64 = 20;

fn page(number: u64) -> Commit {
    let user = |place: u64| Object {
        identity: Identity {
            network: "mastodon".into(),
            kind: "user".into(),
            canonical: Some(format!("user {number} {place}")),
            aliases: Vec::new(),
        },
        known_as: None,
        table: Table::Users,
        groups: vec![Group {
            name: "card".into(),
            fields: vec![("description".into(), Value::Text("x".repeat(500)))],
        }],
        standing: Standing::Present,
    };
    Commit {
        at: WorldTime(number as i64),
        objects: (0..USERS_PER_COMMIT).map(user).collect(),
        log: Some(log_row()),
        ..Commit::default()
    }
}

/// Not a test by itself: what the killed process does.
#[tokio::test]
async fn child_that_is_killed() {
    let Ok(file) = std::env::var(FILE) else {
        return;
    };
    let store = SqliteStore::open(Path::new(&file), OpenMode::Crawl).unwrap();
    let first = store.summary().await.unwrap().calls;
    for number in first.. {
        store.commit(vec![page(number)]).await.unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "\ncommitted {}", number + 1).unwrap();
        out.flush().unwrap();
    }
}

#[tokio::test]
async fn a_kill_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crawl.db");
    let mut acknowledged = 0_u64;
    for round in 0..6_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["kill::child_that_is_killed", "--exact", "--nocapture"])
            .env(FILE, &file)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stop_at = acknowledged + 1 + (round * 7) % 23;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            if let Some(number) = line.strip_prefix("committed ") {
                acknowledged = number.parse().unwrap();
            }
            if acknowledged >= stop_at {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // The lock died with the process, and the file holds whole commits only.
        let store = SqliteStore::open(&file, OpenMode::Crawl).unwrap();
        let rows = store.summary().await.unwrap().rows;
        assert!(rows["query_log"] >= acknowledged, "round {round}");
        assert_eq!(rows["users"], rows["query_log"] * USERS_PER_COMMIT);
        assert_eq!(rows["ids"], rows["users"]);
    }
    assert!(acknowledged > 0);
}
