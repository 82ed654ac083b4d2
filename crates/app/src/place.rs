//! Which network is asked, where, and under which name of our own.

use crate::failure::Failure;
use crate::settings::{self, Settings};
use crate::{definitions, environment};
use kittiwake_engine::{Limits, Pace};
use kittiwake_fetch::is_loopback_host;
use kittiwake_model::Name;
use kittiwake_network::Network;
use kittiwake_store::Location;
use std::time::Duration;
use url::Url;

/// How far a server's clock may differ from ours.
pub(crate) const GUARD: Duration = Duration::from_secs(1);

/// Which network is asked, and where.
pub(crate) struct Place {
    pub network: Network,
    pub base: Url,
    pub host: String,
    pub loopback: bool,
    /// Further hosts that take the same credential.
    pub own_hosts: Vec<Url>,
}

impl Place {
    /// From `NETWORK[@HOST]` and, perhaps, an address to ask instead.
    pub(crate) fn find(named: &str, address: Option<&str>) -> Result<Self, Failure> {
        let (name, named_host) = match named.rsplit_once('@') {
            Some((name, host)) => (name, Some(host)),
            None => (named, None),
        };
        Self::of(definitions::find(name)?, named_host, address)
    }

    /// A network at the host that was named, or at an address instead.
    pub(crate) fn of(
        network: Network,
        named_host: Option<&str>,
        address: Option<&str>,
    ) -> Result<Self, Failure> {
        let name = network.name().clone();
        let base = match (address, named_host) {
            (Some(_), _) if network.asks_subjects() => {
                return Err(Failure::usage(format!(
                    "{name} has no host of its own, everything is asked for where it lives: leave \
                     out --host"
                )));
            }
            (Some(address), _) => parse_base("--host", address)?,
            (None, Some(host)) => network
                .base(host)
                .map_err(|error| Failure::usage(error.to_string()))?,
            (None, None) if network.needs_host() => {
                return Err(Failure::usage(format!(
                    "{name} runs on many hosts; say which: {name}@HOST, or --host URL"
                )));
            }
            (None, None) => network
                .base("")
                .map_err(|error| Failure::usage(error.to_string()))?,
        };
        Ok(Self::at(network, base, named_host))
    }

    /// A network at an address, under the name that the user gave its host.
    pub(crate) fn at(network: Network, base: Url, named_host: Option<&str>) -> Self {
        let authority = base.host_str().unwrap_or_default();
        let host = match (named_host, base.port()) {
            // Nobody is asked for all.
            _ if network.asks_subjects() => String::new(),
            // Names are compared as the network writes them.
            (Some(host), _) => host.trim_end_matches('.').to_lowercase(),
            (None, Some(port)) => format!("{authority}:{port}"),
            (None, None) => authority.to_owned(),
        };
        let loopback = is_loopback_host(&base);
        let mut place = Self {
            network,
            base,
            host,
            loopback,
            own_hosts: Vec::new(),
        };
        let named = place.network.named_hosts().to_vec();
        place.own_hosts = place.own_hosts_at(&named);
        place
    }

    /// The hosts that take the same credential, where they are asked. Whoever asks elsewhere than the definition
    /// says has a credential for that place, and not for the network's further hosts, unless these are elsewhere, too.
    pub(crate) fn own_hosts_at(&self, named: &[(Name, Url)]) -> Vec<Url> {
        let network = &self.network;
        let is_usual = network
            .base("")
            .is_ok_and(|base| base.origin() == self.base.origin());
        let declared = |name: &Name| {
            let mut hosts = network.named_hosts().iter();
            hosts.find(|(known, _)| known == name).map(|(_, url)| url)
        };
        let own = named.iter().filter(|(name, url)| {
            let is_moved = declared(name).is_some_and(|usual| usual != url);
            network.takes_credential(name) && (is_usual || is_moved)
        });
        own.map(|(_, url)| url.clone()).collect()
    }

    /// How the limits of single calls are kept, outside a crawl.
    pub(crate) fn limits_of_single_calls(&self) -> Limits {
        Limits::Keep {
            reserve: 0.0,
            guard: if self.loopback { Duration::ZERO } else { GUARD },
            pace: Pace::Burst,
        }
    }

    /// How we call ourselves here.
    pub(crate) fn user_agent(&self, contact: Option<&str>) -> Result<String, Failure> {
        let version = env!("CARGO_PKG_VERSION");
        let named = |contact: &str| {
            let platform = std::env::consts::OS;
            self.network.user_agent(version, contact, platform)
        };
        match contact {
            Some(contact) if !settings::is_line(contact) => Err(Failure::usage(
                "a contact is plain text, such as an e-mail address or a web page",
            )),
            Some(contact) => {
                Ok(named(contact).unwrap_or_else(|| format!("kittiwake/{version} ({contact})")))
            }
            None if self.loopback => {
                Ok(named("nobody").unwrap_or_else(|| format!("kittiwake/{version}")))
            }
            None => Err(Failure::usage(
                "hosts want to know who asks: name an e-mail address or a web page with --contact, \
                 in KITTIWAKE_CONTACT, or as contact = \"…\" in kittiwake.toml",
            )),
        }
    }
}

/// The contact that was given, or the one that is set.
pub(crate) fn contact(given: Option<&str>) -> Result<Option<String>, Failure> {
    if let Some(given) = given {
        return Ok(Some(given.to_owned()));
    }
    let settings = Settings::load()?;
    Ok(settings.get("contact").map(ToString::to_string))
}

/// Where grants are kept: where it is set, or in the ledger of this user.
pub(crate) fn ledger() -> Result<Location, Failure> {
    let settings = Settings::load()?;
    let named = match settings.get("budgets") {
        Some(settings::Value::Place(place)) => Some(place),
        _ => None,
    };
    environment::ledger_place(named)
}

/// The address that an option names: where a server is asked.
pub(crate) fn parse_base(option: &str, address: &str) -> Result<Url, Failure> {
    let wrong = |why: &str| {
        Failure::usage(format!(
            "{option} {address:?}: {why}; write for example https://mastodon.example"
        ))
    };
    let url = Url::parse(address).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("not an http address"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Failure::usage(format!(
            "{option} holds a password; log in with kittiwake login, or put a token into \
             KITTIWAKE_<NETWORK>_TOKEN instead"
        )));
    }
    if url.scheme() == "http" && !is_loopback_host(&url) {
        return Err(wrong("http without encryption is taken only for loopback"));
    }
    Ok(url)
}
