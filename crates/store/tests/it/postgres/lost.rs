//! Connections that are lost: the crawl goes on, and nothing is lost or doubled with them.

use super::server::{OWNER, own, shared};
use super::{number, open, schema, told, visit, visited};
use kittiwake_store::{OpenMode, PostgresStore, Store as _, StoreErrorKind};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

/// Passes everything on between a crawl and the server, until it is to cut.
pub(super) struct Between {
    folder: tempfile::TempDir,
    /// Pieces that still come back from the server before the connection is cut.
    pieces_left: Arc<AtomicI64>,
    /// Nobody gets through.
    is_shut: Arc<AtomicBool>,
}

/// Far more pieces than a test has.
pub(super) const NEVER: i64 = i64::MAX / 2;

impl Between {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let pieces_left = Arc::new(AtomicI64::new(NEVER));
        let is_shut = Arc::new(AtomicBool::new(false));
        let (pieces, shut) = (Arc::clone(&pieces_left), Arc::clone(&is_shut));
        let server = shared().socket();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if !shut.load(Ordering::SeqCst) {
                    pass_on(&client, &server, &pieces);
                }
            }
        });
        Self {
            folder,
            pieces_left,
            is_shut,
        }
    }

    pub(super) fn url(&self, of: &str) -> String {
        let direct = shared().folder().to_string_lossy().replace('/', "%2F");
        let around = self.folder.path().to_string_lossy().replace('/', "%2F");
        of.replace(&direct, &around)
    }

    /// Cuts the connection that gets the piece after so many.
    pub(super) fn cut_after(&self, pieces: i64) {
        self.pieces_left.store(pieces, Ordering::SeqCst);
    }

    fn has_cut(&self) -> bool {
        self.pieces_left.load(Ordering::SeqCst) < 0
    }
}

fn pass_on(client: &UnixStream, server: &Path, pieces: &Arc<AtomicI64>) {
    let server = UnixStream::connect(server).unwrap();
    let ways = [(client, &server, None), (&server, client, Some(pieces))];
    for (from, to, pieces) in ways {
        let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        let pieces = pieces.cloned();
        std::thread::spawn(move || {
            let mut bytes = [0; 8_192];
            loop {
                let count = from.read(&mut bytes).unwrap_or(0);
                let is_cut = pieces
                    .as_ref()
                    .is_some_and(|left| left.fetch_sub(1, Ordering::SeqCst) == 0);
                if count == 0 || is_cut || to.write_all(&bytes[..count]).is_err() {
                    let _ = from.shutdown(Shutdown::Both);
                    let _ = to.shutdown(Shutdown::Both);
                    return;
                }
            }
        });
    }
}

#[tokio::test]
async fn a_connection_that_is_lost_at_any_moment_loses_and_doubles_nothing() {
    let schema = schema();
    let between = Between::new();
    let store = PostgresStore::open(&between.url(&schema.url), OpenMode::Crawl).unwrap();
    let subject = visited(&store, 1).await;
    // Warmed up, so that the pieces below are those of transactions and of connecting again.
    store.commit(vec![told(subject)]).await.unwrap();
    let mut users = 1;
    let mut outcomes = 1;
    let mut has_cut = 0;
    for pieces in 0..25 {
        between.cut_after(pieces);
        users += 1;
        outcomes += 1;
        let commits = vec![visit(users), told(subject)];
        let reports = store.commit(commits).await.unwrap();
        assert_eq!(reports[0].rows_new, 1);
        has_cut += usize::from(between.has_cut());
        between.cut_after(NEVER);
        let times = "SELECT times FROM outcomes WHERE query = 'profile'";
        assert_eq!(
            number(&store, times).await,
            outcomes,
            "after {pieces} pieces"
        );
        assert_eq!(number(&store, "SELECT count(*) FROM users").await, users);
        assert_eq!(
            number(&store, "SELECT count(*) FROM query_log").await,
            users
        );
    }
    assert!(has_cut > 0, "no connection was cut");
}

#[tokio::test]
async fn questions_are_asked_again_when_the_connection_was_lost() {
    let schema = schema();
    let between = Between::new();
    drop(open(&schema));
    let store = PostgresStore::open(&between.url(&schema.url), OpenMode::Read).unwrap();
    let wanted = store.summary().await.unwrap();
    for pieces in 0..12 {
        between.cut_after(pieces);
        assert_eq!(store.summary().await.unwrap(), wanted);
    }
    assert!(between.has_cut());
}

#[tokio::test]
async fn a_crawl_whose_session_is_ended_goes_on() {
    let schema = schema();
    let store = open(&schema);
    visited(&store, 1).await;
    schema.end_sessions();
    visited(&store, 2).await;
    assert_eq!(number(&store, "SELECT count(*) FROM users").await, 2);
    // It still holds the crawl against others.
    let error = PostgresStore::open(&schema.url, OpenMode::Crawl).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Locked);
}

#[tokio::test]
async fn a_server_that_stays_away_stops_the_crawl_and_loses_nothing() {
    let schema = schema();
    let between = Between::new();
    let url = between.url(&schema.url);
    let patience = Duration::from_millis(300);
    let store = PostgresStore::open_patiently(&url, OpenMode::Crawl, patience).unwrap();
    visited(&store, 1).await;
    between.is_shut.store(true, Ordering::SeqCst);
    between.cut_after(0);
    let error = store.commit(vec![visit(2)]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    // From now on it says the same at once.
    let error = store.commit(vec![visit(2)]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    drop(store);
    let store = open(&schema);
    let users = number(&store, "SELECT count(*) FROM users").await;
    // The server's word was lost, so either is right; no half of it is there.
    assert!((1..=2).contains(&users));
    assert_eq!(
        number(&store, "SELECT count(*) FROM query_log").await,
        users
    );
    visited(&store, 2).await;
    assert_eq!(number(&store, "SELECT count(*) FROM users").await, 2);
}

#[tokio::test]
async fn a_server_that_is_stopped_for_good_ends_the_crawl_with_advice() {
    let server = own();
    let url = server.url(OWNER, "postgres", "crawl");
    let patience = Duration::from_millis(300);
    let store = PostgresStore::open_patiently(&url, OpenMode::Crawl, patience).unwrap();
    visited(&store, 1).await;
    server.stop();
    let error = store.commit(vec![visit(2)]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("check that it runs"), "{error}");
}

#[tokio::test]
async fn commits_that_a_server_has_lost_are_noticed() {
    let schema = schema();
    let store = open(&schema);
    visited(&store, 1).await;
    visited(&store, 2).await;
    // What a crash leaves of a server that does not wait for its disk.
    schema.run("UPDATE rules SET value = '1' WHERE name = 'commits'");
    schema.end_sessions();
    let error = store.commit(vec![visit(3)]).await.unwrap_err();
    let again = store.commit(vec![visit(3)]).await.unwrap_err();
    assert_eq!(again.kind(), StoreErrorKind::Poisoned, "{error}, {again}");
    drop(store);
    visited(&open(&schema), 3).await;
}

#[test]
fn the_folder_of_the_server_is_where_its_socket_is() {
    let socket: PathBuf = shared().socket();
    assert!(socket.exists(), "{}", socket.display());
}
