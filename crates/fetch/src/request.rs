//! What goes out.

use std::fmt;

use bytes::Bytes;
use url::Url;

use crate::error::SafeUrl;
use kittiwake_model::Secret;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    Get,
    Post,
}

/// Who vouches for the host of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostTrust {
    /// The user named this host: any address may be dialled, loopback included.
    Named,
    /// The host came from an answer: only public addresses are dialled, and the check is made on
    /// the very address that is dialled.
    Learnt,
}

/// One request. `Debug` shows neither the query nor any header value.
#[derive(Clone)]
pub struct Request {
    pub method: Method,
    /// `http` or `https`, without user or password: a secret does not belong in a URL.
    pub url: Url,
    pub headers: Vec<(String, String)>,
    /// Headers such as `authorization`. Whether the host may have them is for the caller to know.
    pub secret_headers: Vec<(String, Secret)>,
    /// Keys that a network wants in the query. They are joined to the URL when it is sent, in the
    /// place of pairs of the same name, and stand nowhere else.
    pub secret_query: Vec<(String, Secret)>,
    pub body: Option<Bytes>,
    /// How long the answer's body may be, where that is not the usual; see
    /// [`crate::FetchConfig::long_body_bytes_max`].
    pub body_bytes_max: Option<usize>,
    /// Whether the beginning of a longer body is wanted, instead of an error.
    pub is_cut_off: bool,
    pub trust: HostTrust,
}

impl Request {
    /// A plain GET.
    pub fn get(url: Url, trust: HostTrust) -> Self {
        Self {
            method: Method::Get,
            url,
            headers: Vec::new(),
            secret_headers: Vec::new(),
            secret_query: Vec::new(),
            body: None,
            body_bytes_max: None,
            is_cut_off: false,
            trust,
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header_names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("Request")
            .field("method", &self.method)
            .field("url", &SafeUrl::from(&self.url))
            .field("header_names", &header_names)
            .field("secret_headers", &self.secret_headers)
            .field("secret_query", &self.secret_query)
            .field("body_bytes", &self.body.as_ref().map(Bytes::len))
            .field("body_bytes_max", &self.body_bytes_max)
            .field("is_cut_off", &self.is_cut_off)
            .field("trust", &self.trust)
            .finish()
    }
}
