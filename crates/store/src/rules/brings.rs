//! Who is brought in by what they do with posts, one step further away than the post they do it
//! to: commenters, reposters, likers; and the authors of what is linked to a tag or a search, and
//! that itself.
//!
//! Each of these is a relation between two people (or a thing and a person) that goes through
//! stored rows. Like a follow relation it is looked at when one of its rows is written, and when
//! the depth at its beginning becomes known or smaller: no order of arrival can matter.

use super::conversations::REPEATED;
use super::relax::{HandOn, HandOnList, Place};
use super::steps::Along;
use super::work::Work;
use crate::StoreError;
use crate::cell::cells;
use kittiwake_model::{Expansion, Name, Role, Table};

pub(super) const REPOST: &str = "repost";
const LIKE: &str = "like";

/// What people write; its depth is its author's.
pub(super) fn is_writing(table: Table) -> bool {
    matches!(table, Table::Statuses | Table::Comments)
}

/// What is neither a person nor written by one.
pub(super) const fn is_thing(table: Table) -> bool {
    matches!(table, Table::Tags | Table::Objects)
}

impl Work<'_> {
    /// A link was written: whoever is behind it may be within reach now.
    pub(super) fn link_shows(&mut self, kind: &str, from: i64, to: i64) -> Result<(), StoreError> {
        let extent = &self.memory.extent;
        if !extent.looks_at_links() {
            return Ok(());
        }
        let has_steps = extent.steps_max(Along::Reposts) > 0;
        let table = self.table_of(to)?;
        let role = match table {
            Table::Statuses if kind == REPOST => Some(Role::Reposters),
            Table::Statuses if kind == LIKE => Some(Role::Likers),
            Table::Tags | Table::Objects => Some(Role::Authors),
            Table::Users | Table::Statuses | Table::Comments => None,
        };
        if let Some(role) = role
            && self.memory.extent.brings(role)
            && let Some(person) = self.person_behind(from)?
        {
            self.bring(to, person, 1)?;
        }
        if is_thing(table) && self.brings_post(from)? {
            self.bring(to, from, 0)?;
        }
        if has_steps && table == Table::Statuses && kind == REPOST {
            self.queue(from, HandOnList::Post, Place::default());
        }
        Ok(())
    }

    /// A comment was written, or it became known where it stands: its author may be within reach
    /// now, by what it answers and by the post under which it stands.
    pub(super) fn comment_shows(
        &mut self,
        author: Option<i64>,
        sources: [Option<i64>; 2],
    ) -> Result<(), StoreError> {
        if !self.memory.extent.brings(Role::Commenters) {
            return Ok(());
        }
        let Some(author) = author else {
            return Ok(());
        };
        for source in sources.into_iter().flatten() {
            if is_writing(self.table_of(source)?) {
                self.bring(source, author, 1)?;
            }
        }
        Ok(())
    }

    /// The user who did it: the object itself, or who wrote it.
    fn person_behind(&mut self, key: i64) -> Result<Option<i64>, StoreError> {
        if self.table_of(key)? == Table::Users {
            return Ok(Some(key));
        }
        self.author_of(key)
    }

    /// Whether it is a post that comes in by being linked to a tag or a search.
    fn brings_post(&mut self, key: i64) -> Result<bool, StoreError> {
        Ok(self.memory.extent.brings(Role::Posts) && self.table_of(key)? == Table::Statuses)
    }

    /// Brings a person or a post in, so many steps from `source`.
    fn bring(&mut self, source: i64, whom: i64, steps: u32) -> Result<(), StoreError> {
        let Some(depth) = self.reach_of(source)? else {
            return Ok(());
        };
        match self.rules {
            Some(rules) if depth <= rules.depth_max => {
                self.lower(whom, depth.saturating_add(steps))
            }
            Some(_) => Ok(()),
            None => {
                // Without rules nothing can be decided now; the source is looked at again later.
                self.queue_subject(source);
                Ok(())
            }
        }
    }

    /// Files something that somebody wrote, and hands its depth on to all who did something
    /// with it.
    pub(super) fn hand_on_post(&mut self, key: i64, rules: &Expansion) -> Result<(), StoreError> {
        self.count_steps(0);
        self.file(key, rules)?;
        let is_near = self.is_within_reach(key, rules)?;
        let is_post = self.table_of(key)? == Table::Statuses;
        let extent = &self.memory.extent;
        let has_reposts =
            (is_near && extent.brings(Role::Reposters)) || extent.steps_max(Along::Reposts) > 0;
        let has_comments = is_near && extent.brings(Role::Commenters);
        let has_replies = is_post && extent.steps_max(Along::Replies) > 0;
        let wanted = [
            (HandOnList::Comments, has_comments || has_replies),
            (HandOnList::Conversation, has_comments),
            (
                HandOnList::Likes,
                is_post && is_near && extent.brings(Role::Likers),
            ),
            (HandOnList::Reposts, is_post && has_reposts),
        ];
        for (list, is_wanted) in wanted {
            if is_wanted {
                let after = Place::default();
                self.hand_on_list(&HandOn { key, list, after }, rules)?;
            }
        }
        Ok(())
    }

    /// The depth that a list hands on, if its owner is within reach.
    fn depth_to_hand_on(&mut self, key: i64, rules: &Expansion) -> Result<Option<u32>, StoreError> {
        let depth = self.reach_of(key)?;
        Ok(depth
            .filter(|depth| *depth <= rules.depth_max)
            .map(|depth| depth.saturating_add(1)))
    }

    /// One stretch of the comments to a post.
    pub(super) fn hand_on_comments(
        &mut self,
        next: &HandOn,
        rules: &Expansion,
    ) -> Result<(), StoreError> {
        let is_direct = next.list == HandOnList::Comments;
        let mut depth = None;
        if self.memory.extent.brings(Role::Commenters) {
            depth = self.depth_to_hand_on(next.key, rules)?;
        }
        let mut distance = None;
        if is_direct {
            distance = self.distance_to_hand_on(Along::Replies, next.key, rules)?;
        }
        if depth.is_none() && distance.is_none() {
            self.count_steps(0);
            return Ok(());
        }
        let sql = if is_direct {
            "SELECT key, author FROM comments WHERE parent = ?1 AND key > ?2
             ORDER BY key LIMIT ?3"
        } else {
            "SELECT key, author FROM comments WHERE status = ?1 AND key > ?2
             ORDER BY key LIMIT ?3"
        };
        let limit = self.page_limit();
        let comments: Vec<(i64, Option<i64>)> =
            self.database
                .all(sql, cells![next.key, next.after.key, limit as i64], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
        self.count_steps(comments.len());
        if comments.len() == limit
            && let Some((last, _)) = comments.last()
        {
            self.queue_first(next.key, next.list, Place::of(*last));
        }
        for (comment, author) in comments {
            if let (Some(author), Some(depth)) = (author, depth) {
                self.lower(author, depth)?;
            }
            if let Some(distance) = distance {
                self.file_step(Along::Replies, comment, distance, rules)?;
            }
        }
        Ok(())
    }

    /// One stretch of the likes or reposts of a post.
    pub(super) fn hand_on_deeds(
        &mut self,
        next: &HandOn,
        rules: &Expansion,
    ) -> Result<(), StoreError> {
        let (key, list) = (next.key, next.list);
        let is_reposts = list == HandOnList::Reposts;
        let (role, kind) = if is_reposts {
            (Role::Reposters, REPOST)
        } else {
            (Role::Likers, LIKE)
        };
        let mut depth = None;
        if self.memory.extent.brings(role) {
            depth = self.depth_to_hand_on(key, rules)?;
        }
        let mut distance = None;
        if is_reposts {
            distance = self.distance_to_hand_on(Along::Reposts, key, rules)?;
        }
        if depth.is_none() && distance.is_none() {
            self.count_steps(0);
            return Ok(());
        }
        for from in self.linked_by(kind, next)? {
            if let Some(depth) = depth
                && let Some(person) = self.person_behind(from)?
            {
                self.lower(person, depth)?;
            }
            if let Some(distance) = distance {
                self.file_step(Along::Reposts, from, distance, rules)?;
            }
        }
        Ok(())
    }

    /// One stretch of what is linked to an object in one way; the rest is queued.
    fn linked_by(&mut self, kind: &str, next: &HandOn) -> Result<Vec<i64>, StoreError> {
        let limit = self.page_limit();
        let linked: Vec<i64> = self.database.all(
            "SELECT from_key FROM links WHERE to_key = ?1 AND kind = ?2 AND from_key > ?3
                 ORDER BY from_key LIMIT ?4",
            cells![next.key, kind, next.after.key, limit as i64],
            |row| row.get(0),
        )?;
        self.count_steps(linked.len());
        if linked.len() == limit
            && let Some(last) = linked.last()
        {
            self.queue_first(next.key, next.list, Place::of(*last));
        }
        Ok(linked)
    }

    /// One stretch of what is linked to a thing, in whatever way.
    pub(super) fn hand_on_linked(
        &mut self,
        next: &HandOn,
        rules: &Expansion,
    ) -> Result<(), StoreError> {
        let brings_authors = self.memory.extent.brings(Role::Authors);
        let brings_any = brings_authors || self.memory.extent.brings(Role::Posts);
        let is_wanted = brings_any && is_thing(self.table_of(next.key)?);
        let depth = self.depth_to_hand_on(next.key, rules)?;
        let Some(depth) = depth.filter(|_| is_wanted) else {
            self.count_steps(0);
            return Ok(());
        };
        let links = self.links_after(
            "SELECT kind, from_key FROM links WHERE to_key = ?1 AND (kind, from_key) > (?2, ?3)
             ORDER BY kind, from_key LIMIT ?4",
            next,
        )?;
        for (_, from) in links {
            if brings_authors && let Some(person) = self.person_behind(from)? {
                self.lower(person, depth)?;
            }
            if self.brings_post(from)? {
                self.lower(from, depth - 1)?;
            }
        }
        Ok(())
    }

    /// One stretch of what an object is linked to: it has become known who is behind it.
    pub(super) fn hand_on_origins(&mut self, next: &HandOn) -> Result<(), StoreError> {
        let from = next.key;
        let links = self.links_after(
            "SELECT kind, to_key FROM links WHERE from_key = ?1 AND (kind, to_key) > (?2, ?3)
             ORDER BY kind, to_key LIMIT ?4",
            next,
        )?;
        for (kind, to) in links {
            self.link_shows(&kind, from, to)?;
        }
        Ok(())
    }

    /// One stretch of links in the order of kind and key; the rest is queued.
    fn links_after(&mut self, sql: &str, next: &HandOn) -> Result<Vec<(Name, i64)>, StoreError> {
        let limit = self.page_limit();
        let after_kind = next.after.kind.as_deref().unwrap_or_default();
        let memory = &mut *self.memory;
        let links = self.database.all(
            sql,
            cells![next.key, after_kind, next.after.key, limit as i64],
            |row| Ok((memory.name(&row.text(0)?), row.get(1)?)),
        )?;
        self.count_steps(links.len());
        if links.len() == limit
            && let Some((kind, key)) = links.last()
        {
            let after = Place {
                us: None,
                kind: Some(kind.clone()),
                key: *key,
            };
            self.queue_first(next.key, next.list, after);
        }
        Ok(links)
    }

    /// One stretch of what a user wrote that is not a post.
    pub(super) fn hand_on_remarks(
        &mut self,
        next: &HandOn,
        rules: &Expansion,
    ) -> Result<(), StoreError> {
        if self.depth_to_hand_on(next.key, rules)?.is_none() {
            self.count_steps(0);
            return Ok(());
        }
        let limit = self.page_limit();
        let remarks: Vec<(i64, bool)> = self.database.all(
            "SELECT key, observed = ?4 FROM comments WHERE author = ?1 AND key > ?2
                 ORDER BY key LIMIT ?3",
            cells![next.key, next.after.key, limit as i64, REPEATED],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        self.count_steps(remarks.len());
        for (remark, is_post) in &remarks {
            if !is_post {
                self.queue(*remark, HandOnList::Post, Place::default());
            }
        }
        if remarks.len() == limit
            && let Some((last, _)) = remarks.last()
        {
            // Behind those that were just queued, so that they do not pile up in memory.
            self.queue(next.key, next.list, Place::of(*last));
        }
        Ok(())
    }
}
