//! Host names to addresses, and the check of what a learnt host resolves to.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::pin::Pin;

use crate::address::{is_localhost, is_public};

/// A hostile name server may answer with thousands; more are never tried.
const ADDRESSES_MAX: usize = 16;

/// What a [`HostResolver`] gives back.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Turns a host name into addresses. The addresses of a learnt host are checked afterwards,
/// whoever found them.
pub trait HostResolver: fmt::Debug + Send + Sync {
    fn resolve(&self, host: &str) -> Resolving;
}

/// The machine's own resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl HostResolver for SystemResolver {
    fn resolve(&self, host: &str) -> Resolving {
        let host = host.to_owned();
        Box::pin(async move {
            if is_localhost(&host) {
                return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
            }
            let addresses = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    }
}

/// Why a host has no address that may be dialled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error("{0}")]
    NotFound(String),
    #[error("{0} is not a public address")]
    NotPublic(IpAddr),
}

/// The addresses to dial. For a learnt host those that are not public are left out: what is
/// checked here is what is dialled, so a second lookup cannot swap them.
pub(crate) fn dialled_addresses(
    found: io::Result<Vec<IpAddr>>,
    public_only: bool,
) -> Result<Vec<IpAddr>, ResolveError> {
    let found = found.map_err(|error| ResolveError::NotFound(error.to_string()))?;
    let first_found = found.first().copied();
    let dialled: Vec<IpAddr> = found
        .into_iter()
        .filter(|address| !public_only || is_public(*address))
        .take(ADDRESSES_MAX)
        .collect();
    match first_found {
        None => Err(ResolveError::NotFound("no address found".to_owned())),
        Some(address) if dialled.is_empty() => Err(ResolveError::NotPublic(address)),
        Some(_) => Ok(dialled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn addresses_that_are_not_public_are_left_out_for_learnt_hosts() {
        let found = addresses(&["10.0.0.1", "1.1.1.1", "::1", "2606:4700::1"]);
        let dialled = dialled_addresses(Ok(found.clone()), true).unwrap();
        assert_eq!(dialled, addresses(&["1.1.1.1", "2606:4700::1"]));
        assert_eq!(dialled_addresses(Ok(found.clone()), false).unwrap(), found);
    }

    #[test]
    fn a_learnt_host_without_a_public_address_is_refused() {
        let refused = dialled_addresses(Ok(addresses(&["192.168.0.1", "::1"])), true);
        assert!(matches!(refused, Err(ResolveError::NotPublic(address))
            if address.to_string() == "192.168.0.1"));
        let unknown = dialled_addresses(Ok(Vec::new()), true);
        assert!(matches!(unknown, Err(ResolveError::NotFound(_))));
    }

    #[test]
    fn the_number_of_addresses_is_bounded() {
        let many = vec!["1.1.1.1".parse().unwrap(); 5000];
        assert_eq!(
            dialled_addresses(Ok(many), true).unwrap().len(),
            ADDRESSES_MAX
        );
    }
}
