//! Logging in to networks from the dashboard: the ways are those of `kittiwake login`; the person is at a
//! browser.

use super::program::{conflict, missing, view};
use crate::commands::login::keep;
use crate::failure::Failure;
use crate::login::{Login, Person, Told};
use crate::place::{self, Place};
use crate::vault::Vault;
use crate::{machine, robots};
use kittiwake_fetch::{FetchConfig, Fetcher, Secret};
use kittiwake_network::auth::LoginMethod;
use kittiwake_serve::DeskError;
use kittiwake_serve::desk::{GivenSecret, LoginQuestion, LoginState, LoginView};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Log-ins that are remembered; the oldest goes first.
const LOGINS_MAX: usize = 20;
/// How long the answer to whoever begins waits for the next thing to do.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Logins(Mutex<VecDeque<Begun>>);

#[derive(Debug, Clone)]
struct Begun {
    id: String,
    state: watch::Receiver<LoginState>,
    answers: mpsc::Sender<Secret>,
}

/// The person at a browser.
struct AtBrowser {
    given: BTreeMap<String, GivenSecret>,
    state: watch::Sender<LoginState>,
    answers: tokio::sync::Mutex<mpsc::Receiver<Secret>>,
}

impl Person for AtBrowser {
    fn tell(&self, told: Told) {
        let waiting = |address, user_code, takes_answer| LoginState::Waiting {
            address: Some(address),
            user_code,
            takes_answer,
        };
        self.state.send_replace(match told {
            Told::Page(_) => return,
            Told::Open(address) => waiting(address, None, true),
            Told::Enter { address, code } => waiting(address, Some(code), false),
        });
    }

    fn secret(&self, name: &str) -> Result<Secret, Failure> {
        let given = self.given.get(name).map(|given| given.0.clone());
        given.ok_or_else(|| {
            Failure::usage(format!(
                "this way to log in wants {name:?} among the secrets"
            ))
        })
    }

    fn copied(&self) -> Pin<Box<dyn Future<Output = Secret> + Send + '_>> {
        Box::pin(async {
            match self.answers.lock().await.recv().await {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }
}

impl Logins {
    pub(super) async fn begin(
        &self,
        place: Place,
        vault: Vault,
        question: LoginQuestion,
    ) -> Result<LoginView, DeskError> {
        let method = method(&place, question.method.as_deref())?;
        let nothing_yet = LoginState::Waiting {
            address: None,
            user_code: None,
            takes_answer: false,
        };
        let (state, mut seen) = watch::channel(nothing_yet);
        let (answers, answering) = mpsc::channel(1);
        let begun = Begun {
            id: machine::random_word(),
            state: seen.clone(),
            answers,
        };
        let person = AtBrowser {
            given: question.secrets,
            state: state.clone(),
            answers: tokio::sync::Mutex::new(answering),
        };
        self.remember(begun.clone());
        tokio::spawn(async move {
            let logged_in =
                log_in(&place, &method, &vault, question.name.as_deref(), &person).await;
            state.send_replace(logged_in.unwrap_or_else(|failure| LoginState::Failed {
                detail: failure.message,
            }));
        });
        let _ = tokio::time::timeout(FIRST_PATIENCE, seen.changed()).await;
        Ok(begun.view())
    }

    fn remember(&self, begun: Begun) {
        let mut logins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logins.len() == LOGINS_MAX {
            logins.pop_front();
        }
        logins.push_back(begun);
    }

    fn find(&self, id: &str) -> Result<Begun, DeskError> {
        let logins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = logins.iter().find(|begun| begun.id == id).cloned();
        found.ok_or_else(|| missing("there is no such log-in; begin with POST /api/logins"))
    }

    pub(super) fn look(&self, id: &str) -> Result<LoginView, DeskError> {
        Ok(self.find(id)?.view())
    }

    pub(super) async fn answer(&self, id: &str, answer: Secret) -> Result<LoginView, DeskError> {
        let mut begun = self.find(id)?;
        begun.state.mark_unchanged();
        if begun.answers.try_send(answer).is_err() {
            return Err(conflict("the log-in is over, or has an answer already"));
        }
        let _ = tokio::time::timeout(FIRST_PATIENCE, begun.state.changed()).await;
        Ok(begun.view())
    }
}

impl Begun {
    fn view(&self) -> LoginView {
        LoginView {
            id: self.id.clone(),
            state: self.state.borrow().clone(),
        }
    }
}

fn method(place: &Place, wanted: Option<&str>) -> Result<LoginMethod, DeskError> {
    let auth = place.network.auth();
    let found = match wanted {
        Some(name) => auth.method(name),
        None => auth.methods.first(),
    };
    found.cloned().ok_or_else(|| {
        missing(format!(
            "{} has no such way to log in",
            place.network.name()
        ))
    })
}

async fn log_in(
    place: &Place,
    method: &LoginMethod,
    vault: &Vault,
    name: Option<&str>,
    person: &AtBrowser,
) -> Result<LoginState, Failure> {
    let contact = place::contact(None)?;
    let fetcher = Fetcher::new(FetchConfig {
        user_agent: place.user_agent(contact.as_deref())?,
        ..FetchConfig::default()
    })
    .map_err(|error| Failure::other(error.to_string()))?;
    // Found out before anything is asked for: what cannot be kept would be lost.
    vault.change(|_| ())?;
    let robots = robots::choose(&place.network, &[], &[])?;
    let mut scopes = place.network.scopes_of(&robots);
    scopes.extend(method.scopes.iter().cloned());
    scopes.sort();
    scopes.dedup();
    let login = Login {
        place,
        method,
        scopes,
        fetcher: &fetcher,
        vault,
        token: false,
        paste: false,
        port: None,
        person,
    };
    let logged_in = login.run().await?;
    let (stored, tried) = keep(&login, name, &logged_in).await?;
    Ok(LoginState::Done {
        credential: view(&stored),
        note: match tried {
            Some(Err(failure)) => Some(format!("stored, but not tested: {}", failure.message)),
            _ => None,
        },
    })
}
