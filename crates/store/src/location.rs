//! Where a crawl is kept: a file, or a database of a server.

use crate::database::{Keeper, Reader};
use crate::index::{IndexKeeper, Sources};
use crate::postgres::{self, PostgresStore};
use crate::sqlite::{self, SqliteStore};
use crate::{OpenMode, Store, StoreError};
use kittiwake_model::ControlCommand;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a user names as the place of a crawl: `alice.db`, or `postgres://user@host/database`.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    File(PathBuf),
    /// The URL may hold a password, so it is never shown as it is.
    Server(String),
}

impl Location {
    /// Opens the crawl that is kept there.
    pub fn open(&self, mode: OpenMode) -> Result<Box<dyn Store>, StoreError> {
        Ok(match self {
            Self::File(path) => Box::new(SqliteStore::open(path, mode)?),
            Self::Server(url) => Box::new(PostgresStore::open(url, mode)?),
        })
    }

    /// Opens the place for whoever finishes what was begun there.
    pub(crate) fn open_unfinished(&self) -> Result<Box<dyn Store>, StoreError> {
        Ok(match self {
            Self::File(path) => Box::new(SqliteStore::open_unfinished(path)?),
            Self::Server(url) => Box::new(PostgresStore::open_unfinished(url)?),
        })
    }

    /// Reads the place without the threads of a store.
    pub(crate) fn with_reader(
        &self,
        work: &mut dyn FnMut(&dyn Reader) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match self {
            Self::File(path) => sqlite::with_reader(path, work),
            Self::Server(url) => postgres::with_reader(url, work),
        }
    }

    /// Reads the place, and what was derived from it.
    pub(crate) fn with_sources(
        &self,
        work: &mut dyn FnMut(&Sources<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match self {
            Self::File(path) => sqlite::search::with_sources(path, work),
            Self::Server(url) => postgres::search::with_sources(url, work),
        }
    }

    /// Reads the place, and writes what is derived from it.
    pub(crate) fn with_index_keeper(
        &self,
        work: &mut dyn FnMut(&dyn IndexKeeper) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match self {
            Self::File(path) => sqlite::search::with_index_keeper(path, work),
            Self::Server(url) => postgres::search::with_index_keeper(url, work),
        }
    }

    /// Writes to the place without the threads of a store. It is made if it is missing, and held
    /// against crawls.
    pub(crate) fn with_keeper(
        &self,
        work: &mut dyn FnMut(&dyn Keeper) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match self {
            Self::File(path) => sqlite::with_keeper(path, work),
            Self::Server(url) => postgres::with_keeper(url, work),
        }
    }

    /// Leaves a command for the crawl, for one robot or for all of them; gives its number.
    pub fn ask(&self, command: ControlCommand, robot: Option<&str>) -> Result<i64, StoreError> {
        match self {
            Self::File(path) => sqlite::control::ask(path, command, robot),
            Self::Server(url) => postgres::control::ask(url, command, robot),
        }
    }

    /// Whether the crawl has carried a command out.
    pub fn is_done(&self, id: i64) -> Result<bool, StoreError> {
        match self {
            Self::File(path) => sqlite::control::is_done(path, id),
            Self::Server(url) => postgres::control::is_done(url, id),
        }
    }

    /// Whether a process that is alive crawls into it.
    pub fn is_crawled(&self) -> Result<bool, StoreError> {
        match self {
            Self::File(path) => sqlite::control::is_crawled(path),
            Self::Server(url) => postgres::control::is_crawled(url),
        }
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Server(_) => None,
        }
    }

    /// Whether what names the place holds a password, or cannot be read and may hold one.
    pub fn has_password(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Server(url) => postgres::has_password(url),
        }
    }

    /// The same place with a password, if it is one that wants a password and has none.
    #[must_use]
    pub fn with_password(self, password: &str) -> Self {
        match self {
            Self::Server(url) => Self::Server(postgres::with_password(&url, password)),
            file @ Self::File(_) => file,
        }
    }
}

impl From<OsString> for Location {
    fn from(named: OsString) -> Self {
        let url = named.to_str().filter(|text| {
            let scheme = text.split_once("://").map(|(scheme, _)| scheme);
            scheme.is_some_and(|scheme| {
                ["postgres", "postgresql"]
                    .iter()
                    .any(|known| scheme.eq_ignore_ascii_case(known))
            })
        });
        match url.and_then(|url| url.split_once("://")) {
            Some((_, rest)) => Self::Server(format!("postgres://{rest}")),
            None => Self::File(PathBuf::from(named)),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(formatter),
            Self::Server(url) => postgres::shown_url(url).fmt(formatter),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Location({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Location {
        Location::from(OsString::from(text))
    }

    #[test]
    fn a_url_is_told_from_a_file() {
        for file in [
            "alice.db",
            "postgres",
            "./postgres:alice.db",
            "sqlite://alice.db",
        ] {
            assert_eq!(of(file), Location::File(file.into()));
        }
        for url in ["postgres://h/d", "postgresql://h/d", "PostgreSQL://h/d"] {
            assert_eq!(of(url), Location::Server("postgres://h/d".to_owned()));
        }
    }

    #[test]
    fn no_password_is_shown() {
        for url in [
            "postgres://alice:s3cret@example.org:5433/crawls",
            "postgres://alice@example.org:5433/crawls?password=s3cret",
        ] {
            let location = of(url);
            assert_eq!(
                location.to_string(),
                "postgres://alice@example.org:5433/crawls"
            );
            assert!(!format!("{location:?}").contains("s3cret"));
        }
        let broken = of("postgres://alice:s3cret@example.org:port/crawls");
        assert!(!broken.to_string().contains("s3cret"));
        let error = broken.open(OpenMode::Read).unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }

    #[test]
    fn a_password_is_noticed() {
        for (place, has_password) in [
            ("alice:x@h.db", false),
            ("postgres://alice@h/d", false),
            ("postgres://alice:x@h/d", true),
            ("postgres://alice@h/d?password=x", true),
            ("postgres://alice@h:port/d", true),
        ] {
            assert_eq!(of(place).has_password(), has_password, "{place}");
        }
    }

    #[test]
    fn a_password_is_added_where_there_is_none() {
        for (url, wanted) in [
            ("postgres://alice@h/d", "postgres://alice:o%2Fx%40%25@h/d"),
            ("postgres://alice:own@h/d", "postgres://alice:own@h/d"),
            ("postgres://h/d", "postgres://h/d"),
        ] {
            let with = of(url).with_password("o/x@%");
            assert_eq!(with, Location::Server(wanted.to_owned()));
        }
    }
}
