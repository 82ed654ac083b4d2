//! Work: one or more leased subjects and the next call to be made for them.

use crate::credential::CredentialId;
use crate::found::Found;
use crate::lanes::QueueId;
use crate::permits::Charge;
use crate::site::Site;
use crate::walk::Step;
use kittiwake_model::{Key, Name, Object, OutcomeCode, RealTime};
use kittiwake_network::RequestPlan;
use kittiwake_store::TaskRecord;
use std::sync::Arc;
use url::Url;

/// How many times one lease may be tried before it goes back to the frontier.
pub(crate) const TRIES_MAX: u32 = 3;
/// How many times a task may go back to the frontier before its failure is final.
pub(crate) const RETURNS_MAX: u32 = 3;

/// Leased subjects with the call that comes next.
#[derive(Debug)]
pub(crate) struct Work {
    pub lane: Name,
    pub robot: Name,
    /// Where it waits to be sent.
    pub queue: QueueId,
    /// One task, or several that share a batch call.
    pub tasks: Vec<TaskRecord>,
    /// Tasks that the answer to a batch left out: they are asked for one by one.
    pub aside: Vec<TaskRecord>,
    pub call: Call,
    /// Who asks; decided when the call is granted.
    pub credential: Option<CredentialId>,
    /// Where the call was led, if it has to go on from there.
    pub redirected: Option<Redirected>,
    /// The call as it is made by the first of several ways, while it is made by another.
    pub instead: Option<Box<Call>>,
    pub tries: u32,
    /// How often the page has named itself as the next one.
    pub slips: u32,
    /// How often these tasks came back to the frontier before.
    pub returns: u32,
    pub not_before: RealTime,
    pub scheduled: RealTime,
    /// What this visit has found so far.
    pub found: Found,
    /// Queries that failed for good in this visit; the next visit asks again.
    pub missed: Vec<Name>,
    /// Microseconds that choosing this work took.
    pub rank_us: u32,
}

/// A call that was led elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Redirected {
    pub url: Url,
    /// How often it was led on.
    pub hops: usize,
    /// What it comes to if this leads nowhere.
    pub led_astray: OutcomeCode,
}

/// A call, ready to be sent.
#[derive(Debug)]
pub(crate) struct Call {
    pub purpose: Purpose,
    pub step: Step,
    pub plan: RequestPlan,
    /// Who is asked.
    pub site: Arc<Site>,
    /// What it is charged to; decided when it is granted.
    pub charges: Arc<[Charge]>,
}

impl Call {
    pub(crate) fn new(purpose: Purpose, step: Step, plan: RequestPlan, site: Arc<Site>) -> Self {
        Self {
            purpose,
            step,
            plan,
            site,
            charges: Arc::from([]),
        }
    }
}

/// What a call is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To learn what the host itself is and can do.
    Probe,
    /// To learn where the subject lives, by this id. If nobody tells, the crawl's own host is asked.
    Locate(Name),
    /// To learn this id of the subject, without which it cannot be asked for.
    Resolve(Name),
    /// To take the next page of a robot's list.
    Visit,
}

impl Purpose {
    /// Whether it is asked for the sake of an id.
    pub(crate) const fn is_lookup(&self) -> bool {
        matches!(self, Self::Locate(_) | Self::Resolve(_))
    }
}

impl Work {
    /// Some of its tasks, with a call of their own.
    pub(crate) fn part(&self, tasks: Vec<TaskRecord>, call: Call) -> Self {
        Self {
            lane: self.lane.clone(),
            robot: self.robot.clone(),
            queue: self.queue,
            tasks,
            aside: Vec::new(),
            call,
            credential: None,
            redirected: None,
            instead: None,
            found: Found::default(),
            missed: self.missed.clone(),
            ..*self
        }
    }

    /// Begins anew: by the first way, at the first address.
    pub(crate) fn reset(&mut self) {
        self.redirected = None;
        if let Some(call) = self.instead.take() {
            self.call = *call;
        }
    }

    /// Puts tasks aside that have to be asked for one by one.
    pub(crate) fn set_aside(&mut self, absent: &[Key]) {
        if absent.is_empty() {
            return;
        }
        let tasks = std::mem::take(&mut self.tasks).into_iter();
        (self.aside, self.tasks) = tasks.partition(|task| absent.contains(&task.row.subject));
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.tasks.iter().map(|task| task.row.subject)
    }

    /// Takes in what an answer has told of who the subjects are: the next step may ask by it.
    pub(crate) fn learn(&mut self, objects: &[Object]) {
        for task in &mut self.tasks {
            let subject = Some(task.row.subject);
            if let Some(object) = objects.iter().find(|object| object.known_as == subject) {
                task.identity.learn(&object.identity);
            }
        }
    }

    pub(crate) fn is_last_chance(&self) -> bool {
        self.tries + 1 >= TRIES_MAX && self.returns >= RETURNS_MAX
    }
}
