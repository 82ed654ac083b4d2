//! What calls brought, read from the log as events.

use super::crawl::newest_call;
use super::labels;
use super::object::{Described, field_views, followed, read_rows};
use crate::browse::{Event, EventId, EventKind, Feed, Label};
use crate::cell::cells;
use crate::database::Database;
use crate::rules::found::Stored;
use crate::rules::work::field_lists;
use crate::{StoreError, StoreErrorKind};
use kittiwake_model::{Key, Reference, Table, Value, WorldTime};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Events that are given at once.
const EVENTS_MAX: usize = 1_000;
/// Calls that are looked at for them: many bring nothing.
const CALLS_MAX: i64 = 2_000;
/// Objects whose rows are read by one statement.
const OBJECTS_AT_ONCE: usize = 256;

/// An event before its object is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bare {
    pub id: EventId,
    pub at: WorldTime,
    pub table: Option<Table>,
    pub key: i64,
    pub to: Option<i64>,
    pub link: Option<String>,
    pub is_new: bool,
}

/// The end of the log, with the number of the newest call's last event.
pub(crate) fn newest_event(database: &dyn Database) -> Result<EventId, StoreError> {
    let log = newest_call(database)?;
    let sql = "SELECT found FROM query_log WHERE id = ?1";
    let found: Option<String> = database.first(sql, cells![log], |row| row.get(0))?;
    let found = stored(log, found.as_deref().unwrap_or_default())?;
    let last = bare_events(&found, log, WorldTime(0)).last();
    Ok(last.map_or(EventId { log, number: 0 }, |last| last.id))
}

fn stored(log: i64, text: &str) -> Result<Stored, StoreError> {
    Stored::read(text).map_err(|error| {
        StoreError::new(
            StoreErrorKind::Corrupt,
            format!("what call {log} brought cannot be read: {error}; restore a copy"),
        )
    })
}

/// Events after one, without their objects.
pub(super) fn bare_feed(
    database: &dyn Database,
    after: EventId,
    limit: usize,
) -> Result<(Vec<Bare>, EventId, bool), StoreError> {
    let sql = "SELECT id, at_us, found FROM query_log WHERE id >= ?1 ORDER BY id LIMIT ?2";
    let mut events: Vec<Bare> = Vec::new();
    let (mut next, mut calls, mut is_full) = (after, 0, false);
    database.query(sql.into(), cells![after.log, CALLS_MAX], &mut |row| {
        use std::ops::ControlFlow::{Break, Continue};
        let log: i64 = row.get(0)?;
        calls += 1;
        let found = stored(log, &row.text(2)?)?;
        for event in bare_events(&found, log, WorldTime(row.get(1)?)) {
            if event.id <= after {
                continue;
            }
            if events.len() == limit {
                is_full = true;
                return Ok(Break(()));
            }
            next = event.id;
            events.push(event);
        }
        // All of this call was seen; a call that brought nothing is passed, too.
        next = next.max(EventId { log, number: 0 });
        Ok(Continue(()))
    })?;
    Ok((events, next, !is_full && calls < CALLS_MAX))
}

fn bare_events(found: &Stored, log: i64, at: WorldTime) -> impl Iterator<Item = Bare> {
    let object = |table: Table, key: i64, is_new: bool| (Some(table), key, None, None, is_new);
    let objects = found.objects.iter().flat_map(move |(table, objects)| {
        let new = objects
            .new
            .0
            .iter()
            .map(move |key| object(*table, *key, true));
        let changed = objects.changed.0.iter();
        new.chain(changed.map(move |key| object(*table, *key, false)))
    });
    let following = pairs(&found.following).map(|(from, to)| (None, from, Some(to), None, true));
    let followers = pairs(&found.followers).map(|(to, from)| (None, from, Some(to), None, true));
    let links = found.links.iter().flat_map(|(kind, groups)| {
        let kind = kind.to_string();
        pairs(groups).map(move |(from, to)| (None, from, Some(to), Some(kind.clone()), true))
    });
    let all = objects.chain(following).chain(followers).chain(links);
    (1..)
        .zip(all)
        .map(move |(number, (table, key, to, link, is_new))| Bare {
            id: EventId { log, number },
            at,
            table,
            key,
            to,
            link,
            is_new,
        })
}

fn pairs(groups: &[(i64, crate::rules::found::Keys)]) -> impl Iterator<Item = (i64, i64)> {
    let groups = groups.iter();
    groups.flat_map(|(key, keys)| keys.0.iter().map(move |other| (*key, *other)))
}

pub(crate) fn feed(
    database: &dyn Database,
    after: EventId,
    limit: usize,
) -> Result<Feed, StoreError> {
    let (mut events, next, is_end) = bare_feed(database, after, limit.clamp(1, EVENTS_MAX))?;
    let mut labels = labels_of(database, &mut events)?;
    let rows = rows_of(database, &events)?;
    let authors: HashMap<i64, i64> = rows
        .iter()
        .filter_map(|((_, key), row)| Some((*key, author_of(row)?)))
        .collect();
    let unnamed = authors
        .values()
        .copied()
        .filter(|key| !labels.contains_key(key));
    labels.extend(super::labels(database, &unnamed.collect())?);
    let events = events.into_iter().filter_map(|bare| {
        // Whatever a key is called is stored with it; without that, there is nothing to tell.
        let label = labels.get(&bare.key)?;
        let row = bare.table.and_then(|table| rows.get(&(table, bare.key)));
        let author = row.and_then(|_| authors.get(&bare.key)).copied();
        Some(event(bare, label, row, author, &labels))
    });
    Ok(Feed {
        events: events.collect(),
        next,
        is_end,
    })
}

fn event(
    bare: Bare,
    label: &Label,
    row: Option<&Described>,
    author: Option<i64>,
    labels: &HashMap<i64, Label>,
) -> Event {
    let id_of = |key: Option<i64>| Some(labels.get(&key?)?.id.clone());
    let groups = row.map(|row| row.groups.clone()).unwrap_or_default();
    let kind = match (bare.table, &bare.link) {
        (Some(Table::Users), _) => EventKind::User,
        (Some(Table::Statuses), _) => EventKind::Status,
        (Some(Table::Comments), _) => EventKind::Comment,
        (Some(Table::Tags | Table::Objects), _) => EventKind::Object,
        (None, None) => EventKind::Relation,
        (None, Some(_)) => EventKind::Link,
    };
    Event {
        id: bare.id,
        at: bare.at,
        kind,
        key: Key(bare.key),
        to: bare.to.map(Key),
        to_id: id_of(bare.to),
        link: bare.link,
        is_new: bare.is_new,
        network: label.network.clone(),
        object_id: label.id.clone(),
        author: author.map(Key),
        author_id: id_of(author),
        fields: groups.into_values().flat_map(field_views).collect(),
        deleted: row.and_then(|row| row.deleted),
    }
}

/// How everything is called that events name. Keys that were merged away since are replaced.
fn labels_of(
    database: &dyn Database,
    events: &mut [Bare],
) -> Result<HashMap<i64, Label>, StoreError> {
    let keys: BTreeSet<i64> = events
        .iter()
        .flat_map(|event| [Some(event.key), event.to])
        .flatten()
        .collect();
    let mut known = labels(database, &keys)?;
    let mut moved: HashMap<i64, i64> = HashMap::new();
    for key in keys.iter().filter(|key| !known.contains_key(key)) {
        moved.insert(*key, followed(database, *key)?);
    }
    if !moved.is_empty() {
        known.extend(labels(database, &moved.values().copied().collect())?);
        for event in events {
            event.key = moved.get(&event.key).copied().unwrap_or(event.key);
            event.to = event.to.map(|to| moved.get(&to).copied().unwrap_or(to));
        }
    }
    Ok(known)
}

type Rows = HashMap<(Table, i64), Described>;

fn rows_of(database: &dyn Database, events: &[Bare]) -> Result<Rows, StoreError> {
    let mut wanted: BTreeMap<Table, BTreeSet<i64>> = BTreeMap::new();
    for event in events {
        if let Some(table) = event.table {
            wanted.entry(table).or_default().insert(event.key);
        }
    }
    let mut rows = Rows::new();
    if wanted.is_empty() {
        return Ok(rows);
    }
    let lists = field_lists(database)?;
    for (table, keys) in wanted {
        let keys: Vec<i64> = keys.into_iter().collect();
        for part in keys.chunks(OBJECTS_AT_ONCE) {
            let read = read_rows(database, table, part, &lists)?;
            rows.extend(read.into_iter().map(|(key, row)| ((table, key), row)));
        }
    }
    Ok(rows)
}

fn author_of(row: &Described) -> Option<i64> {
    row.groups
        .values()
        .find_map(|group| match group.fields.get("author") {
            Some(Value::Object(Reference::Key(key))) => Some(key.0),
            _ => None,
        })
}
