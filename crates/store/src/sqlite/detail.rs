//! Reading how a crawl stands and how it came about.

use crate::StoreError;
use crate::detail::{
    CallCount, DefinitionUse, Detail, Methods, NextVisit, Recent, RunCalls, RunDetail,
};
use kittiwake_model::{ControlCommand, Name, OutcomeCode};
use rusqlite::{Connection, OptionalExtension as _, Row};
use std::collections::BTreeSet;

/// Calls that "recently" means.
const RECENT_CALLS: i64 = 5_000;
/// Subjects shown of every lane.
const NEXT_PER_LANE: i64 = 3;

pub(super) fn detail(connection: &Connection) -> Result<Detail, StoreError> {
    let transaction = connection.unchecked_transaction()?;
    let last_run = transaction
        .prepare_cached(&format!("{RUNS} ORDER BY id DESC LIMIT 1"))?
        .query_row([], run)
        .optional()?;
    Ok(Detail {
        last_run,
        recent: recent(&transaction)?,
        next: next(&transaction)?,
        paused: paused(&transaction)?,
    })
}

const RUNS: &str = "SELECT id, network, host, definition, clock, settings, started_us, ended_us,
                           end_reason FROM runs";

fn run(row: &Row<'_>) -> rusqlite::Result<RunDetail> {
    Ok(RunDetail {
        number: row.get(0)?,
        network: row.get(1)?,
        host: row.get(2)?,
        definition: row.get(3)?,
        clock: row.get(4)?,
        settings: row.get(5)?,
        started_us: row.get(6)?,
        ended_us: row.get(7)?,
        end_reason: row.get(8)?,
    })
}

fn recent(connection: &Connection) -> Result<Recent, StoreError> {
    let sql = "SELECT count(*), coalesce(max(committed_us) - min(sent_us), 0),
                      coalesce(sum(bytes), 0), coalesce(sum(rank_us), 0),
                      coalesce(sum(max(sent_us - scheduled_us, 0)), 0),
                      coalesce(sum(max(answered_us - sent_us, 0)), 0), coalesce(sum(seed_us), 0),
                      coalesce(sum(max(committed_us - answered_us - seed_us, 0)), 0)
               FROM (SELECT * FROM query_log ORDER BY id DESC LIMIT ?1)";
    let recent = connection
        .prepare_cached(sql)?
        .query_row([RECENT_CALLS], |row| {
            Ok(Recent {
                calls: number(row, 0)?,
                span_us: number(row, 1)?,
                bytes: number(row, 2)?,
                ranking_us: number(row, 3)?,
                waiting_us: number(row, 4)?,
                network_us: number(row, 5)?,
                reading_us: number(row, 6)?,
                storing_us: number(row, 7)?,
            })
        })?;
    Ok(recent)
}

fn number(row: &Row<'_>, place: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(place)?).unwrap_or_default())
}

fn next(connection: &Connection) -> Result<Vec<NextVisit>, StoreError> {
    // One jump of the index per lane, not a look at every row.
    let lanes = "WITH RECURSIVE lanes(lane) AS (
                   SELECT min(lane) FROM frontier
                   UNION ALL
                   SELECT (SELECT min(lane) FROM frontier WHERE lane > lanes.lane) FROM lanes
                   WHERE lane IS NOT NULL)
                 SELECT lane FROM lanes WHERE lane IS NOT NULL LIMIT 1000";
    let lanes: Vec<String> = connection
        .prepare_cached(lanes)?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut statement = connection.prepare_cached(
        "SELECT robot, due_us, visits > 0,
                coalesce((SELECT id FROM ids WHERE key = subject AND alias = 'handle'
                          ORDER BY last_seen_us DESC LIMIT 1),
                         (SELECT id FROM ids WHERE key = subject
                          ORDER BY canonical DESC, last_seen_us DESC LIMIT 1), subject)
         FROM frontier WHERE lane = ?1 ORDER BY due_us, subject LIMIT ?2",
    )?;
    let mut next = Vec::new();
    for lane in lanes {
        let mut rows = statement.query((lane, NEXT_PER_LANE))?;
        while let Some(row) = rows.next()? {
            next.push(NextVisit {
                robot: Name::from(row.get::<_, String>(0)?),
                due_us: row.get(1)?,
                is_revisit: row.get(2)?,
                subject: row.get(3)?,
            });
        }
    }
    Ok(next)
}

/// Who is paused, from all commands in their order.
fn paused(connection: &Connection) -> Result<Vec<Option<Name>>, StoreError> {
    let mut paused: BTreeSet<Option<Name>> = BTreeSet::new();
    let mut statement =
        connection.prepare_cached("SELECT command, robot FROM control ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let command: String = row.get(0)?;
        let robot = row.get::<_, Option<String>>(1)?.map(Name::from);
        match (ControlCommand::from_name(&command), &robot) {
            (Some(ControlCommand::Pause), _) => {
                paused.insert(robot);
            }
            (Some(ControlCommand::Resume), None) => paused.clear(),
            (Some(ControlCommand::Resume), _) => {
                paused.remove(&robot);
            }
            (Some(ControlCommand::Stop) | None, _) => {}
        }
    }
    Ok(paused.into_iter().collect())
}

pub(super) fn methods(connection: &Connection) -> Result<Methods, StoreError> {
    let transaction = connection.unchecked_transaction()?;
    let runs: Vec<RunDetail> = transaction
        .prepare_cached(&format!("{RUNS} ORDER BY id"))?
        .query_map([], run)?
        .collect::<Result<_, _>>()?;
    let mut methods = Methods {
        runs: runs
            .into_iter()
            .map(|run| (run, RunCalls::default()))
            .collect(),
        definitions: definitions(&transaction)?,
        hosts: hosts(&transaction)?,
        opted_out: opted_out(&transaction)?,
        ..Methods::default()
    };
    count_calls(&transaction, &mut methods)?;
    let mut statement = transaction
        .prepare_cached("SELECT query, outcome, reason, count(*) FROM outcomes GROUP BY 1, 2, 3")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let group = (row.get(0)?, row.get(1)?, row.get(2)?);
        methods.outcomes.insert(group, number(row, 3)?);
    }
    Ok(methods)
}

/// One pass over the log: calls belong to the run that was under way when they were committed.
fn count_calls(connection: &Connection, methods: &mut Methods) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT query, outcome, bytes, committed_us, rows_new, rows_changed, mended
         FROM query_log ORDER BY id",
    )?;
    let mut rows = statement.query([])?;
    let mut run = 0;
    while let Some(row) = rows.next()? {
        let (query, outcome): (String, String) = (row.get(0)?, row.get(1)?);
        let (bytes, committed_us) = (number(row, 2)?, row.get::<_, i64>(3)?);
        while methods
            .runs
            .get(run + 1)
            .is_some_and(|(next, _)| next.started_us <= committed_us)
        {
            run += 1;
        }
        if let Some((_, done)) = methods.runs.get_mut(run) {
            let outcome = outcome.parse::<OutcomeCode>().ok();
            done.calls += 1;
            done.bytes += bytes;
            done.refused += u64::from(outcome == Some(OutcomeCode::RateLimited));
            let is_failure = |code| {
                matches!(
                    code,
                    OutcomeCode::Transient | OutcomeCode::HostDown | OutcomeCode::Malformed
                )
            };
            done.failed += u64::from(outcome.is_some_and(is_failure));
            done.rows_new += number(row, 4)?;
            done.rows_changed += number(row, 5)?;
        }
        methods.mended += number(row, 6)?;
        let count: &mut CallCount = methods.calls.entry((query, outcome)).or_default();
        count.calls += 1;
        count.bytes += bytes;
    }
    Ok(())
}

fn definitions(connection: &Connection) -> Result<Vec<DefinitionUse>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT network, digest, text FROM definitions ORDER BY 1, 2")?;
    let rows = statement.query_map([], |row| {
        Ok(DefinitionUse {
            network: row.get(0)?,
            digest: row.get(1)?,
            text: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn opted_out(connection: &Connection) -> Result<u64, StoreError> {
    let sql = "SELECT count(DISTINCT o.key) FROM outcomes o JOIN users u ON u.key = o.key
               WHERE o.outcome = 'opted out'";
    let counted = connection
        .prepare_cached(sql)?
        .query_row([], |row| number(row, 0))?;
    Ok(counted)
}

/// Hosts are kept as objects of the type that their definition gives them.
fn hosts(connection: &Connection) -> Result<Vec<(String, String)>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT i.id, o.extra FROM objects o JOIN ids i ON i.key = o.key AND i.canonical
         WHERE i.type = 'instance' AND o.extra IS NOT NULL ORDER BY 1 LIMIT 100",
    )?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
