//! How many exchanges run at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kittiwake_fetch::{FetchConfig, FetchErrorKind, Fetcher, HostTrust, Request};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

use crate::server::{Server, config, get, read_request};

#[derive(Default)]
struct Load {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// Takes 20 ms for each answer and notes how many it is asked for at once.
async fn loaded_server(load: Arc<Load>) -> Server {
    Server::start(move |mut stream| {
        let load = Arc::clone(&load);
        async move {
            while read_request(&mut stream).await.is_some() {
                let now = load.now.fetch_add(1, Ordering::SeqCst) + 1;
                load.most.fetch_max(now, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(20)).await;
                load.now.fetch_sub(1, Ordering::SeqCst);
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                if stream.write_all(answer).await.is_err() {
                    return;
                }
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_host_has_no_more_exchanges_at_once_than_allowed() {
    let loads = [Arc::new(Load::default()), Arc::new(Load::default())];
    let servers = [
        loaded_server(Arc::clone(&loads[0])).await,
        loaded_server(Arc::clone(&loads[1])).await,
    ];
    let fetcher = Fetcher::new(FetchConfig {
        per_host_max: 3,
        ..config()
    })
    .unwrap();
    let mut tasks = JoinSet::new();
    for number in 0..48_usize {
        let (fetcher, url) = (fetcher.clone(), servers[number % 2].url("/"));
        tasks.spawn(async move { get(&fetcher, url).await.unwrap().status });
    }
    while let Some(status) = tasks.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
    for (load, server) in loads.iter().zip(&servers) {
        assert_eq!(load.most.load(Ordering::SeqCst), 3);
        // Connections are used again. There may be more of them than exchanges at once: a new one is
        // opened while the last one is still on its way back.
        assert!(server.connections() < 12, "{}", server.connections());
    }
}

#[tokio::test]
async fn a_slot_taken_first_makes_the_exchange_start_at_once() {
    let server = loaded_server(Arc::new(Load::default())).await;
    let fetcher = Fetcher::new(FetchConfig {
        per_host_max: 1,
        ..config()
    })
    .unwrap();
    let url = server.url("/");
    let slot = fetcher.slot(&url).await.unwrap();
    let second = tokio::time::timeout(Duration::from_millis(30), fetcher.slot(&url)).await;
    assert!(second.is_err(), "the only place is taken");
    let response = fetcher
        .fetch_in(slot, Request::get(url.clone(), HostTrust::Named))
        .await;
    // The answer holds its bytes, but no longer the place at the host.
    assert_eq!(response.as_ref().unwrap().status, 200);
    fetcher.slot(&url).await.unwrap();
}

#[tokio::test]
async fn a_slot_is_good_for_its_own_host_only() {
    let server = loaded_server(Arc::new(Load::default())).await;
    let other = loaded_server(Arc::new(Load::default())).await;
    let fetcher = Fetcher::new(config()).unwrap();
    let slot = fetcher.slot(&server.url("/")).await.unwrap();
    let request = Request::get(other.url("/"), HostTrust::Named);
    let error = fetcher.fetch_in(slot, request).await.unwrap_err();
    assert_eq!(error.kind(), FetchErrorKind::Invalid, "{error}");
    assert_eq!(other.connections(), 0);
}
