//! What a server does not want to be asked for: robots.txt is read before the first page of a server,
//! and again when it is no longer to be believed. It is asked for like anything else, out of a grant.

use crate::EngineError;
use crate::exchange::{AskedFor, Heard, Hearing, Shop, date_of, failure, redirect};
use crate::permits::{Answered, Permit, Taken};
use crate::site::Site;
use crate::work::{Call, Redirected, Work};
use kittiwake_fetch::{FetchError, HostTrust, Request, Response};
use kittiwake_model::{Commit, LimitTime, LogRow, OutcomeCode};
use kittiwake_network::{Bearing, ROBOTS_BYTES_MAX, Reading, Robots, RobotsRule};
use std::sync::{Mutex, MutexGuard, PoisonError};
use url::Url;

/// Why something was not asked for.
pub(crate) const FORBIDDEN: &str = "robots.txt forbids it";
const UNKNOWN: &str = "redirect to a host whose robots.txt was not read; name that address instead";
/// The name of the call in the log.
const QUERY: &str = "robots.txt";
/// How often it may lead elsewhere, as RFC 9309 has it.
const HOPS_MAX: usize = 5;

/// What a server asks of us, as far as it was read in this run.
#[derive(Debug, Default)]
pub(crate) struct Manners {
    known: Mutex<Option<Known>>,
    /// One asks, whoever else wants to know waits for that.
    reading: tokio::sync::Mutex<Reached>,
}

/// Where asking for the file has led so far, if it had to wait on its way: to begin anew would cost the
/// same calls again, for ever where calls are spread evenly.
#[derive(Debug, Default)]
struct Reached {
    at: Option<Url>,
    hops: usize,
}

#[derive(Debug)]
struct Known {
    robots: Robots,
    until: LimitTime,
}

impl Manners {
    fn known(&self) -> MutexGuard<'_, Option<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_fresh(&self, now: LimitTime) -> bool {
        self.known().as_ref().is_some_and(|known| now < known.until)
    }

    /// Whether an address may be asked for; `None` if nothing is known.
    fn allow(&self, url: &Url) -> Option<bool> {
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let known = self.known();
        known.as_ref().map(|known| known.robots.allows(&path))
    }
}

/// Whether a call can go on.
pub(crate) enum Minded {
    Go(Permit),
    Stop(Hearing),
}

/// What came of asking for the file.
enum Read {
    Known,
    /// It cannot be had, so that nothing may be asked for.
    Unknown(Box<Heard>),
    NoPermit(LimitTime),
}

impl Shop {
    /// Whether it is known already that a call may not be made.
    pub(crate) fn is_known_forbidden(&self, call: &Call) -> bool {
        let manners = &call.site.manners;
        self.settings.network.robots_txt().is_some()
            && manners.is_fresh(self.clock.limit())
            && manners.allow(&call.plan.url) == Some(false)
    }

    /// Why a redirect is not followed, if it is not.
    pub(crate) fn forbids_redirect(&self, site: &Site, url: &Url) -> Option<&'static str> {
        self.settings.network.robots_txt()?;
        let allowed = if site.has(url) {
            site.manners.allow(url)
        } else {
            let other = self.sites.met(url);
            other.and_then(|other| other.manners.allow(url))
        };
        match allowed {
            Some(true) => None,
            Some(false) => Some(FORBIDDEN),
            None => Some(UNKNOWN),
        }
    }

    /// Sees to it that a server's wishes are known before it is asked, and that they are kept.
    pub(crate) async fn mind_robots(
        &self,
        work: &Work,
        at: &Redirected,
        mut permit: Permit,
        hops: &mut Vec<Commit>,
    ) -> Result<Minded, EngineError> {
        let site = &work.call.site;
        let Some(rule) = self.settings.network.robots_txt() else {
            return Ok(Minded::Go(permit));
        };
        // A call that was led to another server was held against that one's wishes before.
        if !site.has(&at.url) {
            return Ok(Minded::Go(permit));
        }
        let mut reading = site.manners.reading.lock().await;
        if !site.manners.is_fresh(self.clock.limit()) {
            let read = self.read_robots(work, rule, permit, (&mut reading, hops));
            match read.await? {
                Read::Known => *reading = Reached::default(),
                Read::Unknown(heard) => {
                    *reading = Reached::default();
                    return Ok(Minded::Stop(Hearing::Answer(heard)));
                }
                Read::NoPermit(until) => return Ok(no_permit(until, at)),
            }
            drop(reading);
            if site.manners.allow(&at.url) == Some(false) {
                return Ok(Minded::Stop(self.forbidden()));
            }
            match self.another_permit(work).await? {
                Ok(next) => permit = next,
                Err(until) => return Ok(no_permit(until, at)),
            }
            return Ok(Minded::Go(permit));
        }
        drop(reading);
        if site.manners.allow(&at.url) == Some(false) {
            // Nothing is sent; what was set aside for it counts as spent where it cannot be given back.
            self.settle_unsent(work, permit).await?;
            return Ok(Minded::Stop(self.forbidden()));
        }
        Ok(Minded::Go(permit))
    }

    /// Asks for the file, wherever it is.
    async fn read_robots(
        &self,
        work: &Work,
        rule: RobotsRule,
        mut permit: Permit,
        (reached, hops): (&mut Reached, &mut Vec<Commit>),
    ) -> Result<Read, EngineError> {
        let site = &work.call.site;
        let mut url = reached.at.take().unwrap_or_else(|| {
            let mut url = site.base.clone();
            url.set_path("/robots.txt");
            url.set_query(None);
            url
        });
        while reached.hops <= HOPS_MAX {
            let (fetched, heard) = self.fetch_robots(work, &url, permit).await?;
            let response = match fetched {
                Ok(response) => response,
                Err(error) => {
                    let (mut reading, host_down) = failure(&error);
                    reading.reason = format!("{QUERY}: {}", reading.reason);
                    let heard = heard(reading, None);
                    return Ok(Read::Unknown(Box::new(Heard { host_down, ..heard })));
                }
            };
            let reason = format!("http {}", response.status);
            // Too many calls are no word on what is there.
            if matches!(response.status, 429 | 500..=599) {
                let reading = Reading::of(OutcomeCode::Transient, format!("{QUERY}: {reason}"));
                return Ok(Read::Unknown(Box::new(heard(reading, Some(&response)))));
            }
            let hop = heard(Reading::of(OutcomeCode::Ok, reason), Some(&response));
            hops.push(Commit {
                at: hop.observed,
                log: self.logged(work, &hop),
                ..Commit::default()
            });
            let robots = match response.status {
                200..=299 => Robots::parse(&response.body),
                300..=399 => {
                    let target = redirect(&response).and_then(|it| url.join(&it).ok());
                    let target = target.filter(|it| matches!(it.scheme(), "http" | "https"));
                    let Some(target) = target else {
                        return self.take_in_robots(work, rule, Robots::free(), None).await;
                    };
                    url = target;
                    reached.hops += 1;
                    match self.another_permit(work).await? {
                        Ok(next) => permit = next,
                        Err(until) => {
                            reached.at = Some(url);
                            return Ok(Read::NoPermit(until));
                        }
                    }
                    continue;
                }
                _ => Robots::free(),
            };
            let cache_control = response.headers.get("cache-control");
            return self.take_in_robots(work, rule, robots, cache_control).await;
        }
        // Nobody has to follow it any further.
        self.take_in_robots(work, rule, Robots::free(), None).await
    }

    /// One call for the file, to one address.
    async fn fetch_robots(
        &self,
        work: &Work,
        url: &Url,
        permit: Permit,
    ) -> Result<
        (
            Result<Response, FetchError>,
            impl Fn(Reading, Option<&Response>) -> Heard + use<>,
        ),
        EngineError,
    > {
        let site = &work.call.site;
        let is_home = site.has(url);
        let trust = if is_home {
            site.trust
        } else {
            HostTrust::Learnt
        };
        let request = Request {
            headers: vec![("accept".to_owned(), "text/plain, */*;q=0.1".to_owned())],
            body_bytes_max: Some(ROBOTS_BYTES_MAX),
            is_cut_off: true,
            ..Request::get(url.clone(), trust)
        };
        let (observed, sent) = (self.clock.world(), self.clock.real());
        let fetched = self.fetcher.fetch(request).await;
        let answered = self.clock.real();
        let response = fetched.as_ref().ok().filter(|_| is_home);
        let bearing = match response.map(|it| it.status) {
            Some(429 | 503) => Bearing::Badly,
            Some(_) => Bearing::Well,
            None => Bearing::Unknown,
        };
        let said = Answered {
            items: Some(0),
            date: response.and_then(date_of),
            bearing,
            ..Answered::default()
        };
        site.purse.lock().await.settle(permit, said).await?;
        self.settle_caps(&work.call, Some(0), &[]);
        let asked_for = AskedFor::RobotsTxt(url.clone());
        let heard = move |reading: Reading, response: Option<&Response>| Heard {
            reading,
            asked_for: asked_for.clone(),
            status: response.map(|it| it.status),
            bytes: response.map_or(0, |it| it.body.len() as u64),
            raw: None,
            wait_until: None,
            host_down: false,
            shut_out: false,
            renewed: false,
            read_us: 0,
            share: None,
            sent,
            answered,
            observed,
        };
        Ok((fetched, heard))
    }

    /// Keeps what a server wants, and asks it no more often than it wants.
    async fn take_in_robots(
        &self,
        work: &Work,
        rule: RobotsRule,
        robots: Robots,
        cache_control: Option<&str>,
    ) -> Result<Read, EngineError> {
        let site = &work.call.site;
        let now = self.clock.limit();
        let until = now.plus_us(rule.believed_us(cache_control));
        let pause_s = robots.delay_s;
        let before = site.manners.known().replace(Known { robots, until });
        if before.and_then(|known| known.robots.delay_s) != pause_s {
            let usual = self.settings.network.politeness().unwrap_or_default();
            let pace = pause_s.map_or(usual, |pause_s| usual.with_pause(pause_s));
            let host = site.remembered_as(&self.settings);
            site.purse.lock().await.change_pace(pace, &host).await?;
        }
        Ok(Read::Known)
    }

    /// The right to one more call, or when there may be one.
    async fn another_permit(&self, work: &Work) -> Result<Result<Permit, LimitTime>, EngineError> {
        if !self.set_aside(&work.call.plan) {
            return Ok(Err(self.clock.limit()));
        }
        let mut purse = work.call.site.purse.lock().await;
        match purse.take(&work.call.charges).await? {
            Taken::Permit(permit) => Ok(Ok(permit)),
            Taken::Wait { until, .. } => {
                self.give_back(&work.call.plan);
                Ok(Err(until))
            }
        }
    }

    async fn settle_unsent(&self, work: &Work, permit: Permit) -> Result<(), EngineError> {
        let nothing = Answered {
            items: Some(0),
            ..Answered::default()
        };
        self.give_back(&work.call.plan);
        let purse = &work.call.site.purse;
        purse.lock().await.settle(permit, nothing).await
    }

    fn forbidden(&self) -> Hearing {
        let now = self.clock.real();
        Hearing::Answer(Box::new(Heard {
            reading: Reading::of(OutcomeCode::Forbidden, FORBIDDEN),
            asked_for: AskedFor::Nothing,
            status: None,
            bytes: 0,
            raw: None,
            wait_until: None,
            host_down: false,
            shut_out: false,
            renewed: false,
            read_us: 0,
            share: None,
            sent: now,
            answered: now,
            observed: self.clock.world(),
        }))
    }

    /// The call as the log has it, if there was one.
    pub(crate) fn logged(&self, work: &Work, heard: &Heard) -> Option<LogRow> {
        match &heard.asked_for {
            AskedFor::Work => Some(self.log_row(work, heard)),
            AskedFor::RobotsTxt(url) => Some(self.robots_row(work, url, heard)),
            AskedFor::Nothing => None,
        }
    }

    /// The call as the log has it: it concerns nobody in particular, and nobody is named by it.
    fn robots_row(&self, work: &Work, url: &Url, hop: &Heard) -> LogRow {
        let target = if work.call.site.is_home && work.call.site.has(url) {
            url.path().to_owned()
        } else {
            format!("{}{}", url.origin().ascii_serialization(), url.path())
        };
        LogRow {
            query: QUERY.into(),
            subjects: Vec::new(),
            target,
            cursor: String::new(),
            credential: "anonymous".to_owned(),
            ..self.log_row(work, hop)
        }
    }
}

/// The call waits for its own permit and is then made.
fn no_permit(until: LimitTime, at: &Redirected) -> Minded {
    Minded::Stop(Hearing::NoPermit(until, at.clone()))
}
