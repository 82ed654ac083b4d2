//! SQLite passes the suite that every back end has to pass.

use kittiwake_store::export::{ExportError, ExportTable, Field, RowSink, Selection};
use kittiwake_store::suite::{Inspect, Place};
use kittiwake_store::{Location, OpenMode, SqliteStore, Store, StoreError};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

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

kittiwake_store::store_suite!(folder);

/// Takes nothing until it is let, or for a minute at the most.
#[derive(Debug)]
struct Slow {
    has_begun: SyncSender<()>,
    may_go_on: Receiver<()>,
}

impl RowSink for Slow {
    fn begin(&mut self, _table: ExportTable) -> Result<(), ExportError> {
        self.has_begun.send(()).unwrap();
        let let_go = self.may_go_on.recv_timeout(Duration::from_mins(1));
        let_go.map_err(|_| ExportError::Refused(String::from("nobody let it go on")))
    }

    fn row(&mut self, _row: &[Field<'_>]) -> Result<(), ExportError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ExportError> {
        Ok(())
    }

    fn hides_empty_text(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_long_reading_keeps_a_crawl_from_nothing() {
    let folder = folder();
    let path = folder.0.path().join("crawl.db");
    let store = Arc::new(SqliteStore::open(&path, OpenMode::Crawl).unwrap());
    let (has_begun, begun) = sync_channel(1);
    let (let_go, may_go_on) = sync_channel(1);
    let sink = Box::new(Slow {
        has_begun,
        may_go_on,
    });
    let selection = Selection {
        tables: vec![ExportTable::ALL[0]],
        since: None,
    };
    let reading = Arc::clone(&store);
    let export = tokio::spawn(async move { Store::export(&*reading, selection, sink).await });
    let begun = tokio::task::spawn_blocking(move || begun.recv_timeout(Duration::from_mins(1)));
    begun.await.unwrap().unwrap();
    // Whoever is asked while the export waits answers.
    assert_eq!(store.newest().await.unwrap(), None);
    assert_eq!(store.summary().await.unwrap().calls, 0);
    let_go.send(()).unwrap();
    export.await.unwrap().unwrap();
}
