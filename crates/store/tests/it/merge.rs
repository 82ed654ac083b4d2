//! Crawls that were made apart become one.

use crate::export::{lines, store};
use crate::postgres::schema;
use crate::round_trip::{Step, any_step, apart, take};
use kittiwake_model::Value;
use kittiwake_store::merge::merge;
use kittiwake_store::{Location, OpenMode, StoreErrorKind};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::Path;

fn file(folder: &Path, name: &str) -> Location {
    Location::from(folder.join(name).into_os_string())
}

async fn joined(crawls: &[Location], into: &Location) {
    let all = merge(crawls, into, &mut |_| ControlFlow::Continue(())).await;
    all.unwrap();
}

async fn filled(folder: &Path, name: &str, steps: &[Step]) -> Location {
    let store = store(folder, name);
    for step in steps {
        take(&store, step.clone()).await;
    }
    file(folder, name)
}

/// Everything that a crawl has found, in no order, history field by field: which fields of one
/// observation were overruled together depends on what came when.
async fn content(place: &Location) -> Vec<String> {
    let text = lines(&*place.open(OpenMode::Read).unwrap()).await;
    let mut rows = BTreeSet::new();
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let history = ["fields", "counts"]
            .iter()
            .find_map(|name| row[*name].as_object());
        let Some(fields) = history else {
            rows.insert(line.to_owned());
            continue;
        };
        for (field, value) in fields {
            let mut alone = row.clone();
            for name in ["fields", "counts", "kinds"] {
                alone[name].take();
            }
            rows.insert(format!("{alone} {field}: {value} {}", row["kinds"][field]));
        }
    }
    rows.into_iter().collect()
}

/// Rows that only one of two has.
async fn differences(one: &Location, other: &Location) -> (Vec<String>, Vec<String>) {
    let (one, other) = (content(one).await, content(other).await);
    let missing = |from: &[String], of: &[String]| -> Vec<String> {
        let missing = of.iter().filter(|row| !from.contains(row));
        missing.cloned().collect()
    };
    (missing(&other, &one), missing(&one, &other))
}

/// The steps of one of three crawls, each on a day of its own: within a day, the last sight of an id that
/// cannot move is not noted again, and of two values that were seen at the same moment the greater one is
/// kept, which for objects is decided by their keys.
fn at_days(steps: Vec<Step>, place: i64) -> Vec<Step> {
    const DAYS_US: i64 = 2 * 86_400_000_000;
    let mut steps = apart(steps, 0);
    for (step, number) in steps.iter_mut().zip(0..) {
        step.at_us = ((step.at_us.min(100) * 3 + place) * 100 + number) * DAYS_US;
        let groups = step
            .objects
            .iter_mut()
            .flat_map(|object| &mut object.groups);
        for group in groups.skip(1) {
            let is_object = |value: &Value| matches!(value, Value::Object(_));
            group.fields.retain(|(_, value)| !is_object(value));
        }
    }
    steps
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Three crawls that were made one after the other, and one that has seen everything.
    #[test]
    fn crawls_that_are_merged_equal_one_that_has_seen_it_all(
        steps in prop::collection::vec(prop::collection::vec(any_step(), 1..4), 3),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let steps: Vec<Vec<Step>> = steps
                .into_iter()
                .zip(0..)
                .map(|(steps, place)| at_days(steps, place))
                .collect();
            let mut crawls = Vec::new();
            for (steps, name) in steps.iter().zip(["a.db", "b.db", "c.db"]) {
                crawls.push(filled(folder.path(), name, steps).await);
            }
            let one = filled(folder.path(), "one.db", &steps.concat()).await;
            let merged = file(folder.path(), "merged.db");
            joined(&crawls, &merged).await;
            let none = (Vec::new(), Vec::new());
            prop_assert_eq!(differences(&merged, &one).await, none);
            let rows = |place: &Location| place.open(OpenMode::Read).unwrap();
            let (mut merged_rows, mut one_rows) = (
                rows(&merged).summary().await.unwrap().rows,
                rows(&one).summary().await.unwrap().rows,
            );
            let own = ["key_merges", "id_places", "put_off", "relax", "rules", "field_lists", "types"];
            for own in own.into_iter().chain(["versions", "counts"]) {
                merged_rows.remove(own);
                one_rows.remove(own);
            }
            prop_assert_eq!(merged_rows, one_rows);
            Ok(())
        })?;
    }
}

/// Steps of one crawl, enough for several stretches.
fn many(seed: u8, steps: usize) -> Vec<Step> {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = prop::collection::vec(any_step(), steps);
    let steps = strategy.new_tree(&mut runner).unwrap().current();
    at_days(steps, i64::from(seed))
}

#[tokio::test]
async fn a_merge_that_was_stopped_begins_again_and_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut crawls = Vec::new();
    for (seed, name) in [(1, "a.db"), (2, "b.db"), (3, "c.db")] {
        crawls.push(filled(folder.path(), name, &many(seed, 60)).await);
    }
    let whole = file(folder.path(), "whole.db");
    joined(&crawls, &whole).await;
    let schema = schema();
    let server = Location::from(OsString::from(&schema.url));
    let mut stops = 0;
    for steps in 1..50 {
        let mut left = steps;
        let stopped = merge(&crawls, &server, &mut |_| {
            left -= 1;
            if left == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
        .await;
        if stopped.is_ok() {
            break;
        }
        stops += 1;
        let error = server.open(OpenMode::Read).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unfinished);
        assert!(error.to_string().contains("kittiwake merge"), "{error}");
    }
    assert!(stops > 1, "{stops}");
    assert_eq!(content(&server).await, content(&whole).await);
}
