//! How an object is named in other places than its store: by the best of its ids.

use super::export::text;
use crate::cell::{Row, cells};
use crate::database::Database;
use crate::export::{Named, reference_text};
use crate::{StoreError, StoreErrorKind};
use std::collections::HashMap;
use std::rc::Rc;

/// Names that are remembered, at about 150 bytes each: relations lead to the same people again and
/// again.
const NAMES_MAX: usize = 1 << 16;

/// The best of an object's ids comes first; `docs/export.md` says which that is.
macro_rules! best_first {
    () => {
        "canonical DESC, movable, last_seen_us DESC, alias, host, id"
    };
}
pub(super) use best_first;

const BEST_ID: &str = concat!(
    "SELECT network, type, alias, host, id, movable FROM ids WHERE key = ?1 ORDER BY ",
    best_first!(),
    " LIMIT 1"
);

pub(super) struct Names<'d> {
    database: &'d dyn Database,
    known: HashMap<i64, Rc<Named>>,
}

impl<'d> Names<'d> {
    pub(super) fn new(database: &'d dyn Database) -> Self {
        Self {
            database,
            known: HashMap::new(),
        }
    }

    pub(super) fn of(&mut self, key: i64) -> Result<Rc<Named>, StoreError> {
        if let Some(named) = self.known.get(&key) {
            return Ok(named.clone());
        }
        let named = match self.look_up(key)? {
            Some(named) => named,
            // Inside JSON there are keys that were merged into others since.
            None => self.look_up_winner(key)?.ok_or_else(|| {
                StoreError::new(
                    StoreErrorKind::Corrupt,
                    format!("key {key} has no id; restore a copy of the file"),
                )
            })?,
        };
        let named = Rc::new(named);
        if self.known.len() >= NAMES_MAX {
            self.known.clear();
        }
        self.known.insert(key, named.clone());
        Ok(named)
    }

    fn look_up(&self, key: i64) -> Result<Option<Named>, StoreError> {
        self.database.first(BEST_ID, cells![key], |row| {
            Ok(Named {
                network: text(row, 0)?.into(),
                kind: text(row, 1)?.into(),
                id: id_text(row, 2)?,
            })
        })
    }

    fn look_up_winner(&self, key: i64) -> Result<Option<Named>, StoreError> {
        let winner = self.database.first(
            "SELECT winner FROM key_merges WHERE loser = ?1",
            cells![key],
            |row| row.get(0),
        )?;
        match winner {
            Some(winner) => self.look_up(winner),
            None => Ok(None),
        }
    }
}

/// The id in the four columns alias, host, id and movable.
pub(super) fn id_text(row: &dyn Row, place: usize) -> Result<String, StoreError> {
    Ok(reference_text(
        &text(row, place)?,
        &text(row, place + 1)?,
        &text(row, place + 2)?,
        row.get(place + 3)?,
    ))
}
