//! Keeps a credential of the vault fresh while it is used.

use crate::vault::{LockedVault, StoredCredential, Vault, kept};
use crate::{environment, exchange, machine};
use kittiwake_engine::{CrashHook, CrashPoint, Held, Keeper, Keeping};
use kittiwake_fetch::Fetcher;
use kittiwake_network::auth::{
    AuthError, FormFlow, Grant, Issued, LoginKind, LoginMethod, Secrets, TokenEndpoint,
    secret_names,
};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use url::Url;

/// A token is renewed so long before it expires, but not in the first half of its life.
const AHEAD_US: i64 = 60_000_000;
/// How often a server that has trouble is asked to renew.
const TRIES_MAX: u32 = 3;
const PAUSE_FIRST: Duration = Duration::from_millis(500);

/// What an answer to a renewal means.
type Read<'a> = dyn Fn(u16, &[u8]) -> Result<Issued, AuthError> + Sync + 'a;

/// What is needed to renew a credential.
#[derive(Clone)]
pub(crate) struct Renewal {
    pub method: LoginMethod,
    pub base: Url,
    pub fetcher: Fetcher,
    pub crash: CrashHook,
}

impl fmt::Debug for Renewal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Renewal({})", self.method.name)
    }
}

/// Holds a credential of the vault. What a renewal gives is saved before it is used.
#[derive(Debug)]
pub(crate) struct VaultKeeper {
    vault: Vault,
    /// As it was when the program began; says which one of the vault it is.
    stored: StoredCredential,
    renewal: Renewal,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    held: Held,
    /// When to renew, and when it is too late to go on without.
    renew_us: Option<i64>,
    expires_us: Option<i64>,
    /// Why it can no longer be renewed.
    failed: Option<String>,
}

impl State {
    fn of(stored: &StoredCredential, issue: u64) -> Self {
        let began_us = stored.renewed_us.unwrap_or(stored.added_us);
        let half_us = |expires_us: i64| expires_us - (expires_us - began_us) / 2;
        Self {
            held: Held {
                secrets: Arc::new(stored.secrets()),
                issue,
            },
            renew_us: stored
                .expires_us
                .map(|expires_us| (expires_us - AHEAD_US).max(half_us(expires_us))),
            expires_us: stored.expires_us,
            failed: None,
        }
    }
}

impl VaultKeeper {
    pub(crate) fn new(vault: Vault, stored: &StoredCredential, renewal: Renewal) -> Self {
        Self {
            vault,
            renewal,
            state: Mutex::new(State::of(stored, 0)),
            stored: stored.clone(),
        }
    }

    /// Renews under the vault's lock, so that nobody else does at the same time, and saves.
    async fn renew_now(&self, state: &mut State) -> Result<Held, String> {
        if let Some(reason) = &state.failed {
            return Err(reason.clone());
        }
        let renewed = self.renewed(state).await;
        match renewed {
            Ok(stored) => {
                *state = State::of(&stored, state.held.issue + 1);
                Ok(state.held.clone())
            }
            Err(reason) => {
                state.failed = Some(reason.clone());
                Err(reason)
            }
        }
    }

    async fn renewed(&self, state: &State) -> Result<StoredCredential, String> {
        let mut locked = self.lock().await?;
        let place = locked
            .contents
            .credentials
            .iter()
            .position(|known| known.is_same(&self.stored))
            .ok_or("it was removed from the vault")?;
        let stored = locked.contents.credentials[place].clone();
        let access = |secrets: &Secrets| secrets.get(secret_names::ACCESS_TOKEN).cloned();
        if access(&stored.secrets()) != access(&state.held.secrets) {
            // Another process was quicker.
            return Ok(stored);
        }
        let issued = self.renewal.renew(&stored).await?;
        self.renewal.crash.reached(CrashPoint::RenewAndSave);
        let stored = with_issued(stored, &issued);
        locked.contents.credentials[place] = stored.clone();
        tokio::task::spawn_blocking(move || locked.save())
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())?;
        Ok(stored)
    }

    async fn lock(&self) -> Result<LockedVault, String> {
        let vault = self.vault.clone();
        tokio::task::spawn_blocking(move || vault.lock())
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())
    }
}

impl Keeper for VaultKeeper {
    fn held(&self) -> Keeping<'_, Result<Held, String>> {
        Box::pin(async {
            let mut state = self.state.lock().await;
            let now_us = environment::real_now().micros();
            let is_due = |at: Option<i64>| at.is_some_and(|at| now_us >= at);
            if !is_due(state.renew_us) || !self.renewal.is_possible(&state.held.secrets) {
                return Ok(state.held.clone());
            }
            let is_late = is_due(state.expires_us);
            match self.renew_now(&mut state).await {
                Err(reason) if is_late => Err(reason),
                // It is still good for a while.
                Err(_) => Ok(state.held.clone()),
                renewed => renewed,
            }
        })
    }

    fn renew<'a>(&'a self, refused: &'a Held) -> Keeping<'a, Result<Held, String>> {
        Box::pin(async {
            let mut state = self.state.lock().await;
            if state.held.issue > refused.issue {
                return Ok(state.held.clone());
            }
            if !self.renewal.is_possible(&state.held.secrets) {
                return Err(String::new());
            }
            self.renew_now(&mut state).await
        })
    }

    fn nonce(&self) -> String {
        machine::random_word()
    }
}

impl Renewal {
    /// Whether there is a way to renew at all.
    fn is_possible(&self, secrets: &Secrets) -> bool {
        match self.method.kind {
            LoginKind::Token | LoginKind::OAuth1 => false,
            LoginKind::ClientCredentials { .. } | LoginKind::Session(_) | LoginKind::Form(_) => {
                true
            }
            LoginKind::Code(_) | LoginKind::Device(_) => {
                secrets.contains_key(secret_names::REFRESH_TOKEN)
            }
        }
    }

    async fn renew(&self, stored: &StoredCredential) -> Result<Issued, String> {
        // A definition of the same name must not lead the secrets elsewhere.
        let is_known = |url: &Url| {
            let origin = url.origin().ascii_serialization();
            stored.issuers.contains(&origin)
        };
        if !self.method.kind.issuers(&self.base).iter().all(is_known) {
            return Err(
                "the definition names another place to renew it than the one that issued it; log \
                 in again"
                    .to_owned(),
            );
        }
        let secrets = stored.secrets();
        let issued = match &self.method.kind {
            LoginKind::Session(flow) => {
                let refresh = flow.refresh_call(&self.base, &secrets);
                let now_s = environment::real_now().micros().div_euclid(1_000_000);
                let read = |status: u16, body: &[u8]| flow.read(status, body, now_s);
                match self.ask(refresh, &read).await {
                    // The token that renews is worn out, or was used by a run that died: begin anew.
                    Err(AuthError::Refused { .. }) => {
                        let create = flow.create_call(&self.base, &secrets);
                        self.ask(create, &read).await
                    }
                    other => other,
                }
            }
            LoginKind::Form(flow) => self.log_in_again(flow, &secrets).await,
            kind => {
                let Some(endpoint) = kind.token_endpoint() else {
                    return Err("it cannot be renewed".to_owned());
                };
                let grant = match secrets.get(secret_names::REFRESH_TOKEN) {
                    Some(token) => Grant::Refresh(token),
                    None => Grant::Client {
                        scopes: &stored.scopes,
                    },
                };
                let call = endpoint.call(&self.base, &secrets, &grant);
                self.ask(call, &TokenEndpoint::read).await
            }
        };
        issued.map_err(|error| exchange::shown(&error, &secrets))
    }

    /// Fills the form in, and once more while the server has trouble.
    async fn log_in_again(&self, flow: &FormFlow, secrets: &Secrets) -> Result<Issued, AuthError> {
        let mut pause = PAUSE_FIRST;
        for _ in 1..TRIES_MAX {
            match exchange::log_in_by_form(&self.fetcher, flow, &self.base, secrets).await {
                Err(AuthError::Trouble { .. } | AuthError::Unreachable(_)) => {}
                other => return other,
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        exchange::log_in_by_form(&self.fetcher, flow, &self.base, secrets).await
    }

    /// Asks, and asks again while the server has trouble.
    async fn ask(
        &self,
        call: Result<kittiwake_network::auth::AuthCall, AuthError>,
        read: &Read<'_>,
    ) -> Result<Issued, AuthError> {
        let call = call?;
        let mut pause = PAUSE_FIRST;
        for _ in 1..TRIES_MAX {
            match exchange::send(&self.fetcher, &call).await {
                Ok((status, body)) => match read(status, &body) {
                    Err(AuthError::Trouble { .. }) => {}
                    other => return other,
                },
                Err(AuthError::Unreachable(_)) => {}
                Err(error) => return Err(error),
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        let (status, body) = exchange::send(&self.fetcher, &call).await?;
        read(status, &body)
    }
}

/// The credential with what a renewal gave. A network that gives no new token to renew with means
/// the old one to go on.
fn with_issued(mut stored: StoredCredential, issued: &Issued) -> StoredCredential {
    let now_us = environment::real_now().micros();
    stored.secrets.extend(kept(&issued.secrets));
    stored.expires_us = issued
        .expires_in_s
        .map(|seconds| now_us.saturating_add(seconds.saturating_mul(1_000_000)));
    if let Some(scopes) = &issued.scopes {
        stored.scopes.clone_from(scopes);
    }
    stored.renewed_us = Some(now_us);
    stored
}
