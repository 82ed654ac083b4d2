//! The servers that a crawl asks. Each has its own limits, its own clock, its own pace and its own
//! health, so that one that is slow, shut or hostile costs nobody but itself.

use crate::permits::Purse;
use crate::settings::{CrawlSettings, Limits};
use crate::trouble::HostHealth;
use crate::{Clock, EngineError};
use kittiwake_fetch::HostTrust;
use kittiwake_store::ledger::Ledger;
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
        }
    }

    /// How it answers.
    pub(crate) fn health(&self) -> std::sync::MutexGuard<'_, HostHealth> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
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

/// All servers of a crawl.
#[derive(Debug)]
pub(crate) struct Sites {
    pub home: Arc<Site>,
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
        };
        Self {
            home: Arc::new(home),
        }
    }

    /// What earlier runs found out of a server: what its clock shows, and how it bears being asked.
    pub(crate) async fn recall(
        &self,
        site: &Site,
        settings: &CrawlSettings,
    ) -> Result<(), EngineError> {
        let base = site.base.origin().ascii_serialization();
        let host = format!("{base} ({})", settings.clock_source);
        let mut purse = site.purse.lock().await;
        purse.recall_clock(&host).await?;
        match settings.network.politeness() {
            Some(rule) => purse.be_polite(rule, &host).await,
            None => Ok(()),
        }
    }
}
