//! The ground truth at one time, straight from the world, as JSON lines.
//!
//! Each line ends with `_after`, the token from which the next page goes on.

use std::str::FromStr;

use serde::Serialize;
use serde_json::{Value, json};

use crate::fediverse::Instance;
use crate::world::time::{DAY_US, iso_day};
use crate::world::{Draft, Link, Moment, Post, Standing, World};

const LINES_DEFAULT: usize = 1_000;
const LINES_MAX: usize = 10_000;

/// A table of the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Users,
    UserRelations,
    Statuses,
    Comments,
    Tags,
    /// Who likes what.
    Likes,
    /// Who reposted what.
    Reposters,
    /// Who shows which tags on the profile.
    UserTags,
    /// Which thread every reply is in, whether or not the rest of it is still there.
    Threads,
    /// The instances, where there are several.
    Hosts,
}

impl FromStr for Table {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "users" => Ok(Self::Users),
            "user_relations" => Ok(Self::UserRelations),
            "statuses" => Ok(Self::Statuses),
            "comments" => Ok(Self::Comments),
            "tags" => Ok(Self::Tags),
            "likes" => Ok(Self::Likes),
            "reposters" => Ok(Self::Reposters),
            "user_tags" => Ok(Self::UserTags),
            "threads" => Ok(Self::Threads),
            "hosts" => Ok(Self::Hosts),
            _ => Err(()),
        }
    }
}

/// Where a page begins: after `item` of `user`, or with the user after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct After {
    user: u64,
    item: u64,
}

impl FromStr for After {
    type Err = ();

    fn from_str(token: &str) -> Result<Self, ()> {
        let (user, item) = token.split_once('-').ok_or(())?;
        let number = |text: &str| text.parse().map_err(|_| ());
        Ok(Self {
            user: number(user)?,
            item: number(item)?,
        })
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TruthPage<'a> {
    pub(crate) table: Table,
    pub(crate) after: Option<&'a str>,
    pub(crate) limit: Option<u64>,
    /// None where everybody is on one server.
    pub(crate) instances: &'a [&'a Instance],
    /// Only what these tell of their own people, by the numbers of the instances.
    pub(crate) asked_hosts: Option<&'a [bool]>,
    pub(crate) now: Moment<'a>,
}

/// A page of JSON lines; none if the token cannot be read.
pub(crate) fn page(world: &World, asked: TruthPage<'_>) -> Option<Vec<u8>> {
    let limit = asked
        .limit
        .map_or(LINES_DEFAULT, |limit| (limit as usize).min(LINES_MAX));
    let after: Option<After> = match asked.after {
        Some(token) => Some(token.parse().ok()?),
        None => None,
    };
    let teller = Teller {
        world,
        now: asked.now,
        instances: asked.instances,
        asked_hosts: asked.asked_hosts,
    };
    let mut lines = Lines {
        body: Vec::new(),
        left: limit,
    };
    if asked.table == Table::Tags {
        let first = after.map_or(0, |after| after.item as usize + 1);
        for (place, name) in world
            .used_tags(asked.now)
            .into_iter()
            .enumerate()
            .skip(first)
        {
            lines.push(&json!({ "name": name, "_after": format!("0-{place}") }));
        }
        return Some(lines.body);
    }
    if asked.table == Table::Hosts {
        let first = after.map_or(0, |after| after.item as usize + 1);
        for instance in asked.instances.iter().skip(first) {
            lines.push(&teller.host(instance));
        }
        return Some(lines.body);
    }
    let first_user = after.map_or(0, |after| after.user);
    for user in first_user..world.users() {
        if lines.is_full() {
            break;
        }
        let done = after
            .filter(|after| after.user == user)
            .map(|after| after.item);
        match asked.table {
            Table::Users if done.is_none() && teller.is_told(user) => {
                lines.push(&teller.user(user));
            }
            Table::UserRelations => teller.relations(user, done, &mut lines),
            Table::Statuses => teller.posts(user, done, &mut lines, Teller::status),
            Table::Comments => teller.posts(user, done, &mut lines, Teller::comment),
            Table::Reposters => teller.posts(user, done, &mut lines, Teller::reposter),
            Table::Threads => teller.posts(user, done, &mut lines, Teller::thread),
            Table::Likes => teller.likes(user, done, &mut lines),
            Table::UserTags => teller.user_tags(user, done, &mut lines),
            Table::Users | Table::Tags | Table::Hosts => {}
        }
    }
    Some(lines.body)
}

/// Lines up to a limit.
struct Lines {
    body: Vec<u8>,
    left: usize,
}

impl Lines {
    const fn is_full(&self) -> bool {
        self.left == 0
    }

    fn push(&mut self, line: &impl Serialize) {
        if self.is_full() {
            return;
        }
        let length = self.body.len();
        if serde_json::to_writer(&mut self.body, line).is_err() {
            self.body.truncate(length);
            return;
        }
        self.body.push(b'\n');
        self.left -= 1;
    }
}

struct Teller<'a> {
    world: &'a World,
    now: Moment<'a>,
    instances: &'a [&'a Instance],
    asked_hosts: Option<&'a [bool]>,
}

impl Teller<'_> {
    fn uri(&self, user: u64) -> String {
        self.world.account_uri(user)
    }

    fn post_uri(&self, post: &Post) -> String {
        self.world.status_uri(post)
    }

    /// What replies and reposts point at is never itself a repost.
    fn target_uri(&self, target: Draft) -> String {
        self.post_uri(&Post {
            draft: target,
            link: Link::None,
        })
    }

    /// Somebody's home, where there are several.
    fn home(&self, user: u64) -> Option<&Instance> {
        self.instances.get(self.world.home(user)).copied()
    }

    /// Whether somebody's home is asked and can be relied on.
    fn is_told(&self, user: u64) -> bool {
        let (Some(asked), Some(home)) = (self.asked_hosts, self.home(user)) else {
            return true;
        };
        asked[home.number] && home.is_sound()
    }

    /// Whether nobody is shown somebody's lists.
    fn hides_lists(&self, user: u64) -> bool {
        self.world.hides_lists(user)
            || self
                .home(user)
                .is_some_and(|home| home.software.hides_lists(self.world, user))
    }

    fn host(&self, instance: &Instance) -> Value {
        json!({
            "host": instance.host(),
            "software": instance.software,
            "version": instance.software.version(),
            "people": self.world.people_of(instance.number),
            "trouble": instance.trouble,
            "needs_token": instance.software.is_closed(),
            "_after": format!("0-{}", instance.number),
        })
    }

    fn user(&self, user: u64) -> Value {
        let mut row = self.user_of_world(user);
        if let Some(home) = self.home(user) {
            let username = row["username"].as_str().unwrap_or_default();
            row["acct"] = json!(format!("{username}@{}", home.host()));
            row["host"] = json!(home.host());
            row["hides_lists"] = json!(self.hides_lists(user));
            row["needs_token"] = json!(home.software.is_closed());
            row["trouble"] = json!(home.trouble);
            row["lie"] = json!(home.lie_of(self.world, user));
            let moved_to = self.world.moved_to(user, self.now);
            row["moved_to"] = json!(moved_to.map(|other| self.uri(other)));
        }
        if let Some(from_us) = self.world.habits_from_us() {
            let habit = self.world.habit(user);
            row["habit"] = json!(habit);
            row["habit_from_us"] = json!(habit.map(|_| from_us));
        }
        row
    }

    fn user_of_world(&self, user: u64) -> Value {
        let world = self.world;
        let standing = world.standing(user, self.now);
        let is_banned = standing != Standing::Active;
        let username = world.username(user, self.now.at_us);
        let counts = world.counts(user, self.now);
        let traits = world.traits(user);
        let wishes = world.wishes(user);
        let profile = (!is_banned).then(|| world.profile(user, self.now.at_us));
        let (display_name, note) = profile.map_or_else(Default::default, |profile| {
            (profile.display_name, profile.note_html)
        });
        json!({
            "id": self.uri(user),
            "local_id": world.local_account_id(world.home(user), user),
            "acct": username,
            "username": username,
            "display_name": display_name,
            "url": world.account_url(user, self.now.at_us),
            "created_us": traits.created_day * DAY_US,
            "followers": counts.followers,
            "following": counts.following,
            "statuses": counts.statuses,
            "bot": traits.is_bot && !is_banned,
            "locked": traits.is_locked && !is_banned,
            "avatar": traits.has_avatar && !is_banned,
            "note": note,
            "discoverable": if is_banned { Some(false) } else { traits.discoverable },
            "indexable": wishes.is_indexable && !is_banned,
            "noindex": wishes.is_noindex,
            "hide_collections": wishes.hide_collections,
            "last_status_at": counts.last_post_day.map(iso_day),
            "suspended": is_banned,
            "gone": standing == Standing::Gone,
            // Found by the beginning of the name; everybody is found by the whole handle.
            "searchable": !is_banned && world.is_sampled(user),
            "_after": format!("{user}-0"),
        })
    }

    /// Edges in the order of their ids, so that a page can go on after one of them.
    fn relations(&self, user: u64, done: Option<u64>, lines: &mut Lines) {
        let mut edges = self.world.following_at(user, self.now);
        edges.reverse();
        for edge in edges
            .iter()
            .filter(|edge| done.is_none_or(|done| edge.id > done))
        {
            let in_following = !self.hides_lists(edge.source);
            let in_followers = !self.hides_lists(edge.target);
            let is_shown = (in_following && self.is_told(edge.source))
                || (in_followers && self.is_told(edge.target));
            if self.asked_hosts.is_some() && !is_shown {
                continue;
            }
            lines.push(&json!({
                "source": self.uri(edge.source),
                "target": self.uri(edge.target),
                // Which of the two lists show it; neither may.
                "in_following": in_following,
                "in_followers": in_followers,
                "_after": format!("{user}-{}", edge.id),
            }));
        }
    }

    fn posts(
        &self,
        user: u64,
        done: Option<u64>,
        lines: &mut Lines,
        line: impl Fn(&Self, &Post) -> Option<Value>,
    ) {
        for post in self.world.timeline_up(user, self.now, done.unwrap_or(0)) {
            if lines.is_full() {
                return;
            }
            if let Some(mut value) = line(self, &post) {
                value["_after"] = json!(format!("{user}-{}", post.id()));
                lines.push(&value);
            }
        }
    }

    fn status(&self, post: &Post) -> Option<Value> {
        if !self.is_told(post.user()) {
            return None;
        }
        let world = self.world;
        let content = world.content(post, self.now.at_us);
        let counts = world.reaction_counts(post, self.now);
        let parent = world.parent(post, self.now);
        let repost_of = match post.link {
            Link::Repost(target) => Some(self.target_uri(target)),
            Link::None | Link::Reply(_) => None,
        };
        Some(json!({
            "id": self.post_uri(post),
            "local_id": world.local_item_id(world.home(post.user()), post.id()),
            "author": self.uri(post.user()),
            "created_us": post.draft.at_us,
            "edited_us": world.edited_us(post, self.now.at_us),
            "content": content.html,
            "language": content.language,
            "visibility": content.visibility,
            "sensitive": content.is_sensitive,
            "spoiler_text": content.spoiler_text,
            "reply_to": parent.map(|parent| self.target_uri(parent)),
            "repost_of": repost_of,
            "url": world.status_url(post, self.now.at_us),
            "replies": counts.replies,
            "reposts": counts.reposts,
            "likes": counts.likes,
            "tags": content.tags,
            "mentions": content.mentions.iter().map(|&user| self.uri(user)).collect::<Vec<_>>(),
            "media": content.media.len(),
            "in_tag_timelines": world.is_in_tag_timelines(post),
            "searchable": world.is_searchable(post, self.now.at_us),
        }))
    }

    /// A reply, also one whose parent is gone.
    fn thread(&self, post: &Post) -> Option<Value> {
        let Link::Reply(target) = post.link else {
            return None;
        };
        if !self.is_told(post.user()) {
            return None;
        }
        let above = self.world.above(post);
        let beginning = above.last().copied().unwrap_or(*post);
        let between = above.split_last().map_or(&[][..], |(_, between)| between);
        let between: Vec<String> = between.iter().map(|post| self.post_uri(post)).collect();
        Some(json!({
            "status": self.post_uri(post),
            "parent": self.target_uri(target),
            "parent_shown": self.world.is_draft_visible(&target, self.now),
            "beginning": self.post_uri(&beginning),
            "beginning_shown": self.world.is_visible(&beginning, self.now),
            "between": between,
        }))
    }

    fn reposter(&self, post: &Post) -> Option<Value> {
        let Link::Repost(target) = post.link else {
            return None;
        };
        if !self.is_told(post.user()) && !self.is_told(target.user) {
            return None;
        }
        Some(json!({
            "user": self.uri(post.user()),
            "status": self.target_uri(target),
        }))
    }

    fn likes(&self, user: u64, done: Option<u64>, lines: &mut Lines) {
        for (day, place, target) in self.world.liked_by(user, self.now) {
            // A day has at most a handful of likes of one user.
            let item = ((day as u64) << 8) | place as u64;
            if lines.is_full() {
                return;
            }
            // Who likes a post is told by the home of the post.
            if done.is_none_or(|done| item > done) && self.is_told(target.user) {
                lines.push(&json!({
                    "user": self.uri(user),
                    "status": self.target_uri(target),
                    "_after": format!("{user}-{item}"),
                }));
            }
        }
    }

    fn user_tags(&self, user: u64, done: Option<u64>, lines: &mut Lines) {
        if !self.is_told(user) {
            return;
        }
        let tags = self.world.featured_tags(user, self.now);
        let counted = self.world.tag_uses(user, self.now, &tags);
        for (tag, tag_use) in tags.iter().zip(counted) {
            if done.is_none_or(|done| tag.id > done) {
                lines.push(&json!({
                    "user": self.uri(user),
                    "tag": tag.name,
                    "statuses": tag_use.statuses,
                    "last_status_at": tag_use.last_post_day.map(iso_day),
                    "_after": format!("{user}-{}", tag.id),
                }));
            }
        }
    }

    /// A reply whose parent can still be seen.
    fn comment(&self, post: &Post) -> Option<Value> {
        if !self.is_told(post.user()) {
            return None;
        }
        let parent = self.world.parent(post, self.now)?;
        let root = self.world.root(post, self.now);
        Some(json!({
            "status": self.post_uri(post),
            "parent": self.target_uri(parent),
            "root": self.post_uri(&root),
            "author": self.uri(post.user()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    const AT_US: i64 = 1_790_000_000_000_000;
    const ALL: [Table; 8] = [
        Table::Users,
        Table::UserRelations,
        Table::Statuses,
        Table::Comments,
        Table::Tags,
        Table::Likes,
        Table::Reposters,
        Table::UserTags,
    ];

    fn all(world: &World, table: Table, limit: u64) -> Vec<Value> {
        let mut found: Vec<Value> = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let asked = TruthPage {
                table,
                after: after.as_deref(),
                limit: Some(limit),
                instances: &[],
                asked_hosts: None,
                now: Moment::undisturbed(AT_US),
            };
            let body = String::from_utf8(page(world, asked).unwrap()).unwrap();
            let lines: Vec<Value> = body
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            let Some(last) = lines.last() else {
                return found;
            };
            after = Some(last["_after"].as_str().unwrap().to_owned());
            found.extend(lines);
        }
    }

    #[test]
    fn pages_of_any_size_give_the_same_truth() {
        let world = World::new(6, 120, AT_US).unwrap();
        for table in ALL {
            let at_once = all(&world, table, 10_000);
            assert!(!at_once.is_empty(), "{table:?}");
            assert_eq!(all(&world, table, 7), at_once, "{table:?}");
        }
    }

    #[test]
    fn the_counts_of_users_are_those_of_the_other_tables() {
        let world = World::new(6, 120, AT_US).unwrap();
        let relations = all(&world, Table::UserRelations, 10_000);
        let statuses = all(&world, Table::Statuses, 10_000);
        for user in all(&world, Table::Users, 10_000) {
            let count = |rows: &[Value], key: &str| {
                rows.iter().filter(|row| row[key] == user["id"]).count() as u64
            };
            assert_eq!(user["following"], count(&relations, "source"));
            assert_eq!(user["followers"], count(&relations, "target"));
            assert_eq!(user["statuses"], count(&statuses, "author"));
        }
    }

    #[test]
    fn the_counts_of_statuses_are_the_statuses_that_point_at_them() {
        let world = World::new(6, 400, AT_US).unwrap();
        let statuses = all(&world, Table::Statuses, 10_000);
        let ids: BTreeSet<&str> = statuses
            .iter()
            .map(|row| row["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids.len(), statuses.len());
        let sum = |key: &str| {
            statuses
                .iter()
                .map(|row| row[key].as_u64().unwrap())
                .sum::<u64>()
        };
        let pointing = |key: &str| {
            let targets = statuses.iter().filter_map(|row| row[key].as_str());
            targets
                .inspect(|target| assert!(ids.contains(target)))
                .count() as u64
        };
        assert_eq!(sum("replies"), pointing("reply_to"));
        assert_eq!(sum("reposts"), pointing("repost_of"));
        assert_eq!(
            all(&world, Table::Comments, 10_000).len() as u64,
            pointing("reply_to")
        );
        assert!(sum("likes") > 0 && pointing("repost_of") > 0);
        let pairs = |table| -> BTreeSet<String> {
            let rows = all(&world, table, 10_000);
            let pairs: BTreeSet<String> = rows
                .iter()
                .map(|row| format!("{} {}", row["user"], row["status"]))
                .collect();
            assert_eq!(pairs.len(), rows.len());
            pairs
        };
        assert_eq!(sum("likes"), pairs(Table::Likes).len() as u64);
        assert_eq!(sum("reposts"), pairs(Table::Reposters).len() as u64);
    }

    /// FNV-1a, which is the same on every machine and in every version.
    fn digest(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |digest, &byte| {
            (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Whoever compares two runs of two versions relies on it.
    #[test]
    fn a_world_without_habits_stays_what_it_has_always_been() {
        let world = World::new(6, 120, AT_US).unwrap();
        let digests = ALL.map(|table| {
            let rows = all(&world, table, 10_000);
            // The order of keys depends on what else is built with the program.
            let sorted: Vec<BTreeMap<&String, &Value>> = rows
                .iter()
                .map(|row| row.as_object().unwrap().iter().collect())
                .collect();
            (table, digest(&serde_json::to_vec(&sorted).unwrap()))
        });
        let expected = [
            (Table::Users, 18_349_284_345_684_869_275),
            (Table::UserRelations, 237_785_635_538_486_792),
            (Table::Statuses, 3_767_250_053_604_983_909),
            (Table::Comments, 17_690_070_855_276_832_524),
            (Table::Tags, 6_980_004_997_221_681_986),
            (Table::Likes, 10_930_884_283_333_238_265),
            (Table::Reposters, 5_583_366_650_240_463_371),
            (Table::UserTags, 3_907_937_199_641_681_882),
        ];
        assert_eq!(digests, expected);
    }

    #[test]
    fn a_token_that_is_none_is_refused() {
        let world = World::new(6, 10, AT_US).unwrap();
        let asked = TruthPage {
            table: Table::Users,
            after: Some("x"),
            limit: None,
            instances: &[],
            asked_hosts: None,
            now: Moment::undisturbed(AT_US),
        };
        assert_eq!(page(&world, asked), None);
    }
}
