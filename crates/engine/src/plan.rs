//! From tasks to calls: what is asked next, of whom, and what it costs.

use crate::EngineError;
use crate::credential::{Credential, CredentialId};
use crate::exchange::Shop;
use crate::hosts::Allowed;
use crate::permits::Charge;
use crate::site::Site;
use crate::walk::{self, Step, StepPage};
use crate::work::{Call, Purpose, Work};
use kittiwake_fetch::HostTrust;
use kittiwake_model::{
    BudgetId, Commit, CommitReport, Cost, Counter, Identity, Name, Scope, Standing,
};
use kittiwake_network::{Ask, Network, Page, Query, Reading, RequestError, Robot};
use kittiwake_store::TaskRecord;
use std::sync::Arc;
use url::Url;

/// Credentials of which it is not known whose they are may be of one account or application:
/// together they take what one may have.
const UNKNOWN: &str = "unknown";

impl Shop {
    /// Lets the store hand depths on to neighbours, a bounded number at a time.
    pub(crate) async fn hand_on_depths(&self) -> Result<Vec<CommitReport>, EngineError> {
        let expansion = Some(Arc::clone(&self.expansion));
        let commit = Commit {
            at: self.clock.world(),
            expansion,
            ..Commit::default()
        };
        Ok(self.store.commit(vec![commit]).await?)
    }

    pub(crate) fn ask<'a>(
        &'a self,
        query: &'a Query,
        subjects: &'a [&'a Identity],
        page: &'a StepPage,
        robot: &str,
        site: &'a Site,
    ) -> Ask<'a> {
        Ask {
            query,
            base: &site.base,
            host: &site.host,
            subjects,
            page: page.borrowed(),
            // A credential is for the host that it was made for.
            authenticated: site.is_home && self.serving(robot).next().is_some(),
        }
    }

    /// Who is asked a query about a subject.
    pub(crate) fn site_of(&self, query: &Query, subject: &Identity) -> Arc<Site> {
        let site = || {
            // Most crawls ask one host only, and this is asked before every call.
            if self.settings.hosts.is_empty() {
                return None;
            }
            let address = self.settings.network.best_host(query, subject)?;
            let trust = match self.settings.hosts.allowed(&address)? {
                Allowed::Named => HostTrust::Named,
                Allowed::Learnt => HostTrust::Learnt,
            };
            let site = self.sites.at(address, trust)?;
            // Who is left out can be stood in for by the crawl's own host, if that knows the subject.
            let is_wanted = site.is_home || !site.is_out() || !self.knows(query, subject);
            is_wanted.then_some(site)
        };
        site().unwrap_or_else(|| Arc::clone(&self.sites.home))
    }

    /// Whether the crawl's own host can be asked about a subject as it is known.
    fn knows(&self, query: &Query, subject: &Identity) -> bool {
        let ask = Ask {
            query,
            base: &self.sites.home.base,
            host: &self.sites.home.host,
            subjects: &[subject],
            page: Page::First,
            authenticated: false,
        };
        self.settings.network.request(&ask).is_ok()
    }

    /// Whether the host that is asked knows all there is of the subjects. A crawl that asks one host
    /// only takes that one's word for everything.
    pub(crate) fn speaks_for_subjects(&self, work: &Work) -> bool {
        let network = &self.settings.network;
        let is_elsewhere = |task: &TaskRecord| {
            let home = network.home(&task.identity);
            home.is_some_and(|home| home.host != work.call.site.host)
        };
        self.settings.hosts.is_empty() || !work.tasks.iter().any(is_elsewhere)
    }

    /// Marks what a host tells of objects that live elsewhere. Of those who live where nobody may ask
    /// the crawl's own host speaks.
    pub(crate) fn note_hearsay(&self, site: &Site, reading: &mut Reading) {
        if self.settings.hosts.is_empty() {
            return;
        }
        for object in &mut reading.objects {
            let Some(home) = self.settings.network.home(&object.identity) else {
                continue;
            };
            let is_own = home.host == site.host;
            let may_be_asked = || self.settings.hosts.allowed(&home).is_some();
            if !is_own && (!site.is_home || may_be_asked()) {
                object.standing = Standing::Hearsay;
            }
        }
    }

    /// The step of a visit that comes next.
    pub(crate) fn next_step(
        &self,
        robot: &Robot,
        task: &TaskRecord,
        missed: &[Name],
    ) -> Option<Step> {
        let digest = |query: &Query| {
            let site = self.site_of(query, &task.identity);
            walk::digest_on(query, &site)
        };
        walk::next_step(&self.settings.network, robot, task, missed, &digest)
    }

    /// Whether the robot's next query can be asked for the task under that identity.
    pub(crate) fn can_ask(
        &self,
        robot: &str,
        task: &TaskRecord,
        identity: &Identity,
    ) -> Result<bool, EngineError> {
        let network = &self.settings.network;
        let Some(step) = self.next_step(self.robot(robot)?, task, &[]) else {
            return Ok(false);
        };
        let query = self.query(&step)?;
        let site = self.site_of(query, identity);
        let asked = network.request(&self.ask(query, &[identity], &step.page, robot, &site));
        Ok(asked.is_ok())
    }

    /// The host that is asked next about a task.
    pub(crate) fn host_for(&self, robot: &str, task: &TaskRecord) -> Result<String, EngineError> {
        let Some(step) = self.next_step(self.robot(robot)?, task, &[]) else {
            return Ok(String::new());
        };
        let site = self.site_of(self.query(&step)?, &task.identity);
        Ok(site.host.clone())
    }

    /// The call that comes next for the tasks: the step itself, or the question by which id this
    /// host knows the subject.
    pub(crate) fn call(
        &self,
        robot: &str,
        tasks: &[TaskRecord],
        (query, step): (&Query, Step),
    ) -> Result<Call, RequestError> {
        let network = &self.settings.network;
        let identities: Vec<_> = tasks.iter().map(|task| &task.identity).collect();
        let first = identities.first().ok_or(RequestError::NoSubject)?;
        let site = self.site_of(query, first);
        let missing = match network.request(&self.ask(query, &identities, &step.page, robot, &site))
        {
            Ok(plan) => return Ok(Call::new(Purpose::Visit, step, plan, site)),
            Err(error @ RequestError::MissingAlias { .. }) => error,
            Err(error) => return Err(error),
        };
        let [identity] = identities.as_slice() else {
            return Err(missing);
        };
        let Some(resolve) = network.resolve_query(&identity.kind) else {
            return Err(missing);
        };
        let step = Step {
            query: resolve.name.clone(),
            page: StepPage::First,
            walk: step.walk,
            cursor: None,
        };
        let plan = network.request(&self.ask(resolve, &[identity], &step.page, robot, &site))?;
        Ok(Call::new(Purpose::Resolve, step, plan, site))
    }

    /// The same by another query, for as many of the tasks as that takes; `None` if it cannot be
    /// asked for them.
    pub(crate) fn other_way(
        &self,
        robot: &str,
        tasks: &[TaskRecord],
        step: &Step,
        way: &Name,
    ) -> Option<Call> {
        let query = self.settings.network.query(way)?;
        let step = Step {
            query: way.clone(),
            ..step.clone()
        };
        let tasks = &tasks[..self.taken_by(way, tasks.len())];
        let call = self.call(robot, tasks, (query, step)).ok()?;
        (call.purpose == Purpose::Visit).then_some(call)
    }

    /// How many pages have to be walked at once, where that is known and matters: when a walk begins
    /// that cannot be gone on with later.
    pub(crate) fn pages_at_once(&self, work: &Work) -> Option<u64> {
        let step = &work.call.step;
        let query = self.settings.network.query(&step.query)?;
        let begins = step.page == StepPage::First;
        let task = work
            .tasks
            .first()
            .filter(|_| begins && !query.is_durable())?;
        Some(walk::pages_expected(query, task)).filter(|pages| *pages > 1)
    }

    /// How many of so many subjects share one call of a query.
    pub(crate) fn taken_by(&self, query: &str, subjects: usize) -> usize {
        let query = self.settings.network.query(query);
        let most = query.map_or(1, |query| query.batch_max.max(1) as usize);
        most.min(subjects)
    }

    /// Other queries that tell the same as this one does for a robot.
    pub(crate) fn others(&self, robot: &str, call: &Call) -> &[Name] {
        let steps = self.settings.network.robot(robot).map(|it| &it.steps);
        let mut steps = steps.into_iter().flatten();
        let step = steps.find(|step| step.query == call.step.query);
        match step.filter(|_| call.purpose == Purpose::Visit) {
            Some(step) => &step.or,
            None => &[],
        }
    }

    /// What a call is charged to if it is made with this credential.
    pub(crate) fn charges(
        &self,
        site: &Site,
        query: &str,
        costs: &[Cost],
        credential: Option<CredentialId>,
    ) -> Arc<[Charge]> {
        let settings = &self.settings;
        let whose = Whose {
            network: &settings.network,
            base: &site.base,
            credential: credential.and_then(|id| settings.credentials.get(id)),
            clock_source: &settings.clock_source,
        };
        costs.iter().map(|cost| whose.charge(query, cost)).collect()
    }
}

/// Whose budgets are charged.
pub(crate) struct Whose<'a> {
    pub network: &'a Network,
    pub base: &'a Url,
    pub credential: Option<&'a Credential>,
    pub clock_source: &'a str,
}

impl Whose<'_> {
    pub(crate) fn charge(&self, query: &str, cost: &Cost) -> Charge {
        Charge {
            budget: self.budget_id(query, &cost.budget),
            cost: cost.clone(),
        }
    }

    /// What a budget is called in the ledger.
    fn budget_id(&self, query: &str, name: &Name) -> BudgetId {
        // A server is known by the address that is dialled: another spelling of its name is no
        // second allowance. Windows of another clock are other windows.
        let authority = self.base.host_str().unwrap_or_default();
        let port = self.base.port_or_known_default().unwrap_or_default();
        let clock = match self.clock_source {
            "real" => String::new(),
            other => format!(" ({other})"),
        };
        let rule = self.network.budget(name);
        let known = |part: fn(&Credential) -> &str| self.credential.map_or("anonymous", part);
        let whose = match rule.map(|rule| rule.scope) {
            Some(Scope::Token) => known(|it| &it.fingerprint),
            Some(Scope::User) => known(|it| it.account.as_deref().unwrap_or(UNKNOWN)),
            Some(Scope::App) => known(|it| it.application.as_deref().unwrap_or(UNKNOWN)),
            Some(Scope::Host) => "everybody",
            Some(Scope::Ip) | None => "this-address",
        };
        let each = match rule.map(|rule| rule.counter) {
            Some(Counter::EachQuery) => format!(":{query}"),
            _ => String::new(),
        };
        BudgetId(format!(
            "{}/{name}{each}@{authority}:{port}#{whose}{clock}",
            self.network.name()
        ))
    }
}
