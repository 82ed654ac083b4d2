//! Objects: what was observed is kept, in whatever order it comes.

use super::build::{
    SeedOnFailure, Seeded, With, at, card, cell, commit, frontier, group, id_of, key, link,
    log_row, named_value, number, object, of_kind, post, select, text, user,
};
use super::{Inspect, Make, TextRows};
use kittiwake_model::clock::LATEST_US;
use kittiwake_model::{Commit, Key, Object, Table, Value, WorldTime};
use std::collections::{BTreeSet, HashMap};

pub async fn a_commit_reads_back(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = user("https://a/alice").local("1").handle("alice@a");
    let mut status = post(of_kind("status", "https://a/1"), &alice, "hello");
    status.groups.push(group(
        "counts",
        &[("likes_count", Value::Int(3)), ("stars", Value::Float(0.5))],
    ));
    let report = commit(
        &*store,
        Commit {
            objects: vec![card(alice.clone(), "Alice"), status],
            log: Some(log_row("timeline")),
            ..at(5)
        },
    )
    .await;
    assert_eq!(report.rows_new, 2);
    assert_eq!(report.log, Some(1));
    let rows = select(
        &*store,
        &format!(
            "SELECT {}, text, likes_count, extra FROM statuses",
            id_of("author")
        ),
    )
    .await;
    let expected = ["https://a/alice", "hello", "3", "{\"stars\":0.5}"];
    assert_eq!(
        rows,
        vec![expected.map(|cell| Some(cell.to_owned())).to_vec()]
    );
    assert_eq!(
        cell(&*store, "SELECT display_name FROM users")
            .await
            .as_deref(),
        Some("Alice")
    );
    assert_eq!(number(&*store, "SELECT count(*) FROM pending").await, 0);
}

/// A group is known since the oldest of its fields was observed.
pub async fn what_is_described_is_told_with_its_age(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = user("alice");
    let bob = key(&*store, &user("bob")).await;
    let about = |fields: &[(&str, Value)]| {
        let groups = vec![group("profile", fields)];
        object(Table::Users, alice.clone(), groups)
    };
    let whole = about(&[("description", text("hello")), ("url", text("https://a/"))]);
    let part = about(&[("description", text("good bye"))]);
    for (time_us, object) in [(5, whole), (8, card(alice.clone(), "Alice")), (9, part)] {
        let objects = vec![object];
        let commit_at = Commit {
            objects,
            ..at(time_us)
        };
        commit(&*store, commit_at).await;
    }
    let alice = key(&*store, &alice).await;
    let described = store.described(Table::Users, vec![bob, alice]).await;
    let described = described.unwrap();
    assert!(described[0].is_empty(), "only named");
    let expected = [("card", 8), ("profile", 5)].map(|(name, us)| (name.into(), WorldTime(us)));
    assert_eq!(described[1], expected.into_iter().collect());
}

pub async fn the_log_keeps_every_field(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = key(&*store, &user("alice")).await;
    let mut log = log_row("timeline");
    log.subjects = vec![alice];
    log.cursor = String::from("max_id=9");
    log.bytes = u64::MAX;
    commit(
        &*store,
        Commit {
            log: Some(log),
            raw: Some(vec![0, 159, 146, 150]),
            ..at(77)
        },
    )
    .await;
    let rows = select(
        &*store,
        "SELECT query, subjects, target, cursor, credential, node, status, outcome, reason, at_us,
                scheduled_us, sent_us, answered_us, budgets, rank_us, read_us, seed_us, bytes,
                mended,
                definition FROM query_log",
    )
    .await;
    let expected = [
        "timeline",
        &format!("[{}]", alice.0),
        "/api/v1/accounts/1",
        "max_id=9",
        "anonymous",
        "here",
        "200",
        "ok",
        "",
        "77",
        "1",
        "2",
        "3",
        "[\"ip\",\"token\"]",
        "4",
        "6",
        "5",
        "9223372036854775807",
        "7",
        "digest",
    ];
    assert_eq!(
        rows,
        vec![expected.map(|cell| Some(cell.to_owned())).to_vec()]
    );
    assert!(number(&*store, "SELECT committed_us FROM query_log").await > 0);
    assert_eq!(number(&*store, "SELECT count(*) FROM raw").await, 1);
}

/// One random observation: few objects, few fields, so that they collide.
fn observation(random: &mut Seeded, at_us: i64) -> Commit {
    let names = ["ann", "bob", "cid"];
    let author = user(names[random.below(names.len())]);
    let says = ["one", "two", "three"][random.below(3)];
    let mut content = vec![("text", text(says))];
    if random.chance(2) {
        content.push(("author", named_value(&author)));
    }
    if random.chance(3) {
        content.push(("language", Value::Null));
    }
    if random.chance(3) {
        content.push(("pinned", Value::Bool(random.chance(2))));
    }
    if random.chance(4) {
        // Not what the column is for.
        content.push(("is_sensitive", text("perhaps")));
    } else {
        content.push(("is_sensitive", Value::Bool(true)));
    }
    let counts = [
        ("likes_count", Value::Int(random.below(3) as i64)),
        ("replies_count", Value::Int(random.below(2) as i64)),
    ];
    let status = object(
        Table::Statuses,
        of_kind("status", ["s1", "s2"][random.below(2)]),
        vec![
            group("content", &content),
            group("counts", &counts[..=random.below(2)]),
        ],
    );
    let shown = ["A", "B"][random.below(2)];
    Commit {
        objects: vec![status, card(author, shown)],
        links: vec![link(
            "like",
            &user(names[random.below(3)]),
            &of_kind("status", "s1"),
        )],
        log: Some(log_row("timeline")),
        ..at(at_us)
    }
}

/// Everything about objects that must not depend on the order of arrival: values, observation
/// times, and the set of values that were ever seen. Keys and log numbers may differ.
async fn state_of(store: &dyn Inspect) -> (TextRows, BTreeSet<String>) {
    let mut rows = select(
        store,
        &format!(
            "SELECT {}, {}, text, language, is_sensitive, likes_count, replies_count, extra,
                    observed FROM statuses",
            id_of("statuses.key"),
            id_of("author")
        ),
    )
    .await;
    let users = format!(
        "SELECT {}, display_name, observed FROM users",
        id_of("users.key")
    );
    rows.extend(select(store, &users).await);
    let lists: HashMap<String, serde_json::Value> =
        select(store, "SELECT id, fields FROM field_lists")
            .await
            .into_iter()
            .map(|mut row| {
                let fields = serde_json::from_str(&row.remove(1).unwrap()).unwrap();
                (row.remove(0).unwrap(), fields)
            })
            .collect();
    let mut seen = BTreeSet::new();
    for row in &mut rows {
        let observed = row.pop().flatten().unwrap();
        row.push(Some(without_numbers(&observed, &lists)));
        let id = row[0].clone().unwrap();
        for (place, value) in row.iter().enumerate().skip(2) {
            seen.insert(format!("{id} {place} {value:?}"));
        }
    }
    let links = format!(
        "SELECT kind, {}, {}, first_seen_us, last_seen_us FROM links",
        id_of("from_key"),
        id_of("to_key")
    );
    rows.extend(select(store, &links).await);
    rows.sort();
    // Whatever lost is in the histories; together with what won, nothing may be missing.
    let mut ever = BTreeSet::new();
    for table in [
        "SELECT key, fields FROM versions",
        "SELECT key, counts FROM counts",
    ] {
        let sql = table.replacen("key", &id_of(&table_key(table)), 1);
        for row in select(store, &sql).await {
            let id = row[0].clone().unwrap();
            let fields: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(row[1].as_ref().unwrap()).unwrap();
            for (field, value) in fields {
                if field != "author" {
                    ever.insert(format!("{id} {field} {value}"));
                }
            }
        }
    }
    (rows, ever)
}

fn table_key(sql: &str) -> String {
    let table = sql.rsplit(' ').next().unwrap();
    format!("{table}.key")
}

/// What `observed` says, without the numbers of log rows and with names instead of the numbers
/// of lists of fields.
fn without_numbers(observed: &str, lists: &HashMap<String, serde_json::Value>) -> String {
    let mut groups: serde_json::Value = serde_json::from_str(observed).unwrap();
    for group in groups.as_object_mut().unwrap().values_mut() {
        if let Some(short) = group.as_array() {
            *group = serde_json::json!({"at": [short[0], 0], "fields": short[2]});
        }
        group["at"][1] = 0.into();
        if group["fields"].is_number() {
            group["fields"] = lists[&group["fields"].to_string()].clone();
        }
        if let Some(older) = group
            .get_mut("older")
            .and_then(|older| older.as_object_mut())
        {
            for stamp in older.values_mut() {
                stamp[1] = 0.into();
            }
        }
    }
    groups.to_string()
}

/// The values that are current, in the form in which histories name them.
async fn current(store: &dyn Inspect) -> BTreeSet<String> {
    let mut values = BTreeSet::new();
    for (table, fields) in [
        (
            "statuses",
            &[
                "text",
                "language",
                "is_sensitive",
                "likes_count",
                "replies_count",
            ][..],
        ),
        ("users", &["display_name"][..]),
    ] {
        for field in fields {
            let sql = format!(
                "SELECT {}, {field}, extra FROM {table}",
                id_of(&format!("{table}.key"))
            );
            for row in select(store, &sql).await {
                let id = row[0].clone().unwrap();
                let value = match &row[1] {
                    None => continue,
                    Some(value) if *field == "is_sensitive" => (value == "1").to_string(),
                    Some(value) => match value.parse::<i64>() {
                        Ok(number) => number.to_string(),
                        Err(_) => serde_json::Value::String(value.clone()).to_string(),
                    },
                };
                values.insert(format!("{id} {field} {value}"));
            }
            if *field == "text" {
                let sql = format!(
                    "SELECT {}, extra FROM {table}",
                    id_of(&format!("{table}.key"))
                );
                for row in select(store, &sql).await {
                    let Some(extra) = &row[1] else { continue };
                    let extra: serde_json::Map<String, serde_json::Value> =
                        serde_json::from_str(extra).unwrap();
                    for (field, value) in extra {
                        values.insert(format!("{} {field} {value}", row[0].as_ref().unwrap()));
                    }
                }
            }
        }
    }
    values
}

pub async fn permuted_observations_end_equal(make: Make<'_>) {
    for seed in 0..12_u64 {
        let _named = SeedOnFailure(seed);
        let mut random = Seeded::new(seed);
        let observations: Vec<Commit> = (0..10)
            .map(|place| observation(&mut random, 100 + place))
            .collect();
        let mut expected = None;
        for round in 0..3 {
            let mut order = observations.clone();
            if round > 0 {
                random.shuffle(&mut order);
            }
            let place = make();
            let store = place.open().unwrap();
            for one in order {
                commit(&*store, one).await;
            }
            let (rows, lost) = state_of(&*store).await;
            let ever: BTreeSet<String> = lost.union(&current(&*store).await).cloned().collect();
            match &expected {
                None => expected = Some((rows, ever)),
                Some((expected_rows, expected_ever)) => {
                    assert_eq!(&rows, expected_rows);
                    assert_eq!(&ever, expected_ever);
                }
            }
        }
    }
}

pub async fn overruled_values_stay_readable(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let seen = |at_us: i64, name: &str, followers: i64| {
        let mut alice = card(user("alice"), name);
        alice.groups.push(group(
            "counts",
            &[("followers_count", Value::Int(followers))],
        ));
        Commit {
            objects: vec![alice],
            log: Some(log_row("profile")),
            ..at(at_us)
        }
    };
    commit(&*store, seen(1, "Alice", 10)).await;
    let report = commit(&*store, seen(2, "Alice B.", 11)).await;
    assert_eq!((report.rows_new, report.rows_changed), (0, 1));
    // Seen later, the same: neither a change nor a version.
    let report = commit(&*store, seen(3, "Alice B.", 11)).await;
    assert_eq!((report.rows_new, report.rows_changed), (0, 0));
    let rows = select(
        &*store,
        "SELECT grp, observed_us, log, fields FROM versions",
    )
    .await;
    let expected = ["card", "1", "1", "{\"display_name\":\"Alice\"}"];
    assert_eq!(
        rows,
        vec![expected.map(|cell| Some(cell.to_owned())).to_vec()]
    );
    let rows = select(&*store, "SELECT observed_us, counts FROM counts").await;
    let expected = ["1", "{\"followers_count\":10}"];
    assert_eq!(
        rows,
        vec![expected.map(|cell| Some(cell.to_owned())).to_vec()]
    );
}

pub async fn the_same_commit_twice_changes_nothing(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let mut random = Seeded::new(7);
    let mut one = observation(&mut random, 5);
    one.log = None;
    commit(&*store, one.clone()).await;
    let before = state_of(&*store).await;
    let report = commit(&*store, one).await;
    assert_eq!((report.rows_new, report.rows_changed), (0, 0));
    assert_eq!(state_of(&*store).await, before);
}

pub async fn a_value_of_the_wrong_kind_is_kept(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let seen = |at_us: i64, likes: Value| Commit {
        objects: vec![object(
            Table::Statuses,
            of_kind("status", "s"),
            vec![group("counts", &[("likes_count", likes)])],
        )],
        ..at(at_us)
    };
    commit(&*store, seen(1, text("many"))).await;
    let sql = "SELECT likes_count, extra FROM statuses";
    let rows = select(&*store, sql).await;
    assert_eq!(
        rows[0],
        [None, Some("{\"likes_count\":\"many\"}".to_owned())]
    );
    commit(&*store, seen(2, Value::Int(5))).await;
    assert_eq!(select(&*store, sql).await[0], [Some("5".to_owned()), None]);
}

pub async fn hostile_text_survives(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let long = "long ".repeat(200_000);
    let texts = [
        "o'brien \"quoted\" `ticked` \\back; DROP TABLE users; --",
        "🐦👩‍👩‍👧‍👦 עברית العربية \u{202E}reversed\u{202C}",
        "\u{FFFD}\u{FEFF}\u{7F}\u{85}",
        "%s %d {} ?1 :name @name $1",
        "line\nbreak\ttab\r",
        &long,
    ];
    for (place, hostile) in texts.iter().enumerate() {
        let id = format!("{place}-{}", hostile.chars().take(40).collect::<String>());
        let alice = user(&id).handle(&id).local(&id);
        let mut object = card(alice, hostile);
        object.groups.push(group(
            "odd",
            &[(hostile.get(..4).unwrap_or("x"), text(hostile))],
        ));
        commit(
            &*store,
            Commit {
                objects: vec![object],
                ..at(place as i64)
            },
        )
        .await;
    }
    let rows = select(
        &*store,
        "SELECT display_name, extra, (SELECT count(*) FROM ids WHERE ids.key = users.key)
         FROM users ORDER BY users.key",
    )
    .await;
    assert_eq!(rows.len(), texts.len());
    for (row, hostile) in rows.iter().zip(texts) {
        assert_eq!(row[0].as_deref(), Some(hostile));
        let extra: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(row[1].as_ref().unwrap()).unwrap();
        assert_eq!(extra.values().next().unwrap().as_str(), Some(hostile));
        assert_eq!(row[2].as_deref(), Some("3"));
    }
    // NUL cannot be kept by every database.
    let nul = Commit {
        objects: vec![card(user("nul"), "a\0b")],
        ..at(99)
    };
    commit(&*store, nul).await;
    assert_eq!(
        number(
            &*store,
            "SELECT count(*) FROM users WHERE display_name = 'a\u{FFFD}b'"
        )
        .await,
        1
    );
}

pub async fn far_times_survive(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let status = |id: &str, at_us: i64, clamped: bool| Object {
        groups: vec![group(
            "content",
            &[("created_us", Value::Time { at_us, clamped })],
        )],
        ..post(of_kind("status", id), &user("alice"), "")
    };
    let far = Commit {
        objects: vec![
            status("far", LATEST_US, true),
            status("early", -62_135_596_800_000_000, false),
            status("half", -500_000, false),
        ],
        ..at(LATEST_US)
    };
    commit(&*store, far.clone()).await;
    let report = commit(&*store, far).await;
    assert_eq!(report.rows_changed, 0);
    let created = select(&*store, "SELECT created FROM statuses_view ORDER BY id").await;
    let expected = [
        "0001-01-01T00:00:00.000000Z",
        "9999-12-30T22:00:00.000000Z",
        "1969-12-31T23:59:59.500000Z",
    ];
    let created: Vec<_> = created
        .iter()
        .map(|row| row[0].as_deref().unwrap())
        .collect();
    assert_eq!(created, expected);
    // A due time at the end of time is a due time.
    let alice = key(&*store, &user("alice")).await;
    let row = kittiwake_model::FrontierRow {
        subject: Key(alice.0),
        robot: "profiles".into(),
        lane: "lane".into(),
        visits: u32::MAX,
        visited: Some(WorldTime(i64::MIN)),
        due: WorldTime(i64::MAX),
        state: vec![255; 64],
    };
    commit(
        &*store,
        Commit {
            frontier: vec![row.clone()],
            ..at(1)
        },
    )
    .await;
    assert_eq!(frontier(&*store).await, vec![row]);
}
