//! The byte budget of all bodies in flight.

use std::time::Duration;

use kittiwake_fetch::{FetchConfig, Fetcher, HostTrust, Request};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

use crate::server::{Server, config, get, read_request};

const KIB: usize = 1024;
/// Larger than a slot of the budget, so that each of these bodies has to grow.
const LARGE_BYTES: usize = 700 * KIB;
const FETCHES: usize = 40;

fn body_answer(bytes: usize, chunked: bool) -> Vec<u8> {
    let body = vec![b'x'; bytes];
    if chunked {
        let head = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{bytes:x}\r\n");
        [head.as_bytes(), &body, b"\r\n0\r\n\r\n"].concat()
    } else {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n");
        [head.as_bytes(), &body].concat()
    }
}

fn tight_config() -> FetchConfig {
    FetchConfig {
        body_bytes_max: 1024 * KIB,
        long_body_bytes_max: 1024 * KIB,
        // Six slots of 256 KiB fit at most, and one large body at a time.
        bodies_in_flight_bytes_max: 1536 * KIB,
        per_host_max: FETCHES,
        total_timeout: Duration::from_secs(10),
        idle_timeout: Duration::from_secs(10),
        ..config()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_large_bodies_at_once_all_arrive_within_the_budget() {
    let declared = Server::answering(body_answer(LARGE_BYTES, false), false).await;
    let chunked = Server::answering(body_answer(LARGE_BYTES, true), false).await;
    let small = Server::answering(body_answer(KIB, false), false).await;
    let config = tight_config();
    let budget_bytes = config.bodies_in_flight_bytes_max;
    let fetcher = Fetcher::new(config).unwrap();
    let mut tasks = JoinSet::new();
    for number in 0..FETCHES {
        let (server, bytes) = [
            (&declared, LARGE_BYTES),
            (&chunked, LARGE_BYTES),
            (&small, KIB),
        ][number % 3];
        let (fetcher, url) = (fetcher.clone(), server.url("/"));
        tasks.spawn(async move {
            let response = get(&fetcher, url).await.unwrap();
            assert_eq!(response.body.len(), bytes);
            assert_eq!(response.permit.reserved_bytes(), bytes);
            assert!(fetcher.bodies_in_flight_bytes() <= budget_bytes);
        });
    }
    let all = async { while tasks.join_next().await.transpose().unwrap().is_some() {} };
    tokio::time::timeout(Duration::from_secs(15), all)
        .await
        .expect("a circle of waits");
    assert_eq!(fetcher.bodies_in_flight_bytes(), 0);
}

#[tokio::test]
async fn a_permit_that_is_held_holds_back_the_next_body() {
    let server = Server::answering(body_answer(1024 * KIB, true), false).await;
    let config = FetchConfig {
        total_timeout: Duration::from_millis(500),
        ..tight_config()
    };
    let fetcher = Fetcher::new(config).unwrap();
    let first = get(&fetcher, server.url("/")).await.unwrap();
    assert_eq!(fetcher.bodies_in_flight_bytes(), 1024 * KIB);
    // The wait for memory is bounded, too, and is nobody's fault: asking again is right.
    let error = get(&fetcher, server.url("/")).await.unwrap_err();
    assert!(error.to_string().contains("memory"), "{error}");
    assert_eq!(error.kind(), kittiwake_fetch::FetchErrorKind::Transient);
    drop(first);
    assert_eq!(
        get(&fetcher, server.url("/")).await.unwrap().body.len(),
        1024 * KIB
    );
}

#[tokio::test]
async fn a_body_of_exactly_the_cap_is_taken_and_one_byte_more_is_not() {
    for (bytes, fits) in [(1024 * KIB, true), (1024 * KIB + 1, false)] {
        for chunked in [false, true] {
            let server = Server::answering(body_answer(bytes, chunked), false).await;
            let fetcher = Fetcher::new(config()).unwrap();
            let answer = get(&fetcher, server.url("/")).await;
            assert_eq!(answer.is_ok(), fits, "{bytes} {chunked}: {answer:?}");
        }
    }
}

/// A request may say that its answer may be longer, or has to be shorter, than others.
#[tokio::test]
async fn a_request_has_a_cap_of_its_own_within_that_of_all() {
    let fetcher = Fetcher::new(config()).unwrap();
    for (asked, bytes, fits) in [
        (Some(1536 * KIB), 1536 * KIB, true),
        (Some(1536 * KIB), 1536 * KIB + 1, false),
        (Some(KIB), KIB, true),
        (Some(KIB), KIB + 1, false),
        // The most that anybody may have.
        (Some(usize::MAX), 2048 * KIB, true),
        (Some(usize::MAX), 2048 * KIB + 1, false),
        (None, 1536 * KIB, false),
    ] {
        for chunked in [false, true] {
            let server = Server::answering(body_answer(bytes, chunked), false).await;
            let request = Request {
                body_bytes_max: asked,
                ..Request::get(server.url("/"), HostTrust::Named)
            };
            let answer = fetcher.fetch(request).await;
            assert_eq!(
                answer.is_ok(),
                fits,
                "{asked:?} {bytes} {chunked}: {answer:?}"
            );
        }
    }
    assert_eq!(fetcher.bodies_in_flight_bytes(), 0);
}

/// Whoever may send twice as much may take twice as long; everybody else may not.
#[tokio::test]
async fn a_longer_body_has_longer_to_arrive() {
    let server = Server::start(|mut stream| async move {
        read_request(&mut stream).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        for _piece in 0..12 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if stream.write_all(b"x").await.is_err() {
                return;
            }
        }
    })
    .await;
    let fetcher = Fetcher::new(FetchConfig {
        total_timeout: Duration::from_millis(900),
        ..config()
    })
    .unwrap();
    for (asked, fits) in [(None, false), (Some(2048 * KIB), true)] {
        let request = Request {
            body_bytes_max: asked,
            ..Request::get(server.url("/"), HostTrust::Named)
        };
        let answer = fetcher.fetch(request).await;
        assert_eq!(answer.is_ok(), fits, "{answer:?}");
    }
}

#[tokio::test]
async fn a_cancelled_fetch_gives_its_share_back() {
    let server = Server::start(|stream| async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        drop(stream);
    })
    .await;
    let fetcher = Fetcher::new(config()).unwrap();
    let fetch = get(&fetcher, server.url("/"));
    assert!(
        tokio::time::timeout(Duration::from_millis(50), fetch)
            .await
            .is_err()
    );
    assert_eq!(fetcher.bodies_in_flight_bytes(), 0);
}
