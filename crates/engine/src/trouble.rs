//! What happens to work that fails: tries, returns, pauses, and a host that is out of reach.

use crate::lanes::Place;
use crate::scheduler::Scheduler;
use crate::settings::End;
use crate::work::{RETURNS_MAX, TRIES_MAX, Work};
use kittiwake_frontier::Back;
use kittiwake_model::{Key, LimitTime, Name, RealTime};
use kittiwake_store::TaskRecord;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Tasks that failed and came back, remembered at once.
const RETURNS_KEPT_MAX: usize = 10_000;
/// The longest pause before a call is tried again, in first pauses: a minute where the first is
/// half a second.
const PAUSES_MAX: u32 = 120;
/// Failures in a row, of whatever work, after which the host itself is left alone for a while.
const FAILURES_BEFORE_PAUSE: u32 = 6;

/// Failures in a row after which a host that is not the crawl's own is left out.
const FAILURES_BEFORE_OUT: u32 = 3;

/// A task that failed and came back to the frontier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Returned {
    times: u32,
    not_before: RealTime,
}

/// How the host answers.
#[derive(Debug, Default)]
pub(crate) struct HostHealth {
    down_since: Option<Instant>,
    pub pause_until: Option<Instant>,
    out_until: Option<Instant>,
    /// Failures since the last answer that was none.
    failures: u32,
}

impl HostHealth {
    pub(crate) fn is_paused(&self) -> bool {
        self.pause_until.is_some_and(|until| Instant::now() < until)
    }

    /// Whether a host that is not the crawl's own is left out: others are asked in its place.
    pub(crate) fn is_out(&self) -> bool {
        self.out_until.is_some_and(|until| Instant::now() < until)
    }

    /// Whether the last that was heard of it was a failure.
    pub(crate) const fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// One failure more: how many there are in a row.
    const fn failed(&mut self) -> u32 {
        self.failures = self.failures.saturating_add(1);
        self.failures
    }
}

impl Scheduler {
    /// A host that is not the crawl's own is left out for a while. What waited for it is asked for anew,
    /// of whoever can stand in.
    pub(crate) fn leave_out(&mut self, work: &Work) {
        let site = Arc::clone(&work.call.site);
        let out_until = Instant::now() + self.shop.settings.host_patience;
        site.health().out_until = Some(out_until);
        self.hand_back(work);
        for other in self.lanes.take_out(|other| other.call.site == site) {
            self.hand_back(&other);
        }
    }

    /// A host answers a question only to those who log in there: it is not asked that any more, and
    /// what waited for it is asked for anew, of whoever can stand in.
    pub(crate) fn shut(&mut self, work: &Work) {
        let (site, query) = (Arc::clone(&work.call.site), &work.call.step.query);
        site.close(query);
        self.hand_back(work);
        let is_same = |other: &Work| other.call.site == site && other.call.step.query == *query;
        for other in self.lanes.take_out(is_same) {
            self.hand_back(&other);
        }
    }

    /// A fault that may pass: try again after a pause, or give the lease back.
    pub(crate) fn retry(&mut self, work: Work, until: Option<LimitTime>) {
        let failures = work.call.site.health().failed();
        if !work.call.site.is_home && failures >= FAILURES_BEFORE_OUT {
            return self.leave_out(&work);
        }
        if let Some(more) = failures.checked_sub(FAILURES_BEFORE_PAUSE) {
            let pause_until = Some(Instant::now() + self.pause(more));
            work.call.site.health().pause_until = pause_until;
        }
        self.try_again(work, until);
    }

    /// The same where the host is not at fault.
    pub(crate) fn try_again(&mut self, mut work: Work, until: Option<LimitTime>) {
        work.tries += 1;
        work.redirected = None;
        let pause = self.pause(work.tries);
        let asked = until.map_or(Duration::ZERO, |until| self.shop.clock.until_limit(until));
        work.not_before = self.real_after(pause.max(asked));
        if work.tries >= TRIES_MAX {
            self.give_back(&work);
            return;
        }
        let now = self.now();
        self.lanes.put(work, Place::Back, now);
    }

    /// A limit was met. Its lane waits for it, and another may take the work; unless it is no limit
    /// of ours, for which the work itself waits.
    pub(crate) async fn wait(&mut self, mut work: Work, until: LimitTime) {
        let is_known = {
            let purse = work.call.site.purse.lock().await;
            purse.shut(&work.call.charges).is_some()
        };
        if !is_known {
            work.not_before = self.real_after(self.shop.clock.until_limit(until));
        }
        let now = self.now();
        self.lanes.put(work, Place::Front, now);
    }

    pub(crate) fn real_after(&self, pause: Duration) -> RealTime {
        let pause_us = i64::try_from(pause.as_micros()).unwrap_or(i64::MAX);
        self.shop.clock.real().plus_us(pause_us)
    }

    /// Back to the frontier, behind everybody who is due, as one more failure.
    fn give_back(&mut self, work: &Work) {
        for subject in work.keys() {
            let task = (subject, work.robot.clone());
            self.remember(task, (work.returns + 1).min(RETURNS_MAX), work.not_before);
        }
        self.release_again(work);
    }

    /// Back to the frontier, through no fault of the work: whoever waits for its lookup asks for
    /// it themselves, and no sooner than it would have been asked for.
    pub(crate) fn hand_back(&mut self, work: &Work) {
        let filings = Arc::clone(&self.shop.expansion);
        for subject in work.keys() {
            let waiting = self.resolving.get(&subject).cloned().unwrap_or_default();
            let lanes = waiting.iter().chain([&work.lane]);
            for lane in lanes {
                if let Some(filing) = filings.robots.iter().find(|filing| filing.lane == *lane) {
                    let task = (subject, filing.robot.clone());
                    self.remember(task, work.returns, work.not_before);
                }
            }
        }
        self.release_again(work);
    }

    fn remember(&mut self, task: (Key, Name), times: u32, not_before: RealTime) {
        if self.returns.len() < RETURNS_KEPT_MAX || self.returns.contains_key(&task) {
            self.returns.insert(task, Returned { times, not_before });
        }
    }

    fn release_again(&mut self, work: &Work) {
        self.release_uninformed(work);
        let now = self.shop.clock.world();
        for subject in work.keys() {
            for lane in self.lanes_of(subject, &work.lane) {
                self.frontier.release(&lane, subject, Back::Again(now));
            }
        }
    }

    /// How often tasks came back, and before when they are not to be tried again.
    pub(crate) fn returns_of(&self, tasks: &[TaskRecord], robot: &Name) -> (u32, RealTime) {
        let known = |task: &TaskRecord| self.returns.get(&(task.row.subject, robot.clone()));
        let times = tasks
            .iter()
            .filter_map(known)
            .map(|returned| returned.times)
            .max();
        let not_before = tasks
            .iter()
            .filter_map(known)
            .map(|returned| returned.not_before)
            .max();
        // When no more can be remembered, a failure is final at once rather than never.
        let unknown = if self.returns.len() < RETURNS_KEPT_MAX {
            0
        } else {
            RETURNS_MAX
        };
        (
            times.unwrap_or(unknown),
            not_before.unwrap_or(RealTime(i64::MIN)),
        )
    }

    /// The visit failed for good. It does not count: a crawl that goes round comes back to the
    /// subject in its turn, one that ends with everybody visited leaves it to the next run.
    pub(crate) fn give_up(&mut self, work: &Work) {
        let again = if self.shop.settings.rounds.end() {
            Back::Out
        } else {
            Back::Passed(self.shop.clock.world())
        };
        for subject in work.keys() {
            self.given_up += 1;
            self.returns.remove(&(subject, work.robot.clone()));
            for lane in self.lanes_of(subject, &work.lane) {
                self.frontier.release(&lane, subject, again);
            }
        }
    }

    /// The lanes whose tasks wait for the same lookup as this work, and its own.
    pub(crate) fn lanes_of(&mut self, subject: Key, lane: &Name) -> HashSet<Name> {
        let waiting = self.resolving.remove(&subject).unwrap_or_default();
        waiting.into_iter().chain([lane.clone()]).collect()
    }

    /// A pause that doubles, with jitter so that many do not come back at once.
    fn pause(&mut self, tries: u32) -> Duration {
        self.jitter ^= self.jitter << 13;
        self.jitter ^= self.jitter >> 7;
        self.jitter ^= self.jitter << 17;
        let first = self.shop.settings.retry_pause;
        let doubled = first.saturating_mul(1 << tries.min(10));
        let share = 0.5 + (self.jitter % 1_000) as f64 / 1_000.0;
        doubled.mul_f64(share).min(first * PAUSES_MAX)
    }

    /// The host is out of reach: nothing is sent for a while, and after too long the run ends.
    pub(crate) fn host_down(&mut self, work: Work, reason: String) {
        if !work.call.site.is_home {
            return self.retry(work, None);
        }
        let now = Instant::now();
        let site = Arc::clone(&work.call.site);
        let since = *site.health().down_since.get_or_insert(now);
        let patience = self.shop.settings.host_patience;
        let left = patience.saturating_sub(now.duration_since(since));
        if left.is_zero() {
            self.ended = Some(End::HostDown(reason));
        }
        let failures = site.health().failed();
        let pause = self.pause(failures);
        site.health().pause_until = Some(now + pause.min(left));
        let now = self.now();
        self.lanes.put(work, Place::Front, now);
    }
}
