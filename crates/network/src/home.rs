//! Who is asked about a subject: the host of the crawl, or the subject's own.

use crate::network::{Network, Query};
use crate::shape::CANONICAL;
use kittiwake_model::{Identity, Name};
use url::{Host, Url};

/// One of the ids by which a type says where its objects live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HomeRule {
    /// On the host of their canonical id, which is an address.
    Canonical,
    /// On the host of this alias, which is an address.
    Address(Name),
    /// On the host on which they have this alias.
    Account(Name),
}

impl HomeRule {
    /// The id that tells it: an alias by its name, or `canonical`.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Canonical => CANONICAL,
            Self::Address(name) | Self::Account(name) => name,
        }
    }

    fn home(&self, subject: &Identity) -> Option<Address> {
        let alias = |name: &Name| subject.aliases.iter().find(|it| it.name == *name);
        match self {
            Self::Canonical => Address::of(subject.canonical.as_deref()?),
            Self::Address(name) => Address::of(&alias(name)?.id),
            Self::Account(name) => Address::of_host(&alias(name)?.host),
        }
    }
}

/// Who is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whom {
    /// The subject's own host, where that is known and may be asked; else that of the crawl.
    Home,
    /// The subject's own host and nobody else.
    Own,
    /// The host of the crawl.
    Crawl,
    /// A host that the definition names.
    Named(Name),
    /// The host that stands in this alias of the subject, behind the `@`.
    Alias(Name),
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

impl Address {
    /// Where a host is asked, by its name as ids are valid on it. Only this very machine is asked
    /// without encryption.
    pub fn of_host(host: &str) -> Option<Self> {
        let plain = Self::of(&format!("http://{host}/"));
        let found = plain.or_else(|| Self::of(&format!("https://{host}/")))?;
        (found.host == host).then_some(found)
    }
}

/// `{canonical:address}`, alone: an id that is itself the address that is asked.
pub(crate) fn address_id(path: &str) -> Option<&str> {
    let id = path.strip_prefix('{')?.strip_suffix(":address}")?;
    (!id.contains(['{', '}'])).then_some(id)
}

impl Query {
    /// The id of the subject that is itself the address that is asked, if it is one.
    pub(crate) fn address_id(&self) -> Option<&str> {
        address_id(&self.path)
    }

    /// Who is asked it.
    pub const fn whom(&self) -> &Whom {
        &self.whom
    }
}

impl Network {
    /// Where an object lives, if that is known.
    pub fn home(&self, subject: &Identity) -> Option<Address> {
        if self.host_kind.as_ref() == Some(&subject.kind) {
            return Address::of_host(subject.canonical.as_deref()?);
        }
        let rules = &self.find_type(&subject.kind)?.home;
        rules.iter().find_map(|rule| rule.home(subject))
    }

    /// Whether it says of anything where that lives.
    pub fn has_homes(&self) -> bool {
        self.types.iter().any(|kind| !kind.home.is_empty())
    }

    /// The ids that tell where objects of this type live: aliases by their names, or `canonical`.
    pub fn home_ids(&self, kind: &str) -> impl Iterator<Item = &str> {
        let rules = self.find_type(kind).into_iter().flat_map(|it| &it.home);
        rules.map(HomeRule::id)
    }

    /// The host that stands in an alias of a subject, behind the last `@`.
    pub fn host_in(&self, subject: &Identity, alias: &str) -> Option<Address> {
        let mut aliases = subject.aliases.iter();
        let alias = aliases.find(|it| &*it.name == alias)?;
        let (_, host) = alias.id.rsplit_once('@')?;
        Address::of_host(&host.to_lowercase())
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
