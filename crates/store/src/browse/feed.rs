//! What a crawl finds, one event after the other.

use super::objects::FieldView;
use crate::StoreError;
use kittiwake_model::{Key, WorldTime};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// The place of an event: the call that brought it, and its number in the answer, from 1. Ids only
/// grow, and stay what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EventId {
    pub log: i64,
    pub number: u32,
}

impl EventId {
    /// Before all events.
    pub const FIRST: Self = Self { log: 0, number: 0 };
}

impl fmt::Display for EventId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.log, self.number)
    }
}

impl FromStr for EventId {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let parts = text.split_once('.');
        let id = parts.and_then(|(log, number)| {
            Some(Self {
                log: log.parse().ok().filter(|log| *log >= 0)?,
                number: number.parse().ok()?,
            })
        });
        id.ok_or_else(|| StoreError::invalid("this is no id of an event; they look like 17.4"))
    }
}

impl Serialize for EventId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    User,
    Status,
    Comment,
    /// A tag, or an object of a type without a table of its own.
    Object,
    /// Somebody follows somebody.
    Relation,
    Link,
}

/// Something that an answer brought, or changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    pub id: EventId,
    /// World time of the request's start.
    pub at: WorldTime,
    pub kind: EventKind,
    /// The object; of a relation or a link, where it begins.
    pub key: Key,
    /// Where a relation or a link leads.
    pub to: Option<Key>,
    /// The kind of a link: `mention`, `tag`, `repost`, …
    pub link: Option<String>,
    /// Else it was known before and has changed.
    pub is_new: bool,
    pub network: String,
    /// The object's id, as exports name it; of a relation or a link, that of where it begins.
    pub object_id: String,
    /// The id of where a relation or a link leads.
    pub to_id: Option<String>,
    /// Who wrote the post or the comment.
    pub author: Option<Key>,
    pub author_id: Option<String>,
    /// What is known of the object now; empty for relations and links, and for what is there no more.
    pub fields: Vec<FieldView>,
    /// When a post was first seen to be gone.
    pub deleted: Option<WorldTime>,
}

/// A stretch of the feed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Feed {
    pub events: Vec<Event>,
    /// Where to go on, also where no event was found: many calls bring nothing.
    pub next: EventId,
    /// Whether that is the end for now.
    pub is_end: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_reads_back_and_garbage_does_not() {
        let id = EventId { log: 17, number: 4 };
        assert_eq!(id.to_string().parse::<EventId>().unwrap(), id);
        for garbage in [
            "", ".", "17", "17.", ".4", "-1.4", "17.-4", "17.4.5", "١.٢", "9e9.1",
        ] {
            assert!(garbage.parse::<EventId>().is_err(), "{garbage}");
        }
    }
}
