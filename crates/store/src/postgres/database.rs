//! A connection as the rules see it.

use super::ahead::{Ahead, Known};
use super::bulk::{Bulk, Gathered, Rows, for_many};
use super::cells::{PostgresRow, type_of};
use super::dialect::translated;
use super::error::refused;
use super::lock;
use super::session::Session;
use crate::cell::{Cell, Row as _};
use crate::database::{Database, EachRow, Keeper, Reader, Sql};
use crate::rules::expected::Expected;
use crate::rules::statements::Held;
use crate::{StoreError, StoreErrorKind};
use kittiwake_model::{Name, Table};
use std::cell::{Cell as Shared, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use tokio_postgres::{Row, Statement};

const FIND_IDS: &str = "SELECT id, host, alias, type, network, rowid, key, movable, first_seen_us,
                               last_seen_us FROM ids WHERE hash = ?1";
const IDS_OF_MANY: &str = "SELECT id, host, alias, type, network, rowid, key, movable,
                                  first_seen_us, last_seen_us, hash
                           FROM ids WHERE hash = ANY($1)";
const DEPTHS_OF_MANY: &str = "SELECT key, depth FROM subjects WHERE key = ANY($1)";
const GONE_OF_MANY: &str = "SELECT DISTINCT key FROM invalid_users WHERE key = ANY($1)";
/// Rows of a long answer that are fetched at a time.
const FETCH_ROWS: usize = 1_000;

/// Statements that the server has prepared.
#[derive(Debug)]
struct Statements {
    held: [Option<Statement>; Held::COUNT],
    /// Those for many rows, which are few.
    many: Vec<(Gathered, Statement)>,
    others: HashMap<String, Statement>,
}

impl Default for Statements {
    fn default() -> Self {
        Self {
            held: std::array::from_fn(|_| None),
            many: Vec::new(),
            others: HashMap::new(),
        }
    }
}

#[derive(Debug)]
pub(super) struct PostgresDatabase {
    session: Session,
    statements: RefCell<Statements>,
    /// What the present transaction knows already.
    ahead: RefCell<Ahead>,
    /// Rows that are on their way.
    bulk: RefCell<Bulk>,
    /// The number that the next row of `ids` gets.
    next_id_row: Shared<i64>,
    /// How many transactions this writer knows to be committed; see [`Keeper::commit`].
    commits: Shared<i64>,
    /// Cursors that were opened, so that each has a name of its own.
    cursors: Shared<u64>,
    /// What every connection begins with.
    manners: &'static str,
}

impl PostgresDatabase {
    pub(super) fn new(session: Session) -> Self {
        Self {
            session,
            statements: RefCell::default(),
            ahead: RefCell::default(),
            bulk: RefCell::default(),
            next_id_row: Shared::new(1),
            commits: Shared::new(0),
            cursors: Shared::new(0),
            manners: "",
        }
    }

    /// A connection with settings of its own, also after it was lost.
    pub(super) fn with_manners(
        session: Session,
        manners: &'static str,
    ) -> Result<Self, StoreError> {
        session.batch(manners)?;
        Ok(Self {
            manners,
            ..Self::new(session)
        })
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// How many transactions were committed, as the store says.
    fn stored_commits(&self) -> Result<i64, StoreError> {
        let text = self
            .session
            .text("SELECT value FROM rules WHERE name = 'commits'")?;
        text.and_then(|text| text.parse().ok()).ok_or_else(|| {
            StoreError::new(
                StoreErrorKind::Corrupt,
                "the rules do not say how many commits there were; restore a copy",
            )
        })
    }

    fn prepared(&self, sql: Sql<'_>, cells: &[Cell<'_>]) -> Result<Statement, StoreError> {
        {
            let statements = self.statements.borrow();
            let known = match sql {
                Sql::Held(held) => statements.held[held.place()].as_ref(),
                Sql::Text(text) => statements.others.get(text),
            };
            if let Some(statement) = known {
                return Ok(statement.clone());
            }
        }
        let text = match sql {
            Sql::Held(held) => translated(&held.sql()),
            Sql::Text(text) => translated(text),
        };
        let types: Vec<_> = cells.iter().map(type_of).collect();
        let client = self.session.client();
        let statement = self.session.wait_for(client.prepare_typed(&text, &types))?;
        let mut statements = self.statements.borrow_mut();
        match sql {
            Sql::Held(held) => statements.held[held.place()] = Some(statement.clone()),
            Sql::Text(text) => {
                statements.others.insert(text.to_owned(), statement.clone());
            }
        }
        Ok(statement)
    }

    /// Sends the rows that have to be there before a statement.
    fn make_way(&self, sql: Sql<'_>, adds_to: Option<Gathered>) -> Result<(), StoreError> {
        let before = self.bulk.borrow_mut().before(sql, adds_to);
        before.into_iter().try_for_each(|rows| self.send_rows(rows))
    }

    fn send_all_rows(&self) -> Result<(), StoreError> {
        let all = self.bulk.borrow_mut().take();
        all.into_iter().try_for_each(|rows| self.send_rows(rows))
    }

    fn send_rows(&self, rows: Rows) -> Result<(), StoreError> {
        let statement = self.prepared_for_rows(rows.of)?;
        let client = self.session.client();
        self.session
            .send(async move { client.execute_raw(&statement, rows.columns).await });
        Ok(())
    }

    fn prepared_for_rows(&self, of: Gathered) -> Result<Statement, StoreError> {
        let known = self.statements.borrow();
        if let Some((_, statement)) = known.many.iter().find(|(known, _)| *known == of) {
            return Ok(statement.clone());
        }
        drop(known);
        let client = self.session.client();
        // The server knows the types of its columns.
        let one = of.sql();
        let types = self.session.wait_for(client.prepare(&translated(&one)))?;
        let (many, types) = for_many(&one, types.params())
            .ok_or_else(|| StoreError::invalid(format!("{of:?} is not for many rows")))?;
        let prepared = client.prepare_typed(&many, &types);
        let statement = self.session.wait_for(prepared)?;
        let mut statements = self.statements.borrow_mut();
        statements.many.push((of, statement.clone()));
        Ok(statement)
    }

    fn rows(&self, sql: Sql<'_>, cells: &[Cell<'_>]) -> Result<Vec<Row>, StoreError> {
        self.make_way(sql, None)?;
        let statement = self.prepared(sql, cells)?;
        let client = self.session.client();
        let cells: Vec<_> = cells.iter().map(|cell| cell as _).collect();
        self.session.wait_for(client.query(&statement, &cells))
    }

    /// The rows of a query over a list of numbers.
    fn rows_of_many(&self, sql: &str, numbers: &[i64]) -> Result<Vec<Row>, StoreError> {
        let statement = self.prepared_for_many(sql)?;
        let client = self.session.client();
        self.session.wait_for(client.query(&statement, &[&numbers]))
    }

    fn prepared_for_many(&self, sql: &str) -> Result<Statement, StoreError> {
        if let Some(statement) = self.statements.borrow().others.get(sql) {
            return Ok(statement.clone());
        }
        let client = self.session.client();
        let prepared = client.prepare_typed(sql, &[Type::INT8_ARRAY]);
        let statement = self.session.wait_for(prepared)?;
        let mut statements = self.statements.borrow_mut();
        statements.others.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Fetches what is likely to be asked of objects.
    fn fetch_ahead(
        &self,
        keys: &[i64],
        tables: &BTreeMap<Table, Vec<i64>>,
    ) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut depths = Vec::new();
        for row in self.rows_of_many(DEPTHS_OF_MANY, keys)? {
            depths.push((number(&row, 0)?, number(&row, 1)?));
        }
        let gone = self.rows_of_many(GONE_OF_MANY, keys)?;
        let gone = gone.iter().map(|row| number(row, 0));
        let gone = gone.collect::<Result<_, _>>()?;
        let mut ahead = self.ahead.borrow_mut();
        ahead.put_depths(keys, &depths);
        ahead.put_never_gone(keys, &gone);
        for (table, keys) in tables {
            let place = table.columns().len() + 2;
            let mut rows = Vec::new();
            for row in self.rows_of_many(&objects_of_many(*table), keys)? {
                rows.push((number(&row, place)?, row));
            }
            ahead.put_objects(*table, keys, rows);
        }
        Ok(())
    }

    /// Makes the connection anew; what the old one had prepared went with it.
    pub(super) fn connect_anew(&self) -> Result<(), StoreError> {
        self.session.connect_again()?;
        *self.statements.borrow_mut() = Statements::default();
        if self.manners.is_empty() {
            return Ok(());
        }
        self.session.batch(self.manners)
    }

    /// Makes the connection anew, and knows for certain what was committed by the old one: while
    /// that may still be at work, it holds the lock.
    fn connect_again(&self) -> Result<i64, StoreError> {
        self.connect_anew()?;
        self.session.plan_by_index();
        self.session.patiently(|| lock::take(&self.session))?;
        self.stored_commits()
    }

    /// A lost connection is made again; says whether the transaction that was being committed
    /// counts.
    fn find_out(&self, attempted: i64) -> Result<bool, StoreError> {
        let stored = self.connect_again()?;
        if stored == attempted {
            return Ok(true);
        }
        if stored + 1 == attempted {
            return Ok(false);
        }
        Err(lost_commits())
    }
}

/// [`Held::SelectObject`] for many keys, which come last.
fn objects_of_many(table: Table) -> String {
    let mut columns: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
    columns.extend(["extra", "observed", "key"]);
    let (columns, name) = (columns.join(", "), table.name());
    format!("SELECT {columns} FROM {name} WHERE key = ANY($1)")
}

fn number(row: &Row, place: usize) -> Result<i64, StoreError> {
    row.try_get(place).map_err(refused)
}

fn text(row: &Row, place: usize) -> Result<&str, StoreError> {
    row.try_get(place).map_err(refused)
}

/// What a server does that acknowledges commits before they are on its disk, and then crashes.
fn lost_commits() -> StoreError {
    StoreError::new(
        StoreErrorKind::Poisoned,
        "the server has lost commits that it had acknowledged; set its fsync and synchronous_commit \
         to on, and start again: the crawl goes on from what is there",
    )
}

impl Database for PostgresDatabase {
    fn execute(&self, sql: Sql<'_>, cells: &[Cell<'_>]) -> Result<usize, StoreError> {
        let is_new = self.ahead.borrow().is_new(sql, cells);
        match is_new {
            Some(true) => return self.send(sql, cells).map(|()| 1),
            Some(false) => return Ok(0),
            None => self.ahead.borrow_mut().written(sql, cells),
        }
        self.make_way(sql, None)?;
        let statement = self.prepared(sql, cells)?;
        let client = self.session.client();
        let cells: Vec<_> = cells.iter().map(|cell| cell as _).collect();
        let changed = self.session.wait_for(client.execute(&statement, &cells))?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    fn send(&self, sql: Sql<'_>, cells: &[Cell<'_>]) -> Result<(), StoreError> {
        self.ahead.borrow_mut().written(sql, cells);
        let gathered = Gathered::of(sql);
        self.make_way(sql, gathered)?;
        if let Some(gathered) = gathered {
            let enough = self.bulk.borrow_mut().push(gathered, cells);
            return enough.map_or(Ok(()), |rows| self.send_rows(rows));
        }
        let statement = self.prepared(sql, cells)?;
        let client = self.session.client();
        let cells: Vec<Cell<'static>> = cells.iter().cloned().map(Cell::into_owned).collect();
        self.session
            .send(async move { client.execute_raw(&statement, cells).await });
        Ok(())
    }

    fn query(
        &self,
        sql: Sql<'_>,
        cells: &[Cell<'_>],
        each: &mut EachRow<'_>,
    ) -> Result<(), StoreError> {
        if let Some(known) = self.ahead.borrow().answer(sql, cells) {
            return match known {
                Known::Nothing => Ok(()),
                known => each(&known).map(drop),
            };
        }
        for row in &self.rows(sql, cells)? {
            if each(&PostgresRow(row))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn stream(
        &self,
        sql: &str,
        cells: &[Cell<'_>],
        each: &mut EachRow<'_>,
    ) -> Result<(), StoreError> {
        self.make_way(Sql::Text(sql), None)?;
        self.cursors.set(self.cursors.get() + 1);
        let cursor = format!("stream_{}", self.cursors.get());
        let sql = translated(&with_numbers(sql, cells)?);
        self.session
            .batch(&format!("DECLARE {cursor} NO SCROLL CURSOR FOR {sql}"))?;
        let fetch = self.session.wait_for(
            self.session
                .client()
                .prepare(&format!("FETCH {FETCH_ROWS} FROM {cursor}")),
        )?;
        loop {
            let client = self.session.client();
            let rows = self.session.wait_for(client.query(&fetch, &[]))?;
            for row in &rows {
                if each(&PostgresRow(row))?.is_break() {
                    return Ok(());
                }
            }
            if rows.len() < FETCH_ROWS {
                return self.session.batch(&format!("CLOSE {cursor}"));
            }
        }
    }

    fn find_ids(&self, hash: i64, each: &mut EachRow<'_>) -> Result<(), StoreError> {
        if let Some(rows) = self.ahead.borrow().ids_of(hash) {
            return rows
                .iter()
                .try_for_each(|row| each(&PostgresRow(row)).map(drop));
        }
        self.query(Sql::Text(FIND_IDS), &[Cell::Integer(hash)], each)
    }

    fn new_id_row(&self, hash: i64) -> i64 {
        self.ahead.borrow_mut().forget_id(hash);
        let row = self.next_id_row.get();
        self.next_id_row.set(row + 1);
        row
    }

    fn ids_changed(&self) {
        self.ahead.borrow_mut().forget_ids();
    }

    fn expect_observed(&self, table: Table, keys: &[i64]) -> Result<(), StoreError> {
        let sql = format!(
            "SELECT observed, key FROM {} WHERE key = ANY($1)",
            table.name()
        );
        self.make_way(Sql::Text(&sql), None)?;
        let mut rows = Vec::new();
        for row in self.rows_of_many(&sql, keys)? {
            rows.push((number(&row, 1)?, row));
        }
        self.ahead.borrow_mut().put_observed(table, rows);
        Ok(())
    }
}

/// Numbers in the place of parameters, which cursors do not have everywhere.
fn with_numbers(sql: &str, cells: &[Cell<'_>]) -> Result<String, StoreError> {
    let mut sql = sql.to_owned();
    for (place, cell) in cells.iter().enumerate() {
        let shown = match cell {
            Cell::Null => "CAST(NULL AS BIGINT)".to_owned(),
            Cell::Integer(number) => format!("CAST('{number}' AS BIGINT)"),
            other => {
                return Err(StoreError::invalid(format!(
                    "{other:?} for a question that has numbers only"
                )));
            }
        };
        sql = sql.replace(&format!("?{}", place + 1), &shown);
    }
    Ok(sql)
}

impl Keeper for PostgresDatabase {
    fn load(&self) -> Result<(), StoreError> {
        let database: &dyn Database = self;
        let next = database.only(
            "SELECT 1 + coalesce((SELECT max(rowid) FROM ids), 0)",
            &[],
            |row| row.get(0),
        )?;
        self.next_id_row.set(next);
        self.commits.set(self.stored_commits()?);
        Ok(())
    }

    fn begin(&self) -> Result<(), StoreError> {
        if self.session.is_lost() {
            return Err(StoreError::new(
                StoreErrorKind::Unreachable,
                "the connection to the server was lost",
            ));
        }
        *self.ahead.borrow_mut() = Ahead::default();
        *self.bulk.borrow_mut() = Bulk::default();
        self.send(Sql::Text("BEGIN"), &[])
    }

    fn expect<'m>(&self, expected: &mut dyn FnMut() -> Expected<'m>) -> Result<(), StoreError> {
        let Expected {
            hashes,
            mut keys,
            next_key,
            types,
        } = expected();
        self.ahead.borrow_mut().expect_from(next_key);
        let mut tables: BTreeMap<Table, Vec<i64>> = BTreeMap::new();
        if !hashes.is_empty() {
            let rows = self.rows_of_many(IDS_OF_MANY, &hashes)?;
            let mut by_hash = Vec::with_capacity(rows.len());
            for row in rows {
                let (hash, key) = (number(&row, 10)?, number(&row, 6)?);
                let kind = (Name::from(text(&row, 4)?), Name::from(text(&row, 3)?));
                if let Some(table) = types.get(&kind) {
                    tables.entry(*table).or_default().push(key);
                }
                keys.push(key);
                by_hash.push((hash, row));
            }
            self.ahead.borrow_mut().put_ids(&hashes, by_hash);
        }
        keys.sort_unstable();
        keys.dedup();
        self.fetch_ahead(&keys, &tables)
    }

    /// Every transaction counts itself, so that it can be found out whether one counts of which the
    /// server's word was lost.
    fn commit(&self) -> Result<(), StoreError> {
        let attempted = self.commits.get() + 1;
        self.send_all_rows()?;
        self.send(
            Sql::Text("UPDATE rules SET value = ?1 WHERE name = 'commits'"),
            &[Cell::from(attempted.to_string())],
        )?;
        // Whatever was sent before is answered first: with one failure among it, the server rolls
        // back.
        self.send(Sql::Text("COMMIT"), &[])?;
        match self.session.settle() {
            Err(error) if error.kind() == StoreErrorKind::Unreachable && self.session.is_lost() => {
                if !self.find_out(attempted)? {
                    return Err(error);
                }
            }
            settled => settled?,
        }
        self.commits.set(attempted);
        Ok(())
    }

    fn roll_back(&self) -> Result<(), StoreError> {
        *self.bulk.borrow_mut() = Bulk::default();
        let _ = self.session.settle();
        let known = self.commits.get();
        let mut stored = known;
        if self.session.is_lost() || self.session.batch("ROLLBACK").is_err() {
            stored = self.connect_again()?;
        }
        if stored != known {
            return Err(lost_commits());
        }
        self.load()
    }

    fn insert_rows(
        &self,
        table: &str,
        columns: &[&str],
        rows: &[Vec<Cell<'static>>],
    ) -> Result<(), StoreError> {
        self.copy_in(table, columns, rows)
    }

    fn copied(&self) -> Result<(), StoreError> {
        self.count_on()
    }
}

/// The columns that count by themselves.
const COUNTING: &[(&str, &str)] = &[("control", "id"), ("put_off", "id")];

impl PostgresDatabase {
    /// Goes on counting behind what was copied.
    fn count_on(&self) -> Result<(), StoreError> {
        let database: &dyn Database = self;
        for (table, column) in COUNTING {
            let next: i64 = database.only(
                &*format!("SELECT 1 + coalesce(max({column}), 0) FROM {table}"),
                &[],
                |row| row.get(0),
            )?;
            self.session.batch(&format!(
                "ALTER TABLE {table} ALTER COLUMN {column} RESTART WITH {next}"
            ))?;
        }
        Ok(())
    }

    /// Rows as the server reads them quickest.
    fn copy_in(
        &self,
        table: &str,
        columns: &[&str],
        rows: &[Vec<Cell<'static>>],
    ) -> Result<(), StoreError> {
        let columns = columns.join(", ");
        let statement = self.prepared(Sql::Text(&format!("SELECT {columns} FROM {table}")), &[])?;
        let types: Vec<Type> = statement
            .columns()
            .iter()
            .map(|column| column.type_().clone())
            .collect();
        self.session.settle()?;
        let client = self.session.client();
        let sql = format!("COPY {table}({columns}) FROM STDIN BINARY");
        self.session.wait_for(async move {
            let sink = client.copy_in(&sql).await?;
            let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
            for row in rows {
                writer.as_mut().write_raw(row).await?;
            }
            writer.finish().await
        })?;
        Ok(())
    }
}

impl Reader for PostgresDatabase {
    fn begin_view(&self) -> Result<(), StoreError> {
        if self.session.is_lost() {
            self.connect_anew()?;
        }
        self.send(
            Sql::Text("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
            &[],
        )
    }

    fn end_view(&self) {
        let ended = self
            .send(Sql::Text("COMMIT"), &[])
            .and_then(|()| self.session.settle());
        if let Err(error) = ended {
            tracing::debug!(%error, "a reading transaction could not be ended");
        }
    }

    fn select_text(&self, sql: &str) -> Result<Vec<Vec<Option<String>>>, StoreError> {
        let rows = self.session.rows(sql)?;
        let lines = rows.iter().map(|row| {
            let cells = (0..row.len()).map(|place| {
                let row = PostgresRow(row);
                let cell = row.cell(place)?;
                Ok(cell.into_text())
            });
            cells.collect()
        });
        lines.collect()
    }
}
