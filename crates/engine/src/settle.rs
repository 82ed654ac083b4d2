//! From an answer to a commit: everything that it changes, and what comes next.

use crate::EngineError;
use crate::exchange::{Ending, Heard, Shop};
use crate::walk::{self, PageEnd, StepPage};
use crate::work::{POSTS_MAX, Purpose, TRIES_MAX, Work};
use kittiwake_frontier::{State, Visit};
use kittiwake_model::outcome::Consequence;
use kittiwake_model::{
    Commit, CursorState, FrontierRow, LogRow, Outcome, OutcomeCode, Sweep, Table, Value, Walk,
    WorldTime,
};
use kittiwake_network::{Reading, Robot};
use std::sync::Arc;

/// How long a limit is believed in that says nothing of when it ends.
pub(crate) const UNTOLD_WAIT_US: i64 = 60_000_000;

impl Shop {
    /// Turns an answer into a commit and says what comes next.
    pub(crate) async fn decide(
        &self,
        work: &mut Work,
        mut heard: Heard,
    ) -> Result<(Commit, Ending), EngineError> {
        let mut commit = Commit {
            at: heard.observed,
            expansion: Some(Arc::clone(&self.expansion)),
            log: Some(self.log_row(work, &heard)),
            raw: heard.raw.take(),
            ..Commit::default()
        };
        let outcome = heard.reading.outcome;
        if heard.shut_out && !work.call.site.is_home {
            return Ok((commit, Ending::Elsewhere));
        }
        if heard.shut_out {
            commit.outcomes = Self::outcomes(work, outcome, &heard.reading.reason);
            return Ok((commit, Ending::ShutOut(heard.reading.reason)));
        }
        let failed = match outcome.consequence() {
            Consequence::Wait => {
                commit.outcomes = Self::outcomes(work, outcome, &heard.reading.reason);
                let untold = self.clock.limit().plus_us(UNTOLD_WAIT_US);
                return Ok((commit, Ending::Wait(heard.wait_until.unwrap_or(untold))));
            }
            // What another host refuses does not end the crawl: others are asked in its place.
            Consequence::Stop if !work.call.site.is_home => {
                return Ok((commit, Ending::Elsewhere));
            }
            // The outcome of the call is logged, the subject's is still to come.
            Consequence::Stop if heard.renewed => return Ok((commit, Ending::Retry(None))),
            Consequence::Stop => {
                commit.outcomes = Self::outcomes(work, outcome, &heard.reading.reason);
                let token = if work.credential.is_some() {
                    "its token"
                } else {
                    "no token"
                };
                let reason = format!("{}, with {token}", heard.reading.reason);
                return Ok((commit, Ending::AuthExpired(reason)));
            }
            _ if heard.host_down => {
                commit.outcomes = Self::outcomes(work, outcome, &heard.reading.reason);
                return Ok((commit, Ending::HostDown(heard.reading.reason)));
            }
            Consequence::Retry => true,
            // Bytes that cannot be read may be a fault on the way: they are asked for again.
            Consequence::Settled => outcome == OutcomeCode::Malformed,
        };
        if failed && !work.is_last_chance() {
            return Ok((commit, Ending::Retry(heard.wait_until)));
        }
        // A page that names itself as the next may be a slip: it is read again before the walk is
        // given up for a circle.
        if work.tries + 1 < TRIES_MAX && names_itself(work, &heard.reading) {
            return Ok((commit, Ending::Retry(None)));
        }
        // One of them may be what the server stumbles over.
        if work.tasks.len() > 1 && !outcome.is_success() {
            return Ok((commit, Ending::Split));
        }
        let ending = self.settle(work, heard, &mut commit).await?;
        Ok((commit, ending))
    }

    /// Puts what the answer brought into the commit: the question is answered.
    async fn settle(
        &self,
        work: &mut Work,
        heard: Heard,
        commit: &mut Commit,
    ) -> Result<Ending, EngineError> {
        let Heard {
            mut reading,
            observed,
            ..
        } = heard;
        remember_posts(&mut work.posts, &reading);
        commit.outcomes = Self::outcomes(work, reading.outcome, &reading.reason);
        for (subject, code, reason) in std::mem::take(&mut reading.subject_outcomes) {
            if let Some(outcome) = commit
                .outcomes
                .iter_mut()
                .find(|outcome| outcome.subject == subject)
            {
                (outcome.code, outcome.reason) = (code, reason);
            }
        }
        commit.objects = std::mem::take(&mut reading.objects);
        commit.links = std::mem::take(&mut reading.links);
        // A page that could not be had stays the next page: the next visit asks for it again.
        let missed = reading.outcome.consequence() == Consequence::Retry
            || reading.outcome == OutcomeCode::Malformed;
        if work.call.purpose == Purpose::Resolve {
            return self.settle_resolve(work, missed, commit);
        }
        if missed {
            work.missed.push(work.call.step.query.clone());
        } else {
            self.move_cursors(work, &mut reading, commit)?;
        }
        let over = work.tasks.len() == 1 && reading.outcome.invalidates_user();
        if !over && self.has_another_step(work)? {
            return Ok(Ending::Continue);
        }
        if !work.missed.is_empty() {
            return Ok(Ending::GivenUp);
        }
        let mut due = Vec::with_capacity(work.tasks.len());
        for task in &mut work.tasks {
            let row = self.visited(&task.row, &work.posts, observed).await?;
            due.push((row.subject, row.due));
            commit.frontier.push(row);
        }
        Ok(Ending::Finished { due })
    }

    /// A lookup is over: either the subject's tasks can be visited now, or they are settled by it.
    fn settle_resolve(
        &self,
        work: &Work,
        missed: bool,
        commit: &mut Commit,
    ) -> Result<Ending, EngineError> {
        if missed {
            return Ok(Ending::GivenUp);
        }
        for task in &work.tasks {
            let subject = task.row.subject;
            let mut outcomes = commit.outcomes.iter_mut();
            let Some(outcome) = outcomes.find(|outcome| outcome.subject == subject) else {
                continue;
            };
            let named = commit
                .objects
                .iter()
                .find(|object| object.known_as == Some(subject));
            let can_visit = match named {
                Some(object) => self.can_ask(&work.robot, task, &object.identity)?,
                None => false,
            };
            if outcome.code.is_success() && can_visit {
                return Ok(Ending::Resolved);
            }
            if outcome.code.is_success() {
                outcome.code = OutcomeCode::Malformed;
                "the answer names no id of the subject".clone_into(&mut outcome.reason);
            }
        }
        commit.frontier = self.settled_rows(work, commit.at)?;
        Ok(Ending::Unresolved)
    }

    /// Moves the cursor of the list that was read. A call that is a robot's only one, and has no
    /// pages, needs none: the count of visits says that it was made.
    fn move_cursors(
        &self,
        work: &mut Work,
        reading: &mut Reading,
        commit: &mut Commit,
    ) -> Result<(), EngineError> {
        let query = self.query(&work.call.step)?;
        let robot = self.robot(&work.robot)?;
        if query.pages_max <= 1 && robot.steps.len() <= 1 {
            return Ok(());
        }
        let speaks_for_subject = self.speaks_for_subjects(work);
        let step = &work.call.step;
        for task in &mut work.tasks {
            let is_success = reading.outcome.is_success();
            let page = PageEnd {
                next: reading.next.take(),
                newest: reading.newest.take(),
                items: reading.listed,
                oldest: reading.oldest,
                latest: reading.latest,
                refused: !is_success,
            };
            let subject = task.row.subject;
            let history = self.settings.history;
            let digest = walk::digest_on(query, &work.call.site);
            let moment = (commit.at, digest);
            let (cursor, cap) = walk::advance(query, subject, step, &page, history, moment);
            let list = query.list.filter(|_| speaks_for_subject);
            if let (Some(list), None, true) = (list, cap, is_success)
                && cursor.state == CursorState::Complete
                && walk::is_whole(step)
            {
                commit.sweeps.push(Sweep {
                    subject,
                    walk: Walk {
                        list,
                        number: step.walk,
                    },
                    started: cursor.started,
                });
            }
            if let Some(cap) = cap {
                for outcome in commit
                    .outcomes
                    .iter_mut()
                    .filter(|outcome| outcome.subject == subject)
                {
                    (outcome.code, outcome.reason) =
                        (OutcomeCode::CapReached, cap.reason().to_owned());
                }
            }
            task.cursors.retain(|known| known.query != cursor.query);
            task.cursors.push(cursor.clone());
            commit.cursors.push(cursor);
        }
        Ok(())
    }

    fn has_another_step(&self, work: &Work) -> Result<bool, EngineError> {
        let robot = self.robot(&work.robot)?;
        let query = self.query(&work.call.step)?;
        if query.pages_max <= 1 && robot.steps.len() <= 1 {
            return Ok(false);
        }
        let task = work.tasks.first();
        Ok(task.is_some_and(|task| self.next_step(robot, task, &work.missed).is_some()))
    }

    pub(crate) fn robot(&self, name: &str) -> Result<&Robot, EngineError> {
        self.settings
            .network
            .robot(name)
            .ok_or_else(|| EngineError::Broken(format!("no robot {name:?}")))
    }

    /// The frontier row after a completed visit.
    async fn visited(
        &self,
        row: &FrontierRow,
        posts: &[WorldTime],
        at: WorldTime,
    ) -> Result<FrontierRow, EngineError> {
        let mut shared = self.shared.lock().await;
        let mut state = State::from_bytes(row.state.clone())
            .map_err(|error| EngineError::Broken(error.to_string()))?;
        self.policy
            .observe(&mut shared, &mut state, &Visit::complete(at, posts));
        let due = self.policy.due(&shared, &state, 0.0, at);
        let due = due.max(self.rested(&row.robot, at)?);
        let visits = row.visits.saturating_add(1);
        Ok(FrontierRow {
            visits,
            visited: Some(at),
            due,
            state: state.into_bytes(),
            ..row.clone()
        })
    }

    /// When a robot may come back at the earliest to a subject that it visited then.
    pub(crate) fn rested(&self, robot: &str, at: WorldTime) -> Result<WorldTime, EngineError> {
        let rest_us = self.robot(robot)?.revisit_after_us;
        // Just behind the visit, to keep the order of the queue.
        Ok(at.plus_us(rest_us.unwrap_or(1)))
    }

    /// The rows of all robots of a subject that cannot be found, as visited.
    fn settled_rows(&self, work: &Work, at: WorldTime) -> Result<Vec<FrontierRow>, EngineError> {
        let mut rows = Vec::new();
        for task in &work.tasks {
            let filings = self.expansion.robots.iter();
            for filing in filings.filter(|filing| filing.kind == task.identity.kind) {
                rows.push(FrontierRow {
                    subject: task.row.subject,
                    robot: filing.robot.clone(),
                    lane: filing.lane.clone(),
                    visits: task.row.visits.saturating_add(1),
                    visited: Some(at),
                    due: self.rested(&filing.robot, at)?,
                    state: Vec::new(),
                });
            }
        }
        Ok(rows)
    }

    fn outcomes(work: &Work, code: OutcomeCode, reason: &str) -> Vec<Outcome> {
        let query = &work.call.step.query;
        let outcome = |subject| Outcome {
            subject,
            query: query.clone(),
            code,
            reason: reason.to_owned(),
        };
        work.keys().map(outcome).collect()
    }

    pub(crate) fn log_row(&self, work: &Work, heard: &Heard) -> LogRow {
        let plan = &work.call.plan;
        let credential = self.credential_of(work);
        LogRow {
            query: work.call.step.query.clone(),
            subjects: work.keys().collect(),
            target: logged_target(work),
            cursor: plan.cursor.clone(),
            credential: credential
                .map_or_else(|| "anonymous".to_owned(), |known| known.fingerprint.clone()),
            node: self.node.clone(),
            status: heard.status,
            outcome: heard.reading.outcome,
            reason: heard.reading.reason.clone(),
            scheduled: work.scheduled,
            sent: heard.sent,
            answered: heard.answered,
            budgets: plan.costs.iter().map(|cost| cost.budget.clone()).collect(),
            rank_us: work.rank_us,
            read_us: heard.read_us,
            // What follows is not found out yet.
            seed_us: 0,
            bytes: heard.bytes,
            mended: heard.reading.mended,
            definition: self.settings.network.digest().clone(),
        }
    }
}

/// What was asked, as the log has it: with its host, where that is not the crawl's.
fn logged_target(work: &Work) -> String {
    let (site, target) = (&work.call.site, &work.call.plan.target);
    if site.is_home {
        return target.clone();
    }
    format!("{}{target}", site.base.origin().ascii_serialization())
}

fn names_itself(work: &Work, reading: &Reading) -> bool {
    match (&work.call.step.page, &reading.next) {
        (StepPage::Next(current), Some(next)) => current == next,
        _ => false,
    }
}

/// Notes when the posts of a page were made, within a bound.
fn remember_posts(posts: &mut Vec<WorldTime>, reading: &Reading) {
    let statuses = reading
        .objects
        .iter()
        .filter(|object| object.table == Table::Statuses);
    let fields = statuses.flat_map(|object| object.groups.iter().flat_map(|group| &group.fields));
    for (name, value) in fields {
        if let (true, Value::Time { at_us, .. }) = (&**name == "created_us", value)
            && posts.len() < POSTS_MAX
        {
            posts.push(WorldTime(*at_us));
        }
    }
}
