//! Posts of pages: what answers nothing, and what repeats such a post. What else a page wrote takes its place in the
//! list, but is not shown there.

use jiff::Timestamp;
use jiff::fmt::strtime;
use serde_json::{Value, json};

use super::Graph;
use super::fields::{Asked, Field};
use super::listing::{Listed, Order, Page, Place, Row};
use super::nodes::{Found, Node, date};
use super::refusal::Refused;
use crate::dialect::plain_text;
use crate::faults::Walked;
use crate::world::time::SECOND_US;
use crate::world::{Like, Link, Post};

const NEWEST: u64 = i64::MAX as u64;
const REACTIONS: [&str; 8] = [
    "NONE", "LIKE", "LOVE", "CARE", "WOW", "HAHA", "SAD", "ANGRY",
];
/// Fields that posts have and in which there is nothing here.
const EMPTY: [&str; 12] = [
    "backdated_time",
    "call_to_action",
    "child_attachments",
    "coordinates",
    "event",
    "icon",
    "picture",
    "place",
    "properties",
    "story_tags",
    "targeting",
    "to",
];

impl Graph<'_> {
    pub(super) fn is_page_post(&self, post: &Post) -> bool {
        match post.link {
            Link::None => true,
            Link::Reply(_) => false,
            Link::Repost(_) => self.original(post).is_some(),
        }
    }

    /// The post that a post repeats. Nobody can repeat a comment.
    fn original(&self, post: &Post) -> Option<Post> {
        let Link::Repost(target) = post.link else {
            return None;
        };
        let original = self.view.world.post_with_id(target.id());
        original.filter(|original| matches!(original.link, Link::None))
    }

    pub(super) fn post_with_id(&self, id: u64) -> Option<Post> {
        let post = self.view.world.visible_post(id, self.view.now)?;
        self.is_page_post(&post).then_some(post)
    }

    /// Everything that a page wrote, newest first.
    fn rows_of_posts(&self, user: u64, asked: &Asked<'_>) -> Result<Vec<Row<Post>>, Refused> {
        let time = |name: &'static str| {
            let text = asked.get(name).filter(|text| !text.is_empty());
            let time = text.map(|text| read_time(text).ok_or(Refused::InvalidParameter(name)));
            time.transpose()
        };
        let (since_s, until_s) = (time("since")?, time("until")?);
        let all = self.view.world.timeline_down(user, self.view.now, NEWEST);
        let within = |post: &Post| {
            let second = post.draft.at_us.div_euclid(SECOND_US);
            since_s.is_none_or(|since| second >= since)
                && until_s.is_none_or(|until| second <= until)
        };
        let row = |post: Post| Row {
            number: post.id(),
            is_shown: self.is_page_post(&post),
            item: post,
        };
        Ok(all.filter(within).map(row).collect())
    }

    fn page_of_posts(
        &self,
        user: u64,
        edge: &str,
        asked: &Asked<'_>,
    ) -> Result<Page<Post>, Refused> {
        let rows = self.rows_of_posts(user, asked)?;
        let place = Place {
            node: &self.page_id(user),
            edge,
            is_slow: self.is_slow(user),
        };
        self.page(&rows, Order::Falling, place, asked)
    }

    pub(super) fn posts(
        &self,
        user: u64,
        edge: &str,
        asked: &Asked<'_>,
    ) -> Result<Listed, Refused> {
        let page = self.page_of_posts(user, edge, asked)?;
        page.listed(|post| self.written_node(&Node::Post(*post), &asked.fields))
    }

    pub(super) fn posts_walked(&self, user: u64, asked: &Asked<'_>) -> Option<Walked> {
        let page = self.page_of_posts(user, "posts", asked).ok()?;
        Some(Walked::Posts {
            page: page.items,
            before: page.before,
        })
    }

    pub(super) fn post_field(&self, post: &Post, field: &Field<'_>) -> Found {
        let world = self.view.world;
        let now_us = self.view.now.at_us;
        let content = || world.content(post, now_us);
        let edited_us = || world.edited_us(post, now_us).unwrap_or(post.draft.at_us);
        let value = match field.name {
            "created_time" => json!(date(post.draft.at_us)),
            "updated_time" => json!(date(edited_us())),
            "message" if post.is_repost() => return Some(None),
            "message" => json!(plain_text(&content().html)),
            "message_tags" => return Some(self.tags(post)),
            "story" if !post.is_repost() => return Some(None),
            "story" => json!(format!("{} shared a post.", self.page_name(post.user()))),
            "from" => self.author(post.user()),
            "permalink_url" => json!(format!(
                "https://www.facebook.com/{}/posts/{}/",
                self.page_id(post.user()),
                post.id()
            )),
            "status_type" if post.is_repost() => json!("shared_story"),
            "status_type" if content().media.is_empty() => json!("mobile_status_update"),
            "status_type" => json!("added_photos"),
            "parent_id" => {
                let original = self.original(post);
                return Some(original.map(|original| json!(self.post_id(&original))));
            }
            "full_picture" => {
                let first = self.photos_of(post).into_iter().next();
                return Some(first.map(|photo| json!(self.picture(&photo))));
            }
            "attachments" => return Some(self.attachments(post)),
            "shares" => {
                let shares = self.shares(post);
                return Some((shares > 0).then(|| json!({ "count": shares })));
            }
            "privacy" => json!({ "value": "EVERYONE", "description": "Public" }),
            "is_expired" | "is_hidden" | "is_popular" => json!(false),
            "is_published" => json!(true),
            name => return EMPTY.contains(&name).then_some(None),
        };
        Some(Some(value))
    }

    fn shares(&self, post: &Post) -> usize {
        if post.is_repost() {
            return 0;
        }
        self.view.world.reposts(post, self.view.now).len()
    }

    /// Pages that a text names, as far as they are there.
    pub(super) fn tags(&self, post: &Post) -> Option<Value> {
        let content = self.view.world.content(post, self.view.now.at_us);
        let text = plain_text(&content.html);
        let mut tags = Vec::new();
        let present = content
            .mentions
            .into_iter()
            .filter(|&user| self.is_page(user));
        for user in present {
            let name = self.view.world.username(user, self.view.now.at_us);
            let begin = text.find(&format!("@{name}")).unwrap_or(0);
            tags.push(json!({
                "id": self.page_id(user),
                "name": self.page_name(user),
                "type": "page",
                "offset": text[..begin].chars().count(),
                "length": name.chars().count() + 1,
            }));
        }
        (!tags.is_empty()).then(|| json!(tags))
    }

    /// Reactions to a post or a comment. Only who speaks for a page sees whose they are.
    pub(super) fn reactions(
        &self,
        (node, post): (&str, &Post),
        edge: &str,
        asked: &Asked<'_>,
    ) -> Result<Listed, Refused> {
        let wanted = match asked.get("type") {
            None => None,
            Some(kind) if REACTIONS.contains(&kind) => Some(kind),
            Some(_) => return Err(Refused::InvalidParameter("type")),
        };
        let mut likes = if post.is_repost() {
            Vec::new()
        } else {
            self.view.world.likes_at(post, self.view.now)
        };
        likes.sort_unstable_by_key(|like| std::cmp::Reverse(like.id()));
        let kind = |like: &Like| reaction(self.view.world.account_id(like.user), post.id());
        let row = |like: Like| Row {
            number: like.id(),
            is_shown: self.speaks_for_a_page(),
            item: like,
        };
        let rows: Vec<Row<Like>> = likes
            .into_iter()
            .filter(|like| wanted.is_none_or(|wanted| wanted == kind(like)))
            .map(row)
            .collect();
        let place = Place {
            node,
            edge,
            is_slow: false,
        };
        let page = self.page(&rows, Order::Falling, place, asked)?;
        let listed = page.listed(|like| {
            let mut author = self.author(like.user);
            author["type"] = json!(kind(like));
            Ok(author)
        })?;
        let mut summary = json!({ "total_count": rows.len() });
        if asked.get("summary") != Some("total_count") {
            summary["viewer_reaction"] = json!("NONE");
        }
        Ok(listed.with_summary(asked, summary))
    }
}

/// Most who react like it.
const fn reaction(account_id: u64, post_id: u64) -> &'static str {
    match account_id.wrapping_add(post_id) % 16 {
        0 | 1 => "LOVE",
        2 => "CARE",
        3 => "WOW",
        4 => "HAHA",
        5 => "SAD",
        6 => "ANGRY",
        _ => "LIKE",
    }
}

/// Seconds since 1970, or a date with a time.
fn read_time(text: &str) -> Option<i64> {
    if let Ok(second) = text.parse() {
        return Some(second);
    }
    let read: Result<Timestamp, _> = text.parse();
    let read = read.ok().or_else(|| {
        let parts = strtime::parse("%Y-%m-%dT%H:%M:%S%z", text).ok()?;
        parts.to_timestamp().ok()
    });
    Some(read?.as_second())
}

#[cfg(test)]
mod tests {
    use super::read_time;

    #[test]
    fn times_are_read_in_every_form() {
        for text in [
            "1625428258",
            "2021-07-04T19:50:58+0000",
            "2021-07-04T19:50:58Z",
        ] {
            assert_eq!(read_time(text), Some(1_625_428_258), "{text}");
        }
        assert_eq!(read_time("yesterday"), None);
    }
}
