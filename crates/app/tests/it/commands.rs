//! The tool as a person meets it.

use crate::support::{Folder, Running, Sim, text};
use serde_json::Value;

#[test]
fn a_wrong_argument_is_a_usage_error_of_a_few_lines() {
    let folder = Folder::new();
    for (arguments, expected) in [
        ("crawl", "--into"),
        ("crawl mastodon a --into x.db", "mastodon@HOST"),
        ("crawl nonet@example.org a --into x.db", "no network"),
        ("crawl mastodon@example.org a --into x.db", "--contact"),
        (
            "crawl mastodon@example.org a --into x.db --contact me --limits off",
            "loopback",
        ),
        (
            "crawl mastodon a --host http://example.org --into x.db",
            "loopback",
        ),
        (
            "crawl mastodon a --host https://user:pass@example.org --into x.db",
            "TOKEN",
        ),
        (
            "crawl mastodon --host http://127.0.0.1:9 --into x.db",
            "seed",
        ),
        (
            "crawl mastodon a --host http://127.0.0.1:9 --into x.db --robots dust",
            "relations",
        ),
        (
            "crawl mastodon a --host http://127.0.0.1:9 --into x.db --for soon",
            "10m",
        ),
        ("network show myspace", "mastodon"),
        ("network check absent.toml", "absent.toml"),
        ("sim serve --at yesterday", "2026"),
        ("sim serve --speed NaN", "speed"),
        ("sim serve --clock-skew NaN", "ten years"),
        ("sim serve --clock-skew=-1e300", "ten years"),
        ("sim serve --limits-file nowhere.toml", "nowhere.toml"),
        ("sim serve --instances 0", "1..=999"),
        (
            "sim serve --instances 3 --bad-instances 3",
            "less than --instances",
        ),
        (
            "sim serve --limits off --limits-file nowhere.toml",
            "leave out one of them",
        ),
        ("fly", "fly"),
    ] {
        let output = folder.say(arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert!(!message.contains("panicked"), "{message}");
    }
}

#[test]
fn the_synthetic_network_keeps_the_limits_of_a_file() {
    let folder = Folder::new();
    let limits = "[[bucket]]\nname = \"few\"\nscope = \"ip\"\nkind = \"aligned\"\nlimit = 2\n";
    std::fs::write(folder.path("limits.toml"), limits).expect("a file");
    let refused = folder.say("sim serve --limits-file limits.toml");
    let message = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(
        message.contains("limits.toml: bucket \"few\": `window_seconds` is missing; write"),
        "{message}"
    );
    let limits = format!("{limits}window_seconds = 900\n");
    std::fs::write(folder.path("limits.toml"), limits).expect("a file");
    let words = "--users 50 --limits-file limits.toml --clock-skew -2.5";
    let sim = Sim::start(&folder, words);
    sim.get("/api/v2/instance");
    let window = &sim.json("/_sim/ledger")["windows"][0];
    assert_eq!(
        (&window["bucket"], &window["used"]),
        (&"few".into(), &1.into())
    );
}

/// A world in which a crawl takes a while, and somebody in it to begin with.
fn slow_world(latency_ms: u32) -> (Folder, Sim, String) {
    let folder = Folder::new();
    let words = format!("--users 300 --speed 0 --limits off --latency-ms {latency_ms}");
    let sim = Sim::start(&folder, &words);
    let seed = sim.first_handle();
    (folder, sim, seed)
}

#[test]
fn a_stopped_crawl_says_so_and_the_same_command_goes_on() {
    let (folder, sim, seed) = slow_world(20);
    let words = format!("{seed} --depth 2 --until-idle --limits off --json");
    let crawl = || folder.crawl_command(&sim.address, &words);
    let process = Running::start(&mut crawl());
    sim.wait_for_calls(5);
    process.interrupt();
    let summary: Value = serde_json::from_str(&process.rest()).expect("a summary even so");
    assert_eq!(summary["end"]["reason"], "interrupted");
    let first_calls = summary["calls"].as_u64().expect("calls");
    assert!(first_calls > 0);

    let capped = crawl().args(["--calls", "5"]).output().expect("a run");
    assert_eq!(capped.status.code(), Some(3));
    let summary: Value = serde_json::from_slice(&capped.stdout).expect("a summary");
    assert_eq!(summary["calls"], 5);
    assert_eq!(summary["calls_total"].as_u64(), Some(first_calls + 5));

    let status = folder.run(&["status", "t.db", "--json"]);
    let shown: Value = serde_json::from_slice(&status.stdout).expect("a status");
    assert_eq!(shown["calls_total"].as_u64(), Some(first_calls + 5));
    assert_eq!(shown["run"]["network"], "mastodon");

    let refused = folder.crawl(&sim.address, "--depth 1 --limits off");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("depth may grow"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn a_second_process_on_the_same_file_is_refused() {
    let (folder, sim, seed) = slow_world(50);
    let words = format!("{seed} --depth 2 --limits off");
    let _first = Running::start(&mut folder.crawl_command(&sim.address, &words));
    sim.wait_for_calls(1);
    let second = folder.crawl(&sim.address, &words);
    assert_eq!(second.status.code(), Some(1));
    let message = text(&second.stderr);
    assert!(
        message.contains("another kittiwake is crawling into this file"),
        "{message}"
    );
    let status = folder.run(&["status", "t.db"]);
    assert_eq!(
        status.status.code(),
        Some(0),
        "a crawl may be looked at while it runs"
    );
}
