//! A file: a crawl, or a list of ids.

use super::{Check, bytes};
use crate::spreadsheet::Census;
use crate::standing::asked;
use crate::{console, environment};
use kittiwake_store::sqlite::check::{self, CrawlCheck, RunCheck};
use kittiwake_store::{StoreError, StoreErrorKind};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// What lists of ids are named; any other file is taken for a crawl.
const LISTS: [&str; 6] = ["txt", "csv", "tsv", "tab", "ids", "list"];
/// The most bytes of a list, and of one of its lines.
const LIST_BYTES_MAX: u64 = 4 << 30;
const LINE_BYTES_MAX: u64 = 1 << 20;
/// A write-ahead log beyond this was kept from being emptied.
const WAL_BYTES_COMFORTABLE: u64 = 256 << 20;
/// Reading a file of this size takes a while; one should know what is being done.
const LARGE_BYTES: u64 = 1 << 30;
/// A clock may differ a little between two looks at it.
const FUTURE_US_MAX: i64 = 60_000_000;
const DAMAGED_IDS_ADVICE: &str = "a spreadsheet rounds long ids, and what is lost is lost: take the \
                                  ids from their source again, and import them there as text";

pub(super) fn checks(path: &Path) -> Vec<Check> {
    let is_list = path
        .extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| LISTS.contains(&extension.to_ascii_lowercase().as_str()));
    if is_list {
        vec![list_check(path)]
    } else {
        crawl_checks(path)
    }
}

fn crawl_checks(path: &Path) -> Vec<Check> {
    let area = path.display().to_string();
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > LARGE_BYTES) {
        console::note(&format!("reading all of {area}; this takes a while"));
    }
    let found = match check::crawl(path) {
        Ok(found) => found,
        Err(error) => return vec![refusal(&area, &error)],
    };
    let mut checks = vec![schema(&area, &found), damage(&area, &found)];
    checks.push(log(&area, &found));
    checks.push(lock(&area, found.held));
    let now_us = environment::real_now().micros();
    checks.extend(last_run(&area, found.last_run.as_ref(), found.held, now_us));
    if found.damage.is_empty() {
        checks.extend(id_checks(path, &area));
    }
    checks
}

fn refusal(area: &str, error: &StoreError) -> Check {
    let advice = match error.kind() {
        StoreErrorKind::Newer => "take the newest version of the program",
        StoreErrorKind::Missing => "check the name; a crawl makes its file by itself",
        StoreErrorKind::NotOurs => {
            "name a crawl's file, or a list of ids that ends in .txt, .csv or .tsv"
        }
        _ => {
            return Check::problem(
                area,
                "file",
                error.to_string(),
                "mend it, or restore a copy",
            );
        }
    };
    // What the store advises is for those who want to crawl.
    let message = error.to_string();
    let found = message.split("; ").next().unwrap_or_default();
    Check::problem(area, "file", found, advice)
}

fn schema(area: &str, found: &CrawlCheck) -> Check {
    let (schema, newest) = (found.schema, found.schema_newest);
    let size = bytes(found.bytes);
    if schema < newest {
        return Check::warning(
            area,
            "file",
            format!("a crawl of {size}, schema {schema}; this program writes {newest}"),
            "crawl into it once to bring it forward; keep a copy before",
        );
    }
    Check::ok(area, "file", format!("a crawl of {size}, schema {schema}"))
}

fn damage(area: &str, found: &CrawlCheck) -> Check {
    if found.damage.is_empty() {
        return Check::ok(area, "soundness", "every page is in order");
    }
    Check::problem(
        area,
        "soundness",
        format!("damaged:\n{}", found.damage.join("\n")),
        "restore a copy, or save what is left: sqlite3 FILE .recover | sqlite3 saved.db; \
         check the disk",
    )
}

fn log(area: &str, found: &CrawlCheck) -> Check {
    let size = bytes(found.wal_bytes);
    if found.wal_bytes <= WAL_BYTES_COMFORTABLE {
        return Check::ok(area, "log", format!("{size} to be moved into the file"));
    }
    let advice = if found.held {
        "a program that reads for long keeps it from being emptied: close it"
    } else {
        "the next crawl into the file empties it; move it only together with the file"
    };
    Check::warning(
        area,
        "log",
        format!("{size} to be moved into the file"),
        advice,
    )
}

fn lock(area: &str, held: bool) -> Check {
    let found = if held {
        "a living process is crawling into it"
    } else {
        "nobody is crawling into it"
    };
    Check::ok(area, "lock", found)
}

fn last_run(area: &str, run: Option<&RunCheck>, held: bool, now_us: i64) -> Vec<Check> {
    let check = "last run";
    let Some(run) = run else {
        return vec![Check::ok(area, check, "none yet")];
    };
    let name = format!("run {} of {}", run.number, asked(&run.network, &run.host));
    let mut checks = vec![match (&run.end, held) {
        (None, true) => Check::ok(area, check, format!("{name} is going on")),
        (None, false) => Check::warning(
            area,
            check,
            format!("{name} was killed, or the machine stopped"),
            "nothing is lost; the same command goes on",
        ),
        (Some(end), _) => ended(area, check, &name, &end.reason),
    }];
    if run.clock == "real" && run.started.micros().saturating_sub(now_us) > FUTURE_US_MAX {
        checks.push(Check::warning(
            area,
            "clock",
            format!("{name} began in the future"),
            "the clock was wrong then or is now; set it before you crawl on",
        ));
    }
    checks
}

fn ended(area: &str, check: &'static str, name: &str, reason: &str) -> Check {
    let found = format!("{name} ended: {reason}");
    let advice = match reason.split(':').next().unwrap_or_default() {
        "host down" => "see whether the host is up; the same command goes on",
        "auth expired" => "log in again, or set a valid token, and run the same command",
        "failed" => "mend what is named; the same command goes on",
        _ => return Check::ok(area, check, found),
    };
    Check::warning(area, check, found, advice)
}

/// One check for each kind of ids that begin with digits; seeds apart, because people paste them.
fn id_checks(path: &Path, area: &str) -> Vec<Check> {
    let mut kinds: BTreeMap<String, Census> = BTreeMap::new();
    let counted = check::numeric_ids(path, |id| {
        let whose = if id.of_seed { " (seeds)" } else { "" };
        let kind = format!("{} {}{whose}", id.network, id.kind);
        kinds.entry(kind).or_default().count(id.id);
    });
    if let Err(error) = counted {
        let advice = "restore a copy of the file";
        return vec![Check::problem(area, "ids", error.to_string(), advice)];
    }
    let suspect: Vec<Check> = kinds
        .iter()
        .filter_map(|(kind, census)| {
            let found = format!("{kind}: {}", census.suspicion()?);
            Some(Check::warning(area, "ids", found, DAMAGED_IDS_ADVICE))
        })
        .collect();
    if !suspect.is_empty() {
        return suspect;
    }
    let count: u64 = kinds.values().map(|census| census.numeric).sum();
    vec![Check::ok(
        area,
        "ids",
        format!("{count} with digits, none rounded"),
    )]
}

fn list_check(path: &Path) -> Check {
    let area = path.display().to_string();
    match count_list(path) {
        Ok(census) if census.numeric == 0 => Check::ok(
            &area,
            "ids",
            "no ids of digits: nothing that could be rounded",
        ),
        Ok(census) => match census.suspicion() {
            // Here every id is one that somebody will ask for.
            Some(found) => Check::problem(&area, "ids", found, DAMAGED_IDS_ADVICE),
            None => Check::ok(
                &area,
                "ids",
                format!("{} with digits, none rounded", census.numeric),
            ),
        },
        Err(error) => {
            let found = format!("cannot be read: {error}");
            Check::problem(
                &area,
                "ids",
                found,
                "save the list as text (UTF-8), and check its name",
            )
        }
    }
}

/// Counts everything between separators that looks like an id. Bounded: the path may name a
/// device that never ends.
fn count_list(path: &Path) -> std::io::Result<Census> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let mut reader = BufReader::new(File::open(path)?.take(LIST_BYTES_MAX));
    let mut census = Census::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut bounded = reader.by_ref().take(LINE_BYTES_MAX);
        if bounded.read_until(b'\n', &mut line)? == 0 {
            return Ok(census);
        }
        if line.contains(&0) {
            return Err(std::io::Error::other("it is not plain text"));
        }
        count_line(&mut census, &String::from_utf8_lossy(&line));
    }
}

/// Lists are written with many separators. Where there is another one, a comma may be part of a
/// number.
fn count_line(census: &mut Census, line: &str) {
    let separators: &[char] = if line.contains([';', '\t']) {
        &[';', '\t']
    } else {
        &[',', ' ']
    };
    for cell in line.trim_start_matches('\u{FEFF}').split(separators) {
        let cell = cell.trim().trim_matches(['"', '\'']);
        census.count(cell.strip_prefix("id:").unwrap_or(cell));
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;
    use kittiwake_model::{RealTime, RunEnd};

    fn run(end: Option<&str>) -> RunCheck {
        RunCheck {
            number: 3,
            network: "mastodon".into(),
            host: "h".into(),
            clock: "real".into(),
            started: RealTime(1_000),
            end: end.map(|reason| RunEnd {
                ended: RealTime(2_000),
                reason: reason.into(),
            }),
        }
    }

    fn states(run: &RunCheck, held: bool, now_us: i64) -> Vec<State> {
        let checks = last_run("f", Some(run), held, now_us);
        checks.iter().map(|check| check.state).collect()
    }

    #[test]
    fn the_last_run_says_how_it_ended() {
        assert_eq!(states(&run(None), true, 5_000), [State::Ok]);
        assert_eq!(states(&run(None), false, 5_000), [State::Warning]);
        assert_eq!(states(&run(Some("idle")), false, 5_000), [State::Ok]);
        for reason in ["host down: refused", "auth expired: 401", "failed: disk"] {
            assert_eq!(
                states(&run(Some(reason)), false, 5_000),
                [State::Warning],
                "{reason}"
            );
        }
    }

    fn sound() -> CrawlCheck {
        CrawlCheck {
            schema: 2,
            schema_newest: 2,
            bytes: 4096,
            wal_bytes: 0,
            held: false,
            damage: Vec::new(),
            last_run: None,
        }
    }

    #[test]
    fn an_older_schema_and_a_grown_log_are_warnings() {
        assert_eq!(schema("f", &sound()).state, State::Ok);
        assert_eq!(log("f", &sound()).state, State::Ok);
        let older = CrawlCheck {
            schema: 1,
            wal_bytes: 1 << 30,
            ..sound()
        };
        assert_eq!(schema("f", &older).state, State::Warning);
        let left = log("f", &older);
        assert_eq!(left.state, State::Warning);
        let held = CrawlCheck {
            held: true,
            ..older
        };
        assert_ne!(log("f", &held).advice, left.advice);
    }

    #[test]
    fn cells_are_found_between_all_separators() {
        for line in [
            "\u{FEFF}1.09E+17",
            "alice;1,09E+17;x",
            "\"alice\",\"1.09E+17\"\r\n",
            "alice,\"1,09E+17\"",
            "id:1e+17 # pasted",
            "a\t1,09E+17",
        ] {
            let mut census = Census::default();
            count_line(&mut census, line);
            assert_eq!(census.rewritten, 1, "{line:?}");
        }
    }

    #[test]
    fn a_run_that_began_in_the_future_is_pointed_out() {
        let mut early = run(Some("idle"));
        early.started = RealTime(3_600_000_000);
        assert_eq!(states(&early, false, 0), [State::Ok, State::Warning]);
        early.clock = "synthetic from 0".into();
        assert_eq!(states(&early, false, 0), [State::Ok]);
    }
}
