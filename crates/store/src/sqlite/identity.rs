//! From what an answer calls an object to the object's key.

use super::statements::Held;
use super::work::{Fresh, Work};
use crate::StoreError;
use crate::hash::id_hash;
use kittiwake_model::{Identity, Key, Reference};
use rusqlite::types::ValueRef;
use rusqlite::{Row, params};
use std::collections::BTreeMap;

/// How often the time of the last sight of an id that cannot move is brought up to date: its
/// row would otherwise be written with every page.
const STABLE_REFRESH_US: i64 = 24 * 3_600 * 1_000_000;

/// One id of an identity.
#[derive(Clone, Copy)]
struct Id<'a> {
    alias: &'a str,
    text: &'a str,
    host: &'a str,
    movable: bool,
    hash: i64,
}

impl Id<'_> {
    fn is_canonical(self) -> bool {
        self.alias.is_empty()
    }

    fn says_the_same(self, other: Self) -> bool {
        (self.hash, self.text, self.host, self.alias)
            == (other.hash, other.text, other.host, other.alias)
    }
}

/// One row of `ids`, as far as resolving needs it.
#[derive(Debug, Clone, Copy)]
struct IdRow {
    row: i64,
    key: i64,
    movable: bool,
    first_seen_us: i64,
    last_seen_us: i64,
}

/// Whether the row begins with these texts.
fn says(row: &Row<'_>, wanted: [&str; 5]) -> rusqlite::Result<bool> {
    for (place, text) in wanted.into_iter().enumerate() {
        if row.get_ref(place)? != ValueRef::Text(text.as_bytes()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// An identity that was resolved, for the rest of the transaction.
#[derive(Debug)]
pub(super) struct Resolved<'a> {
    identity: &'a Identity,
    key: i64,
    /// Its movable ids, as they were when they were looked up.
    movable: Vec<IdRow>,
}

/// Notes that the id was seen at `at_us`, too.
fn widen(sightings: &mut BTreeMap<i64, (i64, i64)>, row: IdRow, at_us: i64) {
    let (first_us, last_us) = match sightings.get(&row.row) {
        Some(seen) => *seen,
        None => (row.first_seen_us, row.last_seen_us),
    };
    if at_us < first_us || at_us > last_us {
        sightings.insert(row.row, (first_us.min(at_us), last_us.max(at_us)));
    }
}

fn ids_of(identity: &Identity) -> impl Iterator<Item = Id<'_>> {
    let id = |alias, text, host, movable| Id {
        alias,
        text,
        host,
        movable,
        hash: id_hash(&identity.network, &identity.kind, alias, host, text),
    };
    let canonical = identity.canonical.as_deref();
    canonical
        .map(|text| id("", text, "", false))
        .into_iter()
        .chain(
            identity
                .aliases
                .iter()
                .map(move |alias| id(&alias.name, &alias.id, &alias.host, alias.movable)),
        )
}

impl<'a> Work<'a, '_> {
    /// The key of what `reference` points at; `objects` are the keys of the commit's objects.
    pub(super) fn key_of(
        &mut self,
        reference: &'a Reference,
        objects: &[i64],
    ) -> Result<i64, StoreError> {
        match reference {
            Reference::Key(key) => Ok(self.followed(*key)),
            Reference::Object(place) => objects
                .get(*place as usize)
                .map(|key| self.memory.follow(*key))
                .ok_or_else(|| {
                    StoreError::invalid(format!(
                        "a reference to object {place} of a commit that has {}",
                        objects.len()
                    ))
                }),
            Reference::Identity(identity) => {
                let key = self.resolve(identity, None)?;
                self.mark_pending(key)?;
                Ok(key)
            }
        }
    }

    /// Remembers an object that is named and not described. For a key of this transaction only:
    /// an older one was either described or marked when it was made.
    pub(super) fn mark_pending(&mut self, key: i64) -> Result<(), StoreError> {
        let Some(fresh) = self.fresh.get_mut(&key) else {
            return Ok(());
        };
        if fresh.is_described || fresh.is_pending {
            return Ok(());
        }
        fresh.is_pending = true;
        self.execute(
            "INSERT OR IGNORE INTO pending(key, first_seen_us) VALUES (?1, ?2)",
            params![key, self.at_us()],
        )?;
        Ok(())
    }

    /// The key of an object, made if nobody has met it before. Keys that turn out to be one
    /// object are merged.
    pub(super) fn resolve(
        &mut self,
        identity: &'a Identity,
        known_as: Option<Key>,
    ) -> Result<i64, StoreError> {
        let ids: Vec<Id<'_>> = ids_of(identity).collect();
        let place = ids
            .iter()
            .fold(0_i64, |place, id| place.rotate_left(1) ^ id.hash);
        if known_as.is_none()
            && let Some(key) = self.resolved_before(place, identity)
        {
            return Ok(key);
        }
        let known_as = match known_as {
            Some(key) => self.fitting(self.followed(key), identity)?,
            None => None,
        };
        if identity.is_anonymous() && known_as.is_none() {
            return Err(StoreError::invalid(format!(
                "an object of type {} without any id",
                identity.kind
            )));
        }
        let (mut found, missing) = self.look_up(identity, &ids, known_as)?;
        let has_stable = ids.iter().any(|id| !id.movable);
        let by_name_only = found.is_empty() && !has_stable;
        if by_name_only {
            found.extend(self.newest_holder(identity)?);
        }
        let is_new = found.is_empty();
        let key = match found.as_slice() {
            [] => self.new_key(identity),
            [key] => *key,
            [winner, losers @ ..] => {
                let (winner, losers) = (*winner, losers.to_vec());
                for loser in losers {
                    self.merge_keys(loser, winner)?;
                }
                winner
            }
        };
        // A bare handle tells nothing new about who holds it.
        let movable = if !by_name_only || self.fresh.contains_key(&key) {
            self.add_ids(identity, &missing, key, is_new)?
        } else {
            Vec::new()
        };
        if !identity.is_anonymous() {
            let resolved = Resolved {
                identity,
                key,
                movable,
            };
            self.identities.insert(place, resolved);
        }
        Ok(key)
    }

    /// The keys that an identity's stable ids belong to, beside the one it was asked for under;
    /// and the ids that nobody has for certain.
    fn look_up<'i>(
        &mut self,
        identity: &Identity,
        ids: &[Id<'i>],
        known_as: Option<i64>,
    ) -> Result<(Vec<i64>, Vec<Id<'i>>), StoreError> {
        let mut found: Vec<i64> = known_as.into_iter().collect();
        let mut missing = Vec::new();
        for id in ids {
            let mut is_missing = true;
            if !id.movable {
                for row in self.id_rows(identity, *id)? {
                    if !row.movable {
                        is_missing = false;
                        found.push(row.key);
                        self.refresh_stable(row);
                    }
                }
            }
            if is_missing {
                missing.push(*id);
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok((found, missing))
    }

    /// The key of an identity that this transaction has met before; its movable ids were seen
    /// again.
    fn resolved_before(&mut self, place: i64, identity: &Identity) -> Option<i64> {
        let resolved = self.identities.get(&place)?;
        if resolved.identity != identity {
            return None;
        }
        let at_us = self.stamp.at_us;
        for row in &resolved.movable {
            widen(&mut self.sightings, *row, at_us);
        }
        Some(self.memory.follow(resolved.key))
    }

    /// The key under which an object was asked for, if it can be the same object at all.
    fn fitting(&mut self, key: i64, identity: &Identity) -> Result<Option<i64>, StoreError> {
        let (network, kind) = self.kind_of(key)?;
        if network == identity.network && kind == identity.kind {
            return Ok(Some(key));
        }
        tracing::warn!(
            key,
            asked = %kind,
            answered = %identity.kind,
            "the answer describes an object of another type than was asked for"
        );
        Ok(None)
    }

    fn new_key(&mut self, identity: &Identity) -> i64 {
        let key = self.memory.next_key;
        self.memory.next_key += 1;
        self.fresh.insert(key, Fresh::default());
        self.kinds
            .insert(key, (identity.network.clone(), identity.kind.clone()));
        key
    }

    /// The rows of an id: several only where it has moved, or during a merge.
    fn id_rows(&self, identity: &Identity, id: Id<'_>) -> Result<Vec<IdRow>, StoreError> {
        let mut statement = self.statements.get(Held::FindId)?;
        let mut rows = statement.query([id.hash])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            // Compared here, because nearly all ids are new: there is nothing to compare then,
            // and nothing but the hash had to be handed over.
            let wanted = [
                id.text,
                id.host,
                id.alias,
                &*identity.kind,
                &*identity.network,
            ];
            if !says(row, wanted)? {
                continue;
            }
            let mut id_row = IdRow {
                row: row.get(5)?,
                key: row.get(6)?,
                movable: row.get(7)?,
                first_seen_us: row.get(8)?,
                last_seen_us: row.get(9)?,
            };
            if let Some(seen) = self.sightings.get(&id_row.row) {
                (id_row.first_seen_us, id_row.last_seen_us) = *seen;
            }
            found.push(id_row);
        }
        Ok(found)
    }

    fn refresh_stable(&mut self, row: IdRow) {
        let at_us = self.at_us();
        if at_us < row.first_seen_us || at_us >= row.last_seen_us.saturating_add(STABLE_REFRESH_US)
        {
            widen(&mut self.sightings, row, at_us);
        }
    }

    /// Writes the sightings that were put off: once for each row, however many commits of the
    /// transaction saw it.
    pub(super) fn write_sightings(&mut self) -> Result<(), StoreError> {
        for (row, (first_us, last_us)) in std::mem::take(&mut self.sightings) {
            self.execute_held(Held::WidenId, [row, first_us, last_us])?;
        }
        Ok(())
    }

    /// Who was last seen under one of the identity's movable aliases.
    fn newest_holder(&self, identity: &Identity) -> Result<Option<i64>, StoreError> {
        let mut newest: Option<IdRow> = None;
        for id in ids_of(identity) {
            let mut rows = self.id_rows(identity, id)?;
            rows.sort_unstable_by_key(|row| row.key);
            for row in rows {
                if newest.is_none_or(|newest| row.last_seen_us > newest.last_seen_us) {
                    newest = Some(row);
                }
            }
        }
        Ok(newest.map(|row| row.key))
    }

    /// Writes the ids that the store lacks, and who holds the movable ones now; gives the rows
    /// of the movable ones. No two rows say the same of one key: nobody else writes, so looking
    /// first is enough.
    fn add_ids(
        &mut self,
        identity: &Identity,
        ids: &[Id<'_>],
        key: i64,
        is_new: bool,
    ) -> Result<Vec<IdRow>, StoreError> {
        let at_us = self.at_us();
        let mut movable = Vec::new();
        for (place, id) in ids.iter().enumerate() {
            let known = if is_new {
                // What nobody has met has no rows but those of this call.
                if ids[..place].iter().any(|other| other.says_the_same(*id)) {
                    continue;
                }
                None
            } else {
                let rows = self.id_rows(identity, *id)?;
                rows.into_iter().find(|row| row.key == key)
            };
            let row = match known {
                Some(row) => row,
                None => self.insert_id(identity, *id, key)?,
            };
            if row.movable {
                widen(&mut self.sightings, row, at_us);
                movable.push(row);
            }
        }
        Ok(movable)
    }

    fn insert_id(&self, identity: &Identity, id: Id<'_>, key: i64) -> Result<IdRow, StoreError> {
        let at_us = self.at_us();
        self.execute_held(
            Held::InsertId,
            params![
                key,
                id.hash,
                id.is_canonical(),
                id.movable,
                at_us,
                &*identity.network,
                &*identity.kind,
                id.alias,
                id.host,
                id.text
            ],
        )?;
        Ok(IdRow {
            row: self.connection.last_insert_rowid(),
            key,
            movable: id.movable,
            first_seen_us: at_us,
            last_seen_us: at_us,
        })
    }
}
