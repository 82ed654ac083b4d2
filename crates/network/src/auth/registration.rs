//! Applications that register themselves, as Mastodon's do: every host knows its own.

use super::form::Form;
use super::{AuthCall, AuthError, Place, Secrets, object, refusal, secret_names};
use kittiwake_model::Secret;
use serde_json::Value;
use url::Url;

/// How an application becomes known to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    pub place: Place,
    /// What is posted; `{redirect}` and `{scopes}` are filled in.
    pub parameters: Vec<(String, String)>,
}

impl Registration {
    /// The request that registers. Several redirects stand on a line each.
    pub fn call(&self, base: &Url, redirects: &[String], scopes: &[String]) -> AuthCall {
        let (redirect, scopes) = (redirects.join("\n"), scopes.join(" "));
        let mut form = Form::default();
        for (name, value) in &self.parameters {
            let value = value
                .replace("{redirect}", &redirect)
                .replace("{scopes}", &scopes);
            form = form.with(name, value);
        }
        form.post(self.place.at(base))
    }

    /// The application's id and secret.
    pub fn read(status: u16, body: &[u8]) -> Result<Secrets, AuthError> {
        let answer = object(body).filter(|_| matches!(status, 200 | 201));
        let answer = answer.ok_or_else(|| refusal(status, body))?;
        let mut secrets = Secrets::new();
        for name in [secret_names::CLIENT_ID, secret_names::CLIENT_SECRET] {
            let value = answer.get(name).and_then(Value::as_str);
            let value = value.filter(|value| super::oauth2::is_token(value));
            let value = value.ok_or_else(|| AuthError::Unusable(format!("no {name}")))?;
            secrets.insert(name.to_owned(), Secret::new(value));
        }
        Ok(secrets)
    }
}
