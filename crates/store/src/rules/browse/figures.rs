//! Figures over bounded stretches of a crawl.

use super::crawl::{FAILED, newest_call};
use super::rows::{class_in, each_of, short};
use crate::StoreError;
use crate::browse::{
    Activity, ActivityQuestion, Ages, AgesQuestion, Bucket, ErrorReason, Errors, Hours,
};
use crate::cell::{Row, cells};
use crate::database::Database;
pub(crate) use crate::rules::detail::lanes;
use kittiwake_model::RealTime;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Calls that one figure looks at.
const CALLS_MAX: usize = 20_000;
/// Reasons of failures that are told apart.
const REASONS_MAX: i64 = 50;
const BUCKETS_MAX: usize = 500;
/// Queries whose activity is told apart.
const QUERIES_MAX: usize = 100;

/// Calls after this one are the newest so many.
fn newest_calls_after(database: &dyn Database, calls: usize) -> Result<i64, StoreError> {
    let calls = i64::try_from(calls.clamp(1, CALLS_MAX)).unwrap_or(1);
    Ok(newest_call(database)?.saturating_sub(calls).max(0))
}

fn count(row: &dyn Row, place: usize) -> Result<u64, StoreError> {
    Ok(u64::try_from(row.get::<i64>(place)?).unwrap_or_default())
}

pub(crate) fn errors(database: &dyn Database, last_calls: usize) -> Result<Errors, StoreError> {
    let after = newest_calls_after(database, last_calls)?;
    let mut errors = Errors::default();
    let sql =
        "SELECT outcome, count(*), min(sent_us) FROM query_log WHERE id > ?1 GROUP BY outcome";
    database.each(sql, cells![after], |row| {
        let calls = count(row, 1)?;
        let since = RealTime(row.get(2)?);
        errors.calls += calls;
        errors.since = Some(errors.since.map_or(since, |known| known.min(since)));
        errors.outcomes.insert(row.get(0)?, calls);
        Ok(())
    })?;
    let sql = format!(
        "SELECT query, outcome, substr(reason, 1, 200), count(*), max(id) FROM query_log
         WHERE id > ?1 AND {FAILED} GROUP BY 1, 2, 3 ORDER BY 4 DESC, 5 DESC LIMIT ?2"
    );
    errors.reasons = database.all(&*sql, cells![after, REASONS_MAX], |row| {
        Ok(ErrorReason {
            query: row.get(0)?,
            outcome: row.get(1)?,
            reason: short(row, 2)?,
            calls: count(row, 3)?,
            call: row.get(4)?,
        })
    })?;
    Ok(errors)
}

pub(crate) fn activity(
    database: &dyn Database,
    question: ActivityQuestion,
) -> Result<Activity, StoreError> {
    let after = newest_calls_after(database, question.calls_max)?;
    let since_us = question.since.map_or(i64::MIN, |since| since.0);
    let sql = "SELECT min(committed_us), max(committed_us) FROM query_log
               WHERE id > ?1 AND committed_us >= ?2";
    let span: (Option<i64>, Option<i64>) = database.only(sql, cells![after, since_us], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    let (Some(first_us), Some(last_us)) = span else {
        return Ok(Activity::default());
    };
    let from_us = question
        .since
        .map_or(first_us, |since| since.0.min(last_us));
    let buckets = question.buckets.clamp(1, BUCKETS_MAX);
    let span_us = last_us.saturating_sub(from_us).saturating_add(1);
    let bucket_us = span_us / (buckets as i64) + 1;
    let mut activity = Activity {
        from: RealTime(from_us),
        bucket_us,
        buckets,
        ..Activity::default()
    };
    let sql = format!(
        "SELECT query, (committed_us - ?3) / ?4, count(*),
                CAST(sum(CASE WHEN {FAILED} THEN 1 ELSE 0 END) AS BIGINT),
                CAST(sum(rows_new) AS BIGINT), CAST(sum(rows_changed) AS BIGINT),
                CAST(sum(bytes) AS BIGINT)
         FROM query_log WHERE id > ?1 AND committed_us >= ?2 GROUP BY 1, 2"
    );
    let cells = cells![after, since_us, from_us, bucket_us];
    database.each(&*sql, cells, |row| {
        let bucket = Bucket {
            calls: count(row, 2)?,
            failed: count(row, 3)?,
            rows_new: count(row, 4)?,
            rows_changed: count(row, 5)?,
            bytes: count(row, 6)?,
        };
        activity.calls += bucket.calls;
        let place = usize::try_from(row.get::<i64>(1)?).unwrap_or(usize::MAX);
        let query: String = row.get(0)?;
        let is_known = activity.queries.contains_key(&query);
        if place < buckets && (is_known || activity.queries.len() < QUERIES_MAX) {
            let of_query = activity.queries.entry(query);
            of_query.or_insert_with(|| vec![Bucket::default(); buckets])[place] = bucket;
        }
        Ok(())
    })?;
    Ok(activity)
}

/// The upper ends of the stretches of ages: minutes, hours, days, weeks, months, a year.
const AGE_EDGES_S: [i64; 12] = [
    60, 600, 3_600, 10_800, 21_600, 43_200, 86_400, 259_200, 604_800, 1_209_600, 2_592_000,
    31_536_000,
];
const SAMPLE_MAX: usize = 4_000;
/// Places in the order of keys from which a sample is read.
const JUMPS: i64 = 40;
/// Rows that are read at one place for each that is wanted: most subjects have several robots.
const ROWS_PER_WANTED: i64 = 8;

pub(crate) fn ages(database: &dyn Database, question: &AgesQuestion) -> Result<Ages, StoreError> {
    let edges_us: Vec<i64> = AGE_EDGES_S.iter().map(|edge| edge * 1_000_000).collect();
    let sample_max = question.sample_max.clamp(1, SAMPLE_MAX);
    let (visited, is_whole) = sample(database, &question.lane, sample_max)?;
    let mut ages = Ages {
        sample: visited.len() as u64,
        is_whole,
        ..Ages::default()
    };
    let classes = classes(database, &visited.keys().copied().collect())?;
    for (subject, visited_us) in visited {
        let Some(visited_us) = visited_us else {
            ages.unvisited += 1;
            continue;
        };
        let age_us = question.now.0.saturating_sub(visited_us);
        let place = edges_us.partition_point(|edge| *edge < age_us);
        let class = classes.get(&subject).cloned().unwrap_or_default();
        let stretches = ages.classes.entry(class);
        stretches.or_insert_with(|| vec![0; edges_us.len() + 1])[place] += 1;
    }
    ages.edges_us = edges_us;
    Ok(ages)
}

type Visited = BTreeMap<i64, Option<i64>>;

/// Subjects of a lane with their last visits: all, if they are few, else some from everywhere.
fn sample(
    database: &dyn Database,
    lane: &str,
    sample_max: usize,
) -> Result<(Visited, bool), StoreError> {
    let mut visited = Visited::new();
    let mut read = |row: &dyn Row| -> Result<(), StoreError> {
        visited.insert(row.get(0)?, row.get(1)?);
        Ok(())
    };
    let limit = i64::try_from(sample_max).unwrap_or(1);
    let sql = "SELECT subject, visited_us FROM frontier WHERE lane = ?1
               ORDER BY due_us, subject LIMIT ?2";
    database.each(sql, cells![lane, limit + 1], &mut read)?;
    if visited.len() <= sample_max {
        return Ok((visited, true));
    }
    // Those who are due first are not like the others.
    visited.clear();
    let mut read = |row: &dyn Row| -> Result<(), StoreError> {
        visited.insert(row.get(0)?, row.get(1)?);
        Ok(())
    };
    // Asked for one by one, each end is one look into the index.
    let span = "SELECT coalesce((SELECT min(subject) FROM frontier), 0),
                       coalesce((SELECT max(subject) FROM frontier), 0)";
    let (first, last): (i64, i64) =
        database.only(span, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let step = last.saturating_sub(first) / JUMPS + 1;
    let wanted = limit / JUMPS + 1;
    let sql = "SELECT subject, visited_us FROM (
                 SELECT subject, lane, visited_us FROM frontier WHERE subject >= ?2
                 ORDER BY subject, robot LIMIT ?3) AS near
               WHERE lane = ?1 LIMIT ?4";
    for jump in 0..JUMPS {
        let from = first.saturating_add(step.saturating_mul(jump));
        let cells = cells![lane, from, wanted * ROWS_PER_WANTED, wanted];
        database.each(sql, cells, &mut read)?;
    }
    Ok((visited, false))
}

fn classes(
    database: &dyn Database,
    keys: &BTreeSet<i64>,
) -> Result<HashMap<i64, String>, StoreError> {
    let mut classes = HashMap::new();
    let sql = "SELECT key, extra FROM users WHERE key IN ({keys}) AND extra IS NOT NULL";
    each_of(database, sql, keys, |row| {
        let extra: Option<String> = row.get(1)?;
        if let Some(class) = class_in(extra.as_deref()) {
            classes.insert(row.get(0)?, class);
        }
        Ok(())
    })?;
    Ok(classes)
}

const POSTS_MAX: usize = 20_000;

pub(crate) fn hours(database: &dyn Database, sample_max: usize) -> Result<Hours, StoreError> {
    let limit = i64::try_from(sample_max.clamp(1, POSTS_MAX)).unwrap_or(1);
    // Times before 1970 are below zero, and so is what is left of them.
    let sql = "SELECT ((created_us / 3600000000) % 24 + 24) % 24, count(*)
               FROM (SELECT created_us FROM statuses ORDER BY key DESC LIMIT ?1) AS newest
               WHERE created_us IS NOT NULL GROUP BY 1";
    let mut hours = Hours::default();
    database.each(sql, cells![limit], |row| {
        let posts = count(row, 1)?;
        let hour = usize::try_from(row.get::<i64>(0)?).unwrap_or_default();
        if let Some(hour) = hours.hours.get_mut(hour) {
            *hour += posts;
        }
        hours.sample += posts;
        Ok(())
    })?;
    Ok(hours)
}
