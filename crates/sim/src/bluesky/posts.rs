//! Posts, feeds and conversations.

use serde_json::{Value, json};

use super::names::{self, POST, REPOST};
use super::refusals::Refusal;
use super::{AppView, Page, paged};
use crate::answer::Answer;
use crate::dialect::{Heard, Shown, plain_text};
use crate::world::time::iso_ms;
use crate::world::{Draft, Link, Post};

const URIS_MAX: usize = 25;
/// Beyond every id.
const NO_BOUND: u64 = i64::MAX as u64;
const DEPTH_DEFAULT: u64 = 6;
const PARENTS_DEFAULT: u64 = 80;
const LEVELS_MAX: u64 = 1_000;

impl AppView<'_> {
    /// A visible post; reposts are no posts.
    pub(super) fn post(&self, uri: &str) -> Result<Post, Refusal> {
        if !uri.starts_with("at://") {
            return Err(Refusal::InvalidUri);
        }
        let (author, id) = names::post_of_uri(self.world, uri).ok_or(Refusal::PostNotFound)?;
        self.world
            .visible_post(id, self.now)
            .filter(|post| post.user() == author && !post.is_repost())
            .ok_or(Refusal::PostNotFound)
    }

    /// Posts, answers and reposts of a user, newest first.
    pub(super) fn feed(&self, user: u64) -> Vec<Post> {
        self.world.timeline_down(user, self.now, NO_BOUND).collect()
    }

    fn reference(&self, draft: &Draft) -> Value {
        let uri = names::uri(self.world, draft.user, POST, draft.id());
        json!({ "uri": uri, "cid": names::cid(draft.id()) })
    }

    /// What was written, with the places of names and tags in bytes.
    fn record(&self, post: &Post) -> Value {
        let content = self.world.content(post, self.now.at_us);
        let text = plain_text(&content.html);
        let mut facets = Vec::new();
        let mut from = 0;
        let mut facet = |word: String, feature: Value| {
            let Some(place) = text[from..].find(&word) else {
                return;
            };
            let begin = from + place;
            from = begin + word.len();
            facets.push(json!({
                "index": { "byteStart": begin, "byteEnd": from },
                "features": [feature],
            }));
        };
        for &user in &content.mentions {
            let name = self.world.username(user, self.now.at_us);
            let did = names::did(self.world, user);
            let feature = json!({ "$type": "app.bsky.richtext.facet#mention", "did": did });
            facet(format!("@{name}"), feature);
        }
        for tag in &content.tags {
            let feature = json!({ "$type": "app.bsky.richtext.facet#tag", "tag": tag });
            facet(format!("#{tag}"), feature);
        }
        let mut record = json!({
            "$type": POST,
            "text": text,
            "createdAt": iso_ms(post.draft.at_us),
        });
        if let Some(language) = content.language {
            record["langs"] = json!([language]);
        }
        if !facets.is_empty() {
            record["facets"] = json!(facets);
        }
        if let Link::Reply(parent) = post.link {
            record["reply"] = json!({
                "root": self.reference(&self.first_of(post)),
                "parent": self.reference(&parent),
            });
        }
        record
    }

    /// The first post of a conversation, deleted or not.
    fn first_of(&self, post: &Post) -> Draft {
        let mut current = *post;
        // Every parent is older than its reply, so this ends.
        while let Link::Reply(parent) = current.link {
            match self.world.post_with_id(parent.id()) {
                Some(found) => current = found,
                None => return parent,
            }
        }
        current.draft
    }

    pub(super) fn post_view(&self, post: &Post) -> Value {
        let counts = self.world.reaction_counts(post, self.now);
        json!({
            "uri": names::uri(self.world, post.user(), POST, post.id()),
            "cid": names::cid(post.id()),
            "author": self.profile_basic(post.user()),
            "record": self.record(post),
            "bookmarkCount": 0,
            "replyCount": counts.replies,
            "repostCount": counts.reposts,
            "likeCount": counts.likes,
            "quoteCount": 0,
            "indexedAt": iso_ms(post.draft.at_us),
            "labels": [],
        })
    }

    /// A post that stands beside another: what is not there any more is named all the same.
    fn neighbour(&self, draft: &Draft) -> Value {
        match self.world.visible_post(draft.id(), self.now) {
            Some(post) => {
                let mut view = self.post_view(&post);
                view["$type"] = json!("app.bsky.feed.defs#postView");
                view
            }
            None => json!({
                "$type": "app.bsky.feed.defs#notFoundPost",
                "uri": names::uri(self.world, draft.user, POST, draft.id()),
                "notFound": true,
            }),
        }
    }

    fn feed_item(&self, post: &Post) -> Value {
        let Link::Repost(target) = post.link else {
            let mut item = json!({ "post": self.post_view(post) });
            if let Link::Reply(parent) = post.link {
                item["reply"] = json!({
                    "root": self.neighbour(&self.first_of(post)),
                    "parent": self.neighbour(&parent),
                });
            }
            return item;
        };
        // A repost is only shown as long as what it repeats is.
        let Some(original) = self.world.visible_post(target.id(), self.now) else {
            return Value::Null;
        };
        json!({
            "post": self.post_view(&original),
            "reason": {
                "$type": "app.bsky.feed.defs#reasonRepost",
                "by": self.profile_basic(post.user()),
                "uri": names::uri(self.world, post.user(), REPOST, post.id()),
                "cid": names::cid(post.id()),
                "indexedAt": iso_ms(post.draft.at_us),
            },
        })
    }

    pub(super) fn author_feed(&self, heard: &Heard, actor: &str) -> Result<Answer, Refusal> {
        let user = self.actor(actor)?;
        let page = Page::read(heard)?;
        let mut feed = self.feed(user);
        if heard.params.get("filter") == Some("posts_no_replies") {
            feed.retain(|post| !matches!(post.link, Link::Reply(_)));
        }
        let (part, next) = page.cut(self, &feed, Post::id);
        let items: Vec<Value> = part
            .items
            .iter()
            .map(|post| self.feed_item(post))
            .filter(|item| !item.is_null())
            .collect();
        Ok(paged(json!({ "feed": items }), next, part.spoilt))
    }

    pub(super) fn posts_by_uris(&self, uris: &[String]) -> Result<Answer, Refusal> {
        if uris.len() > URIS_MAX {
            return Err(Refusal::TooManyUris);
        }
        let mut posts = Vec::new();
        for uri in uris {
            match self.post(uri) {
                Ok(post) => posts.push(self.post_view(&post)),
                Err(Refusal::InvalidUri) => return Err(Refusal::InvalidUri),
                Err(_) => {}
            }
        }
        Ok(Answer::json(&json!({ "posts": posts })))
    }

    pub(super) fn thread(&self, heard: &Heard, uri: &str) -> Result<Answer, Refusal> {
        let post = self.post(uri)?;
        let levels = |name, otherwise| {
            let asked = heard.params.number(name).unwrap_or(otherwise);
            asked.min(LEVELS_MAX) as usize
        };
        let mut thread = self.thread_below(&post, levels("depth", DEPTH_DEFAULT));
        let ancestors = levels("parentHeight", PARENTS_DEFAULT);
        let above = self.world.ancestors(&post, self.now, ancestors);
        if let Some(parents) = self.thread_above(&above) {
            thread["parent"] = parents;
        } else if let Link::Reply(parent) = post.link {
            thread["parent"] = self.neighbour(&parent);
        }
        Ok(Answer::json(&json!({ "thread": thread })))
    }

    fn thread_node(&self, post: &Post) -> Value {
        json!({
            "$type": "app.bsky.feed.defs#threadViewPost",
            "post": self.post_view(post),
            "threadContext": {},
        })
    }

    /// The posts above, each within the next one below it.
    fn thread_above(&self, above: &[Post]) -> Option<Value> {
        let mut nodes = above.iter();
        let first = nodes.next()?;
        let mut node = self.thread_node(first);
        if let Link::Reply(parent) = first.link {
            node["parent"] = self.neighbour(&parent);
        }
        for post in nodes {
            let mut next = self.thread_node(post);
            next["parent"] = node;
            node = next;
        }
        Some(node)
    }

    /// Conversations of the world are a few levels deep.
    fn thread_below(&self, post: &Post, depth: usize) -> Value {
        let mut node = self.thread_node(post);
        if depth > 0 {
            let replies = self.world.replies(post, self.now);
            let below = replies
                .iter()
                .map(|reply| self.thread_below(reply, depth - 1));
            node["replies"] = json!(below.collect::<Vec<_>>());
        }
        node
    }

    /// Posts with some words, newest first, for whoever is logged in.
    pub(super) fn search_posts(&self, heard: &Heard, words: &str) -> Result<Answer, Refusal> {
        match self.shown {
            Shown::Good => {}
            Shown::Narrow => return Err(Refusal::BadScope),
            Shown::Nothing | Shown::Wrong | Shown::Revoked => {
                return Err(Refusal::NoSearchForStrangers);
            }
        }
        let page = Page::read(heard)?;
        let tag = heard.params.get("tag").map(str::to_lowercase);
        let words = words.trim_start_matches('#').to_lowercase();
        let is_found = |post: &Post| {
            let content = self.world.content(post, self.now.at_us);
            match &tag {
                Some(tag) => content
                    .tags
                    .iter()
                    .any(|known| known.to_lowercase() == *tag),
                None => plain_text(&content.html).to_lowercase().contains(&words),
            }
        };
        let found: Vec<Post> = self
            .world
            .searchable_posts(self.now)
            .filter(is_found)
            .collect();
        let (part, next) = page.cut(self, &found, Post::id);
        let posts: Vec<Value> = part.items.iter().map(|post| self.post_view(post)).collect();
        let body = json!({ "hitsTotal": found.len(), "posts": posts });
        Ok(paged(body, next, part.spoilt))
    }
}
