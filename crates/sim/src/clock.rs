//! The network's clocks. The machine's clock is read here and nowhere else.

use std::time::{SystemTime, UNIX_EPOCH};

use kittiwake_model::clock::{ClockRate, ClockSpec, LimitTime, RealTime, WorldTime};

use crate::{SimConfig, SimError};

/// World time and limit time, computed from a published spec and a source of real time.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    spec: ClockSpec,
    real_now_us: fn() -> i64,
}

impl Clock {
    pub(crate) fn new(config: &SimConfig, real_now_us: fn() -> i64) -> Result<Self, SimError> {
        // Limits of a frozen world still run, or nobody would ever be let in again.
        let default_limit_speed = if config.speed == 0.0 {
            1.0
        } else {
            config.speed
        };
        let spec = ClockSpec {
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
        if !spec.is_sound() {
            return Err(SimError::Speed);
        }
        Ok(Self { spec, real_now_us })
    }

    pub(crate) const fn spec(&self) -> &ClockSpec {
        &self.spec
    }

    pub(crate) fn real(&self) -> RealTime {
        RealTime((self.real_now_us)())
    }

    pub(crate) fn world(&self) -> WorldTime {
        self.spec.world_at(self.real())
    }

    pub(crate) fn limit_at(&self, real: RealTime) -> LimitTime {
        self.spec.limit_at(real)
    }
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
