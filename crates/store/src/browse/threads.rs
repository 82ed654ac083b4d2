//! The threads of a browser: some that answer, one that counts, one that keeps the index.

use super::crawl::{Counted, Extent};
use crate::index::Sources;
use crate::rules::browse::indexing::{self, Step};
use crate::rules::service::spawn;
use crate::{Location, StoreError, StoreErrorKind};
use kittiwake_model::RealTime;
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{mpsc, oneshot};

/// Threads that answer, at the most.
const THREADS_MAX: usize = 16;
/// Questions that may wait at once.
const QUESTIONS_MAX: usize = 256;
/// How often a question is asked again because the connection was lost and came back.
const LOST_MAX: usize = 2;

/// A question with its answer's address inside; an error if the place cannot be read.
type Question = Box<dyn FnOnce(Result<&Sources<'_>, StoreError>) + Send>;

/// Threads that answer questions, each with a connection of its own.
pub(super) struct Answering {
    questions: Option<mpsc::Sender<Question>>,
    threads: Vec<JoinHandle<()>>,
}

impl fmt::Debug for Answering {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Answering({})", self.threads.len())
    }
}

impl Answering {
    pub(super) fn start(location: &Location, threads: usize) -> Result<Self, StoreError> {
        let (sender, receiver) = mpsc::channel(QUESTIONS_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        let mut answering = Self {
            questions: Some(sender),
            threads: Vec::new(),
        };
        for _ in 0..threads.clamp(1, THREADS_MAX) {
            let (location, questions) = (location.clone(), Arc::clone(&receiver));
            let (opened, is_open) = sync_channel(1);
            let thread = spawn("store-browser", move || {
                answer(&location, &questions, opened);
            })?;
            answering.threads.push(thread);
            is_open.recv().map_err(|_| StoreError::closed())??;
        }
        Ok(answering)
    }

    /// Has a question answered, of one view of the crawl.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl Fn(&Sources<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(questions) = &self.questions else {
            return Err(StoreError::closed());
        };
        let (sender, answered) = oneshot::channel();
        let asked = questions.send(Box::new(move |sources| {
            let answer = sources.and_then(|sources| patiently(sources, &question));
            // Whoever asked may have gone.
            let _ = sender.send(answer);
        }));
        asked.await.map_err(|_| StoreError::closed())?;
        answered.await.map_err(|_| StoreError::closed())?
    }
}

fn patiently<T>(
    sources: &Sources<'_>,
    question: impl Fn(&Sources<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut answer = in_one_view(sources, &question);
    for _ in 0..LOST_MAX {
        match answer {
            Err(error) if error.kind() == StoreErrorKind::Unreachable => {
                answer = in_one_view(sources, &question);
            }
            _ => break,
        }
    }
    answer
}

fn in_one_view<T>(
    sources: &Sources<'_>,
    question: impl Fn(&Sources<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    sources.crawl.begin_view()?;
    let answer = question(sources);
    sources.crawl.end_view();
    answer
}

type Questions = Mutex<mpsc::Receiver<Question>>;

fn next(questions: &Questions) -> Option<Question> {
    locked(questions).blocking_recv()
}

/// Answers until nobody can ask any more. A place that was replaced by another is opened again.
fn answer(location: &Location, questions: &Questions, opened: SyncSender<Result<(), StoreError>>) {
    let mut opened = Some(opened);
    let mut waiting: Option<Question> = None;
    let mut is_over = false;
    while !is_over {
        let answered = location.with_sources(&mut |sources| {
            if let Some(opened) = opened.take() {
                let _ = opened.send(Ok(()));
            }
            while let Some(question) = waiting.take().or_else(|| next(questions)) {
                if !(sources.is_current)() {
                    waiting = Some(question);
                    return Ok(());
                }
                question(Ok(sources));
            }
            is_over = true;
            Ok(())
        });
        let Err(error) = answered else { continue };
        if let Some(opened) = opened.take() {
            let _ = opened.send(Err(error));
            return;
        }
        // Whoever waits is told; whoever asks next may find the place again.
        match waiting.take() {
            Some(question) => question(Err(error)),
            None => match next(questions) {
                Some(question) => waiting = Some(question),
                None => return,
            },
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.questions = None;
        self.threads.drain(..).for_each(join);
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a thread that reads the store has panicked");
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that ends when its owner does.
struct Companion {
    /// Wakes it up; without it the thread ends.
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Companion {
    fn start(
        name: &str,
        work: impl FnOnce(Receiver<()>) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (wake, awoken) = sync_channel(1);
        Ok(Self {
            wake: Some(wake),
            thread: Some(spawn(name, move || work(awoken))?),
        })
    }

    fn wake(&self) {
        if let Some(Err(TrySendError::Disconnected(()))) =
            self.wake.as_ref().map(|wake| wake.try_send(()))
        {
            tracing::debug!("a thread that reads the store has ended");
        }
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.wake = None;
        self.thread.take().into_iter().for_each(join);
    }
}

/// Counts rows beside everything else.
pub(super) struct Counting {
    extent: Arc<Mutex<Extent>>,
    companion: Mutex<Option<Companion>>,
}

impl fmt::Debug for Counting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Counting")
    }
}

/// The tables that are counted.
const COUNTED: &[&str] = &[
    "users",
    "statuses",
    "comments",
    "tags",
    "objects",
    "user_relations",
    "invalid_relations",
    "user_tags",
    "links",
    "invalid_users",
    "query_log",
    "outcomes",
    "frontier",
    "subjects",
    "pending",
    "runs",
    "versions",
    "counts",
];
/// Counting takes one part of the time in so many.
const COUNTING_SHARE: u32 = 10;
/// The least time between two counts.
const COUNTING_PAUSE: Duration = Duration::from_secs(2);

impl Counting {
    pub(super) fn new() -> Self {
        Self {
            extent: Arc::default(),
            companion: Mutex::default(),
        }
    }

    /// What was counted last; has it counted again if it may be.
    pub(super) fn extent(&self, location: &Location) -> Result<Extent, StoreError> {
        let mut companion = locked(&self.companion);
        if companion.is_none() {
            let (location, extent) = (location.clone(), Arc::clone(&self.extent));
            let count = move |awoken| count_when_asked(&location, &extent, &awoken);
            *companion = Some(Companion::start("store-counter", count)?);
        }
        if let Some(companion) = &*companion {
            companion.wake();
        }
        Ok(locked(&self.extent).clone())
    }
}

fn count_when_asked(location: &Location, extent: &Mutex<Extent>, awoken: &Receiver<()>) {
    while awoken.recv().is_ok() {
        let begun = Instant::now();
        let mut is_over = false;
        let counted = location.with_sources(&mut |sources| {
            for table in COUNTED {
                let rows = in_one_view(sources, |sources| {
                    let database: &dyn crate::database::Database = sources.crawl;
                    let sql = format!("SELECT count(*) FROM {table}");
                    database.only(&*sql, &[], |row| row.get::<i64>(0))
                })?;
                let counted = Counted {
                    rows: u64::try_from(rows).unwrap_or_default(),
                    at: now(),
                };
                locked(extent).rows.insert((*table).to_owned(), counted);
                // Nobody is waited for who has gone meanwhile.
                is_over = matches!(
                    awoken.try_recv(),
                    Err(std::sync::mpsc::TryRecvError::Disconnected)
                );
                if is_over {
                    break;
                }
            }
            Ok(())
        });
        if let Err(error) = counted {
            tracing::warn!(%error, "rows could not be counted");
        }
        let pause = (begun.elapsed() * (COUNTING_SHARE - 1)).max(COUNTING_PAUSE);
        if is_over || !rested(awoken, pause) {
            return;
        }
    }
}

/// Rests, whoever knocks; false if it is over.
fn rested(awoken: &Receiver<()>, pause: Duration) -> bool {
    let until = Instant::now() + pause;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match awoken.recv_timeout(left) {
            Ok(()) if !left.is_zero() => {}
            Ok(()) | Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

fn now() -> RealTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let micros = since.unwrap_or_default().as_micros();
    RealTime(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// Keeps the index.
#[derive(Default)]
pub(super) struct Indexing {
    companion: Mutex<Option<Companion>>,
}

impl fmt::Debug for Indexing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Indexing")
    }
}

/// How long the index rests when there is nothing to do.
const IDLE_PAUSE: Duration = Duration::from_millis(500);
/// How long it rests between two steps at the most.
const STEP_PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long it waits after something went wrong.
const TROUBLE_PAUSE_MIN: Duration = Duration::from_millis(200);
const TROUBLE_PAUSE_MAX: Duration = Duration::from_secs(30);

impl Indexing {
    pub(super) fn start(&self, location: &Location) -> Result<(), StoreError> {
        let mut companion = locked(&self.companion);
        if companion.is_none() {
            let location = location.clone();
            let keep = move |awoken| keep(&location, &awoken);
            *companion = Some(Companion::start("store-indexer", keep)?);
        }
        Ok(())
    }
}

/// Step after step until it is over. Whatever goes wrong, it begins again with what it finds.
fn keep(location: &Location, awoken: &Receiver<()>) {
    let mut pause = TROUBLE_PAUSE_MIN;
    loop {
        let mut is_over = false;
        let kept = location.with_index_keeper(&mut |keeper| {
            loop {
                let begun = Instant::now();
                let done = indexing::step(keeper)?;
                pause = TROUBLE_PAUSE_MIN;
                // As long as it has worked: others are at work, too.
                let rest = match done {
                    Step::Busy => begun.elapsed().min(STEP_PAUSE_MAX),
                    Step::Idle => IDLE_PAUSE,
                };
                if !rested(awoken, rest) {
                    is_over = true;
                    return Ok(());
                }
            }
        });
        if let Err(error) = kept {
            tracing::warn!(%error, "the index of words could not be kept; trying again");
        }
        if is_over || !rested(awoken, pause) {
            return;
        }
        pause = (pause * 2).min(TROUBLE_PAUSE_MAX);
    }
}
