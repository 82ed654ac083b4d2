//! `kittiwake auth`: look at the vault, test what is in it, take things out.

use crate::cli::{AuthCommand, AuthTestArguments, VaultArguments};
use crate::failure::{Failure, code};
use crate::place::{self, Place};
use crate::progress::amount;
use crate::vault::{Kept, KeySource, StoredCredential, StoredPassword, Vault, new_key_file};
use crate::{console, credentials, environment};
use kittiwake_engine::{Clock, Credential, Probe, ProbeAnswer, probe};
use kittiwake_fetch::{FetchConfig, Fetcher};
use kittiwake_model::{ClockSpec, Unit};
use kittiwake_network::auth::LoginMethod;
use kittiwake_network::{LimitReport, Word};
use kittiwake_serve::{DeskError, DeskErrorKind, Role};
use kittiwake_store::ledger::Ledger;
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

/// What a host says of a credential.
#[derive(Debug)]
pub(crate) struct Tested {
    pub account: Option<String>,
    pub scopes: Option<String>,
    /// Limit, remaining and reset, as the host writes them.
    pub quota: Vec<(String, String)>,
    /// What is left of which budget, where the host can be asked for it.
    pub limits: Vec<(Unit, LimitReport)>,
}

pub(crate) async fn run(command: AuthCommand, vault: &VaultArguments) -> Result<ExitCode, Failure> {
    match command {
        AuthCommand::List { json } => list(vault, json)?,
        AuthCommand::Test(arguments) => return test_stored(&arguments, vault).await,
        AuthCommand::Remove { network, name } => remove(vault, &network, name.as_deref())?,
        AuthCommand::Url { name, remove } => url(vault, &name, remove)?,
        AuthCommand::Password { viewer, remove } => password(vault, viewer, remove)?,
        AuthCommand::Key { file } => {
            let public = new_key_file(&file)?;
            console::output(&format!("{}: public key {public}", file.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(vault: &VaultArguments, json: bool) -> Result<(), Failure> {
    if !Vault::exists() {
        if !json {
            console::note("there is no vault yet; kittiwake login makes one");
        }
        return Ok(());
    }
    let contents = Vault::open(KeySource::new(vault))?.read()?;
    for credential in &contents.credentials {
        if json {
            console::output(&credential_json(credential).to_string());
        } else {
            console::output(&credential_line(credential));
        }
    }
    for name in contents.urls.keys() {
        if json {
            console::output(&json!({ "url": format!("vault:{name}") }).to_string());
        } else {
            console::output(&format!("vault:{name}"));
        }
    }
    Ok(())
}

/// A credential for people, without secrets.
pub(crate) fn credential_line(credential: &StoredCredential) -> String {
    let expiry = match credential.expires_us {
        Some(expires_us) => format!("until {}", time_text(expires_us)),
        None => "does not expire".to_owned(),
    };
    let scopes = match credential.scopes.as_slice() {
        [] => String::new(),
        scopes => format!(", may {}", scopes.join(" ")),
    };
    format!(
        "{}@{} {} ({}, {expiry}{scopes})",
        credential.network, credential.host, credential.name, credential.method
    )
}

/// A credential for machines, without secrets.
pub(crate) fn credential_json(credential: &StoredCredential) -> Value {
    json!({
        "network": credential.network,
        "host": credential.host,
        "name": credential.name,
        "method": credential.method,
        "kind": credential.kind,
        "fingerprint": credential.fingerprint,
        "scopes": credential.scopes,
        "expires": credential.expires_us.map(time_text),
        "sent_to": credential.origins,
        "added": time_text(credential.added_us),
        "renewed": credential.renewed_us.map(time_text),
    })
}

fn time_text(at_us: i64) -> String {
    jiff::Timestamp::from_microsecond(at_us)
        .map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
        .unwrap_or_default()
}

async fn test_stored(
    arguments: &AuthTestArguments,
    vault: &VaultArguments,
) -> Result<ExitCode, Failure> {
    let place = Place::find(&arguments.network, arguments.host.as_deref())?;
    let name = arguments.name.as_deref();
    if !Vault::exists() {
        return Err(credentials::nobody(&place, name));
    }
    let vault = Vault::open(KeySource::new(vault))?;
    let stored = credentials::stored(&vault, &place, name)?
        .ok_or_else(|| credentials::nobody(&place, name))?;
    let method = place.network.auth().method(&stored.method);
    let method = method
        .filter(|method| method.test.is_some())
        .ok_or_else(|| {
            Failure::usage(format!(
                "the definition of {} has no test for {:?}",
                place.network.name(),
                stored.method
            ))
        })?;
    let contact = place::contact(arguments.contact.as_deref())?;
    let fetcher = Fetcher::new(FetchConfig {
        user_agent: place.user_agent(contact.as_deref())?,
        ..FetchConfig::default()
    })
    .map_err(|error| Failure::other(error.to_string()))?;
    let crash = crate::crash::hook()?;
    let credential = credentials::of_vault(&place, vault, &stored, &fetcher, &crash)?;
    let tested = test(&place, method, &credential, &fetcher).await?;
    show(arguments, &stored, &tested);
    Ok(ExitCode::SUCCESS)
}

fn show(arguments: &AuthTestArguments, stored: &StoredCredential, tested: &Tested) {
    let scopes = tested.scopes.clone();
    let scopes = scopes.unwrap_or_else(|| stored.scopes.join(" "));
    if arguments.json {
        let quota: serde_json::Map<String, Value> = tested
            .quota
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        let line = json!({
            "works": true,
            "network": stored.network,
            "host": stored.host,
            "name": stored.name,
            "account": tested.account,
            "scopes": scopes,
            "quota": quota,
            "limits": tested.limits.iter().map(limit_json).collect::<Vec<_>>(),
        });
        console::output(&line.to_string());
        return;
    }
    let account = tested.account.as_deref().unwrap_or(&stored.name);
    let mut text = format!("{}@{} knows {account}", stored.network, stored.host);
    if !scopes.is_empty() {
        let _ = write!(text, "\nmay: {scopes}");
    }
    for (name, value) in &tested.quota {
        let _ = write!(text, "\n{name}: {value}");
    }
    for (unit, report) in &tested.limits {
        let _ = write!(text, "\n{}", limit_line(unit, report));
    }
    console::output(&text);
}

fn limit_line(unit: &Unit, report: &LimitReport) -> String {
    let left = match report.word {
        Word::Left { limit, remaining } => {
            format!(
                "{} of {} left",
                amount(remaining, unit),
                amount(limit, unit)
            )
        }
        Word::Percent(percent) => format!("{percent} % used"),
    };
    match report.reset {
        Some(reset) => format!("{}: {left}, until {}", report.budget, time_text(reset.0)),
        None => format!("{}: {left}", report.budget),
    }
}

fn limit_json((unit, report): &(Unit, LimitReport)) -> Value {
    let (limit, remaining) = match report.word {
        Word::Left { limit, remaining } => (Some(limit), Some(remaining)),
        Word::Percent(_) => (None, None),
    };
    json!({
        "budget": &*report.budget,
        "unit": unit,
        "limit": limit,
        "remaining": remaining,
        "reset": report.reset.map(|reset| time_text(reset.0)),
    })
}

/// Asks the host whose credential it is: one call, out of the ledger.
pub(crate) async fn test(
    place: &Place,
    method: &LoginMethod,
    credential: &Credential,
    fetcher: &Fetcher,
) -> Result<Tested, Failure> {
    let Some(call) = &method.test else {
        return Err(Failure::usage("the definition has no test"));
    };
    let mut names: Vec<&str> = Vec::new();
    let limits = place.network.limit_header_names();
    names.extend(limits.into_iter().flatten());
    names.extend(call.scopes_header.as_deref());
    let clock = Clock::new(ClockSpec::real(), environment::real_now);
    let mut is_renewed = false;
    loop {
        let asked = Probe {
            network: &place.network,
            base: &place.base,
            host: &place.host,
            url: call.place.at(&place.base),
            credential,
            fetcher,
            clock: &clock,
            ledger: Some(Ledger::open(&place::ledger()?)?),
            limits: place.limits_of_single_calls(),
            node: environment::node_name(),
        };
        let (status, body, headers, limits) = match probe(asked, &names).await? {
            ProbeAnswer::Answered {
                status,
                body,
                headers,
                limits,
            } => (status, body, headers, limits),
            ProbeAnswer::Wait { budget, .. } => {
                return Err(Failure {
                    message: format!("the limit {budget} is used up; try again later"),
                    code: code::CAPPED,
                });
            }
            ProbeAnswer::Locked(reason) => return Err(locked(&reason)),
        };
        match status {
            200..=299 => {
                let tested = tested(place, method, &body, headers);
                let with_unit = |report: LimitReport| {
                    let rule = place.network.budget(&report.budget)?;
                    Some((rule.unit.clone(), report))
                };
                let limits = limits.into_iter().filter_map(with_unit).collect();
                return Ok(Tested { limits, ..tested });
            }
            400 | 401 if !is_renewed => {
                is_renewed = true;
                let held = credential.keeper.held().await.map_err(|it| locked(&it))?;
                let renewed = credential.keeper.renew(&held).await;
                renewed.map_err(|reason| match reason.as_str() {
                    "" => locked(&format!("http {status}")),
                    reason => locked(&format!("http {status}; {reason}")),
                })?;
            }
            400 | 401 | 403 => return Err(locked(&format!("http {status}"))),
            429 => {
                return Err(Failure {
                    message: "the host says that a limit is used up; try again later".to_owned(),
                    code: code::CAPPED,
                });
            }
            _ => {
                return Err(Failure::other(format!(
                    "the host cannot tell (http {status}); try again later"
                )));
            }
        }
    }
}

fn locked(reason: &str) -> Failure {
    Failure {
        message: format!("the credential is not accepted ({reason})"),
        code: code::AUTHENTICATION,
    }
}

fn tested(
    place: &Place,
    method: &LoginMethod,
    body: &[u8],
    headers: Vec<(String, String)>,
) -> Tested {
    let call = method.test.as_ref();
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let account = call.and_then(|call| answer.get(call.account.as_ref()?)?.as_str());
    let account = account.map(|text| {
        let letters = text.chars().filter(|letter| !letter.is_control());
        letters.take(200).collect::<String>()
    });
    let scopes_header = call.and_then(|call| call.scopes_header.as_deref());
    let limits = place.network.limit_header_names();
    let (scopes, quota): (Vec<_>, Vec<_>) = headers
        .into_iter()
        .partition(|(name, _)| Some(name.as_str()) == scopes_header);
    let is_limit = |name: &str| limits.is_some_and(|limits| limits.contains(&name));
    Tested {
        account: account.filter(|account| !account.is_empty()),
        scopes: scopes.into_iter().next().map(|(_, value)| value),
        quota: quota
            .into_iter()
            .filter(|(name, _)| is_limit(name))
            .collect(),
        limits: Vec::new(),
    }
}

/// Takes the very credential out that is named.
pub(crate) fn take_out(
    vault: &Vault,
    network: &str,
    host: &str,
    name: &str,
) -> Result<(), DeskError> {
    let is_meant = |known: &StoredCredential| {
        (
            known.network.as_str(),
            known.host.as_str(),
            known.name.as_str(),
        ) == (network, host, name)
    };
    let removed = vault.change(|contents| {
        let before = contents.credentials.len();
        contents.credentials.retain(|known| !is_meant(known));
        before - contents.credentials.len()
    });
    match removed {
        Ok(0) => Err(DeskError::new(
            DeskErrorKind::Missing,
            "the vault holds no such credential; GET /api/credentials lists them",
        )),
        Ok(_) => Ok(()),
        Err(error) => Err(DeskError::new(DeskErrorKind::Conflict, error.to_string())),
    }
}

fn remove(vault: &VaultArguments, network: &str, name: Option<&str>) -> Result<(), Failure> {
    let (network, host) = match network.rsplit_once('@') {
        Some((network, host)) => (network, Some(host)),
        None => (network, None),
    };
    let is_meant = |known: &StoredCredential| {
        known.network == network
            && host.is_none_or(|host| known.host.eq_ignore_ascii_case(host))
            && name.is_none_or(|name| known.name == name)
    };
    let none = || {
        Failure::usage(
            "the vault holds no such credential; kittiwake auth list names all".to_owned(),
        )
    };
    if !Vault::exists() {
        return Err(none());
    }
    let vault = Vault::open(KeySource::new(vault))?;
    let mut locked = vault.lock()?;
    let meant: Vec<String> = locked
        .contents
        .credentials
        .iter()
        .filter(|known| is_meant(known))
        .map(credential_line)
        .collect();
    match meant.as_slice() {
        [] => return Err(none()),
        [_] => {}
        several => {
            return Err(Failure::usage(format!(
                "several fit; say which with @HOST and --name:\n{}",
                several.join("\n")
            )));
        }
    }
    locked.contents.credentials.retain(|known| !is_meant(known));
    locked.save()?;
    console::output(&format!("removed: {}", meant.join("")));
    Ok(())
}

/// Sets the password of a role, or takes it out.
fn password(vault: &VaultArguments, is_viewer: bool, is_removed: bool) -> Result<(), Failure> {
    let role = if is_viewer {
        Role::Viewer
    } else {
        Role::Operator
    };
    if is_removed && !Vault::exists() {
        return Err(Failure::usage(format!("the {role} has no password")));
    }
    let vault = Vault::open(KeySource::new(vault))?;
    if is_removed {
        let removed = vault.change(|contents| contents.passwords.remove(role.name()))?;
        removed.ok_or_else(|| Failure::usage(format!("the {role} has no password")))?;
        console::output(&format!("removed: the password of the {role}"));
        return Ok(());
    }
    // Found out before anything is typed in.
    vault.change(|_| ())?;
    let given = console::ask_secret(&format!("password of the {role}: "))?;
    if console::can_ask() && console::ask_secret("once more: ")? != given {
        return Err(Failure::usage(
            "the two passwords differ; nothing was changed",
        ));
    }
    let stored = StoredPassword::new(&given).map_err(|error| Failure::usage(error.to_string()))?;
    vault.change(|contents| contents.passwords.insert(role.name().to_owned(), stored))?;
    console::output(&format!("stored: the password of the {role}"));
    Ok(())
}

fn url(vault: &VaultArguments, name: &str, is_removed: bool) -> Result<(), Failure> {
    const NAME_MAX: usize = 64;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_plain) {
        return Err(Failure::usage(
            "a name has letters, digits, -, _ and ., 64 at most",
        ));
    }
    if is_removed && !Vault::exists() {
        return Err(Failure::usage(format!("the vault holds no URL {name:?}")));
    }
    let vault = Vault::open(KeySource::new(vault))?;
    if is_removed {
        let removed = vault.change(|contents| contents.urls.remove(name))?;
        return match removed {
            Some(_) => {
                console::output(&format!("removed: vault:{name}"));
                Ok(())
            }
            None => Err(Failure::usage(format!("the vault holds no URL {name:?}"))),
        };
    }
    // Found out before anything is typed in.
    vault.change(|_| ())?;
    let given = console::ask_secret("URL: ")?;
    let text = given.expose_secret().trim();
    let is_url =
        url::Url::parse(text).is_ok_and(|url| ["postgres", "postgresql"].contains(&url.scheme()));
    if !is_url {
        return Err(Failure::usage(
            "that is no URL of a database; write for example postgres://user:password@host/database",
        ));
    }
    let kept = Kept(kittiwake_fetch::Secret::new(text));
    vault.change(|contents| contents.urls.insert(name.to_owned(), kept))?;
    console::output(&format!("stored: vault:{name}"));
    Ok(())
}
