//! Definitions against what real servers answered.
//!
//! `KITTIWAKE_RECORDINGS` names the folder of `mastodon.jsonl` and `reddit.jsonl`, which
//! `scripts/recordings.py` makes. Every field at every depth of every object in them, and of every
//! answer to one of a definition's queries, is mapped, or named in `ignored` with a reason.

use kittiwake_model::{Identity, Key};
use kittiwake_network::{Answer, Network, Page, Query, Reading};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use url::Url;

mod mastodon;
mod reddit;

/// One recorded answer.
struct Recording {
    cassette: String,
    method: String,
    url: Url,
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Recording {
    fn parse(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| value[key].as_str().unwrap().to_owned();
        Self {
            cassette: text("cassette"),
            method: text("method"),
            url: Url::parse(&text("url")).unwrap(),
            status: value["status"].as_u64().unwrap() as u16,
            headers: serde_json::from_value(value["headers"].clone()).unwrap(),
            body: text("body"),
        }
    }

    fn host(&self) -> &str {
        self.url.host_str().unwrap()
    }

    fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).cloned()
    }

    /// Where it was recorded, for whoever reads what failed.
    fn place(&self) -> String {
        format!("{} {}", self.cassette, self.url)
    }
}

/// What was recorded with a network, a line each; without it the test is skipped, and says so.
fn recorded(network: &str) -> Option<String> {
    let Some(folder) = std::env::var_os("KITTIWAKE_RECORDINGS").map(PathBuf::from) else {
        println!("skipped: KITTIWAKE_RECORDINGS names no folder");
        return None;
    };
    let path = folder.join(format!("{network}.jsonl"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: {} cannot be read", path.display());
        return None;
    };
    Some(text)
}

/// Reads a body with a query, as if it had been the answer.
fn read(
    network: &Network,
    query: &Query,
    recording: &Recording,
    subjects: &[Identity],
    body: &str,
    status: u16,
) -> Reading {
    let mut base = recording.url.clone();
    base.set_path("/");
    base.set_query(None);
    let keyed: Vec<(Key, &Identity)> = (1..).map(Key).zip(subjects).collect();
    network.read(&Answer {
        query,
        base: &base,
        host: recording.host(),
        subjects: &keyed,
        page: Page::First,
        url: &recording.url,
        status,
        header: &|name| recording.header(name),
        body: body.as_bytes(),
        walk: None,
    })
}

/// What is neither mapped nor ignored, each with the first place where it was seen.
#[derive(Default)]
struct Unmapped(BTreeMap<String, String>);

impl Unmapped {
    /// Holds a whole answer against its query.
    fn note_answer(
        &mut self,
        network: &Network,
        query: &Query,
        body: &Value,
        recording: &Recording,
    ) {
        let paths = network.unmapped_answer(query, body);
        self.note(&query.name, paths, recording);
    }

    /// Holds one object against its type.
    fn note_object(
        &mut self,
        network: &Network,
        kind: &str,
        object: &Value,
        recording: &Recording,
    ) {
        let paths = network.unmapped(kind, object).unwrap();
        self.note(kind, paths, recording);
    }

    fn note(&mut self, what: &str, paths: Vec<String>, recording: &Recording) {
        for path in paths {
            let place = || recording.place();
            self.0.entry(format!("{what} {path}")).or_insert_with(place);
        }
    }

    fn assert_none(&self) {
        let Self(unmapped) = self;
        assert!(
            unmapped.is_empty(),
            "neither mapped nor ignored: {unmapped:#?}"
        );
    }
}

/// The queries that no recording shows, in the order of the definition.
fn unseen<'n>(network: &'n Network, seen: &BTreeMap<String, usize>) -> Vec<&'n str> {
    let names = network.queries().map(|query| &*query.name);
    names.filter(|name| !seen.contains_key(*name)).collect()
}
