//! The threads of a store that is open: one that writes, those that read, and how they are asked.

use super::familiar::Marker;
use super::writer::{Batch, Marked, Request, WAITING_MAX};
use super::{detail, export, outlook, read};
use crate::database::{Database, Reader};
use crate::export::{ExportError, Exported, RowSink, Selection};
use crate::suite::TextRows;
use crate::{
    Arrival, Card, Detail, Due, DueQuestion, Facts, Methods, Outlook, OutlookQuestion, Remembered,
    StoreError, StoreErrorKind, Summary, TaskRecord,
};
use kittiwake_model::{
    Commit, CommitReport, Control, Identity, Key, Learnt, Name, RunRecord, Table, WorldTime,
};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// Questions that may wait at once.
const QUESTIONS_MAX: usize = 64;
/// Tasks that are not divided among reading threads: handing them over takes longer than reading them.
const TASKS_AT_ONCE: usize = 16;
/// How often a question is asked again because the connection was lost and came back.
const LOST_MAX: usize = 10;

/// A question to a reading thread, with its answer's address inside.
pub(crate) type Question = Box<dyn FnOnce(&dyn Reader) + Send>;

/// Where reading threads get their questions from; whoever is free takes the next.
#[derive(Debug, Clone)]
pub(crate) struct Questions(Arc<Mutex<mpsc::Receiver<Question>>>);

impl Questions {
    fn next(&self) -> Option<Question> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.blocking_recv()
    }
}

/// Answers questions until nobody can ask any more.
pub(crate) fn answer(reader: &dyn Reader, questions: &Questions) {
    while let Some(question) = questions.next() {
        question(reader);
    }
}

/// Answers to some questions, in the same order.
type Answers<Q, T> = fn(&dyn Reader, &[Q]) -> Result<Vec<T>, StoreError>;

/// Says whether rows come from the disk rather than from memory.
type IsLarge = Box<dyn Fn() -> bool + Send + Sync>;

pub(crate) struct Service {
    requests: Option<mpsc::Sender<Request>>,
    marker: Marker,
    questions: Option<mpsc::Sender<Question>>,
    readers: Vec<JoinHandle<()>>,
    writers: Vec<JoinHandle<()>>,
    /// The tables that are counted.
    tables: &'static [&'static str],
    is_large: Option<IsLarge>,
}

impl fmt::Debug for Service {
    fn fmt(&self, form: &mut fmt::Formatter<'_>) -> fmt::Result {
        form.debug_struct("Service")
            .field("readers", &self.readers)
            .field("writers", &self.writers)
            .finish_non_exhaustive()
    }
}

impl Service {
    pub(crate) fn new(tables: &'static [&'static str]) -> Self {
        Self {
            requests: None,
            marker: Marker::default(),
            questions: None,
            readers: Vec::new(),
            writers: Vec::new(),
            tables,
            is_large: None,
        }
    }

    /// Reads ahead of the writer where `is_large`.
    pub(crate) fn read_ahead_where(&mut self, is_large: impl Fn() -> bool + Send + Sync + 'static) {
        self.is_large = Some(Box::new(is_large));
    }

    pub(crate) fn marker(&self) -> Marker {
        self.marker.clone()
    }

    /// Where the writing thread gets its requests from.
    pub(crate) fn requests(&mut self) -> mpsc::Receiver<Request> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        self.requests = Some(sender);
        receiver
    }

    /// Where the reading threads get their questions from.
    pub(crate) fn questions(&mut self) -> Questions {
        let (sender, receiver) = mpsc::channel(QUESTIONS_MAX);
        self.questions = Some(sender);
        Questions(Arc::new(Mutex::new(receiver)))
    }

    /// Starts a thread that ends when nobody can ask it a question.
    pub(crate) fn spawn_reader(
        &mut self,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), StoreError> {
        self.readers.push(spawn("store-reader", work)?);
        Ok(())
    }

    /// Starts a thread that ends when nobody can ask for something to be written.
    pub(crate) fn spawn_writer(
        &mut self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), StoreError> {
        self.writers.push(spawn(name, work)?);
        Ok(())
    }

    pub(crate) async fn write(
        &self,
        commits: Vec<Commit>,
    ) -> Result<Vec<CommitReport>, StoreError> {
        let Some(requests) = &self.requests else {
            return Err(StoreError::new(
                StoreErrorKind::Denied,
                "the store was opened for reading",
            ));
        };
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        self.read_ahead(&commits).await;
        let (answer, answered) = oneshot::channel();
        let marked = |commit| Marked {
            marks: self.marker.marks(&commit),
            commit,
        };
        let commits = commits.into_iter().map(marked).collect();
        let request = Request::Write(Batch { commits, answer });
        if requests.send(request).await.is_err() {
            return Err(StoreError::closed());
        }
        let answered = answered.await.map_err(|_| StoreError::closed())?;
        answered.reports
    }

    pub(crate) async fn request(
        &self,
        form: impl FnOnce(oneshot::Sender<Result<(), StoreError>>) -> Request,
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

    /// Has a question answered, of one view of the store.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl Fn(&dyn Database) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask_reader(move |reader| question(reader)).await
    }

    /// [`Self::ask`] for what only a reader can do. Asked again when the connection was lost.
    async fn ask_reader<T: Send + 'static>(
        &self,
        question: impl Fn(&dyn Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let work = move |reader: &dyn Reader| persistently(reader, &question);
        self.with_reader(work).await?
    }

    /// Has something done on a reading thread.
    async fn with_reader<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Reader) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let answered = self.hand_to_reader(work).await?;
        answered.await.map_err(|_| StoreError::closed())
    }

    /// Puts work where the next reading thread that is free finds it.
    async fn hand_to_reader<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Reader) -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>, StoreError> {
        let Some(questions) = &self.questions else {
            return Err(StoreError::closed());
        };
        let (answer, answered) = oneshot::channel();
        let asked = questions.send(Box::new(move |reader: &dyn Reader| {
            let _ = answer.send(work(reader));
        }));
        if asked.await.is_err() {
            return Err(StoreError::closed());
        }
        Ok(answered)
    }

    pub(crate) async fn due(&self, question: DueQuestion) -> Result<Vec<Due>, StoreError> {
        self.ask(move |database| read::due(database, &question))
            .await
    }

    pub(crate) async fn remembered(
        &self,
        question: DueQuestion,
    ) -> Result<Vec<Remembered>, StoreError> {
        self.ask(move |database| read::remembered(database, &question))
            .await
    }

    pub(crate) async fn remembered_by_subject(
        &self,
        lane: Name,
        after: Option<Key>,
        limit: usize,
    ) -> Result<Vec<Remembered>, StoreError> {
        self.ask(move |database| read::remembered_by_subject(database, &lane, after, limit))
            .await
    }

    pub(crate) async fn cards(&self, keys: Vec<Key>) -> Result<Vec<Card>, StoreError> {
        self.ask(move |database| read::cards(database, &keys)).await
    }

    pub(crate) async fn learnt(&self) -> Result<Vec<Learnt>, StoreError> {
        self.ask(read::learnt).await
    }

    pub(crate) async fn post_times(
        &self,
        author: Key,
        since: WorldTime,
        limit: usize,
    ) -> Result<Vec<WorldTime>, StoreError> {
        self.ask(move |database| read::post_times(database, author, since, limit))
            .await
    }

    pub(crate) async fn classes(&self, keys: Vec<Key>) -> Result<Vec<Option<String>>, StoreError> {
        self.ask(move |database| read::classes(database, &keys))
            .await
    }

    pub(crate) async fn arrivals(&self, limit: usize) -> Result<Vec<Arrival>, StoreError> {
        self.ask(move |database| read::arrivals(database, limit))
            .await
    }

    pub(crate) async fn named(&self, id: String) -> Result<Vec<Key>, StoreError> {
        self.ask(move |database| read::named(database, &id)).await
    }

    pub(crate) async fn newest(&self) -> Result<Option<WorldTime>, StoreError> {
        self.ask(read::newest).await
    }

    pub(crate) async fn waiting(&self, question: DueQuestion) -> Result<u64, StoreError> {
        self.ask(move |database| read::waiting(database, &question))
            .await
    }

    pub(crate) async fn controls(&self, after: i64) -> Result<Vec<Control>, StoreError> {
        self.ask(move |database| read::controls(database, after))
            .await
    }

    /// Tasks, in the same order. Each is of one view, all of them need not be.
    pub(crate) async fn tasks(
        &self,
        tasks: Vec<(Key, Name)>,
    ) -> Result<Vec<Option<TaskRecord>>, StoreError> {
        self.divided(tasks, |reader, own| read::tasks(reader, own))
            .await
    }

    /// Has answers to many questions of a kind, in the same order. All threads read their share: what is known of
    /// a subject is all over a file, and a thread that waits for the disk does nothing else.
    async fn divided<Q: Send + 'static, T: Send + 'static>(
        &self,
        mut questions: Vec<Q>,
        answers: Answers<Q, T>,
    ) -> Result<Vec<T>, StoreError> {
        let shares = self.readers.len().max(1);
        let share = questions.len().div_ceil(shares).max(TASKS_AT_ONCE);
        let mut asked = Vec::with_capacity(shares);
        while !questions.is_empty() {
            let rest = questions.split_off(share.min(questions.len()));
            let own = std::mem::replace(&mut questions, rest);
            let work = move |reader: &dyn Reader| {
                persistently(reader, &|reader: &dyn Reader| answers(reader, &own))
            };
            asked.push(self.hand_to_reader(work).await?);
        }
        let mut all = Vec::new();
        for answered in asked {
            all.extend(answered.await.map_err(|_| StoreError::closed())??);
        }
        Ok(all)
    }

    /// Brings the places of the index from the disk in which rows are about to be written: there is one writer, and
    /// while it waits for the disk everybody does. What goes wrong goes wrong again when they are written.
    async fn read_ahead(&self, commits: &[Commit]) {
        let is_large = self.is_large.as_ref().is_some_and(|is_large| is_large());
        let rows = commits.iter().flat_map(|commit| &commit.frontier);
        let places: Vec<_> = rows
            .map(|row| (row.subject, row.robot.clone(), row.lane.clone(), row.due))
            .collect();
        if !is_large || places.len() < TASKS_AT_ONCE {
            return;
        }
        let read = |reader: &dyn Reader, own: &[read::Filing]| read::places_of(reader, own);
        if let Err(error) = self.divided(places, read).await {
            tracing::debug!(%error, "places of the index could not be read ahead");
        }
    }

    pub(crate) async fn last_run(&self) -> Result<Option<(i64, RunRecord)>, StoreError> {
        self.ask(read::last_run).await
    }

    pub(crate) async fn summary(&self) -> Result<Summary, StoreError> {
        let tables = self.tables;
        self.ask(move |database| read::summary(database, tables))
            .await
    }

    pub(crate) async fn described(
        &self,
        table: Table,
        keys: Vec<Key>,
    ) -> Result<Vec<BTreeMap<Name, WorldTime>>, StoreError> {
        self.ask(move |database| read::described(database, table, &keys))
            .await
    }

    pub(crate) async fn facts(
        &self,
        network: Name,
        kind: Name,
        limit: usize,
    ) -> Result<Vec<Facts>, StoreError> {
        self.ask(move |database| read::facts(database, &network, &kind, limit))
            .await
    }

    pub(crate) async fn detail(&self) -> Result<Detail, StoreError> {
        self.ask(detail::detail).await
    }

    pub(crate) async fn outlook(&self, question: OutlookQuestion) -> Result<Outlook, StoreError> {
        self.ask(move |database| outlook::outlook(database, &question))
            .await
    }

    pub(crate) async fn methods(&self) -> Result<Methods, StoreError> {
        self.ask(detail::methods).await
    }

    pub(crate) async fn identity(&self, key: Key) -> Result<Option<Identity>, StoreError> {
        self.ask(move |database| read::identity(database, key))
            .await
    }

    /// Not asked again when the connection is lost: the sink has had rows already.
    pub(crate) async fn export(
        &self,
        selection: Selection,
        mut sink: Box<dyn RowSink>,
    ) -> Result<Exported, ExportError> {
        self.with_reader(move |reader| {
            reader.begin_view()?;
            let exported = export::run(reader, &selection, &mut *sink);
            reader.end_view();
            exported
        })
        .await?
    }

    pub(crate) async fn select_text(&self, sql: String) -> Result<TextRows, StoreError> {
        self.ask_reader(move |reader| reader.select_text(&sql))
            .await
    }
}

/// Answers a question, and does it again when the connection was lost and came back.
fn persistently<T>(
    reader: &dyn Reader,
    question: &impl Fn(&dyn Reader) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut answer = in_one_view(reader, question);
    for _ in 0..LOST_MAX {
        match answer {
            Err(error) if error.kind() == StoreErrorKind::Unreachable => {
                answer = in_one_view(reader, question);
            }
            _ => break,
        }
    }
    answer
}

fn in_one_view<T>(
    reader: &dyn Reader,
    question: impl Fn(&dyn Reader) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    reader.begin_view()?;
    let answer = question(reader);
    reader.end_view();
    answer
}

impl Drop for Service {
    fn drop(&mut self) {
        // Threads end when nobody can send to them any more. Who writes ends last, and tidies up
        // when nobody else is there.
        self.questions = None;
        join(&mut self.readers);
        self.requests = None;
        join(&mut self.writers);
    }
}

fn join(threads: &mut Vec<JoinHandle<()>>) {
    for thread in threads.drain(..) {
        if thread.join().is_err() {
            tracing::error!("a thread of the store has panicked");
        }
    }
}

pub(crate) fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, StoreError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| no_thread(&error))
}

pub(crate) fn no_thread(error: &std::io::Error) -> StoreError {
    StoreError::new(
        StoreErrorKind::Other,
        format!("no thread could be started: {error}"),
    )
}

/// Makes a type a store that passes everything on to its `service`.
macro_rules! serve {
    ($store:ty) => {
        impl $crate::Store for $store {
            fn commit(
                &self,
                commits: Vec<kittiwake_model::Commit>,
            ) -> $crate::StoreFuture<'_, Vec<kittiwake_model::CommitReport>> {
                Box::pin(self.service.write(commits))
            }

            fn due(
                &self,
                question: $crate::DueQuestion,
            ) -> $crate::StoreFuture<'_, Vec<$crate::Due>> {
                Box::pin(self.service.due(question))
            }

            fn remembered(
                &self,
                question: $crate::DueQuestion,
            ) -> $crate::StoreFuture<'_, Vec<$crate::Remembered>> {
                Box::pin(self.service.remembered(question))
            }

            fn remembered_by_subject(
                &self,
                lane: kittiwake_model::Name,
                after: Option<kittiwake_model::Key>,
                limit: usize,
            ) -> $crate::StoreFuture<'_, Vec<$crate::Remembered>> {
                Box::pin(self.service.remembered_by_subject(lane, after, limit))
            }

            fn cards(
                &self,
                keys: Vec<kittiwake_model::Key>,
            ) -> $crate::StoreFuture<'_, Vec<$crate::Card>> {
                Box::pin(self.service.cards(keys))
            }

            fn learnt(&self) -> $crate::StoreFuture<'_, Vec<kittiwake_model::Learnt>> {
                Box::pin(self.service.learnt())
            }

            fn post_times(
                &self,
                author: kittiwake_model::Key,
                since: kittiwake_model::WorldTime,
                limit: usize,
            ) -> $crate::StoreFuture<'_, Vec<kittiwake_model::WorldTime>> {
                Box::pin(self.service.post_times(author, since, limit))
            }

            fn classes(
                &self,
                keys: Vec<kittiwake_model::Key>,
            ) -> $crate::StoreFuture<'_, Vec<Option<String>>> {
                Box::pin(self.service.classes(keys))
            }

            fn arrivals(&self, limit: usize) -> $crate::StoreFuture<'_, Vec<$crate::Arrival>> {
                Box::pin(self.service.arrivals(limit))
            }

            fn named(&self, id: String) -> $crate::StoreFuture<'_, Vec<kittiwake_model::Key>> {
                Box::pin(self.service.named(id))
            }

            fn newest(&self) -> $crate::StoreFuture<'_, Option<kittiwake_model::WorldTime>> {
                Box::pin(self.service.newest())
            }

            fn waiting(&self, question: $crate::DueQuestion) -> $crate::StoreFuture<'_, u64> {
                Box::pin(self.service.waiting(question))
            }

            fn controls(
                &self,
                after: i64,
            ) -> $crate::StoreFuture<'_, Vec<kittiwake_model::Control>> {
                Box::pin(self.service.controls(after))
            }

            fn tasks(
                &self,
                tasks: Vec<(kittiwake_model::Key, kittiwake_model::Name)>,
            ) -> $crate::StoreFuture<'_, Vec<Option<$crate::TaskRecord>>> {
                Box::pin(self.service.tasks(tasks))
            }

            fn last_run(
                &self,
            ) -> $crate::StoreFuture<'_, Option<(i64, kittiwake_model::RunRecord)>> {
                Box::pin(self.service.last_run())
            }

            fn summary(&self) -> $crate::StoreFuture<'_, $crate::Summary> {
                Box::pin(self.service.summary())
            }

            fn described(
                &self,
                table: kittiwake_model::Table,
                keys: Vec<kittiwake_model::Key>,
            ) -> $crate::StoreFuture<
                '_,
                Vec<std::collections::BTreeMap<kittiwake_model::Name, kittiwake_model::WorldTime>>,
            > {
                Box::pin(self.service.described(table, keys))
            }

            fn facts(
                &self,
                network: kittiwake_model::Name,
                kind: kittiwake_model::Name,
                limit: usize,
            ) -> $crate::StoreFuture<'_, Vec<$crate::Facts>> {
                Box::pin(self.service.facts(network, kind, limit))
            }

            fn detail(&self) -> $crate::StoreFuture<'_, $crate::Detail> {
                Box::pin(self.service.detail())
            }

            fn outlook(
                &self,
                question: $crate::OutlookQuestion,
            ) -> $crate::StoreFuture<'_, $crate::Outlook> {
                Box::pin(self.service.outlook(question))
            }

            fn methods(&self) -> $crate::StoreFuture<'_, $crate::Methods> {
                Box::pin(self.service.methods())
            }

            fn export(
                &self,
                selection: $crate::export::Selection,
                sink: Box<dyn $crate::export::RowSink>,
            ) -> $crate::ExportFuture<'_> {
                Box::pin(self.service.export(selection, sink))
            }
        }

        impl $crate::suite::Inspect for $store {
            fn select(&self, sql: String) -> $crate::StoreFuture<'_, $crate::suite::TextRows> {
                Box::pin(async move {
                    // Who looks at the rows wants them as they will be.
                    self.service.request(Request::CatchUp).await?;
                    self.service.select_text(sql).await
                })
            }

            fn limit_steps(&self, steps: usize) -> $crate::StoreFuture<'_, ()> {
                Box::pin(
                    self.service
                        .request(move |answer| Request::LimitSteps(steps, answer)),
                )
            }
        }
    };
}
pub(crate) use serve;
