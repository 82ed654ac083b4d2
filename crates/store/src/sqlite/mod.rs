//! One crawl in one SQLite file. The only folder that knows rusqlite.

mod apply;
mod brings;
pub mod check;
mod checkpoint;
pub mod control;
mod conversations;
mod depth;
mod detail;
mod error;
mod export;
mod extent;
mod familiar;
mod filing;
mod identity;
mod import;
pub(crate) mod ledger;
#[cfg(test)]
mod ledger_simulation;
pub(crate) mod ledger_thread;
mod links;
mod merge_keys;
mod migrate;
mod numbers;
mod objects;
mod open;
mod places;
mod read;
mod relax;
mod reposts;
mod reunite;
mod schema;
mod standing;
mod statements;
mod sweeps;
mod times;
mod views;
mod work;
mod writer;
mod written;

use crate::export::{ExportError, Exported, RowSink, Selection};
use crate::{
    Due, DueQuestion, Store, StoreError, StoreErrorKind, StoreFuture, Summary, TaskRecord,
};
use kittiwake_model::{Commit, CommitReport, Control, Identity, Key, Name, RunRecord};
use rusqlite::Connection;
use std::path::Path;
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Makes the file if it is missing and holds it against other crawls.
    Crawl,
    /// Looks at a file that is there, also while somebody crawls into it.
    Read,
}

/// A crawl in a file.
#[derive(Debug)]
pub struct SqliteStore {
    requests: Option<mpsc::Sender<writer::Request>>,
    marker: familiar::Marker,
    questions: Option<mpsc::Sender<read::Question>>,
    threads: Vec<JoinHandle<()>>,
    /// Dropped last, when the threads have ended.
    _lock: Option<open::CrawlLock>,
}

impl SqliteStore {
    pub fn open(path: &Path, mode: OpenMode) -> Result<Self, StoreError> {
        Self::open_inner(path, mode).map_err(|error| error.context(&path.display().to_string()))
    }

    fn open_inner(path: &Path, mode: OpenMode) -> Result<Self, StoreError> {
        open::check_file(path, mode)?;
        let mut threads = Vec::new();
        let mut requests = None;
        let marker = familiar::Marker::default();
        let mut lock = None;
        if mode == OpenMode::Crawl {
            lock = Some(open::lock(path)?);
            let connection = open::writer(path)?;
            let mut memory = work::Memory::load(&connection)?;
            memory.familiar = familiar::Familiar::new(marker.clone());
            let (sender, receiver) = mpsc::channel(writer::WAITING_MAX);
            requests = Some(sender);
            let clock = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .map_err(|error| no_thread(&error))?;
            let (checkpoints, mover) = checkpoint::pair();
            threads.push(spawn("store-writer", move || {
                writer::Writer::new(&connection, memory, checkpoints).run(receiver, &clock);
            })?);
            let connection = open::mover(path)?;
            threads.push(spawn("store-mover", move || mover.run(&connection))?);
        }
        let connection = open::reader(path)?;
        let (questions, receiver) = mpsc::channel(read::WAITING_MAX);
        threads.push(spawn("store-reader", move || {
            read::run(&connection, receiver);
        })?);
        Ok(Self {
            requests,
            marker,
            questions: Some(questions),
            threads,
            _lock: lock,
        })
    }

    async fn write(&self, commits: Vec<Commit>) -> Result<Vec<CommitReport>, StoreError> {
        let Some(requests) = &self.requests else {
            return Err(StoreError::new(
                StoreErrorKind::Denied,
                "the file was opened for reading",
            ));
        };
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        let (answer, answered) = oneshot::channel();
        let marked = |commit| writer::Marked {
            marks: self.marker.marks(&commit),
            commit,
        };
        let commits = commits.into_iter().map(marked).collect();
        let request = writer::Request::Write(writer::Batch { commits, answer });
        if requests.send(request).await.is_err() {
            return Err(StoreError::closed());
        }
        let answered = answered.await.map_err(|_| StoreError::closed())?;
        answered.reports
    }

    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(questions) = &self.questions else {
            return Err(StoreError::closed());
        };
        let (answer, answered) = oneshot::channel();
        let asked = questions.send(Box::new(move |connection: &Connection| {
            let _ = answer.send(question(connection));
        }));
        if asked.await.is_err() {
            return Err(StoreError::closed());
        }
        answered.await.map_err(|_| StoreError::closed())?
    }

    /// Sets the most pages (of 8 192 bytes) that the file may have. A commit that needs more
    /// fails as it would on a full disk.
    pub async fn limit_pages(&self, pages: u32) -> Result<(), StoreError> {
        self.request(|answer| writer::Request::LimitPages(pages, answer))
            .await
    }

    /// Sets how many steps one transaction may take along what follows from what is stored. It
    /// changes when things are done, never what comes of it.
    pub async fn limit_steps(&self, steps: usize) -> Result<(), StoreError> {
        self.request(|answer| writer::Request::LimitSteps(steps, answer))
            .await
    }

    async fn request(
        &self,
        form: impl FnOnce(oneshot::Sender<Result<(), StoreError>>) -> writer::Request,
    ) -> Result<(), StoreError> {
        let Some(requests) = &self.requests else {
            return Err(StoreError::closed());
        };
        let (answer, answered) = oneshot::channel();
        if requests.send(form(answer)).await.is_err() {
            return Err(StoreError::closed());
        }
        answered.await.map_err(|_| StoreError::closed())?
    }

    /// Everything by which an object is known.
    pub async fn identity(&self, key: Key) -> Result<Option<Identity>, StoreError> {
        self.ask(move |connection| read::identity(connection, key))
            .await
    }

    /// Hands the rows of the documented tables to `sink`, one by one, as they are at one moment,
    /// also while somebody crawls into the file.
    pub async fn export(
        &self,
        selection: Selection,
        mut sink: Box<dyn RowSink>,
    ) -> Result<Exported, ExportError> {
        self.ask(move |connection| Ok(export::run(connection, &selection, &mut *sink)))
            .await?
    }

    /// The rows of a `SELECT` over the documented tables, as text.
    pub async fn select_text(&self, sql: String) -> Result<Vec<Vec<Option<String>>>, StoreError> {
        self.ask(move |connection| read::select_text(connection, &sql))
            .await
    }
}

impl Store for SqliteStore {
    fn commit(&self, commits: Vec<Commit>) -> StoreFuture<'_, Vec<CommitReport>> {
        Box::pin(self.write(commits))
    }

    fn due(&self, question: DueQuestion) -> StoreFuture<'_, Vec<Due>> {
        Box::pin(self.ask(move |connection| read::due(connection, &question)))
    }

    fn waiting(&self, question: DueQuestion) -> StoreFuture<'_, u64> {
        Box::pin(self.ask(move |connection| read::waiting(connection, &question)))
    }

    fn controls(&self, after: i64) -> StoreFuture<'_, Vec<Control>> {
        Box::pin(self.ask(move |connection| read::controls(connection, after)))
    }

    fn tasks(&self, tasks: Vec<(Key, Name)>) -> StoreFuture<'_, Vec<Option<TaskRecord>>> {
        Box::pin(self.ask(move |connection| read::tasks(connection, &tasks)))
    }

    fn last_run(&self) -> StoreFuture<'_, Option<(i64, RunRecord)>> {
        Box::pin(self.ask(read::last_run))
    }

    fn detail(&self) -> StoreFuture<'_, crate::Detail> {
        Box::pin(self.ask(detail::detail))
    }

    fn methods(&self) -> StoreFuture<'_, crate::Methods> {
        Box::pin(self.ask(detail::methods))
    }

    fn summary(&self) -> StoreFuture<'_, Summary> {
        Box::pin(self.ask(read::summary))
    }
}

impl crate::suite::Inspect for SqliteStore {
    fn select(&self, sql: String) -> StoreFuture<'_, crate::suite::TextRows> {
        Box::pin(async move {
            self.request(writer::Request::CatchUp).await?;
            self.select_text(sql).await
        })
    }

    fn limit_steps(&self, steps: usize) -> StoreFuture<'_, ()> {
        Box::pin(self.limit_steps(steps))
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The threads end when nobody can send to them any more; the writer empties the log.
        self.requests = None;
        self.questions = None;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the store has panicked");
            }
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| no_thread(&error))
}

fn no_thread(error: &std::io::Error) -> StoreError {
    StoreError::new(
        StoreErrorKind::Other,
        format!("no thread could be started: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::{OpenMode, SqliteStore};
    use crate::StoreError;
    use crate::suite::{Inspect, Place};

    struct Folder(tempfile::TempDir);

    impl Place for Folder {
        fn open(&self) -> Result<Box<dyn Inspect>, StoreError> {
            let path = self.0.path().join("crawl.db");
            Ok(Box::new(SqliteStore::open(&path, OpenMode::Crawl)?))
        }
    }

    fn folder() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    // Here ids have few different hashes (see `hash`), so all of it is tried with collisions.
    crate::store_suite!(folder);
}
