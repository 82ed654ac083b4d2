//! SQLite passes the suite that every back end has to pass.

use kittiwake_store::suite::{Inspect, Place};
use kittiwake_store::{Location, OpenMode, SqliteStore, StoreError};

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
