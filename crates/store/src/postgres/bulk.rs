//! Rows of one statement that go to the server together.
//!
//! Most of a transaction is a few statements, each for many rows. They are gathered and sent as one
//! statement over lists, before anything that could look at their table, and at the end. The rows of
//! one table keep their order; tables do not look at one another.

use super::dialect::translated;
use crate::cell::Cell;
use crate::database::Sql;
use crate::rules::links::INSERT_LINK;
use crate::rules::statements::Held;
use std::collections::HashMap;
use std::fmt::Write as _;
use tokio_postgres::types::Type;

/// Rows that are sent at once; the server is at work on them while the next ones are gathered.
const ROWS_MAX: usize = 500;

/// What can be gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gathered {
    /// Nothing for a link, whose statement is not held.
    held: Option<Held>,
    table: &'static str,
    /// Where the key is that may be there only once.
    key: Option<KeyPlace>,
    /// Of two rows with one key the later one holds; otherwise both count.
    replaces: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyPlace {
    First,
    Last,
}

impl Gathered {
    /// How a statement is gathered, if it is.
    pub(super) fn of(sql: Sql<'_>) -> Option<Self> {
        let held = match sql {
            Sql::Held(held) => held,
            Sql::Text(INSERT_LINK) => {
                return Some(Self {
                    held: None,
                    table: "links",
                    key: None,
                    replaces: false,
                });
            }
            Sql::Text(_) => return None,
        };
        let key = match held {
            Held::InsertId | Held::InsertRelation | Held::File => None,
            Held::SetDepth | Held::WidenId => Some(KeyPlace::First),
            Held::ReplaceObject(_) | Held::RestampObject(_) => Some(KeyPlace::Last),
            _ => return None,
        };
        Some(Self {
            held: Some(held),
            table: table_of(held),
            key,
            replaces: held != Held::WidenId,
        })
    }

    /// The statement for one row.
    pub(super) fn sql(self) -> String {
        self.held.map_or_else(|| INSERT_LINK.to_owned(), Held::sql)
    }

    fn key_in(self, cells: &[Cell<'_>]) -> Option<i64> {
        let cell = match self.key? {
            KeyPlace::First => cells.first(),
            KeyPlace::Last => cells.last(),
        };
        match cell {
            Some(Cell::Integer(key)) => Some(*key),
            _ => None,
        }
    }
}

/// The one table that a held statement is about.
fn table_of(held: Held) -> &'static str {
    match held {
        Held::InsertId | Held::WidenId => "ids",
        Held::HasSpell | Held::HasLaterSpell => "invalid_users",
        Held::SelectDepth | Held::SetDepth => "subjects",
        Held::InsertRelation => "user_relations",
        Held::SelectVanished => "invalid_relations",
        Held::File | Held::Unfile => "frontier",
        Held::SelectObject(table)
        | Held::ReplaceObject(table)
        | Held::RestampObject(table)
        | Held::SelectObserved(table) => table.name(),
    }
}

/// Rows of one statement, column by column.
#[derive(Debug)]
pub(super) struct Rows {
    pub of: Gathered,
    pub columns: Vec<Vec<Cell<'static>>>,
    places: HashMap<i64, usize>,
}

impl Rows {
    fn new(of: Gathered, columns: usize) -> Self {
        Self {
            of,
            columns: (0..columns).map(|_| Vec::new()).collect(),
            places: HashMap::new(),
        }
    }

    fn count(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// Whether another row has to come after these, not among them.
    fn must_go_before(&self, cells: &[Cell<'_>]) -> bool {
        let key = self.of.key_in(cells);
        !self.of.replaces && key.is_some_and(|key| self.places.contains_key(&key))
    }

    fn push(&mut self, cells: &[Cell<'_>]) {
        let owned = cells.iter().cloned().map(Cell::into_owned);
        let key = self.of.key_in(cells);
        if let Some(place) = key.and_then(|key| self.places.get(&key)) {
            for (column, cell) in self.columns.iter_mut().zip(owned) {
                column[*place] = cell;
            }
            return;
        }
        if let Some(key) = key {
            self.places.insert(key, self.count());
        }
        for (column, cell) in self.columns.iter_mut().zip(owned) {
            column.push(cell);
        }
    }
}

/// Everything that is gathered and not sent.
#[derive(Debug, Default)]
pub(super) struct Bulk {
    waiting: Vec<Rows>,
}

impl Bulk {
    /// Takes a row; gives the rows that are to be sent: they are enough, or the new one is about one of
    /// theirs.
    pub(super) fn push(&mut self, of: Gathered, cells: &[Cell<'_>]) -> Option<Rows> {
        let place = self.waiting.iter().position(|rows| rows.of == of);
        if let Some(place) = place
            && self.waiting[place].must_go_before(cells)
        {
            let sent = self.waiting.swap_remove(place);
            self.push(of, cells);
            return Some(sent);
        }
        let place = place.unwrap_or_else(|| {
            self.waiting.push(Rows::new(of, cells.len()));
            self.waiting.len() - 1
        });
        let rows = &mut self.waiting[place];
        rows.push(cells);
        (rows.count() >= ROWS_MAX).then(|| self.waiting.swap_remove(place))
    }

    /// The rows that have to be sent before a statement: those of the tables that it is about, but
    /// not those that it would only add to.
    pub(super) fn before(&mut self, sql: Sql<'_>, adds_to: Option<Gathered>) -> Vec<Rows> {
        let concerns = |rows: &mut Rows| {
            Some(rows.of) != adds_to
                && match sql {
                    Sql::Held(held) => table_of(held) == rows.of.table,
                    Sql::Text(text) => text.contains(rows.of.table),
                }
        };
        if self.waiting.is_empty() {
            return Vec::new();
        }
        self.waiting.extract_if(.., concerns).collect()
    }

    pub(super) fn take(&mut self) -> Vec<Rows> {
        std::mem::take(&mut self.waiting)
    }
}

/// The statement for many rows: what was one row of parameters is a row of lists.
pub(super) fn for_many(sql: &str, types: &[Type]) -> Option<(String, Vec<Type>)> {
    let lists_of: Option<Vec<Type>> = types.iter().map(list_of).collect();
    let (mut lists, mut names) = (String::new(), String::new());
    for place in 1..=types.len() {
        let comma = if place == 1 { "" } else { ", " };
        let _ = write!(lists, "{comma}?{place}");
        let _ = write!(names, "{comma}given_{place}");
    }
    let given = format!("FROM unnest({lists}) AS given({names})");
    let many = if sql.starts_with("UPDATE ") {
        let (what, which) = sql.split_once("WHERE ")?;
        let (what, which) = (named(what), named(which));
        format!("{what}{given} WHERE {which}")
    } else {
        let (before, values) = sql.split_once("VALUES (")?;
        let (values, after) = values.split_once(')')?;
        format!("{before}SELECT {} {given}{after}", named(values))
    };
    Some((translated(&many), lists_of?))
}

/// The parameters of one row, as columns of the lists.
fn named(sql: &str) -> String {
    sql.replace('?', "given_")
}

fn list_of(of: &Type) -> Option<Type> {
    Some(match *of {
        Type::INT8 => Type::INT8_ARRAY,
        Type::TEXT => Type::TEXT_ARRAY,
        Type::FLOAT8 => Type::FLOAT8_ARRAY,
        Type::BYTEA => Type::BYTEA_ARRAY,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::cells;
    use kittiwake_model::Table;

    #[test]
    fn a_row_of_parameters_becomes_a_row_of_lists() {
        let types = [Type::INT8, Type::INT8, Type::INT8, Type::INT8, Type::INT8];
        let (sql, types) = for_many(&Held::InsertRelation.sql(), &types).unwrap();
        let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            sql.ends_with(
                "SELECT given_1, given_2, given_3, given_3, given_4, given_5 \
                 FROM unnest($1, $2, $3, $4, $5) \
                 AS given(given_1, given_2, given_3, given_4, given_5) ON CONFLICT DO NOTHING"
            ),
            "{sql}"
        );
        assert_eq!(types, vec![Type::INT8_ARRAY; 5]);
        assert!(for_many(&Held::SelectDepth.sql(), &[Type::INT8]).is_none());
    }

    #[test]
    fn an_update_takes_its_values_from_lists() {
        let types = [Type::TEXT, Type::INT8];
        let sql = Held::RestampObject(Table::Users).sql();
        let (sql, types) = for_many(&sql, &types).unwrap();
        assert_eq!(
            sql,
            "UPDATE users SET observed = given_1 FROM unnest($1, $2) AS given(given_1, given_2) \
             WHERE key = given_2"
        );
        assert_eq!(types, [Type::TEXT_ARRAY, Type::INT8_ARRAY]);
    }

    #[test]
    fn two_updates_that_both_count_are_not_sent_together() {
        let mut bulk = Bulk::default();
        let of = Gathered::of(Sql::Held(Held::WidenId)).unwrap();
        assert!(bulk.push(of, cells![1_i64, 5_i64, 5_i64]).is_none());
        assert!(bulk.push(of, cells![2_i64, 5_i64, 5_i64]).is_none());
        let sent = bulk.push(of, cells![1_i64, 4_i64, 4_i64]).unwrap();
        assert_eq!(sent.columns[0], cells![1_i64, 2_i64]);
        assert_eq!(bulk.take().remove(0).columns[0], cells![1_i64]);
    }

    #[test]
    fn of_two_rows_of_one_key_the_later_holds() {
        let mut bulk = Bulk::default();
        let of = Gathered::of(Sql::Held(Held::SetDepth)).unwrap();
        for (key, depth) in [(1_i64, 5_i64), (2, 6), (1, 4)] {
            assert!(bulk.push(of, cells![key, depth]).is_none());
        }
        let rows = bulk.take().remove(0);
        assert_eq!(rows.columns[0], cells![1_i64, 2_i64]);
        assert_eq!(rows.columns[1], cells![4_i64, 6_i64]);
    }

    #[test]
    fn rows_are_sent_before_whatever_looks_at_their_table() {
        let mut bulk = Bulk::default();
        let ids = Gathered::of(Sql::Held(Held::InsertId)).unwrap();
        let posts = Gathered::of(Sql::Held(Held::ReplaceObject(Table::Statuses))).unwrap();
        bulk.push(ids, cells![1_i64]);
        bulk.push(posts, cells![1_i64]);
        assert!(bulk.before(Sql::Held(Held::SelectDepth), None).is_empty());
        assert!(bulk.before(Sql::Text("COMMIT"), None).is_empty());
        assert!(bulk.before(Sql::Held(Held::InsertId), Some(ids)).is_empty());
        let sent = bulk.before(Sql::Text("SELECT 1 FROM statuses WHERE key = ?1"), None);
        assert_eq!(sent.len(), 1);
        assert_eq!(bulk.before(Sql::Held(Held::WidenId), None).len(), 1);
        assert!(bulk.take().is_empty());
    }

    #[test]
    fn many_rows_are_sent_before_the_end() {
        let mut bulk = Bulk::default();
        let of = Gathered::of(Sql::Held(Held::File)).unwrap();
        let sent = (0..ROWS_MAX as i64).filter_map(|row| bulk.push(of, cells![row]));
        assert_eq!(sent.count(), 1);
        assert!(bulk.take().is_empty());
    }
}
