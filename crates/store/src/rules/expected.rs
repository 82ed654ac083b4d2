//! What a group of commits is about to ask for.
//!
//! A server that is far away is asked for all of it at once, before the commits are looked at one by
//! one. Whatever is missing here is asked for when it is needed: nothing depends on it but time.

use super::identity::hashes_of;
use super::work::Memory;
use super::writer::Marked;
use kittiwake_model::{Commit, Name, Reference, Table, Value};
use std::collections::HashMap;

#[derive(Debug)]
pub(crate) struct Expected<'m> {
    /// Hashes of ids that will be looked up.
    pub hashes: Vec<i64>,
    /// Keys that commits name themselves.
    pub keys: Vec<i64>,
    /// From here on, keys are those of objects that nobody has met before.
    pub next_key: i64,
    /// Which table a type is kept in.
    pub types: &'m HashMap<(Name, Name), Table>,
}

impl<'m> Expected<'m> {
    pub(super) fn of(group: &[Vec<Marked>], memory: &'m Memory) -> Self {
        let mut expected = Self {
            hashes: Vec::new(),
            keys: Vec::new(),
            next_key: memory.next_key,
            types: &memory.types,
        };
        for Marked { commit, marks } in group.iter().flatten() {
            for (object, mark) in commit.objects.iter().zip(marks) {
                if object.known_as.is_some() || !memory.familiar.knows(mark.place) {
                    expected.hashes.extend(&mark.hashes);
                }
                expected
                    .keys
                    .extend(object.known_as.map(|key| memory.follow(key.0)));
                let fields = object.groups.iter().flat_map(|group| &group.fields);
                for (_, value) in fields {
                    if let Value::Object(reference) = value {
                        expected.reference(reference, memory);
                    }
                }
            }
            expected.named(commit, memory);
        }
        expected.hashes.sort_unstable();
        expected.hashes.dedup();
        expected.keys.sort_unstable();
        expected.keys.dedup();
        expected
    }

    fn named(&mut self, commit: &Commit, memory: &Memory) {
        for link in &commit.links {
            self.reference(&link.from, memory);
            self.reference(&link.to, memory);
        }
        for discovery in &commit.discoveries {
            self.reference(&discovery.subject, memory);
        }
        let outcomes = commit.outcomes.iter().map(|outcome| outcome.subject);
        let cursors = commit.cursors.iter().map(|cursor| cursor.subject);
        let rows = commit.frontier.iter().map(|row| row.subject);
        let keys = outcomes.chain(cursors).chain(rows);
        self.keys.extend(keys.map(|key| memory.follow(key.0)));
    }

    fn reference(&mut self, reference: &Reference, memory: &Memory) {
        match reference {
            Reference::Key(key) => self.keys.push(memory.follow(key.0)),
            Reference::Object(_) => {}
            Reference::Identity(identity) => {
                let place = memory.familiar.marker.place_of(identity);
                if !memory.familiar.knows(place) {
                    self.hashes.extend(hashes_of(identity));
                }
            }
        }
    }
}
