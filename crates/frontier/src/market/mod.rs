//! The market of calls: whom to visit next without looking at everybody.
//!
//! Everybody is filed under the earliest time at which a visit can be worth the lowest price of the
//! day. Whoever's time has come is looked at and waits to be taken, the worthiest first; those who
//! wait are looked at again every two hours or sooner, because what they are worth may rise and fall
//! with the day. If nobody waits, the next ones in order are looked at. The lowest price decides when
//! somebody is first looked at, not who is taken: one that is a little too low costs a few looks.

mod wheel;

use kittiwake_model::WorldTime;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use wheel::Wheel;

/// How many of those who wait are looked at afresh for one call, at least and at most.
const LOOKED_AT: usize = 2;
const LOOKED_AT_MAX: usize = 32;
/// Somebody who waits is looked at again after this part of the time since its visit, at least, and
/// of the time after which a visit will be worth the price.
const AGAIN_PART: f64 = 1.0 / 16.0;
const MISSING_PART: f64 = 1.0 / 3.0;
const AGAIN_US_MIN: i64 = 60_000_000;
const AGAIN_US_MAX: i64 = 86_400_000_000;
/// And after this time, if what it is worth rises and falls with the day.
const RHYTHM_US: i64 = 2 * 3_600_000_000;
/// What is far below the price.
const FAR_BELOW: f64 = 0.4;
/// Nobody is out of sight for longer: meanwhile much may have been learnt of everybody.
const UNSEEN_US_MAX: i64 = 7 * 86_400_000_000;
/// Who is not worth the lowest price is not looked at again before.
const UNSEEN_US_MIN: i64 = 600_000_000;
/// Subjects come up before they are worth the lowest price.
const EARLY: f64 = 0.8;
/// All are filed anew when the lowest price has fallen to this part of the highest one at which
/// they were filed.
const FALLEN: f64 = 0.75;
const DAY_US: i64 = 86_400_000_000;
/// What is left of the lowest price whenever too few wait.
const SHORT: f64 = 0.97;
/// Calls that the price is a mean of, at least, and as a part of all subjects.
const CALLS_MIN: f64 = 64.0;
const CALLS_PART: f64 = 16.0;
/// Of those who are left alone for now so many are passed over in search of others.
const PASSED_OVER_MAX: usize = 256;
/// What is out of date is thrown away when it is more than this many times what is current.
const STALE_TIMES: usize = 3;
const STALE_MIN: usize = 1_024;
/// The least price: below it everything is worth a call.
const PRICE_MIN: f64 = 1e-12;

/// How the market asks about a subject.
pub trait Worth {
    fn index(&self, subject: u32, now: WorldTime) -> f64;
    fn due(&self, subject: u32, price: f64, now: WorldTime) -> WorldTime;
    /// When it was visited or met.
    fn since(&self, subject: u32) -> Option<WorldTime>;
    /// Whether what a visit is worth rises and falls with the day, and does not only rise.
    fn has_rhythm(&self) -> bool;
    /// What a first visit is worth at least, at the price of the day; `None` for whoever was visited. What
    /// waits then is more than what was written since somebody was met.
    fn first_visit(&self, _subject: u32, _price: f64) -> Option<f64> {
        None
    }
    /// Until when it is left alone, whatever a visit is worth.
    fn rests_until(&self, _subject: u32) -> Option<WorldTime> {
        None
    }
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

/// Whether a stamp is that of somebody who waits to be taken.
const fn is_of_waiting(stamp: u32) -> bool {
    stamp % 2 == 1
}

/// Subjects by the time at which they are looked at, and those who wait to be taken.
#[derive(Debug)]
pub struct Market {
    filed: Wheel,
    ready: BinaryHeap<Ready>,
    /// By subject: what is filed or waits under an older stamp is out of date. An odd one is that of
    /// somebody who waits.
    stamps: Vec<u32>,
    ready_count: usize,
    /// What calls were worth lately, and at the cheapest time of the day.
    price: f64,
    lowest: f64,
    lowest_today: f64,
    lowest_before: f64,
    day: Option<WorldTime>,
    /// The highest of the lowest prices at which anybody was filed since all were.
    filed_at: f64,
    calls: f64,
    looked_at: u64,
    /// When the first is rested of those who were passed over because too few others were left.
    rested_at: Option<WorldTime>,
    /// Whoever was looked at and filed later, while somebody wants to know.
    put_off: Option<Vec<(u32, WorldTime)>>,
}

impl Default for Market {
    fn default() -> Self {
        Self {
            filed: Wheel::default(),
            ready: BinaryHeap::new(),
            stamps: Vec::new(),
            ready_count: 0,
            price: PRICE_MIN,
            lowest: PRICE_MIN,
            lowest_today: f64::INFINITY,
            lowest_before: f64::INFINITY,
            day: None,
            filed_at: PRICE_MIN,
            calls: 0.0,
            looked_at: 0,
            rested_at: None,
            put_off: None,
        }
    }
}

impl Market {
    /// What a call is worth at present.
    pub const fn price(&self) -> f64 {
        self.price
    }

    /// The price at which subjects are filed: the lowest of the day, and somewhat less, so that they come
    /// up before they are worth it.
    pub fn filing_price(&self) -> f64 {
        self.lowest * EARLY
    }

    /// Takes up the prices of an earlier run.
    pub fn begin_at(&mut self, price: f64) {
        let price = price.max(PRICE_MIN);
        (self.price, self.lowest) = (price, price);
        (self.lowest_before, self.filed_at) = (price, price);
    }

    /// When somebody can be taken who was left alone when last too few were found.
    pub const fn rested_at(&self) -> Option<WorldTime> {
        self.rested_at
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
        }
        let stamp = self.next_stamp(subject, false);
        self.filed.push(due, (subject, stamp));
    }

    /// Files somebody under a time that was reckoned with [`Self::filing_price`].
    pub fn file_priced(&mut self, subject: u32, due: WorldTime, now: WorldTime) {
        self.filed_at = self.filed_at.max(self.lowest);
        self.file(subject, due.min(now.plus_us(UNSEEN_US_MAX)));
    }

    /// Notes from now on who is looked at and filed later.
    pub fn watch_put_off(&mut self) {
        self.put_off.get_or_insert_default();
    }

    /// Who was looked at and filed later since the last time, and when they are due.
    pub fn take_put_off(&mut self) -> Vec<(u32, WorldTime)> {
        self.put_off
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Takes out whoever is due last, with about when; those who wait to be taken stay.
    pub fn take_out_last(&mut self) -> Option<(u32, WorldTime)> {
        let mut waiting = Vec::new();
        let last = loop {
            let Some((due, (subject, stamp))) = self.filed.pop_last() else {
                break None;
            };
            if stamp != self.stamps[subject as usize] {
                continue;
            }
            if is_of_waiting(stamp) {
                waiting.push((due, (subject, stamp)));
                continue;
            }
            self.next_stamp(subject, false);
            break Some((subject, due));
        };
        for (due, entry) in waiting {
            self.filed.push(due, entry);
        }
        last
    }

    /// Takes somebody out.
    pub fn take_out(&mut self, subject: u32) {
        if (subject as usize) < self.stamps.len() {
            self.next_stamp(subject, false);
        }
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
            self.file_all(worth);
        }
        self.tidy();
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

    /// Throws away what is out of date, before it outgrows what is current.
    fn tidy(&mut self) {
        let stamps = &self.stamps;
        if self.ready.len() > STALE_TIMES * self.ready_count + STALE_MIN {
            self.ready
                .retain(|ready| ready.stamp == stamps[ready.subject as usize]);
        }
        if self.filed.len() > STALE_TIMES * stamps.len() + STALE_MIN {
            self.filed
                .retain(|(subject, stamp)| stamp == stamps[subject as usize]);
        }
    }

    fn due(&self, subject: u32, now: WorldTime, worth: &impl Worth) -> WorldTime {
        let due = worth.due(subject, self.filing_price(), now);
        let due = due.min(now.plus_us(UNSEEN_US_MAX));
        worth.rests_until(subject).map_or(due, |rest| due.max(rest))
    }

    /// Files everybody anew who does not wait, under the lowest price of now. What a visit is worth grows
    /// by the square of the time, more or less, so that the time shrinks by the root of the price; to ask
    /// of each when exactly would take longer than all looks of a day.
    fn file_all(&mut self, worth: &impl Worth) {
        let shrunk = (self.lowest / self.filed_at).sqrt();
        self.filed_at = self.lowest;
        let filed = std::mem::take(&mut self.filed);
        for (due, (subject, stamp)) in filed.into_entries() {
            if stamp != self.stamps[subject as usize] {
                continue;
            }
            let sooner = match worth.since(subject).filter(|_| !is_of_waiting(stamp)) {
                Some(since) => {
                    let wait_us = due.since_us(since).max(0) as f64 * shrunk;
                    due.min(since.plus_us(wait_us as i64))
                }
                None => due,
            };
            self.filed.push(sooner, (subject, stamp));
        }
    }

    fn next_stamp(&mut self, subject: u32, will_wait: bool) -> u32 {
        let stamp = &mut self.stamps[subject as usize];
        self.ready_count -= usize::from(is_of_waiting(*stamp));
        self.ready_count += usize::from(will_wait);
        *stamp = ((*stamp >> 1).wrapping_add(1) << 1) | u32::from(will_wait);
        *stamp
    }

    fn index(&mut self, subject: u32, now: WorldTime, worth: &impl Worth) -> f64 {
        self.looked_at += 1;
        let index = worth.index(subject, now);
        let index = if index.is_nan() { 0.0 } else { index };
        let least = worth.first_visit(subject, self.price);
        least.map_or(index, |least| index.max(least))
    }

    /// Lets somebody wait to be taken, and to be looked at again.
    fn wait(&mut self, subject: u32, index: f64, now: WorldTime, worth: &impl Worth) {
        let waited_us = worth.since(subject).map_or(0, |since| now.since_us(since));
        // Who is far below the price can wait longer to be looked at.
        let times = if index < self.price * FAR_BELOW { 3 } else { 1 };
        let most_us = times
            * if worth.has_rhythm() {
                RHYTHM_US
            } else {
                AGAIN_US_MAX
            };
        let again_us = (waited_us as f64 * self.again_part(index)) as i64;
        let again_us = again_us.clamp(AGAIN_US_MIN, most_us);
        let stamp = self.next_stamp(subject, true);
        self.filed.push(now.plus_us(again_us), (subject, stamp));
        self.ready.push(Ready {
            index,
            subject,
            stamp,
        });
    }

    /// After which part of the time since its visit somebody is looked at again. What a visit is worth
    /// grows by the square of the time, more or less: who is below the price can wait for a good part
    /// of what is missing.
    fn again_part(&self, index: f64) -> f64 {
        let missing = (self.price / index.max(PRICE_MIN)).sqrt() - 1.0;
        (missing * MISSING_PART).max(AGAIN_PART)
    }

    /// Takes the next filed subject if it is due by a time, or anyway.
    fn pop_filed(&mut self, by: Option<WorldTime>) -> Option<u32> {
        while let Some((subject, stamp)) = self.filed.pop(by) {
            if stamp == self.stamps[subject as usize] {
                return Some(subject);
            }
        }
        None
    }

    fn look_at_due(&mut self, now: WorldTime, worth: &impl Worth) {
        while let Some(subject) = self.pop_filed(Some(now)) {
            if let Some(rest) = worth.rests_until(subject).filter(|rest| *rest > now) {
                // Slots are coarser than rests.
                self.file(subject, rest.plus_us(wheel::SLOT_US));
                continue;
            }
            let index = self.index(subject, now, worth);
            // Before there is a price everything is worth a call.
            if index >= self.lowest * EARLY * EARLY || self.lowest <= PRICE_MIN {
                self.wait(subject, index, now, worth);
                continue;
            }
            self.filed_at = self.filed_at.max(self.lowest);
            let due = self.due(subject, now, worth);
            let due = due.max(now.plus_us(UNSEEN_US_MIN));
            self.file(subject, due);
            if let Some(put_off) = &mut self.put_off {
                put_off.push((subject, due));
            }
        }
    }

    /// Looks at the next ones in order until enough wait to choose from, or everybody does.
    fn look_ahead(&mut self, count: usize, now: WorldTime, worth: &impl Worth) {
        let wanted = count * LOOKED_AT;
        if self.ready_count < wanted {
            // The lowest price was too high to find enough.
            self.lowest_today = (self.lowest.min(self.lowest_today) * SHORT).max(PRICE_MIN);
        }
        let mut looks = 2 * wanted;
        let (mut passed_over, mut waiting) = (Vec::new(), Vec::new());
        self.rested_at = None;
        while self.ready_count < wanted && looks > 0 {
            let Some((subject, stamp)) = self.filed.pop(None) else {
                break;
            };
            if stamp != self.stamps[subject as usize] {
                continue;
            }
            if is_of_waiting(stamp) {
                // Filed as well, to be looked at again soon: not in search of others.
                waiting.push((subject, stamp));
                continue;
            }
            if let Some(rest) = worth.rests_until(subject).filter(|rest| *rest > now) {
                passed_over.push((subject, rest));
                if passed_over.len() > PASSED_OVER_MAX {
                    break;
                }
                continue;
            }
            let index = self.index(subject, now, worth);
            self.wait(subject, index, now, worth);
            looks -= 1;
        }
        for entry in waiting {
            self.filed.push(now.plus_us(AGAIN_US_MIN), entry);
        }
        for (subject, rest) in passed_over {
            let earliest = self.rested_at.map_or(rest, |known| known.min(rest));
            self.rested_at = Some(earliest);
            let due = self.due(subject, now, worth);
            self.file(subject, due);
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
                let stamp = self.next_stamp(ready.subject, false);
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
        let calls_mean = CALLS_MIN.max(self.stamps.len() as f64 / CALLS_PART);
        let newest = (calls as f64 / self.calls.clamp(1.0, calls_mean)).min(1.0);
        self.price *= (index.max(PRICE_MIN) / self.price).powf(newest);
        self.calls += calls as f64;
        self.learn_lowest(now);
    }

    /// The lowest price of the day so far and of the day before. A day begins with the first call.
    fn learn_lowest(&mut self, now: WorldTime) {
        let day = *self.day.get_or_insert(now);
        if now.since_us(day) >= DAY_US {
            self.day = Some(now);
            self.lowest_before = self.lowest_today;
            self.lowest_today = self.price;
        }
        self.lowest_today = self.lowest_today.min(self.price);
        self.lowest = self.lowest_today.min(self.lowest_before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const HOUR_US: i64 = 3_600_000_000;

    /// Subjects whose visits are worth their rate times the square of the time since.
    struct Town {
        rates: Vec<f64>,
        visited: Vec<WorldTime>,
    }

    impl Town {
        fn elapsed(&self, subject: u32, now: WorldTime) -> f64 {
            now.since_us(self.visited[subject as usize]) as f64 / HOUR_US as f64
        }
    }

    impl Worth for Town {
        fn index(&self, subject: u32, now: WorldTime) -> f64 {
            self.rates[subject as usize] * self.elapsed(subject, now).powi(2)
        }

        fn due(&self, subject: u32, price: f64, _now: WorldTime) -> WorldTime {
            let hours = (price / self.rates[subject as usize]).sqrt();
            self.visited[subject as usize].plus_us((hours * HOUR_US as f64) as i64)
        }

        fn since(&self, subject: u32) -> Option<WorldTime> {
            Some(self.visited[subject as usize])
        }

        fn has_rhythm(&self) -> bool {
            false
        }
    }

    fn town(count: u32) -> (Town, Market) {
        let mut random = Random::new(7);
        let rates = (0..count)
            .map(|_| 0.01 * 1_000_f64.powf(random.share()))
            .collect();
        let mut market = Market::default();
        for subject in 0..count {
            market.file(subject, WorldTime(0));
        }
        let visited = vec![WorldTime(0); count as usize];
        (Town { rates, visited }, market)
    }

    #[test]
    fn nearly_the_worthiest_is_taken_and_few_are_looked_at() {
        let (mut town, mut market) = town(500);
        let (mut best, mut taken) = (0.0, 0.0);
        for call in 1..20_000_i64 {
            let now = WorldTime(call * HOUR_US / 20);
            let chosen = market.take(now, 1, &town);
            assert_eq!(chosen.len(), 1);
            if call > 5_000 {
                let indices = (0..500).map(|subject| town.index(subject, now));
                best += indices.fold(0.0, f64::max);
                taken += town.index(chosen[0], now);
            }
            town.visited[chosen[0] as usize] = now;
            market.file_again(chosen[0], now, &town);
        }
        assert!(taken > 0.95 * best, "{taken} {best}");
        assert!(market.looked_at() < 20_000 * 15, "{}", market.looked_at());
    }

    #[test]
    fn nobody_is_lost_or_taken_twice() {
        let (mut town, mut market) = town(40);
        for call in 1..400_i64 {
            let now = WorldTime(call * HOUR_US);
            let mut chosen = market.take(now, 7, &town);
            assert_eq!(chosen.len(), 7);
            for subject in &chosen {
                town.visited[*subject as usize] = now;
                market.file_again(*subject, now, &town);
            }
            chosen.sort_unstable();
            chosen.dedup();
            assert_eq!(chosen.len(), 7);
        }
        let everybody = market.take(WorldTime(500 * HOUR_US), 40, &town);
        assert_eq!(everybody.len(), 40);
        assert!(market.take(WorldTime(501 * HOUR_US), 1, &town).is_empty());
    }

    #[test]
    fn memory_is_bounded_by_the_number_of_subjects() {
        let (mut town, mut market) = town(100);
        for call in 1..50_000_i64 {
            let now = WorldTime(call * HOUR_US / 4);
            for subject in market.take(now, 1, &town) {
                town.visited[subject as usize] = now;
                market.file_again(subject, now, &town);
            }
        }
        assert!(market.ready.len() <= STALE_TIMES * 100 + STALE_MIN + 100);
        assert!(market.filed.len() <= STALE_TIMES * 100 + STALE_MIN + 100);
    }

    #[test]
    fn whom_a_stream_tells_of_is_looked_at_once() {
        let (mut town, mut market) = town(20);
        for call in 1..400_i64 {
            let now = WorldTime(call * HOUR_US);
            for subject in market.take(now, 1, &town) {
                town.visited[subject as usize] = now;
                market.file_again(subject, now, &town);
            }
        }
        let now = WorldTime(400 * HOUR_US);
        // The stream says that it has posted: now it is the worthiest.
        town.rates[3] = 1e9;
        market.file(3, now);
        assert_eq!(market.take(now.plus_us(1), 1, &town), [3]);
    }
}
