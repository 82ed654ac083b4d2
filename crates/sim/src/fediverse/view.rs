//! What an instance knows of people whose home is elsewhere.
//!
//! It knows those who follow somebody here or are followed by somebody here. Of their posts it has
//! those that were written since somebody here first followed them, apart from those that were lost
//! on the way and those that are so old that it has swept them out. Their counts and profiles are as
//! it last heard of them. Whom else its own people's posts name has an id here and a card, but is not
//! found by name.

use super::Instance;
use crate::world::dice::{Dice, Purpose};
use crate::world::time::{DAY_US, SECOND_US};
use crate::world::{Draft, Moment, World};

/// How many of a thousand posts never arrive at an instance.
const LOST_PERMILLE: u64 = 60;
/// Posts from elsewhere are kept for so many days at least, and up to so many more.
const KEPT_DAYS_MIN: u64 = 10;
const KEPT_DAYS_MORE: u64 = 50;
/// What is heard of somebody is an hour to some weeks old.
const HEARSAY_S: u64 = 3_600;
const HEARSAY_DOUBLINGS: u64 = 8;

/// From when on an instance has somebody's posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reception {
    /// None: it has none of them.
    from_us: Option<i64>,
}

impl Reception {
    pub(crate) const ALL: Self = Self {
        from_us: Some(i64::MIN),
    };
}

impl Instance {
    pub(crate) fn is_own(&self, world: &World, user: u64) -> bool {
        world.home(user) == self.number
    }

    /// Whether somebody is found here by name.
    pub(crate) fn knows(&self, world: &World, user: u64, now: Moment<'_>) -> bool {
        self.is_own(world, user)
            || world
                .ties_with_home(user, self.number, now)
                .next()
                .is_some()
    }

    pub(crate) fn reception(&self, world: &World, user: u64, now: Moment<'_>) -> Reception {
        if self.is_own(world, user) {
            return Reception::ALL;
        }
        let mut kept = Dice::new(world.seed(), Purpose::Instance, self.number as u64, 0);
        let kept_days = KEPT_DAYS_MIN + kept.below(KEPT_DAYS_MORE + 1);
        let first_followed_us = world
            .ties_with_home(user, self.number, now)
            .filter(|edge| edge.target == user)
            .map(|edge| edge.begun_us())
            .min();
        Reception {
            from_us: first_followed_us
                .map(|from_us| from_us.max(now.at_us - kept_days as i64 * DAY_US)),
        }
    }

    /// Whether a post that is no repost of a stranger is here.
    pub(crate) fn takes(&self, world: &World, draft: &Draft, reception: Reception) -> bool {
        if reception == Reception::ALL {
            return true;
        }
        let is_lost = || {
            let number = self.number as u64;
            Dice::new(world.seed(), Purpose::Delivery, draft.id(), number).chance(LOST_PERMILLE)
        };
        reception
            .from_us
            .is_some_and(|from_us| draft.at_us >= from_us)
            && !is_lost()
    }

    /// How old the last word about somebody is.
    pub(crate) fn hearsay_us(&self, world: &World, user: u64) -> i64 {
        let number = self.number as u64;
        let mut dice = Dice::new(world.seed(), Purpose::Hearsay, user, number);
        dice.long_tail(HEARSAY_S, HEARSAY_DOUBLINGS) as i64 * SECOND_US
    }
}
