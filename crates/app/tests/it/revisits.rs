//! The least time between two visits: an endless crawl keeps it and sleeps till then, a round does
//! not care.

use crate::support::{Folder, Running, Sim};
use std::process::Command;
use std::time::{Duration, Instant};

/// A crawl of what the server says of itself, which rests for a day after a visit.
fn crawl(folder: &Folder, sim: &Sim, words: &str) -> Command {
    let words = format!("somebody --robots instance --limits off {words}");
    folder.crawl_command(&sim.address, &words)
}

#[test]
fn an_endless_crawl_comes_back_when_the_least_time_is_over() {
    let folder = Folder::new();
    // A day lasts a second.
    let arguments = "--users 30 --seed 3 --speed 86400 --limits off";
    let sim = Sim::start(&folder, arguments);
    let started = Instant::now();
    let words = format!("--clock-from {}", sim.address);
    let _running = Running::start(&mut crawl(&folder, &sim, &words));
    sim.wait_for_calls(3);
    assert!(
        started.elapsed() >= Duration::from_secs(2),
        "three visits within less than two days"
    );
}

#[test]
fn a_round_visits_whom_an_endless_crawl_would_let_rest() {
    let folder = Folder::new();
    let arguments = "--users 30 --seed 3 --speed 0 --limits off";
    let sim = Sim::start(&folder, arguments);
    let mut calls = 0;
    for (words, calls_more) in [
        ("--max-time 1s", 1),
        // Nothing is due before tomorrow.
        ("--max-time 1s", 0),
        // The round that the first run began is complete.
        ("--until-idle", 0),
        ("--again", 1),
        ("--until-idle", 0),
        ("--again", 1),
        ("--max-time 1s", 0),
    ] {
        let status = crawl(&folder, &sim, words).status().expect("a run");
        let code = if words.starts_with("--max-time") {
            3
        } else {
            0
        };
        assert_eq!(status.code(), Some(code), "{words}");
        calls += calls_more;
        assert_eq!(sim.calls(), calls, "after {words}");
    }
}

#[test]
fn whom_another_answer_has_told_of_is_left_alone_by_all_but_a_round() {
    let folder = Folder::new();
    // Time stands still: whatever was told is as fresh as can be.
    let sim = Sim::start(&folder, "--users 60 --seed 3 --speed 0 --limits off");
    let seed = sim.first_handle();
    let crawl = |words: &str| {
        let words = format!("{seed} --robots relations,profiles --depth 2 --limits off {words}");
        folder.crawl(&sim.address, &words)
    };
    let asked_for_profiles = || {
        let targets = sim.targets_after(0);
        let is_meant = |target: &&String| target.starts_with("/api/v1/accounts?");
        targets.iter().filter(is_meant).count()
    };
    crawl("--max-time 3s");
    assert!(sim.calls() > 10, "{} calls", sim.calls());
    assert_eq!(asked_for_profiles(), 0, "lists tell all of their members");
    crawl("--again");
    assert!(asked_for_profiles() > 0);
}

/// How often all threads of a process went to sleep so far.
fn sleeps(process: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("its threads");
    let counts = threads.filter_map(|thread| {
        let status = std::fs::read_to_string(thread.ok()?.path().join("status")).ok()?;
        let count = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        count.trim().parse::<u64>().ok()
    });
    counts.sum()
}

#[test]
fn a_crawl_with_nobody_due_sleeps_and_ends_when_it_is_told() {
    let folder = Folder::new();
    let arguments = "--users 30 --seed 3 --speed 0 --limits off";
    let sim = Sim::start(&folder, arguments);
    let mut running = Running::start(&mut crawl(&folder, &sim, ""));
    sim.wait_for_calls(1);
    // Whatever it still had to write is written by then.
    std::thread::sleep(Duration::from_secs(1));
    let process = running.child.id();
    let before = sleeps(process);
    std::thread::sleep(Duration::from_secs(2));
    let woken = sleeps(process) - before;
    // It looks for commands now and then; going round without a rest, it would wake a thousand times
    // a second. A slow machine wakes it less often still.
    assert!(woken < 200, "woken {woken} times in two seconds");
    assert_eq!(sim.calls(), 1);
    running.interrupt();
    assert_eq!(running.wait(), Some(130));
}
