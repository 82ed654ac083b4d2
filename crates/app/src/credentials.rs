//! The credentials that a crawl uses: of the environment, or of the vault.

use crate::cli::VaultArguments;
use crate::environment::NamedToken;
use crate::failure::Failure;
use crate::place::Place;
use crate::vault::{KeySource, StoredCredential, Vault};
use crate::{environment, keeper, machine, robots};
use kittiwake_engine::{CrashHook, Credential, FixedKeeper, bearer_secrets};
use kittiwake_fetch::{Fetcher, Secret};
use kittiwake_model::Name;
use kittiwake_network::Network;
use kittiwake_network::auth::{
    LoginKind, LoginMethod, Pooled, PoolingError, Sending, secret_names,
};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::Arc;
use url::{Origin, Url};

/// The kind of log-in by which an application speaks for itself.
const CLIENT_KIND: &str = "client_credentials";

/// Which credentials are wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub anonymous: bool,
    /// What `--as` says: names, each perhaps with the robots that it is kept for.
    pub names: &'a [String],
    pub vault: &'a VaultArguments,
}

/// A token of the environment, by the name of its account if that is told.
type Own = (Option<String>, Credential);

/// The credentials for a place: the environment's, or the vault's, or none.
pub(crate) fn find(
    place: &Place,
    wanted: Wanted<'_>,
    fetcher: &Fetcher,
    crash: &CrashHook,
) -> Result<Vec<Credential>, Failure> {
    if wanted.anonymous {
        return Ok(Vec::new());
    }
    let own = of_environment(place)?;
    if wanted.names.is_empty() {
        if !own.is_empty() {
            return Ok(together(own.into_iter().map(|(_, own)| own)));
        }
        let Some(vault) = open_vault(wanted.vault)? else {
            return Ok(Vec::new());
        };
        let only = stored(&vault, place, None)?;
        let only = only.map(|stored| of_vault(place, vault, &stored, fetcher, crash));
        return Ok(only.transpose()?.into_iter().collect());
    }
    let mut kept: Option<(Vault, Vec<StoredCredential>)> = None;
    let mut found = Vec::with_capacity(wanted.names.len());
    for word in wanted.names {
        let names = own.iter().filter_map(|(name, _)| name.as_deref());
        let (name, robots) = bound(word, names);
        let is_named = |(own, _): &&Own| own.as_deref() == Some(name);
        if let Some((_, credential)) = own.iter().find(is_named) {
            found.push(kept_for(place, credential.clone(), robots)?);
            continue;
        }
        if kept.is_none()
            && let Some(vault) = open_vault(wanted.vault)?
        {
            let fitting = fitting(&vault, place)?;
            kept = Some((vault, fitting));
        }
        let known = kept.as_ref().map_or(&[][..], |(_, known)| known);
        let (name, robots) = bound(word, known.iter().map(|it| it.name.as_str()));
        let Some((vault, known)) = &kept else {
            return Err(nobody(place, Some(name)));
        };
        let stored = one_of(place, known.clone(), Some(name))?;
        let stored = stored.ok_or_else(|| nobody(place, Some(name)))?;
        let credential = of_vault(place, vault.clone(), &stored, fetcher, crash)?;
        found.push(kept_for(place, credential, robots)?);
    }
    Ok(together(found.into_iter()))
}

/// The vault, if there is one.
fn open_vault(arguments: &VaultArguments) -> Result<Option<Vault>, Failure> {
    if !Vault::exists() {
        return Ok(None);
    }
    let vault = Vault::open(KeySource::new(arguments)).map_err(|failure| Failure {
        message: format!(
            "{}; --anonymous crawls without a credential",
            failure.message
        ),
        ..failure
    })?;
    Ok(Some(vault))
}

/// What a word of `--as` says: `NAME`, or `NAME:ROBOT+ROBOT`. A name may hold a colon itself.
fn bound<'w, 'n>(
    word: &'w str,
    mut names: impl Iterator<Item = &'n str>,
) -> (&'w str, Vec<&'w str>) {
    match word.rsplit_once(':') {
        Some((name, robots)) if !names.any(|known| known == word) => {
            (name, robots.split('+').map(str::trim).collect())
        }
        _ => (word, Vec::new()),
    }
}

/// The credential, kept for these robots.
fn kept_for(
    place: &Place,
    credential: Credential,
    robots: Vec<&str>,
) -> Result<Credential, Failure> {
    for robot in &robots {
        if place.network.robot(robot).is_none() {
            return Err(Failure::usage(format!(
                "--as NAME:ROBOT+ROBOT names robots; there is no robot {robot:?}, {} has {}",
                place.network.name(),
                robots::names(&place.network)
            )));
        }
    }
    Ok(Credential {
        robots: robots.into_iter().map(Name::from).collect(),
        ..credential
    })
}

/// Credentials that are used together, each once. If of one it is not known whose it is, it may be
/// of the same account, or of the same application, as any other: then all of them take what one
/// may have, which is too little rather than too much.
fn together(credentials: impl Iterator<Item = Credential>) -> Vec<Credential> {
    let mut joined: Vec<Credential> = Vec::new();
    for credential in credentials {
        let is_same = |it: &&mut Credential| it.fingerprint == credential.fingerprint;
        match joined.iter_mut().find(is_same) {
            Some(known) if known.robots.is_empty() || credential.robots.is_empty() => {
                known.robots.clear();
            }
            Some(known) => known.robots.extend(credential.robots),
            None => joined.push(credential),
        }
    }
    if joined.iter().any(|it| it.account.is_none()) {
        for credential in &mut joined {
            credential.account = None;
        }
    }
    if joined.iter().any(|it| it.application.is_none()) {
        for credential in &mut joined {
            credential.application = None;
        }
    }
    joined
}

/// Whether the network's terms, or its owner's word, allow that these are used together.
pub(crate) fn check_pooling(
    network: &Network,
    credentials: &[Credential],
    permission: Option<&str>,
) -> Result<(), Failure> {
    if permission.is_some_and(|reason| reason.trim().is_empty()) {
        return Err(Failure::usage(
            "--i-have-permission wants the reason, in words: it is kept in the run's record",
        ));
    }
    let pooled: Vec<Pooled<'_>> = credentials
        .iter()
        .map(|it| Pooled {
            account: it.account.as_deref(),
            application: it.application.as_deref(),
        })
        .collect();
    match network.auth().pooling.check(&pooled) {
        Ok(()) => Ok(()),
        Err(_) if permission.is_some() => Ok(()),
        Err(error) => {
            let name = network.name();
            let advice = match error {
                PoolingError::AccountUnknown => format!(
                    "; kittiwake login finds out whose a token is, and {} may name the accounts (ada \
                     TOKEN, bob TOKEN)",
                    environment::tokens_variable(name)
                ),
                _ => String::new(),
            };
            Err(Failure::usage(format!(
                "{} credentials are given for {name}, but {error}{advice}; choose one with --as NAME, \
                 or, if you were given the permission, tell by whom and why with --i-have-permission \
                 REASON",
                credentials.len()
            )))
        }
    }
}

/// The credentials for the run's record: fingerprints, and the robots that they are kept for.
pub(crate) fn record(credentials: &[Credential]) -> serde_json::Value {
    let shown = credentials.iter().map(|it| {
        serde_json::json!({
            "fingerprint": it.fingerprint,
            "robots": it.robots,
        })
    });
    shown.collect()
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

/// The tokens of the environment: ours, or what the network's own tools take.
fn of_environment(place: &Place) -> Result<Vec<Own>, Failure> {
    let auth = place.network.auth();
    let network = place.network.name();
    let is_plain = |method: &&LoginMethod| matches!(method.kind, LoginKind::Token);
    let has_token = |method: &&LoginMethod| method.sending != Sending::OAuth1;
    let methods = &auth.methods;
    let method = methods
        .iter()
        .find(is_plain)
        .or_else(|| methods.iter().find(has_token));
    let single = environment::token(network)?.map(|token| NamedToken {
        account: None,
        token,
    });
    let list = environment::tokens(network)?;
    let mut own: Vec<Own> = Vec::new();
    // Whoever stands in both is named in the list.
    for NamedToken { account, token } in list.into_iter().chain(single) {
        let credential = fixed(place, method, account.as_deref(), token)?;
        let is_known = |(_, it): &Own| it.fingerprint == credential.fingerprint;
        if !own.iter().any(is_known) {
            own.push((account, credential));
        }
    }
    if !own.is_empty() {
        return Ok(own);
    }
    for method in &auth.methods {
        for name in &method.variables {
            if let Some(token) = environment::token_of(name)? {
                return Ok(vec![(None, fixed(place, Some(method), None, token)?)]);
            }
        }
    }
    Ok(Vec::new())
}

fn fixed(
    place: &Place,
    method: Option<&LoginMethod>,
    account: Option<&str>,
    token: String,
) -> Result<Credential, Failure> {
    let token = Secret::new(token);
    let mut secrets = bearer_secrets(token.clone());
    if let Some(secret) = secret_for_proof(method)? {
        secrets.insert(secret_names::CLIENT_SECRET.to_owned(), secret);
    }
    Ok(Credential {
        fingerprint: fingerprint(&token),
        account: account.map(mark_of_account),
        // Nothing tells for which application a token was made.
        application: None,
        robots: Vec::new(),
        sending: method.map_or(Sending::Bearer, |method| method.sending.clone()),
        origins: origins(place, method),
        keeper: Arc::new(FixedKeeper::new(secrets, machine::random_word)),
    })
}

/// The secret of the application that a token of the environment was made for, where a proof is made of it.
fn secret_for_proof(method: Option<&LoginMethod>) -> Result<Option<Secret>, Failure> {
    for name in method.into_iter().flat_map(|it| &it.proof_variables) {
        if let Some(secret) = environment::token_of(name)? {
            return Ok(Some(Secret::new(secret)));
        }
    }
    Ok(None)
}

/// An account as the ledger knows it: however it is spelled, and telling nothing of it.
fn mark_of_account(name: &str) -> String {
    let name = name.trim_start_matches('@').to_lowercase();
    fingerprint(&Secret::new(format!("account {name}")))
}

/// Whose a credential of the vault is, and the application that it was issued to. What an
/// application has for itself is counted by the application.
fn parties(stored: &StoredCredential) -> (Option<String>, Option<String>) {
    let secrets = stored.secrets();
    let names = [secret_names::CLIENT_ID, secret_names::CONSUMER_KEY];
    let client = names.iter().find_map(|name| secrets.get(*name));
    let application = client.map(|id| {
        let text = format!("application {}", id.expose_secret());
        fingerprint(&Secret::new(text))
    });
    let account = if stored.kind == CLIENT_KIND {
        application.clone()
    } else {
        stored.account.as_deref().map(mark_of_account)
    };
    (account, application)
}

/// The origins that a credential of this method may be sent to.
pub(crate) fn origins(place: &Place, method: Option<&LoginMethod>) -> Vec<Origin> {
    let others = method.into_iter().flat_map(|method| &method.hosts);
    std::iter::once(&place.base)
        .chain(&place.own_hosts)
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
    one_of(place, fitting(vault, place)?, name)
}

/// The credentials in the vault that may be sent to the place.
fn fitting(vault: &Vault, place: &Place) -> Result<Vec<StoredCredential>, Failure> {
    let origin = place.base.origin().ascii_serialization();
    let network = place.network.name();
    let known = vault.read()?.credentials.into_iter();
    Ok(known
        .filter(|known| known.is_for(network, &origin))
        .collect())
}

fn one_of(
    place: &Place,
    mut known: Vec<StoredCredential>,
    name: Option<&str>,
) -> Result<Option<StoredCredential>, Failure> {
    known.retain(|known| name.is_none_or(|name| known.name == name));
    if known.len() > 1 {
        let names: Vec<_> = known.iter().map(|known| known.name.as_str()).collect();
        return Err(Failure::usage(format!(
            "the vault holds several credentials for {}@{}; say which: {}",
            place.network.name(),
            place.host,
            names.join(", ")
        )));
    }
    Ok(known.pop())
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
    let allowed = origins(place, Some(method));
    // What the vault says it was issued for counts, not what a changed definition would like.
    let origins = allowed.into_iter().filter(|origin| {
        let text = origin.ascii_serialization();
        stored.origins.contains(&text)
    });
    let (account, application) = parties(stored);
    Ok(Credential {
        fingerprint: stored.fingerprint.clone(),
        account,
        application,
        robots: Vec::new(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(fingerprint: &str, account: Option<&str>, robots: &[&str]) -> Credential {
        Credential {
            fingerprint: fingerprint.to_owned(),
            account: account.map(str::to_owned),
            application: Some("gulls".to_owned()),
            robots: robots.iter().map(|robot| Name::from(*robot)).collect(),
            sending: Sending::Bearer,
            origins: Vec::new(),
            keeper: Arc::new(FixedKeeper::new(
                bearer_secrets(Secret::new("t")),
                String::new,
            )),
        }
    }

    #[test]
    fn a_name_may_be_bound_to_robots_and_may_hold_a_colon() {
        let names = || ["ada", "a:b"].into_iter();
        assert_eq!(bound("ada", names()), ("ada", vec![]));
        assert_eq!(bound("a:b", names()), ("a:b", vec![]));
        assert_eq!(
            bound("ada:profiles+statuses", names()),
            ("ada", vec!["profiles", "statuses"])
        );
        assert_eq!(bound("a:b:tags", names()), ("a:b", vec!["tags"]));
        assert_eq!(bound("ada:", names()), ("ada", vec![""]));
    }

    #[test]
    fn a_credential_that_is_named_twice_serves_all_that_it_was_named_for() {
        let named = |robots: &[&str]| credential("1", Some("ada"), robots);
        let robots = |first: &[&str], second: &[&str]| {
            let joined = together([named(first), named(second)].into_iter());
            assert_eq!(joined.len(), 1);
            let robots = joined[0].robots.iter();
            robots.map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(robots(&["tags"], &["search"]), ["tags", "search"]);
        assert!(robots(&["tags"], &[]).is_empty());
        assert!(robots(&[], &["tags"]).is_empty());
    }

    #[test]
    fn whoever_is_unknown_may_be_anybody() {
        let known = [
            credential("1", Some("ada"), &[]),
            credential("2", Some("bob"), &[]),
        ];
        let accounts = |credentials: Vec<Credential>| -> Vec<Option<String>> {
            credentials.into_iter().map(|it| it.account).collect()
        };
        let apart = accounts(together(known.clone().into_iter()));
        assert_eq!(apart, [Some("ada".to_owned()), Some("bob".to_owned())]);
        let stranger = credential("3", None, &[]);
        let joined = together(known.into_iter().chain([stranger]));
        assert!(
            joined
                .iter()
                .all(|it| it.application.as_deref() == Some("gulls"))
        );
        assert_eq!(accounts(joined), [None, None, None]);
    }

    #[test]
    fn an_account_is_the_same_however_it_is_spelled() {
        assert_eq!(mark_of_account("@Ada"), mark_of_account("ada"));
        assert_ne!(mark_of_account("ada"), mark_of_account("bob"));
    }
}
