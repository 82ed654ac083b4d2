//! Several robots share one limit: it is divided by what calls are worth, or they take turns.

use crate::Bench;
use crate::network::{DAY_US, Network};
use crate::outcome::Outcome;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

const ROBOTS: &str = "statuses,relations,profiles,tags";
const WAYS: [(&str, &str); 3] = [
    ("by worth", "adaptive"),
    (
        "posts ranked, in turn",
        "statuses=adaptive,relations=round-robin,profiles=round-robin,tags=round-robin",
    ),
    ("all in turn", "round-robin"),
];
/// Truths are compared so often, to see when relations began.
const LOOK_US: i64 = DAY_US / 8;

pub(crate) fn run(bench: &Bench) {
    println!("\nD. Robots that share one limit: {ROBOTS}\n");
    println!(
        "{:<22} {:>7} {:>7}   {:<40} {:>8} {:>10} {:>10}",
        "", "calls", "refused", "share of calls", "posts h", "relations", "relation h"
    );
    for (title, policy) in WAYS {
        let folder = tempfile::tempdir_in(&bench.target).unwrap();
        let network = Network::start(bench, folder.path(), None);
        let outcome = Outcome::crawl_by(bench, &network, folder.path(), (ROBOTS, policy));
        let posts = outcome.delays_hours(|_| true, bench.warm_up_days..f64::INFINITY);
        let relations = relation_delays(bench, &network, folder.path());
        let mean = relations.iter().sum::<f64>() / relations.len().max(1) as f64;
        println!(
            "{title:<22} {:>7} {:>7}   {:<40} {:>8.2} {:>10} {mean:>10.1}",
            outcome.calls,
            network.violations(),
            shares(folder.path()),
            posts.mean(),
            relations.len(),
        );
    }
}

/// Which robots the calls went to.
fn shares(folder: &Path) -> String {
    let file = rusqlite::Connection::open(folder.join("t.db")).unwrap();
    let sql = "SELECT CASE query WHEN 'timeline' THEN 'statuses' WHEN 'followers' THEN 'relations'
                 WHEN 'following' THEN 'relations' WHEN 'featured_tags' THEN 'tags'
                 WHEN 'profiles' THEN 'profiles' WHEN 'profile' THEN 'profiles' ELSE 'other' END,
               count(*) FROM query_log GROUP BY 1 ORDER BY 2 DESC";
    let mut statement = file.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let rows: Vec<(String, i64)> = rows.unwrap().map(Result::unwrap).collect();
    let all: i64 = rows.iter().map(|(_, calls)| calls).sum();
    let share = |calls: i64| 100.0 * calls as f64 / all as f64;
    let shares = rows
        .iter()
        .map(|(name, calls)| format!("{name} {:.0} %", share(*calls)));
    shares.collect::<Vec<_>>().join(", ")
}

/// How many hours after it began each relation was seen that began after the warm-up, between people who
/// are visited. One that was not seen counts with its age.
fn relation_delays(bench: &Bench, network: &Network, folder: &Path) -> Vec<f64> {
    let file = rusqlite::Connection::open(folder.join("t.db")).unwrap();
    let number = |sql: &str| -> i64 { file.query_row(sql, [], |row| row.get(0)).unwrap() };
    let from_us = number("SELECT min(at_us) FROM query_log");
    let until_us = number("SELECT max(at_us) FROM query_log");
    let mut names: HashMap<i64, String> = HashMap::new();
    let mut visited: HashMap<String, bool> = HashMap::new();
    let mut statement = file
        .prepare(
            "SELECT i.key, i.id, EXISTS (SELECT 1 FROM frontier f WHERE f.subject = i.key AND f.visits > 0)
             FROM ids i WHERE canonical = 1 AND type = 'user'",
        )
        .unwrap();
    let mut rows = statement.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let id: String = row.get(1).unwrap();
        names.insert(row.get(0).unwrap(), id.clone());
        visited.insert(id, row.get(2).unwrap());
    }
    let mut seen: BTreeMap<(String, String), i64> = BTreeMap::new();
    let mut statement = file
        .prepare(
            "SELECT source, target, first_seen_us FROM user_relations
             UNION ALL SELECT source, target, first_seen_us FROM invalid_relations",
        )
        .unwrap();
    let mut rows = statement.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let name = |place: usize| names.get(&row.get(place).unwrap()).cloned();
        if let (Some(source), Some(target)) = (name(0), name(1)) {
            seen.insert((source, target), row.get(2).unwrap());
        }
    }
    let is_visited = |name: &String| visited.get(name).copied().unwrap_or(false);
    let mut at_us = from_us + (bench.warm_up_days * DAY_US as f64) as i64;
    let mut before = network.relations_at(at_us);
    let mut delays = Vec::new();
    while at_us + LOOK_US <= until_us {
        at_us += LOOK_US;
        let now = network.relations_at(at_us);
        for relation in now.difference(&before) {
            if !is_visited(&relation.0) && !is_visited(&relation.1) {
                continue;
            }
            let began_us = at_us - LOOK_US / 2;
            let seen_us = seen.get(relation).copied().unwrap_or(until_us);
            delays.push((seen_us - began_us).max(0) as f64 / 3.6e9);
        }
        before = now;
    }
    delays
}
