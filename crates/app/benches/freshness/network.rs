//! The synthetic network in a process of its own, with limits that bind.

use crate::Bench;
use kittiwake_model::ClockSpec;
use reqwest::Client;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tokio::runtime::Runtime;

pub(crate) const DAY_US: i64 = 86_400_000_000;
/// The history of a synthetic world.
pub(crate) const HISTORY_DAYS: i64 = 60;

/// Mastodon with a limit of the experiment's own.
const DEFINITION: &str = include_str!("../../../../networks/mastodon.toml");

/// It ends when this is dropped.
pub(crate) struct Network {
    child: Child,
    pub(crate) address: String,
    client: Client,
    runtime: Runtime,
}

/// Somebody, as the truth has it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct User {
    pub(crate) id: String,
    pub(crate) acct: String,
    #[serde(default)]
    pub(crate) habit: Option<String>,
    suspended: bool,
    gone: bool,
    #[serde(rename = "_after")]
    after: String,
}

impl User {
    /// Whether nobody can see what they write.
    pub(crate) const fn is_away(&self) -> bool {
        self.suspended || self.gone
    }
}

#[derive(Debug, Deserialize)]
struct Relation {
    source: String,
    target: String,
    in_followers: bool,
    in_following: bool,
    #[serde(rename = "_after")]
    after: String,
}

#[derive(Debug, Deserialize)]
struct Ready {
    listening: String,
}

#[derive(Debug, Deserialize)]
struct Ledger {
    violations_total: u64,
}

impl Network {
    /// Starts it, with the files that it and the crawl need in a folder. People change their habits on
    /// that day, if they do.
    pub(crate) fn start(bench: &Bench, folder: &Path, habits_day: Option<i64>) -> Self {
        write_files(bench, folder);
        let speed = bench.speed.to_string();
        let mut command = Command::new(&bench.binary);
        command
            .args(["sim", "serve", "--seed", "5"])
            .args(["--users", &bench.users.to_string()])
            .args(["--speed", &speed, "--limit-speed", &speed])
            .arg("--limits-file")
            .arg(folder.join("limits.toml"));
        if let Some(day) = habits_day {
            command.args(["--habits", &day.to_string()]);
        }
        let mut child = command
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let ready: Ready = serde_json::from_str(&line).unwrap();
        Self {
            child,
            address: ready.listening,
            client: Client::builder().no_proxy().build().unwrap(),
            runtime: Runtime::new().unwrap(),
        }
    }

    fn get(&self, path: &str) -> String {
        let url = format!("{}{path}", self.address);
        self.runtime.block_on(async {
            let response = self.client.get(url).send().await.unwrap();
            assert!(response.status().is_success(), "{path}");
            response.text().await.unwrap()
        })
    }

    pub(crate) fn violations(&self) -> u64 {
        let ledger: Ledger = serde_json::from_str(&self.get("/_sim/ledger?calls=0")).unwrap();
        ledger.violations_total
    }

    /// When the world began.
    pub(crate) fn began_us(&self) -> i64 {
        let clock: ClockSpec = serde_json::from_str(&self.get("/_sim/clock")).unwrap();
        clock.world.origin_us
    }

    /// Who writes when, from the beginning of the history for so many days after the world's start.
    pub(crate) fn trace(&self, days: f64) -> String {
        let began_us = self.began_us();
        let from_us = began_us - HISTORY_DAYS * DAY_US;
        let until_us = began_us + (days * DAY_US as f64) as i64;
        self.get(&format!(
            "/_sim/truth/trace?from_us={from_us}&until_us={until_us}"
        ))
    }

    /// Who follows whom at a time, as far as a list shows it.
    pub(crate) fn relations_at(&self, at_us: i64) -> BTreeSet<(String, String)> {
        let (mut relations, mut after) = (BTreeSet::new(), String::new());
        loop {
            let path = format!("/_sim/truth/user_relations?limit=5000&at_us={at_us}{after}");
            let page = self.get(&path);
            if page.is_empty() {
                return relations;
            }
            for line in page.lines() {
                let relation: Relation = serde_json::from_str(line).unwrap();
                after = format!("&after={}", relation.after);
                if relation.in_followers || relation.in_following {
                    relations.insert((relation.source, relation.target));
                }
            }
        }
    }

    /// Everybody, by their ids in the trace.
    pub(crate) fn users(&self) -> BTreeMap<String, User> {
        let (mut users, mut after) = (BTreeMap::new(), String::new());
        loop {
            let page = self.get(&format!("/_sim/truth/users?limit=5000{after}"));
            if page.is_empty() {
                return users;
            }
            for line in page.lines() {
                let user: User = serde_json::from_str(line).unwrap();
                after = format!("&after={}", user.after);
                users.insert(user.id.clone(), user);
            }
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The limits as the network keeps them, and a definition that declares the same.
fn write_files(bench: &Bench, folder: &Path) {
    let limit = bench.calls_per_hour;
    let limits = format!(
        "[[bucket]]\nname = \"ip\"\nscope = \"ip\"\nkind = \"aligned\"\nlimit = {limit}\n\
         window_seconds = 3600\nheaders = \"x-ratelimit\"\nreset = \"iso8601\"\n\
         refusal = {{ status = 429, retry_after = true }}\n"
    );
    std::fs::write(folder.join("limits.toml"), limits).unwrap();
    let (before, rest) = DEFINITION.split_once("[budgets.user]").unwrap();
    let (_, after) = rest.split_once("# The headers speak").unwrap();
    let budget = format!("[budgets.ip]\nscope = \"ip\"\nlimit = {limit}\nwindow = \"1h\"\n\n#");
    let definition = format!("{before}{budget}{after}");
    let definition = definition.replacen("name = \"mastodon\"", "name = \"fresh\"", 1);
    std::fs::write(folder.join("fresh.toml"), definition).unwrap();
}
