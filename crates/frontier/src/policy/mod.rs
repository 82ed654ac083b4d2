//! Policies: from what a visit found to the time of the next one.
//!
//! A policy has a small state per (subject, robot), kept in the store's frontier row, and a shared
//! state for the whole population. It answers one question: the earliest time at which visiting
//! the subject can be worth the price of a call.

mod round_robin;

pub use round_robin::RoundRobin;

use kittiwake_model::WorldTime;

/// The most bytes that a policy may keep per subject and robot.
pub const STATE_BYTES_MAX: usize = 64;

/// A policy's memory of one subject, as the frontier row keeps it. Empty before the first visit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State(Vec<u8>);

/// The bytes do not fit into a frontier row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a policy's state of {0} bytes is larger than the {STATE_BYTES_MAX} bytes of a frontier row"
)]
pub struct StateTooLarge(pub usize);

impl State {
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, StateTooLarge> {
        if bytes.len() > STATE_BYTES_MAX {
            return Err(StateTooLarge(bytes.len()));
        }
        Ok(Self(bytes))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// What a policy knows of the whole population.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shared(pub Vec<u8>);

/// What one visit found.
#[derive(Debug, Clone, Copy)]
pub struct Visit<'a> {
    pub at: WorldTime,
    /// When the posts that it brought were made, in no particular order.
    pub posts: &'a [WorldTime],
}

/// Decides when a subject is due again.
pub trait Policy: Send + Sync + std::fmt::Debug {
    /// The name on the command line.
    fn name(&self) -> &'static str;

    /// Takes in what a visit found.
    fn observe(&self, shared: &mut Shared, state: &mut State, visit: &Visit<'_>);

    /// The earliest time at which the subject's index can reach `price`.
    fn due(&self, shared: &Shared, state: &State, price: f64, now: WorldTime) -> WorldTime;

    /// Re-estimates what is known of the population; called now and then.
    fn epoch(&self, shared: &mut Shared);
}
