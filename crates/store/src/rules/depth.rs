//! Depths, and how they are handed on.
//!
//! The depth of a subject is the least number of steps from a seed: along follow relations, and
//! along what people do with posts (see `brings`). A post is as near as its author. A depth is
//! handed on along everything stored whenever it becomes known or smaller, in bounded steps (see
//! `relax`). The result is that of a breadth-first search over everything stored, whatever the
//! order of arrival. Depths never rise: a relation that has vanished still counts.

use super::brings::{is_thing, is_writing};
use super::relax::{HandOn, HandOnList, Place};
use super::statements::Held;
use super::work::Work;
use crate::StoreError;
use crate::cell::cells;
use kittiwake_model::{Discovery, Expansion, Key, Role, Table};
use std::sync::Arc;

/// Where all lists of a subject begin (keys are greater than 0) for one that has its frontier
/// rows, and for one whose rows have to be made first.
const FILED: i64 = 0;
const UNFILED: i64 = -1;

impl<'a> Work<'a> {
    /// Takes note of the rules; when they have changed, everybody is looked at again.
    pub(super) fn adopt(&mut self, expansion: &Arc<Expansion>) -> Result<(), StoreError> {
        if let Some(known) = &self.memory.expansion
            && (Arc::ptr_eq(known, expansion) || known == expansion)
        {
            return Ok(());
        }
        let rules = serde_json::to_string(&**expansion)
            .map_err(|error| StoreError::invalid(error.to_string()))?;
        self.send(
            "INSERT INTO rules(name, value) VALUES ('expansion', ?1)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            cells![rules],
        )?;
        self.memory.adopt(expansion.clone());
        self.look_at_everybody_again();
        Ok(())
    }

    pub(super) fn look_at_everybody_again(&mut self) {
        self.queue(0, HandOnList::Everybody, Place::default());
    }

    pub(super) fn write_discoveries(
        &mut self,
        discoveries: &'a [Discovery],
        objects: &[i64],
    ) -> Result<(), StoreError> {
        let mut keys = Vec::with_capacity(discoveries.len());
        for discovery in discoveries {
            keys.push(self.key_of(&discovery.subject, objects)?);
        }
        for (discovery, key) in discoveries.iter().zip(keys) {
            let key = self.memory.follow(key);
            self.lower(key, discovery.depth)?;
            self.report.discovered.push(Key(key));
        }
        Ok(())
    }

    /// Hands depths on along one relation that was written or seen again.
    pub(super) fn hand_along(&mut self, source: i64, target: i64) -> Result<(), StoreError> {
        let Some(rules) = self.rules else {
            // Without rules nothing can be decided now; the ends are looked at again later.
            for key in [source, target] {
                if self.depth_of(key)?.is_some() {
                    self.queue_subject(key);
                }
            }
            return Ok(());
        };
        if rules.follow.following
            && let Some(depth) = self.depth_of(source)?
            && depth <= rules.depth_max
        {
            self.lower(target, depth.saturating_add(1))?;
        }
        if rules.follow.followers
            && let Some(depth) = self.depth_of(target)?
            && depth <= rules.depth_max
        {
            self.lower(source, depth.saturating_add(1))?;
        }
        Ok(())
    }

    /// The subject's own depth. A post has its author's beside it: see [`Self::reach_of`].
    pub(super) fn depth_of(&mut self, key: i64) -> Result<Option<u32>, StoreError> {
        if let Some(depth) = self.depths.get(&key) {
            return Ok(*depth);
        }
        let depth = if self.fresh.contains_key(&key) {
            None
        } else {
            self.database
                .first(Held::SelectDepth, cells![key], |row| row.get(0))?
        };
        self.depths.insert(key, depth);
        Ok(depth)
    }

    /// How far from a seed an object is: a subject by its own depth, what somebody wrote also by
    /// its author's.
    pub(super) fn reach_of(&mut self, key: i64) -> Result<Option<u32>, StoreError> {
        let own = self.depth_of(key)?;
        let by_author = match self.author_of(key)? {
            Some(author) => self.depth_of(author)?,
            None => None,
        };
        Ok(own.into_iter().chain(by_author).min())
    }

    pub(super) fn is_within_reach(
        &mut self,
        key: i64,
        rules: &Expansion,
    ) -> Result<bool, StoreError> {
        let reach = self.reach_of(key)?;
        Ok(reach.is_some_and(|depth| depth <= rules.depth_max))
    }

    /// Who wrote it, if it is something written and that is known.
    pub(super) fn author_of(&mut self, key: i64) -> Result<Option<i64>, StoreError> {
        if let Some(author) = self.authors.get(&key) {
            return Ok(*author);
        }
        let sql = match self.table_of(key)? {
            Table::Statuses => "SELECT author FROM statuses WHERE key = ?1",
            Table::Comments => "SELECT author FROM comments WHERE key = ?1",
            Table::Users | Table::Tags | Table::Objects => return Ok(None),
        };
        let author: Option<Option<i64>> =
            self.database.first(sql, cells![key], |row| row.get(0))?;
        Ok(author.flatten())
    }

    /// Sets a depth if it is less than what is known, files the subject if that brings it within
    /// reach, and queues it to hand its depth on.
    pub(super) fn lower(&mut self, key: i64, depth: u32) -> Result<(), StoreError> {
        if self.depth_of(key)?.is_some_and(|known| known <= depth) {
            return Ok(());
        }
        self.send(Held::SetDepth, cells![key, depth])?;
        self.depths.insert(key, Some(depth));
        match self.rules {
            Some(rules) if depth > rules.depth_max => {}
            Some(rules) => {
                self.file(key, rules)?;
                self.queue(key, HandOnList::Subject, Place::of(FILED));
            }
            None => self.queue_subject(key),
        }
        Ok(())
    }

    /// Has the subject filed and its depth handed on later.
    pub(super) fn queue_subject(&mut self, key: i64) {
        self.queue(key, HandOnList::Subject, Place::of(UNFILED));
    }

    /// Takes one thing off the queue of depths.
    pub(super) fn hand_on_one(
        &mut self,
        next: &HandOn,
        rules: &Expansion,
    ) -> Result<(), StoreError> {
        match next.list {
            HandOnList::Everybody => self.look_at_everybody(next, rules),
            HandOnList::Subject => self.hand_on_subject(next, rules),
            HandOnList::Post => self.hand_on_post(next.key, rules),
            _ => self.hand_on_list(next, rules),
        }
    }

    fn hand_on_subject(&mut self, next: &HandOn, rules: &Expansion) -> Result<(), StoreError> {
        let key = next.key;
        if next.after.key == UNFILED {
            self.file(key, rules)?;
        }
        let table = self.table_of(key)?;
        if is_writing(table) {
            return self.hand_on_post(key, rules);
        }
        self.count_steps(0);
        let is_near = self
            .depth_of(key)?
            .is_some_and(|depth| depth <= rules.depth_max);
        if !is_near {
            return Ok(());
        }
        let extent = &self.memory.extent;
        let brings_linked = extent.brings(Role::Authors) || extent.brings(Role::Posts);
        let wanted = [
            (HandOnList::Following, rules.follow.following),
            (HandOnList::Followers, rules.follow.followers),
            (HandOnList::Posts, extent.looks_at_posts()),
            (HandOnList::Remarks, extent.looks_at_posts()),
            (HandOnList::Linked, is_thing(table) && brings_linked),
        ];
        for (list, is_wanted) in wanted {
            if is_wanted {
                let after = Place::default();
                self.hand_on_list(&HandOn { key, list, after }, rules)?;
            }
        }
        Ok(())
    }

    /// Goes through one stretch of a list, if its owner is within reach.
    pub(super) fn hand_on_list(
        &mut self,
        next: &HandOn,
        rules: &Expansion,
    ) -> Result<(), StoreError> {
        match next.list {
            HandOnList::Posts => self.hand_on_to_posts(next, rules),
            HandOnList::Remarks => self.hand_on_remarks(next, rules),
            HandOnList::Comments | HandOnList::Conversation => self.hand_on_comments(next, rules),
            HandOnList::Reposts | HandOnList::Likes => self.hand_on_deeds(next, rules),
            HandOnList::Linked => self.hand_on_linked(next, rules),
            HandOnList::Origins => self.hand_on_origins(next),
            _ => self.hand_on_relations(next, rules),
        }
    }

    fn hand_on_relations(&mut self, next: &HandOn, rules: &Expansion) -> Result<(), StoreError> {
        // Relations that have vanished count as well, so that it does not matter when they did.
        let (wanted, sql) = if next.list == HandOnList::Following {
            (
                rules.follow.following,
                "SELECT target FROM user_relations WHERE source = ?1 AND target > ?2
                 UNION SELECT target FROM invalid_relations WHERE source = ?1 AND target > ?2
                 ORDER BY target LIMIT ?3",
            )
        } else {
            (
                rules.follow.followers,
                "SELECT source FROM user_relations WHERE target = ?1 AND source > ?2
                 UNION SELECT source FROM invalid_relations WHERE target = ?1 AND source > ?2
                 ORDER BY source LIMIT ?3",
            )
        };
        let depth = self.depth_of(next.key)?;
        let Some(depth) = depth.filter(|depth| wanted && *depth <= rules.depth_max) else {
            self.count_steps(0);
            return Ok(());
        };
        let limit = self.page_limit();
        let neighbours: Vec<i64> =
            self.database
                .all(sql, cells![next.key, next.after.key, limit as i64], |row| {
                    row.get(0)
                })?;
        self.count_steps(neighbours.len());
        if neighbours.len() == limit
            && let Some(last) = neighbours.last()
        {
            self.queue_first(next.key, next.list, Place::of(*last));
        }
        for neighbour in neighbours {
            self.lower(neighbour, depth.saturating_add(1))?;
        }
        Ok(())
    }

    /// One stretch of all subjects, after the rules have changed: whoever is within reach now is
    /// filed and hands its depth on.
    fn look_at_everybody(&mut self, next: &HandOn, rules: &Expansion) -> Result<(), StoreError> {
        let limit = self.page_limit();
        let subjects: Vec<(i64, u32)> = self.database.all(
            "SELECT key, depth FROM subjects WHERE key > ?1 ORDER BY key LIMIT ?2",
            cells![next.after.key, limit as i64],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        self.count_steps(subjects.len());
        for (key, depth) in &subjects {
            if *depth <= rules.depth_max {
                self.file(*key, rules)?;
                self.queue(*key, HandOnList::Subject, Place::of(FILED));
            }
        }
        if subjects.len() == limit
            && let Some((last, _)) = subjects.last()
        {
            // Behind those that were just queued, so that they do not pile up in memory.
            self.queue(next.key, next.list, Place::of(*last));
        }
        Ok(())
    }
}
