//! A credential in use: where it may go, and what happens when it is refused.

use crate::Clock;
use crate::exchange::Shop;
use crate::work::Work;
use kittiwake_fetch::{Request, Response};
use kittiwake_model::{Name, Secret};
use kittiwake_network::auth::{COOKIE_PREFIX, Secrets, Sending, Stamp, secret_names};
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use url::{Origin, Url};

/// Somebody a network knows: how requests show it, where that may be sent, and who renews it.
#[derive(Debug, Clone)]
pub struct Credential {
    /// Tells nothing of the secrets; stands in the ledger and in the query log.
    pub fingerprint: String,
    /// Whose it is, as far as limits are concerned: the same for all credentials of one account;
    /// `None` where that is not known.
    pub account: Option<String>,
    /// The application that it was issued to, if that is known.
    pub application: Option<String>,
    /// The robots that it is kept for; it serves all of them if none is named.
    pub robots: Vec<Name>,
    pub sending: Sending,
    /// The origins it was issued for. It is sent to no other.
    pub origins: Vec<Origin>,
    pub keeper: Arc<dyn Keeper>,
}

/// What a keeper does takes its time: renewing is a call of its own.
pub type Keeping<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Who holds the secrets of a credential and renews them.
pub trait Keeper: Debug + Send + Sync {
    /// The secrets as they are, renewed first if they are about to expire.
    fn held(&self) -> Keeping<'_, Result<Held, String>>;

    /// Other secrets in the place of those that a server refused; an error says why there are none,
    /// in words that are safe to print, or is empty if there never could be.
    fn renew<'a>(&'a self, refused: &'a Held) -> Keeping<'a, Result<Held, String>>;

    /// A word that no other request has.
    fn nonce(&self) -> String;
}

/// Secrets as they were issued at one time.
#[derive(Debug, Clone)]
pub struct Held {
    pub secrets: Arc<Secrets>,
    /// Counts how often they were renewed in this run.
    pub issue: u64,
}

impl Held {
    fn redact(&self, text: &mut String) {
        for secret in self.secrets.values() {
            secret.redact(text);
        }
    }

    /// Takes the cookies of a session out of a page that repeats them: what is taken of a page is kept.
    pub(crate) fn blot_out_cookies(&self, response: &mut Response) {
        let all = self.secrets.iter();
        let cookies = all.filter(|(name, _)| name.starts_with(COOKIE_PREFIX));
        for (_, cookie) in cookies {
            if !cookie.stands_in(&response.body) {
                continue;
            }
            let mut body = response.body.to_vec();
            cookie.redact_bytes(&mut body);
            response.body = body.into();
        }
    }

    fn redact_bytes(&self, bytes: &mut Vec<u8>) {
        for secret in self.secrets.values() {
            secret.redact_bytes(bytes);
        }
    }
}

/// A token that never changes: nobody renews it.
#[derive(Debug)]
pub struct FixedKeeper {
    held: Held,
    nonce: fn() -> String,
}

impl FixedKeeper {
    pub fn new(secrets: Secrets, nonce: fn() -> String) -> Self {
        let held = Held {
            secrets: Arc::new(secrets),
            issue: 0,
        };
        Self { held, nonce }
    }
}

impl Keeper for FixedKeeper {
    fn held(&self) -> Keeping<'_, Result<Held, String>> {
        Box::pin(async { Ok(self.held.clone()) })
    }

    fn renew<'a>(&'a self, _refused: &'a Held) -> Keeping<'a, Result<Held, String>> {
        Box::pin(async { Err(String::new()) })
    }

    fn nonce(&self) -> String {
        (self.nonce)()
    }
}

impl Credential {
    /// Whether the robot may use it.
    pub fn serves(&self, robot: &str) -> bool {
        self.robots.is_empty() || self.robots.iter().any(|bound| **bound == *robot)
    }

    /// Whether it may be sent there.
    pub fn is_for(&self, url: &Url) -> bool {
        self.origins.contains(&url.origin())
    }

    /// The same with what was made of it for the call: a server may repeat that, too.
    fn with_proof(&self, held: Held) -> Held {
        let Some(proof) = self.sending.proof(&held.secrets) else {
            return held;
        };
        let mut secrets = Secrets::clone(&held.secrets);
        secrets.insert(secret_names::PROOF.to_owned(), proof);
        Held {
            secrets: Arc::new(secrets),
            ..held
        }
    }

    /// Adds it to a request, if the host may have it; `signed` is the address that a signature
    /// covers. Gives what was sent, or why it cannot be had.
    pub(crate) async fn attach(
        &self,
        request: &mut Request,
        signed: &Url,
        clock: &Clock,
    ) -> Result<Option<Held>, String> {
        if !self.is_for(&request.url) {
            return Ok(None);
        }
        let held = self.keeper.held().await?;
        let stamp = Stamp {
            unix_s: clock.real().micros().div_euclid(1_000_000),
            nonce: self.keeper.nonce(),
        };
        let method = match request.method {
            kittiwake_fetch::Method::Get => "GET",
            kittiwake_fetch::Method::Post => "POST",
        };
        let attached = self
            .sending
            .attach(&held.secrets, method, signed, &stamp)
            .map_err(|missing| missing.to_string())?;
        request.secret_headers = attached.headers;
        request.secret_query = attached.query;
        Ok(Some(self.with_proof(held)))
    }
}

/// A credential's place in the crawl's list.
pub(crate) type CredentialId = usize;

/// What was learnt of a credential in this run.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// One more than the last issue that a server accepted.
    accepted: AtomicU64,
    is_refused: AtomicBool,
}

impl Standing {
    fn accept(&self, held: &Held) {
        self.accepted.fetch_max(held.issue + 1, Ordering::Relaxed);
    }

    /// Nothing more can be asked with it.
    fn refuse(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
    }

    /// Whether a server took these secrets before.
    fn was_accepted(&self, held: &Held) -> bool {
        self.accepted.load(Ordering::Relaxed) > held.issue
    }
}

/// What a refusal of the credential comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There are new secrets: the call can be made again.
    Renewed,
    /// Nothing more can be asked with it; why it was not renewed, if there is a reason.
    Final(String),
}

impl Shop {
    /// The credentials that a robot may use.
    pub(crate) fn serving(&self, robot: &str) -> impl Iterator<Item = CredentialId> {
        let credentials = self.settings.credentials.iter().enumerate();
        credentials
            .filter(move |(_, credential)| credential.serves(robot))
            .map(|(id, _)| id)
    }

    /// The credential that goes with the work's call.
    pub(crate) fn credential_of(&self, work: &Work) -> Option<&Credential> {
        self.settings.credentials.get(work.credential?)
    }

    /// Adds the work's credential to a request, if the host may have it. Gives what was sent.
    pub(crate) async fn attach(
        &self,
        request: &mut Request,
        work: &Work,
    ) -> Result<Option<Held>, String> {
        let Some(credential) = self.credential_of(work) else {
            return Ok(None);
        };
        let url = request.url.clone();
        let signed = work.call.plan.signed_url(&url);
        credential.attach(request, &signed, &self.clock).await
    }

    /// The credential was sent and the answer does not complain of it.
    pub(crate) fn accepted(&self, work: &Work, held: &Held) {
        if let Some(standing) = self.standing_of(work) {
            standing.accept(held);
        }
    }

    fn standing_of(&self, work: &Work) -> Option<&Standing> {
        self.standings.get(work.credential?)
    }

    /// The credential was sent and refused: it is renewed, unless what was refused is itself new.
    pub(crate) async fn refused(&self, work: &Work, held: &Held) -> Refusal {
        let known = self.credential_of(work).zip(self.standing_of(work));
        let Some((credential, standing)) = known else {
            return Refusal::Final(String::new());
        };
        let refusal = Self::renewed(credential, standing, held).await;
        if refusal != Refusal::Renewed {
            standing.refuse();
        }
        refusal
    }

    /// Whether it is known already, before the answer is committed, that a credential is refused.
    pub(crate) fn is_refused(&self, id: CredentialId) -> bool {
        let standing = self.standings.get(id);
        standing.is_some_and(|it| it.is_refused.load(Ordering::Relaxed))
    }

    async fn renewed(credential: &Credential, standing: &Standing, held: &Held) -> Refusal {
        // A server that refuses what it has just given out is not asked for more.
        if held.issue > 0 && !standing.was_accepted(held) {
            return Refusal::Final("it was renewed and is refused again".to_owned());
        }
        match credential.keeper.renew(held).await {
            Ok(_) => Refusal::Renewed,
            Err(reason) => Refusal::Final(reason),
        }
    }
}

/// Takes the secrets that were sent out of what a server says.
pub(crate) fn redact(held: Option<&Held>, text: &mut String) {
    if let Some(held) = held {
        held.redact(text);
    }
}

pub(crate) fn redact_raw(held: Option<&Held>, raw: Option<Vec<u8>>) -> Option<Vec<u8>> {
    let mut raw = raw?;
    if let Some(held) = held {
        held.redact_bytes(&mut raw);
    }
    Some(raw)
}

/// A bearer token as the secrets of a credential.
pub fn bearer_secrets(token: Secret) -> Secrets {
    let name = kittiwake_network::auth::secret_names::ACCESS_TOKEN;
    Secrets::from([(name.to_owned(), token)])
}
