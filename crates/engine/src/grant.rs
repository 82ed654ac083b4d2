//! Grants: which lane sends now, and how long nobody can.

use crate::EngineError;
use crate::lanes::{Place, Way};
use crate::permits::{Charge, Permit, Purse, Taken};
use crate::scheduler::{BATCH_PATIENCE, Scheduler};
use crate::timetable::LaneId;
use crate::work::{Call, Work};
use kittiwake_model::{LimitTime, Name, RealTime};
use kittiwake_network::RequestPlan;
use kittiwake_store::TaskRecord;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest sleep between two looks at the world.
const NAP_MAX: Duration = Duration::from_secs(1);

/// Answers that may wait to be committed beside the calls that are under way; each is held in
/// memory.
const ANSWERS_MAX: usize = 64;

/// Where several hosts are asked, as many times more calls may be under way than one may be busy with.
const HOSTS_AT_ONCE: usize = 8;

/// Lanes of a server that is left alone for a while look again after this time.
const PAUSE_LOOK_US: i64 = 1_000_000;

/// Lanes of a server that has enough to answer look again after this time.
const BUSY_LOOK_US: i64 = 20_000;

/// A lane has nothing to do at this moment.
struct NotNow;

impl Scheduler {
    /// The next work that may be sent at this moment, with its permit.
    pub(crate) async fn grant(&mut self) -> Result<Option<(Work, Permit)>, EngineError> {
        if !self.may_send() {
            return Ok(None);
        }
        let shop = Arc::clone(&self.shop);
        // What the ledger takes is no time of choosing.
        let (started, mut asking) = (Instant::now(), Duration::ZERO);
        let now = self.now();
        for charges in shop.wire.take_answered() {
            self.lanes.answered(&charges, now.1);
        }
        self.lanes.wake_rested(now);
        let controls = &self.controls;
        let world = shop.clock.world();
        let lets_run = |robot: &Name| controls.lets_run(robot);
        let young = &self.young;
        // Nobody can tell what a first visit will bring: robots that have some before them take turns.
        let worth = |work: &Work| {
            let is_young = young.contains(&work.lane);
            (!is_young).then(|| shop.worth(work, world)).flatten()
        };
        while let Some(lane) = self.lanes.fire(now.1, lets_run, worth) {
            if let Some(refused) = self
                .lanes
                .credential(lane)
                .filter(|it| shop.is_refused(*it))
            {
                // Its robots are locked out, if they have no other, when that is committed.
                self.lanes.close(refused);
                continue;
            }
            let site = self.lanes.site(lane);
            let is_paused = !site.is_home && site.health().is_paused();
            // Where one host is asked, whether it has room was looked at before.
            let is_one_of_several = !shop.settings.hosts.is_empty();
            if is_paused || is_one_of_several && site.is_busy(shop.settings.concurrency) {
                let look_us = if is_paused {
                    PAUSE_LOOK_US
                } else {
                    BUSY_LOOK_US
                };
                let soon = now.1.plus_us(look_us);
                self.lanes.wait(lane, soon, "the host".into(), now.1);
                continue;
            }
            let mut purse = site.purse.lock().await;
            let charges = self.lanes.charges(lane);
            let Ok(other) = self.other_way(lane, &purse) else {
                continue;
            };
            // A walk that cannot be broken off is not begun while too little is left for it. One that
            // takes more than whole limits is begun when they are whole.
            let first = self.lanes.first(lane);
            if let Some(pages) = first.and_then(|work| shop.pages_at_once(work))
                && let Some(room) = purse.room(&charges).await?
                && pages.min(room.whole) > room.left
            {
                let until = self.real_after(shop.clock.until_limit(room.whole_at));
                self.lanes.put_off(lane, until, now.1);
                continue;
            }
            let (until, budget) = if let Some(wait) = purse.shut(&charges) {
                wait
            } else {
                let first = self.lanes.first(lane).map(|work| &work.call);
                let Some(call) = other.as_ref().or(first) else {
                    continue;
                };
                // What a cap does not allow is not asked for; whether it is reached is seen when
                // what is under way is answered.
                let smaller = shop.affordable(call);
                let plan = smaller.as_ref().unwrap_or(&call.plan);
                if !shop.set_aside(plan) {
                    let soon = now.1.plus_us(1);
                    self.lanes.wait(lane, soon, "a cap".into(), now.1);
                    return Ok(None);
                }
                let asked = Instant::now();
                let taken = purse.take(&charges).await?;
                if let Taken::Wait { .. } = taken {
                    shop.give_back(plan);
                }
                asking += asked.elapsed();
                match taken {
                    Taken::Wait { until, budget } => (until, budget),
                    Taken::Permit(permit) => {
                        let Some(mut work) = self.lanes.take(lane, now.1) else {
                            continue;
                        };
                        self.change_call(&mut work, (other, smaller), now)?;
                        let ranking = started.elapsed().saturating_sub(asking);
                        work.rank_us += ranking.as_micros() as u32;
                        return Ok(Some((work, permit)));
                    }
                }
            };
            self.lanes
                .wait(lane, until.max(now.1.plus_us(1)), budget, now.1);
        }
        // An answer that is still to come may make room.
        if self.in_flight.is_empty()
            && let Some((until, Some(budget))) = self.lanes.next()
        {
            self.progress
                .update(|shown| shown.paused_until = Some((until, budget.to_string())));
        }
        Ok(None)
    }

    /// The call that a lane makes in place of the one that its work was made for, if it is a lane of
    /// another way; an error if it has nothing to do now: a cheaper way is open, which wakes it when
    /// that is shut, or the work cannot be done its way.
    fn other_way(&self, lane: LaneId, purse: &Purse) -> Result<Option<Call>, NotNow> {
        let Way::Other { query, .. } = self.lanes.way(lane) else {
            return Ok(None);
        };
        let is_open = |charges: &[Charge]| purse.shut(charges).is_none();
        if self.lanes.has_cheaper(lane, is_open) {
            return Err(NotNow);
        }
        let work = self.lanes.first(lane).ok_or(NotNow)?;
        let step = &work.call.step;
        let call = self.shop.other_way(&work.robot, &work.tasks, step, &query);
        call.map(Some).ok_or(NotNow)
    }

    /// The work is done by another call, or for a smaller page, if so it was decided.
    fn change_call(
        &mut self,
        work: &mut Work,
        (other, smaller): (Option<Call>, Option<RequestPlan>),
        now: (RealTime, LimitTime),
    ) -> Result<(), EngineError> {
        if let Some(call) = other {
            self.go_by(work, call, now)?;
        }
        if let Some(plan) = smaller {
            work.call.plan = plan;
        }
        Ok(())
    }

    /// Some of the work's subjects are asked for by another query, the rest goes back.
    fn go_by(
        &mut self,
        work: &mut Work,
        other: Call,
        now: (RealTime, LimitTime),
    ) -> Result<(), EngineError> {
        let shop = Arc::clone(&self.shop);
        let step = work.call.step.clone();
        let query = shop.query(&step)?;
        let first = |robot: &Name, tasks: &[TaskRecord]| {
            let call = shop.call(robot, tasks, (query, step.clone()));
            call.map_err(|error| EngineError::Broken(error.to_string()))
        };
        let taken = shop.taken_by(&other.step.query, work.tasks.len());
        let rest = work.tasks.split_off(taken);
        if !rest.is_empty() {
            let call = first(&work.robot, &rest)?;
            let rest = work.part(rest, call);
            self.lanes.put(rest, Place::Front, now);
        }
        let instead = first(&work.robot, &work.tasks)?;
        let charges = Arc::clone(&work.call.charges);
        work.instead = Some(Box::new(instead));
        work.call = Call { charges, ..other };
        Ok(())
    }

    pub(crate) fn now(&self) -> (RealTime, LimitTime) {
        (self.shop.clock.real(), self.shop.clock.limit())
    }

    /// Whether one more call may be under way, as far as limits are no matter.
    fn may_send(&self) -> bool {
        self.has_room() && !self.shop.sites.home.health().is_paused()
    }

    /// Whether one more call may be under way, to whichever host.
    fn has_room(&self) -> bool {
        let settings = &self.shop.settings;
        let calls_max = if settings.hosts.is_empty() {
            settings.concurrency
        } else {
            // So that those who are slow keep nobody from asking others.
            settings.concurrency.saturating_mul(HOSTS_AT_ONCE)
        };
        self.shop.wire.calls() < calls_max && self.in_flight.len() < calls_max + ANSWERS_MAX
    }

    /// How long nothing can be done unless an answer comes.
    pub(crate) fn nap(&mut self) -> Duration {
        let clock = &self.shop.clock;
        let mut nap = NAP_MAX;
        let home = &self.shop.sites.home;
        let pause_until = home.health().pause_until;
        if home.health().is_paused() {
            let until = pause_until.unwrap_or_else(Instant::now);
            nap = nap.min(until.saturating_duration_since(Instant::now()));
        } else if self.has_room() {
            if self.may_send() {
                let fires = self.lanes.next().map(|(at, _)| clock.until_limit(at));
                let rest_us = self.lanes.rests_until().map(|it| it.since_us(clock.real()));
                let rests = rest_us.map(|us| Duration::from_micros(us.max(0).unsigned_abs()));
                nap = nap
                    .min(fires.unwrap_or(NAP_MAX))
                    .min(rests.unwrap_or(NAP_MAX));
            }
            if self.backlog {
                nap = Duration::ZERO;
            }
            nap = nap.min(self.until_next_due());
        }
        if let Some(limit) = self.shop.settings.time_max {
            nap = nap.min(limit.saturating_sub(self.started.elapsed()));
        }
        nap.max(Duration::from_millis(1))
    }

    /// How long until a robot that has nothing at hand has somebody to visit. The others are woken
    /// by the work that they have.
    fn until_next_due(&self) -> Duration {
        let filings = self.shop.expansion.robots.iter();
        let idle = filings.filter(|filing| {
            self.lanes.at_hand(&filing.lane) == 0 && self.controls.lets_run(&filing.robot)
        });
        let waits = idle.filter_map(|filing| {
            if let Some(since) = self.unfilled.get(&filing.lane) {
                return Some(BATCH_PATIENCE.saturating_sub(since.elapsed()));
            }
            let due = self.frontier.next_due(&filing.lane)?;
            self.shop.clock.until_world(due)
        });
        waits.min().unwrap_or(NAP_MAX)
    }
}
