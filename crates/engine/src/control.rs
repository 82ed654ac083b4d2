//! Commands to a running crawl: pause, resume and stop, of all robots or of one.

use crate::EngineError;
use crate::exchange::{Done, Ending};
use crate::scheduler::Scheduler;
use crate::settings::End;
use crate::work::{Purpose, Work};
use kittiwake_model::{Commit, Control, ControlCommand, Name};
use std::collections::{BTreeSet, VecDeque};
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
}

impl Controls {
    pub(crate) fn is_paused(&self, robot: &Name) -> bool {
        self.paused.contains(&None) || self.paused.contains(&Some(robot.clone()))
    }

    pub(crate) fn is_stopped(&self, robot: &Name) -> bool {
        self.stopped.contains(robot)
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

    /// Takes in an exchange that is over. Who is not let in is locked out, which leaves nothing to
    /// reschedule.
    pub(crate) async fn take_answer(&mut self, done: Option<Done>) -> Result<(), EngineError> {
        let done = done.map(|mut done| {
            if let Ending::AuthExpired(reason) = &done.ending {
                self.lock_out(&done.work, reason.clone());
                done.ending = Ending::Finished { due: Vec::new() };
            }
            done
        });
        self.acknowledge(done).await
    }

    /// A server does not let the work in. Its robot is done for this run and, if it was the
    /// credential that was refused, so is everyone who would send it. The others go on.
    fn lock_out(&mut self, work: &Work, reason: String) {
        self.hand_back(work);
        let network = &self.shop.settings.network;
        let is_refused = self.shop.settings.credential.is_some() && work.call.plan.send_credential;
        let filings = self.shop.expansion.robots.iter();
        let locked = filings.map(|filing| &filing.robot).filter(|robot| {
            **robot == work.robot || (is_refused && network.sends_credential(robot))
        });
        self.controls.stopped.extend(locked.cloned());
        self.controls.locked_out.get_or_insert(reason);
        self.drop_held_back();
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
        let mut dropped = Vec::new();
        for queue in self.ready.values_mut() {
            let is_dropped = |work: &Work| {
                let is_lookup = work.call.purpose == Purpose::Resolve;
                controls.is_stopped(&work.robot) || (is_lookup && controls.is_paused(&work.robot))
            };
            let (out, kept) = queue.drain(..).partition::<VecDeque<_>, _>(is_dropped);
            *queue = kept;
            dropped.extend(out);
        }
        for work in &dropped {
            self.hand_back(work);
        }
    }

    fn show_controls(&self) {
        let robots = &self.shop.expansion.robots;
        let paused: Vec<Name> = robots
            .iter()
            .filter(|filing| self.controls.is_paused(&filing.robot))
            .map(|filing| filing.robot.clone())
            .collect();
        self.progress.update(|shown| shown.paused = paused);
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
