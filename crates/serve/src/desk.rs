//! What only the program can do: its vault, its definitions, its crawl.

use crate::Role;
use kittiwake_engine::Snapshot;
use kittiwake_model::{LimitTime, Secret, WorldTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use utoipa::ToSchema;

/// What every method of a desk gives that takes its time.
pub type DeskFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, DeskError>> + Send + 'a>>;

/// What kind of refusal it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeskErrorKind {
    /// What was asked makes no sense.
    Invalid,
    /// There is no such thing.
    Missing,
    /// Not now, or not by this program.
    Conflict,
    /// A limit of the network is used up for now.
    Exhausted,
    /// The network did not do its part.
    Network,
    /// Something of our own is broken.
    Broken,
}

/// Why the program did not do it, in words that may be shown: no secret is in them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DeskError {
    pub kind: DeskErrorKind,
    pub message: String,
}

impl DeskError {
    pub fn new(kind: DeskErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// The program behind the server.
pub trait Desk: std::fmt::Debug + Send + Sync {
    /// Counters of the crawl that this very process runs, if it runs one.
    fn progress(&self) -> Option<Snapshot>;

    /// The present of that crawl's world, and by the clock that its limits go by.
    fn clocks(&self) -> Option<(WorldTime, LimitTime)>;

    /// Begins the crawl again that this process was started for.
    fn start(&self) -> DeskFuture<'_, Started>;

    /// Whether the password is the role's. Takes as long for a role that has none.
    fn check_password(&self, role: Role, password: Secret) -> DeskFuture<'_, bool>;

    /// What is in the vault, without secrets.
    fn credentials(&self) -> DeskFuture<'_, Vec<CredentialView>>;

    /// Ways to log in to a network.
    fn login_methods(&self, network: String) -> DeskFuture<'_, Vec<LoginMethodView>>;

    /// Takes a credential out of the vault.
    fn remove_credential(&self, which: CredentialName) -> DeskFuture<'_, ()>;

    /// Begins to log in. Where nothing but secrets is needed, it is over at once.
    fn begin_login(&self, question: LoginQuestion) -> DeskFuture<'_, LoginView>;

    /// How a log-in stands.
    fn login(&self, id: String) -> DeskFuture<'_, LoginView>;

    /// Goes on with what a person brought back: a code, or the address that the browser ended at.
    fn finish_login(&self, id: String, answer: Secret) -> DeskFuture<'_, LoginView>;

    /// The definitions that there are.
    fn definitions(&self) -> DeskFuture<'_, Vec<DefinitionView>>;

    fn definition(&self, name: String) -> DeskFuture<'_, DefinitionText>;

    /// What is wrong with a definition, if anything is.
    fn check_definition(&self, text: String) -> DeskFuture<'_, CheckedDefinition>;

    /// Gives the crawl of this process another definition.
    fn apply_definition(&self, name: String, text: String) -> DeskFuture<'_, AppliedDefinition>;

    /// Asks the network. It costs a call, which is granted like any other.
    fn search_online(&self, question: OnlineQuestion) -> DeskFuture<'_, OnlineAnswer>;
}

/// A crawl that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Started {
    /// What happens now, in words.
    pub detail: String,
}

/// A credential without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CredentialView {
    pub network: String,
    pub host: String,
    /// The account, or a name of the user's choice.
    pub name: String,
    /// Whose it is, as the network says.
    pub account: Option<String>,
    pub method: String,
    pub kind: String,
    /// Tells nothing of the secrets; stands in the ledger and in the query log.
    pub fingerprint: String,
    pub scopes: Vec<String>,
    pub expires_us: Option<i64>,
    pub added_us: i64,
    pub renewed_us: Option<i64>,
}

/// Which credential is meant.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
pub struct CredentialName {
    pub network: String,
    pub host: String,
    pub name: String,
}

/// One way to log in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LoginMethodView {
    pub name: String,
    pub kind: String,
    pub description: String,
    /// Where what is asked for is found.
    pub page: Option<String>,
    /// The secrets that have to be given, by name.
    pub asked: Vec<String>,
}

/// How somebody wants to log in.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginQuestion {
    /// `NETWORK` or `NETWORK@HOST`.
    #[schema(max_length = 300)]
    pub network: String,
    /// An address to ask instead of the network's own.
    #[schema(max_length = 2000)]
    pub host: Option<String>,
    /// The first of the definition, if it is missing.
    #[schema(max_length = 100)]
    pub method: Option<String>,
    /// What the credential is to be called; otherwise as the account.
    #[schema(max_length = 200)]
    pub name: Option<String>,
    /// What the method asks for, by name.
    #[serde(default)]
    pub secrets: BTreeMap<String, GivenSecret>,
}

/// A secret that comes in and never goes out.
#[derive(Debug, Clone, PartialEq, Eq, ToSchema)]
#[schema(value_type = String, format = "password", max_length = 8192)]
pub struct GivenSecret(pub Secret);

impl<'de> Deserialize<'de> for GivenSecret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Secret::new(text)))
    }
}

/// How a log-in stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LoginView {
    pub id: String,
    #[serde(flatten)]
    pub state: LoginState,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum LoginState {
    /// A person has to open an address, and perhaps enter a code there. A browser on the same machine
    /// comes back by itself; from elsewhere, what it ended at is pasted.
    Waiting {
        address: Option<String>,
        user_code: Option<String>,
        /// Whether a pasted answer is taken.
        takes_answer: bool,
    },
    Done {
        credential: CredentialView,
        /// Whether the host was asked and knows it; otherwise why not.
        note: Option<String>,
    },
    Failed {
        detail: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DefinitionView {
    pub name: String,
    /// Whether it is part of the program, of the crawl, or both.
    pub shipped: bool,
    /// Whether the crawl that is served uses it.
    pub in_use: bool,
    pub digest: String,
    pub robots: Vec<RobotView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RobotView {
    pub name: String,
    /// The queries that it asks, in order.
    pub queries: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DefinitionText {
    #[serde(flatten)]
    pub view: DefinitionView,
    pub text: String,
}

/// What was found in a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CheckedDefinition {
    pub is_sound: bool,
    /// With lines and columns; empty if it is sound.
    pub errors: String,
    pub name: Option<String>,
    pub digest: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AppliedDefinition {
    pub digest: String,
    /// What happens now, in words.
    pub detail: String,
}

/// What is to be asked of the network itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OnlineQuestion {
    /// `NETWORK@HOST`; that of the crawl, if it is missing.
    #[schema(max_length = 300)]
    pub network: Option<String>,
    /// An address to ask instead of the network's own.
    #[schema(max_length = 2000)]
    pub host: Option<String>,
    /// One of the network's robots that search; the first, if it is missing.
    #[schema(max_length = 100)]
    pub query: Option<String>,
    #[schema(min_length = 1, max_length = 500)]
    pub words: String,
}

/// What the network answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct OnlineAnswer {
    pub network: String,
    pub host: String,
    pub query: String,
    /// Calls that were made for it, out of the ledger.
    pub calls: u32,
    pub found: Vec<OnlineHit>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct OnlineHit {
    /// `users`, `statuses`, …
    pub table: String,
    pub id: String,
    pub name: Option<String>,
    pub text: Option<String>,
    pub url: Option<String>,
}
