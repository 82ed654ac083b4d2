//! Reading how a crawl stands and how it came about.

use crate::StoreError;
use crate::cell::{Row, cells};
use crate::database::Database;
use crate::detail::{
    CallCount, DefinitionUse, Detail, Methods, NextVisit, Recent, RunCalls, RunDetail,
};
use kittiwake_model::{ControlCommand, Name, OutcomeCode};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Calls that "recently" means.
const RECENT_CALLS: i64 = 5_000;
/// Subjects shown of every lane.
const NEXT_PER_LANE: i64 = 3;

pub(crate) fn detail(database: &dyn Database) -> Result<Detail, StoreError> {
    let last_run = database.first(&*format!("{RUNS} ORDER BY id DESC LIMIT 1"), &[], run)?;
    Ok(Detail {
        last_run,
        recent: recent(database)?,
        next: next(database)?,
        paused: paused(database)?,
    })
}

pub(super) const RUNS: &str =
    "SELECT id, network, host, definition, clock, settings, started_us, ended_us,
                           end_reason FROM runs";

pub(super) fn run(row: &dyn Row) -> Result<RunDetail, StoreError> {
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

fn recent(database: &dyn Database) -> Result<Recent, StoreError> {
    let sql = "SELECT count(*), coalesce(max(committed_us) - min(sent_us), 0),
                      CAST(coalesce(sum(bytes), 0) AS BIGINT),
                      CAST(coalesce(sum(rank_us), 0) AS BIGINT),
                      CAST(coalesce(sum(max(sent_us - scheduled_us, 0)), 0) AS BIGINT),
                      CAST(coalesce(sum(max(answered_us - sent_us, 0)), 0) AS BIGINT),
                      CAST(coalesce(sum(read_us), 0) AS BIGINT),
                      CAST(coalesce(sum(seed_us), 0) AS BIGINT),
                      CAST(coalesce(sum(max(committed_us - answered_us - read_us - seed_us, 0)), 0)
                           AS BIGINT)
               FROM (SELECT * FROM query_log ORDER BY id DESC LIMIT ?1) AS recent";
    let recent = database.only(sql, cells![RECENT_CALLS], |row| {
        Ok(Recent {
            calls: number(row, 0)?,
            span_us: number(row, 1)?,
            bytes: number(row, 2)?,
            ranking_us: number(row, 3)?,
            waiting_us: number(row, 4)?,
            network_us: number(row, 5)?,
            reading_us: number(row, 6)?,
            seeding_us: number(row, 7)?,
            storing_us: number(row, 8)?,
            ranking_us_p99: 0,
            seeding_us_p99: 0,
        })
    })?;
    Ok(Recent {
        ranking_us_p99: slowest(database, "rank_us", recent.calls)?,
        seeding_us_p99: slowest(database, "seed_us", recent.calls)?,
        ..recent
    })
}

/// What all but a hundredth of the latest calls stayed within.
fn slowest(database: &dyn Database, column: &str, calls: u64) -> Result<u64, StoreError> {
    let sql = format!(
        "SELECT {column} FROM (SELECT {column} FROM query_log ORDER BY id DESC LIMIT ?1) AS recent
         ORDER BY {column} DESC LIMIT 1 OFFSET ?2"
    );
    let over = i64::try_from(calls / 100).unwrap_or_default();
    let found = database.first(&*sql, cells![RECENT_CALLS, over], |row| number(row, 0))?;
    Ok(found.unwrap_or_default())
}

fn number(row: &dyn Row, place: usize) -> Result<u64, StoreError> {
    Ok(u64::try_from(row.get::<i64>(place)?).unwrap_or_default())
}

/// The lanes that have subjects.
pub(crate) fn lanes(database: &dyn Database) -> Result<Vec<String>, StoreError> {
    // One jump of the index per lane, not a look at every row.
    let lanes = "WITH RECURSIVE lanes(lane) AS (
                   SELECT min(lane) FROM frontier
                   UNION ALL
                   SELECT (SELECT min(lane) FROM frontier WHERE lane > lanes.lane) FROM lanes
                   WHERE lane IS NOT NULL)
                 SELECT lane FROM lanes WHERE lane IS NOT NULL LIMIT 1000";
    database.all(lanes, &[], |row| row.get(0))
}

fn next(database: &dyn Database) -> Result<Vec<NextVisit>, StoreError> {
    let lanes = lanes(database)?;
    let sql = "SELECT robot, due_us, visits > 0,
                coalesce((SELECT id FROM ids WHERE key = subject AND alias = 'handle'
                          ORDER BY last_seen_us DESC LIMIT 1),
                         (SELECT id FROM ids WHERE key = subject
                          ORDER BY canonical DESC, last_seen_us DESC LIMIT 1),
                         CAST(subject AS TEXT))
         FROM frontier WHERE lane = ?1 ORDER BY due_us, subject LIMIT ?2";
    let mut next = Vec::new();
    for lane in lanes {
        database.each(sql, cells![lane, NEXT_PER_LANE], |row| {
            next.push(NextVisit {
                robot: Name::from(row.get::<String>(0)?),
                due_us: row.get(1)?,
                is_revisit: row.get(2)?,
                subject: row.get(3)?,
            });
            Ok(())
        })?;
    }
    Ok(next)
}

/// Who is paused, from all commands in their order.
fn paused(database: &dyn Database) -> Result<Vec<Option<Name>>, StoreError> {
    let mut paused: BTreeSet<Option<Name>> = BTreeSet::new();
    database.each(
        "SELECT command, robot FROM control ORDER BY id",
        &[],
        |row| {
            let robot = row.get::<Option<String>>(1)?.map(Name::from);
            match (ControlCommand::from_name(&row.text(0)?), &robot) {
                (Some(ControlCommand::Pause), _) => {
                    paused.insert(robot);
                }
                (Some(ControlCommand::Resume), None) => paused.clear(),
                (Some(ControlCommand::Resume), _) => {
                    paused.remove(&robot);
                }
                (Some(ControlCommand::Stop) | None, _) => {}
            }
            Ok(())
        },
    )?;
    Ok(paused.into_iter().collect())
}

pub(crate) fn methods(database: &dyn Database) -> Result<Methods, StoreError> {
    let runs: Vec<RunDetail> = database.all(&*format!("{RUNS} ORDER BY id"), &[], run)?;
    let mut methods = Methods {
        runs: runs
            .into_iter()
            .map(|run| (run, RunCalls::default()))
            .collect(),
        definitions: definitions(database)?,
        hosts: hosts(database)?,
        opted_out: opted_out(database)?,
        ..Methods::default()
    };
    count_calls(database, &mut methods)?;
    let sql = "SELECT query, outcome, reason, count(*) FROM outcomes GROUP BY 1, 2, 3";
    database.each(sql, &[], |row| {
        let group = (row.get(0)?, row.get(1)?, row.get(2)?);
        methods.outcomes.insert(group, number(row, 3)?);
        Ok(())
    })?;
    Ok(methods)
}

/// One pass over the log: calls belong to the run that was under way when they were committed.
fn count_calls(database: &dyn Database, methods: &mut Methods) -> Result<(), StoreError> {
    let sql = "SELECT query, outcome, bytes, committed_us, rows_new, rows_changed, mended
               FROM query_log ORDER BY id";
    let mut run = 0;
    database.stream(sql, &[], &mut |row| {
        let (query, outcome): (String, String) = (row.get(0)?, row.get(1)?);
        let (bytes, committed_us) = (number(row, 2)?, row.get::<i64>(3)?);
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
        Ok(ControlFlow::Continue(()))
    })
}

fn definitions(database: &dyn Database) -> Result<Vec<DefinitionUse>, StoreError> {
    let sql = "SELECT network, digest, text FROM definitions ORDER BY 1, 2";
    database.all(sql, &[], |row| {
        Ok(DefinitionUse {
            network: row.get(0)?,
            digest: row.get(1)?,
            text: row.get(2)?,
        })
    })
}

fn opted_out(database: &dyn Database) -> Result<u64, StoreError> {
    let sql = "SELECT count(DISTINCT o.key) FROM outcomes o JOIN users u ON u.key = o.key
               WHERE o.outcome = 'opted out'";
    database.only(sql, &[], |row| number(row, 0))
}

/// Hosts are kept as objects of the type that their definition gives them.
fn hosts(database: &dyn Database) -> Result<Vec<(String, String)>, StoreError> {
    database.all(
        "SELECT i.id, o.extra FROM objects o JOIN ids i ON i.key = o.key AND i.canonical = 1
         WHERE i.type = 'instance' AND o.extra IS NOT NULL ORDER BY 1 LIMIT 100",
        &[],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}
