//! The statements of the busiest paths, prepared once and held by the writer.
//!
//! The connection's own cache finds a statement by its whole text, which for short statements is
//! a good part of their cost; these are found by their place.

use crate::StoreError;
use kittiwake_model::Table;
use rusqlite::{Connection, Statement};
use std::cell::{RefCell, RefMut};

/// A statement that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    FindId,
    GetId,
    InsertPlace,
    InsertId,
    WidenId,
    HasSpell,
    SelectObject(Table),
    ReplaceObject(Table),
    RestampObject(Table),
    SelectObserved(Table),
}

const FIXED: usize = 6;
const TABLES: usize = Table::ALL.len();

impl Held {
    const fn place(self) -> usize {
        match self {
            Self::FindId => 0,
            Self::InsertId => 1,
            Self::WidenId => 2,
            Self::HasSpell => 3,
            Self::GetId => 4,
            Self::InsertPlace => 5,
            Self::SelectObject(table) => FIXED + table as usize,
            Self::ReplaceObject(table) => FIXED + TABLES + table as usize,
            Self::RestampObject(table) => FIXED + 2 * TABLES + table as usize,
            Self::SelectObserved(table) => FIXED + 3 * TABLES + table as usize,
        }
    }

    fn sql(self) -> String {
        match self {
            Self::FindId => String::from(
                "SELECT id, host, alias, type, network, row, key, movable, first_seen_us,
                        last_seen_us
                 FROM id_places JOIN ids ON ids.rowid = row WHERE id_places.hash = ?1",
            ),
            Self::GetId => String::from(
                "SELECT id, host, alias, type, network, rowid, key, movable, first_seen_us,
                        last_seen_us
                 FROM ids WHERE rowid = ?1",
            ),
            Self::InsertPlace => {
                String::from("INSERT OR IGNORE INTO id_places(hash, row) VALUES (?1, ?2)")
            }
            Self::InsertId => String::from(
                "INSERT INTO ids(key, hash, canonical, movable, first_seen_us, last_seen_us,
                                 network, type, alias, host, id, rowid)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            ),
            Self::WidenId => String::from(
                "UPDATE ids SET first_seen_us = min(first_seen_us, ?2),
                                last_seen_us = max(last_seen_us, ?3)
                 WHERE rowid = ?1",
            ),
            Self::HasSpell => String::from(
                "SELECT 1 FROM invalid_users
                 WHERE key = ?1 AND from_us < ?2 AND (until_us IS NULL OR until_us > ?2)",
            ),
            Self::SelectObject(table) => {
                let columns = list(table, |column| format!("{column}, "));
                let name = table.name();
                format!("SELECT {columns}extra, observed FROM {name} WHERE key = ?1")
            }
            Self::ReplaceObject(table) => replace_object(table),
            Self::SelectObserved(table) => {
                format!("SELECT observed FROM {} WHERE key = ?1", table.name())
            }
            Self::RestampObject(table) => {
                format!("UPDATE {} SET observed = ?1 WHERE key = ?2", table.name())
            }
        }
    }
}

fn list(table: Table, form: fn(&str) -> String) -> String {
    let columns = table.columns().iter();
    columns.map(|column| form(column.name)).collect()
}

fn replace_object(table: Table) -> String {
    let columns = list(table, |column| format!("{column}, "));
    let updates = list(table, |column| format!("{column} = excluded.{column}, "));
    let places: Vec<String> = (1..=table.columns().len() + 3)
        .map(|place| format!("?{place}"))
        .collect();
    format!(
        "INSERT INTO {}({columns}extra, observed, key) VALUES ({}) ON CONFLICT DO UPDATE SET \
         {updates}extra = excluded.extra, observed = excluded.observed",
        table.name(),
        places.join(", ")
    )
}

/// All held statements, each prepared when it is first wanted.
#[derive(Debug)]
pub(super) struct Statements<'c> {
    connection: &'c Connection,
    held: [RefCell<Option<Statement<'c>>>; FIXED + 4 * TABLES],
}

impl<'c> Statements<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self {
            connection,
            held: std::array::from_fn(|_| RefCell::new(None)),
        }
    }

    /// The statement, for one use: nobody asks for it again before that is over.
    pub(super) fn get(&self, held: Held) -> Result<RefMut<'_, Statement<'c>>, StoreError> {
        let mut place = self.held[held.place()].borrow_mut();
        let statement = match place.take() {
            Some(statement) => statement,
            None => self.connection.prepare(&held.sql())?,
        };
        Ok(RefMut::map(place, |place| place.insert(statement)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::migrate::{MIGRATIONS, migrate};
    use super::*;

    #[test]
    fn every_statement_has_a_place_of_its_own() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, 1, MIGRATIONS).unwrap();
        let statements = Statements::new(&connection);
        let mut all = vec![
            Held::FindId,
            Held::GetId,
            Held::InsertPlace,
            Held::InsertId,
            Held::WidenId,
            Held::HasSpell,
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
        assert_eq!(places, (0..FIXED + 4 * TABLES).collect::<Vec<_>>());
    }
}
