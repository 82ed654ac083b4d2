//! How far another crawl is, taken into this one: whom it has visited and when, where its walks stand,
//! what came of every call, and the calls themselves.
//!
//! Rows of the other store name objects by its keys, so all its ids are taken in first: each of its
//! objects is then found by the best of them. The rows that describe the objects come later.

use super::export::ALL_IDS;
use super::found::Stored;
use super::meet::{cursors_meet, outcomes_meet, sights_meet, tasks_meet};
use super::names::Names;
use super::work::{Memory, Work};
use crate::cell::Cell;
use crate::database::{Database, Keeper, Reader};
use crate::export::parse_reference;
use crate::{StoreError, StoreErrorKind};
use kittiwake_model::{Alias, Identity, ImportedId, WorldTime};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Rows that are written in one transaction.
const BATCH_ROWS: usize = 2_000;
/// About how much of them may be in memory.
const BATCH_BYTES: usize = 8 << 20;
/// Keys that are remembered, at about 16 bytes each.
const KEYS_MAX: usize = 1 << 18;

/// What a column of the other store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// As it is.
    Value,
    /// The key of an object.
    Object,
    /// A list of keys, as JSON.
    Objects,
    /// What a call brought.
    Findings,
    /// The number of a call.
    Call,
    /// The number of a run.
    Run,
}

use Holds::{Call, Findings, Object, Objects, Run, Value};

/// A table that tells of the crawl.
struct Joined {
    select: &'static str,
    columns: &'static [Holds],
    insert: &'static str,
}

const CURSORS: Joined = Joined {
    select: "SELECT subject, query, walk, digest, pages, next, checkpoint, mark_next, mark, started_us,
                    items FROM cursors ORDER BY subject, query",
    columns: &[
        Object, Value, Value, Value, Value, Value, Value, Value, Value, Value, Value,
    ],
    insert: concat!(
        "INSERT INTO cursors AS known(subject, query, walk, digest, pages, next, checkpoint, mark_next,
                                      mark, started_us, items)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ",
        cursors_meet!()
    ),
};

/// Calls come before what names them.
const TABLES: &[Joined] = &[
    Joined {
        select: "SELECT digest, network, text FROM definitions ORDER BY digest",
        columns: &[Value, Value, Value],
        insert: "INSERT INTO definitions(digest, network, text) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO NOTHING",
    },
    Joined {
        select: "SELECT id, network, host, definition, clock, settings, started_us, ended_us, end_reason
                 FROM runs ORDER BY id",
        columns: &[
            Run, Value, Value, Value, Value, Value, Value, Value, Value,
        ],
        insert: "INSERT INTO runs(id, network, host, definition, clock, settings, started_us, ended_us,
                                  end_reason)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    },
    Joined {
        select: "SELECT id, query, subjects, target, cursor, credential, node, status, outcome, reason,
                        at_us, scheduled_us, sent_us, answered_us, committed_us, budgets, rank_us,
                        read_us, seed_us, bytes, mended, rows_new, rows_changed, definition,
                        found
                 FROM query_log ORDER BY id",
        columns: &[
            Call, Value, Objects, Value, Value, Value, Value, Value, Value, Value, Value, Value,
            Value, Value, Value, Value, Value, Value, Value, Value, Value, Value, Value,
            Value, Findings,
        ],
        insert: "INSERT INTO query_log(id, query, subjects, target, cursor, credential, node, status,
                   outcome, reason, at_us, scheduled_us, sent_us, answered_us, committed_us, budgets,
                   rank_us, read_us, seed_us, bytes, mended, rows_new, rows_changed, definition,
                   found)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                         ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)",
    },
    Joined {
        select: "SELECT log, body FROM raw ORDER BY log",
        columns: &[Call, Value],
        insert: "INSERT INTO raw(log, body) VALUES (?1, ?2)",
    },
    Joined {
        select: "SELECT key, query, outcome, reason, at_us, log, times FROM outcomes
                 ORDER BY key, query",
        columns: &[Object, Value, Value, Value, Value, Call, Value],
        insert: concat!(
            "INSERT INTO outcomes AS known(key, query, outcome, reason, at_us, log, times)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ",
            outcomes_meet!()
        ),
    },
    Joined {
        select: "SELECT subject, robot, lane, visits, visited_us, due_us, state FROM frontier
                 ORDER BY subject, robot",
        columns: &[Object, Value, Value, Value, Value, Value, Value],
        insert: concat!(
            "INSERT INTO frontier AS known(subject, robot, lane, visits, visited_us, due_us, state)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ",
            tasks_meet!()
        ),
    },
    Joined {
        select: "SELECT viewer, key, level, observed_us FROM visibility ORDER BY viewer, key",
        columns: &[Object, Object, Value, Value],
        insert: concat!(
            "INSERT INTO visibility AS known(viewer, key, level, observed_us)
             VALUES (?1, ?2, ?3, ?4) ",
            sights_meet!()
        ),
    },
];

const DEPTHS: &str = "SELECT key, depth FROM subjects ORDER BY key";

/// Where the other crawl's numbers begin in ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offsets {
    pub calls: i64,
    pub runs: i64,
}

/// Whether the walks of the other crawl can be gone on with here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walks {
    Kept,
    /// They were made at another host, and begin anew.
    Dropped,
}

/// Takes everything in, as the view shows it; gives where its calls are now.
pub(crate) fn join(
    source: &dyn Reader,
    target: &dyn Keeper,
    walks: Walks,
) -> Result<Offsets, StoreError> {
    let number = |sql| {
        let database: &dyn Database = target;
        database.only(sql, &[], |row| row.get(0))
    };
    let offsets = Offsets {
        calls: number("SELECT coalesce(max(id), 0) FROM query_log")?,
        runs: number("SELECT coalesce(max(id), 0) FROM runs")?,
    };
    let mut joiner = Joiner {
        target,
        memory: Memory::load(target)?,
        names: Names::new(source),
        keys: HashMap::new(),
        offsets,
    };
    target.load()?;
    joiner.ids(source)?;
    let tables = TABLES.iter();
    for table in tables.chain((walks == Walks::Kept).then_some(&CURSORS)) {
        joiner.batches(source, table.select, table.columns, &mut |work, row| {
            work.send(table.insert, row)
        })?;
    }
    joiner.batches(
        source,
        DEPTHS,
        &[Object, Value],
        &mut |work, row| match row {
            [Cell::Integer(key), Cell::Integer(depth)] => {
                work.lower(*key, u32::try_from(*depth).unwrap_or(u32::MAX))
            }
            _ => Ok(()),
        },
    )?;
    Ok(offsets)
}

type Write<'w> = dyn FnMut(&mut Work<'_>, &[Cell<'static>]) -> Result<(), StoreError> + 'w;

struct Joiner<'j> {
    target: &'j dyn Keeper,
    memory: Memory,
    names: Names<'j>,
    /// Keys of the other store, and what they are here.
    keys: HashMap<i64, i64>,
    offsets: Offsets,
}

impl Joiner<'_> {
    fn ids(&mut self, source: &dyn Reader) -> Result<(), StoreError> {
        let mut best: Option<(i64, Identity)> = None;
        let columns = &[Value; 9];
        self.batches(source, ALL_IDS, columns, &mut |work, row| {
            let row = IdCells(row);
            let key = row.number(0)?;
            let alias = row.alias()?;
            let object = match &best {
                Some((known, object)) if *known == key => object.clone(),
                _ => row.object(&alias)?,
            };
            best = Some((key, object.clone()));
            work.import_id(&ImportedId {
                object,
                alias,
                first_seen: WorldTime(row.number(7)?),
                last_seen: WorldTime(row.number(8)?),
            })
        })
    }

    /// Reads rows and writes them, so many in a transaction.
    fn batches(
        &mut self,
        source: &dyn Reader,
        select: &str,
        columns: &[Holds],
        write: &mut Write<'_>,
    ) -> Result<(), StoreError> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        source.stream(select, &[], &mut |row| {
            let cells = row.cells(columns.len())?;
            bytes += cells.iter().map(Cell::size).sum::<usize>();
            batch.push(cells);
            if batch.len() >= BATCH_ROWS || bytes >= BATCH_BYTES {
                self.write(std::mem::take(&mut batch), columns, write)?;
                bytes = 0;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.write(batch, columns, write)
    }

    fn write(
        &mut self,
        rows: Vec<Vec<Cell<'static>>>,
        columns: &[Holds],
        write: &mut Write<'_>,
    ) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        self.target.begin()?;
        let mut work = Work::new(self.target, &mut self.memory, 0);
        let mut translator = Translator {
            names: &mut self.names,
            keys: &mut self.keys,
            offsets: self.offsets,
        };
        for mut row in rows {
            for (cell, holds) in row.iter_mut().zip(columns) {
                translator.translate(&mut work, cell, *holds)?;
            }
            write(&mut work, &row)?;
        }
        work.store_backlog()?;
        self.target.commit()
    }
}

/// A row of [`ALL_IDS`].
struct IdCells<'c>(&'c [Cell<'static>]);

impl IdCells<'_> {
    fn number(&self, place: usize) -> Result<i64, StoreError> {
        match self.0.get(place) {
            Some(Cell::Integer(number)) => Ok(*number),
            _ => Err(corrupt("an id without its numbers".to_owned())),
        }
    }

    fn text(&self, place: usize) -> Result<&str, StoreError> {
        match self.0.get(place) {
            Some(Cell::Text(text)) => Ok(text),
            _ => Err(corrupt("an id without its texts".to_owned())),
        }
    }

    fn alias(&self) -> Result<Alias, StoreError> {
        Ok(Alias {
            name: self.text(3)?.into(),
            id: self.text(5)?.to_owned(),
            host: self.text(4)?.to_owned(),
            movable: self.number(6)? != 0,
        })
    }

    /// The object by this id of its.
    fn object(&self, alias: &Alias) -> Result<Identity, StoreError> {
        let is_canonical = alias.name.is_empty();
        Ok(Identity {
            network: self.text(1)?.into(),
            kind: self.text(2)?.into(),
            canonical: is_canonical.then(|| alias.id.clone()),
            aliases: if is_canonical {
                Vec::new()
            } else {
                vec![alias.clone()]
            },
        })
    }
}

/// From the other store's numbers to ours.
struct Translator<'t, 'd> {
    names: &'t mut Names<'d>,
    keys: &'t mut HashMap<i64, i64>,
    offsets: Offsets,
}

impl Translator<'_, '_> {
    fn translate(
        &mut self,
        work: &mut Work<'_>,
        cell: &mut Cell<'static>,
        holds: Holds,
    ) -> Result<(), StoreError> {
        match (holds, &mut *cell) {
            (Object, Cell::Integer(key)) => *key = self.key(work, *key)?,
            (Objects, Cell::Text(list)) => {
                let keys: Vec<i64> = serde_json::from_str(list)
                    .map_err(|error| corrupt(format!("a list of keys cannot be read: {error}")))?;
                let keys: Result<Vec<i64>, StoreError> =
                    keys.into_iter().map(|key| self.key(work, key)).collect();
                *list = Cow::Owned(
                    serde_json::to_string(&keys?)
                        .map_err(|error| StoreError::invalid(error.to_string()))?,
                );
            }
            (Findings, Cell::Text(text)) if !text.is_empty() => {
                let found = Stored::read(text)
                    .map_err(|error| corrupt(format!("what a call brought: {error}")))?;
                let found = found.translated(&mut |key| self.key(work, key))?;
                *text = Cow::Owned(found.to_text());
            }
            (Call, Cell::Integer(log)) if *log > 0 => *log += self.offsets.calls,
            (Run, Cell::Integer(run)) => *run += self.offsets.runs,
            _ => {}
        }
        Ok(())
    }

    fn key(&mut self, work: &mut Work<'_>, key: i64) -> Result<i64, StoreError> {
        if let Some(known) = self.keys.get(&key) {
            return Ok(work.memory.follow(*known));
        }
        let named = self.names.of(key)?;
        let identity = parse_reference(&named.network, &named.kind, &named.id).map_err(corrupt)?;
        let found = work.imported_key(&identity)?;
        if self.keys.len() >= KEYS_MAX {
            self.keys.clear();
        }
        self.keys.insert(key, found);
        Ok(found)
    }
}

fn corrupt(message: String) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, message)
}
