//! Starting the binary, talking to the synthetic network, reading crawl files.

use kittiwake_fetch::{FetchConfig, Fetcher, HostTrust, Request};
use rusqlite::Connection;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// No process of a test may live longer.
const PROCESS_SECONDS_MAX: u64 = 600;

/// No command of a test may take longer.
const COMMAND_MAX: Duration = Duration::from_mins(2);

/// A folder of its own for one test, with a ledger of its own.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The binary, with nothing of this machine's settings.
    pub(crate) fn kittiwake(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kittiwake"));
        command
            .current_dir(self.0.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.0.path())
            .env("XDG_STATE_HOME", self.0.path().join("state"))
            .env("XDG_CONFIG_HOME", self.0.path().join("config"))
            // Nobody waits for calls that are spread over a window, unless that is what is tested.
            .env("KITTIWAKE_PACE", "burst")
            .stdin(Stdio::null());
        command
    }

    /// A crawl into `t.db`; `words` are further arguments, separated by spaces.
    pub(crate) fn crawl_command(&self, address: &str, words: &str) -> Command {
        self.crawl_into("t.db", address, words)
    }

    /// The same into any place.
    pub(crate) fn crawl_into(&self, into: &str, address: &str, words: &str) -> Command {
        let mut command = self.kittiwake();
        command.args([
            "crawl", "mastodon", "--host", address, "--into", into, "--quiet",
        ]);
        command.args(words.split_whitespace());
        command
    }

    pub(crate) fn crawl(&self, address: &str, words: &str) -> Output {
        self.crawl_command(address, words)
            .output()
            .expect("the binary runs")
    }

    /// The same with a token.
    pub(crate) fn crawl_with_token(&self, address: &str, words: &str, token: &str) -> Output {
        self.crawl_command(address, words)
            .env("KITTIWAKE_MASTODON_TOKEN", token)
            .output()
            .expect("the binary runs")
    }

    /// Runs the binary; `words` are its arguments, separated by spaces.
    pub(crate) fn say(&self, words: &str) -> Output {
        self.run(&words.split(' ').collect::<Vec<_>>())
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.kittiwake()
            .args(arguments)
            .output()
            .expect("the binary runs")
    }
}

/// A process that ends with the test.
pub(crate) struct Running {
    pub(crate) child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        Self::of(child)
    }

    /// A process that was started with its output piped.
    pub(crate) fn of(mut child: Child) -> Self {
        let stdout = BufReader::new(child.stdout.take().expect("standard output is piped"));
        Self { child, stdout }
    }

    /// The next line of its output; empty when it has ended.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout
            .read_line(&mut line)
            .expect("its output is text");
        line
    }

    pub(crate) fn rest(mut self) -> String {
        let mut rest = String::new();
        self.stdout
            .read_to_string(&mut rest)
            .expect("its output is text");
        rest
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child
            .try_wait()
            .expect("its state can be asked for")
            .is_some()
    }

    /// SIGKILL: no handler runs, nothing is flushed.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ctrl-C.
    pub(crate) fn interrupt(&self) {
        let process = self.child.id().to_string();
        let told = Command::new("kill").args(["-INT", &process]).status();
        assert!(told.expect("kill").success());
    }

    /// Waits for its end within a bound.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(PROCESS_SECONDS_MAX) {
            if let Some(status) = self.child.try_wait().expect("its state can be asked for") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill();
        panic!("the process did not end within {PROCESS_SECONDS_MAX} s");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a command with some input, within a bound.
pub(crate) fn output_of(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("standard input is piped");
    // It may have ended already.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let process = child.id().to_string();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(child.wait_with_output()));
    let Ok(output) = told.recv_timeout(COMMAND_MAX) else {
        let _ = Command::new("kill").args(["-KILL", &process]).status();
        panic!("the command did not end within {COMMAND_MAX:?}");
    };
    output.expect("it ends")
}

/// The synthetic network, served by the binary itself.
pub(crate) struct Sim {
    _process: Running,
    pub(crate) address: String,
    client: Client,
}

impl Sim {
    /// Serves a world; `words` are arguments, separated by spaces.
    pub(crate) fn start(folder: &Folder, words: &str) -> Self {
        let mut command = folder.kittiwake();
        command.args(["sim", "serve"]).args(words.split(' '));
        let mut process = Running::start(&mut command);
        let ready = process.line();
        let ready: Value = serde_json::from_str(&ready).expect("one JSON line when ready");
        let address = ready["listening"].as_str().expect("its address").to_owned();
        Self {
            _process: process,
            address,
            client: Client::new(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> String {
        self.client.get(&format!("{}{path}", self.address))
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path)).expect("JSON")
    }

    /// All rows of a table of the ground truth.
    pub(crate) fn truth(&self, table: &str) -> Vec<Value> {
        self.truth_where(table, "")
    }

    /// The same with further parameters, `&hosts=…`.
    pub(crate) fn truth_where(&self, table: &str, more: &str) -> Vec<Value> {
        let mut rows: Vec<Value> = Vec::new();
        let mut after = String::new();
        for _ in 0..10_000 {
            let page = self.get(&format!("/_sim/truth/{table}?limit=5000{more}{after}"));
            let before = rows.len();
            rows.extend(
                page.lines()
                    .map(|line| serde_json::from_str(line).expect("a JSON line")),
            );
            if rows.len() == before {
                return rows;
            }
            let token = rows
                .last()
                .map(|row| row["_after"].to_string())
                .unwrap_or_default();
            after = format!("&after={}", token.trim_matches('"'));
        }
        panic!("endless truth");
    }

    /// Somebody to begin with.
    pub(crate) fn first_handle(&self) -> String {
        let users = self.truth("users");
        let handle = users.first().and_then(|user| user["acct"].as_str());
        handle.expect("a handle").to_owned()
    }

    /// How many calls were made so far.
    pub(crate) fn calls(&self) -> u64 {
        self.json("/_sim/ledger?calls=0")["total"]
            .as_u64()
            .expect("a count of calls")
    }

    /// Waits until that many calls were made.
    pub(crate) fn wait_for_calls(&self, calls: u64) {
        let started = Instant::now();
        while self.calls() < calls {
            let waited = started.elapsed().as_secs();
            assert!(waited < PROCESS_SECONDS_MAX, "nobody calls");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What was asked for, in the order in which it came, without the first `skipped` calls.
    pub(crate) fn targets_after(&self, skipped: u64) -> Vec<String> {
        let mut targets = Vec::new();
        let mut after = skipped.checked_sub(1);
        for _ in 0..10_000 {
            let place = after.map_or_else(String::new, |after| format!("&after={after}"));
            let page = self.get(&format!("/_sim/ledger/calls?limit=5000{place}"));
            if page.trim().is_empty() {
                return targets;
            }
            for line in page.lines() {
                let call: Value = serde_json::from_str(line).expect("a JSON line");
                after = call["seq"].as_u64();
                targets.push(call["target"].as_str().expect("a target").to_owned());
            }
        }
        panic!("endless ledger");
    }

    pub(crate) fn violations(&self) -> u64 {
        self.json("/_sim/ledger?calls=0")["violations_total"]
            .as_u64()
            .expect("a count of violations")
    }
}

/// A plain client for the tests' own questions.
pub(crate) struct Client {
    runtime: tokio::runtime::Runtime,
    fetcher: Fetcher,
}

impl Client {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let config = FetchConfig {
            user_agent: "kittiwake-tests".into(),
            body_bytes_max: 256 << 20,
            bodies_in_flight_bytes_max: 512 << 20,
            // Servers that are seeded take their time on a machine that has other things to do.
            total_timeout: Duration::from_mins(5),
            idle_timeout: Duration::from_mins(5),
            ..FetchConfig::default()
        };
        let fetcher = {
            let _inside = runtime.enter();
            Fetcher::new(config).expect("a client")
        };
        Self { runtime, fetcher }
    }

    pub(crate) fn get(&self, url: &str) -> String {
        let address = url.parse().expect("a URL");
        let request = Request::get(address, HostTrust::Named);
        let response = self
            .runtime
            .block_on(self.fetcher.fetch(request))
            .expect("an answer");
        assert_eq!(response.status, 200, "{url}");
        String::from_utf8(response.body.to_vec()).expect("text")
    }
}

/// Opens a crawl file for reading, as a person with sqlite3 would.
pub(crate) fn open(path: &Path) -> Connection {
    Connection::open(path).expect("a crawl file")
}

/// The tables of a crawl, wherever they are kept.
pub(crate) trait Tables {
    /// The names of the columns of a query, and its rows as texts; what is NULL is empty.
    fn select(&self, sql: &str) -> (Vec<String>, Vec<Vec<String>>);

    fn has_table(&self, name: &str) -> bool;
}

impl Tables for Connection {
    fn select(&self, sql: &str) -> (Vec<String>, Vec<Vec<String>>) {
        let mut statement = self.prepare(sql).expect(sql);
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut found = statement.query([]).expect(sql);
        let mut rows = Vec::new();
        while let Some(row) = found.next().expect(sql) {
            let text = |column| match row.get_ref(column).expect(sql) {
                rusqlite::types::ValueRef::Null => String::new(),
                rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                rusqlite::types::ValueRef::Real(number) => number.to_string(),
                rusqlite::types::ValueRef::Text(text) | rusqlite::types::ValueRef::Blob(text) => {
                    String::from_utf8_lossy(text).into_owned()
                }
            };
            rows.push((0..names.len()).map(text).collect());
        }
        (names, rows)
    }

    fn has_table(&self, name: &str) -> bool {
        let sql = format!("SELECT 1 FROM sqlite_schema WHERE name = '{name}'");
        !Tables::select(self, &sql).1.is_empty()
    }
}

/// Where a test keeps a crawl.
pub(crate) trait Place {
    /// What `--into` is told.
    fn name(&self) -> String;

    /// What is there, if anything is.
    fn tables(&self) -> Option<Box<dyn Tables + '_>>;
}

/// A crawl's file.
impl Place for PathBuf {
    fn name(&self) -> String {
        self.display().to_string()
    }

    fn tables(&self) -> Option<Box<dyn Tables + '_>> {
        self.exists()
            .then(|| -> Box<dyn Tables> { Box::new(open(self)) })
    }
}

/// Every row of a query, as text fields.
pub(crate) fn rows(tables: &dyn Tables, sql: &str) -> BTreeSet<Vec<String>> {
    let (_, found) = tables.select(sql);
    let count = found.len();
    let rows: BTreeSet<_> = found.into_iter().collect();
    assert_eq!(rows.len(), count, "a doubled row in {sql}");
    rows
}

pub(crate) fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// A small generator for tests: seeds are printed, runs can be repeated.
pub(crate) struct Dice(u64);

impl Dice {
    /// Takes the seed from `KITTIWAKE_TEST_SEED`, or from the clock, and prints it.
    pub(crate) fn new(what: &str) -> Self {
        let seed = std::env::var("KITTIWAKE_TEST_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok())
            .unwrap_or_else(|| {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                now.map_or(1, |since| since.as_nanos() as u64)
            });
        println!("seed of {what}: KITTIWAKE_TEST_SEED={seed}");
        Self(seed | 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % bound
    }
}
