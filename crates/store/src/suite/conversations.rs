//! Conversations: the rows of replies, and the first post of each.

use super::build::{
    SeedOnFailure, Seeded, With, at, commit, drain, group, named_value, number, object, of_kind,
    rules, seed, select, text, unnamed, user,
};
use super::reach::comment_rows;
use super::{Inspect, Make};
use kittiwake_model::{Commit, Identity, Object, Reference, Role, Table, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn status(id: &str) -> Identity {
    of_kind("status", id)
}

/// A post of `author` that answers another, or nobody.
fn reply(id: &Identity, author: &str, to: Option<&Identity>) -> Object {
    let fields = [
        ("author", named_value(&user(author))),
        ("reply_to", to.map_or(Value::Null, named_value)),
    ];
    object(Table::Statuses, id.clone(), vec![group("content", &fields)])
}

async fn settle(store: &dyn Inspect) {
    drain(store, 90, &rules(0, true, true)).await;
}

pub async fn a_reply_has_a_row_among_the_comments(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let chain = ["a", "b", "c", "d"];
    // Answers before what they answer: the beginning is known only at the end.
    for place in (1..chain.len()).rev() {
        let to = status(chain[place - 1]);
        let told = Commit {
            objects: vec![reply(&status(chain[place]), "bob", Some(&to))],
            ..at(1)
        };
        commit(&*store, told).await;
        let rooted = "SELECT count(*) FROM comments WHERE root IS NOT NULL OR status IS NOT NULL";
        assert_eq!(number(&*store, rooted).await, 0);
    }
    let first = Commit {
        objects: vec![reply(&status("a"), "alice", None)],
        ..at(2)
    };
    // No rules are needed for it.
    assert!(!commit(&*store, first).await.backlog);
    let expected = ["b a a a bob -", "c a b a bob -", "d a c a bob -"];
    assert_eq!(comment_rows(&*store).await, set(&expected));
    assert_eq!(number(&*store, "SELECT count(text) FROM comments").await, 0);
    assert_eq!(number(&*store, "SELECT count(*) FROM statuses").await, 4);
}

fn set(rows: &[&str]) -> BTreeSet<String> {
    rows.iter().map(|row| (*row).to_owned()).collect()
}

pub async fn an_answer_may_stand_before_what_it_answers(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let mut rules = (*rules(1, false, false)).clone();
    rules.brings = vec![Role::Commenters];
    // All in one answer, which points at its own parts.
    let answers = |id: &str, author: &str, to: Option<u32>| {
        let to = to.map_or(Value::Null, |to| Value::Object(Reference::Object(to)));
        let fields = [("author", named_value(&user(author))), ("reply_to", to)];
        object(Table::Statuses, status(id), vec![group("content", &fields)])
    };
    let planted = Commit {
        discoveries: vec![seed(&user("alice"), 0)],
        ..at(1)
    };
    let told = Commit {
        objects: vec![
            answers("c", "cid", Some(1)),
            answers("b", "bob", Some(2)),
            answers("a", "alice", None),
        ],
        expansion: Some(Arc::new(rules)),
        ..at(2)
    };
    commit(&*store, planted).await;
    assert!(!commit(&*store, told).await.backlog);
    let expected = ["b a a a bob -", "c a b a cid -"];
    assert_eq!(comment_rows(&*store).await, set(&expected));
    let near = "SELECT count(*) FROM subjects WHERE depth = 1";
    assert_eq!(number(&*store, near).await, 2);
}

pub async fn a_circle_of_replies_has_no_beginning(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    store.limit_steps(3).await.unwrap();
    let answers = |at_us: i64, id: &str, to: Option<&str>| Commit {
        objects: vec![reply(&status(id), "eve", to.map(status).as_ref())],
        ..at(at_us)
    };
    let commits = vec![
        answers(1, "itself", Some("itself")),
        answers(1, "a", Some("b")),
        answers(1, "b", Some("c")),
        answers(1, "below", Some("a")),
        answers(1, "c", None),
    ];
    for one in commits {
        commit(&*store, one).await;
    }
    settle(&*store).await;
    let rows = |roots: [&str; 4]| {
        let [a, b, below, itself] = roots;
        set(&[
            &format!("a {a} b {a} eve -"),
            &format!("b {b} c {b} eve -"),
            &format!("below {below} a {below} eve -"),
            &format!("itself {itself} itself {itself} eve -"),
        ])
    };
    assert_eq!(comment_rows(&*store).await, rows(["c", "c", "c", "-"]));
    // What was the first post answers one of its own answers all of a sudden.
    commit(&*store, answers(2, "c", Some("a"))).await;
    settle(&*store).await;
    let mut circle = rows(["-", "-", "-", "-"]);
    circle.insert("c - a - eve -".to_owned());
    assert_eq!(comment_rows(&*store).await, circle);
    // And does not any more.
    commit(&*store, answers(3, "c", None)).await;
    settle(&*store).await;
    assert_eq!(comment_rows(&*store).await, rows(["c", "c", "c", "-"]));
}

pub async fn comments_that_are_no_posts_stand_beside_replies(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let comment = |at_us: i64, says: &str| {
        let fields = [
            ("author", named_value(&user("cid"))),
            ("status", named_value(&status("a"))),
            ("parent", named_value(&status("b"))),
            ("text", text(says)),
        ];
        let content = vec![group("content", &fields)];
        Commit {
            objects: vec![object(Table::Comments, of_kind("comment", "k"), content)],
            ..at(at_us)
        }
    };
    let told = Commit {
        objects: vec![
            reply(&status("b"), "bob", Some(&status("a"))),
            reply(&status("a"), "alice", None),
        ],
        ..at(1)
    };
    commit(&*store, comment(1, "hear")).await;
    commit(&*store, told).await;
    commit(&*store, comment(2, "hear, hear")).await;
    settle(&*store).await;
    let expected = set(&["b a a a bob -", "k a b - cid -"]);
    assert_eq!(comment_rows(&*store).await, expected);
    let texts = select(&*store, "SELECT text FROM comments WHERE text IS NOT NULL").await;
    assert_eq!(texts, vec![vec![Some("hear, hear".to_owned())]]);
    // What a post says of itself does not touch them.
    let moved = Commit {
        objects: vec![reply(&status("b"), "bob", None)],
        ..at(3)
    };
    commit(&*store, moved).await;
    settle(&*store).await;
    assert_eq!(comment_rows(&*store).await, set(&["k a b - cid -"]));
}

pub async fn merged_posts_have_one_conversation(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    store.limit_steps(2).await.unwrap();
    let local = unnamed("status").local("1");
    let told = vec![
        Commit {
            objects: vec![
                reply(&status("a"), "alice", None),
                reply(&status("b"), "bob", Some(&status("a"))),
            ],
            ..at(1)
        },
        Commit {
            objects: vec![
                reply(&local, "bob", Some(&status("a"))),
                reply(&status("c"), "cid", Some(&local)),
                reply(&status("d"), "dora", Some(&status("b"))),
            ],
            ..at(2)
        },
        Commit {
            objects: vec![Object {
                groups: Vec::new(),
                ..reply(&status("b").local("1"), "bob", None)
            }],
            ..at(3)
        },
    ];
    for one in told {
        commit(&*store, one).await;
    }
    settle(&*store).await;
    let expected = ["b a a a bob -", "c a b a cid -", "d a b a dora -"];
    assert_eq!(comment_rows(&*store).await, set(&expected));
}

/// What the newest observation that had a field says.
type Fields = BTreeMap<&'static str, Option<usize>>;

/// Random observations of a few posts, and what they come to.
struct Thread {
    number: usize,
    newest: Vec<Fields>,
}

impl Thread {
    fn name(&self, post: usize) -> String {
        format!("t{} p{post}", self.number)
    }

    fn observations(&mut self, random: &mut Seeded) -> Vec<Commit> {
        let posts = self.newest.len();
        let mut commits = Vec::new();
        for at_us in 0..random.below(5 * posts) as i64 {
            let number = random.below(posts);
            let mut fields = vec![("text", text("says"))];
            for (field, end) in [("author", 2), ("reply_to", posts)] {
                let value = match random.below(4) {
                    0 => continue,
                    1 => None,
                    _ => Some(random.below(end)),
                };
                self.newest[number].insert(field, value);
                let value = value.map(|value| match field {
                    "author" => user(&self.name(value)),
                    _ => status(&self.name(value)),
                });
                fields.push((field, value.as_ref().map_or(Value::Null, named_value)));
            }
            let content = vec![group("content", &fields)];
            commits.push(Commit {
                objects: vec![object(Table::Statuses, status(&self.name(number)), content)],
                ..at(at_us)
            });
        }
        commits
    }

    fn field(&self, post: usize, field: &str) -> Option<usize> {
        self.newest[post].get(field).copied().flatten()
    }

    fn root(&self, post: usize) -> Option<usize> {
        let mut here = post;
        for _ in 0..=self.newest.len() {
            match self.field(here, "reply_to") {
                Some(parent) => here = parent,
                None => return self.field(here, "author").map(|_| here),
            }
        }
        None
    }

    fn rows(&self) -> Vec<String> {
        let name = |post: Option<usize>| post.map_or("-".to_owned(), |it| self.name(it));
        (0..self.newest.len())
            .filter_map(|post| {
                let parent = name(Some(self.field(post, "reply_to")?));
                let (root, author) = (name(self.root(post)), name(self.field(post, "author")));
                Some(format!(
                    "{} {root} {parent} {root} {author} -",
                    self.name(post)
                ))
            })
            .collect()
    }
}

pub async fn conversations_follow_the_newest_observations(make: Make<'_>) {
    for seed_number in 0..6_u64 {
        let _named = SeedOnFailure(seed_number);
        let mut random = Seeded::new(5_000 + seed_number);
        let mut commits = Vec::new();
        let mut expected = BTreeSet::new();
        for number in 0..30 {
            let mut thread = Thread {
                number,
                newest: vec![Fields::new(); 2 + random.below(7)],
            };
            commits.extend(thread.observations(&mut random));
            expected.extend(thread.rows());
        }
        random.shuffle(&mut commits);
        let place = make();
        let store = place.open().unwrap();
        store.limit_steps(1 + random.below(12)).await.unwrap();
        for page in commits.chunks(1 + random.below(5)) {
            store.commit(page.to_vec()).await.unwrap();
        }
        settle(&*store).await;
        let found = comment_rows(&*store).await;
        let differing: Vec<_> = found.symmetric_difference(&expected).collect();
        assert!(differing.is_empty(), "{differing:#?}");
    }
}
