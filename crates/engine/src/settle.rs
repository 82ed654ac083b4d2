//! From an answer to a commit: everything that it changes, and what comes next.

use crate::EngineError;
use crate::backfill;
use crate::exchange::{Ending, Heard, Shop};
use crate::found::Found;
use crate::used_up::UNTOLD_WAIT_US;
use crate::walk::{self, Cap, PageEnd, StepPage};
use crate::work::{Purpose, TRIES_MAX, Work};
use kittiwake_model::outcome::Consequence;
use kittiwake_model::{
    Commit, CursorState, FrontierRow, Key, LogRow, Name, Outcome, OutcomeCode, Sweep, Walk,
    WorldTime,
};
use kittiwake_network::{Query, Reading, Robot};
use kittiwake_store::TaskRecord;
use std::sync::Arc;

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
            log: self.logged(work, &heard),
            raw: heard.raw.take(),
            ..Commit::default()
        };
        let outcome = heard.reading.outcome;
        // A credential that is refused concerns all robots.
        let is_refused = outcome.consequence() == Consequence::Stop && work.credential.is_some();
        let is_answered = !is_refused && !Self::is_asked_again(work, &heard);
        if work.call.purpose == Purpose::Probe && is_answered {
            let ending = self.settle_probe(work, &mut heard.reading, &mut commit);
            return Ok((commit, ending));
        }
        if heard.shut_out && !work.call.site.takes_credential {
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
            Consequence::Stop if !work.call.site.takes_credential => {
                return Ok((commit, Ending::Closed));
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
        let is_changed = !heard.reading.unfound.is_empty();
        if self.is_its_own(outcome) || is_changed {
            if work.tries + 1 < TRIES_MAX {
                return Ok((commit, Ending::Unread(heard.wait_until)));
            }
        } else if failed && !work.is_last_chance() {
            return Ok((commit, Ending::Retry(heard.wait_until)));
        }
        // A page that names itself as the next may be a slip: it is read again before the walk is
        // given up for a circle, also where other faults have used up the tries before.
        if names_itself(work, &heard.reading) {
            let is_first = work.slips == 0 && !work.is_last_chance();
            work.slips += 1;
            if is_first || work.tries + 1 < TRIES_MAX {
                return Ok((commit, Ending::Retry(None)));
            }
        }
        // The same page is asked for with fewer items, if there is a way to.
        if outcome == OutcomeCode::TooMuchData && self.ask_for_less(work) {
            return Ok((commit, Ending::Another));
        }
        // One of them may be what the server stumbles over.
        if work.tasks.len() > 1 && !outcome.is_success() {
            return Ok((commit, Ending::Split));
        }
        let ending = self.settle(work, heard, &mut commit).await?;
        Ok((commit, ending))
    }

    /// Whether bytes that cannot be read are what the subject is, and no fault of a server's: where
    /// nobody is asked for all, what stands at an address is all there is.
    fn is_its_own(&self, outcome: OutcomeCode) -> bool {
        outcome == OutcomeCode::Malformed && self.settings.network.asks_subjects()
    }

    /// Whether a host that was asked what it is has to be asked the same again.
    fn is_asked_again(work: &Work, heard: &Heard) -> bool {
        let consequence = heard.reading.outcome.consequence();
        let is_fault = consequence == Consequence::Retry || heard.host_down;
        consequence == Consequence::Wait || heard.renewed || is_fault && !work.is_last_chance()
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
        self.take_in_found(work, &reading)?;
        work.set_aside(&reading.absent);
        let batch = Self::found_in_batch(work, &reading);
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
        self.soften(work, commit);
        commit.objects = std::mem::take(&mut reading.objects);
        commit.links = std::mem::take(&mut reading.links);
        // A page that could not be had stays the next page: the next visit asks for it again.
        let missed = reading.outcome.consequence() == Consequence::Retry
            || !reading.unfound.is_empty()
            || reading.outcome == OutcomeCode::Malformed && !self.is_its_own(reading.outcome);
        if work.call.purpose.is_lookup() {
            return self.settle_lookup(work, missed, commit);
        }
        let query = work.call.step.query.clone();
        let is_backfill = self.backfilled(&work.robot, &query).is_some();
        // What could not be had in one piece is walked: nothing is missed.
        if missed && !is_backfill {
            work.missed.push(query);
        } else {
            self.move_cursors(work, &mut reading, commit)?;
        }
        let is_gone = reading.outcome.invalidates_user() && !is_backfill;
        let over = work.tasks.len() == 1 && is_gone;
        if !over && self.has_another_step(work)? {
            work.learn(&commit.objects);
            return Ok(Ending::Continue);
        }
        self.forget_places(&work.tasks);
        if !work.missed.is_empty() {
            return Ok(Ending::GivenUp);
        }
        let mut due = Vec::with_capacity(work.tasks.len());
        for (place, task) in work.tasks.iter().enumerate() {
            let found = batch.get(place).unwrap_or(&work.found);
            let row = self.visited(&task.row, found, work.tasks.len(), observed)?;
            due.push((row.subject, row.due));
            commit.frontier.push(row);
        }
        if let ([task], [row]) = (work.tasks.as_slice(), commit.frontier.as_slice())
            && !is_gone
        {
            let rhythm = self.rhythm(task, row, &work.found.posts).await?;
            commit.objects.extend(rhythm);
        }
        Ok(Ending::Finished { due })
    }

    /// Notes what an answer has told of the one who was asked about.
    fn take_in_found(&self, work: &mut Work, reading: &Reading) -> Result<(), EngineError> {
        let is_incremental = self.query(&work.call.step)?.incremental;
        if let [task] = work.tasks.as_slice()
            && work.call.purpose == Purpose::Visit
        {
            let found = &mut work.found;
            found.take_in(task, &work.call.step, is_incremental, reading);
        }
        Ok(())
    }

    /// What an answer has told of each of several, in their order; nothing where one was asked about.
    fn found_in_batch(work: &Work, reading: &Reading) -> Vec<Found> {
        if work.tasks.len() <= 1 {
            return Vec::new();
        }
        let keys = work.keys();
        keys.map(|subject| Found::in_batch(subject, reading))
            .collect()
    }

    /// A lookup is over: either the subject's tasks can be visited now, or they are settled by it.
    fn settle_lookup(
        &self,
        work: &Work,
        missed: bool,
        commit: &mut Commit,
    ) -> Result<Ending, EngineError> {
        let (id, is_needed) = match &work.call.purpose {
            Purpose::Resolve(id) => (id, true),
            Purpose::Locate(id) => (id, false),
            Purpose::Probe | Purpose::Visit => return Ok(Ending::GivenUp),
        };
        if !is_needed {
            // The subject's own outcome is still to come.
            commit.outcomes.clear();
            return Ok(Ending::LookedUp);
        }
        if missed {
            return Ok(Ending::GivenUp);
        }
        for subject in work.keys() {
            let is_told = is_told(commit, subject, id);
            let mut outcomes = commit.outcomes.iter_mut();
            let Some(outcome) = outcomes.find(|outcome| outcome.subject == subject) else {
                continue;
            };
            if outcome.code.is_success() && is_told {
                return Ok(Ending::LookedUp);
            }
            if outcome.code.is_success() {
                outcome.code = OutcomeCode::Malformed;
                "the answer names no id of the subject".clone_into(&mut outcome.reason);
            }
        }
        commit.frontier = self.settled_rows(work, commit.at)?;
        Ok(Ending::LookedUp)
    }

    /// Moves the cursor of the list that was read. A call that is a robot's only one, and has neither
    /// pages nor a mark, needs none: the count of visits says that it was made.
    fn move_cursors(
        &self,
        work: &mut Work,
        reading: &mut Reading,
        commit: &mut Commit,
    ) -> Result<(), EngineError> {
        let query = self.query(&work.call.step)?;
        let backfilled = self.backfilled(&work.robot, &query.name);
        if backfilled.is_none() && !query.incremental && self.is_only_call(work, query)? {
            return Ok(());
        }
        let speaks_for_subject = self.speaks_for_subjects(work);
        let step = &work.call.step;
        let expanding: Vec<&Query> = self.expanding(&work.robot)?;
        let stubs = std::mem::take(&mut reading.stubs);
        for task in &mut work.tasks {
            let is_success = reading.outcome.is_success();
            let mut left_out = None;
            if query.expands() {
                let found = stubs_for(query, &stubs);
                let open = walk::open_ids(query, task, step.walk);
                let open = query.open_after(open, true, &found);
                left_out = open.is_cut.then_some(Cap::Stubs);
                reading.next = open.token.filter(|_| is_success);
            }
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
            let mut moved = vec![cursor];
            for other in expanding.iter().filter(|other| other.name != query.name) {
                let found = stubs_for(other, &stubs);
                let before = walk::open_ids(other, task, step.walk);
                let open = other.open_after(before, false, &found);
                left_out = left_out.or(open.is_cut.then_some(Cap::Stubs));
                let Some(token) = open.token.filter(|_| !found.is_empty()) else {
                    continue;
                };
                let site = self.site_of(other, task);
                let site = site.as_ref().unwrap_or(&work.call.site);
                let moment = (commit.at, walk::digest_on(other, site));
                match walk::opened(other, task, step.walk, token, moment) {
                    Ok(cursor) => moved.push(cursor),
                    Err(cap) => left_out = Some(cap),
                }
            }
            if let Some(cap) = cap.or(left_out) {
                for outcome in commit
                    .outcomes
                    .iter_mut()
                    .filter(|outcome| outcome.subject == subject)
                {
                    (outcome.code, outcome.reason) =
                        (OutcomeCode::CapReached, cap.reason().to_owned());
                }
            }
            if let Some(list) = backfilled.filter(|_| is_success) {
                let site = self.site_of(list, task);
                let site = site.as_ref().unwrap_or(&work.call.site);
                let had = (reading.items, walk::digest_on(list, site));
                moved.push(backfill::finished(list, subject, step.walk, had, commit.at));
            }
            for cursor in moved {
                task.cursors.retain(|known| known.query != cursor.query);
                let moved_in = self.settings.network.query(&cursor.query);
                commit.cursors.push(self.written_cursor(moved_in, &cursor));
                task.cursors.push(cursor);
            }
        }
        Ok(())
    }

    /// The steps of a robot that are asked for what answers leave out.
    fn expanding(&self, robot: &str) -> Result<Vec<&Query>, EngineError> {
        let network = &self.settings.network;
        let steps = self.robot(robot)?.steps.iter();
        let queries = steps.filter_map(|step| network.query(&step.query));
        Ok(queries.filter(|query| query.expands()).collect())
    }

    /// Whether a visit is one call and no more.
    fn is_only_call(&self, work: &Work, query: &Query) -> Result<bool, EngineError> {
        Ok(query.pages_max <= 1 && self.robot(&work.robot)?.steps.len() <= 1)
    }

    fn has_another_step(&self, work: &Work) -> Result<bool, EngineError> {
        let robot = self.robot(&work.robot)?;
        let query = self.query(&work.call.step)?;
        let is_backfill = self.backfilled(&work.robot, &query.name).is_some();
        if !is_backfill && self.is_only_call(work, query)? {
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

    /// The rows of all robots of a subject that cannot ask about it without what was not found, as
    /// visited.
    fn settled_rows(&self, work: &Work, at: WorldTime) -> Result<Vec<FrontierRow>, EngineError> {
        let mut rows = Vec::new();
        for task in &work.tasks {
            let filings = self.expansion.robots.iter();
            for filing in filings.filter(|filing| filing.kind == task.identity.kind) {
                if filing.robot != work.robot && self.needs_no_lookup(&filing.robot, task)? {
                    continue;
                }
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

    /// Whether a robot can ask about a subject that was not found, by an id that is known.
    fn needs_no_lookup(&self, robot: &str, task: &TaskRecord) -> Result<bool, EngineError> {
        let task = TaskRecord {
            row: FrontierRow {
                robot: robot.into(),
                ..task.row.clone()
            },
            cursors: Vec::new(),
            ..task.clone()
        };
        self.can_ask(robot, &task)
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
        let (target, cursor) = self.logged_place(work);
        LogRow {
            query: work.call.step.query.clone(),
            subjects: match work.call.purpose {
                // It is asked on behalf of all who live there.
                Purpose::Probe => Vec::new(),
                _ => work.keys().collect(),
            },
            target: logged_target(work, target),
            cursor,
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

/// Whether an answer told an id of a subject.
fn is_told(commit: &Commit, subject: Key, id: &str) -> bool {
    let mut objects = commit.objects.iter();
    let named = objects.find(|object| object.known_as == Some(subject));
    named.is_some_and(|object| object.identity.has_id(id))
}

/// What was asked, as the log has it: with its host, where that is not the crawl's.
fn logged_target(work: &Work, target: &str) -> String {
    let site = &work.call.site;
    if site.is_home {
        return target.to_owned();
    }
    format!("{}{target}", site.base.origin().ascii_serialization())
}

/// The ids that an answer has left to a query.
fn stubs_for<'s>(query: &Query, stubs: &'s [(Name, String)]) -> Vec<&'s str> {
    let own = stubs.iter().filter(|(name, _)| *name == query.name);
    own.map(|(_, id)| id.as_str()).collect()
}

fn names_itself(work: &Work, reading: &Reading) -> bool {
    match (&work.call.step.page, &reading.next) {
        (StepPage::Next(current), Some(next)) => current == next,
        _ => false,
    }
}
