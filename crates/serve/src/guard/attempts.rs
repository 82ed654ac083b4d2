//! How often passwords may be tried. Pure: the time is an argument.

use kittiwake_model::RealTime;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// Tries in a row that an address has, and how long one takes to come back.
const OWN_MAX: f64 = 10.0;
const OWN_BACK_US: f64 = 60e6;
/// The same for everybody together: slow enough that many addresses are of no use, and quick enough that
/// nobody is kept out by others for long.
const ALL_MAX: f64 = 60.0;
const ALL_BACK_US: f64 = 1e6;
/// Addresses that are remembered. Whoever was away the longest has the most tries back anyway.
const ADDRESSES_MAX: usize = 10_000;

/// Tries that are left, and as of when.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: RealTime,
}

impl Bucket {
    const fn full(max: f64, at: RealTime) -> Self {
        Self { left: max, at }
    }

    /// Fills up what came back since.
    fn fill(&mut self, max: f64, back_us: f64, now: RealTime) {
        let came_back = now.since_us(self.at).max(0) as f64 / back_us;
        self.left = (self.left + came_back).min(max);
        self.at = now;
    }

    fn wait(&self, back_us: f64) -> Duration {
        let missing = (1.0 - self.left).max(0.0);
        Duration::from_micros((missing * back_us).ceil() as u64)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Attempts {
    by_address: HashMap<IpAddr, Bucket>,
    all: Option<Bucket>,
}

impl Attempts {
    /// Whether somebody may try now; how long they have to wait otherwise.
    pub(crate) fn admit(&mut self, from: IpAddr, now: RealTime) -> Result<(), Duration> {
        let all = self.all.get_or_insert(Bucket::full(ALL_MAX, now));
        all.fill(ALL_MAX, ALL_BACK_US, now);
        let from = block(from);
        if self.by_address.len() >= ADDRESSES_MAX && !self.by_address.contains_key(&from) {
            let longest_away = self.by_address.iter().min_by_key(|(_, bucket)| bucket.at);
            if let Some(address) = longest_away.map(|(address, _)| *address) {
                self.by_address.remove(&address);
            }
        }
        let own = self
            .by_address
            .entry(from)
            .or_insert(Bucket::full(OWN_MAX, now));
        own.fill(OWN_MAX, OWN_BACK_US, now);
        if own.left < 1.0 {
            return Err(own.wait(OWN_BACK_US));
        }
        if all.left < 1.0 {
            return Err(all.wait(ALL_BACK_US));
        }
        own.left -= 1.0;
        all.left -= 1.0;
        Ok(())
    }

    /// Whoever knows the password has made no mistakes.
    pub(crate) fn succeeded(&mut self, from: IpAddr) {
        self.by_address.remove(&block(from));
    }
}

/// Whoever has one address of IPv6 has a whole block of them.
fn block(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn whoever_fails_waits_and_others_do_not() {
        let mut attempts = Attempts::default();
        let now = RealTime(0);
        for _ in 0..OWN_MAX as u32 {
            assert!(attempts.admit(address(1), now).is_ok());
        }
        assert_eq!(
            attempts.admit(address(1), now),
            Err(Duration::from_secs(60))
        );
        assert!(attempts.admit(address(2), now).is_ok());
        assert!(attempts.admit(address(1), RealTime(60_000_000)).is_ok());
        attempts.succeeded(address(1));
        assert!(attempts.admit(address(1), RealTime(60_000_001)).is_ok());
    }

    #[test]
    fn many_addresses_together_are_no_quicker() {
        let mut attempts = Attempts::default();
        let admitted = (0..1_000)
            .filter(|number| attempts.admit(address(*number), RealTime(0)).is_ok())
            .count();
        assert_eq!(admitted, ALL_MAX as usize);
        assert!(attempts.admit(address(5_000), RealTime(1_000_000)).is_ok());
    }

    #[test]
    fn a_block_of_ipv6_is_one_address_and_memory_stays_small() {
        let mut attempts = Attempts::default();
        for number in 0..OWN_MAX as u16 {
            let from = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number));
            assert!(attempts.admit(from, RealTime(0)).is_ok());
        }
        let another: IpAddr = "2001:db8::ffff".parse().unwrap();
        assert!(attempts.admit(another, RealTime(0)).is_err());
        for number in 0..ADDRESSES_MAX as u32 + 10 {
            let _ = attempts.admit(address(number), RealTime(0));
        }
        assert!(attempts.by_address.len() <= ADDRESSES_MAX);
    }
}
