//! Sessions: name and password for two tokens, of which one renews both (Bluesky's way).

use super::{AuthCall, AuthError, Issued, Place, Secrets, object, refusal, secret, secret_names};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use kittiwake_model::Secret;
use serde_json::{Map, Value};
use url::Url;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFlow {
    /// Where a session is begun.
    pub create: Place,
    /// Where it is renewed, with the renewal token as bearer.
    pub refresh: Place,
    /// The JSON that is posted; `{identifier}` and `{password}` are filled in.
    pub parameters: Vec<(String, String)>,
    /// The keys of the answer.
    pub access_key: String,
    pub refresh_key: String,
    pub account_key: Option<String>,
}

impl SessionFlow {
    pub fn create_call(&self, base: &Url, secrets: &Secrets) -> Result<AuthCall, AuthError> {
        let identifier = secret(secrets, secret_names::IDENTIFIER)?;
        let password = secret(secrets, secret_names::PASSWORD)?;
        let mut posted = Map::new();
        for (name, template) in &self.parameters {
            let value = match template.as_str() {
                "{identifier}" => identifier.expose_secret(),
                "{password}" => password.expose_secret(),
                fixed => fixed,
            };
            posted.insert(name.clone(), Value::String(value.to_owned()));
        }
        Ok(AuthCall {
            is_post: true,
            url: self.create.at(base),
            headers: vec![
                ("content-type".to_owned(), "application/json".to_owned()),
                ("accept".to_owned(), "application/json".to_owned()),
            ],
            secret_headers: Vec::new(),
            body: Some(Secret::new(Value::Object(posted).to_string())),
        })
    }

    pub fn refresh_call(&self, base: &Url, secrets: &Secrets) -> Result<AuthCall, AuthError> {
        let token = secret(secrets, secret_names::REFRESH_TOKEN)?;
        let bearer = Secret::new(format!("Bearer {}", token.expose_secret()));
        Ok(AuthCall {
            is_post: true,
            url: self.refresh.at(base),
            headers: vec![("accept".to_owned(), "application/json".to_owned())],
            secret_headers: vec![("authorization".to_owned(), bearer)],
            body: None,
        })
    }

    /// Reads both tokens. How long the first one lasts stands in the token itself.
    pub fn read(&self, status: u16, body: &[u8], now_unix_s: i64) -> Result<Issued, AuthError> {
        let answer = object(body).filter(|_| status == 200);
        let answer = answer.ok_or_else(|| refusal(status, body))?;
        let token = |key: &str| {
            let text = answer.get(key).and_then(Value::as_str);
            let text = text.filter(|text| super::oauth2::is_token(text));
            text.ok_or_else(|| AuthError::Unusable(format!("no {key}")))
        };
        let (access, refresh) = (token(&self.access_key)?, token(&self.refresh_key)?);
        let account = self.account_key.as_ref();
        let account = account
            .and_then(|key| answer.get(key))
            .and_then(Value::as_str);
        Ok(Issued {
            expires_in_s: expiry_of(access).map(|at| at.saturating_sub(now_unix_s).max(0)),
            secrets: Secrets::from([
                (secret_names::ACCESS_TOKEN.to_owned(), Secret::new(access)),
                (secret_names::REFRESH_TOKEN.to_owned(), Secret::new(refresh)),
            ]),
            scopes: None,
            account: account.map(super::bounded),
        })
    }
}

/// The time after which a JSON web token is no longer taken, if it is one and says so. It is not
/// checked: that is the server's part, ours is only to renew in time.
fn expiry_of(token: &str) -> Option<i64> {
    let payload = token.split('.').nth(1)?;
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(payload).ok()?;
    let claims: Map<String, Value> = serde_json::from_slice(&bytes).ok()?;
    claims.get("exp")?.as_i64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> SessionFlow {
        SessionFlow {
            create: Place::Path("/xrpc/create".to_owned()),
            refresh: Place::Path("/xrpc/refresh".to_owned()),
            parameters: vec![
                ("identifier".to_owned(), "{identifier}".to_owned()),
                ("password".to_owned(), "{password}".to_owned()),
            ],
            access_key: "accessJwt".to_owned(),
            refresh_key: "refreshJwt".to_owned(),
            account_key: Some("handle".to_owned()),
        }
    }

    #[test]
    fn a_session_says_in_its_token_how_long_it_lasts() {
        // {"exp":1000}
        let body = br#"{"accessJwt":"e30.eyJleHAiOjEwMDB9.x","refreshJwt":"r","handle":"ada"}"#;
        let issued = flow().read(200, body, 400).unwrap();
        assert_eq!(issued.expires_in_s, Some(600));
        assert_eq!(issued.account.as_deref(), Some("ada"));
        let opaque = flow().read(200, br#"{"accessJwt":"a","refreshJwt":"r"}"#, 0);
        assert_eq!(opaque.unwrap().expires_in_s, None);
    }

    #[test]
    fn an_expired_session_is_a_refusal_and_no_limit() {
        let body = br#"{"error":"ExpiredToken","message":"Token has expired"}"#;
        let error = flow().read(400, body, 0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the server refuses (ExpiredToken: Token has expired)"
        );
        let limited = flow().read(429, br#"{"error":"RateLimitExceeded"}"#, 0);
        assert_eq!(limited.unwrap_err(), AuthError::Trouble { status: 429 });
    }

    #[test]
    fn a_password_is_posted_whatever_letters_it_has() {
        let secrets = Secrets::from([
            ("identifier".to_owned(), Secret::new("ada")),
            ("password".to_owned(), Secret::new("{identifier}\"\\")),
        ]);
        let base = Url::parse("https://pds.example").unwrap();
        let call = flow().create_call(&base, &secrets).unwrap();
        let body: Value = serde_json::from_str(call.body.unwrap().expose_secret()).unwrap();
        assert_eq!(body["password"], "{identifier}\"\\");
    }
}
