//! Help, manuals and completions: everything that is made from the definitions of the command
//! line.

use crate::support::{Folder, text};
use std::path::Path;
use std::process::{Command, Stdio};

/// The commands below a command, from its own help.
fn below(help: &str) -> Vec<String> {
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    commands
        .take_while(|line| !line.trim().is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

fn help(folder: &Folder, command: &[String]) -> String {
    let mut words: Vec<&str> = command.iter().map(String::as_str).collect();
    words.push("--help");
    let output = folder.run(&words);
    assert_eq!(output.status.code(), Some(0), "{words:?}");
    text(&output.stdout)
}

/// Every command that has none below it, as its words.
fn leaves(folder: &Folder) -> Vec<Vec<String>> {
    let mut leaves = Vec::new();
    let mut waiting = vec![Vec::new()];
    while let Some(command) = waiting.pop() {
        let names = below(&help(folder, &command));
        if names.is_empty() {
            leaves.push(command);
            continue;
        }
        for name in names {
            let mut longer = command.clone();
            longer.push(name);
            waiting.push(longer);
        }
    }
    leaves
}

fn is_there(program: &str, argument: &str) -> bool {
    let there = Command::new(program)
        .arg(argument)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !there {
        println!("skipped: {program} is not installed");
    }
    there
}

#[test]
fn every_command_shows_an_example() {
    let folder = Folder::new();
    let leaves = leaves(&folder);
    for known in [
        "crawl",
        "network check",
        "network new",
        "sim serve",
        "config show",
        "doctor",
    ] {
        let words: Vec<String> = known.split(' ').map(str::to_owned).collect();
        assert!(leaves.contains(&words), "{known} was not found: {leaves:?}");
    }
    for command in leaves {
        let shown = help(&folder, &command);
        let words = command.join(" ");
        assert!(shown.contains("Example"), "{words} has no example");
        let begins = format!("kittiwake {words}");
        assert!(
            shown
                .lines()
                .any(|line| line.trim_start().starts_with(&begins)),
            "no example of {words} can be typed as it stands"
        );
    }
}

#[test]
fn help_is_found_in_every_way() {
    let folder = Folder::new();
    let short = folder.run(&["help", "crawl"]);
    assert_eq!(short.status.code(), Some(0));
    assert_eq!(short.stdout, folder.run(&["crawl", "--help"]).stdout);
    let version = folder.run(&["--version"]);
    assert_eq!(version.status.code(), Some(0));
    assert_eq!(
        text(&version.stdout).trim(),
        format!("kittiwake {}", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn a_slip_is_a_usage_error_with_a_hint() {
    let folder = Folder::new();
    for (arguments, hint) in [
        ("", "Usage"),
        ("crwal", "'crawl'"),
        ("crawl mastodon@h a --into x --dept 2", "'--depth'"),
        (
            "crawl mastodon@h a --into x --follow follower",
            "'followers'",
        ),
        ("crawl mastodon@h a --into x --concurrency 0", "1..=1024"),
        ("crawl mastodon@h a --into x --raw=perhaps", "true, false"),
        ("completions tcsh", "bash"),
        ("man craw", "crawl"),
        ("config", "show"),
        ("doctor --jsn", "'--json'"),
    ] {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let output = folder.run(&words);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(hint), "{arguments:?}: {message}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
    }
}

fn pages(folder: &Folder) -> Vec<std::path::PathBuf> {
    let output = folder.run(&["man", "--output", "made/man1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let entries = std::fs::read_dir(folder.path("made/man1")).expect("the folder was made");
    entries
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let folder = Folder::new();
    let pages = pages(&folder);
    for command in leaves(&folder) {
        let name = format!("made/man1/kittiwake-{}.1", command.join("-"));
        assert!(pages.contains(&folder.path(&name)), "{name} is missing");
    }
    assert!(pages.contains(&folder.path("made/man1/kittiwake.1")));

    let crawl = text(&folder.run(&["man", "crawl"]).stdout);
    let written = std::fs::read_to_string(folder.path("made/man1/kittiwake-crawl.1"));
    assert_eq!(crawl.trim_end(), written.expect("a page").trim_end());
    let plain = crawl.replace('\\', "");
    for option in help(&folder, &["crawl".to_owned()])
        .lines()
        .filter_map(|line| {
            line.trim_start()
                .split(' ')
                .find(|word| word.starts_with("--"))
        })
    {
        let option = option.split(['[', '=', ',']).next().unwrap_or(option);
        assert!(plain.contains(option), "{option} is not in the manual");
    }
    assert!(plain.contains("SH EXAMPLES"));
    assert!(plain.contains("kittiwake crawl mastodon@mastodon.example alice --into alice.db"));
    assert!(crawl.is_ascii());
}

#[test]
fn the_manual_is_set_without_warnings() {
    let folder = Folder::new();
    let pages = pages(&folder);
    if is_there("groff", "--version") {
        for page in &pages {
            let output = Command::new("groff")
                .args(["-man", "-Tutf8", "-ww", "-z"])
                .arg(page)
                .output()
                .expect("groff runs");
            let said = text(&output.stderr);
            assert!(
                output.status.success() && said.is_empty(),
                "{page:?}: {said}"
            );
        }
    }
    if is_there("man", "--version") {
        let shown = set_by_man(&folder.path("made/man1/kittiwake-crawl.1"));
        assert!(shown.contains("--concurrency <N>"), "{shown}");
        assert!(shown.contains("  kittiwake crawl mastodon@mastodon.example alice --into"));
    }
}

/// A page as a person reads it, on a wide terminal.
fn set_by_man(page: &Path) -> String {
    let output = Command::new("man")
        .env("MANWIDTH", "200")
        .env("MANPAGER", "cat")
        .args(["--warnings", "--local-file"])
        .arg(page)
        .output()
        .expect("man runs");
    let said = text(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    let shown = text(&output.stdout);
    // Bold and underlined letters are struck over.
    let mut plain: Vec<char> = Vec::new();
    for letter in shown.chars() {
        if letter == '\u{8}' {
            plain.pop();
        } else {
            plain.push(letter);
        }
    }
    plain.into_iter().collect()
}

/// What bash offers for the last of the words.
fn completed(folder: &Folder, words: &[&str]) -> Vec<String> {
    let script = r#"
        source ./kittiwake.bash
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        COMP_LINE="$*"
        COMP_POINT=${#COMP_LINE}
        _kittiwake "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let output = Command::new("bash")
        .current_dir(folder.path("."))
        .args(["--norc", "-c", script, "bash"])
        .args(words)
        .output()
        .expect("bash runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    let folder = Folder::new();
    let script = folder.run(&["completions", "bash"]);
    assert_eq!(script.status.code(), Some(0));
    std::fs::write(folder.path("kittiwake.bash"), &script.stdout).expect("a file");
    if !is_there("bash", "--version") {
        return;
    }
    let read = Command::new("bash")
        .current_dir(folder.path("."))
        .args(["-n", "kittiwake.bash"])
        .output()
        .expect("bash runs");
    assert!(read.status.success(), "{}", text(&read.stderr));
    assert_eq!(completed(&folder, &["kittiwake", "cra"]), ["crawl"]);
    assert_eq!(completed(&folder, &["kittiwake", "config", "sh"]), ["show"]);
    assert_eq!(
        completed(&folder, &["kittiwake", "crawl", "--conc"]),
        ["--concurrency"]
    );
    let follow = completed(&folder, &["kittiwake", "crawl", "--follow", "follow"]);
    assert_eq!(follow, ["following", "followers"]);
}

#[test]
fn every_shell_has_a_script() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = folder.run(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let script = text(&output.stdout);
        assert!(
            script.contains("crawl") && script.contains("until-idle"),
            "{shell}"
        );
    }
}
