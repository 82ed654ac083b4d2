//! A crawl from one place to another is the same crawl.

use crate::export::{at, commit, identity, lines, log_row, store};
use crate::postgres::schema;
use crate::round_trip::{any_step, take};
use kittiwake_model::{Commit, CommitReport, Group, Object, Standing, Table, Value};
use kittiwake_store::copy::{CopyReport, CopyStep, copy};
use kittiwake_store::{Location, OpenMode, Store, StoreError, StoreErrorKind};
use proptest::prelude::*;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::Path;

fn file(folder: &Path, name: &str) -> Location {
    Location::from(folder.join(name).into_os_string())
}

fn whole(from: &Location, to: &Location) -> CopyReport {
    copy(from, to, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Copies until so many steps were told.
fn partly(from: &Location, to: &Location, steps: usize) -> Result<CopyReport, StoreError> {
    let mut left = steps;
    copy(from, to, &mut |_| {
        left = left.saturating_sub(1);
        if left == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
}

/// Users from one number to another, met in one call.
fn users(numbers: std::ops::Range<u32>, text: &str) -> Commit {
    let user = |number: u32| Object {
        identity: identity("user", Some(&format!("https://h/{number}"))),
        known_as: None,
        table: Table::Users,
        groups: vec![Group {
            name: "card".into(),
            fields: vec![("display_name".into(), Value::Text(text.to_owned()))],
        }],
        standing: Standing::Present,
    };
    Commit {
        log: Some(log_row()),
        objects: numbers.map(user).collect(),
        ..at(i64::from(text.len() as u32))
    }
}

async fn filled(place: &Location, numbers: std::ops::Range<u32>, text: &str) {
    let store = place.open(OpenMode::Crawl).unwrap();
    for begin in numbers.clone().step_by(1_000) {
        let end = numbers.end.min(begin + 1_000);
        commit(&*store, users(begin..end, text)).await;
    }
}

async fn report_of(store: &dyn Store, commit: Commit) -> CommitReport {
    store.commit(vec![commit]).await.unwrap().remove(0)
}

/// What is there, without what is each place's own.
async fn content(place: &Location) -> String {
    lines(&*place.open(OpenMode::Read).unwrap()).await
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_crawl_goes_to_a_server_and_back(steps in prop::collection::vec(any_step(), 1..7)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let first = store(folder.path(), "a.db");
            for step in steps {
                take(&first, step).await;
            }
            drop(first);
            let schema = schema();
            let server = Location::from(OsString::from(&schema.url));
            let (first, back) = (file(folder.path(), "a.db"), file(folder.path(), "b.db"));
            let there = whole(&first, &server);
            prop_assert_eq!(&whole(&server, &back), &there);
            let again = file(folder.path(), "c.db");
            prop_assert_eq!(&whole(&back, &again), &there);
            let text = content(&first).await;
            prop_assert_eq!(&content(&server).await, &text);
            prop_assert_eq!(&content(&again).await, &text);
            Ok(())
        })?;
    }
}

async fn goes_on_after_stops(target: &Location) {
    let folder = tempfile::tempdir().unwrap();
    let source = file(folder.path(), "a.db");
    filled(&source, 0..9_000, "first").await;
    let mut stops = 0;
    // Ever further, until nothing stops it; meanwhile the crawl goes on.
    for steps in 1..200 {
        match partly(&source, target, steps) {
            Ok(_) => break,
            Err(error) => assert_eq!(error.kind(), StoreErrorKind::Stopped),
        }
        stops += 1;
        for mode in [OpenMode::Crawl, OpenMode::Read] {
            let error = target.open(mode).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Unfinished);
            assert!(error.to_string().contains("kittiwake copy"), "{error}");
        }
        if steps % 8 == 0 {
            let begin = steps as u32 * 500;
            filled(&source, begin..begin + 100, "a later name").await;
        }
    }
    assert!(stops > 10, "{stops}");
    let fresh = file(folder.path(), "fresh.db");
    let wanted = whole(&source, &fresh);
    assert_eq!(content(target).await, content(&fresh).await);
    let error = partly(&source, target, 9_999).unwrap_err();
    assert!(error.to_string().contains("a crawl already"), "{error}");
    assert!(wanted.tables["users"].rows >= 9_000);
}

#[tokio::test]
async fn a_stopped_copy_into_a_file_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    goes_on_after_stops(&file(folder.path(), "copy.db")).await;
}

#[tokio::test]
async fn a_stopped_copy_into_a_server_goes_on() {
    let schema = schema();
    goes_on_after_stops(&Location::from(OsString::from(&schema.url))).await;
}

#[tokio::test]
async fn what_was_brought_before_is_not_brought_again() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (file(folder.path(), "a.db"), file(folder.path(), "b.db"));
    filled(&source, 0..9_000, "first").await;
    // Nearly at the end: everything is there, and was not compared yet.
    let mut is_copied = false;
    let stopped = copy(&source, &target, &mut |step| {
        is_copied |= matches!(step, CopyStep::Compared { .. });
        if is_copied {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!(stopped.unwrap_err().kind(), StoreErrorKind::Stopped);
    let report = whole(&source, &target);
    assert!(report.is_continued);
    for (table, copied) in report.tables {
        assert_eq!(copied.found, copied.rows, "{table}");
    }
}

#[tokio::test]
async fn a_crawl_that_is_running_is_copied_as_it_was_at_one_moment_and_the_copy_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let source = file(folder.path(), "a.db");
    filled(&source, 0..3_000, "first").await;
    let running = source.open(OpenMode::Crawl).unwrap();
    let target = file(folder.path(), "b.db");
    let copying = {
        let (source, target) = (source.clone(), target.clone());
        tokio::task::spawn_blocking(move || whole(&source, &target))
    };
    // Each commit meets one user in one call.
    for number in 3_000..3_200 {
        commit(&*running, users(number..number + 1, "later")).await;
    }
    let report = copying.await.unwrap();
    // The first 3 calls met 3000.
    let (users_then, calls_then) = (report.tables["users"].rows, report.tables["query_log"].rows);
    assert_eq!(users_then - 3_000, calls_then - 3);
    // Whoever was met before is known to the copy; it gives out keys and numbers of its own.
    let copy = target.open(OpenMode::Crawl).unwrap();
    let known = report_of(&*copy, users(0..10, "the newest name")).await;
    assert_eq!(
        (known.rows_new, known.log),
        (0, Some(calls_then as i64 + 1))
    );
    let new = report_of(&*copy, users(9_000..9_010, "new")).await;
    assert_eq!(new.rows_new, 10);
    let rows = copy.summary().await.unwrap().rows;
    assert_eq!(rows["users"], users_then + 10);
}

#[tokio::test]
async fn a_copy_on_a_server_goes_on_counting() {
    use kittiwake_model::ControlCommand;
    let folder = tempfile::tempdir().unwrap();
    let source = file(folder.path(), "a.db");
    filled(&source, 0..10, "first").await;
    let last = (0..3).map(|_| source.ask(ControlCommand::Pause, None).unwrap());
    let last = last.max().unwrap();
    let schema = schema();
    let server = Location::from(OsString::from(&schema.url));
    whole(&source, &server);
    let next = server.ask(ControlCommand::Resume, None).unwrap();
    assert_eq!(next, last + 1);
}

#[tokio::test]
async fn a_file_of_another_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let source = file(folder.path(), "a.db");
    filled(&source, 0..10, "first").await;
    let notes = folder.path().join("notes.txt");
    std::fs::write(&notes, "milk, bread").unwrap();
    let error = partly(&source, &Location::File(notes.clone()), 9_999).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::NotOurs);
    assert_eq!(std::fs::read_to_string(notes).unwrap(), "milk, bread");
    let error = partly(&file(folder.path(), "none.db"), &source, 9_999).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Missing);
    assert!(!folder.path().join("none.db").exists());
}
