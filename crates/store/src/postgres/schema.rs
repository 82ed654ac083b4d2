//! The tables, as SQL. What each column means is told in `docs/tables.md`.
//!
//! The same tables as in a file, with these differences: the row of an id has its number in a column
//! of its own, ids are found by an ordinary index, and what may be longer than a page is not part of
//! a key. Texts are compared byte by byte, whatever the database's own order is.

use kittiwake_model::{ColumnKind, Table};
use std::fmt::Write as _;

const TABLES: &str = "
CREATE TABLE ids(
  key BIGINT NOT NULL, hash BIGINT NOT NULL, canonical BIGINT NOT NULL,
  movable BIGINT NOT NULL, first_seen_us BIGINT NOT NULL, last_seen_us BIGINT NOT NULL,
  network TEXT NOT NULL, type TEXT NOT NULL, alias TEXT NOT NULL, host TEXT NOT NULL,
  id TEXT NOT NULL, rowid BIGINT PRIMARY KEY);
CREATE INDEX ids_by_hash ON ids(hash);
CREATE INDEX ids_by_key ON ids(key);
CREATE TABLE types(
  network TEXT NOT NULL, type TEXT NOT NULL, table_name TEXT NOT NULL,
  PRIMARY KEY (network, type));
CREATE TABLE field_lists(id BIGINT PRIMARY KEY, fields TEXT NOT NULL);
CREATE TABLE user_relations(
  source BIGINT NOT NULL, target BIGINT NOT NULL,
  first_seen_us BIGINT NOT NULL, last_seen_us BIGINT NOT NULL,
  following_walk BIGINT, followers_walk BIGINT,
  PRIMARY KEY (source, target));
CREATE INDEX user_relations_by_target ON user_relations(target, source);
CREATE TABLE user_tags(
  \"user\" BIGINT NOT NULL, tag BIGINT NOT NULL,
  first_seen_us BIGINT NOT NULL, last_seen_us BIGINT NOT NULL,
  PRIMARY KEY (\"user\", tag));
CREATE INDEX user_tags_by_tag ON user_tags(tag, \"user\");
CREATE TABLE links(
  kind TEXT NOT NULL, from_key BIGINT NOT NULL, to_key BIGINT NOT NULL, at_us BIGINT,
  first_seen_us BIGINT NOT NULL, last_seen_us BIGINT NOT NULL,
  PRIMARY KEY (from_key, kind, to_key));
CREATE INDEX links_by_target ON links(to_key, kind, from_key);
CREATE TABLE invalid_users(
  key BIGINT NOT NULL, reason TEXT NOT NULL, from_us BIGINT NOT NULL, until_us BIGINT,
  PRIMARY KEY (key, from_us));
CREATE TABLE invalid_relations(
  source BIGINT NOT NULL, target BIGINT NOT NULL,
  first_seen_us BIGINT NOT NULL, last_seen_us BIGINT NOT NULL, vanished_us BIGINT NOT NULL,
  PRIMARY KEY (source, target));
CREATE INDEX invalid_relations_by_target ON invalid_relations(target, source);
CREATE TABLE versions(
  key BIGINT NOT NULL, grp TEXT NOT NULL, observed_us BIGINT NOT NULL, log BIGINT NOT NULL,
  fields TEXT NOT NULL);
CREATE UNIQUE INDEX versions_once ON versions(key, grp, observed_us, log, md5(fields));
CREATE TABLE counts(
  key BIGINT NOT NULL, observed_us BIGINT NOT NULL, log BIGINT NOT NULL, counts TEXT NOT NULL);
CREATE UNIQUE INDEX counts_once ON counts(key, observed_us, log, md5(counts));
CREATE TABLE query_log(
  id BIGINT PRIMARY KEY, query TEXT NOT NULL, subjects TEXT NOT NULL, target TEXT NOT NULL,
  cursor TEXT NOT NULL, credential TEXT NOT NULL, node TEXT NOT NULL, status BIGINT,
  outcome TEXT NOT NULL, reason TEXT NOT NULL, at_us BIGINT NOT NULL,
  scheduled_us BIGINT NOT NULL, sent_us BIGINT NOT NULL, answered_us BIGINT NOT NULL,
  committed_us BIGINT NOT NULL, budgets TEXT NOT NULL, rank_us BIGINT NOT NULL,
  seed_us BIGINT NOT NULL, bytes BIGINT NOT NULL, mended BIGINT NOT NULL,
  rows_new BIGINT NOT NULL, rows_changed BIGINT NOT NULL, definition TEXT NOT NULL);
CREATE TABLE outcomes(
  key BIGINT NOT NULL, query TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL,
  at_us BIGINT NOT NULL, log BIGINT NOT NULL, times BIGINT NOT NULL,
  PRIMARY KEY (key, query));
CREATE TABLE subjects(key BIGINT PRIMARY KEY, depth BIGINT NOT NULL);
CREATE TABLE frontier(
  subject BIGINT NOT NULL, robot TEXT NOT NULL, lane TEXT NOT NULL, visits BIGINT NOT NULL,
  due_us BIGINT NOT NULL, state BYTEA NOT NULL, visited_us BIGINT,
  PRIMARY KEY (subject, robot));
CREATE INDEX frontier_by_due ON frontier(lane, due_us, subject, visited_us);
CREATE TABLE cursors(
  subject BIGINT NOT NULL, query TEXT NOT NULL, walk BIGINT NOT NULL, digest TEXT NOT NULL,
  pages BIGINT NOT NULL, next TEXT, checkpoint TEXT, mark_next TEXT, mark TEXT,
  started_us BIGINT NOT NULL, items BIGINT NOT NULL,
  PRIMARY KEY (subject, query));
CREATE TABLE pending(key BIGINT PRIMARY KEY, first_seen_us BIGINT NOT NULL);
CREATE TABLE relax(
  list TEXT NOT NULL, key BIGINT NOT NULL, after_us BIGINT, after_kind TEXT NOT NULL,
  after BIGINT NOT NULL,
  PRIMARY KEY (list, key));
CREATE INDEX relax_half_done ON relax(after) WHERE after > 0;
CREATE TABLE sweeps(
  subject BIGINT NOT NULL, list TEXT NOT NULL, walk BIGINT NOT NULL,
  started_us BIGINT NOT NULL, proved BIGINT NOT NULL, after BIGINT NOT NULL,
  PRIMARY KEY (subject, list));
CREATE TABLE key_merges(
  loser BIGINT PRIMARY KEY, winner BIGINT NOT NULL, at_us BIGINT NOT NULL,
  log BIGINT NOT NULL);
CREATE INDEX key_merges_by_winner ON key_merges(winner);
CREATE TABLE visibility(
  viewer BIGINT NOT NULL, key BIGINT NOT NULL, level TEXT NOT NULL,
  observed_us BIGINT NOT NULL,
  PRIMARY KEY (viewer, key));
CREATE INDEX visibility_by_key ON visibility(key, viewer);
CREATE TABLE runs(
  id BIGINT PRIMARY KEY, network TEXT NOT NULL, host TEXT NOT NULL, definition TEXT NOT NULL,
  clock TEXT NOT NULL, settings TEXT NOT NULL, started_us BIGINT NOT NULL, ended_us BIGINT,
  end_reason TEXT);
CREATE TABLE definitions(
  digest TEXT PRIMARY KEY, network TEXT NOT NULL, text TEXT NOT NULL);
CREATE TABLE control(
  id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, at_us BIGINT NOT NULL,
  command TEXT NOT NULL, robot TEXT, done_us BIGINT);
CREATE TABLE raw(log BIGINT PRIMARY KEY, body BYTEA NOT NULL);
CREATE TABLE rules(name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE put_off(
  id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, times TEXT NOT NULL);
INSERT INTO rules(name, value) VALUES ('commits', '0');
";

/// Every table of a store, for counting and for checking what is there.
pub(super) const TABLE_NAMES: &[&str] = &[
    "ids",
    "types",
    "field_lists",
    "users",
    "statuses",
    "comments",
    "tags",
    "objects",
    "user_relations",
    "user_tags",
    "links",
    "invalid_users",
    "invalid_relations",
    "versions",
    "counts",
    "query_log",
    "outcomes",
    "subjects",
    "frontier",
    "cursors",
    "pending",
    "relax",
    "sweeps",
    "key_merges",
    "visibility",
    "runs",
    "definitions",
    "control",
    "raw",
    "rules",
    "put_off",
];

/// What the fifth schema added: the keys of what an answer brought.
pub(super) fn fifth() -> String {
    in_byte_order("ALTER TABLE query_log ADD COLUMN found TEXT NOT NULL DEFAULT '';")
}

/// What the fourth schema added: what reading an answer took, apart from what follows from it.
pub(super) fn fourth() -> String {
    "ALTER TABLE query_log ADD COLUMN read_us BIGINT NOT NULL DEFAULT 0;
     UPDATE query_log SET read_us = seed_us, seed_us = 0;"
        .to_owned()
}

/// Everything that makes an empty schema a store.
pub(super) fn first() -> String {
    let mut sql = TABLES.to_owned();
    for table in Table::ALL {
        let name = table.name();
        let _ = write!(sql, "CREATE TABLE {name}(key BIGINT PRIMARY KEY");
        for column in table.columns() {
            let _ = write!(sql, ", {} {}", column.name, type_of(column.kind));
        }
        if *table == Table::Statuses {
            sql.push_str(", deleted_us BIGINT");
        }
        sql.push_str(", extra TEXT, observed TEXT NOT NULL);\n");
    }
    sql.push_str("CREATE INDEX statuses_by_author ON statuses(author, created_us, key);\n");
    sql.push_str(&reference_indexes());
    in_byte_order(&sql)
}

/// Texts are compared byte by byte.
pub(super) fn in_byte_order(sql: &str) -> String {
    sql.replace(" TEXT", " TEXT COLLATE \"C\"")
}

/// A merge of two keys has to find the rows that point at one of them without reading all rows.
fn reference_indexes() -> String {
    let mut sql = String::new();
    for table in Table::ALL {
        for column in table.columns() {
            let is_reference = matches!(column.kind, ColumnKind::Reference(_));
            if !is_reference || (*table == Table::Statuses && column.name == "author") {
                continue;
            }
            let (table, column) = (table.name(), column.name);
            let _ = writeln!(
                sql,
                "CREATE INDEX {table}_by_{column} ON {table}({column}, key) \
                 WHERE {column} IS NOT NULL;"
            );
        }
    }
    sql
}

/// A column that the catalogue has gained since the schema was made.
pub(super) fn add_column(table: Table, name: &str, kind: ColumnKind) -> String {
    in_byte_order(&format!(
        "ALTER TABLE {} ADD COLUMN {name} {};\n",
        table.name(),
        type_of(kind)
    ))
}

const fn type_of(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Text | ColumnKind::Json => "TEXT",
        ColumnKind::Integer | ColumnKind::Boolean | ColumnKind::Time | ColumnKind::Reference(_) => {
            "BIGINT"
        }
        ColumnKind::Real => "DOUBLE PRECISION",
    }
}
