//! What a server says of its limits when it is asked for that alone. Asked before the first call, so
//! that what others have used up is known before anything is sent.

use crate::credential::Credential;
use crate::exchange::{Shop, date_of};
use crate::permits::{Answered, Charge, Purse, Taken};
use crate::plan::Whose;
use crate::settings::{CrawlSettings, Limits};
use crate::{Clock, EngineError};
use kittiwake_fetch::{FetchError, Fetcher, HostTrust, Request, Response};
use kittiwake_model::{Commit, Cost, LogRow, Name, OutcomeCode, RealTime};
use kittiwake_network::auth::Stamp;
use kittiwake_network::{LimitReport, LimitStatusRequest};

/// What such questions are called in the query log.
const QUERY: &str = "limit_status";

/// Who asks, and with what.
pub(crate) struct Asking<'a> {
    pub whose: Whose<'a>,
    pub host: &'a str,
    pub fetcher: &'a Fetcher,
    pub clock: &'a Clock,
}

/// A question that was sent.
pub(crate) struct Asked {
    request: LimitStatusRequest,
    sent: RealTime,
    answered: RealTime,
    answer: Result<Response, FetchError>,
    pub reports: Vec<LimitReport>,
}

/// Asks once what is left, and lets the purse know. Nothing is asked where the definition knows no
/// such question, or where a limit or the credential forbids it; what is not answered says nothing,
/// for the calls that follow find out by themselves what is wrong.
pub(crate) async fn ask_limit_status(
    asking: &Asking<'_>,
    purse: &mut Purse,
) -> Result<Option<Asked>, EngineError> {
    let Whose {
        network,
        base,
        credential,
        ..
    } = asking.whose;
    let Some(request) = network.limit_status_request(base, credential.is_some()) else {
        return Ok(None);
    };
    let Some(sending) = asking.sending(&request).await else {
        return Ok(None);
    };
    let charges = asking.charges(&request.costs);
    let told = asking.charges(&request.speaks_of);
    for charge in charges.iter().chain(&told) {
        if let Some(rule) = network.budget(&charge.cost.budget) {
            purse.add(charge.budget.clone(), rule).await?;
        }
    }
    let Taken::Permit(permit) = purse.take(&charges).await? else {
        return Ok(None);
    };
    let sent = asking.clock.real();
    let answer = asking.fetcher.fetch(sending).await;
    let answered = asking.clock.real();
    let now = asking.clock.limit();
    let (mut headers, mut reports, mut date) = (Vec::new(), Vec::new(), None);
    if let Ok(response) = &answer {
        let header = |name: &str| response.headers.get(name).map(str::to_owned);
        headers = network.limit_reports(&request.costs, &header, now);
        date = date_of(response);
        if response.status == 200 {
            let body = &response.body;
            reports = network.read_limit_status(credential.is_some(), asking.host, body, now);
        }
    }
    let said = Answered {
        items: Some(0),
        reports: &headers,
        date,
        ..Answered::default()
    };
    purse.settle(permit, said).await?;
    purse.hear_status(&told, &reports).await?;
    Ok(Some(Asked {
        request,
        sent,
        answered,
        answer,
        reports,
    }))
}

impl Asking<'_> {
    fn charges(&self, costs: &[Cost]) -> Vec<Charge> {
        let charge = |cost: &Cost| self.whose.charge(QUERY, cost);
        costs.iter().map(charge).collect()
    }

    /// The question with the credential whose limits are meant; an answer to anybody else would speak
    /// of other limits.
    async fn sending(&self, request: &LimitStatusRequest) -> Option<Request> {
        let mut sending = Request::get(request.url.clone(), HostTrust::Named);
        let Some(credential) = self.whose.credential else {
            return Some(sending);
        };
        if !credential.is_for(&sending.url) {
            return None;
        }
        let held = credential.keeper.held().await.ok()?;
        let stamp = Stamp {
            unix_s: self.clock.real().micros().div_euclid(1_000_000),
            nonce: credential.keeper.nonce(),
        };
        let attached = credential
            .sending
            .attach(&held.secrets, "GET", &sending.url, &stamp)
            .ok()?;
        sending.secret_headers = attached.headers;
        sending.secret_query = attached.query;
        Some(sending)
    }
}

/// Whether a crawl asks before it begins. Its questions are calls: where calls are counted, they are
/// taken off the number that may be made, and if that leaves none, they are not asked.
pub(crate) fn set_calls_aside(settings: &mut CrawlSettings) -> bool {
    let is_authenticated = !settings.credentials.is_empty();
    let question = settings
        .network
        .limit_status_request(&settings.base, is_authenticated);
    if question.is_none() || settings.limits == Limits::Off {
        return false;
    }
    let questions = askers(settings).len() as u64;
    let Some(calls_max) = settings.calls_max else {
        return true;
    };
    if calls_max <= questions {
        return false;
    }
    settings.calls_max = Some(calls_max - questions);
    true
}

/// Everybody who has limits of their own.
fn askers(settings: &CrawlSettings) -> Vec<Option<&Credential>> {
    let mut askers: Vec<_> = settings.credentials.iter().map(Some).collect();
    if askers.is_empty() {
        askers.push(None);
    }
    askers
}

impl Shop {
    /// Asks for every credential what is left of its limits.
    pub(crate) async fn hear_limit_status(&self) -> Result<(), EngineError> {
        for credential in askers(&self.settings) {
            let asking = Asking {
                whose: Whose {
                    network: &self.settings.network,
                    base: &self.settings.base,
                    credential,
                    clock_source: &self.settings.clock_source,
                },
                host: &self.settings.host,
                fetcher: &self.fetcher,
                clock: &self.clock,
            };
            // No call is made meanwhile: the crawl begins with this.
            let mut purse = self.sites.home.purse.lock().await;
            let asked = ask_limit_status(&asking, &mut purse).await?;
            drop(purse);
            if let Some(asked) = asked {
                let commit = Commit {
                    at: self.clock.world(),
                    log: Some(self.status_row(&asked, credential)),
                    ..Commit::default()
                };
                self.store.commit(vec![commit]).await?;
            }
        }
        Ok(())
    }

    fn status_row(&self, asked: &Asked, credential: Option<&Credential>) -> LogRow {
        let (status, bytes, outcome, reason) = match &asked.answer {
            Ok(response) => {
                let outcome = match response.status {
                    200 if !asked.reports.is_empty() => OutcomeCode::Ok,
                    200 => OutcomeCode::Empty,
                    401 => OutcomeCode::AuthExpired,
                    403 => OutcomeCode::Forbidden,
                    404 => OutcomeCode::NotFound,
                    429 => OutcomeCode::RateLimited,
                    _ => OutcomeCode::Transient,
                };
                let reason = match outcome {
                    OutcomeCode::Ok => String::new(),
                    OutcomeCode::Empty => "nothing in it can be read".to_owned(),
                    _ => format!("http {}", response.status),
                };
                (Some(response.status), response.body.len(), outcome, reason)
            }
            Err(error) => (None, 0, OutcomeCode::Transient, error.to_string()),
        };
        let budgets: Vec<Name> = asked
            .request
            .costs
            .iter()
            .map(|cost| cost.budget.clone())
            .collect();
        LogRow {
            query: QUERY.into(),
            subjects: Vec::new(),
            target: asked.request.url.path().to_owned(),
            cursor: String::new(),
            credential: credential
                .map_or_else(|| "anonymous".to_owned(), |it| it.fingerprint.clone()),
            node: self.node.clone(),
            status,
            outcome,
            reason,
            scheduled: asked.sent,
            sent: asked.sent,
            answered: asked.answered,
            budgets,
            rank_us: 0,
            read_us: 0,
            seed_us: 0,
            bytes: bytes as u64,
            mended: 0,
            definition: self.settings.network.digest().clone(),
        }
    }
}
