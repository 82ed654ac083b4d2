//! A: a crawl with and without 500 subscribers, in turns, within one run.

use crate::client::{Part, Shown, get};
use crate::measure::{Spread, cpu_seconds_of};
use crate::pages::owner;
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SUBSCRIBERS: u64 = 500;
const AT_ONCE: usize = 16;
/// Pages a second that bring some 2 000 events.
const PACED: u32 = 22;
/// More timelines than any run can read.
const TIMELINES: u64 = 40_000;
/// Before the first measurement: the crawl begins, and the first of everything is found.
const WARM_UP: Duration = Duration::from_secs(5);
/// After subscribers have come or gone, before the next measurement.
const SETTLE: Duration = Duration::from_secs(1);

/// How long is measured.
pub(crate) struct Asked {
    pub(crate) seconds: u64,
    pub(crate) rounds: usize,
}

/// What happened in a stretch of time.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    pages_per_second: f64,
    /// Of the crawl and its server, in cores.
    cores: f64,
    sent_per_second: f64,
    dropped_per_second: f64,
}

/// A crawl that runs, and what it crawls.
struct Crawl {
    shown: Shown,
    network: Part,
    address: String,
}

/// A crawl of the network at an address; where it is shown is yet to be said.
fn crawl(folder: &Path, address: &str) -> Command {
    let seeds = folder.join("seeds.txt");
    let mut lines = String::new();
    for timeline in 0..TIMELINES {
        let _ = writeln!(lines, "id:{}", owner(timeline));
    }
    std::fs::write(&seeds, lines).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kittiwake"));
    command
        .env_clear()
        .env("HOME", folder)
        .args([
            "crawl",
            "mastodon",
            "-",
            "--until-idle",
            "--robots",
            "statuses",
        ])
        .args(["--depth", "0", "--limits", "off"])
        .args(["--host", &format!("http://{address}")])
        .args(["--concurrency", &AT_ONCE.to_string()])
        .arg("--into")
        .arg(folder.join("crawl.db"))
        .stdin(Stdio::from(File::open(&seeds).unwrap()));
    command
}

fn served(address: &str) -> f64 {
    get(address, "/count").1.parse().unwrap()
}

impl Crawl {
    fn start(folder: &Path, pages_per_second: u32) -> Self {
        let (network, address) = Part::start("network", &[&pages_per_second.to_string()]);
        let shown = Shown::start(crawl(folder, &address).arg("--serve=127.0.0.1:0"));
        std::thread::sleep(WARM_UP);
        Self {
            shown,
            network,
            address,
        }
    }

    fn measure(&self, seconds: u64) -> Stretch {
        let sent = || self.shown.metric("kittiwake_events_sent_total");
        let dropped = || self.shown.metric("kittiwake_events_dropped_total");
        let before = (sent(), dropped());
        let (cpu, pages, begun) = (
            self.shown.cpu_seconds(),
            served(&self.address),
            Instant::now(),
        );
        std::thread::sleep(Duration::from_secs(seconds));
        let (cpu, pages) = (
            self.shown.cpu_seconds() - cpu,
            served(&self.address) - pages,
        );
        let seconds = begun.elapsed().as_secs_f64();
        Stretch {
            pages_per_second: pages / seconds,
            cores: cpu / seconds,
            sent_per_second: (sent() - before.0) / seconds,
            dropped_per_second: (dropped() - before.1) / seconds,
        }
    }
}

pub(crate) fn run(asked: &Asked) {
    for (title, pages_per_second) in [
        ("a network that tells some 2 000 events a second", PACED),
        ("as fast as it can", 0),
    ] {
        println!(
            "\nA. A crawl with {SUBSCRIBERS} subscribers and without, in turns of {} s, medians of {} (least - most): {title}\n",
            asked.seconds, asked.rounds
        );
        println!(
            "subscribers     pages/s alone   pages/s with them        with : alone   events found/s   sent/s   dropped/s   MB/s heard   cores alone   with"
        );
        measure_unshown(asked, pages_per_second);
        for kind in ["people", "words", "everything", "deaf"] {
            compare(asked, kind, pages_per_second);
        }
    }
}

/// The same crawl without `--serve`.
fn measure_unshown(asked: &Asked, pages_per_second: u32) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (network, address) = Part::start("network", &[&pages_per_second.to_string()]);
    let mut child = crawl(folder.path(), &address)
        .arg("--quiet")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(WARM_UP);
    let (mut speeds, mut cores) = (Vec::new(), Vec::new());
    for _ in 0..asked.rounds {
        let (cpu, pages, begun) = (cpu_seconds_of(&child), served(&address), Instant::now());
        std::thread::sleep(Duration::from_secs(asked.seconds));
        let seconds = begun.elapsed().as_secs_f64();
        speeds.push((served(&address) - pages) / seconds);
        cores.push((cpu_seconds_of(&child) - cpu) / seconds);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(network);
    println!(
        "not shown    {:>16.1} {:>114.2}",
        Spread::of(speeds.into_iter()).median,
        Spread::of(cores.into_iter()).median
    );
}

/// Each kind has a crawl of its own, so that none begins with a larger file than another.
fn compare(asked: &Asked, kind: &str, pages_per_second: u32) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let crawl = Crawl::start(folder.path(), pages_per_second);
    let (mut alone, mut watched) = (Vec::new(), Vec::new());
    let (mut found, mut heard) = (Vec::new(), Vec::new());
    for _ in 0..asked.rounds {
        alone.push(crawl.measure(asked.seconds));
        let count = SUBSCRIBERS.to_string();
        let (subscribers, ready) =
            Part::start("subscribers", &[&crawl.shown.address, kind, &count]);
        assert_eq!(ready, "ready");
        let begun = Instant::now();
        std::thread::sleep(SETTLE);
        watched.push(crawl.measure(asked.seconds));
        let seconds = begun.elapsed().as_secs_f64();
        let told = subscribers.end();
        let (events, bytes) = told.split_once(' ').unwrap();
        found.push(events.parse::<f64>().unwrap() / seconds);
        heard.push(bytes.parse::<f64>().unwrap() / seconds / 1e6);
        std::thread::sleep(SETTLE);
    }
    let median = |of: &[Stretch], what: fn(&Stretch) -> f64| Spread::of(of.iter().map(what));
    let ratios = watched.iter().zip(&alone);
    let ratios = ratios.map(|(with, without)| with.pages_per_second / without.pages_per_second);
    let ratio = Spread::of(ratios);
    let (speed_alone, speed) = (
        median(&alone, |stretch| stretch.pages_per_second),
        median(&watched, |stretch| stretch.pages_per_second),
    );
    println!(
        "{kind:<12} {:>16.1} {:>19.1} {:>8.3} ({:.3} - {:.3}) {:>16.0} {:>8.0} {:>11.0} {:>12.1} {:>13.2} {:>6.2}",
        speed_alone.median,
        speed.median,
        ratio.median,
        ratio.least,
        ratio.most,
        Spread::of(found.into_iter()).median,
        median(&watched, |stretch| stretch.sent_per_second).median,
        median(&watched, |stretch| stretch.dropped_per_second).median,
        Spread::of(heard.into_iter()).median,
        median(&alone, |stretch| stretch.cores).median,
        median(&watched, |stretch| stretch.cores).median,
    );
    drop(crawl.network);
}
