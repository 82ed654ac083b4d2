//! The index of a crawl's file: `FILE.search` beside it.
//!
//! Whoever looks opens it anew, so that it may be deleted, or replaced, at any time. What is there and is
//! ours is written over when it cannot be used; a file of somebody else is set aside.

use super::database::SqliteDatabase;
use super::error::refused;
use super::head;
use super::open;
use crate::database::{Database, Reader as _};
use crate::index::{Asks, IndexKeeper, IndexReader, Look, Sources, Words, WordsDialect};
use crate::rules::browse::indexing::STATE_TABLES;
use crate::words::fts5;
use crate::{OpenMode, StoreError, StoreErrorKind};
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// "Kits": marks an index as ours.
const APPLICATION_ID: i32 = 0x4B69_7473;
/// Where SQLite keeps the mark in a file.
const APPLICATION_ID_PLACE: usize = 68;
/// How long somebody who looks waits for the index. It is written in small steps.
const BUSY_WAIT: Duration = Duration::from_secs(2);
/// Files of others that may have been set aside.
const ASIDE_MAX: u32 = 100;

/// Where words stand in a text is not filed: words next to one another are looked for in the text itself,
/// which may be stopped, and FTS5 not.
///
/// Rows are numbered down from 2^42 - 1, so that the newest come first: FTS5 goes quickly forward to a row, and
/// backward it reads its list of pages again from the beginning for each page.
const DIALECT: WordsDialect = WordsDialect {
    version: "2",
    create: &[
        "CREATE VIRTUAL TABLE IF NOT EXISTS search_users USING fts5(
           words, content='', contentless_delete=1, tokenize='ascii', detail='none', prefix='3 4 5 6 8')",
        "CREATE VIRTUAL TABLE IF NOT EXISTS search_posts USING fts5(
           words, content='', contentless_delete=1, tokenize='ascii', detail='none', prefix='3 4 5 6 8')",
    ],
    put: |list| match list {
        Words::Users => {
            "INSERT OR REPLACE INTO search_users(rowid, words) VALUES (4398046511103 - ?1, ?2)"
        }
        Words::Posts => {
            "INSERT OR REPLACE INTO search_posts(rowid, words) VALUES (4398046511103 - ?1, ?2)"
        }
    },
    remove: |list| match list {
        Words::Users => "DELETE FROM search_users WHERE rowid = 4398046511103 - ?1",
        Words::Posts => "DELETE FROM search_posts WHERE rowid = 4398046511103 - ?1",
    },
    find: |list| match list {
        Words::Users => {
            "SELECT 4398046511103 - rowid FROM search_users
             WHERE search_users MATCH ?1 AND rowid > 4398046511103 - ?2 ORDER BY rowid LIMIT ?3"
        }
        Words::Posts => {
            "SELECT 4398046511103 - rowid FROM search_posts
             WHERE search_posts MATCH ?1 AND rowid > 4398046511103 - ?2 ORDER BY rowid LIMIT ?3"
        }
    },
    asks: Asks::Word(fts5::word),
    words: fts5::words,
};

/// The index of the file at `path`.
fn place(path: &Path) -> PathBuf {
    open::beside(&open::real_path(path), ".search")
}

/// See [`crate::Location::with_sources`].
pub(crate) fn with_sources(
    path: &Path,
    work: &mut dyn FnMut(&Sources<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    open::check_file(path, OpenMode::Read)?;
    let connection = open::reader(path)?;
    let mark = open::mark_of(path);
    let index = SearchFile(place(path));
    work(&Sources {
        crawl: &SqliteDatabase::new(&connection),
        index: &index,
        is_current: &|| open::mark_of(path) == mark,
    })
}

#[derive(Debug)]
struct SearchFile(PathBuf);

impl IndexReader for SearchFile {
    fn look(&self, look: &mut Look<'_>) -> Result<(), StoreError> {
        let Some(connection) = self.open()? else {
            return Ok(());
        };
        match look(&SqliteDatabase::new(&connection), &DIALECT) {
            // It is being made anew, or has to be: there is nothing to be found in it for now.
            Err(error) if is_unusable(&error) => {
                tracing::warn!(%error, "the index of words cannot be read");
                Ok(())
            }
            looked => looked,
        }
    }
}

/// Whether an error tells of the index's state, and not of the question.
fn is_unusable(error: &StoreError) -> bool {
    !matches!(
        error.kind(),
        StoreErrorKind::Stopped | StoreErrorKind::Locked | StoreErrorKind::Invalid
    )
}

impl SearchFile {
    /// `None` if there is none that can be read.
    fn open(&self) -> Result<Option<Connection>, StoreError> {
        if whose(&self.0) != Whose::Ours {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(&self.0, flags).map_err(refused);
        let opened = opened.and_then(|connection| {
            connection.busy_timeout(BUSY_WAIT).map_err(refused)?;
            connection
                .pragma_update(None, "query_only", true)
                .map_err(refused)?;
            Ok(connection)
        });
        match opened {
            Ok(connection) => Ok(Some(connection)),
            Err(error) if is_unusable(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Nobodys,
    Ours,
    Others,
}

/// Whose file lies there. One that was cut off before its mark could be written is nobody's.
fn whose(path: &Path) -> Whose {
    let head = match head::read(path, APPLICATION_ID_PLACE + 4) {
        Ok(head) if head.is_file => head.bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Whose::Nobodys,
        _ => return Whose::Others,
    };
    match head.get(APPLICATION_ID_PLACE..) {
        _ if head.is_empty() => Whose::Nobodys,
        Some(mark) if *mark == APPLICATION_ID.to_be_bytes() => Whose::Ours,
        _ => Whose::Others,
    }
}

/// See [`crate::Location::with_index_keeper`].
pub(crate) fn with_index_keeper(
    path: &Path,
    work: &mut dyn FnMut(&dyn IndexKeeper) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    open::check_file(path, OpenMode::Read)?;
    let crawl = open::reader(path)?;
    let place = place(path);
    let index = open_or_make(&place)?;
    work(&Keeper {
        crawl: SqliteDatabase::new(&crawl),
        index: SqliteDatabase::new(&index),
        files: [path.to_owned(), place].map(|path| (open::mark_of(&path), path)),
    })
}

/// Opens the index for writing; one that cannot be read is thrown away.
fn open_or_make(path: &Path) -> Result<Connection, StoreError> {
    if whose(path) == Whose::Others {
        set_aside(path)?;
    }
    match make(path) {
        Err(error)
            if matches!(
                error.kind(),
                StoreErrorKind::Corrupt | StoreErrorKind::NotOurs
            ) =>
        {
            tracing::warn!(%error, "the index of words is damaged; it is made anew");
            remove(path)?;
            make(path)
        }
        made => made,
    }
}

fn make(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(refused)?;
    connection.busy_timeout(BUSY_WAIT).map_err(refused)?;
    for (name, value) in [
        ("page_size", open::PAGE_BYTES.to_string()),
        ("application_id", APPLICATION_ID.to_string()),
        ("journal_mode", "WAL".to_owned()),
        ("synchronous", "NORMAL".to_owned()),
        ("cache_size", "-32768".to_owned()),
    ] {
        connection
            .execute_batch(&format!("PRAGMA {name} = {value}"))
            .map_err(refused)?;
    }
    for sql in STATE_TABLES.iter().chain(DIALECT.create) {
        connection.execute_batch(sql).map_err(refused)?;
    }
    Ok(connection)
}

fn remove(path: &Path) -> Result<(), StoreError> {
    for file in [
        path.to_owned(),
        open::beside(path, "-wal"),
        open::beside(path, "-shm"),
    ] {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(in_the_way(&file, &error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn set_aside(path: &Path) -> Result<(), StoreError> {
    let free = (1..=ASIDE_MAX).map(|number| open::beside(path, &format!(".aside-{number}")));
    let Some(aside) = free.into_iter().find(|aside| !aside.exists()) else {
        return Err(in_the_way(path, &std::io::ErrorKind::AlreadyExists.into()));
    };
    tracing::warn!(
        from = %path.display(), to = %aside.display(),
        "what lies in the place of the index of words is none; it is set aside"
    );
    std::fs::rename(path, &aside).map_err(|error| in_the_way(path, &error))
}

fn in_the_way(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::new(
        StoreErrorKind::Denied,
        format!(
            "{} is in the way of the index of words and cannot be moved: {error}",
            path.display()
        ),
    )
}

#[derive(Debug)]
struct Keeper<'c> {
    crawl: SqliteDatabase<'c>,
    index: SqliteDatabase<'c>,
    /// The two files, and what they were when they were opened.
    files: [(Option<open::FileMark>, PathBuf); 2],
}

impl IndexKeeper for Keeper<'_> {
    fn crawl(&self) -> &dyn Database {
        &self.crawl
    }

    fn index(&self) -> &dyn Database {
        &self.index
    }

    fn dialect(&self) -> &WordsDialect {
        &DIALECT
    }

    fn begin(&self) -> Result<(), StoreError> {
        let is_current = |(mark, path): &(_, PathBuf)| open::mark_of(path) == *mark;
        if !self.files.iter().all(is_current) {
            return Err(StoreError::new(
                StoreErrorKind::Missing,
                "the file, or its index of words, was deleted or replaced",
            ));
        }
        self.index.execute("BEGIN IMMEDIATE".into(), &[])?;
        self.crawl.begin_view()
    }

    fn commit(&self) -> Result<(), StoreError> {
        self.crawl.end_view();
        self.index.execute("COMMIT".into(), &[]).map(drop)
    }

    fn roll_back(&self) {
        self.crawl.end_view();
        if let Err(error) = self.index.execute("ROLLBACK".into(), &[]) {
            tracing::debug!(%error, "a step of the index had ended already");
        }
    }

    fn clear(&self) -> Result<(), StoreError> {
        for sql in [
            "DELETE FROM search_state",
            "DELETE FROM search_people",
            // They may be of another version.
            "DROP TABLE IF EXISTS search_users",
            "DROP TABLE IF EXISTS search_posts",
        ]
        .iter()
        .chain(DIALECT.create)
        {
            self.index.execute((*sql).into(), &[])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::cells;
    use crate::rules::browse::walk::{Place, Walked, walk};
    use crate::words::{BEGINNINGS, Query, Tokens};
    use proptest::prelude::*;

    /// A crawl that has posts only, and its index, in memory.
    struct Posts {
        connection: Connection,
        texts: Vec<String>,
    }

    impl Posts {
        fn new(texts: Vec<String>) -> Self {
            let connection = Connection::open_in_memory().unwrap();
            for sql in DIALECT.create.iter().chain(&[
                "CREATE TABLE statuses(key INTEGER PRIMARY KEY, text TEXT, content_warning TEXT)",
                "CREATE TABLE comments(key INTEGER PRIMARY KEY, text TEXT)",
                "BEGIN",
            ]) {
                connection.execute_batch(sql).unwrap();
            }
            let database = SqliteDatabase::new(&connection);
            let keyed: Vec<(i64, &String)> = (1_i64..).zip(&texts).collect();
            for (key, text) in keyed.into_iter().rev() {
                let words = (DIALECT.words)(&tokens(text));
                let sql = "INSERT INTO statuses(key, text) VALUES (?1, ?2)";
                database
                    .execute(sql.into(), cells![key, text.as_str()])
                    .unwrap();
                database
                    .execute((DIALECT.put)(Words::Posts).into(), cells![key, words])
                    .unwrap();
            }
            database.execute("COMMIT".into(), &[]).unwrap();
            drop(database);
            Self { connection, texts }
        }

        fn walked(&self, words: &str, before: i64, limit: usize) -> Walked {
            let database = SqliteDatabase::new(&self.connection);
            let place = Place {
                crawl: &database,
                index: &database,
                dialect: &DIALECT,
                list: Words::Posts,
            };
            walk(place, &Query::typed(words), before, limit).unwrap()
        }

        /// Page after page: what was found, and how many pages there were.
        fn all(&self, words: &str, limit: usize) -> (Vec<i64>, usize) {
            let (mut found, mut before) = (Vec::new(), i64::MAX);
            for page in 1..=self.texts.len() + 1 {
                let walked = self.walked(words, before, limit);
                found.extend(walked.keys);
                let Some(down_to) = walked.down_to else {
                    return (found, page);
                };
                assert!(down_to < before, "{words}: a page that leads nowhere");
                before = down_to;
            }
            panic!("{words}: there is no end of pages");
        }

        /// What is there, found by reading everything.
        fn naive(&self, words: &str) -> Vec<i64> {
            let query = Query::typed(words);
            let numbered = (1_i64..).zip(&self.texts);
            let met = numbered.filter(|(_, text)| query.is_met_by(&tokens(text)));
            let mut keys: Vec<i64> = met.map(|(key, _)| key).collect();
            keys.reverse();
            keys
        }
    }

    fn tokens(text: &str) -> Tokens {
        let mut tokens = Tokens::default();
        tokens.add(text);
        tokens
    }

    #[test]
    fn beginnings_are_filed_that_are_looked_for() {
        let lengths = BEGINNINGS.map(|length| length.to_string()).join(" ");
        for sql in DIALECT.create {
            assert!(sql.contains(&format!("prefix='{lengths}'")), "{sql}");
        }
    }

    /// Whatever is asked, in pages of whatever size, it is what reading everything finds.
    #[test]
    fn walks_find_what_reading_everything_finds() {
        proptest!(ProptestConfig::with_cases(24), |(
            texts in proptest::collection::vec("[ab]{1,9}( [ab]{1,3}){0,6}|東京に( 京){0,2}|", 1..150),
            asked in proptest::collection::vec(
                "(-?[ab]{1,3} |[ab]{3,9}\\* |-?\"[ab]{1,3} [ab]{1,3}\" |-?東京 |京 ){1,4}", 20),
            limit in 1_usize..40,
        )| {
            let posts = Posts::new(texts);
            for words in asked {
                prop_assert_eq!(posts.all(&words, limit).0, posts.naive(&words), "{}", words);
            }
        });
    }

    /// Questions that would be looked for in all that there is end at a bound, and can be gone on with.
    #[test]
    fn walks_stop_where_nothing_is_found() {
        let says = |number: usize| match number {
            7 => "both even and odd here".to_owned(),
            _ if number.is_multiple_of(2) => "here is even and beginning".to_owned(),
            _ => "here is odd and begins".to_owned(),
        };
        let posts = Posts::new((1..=60_000).map(says).collect());
        for words in [
            "even odd",
            "here -and",
            "\"and here\"",
            "\"even odd\"",
            "beginnings*",
            "is -her* odd even",
        ] {
            let walked = posts.walked(words, i64::MAX, 50);
            assert_eq!(walked.keys, [0_i64; 0], "{words}");
            assert!(
                walked.down_to.is_some_and(|down_to| down_to > 1_000),
                "{words}: {walked:?}"
            );
        }
        let (found, pages) = posts.all("even odd", 50);
        assert_eq!((found, pages > 1), (vec![7], true));
        // The first page of what is everywhere, and what is nearly nowhere, need one page.
        assert_eq!(posts.walked("here and", i64::MAX, 50).keys.len(), 50);
        assert_eq!(posts.all("both odd here", 50), (vec![7], 1));
        assert_eq!(posts.all("\"both even\"", 50), (vec![7], 1));
        assert_eq!(posts.all("nowhere even", 50), (vec![], 1));
    }
}
