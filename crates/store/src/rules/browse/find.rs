//! Finding things: by an id, by a handle, by words, by followers.

use super::walk::{Place, Walked, walk};
use super::{labels, one_more, post_rows, split_page, user_rows};
use crate::StoreError;
use crate::browse::{
    Cursor, Hit, Label, Page, SearchIn, SearchQuestion, UserRow, UsersOrder, UsersQuestion, clamped,
};
use crate::cell::cells;
use crate::database::Database;
use crate::hash::id_hash;
use crate::index::{Sources, Words};
use crate::words::{Query, address_word, handle_word};
use std::collections::{BTreeSet, HashMap};

/// Things that are found by a name.
const FOUND_MAX: usize = 10;
/// Kinds of ids that are tried.
const FORMS_MAX: i64 = 300;
/// Ids that are looked at, at either end, to learn what kinds of them there are.
const SEEN_FOR_FORMS: i64 = 500;
/// An id has no more bytes.
const ID_BYTES_MAX: usize = 2_048;

/// Users with the most followers first; those whom the index has.
const MOST_FOLLOWED: &str = "SELECT followers, key FROM search_people
     WHERE (followers, key) < (?1, ?2) ORDER BY followers DESC, key DESC LIMIT ?3";

pub(crate) fn users(
    sources: &Sources<'_>,
    question: &UsersQuestion,
) -> Result<Page<UserRow>, StoreError> {
    const ORDER: &str = "followers";
    let after = question.after.as_deref();
    if question.order == UsersOrder::Newest {
        return super::lists::newest_users(sources.crawl, after, question.limit);
    }
    let limit = clamped(question.limit);
    let [followers, key] = match after {
        Some(after) => Cursor::<2>::read(after, ORDER)?.numbers,
        None => [i64::MAX, i64::MAX],
    };
    let mut found: Vec<[i64; 2]> = Vec::new();
    sources.index.look(&mut |index, _| {
        let cells = cells![followers, key, one_more(limit)];
        found = index.all(MOST_FOLLOWED, cells, |row| Ok([row.get(0)?, row.get(1)?]))?;
        Ok(())
    })?;
    let (found, has_more) = split_page(found, limit);
    let last = found.last().filter(|_| has_more);
    let keys: Vec<i64> = found.iter().map(|[_, key]| *key).collect();
    Ok(Page {
        next: last.map(|last| Cursor::new(*last).to_text(ORDER)),
        rows: user_rows(sources.crawl, &keys)?,
    })
}

pub(crate) fn search(
    sources: &Sources<'_>,
    question: &SearchQuestion,
) -> Result<Page<Hit>, StoreError> {
    const ORDER: &str = "words";
    let limit = clamped(question.limit);
    let before = match &question.after {
        Some(after) => Cursor::<1>::read(after, ORDER)?.numbers[0].max(0),
        None => i64::MAX,
    };
    let query = Query::typed(&question.words);
    let lists: &[Words] = match question.within {
        SearchIn::All => &[Words::Users, Words::Posts],
        SearchIn::Users => &[Words::Users],
        SearchIn::Posts => &[Words::Posts],
    };
    let mut found = found_in(sources, lists, &query, before, limit + 1)?;
    let (keys, has_more) = split_page(std::mem::take(&mut found.keys), limit);
    let last = keys.last().copied().filter(|_| has_more);
    Ok(Page {
        next: last
            .or(found.down_to)
            .map(|next| Cursor::new([next]).to_text(ORDER)),
        rows: hits(sources.crawl, &keys, question.within)?,
    })
}

/// What lists of words have, in one order: as far as all of them were looked through.
fn found_in(
    sources: &Sources<'_>,
    lists: &[Words],
    query: &Query,
    before: i64,
    limit: usize,
) -> Result<Walked, StoreError> {
    let (mut keys, mut down_to) = (BTreeSet::new(), None);
    sources.index.look(&mut |index, dialect| {
        for list in lists {
            let place = Place {
                crawl: sources.crawl,
                index,
                dialect,
                list: *list,
            };
            let walked = walk(place, query, before, limit)?;
            keys.extend(walked.keys);
            down_to = down_to.max(walked.down_to);
        }
        Ok(())
    })?;
    if let Some(down_to) = down_to {
        keys = keys.split_off(&down_to);
    }
    Ok(Walked {
        keys: keys.into_iter().rev().collect(),
        down_to,
    })
}

fn hits(database: &dyn Database, keys: &[i64], within: SearchIn) -> Result<Vec<Hit>, StoreError> {
    let mut hits: HashMap<i64, Hit> = HashMap::with_capacity(keys.len());
    if within != SearchIn::Users {
        for post in post_rows(database, keys)? {
            hits.insert(post.label.key.0, Hit::Post(post));
        }
    }
    let others: Vec<i64> = keys
        .iter()
        .copied()
        .filter(|key| !hits.contains_key(key))
        .collect();
    if within != SearchIn::Posts {
        let users = user_rows(database, &others)?.into_iter();
        for user in users.filter(|user| user.is_described) {
            hits.insert(user.label.key.0, Hit::User(user));
        }
    }
    Ok(keys.iter().filter_map(|key| hits.remove(key)).collect())
}

/// Whatever is called by a name.
pub(crate) fn find(sources: &Sources<'_>, text: &str) -> Result<Vec<Label>, StoreError> {
    let text = text.trim();
    if text.is_empty() || text.len() > ID_BYTES_MAX {
        return Ok(Vec::new());
    }
    let mut keys: Vec<i64> = Vec::new();
    for name in BTreeSet::from([
        text,
        text.trim_start_matches('@'),
        text.trim_start_matches('#'),
    ]) {
        keys.extend(by_id(sources.crawl, name)?);
    }
    let words = handle_word(text).into_iter().chain([address_word(text)]);
    for word in words {
        let query = Query::exactly(word);
        keys.extend(found_in(sources, &[Words::Users], &query, i64::MAX, FOUND_MAX)?.keys);
    }
    let mut known = labels(sources.crawl, &keys.iter().copied().collect())?;
    let found = keys.into_iter().filter_map(|key| known.remove(&key));
    Ok(found.take(FOUND_MAX).collect())
}

/// By one of the ids that the crawl files objects under. The kinds of ids are learnt from those that were
/// met first and last.
fn by_id(database: &dyn Database, id: &str) -> Result<Vec<i64>, StoreError> {
    let forms = "SELECT DISTINCT network, type, alias, host FROM (
                   SELECT * FROM (SELECT network, type, alias, host FROM ids ORDER BY rowid LIMIT ?1)
                     AS oldest
                   UNION ALL
                   SELECT * FROM (SELECT network, type, alias, host FROM ids
                                  ORDER BY rowid DESC LIMIT ?1) AS newest) AS seen
                 ORDER BY host, network, type, alias LIMIT ?2";
    let cells = cells![SEEN_FOR_FORMS, FORMS_MAX];
    let forms: Vec<[String; 4]> = database.all(forms, cells, |row| {
        Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
    })?;
    let mut keys = Vec::new();
    for [network, kind, alias, host] in &forms {
        let hash = id_hash(network, kind, alias, host, id);
        database.find_ids(hash, &mut |row| {
            if row.text(0)? == id {
                keys.push(row.get(6)?);
            }
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        if keys.len() >= FOUND_MAX {
            return Ok(keys);
        }
    }
    // A file's newest ids are not filed yet; there are some tens of thousands at the most.
    let filed = "SELECT value FROM rules WHERE name = 'id_places'";
    let filed: Option<String> = database.first(filed, &[], |row| row.get(0))?;
    if let Some(filed) = filed.and_then(|filed| filed.parse::<i64>().ok()) {
        let sql = "SELECT key FROM ids WHERE rowid > ?1 AND id = ?2 LIMIT 10";
        keys.extend(database.all(sql, cells![filed, id], |row| row.get::<i64>(0))?);
    }
    Ok(keys)
}
