//! A crawl on a PostgreSQL server: the same commands, the same data.

#[expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]
#[path = "../../../store/tests/it/postgres/server.rs"]
pub(crate) mod server;

use crate::kill::{committed, how_often, kill_test};
use crate::limits::World;
use crate::oracle::{ALL_ROBOTS, Plan, Truth};
use crate::support::{Folder, Place, Running, Sim, Tables, text};
use crate::truth::{TOKEN, Whole, compare};
use serde_json::Value;
use server::{Schema, Server};
use std::collections::BTreeSet;

const WORDS: &str = "--depth 2 --robots all --limits off --include-opted-out test --until-idle";

impl Tables for &Schema {
    fn select(&self, sql: &str) -> (Vec<String>, Vec<Vec<String>>) {
        let (names, rows) = Schema::select(self, sql);
        let texts = |row: Vec<Option<String>>| row.into_iter().map(Option::unwrap_or_default);
        let rows = rows.into_iter().map(|row| texts(row).collect());
        (names, rows.collect())
    }

    fn has_table(&self, name: &str) -> bool {
        let sql = format!(
            "SELECT 1 FROM information_schema.tables
             WHERE table_schema = current_schema() AND table_name = '{name}'"
        );
        !Tables::select(self, &sql).1.is_empty()
    }
}

impl Place for Schema {
    fn name(&self) -> String {
        self.url.clone()
    }

    fn tables(&self) -> Option<Box<dyn Tables + '_>> {
        Some(Box::new(self))
    }
}

fn world(folder: &Folder) -> (Sim, String) {
    let arguments = "--users 40 --seed 9 --speed 0 --limits off";
    let sim = Sim::start(folder, arguments);
    let seed = sim.truth("users")[0]["acct"]
        .as_str()
        .expect("a name")
        .to_owned();
    (sim, seed)
}

pub(crate) fn run(folder: &Folder, words: &[&str]) -> String {
    let output = folder.run(words);
    assert!(
        output.status.success(),
        "{words:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// Everything that a crawl holds, in no order and without the numbers of calls.
pub(crate) fn held(folder: &Folder, place: &str) -> Vec<String> {
    let exported = run(folder, &["export", place, "--output", "-"]);
    let mut rows: Vec<String> = exported
        .lines()
        .map(|line| {
            let mut row: Value = serde_json::from_str(line).expect("a JSON line");
            without_calls(&mut row);
            // Not every mention of a tag has its address: which came last depends on the calls.
            if row["table"] == "tags" {
                row["observed"].take();
            }
            row.to_string()
        })
        .collect();
    rows.sort_unstable();
    rows
}

fn without_calls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("log");
            fields.values_mut().for_each(without_calls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_calls),
        _ => {}
    }
}

pub(crate) fn crawl_words<'w>(sim: &'w Sim, seed: &'w str, into: &'w str) -> Vec<&'w str> {
    let address = &*sim.address;
    let mut words = vec![
        "crawl",
        "mastodon",
        seed,
        "--host",
        address,
        "--clock-from",
        address,
    ];
    words.extend(["--into", into, "--quiet"]);
    words.extend(WORDS.split(' '));
    words
}

#[test]
fn a_crawl_into_a_server_stores_exactly_the_truth() {
    let whole = Whole {
        users: "200",
        depth: 2,
        robots: ALL_ROBOTS,
        concurrency: "16",
        include_opted_out: true,
    };
    whole.check(&Folder::new(), &server::shared().schema());
}

#[test]
fn kills_of_a_crawl_into_a_server_lose_nothing_and_repeat_nothing() {
    let (users, kills) = how_often();
    kill_test(&Folder::new(), &server::shared().schema(), users, kills);
}

/// Sees to it that nothing is asked for again of which the answer is committed.
struct Memory {
    committed: BTreeSet<String>,
    heard: u64,
}

impl Memory {
    fn of(schema: &Schema, sim: &Sim) -> Self {
        // In this order: whatever is committed was asked for before.
        let committed = committed(schema);
        let heard = sim.calls();
        Self { committed, heard }
    }

    fn hold_against(&self, sim: &Sim) {
        let calls = sim.targets_after(self.heard);
        let repeated = calls.iter().find(|target| self.committed.contains(*target));
        assert_eq!(repeated, None, "asked for again although committed");
    }
}

#[test]
fn a_server_that_restarts_in_mid_crawl_costs_nothing() {
    let folder = Folder::new();
    let server: Server = server::own();
    let schema = server.schema();
    let sim = Sim::start(&folder, "--users 200 --seed 5 --speed 0 --limits off");
    let truth = Truth::read(&sim);
    let plan = Plan {
        seed: &truth.seed(),
        depth: 2,
        robots: ALL_ROBOTS,
        include_opted_out: true,
    };
    let words = format!("{} --until-idle --limits off --concurrency 8", plan.words());
    let mut crawl = folder.crawl_into(&schema.url, &sim.address, &words);
    let mut crawl = Running::start(crawl.env("KITTIWAKE_MASTODON_TOKEN", TOKEN));
    let mut memories = Vec::new();
    for (calls, mode) in [(30, "immediate"), (120, "fast"), (240, "immediate")] {
        sim.wait_for_calls(calls);
        assert!(!crawl.has_ended(), "the world is too small");
        memories.push(Memory::of(&schema, &sim));
        server.restart(mode);
    }
    assert_eq!(crawl.wait(), Some(0));
    for memory in &memories {
        memory.hold_against(&sim);
    }
    assert!(memories.iter().any(|memory| !memory.committed.is_empty()));
    compare(&schema, &truth, plan);
}

#[test]
fn a_crawl_into_a_server_equals_one_into_a_file() {
    let folder = Folder::new();
    let schema: Schema = server::shared().schema();
    let (sim, seed) = world(&folder);
    run(&folder, &crawl_words(&sim, &seed, "t.db"));
    run(&folder, &crawl_words(&sim, &seed, &schema.url));
    let (filed, served) = (held(&folder, "t.db"), held(&folder, &schema.url));
    assert!(filed.len() > 1_000, "{} rows", filed.len());
    assert_eq!(filed.len(), served.len());
    let only_in_one = |one: &[String], other: &[String]| -> Vec<String> {
        let missing = one.iter().filter(|row| !other.contains(row));
        missing.take(3).cloned().collect()
    };
    let none: Vec<String> = Vec::new();
    assert_eq!(only_in_one(&filed, &served), none, "only in the file");
    assert_eq!(only_in_one(&served, &filed), none, "only on the server");
    let status: Value =
        serde_json::from_str(&run(&folder, &["status", &schema.url, "--json"])).expect("JSON");
    assert_eq!(status["crawling"], false);
    assert!(
        status["file"]
            .as_str()
            .is_some_and(|file| file.starts_with("postgres://"))
    );
    assert!(run(&folder, &["report", &schema.url]).contains("mastodon"));
}

#[test]
fn crawls_that_share_a_server_of_grants_keep_limits_together() {
    let server = server::durable();
    let schema = server.schema();
    let world = World::strict("150");
    let crawl = |file| {
        let mut command = world.crawl(file, Some(TOKEN));
        Running::start(command.args(["--budgets", &schema.url]))
    };
    let mut crawls = ["a.db", "b.db"].map(crawl);
    // Without its server nobody makes a call; then both go on.
    world.sim.wait_for_calls(40);
    server.restart("immediate");
    for crawl in &mut crawls {
        assert_eq!(crawl.wait(), Some(0));
    }
    world.check(&["a.db", "b.db"]);
    let (_, grants) = Schema::select(&schema, "SELECT DISTINCT holder FROM grants");
    assert!(!grants.is_empty(), "the grants are on the server");
    let own = world.folder.path("state/kittiwake/budgets.db");
    assert!(!own.exists(), "and nowhere else");
}

#[test]
fn no_command_shows_a_password() {
    let folder = Folder::new();
    let url = "postgres://alice:s3cret@127.0.0.1:1/crawls";
    for words in [
        vec!["status", url],
        vec!["report", url],
        vec!["export", url, "--output", "-"],
        vec!["pause", url],
        vec!["import", "/dev/null", "--into", url],
        vec!["copy", "a.db", url],
        vec!["merge", "a.db", url, "--into", "b.db"],
        vec!["status", "a.db", "--budgets", url],
    ] {
        let output = folder.run(&words);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(!output.status.success(), "{words:?}");
        assert!(said.contains("vault:NAME"), "{words:?}: {said}");
        assert!(!said.contains("s3cret"), "{words:?}: {said}");
    }
}

/// What a person types who wants to crawl into a place that refuses.
fn refused(folder: &Folder, into: &str, more: &[&str], password: &str) -> String {
    let mut words = vec!["crawl", "mastodon", "id:1", "--host", "http://127.0.0.1:1"];
    words.extend(["--until-idle", "--quiet", "--into", into]);
    words.extend(more);
    let mut command = folder.kittiwake();
    command.args(&words).env("PGPASSWORD", password);
    let output = command.output().expect("the program runs");
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(!said.contains("wr0ng"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

#[test]
fn what_a_server_refuses_is_told_with_what_to_do() {
    let folder = Folder::new();
    let server = server::shared();
    let schema = server.schema();
    let name = &schema.name;
    schema.run(
        "DO $$ BEGIN CREATE ROLE with_password LOGIN PASSWORD 'right';
         EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$",
    );
    schema.run(&format!(
        "CREATE SCHEMA {name}; CREATE TABLE {name}.ids(id TEXT);
         CREATE TABLE {name}.rules(name TEXT, value TEXT);
         INSERT INTO {name}.rules VALUES ('schema', '1000')"
    ));
    let latin = format!("latin_{name}");
    schema.run(&format!(
        "CREATE DATABASE {latin} ENCODING LATIN1 TEMPLATE template0 LOCALE_PROVIDER libc
         LC_COLLATE 'C' LC_CTYPE 'C'"
    ));
    let locked = server.url("with_password", "postgres", "public");
    let nowhere = server.url(server::OWNER, "nowhere", "public");
    let other = server.schema();
    let read_only = "%20-cdefault_transaction_read_only%3Don&application_name=";
    let read_only = other.url.replace("&application_name=", read_only);
    let off = ["--limits", "off"];
    for (url, advice) in [
        (&locked, "PGPASSWORD"),
        (&nowhere, "createdb"),
        (&read_only, "may not write"),
        (&schema.url, "install that version"),
        (
            &server.url(server::OWNER, &latin, "public"),
            "--encoding UTF8",
        ),
    ] {
        let said = refused(&folder, url, &off, "");
        assert!(said.contains(advice), "{advice}: {said}");
        assert!(said.contains("postgres://"), "{said}");
    }
    let said = refused(&folder, &locked, &off, "wr0ng");
    assert!(said.contains("check both"), "{said}");
    // The same for grants, before anything is crawled.
    for (url, advice, password) in [
        (&locked, "check both", "wr0ng"),
        (&nowhere, "createdb", ""),
        (&other.url, "fsync off", ""),
    ] {
        let said = refused(&folder, "t.db", &["--budgets", url], password);
        assert!(said.contains(advice), "{advice}: {said}");
        assert!(!folder.path("t.db").exists(), "nothing was made");
    }
    schema.run(&format!("DROP DATABASE {latin}"));
}
