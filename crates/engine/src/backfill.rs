//! Whether a list that was never walked is had more cheaply in one piece. Pure.

use crate::settings::History;
use kittiwake_model::{Cursor, CursorState, Key, Name, WorldTime};
use kittiwake_network::{Backfill, Query};
use kittiwake_store::TaskRecord;

/// Whether the query that tells all at once is asked in place of a walk.
///
/// `whole_calls` is what it takes, with whatever has to be looked up first; `None` if it cannot be
/// asked. A list that was begun is gone on with, and what failed in this visit is not tried twice.
pub(crate) fn is_wanted(
    list: &Query,
    backfill: &Backfill,
    task: &TaskRecord,
    history: History,
    whole_calls: Option<u64>,
) -> bool {
    let walk = task.row.visits.saturating_add(1);
    let is_begun = task.cursors.iter().any(|it| it.query == list.name);
    let is_tried = |it: &Cursor| it.query == backfill.query && it.walk >= walk;
    if is_begun || task.cursors.iter().any(is_tried) {
        return false;
    }
    let pages = pages(list, task.counts.get(&backfill.count), history);
    match (pages, whole_calls) {
        (Some(pages), Some(calls)) => pages > calls,
        _ => false,
    }
}

/// How many pages a whole walk has, as far as that is known.
fn pages(list: &Query, count: Option<i64>, history: History) -> Option<u64> {
    let count = u64::try_from(count?).ok()?;
    let wanted = match history {
        History::All => count,
        History::Posts(most) => count.min(u64::from(most)),
        // Nobody knows how many pages lie behind a time.
        History::Since(_) => return None,
    };
    let size = u64::from(list.page_size()?);
    Some(wanted.div_ceil(size).max(1))
}

/// The cursor of a list that was had in one piece: a later walk goes on from when that was asked for.
pub(crate) fn finished(
    list: &Query,
    subject: Key,
    walk: u32,
    (items, digest): (u32, Name),
    began: WorldTime,
) -> Cursor {
    Cursor {
        subject,
        query: list.name.clone(),
        walk,
        digest,
        pages: 1,
        items,
        state: CursorState::Complete,
        checkpoint: None,
        mark: list.mark_after(None, Some(began), began),
        mark_next: None,
        started: began,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kittiwake_model::{FrontierRow, Identity};
    use kittiwake_network::Network;
    use kittiwake_store::Counts;

    const TEXT: &str = r#"format = 1
name = "tiny"
verified_on = "2026-11-16"
host = { kind = "fixed", address = "https://tiny.example" }

[types.user]
table = "users"
canonical = ".id"

[types.post]
table = "statuses"
canonical = ".id"

[queries.posts]
subject = "user"
path = "/posts"
page = { style = "cursor", at = ".next", parameter = "after", size = 100 }
incremental = { until = ".at", overlap = "1m" }
selects = [{ at = ".posts[]", as = "post" }]

[queries.everything]
subject = "user"
path = "/everything"
selects = [{ at = ".posts[]", as = "post" }]

[[robots]]
name = "posts"
subject = "user"
steps = [{ query = "posts", backfill = { query = "everything", count = "statuses_count" } }]

[[seeds]]
pattern = "@{name}"
type = "user"
value = "{name}"
"#;

    fn task(count: Option<i64>, cursors: Vec<Cursor>) -> TaskRecord {
        TaskRecord {
            row: FrontierRow {
                subject: Key(1),
                robot: "posts".into(),
                lane: "lane".into(),
                visits: 0,
                visited: None,
                due: WorldTime(0),
                state: Vec::new(),
            },
            depth: Some(0),
            opted_out: false,
            counts: Counts {
                statuses: count,
                ..Counts::default()
            },
            identity: Identity {
                network: "tiny".into(),
                kind: "user".into(),
                canonical: None,
                aliases: Vec::new(),
            },
            cursors,
        }
    }

    /// Whether a list of so many is had in one piece that takes so many calls.
    fn wanted(count: Option<i64>, calls: Option<u64>, history: History) -> bool {
        let network = Network::parse("tiny.toml", TEXT).expect("a definition");
        let list = network.query("posts").expect("a query");
        let step = &network.robot("posts").expect("a robot").steps[0];
        let backfill = step.backfill.as_ref().expect("a backfill");
        is_wanted(list, backfill, &task(count, Vec::new()), history, calls)
    }

    #[test]
    fn what_takes_fewer_calls_is_asked() {
        let all = History::All;
        for (count, calls, is_wanted) in [
            (100, 1, false),
            (101, 1, true),
            (200, 2, false),
            (201, 2, true),
            (0, 1, false),
            (-5, 1, false),
        ] {
            assert_eq!(wanted(Some(count), Some(calls), all), is_wanted, "{count}");
        }
        assert!(!wanted(None, Some(1), all), "nobody knows how long it is");
        assert!(!wanted(Some(9_000), None, all), "it cannot be asked");
    }

    #[test]
    fn a_short_history_is_walked() {
        assert!(!wanted(Some(9_000), Some(2), History::Posts(150)));
        assert!(wanted(Some(9_000), Some(2), History::Posts(250)));
        assert!(!wanted(Some(9_000), Some(2), History::Since(WorldTime(5))));
    }

    #[test]
    fn what_was_begun_is_gone_on_with_and_what_failed_is_not_tried_twice() {
        let network = Network::parse("tiny.toml", TEXT).expect("a definition");
        let list = network.query("posts").expect("a query");
        let whole = network.query("everything").expect("a query");
        let step = &network.robot("posts").expect("a robot").steps[0];
        let backfill = step.backfill.as_ref().expect("a backfill");
        let cursor = |query: &Query, walk| Cursor {
            query: query.name.clone(),
            ..finished(list, Key(1), walk, (7, "d".into()), WorldTime(0))
        };
        let is_wanted = |cursors| {
            let task = task(Some(9_000), cursors);
            is_wanted(list, backfill, &task, History::All, Some(2))
        };
        assert!(is_wanted(vec![]));
        assert!(!is_wanted(vec![cursor(list, 1)]));
        assert!(!is_wanted(vec![cursor(whole, 1)]), "tried in this visit");
        assert!(is_wanted(vec![cursor(whole, 0)]));
    }

    #[test]
    fn a_later_walk_goes_on_from_when_the_whole_was_asked_for() {
        let network = Network::parse("tiny.toml", TEXT).expect("a definition");
        let list = network.query("posts").expect("a query");
        let cursor = finished(list, Key(1), 3, (7, "d".into()), WorldTime(3_600_000_000));
        assert_eq!(cursor.mark.as_deref(), Some("1970-01-01T01:00:00Z"));
        assert_eq!((cursor.state, cursor.walk), (CursorState::Complete, 3));
    }
}
