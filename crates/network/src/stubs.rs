//! Stubs: what an answer leaves out and names, to be asked for by another query about the same subject.
//!
//! What is still open is durable text: ids with commas between them.

use crate::network::{BatchStyle, Query};
use kittiwake_model::Name;
use std::collections::HashSet;

/// How a query is asked for what stubs name.
#[derive(Debug)]
pub(crate) struct Expand {
    /// The parameter that takes the ids; `None` where one id stands in a placeholder.
    pub(crate) list: Option<(String, BatchStyle)>,
    /// Ids of one call.
    pub(crate) max: u32,
}

/// What a placeholder is called that stands for one id of a stub.
pub(crate) const STUB: &str = "stub";
/// Ids that wait for one query about one subject.
const OPEN_MAX: usize = 50_000;

/// What is open for a query after an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// The token of the next page; `None` when nothing is open.
    pub token: Option<String>,
    /// Whether there was more than is remembered.
    pub is_cut: bool,
}

/// Whether an id can be one of several in a text.
pub(crate) fn can_be_listed(id: &str) -> bool {
    !id.is_empty() && !id.contains(',') && id.bytes().all(|byte| byte.is_ascii_graphic())
}

impl Query {
    /// Whether it is asked for what stubs in other answers name, and for nothing else.
    pub fn expands(&self) -> bool {
        self.expand.is_some()
    }

    /// The queries that are asked for what its answers leave out.
    pub(crate) fn stub_queries(&self) -> impl Iterator<Item = &Name> {
        let around = self.selects.iter().filter_map(|it| it.around.as_ref());
        around.flat_map(|around| around.stubs.iter().map(|(query, _)| query))
    }

    /// The ids of one call, the first of those that are open.
    pub(crate) fn asked_ids<'t>(&self, open: &'t str) -> Vec<&'t str> {
        let max = self.expand.as_ref().map_or(0, |expand| expand.max as usize);
        let ids = open.split(',').filter(|id| can_be_listed(id));
        ids.take(max).collect()
    }

    /// What is open after an answer: what was before, without what was asked for, and what the
    /// answer found. What was just asked for is not asked for again, whatever the answer says.
    pub fn open_after(&self, open: Option<&str>, is_asked: bool, found: &[&str]) -> Open {
        let before = open.unwrap_or_default();
        let asked = if is_asked {
            self.asked_ids(before).len()
        } else {
            0
        };
        let mut ids: Vec<&str> = before.split(',').filter(|id| can_be_listed(id)).collect();
        let mut known: HashSet<&str> = ids.iter().copied().collect();
        ids.drain(..asked);
        let mut is_cut = false;
        for id in found {
            if ids.len() >= OPEN_MAX {
                is_cut = true;
                break;
            }
            if known.insert(id) {
                ids.push(id);
            }
        }
        Open {
            token: (!ids.is_empty()).then(|| ids.join(",")),
            is_cut,
        }
    }
}
