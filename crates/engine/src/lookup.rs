//! Lookups: the questions without whose answers another cannot be asked.

use crate::exchange::Shop;
use crate::plan::CannotAsk;
use crate::site::Site;
use crate::walk::{Step, StepPage};
use crate::work::{Call, Purpose};
use kittiwake_model::Name;
use kittiwake_network::{Query, RequestError, Whom};
use kittiwake_store::TaskRecord;
use std::sync::Arc;

/// Lookups that one lookup may need.
const LOOKUPS_MAX: u32 = 4;

const CANONICAL: &str = "canonical";

/// The search for an id that a question needs.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a> {
    shop: &'a Shop,
    robot: &'a str,
    task: &'a TaskRecord,
}

impl<'a> Lookup<'a> {
    pub(crate) const fn new(shop: &'a Shop, robot: &'a str, task: &'a TaskRecord) -> Self {
        Self { shop, robot, task }
    }

    /// The question where the subject lives, if that matters and is not known, by whichever id tells
    /// it.
    pub(crate) fn of_home(&self, query: &Query) -> Result<Option<Call>, CannotAsk> {
        let network = &self.shop.settings.network;
        let purpose: fn(Name) -> Purpose = match query.whom() {
            // A list can be walked without it.
            Whom::Own if self.shop.backfilled(self.robot, &query.name).is_some() => Purpose::Locate,
            Whom::Own => Purpose::Resolve,
            Whom::Home if !self.shop.settings.hosts.is_empty() => Purpose::Locate,
            Whom::Home | Whom::Crawl | Whom::Named(_) | Whom::Alias(_) => return Ok(None),
        };
        if network.home(&self.task.identity).is_some() {
            return Ok(None);
        }
        let found = self.of_any_home_id(purpose);
        if found.is_none() && *query.whom() == Whom::Own {
            // Without its own host there is nobody to ask.
            return Err(CannotAsk::Host);
        }
        Ok(found)
    }

    /// Whether there is anybody to ask where the subject lives.
    pub(crate) fn can_locate(&self) -> bool {
        self.of_any_home_id(Purpose::Locate).is_some()
    }

    fn of_any_home_id(&self, purpose: fn(Name) -> Purpose) -> Option<Call> {
        let network = &self.shop.settings.network;
        let mut ids = network.home_ids(&self.task.identity.kind);
        ids.find_map(|id| self.of_id(id, None, purpose, LOOKUPS_MAX))
    }

    /// The question who the subject is: others may know it by an id that it lacks here, and would then
    /// be told of somebody else.
    pub(crate) fn of_canonical(&self, query: &Query) -> Option<Call> {
        let is_alone = self.shop.settings.hosts.is_empty();
        if is_alone || *query.whom() != Whom::Home || self.task.identity.canonical.is_some() {
            return None;
        }
        self.of_id(CANONICAL, None, Purpose::Locate, LOOKUPS_MAX)
    }

    /// The question what a host calls the subject. One that stands in for the subject's own may know it
    /// by a weightier id than it has here: who the subject is has to be known first.
    pub(crate) fn of_alias(&self, query: &Query, alias: &str, site: &Arc<Site>) -> Option<Call> {
        let home = self.shop.settings.network.home(&self.task.identity);
        let stands_in = home.is_some_and(|home| !site.is_at(&home));
        let naming = stands_in.then(|| self.of_canonical(query)).flatten();
        naming.or_else(|| self.of_local_id(alias, site))
    }

    /// Whether a host can be asked what it calls the subject.
    pub(crate) fn can_resolve(&self, alias: &str, site: &Arc<Site>) -> bool {
        self.of_local_id(alias, site).is_some()
    }

    fn of_local_id(&self, alias: &str, site: &Arc<Site>) -> Option<Call> {
        self.of_id(alias, Some(site), Purpose::Resolve, LOOKUPS_MAX)
    }

    /// The question that tells an id of the subject on a host, or one that has to be asked before it.
    fn of_id(
        &self,
        id: &str,
        site: Option<&Arc<Site>>,
        purpose: fn(Name) -> Purpose,
        lookups_max: u32,
    ) -> Option<Call> {
        let network = &self.shop.settings.network;
        let queries = network.resolve_queries(&self.task.identity.kind);
        let mut telling = queries.filter(|query| network.tells(query, id));
        telling.find_map(|query| {
            let site = self.site(query, site)?;
            let step = Step {
                query: query.name.clone(),
                page: StepPage::First,
                walk: self.task.row.visits.saturating_add(1),
                cursor: None,
            };
            let subjects = [&self.task.identity];
            let asked = self
                .shop
                .ask(query, &subjects, &step.page, self.robot, &site);
            match network.request(&asked) {
                Ok(plan) => Some(Call::new(purpose(id.into()), step, plan, site)),
                Err(RequestError::MissingAlias { alias, .. }) if lookups_max > 1 && alias != id => {
                    self.of_id(&alias, Some(&site), purpose, lookups_max - 1)
                }
                Err(_) => None,
            }
        })
    }

    /// Who is asked: whoever is asked for the sake of it, where the lookup does not say otherwise.
    /// Nobody who is left out, does not offer it, or has answered it before.
    fn site(&self, query: &Query, site: Option<&Arc<Site>>) -> Option<Arc<Site>> {
        let site = match (query.whom(), site) {
            (Whom::Home | Whom::Crawl, Some(site)) => Arc::clone(site),
            _ => self.shop.site_of(query, self.task)?,
        };
        let is_open = !site.is_out() && !site.is_closed(&query.name) && site.offers(query);
        let was_answered = || {
            let subject = self.task.row.subject;
            self.shop.was_answered(subject, &query.name, &site)
        };
        (is_open && !was_answered()).then_some(site)
    }
}
