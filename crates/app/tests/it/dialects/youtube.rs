//! YouTube as the synthetic network speaks it, crawled with the shipped definition.

use super::scene::Scene;
use super::{seconds, without_marks};
use crate::oracle::{Rows, field};
use crate::strict::{Held, held_between, kill_and_resume};
use crate::support::{Folder, Sim, open, rows, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};

const KEY: &str = "planted-key-0123456789";
const PATH: &str = "/youtube/v3";
const ROBOTS: &str = "relations,profiles,uploads,videos,comments,replies";
const DEFINITION: &str = include_str!("../../../../../networks/youtube.toml");
const LIMITS: &str = include_str!("../../../../sim/src/youtube/limits.toml");
const BATCH: usize = 50;
/// So many answers come with a thread.
const INLINE: usize = 5;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn letters(number: u64) -> String {
    let digits = (0..11).rev().map(|place| number >> (6 * place) & 63);
    digits
        .map(|digit| char::from(LETTERS[digit as usize]))
        .collect()
}

fn mixed(number: u64) -> String {
    letters((number ^ (number >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

fn number(row: &Value) -> u64 {
    field(row, "local_id").parse().expect("a number")
}

/// The truth, as YouTube shows it.
struct Truth {
    users: BTreeMap<String, Value>,
    statuses: BTreeMap<String, Value>,
    follows: Vec<(String, String)>,
    /// By video all comments under it, each with the one that begins its thread.
    comments: BTreeMap<String, Vec<(String, String)>>,
    answers: BTreeSet<String>,
}

impl Truth {
    fn read(sim: &Sim) -> Self {
        let by_id = |rows: Vec<Value>| -> BTreeMap<String, Value> {
            let entry = |row: Value| (field(&row, "id"), row);
            rows.into_iter().map(entry).collect()
        };
        let relations = sim.truth("user_relations").into_iter();
        let answers = sim.truth("threads").into_iter();
        let mut truth = Self {
            users: by_id(sim.truth("users")),
            statuses: by_id(sim.truth("statuses")),
            follows: relations
                .filter(|row| row["in_following"] == true)
                .map(|row| (field(&row, "source"), field(&row, "target")))
                .collect(),
            comments: BTreeMap::new(),
            answers: answers.map(|row| field(&row, "status")).collect(),
        };
        for id in truth.statuses.keys() {
            let mut above = vec![id.clone()];
            while let Some(parent) = above
                .last()
                .map(|id| field(&truth.statuses[id], "reply_to"))
                && !parent.is_empty()
            {
                above.push(parent);
            }
            let video = above.pop().unwrap_or_default();
            if let Some(thread) = above.last()
                && truth.is_video(&video)
                && truth.has_comments(&video)
            {
                let placed = (id.clone(), thread.clone());
                truth.comments.entry(video).or_default().push(placed);
            }
        }
        truth
    }

    fn is_video(&self, id: &str) -> bool {
        field(&self.statuses[id], "repost_of").is_empty() && !self.answers.contains(id)
    }

    fn author(&self, status: &str) -> String {
        field(&self.statuses[status], "author")
    }

    fn has_comments(&self, video: &str) -> bool {
        self.users[&self.author(video)]["locked"] != true
    }

    fn videos_of<'a>(&'a self, user: &'a str) -> impl Iterator<Item = &'a String> {
        let statuses = self.statuses.keys();
        statuses.filter(move |id| self.is_video(id) && self.author(id) == user)
    }

    /// Somebody who subscribes to many and is known to some.
    fn seed(&self) -> String {
        let mut degrees: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for (source, target) in &self.follows {
            degrees.entry(source).or_default().0 += 1;
            degrees.entry(target).or_default().1 += 1;
        }
        let best = degrees
            .into_iter()
            .max_by_key(|(_, (out, into))| (*out).min(*into));
        best.expect("a world with relations").0.to_owned()
    }

    /// Everybody whom subscriptions and comments lead to.
    fn reached(&self, seed: &str) -> BTreeSet<String> {
        let mut reached = BTreeSet::from([seed.to_owned()]);
        let mut open = vec![seed.to_owned()];
        while let Some(user) = open.pop() {
            let follows = self.follows.iter().filter(|(source, _)| *source == user);
            let mut next: Vec<String> = follows.map(|(_, target)| target.clone()).collect();
            for video in self.videos_of(&user) {
                let comments = self.comments.get(video).into_iter().flatten();
                next.extend(comments.map(|(comment, _)| self.author(comment)));
            }
            for user in next {
                if reached.insert(user.clone()) {
                    open.push(user);
                }
            }
        }
        reached
    }

    fn channel(&self, user: &str) -> String {
        let id = number(&self.users[user]);
        format!("channel UC{}{}", letters(id), mixed(id))
    }

    fn video(&self, status: &str) -> String {
        format!("video {}", letters(number(&self.statuses[status])))
    }

    fn comment(&self, status: &str, thread: &str) -> String {
        let first = number(&self.statuses[thread]);
        let first = format!("comment Ug{}{}4AaABAg", letters(first), &mixed(first)[..6]);
        if status == thread {
            return first;
        }
        let id = number(&self.statuses[status]);
        format!("{first}.{}{}", letters(id), mixed(id))
    }

    fn expected(&self, seed: &str) -> Expected {
        let mut expected = Expected::default();
        for user in self.reached(seed) {
            expected.users.insert(self.user_row(&user));
            for (source, target) in &self.follows {
                if *source == user {
                    let pair = [self.channel(source), self.channel(target)];
                    expected.follows.insert(pair.to_vec());
                }
            }
            for video in self.videos_of(&user) {
                self.expect_video(video, &mut expected);
            }
        }
        expected
    }

    fn user_row(&self, user: &str) -> Vec<String> {
        let row = &self.users[user];
        let hides = row["hide_collections"] == true;
        let title = field(row, "display_name");
        let name = field(row, "username");
        let row = [
            self.channel(user),
            if title.is_empty() {
                name.clone()
            } else {
                title
            },
            format!("@{name}"),
            without_marks(&field(row, "note")),
            field(row, "created_us"),
            if hides {
                String::new()
            } else {
                field(row, "followers")
            },
            self.videos_of(user).count().to_string(),
        ];
        row.to_vec()
    }

    fn expect_video(&self, id: &str, expected: &mut Expected) {
        let status = &self.statuses[id];
        let author = self.author(id);
        let comments = self.comments.get(id).map_or(&[][..], Vec::as_slice);
        let words = without_marks(&field(status, "content"));
        let video = self.video(id);
        expected.statuses.insert(
            [
                video.clone(),
                self.channel(&author),
                seconds(status, "created_us"),
                String::new(),
                words,
                String::new(),
                comments.len().to_string(),
                field(status, "likes"),
                field(status, "language"),
            ]
            .to_vec(),
        );
        for tag in status["tags"].as_array().into_iter().flatten() {
            let tag = tag.as_str().unwrap_or_default().to_lowercase();
            let link = ["tag".to_owned(), video.clone(), format!("tag {tag}")];
            expected.links.insert(link.to_vec());
        }
        for (comment, thread) in comments {
            let status = &self.statuses[comment];
            let author = self.channel(&self.author(comment));
            let name = self.comment(comment, thread);
            let is_first = comment == thread;
            let parent = if is_first {
                video.clone()
            } else {
                self.comment(thread, thread)
            };
            let below = comments
                .iter()
                .filter(|(_, other)| is_first && other == thread);
            let below = below.count().saturating_sub(usize::from(is_first));
            expected.statuses.insert(
                [
                    name.clone(),
                    author.clone(),
                    seconds(status, "created_us"),
                    seconds(status, "edited_us"),
                    without_marks(&field(status, "content")),
                    parent.clone(),
                    below.to_string(),
                    field(status, "likes"),
                    String::new(),
                ]
                .to_vec(),
            );
            let row = [name, parent, video.clone(), author];
            expected.comments.insert(row.to_vec());
        }
    }
}

#[derive(Default)]
struct Expected {
    users: Rows,
    follows: Rows,
    statuses: Rows,
    comments: Rows,
    links: Rows,
}

/// What is compared, and how a crawl's file shows it.
const TABLES: [(&str, &str); 5] = [
    (
        "users",
        "SELECT key AS \"@\", display_name, handle, description, created_us, followers_count, statuses_count
         FROM users",
    ),
    (
        "user_relations",
        "SELECT source AS \"@\", target AS \"@\" FROM user_relations",
    ),
    (
        "statuses",
        "SELECT key AS \"@\", author AS \"@\", created_us, edited_us, text, reply_to AS \"@\", replies_count,
                likes_count, language FROM statuses",
    ),
    (
        "comments",
        "SELECT key AS \"@\", parent AS \"@\", root AS \"@\", author AS \"@\" FROM comments",
    ),
    (
        "links",
        "SELECT kind, from_key AS \"@\", to_key AS \"@\" FROM links",
    ),
];

impl Expected {
    fn table(&self, name: &str) -> &Rows {
        match name {
            "users" => &self.users,
            "user_relations" => &self.follows,
            "statuses" => &self.statuses,
            "comments" => &self.comments,
            _ => &self.links,
        }
    }
}

/// A world that YouTube shows.
struct World {
    scene: Scene,
    truth: Truth,
    seed: String,
}

impl World {
    fn new(words: &str) -> Self {
        Self::of(Scene::new("youtube", words))
    }

    /// The same with other limits, in the file `limits.toml`.
    fn limited(limits: &str, words: &str) -> Self {
        let folder = Folder::new();
        std::fs::write(folder.path("limits.toml"), limits).expect("a file");
        let words = format!("--limits-file limits.toml {words}");
        let sim = Scene::serve(&folder, "youtube", &words);
        Self::of(Scene { folder, sim })
    }

    fn of(scene: Scene) -> Self {
        let truth = Truth::read(&scene.sim);
        let seed = truth.seed();
        Self { scene, truth, seed }
    }

    fn handle(&self) -> String {
        format!("@{}", field(&self.truth.users[&self.seed], "username"))
    }

    fn crawl(&self, network: &str, token: &str, words: &str) -> Command {
        let words = format!("{} --depth 20 {words}", self.handle());
        self.scene.crawl(network, PATH, token, &words)
    }

    fn run(&self, network: &str, token: &str, words: &str) -> Output {
        let mut crawl = self.crawl(network, token, words);
        crawl.output().expect("the binary runs")
    }

    /// Crawls everything.
    fn whole(&self, network: &str, words: &str) {
        let words = format!("--robots {ROBOTS} --until-idle {words}");
        let output = self.run(network, KEY, &words);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }

    fn compare(&self) {
        let expected = self.truth.expected(&self.seed);
        assert!(expected.users.len() > 50 && expected.comments.len() > 50);
        let mut held = Held::open(&self.scene.folder);
        for (table, sql) in TABLES {
            held.compare(table, expected.table(table), sql);
        }
        held.finish();
    }

    fn select(&self, sql: &str) -> Vec<Vec<String>> {
        rows(&open(&self.scene.folder.path("t.db")), sql)
            .into_iter()
            .collect()
    }

    fn definition(&self, name: &str, changes: &[(&str, &str)]) {
        let mut definition = DEFINITION.to_owned();
        for (from, to) in changes {
            assert!(definition.contains(from), "{from}");
            definition = definition.replace(from, to);
        }
        std::fs::write(self.scene.folder.path(name), definition).expect("a definition");
    }
}

#[test]
fn a_crawl_of_youtube_equals_the_truth() {
    let world = World::new("--users 200 --limits off");
    world.whole("youtube", "--limits off --concurrency 8");
    world.compare();
}

#[test]
fn a_crawl_of_youtube_keeps_its_units_of_a_day() {
    // A day of limits passes in two seconds, and has a thirtieth of the units.
    let limits = LIMITS.replace("limit = 10000", "limit = 300");
    let world = World::limited(&limits, "--users 120 --limit-speed 43200");
    world.definition("youtube.toml", &[("limit = 10000", "limit = 300")]);
    world.whole("youtube.toml", "--reserve 0 --pace burst");
    let ledger = world.scene.sim.json("/_sim/ledger?calls=0");
    assert_eq!(ledger["violations_total"], 0, "{}", ledger["violations"]);
    let windows = ledger["windows"].as_array().expect("windows");
    let used: Vec<u64> = windows
        .iter()
        .filter_map(|it| it["used"].as_u64())
        .collect();
    println!("units by day: {used:?}");
    assert!(used.len() > 1, "the limit was never in the way");
    world.compare();
}

#[test]
fn a_crawl_of_youtube_that_is_killed_loses_and_repeats_nothing() {
    let world = World::new("--users 120 --limits off");
    let words = format!("--robots {ROBOTS} --until-idle --limits off --concurrency 4");
    let crawl = || world.crawl("youtube", KEY, &words);
    // Keys are taken out of what a crawl writes down.
    let asked = |target: String| target.replace(&format!("&key={KEY}"), "");
    let targets = || {
        let all = world.scene.sim.targets_after(0).into_iter();
        all.map(asked).collect()
    };
    kill_and_resume(&world.scene.folder, crawl, targets, 150);
    world.compare();
}

#[test]
fn a_hostile_youtube_takes_only_what_its_log_says() {
    let world = World::new("--users 200 --limit-speed 3600 --stall-ms 50 --faults hostile");
    let words = format!("--robots {ROBOTS} --until-idle --concurrency 8");
    for calls in [60, 150] {
        let mut process = crate::support::Running::start(&mut world.crawl("youtube", KEY, &words));
        world.scene.sim.wait_for_calls(calls);
        process.kill();
    }
    world.whole("youtube", "--concurrency 8");
    assert_eq!(world.scene.sim.violations(), 0);
    let summary = world.scene.sim.json("/_sim/faults/summary");
    for kind in [
        "ban",
        "posts_withdrawn",
        "relations_withdrawn",
        "reset_in_body",
    ] {
        assert_ne!(
            summary["by_kind"][kind], 0,
            "{kind} never happened: {summary}"
        );
    }
    let most = world.truth.expected(&world.seed);
    let least = Truth::read(&world.scene.sim).expected(&world.seed);
    let names = names(&world.scene.folder);
    for (table, sql) in TABLES {
        // Counts and texts differ with the moment.
        let columns = if table == "user_relations" || table == "links" {
            3
        } else {
            1
        };
        let tables = open(&world.scene.folder.path("t.db"));
        let mut held = crate::truth::held_rows(&tables, &names, sql);
        if table == "user_relations" {
            let gone = sql.replace("user_relations", "invalid_relations");
            held.extend(crate::truth::held_rows(&tables, &names, &gone));
        }
        held_between(
            (table, columns),
            &held,
            (least.table(table), most.table(table)),
        );
    }
}

/// The names of all keys of a crawl.
fn names(folder: &Folder) -> BTreeMap<String, String> {
    let tables = open(&folder.path("t.db"));
    let sql = "SELECT key, type, id FROM ids ORDER BY canonical, alias";
    let (_, found) = crate::support::Tables::select(&tables, sql);
    let name = |row: Vec<String>| (row[0].clone(), format!("{} {}", row[1], row[2]));
    found.into_iter().map(name).collect()
}

#[test]
fn lookups_of_youtube_are_full_and_an_id_of_nobody_costs_only_itself() {
    let world = World::new("--users 300 --limits off");
    let channels: Vec<String> = world
        .truth
        .users
        .iter()
        .filter(|(_, user)| user["suspended"] == false)
        .map(|(id, _)| world.truth.channel(id).replace("channel ", "id:"))
        .collect();
    let nobody = "id:UCAAAAAAAAAAAAAAAAAAAAAA";
    let words = format!("{nobody} {} --depth 0", channels.join(" "));
    let words = format!("{words} --robots profiles,uploads,videos --until-idle --limits off");
    let mut crawl = world.scene.crawl("youtube", PATH, KEY, &words);
    let output = crawl.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for query in ["channels", "videos"] {
        let calls = world.scene.calls_of(query);
        let batches = calls.iter().filter(|call| {
            call["target"]
                .as_str()
                .is_some_and(|it| it.contains("maxResults=50"))
        });
        let sizes: Vec<usize> = batches
            .map(|call| field(call, "subject").split(',').count())
            .collect();
        let ids: usize = sizes.iter().sum();
        let full = 100 * ids / (sizes.len() * BATCH);
        println!(
            "{query}: {ids} ids in {} calls, full to {full} %",
            sizes.len()
        );
        // The last call has what is left.
        let least = ids.div_ceil(BATCH);
        assert!(
            sizes.len() <= least.max(1) + least / 20,
            "{query}: {sizes:?}"
        );
    }
    let outcomes = world.select(
        "SELECT o.outcome, count(DISTINCT o.key) FROM outcomes o JOIN ids i ON i.key = o.key
         WHERE o.query IN ('channel', 'channels') AND i.type = 'channel' AND i.canonical GROUP BY 1",
    );
    let found = [
        ["not found".to_owned(), "1".to_owned()],
        ["ok".to_owned(), channels.len().to_string()],
    ];
    assert_eq!(outcomes, found.map(Vec::from));
}

#[test]
fn keys_that_youtube_refuses_end_with_the_code_of_authentication() {
    let world = World::new("--users 60 --limits off");
    for token in ["bad-key", "revoked-key", "narrow-key"] {
        let output = world.run("youtube", token, &format!("--robots {ROBOTS} --until-idle"));
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{token}: {message}");
        assert!(!message.contains(token), "{message}");
    }
    // The same file goes on with a key that is good.
    world.whole("youtube", "--limits off");
    world.compare();
}

#[test]
fn a_permission_that_is_missing_stops_only_who_needs_it() {
    let world = World::new("--users 80 --limits off");
    // As a token of somebody who has logged in.
    world.definition("youtube.toml", &[("send = { query = \"key\" }\n", "")]);
    let words = format!("--robots {ROBOTS} --until-idle --limits off");
    let output = world.run("youtube.toml", "narrow-token", &words);
    let message = text(&output.stderr);
    println!("{:?} {message}", output.status.code());
    let sql = "SELECT query, outcome, count(*) FROM query_log
               WHERE query IN ('subscriptions', 'uploads', 'videos', 'threads') GROUP BY 1, 2";
    let calls = world.select(sql);
    let of = |query: &str, outcome: &str| {
        let row = calls
            .iter()
            .find(|row| row[0] == query && row[1] == outcome);
        row.map_or(0, |row| row[2].parse::<u64>().unwrap_or(0))
    };
    assert_eq!(of("threads", "ok"), 0, "{calls:?}");
    assert!(of("threads", "forbidden") > 0, "{calls:?}");
    assert!(
        of("subscriptions", "ok") > 20 && of("videos", "ok") > 3,
        "{calls:?}"
    );
}

#[test]
fn a_day_whose_units_are_spent_ends_a_crawl_that_goes_on_the_next_day() {
    // The project has fewer units than the definition believes.
    let limits = LIMITS.replace("limit = 10000", "limit = 12");
    let world = World::limited(&limits, "--users 80 --limit-speed 1");
    let words = format!("--robots {ROBOTS} --until-idle --max-time 5s");
    let output = world.run("youtube", KEY, &words);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let refused = world.scene.sim.violations();
    assert!((1..=10).contains(&refused), "{refused} calls were refused");
    let sql = "SELECT DISTINCT reason FROM query_log WHERE outcome = 'quota exhausted'";
    assert_eq!(world.select(sql), [["quotaExceeded".to_owned()].to_vec()]);
    let sql = "SELECT count(*) FROM query_log WHERE outcome = 'ok'";
    let before = world.select(sql);
    world.scene.sim.get("/_sim/advance?limit_seconds=86400");
    let output = world.run("youtube", KEY, &words);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert_ne!(world.select(sql), before, "it does not go on the next day");
}

#[test]
fn searches_that_are_used_up_leave_the_rest_alone() {
    let limits = LIMITS.replace("limit = 100\n", "limit = 2\n");
    let world = World::limited(&limits, "--users 20 --limit-speed 20");
    let words = "search:the search:a search:sea search:gull --robots relations,profiles,search --until-idle --max-time 10s";
    let output = world.run("youtube", KEY, words);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let sql = "SELECT DISTINCT reason FROM query_log WHERE outcome = 'quota exhausted'";
    assert_eq!(
        world.select(sql),
        [["quota of the day".to_owned()].to_vec()]
    );
    let sql =
        "SELECT count(*) FROM frontier WHERE robot IN ('relations', 'profiles') AND visits = 0";
    assert_eq!(world.select(sql), [["0".to_owned()].to_vec()]);
}

/// What a crawl of everything costs, beside the least that pages and batches allow.
#[test]
fn calls_for_a_thousand_channels_and_videos() {
    let users = std::env::var("KITTIWAKE_TEST_CALLS_USERS").unwrap_or_else(|_| "150".to_owned());
    let world = World::new(&format!("--users {users} --limits off"));
    world.whole("youtube", "--limits off --concurrency 8");
    let truth = &world.truth;
    let reached = truth.reached(&world.seed);
    let videos: Vec<&String> = reached
        .iter()
        .flat_map(|user| truth.videos_of(user))
        .collect();
    let pages = |count: usize, size: usize| count.div_ceil(size).max(1);
    let follows = |user: &String| {
        truth
            .follows
            .iter()
            .filter(|(source, _)| source == user)
            .count()
    };
    let hidden = |user: &&String| truth.users[*user]["hide_collections"] == true;
    let shown = reached.iter().filter(|user| !hidden(user));
    let subscriptions: usize = shown.map(|user| pages(follows(user), BATCH)).sum::<usize>()
        + reached.iter().filter(hidden).count();
    let uploads = reached
        .iter()
        .map(|user| pages(truth.videos_of(user).count(), BATCH))
        .sum();
    let mut threads = 0;
    let mut replies = 0;
    for video in &videos {
        let comments = truth.comments.get(*video).map_or(&[][..], Vec::as_slice);
        let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
        for (comment, thread) in comments {
            *sizes.entry(thread).or_default() += usize::from(comment != thread);
        }
        if !sizes.is_empty() {
            threads += pages(sizes.len(), 100);
        }
        let long = sizes.values().filter(|size| **size > INLINE);
        replies += long.map(|size| pages(*size, 100)).sum::<usize>();
    }
    let least: [(&str, usize, usize); 6] = [
        ("subscriptions", reached.len(), subscriptions),
        ("channels", reached.len(), reached.len().div_ceil(BATCH)),
        ("playlistItems", reached.len(), uploads),
        ("videos", videos.len(), videos.len().div_ceil(BATCH)),
        ("commentThreads", videos.len(), threads),
        ("comments", videos.len(), replies),
    ];
    println!("| list | of | calls | at the least | calls per 1 000 | at the least |");
    println!("|---|---|---|---|---|---|");
    for (query, of, least) in least {
        let calls = world.scene.calls_of(query).len();
        let per = |calls: usize| calls as f64 * 1_000.0 / of as f64;
        println!(
            "| {query} | {of} | {calls} | {least} | {:.1} | {:.1} |",
            per(calls),
            per(least)
        );
        assert!(
            calls >= least,
            "{query}: {calls} of {least}, so that something is missing"
        );
        // Videos that nobody has commented on are a matter of chance in a small world.
        let few = 3 + least / 20;
        assert!(
            query == "commentThreads" || calls <= least + few,
            "{query}: {calls} of {least}"
        );
    }
}
