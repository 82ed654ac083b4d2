//! Crawls that are copied and merged, by the commands.

use crate::kill::run_and_kill;
use crate::postgres::{crawl_words, held, run, server};
use crate::support::{Dice, Folder, Running, Sim, text};
use serde_json::Value;
use std::time::Duration;

fn world(folder: &Folder) -> Sim {
    Sim::start(folder, "--users 40 --seed 9 --speed 0 --limits off")
}

fn handles(sim: &Sim) -> Vec<String> {
    let users = sim.truth("users");
    let names = users.iter().filter_map(|user| user["acct"].as_str());
    names.map(str::to_owned).collect()
}

fn copied(folder: &Folder, from: &str, to: &str) -> Value {
    let said = run(folder, &["copy", from, to, "--json"]);
    serde_json::from_str(&said).expect("JSON")
}

/// Rows that only one of two crawls has.
fn differences(folder: &Folder, one: &str, other: &str) -> (Vec<String>, Vec<String>) {
    let (one, other) = (held(folder, one), held(folder, other));
    assert!(one.len() > 500, "{} rows", one.len());
    let missing = |from: &[String], of: &[String]| -> Vec<String> {
        let missing = of.iter().filter(|row| from.binary_search(row).is_err());
        missing.take(5).cloned().collect()
    };
    (missing(&other, &one), missing(&one, &other))
}

fn same() -> (Vec<String>, Vec<String>) {
    (Vec::new(), Vec::new())
}

#[test]
fn a_half_done_crawl_goes_on_from_a_copy_that_was_there_and_back() {
    let folder = Folder::new();
    let sim = world(&folder);
    let seed = handles(&sim).remove(0);
    run(&folder, &crawl_words(&sim, &seed, "whole.db"));
    let mut half = folder.kittiwake();
    half.args(crawl_words(&sim, &seed, "half.db"));
    let mut dice = Dice::new("a crawl that is copied half way");
    run_and_kill(&sim, &mut half, &mut dice, 1);
    let schema = server::shared().schema();
    let there = copied(&folder, "half.db", &schema.url);
    let back = copied(&folder, &schema.url, "back.db");
    assert_eq!(there["tables"], back["tables"]);
    let before = sim.calls();
    run(&folder, &crawl_words(&sim, &seed, "back.db"));
    assert!(sim.calls() > before, "it was not half done");
    assert_eq!(differences(&folder, "whole.db", "back.db"), same());
    // What was crawled before it was copied was not crawled again.
    let asked: Vec<String> = sim.targets_after(before);
    let done = crate::kill::committed(&folder.path("half.db"));
    let again: Vec<&String> = asked
        .iter()
        .filter(|target| done.contains(*target))
        .collect();
    assert_eq!(again, Vec::<&String>::new());
}

#[test]
fn a_copy_is_refused_where_there_is_a_crawl_and_unfinished_ones_are_not_opened() {
    let folder = Folder::new();
    let sim = world(&folder);
    let names = handles(&sim);
    run(&folder, &crawl_words(&sim, &names[0], "a.db"));
    run(&folder, &["copy", "a.db", "b.db"]);
    let refused = folder.run(&["copy", "a.db", "b.db"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused.stderr);
    assert!(said.contains("there is a crawl already"), "{said}");
    // Killed at any moment, and run again.
    let mut dice = Dice::new("a copy that is killed");
    for round in 0..8 {
        let mut command = folder.kittiwake();
        command.args(["copy", "a.db", "c.db", "--quiet"]);
        let mut process = Running::start(&mut command);
        std::thread::sleep(Duration::from_millis(5 + dice.below(40)));
        if process.has_ended() {
            assert_eq!(process.wait(), Some(0), "round {round}");
            let _ = std::fs::remove_file(folder.path("c.db"));
            continue;
        }
        process.kill();
        let status = folder.run(&["status", "c.db"]);
        if status.status.success() {
            // It was killed when all was done: another copy would be refused, rightly.
            std::fs::remove_file(folder.path("c.db")).expect("the copy is there");
            continue;
        }
        if folder.path("c.db").exists() {
            let said = text(&status.stderr);
            let is_told = ["unfinished copy", "is empty", "another program"];
            assert!(is_told.iter().any(|word| said.contains(word)), "{said}");
        }
    }
    let is_there = folder.run(&["status", "c.db"]).status.success();
    if !is_there {
        run(&folder, &["copy", "a.db", "c.db"]);
    }
    let (first, last) = (
        copied(&folder, "b.db", "d.db"),
        copied(&folder, "c.db", "e.db"),
    );
    assert_eq!(first["tables"], last["tables"]);
}

#[test]
fn three_crawls_that_overlap_are_merged_into_one_of_all_seeds() {
    let folder = Folder::new();
    let sim = world(&folder);
    let names = handles(&sim);
    let seeds = [&names[0], &names[7], &names[13]];
    for (seed, file) in seeds.iter().zip(["a.db", "b.db", "c.db"]) {
        run(&folder, &crawl_words(&sim, seed, file));
    }
    let mut words = crawl_words(&sim, seeds[0], "one.db");
    words.splice(3..3, [&**seeds[1], &**seeds[2]]);
    run(&folder, &words);
    run(
        &folder,
        &["merge", "a.db", "b.db", "c.db", "--into", "merged.db"],
    );
    assert_eq!(differences(&folder, "merged.db", "one.db"), same());
    // Nothing is left to do, by anybody.
    let place = words
        .iter()
        .position(|word| *word == "one.db")
        .expect("a file");
    words[place] = "merged.db";
    let before = sim.calls();
    run(&folder, &words);
    let asked = sim.targets_after(before);
    assert!(asked.is_empty(), "{asked:?}");
    let schema = server::shared().schema();
    run(
        &folder,
        &["merge", "c.db", "a.db", "b.db", "--into", &schema.url],
    );
    assert_eq!(differences(&folder, &schema.url, "one.db"), same());
}

#[test]
fn crawls_that_do_not_go_together_are_not_merged() {
    let folder = Folder::new();
    let (sim, other) = (world(&folder), world(&folder));
    let names = handles(&sim);
    run(&folder, &crawl_words(&sim, &names[0], "a.db"));
    run(&folder, &crawl_words(&other, &names[0], "b.db"));
    let refused = folder.run(&["merge", "a.db", "b.db", "--into", "c.db"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused.stderr);
    assert!(said.contains("its clock is"), "{said}");
    assert!(!folder.path("c.db").exists());
    let alone = folder.run(&["merge", "a.db", "--into", "c.db"]);
    assert_eq!(alone.status.code(), Some(2));
}
