//! Three clocks, never mixed.
//!
//! *World time* dates observations, due times and history; *limit time* dates budgets,
//! `Retry-After` and backoff; *real time* is for sockets and leases. Outside tests the three are
//! one. A synthetic network runs its world and its limits at speeds of its own and publishes a
//! [`ClockSpec`]; everybody who holds the spec computes the same times from the real time alone.

use serde::{Deserialize, Serialize};

/// The earliest instant that is stored: 0001-01-01T00:00:00Z.
pub const EARLIEST_US: i64 = -62_135_596_800_000_000;
/// The latest instant that is stored: 9999-12-30T22:00:00Z. Some date libraries refuse the last
/// hours of the year 9999, so those are clamped as well.
pub const LATEST_US: i64 = 253_402_207_200_000_000;

macro_rules! instant {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl $name {
            /// Microseconds since 1970-01-01T00:00:00Z.
            pub const fn micros(self) -> i64 {
                self.0
            }

            #[must_use]
            pub const fn plus_us(self, span_us: i64) -> Self {
                Self(self.0.saturating_add(span_us))
            }

            /// Microseconds from `earlier` to this instant; negative when this one is earlier.
            pub const fn since_us(self, earlier: Self) -> i64 {
                self.0.saturating_sub(earlier.0)
            }
        }
    };
}

instant! {
    /// An instant of the crawled world, in microseconds UTC.
    WorldTime
}
instant! {
    /// An instant of the limits' clock, in microseconds UTC.
    LimitTime
}
instant! {
    /// An instant of the machine's own clock, in microseconds UTC.
    RealTime
}

/// How one clock runs: at `origin_us` when the machine's clock shows `ClockSpec::real_origin_us`,
/// and `rate` times as quick from there on. A rate of 0 is a frozen clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockRate {
    pub origin_us: i64,
    pub rate: f64,
}

impl ClockRate {
    /// The real microseconds in which this clock moves on by a span; 0 when it is over.
    fn real_us_for(self, span_us: i64) -> i64 {
        // The real clock must come through to the microsecond; a float would round it.
        if span_us <= 0 || self.rate.to_bits() == 1.0_f64.to_bits() {
            return span_us.max(0);
        }
        (span_us as f64 / self.rate).ceil() as i64
    }
}

/// Where world time and limit time come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockSpec {
    pub real_origin_us: i64,
    pub world: ClockRate,
    pub limit: ClockRate,
}

impl ClockSpec {
    /// The machine's own clock for all three.
    pub const fn real() -> Self {
        let same = ClockRate {
            origin_us: 0,
            rate: 1.0,
        };
        Self {
            real_origin_us: 0,
            world: same,
            limit: same,
        }
    }

    pub fn is_real(&self) -> bool {
        *self == Self::real()
    }

    /// Whether the numbers can be computed with: finite, not running backwards, origins in range.
    pub fn is_sound(&self) -> bool {
        let sound = |clock: ClockRate| {
            clock.rate.is_finite()
                && (0.0..=1e9).contains(&clock.rate)
                && (EARLIEST_US..=LATEST_US).contains(&clock.origin_us)
        };
        sound(self.world)
            && sound(self.limit)
            && self.limit.rate > 0.0
            && (EARLIEST_US..=LATEST_US).contains(&self.real_origin_us)
    }

    pub fn world_at(&self, real: RealTime) -> WorldTime {
        WorldTime(self.project(self.world, real))
    }

    pub fn limit_at(&self, real: RealTime) -> LimitTime {
        LimitTime(self.project(self.limit, real))
    }

    /// How long the machine waits until the limit clock shows `then`, in real microseconds.
    pub fn real_us_until(&self, now: LimitTime, then: LimitTime) -> i64 {
        self.limit.real_us_for(then.since_us(now))
    }

    /// The same for the world's clock; `None` when it stands still and will never show `then`.
    pub fn real_us_until_world(&self, now: WorldTime, then: WorldTime) -> Option<i64> {
        let is_to_come = then > now;
        (self.world.rate > 0.0 || !is_to_come).then(|| self.world.real_us_for(then.since_us(now)))
    }

    fn project(&self, clock: ClockRate, real: RealTime) -> i64 {
        let elapsed_us = real.0.saturating_sub(self.real_origin_us);
        // The real clock must come through to the microsecond; a float would round it.
        if clock.rate.to_bits() == 1.0_f64.to_bits() {
            return clock
                .origin_us
                .saturating_add(elapsed_us)
                .clamp(EARLIEST_US, LATEST_US);
        }
        let moved_us = (elapsed_us as f64 * clock.rate) as i64;
        clock
            .origin_us
            .saturating_add(moved_us)
            .clamp(EARLIEST_US, LATEST_US)
    }
}

/// Clamps an instant from outside into the range that is stored; `true` if it had to be moved.
pub fn clamp_us(at_us: i64) -> (i64, bool) {
    let clamped_us = at_us.clamp(EARLIEST_US, LATEST_US);
    (clamped_us, clamped_us != at_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_clock_is_exact_to_the_microsecond() {
        let now = RealTime(1_800_000_000_123_457);
        assert_eq!(ClockSpec::real().world_at(now), WorldTime(now.0));
        assert_eq!(ClockSpec::real().limit_at(now), LimitTime(now.0));
    }

    #[test]
    fn a_frozen_world_stands_still_while_limits_run() {
        let spec = ClockSpec {
            real_origin_us: 1_000,
            world: ClockRate {
                origin_us: 50,
                rate: 0.0,
            },
            limit: ClockRate {
                origin_us: 70,
                rate: 100.0,
            },
        };
        assert!(spec.is_sound());
        assert_eq!(spec.world_at(RealTime(9_000)), WorldTime(50));
        assert_eq!(spec.limit_at(RealTime(1_010)), LimitTime(1_070));
        assert_eq!(spec.real_us_until(LimitTime(0), LimitTime(1_000)), 10);
        assert_eq!(
            spec.real_us_until_world(WorldTime(50), WorldTime(51)),
            None,
            "it never comes"
        );
        assert_eq!(
            spec.real_us_until_world(WorldTime(50), WorldTime(50)),
            Some(0)
        );
    }

    #[test]
    fn a_quick_world_is_waited_for_as_long_as_it_really_takes() {
        let mut spec = ClockSpec::real();
        let until = |spec: &ClockSpec, then| spec.real_us_until_world(WorldTime(10), then);
        assert_eq!(until(&spec, WorldTime(1_010)), Some(1_000));
        spec.world.rate = 150.0;
        assert_eq!(until(&spec, WorldTime(1_510)), Some(10));
        assert_eq!(until(&spec, WorldTime(5)), Some(0), "it is over");
    }

    #[test]
    fn far_instants_are_clamped_and_flagged() {
        assert_eq!(clamp_us(i64::MAX), (LATEST_US, true));
        assert_eq!(clamp_us(0), (0, false));
    }
}
