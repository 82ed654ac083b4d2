//! The synthetic network in the words of other networks, crawled with the definitions that are shipped.
//!
//! The dialects are written by hand and not from the definitions, so that a crawl that equals the ground
//! truth says something about both; how far that holds, each dialect's `mod.rs` tells.

mod bluesky;
mod calls;
mod facebook;
mod reddit;
mod scene;
mod weibo;
mod x;
mod youtube;

use crate::support::{Folder, Sim, open, rows, text};
use serde_json::Value;
use std::process::{Command, Output};

/// How a dialect is served and asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Speaks {
    /// The name of the dialect and of the definition.
    pub(crate) network: &'static str,
    /// What stands before every path.
    pub(crate) base: &'static str,
    pub(crate) token_variable: &'static str,
}

/// A network that speaks a dialect, and a folder for crawls of it.
pub(crate) struct Scene {
    pub(crate) folder: Folder,
    pub(crate) sim: Sim,
    speaks: Speaks,
}

impl Scene {
    /// Serves a frozen world; `words` are further arguments.
    pub(crate) fn start(speaks: Speaks, words: &str) -> Self {
        Self::start_in(Folder::new(), speaks, words)
    }

    /// The same, with a folder that has something in it.
    pub(crate) fn start_in(folder: Folder, speaks: Speaks, words: &str) -> Self {
        let words = format!("--dialect {} --speed 0 --seed 5 {words}", speaks.network);
        let sim = Sim::start(&folder, &words);
        Self {
            folder,
            sim,
            speaks,
        }
    }

    /// A crawl into `t.db`; `words` are further arguments, separated by spaces.
    pub(crate) fn crawl(&self, token: &str, words: &str) -> Command {
        self.crawl_with(self.speaks.network, token, words)
    }

    /// The same with another definition than the shipped one.
    pub(crate) fn crawl_with(&self, definition: &str, token: &str, words: &str) -> Command {
        let mut command = self.folder.kittiwake();
        let host = format!("{}{}", self.sim.address, self.speaks.base);
        command.args(["crawl", definition, "--host", &host]);
        command.args(["--clock-from", &self.sim.address, "--into", "t.db"]);
        command.args(["--quiet", "--json"]);
        command.args(words.split_whitespace());
        command.env(self.speaks.token_variable, token);
        command
    }

    /// Runs a crawl to its end, which has to be this exit code; its summary.
    pub(crate) fn crawl_to(&self, code: i32, token: &str, words: &str) -> Value {
        let output = self.crawl(token, words).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(code), "{}", told(&output));
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// What a query of the crawl's file tells, as texts.
    pub(crate) fn held(&self, sql: &str) -> Vec<Vec<String>> {
        rows(&open(&self.folder.path("t.db")), sql)
            .into_iter()
            .collect()
    }

    /// A number that a query of the crawl's file tells.
    pub(crate) fn count(&self, sql: &str) -> u64 {
        let found = self.held(sql);
        let cell = found.first().and_then(|row| row[0].parse().ok());
        cell.expect("a count")
    }

    /// Every call of the ledger: its query, its subject, its status.
    pub(crate) fn calls(&self) -> Vec<Value> {
        let mut calls: Vec<Value> = Vec::new();
        let mut after = String::new();
        for _ in 0..10_000 {
            let page = self
                .sim
                .get(&format!("/_sim/ledger/calls?limit=5000{after}"));
            let before = calls.len();
            let lines = page.lines();
            calls.extend(lines.map(|line| serde_json::from_str::<Value>(line).expect("JSON")));
            if calls.len() == before {
                return calls;
            }
            let last = calls.last().map(|call| call["seq"].to_string());
            after = format!("&after={}", last.unwrap_or_default());
        }
        panic!("endless ledger");
    }
}

pub(crate) fn told(output: &Output) -> String {
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// Words as people read them, without the marks of HTML.
pub(crate) fn without_marks(html: &str) -> String {
    let mut text = html.replace("<br />", "\n").replace("</p>", "\n");
    while let Some(begin) = text.find('<') {
        let length = text[begin..].find('>').expect("a mark ends");
        text.replace_range(begin..=begin + length, "");
    }
    for (mark, letter) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
    ] {
        text = text.replace(mark, letter);
    }
    text.replace("&amp;", "&").trim().to_owned()
}

/// A time of the truth, in whole seconds.
pub(crate) fn seconds(row: &Value, name: &str) -> String {
    let us = row[name].as_i64().map(|us| us / 1_000_000 * 1_000_000);
    us.map_or_else(String::new, |us| us.to_string())
}
