//! What a crawl has to hold, worked out from the ground truth alone.
//!
//! This is the meaning of depth, robots and opt-outs written a second time, naively and over
//! everything at once: rounds of "who is crawled, what does that show, whom does it bring in" until
//! nothing changes.

use crate::support::Sim;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Rows = BTreeSet<Vec<String>>;

/// What was asked of a crawl.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) seed: &'a str,
    pub(crate) depth: u32,
    pub(crate) robots: &'a str,
    pub(crate) include_opted_out: bool,
}

pub(crate) const CORE_ROBOTS: &str = "relations,profiles,statuses";
pub(crate) const ALL_ROBOTS: &str = "all";

impl Plan<'_> {
    /// The arguments that ask for it.
    pub(crate) fn words(&self) -> String {
        let mut words = format!(
            "{} --depth {} --robots {}",
            self.seed, self.depth, self.robots
        );
        if self.include_opted_out {
            words.push_str(" --include-opted-out a-test");
        }
        words
    }

    fn has(&self, robot: &str) -> bool {
        self.robots == ALL_ROBOTS || self.robots.split(',').any(|name| name == robot)
    }
}

/// The ground truth of a frozen world.
pub(crate) struct Truth {
    pub(crate) users: BTreeMap<String, Value>,
    pub(crate) relations: Vec<(String, String)>,
    pub(crate) statuses: BTreeMap<String, Value>,
    likes: Vec<(String, String)>,
    reposters: Vec<(String, String)>,
    user_tags: Vec<(String, String)>,
    /// Replies by the post that they answer.
    replies: BTreeMap<String, Vec<String>>,
}

/// What a crawl has to hold.
#[derive(Default)]
pub(crate) struct Expected {
    pub(crate) users: Rows,
    pub(crate) relations: Rows,
    pub(crate) statuses: Rows,
    pub(crate) comments: Rows,
    pub(crate) tags: Rows,
    pub(crate) user_tags: Rows,
    pub(crate) links: Rows,
    /// Users within reach.
    pub(crate) reached: BTreeSet<String>,
    /// Those of them who ask not to be collected, and were left alone.
    pub(crate) opted_out: BTreeSet<String>,
    /// Posts that were asked about, by robot.
    pub(crate) asked: BTreeMap<&'static str, BTreeSet<String>>,
}

pub(crate) fn field(row: &Value, name: &str) -> String {
    match &row[name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(flag) => u8::from(*flag).to_string(),
        other => other.to_string(),
    }
}

fn count(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or(0)
}

fn list(row: &Value, name: &str) -> Vec<String> {
    let items = row[name].as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn pairs(rows: &[Value], first: &str, second: &str) -> Vec<(String, String)> {
    rows.iter()
        .map(|row| (field(row, first), field(row, second)))
        .collect()
}

impl Truth {
    pub(crate) fn read(sim: &Sim) -> Self {
        let by_id = |rows: Vec<Value>| -> BTreeMap<String, Value> {
            rows.into_iter()
                .map(|row| (field(&row, "id"), row))
                .collect()
        };
        let statuses = by_id(sim.truth("statuses"));
        let mut replies: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (id, status) in &statuses {
            let parent = field(status, "reply_to");
            if !parent.is_empty() {
                replies.entry(parent).or_default().push(id.clone());
            }
        }
        Self {
            users: by_id(sim.truth("users")),
            relations: pairs(&sim.truth("user_relations"), "source", "target"),
            likes: pairs(&sim.truth("likes"), "user", "status"),
            reposters: pairs(&sim.truth("reposters"), "user", "status"),
            user_tags: pairs(&sim.truth("user_tags"), "user", "tag"),
            statuses,
            replies,
        }
    }

    /// A user with relations in both directions, to begin with.
    pub(crate) fn seed(&self) -> String {
        let mut degrees: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for (source, target) in &self.relations {
            degrees.entry(source).or_default().0 += 1;
            degrees.entry(target).or_default().1 += 1;
        }
        let (id, _) = degrees
            .iter()
            .filter(|(id, _)| {
                let user = &self.users[**id];
                field(user, "suspended") != "1" && !is_opted_out(user) && !hides_lists(user)
            })
            .max_by_key(|(_, (following, followers))| following.min(followers))
            .expect("a world with relations");
        field(&self.users[*id], "acct")
    }

    pub(crate) fn local_id(&self, acct: &str) -> String {
        field(&self.users[&self.id_of(acct)], "local_id")
    }

    pub(crate) fn id_of(&self, acct: &str) -> String {
        let mut users = self.users.iter();
        let found = users.find(|(_, user)| field(user, "acct") == acct);
        found.expect("a user of that name").0.clone()
    }

    /// Canonical ids of objects that a crawl may know by their local ids alone, by (type, id).
    pub(crate) fn names_of_local_ids(&self) -> BTreeMap<(String, String), String> {
        let entries_of = |kind: &'static str, rows: &BTreeMap<String, Value>| -> Vec<_> {
            let entry = |(id, row): (&String, &Value)| {
                ((kind.to_owned(), field(row, "local_id")), id.clone())
            };
            rows.iter().map(entry).collect()
        };
        let mut names = entries_of("user", &self.users);
        names.extend(entries_of("status", &self.statuses));
        names.into_iter().collect()
    }

    fn author(&self, status: &str) -> Option<String> {
        Some(field(self.statuses.get(status)?, "author"))
    }

    /// The whole conversation around a post, without the post.
    fn conversation(&self, status: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut above = field(&self.statuses[status], "reply_to");
        while !above.is_empty() {
            let next = field(&self.statuses[&above], "reply_to");
            found.insert(above);
            above = next;
        }
        let mut below = vec![status.to_owned()];
        while let Some(next) = below.pop() {
            for reply in self.replies.get(&next).into_iter().flatten() {
                found.insert(reply.clone());
                below.push(reply.clone());
            }
        }
        found
    }

    /// The first post of a conversation, if every post on the way to it is known.
    fn root(&self, status: &str, known: &BTreeSet<String>) -> Option<String> {
        let mut at = status.to_owned();
        loop {
            if !known.contains(&at) {
                return None;
            }
            let above = field(&self.statuses[&at], "reply_to");
            if above.is_empty() {
                return Some(at);
            }
            at = above;
        }
    }

    /// What a crawl of this plan has to hold when it is over.
    pub(crate) fn expected(&self, plan: Plan<'_>) -> Expected {
        let mut depths = BTreeMap::from([(self.id_of(plan.seed), 0)]);
        loop {
            let seen = Seen::of(self, plan, &depths);
            let before = depths.clone();
            for (near, far) in seen.steps(self, plan) {
                let Some(depth) = depths.get(&near).copied() else {
                    continue;
                };
                let known = depths.get(&far).copied().unwrap_or(u32::MAX);
                if depth <= plan.depth && depth + 1 < known {
                    depths.insert(far, depth + 1);
                }
            }
            if depths == before {
                return seen.into_expected(self, plan, &depths);
            }
        }
    }

    pub(crate) fn user_row(&self, id: &str) -> Vec<String> {
        let user = &self.users[id];
        let names = [
            "id",
            "display_name",
            "url",
            "bot",
            "locked",
            "created_us",
            "followers",
            "following",
            "statuses",
        ];
        names.iter().map(|name| field(user, name)).collect()
    }

    pub(crate) fn status_row(&self, id: &str) -> Vec<String> {
        let status = &self.statuses[id];
        let names = [
            "id",
            "author",
            "created_us",
            "edited_us",
            "content",
            "language",
            "visibility",
            "sensitive",
            "spoiler_text",
            "reply_to",
            "repost_of",
            "replies",
            "reposts",
            "likes",
        ];
        names.iter().map(|name| field(status, name)).collect()
    }
}

pub(crate) fn is_opted_out(user: &Value) -> bool {
    user["noindex"] == true || user["indexable"] == false
}

fn hides_lists(user: &Value) -> bool {
    user["hide_collections"] == true
}

/// What is shown to a crawl that reaches users of these depths.
#[derive(Default)]
struct Seen {
    crawled: BTreeSet<String>,
    relations: BTreeSet<(String, String)>,
    statuses: BTreeSet<String>,
    likes: BTreeSet<(String, String)>,
    reposters: BTreeSet<(String, String)>,
    asked: BTreeMap<&'static str, BTreeSet<String>>,
}

impl Seen {
    fn of(truth: &Truth, plan: Plan<'_>, depths: &BTreeMap<String, u32>) -> Self {
        let reached = |id: &String| depths.get(id).is_some_and(|depth| *depth <= plan.depth);
        let is_crawled = |id: &String| {
            reached(id) && (plan.include_opted_out || !is_opted_out(&truth.users[id]))
        };
        let shows = |id: &String| is_crawled(id) && !hides_lists(&truth.users[id]);
        let mut seen = Self {
            crawled: depths.keys().filter(|id| is_crawled(id)).cloned().collect(),
            ..Self::default()
        };
        if plan.has("relations") {
            let relations = truth.relations.iter();
            let known = relations.filter(|(source, target)| shows(source) || shows(target));
            seen.relations = known.cloned().collect();
        }
        for (id, status) in &truth.statuses {
            if is_crawled(&field(status, "author")) {
                seen.statuses.insert(id.clone());
                // A repost shows the post it repeats.
                seen.statuses
                    .extend(Some(field(status, "repost_of")).filter(|id| !id.is_empty()));
            }
        }
        let answered = seen.ask(truth, plan, "comments", "replies", &is_crawled);
        for status in answered {
            seen.statuses.extend(truth.conversation(&status));
        }
        let reposted = seen.ask(truth, plan, "reposts", "reposts", &is_crawled);
        let liked = seen.ask(truth, plan, "likes", "likes", &is_crawled);
        let chosen = |all: &[(String, String)], asked: &BTreeSet<String>| -> BTreeSet<_> {
            let chosen = all.iter().filter(|(_, status)| asked.contains(status));
            chosen.cloned().collect()
        };
        seen.reposters = chosen(&truth.reposters, &reposted);
        seen.likes = chosen(&truth.likes, &liked);
        seen
    }

    /// The known posts of crawled users for which a robot has something to ask.
    fn ask(
        &mut self,
        truth: &Truth,
        plan: Plan<'_>,
        robot: &'static str,
        counted: &str,
        is_crawled: &impl Fn(&String) -> bool,
    ) -> BTreeSet<String> {
        if !plan.has(robot) {
            return BTreeSet::new();
        }
        let asked: BTreeSet<String> = self
            .statuses
            .iter()
            .filter(|id| {
                let status = &truth.statuses[*id];
                is_crawled(&field(status, "author")) && count(status, counted) > 0
            })
            .cloned()
            .collect();
        self.asked.insert(robot, asked.clone());
        asked
    }

    /// Who is one step from whom.
    fn steps(&self, truth: &Truth, plan: Plan<'_>) -> Vec<(String, String)> {
        let mut steps = Vec::new();
        for (source, target) in &self.relations {
            steps.push((source.clone(), target.clone()));
            steps.push((target.clone(), source.clone()));
        }
        for id in &self.statuses {
            let status = &truth.statuses[id];
            let author = field(status, "author");
            let parent = field(status, "reply_to");
            if plan.has("comments") && !parent.is_empty() {
                let above = [Some(parent), truth.root(id, &self.statuses)];
                for post in above.into_iter().flatten() {
                    // A post that was only named shows nobody.
                    if self.statuses.contains(&post) {
                        steps.extend(truth.author(&post).map(|near| (near, author.clone())));
                    }
                }
            }
            let original = field(status, "repost_of");
            if plan.has("reposts") && !original.is_empty() {
                steps.extend(truth.author(&original).map(|near| (near, author)));
            }
        }
        for (user, status) in &self.reposters {
            steps.extend(truth.author(status).map(|near| (near, user.clone())));
        }
        steps
    }

    fn into_expected(
        self,
        truth: &Truth,
        plan: Plan<'_>,
        depths: &BTreeMap<String, u32>,
    ) -> Expected {
        let mut users = BTreeSet::from([truth.id_of(plan.seed)]);
        for (source, target) in &self.relations {
            users.extend([source.clone(), target.clone()]);
        }
        users.extend(self.statuses.iter().filter_map(|id| truth.author(id)));
        let acted = self.likes.iter().chain(&self.reposters);
        users.extend(acted.map(|(user, _)| user.clone()));
        let reached: BTreeSet<String> = depths
            .iter()
            .filter(|(_, depth)| **depth <= plan.depth)
            .map(|(id, _)| id.clone())
            .collect();
        let user_tags: Vec<_> = truth
            .user_tags
            .iter()
            .filter(|(user, _)| plan.has("tags") && self.crawled.contains(user))
            .collect();
        let mut expected = Expected {
            users: users.iter().map(|id| truth.user_row(id)).collect(),
            relations: rows_of(&self.relations),
            statuses: self
                .statuses
                .iter()
                .map(|id| truth.status_row(id))
                .collect(),
            opted_out: reached.difference(&self.crawled).cloned().collect(),
            reached,
            asked: self.asked,
            ..Expected::default()
        };
        for (user, tag) in user_tags {
            let tag = tag.to_lowercase();
            expected.tags.insert(vec![tag.clone()]);
            expected.user_tags.insert(vec![user.clone(), tag]);
        }
        let mut link = |kind: &str, from: &str, to: &str| {
            let row = [kind, from, to].map(str::to_owned).to_vec();
            expected.links.insert(row);
        };
        for id in &self.statuses {
            let status = &truth.statuses[id];
            for tag in list(status, "tags") {
                expected.tags.insert(vec![tag.to_lowercase()]);
                link("tag", id, &tag.to_lowercase());
            }
            for user in list(status, "mentions") {
                link("mention", id, &user);
            }
            let original = field(status, "repost_of");
            if !original.is_empty() {
                link("repost", id, &original);
            }
            let parent = field(status, "reply_to");
            if !parent.is_empty() {
                let root = truth.root(id, &self.statuses).unwrap_or_default();
                let author = field(status, "author");
                let row = vec![id.clone(), root.clone(), parent, root, author];
                expected.comments.insert(row);
            }
        }
        for (user, status) in &self.likes {
            link("like", user, status);
        }
        for (user, status) in &self.reposters {
            link("repost", user, status);
        }
        expected
    }
}

fn rows_of(pairs: &BTreeSet<(String, String)>) -> Rows {
    pairs
        .iter()
        .map(|(first, second)| vec![first.clone(), second.clone()])
        .collect()
}
