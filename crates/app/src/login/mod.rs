//! Logging in: one file per way.

mod code;
mod device;
mod loopback;

use crate::exchange::{log_in_by_form, send, shown};
use crate::failure::{Failure, code as exit};
use crate::place::Place;
use crate::vault::{StoredApplication, Vault, kept};
use crate::{console, environment};
use kittiwake_fetch::{Fetcher, Secret};
use kittiwake_network::auth::{
    AuthCall, AuthError, Grant, Issued, LoginKind, LoginMethod, Registration, Secrets, Sending,
    TokenEndpoint, secret_names,
};
use std::future::Future;
use std::pin::Pin;

/// The most letters that may be typed in for one secret.
const SECRET_BYTES_MAX: usize = 16_384;

/// Everything that a log-in needs to know.
pub(crate) struct Login<'a> {
    pub place: &'a Place,
    pub method: &'a LoginMethod,
    pub scopes: Vec<String>,
    pub fetcher: &'a Fetcher,
    pub vault: &'a Vault,
    /// A token is given as it is, whatever the method.
    pub token: bool,
    pub paste: bool,
    pub port: Option<u16>,
    /// Whom secrets are asked of, and who is told what to open.
    pub person: &'a dyn Person,
}

/// Whoever logs in: at the terminal, or in a browser.
pub(crate) trait Person: Sync {
    /// What the person was told to do.
    fn tell(&self, told: Told);

    /// A secret, by its name.
    fn secret(&self, name: &str) -> Result<Secret, Failure>;

    /// A secret that not everybody has: nothing where there is none.
    fn optional_secret(&self, name: &str) -> Option<Secret> {
        let given = self.secret(name).ok();
        given.filter(|given| !given.expose_secret().trim().is_empty())
    }

    /// What the person copied from the browser by hand, if they did before it came back by itself.
    fn copied(&self) -> Pin<Box<dyn Future<Output = Secret> + Send + '_>>;
}

/// What a person has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// Where what is asked for is found.
    Page(String),
    Open(String),
    Enter {
        address: String,
        code: String,
    },
}

/// Whoever sits at the terminal.
#[derive(Debug)]
pub(crate) struct AtTerminal;

impl Person for AtTerminal {
    fn tell(&self, told: Told) {
        console::note(&match told {
            Told::Page(_) if !console::can_ask() => return,
            Told::Page(page) => format!("what is asked for is found here: {page}"),
            Told::Open(address) => format!("open this address in a browser:\n\n{address}\n"),
            Told::Enter { address, code } => {
                format!("open {address} in a browser and enter {code}")
            }
        });
    }

    fn secret(&self, name: &str) -> Result<Secret, Failure> {
        let prompt = format!("{}: ", name.replace('_', " "));
        if [secret_names::CLIENT_ID, secret_names::IDENTIFIER].contains(&name) {
            console::ask_line(&prompt)
        } else {
            console::ask_secret(&prompt)
        }
    }

    fn optional_secret(&self, name: &str) -> Option<Secret> {
        let words = name.replace('_', " ");
        let prompt =
            format!("{words} (if the application has one for a proof; else leave it empty): ");
        let given = console::ask_secret(&prompt).ok();
        given.filter(|given| !given.expose_secret().trim().is_empty())
    }

    fn copied(&self) -> Pin<Box<dyn Future<Output = Secret> + Send + '_>> {
        Box::pin(std::future::pending())
    }
}

/// What a log-in brought: all secrets of the credential, and what is known of them.
pub(crate) struct LoggedIn {
    pub secrets: Secrets,
    pub issued: Issued,
}

impl Login<'_> {
    /// Goes through the log-in. Nothing is stored but an application that registered itself.
    pub(crate) async fn run(&self) -> Result<LoggedIn, Failure> {
        if let Some(page) = &self.method.page {
            self.person.tell(Told::Page(page.clone()));
        }
        let asked = self.ask_secrets()?;
        let (secrets, issued) = match &self.method.kind {
            _ if self.token => (asked, Issued::default()),
            LoginKind::Token | LoginKind::OAuth1 => (asked, Issued::default()),
            LoginKind::Session(flow) => {
                let call = flow.create_call(&self.place.base, &asked);
                let now_s = environment::real_now().micros().div_euclid(1_000_000);
                let read = |status: u16, body: &[u8]| flow.read(status, body, now_s);
                let issued = self.exchange(call, &asked, read).await?;
                (asked, issued)
            }
            LoginKind::Form(flow) => {
                let issued = log_in_by_form(self.fetcher, flow, &self.place.base, &asked).await;
                let issued = issued.map_err(|error| failed(&error, &asked))?;
                (asked, issued)
            }
            LoginKind::ClientCredentials { endpoint, register } => {
                let client = self.client(asked, register.as_ref(), &[]).await?;
                let grant = Grant::Client {
                    scopes: &self.scopes,
                };
                let call = endpoint.call(&self.place.base, &client, &grant);
                let issued = self.exchange(call, &client, TokenEndpoint::read).await?;
                (client, issued)
            }
            LoginKind::Code(flow) => self.with_code(flow, asked).await?,
            LoginKind::Device(flow) => self.with_device(flow, asked).await?,
        };
        let mut all = secrets;
        all.extend(issued.secrets.clone());
        Ok(LoggedIn {
            secrets: all,
            issued,
        })
    }

    /// Asks for what the method needs.
    fn ask_secrets(&self) -> Result<Secrets, Failure> {
        let mut secrets = Secrets::new();
        let names: &[&str] = if self.token {
            &[secret_names::ACCESS_TOKEN]
        } else {
            self.method.kind.asked()
        };
        for name in names {
            let value = self.person.secret(name)?;
            secrets.insert((*name).to_owned(), checked(name, &value)?);
        }
        let is_proved = matches!(self.method.sending, Sending::Proved { .. });
        let name = secret_names::CLIENT_SECRET;
        if is_proved
            && !secrets.contains_key(name)
            && secrets.contains_key(secret_names::ACCESS_TOKEN)
            && let Some(value) = self.person.optional_secret(name)
        {
            secrets.insert(name.to_owned(), checked(name, &value)?);
        }
        Ok(secrets)
    }

    /// The application: the one that was asked for, one that registered itself before, or a new one.
    async fn client(
        &self,
        asked: Secrets,
        register: Option<&Registration>,
        redirects: &[String],
    ) -> Result<Secrets, Failure> {
        let Some(register) = register else {
            return Ok(asked);
        };
        if let Some(known) = self.registered(redirects)? {
            return Ok(known);
        }
        let base = &self.place.base;
        let call = register.call(base, redirects, &self.scopes);
        let client = self
            .exchange(Ok(call), &asked, Registration::read)
            .await
            .map_err(|failure| Failure {
                message: format!("the application cannot be registered: {}", failure.message),
                ..failure
            })?;
        let application = StoredApplication {
            network: self.place.network.name().to_string(),
            base: base.to_string(),
            method: self.method.name.to_string(),
            redirects: redirects.to_vec(),
            scopes: self.scopes.clone(),
            secrets: kept(&client),
        };
        self.vault.change(|contents| {
            let is_other = |known: &StoredApplication| {
                (&known.network, &known.base, &known.method)
                    != (&application.network, &application.base, &application.method)
            };
            contents.applications.retain(is_other);
            contents.applications.push(application.clone());
        })?;
        Ok(client)
    }

    /// Hosts let few applications register: one that fits is used again.
    fn registered(&self, redirects: &[String]) -> Result<Option<Secrets>, Failure> {
        let applications = self.vault.read()?.applications;
        let known = applications
            .iter()
            .find(|known| self.is_own(known) && known.redirects == redirects);
        Ok(known
            .filter(|known| known.scopes == self.scopes)
            .map(|known| {
                let secrets = known.secrets.iter();
                secrets
                    .map(|(name, kept)| (name.clone(), kept.0.clone()))
                    .collect()
            }))
    }

    fn is_own(&self, application: &StoredApplication) -> bool {
        application.network == **self.place.network.name()
            && application.base == self.place.base.as_str()
            && application.method == *self.method.name
    }

    /// One call of the log-in. What the server says is shown without the secrets.
    async fn exchange<T>(
        &self,
        call: Result<AuthCall, AuthError>,
        secrets: &Secrets,
        read: impl Fn(u16, &[u8]) -> Result<T, AuthError>,
    ) -> Result<T, Failure> {
        let answered = match call {
            Ok(call) => send(self.fetcher, &call).await,
            Err(error) => Err(error),
        };
        let result = answered.and_then(|(status, body)| read(status, &body));
        result.map_err(|error| failed(&error, secrets))
    }
}

fn failed(error: &AuthError, secrets: &Secrets) -> Failure {
    let code = match error {
        AuthError::Unreachable(_) | AuthError::Trouble { .. } => exit::OTHER,
        _ => exit::AUTHENTICATION,
    };
    Failure {
        message: format!("{}; no credential was stored", shown(error, secrets)),
        code,
    }
}

/// A secret as it was typed in, without what a copy brings along.
fn checked(name: &str, value: &Secret) -> Result<Secret, Failure> {
    let text = value.expose_secret().trim();
    // A password may hold spaces; nothing else does.
    let is_password = name == secret_names::PASSWORD;
    let is_fit = |letter: char| {
        if is_password {
            !letter.is_control()
        } else {
            letter.is_ascii_graphic()
        }
    };
    let words = name.replace('_', " ");
    if text.is_empty() {
        return Err(Failure::usage(format!(
            "no {words} was given; type it in, or give it on standard input"
        )));
    }
    if text.len() > SECRET_BYTES_MAX || !text.chars().all(is_fit) {
        return Err(Failure::usage(format!(
            "the {words} holds characters that none has; copy it once more"
        )));
    }
    Ok(Secret::new(text))
}
