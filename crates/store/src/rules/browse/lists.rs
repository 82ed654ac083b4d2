//! Lists of people, posts, relations and links.

use super::rows::{each_of, excerpt, time};
use super::{labels, one_more, post_rows, split_page, user_rows};
use crate::StoreError;
use crate::browse::{
    CommentsQuestion, Cursor, Excerpt, LinkDirection, LinkRow, LinksQuestion, Page, PostRow,
    PostsQuestion, RelationRow, RelationsList, RelationsQuestion, UserRow, clamped,
};
use crate::cell::{Row, cells};
use crate::database::Database;
use kittiwake_model::WorldTime;
use std::collections::{BTreeSet, HashMap};

/// Users, whoever was met last first.
pub(crate) const NEWEST_USERS: &str =
    "SELECT key FROM users WHERE key < ?1 ORDER BY key DESC LIMIT ?2";

pub(crate) fn newest_users(
    database: &dyn Database,
    after: Option<&str>,
    limit: usize,
) -> Result<Page<UserRow>, StoreError> {
    let limit = clamped(limit);
    let keys = keys_before(database, NEWEST_USERS, after, limit, "newest")?;
    Ok(Page {
        rows: user_rows(database, &keys.rows)?,
        next: keys.next,
    })
}

/// Keys in falling order.
fn keys_before(
    database: &dyn Database,
    sql: &str,
    after: Option<&str>,
    limit: usize,
    order: &str,
) -> Result<Page<i64>, StoreError> {
    let before = match after {
        Some(after) => Cursor::<1>::read(after, order)?.numbers[0],
        None => i64::MAX,
    };
    let keys = database.all(sql, cells![before, one_more(limit)], |row| row.get(0))?;
    Ok(page_of_keys(keys, limit, order))
}

fn page_of_keys(keys: Vec<i64>, limit: usize, order: &str) -> Page<i64> {
    let (rows, has_more) = split_page(keys, limit);
    let last = rows.last().filter(|_| has_more);
    Page {
        next: last.map(|last| Cursor::new([*last]).to_text(order)),
        rows,
    }
}

pub(crate) const NEWEST_POSTS: &str =
    "SELECT key FROM statuses WHERE key < ?1 ORDER BY key DESC LIMIT ?2";
/// Of one author, those that have a time.
pub(crate) const DATED_POSTS: &str = "SELECT created_us, key FROM statuses
     WHERE author = ?1 AND created_us IS NOT NULL AND (created_us, key) < (?2, ?3)
     ORDER BY created_us DESC, key DESC LIMIT ?4";
/// Those that have none come last.
pub(crate) const UNDATED_POSTS: &str = "SELECT CAST(0 AS BIGINT), key FROM statuses
     WHERE author = ?1 AND created_us IS NULL AND key < ?2 ORDER BY key DESC LIMIT ?3";

pub(crate) fn posts(
    database: &dyn Database,
    question: &PostsQuestion,
) -> Result<Page<PostRow>, StoreError> {
    let limit = clamped(question.limit);
    let after = question.after.as_deref();
    let keys = match question.author {
        Some(author) => posts_of(database, author.0, after, limit)?,
        None => keys_before(database, NEWEST_POSTS, after, limit, "posts")?,
    };
    Ok(Page {
        rows: post_rows(database, &keys.rows)?,
        next: keys.next,
    })
}

fn posts_of(
    database: &dyn Database,
    author: i64,
    after: Option<&str>,
    limit: usize,
) -> Result<Page<i64>, StoreError> {
    const ORDER: &str = "by";
    let [undated, created_us, key] = match after {
        Some(after) => Cursor::<3>::read(after, ORDER)?.numbers,
        None => [0, i64::MAX, i64::MAX],
    };
    let read = |row: &dyn Row| -> Result<(i64, i64), StoreError> { Ok((row.get(0)?, row.get(1)?)) };
    let mut found: Vec<[i64; 3]> = Vec::new();
    if undated == 0 {
        let cells = cells![author, created_us, key, one_more(limit)];
        let dated = database.all(DATED_POSTS, cells, read)?;
        found.extend(
            dated
                .into_iter()
                .map(|(created_us, key)| [0, created_us, key]),
        );
    }
    if found.len() <= limit {
        let before = if undated == 0 { i64::MAX } else { key };
        let cells = cells![author, before, one_more(limit)];
        let others = database.all(UNDATED_POSTS, cells, read)?;
        found.extend(others.into_iter().map(|(zero, key)| [1, zero, key]));
    }
    let (found, has_more) = split_page(found, limit);
    let last = found.last().filter(|_| has_more);
    Ok(Page {
        next: last.map(|last| Cursor::new(*last).to_text(ORDER)),
        rows: found.into_iter().map(|[_, _, key]| key).collect(),
    })
}

/// The whole conversation under a post.
pub(crate) const CONVERSATION: &str =
    "SELECT key FROM comments WHERE status = ?1 AND key > ?2 ORDER BY key LIMIT ?3";
/// What answers a post that stands in the middle of one.
pub(crate) const ANSWERS: &str =
    "SELECT key FROM comments WHERE parent = ?1 AND key > ?2 ORDER BY key LIMIT ?3";

pub(crate) fn comments_of(
    database: &dyn Database,
    question: &CommentsQuestion,
) -> Result<Page<PostRow>, StoreError> {
    const ORDERS: [(&str, &str); 2] = [("conversation", CONVERSATION), ("answers", ANSWERS)];
    let limit = clamped(question.limit);
    let mut keys = Page::last(Vec::new());
    for (order, sql) in ORDERS {
        let after = match &question.after {
            // A place in the one list is none in the other.
            Some(after) if !after.starts_with(order) && order == ORDERS[0].0 => continue,
            Some(after) => Cursor::<1>::read(after, order)?.numbers[0],
            None => i64::MIN,
        };
        let cells = cells![question.post.0, after, one_more(limit)];
        let found = database.all(sql, cells, |row| row.get(0))?;
        keys = page_of_keys(found, limit, order);
        if !keys.rows.is_empty() || question.after.is_some() {
            break;
        }
    }
    Ok(Page {
        rows: post_rows(database, &keys.rows)?,
        next: keys.next,
    })
}

/// The other end, and the times, of a user's relations.
pub(crate) const fn relations_sql(list: RelationsList) -> &'static str {
    match list {
        RelationsList::Following => {
            "SELECT target, first_seen_us, last_seen_us, CAST(NULL AS BIGINT) FROM user_relations
             WHERE source = ?1 AND target < ?2 ORDER BY target DESC LIMIT ?3"
        }
        RelationsList::Followers => {
            "SELECT source, first_seen_us, last_seen_us, CAST(NULL AS BIGINT) FROM user_relations
             WHERE target = ?1 AND source < ?2 ORDER BY source DESC LIMIT ?3"
        }
        RelationsList::GoneFollowing => {
            "SELECT target, first_seen_us, last_seen_us, vanished_us FROM invalid_relations
             WHERE source = ?1 AND target < ?2 ORDER BY target DESC LIMIT ?3"
        }
        RelationsList::GoneFollowers => {
            "SELECT source, first_seen_us, last_seen_us, vanished_us FROM invalid_relations
             WHERE target = ?1 AND source < ?2 ORDER BY source DESC LIMIT ?3"
        }
    }
}

pub(crate) fn relations(
    database: &dyn Database,
    question: &RelationsQuestion,
) -> Result<Page<RelationRow>, StoreError> {
    let order = match question.list {
        RelationsList::Following => "following",
        RelationsList::Followers => "followers",
        RelationsList::GoneFollowing => "followed",
        RelationsList::GoneFollowers => "left",
    };
    let limit = clamped(question.limit);
    let before = match &question.after {
        Some(after) => Cursor::<1>::read(after, order)?.numbers[0],
        None => i64::MAX,
    };
    let cells = cells![question.user.0, before, one_more(limit)];
    let mut times: HashMap<i64, [Option<i64>; 3]> = HashMap::new();
    let keys = database.all(relations_sql(question.list), cells, |row| {
        let key: i64 = row.get(0)?;
        times.insert(key, [row.get(1)?, row.get(2)?, row.get(3)?]);
        Ok(key)
    })?;
    let keys = page_of_keys(keys, limit, order);
    let users = user_rows(database, &keys.rows)?.into_iter();
    let rows = users.filter_map(|user| {
        let [first, last, vanished] = times.get(&user.label.key.0).copied()?;
        Some(RelationRow {
            user,
            first_seen: WorldTime(first.unwrap_or_default()),
            last_seen: WorldTime(last.unwrap_or_default()),
            vanished: vanished.map(WorldTime),
        })
    });
    Ok(Page {
        rows: rows.collect(),
        next: keys.next,
    })
}

/// How the links are called that are tags which users gave to themselves.
const USER_TAG: &str = "user_tag";

/// One link as it is read: kind, the other end, times.
struct Found {
    kind: String,
    other: i64,
    at: Option<WorldTime>,
    first_seen: WorldTime,
    last_seen: WorldTime,
}

pub(crate) fn links_sql(direction: LinkDirection, is_one_kind: bool) -> String {
    let (near, far) = match direction {
        LinkDirection::From => ("from_key", "to_key"),
        LinkDirection::To => ("to_key", "from_key"),
    };
    let kinds = if is_one_kind {
        format!("kind = ?2 AND {far} > ?3")
    } else {
        format!("(kind, {far}) > (?2, ?3)")
    };
    format!(
        "SELECT kind, {far}, at_us, first_seen_us, last_seen_us FROM links
         WHERE {near} = ?1 AND {kinds} ORDER BY kind, {far} LIMIT ?4"
    )
}

pub(crate) fn links(
    database: &dyn Database,
    question: &LinksQuestion,
) -> Result<Page<LinkRow>, StoreError> {
    const ORDER: &str = "links";
    let limit = clamped(question.limit);
    let place = match &question.after {
        Some(after) => Cursor::<2>::read(after, ORDER)?,
        None => Cursor::new([0, i64::MIN]),
    };
    let [is_tags, after] = place.numbers;
    let mut found = Vec::new();
    let kind = question.kind.as_deref();
    if is_tags == 0 && kind != Some(USER_TAG) {
        let word = kind.unwrap_or(&place.word);
        let sql = links_sql(question.direction, kind.is_some());
        let cells = cells![question.key.0, word, after, one_more(limit)];
        found = database.all(&*sql, cells, |row| found_link(row, row.get(0)?))?;
    }
    if found.len() <= limit && kind.is_none_or(|kind| kind == USER_TAG) {
        let after = if is_tags == 0 { i64::MIN } else { after };
        let (near, far) = match question.direction {
            LinkDirection::From => ("\"user\"", "tag"),
            LinkDirection::To => ("tag", "\"user\""),
        };
        let sql = format!(
            "SELECT '{USER_TAG}', {far}, CAST(NULL AS BIGINT), first_seen_us, last_seen_us
             FROM user_tags WHERE {near} = ?1 AND {far} > ?2 ORDER BY {far} LIMIT ?3"
        );
        let cells = cells![question.key.0, after, one_more(limit)];
        let tags = database.all(&*sql, cells, |row| found_link(row, USER_TAG.to_owned()))?;
        found.extend(tags);
    }
    let (found, has_more) = split_page(found, limit);
    let last = found.last().filter(|_| has_more);
    let next = last.map(|last| {
        let is_tag = last.kind == USER_TAG;
        let place = Cursor {
            numbers: [i64::from(is_tag), last.other],
            word: if is_tag {
                String::new()
            } else {
                last.kind.clone()
            },
        };
        place.to_text(ORDER)
    });
    Ok(Page {
        rows: link_rows(database, found)?,
        next,
    })
}

fn found_link(row: &dyn Row, kind: String) -> Result<Found, StoreError> {
    Ok(Found {
        kind,
        other: row.get(1)?,
        at: time(row, 2)?,
        first_seen: WorldTime(row.get(3)?),
        last_seen: WorldTime(row.get(4)?),
    })
}

fn link_rows(database: &dyn Database, found: Vec<Found>) -> Result<Vec<LinkRow>, StoreError> {
    let others: BTreeSet<i64> = found.iter().map(|link| link.other).collect();
    let labels = labels(database, &others)?;
    let texts = texts(database, &others)?;
    let rows = found.into_iter().filter_map(|link| {
        Some(LinkRow {
            kind: link.kind,
            other: labels.get(&link.other)?.clone(),
            text: texts.get(&link.other).cloned(),
            at: link.at,
            first_seen: link.first_seen,
            last_seen: link.last_seen,
        })
    });
    Ok(rows.collect())
}

/// The beginnings of what posts and comments say.
fn texts(
    database: &dyn Database,
    keys: &BTreeSet<i64>,
) -> Result<HashMap<i64, Excerpt>, StoreError> {
    let mut texts = HashMap::new();
    for table in ["comments", "statuses"] {
        let sql = format!(
            "SELECT key, substr(text, 1, {}) FROM {table} WHERE key IN ({{keys}})",
            super::EXCERPT_CHARS
        );
        each_of(database, &sql, keys, |row| {
            if let Some(text) = excerpt(row, 1)? {
                texts.insert(row.get(0)?, text);
            }
            Ok(())
        })?;
    }
    Ok(texts)
}
