//! The doctor: each fault is made, and found.

use crate::counterpart::Counterpart;
use crate::support::{Folder, Running, Sim, open, text};
use serde_json::Value;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// The checks, after a look at the exit code.
fn checks(command: &mut Command) -> Vec<Value> {
    let output = command.arg("--json").output().expect("the binary runs");
    let shown: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let checks = shown["checks"].as_array().expect("checks").clone();
    let problems = checks.iter().filter(|check| check["state"] == "problem");
    let problems = problems.count();
    assert_eq!(shown["problems"], problems);
    assert_eq!(output.status.code(), Some(i32::from(problems > 0)));
    for check in &checks {
        let advised = check["advice"]
            .as_str()
            .is_some_and(|advice| !advice.is_empty());
        assert_eq!(check["state"] != "ok", advised, "{check}");
    }
    checks
}

fn doctor(folder: &Folder) -> Command {
    let mut command = folder.kittiwake();
    command.arg("doctor");
    command
}

fn file_checks(folder: &Folder, name: &str) -> Vec<Value> {
    let checks = checks(doctor(folder).arg(name));
    checks
        .into_iter()
        .filter(|check| check["area"] == name)
        .collect()
}

/// The state of the only check of that name.
fn state(checks: &[Value], name: &str) -> String {
    let found: Vec<&Value> = checks
        .iter()
        .filter(|check| check["name"] == name)
        .collect();
    assert_eq!(found.len(), 1, "{name}: {checks:?}");
    found[0]["state"].as_str().expect("a state").to_owned()
}

/// Whether all checks of that name found nothing wrong.
fn are_sound(checks: &[Value], name: &str) -> bool {
    let mut found = checks.iter().filter(|check| check["name"] == name);
    found.clone().count() > 0 && found.all(|check| check["state"] == "ok")
}

fn found(checks: &[Value], name: &str) -> String {
    let found: Vec<&str> = checks
        .iter()
        .filter(|check| check["name"] == name)
        .filter_map(|check| check["found"].as_str())
        .collect();
    found.join("\n")
}

/// A crawl of somebody who has nothing.
fn crawled(folder: &Folder, words: &str) {
    let server = Counterpart::json("[]");
    let words = format!("{words} --until-idle --limits off");
    let output = folder.crawl(&server.address, &words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn a_sound_machine_has_no_settings_and_no_ledger_to_complain_about() {
    let folder = Folder::new();
    let checks = checks(&mut doctor(&folder));
    assert!(are_sound(&checks, "shipped"), "{checks:?}");
    for name in ["clock", "state folder", "ledger", "files"] {
        assert_eq!(state(&checks, name), "ok", "{checks:?}");
    }
    assert_eq!(state(&checks, "contact"), "warning");
    assert!(!folder.path("state").exists(), "a doctor makes nothing");
    let shown = text(&doctor(&folder).output().expect("the binary runs").stdout);
    assert!(shown.contains("  ok       clock"), "{shown}");
    assert!(shown.contains("  warning  contact"), "{shown}");
    assert!(shown.contains("→ hosts want to know who asks"), "{shown}");
}

#[test]
fn a_broken_ledger_is_a_problem() {
    let folder = Folder::new();
    let server = Counterpart::json("[]");
    let output = folder.crawl(&server.address, "id:1 --until-idle");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found_sound = checks(&mut doctor(&folder));
    assert_eq!(state(&found_sound, "ledger"), "ok");
    assert!(found(&found_sound, "ledger").contains("sound"));

    let ledger = folder.path("state/kittiwake/budgets.db");
    let length = std::fs::metadata(&ledger).expect("the ledger").len();
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .open(&ledger)
        .expect("the ledger");
    file.seek(SeekFrom::Start(4096)).expect("a place");
    let rest = usize::try_from(length - 4096).expect("a length");
    file.write_all(&vec![0xA5; rest]).expect("it is written");
    assert_eq!(state(&checks(&mut doctor(&folder)), "ledger"), "problem");
}

#[test]
fn a_state_folder_that_cannot_be_made_is_a_problem() {
    let folder = Folder::new();
    std::fs::write(folder.path("state"), "in the way").expect("a file");
    let checks = checks(&mut doctor(&folder));
    assert_eq!(state(&checks, "state folder"), "problem");
}

#[test]
fn too_few_open_files_for_the_calls_at_once_are_a_problem() {
    let folder = Folder::new();
    let doctor = |concurrency: &str| {
        let mut limited = Command::new("sh");
        limited
            .current_dir(folder.path("."))
            .args(["-c", "ulimit -n 200 && exec \"$0\" doctor \"$@\""])
            .arg(env!("CARGO_BIN_EXE_kittiwake"))
            .env_clear()
            .env("HOME", folder.path("."))
            .env("KITTIWAKE_CONCURRENCY", concurrency);
        state(&checks(&mut limited), "open files")
    };
    assert_eq!(doctor("100"), "ok");
    assert_eq!(doctor("500"), "problem");
}

#[test]
fn settings_that_invite_trouble_are_pointed_out() {
    let folder = Folder::new();
    let file = folder.path("kittiwake.toml");
    std::fs::write(&file, "contact = \"me@example.org\"").expect("a file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).expect("a mode");
    let found_open = checks(
        doctor(&folder)
            .env("KITTIWAKE_CONTATC", "x")
            .env("KITTIWAKE_MASTODON_TOKEN", "Bearer 0123456789abcdef")
            .env("KITTIWAKE_MYSPACE_TOKEN", "0123456789abcdef"),
    );
    assert_eq!(state(&found_open, "contact"), "ok");
    assert_eq!(state(&found_open, "permissions"), "warning");
    assert_eq!(state(&found_open, "variables"), "warning");
    assert!(found(&found_open, "variables").contains("KITTIWAKE_CONTATC"));
    let tokens = found(&found_open, "token");
    assert!(
        tokens.contains("KITTIWAKE_MASTODON_TOKEN begins with Bearer"),
        "{tokens}"
    );
    assert!(
        tokens.contains("KITTIWAKE_MYSPACE_TOKEN is set, and no network"),
        "{tokens}"
    );
    assert!(!tokens.contains("0123456789"), "{tokens}");

    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    let closed = checks(doctor(&folder).env("KITTIWAKE_MASTODON_TOKEN", "0123456789abcdef"));
    assert!(closed.iter().all(|check| check["name"] != "permissions"));
    assert_eq!(state(&closed, "token"), "ok");

    std::fs::write(&file, "depth = -1").expect("a file");
    let broken = checks(&mut doctor(&folder));
    assert_eq!(state(&broken, "files"), "problem");
    assert!(found(&broken, "files").contains("kittiwake.toml:1:9"));
}

#[test]
fn definitions_of_the_project_are_read() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("networks")).expect("a folder");
    let shown = folder.run(&["network", "show", "mastodon"]).stdout;
    std::fs::write(folder.path("networks/right.toml"), &shown).expect("a file");
    std::fs::write(folder.path("networks/notes.md"), "not one").expect("a file");
    let right = checks(&mut doctor(&folder));
    assert_eq!(state(&right, "own"), "ok");
    std::fs::write(folder.path("networks/wrong.toml"), "format = 2").expect("a file");
    let wrong = checks(&mut doctor(&folder));
    let own: Vec<&Value> = wrong
        .iter()
        .filter(|check| check["name"] == "own")
        .collect();
    assert_eq!(own.len(), 2);
    assert_eq!(own[1]["state"], "problem");
    assert!(
        own[1]["found"]
            .as_str()
            .is_some_and(|found| found.contains("wrong.toml:1:"))
    );
}

#[test]
fn a_crawl_that_ended_well_is_sound() {
    let folder = Folder::new();
    crawled(&folder, "id:109348684362183217");
    let checks = file_checks(&folder, "t.db");
    for name in ["file", "soundness", "log", "lock", "last run", "ids"] {
        assert_eq!(state(&checks, name), "ok", "{checks:?}");
    }
    assert!(found(&checks, "last run").contains("ended: idle"));
}

#[test]
fn a_running_crawl_and_a_killed_one_are_told_apart() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 300 --speed 0 --limits off");
    let seed = sim.first_handle();
    let words = format!("{seed} --depth 2 --limits off");
    let mut crawl = Running::start(&mut folder.crawl_command(&sim.address, &words));
    // Several answers: the run itself is in the file by then.
    sim.wait_for_calls(20);
    let running = file_checks(&folder, "t.db");
    assert_eq!(state(&running, "last run"), "ok", "{running:?}");
    assert!(
        found(&running, "last run").contains("is going on"),
        "{running:?}"
    );
    let lock = found(&running, "lock");
    assert!(lock.contains("a living process"), "{lock}");
    crawl.kill();
    let killed = file_checks(&folder, "t.db");
    assert_eq!(state(&killed, "last run"), "warning");
    assert!(
        found(&killed, "last run").contains("was killed"),
        "{killed:?}"
    );
    assert_eq!(state(&killed, "soundness"), "ok");
}

#[test]
fn a_damaged_file_is_a_problem_and_stays_as_it_is() {
    let folder = Folder::new();
    crawled(&folder, "id:1");
    let path = folder.path("t.db");
    let mut bytes = std::fs::read(&path).expect("the file");
    // The second page is the first tree: broken whatever it holds.
    bytes[4096..8192].fill(0xA5);
    std::fs::write(&path, &bytes).expect("the file");
    let checks = file_checks(&folder, "t.db");
    assert!(
        checks.iter().any(|check| check["state"] == "problem"),
        "{checks:?}"
    );
    assert_eq!(std::fs::read(&path).expect("the file"), bytes);
}

#[test]
fn a_file_that_is_not_ours_is_a_problem() {
    let folder = Folder::new();
    std::fs::write(folder.path("note.db"), "hello").expect("a file");
    std::fs::write(folder.path("empty.db"), "").expect("a file");
    std::fs::create_dir(folder.path("folder.db")).expect("a folder");
    open(&folder.path("other.db"))
        .execute_batch("CREATE TABLE t(x)")
        .expect("a table");
    // Nobody writes into it: whoever opens it waits for ever.
    let made = Command::new("mkfifo").arg(folder.path("pipe.db")).status();
    assert!(made.expect("mkfifo").success());
    for name in [
        "absent.db",
        "note.db",
        "empty.db",
        "folder.db",
        "other.db",
        "pipe.db",
    ] {
        let checks = file_checks(&folder, name);
        assert_eq!(state(&checks, "file"), "problem", "{name}");
    }
    assert!(!folder.path("absent.db").exists());
}

#[test]
fn a_file_of_another_version_says_what_to_do() {
    let folder = Folder::new();
    crawled(&folder, "id:1");
    let connection = open(&folder.path("t.db"));
    connection
        .pragma_update(None, "user_version", 9_999)
        .expect("a version");
    drop(connection);
    let checks = file_checks(&folder, "t.db");
    assert_eq!(state(&checks, "file"), "problem");
    assert!(found(&checks, "file").contains("newer"), "{checks:?}");
}

#[test]
fn seeds_that_a_spreadsheet_rounded_are_found_in_a_crawl() {
    let folder = Folder::new();
    crawled(
        &folder,
        "id:109348684362183000 id:109348684362184000 id:109348684362185000 id:1.09E+17",
    );
    let checks = file_checks(&folder, "t.db");
    assert_eq!(state(&checks, "ids"), "warning", "{checks:?}");
    let said = found(&checks, "ids");
    assert!(said.contains("mastodon user (seeds)"), "{said}");
    assert!(said.contains("1.09E+17"), "{said}");
    assert!(said.contains("3 end in zeros"), "{said}");
}

#[test]
fn lists_of_ids_are_looked_over_before_they_are_crawled() {
    let folder = Folder::new();
    let sound: Vec<String> = (0..50)
        .map(|place: u64| format!("id:{}", 109_348_684_362_183_217 + place * 7_919_317))
        .collect();
    std::fs::write(folder.path("sound.txt"), sound.join("\n")).expect("a file");
    std::fs::write(folder.path("handles.txt"), "alice\n@bob@example.org\n7up\n").expect("a file");
    std::fs::write(
        folder.path("damaged.csv"),
        "name;id\n\"alice\";\"1.09E+17\"\nbob;109348684362183000\n",
    )
    .expect("a file");
    std::fs::write(folder.path("binary.txt"), [0xFF, 0x00, 0xFE]).expect("a file");
    assert_eq!(state(&file_checks(&folder, "sound.txt"), "ids"), "ok");
    assert_eq!(state(&file_checks(&folder, "handles.txt"), "ids"), "ok");
    assert_eq!(
        state(&file_checks(&folder, "damaged.csv"), "ids"),
        "problem"
    );
    assert_eq!(state(&file_checks(&folder, "binary.txt"), "ids"), "problem");
    assert_eq!(state(&file_checks(&folder, "absent.txt"), "ids"), "problem");
}

#[test]
fn the_doctor_calls_nobody() {
    let folder = Folder::new();
    let server = Counterpart::json("[]");
    let output = folder.crawl(&server.address, "id:1 --until-idle --limits off");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let before = server.calls().len();
    assert!(before > 0);
    file_checks(&folder, "t.db");
    assert_eq!(server.calls().len(), before);
}
