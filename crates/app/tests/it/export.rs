//! Exports and imports as a person makes them.

use crate::support::{Folder, Running, Sim, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

/// A world, frozen at a day.
fn world(folder: &Folder, listen: &str, day: &str) -> Sim {
    let at = format!("{day}T12:00:00Z");
    let words = format!("--users 200 --seed 5 --speed 0 --limits off --listen {listen} --at {at}");
    Sim::start(folder, &words)
}

/// The first users of a world; the very first of this one is suspended.
fn seeds(sim: &Sim) -> Vec<String> {
    let users = sim.truth("users");
    let handles = users.iter().take(2).map(|user| user["acct"].as_str());
    handles
        .map(|handle| handle.expect("a handle").to_owned())
        .collect()
}

/// A crawl in `t.db` of a world that has changed in between: with histories and a spell.
fn crawled() -> Folder {
    let folder = Folder::new();
    let sim = world(&folder, "127.0.0.1:0", "2026-06-01");
    let fixed =
        "--depth 2 --limits off --include-opted-out test --robots relations,profiles,statuses";
    let words = format!("{} {fixed}", seeds(&sim).join(" "));
    let address = sim.address.clone();
    succeeded(&folder.crawl(&address, &format!("{words} --until-idle")));
    // A month later everybody is visited once more.
    sim.get("/_sim/advance?seconds=2592000");
    succeeded(&folder.crawl(&address, &format!("{words} --again")));
    folder
}

fn succeeded(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// Standard output of a command that succeeds.
fn said(folder: &Folder, words: &str) -> Vec<u8> {
    let output = folder.say(words);
    succeeded(&output);
    output.stdout
}

fn rows(lines: &[u8], table: &str) -> Vec<Value> {
    let lines = String::from_utf8(lines.to_vec()).expect("UTF-8");
    let rows = lines
        .lines()
        .map(|line| -> Value { serde_json::from_str(line).expect("a JSON object a line") });
    rows.filter(|row| row["table"] == table).collect()
}

#[test]
fn a_crawl_goes_out_and_in_again_byte_for_byte() {
    let folder = crawled();
    let lines = said(&folder, "export t.db");
    // What is to be proved is worth nothing about tables that are empty.
    for table in [
        "ids",
        "users",
        "statuses",
        "tags",
        "user_relations",
        "links",
        "counts",
        "versions",
        "invalid_users",
    ] {
        assert!(!rows(&lines, table).is_empty(), "no {table}");
    }
    for (path, copy) in [
        ("whole.jsonl", "plain.db"),
        ("whole.jsonl.gz", "gz.db"),
        ("whole.jsonl.zst", "zst.db"),
    ] {
        said(&folder, &format!("export t.db -o {path}"));
        said(&folder, &format!("import {path} --into {copy}"));
        assert_eq!(said(&folder, &format!("export {copy}")), lines, "{path}");
    }
    let plain = std::fs::metadata(folder.path("whole.jsonl"))
        .expect("a file")
        .len();
    for packed in ["whole.jsonl.gz", "whole.jsonl.zst"] {
        let packed = std::fs::metadata(folder.path(packed))
            .expect("a file")
            .len();
        assert!(packed < plain / 4, "{packed} of {plain} bytes");
    }
    for (options, copy) in [
        ("", "csv.db"),
        (" --compress zst", "packed.db"),
        (" --excel", "excel.db"),
    ] {
        said(
            &folder,
            &format!("export t.db --format csv -o {copy}.tables/{options}"),
        );
        said(&folder, &format!("import {copy}.tables --into {copy}"));
        assert_eq!(
            said(&folder, &format!("export {copy}")),
            lines,
            "csv{options}"
        );
    }
    // Importing again changes nothing.
    let again = said(
        &folder,
        "import whole.jsonl.gz csv.db.tables/users.csv --into csv.db --json",
    );
    let again: Value = serde_json::from_slice(&again).expect("JSON");
    assert_eq!(
        (&again["rows_new"], &again["rows_changed"]),
        (&0.into(), &0.into())
    );
    assert_eq!(said(&folder, "export csv.db"), lines);
}

#[test]
fn one_program_hands_a_crawl_to_the_other_and_the_crawl_goes_on() {
    let folder = Folder::new();
    let sim = world(&folder, "127.0.0.1:0", "2026-06-01");
    let words = format!("{} --until-idle --limits off", seeds(&sim)[1]);
    succeeded(&folder.crawl(&sim.address, &words));
    let mut export = folder.kittiwake();
    let mut export = export
        .args(["export", "t.db", "--compress", "gz", "--table", "all"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let lines = export.stdout.take().expect("standard output is piped");
    let mut import = folder.kittiwake();
    import
        .args(["import", "-", "--into", "copy.db", "--json"])
        .stdin(lines);
    let imported = import.output().expect("the binary runs");
    succeeded(&imported);
    assert!(export.wait().expect("it ends").success());
    let report: Value = serde_json::from_slice(&imported.stdout).expect("JSON");
    assert!(report["rows"]["users"].as_u64() > Some(1), "{report}");
    assert!(
        report["skipped"]["query_log"].as_u64() > Some(1),
        "{report}"
    );

    // Nothing is filed in what was imported; a crawl begins with its seeds and knows everybody.
    let status = said(&folder, "status copy.db --json");
    let status: Value = serde_json::from_slice(&status).expect("JSON");
    assert_eq!(status["rows"]["frontier"], 0);
    let before = rows(&said(&folder, "export copy.db --table users"), "users").len();
    let mut crawl = folder.kittiwake();
    crawl.args([
        "crawl",
        "mastodon",
        "--host",
        &sim.address,
        "--into",
        "copy.db",
        "--quiet",
    ]);
    succeeded(
        &crawl
            .args(words.split(' '))
            .output()
            .expect("the binary runs"),
    );
    let after = rows(&said(&folder, "export copy.db --table users"), "users");
    assert_eq!(after.len(), before, "nobody is there twice");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let folder = crawled();
    for format in ["jsonl", "csv"] {
        let mut command = folder.kittiwake();
        let mut export = command
            .args(["export", "t.db", "--table", "statuses", "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut stdout = export.stdout.take().expect("standard output is piped");
        let mut first = [0; 100];
        stdout.read_exact(&mut first).expect("the first bytes");
        drop(stdout);
        let output = export.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(text(&output.stderr), "");
    }
    // It had more to say than a pipe holds, so it did meet the closed end.
    let all = said(&folder, "export t.db --table statuses");
    assert!(all.len() > 200_000, "{}", all.len());
}

#[test]
fn an_export_that_is_stopped_leaves_no_half_files() {
    let folder = crawled();
    let tables = folder.path("tables");
    std::fs::create_dir(&tables).expect("a folder");
    // A pipe takes the place of a file in the middle: the export is sure to be busy when it is
    // stopped, because nobody reads on.
    let pipe = tables.join("statuses.csv");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    let mut export = folder
        .kittiwake()
        .args(["export", "t.db", "--format", "csv", "-o", "tables/"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut reader = std::fs::File::open(&pipe).expect("a pipe");
    let mut first = [0; 100];
    reader.read_exact(&mut first).expect("the first bytes");
    let in_folder = || -> Vec<String> {
        let entries = std::fs::read_dir(&tables).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        names.filter_map(|name| name.into_string().ok()).collect()
    };
    assert!(in_folder().contains(&"users.csv.partial".to_owned()));
    let told = Command::new("kill")
        .args(["-INT", &export.id().to_string()])
        .status();
    assert!(told.expect("kill").success());
    let mut note = String::new();
    let mut stderr = BufReader::new(export.stderr.take().expect("standard error is piped"));
    while !note.contains("stopping") {
        note.clear();
        assert!(stderr.read_line(&mut note).expect("text") > 0, "no word");
    }
    reader.read_to_end(&mut Vec::new()).expect("the rest");
    assert_eq!(export.wait().expect("it ends").code(), Some(130));
    assert_eq!(in_folder(), ["statuses.csv"], "nothing but the pipe");
}

#[test]
fn an_export_shows_one_moment_of_a_crawl_that_goes_on() {
    let folder = Folder::new();
    let words = "--users 300 --speed 0 --limits off --latency-ms 5";
    let sim = Sim::start(&folder, words);
    let words = format!("{} --depth 2 --until-idle --limits off", seeds(&sim)[0]);
    let mut crawl = Running::start(&mut folder.crawl_command(&sim.address, &words));
    sim.wait_for_calls(10);
    for _ in 0..3 {
        let lines = said(&folder, "export t.db");
        let named: BTreeSet<String> = rows(&lines, "ids")
            .iter()
            .map(|row| row["id"].to_string())
            .collect();
        assert!(!named.is_empty());
        for relation in rows(&lines, "user_relations") {
            for end in ["source", "target"] {
                assert!(named.contains(&relation[end].to_string()), "{relation}");
            }
        }
    }
    crawl.kill();
}

#[test]
fn csv_is_for_spreadsheets_if_it_is_asked_to_be() {
    let folder = crawled();
    let plain = text(&said(&folder, "export t.db --format csv --table users"));
    assert!(plain.starts_with("network,type,id,handle,"), "{plain}");
    assert!(plain.contains("\nmastodon,user,http"), "{plain}");
    let excel = text(&said(
        &folder,
        "export t.db --format csv --table users --excel",
    ));
    assert!(
        excel.starts_with("\u{FEFF}network,type,id,handle,"),
        "{excel}"
    );
    assert!(excel.contains("\r\nmastodon,user,\"=\"\"http"), "{excel}");
}

#[test]
fn since_leaves_out_what_is_older() {
    let folder = crawled();
    let all = said(
        &folder,
        "export t.db --table users,user_relations,versions,runs",
    );
    let recent = said(
        &folder,
        "export t.db --table users,user_relations,versions,runs --since 1d",
    );
    assert_eq!(recent, all, "all of it was crawled just now");
    assert!(!all.is_empty());
    let none = said(&folder, "export t.db --table all --since 2200-01-01");
    assert_eq!(text(&none), "");
    let header = said(
        &folder,
        "export t.db --format csv --table tags --since 2200-01-01",
    );
    assert_eq!(
        text(&header).lines().count(),
        1,
        "the header is always there"
    );
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_written() {
    let folder = crawled();
    std::fs::write(folder.path("there.csv"), "mine").expect("a file");
    std::fs::create_dir(folder.path("empty")).expect("a folder");
    for (words, expected) in [
        ("export t.db --format csv", "--table"),
        (
            "export t.db --format csv --table users,tags -o x.csv",
            "folder",
        ),
        (
            "export t.db --format csv --table users -o there.csv",
            "--force",
        ),
        ("export t.db --table frogs", "user_relations"),
        ("export t.db --format xml", "jsonl"),
        ("export t.db --since tomorrow", "2026-11-01"),
        ("export t.db --excel", "--format csv"),
        ("export t.db -o t.db --force", "own export"),
        ("import absent.jsonl --into new.db", "absent.jsonl"),
        ("import empty --into new.db", "users.csv"),
        ("import --into new.db", "PATH"),
        ("import there.csv", "--into"),
    ] {
        let output = folder.say(words);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {message}");
        assert!(message.contains(expected), "{words}: {message}");
        assert_eq!(text(&output.stdout), "", "{words}");
    }
    for (words, expected) in [
        ("export absent.db", "absent.db"),
        ("export there.csv", "there.csv"),
        ("import there.csv --into new.db", "--table"),
        ("import t.db --into new.db", "t.db"),
        ("export t.db -o no/such/folder/x.jsonl", "no/such/folder"),
    ] {
        let output = folder.say(words);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}: {message}");
        assert!(message.contains(expected), "{words}: {message}");
    }
    let untouched = std::fs::read_to_string(folder.path("there.csv")).expect("a file");
    assert_eq!(untouched, "mine");
    said(
        &folder,
        "export t.db --format csv --table users -o there.csv --force",
    );
    let replaced = std::fs::read_to_string(folder.path("there.csv")).expect("a file");
    assert!(replaced.starts_with("network,"), "{replaced}");
    let left: Vec<_> = std::fs::read_dir(folder.path("."))
        .expect("a folder")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter(|name| name.contains("partial"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_line_that_cannot_be_taken_is_named_and_what_was_written_stays() {
    let folder = crawled();
    let lines = text(&said(&folder, "export t.db"));
    let count = lines.lines().count();
    assert!(count > 1_500, "{count}");
    let mut broken: Vec<&str> = lines.lines().take(1_500).collect();
    broken.push("{\"table\":\"users\",\"id\":");
    std::fs::write(folder.path("broken.jsonl"), broken.join("\n")).expect("a file");
    let output = folder.run(&["import", "broken.jsonl", "--into", "new.db"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("broken.jsonl: line 1501: "), "{message}");
    assert!(message.contains("up to line 1000"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    // Mended, the whole can be imported, and is as if nothing had happened.
    std::fs::write(folder.path("mended.jsonl"), &lines).expect("a file");
    said(&folder, "import mended.jsonl --into new.db");
    assert_eq!(text(&said(&folder, "export new.db")), lines);
}
