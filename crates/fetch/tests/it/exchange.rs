//! Exchanges that go well.

use std::process::Command;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use kittiwake_fetch::{FetchErrorKind, HostTrust, Method, Request, Secret};
use tokio::io::AsyncWriteExt;

use crate::server::{Server, fetch_of, fetcher, get, read_request, recording_server};

#[tokio::test]
async fn an_answer_comes_back_whole() {
    let response =
        fetch_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nLink: <a>\r\nlink: <b>\r\n\r\nhello")
            .await
            .unwrap();
    assert_eq!(response.status, 200);
    assert_eq!(response.headers.get("link"), Some("<a>"));
    assert_eq!(response.headers.get_all("Link").count(), 2);
    assert_eq!(&response.body[..], b"hello");
    assert_eq!(response.wire_bytes, Some(5));
}

#[tokio::test]
async fn error_statuses_are_answers() {
    for status in [304_u16, 404, 429, 503] {
        let answer = format!("HTTP/1.1 {status} Whatever\r\nretry-after: 7\r\n\r\n");
        let response = fetch_of(answer).await.unwrap();
        assert_eq!(
            (response.status, response.headers.get("retry-after")),
            (status, Some("7"))
        );
        assert!(response.body.is_empty());
    }
}

#[tokio::test]
async fn an_answer_without_body_may_claim_an_encoding() {
    for head in [
        "304 Not Modified",
        "204 No Content",
        "200 OK\r\ncontent-length: 0",
    ] {
        let answer = format!("HTTP/1.1 {head}\r\ncontent-encoding: gzip\r\n\r\n");
        let response = fetch_of(answer).await.unwrap();
        assert!(response.body.is_empty(), "{head}");
    }
}

#[tokio::test]
async fn http_1_0_is_understood() {
    let response = fetch_of("HTTP/1.0 200 OK\r\nserver: old\r\n\r\nuntil the end")
        .await
        .unwrap();
    assert_eq!(&response.body[..], b"until the end");
    assert_eq!(response.wire_bytes, None);
}

#[tokio::test]
async fn redirects_are_returned_and_not_followed() {
    for status in [301_u16, 302, 303, 307, 308] {
        let target = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", true).await;
        let location = target.url("/target");
        let answer =
            format!("HTTP/1.1 {status} Go\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let response = fetch_of(answer).await.unwrap();
        assert_eq!(response.status, status);
        assert_eq!(response.headers.get("location"), Some(location.as_str()));
        assert_eq!(target.connections(), 0);
    }
}

#[tokio::test]
async fn a_request_arrives_as_it_was_built() {
    let (server, requests) = recording_server().await;
    let request = Request {
        method: Method::Post,
        url: server.url("/api/v1/x?id[]=1&id[]=2#fragment"),
        headers: vec![
            ("Accept".to_owned(), "application/json".to_owned()),
            ("X-Both".to_owned(), "1".to_owned()),
            ("X-Both".to_owned(), "2".to_owned()),
        ],
        secret_headers: Vec::new(),
        secret_query: Vec::new(),
        body: Some(Bytes::from_static(b"{\"a\":1}")),
        body_bytes_max: None,
        is_cut_off: false,
        trust: HostTrust::Named,
    };
    fetcher().fetch(request).await.unwrap();
    let requests = requests.lock().unwrap();
    let [received] = &requests[..] else {
        panic!("{requests:?}")
    };
    assert!(
        received.starts_with("POST /api/v1/x?id[]=1&id[]=2 HTTP/1.1\r\n"),
        "{received}"
    );
    assert!(received.ends_with("\r\n\r\n{\"a\":1}"), "{received}");
    for line in [
        "user-agent: kittiwake-test",
        "accept: application/json",
        "x-both: 1",
        "x-both: 2",
        "content-length: 7",
    ] {
        assert!(
            received
                .lines()
                .any(|found| found.eq_ignore_ascii_case(line)),
            "{line}"
        );
    }
    for absent in ["referer", "cookie", "authorization", "*/*"] {
        assert!(!received.contains(absent), "{absent}: {received}");
    }
}

#[tokio::test]
async fn a_secret_reaches_the_server_and_nothing_else() {
    const VALUE: &str = "Bearer s3cr3t-t0k3n";
    let (server, requests) = recording_server().await;
    let request = |url| Request {
        secret_headers: vec![("authorization".to_owned(), Secret::new(VALUE))],
        secret_query: vec![("key".to_owned(), Secret::new(VALUE))],
        ..Request::get(url, HostTrust::Named)
    };
    let fetcher = fetcher();
    let sent = request(server.url("/me?access_token=qu3ry"));
    let mut texts = vec![format!("{sent:?}"), format!("{fetcher:?}")];
    let response = fetcher.fetch(sent).await.unwrap();
    texts.push(format!("{response:?}"));
    assert!(requests.lock().unwrap()[0].contains(VALUE));

    let broken = Server::answering("garbage\r\n\r\n", true).await;
    let error = fetcher
        .fetch(request(broken.url("/me?access_token=qu3ry")))
        .await
        .unwrap_err();
    texts.extend([format!("{error}"), format!("{error:?}")]);
    let malformed = Request {
        secret_headers: vec![("authorization".to_owned(), Secret::new("s3cr3t\r\nx: y"))],
        ..Request::get(server.url("/"), HostTrust::Named)
    };
    let error = fetcher.fetch(malformed).await.unwrap_err();
    texts.extend([format!("{error}"), format!("{error:?}")]);

    for text in texts {
        assert!(
            !text.contains("s3cr3t") && !text.contains("qu3ry"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn connections_are_kept_and_used_again() {
    let (server, requests) = recording_server().await;
    let fetcher = fetcher();
    for path in ["/1", "/2", "/3"] {
        get(&fetcher, server.url(path)).await.unwrap();
    }
    assert_eq!(requests.lock().unwrap().len(), 3);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn one_call_is_one_request_also_when_the_kept_connection_dies() {
    // Answers once per connection and closes when the second request comes.
    let requests = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&requests);
    let server = Server::start(move |mut stream| {
        let recorded = Arc::clone(&recorded);
        async move {
            for answer in ["HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", ""] {
                let Some(request) = read_request(&mut stream).await else {
                    return;
                };
                recorded.lock().unwrap().push(request);
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    let fetcher = fetcher();
    get(&fetcher, server.url("/1")).await.unwrap();
    get(&fetcher, server.url("/2")).await.unwrap_err();
    assert_eq!(requests.lock().unwrap().len(), 2);
}

/// Runs another test of this file in a process with other environment variables.
fn passes_with_environment(test: &str, variables: &[(&str, &str)]) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("exchange::{test}")])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{printed}"
    );
}

#[test]
fn a_proxy_in_the_environment_is_not_used() {
    // Nothing listens on the discard port.
    let dead = "http://127.0.0.1:9";
    let variables = [
        ("http_proxy", dead),
        ("HTTP_PROXY", dead),
        ("ALL_PROXY", dead),
        ("NO_PROXY", ""),
    ];
    passes_with_environment("an_answer_comes_back_whole", &variables);
}

#[test]
fn plain_http_works_on_a_machine_without_root_certificates() {
    let variables = [
        ("SSL_CERT_FILE", "/nonexistent"),
        ("SSL_CERT_DIR", "/nonexistent"),
    ];
    passes_with_environment("an_answer_comes_back_whole", &variables);
}

#[tokio::test]
async fn headers_that_would_break_the_framing_are_refused() {
    let (server, requests) = recording_server().await;
    for (name, value) in [
        ("Transfer-Encoding", "chunked"),
        ("content-length", "0"),
        ("Host", "other.example"),
        ("connection", "upgrade"),
        ("bad name", "x"),
        ("x-split", "a\r\nb: c"),
        ("x-null", "a\0b"),
    ] {
        let request = Request {
            headers: vec![(name.to_owned(), value.to_owned())],
            ..Request::get(server.url("/"), HostTrust::Named)
        };
        let error = fetcher().fetch(request).await.unwrap_err();
        assert_eq!(error.kind(), FetchErrorKind::Invalid, "{error}");
    }
    assert!(requests.lock().unwrap().is_empty());
}
