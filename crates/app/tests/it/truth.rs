//! A crawl stores exactly the ground truth.

use crate::support::{Folder, Sim, open, rows, text};
use rusqlite::Connection;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

/// What a crawl of the given depth has to hold.
pub(crate) struct Expected {
    pub(crate) users: BTreeSet<Vec<String>>,
    pub(crate) relations: BTreeSet<Vec<String>>,
    pub(crate) statuses: BTreeSet<Vec<String>>,
    visited: BTreeSet<String>,
}

/// The ground truth of a frozen world.
pub(crate) struct Truth {
    users: BTreeMap<String, Value>,
    relations: Vec<(String, String)>,
    statuses: BTreeMap<String, Value>,
}

fn field(row: &Value, name: &str) -> String {
    match &row[name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(flag) => u8::from(*flag).to_string(),
        other => other.to_string(),
    }
}

impl Truth {
    pub(crate) fn read(sim: &Sim) -> Self {
        let by_id = |rows: Vec<Value>| {
            rows.into_iter()
                .map(|row| (field(&row, "id"), row))
                .collect()
        };
        let relations = sim.truth("user_relations");
        Self {
            users: by_id(sim.truth("users")),
            relations: relations
                .iter()
                .map(|row| (field(row, "source"), field(row, "target")))
                .collect(),
            statuses: by_id(sim.truth("statuses")),
        }
    }

    /// A user with relations in both directions, to begin with.
    pub(crate) fn seed(&self) -> String {
        let mut degrees: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for (source, target) in &self.relations {
            degrees.entry(source).or_default().0 += 1;
            degrees.entry(target).or_default().1 += 1;
        }
        let (id, _) = degrees
            .iter()
            .filter(|(id, _)| field(&self.users[**id], "suspended") != "1")
            .max_by_key(|(_, (following, followers))| following.min(followers))
            .expect("a world with relations");
        field(&self.users[*id], "acct")
    }

    pub(crate) fn local_id(&self, acct: &str) -> String {
        let user = self.users.values().find(|user| field(user, "acct") == acct);
        field(user.expect("a user of that name"), "local_id")
    }

    fn depths(&self, seed: &str) -> BTreeMap<String, u32> {
        let mut neighbours: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (source, target) in &self.relations {
            neighbours.entry(source).or_default().push(target);
            neighbours.entry(target).or_default().push(source);
        }
        let (seed, _) = self
            .users
            .iter()
            .find(|(_, user)| field(user, "acct") == seed)
            .expect("the seed is a user");
        let mut depths = BTreeMap::from([(seed.clone(), 0)]);
        let mut queue = VecDeque::from([seed.as_str()]);
        while let Some(id) = queue.pop_front() {
            let depth = depths[id];
            for next in neighbours.get(id).into_iter().flatten() {
                if !depths.contains_key(*next) {
                    depths.insert((*next).to_owned(), depth + 1);
                    queue.push_back(next);
                }
            }
        }
        depths
    }

    pub(crate) fn expected(&self, seed: &str, depth: u32) -> Expected {
        let depths = self.depths(seed);
        let within = |bound: u32| -> BTreeSet<String> {
            depths
                .iter()
                .filter(|(_, at)| **at <= bound)
                .map(|(id, _)| id.clone())
                .collect()
        };
        let visited = within(depth);
        let mut users = within(depth + 1);
        let mut statuses = BTreeSet::new();
        for (id, status) in &self.statuses {
            if !visited.contains(&field(status, "author")) {
                continue;
            }
            statuses.insert(id.clone());
            // A repost shows the post it repeats, and that post its author.
            let original = field(status, "repost_of");
            if !original.is_empty() {
                users.insert(field(&self.statuses[&original], "author"));
                statuses.insert(original);
            }
        }
        Expected {
            users: users.iter().map(|id| self.user_row(id)).collect(),
            relations: self
                .relations
                .iter()
                .filter(|(source, target)| visited.contains(source) || visited.contains(target))
                .map(|(source, target)| vec![source.clone(), target.clone()])
                .collect(),
            statuses: statuses.iter().map(|id| self.status_row(id)).collect(),
            visited,
        }
    }

    fn user_row(&self, id: &str) -> Vec<String> {
        let user = &self.users[id];
        let names = [
            "id",
            "display_name",
            "url",
            "bot",
            "locked",
            "created_us",
            "followers",
            "following",
            "statuses",
        ];
        names.iter().map(|name| field(user, name)).collect()
    }

    fn status_row(&self, id: &str) -> Vec<String> {
        let status = &self.statuses[id];
        let names = [
            "id",
            "author",
            "created_us",
            "edited_us",
            "content",
            "language",
            "visibility",
            "sensitive",
            "spoiler_text",
            "reply_to",
            "repost_of",
            "replies",
            "reposts",
            "likes",
        ];
        names.iter().map(|name| field(status, name)).collect()
    }
}

/// What a crawl file holds, in the form of the ground truth.
pub(crate) struct Held {
    pub(crate) users: BTreeSet<Vec<String>>,
    pub(crate) relations: BTreeSet<Vec<String>>,
    pub(crate) statuses: BTreeSet<Vec<String>>,
}

impl Held {
    pub(crate) fn read(path: &Path) -> Self {
        let connection = open(path);
        // Canonical ids where they are known; a post that is only named by an answer to it is
        // known by its local id alone, which the ground truth knows as well.
        connection
            .execute_batch(
                "CREATE TEMP TABLE names AS SELECT key, id FROM main.ids WHERE canonical;
                 CREATE INDEX temp.by_key ON names(key);",
            )
            .expect("names");
        Self {
            users: rows(
                &connection,
                "SELECT n.id, display_name, url, is_bot, is_protected, created_us, followers_count,
                        following_count, statuses_count
                 FROM users u JOIN names n ON n.key = u.key",
            ),
            relations: rows(
                &connection,
                "SELECT s.id, t.id FROM user_relations r
                 JOIN names s ON s.key = r.source JOIN names t ON t.key = r.target",
            ),
            statuses: rows(
                &connection,
                "SELECT n.id, a.id, created_us, edited_us, html, language, visibility, is_sensitive,
                        content_warning, p.id, o.id, replies_count, reposts_count, likes_count
                 FROM statuses x JOIN names n ON n.key = x.key
                 LEFT JOIN names a ON a.key = x.author LEFT JOIN names p ON p.key = x.reply_to
                 LEFT JOIN names o ON o.key = x.repost_of",
            ),
        }
    }
}

fn difference(
    what: &str,
    expected: &BTreeSet<Vec<String>>,
    held: &BTreeSet<Vec<String>>,
) -> Vec<String> {
    let missing = expected
        .difference(held)
        .take(3)
        .map(|row| format!("{what} missing: {row:?}"));
    let invented = held
        .difference(expected)
        .take(3)
        .map(|row| format!("{what} invented: {row:?}"));
    missing.chain(invented).collect()
}

/// Compares a crawl file with the ground truth, row by row.
pub(crate) fn compare(path: &Path, truth: &Truth, seed: &str, depth: u32) {
    let mut expected = truth.expected(seed, depth);
    let mut held = Held::read(path);
    // The parent of a reply is stored as a reference; it has a canonical id here only if the
    // parent itself was seen. Where it was not, the local id stands for it.
    let known: BTreeSet<String> = held.statuses.iter().map(|row| row[0].clone()).collect();
    expected.statuses = std::mem::take(&mut expected.statuses)
        .into_iter()
        .map(|mut row| {
            if !known.contains(&row[9]) {
                row[9] = String::new();
            }
            row
        })
        .collect();
    held.statuses = std::mem::take(&mut held.statuses);
    let differences: Vec<String> = [
        difference("user", &expected.users, &held.users),
        difference("relation", &expected.relations, &held.relations),
        difference("status", &expected.statuses, &held.statuses),
    ]
    .concat();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    // Nothing is stored that has no canonical id, and so would not have been compared.
    for (table, compared) in [
        ("users", held.users.len()),
        ("user_relations", held.relations.len()),
        ("statuses", held.statuses.len()),
    ] {
        let counted = rows(&open(path), &format!("SELECT count(*) FROM {table}"));
        assert_eq!(
            counted.into_iter().flatten().collect::<Vec<_>>(),
            [compared.to_string()],
            "{table}"
        );
    }
    assert!(
        !expected.users.is_empty()
            && !expected.relations.is_empty()
            && !expected.statuses.is_empty()
    );
    check_outcomes(&open(path), &expected);
    println!(
        "equal to the truth: {} users, {} relations, {} statuses; {} visited",
        expected.users.len(),
        expected.relations.len(),
        expected.statuses.len(),
        expected.visited.len(),
    );
}

/// Every id asked for has an outcome, and nothing else was visited.
fn check_outcomes(connection: &Connection, expected: &Expected) {
    let visited = rows(
        connection,
        "SELECT i.id FROM subjects s JOIN ids i ON i.key = s.key AND i.canonical
         WHERE EXISTS (SELECT 1 FROM frontier f WHERE f.subject = s.key AND f.visits > 0)",
    );
    let wanted: BTreeSet<Vec<String>> =
        expected.visited.iter().map(|id| vec![id.clone()]).collect();
    assert!(
        visited == wanted,
        "{:?}",
        difference("visited", &wanted, &visited)
    );
    let without = rows(
        connection,
        "SELECT f.subject, f.robot FROM frontier f WHERE f.visits > 0
         AND NOT EXISTS (SELECT 1 FROM outcomes o WHERE o.key = f.subject)",
    );
    assert!(without.is_empty(), "no outcome for {without:?}");
}

fn crawls_exactly_the_truth(users: &str, depth: u32, concurrency: &str) {
    let folder = Folder::new();
    let sim = Sim::start(
        &folder,
        &[
            "--users", users, "--seed", "5", "--speed", "0", "--limits", "off",
        ],
    );
    let truth = Truth::read(&sim);
    let seed = truth.seed();
    let file = folder.path("t.db");
    let words = format!(
        "{seed} --depth {depth} --until-idle --limits off --concurrency {concurrency} --json"
    );
    let output = folder.crawl(&sim.address, &words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("a JSON summary");
    assert_eq!(summary["end"]["reason"], "idle");
    assert_eq!(summary["violations"], 0);
    println!(
        "calls: {}, seconds: {}",
        summary["calls"], summary["seconds"]
    );
    compare(&file, &truth, &seed, depth);
}

#[test]
fn a_crawl_with_one_fetch_at_once_stores_exactly_the_truth() {
    crawls_exactly_the_truth("2000", 2, "1");
}

#[test]
fn a_crawl_with_sixteen_fetches_at_once_stores_exactly_the_truth() {
    crawls_exactly_the_truth("2000", 2, "16");
}

#[test]
fn a_crawl_of_depth_one_leaves_those_beyond_unvisited() {
    crawls_exactly_the_truth("3000", 1, "8");
}
