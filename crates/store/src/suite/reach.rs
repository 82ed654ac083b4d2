//! Who and what is within reach: depths along everything that brings people in, posts that are
//! filed, conversations. The result is that of one plain computation over all facts, whatever the
//! order, the grouping and the interruptions.

use super::build::{
    SeedOnFailure, Seeded, With, at, card, drain, follows, group, id_of, link, named_value, number,
    object, of_kind, robot, seed, select, text, unnamed,
};
use super::{Inspect, Make, Place};
use kittiwake_model::{
    Commit, Expansion, Follow, Identity, Link, Object, RobotFiling, Role, Table, Value,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Anything that has an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    User(usize),
    Post(usize),
    /// Of a network that keeps comments apart from posts.
    Comment(usize),
    Tag(usize),
}

impl Thing {
    fn parts(self) -> (&'static str, usize) {
        match self {
            Self::User(number) => ("user", number),
            Self::Post(number) => ("status", number),
            Self::Comment(number) => ("comment", number),
            Self::Tag(number) => ("tag", number),
        }
    }

    fn id(self) -> String {
        let (kind, number) = self.parts();
        format!("{kind}{number:02}")
    }

    fn canonical(self) -> Identity {
        of_kind(self.parts().0, &self.id())
    }

    fn local(self) -> Identity {
        let (kind, number) = self.parts();
        unnamed(kind).local(&number.to_string())
    }

    fn whole(self) -> Identity {
        self.canonical().local(&self.parts().1.to_string())
    }

    /// One of the two ways in which an answer may name it.
    fn named(self, random: &mut Seeded) -> Identity {
        if random.chance(2) {
            self.canonical()
        } else {
            self.local()
        }
    }
}

/// What a post or a comment says of itself.
#[derive(Debug, Clone, Default)]
struct Writing {
    author: Option<usize>,
    parent: Option<Thing>,
    status: Option<usize>,
    created_us: Option<i64>,
    /// Numbers of replies that were observed, each later than the one before.
    counts: Vec<i64>,
}

#[derive(Debug, Default)]
struct World {
    users: usize,
    tags: usize,
    /// `None` for a post that is only named.
    posts: Vec<Option<Writing>>,
    comments: Vec<Writing>,
    follows: Vec<(usize, usize)>,
    links: Vec<(&'static str, Thing, Thing)>,
    seeds: Vec<(Thing, u32)>,
}

impl World {
    fn random(random: &mut Seeded) -> Self {
        let (users, posts, tags) = (3 + random.below(8), 2 + random.below(10), 2);
        let mut world = Self {
            users,
            tags,
            ..Self::default()
        };
        for number in 0..posts {
            let post = Writing {
                author: (!random.chance(6)).then(|| random.below(users)),
                // Any post, so that circles occur; mostly an earlier one.
                parent: random.chance(2).then(|| {
                    let end = if random.chance(3) { posts } else { number + 1 };
                    Thing::Post(random.below(end))
                }),
                status: None,
                created_us: random.chance(2).then(|| random.below(3) as i64),
                counts: (0..random.below(3))
                    .map(|_| random.below(2) as i64)
                    .collect(),
            };
            world.posts.push((!random.chance(6)).then_some(post));
        }
        for number in 0..random.below(5) {
            world.comments.push(Writing {
                author: (!random.chance(6)).then(|| random.below(users)),
                parent: (!random.chance(4)).then(|| match random.below(2) {
                    0 if number > 0 => Thing::Comment(random.below(number)),
                    _ => Thing::Post(random.below(posts)),
                }),
                status: random.chance(2).then(|| random.below(posts)),
                ..Writing::default()
            });
        }
        for _ in 0..random.below(users) {
            let (from, to) = (random.below(users), random.below(users));
            if from != to {
                world.follows.push((from, to));
            }
        }
        for _ in 0..random.below(2 * posts) {
            let (from_user, from_post) = (random.below(users), random.below(posts));
            let (to_post, to_tag) = (random.below(posts), random.below(tags));
            world.links.push(match random.below(6) {
                0 => ("repost", Thing::User(from_user), Thing::Post(to_post)),
                1 | 2 => ("repost", Thing::Post(from_post), Thing::Post(to_post)),
                3 => ("like", Thing::User(from_user), Thing::Post(to_post)),
                4 => ("tag", Thing::Post(from_post), Thing::Tag(to_tag)),
                _ => ("mention", Thing::Post(from_post), Thing::User(from_user)),
            });
        }
        for _ in 0..=random.below(2) {
            let subject = match random.below(4) {
                0 => Thing::Post(random.below(posts)),
                1 => Thing::Tag(random.below(tags)),
                _ => Thing::User(random.below(users)),
            };
            world.seeds.push((subject, random.below(2) as u32));
        }
        world
    }

    fn writing(&self, thing: Thing) -> Option<&Writing> {
        match thing {
            Thing::Post(number) => self.posts[number].as_ref(),
            Thing::Comment(number) => Some(&self.comments[number]),
            Thing::User(_) | Thing::Tag(_) => None,
        }
    }

    fn all(&self) -> Vec<Thing> {
        let users = (0..self.users).map(Thing::User);
        users
            .chain((0..self.posts.len()).map(Thing::Post))
            .chain((0..self.comments.len()).map(Thing::Comment))
            .chain((0..self.tags).map(Thing::Tag))
            .collect()
    }
}

/// The plain computation: everything is looked at again and again until nothing changes.
struct Oracle<'a> {
    world: &'a World,
    rules: &'a Expansion,
    depths: BTreeMap<Thing, u32>,
}

impl<'a> Oracle<'a> {
    fn new(world: &'a World, rules: &'a Expansion) -> Self {
        let mut oracle = Self {
            world,
            rules,
            depths: BTreeMap::new(),
        };
        for (subject, depth) in &world.seeds {
            oracle.lower(*subject, *depth);
        }
        loop {
            let before = oracle.depths.clone();
            oracle.go_along_follows();
            oracle.go_along_links();
            oracle.go_along_comments();
            if oracle.depths == before {
                return oracle;
            }
        }
    }

    fn lower(&mut self, subject: Thing, depth: u32) {
        let known = self.depths.entry(subject).or_insert(depth);
        *known = depth.min(*known);
    }

    fn author(&self, thing: Thing) -> Option<Thing> {
        let author = self.world.writing(thing)?.author;
        author.map(Thing::User)
    }

    fn reach(&self, thing: Thing) -> Option<u32> {
        let own = self.depths.get(&thing).copied();
        let by_author = self
            .author(thing)
            .and_then(|author| self.depths.get(&author));
        own.into_iter().chain(by_author.copied()).min()
    }

    fn is_near(&self, thing: Thing) -> bool {
        self.reach(thing)
            .is_some_and(|depth| depth <= self.rules.depth_max)
    }

    /// One step from one thing to the person behind another.
    fn step(&mut self, from: Thing, to: Thing) {
        let person = match to {
            Thing::User(_) => Some(to),
            _ => self.author(to),
        };
        if let (true, Some(depth), Some(person)) = (self.is_near(from), self.reach(from), person) {
            self.lower(person, depth + 1);
        }
    }

    fn go_along_follows(&mut self) {
        for (source, target) in &self.world.follows {
            if self.rules.follow.following {
                self.step(Thing::User(*source), Thing::User(*target));
            }
            if self.rules.follow.followers {
                self.step(Thing::User(*target), Thing::User(*source));
            }
        }
    }

    fn go_along_links(&mut self) {
        for (kind, from, to) in &self.world.links {
            let role = match (*kind, to) {
                ("repost", Thing::Post(_)) => Role::Reposters,
                ("like", Thing::Post(_)) => Role::Likers,
                (_, Thing::Tag(_)) => Role::Authors,
                _ => continue,
            };
            if self.rules.brings.contains(&role) {
                self.step(*to, *from);
            }
        }
    }

    fn go_along_comments(&mut self) {
        if !self.rules.brings.contains(&Role::Commenters) {
            return;
        }
        for (comment, status, parent) in self.comments() {
            for source in [status, parent].into_iter().flatten() {
                self.step(source, comment);
            }
        }
    }

    /// Every comment with the post under which it stands and what it answers.
    fn comments(&self) -> Vec<(Thing, Option<Thing>, Option<Thing>)> {
        let mut comments = Vec::new();
        for (number, post) in self.world.posts.iter().enumerate() {
            if let Some(parent) = post.as_ref().and_then(|post| post.parent) {
                let post = Thing::Post(number);
                comments.push((post, self.root(post), Some(parent)));
            }
        }
        for (number, comment) in self.world.comments.iter().enumerate() {
            let status = comment.status.map(Thing::Post);
            comments.push((Thing::Comment(number), status, comment.parent));
        }
        comments
    }

    fn root(&self, post: Thing) -> Option<Thing> {
        let mut here = post;
        for _ in 0..=self.world.posts.len() {
            let writing = self.world.writing(here)?;
            match writing.parent {
                Some(parent) => here = parent,
                // Without an author it was not described yet.
                None => return writing.author.map(|_| here),
            }
        }
        None
    }

    /// The least number of reposts between a post and one that is near.
    fn repost_distance(&self, post: Thing) -> Option<u32> {
        let mut distances = BTreeMap::from([(post, 0)]);
        let mut queue = VecDeque::from([post]);
        while let Some(here) = queue.pop_front() {
            if self.is_near(here) {
                return distances.get(&here).copied();
            }
            for (kind, from, to) in &self.world.links {
                let is_step = *kind == "repost" && *from == here && matches!(to, Thing::Post(_));
                if is_step && !distances.contains_key(to) {
                    distances.insert(*to, distances[&here] + 1);
                    queue.push_back(*to);
                }
            }
        }
        None
    }

    fn filed(&self) -> BTreeSet<(String, String)> {
        let mut filed = BTreeSet::new();
        for thing in self.world.all() {
            for filing in &self.rules.robots {
                let newest = self
                    .world
                    .writing(thing)
                    .and_then(|post| post.counts.last());
                if &*filing.kind != thing.parts().0
                    || (filing.unless_zero.is_some() && newest == Some(&0))
                {
                    continue;
                }
                let is_repost_of_near = matches!(thing, Thing::Post(_))
                    && self
                        .repost_distance(thing)
                        .is_some_and(|distance| distance <= filing.repost_steps);
                if self.is_near(thing) || is_repost_of_near {
                    filed.insert((thing.id(), filing.robot.to_string()));
                }
            }
        }
        filed
    }

    fn comment_rows(&self) -> BTreeSet<String> {
        let name = |thing: Option<Thing>| thing.map_or("-".to_owned(), Thing::id);
        self.comments()
            .into_iter()
            .map(|(comment, status, parent)| {
                let root = match comment {
                    Thing::Post(_) => status,
                    _ => None,
                };
                let created_us = self.world.writing(comment).and_then(|it| it.created_us);
                let created_us = created_us.map_or("-".to_owned(), |at_us| at_us.to_string());
                [
                    comment.id(),
                    name(status),
                    name(parent),
                    name(root),
                    name(self.author(comment)),
                    created_us,
                ]
                .join(" ")
            })
            .collect()
    }
}

fn random_rules(random: &mut Seeded) -> Arc<Expansion> {
    let roles = [
        Role::Commenters,
        Role::Reposters,
        Role::Likers,
        Role::Authors,
    ];
    let robots = vec![
        robot("profiles", "user"),
        RobotFiling {
            unless_zero: Some("replies_count".into()),
            ..robot("threads", "status")
        },
        RobotFiling {
            begins_visited: true,
            repost_steps: random.below(4) as u32,
            ..robot("looks", "status")
        },
        robot("tags", "tag"),
        robot("remarks", "comment"),
    ];
    Arc::new(Expansion {
        follow: Follow {
            following: random.chance(2),
            followers: random.chance(2),
        },
        depth_max: random.below(4) as u32,
        robots: robots.into_iter().filter(|_| !random.chance(4)).collect(),
        brings: roles.into_iter().filter(|_| !random.chance(3)).collect(),
    })
}

/// One piece of news about a world: it may come in at any time.
enum News {
    Object(i64, Object),
    Link(Link),
    Seed(Identity, u32),
}

fn described(thing: Thing, table: Table, fields: &[(&str, Value)]) -> Object {
    object(table, thing.whole(), vec![group("content", fields)])
}

impl World {
    fn news(&self, random: &mut Seeded) -> Vec<News> {
        let mut news = Vec::new();
        for thing in self.all() {
            // The proof that both of its names are one; users are described on the way.
            let proof = match thing {
                Thing::User(_) => card(thing.whole(), "proved"),
                _ => Object {
                    groups: Vec::new(),
                    ..object(table_of(thing), thing.whole(), Vec::new())
                },
            };
            news.push(News::Object(5, proof));
            if let Some(writing) = self.writing(thing) {
                news.extend(writing.news(thing, random));
            }
        }
        for (source, target) in &self.follows {
            news.push(News::Link(follows(
                &Thing::User(*source).named(random),
                &Thing::User(*target).named(random),
            )));
        }
        for (kind, from, to) in &self.links {
            news.push(News::Link(link(
                kind,
                &from.named(random),
                &to.named(random),
            )));
        }
        for (subject, depth) in &self.seeds {
            news.push(News::Seed(subject.named(random), *depth));
        }
        random.shuffle(&mut news);
        news
    }
}

fn table_of(thing: Thing) -> Table {
    match thing {
        Thing::User(_) => Table::Users,
        Thing::Post(_) => Table::Statuses,
        Thing::Comment(_) => Table::Comments,
        Thing::Tag(_) => Table::Tags,
    }
}

impl Writing {
    /// The observations of it: whole, and its numbers one by one.
    fn news(&self, thing: Thing, random: &mut Seeded) -> Vec<News> {
        let mut fields = vec![("text", text("says"))];
        if let Some(author) = self.author {
            let author = Thing::User(author).named(random);
            fields.push(("author", named_value(&author)));
        }
        if let Some(parent) = self.parent {
            let name = match thing {
                Thing::Comment(_) => "parent",
                _ => "reply_to",
            };
            fields.push((name, named_value(&parent.named(random))));
        }
        if let Some(status) = self.status {
            let status = Thing::Post(status).named(random);
            fields.push(("status", named_value(&status)));
        }
        if let Some(at_us) = self.created_us {
            let clamped = false;
            fields.push(("created_us", Value::Time { at_us, clamped }));
        }
        let table = table_of(thing);
        let mut news = vec![News::Object(5, described(thing, table, &fields))];
        for (place, count) in self.counts.iter().enumerate() {
            let counts = group("counts", &[("replies_count", Value::Int(*count))]);
            let counted = object(table, thing.whole(), vec![counts]);
            news.push(News::Object(10 + place as i64, counted));
        }
        news
    }
}

/// The news as commits, some of several pieces, some without rules.
fn commits(news: Vec<News>, random: &mut Seeded, rules: &Arc<Expansion>) -> Vec<Commit> {
    let mut commits: Vec<Commit> = Vec::new();
    for piece in news {
        let at_us = match piece {
            News::Object(at_us, _) => at_us,
            _ => 5,
        };
        let joins = random.chance(2) && commits.last().is_some_and(|last| last.at.0 == at_us);
        if !joins {
            commits.push(Commit {
                expansion: (!random.chance(4)).then(|| rules.clone()),
                ..at(at_us)
            });
        }
        let last = commits.last_mut().unwrap();
        match piece {
            News::Object(_, object) => last.objects.push(object),
            News::Link(link) => last.links.push(link),
            News::Seed(subject, depth) => last.discoveries.push(seed(&subject, depth)),
        }
    }
    commits
}

/// Writes the commits in transactions of any size, with few steps each, and with interruptions.
async fn tell(
    place: &dyn Place,
    commits: Vec<Commit>,
    random: &mut Seeded,
    rules: &Arc<Expansion>,
) -> Box<dyn Inspect> {
    let steps = [1, 2, 3, 7, 2_000][random.below(5)];
    let mut store = place.open().unwrap();
    store.limit_steps(steps).await.unwrap();
    for page in commits.chunks(1 + random.below(4)) {
        store.commit(page.to_vec()).await.unwrap();
        if random.chance(30) {
            drop(store);
            store = place.open().unwrap();
            store.limit_steps(steps).await.unwrap();
        }
    }
    drain(&*store, 20, rules).await;
    store
}

async fn check(store: &dyn Inspect, oracle: &Oracle<'_>) {
    let depths = select(
        store,
        &format!("SELECT {}, depth FROM subjects", id_of("subjects.key")),
    )
    .await;
    let depths: BTreeMap<String, u32> = depths
        .into_iter()
        .map(|row| {
            let depth = row[1].as_ref().unwrap().parse().unwrap();
            (row[0].clone().unwrap(), depth)
        })
        .collect();
    let expected: BTreeMap<String, u32> = oracle
        .depths
        .iter()
        .map(|(thing, depth)| (thing.id(), *depth))
        .collect();
    assert_eq!(depths, expected, "depths");
    let rows = select(
        store,
        &format!("SELECT {}, robot FROM frontier", id_of("frontier.subject")),
    )
    .await;
    let filed: BTreeSet<(String, String)> = rows
        .into_iter()
        .map(|row| (row[0].clone().unwrap(), row[1].clone().unwrap()))
        .collect();
    assert_eq!(filed, oracle.filed(), "filed");
    assert_eq!(comment_rows(store).await, oracle.comment_rows(), "comments");
    assert_eq!(number(store, "SELECT count(*) FROM relax").await, 0);
}

pub(super) async fn comment_rows(store: &dyn Inspect) -> BTreeSet<String> {
    let rows = select(
        store,
        &format!(
            "SELECT {}, {}, {}, {}, {}, created_us FROM comments",
            id_of("comments.key"),
            id_of("comments.status"),
            id_of("comments.parent"),
            id_of("comments.root"),
            id_of("comments.author"),
        ),
    )
    .await;
    rows.into_iter()
        .map(|row| {
            let cells = row.into_iter().map(|cell| cell.unwrap_or("-".to_owned()));
            cells.collect::<Vec<_>>().join(" ")
        })
        .collect()
}

pub async fn reach_equals_a_plain_computation(make: Make<'_>) {
    for seed_number in 0..60_u64 {
        let _named = SeedOnFailure(seed_number);
        let mut random = Seeded::new(3_000 + seed_number);
        let world = World::random(&mut random);
        let rules = random_rules(&mut random);
        let place = make();
        let commits = commits(world.news(&mut random), &mut random, &rules);
        let store = tell(&*place, commits, &mut random, &rules).await;
        check(&*store, &Oracle::new(&world, &rules)).await;
    }
}

pub async fn rules_that_grow_reach_what_they_would_have_from_the_start(make: Make<'_>) {
    for seed_number in 0..20_u64 {
        let _named = SeedOnFailure(seed_number);
        let mut random = Seeded::new(4_000 + seed_number);
        let world = World::random(&mut random);
        let mut wider = (*random_rules(&mut random)).clone();
        let rules = Arc::new(wider.clone());
        let place = make();
        let commits = commits(world.news(&mut random), &mut random, &rules);
        let store = tell(&*place, commits, &mut random, &rules).await;
        check(&*store, &Oracle::new(&world, &rules)).await;
        // Deeper, in both directions, along everything, for more robots.
        wider.depth_max += 1;
        wider.follow = Follow {
            following: true,
            followers: true,
        };
        wider.brings = vec![
            Role::Likers,
            Role::Authors,
            Role::Commenters,
            Role::Reposters,
        ];
        wider.robots.push(RobotFiling {
            repost_steps: 2,
            ..robot("more", "status")
        });
        let wider = Arc::new(wider);
        drain(&*store, 30, &wider).await;
        check(&*store, &Oracle::new(&world, &wider)).await;
    }
}
