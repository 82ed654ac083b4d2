//! The tables, as SQL. What each column means is told in `docs/tables.md`.
//!
//! What an earlier schema had is never changed here, because files that were made by it are out
//! there: every schema is the one before it and what was added ([`SECOND`], …).

use kittiwake_model::{ColumnKind, Table};
use std::fmt::Write as _;

/// "Kitt": marks a file as ours.
pub(super) const APPLICATION_ID: i32 = 0x4B69_7474;

/// The tables of the first schema that do not depend on the catalogue of columns.
pub(super) const TABLES: &str = "
CREATE TABLE ids(
  key INTEGER NOT NULL, hash INTEGER NOT NULL, canonical INTEGER NOT NULL,
  movable INTEGER NOT NULL, first_seen_us INTEGER NOT NULL, last_seen_us INTEGER NOT NULL,
  network TEXT NOT NULL, type TEXT NOT NULL, alias TEXT NOT NULL, host TEXT NOT NULL,
  id TEXT NOT NULL);
CREATE INDEX ids_by_hash ON ids(hash);
CREATE INDEX ids_by_key ON ids(key);
CREATE TABLE types(
  network TEXT NOT NULL, type TEXT NOT NULL, table_name TEXT NOT NULL,
  PRIMARY KEY (network, type)) WITHOUT ROWID;
CREATE TABLE field_lists(id INTEGER PRIMARY KEY, fields TEXT NOT NULL UNIQUE);
CREATE TABLE user_relations(
  source INTEGER NOT NULL, target INTEGER NOT NULL,
  first_seen_us INTEGER NOT NULL, last_seen_us INTEGER NOT NULL,
  following_walk INTEGER, followers_walk INTEGER,
  PRIMARY KEY (source, target)) WITHOUT ROWID;
CREATE INDEX user_relations_by_target ON user_relations(target, source);
CREATE TABLE user_tags(
  user INTEGER NOT NULL, tag INTEGER NOT NULL,
  first_seen_us INTEGER NOT NULL, last_seen_us INTEGER NOT NULL,
  PRIMARY KEY (user, tag)) WITHOUT ROWID;
CREATE INDEX user_tags_by_tag ON user_tags(tag, user);
CREATE TABLE links(
  kind TEXT NOT NULL, from_key INTEGER NOT NULL, to_key INTEGER NOT NULL, at_us INTEGER,
  first_seen_us INTEGER NOT NULL, last_seen_us INTEGER NOT NULL,
  PRIMARY KEY (from_key, kind, to_key)) WITHOUT ROWID;
CREATE INDEX links_by_target ON links(to_key, kind, from_key);
CREATE TABLE invalid_users(
  key INTEGER NOT NULL, reason TEXT NOT NULL, from_us INTEGER NOT NULL, until_us INTEGER,
  PRIMARY KEY (key, from_us)) WITHOUT ROWID;
CREATE TABLE invalid_relations(
  source INTEGER NOT NULL, target INTEGER NOT NULL,
  first_seen_us INTEGER NOT NULL, last_seen_us INTEGER NOT NULL, vanished_us INTEGER NOT NULL,
  PRIMARY KEY (source, target)) WITHOUT ROWID;
CREATE INDEX invalid_relations_by_target ON invalid_relations(target, source);
CREATE TABLE versions(
  key INTEGER NOT NULL, grp TEXT NOT NULL, observed_us INTEGER NOT NULL, log INTEGER NOT NULL,
  fields TEXT NOT NULL,
  PRIMARY KEY (key, grp, observed_us, log, fields)) WITHOUT ROWID;
CREATE TABLE counts(
  key INTEGER NOT NULL, observed_us INTEGER NOT NULL, log INTEGER NOT NULL, counts TEXT NOT NULL,
  PRIMARY KEY (key, observed_us, log, counts)) WITHOUT ROWID;
CREATE TABLE query_log(
  id INTEGER PRIMARY KEY, query TEXT NOT NULL, subjects TEXT NOT NULL, target TEXT NOT NULL,
  cursor TEXT NOT NULL, credential TEXT NOT NULL, node TEXT NOT NULL, status INTEGER,
  outcome TEXT NOT NULL, reason TEXT NOT NULL, at_us INTEGER NOT NULL,
  scheduled_us INTEGER NOT NULL, sent_us INTEGER NOT NULL, answered_us INTEGER NOT NULL,
  committed_us INTEGER NOT NULL, budgets TEXT NOT NULL, rank_us INTEGER NOT NULL,
  seed_us INTEGER NOT NULL, bytes INTEGER NOT NULL, mended INTEGER NOT NULL,
  rows_new INTEGER NOT NULL, rows_changed INTEGER NOT NULL, definition TEXT NOT NULL);
CREATE TABLE outcomes(
  key INTEGER NOT NULL, query TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL,
  at_us INTEGER NOT NULL, log INTEGER NOT NULL, times INTEGER NOT NULL,
  PRIMARY KEY (key, query)) WITHOUT ROWID;
CREATE TABLE subjects(key INTEGER PRIMARY KEY, depth INTEGER NOT NULL);
CREATE TABLE frontier(
  subject INTEGER NOT NULL, robot TEXT NOT NULL, lane TEXT NOT NULL, visits INTEGER NOT NULL,
  due_us INTEGER NOT NULL, state BLOB NOT NULL,
  PRIMARY KEY (subject, robot)) WITHOUT ROWID;
CREATE TABLE cursors(
  subject INTEGER NOT NULL, query TEXT NOT NULL, walk INTEGER NOT NULL, digest TEXT NOT NULL,
  pages INTEGER NOT NULL, next TEXT, checkpoint TEXT, mark_next TEXT, mark TEXT,
  started_us INTEGER NOT NULL,
  PRIMARY KEY (subject, query)) WITHOUT ROWID;
CREATE TABLE pending(key INTEGER PRIMARY KEY, first_seen_us INTEGER NOT NULL);
CREATE TABLE relax(
  key INTEGER NOT NULL, list TEXT NOT NULL, after INTEGER NOT NULL,
  PRIMARY KEY (key, list)) WITHOUT ROWID;
CREATE TABLE key_merges(
  loser INTEGER PRIMARY KEY, winner INTEGER NOT NULL, at_us INTEGER NOT NULL,
  log INTEGER NOT NULL);
CREATE INDEX key_merges_by_winner ON key_merges(winner);
CREATE TABLE visibility(
  viewer INTEGER NOT NULL, key INTEGER NOT NULL, level TEXT NOT NULL,
  observed_us INTEGER NOT NULL,
  PRIMARY KEY (viewer, key)) WITHOUT ROWID;
CREATE INDEX visibility_by_key ON visibility(key, viewer);
CREATE TABLE runs(
  id INTEGER PRIMARY KEY, network TEXT NOT NULL, host TEXT NOT NULL, definition TEXT NOT NULL,
  clock TEXT NOT NULL, settings TEXT NOT NULL, started_us INTEGER NOT NULL, ended_us INTEGER,
  end_reason TEXT);
CREATE TABLE definitions(
  digest TEXT PRIMARY KEY, network TEXT NOT NULL, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE control(
  id INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, command TEXT NOT NULL, robot TEXT,
  done_us INTEGER);
CREATE TABLE raw(log INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE rules(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
";

/// What the second schema added: when a subject was last visited, and the order in which a lane's
/// subjects are due; a queue of everything that follows from what is stored, with room for a place
/// in several orders; lists whose vanished relations are looked for.
///
/// The old queue held only depths to be handed on: looking at everybody again does all of that.
/// Answers that are stored already get their rows in `comments` through the queue as well, so that
/// a big file is not held up when it is opened.
pub(super) const SECOND: &str = "
ALTER TABLE frontier ADD COLUMN visited_us INTEGER;
UPDATE frontier SET visited_us = due_us WHERE visits > 0;
CREATE INDEX frontier_by_due ON frontier(lane, due_us, subject, visited_us);
ALTER TABLE cursors ADD COLUMN items INTEGER NOT NULL DEFAULT 0;
ALTER TABLE relax RENAME TO relax_before;
CREATE TABLE relax(
  list TEXT NOT NULL, key INTEGER NOT NULL, after_us INTEGER, after_kind TEXT NOT NULL,
  after INTEGER NOT NULL,
  PRIMARY KEY (list, key)) WITHOUT ROWID;
CREATE INDEX relax_half_done ON relax(after) WHERE after > 0;
INSERT INTO relax SELECT 'everybody', 0, NULL, '', 0 WHERE EXISTS (SELECT 1 FROM relax_before);
INSERT INTO relax SELECT 'replies', 0, NULL, '', 0
  WHERE EXISTS (SELECT 1 FROM statuses WHERE reply_to IS NOT NULL);
DROP TABLE relax_before;
CREATE TABLE sweeps(
  subject INTEGER NOT NULL, list TEXT NOT NULL, walk INTEGER NOT NULL,
  started_us INTEGER NOT NULL, proved INTEGER NOT NULL, after INTEGER NOT NULL,
  PRIMARY KEY (subject, list)) WITHOUT ROWID;
";

/// What the third schema added: times of last sights that are not in their rows yet; and a table in
/// place of the index over the hashes of ids, so that it can be filled in stretches.
pub(super) const THIRD: &str = "
CREATE TABLE put_off(id INTEGER PRIMARY KEY, times TEXT NOT NULL);
CREATE TABLE id_places(
  hash INTEGER NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (hash, row)) WITHOUT ROWID;
INSERT INTO id_places SELECT hash, rowid FROM ids ORDER BY hash, rowid;
INSERT INTO rules SELECT 'id_places', CAST(coalesce(max(rowid), 0) AS TEXT) FROM ids;
DROP INDEX ids_by_hash;
";

/// What the fourth schema added: what reading an answer took, apart from what follows from it.
pub(super) const FOURTH: &str = "
ALTER TABLE query_log ADD COLUMN read_us INTEGER NOT NULL DEFAULT 0;
UPDATE query_log SET read_us = seed_us, seed_us = 0;
";

/// What the fifth schema added: the keys of what an answer brought.
pub(super) const FIFTH: &str = "
ALTER TABLE query_log ADD COLUMN found TEXT NOT NULL DEFAULT '';
";

/// Every table of a store, for counting and for checking the documentation.
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
    "id_places",
];

/// The tables that hold objects, built from the catalogue of columns.
pub(super) fn object_tables() -> String {
    let mut sql = String::new();
    for table in Table::ALL {
        let name = table.name();
        let _ = write!(sql, "CREATE TABLE {name}(key INTEGER PRIMARY KEY");
        for column in table.columns() {
            let _ = write!(sql, ", {} {}", column.name, type_of(column.kind));
        }
        if *table == Table::Statuses {
            sql.push_str(", deleted_us INTEGER");
        }
        sql.push_str(", extra TEXT, observed TEXT NOT NULL);\n");
    }
    sql.push_str("CREATE INDEX statuses_by_author ON statuses(author, created_us);\n");
    sql.push_str(&reference_indexes());
    sql
}

/// A merge of two keys has to find the rows that point at one of them without reading all rows.
/// The indexes are partial: a row that points nowhere costs nothing.
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
                "CREATE INDEX {table}_by_{column} ON {table}({column}) WHERE {column} IS NOT NULL;"
            );
        }
    }
    sql
}

pub(super) const fn type_of(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Text | ColumnKind::Json => "TEXT",
        ColumnKind::Integer | ColumnKind::Boolean | ColumnKind::Time | ColumnKind::Reference(_) => {
            "INTEGER"
        }
        ColumnKind::Real => "REAL",
    }
}
