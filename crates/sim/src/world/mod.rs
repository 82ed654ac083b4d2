//! The world: a pure function of its seed, its size and the time. Nothing is stored per user.
//!
//! Everything a user does is computed when it is asked for. The one thing that is kept for a
//! while are blocks, the reverse index of replies, reposts and likes, and the days of the sample,
//! both in caches of fixed size.

mod block;
mod degrees;
pub(crate) mod dice;
pub(crate) mod feistel;
mod graph;
mod habits;
mod homes;
pub(crate) mod ids;
mod local_ids;
mod moment;
mod names;
mod people;
mod posts;
mod relations;
mod rhythm;
mod sample;
mod tags;
mod text;
mod threads;
pub(crate) mod time;
mod vocabulary;

use thiserror::Error;

pub(crate) use block::Like;
pub(crate) use graph::Follow;
pub(crate) use homes::HomePlan;
pub(crate) use local_ids::IdForm;
pub(crate) use moment::{Moment, Withdrawn};
pub(crate) use people::{Field as ProfileField, Standing};
pub(crate) use posts::{Draft, Link, Post};
pub(crate) use tags::tag_place;
pub(crate) use text::{Media, tag_path};
pub(crate) use threads::ThreadLimits;
pub(crate) use vocabulary::TAGS;

use block::BlockCache;
use feistel::Permutation;
use graph::Graph;
use homes::Homes;
use ids::AccountIds;
use sample::SampleCache;
use time::{DAY_S, SECOND_US, day_of, iso_ms};

/// The history of posts begins this many days before the world's first instant.
const HISTORY_DAYS: i64 = 60;
/// Edges are up to three years old and must not be older than the ids' epoch.
const MARGIN_DAYS: i64 = 1_100;

/// Why a world cannot be made.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum WorldError {
    #[error("a world needs 1 to {max} users, not {users}", max = ids::USERS_MAX)]
    Users { users: u64 },
    #[error("the world's time must lie between {first} and {last}")]
    Time { first: String, last: String },
    #[error(
        "habits change {first} to {last} days after the world's first, not {days}",
        first = habits::FIRST_DAY,
        last = habits::LAST_DAY
    )]
    Habits { days: i64 },
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct World {
    seed: u64,
    users: u64,
    /// The day the world was started on: lifetimes are laid out around it.
    anchor_day: i64,
    history_start_day: i64,
    graph: Graph,
    account_ids: AccountIds,
    /// Who meets which fate.
    fates: Permutation,
    /// The day at whose beginning some change their habits; None if nobody does.
    habits_day: Option<i64>,
    /// None where everybody is on one server.
    homes: Option<Homes>,
    blocks: BlockCache,
    samples: SampleCache,
}

impl World {
    pub(crate) fn new(seed: u64, users: u64, at_us: i64) -> Result<Self, WorldError> {
        if users == 0 || users > ids::USERS_MAX {
            return Err(WorldError::Users { users });
        }
        let first_us = (ids::EPOCH_S + MARGIN_DAYS * DAY_S) * SECOND_US;
        let last_us = (ids::LAST_S - 2 * 365 * DAY_S) * SECOND_US;
        if !(first_us..=last_us).contains(&at_us) {
            return Err(WorldError::Time {
                first: iso_ms(first_us),
                last: iso_ms(last_us),
            });
        }
        let anchor_day = day_of(at_us);
        Ok(Self {
            seed,
            users,
            anchor_day,
            history_start_day: anchor_day - HISTORY_DAYS,
            graph: Graph::new(seed, users, anchor_day * DAY_S),
            account_ids: AccountIds::new(seed, users),
            fates: Permutation::new(seed, 5, users),
            habits_day: None,
            homes: None,
            blocks: BlockCache::default(),
            samples: SampleCache::default(),
        })
    }

    /// The last instant that the world can be moved to: beyond it ids would no longer grow.
    pub(crate) const LAST_US: i64 = (ids::LAST_S - DAY_S) * SECOND_US;

    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) const fn users(&self) -> u64 {
        self.users
    }

    /// The first day that has posts.
    pub(crate) const fn history_start_day(&self) -> i64 {
        self.history_start_day
    }

    pub(crate) fn account_id(&self, user: u64) -> u64 {
        self.account_ids.encode(user)
    }

    pub(crate) fn user_with_id(&self, account_id: u64) -> Option<u64> {
        self.account_ids.decode(account_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worlds_that_cannot_be_are_refused() {
        let at_us = 1_790_000_000_000_000;
        assert_eq!(
            World::new(1, 0, at_us).unwrap_err(),
            WorldError::Users { users: 0 }
        );
        assert!(World::new(1, ids::USERS_MAX + 1, at_us).is_err());
        for at_us in [0, i64::MAX, i64::MIN] {
            assert_eq!(
                World::new(1, 5, at_us).unwrap_err().to_string(),
                "the world's time must lie between 2018-01-05T00:00:00.000Z and \
                 2047-01-10T13:37:03.000Z"
            );
        }
    }
}
