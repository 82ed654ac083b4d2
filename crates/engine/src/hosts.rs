//! Which hosts a crawl may ask besides the one that it was told to.

use kittiwake_network::Address;
use std::collections::{BTreeSet, HashSet};

/// What the user has written about hosts. Nothing is allowed that is not written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostPatterns {
    patterns: Vec<Pattern>,
    /// Hosts of seeds, which may be many.
    named: HashSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Any,
    /// This one, with its port.
    Exactly(String),
    /// All names that end so, with the dot and perhaps a port.
    Under(String),
}

/// How well the user knows a host that may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// It was named: it may be on this machine or in this network.
    Named,
    /// It came from somebody's answer and fits a pattern: it has to be a public one.
    Learnt,
}

/// Why a pattern of hosts is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no pattern of hosts; write for example any, *.example.org or birds.example")]
pub struct PatternError(String);

impl HostPatterns {
    /// Reads patterns as a user writes them.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, PatternError> {
        texts
            .into_iter()
            .map(|text| Pattern::parse(text).ok_or_else(|| PatternError(text.to_owned())))
            .collect::<Result<_, _>>()
            .map(|patterns| Self {
                patterns,
                named: HashSet::new(),
            })
    }

    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty() && self.named.is_empty()
    }

    /// Takes in a host that the user has named otherwise than by a pattern.
    pub(crate) fn name(&mut self, host: String) {
        self.named.insert(host);
    }

    /// The hosts that were so named, in order.
    pub(crate) fn named(&self) -> BTreeSet<&str> {
        self.named.iter().map(String::as_str).collect()
    }

    /// Whether they fit nothing but this machine.
    pub fn are_this_machine(&self) -> bool {
        // No other host has an address without encryption.
        let is_here = |host: &str| Address::of(&format!("http://{host}/")).is_some();
        let are_here = self.patterns.iter().all(|pattern| match pattern {
            Pattern::Any => false,
            Pattern::Exactly(host) => is_here(host),
            Pattern::Under(end) => without_port(end).ends_with(".localhost"),
        });
        are_here && self.named.iter().all(|host| is_here(host))
    }

    /// Whether a host may be asked.
    pub fn allowed(&self, address: &Address) -> Option<Allowed> {
        if self.named.contains(&address.host) {
            return Some(Allowed::Named);
        }
        let fits = self.patterns.iter().filter(|it| it.fits(&address.host));
        let fits: Vec<&Pattern> = fits.collect();
        if fits.is_empty() {
            return None;
        }
        // Whoever writes `*.localhost` means this machine; under any other name a stranger may hang up
        // a sign that points to it.
        let is_named = fits.iter().any(|pattern| match pattern {
            Pattern::Any => false,
            Pattern::Exactly(_) => true,
            Pattern::Under(end) => without_port(end).ends_with(".localhost"),
        });
        Some(if is_named {
            Allowed::Named
        } else {
            Allowed::Learnt
        })
    }
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_end_matches('.').to_lowercase();
        if text == "any" || text == "*" {
            return Some(Self::Any);
        }
        let (is_under, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text.as_str()),
        };
        // What can be the host of an address, and nothing more.
        let address = Address::of(&format!("https://{name}/"))?;
        if address.host != name || name.contains('*') {
            return None;
        }
        Some(if is_under {
            Self::Under(format!(".{name}"))
        } else {
            Self::Exactly(address.host)
        })
    }

    fn fits(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(name) => name == host,
            Self::Under(end) => {
                // A pattern without a port is one for any.
                let host = if end.contains(':') {
                    host
                } else {
                    without_port(host)
                };
                host.len() > end.len() && host.ends_with(end.as_str())
            }
        }
    }
}

/// A host without its port; the colons of an IPv6 address are in brackets.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(patterns: &[&str], address: &str) -> Option<Allowed> {
        let patterns = HostPatterns::parse(patterns.iter().copied()).unwrap();
        patterns.allowed(&Address::of(address).unwrap())
    }

    #[test]
    fn only_what_was_written_is_allowed() {
        assert_eq!(allowed(&[], "https://a.example/"), None);
        assert_eq!(allowed(&["b.example"], "https://a.example/"), None);
        let named = Some(Allowed::Named);
        assert_eq!(allowed(&["A.example."], "https://a.example/"), named);
        assert_eq!(allowed(&["a.example"], "https://x.a.example/"), None);
        let learnt = Some(Allowed::Learnt);
        assert_eq!(allowed(&["any"], "https://a.example/"), learnt);
        assert_eq!(allowed(&["*.example"], "https://x.a.example:8443/"), learnt);
        assert_eq!(allowed(&["*.example"], "https://example/"), None);
        assert_eq!(allowed(&["*.a.example"], "https://xa.example/"), None);
        assert_eq!(allowed(&["any", "a.example"], "https://a.example/"), named);
    }

    #[test]
    fn a_port_belongs_to_the_host() {
        assert_eq!(allowed(&["a.example"], "https://a.example:8443/"), None);
        let named = Some(Allowed::Named);
        assert_eq!(
            allowed(&["a.example:8443"], "https://a.example:8443/"),
            named
        );
        let local = "http://i07.localhost:8080/users/1";
        assert_eq!(allowed(&["*.localhost"], local), named);
        assert_eq!(allowed(&["*.localhost:8080"], local), named);
        assert_eq!(allowed(&["*.localhost:9090"], local), None);
    }

    #[test]
    fn what_could_reach_further_is_no_pattern() {
        for text in [
            "",
            "*",
            "a b",
            "http://a.example",
            "a.example/x",
            "a@b",
            "*.*.example",
            "**",
        ] {
            let parsed = HostPatterns::parse([text]);
            assert_eq!(parsed.is_ok(), text == "*", "{text:?} {parsed:?}");
        }
    }
}
