//! Filing: who gets a row in the frontier, for which robots.
//!
//! A subject is filed by its own depth, a post by its author's, and a post that repeats or answers
//! another also by that. Whether it is filed follows from what is stored alone.

use super::relax::{HandOn, HandOnList, Place};
use super::statements::Held;
use super::work::Work;
use crate::StoreError;
use crate::cell::cells;
use kittiwake_model::{ColumnKind, Expansion, Filed, Key, RobotFiling, WorldTime};
use std::time::Instant;

impl Work<'_> {
    /// Gives the object a frontier row for every robot that visits its type and has something to
    /// ask for, if it is within reach.
    pub(super) fn file(&mut self, key: i64, rules: &Expansion) -> Result<(), StoreError> {
        let begun = Instant::now();
        let filed = self.file_by(key, rules);
        self.filing += begun.elapsed();
        filed
    }

    fn file_by(&mut self, key: i64, rules: &Expansion) -> Result<(), StoreError> {
        let (_, kind) = self.kind_of(key)?;
        let mut is_near = None;
        for filing in rules.robots.iter().filter(|filing| filing.kind == kind) {
            if self.has_nothing_to_ask(key, filing)? {
                self.unfile(key, filing)?;
                continue;
            }
            let is_near = match is_near {
                Some(is_near) => is_near,
                None => *is_near.insert(self.is_within_reach(key, rules)?),
            };
            if is_near || self.is_steps_away(key, filing, rules)? {
                self.file_for(key, filing)?;
            }
        }
        Ok(())
    }

    /// [`Self::file`] for an object that has changed: at once if there are rules, later if not.
    pub(super) fn file_again(&mut self, key: i64) -> Result<(), StoreError> {
        if let Some(rules) = self.rules {
            return self.file(key, rules);
        }
        if self.reach_of(key)?.is_some() {
            self.queue_subject(key);
        }
        Ok(())
    }

    fn file_for(&mut self, key: i64, filing: &RobotFiling) -> Result<(), StoreError> {
        let at_us = self.at_us();
        let mut visited_us = None;
        if let Some(count) = &filing.visited_when_zero {
            visited_us = self.is_zero(key, count)?.then_some(at_us);
        }
        if filing.begins_visited {
            // What was only named has not been looked at even once.
            let table = self.table_of(key)?;
            visited_us = self.is_described(table, key)?.then_some(at_us);
        }
        let inserted = self.execute(
            Held::File,
            cells![
                key,
                &*filing.robot,
                &*filing.lane,
                visited_us,
                at_us,
                &[][..]
            ],
        )?;
        if inserted == 1 {
            self.report.filed.push(Filed {
                subject: Key(key),
                robot: filing.robot.clone(),
                lane: filing.lane.clone(),
                visited: visited_us.map(WorldTime),
                due: WorldTime(at_us),
                state: Vec::new(),
            });
        }
        Ok(())
    }

    /// Takes back a row that was made before it was known that there is nothing to ask for. A
    /// robot that has been there keeps its row.
    fn unfile(&self, key: i64, filing: &RobotFiling) -> Result<(), StoreError> {
        self.send(Held::Unfile, cells![key, &*filing.robot])
    }

    fn has_nothing_to_ask(&mut self, key: i64, filing: &RobotFiling) -> Result<bool, StoreError> {
        let Some(column) = &filing.unless_zero else {
            return Ok(false);
        };
        let is_zero = self.is_zero(key, column)?;
        Ok(is_zero && !(filing.names_parents && self.answers_what_is_only_named(key)?))
    }

    /// Whether a count of an object is known to be 0, be it a column of its table or a field of its own.
    fn is_zero(&mut self, key: i64, count: &str) -> Result<bool, StoreError> {
        let table = self.table_of(key)?;
        let name = table.name();
        if let Some(column) = table.column(count) {
            // What is no number counts nothing.
            if column.kind != ColumnKind::Integer {
                return Ok(false);
            }
            let sql = format!(
                "SELECT 1 FROM {name} WHERE key = ?1 AND {} = 0",
                column.name
            );
            return self.database.exists(&*sql, cells![key]);
        }
        let sql = format!("SELECT extra FROM {name} WHERE key = ?1 AND extra IS NOT NULL");
        let extra: Option<String> = self.database.first(&*sql, cells![key], |row| row.get(0))?;
        let fields = extra.and_then(|extra| serde_json::from_str::<serde_json::Value>(&extra).ok());
        Ok(fields.is_some_and(|fields| fields.get(count).is_some_and(|it| *it == 0)))
    }

    /// Whether a post answers one of which nothing is known but an id.
    fn answers_what_is_only_named(&self, key: i64) -> Result<bool, StoreError> {
        self.database.exists(
            "SELECT 1 FROM statuses AS s JOIN pending AS p ON p.key = s.reply_to WHERE s.key = ?1",
            cells![key],
        )
    }

    /// Files one stretch of an author's posts, or has them looked behind one by one. They come in
    /// the order of their index: those without a time first, then by time.
    pub(super) fn hand_on_to_posts(
        &mut self,
        next: &HandOn,
        rules: &Expansion,
    ) -> Result<(), StoreError> {
        let depth = self.depth_of(next.key)?;
        if depth.is_none_or(|depth| depth > rules.depth_max) {
            self.count_steps(0);
            return Ok(());
        }
        let limit = self.page_limit();
        let posts = self.posts_after(next.key, &next.after, limit)?;
        self.count_steps(posts.len());
        let looks_behind = self.memory.extent.looks_behind_posts();
        for (_, post) in &posts {
            if looks_behind {
                self.queue(*post, HandOnList::Post, Place::default());
            } else {
                self.file(*post, rules)?;
            }
        }
        let after = match posts.last() {
            Some((us, key)) if posts.len() == limit => Place {
                us: *us,
                kind: None,
                key: *key,
            },
            // Those without a time are through.
            _ if next.after.us.is_none() => Place {
                us: Some(i64::MIN),
                ..Place::default()
            },
            _ => return Ok(()),
        };
        // Behind those that were just queued, so that they do not pile up in memory.
        self.queue(next.key, next.list, after);
        Ok(())
    }

    fn posts_after(
        &self,
        author: i64,
        after: &Place,
        limit: usize,
    ) -> Result<Vec<(Option<i64>, i64)>, StoreError> {
        let Some(after_us) = after.us else {
            return self.database.all(
                "SELECT key FROM statuses
                 WHERE author = ?1 AND created_us IS NULL AND key > ?2 ORDER BY key LIMIT ?3",
                cells![author, after.key, limit as i64],
                |row| Ok((None, row.get(0)?)),
            );
        };
        self.database.all(
            "SELECT created_us, key FROM statuses
             WHERE author = ?1 AND (created_us, key) > (?2, ?3)
             ORDER BY created_us, key LIMIT ?4",
            cells![author, after_us, after.key, limit as i64],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }
}
