//! The vault: what opens it, what is wrong with it, and who may change it at once.

use crate::support::{Folder, text};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const PLANTED: &str = "planted-hunter2-0123456789";

fn url() -> String {
    // Nobody listens on port 1.
    format!("postgres://ada:{PLANTED}@127.0.0.1:1/crawls\n")
}

fn start(command: &mut Command, input: &str) -> std::process::Child {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("standard input is piped");
    let _ = stdin.write_all(input.as_bytes());
    child
}

fn with_input(command: &mut Command, input: &str) -> Output {
    start(command, input).wait_with_output().expect("it ends")
}

fn with_key(folder: &Folder, words: &str) -> Command {
    let mut command = folder.kittiwake();
    command.args(words.split_whitespace());
    command.args(["--key-file", "vault.key"]);
    command
}

fn file(folder: &Folder) -> PathBuf {
    folder.path("config/kittiwake/vault.age")
}

/// A folder with a vault that holds a URL, opened by a key.
fn with_vault() -> Folder {
    let folder = Folder::new();
    let made = folder.say("auth key vault.key");
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let stored = with_input(&mut with_key(&folder, "auth url lab"), &url());
    assert_eq!(stored.status.code(), Some(0), "{}", text(&stored.stderr));
    folder
}

#[track_caller]
fn assert_refused(output: &Output, status: i32, words: &str) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{said}");
    assert!(said.contains(words), "{said}");
    let all = format!("{said}{}", text(&output.stdout));
    let all = all.replace("AGE-SECRET-KEY-1…", "");
    assert!(
        !all.contains(PLANTED) && !all.contains("AGE-SECRET"),
        "{all}"
    );
    assert!(!all.contains("panicked"), "{all}");
}

#[test]
fn a_passphrase_opens_what_it_closed_and_another_does_not() {
    let folder = Folder::new();
    std::fs::write(folder.path("right"), "a long passphrase\n").expect("a file");
    std::fs::write(folder.path("wrong"), "another one\n").expect("a file");
    std::fs::write(folder.path("empty"), "").expect("a file");
    let command = |words: &str| {
        let mut command = folder.kittiwake();
        command.args(words.split_whitespace());
        command
    };
    let stored = with_input(&mut command("auth url lab --passphrase-file right"), &url());
    assert_eq!(stored.status.code(), Some(0), "{}", text(&stored.stderr));
    let before = std::fs::read(file(&folder)).expect("a vault");
    let wrong = folder.say("auth list --passphrase-file wrong");
    assert_refused(&wrong, 4, "wrong passphrase or key; nothing was changed");
    let change = with_input(&mut command("auth url x --passphrase-file wrong"), &url());
    assert_refused(&change, 4, "wrong passphrase or key");
    assert_refused(
        &folder.say("auth list --passphrase-file empty"),
        2,
        "the first line of empty is empty",
    );
    assert_refused(
        &folder.say("auth list --passphrase-file missing"),
        2,
        "cannot read the passphrase file missing",
    );
    assert_refused(&folder.say("auth list"), 4, "nobody is there to ask");
    folder.say("auth key vault.key");
    assert_refused(
        &folder.say("auth list --key-file vault.key"),
        4,
        "this vault opens with a passphrase",
    );
    assert_eq!(std::fs::read(file(&folder)).expect("a vault"), before);
    let list = folder.say("auth list --passphrase-file right");
    assert_eq!(text(&list.stdout), "vault:lab\n");
}

#[test]
fn a_key_opens_it_from_a_file_or_from_the_environment() {
    let folder = with_vault();
    let key = std::fs::read_to_string(folder.path("vault.key")).expect("a key");
    let identity = key.lines().last().expect("an identity");
    let list = |value: &str| {
        let mut command = folder.kittiwake();
        let command = command.args(["auth", "list"]);
        command.env("KITTIWAKE_VAULT_KEY", value).output()
    };
    let listed = list(identity).expect("the binary runs");
    assert_eq!(text(&listed.stdout), "vault:lab\n");
    let wrong = list("AGE-SECRET-KEY-1NOTHING").expect("the binary runs");
    assert_refused(&wrong, 2, "KITTIWAKE_VAULT_KEY holds no age identity");
    folder.say("auth key other.key");
    let other = folder.say("auth list --key-file other.key");
    assert_refused(&other, 4, "wrong passphrase or key");
    assert_refused(&folder.say("auth list"), 4, "the vault opens with a key");
    // A key that is there is not written over.
    assert_refused(
        &folder.say("auth key other.key"),
        2,
        "cannot make other.key",
    );
    // A crawl does not go on without the credential that may be in a closed vault.
    let crawl = folder.say("crawl mastodon --host http://127.0.0.1:1 a --into t.db --quiet");
    assert_refused(&crawl, 4, "--anonymous crawls without a credential");
}

#[test]
fn a_truncated_or_tampered_vault_is_told_and_left_alone() {
    let folder = with_vault();
    let whole = std::fs::read(file(&folder)).expect("a vault");
    let mut tampered = whole.clone();
    if let Some(byte) = tampered.last_mut() {
        *byte ^= 1;
    }
    let mut head = whole.clone();
    head[10] ^= 1;
    let damaged = [
        &whole[..whole.len() / 2],
        &whole[..0],
        &tampered,
        &head,
        b"hello",
    ];
    for bytes in damaged {
        std::fs::write(file(&folder), bytes).expect("a file");
        for command in ["auth list", "auth remove tiny", "auth url other"] {
            let output = with_input(&mut with_key(&folder, command), &url());
            assert_refused(&output, 1, "is damaged");
        }
        assert_eq!(std::fs::read(file(&folder)).expect("a file"), bytes);
    }
    std::fs::write(file(&folder), &whole).expect("a file");
    let list = with_key(&folder, "auth list").output();
    assert_eq!(text(&list.expect("the binary runs").stdout), "vault:lab\n");
}

#[test]
fn a_folder_that_cannot_be_written_is_told_before_anything_is_asked() {
    let folder = Folder::new();
    folder.say("auth key vault.key");
    std::fs::write(folder.path("in-the-way"), "").expect("a file");
    let mut command = with_key(&folder, "login mastodon --host http://127.0.0.1:1 --token");
    command.env("XDG_CONFIG_HOME", folder.path("in-the-way"));
    let output = with_input(&mut command, &format!("{PLANTED}\n"));
    assert_refused(&output, 1, "cannot");
    let said = text(&output.stderr);
    assert!(said.contains("the vault is as it was"), "{said}");
}

#[test]
fn a_folder_in_the_place_of_the_vault_is_told() {
    let folder = Folder::new();
    folder.say("auth key vault.key");
    std::fs::create_dir_all(file(&folder)).expect("a folder");
    let output = with_input(&mut with_key(&folder, "auth url lab"), &url());
    assert_refused(&output, 1, "cannot read");
}

#[test]
fn processes_that_change_it_at_once_lose_nothing() {
    let folder = with_vault();
    let children: Vec<_> = (0..6)
        .map(|number| {
            let words = format!("auth url of-{number}");
            start(&mut with_key(&folder, &words), &url())
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    let list = with_key(&folder, "auth list").output();
    let listed = text(&list.expect("the binary runs").stdout);
    assert_eq!(listed.lines().count(), 7, "{listed}");
}

#[test]
fn a_password_belongs_into_the_vault_and_not_on_the_command_line() {
    let folder = with_vault();
    let password = url();
    for words in ["status", "pause", "report", "export"] {
        let output = folder.run(&[words, password.trim()]);
        assert_refused(&output, 2, "put the URL into the vault");
    }
    let crawl = [
        "crawl",
        "mastodon@h.example",
        "a",
        "--into",
        password.trim(),
    ];
    assert_refused(&folder.run(&crawl), 2, "vault:NAME");
    // By its name the URL is found, and shown without its password.
    let status = with_key(&folder, "status vault:lab").output();
    let status = status.expect("the binary runs");
    assert_refused(&status, 1, "127.0.0.1:1");
    let missing = with_key(&folder, "status vault:nothing").output();
    assert_refused(
        &missing.expect("the binary runs"),
        2,
        "the vault holds no URL \"nothing\"",
    );
    let removed = with_key(&folder, "auth url lab --remove").output();
    assert_eq!(removed.expect("the binary runs").status.code(), Some(0));
    let odd = with_input(&mut with_key(&folder, "auth url lab"), "http://h.example\n");
    assert_refused(&odd, 2, "no URL of a database");
}

#[test]
fn nothing_is_made_where_something_is_looked_for() {
    let folder = Folder::new();
    for words in [
        "status vault:lab",
        "auth url lab --remove",
        "auth remove mastodon",
    ] {
        assert_refused(&folder.say(words), 2, "the vault holds no");
    }
    let test = folder.say("auth test mastodon@h.example");
    assert_refused(&test, 4, "kittiwake login mastodon@h.example puts one in");
    assert_eq!(folder.say("auth list").status.code(), Some(0));
    assert!(!folder.path("config").exists());
}

#[test]
fn a_link_to_the_vault_stays_a_link() {
    let folder = with_vault();
    let real = folder.path("elsewhere.age");
    std::fs::rename(file(&folder), &real).expect("it is moved");
    std::os::unix::fs::symlink(&real, file(&folder)).expect("a link");
    let stored = with_input(&mut with_key(&folder, "auth url other"), &url());
    assert_eq!(stored.status.code(), Some(0), "{}", text(&stored.stderr));
    let metadata = std::fs::symlink_metadata(file(&folder)).expect("a link");
    assert!(metadata.file_type().is_symlink());
    let list = with_key(&folder, "auth list").output();
    let listed = text(&list.expect("the binary runs").stdout);
    assert_eq!(listed, "vault:lab\nvault:other\n");
}
