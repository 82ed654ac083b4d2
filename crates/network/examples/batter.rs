//! Batters the reader: answers of real shapes, changed at random, so many times.
//!
//! `cargo run --release -p kittiwake-network --example batter -- COUNT SEED`. The same seed gives the
//! same answers. Whatever comes out has to hold together: no panic, no part of what is malformed, no
//! reference into nothing, and whatever is read twice reads the same.

#![expect(clippy::print_stdout, reason = "a program that tells what it ran")]

use kittiwake_model::value::is_id;
use kittiwake_model::{Identity, Key, OutcomeCode, Reference, Value};
use kittiwake_network::{Answer, Network, Page, Reading};
use serde_json::value::RawValue;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

const DEFINITION: &str = include_str!("../tests/it/birds.toml");

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

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|it| it.parse::<u64>());
    let (Some(Ok(count)), Some(Ok(seed))) = (arguments.next(), arguments.next()) else {
        println!("usage: batter COUNT SEED");
        return ExitCode::from(2);
    };
    let network = match Network::parse("birds.toml", DEFINITION) {
        Ok(network) => network,
        Err(errors) => {
            println!("{errors}");
            return ExitCode::FAILURE;
        }
    };
    let mut tally = Tally::default();
    for number in 0..count {
        let mut random = Random(seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let blow = Blow::at_random(&mut random);
        match catch_unwind(AssertUnwindSafe(|| blow.strike(&network))) {
            Ok(Ok(reading)) => tally.count(&reading),
            Ok(Err(fault)) => return report(&blow, number, seed, &fault),
            Err(_) => return report(&blow, number, seed, "it panicked"),
        }
    }
    println!(
        "{count} answers battered with seed {seed}: {} read, {} malformed, {} otherwise; \
         {} objects, {} values mended",
        tally.read, tally.malformed, tally.other, tally.objects, tally.mended
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

/// One changed answer.
struct Blow<'a> {
    query: &'a str,
    content_type: Option<&'a str>,
    body: Vec<u8>,
}

impl Blow<'static> {
    fn at_random(random: &mut Random) -> Self {
        let (sample, queries) = random.one_of(SAMPLES);
        let mut body = sample.as_bytes().to_vec();
        // Most answers should still be read, so that what reads them is battered, too.
        let is_rough = random.below(3) == 0;
        for _ in 0..=random.below(4) {
            if is_rough {
                change(&mut body, random);
            } else {
                reword(&mut body, random);
            }
        }
        Self {
            query: *random.one_of::<&str>(queries),
            content_type: *random.one_of(CHARSETS),
            body,
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
            canonical: Some("7".to_owned()),
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
