//! The crawler that is measured.

use crate::Bench;
use crate::network::Network;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// How to start a crawl; every start is the same command.
pub(crate) struct Plan<'a> {
    /// A shipped network or the path of a definition.
    pub(crate) network: &'a str,
    /// Its name, for the variable that holds the credentials.
    pub(crate) name: &'a str,
    pub(crate) robots: &'a str,
    pub(crate) tokens: &'a [String],
    pub(crate) seeds: &'a Path,
    pub(crate) concurrency: usize,
}

/// A running crawl; it ends when this is dropped.
pub(crate) struct Crawl {
    child: Child,
    told: PathBuf,
}

impl Crawl {
    /// Crawls into a file of this name. Crawls of one folder share a ledger of grants.
    pub(crate) fn start(
        bench: &Bench,
        plan: &Plan<'_>,
        network: &Network,
        folder: &Path,
        file: &str,
    ) -> Self {
        let told = folder.join(format!("{file}.txt"));
        let mut command = Command::new(&bench.binary);
        command
            .env_clear()
            .env("HOME", folder)
            .env("XDG_STATE_HOME", folder.join("state"))
            .env("XDG_CONFIG_HOME", folder.join("config"))
            .args(["crawl", plan.network, "-", "--quiet", "--depth", "9"])
            .args(["--host", &network.address, "--clock-from", &network.address])
            .args(["--robots", plan.robots])
            .args(["--concurrency", &plan.concurrency.to_string()])
            .arg("--into")
            .arg(folder.join(file));
        give_credentials(&mut command, plan.name, plan.tokens);
        let child = command
            .stdin(File::open(plan.seeds).unwrap())
            .stdout(Stdio::null())
            .stderr(File::create(&told).unwrap())
            .spawn()
            .unwrap();
        Self { child, told }
    }

    /// Why it is over, if it is; a crawl that is measured goes on until it is stopped.
    pub(crate) fn over(&mut self) -> Option<String> {
        let status = self.child.try_wait().unwrap()?;
        let told = std::fs::read_to_string(&self.told).unwrap_or_default();
        let told = told.lines().find(|line| !line.trim().is_empty());
        Some(format!("{status}: {}", told.unwrap_or("no word")))
    }

    /// SIGKILL: no handler runs, nothing is flushed.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ctrl-C, and the end.
    pub(crate) fn stop(mut self) {
        let process = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &process]).status();
        assert!(sent.unwrap().success());
        let _ = self.child.wait();
    }
}

impl Drop for Crawl {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The one place that knows how credentials are handed over.
fn give_credentials(command: &mut Command, network: &str, tokens: &[String]) {
    let variable = format!("KITTIWAKE_{}_TOKEN", network.to_uppercase());
    match tokens {
        [token] => {
            command.env(variable, token);
        }
        several => {
            // Each with the name of its account: those of one account share its limits.
            let named = several.iter().map(|token| {
                let account = token.split(':').next().unwrap_or(token);
                format!("{account} {token}")
            });
            let named: Vec<String> = named.collect();
            command
                .env(format!("{variable}S"), named.join(","))
                .args(["--i-have-permission", "a benchmark on a synthetic network"]);
        }
    }
}

/// Tokens of so many users, one of each.
pub(crate) fn tokens(count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("user{number}:bench"))
        .collect()
}
