//! Relations that have vanished: what a whole walk of a list proves, and what it does not.

use super::build::{
    SeedOnFailure, Seeded, With, at, commit, drain, follows, group, id_of, key, number, object,
    rules, seed, select, tell, unnamed, user,
};
use super::{Inspect, Make, Place};
use kittiwake_model::{
    Commit, Cursor, CursorState, Identity, Key, Link, List, OutcomeCode, Sweep, Table, Value, Walk,
    WorldTime,
};
use std::collections::{BTreeMap, BTreeSet};

/// A relation as a walk of one of its lists showed it.
fn shown(list: List, number: u32, source: &Identity, target: &Identity) -> Link {
    Link {
        walk: Some(Walk { list, number }),
        ..follows(source, target)
    }
}

fn sweep(subject: Key, list: List, number: u32, started_us: i64) -> Sweep {
    Sweep {
        subject,
        walk: Walk { list, number },
        started: WorldTime(started_us),
    }
}

/// A walk of alice's following that shows these, committed as one page.
fn walked(alice: Key, at_us: i64, number: u32, members: &[&str]) -> Commit {
    let links = members
        .iter()
        .map(|name| shown(List::Following, number, &user("alice"), &user(name)));
    Commit {
        links: links.collect(),
        sweeps: vec![sweep(alice, List::Following, number, at_us)],
        ..at(at_us)
    }
}

fn counted(name: &str, column: &str, count: i64) -> kittiwake_model::Object {
    let counts = group("counts", &[(column, Value::Int(count))]);
    object(Table::Users, user(name), vec![counts])
}

/// Rows of a table of relations, by ids, with these columns.
async fn relations(store: &dyn Inspect, table: &str, columns: &str) -> BTreeSet<String> {
    let sql = format!(
        "SELECT {}, {}{columns} FROM {table}",
        id_of(&format!("{table}.source")),
        id_of(&format!("{table}.target"))
    );
    let rows = select(store, &sql).await;
    rows.into_iter()
        .map(|row| row.into_iter().flatten().collect::<Vec<_>>().join(" "))
        .collect()
}

fn set(rows: &[&str]) -> BTreeSet<String> {
    rows.iter().map(|row| (*row).to_owned()).collect()
}

async fn settle(store: &dyn Inspect) {
    drain(store, 1, &rules(0, true, true)).await;
}

pub async fn a_relation_that_a_whole_walk_did_not_show_has_vanished(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = key(&*store, &user("alice")).await;
    let members: Vec<String> = (0..900).map(|number| format!("u{number:03}")).collect();
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    commit(&*store, walked(alice, 10, 1, &members)).await;
    // Seen from the other side, and never by a walk of this list.
    let aside = Commit {
        links: vec![
            shown(List::Followers, 7, &user("alice"), &user("aside")),
            follows(&user("zoe"), &user("alice")),
        ],
        ..at(11)
    };
    commit(&*store, aside).await;
    store.limit_steps(100).await.unwrap();
    let report = commit(&*store, walked(alice, 20, 2, &["u000", "u899"])).await;
    assert!(report.backlog, "900 relations do not fit 100 steps");
    let left = number(&*store, "SELECT count(*) FROM invalid_relations").await;
    assert!(left > 0 && left <= 100, "{left}");
    // Interrupted in the middle.
    drop(store);
    let store = place.open().unwrap();
    store.limit_steps(100).await.unwrap();
    settle(&*store).await;
    assert_eq!(number(&*store, "SELECT count(*) FROM sweeps").await, 0);
    assert_eq!(
        relations(&*store, "user_relations", "").await,
        set(&["alice u000", "alice u899", "zoe alice"])
    );
    let vanished = "SELECT count(*) FROM invalid_relations WHERE vanished_us = 20";
    assert_eq!(number(&*store, vanished).await, 899);
    let aside = relations(&*store, "invalid_relations", ", last_seen_us").await;
    assert!(aside.contains("alice aside 11"));
}

pub async fn what_proves_nothing_sweeps_nothing(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = key(&*store, &user("alice")).await;
    let gone = key(&*store, &user("gone")).await;
    commit(&*store, walked(alice, 10, 1, &["bob", "gone", "cid"])).await;
    // Whoever is gone themselves has not been left.
    tell(&*store, 11, gone, OutcomeCode::Suspended).await;
    // Seen elsewhere since the walk began, though the walk did not show it.
    let elsewhere = Commit {
        links: vec![shown(List::Followers, 1, &user("alice"), &user("cid"))],
        ..at(20)
    };
    commit(&*store, elsewhere).await;
    commit(&*store, walked(alice, 20, 2, &["bob"])).await;
    assert_eq!(
        number(&*store, "SELECT count(*) FROM invalid_relations").await,
        0
    );
    // A list that shows nobody though the profile counts some is hidden.
    let counts = Commit {
        objects: vec![counted("alice", "following_count", 3)],
        ..at(30)
    };
    commit(&*store, counts).await;
    let report = commit(&*store, walked(alice, 31, 3, &[])).await;
    assert!(!report.backlog);
    assert_eq!(
        number(&*store, "SELECT count(*) FROM invalid_relations").await,
        0
    );
    // One that shows somebody is not.
    commit(&*store, walked(alice, 32, 4, &["bob"])).await;
    assert_eq!(
        relations(&*store, "invalid_relations", "").await,
        set(&["alice cid"])
    );
    // And one that shows nobody because there is nobody is not either.
    let counts = Commit {
        objects: vec![counted("alice", "following_count", 0)],
        ..at(40)
    };
    commit(&*store, counts).await;
    commit(&*store, walked(alice, 41, 5, &[])).await;
    assert_eq!(
        relations(&*store, "user_relations", "").await,
        set(&["alice gone"])
    );
    // While the owner of the list is gone, an empty list is no wonder.
    commit(&*store, walked(alice, 50, 6, &["bob"])).await;
    tell(&*store, 51, alice, OutcomeCode::Gone).await;
    commit(&*store, walked(alice, 52, 7, &[])).await;
    assert_eq!(
        relations(&*store, "user_relations", "").await,
        set(&["alice bob", "alice gone"])
    );
}

pub async fn a_newer_walk_takes_the_place_of_an_older_sweep(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = key(&*store, &user("alice")).await;
    let members = ["a", "b", "c", "d", "e", "f"];
    commit(&*store, walked(alice, 10, 1, &members)).await;
    settle(&*store).await;
    store.limit_steps(2).await.unwrap();
    let row = |walk: u32| Some(walk.to_string());
    let sql = "SELECT walk FROM sweeps";
    commit(&*store, walked(alice, 20, 2, &["a", "b"])).await;
    assert_eq!(select(&*store, sql).await, vec![vec![row(2)]]);
    commit(&*store, walked(alice, 30, 3, &["a"])).await;
    assert_eq!(select(&*store, sql).await, vec![vec![row(3)]]);
    // An older one that comes in late changes nothing.
    let late = Commit {
        sweeps: vec![sweep(alice, List::Following, 2, 20)],
        ..at(31)
    };
    commit(&*store, late).await;
    assert_eq!(select(&*store, sql).await, vec![vec![row(3)]]);
    settle(&*store).await;
    assert_eq!(
        relations(&*store, "user_relations", "").await,
        set(&["alice a"])
    );
    assert_eq!(
        number(&*store, "SELECT count(*) FROM invalid_relations").await,
        5
    );
}

pub async fn a_relation_that_reappears_is_restored(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let alice = key(&*store, &user("alice")).await;
    commit(&*store, walked(alice, 10, 1, &["bob", "cid"])).await;
    commit(&*store, walked(alice, 20, 2, &["cid"])).await;
    let columns = ", first_seen_us, last_seen_us, vanished_us";
    assert_eq!(
        relations(&*store, "invalid_relations", columns).await,
        set(&["alice bob 10 10 20"])
    );
    // Seen before the walk began, and only told now: it has vanished all the same.
    let late = |at_us: i64| Commit {
        links: vec![follows(&user("alice"), &user("bob"))],
        ..at(at_us)
    };
    let report = commit(&*store, late(15)).await;
    assert_eq!(report.rows_new, 0);
    commit(&*store, late(5)).await;
    assert_eq!(
        relations(&*store, "invalid_relations", columns).await,
        set(&["alice bob 5 15 20"])
    );
    let report = commit(&*store, walked(alice, 30, 3, &["bob", "cid"])).await;
    assert_eq!(report.rows_new, 1);
    assert_eq!(
        number(&*store, "SELECT count(*) FROM invalid_relations").await,
        0
    );
    assert_eq!(
        relations(
            &*store,
            "user_relations",
            ", first_seen_us, last_seen_us, following_walk"
        )
        .await,
        set(&["alice bob 5 30 3", "alice cid 10 30 3"])
    );
}

pub async fn a_vanished_relation_still_hands_depths_on(make: Make<'_>) {
    // Whether the relation vanishes before or after its beginning is found is a matter of luck.
    for found_first in [false, true] {
        let place = make();
        let store = place.open().unwrap();
        let rules = rules(1, true, false);
        let alice = key(&*store, &user("alice")).await;
        let found = Commit {
            discoveries: vec![seed(&user("alice"), 0)],
            expansion: Some(rules.clone()),
            ..at(30)
        };
        commit(&*store, walked(alice, 10, 1, &["bob", "cid"])).await;
        if found_first {
            commit(&*store, found.clone()).await;
        }
        commit(&*store, walked(alice, 20, 2, &["cid"])).await;
        assert_eq!(
            relations(&*store, "invalid_relations", "").await,
            set(&["alice bob"])
        );
        commit(&*store, found).await;
        drain(&*store, 40, &rules).await;
        let depths = "SELECT count(*) FROM subjects WHERE depth = 1";
        assert_eq!(
            number(&*store, depths).await,
            2,
            "found first: {found_first}"
        );
    }
}

/// Who follows whom in truth, and what a store has to make of the walks that are told.
#[derive(Default)]
struct Model {
    truth: BTreeSet<(usize, usize)>,
    /// Last sight of what is stored and has not vanished.
    stored: BTreeMap<(usize, usize), i64>,
    vanished: BTreeSet<(usize, usize)>,
}

/// One walk: what it has seen so far.
struct OpenWalk {
    subject: usize,
    list: List,
    number: u32,
    started_us: i64,
    unseen: Vec<(usize, usize)>,
    seen: BTreeSet<(usize, usize)>,
    hidden: bool,
}

impl OpenWalk {
    /// What a crawl keeps of it when it is through.
    fn cursor(&self, subject: Key) -> Cursor {
        Cursor {
            subject,
            query: match self.list {
                List::Following => "following".into(),
                List::Followers => "followers".into(),
            },
            walk: self.number,
            digest: "paging".into(),
            pages: 1,
            items: self.seen.len() as u32,
            state: CursorState::Complete,
            checkpoint: None,
            mark_next: None,
            mark: None,
            started: WorldTime(self.started_us),
        }
    }

    fn holds(&self, relation: (usize, usize)) -> bool {
        match self.list {
            List::Following => relation.0 == self.subject,
            List::Followers => relation.1 == self.subject,
        }
    }
}

impl Model {
    fn see(&mut self, relation: (usize, usize), at_us: i64) {
        self.stored.insert(relation, at_us);
        self.vanished.remove(&relation);
    }

    fn end(&mut self, walk: &OpenWalk, gone: &[usize]) {
        let is_gone = |user: usize| gone.contains(&user);
        // Everybody's profile counts some, so a walk that showed nobody proves nothing.
        if walk.seen.is_empty() || is_gone(walk.subject) {
            return;
        }
        let missing: Vec<(usize, usize)> = self
            .stored
            .iter()
            .filter(|(relation, last_us)| {
                walk.holds(**relation)
                    && !walk.seen.contains(relation)
                    && **last_us < walk.started_us
                    && !is_gone(relation.0)
                    && !is_gone(relation.1)
            })
            .map(|(relation, _)| *relation)
            .collect();
        for relation in missing {
            self.stored.remove(&relation);
            self.vanished.insert(relation);
        }
    }
}

const USERS: usize = 6;

fn person(number: usize) -> Identity {
    user(&format!("u{number}"))
}

/// Tells random walks to the store and to the model at once.
struct Teller<'a> {
    random: &'a mut Seeded,
    keys: Vec<Key>,
    gone: Vec<usize>,
    model: Model,
    open: Vec<OpenWalk>,
    walks: u32,
}

impl Teller<'_> {
    /// Lets the world go on a little, and gives what a crawl would commit of it.
    fn next(&mut self, at_us: i64) -> Commit {
        if self.random.chance(2) {
            let relation = (self.random.below(USERS), self.random.below(USERS));
            if relation.0 != relation.1 && !self.model.truth.remove(&relation) {
                self.model.truth.insert(relation);
            }
        }
        if self.open.len() < 3 && self.random.chance(3) {
            self.begin(at_us);
        }
        if self.open.is_empty() {
            return at(at_us);
        }
        let place = self.random.below(self.open.len());
        self.turn_page(place, at_us)
    }

    fn begin(&mut self, at_us: i64) {
        self.walks += 1;
        let mut walk = OpenWalk {
            subject: self.random.below(USERS),
            list: [List::Following, List::Followers][self.random.below(2)],
            number: self.walks,
            started_us: at_us,
            unseen: Vec::new(),
            seen: BTreeSet::new(),
            hidden: self.random.chance(5),
        };
        let is_open = |other: &OpenWalk| (other.subject, other.list) == (walk.subject, walk.list);
        if self.open.iter().any(is_open) {
            return;
        }
        if !walk.hidden {
            let truth = self.model.truth.iter().copied();
            walk.unseen = truth.filter(|relation| walk.holds(*relation)).collect();
        }
        self.open.push(walk);
    }

    fn turn_page(&mut self, place: usize, at_us: i64) -> Commit {
        let walk = &mut self.open[place];
        let mut page = at(at_us);
        for relation in walk.unseen.split_off(walk.unseen.len().saturating_sub(2)) {
            page.links.push(shown(
                walk.list,
                walk.number,
                &person(relation.0),
                &person(relation.1),
            ));
            walk.seen.insert(relation);
            self.model.see(relation, at_us);
        }
        if walk.unseen.is_empty() {
            let walk = self.open.swap_remove(place);
            let subject = self.keys[walk.subject];
            page.cursors.push(walk.cursor(subject));
            page.sweeps
                .push(sweep(subject, walk.list, walk.number, walk.started_us));
            self.model.end(&walk, &self.gone);
        }
        page
    }
}

async fn begin(place: &dyn Place, random: &mut Seeded) -> (Box<dyn Inspect>, Vec<Key>, Vec<usize>) {
    let store = place.open().unwrap();
    let mut keys = Vec::new();
    let mut gone = Vec::new();
    for number in 0..USERS {
        let subject = key(&*store, &person(number)).await;
        let name = format!("u{number}");
        let counts = Commit {
            objects: vec![
                counted(&name, "following_count", 9),
                counted(&name, "followers_count", 9),
            ],
            ..at(1)
        };
        commit(&*store, counts).await;
        if random.chance(6) {
            tell(&*store, 2, subject, OutcomeCode::Suspended).await;
            gone.push(number);
        }
        keys.push(subject);
    }
    (store, keys, gone)
}

pub async fn sweeps_equal_a_plain_comparison(make: Make<'_>) {
    for seed_number in 0..25_u64 {
        let _named = SeedOnFailure(seed_number);
        let mut random = Seeded::new(6_000 + seed_number);
        let place = make();
        let (mut store, keys, gone) = begin(&*place, &mut random).await;
        let steps = [1, 2, 3, 2_000][random.below(4)];
        store.limit_steps(steps).await.unwrap();
        let mut teller = Teller {
            random: &mut random,
            keys,
            gone,
            model: Model::default(),
            open: Vec::new(),
            walks: 0,
        };
        for at_us in 10..90 {
            let page = teller.next(at_us);
            commit(&*store, page).await;
            if teller.random.chance(30) {
                drop(store);
                store = place.open().unwrap();
                store.limit_steps(steps).await.unwrap();
            }
        }
        settle(&*store).await;
        let ids = |(source, target): &(usize, usize)| format!("u{source} u{target}");
        let (stored, vanished) = (&teller.model.stored, &teller.model.vanished);
        let expected = stored
            .iter()
            .map(|(it, last_us)| format!("{} {last_us}", ids(it)));
        assert_eq!(
            relations(&*store, "user_relations", ", last_seen_us").await,
            expected.collect()
        );
        assert_eq!(
            relations(&*store, "invalid_relations", "").await,
            vanished.iter().map(ids).collect()
        );
    }
}

pub async fn a_merge_in_the_middle_of_a_sweep_misses_nobody(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let early = key(&*store, &user("early")).await;
    let alice = key(&*store, &user("alice")).await;
    commit(&*store, walked(alice, 10, 1, &["a", "b", "c", "d"])).await;
    let late = Commit {
        links: vec![follows(&user("alice"), &unnamed("user").local("1"))],
        ..at(11)
    };
    commit(&*store, late).await;
    settle(&*store).await;
    store.limit_steps(2).await.unwrap();
    commit(&*store, walked(alice, 20, 2, &["a", "d"])).await;
    assert_eq!(number(&*store, "SELECT count(*) FROM sweeps").await, 1);
    // The last member of the list turns out to have the least key of all.
    let proof = Commit {
        objects: vec![object(
            Table::Users,
            user("early").local("1"),
            vec![group("card", &[("is_bot", Value::Bool(false))])],
        )],
        ..at(21)
    };
    assert_eq!(commit(&*store, proof).await.merged[0].1, early);
    settle(&*store).await;
    assert_eq!(
        relations(&*store, "invalid_relations", "").await,
        set(&["alice b", "alice c", "alice early"])
    );
}
