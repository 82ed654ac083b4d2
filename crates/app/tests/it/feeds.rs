//! Feeds of every format against servers that were written from the specifications: a crawl holds
//! what the feeds say, row by row, and a hostile feed costs nobody but itself.

mod hostile;
mod world;

use crate::counterpart::{Call, Counterpart, reply};
use crate::strict::finish;
use crate::support::{Folder, Running, open, rows, text};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use world::{Feed, Format, Item, atom, feed, json, latin1, rdf, rss, sample, utf16, windows1251};

/// How long anything is waited for that has to come.
const MOMENT: Duration = Duration::from_mins(2);
const XML: &str = "content-type: text/xml\r\n";

/// The value of a header that a call carries.
fn header<'c>(call: &'c Call, name: &str) -> Option<&'c str> {
    let mut headers = call.headers.iter().filter_map(|line| line.split_once(':'));
    let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}

/// What is wrong with a call for a feed at this path, if anything is.
fn fault(call: &Call, path: &str) -> Option<String> {
    if call.method != "GET" || call.target != path {
        return Some(format!("{} {}", call.method, call.target));
    }
    if header(call, "host") != Some(&call.host) {
        return Some("another host".to_owned());
    }
    let is_told = header(call, "user-agent").is_some_and(|it| it.contains("me@example.org"));
    let is_secret = header(call, "authorization").or(header(call, "cookie"));
    (!is_told || is_secret.is_some()).then(|| format!("{:?}", call.headers))
}

const PATH: &str = "/feed?lang=en&x=a%20b";

/// A server with one feed, and what it says to tell its answers apart.
struct Server {
    counterpart: Counterpart,
    /// How often the whole feed was sent.
    sent: Arc<AtomicUsize>,
}

impl Server {
    fn start(body: Vec<u8>, headers: &str, validators: &[(&str, &str, &str)]) -> Self {
        Self::holding(body, headers, validators, None)
    }

    /// One that tells of its first call, and leaves it without an answer.
    fn holding(
        body: Vec<u8>,
        headers: &str,
        validators: &[(&str, &str, &str)],
        told: Option<mpsc::Sender<()>>,
    ) -> Self {
        let sent = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&sent);
        let told = Mutex::new(told);
        let mut head = headers.to_owned();
        let mut expected = Vec::new();
        for (name, condition, value) in validators {
            let _ = write!(head, "{name}: {value}\r\n");
            expected.push(((*condition).to_owned(), (*value).to_owned()));
        }
        let counterpart = Counterpart::start(move |call, stream| {
            if let Some(first) = told.lock().expect("a sender").take() {
                let _ = first.send(());
                let _ = std::io::Read::read(stream, &mut [0]);
                return Ok(());
            }
            if let Some(fault) = fault(call, PATH) {
                return reply(stream, "400 Bad Request", "", fault.as_bytes());
            }
            let is_same = |(name, value): &(String, String)| header(call, name) == Some(value);
            if !expected.is_empty() && expected.iter().all(is_same) {
                return reply(stream, "304 Not Modified", &head, b"");
            }
            counted.fetch_add(1, Ordering::Relaxed);
            reply(stream, "200 OK", &head, &body)
        });
        Self { counterpart, sent }
    }

    fn address(&self) -> String {
        format!("{}{PATH}", self.counterpart.address)
    }

    fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }
}

fn crawl<'a>(folder: &Folder, seeds: impl IntoIterator<Item = &'a String>, words: &str) -> Command {
    let mut command = folder.kittiwake();
    command.args(["crawl", "feeds", "--into", "t.db", "--quiet"]);
    command.args(["--contact", "me@example.org"]);
    command.args(words.split_whitespace());
    command.args(seeds);
    command
}

const ONCE: &str = "--until-idle --limits off";
const AGAIN: &str = "--again --limits off";

const ITEMS: &str = "SELECT
    (SELECT id FROM ids WHERE key = statuses.key AND alias = ''),
    (SELECT id FROM ids WHERE key = author AND alias = ''),
    extra ->> 'title', text, html, url, created_us, extra ->> 'author_name',
    (SELECT group_concat(name, ',') FROM (SELECT tags.name FROM links JOIN tags ON tags.key = to_key
     WHERE from_key = statuses.key AND kind = 'tag' ORDER BY tags.name)),
    coalesce(media ->> '$[0].url', '') FROM statuses";

/// What a feed at an address says of its items.
fn expected(feed: &Feed, format: Format, at: &str) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    for item in &feed.items {
        let id = item.id.or(item.link).expect("an id or a link");
        let enclosed = item.enclosed.filter(|_| format != Format::Rdf);
        found.insert(vec![
            format!("{at}#{id}"),
            at.to_owned(),
            item.title.to_owned(),
            item.text.to_owned(),
            item.html.to_owned(),
            item.link.unwrap_or_default().to_owned(),
            item.made.map_or(String::new(), |(_, _, us)| us.to_string()),
            item.by.to_owned(),
            item.tags.join(","),
            enclosed.unwrap_or_default().to_owned(),
        ]);
    }
    found
}

/// The outcome of every feed, by its address.
fn outcomes(folder: &Folder) -> BTreeMap<String, (String, String)> {
    let sql =
        "SELECT (SELECT id FROM ids WHERE ids.key = outcomes.key AND alias = ''), outcome, reason
        FROM outcomes WHERE query = 'feed'";
    let found = rows(&open(&folder.path("t.db")), sql).into_iter();
    found
        .map(|row| (row[0].clone(), (row[1].clone(), row[2].clone())))
        .collect()
}

fn feeds() -> Vec<(Format, Feed)> {
    let plain = Item {
        id: None,
        ..sample("Without a guid", "")
    };
    let bare = Item {
        link: None,
        made: None,
        tags: &[],
        enclosed: None,
        ..sample("Nearly nothing", "urn:x")
    };
    let russian = Item {
        html: "Три <i>яйца</i>",
        text: "Три яйца",
        by: "Анна",
        ..sample("Чайки", "8")
    };
    let german = sample("Möwen & Söhne", "7");
    let linked = |id| sample("An address", id);
    let first = vec![
        sample("First", "7"),
        linked("https://blog.example/1"),
        plain,
    ];
    let last = vec![
        russian.clone(),
        bare.clone(),
        linked("https://blog.example/2"),
    ];
    vec![
        (Format::Rss, feed("Plain", first)),
        (Format::Rss, feed("Möwen", vec![german.clone()])),
        (Format::Rss, feed("Чайки", vec![russian.clone()])),
        (Format::Rdf, feed("Möwen", vec![german])),
        (Format::Atom, feed("Чайки", vec![russian, bare])),
        (Format::Json, feed("Чайки", last)),
        (Format::Atom, feed("Nothing", Vec::new())),
    ]
}

/// A feed as bytes in some charset, and the headers that it comes with.
fn written(number: usize, format: Format, feed: &Feed) -> (Vec<u8>, &'static str) {
    match (format, number) {
        (Format::Rss, 0) => (rss(feed, "utf-8").into_bytes(), XML),
        (Format::Rss, 1) => {
            let kind = "content-type: application/rss+xml\r\n";
            (latin1(&rss(feed, "iso-8859-1")), kind)
        }
        (Format::Rss, _) => {
            let kind = "content-type: text/html\r\n";
            (windows1251(&rss(feed, "windows-1251")), kind)
        }
        (Format::Rdf, _) => {
            let kind = "content-type: text/xml; charset=iso-8859-1\r\n";
            (latin1(&rdf(feed, "us-ascii")), kind)
        }
        (Format::Atom, _) => {
            let kind = "content-type: application/atom+xml\r\n";
            (utf16(&atom(feed, "utf-16")), kind)
        }
        (Format::Json, _) => {
            let kind = "content-type: application/feed+json\r\n";
            (json(feed).into_bytes(), kind)
        }
    }
}

#[test]
fn feeds_of_every_format_and_charset_are_held_as_they_are_and_read_once() {
    const TAG: (&str, &str, &str) = ("etag", "if-none-match", "W/\"a, b\"");
    const TIME: (&str, &str, &str) = (
        "last-modified",
        "if-modified-since",
        "Sat, 14 Nov 2026 10:00:00 GMT",
    );
    let feeds = feeds();
    let (told, heard) = mpsc::channel();
    let mut told = Some(told);
    let servers: Vec<Server> = feeds
        .iter()
        .enumerate()
        .map(|(number, (format, feed))| {
            let validators: &[_] = match number {
                0 => &[TAG, TIME],
                1 => &[TIME],
                // Whoever says nothing is asked in full.
                2 => &[],
                _ => &[TAG],
            };
            let (body, headers) = written(number, *format, feed);
            let told = told.take_if(|_| number == 5);
            Server::holding(body, headers, validators, told)
        })
        .collect();
    let folder = Folder::new();
    let seeds: Vec<String> = servers.iter().map(Server::address).collect();
    let mut running = Running::start(&mut crawl(&folder, &seeds, ONCE));
    heard.recv_timeout(MOMENT).expect("a feed is asked for");
    running.kill();
    finish(&mut crawl(&folder, &seeds, ONCE));
    let compare = || {
        let mut items = BTreeSet::new();
        for ((format, feed), at) in feeds.iter().zip(&seeds) {
            items.extend(expected(feed, *format, at));
        }
        let tables = open(&folder.path("t.db"));
        assert_eq!(rows(&tables, ITEMS), items);
        let cards =
            "SELECT (SELECT id FROM ids WHERE key = users.key AND alias = ''), display_name,
            description, url FROM users";
        let card = |((_, feed), at): (&(Format, Feed), &String)| {
            let card = [at, feed.title, feed.about, feed.page];
            card.map(str::to_owned).to_vec()
        };
        let expected: BTreeSet<_> = feeds.iter().zip(&seeds).map(card).collect();
        assert_eq!(rows(&tables, cards), expected);
        assert!(rows(&tables, "SELECT key FROM versions").is_empty());
        assert!(rows(&tables, "SELECT target FROM query_log WHERE mended > 0").is_empty());
    };
    compare();
    // An empty feed is a feed.
    assert!(
        outcomes(&folder)
            .values()
            .all(|(outcome, _)| outcome == "ok")
    );
    let sent: Vec<usize> = servers.iter().map(Server::sent).collect();
    finish(&mut crawl(&folder, &seeds, AGAIN));
    compare();
    for (number, server) in servers.iter().enumerate() {
        let is_whole = number == 2;
        let expected = if is_whole { "ok" } else { "not modified" };
        assert_eq!(outcomes(&folder)[&seeds[number]].0, expected);
        assert_eq!(
            server.sent(),
            sent[number] + usize::from(is_whole),
            "{number}"
        );
    }
}

#[test]
fn no_feed_can_speak_of_the_items_of_another() {
    let shared = "https://blog.example/shared";
    let other = Item {
        link: Some("https://blog.example/other"),
        ..sample("Another with that number", "7")
    };
    let feeds = [
        feed("One", vec![sample("Seven", "7"), sample("Shared", shared)]),
        feed("Two", vec![other, sample("Forged", shared)]),
    ];
    let servers = feeds.each_ref().map(|feed| {
        let body = rss(feed, "utf-8").into_bytes();
        Server::start(body, XML, &[])
    });
    let seeds = servers.each_ref().map(Server::address);
    let folder = Folder::new();
    finish(&mut crawl(&folder, &seeds, ONCE));
    finish(&mut crawl(&folder, &seeds, AGAIN));
    let tables = open(&folder.path("t.db"));
    let mut items = BTreeSet::new();
    for (feed, at) in feeds.iter().zip(&seeds) {
        items.extend(expected(feed, Format::Rss, at));
    }
    assert_eq!(rows(&tables, ITEMS), items);
    assert!(rows(&tables, "SELECT key FROM versions").is_empty());
}

#[test]
fn a_feed_is_a_window_that_moves() {
    let shown = Arc::new(Mutex::new(feed(
        "Window",
        vec![sample("One", "1"), sample("Two", "2")],
    )));
    let server = {
        let shown = Arc::clone(&shown);
        Counterpart::start(move |call, stream| {
            // It has moved, and is asked where it is now, in the same words.
            if call.target == PATH {
                let there = "location: /new\r\ncontent-type: text/plain\r\n";
                return reply(stream, "301 Moved Permanently", there, b"");
            }
            let feed = shown.lock().expect("the feed").clone();
            let tag = format!("\"{}\"", feed.items[0].title);
            let headers = format!("etag: {tag}\r\n{XML}");
            if header(call, "if-none-match") == Some(&tag) {
                return reply(stream, "304 Not Modified", &headers, b"");
            }
            reply(stream, "200 OK", &headers, rss(&feed, "utf-8").as_bytes())
        })
    };
    let (folder, seed) = (Folder::new(), format!("{}{PATH}", server.address));
    let titles = || {
        let sql = "SELECT extra ->> 'title' FROM statuses WHERE deleted_us IS NULL";
        let found = rows(&open(&folder.path("t.db")), sql);
        found.into_iter().flatten().collect::<Vec<_>>()
    };
    let outcome = || outcomes(&folder)[&seed].0.clone();
    finish(&mut crawl(&folder, [&seed], ONCE));
    assert_eq!(
        (titles(), outcome()),
        (vec!["One".into(), "Two".into()], "ok".into())
    );
    // Without the seed: whom the user has named once is known.
    finish(&mut crawl(&folder, [], "--again"));
    assert_eq!(outcome(), "not modified");
    let later = vec![sample("Three", "3"), sample("Two", "2")];
    *shown.lock().expect("the feed") = feed("Window", later);
    finish(&mut crawl(&folder, [&seed], AGAIN));
    assert_eq!(outcome(), "ok");
    // What has fallen out of the window is not deleted.
    assert_eq!(titles(), ["One", "Three", "Two"]);
    finish(&mut crawl(&folder, [&seed], AGAIN));
    assert_eq!(outcome(), "not modified");
    assert_eq!(server.calls().len(), 8);
}

#[test]
fn there_is_no_host_to_name() {
    let folder = Folder::new();
    let refused = |words: &str, expected: &str| {
        let output = folder.say(words);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {told}");
        assert!(told.contains(expected), "{words}: {told}");
    };
    let rest = "--into t.db --contact me@example.org";
    for (words, expected) in [
        (
            "feeds --host http://127.0.0.1:9 http://127.0.0.1:9/f",
            "has no host of its own",
        ),
        (
            "feeds@a.example https://a.example/f",
            "has no host of its own",
        ),
        ("feeds http://a.example/f", "https://"),
        ("feeds https://ann:secret@a.example/f", "password"),
        ("feeds a.example", "is no seed of feeds"),
        (
            "feeds http://127.0.0.1:9/f https://a.example/f --limits off",
            "only for hosts on loopback",
        ),
    ] {
        refused(&format!("crawl {words} {rest}"), expected);
    }
    refused("crawl feeds https://a.example/f --into t.db", "--contact");
}
