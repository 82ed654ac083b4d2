//! B: pages per second from a slow server, by the number of fetches at once.

use crate::Bench;
use crate::contenders::Server;
use crate::pages::PAGES_PER_TIMELINE;
use std::time::Duration;

const LATENCY: Duration = Duration::from_millis(50);

pub(crate) fn run(bench: &Bench) {
    let server = Server::of_pages(LATENCY);
    let timelines_each = if bench.quick { 5 } else { 30 };
    println!(
        "\nB. A server that takes {} ms for every answer\n",
        LATENCY.as_millis()
    );
    println!("at once   pages/s   of what the latency allows");
    for at_once in [1, 2, 4, 8, 16, 32] {
        let folder = bench.folder();
        let timelines = timelines_each * at_once;
        let usage = bench.kittiwake.crawl_timelines(
            server.address(),
            timelines,
            at_once as usize,
            &folder.path().join("kittiwake.db"),
        );
        let speed = (timelines * PAGES_PER_TIMELINE) as f64 / usage.seconds;
        let allowed = at_once as f64 / LATENCY.as_secs_f64();
        println!(
            "{at_once:>7} {speed:>9.1} {:>10.0} %",
            100.0 * speed / allowed
        );
    }
}
