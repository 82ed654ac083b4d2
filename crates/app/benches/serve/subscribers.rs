//! Many subscribers in one process: each on its own connection, and as cheap as can be.

use crate::pages::owner;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[derive(Default)]
struct Heard {
    bytes: AtomicU64,
    /// Events that the first of them was sent, who wants everything.
    events: AtomicU64,
}

/// Subscribes so many times, says so, and takes what it is sent until standard input is closed.
pub(crate) fn run(address: &str, kind: &str, count: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let heard = Arc::new(Heard::default());
    runtime.block_on(async {
        for number in 0..count {
            let path = path(kind, number);
            let mut stream = subscribe(address, &path).await;
            if kind == "deaf" && number > 0 {
                // It stays connected, and never listens.
                std::mem::forget(stream);
                continue;
            }
            let heard = Arc::clone(&heard);
            tokio::spawn(async move {
                let mut bytes = vec![0; 64 * 1024];
                while let Ok(length @ 1..) = stream.read(&mut bytes).await {
                    heard.bytes.fetch_add(length as u64, Ordering::Relaxed);
                    if number == 0 {
                        let events = bytes[..length].windows(5).filter(|at| at == b"\nid: ");
                        heard
                            .events
                            .fetch_add(events.count() as u64, Ordering::Relaxed);
                    }
                }
            });
        }
        println!("ready");
        crate::server::input_closed().await;
    });
    println!(
        "{} {}",
        heard.events.load(Ordering::Relaxed),
        heard.bytes.load(Ordering::Relaxed)
    );
}

/// What a subscriber of this number asks for.
fn path(kind: &str, number: u64) -> String {
    match kind {
        _ if number == 0 => "/api/subscribe".to_owned(),
        // The authors of posts follow Zipf's law, so that some of these hear much and most hear little.
        "people" => format!("/api/subscribe?type=status&user={}", owner(number)),
        "words" => format!("/api/subscribe?type=status&word=tag{number:04}"),
        _ => "/api/subscribe".to_owned(),
    }
}

async fn subscribe(address: &str, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut first = [0; 4096];
    let length = stream.read(&mut first).await.unwrap();
    assert!(
        first[..length].starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&first[..length])
    );
    stream
}
