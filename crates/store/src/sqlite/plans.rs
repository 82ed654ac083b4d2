//! How SQLite goes about the statements of the rules.

use super::database::SqliteDatabase;
use super::migrate::{MIGRATIONS, migrate};
use crate::export::ExportTable;
use crate::rules::export::{ALL_IDS, objects_sql, sql_of};
use crate::rules::read::{DUE, PLACE, places_of};
use kittiwake_model::{Key, Table, WorldTime};
use rusqlite::{Connection, params_from_iter};

fn connection() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, 1, MIGRATIONS).unwrap();
    connection
}

#[test]
fn what_is_due_and_where_it_is_filed_is_read_from_the_index_alone() {
    let connection = connection();
    for (sql, terms) in [
        (DUE, "(lane=? AND (due_us,subject)>(?,?))"),
        (PLACE, "(lane=? AND due_us=? AND subject=?)"),
    ] {
        let plan = format!("SEARCH frontier USING COVERING INDEX frontier_by_due {terms}");
        assert_eq!(plan_of(&connection, sql), [plan]);
    }
}

/// Nobody hears of what goes wrong while places are read ahead.
#[test]
fn places_can_be_looked_at_of_rows_that_are_there_and_of_new_ones() {
    let connection = connection();
    let filed = "INSERT INTO frontier(subject, robot, lane, visits, due_us, state) VALUES (1, 'posts', 'sea', 0, 5, x'')";
    connection.execute(filed, []).unwrap();
    let filing = |subject| (Key(subject), "posts".into(), "sea".into(), WorldTime(9));
    let database = SqliteDatabase::new(&connection);
    places_of(&database, &[filing(1), filing(2)]).unwrap();
}

fn plan_of(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
        .unwrap();
    let parameters = vec![None::<i64>; statement.parameter_count()];
    let plan = statement.query_map(params_from_iter(parameters), |row| row.get(3));
    plan.unwrap().collect::<Result<_, _>>().unwrap()
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
        let plan = plan_of(&connection, &sql).join("\n");
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
