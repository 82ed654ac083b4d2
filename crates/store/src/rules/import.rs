//! Rows of another file, merged into this one.
//!
//! Every rule here is commutative and idempotent: files may be imported in any order, and again.

use super::identity::{Id, IdRow};
use super::work::Work;
use crate::cell::cells;
use crate::export::log_from_file;
use crate::{StoreError, record};
use kittiwake_model::{
    Alias, GroupState, Identity, ImportedCalls, ImportedHistory, ImportedId, ImportedLink,
    ImportedObject, ImportedRow, ImportedSpell, Key, LinkTable, Name, Reference, Stamp, Standing,
    Table, Value, VanishedRelation,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The group whose history is a time series of its own.
const COUNTS: &str = "counts";

impl Work<'_> {
    pub(super) fn write_imported(
        &mut self,
        rows: &[ImportedRow],
        calls: ImportedCalls,
    ) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        // Ids are written here directly: nothing about them may wait or be remembered.
        self.write_times()?;
        self.memory.familiar.forget_identities();
        let stamp = self.stamp;
        for row in rows {
            match row {
                ImportedRow::Id(id) => self.import_id(id)?,
                ImportedRow::Object(object) => self.import_object(object, calls)?,
                ImportedRow::Link(link) => self.import_link(link)?,
                ImportedRow::VanishedRelation(relation) => self.import_vanished(relation)?,
                ImportedRow::Spell(spell) => self.import_spell(spell)?,
                ImportedRow::History(history) => self.import_history(history, calls)?,
            }
        }
        self.stamp = stamp;
        Ok(())
    }

    /// The time of whatever follows from the present row.
    fn at(&mut self, at_us: i64) {
        self.stamp = Stamp { at_us, log: 0 };
    }

    // ------------------------------------------------------------------------------------- ids

    pub(super) fn import_id(&mut self, id: &ImportedId) -> Result<(), StoreError> {
        self.at(id.first_seen.0);
        let of = only_id(&id.object)?;
        let (object, alias) = (&id.object, &id.alias);
        let span = (id.first_seen.0, id.last_seen.0);
        let mut key = match self.imported_holder(object, &of)? {
            Some(key) => key,
            None => self.new_imported(object, &of, span)?,
        };
        let places = self.id_places(object, alias)?;
        if !alias.movable {
            // An id that cannot move proves that whoever has it is one object.
            let weight = Id::imported(object, alias).weight();
            for place in places.iter().filter(|place| !place.movable) {
                let other = self.memory.follow(place.key);
                if other == key {
                    continue;
                }
                if self.weight_of(other)?.min(self.weight_of(key)?) > weight {
                    // Both have a better one: it goes on naming whom it named.
                    return Ok(());
                }
                let (winner, loser) = (key.min(other), key.max(other));
                self.merge_keys(loser, winner)?;
                key = self.memory.follow(key);
            }
        }
        match self
            .id_places(object, alias)?
            .iter()
            .find(|place| place.key == key)
        {
            Some(place) => self.widen_imported(place.row, span),
            None => self.insert_imported(object, alias, key, span),
        }
    }

    /// The object that a row means. It is made if nobody has met it; what is known of its ids
    /// stays as it is.
    pub(super) fn imported_key(&mut self, identity: &Identity) -> Result<i64, StoreError> {
        let id = only_id(identity)?;
        match self.imported_holder(identity, &id)? {
            Some(key) => Ok(key),
            None => self.new_imported(identity, &id, (self.at_us(), self.at_us())),
        }
    }

    /// Who has the id. One that may move proves nothing, so it means only an object of which
    /// nothing better is known here either.
    fn imported_holder(&self, identity: &Identity, id: &Alias) -> Result<Option<i64>, StoreError> {
        let places = self.id_places(identity, id)?;
        if !id.movable {
            let stable = places.into_iter().find(|place| !place.movable);
            return Ok(stable.map(|place| place.key));
        }
        for place in places {
            let has_stable = self.database.exists(
                "SELECT 1 FROM ids WHERE key = ?1 AND movable = 0",
                cells![place.key],
            )?;
            if !has_stable {
                return Ok(Some(place.key));
            }
        }
        Ok(None)
    }

    /// The rows of an id; first the one that was seen last.
    fn id_places(&self, identity: &Identity, id: &Alias) -> Result<Vec<IdRow>, StoreError> {
        let mut rows = self.id_rows(identity, Id::imported(identity, id))?;
        rows.sort_by_key(|row| (Reverse(row.last_seen_us), row.key));
        Ok(rows)
    }

    /// An object of which nothing is known but a name.
    fn new_imported(
        &mut self,
        identity: &Identity,
        id: &Alias,
        span: (i64, i64),
    ) -> Result<i64, StoreError> {
        let key = self.memory.next_key;
        self.memory.next_key += 1;
        let kind = (identity.network.clone(), identity.kind.clone());
        self.kinds.insert(key, kind);
        self.insert_imported(identity, id, key, span)?;
        self.send(
            "INSERT INTO pending(key, first_seen_us) VALUES (?1, ?2)",
            cells![key, span.0],
        )?;
        Ok(key)
    }

    fn insert_imported(
        &mut self,
        identity: &Identity,
        id: &Alias,
        key: i64,
        span: (i64, i64),
    ) -> Result<(), StoreError> {
        self.insert_id(identity, Id::imported(identity, id), key, span)?;
        self.report.rows_new += 1;
        Ok(())
    }

    fn widen_imported(
        &mut self,
        row: i64,
        (first_us, last_us): (i64, i64),
    ) -> Result<(), StoreError> {
        let changed = self.execute(
            "UPDATE ids SET first_seen_us = min(first_seen_us, ?2),
                            last_seen_us = max(last_seen_us, ?3)
             WHERE rowid = ?1 AND (first_seen_us > ?2 OR last_seen_us < ?3)",
            cells![row, first_us, last_us],
        )?;
        self.report.rows_changed += changed as u32;
        Ok(())
    }

    // --------------------------------------------------------------------------------- objects

    fn import_object(
        &mut self,
        object: &ImportedObject,
        calls: ImportedCalls,
    ) -> Result<(), StoreError> {
        let table = object.table;
        let Some(newest_us) = object.groups.values().map(|group| group.newest.at_us).max() else {
            return Ok(());
        };
        self.at(newest_us);
        let kind = (
            object.identity.network.clone(),
            object.identity.kind.clone(),
        );
        // What is a post as well gets its row in comments from the post.
        let is_derived = table == Table::Comments
            && match self.memory.types.get(&kind) {
                Some(known) => *known != Table::Comments,
                None => &*kind.1 == "status",
            };
        if is_derived {
            return Ok(());
        }
        let key = self.imported_key(&object.identity)?;
        if !self.memory.types.contains_key(&kind) {
            self.learn_table(&kind.0, &kind.1, table)?;
        }
        let last_present_us = self.last_present_us(table, key)?;
        let groups = self.imported_groups(table, &object.groups, calls)?;
        self.memory.familiar.forget(key);
        self.write_groups(table, key, groups)?;
        // Somebody has seen it later than we have: it was there then.
        if newest_us > last_present_us && !self.stamp.is_hearsay() {
            self.write_standing(table, key, Standing::Present)?;
        }
        if let Some(deleted) = object.deleted.filter(|_| table == Table::Statuses) {
            let last_present_us = self.last_present_us(table, key)?;
            self.send(
                "UPDATE statuses SET deleted_us = ?2
                 WHERE key = ?1 AND ?2 >= ?3 AND (deleted_us IS NULL OR deleted_us > ?2)",
                cells![key, deleted.0, last_present_us],
            )?;
        }
        Ok(())
    }

    /// The groups with every reference resolved, every value in its stored form, and the calls of
    /// the other file told apart from ours.
    fn imported_groups(
        &mut self,
        table: Table,
        groups: &BTreeMap<Name, GroupState>,
        calls: ImportedCalls,
    ) -> Result<BTreeMap<Name, GroupState>, StoreError> {
        let mut imported = BTreeMap::new();
        for (name, group) in groups {
            let mut fields = BTreeMap::new();
            for (field, value) in &group.fields {
                let value = self.imported_value(table, field, value)?;
                fields.insert(field.clone(), value);
            }
            let older = group.older.iter();
            let state = GroupState {
                newest: kept(group.newest, calls),
                fields,
                older: older
                    .map(|(field, stamp)| (field.clone(), kept(*stamp, calls)))
                    .collect(),
            };
            imported.insert(name.clone(), state);
        }
        Ok(imported)
    }

    fn imported_value(
        &mut self,
        table: Table,
        field: &str,
        value: &Value,
    ) -> Result<Value, StoreError> {
        Ok(match value {
            Value::Object(reference) => {
                Value::Object(Reference::Key(Key(self.imported_end(reference)?)))
            }
            other => record::normalise(table, field, other.clone()),
        })
    }

    fn imported_end(&mut self, reference: &Reference) -> Result<i64, StoreError> {
        match reference {
            Reference::Identity(identity) => self.imported_key(identity),
            Reference::Key(_) | Reference::Object(_) => Err(StoreError::invalid(
                "an imported row names its objects by their ids",
            )),
        }
    }

    // ------------------------------------------------------------------------------- relations

    fn import_link(&mut self, row: &ImportedLink) -> Result<(), StoreError> {
        let (first_us, last_us) = (row.first_seen.0, row.last_seen.0);
        self.at(first_us);
        let from = self.imported_end(&row.link.from)?;
        let to = self.imported_end(&row.link.to)?;
        if row.link.table == LinkTable::UserRelations {
            // It was found missing after its last sight: it stays missing.
            let changed = self.execute(
                "UPDATE invalid_relations SET first_seen_us = min(first_seen_us, ?3),
                                              last_seen_us = max(last_seen_us, ?4)
                 WHERE source = ?1 AND target = ?2 AND vanished_us > ?4",
                cells![from, to, first_us, last_us],
            )?;
            if changed > 0 {
                return Ok(());
            }
        }
        self.write_link_between(&row.link, from, to)?;
        if last_us != first_us {
            self.at(last_us);
            self.write_link_between(&row.link, from, to)?;
        }
        Ok(())
    }

    fn import_vanished(&mut self, row: &VanishedRelation) -> Result<(), StoreError> {
        let (first_us, last_us) = (row.first_seen.0, row.last_seen.0);
        let vanished_us = row.vanished.0;
        self.at(first_us);
        let source = self.imported_key(&row.source)?;
        let target = self.imported_key(&row.target)?;
        if source == target {
            return Ok(());
        }
        let present: Option<(i64, i64)> = self.database.first(
            "SELECT first_seen_us, last_seen_us FROM user_relations
                 WHERE source = ?1 AND target = ?2",
            cells![source, target],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let (mut span_us, ends) = ((first_us, last_us), [source.into(), target.into()]);
        if let Some((known_first_us, known_last_us)) = present {
            span_us = (first_us.min(known_first_us), last_us.max(known_last_us));
            if known_last_us >= vanished_us {
                // It was seen again since.
                let changed = self.execute(
                    "UPDATE user_relations SET first_seen_us = ?3
                     WHERE source = ?1 AND target = ?2 AND first_seen_us > ?3",
                    cells![source, target, first_us],
                )?;
                self.report.rows_changed += changed as u32;
                return Ok(());
            }
            self.send(
                "DELETE FROM user_relations WHERE source = ?1 AND target = ?2",
                &ends,
            )?;
        }
        let changed = self.execute(
            "INSERT INTO invalid_relations AS known(
               source, target, first_seen_us, last_seen_us, vanished_us)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (source, target) DO UPDATE SET
               first_seen_us = min(known.first_seen_us, excluded.first_seen_us),
               last_seen_us = max(known.last_seen_us, excluded.last_seen_us),
               vanished_us = max(known.vanished_us, excluded.vanished_us)
             WHERE excluded.first_seen_us < known.first_seen_us
                OR excluded.last_seen_us > known.last_seen_us
                OR excluded.vanished_us > known.vanished_us",
            cells![source, target, span_us.0, span_us.1, vanished_us],
        )?;
        self.report.rows_new += changed as u32;
        Ok(())
    }

    // --------------------------------------------------------------------------------- history

    fn import_spell(&mut self, row: &ImportedSpell) -> Result<(), StoreError> {
        let from_us = row.from.0;
        self.at(from_us);
        let key = self.imported_key(&row.user)?;
        // Whoever answered one of our own calls later was back by then.
        let answered_us: Option<i64> = self.database.only(
            "SELECT min(at_us) FROM outcomes
                 WHERE key = ?1 AND at_us > ?2 AND outcome IN ('ok', 'empty', 'not modified')",
            cells![key, from_us],
            |row| row.get(0),
        )?;
        let until_us = row.until.map(|until| until.0).or(answered_us);
        let changed = self.execute(
            "INSERT INTO invalid_users AS known(key, reason, from_us, until_us)
             VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (key, from_us) DO UPDATE SET until_us = excluded.until_us
             WHERE excluded.until_us < coalesce(known.until_us, excluded.until_us + 1)",
            cells![key, row.reason.code(), from_us, until_us],
        )?;
        self.report.rows_new += changed as u32;
        // Of two open spells the earlier one says it all.
        self.send(
            "DELETE FROM invalid_users WHERE key = ?1 AND until_us IS NULL AND from_us > (
               SELECT min(from_us) FROM invalid_users WHERE key = ?1 AND until_us IS NULL)",
            cells![key],
        )?;
        Ok(())
    }

    fn import_history(
        &mut self,
        row: &ImportedHistory,
        calls: ImportedCalls,
    ) -> Result<(), StoreError> {
        let Stamp { at_us, log } = row.stamp;
        self.at(at_us);
        let key = self.imported_key(&row.object)?;
        let table = self.table_of(key)?;
        let mut fields = BTreeMap::new();
        for (field, value) in &row.fields {
            fields.insert(field, self.imported_value(table, field, value)?);
        }
        let fields = fields.iter().map(|(field, value)| (&***field, value));
        let fields =
            record::fields_json(fields).map_err(|error| StoreError::invalid(error.to_string()))?;
        let own_log = kept(row.stamp, calls).log;
        // It may be our own, come back: then it is there under its own number.
        let inserted = if &*row.group == COUNTS {
            self.execute(
                "INSERT INTO counts(key, observed_us, log, counts)
                 SELECT CAST(?1 AS BIGINT), CAST(?2 AS BIGINT), CAST(?3 AS BIGINT),
                        CAST(?4 AS TEXT)
                 WHERE NOT EXISTS (SELECT 1 FROM counts
                   WHERE key = ?1 AND observed_us = ?2 AND log = ?5 AND counts = ?4)
                 ON CONFLICT DO NOTHING",
                cells![key, at_us, own_log, fields, log],
            )?
        } else {
            self.execute(
                "INSERT INTO versions(key, grp, observed_us, log, fields)
                 SELECT CAST(?1 AS BIGINT), CAST(?6 AS TEXT), CAST(?2 AS BIGINT),
                        CAST(?3 AS BIGINT), CAST(?4 AS TEXT)
                 WHERE NOT EXISTS (SELECT 1 FROM versions
                   WHERE key = ?1 AND grp = ?6 AND observed_us = ?2 AND log = ?5 AND fields = ?4)
                 ON CONFLICT DO NOTHING",
                cells![key, at_us, own_log, fields, log, &*row.group],
            )?
        };
        self.report.rows_new += inserted as u32;
        Ok(())
    }
}

/// A stamp that was read, as this store keeps it.
fn kept(stamp: Stamp, calls: ImportedCalls) -> Stamp {
    match calls {
        ImportedCalls::Own => stamp,
        ImportedCalls::Foreign => Stamp {
            log: log_from_file(stamp.log),
            ..stamp
        },
    }
}

/// The one id by which an imported row names an object.
fn only_id(identity: &Identity) -> Result<Alias, StoreError> {
    crate::export::only_alias(identity).ok_or_else(|| {
        StoreError::invalid(format!(
            "an object of type {} without any id",
            identity.kind
        ))
    })
}
