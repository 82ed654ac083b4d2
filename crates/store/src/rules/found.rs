//! What an answer brought, as the log keeps it: the keys of what was new and of what has changed.
//!
//! Objects that were met in one answer got their keys one after the other, so a list of keys is
//! mostly one stretch: `[12,[15,40]]` are 12 and all from 15 to 40. A call that brought nothing has an
//! empty text. The order in the text is the order of the events that are read from it.

use crate::StoreError;
use kittiwake_model::{Name, Table};
use serde::Deserialize;
use serde::de::{self, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// Stretches and pairs that are kept of one answer; beyond them it says that there was more.
const KEPT_MAX: usize = 20_000;

/// The events of one answer, gathered while it is written.
#[derive(Debug, Default)]
pub(super) struct Found {
    new: [Vec<i64>; Table::ALL.len()],
    changed: [Vec<i64>; Table::ALL.len()],
    relations: Vec<(i64, i64)>,
    links: BTreeMap<Name, Vec<(i64, i64)>>,
}

impl Found {
    pub(super) fn new_object(&mut self, table: Table, key: i64) {
        self.new[table as usize].push(key);
    }

    pub(super) fn changed_object(&mut self, table: Table, key: i64) {
        self.changed[table as usize].push(key);
    }

    pub(super) fn new_relation(&mut self, source: i64, target: i64) {
        self.relations.push((source, target));
    }

    pub(super) fn new_link(&mut self, kind: &Name, from: i64, to: i64) {
        match self.links.get_mut(kind) {
            Some(known) => known.push((from, to)),
            None => {
                self.links.insert(kind.clone(), vec![(from, to)]);
            }
        }
    }

    /// As the log keeps it; everything is forgotten.
    pub(super) fn take_text(&mut self) -> String {
        let found = std::mem::take(self);
        let mut stored = Stored::default();
        for (table, (mut new, mut changed)) in Table::ALL
            .iter()
            .zip(found.new.into_iter().zip(found.changed))
        {
            tidy(&mut new);
            tidy(&mut changed);
            changed.retain(|key| new.binary_search(key).is_err());
            if !new.is_empty() || !changed.is_empty() {
                let objects = Objects {
                    new: Keys(new),
                    changed: Keys(changed),
                };
                stored.objects.insert(*table, objects);
            }
        }
        let turned: Vec<(i64, i64)> = found.relations.iter().map(|(s, t)| (*t, *s)).collect();
        let (following, followers) = (grouped(found.relations), grouped(turned));
        // A list of following has one source, a list of followers one target.
        if following.len() <= followers.len() {
            stored.following = following;
        } else {
            stored.followers = followers;
        }
        stored.links = found
            .links
            .into_iter()
            .map(|(kind, pairs)| (kind, grouped(pairs)))
            .collect();
        stored.to_text()
    }
}

fn tidy(keys: &mut Vec<i64>) {
    keys.sort_unstable();
    keys.dedup();
}

type Groups = Vec<(i64, Keys)>;

fn grouped(mut pairs: Vec<(i64, i64)>) -> Groups {
    pairs.sort_unstable();
    pairs.dedup();
    let groups = pairs.chunk_by(|left, right| left.0 == right.0);
    groups
        .map(|group| (group[0].0, Keys(group.iter().map(|pair| pair.1).collect())))
        .collect()
}

/// Keys in their order, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Keys(pub(super) Vec<i64>);

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Objects {
    pub new: Keys,
    pub changed: Keys,
}

/// What the log keeps of one answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stored {
    #[serde(flatten)]
    pub objects: BTreeMap<Table, Objects>,
    /// A user, and whom it was found to follow.
    pub following: Groups,
    /// A user, and by whom it was found to be followed.
    pub followers: Groups,
    /// Where a link begins, and where it leads, by kind.
    pub links: BTreeMap<Name, Groups>,
    /// Whether there was more.
    pub is_cut: bool,
}

impl Stored {
    /// Reads what the log keeps.
    pub(super) fn read(text: &str) -> Result<Self, serde_json::Error> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_str(text)
    }

    /// The same with other keys: those of another store.
    pub(super) fn translated(self, key: &mut KeyOf<'_>) -> Result<Self, StoreError> {
        let mut translated = Self {
            is_cut: self.is_cut,
            ..Self::default()
        };
        for (table, objects) in self.objects {
            let objects = Objects {
                new: objects.new.translated(key)?,
                changed: objects.changed.translated(key)?,
            };
            translated.objects.insert(table, objects);
        }
        translated.following = translated_groups(self.following, key)?;
        translated.followers = translated_groups(self.followers, key)?;
        for (kind, groups) in self.links {
            let groups = translated_groups(groups, key)?;
            translated.links.insert(kind, groups);
        }
        Ok(translated)
    }

    pub(super) fn to_text(&self) -> String {
        let mut writer = Writer {
            text: String::new(),
            left: KEPT_MAX,
        };
        for (table, objects) in &self.objects {
            writer.field(table.name());
            writer.text.push('{');
            for (name, keys) in [("new", &objects.new), ("changed", &objects.changed)] {
                if !keys.0.is_empty() {
                    writer.field(name);
                    writer.keys(&keys.0);
                }
            }
            writer.text.push('}');
        }
        for (name, groups) in [
            ("following", &self.following),
            ("followers", &self.followers),
        ] {
            if !groups.is_empty() {
                writer.field(name);
                writer.groups(groups);
            }
        }
        if !self.links.is_empty() {
            writer.field("links");
            writer.text.push('{');
            for (kind, groups) in &self.links {
                writer.field(kind);
                writer.groups(groups);
            }
            writer.text.push('}');
        }
        writer.finish(self.is_cut)
    }
}

/// What a key is called in another store.
pub(super) type KeyOf<'k> = dyn FnMut(i64) -> Result<i64, StoreError> + 'k;

impl Keys {
    fn translated(self, key: &mut KeyOf<'_>) -> Result<Self, StoreError> {
        let mut keys = self.0.into_iter().map(key).collect::<Result<_, _>>()?;
        tidy(&mut keys);
        Ok(Self(keys))
    }
}

fn translated_groups(groups: Groups, key: &mut KeyOf<'_>) -> Result<Groups, StoreError> {
    let mut pairs = Vec::new();
    for (from, keys) in groups {
        let from = key(from)?;
        for to in keys.0 {
            pairs.push((from, key(to)?));
        }
    }
    Ok(grouped(pairs))
}

struct Writer {
    /// Without the bracket that it begins with.
    text: String,
    left: usize,
}

impl Writer {
    fn field(&mut self, name: &str) {
        if !self.text.is_empty() && !self.text.ends_with('{') {
            self.text.push(',');
        }
        // Kinds of links come from definitions.
        self.text
            .push_str(&serde_json::Value::from(name).to_string());
        self.text.push(':');
    }

    fn keys(&mut self, keys: &[i64]) {
        self.text.push('[');
        let stretches = keys.chunk_by(|left, right| left.checked_add(1) == Some(*right));
        for (place, stretch) in stretches.enumerate() {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            if place > 0 {
                self.text.push(',');
            }
            let _ = match stretch {
                [key] => write!(self.text, "{key}"),
                [first, .., last] => write!(self.text, "[{first},{last}]"),
                [] => Ok(()),
            };
        }
        self.text.push(']');
    }

    fn groups(&mut self, groups: &Groups) {
        self.text.push('[');
        for (place, (key, keys)) in groups.iter().enumerate() {
            if self.left == 0 {
                break;
            }
            if place > 0 {
                self.text.push(',');
            }
            let _ = write!(self.text, "[{key},");
            self.keys(&keys.0);
            self.text.push(']');
        }
        self.text.push(']');
    }

    fn finish(mut self, is_cut: bool) -> String {
        if self.text.is_empty() {
            return self.text;
        }
        if is_cut || self.left == 0 {
            self.field("is_cut");
            self.text.push_str("true");
        }
        self.text.insert(0, '{');
        self.text.push('}');
        self.text
    }
}

/// Keys that one answer can have brought; a text that names more is damaged.
const KEYS_MAX: i64 = 1_000_000;

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Stretches;

        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Stretch {
            One(i64),
            From(i64, i64),
        }

        impl<'de> Visitor<'de> for Stretches {
            type Value = Keys;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of keys and stretches of keys")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut stretches: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some(stretch) = stretches.next_element()? {
                    let (first, last) = match stretch {
                        Stretch::One(key) => (key, key),
                        Stretch::From(first, last) => (first, last),
                    };
                    if last.saturating_sub(first) > KEYS_MAX || keys.len() as i64 > KEYS_MAX {
                        return Err(de::Error::custom("too many keys"));
                    }
                    keys.extend(first..=last);
                }
                Ok(Keys(keys))
            }
        }

        deserializer.deserialize_seq(Stretches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_an_answer_brought_is_short() {
        let mut found = Found::default();
        for key in [7, 5, 6, 6, 12] {
            found.new_object(Table::Users, key);
        }
        found.changed_object(Table::Users, 3);
        found.changed_object(Table::Users, 6);
        for key in 20..60 {
            found.new_object(Table::Statuses, key);
        }
        for target in 5..8 {
            found.new_relation(3, target);
        }
        found.new_link(&Name::from("o'mention \""), 20, 3);
        assert_eq!(
            found.take_text(),
            r#"{"users":{"new":[[5,7],12],"changed":[3]},"statuses":{"new":[[20,59]]},"following":[[3,[[5,7]]]],"links":{"o'mention \"":[[20,[3]]]}}"#
        );
        assert_eq!(found.take_text(), "");
    }

    #[test]
    fn what_is_too_much_is_said_to_be() {
        let mut found = Found::default();
        for key in 0..100_000 {
            found.new_object(Table::Statuses, 2 * key);
            found.new_relation(key, 3 * key);
        }
        let text = found.take_text();
        assert!(text.len() < 400_000, "{}", text.len());
        let stored = Stored::read(&text).unwrap();
        assert!(stored.is_cut);
        assert_eq!(stored.objects[&Table::Statuses].new.0.len(), KEPT_MAX);
    }

    #[test]
    fn damage_is_told_and_fills_no_memory() {
        for text in [
            "{",
            "[]",
            r#"{"users":{"new":[[0,9223372036854775807]]}}"#,
            "7",
        ] {
            assert!(Stored::read(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_was_found_reads_back(
            new in prop::collection::btree_set(-50_i64..50, 0..40),
            pairs in prop::collection::btree_set((0_i64..9, 0_i64..30), 0..40),
        ) {
            let mut found = Found::default();
            for key in &new {
                found.new_object(Table::Comments, *key);
            }
            for (from, to) in &pairs {
                found.new_relation(*from, *to);
                found.new_link(&Name::from("like"), *from, *to);
            }
            let stored = Stored::read(&found.take_text()).unwrap();
            let flat = |groups: &Groups| -> std::collections::BTreeSet<(i64, i64)> {
                let pairs = groups.iter();
                pairs.flat_map(|(key, keys)| keys.0.iter().map(|to| (*key, *to))).collect()
            };
            let read: Vec<i64> = stored.objects.get(&Table::Comments)
                .map(|objects| objects.new.0.clone()).unwrap_or_default();
            prop_assert_eq!(read, new.into_iter().collect::<Vec<_>>());
            let mut relations = flat(&stored.following);
            relations.extend(flat(&stored.followers).into_iter().map(|(key, by)| (by, key)));
            prop_assert_eq!(&relations, &pairs);
            prop_assert_eq!(stored.links.values().flat_map(flat).collect::<std::collections::BTreeSet<_>>(), pairs);
            prop_assert!(!stored.is_cut);
        }
    }
}
