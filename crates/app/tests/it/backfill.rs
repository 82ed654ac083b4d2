//! Those who are missing from a batch are asked for one by one, and long lists are had in one piece, on small
//! servers made for it.

use crate::counterpart::{Call, Counterpart, reply};
use crate::support::{Folder, open, rows, text};
use serde_json::{Value, json};
use std::process::Output;

const DEFINITION: &str = r#"format = 1
name = "tiny"
verified_on = "2026-11-16"
host = { kind = "fixed", address = "https://api.tiny.example" }

[types.user]
table = "users"
canonical = ".id"
fields.counts.statuses_count = ".posts"

[types.post]
table = "statuses"
canonical = ".id"
fields.content.author = { path = ".by", type = "user", alias = "canonical" }
fields.content.created_us = ".at"

[queries.users]
subject = "user"
path = "/users"
batch = { parameter = "id", alias = "canonical", max = 10, missing = "user" }
selects = [{ at = ".users[]", as = "user", is_subject = true }]

[queries.user]
subject = "user"
path = "/users/{canonical}"
selects = [{ at = ".", as = "user", is_subject = true }]

[queries.posts]
subject = "user"
path = "/posts"
page = { style = "cursor", at = ".next", parameter = "after", size = 2 }
incremental = { until = ".at" }
selects = [{ at = ".posts[]", as = "post" }]

[queries.everything]
subject = "user"
path = "/everything"
selects = [{ at = ".posts[]", as = "post" }]

[[robots]]
name = "profiles"
subject = "user"
steps = [{ query = "users" }]

[[robots]]
name = "posts"
subject = "user"
steps = [{ query = "posts", backfill = { query = "everything", count = "statuses_count" } }]

[[seeds]]
pattern = "@{name}"
type = "user"
value = "{name}"
"#;

/// How the server answers when it is asked for everything at once.
#[derive(Clone, Copy)]
enum Everything {
    Told,
    Refused(&'static str),
}

fn post(number: usize) -> Value {
    json!({ "id": number.to_string(), "by": "ann", "at": format!("2026-01-0{number}T00:00:00Z") })
}

/// Seven posts of one user, and six users of whom some are gone.
fn answer(call: &Call, everything: Everything) -> (&'static str, Value) {
    let (path, query) = call.target.split_once('?').unwrap_or((&call.target, ""));
    match path {
        "/users" => {
            let asked = query.split('&').filter_map(|part| part.split_once('='));
            let present = asked.filter(|(_, id)| matches!(*id, "ann" | "bob"));
            let users: Vec<Value> = present
                .map(|(_, id)| json!({ "id": id, "posts": if id == "ann" { 7 } else { 1 } }))
                .collect();
            ("200 OK", json!({ "users": users }))
        }
        "/users/cid" => ("410 Gone", json!({})),
        "/users/dot" => ("200 OK", json!({ "id": "dot", "posts": 0 })),
        "/everything" => match everything {
            Everything::Told => (
                "200 OK",
                json!({ "posts": (1..8).map(post).collect::<Vec<_>>() }),
            ),
            Everything::Refused(status) => (status, json!({})),
        },
        "/posts" => {
            let after = query.strip_prefix("after=").and_then(|it| it.parse().ok());
            let last: usize = after.unwrap_or(7);
            let page: Vec<Value> = (1..=last).rev().take(2).map(post).collect();
            (
                "200 OK",
                json!({ "posts": page, "next": (last > 2).then(|| (last - 2).to_string()) }),
            )
        }
        _ => ("404 Not Found", json!({})),
    }
}

fn serve(everything: Everything) -> Counterpart {
    Counterpart::start(move |call, stream| {
        let (status, body) = answer(call, everything);
        reply(stream, status, "", body.to_string().as_bytes())
    })
}

#[track_caller]
fn crawl(folder: &Folder, server: &Counterpart, words: &str) {
    std::fs::write(folder.path("tiny.toml"), DEFINITION).expect("a definition");
    let mut command = folder.kittiwake();
    command.args(["crawl", "tiny.toml", "--host", &server.address]);
    command.args(["--into", "t.db", "--quiet"]);
    let done: Output = command
        .args(words.split(' '))
        .output()
        .expect("the binary runs");
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
}

fn count(server: &Counterpart, path: &str) -> usize {
    let calls = server.calls();
    let is_it = |call: &&Call| call.target.split('?').next() == Some(path);
    calls.iter().filter(is_it).count()
}

#[test]
fn those_who_are_missing_from_a_batch_are_asked_for_one_by_one() {
    let (folder, server) = (Folder::new(), serve(Everything::Told));
    crawl(
        &folder,
        &server,
        "--until-idle --robots profiles @ann @bob @cid @dot @eve",
    );
    let file = open(&folder.path("t.db"));
    let sql = "SELECT i.id, o.query, o.outcome FROM outcomes o JOIN ids i ON i.key = o.key";
    let expected = [
        ["ann", "users", "ok"],
        ["bob", "users", "ok"],
        ["cid", "user", "gone"],
        ["dot", "user", "ok"],
        ["eve", "user", "not found"],
    ];
    let expected = expected.map(|row| row.map(str::to_owned).to_vec());
    assert_eq!(rows(&file, sql), expected.into());
    assert_eq!(server.calls().len(), 1 + 3);
    let gone = rows(&file, "SELECT reason FROM invalid_users");
    assert_eq!(gone.len(), 2);
}

#[test]
fn a_long_list_is_had_in_one_piece_and_gone_on_with_from_there() {
    let (folder, server) = (Folder::new(), serve(Everything::Told));
    let asked = || (count(&server, "/everything"), count(&server, "/posts"));
    crawl(&folder, &server, "--until-idle --robots profiles @ann");
    crawl(
        &folder,
        &server,
        "--until-idle --robots profiles,posts @ann",
    );
    let file = open(&folder.path("t.db"));
    assert_eq!(rows(&file, "SELECT key FROM statuses").len(), 7);
    drop(file);
    assert_eq!(asked(), (1, 0));
    crawl(&folder, &server, "--again --robots profiles,posts @ann");
    // The first page is older than when everything was asked for.
    assert_eq!(asked(), (1, 1));
}

#[test]
fn a_list_that_one_page_tells_is_walked() {
    let (folder, server) = (Folder::new(), serve(Everything::Told));
    crawl(&folder, &server, "--until-idle --robots profiles @bob");
    crawl(
        &folder,
        &server,
        "--until-idle --robots profiles,posts @bob",
    );
    assert_eq!(count(&server, "/everything"), 0);
    assert!(count(&server, "/posts") > 0);
}

#[test]
fn what_cannot_be_had_in_one_piece_is_walked() {
    for status in [
        "403 Forbidden",
        "404 Not Found",
        "400 Bad Request",
        "410 Gone",
    ] {
        let (folder, server) = (Folder::new(), serve(Everything::Refused(status)));
        crawl(&folder, &server, "--until-idle --robots profiles @ann");
        crawl(
            &folder,
            &server,
            "--until-idle --robots profiles,posts @ann",
        );
        let file = open(&folder.path("t.db"));
        assert_eq!(rows(&file, "SELECT key FROM statuses").len(), 7, "{status}");
        assert_eq!(
            (count(&server, "/everything"), count(&server, "/posts")),
            (1, 4)
        );
    }
}

#[test]
fn a_list_of_which_nobody_knows_how_long_it_is_is_walked() {
    let (folder, server) = (Folder::new(), serve(Everything::Told));
    crawl(&folder, &server, "--until-idle --robots posts @ann");
    assert_eq!(
        (count(&server, "/everything"), count(&server, "/posts")),
        (0, 4)
    );
}
