//! What a row that was just written means beyond itself.

use super::brings::is_writing;
use super::relax::{HandOnList, Place};
use super::steps::Along;
use super::work::Work;
use crate::StoreError;
use crate::cell::Cell;
use crate::record::Groups;
use kittiwake_model::{Reference, Table, Value};

/// What of a row decides where it stands: whose it is, and in which conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Bearings {
    pub author: Option<i64>,
    /// What it answers.
    pub parent: Option<i64>,
    /// The post under which a comment stands, where the network says so itself.
    pub status: Option<i64>,
    pub created_us: Option<i64>,
    /// Only a list has told of it, and described nothing.
    pub is_named: bool,
}

impl Bearings {
    /// Read from the groups as [`crate::record::encode`] writes them into columns.
    pub(super) fn of(table: Table, groups: &Groups) -> Self {
        let mut bearings = Self::default();
        let parent = match table {
            Table::Statuses => "reply_to",
            Table::Comments => "parent",
            Table::Users | Table::Tags | Table::Objects => return bearings,
        };
        for group in groups.values() {
            read_key(&mut bearings.author, group.fields.get("author"));
            read_key(&mut bearings.parent, group.fields.get(parent));
            if table == Table::Comments {
                read_key(&mut bearings.status, group.fields.get("status"));
            }
            match group.fields.get("created_us") {
                Some(Value::Time { at_us, .. }) => bearings.created_us = Some(*at_us),
                Some(Value::Null) => bearings.created_us = None,
                _ => {}
            }
        }
        bearings.is_named = groups.values().all(|group| group.newest.is_named());
        bearings
    }

    /// Whether a post is known to begin a conversation.
    pub(super) fn is_first(self) -> bool {
        self.parent.is_none() && self.author.is_some() && !self.is_named
    }
}

impl Bearings {
    /// The same, read from the cells of a row that describes its object.
    pub(super) fn in_cells(table: Table, cells: &[Cell<'_>]) -> Self {
        let parent = match table {
            Table::Statuses => "reply_to",
            Table::Comments => "parent",
            Table::Users | Table::Tags | Table::Objects => return Self::default(),
        };
        let number = |name: &str| {
            let place = table
                .columns()
                .iter()
                .position(|column| column.name == name)?;
            match cells.get(place)? {
                Cell::Integer(number) => Some(*number),
                _ => None,
            }
        };
        Self {
            author: number("author"),
            parent: number(parent),
            status: if table == Table::Comments {
                number("status")
            } else {
                None
            },
            created_us: number("created_us"),
            is_named: false,
        }
    }
}

/// What a column that points at an object holds; a value of another kind does not get there.
fn read_key(place: &mut Option<i64>, value: Option<&Value>) {
    match value {
        Some(Value::Object(Reference::Key(key))) => *place = Some(key.0),
        Some(Value::Null) => *place = None,
        _ => {}
    }
}

impl Work<'_> {
    /// Draws the consequences of a row: `before` is what it was, if there was one. Nobody has met
    /// an object that `is_unmet` before, so nothing that is stored points at it.
    pub(super) fn row_written(
        &mut self,
        table: Table,
        key: i64,
        before: Option<Bearings>,
        after: Bearings,
        is_unmet: bool,
    ) -> Result<(), StoreError> {
        if is_writing(table) {
            self.authors.insert(key, after.author);
        }
        match table {
            Table::Statuses => self.settle_reply(key, before, after, is_unmet)?,
            Table::Comments if before != Some(after) => {
                self.answered.extend(after.parent);
                self.comment_shows(after.author, [after.parent, after.status])?;
            }
            _ => {}
        }
        if is_writing(table) && self.memory.extent.looks_at_posts() {
            // Whose it is, and its place among all that they wrote.
            let is_elsewhere = before.is_none_or(|before| {
                (before.author, before.created_us) != (after.author, after.created_us)
            });
            let answers_another = self.memory.extent.steps_max(Along::Replies) > 0
                && after.parent.is_some()
                && before.is_none_or(|before| before.parent != after.parent);
            if (is_elsewhere && after.author.is_some()) || answers_another {
                return self.post_found(key, is_unmet);
            }
        }
        if self.memory.extent.counts_any() {
            let (_, kind) = self.kind_of(key)?;
            if self.memory.extent.counts(&kind) {
                self.file_again(key)?;
            }
        }
        Ok(())
    }

    /// Something whose author has become known, or that has another place among all that the
    /// author wrote, or answers another than before.
    fn post_found(&mut self, key: i64, is_unmet: bool) -> Result<(), StoreError> {
        if let Some(rules) = self.rules
            && is_unmet
            && !self.answered.contains(&key)
        {
            return self.file(key, rules);
        }
        self.queue(key, HandOnList::Post, Place::default());
        if self.memory.extent.looks_at_links() {
            self.queue(key, HandOnList::Origins, Place::default());
        }
        Ok(())
    }
}
