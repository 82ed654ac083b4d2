//! E: how long it takes to choose a call and to find out what follows from its answer, with a million
//! subjects in the queue; and how long to read it.

use crate::contenders::Server;
use crate::{Bench, contenders};
use std::path::Path;
use std::time::Duration;

pub(crate) fn run(bench: &Bench) {
    let (subjects, calls) = if bench.quick {
        (20_000, 1_000)
    } else {
        (1_000_000, 20_000)
    };
    let folder = bench.folder();
    let server = Server::of_pages(Duration::ZERO);
    let file = folder.path().join("kittiwake.db");
    let kittiwake = &bench.kittiwake;
    kittiwake.crawl_some_of(server.address(), subjects, 4, &file, Some(calls));
    println!(
        "\nE. Choosing a call and finding what follows from its answer, {subjects} subjects queued, {calls} calls\n"
    );
    println!("                 mean ms    p99 ms    max ms");
    let columns = [
        ("choosing", "rank_us"),
        ("seeding", "seed_us"),
        ("both", "rank_us + seed_us"),
        ("reading", "read_us"),
    ];
    for (name, column) in columns {
        let (mean, slow, most) = figures(&file, column);
        println!("{name:<12} {mean:>11.3} {slow:>9.3} {most:>9.3}");
    }
}

/// The mean, what all but a hundredth stay within, and the greatest, in milliseconds.
fn figures(file: &Path, column: &str) -> (f64, f64, f64) {
    let connection = contenders::open(file);
    let sql = format!("SELECT {column} FROM query_log ORDER BY 1");
    let mut statement = connection.prepare(&sql).unwrap();
    let times = statement.query_map([], |row| row.get(0)).unwrap();
    let times: Vec<f64> = times
        .map(|us| us.map(|us: f64| us / 1e3).unwrap())
        .collect();
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    (mean, times[times.len() * 99 / 100], times[times.len() - 1])
}
