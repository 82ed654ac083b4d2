//! The network's clocks. The machine's clock is read here and nowhere else.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use kittiwake_model::clock::{
    ClockRate, ClockSpec, EARLIEST_US, LATEST_US, LimitTime, RealTime, WorldTime,
};

use crate::world::World;
use crate::world::time::SECOND_US;
use crate::{SimConfig, SimError};

/// World time and limit time, computed from a published spec and a source of real time.
#[derive(Debug)]
pub(crate) struct Clock {
    started: ClockSpec,
    /// By how much the world's time was moved on since the start.
    advanced_us: AtomicI64,
    /// The same for the time of limits.
    limits_advanced_us: AtomicI64,
    /// By how much the server's own clock of limits is ahead of the published one.
    skew_us: i64,
    real_now_us: fn() -> i64,
}

/// Ten years, by which no window's arithmetic is troubled.
const SKEW_MAX_US: u64 = 315_576_000 * SECOND_US as u64;

impl Clock {
    pub(crate) fn new(config: &SimConfig, real_now_us: fn() -> i64) -> Result<Self, SimError> {
        // Limits of a frozen world still run, or nobody would ever be let in again.
        let default_limit_speed = if config.speed == 0.0 {
            1.0
        } else {
            config.speed
        };
        let started = ClockSpec {
            real_origin_us: config.real_now_us,
            world: ClockRate {
                origin_us: config.at_us,
                rate: config.speed,
            },
            limit: ClockRate {
                origin_us: config.real_now_us,
                rate: config.limit_speed.unwrap_or(default_limit_speed),
            },
        };
        if !started.is_sound() {
            return Err(SimError::Speed);
        }
        if config.clock_skew_us.unsigned_abs() > SKEW_MAX_US {
            return Err(SimError::Skew);
        }
        Ok(Self {
            started,
            skew_us: config.clock_skew_us,
            advanced_us: AtomicI64::new(0),
            limits_advanced_us: AtomicI64::new(0),
            real_now_us,
        })
    }

    pub(crate) fn spec(&self) -> ClockSpec {
        let mut spec = self.started.clone();
        spec.world.origin_us += self.advanced_us.load(Ordering::Relaxed);
        spec.limit.origin_us += self.limits_advanced_us.load(Ordering::Relaxed);
        spec
    }

    /// Moves the world's time on, and the time of limits not. None if the world would be moved
    /// beyond its last instant; then it stays where it is.
    pub(crate) fn advance(&self, seconds: u64) -> Option<ClockSpec> {
        let now_us = self.started.world_at(self.real()).micros();
        move_on(&self.advanced_us, now_us, seconds, World::LAST_US)?;
        Some(self.spec())
    }

    /// The same for the time of limits, and for that alone.
    pub(crate) fn advance_limits(&self, seconds: u64) -> Option<ClockSpec> {
        let now_us = self.started.limit_at(self.real()).micros();
        move_on(&self.limits_advanced_us, now_us, seconds, World::LAST_US)?;
        Some(self.spec())
    }

    pub(crate) fn real(&self) -> RealTime {
        RealTime((self.real_now_us)())
    }

    pub(crate) fn world(&self) -> WorldTime {
        self.spec().world_at(self.real())
    }

    /// What the server's own clock of limits shows.
    pub(crate) fn limit_at(&self, real: RealTime) -> LimitTime {
        let shown = self.spec().limit_at(real).plus_us(self.skew_us);
        LimitTime(shown.micros().clamp(EARLIEST_US, LATEST_US))
    }

    pub(crate) fn limit(&self) -> LimitTime {
        self.limit_at(self.real())
    }
}

/// Adds to what a clock was moved on by, unless that takes it beyond its last instant. `now_us` is
/// what it would show if it had never been moved.
fn move_on(advanced_us: &AtomicI64, now_us: i64, seconds: u64, last_us: i64) -> Option<()> {
    let span_us = i64::try_from(seconds).ok()?.checked_mul(SECOND_US)?;
    advanced_us
        .try_update(Ordering::Relaxed, Ordering::Relaxed, |advanced_us| {
            let moved_us = advanced_us.checked_add(span_us)?;
            (now_us.checked_add(moved_us)? <= last_us).then_some(moved_us)
        })
        .ok()?;
    Some(())
}

/// The machine's clock. Everybody who holds the spec reads the same one, in other processes too,
/// so it cannot be a clock of this process alone.
pub(crate) fn machine_now_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
        })
}
