//! What a crawl needs between visits: outcomes, cursors, frontier, runs.

use super::build::{
    Seeded, at, card, commit, follows, frontier, key, link, log_row, number, of_kind, outcome,
    post, rules, seed, select, tell, user,
};
use super::{Inspect, Make};
use crate::{Due, DueQuestion, StoreErrorKind};
use kittiwake_model::{
    Commit, Cursor, CursorState, FrontierRow, Key, Link, List, Name, OutcomeCode, RealTime,
    Reference, RunEnd, RunRecord, RunUpdate, Walk, WorldTime,
};
use std::sync::Arc;

/// Everything that is due in a lane, page by page.
async fn all_due(store: &dyn Inspect, lane: &str, since: Option<i64>, page: usize) -> Vec<Due> {
    let mut question = DueQuestion {
        lane: lane.into(),
        after: None,
        not_visited_since: since.map(WorldTime),
        limit: page,
    };
    let mut all: Vec<Due> = Vec::new();
    loop {
        let rows = store.due(question.clone()).await.unwrap();
        assert!(rows.len() <= page);
        let Some(last) = rows.last() else {
            return all;
        };
        question.after = Some((last.due, last.subject));
        all.extend(rows);
    }
}

pub async fn what_is_due_is_read_in_order(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let discoveries = (0..25).map(|n| seed(&user(&format!("u{n}")), 0)).collect();
    let report = commit(
        &*store,
        Commit {
            discoveries,
            expansion: Some(rules(0, true, true)),
            ..at(3)
        },
    )
    .await;
    assert_eq!(report.filed.len(), 50);
    // Times that repeat, times before 1970, and some that were visited.
    let mut random = Seeded::new(11);
    let mut rows = frontier(&*store).await;
    for row in &mut rows {
        row.due = WorldTime([i64::MIN, -5, 0, 7, i64::MAX][random.below(5)]);
        row.visits = random.below(2) as u32;
        row.visited = (row.visits > 0).then(|| WorldTime(random.below(20) as i64));
    }
    let moved = Commit {
        frontier: rows.clone(),
        ..at(4)
    };
    assert_eq!(commit(&*store, moved).await.filed.len(), 50);
    for since in [None, Some(0), Some(10), Some(i64::MIN), Some(i64::MAX)] {
        let mut expected: Vec<Due> = rows
            .iter()
            .filter(|row| &*row.lane == "example.social/relations")
            .filter(|row| since.is_none_or(|since| row.visited.is_none_or(|at| at.0 < since)))
            .map(|row| Due {
                due: row.due,
                subject: row.subject,
            })
            .collect();
        expected.sort_unstable();
        for page in [1, 7, 100] {
            let all = all_due(&*store, "example.social/relations", since, page).await;
            assert_eq!(all, expected, "since {since:?}, {page} at a time");
        }
        for (after, limit) in [(None, 5), (None, 1_000), (expected.get(3).copied(), 1_000)] {
            let question = DueQuestion {
                lane: "example.social/relations".into(),
                after: after.map(|place| (place.due, place.subject)),
                not_visited_since: since.map(WorldTime),
                limit,
            };
            let left = expected
                .iter()
                .filter(|place| after.is_none_or(|after| **place > after));
            let waiting = store.waiting(question).await.unwrap();
            assert_eq!(waiting, left.count().min(limit) as u64);
        }
    }
    assert_eq!(all_due(&*store, "nowhere", None, 10).await, vec![]);
    by_subject(&*store, &rows).await;
}

/// A lane is the same in the order of its subjects.
async fn by_subject(store: &dyn Inspect, rows: &[FrontierRow]) {
    let lane: Name = "example.social/relations".into();
    let mut expected: Vec<(Key, WorldTime, Option<WorldTime>)> = rows
        .iter()
        .filter(|row| row.lane == lane)
        .map(|row| (row.subject, row.due, row.visited))
        .collect();
    expected.sort_unstable();
    for limit in [1, 7, 100] {
        let (mut read, mut after) = (Vec::new(), None);
        loop {
            let step = store.remembered_by_subject(lane.clone(), after, limit);
            let step = step.await.unwrap();
            read.extend(step.iter().map(|row| (row.subject, row.due, row.visited)));
            after = step.last().map(|row| row.subject);
            if step.len() < limit {
                break;
            }
        }
        assert_eq!(read, expected, "{limit} at a time");
    }
}

pub async fn tasks_are_read_as_they_were_written(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let planted = Commit {
        discoveries: vec![seed(&user("u1"), 0), seed(&user("u2"), 0)],
        expansion: Some(rules(0, true, true)),
        ..at(3)
    };
    commit(&*store, planted).await;
    let moved = FrontierRow {
        visits: 1,
        visited: Some(WorldTime(98)),
        due: WorldTime(99),
        state: vec![1, 2, 3],
        ..frontier(&*store).await.remove(2)
    };
    let report = commit(
        &*store,
        Commit {
            frontier: vec![moved.clone()],
            ..at(4)
        },
    )
    .await;
    assert_eq!(report.filed.len(), 1);
    let filed = &report.filed[0];
    assert_eq!(
        (filed.visited, filed.due),
        (Some(WorldTime(98)), WorldTime(99))
    );
    let task = (moved.subject, moved.robot.clone());
    let unknown = (Key(1_000_000), Name::from("profiles"));
    let records = store.tasks(vec![unknown, task]).await.unwrap();
    assert_eq!(records[0], None);
    let record = records[1].as_ref().unwrap();
    assert_eq!(record.row, moved);
    assert_eq!(record.depth, Some(0));
    assert_eq!(record.identity.canonical.as_deref(), Some("u2"));
    assert!(!record.opted_out);
}

pub async fn many_tasks_are_read_in_the_order_in_which_they_are_asked_for(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let names = (0..150).map(|n| seed(&user(&format!("u{n}")), 0));
    let planted = Commit {
        discoveries: names.collect(),
        expansion: Some(rules(0, true, true)),
        ..at(3)
    };
    commit(&*store, planted).await;
    let mut random = Seeded::new(5);
    let mut rows: Vec<Option<FrontierRow>> =
        frontier(&*store).await.into_iter().map(Some).collect();
    rows.resize(rows.len() + 37, None);
    for place in (1..rows.len()).rev() {
        rows.swap(place, random.below(place + 1));
    }
    for many in [0, 1, 16, 17, 65, rows.len()] {
        let asked = rows[..many].iter().map(|row| match row {
            Some(row) => (row.subject, row.robot.clone()),
            None => (Key(1_000_000), Name::from("profiles")),
        });
        let records = store.tasks(asked.collect()).await.unwrap();
        let read = records.into_iter().map(|record| record.map(|it| it.row));
        assert_eq!(read.collect::<Vec<_>>(), rows[..many], "{many} tasks");
    }
}

pub async fn cursors_are_replaced(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = commit(
        &*store,
        Commit {
            discoveries: vec![seed(&user("alice"), 0)],
            expansion: Some(rules(0, true, true)),
            ..at(1)
        },
    )
    .await
    .discovered[0];
    let next = Cursor {
        subject: alice,
        query: "following".into(),
        walk: 1,
        digest: "d".into(),
        pages: 1,
        items: 40,
        state: CursorState::Next("max_id='5'".to_owned()),
        checkpoint: None,
        mark_next: Some("9".to_owned()),
        mark: None,
        started: WorldTime(2),
    };
    let done = Cursor {
        pages: 2,
        state: CursorState::Complete,
        mark: Some("9".to_owned()),
        mark_next: None,
        ..next.clone()
    };
    let other = Cursor {
        query: "followers".into(),
        ..next.clone()
    };
    for (cursors, expected) in [
        (vec![next.clone()], vec![next.clone()]),
        (vec![other.clone(), done.clone()], vec![other, done]),
    ] {
        commit(&*store, Commit { cursors, ..at(3) }).await;
        let records = store.tasks(vec![(alice, "profiles".into())]).await.unwrap();
        assert_eq!(records[0].as_ref().unwrap().cursors, expected);
    }
}

fn run_record(started: i64) -> RunRecord {
    RunRecord {
        network: "mastodon".into(),
        host: "example.social".to_owned(),
        definition: "digest".into(),
        definition_text: "format = 1 # 'quoted'".to_owned(),
        clock: "real".to_owned(),
        settings: "{\"depth\":2}".to_owned(),
        started: RealTime(started),
    }
}

pub async fn runs_are_kept_with_their_definitions(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    assert_eq!(store.last_run().await.unwrap(), None);
    for started in [1, 2] {
        let report = commit(
            &*store,
            Commit {
                run: Some(RunUpdate::Start(Box::new(run_record(started)))),
                ..at(started)
            },
        )
        .await;
        assert_eq!(report.run, Some(started));
    }
    assert_eq!(store.last_run().await.unwrap(), Some((2, run_record(2))));
    let end = RunEnd {
        ended: RealTime(9),
        reason: "idle".to_owned(),
    };
    commit(
        &*store,
        Commit {
            run: Some(RunUpdate::End { run: 2, end }),
            ..at(9)
        },
    )
    .await;
    let rows = select(
        &*store,
        "SELECT id, ended_us, end_reason FROM runs ORDER BY id",
    )
    .await;
    assert_eq!(rows[0], [Some("1".to_owned()), None, None]);
    assert_eq!(
        rows[1],
        ["2", "9", "idle"].map(|cell| Some(cell.to_owned()))
    );
    assert_eq!(number(&*store, "SELECT count(*) FROM definitions").await, 1);
}

pub async fn outcomes_keep_the_newest_and_count_all(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = key(&*store, &user("alice")).await;
    for (at_us, code) in [
        (5, OutcomeCode::Ok),
        (9, OutcomeCode::Protected),
        (7, OutcomeCode::Transient),
    ] {
        tell(&*store, at_us, alice, code).await;
    }
    let rows = select(
        &*store,
        "SELECT outcome, reason, at_us, log, times FROM outcomes",
    )
    .await;
    let expected = ["protected", "http", "9", "2", "3"].map(|cell| Some(cell.to_owned()));
    assert_eq!(rows, vec![expected.to_vec()]);
    let told = store.summary().await.unwrap().reasons;
    let told: Vec<_> = told
        .iter()
        .map(|it| (&*it.outcome, &*it.reason, it.subjects))
        .collect();
    assert_eq!(told, [("protected", "http", 1)]);
    tell(&*store, 11, alice, OutcomeCode::Ok).await;
    assert!(store.summary().await.unwrap().reasons.is_empty());
}

pub async fn links_keep_the_widest_span(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let (alice, bob) = (user("alice"), user("bob"));
    let walked = |at_us: i64, list: List, number: u32| Commit {
        links: vec![
            Link {
                walk: Some(Walk { list, number }),
                ..follows(&alice, &bob)
            },
            Link {
                at: (at_us != 5).then_some(WorldTime(at_us - 1)),
                ..link("like", &alice, &of_kind("status", "s"))
            },
            // Nobody follows himself.
            follows(&alice, &alice),
        ],
        ..at(at_us)
    };
    let mut random = Seeded::new(3);
    let mut commits = vec![
        walked(5, List::Following, 1),
        walked(9, List::Following, 2),
        walked(3, List::Followers, 4),
        walked(7, List::Followers, 3),
    ];
    for _ in 0..4 {
        random.shuffle(&mut commits);
        let place = make();
        let store = place.open().unwrap();
        for one in &commits {
            commit(&*store, one.clone()).await;
        }
        let rows = select(
            &*store,
            "SELECT first_seen_us, last_seen_us, following_walk, followers_walk
             FROM user_relations",
        )
        .await;
        let expected = ["3", "9", "2", "4"].map(|cell| Some(cell.to_owned()));
        assert_eq!(rows, vec![expected.to_vec()]);
        let rows = select(
            &*store,
            "SELECT at_us, first_seen_us, last_seen_us FROM links",
        )
        .await;
        let expected = ["2", "3", "9"].map(|cell| Some(cell.to_owned()));
        assert_eq!(rows, vec![expected.to_vec()]);
    }
    drop(store);
}

pub async fn everything_is_there_after_reopening(make: Make<'_>) {
    let place = make();
    let rules = rules(1, true, true);
    let store = place.open().unwrap();
    let first = Commit {
        objects: vec![card(user("alice"), "Alice")],
        links: vec![follows(&user("alice"), &user("bob"))],
        discoveries: vec![seed(&user("alice"), 0)],
        expansion: Some(rules.clone()),
        log: Some(log_row("profile")),
        run: Some(RunUpdate::Start(Box::new(run_record(1)))),
        ..at(1)
    };
    commit(&*store, first).await;
    let before = (store.summary().await.unwrap(), frontier(&*store).await);
    drop(store);
    let store = place.open().unwrap();
    let after = (store.summary().await.unwrap(), frontier(&*store).await);
    assert_eq!(before, after);
    // Log rows go on where they were, and the same rules file nobody again.
    let report = commit(
        &*store,
        Commit {
            log: Some(log_row("profile")),
            expansion: Some(rules),
            ..at(2)
        },
    )
    .await;
    assert_eq!(report.log, Some(2));
    assert!(report.filed.is_empty() && !report.backlog);
}

pub async fn concurrent_commits_are_all_kept(make: Make<'_>) {
    let place = make();
    let store: Arc<dyn Inspect> = Arc::from(place.open().unwrap());
    let mut committers = Vec::new();
    for committer in 0..16 {
        let store = store.clone();
        committers.push(tokio::spawn(async move {
            let mut logs = Vec::new();
            for page in 0..10 {
                let author = user(&format!("author{}", page % 3));
                let id = format!("s{committer}-{page}");
                let pages = vec![
                    Commit {
                        objects: vec![
                            post(of_kind("status", &id), &author, &id),
                            card(author.clone(), "same"),
                        ],
                        log: Some(log_row("timeline")),
                        ..at(5)
                    },
                    Commit {
                        log: Some(log_row("timeline")),
                        ..at(6)
                    },
                ];
                let reports = store.commit(pages).await.unwrap();
                logs.extend(reports.iter().map(|report| report.log.unwrap()));
            }
            logs
        }));
    }
    let mut logs = Vec::new();
    for committer in committers {
        logs.extend(committer.await.unwrap());
    }
    logs.sort_unstable();
    assert_eq!(logs, (1..=320).collect::<Vec<i64>>());
    assert_eq!(number(&*store, "SELECT count(*) FROM statuses").await, 160);
    assert_eq!(number(&*store, "SELECT count(*) FROM users").await, 3);
    assert_eq!(number(&*store, "SELECT count(*) FROM query_log").await, 320);
}

pub async fn a_commit_that_contradicts_itself_fails_alone(make: Make<'_>) {
    let place = make();
    let store: Arc<dyn Inspect> = Arc::from(place.open().unwrap());
    let mut committers = Vec::new();
    for number in 0..12 {
        let store = store.clone();
        committers.push(tokio::spawn(async move {
            let mut commits = vec![Commit {
                objects: vec![card(user(&format!("u{number}")), "x")],
                ..at(1)
            }];
            if number % 4 == 0 {
                // Points at an object that the commit does not have.
                commits.push(Commit {
                    links: vec![Link {
                        from: Reference::Object(9),
                        ..follows(&user("a"), &user("b"))
                    }],
                    ..at(1)
                });
            }
            (number, store.commit(commits).await)
        }));
    }
    for committer in committers {
        let (number, outcome) = committer.await.unwrap();
        if number % 4 == 0 {
            assert_eq!(outcome.unwrap_err().kind(), StoreErrorKind::Invalid);
        } else {
            outcome.unwrap();
        }
    }
    // What was sent together is kept or left together.
    assert_eq!(number(&*store, "SELECT count(*) FROM users").await, 9);
    let unknown = Commit {
        outcomes: vec![outcome(Key(777), OutcomeCode::Ok)],
        ..at(1)
    };
    let error = store.commit(vec![unknown]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert!(store.commit(vec![at(2)]).await.is_ok());
}

pub async fn a_summary_counts(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let report = commit(
        &*store,
        Commit {
            objects: vec![card(user("alice"), "Alice")],
            discoveries: vec![seed(&user("alice"), 0)],
            links: vec![follows(&user("alice"), &user("bob"))],
            expansion: Some(rules(0, true, false)),
            log: Some(log_row("profile")),
            ..at(1)
        },
    )
    .await;
    let alice = report.discovered[0];
    tell(&*store, 2, alice, OutcomeCode::Ok).await;
    let visited = FrontierRow {
        visits: 1,
        ..frontier(&*store).await.remove(0)
    };
    commit(
        &*store,
        Commit {
            frontier: vec![visited],
            ..at(3)
        },
    )
    .await;
    let summary = store.summary().await.unwrap();
    assert_eq!(summary.rows["users"], 1);
    assert_eq!(summary.rows["user_relations"], 1);
    assert_eq!(summary.rows["pending"], 1);
    assert_eq!(summary.robots["profiles"], (1, 1));
    assert_eq!(summary.robots["relations"], (1, 0));
    assert_eq!(summary.outcomes["ok"], 1);
    assert_eq!(summary.calls, 2);
    assert_eq!(summary.depths, [(0, 1), (1, 1)].into());
}
