//! A connection as the rules see it.

use super::checkpoint::Checkpoints;
use super::error::refused;
use super::places::Places;
use super::statements::{Own, Statements};
use crate::StoreError;
use crate::cell::{Cell, Row};
use crate::database::{Database, EachRow, Keeper, Reader, Sql};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Statement, ToSql, params_from_iter};
use std::borrow::Cow;
use std::cell::RefCell;

#[derive(Debug)]
pub(super) struct SqliteDatabase<'c> {
    connection: &'c Connection,
    statements: Statements<'c>,
    /// Where the newest ids are.
    places: RefCell<Places>,
    checkpoints: RefCell<Option<Checkpoints>>,
}

impl<'c> SqliteDatabase<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self {
            connection,
            statements: Statements::new(connection),
            places: RefCell::default(),
            checkpoints: RefCell::default(),
        }
    }

    pub(super) fn with_checkpoints(mut self, checkpoints: Checkpoints) -> Self {
        self.checkpoints = RefCell::new(Some(checkpoints));
        self
    }

    /// Moves a stretch of the newest ids to where the others are, if there are many.
    fn move_places(&self) -> Result<(), StoreError> {
        let mut places = self.places.borrow_mut();
        for (hash, row) in places.next_stretch() {
            let mut statement = self.statements.own(Own::InsertPlace)?;
            statement.execute([hash, row]).map_err(refused)?;
        }
        if let Some(until) = places.moved_until() {
            self.connection
                .prepare_cached("UPDATE rules SET value = ?2 WHERE name = ?1")?
                .execute([Places::MOVED, &until.to_string()])
                .map_err(refused)?;
        }
        places.read_on(self.connection)
    }

    #[cfg(test)]
    pub(super) const fn places(&self) -> &RefCell<Places> {
        &self.places
    }
}

impl Database for SqliteDatabase<'_> {
    fn execute(&self, sql: Sql<'_>, cells: &[Cell<'_>]) -> Result<usize, StoreError> {
        let changed = match sql {
            Sql::Held(held) => self.statements.get(held)?.execute(params_from_iter(cells)),
            Sql::Text(text) => self
                .connection
                .prepare_cached(text)?
                .execute(params_from_iter(cells)),
        };
        changed.map_err(refused)
    }

    fn send(&self, sql: Sql<'_>, cells: &[Cell<'_>]) -> Result<(), StoreError> {
        self.execute(sql, cells).map(drop)
    }

    fn query(
        &self,
        sql: Sql<'_>,
        cells: &[Cell<'_>],
        each: &mut EachRow<'_>,
    ) -> Result<(), StoreError> {
        match sql {
            Sql::Held(held) => read(&mut *self.statements.get(held)?, cells, each),
            Sql::Text(text) => read(&mut *self.connection.prepare_cached(text)?, cells, each),
        }
    }

    fn stream(
        &self,
        sql: &str,
        cells: &[Cell<'_>],
        each: &mut EachRow<'_>,
    ) -> Result<(), StoreError> {
        self.query(Sql::Text(sql), cells, each)
    }

    fn find_ids(&self, hash: i64, each: &mut EachRow<'_>) -> Result<(), StoreError> {
        let places = self.places.borrow();
        for row in places.rows_of(hash) {
            let mut statement = self.statements.own(Own::GetId)?;
            read(&mut statement, &[Cell::Integer(row)], each)?;
        }
        if !places.may_be_placed(hash) {
            return Ok(());
        }
        let mut statement = self.statements.own(Own::FindPlaced)?;
        read(&mut statement, &[Cell::Integer(hash)], each)
    }

    fn new_id_row(&self, hash: i64) -> i64 {
        self.places.borrow_mut().take_row(hash)
    }

    fn ids_changed(&self) {}
}

impl Keeper for SqliteDatabase<'_> {
    fn load(&self) -> Result<(), StoreError> {
        *self.places.borrow_mut() = Places::load(self.connection)?;
        Ok(())
    }

    fn begin(&self) -> Result<(), StoreError> {
        Ok(self.connection.execute_batch("BEGIN IMMEDIATE")?)
    }

    fn commit(&self) -> Result<(), StoreError> {
        self.move_places()?;
        Ok(self.connection.execute_batch("COMMIT")?)
    }

    fn roll_back(&self) -> Result<(), StoreError> {
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        self.load()
    }

    fn committed(&self, rows: usize) {
        if let Some(checkpoints) = &mut *self.checkpoints.borrow_mut() {
            checkpoints.committed(self.connection, rows);
        }
    }

    fn finish(&self) {
        if let Some(checkpoints) = self.checkpoints.take() {
            checkpoints.finish();
        }
        let tidied = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = tidied {
            tracing::warn!(%error, "the write-ahead log could not be emptied; it stays valid");
        }
    }

    fn copied(&self) -> Result<(), StoreError> {
        Ok(Places::move_all(self.connection)?)
    }

    fn limit_pages(&self, pages: u32) -> Result<(), StoreError> {
        self.connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
        Ok(())
    }

    fn sync_fully(&self) -> Result<(), StoreError> {
        Ok(self.connection.pragma_update(None, "synchronous", "FULL")?)
    }
}

impl Reader for SqliteDatabase<'_> {
    fn begin_view(&self) -> Result<(), StoreError> {
        // From the first reading on, whatever others write is not seen.
        self.connection.prepare_cached("BEGIN")?.execute([])?;
        Ok(())
    }

    fn end_view(&self) {
        let ended = self.connection.prepare_cached("COMMIT");
        if let Err(error) = ended.and_then(|mut commit| commit.execute([])) {
            tracing::debug!(%error, "a reading transaction could not be ended");
        }
    }

    fn select_text(&self, sql: &str) -> Result<Vec<Vec<Option<String>>>, StoreError> {
        let mut statement = self.connection.prepare(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        let mut lines = Vec::new();
        while let Some(row) = rows.next()? {
            let cells = (0..columns).map(|place| Ok(SqliteRow(row).cell(place)?.into_text()));
            lines.push(cells.collect::<Result<_, StoreError>>()?);
        }
        Ok(lines)
    }
}

fn read(
    statement: &mut Statement<'_>,
    cells: &[Cell<'_>],
    each: &mut EachRow<'_>,
) -> Result<(), StoreError> {
    let mut rows = statement.query(params_from_iter(cells))?;
    while let Some(row) = rows.next()? {
        if each(&SqliteRow(row))?.is_break() {
            break;
        }
    }
    Ok(())
}

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

struct SqliteRow<'r>(&'r rusqlite::Row<'r>);

impl Row for SqliteRow<'_> {
    fn cell(&self, place: usize) -> Result<Cell<'_>, StoreError> {
        Ok(match self.0.get_ref(place)? {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Integer(number),
            ValueRef::Real(number) => Cell::Real(number),
            ValueRef::Text(text) => Cell::Text(match std::str::from_utf8(text) {
                Ok(text) => Cow::Borrowed(text),
                Err(_) => String::from_utf8_lossy(text),
            }),
            ValueRef::Blob(bytes) => Cell::Bytes(Cow::Borrowed(bytes)),
        })
    }
}
