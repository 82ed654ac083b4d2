//! What a transport fault puts on the wire.

use std::time::Duration;

use super::Kind;
use crate::limits::Header;
use crate::wire::{Ending, Script, Step};
use crate::world::dice::{Dice, Purpose};

/// The data before a reset need a moment to arrive: what is still under way is lost with it.
const BEFORE_RESET: Duration = Duration::from_millis(25);
/// A slow body comes in so many pieces.
const SLOW_PIECES: usize = 20;
const RETRY_AFTER_S: u64 = 1;
const PRIVATE_PLACES: [&str; 4] = [
    "http://10.0.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::1]:1/",
    "http://127.0.0.1:1/",
];
const BLOCK_PAGE: &str = "<!DOCTYPE html><html><head><title>Just a moment</title></head>\
    <body><h1>Checking that you are a person</h1></body></html>";
const ERROR_PAGE: &str = "<html><body><h1>Something went wrong</h1></body></html>";
const JSON: &str = "application/json; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

/// What the call would have been told, and what scripts are made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told<'a> {
    pub(crate) status: u16,
    /// All headers but those of type and length.
    pub(crate) headers: &'a [Header],
    pub(crate) body: &'a [u8],
    /// As sent by the caller.
    pub(crate) target: &'a str,
    pub(crate) host: &'a str,
    pub(crate) stall: Duration,
    pub(crate) seed: u64,
}

/// The script of a fault and the status that it shows, 0 if it shows none.
pub(crate) fn script(kind: Kind, told: Told<'_>) -> (Script, u16) {
    let (status, steps, ending) = match kind {
        Kind::ResetBeforeAnswer => (0, Vec::new(), Ending::Reset),
        Kind::InternalError | Kind::BadGateway | Kind::Unavailable | Kind::UnavailableForNow => {
            server_error(kind)
        }
        Kind::BareTooManyRequests => whole(429, &[], JSON, b""),
        Kind::HtmlPage => whole(200, &[], HTML, BLOCK_PAGE.as_bytes()),
        Kind::RedirectElsewhere => redirect(format!("https://elsewhere.example{}", told.target)),
        Kind::RedirectPrivate => {
            let number = super::plan::target_number(told.target);
            let mut dice = Dice::new(told.seed, Purpose::TransportFault, number, u64::MAX);
            redirect(dice.pick(&PRIVATE_PLACES).to_owned())
        }
        Kind::RedirectLoop => redirect(format!("http://{}/loop/1", told.host)),
        Kind::JsonAsHtml => whole(told.status, told.headers, HTML, told.body),
        Kind::MalformedJson => whole(told.status, told.headers, JSON, &told.malformed()),
        Kind::WrongShape => whole(told.status, told.headers, JSON, told.other_shape()),
        _ => told.broken_body(kind),
    };
    let script = Script {
        steps: steps.into(),
        ending,
        stay: None,
    };
    (script, status)
}

type Scene = (u16, Vec<Step>, Ending);

/// A well-formed answer.
fn whole(status: u16, headers: &[Header], content_type: &str, body: &[u8]) -> Scene {
    let mut bytes = head(status, headers, content_type, Some(body.len()));
    bytes.extend_from_slice(body);
    (status, vec![Step::Send(bytes)], Ending::KeepOpen)
}

fn server_error(kind: Kind) -> Scene {
    let status = match kind {
        Kind::InternalError => 500,
        Kind::BadGateway => 502,
        _ => 503,
    };
    let retry_after = [("retry-after".into(), RETRY_AFTER_S.to_string())];
    let headers = if kind == Kind::UnavailableForNow {
        &retry_after[..]
    } else {
        &[]
    };
    whole(status, headers, HTML, ERROR_PAGE.as_bytes())
}

fn redirect(location: String) -> Scene {
    whole(302, &[("location".into(), location)], HTML, b"")
}

impl Told<'_> {
    /// Answers that begin well.
    fn broken_body(&self, kind: Kind) -> Scene {
        let body = self.body;
        let half = body.len() / 2;
        let head = |length| head(self.status, self.headers, JSON, length);
        let joined = |mut head: Vec<u8>, body: &[u8]| {
            head.extend_from_slice(body);
            Step::Send(head)
        };
        let (steps, ending) = match kind {
            Kind::ResetInBody => (
                vec![
                    joined(head(Some(body.len())), &body[..half]),
                    Step::Wait(BEFORE_RESET),
                ],
                Ending::Reset,
            ),
            Kind::Stall => (
                vec![
                    Step::Send(head(Some(body.len()))),
                    Step::Wait(self.stall),
                    Step::Send(body.to_vec()),
                ],
                Ending::KeepOpen,
            ),
            Kind::SlowBytes => (self.slowly(head(Some(body.len()))), Ending::KeepOpen),
            Kind::TruncatedBody => {
                let mut bytes = head(None);
                bytes.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
                (vec![joined(bytes, &body[..half])], Ending::Close)
            }
            Kind::LengthTooLarge => (
                vec![joined(head(Some(body.len() + 100)), body)],
                Ending::Close,
            ),
            // What is left over stands at the beginning of the next answer.
            Kind::LengthTooSmall => (vec![joined(head(Some(half)), body)], Ending::KeepOpen),
            _ => (
                vec![joined(self.gzip_head(), &self.garbage())],
                Ending::KeepOpen,
            ),
        };
        (self.status, steps, ending)
    }

    fn slowly(&self, head: Vec<u8>) -> Vec<Step> {
        let piece_length = self.body.len().div_ceil(SLOW_PIECES).max(1);
        let mut steps = vec![Step::Send(head)];
        for piece in self.body.chunks(piece_length) {
            steps.push(Step::Wait(self.stall / SLOW_PIECES as u32));
            steps.push(Step::Send(piece.to_vec()));
        }
        steps
    }

    fn gzip_head(&self) -> Vec<u8> {
        let mut headers = self.headers.to_vec();
        headers.push(("content-encoding".into(), "gzip".to_owned()));
        head(self.status, &headers, JSON, Some(self.garbage().len()))
    }

    /// Begins like gzip.
    fn garbage(&self) -> Vec<u8> {
        let mut bytes = vec![0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3];
        bytes.extend_from_slice(self.body);
        bytes
    }

    fn malformed(&self) -> Vec<u8> {
        let mut bytes = self.body[..self.body.len() * 2 / 3].to_vec();
        // Whatever stands before it, this ends no JSON.
        bytes.extend_from_slice(b"\x01}{");
        bytes
    }

    /// Where a list was due an object, and the other way round. Never a list of nothing, which
    /// would be an answer.
    const fn other_shape(&self) -> &'static [u8] {
        match self.body.first() {
            Some(b'[') => br#"{"result":{"items":[{"number":1}]},"more":false}"#,
            _ => br#"[[1,2],["three"]]"#,
        }
    }
}

fn head(status: u16, headers: &[Header], content_type: &str, length: Option<usize>) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    let mut line = |name: &str, value: &str| {
        head.extend([name, ": ", value, "\r\n"]);
    };
    line("content-type", content_type);
    for (name, value) in headers {
        line(name, value);
    }
    match length {
        Some(length) => line("content-length", &length.to_string()),
        None => line("transfer-encoding", "chunked"),
    }
    head.push_str("\r\n");
    head.into_bytes()
}

const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        302 => "Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Answer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(body: &[u8]) -> Told<'_> {
        Told {
            status: 200,
            headers: &[],
            body,
            target: "/api/v1/accounts/1",
            host: "127.0.0.1:1",
            stall: Duration::from_millis(400),
            seed: 1,
        }
    }

    #[test]
    fn no_body_is_too_short_for_any_fault() {
        for body in [&b""[..], b"[", b"[]", b"{\"a\":1}"] {
            for kind in Kind::TRANSPORT {
                let (script, status) = script(kind, told(body));
                assert_eq!(status == 0, script.steps.is_empty(), "{kind:?}");
            }
        }
    }

    #[test]
    fn malformed_is_never_json_and_the_other_shape_always() {
        for body in [&b"[]"[..], b"null", b"1", b"{\"a\":[1,2,3]}", b"\"text\""] {
            let parsed: Result<serde_json::Value, _> =
                serde_json::from_slice(&told(body).malformed());
            assert!(parsed.is_err());
            let other: serde_json::Value =
                serde_json::from_slice(told(body).other_shape()).unwrap();
            assert_ne!(other.is_array(), body.starts_with(b"["));
        }
    }
}
