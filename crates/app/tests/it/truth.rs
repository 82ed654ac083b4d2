//! A crawl stores exactly the ground truth.

use crate::oracle::{ALL_ROBOTS, CORE_ROBOTS, Expected, Plan, Rows, Truth};
use crate::support::{Folder, Place, Sim, Tables, rows, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// With a token, conversations are shown whole.
pub(crate) const TOKEN: &str = "ada:planted-secret-0123456789";

/// The tables that are compared, and how a crawl file shows them. Columns that begin with `@` are
/// keys, and become names.
pub(crate) const TABLES: [(&str, &str); 7] = [
    (
        "users",
        "SELECT key AS \"@\", display_name, url, is_bot, is_protected, created_us, followers_count,
                following_count, statuses_count FROM users",
    ),
    (
        "user_relations",
        "SELECT source AS \"@\", target AS \"@\" FROM user_relations",
    ),
    (
        "statuses",
        "SELECT key AS \"@\", author AS \"@\", created_us, edited_us, html, language, visibility,
                is_sensitive, content_warning, reply_to AS \"@\", repost_of AS \"@\", replies_count,
                reposts_count, likes_count FROM statuses",
    ),
    (
        "comments",
        "SELECT key AS \"@\", status AS \"@\", parent AS \"@\", root AS \"@\", author AS \"@\" FROM comments",
    ),
    ("tags", "SELECT key AS \"@\" FROM tags"),
    (
        "user_tags",
        "SELECT t.user AS \"@\", tag AS \"@\" FROM user_tags AS t",
    ),
    (
        "links",
        "SELECT kind, from_key AS \"@\", to_key AS \"@\" FROM links",
    ),
];

impl Expected {
    pub(crate) fn table(&self, name: &str) -> &Rows {
        match name {
            "users" => &self.users,
            "user_relations" => &self.relations,
            "statuses" => &self.statuses,
            "comments" => &self.comments,
            "tags" => &self.tags,
            "user_tags" => &self.user_tags,
            _ => &self.links,
        }
    }
}

/// The names of all keys: canonical ids, or what the ground truth knows the local id to be.
pub(crate) fn names(tables: &dyn Tables, truth: &Truth) -> BTreeMap<String, String> {
    let local = truth.names_of_local_ids();
    let mut names = BTreeMap::new();
    let sql = "SELECT key, canonical, type, alias, id FROM ids ORDER BY canonical";
    for row in rows(tables, sql) {
        let [key, canonical, kind, alias, id] = row.try_into().expect("five columns");
        if canonical == "1" {
            names.insert(key, id);
        } else if alias == "id"
            && let Some(name) = local.get(&(kind, id))
        {
            names.entry(key).or_insert_with(|| name.clone());
        }
    }
    names
}

/// What a crawl file holds of a table, in the form of the ground truth.
pub(crate) fn held_rows(tables: &dyn Tables, names: &BTreeMap<String, String>, sql: &str) -> Rows {
    let (columns, found) = tables.select(sql);
    let is_key: Vec<bool> = columns.iter().map(|name| name.starts_with('@')).collect();
    let name = |(cell, is_key): (String, &bool)| {
        if *is_key && !cell.is_empty() {
            let unknown = || format!("unknown key {cell}");
            names.get(&cell).cloned().unwrap_or_else(unknown)
        } else {
            cell
        }
    };
    let renamed: Vec<Vec<String>> = found
        .into_iter()
        .map(|row| row.into_iter().zip(&is_key).map(name).collect())
        .collect();
    let count = renamed.len();
    let set: Rows = renamed.into_iter().collect();
    assert_eq!(set.len(), count, "two rows of one thing in {sql}");
    set
}

pub(crate) fn difference(what: &str, expected: &Rows, held: &Rows) -> Vec<String> {
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

/// Compares a crawl with the ground truth, row by row.
pub(crate) fn compare(place: &dyn Place, truth: &Truth, plan: Plan<'_>) {
    let expected = truth.expected(plan);
    let tables = place.tables().expect("a crawl");
    let names = names(&*tables, truth);
    let mut differences = Vec::new();
    let mut counts = Vec::new();
    for (table, sql) in TABLES {
        let held = held_rows(&*tables, &names, sql);
        let wanted = expected.table(table);
        differences.extend(difference(table, wanted, &held));
        counts.push(format!("{} {table}", held.len()));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(!expected.users.is_empty() && !expected.relations.is_empty());
    assert!(!expected.statuses.is_empty() && !expected.links.is_empty());
    check_visits(&*tables, &names, &expected);
    println!(
        "equal to the truth: {}; {} users within reach, {} of them opted out",
        counts.join(", "),
        expected.reached.len(),
        expected.opted_out.len(),
    );
}

/// Everybody within reach was visited and nobody else, and every visit has an outcome.
fn check_visits(tables: &dyn Tables, names: &BTreeMap<String, String>, expected: &Expected) {
    let set = |ids: &BTreeSet<String>| -> Rows { ids.iter().map(|id| vec![id.clone()]).collect() };
    let profiles = "SELECT subject AS \"@\" FROM frontier WHERE robot = 'profiles' AND visits > 0";
    let visited = held_rows(tables, names, profiles);
    let wanted = set(&expected.reached);
    assert!(
        visited == wanted,
        "{:?}",
        difference("visited", &wanted, &visited)
    );
    let opted_out = "SELECT DISTINCT o.key AS \"@\" FROM outcomes o JOIN users u ON u.key = o.key
                     WHERE outcome = 'opted out'";
    let refused = held_rows(tables, names, opted_out);
    let wanted = set(&expected.opted_out);
    assert!(
        refused == wanted,
        "{:?}",
        difference("opted out", &wanted, &refused)
    );
    for (robot, posts) in &expected.asked {
        let sql = format!(
            "SELECT subject AS \"@\" FROM frontier f WHERE robot = '{robot}' AND visits > 0
             AND NOT EXISTS (SELECT 1 FROM outcomes o WHERE o.key = f.subject
                             AND o.query = f.robot AND outcome = 'opted out')"
        );
        let asked = held_rows(tables, names, &sql);
        let wanted = set(posts);
        assert!(asked == wanted, "{:?}", difference(robot, &wanted, &asked));
    }
    let unfinished = rows(
        tables,
        "SELECT subject, robot FROM frontier WHERE visits = 0 AND robot <> 'updates'",
    );
    assert!(unfinished.is_empty(), "not visited: {unfinished:?}");
    let without = rows(
        tables,
        "SELECT f.subject, f.robot FROM frontier f WHERE f.visits > 0
         AND NOT EXISTS (SELECT 1 FROM outcomes o WHERE o.key = f.subject)",
    );
    assert!(without.is_empty(), "no outcome for {without:?}");
}

/// A crawl of a whole frozen world.
pub(crate) struct Whole {
    pub users: &'static str,
    pub depth: u32,
    pub robots: &'static str,
    pub concurrency: &'static str,
    pub include_opted_out: bool,
}

impl Whole {
    /// Crawls the world to its end, and compares.
    pub(crate) fn check(&self, folder: &Folder, place: &dyn Place) {
        let words = format!("--users {} --seed 5 --speed 0 --limits off", self.users);
        let sim = Sim::start(folder, &words);
        let truth = Truth::read(&sim);
        let plan = Plan {
            seed: &truth.seed(),
            depth: self.depth,
            robots: self.robots,
            include_opted_out: self.include_opted_out,
        };
        let words = format!(
            "{} --until-idle --limits off --concurrency {} --json",
            plan.words(),
            self.concurrency
        );
        let mut crawl = folder.crawl_into(&place.name(), &sim.address, &words);
        crawl.env("KITTIWAKE_MASTODON_TOKEN", TOKEN);
        let output = crawl.output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let summary: Value = serde_json::from_slice(&output.stdout).expect("a JSON summary");
        assert_eq!(summary["end"]["reason"], "idle");
        assert_eq!(summary["violations"], 0);
        println!(
            "calls: {}, seconds: {}",
            summary["calls"], summary["seconds"]
        );
        compare(place, &truth, plan);
    }
}

fn crawls_exactly_the_truth(
    users: &'static str,
    depth: u32,
    robots: &'static str,
    concurrency: &'static str,
    include_opted_out: bool,
) {
    let folder = Folder::new();
    let whole = Whole {
        users,
        depth,
        robots,
        concurrency,
        include_opted_out,
    };
    whole.check(&folder, &folder.path("t.db"));
}

#[test]
fn a_crawl_with_one_fetch_at_once_stores_exactly_the_truth() {
    crawls_exactly_the_truth("200", 2, ALL_ROBOTS, "1", true);
}

#[test]
fn a_crawl_with_sixteen_fetches_at_once_stores_exactly_the_truth() {
    crawls_exactly_the_truth("200", 2, ALL_ROBOTS, "16", true);
}

#[test]
fn those_who_opted_out_are_left_alone() {
    crawls_exactly_the_truth("200", 2, ALL_ROBOTS, "8", false);
}

#[test]
fn a_crawl_of_depth_one_leaves_those_beyond_unvisited() {
    crawls_exactly_the_truth("1000", 1, ALL_ROBOTS, "8", true);
}

#[test]
fn a_crawl_of_relations_profiles_and_posts_stores_exactly_the_truth() {
    crawls_exactly_the_truth("2000", 2, CORE_ROBOTS, "16", true);
}
