//! No limit is broken: not by two crawls on one token, not by kills.

use crate::kill::run_and_kill;
use crate::oracle::{CORE_ROBOTS, Plan, Truth};
use crate::support::{Dice, Folder, Running, Sim};
use crate::truth::{TOKEN, compare};
use serde_json::Value;
use std::process::Command;

struct World {
    folder: Folder,
    sim: Sim,
    truth: Truth,
    seed: String,
}

impl World {
    /// A small world whose 5-minute windows last four seconds.
    fn strict(users: &str) -> Self {
        let folder = Folder::new();
        let limit_speed =
            std::env::var("KITTIWAKE_TEST_LIMIT_SPEED").unwrap_or_else(|_| "75".into());
        let arguments = [
            "--users", users, "--seed", "9", "--speed", "0", "--limits", "strict",
        ];
        let sim = Sim::start(
            &folder,
            &[&arguments[..], &["--limit-speed", &limit_speed]].concat(),
        );
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

    fn crawl(&self, file: &str, token: Option<&str>) -> Command {
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
            "8",
            "--quiet",
            "--json",
        ]);
        if let Some(token) = token {
            command.env("KITTIWAKE_MASTODON_TOKEN", token);
        }
        command
    }

    fn check(&self, files: &[&str]) {
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
