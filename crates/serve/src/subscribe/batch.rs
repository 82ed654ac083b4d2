//! Events that were found together, written out once, with an index of whom and what they are about.

use super::filter::{hash, words_of};
use bytes::{BufMut, Bytes, BytesMut};
use kittiwake_model::{Key, Value};
use kittiwake_store::browse::{Event, EventId, EventKind, Feed};
use serde_json::{Map, json};
use std::collections::HashMap;
use std::sync::Arc;

/// An event that is longer is sent without its fields.
const EVENT_BYTES_MAX: usize = 64 * 1024;

/// One event, ready to be sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub id: EventId,
    pub kind: EventKind,
    /// As a server-sent event.
    pub frame: Bytes,
    /// The JSON in it.
    pub json: Bytes,
    /// Whom it is about, or by.
    pub people: Vec<Key>,
    /// Hashes of their ids.
    pub ids: Vec<u64>,
    /// Hashes of the words in it, sorted.
    pub words: Vec<u64>,
    /// What was said in it, in small letters: for words of scripts without spaces.
    pub text: String,
}

/// Events that follow one another.
#[derive(Debug)]
pub(super) struct Batch {
    /// Where it begins and where the next one does.
    pub after: EventId,
    pub next: EventId,
    pub events: Vec<Arc<Sent>>,
    /// All frames, for those who want everything.
    pub whole: Bytes,
    by_person: HashMap<Key, Vec<u32>>,
    by_id: HashMap<u64, Vec<u32>>,
    by_word: HashMap<u64, Vec<u32>>,
}

impl Batch {
    pub(super) fn new(after: EventId, feed: Feed) -> Self {
        let events: Vec<Arc<Sent>> = feed
            .events
            .iter()
            .map(|event| Arc::new(Sent::new(event)))
            .collect();
        let length = events.iter().map(|event| event.frame.len()).sum();
        let mut whole = BytesMut::with_capacity(length);
        let (mut by_person, mut by_id, mut by_word) =
            (HashMap::new(), HashMap::new(), HashMap::new());
        for (place, event) in events.iter().enumerate() {
            whole.put_slice(&event.frame);
            let place = place as u32;
            for key in &event.people {
                file(&mut by_person, *key, place);
            }
            for id in &event.ids {
                file(&mut by_id, *id, place);
            }
            for word in &event.words {
                file(&mut by_word, *word, place);
            }
        }
        Self {
            after,
            next: feed.next,
            events,
            whole: whole.freeze(),
            by_person,
            by_id,
            by_word,
        }
    }

    pub(super) fn about(&self, key: Key) -> &[u32] {
        self.by_person.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn called(&self, id: u64) -> &[u32] {
        self.by_id.get(&id).map_or(&[], Vec::as_slice)
    }

    pub(super) fn saying(&self, word: u64) -> &[u32] {
        self.by_word.get(&word).map_or(&[], Vec::as_slice)
    }
}

fn file<K: std::hash::Hash + Eq>(index: &mut HashMap<K, Vec<u32>>, key: K, place: u32) {
    let places = index.entry(key).or_default();
    if places.last() != Some(&place) {
        places.push(place);
    }
}

impl Sent {
    pub(super) fn new(event: &Event) -> Self {
        let mut json = event_json(event, true);
        if json.len() > EVENT_BYTES_MAX {
            json = event_json(event, false);
        }
        let kind = kind_name(event.kind);
        let head = format!("id: {}\nevent: {kind}\ndata: ", event.id);
        let mut frame = BytesMut::with_capacity(head.len() + json.len() + 2);
        frame.put_slice(head.as_bytes());
        frame.put_slice(json.as_bytes());
        frame.put_slice(b"\n\n");
        let frame = frame.freeze();
        let people = [Some(event.key), event.to, event.author];
        let ids = [
            Some(&event.object_id),
            event.to_id.as_ref(),
            event.author_id.as_ref(),
        ];
        let text = said(event);
        Self {
            id: event.id,
            kind: event.kind,
            json: frame.slice(head.len()..head.len() + json.len()),
            frame,
            people: people.into_iter().flatten().collect(),
            ids: ids.into_iter().flatten().map(|id| hash(id)).collect(),
            words: words_of(&text),
            text,
        }
    }
}

pub(crate) const KINDS: &[(&str, EventKind)] = &[
    ("user", EventKind::User),
    ("status", EventKind::Status),
    ("comment", EventKind::Comment),
    ("object", EventKind::Object),
    ("relation", EventKind::Relation),
    ("link", EventKind::Link),
];

fn kind_name(kind: EventKind) -> &'static str {
    let found = KINDS.iter().find(|(_, known)| *known == kind);
    found.map_or("object", |(name, _)| *name)
}

/// What people said in it: texts, not addresses.
fn said(event: &Event) -> String {
    let mut said = String::new();
    for field in &event.fields {
        if let Value::Text(text) = &field.value
            && !field.name.ends_with("url")
        {
            said.push_str(text);
            said.push('\n');
        }
    }
    said.to_lowercase()
}

/// Line breaks are escaped in JSON, so that it is one line of a server-sent event.
fn event_json(event: &Event, with_fields: bool) -> String {
    let key = |key: Key| key.0.to_string();
    let mut fields = Map::new();
    for field in event.fields.iter().filter(|_| with_fields) {
        fields.insert(
            field.name.to_string(),
            crate::api::value::json(&field.value),
        );
    }
    json!({
        "id": event.id.to_string(),
        "at_us": event.at.micros(),
        "type": kind_name(event.kind),
        "is_new": event.is_new,
        "network": event.network,
        "key": key(event.key),
        "object_id": event.object_id,
        "to": event.to.map(key),
        "to_id": event.to_id,
        "link": event.link,
        "author": event.author.map(key),
        "author_id": event.author_id,
        "deleted_us": event.deleted.map(kittiwake_model::WorldTime::micros),
        "fields": fields,
        "is_cut": !with_fields,
    })
    .to_string()
}
