//! The real servers of the AT Protocol: a PLC directory, a PDS and, if they are told where to keep what
//! they read, an AppView.
//!
//! `KITTIWAKE_TEST_PDS` names the folder into which `./test` installs them, from `tests/pds`.

use crate::support::Client;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use tempfile::TempDir;

/// How long the servers may take to start, on a machine that has other things to do.
const START_MAX: Duration = Duration::from_mins(3);

/// The servers, and a way to tell their owners what to do.
pub(crate) struct Servers {
    server: Child,
    client: Client,
    pub(crate) pds: String,
    /// What the directory calls the PDS.
    pub(crate) pds_host: String,
    pub(crate) plc: String,
    /// Empty where there is none.
    pub(crate) appview: String,
    control: String,
    _scratch: TempDir,
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Servers {
    /// Starts them, with an AppView where there is a database for it; nothing where they are not
    /// installed.
    pub(crate) fn start(database: Option<&str>) -> Option<Self> {
        let Some(installed) = std::env::var_os("KITTIWAKE_TEST_PDS").map(PathBuf::from) else {
            println!("skipped: KITTIWAKE_TEST_PDS names no folder");
            return None;
        };
        // What the servers write is worth nothing: memory is the quickest place for it.
        let memory = Path::new("/dev/shm");
        let scratch = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        let scratch = scratch.expect("a temporary folder");
        let mut server = Command::new("node")
            .arg(installed.join("server.mjs"))
            .env("TMPDIR", scratch.path())
            .envs(database.map(|url| ("DB_POSTGRES_URL", url)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node starts");
        let stdout = server.stdout.take().expect("standard output is piped");
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(stdout).read_line(&mut line);
            let _ = tell.send(line);
        });
        let line = told.recv_timeout(START_MAX).unwrap_or_default();
        let ready: Value = serde_json::from_str(&line).unwrap_or_default();
        let place = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
        let servers = Self {
            server,
            client: Client::new(),
            pds: place("pds"),
            pds_host: place("pdsHost"),
            plc: place("plc"),
            appview: place("appview"),
            control: place("control"),
            _scratch: scratch,
        };
        assert!(!servers.control.is_empty(), "the servers do not start");
        Some(servers)
    }

    pub(crate) fn tell(&self, what: &str) -> Value {
        let answer = self.client.get(&format!("{}/{what}", self.control));
        serde_json::from_str(&answer).expect("JSON")
    }

    /// How often crawls asked, by server and method.
    pub(crate) fn calls(&self) -> Value {
        self.tell("calls")
    }

    /// How often crawls asked anything of anybody.
    pub(crate) fn calls_total(&self) -> u64 {
        let calls = self.calls();
        let counts = calls.as_object().into_iter().flat_map(|all| all.values());
        counts.filter_map(Value::as_u64).sum()
    }
}
