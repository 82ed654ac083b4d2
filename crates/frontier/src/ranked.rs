//! A lane whose subjects are ranked: each call goes to whoever it is worth most for.
//!
//! Subjects have keys here, and what the policy remembers of each is at hand, so that any of them can be
//! looked at without the store. Whom to look at, and when, is the market's business ([`Market`]): what a
//! replay of a trace runs is what runs here.

use crate::market::{Market, Worth};
use crate::policy::{Policy, Shared, State};
use crate::random::Random;
use kittiwake_model::{Key, WorldTime};
use std::collections::HashMap;

/// Who judges what visits are worth.
#[derive(Debug, Clone, Copy)]
pub struct Judge<'a> {
    pub policy: &'a dyn Policy,
    pub shared: &'a Shared,
    /// How long somebody is left alone after a visit.
    pub rest_us: i64,
}

#[derive(Debug, Clone)]
struct Held {
    key: Key,
    state: State,
    is_leased: bool,
}

/// Subjects of one lane, each with what is remembered of it.
#[derive(Debug)]
pub struct Ranked {
    market: Market,
    places: HashMap<Key, u32>,
    held: Vec<Held>,
    free: Vec<u32>,
    leased: usize,
    /// What is left of the round, the next ones last, for policies that plan rounds.
    round: Vec<u32>,
    random: Random,
    /// When the first of them is rested, if all rest.
    rested_at: Option<WorldTime>,
}

/// The market's view of the subjects.
struct View<'a> {
    held: &'a [Held],
    judge: Judge<'a>,
}

impl Worth for View<'_> {
    fn index(&self, subject: u32, now: WorldTime) -> f64 {
        let state = &self.held[subject as usize].state;
        self.judge.policy.index(self.judge.shared, state, now)
    }

    fn due(&self, subject: u32, price: f64, now: WorldTime) -> WorldTime {
        let state = &self.held[subject as usize].state;
        self.judge.policy.due(self.judge.shared, state, price, now)
    }

    fn since(&self, subject: u32) -> Option<WorldTime> {
        self.held[subject as usize].state.since()
    }

    fn has_rhythm(&self) -> bool {
        self.judge.policy.has_rhythm()
    }

    fn rests_until(&self, subject: u32) -> Option<WorldTime> {
        let visited = self.held[subject as usize].state.visited()?;
        Some(visited.plus_us(self.judge.rest_us))
    }
}

impl Default for Ranked {
    fn default() -> Self {
        Self {
            market: Market::default(),
            places: HashMap::new(),
            held: Vec::new(),
            free: Vec::new(),
            leased: 0,
            round: Vec::new(),
            random: Random::new(1),
            rested_at: None,
        }
    }
}

impl Ranked {
    /// Takes note of a subject. One that is leased stays as it is: whoever holds the lease decides.
    pub fn file(&mut self, subject: Key, due: WorldTime, state: State, now: WorldTime) {
        if let Some(&place) = self.places.get(&subject) {
            let held = &mut self.held[place as usize];
            if held.is_leased {
                return;
            }
            if state.since() >= held.state.since() {
                held.state = state;
            }
            self.market.file_priced(place, due, now);
            return;
        }
        let held = Held {
            key: subject,
            state,
            is_leased: false,
        };
        let place = if let Some(place) = self.free.pop() {
            self.held[place as usize] = held;
            place
        } else {
            self.held.push(held);
            (self.held.len() - 1) as u32
        };
        self.places.insert(subject, place);
        self.market.file_priced(place, due, now);
    }

    /// Leases the worthiest subjects, at most `count`.
    pub fn lease(&mut self, now: WorldTime, count: usize, judge: Judge<'_>) -> Vec<Key> {
        self.rested_at = None;
        let taken = if judge.policy.plans_rounds() {
            self.next_of_round(now, count, judge)
        } else {
            let view = View {
                held: &self.held,
                judge,
            };
            let taken = self.market.take(now, count, &view);
            self.rested_at = self.market.rested_at().filter(|_| taken.is_empty());
            taken
        };
        self.leased += taken.len();
        let keys = taken.iter().map(|place| {
            let held = &mut self.held[*place as usize];
            held.is_leased = true;
            held.key
        });
        keys.collect()
    }

    /// The next ones of a round that the policy has planned; whoever has come since waits for the next.
    fn next_of_round(&mut self, now: WorldTime, count: usize, judge: Judge<'_>) -> Vec<u32> {
        let mut taken = Vec::new();
        // Two rounds at the most: whoever rests in both cannot be had.
        for _ in 0..2 {
            while taken.len() < count
                && let Some(place) = self.round.pop()
            {
                let held = &self.held[place as usize];
                let is_there = self.places.get(&held.key) == Some(&place);
                let visited = held.state.visited();
                let is_rested = visited.is_none_or(|at| at.plus_us(judge.rest_us) <= now);
                if is_there && is_rested && !held.is_leased && !taken.contains(&place) {
                    taken.push(place);
                }
            }
            if taken.len() == count || !self.round.is_empty() {
                break;
            }
            let states: Vec<State> = self.held.iter().map(|held| held.state.clone()).collect();
            self.round = judge.policy.round(&states, &mut self.random);
            self.round.reverse();
        }
        if taken.is_empty() {
            let resting = self.held.iter().filter(|held| !held.is_leased);
            let visited = resting.filter_map(|held| held.state.visited());
            self.rested_at = visited.min().map(|at| at.plus_us(judge.rest_us));
        }
        taken
    }

    /// A lease ends with a turn that came to nothing: the next comes as if it had been a visit.
    pub fn pass(&mut self, subject: Key, now: WorldTime) {
        if let Some(place) = self.unlease(subject) {
            let held = &mut self.held[place as usize];
            held.state = std::mem::take(&mut held.state).at(now);
            self.market.file(place, now);
        }
    }

    /// A lease ends: the subject is looked at again then.
    pub fn again(&mut self, subject: Key, due: WorldTime) {
        if let Some(place) = self.unlease(subject) {
            self.market.file(place, due);
        }
    }

    fn unlease(&mut self, subject: Key) -> Option<u32> {
        let place = *self.places.get(&subject)?;
        let held = &mut self.held[place as usize];
        self.leased -= usize::from(held.is_leased);
        held.is_leased = false;
        Some(place)
    }

    /// Forgets a subject.
    pub fn forget(&mut self, subject: Key) {
        if let Some(place) = self.unlease(subject) {
            self.places.remove(&subject);
            self.market.take_out(place);
            self.free.push(place);
        }
    }

    /// Subjects that are not leased.
    pub fn len(&self) -> usize {
        self.places.len() - self.leased
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When there may be somebody to lease; `None` if all are leased.
    pub fn next_due(&self) -> Option<WorldTime> {
        if self.is_empty() {
            return None;
        }
        Some(self.rested_at.unwrap_or(WorldTime(i64::MIN)))
    }

    pub const fn market(&self) -> &Market {
        &self.market
    }

    /// Takes up the prices of an earlier run.
    pub fn begin_at(&mut self, price: f64) {
        self.market.begin_at(price);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Adaptive, Facts, Objective, RoundRobin, Visit};
    use std::collections::HashSet;

    const HOUR_US: i64 = 3_600_000_000;

    fn hour(hours: i64) -> WorldTime {
        WorldTime(hours * HOUR_US)
    }

    /// A lane of somebody who posts every hour, and many who hardly do.
    fn lane(policy: &dyn Policy, shared: &mut Shared, count: i64) -> Ranked {
        let mut ranked = Ranked::default();
        for subject in 0..count {
            let mut state = policy.meet(shared, &Facts::default(), hour(0));
            let posts: Vec<WorldTime> = if subject == 7 {
                (1..200).map(hour).collect()
            } else {
                vec![hour(subject % 150)]
            };
            policy.observe(shared, &mut state, &Visit::complete(hour(200), &posts));
            ranked.file(Key(subject), hour(200), state, hour(200));
        }
        ranked
    }

    #[test]
    fn whoever_posts_most_is_leased_most() {
        let policy = Adaptive::new(100, Objective::default());
        let mut shared = Shared::default();
        let mut ranked = lane(&policy, &mut shared, 50);
        let mut visits = [0; 50];
        for turn in 0..2_000 {
            let now = WorldTime(hour(201).0 + turn * HOUR_US / 4);
            let judge = Judge {
                policy: &policy,
                shared: &shared,
                rest_us: 1,
            };
            let leased = ranked.lease(now, 1, judge);
            assert_eq!(leased.len(), 1);
            let subject = leased[0];
            visits[subject.0 as usize] += 1;
            let place = ranked.places[&subject];
            let mut state = ranked.held[place as usize].state.clone();
            let since = state.visited().unwrap();
            let posts: Vec<WorldTime> = if subject == Key(7) {
                let first = since.0.div_euclid(HOUR_US) + 1;
                let last = now.0.div_euclid(HOUR_US);
                (first..=last).map(hour).collect()
            } else {
                Vec::new()
            };
            policy.observe(&mut shared, &mut state, &Visit::complete(now, &posts));
            let due = policy.due(&shared, &state, ranked.market().filing_price(), now);
            ranked.again(subject, due);
            ranked.file(subject, due, state, now);
        }
        assert!(visits[7] > 4 * visits[8], "{visits:?}");
        assert!(visits.iter().all(|visits| *visits > 0), "{visits:?}");
    }

    #[test]
    fn nobody_is_lost_doubled_or_taken_while_leased() {
        let adaptive = Adaptive::new(100, Objective::default());
        check_leases(&adaptive);
        check_leases(&RoundRobin);
    }

    fn check_leases(policy: &dyn Policy) {
        let shared = Shared::default();
        let judge = Judge {
            policy,
            shared: &shared,
            rest_us: 5 * HOUR_US,
        };
        let mut ranked = Ranked::default();
        for subject in 0..30 {
            ranked.file(Key(subject), hour(0), State::default(), hour(0));
        }
        let first = ranked.lease(hour(1), 10, judge);
        // Filed again while it is leased: the lease holds.
        ranked.file(first[0], hour(0), State::default(), hour(1));
        let second = ranked.lease(hour(1), 30, judge);
        let all: HashSet<Key> = first.iter().chain(&second).copied().collect();
        assert_eq!((first.len(), second.len(), all.len()), (10, 20, 30));
        assert!(ranked.is_empty() && ranked.next_due().is_none());
        for subject in &first {
            let mut state = State::default();
            policy.observe(
                &mut Shared::default(),
                &mut state,
                &Visit::complete(hour(1), &[]),
            );
            ranked.again(*subject, hour(1));
            ranked.file(*subject, hour(1), state, hour(1));
        }
        // All who are there rest; it is known until when.
        assert!(ranked.lease(hour(2), 5, judge).is_empty());
        assert_eq!(ranked.next_due(), Some(hour(6)));
        ranked.again(second[0], hour(2));
        assert_eq!(ranked.lease(hour(2), 5, judge), [second[0]]);
        ranked.forget(first[0]);
        ranked.forget(first[0]);
        assert_eq!(ranked.lease(hour(7), 30, judge).len(), 9);
        // Its place is somebody else's.
        ranked.file(Key(99), hour(7), State::default(), hour(7));
        assert_eq!(ranked.lease(hour(8), 30, judge), [Key(99)]);
    }
}
