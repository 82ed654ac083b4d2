//! The machine: disk, open files, clock, the state folder and the ledger in it.

use super::{Check, bytes};
use crate::settings::{Settings, Value};
use crate::{environment, machine};
use kittiwake_store::sqlite::check;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const AREA: &str = "machine";
/// Below this a crawl fails soon; below the other one should look after it.
const FREE_BYTES_MIN: u64 = 100 << 20;
const FREE_BYTES_COMFORTABLE: u64 = 2 << 30;
/// The ledger is small.
const STATE_FREE_BYTES_MIN: u64 = 10 << 20;
/// Files that are open besides the connections of calls: files of the crawl and the ledger,
/// name lookups, the runtime's own.
const FILES_BESIDES: u64 = 40;
/// Nobody runs this program before it was written, nor for so long.
const YEAR_MIN: i64 = 2026;
const YEAR_MAX: i64 = 2100;
/// How long the clock is watched, and how far it may stray meanwhile.
const WATCHED: Duration = Duration::from_millis(50);
const STRAY_US_MAX: i64 = 1_000_000;

pub(super) fn checks(settings: Option<&Settings>, files: &[PathBuf]) -> Vec<Check> {
    let mut checks = Vec::new();
    let concurrency = settings.and_then(|settings| settings.get("concurrency"));
    let concurrency = match concurrency {
        Some(Value::Number(number)) => u64::from(*number),
        _ => 4,
    };
    for folder in crawl_folders(files) {
        checks.push(free_space(&folder));
    }
    checks.push(open_files(machine::open_files_max(), concurrency));
    checks.push(clock_now());
    match environment::state_folder() {
        Ok(folder) => checks.extend(state_checks(&folder)),
        Err(failure) => checks.push(Check::problem(
            AREA,
            "state folder",
            failure.message,
            "set HOME to your home folder",
        )),
    }
    checks
}

/// The folders of the files, each once, or the current one.
fn crawl_folders(files: &[PathBuf]) -> BTreeSet<PathBuf> {
    let folder_of = |file: &PathBuf| match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    if files.is_empty() {
        return BTreeSet::from([PathBuf::from(".")]);
    }
    files.iter().map(folder_of).collect()
}

fn free_space(folder: &Path) -> Check {
    let shown = folder.display();
    match machine::free_bytes(folder) {
        Ok(free) => space(&shown.to_string(), free),
        Err(error) => Check::problem(
            AREA,
            "disk space",
            format!("{shown}: {error}"),
            "check the folder's name and its permissions",
        ),
    }
}

fn space(folder: &str, free: u64) -> Check {
    let found = format!("{} free at {folder}", bytes(free));
    if free < FREE_BYTES_MIN {
        let advice = "make room, or crawl into a file on another disk";
        return Check::problem(AREA, "disk space", found, advice);
    }
    if free < FREE_BYTES_COMFORTABLE {
        let advice = "a large crawl takes gigabytes; make room, or keep an eye on it";
        return Check::warning(AREA, "disk space", found, advice);
    }
    Check::ok(AREA, "disk space", found)
}

fn open_files(limit: Option<u64>, concurrency: u64) -> Check {
    let check = "open files";
    let wanted = concurrency.saturating_add(FILES_BESIDES);
    let Some(limit) = limit else {
        return Check::ok(AREA, check, "as many as you like");
    };
    let found = format!("{limit} may be open, {concurrency} calls at once want {wanted}");
    if limit >= wanted {
        return Check::ok(AREA, check, found);
    }
    let advice = format!("allow more (ulimit -n {wanted}), or set a lower concurrency");
    Check::problem(AREA, check, found, &advice)
}

/// Watches the clock for a moment.
fn clock_now() -> Check {
    let started = Instant::now();
    let before = environment::real_now().micros();
    std::thread::sleep(WATCHED);
    let after = environment::real_now().micros();
    let passed_us = i64::try_from(started.elapsed().as_micros()).unwrap_or(i64::MAX);
    clock(after, after.saturating_sub(before), passed_us)
}

fn clock(now_us: i64, moved_us: i64, passed_us: i64) -> Check {
    let check = "clock";
    let advice = "set the machine's clock, by a time service if there is one: windows of limits, \
                  certificates and every time that is stored depend on it";
    let Ok(now) = jiff::Timestamp::from_microsecond(now_us) else {
        return Check::problem(AREA, check, "the time is out of all bounds", advice);
    };
    let year = i64::from(now.to_zoned(jiff::tz::TimeZone::UTC).year());
    let shown = now.strftime("%Y-%m-%dT%H:%M:%SZ");
    if !(YEAR_MIN..YEAR_MAX).contains(&year) {
        return Check::problem(AREA, check, format!("it says {shown}"), advice);
    }
    if moved_us <= 0 {
        let found = format!("it says {shown} and does not move");
        return Check::problem(AREA, check, found, advice);
    }
    if (moved_us - passed_us).abs() > STRAY_US_MAX {
        let found = format!("it says {shown} and has just been moved");
        return Check::warning(AREA, check, found, advice);
    }
    Check::ok(AREA, check, format!("{shown}, moving"))
}

fn state_checks(folder: &Path) -> Vec<Check> {
    let mut checks = vec![writable(folder)];
    if let Some(found) = existing(folder)
        && let Ok(free) = machine::free_bytes(found)
        && free < STATE_FREE_BYTES_MIN
    {
        checks.push(Check::problem(
            AREA,
            "state space",
            format!("{} free at {}", bytes(free), folder.display()),
            "make room: without the ledger no call is made",
        ));
    }
    let ledger = folder.join("budgets.db");
    if ledger.exists() {
        checks.push(ledger_check(&ledger));
    } else {
        let found = "not made yet; the first crawl does";
        checks.push(Check::ok(AREA, "ledger", found));
    }
    checks
}

/// Whether the state folder can be written, or made.
fn writable(folder: &Path) -> Check {
    let check = "state folder";
    let shown = folder.display();
    let tried = match existing(folder) {
        Some(found) if found == folder => machine::try_to_write(folder),
        Some(above) => machine::may_write(above),
        None => Err(std::io::ErrorKind::NotFound.into()),
    };
    match tried {
        Ok(()) => Check::ok(AREA, check, shown.to_string()),
        Err(error) => Check::problem(
            AREA,
            check,
            format!("{shown} cannot be written: {error}"),
            "make it yours and writable, or set XDG_STATE_HOME to a folder that is",
        ),
    }
}

/// The folder itself, or the nearest one above it that is there.
fn existing(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|above| above.exists())
}

fn ledger_check(path: &Path) -> Check {
    let advice = "when nothing runs, wait until all windows are over (an hour for most networks), \
                  then move the file away: a new one is made";
    match check::ledger(path) {
        Ok(found) if found.damage.is_empty() => {
            let rows = found.rows;
            Check::ok(
                AREA,
                "ledger",
                format!("{}: sound, {rows} rows", path.display()),
            )
        }
        Ok(found) => Check::problem(
            AREA,
            "ledger",
            format!("{}: damaged: {}", path.display(), found.damage.join("; ")),
            advice,
        ),
        Err(error) => Check::problem(AREA, "ledger", error.to_string(), advice),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    const NOW_US: i64 = 1_800_000_000_000_000;

    #[test]
    fn a_clock_that_is_wrong_or_stands_still_is_a_problem() {
        assert_eq!(clock(NOW_US, 50_000, 50_000).state, State::Ok);
        assert_eq!(clock(0, 50_000, 50_000).state, State::Problem);
        assert_eq!(clock(i64::MAX, 50_000, 50_000).state, State::Problem);
        assert_eq!(clock(NOW_US, 0, 50_000).state, State::Problem);
        assert_eq!(clock(NOW_US, -1, 50_000).state, State::Problem);
        assert_eq!(clock(NOW_US, 9_000_000, 50_000).state, State::Warning);
    }

    #[test]
    fn a_full_disk_is_a_problem_and_a_small_one_a_warning() {
        assert_eq!(space(".", 0).state, State::Problem);
        assert_eq!(space(".", 1 << 30).state, State::Warning);
        assert_eq!(space(".", 1 << 40).state, State::Ok);
    }

    #[test]
    fn open_files_are_compared_with_the_calls_at_once() {
        assert_eq!(open_files(Some(1024), 4).state, State::Ok);
        assert_eq!(open_files(None, 1024).state, State::Ok);
        let few = open_files(Some(1024), 1024);
        assert_eq!(few.state, State::Problem);
        assert!(few.advice.contains("ulimit -n 1064"), "{}", few.advice);
    }

    #[test]
    fn each_folder_of_files_is_looked_at_once() {
        let files = ["a.db", "b.db", "x/c.db"].map(PathBuf::from);
        let expected = BTreeSet::from([PathBuf::from("."), PathBuf::from("x")]);
        assert_eq!(crawl_folders(&files), expected);
        assert_eq!(crawl_folders(&[]), BTreeSet::from([PathBuf::from(".")]));
    }
}
