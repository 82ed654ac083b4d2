//! Walks: which page of which list comes next, and when a walk is over. Pure.

use kittiwake_model::{Cursor, CursorState, Key, Name, WorldTime};
use kittiwake_network::{Network, Page, Query, Robot};
use kittiwake_store::TaskRecord;

/// The next call of a visit, before it is made into a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub query: Name,
    pub page: StepPage,
    /// The number of this walk, equal to the number of the visit.
    pub walk: u32,
    /// The cursor as it stands before the call.
    pub cursor: Option<Cursor>,
}

/// A page, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepPage {
    First,
    Since(String),
    Next(String),
}

impl StepPage {
    pub(crate) fn borrowed(&self) -> Page<'_> {
        match self {
            Self::First => Page::First,
            Self::Since(mark) => Page::Since(mark),
            Self::Next(token) => Page::Next(token),
        }
    }
}

/// The first step of the robot that this visit has not completed; `None` when the visit is over.
pub(crate) fn next_step(network: &Network, robot: &Robot, task: &TaskRecord) -> Option<Step> {
    let walk = task.row.visits.saturating_add(1);
    robot.steps.iter().find_map(|step| {
        let query = network.query(&step.query)?;
        step_of(query, &task.cursors, walk)
    })
}

fn step_of(query: &Query, cursors: &[Cursor], walk: u32) -> Option<Step> {
    let known = cursors.iter().find(|cursor| cursor.query == query.name);
    let step = |page, cursor| Some(Step { query: query.name.clone(), page, walk, cursor });
    let Some(cursor) = known else {
        return step(StepPage::First, None);
    };
    if cursor.digest != query.paging_digest {
        // The definition pages otherwise than it did: neither token nor mark means anything now.
        return step(StepPage::First, None);
    }
    match &cursor.state {
        CursorState::Next(token) => step(StepPage::Next(token.clone()), Some(cursor.clone())),
        CursorState::Complete if cursor.walk >= walk => None,
        CursorState::Complete => match (&cursor.mark, query.incremental) {
            (Some(mark), true) => step(StepPage::Since(mark.clone()), Some(cursor.clone())),
            _ => step(StepPage::First, None),
        },
    }
}

/// Why a walk was ended although the network offers another page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cap {
    RepeatingCursor,
    EndlessPages,
}

impl Cap {
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::RepeatingCursor => "repeating cursor",
            Self::EndlessPages => "more pages than pages_max",
        }
    }
}

/// The cursor after a page was read, and whether a bound ended the walk.
///
/// A walk in a circle is found as Brent does it: each token is compared with one kept from an
/// earlier page, which moves on at every power of two, so that any circle is found without
/// remembering all pages.
pub(crate) fn advance(
    query: &Query,
    subject: Key,
    step: &Step,
    next: Option<String>,
    newest: Option<String>,
    now: WorldTime,
) -> (Cursor, Option<Cap>) {
    let continued = matches!(step.page, StepPage::Next(_)).then_some(step.cursor.as_ref()).flatten();
    let forward = step.cursor.as_ref().and_then(|cursor| cursor.mark.clone());
    let pages = continued.map_or(0, |cursor| cursor.pages).saturating_add(1);
    let before = continued.and_then(|cursor| cursor.mark_next.clone());
    // Walking back from the newest, the first page has the newest id; walking forward from a
    // mark, each page has a newer one.
    let mark_next = if forward.is_some() { newest.or(before) } else { before.or(newest) };
    let checkpoint = continued.and_then(|cursor| cursor.checkpoint.clone());
    let cap = next.as_deref().and_then(|token| {
        let current = match &step.page {
            StepPage::Next(current) => Some(current.as_str()),
            _ => None,
        };
        if current == Some(token) || checkpoint.as_deref() == Some(token) {
            Some(Cap::RepeatingCursor)
        } else {
            (pages >= query.pages_max).then_some(Cap::EndlessPages)
        }
    });
    let state = match next {
        Some(token) if cap.is_none() => CursorState::Next(token),
        _ => CursorState::Complete,
    };
    let checkpoint = match &state {
        CursorState::Next(token) if pages.is_power_of_two() => Some(token.clone()),
        CursorState::Next(_) => checkpoint,
        CursorState::Complete => None,
    };
    let complete = state == CursorState::Complete;
    let cursor = Cursor {
        subject,
        query: query.name.clone(),
        walk: step.walk,
        digest: query.paging_digest.clone(),
        pages,
        state,
        checkpoint,
        mark: if complete { mark_next.clone().or(forward) } else { forward },
        mark_next: if complete { None } else { mark_next },
        started: continued.map_or(now, |cursor| cursor.started),
    };
    (cursor, cap)
}
