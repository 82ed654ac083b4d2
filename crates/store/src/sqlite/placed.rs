//! Which hashes the table `id_places` certainly does not hold, from memory.
//!
//! What is in the table when a file is opened has to be read for that. Of a large file this would take
//! long, and nobody should have to wait for it: it is read a stretch at a time, in the order of the
//! hashes, beside what is written. Until then every hash that lies beyond may be there.

use super::filter::Filter;
use crate::StoreError;
use rusqlite::Connection;

/// Rows that are read when a file is opened: that takes about a second.
const ROWS_AT_ONCE_MAX: u64 = if cfg!(test) { 16 } else { 8_000_000 };
/// Rows that one transaction reads on, in about two milliseconds.
const STRETCH_ROWS: i64 = if cfg!(test) { 5 } else { 16_384 };

/// If nothing was loaded, every hash may be there.
#[derive(Debug, Default)]
pub(super) struct Placed {
    filter: Filter,
    /// From this hash on the table has not been read.
    unread_from: Option<i64>,
}

impl Placed {
    /// Of a table that has about so many rows.
    pub(super) fn load(connection: &Connection, rows: u64) -> Result<Self, StoreError> {
        let mut placed = Self {
            filter: Filter::for_rows(rows),
            unread_from: Some(i64::MIN),
        };
        while rows <= ROWS_AT_ONCE_MAX && placed.unread_from.is_some() {
            placed.read_on(connection)?;
        }
        Ok(placed)
    }

    /// Reads another stretch of the table, if there is more of it.
    pub(super) fn read_on(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let Some(from) = self.unread_from else {
            return Ok(());
        };
        let mut statement = connection
            .prepare_cached("SELECT hash FROM id_places WHERE hash >= ?1 ORDER BY hash LIMIT ?2")?;
        let mut rows = statement.query([from, STRETCH_ROWS])?;
        let mut last: Option<i64> = None;
        while let Some(row) = rows.next()? {
            let hash = row.get(0)?;
            self.filter.insert(hash);
            last = Some(hash);
        }
        // Further rows of the last hash need not be read: it is known now.
        self.unread_from = last.and_then(|hash| hash.checked_add(1));
        Ok(())
    }

    /// Told before a row is put into the table, read or not: where it is read up to says nothing of
    /// rows that come later.
    pub(super) fn insert(&mut self, hash: i64) {
        self.filter.insert(hash);
    }

    pub(super) fn may_hold(&self, hash: i64) -> bool {
        self.unread_from.is_some_and(|from| hash >= from) || self.filter.may_hold(hash)
    }

    #[cfg(test)]
    pub(super) const fn layers(&self) -> usize {
        self.filter.layers()
    }

    /// What takes every hash for known.
    #[cfg(test)]
    pub(super) fn overfull() -> Self {
        Self {
            filter: Filter::overfull(),
            unread_from: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::migrate::{MIGRATIONS, migrate};
    use super::*;
    use proptest::prelude::*;

    fn table(hashes: &[i64]) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, 1, MIGRATIONS).unwrap();
        for (row, hash) in hashes.iter().enumerate() {
            put(&connection, *hash, row as i64);
        }
        connection
    }

    fn put(connection: &Connection, hash: i64, row: i64) {
        let sql = "INSERT INTO id_places(hash, row) VALUES (?1, ?2)";
        connection.execute(sql, [hash, row]).unwrap();
    }

    #[test]
    fn a_small_table_is_read_at_once() {
        let hashes: Vec<i64> = (0..16).map(|number| number * 7_919).collect();
        let placed = Placed::load(&table(&hashes), 16).unwrap();
        assert_eq!(placed.unread_from, None);
        assert!(hashes.iter().all(|hash| placed.may_hold(*hash)));
        let vain = (1..1_000).filter(|number| placed.may_hold(number * 7_919 + 1));
        assert!(vain.count() < 60);
    }

    #[test]
    fn a_large_table_is_read_on_while_every_hash_beyond_may_be_there() {
        let connection = table(&(0..100).map(|number| number * 1_000).collect::<Vec<_>>());
        let mut placed = Placed::load(&connection, 100).unwrap();
        assert!((0..100).all(|number| placed.may_hold(number * 1_000 + 1)));
        for stretch in 1..=20 {
            placed.read_on(&connection).unwrap();
            assert!((0..100).all(|number| placed.may_hold(number * 1_000)));
            let read = stretch * 5 - 1;
            assert!((read..100).all(|number| placed.may_hold(number * 1_000 + 1)));
            let vain = (0..read).filter(|number| placed.may_hold(number * 1_000 + 1));
            assert!(vain.count() <= 10);
        }
        placed.read_on(&connection).unwrap();
        assert_eq!(placed.unread_from, None);
        assert!(!placed.may_hold(i64::MAX) || !placed.may_hold(i64::MAX - 1));
    }

    #[test]
    fn the_first_and_the_last_of_all_hashes_are_read_and_many_rows_of_one_too() {
        let mut hashes = vec![i64::MIN, i64::MAX];
        hashes.extend([7; 40]);
        let connection = table(&hashes);
        let mut placed = Placed::load(&connection, 100).unwrap();
        for _ in 0..3 {
            placed.read_on(&connection).unwrap();
            assert!(hashes.iter().all(|hash| placed.may_hold(*hash)));
        }
        assert_eq!(placed.unread_from, None);
    }

    #[test]
    fn without_loading_every_hash_may_be_there() {
        let mut placed = Placed::default();
        placed.insert(1);
        placed.read_on(&table(&[])).unwrap();
        assert!(placed.may_hold(1) && placed.may_hold(2));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn nothing_in_the_table_is_absent_however_reading_and_writing_meet(
            first in prop::collection::vec(-60_i64..60, 0..60),
            steps in prop::collection::vec(prop::option::of(-60_i64..60), 0..60),
        ) {
            let connection = table(&first);
            let mut placed = Placed::load(&connection, first.len() as u64).unwrap();
            let mut all = first;
            for step in steps {
                match step {
                    Some(hash) => {
                        placed.insert(hash);
                        put(&connection, hash, all.len() as i64);
                        all.push(hash);
                    }
                    None => placed.read_on(&connection).unwrap(),
                }
                prop_assert!(all.iter().all(|hash| placed.may_hold(*hash)));
            }
        }
    }
}
