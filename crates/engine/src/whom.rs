//! Who is asked about a subject: its own host where the crawl may ask it, or the crawl's own, which
//! stands in for those that cannot be asked.

use crate::exchange::Shop;
use crate::hosts::Allowed;
use crate::lookup::Lookup;
use crate::site::Site;
use crate::work::Work;
use kittiwake_fetch::HostTrust;
use kittiwake_model::{Commit, Key, Name, OutcomeCode};
use kittiwake_network::{Address, Ask, Page, Query, RequestError, Whom};
use kittiwake_store::TaskRecord;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use url::Url;

/// Subjects, and questions about them, that are remembered at once. Beyond that they are asked for
/// again, which costs calls and nothing else.
const REMEMBERED_MAX: usize = 500_000;

/// What a run has found out about who can be asked for whom.
#[derive(Debug, Default)]
pub(crate) struct Inquiries {
    /// Subjects whose own host does not say what it calls them: the crawl's own is asked.
    stood_in_for: Mutex<HashSet<Key>>,
    /// Lookups that were answered, by subject, query and host: none is asked twice.
    answered: Mutex<HashSet<(Key, Name, String)>>,
}

fn locked<T>(remembered: &Mutex<HashSet<T>>) -> MutexGuard<'_, HashSet<T>> {
    remembered.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remember<T: Eq + std::hash::Hash>(remembered: &Mutex<HashSet<T>>, one: T) {
    let mut remembered = locked(remembered);
    if remembered.len() >= REMEMBERED_MAX {
        remembered.clear();
    }
    remembered.insert(one);
}

impl Shop {
    /// Who is asked a query about a task's subject; `None` when it is not known, or may not be asked.
    pub(crate) fn site_of(&self, query: &Query, task: &TaskRecord) -> Option<Arc<Site>> {
        let (network, subject) = (&self.settings.network, &task.identity);
        match query.whom() {
            Whom::Crawl => Some(Arc::clone(&self.sites.home)),
            Whom::Named(name) => self.sites.named(name),
            Whom::Alias(name) => self.allowed_site(network.host_in(subject, name)?),
            Whom::Own => self.allowed_site(network.home(subject)?),
            Whom::Home => {
                let site = self.home_site(query, task);
                Some(site.unwrap_or_else(|| Arc::clone(&self.sites.home)))
            }
        }
    }

    /// The server at an address that came from data, if it may be asked.
    fn allowed_site(&self, address: Address) -> Option<Arc<Site>> {
        if self.sites.is_home(&address) {
            return Some(Arc::clone(&self.sites.home));
        }
        let trust = match self.settings.hosts.allowed(&address)? {
            Allowed::Named => HostTrust::Named,
            Allowed::Learnt => HostTrust::Learnt,
        };
        self.sites.at(address, trust)
    }

    /// The subject's own server, unless the crawl's has to stand in for it.
    fn home_site(&self, query: &Query, task: &TaskRecord) -> Option<Arc<Site>> {
        // Most crawls ask one host only, and this is asked before every call.
        if self.settings.hosts.is_empty() || self.is_stood_in_for(task.row.subject) {
            return None;
        }
        let home = self.settings.network.home(&task.identity)?;
        let site = self.allowed_site(home)?;
        let is_shut = !site.is_home && (site.is_out() || site.is_closed(&query.name));
        (!is_shut || !self.can_stand_in(query, task)).then_some(site)
    }

    /// Whether the crawl's own host can be asked about a subject in place of its own.
    fn can_stand_in(&self, query: &Query, task: &TaskRecord) -> bool {
        let site = &self.sites.home;
        let ask = Ask {
            query,
            base: &site.base,
            host: &site.host,
            subjects: &[&task.identity],
            page: Page::First,
            authenticated: false,
        };
        match self.settings.network.request(&ask) {
            Ok(_) | Err(RequestError::AuthRequired) => true,
            Err(RequestError::MissingAlias { alias, .. }) => {
                let lookup = Lookup::new(self, &task.row.robot, task);
                lookup.can_resolve(&alias, site)
            }
            Err(_) => false,
        }
    }

    pub(crate) fn is_stood_in_for(&self, subject: Key) -> bool {
        locked(&self.inquiries.stood_in_for).contains(&subject)
    }

    /// The crawl's own host is asked about a subject from now on.
    pub(crate) fn stand_in_for(&self, subject: Key) {
        remember(&self.inquiries.stood_in_for, subject);
    }

    /// Whether a lookup was answered already.
    pub(crate) fn was_answered(&self, subject: Key, query: &Name, site: &Site) -> bool {
        let asked = (subject, query.clone(), site.host.clone());
        locked(&self.inquiries.answered).contains(&asked)
    }

    /// Remembers that a lookup was answered, whatever it told.
    pub(crate) fn note_answered(&self, work: &Work) {
        let (query, host) = (&work.call.step.query, &work.call.site.host);
        for subject in work.keys() {
            let asked = (subject, query.clone(), host.clone());
            remember(&self.inquiries.answered, asked);
        }
    }

    /// Whether a host will not say what it calls a subject: it was asked, or is shut. Otherwise the
    /// question lacks only what others may still tell.
    pub(crate) fn is_silent(&self, task: &TaskRecord, id: &str, site: &Site) -> bool {
        let network = &self.settings.network;
        let mut queries = network.resolve_queries(&task.identity.kind);
        site.is_out()
            || queries.any(|query| {
                network.tells(query, id)
                    && (site.is_closed(&query.name)
                        || self.was_answered(task.row.subject, &query.name, site))
            })
    }

    /// Whether there is a question that tells this id of objects of a type.
    pub(crate) fn can_be_asked_for(&self, kind: &str, id: &str) -> bool {
        let network = &self.settings.network;
        let mut queries = network.resolve_queries(kind);
        queries.any(|query| network.tells(query, id))
    }

    /// Whether those who live at an address are asked for there, and not at this site. Of those who
    /// live where nobody may ask the crawl's own host speaks.
    pub(crate) fn asks_elsewhere(&self, site: &Site, home: &Address) -> bool {
        let may_be_asked = || self.settings.hosts.allowed(home).is_some();
        !site.is_at(home) && (!site.is_home || may_be_asked())
    }

    /// Whether a call to a site may be led on to an address. What the user has named itself may move to
    /// another host, if that is a public one.
    pub(crate) fn may_be_led_to(&self, site: &Site, url: &Url) -> bool {
        let is_allowed = || {
            let address = Address::of(url.as_str());
            address.is_some_and(|it| self.settings.hosts.allowed(&it).is_some())
        };
        self.settings.hosts.is_empty()
            || self.settings.network.asks_subjects()
            || site.has(url)
            || self.sites.home.has(url)
            || is_allowed()
    }

    /// Whether the host that is asked knows all there is of the subjects. A crawl that asks one host
    /// only takes that one's word for everything, and so does a query that is for one host alone.
    pub(crate) fn speaks_for_subjects(&self, work: &Work) -> bool {
        let network = &self.settings.network;
        let query = network.query(&work.call.step.query);
        let is_for_homes =
            query.is_some_and(|it| !matches!(it.whom(), Whom::Crawl | Whom::Named(_)));
        let is_elsewhere = |task: &TaskRecord| {
            let home = network.home(&task.identity);
            home.is_some_and(|home| !work.call.site.is_at(&home))
        };
        self.settings.hosts.is_empty() || !is_for_homes || !work.tasks.iter().any(is_elsewhere)
    }

    /// What a host does not know that does not speak for it may be there all the same.
    pub(crate) fn soften(&self, work: &Work, commit: &mut Commit) {
        if self.speaks_for_subjects(work) {
            return;
        }
        let is_gone = |code: OutcomeCode| {
            code.invalidates_user() || matches!(code, OutcomeCode::Gone | OutcomeCode::NotFound)
        };
        for outcome in commit.outcomes.iter_mut().filter(|it| is_gone(it.code)) {
            outcome.reason = format!("not known here: {}", outcome.reason);
            outcome.code = OutcomeCode::Forbidden;
        }
    }
}
