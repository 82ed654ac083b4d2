//! From leases to work: what is read of the store before a call can be made.

use crate::EngineError;
use crate::scheduler::Scheduler;
use crate::walk;
use crate::work::{Call, Purpose, Work};
use kittiwake_model::{Commit, FrontierRow, Key, Name, Outcome, OutcomeCode, WorldTime};
use kittiwake_network::RequestError;
use kittiwake_store::TaskRecord;
use std::sync::Arc;
use std::time::Instant;

/// A visit as far as it has come when its next call is prepared.
pub(crate) struct Begun {
    /// When choosing it began.
    pub at: Instant,
    pub posts: Vec<WorldTime>,
    pub missed: Vec<Name>,
}

impl Begun {
    pub(crate) fn at(at: Instant) -> Self {
        Self {
            at,
            posts: Vec::new(),
            missed: Vec::new(),
        }
    }
}

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

    pub(crate) async fn make_work(
        &mut self,
        lane: &Name,
        robot: &Name,
        keys: &[Key],
        batch: usize,
    ) -> Result<(), EngineError> {
        let ranked = Instant::now();
        let asked = keys.iter().map(|key| (*key, robot.clone())).collect();
        let records = self.shop.store.tasks(asked).await?;
        let mut together: Vec<TaskRecord> = Vec::new();
        for (key, record) in keys.iter().zip(records) {
            let Some(record) = record else {
                // The subject became part of another, whose own rows are filed.
                self.frontier.release(lane, *key, None);
                continue;
            };
            if batch > 1 && self.shop.can_ask(robot, &record, &record.identity)? {
                together.push(record);
                if together.len() == batch {
                    self.prepare(
                        lane,
                        robot,
                        std::mem::take(&mut together),
                        Begun::at(ranked),
                    )
                    .await?;
                }
            } else {
                self.prepare(lane, robot, vec![record], Begun::at(ranked))
                    .await?;
            }
        }
        if !together.is_empty() {
            self.prepare(lane, robot, together, Begun::at(ranked))
                .await?;
        }
        Ok(())
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
        let (network, robot_rules) = (&shop.settings.network, shop.robot(robot)?);
        let Some(step) = walk::next_step(network, robot_rules, first, &begun.missed) else {
            return self.nothing_to_ask(lane, tasks).await;
        };
        let call = match shop.call(shop.query(&step)?, &tasks, step) {
            Ok(call) => call,
            Err(error) => return self.unaskable(lane, tasks, &error).await,
        };
        if call.purpose == Purpose::Resolve {
            // One lookup serves all robots of the subject.
            if let Some(waiting) = self.resolving.get_mut(&subject) {
                waiting.push(lane.clone());
                return Ok(());
            }
            self.resolving.insert(subject, Vec::new());
        }
        self.know_budgets(&call).await?;
        let (returns, not_before) = self.returns_of(&tasks, robot);
        let work = Work {
            lane: lane.clone(),
            robot: robot.clone(),
            call,
            tries: 0,
            returns,
            not_before,
            scheduled: self.shop.clock.real(),
            posts: begun.posts,
            missed: begun.missed,
            rank_us: begun.at.elapsed().as_micros() as u32,
            tasks,
        };
        self.ready.entry(lane.clone()).or_default().push_back(work);
        Ok(())
    }

    async fn know_budgets(&self, call: &Call) -> Result<(), EngineError> {
        let mut purse = self.shop.purse.lock().await;
        for (name, id) in call.plan.budgets.iter().zip(&call.budgets) {
            let rule = self.shop.settings.network.budget(name);
            let rule = rule.ok_or_else(|| EngineError::Broken(format!("no budget {name:?}")))?;
            purse.add(id.clone(), rule);
        }
        Ok(())
    }

    /// Every list of the visit was walked before the visit itself was recorded.
    async fn nothing_to_ask(
        &mut self,
        lane: &Name,
        tasks: Vec<TaskRecord>,
    ) -> Result<(), EngineError> {
        let at = self.shop.clock.world();
        let mut commit = Commit {
            at,
            ..Commit::default()
        };
        for task in tasks {
            let visits = task.row.visits.saturating_add(1);
            self.frontier.release(lane, task.row.subject, None);
            commit.frontier.push(FrontierRow {
                visits,
                due: at,
                ..task.row
            });
        }
        let reports = self.shop.store.commit(vec![commit]).await?;
        self.take_in(&reports).await
    }

    /// No request can be made for the subject: it has no id here and none can be asked for.
    async fn unaskable(
        &mut self,
        lane: &Name,
        tasks: Vec<TaskRecord>,
        error: &RequestError,
    ) -> Result<(), EngineError> {
        let at = self.shop.clock.world();
        let mut commit = Commit {
            at,
            ..Commit::default()
        };
        for task in tasks {
            self.frontier.release(lane, task.row.subject, None);
            commit.outcomes.push(Outcome {
                subject: task.row.subject,
                query: task.row.robot.clone(),
                code: OutcomeCode::BadRequest,
                reason: error.to_string(),
            });
            let visits = task.row.visits.saturating_add(1);
            commit.frontier.push(FrontierRow {
                visits,
                due: at,
                ..task.row
            });
        }
        let reports = self.shop.store.commit(vec![commit]).await?;
        self.take_in(&reports).await
    }
}
