//! The log of faults. Bounded: beyond the caps faults are still counted, but no longer told.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Class, Kind, Withdrew};

const ROWS_MAX: usize = 200_000;
/// What the texts of all rows may take together.
const ROWS_BYTES_MAX: usize = 1 << 26;
/// Rows in one answer.
const ROWS_PER_PAGE_MAX: usize = 100_000;

/// A fault as it happened.
#[derive(Debug, Clone)]
pub(crate) struct Happened {
    pub(crate) kind: Kind,
    pub(crate) target: String,
    pub(crate) subject: String,
    pub(crate) withdrew: Option<Withdrew>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct FaultRow {
    seq: u64,
    /// The number of the call in the ledger.
    call: u64,
    kind: Kind,
    class: Class,
    target: String,
    subject: String,
    withdrew: Option<Withdrew>,
}

#[derive(Debug, Serialize)]
pub(crate) struct FaultSummary {
    total: u64,
    /// Faults that are counted but not told.
    dropped: u64,
    by_class: BTreeMap<Class, u64>,
    by_kind: BTreeMap<Kind, u64>,
}

#[derive(Debug)]
pub(crate) struct FaultLog {
    rows_max: usize,
    rows: Vec<FaultRow>,
    rows_bytes: usize,
    counts: BTreeMap<Kind, u64>,
    total: u64,
}

impl Default for FaultLog {
    fn default() -> Self {
        Self::with_cap(ROWS_MAX)
    }
}

impl FaultLog {
    fn with_cap(rows_max: usize) -> Self {
        Self {
            rows_max,
            rows: Vec::new(),
            rows_bytes: 0,
            counts: Kind::all().map(|kind| (kind, 0)).collect(),
            total: 0,
        }
    }

    pub(crate) fn enter(&mut self, call: u64, happened: Happened) {
        let Happened {
            kind,
            target,
            subject,
            withdrew,
        } = happened;
        let seq = self.total;
        self.total += 1;
        *self.counts.entry(kind).or_default() += 1;
        let bytes = target.len() + subject.len() + withdrew.as_ref().map_or(0, Withdrew::bytes);
        // Nothing follows a row left out, so that a reader sees where the log ends.
        let is_whole = self.rows.len() as u64 == seq;
        if is_whole && self.rows.len() < self.rows_max && self.rows_bytes + bytes <= ROWS_BYTES_MAX
        {
            self.rows_bytes += bytes;
            self.rows.push(FaultRow {
                seq,
                call,
                kind,
                class: kind.class(),
                target,
                subject,
                withdrew,
            });
        }
    }

    /// Rows in the order in which they happened, those after a sequence number only.
    pub(crate) fn rows(&self, after: Option<u64>, limit: usize) -> impl Iterator<Item = &FaultRow> {
        let first = after.map_or(0, |seq| (seq as usize).saturating_add(1));
        let rows = self.rows.iter().skip(first);
        rows.take(limit.min(ROWS_PER_PAGE_MAX))
    }

    pub(crate) fn summary(&self) -> FaultSummary {
        let mut by_class = BTreeMap::new();
        for (kind, count) in &self.counts {
            *by_class.entry(kind.class()).or_default() += count;
        }
        FaultSummary {
            total: self.total,
            dropped: self.total - self.rows.len() as u64,
            by_class,
            by_kind: self.counts.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn happened(kind: Kind) -> Happened {
        Happened {
            kind,
            target: "/api/v1/accounts/1".to_owned(),
            subject: "1".to_owned(),
            withdrew: None,
        }
    }

    #[test]
    fn beyond_the_cap_faults_are_counted_but_not_told() {
        let mut log = FaultLog::with_cap(2);
        for call in 0..5 {
            log.enter(call, happened(Kind::Stall));
        }
        assert_eq!(log.rows(None, 10).count(), 2);
        assert_eq!(log.rows(Some(0), 10).next().unwrap().call, 1);
        let summary = log.summary();
        assert_eq!((summary.total, summary.dropped), (5, 3));
        assert_eq!(summary.by_kind[&Kind::Stall], 5);
        assert_eq!(summary.by_class[&Class::Transport], 5);
        // Kinds that never happened are told as well.
        assert_eq!(summary.by_kind.len(), Kind::all().count());
    }
}
