//! Comments: what answers a post, in two levels. What answers a comment, at whatever depth, lies below the first one of
//! its thread. Comments of people whose accounts are closed to strangers are counted and not shown, nor what answers them.

use serde_json::{Value, json};

use super::Graph;
use super::fields::{Asked, Field};
use super::listing::{Listed, Order, Place, Row};
use super::nodes::{Found, Node, date};
use super::refusal::Refused;
use crate::dialect::plain_text;
use crate::world::{Link, Post, ThreadLimits, ids};

/// Fields that comments have and in which there is nothing here.
const EMPTY: [&str; 4] = ["attachment", "object", "admin_creator", "application"];
/// Everything below a post.
const WHOLE_THREAD: ThreadLimits = ThreadLimits {
    ancestors: usize::MAX,
    descendants: usize::MAX,
    depth: usize::MAX,
};

/// A comment and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Comment {
    pub(super) said: Post,
    /// What begins the thread; the comment itself, perhaps.
    thread: Post,
    post: Post,
}

impl Comment {
    pub(super) fn id(&self) -> String {
        format!("{}_{}", self.post.id(), self.said.id())
    }

    fn is_first(&self) -> bool {
        self.said.id() == self.thread.id()
    }

    fn parent(&self) -> Self {
        Self {
            said: self.thread,
            ..*self
        }
    }
}

impl Graph<'_> {
    pub(super) fn comment_with_id(&self, post: &str, comment: &str) -> Option<Comment> {
        let said = self
            .view
            .world
            .visible_post(ids::parse(comment)?, self.view.now)?;
        let above = self.view.world.ancestors(&said, self.view.now, usize::MAX);
        let beginning = *above.first()?;
        let is_below = matches!(beginning.link, Link::None) && beginning.id().to_string() == post;
        let comment = Comment {
            said,
            thread: above.get(1).copied().unwrap_or(said),
            post: beginning,
        };
        (is_below && self.is_shown(&comment)).then_some(comment)
    }

    fn is_shown(&self, comment: &Comment) -> bool {
        let is_open = |post: &Post| !self.view.world.traits(post.user()).is_locked;
        is_open(&comment.said) && is_open(&comment.thread)
    }

    fn below(&self, thread: Post, post: Post) -> Vec<Comment> {
        let answers = self
            .view
            .world
            .descendants(&thread, self.view.now, WHOLE_THREAD);
        let comment = |said| Comment { said, thread, post };
        answers.into_iter().map(comment).collect()
    }

    /// The comments under a post, of the first level or all in one list.
    fn comments_of_post(&self, post: &Post, is_stream: bool) -> Vec<Comment> {
        if post.is_repost() {
            return Vec::new();
        }
        let mut comments = Vec::new();
        for thread in self.view.world.replies(post, self.view.now) {
            comments.push(Comment {
                said: thread,
                thread,
                post: *post,
            });
            if is_stream {
                comments.extend(self.below(thread, *post));
            }
        }
        comments
    }

    pub(super) fn comments(
        &self,
        node: &Node,
        edge: &str,
        asked: &Asked<'_>,
    ) -> Result<Listed, Refused> {
        let is_stream = match asked.get("filter") {
            None | Some("toplevel") => false,
            Some("stream") => true,
            Some(_) => return Err(Refused::InvalidParameter("filter")),
        };
        let (order, order_name) = match asked.get("order") {
            None | Some("chronological" | "ranked") => (Order::Rising, "chronological"),
            Some("reverse_chronological") => (Order::Falling, "reverse_chronological"),
            Some(_) => return Err(Refused::InvalidParameter("order")),
        };
        let mut comments = match node {
            Node::Post(post) => self.comments_of_post(post, is_stream),
            Node::Comment(comment) if comment.is_first() => self.below(comment.said, comment.post),
            _ => Vec::new(),
        };
        comments.sort_unstable_by_key(|comment| comment.said.id());
        if order == Order::Falling {
            comments.reverse();
        }
        let row = |comment: Comment| Row {
            number: comment.said.id(),
            is_shown: self.is_shown(&comment),
            item: comment,
        };
        let rows: Vec<Row<Comment>> = comments.into_iter().map(row).collect();
        let place = Place {
            node: &self.id(node),
            edge,
            is_slow: false,
        };
        let page = self.page(&rows, order, place, asked)?;
        let listed =
            page.listed(|comment| self.written_node(&Node::Comment(*comment), &asked.fields))?;
        let summary = json!({
            "order": order_name,
            "total_count": rows.len(),
            "can_comment": true,
        });
        Ok(listed.with_summary(asked, summary))
    }

    pub(super) fn comment_field(&self, comment: &Comment, field: &Field<'_>) -> Found {
        let said = &comment.said;
        let value = match field.name {
            "created_time" => json!(date(said.draft.at_us)),
            "message" => {
                let content = self.view.world.content(said, self.view.now.at_us);
                json!(plain_text(&content.html))
            }
            "message_tags" => return Some(self.tags(said)),
            // Told to nobody but those who look after pages.
            "from" => {
                let author = || self.author(said.user());
                return Some(self.speaks_for_a_page().then(author));
            }
            "parent" => return Some(self.parent_field(comment, field)),
            "comment_count" if comment.is_first() => {
                json!(self.below(comment.said, comment.post).len())
            }
            "comment_count" => json!(0),
            "like_count" => json!(self.view.world.likes_at(said, self.view.now).len()),
            "permalink_url" => json!(format!(
                "https://www.facebook.com/{}/posts/{}/?comment_id={}",
                self.page_id(comment.post.user()),
                comment.post.id(),
                said.id()
            )),
            "is_hidden" | "is_private" | "user_likes" => json!(false),
            "can_comment" | "can_like" => json!(true),
            name => return EMPTY.contains(&name).then_some(None),
        };
        Some(Some(value))
    }

    fn parent_field(&self, comment: &Comment, field: &Field<'_>) -> Option<Value> {
        if comment.is_first() {
            return None;
        }
        let parent = Node::Comment(comment.parent());
        self.written_node(&parent, &field.fields).ok()
    }
}
