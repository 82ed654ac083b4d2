//! The thread that owns the connection to the ledger.
//!
//! Calls that wait together share one transaction, and so one write to the disk; nobody hears of
//! success before that write is done.

use super::ledger::{Book, LedgerKeeper};
use super::service::spawn;
use crate::{StoreError, StoreErrorKind};
use std::fmt;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// Calls that may wait at once, and that share one transaction.
const WAITING_MAX: usize = 64;
/// How often a transaction is done again because a server lost it.
const TRIES_MAX: usize = 20;

/// A call that waits.
pub(crate) trait Job: Send {
    /// Does it; a transaction that failed is done again. Gives its failure, if there is one.
    fn work(&mut self, book: &Book<'_>) -> Option<StoreError>;

    /// Tells the caller, once it is known what has become of the transaction.
    fn reply(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Call<T, W> {
    work: W,
    outcome: Result<T, StoreError>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, W> Job for Call<T, W>
where
    T: Send,
    W: Fn(&Book<'_>) -> Result<T, StoreError> + Send,
{
    fn work(&mut self, book: &Book<'_>) -> Option<StoreError> {
        self.outcome = (self.work)(book);
        self.outcome.as_ref().err().cloned()
    }

    fn reply(self: Box<Self>, committed: Result<(), StoreError>) {
        let _ = self.answer.send(match (self.outcome, committed) {
            // A caller hears of its own contradiction rather than of another's failure.
            (Err(error), _) if error.kind() == StoreErrorKind::Invalid => Err(error),
            (_, Err(error)) => Err(error),
            (outcome, Ok(())) => outcome,
        });
    }
}

/// Where the thread gets its work from, once it has opened the ledger.
pub(crate) struct Desk {
    jobs: mpsc::Receiver<Box<dyn Job>>,
    opened: SyncSender<Result<(), StoreError>>,
}

impl Desk {
    /// Answers whoever asks until nobody can; `wait` gives the next call.
    pub(crate) fn serve(
        mut self,
        keeper: &dyn LedgerKeeper,
        wait: impl Fn(&mut mpsc::Receiver<Box<dyn Job>>) -> Option<Box<dyn Job>>,
    ) {
        let _ = self.opened.send(Ok(()));
        let book = Book::new(keeper);
        while let Some(first) = wait(&mut self.jobs) {
            let mut group = vec![first];
            while group.len() < WAITING_MAX
                && let Ok(next) = self.jobs.try_recv()
            {
                group.push(next);
            }
            let committed = do_together(&book, &mut group);
            for job in group {
                job.reply(committed.clone());
            }
        }
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Desk")
    }
}

/// The way to the thread.
#[derive(Debug)]
pub(crate) struct LedgerThread {
    jobs: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl LedgerThread {
    /// Starts the thread; `serve` opens the ledger and answers at the desk. Returns when it is open.
    pub(crate) fn start(
        serve: impl FnOnce(Desk) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (sender, jobs) = mpsc::channel(WAITING_MAX);
        let (opened, is_open) = sync_channel(1);
        let failed = opened.clone();
        let thread = spawn("ledger", move || {
            if let Err(error) = serve(Desk { jobs, opened }) {
                let _ = failed.send(Err(error));
            }
        })?;
        is_open.recv().map_err(|_| StoreError::closed())??;
        Ok(Self {
            jobs: Some(sender),
            thread: Some(thread),
        })
    }

    pub(crate) async fn call<T: Send + 'static>(
        &self,
        work: impl Fn(&Book<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(jobs) = &self.jobs else {
            return Err(StoreError::closed());
        };
        let (answer, answered) = oneshot::channel();
        let call = Call {
            work,
            outcome: Err(StoreError::closed()),
            answer,
        };
        if jobs.send(Box::new(call)).await.is_err() {
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

/// Does all of it in one transaction, again if that was lost.
fn do_together(book: &Book<'_>, group: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
    for _ in 1..TRIES_MAX {
        match transaction(book, group) {
            Ok(()) => return Ok(()),
            Err(failure) => book.recover(failure)?,
        }
    }
    transaction(book, group)
}

fn transaction(book: &Book<'_>, group: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
    let done = book.begin().and_then(|()| {
        for job in group {
            // What contradicts itself has written nothing and spoils nothing.
            let failed = job.work(book);
            if let Some(error) = failed.filter(|error| error.kind() != StoreErrorKind::Invalid) {
                return Err(error);
            }
        }
        book.commit()
    });
    if done.is_err() {
        book.roll_back();
    }
    done
}
