//! `kittiwake login`: a credential for the vault.

use crate::cli::{LoginArguments, VaultArguments};
use crate::commands::auth::{self, Tested};
use crate::failure::Failure;
use crate::login::{AtTerminal, LoggedIn, Login};
use crate::place::{self, Place};
use crate::vault::{KeySource, StoredCredential, Vault, kept};
use crate::{console, credentials, environment, robots};
use kittiwake_engine::CrashHook;
use kittiwake_fetch::{FetchConfig, Fetcher, Secret};
use kittiwake_network::Network;
use kittiwake_network::auth::{LoginKind, LoginMethod, Secrets, secret_names};
use std::process::ExitCode;

/// What a credential is called until the network says whose it is.
const NAME_FIRST: &str = "main";
const NAME_CHARS_MAX: usize = 200;

pub(crate) async fn run(
    arguments: &LoginArguments,
    vault: &VaultArguments,
) -> Result<ExitCode, Failure> {
    let place = Place::find(&arguments.network, arguments.host.as_deref())?;
    let method = method(&place.network, arguments)?;
    let contact = place::contact(arguments.contact.as_deref())?;
    let fetcher = Fetcher::new(FetchConfig {
        user_agent: place.user_agent(contact.as_deref())?,
        ..FetchConfig::default()
    })
    .map_err(|error| Failure::other(error.to_string()))?;
    let vault = Vault::open(KeySource::new(vault))?;
    // Found out before anything is asked for: what cannot be kept would be lost.
    vault.change(|_| ())?;
    let login = Login {
        scopes: scopes(&place.network, method, arguments)?,
        place: &place,
        method,
        fetcher: &fetcher,
        vault: &vault,
        token: arguments.token,
        paste: arguments.paste,
        port: arguments.port,
        person: &AtTerminal,
    };
    let logged_in = login.run().await?;
    let (stored, tested) = keep(&login, arguments.name.as_deref(), &logged_in).await?;
    show(arguments, &stored, tested.as_ref());
    Ok(ExitCode::SUCCESS)
}

/// Whether a credential was tested, and what came of it.
pub(crate) type Tried = Option<Result<Tested, Failure>>;

/// Keeps what a log-in brought, under the name that was given or the account's, unless the host does not
/// take it.
pub(crate) async fn keep(
    login: &Login<'_>,
    name: Option<&str>,
    logged_in: &LoggedIn,
) -> Result<(StoredCredential, Tried), Failure> {
    let (place, method, vault) = (login.place, login.method, login.vault);
    let mut stored = stored(login, name, logged_in);
    vault.change(|contents| contents.put(stored.clone()))?;
    let tested = test(place, vault, &stored, login.fetcher).await;
    if let Some(account) = account(tested.as_ref()) {
        vault.change(|contents| {
            contents.credentials.retain(|known| !known.is_same(&stored));
            if name.is_none() {
                stored.name.clone_from(&account);
            }
            // What answers for an application is no account.
            if !matches!(method.kind, LoginKind::ClientCredentials { .. }) {
                stored.account = Some(account);
            }
            contents.put(stored.clone());
        })?;
    }
    match tested {
        Some(Err(failure)) if failure.code == crate::failure::code::AUTHENTICATION => {
            // A token that the host does not take is no credential.
            vault.change(|contents| {
                contents.credentials.retain(|known| !known.is_same(&stored));
            })?;
            Err(Failure {
                message: format!("{}; no credential was stored", failure.message),
                ..failure
            })
        }
        tested => Ok((stored, tested)),
    }
}

fn method<'a>(
    network: &'a Network,
    arguments: &LoginArguments,
) -> Result<&'a LoginMethod, Failure> {
    let methods = &network.auth().methods;
    let names = || {
        let names: Vec<String> = methods
            .iter()
            .map(|method| match method.description.as_str() {
                "" => method.name.to_string(),
                description => format!("{} ({description})", method.name),
            })
            .collect();
        names.join(", ")
    };
    let network_name = network.name();
    if arguments.token {
        let is_plain = |method: &&LoginMethod| matches!(method.kind, LoginKind::Token);
        let has_token = |method: &&LoginMethod| {
            matches!(method.kind, LoginKind::Code(_) | LoginKind::Device(_))
        };
        let found = methods
            .iter()
            .find(is_plain)
            .or_else(|| methods.iter().find(has_token));
        return found.ok_or_else(|| {
            Failure::usage(format!(
                "{network_name} takes no token as it is; its ways to log in are {}",
                names()
            ))
        });
    }
    match &arguments.method {
        Some(name) => network.auth().method(name).ok_or_else(|| {
            Failure::usage(format!(
                "{network_name} has no method {name:?}; its ways to log in are {}",
                names()
            ))
        }),
        None => methods
            .first()
            .ok_or_else(|| Failure::usage(format!("{network_name} has no log-in"))),
    }
}

/// The least that the robots need, and what the method needs in any case.
fn scopes(
    network: &Network,
    method: &LoginMethod,
    arguments: &LoginArguments,
) -> Result<Vec<String>, Failure> {
    let robots = robots::choose(network, &arguments.robots, &arguments.without)?;
    let mut scopes = network.scopes_of(&robots);
    scopes.extend(method.scopes.iter().cloned());
    scopes.sort();
    scopes.dedup();
    Ok(scopes)
}

fn stored(login: &Login<'_>, name: Option<&str>, logged_in: &LoggedIn) -> StoredCredential {
    let LoggedIn { secrets, issued } = logged_in;
    let now_us = environment::real_now().micros();
    let (place, method) = (login.place, login.method);
    let origins = |urls: Vec<url::Origin>| -> Vec<String> {
        urls.iter().map(url::Origin::ascii_serialization).collect()
    };
    let issuers = method.kind.issuers(&place.base);
    let name = name.map(str::to_owned).or_else(|| issued.account.clone());
    StoredCredential {
        network: place.network.name().to_string(),
        host: place.host.clone(),
        base: place.base.to_string(),
        name: name.unwrap_or_else(|| NAME_FIRST.to_owned()),
        account: issued.account.clone(),
        method: method.name.to_string(),
        kind: method.kind.word().to_owned(),
        fingerprint: credentials::fingerprint(mark(secrets)),
        scopes: issued.scopes.clone().unwrap_or_else(|| {
            let is_told = method.kind.token_endpoint().is_some();
            if is_told {
                login.scopes.clone()
            } else {
                Vec::new()
            }
        }),
        expires_us: issued
            .expires_in_s
            .map(|seconds| now_us.saturating_add(seconds.saturating_mul(1_000_000))),
        origins: origins(credentials::origins(place, Some(method))),
        issuers: origins(issuers.iter().map(url::Url::origin).collect()),
        added_us: now_us,
        renewed_us: None,
        secrets: kept(secrets),
    }
}

/// The secret by which a credential is told from others: the first token it had.
fn mark(secrets: &Secrets) -> &Secret {
    static NONE: std::sync::LazyLock<Secret> = std::sync::LazyLock::new(|| Secret::new(""));
    let names = [secret_names::ACCESS_TOKEN, secret_names::TOKEN];
    let found = names.iter().find_map(|name| secrets.get(*name));
    found.unwrap_or(&NONE)
}

/// Asks the host whose credential it is, if the definition says how.
async fn test(
    place: &Place,
    vault: &Vault,
    stored: &StoredCredential,
    fetcher: &Fetcher,
) -> Option<Result<Tested, Failure>> {
    let method = place.network.auth().method(&stored.method)?;
    method.test.as_ref()?;
    let credential =
        credentials::of_vault(place, vault.clone(), stored, fetcher, &CrashHook::default());
    Some(match credential {
        Ok(credential) => auth::test(place, method, &credential, fetcher).await,
        Err(failure) => Err(failure),
    })
}

fn account(tested: Option<&Result<Tested, Failure>>) -> Option<String> {
    let Some(Ok(tested)) = tested else {
        return None;
    };
    let account = tested.account.as_ref()?;
    Some(account.chars().take(NAME_CHARS_MAX).collect())
}

fn show(
    arguments: &LoginArguments,
    stored: &StoredCredential,
    tested: Option<&Result<Tested, Failure>>,
) {
    if let Some(Err(failure)) = tested {
        console::note(&format!("stored, but not tested: {}", failure.message));
    }
    if arguments.json {
        console::output(&auth::credential_json(stored).to_string());
    } else {
        console::output(&format!("logged in: {}", auth::credential_line(stored)));
    }
}
