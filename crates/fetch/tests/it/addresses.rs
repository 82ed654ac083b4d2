//! Which hosts may be dialled.

use std::net::IpAddr;
use std::sync::Arc;

use kittiwake_fetch::{
    FetchError, FetchErrorKind, Fetcher, HostResolver, HostTrust, Request, Resolving,
};
use url::Url;

use crate::server::{Server, config, fetcher, get, recording_server};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Knows the same addresses for every name.
#[derive(Debug)]
struct FixedResolver(Vec<IpAddr>);

impl FixedResolver {
    fn new(addresses: &[&str]) -> Arc<Self> {
        Arc::new(Self(
            addresses.iter().map(|text| text.parse().unwrap()).collect(),
        ))
    }
}

impl HostResolver for FixedResolver {
    fn resolve(&self, _host: &str) -> Resolving {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

async fn learnt(fetcher: &Fetcher, url: &str) -> FetchError {
    let request = Request::get(Url::parse(url).unwrap(), HostTrust::Learnt);
    fetcher.fetch(request).await.unwrap_err()
}

#[tokio::test]
async fn a_learnt_host_on_this_machine_is_refused_in_every_spelling() {
    let server = Server::answering(OK, true).await;
    let fetcher = fetcher();
    let port = server.address.port();
    for host in [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "127.255.255.254",
        "0.0.0.0",
        "localhost",
        "LocalHost",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "１２７.0.0.1",
    ] {
        let error = learnt(&fetcher, &format!("http://{host}:{port}/")).await;
        assert_eq!(
            error.kind(),
            FetchErrorKind::AddressRefused,
            "{host}: {error}"
        );
        assert!(
            matches!(error, FetchError::AddressRefused { .. }),
            "{host}: {error}"
        );
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_learnt_host_in_a_private_network_is_refused() {
    let fetcher = fetcher();
    for host in [
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "[fe80::1]",
        "[fd00::1]",
    ] {
        let error = learnt(&fetcher, &format!("https://{host}/latest/meta-data")).await;
        assert_eq!(
            error.kind(),
            FetchErrorKind::AddressRefused,
            "{host}: {error}"
        );
    }
}

#[tokio::test]
async fn a_learnt_name_that_resolves_to_a_private_address_is_refused() {
    let server = Server::answering(OK, true).await;
    let url = format!("http://innocent.example:{}/", server.address.port());
    for answer in [
        &["127.0.0.1"] as &[&str],
        &["::ffff:127.0.0.1"],
        &["10.1.2.3", "::1"],
    ] {
        let resolver = FixedResolver::new(answer);
        let fetcher = Fetcher::with_resolver(config(), resolver).unwrap();
        match learnt(&fetcher, &url).await {
            FetchError::AddressRefused { host, address } => {
                assert_eq!(host, "innocent.example");
                assert_eq!(address.to_string(), answer[0]);
            }
            error => panic!("{error}"),
        }
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_connection_of_a_named_host_never_serves_a_learnt_one() {
    let (server, requests) = recording_server().await;
    let resolver = FixedResolver::new(&["127.0.0.1"]);
    let fetcher = Fetcher::with_resolver(config(), resolver).unwrap();
    let url = format!("http://shared.example:{}/", server.address.port());
    let response = get(&fetcher, Url::parse(&url).unwrap()).await.unwrap();
    assert_eq!(&response.body[..], b"ok");
    // The connection is open and kept for the named host now.
    let error = learnt(&fetcher, &url).await;
    assert_eq!(error.kind(), FetchErrorKind::AddressRefused, "{error}");
    assert_eq!(requests.lock().unwrap().len(), 1);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_named_host_may_be_on_this_machine() {
    let server = Server::answering(OK, true).await;
    let port = server.address.port();
    for host in ["127.0.0.1", "localhost", "2130706433"] {
        let url = Url::parse(&format!("http://{host}:{port}/")).unwrap();
        assert_eq!(get(&fetcher(), url).await.unwrap().status, 200, "{host}");
    }
}

#[tokio::test]
async fn a_name_without_an_address_is_a_host_that_is_down() {
    let fetcher = Fetcher::with_resolver(config(), FixedResolver::new(&[])).unwrap();
    for trust in [HostTrust::Named, HostTrust::Learnt] {
        let url = Url::parse("http://nowhere.example/path?secret=1").unwrap();
        let error = fetcher.fetch(Request::get(url, trust)).await.unwrap_err();
        assert!(matches!(error, FetchError::Dns { .. }), "{error}");
        assert_eq!(error.kind(), FetchErrorKind::HostDown);
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn urls_that_are_not_for_http_are_refused() {
    for url in [
        "ftp://127.0.0.1/x",
        "file:///etc/passwd",
        "data:text/plain,x",
        "unix:/run/x.sock",
        "http://user:hunter2@127.0.0.1/",
        "http://hunter2@127.0.0.1/",
    ] {
        let error = get(&fetcher(), Url::parse(url).unwrap()).await.unwrap_err();
        assert!(
            matches!(error, FetchError::InvalidUrl { .. }),
            "{url}: {error}"
        );
        assert_eq!(error.kind(), FetchErrorKind::Invalid);
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}
