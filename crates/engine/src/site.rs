//! The servers that a crawl asks. Each has its own limits, its own clock, its own pace and its own
//! health, so that one that is slow, shut or hostile costs nobody but itself.

use crate::permits::Purse;
use crate::settings::{CrawlSettings, Limits};
use crate::trouble::HostHealth;
use crate::{Clock, EngineError};
use kittiwake_fetch::HostTrust;
use kittiwake_network::Address;
use kittiwake_store::ledger::Ledger;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use tokio::sync::Mutex;
use url::Url;

/// One server.
#[derive(Debug)]
pub(crate) struct Site {
    /// As ids are valid on it: `host` or `host:port`.
    pub host: String,
    pub base: Url,
    pub trust: HostTrust,
    /// Whether it is the one that the crawl was told to ask.
    pub is_home: bool,
    pub purse: Mutex<Purse>,
    health: std::sync::Mutex<HostHealth>,
    /// Whether what earlier runs found out of it was looked up.
    recalled: tokio::sync::OnceCell<()>,
}

impl Site {
    #[cfg(test)]
    pub(crate) fn for_tests(host: &str) -> Self {
        let clock = Clock::new(kittiwake_model::ClockSpec::real(), || {
            kittiwake_model::RealTime(0)
        });
        let purse = Purse::new(None, clock, "test".into(), Limits::Off);
        Self {
            host: host.to_owned(),
            base: Url::parse(&format!("http://{host}/")).expect("a host"),
            trust: HostTrust::Learnt,
            is_home: true,
            purse: Mutex::new(purse),
            health: std::sync::Mutex::default(),
            recalled: tokio::sync::OnceCell::new(),
        }
    }

    /// How it answers.
    pub(crate) fn health(&self) -> std::sync::MutexGuard<'_, HostHealth> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up, once, what earlier runs found out of it: what its clock shows, and how it bears being
    /// asked.
    pub(crate) async fn recall(&self, settings: &CrawlSettings) -> Result<(), EngineError> {
        let recall = async || {
            let base = self.base.origin().ascii_serialization();
            let host = format!("{base} ({})", settings.clock_source);
            let mut purse = self.purse.lock().await;
            purse.recall_clock(&host).await?;
            match settings.network.politeness() {
                Some(rule) => purse.be_polite(rule, &host).await,
                None => Ok(()),
            }
        };
        self.recalled.get_or_try_init(recall).await.copied()
    }

    /// Whether it is left out for a while. The crawl's own never is.
    pub(crate) fn is_out(&self) -> bool {
        !self.is_home && self.health().is_out()
    }

    /// Whether an address is on this server.
    pub(crate) fn has(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }
}

/// Servers are told apart by their names.
impl PartialEq for Site {
    fn eq(&self, other: &Self) -> bool {
        self.host == other.host
    }
}

impl Eq for Site {}

/// What every purse of a crawl is made of.
#[derive(Debug)]
struct Means {
    ledger: Option<Arc<Ledger>>,
    clock: Clock,
    node: String,
    limits: Limits,
    is_endless: bool,
}

impl Means {
    fn purse(&self) -> Purse {
        let mut purse = Purse::new(
            self.ledger.clone(),
            self.clock.clone(),
            self.node.clone(),
            self.limits,
        );
        if self.is_endless {
            purse.go_on_for_ever();
        }
        purse
    }
}

/// Servers that are remembered at once; beyond that nobody new is asked.
const SITES_MAX: usize = 20_000;

/// All servers of a crawl.
#[derive(Debug)]
pub(crate) struct Sites {
    pub home: Arc<Site>,
    others: std::sync::Mutex<HashMap<String, Arc<Site>>>,
    means: Means,
}

impl Sites {
    pub(crate) fn new(
        settings: &CrawlSettings,
        ledger: Option<Ledger>,
        clock: &Clock,
        node: &str,
    ) -> Self {
        let means = Means {
            ledger: ledger.map(Arc::new),
            clock: clock.clone(),
            node: node.to_owned(),
            limits: settings.limits,
            is_endless: !settings.rounds.end(),
        };
        let home = Site {
            host: settings.host.clone(),
            base: settings.base.clone(),
            trust: HostTrust::Named,
            is_home: true,
            purse: Mutex::new(means.purse()),
            health: std::sync::Mutex::default(),
            recalled: tokio::sync::OnceCell::new(),
        };
        Self {
            home: Arc::new(home),
            others: std::sync::Mutex::default(),
            means,
        }
    }

    /// The server at an address, as it is known, or made known.
    pub(crate) fn at(&self, address: Address, trust: HostTrust) -> Option<Arc<Site>> {
        if address.base.origin() == self.home.base.origin() {
            return Some(Arc::clone(&self.home));
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(site) = others.get(&address.host) {
            return Some(Arc::clone(site));
        }
        if others.len() >= SITES_MAX {
            return None;
        }
        let site = Arc::new(Site {
            host: address.host.clone(),
            base: address.base,
            trust,
            is_home: false,
            purse: Mutex::new(self.means.purse()),
            health: std::sync::Mutex::default(),
            recalled: tokio::sync::OnceCell::new(),
        });
        others.insert(address.host, Arc::clone(&site));
        Some(site)
    }

    /// Every server that was ever asked, the crawl's own first.
    pub(crate) fn all(&self) -> Vec<Arc<Site>> {
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = others.values().cloned().collect();
        all.sort_by(|one, other| one.host.cmp(&other.host));
        all.insert(0, Arc::clone(&self.home));
        all
    }
}
