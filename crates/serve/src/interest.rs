//! How often somebody's objects are asked for: SocWeb's interaction rate. In memory, within bounds.

use kittiwake_model::{Key, RealTime};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// People that are counted; beyond that, whoever was asked for least goes.
const PEOPLE_MAX: usize = 50_000;
/// How many go at once, so that making room is rare.
const LEAVING: usize = PEOPLE_MAX / 10;
/// A request counts half after this time.
const HALF_LIFE_US: f64 = 7.0 * 24.0 * 3.6e9;

/// Requests for one user's objects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interested {
    pub user: Key,
    /// In all, since the server began.
    pub requests: u64,
    /// Lately: each counts half after a week.
    pub weight: f64,
    pub last: RealTime,
}

#[derive(Debug, Default)]
pub struct Interest(Mutex<HashMap<Key, Interested>>);

impl Interest {
    pub(crate) fn count(&self, user: Key, now: RealTime) {
        let mut people = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if people.len() >= PEOPLE_MAX && !people.contains_key(&user) {
            make_room(&mut people, now);
        }
        let interested = people.entry(user).or_insert(Interested {
            user,
            requests: 0,
            weight: 0.0,
            last: now,
        });
        interested.weight = interested.weight_at(now) + 1.0;
        interested.requests += 1;
        interested.last = now;
    }

    /// Whoever is asked for most, as of now.
    pub fn most(&self, limit: usize, now: RealTime) -> Vec<Interested> {
        let people = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Interested> = people
            .values()
            .map(|it| Interested {
                weight: it.weight_at(now),
                ..*it
            })
            .collect();
        drop(people);
        all.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.user.cmp(&b.user)));
        all.truncate(limit);
        all
    }

    /// How often one user's objects were asked for lately.
    pub fn of(&self, user: Key, now: RealTime) -> f64 {
        let people = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        people.get(&user).map_or(0.0, |it| it.weight_at(now))
    }
}

impl Interested {
    fn weight_at(&self, now: RealTime) -> f64 {
        let age_us = now.since_us(self.last).max(0) as f64;
        self.weight * (-age_us / HALF_LIFE_US).exp2()
    }
}

fn make_room(people: &mut HashMap<Key, Interested>, now: RealTime) {
    let mut weights: Vec<f64> = people.values().map(|it| it.weight_at(now)).collect();
    let (_, bar, _) = weights.select_nth_unstable_by(LEAVING, f64::total_cmp);
    let bar = *bar;
    let mut left = LEAVING;
    people.retain(|_, it| {
        let leaves = left > 0 && it.weight_at(now) <= bar;
        left -= usize::from(leaves);
        !leaves
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_count_and_fade() {
        let interest = Interest::default();
        for _ in 0..4 {
            interest.count(Key(7), RealTime(0));
        }
        interest.count(Key(8), RealTime(0));
        let most = interest.most(1, RealTime(HALF_LIFE_US as i64));
        assert_eq!((most[0].user, most[0].requests), (Key(7), 4));
        assert!((most[0].weight - 2.0).abs() < 1e-9);
        assert!(interest.of(Key(9), RealTime(0)).abs() < 1e-9);
    }

    #[test]
    fn whoever_is_asked_for_least_goes_first() {
        let interest = Interest::default();
        for _ in 0..2 {
            interest.count(Key(0), RealTime(0));
        }
        for key in 1..=PEOPLE_MAX as i64 {
            interest.count(Key(key), RealTime(0));
        }
        let people = interest.0.lock().unwrap();
        assert!(people.len() <= PEOPLE_MAX && people.len() > PEOPLE_MAX - LEAVING);
        assert!(people.contains_key(&Key(0)));
    }
}
