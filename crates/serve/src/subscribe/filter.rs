//! What somebody subscribed to. Pure.

use super::batch::{Batch, KINDS, Sent};
use kittiwake_model::Key;
use kittiwake_store::browse::EventKind;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Words of a text that are looked at.
const WORDS_MAX: usize = 2_000;
/// Of each thing that can be asked for.
pub(super) const ASKED_MAX: usize = 100;
const WORD_CHARS_MAX: usize = 100;

/// What is wanted: one of the types, and one of the people, and one of the words; all where none is named.
#[derive(Debug, Clone, Default)]
pub(super) struct Filter {
    kinds: HashSet<EventKind>,
    people: HashSet<Key>,
    /// Hashes of ids of people who may not be known yet.
    ids: HashSet<u64>,
    words: HashSet<u64>,
    /// Words of scripts that put no spaces between them.
    runs: Vec<String>,
}

impl Filter {
    pub(super) fn want_kind(&mut self, name: &str) -> Result<(), String> {
        let found = KINDS.iter().find(|(known, _)| *known == name);
        let Some((_, kind)) = found else {
            let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
            return Err(format!(
                "there is no such type; there are {}",
                names.join(", ")
            ));
        };
        self.kinds.insert(*kind);
        Ok(())
    }

    /// Somebody, by what they are called, and by the keys that are known for it.
    pub(super) fn want_person(&mut self, called: &str, keys: impl IntoIterator<Item = Key>) {
        self.people.extend(keys);
        self.ids.insert(hash(called));
    }

    pub(super) fn want_word(&mut self, word: &str) -> Result<(), String> {
        let word = word.trim().trim_start_matches(['#', '@']).to_lowercase();
        let is_word = !word.is_empty() && word.chars().all(char::is_alphanumeric);
        if !is_word || word.chars().count() > WORD_CHARS_MAX {
            return Err("a word is made of letters and digits; name several one by one".to_owned());
        }
        if word.is_ascii() || !word.chars().any(is_unspaced) {
            self.words.insert(hash(&word));
        } else {
            self.runs.push(word);
        }
        Ok(())
    }

    fn wants_everything(&self) -> bool {
        self.kinds.is_empty() && !self.names_people() && !self.names_words()
    }

    fn names_people(&self) -> bool {
        !self.people.is_empty() || !self.ids.is_empty()
    }

    fn names_words(&self) -> bool {
        !self.words.is_empty() || !self.runs.is_empty()
    }

    pub(super) fn takes(&self, event: &Sent) -> bool {
        let is_kind = self.kinds.is_empty() || self.kinds.contains(&event.kind);
        let is_person = || {
            !self.names_people()
                || event.people.iter().any(|key| self.people.contains(key))
                || event.ids.iter().any(|id| self.ids.contains(id))
        };
        let is_word = || {
            let has = |word: &u64| event.words.binary_search(word).is_ok();
            !self.names_words()
                || self.words.iter().any(has)
                || self.runs.iter().any(|run| event.text.contains(run))
        };
        is_kind && is_person() && is_word()
    }

    /// What of a batch is wanted, in its order; `None` if all of it is.
    pub(super) fn pick(&self, batch: &Batch) -> Option<Vec<Arc<Sent>>> {
        if self.wants_everything() {
            return None;
        }
        let mut places: Vec<u32> = Vec::new();
        if self.names_people() {
            places.extend(self.people.iter().flat_map(|key| batch.about(*key)));
            places.extend(self.ids.iter().flat_map(|id| batch.called(*id)));
        } else if self.runs.is_empty() && !self.words.is_empty() {
            places.extend(self.words.iter().flat_map(|word| batch.saying(*word)));
        } else {
            places.extend(0..batch.events.len() as u32);
        }
        places.sort_unstable();
        places.dedup();
        let events = places
            .into_iter()
            .filter_map(|place| batch.events.get(place as usize));
        Some(events.filter(|event| self.takes(event)).cloned().collect())
    }
}

pub(super) fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Hashes of the words of a text in small letters, sorted.
pub(super) fn words_of(text: &str) -> Vec<u64> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty()).take(WORDS_MAX);
    let mut hashes: Vec<u64> = words.map(hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// Letters of scripts that are written without spaces: Thai, Lao, Khmer, Burmese, Chinese, Japanese.
const fn is_unspaced(letter: char) -> bool {
    matches!(letter as u32,
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x9FFF
        | 0xF900..=0xFAFF | 0x2_0000..=0x3_FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kittiwake_model::{Value, WorldTime};
    use kittiwake_store::browse::{Event, EventId, Feed, FieldView};

    fn event(number: u32, kind: EventKind, author: i64, text: &str) -> Event {
        Event {
            id: EventId { log: 1, number },
            at: WorldTime(0),
            kind,
            key: Key(1_000 + i64::from(number)),
            to: None,
            link: None,
            is_new: true,
            network: "tiny".to_owned(),
            object_id: format!("o{number}"),
            to_id: None,
            author: Some(Key(author)),
            author_id: Some(format!("a{author}")),
            fields: vec![FieldView {
                name: "text".into(),
                value: Value::Text(text.to_owned()),
                observed: None,
            }],
            deleted: None,
        }
    }

    fn batch() -> Batch {
        let events = vec![
            event(1, EventKind::Status, 7, "Gulls over the harbour"),
            event(2, EventKind::Status, 8, "カモメが飛ぶ\nat sea"),
            event(3, EventKind::Comment, 7, "no birds <b>here</b>"),
        ];
        let next = EventId { log: 1, number: 3 };
        Batch::new(
            EventId::FIRST,
            Feed {
                events,
                next,
                is_end: true,
            },
        )
    }

    fn picked(filter: &Filter) -> Vec<u32> {
        let events = filter.pick(&batch()).unwrap();
        events.iter().map(|event| event.id.number).collect()
    }

    #[test]
    fn types_people_and_words_narrow_what_is_sent() {
        assert!(Filter::default().pick(&batch()).is_none());
        let mut filter = Filter::default();
        filter.want_person("nobody-yet", [Key(7)]);
        assert_eq!(picked(&filter), [1, 3]);
        filter.want_kind("comment").unwrap();
        assert_eq!(picked(&filter), [3]);
        filter.want_word("gulls").unwrap();
        assert!(picked(&filter).is_empty());
        let mut by_id = Filter::default();
        by_id.want_person("a8", []);
        assert_eq!(picked(&by_id), [2]);
    }

    #[test]
    fn words_are_found_whatever_their_script_or_case() {
        for (word, wanted) in [
            ("GULLS", &[1][..]),
            ("#sea", &[2]),
            ("カモメ", &[2]),
            ("gull", &[]),
        ] {
            let mut filter = Filter::default();
            filter.want_word(word).unwrap();
            assert_eq!(picked(&filter), wanted, "{word}");
        }
        for garbage in ["", "#", "two words", "a\nb"] {
            assert!(Filter::default().want_word(garbage).is_err(), "{garbage:?}");
        }
        assert!(Filter::default().want_kind("posts").is_err());
    }

    #[test]
    fn an_event_is_one_frame_whatever_is_in_it() {
        for sent in &batch().events {
            let frame = std::str::from_utf8(&sent.frame).unwrap();
            assert_eq!(frame.matches('\n').count(), 4, "{frame}");
            let json: serde_json::Value = serde_json::from_slice(&sent.json).unwrap();
            assert_eq!(json["id"], sent.id.to_string());
        }
    }
}
