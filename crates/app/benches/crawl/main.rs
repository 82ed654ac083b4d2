//! The whole crawl, measured: speed against Scrapy and a bare client, scaling against latency,
//! memory, the heavy parts alone, what a choice takes, and whole accounts.
//!
//! `cargo bench -p kittiwake-app --bench crawl` measures all of it; after `--`, the letters `A`
//! to `F` choose parts, `--quick` makes everything small, and `--binary FILE` measures
//! another build. Linux only: it reads what the kernel counted of a process.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_debug_implementations,
    reason = "a benchmark prints, and stops at the first surprise"
)]

mod accounts;
mod bare;
mod choice;
mod contenders;
mod latency;
mod measure;
mod memory;
mod pages;
mod parts;
#[expect(dead_code, reason = "other benchmarks use the rest")]
mod server;
mod whole_path;

#[path = "../../../network/tests/it/repository.rs"]
mod repository;

use contenders::Kittiwake;
use server::Pace;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// What every part needs.
pub(crate) struct Bench {
    kittiwake: Kittiwake,
    quick: bool,
    /// Cargo's folder for what is built.
    target: PathBuf,
}

impl Bench {
    /// A folder that is gone when it is dropped.
    fn folder(&self) -> TempDir {
        tempfile::tempdir_in(&self.target).unwrap()
    }
}

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    // Cargo says that this is a benchmark.
    words.retain(|word| word != "--bench");
    let text: Vec<&str> = words.iter().map(String::as_str).collect();
    match text.as_slice() {
        ["--role", "serve", latency_ms] => {
            let latency = Duration::from_millis(latency_ms.parse().unwrap());
            server::serve_pages(Pace::latency(latency));
        }
        ["--role", "world", users] => server::serve_world(users.parse().unwrap()),
        ["--role", "bare", address, timelines, at_once] => {
            bare::run(
                address,
                timelines.parse().unwrap(),
                at_once.parse().unwrap(),
            );
        }
        chosen => measure_chosen(chosen),
    }
}

fn measure_chosen(mut words: &[&str]) {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut bench = Bench {
        kittiwake: Kittiwake {
            binary: env!("CARGO_BIN_EXE_kittiwake").into(),
        },
        quick: false,
        target: temporary.parent().unwrap_or(temporary).to_owned(),
    };
    let mut parts = Vec::new();
    while let [word, rest @ ..] = words {
        words = rest;
        match (*word, rest) {
            ("--quick", _) => bench.quick = true,
            ("--binary", [path, after @ ..]) => {
                bench.kittiwake.binary = path.into();
                words = after;
            }
            ("A" | "B" | "C" | "D" | "E" | "F", _) => parts.push(*word),
            _ => panic!("{word:?}: write A, B, C, D, E, F, --quick or --binary FILE"),
        }
    }
    if parts.is_empty() {
        parts = vec!["A", "B", "C", "D", "E", "F"];
    }
    for part in parts {
        match part {
            "A" => whole_path::run(&bench),
            "B" => latency::run(&bench),
            "C" => memory::run(&bench),
            "E" => choice::run(&bench),
            "F" => accounts::run(&bench),
            _ => parts::run(&bench),
        }
    }
}
