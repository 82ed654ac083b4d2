//! The market of calls: whom to visit next without looking at everybody.
//!
//! Everybody is filed under the earliest time at which a visit can be worth the price. Whoever's
//! time has come is looked at and waits to be taken, the worthiest first; those who wait are looked
//! at again as they become worth more. If nobody waits, the next ones in order are looked at. The
//! price follows what calls were worth: it decides when somebody is first looked at, not who is
//! taken, so that a price that is a little wrong costs a few looks and nothing else.

use kittiwake_model::WorldTime;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// How many of those who wait are looked at afresh for one call.
const LOOKED_AT: usize = 2;
/// Subjects come up before they are worth the price.
const EARLY: f64 = 0.8;
/// Somebody who waits is looked at again after this part of the time since its visit, by which
/// time a visit is worth about a quarter more.
const AGAIN_PART: i64 = 8;
const AGAIN_US_MIN: i64 = 60_000_000;
/// Nobody is out of sight for longer: meanwhile much may have been learnt of everybody.
const UNSEEN_US_MAX: i64 = 7 * 86_400_000_000;
/// All are filed anew when the price has fallen to this part of the highest they were filed at.
const FALLEN: f64 = 0.75;
/// Calls that the price is a mean of, at least.
const CALLS_MIN: f64 = 64.0;
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
    price: f64,
    /// The highest price at which anybody was filed since all were.
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

    /// Files somebody under the time at which a visit will be worth the price.
    pub fn file_again(&mut self, subject: u32, now: WorldTime, worth: &impl Worth) {
        self.filed_at = self.filed_at.max(self.price);
        let due = self.due(subject, now, worth);
        self.file(subject, due);
    }

    fn due(&self, subject: u32, now: WorldTime, worth: &impl Worth) -> WorldTime {
        let due = worth.due(subject, self.price * EARLY, now);
        due.min(now.plus_us(UNSEEN_US_MAX))
    }

    /// Files everybody anew who does not wait, under the price of now.
    fn file_all(&mut self, now: WorldTime, worth: &impl Worth) {
        self.filed_at = self.price;
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

    /// Takes the worthiest subjects, at most `count`. Whoever is taken is filed again after the
    /// visit.
    pub fn take(&mut self, now: WorldTime, count: usize, worth: &impl Worth) -> Vec<u32> {
        if self.price < self.filed_at * FALLEN {
            self.file_all(now, worth);
        }
        self.look_at_due(now, worth);
        self.look_ahead(count * LOOKED_AT, now, worth);
        let mut looked_at = self.pop_ready(count * LOOKED_AT, now, worth);
        looked_at.sort_by(|one, other| other.cmp(one));
        let rest = looked_at.split_off(count.min(looked_at.len()));
        for ready in rest {
            self.wait(ready.subject, ready.index, now, worth);
        }
        if let Some(least) = looked_at.last() {
            self.learn(least.index, looked_at.len());
        }
        looked_at.into_iter().map(|ready| ready.subject).collect()
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
        let again = now.plus_us((waited_us / AGAIN_PART).max(AGAIN_US_MIN));
        self.file(subject, again);
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
            if stamp != self.stamps[subject as usize] {
                self.filed.pop();
                continue;
            }
            if by.is_some_and(|by| due > by) {
                return None;
            }
            self.filed.pop();
            return Some(subject);
        }
        None
    }

    fn look_at_due(&mut self, now: WorldTime, worth: &impl Worth) {
        while let Some(subject) = self.pop_filed(Some(now)) {
            let index = self.index(subject, now, worth);
            self.wait(subject, index, now, worth);
        }
    }

    /// Looks at the next ones in order until so many wait, or all.
    fn look_ahead(&mut self, count: usize, now: WorldTime, worth: &impl Worth) {
        // Those who wait are filed as well, and may come up once more.
        let mut looks = 2 * count;
        while self.ready_count < count && looks > 0 {
            let Some(subject) = self.pop_filed(None) else {
                return;
            };
            let index = self.index(subject, now, worth);
            self.wait(subject, index, now, worth);
            looks -= 1;
        }
    }

    /// Takes the first of those who wait, looked at afresh.
    fn pop_ready(&mut self, count: usize, now: WorldTime, worth: &impl Worth) -> Vec<Ready> {
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count
            && let Some(ready) = self.ready.pop()
        {
            if ready.stamp != self.stamps[ready.subject as usize] {
                continue;
            }
            let stamp = self.next_stamp(ready.subject);
            let index = self.index(ready.subject, now, worth);
            taken.push(Ready {
                index,
                stamp,
                ..ready
            });
        }
        taken
    }

    /// The price is the mean of what calls were worth, in the logarithm, so that one visit that is
    /// worth a fortune does not move it far.
    fn learn(&mut self, index: f64, calls: usize) {
        if !index.is_finite() {
            return;
        }
        let mean_of = self
            .calls
            .clamp(1.0, CALLS_MIN.max(self.stamps.len() as f64));
        let newest = (calls as f64 / mean_of).min(1.0);
        self.price *= (index.max(PRICE_MIN) / self.price).powf(newest);
        self.calls += calls as f64;
    }
}
