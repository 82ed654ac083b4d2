//! `kittiwake plan` against what the crawl then does, and the caps of a crawl.

use crate::support::{Folder, Sim, Tables, open, text};
use serde_json::Value;
use std::process::Output;

/// Handles of people of a world, evenly over it.
fn handles(sim: &Sim, wanted: usize) -> Vec<String> {
    let users = sim.truth("users");
    let present: Vec<&Value> = users.iter().filter(|it| it["gone"] == false).collect();
    let step = (present.len() / wanted).max(1);
    let chosen = present.iter().step_by(step).take(wanted);
    let handle = |user: &&Value| user["acct"].as_str().expect("a handle").to_owned();
    chosen.map(handle).collect()
}

fn plan(folder: &Folder, sim: &Sim, words: &str) -> Value {
    let output = plan_output(folder, sim, &format!("{words} --json"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a plan")
}

fn plan_output(folder: &Folder, sim: &Sim, words: &str) -> Output {
    let fixed = format!(
        "plan mastodon --host {} --into t.db --limits off",
        sim.address
    );
    let words: Vec<&str> = fixed.split(' ').chain(words.split(' ')).collect();
    folder.run(&words)
}

/// Crawls to the end; gives the calls of this run.
fn crawl(folder: &Folder, sim: &Sim, words: &str) -> f64 {
    let before = sim.calls();
    let output = folder.crawl(&sim.address, &format!("{words} --limits off --json"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("a summary");
    let calls = summary["calls"].as_u64().expect("calls");
    assert_eq!(sim.calls() - before, calls, "as the server counted them");
    calls as f64
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// Plans and then crawls; both have to agree within a tenth.
fn plan_and_crawl_agree(folder: &Folder, sim: &Sim, what: &str, words: &str) {
    let planned = plan(folder, sim, words);
    let made = crawl(folder, sim, words);
    let likely = number(&planned["calls"]["likely"]);
    println!("{what}: planned {likely:.0}, made {made:.0} ({words})");
    assert!(made > 20.0, "too few calls to tell anything: {made}");
    let off = (likely - made).abs() / made;
    assert!(
        off <= 0.1,
        "{what}: planned {likely}, made {made}: {planned}"
    );
}

#[test]
fn known_work_is_planned_within_a_tenth_on_three_worlds() {
    for (users, seed) in [(200, 11), (500, 12), (1_200, 13)] {
        let folder = Folder::new();
        let sim = Sim::start(
            &folder,
            &format!("--users {users} --seed {seed} --speed 0 --limits off"),
        );
        let what = |step: &str| format!("{users} users, seed {seed}, {step}");
        let seeds = handles(&sim, 60).join(" ");
        crawl(
            &folder,
            &sim,
            &format!("{seeds} --robots profiles --until-idle"),
        );
        // The counts of the seeds are known, and nothing else.
        let robots = "--robots relations,profiles,statuses,tags --until-idle";
        plan_and_crawl_agree(&folder, &sim, &what("counts known"), robots);
        // Everybody again: lists anew, timelines from their marks.
        let again = "--robots relations,profiles,statuses,tags --again";
        plan_and_crawl_agree(&folder, &sim, &what("once more"), again);
        // One step further: all of those are known from the lists.
        let further = "--robots profiles,statuses,tags --until-idle --depth 1";
        plan_and_crawl_agree(&folder, &sim, &what("a step further"), further);
        // A walk that was broken off goes on.
        let output = folder.crawl(
            &sim.address,
            "--robots relations,profiles,statuses,tags,likes --depth 1 --again --max-calls 100 --limits off",
        );
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        let rest = "--robots profiles,statuses,tags --depth 1 --until-idle";
        plan_and_crawl_agree(&folder, &sim, &what("the rest of a round"), rest);
    }
}

#[test]
fn the_interval_of_an_unknown_graph_holds_the_truth_in_nine_of_ten_worlds() {
    let (mut held, mut widths) = (0, Vec::new());
    for seed in 1..=10 {
        let folder = Folder::new();
        let users = 150 + 70 * seed;
        let arguments = format!("--users {users} --seed {seed} --speed 0 --limits off");
        let sim = Sim::start(&folder, &arguments);
        let first = handles(&sim, 3).join(" ");
        let words = format!("{first} --robots relations,profiles,statuses --depth 2 --until-idle");
        let blind = plan(&folder, &sim, &words);
        let probed = plan(&folder, &sim, &format!("{words} --probe"));
        assert!(!folder.path("t.db").exists(), "a plan makes no file");
        let made = crawl(&folder, &sim, &words);
        let bounds = |plan: &Value| {
            let calls = &plan["calls"];
            ["low", "likely", "high"].map(|bound| number(&calls[bound]))
        };
        let ([low, likely, high], [least, _, most]) = (bounds(&probed), bounds(&blind));
        println!(
            "seed {seed}, {users} users: made {made:.0}, probed {low:.0} to {high:.0} (likely \
             {likely:.0}), blind {least:.0} to {most:.0}"
        );
        held += u32::from((low..=high).contains(&made));
        widths.push(high / low);
        assert!(
            (least..=most).contains(&made),
            "nothing known, nothing excluded"
        );
        assert!(
            blind["vague"] == true && blind["unknown_seeds"] == 3,
            "{blind}"
        );
    }
    widths.sort_by(f64::total_cmp);
    println!("held in {held} of 10; high / low: {widths:.1?}");
    assert!(held >= 9, "held in {held} of 10");
    // Whoever says "between nothing and everything" is always right.
    assert!(widths[5] <= 20.0, "{widths:.1?}");
}

#[test]
fn a_plan_sends_nothing_and_a_probe_a_handful_that_is_kept() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 300 --seed 4 --speed 0 --limits off");
    let seed = sim.first_handle();
    let words = format!("{seed} --depth 1 --until-idle");
    let output = plan_output(&folder, &sim, &words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("--probe would narrow this"), "{shown}");
    assert_eq!(sim.calls(), 0);
    assert!(!folder.path("t.db").exists());
    // Without a file to go on with, what a probe finds is not kept.
    plan(&folder, &sim, &format!("{words} --probe"));
    let probed = sim.calls();
    assert!((1..=10).contains(&probed), "{probed} calls");
    assert!(!folder.path("t.db").exists());
    // With one, it is.
    let first = folder.crawl(&sim.address, &format!("{words} --max-calls 3 --limits off"));
    assert_eq!(first.status.code(), Some(3));
    let before = sim.calls();
    plan(&folder, &sim, &format!("{words} --probe"));
    let probed = sim.calls() - before;
    assert!((1..=10).contains(&probed), "{probed} calls");
    let (_, rows) = open(&folder.path("t.db")).select("SELECT count(*) FROM query_log");
    assert_eq!(rows[0][0], (3 + probed).to_string());
}

#[test]
fn a_plan_is_refused_where_the_crawl_would_be() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 50 --speed 0 --limits off");
    let seed = sim.first_handle();
    for (words, code, said) in [
        ("--until-idle".to_owned(), 2, "name at least one seed"),
        (format!("{seed} --robots cats"), 2, "cats"),
        (format!("{seed} --max-spend 5USD"), 2, "has no prices"),
        (format!("{seed} --max-spend 5"), 2, "20USD"),
    ] {
        let output = plan_output(&folder, &sim, &words);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words}: {stderr}");
        assert!(stderr.contains(said), "{words}: {stderr}");
    }
    crawl(&folder, &sim, &format!("{seed} --depth 1 --until-idle"));
    let output = plan_output(&folder, &sim, &format!("{seed} --depth 0"));
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("depth may grow"));
    std::fs::write(folder.path("t.db"), "no crawl at all").expect("a file");
    let output = plan_output(&folder, &sim, &seed);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

/// The shipped definition with prices: a cent a call, and half a cent for each item of a timeline.
fn priced(folder: &Folder) {
    let shipped = folder.say("network show mastodon");
    let mut lines = Vec::new();
    for line in text(&shipped.stdout).lines() {
        lines.push(line.to_owned());
        let query = line
            .strip_prefix("[queries.")
            .and_then(|rest| rest.strip_suffix(']'));
        if let Some(query) = query {
            let item = if query == "timeline" { "0.005" } else { "0" };
            lines.push(format!(
                "costs = {{ money = {{ call = \"0.01\", item = \"{item}\" }} }}"
            ));
        }
    }
    lines.push("[budgets.money]\nscope = \"host\"\nunit = \"USD\"\nkind = \"month\"".to_owned());
    std::fs::write(folder.path("priced.toml"), lines.join("\n")).expect("a definition");
}

#[test]
fn money_is_planned_and_a_cap_on_it_is_never_exceeded() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 200 --seed 6 --speed 0 --limits off");
    priced(&folder);
    let seeds = handles(&sim, 12).join(" ");
    let fixed = format!("priced.toml {seeds} --host {} --into t.db", sim.address);
    let fixed = format!("{fixed} --robots profiles,statuses --pace burst");
    let planned = folder.say(&format!("plan {fixed} --until-idle --probe --json"));
    assert_eq!(planned.status.code(), Some(0), "{}", text(&planned.stderr));
    let planned: Value = serde_json::from_slice(&planned.stdout).expect("a plan");
    let mut paid = 0.0;
    let mut ends = Vec::new();
    // 0.21 is what a full page of a timeline costs, so that there is room for few at once.
    for _ in 0..60 {
        let output = folder.say(&format!(
            "crawl {fixed} --until-idle --max-spend 0.5USD --concurrency 8 --json --quiet"
        ));
        let summary: Value = serde_json::from_slice(&output.stdout).expect("a summary");
        let units = number(&summary["allowance_used"]["money"]["units"]);
        assert!(units <= 500_000.0, "{units} of 500000: {summary}");
        paid += units / 1e6;
        ends.push(output.status.code());
        if output.status.code() != Some(3) {
            break;
        }
        assert_eq!(summary["end"]["reason"], "spend", "{summary}");
    }
    println!(
        "planned {}, paid {paid:.2} in {ends:?}",
        planned["money"]["USD"]
    );
    assert!(ends.len() > 1, "the cap was never met");
    assert_eq!(ends.last(), Some(&Some(0)), "several runs come to the end");
    let money = &planned["money"]["USD"];
    assert!(
        number(&money["low"]) <= paid && paid <= number(&money["high"]),
        "{money}"
    );
    let said = folder.say(&format!("crawl {fixed} --again --max-spend 0.3USD --quiet"));
    assert_eq!(said.status.code(), Some(3));
    assert!(
        text(&said.stdout).contains("--max-spend 0.30USD"),
        "{}",
        text(&said.stdout)
    );
    let other = folder.say(&format!("crawl {fixed} --max-spend 5EUR --quiet"));
    assert_eq!(other.status.code(), Some(2));
    assert!(
        text(&other.stderr).contains("USD"),
        "{}",
        text(&other.stderr)
    );
}

#[test]
fn a_cap_on_calls_is_exact_whatever_goes_wrong() {
    let folder = Folder::new();
    let arguments = "--users 200 --seed 8 --speed 0 --limits off --faults hostile --stall-ms 50";
    let sim = Sim::start(&folder, arguments);
    let seed = sim.first_handle();
    // Redirects and tries again are calls, too.
    for cap in [1, 7, 40] {
        let before = sim.calls();
        let words = format!("{seed} --depth 2 --until-idle --limits off --concurrency 16");
        let output = folder.crawl(&sim.address, &format!("{words} --max-calls {cap}"));
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("--max-calls"));
        let made = sim.calls() - before;
        println!("cap {cap}: {made} calls");
        assert!(made <= cap, "{made} of {cap}");
    }
}
