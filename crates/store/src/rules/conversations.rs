//! Conversations: a post that answers another has a row in `comments` beside its own.
//!
//! The row follows from the post alone, and its root from the posts above it: the first post of
//! the conversation, known when all of them are stored and the topmost answers nobody. (A post
//! without an author, or of which only a list has told, was not described yet: whether it answers
//! somebody is not known.) A root is handed down to the answers when it becomes known. When a post turns out to answer another than
//! before, the roots of everything below it are taken back first and found again only when no
//! doubt is left: so a circle of answers, in which nobody is first, ends without a root.
//!
//! Networks that keep comments apart from posts write those rows themselves; theirs are left alone.

use super::relax::{HandOn, HandOnList, Place};
use super::work::Work;
use super::written::Bearings;
use crate::StoreError;
use crate::cell::cells;
use crate::error::unreadable;
use crate::record;

/// What the column `observed` of a row holds that only repeats what its post says.
pub(super) const REPEATED: &str = "{}";

/// Whether a row holds nothing but what a list has told.
fn is_named(key: i64, observed: &str) -> Result<bool, StoreError> {
    let newest = record::newest_stamp(observed).map_err(|error| unreadable(key, &error))?;
    Ok(newest.is_named())
}

/// An answer as its row in `comments` shows it.
struct Answer {
    key: i64,
    has_root: bool,
    author: Option<i64>,
    /// The row repeats what a post says.
    is_post: bool,
}

impl Work<'_> {
    /// Keeps the row in `comments` what the post says.
    pub(super) fn settle_reply(
        &mut self,
        key: i64,
        before: Option<Bearings>,
        after: Bearings,
        is_unmet: bool,
    ) -> Result<(), StoreError> {
        let Some(before) = before else {
            return self.begin_reply(key, after, is_unmet);
        };
        if before == after {
            return Ok(());
        }
        if before.parent != after.parent || before.is_first() != after.is_first() {
            return self.move_reply(key, after);
        }
        if after.parent.is_some() {
            self.send(
                "UPDATE comments SET author = ?2, created_us = ?3
                 WHERE key = ?1 AND observed = ?4",
                cells![key, after.author, after.created_us, REPEATED],
            )?;
            let root = self.root_of(key)?;
            self.comment_shows(after.author, [after.parent, root])?;
        }
        Ok(())
    }

    /// A post that was not stored before.
    fn begin_reply(&mut self, key: i64, after: Bearings, is_unmet: bool) -> Result<(), StoreError> {
        let is_awaited = !is_unmet || self.answered.contains(&key);
        let Some(parent) = after.parent else {
            if is_awaited && after.is_first() {
                self.queue(key, HandOnList::Answers, Place::default());
            }
            return Ok(());
        };
        self.answered.insert(parent);
        let root = if self.has_doubts() {
            self.queue(key, HandOnList::Root, Place::default());
            None
        } else {
            self.root_of(parent)?
        };
        self.put_reply(key, after, root)?;
        if is_awaited && root.is_some() {
            self.queue(key, HandOnList::Answers, Place::default());
        }
        self.comment_shows(after.author, [after.parent, root])
    }

    /// A post that answers another than before, or nobody any more.
    fn move_reply(&mut self, key: i64, after: Bearings) -> Result<(), StoreError> {
        if after.parent.is_some() {
            self.put_reply(key, after, None)?;
        } else {
            self.send(
                "DELETE FROM comments WHERE key = ?1 AND observed = ?2",
                cells![key, REPEATED],
            )?;
        }
        self.doubt(key);
        self.queue(key, HandOnList::Root, Place::default());
        self.comment_shows(after.author, [after.parent, None])
    }

    /// Two posts have become one: its row and the conversation below it are made anew.
    pub(super) fn settle_merged_reply(&mut self, key: i64) -> Result<(), StoreError> {
        match self.stored_bearings(key)? {
            Some(after) => self.move_reply(key, after),
            None => Ok(()),
        }
    }

    /// Two comments of a network that keeps them apart have become one.
    pub(super) fn settle_merged_comment(&mut self, key: i64) -> Result<(), StoreError> {
        let found: Option<[Option<i64>; 3]> = self.database.first(
            "SELECT author, parent, status FROM comments WHERE key = ?1",
            cells![key],
            |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]),
        )?;
        match found {
            Some([author, parent, status]) => self.comment_shows(author, [parent, status]),
            None => Ok(()),
        }
    }

    fn stored_bearings(&self, key: i64) -> Result<Option<Bearings>, StoreError> {
        let bearings = self.database.first(
            "SELECT author, reply_to, created_us, observed FROM statuses WHERE key = ?1",
            cells![key],
            |row| {
                Ok(Bearings {
                    author: row.get(0)?,
                    parent: row.get(1)?,
                    status: None,
                    created_us: row.get(2)?,
                    is_named: is_named(key, &row.text(3)?)?,
                })
            },
        )?;
        Ok(bearings)
    }

    fn put_reply(&self, key: i64, reply: Bearings, root: Option<i64>) -> Result<(), StoreError> {
        self.send(
            "INSERT INTO comments(key, status, parent, root, author, created_us, observed)
             VALUES (?1, ?2, ?3, ?2, ?4, ?5, ?6)
             ON CONFLICT (key) DO UPDATE SET status = excluded.status, parent = excluded.parent,
               root = excluded.root, author = excluded.author, created_us = excluded.created_us
             WHERE comments.observed = ?6",
            cells![
                key,
                root,
                reply.parent,
                reply.author,
                reply.created_us,
                REPEATED
            ],
        )?;
        Ok(())
    }

    /// The first post of the conversation that a post stands in, as far as it is known.
    fn root_of(&self, post: i64) -> Result<Option<i64>, StoreError> {
        if self
            .fresh
            .get(&post)
            .is_some_and(|fresh| !fresh.is_described)
        {
            return Ok(None);
        }
        let root: Option<Option<i64>> = self.database.first(
            "SELECT CASE WHEN reply_to IS NOT NULL
                          THEN (SELECT root FROM comments WHERE key = ?1 AND observed = ?2)
                        WHEN author IS NOT NULL THEN key END, observed
                 FROM statuses WHERE key = ?1",
            cells![post, REPEATED],
            |row| {
                let root: Option<i64> = row.get(0)?;
                let is_doubtful = root == Some(post) && is_named(post, &row.text(1)?)?;
                Ok(root.filter(|_| !is_doubtful))
            },
        )?;
        Ok(root.flatten())
    }

    /// What stands below the post has perhaps another root now. In front of everything else: no
    /// root is found again while there are doubts.
    fn doubt(&mut self, key: i64) {
        self.queue_first(key, HandOnList::Uproot, Place::default());
    }

    /// Takes one thing off the queue of conversations.
    pub(super) fn trace(&mut self, next: &HandOn) -> Result<(), StoreError> {
        match next.list {
            HandOnList::Uproot => self.uproot_answers(next),
            HandOnList::Root => self.find_root(next.key),
            HandOnList::Answers => self.root_answers(next),
            HandOnList::LostFollowing | HandOnList::LostFollowers => self.reunite(next),
            _ => self.look_at_posts(next),
        }
    }

    fn uproot_answers(&mut self, next: &HandOn) -> Result<(), StoreError> {
        let answers = self.answers_after(next)?;
        for answer in answers {
            if answer.is_post && answer.has_root {
                self.set_root(answer.key, None)?;
                self.doubt(answer.key);
            }
        }
        Ok(())
    }

    fn find_root(&mut self, key: i64) -> Result<(), StoreError> {
        self.count_steps(0);
        let Some(reply) = self.stored_bearings(key)? else {
            return Ok(());
        };
        if let Some(parent) = reply.parent {
            let Some(root) = self.root_of(parent)? else {
                return Ok(());
            };
            self.set_root(key, Some(root))?;
            self.comment_shows(reply.author, [None, Some(root)])?;
        } else if !reply.is_first() {
            return Ok(());
        }
        self.queue(key, HandOnList::Answers, Place::default());
        Ok(())
    }

    fn root_answers(&mut self, next: &HandOn) -> Result<(), StoreError> {
        let Some(root) = self.root_of(next.key)? else {
            self.count_steps(0);
            return Ok(());
        };
        for answer in self.answers_after(next)? {
            if answer.is_post && !answer.has_root {
                self.set_root(answer.key, Some(root))?;
                self.comment_shows(answer.author, [None, Some(root)])?;
                self.queue(answer.key, HandOnList::Answers, Place::default());
            }
        }
        Ok(())
    }

    fn set_root(&self, key: i64, root: Option<i64>) -> Result<(), StoreError> {
        self.send(
            "UPDATE comments SET status = ?2, root = ?2 WHERE key = ?1 AND observed = ?3",
            cells![key, root, REPEATED],
        )?;
        Ok(())
    }

    /// One stretch of the answers to a post; the rest is queued.
    fn answers_after(&mut self, next: &HandOn) -> Result<Vec<Answer>, StoreError> {
        let limit = self.page_limit();
        let answers: Vec<Answer> = self.database.all(
            "SELECT key, root IS NOT NULL, author, observed = ?4 FROM comments
                 WHERE parent = ?1 AND key > ?2 ORDER BY key LIMIT ?3",
            cells![next.key, next.after.key, limit as i64, REPEATED],
            |row| {
                Ok(Answer {
                    key: row.get(0)?,
                    has_root: row.get(1)?,
                    author: row.get(2)?,
                    is_post: row.get(3)?,
                })
            },
        )?;
        self.count_steps(answers.len());
        if answers.len() == limit
            && let Some(last) = answers.last()
        {
            self.queue_first(next.key, next.list, Place::of(last.key));
        }
        Ok(answers)
    }

    /// One stretch of all posts of a file that was made before there were rows of answers.
    fn look_at_posts(&mut self, next: &HandOn) -> Result<(), StoreError> {
        let limit = self.page_limit();
        let posts: Vec<(i64, Bearings, bool)> = self.database.all(
            "SELECT key, author, reply_to, created_us,
                        EXISTS (SELECT 1 FROM comments WHERE comments.key = statuses.key), observed
                 FROM statuses WHERE key > ?1 ORDER BY key LIMIT ?2",
            cells![next.after.key, limit as i64],
            |row| {
                let key = row.get(0)?;
                let bearings = Bearings {
                    author: row.get(1)?,
                    parent: row.get(2)?,
                    status: None,
                    created_us: row.get(3)?,
                    is_named: is_named(key, &row.text(5)?)?,
                };
                Ok((key, bearings, row.get(4)?))
            },
        )?;
        self.count_steps(posts.len());
        for (key, bearings, has_row) in &posts {
            if bearings.parent.is_some() && !has_row {
                self.begin_reply(*key, *bearings, false)?;
            }
        }
        if posts.len() == limit
            && let Some((last, ..)) = posts.last()
        {
            self.queue(next.key, next.list, Place::of(*last));
        }
        Ok(())
    }
}
