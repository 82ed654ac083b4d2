//! Bringing a file to the schema of this version, one step after the other.

use super::error::refused;
use super::{schema, views};
use crate::{StoreError, StoreErrorKind};
use kittiwake_model::Table;
use rusqlite::{Connection, TransactionBehavior};
use std::collections::BTreeSet;

/// One step: what turns version `to - 1` into version `to`. A step that was published is never
/// changed; a new one is added behind it.
#[derive(Clone, Copy)]
pub(super) struct Migration {
    pub to: i32,
    pub apply: fn(&Connection) -> rusqlite::Result<()>,
}

/// All steps, in order; the first one makes an empty file into a store.
pub(super) const MIGRATIONS: &[Migration] = &[
    Migration {
        to: 1,
        apply: first_schema,
    },
    Migration {
        to: 2,
        apply: |connection| connection.execute_batch(schema::SECOND),
    },
    Migration {
        to: 3,
        apply: |connection| connection.execute_batch(schema::THIRD),
    },
    Migration {
        to: 4,
        apply: |connection| connection.execute_batch(schema::FOURTH),
    },
    Migration {
        to: 5,
        apply: |connection| connection.execute_batch(schema::FIFTH),
    },
];

fn first_schema(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(schema::TABLES)?;
    connection.execute_batch(&schema::object_tables())
}

/// Runs the steps that the file lacks, all in one transaction.
pub(super) fn migrate(
    connection: &mut Connection,
    application_id: i32,
    migrations: &[Migration],
) -> Result<(), StoreError> {
    let newest = migrations.last().map_or(0, |step| step.to);
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(refused)?;
    let version = version_of(&transaction).map_err(refused)?;
    if version > newest {
        return Err(newer(version, newest));
    }
    for step in migrations.iter().filter(|step| step.to > version) {
        (step.apply)(&transaction).map_err(refused)?;
        transaction
            .pragma_update(None, "user_version", step.to)
            .map_err(refused)?;
    }
    if application_id_of(&transaction).map_err(refused)? != application_id {
        transaction
            .pragma_update(None, "application_id", application_id)
            .map_err(refused)?;
    }
    transaction.commit().map_err(refused)
}

/// Columns that the catalogue has gained since the file was made, and views that have changed.
pub(super) fn complete(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(refused)?;
    for table in Table::ALL {
        let present = columns_of(&transaction, table.name()).map_err(refused)?;
        for column in table.columns() {
            if !present.contains(column.name) {
                transaction
                    .execute_batch(&format!(
                        "ALTER TABLE {} ADD COLUMN {} {}",
                        table.name(),
                        column.name,
                        schema::type_of(column.kind)
                    ))
                    .map_err(refused)?;
            }
        }
    }
    views::refresh(&transaction).map_err(refused)?;
    transaction.commit().map_err(refused)
}

pub(super) fn columns_of(
    connection: &Connection,
    table: &str,
) -> rusqlite::Result<BTreeSet<String>> {
    connection
        .prepare("SELECT name FROM pragma_table_info(?1)")?
        .query_map([table], |row| row.get(0))?
        .collect()
}

pub(super) fn version_of(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

pub(super) fn application_id_of(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "application_id", |row| row.get(0))
}

pub(super) fn newer(version: i32, newest: i32) -> StoreError {
    StoreError::new(
        StoreErrorKind::Newer,
        format!(
            "it was made by a newer version of kittiwake (schema {version}, this program knows up \
             to {newest}); install that version or take another file"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAIN: &[Migration] = &[
        Migration {
            to: 1,
            apply: |connection| connection.execute_batch("CREATE TABLE birds(name TEXT)"),
        },
        Migration {
            to: 2,
            apply: |connection| {
                connection.execute_batch("ALTER TABLE birds ADD COLUMN wings INTEGER")
            },
        },
        Migration {
            to: 3,
            apply: |connection| connection.execute_batch("UPDATE birds SET wings = 2"),
        },
    ];

    #[test]
    fn an_older_file_is_brought_forward_step_by_step() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, 77, &CHAIN[..1]).unwrap();
        connection
            .execute_batch("INSERT INTO birds VALUES ('gull')")
            .unwrap();
        migrate(&mut connection, 77, CHAIN).unwrap();
        assert_eq!(version_of(&connection).unwrap(), 3);
        assert_eq!(application_id_of(&connection).unwrap(), 77);
        let wings: i64 = connection
            .query_row("SELECT wings FROM birds", [], |row| row.get(0))
            .unwrap();
        assert_eq!(wings, 2);
        // Running it again changes nothing.
        migrate(&mut connection, 77, CHAIN).unwrap();
        assert_eq!(version_of(&connection).unwrap(), 3);
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, 77, &CHAIN[..1]).unwrap();
        let broken = [
            CHAIN[0],
            CHAIN[1],
            Migration {
                to: 3,
                apply: |connection| connection.execute_batch("INSERT INTO nowhere VALUES (1)"),
            },
        ];
        assert!(migrate(&mut connection, 77, &broken).is_err());
        assert_eq!(version_of(&connection).unwrap(), 1);
        assert_eq!(columns_of(&connection, "birds").unwrap().len(), 1);
    }

    #[test]
    fn a_newer_file_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, 77, CHAIN).unwrap();
        let error = migrate(&mut connection, 77, &CHAIN[..2]).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Newer);
        assert!(error.to_string().contains("newer version"));
    }

    #[test]
    fn a_file_without_a_later_column_is_completed() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, 77, MIGRATIONS).unwrap();
        connection
            .execute_batch("ALTER TABLE users DROP COLUMN banner_url")
            .unwrap();
        complete(&mut connection).unwrap();
        assert!(
            columns_of(&connection, "users")
                .unwrap()
                .contains("banner_url")
        );
    }

    #[test]
    fn every_table_is_listed() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, 77, MIGRATIONS).unwrap();
        let stored: BTreeSet<String> = connection
            .prepare("SELECT name FROM sqlite_master WHERE type = 'table'")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let listed: BTreeSet<String> = schema::TABLE_NAMES
            .iter()
            .map(|name| (*name).to_owned())
            .collect();
        assert_eq!(stored, listed);
    }
}
