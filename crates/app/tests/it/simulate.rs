//! `kittiwake simulate`: policies on traces, through the binary.

use crate::support::{Folder, text};
use serde_json::Value;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Output;

/// Thirty users at different paces for forty days, by day only.
fn town() -> String {
    let mut trace = String::from("user,unix_seconds,spread\n");
    for user in 0..30_u64 {
        let gap = 3 + user * user / 3;
        for step in 0..40 * 24 / gap {
            let hour = step * gap + 8 + user % 5;
            if (7..22).contains(&(hour % 24)) {
                let at = 1_700_000_000 + hour * 3_600;
                let _ = writeln!(trace, "u{user},{at},{}", user * 10);
            }
        }
    }
    trace
}

pub(crate) fn simulate(folder: &Folder, words: &str) -> Output {
    let mut all = vec!["simulate"];
    all.extend(words.split_whitespace());
    folder.run(&all)
}

pub(crate) fn lines(output: &Output) -> Vec<Value> {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    let lines = shown.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("one JSON object a line"))
        .collect()
}

#[test]
fn every_policy_prints_one_json_object_with_all_keys() {
    let folder = Folder::new();
    std::fs::write(folder.path("t.csv"), town()).expect("a file");
    let policies = "adaptive,round-robin,uniform,organ-pipe,hash,hash-calendar,change-rate,\
                    importance,breadth-first,proportional,cho,lambda-crawl,square-root,clairvoyant,\
                    most-waiting";
    let words = format!("t.csv --policy {policies} --visits-per-day 1 --json");
    let objects = lines(&simulate(&folder, &words));
    assert_eq!(objects.len(), 15);
    for object in &objects {
        for key in [
            "policy",
            "users",
            "posts",
            "calls",
            "posts_per_call_arriving",
            "messages",
            "messages_per_call",
            "lost_share",
            "mean_delay_s",
            "median_delay_s",
            "p95_delay_s",
            "within_1h",
            "within_24h",
            "waiting_mean",
            "decisions_per_s",
            "state_bytes_per_user",
        ] {
            assert!(object.get(key).is_some(), "{key} {object}");
        }
        assert_eq!(object["users"], 30);
        assert!(object["state_bytes_per_user"].as_u64() <= Some(64));
        assert!(object["top_1_percent"]["posts"].as_u64() > Some(0));
    }
    let delay = |place: usize| objects[place]["mean_delay_s"].as_f64().expect("a delay");
    assert!(delay(0) < delay(1), "adaptive is fresher than round robin");
    assert!(
        delay(13) < delay(0),
        "the clairvoyant is fresher than adaptive"
    );
}

#[test]
fn budgets_pictures_and_what_was_observed() {
    let folder = Folder::new();
    std::fs::write(folder.path("t.csv"), town()).expect("a file");
    let words = "t.csv --visits-per-day 0.5,2 --plot out.svg --observed seen.csv --longest-span 9d";
    let output = simulate(&folder, words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(
        shown.contains("round-robin") && shown.contains("by class"),
        "{shown}"
    );
    let picture = std::fs::read_to_string(folder.path("out.svg")).expect("a picture");
    assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
    assert!(picture.contains("prefers-color-scheme") && picture.contains("against the budget"));
    assert!(!picture.contains("NaN") && !picture.contains("inf"));
    let seen = std::fs::read_to_string(folder.path("seen.csv")).expect("a list");
    assert_eq!(seen.lines().count(), 1 + 2 * 2 * 30);
}

#[test]
fn the_experiments_of_the_papers_are_run() {
    let folder = Folder::new();
    std::fs::write(folder.path("t.csv"), town()).expect("a file");
    let orders = lines(&simulate(&folder, "t.csv --one-visit --window 10d --json"));
    assert_eq!(orders.len(), 3);
    assert!(orders[2]["messages"].as_u64() >= orders[0]["messages"].as_u64());
    let weights = lines(&simulate(
        &folder,
        "t.csv --hash-unbudgeted --page 5 --json",
    ));
    assert_eq!(weights.len(), 6);
    let months = lines(&simulate(&folder, "t.csv --mispredictions monthly --json"));
    assert_eq!(months[0]["month"], "2023-11");
    assert!(months.len() >= 2);
}

#[test]
fn facets_and_weights_share_one_budget() {
    let folder = Folder::new();
    let mut trace = String::from("user,unix_seconds,facet\n");
    for hour in 0..24 * 40 {
        let _ = writeln!(trace, "a,{},posts", hour * 3_600);
        let _ = writeln!(trace, "a,{},counts", hour * 3_600 + 60);
        let _ = writeln!(trace, "b,{},posts", hour * 3_600 + 120);
    }
    std::fs::write(folder.path("t.csv"), trace).expect("a file");
    std::fs::write(folder.path("w.csv"), "user,weight\nb,50\n").expect("a file");
    let words = "t.csv --policy adaptive --visits-per-day 4 --facets posts=1,counts=0.01 \
                 --weights w.csv --observed seen.csv";
    assert_eq!(simulate(&folder, words).status.code(), Some(0));
    let seen = std::fs::read_to_string(folder.path("seen.csv")).expect("a list");
    let visits = |begins: &str| -> u64 {
        let line = seen
            .lines()
            .find(|line| line.contains(begins))
            .expect("a line");
        line.split(',')
            .nth(5)
            .and_then(|count| count.parse().ok())
            .expect("a count")
    };
    assert!(visits(",a,posts,") > 3 * visits(",a,counts,"));
    assert!(visits(",b,posts,") > 3 * visits(",a,posts,"));
    let wrong = simulate(&folder, "t.csv --visits-per-day 1 --facets likes=1");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("posts, counts"));
}

#[test]
fn whatever_is_wrong_is_told() {
    let folder = Folder::new();
    std::fs::write(folder.path("t.csv"), town()).expect("a file");
    std::fs::write(folder.path("empty.csv"), "").expect("a file");
    std::fs::write(folder.path("picture.csv"), b"\x89PNG\r\n\x1a\n").expect("a file");
    for (words, hint) in [
        ("t.csv", "--visits-per-day"),
        ("t.csv --visits-per-day 0", "above 0"),
        ("t.csv --visits-per-day 1e15", "too many"),
        ("t.csv --visits-per-day 1 --policy adaptiv", "adaptive"),
        ("t.csv --visits-per-day 1 --warm-up 900d", "--warm-up"),
        ("t.csv --visits-per-day 1 --warm-up soon", "60d"),
        ("t.csv --one-visit --window 900d", "--window"),
        ("empty.csv --visits-per-day 1", "empty"),
        ("picture.csv --visits-per-day 1", "line 1"),
        ("missing.csv --visits-per-day 1", "missing.csv"),
        ("t.csv --visits-per-day 1 --weights t.csv", "t.csv"),
        ("t.csv --visits-per-day 1 --holidays empty.csv", "dates"),
        ("t.csv --visits-per-day 1 --plot missing/out.svg", "out.svg"),
        ("--visits-per-day 1", "TRACE"),
    ] {
        let output = simulate(&folder, words);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {message}");
        assert!(message.contains(hint), "{words}: {message}");
    }
}

#[test]
fn a_crawl_is_a_trace_too() {
    let folder = Folder::new();
    let server = crate::support::Sim::start(&folder, "--users 60 --speed 0 --limits off");
    let users = server.truth("users");
    let names = users.iter().filter_map(|user| user["acct"].as_str());
    let seeds: Vec<&str> = names.take(8).collect();
    let words = format!("{} --depth 1 --until-idle --limits off", seeds.join(" "));
    let crawl = folder.crawl(&server.address, &words);
    assert_eq!(crawl.status.code(), Some(0), "{}", text(&crawl.stderr));
    let words = "--from t.db --visits-per-day 0.1 --policy round-robin --json";
    let objects = lines(&simulate(&folder, words));
    assert!(objects[0]["posts"].as_u64() > Some(0), "{objects:?}");
}

/// The figures that freshness is judged by, where the trace is at hand.
#[test]
fn adaptive_reaches_the_goals_on_the_open_trace() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let places = ["../shared", "../../shared"].map(|place| root.join(place));
    let traces = places.map(|place| place.join("traces/open.csv.zst"));
    let Some(trace) = traces.iter().find(|trace| trace.exists()) else {
        println!("absent: ../shared/traces/open.csv.zst");
        return;
    };
    let folder = Folder::new();
    let figures = |words: &str| -> Vec<Value> {
        let mut all = vec!["simulate", trace.to_str().expect("a path"), "--json"];
        all.extend(words.split_whitespace());
        lines(&folder.run(&all))
    };
    let ratio = |objects: &[Value], key: &str| {
        let value = |place: usize| objects[place][key].as_f64().expect("a number");
        value(0) / value(1)
    };
    let starved = figures("--visits-per-day 0.0333");
    assert!(ratio(&starved, "messages_per_call") >= 1.28);
    let short = figures("--visits-per-day 0.0833 --page 20");
    assert!(ratio(&short, "messages_per_call") >= 1.50);
    let scarce = figures("--visits-per-day 0.26");
    assert!(ratio(&scarce, "mean_delay_s") <= 0.62);
    assert!(scarce[0]["lost_share"].as_f64() <= Some(0.003));
    let daily = figures("--visits-per-day 1.03");
    assert!(ratio(&daily, "mean_delay_s") <= 0.55);
    assert!(ratio(&daily, "p95_delay_s") <= 1.05);
    // Round robin as it was measured elsewhere.
    assert!(
        (daily[1]["mean_delay_s"].as_f64().expect("a delay") / 3_600.0 / 11.59 - 1.0).abs() < 0.02
    );
}
