//! Instances that are out of order, or lie.

use std::time::Duration;

use serde::Serialize;

use super::Plan;
use crate::wire::{Ending, Script, Step};
use crate::world::feistel::Permutation;

/// A page for people, as it comes from a proxy whose server is gone.
pub(crate) const BAD_GATEWAY: &str =
    "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>";
/// A slow answer takes one part in so many of what a fault keeps a caller waiting.
const SLOW_PART: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trouble {
    /// Says untrue things about others, and leads to where nobody should go.
    Lying,
    /// Answers every call with 502.
    BadGateway,
    /// Answers everything late.
    Slow,
    /// Takes every call and answers none.
    Silent,
    /// Closes every connection instead of an answer.
    Closing,
}

impl Trouble {
    /// In the order in which they are dealt out.
    const ALL: [Self; 5] = [
        Self::Lying,
        Self::BadGateway,
        Self::Slow,
        Self::Silent,
        Self::Closing,
    ];

    /// The trouble of an instance. The first one, which has the most people, never has any.
    pub(super) fn of(plan: Plan, number: usize) -> Option<Self> {
        let others = plan.instances.checked_sub(1).filter(|&others| others > 0)?;
        let place = number.checked_sub(1)?;
        let dealt = Permutation::new(plan.seed, 7, others as u64).forward(place as u64) as usize;
        (dealt < plan.troubled).then(|| Self::ALL[dealt % Self::ALL.len()])
    }

    /// How long every answer is held back.
    pub(crate) fn delay(self, stall: Duration) -> Option<Duration> {
        (self == Self::Slow).then(|| stall / SLOW_PART)
    }

    /// What is put on the wire instead of any answer.
    pub(crate) fn script(self, stall: Duration) -> Option<Script> {
        let (steps, ending) = match self {
            Self::Silent => (vec![Step::Wait(stall)], Ending::Reset),
            Self::Closing => (Vec::new(), Ending::Close),
            Self::Lying | Self::BadGateway | Self::Slow => return None,
        };
        Some(Script {
            steps: steps.into(),
            ending,
            stay: None,
        })
    }
}
