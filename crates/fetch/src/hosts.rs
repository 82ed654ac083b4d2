//! How many exchanges one host may have at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use url::Url;

/// Below this many entries the table is not swept.
const SWEEP_AT_MIN: usize = 1024;

/// One semaphore per host and port in use. The table holds weak references only, so a host that
/// is not being talked to costs a dead entry until the next sweep: a crawl that meets a million
/// hosts does not keep a million of them.
#[derive(Debug)]
pub(crate) struct HostSlots {
    per_host_max: usize,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    semaphores: HashMap<String, Weak<Semaphore>>,
    sweep_at: usize,
}

impl HostSlots {
    pub(crate) fn new(per_host_max: usize) -> Self {
        let table = Table {
            semaphores: HashMap::new(),
            sweep_at: SWEEP_AT_MIN,
        };
        Self {
            per_host_max,
            table: Mutex::new(table),
        }
    }

    /// Waits, in order of arrival, until the host has a free slot.
    pub(crate) async fn acquire(&self, key: &str) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.semaphore(key).acquire_owned().await
    }

    fn semaphore(&self, key: &str) -> Arc<Semaphore> {
        // The table is whole after every statement, so a panic elsewhere does not spoil it.
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(semaphore) = table.semaphores.get(key).and_then(Weak::upgrade) {
            return semaphore;
        }
        if table.semaphores.len() >= table.sweep_at {
            table
                .semaphores
                .retain(|_, semaphore| semaphore.strong_count() > 0);
            table.sweep_at = (table.semaphores.len() * 2).max(SWEEP_AT_MIN);
        }
        let semaphore = Arc::new(Semaphore::new(self.per_host_max));
        table
            .semaphores
            .insert(key.to_owned(), Arc::downgrade(&semaphore));
        semaphore
    }
}

/// What counts as one host: its name and port.
pub(crate) fn host_key(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    format!("{host}:{}", url.port_or_known_default().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_are_done_with_are_forgotten() {
        let slots = HostSlots::new(2);
        for number in 0..10 * SWEEP_AT_MIN {
            drop(slots.semaphore(&format!("host{number}")));
        }
        assert!(slots.table.lock().unwrap().semaphores.len() <= SWEEP_AT_MIN);
    }

    #[test]
    fn a_host_in_use_keeps_its_semaphore() {
        let slots = HostSlots::new(2);
        let held = slots.semaphore("held");
        for number in 0..2 * SWEEP_AT_MIN {
            drop(slots.semaphore(&format!("host{number}")));
        }
        assert!(Arc::ptr_eq(&held, &slots.semaphore("held")));
    }

    #[test]
    fn a_host_is_host_and_port() {
        let key = |url: &str| host_key(&Url::parse(url).unwrap());
        assert_eq!(key("https://a.example/x"), key("https://a.example:443/y?z"));
        assert_ne!(key("https://a.example/"), key("https://a.example:8443/"));
    }
}
