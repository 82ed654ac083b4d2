//! What a process took: time, processor and memory, as Linux counts them.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What the kernel counts processor time in.
const TICKS_PER_SECOND: f64 = 100.0;
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What one process took from its start to its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) seconds: f64,
    /// User and system.
    pub(crate) cpu_seconds: f64,
    /// The most memory that it ever had.
    pub(crate) peak_kib: u64,
}

/// Runs a command to its end; `look` is called now and then with its peak of memory so far.
pub(crate) fn run(command: &mut Command, mut look: impl FnMut(u64)) -> Usage {
    // Processor time of children is added to ours when they are waited for.
    let before = processor_seconds(Path::new("/proc/self/stat"), Whose::Children);
    let started = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let mut peak_kib = 0;
    let status = loop {
        peak_kib = peak_kib.max(peak_of(&child).unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        look(peak_kib);
        std::thread::sleep(LOOK_EVERY);
    };
    let seconds = started.elapsed().as_secs_f64();
    // 3: stopped by the number of calls, as asked.
    assert!(
        status.success() || status.code() == Some(3),
        "{command:?} ended with {status}"
    );
    let after = processor_seconds(Path::new("/proc/self/stat"), Whose::Children);
    Usage {
        seconds,
        cpu_seconds: after - before,
        peak_kib,
    }
}

/// Processor time of this process so far.
pub(crate) fn own_cpu_seconds() -> f64 {
    processor_seconds(Path::new("/proc/self/stat"), Whose::Own)
}

/// Processor time of a process that is running.
pub(crate) fn cpu_seconds_of(child: &Child) -> f64 {
    let path = format!("/proc/{}/stat", child.id());
    processor_seconds(Path::new(&path), Whose::Own)
}

#[derive(Clone, Copy)]
enum Whose {
    Own,
    Children,
}

fn processor_seconds(path: &Path, whose: Whose) -> f64 {
    let text = std::fs::read_to_string(path).unwrap();
    // The name of the program, in brackets, may hold spaces.
    let (_, rest) = text.rsplit_once(')').unwrap();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let first = match whose {
        Whose::Own => 11,
        Whose::Children => 13,
    };
    let ticks: f64 = fields[first..first + 2]
        .iter()
        .map(|field| field.parse::<f64>().unwrap())
        .sum();
    ticks / TICKS_PER_SECOND
}

fn peak_of(child: &Child) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// The median of several measurements, with the least and the greatest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        Self {
            median: values[values.len() / 2],
            least: values[0],
            most: values[values.len() - 1],
        }
    }
}
