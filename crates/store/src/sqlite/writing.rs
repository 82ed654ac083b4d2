//! What the writer leaves in a file, however it ends.

use super::database::SqliteDatabase;
use super::migrate::{MIGRATIONS, migrate};
use crate::database::Keeper as _;
use crate::rules::familiar::Marker;
use crate::rules::writer::{Marked, Writer};
use crate::{StoreError, StoreErrorKind};
use kittiwake_model::{
    Alias, Commit, CommitReport, Group, Identity, Object, Standing, Table, Value, WorldTime,
};
use rusqlite::Connection;

fn connection() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, 1, MIGRATIONS).unwrap();
    connection
}

fn database(connection: &Connection) -> SqliteDatabase<'_> {
    let database = SqliteDatabase::new(connection);
    database.load().unwrap();
    database
}

fn writer<'k>(database: &'k SqliteDatabase<'_>) -> Writer<'k> {
    Writer::load(database, Marker::default()).unwrap()
}

/// A commit that needs the table `control`.
fn commit(writer: &mut Writer<'_>) -> Result<Vec<Vec<CommitReport>>, StoreError> {
    let commit = Commit {
        controls_done: vec![1],
        ..Commit::default()
    };
    let marks = Vec::new();
    writer.write(&[vec![Marked { commit, marks }]], false)
}

/// A commit at a time with users who are called so.
fn tell(writer: &mut Writer<'_>, at_us: i64, names: &[String]) {
    let user = |name: &String| Object {
        table: Table::Users,
        identity: Identity {
            network: "mastodon".into(),
            kind: "user".into(),
            canonical: Some(format!("https://sea.example/{name}")),
            aliases: vec![Alias {
                name: "handle".into(),
                id: name.clone(),
                host: String::new(),
                movable: true,
            }],
        },
        known_as: None,
        standing: Standing::Present,
        groups: vec![Group {
            name: "card".into(),
            fields: vec![("display_name".into(), Value::Text(name.clone()))],
        }],
    };
    let commit = Commit {
        at: WorldTime(at_us),
        objects: names.iter().map(user).collect(),
        ..Commit::default()
    };
    let marks = writer.marks(&commit);
    let group = [vec![Marked { commit, marks }]];
    writer.write(&group, true).unwrap();
}

fn text(connection: &Connection, sql: &str) -> String {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

const FOUND: &str = "SELECT count(DISTINCT key) || ' ' || count(*) FROM ids";
const TIMES: &str = "SELECT observed || (SELECT max(last_seen_us) FROM ids) FROM users";

#[test]
fn a_kill_loses_no_time_that_was_put_off() {
    let connection = connection();
    let names = [String::from("ada")];
    {
        let database = database(&connection);
        let mut killed = writer(&database);
        tell(&mut killed, 10, &names);
        tell(&mut killed, 20, &names);
        tell(&mut killed, 30, &names);
    }
    assert_eq!(text(&connection, TIMES), r#"{"card":[10,0,1]}10"#);
    // Whoever opens the file knows of them: an older answer changes nothing.
    tell(&mut writer(&database(&connection)), 25, &names);
    writer(&database(&connection)).catch_up();
    assert_eq!(text(&connection, TIMES), r#"{"card":[30,0,1]}30"#);
    let left = text(&connection, "SELECT count(*) || '' FROM put_off");
    assert_eq!(left, "0");
}

#[test]
fn a_failure_loses_no_time_that_was_put_off() {
    let connection = connection();
    let names = [String::from("ada")];
    let database = database(&connection);
    let mut writer = writer(&database);
    tell(&mut writer, 10, &names);
    tell(&mut writer, 20, &names);
    connection
        .execute_batch("ALTER TABLE control RENAME TO away")
        .unwrap();
    assert!(commit(&mut writer).is_err());
    writer.catch_up();
    assert_eq!(text(&connection, TIMES), r#"{"card":[20,0,1]}20"#);
}

#[test]
fn ids_are_found_again_whenever_the_program_ends() {
    let connection = connection();
    let names: Vec<String> = (0..60).map(|number| format!("user{number}")).collect();
    for (place, chunk) in names.chunks(3).enumerate() {
        // Killed after every transaction, often in the middle of a stretch.
        let at_us = 10 + i64::try_from(place).unwrap();
        tell(&mut writer(&database(&connection)), at_us, chunk);
        tell(&mut writer(&database(&connection)), at_us, &names[..place]);
    }
    assert_eq!(text(&connection, FOUND), "60 120");
    let moved = text(&connection, "SELECT count(*) || '' FROM id_places");
    assert!(
        (60..=120).contains(&moved.parse::<i32>().unwrap()),
        "{moved}"
    );
}

/// Names of users, and what is found of the ids of all of them if none was lost and none stored twice.
fn many_names() -> (Vec<String>, &'static str) {
    let names = (0..100).map(|number| format!("user{number}")).collect();
    (names, "100 200")
}

#[test]
fn ids_are_found_and_new_ones_stored_while_the_filter_grows() {
    let connection = connection();
    let database = database(&connection);
    let (names, found) = many_names();
    let mut layers = vec![database.places().borrow().layers()];
    for (place, chunk) in names.chunks(2).enumerate() {
        let at_us = 10 + i64::try_from(place).unwrap();
        tell(&mut writer(&database), at_us, chunk);
        // All that are known by now, by a writer that remembers none: they have to be looked up.
        tell(&mut writer(&database), at_us, &names[..2 * place]);
        layers.push(database.places().borrow().layers());
    }
    assert_eq!(text(&connection, FOUND), found);
    // There are 64 hashes (see `hash`), and the first layer is for 4.
    layers.dedup();
    assert!(layers.len() >= 4 && layers.is_sorted(), "{layers:?}");
}

#[test]
fn a_filter_that_takes_everything_for_known_loses_no_id() {
    let connection = connection();
    let database = database(&connection);
    database.places().borrow_mut().doubt_all();
    assert!((0..64).all(|hash| database.places().borrow().may_be_placed(hash)));
    let (names, found) = many_names();
    for (place, chunk) in names.chunks(3).enumerate() {
        let at_us = 10 + i64::try_from(place).unwrap();
        tell(&mut writer(&database), at_us, chunk);
        let known = 3 * place + chunk.len();
        assert_eq!(text(&connection, FOUND), format!("{known} {}", 2 * known));
        tell(&mut writer(&database), at_us, &names[..known]);
    }
    assert_eq!(text(&connection, FOUND), found);
    let moved = text(&connection, "SELECT count(*) || '' FROM id_places");
    assert!(moved.parse::<i32>().unwrap() > 100, "{moved}");
}

#[test]
fn after_a_failure_that_leaves_doubt_nothing_more_is_written() {
    let connection = connection();
    let database = database(&connection);
    let mut writer = writer(&database);
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
    let database = database(&connection);
    let mut writer = writer(&database);
    connection
        .execute_batch("ALTER TABLE control RENAME TO away")
        .unwrap();
    assert!(commit(&mut writer).is_err());
    connection
        .execute_batch("ALTER TABLE away RENAME TO control")
        .unwrap();
    commit(&mut writer).unwrap();
}
