//! Relations that have vanished.
//!
//! A list that was walked from its beginning to its end proves that what it did not show is gone,
//! unless it was seen elsewhere since the walk began, or one of the two people is gone themselves.
//! The comparison goes through the list in bounded steps: how far it has come is in the table
//! `sweeps`, so that a kill only interrupts it.

use super::work::Work;
use crate::StoreError;
use crate::cell::cells;
use kittiwake_model::{List, Sweep};

/// A comparison under way.
struct Comparison {
    subject: i64,
    list: List,
    walk: u32,
    started_us: i64,
    is_proved: bool,
    after: i64,
}

/// A stored relation, seen from the owner of the list.
struct Member {
    other: i64,
    walk: Option<u32>,
    last_seen_us: i64,
}

const fn name_of(list: List) -> &'static str {
    match list {
        List::Following => "following",
        List::Followers => "followers",
    }
}

impl Work<'_> {
    /// Begins to compare a list that was walked whole with what is stored. A newer walk takes the
    /// place of an older one.
    pub(super) fn begin_sweep(&mut self, sweep: &Sweep) -> Result<(), StoreError> {
        let subject = self.followed(sweep.subject);
        self.kind_of(subject)?;
        let list = sweep.walk.list;
        // A list that shows nobody though the profile counts some is hidden and proves nothing.
        let is_proved = if self.counts_some(subject, list)? {
            match self.items_shown(subject, sweep)? {
                Some(0) => return Ok(()),
                Some(_) => true,
                // No cursor tells: somebody whom the walk did show is looked for first.
                None => false,
            }
        } else {
            true
        };
        self.send(
            "INSERT INTO sweeps AS known(subject, list, walk, started_us, proved, after)
             VALUES (?1, ?2, ?3, ?4, ?5, 0)
             ON CONFLICT (subject, list) DO UPDATE SET walk = excluded.walk,
               started_us = excluded.started_us, proved = excluded.proved, after = 0
             WHERE (excluded.started_us, excluded.walk) > (known.started_us, known.walk)",
            cells![
                subject,
                name_of(list),
                sweep.walk.number,
                sweep.started.0,
                is_proved
            ],
        )?;
        self.memory.has_sweeps = true;
        Ok(())
    }

    /// How many items the walk has shown, by its cursor.
    fn items_shown(&self, subject: i64, sweep: &Sweep) -> Result<Option<i64>, StoreError> {
        let items = self.database.only(
            "SELECT max(items) FROM cursors
                 WHERE subject = ?1 AND walk = ?2 AND started_us = ?3",
            cells![subject, sweep.walk.number, sweep.started.0],
            |row| row.get(0),
        )?;
        Ok(items)
    }

    fn counts_some(&self, subject: i64, list: List) -> Result<bool, StoreError> {
        let sql = match list {
            List::Following => "SELECT 1 FROM users WHERE key = ?1 AND following_count > 0",
            List::Followers => "SELECT 1 FROM users WHERE key = ?1 AND followers_count > 0",
        };
        self.database.exists(sql, cells![subject])
    }

    /// Goes on with one stretch of one list; says whether there was any.
    pub(super) fn sweep_on(&mut self) -> Result<bool, StoreError> {
        if !self.memory.has_sweeps {
            return Ok(false);
        }
        let Some(comparison) = self.first_comparison()? else {
            self.memory.has_sweeps = false;
            return Ok(false);
        };
        let limit = self.page_limit();
        let members = self.members_after(&comparison, limit)?;
        self.count_steps(members.len());
        let after = members.last().map(|last| last.other);
        let after = after.filter(|_| members.len() == limit);
        if comparison.is_proved {
            self.sweep_out(&comparison, &members)?;
            self.move_comparison(&comparison, true, after)?;
        } else if members
            .iter()
            .any(|member| member.walk >= Some(comparison.walk))
        {
            self.move_comparison(&comparison, true, Some(0))?;
        } else {
            self.move_comparison(&comparison, false, after)?;
        }
        Ok(true)
    }

    fn first_comparison(&self) -> Result<Option<Comparison>, StoreError> {
        let comparison = self.database.first(
            "SELECT subject, list, walk, started_us, proved, after FROM sweeps
                 ORDER BY subject, list LIMIT 1",
            &[],
            |row| {
                let is_following = row.text(1)? == name_of(List::Following);
                Ok(Comparison {
                    subject: row.get(0)?,
                    list: if is_following {
                        List::Following
                    } else {
                        List::Followers
                    },
                    walk: row.get(2)?,
                    started_us: row.get(3)?,
                    is_proved: row.get(4)?,
                    after: row.get(5)?,
                })
            },
        )?;
        Ok(comparison)
    }

    fn members_after(
        &self,
        comparison: &Comparison,
        limit: usize,
    ) -> Result<Vec<Member>, StoreError> {
        let sql = match comparison.list {
            List::Following => {
                "SELECT target, following_walk, last_seen_us FROM user_relations
                 WHERE source = ?1 AND target > ?2 ORDER BY target LIMIT ?3"
            }
            List::Followers => {
                "SELECT source, followers_walk, last_seen_us FROM user_relations
                 WHERE target = ?1 AND source > ?2 ORDER BY source LIMIT ?3"
            }
        };
        self.database.all(
            sql,
            cells![comparison.subject, comparison.after, limit as i64],
            |row| {
                Ok(Member {
                    other: row.get(0)?,
                    walk: row.get(1)?,
                    last_seen_us: row.get(2)?,
                })
            },
        )
    }

    /// Remembers how far the comparison has come; without a place it is over.
    fn move_comparison(
        &self,
        comparison: &Comparison,
        is_proved: bool,
        after: Option<i64>,
    ) -> Result<(), StoreError> {
        let (subject, list) = (comparison.subject, name_of(comparison.list));
        match after {
            Some(after) => self.send(
                "UPDATE sweeps SET proved = ?3, after = ?4 WHERE subject = ?1 AND list = ?2",
                cells![subject, list, is_proved, after],
            ),
            None => self.send(
                "DELETE FROM sweeps WHERE subject = ?1 AND list = ?2",
                cells![subject, list],
            ),
        }
    }

    fn sweep_out(&self, comparison: &Comparison, members: &[Member]) -> Result<(), StoreError> {
        let started_us = comparison.started_us;
        if self.was_gone(comparison.subject, started_us)? {
            return Ok(());
        }
        for member in members {
            let was_shown = member.walk >= Some(comparison.walk);
            if was_shown
                || member.last_seen_us >= started_us
                || self.was_gone(member.other, started_us)?
            {
                continue;
            }
            let (source, target) = match comparison.list {
                List::Following => (comparison.subject, member.other),
                List::Followers => (member.other, comparison.subject),
            };
            self.invalidate_relation(source, target, started_us)?;
        }
        Ok(())
    }

    /// A member of lists has got another key: comparisons that have passed it come back to it.
    pub(super) fn rewind_sweeps(&self, member: i64) -> Result<(), StoreError> {
        if !self.memory.has_sweeps {
            return Ok(());
        }
        self.send(
            "UPDATE sweeps SET after = ?1 - 1 WHERE after >= ?1 AND CASE list
               WHEN 'following' THEN EXISTS (
                 SELECT 1 FROM user_relations WHERE source = subject AND target = ?1)
               ELSE EXISTS (
                 SELECT 1 FROM user_relations WHERE source = ?1 AND target = subject) END",
            cells![member],
        )?;
        Ok(())
    }

    /// Whether the user is known not to have been there at that time, or not to be there now.
    fn was_gone(&self, key: i64, at_us: i64) -> Result<bool, StoreError> {
        self.database.exists(
            "SELECT 1 FROM invalid_users WHERE key = ?1
             AND (until_us IS NULL OR (from_us <= ?2 AND until_us > ?2))",
            cells![key, at_us],
        )
    }

    fn invalidate_relation(
        &self,
        source: i64,
        target: i64,
        vanished_us: i64,
    ) -> Result<(), StoreError> {
        self.send(
            "INSERT INTO invalid_relations AS known(
               source, target, first_seen_us, last_seen_us, vanished_us)
             SELECT source, target, first_seen_us, last_seen_us, CAST(?3 AS BIGINT)
             FROM user_relations WHERE source = ?1 AND target = ?2
             ON CONFLICT (source, target) DO UPDATE SET
               first_seen_us = min(known.first_seen_us, excluded.first_seen_us),
               last_seen_us = max(known.last_seen_us, excluded.last_seen_us),
               vanished_us = max(known.vanished_us, excluded.vanished_us)",
            cells![source, target, vanished_us],
        )?;
        self.send(
            "DELETE FROM user_relations WHERE source = ?1 AND target = ?2",
            cells![source, target],
        )?;
        Ok(())
    }
}
