//! Posts that are filed because they repeat a post within reach, in several steps.
//!
//! How many steps a repost is away from the nearest post within reach is not stored: it is found
//! by walking up what it repeats, which is one post as a rule.

use super::brings::REPOST;
use super::relax::{HandOnList, Place};
use super::work::Work;
use crate::StoreError;
use crate::cell::cells;
use kittiwake_model::{Expansion, Table};
use std::collections::HashSet;

/// Posts that are looked at on the way up: far more than an honest chain of reposts has.
const WALK_MAX: usize = 256;

impl Work<'_> {
    /// How many steps the post is away from the nearest one within reach that it repeats (0 when
    /// it is within reach itself), if that is at most `steps_max`.
    pub(super) fn repost_distance(
        &mut self,
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
                level = self.repeated_by(&level, &mut met)?;
            }
            if level.is_empty() {
                break;
            }
        }
        Ok(None)
    }

    /// The posts that these repeat, as far as they were not met before.
    fn repeated_by(
        &mut self,
        posts: &[i64],
        met: &mut HashSet<i64>,
    ) -> Result<Vec<i64>, StoreError> {
        let mut repeated = Vec::new();
        for post in posts {
            let left = WALK_MAX.saturating_sub(met.len());
            let targets: Vec<i64> = self.database.all(
                "SELECT to_key FROM links WHERE from_key = ?1 AND kind = ?2
                     ORDER BY to_key LIMIT ?3",
                cells![*post, REPOST, left as i64],
                |row| row.get(0),
            )?;
            for target in targets {
                if self.table_of(target)? == Table::Statuses && met.insert(target) {
                    repeated.push(target);
                }
            }
        }
        Ok(repeated)
    }

    /// The distance at which the reposts of a post stand, if any robot goes so far.
    pub(super) fn distance_to_hand_on(
        &mut self,
        post: i64,
        rules: &Expansion,
    ) -> Result<Option<u32>, StoreError> {
        let steps_max = self.memory.extent.repost_steps_max;
        let Some(steps_left) = steps_max.checked_sub(1) else {
            return Ok(None);
        };
        let distance = self.repost_distance(post, steps_left, rules)?;
        Ok(distance.map(|distance| distance + 1))
    }

    /// Files a repost that stands at this distance, and has its own reposts looked at. One that
    /// stands nearer has been looked at, or will be, on its shorter way: so reposts in a circle
    /// come to an end.
    pub(super) fn file_repost(
        &mut self,
        repost: i64,
        distance: u32,
        rules: &Expansion,
    ) -> Result<(), StoreError> {
        if self.table_of(repost)? != Table::Statuses
            || self.repost_distance(repost, distance, rules)? != Some(distance)
        {
            return Ok(());
        }
        self.file(repost, rules)?;
        if distance < self.memory.extent.repost_steps_max {
            self.queue(repost, HandOnList::Reposts, Place::default());
        }
        Ok(())
    }
}
