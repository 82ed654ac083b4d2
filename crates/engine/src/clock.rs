//! The three clocks of a running crawl.

use kittiwake_model::{ClockSpec, LimitTime, RealTime, WorldTime};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Reads the machine's clock through the function it was given, and computes the others.
#[derive(Clone)]
pub struct Clock {
    spec: ClockSpec,
    real_now: Arc<dyn Fn() -> RealTime + Send + Sync>,
}

impl Clock {
    pub fn new(spec: ClockSpec, real_now: impl Fn() -> RealTime + Send + Sync + 'static) -> Self {
        Self {
            spec,
            real_now: Arc::new(real_now),
        }
    }

    pub fn real(&self) -> RealTime {
        (self.real_now)()
    }

    pub fn world(&self) -> WorldTime {
        self.spec.world_at(self.real())
    }

    pub fn limit(&self) -> LimitTime {
        self.spec.limit_at(self.real())
    }

    /// How long to sleep until the limit clock shows `then`.
    pub fn until_limit(&self, then: LimitTime) -> Duration {
        let wait_us = self.spec.real_us_until(self.limit(), then);
        Duration::from_micros(wait_us.unsigned_abs())
    }

    /// How long to sleep until the world's clock shows `then`; `None` when it never will.
    pub fn until_world(&self, then: WorldTime) -> Option<Duration> {
        let wait_us = self.spec.real_us_until_world(self.world(), then)?;
        Some(Duration::from_micros(wait_us.unsigned_abs()))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Clock")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}
