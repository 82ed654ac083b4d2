//! Walks: which page of which list comes next, and when a walk is over. Pure.

use crate::settings::History;
use crate::site::Site;
use kittiwake_model::{Cursor, CursorState, Key, Name, WorldTime};
use kittiwake_network::{Backfill, Network, Page, Query, Robot, Step as RobotStep};
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
/// Of several ways the first is taken that is offered; a step of which none is, is left out.
pub(crate) fn next_step(
    network: &Network,
    robot: &Robot,
    task: &TaskRecord,
    missed: &[Name],
    host: &dyn Host,
) -> Option<Step> {
    let walk = task.row.visits.saturating_add(1);
    // Who was missing from a batch was asked for by another query.
    let answers = |step: &RobotStep| -> Vec<Name> {
        let queries = step.queries().filter_map(|name| network.query(name));
        let alone = queries.filter_map(Query::missing_query);
        step.queries().chain(alone).cloned().collect()
    };
    let steps = robot
        .steps
        .iter()
        .filter(|step| !answers(step).iter().any(|query| missed.contains(query)));
    steps.into_iter().find_map(|step| {
        let is_done = |name: &Name| {
            let mut cursors = task.cursors.iter().filter(|it| it.query == *name);
            cursors.any(|it| {
                let query = network.query(name);
                let is_known = query.is_some_and(|query| is_of(&it.digest, query));
                it.state == CursorState::Complete && it.walk >= walk && is_known
            })
        };
        let ways = || step.queries().filter_map(|name| network.query(name));
        let offered = ways().find(|query| host.is_offered(query));
        // Whoever does not say what it can do is asked in the plainest way.
        let query = offered.or_else(|| ways().last().filter(|query| host.is_untold(query)))?;
        if answers(step)
            .iter()
            .any(|name| *name != query.name && is_done(name))
        {
            return None;
        }
        if let Some(backfill) = &step.backfill
            && host.backfills(query, backfill, task)
        {
            return Some(Step {
                query: backfill.query.clone(),
                page: StepPage::First,
                walk,
                cursor: None,
            });
        }
        step_of(query, &task.cursors, walk, &host.digest(query))
    })
}

/// Whoever is asked about a task.
pub(crate) trait Host {
    /// Under which rules, and on which host, tokens and marks of a query mean anything.
    fn digest(&self, query: &Query) -> Name;

    /// Whether the query can be asked there.
    fn is_offered(&self, query: &Query) -> bool;

    /// Whether nobody tells what can be asked there.
    fn is_untold(&self, query: &Query) -> bool;

    /// Whether a list is had in one piece in place of a walk.
    fn backfills(&self, list: &Query, backfill: &Backfill, task: &TaskRecord) -> bool;
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
    if query.expands() {
        return expanding_step(query, known, walk);
    }
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
        CursorState::Complete | CursorState::NotKept => match (&cursor.mark, query.incremental) {
            (Some(mark), true) => step(StepPage::Since(mark.clone()), Some(cursor.clone())),
            _ => step(StepPage::First, None),
        },
    }
}

/// What stubs of this visit name and nobody has asked for yet. Ids are what they are, by whatever
/// rules they are asked for.
fn expanding_step(query: &Query, known: Option<&Cursor>, walk: u32) -> Option<Step> {
    let cursor = known.filter(|cursor| cursor.walk == walk)?;
    let CursorState::Next(token) = &cursor.state else {
        return None;
    };
    Some(Step {
        query: query.name.clone(),
        page: StepPage::Next(token.clone()),
        walk,
        cursor: Some(cursor.clone()),
    })
}

/// The ids that wait for a query in this visit.
pub(crate) fn open_ids<'t>(query: &Query, task: &'t TaskRecord, walk: u32) -> Option<&'t str> {
    let cursor = task.cursors.iter().find(|it| it.query == query.name)?;
    match &cursor.state {
        CursorState::Next(token) if cursor.walk == walk => Some(token),
        _ => None,
    }
}

/// The cursor of a query for which an answer to another one has left something open, unless it was
/// asked often enough in this visit: two queries could open one another for ever.
pub(crate) fn opened(
    query: &Query,
    task: &TaskRecord,
    walk: u32,
    token: String,
    (now, digest): (WorldTime, Name),
) -> Result<Cursor, Cap> {
    let known = task.cursors.iter().find(|it| it.query == query.name);
    let before = known.filter(|cursor| cursor.walk == walk);
    if before.is_some_and(|cursor| cursor.pages >= query.pages_max) {
        return Err(Cap::EndlessPages);
    }
    Ok(Cursor {
        subject: task.row.subject,
        query: query.name.clone(),
        walk,
        digest,
        pages: before.map_or(0, |cursor| cursor.pages),
        items: before.map_or(0, |cursor| cursor.items),
        state: CursorState::Next(token),
        checkpoint: None,
        mark_next: None,
        mark: None,
        started: before.map_or(now, |cursor| cursor.started),
    })
}

/// Why a walk was ended although the network offers another page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cap {
    RepeatingCursor,
    EndlessPages,
    /// The history that was asked for does not go back further.
    History,
    /// The network shows no more of a list.
    Items,
    /// An answer leaves out more than is remembered.
    Stubs,
}

impl Cap {
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::RepeatingCursor => "repeating cursor",
            Self::EndlessPages => "more pages than pages_max",
            Self::History => "end of the history that was asked for",
            Self::Items => "as many items as the network shows of a list",
            Self::Stubs => "more is left out than can be asked for",
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
    /// The time of its newest item, in lists whose marks are times.
    pub latest: Option<WorldTime>,
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
    page: &PageEnd,
    history: History,
    (now, digest): (WorldTime, Name),
) -> (Cursor, Option<Cap>) {
    let continued = matches!(step.page, StepPage::Next(_))
        .then_some(step.cursor.as_ref())
        .flatten();
    let forward = step.cursor.as_ref().and_then(|cursor| cursor.mark.clone());
    let started = continued.map_or(now, |cursor| cursor.started);
    let walked = Walked {
        query,
        step,
        history,
        mark: forward.as_deref(),
        pages: continued.map_or(0, |cursor| cursor.pages).saturating_add(1),
        items: continued
            .map_or(0, |cursor| cursor.items)
            .saturating_add(page.items),
        checkpoint: continued.and_then(|cursor| cursor.checkpoint.as_deref()),
    };
    let before = continued.and_then(|cursor| cursor.mark_next.as_deref());
    let mark_next = walked.mark_next(before, page, started);
    let is_at_mark = walked.is_at_mark(page, now);
    let cap = walked.cap(page, is_at_mark);
    let (pages, items) = (walked.pages, walked.items);
    let state = match &page.next {
        Some(token) if cap.is_none() && !is_at_mark => CursorState::Next(token.clone()),
        _ => CursorState::Complete,
    };
    let checkpoint = match &state {
        CursorState::Next(token) if pages.is_power_of_two() => Some(token.clone()),
        CursorState::Next(_) => walked.checkpoint.map(str::to_owned),
        CursorState::NotKept | CursorState::Complete => None,
    };
    let is_complete = state == CursorState::Complete;
    let mark = if is_complete && walked.has_reached(page, cap) {
        mark_next.clone().or_else(|| forward.clone())
    } else {
        forward.clone()
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
        mark,
        mark_next: if is_complete { None } else { mark_next },
        started,
    };
    (cursor, cap)
}

/// Whether a walk goes through its list from end to end, and not from a mark.
pub(crate) fn is_whole(step: &Step) -> bool {
    step.cursor
        .as_ref()
        .is_none_or(|cursor| cursor.mark.is_none())
}

/// A walk with the page that was just read.
struct Walked<'a> {
    query: &'a Query,
    step: &'a Step,
    history: History,
    /// Where the walk began, or ends.
    mark: Option<&'a str>,
    pages: u32,
    items: u32,
    checkpoint: Option<&'a str>,
}

impl Walked<'_> {
    /// Whether the walk goes on towards the present, page by page.
    fn goes_forward(&self) -> bool {
        self.mark.is_some() && self.query.goes_forward()
    }

    /// What becomes the mark when the walk is complete. Walking back from the newest, the first
    /// page has the newest id; walking forward from a mark, each page has a newer one.
    fn mark_next(
        &self,
        before: Option<&str>,
        page: &PageEnd,
        started: WorldTime,
    ) -> Option<String> {
        let timed = self.query.mark_after(before, page.latest, started);
        if timed.is_some() {
            return timed;
        }
        let (before, newest) = (before.map(str::to_owned), page.newest.clone());
        if self.goes_forward() {
            newest.or(before)
        } else {
            before.or(newest)
        }
    }

    /// Whether the page has nothing but what was collected before. A mark from the future, of a
    /// clock that was wrong once, is as good as now.
    fn is_at_mark(&self, page: &PageEnd, now: WorldTime) -> bool {
        let end = self.mark.and_then(|mark| self.query.ends_before(mark));
        match (end, page.latest) {
            (Some(end), Some(latest)) => latest < end.min(now),
            _ => false,
        }
    }

    /// The bound that ends the walk, if one does.
    fn cap(&self, page: &PageEnd, is_at_mark: bool) -> Option<Cap> {
        if is_at_mark || page.refused {
            return None;
        }
        // Whether or not there is a next page: a list that is cut off looks like one that is over.
        let is_cut = self.query.items_max().is_some_and(|max| self.items >= max);
        let Some(token) = page.next.as_deref() else {
            return is_cut.then_some(Cap::Items);
        };
        let current = match &self.step.page {
            StepPage::Next(current) => Some(current.as_str()),
            _ => None,
        };
        let goes_back = self.query.incremental && self.mark.is_none();
        if current == Some(token) || self.checkpoint == Some(token) {
            Some(Cap::RepeatingCursor)
        } else if goes_back && is_far_enough(self.history, self.items, page.oldest) {
            Some(Cap::History)
        } else if is_cut {
            Some(Cap::Items)
        } else {
            (self.pages >= self.query.pages_max).then_some(Cap::EndlessPages)
        }
    }

    /// Whether everything up to the new mark was seen. What a walk back from the newest did not
    /// come to would lie below its mark, unseen for ever.
    fn has_reached(&self, page: &PageEnd, cap: Option<Cap>) -> bool {
        let broke_off = page.refused || (cap == Some(Cap::RepeatingCursor) && self.mark.is_some());
        self.goes_forward() || !broke_off
    }
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
    use kittiwake_store::Counts;
    use proptest::prelude::*;

    fn network() -> Network {
        let text = include_str!("../../../networks/mastodon.toml");
        Network::parse("mastodon.toml", text).expect("the shipped definition")
    }

    fn own(query: &Query) -> Name {
        Own.digest(query)
    }

    /// The crawl's own host, which offers everything.
    struct Own;

    impl Host for Own {
        fn digest(&self, query: &Query) -> Name {
            query.paging_digest.clone()
        }

        fn is_offered(&self, _: &Query) -> bool {
            true
        }

        fn is_untold(&self, _: &Query) -> bool {
            false
        }

        fn backfills(&self, _: &Query, _: &Backfill, _: &TaskRecord) -> bool {
            false
        }
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
            counts: Counts::default(),
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
        while let Some(step) = next_step(network, robot, &task, &[], &Own) {
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
                latest: None,
                refused: false,
            };
            let (cursor, cap) = advance(
                query,
                Key(1),
                &step,
                &page,
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
    fn a_walk_whose_place_is_not_kept_begins_where_it_began() {
        let network = network();
        let end = |_| (None, Some(130));
        let lost = |mark: Option<&str>| {
            let (_, _, mut cursors) = walk(&network, "statuses", 0, Vec::new(), |_| (None, None));
            cursors[0].state = CursorState::NotKept;
            cursors[0].mark = mark.map(Into::into);
            cursors[0].mark_next = Some("110".into());
            cursors[0].pages = 7;
            cursors
        };
        let (asked, _, cursors) = walk(&network, "statuses", 0, lost(None), end);
        assert_eq!(asked, [StepPage::First]);
        assert_eq!(
            (cursors[0].pages, cursors[0].mark.as_deref()),
            (1, Some("130"))
        );
        let (asked, _, cursors) = walk(&network, "statuses", 0, lost(Some("99")), end);
        assert_eq!(asked, [StepPage::Since("99".into())]);
        assert_eq!(
            (cursors[0].pages, cursors[0].mark.as_deref()),
            (1, Some("130"))
        );
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
            &page,
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
            &refused,
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
        let step = next_step(&network, robot, &task(0, Vec::new()), &[], &Own).expect("a step");
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
            &end,
            History::All,
            (WorldTime(5), own(other)),
        );
        let once = task(0, vec![cursor.clone()]);
        assert_eq!(next_step(&network, robot, &once, &[], &Own), None);
        assert!(next_step(&network, robot, &task(1, vec![cursor]), &[], &Own).is_some());
        let missed = [other.name.clone()];
        let missing = next_step(&network, robot, &task(0, Vec::new()), &missed, &Own);
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

    /// A list that pages by a cursor, with marks as told.
    fn cursor_network(page: &str, incremental: &str) -> Network {
        let text = format!(
            r#"format = 1
name = "tiny"
verified_on = "2026-11-16"
host = {{ kind = "fixed", address = "https://tiny.example" }}

[types.user]
table = "users"
canonical = ".id"

[queries.posts]
subject = "user"
path = "/posts"
page = {{ style = "cursor", at = ".next", parameter = "after", size = 40{page} }}
{incremental}

[[queries.posts.selects]]
at = ".posts[]"
as = "user"

[[robots]]
name = "posts"
subject = "user"
steps = [{{ query = "posts" }}]

[[seeds]]
pattern = "@{{name}}"
type = "user"
value = "{{name}}"
"#
        );
        Network::parse("tiny.toml", &text).expect("a definition")
    }

    /// Reads pages one after the other; the cursor after each, and what ended the walk.
    fn pages_of(
        network: &Network,
        mark: Option<&str>,
        pages: Vec<PageEnd>,
    ) -> Vec<(Cursor, Option<Cap>)> {
        let query = network.query("posts").expect("a query");
        let mut step = Step {
            query: query.name.clone(),
            page: StepPage::First,
            walk: 2,
            cursor: None,
        };
        if let Some(mark) = mark {
            let begun = advance(
                query,
                Key(1),
                &step,
                &PageEnd::default(),
                History::All,
                (WorldTime(0), own(query)),
            );
            step.page = StepPage::Since(mark.to_owned());
            step.cursor = Some(Cursor {
                mark: Some(mark.to_owned()),
                ..begun.0
            });
        }
        let mut ends = Vec::new();
        for page in pages {
            let now = WorldTime(HOUR_US * 100 + ends.len() as i64);
            let (cursor, cap) =
                advance(query, Key(1), &step, &page, History::All, (now, own(query)));
            if let CursorState::Next(token) = &cursor.state {
                step.page = StepPage::Next(token.clone());
            }
            step.cursor = Some(cursor.clone());
            ends.push((cursor, cap));
        }
        ends
    }

    const HOUR_US: i64 = 3_600_000_000;

    fn page_at(next: Option<&str>, hour: i64) -> PageEnd {
        PageEnd {
            next: next.map(str::to_owned),
            latest: Some(WorldTime(HOUR_US * hour)),
            items: 40,
            ..PageEnd::default()
        }
    }

    #[test]
    fn a_walk_back_to_a_time_ends_behind_the_overlap_and_moves_its_mark_only_then() {
        let network = cursor_network("", "incremental = { until = \".at\", overlap = \"2h\" }");
        let mark = "1970-01-01T10:00:00Z";
        let pages = || {
            vec![
                page_at(Some("a"), 50),
                PageEnd {
                    next: Some("b".into()),
                    ..PageEnd::default()
                },
                page_at(Some("c"), 9),
                page_at(Some("d"), 8),
                page_at(Some("e"), 7),
            ]
        };
        let ends = pages_of(&network, Some(mark), pages());
        let (last, cap) = &ends[4];
        assert_eq!((&last.state, *cap), (&CursorState::Complete, None));
        assert_eq!(last.mark.as_deref(), Some("1970-01-03T02:00:00Z"));
        for (cursor, _) in &ends[..4] {
            assert!(matches!(cursor.state, CursorState::Next(_)), "{cursor:?}");
            assert_eq!(cursor.mark.as_deref(), Some(mark));
        }
        // Without a mark, the same pages are walked on and on.
        let (cursor, _) = &pages_of(&network, None, pages())[4];
        assert_eq!(cursor.state, CursorState::Next("e".into()));
        // What was refused, or went in a circle, lies between the marks.
        let refused = PageEnd {
            refused: true,
            ..PageEnd::default()
        };
        for broken in [refused, page_at(Some("a"), 49)] {
            let ends = pages_of(&network, Some(mark), vec![page_at(Some("a"), 50), broken]);
            let (cursor, _) = &ends[1];
            assert_eq!(cursor.state, CursorState::Complete);
            assert_eq!(cursor.mark.as_deref(), Some(mark));
        }
    }

    #[test]
    fn a_mark_lies_neither_behind_its_walks_beginning_nor_in_the_future() {
        let network = cursor_network("", "incremental = { until = \".at\" }");
        let forged = vec![page_at(Some("a"), 9_999), page_at(None, 101)];
        let ends = pages_of(&network, None, forged);
        assert_eq!(ends[1].0.mark.as_deref(), Some("1970-01-05T04:00:00Z"));
        // A mark from the future, of a clock that was wrong, hides nothing but what is old now.
        let ends = pages_of(
            &network,
            Some("2100-01-01T00:00:00Z"),
            vec![page_at(Some("a"), 101), page_at(Some("b"), 99)],
        );
        assert!(matches!(ends[0].0.state, CursorState::Next(_)));
        assert_eq!(ends[1].0.state, CursorState::Complete);
    }

    #[test]
    fn a_list_that_the_network_cuts_off_is_capped_even_if_no_page_follows() {
        let network = cursor_network(", items_max = 80", "");
        for next in [None, Some("b")] {
            let ends = pages_of(
                &network,
                None,
                vec![page_at(Some("a"), 9), page_at(next, 8)],
            );
            assert_eq!((ends[0].1, ends[1].1), (None, Some(Cap::Items)));
            assert_eq!(ends[1].0.state, CursorState::Complete);
        }
        let ends = pages_of(&network, None, vec![page_at(None, 9)]);
        assert_eq!(ends[0].1, None);
    }

    #[test]
    fn a_walk_from_a_mark_shows_only_part_of_a_list() {
        let network = cursor_network("", "incremental = { until = \".at\" }");
        let task = task(0, Vec::new());
        let robot = network.robot("posts").expect("a robot");
        let step = next_step(&network, robot, &task, &[], &Own).expect("a step");
        assert!(is_whole(&step));
        let ends = pages_of(&network, None, vec![page_at(None, 9)]);
        let marked = Step {
            cursor: Some(ends[0].0.clone()),
            ..step
        };
        assert!(!is_whole(&marked));
    }

    /// A tree whose answers leave something out.
    fn tree_network() -> Network {
        let text = r#"format = 1
name = "tiny"
verified_on = "2026-11-18"
host = { kind = "fixed", address = "https://tiny.example" }

[types.user]
table = "users"
canonical = ".id"

[queries.tree]
subject = "user"
path = "/tree"

[[queries.tree.selects]]
at = ".all[]"
as = "user"
stubs = [{ ids = ".more", query = "rest" }]

[queries.rest]
subject = "user"
path = "/rest"
expands = { parameter = "ids", style = "comma", max = 2 }
pages_max = 5

[[queries.rest.selects]]
at = ".all[]"
as = "user"

[[robots]]
name = "trees"
subject = "user"
steps = [{ query = "tree" }, { query = "rest" }]

[[seeds]]
pattern = "@{name}"
type = "user"
value = "{name}"
"#;
        Network::parse("tiny.toml", text).expect("a definition")
    }

    /// Visits a tree to its end: what was asked for, and what ended it.
    fn visit(
        network: &Network,
        task: &mut TaskRecord,
        first: &[&str],
        named_by: impl Fn(&str) -> Vec<String>,
    ) -> (Vec<String>, Option<Cap>) {
        let robot = network.robot("trees").expect("a robot");
        let rest = network.query("rest").expect("a query");
        let (mut asked, mut capped) = (Vec::new(), None);
        while let Some(step) = next_step(network, robot, task, &[], &Own) {
            let query = network.query(&step.query).expect("a query");
            let moment = (WorldTime(5), own(query));
            let mut page = PageEnd::default();
            let mut moved = Vec::new();
            if query.expands() {
                let open = open_ids(query, task, step.walk).expect("something is open");
                let ids: Vec<&str> = open.split(',').take(2).collect();
                asked.push(ids.join(","));
                let found: Vec<String> = ids.iter().flat_map(|id| named_by(id)).collect();
                let found: Vec<&str> = found.iter().map(String::as_str).collect();
                page.next = query.open_after(Some(open), true, &found).token;
            } else {
                asked.push(query.name.to_string());
                let open = rest.open_after(open_ids(rest, task, step.walk), false, first);
                let opened = open
                    .token
                    .map(|token| opened(rest, task, step.walk, token, (WorldTime(5), own(rest))));
                moved.extend(opened.transpose().expect("it was not asked yet"));
            }
            let (cursor, cap) = advance(query, Key(1), &step, &page, History::All, moment);
            moved.push(cursor);
            for cursor in moved {
                task.cursors.retain(|known| known.query != cursor.query);
                task.cursors.push(cursor);
            }
            capped = capped.or(cap);
            assert!(asked.len() < 100, "endless");
        }
        (asked, capped)
    }

    #[test]
    fn what_a_tree_leaves_out_is_asked_for_until_nothing_is_open() {
        let network = tree_network();
        let mut task = task(0, Vec::new());
        let named_by = |id: &str| match id {
            "b" => vec!["d".to_owned(), "e".to_owned()],
            _ => Vec::new(),
        };
        let (asked, cap) = visit(&network, &mut task, &["a", "b", "c"], named_by);
        assert_eq!(asked, ["tree", "a,b", "c,d", "e"]);
        assert_eq!(cap, None);
        // Another visit asks for the tree again, and if that leaves out nothing, for nothing else.
        task.row.visits = 1;
        let (asked, _) = visit(&network, &mut task, &[], named_by);
        assert_eq!(asked, ["tree"]);
    }

    #[test]
    fn a_visit_that_was_left_goes_on_with_what_is_open() {
        let network = tree_network();
        let rest = network.query("rest").expect("a query");
        let mut task = task(0, Vec::new());
        let none = |_: &str| Vec::new();
        visit(&network, &mut task, &[], none);
        let moment = (WorldTime(5), own(rest));
        let open = opened(rest, &task, 1, "x,y,z".into(), moment.clone());
        task.cursors.push(open.expect("a cursor"));
        assert_eq!(visit(&network, &mut task, &[], none).0, ["x,y", "z"]);
        // What an earlier visit did not come to is told anew by the tree.
        let open = opened(rest, &task, 1, "x".into(), moment.clone());
        task.cursors.retain(|cursor| cursor.query != rest.name);
        task.cursors.push(open.expect("a cursor"));
        task.row.visits = 1;
        assert_eq!(visit(&network, &mut task, &["w"], none).0, ["tree", "w"]);
    }

    #[test]
    fn stubs_that_name_one_another_for_ever_are_given_up() {
        let network = tree_network();
        let circle = |id: &str| vec![if id == "a" { "b" } else { "a" }.to_owned()];
        let (_, cap) = visit(&network, &mut task(0, Vec::new()), &["a"], circle);
        assert_eq!(cap, Some(Cap::RepeatingCursor));
        let endless = |id: &str| vec![format!("{id}x")];
        let (asked, cap) = visit(&network, &mut task(0, Vec::new()), &["a"], endless);
        assert_eq!((asked.len(), cap), (6, Some(Cap::EndlessPages)));
        // Nor do other answers open it again in the same visit.
        let rest = network.query("rest").expect("a query");
        let mut task = task(0, Vec::new());
        visit(&network, &mut task, &["a"], endless);
        let moment = (WorldTime(5), own(rest));
        let again = opened(rest, &task, 1, "b".into(), moment.clone());
        assert_eq!(again, Err(Cap::EndlessPages));
        assert!(opened(rest, &task, 2, "b".into(), moment).is_ok());
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
