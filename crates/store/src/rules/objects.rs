//! Writing what was observed of objects.

use super::familiar::{Mark, Repeated};
use super::statements::Held;
use super::times::Restamp;
use super::work::Work;
use super::written::Bearings;
use crate::StoreError;
use crate::cell::{Cell, cells};
use crate::error::unreadable;
use crate::record::{self, Groups, Record};
use kittiwake_model::merge::Overruled;
use kittiwake_model::{GroupState, Key, Name, Object, Reference, Stamp, Standing, Table, Value};
use std::collections::BTreeMap;

/// The group whose history is a time series of its own.
const COUNTS: &str = "counts";

/// What a row holds after an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowNow {
    /// In the groups that were observed, exactly what was observed.
    AsTold,
    /// What it held before.
    Unchanged,
    Mixed,
}

impl<'a> Work<'a> {
    /// Writes all objects of a commit; `keys` are theirs.
    pub(super) fn write_objects(
        &mut self,
        objects: &'a [Object],
        marks: &[Mark],
        keys: &[i64],
    ) -> Result<(), StoreError> {
        for ((object, mark), key) in objects.iter().zip(marks).zip(keys) {
            let digest = mark.digest.filter(|_| object.standing == Standing::Present);
            let key = self.memory.follow(*key);
            let told_by_others = match object.standing {
                Standing::Hearsay => Some(self.stamp.as_hearsay()),
                Standing::Named => Some(self.stamp.as_named()),
                Standing::Present | Standing::Invalid(_) => None,
            };
            if let Some(stamp) = told_by_others {
                let own = std::mem::replace(&mut self.stamp, stamp);
                self.write_object(object, key, None, keys)?;
                self.stamp = own;
            } else if !self.is_known(object.table, key, digest)? {
                self.write_object(object, key, digest, keys)?;
            }
        }
        Ok(())
    }

    /// Whether an observation only repeats what the row holds; its time is noted.
    fn is_known(
        &mut self,
        table: Table,
        key: i64,
        digest: Option<u64>,
    ) -> Result<bool, StoreError> {
        let Some(digest) = digest else {
            return Ok(false);
        };
        let stamp = self.stamp;
        match self.memory.familiar.repeats(key, digest, stamp) {
            None => Ok(false),
            Some(Repeated::Between) => Ok(true),
            Some(Repeated::Later(names)) => {
                let restamp = Restamp {
                    table,
                    names,
                    stamp,
                };
                self.put_off(key, restamp)?;
                Ok(true)
            }
        }
    }

    fn write_object(
        &mut self,
        object: &'a Object,
        key: i64,
        digest: Option<u64>,
        keys: &[i64],
    ) -> Result<(), StoreError> {
        self.learn_table(
            &object.identity.network,
            &object.identity.kind,
            object.table,
        )?;
        let is_plain = object.standing == Standing::Present && !object.groups.is_empty();
        if is_plain && self.is_undescribed(key) && self.write_first(object, key, keys)? {
            if let Some(digest) = digest {
                self.tell(key, digest, object);
            }
            return Ok(());
        }
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
        let mut row = RowNow::Unchanged;
        if is_shown {
            row = self.write_groups(object.table, key, groups)?;
        } else {
            self.mark_pending(key)?;
        }
        if object.standing != Standing::Present || (is_shown && !is_new) {
            self.write_standing(object.table, key, object.standing)?;
        }
        match (row, digest) {
            (RowNow::AsTold, Some(digest)) if !self.is_gone_later(key)? => {
                self.tell(key, digest, object);
            }
            // An answer that came late: what is remembered of the row still holds.
            (RowNow::Unchanged, _) => {}
            _ => self.memory.familiar.forget(key),
        }
        Ok(())
    }

    /// Remembers what the row of the object holds now.
    fn tell(&mut self, key: i64, digest: u64, object: &Object) {
        let stamp = self.stamp;
        self.memory
            .familiar
            .tell(key, digest, stamp, &object.groups);
    }

    /// Whether the key was given away in this transaction and nothing is written of it yet.
    fn is_undescribed(&self, key: i64) -> bool {
        self.fresh
            .get(&key)
            .is_some_and(|fresh| !fresh.is_described)
    }

    /// Writes an object that nobody has described before; false if it is out of the ordinary.
    fn write_first(
        &mut self,
        object: &'a Object,
        key: i64,
        keys: &[i64],
    ) -> Result<bool, StoreError> {
        let merges = self.report.merged.len();
        let mut pointed = Vec::new();
        for (_, value) in object.groups.iter().flat_map(|group| &group.fields) {
            if let Value::Object(reference) = value {
                pointed.push(self.key_of(reference, keys)?);
            }
        }
        if self.report.merged.len() > merges {
            return Ok(false);
        }
        let (table, lists) = (object.table, &mut self.memory.field_lists);
        let record = record::encode_first(table, &object.groups, &pointed, self.stamp, lists)
            .map_err(|error| unreadable(key, &error))?;
        let Some(record) = record else {
            return Ok(false);
        };
        let after = Bearings::in_cells(table, &record.cells);
        self.put_record(table, key, record)?;
        let was_pending = self.fresh.get(&key).is_some_and(|fresh| fresh.is_pending);
        if was_pending {
            self.send("DELETE FROM pending WHERE key = ?1", cells![key])?;
        }
        if let Some(fresh) = self.fresh.get_mut(&key) {
            fresh.is_described = true;
            fresh.is_pending = false;
        }
        self.report.rows_new += 1;
        self.found.new_object(table, key);
        self.row_written(table, key, None, after, !was_pending)?;
        Ok(true)
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
        let held = Held::SelectObject(table);
        let groups = self.database.first(held, cells![key], |row| {
            let mut cells = Vec::with_capacity(columns);
            for place in 0..columns {
                cells.push(row.cell(place)?);
            }
            let record = Record {
                cells,
                extra: row.get(columns)?,
                observed: row.get(columns + 1)?,
            };
            record::decode(table, record, &self.memory.field_lists)
                .map_err(|error| unreadable(key, &error))
        })?;
        let Some(mut groups) = groups else {
            return Ok(None);
        };
        // Columns are rewritten when keys are merged; what is inside JSON is followed here.
        self.follow_references(&mut groups);
        if let Some(restamp) = self.restamp(key) {
            for name in &*restamp.names {
                if let Some(group) = groups.get_mut(name) {
                    group.newest = group.newest.max(restamp.stamp);
                }
            }
        }
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
    ) -> Result<RowNow, StoreError> {
        let fresh = self.fresh.get(&key).copied();
        let known = match fresh {
            Some(fresh) if !fresh.is_described => None,
            _ => self.read_groups(table, key)?,
        };
        let Some(mut groups) = known else {
            let after = Bearings::of(table, &observed);
            self.put_groups(table, key, &observed)?;
            if fresh.is_none_or(|fresh| fresh.is_pending) {
                self.send("DELETE FROM pending WHERE key = ?1", cells![key])?;
            }
            if let Some(fresh) = self.fresh.get_mut(&key) {
                fresh.is_described = true;
                fresh.is_pending = false;
            }
            self.report.rows_new += 1;
            self.found.new_object(table, key);
            let is_unmet = fresh.is_some_and(|fresh| !fresh.is_pending);
            self.row_written(table, key, None, after, is_unmet)?;
            return Ok(RowNow::AsTold);
        };
        let names: Vec<Name> = observed.keys().cloned().collect();
        let before = Bearings::of(table, &groups);
        let (changed, values_changed) = self.merge_groups(key, &mut groups, observed)?;
        if values_changed {
            self.put_groups(table, key, &groups)?;
            self.report.rows_changed += 1;
            self.found.changed_object(table, key);
            let after = Bearings::of(table, &groups);
            self.row_written(table, key, Some(before), after, false)?;
        } else if changed {
            let lists = &mut self.memory.field_lists;
            let observed = record::encode_observed(table, &groups, lists)
                .map_err(|error| unreadable(key, &error))?;
            self.send(Held::RestampObject(table), cells![observed, key])?;
            self.save_field_lists()?;
        }
        let is_as_told = names.iter().all(|name| {
            groups
                .get(name)
                .is_some_and(|group| group.newest == self.stamp && group.older.is_empty())
        });
        Ok(match (is_as_told, changed || values_changed) {
            (true, _) => RowNow::AsTold,
            (false, false) => RowNow::Unchanged,
            (false, true) => RowNow::Mixed,
        })
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
        self.put_record(table, key, record)
    }

    fn put_record(&mut self, table: Table, key: i64, record: Record<'_>) -> Result<(), StoreError> {
        let mut cells = record.cells;
        cells.push(
            record
                .extra
                .map_or(Cell::Null, |extra| Cell::Text(extra.into())),
        );
        cells.push(Cell::Text(record.observed.into()));
        cells.push(Cell::Integer(key));
        self.send(Held::ReplaceObject(table), &cells)?;
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
            self.send(
                "INSERT INTO field_lists(id, fields) VALUES (?1, ?2)",
                cells![number, fields],
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
        // What others said before its own host did is no version of the object.
        for lost in overruled.iter().filter(|lost| !lost.stamp.is_hearsay()) {
            by_stamp
                .entry(lost.stamp)
                .or_default()
                .push((&lost.field, &lost.value));
        }
        for (stamp, fields) in by_stamp {
            let fields = record::fields_json(fields).map_err(|error| unreadable(key, &error))?;
            if &**group == COUNTS {
                self.send(
                    "INSERT INTO counts(key, observed_us, log, counts)
                     VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
                    cells![key, stamp.at_us, stamp.log, fields],
                )?;
            } else {
                self.send(
                    "INSERT INTO versions(key, grp, observed_us, log, fields)
                     VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
                    cells![key, &**group, stamp.at_us, stamp.log, fields],
                )?;
            }
        }
        Ok(())
    }

    /// Whether the object has a row in its table that tells more than what a list has told.
    pub(super) fn is_described(&self, table: Table, key: i64) -> Result<bool, StoreError> {
        let newest = self.newest_stamp(table, key)?;
        Ok(newest.is_some_and(|newest| !newest.is_named()))
    }

    fn newest_stamp(&self, table: Table, key: i64) -> Result<Option<Stamp>, StoreError> {
        let held = Held::SelectObserved(table);
        self.database.first(held, cells![key], |row| {
            record::newest_stamp(&row.text(0)?).map_err(|error| unreadable(key, &error))
        })
    }

    /// When the object was last seen to be there; `i64::MIN` if never.
    pub(super) fn last_present_us(&self, table: Table, key: i64) -> Result<i64, StoreError> {
        let mut newest_us = self
            .restamp(key)
            .map_or(i64::MIN, |restamp| restamp.stamp.at_us);
        if let Some(stamp) = self.newest_stamp(table, key)? {
            newest_us = newest_us.max(stamp.at_us);
        }
        let answered_us: Option<i64> = self.database.only(
            "SELECT max(at_us) FROM outcomes
             WHERE key = ?1 AND outcome IN ('ok', 'not modified')",
            cells![key],
            |row| row.get(0),
        )?;
        Ok(newest_us.max(answered_us.unwrap_or(i64::MIN)))
    }
}
