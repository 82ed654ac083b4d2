//! A world that changes between two rounds: who vanished, came back, was renamed, what was deleted
//! and edited, is seen for what it is.

use crate::oracle::{ALL_ROBOTS, Expected, Plan, Truth, field};
use crate::support::{Folder, Sim, open, rows, text};
use crate::truth::{TOKEN, difference, held_rows, names};
use rusqlite::Connection;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Long enough for every kind of change in a small world.
const DAYS: u32 = 30;

struct TwoRounds {
    folder: Folder,
    before: Truth,
    after: Truth,
    seed: String,
}

impl TwoRounds {
    /// Crawls everything, lets the world go on, and crawls everything once more.
    fn run() -> Self {
        let folder = Folder::new();
        let arguments = "--users 150 --seed 11 --speed 0 --limits off";
        let sim = Sim::start(&folder, arguments);
        let before = Truth::read(&sim);
        let seed = before.seed();
        let crawl = |ending: &str| {
            let words = format!(
                "{} --limits off --concurrency 8 {ending}",
                plan(&seed).words()
            );
            let output = folder.crawl_with_token(&sim.address, &words, TOKEN);
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        };
        crawl("--until-idle");
        sim.get(&format!("/_sim/advance?seconds={}", DAYS * 86_400));
        let after = Truth::read(&sim);
        crawl("--again");
        Self {
            folder,
            before,
            after,
            seed,
        }
    }

    fn file(&self) -> Connection {
        open(&self.folder.path("t.db"))
    }

    /// Names of keys, from what is true in either round.
    fn names(&self) -> BTreeMap<String, String> {
        let mut names = names(&self.file(), &self.after);
        for (key, name) in crate::truth::names(&self.file(), &self.before) {
            names.entry(key).or_insert(name);
        }
        names
    }

    fn expected(&self, truth: &Truth) -> Expected {
        truth.expected(plan(&self.seed))
    }

    /// Canonical ids that a query finds.
    fn ids(&self, sql: &str) -> BTreeSet<String> {
        let connection = self.file();
        let found = held_rows(&connection, &self.names(), sql);
        found.into_iter().flatten().collect()
    }
}

fn plan(seed: &str) -> Plan<'_> {
    Plan {
        seed,
        depth: 3,
        robots: ALL_ROBOTS,
        include_opted_out: true,
    }
}

fn is_there(truth: &Truth, user: &str) -> bool {
    let row = truth.users.get(user);
    row.is_some_and(|row| field(row, "suspended") != "1" && field(row, "gone") != "1")
}

fn shows_lists(truth: &Truth, user: &str) -> bool {
    is_there(truth, user) && truth.users[user]["hide_collections"] != true
}

fn missing<T: Ord + Clone + std::fmt::Debug>(wanted: &BTreeSet<T>, found: &BTreeSet<T>) -> Vec<T> {
    wanted.difference(found).take(3).cloned().collect()
}

#[test]
fn a_second_round_sees_every_change_for_what_it_is() {
    let rounds = TwoRounds::run();
    what_is_true_now_is_held(&rounds);
    relations_that_vanished_are_moved(&rounds);
    users_who_are_gone_or_back_have_their_spells(&rounds);
    posts_that_were_deleted_are_marked(&rounds);
    posts_that_were_edited_keep_their_versions(&rounds);
    accounts_that_were_renamed_keep_their_identity(&rounds);
}

/// Posts that were hidden in the first round and older than it, by those who were banned then or of
/// their posts: a timeline that is walked on from its mark does not show them.
fn returned_from_the_past(rounds: &TwoRounds) -> BTreeSet<&str> {
    let created = |row: &Value| row["created_us"].as_i64().unwrap_or(i64::MAX);
    let newest = rounds.before.statuses.values().map(created).max();
    let statuses = rounds.after.statuses.iter();
    statuses
        .filter(|(id, row)| {
            !rounds.before.statuses.contains_key(*id) && Some(created(row)) < newest
        })
        .map(|(id, _)| id.as_str())
        .collect()
}

fn what_is_true_now_is_held(rounds: &TwoRounds) {
    let expected = rounds.expected(&rounds.after);
    let hidden = returned_from_the_past(rounds);
    let connection = rounds.file();
    let names = rounds.names();
    for (table, sql) in crate::truth::TABLES {
        let held = held_rows(&connection, &names, sql);
        let is_shown = |row: &&Vec<String>| !row.iter().any(|cell| hidden.contains(&**cell));
        let lacking: Vec<_> = expected
            .table(table)
            .difference(&held)
            .filter(is_shown)
            .take(3)
            .collect();
        assert!(lacking.is_empty(), "{table}: {lacking:?}");
    }
}

fn relations_that_vanished_are_moved(rounds: &TwoRounds) {
    let (before, after) = (
        rounds.expected(&rounds.before),
        rounds.expected(&rounds.after),
    );
    let now = &rounds.after;
    let vanished: BTreeSet<Vec<String>> = before
        .relations
        .difference(&after.relations)
        .filter(|pair| is_there(now, &pair[0]) && is_there(now, &pair[1]))
        // Whoever hides a list does not say that a relation has ended.
        .filter(|pair| shows_lists(now, &pair[0]) || shows_lists(now, &pair[1]))
        .cloned()
        .collect();
    assert!(!vanished.is_empty(), "nobody stopped following anybody");
    let connection = rounds.file();
    let sql = |table: &str| format!("SELECT source AS '@', target AS '@' FROM {table}");
    let moved = held_rows(&connection, &rounds.names(), &sql("invalid_relations"));
    assert!(
        vanished == moved,
        "{:?}",
        difference("vanished", &vanished, &moved)
    );
    let kept = held_rows(&connection, &rounds.names(), &sql("user_relations"));
    let of_the_gone: BTreeSet<_> = kept.difference(&after.relations).collect();
    assert!(!of_the_gone.is_empty(), "nobody who is gone had a relation");
    for pair in of_the_gone {
        let is_whole = shows_lists(now, &pair[0]) && shows_lists(now, &pair[1]);
        assert!(!is_whole, "{pair:?} is kept although it is over");
    }
    println!("{} relations vanished", vanished.len());
}

fn users_who_are_gone_or_back_have_their_spells(rounds: &TwoRounds) {
    let reached: BTreeSet<String> = rounds
        .expected(&rounds.before)
        .reached
        .into_iter()
        .collect();
    let in_state = |was: bool, is: bool| -> BTreeSet<String> {
        let users = reached.iter();
        users
            .filter(|id| is_there(&rounds.before, id) == was && is_there(&rounds.after, id) == is)
            .cloned()
            .collect()
    };
    let (left, came_back) = (in_state(true, false), in_state(false, true));
    assert!(!left.is_empty(), "nobody was banned");
    let open_spells =
        rounds.ids("SELECT DISTINCT key AS '@' FROM invalid_users WHERE until_us IS NULL");
    let closed_spells =
        rounds.ids("SELECT DISTINCT key AS '@' FROM invalid_users WHERE until_us IS NOT NULL");
    assert_eq!(
        missing(&left, &open_spells),
        Vec::<String>::new(),
        "gone, and no spell"
    );
    assert_eq!(
        missing(&came_back, &closed_spells),
        Vec::<String>::new(),
        "back, in a spell"
    );
    for id in &open_spells {
        assert!(
            !is_there(&rounds.after, id),
            "{id} is there, and in a spell"
        );
    }
    println!("{} users left, {} came back", left.len(), came_back.len());
}

fn posts_that_were_deleted_are_marked(rounds: &TwoRounds) {
    let held = rounds.ids("SELECT key AS '@' FROM statuses");
    let marked = rounds.ids("SELECT key AS '@' FROM statuses WHERE deleted_us IS NOT NULL");
    let reached = rounds.expected(&rounds.before).reached;
    let deleted: BTreeSet<String> = held
        .iter()
        .filter(|id| !rounds.after.statuses.contains_key(*id))
        .filter(|id| reached.contains(&field(&rounds.before.statuses[*id], "author")))
        .cloned()
        .collect();
    assert!(!deleted.is_empty(), "no post was deleted");
    assert_eq!(
        missing(&deleted, &marked),
        Vec::<String>::new(),
        "deleted, and not marked"
    );
    let there: BTreeSet<String> = rounds.after.statuses.keys().cloned().collect();
    let wrongly: Vec<_> = marked.intersection(&there).take(3).collect();
    assert!(wrongly.is_empty(), "marked, and there: {wrongly:?}");
    println!("{} posts were deleted", deleted.len());
}

fn posts_that_were_edited_keep_their_versions(rounds: &TwoRounds) {
    let content = |truth: &Truth, id: &str| truth.statuses.get(id).map(|row| field(row, "content"));
    let held = rounds.ids("SELECT key AS '@' FROM statuses");
    let edited: BTreeSet<String> = held
        .into_iter()
        .filter(|id| {
            let texts = (content(&rounds.before, id), content(&rounds.after, id));
            matches!(texts, (Some(before), Some(after)) if before != after)
        })
        .collect();
    assert!(!edited.is_empty(), "no post was edited");
    let connection = rounds.file();
    let names = rounds.names();
    let sql =
        "SELECT key AS '@', json_extract(fields, '$.html') FROM versions WHERE grp = 'content'";
    let versions = held_rows(&connection, &names, sql);
    for id in &edited {
        let old = vec![id.clone(), content(&rounds.before, id).unwrap_or_default()];
        assert!(
            versions.contains(&old),
            "the old text of {id} is not in versions"
        );
    }
    println!("{} posts were edited", edited.len());
}

fn accounts_that_were_renamed_keep_their_identity(rounds: &TwoRounds) {
    let handle = |row: &Value| format!("{}@{}", field(row, "acct"), rounds_host(rounds));
    let renamed: Vec<(&String, String, String)> = rounds
        .before
        .users
        .iter()
        .filter(|(id, _)| is_there(&rounds.before, id) && is_there(&rounds.after, id))
        .map(|(id, row)| (id, handle(row), handle(&rounds.after.users[id])))
        .filter(|(_, old, new)| old != new)
        .collect();
    assert!(!renamed.is_empty(), "nobody was renamed");
    let connection = rounds.file();
    let names = rounds.names();
    let users = held_rows(&connection, &names, "SELECT key AS '@', handle FROM users");
    let ids = held_rows(
        &connection,
        &names,
        "SELECT key AS '@', id FROM ids WHERE alias = 'handle'",
    );
    for (id, old, new) in &renamed {
        assert!(
            users.contains(&vec![(*id).clone(), new.clone()]),
            "{id} is not called {new}"
        );
        for name in [old, new] {
            assert!(
                ids.contains(&vec![(*id).clone(), name.clone()]),
                "{name} is not known as {id}"
            );
        }
    }
    println!("{} accounts were renamed", renamed.len());
}

/// The host by which handles are qualified: the one that was asked.
fn rounds_host(rounds: &TwoRounds) -> String {
    let host = rows(&rounds.file(), "SELECT DISTINCT host FROM runs");
    host.into_iter().flatten().next().unwrap_or_default()
}
