//! One call from send to commit.

use crate::crashpoint::CrashPoint;
use crate::permits::{Permit, Purse, Taken};
use crate::settings::{CrawlSettings, Parts};
use crate::walk::{self, Step};
use crate::work::{POSTS_MAX, Purpose, Work};
use crate::{Clock, CrashHook, EngineError};
use kittiwake_fetch::{
    FetchError, FetchErrorKind, Fetcher, HostTrust, Method, Request, Response, Secret, retry_after,
};
use kittiwake_frontier::{Policy, Shared, State, Visit};
use kittiwake_model::outcome::Consequence;
use kittiwake_model::{
    BudgetId, Commit, CommitReport, Expansion, FrontierRow, Key, LimitTime, LogRow, Name, Outcome,
    OutcomeCode, RealTime, Table, Value, WorldTime,
};
use kittiwake_network::{Answer, Query, Reading};
use kittiwake_store::Store;
use std::sync::Arc;
use tokio::sync::Mutex;
use url::Url;

/// Redirects followed for one call, each charged like a call of its own.
const HOPS_MAX: usize = 3;
/// How long a limit is believed in that says nothing of when it ends.
const UNTOLD_WAIT_US: i64 = 60_000_000;

/// What every exchange of a crawl shares.
#[derive(Debug)]
pub(crate) struct Shop {
    pub settings: CrawlSettings,
    pub store: Arc<dyn Store>,
    pub fetcher: Fetcher,
    pub clock: Clock,
    pub policy: Arc<dyn Policy>,
    pub crash: CrashHook,
    pub node: String,
    pub purse: Mutex<Purse>,
    pub expansion: Arc<Expansion>,
    pub shared: Mutex<Shared>,
}

/// An exchange that is over, durably.
#[derive(Debug)]
pub(crate) struct Done {
    pub work: Work,
    pub ending: Ending,
    pub reports: Vec<CommitReport>,
    pub calls: u64,
    pub limited: bool,
}

/// What comes next for the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The visit has another page or another list.
    Continue,
    /// The visit is over; the time is when the subject is due again.
    Finished {
        due: Vec<(Key, WorldTime)>,
    },
    /// The subject now has an id on this host; its tasks may be visited.
    Resolved,
    /// The subject has none; all its tasks are settled.
    Unresolved,
    /// A fault that may pass, perhaps not before a time the server named.
    Retry(Option<LimitTime>),
    /// The host is out of reach: no fault of the work.
    HostDown(String),
    /// A limit was met.
    Wait(LimitTime),
    /// The batch failed as a whole and is split, to find the id at fault.
    Split,
    AuthExpired(String),
}

/// The answer as the network read it, with what the log needs.
struct Heard {
    reading: Reading,
    status: Option<u16>,
    bytes: u64,
    /// The answer as it came, if it is to be kept.
    raw: Option<Vec<u8>>,
    /// Until when the server asked us to wait.
    wait_until: Option<LimitTime>,
    host_down: bool,
    sent: RealTime,
    answered: RealTime,
    observed: WorldTime,
}

/// Sends the work's call, reads the answer and commits it.
pub(crate) async fn exchange(
    shop: Arc<Shop>,
    mut work: Work,
    permit: Permit,
) -> Result<Done, EngineError> {
    shop.crash.reached(CrashPoint::GrantAndSend);
    let mut hops = Vec::new();
    let heard = match shop.hear(&work, permit, &mut hops).await? {
        Some(heard) => heard,
        None => {
            return Ok(Done {
                work,
                ending: Ending::Retry(None),
                reports: Vec::new(),
                calls: 0,
                limited: false,
            });
        }
    };
    let limited = heard.reading.outcome == OutcomeCode::RateLimited;
    let calls = 1 + hops.len() as u64;
    let (commit, ending) = shop.decide(&mut work, heard).await?;
    shop.crash.reached(CrashPoint::AnswerAndCommit);
    hops.push(commit);
    let reports = shop.store.commit(hops).await?;
    shop.crash.reached(CrashPoint::CommitAndAcknowledge);
    Ok(Done {
        work,
        ending,
        reports,
        calls,
        limited,
    })
}

impl Shop {
    pub(crate) fn new(settings: CrawlSettings, parts: Parts, expansion: Expansion) -> Self {
        let purse = Purse::new(
            parts.ledger,
            parts.clock.clone(),
            parts.node.clone(),
            settings.limits,
        );
        Self {
            settings,
            store: parts.store,
            fetcher: parts.fetcher,
            clock: parts.clock,
            policy: parts.policy,
            crash: parts.crash,
            node: parts.node,
            purse: Mutex::new(purse),
            expansion: Arc::new(expansion),
            shared: Mutex::new(Shared::default()),
        }
    }

    pub(crate) fn query<'a>(&'a self, step: &Step) -> Result<&'a Query, EngineError> {
        self.settings
            .network
            .query(&step.query)
            .ok_or_else(|| EngineError::Broken(format!("no query {:?}", step.query)))
    }

    /// Fetches the work's call, following redirects, and reads what came. `None` when a redirect
    /// could not be followed for want of a permit.
    async fn hear(
        &self,
        work: &Work,
        permit: Permit,
        hops: &mut Vec<Commit>,
    ) -> Result<Option<Heard>, EngineError> {
        let mut url = work.call.plan.url.clone();
        let mut permit = permit;
        loop {
            let (observed, sent) = (self.clock.world(), self.clock.real());
            let fetched = self.fetch(work, &url).await;
            let answered = self.clock.real();
            self.purse.lock().await.settle(permit);
            let heard = |reading, status, bytes| Heard {
                reading,
                status,
                bytes,
                raw: None,
                wait_until: None,
                host_down: false,
                sent,
                answered,
                observed,
            };
            let response = match fetched {
                Ok(response) => response,
                Err(error) => {
                    let (reading, host_down) = failure(&error);
                    return Ok(Some(Heard {
                        host_down,
                        ..heard(reading, None, 0)
                    }));
                }
            };
            let status = response.status;
            let bytes = response.body.len() as u64;
            let Some(location) = redirect(&response) else {
                let mut heard = heard(self.read(work, &url, &response)?, Some(status), bytes);
                heard.raw = self.settings.keep_raw.then(|| response.body.to_vec());
                heard.wait_until = self.hear_limits(work, &response, &heard.reading).await?;
                return Ok(Some(heard));
            };
            let target = if hops.len() < HOPS_MAX {
                url.join(&location).ok()
            } else {
                None
            };
            let Some(target) = target.filter(|target| matches!(target.scheme(), "http" | "https"))
            else {
                let reading = Reading::of(
                    OutcomeCode::BadRequest,
                    format!("http {status}: redirect that leads nowhere"),
                );
                return Ok(Some(heard(reading, Some(status), bytes)));
            };
            let hop = heard(
                Reading::of(OutcomeCode::Ok, format!("http {status}: redirect")),
                Some(status),
                bytes,
            );
            hops.push(Commit {
                at: observed,
                log: Some(self.log_row(work, &hop)),
                ..Commit::default()
            });
            url = target;
            match self.purse.lock().await.take(&work.call.budgets).await? {
                Taken::Permit(next) => permit = next,
                Taken::Wait { .. } => {
                    self.store.commit(std::mem::take(hops)).await?;
                    return Ok(None);
                }
            }
        }
    }

    async fn fetch(&self, work: &Work, url: &Url) -> Result<Response, FetchError> {
        let plan = &work.call.plan;
        let home = url.origin() == self.settings.base.origin();
        let credential = self.settings.credential.as_ref();
        // A credential goes only to the host it was issued for.
        let secret_headers = credential
            .filter(|_| home && plan.send_credential)
            .map(|credential| ("authorization".to_owned(), bearer(&credential.secret)));
        let request = Request {
            method: if plan.method == "POST" {
                Method::Post
            } else {
                Method::Get
            },
            url: url.clone(),
            headers: plan.headers.clone(),
            secret_headers: secret_headers.into_iter().collect(),
            body: None,
            trust: if home {
                HostTrust::Named
            } else {
                HostTrust::Learnt
            },
        };
        let fetch = self.fetcher.fetch(request);
        tokio::pin!(fetch);
        tokio::select! {
            biased;
            fetched = &mut fetch => return fetched,
            () = tokio::task::yield_now() => self.crash.reached(CrashPoint::SendAndAnswer),
        }
        fetch.await
    }

    fn read(&self, work: &Work, url: &Url, response: &Response) -> Result<Reading, EngineError> {
        let query = self.query(&work.call.step)?;
        let subjects: Vec<_> = work
            .tasks
            .iter()
            .map(|task| (task.row.subject, &task.identity))
            .collect();
        let header = |name: &str| response.headers.get(name).map(str::to_owned);
        Ok(self.settings.network.read(&Answer {
            query,
            base: &self.settings.base,
            host: &self.settings.host,
            subjects: &subjects,
            page: work.call.step.page.borrowed(),
            url,
            status: response.status,
            header: &header,
            body: &response.body,
            walk: query.list.map(|_| work.call.step.walk),
        }))
    }

    /// Takes in what the answer says of limits; the time to wait for, if it was refused for one.
    async fn hear_limits(
        &self,
        work: &Work,
        response: &Response,
        reading: &Reading,
    ) -> Result<Option<LimitTime>, EngineError> {
        let query = self.query(&work.call.step)?;
        let now = self.clock.limit();
        let header = |name: &str| response.headers.get(name).map(str::to_owned);
        let names = &work.call.plan.budgets;
        let reports = self
            .settings
            .network
            .limit_reports(query, names, &header, now);
        let mut purse = self.purse.lock().await;
        for report in &reports {
            if let Some(id) = budget_id(work, &report.budget) {
                purse.observe(id, report).await?;
            }
        }
        let waits = reading.outcome.consequence() == Consequence::Wait;
        let asked_us = response
            .headers
            .get("retry-after")
            .and_then(|value| retry_after(value, self.clock.real().micros()));
        if !waits {
            // A server that is merely overloaded may still say when to come back.
            return Ok(asked_us
                .filter(|_| reading.outcome == OutcomeCode::Transient)
                .map(|us| now.plus_us(us)));
        }
        let spent: Vec<_> = reports
            .iter()
            .filter(|report| report.remaining == 0)
            .collect();
        let until = asked_us
            .map(|us| now.plus_us(us))
            .or_else(|| spent.iter().map(|report| report.reset).max())
            .filter(|until| *until > now)
            .unwrap_or_else(|| now.plus_us(UNTOLD_WAIT_US));
        let named = spent
            .iter()
            .filter_map(|report| budget_id(work, &report.budget))
            .cloned();
        let mut blocked: Vec<BudgetId> = named.collect();
        if blocked.is_empty() {
            blocked.clone_from(&work.call.budgets);
        }
        purse.block(&blocked, until).await?;
        Ok(Some(until))
    }

    /// Turns an answer into a commit and says what comes next.
    async fn decide(
        &self,
        work: &mut Work,
        mut heard: Heard,
    ) -> Result<(Commit, Ending), EngineError> {
        let mut commit = Commit {
            at: heard.observed,
            expansion: Some(Arc::clone(&self.expansion)),
            log: Some(self.log_row(work, &heard)),
            raw: heard.raw.take(),
            ..Commit::default()
        };
        let outcome = heard.reading.outcome;
        let failed = match outcome.consequence() {
            Consequence::Wait => {
                let untold = self.clock.limit().plus_us(UNTOLD_WAIT_US);
                return Ok((commit, Ending::Wait(heard.wait_until.unwrap_or(untold))));
            }
            Consequence::Stop => {
                commit.outcomes = self.outcomes(work, outcome, &heard.reading.reason);
                return Ok((commit, Ending::AuthExpired(heard.reading.reason)));
            }
            _ if heard.host_down => return Ok((commit, Ending::HostDown(heard.reading.reason))),
            Consequence::Retry => true,
            // Bytes that cannot be read may be a fault on the way: they are asked for again.
            Consequence::Settled => outcome == OutcomeCode::Malformed,
        };
        if failed && !work.is_last_chance() {
            return Ok((commit, Ending::Retry(heard.wait_until)));
        }
        if work.tasks.len() > 1 && !outcome.is_success() && !failed {
            return Ok((commit, Ending::Split));
        }
        let ending = self.settle(work, heard, &mut commit).await?;
        Ok((commit, ending))
    }

    /// Puts what the answer brought into the commit: the question is answered.
    async fn settle(
        &self,
        work: &mut Work,
        heard: Heard,
        commit: &mut Commit,
    ) -> Result<Ending, EngineError> {
        let Heard {
            mut reading,
            observed,
            ..
        } = heard;
        remember_posts(&mut work.posts, &reading);
        commit.outcomes = self.outcomes(work, reading.outcome, &reading.reason);
        for (subject, code, reason) in std::mem::take(&mut reading.subject_outcomes) {
            if let Some(outcome) = commit
                .outcomes
                .iter_mut()
                .find(|outcome| outcome.subject == subject)
            {
                (outcome.code, outcome.reason) = (code, reason);
            }
        }
        commit.objects = std::mem::take(&mut reading.objects);
        commit.links = std::mem::take(&mut reading.links);
        if work.call.purpose == Purpose::Resolve {
            if reading.outcome.is_success() {
                return Ok(Ending::Resolved);
            }
            commit.frontier = self.settled_rows(work, observed);
            return Ok(Ending::Unresolved);
        }
        self.move_cursors(work, &mut reading, commit)?;
        let gone = work.tasks.len() == 1 && reading.outcome.invalidates_user();
        if !gone && self.has_another_step(work)? {
            return Ok(Ending::Continue);
        }
        let mut due = Vec::with_capacity(work.tasks.len());
        for task in &mut work.tasks {
            let row = self.visited(&task.row, &work.posts, observed).await?;
            due.push((row.subject, row.due));
            commit.frontier.push(row);
        }
        Ok(Ending::Finished { due })
    }

    /// Moves the cursor of the list that was read. A call that is a robot's only one, and has no
    /// pages, needs none: the count of visits says that it was made.
    fn move_cursors(
        &self,
        work: &mut Work,
        reading: &mut Reading,
        commit: &mut Commit,
    ) -> Result<(), EngineError> {
        let query = self.query(&work.call.step)?;
        let robot = self.robot(&work.robot)?;
        if query.pages_max <= 1 && robot.steps.len() <= 1 {
            return Ok(());
        }
        let step = &work.call.step;
        for task in &mut work.tasks {
            let next = reading.next.take();
            let newest = reading.newest.take();
            let subject = task.row.subject;
            let (cursor, cap) = walk::advance(query, subject, step, next, newest, commit.at);
            if let Some(cap) = cap {
                for outcome in commit
                    .outcomes
                    .iter_mut()
                    .filter(|outcome| outcome.subject == subject)
                {
                    (outcome.code, outcome.reason) =
                        (OutcomeCode::CapReached, cap.reason().to_owned());
                }
            }
            task.cursors.retain(|known| known.query != cursor.query);
            task.cursors.push(cursor.clone());
            commit.cursors.push(cursor);
        }
        Ok(())
    }

    fn has_another_step(&self, work: &Work) -> Result<bool, EngineError> {
        let robot = self.robot(&work.robot)?;
        let query = self.query(&work.call.step)?;
        if query.pages_max <= 1 && robot.steps.len() <= 1 {
            return Ok(false);
        }
        let task = work.tasks.first();
        Ok(task.is_some_and(|task| walk::next_step(&self.settings.network, robot, task).is_some()))
    }

    pub(crate) fn robot(&self, name: &str) -> Result<&kittiwake_network::Robot, EngineError> {
        self.settings
            .network
            .robot(name)
            .ok_or_else(|| EngineError::Broken(format!("no robot {name:?}")))
    }

    /// The frontier row after a completed visit.
    async fn visited(
        &self,
        row: &FrontierRow,
        posts: &[WorldTime],
        at: WorldTime,
    ) -> Result<FrontierRow, EngineError> {
        let mut shared = self.shared.lock().await;
        let mut state = State::from_bytes(row.state.clone())
            .map_err(|error| EngineError::Broken(error.to_string()))?;
        self.policy
            .observe(&mut shared, &mut state, &Visit { at, posts });
        let due = self.policy.due(&shared, &state, 0.0, at);
        let visits = row.visits.saturating_add(1);
        Ok(FrontierRow {
            visits,
            due,
            state: state.into_bytes(),
            ..row.clone()
        })
    }

    /// The rows of all robots of a subject that cannot be found, as visited.
    fn settled_rows(&self, work: &Work, at: WorldTime) -> Vec<FrontierRow> {
        let filings = &self.expansion.robots;
        let subjects = work.tasks.iter();
        subjects
            .flat_map(|task| {
                let kind = task.identity.kind.clone();
                filings
                    .iter()
                    .filter(move |filing| filing.kind == kind)
                    .map(|filing| FrontierRow {
                        subject: task.row.subject,
                        robot: filing.robot.clone(),
                        lane: filing.lane.clone(),
                        visits: task.row.visits.saturating_add(1),
                        due: at,
                        state: Vec::new(),
                    })
            })
            .collect()
    }

    fn outcomes(&self, work: &Work, code: OutcomeCode, reason: &str) -> Vec<Outcome> {
        let query = &work.call.step.query;
        let outcome = |subject| Outcome {
            subject,
            query: query.clone(),
            code,
            reason: reason.to_owned(),
        };
        work.keys().map(outcome).collect()
    }

    fn log_row(&self, work: &Work, heard: &Heard) -> LogRow {
        let plan = &work.call.plan;
        let credential = self
            .settings
            .credential
            .as_ref()
            .filter(|_| plan.send_credential);
        LogRow {
            query: work.call.step.query.clone(),
            subjects: work.keys().collect(),
            target: plan.target.clone(),
            cursor: plan.cursor.clone(),
            credential: credential
                .map_or_else(|| "anonymous".to_owned(), |known| known.fingerprint.clone()),
            node: self.node.clone(),
            status: heard.status,
            outcome: heard.reading.outcome,
            reason: heard.reading.reason.clone(),
            scheduled: work.scheduled,
            sent: heard.sent,
            answered: heard.answered,
            budgets: plan.budgets.clone(),
            rank_us: work.rank_us,
            seed_us: 0,
            bytes: heard.bytes,
            mended: heard.reading.mended,
            definition: self.settings.network.digest().clone(),
        }
    }
}

fn budget_id<'a>(work: &'a Work, name: &Name) -> Option<&'a BudgetId> {
    let place = work
        .call
        .plan
        .budgets
        .iter()
        .position(|budget| budget == name)?;
    work.call.budgets.get(place)
}

fn bearer(secret: &Secret) -> Secret {
    Secret::new(format!("Bearer {}", secret.expose_secret()))
}

fn redirect(response: &Response) -> Option<String> {
    matches!(response.status, 301 | 302 | 303 | 307 | 308)
        .then(|| response.headers.get("location").map(str::to_owned))
        .flatten()
}

/// What a failed fetch amounts to, and whether the host itself is out of reach.
fn failure(error: &FetchError) -> (Reading, bool) {
    let reason = error.to_string();
    match error.kind() {
        FetchErrorKind::HostDown => (Reading::of(OutcomeCode::HostDown, reason), true),
        FetchErrorKind::Transient => (Reading::of(OutcomeCode::Transient, reason), false),
        FetchErrorKind::TooLarge => (Reading::of(OutcomeCode::TooMuchData, reason), false),
        FetchErrorKind::AddressRefused => (Reading::of(OutcomeCode::Forbidden, reason), false),
        FetchErrorKind::Invalid => (Reading::of(OutcomeCode::BadRequest, reason), false),
    }
}

/// Notes when the posts of a page were made, within a bound.
fn remember_posts(posts: &mut Vec<WorldTime>, reading: &Reading) {
    let statuses = reading
        .objects
        .iter()
        .filter(|object| object.table == Table::Statuses);
    let fields = statuses.flat_map(|object| object.groups.iter().flat_map(|group| &group.fields));
    for (name, value) in fields {
        if let (true, Value::Time { at_us, .. }) = (&**name == "created_us", value) {
            if posts.len() < POSTS_MAX {
                posts.push(WorldTime(*at_us));
            }
        }
    }
}
