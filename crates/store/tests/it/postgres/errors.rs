//! What a server refuses, in words for the person at the keyboard.

use super::server::{OWNER, Schema, shared};
use super::{number, open, schema, visit, visited};
use kittiwake_model::ControlCommand;
use kittiwake_store::postgres::control;
use kittiwake_store::{OpenMode, PostgresStore, Store as _, StoreError, StoreErrorKind};

fn refused(url: &str, mode: OpenMode) -> StoreError {
    PostgresStore::open(url, mode).unwrap_err()
}

#[track_caller]
fn assert_says(error: &StoreError, kind: StoreErrorKind, words: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn a_wrong_password_is_refused_and_not_shown() {
    let schema = schema();
    schema.run(
        "DO $$ BEGIN CREATE ROLE with_password LOGIN PASSWORD 'right';
         EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$",
    );
    let url = |user: &str| shared().url(user, "postgres", "public");
    let error = refused(&url("with_password:wr0ng"), OpenMode::Read);
    assert_says(&error, StoreErrorKind::Denied, "check both");
    assert!(!error.to_string().contains("wr0ng"), "{error}");
    let error = refused(&url("with_password"), OpenMode::Read);
    assert_says(&error, StoreErrorKind::Denied, "PGPASSWORD");
    // With the right one, all that is missing is a crawl.
    let error = refused(&url("with_password:right"), OpenMode::Read);
    assert_says(&error, StoreErrorKind::Missing, "no crawl");
}

#[test]
fn a_server_that_is_not_there_is_told_at_once() {
    for url in [
        "postgres://alice@%2Fnowhere/crawls",
        "postgres://alice@127.0.0.1:1/crawls",
    ] {
        let error = refused(url, OpenMode::Crawl);
        assert_says(&error, StoreErrorKind::Unreachable, "check that it runs");
    }
    let error = refused("postgres://alice@h:port/crawls", OpenMode::Crawl);
    assert_says(&error, StoreErrorKind::Missing, "looks like");
}

#[test]
fn a_database_that_is_not_there_has_to_be_made() {
    let url = shared().url(OWNER, "nowhere", "public");
    let error = refused(&url, OpenMode::Crawl);
    assert_says(&error, StoreErrorKind::Missing, "createdb");
}

/// The URL of a session that takes no writes, as those of a standby do.
fn read_only(schema: &Schema) -> String {
    let setting = "%20-cdefault_transaction_read_only%3Don&application_name=";
    schema.url.replace("&application_name=", setting)
}

#[tokio::test]
async fn who_may_only_read_can_only_read() {
    let schema = schema();
    let store = open(&schema);
    visited(&store, 1).await;
    let role = format!("reader_{}", schema.name);
    let name = &schema.name;
    schema.run(&format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {name} TO {role};
         GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {role}"
    ));
    let url = shared().url(&role, "postgres", name);
    let reader = PostgresStore::open(&url, OpenMode::Read).unwrap();
    assert_eq!(reader.summary().await.unwrap().rows["users"], 1);
    let error = reader.commit(vec![visit(2)]).await.unwrap_err();
    assert_says(&error, StoreErrorKind::Denied, "opened for reading");
    drop(store);
    let crawl = PostgresStore::open(&url, OpenMode::Crawl).unwrap();
    let error = crawl.commit(vec![visit(2)]).await.unwrap_err();
    assert_says(&error, StoreErrorKind::Denied, "may not write");
    drop((reader, crawl));
    schema.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    // A server that takes no writes at all, as a standby does.
    let url = read_only(&schema);
    let crawl = PostgresStore::open(&url, OpenMode::Crawl).unwrap();
    let error = crawl.commit(vec![visit(2)]).await.unwrap_err();
    assert_says(&error, StoreErrorKind::Denied, "may not write");
    let fresh = super::schema();
    let url = read_only(&fresh);
    let error = refused(&url, OpenMode::Crawl);
    assert_says(&error, StoreErrorKind::Denied, "may not write");
}

#[test]
fn a_newer_schema_is_refused() {
    let schema = schema();
    drop(open(&schema));
    schema.run("UPDATE rules SET value = '1000' WHERE name = 'schema'");
    for mode in [OpenMode::Crawl, OpenMode::Read] {
        let error = refused(&schema.url, mode);
        assert_says(&error, StoreErrorKind::Newer, "newer version");
    }
    // Nothing was changed by trying.
    schema.run("UPDATE rules SET value = '5' WHERE name = 'schema'");
    drop(open(&schema));
}

#[test]
fn an_older_schema_is_read_once_it_was_crawled_into() {
    let schema = schema();
    drop(open(&schema));
    schema.run("ALTER TABLE query_log DROP COLUMN read_us CASCADE");
    schema.run("ALTER TABLE query_log DROP COLUMN found CASCADE");
    schema.run("UPDATE rules SET value = '3' WHERE name = 'schema'");
    let error = refused(&schema.url, OpenMode::Read);
    assert_says(&error, StoreErrorKind::Other, "older version");
    drop(open(&schema));
    schema.run("SELECT read_us, found FROM query_log");
}

#[test]
fn another_encoding_is_refused() {
    let schema = schema();
    // The second takes any bytes for text, so that nobody knows what they mean.
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let database = format!("{encoding}_{}", schema.name).to_lowercase();
        schema.run(&format!(
            "CREATE DATABASE {database} ENCODING {encoding} TEMPLATE template0 LOCALE_PROVIDER libc
             LC_COLLATE 'C' LC_CTYPE 'C'"
        ));
        let url = shared().url(OWNER, &database, "public");
        for mode in [OpenMode::Crawl, OpenMode::Read] {
            assert_says(&refused(&url, mode), StoreErrorKind::NotOurs, encoding);
        }
        schema.run(&format!("DROP DATABASE {database} WITH (FORCE)"));
    }
}

#[test]
fn tables_of_others_are_left_alone() {
    let schema = schema();
    let name = &schema.name;
    schema.run(&format!(
        "CREATE SCHEMA {name}; CREATE TABLE {name}.users(name TEXT)"
    ));
    for mode in [OpenMode::Crawl, OpenMode::Read] {
        let error = refused(&schema.url, mode);
        assert_says(&error, StoreErrorKind::NotOurs, "another program");
    }
}

#[tokio::test]
async fn only_one_crawls_at_a_time() {
    let schema = schema();
    let error = control::is_crawled(&schema.url).unwrap_err();
    assert_says(&error, StoreErrorKind::Missing, "does not exist");
    let first = open(&schema);
    assert!(control::is_crawled(&schema.url).unwrap());
    let error = refused(&schema.url, OpenMode::Crawl);
    assert_says(&error, StoreErrorKind::Locked, "another kittiwake");
    // Others may look on, and other crawls have schemas of their own.
    visited(&first, 1).await;
    let reader = PostgresStore::open(&schema.url, OpenMode::Read).unwrap();
    assert_eq!(reader.summary().await.unwrap().rows["users"], 1);
    let other = super::schema();
    drop(open(&other));
    drop(first);
    assert!(!control::is_crawled(&schema.url).unwrap());
    drop(open(&schema));
}

#[tokio::test]
async fn a_crawl_hears_commands() {
    let schema = schema();
    let store = open(&schema);
    let id = control::ask(&schema.url, ControlCommand::Pause, Some("it's \"one\"")).unwrap();
    let heard = store.controls(0).await.unwrap();
    assert_eq!(heard.len(), 1);
    assert_eq!(
        (heard[0].id, heard[0].robot.as_deref()),
        (id, Some("it's \"one\""))
    );
    assert!(!control::is_done(&schema.url, id).unwrap());
    let done = kittiwake_model::Commit {
        controls_done: vec![id],
        ..kittiwake_model::Commit::default()
    };
    store.commit(vec![done]).await.unwrap();
    assert!(control::is_done(&schema.url, id).unwrap());
    let error = control::is_done(&schema.url, 777).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Missing);
}

/// Has the server refuse the next rows of the log, as it would with this code.
fn refuse_log(schema: &Schema, code: &str, times: u32) {
    let name = &schema.name;
    schema.run(&format!(
        "CREATE SEQUENCE {name}.refusals;
         CREATE FUNCTION {name}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF nextval('{name}.refusals') <= {times} THEN
             RAISE EXCEPTION 'no' USING ERRCODE = '{code}';
           END IF;
           RETURN NEW;
         END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON {name}.query_log
           FOR EACH ROW EXECUTE FUNCTION {name}.refuse()"
    ));
}

#[tokio::test]
async fn a_full_disk_loses_nothing_that_was_committed() {
    let schema = schema();
    let store = open(&schema);
    visited(&store, 1).await;
    refuse_log(&schema, "53100", 1);
    let error = store.commit(vec![visit(2)]).await.unwrap_err();
    assert_says(&error, StoreErrorKind::DiskFull, "disk is full");
    // Whole commits, and no key of the one that failed.
    assert_eq!(number(&store, "SELECT count(*) FROM ids").await, 1);
    assert_eq!(number(&store, "SELECT count(*) FROM subjects").await, 1);
    visited(&store, 2).await;
    assert_eq!(number(&store, "SELECT count(*) FROM users").await, 2);
    assert_eq!(number(&store, "SELECT max(key) FROM ids").await, 2);
}

#[tokio::test]
async fn a_transaction_that_the_server_undid_is_done_again() {
    let schema = schema();
    let store = open(&schema);
    visited(&store, 1).await;
    refuse_log(&schema, "40001", 3);
    visited(&store, 2).await;
    assert_eq!(number(&store, "SELECT count(*) FROM users").await, 2);
    assert_eq!(number(&store, "SELECT count(*) FROM query_log").await, 2);
}

#[tokio::test]
async fn texts_that_the_server_cannot_hold_are_mended() {
    let schema = schema();
    let store = open(&schema);
    let mut commit = visit(1);
    if let Some(log) = &mut commit.log {
        "NUL \0 here".clone_into(&mut log.reason);
    }
    store.commit(vec![commit]).await.unwrap();
    let rows =
        kittiwake_store::suite::Inspect::select(&store, "SELECT reason FROM query_log".to_owned());
    assert_eq!(
        rows.await.unwrap()[0][0].as_deref(),
        Some("NUL \u{FFFD} here")
    );
}
