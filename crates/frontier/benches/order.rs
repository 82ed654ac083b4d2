//! What the due order on disk costs: it is built, and then every subject is taken and filed again.
//!
//! `cargo bench -p kittiwake-frontier --bench order -- [SUBJECTS] [MEMORY_MIB]`: a hundred million
//! subjects with 512 MiB for the index unless told otherwise; the program as a whole takes more. Due
//! times are spread over a week, states are 63 random bytes. One of ten that are taken is put back
//! as it is, as by a policy that finds it too early; the others get a new state. The work is done by
//! a child process, so that its memory can be watched from outside.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints"
)]

use kittiwake_frontier::order::{Change, DiskOrder, Entry, LaneNumber, OrderError};
use kittiwake_frontier::policy::State;
use kittiwake_frontier::random::Random;
use kittiwake_model::{Key, WorldTime};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

const DAY_US: usize = 86_400_000_000;
const BATCH: usize = 4_096;
const CHILD: &str = "--child";
const LANE: &str = "mastodon/host.example/statuses";

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let numbers: Vec<usize> = arguments
        .iter()
        .filter_map(|argument| argument.replace('_', "").parse().ok())
        .collect();
    let subjects = numbers.first().copied().unwrap_or(100_000_000).max(1);
    let memory_bytes = numbers.get(1).copied().unwrap_or(512) as u64 * 1_024 * 1_024;
    let child = arguments.iter().position(|argument| argument == CHILD);
    let done = match child.and_then(|place| arguments.get(place + 1)) {
        Some(folder) => work(Path::new(folder), subjects, memory_bytes),
        None => watch(&arguments, subjects),
    };
    if let Err(error) = done {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Starts the work in a child and watches its memory.
fn watch(arguments: &[String], subjects: usize) -> Outcome<()> {
    println!("{subjects} subjects, {BATCH} a batch");
    let program = std::env::current_exe()?;
    let folder = scratch_folder(&program);
    let mut child = Command::new(&program)
        .args(arguments.iter().skip(1))
        .arg(CHILD)
        .arg(&folder)
        .spawn()?;
    let (mut peak_kib, mut anonymous_kib) = (0, 0);
    let status = loop {
        let report = format!("/proc/{}/status", child.id());
        let report = std::fs::read_to_string(report).unwrap_or_default();
        peak_kib = field_kib(&report, "VmHWM:").max(peak_kib);
        anonymous_kib = field_kib(&report, "RssAnon:").max(anonymous_kib);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    println!(
        "memory: VmHWM {} MiB, of that at most {} MiB anonymous",
        peak_kib / 1_024,
        anonymous_kib / 1_024,
    );
    let removed = std::fs::remove_dir_all(&folder);
    if !status.success() {
        return Err(format!("the work ended with {status}").into());
    }
    Ok(removed?)
}

/// Beside the program, which is in the target folder: a temporary folder may be in memory.
fn scratch_folder(program: &Path) -> PathBuf {
    let name = format!("order-bench-{}", std::process::id());
    program.with_file_name(name)
}

fn field_kib(report: &str, name: &str) -> u64 {
    let line = report.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn work(folder: &Path, subjects: usize, memory_bytes: u64) -> Outcome<()> {
    let (mut order, _) = DiskOrder::open(folder, "bench", memory_bytes)?;
    let lane = order.lane(LANE)?;
    let mut random = Random::new(1);

    let started = Instant::now();
    build(&mut order, lane, subjects, &mut random)?;
    let took = started.elapsed().as_secs_f64();
    println!(
        "built in {took:.1} s: {:.0} entries/s, {} MiB on disk",
        subjects as f64 / took,
        folder_bytes(folder) / 1_024 / 1_024,
    );

    let mut turnover = Turnover::new(subjects);
    let started = Instant::now();
    turnover.run(&mut order, lane, &mut random)?;
    turnover.report(started.elapsed());
    order.persist()?;
    let bytes = folder_bytes(folder);
    println!(
        "on disk: {} MiB, {:.0} bytes an entry",
        bytes / 1_024 / 1_024,
        bytes as f64 / subjects as f64,
    );

    let started = Instant::now();
    drop(order);
    println!("closed in {} ms", started.elapsed().as_millis());
    let started = Instant::now();
    let (order, found) = DiskOrder::open(folder, "bench", memory_bytes)?;
    let opened = started.elapsed();
    let started = Instant::now();
    let first = order.after(lane, None, BATCH)?.len();
    println!(
        "opened again in {} ms ({found:?}), the first {first} entries read in {:.1} ms",
        opened.as_millis(),
        started.elapsed().as_secs_f64() * 1e3,
    );
    Ok(())
}

fn build(
    order: &mut DiskOrder,
    lane: LaneNumber,
    subjects: usize,
    random: &mut Random,
) -> Result<(), OrderError> {
    order.begin_building()?;
    let entries = (0..subjects).map(|subject| Entry {
        place: (
            WorldTime(random.below(7 * DAY_US) as i64),
            Key(subject as i64),
        ),
        state: random_state(random),
    });
    order.build(lane, entries)?;
    order.finish(0)
}

fn random_state(random: &mut Random) -> State {
    let mut bytes = [0; 64];
    for chunk in bytes.chunks_exact_mut(8) {
        chunk.copy_from_slice(&random.next_u64().to_le_bytes());
    }
    State::try_from(&bytes[..63]).unwrap_or_default()
}

/// Everybody is taken once, or as many times as there are subjects.
struct Turnover {
    subjects: usize,
    pops: usize,
    /// Of the pops, those that were put back as they were.
    refiled: usize,
    longest: Duration,
    /// Batches that took longer than a second: those that waited for files to be merged.
    slow: usize,
    tenths: Vec<Duration>,
}

impl Turnover {
    fn new(subjects: usize) -> Self {
        Self {
            subjects,
            pops: 0,
            refiled: 0,
            longest: Duration::ZERO,
            slow: 0,
            tenths: Vec::new(),
        }
    }

    fn run(&mut self, order: &mut DiskOrder, lane: LaneNumber, random: &mut Random) -> Outcome<()> {
        let mut cursor = None;
        let mut tenth_started = Instant::now();
        let mut sequence = 0;
        while self.pops < self.subjects {
            let started = Instant::now();
            let limit = BATCH.min(self.subjects - self.pops);
            let entries = order.after(lane, cursor, limit)?;
            let last = entries.last().ok_or("nothing is left in the order")?;
            if cursor.is_some_and(|cursor| entries[0].place <= cursor) {
                return Err("an entry came twice".into());
            }
            cursor = Some(last.place);
            let changes: Vec<_> = entries
                .into_iter()
                .map(|entry| self.file_again(lane, entry, random))
                .collect();
            sequence += 1;
            order.apply(&changes, sequence)?;
            let took = started.elapsed();
            self.longest = self.longest.max(took);
            self.slow += usize::from(took > Duration::from_secs(1));
            if self.pops * 10 / self.subjects > self.tenths.len() {
                self.tenths.push(tenth_started.elapsed());
                tenth_started = Instant::now();
                self.print_tenth();
            }
        }
        Ok(())
    }

    fn file_again(&mut self, lane: LaneNumber, entry: Entry, random: &mut Random) -> Change {
        self.pops += 1;
        let (before, subject) = entry.place;
        let due = before.micros() + (DAY_US + random.below(6 * DAY_US)) as i64;
        let is_refile = random.below(10) == 0;
        self.refiled += usize::from(is_refile);
        let state = if is_refile {
            entry.state
        } else {
            random_state(random)
        };
        Change::File {
            lane,
            before: Some(before),
            entry: Entry {
                place: (WorldTime(due), subject),
                state,
            },
        }
    }

    fn print_tenth(&self) {
        if let Some(took) = self.tenths.last() {
            println!(
                "  tenth {:>2}: {:.0} pops/s",
                self.tenths.len(),
                self.subjects as f64 / 10.0 / took.as_secs_f64(),
            );
        }
    }

    fn report(&self, took: Duration) {
        let slowest = self.tenths.iter().max().copied().unwrap_or(took);
        println!(
            "turned over in {:.1} s: {:.0} pops/s, {:.0} in the worst tenth; {} of {} put back unvisited; longest batch {:.0} ms, {} batches over a second",
            took.as_secs_f64(),
            self.pops as f64 / took.as_secs_f64(),
            self.subjects as f64 / 10.0 / slowest.as_secs_f64(),
            self.refiled,
            self.pops,
            self.longest.as_secs_f64() * 1e3,
            self.slow,
        );
    }
}

/// Bytes that the files of a folder take.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        // A file that was merged away meanwhile.
        Err(_) => 0,
    });
    sizes.sum()
}
