//! The bounds of every exchange.

use std::time::Duration;

use crate::error::FetchError;

/// Longer than any exchange anybody waits for.
const TIMEOUT_MAX: Duration = Duration::from_hours(24);

/// How a [`crate::Fetcher`] behaves. Every value is a bound; none can be switched off.
#[derive(Debug, Clone)]
pub struct FetchConfig {
    /// Sent with every request. Should name a contact for hosts one does not own.
    pub user_agent: String,
    /// For name, TCP and TLS together.
    pub connect_timeout: Duration,
    /// From sending to the last byte of the body. Waiting for our own bounds (a slot of the host,
    /// a share of the byte budget) does not count: that is not the server's fault.
    pub total_timeout: Duration,
    /// Between two pieces of a body. The wait for the first byte is bounded by `total_timeout`
    /// only: a search may think for long before it answers.
    pub idle_timeout: Duration,
    /// For one body after decompression.
    pub body_bytes_max: usize,
    /// For the body of a request that says how long it may be ([`crate::Request::body_bytes_max`]).
    /// One that may be longer than `body_bytes_max` may take longer to arrive in the same measure.
    pub long_body_bytes_max: usize,
    /// For all bodies in flight together, until their [`crate::BodyPermit`] is dropped. At least as
    /// much as one body may have.
    pub bodies_in_flight_bytes_max: usize,
    /// For names and values of an answer's headers together.
    pub header_bytes_max: usize,
    /// Exchanges at once with one host and port.
    pub per_host_max: usize,
}

impl Default for FetchConfig {
    fn default() -> Self {
        Self {
            user_agent: concat!("kittiwake/", env!("CARGO_PKG_VERSION")).to_owned(),
            connect_timeout: Duration::from_secs(10),
            total_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(10),
            body_bytes_max: 16 * 1024 * 1024,
            long_body_bytes_max: 96 * 1024 * 1024,
            bodies_in_flight_bytes_max: 160 * 1024 * 1024,
            header_bytes_max: 64 * 1024,
            per_host_max: 8,
        }
    }
}

impl FetchConfig {
    /// What the largest of all bodies may have.
    pub(crate) fn largest_body_bytes(&self) -> usize {
        self.body_bytes_max.max(self.long_body_bytes_max)
    }

    /// What one body may have, if its request says something of it.
    pub(crate) fn body_bytes(&self, asked: Option<usize>) -> usize {
        asked.map_or(self.body_bytes_max, |asked| {
            asked.min(self.largest_body_bytes())
        })
    }

    /// How much longer than any other exchange one may take whose body may be so long.
    pub(crate) fn more_time(&self, body_bytes: usize) -> Duration {
        let times = body_bytes.div_ceil(self.body_bytes_max).saturating_sub(1);
        let times = u32::try_from(times).unwrap_or(u32::MAX);
        self.total_timeout.saturating_mul(times).min(TIMEOUT_MAX)
    }

    pub(crate) fn check(&self) -> Result<(), FetchError> {
        let timeouts = [self.connect_timeout, self.total_timeout, self.idle_timeout];
        let problem = if timeouts
            .iter()
            .any(|timeout| timeout.is_zero() || *timeout > TIMEOUT_MAX)
        {
            "each time-out must be above 0 and at most a day"
        } else if self.per_host_max == 0 {
            "per_host_max must be at least 1"
        } else if self.body_bytes_max == 0 {
            "body_bytes_max must be at least 1"
        } else if self.bodies_in_flight_bytes_max < self.largest_body_bytes() {
            "bodies_in_flight_bytes_max must be at least body_bytes_max and long_body_bytes_max"
        } else if u32::try_from(self.bodies_in_flight_bytes_max / 1024).is_err() {
            "bodies_in_flight_bytes_max must be below 4 TiB"
        } else {
            return Ok(());
        };
        Err(FetchError::Setup {
            reason: problem.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid_and_impossible_bounds_are_refused() {
        assert!(FetchConfig::default().check().is_ok());
        for wrong in [
            FetchConfig {
                idle_timeout: Duration::ZERO,
                ..FetchConfig::default()
            },
            FetchConfig {
                total_timeout: Duration::MAX,
                ..FetchConfig::default()
            },
            FetchConfig {
                per_host_max: 0,
                ..FetchConfig::default()
            },
            FetchConfig {
                body_bytes_max: 0,
                ..FetchConfig::default()
            },
            FetchConfig {
                bodies_in_flight_bytes_max: 1024,
                ..FetchConfig::default()
            },
            FetchConfig {
                bodies_in_flight_bytes_max: 32 * 1024 * 1024,
                ..FetchConfig::default()
            },
        ] {
            assert!(wrong.check().is_err());
        }
    }

    #[test]
    fn a_request_may_have_a_longer_body_within_bounds_and_longer_time_for_it() {
        const MIB: usize = 1024 * 1024;
        let config = FetchConfig::default();
        for (asked, bytes, more_s) in [
            (None, 16 * MIB, 0),
            (Some(MIB), MIB, 0),
            (Some(16 * MIB), 16 * MIB, 0),
            (Some(40 * MIB), 40 * MIB, 60),
            (Some(96 * MIB), 96 * MIB, 150),
            (Some(usize::MAX), 96 * MIB, 150),
        ] {
            assert_eq!(config.body_bytes(asked), bytes);
            assert_eq!(config.more_time(bytes), Duration::from_secs(more_s));
        }
    }
}
