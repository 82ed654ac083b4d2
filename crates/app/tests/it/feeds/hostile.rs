//! Feeds that were written to do harm, and those that are merely broken.

use super::world::{feed, rss, sample};
use super::{MOMENT, ONCE, PATH, Server, XML, crawl, finish, outcomes};
use crate::counterpart::{Call, Counterpart, reply};
use crate::support::{Folder, Running, open, rows};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::mpsc;

/// Entities in entities, a file of the machine's, and an address.
fn bomb() -> String {
    let mut out = String::from("<?xml version=\"1.0\"?><!DOCTYPE rss [<!ENTITY a0 \"boom\">");
    for depth in 1..30 {
        let below = format!("&a{};", depth - 1).repeat(4);
        let _ = write!(out, "<!ENTITY a{depth} \"{below}\">");
    }
    out + "<!ENTITY file SYSTEM \"file:///etc/passwd\">]><rss><channel><title>Bomb</title>\
           <item><guid>1</guid><title>&a29;&file;</title></item></channel></rss>"
}

/// Titles of a megabyte, of which one would be an id.
fn huge() -> String {
    let (one, other) = ("A".repeat(1 << 20), "B".repeat(1 << 20));
    format!(
        "<rss><channel><title>Huge</title><item><guid>1</guid><title>{one}</title></item>\
         <item><title>{other}</title></item></channel></rss>"
    )
}

fn many() -> String {
    let mut out = String::from("<rss><channel><title>Many</title>");
    for number in 0..30_000 {
        let _ = write!(out, "<item><guid>{number}</guid></item>");
    }
    out + "</channel></rss>"
}

/// A feed that goes on for as long as it is read.
fn endless() -> Counterpart {
    Counterpart::start(|_, stream| {
        let head = format!("HTTP/1.1 200 OK\r\n{XML}connection: close\r\n\r\n<rss><channel>");
        stream.write_all(head.as_bytes())?;
        let items = "<item><guid>1</guid></item>".repeat(4_096);
        // Somebody who never stops reading would have a gigabyte.
        for _ in 0..10_000 {
            stream.write_all(items.as_bytes())?;
        }
        Ok(())
    })
}

fn leading_to(location: &str) -> Counterpart {
    let headers = format!("location: {location}\r\ncontent-type: text/plain\r\n");
    Counterpart::start(move |_, stream| reply(stream, "302 Found", &headers, b""))
}

fn serving(body: impl Into<Vec<u8>>) -> Counterpart {
    Server::start(body.into(), XML, &[]).counterpart
}

/// What a server is called here, and which outcomes its feed may have.
type Kind = (&'static str, Counterpart, &'static [&'static str]);

/// `told` hears of the first call for the good one, and nobody is to be led to `trap`.
fn kinds(told: mpsc::Sender<()>, trap: &Counterpart) -> Vec<Kind> {
    let good = feed("Good", vec![sample("Good", "1"), sample("Better", "2")]);
    let body = rss(&good, "utf-8").into_bytes();
    let good = Server::holding(body, XML, &[], Some(told)).counterpart;
    let deep = "<channel>".repeat(100_000);
    let cut = "<rss><channel><title>Cut</title><item><guid>1</guid><title>Half";
    let crossed = "<rss><channel><title>Crossed</channel></title></rss>";
    let cloud = "http://169.254.169.254/latest/meta-data";
    let secret = |_: &Call, stream: &mut TcpStream| reply(stream, "401 Unauthorized", "", b"{}");
    vec![
        ("good", good, &["ok"]),
        ("bomb", serving(bomb()), &["ok"]),
        ("huge", serving(huge()), &["ok"]),
        ("many", serving(many()), &["too much data"]),
        ("endless", endless(), &["too much data"]),
        ("deep", serving(format!("<rss>{deep}")), &["too much data"]),
        ("cut", serving(cut), &["malformed"]),
        ("crossed", serving(crossed), &["malformed"]),
        (
            "bytes",
            serving([0xFF_u8, 0, 0xFE, b'<'].repeat(999)),
            &["malformed"],
        ),
        (
            "html",
            serving("<!DOCTYPE html><html><p>No feed</html>"),
            &["malformed"],
        ),
        ("other", serving("{\"items\": 7}"), &["malformed"]),
        ("empty", serving(""), &["malformed"]),
        (
            "to trap",
            leading_to(&format!("{}/feed", trap.address)),
            &["malformed", "bad request"],
        ),
        ("to cloud", leading_to(cloud), &["malformed", "bad request"]),
        ("round", leading_to(PATH), &["malformed", "bad request"]),
        ("moved", moved(), &["ok"]),
        ("secret", Counterpart::start(secret), &["forbidden"]),
    ]
}

/// A feed that has moved, on the same server.
fn moved() -> Counterpart {
    Counterpart::start(|call, stream| {
        if call.target != "/new" {
            let there = "location: /new\r\ncontent-type: text/plain\r\n";
            return reply(stream, "301 Moved Permanently", there, b"");
        }
        let body = b"<rss><channel><title>Moved</title><item><guid>9</guid><link>there</link>\
            </item></channel></rss>";
        reply(stream, "200 OK", XML, body)
    })
}

#[test]
fn hostile_feeds_cost_nobody_but_themselves() {
    let (told, heard) = mpsc::channel();
    let trap = Counterpart::json("{}");
    let kinds = kinds(told, &trap);
    let seed = |server: &Counterpart| format!("{}{PATH}", server.address);
    let seeds: BTreeMap<&str, String> = kinds.iter().map(|it| (it.0, seed(&it.1))).collect();
    let folder = Folder::new();
    let mut running = Running::start(&mut crawl(&folder, seeds.values(), ONCE));
    heard
        .recv_timeout(MOMENT)
        .expect("the good feed is asked for");
    running.kill();
    finish(&mut crawl(&folder, seeds.values(), ONCE));
    let outcomes = outcomes(&folder);
    let mut told = Vec::new();
    for (kind, _, expected) in &kinds {
        let known = outcomes.get(&seeds[kind]);
        let is_expected = known.is_some_and(|(outcome, _)| expected.contains(&outcome.as_str()));
        told.extend((!is_expected).then_some((kind, known)));
    }
    assert!(told.is_empty(), "{told:#?}");
    assert_eq!(trap.calls().len(), 0, "the address of another was dialled");
    // A feed may move to another host; it is the address that is refused.
    for kind in ["to trap", "to cloud"] {
        let (_, reason) = &outcomes[&seeds[kind]];
        assert!(!reason.contains("--hosts"), "{reason}");
    }
    let tables = open(&folder.path("t.db"));
    let sql = "SELECT (SELECT id FROM ids WHERE key = statuses.key AND alias = ''),
        substr(extra ->> 'title', 1, 5), length(extra ->> 'title') FROM statuses
        WHERE extra ->> 'title' IS NOT NULL OR url IS NOT NULL";
    let item = |kind: &str, id: &str, title: &str, length: &str| {
        let id = format!("{}#{id}", seeds[kind]);
        vec![id, title.to_owned(), length.to_owned()]
    };
    let expected = BTreeSet::from([
        item("good", "1", "Good", "4"),
        item("good", "2", "Bette", "6"),
        // Nothing was put in place of what the document declares.
        item("bomb", "1", "&a29;", "11"),
        item("huge", "1", "AAAAA", "1048576"),
        item("moved", "9", "", ""),
    ]);
    assert_eq!(rows(&tables, sql), expected);
    // What is not whole is completed by the address that answered.
    let url = "SELECT url FROM statuses WHERE url LIKE '%there'";
    assert_eq!(
        rows(&tables, url),
        BTreeSet::from([vec![seeds["moved"].replace(PATH, "/there")]])
    );
    // What one answer may hold is kept.
    let many = format!(
        "SELECT count(*) FROM ids WHERE id LIKE '{}#%'",
        seeds["many"].replace('%', "_")
    );
    assert_eq!(
        rows(&tables, &many),
        BTreeSet::from([vec!["19999".to_owned()]])
    );
    // A title that is no id is left out and counted, and so is nothing else.
    let mended = "SELECT outcome, mended FROM query_log WHERE mended > 0";
    let counted = BTreeSet::from([vec!["ok".to_owned(), "1".to_owned()]]);
    assert_eq!(rows(&tables, mended), counted);
}

#[test]
fn what_cannot_be_read_is_no_fault_of_its_neighbours() {
    let good = rss(&feed("Good", vec![sample("Good", "1")]), "utf-8");
    let server = Counterpart::start(move |call, stream| match call.target.as_str() {
        "/good" => reply(stream, "200 OK", XML, good.as_bytes()),
        _ => reply(
            stream,
            "200 OK",
            "content-type: text/html\r\n",
            b"<html>No feed</html>",
        ),
    });
    let paths = ["/a", "/b", "/c", "/d", "/good"];
    let seeds = paths.map(|path| format!("{}{path}", server.address));
    let folder = Folder::new();
    finish(&mut crawl(&folder, &seeds, ONCE));
    let outcomes = outcomes(&folder);
    for (path, seed) in paths.into_iter().zip(&seeds) {
        let expected = if path == "/good" { "ok" } else { "malformed" };
        assert_eq!(outcomes[seed].0, expected, "{path}");
    }
    // Each is asked for three times and no more: that is what stands there.
    assert_eq!(server.calls().len(), 4 * 3 + 1);
    finish(&mut crawl(&folder, &seeds, ONCE));
    assert_eq!(
        server.calls().len(),
        4 * 3 + 1,
        "a visit is over, whatever it found"
    );
}
