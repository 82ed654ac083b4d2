//! Relations that seemed to have ended because one of the two people was gone.
//!
//! Whoever is gone is missing from everybody's lists. When a list was compared before it was known
//! that they are gone, their relations were taken for vanished; they are given back as soon as it
//! is known, in bounded steps.

use super::relax::{HandOn, HandOnList, Place};
use super::work::Work;
use crate::StoreError;
use crate::cell::cells;
use kittiwake_model::Table;

impl Work<'_> {
    /// A user turned out to be gone: relations that vanished since they were last seen are in doubt.
    pub(super) fn doubt_vanished(&mut self, user: i64) {
        for list in [HandOnList::LostFollowing, HandOnList::LostFollowers] {
            self.queue(user, list, Place::default());
        }
    }

    /// Gives back one stretch of the relations that were lost with the user.
    pub(super) fn reunite(&mut self, next: &HandOn) -> Result<(), StoreError> {
        let seen_us = self.last_present_us(Table::Users, next.key)?;
        let limit = self.page_limit();
        let sql = if next.list == HandOnList::LostFollowing {
            "SELECT source, target, target FROM invalid_relations
             WHERE source = ?1 AND target > ?2 AND vanished_us >= ?3 ORDER BY target LIMIT ?4"
        } else {
            "SELECT source, target, source FROM invalid_relations
             WHERE target = ?1 AND source > ?2 AND vanished_us >= ?3 ORDER BY source LIMIT ?4"
        };
        let lost: Vec<(i64, i64, i64)> = self.database.all(
            sql,
            cells![next.key, next.after.key, seen_us, limit as i64],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        self.count_steps(lost.len());
        if let Some((_, _, last)) = lost.last().filter(|_| lost.len() == limit) {
            self.queue_first(next.key, next.list, Place::of(*last));
        }
        for (source, target, _) in lost {
            self.send(
                "INSERT INTO user_relations(source, target, first_seen_us, last_seen_us)
                 SELECT source, target, first_seen_us, last_seen_us FROM invalid_relations
                 WHERE source = ?1 AND target = ?2 ON CONFLICT DO NOTHING",
                cells![source, target],
            )?;
            self.send(
                "DELETE FROM invalid_relations WHERE source = ?1 AND target = ?2",
                cells![source, target],
            )?;
        }
        Ok(())
    }
}
