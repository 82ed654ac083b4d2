//! D: limits per query type and credential, as in the paper's Table 1, and how evenly calls go out.

use crate::Bench;
use crate::crawler::{Plan, tokens};
use crate::network::{Call, Network, QUARTER_US, Setting};
use crate::run::{Disturbance, Measured, measure};
use crate::shares::{Limit, percent, share};
use crate::table1;
use std::collections::HashMap;

const CREDENTIALS: [usize; 4] = [1, 2, 5, 10];
const ROBOTS: &str = "relations,profiles,statuses,reposts,updates";
const CONCURRENCY: usize = 16;
/// The limits by name, with how many calls a window permits and the queries that share them.
const LIMITS: [(&str, u64, &[&str]); 6] = [
    ("user_lookup", 180, &["lookup", "account", "accounts"]),
    ("tweet_show", 180, &["status", "statuses"]),
    ("friends", 15, &["following"]),
    ("followers", 15, &["followers"]),
    ("timeline", 180, &["timeline"]),
    ("retweets", 15, &["reblogged_by"]),
];
/// Profiles that one credential can ask for in one window: 180 calls for 40 each.
const PROFILES_PER_WINDOW: usize = 180 * 40;

pub(crate) fn run(bench: &Bench) {
    println!("\nD. The limits of Table 1 per query type and credential");
    println!(
        "   (intervals between calls of one query type and credential: 1 is window / limit)\n"
    );
    println!(
        "credentials  query type   windows    used   worst   interval mean    p50    p95    max"
    );
    for count in CREDENTIALS {
        if let Err(reason) = with_credentials(bench, count) {
            println!("{count:>11}  not measured: the crawl ended with {reason}");
        }
    }
}

fn with_credentials(bench: &Bench, count: usize) -> Result<(), String> {
    let folder = bench.folder();
    let (limits, definition) = (
        folder.path().join("limits.toml"),
        folder.path().join("table1.toml"),
    );
    std::fs::write(&limits, table1::LIMITS).unwrap();
    std::fs::write(&definition, table1::definition()).unwrap();
    // Enough for every window, with the one in which the crawl begins, so that nobody has to be
    // visited again for there to be work.
    let users = PROFILES_PER_WINDOW * count * (bench.quarters as usize + 1);
    let setting = Setting {
        users: users as u64 * 5 / 4,
        speed: bench.limit_speed(),
        limits: Some(&limits),
    };
    let network = Network::start(bench, &setting);
    let seeds = folder.path().join("seeds.txt");
    std::fs::write(&seeds, network.seeds(users, true).join("\n")).unwrap();
    let tokens = tokens(count);
    let plan = Plan {
        network: definition.to_str().unwrap(),
        name: "table1",
        robots: ROBOTS,
        tokens: &tokens,
        seeds: &seeds,
        concurrency: CONCURRENCY,
    };
    let files = ["d.db"];
    let folder = folder.path();
    let measured = measure(bench, &plan, &network, folder, &files, Disturbance::None)?;
    let (ledger, calls) = (network.ledger(), network.calls());
    for (bucket, limit, queries) in LIMITS {
        let scopes = tokens.iter().map(String::as_str).collect();
        let measured_limit = Limit {
            bucket,
            calls_max: limit,
            window_us: QUARTER_US,
            scopes,
        };
        let share = share(&ledger, &measured_limit, measured);
        let intervals = Intervals::of(&calls, queries, measured);
        println!(
            "{count:>11}  {bucket:<12} {:>7} {:>7} {:>7} {}",
            share.windows,
            percent(share.overall),
            percent(share.worst),
            intervals.told(QUARTER_US as f64 / limit as f64),
        );
    }
    println!(
        "{count:>11}  {} calls in all, {} violations",
        ledger.total, ledger.violations_total
    );
    Ok(())
}

/// Times between two calls of one lane, of all lanes of a limit, in order of length.
struct Intervals(Vec<f64>);

impl Intervals {
    fn of(calls: &[Call], queries: &[&str], measured: Measured) -> Self {
        let mut last: HashMap<&str, i64> = HashMap::new();
        let mut intervals = Vec::new();
        for call in calls {
            let is_inside =
                (measured.start.micros()..measured.end.micros()).contains(&call.limit_us);
            if !is_inside || !queries.contains(&call.query.as_str()) {
                continue;
            }
            if let Some(before_us) = last.insert(&call.credential, call.limit_us) {
                intervals.push((call.limit_us - before_us) as f64);
            }
        }
        intervals.sort_unstable_by(f64::total_cmp);
        Self(intervals)
    }

    /// Mean, median, 95th percentile and greatest, in parts of what they would be if all were even.
    fn told(&self, expected_us: f64) -> String {
        let Self(intervals) = self;
        let Some(greatest) = intervals.last() else {
            return "         no two calls".to_owned();
        };
        let mean = intervals.iter().sum::<f64>() / intervals.len() as f64;
        let at = |percent: usize| intervals[(intervals.len() - 1) * percent / 100];
        let parts = [mean, at(50), at(95), *greatest].map(|interval| interval / expected_us);
        let [mean, median, high, greatest] = parts;
        format!("{mean:>15.2} {median:>6.2} {high:>6.2} {greatest:>6.2}")
    }
}
