//! How SQLite goes about the statements of the rules.

use super::migrate::{MIGRATIONS, migrate};
use crate::export::ExportTable;
use crate::rules::export::{ALL_IDS, objects_sql, sql_of};
use crate::rules::read::DUE;
use kittiwake_model::Table;
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
