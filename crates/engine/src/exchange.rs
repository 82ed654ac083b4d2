//! One call from send to commit.

use crate::caps::Caps;
use crate::crashpoint::CrashPoint;
use crate::credential::{Held, Refusal, Standing, redact, redact_raw};
use crate::manners::Minded;
use crate::permits::{Answered, Charge, Permit, Taken};
use crate::places::Places;
use crate::population::Population;
use crate::settings::{CrawlSettings, Parts};
use crate::site::Sites;
use crate::smaller::SmallerPages;
use crate::used_up::{Blocked, UsedUp};
use crate::walk::Step;
use crate::whom::Inquiries;
use crate::work::{Purpose, Redirected, Work};
use crate::{Clock, CrashHook, EngineError};
use kittiwake_fetch::{
    BodyPermit, FetchError, FetchErrorKind, Fetcher, HostTrust, Method, Request, Response,
    http_date_us, retry_after,
};
use kittiwake_model::outcome::Consequence;
use kittiwake_model::{
    Commit, CommitReport, Expansion, Key, LimitTime, Name, OutcomeCode, RealTime, WorldTime,
};
use kittiwake_network::{
    Address, Answer, Bearing, Bill, Capabilities, LimitReport, Query, Reading, Teller, Whom,
};
use kittiwake_store::Store;
use std::collections::HashMap;
use std::sync::Mutex as PlainMutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;
use url::Url;

/// Redirects followed for one call, each charged like a call of its own.
const HOPS_MAX: usize = 3;

/// The calls that a host is busy with. An answer that waits to be committed keeps no host busy, so
/// the next call need not wait for it; and while answers wait, they gather into larger
/// transactions.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    calls: AtomicUsize,
    left: Notify,
    /// The budgets of calls that were answered since they were last asked for.
    answered: std::sync::Mutex<Vec<Arc<[Charge]>>>,
}

impl Wire {
    pub(crate) fn enter(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    fn leave(&self, charges: Arc<[Charge]>) {
        self.calls.fetch_sub(1, Ordering::Relaxed);
        self.lock().push(charges);
        self.left.notify_one();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<[Charge]>>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What answers since the last time may have made room in.
    pub(crate) fn take_answered(&self) -> Vec<Arc<[Charge]>> {
        std::mem::take(&mut *self.lock())
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Waits until a call has been answered since the last time that this was waited for.
    pub(crate) async fn freed(&self) {
        self.left.notified().await;
    }
}

/// What every exchange of a crawl shares.
#[derive(Debug)]
pub(crate) struct Shop {
    pub settings: CrawlSettings,
    pub store: Arc<dyn Store>,
    pub fetcher: Fetcher,
    pub clock: Clock,
    pub populations: HashMap<Name, Population>,
    pub crash: CrashHook,
    pub node: String,
    pub sites: Sites,
    pub caps: PlainMutex<Caps>,
    pub expansion: Arc<Expansion>,
    pub wire: Wire,
    pub inquiries: Inquiries,
    pub smaller: SmallerPages,
    pub places: Places,
    /// One for each credential.
    pub standings: Vec<Standing>,
}

/// An exchange that is over, durably.
#[derive(Debug)]
pub(crate) struct Done {
    pub work: Work,
    pub ending: Ending,
    pub reports: Vec<CommitReport>,
    pub calls: u64,
    pub bytes: u64,
    pub limited: bool,
}

/// What comes next for the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The visit has another page or another list.
    Continue,
    /// The visit is over; the time is when the subject is due again.
    Finished {
        due: Vec<(Key, WorldTime)>,
    },
    /// A lookup was answered: the subject's tasks may be visited now, or were settled by it.
    LookedUp,
    /// The host was asked what it can do: whatever waited for that can be asked.
    Probed,
    /// The host is asked in another way what it can do.
    ProbeOn,
    /// A fault outlasted all tries; the visit does not count and is left to a later one.
    GivenUp,
    /// A fault that may pass, perhaps not before a time the server named.
    Retry(Option<LimitTime>),
    /// The same, but the host is well: what it sent could not be read.
    Unread(Option<LimitTime>),
    /// The host is out of reach: no fault of the work.
    HostDown(String),
    /// A limit was met.
    Wait(LimitTime),
    /// The batch failed as a whole and is split, to find the id at fault.
    Split,
    AuthExpired(String),
    /// The host answers this only to those who log in: another is asked.
    Closed,
    /// The host is left out for a while: another is asked.
    Elsewhere,
    /// Nothing was wrong with the work: somebody else can ask.
    Another,
    /// The network shuts us out: nothing more is asked.
    ShutOut(String),
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AskedFor {
    /// What the work wants.
    Work,
    /// The host's robots.txt, without which nothing else may be.
    RobotsTxt(Url),
    /// Nothing: it is forbidden.
    Nothing,
}

/// The answer as the network read it, with what the log needs.
pub(crate) struct Heard {
    pub reading: Reading,
    pub asked_for: AskedFor,
    pub status: Option<u16>,
    pub bytes: u64,
    /// The answer as it came, if it is to be kept.
    pub raw: Option<Vec<u8>>,
    /// Until when the server asked us to wait.
    pub wait_until: Option<LimitTime>,
    pub host_down: bool,
    /// The answer is a page with which the network shuts somebody out.
    pub shut_out: bool,
    /// The credential was refused and is renewed: the call can be made again.
    pub renewed: bool,
    /// Microseconds that reading the answer took.
    pub read_us: u32,
    /// The answer's share of the memory that all answers have.
    pub share: Option<BodyPermit>,
    pub sent: RealTime,
    pub answered: RealTime,
    pub observed: WorldTime,
}

/// What sending gave.
enum Fetched {
    Response(Response),
    Failed(FetchError),
    /// Nothing was sent: the credential cannot be had.
    Locked(String),
}

impl From<Result<Response, FetchError>> for Fetched {
    fn from(fetched: Result<Response, FetchError>) -> Self {
        match fetched {
            Ok(response) => Self::Response(response),
            Err(error) => Self::Failed(error),
        }
    }
}

/// What came, before it is decided what it means.
struct Told {
    /// None of a redirect, which is followed first.
    reading: Option<Reading>,
    items: Option<u64>,
    bills: Vec<Bill>,
    reports: Vec<LimitReport>,
    date: Option<LimitTime>,
    bearing: Bearing,
    /// The network shuts us out, whatever the status.
    is_shut_out: bool,
    /// Microseconds that reading took.
    read_us: u32,
}

impl Told {
    const fn nothing(items: Option<u64>) -> Self {
        Self {
            reading: None,
            items,
            bills: Vec::new(),
            reports: Vec::new(),
            date: None,
            bearing: Bearing::Unknown,
            is_shut_out: false,
            read_us: 0,
        }
    }
}

/// What came of sending a call.
pub(crate) enum Hearing {
    Answer(Box<Heard>),
    /// A redirect has to wait for a permit of its own.
    NoPermit(LimitTime, Redirected),
}

/// What came of asking at one address.
enum HearingAt {
    Answer(Box<Heard>),
    /// The call is led on.
    Redirect(Box<Heard>, Url),
}

impl HearingAt {
    fn answer(heard: Heard) -> Self {
        Self::Answer(Box::new(heard))
    }
}

/// Sends the work's call, reads the answer and commits it.
pub(crate) async fn exchange(
    shop: Arc<Shop>,
    mut work: Work,
    permit: Permit,
) -> Result<Done, EngineError> {
    shop.crash.reached(CrashPoint::GrantAndSend);
    let mut hops = Vec::new();
    let hearing = shop.hear(&work, permit, &mut hops).await;
    // Whoever hears that there is room finds it.
    work.call.site.leave();
    shop.wire.leave(Arc::clone(&work.call.charges));
    let mut heard = match hearing? {
        Hearing::Answer(heard) => *heard,
        Hearing::NoPermit(until, redirected) => {
            work.redirected = Some(redirected);
            let calls = hops.len() as u64;
            let reports = shop.store.commit(hops).await?;
            return Ok(Done {
                work,
                ending: Ending::Wait(until),
                reports,
                calls,
                bytes: 0,
                limited: false,
            });
        }
    };
    let limited = heard.reading.outcome == OutcomeCode::RateLimited;
    let calls = u64::from(heard.asked_for != AskedFor::Nothing) + hops.len() as u64;
    let bytes = heard.bytes;
    // What was read of the body takes its place in memory until it is stored.
    let _share = heard.share.take();
    let seeding = Instant::now();
    let (mut commit, ending) = shop.decide(&mut work, heard).await?;
    if let Some(log) = &mut commit.log {
        log.seed_us = seeding.elapsed().as_micros() as u32;
    }
    shop.crash.reached(CrashPoint::AnswerAndCommit);
    hops.push(commit);
    let reports = shop.store.commit(hops).await?;
    shop.crash.reached(CrashPoint::CommitAndAcknowledge);
    Ok(Done {
        work,
        ending,
        reports,
        calls,
        bytes,
        limited,
    })
}

impl Shop {
    pub(crate) fn new(
        settings: CrawlSettings,
        parts: Parts,
        (expansion, populations): (Expansion, HashMap<Name, Population>),
        remembered: Option<HashMap<String, Capabilities>>,
    ) -> Self {
        let place = (&parts.clock, &*parts.node);
        let sites = Sites::new(&settings, parts.ledger, place, remembered);
        let standings = settings.credentials.iter().map(|_| Standing::default());
        let until = settings
            .time_max
            .and_then(|time| Instant::now().checked_add(time));
        let caps = Caps::new(settings.calls_max, settings.spend_max.clone(), until);
        Self {
            standings: standings.collect(),
            caps: PlainMutex::new(caps),
            settings,
            store: parts.store,
            fetcher: parts.fetcher,
            clock: parts.clock,
            populations,
            crash: parts.crash,
            node: parts.node,
            sites,
            expansion: Arc::new(expansion),
            wire: Wire::default(),
            inquiries: Inquiries::default(),
            smaller: SmallerPages::default(),
            places: Places::default(),
        }
    }

    pub(crate) fn query<'a>(&'a self, step: &Step) -> Result<&'a Query, EngineError> {
        self.settings
            .network
            .query(&step.query)
            .ok_or_else(|| EngineError::Broken(format!("no query {:?}", step.query)))
    }

    /// Fetches the work's call, following redirects, and reads what came.
    async fn hear(
        &self,
        work: &Work,
        mut permit: Permit,
        hops: &mut Vec<Commit>,
    ) -> Result<Hearing, EngineError> {
        let mut at = work.redirected.clone().unwrap_or_else(|| Redirected {
            url: work.call.plan.url.clone(),
            hops: 0,
            led_astray: OutcomeCode::Malformed,
        });
        match self.mind_robots(work, &at, permit, hops).await? {
            Minded::Go(left) => permit = left,
            Minded::Stop(hearing) => return Ok(hearing),
        }
        loop {
            let (hop, url) = match self.hear_at(work, &at, permit).await? {
                HearingAt::Answer(heard) => return Ok(Hearing::Answer(heard)),
                HearingAt::Redirect(hop, url) => (hop, url),
            };
            if !self.may_be_led_to(&work.call.site, &url) {
                let status = hop.status.unwrap_or_default();
                let reason = format!("http {status}: redirect to where nobody may ask (--hosts)");
                let reading = Reading::of(led_astray_by(status), reason);
                return Ok(Hearing::Answer(Box::new(Heard { reading, ..*hop })));
            }
            if let Some(reason) = self.forbids_redirect(&work.call.site, &url) {
                let reading = Reading::of(OutcomeCode::Forbidden, reason);
                return Ok(Hearing::Answer(Box::new(Heard { reading, ..*hop })));
            }
            hops.push(Commit {
                at: hop.observed,
                log: Some(self.log_row(work, &hop)),
                ..Commit::default()
            });
            at = Redirected {
                url,
                hops: at.hops + 1,
                led_astray: led_astray_by(hop.status.unwrap_or_default()),
            };
            if !self.set_aside(&work.call.plan) {
                return Ok(Hearing::NoPermit(self.clock.limit(), at));
            }
            let taken = {
                let mut purse = work.call.site.purse.lock().await;
                purse.take(&work.call.charges).await?
            };
            match taken {
                Taken::Permit(next) => permit = next,
                Taken::Wait { until, .. } => {
                    self.give_back(&work.call.plan);
                    return Ok(Hearing::NoPermit(until, at));
                }
            }
        }
    }

    /// What came, as far as it can be known before it is decided what it means.
    fn told(
        &self,
        work: &Work,
        url: &Url,
        fetched: &Fetched,
        home: bool,
    ) -> Result<Told, EngineError> {
        let response = match fetched {
            Fetched::Response(response) => response,
            // What was not sent costs nothing; of what failed nobody knows.
            Fetched::Locked(_) => return Ok(Told::nothing(Some(0))),
            Fetched::Failed(_) => return Ok(Told::nothing(None)),
        };
        let begun = Instant::now();
        let location = redirect(response);
        let network = &self.settings.network;
        let blocked = network
            .block_page(
                response.status,
                (location.as_deref(), response.headers.get("content-type")),
                &response.body,
            )
            .filter(|_| home);
        let reading = match (blocked, location) {
            (Some(reason), _) => Some(Reading::of(
                OutcomeCode::RateLimited,
                format!("http {}: {reason}", response.status),
            )),
            (None, Some(_)) => self.read_redirect(work, url, response)?,
            (None, None) => Some(self.read(work, url, response)?),
        };
        let is_refused = reading.as_ref().is_some_and(|reading| {
            reading.outcome.consequence() == Consequence::Wait || response.status == 503
        });
        let (reports, date) = if home {
            (self.limit_reports(work, response), date_of(response))
        } else {
            (Vec::new(), None)
        };
        // What is paid by the item is paid for what came. Of what was shown and cannot be read nobody knows.
        let is_lost = |it: &Reading| {
            it.outcome == OutcomeCode::Malformed && (200..=299).contains(&response.status)
        };
        let is_lost = reading.as_ref().is_some_and(is_lost);
        let items = reading.as_ref().map_or(0, |it| u64::from(it.items));
        let bills = reading.as_ref().filter(|_| !is_lost);
        let bills = bills.map_or_else(Vec::new, |it| network.bills(&work.call.plan.costs, it));
        Ok(Told {
            items: (!is_lost).then_some(items),
            bills,
            reading,
            reports,
            date,
            bearing: match (home, is_refused) {
                (false, _) => Bearing::Unknown,
                (true, true) => Bearing::Badly,
                (true, false) => Bearing::Well,
            },
            is_shut_out: blocked.is_some(),
            read_us: begun.elapsed().as_micros() as u32,
        })
    }

    /// Fetches from one address and reads what came.
    async fn hear_at(
        &self,
        work: &Work,
        at: &Redirected,
        permit: Permit,
    ) -> Result<HearingAt, EngineError> {
        let (observed, sent) = (self.clock.world(), self.clock.real());
        let (mut fetched, held) = self.fetch(work, &at.url).await;
        let answered = self.clock.real();
        if let (Fetched::Response(response), Some(held)) = (&mut fetched, &held) {
            held.blot_out_cookies(response);
        }
        // Another host's word is no word on the limits of ours.
        let home = work.call.site.has(&at.url);
        let told = self.told(work, &at.url, &fetched, home)?;
        let said = Answered {
            items: told.items,
            charges: &work.call.charges,
            bills: &told.bills,
            reports: &told.reports,
            date: told.date,
            bearing: told.bearing,
        };
        let purse = &work.call.site.purse;
        let paid = purse.lock().await.settle_paid(permit, said).await?;
        self.settle_caps(&work.call, told.items, &paid);
        let heard = |reading, response: Option<&Response>| Heard {
            reading,
            asked_for: AskedFor::Work,
            status: response.map(|response| response.status),
            bytes: response.map_or(0, |response| response.body.len() as u64),
            raw: None,
            wait_until: None,
            host_down: false,
            shut_out: told.is_shut_out,
            renewed: false,
            read_us: told.read_us,
            share: None,
            sent,
            answered,
            observed,
        };
        let response = match fetched {
            Fetched::Response(response) => response,
            Fetched::Locked(reason) => {
                let reading = Reading::of(OutcomeCode::AuthExpired, reason);
                return Ok(HearingAt::answer(heard(reading, None)));
            }
            Fetched::Failed(error) => {
                let (mut reading, is_down) = failure(&error);
                // A passing redirect to where nothing may be asked says nothing of the subject.
                if at.hops > 0 && reading.outcome == OutcomeCode::Forbidden {
                    reading.outcome = at.led_astray;
                }
                // Another host that is down is a fault of this call, not of ours.
                let host_down = is_down && home;
                let heard = heard(reading, None);
                return Ok(HearingAt::answer(Heard { host_down, ..heard }));
            }
        };
        let Some(reading) = told.reading else {
            let is_post = work.call.plan.body.is_some();
            return Ok(followed(at, &response, is_post, |reading| {
                heard(reading, Some(&response))
            }));
        };
        let mut heard = heard(reading, Some(&response));
        let raw = self.settings.keep_raw.then(|| response.body.to_vec());
        heard.raw = redact_raw(held.as_ref(), raw);
        self.hear_of_credential(work, held.as_ref(), &mut heard)
            .await;
        if home {
            heard.wait_until = self
                .hear_limits(work, &response, &heard.reading, &told.reports)
                .await?;
        }
        heard.share = Some(response.permit);
        Ok(HearingAt::answer(heard))
    }

    /// What the answer says of the credential that was sent.
    async fn hear_of_credential(&self, work: &Work, held: Option<&Held>, heard: &mut Heard) {
        let Some(held) = held else {
            return;
        };
        redact(Some(held), &mut heard.reading.reason);
        if heard.reading.outcome == OutcomeCode::AuthExpired {
            match self.refused(work, held).await {
                Refusal::Renewed => heard.renewed = true,
                Refusal::Final(why) if why.is_empty() => {}
                Refusal::Final(why) => {
                    heard.reading.reason = format!("{}; {why}", heard.reading.reason);
                }
            }
        } else if heard.reading.outcome.is_success() {
            self.accepted(work, held);
        }
    }

    /// Sends the call; what of the credential went with it is told, too.
    async fn fetch(&self, work: &Work, url: &Url) -> (Fetched, Option<Held>) {
        let plan = &work.call.plan;
        let site = &work.call.site;
        let mut request = Request {
            method: if plan.method == "POST" {
                Method::Post
            } else {
                Method::Get
            },
            headers: plan.headers.clone(),
            body: plan.body.clone().map(Into::into),
            body_bytes_max: plan.bytes_max.map(|bytes| bytes as usize),
            ..Request::get(
                url.clone(),
                if site.has(url) {
                    site.trust
                } else {
                    HostTrust::Learnt
                },
            )
        };
        let held = match self.attach(&mut request, work).await {
            Ok(held) => held,
            Err(reason) => return (Fetched::Locked(reason), None),
        };
        let fetch = self.fetcher.fetch(request);
        tokio::pin!(fetch);
        tokio::select! {
            biased;
            fetched = &mut fetch => return (fetched.into(), held),
            () = tokio::task::yield_now() => self.crash.reached(CrashPoint::SendAndAnswer),
        }
        (fetch.await.into(), held)
    }

    fn read(&self, work: &Work, url: &Url, response: &Response) -> Result<Reading, EngineError> {
        let network = &self.settings.network;
        let read = |answer: &Answer<'_>, teller: Option<&Teller<'_>>| {
            let reading = network.read_from(teller, answer);
            self.learn(&work.call.site, answer.query, &reading);
            reading
        };
        self.answered(work, (url, response), read)
    }

    /// What a redirect means that is not followed; nothing of any other.
    fn read_redirect(
        &self,
        work: &Work,
        url: &Url,
        response: &Response,
    ) -> Result<Option<Reading>, EngineError> {
        let network = &self.settings.network;
        self.answered(work, (url, response), |answer, _| {
            network.read_redirect(answer)
        })
    }

    /// An answer, with the question that it answers and how far it is believed.
    fn answered<T>(
        &self,
        work: &Work,
        (url, response): (&Url, &Response),
        read: impl FnOnce(&Answer<'_>, Option<&Teller<'_>>) -> T,
    ) -> Result<T, EngineError> {
        let query = self.query(&work.call.step)?;
        let host = self.settings.network.host_identity(&work.call.site.host);
        // Whoever a probe is asked for, it is about the host.
        let probed = host
            .as_ref()
            .filter(|_| work.call.purpose == Purpose::Probe);
        let subjects: Vec<_> = if let Some(host) = probed {
            vec![(Key(0), host)]
        } else {
            let tasks = work.tasks.iter();
            tasks
                .map(|task| (task.row.subject, &task.identity))
                .collect()
        };
        let header = |name: &str| response.headers.get(name).map(str::to_owned);
        let site = &work.call.site;
        let asks_elsewhere = |home: &Address| self.asks_elsewhere(site, home);
        let teller = Teller {
            is_trusted: site.is_home || matches!(query.whom(), Whom::Named(_)),
            asks_elsewhere: &asks_elsewhere,
        };
        // Where one host is asked about everything, there is nobody else to believe.
        let teller = (!self.settings.hosts.is_empty()).then_some(&teller);
        let answer = Answer {
            query,
            base: &work.call.site.base,
            host: &work.call.site.host,
            subjects: &subjects,
            page: work.call.step.page.borrowed(),
            url,
            status: response.status,
            header: &header,
            body: &response.body,
            walk: query
                .list
                .filter(|_| self.speaks_for_subjects(work))
                .map(|_| work.call.step.walk),
        };
        Ok(read(&answer, teller))
    }

    fn limit_reports(&self, work: &Work, response: &Response) -> Vec<LimitReport> {
        let header = |name: &str| response.headers.get(name).map(str::to_owned);
        let network = &self.settings.network;
        network.limit_reports(&work.call.plan.costs, &header, self.clock.limit())
    }

    /// The time to wait for, if the answer was refused for a limit; nothing is sent till then.
    async fn hear_limits(
        &self,
        work: &Work,
        response: &Response,
        reading: &Reading,
        reports: &[LimitReport],
    ) -> Result<Option<LimitTime>, EngineError> {
        let now = self.clock.limit();
        let waits = reading.outcome.consequence() == Consequence::Wait;
        let asked_us = response
            .headers
            .get("retry-after")
            .and_then(|value| retry_after(value, self.clock.real().micros()));
        if !waits {
            // A server that is merely overloaded may still say when to come back.
            return Ok(asked_us
                .filter(|_| reading.outcome == OutcomeCode::Transient)
                .map(|us| now.plus_us(us)));
        }
        let used_up = UsedUp {
            now,
            reading,
            asked_us,
            reports,
            charges: &work.call.charges,
            rules: self.settings.network.budgets(),
        };
        let Blocked { budgets, until } = used_up.blocks();
        let purse = &work.call.site.purse;
        purse.lock().await.block(&budgets, until).await?;
        Ok(Some(until))
    }
}

/// The second in which the server says it has answered. An answer that was kept on its way is dated
/// with when it was made.
pub(crate) fn date_of(response: &Response) -> Option<LimitTime> {
    if response.headers.get("age").is_some() {
        return None;
    }
    let us = http_date_us(response.headers.get("date")?)?;
    Some(LimitTime(us))
}

/// Where a redirect leads, unless it leads nowhere.
fn followed(
    at: &Redirected,
    response: &Response,
    is_post: bool,
    heard: impl Fn(Reading) -> Heard,
) -> HearingAt {
    let status = response.status;
    // These ask for a GET without the body: another question, whose answer would pass for ours.
    if is_post && matches!(status, 301..=303) {
        let reason = format!("http {status}: redirect that drops what was asked");
        return HearingAt::answer(heard(Reading::of(led_astray_by(status), reason)));
    }
    let location = redirect(response).unwrap_or_default();
    let target = at.url.join(&location).ok();
    let target =
        target.filter(|target| at.hops < HOPS_MAX && matches!(target.scheme(), "http" | "https"));
    let Some(target) = target else {
        let reason = format!("http {status}: redirect that leads nowhere");
        return HearingAt::answer(heard(Reading::of(led_astray_by(status), reason)));
    };
    let reason = format!("http {status}: redirect");
    let hop = heard(Reading::of(OutcomeCode::Ok, reason));
    HearingAt::Redirect(Box::new(hop), target)
}

pub(crate) fn redirect(response: &Response) -> Option<String> {
    matches!(response.status, 301 | 302 | 303 | 307 | 308)
        .then(|| response.headers.get("location").map(str::to_owned))
        .flatten()
}

/// What a redirect that cannot be followed amounts to: one that is meant to last will be the same
/// next time, any other may be a fault of the moment.
const fn led_astray_by(status: u16) -> OutcomeCode {
    if matches!(status, 301 | 308) {
        OutcomeCode::BadRequest
    } else {
        OutcomeCode::Malformed
    }
}

/// What a failed fetch amounts to, and whether the host itself is out of reach.
pub(crate) fn failure(error: &FetchError) -> (Reading, bool) {
    let reason = error.to_string();
    match error.kind() {
        FetchErrorKind::HostDown => (Reading::of(OutcomeCode::HostDown, reason), true),
        FetchErrorKind::Transient => (Reading::of(OutcomeCode::Transient, reason), false),
        FetchErrorKind::TooLarge => (Reading::of(OutcomeCode::TooMuchData, reason), false),
        FetchErrorKind::AddressRefused => (Reading::of(OutcomeCode::Forbidden, reason), false),
        FetchErrorKind::Unreadable => (Reading::of(OutcomeCode::Malformed, reason), false),
        FetchErrorKind::Invalid => (Reading::of(OutcomeCode::BadRequest, reason), false),
    }
}
