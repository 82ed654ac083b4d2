//! Encrypted connections: who gets one, and with whom.

use super::server::{ENCRYPTED_HOST, OWNER, Schema, Server, encrypted, encrypted_with};
use super::{number, visit, visited};
use kittiwake_store::copy::copy;
use kittiwake_store::postgres::control;
use kittiwake_store::{Ledger, Location, OpenMode, PostgresStore, Store as _};
use kittiwake_store::{StoreError, StoreErrorKind};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::ops::ControlFlow;

const ELSEWHERE: &str = "elsewhere.example.org";

/// A schema, and its URL from afar with these parameters.
fn at(server: &Server, host: &str, parameters: &str) -> (Schema, String) {
    let schema = server.schema();
    let url = server.url_from_afar(OWNER, host, &schema);
    (schema, format!("{url}{parameters}"))
}

fn root(server: &Server, file: &str) -> String {
    format!("&sslrootcert={}", server.file(file))
}

#[track_caller]
fn assert_opens(server: &Server, host: &str, parameters: &str) {
    let (schema, url) = at(server, host, parameters);
    let store = PostgresStore::open(&url, OpenMode::Crawl).unwrap();
    assert!(is_encrypted(&schema), "{parameters}");
    drop(store);
}

#[track_caller]
fn assert_refused(server: &Server, host: &str, parameters: &str, words: &str) -> StoreError {
    let (_schema, url) = at(server, host, parameters);
    let error = PostgresStore::open(&url, OpenMode::Crawl).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
    assert!(error.to_string().contains(words), "{error}");
    error
}

/// Whether all sessions of whoever has the schema open are encrypted.
fn is_encrypted(schema: &Schema) -> bool {
    let (_, rows) = schema.select(&format!(
        "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
         WHERE application_name = '{}'",
        schema.name
    ));
    rows[0][0].as_deref().expect("a session") == "t"
}

#[test]
fn a_server_that_wants_encryption_gets_it() {
    let server = encrypted();
    for parameters in ["", "&sslmode=prefer", "&sslmode=require"] {
        assert_opens(server, ENCRYPTED_HOST, parameters);
        // Nobody looks at the certificate.
        assert_opens(server, ELSEWHERE, parameters);
    }
    let error = assert_refused(
        server,
        ENCRYPTED_HOST,
        "&sslmode=disable",
        "sslmode=disable",
    );
    assert!(error.to_string().contains("only encrypted"), "{error}");
}

#[test]
fn a_certificate_has_to_come_from_the_root() {
    let server = encrypted();
    let (right, wrong) = (root(server, "root.pem"), root(server, "other.pem"));
    for mode in ["prefer", "require", "verify-ca", "verify-full"] {
        let mode = format!("&sslmode={mode}");
        assert_opens(server, ENCRYPTED_HOST, &format!("{mode}{right}"));
        let parameters = format!("{mode}{wrong}");
        assert_refused(server, ENCRYPTED_HOST, &parameters, "none of the roots");
    }
    // The system knows nothing of a root that was made just now.
    for parameters in [
        "&sslmode=verify-ca",
        "&sslmode=verify-full",
        "&sslrootcert=system",
    ] {
        let (_schema, url) = at(server, ENCRYPTED_HOST, parameters);
        let error = PostgresStore::open(&url, OpenMode::Crawl).unwrap_err();
        assert!(error.to_string().contains("sslrootcert=FILE"), "{error}");
    }
}

#[test]
fn a_certificate_has_to_be_that_of_the_host_where_names_are_looked_at() {
    let server = encrypted();
    let root = root(server, "root.pem");
    for host in [ELSEWHERE, "127.0.0.1", "no_name!"] {
        assert_opens(server, host, &format!("&sslmode=verify-ca{root}"));
    }
    for host in [ELSEWHERE, "127.0.0.1"] {
        let parameters = format!("&sslmode=verify-full{root}");
        assert_refused(server, host, &parameters, "not for the host");
    }
    let (_schema, url) = at(server, "no_name!", &format!("&sslmode=verify-full{root}"));
    PostgresStore::open(&url, OpenMode::Crawl).unwrap_err();
}

#[test]
fn a_certificate_that_signs_itself_is_its_own_root() {
    let server = encrypted_with("itself.pem");
    let itself = root(&server, "itself.pem");
    let parameters = format!("&sslmode=verify-full{itself}");
    assert_opens(&server, ENCRYPTED_HOST, &parameters);
    assert_refused(&server, ELSEWHERE, &parameters, "not for the host");
    let parameters = format!("&sslmode=verify-ca{}", root(&server, "root.pem"));
    assert_refused(&server, ENCRYPTED_HOST, &parameters, "cannot be checked");
}

#[test]
fn a_certificate_of_an_old_kind_is_good_enough_where_none_is_checked() {
    let server = encrypted_with("old.pem");
    assert_opens(&server, ENCRYPTED_HOST, "&sslmode=require");
    let parameters = format!("&sslmode=verify-ca{}", root(&server, "root.pem"));
    assert_refused(&server, ENCRYPTED_HOST, &parameters, "version 3");
}

#[test]
fn a_server_that_does_not_encrypt_is_taken_only_as_a_preference() {
    let server = encrypted_with("server.pem");
    server.turn_encryption_off();
    let (schema, url) = at(&server, ENCRYPTED_HOST, "");
    let url = url.replace(OWNER, "plainly");
    schema.run("CREATE ROLE plainly SUPERUSER LOGIN");
    drop(PostgresStore::open(&url, OpenMode::Crawl).unwrap());
    for mode in ["require", "verify-ca", "verify-full"] {
        let root = root(&server, "root.pem");
        let url = format!("{url}&sslmode={mode}{root}");
        let error = PostgresStore::open(&url, OpenMode::Crawl).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
        assert!(error.to_string().contains("does not encrypt"), "{error}");
    }
}

#[test]
fn who_may_only_come_without_encryption_comes_without_unless_it_was_asked_for() {
    let server = encrypted_with("server.pem");
    let (schema, url) = at(&server, ENCRYPTED_HOST, "");
    schema.run("CREATE ROLE plainly SUPERUSER LOGIN");
    let url = url.replace(OWNER, "plainly");
    for parameters in ["", "&sslmode=disable"] {
        let url = format!("{url}{parameters}");
        let store = PostgresStore::open(&url, OpenMode::Crawl).unwrap();
        assert!(!is_encrypted(&schema));
        drop(store);
    }
    for parameters in ["&sslmode=require".to_owned(), root(&server, "root.pem")] {
        let url = format!("{url}{parameters}");
        let error = PostgresStore::open(&url, OpenMode::Crawl).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
    }
}

#[test]
fn a_password_is_tied_to_the_connection() {
    let server = encrypted();
    let (schema, _) = at(server, ENCRYPTED_HOST, "");
    schema.run(
        "DO $$ BEGIN CREATE ROLE with_password LOGIN PASSWORD 'right';
         EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$",
    );
    let url = |password: &str, parameters: &str| {
        let user = format!("with_password:{password}");
        let url = server.url_from_afar(&user, ENCRYPTED_HOST, &schema);
        format!("{url}&channel_binding=require{parameters}")
    };
    for parameters in ["&sslmode=require".to_owned(), root(server, "root.pem")] {
        let error = PostgresStore::open(&url("right", &parameters), OpenMode::Read).unwrap_err();
        // All that is missing is a crawl.
        assert_eq!(error.kind(), StoreErrorKind::Missing, "{error}");
        let error = PostgresStore::open(&url("wr0ng", &parameters), OpenMode::Read).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
        assert!(!error.to_string().contains("wr0ng"), "{error}");
    }
}

#[test]
fn a_file_of_roots_that_is_not_there_is_told() {
    let (_schema, url) = at(encrypted(), ENCRYPTED_HOST, "&sslrootcert=/no/where.pem");
    let error = PostgresStore::open(&url, OpenMode::Crawl).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Missing, "{error}");
    assert!(error.to_string().contains("/no/where.pem"), "{error}");
}

#[tokio::test]
async fn a_crawl_works_over_an_encrypted_connection_as_over_any() {
    let server = encrypted();
    let root = root(server, "root.pem");
    let (schema, url) = at(
        server,
        ENCRYPTED_HOST,
        &format!("&sslmode=verify-full{root}"),
    );
    let store = PostgresStore::open(&url, OpenMode::Crawl).unwrap();
    let reports = store.commit((1..=500).map(visit).collect()).await.unwrap();
    assert_eq!(reports.len(), 500);
    assert!(is_encrypted(&schema));
    let error = PostgresStore::open(&url, OpenMode::Crawl).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Locked, "{error}");
    assert!(control::is_crawled(&url).unwrap());
    // A lost connection is made again, and encrypted again.
    schema.end_sessions();
    visited(&store, 501).await;
    assert!(is_encrypted(&schema));
    assert_eq!(number(&store, "SELECT count(*) FROM users").await, 501);
    assert_eq!(number(&store, "SELECT count(*) FROM query_log").await, 501);
}

#[tokio::test]
async fn a_copy_goes_over_an_encrypted_connection_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| Location::File(folder.path().join(name));
    let crawl = place("a.db").open(OpenMode::Crawl).unwrap();
    crawl
        .commit((1..=2_000).map(visit).collect())
        .await
        .unwrap();
    drop(crawl);
    let (_schema, url) = at(encrypted(), ENCRYPTED_HOST, "&sslmode=require");
    let server = Location::Server(url);
    let whole = |from: &Location, to: &Location| {
        copy(from, to, &mut |_| ControlFlow::Continue(())).unwrap()
    };
    let there = whole(&place("a.db"), &server);
    assert_eq!(whole(&server, &place("b.db")), there);
    let back = place("b.db").open(OpenMode::Read).unwrap();
    assert_eq!(back.summary().await.unwrap().rows["users"], 2_000);
}

/// A server that promises to encrypt and then says something else, once to each who comes.
fn liar(then: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut request = [0; 8];
            let _ = client.read_exact(&mut request);
            let _ = client.write_all(b"S");
            let _ = client.write_all(then);
            // Until the client has given up, so that it hears all of this first.
            let _ = client.shutdown(Shutdown::Write);
            let _ = client.read_to_end(&mut Vec::new());
        }
    });
    port
}

#[test]
fn who_promises_encryption_and_lies_is_left() {
    for (then, kind, words) in [
        (&b""[..], StoreErrorKind::Unreachable, "cannot be reached"),
        (
            b"R\0\0\0\x08\0\0\0\0",
            StoreErrorKind::Denied,
            "do not agree",
        ),
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            StoreErrorKind::Denied,
            "do not agree",
        ),
    ] {
        let port = liar(then);
        for mode in ["require", "verify-full"] {
            let url = format!("postgres://a:s3cret@127.0.0.1:{port}/d?sslmode={mode}");
            let error = PostgresStore::open(&url, OpenMode::Crawl).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(words), "{error}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }
}

#[test]
fn grants_are_shared_over_an_encrypted_connection() {
    let (schema, url) = at(encrypted(), ENCRYPTED_HOST, "&sslmode=require");
    let _ledger = Ledger::open_unsynced(&Location::Server(url)).unwrap();
    assert!(is_encrypted(&schema));
}
