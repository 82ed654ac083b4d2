//! How much of what limits permit is used, and how evenly: a crawler against the synthetic network.
//!
//! `cargo bench -p kittiwake-app --bench quota` measures all of it; after `--`, the letters `A` to
//! `D` choose parts, `--quick` makes everything short, `--window SECONDS` says how long five minutes
//! of limits last, `--windows N` how many quarters of an hour are measured, `--tokens N` how many
//! credentials A and B crawl with, and `--binary FILE` measures another build of the crawler.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_debug_implementations,
    reason = "a benchmark prints, and stops at the first surprise"
)]

mod crawler;
mod facets;
mod network;
mod run;
mod shares;
mod strict;
mod table1;

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What every part needs.
pub(crate) struct Bench {
    /// The crawler that is measured.
    binary: PathBuf,
    /// The synthetic network; always of this build.
    network: PathBuf,
    /// Cargo's folder for what is built.
    target: PathBuf,
    /// Real seconds in which five minutes of limits pass.
    window_seconds: f64,
    /// Quarters of an hour, in the time of limits, that are measured.
    quarters: i64,
    /// Credentials of A and B.
    tokens: usize,
}

impl Bench {
    /// A folder that is gone when it is dropped.
    fn folder(&self) -> TempDir {
        tempfile::tempdir_in(&self.target).unwrap()
    }

    /// How much quicker the time of limits runs.
    fn limit_speed(&self) -> f64 {
        300.0 / self.window_seconds
    }
}

const ADVICE: &str =
    "write A, B, C, D, --quick, --window SECONDS, --windows N, --tokens N or --binary FILE";

fn main() {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_kittiwake"));
    let mut bench = Bench {
        network: binary.clone(),
        binary,
        target: temporary.parent().unwrap_or(temporary).to_owned(),
        window_seconds: 30.0,
        quarters: 3,
        tokens: 10,
    };
    let mut parts = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect(ADVICE);
        match word.as_str() {
            // Cargo says that this is a benchmark.
            "--bench" => {}
            "--quick" => (bench.window_seconds, bench.quarters) = (5.0, 1),
            "--window" => bench.window_seconds = value().parse().expect(ADVICE),
            "--windows" => bench.quarters = value().parse().expect(ADVICE),
            "--tokens" => bench.tokens = value().parse().expect(ADVICE),
            "--binary" => bench.binary = value().into(),
            "A" | "B" | "C" | "D" => parts.push(word),
            _ => panic!("{word:?}: {ADVICE}"),
        }
    }
    kittiwake_fetch::install_tls_provider();
    if parts.is_empty() {
        parts = ["A", "B", "C", "D"].map(str::to_owned).to_vec();
    }
    println!(
        "Five minutes of limits last {:.0} seconds; {} full quarters of an hour are measured.",
        bench.window_seconds, bench.quarters
    );
    for part in parts {
        match part.as_str() {
            "A" => strict::undisturbed(&bench),
            "B" => strict::killed(&bench),
            "C" => strict::two_processes(&bench),
            _ => facets::run(&bench),
        }
    }
}
