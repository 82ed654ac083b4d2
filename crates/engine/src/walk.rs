//! Walks: which page of which list comes next, and when a walk is over. Pure.

use crate::settings::History;
use crate::site::Site;
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
/// Queries that were `missed` in this visit are left to the next one.
///
/// `digest` says under which rules, and on which host, tokens and marks of a query mean anything.
pub(crate) fn next_step(
    network: &Network,
    robot: &Robot,
    task: &TaskRecord,
    missed: &[Name],
    digest: &dyn Fn(&Query) -> Name,
) -> Option<Step> {
    let walk = task.row.visits.saturating_add(1);
    let steps = robot
        .steps
        .iter()
        .filter(|step| !step.queries().any(|query| missed.contains(query)));
    steps.into_iter().find_map(|step| {
        let is_done = |name: &Name| {
            let mut cursors = task.cursors.iter().filter(|it| it.query == *name);
            cursors.any(|it| {
                let query = network.query(name);
                let is_known = query.is_some_and(|query| is_of(&it.digest, query));
                it.state == CursorState::Complete && it.walk >= walk && is_known
            })
        };
        if step.or.iter().any(is_done) {
            return None;
        }
        let query = network.query(&step.query)?;
        step_of(query, &task.cursors, walk, &digest(query))
    })
}

/// Under which rules tokens and marks of a query mean anything: those of the definition and, where
/// it is not the crawl's, on which host.
pub(crate) fn digest_on(query: &Query, site: &Site) -> Name {
    if site.is_home {
        return query.paging_digest.clone();
    }
    format!("{}@{}", query.paging_digest, site.host).into()
}

/// Whether a digest is one of the query's rules, on whatever host.
fn is_of(digest: &Name, query: &Query) -> bool {
    let rules = digest.split_once('@').map_or(&**digest, |(rules, _)| rules);
    rules == &*query.paging_digest
}

/// How many pages a walk that begins will have, as far as the last one tells.
pub(crate) fn pages_expected(query: &Query, task: &TaskRecord) -> u64 {
    let known = task.cursors.iter().find(|it| it.query == query.name);
    let last = known.filter(|it| it.state == CursorState::Complete);
    last.map_or(1, |cursor| u64::from(cursor.pages))
}

fn step_of(query: &Query, cursors: &[Cursor], walk: u32, digest: &Name) -> Option<Step> {
    let known = cursors.iter().find(|cursor| cursor.query == query.name);
    let step = |page, cursor| {
        Some(Step {
            query: query.name.clone(),
            page,
            walk,
            cursor,
        })
    };
    let Some(cursor) = known else {
        return step(StepPage::First, None);
    };
    let is_done = cursor.state == CursorState::Complete && cursor.walk >= walk;
    if is_done && is_of(&cursor.digest, query) {
        return None;
    }
    if cursor.digest != *digest {
        // The definition pages otherwise than it did, or somebody else is asked: neither token nor mark
        // means anything now.
        return step(StepPage::First, None);
    }
    match &cursor.state {
        CursorState::Next(token) => step(StepPage::Next(token.clone()), Some(cursor.clone())),
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
    /// The history that was asked for does not go back further.
    History,
}

impl Cap {
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::RepeatingCursor => "repeating cursor",
            Self::EndlessPages => "more pages than pages_max",
            Self::History => "end of the history that was asked for",
        }
    }
}

/// What a page told about the pages that follow.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageEnd {
    /// The token of the next page.
    pub next: Option<String>,
    pub newest: Option<String>,
    pub items: u32,
    /// When the oldest post on it was made.
    pub oldest: Option<WorldTime>,
    /// The list itself was refused: a walk that came this far is over, and not complete.
    pub refused: bool,
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
    page: PageEnd,
    history: History,
    (now, digest): (WorldTime, Name),
) -> (Cursor, Option<Cap>) {
    let PageEnd {
        next,
        newest,
        items,
        oldest,
        refused,
    } = page;
    let continued = matches!(step.page, StepPage::Next(_))
        .then_some(step.cursor.as_ref())
        .flatten();
    let forward = step.cursor.as_ref().and_then(|cursor| cursor.mark.clone());
    let pages = continued.map_or(0, |cursor| cursor.pages).saturating_add(1);
    let items = continued
        .map_or(0, |cursor| cursor.items)
        .saturating_add(items);
    let goes_back = query.incremental && forward.is_none();
    let before = continued.and_then(|cursor| cursor.mark_next.clone());
    // Walking back from the newest, the first page has the newest id; walking forward from a
    // mark, each page has a newer one.
    let mark_next = if forward.is_some() {
        newest.or(before)
    } else {
        before.or(newest)
    };
    let checkpoint = continued.and_then(|cursor| cursor.checkpoint.clone());
    let cap = next.as_deref().and_then(|token| {
        let current = match &step.page {
            StepPage::Next(current) => Some(current.as_str()),
            _ => None,
        };
        if current == Some(token) || checkpoint.as_deref() == Some(token) {
            Some(Cap::RepeatingCursor)
        } else if goes_back && is_far_enough(history, items, oldest) {
            Some(Cap::History)
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
    // What a walk back from the newest did not come to would lie below its mark, unseen for ever.
    let reached = if refused && forward.is_none() {
        None
    } else {
        mark_next.clone().or_else(|| forward.clone())
    };
    let cursor = Cursor {
        subject,
        query: query.name.clone(),
        walk: step.walk,
        digest,
        pages,
        items,
        state,
        checkpoint,
        mark: if complete { reached } else { forward },
        mark_next: if complete { None } else { mark_next },
        started: continued.map_or(now, |cursor| cursor.started),
    };
    (cursor, cap)
}

fn is_far_enough(history: History, items: u32, oldest: Option<WorldTime>) -> bool {
    match history {
        History::All => false,
        History::Posts(wanted) => items >= wanted,
        History::Since(since) => oldest.is_some_and(|oldest| oldest < since),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kittiwake_model::{FrontierRow, Identity};
    use proptest::prelude::*;

    fn network() -> Network {
        let text = include_str!("../../../networks/mastodon.toml");
        Network::parse("mastodon.toml", text).expect("the shipped definition")
    }

    fn own(query: &Query) -> Name {
        query.paging_digest.clone()
    }

    fn task(visits: u32, cursors: Vec<Cursor>) -> TaskRecord {
        TaskRecord {
            row: FrontierRow {
                subject: Key(1),
                robot: "statuses".into(),
                lane: "lane".into(),
                visits,
                visited: None,
                due: WorldTime(0),
                state: Vec::new(),
            },
            depth: Some(0),
            opted_out: false,
            identity: Identity {
                network: "mastodon".into(),
                kind: "user".into(),
                canonical: None,
                aliases: Vec::new(),
            },
            cursors,
        }
    }

    /// Walks a list whose pages are given by `next`; the tokens that were asked for, and the cap.
    fn walk(
        network: &Network,
        robot: &str,
        visits: u32,
        cursors: Vec<Cursor>,
        next: impl Fn(Option<u64>) -> (Option<u64>, Option<u64>),
    ) -> (Vec<StepPage>, Option<Cap>, Vec<Cursor>) {
        walk_back(network, robot, visits, cursors, History::All, next)
    }

    fn walk_back(
        network: &Network,
        robot: &str,
        visits: u32,
        cursors: Vec<Cursor>,
        history: History,
        next: impl Fn(Option<u64>) -> (Option<u64>, Option<u64>),
    ) -> (Vec<StepPage>, Option<Cap>, Vec<Cursor>) {
        let robot = network.robot(robot).expect("a robot");
        let mut task = task(visits, cursors);
        let mut asked = Vec::new();
        let mut capped = None;
        while let Some(step) = next_step(network, robot, &task, &[], &own) {
            let query = network.query(&step.query).expect("a query");
            let place = match &step.page {
                StepPage::Next(token) => token.parse().ok(),
                _ => None,
            };
            asked.push(step.page.clone());
            let (token, newest) = next(place);
            let token = token.map(|token| token.to_string());
            let newest = newest.map(|newest| newest.to_string());
            let page = PageEnd {
                next: token,
                newest,
                items: 40,
                oldest: Some(WorldTime(1_000 - 10 * asked.len() as i64)),
                refused: false,
            };
            let (cursor, cap) = advance(
                query,
                Key(1),
                &step,
                page,
                history,
                (WorldTime(5), own(query)),
            );
            task.cursors.retain(|known| known.query != cursor.query);
            task.cursors.push(cursor);
            capped = capped.or(cap);
            assert!(asked.len() < 100_000, "endless");
        }
        (asked, capped, task.cursors)
    }

    #[test]
    fn a_walk_goes_on_where_it_stopped_and_then_from_its_mark() {
        let network = network();
        let pages = |place: Option<u64>| match place {
            None => (Some(30), Some(99)),
            Some(30) => (Some(20), None),
            _ => (None, None),
        };
        let (asked, cap, cursors) = walk(&network, "statuses", 0, Vec::new(), pages);
        let tokens = ["30", "20"].map(|token| StepPage::Next(token.into()));
        assert_eq!(asked, [vec![StepPage::First], tokens.to_vec()].concat());
        assert_eq!(cap, None);
        assert_eq!(cursors[0].mark.as_deref(), Some("99"));
        // The next visit begins at the mark, and its own newest item becomes the next one.
        let newer = |place: Option<u64>| match place {
            None => (Some(120), Some(120)),
            _ => (None, Some(130)),
        };
        let (asked, _, cursors) = walk(&network, "statuses", 1, cursors, newer);
        assert_eq!(
            asked,
            [StepPage::Since("99".into()), StepPage::Next("120".into())]
        );
        assert_eq!(cursors[0].mark.as_deref(), Some("130"));
        // A visit that finds nothing new keeps the mark.
        let (_, _, cursors) = walk(&network, "statuses", 2, cursors, |_| (None, None));
        assert_eq!(cursors[0].mark.as_deref(), Some("130"));
    }

    #[test]
    fn a_walk_that_was_refused_half_way_leaves_no_mark() {
        let network = network();
        let query = network.query("timeline").expect("a query");
        let first = Step {
            query: query.name.clone(),
            page: StepPage::First,
            walk: 1,
            cursor: None,
        };
        let page = PageEnd {
            next: Some("30".into()),
            newest: Some("99".into()),
            ..PageEnd::default()
        };
        let (cursor, _) = advance(
            query,
            Key(1),
            &first,
            page,
            History::All,
            (WorldTime(5), own(query)),
        );
        let second = Step {
            page: StepPage::Next("30".into()),
            cursor: Some(cursor),
            ..first
        };
        let refused = PageEnd {
            refused: true,
            ..PageEnd::default()
        };
        let (cursor, _) = advance(
            query,
            Key(1),
            &second,
            refused,
            History::All,
            (WorldTime(5), own(query)),
        );
        assert_eq!((cursor.state, cursor.mark), (CursorState::Complete, None));
    }

    #[test]
    fn a_first_walk_goes_back_no_further_than_asked_and_later_walks_go_on_from_its_mark() {
        let network = network();
        let endless = |place: Option<u64>| match place {
            None => (Some(1_000), Some(2_000)),
            Some(place) => (Some(place - 1), None),
        };
        for (history, pages) in [
            (History::Posts(1), 1),
            (History::Posts(41), 2),
            (History::Since(WorldTime(960)), 5),
        ] {
            let (asked, cap, cursors) =
                walk_back(&network, "statuses", 0, Vec::new(), history, endless);
            assert_eq!(
                (asked.len(), cap),
                (pages, Some(Cap::History)),
                "{history:?}"
            );
            assert_eq!(cursors[0].mark.as_deref(), Some("2000"));
            let (asked, _, _) =
                walk_back(&network, "statuses", 1, cursors, history, |_| (None, None));
            assert_eq!(asked, [StepPage::Since("2000".into())]);
        }
    }

    #[test]
    fn a_step_that_was_taken_another_way_is_not_taken_again() {
        let network = network();
        let robot = network.robot("profiles").expect("a robot");
        let step = next_step(&network, robot, &task(0, Vec::new()), &[], &own).expect("a step");
        assert_eq!(&*step.query, "profiles");
        let other = network.query("profile").expect("a query");
        let by_other = Step {
            query: other.name.clone(),
            ..step
        };
        let end = PageEnd::default();
        let (cursor, _) = advance(
            other,
            Key(1),
            &by_other,
            end,
            History::All,
            (WorldTime(5), own(other)),
        );
        let once = task(0, vec![cursor.clone()]);
        assert_eq!(next_step(&network, robot, &once, &[], &own), None);
        assert!(next_step(&network, robot, &task(1, vec![cursor]), &[], &own).is_some());
        let missed = [other.name.clone()];
        let missing = next_step(&network, robot, &task(0, Vec::new()), &missed, &own);
        assert_eq!(missing, None);
    }

    #[test]
    fn a_walk_is_taken_to_be_as_long_as_the_last_one() {
        let network = network();
        let query = network.query("timeline").expect("a query");
        assert_eq!(pages_expected(query, &task(0, Vec::new())), 1);
        let pages = |place: Option<u64>| match place {
            None => (Some(30), Some(99)),
            Some(30) => (Some(20), None),
            _ => (None, None),
        };
        let (_, _, cursors) = walk(&network, "statuses", 0, Vec::new(), pages);
        assert_eq!(pages_expected(query, &task(1, cursors)), 3);
    }

    #[test]
    fn a_cursor_of_other_paging_rules_is_void() {
        let network = network();
        let (_, _, mut cursors) = walk(&network, "statuses", 0, Vec::new(), |_| (None, Some(7)));
        cursors[0].digest = "other".into();
        let (asked, _, _) = walk(&network, "statuses", 1, cursors, |_| (None, None));
        assert_eq!(asked, [StepPage::First]);
    }

    proptest! {
        #[test]
        fn every_circle_is_found(before in 0_u64..50, length in 1_u64..50) {
            let network = network();
            let next = |place: Option<u64>| {
                let at = place.map_or(0, |place| place + 1);
                let token = if at >= before + length { before } else { at };
                (Some(token), None)
            };
            let (asked, cap, _) = walk(&network, "statuses", 0, Vec::new(), next);
            prop_assert_eq!(cap, Some(Cap::RepeatingCursor));
            // Found within a few rounds, without remembering all pages.
            prop_assert!(asked.len() as u64 <= 4 * (before + length) + 8, "{} pages", asked.len());
        }
    }
}
