//! A server that nobody knows yet is asked first what it is and can do. Whatever else is to be asked of
//! it waits for that.

use crate::EngineError;
use crate::exchange::{Ending, Shop};
use crate::lanes::Place;
use crate::scheduler::Scheduler;
use crate::settings::CrawlSettings;
use crate::site::{Acquaintance, SITES_MAX, Site};
use crate::walk::{Step, StepPage};
use crate::work::{Call, Purpose, Work};
use kittiwake_frontier::Back;
use kittiwake_model::{Commit, Discovery, Name, Reference, WorldTime};
use kittiwake_network::{Capabilities, Query, Reading, facts_of};
use kittiwake_store::{Store, TaskRecord};
use std::collections::HashMap;
use std::sync::Arc;

/// What becomes of a call to a server that may not be known.
pub(crate) enum Introduced {
    /// It can be made; or the server's own introduction comes first.
    Call(Box<Call>),
    /// Somebody else asks the server already.
    Waiting,
    /// It would ask what the server has just told.
    Known,
}

/// What servers said of themselves in earlier runs and is still believed; `None` where they are
/// never asked.
pub(crate) async fn remembered(
    store: &dyn Store,
    settings: &CrawlSettings,
    now: WorldTime,
) -> Result<Option<HashMap<String, Capabilities>>, EngineError> {
    let network = &settings.network;
    let Some(host) = network.host_identity(&settings.host) else {
        return Ok(None);
    };
    if network.probes().is_empty() {
        return Ok(None);
    }
    let since = now.plus_us(-network.probed_again_after_us());
    let facts = store
        .facts(network.name().clone(), host.kind, SITES_MAX)
        .await?;
    let believed = facts.into_iter().filter(|facts| facts.observed >= since);
    let known = believed.map(|facts| {
        let capabilities = network.capabilities(&facts.fields, &facts.id);
        (facts.id, capabilities)
    });
    Ok(Some(known.collect()))
}

impl Scheduler {
    /// Sees to it that a server is known before it is asked anything.
    pub(crate) fn introduce(
        &mut self,
        lane: &Name,
        robot: &Name,
        tasks: &[TaskRecord],
        call: Call,
    ) -> Introduced {
        let asks_the_same = call.purpose == Purpose::Visit && self.shop.is_probe(&call.step.query);
        let is_first = tasks.iter().all(|task| task.row.visited.is_none());
        match call.site.acquaintance() {
            Acquaintance::Told(_) if asks_the_same && call.site.takes_probe() => {
                return Introduced::Known;
            }
            // The run that was told may have ended before it could note the visit.
            Acquaintance::Remembered(_) if asks_the_same && is_first => {
                return Introduced::Known;
            }
            Acquaintance::Told(_) | Acquaintance::Remembered(_) | Acquaintance::Silent => {
                return Introduced::Call(Box::new(call));
            }
            Acquaintance::None => {}
        }
        let waiting = tasks.iter().map(|task| (lane.clone(), task.row.subject));
        if let Some(others) = self.probing.get_mut(&call.site.host) {
            others.extend(waiting);
            return Introduced::Waiting;
        }
        let site = Arc::clone(&call.site);
        let Some(probe) = self.shop.probe(robot, &site, None, call.step.walk) else {
            site.meet(None);
            return Introduced::Call(Box::new(call));
        };
        self.probing.insert(site.host.clone(), Vec::new());
        Introduced::Call(Box::new(probe))
    }

    /// The server is known now, or nothing can be known of it: whoever waited for that is asked for
    /// anew, by what it can do.
    pub(crate) fn introduced(&mut self, work: &Work) {
        let now = self.shop.clock.world();
        for subject in work.keys() {
            self.frontier.release(&work.lane, subject, Back::Again(now));
        }
        self.release_uninformed(work);
    }

    /// Asks a server in another way what it is.
    pub(crate) async fn probe_on(&mut self, mut work: Work) -> Result<(), EngineError> {
        (work.credential, work.redirected) = (None, None);
        let place = (&work.lane.clone(), &work.robot.clone());
        work.queue = self.queue_for(place, &work.call, &work.tasks).await?;
        let now = self.now();
        self.lanes.put(work, Place::Front, now);
        Ok(())
    }

    /// Lets go of those who wait until a server is known, if this work was to find out.
    pub(crate) fn release_uninformed(&mut self, work: &Work) {
        if work.call.purpose != Purpose::Probe {
            return;
        }
        let now = self.shop.clock.world();
        let waiting = self.probing.remove(&work.call.site.host);
        for (lane, subject) in waiting.into_iter().flatten() {
            self.frontier.release(&lane, subject, Back::Again(now));
        }
    }
}

impl Shop {
    fn is_probe(&self, query: &Name) -> bool {
        self.settings.network.probes().contains(query)
    }

    /// The first question by which a server is asked what it is, or the one behind `last`.
    pub(crate) fn probe(
        &self,
        robot: &str,
        site: &Arc<Site>,
        last: Option<&Name>,
        walk: u32,
    ) -> Option<Call> {
        let network = &self.settings.network;
        let host = network.host_identity(&site.host)?;
        let mut names = network.probes().iter();
        if let Some(last) = last {
            names.find(|name| *name == last)?;
        }
        names.find_map(|name| {
            let query = network.query(name)?;
            let step = Step {
                query: name.clone(),
                page: StepPage::First,
                walk,
                cursor: None,
            };
            let subjects = [&host];
            let asked = self.ask(query, &subjects, &step.page, robot, site);
            let plan = network.request(&asked).ok()?;
            Some(Call::new(Purpose::Probe, step, plan, Arc::clone(site)))
        })
    }

    /// Learns what a server can do from any answer to a question that tells it.
    pub(crate) fn learn(&self, site: &Site, query: &Query, reading: &Reading) {
        if !self.is_probe(&query.name) || !reading.outcome.is_success() {
            return;
        }
        let network = &self.settings.network;
        let identity = network.host_identity(&site.host);
        let is_it = |object: &&kittiwake_model::Object| Some(&object.identity) == identity.as_ref();
        if let Some(object) = reading.objects.iter().find(is_it) {
            site.meet(Some(network.capabilities(&facts_of(object), &site.host)));
        }
    }

    /// A server was asked what it is. If it does not say, it is asked otherwise; in the end it is
    /// taken for one that can do nothing special.
    pub(crate) fn settle_probe(
        &self,
        work: &mut Work,
        reading: &mut Reading,
        commit: &mut Commit,
    ) -> Ending {
        let site = Arc::clone(&work.call.site);
        if let Acquaintance::Told(_) = site.acquaintance() {
            site.note_probe();
            commit.objects = std::mem::take(&mut reading.objects);
            for object in &mut commit.objects {
                // It was asked on behalf of somebody else.
                object.known_as = None;
            }
            let host = self.settings.network.host_identity(&site.host);
            commit.discoveries.extend(host.map(|host| Discovery {
                subject: Reference::Identity(Box::new(host)),
                depth: 0,
            }));
            return Ending::Probed;
        }
        let (last, walk) = (work.call.step.query.clone(), work.call.step.walk);
        if let Some(call) = self.probe(&work.robot, &site, Some(&last), walk) {
            work.call = call;
            work.tries = 0;
            return Ending::ProbeOn;
        }
        site.meet(None);
        Ending::Probed
    }
}
