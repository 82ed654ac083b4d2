//! Weibo's open API and its business API. Whoever is found is crawled, so that everything has to be
//! there in the end.

use crate::kill::run_and_kill;
use crate::oracle::{Rows, field};
use crate::support::{Dice, Folder, Running, Sim, open, rows, text};
use crate::truth::{difference, held_rows};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};

const ROBOTS: &str = "relations,profiles,tags,statuses,reposts,comments,likes";
const BUSINESS_ROBOTS: &str =
    "business-relations,business-profiles,business-tags,business-statuses,business-likes";
const TOKEN: &str = "planted/ada:secret-0123456789";
const TABLES: [(&str, &str); 6] = [
    (
        "users",
        "SELECT key AS \"@\", handle, created_us, followers_count, following_count, statuses_count
         FROM users",
    ),
    (
        "relations",
        "SELECT source AS \"@\", target AS \"@\" FROM user_relations",
    ),
    (
        "statuses",
        "SELECT key AS \"@\", author AS \"@\", created_us, edited_us, text, repost_of AS \"@\",
                replies_count, reposts_count, likes_count FROM statuses WHERE author IS NOT NULL",
    ),
    (
        "comments",
        "SELECT key AS \"@\", status AS \"@\", author AS \"@\", created_us, text FROM comments",
    ),
    (
        "user_tags",
        "SELECT t.user AS \"@\", name FROM user_tags AS t JOIN tags ON tags.key = t.tag",
    ),
    (
        "links",
        "SELECT kind, from_key AS \"@\", to_key AS \"@\" FROM links",
    ),
];

struct World {
    folder: Folder,
    sim: Sim,
    seed: String,
}

impl World {
    fn start(users: u32, words: &str) -> Self {
        let folder = Folder::new();
        let words = format!("--dialect weibo --users {users} --seed 5 --speed 0 {words}");
        let sim = Sim::start(&folder, &words);
        let handle = sim.first_handle();
        let users = sim.truth("users");
        let first = users.iter().find(|user| field(user, "acct") == handle);
        let seed = format!("id:{}", field(first.expect("somebody"), "local_id"));
        Self { folder, sim, seed }
    }

    fn command(&self, words: &str) -> Command {
        self.command_with("weibo", ROBOTS, words)
    }

    fn command_with(&self, definition: &str, robots: &str, words: &str) -> Command {
        // The same server under another name: another host.
        let business = self.sim.address.replace("127.0.0.1", "localhost");
        self.command_at(
            definition,
            robots,
            &format!("{words} --at business={business}/2"),
        )
    }

    fn command_at(&self, definition: &str, robots: &str, words: &str) -> Command {
        let address = &self.sim.address;
        let mut command = self.folder.kittiwake();
        command.args(["crawl", definition, &self.seed, "--clock-from", address]);
        command.args(["--host", &format!("{address}/2"), "--robots", robots]);
        let fixed = "--into t.db --depth 20 --until-idle --quiet";
        command
            .args(fixed.split(' '))
            .args(words.split_whitespace());
        command.env("WEIBO_ACCESS_TOKEN", TOKEN);
        command
    }

    fn crawl(&self, words: &str) {
        finish(&mut self.command(words));
        assert_eq!(self.sim.violations(), 0);
    }

    fn held(&self, sql: &str) -> Rows {
        let tables = open(&self.folder.path("t.db"));
        let ids = rows(&tables, "SELECT key, type, id FROM ids WHERE canonical");
        let names: BTreeMap<String, String> = ids
            .into_iter()
            .map(|row| (row[0].clone(), format!("{} {}", row[1], row[2])))
            .collect();
        held_rows(&tables, &names, sql)
    }

    #[track_caller]
    fn compare(&self, truth: &Truth, left_out: &[&str]) {
        let mut counts = Vec::new();
        for (table, sql) in TABLES {
            if left_out.contains(&table) {
                continue;
            }
            let held = self.held(sql);
            let found = difference(table, &truth.table(table), &held);
            assert!(found.is_empty(), "{}", found.join("\n"));
            assert!(!held.is_empty(), "no {table}");
            counts.push(format!("{} {table}", held.len()));
        }
        let tables = open(&self.folder.path("t.db"));
        let mended = rows(&tables, "SELECT target FROM query_log WHERE mended > 0");
        assert!(mended.is_empty(), "values that were dropped: {mended:?}");
        let calls = self.sim.calls();
        println!("equal to the truth: {}; {calls} calls", counts.join(", "));
    }

    /// The only column of a query.
    fn column(&self, sql: &str) -> Vec<String> {
        let tables = open(&self.folder.path("t.db"));
        rows(&tables, sql).into_iter().flatten().collect()
    }

    /// How many ids each call of a query was about.
    fn batches(&self, query: &str) -> Vec<usize> {
        let ledger = self.sim.json("/_sim/ledger");
        let calls = ledger["calls"].as_array().expect("calls");
        calls
            .iter()
            .filter(|call| call["query"] == query)
            .map(|call| field(call, "subject").split(',').count())
            .collect()
    }
}

fn finish(command: &mut Command) {
    let output = command.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// Whole seconds, which is all that the network tells.
fn seconds(row: &Value, name: &str) -> String {
    let at_us = row[name].as_i64();
    at_us.map_or_else(String::new, |at_us| {
        (at_us.div_euclid(1_000_000) * 1_000_000).to_string()
    })
}

/// What everybody is shown, by the network's own numbers.
struct Truth {
    users: Vec<Value>,
    relations: Vec<Value>,
    statuses: BTreeMap<String, Value>,
    comments: BTreeMap<String, Comment>,
    likes: Vec<Value>,
    user_tags: Vec<Value>,
    /// `TYPE NUMBER` by the truth's own names.
    numbers: BTreeMap<String, String>,
}

struct Comment {
    row: Value,
    beginning: String,
    /// The comment that it answers, if it answers one that is there.
    parent: Option<String>,
}

impl Truth {
    fn read(sim: &Sim) -> Self {
        let users = sim.truth("users");
        let mut numbers: BTreeMap<String, String> = users
            .iter()
            .map(|row| (field(row, "id"), format!("user {}", field(row, "local_id"))))
            .collect();
        let threads: BTreeMap<String, Value> = sim
            .truth("threads")
            .into_iter()
            .map(|row| (field(&row, "status"), row))
            .collect();
        let (mut statuses, mut comments) = (BTreeMap::new(), BTreeMap::new());
        for row in sim.truth("statuses") {
            let uri = field(&row, "id");
            // Nobody can repeat a comment.
            if threads.contains_key(&field(&row, "repost_of")) {
                continue;
            }
            // What answers is a comment, at any depth, and goes with the post.
            let Some(thread) = threads.get(&uri) else {
                let name = format!("status {}", field(&row, "local_id"));
                numbers.insert(uri, name.clone());
                statuses.insert(name, row);
                continue;
            };
            let name = format!("comment {}", field(&row, "local_id"));
            numbers.insert(uri, name.clone());
            if thread["beginning_shown"] == true {
                let is_deep = thread["parent"] != thread["beginning"];
                let is_answer = is_deep && thread["parent_shown"] == true;
                let comment = Comment {
                    row,
                    beginning: field(thread, "beginning"),
                    parent: is_answer.then(|| field(thread, "parent")),
                };
                comments.insert(name, comment);
            }
        }
        Self {
            users,
            relations: sim.truth("user_relations"),
            statuses,
            comments,
            likes: sim.truth("likes"),
            user_tags: sim.truth("user_tags"),
            numbers,
        }
    }

    fn number(&self, row: &Value, name: &str) -> String {
        self.numbers
            .get(&field(row, name))
            .cloned()
            .unwrap_or_default()
    }

    fn table(&self, name: &str) -> Rows {
        let relations = || self.relations.iter();
        match name {
            "users" => self.user_rows(),
            "relations" => relations()
                .map(|row| vec![self.number(row, "source"), self.number(row, "target")])
                .collect(),
            "statuses" => self.status_rows(),
            "comments" => self.comment_rows(),
            "user_tags" => {
                let tags = self.user_tags.iter();
                tags.map(|row| vec![self.number(row, "user"), field(row, "tag")])
                    .collect()
            }
            _ => self.links(),
        }
    }

    fn user_rows(&self) -> Rows {
        let mut posts: BTreeMap<String, usize> = BTreeMap::new();
        for status in self.statuses.values() {
            *posts.entry(field(status, "author")).or_default() += 1;
        }
        let present = self.users.iter().filter(|user| user["suspended"] == false);
        present
            .map(|user| {
                let count = posts.get(&field(user, "id")).copied().unwrap_or(0);
                vec![
                    self.number(user, "id"),
                    field(user, "username"),
                    field(user, "created_us"),
                    field(user, "followers"),
                    field(user, "following"),
                    count.to_string(),
                ]
            })
            .collect()
    }

    fn status_rows(&self) -> Rows {
        let mut below: BTreeMap<&str, usize> = BTreeMap::new();
        for comment in self.comments.values() {
            *below.entry(&comment.beginning).or_default() += 1;
        }
        let rows = self.statuses.iter().map(|(name, row)| {
            let is_repost = !row["repost_of"].is_null();
            let comments = below.get(field(row, "id").as_str()).copied().unwrap_or(0);
            vec![
                name.clone(),
                self.number(row, "author"),
                seconds(row, "created_us"),
                seconds(row, "edited_us"),
                if is_repost {
                    "转发微博".to_owned()
                } else {
                    words(row)
                },
                self.number(row, "repost_of"),
                comments.to_string(),
                field(row, "reposts"),
                field(row, "likes"),
            ]
        });
        rows.collect()
    }

    fn comment_rows(&self) -> Rows {
        let rows = self.comments.iter().map(|(name, comment)| {
            vec![
                name.clone(),
                self.numbers[&comment.beginning].clone(),
                self.number(&comment.row, "author"),
                seconds(&comment.row, "created_us"),
                words(&comment.row),
            ]
        });
        rows.collect()
    }

    fn links(&self) -> Rows {
        let mut links = Rows::new();
        let mut link = |kind: &str, from: String, to: String| {
            links.insert(vec![kind.to_owned(), from, to]);
        };
        for like in &self.likes {
            let liked = self.number(like, "status");
            // Likes of comments are not told.
            if liked.starts_with("status ") {
                link("like", self.number(like, "user"), liked);
            }
        }
        for (name, row) in &self.statuses {
            let original = self.number(row, "repost_of");
            if !original.is_empty() {
                link("repost", name.clone(), original);
                continue;
            }
            for tag in row["tags"].as_array().into_iter().flatten() {
                let tag = tag.as_str().expect("a tag").to_lowercase();
                link("topic", name.clone(), format!("topic {tag}"));
            }
        }
        for (name, comment) in &self.comments {
            if let Some(parent) = &comment.parent {
                link("reply", name.clone(), self.numbers[parent].clone());
            }
        }
        links
    }
}

/// The words of a post: marks are left out, lines and paragraphs are lines, topics end with a sign.
fn words(row: &Value) -> String {
    let html = field(row, "content");
    let lines = html.replace("<br />", "\n").replace("</p>", "\n");
    let mut text = String::new();
    let mut is_mark = false;
    for letter in lines.chars() {
        match letter {
            '<' => is_mark = true,
            '>' if is_mark => is_mark = false,
            _ if !is_mark => text.push(letter),
            _ => {}
        }
    }
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    let text = text.replace("&#39;", "'").replace("&quot;", "\"");
    let mut text = text.replace("&amp;", "&").trim().to_owned() + " ";
    for tag in row["tags"].as_array().into_iter().flatten() {
        let tag = tag.as_str().expect("a tag");
        for end in [" ", "\n"] {
            text = text.replace(&format!("#{tag}{end}"), &format!("#{tag}#{end}"));
        }
    }
    text.pop();
    text
}

#[test]
fn a_crawl_holds_everything_that_is_shown() {
    let world = World::start(120, "--limits off");
    let truth = Truth::read(&world.sim);
    world.crawl("--limits off");
    world.compare(&truth, &[]);
    // Twenty accounts a call, but for the last.
    let batches = world.batches("tags_batch");
    let asked: usize = batches.iter().sum();
    assert!(
        asked * 100 >= batches.len().saturating_sub(1) * 20 * 95,
        "{batches:?}"
    );
}

#[test]
fn the_business_api_shows_the_same() {
    let world = World::start(120, "--limits off");
    let truth = Truth::read(&world.sim);
    finish(&mut world.command_with("weibo", BUSINESS_ROBOTS, "--limits off"));
    // Comments and reposts are left to the free API.
    world.compare(&truth, &["comments", "links"]);
    for (query, size) in [("users_other", 50), ("tags_batch_other", 20)] {
        let batches = world.batches(query);
        let asked: usize = batches.iter().sum();
        assert!(
            asked * 100 >= batches.len().saturating_sub(1) * size * 95,
            "{query}: {batches:?}"
        );
    }
}

#[test]
fn one_crawl_asks_both_apis_at_their_own_addresses() {
    let world = World::start(120, "--limits off");
    let truth = Truth::read(&world.sim);
    let robots =
        "business-relations,business-profiles,business-statuses,tags,reposts,comments,likes";
    finish(&mut world.command_with("weibo", robots, "--limits off"));
    world.compare(&truth, &[]);
    let there = "SELECT DISTINCT query FROM query_log WHERE target LIKE 'http://localhost:%'";
    let mut business = world.column(there);
    business.sort();
    let named = [
        "followers_of_others",
        "following_of_others",
        "profiles",
        "timeline_of_others",
    ];
    assert_eq!(business, named);
}

/// A host that takes what is sent to it and answers nothing that is of use.
struct Listener {
    address: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Listener {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let book = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let mut lines = BufReader::new(&stream).lines();
                let request: Vec<String> = lines
                    .by_ref()
                    .map_while(Result::ok)
                    .take_while(|line| !line.is_empty())
                    .collect();
                book.lock().expect("no panic").push(request.join("\n"));
                let _ = stream.write_all(
                    b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
                );
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("no panic").clone()
    }
}

#[test]
fn a_token_goes_to_no_host_that_is_not_the_networks_own() {
    let shipped = include_str!("../../../../../networks/weibo.toml");
    // Asked by anybody, so that it is asked at all without a token.
    let open = shipped.replace(
        "path = \"/users/show_batch/other.json\"\nbatch = { parameter = \"uids\", style = \"comma\", alias = \"canonical\", max = 50 }\nauth = \"required\"",
        "path = \"/users/show_batch/other.json\"\nbatch = { parameter = \"uids\", style = \"comma\", alias = \"canonical\", max = 50 }\nauth = \"optional\"",
    );
    assert_ne!(open, shipped);
    let foreign = open.replace("credential = true\n", "");
    assert_ne!(foreign, open);
    let asked = |definition: &str| {
        let world = World::start(120, "--limits off");
        let other = Listener::start();
        std::fs::write(world.folder.path("copy.toml"), definition).expect("a definition");
        let at = format!("--limits off --at business={}/2", other.address);
        let mut command = world.command_at("./copy.toml", "relations,business-profiles", &at);
        finish(&mut command);
        // Whatever it says, the host of the crawl is asked with the token.
        assert!(
            !world
                .column("SELECT DISTINCT source FROM user_relations")
                .is_empty()
        );
        other.heard()
    };
    let token = "secret-0123456789";
    let own = asked(&open);
    assert!(!own.is_empty() && own.iter().all(|head| head.contains(token)));
    let foreign = asked(&foreign);
    assert!(!foreign.is_empty(), "it was not asked");
    for head in foreign {
        assert!(!head.contains(token), "{head}");
    }
}

#[test]
fn limits_are_kept_and_kills_lose_nothing() {
    // An hour in a second.
    let world = World::start(60, "--limits strict --limit-speed 3600");
    let truth = Truth::read(&world.sim);
    let mut dice = Dice::new("kills of a crawl of weibo");
    for round in 0..4 {
        run_and_kill(&world.sim, &mut world.command(""), &mut dice, round);
    }
    world.crawl("");
    world.compare(&truth, &[]);
}

#[test]
fn a_hostile_network_takes_only_what_its_log_says() {
    let world = World::start(
        120,
        "--limits off --limit-speed 600 --faults hostile --stall-ms 50",
    );
    let before = Truth::read(&world.sim);
    // Pages of ten, so that lists of a small world have several.
    let shipped = text(&world.folder.run(&["network", "show", "weibo"]).stdout);
    let small = shipped
        .replace("size = 100,", "size = 10,")
        .replace("size = 200,", "size = 10,")
        .replace("size = 5000,", "size = 10,");
    assert_ne!(small, shipped);
    std::fs::write(world.folder.path("small.toml"), small).expect("a definition");
    let command = || {
        let words = "--concurrency 8 --limits off";
        world.command_with("small.toml", ROBOTS, words)
    };
    let mut dice = Dice::new("kills of a hostile crawl of weibo");
    for round in 0..4 {
        run_and_kill(&world.sim, &mut command(), &mut dice, round);
    }
    let mut crawl = Running::start(&mut command());
    assert_eq!(crawl.wait(), Some(0));
    assert_eq!(world.sim.violations(), 0);
    let after = Truth::read(&world.sim);
    let happened = world.sim.json("/_sim/faults/summary");
    let happened = happened["by_kind"].as_object().expect("counts");
    let absent: Vec<_> = happened.iter().filter(|(_, count)| **count == 0).collect();
    assert!(absent.is_empty(), "faults that never happened: {absent:?}");
    for (table, sql) in TABLES {
        // Counts differ with the moment; who and what do not.
        let width = match table {
            "users" | "statuses" | "comments" => 1,
            _ => 3,
        };
        let cut = |rows: Rows| -> BTreeSet<Vec<String>> {
            let cut = |row: Vec<String>| row.into_iter().take(width).collect();
            rows.into_iter().map(cut).collect()
        };
        let mut held = world.held(sql);
        if table == "relations" {
            held.extend(world.held(&sql.replace("user_relations", "invalid_relations")));
        }
        let held = cut(held);
        let [most, least] = [cut(before.table(table)), cut(after.table(table))];
        let lost: Vec<_> = least.difference(&held).take(3).collect();
        assert!(lost.is_empty(), "{table} lost without a word: {lost:?}");
        let invented: Vec<_> = held.difference(&most).take(3).collect();
        assert!(invented.is_empty(), "{table} invented: {invented:?}");
    }
}

#[test]
fn an_id_that_spoils_its_batch_costs_only_itself() {
    let world = World::start(60, "--limits off");
    let truth = Truth::read(&world.sim);
    let mut command = world.command_with("weibo", "relations,tags", "--limits off id:puffin");
    finish(&mut command);
    assert_eq!(
        difference(
            "user_tags",
            &truth.table("user_tags"),
            &world.held(TABLES[4].1)
        ),
        [""; 0]
    );
    let outcomes = "SELECT DISTINCT outcome FROM outcomes o JOIN ids i ON i.key = o.key
                    WHERE i.id = 'puffin'";
    assert_eq!(world.column(outcomes), ["bad request"]);
    let spoilt = "SELECT count(*) FROM outcomes o WHERE outcome = 'bad request'
                  AND key NOT IN (SELECT key FROM ids WHERE id = 'puffin')";
    assert_eq!(world.column(spoilt), ["0"]);
}

#[test]
fn tokens_that_are_refused_end_the_crawl_and_narrow_ones_some_of_it() {
    let world = World::start(60, "--limits off");
    for token in ["bad", "revoked"] {
        let mut command = world.command("--limits off");
        command.env("WEIBO_ACCESS_TOKEN", token);
        let output = command.output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
        assert!(!text(&output.stderr).contains(TOKEN));
    }
    // Lists of others are forbidden; the profile is not.
    let mut command = world.command("--limits off");
    finish(command.env("WEIBO_ACCESS_TOKEN", "narrow"));
    let outcomes = "SELECT DISTINCT query || ': ' || outcome FROM outcomes
                    WHERE query IN ('profile', 'timeline', 'following')";
    assert_eq!(
        world.column(outcomes),
        ["following: forbidden", "profile: ok", "timeline: forbidden"]
    );
}

#[test]
fn a_cap_ends_the_run_with_what_it_has_and_the_next_goes_on() {
    let world = World::start(60, "--limits off");
    let truth = Truth::read(&world.sim);
    let output = world.command("--limits off --calls 20").output();
    let output = output.expect("the binary runs");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert_eq!(world.sim.calls(), 20);
    let committed = world.column("SELECT count(*) FROM query_log");
    assert_ne!(committed, ["0"]);
    world.crawl("--limits off");
    world.compare(&truth, &[]);
}
