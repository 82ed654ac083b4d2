//! The column `observed`: for each group when it was observed and which fields it has.
//!
//! Nearly all rows have one of a few lists of fields, so a row names its list by a number:
//! `{"card":[microseconds,log,list]}`. A group with exceptions is written in full:
//! `{"card":{"at":[microseconds,log],"fields":list,"older":{…},"kinds":{…}}}`.

use kittiwake_model::{GroupState, Name, Stamp, Table, Value};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap as _, SerializeTuple as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

/// Lists that get a number. Definitions have few; what an odd server makes of them must not fill
/// the memory, so lists beyond these are written out in the row.
const LISTS_MAX: usize = 4_096;

/// The lists of fields that have a number.
#[derive(Debug, Default)]
pub(crate) struct FieldLists {
    by_number: HashMap<i64, Arc<[Name]>>,
    /// Numbers by the hash of their lists.
    by_hash: HashMap<u64, Vec<i64>>,
    newest: i64,
    unsaved: Vec<i64>,
    /// Lists in the orders in which definitions have them.
    orders: HashMap<u64, Arc<Order>>,
}

/// A list of fields in the order in which a definition has it.
#[derive(Debug)]
pub(crate) struct Order {
    table: Table,
    names: Box<[Name]>,
    /// The number of the sorted list.
    number: i64,
    /// The columns of the table in which the fields are kept.
    pub places: Box<[Option<usize>]>,
}

impl Order {
    /// Compared by place in memory: the names of a definition are made once.
    fn is_of(&self, table: Table, fields: &[(Name, Value)]) -> bool {
        let mut pairs = self.names.iter().zip(fields);
        self.table == table
            && self.names.len() == fields.len()
            && pairs.all(|(name, (field, _))| Arc::ptr_eq(name, field))
    }
}

impl FieldLists {
    /// Takes in a list that was read.
    pub(crate) fn learn(&mut self, number: i64, fields: Arc<[Name]>) {
        let places = self.by_hash.entry(hash_of(fields.iter())).or_default();
        places.push(number);
        self.by_number.insert(number, fields);
        self.newest = self.newest.max(number);
    }

    /// The list's number, a new one if need be; `None` if there are too many lists.
    fn number_of<'a>(&mut self, fields: impl Iterator<Item = &'a Name> + Clone) -> Option<i64> {
        let known = self.by_hash.get(&hash_of(fields.clone()));
        let known = known.into_iter().flatten().find(|number| {
            self.by_number
                .get(number)
                .is_some_and(|list| list.iter().eq(fields.clone()))
        });
        if let Some(number) = known {
            return Some(*number);
        }
        if self.by_number.len() >= LISTS_MAX {
            return None;
        }
        let number = self.newest + 1;
        self.learn(number, fields.cloned().collect());
        self.unsaved.push(number);
        Some(number)
    }

    /// What is known of a list that may be in any order; `None` if a field stands in it twice or
    /// there are too many lists.
    pub(crate) fn order(&mut self, table: Table, fields: &[(Name, Value)]) -> Option<Arc<Order>> {
        let hash = place_in_memory(table, fields);
        if let Some(order) = self.orders.get(&hash)
            && order.is_of(table, fields)
        {
            return Some(Arc::clone(order));
        }
        let mut sorted: Vec<&Name> = fields.iter().map(|(name, _)| name).collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return None;
        }
        let number = self.number_of(sorted.into_iter())?;
        let columns = table.columns();
        let place = |field: &Name| columns.iter().position(|column| column.name == &**field);
        let order = Arc::new(Order {
            table,
            names: fields.iter().map(|(name, _)| name.clone()).collect(),
            number,
            places: fields.iter().map(|(name, _)| place(name)).collect(),
        });
        if self.orders.len() >= LISTS_MAX {
            self.orders.clear();
        }
        self.orders.insert(hash, Arc::clone(&order));
        Some(order)
    }

    pub(crate) fn fields(&self, number: i64) -> Option<&Arc<[Name]>> {
        self.by_number.get(&number)
    }

    /// Lists that have got their number since the last call: they have to be written in the same
    /// transaction as the rows that name them.
    pub(crate) fn take_unsaved(&mut self) -> Vec<i64> {
        std::mem::take(&mut self.unsaved)
    }

    pub(crate) fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }
}

/// A number that is the same for the same names of one definition, and quick to make.
fn place_in_memory(table: Table, fields: &[(Name, Value)]) -> u64 {
    fields.iter().fold(table as u64, |hash, (name, _)| {
        (hash.rotate_left(5) ^ name.as_ptr().addr() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    })
}

fn hash_of<'a>(fields: impl Iterator<Item = &'a Name>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for field in fields {
        field.hash(&mut hasher);
    }
    hasher.finish()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FieldKind {
    /// Microseconds, in `extra`.
    Time,
    /// Microseconds that had to be moved into the range that is stored.
    Clamped,
    /// The key of an object, in `extra`.
    Key,
    /// JSON that is neither a list nor a map, in `extra`.
    Json,
    /// In histories: a plain number in a field whose name promises something else.
    Integer,
}

/// Brings the times of some groups forward; `None` if all of them are as late already.
pub(crate) fn restamped(
    observed: &str,
    names: &[Name],
    stamp: Stamp,
) -> Result<Option<String>, serde_json::Error> {
    let mut groups: BTreeMap<&str, serde_json::Value> = serde_json::from_str(observed)?;
    let mut changed = false;
    for name in names {
        let Some(group) = groups.get_mut(&**name) else {
            continue;
        };
        let at = match group {
            serde_json::Value::Array(short) => short.get_mut(..2),
            full => full["at"].as_array_mut().map(|at| &mut at[..]),
        };
        let Some([at_us, log]) = at else { continue };
        let known = Stamp {
            at_us: at_us.as_i64().unwrap_or(i64::MIN),
            log: log.as_i64().unwrap_or(0),
        };
        if known < stamp {
            (*at_us, *log) = (stamp.at_us.into(), stamp.log.into());
            changed = true;
        }
    }
    changed.then(|| serde_json::to_string(&groups)).transpose()
}

/// One group as it is written.
#[derive(Debug)]
pub(crate) struct Written<'a> {
    name: &'a str,
    state: &'a GroupState,
    /// `None`: written out.
    list: Option<i64>,
    /// Fields whose value cannot be told from its form alone.
    kinds: Vec<(&'a str, FieldKind)>,
}

impl<'a> Written<'a> {
    pub(crate) fn new(
        name: &'a str,
        state: &'a GroupState,
        kinds: Vec<(&'a str, FieldKind)>,
        lists: &mut FieldLists,
    ) -> Self {
        Self {
            name,
            state,
            list: lists.number_of(state.fields.keys()),
            kinds,
        }
    }
}

/// The whole column of an object that was observed for the first time, from the names of its groups
/// and their lists; `None` if a group stands there twice.
pub(crate) fn first(groups: &[(&Name, Arc<Order>)], stamp: Stamp) -> Option<String> {
    let mut parts: Vec<(&str, i64)> = groups
        .iter()
        .map(|(name, order)| (&***name, order.number))
        .collect();
    parts.sort_unstable();
    if parts.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return None;
    }
    let mut text = String::with_capacity(48 * parts.len());
    for (name, list) in parts {
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(&serde_json::to_string(name).ok()?);
        let Stamp { at_us, log } = stamp;
        let _ = write!(text, ":[{at_us},{log},{list}]");
    }
    text.push('}');
    Some(text)
}

/// The whole column as text.
pub(crate) fn to_text(groups: &[Written<'_>]) -> Result<String, serde_json::Error> {
    struct Groups<'a>(&'a [Written<'a>]);
    impl Serialize for Groups<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().map(|group| (group.name, group)))
        }
    }
    serde_json::to_string(&Groups(groups))
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Stamp { at_us, log } = self.state.newest;
        let list = List(self);
        if self.state.older.is_empty() && self.kinds.is_empty() {
            let mut short = serializer.serialize_tuple(3)?;
            short.serialize_element(&at_us)?;
            short.serialize_element(&log)?;
            short.serialize_element(&list)?;
            return short.end();
        }
        let mut full = serializer.serialize_map(None)?;
        full.serialize_entry("at", &(at_us, log))?;
        full.serialize_entry("fields", &list)?;
        if !self.state.older.is_empty() {
            full.serialize_entry("older", &Older(&self.state.older))?;
        }
        if !self.kinds.is_empty() {
            full.serialize_entry("kinds", &Kinds(&self.kinds))?;
        }
        full.end()
    }
}

struct List<'a>(&'a Written<'a>);

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.list {
            Some(number) => serializer.serialize_i64(number),
            None => serializer.collect_seq(self.0.state.fields.keys()),
        }
    }
}

struct Older<'a>(&'a BTreeMap<Name, Stamp>);

impl Serialize for Older<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stamps = self.0.iter();
        serializer.collect_map(stamps.map(|(field, stamp)| (field, (stamp.at_us, stamp.log))))
    }
}

struct Kinds<'a>(&'a [(&'a str, FieldKind)]);

impl Serialize for Kinds<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

/// One group as it is read.
#[derive(Debug)]
pub(crate) struct Read {
    pub newest: Stamp,
    fields: Fields,
    /// Fields that the newest observation did not hold.
    pub older: BTreeMap<Name, Stamp>,
    pub kinds: BTreeMap<Name, FieldKind>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Fields {
    Number(i64),
    Names(Vec<Name>),
}

/// Reads the whole column.
pub(crate) fn from_text(text: &str) -> Result<BTreeMap<Name, Read>, serde_json::Error> {
    serde_json::from_str(text)
}

impl Read {
    /// The names of the group's fields.
    pub(crate) fn fields(&self, lists: &FieldLists) -> Result<Arc<[Name]>, serde_json::Error> {
        match &self.fields {
            Fields::Names(names) => Ok(names.as_slice().into()),
            Fields::Number(number) => lists.fields(*number).cloned().ok_or_else(|| {
                de::Error::custom(format_args!("there is no list of fields {number}"))
            }),
        }
    }
}

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReadVisitor)
    }
}

struct ReadVisitor;

impl<'de> Visitor<'de> for ReadVisitor {
    type Value = Read;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a group's time, log row and fields")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Read, A::Error> {
        let missing = |place| de::Error::invalid_length(place, &"three values");
        let at_us = sequence.next_element()?.ok_or_else(|| missing(0))?;
        let log = sequence.next_element()?.ok_or_else(|| missing(1))?;
        Ok(Read {
            newest: Stamp { at_us, log },
            fields: sequence.next_element()?.ok_or_else(|| missing(2))?,
            older: BTreeMap::new(),
            kinds: BTreeMap::new(),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Read, A::Error> {
        #[derive(Deserialize)]
        struct Full {
            at: (i64, i64),
            fields: Fields,
            #[serde(default)]
            older: BTreeMap<Name, (i64, i64)>,
            #[serde(default)]
            kinds: BTreeMap<Name, FieldKind>,
        }
        let full = Full::deserialize(MapAccessDeserializer::new(map))?;
        let stamp = |(at_us, log)| Stamp { at_us, log };
        let older = full.older.into_iter();
        Ok(Read {
            newest: stamp(full.at),
            fields: full.fields,
            older: older.map(|(field, at)| (field, stamp(at))).collect(),
            kinds: full.kinds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kittiwake_model::Value;

    fn state(fields: &[&str]) -> GroupState {
        let fields = fields.iter().map(|field| (Name::from(*field), Value::Null));
        GroupState::observed(fields, Stamp { at_us: 7, log: 2 })
    }

    fn text(state: &GroupState, lists: &mut FieldLists) -> String {
        to_text(&[Written::new("card", state, Vec::new(), lists)]).unwrap()
    }

    #[test]
    fn a_list_is_named_by_its_number() {
        let mut lists = FieldLists::default();
        lists.learn(4, ["a".into(), "b".into()].into());
        assert_eq!(text(&state(&["a", "b"]), &mut lists), r#"{"card":[7,2,4]}"#);
        assert!(!lists.has_unsaved());
        assert_eq!(text(&state(&["b"]), &mut lists), r#"{"card":[7,2,5]}"#);
        assert_eq!(lists.take_unsaved(), vec![5]);
        assert_eq!(text(&state(&["b"]), &mut lists), r#"{"card":[7,2,5]}"#);
        assert!(!lists.has_unsaved());
    }

    #[test]
    fn exceptions_are_written_in_full() {
        let mut lists = FieldLists::default();
        let mut state = state(&["a", "b"]);
        state.older.insert("a".into(), Stamp { at_us: 3, log: 1 });
        let written = Written::new("card", &state, vec![("b", FieldKind::Time)], &mut lists);
        let text = to_text(&[written]).unwrap();
        assert_eq!(
            text,
            r#"{"card":{"at":[7,2],"fields":1,"older":{"a":[3,1]},"kinds":{"b":"time"}}}"#
        );
        let read = &from_text(&text).unwrap()["card"];
        assert_eq!(read.older, state.older);
        assert_eq!(read.kinds["b"], FieldKind::Time);
    }

    #[test]
    fn beyond_the_limit_lists_are_written_out() {
        let mut lists = FieldLists::default();
        for number in 0..LISTS_MAX {
            text(&state(&[&format!("field {number}")]), &mut lists);
        }
        let text = text(&state(&["x", "y"]), &mut lists);
        assert_eq!(text, r#"{"card":[7,2,["x","y"]]}"#);
        let read = &from_text(&text).unwrap()["card"];
        assert_eq!(
            *read.fields(&lists).unwrap(),
            [Name::from("x"), Name::from("y")]
        );
        assert_eq!(lists.take_unsaved().len(), LISTS_MAX);
    }

    #[test]
    fn an_unknown_number_is_an_error() {
        let read = &from_text(r#"{"card":[7,2,9]}"#).unwrap()["card"];
        let error = read.fields(&FieldLists::default()).unwrap_err();
        assert!(error.to_string().contains("list of fields 9"), "{error}");
        assert!(from_text(r#"{"card":[7]}"#).is_err());
    }
}
