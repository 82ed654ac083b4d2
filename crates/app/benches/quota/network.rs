//! The synthetic network in a process of its own, and what its ledger says.

use crate::Bench;
use kittiwake_model::{ClockSpec, LimitTime, RealTime};
use reqwest::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;

/// The longest window of all limits that are measured.
pub(crate) const QUARTER_US: i64 = 900_000_000;
/// A crawl is started so long before a quarter of an hour begins: enough to have begun by then.
const LEAD_US: i64 = 90_000_000;
const CALLS_PER_PAGE: usize = 50_000;

/// What a network is started with.
pub(crate) struct Setting<'a> {
    pub(crate) users: u64,
    /// World seconds per real second.
    pub(crate) speed: f64,
    /// None: Mastodon's own limits.
    pub(crate) limits: Option<&'a Path>,
}

/// It ends when this is dropped.
pub(crate) struct Network {
    child: Child,
    pub(crate) address: String,
    client: Client,
    runtime: Runtime,
}

/// The ledger but for its calls.
#[derive(Debug, Deserialize)]
pub(crate) struct Ledger {
    pub(crate) total: u64,
    pub(crate) violations_total: u64,
    pub(crate) windows: Vec<Window>,
    pub(crate) windows_dropped: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Window {
    pub(crate) bucket: String,
    pub(crate) scope: String,
    pub(crate) start_us: i64,
    pub(crate) used: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Call {
    seq: u64,
    pub(crate) limit_us: i64,
    pub(crate) query: String,
    pub(crate) credential: String,
}

#[derive(Debug, Deserialize)]
struct Ready {
    listening: String,
}

#[derive(Debug, Deserialize)]
struct User {
    local_id: String,
    acct: String,
    suspended: bool,
    gone: bool,
    #[serde(rename = "_after")]
    after: String,
}

impl Network {
    pub(crate) fn start(bench: &Bench, setting: &Setting<'_>) -> Self {
        let mut command = Command::new(&bench.network);
        command
            .args(["sim", "serve", "--users", &setting.users.to_string()])
            .args(["--speed", &setting.speed.to_string()])
            .args(["--limit-speed", &bench.limit_speed().to_string()]);
        if let Some(path) = setting.limits {
            command.arg("--limits-file").arg(path);
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

    fn json<T: DeserializeOwned>(&self, path: &str) -> T {
        serde_json::from_str(&self.get(path)).unwrap()
    }

    pub(crate) fn ledger(&self) -> Ledger {
        let ledger: Ledger = self.json("/_sim/ledger?calls=0");
        assert_eq!(ledger.windows_dropped, 0, "the ledger is not whole");
        ledger
    }

    /// All calls in the order of their arrival.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let mut calls: Vec<Call> = Vec::new();
        loop {
            let after = calls
                .last()
                .map_or_else(String::new, |call| format!("&after={}", call.seq));
            let page = self.get(&format!("/_sim/ledger/calls?limit={CALLS_PER_PAGE}{after}"));
            if page.is_empty() {
                return calls;
            }
            let lines = page.lines().map(|line| serde_json::from_str(line).unwrap());
            calls.extend(lines);
        }
    }

    /// What the clock of limits shows.
    pub(crate) fn limit_now(&self) -> LimitTime {
        let clock: ClockSpec = self.json("/_sim/clock");
        let real = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        clock.limit_at(RealTime(real.as_micros() as i64))
    }

    /// Moves the time of limits on to shortly before a quarter of an hour begins.
    pub(crate) fn go_before_quarter(&self) {
        let now_us = self.limit_now().micros();
        let wait_us = (-now_us - LEAD_US).rem_euclid(QUARTER_US);
        let seconds = wait_us / 1_000_000;
        self.get(&format!("/_sim/advance?limit_seconds={seconds}"));
    }

    /// Users that can be visited, as seeds: handles, or ids, which need not be looked up.
    pub(crate) fn seeds(&self, count: usize, are_ids: bool) -> Vec<String> {
        let (mut seeds, mut after) = (Vec::new(), String::new());
        while seeds.len() < count {
            let page = self.get(&format!("/_sim/truth/users?limit=5000{after}"));
            assert!(!page.is_empty(), "the world is too small");
            for line in page.lines() {
                let user: User = serde_json::from_str(line).unwrap();
                after = format!("&after={}", user.after);
                if user.suspended || user.gone {
                    continue;
                }
                seeds.push(if are_ids {
                    format!("id:{}", user.local_id)
                } else {
                    user.acct
                });
            }
        }
        seeds.truncate(count);
        seeds
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
