//! Hacker News against a server that was written from the API's documentation: a crawl holds what
//! the server has, row by row.

use crate::counterpart::{Call, Counterpart, reply};
use crate::support::{Folder, Running, open, rows, text};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

/// Everything that the server knows: items by id, users by name, lists by name.
struct World {
    items: BTreeMap<u64, Value>,
    users: BTreeMap<&'static str, Value>,
    lists: BTreeMap<&'static str, Value>,
}

/// When the first item was made, in seconds since 1970.
const BEGAN: u64 = 1_765_200_000;

fn made(id: u64) -> u64 {
    BEGAN + id % 1_000
}

fn item(id: u64, kind: &str, by: &str, more: &Value) -> (u64, Value) {
    let mut item = json!({ "id": id, "type": kind, "by": by, "time": made(id) });
    let fields = item.as_object_mut().expect("an object");
    for (name, value) in more.as_object().expect("an object") {
        if value.is_null() {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
    (id, item)
}

fn comment(id: u64, by: &str, parent: u64, kids: &[u64]) -> (u64, Value) {
    let text = format!("<i>No. {id}</i> &amp; all");
    let mut more = json!({ "parent": parent, "text": text });
    if !kids.is_empty() {
        more["kids"] = json!(kids);
    }
    item(id, "comment", by, &more)
}

impl World {
    fn new() -> Self {
        let story = |id: u64, by: &str, kids: &[u64]| {
            let more = json!({ "title": format!("Story {id}"), "url": format!("https://a.example/{id}"),
                "score": id, "descendants": kids.len(), "kids": kids });
            item(id, "story", by, &more)
        };
        let mut items = BTreeMap::from([
            story(1, "ann", &[10, 11, 13]),
            // A tree that is seven deep, with a deleted comment in its midst.
            comment(10, "bob", 1, &[20]),
            comment(20, "cay", 10, &[30, 31]),
            comment(30, "bob", 20, &[40]),
            comment(31, "ghost", 20, &[]),
            item(
                40,
                "comment",
                "",
                &json!({ "by": null, "deleted": true, "parent": 30, "kids": [50] }),
            ),
            comment(50, "dee", 40, &[60]),
            comment(60, "ann", 50, &[]),
            item(
                11,
                "comment",
                "spam",
                &json!({ "dead": true, "parent": 1, "text": "[flagged]", "kids": [12] }),
            ),
            comment(12, "cay", 11, &[]),
            story(2, "bob", &[21, 23]),
            comment(21, "ann", 2, &[22]),
            comment(22, "cay", 21, &[]),
            comment(23, "eve", 2, &[]),
            item(
                3,
                "poll",
                "ann",
                &json!({ "title": "Which?", "score": 3, "descendants": 0, "parts": [4, 5] }),
            ),
            item(
                4,
                "pollopt",
                "ann",
                &json!({ "poll": 3, "score": 7, "text": "This" }),
            ),
            item(
                5,
                "pollopt",
                "ann",
                &json!({ "poll": 3, "score": 8, "text": "That" }),
            ),
            item(
                6,
                "job",
                "ann",
                &json!({ "title": "Work", "url": "https://a.example/work", "score": 1 }),
            ),
            story(7, "far", &[]),
            // An item of the future, whose number is beyond what a double can tell from the next.
            story(9_007_199_254_740_993, "ann", &[]),
        ]);
        // These are named and not there: 13 answers a story, 8 stands among what somebody wrote.
        items.insert(13, Value::Null);
        items.insert(8, Value::Null);
        let user = |name: &str, submitted: &[u64]| {
            json!({ "id": name, "created": BEGAN, "karma": submitted.len(), "about": "I am <b>me</b>",
                "submitted": submitted })
        };
        let users = BTreeMap::from([
            (
                "ann",
                user("ann", &[9_007_199_254_740_993, 60, 21, 8, 6, 5, 4, 3, 1]),
            ),
            ("bob", user("bob", &[30, 10, 2])),
            ("cay", user("cay", &[20, 12, 22])),
            ("dee", user("dee", &[50])),
            ("eve", user("eve", &[23])),
            ("far", user("far", &[7])),
            ("Ann", json!({ "id": "Ann", "created": BEGAN, "karma": 1 })),
        ]);
        let lists = BTreeMap::from([
            ("topstories", json!([2, 7, 13])),
            (
                "updates",
                json!({ "items": [22], "profiles": ["dee", "Ann"] }),
            ),
        ]);
        Self {
            items,
            users,
            lists,
        }
    }

    /// The answer to a call, and its status. What the documentation does not name is refused.
    fn answer(&self, call: &Call) -> (&'static str, Value) {
        let denied = ("401 Unauthorized", json!({ "error": "Permission denied" }));
        let Some(path) = call
            .target
            .strip_prefix("/v0/")
            .and_then(|it| it.strip_suffix(".json"))
        else {
            return denied;
        };
        let has_credential = call
            .headers
            .iter()
            .any(|line| line.to_lowercase().starts_with("authorization"));
        if call.method != "GET" || has_credential {
            return denied;
        }
        let found = match path.split_once('/') {
            Some(("item", id)) => id.parse().ok().map(|id: u64| self.items.get(&id).cloned()),
            Some(("user", name)) => Some(self.users.get(name).cloned()),
            None => self.lists.get(path).cloned().map(Some),
            Some(_) => None,
        };
        match found {
            Some(found) => ("200 OK", found.unwrap_or_default()),
            None => denied,
        }
    }

    fn item(&self, id: u64) -> &Value {
        self.items.get(&id).unwrap_or(&Value::Null)
    }

    fn is_invisible(&self, id: u64) -> bool {
        let item = self.item(id);
        item["deleted"] == true || item["dead"] == true
    }

    fn ids(value: &Value) -> Vec<u64> {
        let ids = value.as_array().map_or(&[][..], Vec::as_slice);
        ids.iter().filter_map(Value::as_u64).collect()
    }

    /// The items, and all that stands below them.
    fn trees(&self, tops: impl IntoIterator<Item = u64>) -> BTreeSet<u64> {
        let mut waiting: Vec<u64> = tops.into_iter().collect();
        let mut met = BTreeSet::new();
        while let Some(id) = waiting.pop() {
            if met.insert(id) {
                let item = self.item(id);
                waiting.extend(Self::ids(&item["kids"]));
                waiting.extend(Self::ids(&item["parts"]));
            }
        }
        met
    }

    /// Those that a crawl from these users asks about.
    fn asked_from(&self, users: &[&str], more: &[u64]) -> BTreeSet<u64> {
        let submitted =
            |name: &&str| Self::ids(&self.users.get(name).unwrap_or(&Value::Null)["submitted"]);
        let own = users.iter().flat_map(submitted);
        self.trees(own.chain(more.iter().copied()))
    }
}

/// `id|author|reply_to|type|title|text|link|created|likes|is deleted` of every row of posts.
fn expected_posts(world: &World, users: &[&str], asked: &BTreeSet<u64>) -> BTreeSet<Vec<String>> {
    // What the users' lists and the items themselves say.
    let mut authors: BTreeMap<u64, String> = BTreeMap::new();
    let mut parents: BTreeMap<u64, u64> = BTreeMap::new();
    for name in users {
        let submitted = &world.users.get(name).unwrap_or(&Value::Null)["submitted"];
        authors.extend(
            World::ids(submitted)
                .into_iter()
                .map(|id| (id, (*name).to_owned())),
        );
    }
    for id in asked {
        let item = world.item(*id);
        for kid in World::ids(&item["kids"])
            .into_iter()
            .chain(World::ids(&item["parts"]))
        {
            parents.insert(kid, *id);
        }
        if world.is_invisible(*id) {
            continue;
        }
        authors.extend(item["by"].as_str().map(|by| (*id, by.to_owned())));
        let parent = item["parent"].as_u64().or_else(|| item["poll"].as_u64());
        parents.extend(parent.map(|parent| (*id, parent)));
    }
    let mut posts = BTreeSet::new();
    for id in asked {
        let (author, parent) = (authors.get(id), parents.get(id));
        let item = world.item(*id);
        let is_described = !item.is_null() && !world.is_invisible(*id);
        if !is_described && author.is_none() && parent.is_none() {
            continue;
        }
        let told = |name: &str| {
            let value = &item[name];
            match value {
                _ if !is_described => String::new(),
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => String::new(),
            }
        };
        let plain = told("text")
            .replace("<i>", "")
            .replace("</i>", "")
            .replace("&amp;", "&");
        let created = if is_described {
            format!("{}000000", made(*id))
        } else {
            String::new()
        };
        posts.insert(vec![
            id.to_string(),
            author.cloned().unwrap_or_default(),
            parent.map(u64::to_string).unwrap_or_default(),
            told("type"),
            told("title"),
            plain,
            told("url"),
            created,
            told("score"),
            u8::from(world.is_invisible(*id)).to_string(),
        ]);
    }
    posts
}

const POSTS: &str = "SELECT
    (SELECT id FROM ids WHERE key = statuses.key AND alias = ''),
    (SELECT id FROM ids WHERE key = author AND alias = ''),
    (SELECT id FROM ids WHERE key = reply_to AND alias = ''),
    extra ->> 'type', extra ->> 'title', text, extra ->> 'link_url', created_us, likes_count,
    deleted_us IS NOT NULL FROM statuses";

/// Outcomes of what was asked, by id.
const OUTCOMES: &str = "SELECT (SELECT id FROM ids WHERE ids.key = outcomes.key AND alias = ''),
    outcome FROM outcomes WHERE query = '?'";

fn serve(world: &Arc<World>) -> Counterpart {
    let world = Arc::clone(world);
    Counterpart::start(move |call, stream| {
        let (status, body) = world.answer(call);
        reply(stream, status, "", body.to_string().as_bytes())
    })
}

fn crawl(folder: &Folder, server: &Counterpart, words: &str) -> Command {
    let mut command = folder.kittiwake();
    let address = format!("{}/v0", server.address);
    command.args([
        "crawl",
        "hackernews",
        "--host",
        &address,
        "--into",
        "t.db",
        "--quiet",
    ]);
    command.args(["--limits", "off", "--until-idle"]);
    command.args(words.split_whitespace());
    command
}

fn done(command: &mut Command) {
    let output = command.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// What was asked for of one kind, in order.
fn asked(server: &Counterpart, kind: &str) -> Vec<String> {
    let prefix = format!("/v0/{kind}/");
    let targets = server.calls().into_iter().map(|call| call.target);
    let ids = targets.filter_map(|target| {
        let id = target.strip_prefix(&prefix)?.strip_suffix(".json")?;
        Some(id.to_owned())
    });
    ids.collect()
}

fn outcomes(folder: &Folder, query: &str) -> BTreeMap<String, String> {
    let found = rows(&open(&folder.path("t.db")), &OUTCOMES.replace('?', query));
    found
        .into_iter()
        .map(|mut row| (row.remove(0), row.remove(0)))
        .collect()
}

/// Every item that was asked for has the outcome that the server's answer means.
fn check_outcomes(folder: &Folder, world: &World, asked: &BTreeSet<u64>) {
    let expected: BTreeMap<String, String> = asked
        .iter()
        .map(|id| {
            let item = world.item(*id);
            let outcome = match item {
                Value::Null => "not found",
                _ if item["deleted"] == true => "gone",
                _ if item["dead"] == true => "suspended",
                _ => "ok",
            };
            (id.to_string(), outcome.to_owned())
        })
        .collect();
    assert_eq!(outcomes(folder, "item"), expected);
}

#[test]
fn what_a_user_wrote_is_held_with_the_whole_trees_below_it() {
    let (folder, world) = (Folder::new(), Arc::new(World::new()));
    let server = serve(&world);
    done(&mut crawl(&folder, &server, "ann"));
    let expected = world.asked_from(&["ann"], &[]);
    let mut items = asked(&server, "item");
    assert_eq!(
        items.len(),
        expected.len(),
        "each is asked for once: {items:?}"
    );
    items.sort_by_key(|id| id.parse().unwrap_or(0_u64));
    let ids: Vec<String> = expected.iter().map(u64::to_string).collect();
    assert_eq!(items, ids);
    assert_eq!(asked(&server, "user"), ["ann"]);
    let tables = open(&folder.path("t.db"));
    assert_eq!(
        rows(&tables, POSTS),
        expected_posts(&world, &["ann"], &expected)
    );
    check_outcomes(&folder, &world, &expected);
    let users = rows(
        &tables,
        "SELECT handle, description, created_us, statuses_count, extra ->> 'karma', url FROM users",
    );
    let user = [
        "ann",
        "I am me",
        "1765200000000000",
        "9",
        "9",
        "https://news.ycombinator.com/user?id=ann",
    ];
    assert_eq!(users, BTreeSet::from([user.map(str::to_owned).to_vec()]));
    // A conversation has its beginning, through the deleted comment too, if that is within reach.
    let roots = rows(
        &tables,
        "SELECT
        (SELECT id FROM ids WHERE key = comments.key AND alias = ''),
        (SELECT id FROM ids WHERE key = root AND alias = '') FROM comments",
    );
    let root = |id: u64| {
        roots
            .iter()
            .find(|row| row[0] == id.to_string())
            .map(|row| row[1].as_str())
    };
    for (id, expected) in [
        (10, "1"),
        (50, "1"),
        (60, "1"),
        (12, "1"),
        (4, "3"),
        (21, ""),
        (22, ""),
    ] {
        assert_eq!(root(id), Some(expected), "{id}");
    }
}

#[test]
fn commenters_come_in_and_a_killed_crawl_holds_the_same() {
    let (folder, world) = (Folder::new(), Arc::new(World::new()));
    let (told, heard) = mpsc::channel();
    let (told, count) = (Mutex::new(told), AtomicUsize::new(0));
    let known = Arc::clone(&world);
    let server = Counterpart::start(move |call, stream| {
        if count.fetch_add(1, Ordering::Relaxed) == 9 {
            // Nobody hears the tenth answer.
            let _ = told.lock().expect("a sender").send(());
            let _ = std::io::Read::read(stream, &mut [0]);
            return Ok(());
        }
        let (status, body) = known.answer(call);
        reply(stream, status, "", body.to_string().as_bytes())
    });
    let mut running = Running::start(&mut crawl(&folder, &server, "ann --depth 1"));
    heard.recv().expect("ten calls");
    running.kill();
    done(&mut crawl(&folder, &server, "ann --depth 1"));
    // Everybody who answered what ann wrote, or somebody below it.
    let users = ["ann", "bob", "cay", "dee", "ghost"];
    let expected = world.asked_from(&users, &[]);
    let tables = open(&folder.path("t.db"));
    assert_eq!(
        rows(&tables, POSTS),
        expected_posts(&world, &users, &expected)
    );
    check_outcomes(&folder, &world, &expected);
    let visited: BTreeSet<String> = asked(&server, "user").into_iter().collect();
    assert_eq!(visited, BTreeSet::from(users.map(str::to_owned)));
    assert_eq!(outcomes(&folder, "user")["ghost"], "not found");
    let gone = rows(&tables, "SELECT reason FROM invalid_users");
    assert_eq!(gone, BTreeSet::from([vec!["not found".to_owned()]]));
    // What was under way may be asked for again, and nothing else.
    let calls = asked(&server, "item");
    let once: BTreeSet<&String> = calls.iter().collect();
    assert!(calls.len() - once.len() <= 9, "{calls:?}");
}

#[test]
fn lists_bring_in_the_stories_that_they_name() {
    let (folder, world) = (Folder::new(), Arc::new(World::new()));
    let server = serve(&world);
    done(&mut crawl(&folder, &server, "list:top list:updates"));
    // Nobody's profile is nearer than a step.
    assert_eq!(asked(&server, "user"), [""; 0]);
    let expected = world.trees([2, 7, 13, 22]);
    let tables = open(&folder.path("t.db"));
    assert_eq!(rows(&tables, POSTS), expected_posts(&world, &[], &expected));
    check_outcomes(&folder, &world, &expected);
    let found = "SELECT (SELECT id FROM ids WHERE key = from_key AND alias = ''),
        (SELECT id FROM ids WHERE key = to_key AND alias = '') FROM links WHERE kind = 'found'";
    let links: Vec<String> = rows(&tables, found)
        .iter()
        .map(|row| row.join(" "))
        .collect();
    assert_eq!(
        links,
        [
            "13 topstories",
            "2 topstories",
            "22 updates",
            "7 topstories",
            "Ann updates",
            "dee updates"
        ]
    );
    done(&mut crawl(&folder, &server, "--depth 1"));
    let visited: BTreeSet<String> = asked(&server, "user").into_iter().collect();
    let authors = ["Ann", "ann", "bob", "cay", "dee", "eve", "far"];
    assert_eq!(visited, BTreeSet::from(authors.map(str::to_owned)));
}

#[test]
fn seeds_are_names_and_addresses() {
    let (folder, world) = (Folder::new(), Arc::new(World::new()));
    let server = serve(&world);
    let seeds = "https://news.ycombinator.com/user?id=Ann https://news.ycombinator.com/item?id=50 item:23 nobody";
    done(&mut crawl(&folder, &server, seeds));
    let mut items = asked(&server, "item");
    items.sort();
    assert_eq!(items, ["23", "50", "60"]);
    let mut users = asked(&server, "user");
    users.sort();
    assert_eq!(users, ["Ann", "nobody"]);
    assert_eq!(outcomes(&folder, "user")["nobody"], "not found");
    let output = crawl(&folder, &server, "list:middling")
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("list:top"),
        "{}",
        text(&output.stderr)
    );
}
