//! A server that answers as a test wants: raw bytes, one connection a call.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Connections that one counterpart serves at the most.
const CONNECTIONS_MAX: usize = 100_000;

/// What a client asked for.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) target: String,
    /// The counterpart's own address, `127.0.0.1:PORT`.
    pub(crate) host: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
}

/// A server on loopback; its thread ends with the process.
pub(crate) struct Counterpart {
    pub(crate) address: String,
    calls: Arc<Mutex<Vec<Call>>>,
    /// Whether it answers by itself what it is.
    is_asked_about: bool,
}

/// What a Mastodon server is asked first.
const ABOUT: &str = "/api/v2/instance";

type Answer = dyn Fn(&Call, &mut TcpStream) -> std::io::Result<()> + Send + Sync;

impl Counterpart {
    pub(crate) fn start(
        answer: impl Fn(&Call, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let host = listener.local_addr().expect("an address").to_string();
        let address = format!("http://{host}");
        let answer: Arc<Answer> = Arc::new(answer);
        let calls: Arc<Mutex<Vec<Call>>> = Arc::default();
        let heard = Arc::clone(&calls);
        std::thread::spawn(move || {
            for connection in listener.incoming().take(CONNECTIONS_MAX) {
                let Ok(connection) = connection else { return };
                let (answer, host, heard) = (Arc::clone(&answer), host.clone(), Arc::clone(&heard));
                std::thread::spawn(move || serve(connection, host, &heard, &*answer));
            }
        });
        Self {
            address,
            calls,
            is_asked_about: false,
        }
    }

    /// One that says of itself that it is a Mastodon server of today; that it was asked is not counted.
    pub(crate) fn mastodon(
        answer: impl Fn(&Call, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let server = Self::start(move |call, stream| match &*call.target {
            ABOUT => reply(stream, "200 OK", "", br#"{"version":"4.5.0"}"#),
            _ => answer(call, stream),
        });
        Self {
            is_asked_about: true,
            ..server
        }
    }

    /// Always the same JSON.
    pub(crate) fn json(body: &'static str) -> Self {
        Self::start(move |_, stream| reply(stream, "200 OK", "", body.as_bytes()))
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        let mut calls = self.calls.lock().expect("calls").clone();
        calls.retain(|call| !self.is_asked_about || call.target != ABOUT);
        calls
    }
}

fn serve(mut stream: TcpStream, host: String, heard: &Mutex<Vec<Call>>, answer: &Answer) {
    let _ = stream.set_write_timeout(Some(Duration::from_secs(20)));
    let Ok(copy) = stream.try_clone() else { return };
    let mut reader = BufReader::new(copy);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        let length = reader.read_line(&mut line).unwrap_or_default();
        let line = line.trim_end();
        if length == 0 || line.is_empty() {
            break;
        }
        lines.push(line.to_owned());
    }
    let headers: Vec<String> = lines.iter().skip(1).cloned().collect();
    let mut body = vec![0; body_length(&headers)];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let mut words = lines.first().map_or("", String::as_str).split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let call = Call {
        method: word(),
        target: word(),
        host,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    heard.lock().expect("calls").push(call.clone());
    let _ = answer(&call, &mut stream);
}

fn body_length(headers: &[String]) -> usize {
    const BODY_BYTES_MAX: usize = 1 << 20;
    let mut pairs = headers.iter().filter_map(|line| line.split_once(':'));
    let length = pairs.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|(_, value)| value.trim().parse().ok());
    length.unwrap_or(0).min(BODY_BYTES_MAX)
}

/// An answer of JSON, unless the headers say otherwise.
pub(crate) fn reply(
    stream: &mut TcpStream,
    status: &str,
    headers: &str,
    body: &[u8],
) -> std::io::Result<()> {
    let kind = if headers.contains("content-type") {
        ""
    } else {
        "content-type: application/json\r\n"
    };
    let head = format!(
        "HTTP/1.1 {status}\r\n{kind}content-length: {}\r\nconnection: close\r\n{headers}\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

/// An account as Mastodon gives it.
pub(crate) fn account(id: u64) -> String {
    format!(
        r#"{{"id":"{id}","uri":"https://h.example/users/{id}","url":"https://h.example/@u{id}","acct":"u{id}","username":"u{id}","display_name":"U{id}","note":"","created_at":"2020-01-01T00:00:00.000Z","followers_count":1,"following_count":1,"statuses_count":0,"bot":false,"locked":false}}"#
    )
}
