//! Which lane sends next: those without a price take turns, those with one divide their turns by worth.

use super::{Lane, Lanes};
use crate::timetable::LaneId;
use crate::work::Work;
use kittiwake_model::{LimitTime, Name};

impl Lanes {
    /// A lane that fires now, has work and belongs to a robot that may run. Those whose work is known to
    /// be worth something have their turns together: the worthiest of a host has the turn of any.
    pub(crate) fn fire(
        &mut self,
        now: LimitTime,
        lets_run: impl Fn(&Name) -> bool,
        worth: impl Fn(&Work) -> Option<f64>,
    ) -> Option<LaneId> {
        while let Some(lane) = self.table.fire(now) {
            let Some(work) = self.sendable(lane, &lets_run) else {
                continue;
            };
            let Some(own) = worth(work) else {
                return Some(lane);
            };
            let Some(best) = self.worthiest((lane, own), now, &lets_run, &worth) else {
                return Some(lane);
            };
            self.table.give_turn(lane, best);
            return Some(best);
        }
        None
    }

    /// The work that a lane would send, if it has any and its robot may run.
    fn sendable(&self, lane: LaneId, lets_run: &impl Fn(&Name) -> bool) -> Option<&Work> {
        let queue = &self.queues[self.all[lane].queue];
        queue.works.front().filter(|_| lets_run(&queue.kind.robot))
    }

    /// Another lane of the same host that could send now and has work that is worth more.
    fn worthiest(
        &self,
        (lane, own): (LaneId, f64),
        now: LimitTime,
        lets_run: &impl Fn(&Name) -> bool,
        worth: &impl Fn(&Work) -> Option<f64>,
    ) -> Option<LaneId> {
        let Lane { queue, .. } = self.all[lane];
        let rivals = self.asking.get(&self.queues[queue].kind.site.host)?;
        // Lanes of one queue have the same work.
        let rivals = rivals
            .iter()
            .copied()
            .filter(|rival| self.all[*rival].queue != queue && self.table.fires_by(*rival, now));
        let worths =
            rivals.filter_map(|rival| Some((rival, worth(self.sendable(rival, lets_run)?)?)));
        let best = worths.max_by(|one, other| one.1.total_cmp(&other.1))?;
        (best.1 > own).then_some(best.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{lanes_of, put};
    use super::*;
    use crate::work::Work;

    /// Sends as often as said; gives how often each robot was served. What work is worth falls by being
    /// served, and grows with time.
    fn served(worths: &[(&str, Option<f64>)], turns: usize) -> Vec<usize> {
        let names: Vec<&str> = worths.iter().map(|(name, _)| *name).collect();
        let (mut lanes, queues) = lanes_of(&names);
        let mut waited = vec![1.0; names.len()];
        let mut counts = vec![0; names.len()];
        let place = |work: &Work| names.iter().position(|name| **name == *work.robot).unwrap();
        for turn in 0..turns {
            for (queue, name) in queues.iter().zip(&names) {
                if lanes.length(*queue) == 0 {
                    put(&mut lanes, *queue, name, turn as u32);
                }
            }
            let worth = |work: &Work| {
                let place = place(work);
                worths[place]
                    .1
                    .map(|rate| rate * waited[place] * waited[place])
            };
            let now = LimitTime(0);
            let lane = lanes.fire(now, |_| true, worth).unwrap();
            let work = lanes.take(lane, now).unwrap();
            let sent = place(&work);
            counts[sent] += 1;
            for waited in &mut waited {
                *waited += 1.0;
            }
            waited[sent] = 1.0;
        }
        counts
    }

    #[test]
    fn robots_without_a_price_take_turns_and_the_others_divide_theirs_by_worth() {
        let counts = served(&[("a", None), ("b", Some(100.0)), ("c", Some(1.0))], 300);
        assert_eq!(counts[0], 100, "{counts:?}");
        // By the root of what they are worth: ten times as often, or nearly so where a call takes time.
        assert!(counts[1] > 6 * counts[2] && counts[2] > 10, "{counts:?}");
    }

    #[test]
    fn robots_of_the_same_worth_are_served_alike() {
        let counts = served(&[("a", Some(1.0)), ("b", Some(1.0)), ("c", Some(1.0))], 300);
        assert_eq!(counts, [100, 100, 100]);
    }

    #[test]
    fn a_robot_that_may_not_run_gets_no_turn() {
        let (mut lanes, queues) = lanes_of(&["a", "b"]);
        put(&mut lanes, queues[0], "a", 1);
        put(&mut lanes, queues[1], "b", 2);
        let worth = |work: &Work| Some(if &*work.robot == "a" { 5.0 } else { 1.0 });
        let lets_run = |robot: &Name| &**robot == "b";
        let lane = lanes.fire(LimitTime(0), lets_run, worth).unwrap();
        let work = lanes.take(lane, LimitTime(0)).unwrap();
        assert_eq!(&*work.robot, "b");
        assert_eq!(lanes.fire(LimitTime(0), lets_run, worth), None);
    }
}
