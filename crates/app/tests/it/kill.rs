//! Killed at any instruction, a crawl loses nothing and asks for nothing twice.

use crate::oracle::{ALL_ROBOTS, Plan, Truth};
use crate::support::{Dice, Folder, Place, Running, Sim, rows};
use crate::truth::{TOKEN, compare};
use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

const CRASH_POINTS: [&str; 4] = [
    "grant-and-send",
    "send-and-answer",
    "answer-and-commit",
    "commit-and-acknowledge",
];

/// How long a crawl may take to come to the moment at which it is killed.
const MOMENT_MAX: Duration = Duration::from_mins(1);

/// Kills one process at a moment that the dice choose: after some calls, or at a crash point.
/// Returns what was hit, or `None` if the crawl came to its end first.
pub(crate) fn run_and_kill(
    sim: &Sim,
    command: &mut Command,
    dice: &mut Dice,
    round: u64,
) -> Option<String> {
    if round.is_multiple_of(2) {
        let point = CRASH_POINTS[(round / 2) as usize % CRASH_POINTS.len()];
        let count = 1 + dice.below(60);
        let mut process =
            Running::start(command.env("KITTIWAKE_CRASH_POINT", format!("{point}:{count}")));
        let reached = process.line();
        if !reached.starts_with("crash point") {
            assert_eq!(process.wait(), Some(0), "it ended by itself, and not well");
            return None;
        }
        process.kill();
        return Some(point.to_owned());
    }
    let before = sim.calls();
    let after = 1 + dice.below(80);
    let extra = Duration::from_micros(dice.below(3_000));
    let mut process = Running::start(command);
    let started = Instant::now();
    while sim.calls() < before + after {
        if process.has_ended() {
            assert_eq!(process.wait(), Some(0), "it ended by itself, and not well");
            return None;
        }
        assert!(started.elapsed() < MOMENT_MAX, "the crawl does not come on");
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(extra);
    process.kill();
    Some(format!("after {after} calls"))
}

/// The calls whose answers are committed.
pub(crate) fn committed(place: &dyn Place) -> BTreeSet<String> {
    let tables = place.tables();
    let Some(tables) = tables.filter(|tables| tables.has_table("query_log")) else {
        return BTreeSet::new();
    };
    let sql = "SELECT DISTINCT target FROM query_log WHERE outcome IN ('ok', 'empty', 'not found', 'gone')";
    rows(&*tables, sql).into_iter().flatten().collect()
}

/// Kills a crawl again and again, into a place of the folder, and compares what is there in the end.
pub(crate) fn kill_test(folder: &Folder, place: &dyn Place, users: &str, kills_wanted: u64) {
    let mut dice = Dice::new("the kill test");
    let words = format!("--users {users} --seed 5 --speed 0 --limits off");
    let sim = Sim::start(folder, &words);
    let truth = Truth::read(&sim);
    let plan = Plan {
        seed: &truth.seed(),
        depth: 2,
        robots: ALL_ROBOTS,
        include_opted_out: true,
    };
    let words = format!("{} --until-idle --limits off --concurrency 8", plan.words());
    let crawl = || {
        let mut command = folder.crawl_into(&place.name(), &sim.address, &words);
        command.env("KITTIWAKE_MASTODON_TOKEN", TOKEN);
        command
    };
    let mut kills = Vec::new();
    let mut known = BTreeSet::new();
    let mut heard = 0;
    for round in 0..kills_wanted {
        let killed = run_and_kill(&sim, &mut crawl(), &mut dice, round);
        let calls = sim.targets_after(heard);
        let repeated = calls.iter().find(|target| known.contains(*target));
        assert_eq!(repeated, None, "asked for again although committed");
        heard += calls.len() as u64;
        known = committed(place);
        kills.push(killed.expect("the world is large enough for every kill"));
    }
    let mut last = Running::start(&mut crawl());
    assert_eq!(last.wait(), Some(0));
    let repeated = sim
        .targets_after(heard)
        .into_iter()
        .find(|target| known.contains(target));
    assert_eq!(repeated, None, "asked for again although committed");
    compare(place, &truth, plan);
    println!(
        "{} kills, {} calls: {}",
        kills.len(),
        sim.calls(),
        kills.join(", ")
    );
}

/// How large a world, and how many kills; those in quick mode, or all.
pub(crate) fn how_often() -> (&'static str, u64) {
    if std::env::var_os("KITTIWAKE_TEST_QUICK").is_some() {
        return ("60", 8);
    }
    ("250", 50)
}

#[test]
fn fifty_kills_lose_nothing_and_repeat_nothing() {
    let folder = Folder::new();
    let (users, kills) = how_often();
    kill_test(&folder, &folder.path("t.db"), users, kills);
}
