//! Of what windows permit, how much was used.

use crate::network::Ledger;
use crate::run::Measured;
use std::collections::HashMap;

/// A limit that is measured.
pub(crate) struct Limit<'a> {
    pub(crate) bucket: &'a str,
    pub(crate) calls_max: u64,
    pub(crate) window_us: i64,
    /// All whom it counts for, also those who never called.
    pub(crate) scopes: Vec<&'a str>,
}

/// The use of a limit over all its windows and all whom it counts for.
#[derive(Debug, PartialEq)]
pub(crate) struct Share {
    pub(crate) windows: usize,
    pub(crate) overall: f64,
    pub(crate) worst: f64,
}

/// Windows that lie fully inside what is measured. One without a call is not in the ledger, and
/// counts as one that was not used.
pub(crate) fn share(ledger: &Ledger, limit: &Limit<'_>, measured: Measured) -> Share {
    let used: HashMap<(&str, i64), u64> = ledger
        .windows
        .iter()
        .filter(|window| window.bucket == limit.bucket)
        .map(|window| ((window.scope.as_str(), window.start_us), window.used))
        .collect();
    let first_us = measured.start.micros();
    let count = measured.end.since_us(measured.start) / limit.window_us;
    let mut shares = Vec::new();
    for scope in &limit.scopes {
        for number in 0..count {
            let start_us = first_us + number * limit.window_us;
            let used = used.get(&(*scope, start_us)).copied().unwrap_or(0);
            shares.push(used as f64 / limit.calls_max as f64);
        }
    }
    Share {
        windows: shares.len(),
        overall: shares.iter().sum::<f64>() / shares.len() as f64,
        worst: shares.iter().copied().fold(f64::INFINITY, f64::min),
    }
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
