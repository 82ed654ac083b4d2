//! Depths and filing: the result is that of a breadth-first search, whatever the order.

use super::build::{
    SeedOnFailure, Seeded, With, at, card, commit, drain, follows, group, id_of, key, link, number,
    object, of_kind, post, robot, rules, seed, select, unnamed, user,
};
use super::{Inspect, Make};
use kittiwake_model::{Commit, Expansion, Identity, Role, Table, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

fn node(number: usize) -> Identity {
    user(&format!("n{number:03}"))
}

/// A directed graph and the places where a crawl begins.
struct Graph {
    nodes: usize,
    edges: Vec<(usize, usize)>,
    seeds: Vec<usize>,
}

impl Graph {
    fn random(random: &mut Seeded) -> Self {
        let nodes = 3 + random.below(20);
        let edges = (0..random.below(3 * nodes))
            .map(|_| (random.below(nodes), random.below(nodes)))
            .filter(|(from, to)| from != to)
            .collect();
        let seeds = (0..=random.below(2)).map(|_| random.below(nodes)).collect();
        Self {
            nodes,
            edges,
            seeds,
        }
    }

    fn depths(&self, rules: &Expansion) -> BTreeMap<String, u32> {
        let mut depths: BTreeMap<usize, u32> = BTreeMap::new();
        let mut queue: VecDeque<usize> = VecDeque::new();
        for seed in &self.seeds {
            depths.insert(*seed, 0);
            queue.push_back(*seed);
        }
        while let Some(here) = queue.pop_front() {
            let depth = depths[&here];
            if depth > rules.depth_max {
                continue;
            }
            for (from, to) in &self.edges {
                let reached = [
                    (rules.follow.following && *from == here).then_some(*to),
                    (rules.follow.followers && *to == here).then_some(*from),
                ];
                for next in reached.into_iter().flatten() {
                    if let std::collections::btree_map::Entry::Vacant(place) = depths.entry(next) {
                        place.insert(depth + 1);
                        queue.push_back(next);
                    }
                }
            }
        }
        depths
            .into_iter()
            .map(|(number, depth)| (node(number).canonical.unwrap_or_default(), depth))
            .collect()
    }

    /// Commits that tell the graph: one relation or a few at a time, and the seeds somewhere.
    fn commits(&self, random: &mut Seeded, rules: &Arc<Expansion>) -> Vec<Commit> {
        let mut edges = self.edges.clone();
        random.shuffle(&mut edges);
        let mut commits = Vec::new();
        while !edges.is_empty() {
            let page = edges.split_off(edges.len() - (1 + random.below(3)).min(edges.len()));
            commits.push(Commit {
                links: page
                    .iter()
                    .map(|(from, to)| follows(&node(*from), &node(*to)))
                    .collect(),
                expansion: Some(rules.clone()),
                ..at(5)
            });
        }
        for start in &self.seeds {
            commits.push(Commit {
                discoveries: vec![seed(&node(*start), 0)],
                expansion: Some(rules.clone()),
                ..at(5)
            });
        }
        random.shuffle(&mut commits);
        commits
    }
}

async fn stored_depths(store: &dyn Inspect) -> BTreeMap<String, u32> {
    select(
        store,
        &format!("SELECT {}, depth FROM subjects", id_of("subjects.key")),
    )
    .await
    .into_iter()
    .map(|row| {
        let [Some(id), Some(depth)] = row.as_slice() else {
            panic!("{row:?}");
        };
        (id.clone(), depth.parse().unwrap())
    })
    .collect()
}

async fn filed(store: &dyn Inspect) -> BTreeSet<(String, String)> {
    select(
        store,
        &format!("SELECT {}, robot FROM frontier", id_of("frontier.subject")),
    )
    .await
    .into_iter()
    .map(|row| (row[0].clone().unwrap(), row[1].clone().unwrap()))
    .collect()
}

fn within_reach(depths: &BTreeMap<String, u32>, rules: &Expansion) -> BTreeSet<(String, String)> {
    depths
        .iter()
        .filter(|(_, depth)| **depth <= rules.depth_max)
        .flat_map(|(id, _)| {
            rules
                .robots
                .iter()
                .filter(|filing| &*filing.kind == "user")
                .map(move |filing| (id.clone(), filing.robot.to_string()))
        })
        .collect()
}

async fn check(store: &dyn Inspect, graph: &Graph, rules: &Arc<Expansion>) {
    drain(store, 6, rules).await;
    let expected = graph.depths(rules);
    assert_eq!(stored_depths(store).await, expected);
    assert_eq!(filed(store).await, within_reach(&expected, rules));
}

pub async fn depths_equal_a_breadth_first_search(make: Make<'_>) {
    for seed_number in 0..60_u64 {
        let _named = SeedOnFailure(seed_number);
        let mut random = Seeded::new(seed_number);
        let graph = Graph::random(&mut random);
        let depth_max = random.below(4) as u32;
        let (following, followers) = [(true, false), (false, true), (true, true)][random.below(3)];
        let rules = rules(depth_max, following, followers);
        let place = make();
        let store = place.open().unwrap();
        // Reports name every row that was filed, once.
        let mut reported = BTreeSet::new();
        let commits = graph.commits(&mut random, &rules);
        for page in commits.chunks(1 + random.below(3)) {
            for report in store.commit(page.to_vec()).await.unwrap() {
                for row in report.filed {
                    assert!(reported.insert((row.subject, row.robot)));
                }
            }
        }
        check(&*store, &graph, &rules).await;
        assert_eq!(
            reported.len() as i64,
            number(&*store, "SELECT count(*) FROM frontier").await
        );
        assert!(graph.nodes >= stored_depths(&*store).await.len());
    }
}

pub async fn depths_through_merged_keys(make: Make<'_>) {
    for seed_number in 0..30_u64 {
        let _named = SeedOnFailure(seed_number);
        let mut random = Seeded::new(1_000 + seed_number);
        let graph = Graph::random(&mut random);
        let rules = rules(random.below(3) as u32, true, random.chance(2));
        let place = make();
        let store = place.open().unwrap();
        let local = |number: usize| unnamed("user").local(&number.to_string());
        // Half of the relations know their ends by another id, and the proofs come in between.
        let mut commits = graph.commits(&mut random, &rules);
        for one in &mut commits {
            for link in &mut one.links {
                for end in [&mut link.from, &mut link.to] {
                    if let kittiwake_model::Reference::Identity(identity) = end
                        && random.chance(2)
                    {
                        let id = identity.canonical.clone().unwrap();
                        **identity = local(id[1..].parse().unwrap());
                    }
                }
            }
        }
        for number in 0..graph.nodes {
            let both = node(number).local(&number.to_string());
            commits.push(Commit {
                objects: vec![card(both, "proved")],
                expansion: random.chance(2).then(|| rules.clone()),
                ..at(5)
            });
        }
        random.shuffle(&mut commits);
        for one in commits {
            commit(&*store, one).await;
        }
        check(&*store, &graph, &rules).await;
    }
}

pub async fn a_hub_is_handed_on_in_bounded_steps(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let rules = rules(1, false, true);
    let hub = user("hub");
    let fans = 5_000;
    for page in 0..fans / 500 {
        commit(
            &*store,
            Commit {
                links: (0..500)
                    .map(|fan| follows(&user(&format!("fan{}", page * 500 + fan)), &hub))
                    .collect(),
                expansion: Some(rules.clone()),
                ..at(1)
            },
        )
        .await;
    }
    assert_eq!(number(&*store, "SELECT count(*) FROM subjects").await, 0);
    let found = Commit {
        discoveries: vec![seed(&hub, 0)],
        expansion: Some(rules.clone()),
        ..at(2)
    };
    let report = commit(&*store, found).await;
    assert!(report.backlog, "5 000 steps do not fit one transaction");
    assert!(report.filed.len() < 2 * fans);
    // The rest is durable: it is handed on after a restart as well.
    drop(store);
    let store = place.open().unwrap();
    assert!(drain(&*store, 3, &rules).await > 0);
    assert_eq!(
        number(&*store, "SELECT count(*) FROM subjects WHERE depth = 1").await,
        fans as i64
    );
    assert_eq!(
        number(&*store, "SELECT count(*) FROM frontier").await,
        2 * (fans as i64 + 1)
    );
    assert_eq!(number(&*store, "SELECT count(*) FROM relax").await, 0);
}

pub async fn a_greater_depth_opens_what_is_within_reach(make: Make<'_>) {
    for seed_number in 0..20_u64 {
        let _named = SeedOnFailure(seed_number);
        let mut random = Seeded::new(2_000 + seed_number);
        let graph = Graph::random(&mut random);
        let place = make();
        let store = place.open().unwrap();
        let first = rules(0, true, false);
        for one in graph.commits(&mut random, &first) {
            commit(&*store, one).await;
        }
        check(&*store, &graph, &first).await;
        // Deeper, then deeper and in both directions, then the same again.
        for wider in [
            rules(1, true, false),
            rules(3, true, true),
            rules(3, true, true),
        ] {
            check(&*store, &graph, &wider).await;
        }
    }
}

pub async fn new_robots_get_their_rows(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let before = rules(1, true, true);
    commit(
        &*store,
        Commit {
            discoveries: vec![seed(&user("alice"), 0), seed(&of_kind("status", "s"), 0)],
            expansion: Some(before.clone()),
            ..at(1)
        },
    )
    .await;
    assert_eq!(number(&*store, "SELECT count(*) FROM frontier").await, 3);
    let mut after = (*before).clone();
    after.robots.push(robot("statuses", "user"));
    let after = Arc::new(after);
    let report = commit(
        &*store,
        Commit {
            expansion: Some(after.clone()),
            ..at(9)
        },
    )
    .await;
    assert_eq!(report.filed.len(), 1);
    assert_eq!(&*report.filed[0].robot, "statuses");
    assert_eq!(report.filed[0].due.0, 9);
    assert!(!report.backlog);
    // The rows that were there are as they were.
    assert_eq!(
        number(&*store, "SELECT count(*) FROM frontier WHERE due_us = 1").await,
        3
    );
}

pub async fn discoveries_without_rules_are_filed_later(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let rules = rules(1, true, false);
    commit(
        &*store,
        Commit {
            expansion: Some(rules.clone()),
            ..at(1)
        },
    )
    .await;
    commit(
        &*store,
        Commit {
            discoveries: vec![seed(&user("alice"), 0)],
            links: vec![follows(&user("alice"), &user("bob"))],
            ..at(2)
        },
    )
    .await;
    assert_eq!(number(&*store, "SELECT count(*) FROM frontier").await, 0);
    drain(&*store, 3, &rules).await;
    assert_eq!(number(&*store, "SELECT count(*) FROM frontier").await, 4);
}

pub async fn a_shorter_path_reopens(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let rules = rules(1, true, false);
    let [a, b, c, d] = ["a", "b", "c", "d"].map(user);
    commit(
        &*store,
        Commit {
            discoveries: vec![seed(&a, 0)],
            links: vec![follows(&a, &b), follows(&b, &c), follows(&c, &d)],
            expansion: Some(rules.clone()),
            ..at(1)
        },
    )
    .await;
    let depths = stored_depths(&*store).await;
    assert_eq!(depths.get("c"), Some(&2));
    assert_eq!(
        depths.get("d"),
        None,
        "nothing is handed on beyond the depth"
    );
    let report = commit(
        &*store,
        Commit {
            links: vec![follows(&a, &c)],
            expansion: Some(rules.clone()),
            ..at(2)
        },
    )
    .await;
    assert_eq!(report.filed.len(), 2, "c is visited now");
    let depths = stored_depths(&*store).await;
    assert_eq!(depths.get("c"), Some(&1));
    assert_eq!(depths.get("d"), Some(&2));
}

pub async fn a_hub_that_comes_nearer_starts_over(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let rules = rules(2, true, false);
    let (near, far, hub) = (user("near"), user("far"), user("hub"));
    let fans = 5_000;
    let links = (0..fans)
        .map(|fan| follows(&hub, &user(&format!("fan{fan}"))))
        .collect();
    let told = Commit {
        links,
        expansion: Some(rules.clone()),
        ..at(1)
    };
    commit(&*store, told).await;
    // Reached at depth 2, and half handed on when a shorter path is found, which does not get as
    // far at first.
    for (steps, links, discoveries) in [
        (
            2_000,
            vec![follows(&near, &far), follows(&far, &hub)],
            vec![seed(&near, 0)],
        ),
        (20, vec![follows(&near, &hub)], vec![]),
    ] {
        store.limit_steps(steps).await.unwrap();
        let report = commit(
            &*store,
            Commit {
                links,
                discoveries,
                expansion: Some(rules.clone()),
                ..at(2)
            },
        )
        .await;
        assert!(report.backlog);
    }
    store.limit_steps(2_000).await.unwrap();
    drain(&*store, 3, &rules).await;
    assert_eq!(
        number(&*store, "SELECT count(*) FROM subjects WHERE depth = 2").await,
        fans
    );
}

pub async fn a_merge_beside_a_half_done_list_misses_nobody(make: Make<'_>) {
    for (following, followers) in [(true, false), (false, true)] {
        for has_rules in [true, false] {
            let place = make();
            let store = place.open().unwrap();
            let rules = rules(2, following, followers);
            let relation = |hub: &Identity, other: &Identity| {
                if following {
                    follows(hub, other)
                } else {
                    follows(other, hub)
                }
            };
            let hub = user("hub");
            // The first to be met, whom nobody relates to the hub until the last is known.
            let first = key(&*store, &user("first")).await;
            let mut links: Vec<_> = (0..40)
                .map(|number| relation(&hub, &user(&format!("fan{number}"))))
                .collect();
            links.push(relation(&hub, &unnamed("user").local("1")));
            commit(&*store, Commit { links, ..at(1) }).await;
            store.limit_steps(10).await.unwrap();
            let found = Commit {
                discoveries: vec![seed(&hub, 0)],
                expansion: Some(rules.clone()),
                ..at(2)
            };
            assert!(commit(&*store, found).await.backlog);
            let proof = Commit {
                objects: vec![card(user("first").local("1"), "proved")],
                expansion: has_rules.then(|| rules.clone()),
                ..at(3)
            };
            assert_eq!(commit(&*store, proof).await.merged[0].1, first);
            drain(&*store, 4, &rules).await;
            assert_eq!(stored_depths(&*store).await.get("first"), Some(&1));
        }
    }
}

pub async fn a_type_that_becomes_known_late_changes_who_is_within_reach(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let mut rules = (*rules(1, true, true)).clone();
    rules.robots = vec![robot("profiles", "account"), robot("threads", "toot")];
    rules.brings = vec![Role::Likers];
    let rules = Arc::new(rules);
    let (alice, bob) = (of_kind("account", "alice"), of_kind("account", "bob"));
    let toot = |id: &str| post(of_kind("toot", id), &alice, "says");
    let told = |at_us: i64| Commit {
        expansion: Some(rules.clone()),
        ..at(at_us)
    };
    // From the words alone nobody can know that an account is a user.
    let first = Commit {
        objects: vec![toot("t")],
        discoveries: vec![seed(&alice, 0)],
        links: vec![link("like", &bob, &of_kind("toot", "t"))],
        ..told(1)
    };
    commit(&*store, first).await;
    assert_eq!(stored_depths(&*store).await.get("bob"), None);
    let described = Commit {
        objects: vec![object(
            Table::Users,
            of_kind("account", "cid"),
            vec![group("card", &[("is_bot", Value::Bool(true))])],
        )],
        ..told(2)
    };
    commit(&*store, described).await;
    drain(&*store, 3, &rules).await;
    assert_eq!(stored_depths(&*store).await.get("bob"), Some(&1));
    let expected = [("alice", "profiles"), ("bob", "profiles"), ("t", "threads")]
        .map(|(id, robot)| (id.to_owned(), robot.to_owned()));
    assert_eq!(filed(&*store).await, expected.into());
}
