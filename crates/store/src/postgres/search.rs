//! The index of a crawl on a server: tables of the crawl's schema that begin with `search_`.

use super::database::PostgresDatabase;
use super::session::{PATIENCE, Session};
use super::{check_encoding, migrate, parse, schema, shown};
use crate::database::{Database, Sql};
use crate::index::{Asks, IndexKeeper, IndexReader, Look, Sources, Words, WordsDialect};
use crate::rules::browse::indexing::STATE_TABLES;
use crate::words::tsearch;
use crate::{OpenMode, StoreError, StoreErrorKind};
use std::time::Duration;

/// What a browser asks of the server: plans for the words that are asked for, and no question without
/// end.
const MANNERS: &str = "SET enable_seqscan = off; SET plan_cache_mode = force_custom_plan; \
                       SET statement_timeout = '20s'";
/// How long somebody who looks waits for a server that went away.
const BROWSER_PATIENCE: Duration = Duration::from_secs(5);

const DIALECT: WordsDialect = WordsDialect {
    version: "1",
    create: &[
        "CREATE TABLE IF NOT EXISTS search_users(key BIGINT PRIMARY KEY, words tsvector NOT NULL)",
        "CREATE TABLE IF NOT EXISTS search_posts(key BIGINT PRIMARY KEY, words tsvector NOT NULL)",
        "CREATE INDEX IF NOT EXISTS search_users_by_words ON search_users USING gin (words)",
        "CREATE INDEX IF NOT EXISTS search_posts_by_words ON search_posts USING gin (words)",
    ],
    put: |list| match list {
        Words::Users => {
            "INSERT INTO search_users(key, words) VALUES (?1, CAST(?2 AS tsvector))
             ON CONFLICT (key) DO UPDATE SET words = excluded.words"
        }
        Words::Posts => {
            "INSERT INTO search_posts(key, words) VALUES (?1, CAST(?2 AS tsvector))
             ON CONFLICT (key) DO UPDATE SET words = excluded.words"
        }
    },
    remove: |list| match list {
        Words::Users => "DELETE FROM search_users WHERE key = ?1",
        Words::Posts => "DELETE FROM search_posts WHERE key = ?1",
    },
    find: |list| match list {
        Words::Users => {
            "SELECT key FROM search_users WHERE words @@ CAST(?1 AS tsquery) AND key < ?2
             ORDER BY key DESC LIMIT ?3"
        }
        Words::Posts => {
            "SELECT key FROM search_posts WHERE words @@ CAST(?1 AS tsquery) AND key < ?2
             ORDER BY key DESC LIMIT ?3"
        }
    },
    asks: Asks::Question(tsearch::query),
    words: tsearch::words,
};

fn open(
    url: &str,
    patience: Duration,
    manners: &'static str,
) -> Result<PostgresDatabase, StoreError> {
    let address = parse(url)?;
    let place = shown(&address);
    let opened = || {
        let session = Session::open(address, patience)?;
        check_encoding(&session)?;
        migrate::check_version(migrate::version_of(&session)?, OpenMode::Read)?;
        PostgresDatabase::with_manners(session, manners)
    };
    opened().map_err(|error| error.context(&place))
}

/// See [`crate::Location::with_sources`].
pub(crate) fn with_sources(
    url: &str,
    work: &mut dyn FnMut(&Sources<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let database = open(url, BROWSER_PATIENCE, MANNERS)?;
    work(&Sources {
        crawl: &database,
        index: &database,
        is_current: &|| true,
    })
}

/// Whether all tables of the index are there.
const HAS_INDEX: &str = "SELECT CASE WHEN to_regclass('search_state') IS NULL
     OR to_regclass('search_people') IS NULL OR to_regclass('search_users') IS NULL
     OR to_regclass('search_posts') IS NULL THEN CAST(0 AS BIGINT) ELSE CAST(1 AS BIGINT) END";

impl IndexReader for PostgresDatabase {
    fn look(&self, look: &mut Look<'_>) -> Result<(), StoreError> {
        let database: &dyn Database = self;
        let has_index: bool = database.only(HAS_INDEX, &[], |row| row.get(0))?;
        if !has_index {
            return Ok(());
        }
        look(database, &DIALECT)
    }
}

/// See [`crate::Location::with_index_keeper`].
pub(crate) fn with_index_keeper(
    url: &str,
    work: &mut dyn FnMut(&dyn IndexKeeper) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let database = open(url, PATIENCE, "SET enable_seqscan = off")?;
    for sql in STATE_TABLES.iter().chain(DIALECT.create) {
        make(&database, sql)?;
    }
    work(&Keeper { database })
}

/// Two who make a table at once may both find it missing.
fn make(database: &PostgresDatabase, sql: &str) -> Result<(), StoreError> {
    let sql = schema::in_byte_order(sql);
    let made = database.session().batch(&sql);
    made.or_else(|_| database.session().batch(&sql))
}

#[derive(Debug)]
struct Keeper {
    database: PostgresDatabase,
}

impl IndexKeeper for Keeper {
    fn crawl(&self) -> &dyn Database {
        &self.database
    }

    fn index(&self) -> &dyn Database {
        &self.database
    }

    fn dialect(&self) -> &WordsDialect {
        &DIALECT
    }

    fn begin(&self) -> Result<(), StoreError> {
        if self.database.session().is_lost() {
            return Err(StoreError::new(
                StoreErrorKind::Unreachable,
                "the connection to the server was lost",
            ));
        }
        self.database
            .session()
            .batch("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
        // Taken before the first look, so that whoever waited sees what the other has written.
        let locked = self
            .database
            .session()
            .batch("LOCK TABLE search_state IN EXCLUSIVE MODE");
        if locked.is_err() {
            self.roll_back();
        }
        locked
    }

    fn commit(&self) -> Result<(), StoreError> {
        self.database.session().settle()?;
        self.database.session().batch("COMMIT")
    }

    fn roll_back(&self) {
        let _ = self.database.session().settle();
        if let Err(error) = self.database.session().batch("ROLLBACK") {
            tracing::debug!(%error, "a step of the index had ended already");
        }
    }

    fn clear(&self) -> Result<(), StoreError> {
        let sql = "TRUNCATE search_state, search_people, search_users, search_posts";
        self.database.execute(Sql::Text(sql), &[]).map(drop)
    }
}
