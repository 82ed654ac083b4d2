//! Short words for commits, and a small source of random numbers.

use super::{Inspect, TextRows};
use kittiwake_model::{
    Alias, Commit, CommitReport, Discovery, Expansion, Follow, FrontierRow, Group, Identity, Key,
    Link, LinkTable, LogRow, Name, Object, Outcome, OutcomeCode, RealTime, Reference, RobotFiling,
    Standing, Table, Value, WorldTime,
};
use std::sync::Arc;

/// Random numbers that a seed repeats.
pub(super) struct Seeded(u64);

impl Seeded {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(super) fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for place in (1..items.len()).rev() {
            let other = self.below(place + 1);
            items.swap(place, other);
        }
    }
}

/// Names the seed when the property fails.
pub(super) struct SeedOnFailure(pub u64);

impl Drop for SeedOnFailure {
    #[expect(clippy::print_stderr, reason = "a failure must name its seed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with seed {}", self.0);
        }
    }
}

pub(super) fn user(canonical: &str) -> Identity {
    Identity {
        network: "mastodon".into(),
        kind: "user".into(),
        canonical: Some(canonical.to_owned()),
        aliases: Vec::new(),
    }
}

pub(super) fn of_kind(kind: &str, canonical: &str) -> Identity {
    Identity {
        kind: kind.into(),
        ..user(canonical)
    }
}

pub(super) fn unnamed(kind: &str) -> Identity {
    Identity {
        canonical: None,
        ..of_kind(kind, "")
    }
}

impl With for Identity {}

pub(super) trait With: Sized + Into<Identity> {
    fn local(self, id: &str) -> Identity {
        add(self.into(), "id", id, "example.social", false)
    }

    fn at_host(self, id: &str, host: &str) -> Identity {
        add(self.into(), "id", id, host, false)
    }

    fn address(self, id: &str) -> Identity {
        add(self.into(), "url", id, "", false)
    }

    fn handle(self, id: &str) -> Identity {
        add(self.into(), "handle", id, "", true)
    }
}

fn add(mut identity: Identity, name: &str, id: &str, host: &str, movable: bool) -> Identity {
    identity.aliases.push(Alias {
        name: name.into(),
        id: id.to_owned(),
        host: host.to_owned(),
        movable,
    });
    identity
}

pub(super) fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

pub(super) fn group(name: &str, fields: &[(&str, Value)]) -> Group {
    Group {
        name: name.into(),
        fields: fields
            .iter()
            .map(|(field, value)| (Name::from(*field), value.clone()))
            .collect(),
    }
}

pub(super) fn object(table: Table, identity: Identity, groups: Vec<Group>) -> Object {
    Object {
        identity,
        known_as: None,
        table,
        groups,
        standing: Standing::Present,
    }
}

/// A user with a name on its card.
pub(super) fn card(identity: Identity, name: &str) -> Object {
    object(
        Table::Users,
        identity,
        vec![group("card", &[("display_name", text(name))])],
    )
}

pub(super) fn post(identity: Identity, author: &Identity, says: &str) -> Object {
    object(
        Table::Statuses,
        identity,
        vec![group(
            "content",
            &[("author", named_value(author)), ("text", text(says))],
        )],
    )
}

pub(super) fn named(identity: &Identity) -> Reference {
    Reference::Identity(Box::new(identity.clone()))
}

pub(super) fn named_value(identity: &Identity) -> Value {
    Value::Object(named(identity))
}

pub(super) fn follows(source: &Identity, target: &Identity) -> Link {
    Link {
        table: LinkTable::UserRelations,
        kind: "follow".into(),
        from: named(source),
        to: named(target),
        at: None,
        walk: None,
    }
}

pub(super) fn link(kind: &str, from: &Identity, to: &Identity) -> Link {
    Link {
        table: LinkTable::Links,
        kind: kind.into(),
        ..follows(from, to)
    }
}

pub(super) fn seed(identity: &Identity, depth: u32) -> Discovery {
    Discovery {
        subject: named(identity),
        depth,
    }
}

/// A robot that visits whatever is of the type.
pub(super) fn robot(name: &str, kind: &str) -> RobotFiling {
    RobotFiling {
        robot: name.into(),
        lane: format!("example.social/{name}").into(),
        kind: kind.into(),
        unless_zero: None,
        names_parents: false,
        begins_visited: false,
        visited_when_zero: None,
        repost_steps: 0,
        reply_steps: 0,
    }
}

pub(super) fn rules(depth_max: u32, following: bool, followers: bool) -> Arc<Expansion> {
    Arc::new(Expansion {
        follow: Follow {
            following,
            followers,
        },
        depth_max,
        robots: vec![
            robot("profiles", "user"),
            robot("relations", "user"),
            robot("replies", "status"),
        ],
        brings: Vec::new(),
    })
}

pub(super) fn at(at_us: i64) -> Commit {
    Commit {
        at: WorldTime(at_us),
        ..Commit::default()
    }
}

pub(super) fn log_row(query: &str) -> LogRow {
    LogRow {
        query: query.into(),
        subjects: Vec::new(),
        target: "/api/v1/accounts/1".to_owned(),
        cursor: String::new(),
        credential: "anonymous".to_owned(),
        node: "here".to_owned(),
        status: Some(200),
        outcome: OutcomeCode::Ok,
        reason: String::new(),
        scheduled: RealTime(1),
        sent: RealTime(2),
        answered: RealTime(3),
        budgets: vec!["ip".into(), "token".into()],
        rank_us: 4,
        read_us: 6,
        seed_us: 5,
        bytes: 6,
        mended: 7,
        definition: "digest".into(),
    }
}

pub(super) async fn commit(store: &dyn Inspect, commit: Commit) -> CommitReport {
    store.commit(vec![commit]).await.unwrap().pop().unwrap()
}

/// Commits until no depth has to be handed on any more.
pub(super) async fn drain(store: &dyn Inspect, at_us: i64, rules: &Arc<Expansion>) -> usize {
    for round in 0..10_000 {
        let report = commit(
            store,
            Commit {
                expansion: Some(rules.clone()),
                ..at(at_us)
            },
        )
        .await;
        if !report.backlog {
            return round;
        }
    }
    panic!("the backlog never ends");
}

/// All frontier rows, by subject and robot.
pub(super) async fn frontier(store: &dyn Inspect) -> Vec<FrontierRow> {
    let rows = select(
        store,
        "SELECT subject, robot FROM frontier ORDER BY subject, robot",
    )
    .await;
    let tasks = rows.into_iter().map(|mut row| {
        let robot = Name::from(row.remove(1).unwrap());
        (Key(row.remove(0).unwrap().parse().unwrap()), robot)
    });
    let records = store.tasks(tasks.collect()).await.unwrap();
    records
        .into_iter()
        .map(|record| record.unwrap().row)
        .collect()
}

/// Gives an identity a key.
pub(super) async fn key(store: &dyn Inspect, identity: &Identity) -> Key {
    let report = commit(
        store,
        Commit {
            objects: vec![Object {
                groups: Vec::new(),
                ..card(identity.clone(), "")
            }],
            log: None,
            ..at(1)
        },
    )
    .await;
    drop(report);
    let canonical = identity.canonical.as_deref().unwrap_or_default();
    let rows = select(
        store,
        &format!("SELECT key FROM ids WHERE alias = '' AND id = '{canonical}'"),
    )
    .await;
    Key(rows[0][0].as_ref().unwrap().parse().unwrap())
}

/// The key of an identity that the store has met.
pub(super) async fn key_of(store: &dyn Inspect, identity: &Identity) -> Key {
    let (kind, id) = (
        &identity.kind,
        identity.canonical.as_deref().unwrap_or_default(),
    );
    let sql = format!("SELECT key FROM ids WHERE alias = '' AND type = '{kind}' AND id = '{id}'");
    Key(number(store, &sql).await)
}

pub(super) async fn select(store: &dyn Inspect, sql: &str) -> TextRows {
    store.select(sql.to_owned()).await.unwrap()
}

/// The one cell of a query.
pub(super) async fn cell(store: &dyn Inspect, sql: &str) -> Option<String> {
    let rows = select(store, sql).await;
    assert_eq!(rows.len(), 1, "{sql}: {rows:?}");
    rows[0][0].clone()
}

pub(super) async fn number(store: &dyn Inspect, sql: &str) -> i64 {
    cell(store, sql).await.unwrap().parse().unwrap()
}

/// The canonical id of the key that an expression gives.
pub(super) fn id_of(expression: &str) -> String {
    format!("(SELECT min(id) FROM ids WHERE ids.key = {expression} AND alias = '')")
}

pub(super) fn outcome(subject: Key, code: OutcomeCode) -> Outcome {
    Outcome {
        subject,
        query: "profile".into(),
        code,
        reason: "http".to_owned(),
    }
}

pub(super) async fn tell(store: &dyn Inspect, at_us: i64, subject: Key, code: OutcomeCode) {
    commit(
        store,
        Commit {
            outcomes: vec![outcome(subject, code)],
            log: Some(log_row("profile")),
            ..at(at_us)
        },
    )
    .await;
}
