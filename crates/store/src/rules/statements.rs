//! The statements of the busiest paths. A back end prepares each of them once, holds it, and finds
//! it by its place.

use kittiwake_model::Table;

/// A statement that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    InsertId,
    WidenId,
    /// Whether somebody was gone at a time: key and time.
    HasSpell,
    /// Whether somebody was gone at a time or later: key and time.
    HasLaterSpell,
    SelectDepth,
    /// Key and depth.
    SetDepth,
    /// Source, target and more; says whether it was new.
    InsertRelation,
    /// When a relation vanished: source and target.
    SelectVanished,
    /// Subject, robot and more; says whether it was new.
    File,
    /// Subject and robot.
    Unfile,
    SelectObject(Table),
    /// The key is the last cell.
    ReplaceObject(Table),
    /// The time and the key.
    RestampObject(Table),
    SelectObserved(Table),
}

const FIXED: usize = 10;
const TABLES: usize = Table::ALL.len();

impl Held {
    /// How many there are.
    pub(crate) const COUNT: usize = FIXED + 4 * TABLES;

    /// The statement's own number, below [`Self::COUNT`].
    pub(crate) const fn place(self) -> usize {
        match self {
            Self::InsertId => 0,
            Self::WidenId => 1,
            Self::HasSpell => 2,
            Self::HasLaterSpell => 3,
            Self::SelectDepth => 4,
            Self::SetDepth => 5,
            Self::InsertRelation => 6,
            Self::SelectVanished => 7,
            Self::File => 8,
            Self::Unfile => 9,
            Self::SelectObject(table) => FIXED + table as usize,
            Self::ReplaceObject(table) => FIXED + TABLES + table as usize,
            Self::RestampObject(table) => FIXED + 2 * TABLES + table as usize,
            Self::SelectObserved(table) => FIXED + 3 * TABLES + table as usize,
        }
    }

    pub(crate) fn sql(self) -> String {
        match self {
            Self::InsertId => String::from(
                "INSERT INTO ids(key, hash, canonical, movable, first_seen_us, last_seen_us,
                                 network, type, alias, host, id, rowid)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            ),
            Self::WidenId => String::from(
                "UPDATE ids SET first_seen_us = min(first_seen_us, ?2),
                                last_seen_us = max(last_seen_us, ?3)
                 WHERE rowid = ?1",
            ),
            Self::HasSpell => String::from(
                "SELECT 1 FROM invalid_users
                 WHERE key = ?1 AND from_us < ?2 AND (until_us IS NULL OR until_us > ?2)",
            ),
            Self::HasLaterSpell => String::from(
                "SELECT 1 FROM invalid_users
                 WHERE key = ?1 AND (until_us IS NULL OR until_us > ?2)",
            ),
            Self::SelectDepth => String::from("SELECT depth FROM subjects WHERE key = ?1"),
            Self::SetDepth => String::from(
                "INSERT INTO subjects(key, depth) VALUES (?1, ?2)
                 ON CONFLICT (key) DO UPDATE SET depth = excluded.depth",
            ),
            Self::InsertRelation => String::from(
                "INSERT INTO user_relations(
                   source, target, first_seen_us, last_seen_us, following_walk, followers_walk)
                 VALUES (?1, ?2, ?3, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
            ),
            Self::SelectVanished => String::from(
                "SELECT vanished_us FROM invalid_relations WHERE source = ?1 AND target = ?2",
            ),
            Self::File => String::from(
                "INSERT INTO frontier(subject, robot, lane, visits, visited_us, due_us, state)
                 VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
            ),
            Self::Unfile => String::from(
                "DELETE FROM frontier WHERE subject = ?1 AND robot = ?2 AND visits = 0",
            ),
            Self::SelectObject(table) => {
                let columns = list(table, |column| format!("{column}, "));
                let name = table.name();
                format!("SELECT {columns}extra, observed FROM {name} WHERE key = ?1")
            }
            Self::ReplaceObject(table) => replace_object(table),
            Self::SelectObserved(table) => {
                format!("SELECT observed FROM {} WHERE key = ?1", table.name())
            }
            Self::RestampObject(table) => {
                format!("UPDATE {} SET observed = ?1 WHERE key = ?2", table.name())
            }
        }
    }
}

fn list(table: Table, form: fn(&str) -> String) -> String {
    let columns = table.columns().iter();
    columns.map(|column| form(column.name)).collect()
}

fn replace_object(table: Table) -> String {
    let columns = list(table, |column| format!("{column}, "));
    let updates = list(table, |column| format!("{column} = excluded.{column}, "));
    let places: Vec<String> = (1..=table.columns().len() + 3)
        .map(|place| format!("?{place}"))
        .collect();
    format!(
        "INSERT INTO {}({columns}extra, observed, key) VALUES ({}) ON CONFLICT (key) DO UPDATE SET \
         {updates}extra = excluded.extra, observed = excluded.observed",
        table.name(),
        places.join(", ")
    )
}
