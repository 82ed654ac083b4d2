//! Calls that can serve many subjects are filled.

use crate::support::{Folder, Sim, open, rows, text};
use std::time::Instant;

/// Users in one call of the robot `profiles`.
const BATCH: u64 = 40;
/// For so long a call waits for others to join it.
const PATIENCE_SECONDS: u64 = 5;

#[test]
fn a_call_for_many_waits_for_them_while_there_is_other_work() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 300 --seed 5 --speed 0 --limits off");
    // Users become known a few at a time, page by page.
    let words = "--robots relations,profiles --depth 9 --until-idle --limits off --concurrency 4";
    let words = format!("{} --include-opted-out test {words}", sim.first_handle());
    let started = Instant::now();
    let output = folder.crawl(&sim.address, &words);
    let seconds = started.elapsed().as_secs();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let count = |sql: &str| -> u64 {
        let found = rows(&open(&folder.path("t.db")), sql);
        let cell = found.first().and_then(|row| row[0].parse().ok());
        cell.expect("a count")
    };
    let visited = count("SELECT count(*) FROM frontier WHERE robot = 'profiles' AND visits > 0");
    let calls = count("SELECT count(*) FROM query_log WHERE query = 'profiles'");
    println!("{calls} calls for {visited} users in {seconds} s");
    assert!(visited > 3 * BATCH, "the world is too small");
    // One that was not full at the beginning, one at the end, and one whenever patience ran out.
    assert!(calls <= visited.div_ceil(BATCH) + 2 + seconds / PATIENCE_SECONDS);
}

/// The shipped definition with other limits, and further changes.
fn definition(folder: &Folder, budgets: &str, changes: &[(&str, &str)]) {
    let shipped = text(&folder.run(&["network", "show", "mastodon"]).stdout);
    let mut kept = String::new();
    let mut is_left_out = false;
    for line in shipped.lines() {
        if line.starts_with('[') {
            is_left_out = line.starts_with("[budgets.");
        }
        if !is_left_out {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    for (from, to) in changes {
        assert!(kept.contains(from), "{from}");
        kept = kept.replace(from, to);
    }
    let file = folder.path("limited.toml");
    std::fs::write(file, format!("{kept}\n{budgets}")).expect("a definition");
}

fn count(folder: &Folder, sql: &str) -> u64 {
    let found = rows(&open(&folder.path("t.db")), sql);
    let cell = found.first().and_then(|row| row[0].parse().ok());
    cell.expect("a count")
}

#[test]
fn a_dearer_query_helps_out_while_the_limit_of_the_cheaper_one_is_used_up() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 60 --seed 5 --speed 0 --limits off");
    let budget = |name: &str, limit: u64| {
        format!(
            "[budgets.{name}]\nscope = \"ip\"\nlimit = {limit}\nwindow = \"1d\"\nkind = \"sliding\"\n"
        )
    };
    let many = "[queries.profiles]\n";
    let one = "[queries.profile]\n";
    let about = "[queries.instance]\n";
    definition(
        &folder,
        &format!("{}{}", budget("many", 1), budget("one", 500)),
        &[
            (many, &format!("{many}budgets = [\"many\"]\n")),
            (one, &format!("{one}budgets = [\"one\"]\n")),
            (about, &format!("{about}budgets = [\"one\"]\n")),
        ],
    );
    let users = sim.truth("users");
    let ids: Vec<String> = users
        .iter()
        .filter_map(|user| user["id"].as_str()?.rsplit('/').next())
        .map(|id| format!("id:{id}"))
        .collect();
    let crawl = || {
        let mut command = folder.kittiwake();
        command.args(["crawl", "limited.toml", "--host", &sim.address]);
        command.args(["--into", "t.db", "--robots", "profiles", "--until-idle"]);
        command.args(["--pace", "burst", "--quiet", "--include-opted-out", "test"]);
        command.args(&ids);
        let output = command.output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    };
    crawl();
    let asked = |query: &str| {
        let sql = format!("SELECT count(*) FROM query_log WHERE query = '{query}'");
        count(&folder, &sql)
    };
    let left = ids.len() as u64 - BATCH;
    assert_eq!((asked("profiles"), asked("profile")), (1, left));
    let sql = "SELECT count(*) FROM frontier WHERE robot = 'profiles' AND visits = 1";
    assert_eq!(count(&folder, sql), ids.len() as u64);
    let sql = "SELECT count(DISTINCT key) FROM outcomes WHERE query IN ('profile', 'profiles')";
    assert_eq!(count(&folder, sql), ids.len() as u64);
}

#[test]
fn a_walk_that_cannot_be_broken_off_waits_for_limits_that_suffice() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 60 --seed 5 --speed 0 --limits off");
    let seed = sim.first_handle();
    let limited = |limit: u64| {
        let budget = format!(
            "[budgets.calls]\nscope = \"ip\"\nlimit = {limit}\nwindow = \"1d\"\nkind = \"sliding\"\n"
        );
        let pages = (
            "size = 80, order = \"newest_first\"",
            "size = 2, durable = false",
        );
        definition(&folder, &budget, &[pages]);
    };
    let crawl = |words: &str, code: i32| {
        let fixed = "--into t.db --robots relations --pace burst --quiet --include-opted-out test";
        let output = folder.say(&format!(
            "crawl limited.toml {seed} --host {} {fixed} {words}",
            sim.address
        ));
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    };
    let asked = |query: &str| {
        let sql = format!("SELECT count(*) FROM query_log WHERE query LIKE '{query}'");
        count(&folder, &sql)
    };
    limited(10_000);
    crawl("--until-idle", 0);
    let (calls, pages) = (asked("%"), asked("following"));
    assert!(pages >= 2, "{seed} follows too few");
    // One call less than the walk is known to take: it is not begun.
    limited(calls + pages - 1);
    crawl("--again --max-time 2s", 3);
    assert_eq!(asked("%"), calls);
    limited(10 * calls);
    crawl("--again", 0);
    assert_eq!(asked("following"), 2 * pages);
}
