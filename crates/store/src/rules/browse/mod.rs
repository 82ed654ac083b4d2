//! Reading a crawl for people ([`crate::browse`]): by an index, or within a bound.

pub(crate) mod crawl;
pub(crate) mod feed;
pub(crate) mod figures;
pub(crate) mod find;
pub(crate) mod graph;
pub(crate) mod history;
pub(crate) mod indexing;
pub(crate) mod lists;
pub(crate) mod object;
mod rows;
pub(crate) mod walk;

pub(crate) use rows::{labels, post_rows, user_rows};

/// What is read of a text that lists show the beginning of.
const EXCERPT_CHARS: &str = "1001";

/// The first of so many rows that was not asked for shows that there are more.
fn split_page<T>(mut rows: Vec<T>, limit: usize) -> (Vec<T>, bool) {
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    (rows, has_more)
}

fn one_more(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}
