//! Pause, resume and stop: a running crawl does as it is told, robot by robot.

use crate::support::{Folder, Running, Sim, open, rows, text};
use std::process::Output;
use std::time::{Duration, Instant};

/// How long a crawl may take to do as it is told.
const PATIENCE: Duration = Duration::from_mins(1);

struct Crawl {
    folder: Folder,
    sim: Sim,
    running: Running,
}

impl Crawl {
    /// A crawl that goes round and round, of a world that never stands still.
    fn endless() -> Self {
        let folder = Folder::new();
        let sim = Sim::start(&folder, "--users 60 --seed 3 --speed 1000 --limits off");
        let seed = sim.first_handle();
        // An hour of its time, for which lists rest after a visit, lasts some seconds.
        let words = format!(
            "{seed} --depth 2 --limits off --include-opted-out test --clock-from {}",
            sim.address
        );
        let running = Running::start(&mut folder.crawl_command(&sim.address, &words));
        let crawl = Self {
            folder,
            sim,
            running,
        };
        crawl.wait_for_more("timeline");
        crawl
    }

    fn tell(&self, words: &str) -> Output {
        self.folder.say(words)
    }

    fn calls(&self, query: &str) -> u64 {
        let parts: &[&str] = match query {
            "timeline" => &["/accounts/", "/statuses?"],
            "following" => &["/following"],
            _ => &["/api"],
        };
        let targets = self.sim.targets_after(0);
        let is_meant = |target: &&String| parts.iter().all(|part| target.contains(part));
        targets.iter().filter(is_meant).count() as u64
    }

    /// Waits until more calls of a query are made.
    fn wait_for_more(&self, query: &str) {
        let before = self.calls(query);
        let started = Instant::now();
        while self.calls(query) < before + 3 {
            assert!(started.elapsed() < PATIENCE, "no more calls of {query}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until what was in flight is over, then sees that nothing more comes.
    fn is_silent(&self, query: &str) {
        let started = Instant::now();
        loop {
            let before = self.calls(query);
            std::thread::sleep(Duration::from_millis(400));
            if self.calls(query) == before {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "{query} goes on");
        }
    }
}

#[test]
fn robots_are_paused_resumed_and_stopped_one_by_one() {
    let mut crawl = Crawl::endless();
    let told = crawl.tell("pause t.db --robot statuses");
    assert_eq!(told.status.code(), Some(0), "{}", text(&told.stderr));
    assert!(text(&told.stderr).contains("statuses is paused"));
    crawl.is_silent("timeline");
    let paused = crawl.calls("timeline");
    crawl.wait_for_more("following");
    assert_eq!(crawl.calls("timeline"), paused, "a paused robot called");
    let status = crawl.tell("status t.db --json");
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).expect("JSON");
    assert_eq!(status["paused"], serde_json::json!(["statuses"]));
    assert_eq!(status["crawling"], true);
    crawl.tell("resume t.db --robot statuses");
    crawl.wait_for_more("timeline");
    crawl.tell("pause t.db");
    crawl.is_silent("any");
    let told = crawl.tell("resume t.db --robot statuses");
    assert!(text(&told.stderr).contains("statuses goes on"));
    crawl.wait_for_more("timeline");
    crawl.is_silent("following");
    crawl.tell("resume t.db");
    crawl.wait_for_more("following");
    let told = crawl.tell("stop t.db --robot statuses");
    assert_eq!(told.status.code(), Some(0), "{}", text(&told.stderr));
    crawl.is_silent("timeline");
    crawl.wait_for_more("following");
    let told = crawl.tell("stop t.db");
    assert_eq!(told.status.code(), Some(0), "{}", text(&told.stderr));
    assert_eq!(crawl.running.wait(), Some(0));
    let ends = rows(
        &open(&crawl.folder.path("t.db")),
        "SELECT end_reason FROM runs",
    );
    assert_eq!(ends.into_iter().flatten().collect::<Vec<_>>(), ["stopped"]);
}

#[test]
fn a_pause_lasts_over_a_restart_and_a_stop_does_not() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 30 --seed 3 --speed 0 --limits off");
    let seed = sim.first_handle();
    let words = format!("{seed} --limits off --include-opted-out test --robots profiles,statuses");
    let first = folder.crawl(&sim.address, &format!("{words} --max-calls 1"));
    assert_eq!(first.status.code(), Some(3), "{}", text(&first.stderr));
    let told = folder.run(&["pause", "t.db", "--robot", "statuses"]);
    assert!(
        text(&told.stderr).contains("the next run begins"),
        "{}",
        text(&told.stderr)
    );
    let told = folder.run(&["stop", "t.db"]);
    assert!(
        text(&told.stderr).contains("nothing to stop"),
        "{}",
        text(&told.stderr)
    );
    let wrong = folder.run(&["pause", "t.db", "--robot", "flying"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        text(&wrong.stderr).contains("profiles, statuses"),
        "{}",
        text(&wrong.stderr)
    );
    // Paused, it would wait for ever; resumed from outside, it comes to its end.
    let mut second =
        Running::start(&mut folder.crawl_command(&sim.address, &format!("{words} --until-idle")));
    let started = Instant::now();
    while rows(&open(&folder.path("t.db")), "SELECT id FROM runs").len() < 2 {
        assert!(
            started.elapsed() < PATIENCE,
            "the second run does not begin"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(!second.has_ended(), "a paused crawl ended");
    let timelines = |sim: &Sim| {
        sim.targets_after(0)
            .iter()
            .filter(|target| target.contains("/statuses?"))
            .count()
    };
    assert_eq!(timelines(&sim), 0);
    folder.run(&["resume", "t.db"]);
    assert_eq!(second.wait(), Some(0));
    assert!(timelines(&sim) > 0);
}
