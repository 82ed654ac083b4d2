//! Bluesky's AppView. Whoever is found is crawled, so that everything has to be there in the end.

use crate::kill::run_and_kill;
use crate::oracle::{Rows, field};
use crate::support::{Dice, Folder, Running, Sim, open, rows, text};
use crate::truth::{difference, held_rows};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const BASE_32: &str = "abcdefghijklmnopqrstuvwxyz234567";
const SORTED_32: &str = "234567abcdefghijklmnopqrstuvwxyz";
const ROBOTS: &str = "relations,profiles,statuses,comments,reposts,likes";
const TABLES: [(&str, &str); 4] = [
    (
        "users",
        "SELECT key AS \"@\", display_name, created_us, followers_count, following_count,
                statuses_count FROM users",
    ),
    (
        "relations",
        "SELECT source AS \"@\", target AS \"@\" FROM user_relations",
    ),
    (
        "statuses",
        "SELECT key AS \"@\", author AS \"@\", created_us, text, language, reply_to AS \"@\",
                replies_count, reposts_count, likes_count FROM statuses WHERE author IS NOT NULL",
    ),
    (
        "links",
        "SELECT kind, from_key AS \"@\", to_key AS \"@\" FROM links",
    ),
];

/// The last 64 bits of a number in some alphabet: what the network's names are made of.
fn number(name: &str, alphabet: &str) -> String {
    let value = name.chars().fold(0_u128, |value, letter| {
        let digit = alphabet.find(letter).expect("a letter of the alphabet");
        value * 32 + digit as u128
    });
    (value as u64).to_string()
}

/// The number of an account or a post; tags are called by their names.
fn local_name(id: &str) -> String {
    let account = |did: &str| {
        let name = did.strip_prefix("did:plc:").expect("an account");
        number(name, BASE_32)
    };
    let Some(rest) = id.strip_prefix("at://") else {
        return if id.starts_with("did:") {
            account(id)
        } else {
            id.to_owned()
        };
    };
    let key = rest.rsplit_once('/').expect("a record").1;
    format!("post {}", number(key, SORTED_32))
}

struct World {
    folder: Folder,
    sim: Sim,
}

impl World {
    fn start(words: &str) -> Self {
        let folder = Folder::new();
        let words = format!("--dialect bluesky --users 120 --seed 5 --speed 0 {words}");
        let sim = Sim::start(&folder, &words);
        Self { folder, sim }
    }

    fn command(&self, words: &str) -> Command {
        self.command_with("bluesky", words)
    }

    /// Anonymously.
    fn command_with(&self, definition: &str, words: &str) -> Command {
        let mut command = self.command_as(definition, words);
        command.arg("--anonymous");
        command
    }

    fn command_as(&self, definition: &str, words: &str) -> Command {
        let address = &self.sim.address;
        let seed = self.sim.first_handle().replace('_', "-");
        let mut command = self.folder.kittiwake();
        command.args([
            "crawl",
            definition,
            &format!("{seed}.sim.example"),
            "--host",
            address,
            "--clock-from",
            address,
        ]);
        let fixed = "--hosts none --into t.db --depth 20 --until-idle --quiet";
        command.args(fixed.split(' '));
        command.args(["--at", &format!("directory={address}")]);
        command.args(["--robots", ROBOTS, "--include-opted-out", "a test"]);
        command.args(words.split_whitespace());
        command
    }

    fn crawl(&self, words: &str) {
        let output = self.command(words).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(self.sim.violations(), 0);
    }

    fn held(&self, sql: &str) -> Rows {
        let tables = open(&self.folder.path("t.db"));
        let ids = rows(&tables, "SELECT key, id FROM ids WHERE canonical");
        let names: BTreeMap<String, String> = ids
            .into_iter()
            .map(|row| (row[0].clone(), local_name(&row[1])))
            .collect();
        held_rows(&tables, &names, sql)
    }

    #[track_caller]
    fn compare(&self, truth: &Truth) {
        let mut counts = Vec::new();
        for (table, sql) in TABLES {
            let mut held = self.held(sql);
            if table == "statuses" {
                held = held.into_iter().map(|row| truth.known(row)).collect();
            }
            let expected = truth.table(table);
            let found = difference(table, &expected, &held);
            assert!(found.is_empty(), "{}", found.join("\n"));
            assert!(!held.is_empty(), "no {table}");
            counts.push(format!("{} {table}", held.len()));
        }
        let tables = open(&self.folder.path("t.db"));
        let mended = rows(&tables, "SELECT target FROM query_log WHERE mended > 0");
        assert!(mended.is_empty(), "values that were dropped: {mended:?}");
        println!("equal to the truth: {}", counts.join(", "));
    }
}

/// What everybody is shown, with numbers for names.
struct Truth {
    users: Vec<Value>,
    relations: Vec<Value>,
    statuses: BTreeMap<String, Value>,
    likes: Vec<Value>,
    reposters: Vec<Value>,
    /// Numbers by the truth's own names.
    numbers: BTreeMap<String, String>,
}

impl Truth {
    fn read(sim: &Sim) -> Self {
        let users = sim.truth("users");
        let mut numbers: BTreeMap<String, String> = users
            .iter()
            .map(|row| (field(row, "id"), field(row, "local_id")))
            .collect();
        let mut statuses = BTreeMap::new();
        for row in sim.truth("statuses") {
            let name = format!("post {}", field(&row, "local_id"));
            numbers.insert(field(&row, "id"), name.clone());
            // Reposts are links here, and no posts.
            if row["repost_of"].is_null() {
                statuses.insert(name, row);
            }
        }
        Self {
            users,
            relations: sim.truth("user_relations"),
            statuses,
            likes: sim.truth("likes"),
            reposters: sim.truth("reposters"),
            numbers,
        }
    }

    fn number(&self, row: &Value, name: &str) -> String {
        let id = field(row, name);
        self.numbers.get(&id).cloned().unwrap_or(id)
    }

    fn pairs(&self, rows: &[Value], first: &str, second: &str) -> Rows {
        let pair = |row| vec![self.number(row, first), self.number(row, second)];
        rows.iter().map(pair).collect()
    }

    fn table(&self, name: &str) -> Rows {
        match name {
            "users" => self.user_rows(),
            "relations" => self.pairs(&self.relations, "source", "target"),
            "statuses" => self.statuses.keys().map(|id| self.status_row(id)).collect(),
            _ => self.links(),
        }
    }

    fn user_rows(&self) -> Rows {
        let mut posts: BTreeMap<String, usize> = BTreeMap::new();
        for status in self.statuses.values() {
            *posts.entry(self.number(status, "author")).or_default() += 1;
        }
        let present = self.users.iter().filter(|user| user["suspended"] == false);
        present
            .map(|user| {
                let id = field(user, "local_id");
                let count = posts.get(&id).copied().unwrap_or(0).to_string();
                vec![
                    id,
                    field(user, "display_name"),
                    field(user, "created_us"),
                    field(user, "followers"),
                    field(user, "following"),
                    count,
                ]
            })
            .collect()
    }

    fn status_row(&self, id: &str) -> Vec<String> {
        let status = &self.statuses[id];
        vec![
            id.to_owned(),
            self.number(status, "author"),
            // The network tells times in milliseconds.
            (status["created_us"].as_i64().expect("a time") / 1_000 * 1_000).to_string(),
            plain(&field(status, "content")),
            field(status, "language"),
            self.number(status, "reply_to"),
            field(status, "replies"),
            field(status, "reposts"),
            field(status, "likes"),
        ]
    }

    /// A row of the file without the name of what it answers, if nobody is shown that any more.
    fn known(&self, mut row: Vec<String>) -> Vec<String> {
        if !self.statuses.contains_key(&row[5]) {
            row[5].clear();
        }
        row
    }

    fn links(&self) -> Rows {
        let mut links = Rows::new();
        let of_kind = |kind: &str, pairs: Rows| -> Rows {
            let named = |mut row: Vec<String>| {
                row.insert(0, kind.to_owned());
                row
            };
            pairs.into_iter().map(named).collect()
        };
        links.extend(of_kind("like", self.pairs(&self.likes, "user", "status")));
        let reposts = self.pairs(&self.reposters, "user", "status");
        links.extend(of_kind("repost", reposts));
        for (id, status) in &self.statuses {
            for tag in status["tags"].as_array().into_iter().flatten() {
                let tag = tag.as_str().expect("a tag").to_lowercase();
                links.insert(vec!["tag".to_owned(), id.clone(), tag]);
            }
            for user in status["mentions"].as_array().into_iter().flatten() {
                let user = &self.numbers[user.as_str().expect("a user")];
                links.insert(vec!["mention".to_owned(), id.clone(), user.clone()]);
            }
        }
        links
    }
}

/// The words of a post: marks are left out, lines and paragraphs are lines.
fn plain(html: &str) -> String {
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
    text.replace("&amp;", "&").trim().to_owned()
}

#[test]
fn a_crawl_holds_everything_that_is_shown() {
    let world = World::start("--limits off");
    let truth = Truth::read(&world.sim);
    world.crawl("--limits off");
    world.compare(&truth);
    // Twenty-five accounts a call, but for the last.
    let ledger = world.sim.json("/_sim/ledger");
    let calls = ledger["calls"].as_array().expect("calls");
    let batches: Vec<usize> = calls
        .iter()
        .filter(|call| call["query"] == "profiles")
        .map(|call| field(call, "subject").split(',').count())
        .collect();
    let asked: usize = batches.iter().sum();
    assert!(
        asked * 100 >= batches.len().saturating_sub(1) * 25 * 95,
        "{batches:?}"
    );
}

#[test]
fn an_id_that_spoils_its_batch_costs_only_itself() {
    let world = World::start("--limits off");
    let truth = Truth::read(&world.sim);
    world.crawl("--limits off did:plc:puffin! did:plc:nobody");
    let tables = open(&world.folder.path("t.db"));
    let refused = "SELECT id FROM query_log WHERE query = 'profiles' AND status = 400";
    let refused = rows(&tables, refused).len();
    println!("{refused} lookups were refused");
    // Halves of 25 are five.
    assert!((1..=6).contains(&refused), "{refused}");
    let held = held_profiles(&world);
    assert_eq!(held, truth.table("users").len().to_string());
    let outcomes = "SELECT DISTINCT i.id, o.outcome FROM outcomes o JOIN ids i ON i.key = o.key
                    WHERE o.query IN ('profiles', 'profile') AND o.outcome NOT IN ('ok', 'gone', 'suspended')";
    let outcomes = rows(&tables, outcomes);
    let expected = [
        ["did:plc:nobody", "not found"],
        ["did:plc:puffin!", "bad request"],
    ];
    assert_eq!(
        outcomes,
        expected.map(|row| row.map(str::to_owned).to_vec()).into()
    );
}

fn held_profiles(world: &World) -> String {
    let tables = open(&world.folder.path("t.db"));
    let count = "SELECT count(*) FROM users WHERE created_us IS NOT NULL";
    let count = rows(&tables, count).into_iter().next();
    count.expect("a count").remove(0)
}

#[test]
fn tokens_that_are_refused_end_the_crawl_and_narrow_ones_none_of_it() {
    let world = World::start("--limits off");
    let truth = Truth::read(&world.sim);
    let crawl = |token: &str| {
        let mut command = world.command_as("bluesky", "--limits off");
        let output = command.env("KITTIWAKE_BLUESKY_TOKEN", token).output();
        let output = output.expect("the binary runs");
        let told = [text(&output.stdout), text(&output.stderr)].concat();
        assert!(!told.contains(token), "{told}");
        (output.status.code(), told)
    };
    for token in ["bad-planted-0123456789", "revoked-planted-0123456789"] {
        let (code, told) = crawl(token);
        assert_eq!(code, Some(4), "{told}");
        assert!(told.contains("kittiwake login"), "{told}");
    }
    // Nothing here needs more than being somebody.
    let (code, told) = crawl("narrow-planted-0123456789");
    assert_eq!(code, Some(0), "{told}");
    world.compare(&truth);
}

#[test]
fn a_cap_ends_the_run_with_what_it_has_and_the_next_goes_on() {
    let world = World::start("--limits off");
    let truth = Truth::read(&world.sim);
    let output = world.command("--limits off --calls 20").output();
    let output = output.expect("the binary runs");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert_eq!(world.sim.calls(), 20);
    world.crawl("--limits off");
    world.compare(&truth);
}

#[test]
fn limits_are_kept_and_kills_lose_nothing() {
    let world = World::start("--limits strict --limit-speed 60");
    let truth = Truth::read(&world.sim);
    let mut dice = Dice::new("kills of a crawl of bluesky");
    for round in 0..6 {
        run_and_kill(&world.sim, &mut world.command(""), &mut dice, round);
    }
    world.crawl("");
    world.compare(&truth);
}

#[test]
fn a_hostile_network_takes_only_what_its_log_says() {
    let world = World::start("--limits off --limit-speed 600 --faults hostile --stall-ms 50");
    let before = Truth::read(&world.sim);
    // Pages of ten, so that lists of a small world have several.
    let shipped = text(&world.folder.run(&["network", "show", "bluesky"]).stdout);
    let small = shipped.replace("size = 100", "size = 10");
    assert_ne!(small, shipped);
    std::fs::write(world.folder.path("small.toml"), small).expect("a definition");
    // Politely, a host that fails all the time is asked hardly any more.
    let words = "--concurrency 8 --limits off";
    let mut crawl = Running::start(&mut world.command_with("small.toml", words));
    assert_eq!(crawl.wait(), Some(0));
    assert_eq!(world.sim.violations(), 0);
    let after = Truth::read(&world.sim);
    let happened = world.sim.json("/_sim/faults/summary");
    let happened = happened["by_kind"].as_object().expect("counts");
    let absent: Vec<_> = happened.iter().filter(|(_, count)| **count == 0).collect();
    assert!(absent.is_empty(), "faults that never happened: {absent:?}");
    for (table, sql) in TABLES {
        // Counts differ with the moment; who and what do not.
        let width = if matches!(table, "users" | "statuses") {
            1
        } else {
            3
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
