//! Settings: who wins, what is refused, and what is shown.

use crate::counterpart::Counterpart;
use crate::support::{Folder, open, rows, text};
use serde_json::Value;
use std::process::Command;

fn write(folder: &Folder, name: &str, content: &str) {
    let path = folder.path(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, content).expect("a file");
}

fn shown(command: &mut Command) -> Value {
    let output = command
        .args(["config", "show", "--json"])
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn setting<'v>(shown: &'v Value, name: &str) -> &'v Value {
    let settings = shown["settings"].as_array().expect("settings");
    let found = settings.iter().find(|setting| setting["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not shown"))
}

#[test]
fn environment_wins_over_project_and_project_over_user() {
    let folder = Folder::new();
    write(
        &folder,
        "config/kittiwake/config.toml",
        "depth = 1\nconcurrency = 1\nreserve = 0.5\n",
    );
    write(
        &folder,
        "kittiwake.toml",
        "\nconcurrency = 2\nreserve = \"25%\"\n",
    );
    let shown = shown(folder.kittiwake().env("KITTIWAKE_RESERVE", "5%"));

    assert_eq!(setting(&shown, "reserve")["value"], 0.05);
    assert_eq!(
        setting(&shown, "reserve")["from"]["variable"],
        "KITTIWAKE_RESERVE"
    );
    assert_eq!(setting(&shown, "concurrency")["value"], 2);
    let from = &setting(&shown, "concurrency")["from"];
    assert_eq!(from["line"], 2);
    assert!(
        from["path"]
            .as_str()
            .is_some_and(|path| path.ends_with("/kittiwake.toml"))
    );
    assert_eq!(setting(&shown, "depth")["value"], 1);
    let from = &setting(&shown, "depth")["from"];
    assert!(
        from["path"]
            .as_str()
            .is_some_and(|path| path.ends_with("/config.toml"))
    );
    assert_eq!(setting(&shown, "follow")["from"]["layer"], "default");
    assert_eq!(setting(&shown, "follow")["value"], "both");
    assert_eq!(setting(&shown, "contact")["value"], Value::Null);
}

#[test]
fn without_xdg_folders_the_home_folder_is_looked_into() {
    let folder = Folder::new();
    write(&folder, ".config/kittiwake/config.toml", "depth = 7");
    write(&folder, "config/kittiwake/config.toml", "depth = 6");
    // One that does not begin at the root is ignored, as its specification says.
    for value in ["", "config"] {
        let shown = shown(
            folder
                .kittiwake()
                .env("XDG_CONFIG_HOME", value)
                .env("XDG_STATE_HOME", value),
        );
        assert_eq!(setting(&shown, "depth")["value"], 7);
        let ledger = folder.path(".local/state/kittiwake/budgets.db");
        assert_eq!(shown["places"]["ledger"], ledger.to_str().expect("a path"));
    }
}

/// What the last run of a crawl was asked to do.
fn record(folder: &Folder) -> Value {
    let found = rows(
        &open(&folder.path("t.db")),
        "SELECT settings FROM runs ORDER BY id DESC LIMIT 1",
    );
    let record = found.into_iter().flatten().next().expect("a run");
    serde_json::from_str(&record).expect("JSON")
}

#[test]
fn a_crawl_takes_its_settings_and_a_flag_wins() {
    let folder = Folder::new();
    let server = Counterpart::json("[]");
    write(
        &folder,
        "kittiwake.toml",
        "contact = \"me@example.org\"\ndepth = 2\nfollow = \"following\"\nraw = true\n\
         robots = [\"profiles\"]\nconcurrency = 3",
    );
    let words = "id:1 --until-idle --limits off";
    let output = folder.crawl(&server.address, words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let set = record(&folder);
    assert_eq!(set["depth"], 2);
    assert_eq!(set["follow"], "following");
    assert_eq!(set["robots"], serde_json::json!(["profiles"]));
    assert_eq!(set["concurrency"], 3);
    let raw = |folder: &Folder| rows(&open(&folder.path("t.db")), "SELECT log FROM raw").len();
    assert!(raw(&folder) > 0);
    let calls = server.calls();
    let headers: Vec<String> = calls.iter().flat_map(|call| call.headers.clone()).collect();
    assert!(
        headers.iter().any(
            |header| header.to_lowercase().starts_with("user-agent: kittiwake/")
                && header.ends_with("(me@example.org)")
        ),
        "{headers:?}"
    );

    let kept = raw(&folder);
    let mut crawl = folder.crawl_command(
        &server.address,
        &format!("{words} --concurrency 5 --raw=false --depth 4 --contact flag@example.org"),
    );
    let output = crawl
        .env("KITTIWAKE_CONCURRENCY", "9")
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let given = record(&folder);
    assert_eq!(
        (&given["depth"], &given["concurrency"]),
        (&4.into(), &5.into())
    );
    assert_eq!(raw(&folder), kept);
}

#[test]
fn mistakes_in_files_are_told_with_their_places() {
    let folder = Folder::new();
    write(
        &folder,
        "kittiwake.toml",
        "contact = \"me\"\n  depht = 2\nraw = 1\n",
    );
    write(
        &folder,
        "config/kittiwake/config.toml",
        "reserve = \"all\"\n",
    );
    let crawl = [
        "crawl",
        "mastodon",
        "a",
        "--host",
        "http://127.0.0.1:9",
        "--into",
        "x.db",
    ];
    for arguments in [&crawl[..], &["config", "show"]] {
        let output = folder.run(arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        for expected in [
            "kittiwake.toml:2:3: unknown setting `depht`; did you mean `depth`?",
            "kittiwake.toml:3:7: `raw` must be true or false, not 1; write for example `raw = true`",
            "config.toml:1:11: `reserve` must be a share such as 10% or 0.1, below 100%, not \"all\"",
        ] {
            assert!(message.contains(expected), "{message}");
        }
        assert!(!folder.path("x.db").exists());
    }
    // What has no settings is not stopped by them.
    assert_eq!(folder.run(&["network", "list"]).status.code(), Some(0));
    assert_eq!(folder.run(&["crawl", "--help"]).status.code(), Some(0));
}

#[test]
fn a_file_that_is_no_settings_file_is_refused_in_one_line() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("kittiwake.toml")).expect("a folder");
    let refused = |expected: &str| {
        let output = folder.run(&["config", "show"]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(expected), "{message}");
        assert_eq!(message.trim().lines().count(), 1, "{message}");
    };
    refused("not a regular file");
    std::fs::remove_dir(folder.path("kittiwake.toml")).expect("a folder");
    std::fs::write(folder.path("kittiwake.toml"), [0xFF, 0xFE]).expect("a file");
    refused("UTF-8");
    std::fs::write(folder.path("kittiwake.toml"), "contact = ").expect("a file");
    refused("kittiwake.toml:1:11: not TOML");
    std::fs::write(folder.path("kittiwake.toml"), "# ".repeat(1 << 20)).expect("a file");
    refused("more than");
}

#[test]
fn a_wrong_variable_is_named_and_its_value_is_not_shown() {
    let folder = Folder::new();
    for (variable, value, expected) in [
        ("KITTIWAKE_DEPTH", "deep-and-secret", "a whole number"),
        ("KITTIWAKE_CONCURRENCY", "0", "from 1 to 1024"),
        (
            "KITTIWAKE_FOLLOW",
            "everybody",
            "one of following, followers",
        ),
        ("KITTIWAKE_QUIET", "sometimes", "true or false"),
        ("KITTIWAKE_CONTACT", "a\nb", "one line"),
    ] {
        let mut command = folder.kittiwake();
        let output = command
            .args(["config", "show"])
            .env(variable, value)
            .output()
            .expect("the binary runs");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(
            message.contains(variable) && message.contains(expected),
            "{message}"
        );
        assert!(value.len() < 2 || !message.contains(value), "{message}");
    }
}

#[test]
fn secrets_are_refused_in_files_and_never_shown() {
    let folder = Folder::new();
    write(
        &folder,
        "kittiwake.toml",
        "[mastodon]\ntoken = \"hunter2hunter2\"\n",
    );
    for arguments in [&["config", "show"][..], &["doctor"], &["doctor", "--json"]] {
        let output = folder.run(arguments);
        assert_ne!(output.status.code(), Some(0));
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains("kittiwake.toml:2:1"), "{said}");
        assert!(said.contains("KITTIWAKE_<NETWORK>_TOKEN"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
    std::fs::remove_file(folder.path("kittiwake.toml")).expect("the file");
    for arguments in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["doctor"],
        &["doctor", "--json"],
    ] {
        let mut command = folder.kittiwake();
        let output = command
            .args(arguments)
            .env("KITTIWAKE_MASTODON_TOKEN", "hunter2hunter2")
            .output()
            .expect("the binary runs");
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains("KITTIWAKE_MASTODON_TOKEN"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn the_documentation_has_every_setting() {
    let folder = Folder::new();
    let documentation = include_str!("../../../../docs/settings.md");
    let shown = shown(&mut folder.kittiwake());
    let settings = shown["settings"].as_array().expect("settings");
    assert!(!settings.is_empty());
    for setting in settings {
        let word = |key: &str| setting[key].as_str().expect("text").to_owned();
        let row = format!("| `{}` | `{}` |", word("name"), word("variable"));
        let line = documentation.lines().find(|line| line.starts_with(&row));
        let line = line.unwrap_or_else(|| panic!("docs/settings.md has no row {row}"));
        assert!(line.contains(&word("default")), "{line}");
    }
}

#[test]
fn the_settings_file_of_the_documentation_is_correct() {
    let folder = Folder::new();
    let documentation = include_str!("../../../../docs/settings.md");
    let block = documentation.split("```toml\n").nth(1).expect("an example");
    let block = block.split("```").next().expect("its end");
    write(&folder, "kittiwake.toml", block);
    let shown = shown(&mut folder.kittiwake());
    let from_file = shown["settings"].as_array().expect("settings").iter();
    let from_file = from_file
        .filter(|setting| setting["from"]["layer"] == "file")
        .count();
    assert!(from_file >= 3, "{from_file}");
}
