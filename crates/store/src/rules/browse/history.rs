//! What an object was before.

use super::object::{counts_now, followed, observed_view};
use super::one_more;
use crate::StoreError;
use crate::browse::{CountsRow, Cursor, Page, VersionRow, VersionsQuestion, clamped};
use crate::cell::{Row, cells};
use crate::database::Database;
use crate::error::unreadable;
use crate::record;
use kittiwake_model::{Key, Name, Stamp, Value};

/// Counts of one object that are given.
const COUNTS_MAX: usize = 2_000;

/// The counts over time, those of now first.
pub(crate) const COUNTS: &str = "SELECT observed_us, log, counts FROM counts
     WHERE key = ?1 ORDER BY observed_us DESC, log DESC LIMIT ?2";

pub(crate) fn counts(
    database: &dyn Database,
    key: Key,
    limit: usize,
) -> Result<Vec<CountsRow>, StoreError> {
    let limit = limit.clamp(1, COUNTS_MAX);
    let key = followed(database, key.0)?;
    let mut rows = Vec::new();
    if let Some(group) = counts_now(database, key)? {
        rows.push(CountsRow {
            observed: observed_view(group.newest),
            counts: numbers(group.fields),
        });
    }
    let left = i64::try_from(limit.saturating_sub(rows.len())).unwrap_or(i64::MAX);
    database.each(COUNTS, cells![key, left], |row| {
        let (stamp, fields) = overruled(row, key)?;
        rows.push(CountsRow {
            observed: observed_view(stamp),
            counts: numbers(fields),
        });
        Ok(())
    })?;
    Ok(rows)
}

fn numbers(fields: impl IntoIterator<Item = (Name, Value)>) -> Vec<(Name, i64)> {
    let numbers = fields.into_iter().filter_map(|(name, value)| match value {
        Value::Int(number) => Some((name, number)),
        _ => None,
    });
    numbers.collect()
}

/// Time, call and fields, in the first columns of a row.
fn overruled(
    row: &dyn Row,
    key: i64,
) -> Result<(Stamp, std::collections::BTreeMap<Name, Value>), StoreError> {
    let stamp = Stamp {
        at_us: row.get(0)?,
        log: row.get(1)?,
    };
    let fields = record::fields_of(&row.text(2)?).map_err(|error| unreadable(key, &error))?;
    Ok((stamp, fields))
}

const VERSIONS: &str = "SELECT observed_us, log, fields, grp FROM versions
     WHERE key = ?1 AND (observed_us, log, grp) < (?2, ?3, ?4)
     ORDER BY observed_us DESC, log DESC, grp DESC, fields LIMIT ?5";
/// Values of one observation that were overruled one after the other.
const SAME_VERSION: &str = "SELECT observed_us, log, fields, grp FROM versions
     WHERE key = ?1 AND observed_us = ?2 AND log = ?3 AND grp = ?4 ORDER BY fields LIMIT 200";

/// One version with the place that it has in the order.
struct Version {
    place: (i64, i64, String),
    row: VersionRow,
}

pub(crate) fn versions(
    database: &dyn Database,
    question: &VersionsQuestion,
) -> Result<Page<VersionRow>, StoreError> {
    const ORDER: &str = "versions";
    let limit = clamped(question.limit);
    let key = followed(database, question.key.0)?;
    let place = match &question.after {
        Some(after) => Cursor::<2>::read(after, ORDER)?,
        // No group's name comes so late.
        None => Cursor {
            numbers: [i64::MAX, i64::MAX],
            word: "\u{10FFFF}".to_owned(),
        },
    };
    let read = |row: &dyn Row| version(row, key);
    let [observed_us, log] = place.numbers;
    let cells = cells![key, observed_us, log, place.word, one_more(limit)];
    let mut versions = database.all(VERSIONS, cells, read)?;
    let has_more = versions.len() > limit;
    versions.truncate(limit);
    let mut next = None;
    if has_more && let Some(last) = versions.last() {
        let place = last.place.clone();
        // A page never ends between two of one place, or the other would be passed over.
        versions.retain(|version| version.place != place);
        let (observed_us, log, group) = &place;
        let same = cells![key, *observed_us, *log, &**group];
        versions.extend(database.all(SAME_VERSION, same, read)?);
        let (observed_us, log, word) = place;
        let numbers = [observed_us, log];
        next = Some(Cursor { numbers, word }.to_text(ORDER));
    }
    Ok(Page {
        rows: versions.into_iter().map(|version| version.row).collect(),
        next,
    })
}

fn version(row: &dyn Row, key: i64) -> Result<Version, StoreError> {
    let (stamp, fields) = overruled(row, key)?;
    let group: String = row.get(3)?;
    Ok(Version {
        place: (stamp.at_us, stamp.log, group.clone()),
        row: VersionRow {
            group,
            observed: observed_view(stamp),
            fields: fields.into_iter().collect(),
        },
    })
}
