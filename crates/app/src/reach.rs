//! Which hosts a crawl asks beside the one that it was told to.

use crate::failure::Failure;
use crate::place::parse_base;
use kittiwake_engine::HostPatterns;
use kittiwake_fetch::is_loopback_host;
use kittiwake_model::Name;
use kittiwake_network::Network;
use url::Url;

/// The hosts beside the crawl's own.
#[derive(Debug)]
pub(crate) struct Reach {
    /// Who may be asked about those who live there.
    pub hosts: HostPatterns,
    /// Where the hosts are asked that the definition names.
    pub named: Vec<(Name, Url)>,
}

impl Reach {
    /// From `--hosts` and `--at`, and from what the definition says where they do not.
    pub(crate) fn find(
        network: &Network,
        patterns: &[String],
        places: &[String],
    ) -> Result<Self, Failure> {
        let chosen = if patterns.is_empty() {
            network.other_hosts()
        } else {
            patterns
        };
        let chosen = chosen.iter().map(String::as_str);
        let hosts = HostPatterns::parse(chosen.filter(|pattern| *pattern != "none"))
            .map_err(|error| Failure::usage(format!("--hosts: {error}")))?;
        if !hosts.is_empty() && !network.has_homes() {
            return Err(Failure::usage(format!(
                "--hosts: {} does not say where anybody lives (`home`), so one host is asked about all",
                network.name()
            )));
        }
        let mut named = network.named_hosts().to_vec();
        for place in places {
            let (name, address) = place.split_once('=').ok_or_else(|| not_a_place(place))?;
            let base = parse_base("--at", address)?;
            let known = named.iter_mut().find(|(known, _)| **known == *name);
            let (_, address) = known.ok_or_else(|| no_such_host(network, name))?;
            *address = base;
        }
        Ok(Self { hosts, named })
    }

    /// Whether nobody outside this machine can be reached.
    pub(crate) fn is_this_machine(&self) -> bool {
        self.hosts.are_this_machine() && self.named.iter().all(|(_, base)| is_loopback_host(base))
    }
}

fn not_a_place(text: &str) -> Failure {
    Failure::usage(format!(
        "--at: {text:?} says not which host is asked where; write NAME=URL"
    ))
}

fn no_such_host(network: &Network, name: &str) -> Failure {
    let names = network.named_hosts().iter().map(|(name, _)| &**name);
    let known: Vec<&str> = names.collect();
    Failure::usage(match known.as_slice() {
        [] => format!("--at: {} has no hosts with names", network.name()),
        _ => format!(
            "--at: {} has no host {name:?}; it has {}",
            network.name(),
            known.join(", ")
        ),
    })
}
