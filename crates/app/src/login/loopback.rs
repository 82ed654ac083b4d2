//! The door that a browser comes back to: one page on 127.0.0.1.

use crate::failure::{Failure, code as exit};
use kittiwake_network::auth::{Redirected, read_redirect};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// How long a person may take.
const PATIENCE: Duration = Duration::from_mins(10);
/// How long a browser may take to say what it wants.
const CALLER_PATIENCE: Duration = Duration::from_secs(10);
const HEAD_BYTES_MAX: usize = 16_384;
/// Nobody needs more tries than this.
const CALLERS_MAX: usize = 1_000;

pub(super) struct Loopback {
    listener: TcpListener,
    port: u16,
}

impl Loopback {
    /// Opens the door: at the port that has to be, or at an earlier one if it is free, or at any.
    pub(super) async fn bind(fixed: Option<u16>, earlier: Option<u16>) -> Result<Self, Failure> {
        let bind = |port: u16| TcpListener::bind(("127.0.0.1", port));
        let listener = match (fixed, earlier) {
            (Some(port), _) => bind(port).await,
            (None, Some(port)) => match bind(port).await {
                Ok(listener) => Ok(listener),
                Err(_) => bind(0).await,
            },
            (None, None) => bind(0).await,
        };
        let opened = listener.and_then(|listener| {
            let port = listener.local_addr()?.port();
            Ok(Self { listener, port })
        });
        opened.map_err(|error| {
            let port = fixed.map_or_else(String::new, |port| format!(":{port}"));
            Failure::other(format!(
                "cannot listen on 127.0.0.1{port}: {error}; --paste goes without"
            ))
        })
    }

    pub(super) fn redirect(&self) -> String {
        Self::redirect_to(self.port)
    }

    pub(super) fn redirect_to(port: u16) -> String {
        format!("http://127.0.0.1:{port}/")
    }

    /// Waits for the browser. Callers that bring nothing of a log-in are sent away.
    pub(super) async fn wait(self, state: &str) -> Result<Redirected, Failure> {
        let (found, mut redirected) = mpsc::channel(1);
        let state = state.to_owned();
        let doorkeeper = tokio::spawn(async move {
            for _ in 0..CALLERS_MAX {
                let Ok((caller, _)) = self.listener.accept().await else {
                    continue;
                };
                let (found, state) = (found.clone(), state.clone());
                tokio::spawn(async move {
                    let served = tokio::time::timeout(CALLER_PATIENCE, serve(caller, &state));
                    if let Ok(Ok(Some(redirected))) = served.await {
                        let _ = found.send(redirected).await;
                    }
                });
            }
        });
        let waited = tokio::time::timeout(PATIENCE, redirected.recv()).await;
        doorkeeper.abort();
        match waited {
            Ok(Some(redirected)) => Ok(redirected),
            _ => Err(Failure {
                message: "nobody came back from the browser; begin again: no credential was stored"
                    .to_owned(),
                code: exit::AUTHENTICATION,
            }),
        }
    }
}

/// Reads one request and answers it; what it brought, if it is a redirect.
async fn serve(mut caller: TcpStream, state: &str) -> std::io::Result<Option<Redirected>> {
    let mut head = Vec::new();
    let mut piece = [0; 2_048];
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let count = caller.read(&mut piece).await?;
        if count == 0 || head.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
        head.extend_from_slice(&piece[..count]);
    }
    let redirected = target(&head).map(|query| read_redirect(query, state));
    let redirected = redirected.filter(|it| *it != Redirected::Nothing);
    let (status, words) = match &redirected {
        Some(Redirected::Code(_)) => ("200 OK", "Logged in. You can close this page."),
        Some(_) => ("400 Bad Request", "The log-in failed. See the terminal."),
        None => ("404 Not Found", "Nothing is here."),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{words}",
        words.len()
    );
    caller.write_all(answer.as_bytes()).await?;
    caller.shutdown().await?;
    Ok(redirected)
}

/// The query of a request for our one page.
fn target(head: &[u8]) -> Option<&str> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    if words.next()? != "GET" {
        return None;
    }
    words.next()?.strip_prefix("/?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_page_is_looked_at() {
        assert_eq!(target(b"GET /?code=a HTTP/1.1\r\n\r\n"), Some("code=a"));
        for other in [
            &b"POST /?code=a HTTP/1.1\r\n\r\n"[..],
            b"GET /favicon.ico?code=a HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"\xff\xfe\r\n\r\n",
            b"",
        ] {
            assert_eq!(target(other), None);
        }
    }
}
