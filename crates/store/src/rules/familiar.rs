//! What the writer has just met: objects that answers repeat word for word.
//!
//! Most answers repeat what earlier ones told: the same authors, the same tags. What is remembered
//! here spares looking them up and comparing them; all of it can be forgotten at any moment.

use super::brings::is_writing;
use super::identity::{IdRow, hashes_of};
use crate::numbers::NumberMap;
use kittiwake_model::{Commit, Group, Identity, Name, Object, Stamp, Value};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hash};
use std::sync::Arc;

/// Entries of one generation; there are two.
const ENTRIES_MAX: usize = 8_192;

/// A map that forgets what was not used for long: what is used is kept in the younger of two
/// generations, and when that is full, the elder is dropped.
#[derive(Debug)]
struct Recent<K, V> {
    young: NumberMap<K, V>,
    old: NumberMap<K, V>,
}

impl<K: Hash + Eq + Copy, V> Recent<K, V> {
    fn get(&mut self, place: K) -> Option<&mut V> {
        if !self.young.contains_key(&place) {
            let value = self.old.remove(&place)?;
            self.insert(place, value);
        }
        self.young.get_mut(&place)
    }

    fn has(&self, place: K) -> bool {
        self.young.contains_key(&place) || self.old.contains_key(&place)
    }

    fn insert(&mut self, place: K, value: V) {
        if self.young.len() >= ENTRIES_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(place, value);
    }

    fn remove(&mut self, place: K) {
        self.young.remove(&place);
        self.old.remove(&place);
    }

    fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self {
            young: NumberMap::default(),
            old: NumberMap::default(),
        }
    }
}

/// Who an identity was found to be.
#[derive(Debug)]
pub(super) struct Met {
    pub key: i64,
    /// Its movable ids, as they were when they were looked up.
    pub movable: Vec<IdRow>,
    /// Between these times a sight of it leaves the rows of its stable ids as they are.
    pub from_us: i64,
    pub until_us: i64,
}

/// A row that holds exactly what its last observations told, all of them the same.
#[derive(Debug)]
struct Told {
    digest: u64,
    oldest: Stamp,
    newest: Stamp,
    names: Arc<[Name]>,
}

/// What an observation is that tells nothing new.
#[derive(Debug)]
pub(super) enum Repeated {
    /// It brings the time of these groups forward.
    Later(Arc<[Name]>),
    /// Others have told the same before and after it.
    Between,
}

/// Short marks that stand for what an answer tells of an object.
///
/// They are made where the answer is handed in, so that the one thread that writes is spared the
/// work.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    /// Stands for the identity: 128 bits of a keyed hash.
    pub place: (u64, u64),
    /// The hashes of its ids.
    pub hashes: Box<[i64]>,
    /// Stands for the values; `None` if they point at others, whose keys may change.
    pub digest: Option<u64>,
}

/// Makes marks. Keyed at random, so that no server can make two texts look alike.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marker {
    states: Arc<[RandomState; 2]>,
}

impl Marker {
    /// The marks of a commit's objects.
    pub(crate) fn marks(&self, commit: &Commit) -> Vec<Mark> {
        let mut bytes = Vec::new();
        let objects = commit.objects.iter();
        objects
            .map(|object| self.mark(object, &mut bytes))
            .collect()
    }

    fn mark(&self, object: &Object, bytes: &mut Vec<u8>) -> Mark {
        Mark {
            place: self.place_of(&object.identity),
            hashes: hashes_of(&object.identity),
            digest: if is_writing(object.table) || object.groups.is_empty() {
                None
            } else {
                self.digest_of(&object.groups, bytes)
            },
        }
    }

    pub(super) fn place_of(&self, identity: &Identity) -> (u64, u64) {
        let [first, second] = &*self.states;
        (first.hash_one(identity), second.hash_one(identity))
    }

    /// All values in a row, hashed at once: a keyed hash of many small pieces costs several times as
    /// much.
    fn digest_of(&self, groups: &[Group], bytes: &mut Vec<u8>) -> Option<u64> {
        bytes.clear();
        for group in groups {
            put_text(bytes, 8, &group.name);
            put_length(bytes, group.fields.len());
            for (field, value) in &group.fields {
                put_text(bytes, 9, field);
                match value {
                    Value::Null => bytes.push(0),
                    Value::Bool(flag) => bytes.extend([1, u8::from(*flag)]),
                    Value::Int(number) => put_number(bytes, 2, number.cast_unsigned()),
                    Value::Float(number) => put_number(bytes, 3, number.to_bits()),
                    Value::Text(text) => put_text(bytes, 4, text),
                    Value::Json(text) => put_text(bytes, 5, text),
                    Value::Time { at_us, clamped } => {
                        put_number(bytes, 6 + u8::from(*clamped), at_us.cast_unsigned());
                    }
                    Value::Object(_) => return None,
                }
            }
        }
        Some(self.states[0].hash_one(&**bytes))
    }
}

fn put_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend(length.to_le_bytes());
}

fn put_number(bytes: &mut Vec<u8>, kind: u8, number: u64) {
    bytes.push(kind);
    bytes.extend(number.to_le_bytes());
}

fn put_text(bytes: &mut Vec<u8>, kind: u8, text: &str) {
    bytes.push(kind);
    put_length(bytes, text.len());
    bytes.extend(text.as_bytes());
}

#[derive(Debug, Default)]
pub(super) struct Familiar {
    pub marker: Marker,
    identities: Recent<(u64, u64), Met>,
    rows: Recent<i64, Told>,
    /// The lists of groups that rows are told by, each held once.
    names: Vec<Arc<[Name]>>,
}

impl Familiar {
    pub(super) fn new(marker: Marker) -> Self {
        Self {
            marker,
            ..Self::default()
        }
    }

    /// Whether [`Self::met`] has an answer.
    pub(super) fn knows(&self, place: (u64, u64)) -> bool {
        self.identities.has(place)
    }

    pub(super) fn met(&mut self, place: (u64, u64)) -> Option<&Met> {
        self.identities.get(place).map(|met| &*met)
    }

    pub(super) fn meet(&mut self, place: (u64, u64), met: Met) {
        self.identities.insert(place, met);
    }

    /// Takes note of an observation that repeats the row's last ones. `None` if the row has to be
    /// looked at.
    pub(super) fn repeats(&mut self, key: i64, digest: u64, stamp: Stamp) -> Option<Repeated> {
        let told = self.rows.get(key)?;
        // One from before that time may tell of when the object was thought to be gone.
        if told.digest != digest || stamp < told.oldest {
            return None;
        }
        if stamp <= told.newest {
            return Some(Repeated::Between);
        }
        told.newest = stamp;
        Some(Repeated::Later(Arc::clone(&told.names)))
    }

    /// Remembers that the row holds what these groups told.
    pub(super) fn tell(&mut self, key: i64, digest: u64, stamp: Stamp, groups: &[Group]) {
        let known = self
            .names
            .iter()
            .find(|names| names.iter().eq(groups.iter().map(|group| &group.name)));
        let names = if let Some(names) = known {
            Arc::clone(names)
        } else {
            let names: Arc<[Name]> = groups.iter().map(|group| group.name.clone()).collect();
            // Definitions have few lists of groups.
            if self.names.len() < 64 {
                self.names.push(Arc::clone(&names));
            }
            names
        };
        let told = Told {
            digest,
            oldest: stamp,
            newest: stamp,
            names,
        };
        self.rows.insert(key, told);
    }

    /// The object's row, or whether it is there, has changed.
    pub(super) fn forget(&mut self, key: i64) {
        self.rows.remove(key);
    }

    /// Rows of ids have moved or vanished.
    pub(super) fn forget_identities(&mut self) {
        self.identities.clear();
    }
}
