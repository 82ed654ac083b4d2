//! What a transaction knows without asking the server: rows that were fetched ahead, all at once, and
//! what cannot be there because it is about objects that nobody had met before.
//!
//! Nobody else writes while a crawl holds its lock, so what was fetched stays true until this
//! transaction itself writes to it. Every statement passes by here on its way to the server
//! ([`Ahead::written`]); one that is not known well forgets everything about its table.

use crate::StoreError;
use crate::cell::{Cell, Row};
use crate::database::Sql;
use crate::rules::links::{INSERT_LINK, WIDEN_LINK};
use crate::rules::statements::Held;
use kittiwake_model::Table;
use std::collections::{HashMap, HashSet};

/// The answer to a question, known here.
#[derive(Debug)]
pub(super) enum Known<'a> {
    /// No row.
    Nothing,
    /// One row of one number.
    Number(i64),
    /// A row as the server gave it.
    Row(&'a tokio_postgres::Row),
    /// A row of one cell, which is this cell of a row that the server gave.
    CellOf(&'a tokio_postgres::Row, usize),
}

impl Row for Known<'_> {
    fn cell(&self, place: usize) -> Result<Cell<'_>, StoreError> {
        let (row, place) = match self {
            Self::Nothing => return Ok(Cell::Null),
            Self::Number(number) => return Ok(Cell::Integer(*number)),
            Self::Row(row) => (*row, place),
            Self::CellOf(row, only) => (*row, *only),
        };
        row.try_get(place).map_err(super::error::refused)
    }
}

#[derive(Debug)]
pub(super) struct Ahead {
    /// Rows of `ids`, all of each hash.
    ids: HashMap<i64, Vec<tokio_postgres::Row>>,
    /// Rows of objects, by table and key; `None` where there is none.
    objects: HashMap<(Table, i64), Option<tokio_postgres::Row>>,
    /// When objects were observed, where no more of them is known.
    observed: HashMap<(Table, i64), tokio_postgres::Row>,
    depths: HashMap<i64, Option<i64>>,
    /// Users who were never gone.
    never_gone: HashSet<i64>,
    /// Keys from here on are of objects that nobody had met before.
    next_key: i64,
    /// Relations, links and tasks of such objects that were written since.
    relations: Fresh<(i64, i64)>,
    links: Fresh<(String, i64, i64)>,
    tasks: Fresh<(i64, String)>,
}

impl Default for Ahead {
    fn default() -> Self {
        Self {
            ids: HashMap::new(),
            objects: HashMap::new(),
            observed: HashMap::new(),
            depths: HashMap::new(),
            never_gone: HashSet::new(),
            next_key: i64::MAX,
            relations: Fresh::default(),
            links: Fresh::default(),
            tasks: Fresh::default(),
        }
    }
}

/// Rows about objects that nobody had met before: all there are is what was written since.
#[derive(Debug)]
struct Fresh<T> {
    /// Cleared when something was done to them that is not followed here.
    is_certain: bool,
    written: HashSet<T>,
}

impl<T> Default for Fresh<T> {
    fn default() -> Self {
        Self {
            is_certain: true,
            written: HashSet::new(),
        }
    }
}

impl Ahead {
    pub(super) fn expect_from(&mut self, next_key: i64) {
        self.next_key = next_key;
    }

    pub(super) fn put_ids(&mut self, hashes: &[i64], rows: Vec<(i64, tokio_postgres::Row)>) {
        for hash in hashes {
            self.ids.insert(*hash, Vec::new());
        }
        for (hash, row) in rows {
            self.ids.entry(hash).or_default().push(row);
        }
    }

    pub(super) fn put_objects(
        &mut self,
        table: Table,
        keys: &[i64],
        rows: Vec<(i64, tokio_postgres::Row)>,
    ) {
        for key in keys {
            self.objects.insert((table, *key), None);
        }
        for (key, row) in rows {
            self.objects.insert((table, key), Some(row));
        }
    }

    /// Rows of one cell each.
    pub(super) fn put_observed(&mut self, table: Table, rows: Vec<(i64, tokio_postgres::Row)>) {
        let rows = rows.into_iter().map(|(key, row)| ((table, key), row));
        self.observed.extend(rows);
    }

    pub(super) fn put_depths(&mut self, keys: &[i64], depths: &[(i64, i64)]) {
        self.depths.extend(keys.iter().map(|key| (*key, None)));
        let known = depths.iter().map(|(key, depth)| (*key, Some(*depth)));
        self.depths.extend(known);
    }

    pub(super) fn put_never_gone(&mut self, keys: &[i64], gone: &HashSet<i64>) {
        let never = keys.iter().filter(|key| !gone.contains(key));
        self.never_gone.extend(never);
    }

    pub(super) fn ids_of(&self, hash: i64) -> Option<&[tokio_postgres::Row]> {
        self.ids.get(&hash).map(Vec::as_slice)
    }

    pub(super) fn forget_id(&mut self, hash: i64) {
        self.ids.remove(&hash);
    }

    pub(super) fn forget_ids(&mut self) {
        self.ids.clear();
    }

    /// The answer to a question, if it is known.
    pub(super) fn answer(&self, sql: Sql<'_>, cells: &[Cell<'_>]) -> Option<Known<'_>> {
        let Sql::Held(held) = sql else {
            return None;
        };
        let key = integer(cells, 0)?;
        match held {
            Held::SelectObject(table) => Some(match self.objects.get(&(table, key))? {
                Some(row) => Known::Row(row),
                None => Known::Nothing,
            }),
            Held::SelectObserved(table) => match self.objects.get(&(table, key)) {
                Some(Some(row)) => Some(Known::CellOf(row, table.columns().len() + 1)),
                Some(None) => Some(Known::Nothing),
                None => Some(Known::Row(self.observed.get(&(table, key))?)),
            },
            Held::SelectDepth => Some(match self.depths.get(&key)? {
                Some(depth) => Known::Number(*depth),
                None => Known::Nothing,
            }),
            Held::HasSpell | Held::HasLaterSpell => {
                self.never_gone.contains(&key).then_some(Known::Nothing)
            }
            Held::SelectVanished => {
                let is_fresh = self.relations.is_certain && self.is_fresh(cells);
                is_fresh.then_some(Known::Nothing)
            }
            _ => None,
        }
    }

    /// Whether a row is written by a statement that leaves alone what is there, if that is known.
    pub(super) fn is_new(&self, sql: Sql<'_>, cells: &[Cell<'_>]) -> Option<bool> {
        match sql {
            Sql::Held(Held::InsertRelation) if self.relations.is_certain => {
                let pair = (integer(cells, 0)?, integer(cells, 1)?);
                self.is_fresh(cells)
                    .then(|| !self.relations.written.contains(&pair))
            }
            Sql::Text(INSERT_LINK) if self.links.is_certain => {
                let link = link_of(cells)?;
                let is_fresh = link.1.max(link.2) >= self.next_key;
                is_fresh.then(|| !self.links.written.contains(&link))
            }
            Sql::Held(Held::File) if self.tasks.is_certain => {
                let task = task_of(cells)?;
                (task.0 >= self.next_key).then(|| !self.tasks.written.contains(&task))
            }
            _ => None,
        }
    }

    /// Whether a relation has an end that nobody had met before.
    fn is_fresh(&self, cells: &[Cell<'_>]) -> bool {
        [integer(cells, 0), integer(cells, 1)]
            .into_iter()
            .flatten()
            .any(|key| key >= self.next_key)
    }

    /// Takes note of a statement that writes.
    pub(super) fn written(&mut self, sql: Sql<'_>, cells: &[Cell<'_>]) {
        match sql {
            Sql::Held(Held::ReplaceObject(table)) => {
                let key = integer(cells, cells.len().saturating_sub(1));
                self.forget_object(table, key);
            }
            Sql::Held(Held::RestampObject(table)) => self.forget_object(table, integer(cells, 1)),
            Sql::Held(Held::SetDepth) => {
                if let Some(key) = integer(cells, 0) {
                    self.depths.insert(key, integer(cells, 1));
                }
            }
            Sql::Held(Held::InsertRelation) => {
                if let (Some(source), Some(target)) = (integer(cells, 0), integer(cells, 1)) {
                    self.relations.written.insert((source, target));
                }
            }
            Sql::Text(INSERT_LINK) => self.links.written.extend(link_of(cells)),
            Sql::Held(Held::File) => self.tasks.written.extend(task_of(cells)),
            Sql::Held(Held::Unfile) => {
                if let Some(task) = task_of(cells) {
                    self.tasks.written.remove(&task);
                }
            }
            Sql::Held(Held::WidenId) => self.forget_ids(),
            // The hash of a new row was forgotten when it got its number; a link that is widened was
            // there and stays.
            Sql::Held(_) | Sql::Text(WIDEN_LINK) => {}
            Sql::Text(text) => self.written_to(target_of(text), cells),
        }
    }

    /// Some statement writes to a table.
    fn written_to(&mut self, table: &str, cells: &[Cell<'_>]) {
        match table {
            "ids" => self.forget_ids(),
            "subjects" => self.depths.clear(),
            "invalid_users" => self.never_gone.clear(),
            "user_relations" | "invalid_relations" if self.is_fresh(cells) => {
                self.relations.is_certain = false;
            }
            // Links are moved only when keys are merged, which is seldom.
            "links" => self.links.is_certain = false,
            "frontier" if integer(cells, 0).is_none_or(|key| key >= self.next_key) => {
                self.tasks.is_certain = false;
            }
            name => {
                if let Some(table) = Table::from_name(name) {
                    self.objects.retain(|(of, _), _| *of != table);
                    self.observed.retain(|(of, _), _| *of != table);
                }
            }
        }
    }

    fn forget_object(&mut self, table: Table, key: Option<i64>) {
        if let Some(key) = key {
            self.objects.remove(&(table, key));
            self.observed.remove(&(table, key));
        }
    }
}

fn integer(cells: &[Cell<'_>], place: usize) -> Option<i64> {
    match cells.get(place) {
        Some(Cell::Integer(number)) => Some(*number),
        _ => None,
    }
}

fn link_of(cells: &[Cell<'_>]) -> Option<(String, i64, i64)> {
    match cells {
        [Cell::Text(kind), Cell::Integer(from), Cell::Integer(to), ..] => {
            Some((kind.to_string(), *from, *to))
        }
        _ => None,
    }
}

fn task_of(cells: &[Cell<'_>]) -> Option<(i64, String)> {
    match cells {
        [Cell::Integer(subject), Cell::Text(robot), ..] => Some((*subject, robot.to_string())),
        _ => None,
    }
}

/// The table that a statement writes to; nothing for one that reads.
fn target_of(sql: &str) -> &str {
    let rest = ["INSERT INTO ", "UPDATE ", "DELETE FROM "]
        .iter()
        .find_map(|begin| sql.strip_prefix(begin));
    let rest = rest.unwrap_or_default();
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    &rest[..end.unwrap_or(rest.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::cells;

    #[test]
    fn the_table_of_a_statement_is_found() {
        for (sql, table) in [
            ("INSERT INTO links AS known(kind", "links"),
            ("INSERT INTO rules(name", "rules"),
            ("UPDATE ids SET key", "ids"),
            ("DELETE FROM put_off", "put_off"),
            ("SELECT 1 FROM ids", ""),
            ("COMMIT", ""),
        ] {
            assert_eq!(target_of(sql), table);
        }
    }

    #[test]
    fn what_is_about_fresh_objects_is_new_once() {
        let mut ahead = Ahead::default();
        ahead.expect_from(100);
        let insert = Sql::Held(Held::InsertRelation);
        assert_eq!(ahead.is_new(insert, cells![1_i64, 2_i64]), None);
        assert_eq!(ahead.is_new(insert, cells![1_i64, 100_i64]), Some(true));
        ahead.written(insert, cells![1_i64, 100_i64]);
        assert_eq!(ahead.is_new(insert, cells![1_i64, 100_i64]), Some(false));
        assert_eq!(ahead.is_new(insert, cells![100_i64, 1_i64]), Some(true));
        // Whatever else is done to such relations makes all of them uncertain.
        let delete = Sql::Text("DELETE FROM user_relations WHERE source = ?1 AND target = ?2");
        ahead.written(delete, cells![1_i64, 2_i64]);
        assert_eq!(ahead.is_new(insert, cells![1_i64, 100_i64]), Some(false));
        ahead.written(delete, cells![1_i64, 100_i64]);
        assert_eq!(ahead.is_new(insert, cells![1_i64, 100_i64]), None);
    }

    #[test]
    fn a_link_of_a_fresh_object_is_new_once() {
        let mut ahead = Ahead::default();
        ahead.expect_from(100);
        let insert = Sql::Text(INSERT_LINK);
        assert_eq!(ahead.is_new(insert, cells!["mention", 1_i64, 2_i64]), None);
        for (kind, from, to) in [
            ("mention", 100_i64, 2_i64),
            ("like", 2, 100),
            ("like", 100, 2),
        ] {
            let cells = cells![kind, from, to];
            assert_eq!(ahead.is_new(insert, cells), Some(true));
            ahead.written(insert, cells);
            assert_eq!(ahead.is_new(insert, cells), Some(false));
            ahead.written(Sql::Text(WIDEN_LINK), cells);
            assert_eq!(ahead.is_new(insert, cells), Some(false));
        }
        ahead.written(
            Sql::Text("DELETE FROM links WHERE from_key = ?1"),
            cells![1_i64],
        );
        assert_eq!(ahead.is_new(insert, cells!["like", 100_i64, 2_i64]), None);
    }

    #[test]
    fn a_task_that_was_taken_back_is_new_again() {
        let mut ahead = Ahead::default();
        ahead.expect_from(100);
        let (file, unfile) = (Sql::Held(Held::File), Sql::Held(Held::Unfile));
        assert_eq!(ahead.is_new(file, cells![99_i64, "posts"]), None);
        assert_eq!(ahead.is_new(file, cells![100_i64, "posts"]), Some(true));
        ahead.written(file, cells![100_i64, "posts"]);
        assert_eq!(ahead.is_new(file, cells![100_i64, "posts"]), Some(false));
        ahead.written(unfile, cells![100_i64, "posts"]);
        assert_eq!(ahead.is_new(file, cells![100_i64, "posts"]), Some(true));
    }

    #[test]
    fn depths_are_known_until_something_else_writes_them() {
        let mut ahead = Ahead::default();
        ahead.put_depths(&[1, 2], &[(2, 7)]);
        let ask = Sql::Held(Held::SelectDepth);
        assert!(matches!(
            ahead.answer(ask, cells![1_i64]),
            Some(Known::Nothing)
        ));
        assert!(matches!(
            ahead.answer(ask, cells![2_i64]),
            Some(Known::Number(7))
        ));
        assert!(ahead.answer(ask, cells![3_i64]).is_none());
        ahead.written(Sql::Held(Held::SetDepth), cells![1_i64, 4_i64]);
        assert!(matches!(
            ahead.answer(ask, cells![1_i64]),
            Some(Known::Number(4))
        ));
        ahead.written(
            Sql::Text("DELETE FROM subjects WHERE key = ?1"),
            cells![9_i64],
        );
        assert!(ahead.answer(ask, cells![1_i64]).is_none());
    }
}
