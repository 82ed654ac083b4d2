//! Calls that can serve many subjects are filled.

use crate::support::{Folder, Sim, open, rows, text};
use std::time::Instant;

/// Users in one call of the robot `profiles`.
const BATCH: u64 = 40;
/// For so long a call waits for others to join it.
const PATIENCE_SECONDS: u64 = 5;

#[test]
fn a_call_for_many_waits_for_them_while_there_is_other_work() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 300 --seed 5 --speed 0 --limits off");
    // Users become known a few at a time, page by page.
    let words = "--robots relations,profiles --depth 9 --until-idle --limits off --concurrency 4";
    let words = format!("{} --include-opted-out test {words}", sim.first_handle());
    let started = Instant::now();
    let output = folder.crawl(&sim.address, &words);
    let seconds = started.elapsed().as_secs();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let count = |sql: &str| -> u64 {
        let found = rows(&open(&folder.path("t.db")), sql);
        let cell = found.first().and_then(|row| row[0].parse().ok());
        cell.expect("a count")
    };
    let visited = count("SELECT count(*) FROM frontier WHERE robot = 'profiles' AND visits > 0");
    let calls = count("SELECT count(*) FROM query_log WHERE query = 'profiles'");
    println!("{calls} calls for {visited} users in {seconds} s");
    assert!(visited > 3 * BATCH, "the world is too small");
    // One that was not full at the beginning, one at the end, and one whenever patience ran out.
    assert!(calls <= visited.div_ceil(BATCH) + 2 + seconds / PATIENCE_SECONDS);
}
