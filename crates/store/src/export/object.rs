//! The columns `observed`, `extra` and `kinds`: what a row says beyond its plain columns.

use super::input::InputRow;
use super::log::CallNumbers;
use super::reference;
use super::time::{iso, parse_stored};
use crate::record;
use kittiwake_model::catalogue::Column;
use kittiwake_model::{ColumnKind, GroupState, Identity, Name, Reference, Stamp, Table, Value};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// One group of an object: when it was observed and what belongs to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ObservedGroup {
    pub at: Iso,
    pub log: i64,
    pub fields: Vec<Name>,
    /// Fields that the newest observation did not show, with the one that last did.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub older: BTreeMap<Name, Observed>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<Name, Kind>,
}

/// One observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Observed {
    pub at: Iso,
    pub log: i64,
}

/// What a value is, where its form does not show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Kind {
    Word(KindWord),
    /// Another object, named by its id.
    Object(KindObject),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KindWord {
    /// A time, outside its own column.
    Time,
    /// A time that had to be moved into the range that is stored.
    Clamped,
    /// JSON that is neither a list nor a map.
    Json,
    /// A text without a letter in it, where CSV shows nothing.
    Empty,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KindObject {
    /// The row's own network when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Name>,
    #[serde(rename = "type")]
    pub kind: Name,
}

/// Microseconds that are written as ISO text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Iso(pub i64);

impl Serialize for Iso {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&iso(self.0))
    }
}

impl<'de> Deserialize<'de> for Iso {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let at_us = parse_stored(&text).ok_or_else(|| de::Error::custom(no_time(&text)))?;
        Ok(Self(at_us))
    }
}

fn no_time(text: &str) -> String {
    format!(
        "{} is no time such as 2026-11-15T20:30:00.000000Z",
        reference::shown(text)
    )
}

/// The column `observed` as JSON.
pub(crate) fn observed_json(
    groups: &BTreeMap<Name, ObservedGroup>,
) -> Result<String, serde_json::Error> {
    serde_json::to_string(groups)
}

/// The type that a reference into a table has, unless it is said otherwise.
pub(crate) const fn usual_kind(table: Table) -> &'static str {
    match table {
        Table::Users => "user",
        Table::Statuses => "status",
        Table::Comments => "comment",
        Table::Tags => "tag",
        Table::Objects => "object",
    }
}

/// All groups of an object's row.
pub(super) fn groups(
    table: Table,
    row: &InputRow<'_>,
    own: &Identity,
    calls: CallNumbers,
) -> Result<BTreeMap<Name, GroupState>, String> {
    let observed: BTreeMap<Name, ObservedGroup> = match row.json("observed")? {
        Some(observed) => parse("observed", &observed)?,
        None => BTreeMap::new(),
    };
    let extra = row.json("extra")?;
    let extra: BTreeMap<Name, &RawValue> = match &extra {
        Some(extra) => parse("extra", extra)?,
        None => BTreeMap::new(),
    };
    let mut claimed = BTreeSet::new();
    let mut groups = BTreeMap::new();
    for (name, group) in observed {
        let mut fields = BTreeMap::new();
        for field in &group.fields {
            let kind = group.kinds.get(field);
            let value = match (extra.get(field), table.column(field)) {
                (Some(raw), _) => free_value(field, raw, kind, own)?,
                (None, Some(column)) => column_value(row, column, kind, own)?,
                (None, None) => Value::Null,
            };
            claimed.insert(field.clone());
            fields.insert(field.clone(), value);
        }
        groups.insert(name, state(group, fields, calls)?);
    }
    // A value that belongs to no group would be lost without a word.
    let unclaimed = table
        .columns()
        .iter()
        .map(|column| column.name)
        .filter(|name| !row.is_null(name.strip_suffix("_us").unwrap_or(name)))
        .chain(extra.keys().map(|field| &**field))
        .find(|name| !claimed.contains(*name));
    match unclaimed {
        Some(name) => Err(format!(
            "{} has a value, but no group in observed names it",
            reference::shown(name)
        )),
        None => Ok(groups),
    }
}

fn state(
    group: ObservedGroup,
    fields: BTreeMap<Name, Value>,
    calls: CallNumbers,
) -> Result<GroupState, String> {
    let newest = Observed {
        at: group.at,
        log: group.log,
    };
    let newest = stamp(newest, calls)?;
    let mut older = BTreeMap::new();
    for (field, observed) in group.older {
        if !fields.contains_key(&field) {
            return Err(format!(
                "observed: {} is no field of its group",
                reference::shown(&field)
            ));
        }
        let stamp = stamp(observed, calls)?;
        if stamp < newest {
            older.insert(field, stamp);
        }
    }
    Ok(GroupState {
        newest,
        fields,
        older,
    })
}

/// A stamp with a number that a log can have.
pub(super) fn stamp(observed: Observed, calls: CallNumbers) -> Result<Stamp, String> {
    Ok(Stamp {
        at_us: observed.at.0,
        log: calls.taken(observed.log)?,
    })
}

/// The values of a row of history.
pub(super) fn history(
    row: &InputRow<'_>,
    column: &str,
    own: &Identity,
) -> Result<BTreeMap<Name, Value>, String> {
    let fields = row
        .json(column)?
        .ok_or_else(|| format!("{column} is missing"))?;
    let fields: BTreeMap<Name, &RawValue> = parse(column, &fields)?;
    let kinds: BTreeMap<Name, Kind> = match row.json("kinds")? {
        Some(kinds) => parse("kinds", &kinds)?,
        None => BTreeMap::new(),
    };
    let mut values = BTreeMap::new();
    for (field, raw) in fields {
        if field.is_empty() {
            return Err(format!("{column}: a field without a name"));
        }
        let value = free_value(&field, raw, kinds.get(&field), own)?;
        values.insert(field, value);
    }
    Ok(values)
}

fn parse<'a, T: Deserialize<'a>>(column: &str, text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("{column}: {error}"))
}

/// A value that stands in JSON.
fn free_value(
    field: &str,
    raw: &RawValue,
    kind: Option<&Kind>,
    own: &Identity,
) -> Result<Value, String> {
    let text = || parse::<String>(field, raw.get());
    let value = match kind {
        None => record::value_of(raw, None).map_err(|error| format!("{field}: {error}"))?,
        Some(Kind::Word(KindWord::Json)) => Value::Json(raw.get().to_owned()),
        Some(Kind::Word(KindWord::Empty)) => {
            return Err(format!("{field}: only a column can hide an empty text"));
        }
        Some(Kind::Word(word @ (KindWord::Time | KindWord::Clamped))) => {
            let text = text()?;
            Value::Time {
                at_us: parse_stored(&text).ok_or_else(|| format!("{field}: {}", no_time(&text)))?,
                clamped: *word == KindWord::Clamped,
            }
        }
        Some(Kind::Object(object)) => reference_to(field, &text()?, object, own)?,
    };
    Ok(value)
}

/// A value that stands in its own column.
fn column_value(
    row: &InputRow<'_>,
    column: &Column,
    kind: Option<&Kind>,
    own: &Identity,
) -> Result<Value, String> {
    let name = column.name.strip_suffix("_us").unwrap_or(column.name);
    let is = |word| kind == Some(&Kind::Word(word));
    let value = match column.kind {
        ColumnKind::Text if is(KindWord::Empty) => Some(Value::Text(String::new())),
        ColumnKind::Text => row.text(name)?.map(|text| Value::Text(text.into_owned())),
        ColumnKind::Integer => row.integer(name)?.map(Value::Int),
        ColumnKind::Real => row.real(name)?.map(Value::Float),
        ColumnKind::Boolean => row.boolean(name)?.map(Value::Bool),
        ColumnKind::Time => row.time(name)?.map(|at| Value::Time {
            at_us: at.0,
            clamped: is(KindWord::Clamped),
        }),
        ColumnKind::Json if is(KindWord::Json) && row.is_null(name) => {
            Some(Value::Json("null".to_owned()))
        }
        ColumnKind::Json => row.json(name)?.map(|text| Value::Json(text.into_owned())),
        ColumnKind::Reference(table) => {
            let usual = KindObject {
                network: None,
                kind: usual_kind(table).into(),
            };
            let object = match kind {
                Some(Kind::Object(object)) => object,
                _ => &usual,
            };
            match row.text(name)? {
                Some(text) => Some(reference_to(name, &text, object, own)?),
                None => None,
            }
        }
    };
    Ok(value.unwrap_or(Value::Null))
}

fn reference_to(
    field: &str,
    text: &str,
    object: &KindObject,
    own: &Identity,
) -> Result<Value, String> {
    let network = object.network.as_ref().unwrap_or(&own.network);
    let identity = reference::parse(network, &object.kind, text)
        .map_err(|message| format!("{field}: {message}"))?;
    Ok(Value::Object(Reference::Identity(Box::new(identity))))
}
