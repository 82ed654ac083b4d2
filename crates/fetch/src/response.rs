//! What comes back.

use std::fmt;

use bytes::Bytes;

use crate::bodies::BodyPermit;

/// An answer, whole and within bounds. A redirect or an error status is an answer like any other.
/// `Debug` shows neither header values nor the body.
pub struct Response {
    pub status: u16,
    pub headers: Headers,
    /// After decompression.
    pub body: Bytes,
    /// Length of the body on the wire; known where the server declared it and did not compress.
    pub wire_bytes: Option<u64>,
    /// The body's share of the byte budget. Keep it as long as the body or anything cut from it,
    /// and never while waiting for another exchange: that exchange may need the share.
    pub permit: BodyPermit,
}

impl fmt::Debug for Response {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Response")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .field("wire_bytes", &self.wire_bytes)
            .finish_non_exhaustive()
    }
}

/// The headers of an answer in the order they came, names in lower case. Bytes that are not UTF-8
/// are replaced. `Debug` shows names only: a value may be a session cookie.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(Box<str>, Box<str>)>);

impl Headers {
    /// The first value of a header. The name may be in any case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// All values of a header that may come several times, such as `link`.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.iter()
            .filter(move |(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> FromIterator<(&'a str, &'a [u8])> for Headers {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a [u8])>>(pairs: I) -> Self {
        let header = |(name, value): (&str, &[u8])| {
            (
                name.to_ascii_lowercase().into(),
                String::from_utf8_lossy(value).into(),
            )
        };
        Self(pairs.into_iter().map(header).collect())
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_list()
            .entries(self.iter().map(|(name, _)| name))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_found_in_any_case_and_show_no_values() {
        let pairs: [(&str, &[u8]); 3] = [
            ("Link", b"<a>"),
            ("link", b"<b>"),
            ("set-cookie", b"session=\xffhunter2"),
        ];
        let headers: Headers = pairs.into_iter().collect();
        assert_eq!(headers.get("LINK"), Some("<a>"));
        assert_eq!(headers.get_all("link").collect::<Vec<_>>(), ["<a>", "<b>"]);
        assert_eq!(headers.get("set-cookie"), Some("session=\u{fffd}hunter2"));
        assert_eq!(headers.get("etag"), None);
        assert_eq!(headers.len(), 3);
        assert_eq!(format!("{headers:?}"), r#"["link", "link", "set-cookie"]"#);
    }
}
