//! One object, with all that is known of it.

use super::labels;
use super::rows::{time, with_keys};
use crate::StoreError;
use crate::browse::{FieldView, GroupView, IdView, ObjectView, ObservedView, SpellView, VisitView};
use crate::cell::{Row, cells};
use crate::database::Database;
use crate::error::unreadable;
use crate::observed::FieldLists;
use crate::record::{self, Groups, Record};
use crate::rules::extent::guessed_table;
use crate::rules::names::best_first;
use crate::rules::read::depth;
use crate::rules::work::field_lists;
use kittiwake_model::{GroupState, Key, Reference, Stamp, Table, Value, WorldTime};
use std::collections::{BTreeSet, HashMap};

/// Ids of one object that are shown.
const IDS_MAX: i64 = 200;
/// Spells, and robots, of one object that are shown.
const SHOWN_MAX: i64 = 100;
/// Merges that a key is followed through.
const MERGES_MAX: usize = 100;

pub(crate) fn object(database: &dyn Database, key: Key) -> Result<Option<ObjectView>, StoreError> {
    let key = followed(database, key.0)?;
    let mut own = labels(database, &BTreeSet::from([key]))?;
    let Some(label) = own.remove(&key) else {
        return Ok(None);
    };
    let lists = field_lists(database)?;
    let described = read_described(database, &label.network, &label.kind, key, &lists)?;
    let (table, groups, deleted) = match described {
        Some((table, row)) => (Some(table), row.groups, row.deleted),
        None => (None, Groups::new(), None),
    };
    let mut named: Vec<_> = labels(database, &named_keys(&groups))?
        .into_values()
        .collect();
    named.sort_by_key(|label| label.key);
    Ok(Some(ObjectView {
        label,
        table,
        ids: ids(database, key)?,
        groups: groups.into_iter().map(group_view).collect(),
        labels: named,
        deleted,
        spells: spells(database, key)?,
        depth: depth(database, key)?,
        visits: visits(database, key)?,
    }))
}

/// The key that an object has now.
pub(super) fn followed(database: &dyn Database, key: i64) -> Result<i64, StoreError> {
    let mut key = key;
    for _ in 0..MERGES_MAX {
        let sql = "SELECT winner FROM key_merges WHERE loser = ?1";
        match database.first(sql, cells![key], |row| row.get(0))? {
            Some(winner) => key = winner,
            None => break,
        }
    }
    Ok(key)
}

/// The row of an object, in its table or in the one beside it.
fn read_described(
    database: &dyn Database,
    network: &str,
    kind: &str,
    key: i64,
    lists: &FieldLists,
) -> Result<Option<(Table, Described)>, StoreError> {
    let table = table_of(database, network, kind)?;
    // A comment that is a post as well has its fields there.
    let tables = match table {
        Table::Comments => [Table::Statuses, Table::Comments],
        _ => [table, table],
    };
    for table in tables {
        let mut rows = read_rows(database, table, &[key], lists)?;
        if let Some(row) = rows.remove(&key) {
            return Ok(Some((table, row)));
        }
    }
    Ok(None)
}

fn table_of(database: &dyn Database, network: &str, kind: &str) -> Result<Table, StoreError> {
    let sql = "SELECT table_name FROM types WHERE network = ?1 AND type = ?2";
    let name: Option<String> = database.first(sql, cells![network, kind], |row| row.get(0))?;
    let table = name.as_deref().and_then(Table::from_name);
    Ok(table.unwrap_or_else(|| guessed_table(kind)))
}

/// A row as groups.
pub(super) struct Described {
    pub groups: Groups,
    pub deleted: Option<WorldTime>,
}

/// The rows of objects of one table, at most as many as fit into one list.
pub(super) fn read_rows(
    database: &dyn Database,
    table: Table,
    keys: &[i64],
    lists: &FieldLists,
) -> Result<HashMap<i64, Described>, StoreError> {
    let columns: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
    let count = columns.len();
    let deleted = match table {
        Table::Statuses => "deleted_us",
        _ => "CAST(NULL AS BIGINT)",
    };
    let columns = [&columns[..], &["extra", "observed", "key", deleted]].concat();
    let sql = format!(
        "SELECT {} FROM {} WHERE key IN ({{keys}})",
        columns.join(", "),
        table.name()
    );
    let (sql, cells) = with_keys(&sql, keys);
    let mut rows = HashMap::with_capacity(keys.len());
    database.each(&*sql, &cells, |row| {
        let key: i64 = row.get(count + 2)?;
        let record = Record {
            cells: row.cells(count)?,
            extra: row.get(count)?,
            observed: row.get(count + 1)?,
        };
        let groups =
            record::decode(table, record, lists).map_err(|error| unreadable(key, &error))?;
        let deleted = time(row, count + 3)?;
        rows.insert(key, Described { groups, deleted });
        Ok(())
    })?;
    Ok(rows)
}

fn named_keys(groups: &Groups) -> BTreeSet<i64> {
    let values = groups.values().flat_map(|group| group.fields.values());
    values
        .filter_map(|value| match value {
            Value::Object(Reference::Key(key)) => Some(key.0),
            _ => None,
        })
        .collect()
}

/// When something was observed, as it is shown.
pub(super) fn observed_view(stamp: Stamp) -> ObservedView {
    ObservedView {
        at: WorldTime(stamp.real_us()),
        call: Some(stamp.log).filter(|log| *log > 0),
        is_hearsay: stamp.is_hearsay(),
    }
}

fn group_view((name, group): (kittiwake_model::Name, GroupState)) -> GroupView {
    GroupView {
        observed: observed_view(group.newest),
        name,
        fields: field_views(group).collect(),
    }
}

pub(super) fn field_views(mut group: GroupState) -> impl Iterator<Item = FieldView> {
    let fields = std::mem::take(&mut group.fields).into_iter();
    fields.map(move |(name, value)| FieldView {
        observed: group.older.get(&name).copied().map(observed_view),
        name,
        value,
    })
}

fn ids(database: &dyn Database, key: i64) -> Result<Vec<IdView>, StoreError> {
    let sql = concat!(
        "SELECT network, type, alias, host, id, canonical, movable, first_seen_us, last_seen_us
         FROM ids WHERE key = ?1 ORDER BY ",
        best_first!(),
        " LIMIT ?2"
    );
    database.all(sql, cells![key, IDS_MAX], |row: &dyn Row| {
        Ok(IdView {
            network: row.get(0)?,
            kind: row.get(1)?,
            alias: row.get(2)?,
            host: row.get(3)?,
            id: row.get(4)?,
            is_canonical: row.get(5)?,
            is_movable: row.get(6)?,
            first_seen: WorldTime(row.get(7)?),
            last_seen: WorldTime(row.get(8)?),
        })
    })
}

fn spells(database: &dyn Database, key: i64) -> Result<Vec<SpellView>, StoreError> {
    let sql = "SELECT reason, from_us, until_us FROM invalid_users
               WHERE key = ?1 ORDER BY from_us DESC LIMIT ?2";
    database.all(sql, cells![key, SHOWN_MAX], |row| {
        Ok(SpellView {
            reason: row.get(0)?,
            from: WorldTime(row.get(1)?),
            until: time(row, 2)?,
        })
    })
}

fn visits(database: &dyn Database, key: i64) -> Result<Vec<VisitView>, StoreError> {
    let sql = "SELECT robot, lane, visits, visited_us, due_us FROM frontier
               WHERE subject = ?1 ORDER BY robot LIMIT ?2";
    database.all(sql, cells![key, SHOWN_MAX], |row| {
        Ok(VisitView {
            robot: row.get(0)?,
            lane: row.get(1)?,
            visits: row.get(2)?,
            visited: time(row, 3)?,
            due: WorldTime(row.get(4)?),
        })
    })
}

/// The group of counts in the row of an object, as it is now.
pub(super) fn counts_now(
    database: &dyn Database,
    key: i64,
) -> Result<Option<GroupState>, StoreError> {
    let mut own = labels(database, &BTreeSet::from([key]))?;
    let Some(label) = own.remove(&key) else {
        return Ok(None);
    };
    let lists = field_lists(database)?;
    let described = read_described(database, &label.network, &label.kind, key, &lists)?;
    Ok(described.and_then(|(_, mut row)| row.groups.remove("counts")))
}
