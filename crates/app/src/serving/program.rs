//! The desk: what the server asks of the program.

use super::definitions::{self, Known};
use super::logins::Logins;
use super::online;
use super::runner::Runner;
use crate::cli::VaultArguments;
use crate::commands::auth;
use crate::failure::{Failure, code};
use crate::vault::{KeySource, StoredCredential, StoredPassword, Vault};
use kittiwake_engine::Snapshot;
use kittiwake_model::{LimitTime, Secret, WorldTime};
use kittiwake_serve::desk::{
    AppliedDefinition, CheckedDefinition, CredentialName, CredentialView, DefinitionText,
    DefinitionView, LoginMethodView, LoginQuestion, LoginView, OnlineAnswer, OnlineQuestion,
    Started,
};
use kittiwake_serve::{Desk, DeskError, DeskErrorKind, DeskFuture, Role};
use kittiwake_store::{Location, OpenMode, Store};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The vault as it was opened when the server began: nobody is asked later.
#[derive(Debug)]
pub(crate) struct Secrets {
    arguments: VaultArguments,
    vault: Option<Vault>,
    passwords: BTreeMap<String, StoredPassword>,
}

impl Secrets {
    /// Opens the vault if there is one, and asks for its passphrase if need be.
    pub(crate) fn open(arguments: &VaultArguments) -> Result<Self, Failure> {
        if !Vault::exists() && !KeySource::new(arguments).is_given() {
            return Ok(Self::none(arguments));
        }
        let vault = Vault::open(KeySource::new(arguments)).map_err(|failure| Failure {
            message: format!(
                "{}; without it nobody knows whether the dashboard has a password",
                failure.message
            ),
            ..failure
        })?;
        let passwords = vault.read()?.passwords;
        let arguments = VaultArguments {
            known: Some(vault.key()),
            ..arguments.clone()
        };
        Ok(Self {
            arguments,
            vault: Some(vault),
            passwords,
        })
    }

    /// The same for what needs no secrets: a vault that would have to be asked for stays shut.
    pub(crate) fn without_asking(arguments: &VaultArguments) -> Result<Self, Failure> {
        if KeySource::new(arguments).is_given() {
            return Self::open(arguments);
        }
        Ok(Self::none(arguments))
    }

    fn none(arguments: &VaultArguments) -> Self {
        Self {
            arguments: arguments.clone(),
            vault: None,
            passwords: BTreeMap::new(),
        }
    }

    pub(crate) fn arguments(&self) -> VaultArguments {
        self.arguments.clone()
    }

    pub(crate) fn vault(&self) -> Result<&Vault, DeskError> {
        self.vault.as_ref().ok_or_else(|| {
            conflict(
                "the vault is shut: start the server with --key-file or --passphrase-file (kittiwake auth key \
                 makes a key)",
            )
        })
    }
}

/// What the program does for the server.
#[derive(Debug)]
pub(crate) struct Program {
    secrets: Secrets,
    nobodys: StoredPassword,
    store: Arc<dyn Store>,
    ledger: Location,
    /// The crawl of this process, if it runs one.
    runner: Option<Arc<Runner>>,
    logins: Logins,
}

impl Program {
    pub(crate) fn new(
        secrets: Secrets,
        place: &Location,
        ledger: Location,
        runner: Option<Arc<Runner>>,
    ) -> Result<Self, Failure> {
        let nobodys = StoredPassword::nobodys();
        Ok(Self {
            secrets,
            nobodys: nobodys.map_err(|error| Failure::other(error.to_string()))?,
            store: place.open(OpenMode::Read)?.into(),
            ledger,
            runner,
            logins: Logins::default(),
        })
    }

    pub(crate) fn has_password(&self) -> bool {
        !self.secrets.passwords.is_empty()
    }

    async fn known(&self) -> Result<Known, DeskError> {
        let run = self.store.last_run().await.map_err(broken)?;
        Ok(Known::new(run.map(|(_, run)| run)))
    }
}

pub(super) fn conflict(message: impl Into<String>) -> DeskError {
    DeskError::new(DeskErrorKind::Conflict, message)
}

pub(super) fn missing(message: impl Into<String>) -> DeskError {
    DeskError::new(DeskErrorKind::Missing, message)
}

fn broken(error: impl ToString) -> DeskError {
    DeskError::new(DeskErrorKind::Broken, error.to_string())
}

/// A failure of a command, as the server tells it.
pub(super) fn refused(failure: Failure) -> DeskError {
    let kind = match failure.code {
        code::USAGE => DeskErrorKind::Invalid,
        code::CAPPED => DeskErrorKind::Exhausted,
        _ => DeskErrorKind::Conflict,
    };
    DeskError::new(kind, failure.message)
}

pub(super) fn view(stored: &StoredCredential) -> CredentialView {
    CredentialView {
        network: stored.network.clone(),
        host: stored.host.clone(),
        name: stored.name.clone(),
        account: stored.account.clone(),
        method: stored.method.clone(),
        kind: stored.kind.clone(),
        fingerprint: stored.fingerprint.clone(),
        scopes: stored.scopes.clone(),
        expires_us: stored.expires_us,
        added_us: stored.added_us,
        renewed_us: stored.renewed_us,
    }
}

/// Does what takes a processor or a disk, beside the server's own threads.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DeskError> + Send + 'static,
) -> Result<T, DeskError> {
    tokio::task::spawn_blocking(work).await.map_err(broken)?
}

impl Desk for Program {
    fn progress(&self) -> Option<Snapshot> {
        self.runner.as_ref()?.progress()
    }

    fn clocks(&self) -> Option<(WorldTime, LimitTime)> {
        self.runner.as_ref()?.clocks()
    }

    fn start(&self) -> DeskFuture<'_, Started> {
        Box::pin(async {
            let Some(runner) = &self.runner else {
                return Err(conflict(
                    "this server only shows the crawl: begin it with the command that began it before, or \
                     with kittiwake crawl … --serve",
                ));
            };
            Runner::start(runner).await.map_err(refused)?;
            Ok(Started {
                detail: "the crawl goes on".to_owned(),
            })
        })
    }

    fn check_password(&self, role: Role, password: Secret) -> DeskFuture<'_, bool> {
        let stored = self.secrets.passwords.get(role.name());
        let stored = stored.unwrap_or(&self.nobodys).clone();
        Box::pin(beside(move || Ok(stored.fits(&password))))
    }

    fn credentials(&self) -> DeskFuture<'_, Vec<CredentialView>> {
        Box::pin(async {
            let Ok(vault) = self.secrets.vault() else {
                return Ok(Vec::new());
            };
            let vault = vault.clone();
            beside(move || {
                let contents = vault.read().map_err(|error| refused(error.into()))?;
                Ok(contents.credentials.iter().map(view).collect())
            })
            .await
        })
    }

    fn login_methods(&self, network: String) -> DeskFuture<'_, Vec<LoginMethodView>> {
        Box::pin(async move { self.known().await?.login_methods(&network) })
    }

    fn remove_credential(&self, which: CredentialName) -> DeskFuture<'_, ()> {
        Box::pin(async move {
            let vault = self.secrets.vault()?.clone();
            beside(move || auth::take_out(&vault, &which.network, &which.host, &which.name)).await
        })
    }

    fn begin_login(&self, question: LoginQuestion) -> DeskFuture<'_, LoginView> {
        Box::pin(async move {
            let vault = self.secrets.vault()?.clone();
            let place = self
                .known()
                .await?
                .place(&question.network, question.host.as_deref())?;
            self.logins.begin(place, vault, question).await
        })
    }

    fn login(&self, id: String) -> DeskFuture<'_, LoginView> {
        Box::pin(async move { self.logins.look(&id) })
    }

    fn finish_login(&self, id: String, answer: Secret) -> DeskFuture<'_, LoginView> {
        Box::pin(async move { self.logins.answer(&id, answer).await })
    }

    fn definitions(&self) -> DeskFuture<'_, Vec<DefinitionView>> {
        Box::pin(async { Ok(self.known().await?.list()) })
    }

    fn definition(&self, name: String) -> DeskFuture<'_, DefinitionText> {
        Box::pin(async move { self.known().await?.text(&name) })
    }

    fn check_definition(&self, text: String) -> DeskFuture<'_, CheckedDefinition> {
        Box::pin(beside(move || Ok(definitions::check(&text))))
    }

    fn apply_definition(&self, name: String, text: String) -> DeskFuture<'_, AppliedDefinition> {
        Box::pin(async move {
            let checked = self.known().await?.fit_to_apply(&name, &text)?;
            let Some(runner) = &self.runner else {
                return Err(conflict(
                    "this server only shows the crawl: give the definition to the command that crawls, by its \
                     file, or crawl with --serve",
                ));
            };
            // It goes on even if whoever asked for it goes away.
            let applying = tokio::spawn(Runner::apply(Arc::clone(runner), text));
            let was_running = applying.await.map_err(broken)?.map_err(refused)?;
            let detail = if was_running {
                "the run has ended where it can be gone on with, and another has begun with the definition"
            } else {
                "the next run that is started here uses it"
            };
            Ok(AppliedDefinition {
                digest: checked,
                detail: detail.to_owned(),
            })
        })
    }

    fn search_online(&self, question: OnlineQuestion) -> DeskFuture<'_, OnlineAnswer> {
        Box::pin(async move {
            let known = self.known().await?;
            let asking = online::Asking::new(&known, self.runner.as_deref(), &question)?;
            let vault = self.secrets.arguments();
            Box::pin(asking.ask(&question, &vault, &self.ledger)).await
        })
    }
}
