//! Reddit: what a crawl holds is what is true, whatever the limits, the faults and the tokens.

use super::calls::{Least, table};
use super::{Scene, Speaks, seconds, told, without_marks};
use crate::kill::{committed, run_and_kill};
use crate::oracle::{Rows, field};
use crate::strict::{Held, finish, held_between};
use crate::support::{Dice, Folder, Sim};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const REDDIT: Speaks = Speaks {
    network: "reddit",
    base: "",
    token_variable: "KITTIWAKE_REDDIT_TOKEN",
};
/// An application's own token.
const APP: &str = "laboratory-planted-0123456789";
const ROBOTS: &str = "profiles,statuses,comments,details";
/// Trees alone: whatever is in the file came by them.
const TREES: &str = "comments";
/// Of any list so many are shown.
const CAP: usize = 1_000;
const BATCH: usize = 100;
const TITLE_CHARS_MAX: usize = 300;

/// A number as Reddit writes it.
fn base36(number: &str) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut number: u64 = number.parse().expect("a number");
    let mut letters = Vec::new();
    while number > 0 || letters.is_empty() {
        letters.push(char::from(DIGITS[(number % 36) as usize]));
        number /= 36;
    }
    letters.iter().rev().collect()
}

/// What Reddit calls a post or a comment, by the truth's name.
fn letters(uri: &str) -> String {
    let (_, number) = uri.rsplit_once("/statuses/").expect("a post");
    base36(number)
}

/// The ground truth.
struct Truth {
    users: BTreeMap<String, Value>,
    /// Posts and comments, without reposts.
    statuses: BTreeMap<String, Value>,
    threads: BTreeMap<String, Value>,
}

/// Rows that a crawl of everything has to hold.
#[derive(Default)]
struct Expected {
    users: Rows,
    missing: Rows,
    statuses: Rows,
    comments: Rows,
    /// Comments that are gone, and what they answered.
    places: Rows,
    subreddits: Rows,
}

fn by(rows: Vec<Value>, name: &str) -> BTreeMap<String, Value> {
    rows.into_iter()
        .map(|row| (field(&row, name), row))
        .collect()
}

impl Truth {
    fn read(sim: &Sim) -> Self {
        let mut statuses = by(sim.truth("statuses"), "id");
        statuses.retain(|_, status| status["repost_of"].is_null());
        Self {
            users: by(sim.truth("users"), "id"),
            statuses,
            threads: by(sim.truth("threads"), "status"),
        }
    }

    fn user(&self, uri: &str) -> String {
        format!("user t2_{}", base36(&field(&self.users[uri], "local_id")))
    }

    fn post(uri: &str) -> String {
        format!("post t3_{}", letters(uri))
    }

    fn comment(uri: &str) -> String {
        format!("comment t1_{}", letters(uri))
    }

    fn posts(&self) -> impl Iterator<Item = (&String, &Value)> {
        let statuses = self.statuses.iter();
        statuses.filter(|(uri, _)| !self.threads.contains_key(*uri))
    }

    fn comments(&self) -> impl Iterator<Item = (&String, &Value)> {
        let statuses = self.statuses.iter();
        statuses.filter(|(uri, _)| self.threads.contains_key(*uri))
    }

    /// How many comments stand below every post.
    fn below(&self) -> BTreeMap<String, u64> {
        let mut below = BTreeMap::new();
        for thread in self.threads.values() {
            *below.entry(field(thread, "beginning")).or_default() += 1;
        }
        below
    }

    /// What stands above something that is shown, whether or not it is gone itself.
    fn places(&self) -> BTreeSet<String> {
        let threads = self.threads.values();
        let places = threads.flat_map(|thread| {
            let between = thread["between"].as_array().into_iter().flatten();
            let between = between.filter_map(Value::as_str).map(Self::comment);
            between.chain([Self::post(&field(thread, "beginning"))])
        });
        places.collect()
    }

    fn author_of_most(&self) -> String {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (_, status) in self.posts() {
            *counts.entry(field(status, "author")).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.expect("somebody who posts").0
    }

    /// Everybody: those who are banned as well.
    fn seeds(&self) -> String {
        let names = self.users.values();
        let names = names.map(|user| format!("u/{}", field(user, "acct")));
        names.collect::<Vec<_>>().join(" ")
    }

    fn expected(&self) -> Expected {
        let mut expected = Expected::default();
        self.expect_users(&mut expected);
        let below = self.below();
        for (uri, status) in self.posts() {
            let words = without_marks(&field(status, "content"));
            let (title, text) = words.split_once('\n').unwrap_or((&words, ""));
            let title = title.chars().take(TITLE_CHARS_MAX).collect();
            let below = below.get(uri).copied().unwrap_or(0).to_string();
            let row = self.status_row(Self::post(uri), status, (title, text), (below, ""));
            expected.statuses.insert(row);
            let place = self.subreddit(uri);
            expected.subreddits.insert(vec![Self::post(uri), place]);
        }
        for (uri, status) in self.comments() {
            self.expect_comment(uri, status, &mut expected);
        }
        expected
    }

    fn expect_users(&self, expected: &mut Expected) {
        let mut karma: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for (uri, status) in &self.statuses {
            let is_comment = self.threads.contains_key(uri);
            let likes = status["likes"].as_u64().unwrap_or(0);
            karma.entry(field(status, "author")).or_default()[usize::from(is_comment)] += likes;
        }
        for (uri, user) in &self.users {
            let outcome = match (user["gone"] == true, user["suspended"] == true) {
                (true, _) => "not found",
                (false, true) => "suspended",
                (false, false) => {
                    let [posts, comments] = karma.get(uri).copied().unwrap_or_default();
                    expected.users.insert(vec![
                        self.user(uri),
                        field(user, "acct"),
                        field(user, "display_name"),
                        without_marks(&field(user, "note")),
                        field(user, "created_us"),
                        posts.to_string(),
                        comments.to_string(),
                    ]);
                    continue;
                }
            };
            let name = format!("user {}", field(user, "acct").to_lowercase());
            expected.missing.insert(vec![name, outcome.to_owned()]);
        }
    }

    fn expect_comment(&self, uri: &str, status: &Value, expected: &mut Expected) {
        let thread = &self.threads[uri];
        let name = Self::comment(uri);
        let beginning = field(thread, "beginning");
        let between = thread["between"].as_array().expect("a list").iter();
        let mut above: Vec<&str> = between.filter_map(Value::as_str).collect();
        above.push(&beginning);
        let parent = |uri: &str| {
            if uri == beginning {
                Self::post(uri)
            } else {
                Self::comment(uri)
            }
        };
        let words = without_marks(&field(status, "content"));
        let texts = (String::new(), words.as_str());
        let row = self.status_row(
            name.clone(),
            status,
            texts,
            (String::new(), &parent(above[0])),
        );
        expected.statuses.insert(row);
        let author = self.user(&field(status, "author"));
        // Where a thread began is told by the post itself.
        let is_shown = thread["beginning_shown"] == true;
        let root = is_shown.then(|| Self::post(&beginning));
        let root = root.unwrap_or_default();
        let row = vec![name.clone(), parent(above[0]), root, author];
        expected.comments.insert(row);
        expected
            .subreddits
            .insert(vec![name, self.subreddit(&beginning)]);
        for pair in above.windows(2) {
            if is_shown && !self.statuses.contains_key(pair[0]) {
                let row = vec![Self::comment(pair[0]), parent(pair[1])];
                expected.places.insert(row);
            }
        }
    }

    fn status_row(
        &self,
        name: String,
        status: &Value,
        (title, text): (String, &str),
        (below, parent): (String, &str),
    ) -> Vec<String> {
        let score = 1 + status["likes"].as_u64().unwrap_or(0);
        vec![
            name,
            self.user(&field(status, "author")),
            seconds(status, "created_us"),
            seconds(status, "edited_us"),
            title,
            text.to_owned(),
            below,
            score.to_string(),
            parent.to_owned(),
        ]
    }

    /// The name of a post's subreddit: its first tag, or its author's own. What is not in ASCII has a
    /// number that nobody is told.
    fn subreddit(&self, uri: &str) -> String {
        let Some(status) = self.statuses.get(uri) else {
            return "somewhere".to_owned();
        };
        let mut tags = status["tags"].as_array().into_iter().flatten();
        let first = tags.find_map(Value::as_str);
        match first {
            Some(tag) if tag.bytes().all(|byte| byte.is_ascii_alphanumeric()) => tag.to_lowercase(),
            Some(_) => "tag".to_owned(),
            None => {
                let author = &self.users[&field(status, "author")];
                format!("u_{}", field(author, "acct").to_lowercase())
            }
        }
    }
}

impl Expected {
    /// What is compared, and how a crawl file shows it.
    fn tables(&self) -> [(&'static str, &Rows, &'static str); 6] {
        [
            (
                "users",
                &self.users,
                "SELECT key AS \"@\", handle, display_name, description, created_us,
                        json_extract(extra, '$.link_karma'), json_extract(extra, '$.comment_karma')
                 FROM users WHERE created_us IS NOT NULL",
            ),
            (
                "missing",
                &self.missing,
                "SELECT key AS \"@\", outcome FROM outcomes
                 WHERE query = 'user_by_name' AND outcome <> 'ok'",
            ),
            (
                "statuses",
                &self.statuses,
                "SELECT s.key AS \"@\", author AS \"@\", created_us, edited_us,
                        json_extract(extra, '$.title'), text,
                        CASE i.type WHEN 'post' THEN replies_count END, likes_count, reply_to AS \"@\"
                 FROM statuses s JOIN ids i ON i.key = s.key AND i.canonical
                 WHERE created_us IS NOT NULL AND deleted_us IS NULL",
            ),
            (
                "comments",
                &self.comments,
                "SELECT c.key AS \"@\", parent AS \"@\", root AS \"@\", c.author AS \"@\"
                 FROM comments c JOIN statuses s ON s.key = c.key
                 WHERE s.created_us IS NOT NULL AND s.deleted_us IS NULL",
            ),
            (
                "places of what is gone",
                &self.places,
                "SELECT s.key AS \"@\", reply_to AS \"@\" FROM statuses s
                 JOIN ids i ON i.key = s.key AND i.canonical
                 WHERE deleted_us IS NOT NULL AND i.type = 'comment'",
            ),
            (
                "subreddits",
                &self.subreddits,
                "SELECT from_key AS \"@\", CASE WHEN c.key IS NOT NULL AND c.root IS NULL THEN 'somewhere'
                        WHEN a.id LIKE 'tag\\_%' ESCAPE '\\' THEN 'tag' ELSE a.id END
                 FROM links JOIN ids a ON a.key = to_key AND a.alias = 'name'
                 JOIN statuses s ON s.key = from_key LEFT JOIN comments c ON c.key = s.key
                 WHERE kind = 'subreddit' AND s.created_us IS NOT NULL AND s.deleted_us IS NULL",
            ),
        ]
    }
}

fn compare(scene: &Scene, truth: &Truth) {
    let expected = truth.expected();
    let mut held = Held::open(&scene.folder);
    for (what, rows, sql) in expected.tables() {
        assert!(!rows.is_empty(), "there are no {what} to be found");
        held.compare(what, rows, sql);
    }
    held.finish();
}

fn words(truth: &Truth, robots: &str) -> String {
    let seeds = truth.seeds();
    format!("{seeds} --robots {robots} --until-idle --include-opted-out test --concurrency 8")
}

/// Calls that were let through although a limit said no.
fn assert_no_violations(scene: &Scene) {
    let ledger = scene.sim.json("/_sim/ledger?calls=0");
    assert_eq!(ledger["violations_total"], 0, "{}", ledger["violations"]);
}

#[test]
fn a_crawl_of_everything_stores_exactly_the_truth() {
    let scene = Scene::start(REDDIT, "--users 120 --limits off");
    let truth = Truth::read(&scene.sim);
    scene.crawl_to(0, APP, &format!("{} --limits off", words(&truth, ROBOTS)));
    compare(&scene, &truth);
}

#[test]
fn strict_limits_are_kept_and_everything_is_found() {
    // Ten minutes pass in a second and a half.
    let scene = Scene::start(REDDIT, "--users 300 --limits strict --limit-speed 400");
    let truth = Truth::read(&scene.sim);
    scene.crawl_to(0, APP, &words(&truth, ROBOTS));
    assert_no_violations(&scene);
    let ledger = scene.sim.json("/_sim/ledger?calls=0");
    let windows = ledger["windows"].as_array().expect("windows");
    let used: Vec<u64> = windows
        .iter()
        .filter_map(|it| it["used"].as_u64())
        .collect();
    println!("calls by window: {used:?}");
    assert!(used.len() > 1, "the limit was never in the way");
    compare(&scene, &truth);
}

#[test]
fn a_crawl_that_is_killed_loses_and_doubles_nothing() {
    let scene = Scene::start(REDDIT, "--users 120 --limits strict --limit-speed 1200");
    let truth = Truth::read(&scene.sim);
    let words = words(&truth, ROBOTS);
    let mut dice = Dice::new("kills of reddit");
    let mut kills = 0;
    for round in 0..6 {
        let killed = run_and_kill(&scene.sim, &mut scene.crawl(APP, &words), &mut dice, round);
        kills += u32::from(killed.is_some());
    }
    assert!(kills > 2, "{kills} kills");
    scene.crawl_to(0, APP, &words);
    assert_no_violations(&scene);
    compare(&scene, &truth);
}

#[test]
fn a_hostile_network_takes_only_what_its_log_says() {
    let scene = Scene::start(
        REDDIT,
        "--users 200 --limits strict --limit-speed 1200 --faults hostile --stall-ms 50",
    );
    let before = Truth::read(&scene.sim);
    let words = words(&before, ROBOTS);
    let mut dice = Dice::new("kills of a hostile reddit");
    for round in 0..4 {
        run_and_kill(&scene.sim, &mut scene.crawl(APP, &words), &mut dice, round);
    }
    scene.crawl_to(0, APP, &words);
    assert_no_violations(&scene);
    let summary = scene.sim.json("/_sim/faults/summary");
    for kind in ["ban", "posts_withdrawn", "reset_in_body"] {
        let happened = summary["by_kind"][kind].as_u64().unwrap_or(0);
        assert_ne!(happened, 0, "{kind} never happened: {summary}");
    }
    let (most, least) = (before.expected(), Truth::read(&scene.sim).expected());
    // What stands above something that is shown may be gone from the beginning.
    let places = before.places();
    let shown: BTreeSet<&String> = most.statuses.iter().map(|row| &row[0]).collect();
    let is_shown = |name: &String| shown.contains(name);
    let held = Held::open(&scene.folder);
    let mut lost = 0;
    for ((what, least, sql), (_, most, _)) in least.tables().into_iter().zip(most.tables()) {
        let (columns, sql) = match what {
            // What was seen before it was withdrawn is held; counts and words differ with the moment.
            "statuses" => (1, sql.replace("AND deleted_us IS NULL", "")),
            "users" => (1, sql.to_owned()),
            "comments" => (2, sql.replace("AND s.deleted_us IS NULL", "")),
            // Who is banned, and what is gone, on the way was there before.
            _ => continue,
        };
        let mut held = held.rows(&sql);
        held.retain(|row| !places.contains(&row[0]) || is_shown(&row[0]));
        lost += held_between((what, columns), &held, (least, most));
    }
    println!("{lost} rows were withdrawn unseen; {summary}");
}

/// A definition that asks for so little of a tree that small ones have stubs of both kinds.
fn small_trees(scene: &Scene) {
    let shipped = include_str!("../../../../../networks/reddit.toml");
    let mut small = shipped.to_owned();
    for (from, to) in [
        (
            r#"limit = "500", depth = "10""#,
            r#"limit = "2", depth = "2""#,
        ),
        (
            r#"api_type = "json", depth = "10""#,
            r#"api_type = "json", depth = "1""#,
        ),
        (
            r#"parameter = "children", style = "comma", max = 100"#,
            r#"parameter = "children", style = "comma", max = 2"#,
        ),
    ] {
        assert!(small.contains(from), "{from}");
        small = small.replace(from, to);
    }
    std::fs::write(scene.folder.path("reddit.toml"), small).expect("a definition");
}

/// All posts with comments, by name, and what their trees hold: comments that are shown, and places.
fn trees(truth: &Truth) -> (String, Rows) {
    let mut expected = Rows::new();
    let mut seeds = BTreeSet::new();
    for (uri, thread) in &truth.threads {
        if thread["beginning_shown"] != true {
            continue;
        }
        let beginning = field(thread, "beginning");
        seeds.insert(format!("t3_{}", letters(&beginning)));
        let between = thread["between"].as_array().expect("a list").iter();
        let mut above = vec![uri.as_str()];
        above.extend(between.filter_map(Value::as_str));
        above.push(&beginning);
        for pair in above.windows(2) {
            let parent = if pair[1] == beginning {
                Truth::post(pair[1])
            } else {
                Truth::comment(pair[1])
            };
            expected.insert(vec![Truth::comment(pair[0]), parent]);
        }
    }
    let seeds: Vec<String> = seeds.into_iter().collect();
    (seeds.join(" "), expected)
}

const TREE_ROWS: &str = "SELECT s.key AS \"@\", reply_to AS \"@\" FROM statuses s
     JOIN ids i ON i.key = s.key AND i.canonical AND i.type = 'comment' WHERE created_us IS NOT NULL";

#[test]
fn whole_trees_are_had_whatever_they_leave_out() {
    let scene = Scene::start(REDDIT, "--users 300 --limits strict --limit-speed 1200");
    small_trees(&scene);
    let truth = Truth::read(&scene.sim);
    let (seeds, expected) = trees(&truth);
    assert!(expected.len() > 300, "{} comments", expected.len());
    let words = format!("{seeds} --depth 0 --robots {TREES} --until-idle --concurrency 8");
    let words = format!("{words} --include-opted-out test");
    let crawl = || scene.crawl_with("reddit.toml", APP, &words);
    let mut dice = Dice::new("kills of trees");
    let (mut kills, mut known, mut heard) = (0, BTreeSet::new(), 0);
    for round in 0..6 {
        let killed = run_and_kill(&scene.sim, &mut crawl(), &mut dice, round);
        kills += u32::from(killed.is_some());
        let calls = scene.sim.targets_after(heard);
        let repeated = calls.iter().find(|target| known.contains(*target));
        assert_eq!(repeated, None, "asked for again although committed");
        heard += calls.len() as u64;
        known = committed(&scene.folder.path("t.db"));
    }
    assert!(kills > 2, "{kills} kills");
    finish(&mut crawl());
    assert_no_violations(&scene);
    let mut held = Held::open(&scene.folder);
    held.compare("comments of trees", &expected, TREE_ROWS);
    held.finish();
    for query in ["tree", "more_children"] {
        let calls = scene.calls();
        let calls = calls.iter().filter(|call| call["query"] == query).count();
        println!("{calls} calls of {query}");
        assert!(calls > 20, "{query} was hardly asked");
    }
    let deeper = "SELECT count(*) FROM query_log WHERE query = 'deeper' AND outcome = 'ok'";
    assert!(scene.count(deeper) > 5, "nothing led further down");
}

#[test]
fn a_list_that_is_cut_off_says_so() {
    let scene = Scene::start(REDDIT, "--users 2800 --limits off");
    let truth = Truth::read(&scene.sim);
    let mut sizes: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    // What is not in the timelines of its tags is in no list of its subreddit.
    let listed = |status: &Value| status["in_tag_timelines"] == true;
    for (uri, _) in truth.posts().filter(|(_, status)| listed(status)) {
        sizes.entry(truth.subreddit(uri)).or_default().push(uri);
    }
    sizes.remove("tag");
    let (name, all) = sizes
        .iter()
        .max_by_key(|(_, all)| all.len())
        .expect("a subreddit");
    let small = sizes
        .iter()
        .find(|(_, all)| (2..1_000).contains(&all.len()));
    let (small, few) = small.expect("a small subreddit");
    println!(
        "{} posts in r/{name}, {} in r/{small}",
        all.len(),
        few.len()
    );
    assert!(all.len() > CAP, "the world is too small");
    let words =
        format!("r/{name} r/{small} --depth 0 --robots subreddits --until-idle --limits off");
    scene.crawl_to(0, APP, &words);
    let capped =
        "SELECT DISTINCT i.id FROM outcomes o JOIN ids i ON i.key = o.key AND i.alias = 'name'
                  WHERE o.query = 'new_posts' AND o.outcome = 'cap reached'";
    assert_eq!(scene.held(capped), [[name.clone()].to_vec()]);
    // The latest thousand of one, and all of the other.
    for (name, all) in [(name, all), (small, few)] {
        let mut newest: Vec<(i64, String)> = all
            .iter()
            .map(|uri| {
                (
                    truth.statuses[*uri]["created_us"].as_i64().unwrap_or(0),
                    letters(uri),
                )
            })
            .collect();
        newest.sort();
        let newest = newest.iter().rev().take(CAP);
        let expected: BTreeSet<String> = newest.map(|(_, id)| format!("t3_{id}")).collect();
        let sql = format!(
            "SELECT p.id FROM links l JOIN ids p ON p.key = l.from_key AND p.canonical AND p.type = 'post'
             JOIN ids a ON a.key = l.to_key AND a.alias = 'name' AND a.id = '{name}'
             JOIN statuses s ON s.key = p.key AND s.created_us IS NOT NULL WHERE l.kind = 'subreddit'"
        );
        let held: BTreeSet<String> = scene.held(&sql).into_iter().flatten().collect();
        assert_eq!(held.len(), expected.len());
        assert_eq!(held.difference(&expected).next(), None, "in r/{name}");
    }
}

#[test]
fn lookups_are_full_and_an_id_of_nothing_costs_only_itself() {
    let scene = Scene::start(REDDIT, "--users 300 --limits off");
    let truth = Truth::read(&scene.sim);
    let comments: Vec<String> = truth
        .comments()
        .map(|(uri, _)| letters(uri))
        .take(1_000)
        .collect();
    assert!(comments.len() > 500, "{} comments", comments.len());
    let seeds: Vec<String> = comments.iter().map(|id| format!("t1_{id}")).collect();
    // One that nobody wrote, and one that is no number at all.
    let words = format!("t1_zz t1_a-b {} --depth 0", seeds.join(" "));
    let words = format!("{words} --robots comments,details --until-idle --limits off");
    scene.crawl_to(0, APP, &format!("{words} --include-opted-out test"));
    let calls = scene.calls();
    let batches = calls.iter().filter(|call| call["query"] == "info");
    let sizes: Vec<usize> = batches
        .map(|call| field(call, "subject").split(',').count())
        .collect();
    let asked: usize = sizes.iter().sum();
    println!("{asked} comments in batches of {sizes:?}");
    assert_eq!(asked, comments.len() + 2);
    assert!(sizes.len() <= asked.div_ceil(BATCH), "{sizes:?}");
    assert!(asked * 100 >= (sizes.len() - 1) * BATCH * 95, "{sizes:?}");
    let outcomes =
        "SELECT outcome, count(DISTINCT key) FROM outcomes WHERE query = 'comments' GROUP BY 1";
    let expected = [
        ["not found".to_owned(), "2".to_owned()],
        ["ok".to_owned(), comments.len().to_string()],
    ];
    assert_eq!(scene.held(outcomes), expected.map(Vec::from));
}

#[test]
fn tokens_that_are_refused_end_a_crawl_and_missing_permissions_do_not() {
    let scene = Scene::start(REDDIT, "--users 60 --limits off");
    let truth = Truth::read(&scene.sim);
    let words = format!("{} --limits off", words(&truth, ROBOTS));
    for token in ["bad-planted-0123456789", "revoked-planted-0123456789"] {
        let output = scene
            .crawl(token, &words)
            .output()
            .expect("the binary runs");
        assert_eq!(output.status.code(), Some(4), "{}", told(&output));
        assert!(!told(&output).contains(token), "{}", told(&output));
    }
    assert_eq!(scene.count("SELECT count(*) FROM statuses"), 0);
    scene.crawl_to(0, "narrow-planted-0123456789", &words);
    let refused = "SELECT DISTINCT outcome, reason FROM query_log
                   WHERE query IN ('submitted', 'user_comments') AND status = 403";
    let lacking = [
        "forbidden".to_owned(),
        "the token lacks a permission".to_owned(),
    ];
    assert_eq!(scene.held(refused), [lacking.to_vec()]);
    let profiles = "SELECT count(*) FROM users WHERE created_us IS NOT NULL";
    assert_eq!(scene.count(profiles), truth.expected().users.len() as u64);
}

#[test]
fn closed_subreddits_have_their_outcomes_and_the_rest_goes_on() {
    let scene = Scene::start(REDDIT, "--users 400 --limits off");
    let truth = Truth::read(&scene.sim);
    let owner = field(&truth.users[&truth.author_of_most()], "acct");
    let closed = "r/private_birds r/quarantined_birds r/banned_birds r/nothingofthesort";
    let closed = format!("{closed} r/u_{owner}");
    let words = format!("{closed} r/birds --depth 0 --robots subreddits --until-idle --limits off");
    scene.crawl_to(0, APP, &words);
    let outcomes = "SELECT DISTINCT i.id, o.outcome FROM outcomes o
                    JOIN ids i ON i.key = o.key AND i.alias = 'name' WHERE o.query = 'subreddit'";
    let expected = [
        ["banned_birds", "suspended"],
        ["birds", "ok"],
        ["nothingofthesort", "not found"],
        ["private_birds", "protected"],
        ["quarantined_birds", "forbidden"],
        [&format!("u_{}", owner.to_lowercase()), "ok"],
    ];
    assert_eq!(
        scene.held(outcomes),
        expected.map(|row| row.map(str::to_owned).to_vec())
    );
    let posts = "SELECT count(*) FROM statuses WHERE created_us IS NOT NULL";
    assert!(scene.count(posts) > 10, "nothing was found in r/birds");
    let moderators = "SELECT f.id, t.id FROM links l
                      JOIN ids f ON f.key = l.from_key AND f.alias = 'name'
                      JOIN ids t ON t.key = l.to_key AND t.alias = 'name' WHERE l.kind = 'moderates'";
    let owner = owner.to_lowercase();
    let expected = [owner.clone(), format!("u_{owner}")];
    assert_eq!(scene.held(moderators), [expected.to_vec()]);
}

#[test]
fn a_cap_on_calls_ends_the_run_with_what_it_has_and_the_next_goes_on() {
    let scene = Scene::start(REDDIT, "--users 60 --limits off");
    let truth = Truth::read(&scene.sim);
    let words = format!("{} --limits off", words(&truth, ROBOTS));
    let mut heard = 0;
    for calls in [1, 30, 70] {
        let summary = scene.crawl_to(3, APP, &format!("{words} --max-calls {calls}"));
        assert_eq!(summary["end"]["reason"], "calls", "{summary}");
        heard += calls;
        assert_eq!(scene.calls().len(), heard);
        assert_eq!(scene.count("SELECT count(*) FROM query_log"), heard as u64);
    }
    scene.crawl_to(0, APP, &words);
    compare(&scene, &truth);
}

#[test]
fn an_allowance_that_others_used_up_ends_a_run_and_the_next_goes_on() {
    // The client has fewer calls than the definition believes, as if another program had taken them.
    let limits = include_str!("../../../../sim/src/reddit/limits.toml");
    let folder = Folder::new();
    let fewer = limits.replace("limit = 1000", "limit = 25");
    assert_ne!(fewer, limits);
    std::fs::write(folder.path("fewer.toml"), fewer).expect("a file of limits");
    let words = "--users 60 --limits-file fewer.toml --limit-speed 1";
    let scene = Scene::start_in(folder, REDDIT, words);
    let truth = Truth::read(&scene.sim);
    let words = format!("{} --max-time 4s", self::words(&truth, ROBOTS));
    scene.crawl_to(3, APP, &words);
    let made = "SELECT count(*) FROM query_log WHERE status = 200";
    assert_eq!(scene.count(made), 25, "the headers tell when to stop");
    assert_no_violations(&scene);
    scene.sim.get("/_sim/advance?limit_seconds=600");
    scene.crawl_to(3, APP, &words);
    assert_eq!(scene.count(made), 50, "the next ten minutes are used");
    assert_no_violations(&scene);
}

#[test]
fn calls_are_as_few_as_pages_trees_and_batches_allow() {
    let scene = Scene::start(REDDIT, "--users 600 --limits off");
    let truth = Truth::read(&scene.sim);
    let words = format!("{} --limits off", words(&truth, ROBOTS));
    scene.crawl_to(0, APP, &words);
    let users = truth.users.len() as u64;
    let mut written: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (uri, status) in &truth.statuses {
        let is_comment = truth.threads.contains_key(uri);
        written.entry(field(status, "author")).or_default()[usize::from(is_comment)] += 1;
    }
    let gone = truth.users.values().filter(|user| user["gone"] == true);
    let gone = gone.count() as u64;
    // Whoever is not there is asked about once, and of whom there is nothing there is one empty page.
    let pages = |place: usize| -> u64 {
        let of = |uri: &String| written.get(uri).map_or(0, |counts| counts[place]);
        let pages = |uri: &String| of(uri).div_ceil(BATCH as u64).max(1);
        truth.users.keys().map(pages).sum()
    };
    let below = truth.below();
    let shown = truth.posts().filter(|(uri, _)| below.contains_key(*uri));
    let trees = shown.count() as u64;
    let (posts, comments) = (truth.posts().count(), truth.comments().count());
    let least = |query, what, things: usize, calls| Least {
        query,
        what,
        things: things as u64,
        calls,
    };
    table(
        &scene,
        &[
            least("about", "accounts", users as usize, users),
            least("submitted", "posts", posts, pages(0)),
            least("comments", "comments", comments, pages(1) - gone),
            least("tree", "comments in trees", comments, trees),
        ],
    );
    let calls = scene.calls();
    let again = calls.iter().filter(|call| call["query"] == "info");
    assert_eq!(again.count(), 0, "what trees have told is asked for again");
}
