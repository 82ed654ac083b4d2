//! Keys that turn out to be one object.

use super::build::{
    SeedOnFailure, Seeded, With, at, card, cell, commit, follows, group, id_of, key, link, log_row,
    named_value, number, object, of_kind, post, rules, seed, select, text, unnamed, user,
};
use super::{Inspect, Make, TextRows};
use kittiwake_model::{
    Commit, Cursor, CursorState, Filed, FrontierRow, Identity, Key, Link, LinkTable, Object,
    Outcome, OutcomeCode, Reference, Table, WorldTime,
};

/// The commit that proves two identities to be one: both ids in one answer.
fn proof(left: &Identity, right_local: &str, at_us: i64) -> Commit {
    Commit {
        objects: vec![card(left.clone().local(right_local), "proved")],
        log: Some(log_row("profile")),
        ..at(at_us)
    }
}

pub async fn keys_are_merged_in_every_direction(make: Make<'_>) {
    let canonical = user("https://a/alice");
    let local = unnamed("user").local("1");
    // By canonical id and stable alias, whichever was first.
    for swapped in [false, true] {
        let place = make();
        let store = place.open().unwrap();
        let (first, second) = if swapped {
            (&local, &canonical)
        } else {
            (&canonical, &local)
        };
        let seeds = Commit {
            discoveries: vec![seed(first, 0), seed(second, 0)],
            ..at(1)
        };
        let keys = commit(&*store, seeds).await.discovered;
        assert!(keys[0] < keys[1]);
        let report = commit(&*store, proof(&canonical, "1", 2)).await;
        assert_eq!(report.merged, vec![(keys[1], keys[0])]);
        assert_eq!(
            number(&*store, "SELECT count(DISTINCT key) FROM ids").await,
            1
        );
        let rows = select(&*store, "SELECT loser, winner, at_us, log FROM key_merges").await;
        let expected = [keys[1].0, keys[0].0, 2, 1].map(|cell| Some(cell.to_string()));
        assert_eq!(rows, vec![expected.to_vec()]);
    }
    // By the key under which it was asked for, whichever is greater.
    for asked in [0, 1] {
        let place = make();
        let store = place.open().unwrap();
        let seeds = Commit {
            discoveries: vec![seed(&canonical, 0), seed(&local, 0)],
            ..at(1)
        };
        let keys = commit(&*store, seeds).await.discovered;
        let described = if asked == 0 { &local } else { &canonical };
        let answer = Commit {
            objects: vec![Object {
                known_as: Some(keys[asked]),
                ..card(described.clone(), "Alice")
            }],
            ..at(2)
        };
        let report = commit(&*store, answer).await;
        assert_eq!(report.merged, vec![(keys[1], keys[0])]);
        assert_eq!(
            number(&*store, "SELECT key FROM users").await,
            keys[0].0,
            "the least key survives"
        );
    }
}

/// Everything of a small world in which `left` and `right` are two users.
fn world(left: &Identity, right: &Identity) -> Vec<Commit> {
    let (bob, cid) = (user("bob"), user("cid"));
    let status = |id: &str, author: &Identity| post(of_kind("status", id), author, id);
    let tag = of_kind("tag", "birds");
    let user_tag = |from: &Identity| Link {
        table: LinkTable::UserTags,
        ..follows(from, &tag)
    };
    vec![
        Commit {
            objects: vec![card(left.clone(), "L"), status("s1", left)],
            links: vec![
                follows(left, &bob),
                follows(&cid, left),
                follows(left, right),
                link("like", left, &of_kind("status", "s1")),
                user_tag(left),
            ],
            ..at(10)
        },
        Commit {
            objects: vec![card(right.clone(), "R"), status("s2", right)],
            links: vec![
                follows(right, &bob),
                follows(&bob, right),
                follows(right, left),
                link("mention", &of_kind("status", "s1"), right),
                link("like", right, &of_kind("status", "s1")),
                user_tag(right),
            ],
            ..at(20)
        },
    ]
}

/// What the world looks like, by canonical ids.
async fn picture(store: &dyn Inspect) -> TextRows {
    let mut rows = TextRows::new();
    for sql in [
        format!(
            "SELECT 'user', {}, display_name FROM users",
            id_of("users.key")
        ),
        format!(
            "SELECT 'status', {}, {} FROM statuses",
            id_of("statuses.key"),
            id_of("author")
        ),
        format!(
            "SELECT 'relation', {}, {}, first_seen_us, last_seen_us FROM user_relations",
            id_of("source"),
            id_of("target")
        ),
        format!(
            "SELECT kind, {}, {}, first_seen_us, last_seen_us FROM links",
            id_of("from_key"),
            id_of("to_key")
        ),
        format!(
            "SELECT 'tag', {}, {}, first_seen_us, last_seen_us FROM user_tags",
            id_of("user_tags.user"),
            id_of("tag")
        ),
        format!("SELECT 'pending', {} FROM pending", id_of("pending.key")),
        format!(
            "SELECT 'version', {}, fields FROM versions",
            id_of("versions.key")
        ),
    ] {
        rows.extend(select(store, &sql).await);
    }
    rows.sort();
    rows
}

pub async fn merged_rows_equal_rows_that_were_one_from_the_start(make: Make<'_>) {
    let alice = user("alice").local("1");
    let last = Commit {
        objects: vec![card(alice.clone(), "proved")],
        ..at(30)
    };
    let mut pictures = Vec::new();
    for apart in [true, false] {
        for reversed in [false, true] {
            let place = make();
            let store = place.open().unwrap();
            let (left, right) = if apart {
                (user("alice"), unnamed("user").local("1"))
            } else {
                (alice.clone(), alice.clone())
            };
            let mut commits = world(&left, &right);
            if reversed {
                commits.reverse();
            }
            for one in commits {
                commit(&*store, one).await;
            }
            commit(&*store, last.clone()).await;
            pictures.push(picture(&*store).await);
        }
    }
    for other in &pictures[1..] {
        assert_eq!(other, &pictures[0]);
    }
}

pub async fn a_merged_key_is_followed(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let rules = rules(1, true, true);
    let local = unnamed("user").local("1");
    let seeds = Commit {
        discoveries: vec![seed(&user("alice"), 0), seed(&local, 0)],
        expansion: Some(rules.clone()),
        ..at(1)
    };
    let keys = commit(&*store, seeds).await.discovered;
    commit(&*store, proof(&user("alice"), "1", 2)).await;
    let (winner, loser) = (keys[0], keys[1]);
    // Everything that can carry a key carries the old one.
    let mut log = log_row("following");
    log.subjects = vec![loser];
    let late = Commit {
        objects: vec![Object {
            known_as: Some(loser),
            ..card(user("alice"), "late")
        }],
        links: vec![Link {
            from: Reference::Key(loser),
            ..follows(&user("alice"), &user("bob"))
        }],
        outcomes: vec![Outcome {
            subject: loser,
            query: "following".into(),
            code: OutcomeCode::Ok,
            reason: String::new(),
        }],
        frontier: vec![task(loser, "relations", 3)],
        cursors: vec![cursor(loser, 2)],
        log: Some(log),
        ..at(3)
    };
    let report = commit(&*store, late).await;
    assert_eq!(report.merged, vec![]);
    assert_eq!(report.filed[0].subject, winner);
    for sql in [
        "SELECT key FROM users",
        "SELECT source FROM user_relations",
        "SELECT key FROM outcomes",
        "SELECT subject FROM cursors",
        "SELECT DISTINCT subject FROM frontier",
    ] {
        assert_eq!(number(&*store, sql).await, winner.0, "{sql}");
    }
    let subjects = cell(
        &*store,
        "SELECT subjects FROM query_log WHERE query = 'following'",
    )
    .await;
    assert_eq!(subjects, Some(format!("[{}]", winner.0)));
    let records = store
        .tasks(vec![
            (loser, "relations".into()),
            (winner, "relations".into()),
        ])
        .await
        .unwrap();
    assert_eq!(records[0], None);
    assert_eq!(records[1].as_ref().unwrap().row.visits, 3);
}

fn task(subject: Key, robot: &str, visits: u32) -> FrontierRow {
    FrontierRow {
        subject,
        robot: robot.into(),
        lane: "lane".into(),
        visits,
        visited: Some(WorldTime(50 + i64::from(visits))),
        due: WorldTime(100 + i64::from(visits)),
        state: vec![visits as u8],
    }
}

fn cursor(subject: Key, walk: u32) -> Cursor {
    Cursor {
        subject,
        query: "following".into(),
        walk,
        digest: "paging".into(),
        pages: 4,
        items: 160,
        state: CursorState::Next(format!("max_id={walk}")),
        checkpoint: Some("c".to_owned()),
        mark_next: None,
        mark: Some("m".to_owned()),
        started: WorldTime(9),
    }
}

pub async fn keys_are_never_given_twice(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let local = unnamed("user").local("1");
    let seeds = Commit {
        discoveries: vec![seed(&user("alice"), 0), seed(&local, 0)],
        ..at(1)
    };
    let keys = commit(&*store, seeds).await.discovered;
    commit(&*store, proof(&user("alice"), "1", 2)).await;
    let next = key(&*store, &user("bob")).await;
    assert!(next > keys[1]);
    // Nor after the greatest key was merged away and the store was closed.
    let late = Commit {
        discoveries: vec![seed(&unnamed("user").local("2"), 0)],
        ..at(3)
    };
    let loser = commit(&*store, late).await.discovered[0];
    commit(&*store, proof(&user("bob"), "2", 4)).await;
    drop(store);
    let store = place.open().unwrap();
    assert!(key(&*store, &user("cid")).await > loser);
}

pub async fn a_merge_moves_tasks_and_cursors(make: Make<'_>) {
    for visited in [0, 1] {
        let place = make();
        let store = place.open().unwrap();
        let rules = rules(1, true, true);
        let seeds = Commit {
            discoveries: vec![
                seed(&user("alice"), 1),
                seed(&unnamed("user").local("1"), 0),
            ],
            expansion: Some(rules.clone()),
            ..at(1)
        };
        let keys = commit(&*store, seeds).await.discovered;
        let walked = Commit {
            frontier: vec![task(keys[visited], "relations", 2)],
            cursors: vec![cursor(keys[visited], 2), cursor(keys[1 - visited], 1)],
            ..at(2)
        };
        commit(&*store, walked).await;
        let report = commit(&*store, proof(&user("alice"), "1", 3)).await;
        let filed: Vec<Filed> = report.filed;
        assert!(filed.iter().all(|filed| filed.subject == keys[0]));
        let relations = filed.iter().find(|filed| &*filed.robot == "relations");
        assert_eq!(relations.unwrap().visited, Some(WorldTime(52)));
        let records = store
            .tasks(vec![
                (keys[0], "relations".into()),
                (keys[0], "profiles".into()),
                (keys[1], "profiles".into()),
            ])
            .await
            .unwrap();
        let record = records[0].as_ref().unwrap();
        assert_eq!(record.row, task(keys[0], "relations", 2));
        assert_eq!(record.depth, Some(0), "the lesser depth of the two");
        assert_eq!(record.cursors, vec![cursor(keys[0], 2)]);
        assert_eq!(record.identity.canonical.as_deref(), Some("alice"));
        assert_eq!(record.identity.alias("id", "example.social"), Some("1"));
        assert!(records[1].is_some() && records[2].is_none());
        assert_eq!(number(&*store, "SELECT count(*) FROM frontier").await, 2);
    }
}

pub async fn a_chain_of_merges_ends_at_one_key(make: Make<'_>) {
    for seed_number in 0..8_u64 {
        let _named = SeedOnFailure(seed_number);
        let mut random = Seeded::new(seed_number);
        let place = make();
        let store = place.open().unwrap();
        let alias = |number: usize| unnamed("user").local(&number.to_string());
        let discoveries = (0..8)
            .map(|number| seed(&alias(number), number as u32))
            .collect();
        let keys = commit(
            &*store,
            Commit {
                discoveries,
                ..at(1)
            },
        )
        .await
        .discovered;
        // Proofs that join neighbours, in any order, give one object.
        let mut joints: Vec<usize> = (0..7).collect();
        random.shuffle(&mut joints);
        for joint in joints {
            let both = alias(joint).local(&(joint + 1).to_string());
            commit(
                &*store,
                Commit {
                    objects: vec![card(both, "one")],
                    ..at(2)
                },
            )
            .await;
        }
        assert_eq!(
            number(&*store, "SELECT count(DISTINCT key) FROM ids").await,
            1
        );
        assert_eq!(number(&*store, "SELECT count(*) FROM users").await, 1);
        assert_eq!(number(&*store, "SELECT count(*) FROM key_merges").await, 7);
        assert_eq!(
            number(&*store, "SELECT max(winner) FROM key_merges").await,
            keys[0].0
        );
        let rows = select(&*store, "SELECT key, depth FROM subjects").await;
        assert_eq!(
            rows,
            vec![vec![Some(keys[0].0.to_string()), Some("0".to_owned())]]
        );
    }
}

pub async fn references_inside_extra_are_followed(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let moved = |at_us: i64, to: &Identity| Commit {
        objects: vec![object(
            Table::Users,
            user("old account"),
            vec![group("card", &[("moved_to", named_value(to))])],
        )],
        ..at(at_us)
    };
    let seeds = Commit {
        discoveries: vec![seed(&user("alice"), 0)],
        ..at(1)
    };
    commit(&*store, seeds).await;
    commit(&*store, moved(2, &unnamed("user").local("1"))).await;
    let report = commit(&*store, proof(&user("alice"), "1", 3)).await;
    assert_eq!(report.merged.len(), 1);
    // The same fact under the other id is no change.
    let report = commit(&*store, moved(4, &user("alice"))).await;
    assert_eq!(report.rows_changed, 0);
    assert_eq!(number(&*store, "SELECT count(*) FROM versions").await, 0);
}

pub async fn a_merge_within_one_transaction_keeps_both_halves(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let described = object(
        Table::Users,
        unnamed("user").local("1"),
        vec![group("profile", &[("location", text("a cliff"))])],
    );
    let commits = vec![
        Commit {
            discoveries: vec![seed(&user("alice"), 0)],
            ..at(1)
        },
        Commit {
            objects: vec![described],
            ..at(2)
        },
        proof(&user("alice"), "1", 3),
    ];
    store.commit(commits).await.unwrap();
    let rows = select(&*store, "SELECT location, display_name FROM users").await;
    let expected = ["a cliff", "proved"].map(|cell| Some(cell.to_owned()));
    assert_eq!(rows, vec![expected.to_vec()]);
    assert_eq!(number(&*store, "SELECT count(*) FROM pending").await, 0);
}

pub async fn a_failed_merge_leaves_no_trace(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let seeds = || Commit {
        discoveries: vec![
            seed(&user("alice"), 0),
            seed(&unnamed("user").local("1"), 0),
        ],
        ..at(1)
    };
    let keys = commit(&*store, seeds()).await.discovered;
    let mut broken = proof(&user("alice"), "1", 2);
    broken.links = vec![Link {
        from: Reference::Object(9),
        ..follows(&user("alice"), &user("bob"))
    }];
    assert!(store.commit(vec![broken]).await.is_err());
    assert_eq!(commit(&*store, seeds()).await.discovered, keys);
    let report = commit(&*store, proof(&user("alice"), "1", 3)).await;
    assert_eq!(report.log, Some(1));
    assert_eq!(report.merged, vec![(keys[1], keys[0])]);
}
