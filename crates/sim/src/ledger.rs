//! What was asked for: every call in order, summed up by what it asked, and every violation.
//!
//! Bounded: beyond the caps calls are still counted, but no longer told apart.

use std::collections::HashMap;
use std::sync::Arc;

use kittiwake_model::clock::{LimitTime, RealTime};
use serde::Serialize;

use crate::faults::Kind;
use crate::limits::BucketName;

/// Different calls that are told apart.
const ENTRIES_MAX: usize = 2_000_000;
/// What the texts of all entries may take together.
const ENTRIES_BYTES_MAX: usize = 1 << 29;
/// Calls that are kept in order.
const CALLS_MAX: usize = 4_000_000;
const VIOLATIONS_MAX: usize = 10_000;
/// Calls in one answer.
const CALLS_PER_PAGE_MAX: usize = 100_000;

/// What a call asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Asked {
    pub(crate) query: &'static str,
    pub(crate) subject: String,
    /// The paging parameters, `max_id=…&since_id=…`; empty for a first page.
    pub(crate) cursor: String,
    /// Path and query exactly as sent.
    pub(crate) target: String,
    pub(crate) credential: String,
}

impl Asked {
    const fn bytes(&self) -> usize {
        self.subject.len() + self.cursor.len() + self.target.len() + self.credential.len()
    }
}

#[derive(Debug, Clone, Copy)]
struct CallRecord {
    real_us: i64,
    limit_us: i64,
    entry: u32,
    status: u16,
    fault: Option<Kind>,
}

/// A call that a bucket refused.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Violation {
    seq: u64,
    limit_us: i64,
    bucket: BucketName,
    #[serde(flatten)]
    asked: Arc<Asked>,
}

#[derive(Debug, Serialize)]
pub(crate) struct EntryRow<'a> {
    #[serde(flatten)]
    asked: &'a Asked,
    count: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct CallRow<'a> {
    seq: u64,
    real_us: i64,
    limit_us: i64,
    #[serde(flatten)]
    asked: &'a Asked,
    /// 0 while the call has not been answered, or when it never was.
    status: u16,
    /// The fault that the call met. One that it was refused by is no violation.
    fault: Option<Kind>,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    entries_max: usize,
    calls_max: usize,
    total: u64,
    entries: Vec<(Arc<Asked>, u64)>,
    entries_bytes: usize,
    entry_of: HashMap<Arc<Asked>, u32>,
    calls: Vec<CallRecord>,
    overflow: u64,
    violations: Vec<Violation>,
    violations_total: u64,
}

/// The place of a call in the ledger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entered(u64);

impl Entered {
    /// The call's number in the ledger.
    pub(crate) const fn seq(self) -> u64 {
        self.0
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Self::with_caps(ENTRIES_MAX, CALLS_MAX)
    }
}

impl Ledger {
    /// Calls that were refused for a limit.
    pub(crate) const fn violations_total(&self) -> u64 {
        self.violations_total
    }

    fn with_caps(entries_max: usize, calls_max: usize) -> Self {
        Self {
            entries_max,
            calls_max,
            total: 0,
            entries: Vec::new(),
            entries_bytes: 0,
            entry_of: HashMap::new(),
            calls: Vec::new(),
            overflow: 0,
            violations: Vec::new(),
            violations_total: 0,
        }
    }

    /// Enters a call at the moment it arrived.
    pub(crate) fn enter(
        &mut self,
        asked: Asked,
        real: RealTime,
        limit: LimitTime,
        refused_by: Option<BucketName>,
    ) -> Entered {
        let seq = self.total;
        self.total += 1;
        let entry = self.entry(asked);
        if let Some(bucket) = refused_by {
            self.violations_total += 1;
            if let Some(entry) = entry
                && self.violations.len() < VIOLATIONS_MAX
            {
                let asked = Arc::clone(&self.entries[entry as usize].0);
                let limit_us = limit.micros();
                self.violations.push(Violation {
                    seq,
                    limit_us,
                    bucket,
                    asked,
                });
            }
        }
        match entry {
            // Sequence numbers are places in the list, so nothing follows a call left out.
            Some(entry) if self.overflow == 0 && self.calls.len() < self.calls_max => {
                let (real_us, limit_us) = (real.micros(), limit.micros());
                self.calls.push(CallRecord {
                    real_us,
                    limit_us,
                    entry,
                    status: 0,
                    fault: None,
                });
            }
            _ => self.overflow += 1,
        }
        Entered(seq)
    }

    /// Notes how a call was answered, and what went wrong with it on purpose.
    pub(crate) fn answered(&mut self, entered: Entered, status: u16, fault: Option<Kind>) {
        if let Some(call) = self.calls.get_mut(entered.0 as usize) {
            call.status = status;
            call.fault = fault;
        }
    }

    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// Calls that were counted in the total only.
    pub(crate) const fn overflow(&self) -> u64 {
        self.overflow
    }

    pub(crate) fn violations(&self) -> (&[Violation], u64) {
        (&self.violations, self.violations_total)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = EntryRow<'_>> {
        self.entries.iter().map(|(asked, count)| EntryRow {
            asked,
            count: *count,
        })
    }

    /// Calls in the order in which they arrived, those after a sequence number only.
    pub(crate) fn calls(&self, after: Option<u64>, limit: usize) -> Vec<CallRow<'_>> {
        let first = after.map_or(0, |seq| (seq as usize).saturating_add(1));
        let calls = self.calls.iter().zip(0_u64..).skip(first);
        calls
            .take(limit.min(CALLS_PER_PAGE_MAX))
            .map(|(call, seq)| CallRow {
                seq,
                real_us: call.real_us,
                limit_us: call.limit_us,
                asked: &self.entries[call.entry as usize].0,
                status: call.status,
                fault: call.fault,
            })
            .collect()
    }

    fn entry(&mut self, asked: Asked) -> Option<u32> {
        if let Some(&entry) = self.entry_of.get(&asked) {
            self.entries[entry as usize].1 += 1;
            return Some(entry);
        }
        let bytes = asked.bytes();
        if self.entries.len() >= self.entries_max || self.entries_bytes + bytes > ENTRIES_BYTES_MAX
        {
            return None;
        }
        self.entries_bytes += bytes;
        let entry = self.entries.len() as u32;
        let asked = Arc::new(asked);
        self.entries.push((Arc::clone(&asked), 1));
        self.entry_of.insert(asked, entry);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(subject: &str) -> Asked {
        Asked {
            query: "account",
            subject: subject.to_owned(),
            cursor: String::new(),
            target: format!("/api/v1/accounts/{subject}"),
            credential: "ip:127.0.0.1".to_owned(),
        }
    }

    #[test]
    fn calls_are_listed_in_order_and_summed_up() {
        let mut ledger = Ledger::default();
        for subject in ["1", "2", "1"] {
            let entered = ledger.enter(asked(subject), RealTime(5), LimitTime(6), None);
            ledger.answered(entered, 200, None);
        }
        ledger.enter(
            asked("3"),
            RealTime(5),
            LimitTime(6),
            Some("token_api".into()),
        );
        let counts: Vec<u64> = ledger.entries().map(|row| row.count).collect();
        assert_eq!(counts, [2, 1, 1]);
        let later: Vec<(u64, u16)> = ledger
            .calls(Some(1), 10)
            .iter()
            .map(|row| (row.seq, row.status))
            .collect();
        assert_eq!(later, [(2, 200), (3, 0)]);
        assert_eq!(ledger.calls(None, 2).len(), 2);
        assert_eq!(
            (ledger.total(), ledger.overflow(), ledger.violations().1),
            (4, 0, 1)
        );
    }

    #[test]
    fn beyond_the_caps_calls_are_counted_but_not_kept() {
        let mut ledger = Ledger::with_caps(1, 3);
        for subject in ["1", "2", "1"] {
            let entered = ledger.enter(asked(subject), RealTime(5), LimitTime(6), None);
            ledger.answered(entered, 200, None);
        }
        assert_eq!((ledger.total(), ledger.overflow()), (3, 2));
        assert_eq!(ledger.calls(None, 10).len(), 1);
        assert_eq!(ledger.entries().map(|row| row.count).sum::<u64>(), 2);
    }
}
