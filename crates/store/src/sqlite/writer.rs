//! The one thread that writes.
//!
//! It has the writing connection to itself. Whatever waits when it is free goes into one transaction, so
//! that many callers share one commit; what one caller sent together is never divided.

use super::statements::Statements;
use super::work::{Memory, Work};
use crate::{StoreError, StoreErrorKind};
use kittiwake_model::{Commit, CommitReport};
use rusqlite::Connection;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};

/// Callers that may wait at once; more wait outside, holding their data.
pub(super) const WAITING_MAX: usize = 64;
/// Rows after which a transaction takes in no more callers.
const GROUP_ROWS_MAX: usize = 8_000;
/// Steps that one transaction takes along what follows from what is stored.
const STEPS_MAX: usize = 2_000;

/// What the writer can be asked for.
#[derive(Debug)]
pub(super) enum Request {
    Write(Batch),
    /// The most pages that the file may have.
    LimitPages(u32, oneshot::Sender<Result<(), StoreError>>),
    /// The most steps that one transaction may take.
    LimitSteps(usize, oneshot::Sender<Result<(), StoreError>>),
}

/// What one caller wants to have written.
#[derive(Debug)]
pub(super) struct Batch {
    pub commits: Vec<Commit>,
    pub answer: oneshot::Sender<Result<Vec<CommitReport>, StoreError>>,
}

#[derive(Debug)]
pub(super) struct Writer<'c> {
    connection: &'c Connection,
    memory: Memory,
    statements: Statements<'c>,
    /// Set when it is no longer certain what the file holds.
    poisoned: Option<StoreError>,
    steps_max: usize,
}

impl<'c> Writer<'c> {
    /// `memory` is what was loaded from the connection.
    pub(super) fn new(connection: &'c Connection, memory: Memory) -> Self {
        Self {
            connection,
            memory,
            statements: Statements::new(connection),
            poisoned: None,
            steps_max: STEPS_MAX,
        }
    }

    /// Serves requests until nobody can send any more, then leaves a tidy file.
    pub(super) fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        while let Some(first) = requests.blocking_recv() {
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
                        let _ = answer.send(self.limit_pages(pages));
                    }
                    Request::LimitSteps(steps, answer) => {
                        self.steps_max = steps;
                        let _ = answer.send(Ok(()));
                    }
                }
                if rows < GROUP_ROWS_MAX {
                    next = requests.try_recv().ok();
                }
            }
            if !group.is_empty() {
                self.serve(group);
            }
        }
        let tidied = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = tidied {
            tracing::warn!(%error, "the write-ahead log could not be emptied; it stays valid");
        }
    }

    fn limit_pages(&self, pages: u32) -> Result<(), StoreError> {
        self.connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
        Ok(())
    }

    fn serve(&mut self, group: Vec<Batch>) {
        if let Some(error) = &self.poisoned {
            for batch in group {
                let _ = batch.answer.send(Err(error.clone()));
            }
            return;
        }
        let (answers, commits): (Vec<_>, Vec<_>) = group
            .into_iter()
            .map(|batch| (batch.answer, batch.commits))
            .unzip();
        match self.write(&commits) {
            Ok(reports) => {
                for (answer, reports) in answers.into_iter().zip(reports) {
                    let _ = answer.send(Ok(reports));
                }
            }
            // A fault in one caller's commits must not fail the others.
            Err(error) if error.kind() == StoreErrorKind::Invalid && commits.len() > 1 => {
                for (answer, commits) in answers.into_iter().zip(commits) {
                    let written = self
                        .write(&[commits])
                        .map(|mut reports| reports.pop().unwrap_or_default());
                    let _ = answer.send(written);
                }
            }
            Err(error) => {
                for answer in answers {
                    let _ = answer.send(Err(error.clone()));
                }
            }
        }
    }

    /// Writes all commits of all callers in one transaction.
    fn write(&mut self, group: &[Vec<Commit>]) -> Result<Vec<Vec<CommitReport>>, StoreError> {
        if let Some(error) = &self.poisoned {
            return Err(error.clone());
        }
        match self.attempt(group) {
            Ok(reports) => Ok(reports),
            Err(error) => {
                self.recover(&error);
                Err(error)
            }
        }
    }

    fn attempt(&mut self, group: &[Vec<Commit>]) -> Result<Vec<Vec<CommitReport>>, StoreError> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let now_us = now_us();
        let mut work = Work::new(
            self.connection,
            &mut self.memory,
            &self.statements,
            self.steps_max,
        );
        let mut reports = Vec::with_capacity(group.len());
        for commits in group {
            let mut own = Vec::with_capacity(commits.len());
            for commit in commits {
                own.push(work.apply(commit, now_us)?);
            }
            reports.push(own);
        }
        work.write_sightings()?;
        let backlog = work.store_backlog()?;
        self.connection.execute_batch("COMMIT")?;
        for report in reports.iter_mut().flatten() {
            report.backlog = backlog;
        }
        Ok(reports)
    }

    /// Brings file and memory back to where they were before; if that cannot be done for
    /// certain, nothing more is accepted.
    fn recover(&mut self, cause: &StoreError) {
        let rolled_back =
            self.connection.is_autocommit() || self.connection.execute_batch("ROLLBACK").is_ok();
        let memory = if rolled_back {
            Memory::load(self.connection).ok()
        } else {
            None
        };
        if let Some(memory) = memory {
            self.memory = memory;
            return;
        }
        self.poisoned = Some(StoreError::new(
            StoreErrorKind::Poisoned,
            format!(
                "an earlier failure left the file in doubt, nothing more is written; start again \
                 to recover ({cause})"
            ),
        ));
    }
}

fn rows_in(commits: &[Commit]) -> usize {
    commits
        .iter()
        .map(|commit| 1 + commit.objects.len() + commit.links.len() + commit.frontier.len())
        .sum()
}

/// The machine's time: the only thing in a store that is not given by the caller, because a
/// caller cannot know when its commit will be written.
pub(super) fn now_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
        })
}

#[cfg(test)]
mod tests {
    use super::super::migrate::{MIGRATIONS, migrate};
    use super::*;

    fn connection() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, 1, MIGRATIONS).unwrap();
        connection
    }

    fn writer(connection: &Connection) -> Writer<'_> {
        Writer::new(connection, Memory::load(connection).unwrap())
    }

    fn commit(writer: &mut Writer<'_>) -> Result<Vec<Vec<CommitReport>>, StoreError> {
        let commit = Commit {
            raw: None,
            run: Some(kittiwake_model::RunUpdate::End {
                run: 1,
                end: kittiwake_model::RunEnd {
                    ended: kittiwake_model::RealTime(1),
                    reason: String::new(),
                },
            }),
            ..Commit::default()
        };
        writer.write(&[vec![commit]])
    }

    #[test]
    fn after_a_failure_that_leaves_doubt_nothing_more_is_written() {
        let connection = connection();
        let mut writer = writer(&connection);
        commit(&mut writer).unwrap();
        // The commit fails, and what the file holds cannot be read again either.
        writer
            .connection
            .execute_batch("DROP TABLE runs; DROP TABLE key_merges")
            .unwrap();
        assert!(commit(&mut writer).is_err());
        let error = commit(&mut writer).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Poisoned);
        assert!(error.to_string().contains("start again"), "{error}");
    }

    #[test]
    fn after_a_failure_that_was_undone_writing_goes_on() {
        let connection = connection();
        let mut writer = writer(&connection);
        writer
            .connection
            .execute_batch("ALTER TABLE runs RENAME TO away")
            .unwrap();
        assert!(commit(&mut writer).is_err());
        writer
            .connection
            .execute_batch("ALTER TABLE away RENAME TO runs")
            .unwrap();
        commit(&mut writer).unwrap();
    }
}
