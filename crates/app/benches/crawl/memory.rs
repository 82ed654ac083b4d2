//! C: the most memory that a crawl of a world of a million users ever has.

use crate::contenders::Server;
use crate::{Bench, contenders, measure};
use std::path::Path;

const USERS: u64 = 1_000_000;

pub(crate) fn run(bench: &Bench) {
    let marks: &[i64] = if bench.quick {
        &[1_000, 3_000]
    } else {
        &[10_000, 30_000, 100_000]
    };
    let calls = marks.last().copied().unwrap_or_default();
    let folder = bench.folder();
    let world = Server::of_world(USERS);
    let address = format!("http://{}", world.address());
    let file = folder.path().join("kittiwake.db");
    let mut command = bench.kittiwake.command(folder.path());
    command
        .args([
            "crawl",
            "mastodon",
            world.seed(),
            "--quiet",
            "--host",
            &address,
        ])
        .args(["--depth", "3", "--limits", "off", "--concurrency", "16"])
        .args(["--calls", &calls.to_string()])
        .arg("--into")
        .arg(&file);
    let mut reached: Vec<(i64, u64)> = Vec::new();
    let usage = measure::run(&mut command, |peak_kib| {
        if let Some(mark) = marks.get(reached.len())
            && calls_in(&file).is_some_and(|calls| calls >= *mark)
        {
            reached.push((*mark, peak_kib));
        }
    });
    reached.truncate(marks.len() - 1);
    reached.push((calls, usage.peak_kib));
    println!(
        "\nC. Memory in a world of {USERS} users, depth 3 ({:.0} calls/s, {:.2} CPU s/1000 calls)\n",
        calls as f64 / usage.seconds,
        usage.cpu_seconds / (calls as f64 / 1_000.0),
    );
    println!("  calls   peak MiB");
    for (calls, peak_kib) in reached {
        println!("{calls:>7} {:>10.1}", peak_kib as f64 / 1_024.0);
    }
    let rows = contenders::rows_in(&file);
    let listed = contenders::TABLES.iter().zip(rows);
    let listed: Vec<String> = listed
        .map(|(table, rows)| format!("{rows} {table}"))
        .collect();
    println!("rows at the end: {}", listed.join(", "));
}

/// Calls that were committed so far; none before the file is there.
fn calls_in(file: &Path) -> Option<i64> {
    if !file.exists() {
        return None;
    }
    let connection = contenders::open(file);
    let sql = "SELECT max(id) FROM query_log";
    connection.query_row(sql, [], |row| row.get(0)).ok()
}
