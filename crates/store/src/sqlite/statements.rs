//! Held statements.
//!
//! The connection's own cache finds a statement by its whole text, which for short statements is
//! a good part of their cost; these are found by their place.

use crate::StoreError;
use crate::rules::statements::Held;
use rusqlite::{Connection, Statement};
use std::cell::{RefCell, RefMut};

/// Statements that only SQLite has: ids are found in a way of its own (see `places`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    FindPlaced,
    GetId,
    InsertPlace,
}

const OWN: usize = 3;

impl Own {
    const fn sql(self) -> &'static str {
        match self {
            Self::FindPlaced => {
                "SELECT id, host, alias, type, network, row, key, movable, first_seen_us,
                        last_seen_us
                 FROM id_places JOIN ids ON ids.rowid = row WHERE id_places.hash = ?1"
            }
            Self::GetId => {
                "SELECT id, host, alias, type, network, rowid, key, movable, first_seen_us,
                        last_seen_us
                 FROM ids WHERE rowid = ?1"
            }
            Self::InsertPlace => "INSERT OR IGNORE INTO id_places(hash, row) VALUES (?1, ?2)",
        }
    }
}

/// All held statements, each prepared when it is first wanted.
#[derive(Debug)]
pub(super) struct Statements<'c> {
    connection: &'c Connection,
    held: [RefCell<Option<Statement<'c>>>; Held::COUNT],
    own: [RefCell<Option<Statement<'c>>>; OWN],
}

impl<'c> Statements<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self {
            connection,
            held: std::array::from_fn(|_| RefCell::new(None)),
            own: std::array::from_fn(|_| RefCell::new(None)),
        }
    }

    /// The statement, for one use: nobody asks for it again before that is over.
    pub(super) fn get(&self, held: Held) -> Result<RefMut<'_, Statement<'c>>, StoreError> {
        self.prepared(&self.held[held.place()], || held.sql())
    }

    /// The same for a statement of SQLite's own.
    pub(super) fn own(&self, own: Own) -> Result<RefMut<'_, Statement<'c>>, StoreError> {
        self.prepared(&self.own[own as usize], || own.sql().to_owned())
    }

    fn prepared<'s>(
        &self,
        place: &'s RefCell<Option<Statement<'c>>>,
        sql: impl FnOnce() -> String,
    ) -> Result<RefMut<'s, Statement<'c>>, StoreError> {
        let mut place = place.borrow_mut();
        let statement = match place.take() {
            Some(statement) => statement,
            None => self.connection.prepare(&sql())?,
        };
        Ok(RefMut::map(place, |place| place.insert(statement)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::migrate::{MIGRATIONS, migrate};
    use super::*;
    use kittiwake_model::Table;

    #[test]
    fn every_statement_has_a_place_of_its_own() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, 1, MIGRATIONS).unwrap();
        let statements = Statements::new(&connection);
        let mut all = vec![
            Held::InsertId,
            Held::WidenId,
            Held::HasSpell,
            Held::HasLaterSpell,
            Held::SelectDepth,
            Held::SetDepth,
            Held::InsertRelation,
            Held::SelectVanished,
            Held::File,
            Held::Unfile,
        ];
        for table in Table::ALL {
            all.push(Held::SelectObject(*table));
            all.push(Held::ReplaceObject(*table));
            all.push(Held::RestampObject(*table));
            all.push(Held::SelectObserved(*table));
        }
        let mut places: Vec<usize> = all.iter().map(|held| held.place()).collect();
        for held in all {
            drop(statements.get(held).unwrap());
        }
        places.sort_unstable();
        assert_eq!(places, (0..Held::COUNT).collect::<Vec<_>>());
        for own in [Own::FindPlaced, Own::GetId, Own::InsertPlace] {
            drop(statements.own(own).unwrap());
        }
    }
}
