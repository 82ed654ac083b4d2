//! Reading what a crawl has before it.

use super::read::identity;
use crate::StoreError;
use crate::cell::{Row, cells};
use crate::database::Database;
use crate::outlook::{
    Outlook, OutlookQuestion, PostsOutlook, PostsQuestion, Prospect, ProspectVisit, ProspectWalk,
};
use kittiwake_model::{ColumnKind, Key, List, Name, Table, WorldTime};
use std::collections::HashMap;

/// Subjects that are read at once.
const STRETCH: usize = 1_000;
/// Posts and relations are counted up to this many.
const COUNTED_MAX: i64 = 2_000_000;
/// Seeds whose names are told.
const NAMED_MAX: usize = 20_000;

pub(crate) fn outlook(
    database: &dyn Database,
    question: &OutlookQuestion,
) -> Result<Outlook, StoreError> {
    let mut outlook = Outlook::default();
    database.each(
        "SELECT depth, count(*) FROM subjects GROUP BY depth",
        &[],
        |row| {
            outlook.depths.insert(row.get(0)?, number(row, 1)?);
            Ok(())
        },
    )?;
    outlook.prospects = prospects(database, question)?;
    for (query, list) in &question.lists {
        outlook.leading_out += leading_out(database, question, query, *list)?;
    }
    for posts in &question.posts {
        let told = posts_of(database, posts, question.depth_max)?;
        outlook.posts.push(told);
    }
    Ok(outlook)
}

fn number(row: &dyn Row, place: usize) -> Result<u64, StoreError> {
    Ok(u64::try_from(row.get::<i64>(place)?).unwrap_or_default())
}

fn name(row: &dyn Row, place: usize) -> Result<Name, StoreError> {
    Ok(Name::from(row.get::<String>(place)?))
}

/// Subjects within reach, stretch by stretch in the order of their keys.
fn prospects(
    database: &dyn Database,
    question: &OutlookQuestion,
) -> Result<Vec<Prospect>, StoreError> {
    let mut prospects: Vec<Prospect> = Vec::new();
    let mut after = i64::MIN;
    let mut named = 0;
    loop {
        let limit = STRETCH.min(question.prospects_max.saturating_sub(prospects.len()));
        let mut stretch = stretch(database, question.depth_max, after, limit)?;
        let Some(last) = stretch.last() else {
            return Ok(prospects);
        };
        let span = (after, last.subject.0);
        after = last.subject.0;
        let places: HashMap<i64, usize> = stretch
            .iter()
            .enumerate()
            .map(|(place, prospect)| (prospect.subject.0, place))
            .collect();
        read_visits(database, question.depth_max, span, |subject, visit| {
            if let Some(place) = places.get(&subject) {
                stretch[*place].visits.push(visit);
            }
        })?;
        read_walks(database, question.depth_max, span, |subject, walk| {
            if let Some(place) = places.get(&subject) {
                stretch[*place].walks.push(walk);
            }
        })?;
        for seed in stretch.iter_mut().filter(|prospect| prospect.depth == 0) {
            if named < NAMED_MAX {
                seed.identity = identity(database, seed.subject)?;
                named += 1;
            }
        }
        prospects.extend(stretch);
    }
}

fn stretch(
    database: &dyn Database,
    depth_max: u32,
    after: i64,
    limit: usize,
) -> Result<Vec<Prospect>, StoreError> {
    let sql = "SELECT s.key, s.depth,
                      coalesce((SELECT i.type FROM ids AS i WHERE i.key = s.key LIMIT 1), ''),
                      u.following_count, u.followers_count, u.statuses_count, u.created_us,
                      coalesce(u.opted_out, 0) <> 0,
                      EXISTS (SELECT 1 FROM invalid_users AS v
                              WHERE v.key = s.key AND v.until_us IS NULL)
               FROM subjects AS s LEFT JOIN users AS u ON u.key = s.key
               WHERE s.key > ?1 AND s.depth <= ?2 ORDER BY s.key LIMIT ?3";
    let cells = cells![after, i64::from(depth_max), limit as i64];
    database.all(sql, cells, |row| {
        let count = |place| -> Result<Option<u64>, StoreError> {
            let known = row.get::<Option<i64>>(place)?;
            Ok(known.map(|known| u64::try_from(known).unwrap_or_default()))
        };
        Ok(Prospect {
            subject: Key(row.get(0)?),
            depth: row.get(1)?,
            kind: name(row, 2)?,
            identity: None,
            following: count(3)?,
            followers: count(4)?,
            posts: count(5)?,
            created: row.get::<Option<i64>>(6)?.map(WorldTime),
            opted_out: row.get(7)?,
            is_invalid: row.get(8)?,
            visits: Vec::new(),
            walks: Vec::new(),
        })
    })
}

fn read_visits(
    database: &dyn Database,
    depth_max: u32,
    (after, last): (i64, i64),
    mut each: impl FnMut(i64, ProspectVisit),
) -> Result<(), StoreError> {
    let sql = "SELECT f.subject, f.robot, f.visits, f.visited_us, f.due_us
               FROM subjects AS s JOIN frontier AS f ON f.subject = s.key
               WHERE s.key > ?1 AND s.key <= ?2 AND s.depth <= ?3";
    database.each(sql, cells![after, last, i64::from(depth_max)], |row| {
        let visit = ProspectVisit {
            robot: name(row, 1)?,
            visits: row.get(2)?,
            visited: row.get::<Option<i64>>(3)?.map(WorldTime),
            due: WorldTime(row.get(4)?),
        };
        each(row.get(0)?, visit);
        Ok(())
    })
}

fn read_walks(
    database: &dyn Database,
    depth_max: u32,
    (after, last): (i64, i64),
    mut each: impl FnMut(i64, ProspectWalk),
) -> Result<(), StoreError> {
    let sql = "SELECT c.subject, c.query, c.walk, c.digest, c.pages, c.items,
                      c.next IS NULL, c.mark IS NOT NULL
               FROM subjects AS s JOIN cursors AS c ON c.subject = s.key
               WHERE s.key > ?1 AND s.key <= ?2 AND s.depth <= ?3";
    database.each(sql, cells![after, last, i64::from(depth_max)], |row| {
        let walk = ProspectWalk {
            query: name(row, 1)?,
            walk: row.get(2)?,
            digest: name(row, 3)?,
            pages: row.get(4)?,
            items: row.get(5)?,
            is_complete: row.get(6)?,
            has_mark: row.get(7)?,
        };
        each(row.get(0)?, walk);
        Ok(())
    })
}

/// Relations on the lists that a query has walked, of people none of whose lists were walked.
/// Whoever is within reach was found by somebody nearer.
fn leading_out(
    database: &dyn Database,
    question: &OutlookQuestion,
    query: &str,
    list: List,
) -> Result<u64, StoreError> {
    let (near, far) = match list {
        List::Following => ("source", "target"),
        List::Followers => ("target", "source"),
    };
    // Two places, whether there are two lists or one.
    let first = question.lists.first().map_or(query, |(query, _)| query);
    let second = question.lists.last().map_or(query, |(query, _)| query);
    let sql = format!(
        "SELECT count(*) FROM (
           SELECT 1 FROM subjects AS s
             JOIN cursors AS c ON c.subject = s.key AND c.query = ?1
             JOIN user_relations AS r ON r.{near} = s.key
           WHERE s.depth < ?2 AND NOT EXISTS (
             SELECT 1 FROM cursors AS w WHERE w.subject = r.{far} AND w.query IN (?3, ?4))
           LIMIT ?5) AS counted"
    );
    let depth_max = i64::from(question.depth_max);
    let cells = cells![query, depth_max, first, second, COUNTED_MAX];
    database.only(&*sql, cells, |row| number(row, 0))
}

/// The known posts of those within reach who did not opt out.
fn posts_of(
    database: &dyn Database,
    question: &PostsQuestion,
    depth_max: u32,
) -> Result<PostsOutlook, StoreError> {
    let column = |name: &str| {
        let column = Table::Statuses.column(name);
        column.filter(|column| column.kind == ColumnKind::Integer)
    };
    // A column that the table does not have tells nothing.
    let asked = question
        .unless_zero
        .as_deref()
        .and_then(column)
        .map_or_else(
            || "1".to_owned(),
            |column| format!("CASE WHEN p.{} = 0 THEN 0 ELSE 1 END", column.name),
        );
    let pages = question
        .pages
        .as_ref()
        .and_then(|(name, size)| Some((column(name)?, (*size).max(1))))
        .map_or_else(
            || "1".to_owned(),
            |(column, size)| format!("1 + coalesce(p.{}, 0) / {size}", column.name),
        );
    let unfiled = if question.begins_visited { "0" } else { "1" };
    let sql = format!(
        "SELECT count(*), count(DISTINCT author), CAST(coalesce(sum(asked), 0) AS BIGINT),
                CAST(coalesce(sum(asked * due), 0) AS BIGINT),
                CAST(coalesce(sum(asked * due * pages), 0) AS BIGINT)
         FROM (SELECT p.author AS author, {asked} AS asked, {pages} AS pages,
                      CASE WHEN CAST(?2 AS BIGINT) IS NULL THEN 1
                           WHEN f.subject IS NULL THEN {unfiled}
                           WHEN f.visited_us IS NULL OR f.visited_us < ?2 THEN 1
                           ELSE 0 END AS due
               FROM statuses AS p
                 JOIN subjects AS s ON s.key = p.author
                 LEFT JOIN users AS u ON u.key = p.author
                 LEFT JOIN frontier AS f ON f.subject = p.key AND f.robot = ?1
               WHERE s.depth <= ?3 AND coalesce(u.opted_out, 0) = 0 AND p.deleted_us IS NULL
               LIMIT ?4) AS known"
    );
    let since = question.not_visited_since.map(|since| since.0);
    let cells = cells![&*question.robot, since, i64::from(depth_max), COUNTED_MAX];
    database.only(&*sql, cells, |row| {
        Ok(PostsOutlook {
            robot: question.robot.clone(),
            posts: number(row, 0)?,
            authors: number(row, 1)?,
            asked: number(row, 2)?,
            due: number(row, 3)?,
            due_pages: number(row, 4)?,
        })
    })
}
