//! A network that misbehaves: what passes leaves no trace in the rows, what changes the world is
//! told by the network's own log, and nothing is lost without an outcome.

use crate::oracle::{ALL_ROBOTS, Expected, Plan, Truth};
use crate::support::{Folder, Running, Sim, open, rows};
use crate::truth::{TABLES, TOKEN, compare, held_rows, names};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a crawl may hold in memory, in kibibytes, whatever it is sent. A small world needs a third
/// of it.
const MEMORY_KIB_MAX: u64 = 200 * 1_024;

struct World {
    folder: Folder,
    sim: Sim,
    truth: Truth,
}

impl World {
    /// A small frozen world with strict limits whose windows pass in half a second.
    fn with_faults(faults: &str, users: &str) -> Self {
        let folder = Folder::new();
        let fixed = "--seed 5 --speed 0 --limits strict --limit-speed 600 --stall-ms 50";
        let words = format!("{fixed} --users {users} --faults {faults}");
        let sim = Sim::start(&folder, &words);
        let truth = Truth::read(&sim);
        Self { folder, sim, truth }
    }

    /// Crawls all of it; the most memory that the crawl held.
    fn crawl(&self, plan: Plan<'_>) -> u64 {
        let address = &self.sim.address;
        let words = format!(
            "{} --clock-from {address} --until-idle --concurrency 8",
            plan.words()
        );
        let mut command = self.folder.crawl_command(address, &words);
        command.env("KITTIWAKE_MASTODON_TOKEN", TOKEN);
        let mut crawl = Running::start(&mut command);
        let mut memory_kib = 0;
        while !crawl.has_ended() {
            memory_kib = memory_kib.max(peak_kib(crawl.child.id()));
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(crawl.wait(), Some(0));
        memory_kib
    }

    fn faults(&self) -> BTreeMap<String, u64> {
        let summary = self.sim.json("/_sim/faults/summary");
        let kinds = summary["by_kind"].as_object().expect("counts by kind");
        kinds
            .iter()
            .map(|(kind, count)| (kind.clone(), count.as_u64().unwrap_or(0)))
            .collect()
    }
}

/// The most memory that a process ever held; 0 when it has ended.
fn peak_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0)
}

fn plan(seed: &str) -> Plan<'_> {
    Plan {
        seed,
        depth: 3,
        robots: ALL_ROBOTS,
        include_opted_out: true,
    }
}

#[test]
fn faults_in_passing_leave_no_trace_in_the_rows() {
    let world = World::with_faults("mild", "100");
    let seed = world.truth.seed();
    world.crawl(plan(&seed));
    let happened = world.faults().values().sum::<u64>();
    assert!(happened > 20, "hardly a fault happened: {happened}");
    assert_eq!(world.sim.violations(), 0);
    compare(&world.folder.path("t.db"), &world.truth, plan(&seed));
}

#[test]
fn a_hostile_network_takes_only_what_its_log_says() {
    let world = World::with_faults("hostile", "100");
    let seed = world.truth.seed();
    let memory_kib = world.crawl(plan(&seed));
    let faults = world.faults();
    let absent: Vec<_> = faults.iter().filter(|(_, count)| **count == 0).collect();
    assert!(absent.is_empty(), "faults that never happened: {absent:?}");
    // Calls that the network refused without a reason are no fault of ours.
    assert_eq!(world.sim.violations(), 0);
    assert!(memory_kib < MEMORY_KIB_MAX, "{memory_kib} KiB");
    let after = Truth::read(&world.sim);
    let (most, least) = (
        world.truth.expected(plan(&seed)),
        after.expected(plan(&seed)),
    );
    let withdrawn = withdrawn(&world.sim);
    assert!(!withdrawn.is_empty(), "nothing was withdrawn");
    held_between(&world, &least, &most, &withdrawn);
    every_visit_has_an_outcome(&world);
    println!(
        "{faults:?}; {} withdrawn; {memory_kib} KiB",
        withdrawn.len()
    );
}

/// Everything that the network's log says was taken away.
fn withdrawn(sim: &Sim) -> BTreeSet<String> {
    let log = sim.get("/_sim/faults?limit=100000");
    let mut ids = BTreeSet::new();
    for line in log.lines() {
        let fault: Value = serde_json::from_str(line).expect("a JSON line");
        for id in fault["withdrew"]["ids"].as_array().into_iter().flatten() {
            ids.insert(id.as_str().map_or_else(|| id.to_string(), str::to_owned));
        }
    }
    ids
}

/// What is there after all faults is held, and nothing is held that never was there. Counts differ
/// with the moment and are left out.
fn held_between(world: &World, least: &Expected, most: &Expected, withdrawn: &BTreeSet<String>) {
    let connection = open(&world.folder.path("t.db"));
    let names = names(&connection, &world.truth);
    let mut lost = 0;
    for (table, sql) in TABLES {
        let columns = match table {
            // The root of a conversation is not known once a part of it is withdrawn.
            "users" | "statuses" | "tags" | "comments" => 1,
            _ => usize::MAX,
        };
        let cut = |rows: &BTreeSet<Vec<String>>| -> BTreeSet<Vec<String>> {
            let cut = |row: &Vec<String>| row.iter().take(columns).cloned().collect();
            rows.iter().map(cut).collect()
        };
        let mut held = held_rows(&connection, &names, sql);
        if table == "user_relations" {
            // Withdrawn while it was walked, a relation may have been seen to vanish.
            let gone = sql.replace("user_relations", "invalid_relations");
            held.extend(held_rows(&connection, &names, &gone));
        }
        let (held, least, most) = (cut(&held), cut(least.table(table)), cut(most.table(table)));
        let missing: Vec<_> = least.difference(&held).take(3).collect();
        assert!(
            missing.is_empty(),
            "{table} lost without a word: {missing:?}"
        );
        let invented: Vec<_> = held.difference(&most).take(3).collect();
        assert!(invented.is_empty(), "{table} invented: {invented:?}");
        lost += most.difference(&held).count();
    }
    println!(
        "{lost} rows were withdrawn unseen, of {} withdrawals",
        withdrawn.len()
    );
}

fn every_visit_has_an_outcome(world: &World) {
    let connection = open(&world.folder.path("t.db"));
    let unvisited = "SELECT subject, robot FROM frontier WHERE visits = 0 AND robot <> 'updates'";
    assert!(
        rows(&connection, unvisited).is_empty(),
        "not everybody was visited"
    );
    let silent = "SELECT f.subject, f.robot FROM frontier f WHERE f.visits > 0 AND NOT EXISTS (
                    SELECT 1 FROM outcomes o WHERE o.key = f.subject)";
    assert!(
        rows(&connection, silent).is_empty(),
        "a visit without an outcome"
    );
    // Every call that was made has a row in the log.
    let logged = rows(&connection, "SELECT count(*) FROM query_log");
    let made = world.sim.calls();
    let logged: u64 = logged
        .into_iter()
        .flatten()
        .next()
        .expect("a count")
        .parse()
        .expect("a number");
    assert!(logged >= made, "{made} calls, {logged} rows in the log");
}
