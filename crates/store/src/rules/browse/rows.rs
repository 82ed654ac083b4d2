//! Rows of many objects at once, as lists show them.

use super::EXCERPT_CHARS;
use crate::StoreError;
use crate::browse::{EXCERPT_BYTES_MAX, Excerpt, Label, PostRow, UserRow};
use crate::cell::{Cell, Row};
use crate::database::Database;
use crate::rules::names::{best_first, id_text};
use kittiwake_model::{Key, Table, WorldTime};
use std::collections::{BTreeSet, HashMap};

/// Sizes that lists of keys are filled up to, so that there are few different statements.
const LIST_SIZES: [usize; 4] = [1, 8, 64, 256];

/// Runs a statement with `{keys}` in it over all keys, as many at a time as fit; gives every row to
/// `each`.
pub(super) fn each_of(
    database: &dyn Database,
    sql: &str,
    keys: &BTreeSet<i64>,
    mut each: impl FnMut(&dyn Row) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let keys: Vec<i64> = keys.iter().copied().collect();
    for part in keys.chunks(LIST_SIZES[LIST_SIZES.len() - 1]) {
        let (sql, cells) = with_keys(sql, part);
        database.each(&*sql, &cells, &mut each)?;
    }
    Ok(())
}

/// The statement with places for the keys, and the keys; what is left over repeats the last one.
pub(super) fn with_keys(sql: &str, keys: &[i64]) -> (String, Vec<Cell<'static>>) {
    let size = LIST_SIZES.into_iter().find(|size| *size >= keys.len());
    let size = size.unwrap_or(keys.len());
    let places: Vec<String> = (1..=size).map(|place| format!("?{place}")).collect();
    let last = keys.last().copied().unwrap_or(i64::MIN);
    let keys = keys.iter().copied().chain(std::iter::repeat(last));
    let cells = keys.take(size).map(Cell::from).collect();
    (sql.replace("{keys}", &places.join(", ")), cells)
}

pub(super) fn excerpt(row: &dyn Row, place: usize) -> Result<Option<Excerpt>, StoreError> {
    let text: Option<String> = row.get(place)?;
    Ok(text.map(|text| Excerpt::of(text, EXCERPT_BYTES_MAX)))
}

/// A short text that has to be there.
pub(super) fn short(row: &dyn Row, place: usize) -> Result<Excerpt, StoreError> {
    Ok(Excerpt::of(row.get(place)?, EXCERPT_BYTES_MAX))
}

pub(super) fn time(row: &dyn Row, place: usize) -> Result<Option<WorldTime>, StoreError> {
    Ok(row.get::<Option<i64>>(place)?.map(WorldTime))
}

pub(super) fn flag(row: &dyn Row, place: usize) -> Result<bool, StoreError> {
    Ok(row.get::<Option<bool>>(place)?.unwrap_or_default())
}

/// The beginning of a column, as SQL.
pub(super) fn cut(column: &str) -> String {
    format!("substr({column}, 1, {EXCERPT_CHARS})")
}

const BEST_IDS: &str = concat!(
    "SELECT key, network, type, alias, host, id, movable FROM ids WHERE key IN ({keys})
     ORDER BY key, ",
    best_first!()
);

/// How these objects are called; those that have no id are left out.
pub(crate) fn labels(
    database: &dyn Database,
    keys: &BTreeSet<i64>,
) -> Result<HashMap<i64, Label>, StoreError> {
    let mut labels: HashMap<i64, Label> = HashMap::with_capacity(keys.len());
    each_of(database, BEST_IDS, keys, |row| {
        let key: i64 = row.get(0)?;
        // The best id comes first.
        if labels.contains_key(&key) {
            return Ok(());
        }
        let label = Label {
            key: Key(key),
            network: row.get(1)?,
            kind: row.get(2)?,
            id: id_text(row, 3)?,
            name: None,
            display_name: None,
        };
        labels.insert(key, label);
        Ok(())
    })?;
    let users = format!(
        "SELECT key, {}, {} FROM users WHERE key IN ({{keys}})",
        cut("handle"),
        cut("display_name")
    );
    each_of(database, &users, keys, |row| {
        if let Some(label) = labels.get_mut(&row.get(0)?) {
            label.name = excerpt(row, 1)?.map(|handle| handle.text);
            label.display_name = excerpt(row, 2)?;
        }
        Ok(())
    })?;
    let nameless: BTreeSet<i64> = labels
        .iter()
        .filter(|(_, label)| label.kind == "tag")
        .map(|(key, _)| *key)
        .collect();
    let tags = format!(
        "SELECT key, {} FROM tags WHERE key IN ({{keys}})",
        cut("name")
    );
    each_of(database, &tags, &nameless, |row| {
        if let Some(label) = labels.get_mut(&row.get(0)?) {
            label.name = excerpt(row, 1)?.map(|name| name.text);
        }
        Ok(())
    })?;
    Ok(labels)
}

/// Users as lists show them, also those of whom only a name is known.
pub(crate) fn user_rows(database: &dyn Database, keys: &[i64]) -> Result<Vec<UserRow>, StoreError> {
    let wanted: BTreeSet<i64> = keys.iter().copied().collect();
    let labels = labels(database, &wanted)?;
    let mut rows: HashMap<i64, UserRow> = labels
        .into_iter()
        .map(|(key, label)| (key, named_only(label)))
        .collect();
    let sql = format!(
        "SELECT key, {}, {}, {}, followers_count, following_count, statuses_count, created_us,
                last_posted_us, is_bot, is_protected, opted_out, extra
         FROM users WHERE key IN ({{keys}})",
        cut("description"),
        cut("url"),
        cut("avatar_url")
    );
    each_of(database, &sql, &wanted, |row| {
        let Some(user) = rows.get_mut(&row.get(0)?) else {
            return Ok(());
        };
        user.is_described = true;
        user.description = excerpt(row, 1)?;
        user.url = whole(row, 2)?;
        user.avatar_url = whole(row, 3)?;
        (user.followers, user.following, user.posts) = (row.get(4)?, row.get(5)?, row.get(6)?);
        (user.created, user.last_posted) = (time(row, 7)?, time(row, 8)?);
        user.is_bot = flag(row, 9)?;
        user.is_protected = flag(row, 10)?;
        user.opted_out = flag(row, 11)?;
        user.class = class_in(row.get::<Option<String>>(12)?.as_deref());
        Ok(())
    })?;
    let spells = "SELECT key, from_us, reason FROM invalid_users
                  WHERE key IN ({keys}) AND until_us IS NULL";
    each_of(database, spells, &wanted, |row| {
        if let Some(user) = rows.get_mut(&row.get(0)?) {
            user.gone = Some((WorldTime(row.get(1)?), row.get(2)?));
        }
        Ok(())
    })?;
    Ok(keys.iter().filter_map(|key| rows.remove(key)).collect())
}

/// An address that was cut is none.
fn whole(row: &dyn Row, place: usize) -> Result<Option<String>, StoreError> {
    let text = excerpt(row, place)?;
    Ok(text.filter(|text| !text.is_cut).map(|text| text.text))
}

/// The class that the crawl has found, among the other fields of a user.
pub(super) fn class_in(extra: Option<&str>) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Extra {
        class: Option<String>,
    }
    // Nearly nobody has one, and reading JSON takes longer than looking for the word.
    let extra = extra.filter(|extra| extra.contains("\"class\""))?;
    serde_json::from_str::<Extra>(extra).ok()?.class
}

const fn named_only(label: Label) -> UserRow {
    UserRow {
        label,
        is_described: false,
        description: None,
        url: None,
        avatar_url: None,
        followers: None,
        following: None,
        posts: None,
        created: None,
        last_posted: None,
        is_bot: false,
        is_protected: false,
        opted_out: false,
        gone: None,
        class: None,
    }
}

/// What a row of a post or a comment holds before its author has a name.
struct Written {
    author: Option<i64>,
    row: PostRow,
}

/// Posts and comments as lists show them, in the order of the keys; those that are not there are left
/// out.
pub(crate) fn post_rows(database: &dyn Database, keys: &[i64]) -> Result<Vec<PostRow>, StoreError> {
    let wanted: BTreeSet<i64> = keys.iter().copied().collect();
    let mut known = labels(database, &wanted)?;
    let mut rows: HashMap<i64, Written> = HashMap::with_capacity(keys.len());
    let statuses = format!(
        "SELECT key, author, created_us, {}, {}, is_sensitive, {}, {}, reply_to, repost_of, quote_of,
                replies_count, reposts_count, likes_count, deleted_us
         FROM statuses WHERE key IN ({{keys}})",
        cut("text"),
        cut("content_warning"),
        cut("language"),
        cut("url")
    );
    each_of(database, &statuses, &wanted, |row| {
        let key: i64 = row.get(0)?;
        if let Some(label) = known.remove(&key) {
            rows.insert(key, status(row, label)?);
        }
        Ok(())
    })?;
    let left: BTreeSet<i64> = known.keys().copied().collect();
    let comments = format!(
        "SELECT key, author, created_us, {}, parent FROM comments WHERE key IN ({{keys}})",
        cut("text")
    );
    each_of(database, &comments, &left, |row| {
        let key: i64 = row.get(0)?;
        if let Some(label) = known.remove(&key) {
            rows.insert(key, comment(row, label)?);
        }
        Ok(())
    })?;
    let authors = rows.values().filter_map(|written| written.author);
    let authors = labels(database, &authors.collect())?;
    let rows = keys.iter().filter_map(|key| {
        let mut written = rows.remove(key)?;
        let author = written.author.and_then(|author| authors.get(&author));
        written.row.author = author.cloned();
        Some(written.row)
    });
    Ok(rows.collect())
}

fn key_at(row: &dyn Row, place: usize) -> Result<Option<Key>, StoreError> {
    Ok(row.get::<Option<i64>>(place)?.map(Key))
}

fn status(row: &dyn Row, label: Label) -> Result<Written, StoreError> {
    Ok(Written {
        author: row.get(1)?,
        row: PostRow {
            label,
            table: Table::Statuses,
            author: None,
            created: time(row, 2)?,
            text: excerpt(row, 3)?,
            content_warning: excerpt(row, 4)?,
            is_sensitive: flag(row, 5)?,
            language: whole(row, 6)?,
            url: whole(row, 7)?,
            reply_to: key_at(row, 8)?,
            repost_of: key_at(row, 9)?,
            quote_of: key_at(row, 10)?,
            replies: row.get(11)?,
            reposts: row.get(12)?,
            likes: row.get(13)?,
            deleted: time(row, 14)?,
        },
    })
}

fn comment(row: &dyn Row, label: Label) -> Result<Written, StoreError> {
    Ok(Written {
        author: row.get(1)?,
        row: PostRow {
            label,
            table: Table::Comments,
            author: None,
            created: time(row, 2)?,
            text: excerpt(row, 3)?,
            content_warning: None,
            is_sensitive: false,
            language: None,
            url: None,
            reply_to: key_at(row, 4)?,
            repost_of: None,
            quote_of: None,
            replies: None,
            reposts: None,
            likes: None,
            deleted: None,
        },
    })
}
