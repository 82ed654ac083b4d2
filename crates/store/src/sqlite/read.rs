//! Reading: what is due, tasks, commands, runs, summaries.

use super::schema::TABLE_NAMES;
use crate::{Due, DueQuestion, StoreError, Summary, TaskRecord};
use kittiwake_model::{
    Alias, Control, ControlCommand, Cursor, CursorState, FrontierRow, Identity, Key, Name,
    RealTime, RunRecord, WorldTime,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};
use tokio::sync::mpsc;

/// Questions that may wait at once.
pub(super) const WAITING_MAX: usize = 64;
/// Commands that are given at once.
const CONTROLS_MAX: i64 = 1_000;

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
        visited: row.get::<_, Option<i64>>(4)?.map(WorldTime),
        due: WorldTime(row.get(5)?),
        state: row.get(6)?,
    })
}

/// A stretch of the order of a lane; its index has all that is asked for.
const DUE: &str = "SELECT due_us, subject FROM frontier
     WHERE lane = ?1 AND (due_us, subject) > (?2, ?3)
       AND (?4 IS NULL OR visited_us IS NULL OR visited_us < ?4)
     ORDER BY due_us, subject LIMIT ?5";

pub(super) fn due(connection: &Connection, question: &DueQuestion) -> Result<Vec<Due>, StoreError> {
    let mut statement = connection.prepare_cached(DUE)?;
    let rows = statement.query_map(due_parameters(question), |row| {
        Ok(Due {
            due: WorldTime(row.get(0)?),
            subject: Key(row.get(1)?),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn waiting(connection: &Connection, question: &DueQuestion) -> Result<u64, StoreError> {
    let counted = connection
        .prepare_cached(&format!("SELECT count(*) FROM ({DUE})"))?
        .query_row(due_parameters(question), |row| row.get(0))?;
    Ok(count(counted))
}

fn due_parameters(question: &DueQuestion) -> impl Params {
    // Before the first place: no key is so small.
    let (due, subject) = question
        .after
        .unwrap_or((WorldTime(i64::MIN), Key(i64::MIN)));
    (
        question.lane.to_string(),
        due.0,
        subject.0,
        question.not_visited_since.map(|since| since.0),
        i64::try_from(question.limit).unwrap_or(i64::MAX),
    )
}

pub(super) fn controls(connection: &Connection, after: i64) -> Result<Vec<Control>, StoreError> {
    // What this program does not know is left alone, and must not fill a page either.
    let known: Vec<String> = ControlCommand::ALL
        .iter()
        .map(|command| format!("'{command}'"))
        .collect();
    let mut statement = connection.prepare_cached(&format!(
        "SELECT id, command, robot FROM control WHERE id > ?1 AND command IN ({})
         ORDER BY id LIMIT ?2",
        known.join(", ")
    ))?;
    let mut rows = statement.query([after, CONTROLS_MAX])?;
    let mut controls = Vec::new();
    while let Some(row) = rows.next()? {
        let command: String = row.get(1)?;
        if let Some(command) = ControlCommand::from_name(&command) {
            controls.push(Control {
                id: row.get(0)?,
                command,
                robot: row.get::<_, Option<String>>(2)?.map(Name::from),
            });
        }
    }
    Ok(controls)
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
            "SELECT subject, robot, lane, visits, visited_us, due_us, state FROM frontier
             WHERE subject = ?1 AND robot = ?2",
        )?
        .query_row(params![subject.0, robot], frontier_row)
        .optional()?;
    let (Some(row), Some(identity)) = (row, identity(connection, subject)?) else {
        return Ok(None);
    };
    // A post is as near as its author, or nearer if it was named itself.
    let depth = connection
        .prepare_cached(
            "SELECT min(depth) FROM subjects WHERE key IN (
               ?1, (SELECT author FROM statuses WHERE key = ?1),
               (SELECT author FROM comments WHERE key = ?1))",
        )?
        .query_row([subject.0], |row| row.get(0))?;
    let opted_out = connection
        .prepare_cached(
            "SELECT 1 FROM users WHERE opted_out = 1 AND key IN (
               ?1, (SELECT author FROM statuses WHERE key = ?1),
               (SELECT author FROM comments WHERE key = ?1))",
        )?
        .exists([subject.0])?;
    Ok(Some(TaskRecord {
        row,
        depth,
        identity,
        cursors: cursors(connection, subject)?,
        opted_out,
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
        "SELECT query, walk, digest, pages, next, checkpoint, mark_next, mark, started_us, items
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
            items: row.get(9)?,
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

#[cfg(test)]
mod tests {
    use super::super::migrate::{MIGRATIONS, migrate};
    use super::*;

    #[test]
    fn what_is_due_is_read_from_the_index_alone() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, 1, MIGRATIONS).unwrap();
        let plan: Vec<String> = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {DUE}"))
            .unwrap()
            .query_map(params!["lane", 0, 0, None::<i64>, 10], |row| row.get(3))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(
            plan,
            [
                "SEARCH frontier USING COVERING INDEX frontier_by_due (lane=? AND (due_us,subject)>(?,?))"
            ]
        );
    }
}
