//! A network that is strict about log-ins: it refuses wrong clients, redirects, verifiers, signatures
//! and passwords, codes and renewal tokens that were used before, nonces that it has seen, and calls
//! without a valid credential. Written by hand from the specifications.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const CLIENT_ID: &str = "planted-client-0001";
pub(crate) const CLIENT_SECRET: &str = "planted-client-secret/+0002";
pub(crate) const PASSWORD: &str = "planted app password 0003";
pub(crate) const API_KEY: &str = "planted-api-key+/0004";
pub(crate) const CONSUMER_KEY: &str = "planted-consumer-0005";
pub(crate) const CONSUMER_SECRET: &str = "planted-consumer-secret-0006";
pub(crate) const TOKEN: &str = "planted-oauth1-token-0007";
pub(crate) const TOKEN_SECRET: &str = "planted-oauth1-token-secret-0008";
/// What every secret of this network begins with.
pub(crate) const PLANTED: &str = "planted";
const OUT_OF_BAND: &str = "urn:ietf:wg:oauth:2.0:oob";

/// How calls show who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Bearer,
    Key,
    OAuth1,
}

/// What the network knows and how it behaves.
#[expect(clippy::struct_excessive_bools, reason = "each is a whim of its own")]
pub(crate) struct Knowledge {
    pub(crate) style: Style,
    /// How applications say who they are to the token endpoint.
    pub(crate) basic: bool,
    /// Seconds that an access token lasts; none: for ever.
    pub(crate) life_s: Option<i64>,
    /// A renewal token that was used may be used again: its answer may have been lost.
    pub(crate) grace: bool,
    /// Calls are answered with 400 ExpiredToken instead of 401.
    pub(crate) says_expired_with_400: bool,
    /// Nobody is let in, whatever they show.
    pub(crate) locked: bool,
    /// What the token endpoint answers instead, the last one first.
    pub(crate) token_answers: Vec<(u16, &'static str)>,
    pub(crate) redirects: Vec<String>,
    pub(crate) device_answers: Vec<&'static str>,
    clients: BTreeMap<String, Client>,
    codes: BTreeMap<String, Code>,
    access: BTreeSet<String>,
    refresh: BTreeMap<String, bool>,
    nonces: BTreeSet<String>,
    issued: u64,
    /// Every call: method and target, without the query's secrets taken out.
    pub(crate) calls: Vec<String>,
    /// Everything that a client did wrong.
    pub(crate) complaints: Vec<String>,
}

#[derive(Clone)]
struct Client {
    secret: String,
    redirects: Vec<String>,
    scopes: String,
}

struct Code {
    client: String,
    redirect: String,
    challenge: String,
    scopes: String,
}

/// The network, served on loopback until the test ends.
#[derive(Clone)]
pub(crate) struct Authority {
    pub(crate) address: String,
    knowledge: Arc<Mutex<Knowledge>>,
}

struct Asked<'a> {
    method: Method,
    uri: &'a Uri,
    headers: &'a HeaderMap,
    body: &'a [u8],
}

type Pairs = BTreeMap<String, String>;

impl Authority {
    pub(crate) fn start(style: Style) -> Self {
        let knowledge = Arc::new(Mutex::new(Knowledge {
            style,
            basic: false,
            life_s: None,
            grace: false,
            says_expired_with_400: false,
            locked: false,
            token_answers: Vec::new(),
            redirects: Vec::new(),
            device_answers: Vec::new(),
            clients: BTreeMap::new(),
            codes: BTreeMap::new(),
            access: BTreeSet::from([API_KEY.to_owned()]),
            refresh: BTreeMap::new(),
            nonces: BTreeSet::new(),
            issued: 0,
            calls: Vec::new(),
            complaints: Vec::new(),
        }));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a listener");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let shared = Arc::clone(&knowledge);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                let router = Router::new().fallback(serve).with_state(shared);
                let _ = axum::serve(listener, router).await;
            });
        });
        Self { address, knowledge }
    }

    pub(crate) fn knows(&self) -> MutexGuard<'_, Knowledge> {
        self.knowledge.lock().expect("knowledge")
    }

    /// The client that a person registered by hand.
    pub(crate) fn with_client(self, redirects: &[&str], scopes: &str) -> Self {
        let client = Client {
            secret: CLIENT_SECRET.to_owned(),
            redirects: redirects.iter().map(|it| (*it).to_owned()).collect(),
            scopes: scopes.to_owned(),
        };
        self.knows().clients.insert(CLIENT_ID.to_owned(), client);
        self
    }

    /// From now on nothing that was given out is good.
    pub(crate) fn revoke_all(&self) {
        let mut knowledge = self.knows();
        knowledge.access.clear();
        knowledge.refresh.clear();
    }

    /// From now on no access token is good; renewal tokens are.
    pub(crate) fn expire_all(&self) {
        self.knows().access.clear();
    }

    pub(crate) fn calls_to(&self, path: &str) -> usize {
        let knowledge = self.knows();
        let calls = knowledge.calls.iter();
        calls.filter(|call| call.contains(path)).count()
    }

    pub(crate) fn assert_no_complaints(&self) {
        let complaints = &self.knows().complaints;
        assert!(complaints.is_empty(), "{complaints:?}");
    }
}

async fn serve(
    Shared(knowledge): Shared<Arc<Mutex<Knowledge>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let asked = Asked {
        method,
        uri: &uri,
        headers: &headers,
        body: &body,
    };
    let mut knowledge = knowledge.lock().expect("knowledge");
    knowledge.calls.push(format!("{} {uri}", asked.method));
    knowledge.answer(&asked)
}

fn pairs(text: &str) -> Pairs {
    url::form_urlencoded::parse(text.as_bytes())
        .into_owned()
        .collect()
}

fn answer(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    let headers = [
        ("content-type", "application/json"),
        ("x-limit", "300"),
        ("x-left", "299"),
        ("x-reset", "2030-01-01T00:00:00Z"),
    ];
    (status, headers, body.to_string()).into_response()
}

fn refused(error: &str, detail: &str) -> Response {
    answer(400, &json!({ "error": error, "error_description": detail }))
}

fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

impl Knowledge {
    fn complain(&mut self, what: impl Into<String>) {
        self.complaints.push(what.into());
    }

    fn new_secret(&mut self, what: &str) -> String {
        self.issued += 1;
        format!("{PLANTED}-{what}-{:08}", self.issued)
    }

    fn answer(&mut self, asked: &Asked<'_>) -> Response {
        match (asked.method.as_str(), asked.uri.path()) {
            ("GET", "/oauth/authorize") => self.authorize(asked),
            ("POST", "/oauth/token") => self.token(asked),
            ("POST", "/api/v1/apps") => self.register(asked),
            ("POST", "/device") => self.device(asked),
            ("POST", "/session/create") => self.create_session(asked),
            ("POST", "/session/refresh") => self.refresh_session(asked),
            ("GET", path) => {
                let path = path.to_owned();
                if let Some(id) = path.strip_prefix("/open/") {
                    if asked.headers.contains_key("authorization") {
                        self.complain("a credential where none is wanted");
                    }
                    return answer(200, &json!({ "id": id, "name": "open" }));
                }
                self.closed(asked, &path)
            }
            _ => answer(404, &json!({})),
        }
    }

    fn authorize(&mut self, asked: &Asked<'_>) -> Response {
        let query = pairs(asked.uri.query().unwrap_or_default());
        let get = |name: &str| query.get(name).cloned().unwrap_or_default();
        let Some(client) = self.clients.get(&get("client_id")).cloned() else {
            self.complain("an unknown client");
            return answer(400, &json!({ "error": "unknown client" }));
        };
        let redirect = get("redirect_uri");
        if !client.redirects.contains(&redirect) && !self.redirects.contains(&redirect) {
            self.complain(format!("a wrong redirect {redirect}"));
            return answer(400, &json!({ "error": "wrong redirect" }));
        }
        let known: BTreeSet<&str> = client.scopes.split(' ').collect();
        let scopes = get("scope");
        let is_within = scopes.split(' ').all(|scope| known.contains(scope));
        let is_right = get("response_type") == "code"
            && get("code_challenge_method") == "S256"
            && get("code_challenge").len() == 43
            && get("state").len() >= 16;
        if !is_within || !is_right {
            self.complain(format!("a wrong question {query:?}"));
            return answer(400, &json!({ "error": "invalid_request" }));
        }
        let code = self.new_secret("code");
        let kept = Code {
            client: get("client_id"),
            redirect: redirect.clone(),
            challenge: get("code_challenge"),
            scopes,
        };
        self.codes.insert(code.clone(), kept);
        if redirect == OUT_OF_BAND {
            return code.into_response();
        }
        let mut location = url::Url::parse(&redirect).expect("a redirect");
        location
            .query_pairs_mut()
            .append_pair("code", &code)
            .append_pair("state", &get("state"));
        (StatusCode::FOUND, [("location", location.to_string())]).into_response()
    }

    /// The client that a form or a header names and proves to be.
    fn client_of(&mut self, asked: &Asked<'_>, form: &Pairs) -> Option<String> {
        let header = asked.headers.get("authorization");
        let (id, secret) = if self.basic {
            let text = header?.to_str().ok()?.strip_prefix("Basic ")?;
            let decoded = String::from_utf8(BASE64_STANDARD.decode(text).ok()?).ok()?;
            let (id, secret) = decoded.split_once(':')?;
            if form.contains_key("client_secret") {
                self.complain("a secret in the form and in the header");
            }
            let plain = |text: &str| pairs(&format!("v={text}")).remove("v");
            (plain(id)?, plain(secret)?)
        } else {
            let secret = form.get("client_secret")?.clone();
            (form.get("client_id")?.clone(), secret)
        };
        let is_right = self.clients.get(&id)?.secret == secret;
        is_right.then_some(id)
    }

    fn token(&mut self, asked: &Asked<'_>) -> Response {
        if let Some((status, body)) = self.token_answers.pop() {
            let status = StatusCode::from_u16(status).expect("a status");
            return (status, body).into_response();
        }
        let form = pairs(std::str::from_utf8(asked.body).unwrap_or_default());
        let Some(client) = self.client_of(asked, &form) else {
            self.complain("a wrong client");
            let echoed = form.get("client_secret").cloned().unwrap_or_default();
            return answer(
                401,
                // Servers repeat what they were sent.
                &json!({ "error": "invalid_client", "error_description": format!("no {echoed}") }),
            );
        };
        let get = |name: &str| form.get(name).cloned().unwrap_or_default();
        match get("grant_type").as_str() {
            "authorization_code" => self.redeem(&client, &form),
            "refresh_token" => {
                let token = get("refresh_token");
                match self.refresh.get(&token).copied() {
                    Some(is_used) if !is_used || self.grace => {
                        self.refresh.insert(token, true);
                        self.issue("", true)
                    }
                    Some(_) => {
                        // Somebody has a copy: nobody is believed any more.
                        self.refresh.clear();
                        self.access.clear();
                        refused("invalid_grant", &format!("{token} was used before"))
                    }
                    None => refused("invalid_grant", &format!("no token {token}")),
                }
            }
            "client_credentials" => self.issue(&get("scope"), false),
            "urn:ietf:params:oauth:grant-type:device_code" => {
                if get("device_code") != "planted-device-code" {
                    self.complain("a wrong device code");
                    return refused("invalid_grant", "");
                }
                match self.device_answers.pop() {
                    Some(error) => refused(error, ""),
                    None => self.issue("", true),
                }
            }
            other => {
                let what = format!("a grant {other:?}");
                self.complain(what);
                refused("unsupported_grant_type", "")
            }
        }
    }

    fn redeem(&mut self, client: &str, form: &Pairs) -> Response {
        let get = |name: &str| form.get(name).cloned().unwrap_or_default();
        // A code is good once.
        let Some(code) = self.codes.remove(&get("code")) else {
            self.complain("a code that was used or never given");
            return refused("invalid_grant", &format!("no code {}", get("code")));
        };
        let proof = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(get("code_verifier")));
        let is_right = code.client == client
            && code.redirect == get("redirect_uri")
            && code.challenge == proof;
        if !is_right {
            self.complain("a wrong verifier, redirect or client");
            return refused("invalid_grant", "");
        }
        self.issue(&code.scopes, true)
    }

    fn issue(&mut self, scopes: &str, is_renewable: bool) -> Response {
        let access = self.new_secret("access");
        self.access.insert(access.clone());
        let mut body = json!({ "access_token": access, "token_type": "Bearer" });
        if !scopes.is_empty() {
            body["scope"] = json!(scopes);
        }
        if let Some(life_s) = self.life_s {
            body["expires_in"] = json!(life_s);
        }
        if is_renewable {
            let refresh = self.new_secret("refresh");
            body["refresh_token"] = json!(refresh);
            self.refresh.insert(refresh, false);
        }
        answer(200, &body)
    }

    fn register(&mut self, asked: &Asked<'_>) -> Response {
        let form = pairs(std::str::from_utf8(asked.body).unwrap_or_default());
        let get = |name: &str| form.get(name).cloned().unwrap_or_default();
        if get("client_name").is_empty() || get("redirect_uris").is_empty() {
            self.complain(format!("a wrong registration {form:?}"));
            return answer(422, &json!({ "error": "Validation failed" }));
        }
        let (id, secret) = (self.new_secret("app"), self.new_secret("app-secret"));
        let client = Client {
            secret: secret.clone(),
            redirects: get("redirect_uris").lines().map(str::to_owned).collect(),
            scopes: get("scopes"),
        };
        self.clients.insert(id.clone(), client);
        answer(200, &json!({ "client_id": id, "client_secret": secret }))
    }

    fn device(&mut self, asked: &Asked<'_>) -> Response {
        let form = pairs(std::str::from_utf8(asked.body).unwrap_or_default());
        if form.get("client_id").map(String::as_str) != Some(CLIENT_ID) {
            self.complain("an unknown client");
            return refused("invalid_client", "");
        }
        answer(
            200,
            &json!({
                "device_code": "planted-device-code",
                "user_code": "GULL-0001",
                "verification_uri": "https://tiny.example/device",
                "interval": 1,
                "expires_in": 600,
            }),
        )
    }

    fn session(&mut self) -> Response {
        let life_s = self.life_s.unwrap_or(7_200);
        let claims = json!({ "exp": now_s() + life_s, "n": self.issued });
        let claims = BASE64_URL_SAFE_NO_PAD.encode(claims.to_string());
        self.issued += 1;
        let access = format!("{PLANTED}.{claims}.{:08}", self.issued);
        let refresh = self.new_secret("renewal");
        self.access.insert(access.clone());
        self.refresh.insert(refresh.clone(), false);
        let body = json!({ "accessJwt": access, "refreshJwt": refresh, "handle": "ada.example" });
        answer(200, &body)
    }

    fn create_session(&mut self, asked: &Asked<'_>) -> Response {
        let posted: Value = serde_json::from_slice(asked.body).unwrap_or_default();
        if posted["identifier"] == "ada" && posted["password"] == PASSWORD {
            return self.session();
        }
        let said = format!("Invalid identifier or password {}", posted["password"]);
        answer(
            401,
            &json!({ "error": "AuthenticationRequired", "message": said }),
        )
    }

    fn refresh_session(&mut self, asked: &Asked<'_>) -> Response {
        let token = bearer(asked).unwrap_or_default();
        if !asked.body.is_empty() {
            self.complain("a body where none is wanted");
        }
        match self.refresh.get(&token).copied() {
            Some(is_used) if !is_used || self.grace => {
                self.refresh.insert(token, true);
                self.session()
            }
            _ => answer(
                400,
                &json!({ "error": "ExpiredToken", "message": format!("{token} has expired") }),
            ),
        }
    }

    /// Calls that need a credential.
    fn closed(&mut self, asked: &Asked<'_>, path: &str) -> Response {
        let is_known = match self.style {
            Style::Bearer => bearer(asked).is_some_and(|token| self.access.contains(&token)),
            Style::Key => {
                let key = pairs(asked.uri.query().unwrap_or_default()).remove("key");
                key.is_some_and(|key| self.access.contains(&key))
            }
            Style::OAuth1 => self.is_signed(asked),
        };
        if !is_known || self.locked {
            if self.says_expired_with_400 {
                return answer(400, &json!({ "error": "ExpiredToken" }));
            }
            return answer(401, &json!({ "error": "The access token is invalid" }));
        }
        if path == "/me" || path.ends_with("/verify_credentials") {
            return answer(200, &json!({ "acct": "ada", "name": "ada" }));
        }
        match path.strip_prefix("/users/") {
            // Servers repeat what they were sent, here in a part that no rule reads.
            Some(id) => {
                let sent = format!("{} {:?}", asked.uri, asked.headers.get("authorization"));
                answer(200, &json!({ "id": id, "name": "closed", "echo": sent }))
            }
            None => answer(404, &json!({})),
        }
    }

    /// RFC 5849, worked out a second time.
    fn is_signed(&mut self, asked: &Asked<'_>) -> bool {
        let header = asked.headers.get("authorization");
        let header = header.and_then(|value| value.to_str().ok()).unwrap_or("");
        let Some(list) = header.strip_prefix("OAuth ") else {
            return false;
        };
        let mut parts: Pairs = Pairs::new();
        for part in list.split(", ") {
            let Some((name, value)) = part.split_once('=') else {
                return false;
            };
            let value = value.trim_matches('"').replace('+', "%2B");
            parts.extend(pairs(&format!("{name}={value}")));
        }
        let signature = parts.remove("oauth_signature").unwrap_or_default();
        let get = |name: &str| parts.get(name).cloned().unwrap_or_default();
        let age_s = now_s() - get("oauth_timestamp").parse::<i64>().unwrap_or(0);
        let is_fresh = self.nonces.insert(get("oauth_nonce")) && age_s.abs() < 300;
        let mut all: Vec<String> = parts
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .chain(pairs(asked.uri.query().unwrap_or_default()))
            .map(|(name, value)| format!("{}={}", percent(&name), percent(&value)))
            .collect();
        all.sort();
        let host = asked.headers.get("host").and_then(|it| it.to_str().ok());
        let address = format!("http://{}{}", host.unwrap_or(""), asked.uri.path());
        let base = format!("GET&{}&{}", percent(&address), percent(&all.join("&")));
        let key = format!("{}&{}", percent(CONSUMER_SECRET), percent(TOKEN_SECRET));
        let mut mac = Hmac::<Sha1>::new_from_slice(key.as_bytes()).expect("a key");
        mac.update(base.as_bytes());
        let expected = BASE64_STANDARD.encode(mac.finalize().into_bytes());
        let is_right = is_fresh
            && signature == expected
            && get("oauth_consumer_key") == CONSUMER_KEY
            && get("oauth_token") == TOKEN;
        if !is_right {
            self.complain(format!("a wrong signature of {base}"));
        }
        is_right
    }
}

/// The counterpart is as strict as it says: what passes against it was right.
mod strictness {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    fn call(authority: &Authority, head: &str, body: &str) -> String {
        let host = authority.address.trim_start_matches("http://");
        let mut stream = TcpStream::connect(host).expect("a connection");
        let length = body.len();
        write!(
            stream,
            "{head}\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn post(authority: &Authority, body: &str) -> String {
        let secret = percent(CLIENT_SECRET);
        let body = format!("client_id={CLIENT_ID}&client_secret={secret}&{body}");
        call(authority, "POST /oauth/token HTTP/1.1", &body)
    }

    fn code(authority: &Authority, change: (&str, &str)) -> Option<String> {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest("verifier"));
        let target = format!(
            "/oauth/authorize?response_type=code&client_id={CLIENT_ID}&redirect_uri=http://127.0.0.1:7/\
             &scope=read&state=0123456789abcdef&code_challenge={challenge}&code_challenge_method=S256"
        );
        let target = target.replacen(change.0, change.1, 1);
        let answer = call(authority, &format!("GET {target} HTTP/1.1"), "");
        let (_, rest) = answer.split_once("?code=")?;
        rest.split('&').next().map(str::to_owned)
    }

    fn redeem(authority: &Authority, code: &str, redirect: &str, verifier: &str) -> String {
        post(
            authority,
            &format!(
                "grant_type=authorization_code&code={code}&redirect_uri={redirect}&code_verifier={verifier}"
            ),
        )
    }

    #[test]
    fn it_refuses_codes_redirects_and_verifiers_that_are_not_right() {
        const REDIRECT: &str = "http://127.0.0.1:7/";
        let authority = Authority::start(Style::Bearer).with_client(&[REDIRECT], "read");
        let fresh = || code(&authority, ("", "")).expect("a code");
        let right = fresh();
        assert!(redeem(&authority, &right, REDIRECT, "verifier").contains("access_token"));
        for refused in [
            redeem(&authority, &right, REDIRECT, "verifier"),
            redeem(&authority, &fresh(), REDIRECT, "another"),
            redeem(&authority, &fresh(), "http://127.0.0.1:8/", "verifier"),
            redeem(&authority, "never-given", REDIRECT, "verifier"),
        ] {
            assert!(refused.contains("invalid_grant"), "{refused}");
        }
        for change in [
            ("127.0.0.1:7", "127.0.0.1:8"),
            ("scope=read", "scope=write"),
            ("S256", "plain"),
            ("client_id=planted", "client_id=other"),
            ("state=0123456789abcdef", "state=0"),
        ] {
            assert_eq!(code(&authority, change), None, "{change:?}");
        }
    }

    #[test]
    fn it_refuses_a_renewal_token_that_was_used() {
        let authority = Authority::start(Style::Bearer).with_client(&[], "read");
        authority.knows().refresh.insert("once".to_owned(), false);
        let renew = || post(&authority, "grant_type=refresh_token&refresh_token=once");
        assert!(renew().contains("access_token"));
        assert!(renew().contains("invalid_grant"));
        assert!(authority.knows().refresh.is_empty(), "nobody is believed");
        let stranger = call(
            &authority,
            "POST /oauth/token HTTP/1.1",
            "client_id=x&client_secret=y&grant_type=client_credentials",
        );
        assert!(stranger.contains("invalid_client"));
    }

    #[test]
    fn it_refuses_signatures_and_nonces_that_are_not_right() {
        use kittiwake_network::auth::{OAuth1Keys, Stamp, authorization};
        let authority = Authority::start(Style::OAuth1);
        let url = format!("{}/users/1?a=b", authority.address);
        let url = url::Url::parse(&url).expect("an address");
        let keys = |token_secret: &str| OAuth1Keys {
            consumer_key: CONSUMER_KEY.into(),
            consumer_secret: CONSUMER_SECRET.into(),
            token: TOKEN.into(),
            token_secret: token_secret.into(),
        };
        let ask = |keys: &OAuth1Keys, target: &str, nonce: &str, unix_s: i64| {
            let nonce = nonce.to_owned();
            let header = authorization(keys, "GET", &url, &Stamp { unix_s, nonce });
            let header = header.expose_secret();
            let head = format!("GET {target} HTTP/1.1\r\nauthorization: {header}");
            call(&authority, &head, "")
        };
        let right = keys(TOKEN_SECRET);
        let is_let_in = |answer: String| answer.starts_with("HTTP/1.1 200");
        assert!(is_let_in(ask(&right, "/users/1?a=b", "n1", now_s())));
        assert!(
            !is_let_in(ask(&right, "/users/1?a=b", "n1", now_s())),
            "used"
        );
        assert!(
            !is_let_in(ask(&right, "/users/2?a=b", "n2", now_s())),
            "path"
        );
        assert!(
            !is_let_in(ask(&right, "/users/1?a=c", "n3", now_s())),
            "query"
        );
        assert!(!is_let_in(ask(&right, "/users/1?a=b", "n4", 1)), "old");
        assert!(!is_let_in(ask(&keys("no"), "/users/1?a=b", "n5", now_s())));
    }
}

fn bearer(asked: &Asked<'_>) -> Option<String> {
    let value = asked.headers.get("authorization")?.to_str().ok()?;
    value.strip_prefix("Bearer ").map(str::to_owned)
}

fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| {
            if plain(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
