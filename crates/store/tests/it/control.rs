//! Commands that other processes leave for a running crawl.

use kittiwake_model::{Commit, Control, ControlCommand, Group, Identity, Object, Standing};
use kittiwake_model::{Table, Value, WorldTime};
use kittiwake_store::sqlite::control;
use kittiwake_store::{OpenMode, SqliteStore, Store, StoreErrorKind};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const FILE: &str = "KITTIWAKE_TEST_CONTROL_FILE";

fn crawl_in(folder: &tempfile::TempDir) -> (PathBuf, SqliteStore) {
    let path = folder.path().join("crawl.db");
    let store = SqliteStore::open(&path, OpenMode::Crawl).unwrap();
    (path, store)
}

fn told(id: i64, command: ControlCommand, robot: Option<&str>) -> Control {
    Control {
        id,
        command,
        robot: robot.map(Into::into),
    }
}

#[tokio::test]
async fn commands_are_read_in_order_and_marked_as_done() {
    let folder = tempfile::tempdir().unwrap();
    let (path, store) = crawl_in(&folder);
    assert_eq!(store.controls(0).await.unwrap(), vec![]);
    let pause = control::ask(&path, ControlCommand::Pause, Some("it's a \"robot\"")).unwrap();
    let stop = control::ask(&path, ControlCommand::Stop, None).unwrap();
    let all = vec![
        told(pause, ControlCommand::Pause, Some("it's a \"robot\"")),
        told(stop, ControlCommand::Stop, None),
    ];
    assert!(pause < stop);
    assert_eq!(store.controls(0).await.unwrap(), all);
    assert_eq!(store.controls(pause).await.unwrap(), all[1..]);
    assert_eq!(store.controls(stop).await.unwrap(), vec![]);
    assert!(!control::is_done(&path, stop).unwrap());
    let done = Commit {
        controls_done: vec![stop, 777],
        ..Commit::default()
    };
    store.commit(vec![done.clone()]).await.unwrap();
    assert!(control::is_done(&path, stop).unwrap());
    assert!(!control::is_done(&path, pause).unwrap());
    // Done once is done; what was done is still told, so that a new run knows what is paused.
    let when = "SELECT done_us FROM control WHERE id = 2".to_owned();
    let first = store.select_text(when.clone()).await.unwrap();
    store.commit(vec![done]).await.unwrap();
    assert_eq!(store.select_text(when).await.unwrap(), first);
    assert_eq!(store.controls(0).await.unwrap(), all);
    let error = control::is_done(&path, 777).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Missing);
}

#[tokio::test]
async fn unknown_commands_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (path, store) = crawl_in(&folder);
    let mut later = rusqlite::Connection::open(&path).unwrap();
    let all_at_once = later.transaction().unwrap();
    for _ in 0..1_100 {
        all_at_once
            .execute(
                "INSERT INTO control(at_us, command) VALUES (1, 'sing; DROP TABLE ids')",
                [],
            )
            .unwrap();
    }
    all_at_once.commit().unwrap();
    let id = control::ask(&path, ControlCommand::Resume, None).unwrap();
    assert_eq!(
        store.controls(0).await.unwrap(),
        vec![told(id, ControlCommand::Resume, None)]
    );
}

/// Refused with this kind, in one line that names the file.
fn refused<T: std::fmt::Debug>(
    outcome: Result<T, kittiwake_store::StoreError>,
    kind: StoreErrorKind,
    path: &Path,
) {
    let error = outcome.unwrap_err();
    let message = error.to_string();
    assert_eq!(error.kind(), kind, "{message}");
    assert!(!message.contains('\n'), "{message}");
    assert!(message.contains(&path.display().to_string()), "{message}");
}

#[test]
fn files_that_are_not_ours_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "dear diary, today I saw a kittiwake").unwrap();
    let foreign = folder.path().join("foreign.db");
    rusqlite::Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE control(id INTEGER PRIMARY KEY, command TEXT)")
        .unwrap();
    let newer = folder.path().join("newer.db");
    drop(SqliteStore::open(&newer, OpenMode::Crawl).unwrap());
    rusqlite::Connection::open(&newer)
        .unwrap()
        .execute_batch("PRAGMA user_version = 9999")
        .unwrap();
    let missing = folder.path().join("missing.db");
    let files = [
        (&text, StoreErrorKind::NotOurs),
        (&foreign, StoreErrorKind::NotOurs),
        (&newer, StoreErrorKind::Newer),
        (&missing, StoreErrorKind::Missing),
    ];
    let before = std::fs::read_dir(folder.path()).unwrap().count();
    for (path, kind) in files {
        refused(control::ask(path, ControlCommand::Stop, None), kind, path);
        refused(control::is_done(path, 1), kind, path);
        refused(control::is_crawled(path), kind, path);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), before);
}

#[test]
fn looking_whether_a_file_is_crawled_keeps_nobody_from_crawling_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, store) = crawl_in(&folder);
    assert!(control::is_crawled(&path).unwrap());
    // A link is another name, not another file.
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink("crawl.db", &link).unwrap();
    assert!(control::is_crawled(&link).unwrap());
    // Reading is not crawling.
    drop(store);
    let reader = SqliteStore::open(&path, OpenMode::Read).unwrap();
    assert!(!control::is_crawled(&path).unwrap());
    drop(reader);
    let is_over = Arc::new(AtomicBool::new(false));
    let looker = std::thread::spawn({
        let (path, is_over) = (path.clone(), is_over.clone());
        move || {
            while !is_over.load(Ordering::Relaxed) {
                control::is_crawled(&path).unwrap();
                // As somebody who waits for a crawl to end would do.
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    });
    for _ in 0..20 {
        drop(SqliteStore::open(&path, OpenMode::Crawl).unwrap());
    }
    is_over.store(true, Ordering::Relaxed);
    looker.join().unwrap();
    assert!(!control::is_crawled(&path).unwrap());
    std::fs::remove_file(folder.path().join("crawl.db-lock")).unwrap();
    assert!(!control::is_crawled(&path).unwrap());
}

fn page(number: i64) -> Commit {
    let user = |place: i64| Object {
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
        at: WorldTime(number),
        objects: (0..50).map(user).collect(),
        ..Commit::default()
    }
}

/// Not a test by itself: a process that crawls, does what it is told, and never pauses.
#[tokio::test]
async fn child_that_is_told_to_stop() {
    let Ok(file) = std::env::var(FILE) else {
        return;
    };
    let store = SqliteStore::open(Path::new(&file), OpenMode::Crawl).unwrap();
    {
        use std::io::Write as _;
        writeln!(std::io::stdout().lock(), "\ncrawling").unwrap();
    }
    let mut heard = 0;
    for number in 0.. {
        store.commit(vec![page(number)]).await.unwrap();
        for control in store.controls(heard).await.unwrap() {
            heard = control.id;
            let done = Commit {
                controls_done: vec![control.id],
                ..Commit::default()
            };
            store.commit(vec![done]).await.unwrap();
            if control.command == ControlCommand::Stop {
                return;
            }
        }
    }
}

#[test]
fn a_crawl_of_another_process_that_never_pauses_is_told_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crawl.db");
    drop(SqliteStore::open(&path, OpenMode::Crawl).unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "control::child_that_is_told_to_stop",
            "--exact",
            "--nocapture",
        ])
        .env(FILE, &path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while lines.next().unwrap().unwrap() != "crawling" {}
    assert!(control::is_crawled(&path).unwrap());
    let mut asked = Vec::new();
    for command in [ControlCommand::Pause, ControlCommand::Resume] {
        asked.push(control::ask(&path, command, Some("profiles")).unwrap());
    }
    asked.push(control::ask(&path, ControlCommand::Stop, None).unwrap());
    for line in lines {
        drop(line);
    }
    assert!(child.wait().unwrap().success());
    for id in asked {
        assert!(control::is_done(&path, id).unwrap());
    }
    assert!(!control::is_crawled(&path).unwrap());
}
