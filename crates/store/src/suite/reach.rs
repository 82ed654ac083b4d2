//! Who and what is within reach: depths along everything that brings people in, posts that are
//! filed, conversations. The result is that of one plain computation over all facts, whatever the
//! order, the grouping and the interruptions.

use super::build::{
    SeedOnFailure, Seeded, With, at, drain, follows, group, id_of, link, named_value, number,
    object, of_kind, robot, seed, select, text, unnamed,
};
use super::{Inspect, Make, Place};
use kittiwake_model::{
    Commit, Expansion, Follow, Identity, Link, Object, RobotFiling, Role, Standing, Table, Value,
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
    fn number(self) -> usize {
        match self {
            Self::User(number) | Self::Post(number) | Self::Comment(number) | Self::Tag(number) => {
                number
            }
        }
    }

    fn table(self) -> Table {
        match self {
            Self::User(_) => Table::Users,
            Self::Post(_) => Table::Statuses,
            Self::Comment(_) => Table::Comments,
            Self::Tag(_) => Table::Tags,
        }
    }
}

/// What a network calls its types.
#[derive(Debug, Clone, Copy)]
struct Kinds {
    user: &'static str,
    post: &'static str,
}

const USUAL: Kinds = Kinds {
    user: "user",
    post: "status",
};
/// Words from which nobody can guess what they mean before an object of the type is described.
const UNUSUAL: Kinds = Kinds {
    user: "account",
    post: "toot",
};

impl Default for Kinds {
    fn default() -> Self {
        USUAL
    }
}

impl Kinds {
    fn of(self, thing: Thing) -> &'static str {
        match thing {
            Thing::User(_) => self.user,
            Thing::Post(_) => self.post,
            Thing::Comment(_) => "comment",
            Thing::Tag(_) => "tag",
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
    /// Only lists tell of it: whose it is, what it answers.
    is_named: bool,
    /// Numbers of replies that were observed, each later than the one before.
    counts: Vec<i64>,
}

/// A small world that knows nothing of others. Many of them are told to one store at once: that
/// costs little, and they get into each other's way only where they must not.
#[derive(Debug, Default)]
struct World {
    number: usize,
    kinds: Kinds,
    /// Its things have two names each, and it is told only later that both are one.
    has_aliases: bool,
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
    fn random(number: usize, kinds: Kinds, random: &mut Seeded) -> Self {
        let mut world = Self {
            number,
            kinds,
            has_aliases: random.chance(2),
            users: 2 + random.below(8),
            tags: 2,
            ..Self::default()
        };
        let posts = 1 + random.below(10);
        for number in 0..posts {
            let post = world.random_post(number, posts, random);
            world.posts.push((!random.chance(10)).then_some(post));
        }
        for number in 0..random.below(5) {
            world.comments.push(Writing {
                author: (!random.chance(8)).then(|| random.below(world.users)),
                parent: (!random.chance(4)).then(|| match random.below(2) {
                    0 if number > 0 => Thing::Comment(random.below(number)),
                    _ => Thing::Post(random.below(posts)),
                }),
                status: random.chance(2).then(|| random.below(posts)),
                ..Writing::default()
            });
        }
        for _ in 0..random.below(world.users) {
            let (from, to) = (random.below(world.users), random.below(world.users));
            if from != to {
                world.follows.push((from, to));
            }
        }
        for _ in 0..random.below(2 * posts) {
            let link = world.random_link(random);
            world.links.push(link);
        }
        for _ in 0..=random.below(2) {
            let subject = match random.below(4) {
                0 => Thing::Post(random.below(posts)),
                1 => Thing::Tag(random.below(world.tags)),
                _ => Thing::User(random.below(world.users)),
            };
            world.seeds.push((subject, random.below(2) as u32));
        }
        world
    }

    fn random_post(&self, number: usize, posts: usize, random: &mut Seeded) -> Writing {
        let is_named = random.chance(6);
        Writing {
            author: (!random.chance(8)).then(|| random.below(self.users)),
            // Any post, so that circles occur; mostly an earlier one.
            parent: random.chance(2).then(|| {
                let end = if random.chance(4) { posts } else { number + 1 };
                Thing::Post(random.below(end))
            }),
            status: None,
            is_named,
            created_us: (random.chance(2) && !is_named).then(|| random.below(3) as i64),
            counts: (0..if is_named { 0 } else { random.below(3) })
                .map(|_| random.below(2) as i64)
                .collect(),
        }
    }

    fn random_link(&self, random: &mut Seeded) -> (&'static str, Thing, Thing) {
        let user = Thing::User(random.below(self.users));
        let from = Thing::Post(random.below(self.posts.len()));
        let to = Thing::Post(random.below(self.posts.len()));
        match random.below(6) {
            0 => ("repost", user, to),
            1 | 2 => ("repost", from, to),
            3 => ("like", user, to),
            4 => ("tag", from, Thing::Tag(random.below(self.tags))),
            _ => ("mention", from, user),
        }
    }

    fn id(&self, thing: Thing) -> String {
        let kind = self.kinds.of(thing);
        format!("w{:03} {kind}{:02}", self.number, thing.number())
    }

    fn canonical(&self, thing: Thing) -> Identity {
        of_kind(self.kinds.of(thing), &self.id(thing))
    }

    fn alias(&self, thing: Thing) -> String {
        (1_000 * self.number + thing.number()).to_string()
    }

    /// All that it is called.
    fn whole(&self, thing: Thing) -> Identity {
        if self.has_aliases {
            self.canonical(thing).local(&self.alias(thing))
        } else {
            self.canonical(thing)
        }
    }

    /// One of the ways in which an answer may name it.
    fn named(&self, thing: Thing, random: &mut Seeded) -> Identity {
        if self.has_aliases && random.chance(2) {
            unnamed(self.kinds.of(thing)).local(&self.alias(thing))
        } else {
            self.canonical(thing)
        }
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
                (_, Thing::Tag(_)) => {
                    self.bring_post(*from, *to);
                    Role::Authors
                }
                _ => continue,
            };
            if self.rules.brings.contains(&role) {
                self.step(*to, *from);
            }
        }
    }

    /// A post is as near as the tag that it is linked to.
    fn bring_post(&mut self, post: Thing, tag: Thing) {
        let is_wanted = self.rules.brings.contains(&Role::Posts) && self.is_near(tag);
        if let (Thing::Post(_), true, Some(depth)) = (post, is_wanted, self.reach(tag)) {
            self.lower(post, depth);
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
                None if writing.is_named => return None,
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

    /// The number of answers between a post and one that is near and above it.
    fn reply_distance(&self, post: Thing) -> Option<u32> {
        let mut here = post;
        for distance in 0..=self.world.posts.len() {
            if self.is_near(here) {
                return Some(distance as u32);
            }
            here = self.world.writing(here)?.parent?;
        }
        None
    }

    fn filed(&self) -> BTreeSet<String> {
        let mut filed = BTreeSet::new();
        for thing in self.world.all() {
            for filing in &self.rules.robots {
                let newest = self
                    .world
                    .writing(thing)
                    .and_then(|post| post.counts.last());
                if &*filing.kind != self.world.kinds.of(thing)
                    || (filing.unless_zero.is_some() && newest == Some(&0))
                {
                    continue;
                }
                let within = |distance: Option<u32>, steps: u32| {
                    matches!(thing, Thing::Post(_)) && distance.is_some_and(|it| it <= steps)
                };
                if self.is_near(thing)
                    || within(self.repost_distance(thing), filing.repost_steps)
                    || within(self.reply_distance(thing), filing.reply_steps)
                {
                    filed.insert(format!("{}: {}", self.world.id(thing), filing.robot));
                }
            }
        }
        filed
    }

    fn comment_rows(&self) -> BTreeSet<String> {
        let name = |thing: Option<Thing>| thing.map_or("-".to_owned(), |it| self.world.id(it));
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
                    self.world.id(comment),
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

fn random_rules(random: &mut Seeded) -> (Arc<Expansion>, Kinds) {
    let all_roles = [
        Role::Commenters,
        Role::Reposters,
        Role::Likers,
        Role::Authors,
        Role::Posts,
    ];
    let mut brings: Vec<Role> = all_roles
        .into_iter()
        .filter(|_| !random.chance(4))
        .collect();
    let mut kinds = USUAL;
    if random.chance(3) {
        kinds = UNUSUAL;
        // What is linked to a thing of a type that nobody knows yet could be anything.
        brings.retain(|role| !matches!(role, Role::Authors | Role::Posts));
    }
    let robots = vec![
        robot("profiles", kinds.user),
        RobotFiling {
            unless_zero: Some("replies_count".into()),
            ..robot("threads", kinds.post)
        },
        RobotFiling {
            begins_visited: true,
            repost_steps: random.below(4) as u32,
            reply_steps: random.below(4) as u32,
            ..robot("looks", kinds.post)
        },
        robot("tags", "tag"),
        robot("remarks", "comment"),
    ];
    let rules = Expansion {
        follow: Follow {
            following: random.chance(2),
            followers: random.chance(2),
        },
        depth_max: random.below(4) as u32,
        robots: robots.into_iter().filter(|_| !random.chance(5)).collect(),
        brings,
    };
    (Arc::new(rules), kinds)
}

/// One piece of news about a world: it may come in at any time.
enum News {
    Object(i64, Object),
    Link(Link),
    Seed(Identity, u32),
}

impl World {
    fn news(&self, random: &mut Seeded) -> Vec<News> {
        let mut news = Vec::new();
        for thing in self.all() {
            // The proof that both of its names are one.
            let proof = object(thing.table(), self.whole(thing), Vec::new());
            news.push(News::Object(5, proof));
            if let Some(writing) = self.writing(thing) {
                news.extend(self.news_of(thing, writing, random));
                news.extend(self.news_of_lists(thing, writing, random));
            }
        }
        for (source, target) in &self.follows {
            let source = self.named(Thing::User(*source), random);
            let target = self.named(Thing::User(*target), random);
            news.push(News::Link(follows(&source, &target)));
        }
        for (kind, from, to) in &self.links {
            let (from, to) = (self.named(*from, random), self.named(*to, random));
            news.push(News::Link(link(kind, &from, &to)));
        }
        for (subject, depth) in &self.seeds {
            news.push(News::Seed(self.named(*subject, random), *depth));
        }
        news
    }

    /// The observations of something written, each under one of its names: what it says, perhaps
    /// its time apart, and its numbers one by one.
    fn news_of(&self, thing: Thing, writing: &Writing, random: &mut Seeded) -> Vec<News> {
        let mut named = |thing: Thing| named_value(&self.named(thing, random));
        let mut author = Vec::new();
        if let Some(number) = writing.author {
            author.push(("author", named(Thing::User(number))));
        }
        let is_comment = matches!(thing, Thing::Comment(_));
        let mut fields = vec![("text", text("says"))];
        if let Some(parent) = writing.parent {
            let field = if is_comment { "parent" } else { "reply_to" };
            fields.push((field, named(parent)));
        }
        if let Some(status) = writing.status {
            fields.push(("status", named(Thing::Post(status))));
        }
        let mut times = Vec::new();
        if let Some(at_us) = writing.created_us {
            let clamped = false;
            times.push(("created_us", Value::Time { at_us, clamped }));
        }
        // A post whose author is known is known to answer somebody or not.
        if !is_comment || random.chance(2) {
            fields.append(&mut author);
        }
        if random.chance(2) {
            fields.append(&mut times);
        }
        let mut news = Vec::new();
        for (name, fields) in [("content", fields), ("card", author), ("times", times)] {
            if !fields.is_empty() && !writing.is_named {
                news.push((5, group(name, &fields)));
            }
        }
        for (place, count) in writing.counts.iter().enumerate() {
            let counts = group("counts", &[("replies_count", Value::Int(*count))]);
            news.push((10 + place as i64, counts));
        }
        news.into_iter()
            .map(|(at_us, group)| {
                let identity = self.named(thing, random);
                News::Object(at_us, object(thing.table(), identity, vec![group]))
            })
            .collect()
    }
}

impl World {
    /// What lists tell of a post: whose it is, what it answers.
    fn news_of_lists(&self, thing: Thing, writing: &Writing, random: &mut Seeded) -> Vec<News> {
        let author = writing.author.map(|number| ("author", Thing::User(number)));
        let parent = writing.parent.map(|parent| ("reply_to", parent));
        let mut news = Vec::new();
        for (field, other) in author.into_iter().chain(parent) {
            if matches!(thing, Thing::Post(_)) && (writing.is_named || random.chance(3)) {
                let value = named_value(&self.named(other, random));
                let content = group("content", &[(field, value)]);
                let named = Object {
                    standing: Standing::Named,
                    ..object(thing.table(), self.named(thing, random), vec![content])
                };
                news.push(News::Object(5 + random.below(10) as i64, named));
            }
        }
        news
    }
}

/// The news of all worlds in any order, as commits: some of several pieces, some without rules.
fn commits(worlds: &[World], random: &mut Seeded, rules: &Arc<Expansion>) -> Vec<Commit> {
    let mut news: Vec<News> = worlds.iter().flat_map(|world| world.news(random)).collect();
    random.shuffle(&mut news);
    let always_has_rules = random.chance(2);
    let mut commits: Vec<Commit> = Vec::new();
    for piece in news {
        let at_us = match piece {
            News::Object(at_us, _) => at_us,
            _ => 5,
        };
        let joins = random.chance(2) && commits.last().is_some_and(|last| last.at.0 == at_us);
        if !joins {
            let has_rules = always_has_rules || !random.chance(4);
            commits.push(Commit {
                expansion: has_rules.then(|| rules.clone()),
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

/// Tells everything in transactions of any size, with few steps each, and with interruptions.
async fn tell(
    place: &dyn Place,
    worlds: &[World],
    random: &mut Seeded,
    rules: &Arc<Expansion>,
) -> Box<dyn Inspect> {
    let steps = [3, 20, 2_000, 2_000][random.below(4)];
    let page_max = 1 + random.below(6);
    let mut store = place.open().unwrap();
    store.limit_steps(steps).await.unwrap();
    for page in commits(worlds, random, rules).chunks(page_max) {
        store.commit(page.to_vec()).await.unwrap();
        if random.chance(30) {
            drain(&*store, 20, rules).await;
        }
        if random.chance(200) {
            drop(store);
            store = place.open().unwrap();
            store.limit_steps(steps).await.unwrap();
        }
    }
    drain(&*store, 20, rules).await;
    store
}

async fn check(store: &dyn Inspect, worlds: &[World], rules: &Expansion) {
    let mut expected = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for world in worlds {
        let oracle = Oracle::new(world, rules);
        let depths = oracle.depths.iter();
        expected
            .0
            .extend(depths.map(|(thing, depth)| format!("{}: {depth}", world.id(*thing))));
        expected.1.extend(oracle.filed());
        expected.2.extend(oracle.comment_rows());
    }
    let sql = format!(
        "SELECT {} || ': ' || depth FROM subjects",
        id_of("subjects.key")
    );
    let depths = select(store, &sql).await;
    let depths: BTreeSet<String> = depths.into_iter().flatten().flatten().collect();
    same("depths", &depths, &expected.0);
    let sql = format!(
        "SELECT {} || ': ' || robot FROM frontier",
        id_of("frontier.subject")
    );
    let filed = select(store, &sql).await;
    let filed: BTreeSet<String> = filed.into_iter().flatten().flatten().collect();
    same("filed", &filed, &expected.1);
    same("comments", &comment_rows(store).await, &expected.2);
    assert_eq!(number(store, "SELECT count(*) FROM relax").await, 0);
}

/// Shows only what differs: the whole would fill pages.
fn same(what: &str, found: &BTreeSet<String>, expected: &BTreeSet<String>) {
    let surplus: Vec<_> = found.difference(expected).collect();
    let missing: Vec<_> = expected.difference(found).collect();
    assert!(
        surplus.is_empty() && missing.is_empty(),
        "{what}: too much {surplus:#?}, missing {missing:#?}"
    );
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
    for seed_number in 0..10_u64 {
        let _named = SeedOnFailure(seed_number);
        let mut random = Seeded::new(3_000 + seed_number);
        let (rules, kinds) = random_rules(&mut random);
        let worlds: Vec<World> = (0..60)
            .map(|number| World::random(number, kinds, &mut random))
            .collect();
        let place = make();
        let store = tell(&*place, &worlds, &mut random, &rules).await;
        check(&*store, &worlds, &rules).await;
    }
}

pub async fn rules_that_grow_reach_what_they_would_have_from_the_start(make: Make<'_>) {
    for seed_number in 0..4_u64 {
        let _named = SeedOnFailure(seed_number);
        let mut random = Seeded::new(4_000 + seed_number);
        let (rules, kinds) = random_rules(&mut random);
        let worlds: Vec<World> = (0..40)
            .map(|number| World::random(number, kinds, &mut random))
            .collect();
        let place = make();
        let store = tell(&*place, &worlds, &mut random, &rules).await;
        check(&*store, &worlds, &rules).await;
        // Deeper, in both directions, along everything, for more robots.
        let mut wider = (*rules).clone();
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
            Role::Posts,
        ];
        wider.robots.push(RobotFiling {
            repost_steps: 2,
            reply_steps: 3,
            ..robot("more", kinds.post)
        });
        let wider = Arc::new(wider);
        drain(&*store, 30, &wider).await;
        check(&*store, &worlds, &wider).await;
    }
}
