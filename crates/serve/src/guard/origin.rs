//! Where a request says that it goes and comes from. Pure.
//!
//! A page of somebody else's that a person looks at can make the person's browser send requests here. It
//! can neither choose the `Origin` and `Sec-Fetch-Site` that the browser adds, nor, without our leave, a
//! content type other than those of forms. And if its name is made to resolve to this machine, so that it
//! may read answers, the `Host` is still its own.

use crate::{Problem, Settings};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use std::net::IpAddr;
use url::{Host, Url};

/// What kind of request it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    /// It changes nothing.
    pub is_safe: bool,
    pub is_api: bool,
    /// It becomes a WebSocket.
    pub is_upgrade: bool,
    pub has_cookie: bool,
}

/// The host must be one of ours: a name that somebody else can point at us is none.
pub(crate) fn check_host(settings: &Settings, headers: &HeaderMap) -> Result<(), Problem> {
    let mut given = headers.get_all(header::HOST).iter();
    let host = given.next().and_then(|host| host.to_str().ok());
    if given.next().is_none() && host.is_some_and(|host| is_ours(settings, "http", host)) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::MISDIRECTED_REQUEST,
        "this server is not called so; use the address that it printed, or start it with --public-url",
    ))
}

/// What changes something, and what is read by scripts, must come from our own pages or from a program.
pub(crate) fn check_origin(
    settings: &Settings,
    headers: &HeaderMap,
    asked: Asked,
) -> Result<(), Problem> {
    let text = |name: HeaderName| match headers.get(name) {
        None => Ok(None),
        Some(value) => value.to_str().map(Some).map_err(|_| foreign()),
    };
    let origin = text(header::ORIGIN)?;
    let site = text(HeaderName::from_static("sec-fetch-site"))?;
    let is_own_site = site.is_some_and(|site| site == "same-origin");
    let is_typed_in = site.is_some_and(|site| site == "none");
    let is_own_origin = origin.is_some_and(|origin| is_own_origin(settings, origin));
    if asked.is_safe && !asked.is_upgrade {
        // Links from elsewhere lead to pages, and to nothing else.
        let is_fine = site.is_none() || is_own_site || is_typed_in || !asked.is_api;
        return if is_fine { Ok(()) } else { Err(foreign()) };
    }
    match (origin, site) {
        (Some("null") | None, Some(_)) if is_own_site => Ok(()),
        (Some(_), None) if is_own_origin => Ok(()),
        (Some(_), Some(_)) if is_own_origin && is_own_site => Ok(()),
        // A program: no browser is without both. What it knows it must say itself.
        (None, None) if asked.is_upgrade => Ok(()),
        (None, None) if !asked.has_cookie && is_beyond_forms(headers) => Ok(()),
        (None, None) => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "a program sends Content-Type: application/json and HTTP Basic; a session is for browsers",
        )),
        _ => Err(foreign()),
    }
}

fn foreign() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "this was asked by a page of another site; open the dashboard itself",
    )
}

/// Whether a page of another site could not have sent it without asking first.
fn is_beyond_forms(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

fn is_own_origin(settings: &Settings, origin: &str) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else {
        return false;
    };
    matches!(scheme, "http" | "https") && is_ours(settings, scheme, authority)
}

/// Whether `host[:port]` is this server.
fn is_ours(settings: &Settings, scheme: &str, authority: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"/?#@\\".contains(&byte);
    if authority.is_empty() || !authority.bytes().all(is_plain) {
        return false;
    }
    let Ok(url) = Url::parse(&format!("{scheme}://{authority}/")) else {
        return false;
    };
    if let Some(public) = &settings.public_url
        && url.host() == public.host()
        && (url.port_or_known_default() == public.port_or_known_default()
            // The proxy is asked over TLS, and we are not.
            || authority == public.host_str().unwrap_or_default())
    {
        return true;
    }
    if scheme != "http" || url.port_or_known_default() != Some(settings.listen.port()) {
        return false;
    }
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" && settings.is_reached_by_loopback(),
        Some(Host::Ipv4(address)) => is_own_address(settings, address.into()),
        Some(Host::Ipv6(address)) => is_own_address(settings, address.into()),
        None => false,
    }
}

/// An address cannot be made to mean another machine, as a name can.
fn is_own_address(settings: &Settings, address: IpAddr) -> bool {
    let listen = settings.listen.ip();
    listen.is_unspecified() || listen == address || (listen.is_loopback() && address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(listen: &str, public: Option<&str>) -> Settings {
        Settings {
            listen: listen.parse().unwrap(),
            public_url: public.map(|url| Url::parse(url).unwrap()),
            has_password: true,
        }
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn only_names_that_nobody_else_can_point_at_us_are_ours() {
        let loopback = settings("127.0.0.1:7171", None);
        for host in [
            "127.0.0.1:7171",
            "localhost:7171",
            "LOCALHOST:7171",
            "[::1]:7171",
        ] {
            assert!(is_ours(&loopback, "http", host), "{host}");
        }
        for host in [
            "",
            "evil.example:7171",
            "localhost",
            "localhost:80",
            "localhost:7171@evil.example",
            "127.0.0.1:7171.evil.example",
            "localhost.evil.example:7171",
            "10.0.0.1:7171",
            "localhost:7171/",
            "localhost:99999",
            "[::1",
            "a b",
        ] {
            assert!(!is_ours(&loopback, "http", host), "{host}");
        }
        let public = settings("0.0.0.0:7171", Some("https://crawl.example"));
        assert!(is_ours(&public, "https", "crawl.example"));
        assert!(is_ours(&public, "http", "crawl.example"));
        assert!(is_ours(&public, "http", "10.0.0.1:7171"));
        assert!(!is_ours(&public, "https", "crawl.example.evil.example"));
    }

    #[test]
    fn a_request_names_one_host() {
        let settings = settings("127.0.0.1:7171", None);
        assert!(check_host(&settings, &headers(&[("host", "localhost:7171")])).is_ok());
        assert!(check_host(&settings, &headers(&[])).is_err());
        let mut twice = headers(&[("host", "localhost:7171")]);
        twice.append(header::HOST, "evil.example".parse().unwrap());
        assert!(check_host(&settings, &twice).is_err());
    }

    #[test]
    fn what_another_site_makes_a_browser_send_is_refused() {
        let settings = settings("127.0.0.1:7171", None);
        let judge = |pairs: &[(&'static str, &'static str)], is_safe, is_api, is_upgrade| {
            let headers = headers(pairs);
            let asked = Asked {
                is_safe,
                is_api,
                is_upgrade,
                has_cookie: headers.contains_key(header::COOKIE),
            };
            check_origin(&settings, &headers, asked).is_ok()
        };
        let change = |pairs: &[(&'static str, &'static str)]| judge(pairs, false, true, false);
        let own = ("origin", "http://localhost:7171");
        let json = ("content-type", "application/json");
        let cookie = ("cookie", "kittiwake-7171=a");
        assert!(change(&[own, ("sec-fetch-site", "same-origin"), cookie]));
        assert!(change(&[own]));
        assert!(change(&[json]));
        assert!(change(&[
            ("origin", "null"),
            ("sec-fetch-site", "same-origin")
        ]));
        for refused in [
            &[("origin", "https://evil.example"), json][..],
            &[("origin", "null")],
            &[
                ("origin", "http://localhost:8080"),
                ("sec-fetch-site", "same-site"),
            ],
            &[own, ("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "cross-site"), json],
            &[("content-type", "text/plain")],
            &[],
            &[json, cookie],
        ] {
            assert!(!change(refused), "{refused:?}");
        }
        let read =
            |site: &'static str, is_api| judge(&[("sec-fetch-site", site)], true, is_api, false);
        assert!(read("cross-site", false) && !read("cross-site", true));
        assert!(read("none", true) && read("same-origin", true));
        let upgrade = |pairs: &[(&'static str, &'static str)]| judge(pairs, true, true, true);
        assert!(upgrade(&[own]) && upgrade(&[]));
        assert!(!upgrade(&[("origin", "https://evil.example")]));
    }
}
