//! A crawl on a PostgreSQL server: the same commands, the same data.

#[expect(
    clippy::unwrap_used,
    dead_code,
    reason = "the store's tests use more of it"
)]
#[path = "../../../store/tests/it/postgres/server.rs"]
pub(crate) mod server;

use crate::kill::run_and_kill;
use crate::support::{Dice, Folder, Sim, text};
use serde_json::Value;
use server::Schema;

const WORDS: &str = "--depth 2 --robots all --limits off --include-opted-out test --until-idle";

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
fn a_crawl_into_a_server_that_is_killed_again_and_again_equals_one_into_a_file() {
    let folder = Folder::new();
    let schema: Schema = server::shared().schema();
    let (sim, seed) = world(&folder);
    run(&folder, &crawl_words(&sim, &seed, "t.db"));
    let mut dice = Dice::new("a killed crawl into a server");
    for round in 0..6 {
        let mut command = folder.kittiwake();
        command.args(crawl_words(&sim, &seed, &schema.url));
        run_and_kill(&sim, &mut command, &mut dice, round);
    }
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
fn no_command_shows_a_password() {
    let folder = Folder::new();
    let url = "postgres://alice:s3cret@127.0.0.1:1/crawls";
    for words in [
        vec!["status", url],
        vec!["report", url],
        vec!["export", url, "--output", "-"],
        vec!["pause", url],
        vec!["import", "/dev/null", "--into", url],
    ] {
        let output = folder.run(&words);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(!output.status.success(), "{words:?}");
        assert!(said.contains("127.0.0.1:1/crawls"), "{words:?}: {said}");
        assert!(!said.contains("s3cret"), "{words:?}: {said}");
    }
}
