//! Writing what was observed of objects.

use super::error::unreadable;
use super::statements::Held;
use super::work::Work;
use super::written::Bearings;
use crate::StoreError;
use crate::record::{self, Cell, Groups, Record};
use kittiwake_model::merge::Overruled;
use kittiwake_model::{GroupState, Key, Name, Object, Reference, Stamp, Standing, Table, Value};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Row, ToSql, params_from_iter};
use std::collections::{BTreeMap, HashMap};

/// The group whose history is a time series of its own.
const COUNTS: &str = "counts";

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

fn cell_in(row: &Row<'_>, place: usize) -> rusqlite::Result<Cell<'static>> {
    Ok(match row.get_ref(place)? {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            Cell::Text(String::from_utf8_lossy(text).into_owned().into())
        }
    })
}

impl<'a> Work<'a, '_> {
    /// Writes all objects of a commit; `keys` are theirs.
    pub(super) fn write_objects(
        &mut self,
        objects: &'a [Object],
        keys: &[i64],
    ) -> Result<(), StoreError> {
        // One answer often repeats an object word for word: the author beside every post.
        let mut written: HashMap<i64, &[kittiwake_model::Group]> = HashMap::new();
        for (object, key) in objects.iter().zip(keys) {
            let key = self.memory.follow(*key);
            if object.standing == Standing::Present && written.get(&key) == Some(&&*object.groups) {
                continue;
            }
            self.learn_table(
                &object.identity.network,
                &object.identity.kind,
                object.table,
            )?;
            let merges = self.report.merged.len();
            let mut groups = self.observed_groups(object.table, &object.groups, keys)?;
            // What a field names may have proved two keys to be one.
            let key = self.memory.follow(key);
            if self.report.merged.len() > merges {
                self.follow_references(&mut groups);
            }
            // What nobody has met before cannot have been gone before.
            let is_new = self.fresh.contains_key(&key);
            // Those who are gone are still named by others: only a description shows somebody.
            let is_shown = !groups.is_empty();
            if is_shown {
                self.write_groups(object.table, key, groups)?;
            } else {
                self.mark_pending(key)?;
            }
            if object.standing != Standing::Present || (is_shown && !is_new) {
                self.write_standing(object.table, key, object.standing)?;
            }
            if object.standing == Standing::Present {
                written.insert(key, &object.groups);
            }
        }
        Ok(())
    }

    /// The groups with every reference resolved and every value in its stored form.
    fn observed_groups(
        &mut self,
        table: Table,
        groups: &'a [kittiwake_model::Group],
        keys: &[i64],
    ) -> Result<Groups, StoreError> {
        let mut observed = Groups::new();
        for group in groups {
            let mut fields = BTreeMap::new();
            for (field, value) in &group.fields {
                let value = match value {
                    Value::Object(reference) => {
                        Value::Object(Reference::Key(Key(self.key_of(reference, keys)?)))
                    }
                    other => record::normalise(table, field, other.clone()),
                };
                fields.insert(field.clone(), value);
            }
            let state = GroupState {
                newest: self.stamp,
                fields,
                older: BTreeMap::new(),
            };
            match observed.entry(group.name.clone()) {
                std::collections::btree_map::Entry::Vacant(place) => {
                    place.insert(state);
                }
                std::collections::btree_map::Entry::Occupied(mut place) => {
                    place.get_mut().merge(state);
                }
            }
        }
        Ok(observed)
    }

    pub(super) fn read_groups(&self, table: Table, key: i64) -> Result<Option<Groups>, StoreError> {
        let columns = table.columns().len();
        let mut statement = self.statements.get(Held::SelectObject(table))?;
        let mut rows = statement.query([key])?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        let mut cells = Vec::with_capacity(columns);
        for place in 0..columns {
            cells.push(cell_in(row, place)?);
        }
        let record = Record {
            cells,
            extra: row.get(columns)?,
            observed: row.get(columns + 1)?,
        };
        let mut groups = record::decode(table, record, &self.memory.field_lists)
            .map_err(|error| unreadable(key, &error))?;
        // Columns are rewritten when keys are merged; what is inside JSON is followed here.
        self.follow_references(&mut groups);
        Ok(Some(groups))
    }

    fn follow_references(&self, groups: &mut Groups) {
        if self.memory.merged.is_empty() {
            return;
        }
        for group in groups.values_mut() {
            for value in group.fields.values_mut() {
                if let Value::Object(Reference::Key(key)) = value {
                    *key = Key(self.memory.follow(key.0));
                }
            }
        }
    }

    /// Merges an observation into the object's row.
    pub(super) fn write_groups(
        &mut self,
        table: Table,
        key: i64,
        observed: Groups,
    ) -> Result<(), StoreError> {
        let fresh = self.fresh.get(&key).copied();
        let known = match fresh {
            Some(fresh) if !fresh.is_described => None,
            _ => self.read_groups(table, key)?,
        };
        let Some(mut groups) = known else {
            let after = Bearings::of(table, &observed);
            self.put_groups(table, key, &observed)?;
            if fresh.is_none_or(|fresh| fresh.is_pending) {
                self.execute("DELETE FROM pending WHERE key = ?1", [key])?;
            }
            if let Some(fresh) = self.fresh.get_mut(&key) {
                fresh.is_described = true;
                fresh.is_pending = false;
            }
            self.report.rows_new += 1;
            let is_unmet = fresh.is_some_and(|fresh| !fresh.is_pending);
            return self.row_written(table, key, None, after, is_unmet);
        };
        let before = Bearings::of(table, &groups);
        let (changed, values_changed) = self.merge_groups(key, &mut groups, observed)?;
        if values_changed {
            self.put_groups(table, key, &groups)?;
            self.report.rows_changed += 1;
            let after = Bearings::of(table, &groups);
            self.row_written(table, key, Some(before), after, false)?;
        } else if changed {
            let lists = &mut self.memory.field_lists;
            let observed = record::encode_observed(table, &groups, lists)
                .map_err(|error| unreadable(key, &error))?;
            self.execute_held(Held::RestampObject(table), (observed, key))?;
            self.save_field_lists()?;
        }
        Ok(())
    }

    /// Merges group by group and keeps what was overruled; says whether anything, and whether a
    /// value changed.
    pub(super) fn merge_groups(
        &self,
        key: i64,
        groups: &mut Groups,
        observed: Groups,
    ) -> Result<(bool, bool), StoreError> {
        let (mut changed, mut values_changed) = (false, false);
        for (name, state) in observed {
            let Some(known) = groups.get_mut(&name) else {
                values_changed = true;
                groups.insert(name, state);
                continue;
            };
            let merged = known.merge(state);
            changed |= merged.changed;
            values_changed |= merged.values_changed;
            self.keep_overruled(key, &name, &merged.overruled)?;
        }
        Ok((changed, values_changed))
    }

    pub(super) fn put_groups(
        &mut self,
        table: Table,
        key: i64,
        groups: &Groups,
    ) -> Result<(), StoreError> {
        let record = record::encode(table, groups, &mut self.memory.field_lists)
            .map_err(|error| unreadable(key, &error))?;
        let mut cells = record.cells;
        cells.push(
            record
                .extra
                .map_or(Cell::Null, |extra| Cell::Text(extra.into())),
        );
        cells.push(Cell::Text(record.observed.into()));
        cells.push(Cell::Integer(key));
        self.execute_held(Held::ReplaceObject(table), params_from_iter(cells))?;
        self.save_field_lists()
    }

    /// Writes the lists of fields that the rows just written are the first to have.
    fn save_field_lists(&mut self) -> Result<(), StoreError> {
        if !self.memory.field_lists.has_unsaved() {
            return Ok(());
        }
        for number in self.memory.field_lists.take_unsaved() {
            let fields = self.memory.field_lists.fields(number);
            let fields = serde_json::to_string(&fields)
                .map_err(|error| StoreError::invalid(error.to_string()))?;
            self.execute(
                "INSERT INTO field_lists(id, fields) VALUES (?1, ?2)",
                (number, fields),
            )?;
        }
        Ok(())
    }

    /// Values that lost stay readable: counts as a time series, others as versions.
    fn keep_overruled(
        &self,
        key: i64,
        group: &Name,
        overruled: &[Overruled],
    ) -> Result<(), StoreError> {
        let mut by_stamp: BTreeMap<Stamp, Vec<(&str, &Value)>> = BTreeMap::new();
        for lost in overruled {
            by_stamp
                .entry(lost.stamp)
                .or_default()
                .push((&lost.field, &lost.value));
        }
        for (stamp, fields) in by_stamp {
            let fields = record::fields_json(fields).map_err(|error| unreadable(key, &error))?;
            if &**group == COUNTS {
                self.execute(
                    "INSERT OR IGNORE INTO counts(key, observed_us, log, counts)
                     VALUES (?1, ?2, ?3, ?4)",
                    (key, stamp.at_us, stamp.log, fields),
                )?;
            } else {
                self.execute(
                    "INSERT OR IGNORE INTO versions(key, grp, observed_us, log, fields)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                    (key, &**group, stamp.at_us, stamp.log, fields),
                )?;
            }
        }
        Ok(())
    }

    /// Whether the object has a row in its table.
    pub(super) fn is_described(&self, table: Table, key: i64) -> Result<bool, StoreError> {
        let sql = match table {
            Table::Users => "SELECT 1 FROM users WHERE key = ?1",
            Table::Statuses => "SELECT 1 FROM statuses WHERE key = ?1",
            Table::Comments => "SELECT 1 FROM comments WHERE key = ?1",
            Table::Tags => "SELECT 1 FROM tags WHERE key = ?1",
            Table::Objects => "SELECT 1 FROM objects WHERE key = ?1",
        };
        Ok(self.connection.prepare_cached(sql)?.exists([key])?)
    }

    /// When the object was last seen to be there; `i64::MIN` if never.
    pub(super) fn last_present_us(&self, table: Table, key: i64) -> Result<i64, StoreError> {
        let sql = match table {
            Table::Users => "SELECT observed FROM users WHERE key = ?1",
            Table::Statuses => "SELECT observed FROM statuses WHERE key = ?1",
            Table::Comments => "SELECT observed FROM comments WHERE key = ?1",
            Table::Tags => "SELECT observed FROM tags WHERE key = ?1",
            Table::Objects => "SELECT observed FROM objects WHERE key = ?1",
        };
        let mut newest_us = i64::MIN;
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([key])?;
        if let Some(row) = rows.next()? {
            let observed: String = row.get(0)?;
            let stamp = record::newest_stamp(&observed).map_err(|error| unreadable(key, &error))?;
            newest_us = stamp.at_us;
        }
        let mut statement = self.connection.prepare_cached(
            "SELECT max(at_us) FROM outcomes
             WHERE key = ?1 AND outcome IN ('ok', 'not modified')",
        )?;
        let answered_us: Option<i64> = statement.query_row([key], |row| row.get(0))?;
        Ok(newest_us.max(answered_us.unwrap_or(i64::MIN)))
    }
}
