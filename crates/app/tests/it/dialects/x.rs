//! X: what a crawl holds is what is true, whatever the limits, the faults and the tokens.

use super::calls::{Least, table};
use super::{Scene, Speaks};
use crate::kill::run_and_kill;
use crate::oracle::{Rows, field};
use crate::strict::{Held, held_between};
use crate::support::{Dice, Folder, Sim};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const X: Speaks = Speaks {
    network: "x",
    base: "/2",
    token_variable: "KITTIWAKE_X_TOKEN",
};
/// An application's own token.
const APP: &str = "laboratory-planted-0123456789";
/// Everything that can be had of others.
const ROBOTS: &str = "relations,profiles,statuses,comments_all,reposts";
/// The same without the archive: its limit of one call a second is shorter than the way of a call
/// when the time of limits runs a thousand times as fast.
const LIMITED_ROBOTS: &str = "relations,profiles,statuses,comments,reposts";
const WEEK_US: i64 = 7 * 86_400_000_000;

/// The ground truth, in X's ids.
struct Truth {
    users: BTreeMap<String, Value>,
    statuses: BTreeMap<String, Value>,
    relations: Vec<(String, String)>,
}

/// Rows that a crawl of everything has to hold.
#[derive(Default)]
struct Expected {
    users: Rows,
    relations: Rows,
    statuses: Rows,
    comments: Rows,
    reposts: Rows,
    tags: Rows,
    mentions: Rows,
    missing: Rows,
}

fn by_id(rows: Vec<Value>) -> BTreeMap<String, Value> {
    rows.into_iter()
        .map(|row| (field(&row, "id"), row))
        .collect()
}

/// The id of a post here: its millisecond since 2010, and its author's number.
fn post_id(status: &Value) -> String {
    let at_ms = status["created_us"].as_u64().expect("a time") / 1_000;
    let number: u64 = field(status, "local_id").parse().expect("a number");
    let author = (number >> 5) & ((1 << 22) - 1);
    (((at_ms - 1_288_834_974_657) << 22) | author).to_string()
}

/// Words as people read them: no marks, no addresses, nothing about edits.
fn words_of(html: &str) -> String {
    let mut text = String::new();
    for part in html
        .replace("<br />", "\n")
        .replace("</p><p>", "\n")
        .split('<')
    {
        text.push_str(part.split_once('>').map_or(part, |(_, behind)| behind));
    }
    for (escaped, sign) in [("&lt;", "<"), ("&gt;", ">"), ("&#39;", "'"), ("&amp;", "&")] {
        text = text.replace(escaped, sign);
    }
    let text = text
        .trim()
        .strip_suffix("(edited)")
        .unwrap_or(text.trim())
        .trim_end();
    if text.contains("https://") {
        "with an address".to_owned()
    } else {
        text.to_owned()
    }
}

impl Truth {
    fn read(sim: &Sim, more: &str) -> Self {
        let pair = |row: &Value| (field(row, "source"), field(row, "target"));
        Self {
            users: by_id(sim.truth_where("users", more)),
            statuses: by_id(sim.truth_where("statuses", more)),
            relations: sim
                .truth_where("user_relations", more)
                .iter()
                .map(pair)
                .collect(),
        }
    }

    fn user(&self, uri: &str) -> String {
        format!("user {}", field(&self.users[uri], "local_id"))
    }

    fn post(&self, uri: &str) -> String {
        format!("post {}", post_id(&self.statuses[uri]))
    }

    fn is_locked(&self, uri: &str) -> bool {
        self.users[uri]["locked"] == true
    }

    /// Whether everybody sees a post.
    fn shows(&self, status: &Value) -> bool {
        let original = self.statuses.get(&field(status, "repost_of"));
        !self.is_locked(&field(status, "author"))
            && !original.is_some_and(|original| self.is_locked(&field(original, "author")))
    }

    fn shown(&self) -> impl Iterator<Item = &Value> {
        self.statuses.values().filter(|status| self.shows(status))
    }

    /// Everybody, named by number: those who are banned as well.
    fn seeds(&self) -> String {
        let ids = self
            .users
            .values()
            .map(|user| format!("id:{}", field(user, "local_id")));
        ids.collect::<Vec<_>>().join(" ")
    }

    fn expected(&self) -> Expected {
        let mut expected = Expected::default();
        for (uri, user) in &self.users {
            let outcome = match (user["gone"] == true, user["suspended"] == true) {
                (true, _) => "not found",
                (false, true) => "suspended",
                (false, false) => {
                    expected.users.insert(self.user_row(uri, user));
                    continue;
                }
            };
            expected
                .missing
                .insert(vec![self.user(uri), outcome.to_owned()]);
        }
        for (source, target) in &self.relations {
            if !self.is_locked(source) || !self.is_locked(target) {
                expected
                    .relations
                    .insert(vec![self.user(source), self.user(target)]);
            }
        }
        for status in self.shown() {
            self.expect_post(status, &mut expected);
        }
        expected
    }

    fn user_row(&self, uri: &str, user: &Value) -> Vec<String> {
        let names = [
            "username",
            "display_name",
            "locked",
            "created_us",
            "followers",
            "following",
            "statuses",
        ];
        let mut row = vec![self.user(uri)];
        row.extend(names.iter().map(|name| field(user, name)));
        row
    }

    fn expect_post(&self, status: &Value, expected: &mut Expected) {
        let id = self.post(&field(status, "id"));
        let author = self.user(&field(status, "author"));
        let original = field(status, "repost_of");
        let seconds = status["created_us"].as_i64().expect("a time") / 1_000_000;
        let language = |status: &Value| match field(status, "language") {
            none if none.is_empty() => "und".to_owned(),
            language => language,
        };
        let is_repost = !original.is_empty();
        let (text, repost_of, language) = if is_repost {
            let repeated = &self.statuses[&original];
            (String::new(), self.post(&original), language(repeated))
        } else {
            (
                words_of(&field(status, "content")),
                String::new(),
                language(status),
            )
        };
        expected.statuses.insert(vec![
            id.clone(),
            author.clone(),
            seconds.to_string(),
            text,
            language,
            field(status, "sensitive"),
            repost_of.clone(),
            field(status, "replies"),
            field(status, "reposts"),
            field(status, "likes"),
        ]);
        let mut link = |from: &str, to: &str| {
            expected
                .reposts
                .insert(vec![from.to_owned(), to.to_owned()]);
        };
        if is_repost {
            link(&id, &repost_of);
            link(&author, &repost_of);
            return;
        }
        let parent = self.statuses.get(&field(status, "reply_to"));
        if let Some(parent) = parent.filter(|parent| self.shows(parent)) {
            let parent = self.post(&field(parent, "id"));
            expected.comments.insert(vec![id.clone(), parent]);
        }
        let list = |name: &str| status[name].as_array().cloned().unwrap_or_default();
        for tag in list("tags") {
            let tag = tag.as_str().unwrap_or_default().to_lowercase();
            expected.tags.insert(vec![id.clone(), format!("tag {tag}")]);
        }
        for user in list("mentions") {
            let user = self.user(user.as_str().unwrap_or_default());
            expected.mentions.insert(vec![id.clone(), user]);
        }
    }
}

impl Expected {
    /// What is compared, and how a crawl file shows it.
    fn tables(&self) -> [(&'static str, &Rows, &'static str); 8] {
        [
            (
                "users",
                &self.users,
                "SELECT key AS \"@\", handle, display_name, is_protected, created_us, followers_count,
                        following_count, statuses_count FROM users WHERE display_name IS NOT NULL",
            ),
            (
                "relations",
                &self.relations,
                "SELECT source AS \"@\", target AS \"@\" FROM user_relations",
            ),
            (
                "statuses",
                &self.statuses,
                "SELECT key AS \"@\", author AS \"@\", created_us / 1000000,
                        CASE WHEN repost_of IS NOT NULL THEN '' WHEN text LIKE '%https://%'
                             THEN 'with an address' ELSE text END,
                        language, is_sensitive, repost_of AS \"@\", replies_count, reposts_count,
                        likes_count FROM statuses WHERE created_us IS NOT NULL",
            ),
            (
                "comments",
                &self.comments,
                "SELECT c.key AS \"@\", c.parent AS \"@\" FROM comments c JOIN statuses p
                 ON p.key = c.parent WHERE p.created_us IS NOT NULL",
            ),
            (
                "reposts",
                &self.reposts,
                "SELECT from_key AS \"@\", to_key AS \"@\" FROM links WHERE kind = 'repost'",
            ),
            (
                "tags",
                &self.tags,
                "SELECT from_key AS \"@\", to_key AS \"@\" FROM links JOIN statuses s
                 ON s.key = from_key WHERE kind = 'tag' AND s.repost_of IS NULL",
            ),
            (
                "mentions",
                &self.mentions,
                "SELECT from_key AS \"@\", to_key AS \"@\" FROM links JOIN statuses s
                 ON s.key = from_key WHERE kind = 'mention' AND s.repost_of IS NULL",
            ),
            (
                "missing",
                &self.missing,
                // Somebody who is named elsewhere is gone, and not only unknown.
                "SELECT key AS \"@\", CASE outcome WHEN 'gone' THEN 'not found' ELSE outcome END
                 FROM outcomes WHERE query = 'users' AND outcome <> 'ok'",
            ),
        ]
    }
}

/// Compares a crawl of everything with the ground truth, row by row.
fn compare(scene: &Scene, truth: &Truth) {
    let expected = truth.expected();
    let mut held = Held::open(&scene.folder);
    for (what, rows, sql) in expected.tables() {
        assert!(!rows.is_empty(), "there are no {what} to be found");
        held.compare(what, rows, sql);
    }
    held.finish();
    // Answers name what they answered, though it cannot be seen any more.
    let hidden = "SELECT count(*) FROM statuses WHERE reply_to NOT IN
                  (SELECT key FROM statuses WHERE created_us IS NOT NULL)";
    assert!(scene.count(hidden) > 0, "no answer to what is gone");
}

fn words(truth: &Truth, robots: &str) -> String {
    format!(
        "{} --robots {robots} --until-idle --concurrency 8",
        truth.seeds()
    )
}

#[test]
fn a_crawl_of_everything_stores_exactly_the_truth() {
    let scene = Scene::start(X, "--users 120 --limits off");
    let truth = Truth::read(&scene.sim, "");
    let words = words(&truth, ROBOTS);
    scene.crawl_to(0, APP, &format!("{words} --limits off"));
    compare(&scene, &truth);
    let protected = "SELECT count(DISTINCT key) FROM outcomes WHERE outcome = 'protected'
                     AND query = 'user_posts'";
    let locked = truth
        .users
        .values()
        .filter(|user| user["locked"] == true && user["suspended"] == false);
    assert_eq!(scene.count(protected), locked.count() as u64);
}

#[test]
fn strict_limits_are_kept_and_everything_is_found() {
    // Windows of a quarter of an hour pass in three seconds.
    let scene = Scene::start(X, "--users 60 --limits strict --limit-speed 300");
    let truth = Truth::read(&scene.sim, "");
    scene.crawl_to(0, APP, &words(&truth, LIMITED_ROBOTS));
    assert_eq!(
        scene.sim.violations(),
        0,
        "{}",
        scene.sim.json("/_sim/ledger?calls=0")["violations"]
    );
    compare(&scene, &truth);
    let ledger = scene.sim.json("/_sim/ledger?calls=0");
    let windows = ledger["windows"].as_array().expect("windows");
    let is_full = |window: &&Value| {
        let count = |name: &str| window[name].as_u64().unwrap_or(0);
        window["bucket"] == "reactions-app" && count("used") == count("limit")
    };
    let full = windows.iter().filter(is_full).count();
    println!("{full} windows of reposts were used up");
    assert!(full > 0, "no limit was ever met");
}

#[test]
fn a_hostile_network_and_kills_take_only_what_is_withdrawn() {
    let scene = Scene::start(
        X,
        "--users 150 --limits strict --limit-speed 1800 --faults hostile --stall-ms 50",
    );
    let before = Truth::read(&scene.sim, "");
    let words = words(&before, LIMITED_ROBOTS);
    let mut dice = Dice::new("kills of X");
    let mut kills = 0;
    for round in 0..6 {
        let killed = run_and_kill(&scene.sim, &mut scene.crawl(APP, &words), &mut dice, round);
        kills += u32::from(killed.is_some());
    }
    scene.crawl_to(0, APP, &words);
    assert!(kills > 2, "{kills} kills");
    assert_eq!(
        scene.sim.violations(),
        0,
        "{}",
        scene.sim.json("/_sim/ledger?calls=0")["violations"]
    );
    let after = Truth::read(&scene.sim, "");
    let (most, least) = (before.expected(), after.expected());
    let lost = held_after_faults(&scene, &least, &most);
    let faults = scene.sim.json("/_sim/faults/summary");
    println!("{kills} kills, {lost} rows were withdrawn unseen; {faults}");
}

/// What changes with the moment is left out.
fn held_after_faults(scene: &Scene, least: &Expected, most: &Expected) -> usize {
    let mut lost = 0;
    for ((what, least, sql), (_, most, _)) in least.tables().into_iter().zip(most.tables()) {
        let columns = match what {
            "users" | "statuses" => 1,
            // Who is banned on the way is not missing before.
            "missing" => continue,
            _ => usize::MAX,
        };
        let mut held = Held::open(&scene.folder).rows(sql);
        if what == "relations" {
            let gone = sql.replace("user_relations", "invalid_relations");
            held.extend(Held::open(&scene.folder).rows(&gone));
        }
        lost += held_between((what, columns), &held, (least, most));
    }
    lost
}

#[test]
fn batches_are_full() {
    let scene = Scene::start(X, "--users 600 --limits off");
    let truth = Truth::read(&scene.sim, "");
    let words = format!("{} --limits off", words(&truth, "profiles"));
    scene.crawl_to(0, APP, &words);
    let sizes = |calls: &[Value]| -> Vec<usize> {
        let batches = calls.iter().filter(|call| call["query"] == "users");
        let size = |call: &Value| field(call, "subject").split(',').count();
        batches.map(size).collect()
    };
    let full = sizes(&scene.calls());
    let asked: usize = full.iter().sum();
    println!("{asked} accounts in batches of {full:?}");
    assert_eq!(asked, 600);
    assert!(asked * 100 >= full.len() * 100 * 95, "{full:?}");
}

#[test]
fn a_poison_id_costs_only_itself() {
    let scene = Scene::start(X, "--users 150 --limits off");
    let truth = Truth::read(&scene.sim, "");
    let words = words(&truth, "profiles");
    // One that is no number spoils every batch that it is in: halves of 100 are 7.
    scene.crawl_to(0, APP, &format!("id:12x7 {words} --limits off"));
    let calls = scene.calls();
    let refused = calls.iter().filter(|call| call["status"] == 400).count();
    println!("{refused} calls were refused, of {}", calls.len());
    assert!((1..=8).contains(&refused), "{refused}");
    let found = "SELECT count(*) FROM users WHERE display_name IS NOT NULL";
    let active = truth
        .users
        .values()
        .filter(|user| user["suspended"] == false);
    assert_eq!(scene.count(found), active.count() as u64);
    let poison = "SELECT o.outcome FROM outcomes o JOIN ids i ON i.key = o.key WHERE i.id = '12x7'";
    assert_eq!(scene.held(poison).len(), 1);
}

#[test]
fn tokens_that_are_refused_end_a_crawl_and_missing_permissions_do_not() {
    let scene = Scene::start(X, "--users 60 --limits off");
    let truth = Truth::read(&scene.sim, "");
    let words = format!(
        "{} --limits off",
        words(&truth, "relations,profiles,statuses")
    );
    for token in ["bad-planted-0123456789", "revoked-planted-0123456789"] {
        scene.crawl_to(4, token, &words);
    }
    assert_eq!(scene.count("SELECT count(*) FROM statuses"), 0);
    scene.crawl_to(0, "narrow-planted-0123456789", &words);
    let forbidden = "SELECT count(DISTINCT key) FROM outcomes WHERE outcome = 'forbidden'
                     AND query = 'following'";
    let active = truth
        .users
        .values()
        .filter(|user| user["suspended"] == false)
        .count() as u64;
    assert!(scene.count(forbidden) >= active, "nobody's lists are shown");
    let shown = truth.shown().count() as u64;
    let held = "SELECT count(*) FROM statuses WHERE created_us IS NOT NULL";
    assert_eq!(scene.count(held), shown, "posts go on");
}

/// A file of limits with a cap on posts of a month.
fn capped(posts: u32) -> Folder {
    let folder = Folder::new();
    let body = r#"{"title":"UsageCapExceeded","detail":"Usage cap exceeded: Monthly product cap","type":"https://api.twitter.com/2/problems/usage-capped"}"#;
    let queries = "\"timeline\", \"tweets\", \"search_all\"";
    let costs = "timeline = 0, tweets = 0, search_all = 0";
    let file = format!(
        "[[bucket]]\nname = \"cap\"\nscope = \"app\"\nqueries = [{queries}]\nkind = \"monthly\"\n\
         time_zone = \"UTC\"\nlimit = {posts}\ncost = {{ {costs} }}\nitem_cost = 1\n\
         refusal = {{ status = 429, body = '{body}' }}\n"
    );
    std::fs::write(folder.path("capped.toml"), file).expect("a file of limits");
    folder
}

#[test]
fn the_cap_of_a_month_stops_posts_and_nothing_else() {
    let scene = Scene::start_in(capped(150), X, "--users 60 --limits-file capped.toml");
    let truth = Truth::read(&scene.sim, "");
    let words = words(&truth, "relations,profiles,statuses");
    let summary = scene.crawl_to(3, APP, &format!("{words} --max-time 6s"));
    assert_eq!(scene.sim.violations(), 0, "{summary}");
    let profiles = "SELECT count(*) FROM frontier WHERE robot = 'profiles' AND visited_us IS NULL";
    assert_eq!(scene.count(profiles), 0, "profiles go on");
    let relations =
        "SELECT count(*) FROM frontier WHERE robot = 'relations' AND visited_us IS NULL";
    assert_eq!(scene.count(relations), 0, "relations go on");
    println!("{}", summary["end"]);
    let left = "SELECT count(*) FROM frontier WHERE robot = 'statuses' AND visited_us IS NULL";
    assert!(scene.count(left) > 0, "the cap was never met");
}

#[test]
fn a_spending_limit_is_kept_and_the_rest_is_for_later() {
    let scene = Scene::start(X, "--users 60 --limits off");
    let truth = Truth::read(&scene.sim, "");
    let words = words(&truth, "profiles,statuses");
    let summary = scene.crawl_to(3, APP, &format!("{words} --max-spend 2USD"));
    assert_eq!(summary["end"]["reason"], "spend", "{summary}");
    let units = summary["allowance_used"]["spend"]["units"]
        .as_f64()
        .unwrap_or(0.0);
    println!("{units} of 2000000 millionths were spent");
    assert!(units > 0.0, "{summary}");
    let billed = bill(&scene);
    assert!(billed <= 2_000_000, "{billed} were billed");
    assert!(units >= billed as f64, "{units} for {billed}");
    let made = scene.calls().len();
    scene.crawl_to(0, APP, &words);
    assert!(scene.calls().len() > made, "the rest is asked for later");
    let shown = truth.shown().count() as u64;
    let held = "SELECT count(*) FROM statuses WHERE created_us IS NOT NULL";
    assert_eq!(scene.count(held), shown);
}

/// What the network bills, in millionths of a dollar.
fn bill(scene: &Scene) -> u64 {
    let ledger = scene.sim.json("/_sim/ledger?calls=0");
    ledger["bill"]["total"].as_u64().expect("a bill")
}

/// What a run has reckoned, in millionths of a dollar.
fn reckoned(summary: &Value) -> u64 {
    let units = &summary["allowance_used"]["spend"]["units"];
    units.as_u64().unwrap_or_else(|| panic!("{summary}"))
}

/// Holds what was reckoned against the bill. Around midnight more may be reckoned, since nobody knows what is
/// already of the next day.
fn compare_bill(scene: &Scene, reckoned: u64) {
    let ledger = scene.sim.json("/_sim/ledger?calls=0");
    let bill = &ledger["bill"];
    println!("{reckoned} millionths were reckoned; {bill}");
    let total = bill["total"].as_u64().expect("a bill");
    assert!(bill["free"].as_u64() > Some(0), "nothing came twice");
    if bill["days"].as_array().is_some_and(|days| days.len() == 1) {
        assert_eq!(reckoned, total);
    }
    assert!(reckoned >= total);
}

#[test]
fn what_is_reckoned_is_the_bill() {
    let scene = Scene::start(X, "--users 60 --limits off");
    let truth = Truth::read(&scene.sim, "");
    let words = words(&truth, "relations,profiles,statuses");
    let summary = scene.crawl_to(0, APP, &format!("{words} --pace burst"));
    let first = reckoned(&summary);
    compare_bill(&scene, first);
    // A crawl into another file does not know what was charged before it, and reckons it again.
    let before = bill(&scene);
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(scene.folder.path(&format!("t.db{end}")));
    }
    let summary = scene.crawl_to(0, APP, &format!("{words} --pace burst"));
    let ledger = scene.sim.json("/_sim/ledger?calls=0");
    if ledger["bill"]["days"]
        .as_array()
        .is_some_and(|days| days.len() == 1)
    {
        assert_eq!(bill(&scene), before, "all of it was billed on that day");
    }
    assert!(reckoned(&summary) > 0);
    assert!(first + reckoned(&summary) >= bill(&scene));
}

#[test]
fn a_page_is_no_larger_than_what_may_be_spent_on_it() {
    let scene = Scene::start(X, "--users 60 --limits off");
    let truth = Truth::read(&scene.sim, "");
    let words = words(&truth, "relations");
    // A full page is 10 dollars, and nobody has so much to spend on it.
    let summary = scene.crawl_to(0, APP, &format!("{words} --pace burst --max-spend 60USD"));
    let all = reckoned(&summary);
    assert!(all > 1_000_000, "{summary}");
    let fresh = Scene::start(X, "--users 60 --limits off");
    let summary = fresh.crawl_to(3, APP, &format!("{words} --pace burst --max-spend 1USD"));
    let billed = bill(&fresh);
    println!("{billed} of 1000000 millionths were billed, {all} for all");
    assert!((500_000..=1_000_000).contains(&billed), "{summary}");
    assert!(reckoned(&summary) <= 1_000_000);
}

#[test]
fn searches_tags_and_counts_find_what_the_last_days_have() {
    let scene = Scene::start(X, "--users 120 --limits off");
    let truth = Truth::read(&scene.sim, "");
    let clock = scene.sim.json("/_sim/clock");
    let now_us = clock["world"]["origin_us"].as_i64().expect("a time");
    let robots = "--robots search,hashtags,counts --until-idle --limits off";
    let words = format!("#birds search:loud {robots}");
    scene.crawl_to(0, APP, &words);
    let recent = |status: &&Value| {
        let at_us = status["created_us"].as_i64().expect("a time");
        at_us > now_us - WEEK_US && at_us < now_us - 10_000_000
    };
    let own = truth.shown().filter(|status| status["repost_of"].is_null());
    let tagged: BTreeSet<String> = own
        .filter(recent)
        .filter(|status| {
            let tags = status["tags"].as_array().into_iter().flatten();
            tags.filter_map(Value::as_str)
                .any(|tag| tag.eq_ignore_ascii_case("birds"))
        })
        .map(post_id)
        .collect();
    let sql = "SELECT i.id FROM links l JOIN ids i ON i.key = l.from_key AND i.canonical = 1
               JOIN statuses s ON s.key = l.from_key JOIN ids t ON t.key = l.to_key
               WHERE l.kind = 'tag' AND t.id = 'birds' AND s.repost_of IS NULL";
    let held: BTreeSet<String> = scene.held(sql).into_iter().flatten().collect();
    assert!(!tagged.is_empty());
    assert_eq!(tagged.difference(&held).count(), 0, "{tagged:?} {held:?}");
    let found = "SELECT count(*) FROM links WHERE kind = 'found'";
    let counted = "SELECT sum(json_extract(o.extra, '$.posts_count')) FROM objects o
                   JOIN ids i ON i.key = o.key AND i.canonical = 1 WHERE i.type = 'count'";
    let (found, counted) = (scene.count(found), scene.count(counted));
    println!("{} tagged, {found} found, {counted} counted", tagged.len());
    assert!(found > 0 && counted == found);
}

#[test]
fn calls_are_as_few_as_pages_and_batches_allow() {
    let scene = Scene::start(X, "--users 1000 --limits off");
    let truth = Truth::read(&scene.sim, "");
    let words = words(&truth, "relations,profiles,statuses,updates");
    scene.crawl_to(0, APP, &format!("{words} --limits off"));
    let users = truth.users.len() as u64;
    let count = |user: &Value, name: &str| user[name].as_u64().unwrap_or(0);
    let is_open = |user: &Value| user["locked"] == false && user["suspended"] == false;
    let pages = |name: &str| -> u64 {
        let page_of = |user: &Value| {
            if is_open(user) {
                count(user, name).div_ceil(1_000).max(1)
            } else {
                1
            }
        };
        truth.users.values().map(page_of).sum()
    };
    // Of whoever is gone the first list tells it.
    let banned = truth
        .users
        .values()
        .filter(|user| user["suspended"] == true);
    let banned = banned.count() as u64;
    let mut written: BTreeMap<String, u64> = BTreeMap::new();
    for status in truth.shown() {
        *written.entry(field(status, "author")).or_default() += 1;
    }
    let posts: u64 = written.values().sum();
    let page_of = |uri: &String| {
        written
            .get(uri)
            .map_or(1, |posts| posts.div_ceil(100).max(1))
    };
    let timelines: u64 = truth.users.keys().map(page_of).sum();
    table(
        &scene,
        &[
            Least {
                query: "users",
                what: "accounts",
                things: users,
                calls: users.div_ceil(100),
            },
            Least {
                query: "following",
                what: "accounts",
                things: users,
                calls: pages("following"),
            },
            Least {
                query: "followers",
                what: "accounts",
                things: users,
                calls: pages("followers") - banned,
            },
            Least {
                query: "timeline",
                what: "posts",
                things: posts,
                calls: timelines,
            },
        ],
    );
}
