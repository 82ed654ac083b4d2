//! Transport faults as they appear on the wire, read from bare sockets.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use kittiwake_sim::{Faults, SimConfig};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{AT_US, Sim, now_us};

const STALL_MS: u64 = 120;

/// All that came over a connection, and how it ended.
#[derive(Debug)]
struct Seen {
    bytes: Vec<u8>,
    is_reset: bool,
    elapsed: Duration,
}

impl Seen {
    fn head(&self) -> String {
        let end = self.body_start().unwrap_or(self.bytes.len());
        String::from_utf8(self.bytes[..end].to_vec()).unwrap()
    }

    fn body_start(&self) -> Option<usize> {
        let end = self.bytes.windows(4).position(|part| part == b"\r\n\r\n");
        end.map(|end| end + 4)
    }

    fn body(&self) -> &[u8] {
        self.body_start().map_or(&[], |start| &self.bytes[start..])
    }

    fn status(&self) -> u16 {
        let head = self.head();
        head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn header(&self, name: &str) -> Option<String> {
        let head = self.head();
        let line = head
            .lines()
            .find(|line| line.to_lowercase().starts_with(&format!("{name}: ")))?;
        Some(line.split_once(": ").unwrap().1.to_owned())
    }

    fn length(&self) -> usize {
        self.header("content-length").unwrap().parse().unwrap()
    }

    fn json(&self) -> Option<Value> {
        serde_json::from_slice(self.body()).ok()
    }
}

async fn hostile(stall_ms: u64) -> Sim {
    let mut config = SimConfig::frozen(300, 4, AT_US, now_us());
    config.faults = Faults::Hostile;
    config.stall_ms = stall_ms;
    Sim::start(config).await
}

async fn connect(sim: &Sim, target: &str, connection: &str) -> TcpStream {
    let mut socket = TcpStream::connect(sim.server.address()).await.unwrap();
    ask(&mut socket, target, connection).await;
    socket
}

async fn ask(socket: &mut TcpStream, target: &str, connection: &str) {
    let request = format!("GET {target} HTTP/1.1\r\nhost: sim\r\nconnection: {connection}\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
}

async fn see(sim: &Sim, target: &str) -> Seen {
    let started = Instant::now();
    let mut socket = connect(sim, target, "close").await;
    let mut bytes = Vec::new();
    let is_reset = match socket.read_to_end(&mut bytes).await {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{target}");
            true
        }
    };
    Seen {
        bytes,
        is_reset,
        elapsed: started.elapsed(),
    }
}

/// The fault of the newest call, if it met one.
async fn newest_fault(sim: &Sim) -> Option<Value> {
    let total = sim.get("/_sim/ledger?calls=0").await.json()["total"]
        .as_u64()
        .unwrap();
    let faults = sim.get("/_sim/faults?limit=100000").await.lines();
    faults
        .into_iter()
        .next_back()
        .filter(|fault| fault["call"] == total - 1)
}

/// Whether what was seen is what a fault of that kind looks like.
fn check(kind: &str, seen: &Seen, plain: &Value) {
    let stall = Duration::from_millis(STALL_MS);
    let is_complete = seen.json().as_ref() == Some(plain);
    let length = plain.to_string().len();
    match kind {
        "reset_before_answer" => assert!(seen.is_reset && seen.bytes.is_empty()),
        "reset_in_body" => {
            assert!(seen.is_reset);
            assert!(seen.length() > seen.body().len() && !seen.body().is_empty());
        }
        "stall" => assert!(is_complete && seen.elapsed >= stall),
        "slow_bytes" => assert!(is_complete && seen.elapsed >= stall * 9 / 10),
        "truncated_body" => {
            assert_eq!(seen.header("transfer-encoding").unwrap(), "chunked");
            assert!(seen.body().len() < length && !seen.body().ends_with(b"0\r\n\r\n"));
        }
        "malformed_json" => {
            assert!(seen.json().is_none());
            assert_eq!(seen.length(), seen.body().len());
        }
        "wrong_shape" => {
            let other = seen.json().unwrap();
            assert_ne!(other.is_array(), plain.is_array());
            assert_eq!(seen.status(), 200);
        }
        "html_page" => {
            assert_eq!(seen.status(), 200);
            assert!(seen.header("content-type").unwrap().contains("text/html"));
            assert!(seen.body().starts_with(b"<!DOCTYPE html>"));
        }
        "json_as_html" => {
            assert!(is_complete);
            assert!(seen.header("content-type").unwrap().contains("text/html"));
        }
        "bare_too_many_requests" => {
            assert_eq!(seen.status(), 429);
            assert!(seen.header("retry-after").is_none());
            assert!(seen.header("x-ratelimit-reset").is_none());
        }
        "length_too_large" => assert!(is_complete && seen.length() > seen.body().len()),
        "length_too_small" => assert!(is_complete && seen.length() < seen.body().len()),
        "gzip_garbage" => {
            assert_eq!(seen.header("content-encoding").unwrap(), "gzip");
            assert!(seen.body().starts_with(&[0x1F, 0x8B]));
            assert_eq!(seen.length(), seen.body().len());
        }
        "internal_error" => assert_eq!(seen.status(), 500),
        "bad_gateway" => assert_eq!(seen.status(), 502),
        "unavailable" => {
            assert_eq!(seen.status(), 503);
            assert!(seen.header("retry-after").is_none());
        }
        "unavailable_for_now" => {
            assert_eq!(seen.status(), 503);
            assert!(seen.header("retry-after").unwrap().parse::<u64>().is_ok());
        }
        "redirect_elsewhere" | "redirect_private" | "redirect_loop" => {
            assert_eq!(seen.status(), 302);
            let location = seen.header("location").unwrap();
            let parts: &[&str] = match kind {
                "redirect_elsewhere" => &["https://elsewhere.example/api"],
                "redirect_private" => &["10.0.0.1", "169.254.169.254", "[::1]:1", "127.0.0.1:1"],
                _ => &["http://sim/loop/1"],
            };
            assert!(
                parts.iter().any(|part| location.contains(part)),
                "{location}"
            );
        }
        _ => panic!("{kind} is no transport fault"),
    }
}

#[tokio::test]
async fn each_transport_fault_really_appears_on_the_wire() {
    let sim = hostile(STALL_MS).await;
    let undisturbed = Sim::frozen(300, 4).await;
    let handle = sim.server.seed_handles(1).remove(0);
    let path = format!("/api/v1/accounts/lookup?acct={handle}");
    let plain = undisturbed.get(&path).await.json();
    let mut checked: BTreeMap<String, u32> = BTreeMap::new();
    for number in 0..700 {
        let seen = see(&sim, &format!("{path}&n={number}")).await;
        let Some(fault) = newest_fault(&sim).await else {
            assert_eq!(seen.json().as_ref(), Some(&plain));
            assert!(!seen.is_reset);
            continue;
        };
        assert_eq!(fault["class"], "transport");
        let kind = fault["kind"].as_str().unwrap();
        check(kind, &seen, &plain);
        *checked.entry(kind.to_owned()).or_default() += 1;
        if checked.len() == 20 {
            break;
        }
    }
    assert_eq!(checked.len(), 20, "{checked:?}");
}

/// A target that meets a fault of the given kind when it is asked for the first time, found on a
/// network of its own: the same target meets the same fault on any other with that seed.
async fn target_with(kind: &str) -> String {
    let sim = hostile(0).await;
    let handle = sim.server.seed_handles(1).remove(0);
    for number in 0..2_000 {
        let target = format!("/api/v1/accounts/lookup?acct={handle}&n={number}");
        see(&sim, &target).await;
        if newest_fault(&sim)
            .await
            .is_some_and(|fault| fault["kind"] == kind)
        {
            return target;
        }
    }
    panic!("no target met {kind}");
}

#[tokio::test]
async fn a_stall_sends_headers_and_then_nothing_for_a_while() {
    let target = target_with("stall").await;
    let sim = hostile(3_600_000).await;
    let mut socket = connect(&sim, &target, "close").await;
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(socket.read_u8().await.unwrap());
    }
    assert!(bytes.starts_with(b"HTTP/1.1 200"));
    let more = tokio::time::timeout(Duration::from_millis(150), socket.read_u8()).await;
    assert!(more.is_err(), "a stalled answer went on");
    // Others are served meanwhile.
    assert_eq!(sim.get("/_sim/clock").await.status, 200);
}

#[tokio::test]
async fn a_connection_goes_on_after_a_fault_that_does_not_break_it() {
    let target = target_with("bad_gateway").await;
    let sim = hostile(0).await;
    let mut socket = connect(&sim, &target, "keep-alive").await;
    let mut buffer = vec![0; 4_096];
    let count = socket.read(&mut buffer).await.unwrap();
    assert!(buffer[..count].starts_with(b"HTTP/1.1 502"));
    ask(&mut socket, "/_sim/clock", "close").await;
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).await.unwrap();
    assert!(rest.starts_with(b"HTTP/1.1 200"));
    assert_eq!(
        rest.windows(8).filter(|part| part == b"HTTP/1.1").count(),
        1
    );
}

#[tokio::test]
async fn what_exceeds_a_length_stands_before_the_next_answer() {
    let target = target_with("length_too_small").await;
    let sim = hostile(0).await;
    let mut socket = connect(&sim, &target, "keep-alive").await;
    ask(&mut socket, "/_sim/clock", "close").await;
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).await.unwrap();
    let seen = Seen {
        bytes,
        is_reset: false,
        elapsed: Duration::ZERO,
    };
    let after = &seen.body()[seen.length()..];
    assert!(!after.starts_with(b"HTTP/1.1"));
    assert!(after.windows(8).any(|part| part == b"HTTP/1.1"));
}

#[tokio::test]
async fn a_loop_never_ends_and_is_there_only_with_faults() {
    let sim = hostile(0).await;
    let mut target = "/loop/1".to_owned();
    for _ in 0..10 {
        let reply = sim.get(&target).await;
        assert_eq!(reply.status, 302);
        let location = &reply.headers["location"];
        let next = location[location.find("/loop").unwrap()..].to_owned();
        assert_ne!(next, target);
        target = next;
    }
    let calls = sim.get("/_sim/ledger/calls").await.lines();
    assert!(calls.iter().all(|call| call["fault"] == "redirect_loop"));
    assert_eq!(Sim::frozen(50, 1).await.get("/loop/1").await.status, 404);
}
