//! Where a crawl is kept, if its URL is in the vault; and URLs that do not belong on a command line.

use crate::cli::VaultArguments;
use crate::failure::Failure;
use crate::vault::{KeySource, Vault};
use kittiwake_store::Location;
use std::ffi::OsString;
use url::Url;

const VAULT_PREFIX: &str = "vault:";

/// Puts the URL in the place of `vault:NAME`; refuses a password that everybody on the machine could
/// read in the list of processes.
pub(crate) fn resolve(place: &mut Location, vault: &VaultArguments) -> Result<(), Failure> {
    match place {
        Location::Server(url) if holds_password(url) => Err(Failure::usage(
            "a password on the command line is seen by everybody on this machine, and kept in the \
             shell's history: put the URL into the vault with kittiwake auth url NAME and write \
             vault:NAME in its place, or set PGPASSWORD",
        )),
        Location::Server(_) => Ok(()),
        Location::File(path) => {
            let name = path
                .to_str()
                .and_then(|text| text.strip_prefix(VAULT_PREFIX));
            let Some(name) = name.map(str::to_owned) else {
                return Ok(());
            };
            *place = named(&name, vault)?;
            Ok(())
        }
    }
}

fn named(name: &str, vault: &VaultArguments) -> Result<Location, Failure> {
    let missing = || {
        Failure::usage(format!(
            "the vault holds no URL {name:?}; kittiwake auth url {name} puts one in"
        ))
    };
    if !Vault::exists() {
        return Err(missing());
    }
    let contents = Vault::open(KeySource::new(vault))?.read()?;
    let url = contents.urls.get(name).ok_or_else(missing)?;
    Ok(Location::from(OsString::from(url.0.expose_secret())))
}

/// Whether a URL names a password, in either of its places.
fn holds_password(url: &str) -> bool {
    if let Ok(url) = Url::parse(url) {
        let is_password = |name: &str| name.eq_ignore_ascii_case("password");
        let mut names = url.query_pairs().map(|(name, _)| name);
        return url.password().is_some() || names.any(|name| is_password(&name));
    }
    // Whatever cannot be read is not shown either: `user:…@` is what a password looks like.
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let user = rest.rsplit_once('@').map(|(user, _)| user);
    user.is_some_and(|user| user.contains(':')) || rest.contains("password=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_found_wherever_it_stands() {
        for url in [
            "postgres://a:b@h/d",
            "postgres://a:b@h:port/d",
            "postgres://h/d?user=a&password=b",
            "postgres://h/d?PASSWORD=b",
        ] {
            assert!(holds_password(url), "{url}");
        }
        for url in ["postgres://a@h/d", "postgres://h:5432/d", "postgres:///d"] {
            assert!(!holds_password(url), "{url}");
        }
    }
}
