//! Lists whose pages are too much for their server: they are asked for in smaller ones.

use crate::exchange::Shop;
use crate::work::{Purpose, Work};
use kittiwake_model::{Key, Name};
use kittiwake_network::{Query, RequestPlan};
use kittiwake_store::TaskRecord;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Lists that are remembered; beyond that it is found out anew.
const REMEMBERED_MAX: usize = 100_000;

/// The sizes that were answered last, by subject and query.
#[derive(Debug, Default)]
pub(crate) struct SmallerPages(Mutex<HashMap<(Key, Name), u32>>);

impl SmallerPages {
    fn of(&self, subject: Key, query: &Name) -> Option<u32> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(subject, query.clone())).copied()
    }

    fn remember(&self, subject: Key, query: &Name, size: u32) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert((subject, query.clone()), size);
    }
}

impl Shop {
    /// Asks for a page as small as one of this list had to be before.
    pub(crate) fn shrink(&self, query: &Query, tasks: &[TaskRecord], plan: &mut RequestPlan) {
        if let [task] = tasks
            && let Some(size) = self.smaller.of(task.row.subject, &query.name)
        {
            query.shrink(plan, size);
        }
    }

    /// Makes the call one for a smaller page; whether it could be made smaller.
    pub(crate) fn ask_for_less(&self, work: &mut Work) -> bool {
        let call = &mut work.call;
        let ([task], Purpose::Visit) = (work.tasks.as_slice(), &call.purpose) else {
            return false;
        };
        let query = self.settings.network.query(&call.step.query);
        let Some((query, size)) = query.and_then(|it| Some((it, it.smaller_page(&call.plan.url)?)))
        else {
            return false;
        };
        self.smaller.remember(task.row.subject, &query.name, size);
        query.shrink(&mut call.plan, size);
        true
    }
}
