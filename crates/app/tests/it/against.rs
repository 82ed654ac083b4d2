//! `kittiwake network check --against`: what does not fit a server is found, at one call per query.

use crate::counterpart::Counterpart;
use crate::gulls::{self, Told};
use crate::support::{Folder, Sim, text};
use serde_json::Value;
use std::process::Output;

/// A folder with the skeleton of a definition, after a change.
fn with_definition(change: impl Fn(&str) -> String) -> Folder {
    let folder = Folder::new();
    let made = folder.say("network new gulls");
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let path = folder.path("gulls.toml");
    let skeleton = std::fs::read_to_string(&path).expect("the file was made");
    std::fs::write(&path, change(&skeleton)).expect("a file");
    folder
}

fn with_skeleton() -> Folder {
    with_definition(str::to_owned)
}

fn check(folder: &Folder, base: &str, words: &str) -> Output {
    folder.say(&format!(
        "network check gulls.toml --against {base} --seed @Ada{words}"
    ))
}

/// The report for machines, and the exit code.
fn report(folder: &Folder, base: &str, words: &str) -> (Value, Option<i32>) {
    let output = check(folder, base, &format!("{words} --json"));
    let shown = text(&output.stdout);
    let report = serde_json::from_str(&shown);
    let report = report.unwrap_or_else(|_| panic!("{shown}{}", text(&output.stderr)));
    (report, output.status.code())
}

/// What a report says of one query.
fn asked<'r>(report: &'r Value, query: &str) -> &'r Value {
    let queries = report["queries"].as_array().expect("a list");
    let found = queries.iter().find(|it| it["query"] == query);
    found.unwrap_or_else(|| panic!("{query} was not asked: {report}"))
}

/// A server that answers one path in another way.
fn twisted(
    path: &'static str,
    twist: impl Fn(Told) -> Told + Send + Sync + 'static,
) -> (Counterpart, String) {
    gulls::serve(move |target, told| {
        if target.contains(path) {
            twist(told)
        } else {
            told
        }
    })
}

#[test]
fn a_definition_that_fits_takes_one_call_per_query_and_stores_nothing() {
    let folder = with_skeleton();
    let (server, base) = gulls::serve_soundly();
    let output = check(&folder, &base, "");
    let shown = text(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{shown}{}",
        text(&output.stderr)
    );
    for line in [
        "4 of 4 queries asked",
        "user_by_name  fits: http 200, ok, 1 item\n",
        "followers     fits: http 200, ok, 2 items, next page found\n",
        "everything that was asked fits",
    ] {
        assert!(shown.contains(line), "{line:?} is not in {shown}");
    }
    let targets: Vec<String> = server.calls().into_iter().map(|call| call.target).collect();
    assert_eq!(
        targets,
        [
            "/v1/users/find?name=ada",
            "/v1/users/7",
            "/v1/users/7/followers?count=50",
            "/v1/users/7/posts?count=50",
        ]
    );
    let files = std::fs::read_dir(folder.path(".")).expect("a folder");
    let mut names: Vec<_> = files.map(|it| it.expect("an entry").file_name()).collect();
    names.sort();
    assert_eq!(names, ["gulls.toml", "state"]);
}

#[test]
fn a_field_that_is_called_otherwise_is_found() {
    let folder = with_skeleton();
    let (_server, base) = gulls::serve(|_, told| Told {
        body: told.body.replace("\"title\"", "\"headline\""),
        ..told
    });
    let (report, code) = report(&folder, &base, "");
    assert_eq!((code, &report["fits"]), (Some(1), &Value::from(false)));
    assert_eq!(
        asked(&report, "user")["unread"],
        serde_json::json!([".user.headline"])
    );
    assert_eq!(
        asked(&report, "followers")["unread"],
        serde_json::json!([".users[].headline"])
    );
    assert_eq!(asked(&report, "posts")["fits"], true);
    assert_eq!(report["never_seen"][0]["type"], "user");
    assert_eq!(
        report["never_seen"][0]["paths"],
        serde_json::json!([".title"])
    );
    let shown = text(&check(&folder, &base, "").stdout);
    assert!(
        shown.contains("no rule reads .user.headline; read it, or name it in `ignored`"),
        "{shown}"
    );
    assert!(
        shown.contains("never seen in 4 objects of the type user: .title"),
        "{shown}"
    );
    assert!(shown.ends_with("3 queries do not fit\n"), "{shown}");
}

#[test]
fn a_further_page_that_is_elsewhere_is_found() {
    let folder = with_skeleton();
    let (_server, base) = twisted("/posts", |told| Told {
        body: told.body.replace("\"next\":", "\"after\":"),
        ..told
    });
    let (report, code) = report(&folder, &base, "");
    assert_eq!(code, Some(1));
    let posts = asked(&report, "posts");
    assert_eq!(
        (&posts["next_page"], &posts["unread"]),
        (&"last".into(), &serde_json::json!([".after"]))
    );

    // A full page that leads nowhere, although nothing in it is unread.
    let size = |text: &str| text.replace("size = 50", "size = 2");
    let folder = with_definition(size);
    let (_server, base) = twisted("/posts", |told| Told {
        body: told.body.replace("\"b2\"", "null"),
        ..told
    });
    let output = check(&folder, &base, "");
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stdout);
    assert!(
        shown.contains("the page is full (2 items), and nothing stands where"),
        "{shown}"
    );

    // It is in a header, which the definition does not look at.
    let folder = with_skeleton();
    let (_server, base) = twisted("/posts", |told| Told {
        headers: format!(
            "{}link: </v1/users/7/posts?after=b2>; rel=\"next\"\r\n",
            told.headers
        ),
        body: told.body.replace("\"b2\"", "null"),
        ..told
    });
    let shown = text(&check(&folder, &base, "").stdout);
    assert!(
        shown.contains("the next page is in the Link header"),
        "{shown}"
    );
}

#[test]
fn what_is_refused_broken_or_of_another_kind_is_told() {
    let folder = with_skeleton();
    let (_server, base) = gulls::serve(|target, told| {
        if target.contains("/posts") {
            return Told {
                status: "404 Not Found",
                ..told
            };
        }
        if target.contains("/followers") {
            let headers = "content-type: text/html\r\n".to_owned();
            return Told {
                headers,
                body: "<!doctype html><p>Hello".to_owned(),
                ..told
            };
        }
        let body = told.body.replace("\"2026-01-31T12:00:00Z\"", "1769860800");
        Told { body, ..told }
    });
    let (report, code) = report(&folder, &base, "");
    assert_eq!(code, Some(1));
    let told = |query: &str| {
        let asked = asked(&report, query);
        let outcome = asked["outcome"].as_str().expect("an outcome");
        (
            outcome.to_owned(),
            asked["reason"].as_str().expect("a reason").to_owned(),
        )
    };
    assert_eq!(told("posts"), ("not found".into(), "http 404".into()));
    assert_eq!(
        told("followers"),
        ("malformed".into(), "html instead of json".into())
    );
    let user = asked(&report, "user");
    assert_eq!(
        (&user["outcome"], &user["mended"]),
        (&"ok".into(), &1.into())
    );
    assert_eq!(user["unreadable"], serde_json::json!(["user.created_us"]));
    let shown = text(&check(&folder, &base, "").stdout);
    assert!(
        shown.contains("1 value cannot be read as the definition says: user.created_us"),
        "{shown}"
    );
    assert!(
        shown.contains("posts         does not fit: http 404, not found, 0 items"),
        "{shown}"
    );
}

/// The skeleton with the headers that say what is left of limits.
fn with_limit_headers(skeleton: &str) -> String {
    let lines = skeleton.lines().map(|line| {
        let is_about = ["limit", "remaining", "reset", "reset_format"]
            .iter()
            .any(|key| line.starts_with(&format!("#{key} = ")));
        if is_about || line == "#[limit_headers]" {
            format!("{}\n", &line[1..])
        } else {
            format!("{line}\n")
        }
    });
    lines.collect()
}

#[test]
fn limit_headers_are_looked_for() {
    let folder = with_definition(with_limit_headers);
    let (_server, base) = gulls::serve_soundly();
    let output = check(&folder, &base, "");
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.contains("limit headers: found"), "{shown}");

    let (_server, base) = gulls::serve(|_, told| Told {
        headers: told
            .headers
            .replace("x-ratelimit-remaining", "x-ratelimit-left"),
        ..told
    });
    let output = check(&folder, &base, "");
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(
        shown.contains("limit headers: no answer has x-ratelimit-remaining"),
        "{shown}"
    );
    assert!(shown.ends_with("the limit headers do not fit\n"), "{shown}");

    let (_server, base) = gulls::serve(|_, told| Told {
        headers: told.headers.replace("limit: 300", "limit: many"),
        ..told
    });
    let shown = text(&check(&folder, &base, "").stdout);
    assert!(
        shown.contains("limit headers: they are there and cannot be read"),
        "{shown}"
    );
}

#[test]
fn calls_are_taken_from_the_same_limits_as_those_of_a_crawl() {
    let folder = with_definition(|text| {
        text.replace(
            "limit = 300\nwindow = \"5m\"",
            "limit = 2\nwindow = \"1h\"\nkind = \"sliding\"",
        )
    });
    let (server, base) = gulls::serve_soundly();
    let output = check(&folder, &base, "");
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.contains("2 of 4 queries asked"), "{shown}");
    assert!(
        shown.contains("posts         not asked: the limit calls is used up"),
        "{shown}"
    );
    assert_eq!(server.calls().len(), 2);
    let again = check(&folder, &base, "");
    assert_eq!(again.status.code(), Some(1));
    assert!(
        text(&again.stdout).contains("nothing could be asked"),
        "{}",
        text(&again.stdout)
    );
    let crawl = folder.say(&format!(
        "crawl gulls.toml @Ada --host {base} --into t.db --until-idle --max-time 1s --quiet"
    ));
    assert_eq!(crawl.status.code(), Some(3), "{}", text(&crawl.stderr));
    assert_eq!(server.calls().len(), 2);
}

#[test]
fn whoever_is_refused_for_a_limit_asks_no_more() {
    let folder = with_skeleton();
    let (server, base) = gulls::serve(|target, told| {
        if !target.contains("/followers") {
            return told;
        }
        let headers = format!("{}retry-after: 600\r\n", told.headers);
        Told {
            status: "429 Too Many Requests",
            headers,
            body: "{}".to_owned(),
        }
    });
    let (first, code) = report(&folder, &base, "");
    assert_eq!(code, Some(1));
    assert_eq!(asked(&first, "followers")["outcome"], "rate limited");
    assert_eq!(
        first["not_asked"],
        serde_json::json!([{ "query": "posts", "reason": "the server says that a limit is used up" }])
    );
    assert_eq!(server.calls().len(), 3);
    // The next one waits for as long as the server has said.
    let (_, code) = report(&folder, &base, "");
    assert_eq!((code, server.calls().len()), (Some(1), 3));
}

#[test]
fn only_the_server_that_was_named_is_asked() {
    let (elsewhere, _) = gulls::serve_soundly();
    let location = format!("location: {}/v1/users/7\r\n", elsewhere.address);
    let folder = with_skeleton();
    let (server, base) = gulls::serve(move |target, told| {
        if target == "/v1/users/7" {
            let headers = location.clone();
            return Told {
                status: "302 Found",
                headers,
                body: String::new(),
            };
        }
        told
    });
    let (report, code) = report(&folder, &base, "");
    assert_eq!(code, Some(1));
    let reason = asked(&report, "user")["reason"].as_str().expect("a reason");
    assert!(
        reason.starts_with("http 302: leads to http://127.0.0.1:"),
        "{reason}"
    );
    assert_eq!((server.calls().len(), elsewhere.calls().len()), (4, 0));
}

#[test]
fn a_credential_is_sent_and_never_shown() {
    let folder = with_skeleton();
    let (server, base) = gulls::serve(|target, told| {
        if target.contains("/posts") {
            let headers = "location: /v1/else?with=s3cret-token\r\n".to_owned();
            return Told {
                status: "302 Found",
                headers,
                body: String::new(),
            };
        }
        told
    });
    let words = format!("network check gulls.toml --against {base} --seed @Ada --json");
    let mut command = folder.kittiwake();
    command
        .args(words.split(' '))
        .env("KITTIWAKE_GULLS_TOKEN", "s3cret-token");
    let output = command.output().expect("the binary runs");
    let shown = text(&output.stdout);
    assert!(shown.contains("leads to /v1/else?with="), "{shown}");
    assert!(!shown.contains("s3cret-token"), "{shown}");
    let sent = |call: &crate::counterpart::Call| {
        call.headers
            .iter()
            .any(|line| line.contains("Bearer s3cret-token"))
    };
    assert_eq!(server.calls().iter().filter(|call| sent(call)).count(), 4);
    let mut command = folder.kittiwake();
    command
        .args(words.split(' '))
        .arg("--anonymous")
        .env("KITTIWAKE_GULLS_TOKEN", "s3cret-token");
    command.output().expect("the binary runs");
    assert_eq!(server.calls().iter().filter(|call| sent(call)).count(), 4);
}

#[test]
fn what_cannot_be_asked_is_said_with_the_reason() {
    let folder = with_definition(|text| {
        let needs = "path = \"/users/{canonical}/posts\"";
        assert!(text.contains(needs));
        text.replace(needs, &format!("{needs}\nauth = \"required\""))
    });
    let (_server, base) = gulls::serve_soundly();
    let (report, code) = report(&folder, &base, "");
    assert_eq!(code, Some(0));
    assert_eq!(
        report["not_asked"],
        serde_json::json!([{ "query": "posts", "reason": "the query needs a credential" }])
    );
    for (words, hint) in [
        ("network check gulls.toml --against BASE", "--seed"),
        (
            "network check gulls.toml --against BASE --seed ???",
            "no seed",
        ),
        ("network check gulls.toml --seed @Ada", "--against"),
        (
            "network check gulls.toml --against http://example.org --seed @Ada",
            "loopback",
        ),
        (
            "network check gulls.toml --against https://example.org --seed @Ada",
            "--contact",
        ),
        (
            "network check absent.toml --against BASE --seed @Ada",
            "absent.toml",
        ),
        (
            "network check myspace --against BASE --seed @Ada",
            "no network",
        ),
    ] {
        let output = folder.say(&words.replace("BASE", &base));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {said}");
        assert!(said.contains(hint), "{words}: {said}");
    }
    let nobody = check(&folder, "http://127.0.0.1:9", "");
    assert_eq!(nobody.status.code(), Some(1));
    let shown = text(&nobody.stdout);
    assert!(
        shown.contains("user_by_name  does not fit: no answer, host down"),
        "{shown}"
    );
    assert!(
        shown.contains("not asked: the server is out of reach"),
        "{shown}"
    );
}

#[test]
fn the_synthetic_network_fits_the_definition_of_mastodon() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 500 --speed 0");
    let seed = sim.first_handle();
    let output = folder.run(&[
        "network",
        "check",
        "mastodon",
        "--against",
        &sim.address,
        "--seed",
        &seed,
        "--seed",
        "search:a",
        "--json",
    ]);
    let shown = text(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{shown}{}",
        text(&output.stderr)
    );
    let report: Value = serde_json::from_str(&shown).expect("JSON");
    // Who has a handle is asked of the host in the handle, and only the one that was named is asked.
    let elsewhere = serde_json::json!([{
        "query": "webfinger", "reason": "it is asked of another host",
    }]);
    assert_eq!(report["not_asked"], elsewhere);
    let queries = report["queries"].as_array().expect("a list").len();
    assert_eq!(sim.json("/_sim/ledger")["total"], queries);
    assert_eq!(sim.json("/_sim/ledger")["violations_total"], 0);
    let several = asked(&report, "profiles")["items"].as_u64();
    assert!(several > Some(1), "{shown}");
    assert_eq!(asked(&report, "timeline")["next_page"], "found");
    assert_eq!(report["limit_headers_readable"], true);
}
