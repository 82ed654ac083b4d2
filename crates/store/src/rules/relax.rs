//! The queue of everything that follows from what is stored.
//!
//! Depths are handed on along relations and posts, conversations learn how they began, vanished
//! relations are swept: all of it in bounded steps. What a transaction cannot finish it leaves in
//! the tables `relax` and `sweeps`, and the next one goes on.

use super::work::Work;
use crate::StoreError;
use crate::cell::cells;
use crate::database::Database;
use kittiwake_model::Name;
use std::collections::{BTreeSet, VecDeque};

/// Rows that are fetched at a time.
const PAGE_MAX: usize = 500;

/// One list of one object that still has to be gone through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HandOn {
    pub key: i64,
    pub list: HandOnList,
    pub after: Place,
}

/// How far a list was gone through: the last place that was reached in its order. A list has an
/// order by key, by time and key, or by kind and key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Place {
    pub us: Option<i64>,
    pub kind: Option<Name>,
    pub key: i64,
}

impl Place {
    pub(super) fn of(key: i64) -> Self {
        Self {
            key,
            ..Self::default()
        }
    }
}

/// What is gone through, in the order in which stored rows are taken up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum HandOnList {
    /// The answers to a post whose conversation has perhaps another beginning now.
    Uproot,
    /// Not a list: the beginning of the post's own conversation.
    Root,
    /// The answers to a post whose conversation's beginning is known.
    Answers,
    /// All posts: those that answer others get their rows in `comments`.
    Replies,
    /// Relations of a user who is gone that were taken for vanished, as their source.
    LostFollowing,
    /// The same, as their target.
    LostFollowers,
    /// All lists of a subject.
    Subject,
    Following,
    Followers,
    /// The posts of a user.
    Posts,
    /// What a user wrote that is not a post.
    Remarks,
    /// All lists of a post or a comment.
    Post,
    /// Comments that answer it.
    Comments,
    /// Comments in the conversation that it began.
    Conversation,
    Reposts,
    Likes,
    /// Whatever is linked to a subject that is neither a user nor a post.
    Linked,
    /// Whatever an object is linked to.
    Origins,
    /// All subjects.
    Everybody,
}

impl HandOnList {
    const ALL: [Self; 19] = [
        Self::Uproot,
        Self::Root,
        Self::Answers,
        Self::Replies,
        Self::LostFollowing,
        Self::LostFollowers,
        Self::Subject,
        Self::Following,
        Self::Followers,
        Self::Posts,
        Self::Remarks,
        Self::Post,
        Self::Comments,
        Self::Conversation,
        Self::Reposts,
        Self::Likes,
        Self::Linked,
        Self::Origins,
        Self::Everybody,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Uproot => "uproot",
            Self::Root => "root",
            Self::Answers => "answers",
            Self::Replies => "replies",
            Self::LostFollowing => "lost following",
            Self::LostFollowers => "lost followers",
            Self::Subject => "subject",
            Self::Following => "following",
            Self::Followers => "followers",
            Self::Posts => "posts",
            Self::Remarks => "remarks",
            Self::Post => "post",
            Self::Comments => "comments",
            Self::Conversation => "conversation",
            Self::Reposts => "reposts",
            Self::Likes => "likes",
            Self::Linked => "linked",
            Self::Origins => "origins",
            Self::Everybody => "everybody",
        }
    }

    /// Whether it is about conversations or lost relations, which no rules are needed for.
    fn is_of_conversations(self) -> bool {
        self <= Self::LostFollowers
    }

    /// The lists that have rows in the file.
    pub(super) fn stored(database: &dyn Database) -> Result<BTreeSet<Self>, StoreError> {
        let mut stored = BTreeSet::new();
        for list in Self::ALL {
            if list.has_rows(database)? {
                stored.insert(list);
            }
        }
        Ok(stored)
    }

    fn has_rows(self, database: &dyn Database) -> Result<bool, StoreError> {
        database.exists(
            "SELECT 1 FROM relax WHERE list = ?1 LIMIT 1",
            cells![self.name()],
        )
    }
}

impl Work<'_> {
    /// Goes on with what follows, as far as this transaction may go.
    pub(super) fn work_off(&mut self) -> Result<(), StoreError> {
        while self.steps_left > 0 {
            if let Some(next) = self.next_of_conversations()? {
                self.trace(&self.followed_to_now(next))?;
            } else if let Some(rules) = self.rules
                && let Some(next) = self.next_of_depths()?
            {
                self.hand_on_one(&self.followed_to_now(next), rules)?;
            } else if !self.sweep_on()? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The object may have got another key since it was queued.
    fn followed_to_now(&self, next: HandOn) -> HandOn {
        HandOn {
            key: self.memory.follow(next.key),
            ..next
        }
    }

    /// Puts something behind what waits already.
    pub(super) fn queue(&mut self, key: i64, list: HandOnList, after: Place) {
        self.queue_of(list).push_back(HandOn { key, list, after });
    }

    /// Goes on with the same list before anything else.
    pub(super) fn queue_first(&mut self, key: i64, list: HandOnList, after: Place) {
        self.queue_of(list).push_front(HandOn { key, list, after });
    }

    fn queue_of(&mut self, list: HandOnList) -> &mut VecDeque<HandOn> {
        if list.is_of_conversations() {
            &mut self.conversations
        } else {
            &mut self.hand_on
        }
    }

    /// How many rows of a list may be fetched now.
    pub(super) fn page_limit(&self) -> usize {
        self.steps_left.clamp(1, PAGE_MAX)
    }

    /// Counts one look at a list and the rows it gave.
    pub(super) fn count_steps(&mut self, rows: usize) {
        self.steps_left = self.steps_left.saturating_sub(1 + rows);
    }

    /// Whether beginnings of conversations are in doubt: then none is to be believed.
    pub(super) fn has_doubts(&self) -> bool {
        let first = self.conversations.front();
        first.is_some_and(|next| next.list == HandOnList::Uproot)
            || self.memory.queued.contains(&HandOnList::Uproot)
    }

    fn next_of_conversations(&mut self) -> Result<Option<HandOn>, StoreError> {
        // Doubts stand in front of everything else, those of earlier transactions too.
        let first = self.conversations.front();
        if first.is_none_or(|next| next.list != HandOnList::Uproot)
            && let Some(doubt) = self.take_stored(HandOnList::Uproot)?
        {
            return Ok(Some(doubt));
        }
        if let Some(next) = self.conversations.pop_front() {
            return Ok(Some(next));
        }
        self.take_first_stored(HandOnList::is_of_conversations)
    }

    fn next_of_depths(&mut self) -> Result<Option<HandOn>, StoreError> {
        if let Some(next) = self.hand_on.pop_front() {
            return Ok(Some(next));
        }
        self.take_first_stored(|list| !list.is_of_conversations())
    }

    fn take_first_stored(
        &mut self,
        is_wanted: fn(HandOnList) -> bool,
    ) -> Result<Option<HandOn>, StoreError> {
        let queued: Vec<HandOnList> = self.memory.queued.iter().copied().collect();
        for list in queued.into_iter().filter(|list| is_wanted(*list)) {
            let next = self.take_stored(list)?;
            if next.is_some() {
                return Ok(next);
            }
        }
        Ok(None)
    }

    fn take_stored(&mut self, list: HandOnList) -> Result<Option<HandOn>, StoreError> {
        if !self.memory.queued.contains(&list) {
            return Ok(None);
        }
        let memory = &mut *self.memory;
        let next = self.database.first(
            "SELECT key, after_us, after_kind, after FROM relax
                 WHERE list = ?1 ORDER BY key DESC LIMIT 1",
            cells![list.name()],
            |row| {
                let kind = memory.name(&row.text(2)?);
                Ok(HandOn {
                    key: row.get(0)?,
                    list,
                    after: Place {
                        us: row.get(1)?,
                        kind: (!kind.is_empty()).then_some(kind),
                        key: row.get(3)?,
                    },
                })
            },
        )?;
        match &next {
            Some(next) => {
                self.send(
                    "DELETE FROM relax WHERE list = ?1 AND key = ?2",
                    cells![list.name(), next.key],
                )?;
            }
            None => {
                self.memory.queued.remove(&list);
            }
        }
        Ok(next)
    }

    /// Leaves what could not be finished for the next transaction; says whether there is any.
    pub(super) fn store_backlog(&mut self) -> Result<bool, StoreError> {
        let conversations = std::mem::take(&mut self.conversations);
        for next in conversations
            .into_iter()
            .chain(std::mem::take(&mut self.hand_on))
        {
            self.store_hand_on(&next)?;
        }
        let mut queued = std::mem::take(&mut self.memory.queued);
        let mut emptied = Vec::new();
        for list in &queued {
            if !list.has_rows(self.database)? {
                emptied.push(*list);
            }
        }
        queued.retain(|list| !emptied.contains(list));
        self.memory.queued = queued;
        Ok(!self.memory.queued.is_empty() || self.memory.has_sweeps)
    }

    fn store_hand_on(&mut self, next: &HandOn) -> Result<(), StoreError> {
        // What was to be done twice begins at the earlier of both places.
        self.send(
            "INSERT INTO relax AS known(list, key, after_us, after_kind, after)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (list, key) DO UPDATE SET after_us = excluded.after_us,
               after_kind = excluded.after_kind, after = excluded.after
             WHERE (excluded.after_us IS NOT NULL, coalesce(excluded.after_us, 0),
                    excluded.after_kind, excluded.after)
                 < (known.after_us IS NOT NULL, coalesce(known.after_us, 0),
                    known.after_kind, known.after)",
            cells![
                next.list.name(),
                self.memory.follow(next.key),
                next.after.us,
                next.after.kind.as_deref().unwrap_or_default(),
                next.after.key
            ],
        )?;
        self.memory.queued.insert(next.list);
        Ok(())
    }
}
