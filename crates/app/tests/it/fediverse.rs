//! A fediverse is crawled into one row per account and post, equal to its truth as far as its hosts can
//! be asked; those that are dead, slow, silent or lying cost only themselves.

use crate::oracle::{Truth, field};
use crate::support::{Folder, Running, Sim, Tables, open, rows, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

type Pairs = BTreeSet<(String, String)>;

/// Hosts of which a crawl was allowed to ask.
struct Allowed {
    /// What is said to the crawl.
    words: String,
    hosts: BTreeSet<String>,
}

/// A fediverse and what is true in it.
struct World {
    sim: Sim,
    /// Everything, whoever knows it.
    truth: Truth,
    hosts: Vec<Value>,
}

/// What can be learnt from some hosts by believing each of its own people.
struct Told {
    relations: Pairs,
    statuses: BTreeMap<String, Value>,
    comments: BTreeSet<Vec<String>>,
    likes: Pairs,
    user_tags: Pairs,
}

fn pairs(rows: &[Value], first: &str, second: &str) -> Pairs {
    let pair = |row: &Value| (field(row, first), field(row, second));
    rows.iter().map(pair).collect()
}

impl World {
    fn start(folder: &Folder, words: &str) -> Self {
        let sim = Sim::start(folder, &format!("{words} --speed 0"));
        Self {
            truth: Truth::read(&sim),
            hosts: sim.truth("hosts"),
            sim,
        }
    }

    fn port(&self) -> &str {
        self.sim.address.rsplit_once(':').expect("a port").1
    }

    fn all_hosts(&self) -> Allowed {
        Allowed {
            words: "--hosts *.localhost".to_owned(),
            hosts: self.hosts.iter().map(|row| field(row, "host")).collect(),
        }
    }

    /// The first so many, by name.
    fn first_hosts(&self, count: usize) -> Allowed {
        let hosts: BTreeSet<String> = self.hosts[..count]
            .iter()
            .map(|row| field(row, "host"))
            .collect();
        let words: Vec<String> = hosts.iter().map(|host| format!("--hosts {host}")).collect();
        Allowed {
            words: words.join(" "),
            hosts,
        }
    }

    /// Hosts that answer everybody, and the truth about their own people.
    fn open_hosts(&self, allowed: &Allowed) -> BTreeSet<String> {
        let is_open = |row: &&Value| {
            let trouble = field(row, "trouble");
            let is_sound = trouble.is_empty() || trouble == "slow";
            is_sound && row["needs_token"] == false && allowed.hosts.contains(&field(row, "host"))
        };
        let open = self.hosts.iter().filter(is_open);
        open.map(|row| field(row, "host")).collect()
    }

    fn told(&self, hosts: &BTreeSet<String>) -> Told {
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let more = format!("&hosts={}", hosts.join(","));
        let table = |name: &str| self.sim.truth_where(name, &more);
        let names = ["status", "parent", "root", "author"];
        let comment = |row: &Value| names.map(|name| field(row, name)).to_vec();
        let statuses = table("statuses").into_iter();
        Told {
            relations: pairs(&table("user_relations"), "source", "target"),
            statuses: statuses.map(|row| (field(&row, "id"), row)).collect(),
            comments: table("comments").iter().map(comment).collect(),
            likes: pairs(&table("likes"), "user", "status"),
            user_tags: pairs(&table("user_tags"), "user", "tag"),
        }
    }

    fn home(&self, user: &str) -> String {
        self.truth
            .users
            .get(user)
            .map_or_else(String::new, |it| field(it, "host"))
    }

    /// Whether somebody can be read: neither suspended nor gone.
    fn is_there(&self, user: &str) -> bool {
        let user = &self.truth.users[user];
        user["suspended"] == false && user["gone"] == false
    }

    /// A post, what it answers, and so on up to the first.
    fn conversation(&self, status: &str) -> Vec<String> {
        let mut posts = vec![status.to_owned()];
        while let Some(status) = posts.last().and_then(|id| self.truth.statuses.get(id)) {
            match field(status, "reply_to") {
                parent if parent.is_empty() => break,
                parent => posts.push(parent),
            }
        }
        posts
    }

    fn is_of_liar(&self, user: &str) -> bool {
        let user = self.truth.users.get(user);
        user.is_some_and(|user| field(user, "trouble") == "lying")
    }

    /// Some people to begin with, each on another of the hosts.
    fn seeds(&self, hosts: &BTreeSet<String>, count: usize) -> Vec<String> {
        let mut seeds = BTreeMap::new();
        for (id, user) in &self.truth.users {
            let is_plain = self.is_there(id) && user["hides_lists"] == false;
            if is_plain && hosts.contains(&field(user, "host")) {
                seeds.entry(field(user, "host")).or_insert(id.clone());
            }
        }
        seeds.into_values().take(count).collect()
    }

    /// Everybody on these hosts who is reached from the seeds along relations that one of them shows.
    fn reached(&self, seeds: &[String], told: &Told, hosts: &BTreeSet<String>) -> BTreeSet<String> {
        let mut neighbours: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (source, target) in &told.relations {
            neighbours.entry(source).or_default().push(target);
            neighbours.entry(target).or_default().push(source);
        }
        let mut reached: BTreeSet<String> = seeds.iter().cloned().collect();
        let mut next = seeds.to_vec();
        while let Some(user) = next.pop() {
            for other in neighbours.get(user.as_str()).into_iter().flatten() {
                let is_asked = hosts.contains(&self.home(other)) && self.is_there(other);
                if is_asked && reached.insert((*other).to_owned()) {
                    next.push((*other).to_owned());
                }
            }
        }
        reached
    }

    fn crawl(&self, folder: &Folder, seeds: &[String], allowed: &Allowed, more: &str) -> Command {
        let own = format!("http://i01.localhost:{}", self.port());
        let handles = seeds.iter().map(|id| field(&self.truth.users[id], "acct"));
        let handles: Vec<String> = handles.collect();
        let words = format!(
            "{} {} --depth 9 --robots {ROBOTS} --include-opted-out a-test --until-idle --json {more}",
            handles.join(" "),
            allowed.words
        );
        folder.crawl_into("t.db", &own, &words)
    }

    /// No call went where none may go.
    fn check_calls(&self, allowed: &Allowed) {
        let hosts: Vec<&str> = allowed.hosts.iter().map(String::as_str).collect();
        let path = format!("/_sim/ledger?calls=0&allowed={}", hosts.join(","));
        let ledger = self.sim.json(&path);
        assert_eq!(ledger["outside"], 0, "{ledger}");
        assert_eq!(ledger["canary"]["dialled"], 0, "{ledger}");
        assert_eq!(ledger["strangers"], serde_json::json!({}), "{ledger}");
    }

    /// How often hosts of a trouble were called.
    fn calls_to(&self, trouble: &str) -> u64 {
        let ledger = self.sim.json("/_sim/ledger?calls=0");
        let hosts = ledger["hosts"].as_array().expect("hosts").iter();
        let calls = hosts.filter(|row| row["trouble"] == trouble);
        let calls = calls.map(|row| row["total"].as_u64().expect("a count"));
        calls.sum()
    }
}

const ROBOTS: &str = "relations,profiles,statuses,tags,comments,reposts,likes,instance,peers";

/// What a crawl holds, by the names of the truth.
struct Held {
    tables: Box<dyn Tables>,
    /// The account or post that a key is.
    names: BTreeMap<String, String>,
}

impl Held {
    fn read(path: &Path, world: &World) -> Self {
        let tables: Box<dyn Tables> = Box::new(open(path));
        let mut by_url = BTreeMap::new();
        let mut by_local_id = BTreeMap::new();
        for (id, user) in &world.truth.users {
            by_url.insert(field(user, "url"), id.clone());
            let local = (field(user, "host"), field(user, "local_id"));
            by_local_id.insert(local, id.clone());
        }
        let mut names = BTreeMap::new();
        let sql = "SELECT key, type, alias, host, id FROM ids ORDER BY canonical DESC, alias DESC";
        for row in rows(&*tables, sql) {
            let [key, kind, alias, host, id] = row.try_into().expect("five columns");
            let name = match (&*kind, &*alias) {
                (_, "") => Some(id),
                ("user", "url") => by_url.get(&id).cloned(),
                ("user", "id") => by_local_id.get(&(host, id)).cloned(),
                _ => None,
            };
            if let Some(name) = name {
                names.entry(key).or_insert(name);
            }
        }
        Self { tables, names }
    }

    /// Rows with keys, in columns that begin with `@`, as names.
    fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let (columns, found) = self.tables.select(sql);
        let name = |(cell, column): (String, &String)| {
            if !column.starts_with('@') || cell.is_empty() {
                return cell;
            }
            let unknown = || format!("unknown key {cell}");
            self.names.get(&cell).cloned().unwrap_or_else(unknown)
        };
        let rename = |row: Vec<String>| row.into_iter().zip(&columns).map(name).collect();
        found.into_iter().map(rename).collect()
    }

    fn set(&self, sql: &str) -> BTreeSet<Vec<String>> {
        self.rows(sql).into_iter().collect()
    }

    fn pairs(&self, sql: &str) -> Pairs {
        let rows = self.rows(sql).into_iter();
        rows.map(|mut row| {
            let second = row.remove(1);
            (row.remove(0), second)
        })
        .collect()
    }
}

/// The first few that one set has and another lacks.
fn missing<T: Ord + std::fmt::Debug>(what: &str, wanted: &BTreeSet<T>, held: &BTreeSet<T>) {
    let lacking: Vec<&T> = wanted.difference(held).collect();
    let few = &lacking[..lacking.len().min(4)];
    assert!(
        lacking.is_empty(),
        "{} {what} missing: {few:#?}",
        lacking.len()
    );
}

/// Compares a crawl with what the hosts that it asked can tell.
fn compare(
    folder: &Folder,
    world: &World,
    seeds: &[String],
    allowed: &Allowed,
) -> BTreeSet<String> {
    let open_hosts = world.open_hosts(allowed);
    let told = world.told(&open_hosts);
    let reached = world.reached(seeds, &told, &open_hosts);
    let held = Held::read(&folder.path("t.db"), world);
    check_users(world, &held, &reached);
    check_relations(world, &held, &told, &reached);
    check_posts(world, &held, &told, &reached);
    check_deeds(world, &held, &told, &reached);
    world.check_calls(allowed);
    println!(
        "{} of {} people on {} open hosts, {} calls",
        reached.len(),
        world.truth.users.len(),
        open_hosts.len(),
        world.sim.calls()
    );
    reached
}

fn check_users(world: &World, held: &Held, reached: &BTreeSet<String>) {
    let rows = held.rows(
        "SELECT key AS \"@\", display_name, url, is_bot, is_protected, created_us, followers_count,
                following_count, statuses_count FROM users",
    );
    let wanted = reached.iter().map(|id| world.truth.user_row(id)).collect();
    missing("users", &wanted, &rows.iter().cloned().collect());
    let mut rows_of: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &rows {
        *rows_of.entry(&row[0]).or_default() += 1;
        assert!(world.truth.users.contains_key(&row[0]), "invented: {row:?}");
    }
    let doubled: Vec<_> = reached
        .iter()
        .filter(|id| rows_of[id.as_str()] > 1)
        .collect();
    assert!(doubled.is_empty(), "two rows of {doubled:?}");
    // Whoever else has two rows lives where nobody answers who they are.
    for (id, _) in rows_of.iter().filter(|(_, count)| **count > 1) {
        let trouble = field(&world.truth.users[*id], "trouble");
        assert!(
            !trouble.is_empty() && trouble != "slow",
            "two rows of {id}: {trouble:?}"
        );
    }
    let forged = rows.iter().filter(|row| row[1] == "forged");
    for row in forged {
        assert!(!reached.contains(&row[0]), "forged: {row:?}");
    }
}

fn check_relations(world: &World, held: &Held, told: &Told, reached: &BTreeSet<String>) {
    let relations = held.pairs("SELECT source AS \"@\", target AS \"@\" FROM user_relations");
    let shows =
        |user: &String| reached.contains(user) && world.truth.users[user]["hides_lists"] == false;
    let wanted = told.relations.iter();
    let wanted = wanted.filter(|(source, target)| shows(source) || shows(target));
    missing("relations", &wanted.cloned().collect(), &relations);
    let true_ones: Pairs = world.truth.relations.iter().cloned().collect();
    let invented = relations.difference(&true_ones);
    // Of their own people liars may say what they want.
    let invented: Vec<_> = invented
        .filter(|(source, target)| !world.is_of_liar(source) && !world.is_of_liar(target))
        .collect();
    assert!(invented.is_empty(), "invented: {invented:?}");
}

fn check_posts(world: &World, held: &Held, told: &Told, reached: &BTreeSet<String>) {
    let rows = held.rows(
        "SELECT key AS \"@\", author AS \"@\", created_us, edited_us, html, language, visibility,
                is_sensitive, content_warning, reply_to AS \"@\", repost_of AS \"@\", replies_count,
                reposts_count, likes_count FROM statuses WHERE created_us IS NOT NULL",
    );
    let own = |id: &&String| reached.contains(&field(&told.statuses[*id], "author"));
    let wanted = told.statuses.keys().filter(own);
    let wanted = wanted.map(|id| world.truth.status_row(id)).collect();
    let held_rows: BTreeSet<_> = rows.iter().cloned().collect();
    missing("posts", &wanted, &held_rows);
    let ids: BTreeSet<&String> = rows.iter().map(|row| &row[0]).collect();
    assert_eq!(ids.len(), rows.len(), "two rows of one post");
    for row in &rows {
        assert!(
            world.truth.statuses.contains_key(&row[0]),
            "invented: {row:?}"
        );
        assert!(
            row[4] != "forged" || !reached.contains(&row[1]),
            "forged: {row:?}"
        );
    }
    let comments = held
        .set("SELECT key AS \"@\", parent AS \"@\", root AS \"@\", author AS \"@\" FROM comments");
    // A conversation is whole where all of it was written by people who can be asked.
    let is_known = |id: &String| {
        let status = world.truth.statuses.get(id);
        status.is_some_and(|it| reached.contains(&field(it, "author")))
    };
    let is_whole = |row: &&Vec<String>| world.conversation(&row[0]).iter().all(is_known);
    let wanted = told.comments.iter().filter(is_whole);
    let wanted: BTreeSet<_> = wanted.cloned().collect();
    assert!(wanted.len() > 20, "{}", wanted.len());
    missing("comments", &wanted, &comments);
}

fn check_deeds(world: &World, held: &Held, told: &Told, reached: &BTreeSet<String>) {
    let likes =
        held.pairs("SELECT from_key AS \"@\", to_key AS \"@\" FROM links WHERE kind = 'like'");
    let author = |status: &str| field(&world.truth.statuses[status], "author");
    let wanted = told
        .likes
        .iter()
        .filter(|(_, status)| reached.contains(&author(status)));
    missing("likes", &wanted.cloned().collect(), &likes);
    let whole = pairs(&world.sim.truth("likes"), "user", "status");
    // Of posts that are written there liars may say what they want.
    let invented = likes.difference(&whole);
    let invented: Vec<_> = invented
        .filter(|(_, status)| !world.is_of_liar(&author(status)))
        .collect();
    assert!(invented.is_empty(), "invented: {invented:?}");
    let tags = held.pairs("SELECT t.user AS \"@\", tag AS \"@\" FROM user_tags AS t");
    let has_tags: BTreeSet<String> = world
        .hosts
        .iter()
        .filter(|row| row["software"] != "akkoma")
        .map(|row| field(row, "host"))
        .collect();
    let wanted = told.user_tags.iter();
    let wanted = wanted
        .filter(|(user, _)| reached.contains(user) && has_tags.contains(&world.home(user)))
        .map(|(user, tag)| (user.clone(), tag.to_lowercase()));
    missing("featured tags", &wanted.collect(), &tags);
}

fn finish(command: &mut Command) -> Value {
    let output = command.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a JSON summary")
}

#[test]
fn fifty_instances_become_one_network_whatever_ten_of_them_do() {
    let folder = Folder::new();
    let words =
        "--users 260 --seed 11 --instances 50 --bad-instances 10 --stall-ms 400 --limits off";
    let world = World::start(&folder, words);
    let allowed = world.all_hosts();
    let seeds = world.seeds(&world.open_hosts(&allowed), 6);
    let mut crawl = world.crawl(&folder, &seeds, &allowed, "--limits off --concurrency 8");
    // Killed on the way, twice.
    for calls in [300, 900] {
        let mut running = Running::start(&mut crawl);
        world.sim.wait_for_calls(calls);
        running.kill();
    }
    let summary = finish(&mut crawl);
    assert_eq!(summary["end"]["reason"], "idle");
    let reached = compare(&folder, &world, &seeds, &allowed);
    assert!(reached.len() > 100, "{}", reached.len());
    for trouble in ["lying", "bad_gateway", "slow", "silent", "closing"] {
        assert!(world.calls_to(trouble) > 0, "no host is {trouble}");
    }
    check_probes(&folder, &world);
}

/// Every host was asked once what it is, whatever was killed in between.
fn check_probes(folder: &Folder, world: &World) {
    let tables = open(&folder.path("t.db"));
    let known = rows(
        &tables,
        "SELECT i.id, json_extract(o.extra, '$.software'), json_extract(o.extra, '$.version')
         FROM objects o JOIN ids i ON i.key = o.key WHERE i.type = 'instance' AND o.extra IS NOT NULL",
    );
    let known: BTreeMap<String, (String, String)> = known
        .into_iter()
        .map(|row| (row[0].clone(), (row[1].clone(), row[2].clone())))
        .collect();
    for host in &world.hosts {
        let name = field(host, "host");
        let calls = world
            .sim
            .get(&format!("/_sim/ledger/calls?host={name}&limit=5000"));
        let probes = calls.lines().filter(|line| {
            let call: Value = serde_json::from_str(line).expect("a call");
            call["target"] == "/api/v2/instance" && call["status"] == 200
        });
        // One more for each time that an answer was under way when the crawl was killed.
        assert!(probes.count() <= 3, "{name} was asked too often");
        if let Some((software, version)) = known.get(&name) {
            assert_eq!(*version, field(host, "version"));
            let expected = match host["software"].as_str() {
                Some("go_to_social") => "GoToSocial",
                Some("akkoma") => "Akkoma",
                Some("pixelfed") => "Pixelfed",
                _ => "Mastodon",
            };
            assert_eq!(software, expected, "{name}");
        }
    }
    let kinds: BTreeSet<&String> = known.values().map(|(software, _)| software).collect();
    assert_eq!(kinds.len(), 4, "{kinds:?}");
}

#[test]
fn liars_are_believed_in_nothing_but_their_own() {
    let folder = Folder::new();
    let words = "--users 240 --seed 3 --instances 8 --bad-instances 5 --stall-ms 300 --limits off";
    let world = World::start(&folder, words);
    let allowed = world.all_hosts();
    let seeds = world.seeds(&world.open_hosts(&allowed), 3);
    let mut crawl = world.crawl(&folder, &seeds, &allowed, "--limits off --concurrency 8");
    finish(&mut crawl);
    compare(&folder, &world, &seeds, &allowed);
    // Every lie was met.
    let held = Held::read(&folder.path("t.db"), &world);
    let visited = held.set("SELECT DISTINCT subject AS \"@\" FROM frontier WHERE visits > 0");
    for lie in [
        "megabyte_bio",
        "impostor",
        "private_next_page",
        "private_redirect",
        "private_handle",
        "handle_loop",
    ] {
        let mut users = world.truth.users.iter();
        let is_met =
            users.any(|(id, user)| user["lie"] == lie && visited.contains(&vec![id.clone()]));
        assert!(is_met, "nobody who comes with {lie}");
    }
    // What the liar made up was heard: of some nobody else has told.
    let forged = "SELECT count(*) FROM users WHERE display_name = 'forged'";
    let forged = rows(&*held.tables, forged);
    assert!(!forged.contains(&vec!["0".to_owned()]), "{forged:?}");
}

#[test]
fn only_the_hosts_that_were_named_are_asked() {
    let folder = Folder::new();
    let words = "--users 200 --seed 7 --instances 20 --limits off";
    let world = World::start(&folder, words);
    let allowed = world.first_hosts(7);
    let seeds = world.seeds(&world.open_hosts(&allowed), 2);
    let mut crawl = world.crawl(&folder, &seeds, &allowed, "--limits off --concurrency 8");
    finish(&mut crawl);
    let reached = compare(&folder, &world, &seeds, &allowed);
    assert!(reached.len() > 60, "{}", reached.len());
    // The others were heard of.
    let others = world.hosts[7..].iter().map(|row| field(row, "host"));
    let others: BTreeSet<String> = others.collect();
    let held = Held::read(&folder.path("t.db"), &world);
    let known = held.set("SELECT key AS \"@\" FROM users");
    let elsewhere = known
        .iter()
        .filter(|row| others.contains(&world.home(&row[0])));
    assert!(elsewhere.count() > 20);
}

#[test]
fn every_instance_has_its_own_limits_and_none_is_broken() {
    let folder = Folder::new();
    let words = "--users 90 --seed 5 --instances 9 --limits strict --limit-speed 300";
    let world = World::start(&folder, words);
    let allowed = world.all_hosts();
    let seeds = world.seeds(&world.open_hosts(&allowed), 2);
    let more = format!("--concurrency 8 --clock-from {}", world.sim.address);
    let mut crawl = world.crawl(&folder, &seeds, &allowed, &more);
    crawl.env_remove("KITTIWAKE_PACE");
    let summary = finish(&mut crawl);
    assert_eq!(world.sim.violations(), 0, "{summary}");
    compare(&folder, &world, &seeds, &allowed);
}
