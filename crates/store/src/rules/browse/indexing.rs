//! Keeping the index: first everything that is there, in the order of keys, then whatever calls bring.
//!
//! Every step is one transaction that also notes how far the index has come, so that it goes on from
//! there whatever happens in between. Objects beyond the last key that was read are found by reading on,
//! objects before it by the feed: together nothing is missed, also what was imported.

use super::crawl::newest_call;
use super::feed::{bare_feed, newest_event};
use super::rows::each_of;
use crate::StoreError;
use crate::browse::{EventId, Indexed};
use crate::cell::{Row, cells};
use crate::database::Database;
use crate::index::{IndexKeeper, Words, WordsDialect};
use crate::words::{Query, Tokens};
use kittiwake_model::Table;
use std::collections::{BTreeMap, BTreeSet};

/// Rows that one step reads.
const STEP_ROWS: i64 = 1_000;
/// Events that one step reads.
const STEP_EVENTS: usize = 1_000;

/// The tables whose rows have words.
const TABLES: [Table; 3] = [Table::Users, Table::Statuses, Table::Comments];

/// The tables of the index that every back end has.
pub(crate) const STATE_TABLES: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS search_state(name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS search_people(key BIGINT PRIMARY KEY, followers BIGINT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS search_people_by_followers ON search_people(followers, key)",
];

/// How far the index has come.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    version: String,
    /// Which crawl it is of.
    crawl: String,
    /// The last key of each table that was read.
    read: BTreeMap<Table, i64>,
    feed: EventId,
    /// When the call was committed up to which the feed was read: a crawl that was taken back to an
    /// earlier state, and went another way, has another.
    feed_us: i64,
    is_filled: bool,
}

impl State {
    fn new(version: &str, crawl: String, feed: EventId, feed_us: i64) -> Self {
        Self {
            version: version.to_owned(),
            crawl,
            read: TABLES.iter().map(|table| (*table, 0)).collect(),
            feed,
            feed_us,
            is_filled: false,
        }
    }

    /// `None` if there is none that can be read.
    fn load(index: &dyn Database) -> Result<Option<Self>, StoreError> {
        let mut values: BTreeMap<String, String> = BTreeMap::new();
        index.each("SELECT name, value FROM search_state", &[], |row| {
            values.insert(row.get(0)?, row.get(1)?);
            Ok(())
        })?;
        let mut take = |name: &str| values.remove(name);
        let state = (|| {
            let mut read = BTreeMap::new();
            for table in TABLES {
                read.insert(table, take(table.name())?.parse().ok()?);
            }
            Some(Self {
                version: take("version")?,
                crawl: take("crawl")?,
                read,
                feed: take("feed")?.parse().ok()?,
                feed_us: take("feed_us")?.parse().ok()?,
                is_filled: take("is_filled")? == "1",
            })
        })();
        Ok(state)
    }

    fn save(&self, index: &dyn Database) -> Result<(), StoreError> {
        let is_filled = if self.is_filled { "1" } else { "0" };
        let mut values = vec![
            ("version", self.version.clone()),
            ("crawl", self.crawl.clone()),
            ("feed", self.feed.to_string()),
            ("feed_us", self.feed_us.to_string()),
            ("is_filled", is_filled.to_owned()),
        ];
        values.extend(
            self.read
                .iter()
                .map(|(table, key)| (table.name(), key.to_string())),
        );
        for (name, value) in values {
            let sql = "INSERT INTO search_state(name, value) VALUES (?1, ?2)
                       ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            index.execute(sql.into(), cells![name, value])?;
        }
        Ok(())
    }

    /// Whether it is one of this version and crawl, and not of a later state of it than is there now.
    fn is_of(&self, version: &str, crawl: &dyn Database, ends: &Ends) -> Result<bool, StoreError> {
        let is_behind = self
            .read
            .iter()
            .all(|(table, key)| ends.keys.get(table) >= Some(key));
        Ok(self.version == version
            && is_behind
            && self.crawl == fingerprint(crawl)?
            && self.feed_us == committed_us(crawl, self.feed.log)?)
    }

    /// What there is of this crawl.
    fn known(
        version: &str,
        crawl: &dyn Database,
        index: &dyn Database,
        ends: &Ends,
    ) -> Result<Option<Self>, StoreError> {
        match Self::load(index)? {
            Some(state) if state.is_of(version, crawl, ends)? => Ok(Some(state)),
            _ => Ok(None),
        }
    }
}

/// When a call was committed; 0 if it is not there.
fn committed_us(crawl: &dyn Database, log: i64) -> Result<i64, StoreError> {
    let sql = "SELECT committed_us FROM query_log WHERE id = ?1";
    let found = crawl.first(sql, cells![log], |row| row.get(0))?;
    Ok(found.unwrap_or_default())
}

/// Where the crawl ends at present.
struct Ends {
    keys: BTreeMap<Table, i64>,
    log: i64,
}

impl Ends {
    fn of(crawl: &dyn Database) -> Result<Self, StoreError> {
        let mut keys = BTreeMap::new();
        for table in TABLES {
            let sql = format!("SELECT coalesce(max(key), 0) FROM {}", table.name());
            keys.insert(table, crawl.only(&*sql, &[], |row| row.get(0))?);
        }
        Ok(Self {
            keys,
            log: newest_call(crawl)?,
        })
    }
}

/// What tells one crawl from another.
fn fingerprint(crawl: &dyn Database) -> Result<String, StoreError> {
    let sql = "SELECT started_us, host, network FROM runs ORDER BY id LIMIT 1";
    let first = crawl.first(sql, &[], |row| {
        Ok(format!(
            "{} {} {}",
            row.get::<i64>(0)?,
            row.get::<String>(1)?,
            row.get::<String>(2)?
        ))
    })?;
    Ok(first.unwrap_or_default())
}

/// What a step has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is more to do.
    Busy,
    /// Nothing is left for now.
    Idle,
}

/// Does a little. Nothing is done if it fails.
pub(crate) fn step(keeper: &dyn IndexKeeper) -> Result<Step, StoreError> {
    keeper.begin()?;
    let done = step_inside(keeper).and_then(|done| keeper.commit().map(|()| done));
    if done.is_err() {
        keeper.roll_back();
    }
    done
}

fn step_inside(keeper: &dyn IndexKeeper) -> Result<Step, StoreError> {
    let (crawl, index) = (keeper.crawl(), keeper.index());
    // Whoever else keeps this index waits here.
    index.execute("UPDATE search_state SET value = value".into(), &[])?;
    let ends = Ends::of(crawl)?;
    let version = keeper.dialect().version;
    let mut state = if let Some(state) = State::known(version, crawl, index, &ends)? {
        state
    } else {
        keeper.clear()?;
        let feed = newest_event(crawl)?;
        let feed_us = committed_us(crawl, feed.log)?;
        State::new(version, fingerprint(crawl)?, feed, feed_us)
    };
    let before = state.clone();
    for table in TABLES {
        let read = read_on(keeper, &mut state, table)?;
        if read == STEP_ROWS {
            state.save(index)?;
            return Ok(Step::Busy);
        }
    }
    state.is_filled = true;
    let is_end = follow_feed(keeper, &mut state)?;
    if state != before {
        state.save(index)?;
    }
    Ok(if is_end { Step::Idle } else { Step::Busy })
}

/// The columns of a table that are filed, with the key first.
fn columns(table: Table) -> &'static str {
    match table {
        Table::Users => "key, handle, display_name, description, url, followers_count",
        Table::Statuses => "key, text, content_warning",
        _ => "key, text",
    }
}

/// Files the rows beyond the last key that was read; gives how many there were.
fn read_on(keeper: &dyn IndexKeeper, state: &mut State, table: Table) -> Result<i64, StoreError> {
    let after = state.read.get(&table).copied().unwrap_or_default();
    let sql = format!(
        "SELECT {} FROM {} WHERE key > ?1 ORDER BY key LIMIT ?2",
        columns(table),
        table.name()
    );
    let read = keeper.crawl().all(&*sql, cells![after, STEP_ROWS], |row| {
        Filed::read(table, row)
    })?;
    let rows = i64::try_from(read.len()).unwrap_or(i64::MAX);
    if let Some(last) = read.last() {
        state.read.insert(table, last.key);
    }
    file(keeper, table, read)?;
    Ok(rows)
}

/// Files what calls have brought or changed before the last keys that were read; says whether that was
/// all.
fn follow_feed(keeper: &dyn IndexKeeper, state: &mut State) -> Result<bool, StoreError> {
    let (events, next, is_end) = bare_feed(keeper.crawl(), state.feed, STEP_EVENTS)?;
    if next.log != state.feed.log {
        state.feed_us = committed_us(keeper.crawl(), next.log)?;
    }
    state.feed = next;
    for table in TABLES {
        let last = state.read.get(&table).copied().unwrap_or_default();
        let events = events.iter().filter(|event| event.table == Some(table));
        let mut gone: BTreeSet<i64> = events
            .map(|event| event.key)
            .filter(|key| *key <= last)
            .collect();
        let sql = rows_of(table);
        let (keys, mut read) = (gone.clone(), Vec::new());
        each_of(keeper.crawl(), &sql, &keys, |row| {
            let filed = Filed::read(table, row)?;
            // Lists of keys may name one twice.
            if gone.remove(&filed.key) {
                read.push(filed);
            }
            Ok(())
        })?;
        file(keeper, table, read)?;
        for key in gone {
            remove(keeper, table, key)?;
        }
    }
    Ok(is_end)
}

const fn list_of(table: Table) -> Words {
    match table {
        Table::Users => Words::Users,
        _ => Words::Posts,
    }
}

fn remove(keeper: &dyn IndexKeeper, table: Table, key: i64) -> Result<(), StoreError> {
    let (index, dialect) = (keeper.index(), keeper.dialect());
    index.execute((dialect.remove)(list_of(table)).into(), cells![key])?;
    if table == Table::Users {
        index.execute(
            "DELETE FROM search_people WHERE key = ?1".into(),
            cells![key],
        )?;
    }
    Ok(())
}

/// What is filed of a row.
struct Filed {
    key: i64,
    /// `None` if they are another row's.
    tokens: Option<Tokens>,
    followers: Option<i64>,
}

impl Filed {
    fn read(table: Table, row: &dyn Row) -> Result<Self, StoreError> {
        Ok(Self {
            key: row.get(0)?,
            tokens: tokens_of(table, row)?,
            followers: match table {
                Table::Users => row.get(5)?,
                _ => None,
            },
        })
    }

    fn write(self, keeper: &dyn IndexKeeper, list: Words) -> Result<(), StoreError> {
        let (index, dialect, key) = (keeper.index(), keeper.dialect(), self.key);
        if let Some(followers) = self.followers {
            let sql = "INSERT INTO search_people(key, followers) VALUES (?1, ?2)
                       ON CONFLICT (key) DO UPDATE SET followers = excluded.followers";
            index.execute(sql.into(), cells![key, followers])?;
        }
        let Some(tokens) = self.tokens else {
            return Ok(());
        };
        if tokens.0.is_empty() {
            index.execute((dialect.remove)(list).into(), cells![key])?;
            return Ok(());
        }
        let cells = cells![key, (dialect.words)(&tokens)];
        index.execute((dialect.put)(list).into(), cells)?;
        Ok(())
    }
}

/// Files what was read, the newest first: that is the order in which an index of words is written, or it
/// would put every row by itself.
fn file(keeper: &dyn IndexKeeper, table: Table, mut read: Vec<Filed>) -> Result<(), StoreError> {
    read.sort_unstable_by_key(|filed| std::cmp::Reverse(filed.key));
    for filed in read {
        filed.write(keeper, list_of(table))?;
    }
    Ok(())
}

/// The words of a row, whose columns are [`columns`]; `None` if they are another row's.
fn tokens_of(table: Table, row: &dyn Row) -> Result<Option<Tokens>, StoreError> {
    let mut tokens = Tokens::default();
    let text = |place: usize| row.get::<Option<String>>(place);
    match table {
        Table::Users => {
            for place in 1..=3 {
                if let Some(text) = text(place)? {
                    tokens.add(&text);
                }
            }
            if let Some(handle) = text(1)? {
                tokens.add_handle(&handle);
            }
            if let Some(url) = text(4)? {
                tokens.add_address(&url);
            }
        }
        Table::Statuses => {
            for place in 1..=2 {
                if let Some(text) = text(place)? {
                    tokens.add(&text);
                }
            }
        }
        _ => {
            // The row of an answer that is a post as well says nothing by itself, and the post's words
            // stay.
            let Some(text) = text(1)? else {
                return Ok(None);
            };
            tokens.add(&text);
        }
    }
    Ok(Some(tokens))
}

/// Those of these objects whose words, as the crawl has them now, are what is asked for.
pub(super) fn that_meet(
    crawl: &dyn Database,
    list: Words,
    keys: &BTreeSet<i64>,
    query: &Query,
) -> Result<BTreeSet<i64>, StoreError> {
    let mut met = BTreeSet::new();
    for table in TABLES.into_iter().filter(|table| list_of(*table) == list) {
        let sql = rows_of(table);
        each_of(crawl, &sql, keys, |row| {
            if tokens_of(table, row)?.is_some_and(|tokens| query.is_met_by(&tokens)) {
                met.insert(row.get(0)?);
            }
            Ok(())
        })?;
    }
    Ok(met)
}

/// The statement that gives the [`columns`] of so many rows.
fn rows_of(table: Table) -> String {
    format!(
        "SELECT {} FROM {} WHERE key IN ({{keys}})",
        columns(table),
        table.name()
    )
}

/// How far the index has come, as seen from the crawl.
pub(crate) fn indexed(
    crawl: &dyn Database,
    index: &dyn Database,
    dialect: &WordsDialect,
) -> Result<Indexed, StoreError> {
    let ends = Ends::of(crawl)?;
    let Some(state) = State::known(dialect.version, crawl, index, &ends)? else {
        return Ok(Indexed::default());
    };
    // Keys are given to all tables together, and each table is read from the first to the last.
    let (mut read, mut all) = (0_i64, 0_i64);
    for table in TABLES {
        let end = ends.keys.get(&table).copied().unwrap_or_default();
        all = all.saturating_add(end);
        read = read.saturating_add(state.read.get(&table).copied().unwrap_or_default().min(end));
    }
    let permille = if all == 0 || state.is_filled {
        1_000
    } else {
        read.saturating_mul(1_000) / all
    };
    Ok(Indexed {
        is_filled: state.is_filled,
        permille: u32::try_from(permille).unwrap_or(1_000).min(1_000),
        calls_behind: u64::try_from(ends.log - state.feed.log).unwrap_or_default(),
    })
}
