//! Who is asked about a subject: the host of the crawl, or the subject's own.

use crate::network::{Network, Query};
use kittiwake_model::Identity;
use url::{Host, Url};

/// Where a type says that its objects live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HomeRule {
    /// On the host of their canonical id, which is an address.
    Canonical,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whom {
    /// The subject's own host, where that is known and may be asked; else that of the crawl.
    Home,
    /// The host of the crawl.
    Crawl,
}

/// A host as ids are valid on it, and where it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub host: String,
    pub base: Url,
}

impl Address {
    /// The host of an address that somebody has written somewhere. Nothing but its scheme, name and
    /// port is taken. Only this very machine is asked without encryption.
    pub fn of(text: &str) -> Option<Self> {
        const TEXT_MAX: usize = 2_048;
        if text.len() > TEXT_MAX {
            return None;
        }
        let url = Url::parse(text).ok()?;
        let host = url.host()?;
        let is_plain = url.username().is_empty() && url.password().is_none();
        let is_encrypted = url.scheme() == "https";
        if !is_plain || !(is_encrypted || url.scheme() == "http" && is_this_machine(&host)) {
            return None;
        }
        let name = host.to_string();
        let host = match url.port() {
            Some(port) => format!("{name}:{port}"),
            None => name,
        };
        let base = Url::parse(&format!("{}://{host}/", url.scheme())).ok()?;
        Some(Self { host, base })
    }
}

/// Whether a host is this machine by its very name.
fn is_this_machine(host: &Host<&str>) -> bool {
    match host {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
        Host::Domain(name) => *name == "localhost" || name.ends_with(".localhost"),
    }
}

impl Network {
    /// The host that a query about a subject is best asked of, if that is not simply the crawl's.
    pub fn best_host(&self, query: &Query, subject: &Identity) -> Option<Address> {
        match query.whom {
            Whom::Crawl => None,
            Whom::Home => self.home(subject),
        }
    }

    /// Where an object lives, if that is known.
    pub fn home(&self, subject: &Identity) -> Option<Address> {
        match self.find_type(&subject.kind)?.home? {
            HomeRule::Canonical => Address::of(subject.canonical.as_deref()?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<(String, String)> {
        let address = Address::of(text)?;
        Some((address.host, address.base.to_string()))
    }

    #[test]
    fn the_host_of_an_address_is_its_name_and_its_port() {
        let expected = |host: &str, base: &str| Some((host.to_owned(), base.to_owned()));
        assert_eq!(
            of("https://Birds.Example/users/7?a#b"),
            expected("birds.example", "https://birds.example/")
        );
        assert_eq!(
            of("https://birds.example:8443/x"),
            expected("birds.example:8443", "https://birds.example:8443/")
        );
        assert_eq!(
            of("http://i07.localhost:8080/users/7"),
            expected("i07.localhost:8080", "http://i07.localhost:8080/")
        );
        assert_eq!(of("http://[::1]:80/"), expected("[::1]", "http://[::1]/"));
    }

    #[test]
    fn what_is_no_address_of_a_host_is_none() {
        for text in [
            "",
            "birds.example",
            "did:plc:abc",
            "http://birds.example/",
            "http://169.254.169.254/latest",
            "http://localhost.example/",
            "ftp://birds.example/",
            "https://user:secret@birds.example/",
            "file:///etc/passwd",
            "https://",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
        assert_eq!(
            of(&format!("https://a.example/{}", "x".repeat(3_000))),
            None
        );
    }
}
