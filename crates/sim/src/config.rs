//! What a synthetic network is started with.

use std::net::{Ipv4Addr, SocketAddr};

use crate::{DeclaredLimits, Dialect, Faults};

/// Whether calls beyond the network's limits are refused.
#[derive(Debug, Clone)]
pub enum Limits {
    /// As the real server's: every bucket counts, and refuses when it is full.
    Strict,
    /// As a file says, in place of the real server's.
    Declared(DeclaredLimits),
    /// Nothing is counted against any limit and no limit is announced.
    Off,
}

/// What a synthetic network is started with.
#[derive(Debug, Clone)]
pub struct SimConfig {
    /// Port 0 takes any free one.
    pub listen: SocketAddr,
    /// Whose API it has; instances are Mastodon's alone.
    pub dialect: Dialect,
    pub users: u64,
    pub seed: u64,
    /// World seconds per real second; 0 freezes the world.
    pub speed: f64,
    /// Limit seconds per real second; without it as `speed`, or 1 in a frozen world.
    pub limit_speed: Option<f64>,
    /// What the world's clock shows at the start. The history of posts ends here.
    pub at_us: i64,
    /// What the machine's clock shows at the start.
    pub real_now_us: i64,
    pub limits: Limits,
    /// By how much the clock that the server keeps its limits by is ahead of the one it publishes, in
    /// microseconds of limit time.
    pub clock_skew_us: i64,
    /// How long every answer is held back, after the call was counted.
    pub latency_ms: u64,
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// How long a fault keeps a caller waiting. Callers give up after their own time; a test that
    /// wants to see them give up takes more than that, one that wants to be quick takes less.
    pub stall_ms: u64,
    /// How many instances people are spread over; 1 is one server that everybody is on.
    pub instances: usize,
    /// How many of them are out of order or lie.
    pub troubled_instances: usize,
    /// So many days after the day of the start some users change their habits; nobody does without.
    pub habits_day: Option<i64>,
}

/// Long enough to notice, short enough for tests.
const STALL_MS: u64 = 400;

impl SimConfig {
    /// A frozen world without limits and faults on any free port of this machine.
    pub fn frozen(users: u64, seed: u64, at_us: i64, real_now_us: i64) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            dialect: Dialect::Mastodon,
            users,
            seed,
            speed: 0.0,
            limit_speed: None,
            at_us,
            real_now_us,
            limits: Limits::Off,
            clock_skew_us: 0,
            latency_ms: 0,
            faults: Faults::None,
            stall_ms: STALL_MS,
            instances: 1,
            troubled_instances: 0,
            habits_day: None,
        }
    }
}
