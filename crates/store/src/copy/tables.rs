//! What a crawl consists of, table by table: its columns, and those by which its rows are told apart.

use kittiwake_model::Table;

/// A table as it is copied.
#[derive(Debug, Clone)]
pub(super) struct CopiedTable {
    pub name: &'static str,
    /// The first of `columns`: together they tell rows apart, and rows are copied in their order.
    pub keys: usize,
    /// As SQL names them.
    pub columns: Vec<&'static str>,
    /// Which rows are copied, if not all are.
    pub condition: Option<&'static str>,
}

/// What a back end notes of itself; a copy has its own.
const OWN_RULES: &str = "name NOT IN ('schema', 'views', 'commits', 'id_places', 'unfinished')";

/// Tables that do not depend on the catalogue of columns: name, keys, other columns.
const TABLES: &[(&str, &[&str], &[&str])] = &[
    (
        "ids",
        &["rowid"],
        &[
            "key",
            "hash",
            "canonical",
            "movable",
            "first_seen_us",
            "last_seen_us",
            "network",
            "type",
            "alias",
            "host",
            "id",
        ],
    ),
    ("types", &["network", "type"], &["table_name"]),
    ("field_lists", &["id"], &["fields"]),
    (
        "user_relations",
        &["source", "target"],
        &[
            "first_seen_us",
            "last_seen_us",
            "following_walk",
            "followers_walk",
        ],
    ),
    (
        "user_tags",
        &["\"user\"", "tag"],
        &["first_seen_us", "last_seen_us"],
    ),
    (
        "links",
        &["from_key", "kind", "to_key"],
        &["at_us", "first_seen_us", "last_seen_us"],
    ),
    (
        "invalid_users",
        &["key", "from_us"],
        &["reason", "until_us"],
    ),
    (
        "invalid_relations",
        &["source", "target"],
        &["first_seen_us", "last_seen_us", "vanished_us"],
    ),
    (
        "versions",
        &["key", "grp", "observed_us", "log", "fields"],
        &[],
    ),
    ("counts", &["key", "observed_us", "log", "counts"], &[]),
    (
        "query_log",
        &["id"],
        &[
            "query",
            "subjects",
            "target",
            "cursor",
            "credential",
            "node",
            "status",
            "outcome",
            "reason",
            "at_us",
            "scheduled_us",
            "sent_us",
            "answered_us",
            "committed_us",
            "budgets",
            "rank_us",
            "read_us",
            "seed_us",
            "bytes",
            "mended",
            "rows_new",
            "rows_changed",
            "definition",
            "found",
        ],
    ),
    (
        "outcomes",
        &["key", "query"],
        &["outcome", "reason", "at_us", "log", "times"],
    ),
    ("subjects", &["key"], &["depth"]),
    (
        "frontier",
        &["subject", "robot"],
        &["lane", "visits", "due_us", "state", "visited_us"],
    ),
    (
        "cursors",
        &["subject", "query"],
        &[
            "walk",
            "digest",
            "pages",
            "next",
            "checkpoint",
            "mark_next",
            "mark",
            "started_us",
            "items",
        ],
    ),
    ("pending", &["key"], &["first_seen_us"]),
    (
        "relax",
        &["list", "key"],
        &["after_us", "after_kind", "after"],
    ),
    (
        "sweeps",
        &["subject", "list"],
        &["walk", "started_us", "proved", "after"],
    ),
    ("key_merges", &["loser"], &["winner", "at_us", "log"]),
    ("visibility", &["viewer", "key"], &["level", "observed_us"]),
    (
        "runs",
        &["id"],
        &[
            "network",
            "host",
            "definition",
            "clock",
            "settings",
            "started_us",
            "ended_us",
            "end_reason",
        ],
    ),
    ("definitions", &["digest"], &["network", "text"]),
    (
        "control",
        &["id"],
        &["at_us", "command", "robot", "done_us"],
    ),
    ("raw", &["log"], &["body"]),
    ("rules", &["name"], &["value"]),
    ("put_off", &["id"], &["times"]),
];

/// Every table of a crawl, but for what a back end derives from others.
pub(super) fn all() -> Vec<CopiedTable> {
    let objects = Table::ALL.iter().map(|table| of_objects(*table));
    let others = TABLES.iter().map(|(name, keys, others)| CopiedTable {
        name,
        keys: keys.len(),
        columns: [*keys, *others].concat(),
        condition: (*name == "rules").then_some(OWN_RULES),
    });
    objects.chain(others).collect()
}

fn of_objects(table: Table) -> CopiedTable {
    let mut columns = vec!["key"];
    columns.extend(table.columns().iter().map(|column| column.name));
    if table == Table::Statuses {
        columns.push("deleted_us");
    }
    columns.extend(["extra", "observed"]);
    CopiedTable {
        name: table.name(),
        keys: 1,
        columns,
        condition: None,
    }
}

impl CopiedTable {
    fn key_columns(&self) -> String {
        self.columns[..self.keys].join(", ")
    }

    /// All rows, in order.
    pub(super) fn select(&self) -> String {
        let (columns, name, keys) = (self.columns.join(", "), self.name, self.key_columns());
        let condition = self.condition.unwrap_or("1 = 1");
        format!("SELECT {columns} FROM {name} WHERE {condition} ORDER BY {keys}")
    }

    /// The rows of a stretch: beyond one row, if `is_beyond`, up to another; the keys of the former are
    /// the first parameters.
    pub(super) fn select_stretch(&self, is_beyond: bool) -> String {
        let (columns, name, keys) = (self.columns.join(", "), self.name, self.key_columns());
        let stretch = self.stretch(is_beyond, true);
        format!("SELECT {columns} FROM {name} WHERE {stretch} ORDER BY {keys}")
    }

    /// Deletes the rows of a stretch; without an end, all that are beyond.
    pub(super) fn delete_stretch(&self, is_beyond: bool, has_end: bool) -> String {
        format!(
            "DELETE FROM {} WHERE {}",
            self.name,
            self.stretch(is_beyond, has_end)
        )
    }

    fn stretch(&self, is_beyond: bool, has_end: bool) -> String {
        let keys = self.key_columns();
        let parameters = |begin: usize| {
            let numbers = (begin..begin + self.keys).map(|number| format!("?{number}"));
            numbers.collect::<Vec<_>>().join(", ")
        };
        let mut conditions = vec![self.condition.unwrap_or("1 = 1").to_owned()];
        if is_beyond {
            conditions.push(format!("({keys}) > ({})", parameters(1)));
        }
        if has_end {
            let begin = if is_beyond { self.keys + 1 } else { 1 };
            conditions.push(format!("({keys}) <= ({})", parameters(begin)));
        }
        conditions.join(" AND ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OpenMode, SqliteStore};
    use std::collections::{BTreeMap, BTreeSet};

    #[tokio::test]
    async fn every_column_of_every_table_is_copied_in_the_order_of_its_keys() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("a.db"), OpenMode::Crawl).unwrap();
        let sql =
            "SELECT m.name, c.name, c.pk FROM sqlite_master AS m, pragma_table_info(m.name) AS c
                   WHERE m.type = 'table' AND m.name <> 'id_places' ORDER BY m.name, c.pk";
        let rows = store.select_text(sql.to_owned()).await.unwrap();
        let mut present: BTreeMap<String, (Vec<String>, BTreeSet<String>)> = BTreeMap::new();
        for row in rows {
            let [table, column, place] = row.try_into().unwrap();
            let (keys, columns) = present.entry(table.unwrap()).or_default();
            if place.as_deref() != Some("0") {
                keys.push(column.clone().unwrap());
            }
            columns.insert(column.unwrap());
        }
        // The number of a row is its key, without being told.
        let (keys, columns) = present.get_mut("ids").unwrap();
        keys.push("rowid".to_owned());
        columns.insert("rowid".to_owned());
        let mut copied = BTreeMap::new();
        for table in all() {
            let columns = table
                .columns
                .iter()
                .map(|column| column.trim_matches('"').to_owned());
            let columns: Vec<String> = columns.collect();
            let keys = columns[..table.keys].to_vec();
            copied.insert(table.name.to_owned(), (keys, columns.into_iter().collect()));
        }
        assert_eq!(copied, present);
    }
}
