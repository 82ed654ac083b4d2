//! The limits that the benchmark of quotas runs with: the network's and the crawler's are the same.
#![expect(
    clippy::unwrap_used,
    reason = "shared with a benchmark, which stops at any surprise"
)]

#[path = "../../benches/quota/table1.rs"]
mod files;

use crate::support::{Folder, Sim, text};
use std::collections::BTreeSet;
use toml::{Table, Value};

#[test]
fn the_network_and_the_crawler_know_the_same_limits() {
    let limits: Table = files::LIMITS.parse().unwrap();
    let definition: Table = files::definition().parse().unwrap();
    let budgets = definition["budgets"].as_table().unwrap();
    let mut names = BTreeSet::new();
    for bucket in limits["bucket"].as_array().unwrap() {
        let name = bucket["name"].as_str().unwrap();
        let budget = &budgets[name];
        assert_eq!(bucket["limit"], budget["limit"], "{name}");
        assert_eq!(bucket["scope"], budget["scope"], "{name}");
        assert_eq!(bucket["window_seconds"], Value::Integer(900));
        assert_eq!(budget["window"].as_str(), Some("15m"));
        names.insert(name);
    }
    assert_eq!(names, budgets.keys().map(String::as_str).collect());
    // A query without a list would be charged to all.
    for (name, query) in definition["queries"].as_table().unwrap() {
        assert_eq!(query["budgets"].as_array().map(Vec::len), Some(1), "{name}");
    }
}

#[test]
fn a_crawl_with_these_limits_breaks_none_of_them() {
    let folder = Folder::new();
    std::fs::write(folder.path("limits.toml"), files::LIMITS).unwrap();
    let definition = files::definition();
    std::fs::write(folder.path("table1.toml"), definition).unwrap();
    let words = "--users 40 --seed 3 --speed 0 --limit-speed 900 --limits-file limits.toml";
    let sim = Sim::start(&folder, words);
    let mut crawl = folder.kittiwake();
    crawl
        .args(["crawl", "table1.toml", &sim.first_handle()])
        .args(["--host", &sim.address, "--clock-from", &sim.address])
        .args(["--depth", "1", "--until-idle", "--quiet"])
        .args(["--robots", "relations,profiles,statuses,reposts,updates"])
        .args(["--into", "t.db"])
        .env("KITTIWAKE_TABLE1_TOKEN", "ann");
    let output = crawl.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let ledger = sim.json("/_sim/ledger?calls=0");
    assert_eq!(ledger["violations_total"], 0, "{}", ledger["violations"]);
    let windows = ledger["windows"].as_array().unwrap();
    let counted: BTreeSet<&str> = windows
        .iter()
        .map(|window| window["bucket"].as_str().unwrap())
        .collect();
    for bucket in ["user_lookup", "friends", "followers", "timeline"] {
        assert!(counted.contains(bucket), "{bucket} is missing: {counted:?}");
    }
}
