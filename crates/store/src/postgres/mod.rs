//! One crawl in a schema of a PostgreSQL server. The only folder that knows tokio-postgres.

mod ahead;
mod bulk;
mod cells;
pub mod control;
mod database;
mod dialect;
mod error;
pub(crate) mod ledger;
mod lock;
mod migrate;
mod pipeline;
mod schema;
pub(crate) mod search;
mod session;
mod tls;
mod views;

use crate::copy::Unfinished;
use crate::database::{Keeper, Reader};
use crate::rules::service::{self, Service, serve};
use crate::rules::writer::{Request, Writer};
use crate::{OpenMode, StoreError, StoreErrorKind};
use database::PostgresDatabase;
use session::{Address, Session};
use std::fmt::Write as _;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;
use tokio_postgres::config::Host;

/// A crawl on a server.
#[derive(Debug)]
pub struct PostgresStore {
    service: Service,
}

impl PostgresStore {
    /// Opens the crawl that a URL names (`postgres://user@host/database`).
    pub fn open(url: &str, mode: OpenMode) -> Result<Self, StoreError> {
        Self::open_patiently(url, mode, session::PATIENCE)
    }

    /// [`Self::open`] with another patience: how long a crawl waits for a server that goes away
    /// after it was opened.
    pub fn open_patiently(
        url: &str,
        mode: OpenMode,
        patience: Duration,
    ) -> Result<Self, StoreError> {
        let address = parse(url)?;
        let opened = Self::open_inner(&address, mode, patience, Unfinished::Refused);
        opened.map_err(|error| error.context(&shown(&address)))
    }

    /// Opens a place for whoever finishes what was begun there.
    pub(crate) fn open_unfinished(url: &str) -> Result<Self, StoreError> {
        let address = parse(url)?;
        let (mode, patience) = (OpenMode::Crawl, session::PATIENCE);
        let opened = Self::open_inner(&address, mode, patience, Unfinished::Accepted);
        opened.map_err(|error| error.context(&shown(&address)))
    }

    fn open_inner(
        address: &Address,
        mode: OpenMode,
        patience: Duration,
        unfinished: Unfinished,
    ) -> Result<Self, StoreError> {
        let mut service = Service::new(schema::TABLE_NAMES);
        if mode == OpenMode::Crawl {
            start_writer(address.clone(), patience, unfinished, &mut service)?;
        }
        let questions = service.questions();
        let address = address.clone();
        let (opened, is_open) = sync_channel(1);
        service.spawn_reader(move || {
            let reader = open_reader(address, patience)
                .and_then(|reader| unfinished.check(&reader).map(|()| reader));
            if let Some(database) = told(&opened, reader) {
                service::answer(&database, &questions);
            }
        })?;
        is_open.recv().map_err(|_| StoreError::closed())??;
        Ok(Self { service })
    }
}

serve!(PostgresStore);

/// See [`crate::Location::with_reader`].
pub(crate) fn with_reader(
    url: &str,
    work: &mut dyn FnMut(&dyn Reader) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let address = parse(url)?;
    let done = open_reader(address.clone(), session::PATIENCE).and_then(|reader| work(&reader));
    done.map_err(|error| error.context(&shown(&address)))
}

/// See [`crate::Location::with_keeper`].
pub(crate) fn with_keeper(
    url: &str,
    work: &mut dyn FnMut(&dyn Keeper) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let address = parse(url)?;
    let done = open_writer(address.clone(), session::PATIENCE).and_then(|keeper| {
        let done = work(&keeper);
        lock::give_back(keeper.session());
        done
    });
    done.map_err(|error| error.context(&shown(&address)))
}

fn start_writer(
    address: Address,
    patience: Duration,
    unfinished: Unfinished,
    service: &mut Service,
) -> Result<(), StoreError> {
    let requests = service.requests();
    let marker = service.marker();
    let (opened, is_open) = sync_channel(1);
    service.spawn_writer("store-writer", move || {
        let database = match open_writer(address, patience) {
            Ok(database) => database,
            Err(error) => {
                let _ = opened.send(Err(error));
                return;
            }
        };
        let writer = unfinished
            .check(&database)
            .and_then(|()| Writer::load(&database, marker));
        if let Some(writer) = told(&opened, writer) {
            writer.run(requests, database.session().runtime());
            lock::give_back(database.session());
        }
    })?;
    is_open.recv().map_err(|_| StoreError::closed())?
}

/// Tells whoever opens the store how it went.
fn told<T>(
    opened: &SyncSender<Result<(), StoreError>>,
    result: Result<T, StoreError>,
) -> Option<T> {
    match result {
        Ok(value) => {
            let _ = opened.send(Ok(()));
            Some(value)
        }
        Err(error) => {
            let _ = opened.send(Err(error));
            None
        }
    }
}

fn open_writer(address: Address, patience: Duration) -> Result<PostgresDatabase, StoreError> {
    let session = Session::open(address, patience)?;
    check_encoding(&session)?;
    make_schema(&session)?;
    lock::take_soon(&session)?;
    migrate::migrate(&session, migrate::MIGRATIONS)?;
    session.plan_by_index();
    let database = PostgresDatabase::new(session);
    database.load()?;
    Ok(database)
}

fn open_reader(address: Address, patience: Duration) -> Result<PostgresDatabase, StoreError> {
    let session = Session::open(address, patience)?;
    check_encoding(&session)?;
    migrate::check_version(migrate::version_of(&session)?, OpenMode::Read)?;
    Ok(PostgresDatabase::new(session))
}

/// Makes the schema that the URL names, as a file is made that is not there yet.
fn make_schema(session: &Session) -> Result<(), StoreError> {
    if session.text("SELECT current_schema()::text")?.is_some() {
        return Ok(());
    }
    let name = schema_name(session)?.replace('"', "\"\"");
    session.batch(&format!("CREATE SCHEMA IF NOT EXISTS \"{name}\""))
}

/// The schema that the URL names, there or not.
fn schema_name(session: &Session) -> Result<String, StoreError> {
    let path = session.text("SHOW search_path")?.unwrap_or_default();
    let first = path.split(',').next().unwrap_or_default().trim();
    Ok(first.trim_matches('"').to_owned())
}

fn check_encoding(session: &Session) -> Result<(), StoreError> {
    let encoding = session.text("SHOW server_encoding")?.unwrap_or_default();
    if encoding == "UTF8" {
        return Ok(());
    }
    Err(StoreError::new(
        StoreErrorKind::NotOurs,
        format!(
            "the database's encoding is {encoding}, which cannot hold every text; make one with \
             createdb --encoding UTF8 --template template0"
        ),
    ))
}

fn parse(url: &str) -> Result<Address, StoreError> {
    let (rest, tls) = tls::take_wish(url)?;
    // What is wrong with it is said without the URL, which may hold a password.
    let config = rest.parse().map_err(|error: tokio_postgres::Error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        StoreError::new(
            StoreErrorKind::Missing,
            format!(
                "the URL of the database cannot be read: {}; it looks like \
                 postgres://user@host/database",
                cause.unwrap_or_else(|| error.to_string())
            ),
        )
    })?;
    Ok(Address { config, tls })
}

/// Whether a URL holds a password; one that cannot be read may hold one.
pub(crate) fn has_password(url: &str) -> bool {
    parse(url).map_or(true, |address| address.config.get_password().is_some())
}

/// A URL with a password, if it names a user and has none.
pub(crate) fn with_password(url: &str, password: &str) -> String {
    let has_one = parse(url).is_ok() && has_password(url);
    match url.split_once('@') {
        Some((before, after)) if !has_one => {
            let mut escaped = String::new();
            for byte in password.bytes() {
                if byte.is_ascii_alphanumeric() {
                    escaped.push(char::from(byte));
                } else {
                    let _ = write!(escaped, "%{byte:02X}");
                }
            }
            format!("{before}:{escaped}@{after}")
        }
        _ => url.to_owned(),
    }
}

/// A URL without its password, for people.
pub(crate) fn shown_url(url: &str) -> String {
    parse(url).map_or_else(|_| "postgres://…".to_owned(), |address| shown(&address))
}

fn shown(address: &Address) -> String {
    let config = &address.config;
    let mut shown = String::from("postgres://");
    if let Some(user) = config.get_user() {
        shown.push_str(user);
        shown.push('@');
    }
    let ports = config.get_ports();
    for (place, host) in config.get_hosts().iter().enumerate() {
        if place > 0 {
            shown.push(',');
        }
        match host {
            Host::Tcp(name) => shown.push_str(name),
            #[cfg(unix)]
            Host::Unix(path) => shown.push_str(&path.to_string_lossy()),
        }
        if let Some(port) = ports
            .get(place)
            .or(ports.first())
            .filter(|port| **port != 5432)
        {
            let _ = write!(shown, ":{port}");
        }
    }
    shown.push('/');
    shown.push_str(config.get_dbname().unwrap_or_default());
    shown
}
