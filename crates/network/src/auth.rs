//! Credentials as a network takes them: which ways to log in there are, what is sent for each, how
//! a request is signed, and what the answers mean.
//!
//! Pure: time and randomness are arguments, and nothing is sent from here.

mod form;
mod oauth1;
mod oauth2;
mod page_form;
mod pooling;
mod registration;
mod session;

pub use oauth1::{OAuth1Keys, Stamp, authorization, signature_base};
pub use oauth2::{
    Authorization, ClientAuth, CodeFlow, DeviceCode, DeviceFlow, Grant, Pkce, Redirected,
    TokenEndpoint, read_redirect,
};
pub use page_form::{AuthAnswer, COOKIE_PREFIX, FormFlow, OpenForm};
pub use pooling::{Pooled, Pooling, PoolingError};
pub use registration::Registration;
pub use session::SessionFlow;

use hmac::{Hmac, Mac};
use kittiwake_model::{Name, Secret};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write;
use url::Url;

/// Names of the secrets that a credential may consist of.
pub mod secret_names {
    pub const ACCESS_TOKEN: &str = "access_token";
    pub const REFRESH_TOKEN: &str = "refresh_token";
    pub const CLIENT_ID: &str = "client_id";
    pub const CLIENT_SECRET: &str = "client_secret";
    pub const CONSUMER_KEY: &str = "consumer_key";
    pub const CONSUMER_SECRET: &str = "consumer_secret";
    pub const TOKEN: &str = "token";
    pub const TOKEN_SECRET: &str = "token_secret";
    pub const IDENTIFIER: &str = "identifier";
    pub const PASSWORD: &str = "password";
    /// What is made of other secrets for a single call, and never kept.
    pub const PROOF: &str = "proof";
}

/// The secrets of one credential by their names.
pub type Secrets = BTreeMap<String, Secret>;

/// How a network wants to be asked by somebody it knows.
#[derive(Debug, Clone, Default)]
pub struct Auth {
    /// The ways to get a credential, the preferred one first; at least one.
    pub methods: Vec<LoginMethod>,
    /// Whether one crawl may use several accounts or applications.
    pub pooling: Pooling,
}

impl Auth {
    pub fn method(&self, name: &str) -> Option<&LoginMethod> {
        self.methods.iter().find(|method| &*method.name == name)
    }

    /// The names of all query parameters that may hold a secret.
    pub fn secret_parameters(&self) -> Vec<String> {
        let sendings = self.methods.iter().map(|method| &method.sending);
        sendings.flat_map(Sending::parameters).collect()
    }
}

/// One way to get a credential.
#[derive(Debug, Clone)]
pub struct LoginMethod {
    pub name: Name,
    pub description: String,
    pub kind: LoginKind,
    pub sending: Sending,
    /// Permissions that are asked for in any case.
    pub scopes: Vec<String>,
    /// Environment variables that the network's own tools take a token from.
    pub variables: Vec<String>,
    /// Those that hold the secret of an application, with which a proof is made.
    pub proof_variables: Vec<String>,
    /// Further addresses that the credential may be sent to, beside the one that is asked.
    pub hosts: Vec<Url>,
    /// Where a person gets what has to be typed in.
    pub page: Option<String>,
    /// The call that tells whose credential it is.
    pub test: Option<TestCall>,
}

/// What has to be done to log in.
#[derive(Debug, Clone)]
pub enum LoginKind {
    /// A token or key that the network gave to a person.
    Token,
    /// An application speaks for itself.
    ClientCredentials {
        endpoint: TokenEndpoint,
        register: Option<Registration>,
    },
    /// A person allows an application to speak for them, in a browser.
    Code(CodeFlow),
    /// The same on another machine, with a short code.
    Device(DeviceFlow),
    /// Four keys, with which every request is signed.
    OAuth1,
    /// Name and password are given for two tokens.
    Session(SessionFlow),
    /// Name and password are typed into a form of a web page, for cookies.
    Form(FormFlow),
}

impl LoginKind {
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::ClientCredentials { .. } => "client_credentials",
            Self::Code(_) => "code",
            Self::Device(_) => "device",
            Self::OAuth1 => "oauth1",
            Self::Session(_) => "session",
            Self::Form(_) => "form",
        }
    }

    /// The endpoint that gives out OAuth 2 tokens.
    pub const fn token_endpoint(&self) -> Option<&TokenEndpoint> {
        match self {
            Self::ClientCredentials { endpoint, .. } => Some(endpoint),
            Self::Code(flow) => Some(&flow.token),
            Self::Device(flow) => Some(&flow.token),
            Self::Token | Self::OAuth1 | Self::Session(_) | Self::Form(_) => None,
        }
    }

    pub const fn registration(&self) -> Option<&Registration> {
        match self {
            Self::ClientCredentials { register, .. } => register.as_ref(),
            Self::Code(flow) => flow.register.as_ref(),
            _ => None,
        }
    }

    /// Where secrets of this credential are sent to renew it.
    pub fn issuers(&self, base: &Url) -> Vec<Url> {
        let mut places: Vec<&Place> = Vec::new();
        places.extend(self.token_endpoint().map(|endpoint| &endpoint.place));
        if let Self::Session(flow) = self {
            places.extend([&flow.create, &flow.refresh]);
        }
        if let Self::Form(flow) = self {
            places.push(&flow.page);
        }
        places.into_iter().map(|place| place.at(base)).collect()
    }

    /// The secrets that a person has to type in.
    pub fn asked(&self) -> &'static [&'static str] {
        use secret_names::{
            ACCESS_TOKEN, CLIENT_ID, CLIENT_SECRET, CONSUMER_KEY, CONSUMER_SECRET, IDENTIFIER,
            PASSWORD, TOKEN, TOKEN_SECRET,
        };
        let client_of = |endpoint: &TokenEndpoint| match endpoint.client {
            ClientAuth::None => &[CLIENT_ID][..],
            ClientAuth::Body | ClientAuth::Basic => &[CLIENT_ID, CLIENT_SECRET],
        };
        match self {
            Self::Token => &[ACCESS_TOKEN],
            Self::OAuth1 => &[CONSUMER_KEY, CONSUMER_SECRET, TOKEN, TOKEN_SECRET],
            Self::Session(_) | Self::Form(_) => &[IDENTIFIER, PASSWORD],
            _ if self.registration().is_some() => &[],
            Self::ClientCredentials { endpoint, .. } => client_of(endpoint),
            Self::Code(flow) => client_of(&flow.token),
            Self::Device(flow) => client_of(&flow.token),
        }
    }
}

/// How a credential goes with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sending {
    /// `Authorization: Bearer …`
    Bearer,
    /// A header of another name.
    Header(String),
    /// A parameter of the query.
    Query(String),
    /// A signature.
    OAuth1,
    /// The same, and a proof with it that whoever asks knows the application's secret, as a parameter of the
    /// query: an HMAC-SHA256 of the token. Without the secret there is none.
    Proved { token: Box<Self>, parameter: String },
}

/// A call that tells whose credential it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCall {
    pub place: Place,
    /// The key of the answer that names the account.
    pub account: Option<String>,
    /// The header that lists the permissions.
    pub scopes_header: Option<String>,
}

/// An address, or a path on the host that is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Path(String),
    Address(Url),
}

impl Place {
    pub fn at(&self, base: &Url) -> Url {
        match self {
            Self::Address(url) => url.clone(),
            Self::Path(path) => {
                let mut url = base.clone();
                url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
                url.set_query(None);
                url.set_fragment(None);
                url
            }
        }
    }
}

/// What is added to a request.
#[derive(Debug, Default)]
pub struct Attachment {
    pub headers: Vec<(String, Secret)>,
    pub query: Vec<(String, Secret)>,
}

/// A secret that a credential should have and has not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the credential has no {0}; log in again")]
pub struct MissingSecret(pub &'static str);

pub(crate) fn secret<'a>(
    secrets: &'a Secrets,
    name: &'static str,
) -> Result<&'a Secret, MissingSecret> {
    secrets.get(name).ok_or(MissingSecret(name))
}

impl Sending {
    /// What has to be added to a request so that the network knows who asks. Signatures cover the
    /// method, the whole address, the time and the nonce.
    pub fn attach(
        &self,
        secrets: &Secrets,
        method: &str,
        url: &Url,
        stamp: &Stamp,
    ) -> Result<Attachment, MissingSecret> {
        let mut attachment = Attachment::default();
        match self {
            Self::Bearer => {
                let token = secret(secrets, secret_names::ACCESS_TOKEN)?;
                let value = Secret::new(format!("Bearer {}", token.expose_secret()));
                attachment.headers.push(("authorization".to_owned(), value));
            }
            Self::Header(name) => {
                let token = secret(secrets, secret_names::ACCESS_TOKEN)?;
                attachment.headers.push((name.clone(), token.clone()));
            }
            Self::Query(name) => {
                let token = secret(secrets, secret_names::ACCESS_TOKEN)?;
                attachment.query.push((name.clone(), token.clone()));
            }
            Self::Proved { token, parameter } => {
                attachment = token.attach(secrets, method, url, stamp)?;
                let proof = self.proof(secrets).map(|proof| (parameter.clone(), proof));
                attachment.query.extend(proof);
            }
            Self::OAuth1 => {
                let keys = OAuth1Keys::of(secrets)?;
                let value = authorization(&keys, method, url, stamp);
                attachment.headers.push(("authorization".to_owned(), value));
            }
        }
        Ok(attachment)
    }

    /// What proves that the application's secret is known, in hexadecimal digits.
    pub fn proof(&self, secrets: &Secrets) -> Option<Secret> {
        let Self::Proved { .. } = self else {
            return None;
        };
        let key = secrets.get(secret_names::CLIENT_SECRET)?;
        let token = secrets.get(secret_names::ACCESS_TOKEN)?;
        let mut mac = Hmac::<Sha256>::new_from_slice(key.expose_secret().as_bytes()).ok()?;
        mac.update(token.expose_secret().as_bytes());
        let digest = mac.finalize().into_bytes();
        let hex = digest.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        Some(Secret::new(hex))
    }

    /// The parameters of the query that hold secrets.
    fn parameters(&self) -> Vec<String> {
        match self {
            Self::Query(parameter) => vec![parameter.clone()],
            Self::Proved { token, parameter } => {
                let mut parameters = token.parameters();
                parameters.push(parameter.clone());
                parameters
            }
            Self::Bearer | Self::Header(_) | Self::OAuth1 => Vec::new(),
        }
    }
}

/// A request of a log-in: it holds secrets and is shown to nobody.
pub struct AuthCall {
    pub is_post: bool,
    pub url: Url,
    pub headers: Vec<(String, String)>,
    pub secret_headers: Vec<(String, Secret)>,
    pub body: Option<Secret>,
}

impl fmt::Debug for AuthCall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AuthCall({})", self.url.path())
    }
}

/// Tokens as a network gave them out.
#[derive(Debug, Clone, Default)]
pub struct Issued {
    pub secrets: Secrets,
    /// Seconds until the access token expires; `None` if the network does not say.
    pub expires_in_s: Option<i64>,
    /// The permissions that were given, if they are not those that were asked for.
    pub scopes: Option<Vec<String>>,
    /// Whose they are, if the answer says so.
    pub account: Option<String>,
}

/// Why a log-in got no token. The words of the server are bounded and may repeat what was sent: who
/// shows them takes the secrets out first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The server says no, and will say no again.
    #[error("the server refuses ({code}{})", said(.detail))]
    Refused { code: String, detail: String },
    /// The person has not decided yet.
    #[error("nobody has decided yet")]
    Pending,
    /// As before, and the question comes too often.
    #[error("the server asks for longer pauses")]
    SlowDown,
    /// An error that may pass.
    #[error("the server has trouble (http {status})")]
    Trouble { status: u16 },
    /// No answer came; in words that are safe to print.
    #[error("{0}")]
    Unreachable(String),
    #[error("the server's answer cannot be used: {0}")]
    Unusable(String),
    #[error(transparent)]
    Missing(#[from] MissingSecret),
}

fn said(detail: &str) -> String {
    if detail.is_empty() {
        String::new()
    } else {
        format!(": {detail}")
    }
}

/// Foreign words made fit for one line.
pub(crate) fn bounded(text: &str) -> String {
    const TEXT_CHARS_MAX: usize = 200;
    text.chars()
        .take(TEXT_CHARS_MAX)
        .map(|letter| {
            if letter.is_control() {
                '\u{fffd}'
            } else {
                letter
            }
        })
        .collect()
}

/// The JSON object of an answer.
pub(crate) fn object(body: &[u8]) -> Option<serde_json::Map<String, serde_json::Value>> {
    serde_json::from_slice(body).ok()
}

/// What a refused call amounts to, from the `error` of its body: OAuth 2 and XRPC write it alike.
pub(crate) fn refusal(status: u16, body: &[u8]) -> AuthError {
    let answer = object(body).unwrap_or_default();
    let text = |key: &str| answer.get(key).and_then(serde_json::Value::as_str);
    let code = text("error").map_or_else(|| format!("http {status}"), bounded);
    match code.as_str() {
        "authorization_pending" => return AuthError::Pending,
        "slow_down" => return AuthError::SlowDown,
        "temporarily_unavailable" | "server_error" => return AuthError::Trouble { status },
        _ => {}
    }
    if status >= 500 || matches!(status, 408 | 425 | 429) {
        return AuthError::Trouble { status };
    }
    let detail = text("error_description").or_else(|| text("message"));
    AuthError::Refused {
        code,
        detail: detail.map(bounded).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_path_of_the_host_or_an_address_of_its_own() {
        let base = Url::parse("https://a.example:8443/v2/").unwrap();
        let path = Place::Path("/oauth/token".to_owned());
        assert_eq!(
            path.at(&base).as_str(),
            "https://a.example:8443/v2/oauth/token"
        );
        let other = Url::parse("https://login.example/token").unwrap();
        assert_eq!(Place::Address(other.clone()).at(&base), other);
    }

    #[test]
    fn what_is_sent_shows_no_secret() {
        let secrets = Secrets::from([(
            secret_names::ACCESS_TOKEN.to_owned(),
            Secret::new("hunter2hunter2"),
        )]);
        let url = Url::parse("https://a.example/").unwrap();
        let stamp = Stamp {
            unix_s: 0,
            nonce: "n".to_owned(),
        };
        for sending in [
            Sending::Bearer,
            Sending::Header("x-key".to_owned()),
            Sending::Query("key".to_owned()),
        ] {
            let attached = sending.attach(&secrets, "GET", &url, &stamp).unwrap();
            assert!(!format!("{attached:?}").contains("hunter2"));
        }
        let missing = Sending::OAuth1.attach(&secrets, "GET", &url, &stamp);
        assert_eq!(missing.unwrap_err(), MissingSecret("consumer_key"));
    }

    #[test]
    fn a_proof_is_made_of_token_and_secret_and_shows_neither() {
        // The second test case of RFC 4231.
        let mut secrets = Secrets::from([
            ("client_secret".to_owned(), Secret::new("Jefe")),
            (
                "access_token".to_owned(),
                Secret::new("what do ya want for nothing?"),
            ),
        ]);
        let sending = Sending::Proved {
            token: Box::new(Sending::Query("token".to_owned())),
            parameter: "proof".to_owned(),
        };
        assert_eq!(sending.parameters(), ["token", "proof"]);
        let url = Url::parse("https://a.example/").unwrap();
        let stamp = Stamp {
            unix_s: 0,
            nonce: "n".to_owned(),
        };
        let sent = |secrets: &Secrets| {
            let attached = sending.attach(secrets, "GET", &url, &stamp).unwrap();
            assert!(!format!("{attached:?}").contains("5bdcc146"));
            let query = attached.query.into_iter();
            query
                .map(|(name, value)| format!("{name}={}", value.expose_secret()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            sent(&secrets)[1],
            "proof=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        secrets.remove("client_secret");
        assert_eq!(sent(&secrets), ["token=what do ya want for nothing?"]);
    }

    #[test]
    fn a_refusal_is_told_from_trouble() {
        let refused = refusal(
            400,
            br#"{"error":"invalid_grant","error_description":"used"}"#,
        );
        assert_eq!(
            refused.to_string(),
            "the server refuses (invalid_grant: used)"
        );
        assert_eq!(refusal(503, b"<html>"), AuthError::Trouble { status: 503 });
        assert_eq!(
            refusal(400, br#"{"error":"slow_down"}"#),
            AuthError::SlowDown
        );
        let plain = refusal(401, b"");
        assert_eq!(plain.to_string(), "the server refuses (http 401)");
    }
}
