//! The thread that owns the ledger's connection.
//!
//! Calls that wait together share one transaction, and so one write to the disk; nobody hears of
//! success before that write is done.

use super::error::refused;
use super::ledger::LedgerFile;
use super::spawn;
use crate::{StoreError, StoreErrorKind};
use std::path::Path;
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// Calls that may wait at once, and that share one transaction.
const WAITING_MAX: usize = 64;
/// What a job leaves behind: its own failure, if any, and how to tell its caller.
type Done = (Option<StoreError>, Box<dyn FnOnce(Result<(), StoreError>)>);
type Job = Box<dyn FnOnce(&LedgerFile) -> Done + Send>;

/// The way to the thread.
#[derive(Debug)]
pub(crate) struct LedgerThread {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl LedgerThread {
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let file = LedgerFile::open(path)?;
        let (sender, jobs) = mpsc::channel(WAITING_MAX);
        Ok(Self {
            jobs: Some(sender),
            thread: Some(spawn("ledger", move || run(&file, jobs))?),
        })
    }

    pub(crate) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&LedgerFile) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(jobs) = &self.jobs else {
            return Err(StoreError::closed());
        };
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |file| {
            let outcome = work(file);
            let failure = outcome.as_ref().err().cloned();
            let reply = move |committed: Result<(), StoreError>| {
                let _ = answer.send(match outcome {
                    // A caller hears of its own failure rather than of another's.
                    Err(error) => Err(error),
                    Ok(value) => committed.map(|()| value),
                });
            };
            (failure, Box::new(reply))
        });
        if jobs.send(job).await.is_err() {
            return Err(StoreError::closed());
        }
        answered.await.map_err(|_| StoreError::closed())?
    }
}

impl Drop for LedgerThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the ledger's thread has panicked");
        }
    }
}

fn run(file: &LedgerFile, mut jobs: mpsc::Receiver<Job>) {
    while let Some(first) = jobs.blocking_recv() {
        let mut group = vec![first];
        while group.len() < WAITING_MAX
            && let Ok(next) = jobs.try_recv()
        {
            group.push(next);
        }
        serve(file, group);
    }
}

fn serve(file: &LedgerFile, group: Vec<Job>) {
    let begun = file.connection.execute_batch("BEGIN IMMEDIATE");
    let mut replies = Vec::with_capacity(group.len());
    let mut failure = begun.err().map(refused);
    for job in group {
        // Even when the transaction could not begin, the callers have to be told; their work
        // fails or is undone with it.
        let (failed, reply) = job(file);
        // What contradicts itself has written nothing and spoils nothing.
        let failed = failed.filter(|error| error.kind() != StoreErrorKind::Invalid);
        failure = failure.or(failed);
        replies.push(reply);
    }
    let committed = match failure {
        None => file.connection.execute_batch("COMMIT").map_err(refused),
        Some(error) => Err(error),
    };
    if committed.is_err() && !file.connection.is_autocommit() {
        let _ = file.connection.execute_batch("ROLLBACK");
    }
    for reply in replies {
        reply(committed.clone());
    }
}
