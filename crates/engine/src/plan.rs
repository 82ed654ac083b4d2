//! From tasks to calls: what is asked next, of whom, and what it costs.

use crate::EngineError;
use crate::exchange::Shop;
use crate::walk::{self, Step, StepPage};
use crate::work::{Call, Purpose};
use kittiwake_model::{BudgetId, Commit, CommitReport, Identity, Name, Scope};
use kittiwake_network::{Ask, Network, Query, RequestError};
use kittiwake_store::TaskRecord;
use std::sync::Arc;
use url::Url;

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
    ) -> Ask<'a> {
        Ask {
            query,
            base: &self.settings.base,
            host: &self.settings.host,
            subjects,
            page: page.borrowed(),
            authenticated: self.settings.credential.is_some(),
        }
    }

    /// Whether the robot's next query can be asked for the task under that identity.
    pub(crate) fn can_ask(
        &self,
        robot: &str,
        task: &TaskRecord,
        identity: &Identity,
    ) -> Result<bool, EngineError> {
        let network = &self.settings.network;
        let Some(step) = walk::next_step(network, self.robot(robot)?, task, &[]) else {
            return Ok(false);
        };
        let query = self.query(&step)?;
        let asked = network.request(&self.ask(query, &[identity], &step.page));
        Ok(asked.is_ok())
    }

    /// The call that comes next for the tasks: the step itself, or the question by which id this
    /// host knows the subject.
    pub(crate) fn call(
        &self,
        query: &Query,
        tasks: &[TaskRecord],
        step: Step,
    ) -> Result<Call, RequestError> {
        let network = &self.settings.network;
        let identities: Vec<_> = tasks.iter().map(|task| &task.identity).collect();
        let missing = match network.request(&self.ask(query, &identities, &step.page)) {
            Ok(plan) => {
                let budgets = self.budget_ids(&plan.budgets);
                return Ok(Call {
                    purpose: Purpose::Visit,
                    step,
                    plan,
                    budgets,
                });
            }
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
        let plan = network.request(&self.ask(resolve, &[identity], &step.page))?;
        let budgets = self.budget_ids(&plan.budgets);
        Ok(Call {
            purpose: Purpose::Resolve,
            step,
            plan,
            budgets,
        })
    }

    fn budget_ids(&self, names: &[Name]) -> Vec<BudgetId> {
        let settings = &self.settings;
        let credential = settings
            .credential
            .as_ref()
            .map(|known| known.fingerprint.as_str());
        let id = |name: &Name| {
            let clock = settings.clock_source.as_str();
            budget_id(&settings.network, &settings.base, name, credential, clock)
        };
        names.iter().map(id).collect()
    }
}

/// What a budget is called in the ledger.
pub(crate) fn budget_id(
    network: &Network,
    base: &Url,
    name: &Name,
    credential: Option<&str>,
    clock_source: &str,
) -> BudgetId {
    // A server is known by the address that is dialled: another spelling of its name is no second
    // allowance. Windows of another clock are other windows.
    let authority = base.host_str().unwrap_or_default();
    let port = base.port_or_known_default().unwrap_or_default();
    let clock = match clock_source {
        "real" => String::new(),
        other => format!(" ({other})"),
    };
    let scope = network.budget(name).map(|rule| rule.scope);
    let whose = match scope {
        Some(Scope::User | Scope::Token) => credential.unwrap_or("anonymous"),
        _ => "this-address",
    };
    BudgetId(format!(
        "{}/{name}@{authority}:{port}#{whose}{clock}",
        network.name()
    ))
}
