//! From what an answer calls an object to the object's key.

use super::work::{Fresh, Work};
use crate::StoreError;
use kittiwake_model::{Identity, Key, Reference};
use rusqlite::params;

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
}

impl Id<'_> {
    fn is_canonical(self) -> bool {
        self.alias.is_empty()
    }
}

/// One row of `ids`, as far as resolving needs it.
struct IdRow {
    key: i64,
    first_seen_us: i64,
    last_seen_us: i64,
}

fn ids_of(identity: &Identity) -> impl Iterator<Item = Id<'_>> {
    let canonical = identity.canonical.as_deref().map(|id| Id {
        alias: "",
        text: id,
        host: "",
        movable: false,
    });
    canonical
        .into_iter()
        .chain(identity.aliases.iter().map(|alias| Id {
            alias: &alias.name,
            text: &alias.id,
            host: &alias.host,
            movable: alias.movable,
        }))
}

impl Work<'_> {
    /// The key of what `reference` points at; `objects` are the keys of the commit's objects.
    pub(super) fn key_of(
        &mut self,
        reference: &Reference,
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
        identity: &Identity,
        known_as: Option<Key>,
    ) -> Result<i64, StoreError> {
        if known_as.is_none()
            && let Some(key) = self.identities.get(identity)
        {
            return Ok(self.memory.follow(*key));
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
        let mut found: Vec<i64> = known_as.into_iter().collect();
        let mut has_stable = false;
        let mut missing: Vec<Id<'_>> = Vec::new();
        for id in ids_of(identity) {
            if id.movable {
                missing.push(id);
                continue;
            }
            has_stable = true;
            let rows = self.stable_rows(identity, id)?;
            if rows.is_empty() {
                missing.push(id);
            }
            for row in rows {
                found.push(row.key);
                self.refresh_stable(identity, id, &row)?;
            }
        }
        found.sort_unstable();
        found.dedup();
        let by_name_only = found.is_empty() && !has_stable;
        if by_name_only {
            found.extend(self.newest_holder(identity)?);
        }
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
        if !by_name_only || self.fresh.contains_key(&key) {
            self.add_ids(identity, &missing, key)?;
        }
        self.identities.insert(identity.clone(), key);
        Ok(key)
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

    fn stable_rows(&self, identity: &Identity, id: Id<'_>) -> Result<Vec<IdRow>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT key, first_seen_us, last_seen_us FROM ids
             WHERE network = ?1 AND type = ?2 AND alias = ?3 AND id = ?4 AND host = ?5
               AND movable = 0",
        )?;
        let rows = statement.query_map(
            params![
                &*identity.network,
                &*identity.kind,
                id.alias,
                id.text,
                id.host
            ],
            |row| {
                Ok(IdRow {
                    key: row.get(0)?,
                    first_seen_us: row.get(1)?,
                    last_seen_us: row.get(2)?,
                })
            },
        )?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn refresh_stable(
        &self,
        identity: &Identity,
        id: Id<'_>,
        row: &IdRow,
    ) -> Result<(), StoreError> {
        let at_us = self.at_us();
        if at_us >= row.first_seen_us && at_us < row.last_seen_us.saturating_add(STABLE_REFRESH_US)
        {
            return Ok(());
        }
        self.execute(
            "UPDATE ids SET first_seen_us = min(first_seen_us, ?7),
                            last_seen_us = max(last_seen_us, ?7)
             WHERE network = ?1 AND type = ?2 AND alias = ?3 AND id = ?4 AND host = ?5
               AND key = ?6",
            params![
                &*identity.network,
                &*identity.kind,
                id.alias,
                id.text,
                id.host,
                row.key,
                at_us
            ],
        )?;
        Ok(())
    }

    /// Who was last seen under one of the identity's movable aliases.
    fn newest_holder(&self, identity: &Identity) -> Result<Option<i64>, StoreError> {
        let mut newest: Option<(i64, i64)> = None;
        let mut statement = self.connection.prepare_cached(
            "SELECT key, last_seen_us FROM ids
             WHERE network = ?1 AND type = ?2 AND alias = ?3 AND id = ?4 AND host = ?5
             ORDER BY last_seen_us DESC, key LIMIT 1",
        )?;
        for id in ids_of(identity) {
            let mut rows = statement.query(params![
                &*identity.network,
                &*identity.kind,
                id.alias,
                id.text,
                id.host
            ])?;
            if let Some(row) = rows.next()? {
                let (key, last_seen_us): (i64, i64) = (row.get(0)?, row.get(1)?);
                if newest.is_none_or(|(_, newest_us)| last_seen_us > newest_us) {
                    newest = Some((key, last_seen_us));
                }
            }
        }
        Ok(newest.map(|(key, _)| key))
    }

    /// Writes the ids that the store lacks, and who holds the movable ones now.
    fn add_ids(&self, identity: &Identity, ids: &[Id<'_>], key: i64) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO ids(network, type, alias, id, host, key, canonical, movable,
                             first_seen_us, last_seen_us)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)
             ON CONFLICT DO UPDATE SET first_seen_us = min(first_seen_us, excluded.first_seen_us),
                                       last_seen_us = max(last_seen_us, excluded.last_seen_us)
             WHERE movable AND (excluded.first_seen_us < first_seen_us
                                OR excluded.last_seen_us > last_seen_us)",
        )?;
        for id in ids {
            statement.execute(params![
                &*identity.network,
                &*identity.kind,
                id.alias,
                id.text,
                id.host,
                key,
                id.is_canonical(),
                id.movable,
                self.at_us()
            ])?;
        }
        Ok(())
    }
}
