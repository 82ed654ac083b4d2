//! A definition held against a server: every query is asked once, and what does not fit is told.
//! Calls are granted and counted like those of a crawl; nothing is stored.

mod known;

use crate::credential::{Credential, Held, redact};
use crate::exchange::date_of;
use crate::permits::{Answered, Charge, Permit, Purse, Taken};
use crate::plan::Whose;
use crate::settings::Limits;
use crate::used_up::{Blocked, UsedUp};
use crate::{Clock, EngineError};
use kittiwake_fetch::{
    FetchError, FetchErrorKind, Fetcher, HostTrust, Method, Request, Response, retry_after,
};
use kittiwake_model::outcome::Consequence;
use kittiwake_model::{Cost, Identity, Name, OutcomeCode};
use kittiwake_network::{
    Answer, Bearing, Fit, Further, LimitReport, Network, NeverSeen, Page, Query, Reading,
    RequestPlan, Sightings, Whom,
};
use kittiwake_store::ledger::Ledger;
use known::{Known, Place};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// How long a limit is waited for before a query is left out.
const WAIT_MAX: Duration = Duration::from_mins(1);
/// A definition is held against servers that go by the machine's time.
const CLOCK_SOURCE: &str = "real";
/// How often the ledger is asked for one call.
const TRIES_MAX: usize = 200;

/// What is held against what.
#[derive(Debug)]
pub struct Inspection<'a> {
    pub network: &'a Network,
    /// The one server that is asked.
    pub base: &'a Url,
    /// The host as ids are valid on it.
    pub host: &'a str,
    pub credential: Option<&'a Credential>,
    pub fetcher: &'a Fetcher,
    pub clock: &'a Clock,
    pub ledger: Ledger,
    pub limits: Limits,
    pub node: String,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Inspected {
    /// The queries that were asked, in that order.
    pub asked: Vec<QueryFit>,
    /// The queries that were not, with the reason.
    pub unasked: Vec<(Name, String)>,
    /// What rules look for that was in no object. Networks leave out what is empty: it may be right.
    pub never_seen: Vec<NeverSeen>,
    pub limits: LimitsFit,
}

/// How the answer to one query fits.
#[derive(Debug)]
pub struct QueryFit {
    pub query: Name,
    /// Path and query of the address that was asked.
    pub target: String,
    pub status: Option<u16>,
    pub outcome: OutcomeCode,
    pub reason: String,
    pub items: u32,
    /// Values that could not be read as the definition says.
    pub mended: u32,
    /// Nothing is known of an answer that was not read.
    pub fit: Option<Fit>,
}

/// Whether answers say what is left of limits as the definition expects.
#[derive(Debug, Default)]
pub struct LimitsFit {
    /// The headers that were looked for, and whether they were in any answer.
    pub headers: BTreeMap<String, bool>,
    /// Whether one answer at least could be read.
    pub is_readable: bool,
}

impl Inspected {
    /// Whether nothing is wrong with what was asked.
    pub fn fits(&self) -> bool {
        self.asked.iter().all(QueryFit::fits) && self.limits.fits()
    }
}

impl QueryFit {
    pub fn fits(&self) -> bool {
        let is_read = self
            .fit
            .as_ref()
            .is_none_or(|fit| fit.unread.is_empty() && !matches!(fit.further, Further::Lost(_)));
        self.outcome.is_success() && self.mended == 0 && is_read
    }
}

impl LimitsFit {
    /// The headers that were in no answer.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let missing = self.headers.iter().filter(|(_, is_there)| !**is_there);
        missing.map(|(name, _)| name.as_str())
    }

    /// Whether all headers are there, and yet nothing can be made of them.
    pub fn is_unreadable(&self) -> bool {
        !self.headers.is_empty() && self.missing().next().is_none() && !self.is_readable
    }

    pub fn fits(&self) -> bool {
        self.missing().next().is_none() && !self.is_unreadable()
    }
}

/// Asks every query that can be asked, each once.
pub async fn inspect(
    inspection: Inspection<'_>,
    seeds: Vec<Identity>,
) -> Result<Inspected, EngineError> {
    let network = inspection.network;
    let host = network.host_identity(inspection.host);
    let mut known = Known::new(seeds.into_iter().chain(host));
    let (mut waiting, elsewhere): (Vec<&Query>, Vec<&Query>) = network
        .queries()
        .partition(|query| matches!(query.whom(), Whom::Home | Whom::Crawl));
    // What tells the other ids of whom the user named comes first, what takes several last.
    waiting.sort_by_key(|query| {
        let mut resolve = network.resolve_queries(&query.kind);
        let is_resolve = resolve.any(|resolve| resolve.name == query.name);
        (query.batch_max > 1, !is_resolve)
    });
    let mut inspector = Inspector::new(inspection).await?;
    let mut stopped = None;
    while stopped.is_none() {
        let place = inspector.place();
        let choices = waiting.iter().enumerate();
        let mut askable =
            choices.filter_map(|(number, query)| Some((number, known.choose(place, query).ok()?)));
        let Some((number, chosen)) = askable.next() else {
            break;
        };
        drop(askable);
        let query = waiting.remove(number);
        stopped = inspector.ask(query, &chosen, &mut known).await?;
    }
    for query in elsewhere {
        let reason = "it is asked of another host".to_owned();
        inspector.report.unasked.push((query.name.clone(), reason));
    }
    let place = inspector.place();
    for query in waiting {
        let reason = match &stopped {
            Some(reason) => reason.clone(),
            None => known.choose(place, query).err().unwrap_or_default(),
        };
        inspector.report.unasked.push((query.name.clone(), reason));
    }
    inspector.close().await
}

/// Somebody who asks one server.
struct Inspector<'a> {
    means: Means<'a>,
    purse: Purse,
    sightings: Sightings,
    report: Inspected,
}

/// With what is asked.
struct Means<'a> {
    network: &'a Network,
    base: &'a Url,
    host: &'a str,
    credential: Option<&'a Credential>,
    fetcher: &'a Fetcher,
    clock: &'a Clock,
}

/// What came of a call.
enum Called {
    /// With the secrets that were sent.
    Answered(Permit, Box<Response>, Option<Held>),
    /// Noted already; a reason if no other query can be asked any more.
    Unanswered(Option<String>),
}

/// What was fetched, and the secrets that were sent.
type Fetched = (Result<Response, FetchError>, Option<Held>);

impl<'a> Inspector<'a> {
    async fn new(inspection: Inspection<'a>) -> Result<Self, EngineError> {
        let Inspection {
            network,
            base,
            host,
            credential,
            fetcher,
            clock,
            ledger,
            limits,
            node,
        } = inspection;
        let mut purse = Purse::new(Some(Arc::new(ledger)), clock.clone(), node, limits);
        let origin = base.origin().ascii_serialization();
        let server = format!("{origin} ({CLOCK_SOURCE})");
        purse.recall_clock(&server).await?;
        if let Some(rule) = network.politeness() {
            purse.be_polite(rule, &server).await?;
        }
        Ok(Self {
            means: Means {
                network,
                base,
                host,
                credential,
                fetcher,
                clock,
            },
            purse,
            sightings: Sightings::default(),
            report: Inspected::default(),
        })
    }

    fn place(&self) -> Place<'a> {
        Place {
            network: self.means.network,
            base: self.means.base,
            host: self.means.host,
            authenticated: self.means.credential.is_some(),
        }
    }

    async fn close(mut self) -> Result<Inspected, EngineError> {
        self.purse.close().await?;
        self.report.never_seen = self.means.network.never_seen(&self.sightings);
        Ok(self.report)
    }

    /// Asks one query and notes how its answer fits; a reason if no other can be asked any more.
    async fn ask(
        &mut self,
        query: &Query,
        chosen: &[usize],
        known: &mut Known,
    ) -> Result<Option<String>, EngineError> {
        let subjects = known.get(chosen);
        let identities: Vec<&Identity> = subjects.iter().map(|(_, identity)| *identity).collect();
        let ask = self.place().ask(query, &identities);
        let plan = self.means.network.request(&ask);
        let plan = plan.map_err(|error| EngineError::Broken(error.to_string()))?;
        let charges = self.charges(query, &plan).await?;
        let (permit, response, held) = match self.call(query, &plan, &charges).await? {
            Called::Answered(permit, response, held) => (permit, *response, held),
            Called::Unanswered(stopped) => return Ok(stopped),
        };
        let header = |name: &str| response.headers.get(name).map(str::to_owned);
        let answer = Answer {
            query,
            base: self.means.base,
            host: self.means.host,
            subjects: &subjects,
            page: Page::First,
            url: &plan.url,
            status: response.status,
            header: &header,
            body: &response.body,
            walk: None,
        };
        let (mut reading, is_shut_out) = self.means.read(&answer, &response);
        redact(held.as_ref(), &mut reading.reason);
        let is_read = reading.outcome.is_success();
        let network = self.means.network;
        let fit = is_read.then(|| network.fit(&answer, &reading, &mut self.sightings));
        let reports = self.hear_limits(&plan.costs, &response, is_read);
        self.settle(permit, &reading, &response, &reports).await?;
        let stopped = self
            .stopped_by(&charges, &reading, &response, is_shut_out)
            .await?;
        self.report.asked.push(QueryFit {
            query: query.name.clone(),
            target: plan.target,
            status: Some(response.status),
            outcome: reading.outcome,
            reason: std::mem::take(&mut reading.reason),
            items: reading.items,
            mended: reading.mended,
            fit: fit.flatten(),
        });
        known.learn(&reading);
        Ok(stopped)
    }

    /// Makes one call, if a limit and the credential allow it.
    async fn call(
        &mut self,
        query: &Query,
        plan: &RequestPlan,
        charges: &[Charge],
    ) -> Result<Called, EngineError> {
        let permit = match self.permit(charges).await? {
            Ok(permit) => permit,
            Err(reason) => {
                self.report.unasked.push((query.name.clone(), reason));
                return Ok(Called::Unanswered(None));
            }
        };
        let (fetched, held) = match self.means.send(plan).await {
            Ok(sent) => sent,
            Err(reason) => {
                let nothing = Answered {
                    items: Some(0),
                    ..Answered::default()
                };
                self.purse.settle(permit, nothing).await?;
                let reason = format!("the credential cannot be had ({reason})");
                let unasked = (query.name.clone(), reason.clone());
                self.report.unasked.push(unasked);
                return Ok(Called::Unanswered(Some(reason)));
            }
        };
        match fetched {
            Ok(response) => Ok(Called::Answered(permit, Box::new(response), held)),
            Err(error) => {
                self.purse.settle(permit, Answered::default()).await?;
                Ok(Called::Unanswered(self.note_failure(query, plan, &error)))
            }
        }
    }

    async fn charges(
        &mut self,
        query: &Query,
        plan: &RequestPlan,
    ) -> Result<Vec<Charge>, EngineError> {
        let whose = Whose {
            network: self.means.network,
            base: self.means.base,
            credential: self.means.credential.filter(|_| plan.send_credential),
            clock_source: CLOCK_SOURCE,
        };
        let charge = |cost: &Cost| whose.charge(&query.name, cost);
        let charges: Vec<Charge> = plan.costs.iter().map(charge).collect();
        for charge in &charges {
            if let Some(rule) = self.means.network.budget(&charge.cost.budget) {
                self.purse.add(charge.budget.clone(), rule).await?;
            }
        }
        Ok(charges)
    }

    /// The right to one call, waited for if it is near; a reason if it is not.
    async fn permit(&mut self, charges: &[Charge]) -> Result<Result<Permit, String>, EngineError> {
        let clock = self.means.clock;
        let patience = clock.limit().plus_us(WAIT_MAX.as_micros() as i64);
        let mut used_up = Name::from("");
        for _ in 0..TRIES_MAX {
            match self.purse.take(charges).await? {
                Taken::Permit(permit) => return Ok(Ok(permit)),
                Taken::Wait { until, budget } => {
                    used_up = budget;
                    if until > patience {
                        break;
                    }
                    tokio::time::sleep(clock.until_limit(until)).await;
                }
            }
        }
        Ok(Err(format!(
            "the limit {used_up} is used up; try again later"
        )))
    }

    /// Notes a call that was not answered; a reason if there is no use in others.
    fn note_failure(
        &mut self,
        query: &Query,
        plan: &RequestPlan,
        error: &FetchError,
    ) -> Option<String> {
        let (outcome, stopped) = match error.kind() {
            FetchErrorKind::HostDown => (
                OutcomeCode::HostDown,
                Some("the server is out of reach".to_owned()),
            ),
            FetchErrorKind::TooLarge => (OutcomeCode::TooMuchData, None),
            FetchErrorKind::Unreadable => (OutcomeCode::Malformed, None),
            FetchErrorKind::AddressRefused => (OutcomeCode::Forbidden, None),
            FetchErrorKind::Invalid => (OutcomeCode::BadRequest, None),
            FetchErrorKind::Transient => (OutcomeCode::Transient, None),
        };
        self.report.asked.push(QueryFit {
            query: query.name.clone(),
            target: plan.target.clone(),
            status: None,
            outcome,
            reason: error.to_string(),
            items: 0,
            mended: 0,
            fit: None,
        });
        stopped
    }

    /// What the headers say of limits, and whether they are where the definition looks. Servers
    /// leave them out of refusals.
    fn hear_limits(
        &mut self,
        costs: &[Cost],
        response: &Response,
        is_read: bool,
    ) -> Vec<LimitReport> {
        let network = self.means.network;
        let header = |name: &str| response.headers.get(name).map(str::to_owned);
        let reports = network.limit_reports(costs, &header, self.means.clock.limit());
        if is_read {
            let limits = &mut self.report.limits;
            for name in network.limit_headers_of(costs) {
                let is_there = limits.headers.entry(name.to_owned()).or_default();
                *is_there |= response.headers.get(name).is_some();
            }
            limits.is_readable |= !reports.is_empty() || costs.is_empty();
        }
        reports
    }

    async fn settle(
        &mut self,
        permit: Permit,
        reading: &Reading,
        response: &Response,
        reports: &[LimitReport],
    ) -> Result<(), EngineError> {
        let is_refused =
            reading.outcome.consequence() == Consequence::Wait || response.status == 503;
        let answered = Answered {
            items: Some(u64::from(reading.items)),
            reports,
            date: date_of(response),
            bearing: if is_refused {
                Bearing::Badly
            } else {
                Bearing::Well
            },
            ..Answered::default()
        };
        self.purse.settle(permit, answered).await
    }

    /// Whoever is refused asks no more, here or in a crawl, until the time that the server names.
    async fn stopped_by(
        &mut self,
        charges: &[Charge],
        reading: &Reading,
        response: &Response,
        is_shut_out: bool,
    ) -> Result<Option<String>, EngineError> {
        if reading.outcome.consequence() != Consequence::Wait {
            return Ok(None);
        }
        if is_shut_out {
            return Ok(Some("the network shuts us out".to_owned()));
        }
        let clock = self.means.clock;
        let told = response.headers.get("retry-after");
        let used_up = UsedUp {
            now: clock.limit(),
            reading,
            asked_us: told.and_then(|value| retry_after(value, clock.real().micros())),
            reports: &[],
            charges,
            rules: self.means.network.budgets(),
        };
        let Blocked { budgets, until } = used_up.blocks();
        self.purse.block(&budgets, until).await?;
        Ok(Some("the server says that a limit is used up".to_owned()))
    }
}

impl Means<'_> {
    /// Sends one call; an error says why the credential that belongs to it cannot be had.
    async fn send(&self, plan: &RequestPlan) -> Result<Fetched, String> {
        let mut request = Request {
            method: if plan.method == "POST" {
                Method::Post
            } else {
                Method::Get
            },
            headers: plan.headers.clone(),
            body: plan.body.clone().map(Into::into),
            ..Request::get(plan.url.clone(), HostTrust::Named)
        };
        let credential = self.credential.filter(|_| plan.send_credential);
        let held = match credential {
            Some(credential) => {
                let signed = plan.signed_url(&plan.url);
                credential.attach(&mut request, &signed, self.clock).await?
            }
            None => None,
        };
        Ok((self.fetcher.fetch(request).await, held))
    }

    /// What an answer means, and whether it is a page that shuts somebody out.
    fn read(&self, answer: &Answer<'_>, response: &Response) -> (Reading, bool) {
        let status = response.status;
        let location = response.headers.get("location");
        let told = (location, response.headers.get("content-type"));
        if let Some(reason) = self.network.block_page(status, told, &response.body) {
            let reason = format!("http {status}: {reason}");
            return (Reading::of(OutcomeCode::RateLimited, reason), true);
        }
        let mut reading = self.network.read(answer);
        if let Some(location) = location.filter(|_| (300..=399).contains(&status)) {
            reading.reason = format!("http {status}: leads to {location}");
        }
        // Of somebody who was asked for alone, the outcome is the answer's.
        if let ([_], [(_, outcome, reason)]) = (answer.subjects, &*reading.subject_outcomes) {
            (reading.outcome, reading.reason) = (*outcome, reason.clone());
        }
        (reading, false)
    }
}
