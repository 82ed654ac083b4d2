//! All instances behind one listener, and who was called by a name that none of them has.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::fediverse::{Canary, Instance};
use crate::http::Shared;

/// Names that are told apart; calls by others are counted together.
const STRANGERS_MAX: usize = 1_000;
const STRANGER_BYTES_MAX: usize = 255;
const OTHER_STRANGERS: &str = "(others)";

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Hub {
    /// One if everybody is on one server; never none.
    all: Vec<Arc<Shared>>,
    by_host: HashMap<String, usize>,
    strangers: Mutex<BTreeMap<String, u64>>,
    canary: Option<Canary>,
}

impl Hub {
    pub(crate) fn new(all: Vec<Arc<Shared>>, canary: Option<Canary>) -> Self {
        let hosts = all.iter().enumerate().filter_map(|(number, shared)| {
            let instance = shared.instance.as_ref()?;
            Some((instance.host().to_owned(), number))
        });
        Self {
            by_host: hosts.collect(),
            all,
            strangers: Mutex::default(),
            canary,
        }
    }

    /// What is the same for all instances is asked of the first.
    pub(crate) fn first(&self) -> &Arc<Shared> {
        &self.all[0]
    }

    pub(crate) fn all(&self) -> &[Arc<Shared>] {
        &self.all
    }

    pub(crate) fn is_fediverse(&self) -> bool {
        self.first().instance.is_some()
    }

    pub(crate) fn instances(&self) -> Vec<&Instance> {
        self.all
            .iter()
            .filter_map(|shared| shared.instance.as_ref())
            .collect()
    }

    pub(crate) const fn canary(&self) -> Option<&Canary> {
        self.canary.as_ref()
    }

    /// The instance that is called by a host header. One server alone answers to every name; none
    /// of several answers to a name that is not its own.
    pub(crate) fn called(&self, host: &str) -> Option<&Arc<Shared>> {
        if !self.is_fediverse() {
            return Some(self.first());
        }
        let number = self.by_host.get(&host.to_ascii_lowercase())?;
        self.all.get(*number)
    }

    /// The instance with a name, with or without a port or a domain: `i03` will do.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Shared>> {
        self.all.iter().find(|shared| {
            let host = shared.instance.as_ref().map_or("", Instance::host);
            host == name
                || without_port(host) == name
                || host.split('.').next() == Some(name) && !name.is_empty()
        })
    }

    pub(crate) fn note_stranger(&self, host: &str) {
        let mut strangers = self.strangers();
        let is_kept = strangers.contains_key(host)
            || (strangers.len() < STRANGERS_MAX && host.len() <= STRANGER_BYTES_MAX);
        let name = if is_kept { host } else { OTHER_STRANGERS };
        *strangers.entry(name.to_owned()).or_default() += 1;
    }

    pub(crate) fn strangers(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        // The table is whole after every statement.
        self.strangers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether any of some patterns, with commas between them, fits a host with or without its port.
pub(crate) fn is_among(patterns: &str, host: &str) -> bool {
    patterns
        .split(',')
        .map(str::trim)
        .any(|pattern| fits(pattern, host) || fits(pattern, without_port(host)))
}

fn without_port(host: &str) -> &str {
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

/// Whether a text fits a pattern in which `*` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((before, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(before) else {
        return false;
    };
    let Some((middles, last)) = rest.rsplit_once('*') else {
        return text.ends_with(rest);
    };
    let Some(mut left) = text.strip_suffix(last) else {
        return false;
    };
    // The first place that a part fits leaves the most for the others.
    middles.split('*').all(|middle| match left.find(middle) {
        Some(place) => {
            left = &left[place + middle.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_hosts_with_and_without_ports() {
        let host = "i03.localhost:3000";
        for patterns in [
            "*",
            "i03.localhost",
            "i03.*",
            "x, *.localhost",
            "*:3000",
            "i*o*st*",
            "i0*.localhost:3000",
        ] {
            assert!(is_among(patterns, host), "{patterns}");
        }
        for patterns in [
            "",
            "i03",
            "i04.*",
            "*.local",
            "localhost",
            "i*x*",
            "i03.localhost:3001",
        ] {
            assert!(!is_among(patterns, host), "{patterns}");
        }
    }
}
