//! Reading: tasks, frontier, runs, summaries.

use super::schema::TABLE_NAMES;
use crate::{StoreError, Summary, TaskRecord};
use kittiwake_model::{
    Alias, Cursor, CursorState, FrontierRow, Identity, Key, Name, RealTime, RunRecord, WorldTime,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tokio::sync::mpsc;

/// Questions that may wait at once.
pub(super) const WAITING_MAX: usize = 64;

/// A question to the reading thread, with its answer's address inside.
pub(super) type Question = Box<dyn FnOnce(&Connection) + Send>;

pub(super) fn run(connection: &Connection, mut questions: mpsc::Receiver<Question>) {
    while let Some(question) = questions.blocking_recv() {
        question(connection);
    }
}

fn name(row: &Row<'_>, place: usize) -> rusqlite::Result<Name> {
    Ok(Name::from(row.get::<_, String>(place)?))
}

fn frontier_row(row: &Row<'_>) -> rusqlite::Result<FrontierRow> {
    Ok(FrontierRow {
        subject: Key(row.get(0)?),
        robot: name(row, 1)?,
        lane: name(row, 2)?,
        visits: row.get(3)?,
        due: WorldTime(row.get(4)?),
        state: row.get(5)?,
    })
}

pub(super) fn frontier(
    connection: &Connection,
    after: Option<&(Key, Name)>,
    limit: usize,
) -> Result<Vec<FrontierRow>, StoreError> {
    let (subject, robot) = match after {
        Some((subject, robot)) => (subject.0, &**robot),
        None => (i64::MIN, ""),
    };
    let mut statement = connection.prepare_cached(
        "SELECT subject, robot, lane, visits, due_us, state FROM frontier
         WHERE (subject, robot) > (?1, ?2) ORDER BY subject, robot LIMIT ?3",
    )?;
    let rows = statement.query_map(
        params![subject, robot, i64::try_from(limit).unwrap_or(i64::MAX)],
        frontier_row,
    )?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn tasks(
    connection: &Connection,
    tasks: &[(Key, Name)],
) -> Result<Vec<Option<TaskRecord>>, StoreError> {
    // One view of the file for all of them.
    let transaction = connection.unchecked_transaction()?;
    let mut records = Vec::with_capacity(tasks.len());
    for (subject, robot) in tasks {
        records.push(task(&transaction, *subject, robot)?);
    }
    Ok(records)
}

fn task(
    connection: &Connection,
    subject: Key,
    robot: &str,
) -> Result<Option<TaskRecord>, StoreError> {
    let row = connection
        .prepare_cached(
            "SELECT subject, robot, lane, visits, due_us, state FROM frontier
             WHERE subject = ?1 AND robot = ?2",
        )?
        .query_row(params![subject.0, robot], frontier_row)
        .optional()?;
    let (Some(row), Some(identity)) = (row, identity(connection, subject)?) else {
        return Ok(None);
    };
    let depth: Option<u32> = connection
        .prepare_cached("SELECT depth FROM subjects WHERE key = ?1")?
        .query_row([subject.0], |row| row.get(0))
        .optional()?;
    Ok(Some(TaskRecord {
        row,
        depth: depth.unwrap_or(0),
        identity,
        cursors: cursors(connection, subject)?,
    }))
}

/// Everything by which an object is known; what was seen last comes first.
pub(super) fn identity(connection: &Connection, key: Key) -> Result<Option<Identity>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT network, type, alias, id, host, movable FROM ids WHERE key = ?1
         ORDER BY last_seen_us DESC, alias, id, host",
    )?;
    let mut rows = statement.query([key.0])?;
    let mut identity: Option<Identity> = None;
    while let Some(row) = rows.next()? {
        let (network, kind) = (name(row, 0)?, name(row, 1)?);
        let identity = identity.get_or_insert_with(|| Identity {
            network,
            kind,
            canonical: None,
            aliases: Vec::new(),
        });
        let (alias, id) = (name(row, 2)?, row.get::<_, String>(3)?);
        if alias.is_empty() {
            identity.canonical.get_or_insert(id);
        } else {
            identity.aliases.push(Alias {
                name: alias,
                id,
                host: row.get(4)?,
                movable: row.get(5)?,
            });
        }
    }
    Ok(identity)
}

fn cursors(connection: &Connection, subject: Key) -> Result<Vec<Cursor>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT query, walk, digest, pages, next, checkpoint, mark_next, mark, started_us
         FROM cursors WHERE subject = ?1 ORDER BY query",
    )?;
    let rows = statement.query_map([subject.0], |row| {
        let next: Option<String> = row.get(4)?;
        Ok(Cursor {
            subject,
            query: name(row, 0)?,
            walk: row.get(1)?,
            digest: name(row, 2)?,
            pages: row.get(3)?,
            state: next.map_or(CursorState::Complete, CursorState::Next),
            checkpoint: row.get(5)?,
            mark_next: row.get(6)?,
            mark: row.get(7)?,
            started: WorldTime(row.get(8)?),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn last_run(connection: &Connection) -> Result<Option<(i64, RunRecord)>, StoreError> {
    let run = connection
        .prepare_cached(
            "SELECT runs.id, runs.network, host, definition, coalesce(text, ''), clock, settings,
                    started_us
             FROM runs LEFT JOIN definitions ON definitions.digest = runs.definition
             ORDER BY runs.id DESC LIMIT 1",
        )?
        .query_row([], |row| {
            Ok((
                row.get(0)?,
                RunRecord {
                    network: name(row, 1)?,
                    host: row.get(2)?,
                    definition: name(row, 3)?,
                    definition_text: row.get(4)?,
                    clock: row.get(5)?,
                    settings: row.get(6)?,
                    started: RealTime(row.get(7)?),
                },
            ))
        })
        .optional()?;
    Ok(run)
}

pub(super) fn summary(connection: &Connection) -> Result<Summary, StoreError> {
    let transaction = connection.unchecked_transaction()?;
    let mut summary = Summary::default();
    for table in TABLE_NAMES {
        let rows: i64 = transaction
            .prepare_cached(&format!("SELECT count(*) FROM {table}"))?
            .query_row([], |row| row.get(0))?;
        summary.rows.insert((*table).to_owned(), count(rows));
    }
    summary.calls = summary.rows.get("query_log").copied().unwrap_or_default();
    let mut statement = transaction
        .prepare_cached("SELECT robot, count(*), sum(visits > 0) FROM frontier GROUP BY robot")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let counted = (count(row.get(1)?), count(row.get(2)?));
        summary.robots.insert(name(row, 0)?, counted);
    }
    let mut statement =
        transaction.prepare_cached("SELECT outcome, count(*) FROM outcomes GROUP BY outcome")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        summary.outcomes.insert(row.get(0)?, count(row.get(1)?));
    }
    let mut statement =
        transaction.prepare_cached("SELECT depth, count(*) FROM subjects GROUP BY depth")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        summary.depths.insert(row.get(0)?, count(row.get(1)?));
    }
    Ok(summary)
}

fn count(rows: i64) -> u64 {
    u64::try_from(rows).unwrap_or_default()
}

pub(super) fn select_text(
    connection: &Connection,
    sql: &str,
) -> Result<Vec<Vec<Option<String>>>, StoreError> {
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut cells = Vec::new();
    while let Some(row) = rows.next()? {
        let mut line = Vec::with_capacity(columns);
        for place in 0..columns {
            line.push(match row.get_ref(place)? {
                ValueRef::Null => None,
                ValueRef::Integer(number) => Some(number.to_string()),
                ValueRef::Real(number) => Some(number.to_string()),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                    Some(String::from_utf8_lossy(bytes).into_owned())
                }
            });
        }
        cells.push(line);
    }
    Ok(cells)
}
