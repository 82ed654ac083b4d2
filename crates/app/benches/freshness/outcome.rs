//! What a crawl found, and when, against what was written.

use crate::Bench;
use crate::network::{DAY_US, HISTORY_DAYS, Network, User};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Posts that nobody has found count once they are older: the rule of a replay.
const UNFOUND_US: i64 = 2 * DAY_US;
/// How often it is looked up who is banned.
const BANS_EVERY: Duration = Duration::from_secs(2);

/// One post.
struct Post {
    author: String,
    /// Days after the crawl's beginning.
    day: f64,
    delay_hours: f64,
}

/// A crawl that is over.
pub(crate) struct Outcome {
    pub(crate) calls: u64,
    /// Calls for timelines in an hour, after the warm-up.
    calls_per_hour: f64,
    pub(crate) users: BTreeMap<String, User>,
    posts: Vec<Post>,
    /// Who was visited, and how many days after the beginning.
    pub(crate) visits: Vec<(String, f64)>,
    trace: String,
}

/// What a replay says.
pub(crate) struct Predicted {
    pub(crate) mean_hours: f64,
    pub(crate) within_hour: f64,
}

/// Delays in hours.
pub(crate) struct Delays(Vec<f64>);

impl Delays {
    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len().max(1) as f64
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn within(&self, hours: f64) -> f64 {
        let soon = self.0.iter().filter(|delay| **delay <= hours).count();
        soon as f64 / self.0.len().max(1) as f64
    }
}

#[derive(Debug, Deserialize)]
struct Report {
    mean_delay_s: f64,
    within_1h: f64,
}

impl Outcome {
    /// Crawls the timelines of everybody who writes anything.
    pub(crate) fn crawl(bench: &Bench, network: &Network, folder: &Path, policy: &str) -> Self {
        Self::crawl_by(bench, network, folder, ("statuses", policy))
    }

    /// The same by several robots, each as it is told.
    pub(crate) fn crawl_by(
        bench: &Bench,
        network: &Network,
        folder: &Path,
        (robots, policy): (&str, &str),
    ) -> Self {
        let trace = network.trace(bench.days + 1.0);
        let users = network.users();
        let writers: std::collections::BTreeSet<&str> =
            lines(&trace).map(|(user, _)| user).collect();
        let writers = writers.iter().filter_map(|id| users.get(*id));
        let seeds: Vec<&str> = writers.map(|user| &*user.acct).collect();
        std::fs::write(folder.join("seeds.txt"), seeds.join("\n")).unwrap();
        let seconds = bench.days * 86_400.0 / bench.speed;
        let told = folder.join("told.txt");
        let mut child = Command::new(&bench.binary)
            .current_dir(folder)
            .env_clear()
            .env("HOME", folder)
            .env("XDG_STATE_HOME", folder.join("state"))
            .env("XDG_CONFIG_HOME", folder.join("config"))
            .args([
                "crawl",
                "fresh.toml",
                "-",
                "--quiet",
                "--depth",
                "0",
                "--robots",
                robots,
            ])
            .args(["--host", &network.address, "--clock-from", &network.address])
            .args(["--policy", policy, "--reserve", "0", "--history", "40"])
            .args(["--include-opted-out", "a benchmark", "--concurrency", "8"])
            .args(["--max-time", &format!("{seconds:.0}s"), "--into", "t.db"])
            .stdin(File::open(folder.join("seeds.txt")).unwrap())
            .stdout(Stdio::null())
            .stderr(File::create(&told).unwrap())
            .spawn()
            .unwrap();
        // What is written during a ban is shown when it is over: that is no delay of the crawl's.
        let mut banned: HashSet<String> = HashSet::new();
        let status = loop {
            let users = network.users().into_values();
            banned.extend(users.filter(User::is_away).map(|user| user.id));
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            std::thread::sleep(BANS_EVERY);
        };
        let told = std::fs::read_to_string(told).unwrap_or_default();
        assert_eq!(
            status.code(),
            Some(3),
            "the time that was given ends it: {told}"
        );
        Self::read(bench, folder, (users, &banned), &trace)
    }

    fn read(
        bench: &Bench,
        folder: &Path,
        (users, banned): (BTreeMap<String, User>, &HashSet<String>),
        trace: &str,
    ) -> Self {
        let file = rusqlite::Connection::open(folder.join("t.db")).unwrap();
        let number = |sql: &str| -> i64 { file.query_row(sql, [], |row| row.get(0)).unwrap() };
        let from_us = number("SELECT min(at_us) FROM query_log");
        let until_us = number("SELECT max(at_us) FROM query_log");
        let warm_us = from_us + (bench.warm_up_days * DAY_US as f64) as i64;
        let timelines = number(&format!(
            "SELECT count(*) FROM query_log WHERE query = 'timeline' AND at_us >= {warm_us}"
        ));
        let calls = number("SELECT count(*) FROM query_log");
        let mut keys: HashMap<String, i64> = HashMap::new();
        let mut names: HashMap<i64, String> = HashMap::new();
        each(
            &file,
            "SELECT key, id FROM ids WHERE canonical = 1 AND type = 'user'",
            |row| {
                let (key, id): (i64, String) = (row.get(0).unwrap(), row.get(1).unwrap());
                keys.insert(id.clone(), key);
                names.insert(key, id);
            },
        );
        let mut found: HashMap<(i64, i64), i64> = HashMap::new();
        let sql = "SELECT s.author, s.created_us, min(i.first_seen_us) FROM statuses s
                   JOIN ids i ON i.key = s.key GROUP BY s.key";
        each(&file, sql, |row| {
            let post = (row.get(0).unwrap_or(0), row.get(1).unwrap_or(0));
            found.insert(post, row.get(2).unwrap());
        });
        let mut visited: HashMap<i64, i64> = HashMap::new();
        each(
            &file,
            "SELECT subject, visited_us FROM frontier WHERE visits > 0 AND robot = 'statuses'",
            |row| {
                visited.insert(row.get(0).unwrap(), row.get(1).unwrap());
            },
        );
        let days = |us: i64| (us - from_us) as f64 / DAY_US as f64;
        let mut visits = Vec::new();
        let sql = "SELECT subjects, at_us FROM query_log WHERE query = 'timeline'";
        each(&file, sql, |row| {
            let subjects: String = row.get(0).unwrap();
            let key: i64 = subjects.trim_matches(['[', ']']).parse().unwrap();
            if let Some(name) = names.get(&key) {
                visits.push((name.clone(), days(row.get(1).unwrap())));
            }
        });
        let mut posts = Vec::new();
        for (user, created_us) in lines(trace) {
            let Some(key) = keys.get(user) else {
                continue;
            };
            if created_us < from_us || created_us > until_us || banned.contains(user) {
                continue;
            }
            let found_us = found.get(&(*key, created_us)).copied();
            // Whoever was visited since and did not show it had deleted it.
            let is_gone = visited
                .get(key)
                .is_some_and(|visited| *visited > created_us);
            let end_us = match found_us {
                Some(found_us) => found_us,
                None if is_gone || until_us - created_us < UNFOUND_US => continue,
                None => until_us,
            };
            posts.push(Post {
                author: user.to_owned(),
                day: days(created_us),
                delay_hours: (end_us - created_us) as f64 / 3.6e9,
            });
        }
        Self {
            calls: calls as u64,
            calls_per_hour: timelines as f64 / ((until_us - warm_us) as f64 / 3.6e9),
            users,
            posts,
            visits,
            trace: cut(trace, until_us, banned),
        }
    }

    /// Delays of posts that some wrote on some days.
    pub(crate) fn delays_hours(
        &self,
        is_meant: impl Fn(&User) -> bool,
        days: Range<f64>,
    ) -> Delays {
        let posts = self.posts.iter().filter(|post| {
            let user = self.users.get(&post.author);
            days.contains(&post.day) && user.is_some_and(&is_meant)
        });
        Delays(posts.map(|post| post.delay_hours).collect())
    }

    /// What `simulate` says of the same world, the same calls and the same rule of losses: none is lost.
    pub(crate) fn predicted(&self, bench: &Bench, folder: &Path, policy: &str) -> Predicted {
        std::fs::write(folder.join("trace.csv"), &self.trace).unwrap();
        let warm_up = format!("{:.0}d", HISTORY_DAYS as f64 + bench.warm_up_days);
        let output = Command::new(&bench.binary)
            .current_dir(folder)
            .env_clear()
            .args([
                "simulate",
                "trace.csv",
                "--policy",
                policy,
                "--page",
                "100000",
                "--json",
                "-q",
            ])
            .args(["--calls-per-hour", &self.calls_per_hour.to_string()])
            .args(["--warm-up", &warm_up])
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        let report: Report = serde_json::from_str(told.lines().next().unwrap()).unwrap();
        Predicted {
            mean_hours: report.mean_delay_s / 3_600.0,
            within_hour: report.within_1h,
        }
    }
}

fn each(file: &rusqlite::Connection, sql: &str, mut take: impl FnMut(&rusqlite::Row<'_>)) {
    let mut statement = file.prepare(sql).unwrap();
    let mut rows = statement.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        take(row);
    }
}

/// The lines of a trace: who, and when in microseconds.
fn lines(trace: &str) -> impl Iterator<Item = (&str, i64)> {
    trace.lines().skip(1).map(|line| {
        let (user, seconds) = line.rsplit_once(',').unwrap();
        let seconds: f64 = seconds.parse().unwrap();
        (user, (seconds * 1e6).round() as i64)
    })
}

/// A trace up to a time, without some.
fn cut(trace: &str, until_us: i64, without: &HashSet<String>) -> String {
    let mut text = String::from("user,unix_seconds\n");
    for (line, (user, at_us)) in trace.lines().skip(1).zip(lines(trace)) {
        if at_us <= until_us && !without.contains(user) {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}
