//! The timer queue: which lane fires next, and when. Pure.

use kittiwake_model::LimitTime;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Entries of the heap for each lane, at the most: all but one are out of date.
const OUTDATED_MAX: usize = 16;

/// A lane's place in the list of lanes.
pub(crate) type LaneId = usize;

/// When lanes fire. A lane that has nothing to do does not stand in it.
#[derive(Debug, Default)]
pub(crate) struct Timetable {
    heap: BinaryHeap<Reverse<(LimitTime, u64, LaneId)>>,
    lanes: Vec<Entry>,
    /// Counts what was sent.
    sent: u64,
}

#[derive(Debug, Default)]
struct Entry {
    /// An entry of the heap that says otherwise is out of date.
    fires: Option<LimitTime>,
    /// When it sent something last: of those who fire at one time, whoever has waited longest comes
    /// first.
    turn: u64,
}

impl Timetable {
    /// One more lane, which does not fire yet.
    pub(crate) fn add(&mut self) -> LaneId {
        self.lanes.push(Entry::default());
        self.lanes.len() - 1
    }

    /// The lane fires at this time, whatever was said before.
    pub(crate) fn set(&mut self, lane: LaneId, at: LimitTime) {
        let entry = &mut self.lanes[lane];
        if entry.fires == Some(at) {
            return;
        }
        entry.fires = Some(at);
        self.heap.push(Reverse((at, entry.turn, lane)));
        if self.heap.len() > OUTDATED_MAX * self.lanes.len() {
            self.sweep();
        }
    }

    /// Forgets what is out of date.
    fn sweep(&mut self) {
        let lanes = self.lanes.iter().enumerate();
        let standing =
            lanes.filter_map(|(lane, entry)| Some(Reverse((entry.fires?, entry.turn, lane))));
        self.heap = standing.collect();
    }

    /// The lane fires now, unless it does anyway.
    pub(crate) fn wake(&mut self, lane: LaneId, now: LimitTime) {
        if self.lanes[lane].fires.is_none_or(|at| at > now) {
            self.set(lane, now);
        }
    }

    /// The lane waits for a time: an answer may let it fire sooner.
    pub(crate) fn hurry(&mut self, lane: LaneId, now: LimitTime) {
        if self.lanes[lane].fires.is_some() {
            self.wake(lane, now);
        }
    }

    /// Whether the lane stands in the table for now or sooner.
    pub(crate) fn fires_by(&self, lane: LaneId, now: LimitTime) -> bool {
        self.lanes[lane].fires.is_some_and(|at| at <= now)
    }

    /// A lane that has just fired changes places with another: that one has fired, and it will fire in
    /// the other's turn.
    pub(crate) fn give_turn(&mut self, lane: LaneId, to: LaneId) {
        let turns = (self.lanes[lane].turn, self.lanes[to].turn);
        (self.lanes[to].turn, self.lanes[lane].turn) = turns;
        if let Some(at) = self.lanes[to].fires.take() {
            self.set(lane, at);
        }
    }

    pub(crate) fn is_in(&self, lane: LaneId) -> bool {
        self.lanes[lane].fires.is_some()
    }

    /// The lane has nothing to do.
    pub(crate) fn take_out(&mut self, lane: LaneId) {
        self.lanes[lane].fires = None;
    }

    /// The lane has sent something: others go first.
    pub(crate) fn sent(&mut self, lane: LaneId) {
        self.sent += 1;
        let entry = &mut self.lanes[lane];
        entry.turn = self.sent;
        if let Some(at) = entry.fires.take() {
            self.set(lane, at);
        }
    }

    /// A lane that fires now; it stands in the table no longer.
    pub(crate) fn fire(&mut self, now: LimitTime) -> Option<LaneId> {
        let (at, lane) = self.next()?;
        if at > now {
            return None;
        }
        self.heap.pop();
        self.lanes[lane].fires = None;
        Some(lane)
    }

    /// The lane that fires first, and when.
    pub(crate) fn next(&mut self) -> Option<(LimitTime, LaneId)> {
        while let Some(Reverse((at, turn, lane))) = self.heap.peek().copied() {
            let entry = &self.lanes[lane];
            if entry.fires == Some(at) && entry.turn == turn {
                return Some((at, lane));
            }
            self.heap.pop();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(lanes: usize) -> Timetable {
        let mut table = Timetable::default();
        for _ in 0..lanes {
            table.add();
        }
        table
    }

    #[test]
    fn lanes_fire_in_the_order_of_their_times_and_not_before() {
        let mut table = table(3);
        table.set(0, LimitTime(30));
        table.set(1, LimitTime(10));
        assert_eq!(table.fire(LimitTime(9)), None);
        assert_eq!(table.fire(LimitTime(50)), Some(1));
        assert_eq!(table.fire(LimitTime(50)), Some(0));
        assert_eq!(table.fire(LimitTime(50)), None);
    }

    #[test]
    fn lanes_that_could_send_at_one_time_take_turns() {
        let mut table = table(3);
        let mut order = Vec::new();
        table.set(1, LimitTime(-2));
        table.set(1, LimitTime(-1));
        for round in 0..9 {
            let now = LimitTime(round);
            (0..3).for_each(|lane| table.set(lane, now));
            let lane = table.fire(now).expect("a lane");
            table.sent(lane);
            order.push(lane);
        }
        assert_eq!(order, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn what_was_said_last_holds() {
        let mut table = table(2);
        table.set(0, LimitTime(10));
        table.set(0, LimitTime(90));
        table.set(1, LimitTime(20));
        assert_eq!(table.fire(LimitTime(50)), Some(1));
        assert_eq!(table.next(), Some((LimitTime(90), 0)));
        table.hurry(0, LimitTime(51));
        table.hurry(1, LimitTime(51));
        assert_eq!(table.fire(LimitTime(51)), Some(0));
        assert_eq!(
            table.fire(LimitTime(99)),
            None,
            "nobody waits who has nothing"
        );
        table.wake(1, LimitTime(100));
        table.take_out(1);
        assert_eq!(table.next(), None);
        table.set(1, LimitTime(100));
        assert!(table.is_in(1) && table.fire(LimitTime(100)) == Some(1));
    }

    proptest! {
        /// A lane fires exactly when a plain list of times says that it does.
        #[test]
        fn the_heap_agrees_with_a_plain_list(
            steps in prop::collection::vec((0_usize..4, 0_i64..50, 0_u8..4), 1..200),
        ) {
            let mut table = table(4);
            let mut plain: Vec<Option<i64>> = vec![None; 4];
            for (lane, at, what) in steps {
                match what {
                    0 => {
                        table.set(lane, LimitTime(at));
                        plain[lane] = Some(at);
                    }
                    1 => {
                        table.wake(lane, LimitTime(at));
                        plain[lane] = Some(plain[lane].map_or(at, |known| known.min(at)));
                    }
                    2 => {
                        table.take_out(lane);
                        plain[lane] = None;
                    }
                    _ => {
                        let due = plain.iter().flatten().filter(|then| **then <= at).min();
                        let due = due.copied();
                        let fired = table.fire(LimitTime(at));
                        prop_assert_eq!(fired.and_then(|lane| plain[lane]), due);
                        if let Some(lane) = fired {
                            plain[lane] = None;
                            table.sent(lane);
                        }
                    }
                }
            }
        }
    }
}
