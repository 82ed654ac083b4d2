//! The one thread that writes.
//!
//! It has the writing connection to itself. Whatever waits when it is free goes into one transaction, so
//! that many callers share one commit; what one caller sent together is never divided.

use super::expected::Expected;
use super::familiar::{Familiar, Mark, Marker};
use super::work::{Memory, Work};
use crate::database::Keeper;
use crate::{StoreError, StoreErrorKind};
use kittiwake_model::{Commit, CommitReport};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Callers that may wait at once; more wait outside, holding their data.
pub(crate) const WAITING_MAX: usize = 64;
/// Rows after which a transaction takes in no more callers.
const GROUP_ROWS_MAX: usize = 16_000;
/// Steps that one transaction takes along what follows from what is stored.
const STEPS_MAX: usize = 2_000;
/// The time without a request after which the writer catches up on what it has put off.
const PAUSE: Duration = Duration::from_millis(20);
/// Times that may be put off, and for how long, while callers wait.
const TIMES_MAX: usize = 65_536;
const TIMES_WAIT_US: i64 = 60_000_000;
/// How often a transaction is begun again because the connection was lost and came back.
const LOST_MAX: usize = 10;

/// What the writer can be asked for.
#[derive(Debug)]
pub(crate) enum Request {
    Write(Batch),
    /// The most pages that a file may have.
    LimitPages(u32, oneshot::Sender<Result<(), StoreError>>),
    /// That commits outlive a power cut.
    SyncFully(oneshot::Sender<Result<(), StoreError>>),
    /// The most steps that one transaction may take.
    LimitSteps(usize, oneshot::Sender<Result<(), StoreError>>),
    /// That nothing is put off any longer.
    CatchUp(oneshot::Sender<Result<(), StoreError>>),
}

/// What one caller wants to have written.
#[derive(Debug)]
pub(crate) struct Batch {
    pub commits: Vec<Marked>,
    pub answer: oneshot::Sender<Answered>,
}

/// A commit with the marks of its objects.
#[derive(Debug)]
pub(crate) struct Marked {
    pub commit: Commit,
    pub marks: Vec<Mark>,
}

/// What became of a caller's commits; and the commits, so that the caller's thread has the work of
/// taking them apart.
#[derive(Debug)]
pub(crate) struct Answered {
    pub reports: Result<Vec<CommitReport>, StoreError>,
    pub _commits: Vec<Marked>,
}

#[derive(Debug)]
pub(crate) struct Writer<'k> {
    keeper: &'k dyn Keeper,
    memory: Memory,
    /// Set when it is no longer certain what the store holds.
    poisoned: Option<StoreError>,
    steps_max: usize,
    /// When times that were put off were last written.
    times_us: i64,
}

impl<'k> Writer<'k> {
    /// Reads what has to be remembered. The marks of commits are made by `marker`.
    pub(crate) fn load(keeper: &'k dyn Keeper, marker: Marker) -> Result<Self, StoreError> {
        let mut memory = Memory::load(keeper)?;
        memory.familiar = Familiar::new(marker);
        Ok(Self {
            keeper,
            memory,
            poisoned: None,
            steps_max: STEPS_MAX,
            times_us: now_us(),
        })
    }

    /// The marks of a commit's objects, as whoever hands it in makes them.
    #[cfg(test)]
    pub(crate) fn marks(&self, commit: &Commit) -> Vec<Mark> {
        self.memory.familiar.marker.marks(commit)
    }

    /// Serves requests until nobody can send any more, then leaves a tidy store. `clock` counts the
    /// time in which nobody asks for anything.
    pub(crate) fn run(mut self, mut requests: mpsc::Receiver<Request>, clock: &Runtime) {
        while let Some(first) = self.next_request(&mut requests, clock) {
            let mut next = Some(first);
            let mut group = Vec::new();
            let mut rows = 0;
            while let Some(request) = next.take() {
                match request {
                    Request::Write(batch) => {
                        rows += rows_in(&batch.commits);
                        group.push(batch);
                    }
                    Request::LimitPages(pages, answer) => {
                        let _ = answer.send(self.keeper.limit_pages(pages));
                    }
                    Request::SyncFully(answer) => {
                        let _ = answer.send(self.keeper.sync_fully());
                    }
                    Request::LimitSteps(steps, answer) => {
                        self.steps_max = steps;
                        let _ = answer.send(Ok(()));
                    }
                    Request::CatchUp(answer) => {
                        self.catch_up();
                        let _ = answer.send(Ok(()));
                    }
                }
                if rows < GROUP_ROWS_MAX {
                    next = requests.try_recv().ok();
                }
            }
            if !group.is_empty() {
                // In the crate's own tests everything that can be put off is.
                let is_pressed = group.len() > 1 || cfg!(test);
                self.serve(group, is_pressed);
                self.keeper.committed(rows);
            }
        }
        self.catch_up();
        self.keeper.finish();
    }

    /// The next request; before the writer sleeps, nothing is put off any longer.
    fn next_request(
        &mut self,
        requests: &mut mpsc::Receiver<Request>,
        clock: &Runtime,
    ) -> Option<Request> {
        if self.memory.times.len() > 0 {
            let waited = clock.block_on(async { timeout(PAUSE, requests.recv()).await });
            if let Ok(next) = waited {
                return next;
            }
            self.catch_up();
        }
        requests.blocking_recv()
    }

    /// Writes what was put off, if anything. Should it fail, it stays put off.
    pub(crate) fn catch_up(&mut self) {
        if self.memory.times.len() == 0 || self.poisoned.is_some() {
            return;
        }
        let caught_up = self.write(&[], false);
        if let Err(error) = caught_up {
            tracing::warn!(%error, "times of last sights could not be written yet");
        }
    }

    fn serve(&mut self, group: Vec<Batch>, is_pressed: bool) {
        let (answers, commits): (Vec<_>, Vec<_>) = group
            .into_iter()
            .map(|batch| (batch.answer, batch.commits))
            .unzip();
        let reports: Vec<_> = match self.write(&commits, is_pressed) {
            Ok(reports) => reports.into_iter().map(Ok).collect(),
            // A fault in one caller's commits must not fail the others.
            Err(error) if error.kind() == StoreErrorKind::Invalid && commits.len() > 1 => commits
                .iter()
                .map(|commits| {
                    let mut reports = self.write(std::slice::from_ref(commits), false)?;
                    Ok(reports.pop().unwrap_or_default())
                })
                .collect(),
            Err(error) => answers.iter().map(|_| Err(error.clone())).collect(),
        };
        for ((answer, reports), commits) in answers.into_iter().zip(reports).zip(commits) {
            let _ = answer.send(Answered {
                reports,
                _commits: commits,
            });
        }
    }

    /// Writes all commits of all callers in one transaction.
    pub(crate) fn write(
        &mut self,
        group: &[Vec<Marked>],
        is_pressed: bool,
    ) -> Result<Vec<Vec<CommitReport>>, StoreError> {
        for tries_left in (0..LOST_MAX).rev() {
            if let Some(error) = &self.poisoned {
                return Err(error.clone());
            }
            match self.attempt(group, is_pressed) {
                Ok(reports) => return Ok(reports),
                Err(error) => {
                    self.recover(&error);
                    // What was lost with the connection was undone, so it can be done again.
                    if error.kind() != StoreErrorKind::Unreachable || tries_left == 0 {
                        return Err(error);
                    }
                }
            }
        }
        Err(StoreError::closed())
    }

    fn attempt(
        &mut self,
        group: &[Vec<Marked>],
        is_pressed: bool,
    ) -> Result<Vec<Vec<CommitReport>>, StoreError> {
        self.keeper.begin()?;
        self.keeper
            .expect(&mut || Expected::of(group, &self.memory))?;
        let now_us = now_us();
        let mut work = Work::new(self.keeper, &mut self.memory, self.steps_max);
        let mut reports = Vec::with_capacity(group.len());
        for commits in group {
            let mut own = Vec::with_capacity(commits.len());
            for Marked { commit, marks } in commits {
                own.push(work.apply(commit, marks, now_us)?);
            }
            reports.push(own);
        }
        let is_due =
            !is_pressed || work.unwritten() > TIMES_MAX || now_us - self.times_us > TIMES_WAIT_US;
        if is_due {
            work.write_times()?;
        } else {
            work.put_off_times()?;
        }
        let backlog = work.store_backlog()?;
        self.keeper.commit()?;
        if is_due {
            self.times_us = now_us;
        }
        for report in reports.iter_mut().flatten() {
            report.backlog = backlog;
        }
        Ok(reports)
    }

    /// Brings store and memory back to where they were before; if that cannot be done for
    /// certain, nothing more is accepted.
    fn recover(&mut self, cause: &StoreError) {
        let memory = self
            .keeper
            .roll_back()
            .and_then(|()| Memory::load(self.keeper));
        match memory {
            Ok(mut memory) => {
                memory.familiar = Familiar::new(self.memory.familiar.marker.clone());
                self.memory = memory;
            }
            // Nothing is in doubt: the server undoes what it did not commit.
            Err(error) if error.kind() == StoreErrorKind::Unreachable => {
                self.poisoned = Some(error);
            }
            Err(_) => {
                self.poisoned = Some(StoreError::new(
                    StoreErrorKind::Poisoned,
                    format!(
                        "an earlier failure left the store in doubt, nothing more is written; \
                         start again to recover ({cause})"
                    ),
                ));
            }
        }
    }
}

fn rows_in(commits: &[Marked]) -> usize {
    commits
        .iter()
        .map(|Marked { commit, .. }| {
            1 + commit.objects.len() + commit.links.len() + commit.frontier.len()
        })
        .sum()
}

/// The machine's time: the only thing in a store that is not given by the caller, because a
/// caller cannot know when its commit will be written.
pub(crate) fn now_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
        })
}
