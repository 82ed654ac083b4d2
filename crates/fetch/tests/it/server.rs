//! A server on loopback that does what the test says with each connection.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kittiwake_fetch::{FetchConfig, FetchError, Fetcher, HostTrust, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use url::Url;

/// No server lives longer, whatever the test does.
const SERVER_LIFETIME: Duration = Duration::from_secs(20);
const REQUEST_BYTES_MAX: usize = 64 * 1024;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Server {
    /// Calls `handle` with each connection.
    pub(crate) async fn start<H, F>(handle: H) -> Self
    where
        H: Fn(TcpStream) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        let accept = async move {
            while let Ok((stream, _peer)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(tokio::time::timeout(SERVER_LIFETIME, handle(stream)));
            }
        };
        let task = tokio::spawn(async move {
            let _end = tokio::time::timeout(SERVER_LIFETIME, accept).await;
        });
        Self {
            address,
            connections,
            task,
        }
    }

    /// Answers every request on every connection with the same bytes, then closes if told to.
    pub(crate) async fn answering(answer: impl Into<Vec<u8>>, close: bool) -> Self {
        let answer = Arc::new(answer.into());
        Self::start(move |mut stream| {
            let answer = Arc::clone(&answer);
            async move {
                while read_request(&mut stream).await.is_some() {
                    if stream.write_all(&answer).await.is_err() || close {
                        break;
                    }
                }
            }
        })
        .await
    }

    pub(crate) fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://{}{path}", self.address)).unwrap()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A server that remembers what it was asked.
pub(crate) async fn recording_server() -> (Server, Arc<Mutex<Vec<String>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&requests);
    let server = Server::start(move |mut stream| {
        let recorded = Arc::clone(&recorded);
        async move {
            while let Some(request) = read_request(&mut stream).await {
                recorded.lock().unwrap().push(request);
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                if stream.write_all(answer).await.is_err() {
                    break;
                }
            }
        }
    })
    .await;
    (server, requests)
}

/// The head of the next request and its body, if it declares one; none when the peer is gone.
pub(crate) async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut received = Vec::new();
    while received.len() < REQUEST_BYTES_MAX {
        let mut byte = [0];
        stream.read_exact(&mut byte).await.ok()?;
        received.push(byte[0]);
        if received.ends_with(b"\r\n\r\n") {
            break;
        }
    }
    let head = String::from_utf8(received).unwrap();
    let length = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, length)| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(head + &String::from_utf8(body).unwrap())
}

/// Short time-outs and small bounds.
pub(crate) fn config() -> FetchConfig {
    FetchConfig {
        user_agent: "kittiwake-test".to_owned(),
        connect_timeout: Duration::from_secs(2),
        total_timeout: Duration::from_secs(5),
        idle_timeout: Duration::from_secs(2),
        body_bytes_max: 1024 * 1024,
        long_body_bytes_max: 2 * 1024 * 1024,
        bodies_in_flight_bytes_max: 4 * 1024 * 1024,
        ..FetchConfig::default()
    }
}

pub(crate) fn fetcher() -> Fetcher {
    Fetcher::new(config()).unwrap()
}

pub(crate) async fn get(fetcher: &Fetcher, url: Url) -> Result<Response, FetchError> {
    fetcher.fetch(Request::get(url, HostTrust::Named)).await
}

/// What a server that sends these bytes and closes leads to.
pub(crate) async fn fetch_of(answer: impl Into<Vec<u8>>) -> Result<Response, FetchError> {
    let server = Server::answering(answer, true).await;
    get(&fetcher(), server.url("/page")).await
}
