//! What is known of a host beside its limits: what its clock shows, and how it bears being asked. It
//! is remembered from one run to the next.

use super::skew::Skew;
use super::{First, Purse};
use crate::EngineError;
use kittiwake_model::LimitTime;
use kittiwake_network::{Bearing, Gait, Politeness};
use kittiwake_store::ledger::Lesson;

/// Where what is known of the server's clock is kept, and how well it was known when it was.
#[derive(Debug)]
pub(super) struct ClockKept {
    pub(super) topics: [String; 2],
    pub(super) doubt_us: i64,
}

/// How quickly a host is asked whose limits nobody has written down, and where that is remembered.
#[derive(Debug)]
pub(super) struct Polite {
    pub(super) gait: Gait,
    pub(super) topic: String,
}

/// What a wait for a host's sake is called.
pub(super) const POLITENESS: &str = "politeness";

impl Purse {
    /// Recalls what an earlier run found out of the clock of this host, and what this one finds out
    /// is kept for the next.
    pub(crate) async fn recall_clock(&mut self, host: &str) -> Result<(), EngineError> {
        let topics = [format!("clock-least {host}"), format!("clock-most {host}")];
        self.clock_kept = Some(ClockKept {
            topics,
            doubt_us: i64::MAX,
        });
        self.read_clock().await
    }

    /// What any process has found out of the clock of this host.
    pub(super) async fn read_clock(&mut self) -> Result<(), EngineError> {
        let (Some(ClockKept { topics, .. }), Some(ledger)) = (&self.clock_kept, &self.ledger)
        else {
            return Ok(());
        };
        let now = self.clock.limit();
        let known = ledger.lessons("clock-").await?;
        let find = |topic: &String| known.iter().find(|lesson| lesson.topic == *topic);
        if let (Some(least), Some(most)) = (find(&topics[0]), find(&topics[1])) {
            self.skew = Skew::remembered(least.number, most.number, least.at, now);
            self.first = First::Answered;
        }
        Ok(())
    }

    /// Keeps what is known of the server's clock, whenever it is known twice as well.
    pub(super) async fn remember_clock(&mut self) -> Result<(), EngineError> {
        let doubt_us = self.skew.doubt_us();
        let (Some(kept), Some(ledger)) = (&mut self.clock_kept, &self.ledger) else {
            return Ok(());
        };
        if doubt_us > kept.doubt_us / 2 {
            return Ok(());
        }
        kept.doubt_us = doubt_us;
        let (least_us, most_us) = self.skew.bounds();
        let at = self.clock.limit();
        for (topic, number) in kept.topics.iter().zip([least_us, most_us]) {
            let topic = topic.clone();
            ledger.learn(Lesson { topic, number, at }).await?;
        }
        Ok(())
    }

    /// The host is asked politely, as was learnt at this hour of the day before.
    pub(crate) async fn be_polite(
        &mut self,
        rule: Politeness,
        host: &str,
    ) -> Result<(), EngineError> {
        let Some(ledger) = &self.ledger else {
            return Ok(());
        };
        let hour = self
            .clock
            .limit()
            .0
            .div_euclid(3_600_000_000)
            .rem_euclid(24);
        let topic = format!("rate {host} hour {hour:02}");
        let lessons = ledger.lessons(&topic).await?;
        // Another hour's word is better than none.
        let any = ledger.lessons(&format!("rate {host} hour ")).await?;
        let known = lessons
            .first()
            .or_else(|| any.iter().min_by_key(|it| it.number));
        let learnt = known.map(|lesson| lesson.number as f64 / 1e6);
        let gait = Gait::new(rule, learnt);
        self.polite = Some(Polite { gait, topic });
        Ok(())
    }

    /// The same from now on, at another pace, after a call that was just made.
    pub(crate) async fn change_pace(
        &mut self,
        rule: Politeness,
        host: &str,
    ) -> Result<(), EngineError> {
        self.be_polite(rule, host).await?;
        let now = self.clock.limit();
        if let Some(polite) = &mut self.polite {
            polite.gait.sent(now);
        }
        Ok(())
    }

    /// An answer tells how the host bears it; what is learnt is remembered.
    pub(super) async fn bear(
        &mut self,
        sent: LimitTime,
        bearing: Bearing,
    ) -> Result<(), EngineError> {
        let now = self.clock.limit();
        let (Some(polite), Some(ledger)) = (&mut self.polite, &self.ledger) else {
            return Ok(());
        };
        if !polite.gait.heard(now, now.since_us(sent), bearing) {
            return Ok(());
        }
        let lesson = Lesson {
            topic: polite.topic.clone(),
            number: (polite.gait.per_second() * 1e6) as i64,
            at: now,
        };
        Ok(ledger.learn(lesson).await?)
    }
}
