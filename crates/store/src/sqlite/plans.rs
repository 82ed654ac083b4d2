//! How SQLite goes about the statements of the rules.

use super::database::SqliteDatabase;
use super::migrate::{MIGRATIONS, migrate};
use crate::export::ExportTable;
use crate::rules::export::{ALL_IDS, objects_sql, sql_of};
use crate::rules::familiar::Marker;
use crate::rules::read::DUE;
use crate::rules::writer::{Marked, Writer};
use crate::{StoreError, StoreErrorKind};
use kittiwake_model::{Commit, CommitReport, Table};
use rusqlite::{Connection, params};

fn connection() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, 1, MIGRATIONS).unwrap();
    connection
}

#[test]
fn what_is_due_is_read_from_the_index_alone() {
    let connection = connection();
    let plan: Vec<String> = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {DUE}"))
        .unwrap()
        .query_map(params!["lane", 0, 0, None::<i64>, 10], |row| row.get(3))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(
        plan,
        [
            "SEARCH frontier USING COVERING INDEX frontier_by_due (lane=? AND (due_us,subject)>(?,?))"
        ]
    );
}

#[test]
fn no_table_is_sorted_before_its_first_row_comes_out() {
    let connection = connection();
    let mut all: Vec<String> = ExportTable::ALL
        .iter()
        .map(|table| sql_of(*table).to_owned())
        .filter(|sql| !sql.is_empty())
        .collect();
    all.extend(Table::ALL.iter().map(|table| objects_sql(*table)));
    all.push(ALL_IDS.to_owned());
    assert_eq!(all.len(), ExportTable::ALL.len());
    for sql in all {
        let mut statement = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .unwrap();
        let parameters = vec![None::<i64>; statement.parameter_count()];
        let plan: Vec<String> = statement
            .query_map(rusqlite::params_from_iter(parameters), |row| row.get(3))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let plan = plan.join("\n");
        // The ids of one object may be sorted, never those of all.
        assert!(!plan.contains("TEMP B-TREE FOR ORDER BY"), "{sql}\n{plan}");
    }
}

#[test]
fn every_part_has_its_column() {
    let connection = connection();
    for table in ExportTable::ALL {
        if !table.parts().is_empty() {
            let columns = connection.prepare(sql_of(*table)).unwrap().column_count();
            assert_eq!(columns, table.parts().len(), "{}", table.name());
        }
    }
}

fn commit(writer: &mut Writer<'_>) -> Result<Vec<Vec<CommitReport>>, StoreError> {
    let commit = Commit {
        controls_done: vec![1],
        ..Commit::default()
    };
    let marks = Vec::new();
    writer.write(&[vec![Marked { commit, marks }]], false)
}

#[test]
fn after_a_failure_that_leaves_doubt_nothing_more_is_written() {
    let connection = connection();
    let database = SqliteDatabase::new(&connection);
    database.load().unwrap();
    let mut writer = Writer::load(&database, Marker::default()).unwrap();
    commit(&mut writer).unwrap();
    // The commit fails, and what the file holds cannot be read again either.
    connection
        .execute_batch("DROP TABLE control; DROP TABLE key_merges")
        .unwrap();
    assert!(commit(&mut writer).is_err());
    let error = commit(&mut writer).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Poisoned);
    assert!(error.to_string().contains("start again"), "{error}");
}

#[test]
fn after_a_failure_that_was_undone_writing_goes_on() {
    let connection = connection();
    let database = SqliteDatabase::new(&connection);
    database.load().unwrap();
    let mut writer = Writer::load(&database, Marker::default()).unwrap();
    connection
        .execute_batch("ALTER TABLE control RENAME TO away")
        .unwrap();
    assert!(commit(&mut writer).is_err());
    connection
        .execute_batch("ALTER TABLE away RENAME TO control")
        .unwrap();
    commit(&mut writer).unwrap();
}
