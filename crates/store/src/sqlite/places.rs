//! Where the rows of an id are, by the id's hash.
//!
//! Hashes come in no order. An index that took in each row at once would be touched in as many
//! places as there are new ids, with every transaction, and most of what is written to the disk
//! would be that index. So the newest rows of `ids` are found from memory. When they are many, they
//! are moved into the table `id_places` in the order of their hashes, a stretch at a time: each
//! page of the table is then written once for many rows. `rules` says up to which row all have been
//! moved; whoever opens the file reads the rows beyond it.

use super::placed::Placed;
use crate::numbers::NumberMap;
use crate::{StoreError, StoreErrorKind};
use rusqlite::{Connection, OptionalExtension as _};
use std::cmp::Reverse;
use std::collections::hash_map::Entry;

/// Newest rows after which they begin to be moved: about 1 MB.
const YOUNG_MAX: usize = if cfg!(test) { 8 } else { 1 << 15 };
/// Rows that one transaction moves.
const STRETCH: usize = if cfg!(test) { 5 } else { 4_096 };

/// Rows by hash. Nearly every hash has one row; further ones are kept apart.
#[derive(Debug, Default)]
struct Rows {
    first: NumberMap<i64, i64>,
    further: Vec<(i64, i64)>,
}

impl Rows {
    fn insert(&mut self, hash: i64, row: i64) {
        match self.first.entry(hash) {
            Entry::Vacant(place) => {
                place.insert(row);
            }
            Entry::Occupied(_) => self.further.push((hash, row)),
        }
    }

    fn of(&self, hash: i64) -> impl Iterator<Item = i64> {
        let first = self.first.get(&hash).copied();
        let further = self.further.iter().filter(move |it| it.0 == hash);
        first.into_iter().chain(further.map(|it| it.1))
    }

    fn len(&self) -> usize {
        self.first.len() + self.further.len()
    }

    /// All of them, so that the last is the one with the least hash.
    fn sorted(&self) -> Vec<(i64, i64)> {
        let first = self.first.iter().map(|(hash, row)| (*hash, *row));
        let mut all: Vec<_> = first.chain(self.further.iter().copied()).collect();
        all.sort_unstable_by_key(|place| Reverse(*place));
        all
    }
}

#[derive(Debug, Default)]
pub(super) struct Places {
    /// The newest.
    young: Rows,
    /// Those that are being moved; they are found here until all have been.
    moving: Rows,
    /// What is left to move.
    left: Vec<(i64, i64)>,
    /// The last row of those that are being moved.
    moving_until: i64,
    /// The row that the next id gets. Counted here, because the last row may be deleted again and
    /// a number below those that have been moved must not be given out twice.
    next_row: i64,
    /// What `id_places` may hold.
    placed: Placed,
}

impl Places {
    /// The name in `rules` of the last row of which all before it are in `id_places`.
    pub(super) const MOVED: &str = "id_places";

    pub(super) fn load(connection: &Connection) -> Result<Self, StoreError> {
        let moved: Option<String> = connection
            .query_row(
                "SELECT value FROM rules WHERE name = ?1",
                [Self::MOVED],
                |row| row.get(0),
            )
            .optional()?;
        let moved: i64 = moved.unwrap_or_default().parse().map_err(|_| {
            StoreError::new(
                StoreErrorKind::Corrupt,
                "the rules do not say which ids are in id_places",
            )
        })?;
        let mut places = Self {
            next_row: moved + 1,
            placed: Placed::load(connection, u64::try_from(moved).unwrap_or(0))?,
            ..Self::default()
        };
        let mut statement =
            connection.prepare("SELECT hash, rowid FROM ids WHERE rowid > ?1 ORDER BY rowid")?;
        let mut rows = statement.query([moved])?;
        while let Some(row) = rows.next()? {
            places.add(row.get(0)?, row.get(1)?);
        }
        Ok(places)
    }

    /// Makes the table anew from all rows, in stretches, so that sorting takes little memory.
    pub(super) fn move_all(connection: &Connection) -> rusqlite::Result<()> {
        const ROWS: i64 = if cfg!(test) { 7 } else { 1 << 18 };
        connection.execute("DELETE FROM id_places", [])?;
        let last: i64 =
            connection.query_row("SELECT coalesce(max(rowid), 0) FROM ids", [], |row| {
                row.get(0)
            })?;
        let mut begin = 0;
        while begin < last {
            connection.execute(
                "INSERT INTO id_places SELECT hash, rowid FROM ids
                 WHERE rowid > ?1 AND rowid <= ?2 ORDER BY hash, rowid",
                [begin, begin + ROWS],
            )?;
            begin += ROWS;
        }
        connection.execute(
            "UPDATE rules SET value = ?2 WHERE name = ?1",
            [Self::MOVED, &last.to_string()],
        )?;
        Ok(())
    }

    /// The row for another id.
    pub(super) fn take_row(&mut self, hash: i64) -> i64 {
        let row = self.next_row;
        self.add(hash, row);
        row
    }

    fn add(&mut self, hash: i64, row: i64) {
        self.young.insert(hash, row);
        self.next_row = self.next_row.max(row + 1);
    }

    /// The rows of a hash that are found here; some may be in the table as well.
    pub(super) fn rows_of(&self, hash: i64) -> impl Iterator<Item = i64> {
        self.young.of(hash).chain(self.moving.of(hash))
    }

    /// Whether the table may hold rows of a hash.
    pub(super) fn may_be_placed(&self, hash: i64) -> bool {
        self.placed.may_hold(hash)
    }

    /// Gets to know more of what was in the table when the file was opened, if it is large.
    pub(super) fn read_on(&mut self, connection: &Connection) -> Result<(), StoreError> {
        self.placed.read_on(connection)
    }

    /// What has to be moved next, in the order of the hashes, if there are many.
    pub(super) fn next_stretch(&mut self) -> impl Iterator<Item = (i64, i64)> + use<> {
        if self.left.is_empty() && self.young.len() > YOUNG_MAX {
            self.moving = std::mem::take(&mut self.young);
            self.left = self.moving.sorted();
            self.moving_until = self.next_row - 1;
        }
        // So many are left only where the program has ended again and again before all were moved.
        let is_behind = self.left.len() > 2 * YOUNG_MAX;
        let stretch = if is_behind { usize::MAX } else { STRETCH };
        let begin = self.left.len().saturating_sub(stretch);
        let stretch = self.left.split_off(begin);
        for (hash, _) in &stretch {
            self.placed.insert(*hash);
        }
        stretch.into_iter().rev()
    }

    /// The last row of those that were being moved, once all of them have been.
    pub(super) fn moved_until(&mut self) -> Option<i64> {
        if !self.left.is_empty() || self.moving.len() == 0 {
            return None;
        }
        self.moving = Rows::default();
        Some(self.moving_until)
    }

    #[cfg(test)]
    pub(super) const fn layers(&self) -> usize {
        self.placed.layers()
    }

    /// From now on every hash is taken for one that the table may hold.
    #[cfg(test)]
    pub(super) fn doubt_all(&mut self) {
        self.placed = Placed::overfull();
    }
}
