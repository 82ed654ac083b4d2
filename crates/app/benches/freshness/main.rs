//! How fresh a crawl is against what `simulate` predicts for the same world, and how quickly it adapts
//! when people change their habits.
//!
//! `cargo bench -p kittiwake-app --bench freshness` measures both; after `--`, `A` (the prediction) or `B`
//! (habits) chooses one, `C` measures a robot of very many people (`--subjects N`, `--seconds N`), `D` several
//! robots that share one limit; `--users N`, `--calls-per-hour N`, `--days N` and `--warm-up N` change the world,
//! `--speed N` says how many times as quick as ours its time runs, and `--plot FILE` is where B draws.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_debug_implementations,
    reason = "a benchmark prints, and stops at the first surprise"
)]

mod facets;
mod habits;
mod network;
mod outcome;
mod plot;
mod turnover;

use network::Network;
use outcome::{Outcome, Predicted};
use std::path::{Path, PathBuf};

/// What is measured.
#[derive(Debug, Clone)]
pub(crate) struct Bench {
    binary: PathBuf,
    target: PathBuf,
    users: u64,
    calls_per_hour: u64,
    days: f64,
    warm_up_days: f64,
    /// World seconds per real second.
    speed: f64,
    plot: Option<PathBuf>,
    /// People of C, and how long they are visited.
    subjects: u64,
    seconds: u64,
}

const ADVICE: &str = "write A, B, C, D, --users N, --calls-per-hour N, --days N, --warm-up N, --speed N, \
                      --plot FILE, --subjects N or --seconds N";
const POLICIES: [&str; 2] = ["adaptive", "round-robin"];

fn main() {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut bench = Bench {
        binary: PathBuf::from(env!("CARGO_BIN_EXE_kittiwake")),
        target: temporary.parent().unwrap_or(temporary).to_owned(),
        users: 600,
        calls_per_hour: 50,
        days: 18.0,
        warm_up_days: 8.0,
        speed: 10_000.0,
        plot: None,
        subjects: 10_000_000,
        seconds: 60,
    };
    let mut parts = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect(ADVICE);
        match word.as_str() {
            // Cargo says that this is a benchmark.
            "--bench" => {}
            "--users" => bench.users = value().parse().expect(ADVICE),
            "--calls-per-hour" => bench.calls_per_hour = value().parse().expect(ADVICE),
            "--days" => bench.days = value().parse().expect(ADVICE),
            "--warm-up" => bench.warm_up_days = value().parse().expect(ADVICE),
            "--speed" => bench.speed = value().parse().expect(ADVICE),
            "--plot" => bench.plot = Some(value().into()),
            "--subjects" => bench.subjects = value().parse().expect(ADVICE),
            "--seconds" => bench.seconds = value().parse().expect(ADVICE),
            // The process of its own in which C runs.
            "--role-turnover" => {
                let (subjects, seconds) = (value(), value());
                let target = PathBuf::from(value());
                return turnover::turn_over(
                    subjects.parse().expect(ADVICE),
                    seconds.parse().expect(ADVICE),
                    &target,
                );
            }
            "A" | "B" | "C" | "D" => parts.push(word),
            _ => panic!("{word:?}: {ADVICE}"),
        }
    }
    kittiwake_fetch::install_tls_provider();
    if parts.is_empty() {
        parts = ["A", "B"].map(str::to_owned).to_vec();
    }
    println!(
        "{} users, {} calls an hour, {} days of which {} are not measured; a day lasts {:.1} s",
        bench.users,
        bench.calls_per_hour,
        bench.days,
        bench.warm_up_days,
        86_400.0 / bench.speed
    );
    for part in parts {
        match part.as_str() {
            "A" => predicted(&bench),
            "C" => turnover::run(&bench, bench.subjects, bench.seconds),
            "D" => facets::run(&bench),
            _ => habits::run(&bench),
        }
    }
}

/// Crawls a world by each policy, and replays the same world.
fn predicted(bench: &Bench) {
    println!("\nA. A crawl against the prediction, mean hours from a post to its collection\n");
    println!(
        "policy         calls refused   posts  crawl h  simulated  ratio  within 1 h  simulated"
    );
    let mut means = Vec::new();
    for policy in POLICIES {
        let folder = tempfile::tempdir_in(&bench.target).unwrap();
        let network = Network::start(bench, folder.path(), None);
        let outcome = Outcome::crawl(bench, &network, folder.path(), policy);
        let Predicted {
            mean_hours,
            within_hour,
        } = outcome.predicted(bench, folder.path(), policy);
        let delays = outcome.delays_hours(|_| true, bench.warm_up_days..f64::INFINITY);
        let mean = delays.mean();
        println!(
            "{policy:<12} {:>7} {:>7} {:>7} {mean:>8.3} {mean_hours:>10.3} {:>6.3} {:>10.1}% {:>9.1}%",
            outcome.calls,
            network.violations(),
            delays.count(),
            mean / mean_hours,
            100.0 * delays.within(1.0),
            100.0 * within_hour,
        );
        means.push((mean, mean_hours));
    }
    println!(
        "\nadaptive ÷ round robin: {:.3} in the crawl, {:.3} in the simulation",
        means[0].0 / means[1].0,
        means[0].1 / means[1].1
    );
}
