//! Commands to a running crawl: pause, resume and stop, of all robots or of one.

use crate::EngineError;
use crate::credential::{Credential, CredentialId};
use crate::exchange::{Done, Ending};
use crate::scheduler::Scheduler;
use crate::settings::End;
use crate::work::{Purpose, Work};
use kittiwake_frontier::Back;
use kittiwake_model::{Commit, Control, ControlCommand, Name};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the table `control` is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What the commands so far amount to.
#[derive(Debug, Default)]
pub(crate) struct Controls {
    /// The last command that was read.
    last: i64,
    looked: Option<Instant>,
    /// Robots that are paused; `None` stands for all.
    paused: BTreeSet<Option<Name>>,
    /// Robots that were switched off for this run.
    stopped: BTreeSet<Name>,
    /// Why robots are not let in, if some are not.
    locked_out: Option<String>,
    /// Credentials that are taken no longer, and why.
    refused: BTreeMap<CredentialId, String>,
}

impl Controls {
    pub(crate) fn is_paused(&self, robot: &Name) -> bool {
        self.paused.contains(&None) || self.paused.contains(&Some(robot.clone()))
    }

    pub(crate) fn is_stopped(&self, robot: &Name) -> bool {
        self.stopped.contains(robot)
    }

    pub(crate) fn is_refused(&self, credential: CredentialId) -> bool {
        self.refused.contains_key(&credential)
    }

    /// The fingerprints of credentials that are taken no longer, and why.
    pub(crate) fn refused(&self, credentials: &[Credential]) -> Vec<(String, String)> {
        let refused = self.refused.iter();
        refused
            .filter_map(|(id, reason)| {
                let credential = credentials.get(*id)?;
                Some((credential.fingerprint.clone(), reason.clone()))
            })
            .collect()
    }

    /// Whether the robot may be sent out now.
    pub(crate) fn lets_run(&self, robot: &Name) -> bool {
        !self.is_paused(robot) && !self.is_stopped(robot)
    }

    /// Takes in one command; whether it ends the run.
    fn take(&mut self, control: &Control) -> bool {
        self.last = self.last.max(control.id);
        match (control.command, &control.robot) {
            (ControlCommand::Pause, robot) => {
                self.paused.insert(robot.clone());
            }
            // Resuming all resumes everybody, also those that were paused one by one.
            (ControlCommand::Resume, None) => self.paused.clear(),
            (ControlCommand::Resume, robot) => {
                self.paused.remove(robot);
            }
            (ControlCommand::Stop, Some(robot)) => {
                self.stopped.insert(robot.clone());
            }
            (ControlCommand::Stop, None) => return true,
        }
        false
    }
}

impl Scheduler {
    /// What was said before this run began: who was paused stays so, a stop was for another run.
    pub(crate) async fn take_earlier_controls(&mut self) -> Result<(), EngineError> {
        loop {
            let controls = self.shop.store.controls(self.controls.last).await?;
            if controls.is_empty() {
                break;
            }
            for control in &controls {
                match control.command {
                    ControlCommand::Stop => self.controls.last = control.id,
                    ControlCommand::Pause | ControlCommand::Resume => {
                        self.controls.take(control);
                    }
                }
            }
            self.acknowledge_controls(&controls).await?;
        }
        self.show_controls();
        Ok(())
    }

    /// Takes in an exchange that is over. Who is not let in is locked out; what they would have
    /// asked is left to the others.
    pub(crate) async fn take_answer(&mut self, done: Option<Done>) -> Result<(), EngineError> {
        let Some(mut done) = done else {
            return self.acknowledge(None).await;
        };
        let ending = std::mem::replace(&mut done.ending, Ending::Finished { due: Vec::new() });
        let Ending::AuthExpired(reason) = ending else {
            done.ending = ending;
            return self.acknowledge(Some(done)).await;
        };
        self.lock_out(&done.work, reason);
        if self.controls.is_stopped(&done.work.robot) {
            self.hand_back(&done.work);
        } else {
            done.ending = Ending::Another;
        }
        self.acknowledge(Some(done)).await
    }

    /// A server does not let the work in. If it was a credential that was refused, it is not sent
    /// again; robots that have no other are done for this run. Without one, the robot itself is.
    fn lock_out(&mut self, work: &Work, reason: String) {
        let shop = Arc::clone(&self.shop);
        let network = &shop.settings.network;
        let filings = shop.expansion.robots.iter().map(|filing| &filing.robot);
        let mut locked: BTreeSet<Name> = BTreeSet::new();
        match work.credential {
            Some(credential) => {
                let refused = &mut self.controls.refused;
                refused.entry(credential).or_insert_with(|| reason.clone());
                self.lanes.close(credential);
                let is_left = |robot: &Name| {
                    let mut serving = shop.serving(robot);
                    serving.any(|id| !self.controls.is_refused(id))
                };
                let without = filings.filter(|robot| {
                    let sends = network.sends_credential(robot) || **robot == work.robot;
                    sends && !is_left(robot)
                });
                locked.extend(without.cloned());
                locked.extend(self.lanes.stuck_robots());
            }
            None => {
                locked.insert(work.robot.clone());
            }
        }
        if !locked.is_empty() {
            self.controls.locked_out.get_or_insert(reason);
            self.switch_off(locked);
        }
    }

    /// Robots are done for this run.
    pub(crate) fn switch_off(&mut self, robots: impl IntoIterator<Item = Name>) {
        self.controls.stopped.extend(robots);
        self.drop_held_back();
        self.show_controls();
    }

    /// How the run ended, given that robots may have been locked out of it.
    pub(crate) fn with_lock_outs(&self, end: End) -> End {
        match (&self.controls.locked_out, &end) {
            (Some(reason), End::Idle | End::Stopped) => End::AuthExpired(reason.clone()),
            _ => end,
        }
    }

    /// Looks for new commands now and then, and carries them out.
    pub(crate) async fn obey(&mut self) -> Result<(), EngineError> {
        let is_early = |looked: Instant| looked.elapsed() < LOOK_EVERY;
        if self.controls.looked.is_some_and(is_early) {
            return Ok(());
        }
        self.controls.looked = Some(Instant::now());
        let controls = self.shop.store.controls(self.controls.last).await?;
        for control in &controls {
            if self.controls.take(control) {
                self.ended.get_or_insert(End::Stopped);
            }
        }
        // Also later: what was in flight may have to be asked for again.
        self.drop_held_back();
        if controls.is_empty() {
            return Ok(());
        }
        let (_, now) = self.now();
        self.lanes.wake_all(now);
        self.acknowledge_controls(&controls).await?;
        self.show_controls();
        Ok(())
    }

    async fn acknowledge_controls(&self, controls: &[Control]) -> Result<(), EngineError> {
        let commit = Commit {
            at: self.shop.clock.world(),
            controls_done: controls.iter().map(|control| control.id).collect(),
            ..Commit::default()
        };
        self.shop.store.commit(vec![commit]).await?;
        Ok(())
    }

    /// Work of robots that were switched off is forgotten; the store has its subjects. A lookup
    /// that others wait for is not theirs to hold up, even if they are only paused.
    fn drop_held_back(&mut self) {
        let controls = &self.controls;
        if controls.paused.is_empty() && controls.stopped.is_empty() {
            return;
        }
        let dropped = self.lanes.take_out(|work| {
            let is_lookup = work.call.purpose != Purpose::Visit;
            controls.is_stopped(&work.robot) || (is_lookup && controls.is_paused(&work.robot))
        });
        let parked = &mut self.parking;
        let parked = parked.take_out(|parked| controls.is_stopped(&parked.robot));
        for work in &dropped {
            self.hand_back(work);
        }
        let now = self.shop.clock.world();
        for parked in parked {
            let again = Back::Again(now);
            self.frontier.release(&parked.lane, parked.subject, again);
        }
    }

    fn show_controls(&self) {
        let robots = &self.shop.expansion.robots;
        let paused: Vec<Name> = robots
            .iter()
            .filter(|filing| self.controls.is_paused(&filing.robot))
            .map(|filing| filing.robot.clone())
            .collect();
        let stopped = self.controls.stopped.iter().cloned().collect();
        self.progress.update(|shown| {
            shown.paused = paused;
            shown.stopped = stopped;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(id: i64, command: ControlCommand, robot: Option<&str>) -> Control {
        Control {
            id,
            command,
            robot: robot.map(Name::from),
        }
    }

    #[test]
    fn resuming_all_resumes_those_that_were_paused_one_by_one() {
        let mut controls = Controls::default();
        let (likes, posts): (Name, Name) = ("likes".into(), "posts".into());
        controls.take(&control(1, ControlCommand::Pause, Some("likes")));
        assert!(!controls.lets_run(&likes) && controls.lets_run(&posts));
        controls.take(&control(2, ControlCommand::Pause, None));
        assert!(!controls.lets_run(&posts));
        controls.take(&control(3, ControlCommand::Resume, None));
        assert!(controls.lets_run(&likes) && controls.lets_run(&posts));
    }

    #[test]
    fn a_robot_that_was_stopped_is_not_resumed() {
        let mut controls = Controls::default();
        assert!(!controls.take(&control(1, ControlCommand::Stop, Some("likes"))));
        controls.take(&control(2, ControlCommand::Resume, None));
        assert!(!controls.lets_run(&"likes".into()));
        assert!(controls.take(&control(3, ControlCommand::Stop, None)));
    }
}
