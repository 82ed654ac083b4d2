//! What others try on a server.

use super::client::basic;
use super::{OPERATOR, guarded_server, plain_server, small_crawl};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How long a slow client may be borne at the most, with room for a machine that has other things to do.
const SLOW_MAX: Duration = Duration::from_secs(90);
const STREAMS: usize = 1_000;

#[test]
fn what_other_sites_make_browsers_send_is_refused_and_does_nothing() {
    let (folder, _sim) = small_crawl();
    let server = plain_server(&folder);
    let own = server.origin();
    let json = ("Content-Type", "application/json");
    let pause =
        |headers: &[(&str, &str)]| server.ask("POST", "/api/crawl/pause", headers, "{}").status;
    for headers in [
        &[("Origin", "https://evil.example"), json][..],
        &[("Origin", "null"), json],
        &[
            ("Origin", "https://evil.example"),
            ("Content-Type", "text/plain"),
        ],
        &[("Sec-Fetch-Site", "cross-site"), json],
        &[
            ("Origin", own.as_str()),
            ("Sec-Fetch-Site", "cross-site"),
            json,
        ],
        &[("Content-Type", "application/x-www-form-urlencoded")],
        &[("Content-Type", "text/plain")],
        &[],
    ] {
        assert_eq!(pause(headers), 403, "{headers:?}");
    }
    for host in [
        "evil.example",
        "evil.example:80",
        "127.0.0.1",
        "localhost:1",
        "127.0.0.1:1@evil.example",
        "",
    ] {
        assert_eq!(
            server
                .ask("GET", "/api/status", &[("Host", host)], "")
                .status,
            421,
            "{host}"
        );
        assert_eq!(pause(&[("Host", host), json]), 421, "{host}");
    }
    let read = |site| {
        server
            .ask("GET", "/api/users", &[("Sec-Fetch-Site", site)], "")
            .status
    };
    assert_eq!(
        (read("cross-site"), read("same-site"), read("same-origin")),
        (403, 403, 200)
    );
    let upgrade = |origin: &str| {
        let headers = [
            ("Origin", origin),
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        server.ask("GET", "/api/subscribe", &headers, "").status
    };
    assert_eq!(upgrade("https://evil.example"), 403);
    let standing = server.get("/api/status").json();
    assert_eq!(standing["paused"], json!(false), "{standing}");
    assert_eq!(
        pause(&[("Origin", own.as_str()), ("Sec-Fetch-Site", "same-origin")]),
        200
    );
}

#[test]
fn every_answer_forbids_browsers_what_is_not_ours() {
    let (folder, _sim) = small_crawl();
    let server = plain_server(&folder);
    for path in ["/", "/healthz", "/api/status", "/api/none", "/none"] {
        let answer = server.get(path);
        let policy = answer.header("content-security-policy").expect(path);
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        assert_eq!(
            answer.header("cross-origin-opener-policy"),
            Some("same-origin"),
            "{path}"
        );
        assert!(
            answer.header("access-control-allow-origin").is_none(),
            "{path}"
        );
    }
    assert_eq!(
        server.get("/api/status").header("cache-control"),
        Some("no-store")
    );
    assert_eq!(
        server.get("/api/reports/count").json(),
        json!({ "violations": 0 })
    );
    let report = server.ask(
        "POST",
        "/api/reports",
        &[("Content-Type", "application/csp-report")],
        "{}",
    );
    assert_eq!(report.status, 204);
    assert_eq!(
        server.get("/api/reports/count").json(),
        json!({ "violations": 1 })
    );
}

#[test]
fn passwords_cannot_be_tried_at_will() {
    let (folder, _sim) = small_crawl();
    let server = guarded_server(&folder);
    let mut statuses = Vec::new();
    let mut said = std::collections::BTreeSet::new();
    for number in 0..20 {
        let role = ["operator", "viewer", "nobody"][number % 3];
        let tried = server.post(
            "/api/login",
            &json!({ "role": role, "password": format!("guess number {number}") }),
        );
        statuses.push(tried.status);
        if tried.status == 401 {
            said.insert(tried.body);
        }
    }
    assert!(
        statuses.iter().all(|status| [401, 429].contains(status)),
        "{statuses:?}"
    );
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(said.len(), 1, "all failures look the same: {said:?}");
    // Neither is the right one looked at now, nor does Basic go round it.
    let given = basic("operator", OPERATOR);
    let right = server.ask("GET", "/api/status", &[("Authorization", &given)], "");
    assert_eq!(right.status, 429, "{}", right.body);
}

#[test]
fn paths_lead_nowhere_else() {
    let (folder, _sim) = small_crawl();
    std::fs::write(folder.path("secret.toml"), "s3cret").expect("a file");
    let server = plain_server(&folder);
    for path in [
        "/../secret.toml",
        "/assets/../secret.toml",
        "/assets/..%2fsecret.toml",
        "/%2e%2e/secret.toml",
        "/assets/%2e%2e/%2e%2e/secret.toml",
        "//secret.toml",
        "/api/definitions/secret.toml",
        "/api/definitions/..%2Fsecret.toml",
        "/api/definitions/.%2Fsecret.toml",
        "/api/networks/secret.toml/logins",
        "/api/networks/%2Fetc%2Fpasswd/logins",
    ] {
        let answer = server.get(path);
        assert!(
            [400, 404].contains(&answer.status),
            "{path}: {}",
            answer.status
        );
        assert!(
            !answer.body.contains("s3cret") && !answer.body.contains("root:"),
            "{path}: {}",
            answer.body
        );
    }
    let login = json!({ "network": "secret.toml", "secrets": {} });
    let answer = server.post("/api/logins", &login);
    assert!([404, 409].contains(&answer.status), "{}", answer.body);
    let online = json!({ "network": "secret.toml", "words": "gulls" });
    assert_eq!(server.post("/api/search/online", &online).status, 404);
}

#[test]
fn what_is_too_large_is_not_taken() {
    let (folder, _sim) = small_crawl();
    let server = plain_server(&folder);
    let large = json!({ "text": "x".repeat(2_000_000) });
    let answer = server.post("/api/definitions/check", &large);
    assert_eq!(answer.status, 413, "{}", answer.body);
    let long = format!(
        "GET /{} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        "x".repeat(100_000)
    );
    let answer = server.say(long.as_bytes());
    assert!(
        [0, 400, 414, 431].contains(&answer.status),
        "{}",
        answer.status
    );
    let many: String = (0..500)
        .map(|number| format!("X-{number}: y\r\n"))
        .collect();
    let answer = server.say(format!("GET / HTTP/1.1\r\nHost: h\r\n{many}\r\n").as_bytes());
    assert!([0, 400, 431].contains(&answer.status), "{}", answer.status);
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"\xff\xfe\xfd",
    ] {
        server.say(&[garbage, b"\r\n\r\n"].concat());
    }
    let chunked = b"POST /api/crawl/pause HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nzz\r\n";
    server.say(chunked);
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn whoever_says_nothing_for_long_is_sent_away() {
    let (folder, _sim) = small_crawl();
    let server = plain_server(&folder);
    let slow_head = |mut stream: TcpStream| {
        let started = Instant::now();
        let head = b"GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ";
        let _ = stream.write_all(head);
        while started.elapsed() < SLOW_MAX {
            if stream.write_all(b"x").is_err() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        false
    };
    let slow_body = |mut stream: TcpStream| {
        let head = format!(
            "POST /api/crawl/pause HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Content-Length: 100\r\n\r\n{{",
            server.port
        );
        let _ = stream.write_all(head.as_bytes());
        let mut heard = String::new();
        let _ = stream.set_read_timeout(Some(SLOW_MAX));
        let _ = stream.read_to_string(&mut heard);
        heard.contains(" 408 ")
    };
    let (head, body) = std::thread::scope(|scope| {
        let head = scope.spawn(|| slow_head(server.connect()));
        let body = scope.spawn(|| slow_body(server.connect()));
        (
            head.join().expect("no panic"),
            body.join().expect("no panic"),
        )
    });
    assert!(head, "a head that does not end is borne");
    assert!(body, "a body that does not come is borne");
}

#[test]
fn a_thousand_idle_streams_keep_nobody_else_out() {
    let (folder, _sim) = small_crawl();
    let server = plain_server(&folder);
    let mut streams = Vec::new();
    for number in 0..STREAMS {
        let path = if number % 2 == 0 {
            "/api/live"
        } else {
            "/api/subscribe"
        };
        let mut events = server.events(path, &[]);
        let first = events.next().expect("a first event");
        assert!(
            ["standing", "begin"].contains(&first.name.as_str()),
            "{first:?}"
        );
        streams.push(events);
    }
    assert_eq!(server.get("/api/users").status, 200);
    let figures = server.get("/metrics").body;
    assert!(
        figures.contains(&format!("kittiwake_streams {STREAMS}\n")),
        "{figures}"
    );
    drop(streams);
    super::until("their places are free", || {
        server
            .get("/metrics")
            .body
            .contains("kittiwake_streams 0\n")
    });
}
