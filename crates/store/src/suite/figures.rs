//! What people see of how a crawl goes.

use super::browse::{all, browse, dated, status};
use super::build::{
    at, card, commit, follows, group, key, key_of, log_row, object, outcome, post, tell, text, user,
};
use super::{Inspect, Make};
use crate::browse::{
    ActivityQuestion, AgesQuestion, CallsQuestion, GraphQuestion, OutcomesOf, OutcomesQuestion,
    RunsQuestion,
};
use kittiwake_model::{Commit, FrontierRow, Identity, Key, OutcomeCode, Table, WorldTime};
use std::collections::BTreeSet;

/// Calls about one subject each, every third of which failed.
async fn calls(store: &dyn Inspect, subjects: &[Key], calls: usize) {
    let mut commits = Vec::new();
    for number in 0..calls {
        let has_failed = number % 3 == 2;
        let (code, reason) = if has_failed {
            (OutcomeCode::Transient, "http 503")
        } else {
            (OutcomeCode::Ok, "")
        };
        let mut log = log_row(if number % 2 == 0 { "profile" } else { "posts" });
        log.subjects = vec![subjects[number % subjects.len()]];
        (log.outcome, log.reason) = (code, reason.to_owned());
        commits.push(Commit {
            outcomes: vec![outcome(subjects[number % subjects.len()], code)],
            log: Some(log),
            ..at(number as i64)
        });
    }
    store.commit(commits).await.unwrap();
}

pub async fn calls_are_filtered_within_bounds(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let mut subjects = Vec::new();
    // Among the keys are some whose numbers are part of others' numbers.
    for number in 0..12 {
        subjects.push(key(&*store, &user(&format!("user {number}"))).await);
    }
    calls(&*store, &subjects, 120).await;
    let browser = browse(&*place);
    let list = |question: CallsQuestion| {
        let browser = browser.clone();
        async move {
            let ask = |after| {
                browser.calls(CallsQuestion {
                    after,
                    limit: 7,
                    ..question.clone()
                })
            };
            let rows = all(7, ask).await;
            assert!(rows.windows(2).all(|pair| pair[0].id > pair[1].id));
            rows
        }
    };
    assert_eq!(list(CallsQuestion::default()).await.len(), 120);
    let failed = CallsQuestion {
        failed_only: true,
        ..CallsQuestion::default()
    };
    let failed = list(failed).await;
    assert_eq!(failed.len(), 40);
    assert!(failed.iter().all(|row| row.reason == "http 503"));
    let posts = CallsQuestion {
        query: Some("posts".to_owned()),
        ..CallsQuestion::default()
    };
    assert_eq!(list(posts).await.len(), 60);
    for (place, subject) in subjects.iter().enumerate() {
        let of_one = CallsQuestion {
            subject: Some(*subject),
            ..CallsQuestion::default()
        };
        let rows = list(of_one).await;
        assert_eq!(rows.len(), 10, "{place}");
        assert!(rows.iter().all(|row| row.subjects[0].key == *subject));
    }
    let nothing = CallsQuestion {
        outcome: Some(OutcomeCode::Blocked),
        ..CallsQuestion::default()
    };
    assert_eq!(list(nothing).await.len(), 0);
    let runs = browser
        .runs(RunsQuestion {
            after: None,
            limit: 5,
        })
        .await
        .unwrap();
    assert_eq!((runs.rows.len(), runs.next), (0, None));
}

pub async fn outcomes_are_filtered_within_bounds(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let mut subjects = Vec::new();
    for number in 0..30 {
        subjects.push(key(&*store, &user(&format!("user {number}"))).await);
    }
    for (number, subject) in subjects.iter().enumerate() {
        let code = if number % 3 == 0 {
            OutcomeCode::Protected
        } else {
            OutcomeCode::Ok
        };
        tell(&*store, 5, *subject, code).await;
    }
    let browser = browse(&*place);
    let list = |of| {
        let browser = browser.clone();
        async move {
            let ask = |after| {
                browser.outcomes(OutcomesQuestion {
                    of,
                    after,
                    limit: 4,
                })
            };
            all(4, ask).await
        }
    };
    assert_eq!(list(OutcomesOf::Everybody).await.len(), 30);
    assert_eq!(list(OutcomesOf::Failed).await.len(), 10);
    assert_eq!(
        list(OutcomesOf::Outcome(OutcomeCode::Protected))
            .await
            .len(),
        10
    );
    assert_eq!(list(OutcomesOf::Outcome(OutcomeCode::Gone)).await.len(), 0);
    let of_one = list(OutcomesOf::Subject(subjects[3])).await;
    assert_eq!(of_one.len(), 1);
    assert_eq!(
        (of_one[0].subject.key, &*of_one[0].outcome),
        (subjects[3], "protected")
    );
    assert_eq!(of_one[0].call, Some(4));
}

pub async fn figures_are_counted_over_the_newest(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = user("alice");
    let hour_us = 3_600_000_000;
    let told = vec![
        dated("a", &alice, 5 * hour_us + 1),
        dated("b", &alice, 29 * hour_us),
        dated("before 1970", &alice, -hour_us),
        post(status("undated"), &alice, "when?"),
    ];
    let classed = object(
        Table::Users,
        alice.clone(),
        vec![group("found", &[("class", text("regular"))])],
    );
    commit(
        &*store,
        Commit {
            objects: [told, vec![classed]].concat(),
            ..at(1)
        },
    )
    .await;
    let alice_key = key_of(&*store, &alice).await;
    calls(&*store, &[alice_key], 30).await;
    let frontier = |subject, visited: Option<i64>| FrontierRow {
        subject,
        robot: "posts".into(),
        lane: "here/posts".into(),
        visits: 1,
        visited: visited.map(WorldTime),
        due: WorldTime(9),
        state: Vec::new(),
    };
    let bob = key(&*store, &user("bob")).await;
    let visits = vec![frontier(alice_key, Some(1_000_000)), frontier(bob, None)];
    commit(
        &*store,
        Commit {
            frontier: visits,
            ..at(2)
        },
    )
    .await;
    let browser = browse(&*place);
    let hours = browser.hours(1_000).await.unwrap();
    assert_eq!((hours.sample, hours.hours[5], hours.hours[23]), (3, 2, 1));
    let errors = browser.errors(1_000).await.unwrap();
    assert_eq!(
        (
            errors.calls,
            errors.outcomes["transient"],
            errors.outcomes["ok"]
        ),
        (30, 10, 20)
    );
    assert_eq!(
        errors
            .reasons
            .iter()
            .map(|reason| reason.calls)
            .sum::<u64>(),
        10
    );
    assert_eq!(errors.reasons[0].reason.text, "http 503");
    // Only the newest calls count.
    assert_eq!(browser.errors(3).await.unwrap().calls, 3);
    let question = ActivityQuestion {
        since: None,
        calls_max: 1_000,
        buckets: 10,
    };
    let activity = browser.activity(question).await.unwrap();
    assert_eq!(activity.calls, 30);
    let counted: u64 = activity
        .queries
        .values()
        .flatten()
        .map(|bucket| bucket.calls)
        .sum();
    let failed: u64 = activity
        .queries
        .values()
        .flatten()
        .map(|bucket| bucket.failed)
        .sum();
    assert_eq!((counted, failed), (30, 10));
    assert!(activity.queries.values().all(|buckets| buckets.len() == 10));
    assert_eq!(browser.lanes().await.unwrap(), ["here/posts"]);
    let question = AgesQuestion {
        lane: "here/posts".to_owned(),
        now: WorldTime(1_000_000 + 700_000_000),
        sample_max: 100,
    };
    let ages = browser.ages(question).await.unwrap();
    assert_eq!((ages.sample, ages.unvisited, ages.is_whole), (2, 1, true));
    // More than ten minutes, less than an hour.
    assert_eq!(ages.classes["regular"][2], 1);
    assert_eq!(ages.classes.values().flatten().sum::<u64>(), 1);
}

pub async fn a_picture_has_the_best_connected(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let hub = user("hub");
    let fans: Vec<Identity> = (0..20)
        .map(|number| user(&format!("fan {number}")))
        .collect();
    let mut links: Vec<_> = fans.iter().map(|fan| follows(fan, &hub)).collect();
    links.push(follows(&fans[0], &fans[1]));
    links.push(follows(&user("far"), &user("away")));
    commit(
        &*store,
        Commit {
            objects: vec![card(hub.clone(), "Hub")],
            links,
            ..at(1)
        },
    )
    .await;
    let browser = browse(&*place);
    let question = |around, nodes_max| GraphQuestion { around, nodes_max };
    let graph = browser.graph(question(None, 3)).await.unwrap();
    let names: BTreeSet<&str> = graph.nodes.iter().map(|node| &*node.label.id).collect();
    assert_eq!(names, BTreeSet::from(["hub", "fan 0", "fan 1"]));
    assert_eq!((graph.edges.len(), graph.is_cut), (3, true));
    assert!(graph.edges.iter().all(|(from, to)| *from < 3 && *to < 3));
    let around = browser
        .graph(question(Some(key_of(&*store, &hub).await), 300))
        .await
        .unwrap();
    assert_eq!(
        (around.nodes.len(), around.edges.len(), around.is_cut),
        (21, 21, false)
    );
    let nobody = browser
        .graph(question(Some(Key(i64::MIN)), 300))
        .await
        .unwrap();
    assert_eq!(nobody.nodes.len(), 0);
}
