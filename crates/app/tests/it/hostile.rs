//! Wrong definitions, seeds, files and servers: a clear line or a recorded outcome, never a panic,
//! lost rows or an unbounded buffer.

use crate::counterpart::{Call, Counterpart, account, reply};
use crate::support::{Folder, Running, Sim, open, rows, text};
use std::io::Write;
use std::time::Duration;

/// Crawls the user with id 1 on a hostile server and gives the outcomes by query.
fn outcomes_of(server: &Counterpart) -> Vec<(String, String, String)> {
    outcomes_within(server, 400)
}

fn outcomes_within(server: &Counterpart, memory_mib: u64) -> Vec<(String, String, String)> {
    let folder = Folder::new();
    let words = "id:1 --until-idle --limits off --json";
    let mut process = Running::start(&mut folder.crawl_command(&server.address, words));
    let peak_mib = watch_memory(&mut process);
    assert_eq!(process.wait(), Some(0));
    assert!(peak_mib < memory_mib, "used {peak_mib} MiB");
    let connection = open(&folder.path("t.db"));
    let found = rows(&connection, "SELECT query, outcome, reason FROM outcomes");
    assert!(!found.is_empty(), "every id asked for has an outcome");
    found
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone(), row[2].clone()))
        .collect()
}

/// The greatest memory of a process while it runs, in MiB.
pub(crate) fn watch_memory(process: &mut Running) -> u64 {
    let path = format!("/proc/{}/status", process.child.id());
    let mut peak_kib = 0;
    for _ in 0..60_000 {
        let status = std::fs::read_to_string(&path).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM"));
        let kib = line
            .and_then(|line| line.split_whitespace().nth(1))
            .and_then(|kib| kib.parse().ok());
        peak_kib = peak_kib.max(kib.unwrap_or(0));
        if process.has_ended() {
            return peak_kib / 1024;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the process did not end");
}

fn assert_all(found: &[(String, String, String)], outcome: &str) {
    for (query, code, reason) in found {
        assert_eq!(code, outcome, "{query}: {reason}");
    }
}

#[test]
fn garbage_and_html_are_malformed() {
    assert_all(
        &outcomes_of(&Counterpart::json("\u{1}\u{2}not json at all")),
        "malformed",
    );
    let html = Counterpart::start(|_, stream| {
        reply(
            stream,
            "200 OK",
            "content-type: text/html\r\n",
            b"<!doctype html><h1>Sign in</h1>",
        )
    });
    let found = outcomes_of(&html);
    assert_all(&found, "malformed");
    assert!(
        found.iter().any(|(_, _, reason)| reason.contains("html")),
        "{found:?}"
    );
}

#[test]
fn bytes_that_are_no_http_end_as_an_outcome() {
    let server =
        Counterpart::start(|_, stream| stream.write_all(b"\x16\x03\x01 what is this\r\n\r\n"));
    let found = outcomes_of(&server);
    assert!(found.iter().all(|(_, code, _)| code != "ok"), "{found:?}");
}

#[test]
fn a_hundred_megabytes_are_refused_in_bounded_memory() {
    let server = Counterpart::start(|_, stream| {
        stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n[\"",
        )?;
        let block = vec![b'x'; 65_536];
        for _ in 0..1_600 {
            stream.write_all(&block)?;
        }
        stream.write_all(b"\"]")
    });
    assert_all(&outcomes_within(&server, 150), "too much data");
}

#[test]
fn an_endless_body_is_refused_in_bounded_memory() {
    let server = Counterpart::start(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")?;
        loop {
            stream.write_all(b"8\r\n[[[[[[[[\r\n")?;
        }
    });
    assert_all(&outcomes_within(&server, 150), "too much data");
}

#[test]
fn a_gzip_bomb_never_inflates() {
    // 64 MiB of zero bytes in a few stored-length blocks, made by hand: a deflate stream of one
    // literal and long repeats. The system's gzip makes it; the test needs no library.
    let bomb = std::process::Command::new("sh")
        .args(["-c", "head -c 1000000000 /dev/zero | gzip -1"])
        .output()
        .expect("gzip");
    let bomb = bomb.stdout;
    assert!(bomb.len() < 8_000_000);
    let server = Counterpart::start(move |_, stream| {
        reply(stream, "200 OK", "content-encoding: gzip\r\n", &bomb)
    });
    assert_all(&outcomes_within(&server, 150), "too much data");
}

/// Lists whose pages each hold one account and point to another page, for ever.
fn endless(next: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Counterpart {
    Counterpart::start(move |call: &Call, stream| {
        let cursor = call
            .target
            .split("max_id=")
            .nth(1)
            .and_then(|rest| rest.split('&').next());
        let cursor: u64 = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(1);
        let path = call.target.split('?').next().unwrap_or_default();
        let link = format!(
            "link: <http://{}{path}?limit=80&max_id={}>; rel=\"next\"\r\n",
            call.host,
            next(cursor)
        );
        reply(
            stream,
            "200 OK",
            &link,
            format!("[{}]", account(cursor)).as_bytes(),
        )
    })
}

#[test]
fn a_repeating_cursor_ends_the_walk() {
    // 1 → 2 → … → 9 → 5 → 6 …: a circle that does not come back to its beginning.
    let found = outcomes_of(&endless(|cursor| if cursor >= 9 { 5 } else { cursor + 1 }));
    let capped: Vec<_> = found
        .iter()
        .filter(|(_, code, _)| code == "cap reached")
        .collect();
    assert!(capped.len() >= 2, "{found:?}");
    assert!(
        capped
            .iter()
            .all(|(_, _, reason)| reason == "repeating cursor"),
        "{found:?}"
    );
}

#[test]
fn endless_pages_end_at_the_declared_bound() {
    // The shipped definition with a lower bound, so that the test need not ask thousands of times.
    let folder = Folder::new();
    let shipped = text(&folder.run(&["network", "show", "mastodon"]).stdout);
    let bounded: Vec<&str> = shipped
        .lines()
        .map(|line| {
            let bound = line.trim_start().starts_with("pages_max");
            if bound { "pages_max = 20" } else { line }
        })
        .collect();
    let bounded = bounded.join("\n");
    assert!(bounded.contains("pages_max = 20"));
    std::fs::write(folder.path("bounded.toml"), bounded).expect("a definition");
    let server = endless(|cursor| cursor + 1);
    let fixed = "--into t.db --until-idle --limits off --quiet --robots relations";
    let words = format!("crawl bounded.toml id:1 --host {} {fixed}", server.address);
    let output = folder.say(&words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found = rows(
        &open(&folder.path("t.db")),
        "SELECT query, outcome, reason FROM outcomes",
    );
    assert!(found.iter().all(|row| row[1] == "cap reached"), "{found:?}");
    let calls = rows(
        &open(&folder.path("t.db")),
        "SELECT count(*) FROM query_log WHERE query NOT LIKE 'instance%'",
    );
    assert_eq!(calls.into_iter().flatten().collect::<Vec<_>>(), ["40"]);
}

#[test]
fn strange_ids_texts_and_dates_are_kept_or_counted() {
    let body = r#"[
      {"id":"7'; DROP TABLE users;--","uri":"https://h.example/users/\"quoted\"","acct":"o'brien","url":"https://h.example/@o","display_name":"a\u0000b \ud800 🐦","note":"<p>hi</p>","created_at":"9999-12-31T23:59:59.999Z","followers_count":1},
      {"id":"8\u0000","uri":"https://h.example/users/nul\u0000","acct":"nul","url":"u"},
      {"id":"9","uri":"https://h.example/users/🐦","acct":"bird","url":"https://h.example/@bird","created_at":"not a date","followers_count":"many","display_name":"plain"},
      null, 17, "text", []
    ]"#;
    let server = Counterpart::json(body);
    let folder = Folder::new();
    let output = folder.crawl(
        &server.address,
        "id:1 --until-idle --limits off --robots relations",
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let connection = open(&folder.path("t.db"));
    let users = rows(
        &connection,
        "SELECT i.id, u.display_name, u.created_us FROM users u JOIN ids i ON i.key = u.key AND i.canonical",
    );
    let ids: Vec<&str> = users.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(
        ids,
        [
            "https://h.example/users/\"quoted\"",
            "https://h.example/users/🐦"
        ]
    );
    let first = users.first().expect("a user");
    assert_eq!(first[1], "a\u{FFFD}b \u{FFFD} 🐦");
    assert_eq!(first[2], kittiwake_model::clock::LATEST_US.to_string());
    let mended: Vec<String> = rows(&connection, "SELECT max(mended) FROM query_log")
        .into_iter()
        .flatten()
        .collect();
    assert_ne!(mended, ["0"], "what was dropped or mended is counted");
}

#[test]
fn a_seed_that_does_not_exist_is_an_outcome() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 50 --speed 0 --limits off");
    let output = folder.crawl(
        &sim.address,
        "nobody-of-this-name id:999999999999 --until-idle --limits off --json --without instance",
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found = rows(
        &open(&folder.path("t.db")),
        "SELECT DISTINCT outcome FROM outcomes",
    );
    assert_eq!(
        found.into_iter().flatten().collect::<Vec<_>>(),
        ["not found"]
    );
    // Asked once by name, whatever the number of robots.
    let lookups = rows(
        &open(&folder.path("t.db")),
        "SELECT count(*) FROM query_log WHERE target LIKE '%lookup%'",
    );
    assert_eq!(lookups.into_iter().flatten().collect::<Vec<_>>(), ["1"]);
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_left_alone() {
    let folder = Folder::new();
    std::fs::write(folder.path("text.db"), "these are my notes\n".repeat(100)).expect("a file");
    let other = rusqlite::Connection::open(folder.path("other.db")).expect("a database");
    other
        .execute_batch("CREATE TABLE mine(x); INSERT INTO mine VALUES (1)")
        .expect("rows");
    drop(other);
    std::fs::create_dir(folder.path("folder.db")).expect("a folder");
    for file in ["text.db", "other.db", "folder.db", "missing/folder/x.db"] {
        let before = std::fs::read(folder.path(file)).ok();
        let output = folder.run(&[
            "crawl",
            "mastodon",
            "a",
            "--host",
            "http://127.0.0.1:9",
            "--into",
            file,
            "--limits",
            "off",
        ]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{file}: {message}");
        assert_eq!(message.lines().count(), 1, "{file}: {message}");
        assert_eq!(
            std::fs::read(folder.path(file)).ok(),
            before,
            "{file} was changed"
        );
        let status = folder.run(&["status", file]);
        assert_eq!(status.status.code(), Some(1), "{file}");
    }
}

#[test]
fn wrong_definitions_say_where_and_what() {
    let folder = Folder::new();
    let shipped = text(&folder.run(&["network", "show", "mastodon"]).stdout);
    for (name, wrong, place) in [
        (
            "cut.toml",
            shipped[..shipped.len() / 2].to_owned() + "\n[[[",
            "cut.toml:",
        ),
        (
            "key.toml",
            shipped.replacen("format = 1", "format = 1\nflavour = \"sweet\"", 1),
            "flavour",
        ),
        (
            "format.toml",
            shipped.replacen("format = 1", "format = 99", 1),
            "format",
        ),
        ("empty.toml", String::new(), "format"),
    ] {
        std::fs::write(folder.path(name), wrong).expect("a file");
        let output = folder.run(&["network", "check", name]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {message}");
        assert!(message.contains(place), "{name}: {message}");
        assert!(
            message.contains(&format!("{name}:")),
            "{name} has no place: {message}"
        );
    }
    let endless = folder.run(&["network", "check", "/dev/zero"]);
    assert_eq!(endless.status.code(), Some(2));
}

#[test]
fn a_full_disk_stops_the_crawl_and_loses_nothing() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 400 --speed 0 --limits off");
    let seed = sim.first_handle();
    let arguments = format!(
        "crawl mastodon --host {} {seed} --into t.db --depth 2 --until-idle --limits off --quiet",
        sim.address
    );
    // No file of the process may grow beyond 1 MiB: writes fail as on a full disk.
    let mut full = folder.kittiwake();
    let program = full.get_program().to_owned();
    let mut shell = std::process::Command::new("sh");
    shell.current_dir(folder.path(""));
    for (name, value) in full.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let script = format!(
        "trap '' XFSZ; ulimit -f 2048; exec {} {arguments}",
        program.to_string_lossy()
    );
    let output = shell.args(["-c", &script]).output().expect("a shell");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("disk") || message.contains("space"),
        "{message}"
    );
    assert!(!message.contains("panicked"), "{message}");
    let committed = rows(&open(&folder.path("t.db")), "SELECT target FROM query_log");
    assert!(!committed.is_empty());
    let words: Vec<&str> = arguments.split(' ').collect();
    let resumed = full.args(&words).output().expect("a run");
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed.stderr));
    let after = rows(
        &open(&folder.path("t.db")),
        "SELECT id, target FROM query_log",
    );
    assert!(after.len() > committed.len(), "it went on");
}
