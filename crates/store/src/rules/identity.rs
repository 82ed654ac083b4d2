//! From what an answer calls an object to the object's key.

use super::brings::is_writing;
use super::extent::guessed_table;
use super::familiar::Met;
use super::statements::Held;
use super::work::{Fresh, Work};
use crate::StoreError;
use crate::cell::{Cell, Row, cells};
use crate::hash::id_hash;
use kittiwake_model::{Alias, Identity, Key, Reference, Weight};
use std::cmp::Reverse;
use std::ops::ControlFlow;

/// How often the time of the last sight of an id that cannot move is brought up to date: its
/// row would otherwise be written with every page.
const STABLE_REFRESH_US: i64 = 24 * 3_600 * 1_000_000;

/// One id of an identity.
#[derive(Clone, Copy)]
pub(super) struct Id<'a> {
    pub alias: &'a str,
    pub text: &'a str,
    pub host: &'a str,
    pub movable: bool,
    hash: i64,
}

impl<'a> Id<'a> {
    /// An id that stands in an export by itself; the canonical one has no name there.
    pub(super) fn imported(identity: &Identity, id: &'a Alias) -> Self {
        let (alias, text, host) = (&*id.name, &*id.id, &*id.host);
        Self {
            alias,
            text,
            host,
            movable: id.movable,
            hash: id_hash(&identity.network, &identity.kind, alias, host, text),
        }
    }

    fn is_canonical(self) -> bool {
        self.alias.is_empty()
    }

    /// How much it says of who somebody is.
    pub(super) fn weight(self) -> Weight {
        match self {
            id if id.movable => Weight::Hint,
            id if id.is_canonical() => Weight::Canonical,
            id if id.host.is_empty() => Weight::Everywhere,
            _ => Weight::Host,
        }
    }

    fn says_the_same(self, other: Self) -> bool {
        (self.hash, self.text, self.host, self.alias)
            == (other.hash, other.text, other.host, other.alias)
    }
}

/// One row of `ids`, as far as resolving needs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdRow {
    pub row: i64,
    pub key: i64,
    pub movable: bool,
    pub first_seen_us: i64,
    pub last_seen_us: i64,
}

/// What the store knows of an identity.
struct LookedUp<'i> {
    /// The keys that its stable ids belong to, and the one that it was asked for under, each with the
    /// weight of what tells so; the weightiest first.
    found: Vec<(i64, Weight)>,
    /// The ids that nobody has for certain.
    missing: Vec<Id<'i>>,
    /// Between these times a sight of it leaves the rows of its stable ids as they are.
    from_us: i64,
    until_us: i64,
}

/// Whether the row begins with these texts.
fn says(row: &dyn Row, wanted: [&str; 5]) -> Result<bool, StoreError> {
    for (place, text) in wanted.into_iter().enumerate() {
        if row.cell(place)? != Cell::from(text) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The hashes of an identity's ids, in the order of [`ids_of`].
pub(super) fn hashes_of(identity: &Identity) -> Box<[i64]> {
    let (network, kind) = (&*identity.network, &*identity.kind);
    let canonical = identity.canonical.as_deref();
    let canonical = canonical.map(|text| id_hash(network, kind, "", "", text));
    let aliases = identity.aliases.iter();
    let aliases = aliases.map(|it| id_hash(network, kind, &it.name, &it.host, &it.id));
    canonical.into_iter().chain(aliases).collect()
}

fn ids_of<'i>(identity: &'i Identity, hashes: &[i64]) -> Vec<Id<'i>> {
    let canonical = identity.canonical.as_deref();
    let canonical = canonical.map(|text| ("", text, "", false));
    let aliases = identity.aliases.iter();
    let aliases = aliases.map(|it| (&*it.name, &*it.id, &*it.host, it.movable));
    canonical
        .into_iter()
        .chain(aliases)
        .zip(hashes)
        .map(|((alias, text, host, movable), hash)| Id {
            alias,
            text,
            host,
            movable,
            hash: *hash,
        })
        .collect()
}

impl<'a> Work<'a> {
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
                let place = self.memory.familiar.marker.place_of(identity);
                let key = match self.met_before(place) {
                    Some(key) => key,
                    None => self.resolve(identity, place, &hashes_of(identity), None)?,
                };
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
        self.send(
            "INSERT INTO pending(key, first_seen_us) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            cells![key, self.at_us()],
        )?;
        Ok(())
    }

    /// The key of an object, made if nobody has met it before. Keys that turn out to be one
    /// object are merged, as far as [`Weight`] allows. `place` stands for the identity, `hashes` for its
    /// ids.
    pub(super) fn resolve(
        &mut self,
        identity: &Identity,
        place: (u64, u64),
        hashes: &[i64],
        known_as: Option<Key>,
    ) -> Result<i64, StoreError> {
        if known_as.is_none()
            && let Some(key) = self.met_before(place)
        {
            self.note_kind(key, identity);
            return Ok(key);
        }
        let ids = ids_of(identity, hashes);
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
        let LookedUp {
            mut found,
            missing,
            from_us,
            until_us,
        } = self.look_up(identity, &ids, known_as)?;
        let weight = ids.iter().map(|id| id.weight()).max();
        let weight = weight.unwrap_or(Weight::Hint);
        let has_stable = weight > Weight::Hint;
        let by_name_only = found.is_empty() && !has_stable;
        if by_name_only {
            let holder = self.newest_holder(identity, &ids)?;
            found.extend(holder.map(|key| (key, Weight::Hint)));
        }
        let joined = self.joined(found, weight)?;
        let is_new = joined.is_empty();
        let key = match joined.iter().copied().min() {
            Some(winner) => {
                for loser in joined.into_iter().filter(|key| *key != winner) {
                    self.merge_keys(loser, winner)?;
                }
                winner
            }
            None => self.new_key(identity),
        };
        self.note_kind(key, identity);
        // A bare handle tells nothing new about who holds it.
        let movable = if !by_name_only || self.fresh.contains_key(&key) {
            self.add_ids(identity, &missing, key, is_new)?
        } else {
            Vec::new()
        };
        // Who holds a bare handle may be another tomorrow.
        if has_stable && self.is_worth_remembering(identity) {
            let met = Met {
                key,
                movable,
                from_us,
                until_us,
            };
            self.memory.familiar.meet(place, met);
        }
        Ok(key)
    }

    /// Those of the keys that are one object, by the rule of [`Weight`]: of an identity whose
    /// weightiest id has this weight. None if the identity is nobody's who is known.
    fn joined(
        &mut self,
        found: Vec<(i64, Weight)>,
        weight: Weight,
    ) -> Result<Vec<i64>, StoreError> {
        let mut found = found.into_iter();
        let Some((first, told)) = found.next() else {
            return Ok(Vec::new());
        };
        // By far the most: all ids are those of one object, or the best of them says whose they are.
        if told >= weight && found.len() == 0 {
            return Ok(vec![first]);
        }
        let mut joined = Vec::new();
        let mut weight = weight;
        for (key, told) in std::iter::once((first, told)).chain(found) {
            let its_own = self.weight_of(key)?;
            let is_object = joined.is_empty() && told >= weight;
            if is_object || its_own.min(weight) <= told {
                weight = weight.max(its_own);
                joined.push(key);
            } else {
                tracing::debug!(
                    key,
                    "an id is said to be of two objects; the claim is dropped"
                );
            }
        }
        Ok(joined)
    }

    /// The weight of the best id that an object has.
    pub(super) fn weight_of(&self, key: i64) -> Result<Weight, StoreError> {
        let best: Option<i64> = self.database.only(
            "SELECT max(CASE WHEN canonical = 1 THEN 3 WHEN host = '' THEN 2 ELSE 1 END)
             FROM ids WHERE key = ?1 AND movable = 0",
            cells![key],
            |row| row.get(0),
        )?;
        Ok(match best {
            Some(3) => Weight::Canonical,
            Some(2) => Weight::Everywhere,
            Some(1) => Weight::Host,
            _ => Weight::Hint,
        })
    }

    /// Posts are many and each is seldom met again; authors and tags are met all the time.
    fn is_worth_remembering(&self, identity: &Identity) -> bool {
        let kind = (identity.network.clone(), identity.kind.clone());
        let table = self.memory.types.get(&kind).copied();
        !is_writing(table.unwrap_or_else(|| guessed_table(&identity.kind)))
    }

    /// Looks the stable ids of an identity up.
    fn look_up<'i>(
        &mut self,
        identity: &Identity,
        ids: &[Id<'i>],
        known_as: Option<i64>,
    ) -> Result<LookedUp<'i>, StoreError> {
        let at_us = self.at_us();
        let (mut from_us, mut until_us) = (at_us, at_us.saturating_add(STABLE_REFRESH_US));
        let asked_for = known_as.map(|key| (key, Weight::Host));
        let mut found: Vec<(i64, Weight)> = asked_for.into_iter().collect();
        let mut missing = Vec::new();
        for id in ids {
            let mut is_missing = true;
            if !id.movable {
                for row in self.id_rows(identity, *id)? {
                    if !row.movable {
                        is_missing = false;
                        found.push((row.key, id.weight()));
                        let (first_us, due_us) = self.refresh_stable(row);
                        from_us = from_us.max(first_us);
                        until_us = until_us.min(due_us);
                    }
                }
            }
            if is_missing {
                missing.push(*id);
            }
        }
        found.sort_unstable_by_key(|(key, weight)| (*key, Reverse(*weight)));
        found.dedup_by_key(|(key, _)| *key);
        found.sort_unstable_by_key(|(key, weight)| (Reverse(*weight), *key));
        Ok(LookedUp {
            found,
            missing,
            from_us,
            until_us,
        })
    }

    /// The key of an identity that was met before; its movable ids were seen again.
    fn met_before(&mut self, place: (u64, u64)) -> Option<i64> {
        let at_us = self.stamp.at_us;
        let met = self.memory.familiar.met(place)?;
        if at_us < met.from_us || at_us >= met.until_us {
            return None;
        }
        let key = met.key;
        for row in &met.movable {
            let known = self.times.sightings.get(&row.row).copied();
            let known = known.or_else(|| self.memory.times.sightings.get(&row.row).copied());
            let (first_us, last_us) = known.unwrap_or((row.first_seen_us, row.last_seen_us));
            if at_us < first_us || at_us > last_us {
                let seen = (first_us.min(at_us), last_us.max(at_us));
                self.times.sightings.insert(row.row, seen);
            }
        }
        Some(self.memory.follow(key))
    }

    /// Notes that the id was seen now, too.
    fn widen(&mut self, row: IdRow) {
        let at_us = self.at_us();
        let (first_us, last_us) = self
            .sighting(row.row)
            .unwrap_or((row.first_seen_us, row.last_seen_us));
        if at_us < first_us || at_us > last_us {
            let seen = (first_us.min(at_us), last_us.max(at_us));
            self.times.sightings.insert(row.row, seen);
        }
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
        self.note_kind(key, identity);
        key
    }

    /// What has an id of one network and type is of that network and type.
    fn note_kind(&mut self, key: i64, identity: &Identity) {
        self.kinds
            .entry(key)
            .or_insert_with(|| (identity.network.clone(), identity.kind.clone()));
    }

    /// The rows of an id: several only where it has moved, or during a merge.
    pub(super) fn id_rows(
        &self,
        identity: &Identity,
        id: Id<'_>,
    ) -> Result<Vec<IdRow>, StoreError> {
        let wanted = [
            id.text,
            id.host,
            id.alias,
            &*identity.kind,
            &*identity.network,
        ];
        // Compared here, because nearly all ids are new: there is nothing to compare then, and
        // nothing but a number had to be handed over.
        let mut found = Vec::new();
        self.database.find_ids(id.hash, &mut |row| {
            if says(row, wanted)? {
                found.push(self.id_row(row)?);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if found.len() > 1 {
            found.sort_unstable_by_key(|row| row.row);
            found.dedup_by_key(|row| row.row);
        }
        Ok(found)
    }

    fn id_row(&self, row: &dyn Row) -> Result<IdRow, StoreError> {
        let mut id_row = IdRow {
            row: row.get(5)?,
            key: row.get(6)?,
            movable: row.get(7)?,
            first_seen_us: row.get(8)?,
            last_seen_us: row.get(9)?,
        };
        if let Some(seen) = self.sighting(id_row.row) {
            (id_row.first_seen_us, id_row.last_seen_us) = seen;
        }
        Ok(id_row)
    }

    /// Brings the time of the last sight up to date; from when until when that is not needed
    /// again.
    fn refresh_stable(&mut self, row: IdRow) -> (i64, i64) {
        let at_us = self.at_us();
        let due_us = row.last_seen_us.saturating_add(STABLE_REFRESH_US);
        if at_us >= row.first_seen_us && at_us < due_us {
            return (row.first_seen_us, due_us);
        }
        self.widen(row);
        let last_us = row.last_seen_us.max(at_us);
        (
            row.first_seen_us.min(at_us),
            last_us.saturating_add(STABLE_REFRESH_US),
        )
    }

    /// Who was last seen under one of the identity's movable aliases.
    fn newest_holder(
        &self,
        identity: &Identity,
        ids: &[Id<'_>],
    ) -> Result<Option<i64>, StoreError> {
        let mut newest: Option<IdRow> = None;
        for id in ids {
            let mut rows = self.id_rows(identity, *id)?;
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
                None => self.insert_id(identity, *id, key, (at_us, at_us))?,
            };
            if row.movable {
                self.widen(row);
                movable.push(row);
            }
        }
        Ok(movable)
    }

    /// Writes a row of `ids`.
    pub(super) fn insert_id(
        &mut self,
        identity: &Identity,
        id: Id<'_>,
        key: i64,
        (first_seen_us, last_seen_us): (i64, i64),
    ) -> Result<IdRow, StoreError> {
        let row = self.database.new_id_row(id.hash);
        self.send(
            Held::InsertId,
            cells![
                key,
                id.hash,
                id.is_canonical(),
                id.movable,
                first_seen_us,
                last_seen_us,
                &*identity.network,
                &*identity.kind,
                id.alias,
                id.host,
                id.text,
                row
            ],
        )?;
        Ok(IdRow {
            row,
            key,
            movable: id.movable,
            first_seen_us,
            last_seen_us,
        })
    }
}
