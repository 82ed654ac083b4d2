//! Posts: filed by their author's depth, and what they bring in.

use super::build::{
    at, card, cell, commit, drain, follows, frontier, group, id_of, link, named_value, number,
    object, of_kind, post, robot, rules, seed, select, tell, text, unnamed, user,
};
use super::{Inspect, Make};
use kittiwake_model::{
    Commit, Expansion, FrontierRow, Identity, Key, Object, OutcomeCode, RobotFiling, Role,
    Standing, Table, Value, WorldTime,
};
use std::sync::Arc;

fn status(id: &str) -> Identity {
    of_kind("status", id)
}

/// Rules with these robots of posts, following both ways.
fn post_rules(depth_max: u32, robots: Vec<RobotFiling>) -> Arc<Expansion> {
    Arc::new(Expansion {
        robots,
        ..(*rules(depth_max, true, true)).clone()
    })
}

/// A robot that leaves out posts without replies.
fn threads() -> RobotFiling {
    RobotFiling {
        unless_zero: Some("replies_count".into()),
        ..robot("threads", "status")
    }
}

fn counted(id: &str, replies: i64) -> Object {
    let counts = group("counts", &[("replies_count", Value::Int(replies))]);
    object(Table::Statuses, status(id), vec![counts])
}

/// Ids of what is filed for a robot.
async fn filed(store: &dyn Inspect, robot: &str) -> Vec<String> {
    let sql = format!(
        "SELECT {} AS id FROM frontier WHERE robot = '{robot}' ORDER BY id",
        id_of("frontier.subject")
    );
    let rows = select(store, &sql).await;
    rows.into_iter()
        .map(|mut row| row.remove(0).unwrap())
        .collect()
}

pub async fn a_post_is_filed_when_its_author_is_within_reach(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let looks = RobotFiling {
        begins_visited: true,
        ..robot("looks", "status")
    };
    let rules = post_rules(1, vec![robot("threads", "status"), looks]);
    let (alice, bob, cid) = (user("alice"), user("bob"), user("cid"));
    let told = |at_us: i64, objects: Vec<Object>| Commit {
        objects,
        expansion: Some(rules.clone()),
        ..at(at_us)
    };
    let posts = [("a", &alice), ("b", &bob), ("c", &cid)];
    let posts = posts.map(|(id, author)| post(status(id), author, "says"));
    commit(&*store, told(1, posts.to_vec())).await;
    assert_eq!(number(&*store, "SELECT count(*) FROM frontier").await, 0);
    // The author comes within reach later; those beyond do not.
    let found = Commit {
        discoveries: vec![seed(&alice, 0)],
        links: vec![follows(&alice, &bob), follows(&bob, &cid)],
        ..told(2, Vec::new())
    };
    let report = commit(&*store, found).await;
    assert_eq!(filed(&*store, "threads").await, ["a", "b"]);
    assert_eq!(filed(&*store, "looks").await, ["a", "b"]);
    assert_eq!(report.filed.len(), 4);
    // A post of somebody within reach is filed at once.
    let report = commit(&*store, told(3, vec![post(status("d"), &bob, "says")])).await;
    assert_eq!(report.filed.len(), 2);
    for (filing, visited) in report.filed.iter().zip([None, Some(WorldTime(3))]) {
        assert_eq!((filing.visited, filing.due), (visited, WorldTime(3)));
    }
    let rows = frontier(&*store).await;
    let looks: Vec<&FrontierRow> = rows.iter().filter(|row| &*row.robot == "looks").collect();
    assert!(
        looks
            .iter()
            .all(|row| row.visits == 0 && row.visited == Some(row.due))
    );
    // Posts have no depth of their own, but their author's.
    let tasks = vec![(report.filed[0].subject, report.filed[0].robot.clone())];
    let record = store.tasks(tasks).await.unwrap().remove(0).unwrap();
    assert_eq!(record.depth, Some(1));
    assert_eq!(number(&*store, "SELECT count(*) FROM subjects").await, 3);
}

pub async fn a_post_that_answers_what_is_only_named_is_filed_to_name_it(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let naming = RobotFiling {
        names_parents: true,
        ..threads()
    };
    let naming = RobotFiling {
        robot: "naming".into(),
        ..naming
    };
    let rules = post_rules(0, vec![threads(), naming]);
    let alice = user("alice");
    let answer = |id: &str, parent: &Identity| {
        let mut object = counted(id, 0);
        let fields = [
            ("author", named_value(&alice)),
            ("reply_to", named_value(parent)),
        ];
        object.groups.push(group("content", &fields));
        object
    };
    let only_named = super::build::With::local(unnamed("status"), "9");
    let told = Commit {
        objects: vec![
            counted("described", 0),
            answer("a", &only_named),
            answer("b", &status("described")),
            counted("c", 0),
        ],
        discoveries: vec![seed(&alice, 0)],
        expansion: Some(rules.clone()),
        ..at(1)
    };
    commit(&*store, told).await;
    drain(&*store, 2, &rules).await;
    assert_eq!(filed(&*store, "naming").await, ["a"]);
    assert!(filed(&*store, "threads").await.is_empty());
}

pub async fn a_post_that_was_named_itself_takes_the_lesser_depth(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let looks = RobotFiling {
        begins_visited: true,
        ..robot("looks", "status")
    };
    let rules = post_rules(0, vec![looks, robot("tags", "tag")]);
    let planted = Commit {
        discoveries: vec![
            seed(&status("s"), 0),
            seed(&of_kind("tag", "birds"), 0),
            seed(&user("far"), 9),
        ],
        expansion: Some(rules.clone()),
        ..at(1)
    };
    let report = commit(&*store, planted).await;
    // It was not described yet, so nobody has looked at it even once.
    assert_eq!(report.filed[0].visited, None);
    assert_eq!(filed(&*store, "tags").await, ["birds"]);
    let told = Commit {
        objects: vec![
            post(status("s"), &user("far"), "says"),
            post(status("t"), &user("far"), "says"),
        ],
        expansion: Some(rules),
        ..at(2)
    };
    commit(&*store, told).await;
    assert_eq!(filed(&*store, "looks").await, ["s"]);
    let task = (report.filed[0].subject, report.filed[0].robot.clone());
    let record = store.tasks(vec![task]).await.unwrap().remove(0).unwrap();
    assert_eq!(record.depth, Some(0));
}

pub async fn a_post_with_nothing_to_ask_for_is_not_filed(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let rules = post_rules(0, vec![threads()]);
    let alice = user("alice");
    let told = |at_us: i64, objects: Vec<Object>| Commit {
        objects,
        expansion: Some(rules.clone()),
        ..at(at_us)
    };
    let planted = Commit {
        discoveries: vec![seed(&alice, 0)],
        ..told(
            1,
            vec![post(status("unknown"), &alice, "says"), counted("none", 0)],
        )
    };
    commit(&*store, planted).await;
    let described = ["none", "some", "late"].map(|id| post(status(id), &alice, "says"));
    commit(
        &*store,
        told(2, vec![counted("some", 1), counted("late", 1)]),
    )
    .await;
    commit(&*store, told(3, described.to_vec())).await;
    assert_eq!(filed(&*store, "threads").await, ["late", "some", "unknown"]);
    // A later number counts, an earlier one that comes in late does not; what was never visited
    // goes again.
    let changes = [
        counted("none", 2),
        counted("some", 0),
        counted("unknown", 0),
    ];
    commit(&*store, told(5, changes.to_vec())).await;
    commit(&*store, told(1, vec![counted("late", 0)])).await;
    assert_eq!(filed(&*store, "threads").await, ["late", "none"]);
    let visited = frontier(&*store).await.into_iter().map(|row| FrontierRow {
        visits: 1,
        visited: Some(WorldTime(6)),
        ..row
    });
    let visits = Commit {
        frontier: visited.collect(),
        ..told(6, Vec::new())
    };
    commit(&*store, visits).await;
    commit(
        &*store,
        told(7, vec![counted("late", 0), counted("none", 0)]),
    )
    .await;
    assert_eq!(filed(&*store, "threads").await, ["late", "none"]);
}

pub async fn users_are_left_out_when_there_is_nothing_to_ask_for(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let statuses = RobotFiling {
        unless_zero: Some("statuses_count".into()),
        ..robot("statuses", "user")
    };
    // A column that users do not have leaves nobody out.
    let odd = RobotFiling {
        unless_zero: Some("no such; column".into()),
        ..robot("odd", "user")
    };
    let rules = post_rules(0, vec![statuses, odd]);
    let counts = |id: &str, number: i64| {
        let counts = group("counts", &[("statuses_count", Value::Int(number))]);
        object(Table::Users, user(id), vec![counts])
    };
    let told = |at_us: i64, objects: Vec<Object>| Commit {
        objects,
        discoveries: vec![seed(&user("a"), 0), seed(&user("b"), 0)],
        expansion: Some(rules.clone()),
        ..at(at_us)
    };
    commit(&*store, told(1, vec![counts("a", 0)])).await;
    assert_eq!(filed(&*store, "statuses").await, ["b"]);
    commit(&*store, told(2, vec![counts("a", 5), counts("b", 0)])).await;
    assert_eq!(filed(&*store, "statuses").await, ["a"]);
    assert_eq!(filed(&*store, "odd").await, ["a", "b"]);
}

pub async fn who_was_told_of_whole_counts_as_visited(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    // One count is a column of users, the other a field of their own; nobody has the third.
    let robots = ["statuses_count", "untold", "no such; column"].map(|count| RobotFiling {
        visited_when_zero: Some(count.into()),
        ..robot(count, "user")
    });
    let rules = post_rules(0, robots.to_vec());
    let counts = |id: &str, number: i64| {
        let both = [
            ("statuses_count", Value::Int(number)),
            ("untold", Value::Int(number)),
        ];
        object(Table::Users, user(id), vec![group("counts", &both)])
    };
    let found = Commit {
        objects: vec![counts("whole", 0), counts("part", 2)],
        discoveries: vec![
            seed(&user("whole"), 0),
            seed(&user("part"), 0),
            seed(&user("named"), 0),
        ],
        expansion: Some(rules.clone()),
        ..at(5)
    };
    commit(&*store, found).await;
    let visited =
        "SELECT robot || ' ' || ids.id FROM frontier JOIN ids ON ids.key = frontier.subject
         WHERE visited_us = 5 ORDER BY 1";
    let visited = select(&*store, visited).await;
    let visited: Vec<String> = visited.into_iter().flatten().flatten().collect();
    assert_eq!(visited, ["statuses_count whole", "untold whole"]);
    assert_eq!(number(&*store, "SELECT count(*) FROM frontier").await, 9);
}

pub async fn an_authors_posts_are_filed_in_bounded_steps(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let rules = post_rules(0, vec![robot("threads", "status")]);
    let alice = user("alice");
    // Many of one instant, and many without any.
    for page in 0..6_i64 {
        let objects = (0..100_i64).map(|place| {
            let mut fields = vec![("author", named_value(&alice))];
            if page > 1 {
                let (at_us, clamped) = (page / 2 - 1, false);
                fields.push(("created_us", Value::Time { at_us, clamped }));
            }
            let id = status(&format!("{page} {place}"));
            object(Table::Statuses, id, vec![group("content", &fields)])
        });
        let told = Commit {
            objects: objects.collect(),
            ..at(1)
        };
        commit(&*store, told).await;
    }
    store.limit_steps(70).await.unwrap();
    let found = Commit {
        discoveries: vec![seed(&alice, 0)],
        expansion: Some(rules.clone()),
        ..at(2)
    };
    let report = commit(&*store, found).await;
    assert!(report.backlog);
    assert!(report.filed.len() <= 70, "{}", report.filed.len());
    // The rest is durable: it is filed after a restart as well.
    drop(store);
    let store = place.open().unwrap();
    store.limit_steps(70).await.unwrap();
    assert!(drain(&*store, 3, &rules).await > 5);
    assert_eq!(number(&*store, "SELECT count(*) FROM frontier").await, 600);
}

pub async fn a_post_that_moves_among_its_authors_posts_is_not_passed_over(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let rules = post_rules(0, vec![robot("threads", "status")]);
    let alice = user("alice");
    let told = |at_us: i64, id: i64, created_us: i64| {
        let created = Value::Time {
            at_us: created_us,
            clamped: false,
        };
        let fields = [("author", named_value(&alice)), ("created_us", created)];
        let content = vec![group("content", &fields)];
        Commit {
            objects: vec![object(Table::Statuses, status(&id.to_string()), content)],
            ..at(at_us)
        }
    };
    for id in 100..140 {
        commit(&*store, told(1, id, id)).await;
    }
    store.limit_steps(10).await.unwrap();
    let found = Commit {
        discoveries: vec![seed(&alice, 0)],
        expansion: Some(rules.clone()),
        ..at(2)
    };
    assert!(commit(&*store, found).await.backlog);
    // The last one was posted before the first, as it turns out.
    commit(&*store, told(3, 139, 1)).await;
    drain(&*store, 4, &rules).await;
    assert_eq!(number(&*store, "SELECT count(*) FROM frontier").await, 40);
}

pub async fn people_come_in_by_what_they_do_with_posts(make: Make<'_>) {
    for (role, expected) in [
        (
            Role::Commenters,
            ["alice", "commenter", "second commenter"].as_slice(),
        ),
        (Role::Reposters, &["alice", "quick reposter", "reposter"]),
        (Role::Likers, &["alice", "liker"]),
        (
            Role::Authors,
            &["alice", "friend of birds", "writer on birds"],
        ),
    ] {
        let place = make();
        let store = place.open().unwrap();
        let mut only = (*rules(0, false, false)).clone();
        only.brings = vec![role];
        let reply = |id: &str, author: &str, to: &str| {
            let fields = [
                ("author", named_value(&user(author))),
                ("reply_to", named_value(&status(to))),
            ];
            object(Table::Statuses, status(id), vec![group("content", &fields)])
        };
        let birds = of_kind("tag", "birds");
        let told = Commit {
            objects: vec![
                post(status("a"), &user("alice"), "first"),
                reply("b", "commenter", "a"),
                reply("c", "second commenter", "b"),
                post(status("d"), &user("reposter"), ""),
                post(status("e"), &user("writer on birds"), "#birds"),
            ],
            links: vec![
                link("repost", &status("d"), &status("a")),
                link("repost", &user("quick reposter"), &status("a")),
                link("like", &user("liker"), &status("a")),
                link("like", &user("liker of another"), &status("e")),
                link("tag", &status("e"), &birds),
                link("features", &user("friend of birds"), &birds),
            ],
            discoveries: vec![seed(&user("alice"), 0), seed(&birds, 0)],
            expansion: Some(Arc::new(only)),
            ..at(1)
        };
        commit(&*store, told).await;
        let sql = format!(
            "SELECT {} AS id FROM subjects WHERE key IN (SELECT key FROM ids WHERE type = 'user')
             ORDER BY id",
            id_of("subjects.key")
        );
        let rows = select(&*store, &sql).await;
        let found: Vec<&str> = rows.iter().map(|row| row[0].as_deref().unwrap()).collect();
        assert_eq!(found, expected, "{role:?}");
    }
}

pub async fn reposts_of_reposts_are_filed_so_many_steps(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let reposts = RobotFiling {
        repost_steps: 2,
        ..robot("reposts", "status")
    };
    let rules = post_rules(0, vec![reposts, robot("threads", "status")]);
    let chain = ["s0", "s1", "s2", "s3", "s4"];
    let objects = chain.map(|id| post(status(id), &user(&format!("author of {id}")), id));
    let mut links: Vec<_> = chain
        .windows(2)
        .map(|pair| link("repost", &status(pair[1]), &status(pair[0])))
        .collect();
    // A circle, which has no end.
    links.push(link("repost", &status("s0"), &status("s2")));
    let told = Commit {
        objects: objects.to_vec(),
        links,
        expansion: Some(rules.clone()),
        ..at(1)
    };
    commit(&*store, told).await;
    assert_eq!(filed(&*store, "reposts").await, Vec::<String>::new());
    for (author, expected) in [
        ("author of s0", ["s0", "s1", "s2"].as_slice()),
        ("author of s2", &["s0", "s1", "s2", "s3", "s4"]),
    ] {
        let found = Commit {
            discoveries: vec![seed(&user(author), 0)],
            expansion: Some(rules.clone()),
            ..at(2)
        };
        assert!(!commit(&*store, found).await.backlog);
        assert_eq!(filed(&*store, "reposts").await, expected);
    }
    assert_eq!(filed(&*store, "threads").await, ["s0", "s2"]);
}

/// A post of which a list tells nothing but whose it is, or what it answers.
fn listed(id: &str, field: &str, other: &Identity) -> Object {
    let content = group("content", &[(field, named_value(other))]);
    Object {
        standing: Standing::Named,
        ..object(Table::Statuses, status(id), vec![content])
    }
}

pub async fn answers_are_filed_so_many_steps_down_the_tree(make: Make<'_>) {
    let threads = RobotFiling {
        reply_steps: 2,
        ..robot("threads", "status")
    };
    let rules = post_rules(0, vec![threads, robot("others", "status")]);
    // What answers a post is known from the list under it, whoever wrote it.
    let tree = [("b", "a"), ("c", "b"), ("d", "c"), ("e", "b"), ("f", "x")];
    let listed = tree.map(|(id, to)| listed(id, "reply_to", &status(to)));
    let told_first = post(status("a"), &user("alice"), "a story");
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [1, 3, 0, 4, 2]] {
        let place = make();
        let store = place.open().unwrap();
        let told = |objects: Vec<Object>| Commit {
            objects,
            expansion: Some(rules.clone()),
            ..at(1)
        };
        for number in order {
            commit(&*store, told(vec![listed[number].clone()])).await;
        }
        let planted = Commit {
            discoveries: vec![seed(&user("alice"), 0)],
            ..told(vec![told_first.clone()])
        };
        commit(&*store, planted).await;
        drain(&*store, 2, &rules).await;
        assert_eq!(filed(&*store, "threads").await, ["a", "b", "c", "e"]);
        assert_eq!(filed(&*store, "others").await, ["a"]);
        // Whoever comes within reach on the way opens two steps more.
        let near = Commit {
            discoveries: vec![seed(&user("bob"), 0)],
            ..told(vec![post(status("c"), &user("bob"), "an answer")])
        };
        commit(&*store, near).await;
        drain(&*store, 3, &rules).await;
        assert_eq!(filed(&*store, "threads").await, ["a", "b", "c", "d", "e"]);
        assert_eq!(filed(&*store, "others").await, ["a", "c"]);
    }
}

pub async fn posts_come_in_by_the_list_that_names_them(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let mut rules = (*post_rules(0, vec![robot("items", "status")])).clone();
    rules.brings = vec![Role::Posts];
    let rules = Arc::new(rules);
    let (top, other) = (of_kind("list", "top"), of_kind("list", "other"));
    let named = |id: &str| object(Table::Statuses, status(id), Vec::new());
    let told = Commit {
        objects: vec![named("a"), named("b"), named("c")],
        links: vec![
            link("found", &status("a"), &top),
            link("found", &status("b"), &other),
            link("found", &user("alice"), &top),
        ],
        expansion: Some(rules.clone()),
        ..at(1)
    };
    commit(&*store, told).await;
    assert_eq!(filed(&*store, "items").await, Vec::<String>::new());
    let planted = Commit {
        discoveries: vec![seed(&top, 0)],
        expansion: Some(rules.clone()),
        ..at(2)
    };
    commit(&*store, planted).await;
    // It is as near as the list; people are another matter.
    assert_eq!(filed(&*store, "items").await, ["a"]);
    assert_eq!(number(&*store, "SELECT max(depth) FROM subjects").await, 0);
    assert_eq!(number(&*store, "SELECT count(*) FROM subjects").await, 2);
    let again = Commit {
        links: vec![link("found", &status("c"), &top)],
        expansion: Some(rules),
        ..at(3)
    };
    commit(&*store, again).await;
    assert_eq!(filed(&*store, "items").await, ["a", "c"]);
}

pub async fn what_a_list_tells_gives_way_to_what_describes_a_post(make: Make<'_>) {
    let alice = user("alice");
    let rules = post_rules(0, vec![robot("items", "status")]);
    let told = |at_us: i64, objects: Vec<Object>| Commit {
        objects,
        discoveries: vec![seed(&alice, 0)],
        expansion: Some(rules.clone()),
        ..at(at_us)
    };
    let said = [
        told(50, vec![listed("a", "author", &alice)]),
        told(20, vec![post(status("a"), &user("bob"), "says")]),
        told(30, vec![listed("b", "reply_to", &status("a"))]),
        told(40, vec![listed("c", "author", &alice)]),
        told(40, vec![listed("d", "reply_to", &status("c"))]),
    ];
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]] {
        let place = make();
        let store = place.open().unwrap();
        for number in order {
            commit(&*store, said[number].clone()).await;
        }
        drain(&*store, 60, &rules).await;
        let author = format!(
            "SELECT {} FROM statuses WHERE text = 'says'",
            id_of("author")
        );
        assert_eq!(cell(&*store, &author).await.as_deref(), Some("bob"));
        assert_eq!(number(&*store, "SELECT count(*) FROM versions").await, 0);
        // Whether a post that was only named begins a conversation is not known.
        let roots = format!(
            "SELECT {}, {} FROM comments ORDER BY 1",
            id_of("comments.key"),
            id_of("comments.root")
        );
        let roots = select(&*store, &roots).await;
        let expected = [("b", Some("a")), ("d", None)];
        let expected =
            expected.map(|(id, root)| vec![Some(id.to_owned()), root.map(str::to_owned)]);
        assert_eq!(roots, expected);
        // Times are those at which it was told.
        let earliest = "SELECT min(first_seen_us) FROM ids";
        assert_eq!(number(&*store, earliest).await, 20);
        assert!(number(&*store, "SELECT min(due_us) FROM frontier").await >= 20);
        // It was never there, as far as anybody knows.
        let rows = select(&*store, "SELECT key FROM ids WHERE id = 'c'").await;
        let subject = Key(rows[0][0].as_ref().unwrap().parse().unwrap());
        tell(&*store, 70, subject, OutcomeCode::NotFound).await;
        let outcome = "SELECT outcome FROM outcomes";
        assert_eq!(cell(&*store, outcome).await.as_deref(), Some("not found"));
    }
}

pub async fn who_opted_out_is_known_with_the_task(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let rules = post_rules(
        0,
        vec![robot("profiles", "user"), robot("threads", "status")],
    );
    let says = |id: &str, flag: Value| {
        let card = group("card", &[("opted_out", flag), ("display_name", text(id))]);
        object(Table::Users, user(id), vec![card])
    };
    let names = ["shy", "open", "silent"];
    let told = Commit {
        objects: vec![
            says("shy", Value::Bool(true)),
            says("open", Value::Bool(false)),
            says("silent", Value::Null),
            post(status("by shy"), &user("shy"), ""),
            post(status("by open"), &user("open"), ""),
            post(status("by silent"), &user("silent"), ""),
            card(user("shy"), "Shy"),
        ],
        discoveries: names.iter().map(|name| seed(&user(name), 0)).collect(),
        expansion: Some(rules),
        ..at(1)
    };
    commit(&*store, told).await;
    let rows = frontier(&*store).await;
    let tasks = rows.into_iter().map(|row| (row.subject, row.robot));
    let mut shy: Vec<String> = Vec::new();
    for record in store.tasks(tasks.collect()).await.unwrap() {
        let record = record.unwrap();
        if record.opted_out {
            shy.push(record.identity.canonical.unwrap());
        }
    }
    shy.sort();
    assert_eq!(shy, ["by shy", "shy"]);
}
