//! Batters the reader: answers of real shapes, changed at random, so many times.
//!
//! `cargo run --release -p kittiwake-network --example batter -- COUNT SEED`. The same seed gives the
//! same answers. Whatever comes out has to hold together: no panic, no part of what is malformed, no
//! reference into nothing, and whatever is read twice reads the same. Every fourth answer is a feed as
//! its shipped definition reads it, and every fourth a CAR; or all of them, if `feeds` or `car` follows
//! the seed.

#![expect(clippy::print_stdout, reason = "a program that tells what it ran")]

use kittiwake_model::value::is_id;
use kittiwake_model::{Identity, Key, OutcomeCode, Reference, Value};
use kittiwake_network::{Answer, Network, Page, Reading};
use repository::{DID, Part, Repository};
use serde_json::json;
use serde_json::value::RawValue;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

#[path = "../tests/it/repository.rs"]
mod repository;

const DEFINITION: &str = include_str!("../tests/it/birds.toml");

const CAR_DEFINITION: &str = include_str!("../tests/it/repository.toml");

const FEEDS_DEFINITION: &str = include_str!("../../../networks/feeds.toml");

const FEEDS: &[&[u8]] = &[
    include_bytes!("../../../networks/samples/feeds/feed.xml"),
    include_bytes!("../../../networks/samples/feeds/feed-atom.xml"),
    include_bytes!("../../../networks/samples/feeds/feed-json.json"),
    include_bytes!("../../../networks/samples/feeds/feed-latin.xml"),
    include_bytes!("../../../networks/samples/feeds/feed-rdf.xml"),
];

const RSS: &str = r#"<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE rss [<!ENTITY x "y">]>
<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>Gulls &amp; terns</title>
<link>https://gulls.example/</link><count>12</count><noindex>true</noindex><?a b?>
<item><guid isPermaLink="false">tag:1</guid><link>https://gulls.example/1</link>
<description><![CDATA[<p>One &amp; two</p>]]></description><category>sea</category><category>sky</category>
<pubDate>Wed, 14 Oct 2026 19:06:00 +0200</pubDate><dc:creator>Ann</dc:creator></item>
<!-- a word --><item><guid>tag:2</guid><description/><pubDate>14 Oct 26 19:06 EST</pubDate></item>
</channel></rss>"#;

const ATOM: &str = r#"<?xml version='1.0'?><feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de">
<title type="html">M&#246;wen</title><entry><id>urn:1</id><published>2026-10-14T17:06:00Z</published>
<link rel="self" href="s"/><link rel="alternate" href="a?b=1&amp;c=2"/><author><name>Ann</name></author>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">One <b>&amp;</b> two<br/></div></content>
<category term="sea"/></entry></feed>"#;

const RDF: &str = r#"<rdf:RDF xmlns:rdf="r" xmlns:dc="d"><channel rdf:about="x"/><item rdf:about="y">
<guid>urn:1</guid><dc:date>2026-10-14 19:06 +0200</dc:date><link>a</link><category term="sea"/>
<description>&lt;p&gt;One &amp;amp; two</description></item></rdf:RDF>"#;

const JSON_FEED: &str = r#"{"version":"https://jsonfeed.org/version/1.1","title":"Möwen","items":[
{"id":"urn:1","date_published":"2026-10-14T17:06:00Z","link":"a","author":{"name":"Ann"},
"category":[{"@term":"sea"},null],"content_html":"<p>One &amp; two\ud83d\udc26"},{"id":2}]}"#;

const IDS: &str = r#"[8863, "9671", 123456789012345678901234567890, null, {"id":1541815603606036480,
"text":"x","by":18446744073709551617,"likes":1.0e3,"kids":[1,2],"n":9007199254740993}]"#;

const MAP: &str = r#"{"users":{"u1":{"title":"Ann","followers":3,"friends":{"a":{},"b":"c"}},
"U\u00e9":{"id":"two","name":"Bob"},"x":null}}"#;

const USER: &str = r#"{"id":"7","title":"Ann","submitted":[1,2,3],"friends":{"f":{"title":"x"}}}"#;

/// An answer, and the queries that it may answer.
const SAMPLES: &[(&str, &[&str])] = &[
    (RSS, &["rss", "any"]),
    (ATOM, &["any"]),
    (RDF, &["any"]),
    (JSON_FEED, &["any"]),
    (IDS, &["top", "shorts", "users"]),
    (MAP, &["known", "map"]),
    (USER, &["user", "submitted", "map"]),
];

/// What parsers stumble over.
const WORDS: &[&str] = &[
    "<",
    ">",
    "/>",
    "</",
    "<!",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?",
    "?>",
    "<!DOCTYPE a [",
    "&",
    "&#",
    "&#x0;",
    "&#xD800;",
    ";",
    "'",
    "\"",
    "=",
    " type='xhtml'",
    "xmlns=''",
    "<item>",
    "</item>",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\\",
    "\\u0000",
    "\\ud800",
    "null",
    "true",
    "-",
    "1e400",
    "9223372036854775808",
    "\u{0}",
    "\u{FEFF}",
    "\u{FFFD}",
    "é",
    "🐦",
];

const REWORDED: &[&str] = &[
    "",
    "1",
    "12",
    "null",
    "true",
    "x",
    "id",
    "é",
    "🐦",
    "type",
    "xhtml",
    "item",
    "a b",
    "0",
    "9223372036854775808",
    "123456789012345678901234567890",
    "2026",
    "-1",
    "1.5",
    "[]",
    "{}",
    "amp",
    "#0",
];

const CHARSETS: &[Option<&str>] = &[
    None,
    None,
    Some("application/json"),
    Some("text/xml; charset=utf-8"),
    Some("text/xml; charset=\"ISO-8859-1\""),
    Some("text/xml;charset=shift_jis"),
    Some("text/xml; charset=utf-16le"),
    Some("text/xml; charset=gb18030"),
    Some("x; charset="),
];

/// What readers of DAG-CBOR stumble over: heads of values that lie, have no end or are not allowed, and
/// the keys of a tree's nodes.
const HEADS: &[&[u8]] = &[
    &[0x00],
    &[0x18, 0x18],
    &[0x1B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
    &[0x3B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
    &[0x40],
    &[0x5A, 0x7F, 0xFF, 0xFF, 0xFF],
    &[0x5F],
    &[0x60],
    &[0x62, 0xC3, 0x28],
    &[0x7F],
    &[0x80],
    &[0x81],
    &[0x81; 120],
    &[0x9B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
    &[0x9F],
    &[0xA0],
    &[0xA1, 0x61, b'e'],
    &[0xBA, 0xFF, 0xFF, 0xFF, 0xFF],
    &[0xBF],
    &[0xC2, 0x41, 0x01],
    &[0xD8, 42],
    &[0xD8, 42, 0x41, 0x00],
    &[0xF5],
    &[0xF6],
    &[0xF7],
    &[0xF9, 0x7E, 0x00],
    &[0xFB, 0x7F, 0xF0, 0, 0, 0, 0, 0, 0],
    &[0xFF],
    &[0x61, b'l', 0xF6],
    &[0x61, b'p', 0x19, 0x03, 0xFF],
    &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
    b"did:plc:x",
];

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let only_car = arguments.pop_if(|last| last == "car").is_some();
    let only_feeds = arguments.pop_if(|last| last == "feeds").is_some();
    let numbers: Vec<u64> = arguments.iter().flat_map(|it| it.parse()).collect();
    let [count, seed] = numbers[..] else {
        println!("usage: batter COUNT SEED [car|feeds]");
        return ExitCode::from(2);
    };
    let parsed = Network::parse("birds.toml", DEFINITION).and_then(|birds| {
        let ledges = Network::parse("repository.toml", CAR_DEFINITION)?;
        Ok((
            birds,
            ledges,
            Network::parse("feeds.toml", FEEDS_DEFINITION)?,
        ))
    });
    let (birds, ledges, feeds) = match parsed {
        Ok(networks) => networks,
        Err(errors) => {
            println!("{errors}");
            return ExitCode::FAILURE;
        }
    };
    let accounts = accounts();
    let mut tally = Tally::default();
    for number in 0..count {
        let mut random = Random(seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let is_feed = only_feeds || !only_car && number % 4 == 1;
        let is_car = only_car || !only_feeds && number % 4 == 3;
        let (network, blow) = if is_car {
            (&ledges, Blow::of_car(&accounts, &mut random))
        } else if is_feed {
            (&feeds, Blow::of_feed(&mut random))
        } else {
            (&birds, Blow::at_random(&mut random))
        };
        tally.cars += u64::from(is_car);
        tally.feeds += u64::from(is_feed);
        match catch_unwind(AssertUnwindSafe(|| blow.strike(network))) {
            Ok(Ok(reading)) => tally.count(&reading),
            Ok(Err(fault)) => return report(&blow, number, seed, &fault),
            Err(_) => return report(&blow, number, seed, "it panicked"),
        }
    }
    println!(
        "{count} answers battered with seed {seed}, {} of them CARs and {} feeds: {} read, \
         {} malformed, {} otherwise; {} objects, {} values mended",
        tally.cars,
        tally.feeds,
        tally.read,
        tally.malformed,
        tally.other,
        tally.objects,
        tally.mended
    );
    ExitCode::SUCCESS
}

fn report(blow: &Blow<'_>, number: u64, seed: u64, fault: &str) -> ExitCode {
    println!(
        "number {number} of seed {seed}: {fault}\nquery {}, {:?}\n{}",
        blow.query,
        blow.content_type,
        String::from_utf8_lossy(&blow.body)
    );
    ExitCode::FAILURE
}

#[derive(Default)]
struct Tally {
    cars: u64,
    feeds: u64,
    read: u64,
    malformed: u64,
    other: u64,
    objects: u64,
    mended: u64,
}

impl Tally {
    fn count(&mut self, reading: &Reading) {
        match reading.outcome {
            OutcomeCode::Ok | OutcomeCode::Empty => self.read += 1,
            OutcomeCode::Malformed => self.malformed += 1,
            _ => self.other += 1,
        }
        self.objects += reading.objects.len() as u64;
        self.mended += u64::from(reading.mended);
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Accounts of several sizes, so that trees have from none to a few layers.
fn accounts() -> Vec<Repository> {
    let record = |number: usize| {
        let collection = ["app.birds.follow", "app.birds.note", "app.birds.other"][number % 3];
        let value = json!({
            "$type": collection,
            "subject": format!("did:plc:{number}"),
            "text": "On a \"ledge\" 🐦",
            "createdAt": "2026-10-14T17:06:00Z",
            "langs": ["de", null],
            "reply": {"parent": {"uri": "at://did:plc:b/app.birds.note/1"}},
            "drawing": {"$bytes": "AAH/"},
            "weight": 9_007_199_254_740_993_i64 - number as i64,
            "height": 1.5,
            "facets": [{"index": {"byteStart": 0, "byteEnd": -4}}],
            "tags": ["sea", number.to_string()],
        });
        (format!("{collection}/3jzfcijpj{number:04}"), value)
    };
    let sizes = [0, 1, 3, 6, 12];
    let accounts = sizes.map(|size| Repository::new((0..size).map(record)));
    accounts.to_vec()
}

/// One changed answer.
struct Blow<'a> {
    /// Who was asked about.
    subject: &'a str,
    query: &'a str,
    content_type: Option<&'a str>,
    body: Vec<u8>,
}

impl Blow<'static> {
    fn at_random(random: &mut Random) -> Self {
        let (sample, queries) = random.one_of(SAMPLES);
        Self {
            subject: "7",
            query: *random.one_of::<&str>(queries),
            body: changed(sample.as_bytes(), random),
            content_type: *random.one_of(CHARSETS),
        }
    }

    fn of_feed(random: &mut Random) -> Self {
        let sample = *random.one_of(FEEDS);
        Self {
            subject: "https://birds.example/feed?x=1",
            query: "feed",
            body: changed(sample, random),
            content_type: *random.one_of(CHARSETS),
        }
    }
}

/// Most answers should still be read, so that what reads them is battered, too.
fn changed(sample: &[u8], random: &mut Random) -> Vec<u8> {
    let mut body = sample.to_vec();
    let is_rough = random.below(3) == 0;
    for _ in 0..=random.below(4) {
        if is_rough {
            change(&mut body, random);
        } else {
            reword(&mut body, random);
        }
    }
    body
}

impl Blow<'static> {
    /// An account that was changed before its blocks got their names, so that no check of those finds
    /// it, or afterwards.
    fn of_car(accounts: &[Repository], random: &mut Random) -> Self {
        let account = random.one_of(accounts);
        let struck = *random.one_of(&[Part::Record, Part::Node, Part::Node, Part::Commit]);
        let one_in = 1 + random.below(4);
        let is_before = random.below(4) != 0;
        let (mut root, mut blocks) = account.blocks(&mut |part, data| {
            if is_before && part == struck && random.below(one_in) == 0 {
                change_block(data, random);
            }
        });
        if random.below(6) == 0 {
            let (one, other) = (random.below(blocks.len()), random.below(blocks.len()));
            match random.below(4) {
                0 => blocks.swap(one, other),
                1 => blocks.push(blocks[one].clone()),
                2 => {
                    let name = blocks[other].cid.clone();
                    blocks[one].cid = name;
                }
                _ => {
                    blocks.remove(one);
                }
            }
        }
        if random.below(50) == 0 {
            change_block(&mut root, random);
        }
        let mut body = repository::car(&root, &blocks);
        if !is_before {
            change_block(&mut body, random);
        }
        Self {
            subject: if random.below(20) == 0 {
                "did:plc:x"
            } else {
                DID
            },
            query: *random.one_of(&["repository", "notes"]),
            content_type: *random.one_of(CHARSETS),
            body,
        }
    }
}

fn change_block(data: &mut Vec<u8>, random: &mut Random) {
    const SPAN_MAX: usize = 12;
    let place = random.below(data.len());
    let end = (place + random.below(SPAN_MAX)).min(data.len());
    match random.below(7) {
        0 | 1 => {
            if let Some(byte) = data.get_mut(place) {
                *byte = byte.wrapping_add(*random.one_of(&[1, 0xFF, 8, 0x20, 0x80]));
            }
        }
        2 => {
            data.drain(place..end);
        }
        3 => {
            let again = data[place..end].to_vec();
            data.splice(place..place, again);
        }
        4 if random.below(4) == 0 => data.truncate(place),
        5 => {
            let head = random.one_of(HEADS);
            data.splice(place..place, head.iter().copied());
        }
        _ => {
            let head = random.one_of(HEADS);
            data.splice(place..end, head.iter().copied());
        }
    }
}

/// Puts another word in the place of one, which leaves the marks between words alone.
fn reword(body: &mut Vec<u8>, random: &mut Random) {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
    let from = random.below(body.len());
    let Some(skipped) = body[from..].iter().position(is_word) else {
        return;
    };
    let from = from + skipped;
    let length = body[from..].iter().take_while(|byte| is_word(byte)).count();
    let word = random.one_of(REWORDED);
    body.splice(from..from + length, word.bytes());
}

fn change(body: &mut Vec<u8>, random: &mut Random) {
    const SPAN_MAX: usize = 40;
    let place = random.below(body.len());
    let end = (place + random.below(SPAN_MAX)).min(body.len());
    match random.below(8) {
        0 => {
            if let Some(byte) = body.get_mut(place) {
                *byte = random.next() as u8;
            }
        }
        1 => body.insert(place, random.next() as u8),
        2 => {
            body.drain(place..end);
        }
        3 => {
            let again = body[place..end].to_vec();
            let at = random.below(body.len());
            body.splice(at..at, again);
        }
        4 => {
            let (other, _) = random.one_of(SAMPLES);
            let from = random.below(other.len());
            let upto = (from + random.below(SPAN_MAX)).min(other.len());
            body.splice(place..end, other.as_bytes()[from..upto].iter().copied());
        }
        5 if random.below(8) == 0 => body.truncate(place),
        _ => {
            let word = random.one_of(WORDS);
            body.splice(place..place, word.bytes());
        }
    }
}

impl Blow<'_> {
    /// Reads it; the error says what does not hold together.
    fn strike(&self, network: &Network) -> Result<Reading, String> {
        let reading = self.read(network)?;
        if reading.outcome == OutcomeCode::Malformed
            && !(reading.objects.is_empty() && reading.links.is_empty())
        {
            return Err("parts of what is malformed were taken".to_owned());
        }
        let is_car = matches!(self.query, "repository" | "notes");
        if is_car && reading.reason.contains("json") {
            return Err(format!("what a CAR became is none: {}", reading.reason));
        }
        for object in &reading.objects {
            check_identity(&object.identity)?;
            for (_, value) in object.groups.iter().flat_map(|group| &group.fields) {
                check_value(value, reading.objects.len())?;
            }
        }
        for link in &reading.links {
            check_reference(&link.from, reading.objects.len())?;
            check_reference(&link.to, reading.objects.len())?;
        }
        if self.read(network)? != reading {
            return Err("it reads differently the second time".to_owned());
        }
        Ok(reading)
    }

    fn read(&self, network: &Network) -> Result<Reading, String> {
        let query = network.query(self.query).ok_or("no such query")?;
        let base = network.base("").map_err(|error| error.to_string())?;
        let subject = Identity {
            network: network.name().clone(),
            kind: query.kind.clone(),
            canonical: Some(self.subject.to_owned()),
            aliases: Vec::new(),
        };
        Ok(network.read(&Answer {
            query,
            base: &base,
            host: "birds.example",
            subjects: &[(Key(1), &subject)],
            page: Page::First,
            url: &base,
            status: 200,
            header: &|name| {
                let is_type = name == "content-type";
                self.content_type.filter(|_| is_type).map(str::to_owned)
            },
            body: &self.body,
            walk: None,
        }))
    }
}

fn check_identity(identity: &Identity) -> Result<(), String> {
    let aliases = identity.aliases.iter().map(|alias| &alias.id);
    let mut ids = identity.canonical.iter().chain(aliases);
    match ids.find(|id| !is_id(id)) {
        Some(id) => Err(format!("{id:?} is no id")),
        None if identity.is_anonymous() => Err("an object without a name".to_owned()),
        None => Ok(()),
    }
}

fn check_reference(reference: &Reference, objects: usize) -> Result<(), String> {
    match reference {
        Reference::Object(place) if *place as usize >= objects => {
            Err(format!("a reference to object {place} of {objects}"))
        }
        Reference::Identity(identity) => check_identity(identity),
        Reference::Object(_) | Reference::Key(_) => Ok(()),
    }
}

fn check_value(value: &Value, objects: usize) -> Result<(), String> {
    match value {
        Value::Text(text) if text.contains('\0') => Err("a text with NUL in it".to_owned()),
        Value::Json(text) if serde_json::from_str::<&RawValue>(text).is_err() => {
            Err(format!("{text:?} is no json"))
        }
        Value::Object(reference) => check_reference(reference, objects),
        _ => Ok(()),
    }
}
