//! Servers that are broken, slow or hostile: each gives an error of the right kind.

use std::io::Write as _;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use kittiwake_fetch::{
    FetchConfig, FetchError, FetchErrorKind, Fetcher, HostTrust, Request, TimeoutPhase,
};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use url::Url;

use crate::server::{Server, config, fetch_of, fetcher, get, read_request};

/// More than any bound in these tests; a server that gets to send this much was not stopped.
const ENDLESS_BYTES: usize = 256 * 1024 * 1024;

fn gzipped(plain: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for piece in plain {
        encoder.write_all(&piece).unwrap();
    }
    encoder.finish().unwrap()
}

fn gzip_answer(compressed: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        compressed.len()
    );
    [head.as_bytes(), compressed].concat()
}

#[tokio::test]
async fn a_compressed_body_is_unfolded() {
    let compressed = gzipped(std::iter::once(b"hello ".repeat(1000)));
    let response = fetch_of(gzip_answer(&compressed)).await.unwrap();
    assert_eq!(&response.body[..], b"hello ".repeat(1000));
    assert_eq!(response.permit.reserved_bytes(), 6 * 1024);
    assert_eq!(response.wire_bytes, None);
}

#[tokio::test]
async fn a_gzip_bomb_is_stopped_at_the_cap() {
    // Small on the wire, eight times the cap when unfolded.
    let compressed = gzipped(std::iter::repeat_n(vec![0; 64 * 1024], 128));
    assert!(compressed.len() < 64 * 1024);
    let server = Server::answering(gzip_answer(&compressed), true).await;
    let fetcher = fetcher();
    let error = get(&fetcher, server.url("/bomb")).await.unwrap_err();
    assert!(
        matches!(
            error,
            FetchError::BodyTooLarge {
                limit: 1_048_576,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(error.kind(), FetchErrorKind::TooLarge);
    assert_eq!(fetcher.bodies_in_flight_bytes(), 0);
}

#[tokio::test]
async fn a_declared_length_above_the_cap_is_refused_unread() {
    let error = fetch_of("HTTP/1.1 200 OK\r\ncontent-length: 100000000000\r\n\r\nx").await;
    assert!(
        matches!(error, Err(FetchError::BodyTooLarge { .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_endless_body_is_stopped_at_the_cap() {
    for head in ["", "transfer-encoding: chunked\r\n"] {
        let server = Server::start(move |mut stream| async move {
            read_request(&mut stream).await;
            let head = format!("HTTP/1.1 200 OK\r\n{head}\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut chunk = b"1000\r\n".to_vec();
            chunk.extend_from_slice(&[b'x'; 0x1000]);
            chunk.extend_from_slice(b"\r\n");
            for _chunk in 0..ENDLESS_BYTES / chunk.len() {
                if stream.write_all(&chunk).await.is_err() {
                    return;
                }
            }
            panic!("nobody stopped the endless body");
        })
        .await;
        let error = get(&fetcher(), server.url("/endless")).await.unwrap_err();
        assert!(matches!(error, FetchError::BodyTooLarge { .. }), "{error}");
    }
}

#[tokio::test]
async fn of_a_body_that_may_be_cut_off_the_beginning_is_taken() {
    // Chunked, declared, and declared as more than there is: nobody waits for the rest.
    let answers = [
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8\r\nabcdefgh\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nabcdefgh".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 100000000000\r\n\r\nabcdefgh".to_owned(),
    ];
    for (answer, length) in answers
        .into_iter()
        .flat_map(|it| [(it.clone(), 5), (it, 8)])
    {
        let server = Server::answering(answer, false).await;
        let fetcher = fetcher();
        let request = Request {
            body_bytes_max: Some(length),
            is_cut_off: true,
            ..Request::get(server.url("/long"), HostTrust::Named)
        };
        let response = fetcher.fetch(request).await.unwrap();
        assert_eq!(&response.body[..], &b"abcdefgh"[..length]);
        drop(response);
        assert_eq!(fetcher.bodies_in_flight_bytes(), 0);
    }
}

#[tokio::test]
async fn a_body_that_ends_early_is_truncated() {
    let compressed = gzipped(std::iter::once(b"hello ".repeat(1000)));
    let half = &compressed[..compressed.len() / 2];
    let answers: [(&str, Vec<u8>); 4] = [
        (
            "length",
            b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort".to_vec(),
        ),
        (
            "chunk",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel".to_vec(),
        ),
        (
            "chunks",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n".to_vec(),
        ),
        ("gzip", gzip_answer(half)),
    ];
    for (name, answer) in answers {
        let error = fetch_of(answer).await.unwrap_err();
        assert!(
            matches!(error, FetchError::Truncated { .. }),
            "{name}: {error}"
        );
        assert_eq!(error.kind(), FetchErrorKind::Transient);
    }
}

#[tokio::test]
async fn a_body_that_is_longer_than_declared_is_cut_and_the_rest_is_no_answer() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\
                  content-length: 4\r\n\r\nevil";
    let server = Server::answering(answer, false).await;
    let fetcher = fetcher();
    for _attempt in 0..2 {
        let response = get(&fetcher, server.url("/")).await.unwrap();
        assert_eq!(&response.body[..], b"hello");
    }
}

#[tokio::test]
async fn a_body_that_is_not_what_its_encoding_says_is_invalid() {
    let error = fetch_of(gzip_answer(b"this is not gzip at all"))
        .await
        .unwrap_err();
    assert!(matches!(error, FetchError::BadEncoding { .. }), "{error}");
    let mut corrupt = gzipped((0..100_u8).map(|seed| vec![seed.wrapping_mul(37); 999]));
    let middle = corrupt.len() / 2;
    corrupt[middle..middle + 20].fill(0xff);
    let error = fetch_of(gzip_answer(&corrupt)).await.unwrap_err();
    assert_eq!(error.kind(), FetchErrorKind::Unreadable, "{error}");
}

#[tokio::test]
async fn broken_chunks_are_not_http() {
    let error =
        fetch_of("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n")
            .await
            .unwrap_err();
    assert!(matches!(error, FetchError::NotHttp { .. }), "{error}");
}

#[tokio::test]
async fn garbage_is_not_http() {
    for garbage in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "<html><body>no head</body></html>\r\n\r\n",
        "\u{0}\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}\u{7}\r\n\r\n",
        "HTTP/1.1 banana\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxy",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
    ] {
        let error = fetch_of(garbage).await.unwrap_err();
        assert!(
            matches!(error, FetchError::NotHttp { .. }),
            "{garbage:?}: {error}"
        );
        assert_eq!(error.kind(), FetchErrorKind::Unreadable);
    }
}

#[tokio::test]
async fn huge_headers_are_too_large() {
    let one_long = format!(
        "HTTP/1.1 200 OK\r\nx: {}\r\n\r\n",
        "y".repeat(2 * 1024 * 1024)
    );
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(5000));
    let above_our_bound = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(65 * 1024));
    for answer in [one_long, many, above_our_bound] {
        let error = fetch_of(answer).await.unwrap_err();
        assert!(
            matches!(error, FetchError::HeadersTooLarge { .. }),
            "{error}"
        );
        assert_eq!(error.kind(), FetchErrorKind::TooLarge);
    }
}

#[tokio::test]
async fn a_connection_that_breaks_off_is_transient() {
    for sent in ["", "HTTP/1.1 200 OK\r\ncontent-le"] {
        let error = fetch_of(sent).await.unwrap_err();
        assert!(
            matches!(error, FetchError::Reset { .. }),
            "{sent:?}: {error}"
        );
        assert_eq!(error.kind(), FetchErrorKind::Transient);
    }
    for sent in ["", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhello"] {
        let server = Server::start(move |mut stream| async move {
            read_request(&mut stream).await;
            stream.write_all(sent.as_bytes()).await.unwrap();
            // Lets the client see the bytes first: a reset may overtake them.
            tokio::time::sleep(Duration::from_millis(50)).await;
            // No lingering: the close is a reset.
            stream.set_zero_linger().unwrap();
        })
        .await;
        let error = get(&fetcher(), server.url("/")).await.unwrap_err();
        assert!(
            matches!(error, FetchError::Reset { .. }),
            "{sent:?}: {error}"
        );
    }
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_a_host_that_is_down() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = Url::parse(&format!("http://{address}/")).unwrap();
    let error = get(&fetcher(), url).await.unwrap_err();
    assert!(matches!(error, FetchError::Connect { .. }), "{error}");
    assert_eq!(error.kind(), FetchErrorKind::HostDown);
}

#[tokio::test]
async fn a_server_without_tls_is_a_tls_error() {
    let server = Server::start(|mut stream| async move {
        let _sent = stream
            .write_all(b"HTTP/1.1 400 Plain HTTP here\r\n\r\n")
            .await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    })
    .await;
    let url = Url::parse(&format!("https://{}/", server.address)).unwrap();
    let error = get(&fetcher(), url).await.unwrap_err();
    assert!(matches!(error, FetchError::TlsError { .. }), "{error}");
    assert_eq!(error.kind(), FetchErrorKind::HostDown);
}

/// The phase of the time-out, which has to come soon after `expected`.
async fn timeout_of(config: FetchConfig, url: Url, expected: Duration) -> TimeoutPhase {
    let fetcher = Fetcher::new(config).unwrap();
    let start = Instant::now();
    let error = get(&fetcher, url).await.unwrap_err();
    let elapsed = start.elapsed();
    assert!(elapsed >= expected, "too soon: {elapsed:?}");
    assert!(
        elapsed < expected + Duration::from_secs(3),
        "too late: {elapsed:?}"
    );
    assert_eq!(error.kind(), FetchErrorKind::Transient);
    assert_eq!(fetcher.bodies_in_flight_bytes(), 0);
    match error {
        FetchError::Timeout { phase, .. } => phase,
        error => panic!("{error}"),
    }
}

fn short_timeouts() -> FetchConfig {
    FetchConfig {
        connect_timeout: Duration::from_millis(200),
        idle_timeout: Duration::from_millis(200),
        total_timeout: Duration::from_millis(600),
        ..config()
    }
}

#[tokio::test]
async fn a_server_that_never_answers_times_out() {
    let server =
        Server::start(
            |mut stream| async move { while read_request(&mut stream).await.is_some() {} },
        )
        .await;
    let config = short_timeouts();
    let expected = config.total_timeout;
    assert_eq!(
        timeout_of(config, server.url("/"), expected).await,
        TimeoutPhase::Total
    );
}

#[tokio::test]
async fn a_handshake_that_never_ends_times_out() {
    let server = Server::start(|stream| async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        drop(stream);
    })
    .await;
    let config = short_timeouts();
    let expected = config.connect_timeout;
    let url = Url::parse(&format!("https://{}/", server.address)).unwrap();
    assert_eq!(
        timeout_of(config, url, expected).await,
        TimeoutPhase::Connect
    );
}

#[tokio::test]
async fn a_body_that_stalls_times_out_as_idle() {
    let server = Server::start(|mut stream| async move {
        read_request(&mut stream).await;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc")
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
    })
    .await;
    let config = short_timeouts();
    let expected = config.idle_timeout;
    assert_eq!(
        timeout_of(config, server.url("/"), expected).await,
        TimeoutPhase::Idle
    );
}

/// Sends the start at once and the rest one byte every 50 ms.
async fn dripping_server(start: &'static str, drip: &'static str) -> Server {
    Server::start(move |mut stream| async move {
        read_request(&mut stream).await;
        stream.write_all(start.as_bytes()).await.unwrap();
        for byte in drip.bytes().cycle().take(1000) {
            if stream.write_all(&[byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
}

#[tokio::test]
async fn bytes_that_drip_for_ever_run_into_the_total_time() {
    for (start, drip) in [
        ("HTTP/1.1 200 OK\r\n\r\n", "x"),
        ("HTTP/1.1 200 OK\r\n", "x: y\r\n"),
        ("", "HTTP/1.1 103 Early Hints\r\n\r\n"),
    ] {
        let server = dripping_server(start, drip).await;
        let config = short_timeouts();
        let expected = config.total_timeout;
        let phase = timeout_of(config, server.url("/"), expected).await;
        assert_eq!(phase, TimeoutPhase::Total, "{start:?} {drip:?}");
    }
}
