//! What a visit has found so far, as far as its policy wants to know: when posts were made, and in brief
//! what else there was, so that the next visit can tell whether anything has changed. Pure.

use crate::walk::{Step, StepPage};
use kittiwake_frontier::policy::Content;
use kittiwake_model::{
    Identity, Key, Link, Object, OutcomeCode, Reference, Table, Value, Weight, WorldTime,
};
use kittiwake_network::Reading;
use kittiwake_store::TaskRecord;

/// Times of posts that a visit remembers for its policy.
const POSTS_MAX: usize = 4_096;
/// Fields that go up and down with everything that people do.
const COUNTS: &str = "counts";

/// What a visit has found so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    /// When the posts were made that it brought.
    pub posts: Vec<WorldTime>,
    /// Sums of hashes, so that the order of a list is no part of it.
    digest: u64,
    counts: u64,
    entries: u32,
    calls: u32,
    /// Calls that were answered with "nothing has changed".
    unchanged: u32,
    /// Some of it was seen by another run, or could not be had.
    is_partial: bool,
    /// A list was walked only as far as it was new.
    is_news: bool,
}

impl Found {
    /// Takes in an answer about one subject.
    pub(crate) fn take_in(
        &mut self,
        task: &TaskRecord,
        step: &Step,
        is_incremental: bool,
        reading: &Reading,
    ) {
        self.remember_posts(task, reading);
        // A walk that another run has begun.
        self.is_partial |= self.calls == 0 && matches!(step.page, StepPage::Next(_));
        self.is_news |= is_incremental && task.row.visits > 0;
        self.calls = self.calls.saturating_add(1);
        match reading.outcome {
            OutcomeCode::NotModified => self.unchanged = self.unchanged.saturating_add(1),
            outcome if outcome.is_success() => self.add(task.row.subject, reading),
            _ => self.is_partial = true,
        }
    }

    /// What a call about several has found of one of them.
    pub(crate) fn in_batch(subject: Key, reading: &Reading) -> Self {
        let mut found = Self {
            calls: 1,
            is_partial: !reading.outcome.is_success(),
            ..Self::default()
        };
        found.add(subject, reading);
        // Whoever is missing from the answer was not looked at.
        let is_there = |object: &Object| object.known_as == Some(subject);
        found.is_partial |= !reading.objects.iter().any(is_there);
        found
    }

    /// What its policy can tell changes by.
    pub(crate) fn content(&self) -> Option<Content> {
        if self.is_partial || self.calls == 0 {
            return None;
        }
        if self.unchanged == self.calls {
            return Some(Content::Same);
        }
        if self.unchanged > 0 {
            return None;
        }
        if self.is_news {
            return Some(Content::New(self.entries));
        }
        Some(Content::Whole {
            digest: self.digest,
            counts: (self.counts ^ (self.counts >> 32)) as u32,
            size: self.entries,
        })
    }

    pub(crate) const fn calls(&self) -> u32 {
        self.calls
    }

    fn add(&mut self, subject: Key, reading: &Reading) {
        let own = reading.objects.iter();
        for object in own.filter(|object| object.known_as == Some(subject)) {
            for group in &object.groups {
                let hash = group.fields.iter().fold(0_u64, |sum, (name, value)| {
                    sum.wrapping_add(of_field(name, value, &reading.objects))
                });
                let sum = if &*group.name == COUNTS {
                    &mut self.counts
                } else {
                    &mut self.digest
                };
                *sum = sum.wrapping_add(hash);
            }
        }
        for link in &reading.links {
            let hash = of_link(link, &reading.objects);
            self.digest = self.digest.wrapping_add(hash);
            self.entries = self.entries.saturating_add(1);
        }
    }

    /// Notes when the posts of a page were made, within a bound: those of the subject, where it wrote any,
    /// and not what they repeat or answer.
    fn remember_posts(&mut self, task: &TaskRecord, reading: &Reading) {
        let subject = task.row.subject;
        let posts = || {
            let objects = reading.objects.iter();
            objects.filter(|object| {
                matches!(object.table, Table::Statuses | Table::Comments)
                    && object.known_as != Some(subject)
            })
        };
        let is_own = |object: &Object| is_by(object, task, &reading.objects);
        let has_own = posts().any(is_own);
        let made = posts()
            .filter(|object| !has_own || is_own(object))
            .filter_map(|object| match field(object, "created_us") {
                Some(Value::Time { at_us, .. }) => Some(WorldTime(*at_us)),
                _ => None,
            });
        let room = POSTS_MAX.saturating_sub(self.posts.len());
        self.posts.extend(made.take(room));
    }
}

fn field<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    let mut fields = object.groups.iter().flat_map(|group| &group.fields);
    fields.find_map(|(known, value)| (&**known == name).then_some(value))
}

/// Whether the subject of a task wrote a post.
fn is_by(post: &Object, task: &TaskRecord, objects: &[Object]) -> bool {
    let subject = task.row.subject;
    let is_it = |identity: &Identity| identity.shared(&task.identity) > Weight::Hint;
    match field(post, "author") {
        Some(Value::Object(Reference::Key(key))) => *key == subject,
        Some(Value::Object(Reference::Identity(identity))) => is_it(identity),
        Some(Value::Object(Reference::Object(place))) => objects
            .get(*place as usize)
            .is_some_and(|author| author.known_as == Some(subject) || is_it(&author.identity)),
        _ => false,
    }
}

/// FNV-1a: what was written by one run has to be read by the next.
struct Hash(u64);

impl Hash {
    const fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        self
    }

    /// A text, told apart from the one behind it.
    fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes()).bytes(&[0xFF])
    }

    fn reference(self, reference: &Reference, objects: &[Object]) -> Self {
        match reference {
            Reference::Key(key) => self.bytes(&key.0.to_le_bytes()),
            Reference::Identity(identity) => self.identity(identity),
            Reference::Object(place) => match objects.get(*place as usize) {
                Some(object) => self.identity(&object.identity),
                None => self,
            },
        }
    }

    /// By what names it for good: other names come and go.
    fn identity(self, identity: &Identity) -> Self {
        if let Some(canonical) = &identity.canonical {
            return self.text(canonical);
        }
        let stable = identity.aliases.iter().filter(|alias| !alias.movable);
        match stable.min() {
            Some(alias) => self.text(&alias.host).text(&alias.id),
            None => self,
        }
    }
}

fn of_link(link: &Link, objects: &[Object]) -> u64 {
    let hash = Hash::new().text(&link.kind);
    hash.reference(&link.from, objects)
        .reference(&link.to, objects)
        .0
}

fn of_field(name: &str, value: &Value, objects: &[Object]) -> u64 {
    let hash = Hash::new().text(name);
    match value {
        Value::Null => hash.bytes(&[0]),
        Value::Bool(value) => hash.bytes(&[1, u8::from(*value)]),
        Value::Int(value) => hash.bytes(&[2]).bytes(&value.to_le_bytes()),
        Value::Float(value) => hash.bytes(&[3]).bytes(&value.to_bits().to_le_bytes()),
        Value::Text(text) => hash.bytes(&[4]).text(text),
        Value::Time { at_us, .. } => hash.bytes(&[5]).bytes(&at_us.to_le_bytes()),
        Value::Json(text) => hash.bytes(&[6]).text(text),
        Value::Object(reference) => hash.bytes(&[7]).reference(reference, objects),
    }
    .0
}
