//! A robot that visits more people than memory holds keeps the others in an order on disk, which may be
//! deleted, replaced by an old copy or left by a kill at any time: nobody is lost with it.

use crate::support::{Folder, Running, Sim, open, rows, text};
use std::path::Path;
use std::process::Command;

const USERS: usize = 120;

fn seeds(sim: &Sim) -> Vec<String> {
    let users = sim.truth("users");
    let handle = |user: &serde_json::Value| user["acct"].as_str().expect("a handle").to_owned();
    users.iter().map(handle).collect()
}

fn crawl(folder: &Folder, sim: &Sim, seeds: &[String], more: &str) -> Command {
    let words = format!(
        "{} --depth 0 --robots statuses --in-memory 24 --limits off --concurrency 4 --history 20 \
         --include-opted-out a-test --json --clock-from {} {more}",
        seeds.join(" "),
        sim.address
    );
    folder.crawl_into("t.db", &sim.address, &words)
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// How many there are, how many have been visited, and how many of them since a time of the world.
fn visited(folder: &Folder, since_us: i64) -> (usize, usize, usize) {
    let tables = open(&folder.path("t.db"));
    let count = |more: &str| {
        let sql = format!("SELECT count(*) FROM frontier WHERE robot = 'statuses' AND {more}");
        let counted = rows(&tables, &sql).into_iter().next().expect("a count");
        counted[0].parse::<usize>().expect("a number")
    };
    (
        count("1 = 1"),
        count("visits > 0"),
        count(&format!("visited_us > {since_us}")),
    )
}

#[test]
fn whatever_becomes_of_the_order_on_disk_nobody_is_lost() {
    let folder = Folder::new();
    let sim = Sim::start(
        &folder,
        &format!("--users {USERS} --seed 4 --limits off --speed 20000"),
    );
    // People take other names as time passes: these are those of the beginning.
    let seeds = seeds(&sim);
    let index = folder.path("t.db.index");
    let old = folder.path("old.index");
    // Killed; an old copy of the order is kept.
    let mut running = Running::start(&mut crawl(&folder, &sim, &seeds, ""));
    sim.wait_for_calls(400);
    assert!(index.exists(), "{USERS} are more than memory holds");
    copy_folder(&index, &old);
    running.kill();
    // Deleted.
    std::fs::remove_dir_all(&index).expect("the order is there");
    let mut running = Running::start(&mut crawl(&folder, &sim, &seeds, ""));
    sim.wait_for_calls(900);
    running.kill();
    // Replaced by the old copy.
    let _ = std::fs::remove_dir_all(&index);
    copy_folder(&old, &index);
    let tables = open(&folder.path("t.db"));
    let sql = "SELECT max(at_us) FROM query_log";
    let newest = rows(&tables, sql).into_iter().next().expect("a time");
    let since_us = newest[0].parse().expect("a number");
    let notes = index.join("notes.txt");
    std::fs::write(&notes, "mine").expect("a note");
    let mut last = crawl(&folder, &sim, &seeds, "--max-calls 4000");
    let output = last.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let (all, ever, since) = visited(&folder, since_us);
    // A name that somebody has given up is somebody else when it is named again.
    assert!((USERS..USERS + 10).contains(&all), "{all}");
    assert_eq!(ever, all, "everybody was visited");
    assert_eq!(since, all, "and again since the order was replaced");
    let left = std::fs::read_dir(&index)
        .expect("the note is there")
        .count();
    assert_eq!(left, 1, "a crawl that ends leaves only what is not its own");
    assert!(notes.exists());
}
