//! From tasks to calls: what is asked next, of whom, and what it costs.

use crate::EngineError;
use crate::backfill;
use crate::credential::{Credential, CredentialId};
use crate::exchange::Shop;
use crate::lookup::Lookup;
use crate::permits::Charge;
use crate::site::{Acquaintance, Site};
use crate::walk::{self, Host as _, Step, StepPage};
use crate::work::{Call, Purpose, Work};
use kittiwake_model::{
    BudgetId, Commit, CommitReport, Cost, Counter, Identity, Name, OutcomeCode, Scope,
};
use kittiwake_network::{Ask, Backfill, Network, Query, RequestError, Robot, Whom};
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
            // A credential is for the hosts that it was made for.
            authenticated: site.takes_credential && self.serving(robot).next().is_some(),
        }
    }

    /// The step of a visit that comes next.
    pub(crate) fn next_step(
        &self,
        robot: &Robot,
        task: &TaskRecord,
        missed: &[Name],
    ) -> Option<Step> {
        let network = &self.settings.network;
        walk::next_step(network, robot, task, missed, &Asked { shop: self, task })
    }

    /// The calls that it takes to have a list in one piece, with the lookup before it; `None` where
    /// it cannot be had, or would cost more than it saves: who is told everything at once is told no
    /// counts, and robots that go by them would visit every single item.
    fn whole_calls(&self, list: &Query, backfill: &Backfill, task: &TaskRecord) -> Option<u64> {
        let settings = &self.settings;
        let network = &settings.network;
        let goes_by_counts = |name: &Name| {
            let robot = network.robot(name);
            robot.is_some_and(|it| it.unless_zero.is_some() && network.finds(list, &it.kind))
        };
        if settings.robots.iter().any(goes_by_counts) {
            return None;
        }
        let query = network.query(&backfill.query)?;
        if *query.whom() != Whom::Own || network.home(&task.identity).is_some() {
            let site = self.site_of(query, task)?;
            return (!site.is_out()).then_some(1);
        }
        let can_be_found = || Lookup::new(self, &task.row.robot, task).can_locate();
        (!settings.hosts.is_empty() && can_be_found()).then_some(2)
    }

    /// The list that a robot has in one piece by this query.
    pub(crate) fn backfilled(&self, robot: &str, query: &Name) -> Option<&Query> {
        let robot = self.settings.network.robot(robot)?;
        let is_it = |backfill: &Backfill| backfill.query == *query;
        let mut steps = robot.steps.iter();
        let step = steps.find(|step| step.backfill.as_ref().is_some_and(is_it))?;
        self.settings.network.query(&step.query)
    }

    /// Whether hosts that were asked what they can do lack something of a robot's.
    pub(crate) fn is_not_offered(&self, robot: &Robot, task: &TaskRecord) -> bool {
        let asked = Asked { shop: self, task };
        let network = &self.settings.network;
        let is_offered = |name: &Name| {
            let query = network.query(name);
            query.is_some_and(|query| asked.is_offered(query) || asked.is_untold(query))
        };
        let mut steps = robot.steps.iter();
        steps.any(|step| !step.queries().any(is_offered))
    }

    /// Whether the robot's next query can be asked for the task as it is known.
    pub(crate) fn can_ask(&self, robot: &str, task: &TaskRecord) -> Result<bool, EngineError> {
        let Some(step) = self.next_step(self.robot(robot)?, task, &[]) else {
            return Ok(false);
        };
        let query = self.query(&step)?;
        let call = self.call(robot, std::slice::from_ref(task), (query, step));
        Ok(call.is_ok_and(|call| call.purpose == Purpose::Visit))
    }

    /// The host that is asked next about a task.
    pub(crate) fn host_for(&self, robot: &str, task: &TaskRecord) -> Result<String, EngineError> {
        let Some(step) = self.next_step(self.robot(robot)?, task, &[]) else {
            return Ok(String::new());
        };
        let site = self.site_of(self.query(&step)?, task);
        Ok(site.map_or_else(String::new, |site| site.host.clone()))
    }

    /// The call that comes next for the tasks: the step itself, or a question without whose answer it
    /// cannot be asked.
    pub(crate) fn call(
        &self,
        robot: &str,
        tasks: &[TaskRecord],
        (query, step): (&Query, Step),
    ) -> Result<Call, CannotAsk> {
        let first = tasks.first().ok_or(RequestError::NoSubject)?;
        let only = match tasks {
            [task] => Some(Lookup::new(self, robot, task)),
            _ => None,
        };
        if let Some(lookup) = &only
            && let Some(call) = lookup.of_home(query)?
        {
            return Ok(call);
        }
        let site = self.site_of(query, first).ok_or(CannotAsk::Host)?;
        if site.is_closed(&query.name) {
            return Err(CannotAsk::Closed);
        }
        if site.is_out() {
            // Nobody can stand in for its own host.
            return Err(CannotAsk::Out);
        }
        let identities: Vec<_> = tasks.iter().map(|task| &task.identity).collect();
        let asked = self.ask(query, &identities, &step.page, robot, &site);
        let alias = match self.settings.network.request(&asked) {
            Ok(mut plan) => {
                self.shrink(query, tasks, &mut plan);
                let naming = only.and_then(|lookup| lookup.of_canonical(query));
                let visit = || Call::new(Purpose::Visit, step, plan, site);
                return Ok(naming.unwrap_or_else(visit));
            }
            Err(RequestError::MissingAlias { alias, .. }) => alias,
            Err(error) => return Err(error.into()),
        };
        let found = only.and_then(|lookup| lookup.of_alias(query, &alias, &site));
        if let Some(call) = found {
            return Ok(call);
        }
        let (kind, subject) = (first.identity.kind.clone(), first.row.subject);
        let home = self.settings.network.home(&first.identity);
        let is_own = home.is_some_and(|home| site.is_at(&home));
        let is_one_of_several = !self.settings.hosts.is_empty() && *query.whom() == Whom::Home;
        if is_one_of_several && is_own && !self.is_stood_in_for(subject) {
            let may_be_named = self.settings.rounds.end() && !self.is_silent(first, &alias, &site);
            if !self.can_be_asked_for(&kind, &alias) || may_be_named {
                return Err(CannotAsk::NotNamedYet);
            }
            // Its own host does not say what it calls it; nobody else will.
            self.stand_in_for(subject);
            return self.call(robot, tasks, (query, step));
        }
        if is_one_of_several {
            return Err(CannotAsk::Unnamed);
        }
        Err(RequestError::MissingAlias { alias, kind }.into())
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

/// Why there is no call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CannotAsk {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("its own host is not known, or may not be asked (--hosts)")]
    Host,
    #[error("its own host answers only those who log in there")]
    Closed,
    #[error("its own host cannot be reached")]
    Out,
    #[error("its own host has not said yet what it calls it")]
    NotNamedYet,
    #[error("no host that may be asked says what it calls it")]
    Unnamed,
}

impl CannotAsk {
    pub(crate) const fn outcome(&self) -> OutcomeCode {
        match self {
            Self::Request(_) => OutcomeCode::BadRequest,
            Self::Out => OutcomeCode::HostDown,
            Self::Host | Self::Closed | Self::NotNamedYet | Self::Unnamed => OutcomeCode::Forbidden,
        }
    }
}

/// Whoever is asked about a task.
struct Asked<'a> {
    shop: &'a Shop,
    task: &'a TaskRecord,
}

impl walk::Host for Asked<'_> {
    fn digest(&self, query: &Query) -> Name {
        match self.shop.site_of(query, self.task) {
            Some(site) => walk::digest_on(query, &site),
            None => query.paging_digest.clone(),
        }
    }

    fn is_offered(&self, query: &Query) -> bool {
        let site = self.shop.site_of(query, self.task);
        site.is_none_or(|site| site.offers(query))
    }

    fn is_untold(&self, query: &Query) -> bool {
        let site = self.shop.site_of(query, self.task);
        site.is_some_and(|site| site.acquaintance() == Acquaintance::Silent)
    }

    fn backfills(&self, list: &Query, backfill: &Backfill, task: &TaskRecord) -> bool {
        let history = self.shop.settings.history;
        let calls = || self.shop.whole_calls(list, backfill, task);
        // Most lists were begun: the rest costs more to find out.
        backfill::is_wanted(list, backfill, task, history, Some(0))
            && backfill::is_wanted(list, backfill, task, history, calls())
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
