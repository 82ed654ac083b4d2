//! Times of last sights that are not in their rows yet.
//!
//! Most of what an answer tells of authors and tags is known: nothing changes but the time at which
//! it was last seen. A popular author's row would be written with every transaction for that alone.
//! While callers wait, such times are put off: each transaction notes its own in one row of
//! `put_off`, and they get to where they belong when nobody waits, when there are many, or after a
//! while. A crash loses none of them, because whoever opens the file reads what was put off.

use super::statements::Held;
use super::work::Work;
use crate::cell::cells;
use crate::database::Database;
use crate::error::unreadable;
use crate::record;
use crate::{StoreError, StoreErrorKind};
use kittiwake_model::{Name, Stamp, Table};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows of which a store is told at once that it will be asked for them.
const RESTAMPS_AT_ONCE: usize = 1_000;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Times {
    /// First and last sight, by row of `ids`.
    pub sightings: BTreeMap<i64, (i64, i64)>,
    /// When groups of objects were last observed, by key.
    pub restamps: BTreeMap<i64, Restamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Restamp {
    pub table: Table,
    /// The groups.
    pub names: Arc<[Name]>,
    pub stamp: Stamp,
}

/// One row of `put_off`.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// Row, first and last sight.
    sightings: Vec<(i64, i64, i64)>,
    restamps: Vec<Restamps>,
}

/// Objects of which the same groups were observed.
#[derive(Serialize, Deserialize)]
struct Restamps {
    table: String,
    groups: Vec<Name>,
    /// Key, time and log row.
    keys: Vec<(i64, i64, i64)>,
}

impl Times {
    pub(super) fn len(&self) -> usize {
        self.sightings.len() + self.restamps.len()
    }

    /// Takes in later ones.
    pub(super) fn append(&mut self, later: Self) {
        self.sightings.extend(later.sightings);
        self.restamps.extend(later.restamps);
    }

    /// What earlier transactions have put off.
    pub(super) fn load(database: &dyn Database) -> Result<Self, StoreError> {
        let mut times = Self::default();
        database.each("SELECT times FROM put_off ORDER BY id", &[], |row| {
            times.append(Self::from_text(&row.text(0)?)?);
            Ok(())
        })?;
        Ok(times)
    }

    fn from_text(text: &str) -> Result<Self, StoreError> {
        let corrupt = |what: String| {
            StoreError::new(
                StoreErrorKind::Corrupt,
                format!("times that were put off cannot be read: {what}"),
            )
        };
        let stored: Stored =
            serde_json::from_str(text).map_err(|error| corrupt(error.to_string()))?;
        let mut times = Self::default();
        for (row, first_us, last_us) in stored.sightings {
            times.sightings.insert(row, (first_us, last_us));
        }
        for restamps in stored.restamps {
            let table = Table::from_name(&restamps.table)
                .ok_or_else(|| corrupt(format!("there is no table {:?}", restamps.table)))?;
            let names: Arc<[Name]> = restamps.groups.into();
            for (key, at_us, log) in restamps.keys {
                let restamp = Restamp {
                    table,
                    names: Arc::clone(&names),
                    stamp: Stamp { at_us, log },
                };
                times.restamps.insert(key, restamp);
            }
        }
        Ok(times)
    }

    fn to_text(&self) -> serde_json::Result<String> {
        let mut restamps: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (key, restamp) in &self.restamps {
            let Stamp { at_us, log } = restamp.stamp;
            let keys = restamps.entry((restamp.table, &restamp.names)).or_default();
            keys.push((*key, at_us, log));
        }
        let stored = Stored {
            sightings: self
                .sightings
                .iter()
                .map(|(row, (first_us, last_us))| (*row, *first_us, *last_us))
                .collect(),
            restamps: restamps
                .into_iter()
                .map(|((table, names), keys)| Restamps {
                    table: table.name().to_owned(),
                    groups: names.to_vec(),
                    keys,
                })
                .collect(),
        };
        serde_json::to_string(&stored)
    }
}

impl Work<'_> {
    /// First and last sight of a row of `ids`, where the row does not have them yet.
    pub(super) fn sighting(&self, row: i64) -> Option<(i64, i64)> {
        let own = self.times.sightings.get(&row);
        own.or_else(|| self.memory.times.sightings.get(&row))
            .copied()
    }

    /// When groups of an object were last observed, where its row does not say so yet.
    pub(super) fn restamp(&self, key: i64) -> Option<&Restamp> {
        let own = self.times.restamps.get(&key);
        own.or_else(|| self.memory.times.restamps.get(&key))
    }

    /// Notes that nothing about an object changed but the time at which groups were observed.
    pub(super) fn put_off(&mut self, key: i64, restamp: Restamp) -> Result<(), StoreError> {
        // Another list of groups is no later version of this one: both count.
        if let Some(known) = self.restamp(key)
            && known.names != restamp.names
        {
            self.write_restamp(key, &known.clone())?;
        }
        self.times.restamps.insert(key, restamp);
        Ok(())
    }

    /// How many times are not in their rows.
    pub(super) fn unwritten(&self) -> usize {
        self.times.len() + self.memory.times.len()
    }

    /// Notes the times of this transaction, to be written by a later one.
    pub(super) fn put_off_times(&mut self) -> Result<(), StoreError> {
        if self.times.len() == 0 {
            return Ok(());
        }
        let times = std::mem::take(&mut self.times);
        let text = times
            .to_text()
            .map_err(|error| StoreError::invalid(error.to_string()))?;
        self.send("INSERT INTO put_off(times) VALUES (?1)", cells![text])?;
        self.memory.times.append(times);
        Ok(())
    }

    /// Writes all times that were put off, each once, in the order of the rows.
    pub(super) fn write_times(&mut self) -> Result<(), StoreError> {
        let has_earlier = self.memory.times.len() > 0;
        let mut times = std::mem::take(&mut self.memory.times);
        times.append(std::mem::take(&mut self.times));
        for (row, (first_us, last_us)) in times.sightings {
            self.send(Held::WidenId, cells![row, first_us, last_us])?;
        }
        self.write_restamps(&times.restamps)?;
        if has_earlier {
            self.send("DELETE FROM put_off", &[])?;
        }
        Ok(())
    }

    fn write_restamps(&self, restamps: &BTreeMap<i64, Restamp>) -> Result<(), StoreError> {
        let mut tables: BTreeMap<Table, Vec<i64>> = BTreeMap::new();
        for (key, restamp) in restamps {
            tables.entry(restamp.table).or_default().push(*key);
        }
        for (table, keys) in tables {
            for some in keys.chunks(RESTAMPS_AT_ONCE) {
                self.database.expect_observed(table, some)?;
                for key in some {
                    if let Some(restamp) = restamps.get(key) {
                        self.write_restamp(*key, restamp)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn write_restamp(&self, key: i64, restamp: &Restamp) -> Result<(), StoreError> {
        let held = Held::SelectObserved(restamp.table);
        let text = self.database.first(held, cells![key], |row| {
            record::restamped(&row.text(0)?, &restamp.names, restamp.stamp)
                .map_err(|error| unreadable(key, &error))
        })?;
        if let Some(text) = text.flatten() {
            self.send(Held::RestampObject(restamp.table), cells![text, key])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_off_reads_back() {
        let stamp = |at_us| Stamp { at_us, log: 3 };
        let names: Arc<[Name]> = ["card".into(), "counts".into()].into();
        let other: Arc<[Name]> = ["o'hara \"x\"".into()].into();
        let restamp = |table, names: &Arc<[Name]>, at_us| Restamp {
            table,
            names: Arc::clone(names),
            stamp: stamp(at_us),
        };
        let times = Times {
            sightings: BTreeMap::from([(1, (-5, 9)), (7, (2, i64::MAX))]),
            restamps: BTreeMap::from([
                (3, restamp(Table::Users, &names, 10)),
                (4, restamp(Table::Tags, &names, 11)),
                (5, restamp(Table::Users, &other, 12)),
                (6, restamp(Table::Users, &names, 13)),
            ]),
        };
        assert_eq!(Times::from_text(&times.to_text().unwrap()).unwrap(), times);
    }

    #[test]
    fn what_cannot_be_read_stops_the_program() {
        for text in [
            "",
            "{}",
            r#"{"sightings":[],"restamps":[{"table":"birds","groups":[],"keys":[]}]}"#,
        ] {
            let error = Times::from_text(text).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{text}");
        }
    }
}
