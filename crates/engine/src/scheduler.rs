//! The scheduler: which work is sent next, and what happens when it comes back.

use crate::control::Controls;
use crate::exchange::{Done, Ending, Shop, exchange};
use crate::lanes::{Lanes, Place as QueuePlace};
use crate::open::IDLE;
use crate::parking::Parking;
use crate::permits::Permit;
use crate::prepare::Begun;
use crate::reading::{Reading, Subjects, Wanted};
use crate::settings::{CrawlReport, End};
use crate::trouble::{HostHealth, Returned};
use crate::unnamed::Unnamed;
use crate::work::Work;
use crate::{EngineError, Progress};
use kittiwake_frontier::{Back, Frontier, Place};
use kittiwake_model::{
    Commit, CommitReport, Filed, Key, Name, RobotFiling, RunEnd, RunUpdate, WorldTime,
};
use kittiwake_store::DueQuestion;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How long a call that could serve more subjects waits for them.
pub(crate) const BATCH_PATIENCE: Duration = Duration::from_secs(5);

/// Subjects leased at once, at the most.
const LEASES_MAX: usize = 1_024;

/// Calls for one subject each that are kept at hand, however few are sent at once: a look into the
/// store is shared by half as many.
const SINGLE_MIN: usize = 32;

/// Of ranked subjects this part is chosen ahead, and so many calls at least.
const RANKED_PART: usize = 256;
const RANKED_MIN: usize = 2;

/// Subjects that were looked up and are remembered at once.
const LOOKED_UP_MAX: usize = 100_000;

/// Waiting subjects are counted up to this many.
const COUNTED_MAX: usize = 1_000_000;

/// How often budgets are shown.
const BUDGETS_EVERY: Duration = Duration::from_millis(500);

/// One running crawl.
#[derive(Debug)]
pub(crate) struct Scheduler {
    pub shop: Arc<Shop>,
    pub progress: Arc<Progress>,
    run: i64,
    /// When this round began: whoever was visited since has had their turn.
    round: WorldTime,
    pub controls: Controls,
    pub frontier: Frontier,
    /// Work that could be sent, and by whom.
    pub lanes: Lanes,
    /// Tasks that are read from the store.
    pub reading: Reading,
    /// Visits that wait for their turn to become work again.
    pub parking: Parking,
    /// Lanes with too few subjects to fill a call, and since when they wait for more.
    pub unfilled: HashMap<Name, Instant>,
    /// Subjects whose id on this host is being asked for, with the tasks that wait for it.
    pub resolving: HashMap<Key, Vec<Name>>,
    /// Subjects that were looked up, and when: what was read of them before is out of date.
    pub looked_up: HashMap<Key, Instant>,
    /// Hosts that are asked what they can do, with the tasks that wait for it.
    pub probing: HashMap<String, Vec<(Name, Key)>>,
    /// Tasks that wait until their own hosts say what they call them.
    pub unnamed: Unnamed,
    /// Those who were filed in ranked lanes since their cards were last looked at.
    pub newcomers: HashMap<Name, Vec<Key>>,
    /// Ranked lanes in which somebody has yet to be visited for the first time.
    pub young: HashSet<Name>,
    /// Tasks that failed and came back to the frontier.
    pub returns: HashMap<(Key, Name), Returned>,
    pub in_flight: JoinSet<Result<Done, EngineError>>,
    pub backlog: bool,
    pub ended: Option<End>,
    pub started: Instant,
    pub calls: u64,
    violations: u64,
    /// Visits that failed for good in this run.
    pub given_up: u64,
    pub jitter: u64,
    budgets_shown: Option<Instant>,
}

impl Scheduler {
    pub(crate) fn new(
        shop: Arc<Shop>,
        progress: Arc<Progress>,
        (run, round): (i64, WorldTime),
        jitter_seed: u64,
        started: Instant,
    ) -> Self {
        Self {
            shop,
            progress,
            run,
            round,
            controls: Controls::default(),
            frontier: Frontier::default(),
            lanes: Lanes::default(),
            parking: Parking::default(),
            reading: Reading::default(),
            unfilled: HashMap::new(),
            resolving: HashMap::new(),
            looked_up: HashMap::new(),
            probing: HashMap::new(),
            unnamed: Unnamed::default(),
            newcomers: HashMap::new(),
            young: HashSet::new(),
            returns: HashMap::new(),
            in_flight: JoinSet::new(),
            backlog: false,
            ended: None,
            started,
            calls: 0,
            violations: 0,
            given_up: 0,
            jitter: jitter_seed | 1,
            budgets_shown: None,
        }
    }

    /// Files a subject in the near future, unless this crawl has no further use for it.
    fn file(&mut self, filed: &Filed) -> Result<(), EngineError> {
        let filings = &self.shop.expansion.robots;
        let is_ours = filings.iter().any(|filing| filing.lane == filed.lane);
        if !is_ours || !self.is_wanted(filed.visited) {
            return Ok(());
        }
        if self.frontier.is_ranked(&filed.lane) {
            return self.file_ranked(filed);
        }
        self.frontier.file(&filed.lane, filed.subject, filed.due);
        Ok(())
    }

    /// Whether a subject that was last visited then has to be visited in this run.
    pub(crate) fn is_wanted(&self, visited: Option<WorldTime>) -> bool {
        !self.shop.settings.rounds.end() || visited.is_none_or(|visited| visited < self.round)
    }

    /// Why the crawl should end now, if it should.
    pub(crate) fn end(&mut self) -> Option<End> {
        if let Some(end) = self.ended.take() {
            return Some(end);
        }
        let settings = &self.shop.settings;
        if settings
            .time_max
            .is_some_and(|limit| self.started.elapsed() >= limit)
        {
            return Some(End::Time);
        }
        if let Some(end) = self.shop.cap_reached() {
            return Some(end);
        }
        let filings = &self.shop.expansion.robots;
        let running = || {
            filings
                .iter()
                .filter(|it| !self.controls.is_stopped(&it.robot))
        };
        if running().next().is_none() {
            return Some(End::Stopped);
        }
        let busy = self.is_busy() || !self.unnamed.is_empty();
        (!busy && settings.rounds.end()).then_some(End::Idle)
    }

    /// Whether anything is to be done before those are asked about whom nobody has named.
    fn is_busy(&self) -> bool {
        let filings = self.shop.expansion.robots.iter();
        let mut running = filings.filter(|it| !self.controls.is_stopped(&it.robot));
        self.backlog
            || !self.in_flight.is_empty()
            || !self.lanes.is_empty()
            || !self.parking.is_empty()
            || !self.reading.is_empty()
            || running.any(|filing| !self.frontier.is_empty(&filing.lane))
    }

    /// Leases what is due until every lane has enough work at hand.
    pub(crate) async fn lease(&mut self) -> Result<(), EngineError> {
        self.obey().await?;
        if self.backlog {
            let reports = self.shop.hand_on_depths().await?;
            self.backlog = false;
            self.take_in(&reports).await?;
        }
        self.take_found().await?;
        self.unpark();
        if !self.unnamed.is_empty() && !self.is_busy() {
            self.ask_for_unnamed();
        }
        let enough = self.enough();
        let shop = Arc::clone(&self.shop);
        for filing in &shop.expansion.robots {
            if !self.controls.lets_run(&filing.robot) {
                continue;
            }
            let begun = Instant::now();
            let batch = self.batch_size(&filing.robot)?;
            let is_ranked = self.frontier.is_ranked(&filing.lane);
            let enough = match batch {
                // Whoever is chosen early is chosen by what was known then.
                _ if is_ranked => self.ranked_enough(filing, batch, enough),
                1 => enough.max(SINGLE_MIN),
                _ => enough,
            };
            let at_hand = self.at_hand(&filing.lane);
            // Many are read at once, rather than one after the other as they are needed.
            if at_hand > enough / 2 {
                continue;
            }
            self.refill(filing).await?;
            let calls_wanted = enough.saturating_sub(at_hand);
            let wanted = calls_wanted.min((LEASES_MAX / batch).max(1)) * batch;
            let wanted = self.filling(&filing.lane, batch, wanted);
            let until = self.due_until();
            let leases = if is_ranked {
                self.lease_ranked(filing, wanted).await?
            } else {
                self.frontier.lease(&filing.lane, until, wanted)
            };
            if leases.is_empty() {
                continue;
            }
            let keys: Vec<Key> = leases.iter().map(|lease| lease.subject).collect();
            let wanted = Wanted {
                lane: filing.lane.clone(),
                robot: filing.robot.clone(),
                subjects: Subjects::Fresh { keys, batch },
                begun,
            };
            self.reading.start(&shop, wanted);
        }
        Ok(())
    }

    /// Work of each robot that is kept at hand.
    pub(crate) fn enough(&self) -> usize {
        (self.shop.settings.concurrency * 2).clamp(4, 256)
    }

    /// The same of a robot whose subjects are ranked: no more than a small part of them is chosen ahead.
    fn ranked_enough(&self, filing: &RobotFiling, batch: usize, enough: usize) -> usize {
        let part = self.frontier.ranked_count(&filing.lane) / (RANKED_PART * batch);
        part.clamp(RANKED_MIN, enough.max(RANKED_MIN))
    }

    /// Work of a robot that there is no need to add to. What waits for a limit of its own keeps
    /// nobody from beginning with others.
    fn at_hand(&self, lane: &Name) -> usize {
        let at_hand = self.lanes.at_hand(lane);
        let held_up = if self.parking.is_full() {
            0
        } else {
            self.lanes.held_up(lane)
        };
        at_hand.saturating_sub(held_up) + self.reading.calls(lane)
    }

    /// How many of `wanted` subjects to lease so that calls are filled: a call that could serve
    /// more waits for them a while, unless there is nothing else to do.
    fn filling(&mut self, lane: &Name, batch: usize, wanted: usize) -> usize {
        if batch <= 1 {
            return wanted;
        }
        let due = self.frontier.due(lane, self.due_until(), wanted);
        let over = due % batch;
        if over == 0 {
            self.unfilled.remove(lane);
            return due;
        }
        let is_idle = self.in_flight.is_empty() && self.lanes.is_empty() && self.reading.is_empty();
        let since = self
            .unfilled
            .entry(lane.clone())
            .or_insert_with(Instant::now);
        if is_idle || since.elapsed() >= BATCH_PATIENCE {
            self.unfilled.remove(lane);
            return due;
        }
        due - over
    }

    /// Up to when subjects are due. A round visits everybody, now: due times only give it an order.
    fn due_until(&self) -> WorldTime {
        if self.shop.settings.rounds.end() {
            WorldTime(i64::MAX)
        } else {
            self.shop.clock.world()
        }
    }

    /// Fetches the next batch of a lane from the store, if memory runs low.
    async fn refill(&mut self, filing: &RobotFiling) -> Result<(), EngineError> {
        let lane = &filing.lane;
        if self.frontier.is_ranked(lane) {
            while let Some(wanted) = self.frontier.wanted(lane) {
                self.read_ranked(filing, wanted).await?;
            }
            return Ok(());
        }
        let Some(wanted) = self.frontier.wanted(lane) else {
            return Ok(());
        };
        let question = DueQuestion {
            after: wanted.after,
            limit: wanted.limit,
            ..self.due_question(lane)
        };
        let due = self.shop.store.due(question).await?;
        let places: Vec<Place> = due.iter().map(|due| (due.due, due.subject)).collect();
        self.frontier.refill(lane, wanted, &places);
        Ok(())
    }

    /// Everybody in a lane whom this run has to visit.
    pub(crate) fn due_question(&self, lane: &Name) -> DueQuestion {
        DueQuestion {
            lane: lane.clone(),
            after: None,
            not_visited_since: self.shop.settings.rounds.end().then_some(self.round),
            limit: COUNTED_MAX,
        }
    }

    /// Counts who waits, for those who watch.
    pub(crate) async fn count_waiting(&mut self) -> Result<(), EngineError> {
        let shop = Arc::clone(&self.shop);
        for filing in &shop.expansion.robots {
            let waiting = shop.store.waiting(self.due_question(&filing.lane)).await?;
            self.progress
                .update(|shown| shown.robot(&filing.robot).waiting = waiting);
        }
        let until_idle = shop.settings.rounds.end();
        self.progress.update(|shown| shown.until_idle = until_idle);
        Ok(())
    }

    pub(crate) fn send(&mut self, work: Work, permit: Permit) {
        self.shop.wire.enter();
        work.call.site.enter();
        self.in_flight
            .spawn(exchange(Arc::clone(&self.shop), work, permit));
        let in_flight = self.in_flight.len() as u64;
        self.progress.update(|shown| {
            shown.in_flight = in_flight;
            shown.paused_until = None;
        });
    }

    /// The next exchange that is over; `None` when it is time to look for work again.
    pub(crate) async fn done(&mut self) -> Result<Option<Done>, EngineError> {
        let nap = self.nap();
        tokio::select! {
            Some(joined) = self.in_flight.join_next() => match joined {
                Ok(done) => Ok(Some(done?)),
                Err(error) => Err(EngineError::Broken(format!("a visit failed: {error}"))),
            },
            read = self.reading.progress() => read.map(|()| None),
            () = self.shop.wire.freed() => Ok(None),
            () = tokio::time::sleep(nap) => Ok(None),
        }
    }

    /// Takes in an exchange that is durable: counts it, and reschedules its subjects.
    pub(crate) async fn acknowledge(&mut self, done: Option<Done>) -> Result<(), EngineError> {
        self.show_budgets().await;
        let Some(done) = done else {
            return Ok(());
        };
        self.calls += done.calls;
        self.violations += u64::from(done.limited);
        self.show(&done);
        let Done {
            mut work,
            ending,
            reports,
            ..
        } = done;
        self.ask_alone(&mut work).await?;
        if !matches!(
            ending,
            Ending::HostDown(_) | Ending::Retry(_) | Ending::GivenUp | Ending::Elsewhere
        ) {
            *work.call.site.health() = HostHealth::default();
        }
        match ending {
            Ending::Continue => self.go_on(work).await?,
            Ending::Finished { due } => self.finish(&work, due),
            Ending::LookedUp => self.looked_up(work, &reports).await?,
            Ending::Probed => self.introduced(&work),
            Ending::ProbeOn => self.probe_on(work).await?,
            Ending::Retry(until) => self.retry(work, until),
            Ending::Unread(until) => self.try_again(work, until),
            Ending::HostDown(reason) => self.host_down(work, reason),
            Ending::GivenUp => self.give_up(&work),
            Ending::Wait(until) => self.wait(work, until).await,
            Ending::Split => self.split(work).await?,
            Ending::Elsewhere => self.leave_out(&work),
            Ending::Closed => self.shut(&work),
            Ending::Another => {
                let now = self.now();
                self.lanes.put(work, QueuePlace::Front, now);
            }
            Ending::AuthExpired(reason) => self.ended = Some(End::AuthExpired(reason)),
            Ending::ShutOut(reason) => {
                self.hand_back(&work);
                self.ended.get_or_insert(End::ShutOut(reason));
            }
        }
        self.take_in(&reports).await
    }

    /// Files what a commit brought, and follows keys that became one.
    pub(crate) async fn take_in(&mut self, reports: &[CommitReport]) -> Result<(), EngineError> {
        for report in reports {
            self.backlog |= report.backlog;
            for filed in &report.filed {
                self.file(filed)?;
                if self.is_wanted(filed.visited) && filed.visited.is_none() {
                    self.progress
                        .update(|shown| shown.robot(&filed.robot).waiting += 1);
                }
            }
            for (from, into) in &report.merged {
                self.frontier.forget(*from);
                self.refile(*into).await?;
            }
        }
        Ok(())
    }

    /// Files all tasks of a subject as the store has them.
    pub(crate) async fn refile(&mut self, subject: Key) -> Result<(), EngineError> {
        let robots = &self.shop.expansion.robots;
        let asked = robots
            .iter()
            .map(|filing| (subject, filing.robot.clone()))
            .collect();
        for record in self.shop.store.tasks(asked).await?.into_iter().flatten() {
            let row = record.row;
            self.file(&Filed {
                subject: row.subject,
                robot: row.robot,
                lane: row.lane,
                visited: row.visited,
                due: row.due,
                state: row.state,
            })?;
        }
        Ok(())
    }

    fn show(&self, done: &Done) {
        let sum = |count: fn(&CommitReport) -> u32| -> u64 {
            done.reports
                .iter()
                .map(|report| u64::from(count(report)))
                .sum()
        };
        let (rows_new, rows_changed) = (sum(|it| it.rows_new), sum(|it| it.rows_changed));
        let visits = match &done.ending {
            Ending::Finished { due } => due.len() as u64,
            _ => 0,
        };
        let (calls, in_flight) = (self.calls, self.in_flight.len() as u64);
        let until_idle = self.shop.settings.rounds.end();
        self.progress.update(|shown| {
            shown.calls = calls;
            shown.in_flight = in_flight;
            shown.bytes += done.bytes;
            shown.rows_new += rows_new;
            shown.rows_changed += rows_changed;
            let robot = shown.robot(&done.work.robot);
            robot.calls += done.calls;
            robot.rows_new += rows_new;
            robot.rows_changed += rows_changed;
            robot.visits += visits;
            if until_idle {
                robot.waiting = robot.waiting.saturating_sub(visits);
            }
        });
    }

    async fn show_budgets(&mut self) {
        let is_early = |shown: Instant| shown.elapsed() < BUDGETS_EVERY;
        if self.budgets_shown.is_some_and(is_early) {
            return;
        }
        self.budgets_shown = Some(Instant::now());
        let budgets = self.shop.sites.home.purse.lock().await.now();
        self.progress.update(|shown| shown.budgets = budgets);
    }

    /// The visit has another page or list: its next call goes to the front of the lane.
    async fn go_on(&mut self, work: Work) -> Result<(), EngineError> {
        let Work {
            lane,
            robot,
            tasks,
            found,
            missed,
            ..
        } = work;
        let begun = Begun {
            found,
            missed,
            place: QueuePlace::Front,
            ..Begun::at(Instant::now())
        };
        self.prepare(&lane, &robot, tasks, begun).await
    }

    fn finish(&mut self, work: &Work, due: Vec<(Key, WorldTime)>) {
        for (subject, due) in due {
            self.returns.remove(&(subject, work.robot.clone()));
            let back = if self.shop.settings.rounds.end() {
                Back::Out
            } else {
                Back::To(due)
            };
            self.frontier.release(&work.lane, subject, back);
        }
    }

    /// An id of the subject is known now, or known not to exist: tasks that waited for it are read
    /// again.
    async fn looked_up(&mut self, work: Work, reports: &[CommitReport]) -> Result<(), EngineError> {
        self.shop.note_answered(&work);
        let merged = reports.iter().flat_map(|report| &report.merged);
        self.note_looked_up(work.keys().chain(merged.map(|(_, into)| *into)));
        for subject in work.keys() {
            self.returns.remove(&(subject, work.robot.clone()));
            for lane in self.lanes_of(subject, &work.lane) {
                self.frontier.release(&lane, subject, Back::Out);
            }
            let merged = reports.iter().flat_map(|report| &report.merged);
            if !merged.into_iter().any(|(from, _)| *from == subject) {
                self.refile(subject).await?;
            }
        }
        Ok(())
    }

    /// Remembers who was looked up, while others of their tasks may be on their way from the store.
    fn note_looked_up(&mut self, subjects: impl Iterator<Item = Key>) {
        // Whatever is forgotten is asked for once more.
        if self.looked_up.len() >= LOOKED_UP_MAX {
            self.looked_up.clear();
        }
        let now = Instant::now();
        self.looked_up
            .extend(subjects.map(|subject| (subject, now)));
    }

    /// Whether a subject was looked up since a reading began. What was read of it is left, and it is
    /// filed to be read again.
    pub(crate) async fn is_outdated(
        &mut self,
        (lane, subject): (&Name, Key),
        reading_began: Instant,
    ) -> Result<bool, EngineError> {
        let looked_up = self.looked_up.get(&subject);
        if looked_up.is_none_or(|at| *at < reading_began) {
            return Ok(false);
        }
        self.frontier.release(lane, subject, Back::Out);
        self.refile(subject).await?;
        Ok(true)
    }

    /// Asks one by one for those who are missing from the answer to a batch.
    async fn ask_alone(&mut self, work: &mut Work) -> Result<(), EngineError> {
        let aside = std::mem::take(&mut work.aside);
        if aside.is_empty() {
            return Ok(());
        }
        let shop = Arc::clone(&self.shop);
        let query = shop.query(&work.call.step)?.missing_query();
        for task in aside {
            let begun = Begun {
                alone: query.cloned(),
                ..Begun::at(Instant::now())
            };
            self.prepare(&work.lane, &work.robot, vec![task], begun)
                .await?;
        }
        Ok(())
    }

    async fn split(&mut self, work: Work) -> Result<(), EngineError> {
        let Work {
            lane,
            robot,
            mut tasks,
            tries,
            ..
        } = work;
        // What was tried as a whole for the last time is not tried as often in every part.
        let begun = || Begun {
            tries,
            ..Begun::at(Instant::now())
        };
        let second = tasks.split_off(tasks.len() / 2);
        self.prepare(&lane, &robot, tasks, begun()).await?;
        self.prepare(&lane, &robot, second, begun()).await
    }

    /// Waits for everything that was sent, so that nothing that was answered is thrown away.
    pub(crate) async fn finish_in_flight(&mut self) -> Result<(), EngineError> {
        while let Some(joined) = self.in_flight.join_next().await {
            let done = joined
                .map_err(|error| EngineError::Broken(format!("a visit failed: {error}")))??;
            self.take_answer(Some(done)).await?;
        }
        Ok(())
    }

    /// Hands back what was not spent and writes the end of the run.
    pub(crate) async fn close(self, end: End) -> Result<CrawlReport, EngineError> {
        let mut budgets = Vec::new();
        for site in self.shop.sites.all() {
            let mut purse = site.purse.lock().await;
            purse.close().await?;
            budgets.extend(purse.spent());
        }
        let reason = match &end {
            End::Idle => IDLE.to_owned(),
            End::Interrupted => "interrupted".to_owned(),
            End::Stopped => "stopped".to_owned(),
            End::Time => "time".to_owned(),
            End::Calls => "calls".to_owned(),
            End::Spend(cap) => format!("spend: {cap}"),
            End::HostDown(why) => format!("host down: {why}"),
            End::AuthExpired(why) => format!("auth expired: {why}"),
            End::ShutOut(why) => format!("shut out: {why}"),
        };
        let ended = self.shop.clock.real();
        let commit = Commit {
            at: self.shop.clock.world(),
            learnt: self.shop.learnt(),
            run: Some(RunUpdate::End {
                run: self.run,
                end: RunEnd { ended, reason },
            }),
            ..Commit::default()
        };
        self.shop.store.commit(vec![commit]).await?;
        let shown = self.progress.snapshot();
        Ok(CrawlReport {
            end,
            calls: self.calls,
            violations: self.violations,
            given_up: self.given_up,
            refused: self.controls.refused(&self.shop.settings.credentials),
            budgets,
            robots: shown.robots,
            summary: self.shop.store.summary().await?,
            rows_new: shown.rows_new,
            rows_changed: shown.rows_changed,
        })
    }
}
