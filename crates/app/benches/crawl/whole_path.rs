//! A: the whole path, from the request to the rows, against Scrapy and against a bare client.

use crate::contenders::{self, Kittiwake, Scrapy, Server, TABLES};
use crate::measure::{Spread, Usage, cpu_seconds_of};
use crate::pages::{PAGES_PER_TIMELINE, STATUSES_PER_PAGE};
use crate::{Bench, server};
use std::path::Path;
use std::time::Duration;

const AT_ONCE: usize = 16;
const RUNS: usize = 3;

/// All runs of one crawler.
struct Contender {
    name: String,
    runs: Vec<Usage>,
    /// Rows of each table; none for who stores nothing.
    rows: Option<[i64; TABLES.len()]>,
}

impl Contender {
    fn new(name: String) -> Self {
        Self {
            name,
            runs: Vec::new(),
            rows: None,
        }
    }

    fn pages_per_second(&self, pages: u64) -> Spread {
        Spread::of(self.runs.iter().map(|run| pages as f64 / run.seconds))
    }

    fn cpu_per_thousand(&self, pages: u64) -> Spread {
        let thousands = pages as f64 / 1_000.0;
        Spread::of(self.runs.iter().map(|run| run.cpu_seconds / thousands))
    }

    /// Every run has to bring the same rows.
    fn take_rows(&mut self, file: &Path) {
        let rows = contenders::rows_in(file);
        let known = *self.rows.get_or_insert(rows);
        assert_eq!(known, rows, "{}: {TABLES:?}", self.name);
    }

    fn print(&self, pages: u64) {
        let (speed, cpu) = (self.pages_per_second(pages), self.cpu_per_thousand(pages));
        let rows = self.rows.map_or_else(
            || "-".to_owned(),
            |rows| {
                let rows: i64 = rows.iter().sum();
                format!("{:.0}", rows as f64 / pages as f64 * speed.median)
            },
        );
        let peak = Spread::of(self.runs.iter().map(|run| run.peak_kib as f64 / 1_024.0));
        println!(
            "{:<18} {:>7.0} ({:>5.0} - {:>5.0}) {rows:>9} {:>8.2} ({:>5.2} - {:>5.2}) {:>9.0}",
            self.name,
            speed.median,
            speed.least,
            speed.most,
            cpu.median,
            cpu.least,
            cpu.most,
            peak.median,
        );
    }
}

pub(crate) fn run(bench: &Bench) {
    let timelines = server::timelines(if bench.quick { 400 } else { 4_000 });
    let pages = timelines * PAGES_PER_TIMELINE;
    let kittiwake = &bench.kittiwake;
    let scrapy = Scrapy::install(&bench.target);
    let server = Server::of_pages(Duration::ZERO);
    let cpu_before = cpu_seconds_of(&server.child);
    let mut ours = Contender::new(kittiwake.version());
    let mut bare = Contender::new("bare client".to_owned());
    let mut theirs = Contender::new(scrapy.as_ref().map_or_else(
        |_| "Scrapy".to_owned(),
        |scrapy| format!("Scrapy {}", scrapy.version),
    ));
    // In turns, so that whatever else the machine does meets all of them.
    for _ in 0..RUNS {
        let folder = bench.folder();
        let own_file = folder.path().join("kittiwake.db");
        ours.runs
            .push(crawl(kittiwake, &server, timelines, &own_file));
        ours.take_rows(&own_file);
        let downloaded = contenders::bare_client(server.address(), timelines, AT_ONCE);
        bare.runs.push(downloaded);
        if let Ok(scrapy) = &scrapy {
            let (file, schema) = (
                folder.path().join("scrapy.db"),
                folder.path().join("schema"),
            );
            std::fs::write(&schema, contenders::schema_of(&own_file)).unwrap();
            let address = server.address();
            let usage = scrapy.crawl_timelines(address, timelines, AT_ONCE, &file, &schema);
            theirs.runs.push(usage);
            theirs.take_rows(&file);
        }
    }
    println!(
        "\nA. The whole path: {pages} pages of {STATUSES_PER_PAGE} posts, {AT_ONCE} at once; \
         median of {RUNS} runs in turns (least - most)\n"
    );
    println!(
        "                   pages/s                    rows/s  CPU s/1000 pages          peak MiB"
    );
    bare.print(pages);
    ours.print(pages);
    if let Err(reason) = &scrapy {
        println!("Scrapy             not measured: {reason}");
    } else {
        theirs.print(pages);
        assert_eq!(ours.rows, theirs.rows, "not the same rows: {TABLES:?}");
        print_ratio("Kittiwake : Scrapy", &ours, &theirs, pages);
    }
    print_ratio("Kittiwake : bare client", &ours, &bare, pages);
    let cpu_seconds = cpu_seconds_of(&server.child) - cpu_before;
    let all_runs = ours.runs.len() + bare.runs.len() + theirs.runs.len();
    println!(
        "rows of each crawl: {}; the server took {:.2} CPU s/1000 pages",
        list_rows(&ours),
        cpu_seconds / (all_runs as f64 * pages as f64 / 1_000.0)
    );
}

fn crawl(kittiwake: &Kittiwake, server: &Server, timelines: u64, file: &Path) -> Usage {
    kittiwake.crawl_timelines(server.address(), timelines, AT_ONCE, file)
}

fn print_ratio(title: &str, ours: &Contender, theirs: &Contender, pages: u64) {
    let speed = ours.pages_per_second(pages).median / theirs.pages_per_second(pages).median;
    let cpu = theirs.cpu_per_thousand(pages).median / ours.cpu_per_thousand(pages).median;
    println!("{title}: {speed:.2} times the pages/s, {cpu:.2} times the pages per CPU second");
}

fn list_rows(contender: &Contender) -> String {
    let rows = contender.rows.into_iter().flatten();
    let listed = TABLES.iter().zip(rows);
    let listed = listed.map(|(table, rows)| format!("{rows} {table}"));
    listed.collect::<Vec<_>>().join(", ")
}
