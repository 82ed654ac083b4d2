//! The calls of a log-in: they hold secrets, are made once, and nothing of them is shown.

use bytes::Bytes;
use kittiwake_fetch::{FetchErrorKind, Fetcher, HostTrust, Method, Request, Response, Secret};
use kittiwake_network::auth::{AuthAnswer, AuthCall, AuthError, FormFlow, Issued, Secrets};
use url::Url;

/// Sends a call; status and body of the answer.
pub(crate) async fn send(fetcher: &Fetcher, call: &AuthCall) -> Result<(u16, Bytes), AuthError> {
    let response = fetch(fetcher, call).await?;
    Ok((response.status, response.body))
}

/// Logs in by the form of a web page.
pub(crate) async fn log_in_by_form(
    fetcher: &Fetcher,
    flow: &FormFlow,
    base: &Url,
    secrets: &Secrets,
) -> Result<Issued, AuthError> {
    let page = answer(fetcher, &flow.page_call(base)).await?;
    let form = flow.open(base, &page)?;
    let call = flow.submit_call(base, &form, secrets)?;
    let answered = answer(fetcher, &call).await?;
    flow.read(base, form, &answered)
}

async fn answer(fetcher: &Fetcher, call: &AuthCall) -> Result<AuthAnswer, AuthError> {
    let response = fetch(fetcher, call).await?;
    let header = |name: &str| response.headers.get(name).map(str::to_owned);
    let set_cookies = response.headers.get_all("set-cookie");
    Ok(AuthAnswer {
        status: response.status,
        content_type: header("content-type"),
        location: header("location"),
        set_cookies: set_cookies.map(Secret::new).collect(),
        body: response.body.to_vec(),
    })
}

async fn fetch(fetcher: &Fetcher, call: &AuthCall) -> Result<Response, AuthError> {
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
    let received = fetcher.fetch(request).await;
    received.map_err(|error| match error.kind() {
        FetchErrorKind::HostDown | FetchErrorKind::Transient => {
            AuthError::Unreachable(error.to_string())
        }
        _ => AuthError::Unusable(error.to_string()),
    })
}

/// An error in words, without any secret that the server may have repeated.
pub(crate) fn shown(error: &AuthError, secrets: &Secrets) -> String {
    let mut text = error.to_string();
    for secret in secrets.values() {
        secret.redact(&mut text);
    }
    text
}
