//! A moment: the time at which one looks, and what was taken away before its time.
//!
//! Left to itself the world is a pure function of its seed and the time. Faults that change the
//! world are laid over it: whoever is banned, whatever is withdrawn is so for every question that
//! is asked at a later moment, and the world itself stays what it was.

use std::collections::HashMap;

use super::people::Standing;

/// See the module's documentation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub(crate) at_us: i64,
    withdrawn: Option<&'a Withdrawn>,
}

impl<'a> Moment<'a> {
    pub(crate) const fn new(at_us: i64, withdrawn: &'a Withdrawn) -> Self {
        Self {
            at_us,
            withdrawn: Some(withdrawn),
        }
    }

    /// A moment of the world as it would be if nothing had been taken away.
    pub(crate) const fn undisturbed(at_us: i64) -> Self {
        Self {
            at_us,
            withdrawn: None,
        }
    }

    /// Tells moments apart: two with one time and one version show the same.
    pub(crate) fn version(&self) -> (i64, usize) {
        (self.at_us, self.withdrawn.map_or(0, Withdrawn::count))
    }

    /// How a user stands who was banned before the time.
    pub(super) fn ban(&self, user: u64) -> Option<Standing> {
        let &(standing, from_us) = self.withdrawn?.users.get(&user)?;
        (from_us <= self.at_us).then_some(standing)
    }

    pub(super) fn is_post_withdrawn(&self, post_id: impl FnOnce() -> u64) -> bool {
        self.withdrawn.is_some_and(|withdrawn| {
            !withdrawn.posts.is_empty() && self.is_over(withdrawn.posts.get(&post_id()))
        })
    }

    pub(super) fn is_follow_withdrawn(&self, follow_id: u64) -> bool {
        self.withdrawn
            .is_some_and(|withdrawn| self.is_over(withdrawn.follows.get(&follow_id)))
    }

    fn is_over(&self, from_us: Option<&i64>) -> bool {
        from_us.is_some_and(|&from_us| from_us <= self.at_us)
    }
}

/// What was taken away, each with the time from which on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Withdrawn {
    users: HashMap<u64, (Standing, i64)>,
    posts: HashMap<u64, i64>,
    follows: HashMap<u64, i64>,
}

impl Withdrawn {
    pub(crate) fn ban(&mut self, user: u64, standing: Standing, from_us: i64) {
        self.users.entry(user).or_insert((standing, from_us));
    }

    pub(crate) fn withdraw_post(&mut self, post_id: u64, from_us: i64) {
        self.posts.entry(post_id).or_insert(from_us);
    }

    pub(crate) fn withdraw_follow(&mut self, follow_id: u64, from_us: i64) {
        self.follows.entry(follow_id).or_insert(from_us);
    }

    /// Only ever grows, so it tells one state from the next.
    pub(crate) fn count(&self) -> usize {
        self.users.len() + self.posts.len() + self.follows.len()
    }
}
