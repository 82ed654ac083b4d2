//! From leases to work: what is read of the store before a call can be made.

use crate::EngineError;
use crate::found::Found;
use crate::introduce::Introduced;
use crate::lanes::{Kind, Place, QueueId, Server, Way};
use crate::manners;
use crate::parking::Parked;
use crate::plan::CannotAsk;
use crate::scheduler::Scheduler;
use crate::unnamed::Patience;
use crate::walk::{Step, StepPage};
use crate::work::{Call, Work};
use kittiwake_frontier::Back;
use kittiwake_model::{Commit, FrontierRow, Key, Name, Outcome, OutcomeCode};
use kittiwake_store::TaskRecord;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A visit as far as it has come when its next call is prepared.
pub(crate) struct Begun {
    /// When choosing it began.
    pub at: Instant,
    /// Time that choosing it took before that.
    pub before: Duration,
    pub found: Found,
    pub missed: Vec<Name>,
    /// How often the call was tried already.
    pub tries: u32,
    pub place: Place,
    /// The query that is asked in place of a batch, about one who is missing from it.
    pub alone: Option<Name>,
}

impl Begun {
    pub(crate) fn at(at: Instant) -> Self {
        Self {
            at,
            before: Duration::ZERO,
            found: Found::default(),
            missed: Vec::new(),
            tries: 0,
            place: Place::Back,
            alone: None,
        }
    }
}

/// The outcome of a visit to a host that has just told all that the visit would.
const KNOWN: Option<(OutcomeCode, &str)> = Some((OutcomeCode::Ok, "told when it was first asked"));

impl Scheduler {
    /// How many subjects of a robot share a call. Only a robot of one unpaged query can batch.
    pub(crate) fn batch_size(&self, robot: &str) -> Result<usize, EngineError> {
        let robot = self.shop.robot(robot)?;
        let [step] = robot.steps.as_slice() else {
            return Ok(1);
        };
        let query = self.shop.settings.network.query(&step.query);
        Ok(query
            .filter(|query| query.pages_max <= 1)
            .map_or(1, |query| query.batch_max.max(1) as usize))
    }

    /// Makes subjects that are leased into work; choosing them began at `ranked`.
    pub(crate) async fn make_work(
        &mut self,
        (lane, robot): (&Name, &Name),
        found: Vec<(Key, Option<TaskRecord>)>,
        batch: usize,
        ranked: Instant,
    ) -> Result<(), EngineError> {
        // What was read at once is counted for each.
        let each = ranked.elapsed() / u32::try_from(found.len().max(1)).unwrap_or(u32::MAX);
        let begun = |tasks: usize| Begun {
            before: each * u32::try_from(tasks).unwrap_or(1),
            ..Begun::at(Instant::now())
        };
        // Those who are asked of the same host.
        let mut together: BTreeMap<String, Vec<TaskRecord>> = BTreeMap::new();
        let mut opted_out: Vec<TaskRecord> = Vec::new();
        for (key, record) in found {
            let Some(record) = record else {
                // The subject became part of another, whose own rows are filed.
                self.frontier.release(lane, key, Back::Out);
                continue;
            };
            if !self.is_wanted(record.row.visited) {
                // Visited since it was filed: the store is the truth.
                self.frontier.release(lane, key, Back::Out);
                continue;
            }
            if self.is_outdated((lane, key), ranked).await? {
                continue;
            }
            if record.opted_out && !self.shop.settings.include_opted_out {
                opted_out.push(record);
                continue;
            }
            if batch > 1 && self.shop.can_ask(robot, &record)? {
                let host = self.shop.host_for(robot, &record)?;
                let with = together.entry(host).or_default();
                with.push(record);
                if with.len() == batch {
                    let full = std::mem::take(with);
                    self.prepare(lane, robot, full, begun(batch)).await?;
                }
            } else {
                self.prepare(lane, robot, vec![record], begun(1)).await?;
            }
        }
        for with in together.into_values().filter(|with| !with.is_empty()) {
            let begun = begun(with.len());
            self.prepare(lane, robot, with, begun).await?;
        }
        if opted_out.is_empty() {
            return Ok(());
        }
        let reason = (OutcomeCode::OptedOut, "asks not to be collected");
        self.settle_unasked(lane, opted_out, None, Some(reason))
            .await
    }

    /// Makes tasks into work, with the next call ready.
    pub(crate) async fn prepare(
        &mut self,
        lane: &Name,
        robot: &Name,
        tasks: Vec<TaskRecord>,
        begun: Begun,
    ) -> Result<(), EngineError> {
        let Some(first) = tasks.first() else {
            return Ok(());
        };
        let subject = first.row.subject;
        let shop = Arc::clone(&self.shop);
        let known = shop.robot(robot)?;
        let Some(step) = shop.next_step(known, first, &begun.missed) else {
            // Every list of the visit was walked before the visit itself was recorded; or there is
            // none that this host knows.
            let lacks = shop.is_not_offered(known, first);
            let outcome = lacks.then_some((OutcomeCode::Forbidden, "not offered by this host"));
            return self.settle_unasked(lane, tasks, None, outcome).await;
        };
        let step = match &begun.alone {
            Some(query) => Step {
                query: query.clone(),
                page: StepPage::First,
                walk: step.walk,
                cursor: None,
            },
            None => step,
        };
        let query = shop.query(&step)?;
        let most = query.batch_max.max(1) as usize;
        if tasks.len() > most {
            // What serves fewer was chosen for this host.
            return self.prepare_parts(lane, robot, tasks, most).await;
        }
        let call = match shop.call(robot, &tasks, (query, step)) {
            Ok(call) => call,
            Err(error) => return self.cannot_ask((lane, robot), tasks, begun, error).await,
        };
        let call = match self.introduce(lane, robot, &tasks, call) {
            Introduced::Call(call) => *call,
            Introduced::Waiting => return Ok(()),
            Introduced::Known => return self.settle_unasked(lane, tasks, None, KNOWN).await,
        };
        // Of several steps the others are still to be asked.
        if known.steps.len() <= 1 && shop.is_known_forbidden(&call) {
            let outcome = (OutcomeCode::Forbidden, manners::FORBIDDEN);
            let query = Some(call.step.query);
            return self.settle_unasked(lane, tasks, query, Some(outcome)).await;
        }
        // One lookup serves all robots of the subject.
        if call.purpose.is_lookup()
            && let Some(waiting) = self.resolving.get_mut(&subject)
        {
            waiting.push(lane.clone());
            return Ok(());
        }
        let queue = self.queue_for((lane, robot), &call, &tasks).await?;
        // Visits that go on are parked, and all that wait for another host than the crawl's: whoever is
        // slow is to hold up nobody else. Whoever comes from there is wanted now.
        let waits_its_turn =
            begun.alone.is_none() && (begun.place == Place::Front || !call.site.is_home);
        if waits_its_turn
            && let [task] = tasks.as_slice()
            && self.lanes.length(queue) >= self.ready_max(&call.site)
        {
            let parked = Parked {
                lane: lane.clone(),
                robot: robot.clone(),
                subject: task.row.subject,
                found: begun.found,
                missed: begun.missed,
            };
            self.parking.park(queue, parked);
            return Ok(());
        }
        if call.purpose.is_lookup() {
            // Not before it is sure to be asked: whoever waits for it waits for nothing else.
            self.resolving.insert(subject, Vec::new());
        }
        let (returns, not_before) = self.returns_of(&tasks, robot);
        let work = Work {
            lane: lane.clone(),
            robot: robot.clone(),
            queue,
            call,
            credential: None,
            redirected: None,
            instead: None,
            tries: begun.tries,
            slips: 0,
            returns,
            not_before,
            scheduled: self.shop.clock.real(),
            found: begun.found,
            missed: begun.missed,
            rank_us: (begun.before + begun.at.elapsed()).as_micros() as u32,
            tasks,
            aside: Vec::new(),
        };
        let now = self.now();
        self.lanes.put(work, begun.place, now);
        if !self.lanes.is_served(queue) {
            // Everyone who could ask was refused since the robot began.
            self.switch_off([robot.clone()]);
        }
        Ok(())
    }

    /// Makes tasks into work, so many at a time.
    async fn prepare_parts(
        &mut self,
        lane: &Name,
        robot: &Name,
        mut tasks: Vec<TaskRecord>,
        most: usize,
    ) -> Result<(), EngineError> {
        while !tasks.is_empty() {
            let rest = tasks.split_off(most.min(tasks.len()));
            let begun = Begun::at(Instant::now());
            Box::pin(self.prepare(lane, robot, tasks, begun)).await?;
            tasks = rest;
        }
        Ok(())
    }

    /// Where the call waits: with others that take the same of the same budgets.
    pub(crate) async fn queue_for(
        &mut self,
        (lane, robot): (&Name, &Name),
        call: &Call,
        tasks: &[TaskRecord],
    ) -> Result<QueueId, EngineError> {
        let (plan, query) = (&call.plan, &call.step.query);
        let kind = Kind::new(
            (lane, robot),
            (query, &call.site),
            plan.send_credential,
            &plan.costs,
        );
        if let Some(queue) = self.lanes.queue(&kind) {
            return Ok(queue);
        }
        let shop = Arc::clone(&self.shop);
        let mut servers = self.servers(robot, call, &Way::First);
        for (place, other) in shop.others(robot, call).iter().enumerate() {
            let Some(call) = shop.other_way(robot, tasks, &call.step, other) else {
                continue;
            };
            let way = Way::Other {
                place: place + 1,
                query: other.clone(),
            };
            let more = self.servers(robot, &call, &way).into_iter();
            // What is charged to the same is no help.
            let more: Vec<Server> = more
                .filter(|it| servers.iter().all(|known| known.charges != it.charges))
                .collect();
            servers.extend(more);
        }
        call.site.recall(&shop.settings).await?;
        let mut purse = call.site.purse.lock().await;
        for charge in servers.iter().flat_map(|server| &*server.charges) {
            let name = &charge.cost.budget;
            let rule = shop.settings.network.budget(name);
            let rule = rule.ok_or_else(|| EngineError::Broken(format!("no budget {name:?}")))?;
            purse.add(charge.budget.clone(), rule).await?;
        }
        drop(purse);
        Ok(self.lanes.open(kind, servers))
    }

    /// Everyone who may make such a call, each with what it is charged to.
    fn servers(&self, robot: &str, call: &Call, way: &Way) -> Vec<Server> {
        let shop = &self.shop;
        let credentials: Vec<_> = if call.plan.send_credential {
            let is_left = |id: &_| !self.controls.is_refused(*id);
            shop.serving(robot).filter(is_left).map(Some).collect()
        } else {
            vec![None]
        };
        let server = |credential| Server {
            way: way.clone(),
            credential,
            charges: shop.charges(&call.site, &call.step.query, &call.plan.costs, credential),
        };
        credentials.into_iter().map(server).collect()
    }

    /// The only host that can be asked is out of reach: the visit is left to a later one.
    async fn put_off_unreachable(
        &mut self,
        lane: &Name,
        tasks: Vec<TaskRecord>,
    ) -> Result<(), EngineError> {
        let again = if self.shop.settings.rounds.end() {
            Back::Out
        } else {
            let later_us = self.shop.settings.host_patience.as_micros() as i64;
            Back::Again(self.shop.clock.world().plus_us(later_us))
        };
        let outcome = |task: &TaskRecord| Outcome {
            subject: task.row.subject,
            query: task.row.robot.clone(),
            code: OutcomeCode::HostDown,
            reason: "its host cannot be reached".to_owned(),
        };
        let commit = Commit {
            at: self.shop.clock.world(),
            outcomes: tasks.iter().map(outcome).collect(),
            ..Commit::default()
        };
        for task in &tasks {
            self.given_up += 1;
            self.frontier.release(lane, task.row.subject, again);
        }
        let reports = self.shop.store.commit(vec![commit]).await?;
        self.take_in(&reports).await
    }

    /// There is no call for tasks now: they wait, another host stands in, or they are settled.
    async fn cannot_ask(
        &mut self,
        (lane, robot): (&Name, &Name),
        tasks: Vec<TaskRecord>,
        begun: Begun,
        error: CannotAsk,
    ) -> Result<(), EngineError> {
        match error {
            CannotAsk::Out => self.put_off_unreachable(lane, tasks).await,
            CannotAsk::NotNamedYet => {
                if self.waits_for_name(lane, &tasks, Patience::StandsIn) {
                    return Ok(());
                }
                for task in &tasks {
                    self.shop.stand_in_for(task.row.subject);
                }
                Box::pin(self.prepare(lane, robot, tasks, begun)).await
            }
            // An endless crawl comes back to them anyway.
            CannotAsk::Unnamed
                if self.shop.settings.rounds.end()
                    && self.waits_for_name(lane, &tasks, Patience::GivenUp) =>
            {
                Ok(())
            }
            error => {
                let reason = (error.outcome(), &*error.to_string());
                self.settle_unasked(lane, tasks, None, Some(reason)).await
            }
        }
    }

    /// Settles tasks without a call: there is nothing to ask, or it may not be asked. The outcome is that
    /// of the query that would have been asked, if that is known, or else goes by the robot's name.
    async fn settle_unasked(
        &mut self,
        lane: &Name,
        tasks: Vec<TaskRecord>,
        query: Option<Name>,
        outcome: Option<(OutcomeCode, &str)>,
    ) -> Result<(), EngineError> {
        let at = self.shop.clock.world();
        let mut commit = Commit {
            at,
            ..Commit::default()
        };
        for task in tasks {
            self.frontier.release(lane, task.row.subject, Back::Out);
            let robot = task.row.robot.clone();
            self.progress.update(|shown| {
                let robot = shown.robot(&robot);
                robot.waiting = robot.waiting.saturating_sub(1);
            });
            commit
                .outcomes
                .extend(outcome.map(|(code, reason)| Outcome {
                    subject: task.row.subject,
                    query: query.clone().unwrap_or(robot),
                    code,
                    reason: reason.to_owned(),
                }));
            commit.frontier.push(FrontierRow {
                visits: task.row.visits.saturating_add(1),
                visited: Some(at),
                due: self.shop.rested(&task.row.robot, at)?,
                ..task.row
            });
        }
        let reports = self.shop.store.commit(vec![commit]).await?;
        self.take_in(&reports).await
    }
}
