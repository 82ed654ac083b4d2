//! Log-in by a form on a web page: name and password for the cookies of a session.
//!
//! The page is asked for as a browser asks for it, since it sets cookies and hides a word in its form that
//! has to come back. Whatever the form says, its answer goes to the origin of the page and nowhere else.

use super::{AuthCall, AuthError, Issued, MissingSecret, Place, Secrets, secret, secret_names};
use crate::charset;
use crate::web::dom::{Css, Dom, Element};
use kittiwake_model::Secret;
use std::fmt;
use url::{Url, form_urlencoded};

/// What the single cookies of a session are called among its secrets: `cookie.NAME`.
pub const COOKIE_PREFIX: &str = "cookie.";
const COOKIES_MAX: usize = 30;
const COOKIE_BYTES_MAX: usize = 4_096;
const FIELDS_MAX: usize = 100;
const FIELD_BYTES_MAX: usize = 65_536;

/// Where the form is, and what is typed in where.
#[derive(Debug, Clone)]
pub struct FormFlow {
    pub page: Place,
    /// Which form it is; the first with the field for the password, if nothing is said.
    pub css: Option<Css>,
    pub identifier_field: String,
    pub password_field: String,
    /// The cookies that make up the session; all if none is named.
    pub cookies: Vec<String>,
}

/// What a call of a log-in was answered with. `Debug` shows nothing of it.
pub struct AuthAnswer {
    pub status: u16,
    pub content_type: Option<String>,
    pub location: Option<String>,
    pub set_cookies: Vec<Secret>,
    pub body: Vec<u8>,
}

impl fmt::Debug for AuthAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AuthAnswer({})", self.status)
    }
}

/// The form as the page has it, to be filled in and sent.
pub struct OpenForm {
    action: Url,
    hidden: Vec<(String, Secret)>,
    jar: Jar,
}

impl fmt::Debug for OpenForm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OpenForm({})", self.action.path())
    }
}

/// Cookies by their names.
#[derive(Clone, Default)]
struct Jar {
    cookies: Vec<(String, Secret)>,
    /// When the first of them is over.
    seconds_left: Option<i64>,
}

impl FormFlow {
    /// Asks for the page with the form.
    pub fn page_call(&self, base: &Url) -> AuthCall {
        AuthCall {
            is_post: false,
            url: self.page.at(base),
            headers: vec![accept_pages()],
            secret_headers: Vec::new(),
            body: None,
        }
    }

    /// Finds the form on the page.
    pub fn open(&self, base: &Url, answer: &AuthAnswer) -> Result<OpenForm, AuthError> {
        if !(200..300).contains(&answer.status) {
            return Err(no_page(answer.status));
        }
        let page = self.page.at(base);
        let mut jar = Jar::default();
        jar.take_in(&answer.set_cookies, &page);
        let dom = page_of(answer)?;
        let form = self.form_on(&dom).ok_or_else(|| no_form("log-in page"))?;
        let action = form.attribute("action").unwrap_or_default();
        let action = page.join(action.trim()).ok();
        let action = action.filter(|it| it.origin() == page.origin());
        let Some(mut action) = action else {
            let reason = "the log-in form leads to another host than that of its page";
            return Err(AuthError::Unusable(reason.to_owned()));
        };
        action.set_fragment(None);
        let is_post = form.attribute("method");
        if !is_post.is_some_and(|it| it.trim().eq_ignore_ascii_case("post")) {
            // What is typed in would stand in an address.
            let reason = "the log-in form is not sent by POST";
            return Err(AuthError::Unusable(reason.to_owned()));
        }
        Ok(OpenForm {
            action,
            hidden: self.hidden_in(form)?,
            jar,
        })
    }

    /// Fills the form in.
    pub fn submit_call(
        &self,
        base: &Url,
        form: &OpenForm,
        secrets: &Secrets,
    ) -> Result<AuthCall, MissingSecret> {
        let identifier = secret(secrets, secret_names::IDENTIFIER)?;
        let password = secret(secrets, secret_names::PASSWORD)?;
        let mut body = form_urlencoded::Serializer::new(String::new());
        for (name, value) in &form.hidden {
            body.append_pair(name, value.expose_secret());
        }
        body.append_pair(&self.identifier_field, identifier.expose_secret());
        body.append_pair(&self.password_field, password.expose_secret());
        let mut secret_headers = Vec::new();
        if !form.jar.cookies.is_empty() {
            secret_headers.push(("cookie".to_owned(), form.jar.header(&[])));
        }
        let page = self.page.at(base);
        let headers = vec![
            accept_pages(),
            (
                "content-type".to_owned(),
                "application/x-www-form-urlencoded".to_owned(),
            ),
            // Forms are taken only if they come from their own page, as a browser says.
            ("origin".to_owned(), page.origin().ascii_serialization()),
            ("referer".to_owned(), page.to_string()),
        ];
        Ok(AuthCall {
            is_post: true,
            url: form.action.clone(),
            headers,
            secret_headers,
            body: Some(Secret::new(body.finish())),
        })
    }

    /// The session that the form was answered with.
    pub fn read(
        &self,
        base: &Url,
        form: OpenForm,
        answer: &AuthAnswer,
    ) -> Result<Issued, AuthError> {
        let page = self.page.at(base);
        match answer.status {
            200..=299 if self.form_on(&page_of(answer)?).is_some() => return Err(refused()),
            200..=299 => {}
            300..=399 => {
                let target = answer.location.as_deref();
                let target = target.and_then(|it| form.action.join(it).ok());
                if target.is_none_or(|it| it.path() == page.path()) {
                    return Err(refused());
                }
            }
            status => return Err(no_page(status)),
        }
        let mut jar = form.jar;
        jar.take_in(&answer.set_cookies, &page);
        if let Some(missing) = self.cookies.iter().find(|name| !jar.has(name)) {
            let reason = format!("no cookie `{missing}` was set");
            return Err(AuthError::Unusable(reason));
        }
        if jar.cookies.is_empty() {
            return Err(AuthError::Unusable("no cookie was set".to_owned()));
        }
        let mut secrets = Secrets::new();
        let header = jar.header(&self.cookies);
        secrets.insert(secret_names::ACCESS_TOKEN.to_owned(), header);
        // Each by itself, too: servers write them on their pages.
        for (name, value) in jar.cookies {
            if self.is_kept(&name) {
                secrets.insert(format!("{COOKIE_PREFIX}{name}"), value);
            }
        }
        Ok(Issued {
            secrets,
            expires_in_s: jar.seconds_left,
            ..Issued::default()
        })
    }

    fn is_kept(&self, name: &str) -> bool {
        self.cookies.is_empty() || self.cookies.iter().any(|it| it == name)
    }

    fn form_on<'d>(&self, dom: &'d Dom) -> Option<Element<'d>> {
        if let Some(css) = &self.css {
            return dom.root().find(css).next();
        }
        let name = &self.password_field;
        let has_field = |form: &Element<'_>| {
            let mut inputs = form.named("input").into_iter();
            inputs.any(|input| input.attribute("name") == Some(name))
        };
        dom.root().named("form").into_iter().find(has_field)
    }

    /// What the form brings along: hidden words, and what is chosen already.
    fn hidden_in(&self, form: Element<'_>) -> Result<Vec<(String, Secret)>, AuthError> {
        let mut hidden = Vec::new();
        let mut bytes = 0;
        for input in form.named("input") {
            let Some(name) = input.attribute("name").filter(|it| !it.is_empty()) else {
                continue;
            };
            let kind = input
                .attribute("type")
                .unwrap_or("text")
                .to_ascii_lowercase();
            let is_chosen = match kind.as_str() {
                "submit" | "button" | "image" | "reset" | "file" | "password" => false,
                "checkbox" | "radio" => input.attribute("checked").is_some(),
                _ => true,
            };
            let is_ours = name == self.identifier_field || name == self.password_field;
            if !is_chosen || is_ours {
                continue;
            }
            let value = input.attribute("value").unwrap_or_default();
            bytes += name.len() + value.len();
            if hidden.len() >= FIELDS_MAX || bytes > FIELD_BYTES_MAX {
                let reason = "the log-in form holds too much";
                return Err(AuthError::Unusable(reason.to_owned()));
            }
            hidden.push((name.to_owned(), Secret::new(value)));
        }
        Ok(hidden)
    }
}

fn accept_pages() -> (String, String) {
    let pages = "text/html, application/xhtml+xml;q=0.9, */*;q=0.1";
    ("accept".to_owned(), pages.to_owned())
}

fn page_of(answer: &AuthAnswer) -> Result<Dom, AuthError> {
    let text = charset::decode_page(&answer.body, answer.content_type.as_deref(), &mut 0);
    Dom::parse(&text).map_err(|reason| AuthError::Unusable(reason.to_owned()))
}

fn no_form(place: &str) -> AuthError {
    AuthError::Unusable(format!("there is no log-in form on the {place}"))
}

fn no_page(status: u16) -> AuthError {
    if status >= 500 || matches!(status, 408 | 425 | 429) {
        return AuthError::Trouble { status };
    }
    AuthError::Refused {
        code: format!("http {status}"),
        detail: String::new(),
    }
}

fn refused() -> AuthError {
    AuthError::Refused {
        code: "the log-in form comes back".to_owned(),
        detail: "name and password may be wrong".to_owned(),
    }
}

impl Jar {
    fn has(&self, name: &str) -> bool {
        self.cookies.iter().any(|(known, _)| known == name)
    }

    /// The cookies as they are sent: those of these names, or all.
    fn header(&self, names: &[String]) -> Secret {
        let is_wanted = |name: &String| names.is_empty() || names.contains(name);
        let wanted = self.cookies.iter().filter(|(name, _)| is_wanted(name));
        let pairs: Vec<String> = wanted
            .map(|(name, value)| format!("{name}={}", value.expose_secret()))
            .collect();
        Secret::new(pairs.join("; "))
    }

    /// Takes in what an answer sets, as RFC 6265 has it; what is for another host is none of ours.
    fn take_in(&mut self, set_cookies: &[Secret], page: &Url) {
        for line in set_cookies {
            let Some(cookie) = Cookie::of(line.expose_secret()) else {
                continue;
            };
            if !cookie.is_for(page) {
                continue;
            }
            self.cookies.retain(|(name, _)| *name != cookie.name);
            if cookie.seconds_left.is_some_and(|seconds| seconds <= 0) {
                continue;
            }
            if self.cookies.len() < COOKIES_MAX {
                let value = Secret::new(cookie.value);
                self.cookies.push((cookie.name.to_owned(), value));
                let seconds = [self.seconds_left, cookie.seconds_left];
                self.seconds_left = seconds.into_iter().flatten().min();
            }
        }
    }
}

/// One line of `Set-Cookie`.
struct Cookie<'t> {
    name: &'t str,
    value: &'t str,
    domain: Option<&'t str>,
    is_secure: bool,
    seconds_left: Option<i64>,
}

impl<'t> Cookie<'t> {
    fn of(line: &'t str) -> Option<Self> {
        let mut parts = line.split(';');
        let (name, value) = parts.next()?.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let is_plain = |text: &str| text.bytes().all(|it| it.is_ascii_graphic() && it != b',');
        let is_sound = !name.is_empty() && name.len() + value.len() <= COOKIE_BYTES_MAX;
        if !is_sound || !is_plain(name) || !value.bytes().all(|it| (0x20..0x7f).contains(&it)) {
            return None;
        }
        let mut cookie = Self {
            name,
            value,
            domain: None,
            is_secure: false,
            seconds_left: None,
        };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let (key, value) = (key.trim(), value.trim());
            if key.eq_ignore_ascii_case("domain") && !value.is_empty() {
                cookie.domain = Some(value.trim_start_matches('.'));
            } else if key.eq_ignore_ascii_case("max-age") {
                cookie.seconds_left = value.parse().ok();
            } else if key.eq_ignore_ascii_case("secure") {
                cookie.is_secure = true;
            }
        }
        Some(cookie)
    }

    fn is_for(&self, page: &Url) -> bool {
        let host = page.host_str().unwrap_or_default();
        let is_domain = |domain: &str| {
            let domain = domain.to_ascii_lowercase();
            host == domain || host.ends_with(&format!(".{domain}"))
        };
        self.domain.is_none_or(is_domain) && (!self.is_secure || is_safe(page))
    }
}

/// Whether what is sent there is read by nobody else.
fn is_safe(page: &Url) -> bool {
    let is_own = matches!(page.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"));
    page.scheme() == "https" || is_own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> FormFlow {
        FormFlow {
            page: Place::Path("/login".to_owned()),
            css: None,
            identifier_field: "user".to_owned(),
            password_field: "pass".to_owned(),
            cookies: vec!["sid".to_owned()],
        }
    }

    fn base() -> Url {
        Url::parse("https://birds.example").unwrap()
    }

    fn answer(status: u16, cookies: &[&str], body: &str) -> AuthAnswer {
        AuthAnswer {
            status,
            content_type: Some("text/html".to_owned()),
            location: None,
            set_cookies: cookies.iter().map(|it| Secret::new(*it)).collect(),
            body: body.as_bytes().to_vec(),
        }
    }

    const PAGE: &str = "<form action=/search><input name=q></form>\
        <form method=POST action='/session?x=1'><input type=hidden name=csrf value='a&amp;b'>\
        <input name=user><input type=password name=pass value=old>\
        <input type=checkbox name=remember value=1 checked><input type=checkbox name=spy value=1>\
        <input type=submit name=go value=Go></form>";

    fn secrets() -> Secrets {
        Secrets::from([
            ("identifier".to_owned(), Secret::new("ann@birds")),
            ("password".to_owned(), Secret::new("p&ss word")),
        ])
    }

    #[test]
    fn the_form_is_filled_in_with_what_it_hides() {
        let open = flow()
            .open(&base(), &answer(200, &["pre=1; Path=/"], PAGE))
            .unwrap();
        let call = flow().submit_call(&base(), &open, &secrets()).unwrap();
        assert_eq!(call.url.as_str(), "https://birds.example/session?x=1");
        assert_eq!(
            call.body.unwrap().expose_secret(),
            "csrf=a%26b&remember=1&user=ann%40birds&pass=p%26ss+word"
        );
        assert_eq!(call.secret_headers[0].1.expose_secret(), "pre=1");
        assert!(
            call.headers
                .contains(&("origin".to_owned(), "https://birds.example".to_owned()))
        );
    }

    #[test]
    fn what_would_lead_the_password_astray_is_refused() {
        let open = |page: &str| flow().open(&base(), &answer(200, &[], page)).unwrap_err();
        let elsewhere = PAGE.replace("/session", "https://evil.example/session");
        assert!(open(&elsewhere).to_string().contains("another host"));
        let plain = PAGE.replace("/session", "http://birds.example/session");
        assert!(open(&plain).to_string().contains("another host"));
        let by_address = PAGE.replace("method=POST", "method=get");
        assert!(open(&by_address).to_string().contains("not sent by POST"));
        assert!(
            open("<form method=post></form>")
                .to_string()
                .contains("no log-in form")
        );
        let trouble = flow().open(&base(), &answer(503, &[], "")).unwrap_err();
        assert_eq!(trouble, AuthError::Trouble { status: 503 });
    }

    #[test]
    fn a_session_is_the_cookies_that_are_named() {
        let open = || {
            flow()
                .open(&base(), &answer(200, &["sid=before", "pre=1"], PAGE))
                .unwrap()
        };
        let read = |answer: &AuthAnswer| flow().read(&base(), open(), answer);
        let mut done = answer(303, &["sid=abcdef123; Max-Age=60; HttpOnly", "ad=x"], "");
        done.location = Some("/home".to_owned());
        let issued = read(&done).unwrap();
        assert_eq!(
            issued.secrets["access_token"].expose_secret(),
            "sid=abcdef123"
        );
        assert_eq!(issued.secrets["cookie.sid"].expose_secret(), "abcdef123");
        assert_eq!((issued.secrets.len(), issued.expires_in_s), (2, Some(60)));
        assert!(!format!("{issued:?} {done:?}").contains("abcdef"));
        // Back at the form.
        done.location = Some("/login?failed".to_owned());
        assert!(matches!(read(&done), Err(AuthError::Refused { .. })));
        assert!(matches!(
            read(&answer(200, &[], PAGE)),
            Err(AuthError::Refused { .. })
        ));
        let mut gone = answer(303, &["sid=; Max-Age=0"], "");
        gone.location = Some("/home".to_owned());
        assert!(
            read(&gone)
                .unwrap_err()
                .to_string()
                .contains("no cookie `sid`")
        );
    }

    #[test]
    fn cookies_for_others_and_cookies_that_are_none_are_left_out() {
        let taken = |line: &str| {
            let mut jar = Jar::default();
            jar.take_in(
                &[Secret::new(line)],
                &Url::parse("https://a.birds.example/").unwrap(),
            );
            jar.cookies.len()
        };
        for line in [
            "a=b",
            "a=b; Domain=birds.example",
            "a=b; domain=.A.birds.example; Secure",
            "a=",
        ] {
            assert_eq!(taken(line), 1, "{line}");
        }
        for line in [
            "a=b; Domain=evil.example",
            "a=b; Domain=irds.example",
            "=b",
            "a",
            "a b=c",
            "a=b\r\nx: y",
            "a=b; Max-Age=-1",
        ] {
            assert_eq!(taken(line), 0, "{line}");
        }
        assert_eq!(taken(&format!("a={}", "x".repeat(5_000))), 0);
        let mut plain = Jar::default();
        plain.take_in(
            &[Secret::new("a=b; Secure")],
            &Url::parse("http://birds.example").unwrap(),
        );
        assert!(plain.cookies.is_empty());
    }
}
