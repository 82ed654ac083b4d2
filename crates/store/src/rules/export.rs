//! Reading rows for an export: one view of the file, one row at a time.

use super::names::{Names, best_first, id_text};
use super::times::Times;
use super::work::field_lists;
use crate::cell::{Cell, Row, cells};
use crate::database::Database;
use crate::error::unreadable;
use crate::export::{
    ExportError, ExportTable, Exported, Field, Iso, Kind, KindObject, KindWord, Named, Observed,
    ObservedGroup, Part, PartForm, RowSink, Selection, iso, log_in_export, observed_json,
    on_one_line, usual_kind,
};
use crate::observed::{self, FieldKind, FieldLists};
use crate::{StoreError, StoreErrorKind, record};
use kittiwake_model::catalogue::Column;
use kittiwake_model::{ColumnKind, Key, Name, Reference, Stamp, Table, Value, WorldTime};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

pub(crate) const ALL_IDS: &str = concat!(
    "SELECT key, network, type, alias, host, id, movable, first_seen_us, last_seen_us, rowid
     FROM ids ORDER BY key, ",
    best_first!()
);

/// Hands all rows of the selection to the sink.
pub(crate) fn run(
    database: &dyn Database,
    selection: &Selection,
    sink: &mut dyn RowSink,
) -> Result<Exported, ExportError> {
    let mut exporter = Exporter {
        lists: field_lists(database)?,
        database,
        names: Names::new(database),
        since_us: selection.since.map(WorldTime::micros),
        marks_empty_text: sink.hides_empty_text(),
        keeps_calls: sink.keeps_calls(),
        times: Times::load(database)?,
    };
    let mut counted = Exported::new();
    for table in &selection.tables {
        sink.begin(*table)?;
        let rows = match (table, table.objects()) {
            (ExportTable::Ids, _) => exporter.ids(sink)?,
            (_, Some(objects)) => exporter.objects(objects, sink)?,
            (_, None) => exporter.parts(*table, sink)?,
        };
        counted.insert(*table, rows);
    }
    sink.finish()?;
    Ok(counted)
}

fn corrupt(message: String) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, message)
}

/// The columns of a table in the order of its parts; ?1 is the earliest time, or null.
pub(crate) fn sql_of(table: ExportTable) -> &'static str {
    match table {
        ExportTable::UserRelations => {
            "SELECT source, target, first_seen_us, last_seen_us FROM user_relations
             WHERE ?1 IS NULL OR last_seen_us >= ?1 ORDER BY source, target"
        }
        ExportTable::UserTags => {
            "SELECT \"user\", tag, first_seen_us, last_seen_us FROM user_tags
             WHERE ?1 IS NULL OR last_seen_us >= ?1 ORDER BY \"user\", tag"
        }
        ExportTable::Links => {
            "SELECT from_key, kind, to_key, at_us, first_seen_us, last_seen_us FROM links
             WHERE ?1 IS NULL OR last_seen_us >= ?1 ORDER BY from_key, kind, to_key"
        }
        ExportTable::InvalidUsers => {
            "SELECT key, reason, from_us, until_us FROM invalid_users
             WHERE ?1 IS NULL OR from_us >= ?1 OR until_us >= ?1 ORDER BY key, from_us"
        }
        ExportTable::InvalidRelations => {
            "SELECT source, target, first_seen_us, last_seen_us, vanished_us
             FROM invalid_relations WHERE ?1 IS NULL OR vanished_us >= ?1 ORDER BY source, target"
        }
        ExportTable::Counts => {
            "SELECT key, observed_us, log, counts FROM counts
             WHERE ?1 IS NULL OR observed_us >= ?1 ORDER BY key, observed_us, log, counts"
        }
        ExportTable::Versions => {
            "SELECT key, grp, observed_us, log, fields FROM versions
             WHERE ?1 IS NULL OR observed_us >= ?1 ORDER BY key, grp, observed_us, log, fields"
        }
        ExportTable::Outcomes => {
            "SELECT key, query, outcome, reason, at_us, log, times FROM outcomes
             WHERE ?1 IS NULL OR at_us >= ?1 ORDER BY key, query"
        }
        ExportTable::QueryLog => {
            "SELECT id, query, subjects, target, cursor, credential, node, status, outcome, reason,
                    at_us, scheduled_us, sent_us, answered_us, committed_us, budgets, rank_us,
                    seed_us, bytes, mended, rows_new, rows_changed, definition, read_us
             FROM query_log WHERE ?1 IS NULL OR at_us >= ?1 ORDER BY id"
        }
        ExportTable::Runs => {
            "SELECT id, network, host, definition, clock, settings, started_us, ended_us, end_reason
             FROM runs WHERE ?1 IS NULL OR started_us >= ?1 OR ended_us >= ?1 ORDER BY id"
        }
        ExportTable::Ids
        | ExportTable::Users
        | ExportTable::Tags
        | ExportTable::Statuses
        | ExportTable::Comments
        | ExportTable::Objects => "",
    }
}

pub(crate) fn objects_sql(table: Table) -> String {
    let columns: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
    let columns = [&columns[..], &["extra", "observed", "key"]]
        .concat()
        .join(", ");
    let deleted = match table {
        Table::Statuses => "deleted_us",
        _ => "NULL",
    };
    // A comment that is a post as well was observed when the post was.
    let observed_elsewhere = match table {
        Table::Comments => "(SELECT observed FROM statuses WHERE statuses.key = comments.key)",
        _ => "NULL",
    };
    format!(
        "SELECT {columns}, {deleted}, {observed_elsewhere} FROM {} ORDER BY key",
        table.name()
    )
}

type Groups = BTreeMap<Name, ObservedGroup>;
type FieldKinds = BTreeMap<Name, FieldKind>;

struct Exporter<'d> {
    database: &'d dyn Database,
    lists: FieldLists,
    names: Names<'d>,
    since_us: Option<i64>,
    marks_empty_text: bool,
    keeps_calls: bool,
    /// What the crawl has put off.
    times: Times,
}

impl Exporter<'_> {
    /// Hands rows to a sink, one by one; counts those that it was given.
    fn each(
        &mut self,
        sql: &str,
        cells: &[Cell<'_>],
        mut hand_over: impl FnMut(&mut Self, &dyn Row) -> Result<bool, ExportError>,
    ) -> Result<u64, ExportError> {
        let database = self.database;
        let mut count = 0;
        let mut failure = None;
        database.stream(sql, cells, &mut |row| {
            match hand_over(self, row) {
                Ok(is_given) => count += u64::from(is_given),
                Err(error) => {
                    failure = Some(error);
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        failure.map_or(Ok(count), Err)
    }

    /// The number of a call, as it is wanted.
    const fn call(&self, log: i64) -> i64 {
        if self.keeps_calls {
            log
        } else {
            log_in_export(log)
        }
    }

    /// Every id of every object.
    fn ids(&mut self, sink: &mut dyn RowSink) -> Result<u64, ExportError> {
        let (mut current, mut best) = (None, String::new());
        self.each(ALL_IDS, &[], |this, row| {
            let key: i64 = row.get(0)?;
            if current != Some(key) {
                current = Some(key);
                best = id_text(row, 3)?;
            }
            let (first_seen_us, last_seen_us) = this.seen(row)?;
            if this
                .since_us
                .is_some_and(|since_us| last_seen_us < since_us)
            {
                return Ok(false);
            }
            sink.row(&[
                plain(row, 1)?,
                plain(row, 2)?,
                Field::text(&*best),
                plain(row, 3)?,
                plain(row, 4)?,
                plain(row, 5)?,
                Field::Boolean(row.get(6)?),
                Field::text(iso(first_seen_us)),
                Field::text(iso(last_seen_us)),
            ])?;
            Ok(true)
        })
    }

    /// First and last sight of an id, also where its row does not have them yet.
    fn seen(&self, row: &dyn Row) -> Result<(i64, i64), StoreError> {
        match self.times.sightings.get(&row.get(9)?) {
            Some(seen) => Ok(*seen),
            None => Ok((row.get(7)?, row.get(8)?)),
        }
    }

    /// A table whose rows are made of parts.
    fn parts(&mut self, table: ExportTable, sink: &mut dyn RowSink) -> Result<u64, ExportError> {
        let since_us = self.since_us;
        self.each(sql_of(table), cells![since_us], |this, row| {
            let mut fields = Vec::new();
            for (place, part) in table.parts().iter().enumerate() {
                this.part(*part, row, place, &mut fields)?;
            }
            sink.row(&fields)?;
            Ok(true)
        })
    }

    fn part<'r>(
        &mut self,
        part: Part,
        row: &'r dyn Row,
        place: usize,
        fields: &mut Vec<Field<'r>>,
    ) -> Result<(), StoreError> {
        match part.form {
            PartForm::Object => {
                let named = self.names.of(row.get(place)?)?;
                fields.push(Field::text(named.network.to_string()));
                fields.push(Field::text(named.kind.to_string()));
                fields.push(Field::text(named.id.clone()));
            }
            PartForm::Plain => fields.push(plain(row, place)?),
            PartForm::Time => fields.push(time(row, place)?),
            PartForm::Json => fields.push(json(row, place)?),
            PartForm::Log => fields.push(Field::Integer(self.call(row.get(place)?))),
            PartForm::History => {
                let (values, kinds) = self.history(row.get(0)?, &text(row, place)?)?;
                fields.push(Field::Json(values.into()));
                fields.push(kinds.map_or(Field::Null, |kinds| Field::Json(kinds.into())));
            }
            PartForm::Objects => {
                let keys: Vec<i64> = serde_json::from_str(&text(row, place)?)
                    .map_err(|error| corrupt(format!("a list of keys cannot be read: {error}")))?;
                let mut ids = Vec::with_capacity(keys.len());
                for key in keys {
                    ids.push(self.names.of(key)?.id.clone());
                }
                fields.push(Field::Json(json_of(&ids)?.into()));
            }
        }
        Ok(())
    }

    /// Fields and values as JSON, and the kinds of those that JSON cannot show.
    fn history(&mut self, key: i64, stored: &str) -> Result<(String, Option<String>), StoreError> {
        let own = self.names.of(key)?;
        let fields = record::fields_of(stored).map_err(|error| unreadable(key, &error))?;
        let (mut values, mut kinds) = (BTreeMap::new(), BTreeMap::new());
        for (field, value) in fields {
            let (json, kind) = self.free_value(&own, &value)?;
            kinds.extend(kind.map(|kind| (field.clone(), kind)));
            values.insert(field, json);
        }
        let kinds = if kinds.is_empty() {
            None
        } else {
            Some(json_of(&kinds)?)
        };
        Ok((json_of(&values)?, kinds))
    }

    /// A value that is shown as JSON.
    fn free_value(
        &mut self,
        own: &Named,
        value: &Value,
    ) -> Result<(Box<RawValue>, Option<Kind>), StoreError> {
        let mut kind = None;
        let json = match value {
            Value::Time { at_us, clamped } => {
                kind = Some(Kind::Word(if *clamped {
                    KindWord::Clamped
                } else {
                    KindWord::Time
                }));
                json_of(&iso(*at_us))?
            }
            Value::Object(Reference::Key(Key(key))) => {
                let named = self.names.of(*key)?;
                kind = Some(Kind::Object(object_kind(own, &named)));
                json_of(&named.id)?
            }
            Value::Json(text) => {
                if !text.starts_with(['{', '[']) {
                    kind = Some(Kind::Word(KindWord::Json));
                }
                on_one_line(text)
                    .ok_or_else(|| corrupt(format!("{text:?} is no JSON")))?
                    .into_owned()
            }
            Value::Null => "null".to_owned(),
            Value::Bool(flag) => json_of(flag)?,
            Value::Int(number) => json_of(number)?,
            Value::Float(number) => json_of(number)?,
            Value::Text(text) => json_of(text)?,
            Value::Object(reference) => json_of(reference)?,
        };
        let json = RawValue::from_string(json).map_err(|error| corrupt(error.to_string()))?;
        Ok((json, kind))
    }

    /// A table of objects.
    fn objects(&mut self, table: Table, sink: &mut dyn RowSink) -> Result<u64, ExportError> {
        self.each(&objects_sql(table), &[], |this, row| {
            let is_wanted = this.is_wanted(table, row)?;
            if is_wanted {
                sink.row(&this.object(table, row)?)?;
            }
            Ok(is_wanted)
        })
    }

    /// Whether anything of the object was observed, or it was seen to be gone, since then.
    fn is_wanted(&self, table: Table, row: &dyn Row) -> Result<bool, StoreError> {
        let Some(since_us) = self.since_us else {
            return Ok(true);
        };
        let after_columns = table.columns().len();
        let deleted_us: Option<i64> = row.get(after_columns + 3)?;
        if deleted_us.is_some_and(|at_us| at_us >= since_us) {
            return Ok(true);
        }
        for place in [after_columns + 1, after_columns + 4] {
            let observed: Option<String> = row.get(place)?;
            let Some(observed) = observed else {
                continue;
            };
            let key = row.get(after_columns + 2)?;
            let observed = self.up_to_date(key, observed.into())?;
            let stamp = record::newest_stamp(&observed).map_err(|error| unreadable(key, &error))?;
            if stamp.at_us >= since_us {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn object<'r>(&mut self, table: Table, row: &'r dyn Row) -> Result<Vec<Field<'r>>, StoreError> {
        let columns = table.columns();
        let key: i64 = row.get(columns.len() + 2)?;
        let own = self.names.of(key)?;
        let observed = self.up_to_date(key, text(row, columns.len() + 1)?)?;
        let (mut groups, kinds) = self
            .groups(&observed)
            .map_err(|error| unreadable(key, &error))?;
        let mut fields = vec![
            Field::text(own.network.to_string()),
            Field::text(own.kind.to_string()),
            Field::text(own.id.clone()),
        ];
        for (place, column) in columns.iter().enumerate() {
            let (field, kind) = self.column(&own, column, row, place)?;
            if let Some(kind) = kind {
                mark(&mut groups, column.name, &kind);
            }
            fields.push(field);
        }
        if table == Table::Statuses {
            fields.push(time(row, columns.len() + 3)?);
        }
        let extra: Option<String> = row.get(columns.len())?;
        fields.push(match extra {
            Some(extra) => Field::Json(self.extra(key, &own, &extra, &kinds, &mut groups)?.into()),
            None => Field::Null,
        });
        let observed = observed_json(&groups).map_err(|error| unreadable(key, &error))?;
        fields.push(Field::Json(observed.into()));
        Ok(fields)
    }

    /// The column `observed` with the times that are not in the row yet.
    fn up_to_date<'r>(&self, key: i64, observed: Cow<'r, str>) -> Result<Cow<'r, str>, StoreError> {
        let Some(restamp) = self.times.restamps.get(&key) else {
            return Ok(observed);
        };
        let restamped = record::restamped(&observed, &restamp.names, restamp.stamp)
            .map_err(|error| unreadable(key, &error))?;
        Ok(restamped.map_or(observed, Cow::Owned))
    }

    /// When each group was observed and what belongs to it; and the kinds of fields as they are
    /// stored, of which the groups have only clamped times so far.
    fn groups(&self, observed: &str) -> Result<(Groups, FieldKinds), serde_json::Error> {
        let shown = |stamp: Stamp| Observed {
            at: Iso(stamp.at_us),
            log: self.call(stamp.log),
        };
        let (mut groups, mut stored_kinds) = (Groups::new(), FieldKinds::new());
        for (name, group) in observed::from_text(observed)? {
            let Observed { at, log } = shown(group.newest);
            let older = group.older.iter();
            let clamped = group.kinds.iter();
            let clamped = clamped.filter(|(_, kind)| **kind == FieldKind::Clamped);
            let shown_group = ObservedGroup {
                at,
                log,
                fields: group.fields(&self.lists)?.to_vec(),
                older: older
                    .map(|(field, stamp)| (field.clone(), shown(*stamp)))
                    .collect(),
                kinds: clamped
                    .map(|(field, _)| (field.clone(), Kind::Word(KindWord::Clamped)))
                    .collect(),
            };
            groups.insert(name, shown_group);
            stored_kinds.extend(group.kinds);
        }
        Ok((groups, stored_kinds))
    }

    /// A value in its column, and what has to be said about it.
    fn column<'r>(
        &mut self,
        own: &Named,
        column: &Column,
        row: &'r dyn Row,
        place: usize,
    ) -> Result<(Field<'r>, Option<Kind>), StoreError> {
        let value = row.cell(place)?;
        if value == Cell::Null {
            return Ok((Field::Null, None));
        }
        Ok(match (column.kind, value) {
            (ColumnKind::Time, Cell::Integer(at_us)) => (Field::text(iso(at_us)), None),
            (ColumnKind::Boolean, Cell::Integer(flag)) => (Field::Boolean(flag != 0), None),
            (ColumnKind::Json, _) => {
                let field = json(row, place)?;
                let is_null = matches!(&field, Field::Json(text) if text == "null");
                (field, is_null.then_some(Kind::Word(KindWord::Json)))
            }
            (ColumnKind::Reference(table), Cell::Integer(key)) => {
                let named = self.names.of(key)?;
                let kind = object_kind(own, &named);
                let is_usual = kind.network.is_none() && &*kind.kind == usual_kind(table);
                let kind = (!is_usual).then_some(Kind::Object(kind));
                (Field::text(named.id.clone()), kind)
            }
            (_, Cell::Text(text)) if text.is_empty() && self.marks_empty_text => {
                (Field::text(""), Some(Kind::Word(KindWord::Empty)))
            }
            _ => (plain(row, place)?, None),
        })
    }

    /// The fields without a column: times and references as everywhere else.
    fn extra(
        &mut self,
        key: i64,
        own: &Named,
        extra: &str,
        kinds: &FieldKinds,
        groups: &mut Groups,
    ) -> Result<String, StoreError> {
        let stored: BTreeMap<Name, &RawValue> =
            serde_json::from_str(extra).map_err(|error| unreadable(key, &error))?;
        let mut shown = BTreeMap::new();
        for (field, raw) in stored {
            let value = record::value_of(raw, kinds.get(&field).copied())
                .map_err(|error| unreadable(key, &error))?;
            let (json, kind) = self.free_value(own, &value)?;
            if let Some(kind) = kind {
                mark(groups, &field, &kind);
            }
            shown.insert(field, json);
        }
        json_of(&shown)
    }
}

fn object_kind(own: &Named, named: &Named) -> KindObject {
    KindObject {
        network: (named.network != own.network).then(|| named.network.clone()),
        kind: named.kind.clone(),
    }
}

/// Notes a kind in every group that has the field.
fn mark(groups: &mut Groups, field: &str, kind: &Kind) {
    for group in groups.values_mut() {
        if group.fields.iter().any(|known| &**known == field) {
            group.kinds.insert(field.into(), kind.clone());
        }
    }
}

fn json_of(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| corrupt(error.to_string()))
}

/// A text; bytes that are none are shown as well as can be.
pub(super) fn text(row: &dyn Row, place: usize) -> Result<Cow<'_, str>, StoreError> {
    Ok(match row.cell(place)? {
        Cell::Text(text) => text,
        other => other.into_text().unwrap_or_default().into(),
    })
}

fn plain(row: &dyn Row, place: usize) -> Result<Field<'_>, StoreError> {
    Ok(match row.cell(place)? {
        Cell::Integer(number) => Field::Integer(number),
        Cell::Real(number) if number.is_finite() => Field::Real(number),
        Cell::Null | Cell::Real(_) => Field::Null,
        Cell::Text(text) => Field::Text(text),
        Cell::Bytes(bytes) => Field::text(String::from_utf8_lossy(&bytes).into_owned()),
    })
}

fn time(row: &dyn Row, place: usize) -> Result<Field<'_>, StoreError> {
    let at_us: Option<i64> = row.get(place)?;
    Ok(at_us.map_or(Field::Null, |at_us| Field::text(iso(at_us))))
}

/// JSON that was written by this program; what is none after all is shown as text.
fn json(row: &dyn Row, place: usize) -> Result<Field<'_>, StoreError> {
    if row.cell(place)? == Cell::Null {
        return Ok(Field::Null);
    }
    let text = text(row, place)?;
    let line = on_one_line(&text).map(Cow::into_owned);
    Ok(match line {
        Some(line) if line == *text => Field::Json(text),
        Some(line) => Field::Json(line.into()),
        None => Field::Json(json_of(&text)?.into()),
    })
}
