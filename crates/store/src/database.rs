//! What the rules of a store ask of a database.
//!
//! The rules hand over SQL with cells and get rows of cells back; which database it is they do not
//! know. The SQL is what SQLite and PostgreSQL both accept: the target of a conflict is spelt out,
//! the row that is there already is called `known`, results and lone parameters are cast where their
//! type cannot be seen. Two things are said as SQLite says them, and PostgreSQL's back end puts them
//! into its own words: `?1` for the first parameter, `min(a, b)` and `max(a, b)` for the lesser and
//! the greater of values.

use crate::StoreError;
use crate::cell::{Cell, Row};
use crate::rules::expected::Expected;
use crate::rules::statements::Held;
use kittiwake_model::Table;
use std::fmt;
use std::ops::ControlFlow;

/// A statement: one of those that a back end holds ready, or any other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sql<'s> {
    Held(Held),
    Text(&'s str),
}

impl<'s> From<&'s str> for Sql<'s> {
    fn from(text: &'s str) -> Self {
        Self::Text(text)
    }
}

impl From<Held> for Sql<'_> {
    fn from(held: Held) -> Self {
        Self::Held(held)
    }
}

/// What is done with each row of an answer, and whether another is wanted.
pub(crate) type EachRow<'e> = dyn FnMut(&dyn Row) -> Result<ControlFlow<()>, StoreError> + 'e;

/// One connection to a database.
pub(crate) trait Database: fmt::Debug {
    /// Runs a statement; gives the number of rows that it changed.
    fn execute(&self, sql: Sql<'_>, cells: &[Cell<'_>]) -> Result<usize, StoreError>;

    /// Runs a statement of which nobody has to know how many rows it changed. It may be run later,
    /// but before whatever comes after it; should it fail, the transaction does.
    fn send(&self, sql: Sql<'_>, cells: &[Cell<'_>]) -> Result<(), StoreError>;

    /// Gives the rows of a query that has few.
    fn query(
        &self,
        sql: Sql<'_>,
        cells: &[Cell<'_>],
        each: &mut EachRow<'_>,
    ) -> Result<(), StoreError>;

    /// Gives the rows of a query that may have more than fit into memory. Inside a transaction
    /// only; other queries may be asked in between.
    fn stream(
        &self,
        sql: &str,
        cells: &[Cell<'_>],
        each: &mut EachRow<'_>,
    ) -> Result<(), StoreError>;

    /// Gives the rows of `ids` that have a hash, some of them perhaps twice, in the columns id,
    /// host, alias, type, network, rowid, key, movable, first_seen_us, last_seen_us.
    fn find_ids(&self, hash: i64, each: &mut EachRow<'_>) -> Result<(), StoreError>;

    /// The number for a row of `ids` with this hash, which is about to be written.
    fn new_id_row(&self, hash: i64) -> i64;

    /// Rows of `ids` have changed or vanished.
    fn ids_changed(&self);

    /// Told of which objects it will soon be asked when they were observed.
    fn expect_observed(&self, _table: Table, _keys: &[i64]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A database as the writer has it: whatever it does is part of a transaction.
pub(crate) trait Keeper: Database {
    /// Reads what has to be known before anything new gets a number.
    fn load(&self) -> Result<(), StoreError>;

    fn begin(&self) -> Result<(), StoreError>;

    /// Told what the transaction is about to ask for, if it wants to know.
    fn expect<'m>(&self, _expected: &mut dyn FnMut() -> Expected<'m>) -> Result<(), StoreError> {
        Ok(())
    }

    /// Makes the transaction durable. If the connection is lost meanwhile, it is found out whether
    /// the transaction counts.
    fn commit(&self) -> Result<(), StoreError>;

    /// Undoes the transaction, in whatever state it is, and forgets what was remembered of it. A
    /// connection that was lost is made again.
    fn roll_back(&self) -> Result<(), StoreError>;

    /// Told after each transaction how many rows it had.
    fn committed(&self, _rows: usize) {}

    /// Told when nobody writes any more.
    fn finish(&self) {}

    /// Writes rows that are not there yet.
    fn insert_rows(
        &self,
        table: &str,
        columns: &[&str],
        rows: &[Vec<Cell<'static>>],
    ) -> Result<(), StoreError> {
        let places: Vec<String> = (1..=columns.len())
            .map(|place| format!("?{place}"))
            .collect();
        let (columns, places) = (columns.join(", "), places.join(", "));
        let sql = format!("INSERT INTO {table}({columns}) VALUES ({places})");
        rows.iter()
            .try_for_each(|row| self.send((&*sql).into(), row))
    }

    /// Told when all tables were copied, to make what it derives from them. Part of the
    /// transaction.
    fn copied(&self) -> Result<(), StoreError>;

    /// The most pages that a file may have.
    fn limit_pages(&self, _pages: u32) -> Result<(), StoreError> {
        Err(StoreError::invalid("only a file has pages"))
    }

    /// From now on a commit waits until it would outlive a power cut.
    fn sync_fully(&self) -> Result<(), StoreError> {
        Err(StoreError::invalid("a server is told by its own settings"))
    }
}

/// A database as a reader has it.
pub(crate) trait Reader: Database {
    /// From now on everything is seen as it is at one moment. A connection that was lost is made
    /// again.
    fn begin_view(&self) -> Result<(), StoreError>;

    fn end_view(&self);

    /// The cells of any query, as text.
    fn select_text(&self, sql: &str) -> Result<Vec<Vec<Option<String>>>, StoreError>;
}

impl dyn Database + '_ {
    /// Does something with every row.
    pub(crate) fn each<'s>(
        &self,
        sql: impl Into<Sql<'s>>,
        cells: &[Cell<'_>],
        mut each: impl FnMut(&dyn Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.query(sql.into(), cells, &mut |row| {
            each(row)?;
            Ok(ControlFlow::Continue(()))
        })
    }

    /// All rows, read.
    pub(crate) fn all<'s, T>(
        &self,
        sql: impl Into<Sql<'s>>,
        cells: &[Cell<'_>],
        mut read: impl FnMut(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut rows = Vec::new();
        self.each(sql, cells, |row| {
            rows.push(read(row)?);
            Ok(())
        })?;
        Ok(rows)
    }

    /// The first row, read, if there is one.
    pub(crate) fn first<'s, T>(
        &self,
        sql: impl Into<Sql<'s>>,
        cells: &[Cell<'_>],
        mut read: impl FnMut(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut first = None;
        self.query(sql.into(), cells, &mut |row| {
            first = Some(read(row)?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(first)
    }

    /// The row of a query that always has one.
    pub(crate) fn only<'s, T>(
        &self,
        sql: impl Into<Sql<'s>>,
        cells: &[Cell<'_>],
        read: impl FnMut(&dyn Row) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let row = self.first(sql, cells, read)?;
        row.ok_or_else(|| StoreError::invalid("a query that always has a row had none"))
    }

    /// Whether there is any row.
    pub(crate) fn exists<'s>(
        &self,
        sql: impl Into<Sql<'s>>,
        cells: &[Cell<'_>],
    ) -> Result<bool, StoreError> {
        Ok(self.first(sql, cells, |_| Ok(()))?.is_some())
    }
}
