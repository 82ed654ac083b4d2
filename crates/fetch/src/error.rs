//! What can go wrong in one exchange, in words that are safe to print.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use url::Url;

/// Longest piece of foreign text (a path, a cause) that gets into a message.
const TEXT_CHARS_MAX: usize = 200;

/// Why an exchange gave no answer. No variant holds a query value, a user name, a password or a
/// header value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    #[error("{url}: {phase} took longer than {} ms; try again later", limit.as_millis())]
    Timeout {
        url: SafeUrl,
        phase: TimeoutPhase,
        limit: Duration,
    },

    #[error("{url}: no connection ({reason}); check that the host is up and the port is right")]
    Connect { url: SafeUrl, reason: String },

    #[error("{url}: the host name has no address ({reason}); check its spelling and the network")]
    Dns { url: SafeUrl, reason: String },

    #[error(
        "{host} is at {address}, which is not a public address; only a host named by the user may \
         be there: name it on the command line if it is meant"
    )]
    AddressRefused { host: String, address: IpAddr },

    #[error("{url}: the body is larger than {limit} bytes; ask for smaller pages")]
    BodyTooLarge { url: SafeUrl, limit: usize },

    #[error("{url}: the headers are larger than {limit} bytes or too many; the answer was dropped")]
    HeadersTooLarge { url: SafeUrl, limit: usize },

    #[error("{url}: the body ended early; try again")]
    Truncated { url: SafeUrl },

    #[error("{url}: the connection broke off ({reason}); try again")]
    Reset { url: SafeUrl, reason: String },

    #[error("{url}: no secure connection ({reason}); check the certificate and the scheme")]
    TlsError { url: SafeUrl, reason: String },

    #[error("{url}: the answer is not http ({reason}); check the host and the port")]
    NotHttp { url: SafeUrl, reason: String },

    #[error("{url}: the body cannot be decompressed ({reason}); the answer was dropped")]
    BadEncoding { url: SafeUrl, reason: String },

    #[error("{url}: {reason}")]
    InvalidUrl { url: SafeUrl, reason: &'static str },

    #[error("request header {name:?}: {reason}")]
    InvalidHeader { name: String, reason: &'static str },

    #[error("the http client cannot be set up: {reason}")]
    Setup { reason: String },
}

/// What a caller does about a [`FetchError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FetchErrorKind {
    /// No connection to the host can be had (name, refusal, certificate): leave the whole host
    /// alone for a while.
    HostDown,
    /// This exchange failed and the next may not (time-outs, resets, a truncated body).
    Transient,
    /// The host is not at a public address and the user did not name it: do not ask again.
    AddressRefused,
    /// Body or headers above the limit: asking again gives the same.
    TooLarge,
    /// The answer cannot be read; whether the next can is not known.
    Unreadable,
    /// Our request makes no sense: asking again gives the same.
    Invalid,
}

impl FetchError {
    pub fn kind(&self) -> FetchErrorKind {
        match self {
            Self::Dns { .. } | Self::Connect { .. } | Self::TlsError { .. } => {
                FetchErrorKind::HostDown
            }
            Self::Timeout { .. } | Self::Truncated { .. } | Self::Reset { .. } => {
                FetchErrorKind::Transient
            }
            Self::AddressRefused { .. } => FetchErrorKind::AddressRefused,
            Self::BodyTooLarge { .. } | Self::HeadersTooLarge { .. } => FetchErrorKind::TooLarge,
            Self::NotHttp { .. } | Self::BadEncoding { .. } => FetchErrorKind::Unreadable,
            Self::InvalidUrl { .. } | Self::InvalidHeader { .. } | Self::Setup { .. } => {
                FetchErrorKind::Invalid
            }
        }
    }
}

/// Which wait ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeoutPhase {
    /// Name, TCP and TLS together.
    Connect,
    /// The gap between two pieces of a body.
    Idle,
    /// The whole exchange.
    Total,
    /// The wait for room in the byte budget, for a body that outgrew its slot.
    Memory,
}

impl fmt::Display for TimeoutPhase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Connect => "connecting",
            Self::Idle => "waiting for the next bytes",
            Self::Total => "the whole exchange",
            Self::Memory => "waiting for memory that other bodies hold",
        })
    }
}

/// A URL without what may be secret: scheme, host, port and a bounded path; no user, no query.
#[derive(Clone, PartialEq, Eq)]
pub struct SafeUrl(Box<str>);

impl SafeUrl {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&Url> for SafeUrl {
    fn from(url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default();
        let port = url
            .port()
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        // A URL without a host (`mailto:`, `data:`) may carry anything in its path.
        let path = if url.has_host() { url.path() } else { "" };
        let text = format!("{}://{host}{port}{path}", url.scheme());
        Self(bounded(&text).into())
    }
}

impl fmt::Display for SafeUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for SafeUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Foreign text made fit for one log line: no control characters, bounded length.
pub(crate) fn bounded(text: &str) -> String {
    let mut bounded: String = text
        .chars()
        .take(TEXT_CHARS_MAX)
        .map(|character| {
            if character.is_control() {
                '\u{fffd}'
            } else {
                character
            }
        })
        .collect();
    if text.chars().nth(TEXT_CHARS_MAX).is_some() {
        bounded.push('…');
    }
    bounded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn safe(url: &str) -> String {
        SafeUrl::from(&Url::parse(url).unwrap()).to_string()
    }

    #[test]
    fn a_safe_url_has_neither_user_nor_query_nor_fragment() {
        assert_eq!(
            safe("https://me:pw@a.example:8443/p/q?token=s#f"),
            "https://a.example:8443/p/q"
        );
        assert_eq!(safe("http://[::1]:80/"), "http://[::1]/");
        assert_eq!(safe("data:text/plain,secret"), "data://");
    }

    #[test]
    fn foreign_text_is_bounded_and_has_no_control_characters() {
        assert_eq!(bounded("a\nb\u{1b}[1m"), "a\u{fffd}b\u{fffd}[1m");
        assert_eq!(
            bounded(&"é".repeat(10_000)).chars().count(),
            TEXT_CHARS_MAX + 1
        );
    }
}
