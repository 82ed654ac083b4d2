//! Lists that page in every way a definition can say, on small servers made for it: each is walked
//! whole, whatever its pages are like and wherever the crawl is stopped.

use crate::counterpart::{Call, Counterpart, reply};
use crate::support::{Folder, Running, Tables, open, rows, text};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use url::form_urlencoded;

/// A network whose one list is walked as `lines` say.
fn definition(lines: &str) -> String {
    format!(
        r#"format = 1
name = "tiny"
verified_on = "2026-11-16"
host = {{ kind = "fixed", address = "https://api.tiny.example" }}

[types.user]
table = "users"
canonical = ".id"

[types.post]
table = "statuses"
canonical = ".id"

[types.post.fields.content]
author = {{ path = ".by", type = "user", alias = "canonical" }}
created_us = ".at"

[queries.posts]
subject = "user"
path = "/posts"
{lines}

[[queries.posts.selects]]
at = ".posts[]"
as = "post"

[[robots]]
name = "posts"
subject = "user"
steps = [{{ query = "posts" }}]

[[seeds]]
pattern = "@{{name}}"
type = "user"
value = "{{name}}"
"#
    )
}

/// What was asked for: the parameters, wherever they stand.
fn parameters(call: &Call) -> Map<String, Value> {
    let (_, query) = call.target.split_once('?').unwrap_or((&call.target, ""));
    let is_form = call.headers.iter().any(|line| line.contains("www-form"));
    let pairs = if is_form { call.body.as_str() } else { query };
    if call.method == "POST" && !is_form {
        let body: Value = serde_json::from_str(&call.body).expect("a body of JSON");
        let given = body.get("variables").unwrap_or(&body);
        return given.as_object().expect("an object").clone();
    }
    form_urlencoded::parse(pairs.as_bytes())
        .map(|(name, value)| (name.into_owned(), Value::from(value.into_owned())))
        .collect()
}

/// A whole number among them, sent as a number or as a text.
fn number(parameters: &Map<String, Value>, name: &str) -> Option<usize> {
    let value = parameters.get(name)?;
    let text = value.as_str().map(str::to_owned);
    text.unwrap_or_else(|| value.to_string()).parse().ok()
}

fn post(id: usize) -> Value {
    json!({ "id": id.to_string(), "by": "ann", "at": format!("2026-01-{:02}T00:00:00Z", id % 100) })
}

/// Seven posts, the newest first.
const IDS: [usize; 7] = [107, 106, 105, 104, 103, 102, 101];

fn posts(ids: &[usize]) -> Vec<Value> {
    ids.iter().copied().map(post).collect()
}

type Answer = fn(&Map<String, Value>) -> Value;

/// One way of paging, and the server that pages so.
struct Way {
    lines: &'static str,
    answer: Answer,
    /// Calls of a whole walk.
    calls: usize,
}

/// Pages of three, one and none in mid-walk, by their numbers.
fn uneven(place: usize) -> (&'static [usize], Option<usize>) {
    let pages: [&[usize]; 5] = [&IDS[..3], &IDS[3..4], &[], &IDS[4..6], &IDS[6..]];
    let next = (place + 1 < pages.len()).then_some(place + 1);
    (pages.get(place).copied().unwrap_or_default(), next)
}

fn from(offset: usize) -> Vec<Value> {
    posts(&IDS[offset.min(7)..(offset + 3).min(7)])
}

const WAYS: &[Way] = &[
    Way {
        lines: r#"page = { style = "cursor", at = ".meta.next", parameter = "after", size = 3 }"#,
        answer: |asked| {
            let (ids, next) = uneven(number(asked, "after").unwrap_or(0));
            match next {
                Some(next) => json!({ "posts": posts(ids), "meta": { "next": next.to_string() } }),
                None => json!({ "posts": posts(ids), "meta": {} }),
            }
        },
        calls: 5,
    },
    Way {
        lines: r#"page = { style = "cursor", at = ".next", parameter = "cursor", last = "0", size = 3 }"#,
        answer: |asked| {
            let (ids, next) = uneven(number(asked, "cursor").unwrap_or(0));
            json!({ "posts": posts(ids), "next": next.unwrap_or(0) })
        },
        calls: 5,
    },
    Way {
        lines: r#"page = { style = "next", at = ".paging.next", size_parameter = "limit", size = 3 }"#,
        answer: |asked| {
            let (ids, next) = uneven(number(asked, "after").unwrap_or(0));
            let next = next.map(|next| format!("/posts?limit=3&after={next}&access_token=secret"));
            json!({ "posts": posts(ids), "paging": { "next": next } })
        },
        calls: 5,
    },
    Way {
        lines: r#"page = { style = "number", parameter = "page", size = 3 }"#,
        answer: |asked| json!({ "posts": from((number(asked, "page").expect("a number") - 1) * 3) }),
        calls: 4,
    },
    Way {
        lines: r#"page = { style = "number", parameter = "page", first = 0, ends = "short", size = 3 }"#,
        answer: |asked| json!({ "posts": from(number(asked, "page").expect("a number") * 3) }),
        calls: 3,
    },
    Way {
        lines: r#"page = { style = "offset", parameter = "start", size = 3 }"#,
        answer: |asked| json!({ "posts": from(number(asked, "start").unwrap_or(0)) }),
        calls: 4,
    },
    Way {
        lines: r#"page = { style = "ids", parameter = "max_id", alias = "canonical", bound = "exclusive", size = 3 }"#,
        answer: |asked| json!({ "posts": from(number(asked, "max_id").map_or(0, |id| 108 - id)) }),
        calls: 4,
    },
    Way {
        lines: r#"page = { style = "ids", parameter = "max_id", alias = "canonical", bound = "inclusive", size = 3 }"#,
        answer: |asked| json!({ "posts": from(number(asked, "max_id").map_or(0, |id| 107 - id)) }),
        calls: 4,
    },
    Way {
        lines: "method = \"POST\"\nbody = \"json\"\nparameters = { who = \"{canonical}\", deep = true }\n\
                page = { style = \"offset\", parameter = \"start\", size_parameter = \"limit\", size = 3 }",
        answer: |asked| {
            assert_eq!(
                (&asked["who"], &asked["deep"]),
                (&json!("ann"), &json!(true))
            );
            assert_eq!(asked["limit"], json!(3));
            assert!(asked.get("start").is_none_or(Value::is_u64), "{asked:?}");
            json!({ "posts": from(number(asked, "start").unwrap_or(0)) })
        },
        calls: 4,
    },
    Way {
        lines: "method = \"POST\"\nbody = \"form\"\nparameters = { who = \"{canonical}\" }\n\
                page = { style = \"cursor\", at = \".next\", parameter = \"after\", size = 3 }",
        answer: |asked| {
            assert_eq!(asked["who"], json!("ann"));
            let (ids, next) = uneven(number(asked, "after").unwrap_or(0));
            json!({ "posts": posts(ids), "next": next })
        },
        calls: 5,
    },
    Way {
        lines: "method = \"POST\"\nparameters = { who = \"{canonical}\" }\n\
                graphql = \"query($who: ID!, $after: String) { posts(of: $who, after: $after) { id } }\"\n\
                page = { style = \"cursor\", at = \".page.end\", more = \".page.more\", parameter = \"after\", size = 3 }",
        answer: |asked| {
            let (ids, next) = uneven(number(asked, "after").unwrap_or(0));
            // As many servers do it, the last page has a cursor as well.
            json!({ "posts": posts(ids), "page": { "end": next.unwrap_or(9).to_string(), "more": next.is_some() } })
        },
        calls: 5,
    },
];

fn serve(answer: Answer) -> Counterpart {
    Counterpart::start(move |call, stream| {
        let body = answer(&parameters(call));
        reply(stream, "200 OK", "", body.to_string().as_bytes())
    })
}

fn command(folder: &Folder, lines: &str, server: &Counterpart, words: &str) -> Command {
    std::fs::write(folder.path("tiny.toml"), definition(lines)).expect("a file");
    let mut command = folder.kittiwake();
    command.args(["crawl", "tiny.toml", "@ann", "--host", &server.address]);
    command.args(["--into", "t.db", "--quiet", "--limits", "off"]);
    command.args(words.split_whitespace());
    command
}

fn crawl(folder: &Folder, lines: &str, server: &Counterpart, words: &str) -> Output {
    let output = command(folder, lines, server, words).output();
    output.expect("the binary runs")
}

fn succeeded(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// The first column of some rows.
fn column(folder: &Folder, sql: &str) -> Vec<String> {
    let found = rows(&open(&folder.path("t.db")), sql);
    found.into_iter().map(|mut row| row.remove(0)).collect()
}

fn stored(folder: &Folder) -> usize {
    column(folder, "SELECT key FROM statuses").len()
}

/// What was asked of a server: targets and bodies.
fn asked(server: &Counterpart) -> Vec<(String, String)> {
    let calls = server.calls().into_iter();
    calls.map(|call| (call.target, call.body)).collect()
}

fn outcome(folder: &Folder) -> Vec<String> {
    column(folder, "SELECT outcome || ' ' || reason FROM outcomes")
}

#[test]
fn a_list_is_walked_whole_in_every_way_of_paging() {
    for way in WAYS {
        let (folder, server) = (Folder::new(), serve(way.answer));
        succeeded(&crawl(&folder, way.lines, &server, "--until-idle"));
        assert_eq!(stored(&folder), 7, "{}", way.lines);
        let calls = asked(&server);
        assert_eq!(calls.len(), way.calls, "{}: {calls:?}", way.lines);
        let outcomes = outcome(&folder);
        assert_eq!(outcomes, ["ok "], "{}", way.lines);
        let open_walks = column(&folder, "SELECT query FROM cursors WHERE next IS NOT NULL");
        assert_eq!(open_walks, [""; 0], "{}", way.lines);
        let logged = column(&folder, "SELECT target || cursor FROM query_log");
        assert!(!logged.concat().contains("secret"), "{logged:?}");
    }
}

#[test]
fn a_walk_that_was_stopped_goes_on_at_its_cursor() {
    for way in WAYS {
        let (folder, server) = (Folder::new(), serve(way.answer));
        for _ in 1..way.calls {
            let output = crawl(&folder, way.lines, &server, "--until-idle --max-calls 1");
            assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        }
        succeeded(&crawl(&folder, way.lines, &server, "--until-idle"));
        assert_eq!(stored(&folder), 7, "{}", way.lines);
        let calls = asked(&server);
        let once: BTreeSet<_> = calls.iter().collect();
        assert_eq!(
            (calls.len(), once.len()),
            (way.calls, way.calls),
            "{calls:?}"
        );
    }
}

#[test]
fn a_walk_that_was_killed_goes_on_at_its_cursor() {
    let way = &WAYS[0];
    let (told, heard) = mpsc::channel();
    let told = Mutex::new(told);
    let is_first = AtomicBool::new(true);
    let server = Counterpart::start(move |call, stream| {
        let asked = parameters(call);
        if number(&asked, "after") == Some(2) && is_first.swap(false, Ordering::Relaxed) {
            // The third page does not come before the crawl is killed.
            let _ = told.lock().expect("a sender").send(());
            let _ = std::io::Read::read(stream, &mut [0]);
            return Ok(());
        }
        let body = (way.answer)(&asked).to_string();
        reply(stream, "200 OK", "", body.as_bytes())
    });
    let folder = Folder::new();
    let mut running = Running::start(&mut command(&folder, way.lines, &server, "--until-idle"));
    heard.recv().expect("the third page is asked for");
    running.kill();
    let before = server.calls().len();
    succeeded(&crawl(&folder, way.lines, &server, "--until-idle"));
    assert_eq!(stored(&folder), 7);
    let after: Vec<String> = server.calls()[before..]
        .iter()
        .map(|call| call.target.clone())
        .collect();
    let expected = ["/posts?after=2", "/posts?after=3", "/posts?after=4"];
    assert_eq!(after, expected);
}

#[test]
fn a_page_that_is_too_much_is_asked_for_in_smaller_ones() {
    const REFUSED: &str = r#"
[[errors]]
status = 500
match = '.error | contains("reduce")'
outcome = "too much data"
"#;
    let server = || {
        Counterpart::start(move |call, stream| {
            let asked = parameters(call);
            let limit = number(&asked, "limit").expect("a size");
            if limit > 2 {
                return reply(
                    stream,
                    "500 Internal",
                    "",
                    br#"{"error": "reduce the amount of data"}"#,
                );
            }
            let start = number(&asked, "after").unwrap_or(0);
            let end = (start + limit).min(7);
            // It leads on with what it would like to be asked.
            let next = (end < 7).then(|| format!("/posts?limit=8&after={end}"));
            let body = json!({ "posts": posts(&IDS[start..end]), "next": next }).to_string();
            reply(stream, "200 OK", "", body.as_bytes())
        })
    };
    let sizes = |server: &Counterpart| -> Vec<usize> {
        let calls = server.calls();
        let sizes = calls.iter().map(|call| number(&parameters(call), "limit"));
        sizes.map(|size| size.expect("a size")).collect()
    };
    let crawl = |folder: &Folder, server: &Counterpart, size_min: usize| {
        let list = format!(
            r#"page = {{ style = "next", at = ".next", size_parameter = "limit", size = 8, size_min = {size_min} }}"#
        );
        let text = definition(&list) + REFUSED;
        std::fs::write(folder.path("much.toml"), text).expect("a file");
        let words = format!(
            "crawl much.toml @ann --host {} --into t.db --quiet --limits off --until-idle",
            server.address
        );
        succeeded(&folder.say(&words));
    };
    let (folder, one) = (Folder::new(), server());
    crawl(&folder, &one, 1);
    assert_eq!(sizes(&one), [8, 4, 2, 2, 2, 2]);
    assert_eq!(
        (stored(&folder), outcome(&folder)),
        (7, vec!["ok ".to_owned()])
    );
    // What cannot be made small enough is told, and not asked for ever.
    let (folder, other) = (Folder::new(), server());
    crawl(&folder, &other, 3);
    assert_eq!(sizes(&other), [8, 4, 3]);
    assert!(outcome(&folder).concat().starts_with("too much data"));
}

#[test]
fn cursors_that_lead_in_a_circle_end_the_walk_as_a_problem() {
    let circles: [(&str, Answer); 3] = [
        (
            r#"page = { style = "cursor", at = ".next", parameter = "after", size = 3 }"#,
            |asked| {
                let place = number(asked, "after").unwrap_or(0);
                json!({ "posts": posts(&IDS[place % 7..][..1]), "next": (place + 1) % 5 })
            },
        ),
        (
            r#"page = { style = "number", parameter = "page", size = 3 }"#,
            |_| json!({ "posts": posts(&IDS[..3]) }),
        ),
        (
            r#"page = { style = "ids", parameter = "max_id", alias = "canonical", bound = "inclusive", size = 3 }"#,
            |_| json!({ "posts": posts(&IDS[..3]) }),
        ),
    ];
    for (lines, answer) in circles {
        let (folder, server) = (Folder::new(), serve(answer));
        succeeded(&crawl(&folder, lines, &server, "--until-idle"));
        assert_eq!(
            outcome(&folder),
            ["cap reached repeating cursor"],
            "{lines}"
        );
        let calls = server.calls().len();
        assert!(calls <= 24, "{lines}: {calls} calls");
    }
}

#[test]
fn a_list_that_is_cut_off_is_never_taken_for_whole() {
    // The server shows three at the most; whom it leaves out may be followed all the same.
    for (items_max, calls, standing, vanished) in [("items_max = 3, ", 2, 6, 0), ("", 4, 3, 3)] {
        let lines = format!(
            "list = \"following\"\npage = {{ style = \"number\", parameter = \"page\", {items_max}size = 3 }}"
        );
        let round = Arc::new(AtomicUsize::new(0));
        let shown = Arc::clone(&round);
        let server = Counterpart::start(move |call, stream| {
            let first = shown.load(Ordering::Relaxed) * 3;
            let user = |id: usize| json!({ "id": id.to_string() });
            let users: Vec<Value> = match number(&parameters(call), "page") {
                Some(1) => (first..first + 3).map(user).collect(),
                _ => Vec::new(),
            };
            let body = json!({ "posts": users }).to_string();
            reply(stream, "200 OK", "", body.as_bytes())
        });
        let link = "link = { kind = \"follow\", from = \"subject\", to = \"item\", table = \"user_relations\" }";
        let followed = format!("as = \"user\"\n{link}");
        let definition = definition(&lines).replace("as = \"post\"", &followed);
        let folder = Folder::new();
        std::fs::write(folder.path("cut.toml"), definition).expect("a file");
        for (number, again) in ["--until-idle", "--again"].into_iter().enumerate() {
            round.store(number, Ordering::Relaxed);
            let words = format!(
                "crawl cut.toml @ann --host {} --into t.db --quiet --limits off --depth 0 {again}",
                server.address
            );
            succeeded(&folder.say(&words));
        }
        assert_eq!(server.calls().len(), calls);
        let count = |table: &str| {
            let (_, rows) = open(&folder.path("t.db")).select(&format!("SELECT 1 FROM {table}"));
            rows.len()
        };
        let found = (count("user_relations"), count("invalid_relations"));
        assert_eq!(found, (standing, vanished), "{items_max}");
        let is_capped = outcome(&folder)
            .concat()
            .contains("as many items as the network shows");
        assert_eq!(is_capped, !items_max.is_empty());
    }
}

/// A feed whose newest items come first, with pages of two.
fn feed(items: &Arc<Mutex<Vec<(usize, String)>>>) -> Counterpart {
    let items = Arc::clone(items);
    Counterpart::start(move |call, stream| {
        let items = items.lock().expect("items").clone();
        let asked = parameters(call);
        let since = asked
            .get("since")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let items: Vec<_> = items
            .iter()
            .filter(|(_, at)| at.as_str() >= since)
            .collect();
        let start = number(&asked, "after").unwrap_or(0);
        let page = items.iter().skip(start).take(2);
        let page: Vec<Value> = page
            .map(|(id, at)| json!({ "id": id.to_string(), "by": "ann", "at": at }))
            .collect();
        let next = (start + 2 < items.len()).then_some(start + 2);
        let body = json!({ "posts": page, "next": next }).to_string();
        reply(stream, "200 OK", "", body.as_bytes())
    })
}

fn day(day: usize) -> String {
    format!("2026-01-{day:02}T00:00:00Z")
}

#[test]
fn a_later_walk_goes_back_until_it_comes_to_what_was_collected() {
    let lines = "page = { style = \"cursor\", at = \".next\", parameter = \"after\", size = 2, order = \"newest_first\" }\n\
                 incremental = { until = \".pinned_at // .at\", overlap = \"12h\" }";
    let items: Vec<(usize, String)> = (1..=9).rev().map(|id| (id, day(id))).collect();
    let items = Arc::new(Mutex::new(items));
    let (folder, server) = (Folder::new(), feed(&items));
    let walk = |words: &str, code: i32| {
        let before = server.calls().len();
        let output = crawl(&folder, lines, &server, words);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        server.calls().len() - before
    };
    let mark = || column(&folder, "SELECT coalesce(mark, '') FROM cursors");
    // A walk that is stopped half way leaves no mark, and is gone on with.
    assert_eq!(walk("--until-idle --max-calls 2", 3), 2);
    assert_eq!(mark(), [""]);
    assert_eq!(walk("--until-idle", 0), 3);
    assert_eq!((stored(&folder), mark()), (9, vec![day(9)]));
    // Nothing is new: the ninth is newer than the mark less the overlap, the page behind it not.
    assert_eq!(walk("--again", 0), 2);
    // Three are new: the page with the ninth is not wholly old, the next is.
    let newer = (10..=12).rev().map(|id| (id, day(id)));
    items.lock().expect("items").splice(0..0, newer);
    assert_eq!(walk("--again --max-calls 1", 3), 1);
    assert_eq!(mark(), [day(9)]);
    assert_eq!(walk("--until-idle", 0), 2);
    assert_eq!((stored(&folder), mark()), (12, vec![day(12)]));
    // A date from the future moves the mark no further than the clock.
    items
        .lock()
        .expect("items")
        .insert(0, (13, "2199-01-01T00:00:00Z".to_owned()));
    walk("--again", 0);
    let marked = mark().concat();
    let now = jiff::Timestamp::now().to_string();
    assert!(marked > day(12) && marked <= now, "{marked}");
    assert_eq!(outcome(&folder), ["ok "]);
}

#[test]
fn a_later_walk_asks_for_what_is_newer_than_a_time() {
    let lines = "page = { style = \"cursor\", at = \".next\", parameter = \"after\", size = 2 }\n\
                 incremental = { parameter = \"since\", time = \".at\", overlap = \"1d\" }";
    let items: Vec<(usize, String)> = (1..=5).rev().map(|id| (id, day(id))).collect();
    let items = Arc::new(Mutex::new(items));
    let (folder, server) = (Folder::new(), feed(&items));
    succeeded(&crawl(&folder, lines, &server, "--until-idle"));
    let newer = (6..=9).rev().map(|id| (id, day(id)));
    items.lock().expect("items").splice(0..0, newer);
    let before = server.calls().len();
    succeeded(&crawl(&folder, lines, &server, "--again"));
    assert_eq!(stored(&folder), 9);
    let targets: Vec<String> = server.calls()[before..]
        .iter()
        .map(|call| call.target.clone())
        .collect();
    let since = "since=2026-01-04T00%3A00%3A00Z";
    let pages = ["", "&after=2", "&after=4"];
    assert_eq!(targets, pages.map(|page| format!("/posts?{since}{page}")));
    assert_eq!(column(&folder, "SELECT mark FROM cursors"), [day(9)]);
}

#[test]
fn a_post_is_led_on_with_its_body_or_not_at_all() {
    let lines = "method = \"POST\"\nbody = \"json\"\nparameters = { who = \"{canonical}\" }\n";
    for (status, is_followed) in [("307 Temporary Redirect", true), ("302 Found", false)] {
        let server = Counterpart::start(move |call, stream| {
            if call.target == "/posts" {
                return reply(stream, status, "location: /elsewhere\r\n", b"{}");
            }
            let body = json!({ "posts": posts(&IDS) }).to_string();
            reply(stream, "200 OK", "", body.as_bytes())
        });
        let folder = Folder::new();
        succeeded(&crawl(&folder, lines, &server, "--until-idle"));
        let calls = server.calls();
        let led = calls.iter().filter(|call| call.target == "/elsewhere");
        let led: Vec<_> = led.map(|call| (&*call.method, &*call.body)).collect();
        if is_followed {
            assert_eq!(led, [("POST", "{\"who\":\"ann\"}")]);
            assert_eq!(stored(&folder), 7);
        } else {
            assert_eq!(led, []);
            let why = "malformed http 302: redirect that drops what was asked";
            assert_eq!(outcome(&folder), [why]);
        }
    }
}
