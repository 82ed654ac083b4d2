//! Lanes: work that could be sent, by who could send it, and when.
//!
//! Work that takes the same of the same budgets waits in one queue. A lane is such a queue and a
//! credential that may serve it. Lanes fire by a timer; one that fires takes the best work of its
//! queue. None holds up another, and a lane that has no work stands in no table.

mod fire;

use crate::credential::CredentialId;
use crate::permits::Charge;
use crate::site::Site;
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

/// Work of one robot that may wait for hosts while others are asked.
const HELD_UP_MAX: usize = 10_000;

/// What work in one queue has in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub lane: Name,
    pub robot: Name,
    pub query: Name,
    /// Who is asked.
    pub site: Arc<Site>,
    pub sends_credential: bool,
    costs: Vec<Cost>,
}

impl Kind {
    fn name(&self) -> (Name, Name, String) {
        (
            self.lane.clone(),
            self.query.clone(),
            self.site.host.clone(),
        )
    }

    pub(crate) fn new(
        (lane, robot): (&Name, &Name),
        (query, site): (&Name, &Arc<Site>),
        sends_credential: bool,
        costs: &[Cost],
    ) -> Self {
        let costs = costs.iter().map(|cost| Cost {
            // Where items cost nothing, it does not matter how many there may be.
            items_max: if cost.item == 0 && cost.beside == 0 {
                0
            } else {
                cost.items_max
            },
            ..cost.clone()
        });
        Self {
            lane: lane.clone(),
            robot: robot.clone(),
            query: query.clone(),
            site: Arc::clone(site),
            sends_credential,
            costs: costs.collect(),
        }
    }
}

/// By which query a lane does the work of its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// As the work was made.
    First,
    /// By another that tells the same and is no cheaper, while the first may not be used.
    Other { place: usize, query: Name },
}

impl Way {
    const fn place(&self) -> usize {
        match self {
            Self::First => 0,
            Self::Other { place, .. } => *place,
        }
    }
}

/// Who may do the work of a queue, how, and what it is charged to.
#[derive(Debug)]
pub(crate) struct Server {
    pub way: Way,
    pub credential: Option<CredentialId>,
    pub charges: Arc<[Charge]>,
}

#[derive(Debug)]
struct Queue {
    kind: Kind,
    works: VecDeque<Work>,
    lanes: Vec<LaneId>,
    /// Budgets that somebody had to wait for since the queue was last empty.
    awaits: Vec<Name>,
}

impl Queue {
    fn next(&mut self) -> Option<Work> {
        let work = self.works.pop_front();
        self.note_empty();
        work
    }

    fn note_empty(&mut self) {
        if self.works.is_empty() {
            self.awaits.clear();
        }
    }

    fn note_awaited(&mut self, budget: &Name) {
        if !self.awaits.contains(budget) {
            self.awaits.push(budget.clone());
        }
    }
}

#[derive(Debug)]
struct Lane {
    queue: QueueId,
    way: Way,
    credential: Option<CredentialId>,
    charges: Arc<[Charge]>,
    /// The budget that it waits for.
    waits_for: Option<Name>,
    /// Its credential was refused.
    is_closed: bool,
}

impl Lane {
    fn draws_from(&self, budget: &Name) -> bool {
        let mut charges = self.charges.iter();
        charges.any(|charge| charge.cost.budget == *budget)
    }
}

/// All lanes of a crawl, and the work in them.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    queues: Vec<Queue>,
    /// The queues of a robot, a query and a host.
    by_name: HashMap<(Name, Name, String), Vec<QueueId>>,
    all: Vec<Lane>,
    table: Timetable,
    /// The lanes that draw from a budget.
    drawing: HashMap<BudgetId, Vec<LaneId>>,
    /// The lanes that ask a host.
    asking: HashMap<String, Vec<LaneId>>,
    /// Work that is not to be tried before a time.
    resting: BTreeMap<(RealTime, u64), (Place, Work)>,
    rested: u64,
    /// Work at hand of every robot, resting or not.
    at_hand: HashMap<Name, usize>,
}

impl Lanes {
    pub(crate) fn queue(&self, kind: &Kind) -> Option<QueueId> {
        let alike = self.by_name.get(&kind.name())?;
        let mut alike = alike.iter().copied();
        alike.find(|id| self.queues[*id].kind == *kind)
    }

    /// Who is asked by a queue.
    pub(crate) fn site_of(&self, queue: QueueId) -> Arc<Site> {
        Arc::clone(&self.queues[queue].kind.site)
    }

    /// A new queue, and a lane for everyone who may serve it.
    pub(crate) fn open(&mut self, kind: Kind, servers: Vec<Server>) -> QueueId {
        let id = self.queues.len();
        let mut lanes = Vec::with_capacity(servers.len());
        for server in servers {
            let Server {
                way,
                credential,
                charges,
            } = server;
            let lane = self.table.add();
            let asking = self.asking.entry(kind.site.host.clone()).or_default();
            asking.push(lane);
            for charge in &*charges {
                let drawing = self.drawing.entry(charge.budget.clone()).or_default();
                drawing.push(lane);
            }
            self.all.push(Lane {
                queue: id,
                way,
                credential,
                charges,
                waits_for: None,
                is_closed: false,
            });
            lanes.push(lane);
        }
        self.by_name.entry(kind.name()).or_default().push(id);
        self.queues.push(Queue {
            kind,
            works: VecDeque::new(),
            lanes,
            awaits: Vec::new(),
        });
        id
    }

    /// Puts work into its queue, or to rest until it may be tried.
    pub(crate) fn put(&mut self, mut work: Work, place: Place, now: (RealTime, LimitTime)) {
        if work.instead.is_some() {
            work.reset();
        }
        *self.at_hand.entry(work.lane.clone()).or_default() += 1;
        if work.not_before > now.0 {
            self.rest(work, place);
        } else {
            self.enqueue(work, place, now.1);
        }
    }

    fn rest(&mut self, work: Work, place: Place) {
        self.rested += 1;
        let until = (work.not_before, self.rested);
        self.resting.insert(until, (place, work));
    }

    fn enqueue(&mut self, work: Work, place: Place, now: LimitTime) {
        let queue = &mut self.queues[work.queue];
        match place {
            Place::Front => queue.works.push_front(work),
            Place::Back => queue.works.push_back(work),
        }
        for &lane in &queue.lanes {
            // Who waits for a limit goes on waiting.
            if !self.all[lane].is_closed && !self.table.is_in(lane) {
                self.table.set(lane, now);
            }
        }
    }

    /// Work whose rest is over goes to its queue.
    pub(crate) fn wake_rested(&mut self, now: (RealTime, LimitTime)) {
        while let Some(entry) = self.resting.first_entry()
            && entry.key().0 <= now.0
        {
            let (place, work) = entry.remove();
            self.enqueue(work, place, now.1);
        }
    }

    /// When the first work has rested.
    pub(crate) fn rests_until(&self) -> Option<RealTime> {
        self.resting.first_key_value().map(|((until, _), _)| *until)
    }

    pub(crate) fn way(&self, lane: LaneId) -> Way {
        self.all[lane].way.clone()
    }

    /// Whether the same work could be done by a cheaper way.
    pub(crate) fn has_cheaper(&self, lane: LaneId, is_open: impl Fn(&[Charge]) -> bool) -> bool {
        let Lane { queue, way, .. } = &self.all[lane];
        let others = self.queues[*queue].lanes.iter().map(|id| &self.all[*id]);
        let mut cheaper = others.filter(|other| other.way.place() < way.place());
        cheaper.any(|other| !other.is_closed && is_open(&other.charges))
    }

    /// The work that a lane would take.
    pub(crate) fn first(&self, lane: LaneId) -> Option<&Work> {
        self.queues[self.all[lane].queue].works.front()
    }

    /// The first work of a lane is put off; the lane goes on with the next.
    pub(crate) fn put_off(&mut self, lane: LaneId, until: RealTime, now: LimitTime) {
        let queue = &mut self.queues[self.all[lane].queue];
        if let Some(mut work) = queue.next() {
            work.not_before = until;
            if !queue.works.is_empty() {
                self.table.set(lane, now);
            }
            // So that others have not used up again what it waits for.
            self.rest(work, Place::Front);
        }
    }

    pub(crate) fn credential(&self, lane: LaneId) -> Option<CredentialId> {
        self.all[lane].credential
    }

    /// Who is asked by a lane.
    pub(crate) fn site(&self, lane: LaneId) -> Arc<Site> {
        Arc::clone(&self.queues[self.all[lane].queue].kind.site)
    }

    pub(crate) fn charges(&self, lane: LaneId) -> Arc<[Charge]> {
        Arc::clone(&self.all[lane].charges)
    }

    /// The best work for a lane that may send, with who sends it; the lane's next turn comes behind
    /// the others'.
    pub(crate) fn take(&mut self, lane: LaneId, now: LimitTime) -> Option<Work> {
        let Lane {
            queue,
            credential,
            ref charges,
            ..
        } = self.all[lane];
        let mut work = self.queues[queue].next()?;
        work.credential = credential;
        work.call.charges = Arc::clone(charges);
        self.leaves(&work);
        self.table.sent(lane);
        self.all[lane].waits_for = None;
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

    /// The lane may not send before this time, because of a budget. Meanwhile others do its work in
    /// their dearer way.
    pub(crate) fn wait(&mut self, lane: LaneId, until: LimitTime, budget: Name, now: LimitTime) {
        let Lane { queue, .. } = self.all[lane];
        self.queues[queue].note_awaited(&budget);
        self.all[lane].waits_for = Some(budget);
        self.table.set(lane, until);
        let way = &self.all[lane].way;
        for &other in &self.queues[queue].lanes {
            let known = &self.all[other];
            let is_dearer = known.way.place() > way.place();
            if is_dearer && !known.is_closed && !self.table.is_in(other) {
                self.table.set(other, now);
            }
        }
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
        for (id, lane) in self.all.iter().enumerate() {
            if !lane.is_closed && !self.queues[lane.queue].works.is_empty() {
                self.table.wake(id, now);
            }
        }
    }

    /// The lane that fires first: when, and the budget that it waits for.
    pub(crate) fn next(&mut self) -> Option<(LimitTime, Option<Name>)> {
        let (at, lane) = self.table.next()?;
        Some((at, self.all[lane].waits_for.clone()))
    }

    /// Nothing is sent with this credential any more.
    pub(crate) fn close(&mut self, credential: CredentialId) {
        for (id, lane) in self.all.iter_mut().enumerate() {
            if lane.credential == Some(credential) {
                lane.is_closed = true;
                self.table.take_out(id);
            }
        }
    }

    /// Whether there is somebody left who may send what waits in a queue.
    pub(crate) fn is_served(&self, queue: QueueId) -> bool {
        let lanes = self.queues[queue].lanes.iter();
        lanes.into_iter().any(|lane| !self.all[*lane].is_closed)
    }

    /// Robots of which some work can be sent by nobody any more.
    pub(crate) fn stuck_robots(&self) -> Vec<Name> {
        let waiting = self.queues.iter().flat_map(|queue| &queue.works);
        let works = waiting.chain(self.resting.values().map(|(_, work)| work));
        works
            .filter(|work| !self.is_served(work.queue))
            .map(|work| work.robot.clone())
            .collect()
    }

    /// Work that waits in a queue.
    pub(crate) fn length(&self, queue: QueueId) -> usize {
        self.queues[queue].works.len()
    }

    /// Work of a robot that has to wait for a budget which other work of the robot does not draw
    /// from, or for another host: to begin some of that is no delay to it.
    pub(crate) fn held_up(&self, lane: &Name) -> usize {
        if self.at_hand(lane) > HELD_UP_MAX {
            return 0;
        }
        let of_robot = || self.queues.iter().filter(|queue| queue.kind.lane == *lane);
        let draws = |queue: &Queue, budget: &Name| {
            let mut lanes = queue.lanes.iter();
            lanes.any(|id| self.all[*id].draws_from(budget))
        };
        // Some waits are for no budget at all.
        let is_own = |queue: &Queue, budget: &Name| {
            draws(queue, budget) && of_robot().any(|other| !draws(other, budget))
        };
        let is_held_up = |queue: &&Queue| {
            let is_elsewhere = !queue.kind.site.is_home && !queue.awaits.is_empty();
            is_elsewhere || queue.awaits.iter().any(|budget| is_own(queue, budget))
        };
        let held_up = of_robot().filter(is_held_up);
        held_up.map(|queue| queue.works.len()).sum()
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
            queue.note_empty();
            taken.extend(out);
        }
        let rested = self.resting.extract_if(.., |_, (_, work)| is_meant(work));
        taken.extend(rested.map(|(_, (_, work))| work));
        for work in &taken {
            self.leaves(work);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::{Step, StepPage};
    use crate::work::{Call, Purpose};
    use kittiwake_network::RequestPlan;
    use url::Url;

    const THEN: RealTime = RealTime(0);

    fn charges(budget: &str) -> Arc<[Charge]> {
        let cost = Cost {
            budget: budget.into(),
            call: 1,
            item: 0,
            beside: 0,
            items_max: 0,
        };
        let budget = BudgetId(budget.to_owned());
        Arc::from([Charge { budget, cost }])
    }

    fn site() -> Arc<Site> {
        Arc::new(Site::for_tests("h.example"))
    }

    fn kind(robot: &str) -> Kind {
        let robot: Name = robot.into();
        Kind::new((&robot, &robot), (&robot, &site()), true, &[])
    }

    fn server(credential: CredentialId) -> Server {
        Server {
            way: Way::First,
            credential: Some(credential),
            charges: charges(&format!("token {credential}")),
        }
    }

    /// Work that is told from other work by its number.
    fn work(queue: QueueId, robot: &str, number: u32) -> Work {
        let url = Url::parse("http://h.example/").unwrap();
        let plan = RequestPlan {
            method: "GET",
            target: url.path().to_owned(),
            url,
            headers: Vec::new(),
            body: None,
            bytes_max: None,
            send_credential: true,
            cursor: String::new(),
            costs: Vec::new(),
        };
        let step = Step {
            query: robot.into(),
            page: StepPage::First,
            walk: number,
            cursor: None,
        };
        Work {
            lane: robot.into(),
            robot: robot.into(),
            queue,
            tasks: Vec::new(),
            call: Call::new(Purpose::Visit, step, plan, site()),
            credential: None,
            redirected: None,
            instead: None,
            tries: 0,
            slips: 0,
            returns: 0,
            not_before: RealTime(i64::MIN),
            scheduled: THEN,
            found: crate::found::Found::default(),
            missed: Vec::new(),
            aside: Vec::new(),
            rank_us: 0,
        }
    }

    /// A queue for each robot, served by one credential.
    pub(super) fn lanes_of(robots: &[&str]) -> (Lanes, Vec<QueueId>) {
        let mut lanes = Lanes::default();
        let open = |robot: &&str| lanes.open(kind(robot), vec![server(0)]);
        let queues = robots.iter().map(open).collect();
        (lanes, queues)
    }

    pub(super) fn put(lanes: &mut Lanes, queue: QueueId, robot: &str, number: u32) {
        let work = work(queue, robot, number);
        lanes.put(work, Place::Back, (THEN, LimitTime(0)));
    }

    /// What is sent one after the other at one moment: work and credential.
    fn sent(lanes: &mut Lanes, at: i64) -> Vec<(u32, Option<CredentialId>)> {
        let mut sent = Vec::new();
        while let Some(lane) = lanes.fire(LimitTime(at), |_| true, |_| None) {
            let work = lanes.take(lane, LimitTime(at)).expect("work");
            sent.push((work.call.step.walk, work.credential));
        }
        sent
    }

    #[test]
    fn credentials_that_could_send_take_turns_and_work_keeps_its_order() {
        let mut lanes = Lanes::default();
        let queue = lanes.open(kind("posts"), vec![server(0), server(1)]);
        assert_eq!(lanes.queue(&kind("posts")), Some(queue));
        assert_eq!(lanes.queue(&kind("tags")), None);
        (1..=4).for_each(|number| put(&mut lanes, queue, "posts", number));
        assert_eq!(lanes.at_hand(&"posts".into()), 4);
        assert_eq!(
            sent(&mut lanes, 0),
            [(1, Some(0)), (2, Some(1)), (3, Some(0)), (4, Some(1))]
        );
        assert!(lanes.is_empty() && lanes.next().is_none());
    }

    #[test]
    fn robots_take_turns_and_a_lane_that_waits_holds_up_no_other() {
        let mut lanes = Lanes::default();
        let posts = lanes.open(kind("posts"), vec![server(0)]);
        let tags = lanes.open(kind("tags"), vec![server(1)]);
        for number in 1..=2 {
            put(&mut lanes, posts, "posts", number);
            put(&mut lanes, tags, "tags", 10 + number);
        }
        let lane = lanes
            .fire(LimitTime(0), |_| true, |_| None)
            .expect("a lane");
        lanes.wait(lane, LimitTime(50), "token".into(), LimitTime(0));
        assert_eq!(sent(&mut lanes, 0), [(11, Some(1)), (12, Some(1))]);
        assert_eq!(lanes.next(), Some((LimitTime(50), Some("token".into()))));
        assert_eq!(sent(&mut lanes, 49), []);
        // An answer may make room before that, in the budget that it was charged to.
        lanes.answered(&charges("token 1"), LimitTime(20));
        assert_eq!(sent(&mut lanes, 20), []);
        lanes.answered(&charges("token 0"), LimitTime(20));
        assert_eq!(sent(&mut lanes, 20), [(1, Some(0)), (2, Some(0))]);
    }

    #[test]
    fn work_that_waits_for_a_limit_of_its_own_keeps_nobody_from_beginning() {
        let mut lanes = Lanes::default();
        let posts: Name = "posts".into();
        let more = |budgets: [&str; 2]| Server {
            way: Way::First,
            credential: None,
            charges: budgets.iter().flat_map(|it| charges(it).to_vec()).collect(),
        };
        let first = lanes.open(kind("posts"), vec![server(0)]);
        let next = Kind::new((&posts, &posts), (&"next".into(), &site()), true, &[]);
        let next = lanes.open(next, vec![more(["token 0", "paging"])]);
        put(&mut lanes, first, "posts", 1);
        (2..=3).for_each(|number| put(&mut lanes, next, "posts", number));
        let mut wait = |budget: &str| {
            lanes.wake_all(LimitTime(0));
            while let Some(lane) = lanes.fire(LimitTime(0), |_| true, |_| None) {
                lanes.wait(lane, LimitTime(9), budget.into(), LimitTime(0));
            }
            lanes.held_up(&posts)
        };
        assert_eq!(wait("token 0"), 0, "both wait for it");
        assert_eq!(wait("paging"), 2);
        assert_eq!(
            wait("politeness"),
            2,
            "also while both wait for something else"
        );
        assert_eq!(lanes.length(next), 2);
        assert_eq!(sent(&mut lanes, 9).len(), 3);
        put(&mut lanes, next, "posts", 4);
        assert_eq!(lanes.held_up(&posts), 0, "it was not short since");
    }

    #[test]
    fn a_paused_robot_is_passed_over_until_it_is_woken() {
        let mut lanes = Lanes::default();
        let queue = lanes.open(kind("posts"), vec![server(0)]);
        put(&mut lanes, queue, "posts", 1);
        assert_eq!(lanes.fire(LimitTime(0), |_| false, |_| None), None);
        assert_eq!(sent(&mut lanes, 0), []);
        lanes.wake_all(LimitTime(1));
        assert_eq!(sent(&mut lanes, 1), [(1, Some(0))]);
    }

    #[test]
    fn work_that_rests_is_at_hand_and_not_sent() {
        let mut lanes = Lanes::default();
        let queue = lanes.open(kind("posts"), vec![server(0)]);
        let resting = Work {
            not_before: RealTime(100),
            ..work(queue, "posts", 1)
        };
        lanes.put(resting, Place::Front, (THEN, LimitTime(0)));
        put(&mut lanes, queue, "posts", 2);
        assert_eq!(sent(&mut lanes, 0), [(2, Some(0))]);
        assert_eq!(lanes.rests_until(), Some(RealTime(100)));
        lanes.wake_rested((RealTime(99), LimitTime(99)));
        assert_eq!(sent(&mut lanes, 99), []);
        assert_eq!(lanes.at_hand(&"posts".into()), 1);
        put(&mut lanes, queue, "posts", 3);
        lanes.wake_rested((RealTime(100), LimitTime(100)));
        assert_eq!(sent(&mut lanes, 100), [(1, Some(0)), (3, Some(0))]);
    }

    #[test]
    fn what_is_put_off_lets_the_next_go_first() {
        let mut lanes = Lanes::default();
        let queue = lanes.open(kind("posts"), vec![server(0)]);
        (1..=2).for_each(|number| put(&mut lanes, queue, "posts", number));
        let lane = lanes
            .fire(LimitTime(0), |_| true, |_| None)
            .expect("a lane");
        lanes.put_off(lane, RealTime(9), LimitTime(0));
        assert_eq!(sent(&mut lanes, 0), [(2, Some(0))]);
        assert!(!lanes.is_empty());
        lanes.wake_rested((RealTime(9), LimitTime(9)));
        assert_eq!(sent(&mut lanes, 9), [(1, Some(0))]);
    }

    #[test]
    fn work_of_a_refused_credential_is_left_to_the_others() {
        let mut lanes = Lanes::default();
        let posts = lanes.open(kind("posts"), vec![server(0), server(1)]);
        let tags = lanes.open(kind("tags"), vec![server(0)]);
        (1..=2).for_each(|number| put(&mut lanes, posts, "posts", number));
        put(&mut lanes, tags, "tags", 3);
        lanes.close(0);
        assert!(lanes.is_served(posts) && !lanes.is_served(tags));
        assert_eq!(lanes.stuck_robots(), [Name::from("tags")]);
        assert_eq!(sent(&mut lanes, 0), [(1, Some(1)), (2, Some(1))]);
        put(&mut lanes, posts, "posts", 4);
        lanes.wake_all(LimitTime(1));
        lanes.answered(&charges("token 0"), LimitTime(1));
        assert_eq!(sent(&mut lanes, 1), [(4, Some(1))]);
        let taken = lanes.take_out(|work| &*work.robot == "tags");
        assert_eq!(taken.len(), 1);
        assert!(lanes.is_empty());
    }

    #[test]
    fn a_dearer_way_is_taken_only_while_the_cheaper_is_shut() {
        let mut lanes = Lanes::default();
        let other = Server {
            way: Way::Other {
                place: 1,
                query: "one".into(),
            },
            credential: None,
            charges: charges("one"),
        };
        let queue = lanes.open(kind("posts"), vec![server(0), other]);
        (1..=2).for_each(|number| put(&mut lanes, queue, "posts", number));
        let now = LimitTime(0);
        let first = lanes.fire(now, |_| true, |_| None).expect("a lane");
        assert_eq!(lanes.way(first), Way::First);
        let dear = lanes.fire(now, |_| true, |_| None).expect("a lane");
        assert!(lanes.has_cheaper(dear, |_| true));
        // It has left the table, and comes back when the cheaper one has to wait.
        assert_eq!(lanes.fire(now, |_| true, |_| None), None);
        lanes.wait(first, LimitTime(50), "many".into(), now);
        assert_eq!(lanes.fire(now, |_| true, |_| None), Some(dear));
        assert!(!lanes.has_cheaper(dear, |it| it != &*charges("token 0")));
        let work = lanes.take(dear, now).expect("work");
        assert_eq!(work.call.charges, charges("one"));
    }

    #[test]
    fn only_what_costs_the_same_waits_in_one_queue() {
        let robot: Name = "profiles".into();
        let cost = |item, items_max| Cost {
            budget: "points".into(),
            call: 1,
            item,
            beside: 0,
            items_max,
        };
        let kind = |costs: &[Cost]| Kind::new((&robot, &robot), (&robot, &site()), true, costs);
        assert_eq!(kind(&[cost(0, 40)]), kind(&[cost(0, 3)]));
        assert_ne!(kind(&[cost(2, 40)]), kind(&[cost(2, 3)]));
        assert_ne!(kind(&[cost(0, 40)]), kind(&[]));
    }
}
