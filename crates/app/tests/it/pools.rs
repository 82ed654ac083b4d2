//! Several credentials in one crawl: all are used, limits are kept by whose they are, and one that
//! is refused keeps nobody else out.

use crate::limits::World;
use crate::support::{Folder, Running, Sim, open, rows, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Output, Stdio};

const TOKENS: &str = "KITTIWAKE_MASTODON_TOKENS";
const WORDS: &str = "--depth 1 --until-idle --limits off --json --include-opted-out test \
                     --robots profiles,relations,statuses";

struct Scene {
    folder: Folder,
    sim: Sim,
    seed: String,
}

impl Scene {
    fn new() -> Self {
        let folder = Folder::new();
        let sim = Sim::start(&folder, "--users 60 --seed 5 --speed 0 --limits off");
        let seed = sim.first_handle();
        Self { folder, sim, seed }
    }

    fn command(&self, tokens: &str, words: &[&str]) -> Command {
        let start = format!("{} {WORDS}", self.seed);
        let mut command = self.folder.crawl_command(&self.sim.address, &start);
        command.args(words);
        if !tokens.is_empty() {
            command.env(TOKENS, tokens);
        }
        command
    }

    fn crawl(&self, tokens: &str, words: &[&str]) -> Output {
        let mut command = self.command(tokens, words);
        command.output().expect("the binary runs")
    }

    /// The queries that were asked with each credential.
    fn asked(&self) -> BTreeMap<String, BTreeSet<String>> {
        let sql = "SELECT DISTINCT credential, query FROM query_log";
        let mut asked: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in rows(&open(&self.folder.path("t.db")), sql) {
            let queries = asked.entry(row[0].clone()).or_default();
            queries.insert(row[1].clone());
        }
        asked
    }

    /// The tokens that the network was shown.
    fn shown(&self) -> BTreeSet<String> {
        let calls = self.sim.get("/_sim/ledger/calls?limit=5000");
        let calls = calls.lines().map(|line| {
            let call: Value = serde_json::from_str(line).expect("a JSON line");
            call["credential"]
                .as_str()
                .expect("a credential")
                .to_owned()
        });
        calls.collect()
    }

    fn settings(&self) -> Value {
        let sql = "SELECT settings FROM runs ORDER BY id DESC LIMIT 1";
        let found = rows(&open(&self.folder.path("t.db")), sql);
        let settings = found.first().expect("a run")[0].clone();
        serde_json::from_str(&settings).expect("JSON")
    }
}

#[track_caller]
fn done(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a summary")
}

#[test]
fn two_tokens_are_both_used_and_the_permission_is_recorded() {
    let scene = Scene::new();
    let reason = ["--i-have-permission", "the owner said so on 2026-11-01"];
    let summary = done(&scene.crawl("ada ada:1, bob bob:1", &reason));
    assert_eq!(summary["refused_credentials"], serde_json::json!([]));
    let shown = scene.shown();
    assert!(
        shown.contains("token:ada:1") && shown.contains("token:bob:1"),
        "{shown:?}"
    );
    let asked = scene.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for queries in asked.values() {
        assert!(queries.contains("timeline"), "{asked:?}");
    }
    let settings = scene.settings();
    assert_eq!(settings["permission"], reason[1]);
    let used = settings["credentials"].as_array().expect("a list");
    let used: BTreeSet<&str> = used
        .iter()
        .filter_map(|it| it["fingerprint"].as_str())
        .collect();
    assert_eq!(used, asked.keys().map(String::as_str).collect());
    let report = scene.folder.say("report t.db");
    assert!(text(&report.stdout).contains("the owner said so"));
}

#[test]
fn a_forbidden_pool_is_refused_with_advice_before_anything_is_sent() {
    let scene = Scene::new();
    let no_reason = ["--i-have-permission", " "];
    for (tokens, words, advice) in [
        (
            "ada ada:1, bob bob:1",
            &[][..],
            "--i-have-permission REASON",
        ),
        ("one, two", &[][..], "--as NAME"),
        (
            "ada ada:1, ada ada:2",
            &[][..],
            "several accounts or applications",
        ),
        ("ada ada:1, bob bob:1", &no_reason[..], "wants the reason"),
        (
            "ada two words",
            &[][..],
            "KITTIWAKE_MASTODON_TOKENS is no list of tokens",
        ),
        (
            "ada ada:1",
            &["--as", "eve"][..],
            "no credential named \"eve\"",
        ),
        (
            "ada ada:1",
            &["--as", "ada:gulls"][..],
            "there is no robot \"gulls\"",
        ),
    ] {
        let refused = scene.crawl(tokens, words);
        let said = text(&refused.stderr);
        let wanted = if advice.contains("named") { 4 } else { 2 };
        assert_eq!(refused.status.code(), Some(wanted), "{tokens}: {said}");
        assert!(said.contains(advice), "{tokens}: {said}");
        assert!(
            !said.contains("ada:1") && !said.contains("two words"),
            "{said}"
        );
    }
    assert_eq!(scene.sim.calls(), 0);
    assert!(!scene.folder.path("t.db").exists());
    // One of them is no pool, and the same token twice is one.
    done(&scene.crawl("ada ada:1, bob bob:1", &["--as", "bob"]));
    std::fs::remove_file(scene.folder.path("t.db")).expect("a file");
    done(&scene.crawl("ada ada:1, ada:1", &[]));
    let shown = scene.shown();
    assert_eq!(shown.len(), 2, "{shown:?}");
}

#[test]
fn of_two_tokens_one_that_is_revoked_leaves_the_other_working() {
    let scene = Scene::new();
    let permitted = ["--i-have-permission", "a test"];
    let tokens = "ada ada:1, eve bad-and-secret";
    let summary = done(&scene.crawl(tokens, &permitted));
    let refused = summary["refused_credentials"].as_array().expect("a list");
    assert_eq!(refused.len(), 1, "{summary}");
    assert_eq!(summary["end"]["reason"], "idle");
    assert_eq!(
        summary["outcomes"]["auth expired"],
        Value::Null,
        "{summary}"
    );
    for (robot, counts) in summary["robots"].as_object().expect("robots") {
        assert_eq!(counts["subjects"], counts["visited"], "{robot}: {summary}");
    }
    let sql = "SELECT count(*) FROM query_log WHERE outcome = 'auth expired'";
    let count = rows(&open(&scene.folder.path("t.db")), sql);
    let count: u64 = count.first().expect("a row")[0].parse().expect("a count");
    // What was under way when the first answer came, and no more.
    assert!(
        (1..=4).contains(&count),
        "{count} calls with a token that is refused"
    );
    // Nobody is left who could ask.
    let other = scene.folder.path("t.db");
    std::fs::remove_file(other).expect("a file");
    let nobody = scene.crawl("eve bad-and-secret, mallory bad-too", &permitted);
    assert_eq!(nobody.status.code(), Some(4), "{}", text(&nobody.stderr));
    let said = format!("{}{}", text(&nobody.stdout), text(&nobody.stderr));
    assert!(!said.contains("bad-and-secret"), "{said}");
}

#[test]
fn a_credential_that_is_kept_for_robots_is_used_by_no_other() {
    let scene = Scene::new();
    let words = [
        "--i-have-permission",
        "a test",
        "--as",
        "ada:profiles",
        "--as",
        "bob:statuses",
    ];
    done(&scene.crawl("ada ada:1, bob bob:1", &words));
    let asked = scene.asked();
    // The relations are kept for nobody and go without; so does whatever they look up.
    let anonymous = asked.get("anonymous").expect("calls without a token");
    assert!(anonymous.contains("followers") && !anonymous.contains("timeline"));
    let with = |query: &str| -> Vec<&String> {
        let asking = asked.iter().filter(|(_, queries)| queries.contains(query));
        asking.map(|(credential, _)| credential).collect()
    };
    let (profiles, timeline) = (with("profiles"), with("timeline"));
    assert!(profiles.len() == 1 && timeline.len() == 1, "{asked:?}");
    assert!(profiles != timeline && !profiles.contains(&&"anonymous".to_owned()));
    // When the one of a robot is revoked, the robot is done; the others are not.
    let other = scene.folder.path("t.db");
    std::fs::remove_file(other).expect("a file");
    let locked = scene.crawl("ada bad-token, bob bob:1", &words);
    assert_eq!(locked.status.code(), Some(4), "{}", text(&locked.stderr));
    let summary: Value = serde_json::from_slice(&locked.stdout).expect("a summary");
    let robots = &summary["robots"];
    assert_eq!(
        robots["statuses"]["subjects"],
        robots["statuses"]["visited"]
    );
    assert_eq!(robots["profiles"]["visited"], 0);
}

#[test]
fn credentials_of_the_vault_are_used_together_by_their_names() {
    let scene = Scene::new();
    scene.folder.say("auth key vault.key");
    for (name, token) in [("ada", "ada:1"), ("bob", "bob:1")] {
        let mut login = scene.folder.kittiwake();
        login.args(["login", "mastodon", "--host", &scene.sim.address]);
        login.args(["--token", "--name", name, "--key-file", "vault.key"]);
        let mut child = login
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let mut stdin = child.stdin.take().expect("standard input is piped");
        writeln!(stdin, "{token}").expect("it listens");
        drop(stdin);
        assert!(child.wait().expect("it ends").success());
    }
    let before = scene.sim.calls();
    let key = ["--key-file", "vault.key"];
    let several = scene.crawl("", &key);
    assert!(text(&several.stderr).contains("say which: ada, bob"));
    let both = ["--as", "ada", "--as", "bob:statuses+profiles"];
    let refused = scene.crawl("", &[&key[..], &both[..]].concat());
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert_eq!(scene.sim.calls(), before);
    let permitted = ["--i-have-permission", "a test"];
    let words = [&key[..], &both[..], &permitted[..]].concat();
    done(&scene.crawl("", &words));
    let asked = scene.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    let of_relations = asked.values().filter(|it| it.contains("followers"));
    assert_eq!(of_relations.count(), 1, "{asked:?}");
}

#[test]
fn limits_are_kept_by_whose_the_tokens_are() {
    for (file, tokens) in [
        ("same.db", "ada:1, ada:2, ada:3"),
        ("named.db", "ada ada:1, ada ada:2, bob bob:1"),
    ] {
        let world = World::strict("100");
        let mut command = world.crawl(file, None);
        command.env(TOKENS, tokens);
        command.args(["--i-have-permission", "a test"]);
        let mut crawl = Running::start(&mut command);
        assert_eq!(crawl.wait(), Some(0));
        world.check(&[file]);
    }
}
