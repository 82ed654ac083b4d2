//! OAuth 2: codes with PKCE, device codes, client credentials and renewal (RFC 6749, 7636, 8628).

use super::form::Form;
use super::{
    AuthCall, AuthError, Issued, Place, Registration, Secrets, object, refusal, secret,
    secret_names,
};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use kittiwake_model::Secret;
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::{Url, form_urlencoded};

/// The longest token that is taken.
const TOKEN_BYTES_MAX: usize = 16_384;
/// How long an access token is believed to last at most.
const LIFE_S_MAX: i64 = 10 * 365 * 86_400;

/// Where tokens are given out, and how an application says who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenEndpoint {
    pub place: Place,
    pub client: ClientAuth,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuth {
    /// `client_id` and `client_secret` in the form.
    Body,
    /// `Authorization: Basic …`
    Basic,
    /// A public application: `client_id` only.
    None,
}

/// A person allows it in a browser.
#[derive(Debug, Clone)]
pub struct CodeFlow {
    pub authorize: Place,
    pub token: TokenEndpoint,
    pub register: Option<Registration>,
    /// The redirect that shows the code on a page, for copying; without it the address of the
    /// redirect is copied.
    pub paste_redirect: Option<String>,
}

/// A person allows it on another machine.
#[derive(Debug, Clone)]
pub struct DeviceFlow {
    pub device: Place,
    pub token: TokenEndpoint,
}

/// What a token is asked for with.
#[derive(Debug)]
pub enum Grant<'a> {
    Code {
        code: &'a Secret,
        redirect: &'a str,
        verifier: &'a Secret,
    },
    Refresh(&'a Secret),
    Client {
        scopes: &'a [String],
    },
    Device(&'a Secret),
}

impl TokenEndpoint {
    /// The request for tokens.
    pub fn call(
        &self,
        base: &Url,
        client: &Secrets,
        grant: &Grant<'_>,
    ) -> Result<AuthCall, AuthError> {
        let form = Form::default();
        let form = match grant {
            Grant::Code {
                code,
                redirect,
                verifier,
            } => form
                .with_all(&[
                    ("grant_type", "authorization_code"),
                    ("redirect_uri", redirect),
                ])
                .with("code", (*code).clone())
                .with("code_verifier", (*verifier).clone()),
            Grant::Refresh(token) => form
                .with("grant_type", "refresh_token")
                .with("refresh_token", (*token).clone()),
            Grant::Client { scopes } => {
                let form = form.with("grant_type", "client_credentials");
                if scopes.is_empty() {
                    form
                } else {
                    form.with("scope", scopes.join(" "))
                }
            }
            Grant::Device(code) => form
                .with("grant_type", "urn:ietf:params:oauth:grant-type:device_code")
                .with("device_code", (*code).clone()),
        };
        let id = secret(client, secret_names::CLIENT_ID)?;
        let url = self.place.at(base);
        Ok(match self.client {
            ClientAuth::None => form.with("client_id", id.clone()).post(url),
            ClientAuth::Body => {
                let own = secret(client, secret_names::CLIENT_SECRET)?;
                form.with("client_id", id.clone())
                    .with("client_secret", own.clone())
                    .post(url)
            }
            ClientAuth::Basic => {
                let own = secret(client, secret_names::CLIENT_SECRET)?;
                let mut call = form.post(url);
                let header = ("authorization".to_owned(), basic(id, own));
                call.secret_headers.push(header);
                call
            }
        })
    }

    /// Reads the tokens of an answer.
    pub fn read(status: u16, body: &[u8]) -> Result<Issued, AuthError> {
        // Some servers refuse with a 200.
        let answer = object(body).filter(|answer| !answer.contains_key("error"));
        let Some(answer) = answer.filter(|_| status == 200) else {
            if status == 200 && object(body).is_none() {
                return Err(AuthError::Unusable("no JSON object".to_owned()));
            }
            return Err(refusal(status, body));
        };
        let text = |key: &str| answer.get(key).and_then(Value::as_str);
        let is_bearer = text("token_type").is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
        if !is_bearer {
            return Err(AuthError::Unusable("no bearer token".to_owned()));
        }
        let access = text("access_token").filter(|token| is_token(token));
        let access = access.ok_or_else(|| AuthError::Unusable("no access_token".to_owned()))?;
        let mut secrets =
            Secrets::from([(secret_names::ACCESS_TOKEN.to_owned(), Secret::new(access))]);
        if let Some(refresh) = text("refresh_token").filter(|token| is_token(token)) {
            let name = secret_names::REFRESH_TOKEN.to_owned();
            secrets.insert(name, Secret::new(refresh));
        }
        Ok(Issued {
            secrets,
            expires_in_s: seconds(answer.get("expires_in")),
            scopes: text("scope").map(|scopes| {
                let words = scopes.split([' ', ',']).filter(|word| !word.is_empty());
                words.map(super::bounded).collect()
            }),
            account: None,
        })
    }
}

/// `Authorization: Basic`, with both parts encoded as forms are (RFC 6749, section 2.3.1).
fn basic(id: &Secret, own: &Secret) -> Secret {
    let encode = |secret: &Secret| -> String {
        form_urlencoded::byte_serialize(secret.expose_secret().as_bytes()).collect()
    };
    let pair = Secret::new(format!("{}:{}", encode(id), encode(own)));
    let encoded = BASE64_STANDARD.encode(pair.expose_secret());
    Secret::new(format!("Basic {encoded}"))
}

/// Whether a text can be a token: printable, without spaces, within bounds.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= TOKEN_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A number of seconds, as a number or as text.
fn seconds(value: Option<&Value>) -> Option<i64> {
    let value = value?;
    let seconds = value
        .as_i64()
        .or_else(|| value.as_f64().map(|number| number as i64))
        .or_else(|| value.as_str()?.parse().ok())?;
    (seconds > 0).then(|| seconds.min(LIFE_S_MAX))
}

/// The proof that who redeems a code is who asked for it (RFC 7636, S256).
#[derive(Debug, Clone)]
pub struct Pkce {
    pub verifier: Secret,
    pub challenge: String,
}

impl Pkce {
    /// From 32 random bytes.
    pub fn new(random: &[u8; 32]) -> Self {
        Self::of(BASE64_URL_SAFE_NO_PAD.encode(random))
    }

    fn of(verifier: String) -> Self {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        Self {
            verifier: Secret::new(verifier),
            challenge,
        }
    }
}

/// A question to a person: may this application speak for you?
#[derive(Debug, Clone)]
pub struct Authorization<'a> {
    pub client_id: &'a Secret,
    pub redirect: &'a str,
    pub scopes: &'a [String],
    pub state: &'a str,
    pub pkce: &'a Pkce,
}

impl CodeFlow {
    /// The address that a person opens in a browser.
    pub fn address(&self, base: &Url, asked: &Authorization<'_>) -> Url {
        let mut url = self.authorize.at(base);
        {
            let mut pairs = url.query_pairs_mut();
            pairs
                .append_pair("response_type", "code")
                .append_pair("client_id", asked.client_id.expose_secret())
                .append_pair("redirect_uri", asked.redirect);
            if !asked.scopes.is_empty() {
                pairs.append_pair("scope", &asked.scopes.join(" "));
            }
            pairs
                .append_pair("state", asked.state)
                .append_pair("code_challenge", &asked.pkce.challenge)
                .append_pair("code_challenge_method", "S256");
        }
        url
    }
}

/// What a redirect brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redirected {
    Code(Secret),
    /// The person or the server said no.
    Refused {
        code: String,
        detail: String,
    },
    /// It belongs to another log-in, or to nobody.
    WrongState,
    /// Neither a code nor an error.
    Nothing,
}

/// Reads the query of a redirect. The state has to be ours, also for errors: anybody can open the
/// address of the redirect.
pub fn read_redirect(query: &str, state: &str) -> Redirected {
    let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    let get = |name: &str| {
        let mut values = pairs.iter().filter(|(key, _)| key == name);
        // A second value may be somebody else's.
        let first = values.next().map(|(_, value)| value.as_str());
        first.filter(|_| values.next().is_none())
    };
    let (code, error) = (get("code"), get("error"));
    if code.is_none() && error.is_none() {
        return Redirected::Nothing;
    }
    if get("state") != Some(state) {
        return Redirected::WrongState;
    }
    if let Some(error) = error {
        return Redirected::Refused {
            code: super::bounded(error),
            detail: super::bounded(get("error_description").unwrap_or_default()),
        };
    }
    match code.filter(|code| is_token(code)) {
        Some(code) => Redirected::Code(Secret::new(code)),
        None => Redirected::Nothing,
    }
}

/// A code for a person to type in on another machine.
#[derive(Debug, Clone)]
pub struct DeviceCode {
    pub device_code: Secret,
    pub user_code: String,
    pub address: String,
    pub interval_s: u64,
    pub expires_in_s: u64,
}

impl DeviceFlow {
    /// The request for a code.
    pub fn call(
        &self,
        base: &Url,
        client: &Secrets,
        scopes: &[String],
    ) -> Result<AuthCall, AuthError> {
        let id = secret(client, secret_names::CLIENT_ID)?;
        let form = Form::default().with("client_id", id.clone());
        let form = if scopes.is_empty() {
            form
        } else {
            form.with("scope", scopes.join(" "))
        };
        Ok(form.post(self.device.at(base)))
    }

    pub fn read(status: u16, body: &[u8]) -> Result<DeviceCode, AuthError> {
        const INTERVAL_S: i64 = 5;
        const INTERVAL_S_MAX: i64 = 600;
        let answer = object(body).filter(|_| status == 200);
        let answer = answer.ok_or_else(|| refusal(status, body))?;
        let text = |key: &str| {
            let text = answer.get(key).and_then(Value::as_str);
            text.ok_or_else(|| AuthError::Unusable(format!("no {key}")))
        };
        let device_code = text("device_code")?;
        if !is_token(device_code) {
            return Err(AuthError::Unusable("no device_code".to_owned()));
        }
        let address = text("verification_uri").or_else(|_| text("verification_url"))?;
        let interval_s = seconds(answer.get("interval")).unwrap_or(INTERVAL_S);
        let expires_in_s = seconds(answer.get("expires_in")).unwrap_or(INTERVAL_S_MAX);
        Ok(DeviceCode {
            device_code: Secret::new(device_code),
            user_code: super::bounded(text("user_code")?),
            address: super::bounded(address),
            interval_s: interval_s.min(INTERVAL_S_MAX).unsigned_abs(),
            expires_in_s: expires_in_s.unsigned_abs(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7636, appendix B.
    #[test]
    fn the_challenge_of_the_specification_is_made() {
        let pkce = Pkce::of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned());
        assert_eq!(
            pkce.challenge,
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
        let bytes = [
            116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186, 22, 212,
            37, 77, 105, 214, 191, 240, 91, 88, 5, 88, 83, 132, 141, 121,
        ];
        assert_eq!(Pkce::new(&bytes).verifier, pkce.verifier);
    }

    #[test]
    fn a_redirect_counts_only_with_our_state() {
        let code = |text: &str| Redirected::Code(Secret::new(text));
        assert_eq!(read_redirect("code=abc&state=s", "s"), code("abc"));
        for wrong in [
            "code=abc",
            "code=abc&state=t",
            "code=abc&state=t&state=s",
            "error=access_denied&state=t",
        ] {
            assert_eq!(read_redirect(wrong, "s"), Redirected::WrongState, "{wrong}");
        }
        for nothing in ["", "state=s", "x=y", "code=a&code=b&state=s"] {
            assert_eq!(
                read_redirect(nothing, "s"),
                Redirected::Nothing,
                "{nothing}"
            );
        }
        assert!(matches!(
            read_redirect("error=access_denied&state=s", "s"),
            Redirected::Refused { .. }
        ));
    }

    #[test]
    fn tokens_are_read_within_bounds() {
        let issued = TokenEndpoint::read(
            200,
            br#"{"access_token":"a","token_type":"Bearer","expires_in":"7200","scope":"a b"}"#,
        )
        .unwrap();
        assert_eq!(issued.expires_in_s, Some(7200));
        assert_eq!(issued.scopes, Some(vec!["a".to_owned(), "b".to_owned()]));
        assert!(!issued.secrets.contains_key("refresh_token"));
        for bad in [
            &b"[]"[..],
            b"{}",
            br#"{"access_token":""}"#,
            br#"{"access_token":"a\r\nb"}"#,
            br#"{"access_token":7}"#,
            br#"{"access_token":"a","token_type":"mac"}"#,
        ] {
            let read = TokenEndpoint::read(200, bad);
            assert!(matches!(read, Err(AuthError::Unusable(_))), "{read:?}");
        }
        let refused = TokenEndpoint::read(200, br#"{"error":"bad_verification_code"}"#);
        assert!(matches!(refused, Err(AuthError::Refused { .. })));
    }

    #[test]
    fn the_application_says_who_it_is_in_the_way_the_network_wants() {
        let client = Secrets::from([
            ("client_id".to_owned(), Secret::new("i d")),
            ("client_secret".to_owned(), Secret::new("s:1")),
        ]);
        let base = Url::parse("https://a.example").unwrap();
        let call = |client_auth| {
            let endpoint = TokenEndpoint {
                place: Place::Path("/t".to_owned()),
                client: client_auth,
            };
            let grant = Grant::Client { scopes: &[] };
            endpoint.call(&base, &client, &grant).unwrap()
        };
        let body = |call: &AuthCall| call.body.clone().unwrap().expose_secret().to_owned();
        let in_body = call(ClientAuth::Body);
        assert_eq!(
            body(&in_body),
            "grant_type=client_credentials&client_id=i+d&client_secret=s%3A1"
        );
        let basic = call(ClientAuth::Basic);
        assert_eq!(body(&basic), "grant_type=client_credentials");
        assert_eq!(
            basic.secret_headers[0].1.expose_secret(),
            "Basic aStkOnMlM0Ex"
        );
        assert!(!format!("{in_body:?}").contains("s%3A1"));
    }
}
