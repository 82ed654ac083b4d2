//! The servers that a crawl asks. Each has its own limits, its own clock, its own pace and its own
//! health, so that one that is slow, shut or hostile costs nobody but itself.

use crate::manners::Manners;
use crate::permits::Purse;
use crate::settings::{CrawlSettings, Limits};
use crate::trouble::HostHealth;
use crate::{Clock, EngineError};
use kittiwake_fetch::HostTrust;
use kittiwake_model::Name;
use kittiwake_network::{Address, Capabilities, Query};
use kittiwake_store::ledger::Ledger;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use tokio::sync::Mutex;
use url::Url;

/// Calls at once to a server that is not the crawl's own.
const OTHERS_CALLS_MAX: usize = 4;

/// What is known of what a server can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acquaintance {
    /// It has to be asked first.
    None,
    /// An earlier run was told.
    Remembered(Capabilities),
    /// This run was told.
    Told(Capabilities),
    /// It did not say when this run asked it, or there is nothing to ask.
    Silent,
}

impl Acquaintance {
    pub(crate) fn capabilities(self) -> Option<Capabilities> {
        match self {
            Self::None => None,
            Self::Remembered(known) | Self::Told(known) => Some(known),
            Self::Silent => Some(Capabilities::NONE),
        }
    }
}

/// One server.
#[derive(Debug)]
pub(crate) struct Site {
    /// As ids are valid on it: `host` or `host:port`.
    pub host: String,
    pub base: Url,
    pub trust: HostTrust,
    /// Whether it is the one that the crawl was told to ask.
    pub is_home: bool,
    /// Whether it is asked with the network's credential: the crawl's own, and those that the definition says
    /// it of.
    pub takes_credential: bool,
    /// What it can do, as far as it was asked.
    acquaintance: std::sync::Mutex<Acquaintance>,
    pub purse: Mutex<Purse>,
    health: std::sync::Mutex<HostHealth>,
    /// Whether what earlier runs found out of it was looked up.
    recalled: tokio::sync::OnceCell<()>,
    /// Queries that it answers only to those who log in.
    closed: std::sync::Mutex<BTreeSet<Name>>,
    /// Calls that it has to answer.
    calls: AtomicUsize,
    /// Whether it was asked what it is, and no visit has asked for that since.
    has_news: AtomicBool,
    /// What it does not want to be asked for.
    pub manners: Manners,
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
            takes_credential: true,
            acquaintance: std::sync::Mutex::new(Acquaintance::Silent),
            purse: Mutex::new(purse),
            health: std::sync::Mutex::default(),
            recalled: tokio::sync::OnceCell::new(),
            closed: std::sync::Mutex::default(),
            calls: AtomicUsize::new(0),
            has_news: AtomicBool::new(false),
            manners: Manners::default(),
        }
    }

    pub(crate) fn acquaintance(&self) -> Acquaintance {
        *self
            .acquaintance
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what it said of itself, if it said anything.
    pub(crate) fn meet(&self, capabilities: Option<Capabilities>) {
        let mut known = self
            .acquaintance
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *known = capabilities.map_or(Acquaintance::Silent, Acquaintance::Told);
    }

    /// It was asked what it is, on behalf of others: a visit that asks for the same need not.
    pub(crate) fn note_probe(&self) {
        self.has_news.store(true, Ordering::Relaxed);
    }

    /// Whether a visit need not ask what it is. The next one has to.
    pub(crate) fn takes_probe(&self) -> bool {
        self.has_news.swap(false, Ordering::Relaxed)
    }

    /// Whether it can be asked a query, as far as that is known.
    pub(crate) fn offers(&self, query: &Query) -> bool {
        let known = self.acquaintance().capabilities();
        known.is_none_or(|known| query.is_offered(known))
    }

    /// How it answers.
    pub(crate) fn health(&self) -> std::sync::MutexGuard<'_, HostHealth> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up, once, what earlier runs found out of it: what its clock shows, and how it bears being
    /// asked.
    pub(crate) async fn recall(&self, settings: &CrawlSettings) -> Result<(), EngineError> {
        let recall = async || {
            let host = self.remembered_as(settings);
            let mut purse = self.purse.lock().await;
            purse.recall_clock(&host).await?;
            match settings.network.politeness() {
                Some(rule) => purse.be_polite(rule, &host).await,
                None => Ok(()),
            }
        };
        self.recalled.get_or_try_init(recall).await.copied()
    }

    /// What it is called in what one run remembers for the next.
    pub(crate) fn remembered_as(&self, settings: &CrawlSettings) -> String {
        let base = self.base.origin().ascii_serialization();
        format!("{base} ({})", settings.clock_source)
    }

    /// Whether it is left out for a while. The crawl's own never is.
    pub(crate) fn is_out(&self) -> bool {
        !self.is_home && self.health().is_out()
    }

    /// Whether it answers a query only to those who log in. The crawl's own host says so in another way.
    pub(crate) fn is_closed(&self, query: &Name) -> bool {
        !self.is_home && self.closed().contains(query)
    }

    pub(crate) fn close(&self, query: &Name) {
        self.closed().insert(query.clone());
    }

    fn closed(&self) -> std::sync::MutexGuard<'_, BTreeSet<Name>> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is the server at an address.
    pub(crate) fn is_at(&self, address: &Address) -> bool {
        address.host == self.host || address.base.origin() == self.base.origin()
    }

    /// Whether it has as many calls to answer as it may have at once. One that fails has to show with
    /// one call that it does not.
    pub(crate) fn is_busy(&self, calls_max: usize) -> bool {
        let calls_max = match (self.takes_credential, self.health().is_failing()) {
            (true, _) => calls_max,
            (false, true) => 1,
            (false, false) => calls_max.min(OTHERS_CALLS_MAX),
        };
        self.calls.load(Ordering::Relaxed) >= calls_max
    }

    /// A call to it begins.
    pub(crate) fn enter(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// A call to it is over.
    pub(crate) fn leave(&self) {
        self.calls.fetch_sub(1, Ordering::Relaxed);
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
    fn site(&self, address: Address, trust: HostTrust, acquaintance: Acquaintance) -> Site {
        let mut purse = Purse::new(
            self.ledger.clone(),
            self.clock.clone(),
            self.node.clone(),
            self.limits,
        );
        if self.is_endless {
            purse.go_on_for_ever();
        }
        Site {
            host: address.host,
            base: address.base,
            trust,
            is_home: false,
            takes_credential: false,
            acquaintance: std::sync::Mutex::new(acquaintance),
            purse: Mutex::new(purse),
            health: std::sync::Mutex::default(),
            recalled: tokio::sync::OnceCell::new(),
            closed: std::sync::Mutex::default(),
            calls: AtomicUsize::new(0),
            has_news: AtomicBool::new(false),
            manners: Manners::default(),
        }
    }
}

/// Servers that are remembered at once; beyond that nobody new is asked.
pub(crate) const SITES_MAX: usize = 20_000;

/// All servers of a crawl.
#[derive(Debug)]
pub(crate) struct Sites {
    pub home: Arc<Site>,
    /// Those that the definition names.
    named: Vec<(Name, Arc<Site>)>,
    others: std::sync::Mutex<HashMap<String, Arc<Site>>>,
    /// What servers said of themselves in earlier runs; `None` where none is ever asked.
    remembered: Option<HashMap<String, Capabilities>>,
    means: Means,
}

impl Sites {
    /// `remembered` is what servers said of themselves, where they are asked that at all.
    pub(crate) fn new(
        settings: &CrawlSettings,
        ledger: Option<Ledger>,
        (clock, node): (&Clock, &str),
        remembered: Option<HashMap<String, Capabilities>>,
    ) -> Self {
        let means = Means {
            ledger: ledger.map(Arc::new),
            clock: clock.clone(),
            node: node.to_owned(),
            limits: settings.limits,
            is_endless: !settings.rounds.end(),
        };
        let address = |host: &str, base: &Url| Address {
            host: host.to_owned(),
            base: base.clone(),
        };
        let home = address(&settings.host, &settings.base);
        let known = acquaintance(remembered.as_ref(), &settings.host);
        let mut home = means.site(home, HostTrust::Named, known);
        (home.is_home, home.takes_credential) = (true, true);
        let named = settings.named_hosts.iter().map(|(name, base)| {
            let host = host_of(base);
            // It is no server of the kind that is asked what it can do.
            let known = Acquaintance::Silent;
            let mut site = means.site(address(&host, base), HostTrust::Named, known);
            site.takes_credential = settings.network.takes_credential(name);
            (name.clone(), Arc::new(site))
        });
        Self {
            named: named.collect(),
            home: Arc::new(home),
            others: std::sync::Mutex::default(),
            remembered,
            means,
        }
    }

    /// The server that the definition calls so.
    pub(crate) fn named(&self, name: &Name) -> Option<Arc<Site>> {
        let mut named = self.named.iter();
        let (_, site) = named.find(|(known, _)| known == name)?;
        Some(Arc::clone(site))
    }

    /// Whether an address is the crawl's own server, by its name or by where it is asked.
    pub(crate) fn is_home(&self, address: &Address) -> bool {
        address.host == self.home.host || address.base.origin() == self.home.base.origin()
    }

    /// The server at an address, as it is known, or made known.
    pub(crate) fn at(&self, address: Address, trust: HostTrust) -> Option<Arc<Site>> {
        if self.is_home(&address) {
            return Some(Arc::clone(&self.home));
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(site) = others.get(&address.host) {
            return Some(Arc::clone(site));
        }
        if others.len() >= SITES_MAX {
            return None;
        }
        let host = address.host.clone();
        let known = acquaintance(self.remembered.as_ref(), &host);
        let site = Arc::new(self.means.site(address, trust, known));
        others.insert(host, Arc::clone(&site));
        Some(site)
    }

    /// The server that an address is on, if it was asked before.
    pub(crate) fn met(&self, url: &Url) -> Option<Arc<Site>> {
        self.all().into_iter().find(|site| site.has(url))
    }

    /// Every server that was ever asked, the crawl's own first.
    pub(crate) fn all(&self) -> Vec<Arc<Site>> {
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = others.values().cloned().collect();
        all.sort_by(|one, other| one.host.cmp(&other.host));
        let named = self.named.iter().map(|(_, site)| Arc::clone(site));
        std::iter::once(Arc::clone(&self.home))
            .chain(named)
            .chain(all)
            .collect()
    }
}

/// What earlier runs were told of a server; where none is asked, there is nothing to know.
fn acquaintance(remembered: Option<&HashMap<String, Capabilities>>, host: &str) -> Acquaintance {
    let Some(remembered) = remembered else {
        return Acquaintance::Silent;
    };
    let known = remembered.get(host);
    known.map_or(Acquaintance::None, |known| Acquaintance::Remembered(*known))
}

/// A host as ids are valid on it.
fn host_of(base: &Url) -> String {
    let name = base.host_str().unwrap_or_default();
    match base.port() {
        Some(port) => format!("{name}:{port}"),
        None => name.to_owned(),
    }
}
