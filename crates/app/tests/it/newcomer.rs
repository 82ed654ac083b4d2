//! A newcomer's walk: the demo, a look into its file, an export, a slip, Ctrl-C, and on again.

use crate::support::{Folder, Running, Sim, open, rows, text};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).expect(path)
}

/// The lines of a README's `sh` blocks.
fn commands_of(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        match line.trim() {
            "```sh" => is_inside = true,
            "```" => is_inside = false,
            command if is_inside && !command.is_empty() => commands.push(command.to_owned()),
            _ => {}
        }
    }
    commands
}

#[test]
fn the_readme_needs_two_commands_and_nothing_that_is_not_there() {
    let readme = read("README.md");
    assert_eq!(
        commands_of(&readme),
        ["cargo run --release -- demo", "./test"]
    );
    for link in readme.split("](").skip(1) {
        let target = link.split([')', '#']).next().unwrap_or_default();
        if !target.is_empty() && !target.contains("://") {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../..")
                .join(target);
            assert!(
                path.exists(),
                "README links to {target}, which is not there"
            );
        }
    }
}

#[test]
fn the_demo_shows_its_table_and_every_question_it_suggests_has_an_answer() {
    let folder = Folder::new();
    let output = folder
        .kittiwake()
        .env("TMPDIR", folder.path(""))
        .arg("demo")
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    println!("{shown}");
    for robot in ["relations", "profiles", "statuses", "comments", "tags"] {
        assert!(shown.contains(robot), "no line for {robot}");
    }
    assert!(shown.contains("0 limits broken"), "{shown}");
    let questions: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.trim().strip_prefix("sqlite3 "))
        .collect();
    assert_eq!(questions.len(), 3, "{shown}");
    for question in questions {
        let (file, sql) = question.split_once(" \"").expect("a file and a question");
        answer(file, sql.trim_end_matches('"'));
    }
}

/// Asks with the sqlite3 program, where there is one, and in any case in the process.
fn answer(file: &str, sql: &str) {
    assert!(
        !rows(&open(Path::new(file)), sql).is_empty(),
        "no answer to {sql}"
    );
    match Command::new("sqlite3").args([file, sql]).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", text(&output.stderr));
            assert!(!output.stdout.is_empty(), "sqlite3 finds nothing for {sql}");
        }
        Err(error) => println!("skipped: no sqlite3 program here ({error})"),
    }
}

#[test]
fn a_slip_ctrl_c_and_the_same_command_again_lead_to_the_end() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 80 --seed 4 --speed 0 --limits off");
    let seed = sim.first_handle();
    // A slip of the pen is answered with the right word.
    let slip = folder.crawl(&sim.address, &format!("{seed} --limits off --untilidle"));
    assert_eq!(slip.status.code(), Some(2));
    assert!(
        text(&slip.stderr).contains("--until-idle"),
        "{}",
        text(&slip.stderr)
    );
    // Ctrl-C: what is in flight is finished, and the end says so.
    let words = format!("{seed} --depth 2 --limits off --until-idle --json");
    let mut crawl = Running::start(&mut folder.crawl_command(&sim.address, &words));
    sim.wait_for_calls(20);
    crawl.interrupt();
    let code = crawl.wait();
    let summary: Value = serde_json::from_str(&crawl.rest()).expect("a summary in JSON");
    // A quick machine may have come to the end before the signal.
    let is_over = code == Some(0) && summary["end"]["reason"] == "idle";
    let is_interrupted = code == Some(130) && summary["end"]["reason"] == "interrupted";
    assert!(is_over || is_interrupted, "{code:?} {summary}");
    // The same command goes on, and asks for nothing again.
    let before = sim.calls();
    let again = folder.crawl(&sim.address, &words);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    let targets = sim.targets_after(0);
    let (first, second) = targets.split_at(usize::try_from(before).expect("few calls"));
    let repeated = second.iter().find(|target| first.contains(target));
    assert_eq!(repeated, None, "asked for again");
    // The export has what the file has.
    let export = folder.run(&["export", "t.db", "--format", "csv", "--table", "users"]);
    assert_eq!(export.status.code(), Some(0), "{}", text(&export.stderr));
    let users = rows(&open(&folder.path("t.db")), "SELECT key FROM users").len();
    assert!(
        text(&export.stdout).lines().count() > users,
        "fewer lines than users"
    );
    // The record of how it came about names both runs.
    let report = folder.run(&["report", "t.db"]);
    assert_eq!(report.status.code(), Some(0), "{}", text(&report.stderr));
    let record = text(&report.stdout);
    assert!(
        record.contains("| 2 |") && record.contains("A synthetic network"),
        "{record}"
    );
}
