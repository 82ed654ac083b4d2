//! Subscriptions: nothing is lost or doubled, whoever is slow or killed.

use super::client::{Event, Server};
use super::{plain_server, small_crawl, until};
use crate::support::{Folder, Sim};
use serde_json::Value;
use std::fmt::Write as _;
use std::time::Duration;

/// All events of a crawl that is over, from the beginning.
fn whole_feed(server: &Server) -> Vec<Event> {
    read_on(server, "0.0")
}

/// What comes after an event, in pages, until the end.
fn read_on(server: &Server, after: &str) -> Vec<Event> {
    let mut found = Vec::new();
    let mut after = after.to_owned();
    for _ in 0..100_000 {
        let page = server
            .get(&format!("/api/events?after={after}&limit=200"))
            .json();
        for event in page["events"].as_array().expect("events") {
            let text = |name: &str| event[name].as_str().expect("a text").to_owned();
            found.push(Event {
                id: text("id"),
                name: text("type"),
                data: event.to_string(),
            });
        }
        page["next"]
            .as_str()
            .expect("where to go on")
            .clone_into(&mut after);
        if page["is_end"] == Value::Bool(true) {
            return found;
        }
    }
    panic!("an endless feed");
}

#[test]
fn a_subscriber_that_resumes_after_a_kill_loses_and_doubles_nothing() {
    let folder = Folder::new();
    let sim = Sim::start(
        &folder,
        "--users 120 --seed 5 --speed 0 --limits off --latency-ms 5",
    );
    let words = format!(
        "{} --depth 2 --limits off --until-idle --include-opted-out test --serve=127.0.0.1:0",
        sim.first_handle()
    );
    let crawl = || Server::start(&mut folder.crawl_command(&sim.address, &words));
    let mut server = crawl();
    let mut heard: Vec<Event> = Vec::new();
    let mut last = "0.0".to_owned();
    for _ in 0..3 {
        // The header counts more than what the address says.
        let headers = [("Last-Event-ID", last.as_str())];
        let events = server.events("/api/subscribe?after=0.0", &headers);
        heard.extend(events.skip(1).take(40));
        last = heard.last().expect("events").id.clone();
        server.running.kill();
        server = crawl();
    }
    until("the crawl is over", || {
        server.get("/api/status").json()["crawling"] == Value::Bool(false)
    });
    let whole = whole_feed(&server);
    let rest = whole.iter().position(|event| event.id == last);
    let rest = whole.len() - rest.expect("it was sent before") - 1;
    let headers = [("Last-Event-ID", last.as_str())];
    let events = server.events("/api/subscribe", &headers);
    heard.extend(events.skip(1).take(rest));
    let ids = |events: &[Event]| {
        events
            .iter()
            .map(|event| event.id.clone())
            .collect::<Vec<_>>()
    };
    assert!(whole.len() > 200, "{}", whole.len());
    assert_eq!(ids(&heard), ids(&whole));
}

#[test]
fn a_subscriber_gets_what_it_asked_for_by_events_and_by_websocket() {
    let (folder, _sim) = small_crawl();
    let server = plain_server(&folder);
    let whole = whole_feed(&server);
    let json = |event: &Event| serde_json::from_str::<Value>(&event.data).expect("JSON");
    let status = whole
        .iter()
        .find(|event| event.name == "status")
        .expect("a post");
    let author = json(status)["author_id"]
        .as_str()
        .expect("an author")
        .to_owned();
    let wanted: Vec<&str> = whole
        .iter()
        .filter(|event| event.name == "status" && json(event)["author_id"] == author.as_str())
        .map(|event| event.id.as_str())
        .collect();
    let encoded = author.replace(':', "%3A").replace('/', "%2F");
    let path = format!("/api/subscribe?type=status&user={encoded}&after=0.0");
    let found: Vec<String> = server
        .events(&path, &[])
        .skip(1)
        .take(wanted.len())
        .map(|event| event.id)
        .collect();
    assert_eq!(found, wanted);
    let first = json(status);
    let text = first["fields"]["text"]
        .as_str()
        .unwrap_or_default()
        .to_lowercase();
    let word = text
        .split(|letter: char| !letter.is_alphanumeric())
        .find(|word| word.len() > 4);
    let word = word.expect("a word");
    let path = format!("/api/subscribe?word={word}&after=0.0");
    let by_word = server.events(&path, &[]).nth(1).expect("an event");
    assert!(by_word.data.to_lowercase().contains(word), "{by_word:?}");

    let headers = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let mut request = format!(
        "GET /api/subscribe?after=0.0 HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n",
        server.port
    );
    for (name, value) in headers {
        let _ = write!(request, "{name}: {value}\r\n");
    }
    let mut stream = server.connect();
    std::io::Write::write_all(&mut stream, format!("{request}\r\n").as_bytes()).expect("it hears");
    let mut heard = Vec::new();
    let id = format!("\"id\":\"{}\"", whole[0].id);
    let mut piece = [0; 4_096];
    while !String::from_utf8_lossy(&heard).contains(&id) {
        let count = std::io::Read::read(&mut stream, &mut piece).expect("it speaks");
        assert!(count > 0, "{}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&piece[..count]);
    }
    assert!(
        heard.starts_with(b"HTTP/1.1 101 "),
        "{}",
        String::from_utf8_lossy(&heard)
    );
}

/// Where an event stands in the log: its call, and its number among what that brought.
fn place_of(id: &str) -> (u64, u64) {
    let (log, number) = id.split_once('.').expect("a log and a number");
    (
        log.parse().expect("a log"),
        number.parse().expect("a number"),
    )
}

#[test]
fn a_slow_subscriber_is_told_how_many_events_it_was_not_sent() {
    let folder = Folder::new();
    let sim = Sim::start(&folder, "--users 1500 --seed 5 --speed 0 --limits off");
    let words = format!(
        "{} --depth 3 --limits off --until-idle --concurrency 8 --include-opted-out test --serve=127.0.0.1:0",
        sim.first_handle()
    );
    let server = Server::start(&mut folder.crawl_command(&sim.address, &words));
    let mut slow = server.events("/api/subscribe", &[]);
    let begin = slow.next().expect("where it begins").id;
    // It takes nothing until the crawl is over.
    until("events are dropped", || {
        let figures = server.get("/metrics").body;
        let dropped = figures
            .lines()
            .find_map(|line| line.strip_prefix("kittiwake_events_dropped_total "));
        dropped.is_some_and(|number| number != "0")
    });
    let stopped = server.post("/api/crawl/stop", &serde_json::json!({}));
    assert_eq!(stopped.status, 200, "{}", stopped.body);
    until("the crawl is over", || {
        server.get("/api/status").json()["crawling"] == Value::Bool(false)
    });
    std::thread::sleep(Duration::from_secs(2));
    let whole = read_on(&server, &begin);
    let end = whole.last().expect("events").id.clone();
    let (mut sent, mut dropped) = (0, 0);
    for event in slow {
        let data: Value = serde_json::from_str(&event.data).expect("JSON");
        match data["events"].as_u64().filter(|_| event.name == "dropped") {
            Some(number) => dropped += number,
            None => sent += 1,
        }
        // What was dropped last reaches to the end of the log, which calls that brought nothing may have moved.
        if place_of(&event.id) >= place_of(&end) {
            break;
        }
    }
    assert!(dropped > 0);
    assert_eq!(sent + dropped, whole.len() as u64);
}
