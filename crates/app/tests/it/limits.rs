//! No limit is broken: not by two crawls on one token, not by kills.

use crate::kill::{committed, run_and_kill};
use crate::oracle::{CORE_ROBOTS, Plan, Truth};
use crate::support::{Dice, Folder, Running, Sim, open, rows};
use crate::truth::{TOKEN, compare};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

/// Calls that a crawl has in flight at most.
const CONCURRENCY: u64 = 8;
/// Answers that may wait to be committed beside the calls that are under way.
const ANSWERS_MAX: u64 = 64;
/// How long a crawl may take to use up a window.
const WINDOW_TIME_MAX: Duration = Duration::from_mins(2);

pub(crate) struct World {
    pub(crate) folder: Folder,
    pub(crate) sim: Sim,
    truth: Truth,
    seed: String,
}

impl World {
    /// A small world whose 5-minute windows last four seconds.
    pub(crate) fn strict(users: &str) -> Self {
        let limit_speed =
            std::env::var("KITTIWAKE_TEST_LIMIT_SPEED").unwrap_or_else(|_| "75".into());
        Self::start(users, &limit_speed)
    }

    /// A small world in which the time of limits all but stands still: a window ends only when it
    /// is moved on, so that every machine, however slow, comes to its last call.
    fn standing_still(users: &str) -> Self {
        Self::start(users, "0.001")
    }

    fn start(users: &str, limit_speed: &str) -> Self {
        let folder = Folder::new();
        let words = format!(
            "--users {users} --seed 9 --speed 0 --limits strict --limit-speed {limit_speed}"
        );
        let sim = Sim::start(&folder, &words);
        let truth = Truth::read(&sim);
        let seed = truth.seed();
        Self {
            folder,
            sim,
            truth,
            seed,
        }
    }

    fn plan(&self) -> Plan<'_> {
        Plan {
            seed: &self.seed,
            depth: 2,
            robots: CORE_ROBOTS,
            include_opted_out: true,
        }
    }

    pub(crate) fn crawl(&self, file: &str, token: Option<&str>) -> Command {
        let mut command = self.folder.kittiwake();
        let address = &self.sim.address;
        command.args([
            "crawl",
            "mastodon",
            "--host",
            address,
            "--clock-from",
            address,
        ]);
        command.args(self.plan().words().split(' '));
        command.args([
            "--into",
            file,
            "--until-idle",
            "--concurrency",
            &CONCURRENCY.to_string(),
            "--quiet",
            "--json",
        ]);
        if let Some(token) = token {
            command.env("KITTIWAKE_MASTODON_TOKEN", token);
        }
        command
    }

    /// Moves the time of limits on to a moment after the beginning of fresh windows.
    fn open_windows(&self) {
        const LONGEST_S: i64 = 900;
        let clock = self.sim.json("/_sim/clock");
        let now_s = clock["limit"]["origin_us"].as_i64().expect("a time") / 1_000_000;
        let span_s = LONGEST_S - now_s.rem_euclid(LONGEST_S) + 1;
        self.sim
            .get(&format!("/_sim/advance?limit_seconds={span_s}"));
    }

    /// Calls that the latest window of an address let through, and how many it permits.
    fn latest_window(&self) -> (u64, u64) {
        let ledger = self.sim.json("/_sim/ledger?calls=0");
        let windows = ledger["windows"].as_array().expect("windows");
        let ours = windows
            .iter()
            .filter(|window| window["bucket"] == "unauthenticated_api");
        let latest = ours.max_by_key(|window| window["start_us"].as_i64());
        let count = |key: &str| latest.and_then(|window| window[key].as_u64()).unwrap_or(0);
        (count("used"), count("limit"))
    }

    /// Waits until the crawl has made the last call of its window; false if it ends before that.
    fn comes_to_the_last_call(&self, crawl: &mut Running) -> bool {
        let started = Instant::now();
        loop {
            // Asked first: a crawl that has ended makes no further call.
            let has_ended = crawl.has_ended();
            let (used, limit) = self.latest_window();
            if has_ended || (limit > 0 && used == limit) {
                return !has_ended;
            }
            assert!(
                started.elapsed() < WINDOW_TIME_MAX,
                "{used} of {limit} calls are made, and no more come"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn check(&self, files: &[&str]) {
        assert_eq!(
            self.sim.violations(),
            0,
            "{}",
            self.sim.get("/_sim/ledger?calls=0")
        );
        let windows = &self.sim.json("/_sim/ledger?calls=0")["windows"];
        let share = |window: &Value| {
            window["used"].as_f64().unwrap_or(0.0) / window["limit"].as_f64().unwrap_or(1.0)
        };
        let shares: Vec<f64> = windows
            .as_array()
            .into_iter()
            .flatten()
            .map(share)
            .collect();
        let bound = shares.iter().filter(|share| **share >= 0.9).count();
        println!(
            "{} calls; of {} windows, {bound} were used to 90 % or more",
            self.sim.calls(),
            shares.len()
        );
        for file in files {
            compare(&self.folder.path(file), &self.truth, self.plan());
        }
    }
}

#[test]
fn an_anonymous_crawl_keeps_every_limit() {
    let world = World::strict("150");
    let mut crawl = Running::start(&mut world.crawl("a.db", None));
    assert_eq!(crawl.wait(), Some(0));
    world.check(&["a.db"]);
}

#[test]
fn two_crawls_on_one_token_keep_its_limits_while_being_killed() {
    let mut dice = Dice::new("two crawls on one token");
    let quick = std::env::var_os("KITTIWAKE_TEST_QUICK").is_some();
    let world = World::strict(if quick { "150" } else { "500" });
    let kills_wanted = if quick { 6 } else { 40 };
    let mut other = Running::start(&mut world.crawl("b.db", Some(TOKEN)));
    let (mut kills, mut kills_of_other) = (0, 0);
    for round in 0..kills_wanted {
        let killed = run_and_kill(
            &world.sim,
            &mut world.crawl("a.db", Some(TOKEN)),
            &mut dice,
            round,
        );
        if killed.is_none() {
            break;
        }
        kills += 1;
        if round % 4 == 3 {
            other.kill();
            other = Running::start(&mut world.crawl("b.db", Some(TOKEN)));
            kills_of_other += 1;
        }
        assert_eq!(world.sim.violations(), 0, "after {kills} kills");
    }
    let mut last = Running::start(&mut world.crawl("a.db", Some(TOKEN)));
    assert_eq!(last.wait(), Some(0));
    assert_eq!(other.wait(), Some(0));
    println!("{kills} kills of one crawl, {kills_of_other} of the other");
    assert!(kills > 3, "the crawl was over before it could be killed");
    world.check(&["a.db", "b.db"]);
    no_secret_in(&world.folder);
}

/// Sees to it that nothing is asked for again of which the answer is committed.
#[derive(Default)]
struct Memory {
    committed: BTreeSet<String>,
    heard: u64,
}

impl Memory {
    /// To be called when a process is over.
    fn hold_against(&mut self, world: &World, file: &str) {
        let calls = world.sim.targets_after(self.heard);
        let repeated = calls.iter().find(|target| self.committed.contains(*target));
        assert_eq!(repeated, None, "asked for again although committed");
        self.heard += calls.len() as u64;
        self.committed = committed(&world.folder.path(file));
    }
}

#[test]
fn windows_are_used_to_the_last_call_and_no_further() {
    let mut dice = Dice::new("windows used to the last call");
    let world = World::standing_still("500");
    let mut memory = Memory::default();
    let (mut windows_full, mut kills) = (0, 0);
    for round in 0.. {
        assert!(round < 60, "the crawl does not come to its end");
        world.open_windows();
        if round % 2 == 1 {
            // A window of kills: what a process held that was killed is lost to it.
            for _ in 0..2 {
                let crawl = &mut world.crawl("a.db", None);
                let killed = run_and_kill(&world.sim, crawl, &mut dice, kills);
                kills += u64::from(killed.is_some());
                memory.hold_against(&world, "a.db");
            }
            continue;
        }
        let mut crawl = Running::start(&mut world.crawl("a.db", None));
        if !world.comes_to_the_last_call(&mut crawl) {
            assert_eq!(crawl.wait(), Some(0));
            memory.hold_against(&world, "a.db");
            break;
        }
        windows_full += 1;
        // Time enough for a call too many.
        std::thread::sleep(Duration::from_millis(200));
        assert!(!crawl.has_ended(), "it waits for the next window");
        if round % 4 == 0 {
            crawl.kill();
            kills += 1;
        } else {
            crawl.interrupt();
            assert_eq!(crawl.wait(), Some(130), "waiting, it ends when told");
        }
        memory.hold_against(&world, "a.db");
        assert_eq!(world.sim.violations(), 0, "in window {round}");
    }
    println!("{windows_full} windows full, {kills} kills");
    assert!(windows_full >= 2, "the world is too small for its limits");
    world.check(&["a.db"]);
    // Whatever was asked for is in the log, but for what was under way or not committed yet at a
    // kill.
    let connection = open(&world.folder.path("a.db"));
    let logged = rows(&connection, "SELECT count(*) FROM query_log");
    let logged: u64 = logged
        .first()
        .and_then(|row| row[0].parse().ok())
        .expect("a count");
    let asked = world.sim.calls();
    assert!(logged <= asked && asked - logged <= kills * (CONCURRENCY + ANSWERS_MAX));
}

/// The token is nowhere on disk.
fn no_secret_in(folder: &Folder) {
    let mut folders = vec![folder.path("")];
    let mut read = 0;
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).expect("a file");
            let secret = b"planted-secret-0123456789";
            let found = bytes.windows(secret.len()).any(|part| part == secret);
            assert!(!found, "the token is in {}", path.display());
            read += 1;
        }
    }
    assert!(read >= 3, "the files were looked at");
}
