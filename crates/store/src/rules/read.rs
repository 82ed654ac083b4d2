//! Reading: what is due, tasks, commands, runs, summaries.

use crate::cell::{Cell, Row, cells};
use crate::database::Database;
use crate::error::unreadable;
use crate::observed;
use crate::{
    Arrival, Card, Counts, Due, DueQuestion, Facts, Reason, Remembered, StoreError, Summary,
    TaskRecord,
};
use kittiwake_model::{
    Alias, Control, ControlCommand, Cursor, CursorState, FrontierRow, Identity, Key, Learnt, Name,
    RealTime, RunRecord, Table, WorldTime,
};
use std::collections::BTreeMap;

/// Commands that are given at once.
const CONTROLS_MAX: i64 = 1_000;

fn name(row: &dyn Row, place: usize) -> Result<Name, StoreError> {
    Ok(Name::from(row.get::<String>(place)?))
}

fn frontier_row(row: &dyn Row) -> Result<FrontierRow, StoreError> {
    Ok(FrontierRow {
        subject: Key(row.get(0)?),
        robot: name(row, 1)?,
        lane: name(row, 2)?,
        visits: row.get(3)?,
        visited: row.get::<Option<i64>>(4)?.map(WorldTime),
        due: WorldTime(row.get(5)?),
        state: row.get(6)?,
    })
}

/// A stretch of the order of a lane; its index has all that is asked for.
pub(crate) const DUE: &str = "SELECT due_us, subject FROM frontier
     WHERE lane = ?1 AND (due_us, subject) > (?2, ?3)
       AND (CAST(?4 AS BIGINT) IS NULL OR visited_us IS NULL OR visited_us < ?4)
     ORDER BY due_us, subject LIMIT ?5";

pub(crate) fn due(database: &dyn Database, question: &DueQuestion) -> Result<Vec<Due>, StoreError> {
    database.all(DUE, &due_cells(question), |row| {
        Ok(Due {
            due: WorldTime(row.get(0)?),
            subject: Key(row.get(1)?),
        })
    })
}

/// The same with what policies remember of each.
pub(crate) fn remembered(
    database: &dyn Database,
    question: &DueQuestion,
) -> Result<Vec<Remembered>, StoreError> {
    let sql = DUE.replace(
        "due_us, subject FROM",
        "due_us, subject, visited_us, state FROM",
    );
    database.all(&*sql, &due_cells(question), remembered_row)
}

/// The same in the order of subjects. The index of lanes is kept out of it: it would lead all over the table.
pub(crate) fn remembered_by_subject(
    database: &dyn Database,
    lane: &str,
    after: Option<Key>,
    limit: usize,
) -> Result<Vec<Remembered>, StoreError> {
    let sql = "SELECT due_us, subject, visited_us, state FROM frontier
               WHERE subject > ?2 AND lane || '' = ?1 ORDER BY subject LIMIT ?3";
    let after = after.map_or(i64::MIN, |key| key.0);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    database.all(sql, cells![lane, after, limit], remembered_row)
}

fn remembered_row(row: &dyn Row) -> Result<Remembered, StoreError> {
    Ok(Remembered {
        due: WorldTime(row.get(0)?),
        subject: Key(row.get(1)?),
        visited: row.get::<Option<i64>>(2)?.map(WorldTime),
        state: row.get(3)?,
    })
}

/// What the rows of users tell of how much they write, in the order of the keys.
pub(crate) fn cards(database: &dyn Database, keys: &[Key]) -> Result<Vec<Card>, StoreError> {
    let sql = "SELECT followers_count, following_count, statuses_count, created_us FROM users
               WHERE key = ?1";
    let mut cards = Vec::with_capacity(keys.len());
    for key in keys {
        let card = database.first(sql, cells![key.0], |row| {
            Ok(Card {
                counts: Counts {
                    followers: row.get(0)?,
                    following: row.get(1)?,
                    statuses: row.get(2)?,
                },
                created: row.get::<Option<i64>>(3)?.map(WorldTime),
            })
        })?;
        cards.push(card.unwrap_or_default());
    }
    Ok(cards)
}

/// When an author's posts were made since a time, the newest first, so many at the most.
pub(crate) fn post_times(
    database: &dyn Database,
    author: Key,
    since: WorldTime,
    limit: usize,
) -> Result<Vec<WorldTime>, StoreError> {
    let sql = "SELECT created_us FROM statuses WHERE author = ?1 AND created_us >= ?2
               ORDER BY created_us DESC LIMIT ?3";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    database.all(sql, cells![author.0, since.0, limit], |row| {
        Ok(WorldTime(row.get(0)?))
    })
}

/// The class that was last found of each user, in the order of the keys.
pub(crate) fn classes(
    database: &dyn Database,
    keys: &[Key],
) -> Result<Vec<Option<String>>, StoreError> {
    let sql = "SELECT extra FROM users WHERE key = ?1 AND extra IS NOT NULL";
    let mut classes = Vec::with_capacity(keys.len());
    for key in keys {
        let extra: Option<String> = database.first(sql, cells![key.0], |row| row.get(0))?;
        let class = extra.and_then(|extra| {
            let fields: serde_json::Value = serde_json::from_str(&extra).ok()?;
            Some(fields.get("class")?.as_str()?.to_owned())
        });
        classes.push(class);
    }
    Ok(classes)
}

/// The posts that were found last, so many at the most, of authors who were known when they were made.
pub(crate) fn arrivals(database: &dyn Database, limit: usize) -> Result<Vec<Arrival>, StoreError> {
    // In this order: SQLite, which does not know how many posts a bound number is, may otherwise go
    // through all of `ids` for each of them. It takes CROSS JOIN at its word.
    let sql = "SELECT s.author, s.created_us, found.first_seen_us
               FROM (SELECT key, author, created_us FROM statuses
                     WHERE author IS NOT NULL AND created_us IS NOT NULL
                     ORDER BY key DESC LIMIT ?1) AS s
               CROSS JOIN ids AS found CROSS JOIN ids AS met
               WHERE found.key = s.key AND found.canonical = 1
               AND met.key = s.author AND met.canonical = 1
               AND met.first_seen_us <= s.created_us AND found.first_seen_us >= s.created_us";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    database.all(sql, cells![limit], |row| {
        Ok(Arrival {
            author: Key(row.get(0)?),
            created: WorldTime(row.get(1)?),
            found: WorldTime(row.get(2)?),
        })
    })
}

/// Whatever is called by an id or a name, a few at the most; a handle need not have its host.
pub(crate) fn named(database: &dyn Database, id: &str) -> Result<Vec<Key>, StoreError> {
    const NAMED_MAX: i64 = 10;
    let sql = "SELECT DISTINCT key FROM ids WHERE id = ?1
               OR (alias <> '' AND substr(id, 1, ?2) = ?3) ORDER BY key LIMIT ?4";
    let beginning = format!("{id}@");
    let length = i64::try_from(beginning.chars().count()).unwrap_or(i64::MAX);
    database.all(sql, cells![id, length, &*beginning, NAMED_MAX], |row| {
        Ok(Key(row.get(0)?))
    })
}

/// When the newest answer was asked for, in the world's time.
pub(crate) fn newest(database: &dyn Database) -> Result<Option<WorldTime>, StoreError> {
    let sql = "SELECT at_us FROM query_log ORDER BY id DESC LIMIT 1";
    let newest: Option<i64> = database.first(sql, &[], |row| row.get(0))?;
    Ok(newest.map(WorldTime))
}

/// How what is learnt of a lane is called among the rules.
pub(super) const LEARNT: &str = "learnt/";

/// What policies have learnt of whole lanes. What cannot be read is learnt anew.
pub(crate) fn learnt(database: &dyn Database) -> Result<Vec<Learnt>, StoreError> {
    let sql = "SELECT name, value FROM rules WHERE name LIKE 'learnt/%'";
    let rows = database.all(sql, &[], |row| {
        let (name, value): (String, String) = (row.get(0)?, row.get(1)?);
        let lane = name.strip_prefix(LEARNT).map(Name::from);
        Ok(lane.zip(bytes_of(&value)))
    })?;
    let learnt = |(lane, bytes)| Learnt { lane, bytes };
    Ok(rows.into_iter().flatten().map(learnt).collect())
}

pub(crate) fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let (pairs, odd) = hex.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| Some((digit(*high)? * 16 + digit(*low)?) as u8);
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    bytes.filter(|_| odd.is_empty())
}

pub(crate) fn waiting(database: &dyn Database, question: &DueQuestion) -> Result<u64, StoreError> {
    let sql = format!("SELECT count(*) FROM ({DUE}) AS due");
    let counted = database.only(&*sql, &due_cells(question), |row| row.get(0))?;
    Ok(count(counted))
}

fn due_cells(question: &DueQuestion) -> [Cell<'_>; 5] {
    // Before the first place: no key is so small.
    let (due, subject) = question
        .after
        .unwrap_or((WorldTime(i64::MIN), Key(i64::MIN)));
    [
        Cell::from(&*question.lane),
        due.0.into(),
        subject.0.into(),
        question.not_visited_since.map(|since| since.0).into(),
        i64::try_from(question.limit).unwrap_or(i64::MAX).into(),
    ]
}

pub(crate) fn controls(database: &dyn Database, after: i64) -> Result<Vec<Control>, StoreError> {
    // What this program does not know is left alone, and must not fill a page either.
    let known: Vec<String> = ControlCommand::ALL
        .iter()
        .map(|command| format!("'{command}'"))
        .collect();
    let sql = format!(
        "SELECT id, command, robot FROM control WHERE id > ?1 AND command IN ({})
         ORDER BY id LIMIT ?2",
        known.join(", ")
    );
    let controls = database.all(&*sql, cells![after, CONTROLS_MAX], |row| {
        let control = |command| -> Result<Control, StoreError> {
            Ok(Control {
                id: row.get(0)?,
                command,
                robot: row.get::<Option<String>>(2)?.map(Name::from),
            })
        };
        let command = ControlCommand::from_name(&row.text(1)?);
        command.map(control).transpose()
    })?;
    Ok(controls.into_iter().flatten().collect())
}

pub(crate) fn tasks(
    database: &dyn Database,
    tasks: &[(Key, Name)],
) -> Result<Vec<Option<TaskRecord>>, StoreError> {
    let mut records = Vec::with_capacity(tasks.len());
    for (subject, robot) in tasks {
        records.push(task(database, *subject, robot)?);
    }
    Ok(records)
}

/// A post is as near as its author, or nearer if it was named itself.
pub(super) fn depth(database: &dyn Database, key: i64) -> Result<Option<u32>, StoreError> {
    let sql = "SELECT min(depth) FROM subjects WHERE key IN (
                 ?1, (SELECT author FROM statuses WHERE key = ?1),
                 (SELECT author FROM comments WHERE key = ?1))";
    database.only(sql, cells![key], |row| row.get(0))
}

/// Where a row of the frontier is about to go: its subject, robot, lane and when it is due.
pub(crate) type Filing = (Key, Name, Name, WorldTime);

/// Read in the index alone, whose pages it is about.
pub(crate) const PLACE: &str =
    "SELECT visited_us FROM frontier WHERE lane = ?1 AND due_us = ?2 AND subject = ?3";

/// Looks where rows are in the index of what is due, and where they are about to go.
pub(crate) fn places_of(database: &dyn Database, rows: &[Filing]) -> Result<Vec<()>, StoreError> {
    let now = "SELECT lane, due_us FROM frontier WHERE subject = ?1 AND robot = ?2";
    for (subject, robot, lane, due) in rows {
        let known: Option<(String, i64)> =
            database.first(now, cells![subject.0, &**robot], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        let known = known.iter().map(|(lane, due_us)| (&**lane, *due_us));
        for (lane, due_us) in known.chain([(&**lane, due.0)]) {
            let cells = cells![lane, due_us, subject.0];
            let _: Option<Option<i64>> = database.first(PLACE, cells, |row| row.get(0))?;
        }
    }
    Ok(Vec::new())
}

fn task(
    database: &dyn Database,
    subject: Key,
    robot: &str,
) -> Result<Option<TaskRecord>, StoreError> {
    let row = database.first(
        "SELECT subject, robot, lane, visits, visited_us, due_us, state FROM frontier
             WHERE subject = ?1 AND robot = ?2",
        cells![subject.0, robot],
        frontier_row,
    )?;
    let (Some(row), Some(identity)) = (row, identity(database, subject)?) else {
        return Ok(None);
    };
    let depth = depth(database, subject.0)?;
    let (opted_out, counts) = database.only(
        "SELECT max(CASE WHEN opted_out = 1 THEN 1 ELSE 0 END),
                    max(CASE WHEN key = ?1 THEN statuses_count END),
                    max(CASE WHEN key = ?1 THEN following_count END),
                    max(CASE WHEN key = ?1 THEN followers_count END)
             FROM users WHERE key IN (
               ?1, (SELECT author FROM statuses WHERE key = ?1),
               (SELECT author FROM comments WHERE key = ?1))",
        cells![subject.0],
        |row| {
            let opted_out: Option<i64> = row.get(0)?;
            let counts = Counts {
                statuses: row.get(1)?,
                following: row.get(2)?,
                followers: row.get(3)?,
            };
            Ok((opted_out == Some(1), counts))
        },
    )?;
    Ok(Some(TaskRecord {
        row,
        depth,
        identity,
        cursors: cursors(database, subject)?,
        opted_out,
        counts,
    }))
}

/// Since when all of each group of fields is known. Times that are not in the rows yet are left out:
/// what was seen then is taken for older than it is.
pub(crate) fn described(
    database: &dyn Database,
    table: Table,
    keys: &[Key],
) -> Result<Vec<BTreeMap<Name, WorldTime>>, StoreError> {
    let sql = format!("SELECT observed FROM {} WHERE key = ?1", table.name());
    let mut described = Vec::with_capacity(keys.len());
    for key in keys {
        let text = database.first(&*sql, cells![key.0], |row| row.get::<String>(0))?;
        let groups = text.as_deref().map(observed::from_text).transpose();
        let groups = groups.map_err(|error| unreadable(key.0, &error))?;
        let since = |group: &observed::Read| {
            let older = group.older.values().min();
            let oldest = older.map_or(group.newest, |older| group.newest.min(*older));
            WorldTime(oldest.at_us)
        };
        let groups = groups.unwrap_or_default().into_iter();
        described.push(groups.map(|(name, group)| (name, since(&group))).collect());
    }
    Ok(described)
}

/// Objects of one type that have no table of their own, by their canonical ids, so many at the most.
pub(crate) fn facts(
    database: &dyn Database,
    network: &str,
    kind: &str,
    limit: usize,
) -> Result<Vec<Facts>, StoreError> {
    let sql = "SELECT i.id, o.extra, o.observed, o.key
               FROM objects o JOIN ids i ON i.key = o.key AND i.canonical = 1
               WHERE i.network = ?1 AND i.type = ?2 AND o.extra IS NOT NULL LIMIT ?3";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    database.all(sql, cells![network, kind, limit], |row| {
        let observed: String = row.get(2)?;
        let key: i64 = row.get(3)?;
        let groups = observed::from_text(&observed).map_err(|error| unreadable(key, &error))?;
        let newest = groups.values().map(|group| group.newest.at_us).max();
        Ok(Facts {
            id: row.get(0)?,
            fields: row.get(1)?,
            observed: WorldTime(newest.unwrap_or(i64::MIN)),
        })
    })
}

/// Everything by which an object is known; what was seen last comes first.
pub(crate) fn identity(database: &dyn Database, key: Key) -> Result<Option<Identity>, StoreError> {
    let mut identity: Option<Identity> = None;
    database.each(
        "SELECT network, type, alias, id, host, movable FROM ids WHERE key = ?1
         ORDER BY last_seen_us DESC, alias, id, host",
        cells![key.0],
        |row| {
            let (network, kind) = (name(row, 0)?, name(row, 1)?);
            let identity = identity.get_or_insert_with(|| Identity {
                network,
                kind,
                canonical: None,
                aliases: Vec::new(),
            });
            let (alias, id) = (name(row, 2)?, row.get::<String>(3)?);
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
            Ok(())
        },
    )?;
    Ok(identity)
}

fn cursors(database: &dyn Database, subject: Key) -> Result<Vec<Cursor>, StoreError> {
    let sql =
        "SELECT query, walk, digest, pages, next, checkpoint, mark_next, mark, started_us, items
               FROM cursors WHERE subject = ?1 ORDER BY query";
    database.all(sql, cells![subject.0], |row| {
        let next: Option<String> = row.get(4)?;
        Ok(Cursor {
            subject,
            query: name(row, 0)?,
            walk: row.get(1)?,
            digest: name(row, 2)?,
            pages: row.get(3)?,
            items: row.get(9)?,
            state: match next {
                Some(next) if next.is_empty() => CursorState::NotKept,
                Some(next) => CursorState::Next(next),
                None => CursorState::Complete,
            },
            checkpoint: row.get(5)?,
            mark_next: row.get(6)?,
            mark: row.get(7)?,
            started: WorldTime(row.get(8)?),
        })
    })
}

pub(crate) fn last_run(database: &dyn Database) -> Result<Option<(i64, RunRecord)>, StoreError> {
    let run = database.first(
        "SELECT runs.id, runs.network, host, definition, coalesce(text, ''), clock, settings,
                    started_us
             FROM runs LEFT JOIN definitions ON definitions.digest = runs.definition
             ORDER BY runs.id DESC LIMIT 1",
        &[],
        |row| {
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
        },
    )?;
    Ok(run)
}

/// Counts; `tables` are those of the back end.
pub(crate) fn summary(database: &dyn Database, tables: &[&str]) -> Result<Summary, StoreError> {
    let mut summary = Summary::default();
    for table in tables {
        let sql = format!("SELECT count(*) FROM {table}");
        let rows = database.only(&*sql, &[], |row| row.get(0))?;
        summary.rows.insert((*table).to_owned(), count(rows));
    }
    summary.calls = summary.rows.get("query_log").copied().unwrap_or_default();
    database.each(
        "SELECT robot, count(*), count(*) FILTER (WHERE visits > 0) FROM frontier GROUP BY robot",
        &[],
        |row| {
            let counted = (count(row.get(1)?), count(row.get(2)?));
            summary.robots.insert(name(row, 0)?, counted);
            Ok(())
        },
    )?;
    database.each(
        "SELECT outcome, count(*) FROM outcomes GROUP BY outcome",
        &[],
        |row| {
            summary.outcomes.insert(row.get(0)?, count(row.get(1)?));
            Ok(())
        },
    )?;
    database.each(
        "SELECT query, outcome, reason, count(*) AS subjects FROM outcomes
         WHERE outcome NOT IN ('ok', 'empty', 'not modified') AND reason <> ''
         GROUP BY query, outcome, reason ORDER BY subjects DESC, query, outcome, reason LIMIT 10",
        &[],
        |row| {
            summary.reasons.push(Reason {
                query: row.get(0)?,
                outcome: row.get(1)?,
                reason: row.get(2)?,
                subjects: count(row.get(3)?),
            });
            Ok(())
        },
    )?;
    database.each(
        "SELECT depth, count(*) FROM subjects GROUP BY depth",
        &[],
        |row| {
            summary.depths.insert(row.get(0)?, count(row.get(1)?));
            Ok(())
        },
    )?;
    Ok(summary)
}

fn count(rows: i64) -> u64 {
    u64::try_from(rows).unwrap_or_default()
}
