//! Posts that are filed because they repeat or answer a post within reach, in several steps.
//!
//! How many steps a post is away from the nearest one within reach is not stored: it is found by
//! walking up what it repeats or answers, which is one post as a rule.

use super::brings::REPOST;
use super::relax::{HandOnList, Place};
use super::work::Work;
use crate::StoreError;
use crate::cell::cells;
use kittiwake_model::{Expansion, RobotFiling, Table};
use std::collections::HashSet;

/// Posts that are looked at on the way up: far more than an honest chain of reposts has.
const WALK_MAX: usize = 256;

/// What leads from post to post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Along {
    Reposts,
    Replies,
}

impl Along {
    pub(super) const ALL: [Self; 2] = [Self::Reposts, Self::Replies];

    /// How many steps a robot takes.
    pub(super) const fn steps_of(self, filing: &RobotFiling) -> u32 {
        match self {
            Self::Reposts => filing.repost_steps,
            Self::Replies => filing.reply_steps,
        }
    }

    /// What leads away from a post.
    const fn list(self) -> HandOnList {
        match self {
            Self::Reposts => HandOnList::Reposts,
            Self::Replies => HandOnList::Comments,
        }
    }
}

impl Work<'_> {
    /// Whether a robot visits the post for the sake of another within reach.
    pub(super) fn is_steps_away(
        &mut self,
        post: i64,
        filing: &RobotFiling,
        rules: &Expansion,
    ) -> Result<bool, StoreError> {
        for along in Along::ALL {
            let steps_max = along.steps_of(filing);
            if steps_max > 0
                && self.table_of(post)? == Table::Statuses
                && self.distance(along, post, steps_max, rules)?.is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How many steps the post is away from the nearest one within reach (0 when it is within
    /// reach itself), if that is at most `steps_max`.
    fn distance(
        &mut self,
        along: Along,
        post: i64,
        steps_max: u32,
        rules: &Expansion,
    ) -> Result<Option<u32>, StoreError> {
        let mut met = HashSet::from([post]);
        let mut level = vec![post];
        for distance in 0..=steps_max {
            for post in &level {
                if self.is_within_reach(*post, rules)? {
                    return Ok(Some(distance));
                }
            }
            if distance < steps_max {
                level = self.above(along, &level, &mut met)?;
            }
            if level.is_empty() {
                break;
            }
        }
        Ok(None)
    }

    /// The posts that these repeat or answer, as far as they were not met before.
    fn above(
        &mut self,
        along: Along,
        posts: &[i64],
        met: &mut HashSet<i64>,
    ) -> Result<Vec<i64>, StoreError> {
        let mut above = Vec::new();
        for post in posts {
            let left = WALK_MAX.saturating_sub(met.len());
            let targets: Vec<i64> = match along {
                Along::Reposts => self.database.all(
                    "SELECT to_key FROM links WHERE from_key = ?1 AND kind = ?2
                     ORDER BY to_key LIMIT ?3",
                    cells![*post, REPOST, left as i64],
                    |row| row.get(0),
                )?,
                Along::Replies => self.database.all(
                    "SELECT reply_to FROM statuses WHERE key = ?1 AND reply_to IS NOT NULL
                     LIMIT ?2",
                    cells![*post, left as i64],
                    |row| row.get(0),
                )?,
            };
            for target in targets {
                if self.table_of(target)? == Table::Statuses && met.insert(target) {
                    above.push(target);
                }
            }
        }
        Ok(above)
    }

    /// The distance at which what repeats or answers a post stands, if any robot goes so far.
    pub(super) fn distance_to_hand_on(
        &mut self,
        along: Along,
        post: i64,
        rules: &Expansion,
    ) -> Result<Option<u32>, StoreError> {
        let Some(steps_left) = self.memory.extent.steps_max(along).checked_sub(1) else {
            return Ok(None);
        };
        if self.table_of(post)? != Table::Statuses {
            return Ok(None);
        }
        let distance = self.distance(along, post, steps_left, rules)?;
        Ok(distance.map(|distance| distance + 1))
    }

    /// Files a post that stands at this distance, and has what repeats or answers it looked at.
    /// One that stands nearer has been looked at, or will be, on its shorter way: so circles come
    /// to an end.
    pub(super) fn file_step(
        &mut self,
        along: Along,
        post: i64,
        distance: u32,
        rules: &Expansion,
    ) -> Result<(), StoreError> {
        if self.table_of(post)? != Table::Statuses
            || self.distance(along, post, distance, rules)? != Some(distance)
        {
            return Ok(());
        }
        self.file(post, rules)?;
        if distance < self.memory.extent.steps_max(along) {
            self.queue(post, along.list(), Place::default());
        }
        Ok(())
    }
}
