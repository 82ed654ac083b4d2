//! A call outside a crawl: does a credential work, and what is left of its limits. It is charged like
//! any other call.

use crate::credential::Credential;
use crate::limit_status::{Asking, ask_limit_status};
use crate::permits::{Answered, Charge, Purse, Taken};
use crate::plan::Whose;
use crate::settings::Limits;
use crate::{Clock, EngineError};
use kittiwake_fetch::{Fetcher, HostTrust, Request};
use kittiwake_model::{LimitTime, Name};
use kittiwake_network::auth::Stamp;
use kittiwake_network::{LimitReport, Network};
use kittiwake_store::ledger::Ledger;
use std::sync::Arc;
use url::Url;

/// What is asked, and with what.
#[derive(Debug)]
pub struct Probe<'a> {
    pub network: &'a Network,
    pub base: &'a Url,
    /// The host as ids are valid on it.
    pub host: &'a str,
    pub url: Url,
    pub credential: &'a Credential,
    pub fetcher: &'a Fetcher,
    pub clock: &'a Clock,
    pub ledger: Option<Ledger>,
    pub limits: Limits,
    pub node: String,
}

/// What came of it.
#[derive(Debug)]
pub enum ProbeAnswer {
    Answered {
        status: u16,
        body: Vec<u8>,
        /// The headers that were asked for by name and were there.
        headers: Vec<(String, String)>,
        /// What is left of the credential's limits, where the host can be asked for it.
        limits: Vec<LimitReport>,
    },
    /// Nothing was sent: a limit is used up until then.
    Wait { until: LimitTime, budget: Name },
    /// Nothing was sent: the credential cannot be had.
    Locked(String),
}

/// Makes the call, out of the ledger.
pub async fn probe(probe: Probe<'_>, header_names: &[&str]) -> Result<ProbeAnswer, EngineError> {
    let held = match probe.credential.keeper.held().await {
        Ok(held) => held,
        Err(reason) => return Ok(ProbeAnswer::Locked(reason)),
    };
    let mut purse = Purse::new(
        probe.ledger.map(Arc::new),
        probe.clock.clone(),
        probe.node.clone(),
        probe.limits,
    );
    let whose = Whose {
        network: probe.network,
        base: probe.base,
        credential: Some(probe.credential),
        clock_source: "real",
    };
    let costs = probe.network.costs_of_other_calls();
    let charges: Vec<Charge> = costs.iter().map(|cost| whose.charge("", cost)).collect();
    for charge in &charges {
        if let Some(rule) = probe.network.budget(&charge.cost.budget) {
            purse.add(charge.budget.clone(), rule).await?;
        }
    }
    let permit = match purse.take(&charges).await? {
        Taken::Permit(permit) => permit,
        Taken::Wait { until, budget } => {
            purse.close().await?;
            return Ok(ProbeAnswer::Wait { until, budget });
        }
    };
    let stamp = Stamp {
        unix_s: probe.clock.real().micros().div_euclid(1_000_000),
        nonce: probe.credential.keeper.nonce(),
    };
    let mut request = Request::get(probe.url, HostTrust::Named);
    let sending = &probe.credential.sending;
    if probe.credential.is_for(&request.url) {
        let attached = sending.attach(&held.secrets, "GET", &request.url, &stamp);
        let attached = attached.map_err(|missing| EngineError::Usage(missing.to_string()))?;
        request.secret_headers = attached.headers;
        request.secret_query = attached.query;
    }
    let answer = probe.fetcher.fetch(request).await;
    purse.settle(permit, Answered::default()).await?;
    let is_known = matches!(&answer, Ok(answer) if (200..=299).contains(&answer.status));
    let asking = Asking {
        whose,
        host: probe.host,
        fetcher: probe.fetcher,
        clock: probe.clock,
    };
    let asked = if is_known {
        ask_limit_status(&asking, &mut purse).await?
    } else {
        None
    };
    purse.close().await?;
    let answer = answer?;
    let headers = header_names.iter().filter_map(|name| {
        let value = answer.headers.get(name)?;
        Some(((*name).to_owned(), value.to_owned()))
    });
    Ok(ProbeAnswer::Answered {
        status: answer.status,
        headers: headers.collect(),
        body: answer.body.to_vec(),
        limits: asked.map_or_else(Vec::new, |asked| asked.reports),
    })
}
