//! What watching a crawl costs it, and how quickly a large one can be looked at.
//!
//! `cargo bench -p kittiwake-app --bench serve -- [A] [B FILE] [--seconds N] [--rounds N]`:
//! A lets 500 subscribers come and go while a crawl runs, and compares its speed with and without them.
//! B asks every page of the dashboard, over HTTP, about a file that `--bench browse` of the store has made.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_debug_implementations,
    reason = "a benchmark prints, and stops at the first surprise"
)]

mod asking;
mod client;
mod streams;
mod subscribers;

#[path = "../crawl/measure.rs"]
#[expect(dead_code, reason = "other benchmarks use the rest")]
mod measure;
#[path = "../crawl/pages.rs"]
#[expect(dead_code, reason = "other benchmarks use the rest")]
mod pages;
#[path = "../crawl/server.rs"]
#[expect(dead_code, reason = "other benchmarks use the rest")]
mod server;

use server::Pace;
use std::path::PathBuf;

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    // Cargo says that this is a benchmark.
    words.retain(|word| word != "--bench");
    let text: Vec<&str> = words.iter().map(String::as_str).collect();
    match text.as_slice() {
        ["--role", "network", pages_per_second] => {
            let pace = Pace::pages_per_second(pages_per_second.parse().unwrap());
            server::serve_pages(pace);
        }
        ["--role", "subscribers", address, kind, count] => {
            subscribers::run(address, kind, count.parse().unwrap());
        }
        chosen => measure_chosen(chosen),
    }
}

fn measure_chosen(mut words: &[&str]) {
    let mut asked = streams::Asked {
        seconds: 8,
        rounds: 5,
    };
    let (mut wants_streams, mut file) = (words.is_empty(), None::<PathBuf>);
    while let [word, rest @ ..] = words {
        words = rest;
        match (*word, rest) {
            ("A", _) => wants_streams = true,
            ("B", [path, after @ ..]) => {
                file = Some(path.into());
                words = after;
            }
            ("--seconds", [number, after @ ..]) => {
                asked.seconds = number.parse().unwrap();
                words = after;
            }
            ("--rounds", [number, after @ ..]) => {
                asked.rounds = number.parse().unwrap();
                words = after;
            }
            _ => panic!("{word:?}: write A, B FILE, --seconds N or --rounds N"),
        }
    }
    if wants_streams {
        streams::run(&asked);
    }
    if let Some(file) = file {
        asking::run(&file);
    }
}
