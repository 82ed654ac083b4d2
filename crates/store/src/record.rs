//! One object as a row: groups of fields on one side, columns and JSON on the other.
//!
//! Pure, so that every back end writes the same rows. A field that is named like a column of its
//! table and has the column's kind is kept in the column; everything else is kept in `extra`.
//! [`observed`] says for each group when it was observed and which fields it has, so that a row
//! reads back as exactly the groups it was written from.

use crate::cell::Cell;
use crate::observed::{self, FieldKind, FieldLists, Written};
use kittiwake_model::catalogue::Column;
use kittiwake_model::value::clean_text;
use kittiwake_model::{ColumnKind, Group, GroupState, Key, Name, Reference, Stamp, Table, Value};
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// All groups of one object.
pub(crate) type Groups = BTreeMap<Name, GroupState>;

/// A row without its key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record<'a> {
    /// In the order of [`Table::columns`].
    pub cells: Vec<Cell<'a>>,
    pub extra: Option<String>,
    pub observed: String,
}

/// Brings a value into the one form in which a store keeps it, so that what is read back equals
/// what was written.
pub(crate) fn normalise(table: Table, field: &str, value: Value) -> Value {
    match value {
        Value::Float(float) if !float.is_finite() => Value::Null,
        // Zero has two signs, and not every database keeps both.
        Value::Float(0.0) => Value::Float(0.0),
        Value::Int(number)
            if table
                .column(field)
                .is_some_and(|column| column.kind == ColumnKind::Real) =>
        {
            Value::Float(number as f64)
        }
        Value::Text(mut text) => {
            clean_text(&mut text);
            Value::Text(text)
        }
        Value::Json(mut text) => {
            clean_text(&mut text);
            // What is not JSON would make the whole of `extra` unreadable.
            if serde_json::from_str::<&RawValue>(&text)
                .is_ok_and(|raw| raw.get().len() == text.len())
            {
                // Outside strings a line break means nothing, and strings have none; so every
                // JSON text fits on one line of an export.
                if text.contains(['\n', '\r']) {
                    text = text.replace(['\n', '\r'], " ");
                }
                Value::Json(text)
            } else {
                Value::Text(text)
            }
        }
        other => other,
    }
}

/// Writes groups as a row. Lists of fields that are new get their number in `lists`.
pub(crate) fn encode<'a>(
    table: Table,
    groups: &'a Groups,
    lists: &mut FieldLists,
) -> Result<Record<'a>, serde_json::Error> {
    let columns = table.columns();
    let mut cells = vec![Cell::Null; columns.len()];
    let mut extra: BTreeMap<&str, Raw<'_>> = BTreeMap::new();
    let mut observed = Vec::with_capacity(groups.len());
    for (name, group) in groups {
        let mut kinds = Vec::new();
        for (field, value) in &group.fields {
            let place = place_of(columns, field, value);
            kinds.extend(kind_of(value, place.is_some()).map(|kind| (&**field, kind)));
            match place {
                Some((place, cell)) => cells[place] = cell,
                None => {
                    extra.insert(field, Raw(value));
                }
            }
        }
        observed.push(Written::new(name, group, kinds, lists));
    }
    Ok(Record {
        cells,
        extra: if extra.is_empty() {
            None
        } else {
            Some(serde_json::to_string(&extra)?)
        },
        observed: observed::to_text(&observed)?,
    })
}

/// What [`encode`] writes of an object that nobody has described before, straight from what was
/// observed: `pointed` are the keys of its references, in order. `None` for what is out of the
/// ordinary and has to be brought into its stored form first.
pub(crate) fn encode_first<'a>(
    table: Table,
    groups: &'a [Group],
    pointed: &[i64],
    stamp: Stamp,
    lists: &mut FieldLists,
) -> Result<Option<Record<'a>>, serde_json::Error> {
    let columns = table.columns();
    let mut cells = vec![Cell::Null; columns.len()];
    let mut filled = 0_u64;
    let mut extra: Vec<(&str, Raw<'_>)> = Vec::new();
    let mut pointed = pointed.iter();
    let mut orders = Vec::with_capacity(groups.len());
    for group in groups {
        let Some(order) = lists.order(table, &group.fields) else {
            return Ok(None);
        };
        for ((field, value), place) in group.fields.iter().zip(&order.places) {
            let column = place.map(|place| &columns[place]);
            let cell = match value {
                Value::Object(_) => match (column, pointed.next()) {
                    (Some(column), Some(key)) if is_reference(column) => Some(Cell::Integer(*key)),
                    // A reference without a column is rare enough to go the long way.
                    _ => return Ok(None),
                },
                _ if !is_normal(column.map(|column| column.kind), value) => return Ok(None),
                _ => column.and_then(|column| cell_of(column, value)),
            };
            if kind_of(value, cell.is_some()).is_some() {
                return Ok(None);
            }
            match (*place, cell) {
                (Some(place), Some(cell)) => {
                    if filled & (1 << place) != 0 {
                        return Ok(None);
                    }
                    filled |= 1 << place;
                    cells[place] = cell;
                }
                _ => extra.push((field, Raw(value))),
            }
        }
        orders.push((&group.name, order));
    }
    extra.sort_unstable_by_key(|(field, _)| *field);
    if extra.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Ok(None);
    }
    let Some(observed) = observed::first(&orders, stamp) else {
        return Ok(None);
    };
    Ok(Some(Record {
        cells,
        extra: if extra.is_empty() {
            None
        } else {
            Some(serde_json::to_string(&Extra(&extra))?)
        },
        observed,
    }))
}

fn is_reference(column: &Column) -> bool {
    matches!(column.kind, ColumnKind::Reference(_))
}

struct Extra<'a>(&'a [(&'a str, Raw<'a>)]);

impl Serialize for Extra<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(field, value)| (field, value)))
    }
}

/// Whether [`normalise`] would leave the value as it is.
fn is_normal(column: Option<ColumnKind>, value: &Value) -> bool {
    match value {
        Value::Float(float) => float.is_finite() && *float != 0.0,
        Value::Int(_) => column != Some(ColumnKind::Real),
        Value::Text(text) => !text.as_bytes().contains(&0),
        Value::Json(text) => {
            !text.contains(['\0', '\n', '\r'])
                && serde_json::from_str::<&RawValue>(text)
                    .is_ok_and(|raw| raw.get().len() == text.len())
        }
        _ => true,
    }
}

/// Only the column `observed` of what [`encode`] writes.
pub(crate) fn encode_observed(
    table: Table,
    groups: &Groups,
    lists: &mut FieldLists,
) -> Result<String, serde_json::Error> {
    let columns = table.columns();
    let mut observed = Vec::with_capacity(groups.len());
    for (name, group) in groups {
        let mut kinds = Vec::new();
        for (field, value) in &group.fields {
            let has_place = || place_of(columns, field, value).is_some();
            // Few values have a kind at all, so the place is seldom asked for.
            if kind_of(value, false).is_some()
                && let Some(kind) = kind_of(value, has_place())
            {
                kinds.push((&**field, kind));
            }
        }
        observed.push(Written::new(name, group, kinds, lists));
    }
    observed::to_text(&observed)
}

/// The column `observed` with the times of some groups brought forward; `None` if all of them are
/// as late already.
pub(crate) fn restamped(
    observed: &str,
    names: &[Name],
    stamp: Stamp,
) -> Result<Option<String>, serde_json::Error> {
    observed::restamped(observed, names, stamp)
}

/// The newest observation of any group.
pub(crate) fn newest_stamp(observed: &str) -> Result<Stamp, serde_json::Error> {
    let groups = observed::from_text(observed)?;
    let stamps = groups.into_values().map(|group| group.newest);
    Ok(stamps.max().unwrap_or(Stamp {
        at_us: i64::MIN,
        log: 0,
    }))
}

/// Reads a row as groups.
pub(crate) fn decode(
    table: Table,
    record: Record<'_>,
    lists: &FieldLists,
) -> Result<Groups, serde_json::Error> {
    let Record {
        mut cells,
        extra,
        observed,
    } = record;
    let extra: BTreeMap<String, Box<RawValue>> = match extra {
        Some(extra) => serde_json::from_str(&extra)?,
        None => BTreeMap::new(),
    };
    let columns = table.columns();
    let mut groups = Groups::new();
    for (name, group) in observed::from_text(&observed)? {
        let mut fields = BTreeMap::new();
        for field in &*group.fields(lists)? {
            let kind = group.kinds.get(field).copied();
            let value = if let Some(raw) = extra.get(&**field) {
                value_of(raw, kind)?
            } else {
                columns
                    .iter()
                    .position(|column| column.name == &**field)
                    .and_then(|place| Some((columns.get(place)?, cells.get_mut(place)?)))
                    .map_or(Value::Null, |(column, cell)| {
                        let cell = std::mem::replace(cell, Cell::Null);
                        value_in(column, cell, kind)
                    })
            };
            fields.insert(field.clone(), value);
        }
        groups.insert(
            name,
            GroupState {
                newest: group.newest,
                fields,
                older: group.older,
            },
        );
    }
    Ok(groups)
}

/// The name under which a history keeps the kinds of its values; no field has it.
const KINDS: &str = "";

/// Fields and values as JSON, for histories. Kinds that neither JSON nor the field's name can show
/// stand under the empty name.
pub(crate) fn fields_json<'a>(
    fields: impl IntoIterator<Item = (&'a str, &'a Value)>,
) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Entry<'a> {
        Value(Raw<'a>),
        Kinds(BTreeMap<&'a str, FieldKind>),
    }
    let mut map = BTreeMap::new();
    let mut kinds = BTreeMap::new();
    for (field, value) in fields {
        kinds.extend(kind_in_history(field, value).map(|kind| (field, kind)));
        map.insert(field, Entry::Value(Raw(value)));
    }
    if !kinds.is_empty() {
        map.entry(KINDS).or_insert(Entry::Kinds(kinds));
    }
    serde_json::to_string(&map)
}

/// Reads what [`fields_json`] wrote.
pub(crate) fn fields_of(json: &str) -> Result<BTreeMap<Name, Value>, serde_json::Error> {
    let mut map: BTreeMap<Name, &RawValue> = serde_json::from_str(json)?;
    let kinds: BTreeMap<Name, FieldKind> = match map.remove(KINDS) {
        Some(kinds) => serde_json::from_str(kinds.get())?,
        None => BTreeMap::new(),
    };
    let mut fields = BTreeMap::new();
    for (field, raw) in map {
        let is_integer = || raw.get().parse::<i64>().is_ok();
        let kind = match kinds.get(&field) {
            Some(kind) => Some(*kind),
            None => kind_by_name(&field).filter(|_| is_integer()),
        };
        let value = value_of(raw, kind)?;
        fields.insert(field, value);
    }
    Ok(fields)
}

/// What an integer in a field of this name is, in every table that has such a column.
fn kind_by_name(field: &str) -> Option<FieldKind> {
    let mut columns = Table::ALL.iter().filter_map(|table| table.column(field));
    match columns.next()?.kind {
        ColumnKind::Time => Some(FieldKind::Time),
        ColumnKind::Reference(_) => Some(FieldKind::Key),
        _ => None,
    }
}

fn kind_in_history(field: &str, value: &Value) -> Option<FieldKind> {
    let by_name = kind_by_name(field);
    match (by_name, value) {
        (Some(_), Value::Int(_)) => Some(FieldKind::Integer),
        _ => kind_of(value, false).filter(|kind| by_name != Some(*kind)),
    }
}

/// Where a field's value is kept, if a column can hold it.
fn place_of<'a>(columns: &[Column], field: &str, value: &'a Value) -> Option<(usize, Cell<'a>)> {
    let place = columns.iter().position(|column| column.name == field)?;
    Some((place, cell_of(&columns[place], value)?))
}

/// The value as the column holds it; `None` when it is of another kind.
fn cell_of<'a>(column: &Column, value: &'a Value) -> Option<Cell<'a>> {
    match (column.kind, value) {
        (_, Value::Null) => Some(Cell::Null),
        (ColumnKind::Text, Value::Text(text)) | (ColumnKind::Json, Value::Json(text)) => {
            Some(Cell::Text(Cow::Borrowed(text)))
        }
        (ColumnKind::Integer, Value::Int(number)) => Some(Cell::Integer(*number)),
        (ColumnKind::Real, Value::Float(number)) => Some(Cell::Real(*number)),
        (ColumnKind::Boolean, Value::Bool(flag)) => Some(Cell::Integer(i64::from(*flag))),
        (ColumnKind::Time, Value::Time { at_us, .. }) => Some(Cell::Integer(*at_us)),
        (ColumnKind::Reference(_), Value::Object(Reference::Key(key))) => {
            Some(Cell::Integer(key.0))
        }
        _ => None,
    }
}

fn value_in(column: &Column, cell: Cell<'_>, kind: Option<FieldKind>) -> Value {
    match (column.kind, cell) {
        (ColumnKind::Json, Cell::Text(text)) => Value::Json(text.into_owned()),
        (_, Cell::Text(text)) => Value::Text(text.into_owned()),
        (_, Cell::Bytes(bytes)) => Value::Text(String::from_utf8_lossy(&bytes).into_owned()),
        (ColumnKind::Boolean, Cell::Integer(flag)) => Value::Bool(flag != 0),
        (ColumnKind::Time, Cell::Integer(at_us)) => Value::Time {
            at_us,
            clamped: kind == Some(FieldKind::Clamped),
        },
        (ColumnKind::Reference(_), Cell::Integer(key)) => Value::Object(Reference::Key(Key(key))),
        (ColumnKind::Real, Cell::Integer(number)) => Value::Float(number as f64),
        (_, Cell::Integer(number)) => Value::Int(number),
        (_, Cell::Real(number)) => Value::Float(number),
        (_, Cell::Null) => Value::Null,
    }
}

/// What has to be noted beside a value so that it reads back as what it was.
fn kind_of(value: &Value, in_column: bool) -> Option<FieldKind> {
    match value {
        Value::Time { clamped: true, .. } => Some(FieldKind::Clamped),
        _ if in_column => None,
        Value::Time { clamped: false, .. } => Some(FieldKind::Time),
        Value::Object(_) => Some(FieldKind::Key),
        Value::Json(text) if !text.starts_with(['{', '[']) => Some(FieldKind::Json),
        _ => None,
    }
}

/// A value as it stands in JSON.
struct Raw<'a>(&'a Value);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Json(text) => serde_json::from_str::<&RawValue>(text)
                .map_err(S::Error::custom)?
                .serialize(serializer),
            Value::Null => serializer.serialize_unit(),
            Value::Bool(flag) => serializer.serialize_bool(*flag),
            Value::Int(number) | Value::Time { at_us: number, .. } => {
                serializer.serialize_i64(*number)
            }
            Value::Float(number) => serializer.serialize_f64(*number),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Object(Reference::Key(key)) => key.serialize(serializer),
            // References are resolved before a row is written; another form is kept readable.
            Value::Object(reference) => reference.serialize(serializer),
        }
    }
}

/// The value of a field that stands in JSON.
pub(crate) fn value_of(
    raw: &RawValue,
    kind: Option<FieldKind>,
) -> Result<Value, serde_json::Error> {
    let text = raw.get();
    Ok(match kind {
        Some(FieldKind::Json) => Value::Json(text.to_owned()),
        Some(FieldKind::Time | FieldKind::Clamped) => Value::Time {
            at_us: serde_json::from_str(text)?,
            clamped: kind == Some(FieldKind::Clamped),
        },
        Some(FieldKind::Key) => match serde_json::from_str(text) {
            Ok(key) => Value::Object(Reference::Key(Key(key))),
            Err(_) => Value::Object(serde_json::from_str(text)?),
        },
        Some(FieldKind::Integer) | None => match text.as_bytes().first() {
            Some(b'{' | b'[') => Value::Json(text.to_owned()),
            Some(b'"') => Value::Text(serde_json::from_str(text)?),
            Some(b't' | b'f') => Value::Bool(serde_json::from_str(text)?),
            Some(b'n') | None => Value::Null,
            Some(_) => match text.parse::<i64>() {
                Ok(number) => Value::Int(number),
                // The standard library reads every digit; the JSON reader rounds.
                Err(_) => text.parse().map_or(Value::Null, Value::Float),
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            any::<f64>().prop_map(Value::Float),
            "\\PC{0,12}|a\0b|\"quoted\" 'text'".prop_map(Value::Text),
            (any::<i64>(), any::<bool>())
                .prop_map(|(at_us, clamped)| Value::Time { at_us, clamped }),
            prop_oneof![
                Just("[1,2]"),
                Just("{\"a\": null}"),
                Just("5"),
                Just("\"x\""),
                Just("null"),
                Just("not json"),
                Just("[1,\n2]"),
                Just(" [1]")
            ]
            .prop_map(|text| Value::Json(text.into())),
            (1_i64..9).prop_map(|key| Value::Object(Reference::Key(Key(key)))),
        ]
    }

    fn any_group() -> impl Strategy<Value = GroupState> {
        let field = prop_oneof![
            Just("text"),
            Just("author"),
            Just("created_us"),
            Just("likes_count"),
            Just("longitude"),
            Just("media"),
            Just("is_sensitive"),
            Just("pinned"),
            Just("o'hara \"x\""),
        ];
        let fields = prop::collection::btree_map(field.prop_map(Name::from), any_value(), 0..9);
        (fields, any::<i64>(), any::<i64>(), any::<bool>()).prop_map(|(fields, at_us, log, old)| {
            let fields: BTreeMap<Name, Value> = fields
                .into_iter()
                .map(|(field, value)| {
                    let value = normalise(Table::Statuses, &field, value);
                    (field, value)
                })
                .collect();
            let older = fields
                .keys()
                .take(usize::from(old))
                .map(|field| (field.clone(), Stamp { at_us: 1, log: 2 }))
                .collect();
            GroupState {
                newest: Stamp { at_us, log },
                fields,
                older,
            }
        })
    }

    proptest! {
        #[test]
        fn a_row_reads_back_as_the_groups_it_was_written_from(group in any_group()) {
            for table in [Table::Statuses, Table::Objects] {
                let group = GroupState {
                    fields: group
                        .fields
                        .clone()
                        .into_iter()
                        .map(|(field, value)| {
                            let value = normalise(table, &field, value);
                            (field, value)
                        })
                        .collect(),
                    ..group.clone()
                };
                let groups = Groups::from([("content".into(), group)]);
                let mut lists = FieldLists::default();
                let observed = encode_observed(table, &groups, &mut lists).unwrap();
                let record = encode(table, &groups, &mut lists).unwrap();
                prop_assert_eq!(&record.observed, &observed);
                prop_assert_eq!(decode(table, record, &lists).unwrap(), groups.clone());
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_straight_equals_what_goes_the_long_way(
            groups in prop::collection::vec(any_group(), 1..3),
            values in prop::collection::vec(any_value(), 1..4),
        ) {
            let stamp = Stamp { at_us: 7, log: 2 };
            let names = ["text", "media", "likes_count", "pinned"];
            // Also values that are not in their stored form yet.
            let fields = names.iter().zip(values);
            let raw = Group {
                name: "raw".into(),
                fields: fields.map(|(name, value)| ((*name).into(), value)).collect(),
            };
            let groups: Vec<Group> = groups
                .into_iter()
                .zip(["content", "counts"])
                .map(|(group, name)| Group {
                    name: name.into(),
                    fields: group.fields.into_iter().collect(),
                })
                .chain([raw])
                .collect();
            for table in [Table::Statuses, Table::Objects] {
                let values = || groups.iter().flat_map(|group| &group.fields);
                let pointed: Vec<i64> = values()
                    .filter_map(|(_, value)| match value {
                        Value::Object(Reference::Key(key)) => Some(key.0),
                        _ => None,
                    })
                    .collect();
                let long = groups.iter().map(|group| {
                    let fields = group.fields.iter().map(|(field, value)| {
                        (field.clone(), normalise(table, field, value.clone()))
                    });
                    (group.name.clone(), GroupState::observed(fields, stamp))
                });
                let long: Groups = long.collect();
                let mut lists = FieldLists::default();
                let expected = encode(table, &long, &mut lists).unwrap();
                let straight =
                    encode_first(table, &groups, &pointed, stamp, &mut lists).unwrap();
                if let Some(straight) = straight {
                    prop_assert_eq!(straight, expected);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_history_reads_back_as_the_values_it_was_written_from(group in any_group()) {
            let fields = group.fields.iter().map(|(field, value)| (&**field, value));
            let json = fields_json(fields).unwrap();
            prop_assert_eq!(fields_of(&json).unwrap(), group.fields);
        }
    }

    #[test]
    fn a_history_names_kinds_that_cannot_be_seen() {
        let fields = [
            ("author", Value::Object(Reference::Key(Key(7)))),
            (
                "created_us",
                Value::Time {
                    at_us: 5,
                    clamped: false,
                },
            ),
            (
                "joined",
                Value::Time {
                    at_us: 6,
                    clamped: false,
                },
            ),
            ("reply_to", Value::Int(8)),
        ];
        let json = fields_json(fields.iter().map(|(field, value)| (*field, value))).unwrap();
        assert_eq!(
            json,
            r#"{"":{"joined":"time","reply_to":"integer"},"author":7,"created_us":5,"joined":6,"reply_to":8}"#
        );
    }

    #[test]
    fn a_value_of_the_wrong_kind_goes_to_extra() {
        let stamp = Stamp { at_us: 7, log: 1 };
        let state = GroupState::observed(
            [
                ("likes_count".into(), Value::Text("many".into())),
                ("text".into(), Value::Text("hello".into())),
            ],
            stamp,
        );
        let groups = Groups::from([("content".into(), state)]);
        let record = encode(Table::Statuses, &groups, &mut FieldLists::default()).unwrap();
        assert_eq!(record.extra.as_deref(), Some("{\"likes_count\":\"many\"}"));
        assert!(record.cells.contains(&Cell::Text("hello".into())));
        assert_eq!(newest_stamp(&record.observed).unwrap(), stamp);
    }
}
