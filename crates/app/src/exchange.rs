//! The calls of a log-in: they hold secrets, are made once, and nothing of them is shown.

use bytes::Bytes;
use kittiwake_fetch::{FetchErrorKind, Fetcher, HostTrust, Method, Request};
use kittiwake_network::auth::{AuthCall, AuthError, Secrets};

/// Sends a call; status and body of the answer.
pub(crate) async fn send(fetcher: &Fetcher, call: &AuthCall) -> Result<(u16, Bytes), AuthError> {
    let body = call.body.as_ref();
    let request = Request {
        method: if call.is_post {
            Method::Post
        } else {
            Method::Get
        },
        headers: call.headers.clone(),
        secret_headers: call.secret_headers.clone(),
        body: body.map(|body| Bytes::copy_from_slice(body.expose_secret().as_bytes())),
        ..Request::get(call.url.clone(), HostTrust::Named)
    };
    match fetcher.fetch(request).await {
        Ok(response) => Ok((response.status, response.body)),
        Err(error) => Err(match error.kind() {
            FetchErrorKind::HostDown | FetchErrorKind::Transient => {
                AuthError::Unreachable(error.to_string())
            }
            _ => AuthError::Unusable(error.to_string()),
        }),
    }
}

/// An error in words, without any secret that the server may have repeated.
pub(crate) fn shown(error: &AuthError, secrets: &Secrets) -> String {
    let mut text = error.to_string();
    for secret in secrets.values() {
        secret.redact(&mut text);
    }
    text
}
