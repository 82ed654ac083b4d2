//! Depths, and the filing of subjects that come within reach.
//!
//! The depth of a subject is the least number of follow relations from a seed. It is handed on
//! along stored relations whenever it becomes known or smaller, in bounded steps: what a
//! transaction cannot finish it leaves in the table `relax`, and the next one goes on. The result
//! is that of a breadth-first search over everything stored, whatever the order of arrival.

use super::work::{HandOn, HandOnList, Work};
use crate::StoreError;
use kittiwake_model::{Discovery, Expansion, Filed, Key, WorldTime};
use rusqlite::{OptionalExtension as _, params};
use std::sync::Arc;

/// Neighbours that are fetched at a time.
const NEIGHBOURS_MAX: usize = 500;

/// Where a list begins (keys are greater than 0) for a subject that has its frontier rows, and
/// for one whose rows have to be made first.
const FILED: i64 = 0;
pub(super) const UNFILED: i64 = -1;

impl<'a> Work<'a, '_> {
    /// Takes note of the rules; when they have changed, everybody is looked at again.
    pub(super) fn adopt(&mut self, expansion: &Arc<Expansion>) -> Result<(), StoreError> {
        if let Some(known) = &self.memory.expansion
            && (Arc::ptr_eq(known, expansion) || known == expansion)
        {
            return Ok(());
        }
        let rules = serde_json::to_string(&**expansion)
            .map_err(|error| StoreError::invalid(error.to_string()))?;
        self.execute(
            "INSERT INTO rules(name, value) VALUES ('expansion', ?1)
             ON CONFLICT DO UPDATE SET value = excluded.value",
            [rules],
        )?;
        self.memory.expansion = Some(expansion.clone());
        self.hand_on.push_back(HandOn {
            key: 0,
            list: HandOnList::Everybody,
            after: FILED,
        });
        Ok(())
    }

    pub(super) fn write_discoveries(
        &mut self,
        discoveries: &'a [Discovery],
        objects: &[i64],
        expansion: Option<&Expansion>,
    ) -> Result<(), StoreError> {
        let mut keys = Vec::with_capacity(discoveries.len());
        for discovery in discoveries {
            keys.push(self.key_of(&discovery.subject, objects)?);
        }
        for (discovery, key) in discoveries.iter().zip(keys) {
            let key = self.memory.follow(key);
            self.lower(key, discovery.depth, expansion)?;
            self.report.discovered.push(Key(key));
        }
        Ok(())
    }

    /// Hands depths on along one relation that was written or seen again.
    pub(super) fn hand_along(
        &mut self,
        source: i64,
        target: i64,
        expansion: Option<&Expansion>,
    ) -> Result<(), StoreError> {
        let Some(rules) = expansion else {
            // Without rules nothing can be decided now; the ends are looked at again later.
            for key in [source, target] {
                if self.depth_of(key)?.is_some() {
                    self.queue(key, UNFILED);
                }
            }
            return Ok(());
        };
        if rules.follow.following
            && let Some(depth) = self.depth_of(source)?
            && depth <= rules.depth_max
        {
            self.lower(target, depth.saturating_add(1), expansion)?;
        }
        if rules.follow.followers
            && let Some(depth) = self.depth_of(target)?
            && depth <= rules.depth_max
        {
            self.lower(source, depth.saturating_add(1), expansion)?;
        }
        Ok(())
    }

    pub(super) fn depth_of(&mut self, key: i64) -> Result<Option<u32>, StoreError> {
        if let Some(depth) = self.depths.get(&key) {
            return Ok(*depth);
        }
        let depth = if self.fresh.contains_key(&key) {
            None
        } else {
            self.connection
                .prepare_cached("SELECT depth FROM subjects WHERE key = ?1")?
                .query_row([key], |row| row.get(0))
                .optional()?
        };
        self.depths.insert(key, depth);
        Ok(depth)
    }

    /// Sets a depth if it is less than what is known, files the subject if that brings it within
    /// reach, and queues it to hand its depth on.
    pub(super) fn lower(
        &mut self,
        key: i64,
        depth: u32,
        expansion: Option<&Expansion>,
    ) -> Result<(), StoreError> {
        if self.depth_of(key)?.is_some_and(|known| known <= depth) {
            return Ok(());
        }
        self.execute(
            "INSERT INTO subjects(key, depth) VALUES (?1, ?2)
             ON CONFLICT DO UPDATE SET depth = excluded.depth",
            params![key, depth],
        )?;
        self.depths.insert(key, Some(depth));
        match expansion {
            Some(rules) if depth > rules.depth_max => Ok(()),
            Some(rules) => {
                self.file(key, rules)?;
                self.queue(key, FILED);
                Ok(())
            }
            None => {
                self.queue(key, UNFILED);
                Ok(())
            }
        }
    }

    pub(super) fn queue(&mut self, key: i64, after: i64) {
        for list in [HandOnList::Following, HandOnList::Followers] {
            self.hand_on.push_back(HandOn { key, list, after });
        }
    }

    /// Gives the subject a frontier row for every robot that visits its type.
    fn file(&mut self, key: i64, rules: &Expansion) -> Result<(), StoreError> {
        let (_, kind) = self.kind_of(key)?;
        let at_us = self.at_us();
        for filing in rules.robots.iter().filter(|filing| filing.kind == kind) {
            let inserted = self.execute(
                "INSERT OR IGNORE INTO frontier(subject, robot, lane, visits, due_us, state)
                 VALUES (?1, ?2, ?3, 0, ?4, x'')",
                params![key, &*filing.robot, &*filing.lane, at_us],
            )?;
            if inserted == 1 {
                self.report.filed.push(Filed {
                    subject: Key(key),
                    robot: filing.robot.clone(),
                    lane: filing.lane.clone(),
                    visits: 0,
                    due: WorldTime(at_us),
                });
            }
        }
        Ok(())
    }

    /// Hands depths on as far as this transaction may go.
    pub(super) fn hand_on_depths(&mut self, rules: &Expansion) -> Result<(), StoreError> {
        while self.steps_left > 0 {
            let next = match self.hand_on.pop_front() {
                Some(next) => next,
                None => match self.take_stored()? {
                    Some(next) => next,
                    None => return Ok(()),
                },
            };
            self.hand_on_one(next, rules)?;
        }
        Ok(())
    }

    fn hand_on_one(&mut self, next: HandOn, rules: &Expansion) -> Result<(), StoreError> {
        let key = self.memory.follow(next.key);
        let limit = self.steps_left.min(NEIGHBOURS_MAX);
        if next.list == HandOnList::Everybody {
            return self.look_at_everybody(next, limit, rules);
        }
        self.steps_left -= 1;
        let Some(depth) = self
            .depth_of(key)?
            .filter(|depth| *depth <= rules.depth_max)
        else {
            return Ok(());
        };
        let (wanted, sql) = if next.list == HandOnList::Following {
            (
                rules.follow.following,
                "SELECT target FROM user_relations WHERE source = ?1 AND target > ?2
                 ORDER BY target LIMIT ?3",
            )
        } else {
            (
                rules.follow.followers,
                "SELECT source FROM user_relations WHERE target = ?1 AND source > ?2
                 ORDER BY source LIMIT ?3",
            )
        };
        if next.after == UNFILED {
            self.file(key, rules)?;
        }
        if !wanted {
            return Ok(());
        }
        let neighbours: Vec<i64> = self
            .connection
            .prepare_cached(sql)?
            .query_map(params![key, next.after, limit as i64], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        self.steps_left = self.steps_left.saturating_sub(neighbours.len());
        if neighbours.len() == limit
            && let Some(last) = neighbours.last()
        {
            self.hand_on.push_front(HandOn {
                key,
                after: *last,
                ..next
            });
        }
        for neighbour in neighbours {
            self.lower(neighbour, depth.saturating_add(1), Some(rules))?;
        }
        Ok(())
    }

    /// One stretch of all subjects, after the rules have changed: whoever is within reach now is
    /// filed and hands its depth on.
    fn look_at_everybody(
        &mut self,
        next: HandOn,
        limit: usize,
        rules: &Expansion,
    ) -> Result<(), StoreError> {
        let subjects: Vec<(i64, u32)> = self
            .connection
            .prepare_cached("SELECT key, depth FROM subjects WHERE key > ?1 ORDER BY key LIMIT ?2")?
            .query_map(params![next.after, limit as i64], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .collect::<Result<_, _>>()?;
        self.steps_left = self.steps_left.saturating_sub(subjects.len().max(1));
        for (key, depth) in &subjects {
            if *depth <= rules.depth_max {
                self.file(*key, rules)?;
                self.queue(*key, FILED);
            }
        }
        if subjects.len() == limit
            && let Some((last, _)) = subjects.last()
        {
            // Behind those that were just queued, so that they do not pile up in memory.
            self.hand_on.push_back(HandOn {
                after: *last,
                ..next
            });
        }
        Ok(())
    }

    fn take_stored(&self) -> Result<Option<HandOn>, StoreError> {
        let next = self
            .connection
            .prepare_cached("SELECT key, list, after FROM relax ORDER BY key DESC, list LIMIT 1")?
            .query_row([], |row| {
                Ok(HandOn {
                    key: row.get(0)?,
                    list: HandOnList::from_name(row.get_ref(1)?.as_str().unwrap_or_default()),
                    after: row.get(2)?,
                })
            })
            .optional()?;
        if let Some(next) = next {
            self.execute(
                "DELETE FROM relax WHERE key = ?1 AND list = ?2",
                params![next.key, next.list.name()],
            )?;
        }
        Ok(next)
    }

    /// Leaves what could not be finished for the next transaction; says whether there is any.
    pub(super) fn store_backlog(&mut self) -> Result<bool, StoreError> {
        for next in std::mem::take(&mut self.hand_on) {
            self.execute(
                "INSERT INTO relax(key, list, after) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET after = min(after, excluded.after)",
                params![self.memory.follow(next.key), next.list.name(), next.after],
            )?;
        }
        Ok(self
            .connection
            .prepare_cached("SELECT 1 FROM relax LIMIT 1")?
            .exists([])?)
    }
}
