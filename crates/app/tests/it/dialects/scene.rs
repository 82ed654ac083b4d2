//! A network that is asked with the shipped definition or another.

use crate::support::{Folder, Sim};
use serde_json::Value;
use std::process::Command;

/// A network that speaks a dialect, and a folder for whoever crawls it.
pub(crate) struct Scene {
    pub(crate) folder: Folder,
    pub(crate) sim: Sim,
}

impl Scene {
    /// A frozen world; `words` are further arguments, separated by spaces.
    pub(crate) fn new(dialect: &str, words: &str) -> Self {
        let folder = Folder::new();
        let sim = Self::serve(&folder, dialect, words);
        Self { folder, sim }
    }

    pub(crate) fn serve(folder: &Folder, dialect: &str, words: &str) -> Sim {
        let words = format!("--dialect {dialect} --seed 5 --speed 0 {words}");
        Sim::start(folder, &words)
    }

    /// A crawl into `t.db` of a network that is asked under a path of the synthetic one.
    pub(crate) fn crawl(&self, network: &str, path: &str, token: &str, words: &str) -> Command {
        let name = network.trim_end_matches(".toml").to_uppercase();
        let mut command = self.folder.kittiwake();
        command
            .args(["crawl", network, "--into", "t.db", "--quiet", "--json"])
            .args(["--host", &format!("{}{path}", self.sim.address)])
            .args(["--clock-from", &self.sim.address])
            .args(words.split_whitespace())
            .env(format!("KITTIWAKE_{name}_TOKEN"), token);
        command
    }

    /// Every call to one query that was let through, as the ledger has it.
    pub(crate) fn calls_of(&self, query: &str) -> Vec<Value> {
        let mut calls = Vec::new();
        let mut after = String::new();
        for _ in 0..1_000 {
            let page = self
                .sim
                .get(&format!("/_sim/ledger/calls?limit=5000{after}"));
            let Some(last) = page.lines().last() else {
                return calls;
            };
            let read = |line: &str| -> Value { serde_json::from_str(line).expect("a JSON line") };
            after = format!("&after={}", read(last)["seq"]);
            let found = page.lines().map(read).filter(|call| call["query"] == query);
            calls.extend(found);
        }
        panic!("endless ledger");
    }
}
