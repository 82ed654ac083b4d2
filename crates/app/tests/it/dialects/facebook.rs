//! Facebook as the synthetic network speaks it, crawled with the shipped definition. Nobody is told who follows whom, so
//! every page is a seed.

use super::calls::{Least, table};
use super::{Scene, Speaks, told};
use crate::kill::run_and_kill;
use crate::oracle::{Rows, field};
use crate::strict::Held;
use crate::support::{Dice, Folder, Sim};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const FACEBOOK: Speaks = Speaks {
    network: "facebook",
    base: "/v26.0",
    token_variable: "FACEBOOK_ACCESS_TOKEN",
};
/// How places in lists begin.
const CURSOR: &str = "QVFIU";
/// That of a page, which is told who wrote and who reacted.
const TOKEN: &str = "planted/page:secret-0123456789";
/// The application's own.
const APP: &str = "planted-application-0123456789";
const ROBOTS: &str = "profiles,statuses,comments,reactions,albums,photos";
const LIMITS: &str = include_str!("../../../../sim/src/facebook/limits.toml");
const DEFINITION: &str = include_str!("../../../../../networks/facebook.toml");
const CATEGORIES: [&str; 4] = ["2256", "2202", "1400", "180164648685982"];

fn number(row: &Value) -> u64 {
    field(row, "local_id").parse().expect("a number")
}

/// Time is told in seconds.
fn seconds(row: &Value, name: &str) -> String {
    let us = row[name].as_i64().map(|us| us / 1_000_000 * 1_000_000);
    us.map_or_else(String::new, |us| us.to_string())
}

fn without_marks(html: &str) -> String {
    let mut text = html.replace("<br />", "\n").replace("</p>", "\n");
    while let Some(begin) = text.find('<') {
        let length = text[begin..].find('>').expect("a mark ends");
        text.replace_range(begin..=begin + length, "");
    }
    for (mark, letter) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
    ] {
        text = text.replace(mark, letter);
    }
    text.replace("&amp;", "&").trim().to_owned()
}

/// A comment under a post, and the one that begins its thread.
struct Comment {
    id: String,
    thread: String,
}

/// The truth, as Facebook shows it.
struct Truth {
    users: BTreeMap<String, Value>,
    statuses: BTreeMap<String, Value>,
    /// What was written as an answer, also to what is gone.
    answers: BTreeSet<String>,
    /// By post everything below it, also what is only counted.
    comments: BTreeMap<String, Vec<Comment>>,
    /// By post who likes it.
    likes: BTreeMap<String, Vec<String>>,
    /// Whether it is told who wrote comments and who reacted.
    tells_people: bool,
}

impl Truth {
    fn read(sim: &Sim) -> Self {
        let by_id = |rows: Vec<Value>| -> BTreeMap<String, Value> {
            let entry = |row: Value| (field(&row, "id"), row);
            rows.into_iter().map(entry).collect()
        };
        let answers = sim.truth("threads").into_iter();
        let mut truth = Self {
            users: by_id(sim.truth("users")),
            statuses: by_id(sim.truth("statuses")),
            answers: answers.map(|row| field(&row, "status")).collect(),
            comments: BTreeMap::new(),
            likes: BTreeMap::new(),
            tells_people: true,
        };
        for like in sim.truth("likes") {
            let likes = truth.likes.entry(field(&like, "status")).or_default();
            likes.push(field(&like, "user"));
        }
        for id in truth.statuses.keys() {
            let mut above = vec![id.clone()];
            while let Some(parent) = above
                .last()
                .map(|id| field(&truth.statuses[id], "reply_to"))
                && !parent.is_empty()
            {
                above.push(parent);
            }
            let post = above.pop().unwrap_or_default();
            if let Some(thread) = above.last()
                && truth.is_original(&post)
            {
                let comment = Comment {
                    id: id.clone(),
                    thread: thread.clone(),
                };
                truth.comments.entry(post).or_default().push(comment);
            }
        }
        truth
    }

    fn is_original(&self, id: &str) -> bool {
        field(&self.statuses[id], "repost_of").is_empty() && !self.answers.contains(id)
    }

    /// Nobody can share a comment.
    fn is_post(&self, id: &str) -> bool {
        let shared = field(&self.statuses[id], "repost_of");
        !self.answers.contains(id) && !self.answers.contains(&shared)
    }

    fn posts(&self) -> impl Iterator<Item = &String> {
        self.statuses.keys().filter(|id| self.is_post(id))
    }

    fn present(&self) -> impl Iterator<Item = &Value> {
        self.users
            .values()
            .filter(|user| user["suspended"] == false)
    }

    fn is_open(&self, status: &str) -> bool {
        self.users[&self.author(status)]["locked"] == false
    }

    fn author(&self, status: &str) -> String {
        field(&self.statuses[status], "author")
    }

    fn profile(&self, user: &str) -> String {
        format!("profile {}", number(&self.users[user]))
    }

    fn page(&self, status: &str) -> u64 {
        number(&self.users[&self.author(status)])
    }

    fn post(&self, status: &str) -> String {
        let id = number(&self.statuses[status]);
        format!("post {}_{id}", self.page(status))
    }

    fn comment(&self, post: &str, status: &str) -> String {
        let [post, comment] = [post, status].map(|id| number(&self.statuses[id]));
        format!("comment {post}_{comment}")
    }

    fn name(&self, user: &str) -> String {
        let user = &self.users[user];
        let name = field(user, "display_name");
        if name.is_empty() {
            field(user, "username")
        } else {
            name
        }
    }

    /// Those who like a post, and those who react in other ways.
    fn reactions(&self, status: &str) -> (Vec<&String>, Vec<&String>) {
        let post = number(&self.statuses[status]);
        let likes = self.likes.get(status).into_iter().flatten();
        likes.partition(|user| (number(&self.users[*user]).wrapping_add(post)) % 16 > 6)
    }

    fn expected(&self) -> Expected {
        let mut expected = Expected::default();
        for user in self.present() {
            self.expect_page(user, &mut expected);
        }
        for post in self.posts() {
            self.expect_post(post, &mut expected);
        }
        expected
    }

    fn expect_page(&self, user: &Value, expected: &mut Expected) {
        let id = field(user, "id");
        let number = number(user);
        let profile = self.profile(&id);
        expected.users.insert(vec![
            profile.clone(),
            self.name(&id),
            field(user, "username"),
            without_marks(&field(user, "note")),
            field(user, "followers"),
            u8::from(number.is_multiple_of(10)).to_string(),
        ]);
        let category = CATEGORIES[(number % 4) as usize];
        let tag = vec![profile.clone(), format!("category {category}")];
        expected.user_tags.insert(tag);
        expected.add_album(&format!("album 4{number}"), &profile);
        if user["avatar"] == true {
            let (album, photo) = (format!("album 5{number}"), format!("photo 6{number}"));
            expected.add_album(&album, &profile);
            expected.add_photo(&photo, &album, &profile);
            expected.covers.insert(album, (u64::MAX, photo));
        }
    }

    fn expect_post(&self, id: &str, expected: &mut Expected) {
        let row = &self.statuses[id];
        let name = self.post(id);
        let author = self.author(id);
        let profile = self.profile(&author);
        let comments = self.comments.get(id).map_or(&[][..], Vec::as_slice);
        let (likes, others) = self.reactions(id);
        let source = field(row, "repost_of");
        let is_shared = !source.is_empty();
        let original = if is_shared {
            self.post(&source)
        } else {
            String::new()
        };
        let text = if is_shared {
            format!("{} shared a post.", self.name(&author))
        } else {
            without_marks(&field(row, "content"))
        };
        let count = |number: usize| number.to_string();
        // Where nobody shares a post, that is not told.
        let shares = row["reposts"].as_u64().filter(|shares| *shares > 0);
        expected.statuses.insert(vec![
            name.clone(),
            profile.clone(),
            seconds(row, "created_us"),
            text,
            String::new(),
            original.clone(),
            count(comments.len()),
            shares.map_or_else(String::new, |shares| shares.to_string()),
            count(likes.len()),
        ]);
        if is_shared {
            expected.link("repost", &name, &original);
            return;
        }
        self.expect_mentions(&name, row, expected);
        for (kind, users) in [("like", likes), ("reaction", others)] {
            for user in users.into_iter().filter(|_| self.tells_people) {
                expected.link(kind, &self.profile(user), &name);
            }
        }
        self.expect_photos(id, &name, expected);
        for comment in comments {
            self.expect_comment(id, comment, comments, expected);
        }
    }

    fn expect_mentions(&self, name: &str, row: &Value, expected: &mut Expected) {
        for user in row["mentions"].as_array().into_iter().flatten() {
            let user = user.as_str().unwrap_or_default();
            if self.users[user]["suspended"] == false {
                expected.link("mention", name, &self.profile(user));
            }
        }
    }

    fn expect_photos(&self, id: &str, name: &str, expected: &mut Expected) {
        let row = &self.statuses[id];
        let post = number(row);
        let album = format!("album 4{}", self.page(id));
        for place in 0..row["media"].as_u64().unwrap_or(0) {
            let photo = format!("photo 7{place}{post}");
            expected.add_photo(&photo, &album, &self.profile(&self.author(id)));
            expected.link("part", &photo, name);
            let cover = expected.covers.entry(album.clone()).or_default();
            *cover = cover.clone().max((post, photo));
        }
    }

    fn expect_comment(
        &self,
        post: &str,
        comment: &Comment,
        comments: &[Comment],
        expected: &mut Expected,
    ) {
        if !self.is_open(&comment.id) || !self.is_open(&comment.thread) {
            return;
        }
        let row = &self.statuses[&comment.id];
        let name = self.comment(post, &comment.id);
        let author = if self.tells_people {
            self.profile(&field(row, "author"))
        } else {
            String::new()
        };
        let is_first = comment.id == comment.thread;
        let parent = if is_first {
            self.post(post)
        } else {
            self.comment(post, &comment.thread)
        };
        let below = comments
            .iter()
            .filter(|other| is_first && other.thread == comment.id && other.id != comment.id);
        let likes = self.likes.get(&comment.id).map_or(0, Vec::len);
        expected.statuses.insert(vec![
            name.clone(),
            author.clone(),
            seconds(row, "created_us"),
            without_marks(&field(row, "content")),
            parent.clone(),
            String::new(),
            below.count().to_string(),
            String::new(),
            likes.to_string(),
        ]);
        self.expect_mentions(&name, row, expected);
        let row = vec![name, parent, self.post(post), author];
        expected.comments.insert(row);
    }
}

#[derive(Default)]
struct Expected {
    users: Rows,
    user_tags: Rows,
    statuses: Rows,
    comments: Rows,
    objects: Rows,
    links: Rows,
    /// By album the photo that stands for it, with the post that it is part of.
    covers: BTreeMap<String, (u64, String)>,
}

impl Expected {
    fn link(&mut self, kind: &str, from: &str, to: &str) {
        let row = [kind, from, to].map(str::to_owned);
        self.links.insert(row.to_vec());
    }

    fn add_album(&mut self, album: &str, owner: &str) {
        self.objects.insert(vec![album.to_owned()]);
        self.link("owner", album, owner);
    }

    fn add_photo(&mut self, photo: &str, album: &str, owner: &str) {
        self.objects.insert(vec![photo.to_owned()]);
        self.link("owner", photo, owner);
        self.link("in", photo, album);
    }

    fn table(&self, name: &str) -> Rows {
        match name {
            "users" => self.users.clone(),
            "user_tags" => self.user_tags.clone(),
            "statuses" => self.statuses.clone(),
            "comments" => self.comments.clone(),
            "objects" => self.objects.clone(),
            _ => {
                let cover = |(album, (_, photo)): (&String, &(u64, String))| {
                    ["cover".to_owned(), album.clone(), photo.clone()].to_vec()
                };
                let covers = self.covers.iter().map(cover);
                self.links.iter().cloned().chain(covers).collect()
            }
        }
    }
}

/// What is compared, and how a crawl's file shows it.
const TABLES: [(&str, &str); 6] = [
    (
        "users",
        "SELECT key AS \"@\", display_name, handle, description, followers_count, is_verified FROM users",
    ),
    (
        "user_tags",
        "SELECT user AS \"@\", tag AS \"@\" FROM user_tags",
    ),
    (
        "statuses",
        "SELECT key AS \"@\", author AS \"@\", created_us, text, reply_to AS \"@\", repost_of AS \"@\",
                replies_count, reposts_count, likes_count FROM statuses",
    ),
    (
        "comments",
        "SELECT key AS \"@\", parent AS \"@\", root AS \"@\", author AS \"@\" FROM comments",
    ),
    ("objects", "SELECT key AS \"@\" FROM objects"),
    (
        "links",
        "SELECT kind, from_key AS \"@\", to_key AS \"@\" FROM links",
    ),
];

/// Every page, to be crawled to the end.
fn words(truth: &Truth, robots: &str) -> String {
    let seeds = truth.present().map(|user| format!("id:{}", number(user)));
    let seeds: Vec<String> = seeds.collect();
    format!(
        "{} --depth 0 --robots {robots} --until-idle",
        seeds.join(" ")
    )
}

#[track_caller]
fn compare(scene: &Scene, truth: &Truth) {
    let expected = truth.expected();
    assert!(expected.users.len() > 50 && expected.comments.len() > 50);
    let mut held = Held::open(&scene.folder);
    for (table, sql) in TABLES {
        held.compare(table, &expected.table(table), sql);
    }
    held.finish();
}

#[test]
fn a_crawl_of_facebook_equals_the_truth() {
    let scene = Scene::start(FACEBOOK, "--users 120 --limits off");
    let truth = Truth::read(&scene.sim);
    let words = words(&truth, ROBOTS);
    scene.crawl_to(0, TOKEN, &format!("{words} --limits off --concurrency 8"));
    compare(&scene, &truth);
}

/// A network with other limits than its own.
fn limited(limits: &str, words: &str) -> Scene {
    let folder = Folder::new();
    std::fs::write(folder.path("limits.toml"), limits).expect("a file");
    let words = format!("--limits-file limits.toml {words}");
    Scene::start_in(folder, FACEBOOK, &words)
}

/// No limit was broken, and one was in the way.
#[track_caller]
fn assert_limits_kept(scene: &Scene) {
    let ledger = scene.sim.json("/_sim/ledger?calls=0");
    assert_eq!(ledger["violations_total"], 0, "{}", ledger["violations"]);
    let windows = ledger["windows"].as_array().expect("windows");
    let number = |window: &Value, name: &str| window[name].as_u64().unwrap_or(0);
    let most = windows.iter().map(|window| {
        let (greatest, limit) = (number(window, "greatest"), number(window, "limit"));
        assert!(greatest <= limit, "more than there is: {window}");
        greatest * 100 / limit
    });
    let most = most.max().unwrap_or(0);
    println!("at most {most} % in {} windows", windows.len());
    assert!(
        windows.len() > 1 && most > 50,
        "the limit was never in the way"
    );
}

#[test]
fn the_share_of_a_page_is_kept() {
    // A day of limits passes in two seconds, and has an eighth of the calls.
    let limits = LIMITS.replace("limit = 4800", "limit = 600");
    let scene = limited(&limits, "--users 80 --limit-speed 43200");
    let truth = Truth::read(&scene.sim);
    scene.crawl_to(0, TOKEN, &words(&truth, ROBOTS));
    assert_limits_kept(&scene);
    compare(&scene, &truth);
}

#[test]
fn the_share_of_an_application_is_kept_and_it_is_not_told_who_wrote() {
    // An hour of limits passes in a second.
    let limits = LIMITS.replace("limit = 2000", "limit = 200");
    let scene = limited(&limits, "--users 80 --limit-speed 3600");
    let mut truth = Truth::read(&scene.sim);
    truth.tells_people = false;
    scene.crawl_to(0, APP, &words(&truth, ROBOTS));
    assert_limits_kept(&scene);
    compare(&scene, &truth);
}

#[test]
fn kills_lose_nothing_and_double_nothing() {
    let scene = Scene::start(FACEBOOK, "--users 80 --limits off");
    let truth = Truth::read(&scene.sim);
    let words = words(&truth, ROBOTS);
    let mut dice = Dice::new("kills of a crawl of facebook");
    for round in 0..6 {
        let words = format!("{words} --limits off --concurrency 4");
        run_and_kill(
            &scene.sim,
            &mut scene.crawl(TOKEN, &words),
            &mut dice,
            round,
        );
    }
    scene.crawl_to(0, TOKEN, &format!("{words} --limits off"));
    compare(&scene, &truth);
}

/// The shipped definition with changes, under another name.
fn changed(scene: &Scene, changes: &[(&str, &str)]) -> String {
    let mut definition = DEFINITION.to_owned();
    for (from, to) in changes {
        assert!(definition.contains(from), "{from}");
        definition = definition.replace(from, to);
    }
    let path = scene.folder.path("small.toml");
    std::fs::write(&path, definition).expect("a definition");
    path.display().to_string()
}

#[test]
fn a_hostile_facebook_takes_only_what_its_log_says() {
    let scene = Scene::start(
        FACEBOOK,
        "--users 120 --limits off --limit-speed 600 --faults hostile --stall-ms 50",
    );
    let before = Truth::read(&scene.sim);
    // Pages of ten, so that lists of a small world have several, and some of them nothing in them.
    let small = changed(
        &scene,
        &[("size = 100,", "size = 10,"), ("size = 50,", "size = 10,")],
    );
    let words = format!("{} --concurrency 8 --limits off", words(&before, ROBOTS));
    let crawl = || scene.crawl_with(&small, TOKEN, &words);
    let mut dice = Dice::new("kills of a hostile crawl of facebook");
    for round in 0..3 {
        run_and_kill(&scene.sim, &mut crawl(), &mut dice, round);
    }
    let output = crawl().output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert_eq!(scene.sim.violations(), 0);
    let summary = scene.sim.json("/_sim/faults/summary");
    for kind in [
        "ban",
        "posts_withdrawn",
        "reset_in_body",
        "repeated_next",
        "shifted_page",
    ] {
        assert_ne!(
            summary["by_kind"][kind], 0,
            "{kind} never happened: {summary}"
        );
    }
    let (most, least) = (before.expected(), Truth::read(&scene.sim).expected());
    let held = Held::open(&scene.folder);
    for (table, sql) in TABLES {
        // Counts and texts differ with the moment; who and what do not.
        let columns = match table {
            "links" => 3,
            "user_tags" => 2,
            _ => 1,
        };
        let cut = |rows: Rows| -> Rows {
            let cut = |row: Vec<String>| row.into_iter().take(columns).collect();
            // Which photo stands for an album differs, too.
            rows.into_iter()
                .filter(|row| row[0] != "cover")
                .map(cut)
                .collect()
        };
        let (held, least, most) = (
            cut(held.rows(sql)),
            cut(least.table(table)),
            cut(most.table(table)),
        );
        let lost: Vec<_> = least.difference(&held).take(3).collect();
        assert!(lost.is_empty(), "{table} lost without a word: {lost:?}");
        let invented: Vec<_> = held.difference(&most).take(3).collect();
        assert!(invented.is_empty(), "{table} invented: {invented:?}");
    }
}

/// How many ids each call for several was about.
fn batches(scene: &Scene) -> Vec<usize> {
    let calls = scene.calls().into_iter();
    calls
        .filter(|call| call["query"] == "ids")
        .map(|call| field(&call, "subject").split(',').count())
        .collect()
}

#[test]
fn lookups_are_full_and_ids_that_spoil_them_cost_only_themselves() {
    let scene = Scene::start(FACEBOOK, "--users 400 --limits off");
    let truth = Truth::read(&scene.sim);
    let crawl = format!("{} --limits off", words(&truth, "profiles"));
    scene.crawl_to(0, TOKEN, &crawl);
    let sizes = batches(&scene);
    let ids: usize = sizes.iter().sum();
    println!("{ids} ids in {} calls", sizes.len());
    assert_eq!(ids, truth.present().count());
    // The last call has what is left.
    let but_last = sizes.len().saturating_sub(1) * 50;
    assert!(sizes.len() > 3 && ids * 100 >= but_last * 95, "{sizes:?}");

    // Into another file, with some that are not there.
    let gone = truth.users.values().find(|user| user["suspended"] == true);
    let gone = number(gone.expect("somebody who is gone"));
    let poison = format!("id:{gone} id:12345 ");
    let before = scene.sim.calls();
    std::fs::rename(scene.folder.path("t.db"), scene.folder.path("first.db")).expect("a file");
    scene.crawl_to(0, TOKEN, &format!("{poison}{crawl}"));
    let outcomes = "SELECT DISTINCT i.id, o.outcome FROM outcomes o JOIN ids i ON i.key = o.key
                    WHERE i.canonical AND o.outcome <> 'ok'";
    let outcomes = scene.held(outcomes);
    let missing = |id: String| vec![id, "not found".to_owned()];
    let mut expected = [missing("12345".to_owned()), missing(gone.to_string())];
    expected.sort();
    assert_eq!(outcomes, expected);
    let calls = scene.sim.calls() - before;
    println!("{calls} calls, where {} would do", sizes.len());
    // Each is found by halving: six times for fifty, with a call for either half.
    assert!(calls <= sizes.len() as u64 + 2 * 14, "{calls}");
}

#[test]
fn tokens_that_are_refused_end_a_crawl_and_missing_permissions_do_not() {
    let scene = Scene::start(FACEBOOK, "--users 60 --limits off");
    let truth = Truth::read(&scene.sim);
    let words = format!("{} --limits off", words(&truth, ROBOTS));
    for token in ["bad-token-0123", "revoked/page:token-0123"] {
        let output = scene
            .crawl(token, &words)
            .output()
            .expect("the binary runs");
        assert_eq!(output.status.code(), Some(4), "{token}: {}", told(&output));
        assert!(!told(&output).contains(token));
    }
    scene.crawl_to(0, "narrow/page:token-0123", &words);
    let outcomes = scene.held(
        "SELECT query, outcome FROM query_log WHERE outcome IN ('ok', 'forbidden')
         GROUP BY 1, 2 ORDER BY 1, 2",
    );
    let expected = [
        ["albums", "forbidden"],
        ["comments", "forbidden"],
        ["pages", "ok"],
        ["photos", "forbidden"],
        ["posts", "ok"],
        ["reactions", "forbidden"],
    ];
    assert_eq!(
        outcomes,
        expected.map(|row| row.map(str::to_owned).to_vec())
    );
}

#[test]
fn whatever_the_number_of_a_throttle_the_crawl_waits_and_goes_on() {
    for (code, status) in [(4, 403), (17, 400), (32, 403), (613, 400), (80001, 400)] {
        // Nothing is told of it before; a minute passes in little more than half a second, so that the slowest
        // machine makes more calls in it than there may be.
        let body = format!(
            r#"{{"error":{{"message":"(#{code}) Too many calls","type":"OAuthException","code":{code}}}}}"#
        );
        let limits = format!(
            "[[bucket]]\nname = \"throttle\"\nscope = \"token\"\nkind = \"aligned\"\nlimit = 40\n\
             window_seconds = 60\nrefusal = {{ status = {status}, body = '{body}' }}\n"
        );
        let scene = limited(&limits, "--users 60 --limit-speed 100");
        let truth = Truth::read(&scene.sim);
        scene.crawl_to(0, TOKEN, &words(&truth, "profiles,statuses,albums"));
        let throttled = "SELECT count(*) FROM query_log WHERE outcome = 'rate limited'";
        let throttled = scene.count(throttled);
        println!(
            "{code}: {throttled} calls were refused, {} violations",
            scene.sim.violations()
        );
        assert!(throttled > 0, "{code} was never told");
        let left = "SELECT count(*) FROM frontier WHERE visited_us IS NULL";
        assert_eq!(scene.count(left), 0, "{code}");
        let posts = "SELECT count(*) FROM statuses WHERE author IS NOT NULL";
        assert_eq!(scene.count(posts), truth.posts().count() as u64, "{code}");
    }
}

#[test]
fn an_application_whose_hour_is_used_up_goes_on_in_the_next() {
    // An hour of limits passes in a minute, which is longer than the run.
    let limits = LIMITS.replace("limit = 2000", "limit = 30");
    let scene = limited(&limits, "--users 80 --limit-speed 60");
    let truth = Truth::read(&scene.sim);
    let words = format!("{} --pace burst --max-time 6s", words(&truth, "statuses"));
    let summary = scene.crawl_to(3, APP, &words);
    let answered = "SELECT count(*) FROM query_log WHERE outcome = 'ok'";
    let before = scene.count(answered);
    println!("{before} answers, {} calls: {summary}", scene.sim.calls());
    assert_eq!(scene.sim.violations(), 0);
    scene.sim.get("/_sim/advance?limit_seconds=3700");
    let summary = scene.crawl_to(3, APP, &words);
    println!("{} calls: {summary}", scene.sim.calls());
    assert!(scene.count(answered) > before, "it does not go on");
}

#[test]
fn a_cap_ends_the_run_with_what_it_has_and_the_next_goes_on() {
    let scene = Scene::start(FACEBOOK, "--users 80 --limits off");
    let truth = Truth::read(&scene.sim);
    let words = format!("{} --limits off", words(&truth, ROBOTS));
    scene.crawl_to(3, TOKEN, &format!("{words} --calls 20"));
    assert_eq!(scene.sim.calls(), 20);
    scene.crawl_to(0, TOKEN, &words);
    compare(&scene, &truth);
}

#[test]
fn a_page_that_is_too_much_is_halved_and_the_list_is_whole() {
    let scene = Scene::start(FACEBOOK, "--users 120 --limits off");
    let truth = Truth::read(&scene.sim);
    scene.crawl_to(
        0,
        TOKEN,
        &format!("{} --limits off", words(&truth, "statuses")),
    );
    let calls = scene.calls();
    let refused = calls.iter().filter(|call| call["status"] == 500);
    let refused: BTreeSet<String> = refused.map(|call| field(call, "subject")).collect();
    assert!(refused.len() > 3, "{refused:?}");
    for page in &refused {
        let of_page = calls.iter().filter(|call| field(call, "subject") == *page);
        let size = |call: &Value| {
            let target = field(call, "target");
            let size = target.split("limit=").last().unwrap_or_default();
            size.split('&').next().unwrap_or_default().to_owned()
        };
        let sizes: Vec<String> = of_page.map(size).collect();
        println!("{page}: {sizes:?}");
        assert_eq!(sizes[0], "100");
        assert_eq!(sizes.last().map(String::as_str), Some("25"));
        assert!(sizes[1..].iter().all(|size| size == "50" || size == "25"));
    }
    let outcomes = "SELECT count(*) FROM query_log WHERE outcome = 'too much data'";
    assert!(scene.count(outcomes) >= refused.len() as u64);
    let posts = "SELECT count(*) FROM statuses WHERE author IS NOT NULL";
    assert_eq!(scene.count(posts), truth.posts().count() as u64);
}

#[test]
fn neither_tokens_nor_places_in_lists_are_kept() {
    let scene = Scene::start(FACEBOOK, "--users 80 --limits off");
    let truth = Truth::read(&scene.sim);
    // Pages of ten, so that there are cursors, and an end on the way, so that some would be needed.
    let small = changed(&scene, &[("size = 100,", "size = 10,")]);
    let words = format!("{} --limits off", words(&truth, ROBOTS));
    let is_left_open = |calls: u64| {
        let words = format!("{words} --calls {calls}");
        let mut capped = scene.crawl_with(&small, TOKEN, &words);
        let output = capped.output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(3), "{}", told(&output));
        scene.count("SELECT count(*) FROM cursors WHERE next = ''") > 0
    };
    let mut ends = 11..=40;
    assert!(ends.any(is_left_open), "no walk was left open");
    let further = || scene.count("SELECT count(*) FROM query_log WHERE cursor = 'not kept'");
    let before = further();
    nothing_holds(&scene, &["secret-0123456789", CURSOR]);
    // Walks that were left open begin anew, and miss nothing.
    to_the_end(scene.crawl_with(&small, TOKEN, &words));
    compare(&scene, &truth);
    assert!(further() > before);
    nothing_holds(&scene, &["secret-0123456789", CURSOR]);
}

#[test]
fn what_answers_repeat_of_a_token_is_blotted_out_in_raw_answers() {
    let scene = Scene::start(FACEBOOK, "--users 20 --limits off");
    let truth = Truth::read(&scene.sim);
    let small = changed(&scene, &[("size = 100,", "size = 10,")]);
    let words = format!("{} --limits off --raw", words(&truth, ROBOTS));
    to_the_end(scene.crawl_with(&small, TOKEN, &words));
    nothing_holds(&scene, &["secret-0123456789"]);
}

#[test]
fn an_application_that_wants_a_proof_gets_one_and_its_secret_is_nowhere() {
    const APP_SECRET: &str = "laboratory-app-secret";
    let scene = Scene::start(FACEBOOK, "--users 120 --limits off");
    let truth = Truth::read(&scene.sim);
    let small = changed(&scene, &[("size = 100,", "size = 10,")]);
    let words = format!("{} --limits off --raw", words(&truth, ROBOTS));
    let token = "proof-planted/page:secret-0123456789";
    let run = |secret: Option<&str>| {
        let mut crawl = scene.crawl_with(&small, token, &words);
        if let Some(secret) = secret {
            crawl.env("FACEBOOK_APP_SECRET", secret);
        }
        let output = crawl.output().expect("the binary runs");
        let said = told(&output);
        for hidden in ["secret-0123456789", APP_SECRET, "another-app-secret"] {
            assert!(!said.contains(hidden), "{said}");
        }
        output.status.code()
    };
    assert_eq!(run(None), Some(4));
    assert_eq!(run(Some("another-app-secret")), Some(4));
    assert_eq!(scene.count("SELECT count(*) FROM statuses"), 0);
    assert_eq!(run(Some(APP_SECRET)), Some(0));
    compare(&scene, &truth);
    let asked = scene.sim.json("/_sim/ledger");
    let asked = asked["calls"].as_array().expect("calls").iter();
    let proofs = asked.filter_map(|call| {
        let target = field(call, "target");
        let (_, proof) = target.split_once("appsecret_proof=")?;
        Some(proof.split('&').next().unwrap_or_default().to_owned())
    });
    let proofs: Vec<String> = proofs.collect();
    assert!(!proofs.is_empty() && proofs.iter().all(|proof| proof.len() == 64));
    let mut hidden: Vec<&str> = proofs.iter().map(String::as_str).collect();
    hidden.sort_unstable();
    hidden.dedup();
    hidden.extend(["secret-0123456789", APP_SECRET, "another-app-secret"]);
    nothing_holds(&scene, &hidden);
}

fn to_the_end(mut crawl: Command) {
    let output = crawl.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
}

/// No file of the crawl has any of these in it.
fn nothing_holds(scene: &Scene, secrets: &[&str]) {
    let entries = std::fs::read_dir(scene.folder.path(".")).expect("a folder");
    let mut read = 0;
    for entry in entries {
        let path = entry.expect("an entry").path();
        let Ok(bytes) = std::fs::read(&path) else {
            continue;
        };
        read += 1;
        for secret in secrets {
            let mut windows = bytes.windows(secret.len());
            let is_held = windows.any(|it| it == secret.as_bytes());
            assert!(!is_held, "{} holds {secret}", path.display());
        }
    }
    assert!(read > 1, "no file was looked into");
}

/// What a crawl of everything costs, beside the least that pages and batches allow.
#[test]
fn calls_for_a_thousand_pages_posts_and_comments() {
    let users = std::env::var("KITTIWAKE_TEST_CALLS_USERS").unwrap_or_else(|_| "150".to_owned());
    let scene = Scene::start(FACEBOOK, &format!("--users {users} --limits off"));
    let truth = Truth::read(&scene.sim);
    let robots = "profiles,statuses,comments,albums,photos";
    scene.crawl_to(0, TOKEN, &format!("{} --limits off", words(&truth, robots)));
    let pages = truth.present().count() as u64;
    let fit = |count: u64, size: u64| count.div_ceil(size).max(1);
    let (mut lists, mut photos) = (0, 0);
    for user in truth.present() {
        // What else they wrote takes its place in the list.
        let id = field(user, "id");
        let written = || {
            truth
                .statuses
                .keys()
                .filter(|status| truth.author(status) == id)
        };
        let count = written().count() as u64;
        // Of every eighth page only 26 posts can be had at once: 100 and 50 are refused before 25 are given.
        lists += if number(user) % 8 == 3 && count > 26 {
            2 + fit(count, 25)
        } else {
            fit(count, 100)
        };
        let media = written().filter(|status| truth.is_original(status));
        let media: u64 = media
            .filter_map(|status| truth.statuses[status]["media"].as_u64())
            .sum();
        photos += fit(media + u64::from(user["avatar"] == true), 50);
    }
    let posts: Vec<&String> = truth.posts().collect();
    let commented = posts.iter().filter_map(|post| truth.comments.get(*post));
    let (mut comments, mut threads) = (0, 0);
    for below in commented {
        comments += below.len() as u64;
        threads += fit(below.len() as u64, 100);
    }
    let least = |query, what, things, calls| Least {
        query,
        what,
        things,
        calls,
    };
    table(
        &scene,
        &[
            least("ids", "pages", pages, pages.div_ceil(50)),
            least("posts", "posts", posts.len() as u64, lists),
            least("comments", "comments", comments, threads),
            least("albums", "pages", pages, pages),
            least("photos", "pages", pages, photos),
        ],
    );
}
