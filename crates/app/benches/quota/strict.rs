//! A, B, C: Mastodon's own limits, with everything that has work to do.

use crate::Bench;
use crate::crawler::{Plan, tokens};
use crate::network::{Network, Setting};
use crate::run::{Disturbance, measure};
use crate::shares::{Limit, percent, share};

/// Five query types: lists, batches of profiles, timelines, conversations, reposts.
const ROBOTS: &str = "relations,profiles,statuses,comments,reposts";
/// So many that no robot ever runs out of work.
const USERS: u64 = 50_000;
const SEEDS: usize = 200;
const CONCURRENCY: usize = 16;
const MINUTE_US: i64 = 60_000_000;

pub(crate) fn undisturbed(bench: &Bench) {
    let tokens = tokens(bench.tokens);
    let title = format!("A. Mastodon's limits, {} credentials", tokens.len());
    run(bench, &title, &tokens, &["a.db"], Disturbance::None);
}

pub(crate) fn killed(bench: &Bench) {
    let tokens = tokens(bench.tokens);
    let title = format!(
        "B. The same, {} credentials, with a kill and a restart in the middle of a window",
        tokens.len()
    );
    run(bench, &title, &tokens, &["b.db"], Disturbance::Kill);
}

pub(crate) fn two_processes(bench: &Bench) {
    let title = "C. Two processes on one credential";
    let files = ["c1.db", "c2.db"];
    run(bench, title, &tokens(1), &files, Disturbance::None);
}

fn run(bench: &Bench, title: &str, tokens: &[String], files: &[&str], disturbance: Disturbance) {
    println!("\n{title}\n");
    let folder = bench.folder();
    let setting = Setting {
        users: USERS,
        speed: 0.0,
        limits: None,
    };
    let network = Network::start(bench, &setting);
    let seeds = folder.path().join("seeds.txt");
    std::fs::write(&seeds, network.seeds(SEEDS, false).join("\n")).unwrap();
    let plan = Plan {
        network: "mastodon",
        name: "mastodon",
        robots: ROBOTS,
        tokens,
        seeds: &seeds,
        concurrency: CONCURRENCY,
    };
    let measured = measure(bench, &plan, &network, folder.path(), files, disturbance);
    let measured = match measured {
        Ok(measured) => measured,
        Err(reason) => {
            println!("not measured: the crawl ended with {reason}");
            return;
        }
    };
    let ledger = network.ledger();
    let users: Vec<&str> = tokens
        .iter()
        .filter_map(|token| token.split(':').next())
        .collect();
    let limits = [
        Limit {
            bucket: "token_api",
            calls_max: 300,
            window_us: 5 * MINUTE_US,
            scopes: tokens.iter().map(String::as_str).collect(),
        },
        Limit {
            bucket: "authenticated_paging",
            calls_max: 300,
            window_us: 15 * MINUTE_US,
            scopes: users,
        },
    ];
    println!("limit                  windows    used   worst window");
    for limit in limits {
        let share = share(&ledger, &limit, measured);
        println!(
            "{:<22} {:>7} {:>7} {:>14}",
            limit.bucket,
            share.windows,
            percent(share.overall),
            percent(share.worst)
        );
    }
    println!(
        "{} calls in all, {} violations",
        ledger.total, ledger.violations_total
    );
}
