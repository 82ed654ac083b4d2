//! `kittiwake simulate --partition`: dividing work among machines, through the binary.

use crate::simulate::{lines, simulate};
use crate::support::{Folder, text};
use serde_json::Value;
use std::fmt::Write;

/// A hundred users at different paces for thirty days.
fn town() -> String {
    let mut trace = String::from("user,unix_seconds\n");
    for user in 0..100_u64 {
        let gap_s = 600 * (user + 3);
        for step in 0..30 * 86_400 / gap_s {
            let _ = writeln!(trace, "u{user},{}", 1_700_000_000 + step * gap_s);
        }
    }
    trace
}

fn number(object: &Value, path: &str) -> f64 {
    let found = object.pointer(path).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no number {path} in {object}"))
}

#[test]
fn every_number_of_parts_prints_its_rows_and_its_ring() {
    let folder = Folder::new();
    std::fs::write(folder.path("t.csv"), town()).expect("a file");
    let objects = lines(&simulate(
        &folder,
        "t.csv --partition 2,5 --users 60,100 --json",
    ));
    assert_eq!(objects.len(), 2 * (2 + 3));
    for object in &objects {
        assert_eq!(object["population"], "trace");
        assert_eq!(object["seed"], 1);
    }
    let is_row = |object: &&Value| object["experiment"] == "partition";
    let rows: Vec<&Value> = objects.iter().filter(is_row).collect();
    let sizes: Vec<(f64, f64)> = rows
        .iter()
        .map(|row| (number(row, "/parts"), number(row, "/users")))
        .collect();
    assert_eq!(
        sizes,
        [(2.0, 60.0), (2.0, 100.0), (5.0, 60.0), (5.0, 100.0)]
    );
    for row in rows {
        assert_eq!(row["set_division_is_proven"], true);
        let difference = |method: &str| number(row, &format!("/{method}/difference"));
        assert!(
            difference("set_division") <= difference("round_robin") + 0.05,
            "{row}"
        );
        assert!(difference("round_robin") < difference("random"), "{row}");
        assert!(
            number(row, "/ring/pairwise") >= difference("ring") - 1e-9,
            "{row}"
        );
        assert!(number(row, "/total_per_day") > 0.0);
    }
    let rings = objects.iter().filter(|object| !is_row(object));
    for (ring, subjects) in rings.zip([1_000, 10_000, 100_000].into_iter().cycle()) {
        assert_eq!(ring["experiment"], "ring");
        assert_eq!(ring["subjects"], subjects);
        assert_eq!(ring["virtual_nodes"], 256);
        for what in ["join", "leave"] {
            let moved = number(ring, &format!("/moved_by_{what}"));
            let fair = number(ring, &format!("/fair_{what}"));
            assert!((moved / fair - 1.0).abs() < 0.3, "{ring}");
        }
        assert!(number(ring, "/subjects_variation") < 0.3, "{ring}");
    }
}

#[test]
fn without_a_trace_a_population_is_made_up_and_said_to_be() {
    let folder = Folder::new();
    let words = "--partition 4 --users 500,2000 --epsilon 0.05 --seed 9";
    let output = simulate(&folder, words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in [
        "a synthetic population of 2000 users",
        "seed 9",
        "4 parts",
        "set division",
        "ring of 4 nodes",
        "100000",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(shown, text(&simulate(&folder, words).stdout));
    // A row is the same whatever stands beside it, and another with another seed.
    let row = |words: &str| lines(&simulate(&folder, words)).remove(0);
    let alone = row("--partition 4 --users 500 --json");
    assert_eq!(alone, row("--partition 4 --users 500,2000 --json"));
    assert_ne!(alone, row("--partition 4 --users 500 --json --seed 2"));
    assert_eq!(alone["population"], "synthetic");
}

#[test]
fn a_heavier_node_gets_its_share() {
    let folder = Folder::new();
    let words = "--partition 3 --node-weights 1,1,2 --virtual-nodes 2000 --users 10 --json";
    let objects = lines(&simulate(&folder, words));
    let ring = objects.last().expect("a ring");
    assert!((number(ring, "/fair_leave") - 0.5).abs() < 1e-9);
    assert!((number(ring, "/moved_by_leave") - 0.5).abs() < 0.05);
    assert!(number(ring, "/subjects_variation") < 0.1, "{ring}");
}

#[test]
fn a_crowded_moment_and_strange_names_are_divided_too() {
    let folder = Folder::new();
    let mut trace = String::from("user,unix_seconds\n");
    for post in 0..3_000 {
        let _ = writeln!(trace, "\"a, \"\"b\"\" {}\",-5", post % 3);
    }
    let _ = writeln!(trace, "{},-5", "x".repeat(3_000));
    std::fs::write(folder.path("moment.csv"), &trace).expect("a file");
    std::fs::write(folder.path("one.csv"), "user,unix_seconds\na,5\n").expect("a file");
    let rows = lines(&simulate(&folder, "moment.csv --partition 3,16 --json"));
    assert!((number(&rows[0], "/total_per_day") - 3_001.0).abs() < 1e-6);
    // Three have 1 000 posts each; more machines cannot share them.
    assert!((number(&rows[0], "/set_division/difference") - 1.0).abs() < 1e-6);
    assert!((number(&rows[4], "/set_division/difference") - 1_000.0).abs() < 1e-6);
    let rows = lines(&simulate(&folder, "one.csv --partition 1024 --json"));
    assert!((number(&rows[0], "/ring/difference") - 1.0).abs() < 1e-9);
}

#[test]
fn what_cannot_be_divided_is_told() {
    let folder = Folder::new();
    std::fs::write(folder.path("t.csv"), town()).expect("a file");
    std::fs::write(folder.path("broken.csv"), "user,unix_seconds\na,NaN\n").expect("a file");
    for (words, hint) in [
        ("t.csv --partition 1", "2..=1024"),
        ("t.csv --partition 0", "2..=1024"),
        ("t.csv --partition 2,many", "many"),
        ("t.csv --partition", "--partition"),
        ("t.csv --partition 2 --users 101", "100 users"),
        ("t.csv --partition 2 --users 0", "1..=1000000"),
        ("t.csv --partition 2 --epsilon 0", "above 0"),
        ("t.csv --partition 2 --epsilon inf", "above 0"),
        ("t.csv --partition 2 --virtual-nodes 0", "--virtual-nodes"),
        ("t.csv --partition 2 --node-weights 1,2,3", "3 weights"),
        ("t.csv --partition 2,3 --node-weights 1,2", "3 parts"),
        ("t.csv --partition 2 --node-weights 1,-2", "above 0"),
        ("t.csv --partition 2 --node-weights 1,1e300", "points"),
        ("t.csv --partition 2 --visits-per-day 1", "cannot be used"),
        ("t.csv --partition 2 --policy adaptive", "cannot be used"),
        ("t.csv --partition 2 --one-visit", "cannot be used"),
        ("t.csv --partition 2 --plot out.svg", "cannot be used"),
        ("t.csv --partition 2 --from t.db", "cannot be used"),
        ("t.csv --epsilon 0.1", "--partition"),
        ("t.csv --epsilon 0.1 --visits-per-day 1", "cannot be used"),
        ("t.csv --users 5 --one-visit", "cannot be used"),
        ("broken.csv --partition 2", "line 2"),
        ("missing.csv --partition 2", "missing.csv"),
    ] {
        let output = simulate(&folder, words);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {message}");
        assert!(message.contains(hint), "{words}: {message}");
    }
}
