//! Bringing a schema of the server to what this version wants, one step after the other.

use super::error::refused;
use super::session::Session;
use super::{schema, views};
use crate::{OpenMode, StoreError, StoreErrorKind};
use kittiwake_model::Table;
use std::collections::BTreeSet;

/// One step: what brings a store to the version `to`. A step that was published is never changed; a
/// new one is added behind it.
#[derive(Clone, Copy)]
pub(super) struct Migration {
    pub to: i32,
    pub sql: fn() -> String,
}

/// All steps, in order; the first one makes an empty schema into a store. Versions are those of
/// files: the third is the first that there was a server for.
pub(super) const MIGRATIONS: &[Migration] = &[
    Migration {
        to: 3,
        sql: schema::first,
    },
    Migration {
        to: 4,
        sql: schema::fourth,
    },
    Migration {
        to: 5,
        sql: schema::fifth,
    },
];

pub(super) fn newest(migrations: &[Migration]) -> i32 {
    migrations.last().map_or(0, |step| step.to)
}

/// What is in the schema: the version of our tables, or 0 if it is empty.
pub(super) fn version_of(session: &Session) -> Result<i32, StoreError> {
    let tables = tables_of(session)?;
    if tables.is_empty() {
        return Ok(0);
    }
    let mut version = None;
    if tables.contains("rules") && tables.contains("ids") {
        let sql = "SELECT value FROM rules WHERE name = 'schema'";
        version = session.text(sql)?.and_then(|version| version.parse().ok());
    }
    version.ok_or_else(|| {
        StoreError::new(
            StoreErrorKind::NotOurs,
            "there are tables of another program; name another database, or another schema with \
             ?options=-csearch_path%3DNAME",
        )
    })
}

pub(super) fn tables_of(session: &Session) -> Result<BTreeSet<String>, StoreError> {
    let rows = session.rows(
        "SELECT table_name::text FROM information_schema.tables
         WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'",
    )?;
    rows.iter()
        .map(|row| row.try_get(0).map_err(refused))
        .collect()
}

/// Refuses what this program cannot read.
pub(super) fn check_version(version: i32, mode: OpenMode) -> Result<(), StoreError> {
    let newest = newest(MIGRATIONS);
    if version > newest {
        return Err(newer(version, newest));
    }
    if mode == OpenMode::Crawl || version == newest {
        return Ok(());
    }
    if version == 0 {
        return Err(StoreError::new(
            StoreErrorKind::Missing,
            "there is no crawl in this database; check its name",
        ));
    }
    Err(StoreError::new(
        StoreErrorKind::Other,
        format!(
            "it was made by an older version (schema {version}, this program reads {newest}); \
             crawl into it once to bring it forward"
        ),
    ))
}

/// Runs the steps that the schema lacks, all in one transaction.
pub(super) fn migrate(session: &Session, migrations: &[Migration]) -> Result<(), StoreError> {
    let version = version_of(session)?;
    let newest = newest(migrations);
    if version > newest {
        return Err(newer(version, newest));
    }
    let steps = migrations.iter().filter(|step| step.to > version);
    let mut sql: String = steps.map(|step| (step.sql)()).collect();
    if !sql.is_empty() {
        sql.push_str(&rule("schema", &newest.to_string()));
    }
    in_one_transaction(session, &sql)?;
    complete(session)
}

/// Columns that the catalogue has gained since the schema was made, and views that have changed.
fn complete(session: &Session) -> Result<(), StoreError> {
    let mut sql = String::new();
    for table in Table::ALL {
        let present = columns_of(session, table.name())?;
        let missing = table.columns().iter();
        let missing = missing.filter(|column| !present.contains(column.name));
        sql.extend(missing.map(|column| schema::add_column(*table, column.name, column.kind)));
    }
    let wanted = views::refresh();
    let stored = session.text("SELECT value FROM rules WHERE name = 'views'")?;
    if !sql.is_empty() || stored.as_deref() != Some(&wanted) {
        sql.push_str(&wanted);
        sql.push_str(&rule("views", &wanted));
    }
    in_one_transaction(session, &sql)
}

fn columns_of(session: &Session, table: &str) -> Result<BTreeSet<String>, StoreError> {
    let rows = session.rows(&format!(
        "SELECT column_name::text FROM information_schema.columns
         WHERE table_schema = current_schema() AND table_name = '{table}'"
    ))?;
    rows.iter()
        .map(|row| row.try_get(0).map_err(refused))
        .collect()
}

fn rule(name: &str, value: &str) -> String {
    let value = value.replace('\'', "''");
    format!(
        "INSERT INTO rules(name, value) VALUES ('{name}', '{value}')
         ON CONFLICT (name) DO UPDATE SET value = excluded.value;\n"
    )
}

fn in_one_transaction(session: &Session, sql: &str) -> Result<(), StoreError> {
    if sql.is_empty() {
        return Ok(());
    }
    let done = session.batch(&format!("BEGIN;\n{sql}COMMIT"));
    if done.is_err() {
        // Whatever the reason was is told; this only frees the connection.
        let _ = session.batch("ROLLBACK");
    }
    done
}

pub(super) fn newer(version: i32, newest: i32) -> StoreError {
    StoreError::new(
        StoreErrorKind::Newer,
        format!(
            "it was made by a newer version of kittiwake (schema {version}, this program knows up \
             to {newest}); install that version or take another database"
        ),
    )
}
