//! Calls, runs and outcomes.

use super::rows::short;
use super::{labels, one_more, split_page};
use crate::StoreError;
use crate::browse::{
    CallRow, CallView, CallsQuestion, Cursor, OutcomeRow, OutcomesOf, OutcomesQuestion, Page,
    RunsQuestion, clamped,
};
use crate::cell::{Row, cells};
use crate::database::Database;
use crate::detail::RunDetail;
use crate::rules::detail::{RUNS, run};
use kittiwake_model::{OutcomeCode, RealTime, WorldTime};
use std::collections::{BTreeSet, HashMap};

/// Rows of the log, or outcomes, that one request with a filter looks at.
const STRETCH: i64 = 10_000;
/// Subjects of a call that are named in a list.
const SUBJECTS_MAX: usize = 5;
/// Subjects of a call that are read.
const SUBJECTS_READ_MAX: usize = 1_000;

const CALL_COLUMNS: &str = "id, query, subjects, substr(target, 1, 1001), status, outcome, reason,
     at_us, sent_us, answered_us, bytes, rows_new, rows_changed";

/// What is no success, as SQL.
pub(super) const FAILED: &str = "outcome NOT IN ('ok', 'empty', 'not modified')";

/// A call whose subjects have no names yet.
struct Call {
    subjects: Vec<i64>,
    row: CallRow,
}

pub(super) fn newest_call(database: &dyn Database) -> Result<i64, StoreError> {
    let sql = "SELECT coalesce(max(id), 0) FROM query_log";
    database.only(sql, &[], |row| row.get(0))
}

pub(crate) fn calls(
    database: &dyn Database,
    question: &CallsQuestion,
) -> Result<Page<CallRow>, StoreError> {
    const ORDER: &str = "calls";
    let limit = clamped(question.limit);
    let before = match &question.after {
        Some(after) => Cursor::<1>::read(after, ORDER)?.numbers[0],
        None => newest_call(database)?.saturating_add(1),
    };
    let sql = format!(
        "SELECT {CALL_COLUMNS} FROM query_log
         WHERE id < ?1 AND id >= ?2 AND (?3 = '' OR query = ?3) AND (?4 = '' OR outcome = ?4)
           AND (?5 = 0 OR {FAILED}) AND (?6 = '' OR subjects LIKE ?6)
         ORDER BY id DESC LIMIT ?7"
    );
    let from = before.saturating_sub(STRETCH).max(1);
    let subject = question.subject;
    let like = subject.map_or_else(String::new, |subject| format!("%{}%", subject.0));
    let cells = cells![
        before,
        from,
        question.query.as_deref().unwrap_or_default(),
        question.outcome.map_or("", OutcomeCode::code),
        question.failed_only,
        &*like,
        one_more(limit),
    ];
    let found = database.all(&*sql, cells, call_of)?;
    let is_cut = found.len() > limit;
    let last_seen = found.get(limit.wrapping_sub(1)).map(|call| call.row.id);
    // The text of one number may be part of another.
    let is_of = |call: &Call| subject.is_none_or(|subject| call.subjects.contains(&subject.0));
    let found: Vec<Call> = found.into_iter().take(limit).filter(is_of).collect();
    let next = match last_seen.filter(|_| is_cut) {
        Some(last) => Some(last),
        None => (from > 1).then_some(from),
    };
    Ok(Page {
        rows: with_names(database, found, SUBJECTS_MAX)?,
        next: next.map(|next| Cursor::new([next]).to_text(ORDER)),
    })
}

fn call_of(row: &dyn Row) -> Result<Call, StoreError> {
    // What cannot be read names nobody.
    let mut subjects: Vec<i64> = serde_json::from_str(&row.text(2)?).unwrap_or_default();
    let subjects_count = subjects.len();
    subjects.truncate(SUBJECTS_READ_MAX);
    Ok(Call {
        subjects,
        row: CallRow {
            id: row.get(0)?,
            query: row.get(1)?,
            subjects: Vec::new(),
            subjects_count,
            target: short(row, 3)?,
            status: row.get(4)?,
            outcome: row.get(5)?,
            reason: short(row, 6)?.text,
            at: WorldTime(row.get(7)?),
            sent: RealTime(row.get(8)?),
            answered: RealTime(row.get(9)?),
            bytes: row.get(10)?,
            rows_new: row.get(11)?,
            rows_changed: row.get(12)?,
        },
    })
}

fn with_names(
    database: &dyn Database,
    calls: Vec<Call>,
    subjects_max: usize,
) -> Result<Vec<CallRow>, StoreError> {
    let shown = |call: &Call| call.subjects.iter().copied().take(subjects_max).collect();
    let keys: BTreeSet<i64> = calls
        .iter()
        .flat_map(|call| -> Vec<i64> { shown(call) })
        .collect();
    let labels = labels(database, &keys)?;
    let rows = calls.into_iter().map(|call| {
        let subjects: Vec<i64> = shown(&call);
        let subjects = subjects.iter().filter_map(|key| labels.get(key).cloned());
        CallRow {
            subjects: subjects.collect(),
            ..call.row
        }
    });
    Ok(rows.collect())
}

pub(crate) fn call(database: &dyn Database, id: i64) -> Result<Option<CallView>, StoreError> {
    const NAMED_MAX: usize = 200;
    let sql = format!(
        "SELECT {CALL_COLUMNS}, cursor, credential, node, scheduled_us, committed_us, budgets, rank_us,
                read_us, seed_us, mended, definition,
                EXISTS (SELECT 1 FROM raw WHERE raw.log = query_log.id)
         FROM query_log WHERE id = ?1"
    );
    let found = database.first(&*sql, cells![id], |row| {
        let call = call_of(row)?;
        let view = CallView {
            row: call.row.clone(),
            cursor: row.get(13)?,
            credential: row.get(14)?,
            node: row.get(15)?,
            scheduled: RealTime(row.get(16)?),
            committed: RealTime(row.get(17)?),
            budgets: serde_json::from_str(&row.text(18)?).unwrap_or_default(),
            rank_us: row.get(19)?,
            read_us: row.get(20)?,
            seed_us: row.get(21)?,
            mended: row.get(22)?,
            definition: row.get(23)?,
            has_raw: row.get(24)?,
        };
        Ok((call, view))
    })?;
    let Some((call, mut view)) = found else {
        return Ok(None);
    };
    if let Some(row) = with_names(database, vec![call], NAMED_MAX)?.pop() {
        view.row = row;
    }
    Ok(Some(view))
}

pub(crate) fn runs(
    database: &dyn Database,
    question: &RunsQuestion,
) -> Result<Page<RunDetail>, StoreError> {
    const ORDER: &str = "runs";
    let limit = clamped(question.limit);
    let before = match &question.after {
        Some(after) => Cursor::<1>::read(after, ORDER)?.numbers[0],
        None => i64::MAX,
    };
    let sql = format!("{RUNS} WHERE id < ?1 ORDER BY id DESC LIMIT ?2");
    let found = database.all(&*sql, cells![before, one_more(limit)], run)?;
    let (rows, has_more) = split_page(found, limit);
    let last = rows.last().filter(|_| has_more);
    Ok(Page {
        next: last.map(|last| Cursor::new([last.number]).to_text(ORDER)),
        rows,
    })
}

const OUTCOME_COLUMNS: &str = "key, query, outcome, reason, at_us, log, times";

/// An outcome whose subject has no name yet.
struct Told {
    key: i64,
    query: String,
    outcome: String,
    reason: String,
    at: WorldTime,
    log: i64,
    times: i64,
}

pub(crate) fn outcomes(
    database: &dyn Database,
    question: &OutcomesQuestion,
) -> Result<Page<OutcomeRow>, StoreError> {
    const ORDER: &str = "outcomes";
    let limit = clamped(question.limit);
    let place = match &question.after {
        Some(after) => Cursor::<1>::read(after, ORDER)?,
        None => Cursor::new([i64::MIN]),
    };
    let (wanted, failed) = match question.of {
        OutcomesOf::Outcome(code) => (code.code(), false),
        OutcomesOf::Failed => ("", true),
        OutcomesOf::Everybody | OutcomesOf::Subject(_) => ("", false),
    };
    let (key_from, key_until) = match question.of {
        OutcomesOf::Subject(key) => (key.0, key.0),
        _ => (i64::MIN, i64::MAX),
    };
    let begin = place.numbers[0].max(key_from);
    // One stretch of the table; the filter is applied to what it holds.
    let sql = format!(
        "SELECT {OUTCOME_COLUMNS} FROM outcomes
         WHERE (key, query) > (?1, ?2) AND key <= ?3 ORDER BY key, query LIMIT ?4"
    );
    let word = if place.numbers[0] < begin {
        ""
    } else {
        &*place.word
    };
    let is_filtered = failed || !wanted.is_empty();
    let stretch = if is_filtered {
        STRETCH
    } else {
        one_more(limit)
    };
    let cells = cells![begin, word, key_until, stretch];
    let (mut found, mut last, mut seen, mut is_cut) = (Vec::new(), None, 0_i64, false);
    database.query((&*sql).into(), cells, &mut |row| {
        let row = outcome_of(row)?;
        if found.len() == limit {
            is_cut = true;
            return Ok(std::ops::ControlFlow::Break(()));
        }
        seen += 1;
        last = Some((row.key, row.query.clone()));
        let is_success = matches!(&*row.outcome, "ok" | "empty" | "not modified");
        if (wanted.is_empty() || row.outcome == wanted) && !(failed && is_success) {
            found.push(row);
        }
        Ok(std::ops::ControlFlow::Continue(()))
    })?;
    let has_more = is_cut || seen == STRETCH;
    let next = last.filter(|_| has_more).map(|(key, word)| {
        let place = Cursor {
            numbers: [key],
            word,
        };
        place.to_text(ORDER)
    });
    Ok(Page {
        rows: outcome_rows(database, found)?,
        next,
    })
}

fn outcome_of(row: &dyn Row) -> Result<Told, StoreError> {
    Ok(Told {
        key: row.get(0)?,
        query: row.get(1)?,
        outcome: row.get(2)?,
        reason: short(row, 3)?.text,
        at: WorldTime(row.get(4)?),
        log: row.get(5)?,
        times: row.get(6)?,
    })
}

fn outcome_rows(database: &dyn Database, found: Vec<Told>) -> Result<Vec<OutcomeRow>, StoreError> {
    let labels: HashMap<i64, _> = labels(database, &found.iter().map(|row| row.key).collect())?;
    let rows = found.into_iter().filter_map(|row| {
        Some(OutcomeRow {
            subject: labels.get(&row.key)?.clone(),
            query: row.query,
            outcome: row.outcome,
            reason: row.reason,
            at: row.at,
            call: Some(row.log).filter(|log| *log > 0),
            times: row.times,
        })
    });
    Ok(rows.collect())
}
