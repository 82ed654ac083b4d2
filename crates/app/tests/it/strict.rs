//! What servers that are written by hand for one network have in common: parameters that are taken at
//! their word, and how a crawl's file is held against the server's own data.

use crate::counterpart::Call;
use crate::oracle::Rows;
use crate::support::{Folder, Running, Tables, open, rows, text};
use crate::truth::{difference, held_rows};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::{Duration, Instant};
use url::form_urlencoded;

/// How long a crawl may take to come to the call at which it is killed.
const MOMENT_MAX: Duration = Duration::from_mins(1);

/// What was asked for, parameter by parameter.
pub(crate) struct Asked {
    pub(crate) path: String,
    parameters: BTreeMap<String, String>,
}

impl Asked {
    /// A parameter that comes twice is none that a documentation allows.
    pub(crate) fn of(call: &Call) -> Result<Self, String> {
        let (path, query) = call.target.split_once('?').unwrap_or((&call.target, ""));
        let mut parameters = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if parameters
                .insert(name.to_string(), value.into_owned())
                .is_some()
            {
                return Err(format!("{name} twice"));
            }
        }
        Ok(Self {
            path: path.to_owned(),
            parameters,
        })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// The parameters have to be these, with these values; `*` is any.
    pub(crate) fn expect(&self, required: &[(&str, &str)], allowed: &[&str]) -> Result<(), String> {
        for (name, wanted) in required {
            match self.get(name) {
                Some(value) if *wanted == "*" || *wanted == value => {}
                other => return Err(format!("{name} has to be {wanted}, and is {other:?}")),
            }
        }
        let known = |name: &str| {
            allowed.contains(&name) || required.iter().any(|(required, _)| *required == name)
        };
        match self.parameters.keys().find(|name| !known(name)) {
            Some(name) => Err(format!("there is no parameter {name}")),
            None => Ok(()),
        }
    }

    /// A whole number from 1 on; 1 when it is missing.
    pub(crate) fn page(&self) -> Result<usize, String> {
        let Some(page) = self.get("page") else {
            return Ok(1);
        };
        match page.parse() {
            Ok(page) if page > 0 => Ok(page),
            _ => Err(format!("{page} is no page")),
        }
    }
}

/// Rows of texts, in whatever order.
pub(crate) fn rows_of<const N: usize>(rows: impl IntoIterator<Item = [String; N]>) -> Rows {
    rows.into_iter().map(Vec::from).collect()
}

/// A crawl's file, with `TYPE ID` for the keys in columns that are called `@`.
pub(crate) struct Held {
    tables: rusqlite::Connection,
    names: BTreeMap<String, String>,
    differences: Vec<String>,
    counts: Vec<String>,
}

impl Held {
    pub(crate) fn open(folder: &Folder) -> Self {
        let tables = open(&folder.path("t.db"));
        let mut names = BTreeMap::new();
        // What was never described is known by what it was called.
        let sql = "SELECT key, type, id FROM ids ORDER BY canonical, alias";
        for row in Tables::select(&tables, sql).1 {
            let [key, kind, id] = row.try_into().expect("three columns");
            names.insert(key, format!("{kind} {id}"));
        }
        Self {
            tables,
            names,
            differences: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// What the file holds.
    pub(crate) fn rows(&self, sql: &str) -> Rows {
        held_rows(&self.tables, &self.names, sql)
    }

    /// Notes what is missing from the file, and what is in it that the server does not have.
    pub(crate) fn compare(&mut self, what: &str, expected: &Rows, sql: &str) {
        let held = held_rows(&self.tables, &self.names, sql);
        self.differences.extend(difference(what, expected, &held));
        self.counts.push(format!("{} {what}", held.len()));
    }

    /// Nothing is missing, nothing is invented, everybody was visited.
    pub(crate) fn finish(self) {
        let left = "SELECT subject, robot FROM frontier WHERE visited_us IS NULL";
        let left: Vec<String> = rows(&self.tables, left).into_iter().flatten().collect();
        let mended = "SELECT target FROM query_log WHERE mended > 0";
        let mended: Vec<String> = Tables::select(&self.tables, mended).1.concat();
        assert!(
            self.differences.is_empty(),
            "{}",
            self.differences.join("\n")
        );
        assert_eq!(left, [""; 0], "not visited");
        assert_eq!(mended, [""; 0], "values that were dropped");
        println!("equal to the server: {}", self.counts.join(", "));
    }
}

/// What is there after all faults is held, and nothing is held that never was there; only the first
/// columns count, since the others change with the moment. How many rows were withdrawn unseen.
pub(crate) fn held_between(
    (what, columns): (&str, usize),
    held: &Rows,
    (least, most): (&Rows, &Rows),
) -> usize {
    let cut = |rows: &Rows| -> Rows {
        let cut = |row: &Vec<String>| row.iter().take(columns).cloned().collect();
        rows.iter().map(cut).collect()
    };
    let (held, least, most) = (cut(held), cut(least), cut(most));
    let missing: Vec<_> = least.difference(&held).take(3).collect();
    assert!(
        missing.is_empty(),
        "{what} lost without a word: {missing:?}"
    );
    let invented: Vec<_> = held.difference(&most).take(3).collect();
    assert!(invented.is_empty(), "{what} invented: {invented:?}");
    most.difference(&held).count()
}

/// Kills a crawl after so many calls, goes on, and sees to it that nothing is asked for again whose
/// answer was committed.
pub(crate) fn kill_and_resume(
    folder: &Folder,
    crawl: impl Fn() -> Command,
    targets: impl Fn() -> Vec<String>,
    calls: usize,
) {
    let mut process = Running::start(&mut crawl());
    let started = Instant::now();
    while targets().len() < calls {
        assert!(!process.has_ended(), "the crawl ended before it was killed");
        assert!(started.elapsed() < MOMENT_MAX, "the crawl does not come on");
        std::thread::sleep(Duration::from_millis(1));
    }
    process.kill();
    // What is left of limits and what may be asked for is asked for at every start.
    let sql = "SELECT DISTINCT target FROM query_log
               WHERE query NOT IN ('limit_status', 'robots.txt')";
    let known: BTreeSet<String> = rows(&open(&folder.path("t.db")), sql)
        .into_iter()
        .flatten()
        .collect();
    let before = targets().len();
    finish(&mut crawl());
    let again: Vec<String> = targets().split_off(before);
    let repeated = again.iter().find(|target| known.contains(*target));
    assert_eq!(repeated, None, "asked for again although committed");
    assert!(!known.is_empty() && !again.is_empty(), "killed on the way");
}

/// Runs a crawl to its end.
pub(crate) fn finish(crawl: &mut Command) {
    let output = crawl.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}
