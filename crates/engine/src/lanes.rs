//! Lanes: work that could be sent, by who could send it, and when.
//!
//! Work that takes the same of the same budgets waits in one queue. A lane is such a queue and a
//! credential that may serve it. Lanes fire by a timer; one that fires takes the best work of its
//! queue. None holds up another, and a lane that has no work stands in no table.

use crate::credential::CredentialId;
use crate::permits::Charge;
use crate::timetable::{LaneId, Timetable};
use crate::work::Work;
use kittiwake_model::{BudgetId, Cost, LimitTime, Name, RealTime};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// A queue's place in the list of queues.
pub(crate) type QueueId = usize;

/// Where in its queue work is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A visit that goes on comes first.
    Front,
    Back,
}

/// What work in one queue has in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub lane: Name,
    pub robot: Name,
    pub query: Name,
    pub sends_credential: bool,
    costs: Vec<Cost>,
}

impl Kind {
    pub(crate) fn new(
        (lane, robot): (&Name, &Name),
        query: &Name,
        sends_credential: bool,
        costs: &[Cost],
    ) -> Self {
        let costs = costs.iter().map(|cost| Cost {
            // Where items cost nothing, it does not matter how many there may be.
            items_max: if cost.item == 0 { 0 } else { cost.items_max },
            ..cost.clone()
        });
        Self {
            lane: lane.clone(),
            robot: robot.clone(),
            query: query.clone(),
            sends_credential,
            costs: costs.collect(),
        }
    }
}

#[derive(Debug)]
struct Queue {
    kind: Kind,
    works: VecDeque<Work>,
    lanes: Vec<LaneId>,
}

#[derive(Debug)]
struct Lane {
    queue: QueueId,
    credential: Option<CredentialId>,
    charges: Arc<[Charge]>,
    /// The budget that it waits for.
    waits_for: Option<Name>,
    /// Its credential was refused.
    is_closed: bool,
}

/// All lanes of a crawl, and the work in them.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    queues: Vec<Queue>,
    lanes: Vec<Lane>,
    table: Timetable,
    /// The lanes that draw from a budget.
    drawing: HashMap<BudgetId, Vec<LaneId>>,
    /// Work that is not to be tried before a time.
    resting: BTreeMap<(RealTime, u64), Work>,
    rested: u64,
    /// Work at hand of every robot, resting or not.
    at_hand: HashMap<Name, usize>,
}

impl Lanes {
    pub(crate) fn queue(&self, kind: &Kind) -> Option<QueueId> {
        self.queues.iter().position(|queue| queue.kind == *kind)
    }

    /// A new queue, and a lane for everyone who may serve it.
    pub(crate) fn open(
        &mut self,
        kind: Kind,
        serving: Vec<(Option<CredentialId>, Arc<[Charge]>)>,
    ) -> QueueId {
        let id = self.queues.len();
        let mut lanes = Vec::with_capacity(serving.len());
        for (credential, charges) in serving {
            let lane = self.table.add();
            for charge in &*charges {
                let drawing = self.drawing.entry(charge.budget.clone()).or_default();
                drawing.push(lane);
            }
            self.lanes.push(Lane {
                queue: id,
                credential,
                charges,
                waits_for: None,
                is_closed: false,
            });
            lanes.push(lane);
        }
        self.queues.push(Queue {
            kind,
            works: VecDeque::new(),
            lanes,
        });
        id
    }

    /// Puts work into its queue, or to rest until it may be tried.
    pub(crate) fn put(&mut self, work: Work, place: Place, now: (RealTime, LimitTime)) {
        *self.at_hand.entry(work.lane.clone()).or_default() += 1;
        if work.not_before > now.0 {
            self.rested += 1;
            self.resting.insert((work.not_before, self.rested), work);
        } else {
            self.enqueue(work, place, now.1);
        }
    }

    fn enqueue(&mut self, work: Work, place: Place, now: LimitTime) {
        let queue = &mut self.queues[work.queue];
        match place {
            Place::Front => queue.works.push_front(work),
            Place::Back => queue.works.push_back(work),
        }
        for &lane in &queue.lanes {
            // Who waits for a limit goes on waiting.
            if !self.lanes[lane].is_closed && !self.table.is_in(lane) {
                self.table.set(lane, now);
            }
        }
    }

    /// Work whose rest is over goes to its queue.
    pub(crate) fn wake_rested(&mut self, now: (RealTime, LimitTime)) {
        while let Some(entry) = self.resting.first_entry()
            && entry.key().0 <= now.0
        {
            let work = entry.remove();
            self.enqueue(work, Place::Back, now.1);
        }
    }

    /// When the first work has rested.
    pub(crate) fn rests_until(&self) -> Option<RealTime> {
        self.resting.first_key_value().map(|((until, _), _)| *until)
    }

    /// A lane that fires now, has work and belongs to a robot that may run.
    pub(crate) fn fire(
        &mut self,
        now: LimitTime,
        lets_run: impl Fn(&Name) -> bool,
    ) -> Option<LaneId> {
        while let Some(lane) = self.table.fire(now) {
            let queue = &self.queues[self.lanes[lane].queue];
            if !queue.works.is_empty() && lets_run(&queue.kind.robot) {
                return Some(lane);
            }
        }
        None
    }

    pub(crate) fn credential(&self, lane: LaneId) -> Option<CredentialId> {
        self.lanes[lane].credential
    }

    pub(crate) fn charges(&self, lane: LaneId) -> Arc<[Charge]> {
        Arc::clone(&self.lanes[lane].charges)
    }

    /// The best work for a lane that may send, with who sends it; the lane's next turn comes behind
    /// the others'.
    pub(crate) fn take(&mut self, lane: LaneId, now: LimitTime) -> Option<Work> {
        let Lane {
            queue,
            credential,
            ref charges,
            ..
        } = self.lanes[lane];
        let mut work = self.queues[queue].works.pop_front()?;
        work.credential = credential;
        work.call.charges = Arc::clone(charges);
        self.leaves(&work);
        self.table.sent(lane);
        self.lanes[lane].waits_for = None;
        if !self.queues[queue].works.is_empty() {
            self.table.set(lane, now);
        }
        Some(work)
    }

    fn leaves(&mut self, work: &Work) {
        if let Some(count) = self.at_hand.get_mut(&work.lane) {
            *count = count.saturating_sub(1);
        }
    }

    /// The lane may not send before this time, because of a budget.
    pub(crate) fn wait(&mut self, lane: LaneId, until: LimitTime, budget: Name) {
        self.lanes[lane].waits_for = Some(budget);
        self.table.set(lane, until);
    }

    /// A call that was charged to these was answered, which may have made room in them.
    pub(crate) fn answered(&mut self, charges: &[Charge], now: LimitTime) {
        for charge in charges {
            for &lane in self.drawing.get(&charge.budget).into_iter().flatten() {
                self.table.hurry(lane, now);
            }
        }
    }

    /// Wakes every lane that has work: robots may run again.
    pub(crate) fn wake_all(&mut self, now: LimitTime) {
        for (id, lane) in self.lanes.iter().enumerate() {
            if !lane.is_closed && !self.queues[lane.queue].works.is_empty() {
                self.table.wake(id, now);
            }
        }
    }

    /// The lane that fires first: when, and the budget that it waits for.
    pub(crate) fn next(&mut self) -> Option<(LimitTime, Option<Name>)> {
        let (at, lane) = self.table.next()?;
        Some((at, self.lanes[lane].waits_for.clone()))
    }

    /// Nothing is sent with this credential any more.
    pub(crate) fn close(&mut self, credential: CredentialId) {
        for (id, lane) in self.lanes.iter_mut().enumerate() {
            if lane.credential == Some(credential) {
                lane.is_closed = true;
                self.table.take_out(id);
            }
        }
    }

    /// Whether there is somebody left who may send what waits in a queue.
    pub(crate) fn is_served(&self, queue: QueueId) -> bool {
        let lanes = self.queues[queue].lanes.iter();
        lanes.into_iter().any(|lane| !self.lanes[*lane].is_closed)
    }

    /// Robots of which some work can be sent by nobody any more.
    pub(crate) fn stuck_robots(&self) -> Vec<Name> {
        let waiting = self.queues.iter().flat_map(|queue| &queue.works);
        let works = waiting.chain(self.resting.values());
        works
            .filter(|work| !self.is_served(work.queue))
            .map(|work| work.robot.clone())
            .collect()
    }

    /// Work of a robot, whether it rests or not.
    pub(crate) fn at_hand(&self, lane: &Name) -> usize {
        self.at_hand.get(lane).copied().unwrap_or(0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at_hand.values().all(|count| *count == 0)
    }

    /// Takes out all work of a sort.
    pub(crate) fn take_out(&mut self, is_meant: impl Fn(&Work) -> bool) -> Vec<Work> {
        let mut taken = Vec::new();
        for queue in &mut self.queues {
            let works = std::mem::take(&mut queue.works);
            let (out, kept) = works.into_iter().partition::<VecDeque<_>, _>(&is_meant);
            queue.works = kept;
            taken.extend(out);
        }
        let rested = self.resting.extract_if(.., |_, work| is_meant(work));
        taken.extend(rested.map(|(_, work)| work));
        for work in &taken {
            self.leaves(work);
        }
        taken
    }
}
