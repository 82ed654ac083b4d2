//! A lane whose subjects are ranked: each call goes to whoever it is worth most for.
//!
//! Subjects have keys here, and what the policy remembers of each is at hand, so that any of them can be
//! looked at without the store. Whom to look at, and when, is the market's business ([`Market`]): what a
//! replay of a trace runs is what runs here. Up to a million subjects are all in memory; of more, those who
//! are due next are, and the others in an order on disk (`far.rs`).

mod far;

use crate::market::{Market, Worth};
use crate::order::OrderError;
use crate::policy::{Policy, Shared, State};
use crate::random::Random;
use far::Far;
use kittiwake_model::{Key, WorldTime};
use std::collections::HashMap;
use std::path::Path;

/// Memory holds so many at least.
const NEAR_MIN: usize = 8;

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
    /// Whoever is not in memory, if not all are, and how many are at the most.
    far: Option<(Far, usize)>,
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

    fn first_visit(&self, subject: u32, price: f64) -> Option<f64> {
        if self.held[subject as usize].state.visited().is_some() {
            return None;
        }
        // What was never seen cannot have changed: it comes before everything that may have.
        let is_blind = self.judge.policy.knows_calls();
        Some(if is_blind { f64::INFINITY } else { price })
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
            far: None,
        }
    }
}

impl Ranked {
    /// Takes note of a subject. One that is leased stays as it is: whoever holds the lease decides.
    pub fn file(&mut self, subject: Key, due: WorldTime, state: State, now: WorldTime) {
        if let Some((far, _)) = &mut self.far
            && far.is_beyond(due)
        {
            return self.file_far(subject, due, state);
        }
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

    /// Files somebody who is due beyond the horizon: not in memory.
    fn file_far(&mut self, subject: Key, due: WorldTime, state: State) {
        if let Some(&place) = self.places.get(&subject) {
            if self.held[place as usize].is_leased {
                return;
            }
            self.forget(subject);
        }
        if let Some((far, _)) = &mut self.far {
            far.file(subject, due, state);
        }
    }

    /// Holds no more than so many in memory from now on; the others go to an order on disk, which is made
    /// anew in a folder.
    pub fn spill(&mut self, folder: &Path, lane: &str, near_max: usize) -> Result<(), OrderError> {
        if self.far.is_some() {
            return Ok(());
        }
        self.far = Some((Far::make(folder, lane)?, near_max.max(NEAR_MIN)));
        self.market.watch_put_off();
        self.tend()
    }

    /// Everything that the store has was filed.
    pub fn finish_reading(&mut self) -> Result<(), OrderError> {
        match &mut self.far {
            Some((far, _)) => far.finish_building(),
            None => Ok(()),
        }
    }

    /// Moves subjects between memory and disk, so that memory holds those who are due next and no more
    /// than it may.
    pub fn tend(&mut self) -> Result<(), OrderError> {
        for (place, due) in self.market.take_put_off() {
            let held = &self.held[place as usize];
            let is_there = self.places.get(&held.key) == Some(&place) && !held.is_leased;
            let is_beyond = self.far.as_ref().is_some_and(|(far, _)| far.is_beyond(due));
            if is_there && is_beyond {
                let (subject, state) = (held.key, held.state.clone());
                self.file_far(subject, due, state);
            }
        }
        let Some((far, near_max)) = &mut self.far else {
            return Ok(());
        };
        let near_max = *near_max;
        let mut due_last = None;
        while self.places.len() - self.leased > near_max {
            let Some((place, due)) = self.market.take_out_last() else {
                break;
            };
            let held = &mut self.held[place as usize];
            self.places.remove(&held.key);
            self.free.push(place);
            far.file(held.key, due, std::mem::take(&mut held.state));
            due_last = Some(due);
        }
        if let Some(due) = due_last {
            // Slots are told by their beginnings: nobody in memory is due later than that.
            far.draw_horizon(due.plus_us(-1));
        }
        far.write(false)
    }

    /// Brings the next ones to memory when it runs low.
    pub fn bring_near(&mut self, now: WorldTime) -> Result<(), OrderError> {
        let Some((far, near_max)) = &mut self.far else {
            return Ok(());
        };
        let near_max = *near_max;
        if !far.has_any() || self.places.len() - self.leased > near_max / 4 {
            return Ok(());
        }
        for entry in far.take_next(near_max / 2)? {
            let (due, subject) = entry.place;
            self.file(subject, due, entry.state, now);
        }
        Ok(())
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

    /// Whether somebody who is in memory was never visited.
    pub fn is_unvisited(&self, subject: Key) -> bool {
        let state = self.state_of(subject);
        state.is_some_and(|state| state.visited().is_none())
    }

    /// What is remembered of somebody who is in memory.
    pub fn state_of(&self, subject: Key) -> Option<&State> {
        let place = *self.places.get(&subject)?;
        Some(&self.held[place as usize].state)
    }

    /// Subjects in memory that are not leased.
    pub fn len(&self) -> usize {
        self.places.len() - self.leased
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When there may be somebody to lease; `None` if all are leased.
    pub fn next_due(&self) -> Option<WorldTime> {
        if self.is_empty() && !self.far.as_ref().is_some_and(|(far, _)| far.has_any()) {
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
            let mut state = ranked.state_of(subject).unwrap().clone();
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

    /// Visits everybody round and round; gives how often each was visited.
    fn visits_of(ranked: &mut Ranked, policy: &dyn Policy, count: usize, turns: i64) -> Vec<u32> {
        let mut shared = Shared::default();
        let mut visits = vec![0; count];
        for turn in 0..turns {
            let now = WorldTime(hour(1).0 + turn * HOUR_US / 16);
            if turn % 96 == 0 {
                policy.epoch(&mut shared, now);
            }
            ranked.tend().unwrap();
            ranked.bring_near(now).unwrap();
            let judge = Judge {
                policy,
                shared: &shared,
                rest_us: 1,
            };
            for subject in ranked.lease(now, 2, judge) {
                let person = subject.0 as usize;
                visits[person] += 1;
                let mut state = ranked.state_of(subject).unwrap().clone();
                let since = state.since().unwrap_or(now);
                // Each writes every so many hours.
                let every_us = HOUR_US * (1 + person as i64 % 40);
                let first = since.0.div_euclid(every_us) + 1;
                let last = now.0.div_euclid(every_us);
                let posts: Vec<WorldTime> = (first..=last)
                    .map(|post| WorldTime(post * every_us))
                    .collect();
                policy.observe(&mut shared, &mut state, &Visit::complete(now, &posts));
                let price = ranked.market().filing_price();
                let due = policy.due(&shared, &state, price, now);
                ranked.again(subject, due);
                ranked.file(subject, due, state, now);
            }
        }
        visits
    }

    #[test]
    fn a_small_memory_and_a_disk_visit_as_a_large_memory_does() {
        let policy = Adaptive::new(100_000, Objective::default());
        let filled = |near_max: Option<usize>| {
            let folder = tempfile::tempdir().unwrap();
            let mut ranked = Ranked::default();
            if let Some(near_max) = near_max {
                ranked.spill(folder.path(), "lane", near_max).unwrap();
            }
            for subject in 0..400 {
                let state = policy.meet(&Shared::default(), &Facts::default(), hour(0));
                ranked.file(Key(subject), hour(0), state, hour(0));
                ranked.tend().unwrap();
            }
            ranked.finish_reading().unwrap();
            let visits = visits_of(&mut ranked, &policy, 400, 12_000);
            if let Some(near_max) = near_max {
                assert!(
                    ranked.places.len() <= near_max + 8,
                    "{}",
                    ranked.places.len()
                );
            }
            visits
        };
        let (large, small) = (filled(None), filled(Some(100)));
        assert!(small.iter().all(|visits| *visits > 0), "{small:?}");
        let total = |visits: &[u32]| f64::from(visits.iter().sum::<u32>());
        assert!(total(&small) > 0.99 * total(&large));
        // Whoever writes much is visited more, as much more as with a large memory.
        let busy = |visits: &[u32]| -> f64 {
            let busy = visits
                .iter()
                .enumerate()
                .filter(|(person, _)| person % 40 < 10);
            busy.map(|(_, visits)| f64::from(*visits)).sum()
        };
        let (large, small) = (busy(&large) / total(&large), busy(&small) / total(&small));
        assert!((large - small).abs() < 0.03, "{large} {small}");
    }

    #[test]
    fn a_lane_that_grows_beyond_its_memory_loses_nobody() {
        let policy = Adaptive::new(100, Objective::default());
        let folder = tempfile::tempdir().unwrap();
        let mut ranked = Ranked::default();
        let file = |ranked: &mut Ranked, subject: i64| {
            let state = policy.meet(&Shared::default(), &Facts::default(), hour(subject % 7));
            ranked.file(Key(subject), hour(subject % 7), state, hour(0));
        };
        for subject in 0..60 {
            file(&mut ranked, subject);
        }
        ranked.spill(folder.path(), "lane", 10).unwrap();
        for subject in 60..100 {
            file(&mut ranked, subject);
            ranked.tend().unwrap();
        }
        let shared = Shared::default();
        let mut seen = HashSet::new();
        for _ in 0..200 {
            ranked.tend().unwrap();
            ranked.bring_near(hour(20)).unwrap();
            let judge = Judge {
                policy: &policy,
                shared: &shared,
                rest_us: 1,
            };
            for subject in ranked.lease(hour(20), 7, judge) {
                assert!(seen.insert(subject), "{subject:?} twice");
            }
        }
        assert_eq!(seen.len(), 100);
    }
}
