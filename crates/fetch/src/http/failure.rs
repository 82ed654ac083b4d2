//! Which [`FetchError`] a failed exchange is. reqwest, hyper, rustls and the system wrap one
//! another's errors, so the whole chain of causes is looked through.

use std::error::Error;
use std::io;

use super::Exchange;
use crate::error::{FetchError, TimeoutPhase, bounded};
use crate::resolve::ResolveError;

/// No chain is longer; a bound in case one is a circle.
const CAUSES_MAX: usize = 16;

impl Exchange<'_> {
    /// From looking up the name to the end of the answer's headers.
    pub(super) fn failed_before_answer(&self, error: &reqwest::Error) -> FetchError {
        let url = self.url.clone();
        let reason = reason(error);
        if let Some(resolve_error) = cause::<ResolveError>(error) {
            return match resolve_error {
                ResolveError::NotFound(_) => FetchError::Dns { url, reason },
                ResolveError::NotPublic(address) => {
                    let host = error.url().and_then(url::Url::host_str).unwrap_or_default();
                    FetchError::AddressRefused {
                        host: bounded(host),
                        address: *address,
                    }
                }
            };
        }
        if error.is_timeout() {
            // Time-outs of the client itself are those of the connection; a time-out of the
            // system (a peer that no longer acknowledges) may come later.
            return if error.is_connect() {
                self.timed_out(TimeoutPhase::Connect)
            } else {
                FetchError::Reset { url, reason }
            };
        }
        if cause::<rustls::Error>(error).is_some() {
            return FetchError::TlsError { url, reason };
        }
        if error.is_connect() {
            return FetchError::Connect { url, reason };
        }
        match cause::<hyper::Error>(error) {
            Some(protocol) if protocol.is_parse_too_large() => self.headers_too_large(),
            Some(protocol) if protocol.is_parse() => FetchError::NotHttp { url, reason },
            _ => FetchError::Reset { url, reason },
        }
    }

    /// From the end of the headers to the end of the body.
    pub(super) fn failed_in_body(&self, error: &reqwest::Error) -> FetchError {
        let url = self.url.clone();
        let reason = reason(error);
        let system_kind = cause::<io::Error>(error).map(io::Error::kind);
        let ended_early = system_kind == Some(io::ErrorKind::UnexpectedEof);
        match cause::<hyper::Error>(error) {
            _ if ended_early => FetchError::Truncated { url },
            Some(protocol) if protocol.is_incomplete_message() => FetchError::Truncated { url },
            // Broken chunk framing.
            Some(_)
                if matches!(
                    system_kind,
                    Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)
                ) =>
            {
                FetchError::NotHttp { url, reason }
            }
            Some(_) => FetchError::Reset { url, reason },
            // The bytes arrived and the decoder refused them.
            None => FetchError::BadEncoding { url, reason },
        }
    }
}

/// The innermost cause in words. The outer ones only say that something failed, and reqwest's own
/// text would show the query.
pub(super) fn reason(error: &reqwest::Error) -> String {
    let innermost = causes(error).last().map(ToString::to_string);
    bounded(&innermost.unwrap_or_else(|| "unknown cause".to_owned()))
}

fn cause<T: Error + 'static>(error: &reqwest::Error) -> Option<&T> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// The causes of an error, outermost first, without the error itself.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |error| inner(*error)).take(CAUSES_MAX)
}

/// `io::Error` does not count the error it wraps among its sources, though it is the one to see.
fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    match wrapped {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}
