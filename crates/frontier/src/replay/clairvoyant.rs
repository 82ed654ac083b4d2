//! Deciders that know the future, to see how much there is to gain.

use super::{Replay, best};
use crate::policy::days_between;
use kittiwake_model::WorldTime;

impl Replay<'_> {
    /// Whoever has the most posts waiting; if `is_patient`, times the time until the next one.
    pub(super) fn foresee(&self, now: WorldTime, batch: usize, is_patient: bool) -> Vec<u32> {
        best(self.order.len(), batch, |subject| {
            let source = &self.trace.subjects[self.order[subject as usize] as usize];
            let unseen = &source.posts[self.seen[subject as usize]..];
            if unseen.first().is_none_or(|post| *post > now) {
                return 0.0;
            }
            let waiting = unseen.partition_point(|post| *post <= now);
            if !is_patient {
                return waiting as f64;
            }
            let next = unseen.get(waiting).copied().unwrap_or(self.trace.end);
            waiting as f64 * days_between(now, next)
        })
    }
}
