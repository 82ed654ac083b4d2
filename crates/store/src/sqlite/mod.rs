//! One crawl in one SQLite file. The only folder that knows rusqlite.

pub mod check;
mod checkpoint;
pub mod control;
mod database;
mod error;
mod filter;
mod head;
pub(crate) mod ledger;
mod migrate;
mod open;
mod placed;
mod places;
#[cfg(test)]
mod plans;
mod schema;
pub(crate) mod search;
mod statements;
mod views;
#[cfg(test)]
mod writing;

pub use crate::OpenMode;
use crate::StoreError;
use crate::copy::Unfinished;
use crate::database::{Keeper, Reader};
use crate::export::{ExportError, Exported, RowSink, Selection};
use crate::rules::service::{self, Service, no_thread, serve};
use crate::rules::writer::{Request, Writer};
use database::SqliteDatabase;
use kittiwake_model::{Identity, Key};
use std::path::Path;

/// Threads that read beside a crawl. Rows of a file that is larger than the memory come from the disk, which
/// brings several in the time of one.
const CRAWL_READERS: usize = 4;
/// How large a file is whose pages the machine's memory is trusted to hold.
const IN_MEMORY_BYTES_MAX: u64 = 4 << 30;

/// A crawl in a file.
#[derive(Debug)]
pub struct SqliteStore {
    service: Service,
    /// Dropped last, when the threads have ended.
    _lock: Option<open::CrawlLock>,
}

impl SqliteStore {
    pub fn open(path: &Path, mode: OpenMode) -> Result<Self, StoreError> {
        in_context(path, || Self::open_inner(path, mode, Unfinished::Refused))
    }

    /// Opens a file for whoever finishes what was begun in it.
    pub(crate) fn open_unfinished(path: &Path) -> Result<Self, StoreError> {
        in_context(path, || {
            Self::open_inner(path, OpenMode::Crawl, Unfinished::Accepted)
        })
    }

    fn open_inner(path: &Path, mode: OpenMode, unfinished: Unfinished) -> Result<Self, StoreError> {
        open::check_file(path, mode)?;
        let mut service = Service::new(schema::TABLE_NAMES);
        let mut lock = None;
        if mode == OpenMode::Crawl {
            lock = Some(open::lock(path)?);
            start_writer(path, unfinished, &mut service)?;
        }
        let file = path.to_owned();
        service.read_ahead_where(move || {
            std::fs::metadata(&file).is_ok_and(|file| file.len() > IN_MEMORY_BYTES_MAX)
        });
        let questions = service.questions();
        let readers = match mode {
            OpenMode::Crawl => CRAWL_READERS,
            OpenMode::Read => 1,
        };
        for _ in 0..readers {
            let connection = open::reader(path)?;
            unfinished.check(&SqliteDatabase::new(&connection))?;
            let questions = questions.clone();
            service.spawn_reader(move || {
                service::answer(&SqliteDatabase::new(&connection), &questions);
            })?;
        }
        Ok(Self {
            service,
            _lock: lock,
        })
    }

    /// Sets the most pages (of 8 192 bytes) that the file may have. A commit that needs more
    /// fails as it would on a full disk.
    pub async fn limit_pages(&self, pages: u32) -> Result<(), StoreError> {
        self.service
            .request(|answer| Request::LimitPages(pages, answer))
            .await
    }

    /// From now on a commit waits until it would outlive a power cut. Without that, the last ones may
    /// be missing after one, and are crawled again.
    pub async fn sync_fully(&self) -> Result<(), StoreError> {
        self.service.request(Request::SyncFully).await
    }

    /// Sets how many steps one transaction may take along what follows from what is stored. It
    /// changes when things are done, never what comes of it.
    pub async fn limit_steps(&self, steps: usize) -> Result<(), StoreError> {
        self.service
            .request(|answer| Request::LimitSteps(steps, answer))
            .await
    }

    /// Everything by which an object is known.
    pub async fn identity(&self, key: Key) -> Result<Option<Identity>, StoreError> {
        self.service.identity(key).await
    }

    /// Hands the rows of the documented tables to `sink`, one by one, as they are at one moment,
    /// also while somebody crawls into the file.
    pub async fn export(
        &self,
        selection: Selection,
        sink: Box<dyn RowSink>,
    ) -> Result<Exported, ExportError> {
        self.service.export(selection, sink).await
    }

    /// The rows of a `SELECT` over the documented tables, as text.
    pub async fn select_text(&self, sql: String) -> Result<Vec<Vec<Option<String>>>, StoreError> {
        self.service.select_text(sql).await
    }
}

serve!(SqliteStore);

/// See [`crate::Location::with_reader`].
pub(crate) fn with_reader(
    path: &Path,
    work: &mut dyn FnMut(&dyn Reader) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let work = || {
        open::check_file(path, OpenMode::Read)?;
        let connection = open::reader(path)?;
        work(&SqliteDatabase::new(&connection))
    };
    in_context(path, work)
}

/// See [`crate::Location::with_keeper`].
pub(crate) fn with_keeper(
    path: &Path,
    work: &mut dyn FnMut(&dyn Keeper) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let work = || {
        open::check_file(path, OpenMode::Crawl)?;
        let _lock = open::lock(path)?;
        let connection = open::writer(path)?;
        let database = SqliteDatabase::new(&connection);
        let done = work(&database);
        database.finish();
        done
    };
    in_context(path, work)
}

fn in_context<T>(
    path: &Path,
    work: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    work().map_err(|error| error.context(&path.display().to_string()))
}

fn start_writer(
    path: &Path,
    unfinished: Unfinished,
    service: &mut Service,
) -> Result<(), StoreError> {
    let connection = open::writer(path)?;
    let (checkpoints, mover) = checkpoint::pair();
    let clock = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| no_thread(&error))?;
    let requests = service.requests();
    let marker = service.marker();
    // Whoever opens the file hears of what cannot be read in it.
    let (loaded, has_loaded) = std::sync::mpsc::sync_channel(1);
    service.spawn_writer("store-writer", move || {
        let database = SqliteDatabase::new(&connection).with_checkpoints(checkpoints);
        let writer = unfinished
            .check(&database)
            .and_then(|()| database.load())
            .and_then(|()| Writer::load(&database, marker));
        match writer {
            Ok(writer) => {
                let _ = loaded.send(Ok(()));
                writer.run(requests, &clock);
            }
            Err(error) => {
                let _ = loaded.send(Err(error));
            }
        }
    })?;
    has_loaded.recv().map_err(|_| StoreError::closed())??;
    let connection = open::mover(path)?;
    service.spawn_writer("store-mover", move || mover.run(connection))
}

#[cfg(test)]
mod tests {
    use super::SqliteStore;
    use crate::suite::{Inspect, Place};
    use crate::{Location, OpenMode, StoreError};

    struct Folder(tempfile::TempDir);

    impl Place for Folder {
        fn open(&self) -> Result<Box<dyn Inspect>, StoreError> {
            let path = self.0.path().join("crawl.db");
            Ok(Box::new(SqliteStore::open(&path, OpenMode::Crawl)?))
        }

        fn location(&self) -> Location {
            Location::File(self.0.path().join("crawl.db"))
        }
    }

    fn folder() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    // Here ids have few different hashes (see `hash`), so all of it is tried with collisions.
    crate::store_suite!(folder);
}
