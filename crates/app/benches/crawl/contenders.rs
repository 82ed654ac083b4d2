//! Those who crawl: Kittiwake, a bare client, Scrapy.

use crate::measure::{self, Usage};
use crate::pages::owner;
use rusqlite::{Connection, OpenFlags};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

/// The tables that every crawler fills, with the same rows.
pub(crate) const TABLES: [&str; 6] = ["users", "statuses", "comments", "tags", "links", "ids"];

/// A server in a process of its own; it ends when this is dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    /// The words of its first line: the address, and what else there is to know.
    words: Vec<String>,
    _keeps_it_running: ChildStdin,
}

impl Server {
    /// Serves the pages, each after a pause.
    pub(crate) fn of_pages(latency: Duration) -> Self {
        Self::start("serve", &latency.as_millis().to_string())
    }

    /// Serves the synthetic network.
    pub(crate) fn of_world(users: u64) -> Self {
        Self::start("world", &users.to_string())
    }

    fn start(role: &str, argument: &str) -> Self {
        let mut child = own_program(role)
            .arg(argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        Self {
            words: line.split_whitespace().map(str::to_owned).collect(),
            _keeps_it_running: child.stdin.take().unwrap(),
            child,
        }
    }

    pub(crate) fn address(&self) -> &str {
        &self.words[0]
    }

    /// Somebody to begin with.
    pub(crate) fn seed(&self) -> &str {
        &self.words[1]
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This program in another role.
fn own_program(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--role", role]);
    command
}

/// The crawler that is measured, by the path of its binary.
pub(crate) struct Kittiwake {
    pub(crate) binary: PathBuf,
}

impl Kittiwake {
    pub(crate) fn version(&self) -> String {
        let output = Command::new(&self.binary).arg("--version").output();
        String::from_utf8(output.unwrap().stdout)
            .unwrap()
            .trim()
            .to_owned()
    }

    /// The binary, with nothing of this machine's settings.
    pub(crate) fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .env_clear()
            .env("HOME", folder)
            .env("XDG_STATE_HOME", folder.join("state"))
            .env("XDG_CONFIG_HOME", folder.join("config"))
            .stdin(Stdio::null());
        command
    }

    /// Crawls so many timelines into `file`.
    pub(crate) fn crawl_timelines(
        &self,
        address: &str,
        timelines: u64,
        at_once: usize,
        file: &Path,
    ) -> Usage {
        self.crawl_some_of(address, timelines, at_once, file, None)
    }

    /// The same, with at most so many calls.
    pub(crate) fn crawl_some_of(
        &self,
        address: &str,
        timelines: u64,
        at_once: usize,
        file: &Path,
        calls_max: Option<u64>,
    ) -> Usage {
        let folder = file.parent().unwrap();
        let seeds = folder.join("seeds.txt");
        let mut lines = String::new();
        for timeline in 0..timelines {
            let _ = writeln!(lines, "id:{}", owner(timeline));
        }
        std::fs::write(&seeds, lines).unwrap();
        let mut command = self.command(folder);
        command
            .args(["crawl", "mastodon", "-", "--quiet", "--until-idle"])
            .args(["--robots", "statuses", "--depth", "0", "--limits", "off"])
            .args(["--host", &format!("http://{address}")])
            .args(["--concurrency", &at_once.to_string()])
            .arg("--into")
            .arg(file)
            .stdin(File::open(&seeds).unwrap());
        if let Some(calls) = calls_max {
            command.args(["--max-calls", &calls.to_string()]);
        }
        measure::run(&mut command, |_| {})
    }
}

/// Only downloads.
pub(crate) fn bare_client(address: &str, timelines: u64, at_once: usize) -> Usage {
    let mut command = own_program("bare");
    command
        .arg(address)
        .args([timelines.to_string(), at_once.to_string()]);
    measure::run(&mut command, |_| {})
}

/// Scrapy, in a virtual environment below the target folder.
pub(crate) struct Scrapy {
    python: PathBuf,
    pub(crate) version: String,
}

impl Scrapy {
    /// Installs it unless it is there; the error says why it cannot be measured.
    pub(crate) fn install(target: &Path) -> Result<Self, String> {
        let environment = target.join("bench-venv");
        let python = environment.join("bin/python");
        if version_of(&python).is_none() {
            let make = ["-m", "venv", &environment.display().to_string()].map(str::to_owned);
            let install = ["-m", "pip", "install", "--quiet", "scrapy"].map(str::to_owned);
            try_run(Path::new("python3"), &make)?;
            try_run(&python, &install)?;
        }
        match version_of(&python) {
            Some(version) => Ok(Self { python, version }),
            None => Err("it was installed and does not start".to_owned()),
        }
    }

    /// Crawls so many timelines into `file`, which gets the tables and indexes of `schema`.
    pub(crate) fn crawl_timelines(
        &self,
        address: &str,
        timelines: u64,
        at_once: usize,
        file: &Path,
        schema: &Path,
    ) -> Usage {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/bench/scrapy_crawl.py");
        let mut command = Command::new(&self.python);
        command
            .arg(script)
            .arg(format!("http://{address}"))
            .args([owner(0), timelines, at_once as u64].map(|number| number.to_string()))
            .args([file, schema]);
        measure::run(&mut command, |_| {})
    }
}

fn version_of(python: &Path) -> Option<String> {
    let output = Command::new(python)
        .args(["-c", "import scrapy; print(scrapy.__version__)"])
        .output()
        .ok()?;
    let version = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    output.status.success().then_some(version)
}

fn try_run(program: &Path, arguments: &[String]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    let last = told.lines().last().unwrap_or("no reason was given");
    Err(format!("{}: {last}", arguments.join(" ")))
}

pub(crate) fn open(file: &Path) -> Connection {
    Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

/// Rows of each of [`TABLES`].
pub(crate) fn rows_in(file: &Path) -> [i64; TABLES.len()] {
    let connection = open(file);
    TABLES.map(|table| {
        // The host that is asked has an id as well, beside what its pages tell.
        let of_pages = if table == "ids" {
            " WHERE type IN ('user', 'status', 'tag')"
        } else {
            ""
        };
        let sql = format!("SELECT count(*) FROM {table}{of_pages}");
        connection.query_row(&sql, [], |row| row.get(0)).unwrap()
    })
}

/// The tables and indexes of a crawl file as SQL, so that others can make the very same.
pub(crate) fn schema_of(file: &Path) -> String {
    let connection = open(file);
    let mut statement = connection
        .prepare(
            "SELECT tbl_name, sql FROM sqlite_master
             WHERE type IN ('table', 'index') AND sql IS NOT NULL ORDER BY rowid",
        )
        .unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let mut schema = String::new();
    for row in rows.unwrap() {
        let (table, sql): (String, String) = row.unwrap();
        // Ids are found through a table of their own.
        if TABLES.contains(&table.as_str()) || table == "id_places" {
            let _ = writeln!(schema, "{sql};");
        }
    }
    schema
}
