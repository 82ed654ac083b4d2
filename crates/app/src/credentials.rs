//! The credential that a crawl uses: of the environment, or of the vault.

use crate::cli::VaultArguments;
use crate::failure::Failure;
use crate::place::Place;
use crate::vault::{KeySource, StoredCredential, Vault};
use crate::{environment, keeper, machine};
use kittiwake_engine::{CrashHook, Credential, FixedKeeper, bearer_secrets};
use kittiwake_fetch::{Fetcher, Secret};
use kittiwake_network::auth::{LoginKind, LoginMethod, Sending};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::Arc;
use url::{Origin, Url};

/// Which credential is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub anonymous: bool,
    /// Its name in the vault.
    pub name: Option<&'a str>,
    pub vault: &'a VaultArguments,
}

/// The credential for a place: the environment's, or the vault's, or none.
pub(crate) fn find(
    place: &Place,
    wanted: Wanted<'_>,
    fetcher: &Fetcher,
    crash: &CrashHook,
) -> Result<Option<Credential>, Failure> {
    if wanted.anonymous {
        return Ok(None);
    }
    if wanted.name.is_none()
        && let Some(credential) = of_environment(place)?
    {
        return Ok(Some(credential));
    }
    if !Vault::exists() {
        return match wanted.name {
            Some(name) => Err(nobody(place, Some(name))),
            None => Ok(None),
        };
    }
    let vault = Vault::open(KeySource::new(wanted.vault)).map_err(|failure| Failure {
        message: format!(
            "{}; --anonymous crawls without a credential",
            failure.message
        ),
        ..failure
    })?;
    let Some(stored) = stored(&vault, place, wanted.name)? else {
        return match wanted.name {
            Some(name) => Err(nobody(place, Some(name))),
            None => Ok(None),
        };
    };
    of_vault(place, vault, &stored, fetcher, crash).map(Some)
}

pub(crate) fn nobody(place: &Place, name: Option<&str>) -> Failure {
    let named = name
        .map(|name| format!(" named {name:?}"))
        .unwrap_or_default();
    let network = place.network.name();
    Failure {
        message: format!(
            "the vault holds no credential{named} for {network}@{0}; kittiwake login \
             {network}@{0} puts one in",
            place.host
        ),
        code: crate::failure::code::AUTHENTICATION,
    }
}

/// A token of the environment: ours, or what the network's own tools take.
fn of_environment(place: &Place) -> Result<Option<Credential>, Failure> {
    let auth = place.network.auth();
    if let Some(token) = environment::token(place.network.name())? {
        let is_plain = |method: &&LoginMethod| matches!(method.kind, LoginKind::Token);
        let has_token = |method: &&LoginMethod| method.sending != Sending::OAuth1;
        let methods = &auth.methods;
        let method = methods
            .iter()
            .find(is_plain)
            .or_else(|| methods.iter().find(has_token));
        return Ok(Some(fixed(place, method, token)));
    }
    for method in &auth.methods {
        for name in &method.variables {
            if let Some(token) = environment::token_of(name)? {
                return Ok(Some(fixed(place, Some(method), token)));
            }
        }
    }
    Ok(None)
}

fn fixed(place: &Place, method: Option<&LoginMethod>, token: String) -> Credential {
    let token = Secret::new(token);
    let fingerprint = fingerprint(&token);
    Credential {
        account: fingerprint.clone(),
        application: fingerprint.clone(),
        fingerprint,
        sending: method.map_or(Sending::Bearer, |method| method.sending.clone()),
        origins: origins(&place.base, method),
        keeper: Arc::new(FixedKeeper::new(
            bearer_secrets(token),
            machine::random_word,
        )),
    }
}

/// The origins that a credential of this method may be sent to.
pub(crate) fn origins(base: &Url, method: Option<&LoginMethod>) -> Vec<Origin> {
    let others = method.into_iter().flat_map(|method| &method.hosts);
    std::iter::once(base)
        .chain(others)
        .map(Url::origin)
        .collect()
}

/// The one that is meant, of those in the vault.
pub(crate) fn stored(
    vault: &Vault,
    place: &Place,
    name: Option<&str>,
) -> Result<Option<StoredCredential>, Failure> {
    let origin = place.base.origin().ascii_serialization();
    let network = place.network.name();
    let mut fitting: Vec<StoredCredential> = vault
        .read()?
        .credentials
        .into_iter()
        .filter(|known| known.is_for(network, &origin))
        .filter(|known| name.is_none_or(|name| known.name == name))
        .collect();
    if fitting.len() > 1 {
        let names: Vec<_> = fitting.iter().map(|known| known.name.as_str()).collect();
        return Err(Failure::usage(format!(
            "the vault holds several credentials for {network}@{}; say which: {}",
            place.host,
            names.join(", ")
        )));
    }
    Ok(fitting.pop())
}

/// A credential of the vault, ready to be sent and renewed.
pub(crate) fn of_vault(
    place: &Place,
    vault: Vault,
    stored: &StoredCredential,
    fetcher: &Fetcher,
    crash: &CrashHook,
) -> Result<Credential, Failure> {
    let auth = place.network.auth();
    let method = auth.method(&stored.method).ok_or_else(|| {
        Failure::usage(format!(
            "the definition of {} no longer has the method {:?}; log in again",
            place.network.name(),
            stored.method
        ))
    })?;
    let allowed = origins(&place.base, Some(method));
    // What the vault says it was issued for counts, not what a changed definition would like.
    let origins = allowed.into_iter().filter(|origin| {
        let text = origin.ascii_serialization();
        stored.origins.contains(&text)
    });
    Ok(Credential {
        fingerprint: stored.fingerprint.clone(),
        account: stored.fingerprint.clone(),
        application: stored.fingerprint.clone(),
        sending: method.sending.clone(),
        origins: origins.collect(),
        keeper: Arc::new(keeper::VaultKeeper::new(
            vault,
            stored,
            keeper::Renewal {
                method: method.clone(),
                base: place.base.clone(),
                fetcher: fetcher.clone(),
                crash: crash.clone(),
            },
        )),
    })
}

/// A name for a token that tells nothing of it: it stands in the ledger and in the query log.
pub(crate) fn fingerprint(token: &Secret) -> String {
    let digest = Sha256::new_with_prefix("kittiwake credential ")
        .chain_update(token.expose_secret())
        .finalize();
    digest.iter().take(8).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
