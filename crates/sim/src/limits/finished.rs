//! Windows that are over, kept for the ledger within bounds.

use serde::Serialize;

use super::BucketName;
use super::counter::Tally;

/// Windows that are kept; later ones are counted, not kept.
const FINISHED_WINDOWS_MAX: usize = 200_000;

#[derive(Debug)]
pub(super) struct Finished<W> {
    windows: Vec<W>,
    dropped: u64,
}

impl<W> Default for Finished<W> {
    fn default() -> Self {
        Self {
            windows: Vec::new(),
            dropped: 0,
        }
    }
}

impl<W> Finished<W> {
    pub(super) fn keep(&mut self, window: W) {
        if self.windows.len() < FINISHED_WINDOWS_MAX {
            self.windows.push(window);
        } else {
            self.dropped += 1;
        }
    }

    pub(super) fn kept(&self) -> impl Iterator<Item = &W> {
        self.windows.iter()
    }

    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// A declared bucket's account of one caller in one window, or in one stretch of time where there
/// are no windows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct FinishedWindow {
    pub(super) bucket: BucketName,
    pub(super) scope: String,
    /// Where every query has a counter of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) query: Option<&'static str>,
    pub(super) limit: u64,
    #[serde(flatten)]
    pub(super) tally: Tally,
}
