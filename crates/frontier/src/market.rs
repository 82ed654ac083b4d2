//! The market of calls: whom to visit next without looking at everybody.
//!
//! Everybody is filed under the earliest time at which a visit can be worth the lowest price of the
//! day. Whoever's time has come is looked at and waits to be taken, the worthiest first; those who
//! wait are looked at again every hour or sooner, because what they are worth rises and falls with
//! the day. If nobody waits, the next ones in order are looked at. The lowest price decides when
//! somebody is first looked at, not who is taken: one that is a little too low costs a few looks.

use kittiwake_model::WorldTime;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// How many of those who wait are looked at afresh for one call, at least and at most.
const LOOKED_AT: usize = 2;
const LOOKED_AT_MAX: usize = 32;
/// Somebody who waits is looked at again after this part of the time since its visit.
const AGAIN_PART: i64 = 8;
const AGAIN_US_MIN: i64 = 60_000_000;
const AGAIN_US_MAX: i64 = 3_600_000_000;
/// Nobody is out of sight for longer: meanwhile much may have been learnt of everybody.
const UNSEEN_US_MAX: i64 = 7 * 86_400_000_000;
/// Who is not worth the lowest price is not looked at again before.
const UNSEEN_US_MIN: i64 = 600_000_000;
/// Subjects come up before they are worth the lowest price.
const EARLY: f64 = 0.8;
/// All are filed anew when the lowest price has fallen to this part of the highest one at which
/// they were filed.
const FALLEN: f64 = 0.75;
/// The lowest price is forgotten at this rate a day.
const FORGOTTEN_A_DAY: f64 = 0.3;
/// Calls that the price is a mean of.
const CALLS: f64 = 64.0;
/// The least price: below it everything is worth a call.
const PRICE_MIN: f64 = 1e-12;

/// How the market asks about a subject.
pub trait Worth {
    fn index(&self, subject: u32, now: WorldTime) -> f64;
    fn due(&self, subject: u32, price: f64, now: WorldTime) -> WorldTime;
    /// When it was visited or met.
    fn since(&self, subject: u32) -> Option<WorldTime>;
}

/// Somebody who waits to be taken, by what a visit was worth when it was looked at.
#[derive(Debug, Clone, Copy)]
struct Ready {
    index: f64,
    subject: u32,
    stamp: u32,
}

impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ready {}

impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ready {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_index = self.index.total_cmp(&other.index);
        by_index.then(other.subject.cmp(&self.subject))
    }
}

/// Subjects by the time at which they are looked at, and those who wait to be taken.
#[derive(Debug)]
pub struct Market {
    filed: BinaryHeap<Reverse<(WorldTime, u32, u32)>>,
    ready: BinaryHeap<Ready>,
    /// By subject: what is filed or waits under an older stamp is out of date.
    stamps: Vec<u32>,
    is_ready: Vec<bool>,
    ready_count: usize,
    /// What calls were worth lately, and at the cheapest time of the day.
    price: f64,
    lowest: f64,
    learnt: Option<WorldTime>,
    /// The highest of the lowest prices at which anybody was filed since all were.
    filed_at: f64,
    calls: f64,
    looked_at: u64,
}

impl Default for Market {
    fn default() -> Self {
        Self {
            filed: BinaryHeap::new(),
            ready: BinaryHeap::new(),
            stamps: Vec::new(),
            is_ready: Vec::new(),
            ready_count: 0,
            price: PRICE_MIN,
            lowest: PRICE_MIN,
            learnt: None,
            filed_at: PRICE_MIN,
            calls: 0.0,
            looked_at: 0,
        }
    }
}

impl Market {
    /// What a call is worth at present.
    pub const fn price(&self) -> f64 {
        self.price
    }

    /// How often anybody was looked at.
    pub const fn looked_at(&self) -> u64 {
        self.looked_at
    }

    /// Files somebody under a known time: somebody new, or whom a stream has told of.
    pub fn file(&mut self, subject: u32, due: WorldTime) {
        let place = subject as usize;
        if place >= self.stamps.len() {
            self.stamps.resize(place + 1, 0);
            self.is_ready.resize(place + 1, false);
        }
        let stamp = self.next_stamp(subject);
        self.filed.push(Reverse((due, subject, stamp)));
    }

    /// Files somebody under the time at which a visit may be worth a call.
    pub fn file_again(&mut self, subject: u32, now: WorldTime, worth: &impl Worth) {
        self.filed_at = self.filed_at.max(self.lowest);
        let due = self.due(subject, now, worth);
        self.file(subject, due);
    }

    /// Takes the worthiest subjects, at most `count`. Whoever is taken is filed again after the
    /// visit.
    pub fn take(&mut self, now: WorldTime, count: usize, worth: &impl Worth) -> Vec<u32> {
        if self.lowest < self.filed_at * FALLEN {
            self.file_all(now, worth);
        }
        self.look_at_due(now, worth);
        self.look_ahead(count, now, worth);
        let mut looked_at = self.pop_ready(count, now, worth);
        let rest = looked_at.split_off(count.min(looked_at.len()));
        for ready in rest {
            self.wait(ready.subject, ready.index, now, worth);
        }
        if let Some(least) = looked_at.last() {
            self.learn(least.index, looked_at.len(), now);
        }
        looked_at.into_iter().map(|ready| ready.subject).collect()
    }

    fn due(&self, subject: u32, now: WorldTime, worth: &impl Worth) -> WorldTime {
        let due = worth.due(subject, self.lowest * EARLY, now);
        due.min(now.plus_us(UNSEEN_US_MAX))
    }

    /// Files everybody anew who does not wait, under the lowest price of now.
    fn file_all(&mut self, now: WorldTime, worth: &impl Worth) {
        self.filed_at = self.lowest;
        let filed = std::mem::take(&mut self.filed);
        let current = filed.into_iter().filter_map(|Reverse(entry)| {
            let place = entry.1 as usize;
            (entry.2 == self.stamps[place]).then_some((entry, self.is_ready[place]))
        });
        self.filed = current
            .map(|((due, subject, stamp), is_ready)| {
                let sooner = if is_ready {
                    due
                } else {
                    due.min(self.due(subject, now, worth))
                };
                Reverse((sooner, subject, stamp))
            })
            .collect();
    }

    fn next_stamp(&mut self, subject: u32) -> u32 {
        let place = subject as usize;
        self.stamps[place] = self.stamps[place].wrapping_add(1);
        if std::mem::take(&mut self.is_ready[place]) {
            self.ready_count -= 1;
        }
        self.stamps[place]
    }

    fn index(&mut self, subject: u32, now: WorldTime, worth: &impl Worth) -> f64 {
        self.looked_at += 1;
        let index = worth.index(subject, now);
        if index.is_nan() { 0.0 } else { index }
    }

    /// Lets somebody wait to be taken, and to be looked at again.
    fn wait(&mut self, subject: u32, index: f64, now: WorldTime, worth: &impl Worth) {
        let waited_us = worth.since(subject).map_or(0, |since| now.since_us(since));
        let again_us = (waited_us / AGAIN_PART).clamp(AGAIN_US_MIN, AGAIN_US_MAX);
        self.file(subject, now.plus_us(again_us));
        let stamp = self.stamps[subject as usize];
        self.is_ready[subject as usize] = true;
        self.ready_count += 1;
        self.ready.push(Ready {
            index,
            subject,
            stamp,
        });
    }

    /// Takes the next filed subject if it is due by a time, or anyway.
    fn pop_filed(&mut self, by: Option<WorldTime>) -> Option<u32> {
        while let Some(Reverse((due, subject, stamp))) = self.filed.peek().copied() {
            let is_current = stamp == self.stamps[subject as usize];
            if is_current && by.is_some_and(|by| due > by) {
                return None;
            }
            self.filed.pop();
            if is_current {
                return Some(subject);
            }
        }
        None
    }

    fn look_at_due(&mut self, now: WorldTime, worth: &impl Worth) {
        while let Some(subject) = self.pop_filed(Some(now)) {
            let index = self.index(subject, now, worth);
            if index >= self.lowest * EARLY * EARLY {
                self.wait(subject, index, now, worth);
                continue;
            }
            self.filed_at = self.filed_at.max(self.lowest);
            let due = self.due(subject, now, worth);
            self.file(subject, due.max(now.plus_us(UNSEEN_US_MIN)));
        }
    }

    /// Looks at the next ones in order until enough wait to choose from, or everybody does.
    fn look_ahead(&mut self, count: usize, now: WorldTime, worth: &impl Worth) {
        let wanted = count * LOOKED_AT;
        // Those who wait are filed as well, and come up once more.
        let mut looks = LOOKED_AT_MAX * count;
        while self.ready_count < wanted && looks > 0 {
            let Some(subject) = self.pop_filed(None) else {
                return;
            };
            let index = self.index(subject, now, worth);
            self.wait(subject, index, now, worth);
            looks -= 1;
        }
    }

    /// Takes the first of those who wait, looked at afresh, the worthiest first: until nobody who is
    /// left can be worth more than the last that will be taken.
    fn pop_ready(&mut self, count: usize, now: WorldTime, worth: &impl Worth) -> Vec<Ready> {
        let mut taken: Vec<Ready> = Vec::with_capacity(count * LOOKED_AT);
        while taken.len() < count * LOOKED_AT_MAX
            && let Some(ready) = self.ready.peek().copied()
        {
            if ready.stamp == self.stamps[ready.subject as usize] {
                let is_enough =
                    taken.len() >= count * LOOKED_AT && taken[count - 1].index >= ready.index;
                if is_enough {
                    break;
                }
                let stamp = self.next_stamp(ready.subject);
                let index = self.index(ready.subject, now, worth);
                let fresh = Ready {
                    index,
                    stamp,
                    ..ready
                };
                let place = taken.partition_point(|other| *other > fresh);
                taken.insert(place, fresh);
            }
            self.ready.pop();
        }
        taken
    }

    /// The price is the mean of what calls were worth, in the logarithm, so that one visit that is
    /// worth a fortune does not move it far.
    fn learn(&mut self, index: f64, calls: usize, now: WorldTime) {
        if !index.is_finite() {
            return;
        }
        let newest = (calls as f64 / self.calls.clamp(1.0, CALLS)).min(1.0);
        self.price *= (index.max(PRICE_MIN) / self.price).powf(newest);
        self.calls += calls as f64;
        let days = self
            .learnt
            .map_or(0.0, |learnt| crate::policy::days_between(learnt, now));
        self.learnt = Some(now);
        let forgotten = (self.lowest * (FORGOTTEN_A_DAY * days).exp()).min(self.price);
        // Until the first prices are known, everything is dear enough to be looked at.
        self.lowest = if self.calls < 2.0 * CALLS {
            PRICE_MIN
        } else if self.lowest <= PRICE_MIN {
            self.price / 2.0
        } else {
            forgotten
        };
    }
}
