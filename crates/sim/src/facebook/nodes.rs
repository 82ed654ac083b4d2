//! What has an id: how ids are made and read, and how a node is written.
//!
//! A page has a number, a post is `PAGE_POST`, a comment `POST_COMMENT`. Albums and photos have the numbers of what they
//! are made from, with a digit before them.

use serde_json::{Map, Value};

use super::Graph;
use super::comments::Comment;
use super::fields::Field;
use super::photos::{Album, Photo};
use super::refusal::Refused;
use crate::world::{Post, ids, time};

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Page,
    Post,
    Comment,
    Album,
    Photo,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Page => "Page",
            Self::Post => "Post",
            Self::Comment => "Comment",
            Self::Album => "Album",
            Self::Photo => "Photo",
        }
    }

    /// What is sent to whoever names no fields.
    const fn usual_fields(self) -> &'static [&'static str] {
        match self {
            Self::Page => &["name", "id"],
            Self::Post => &["created_time", "message", "story", "id"],
            Self::Comment => &["created_time", "from", "message", "id"],
            Self::Album | Self::Photo => &["created_time", "name", "id"],
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    Page(u64),
    Post(Post),
    Comment(Comment),
    Album(Album),
    Photo(Photo),
}

/// A field that a node has, even if there is nothing in it, or none of that name.
pub(super) type Found = Option<Option<Value>>;

impl Node {
    pub(super) const fn kind(&self) -> Kind {
        match self {
            Self::Page(_) => Kind::Page,
            Self::Post(_) => Kind::Post,
            Self::Comment(_) => Kind::Comment,
            Self::Album(_) => Kind::Album,
            Self::Photo(_) => Kind::Photo,
        }
    }
}

/// `2019-04-17T03:18:30+0000`
pub(super) fn date(at_us: i64) -> String {
    time::iso_s(at_us).replace('Z', "+0000")
}

impl Graph<'_> {
    pub(super) fn page_id(&self, user: u64) -> String {
        self.view.world.account_id(user).to_string()
    }

    pub(super) fn post_id(&self, post: &Post) -> String {
        format!("{}_{}", self.page_id(post.user()), post.id())
    }

    pub(super) fn id(&self, node: &Node) -> String {
        match node {
            Node::Page(user) => self.page_id(*user),
            Node::Post(post) => self.post_id(post),
            Node::Comment(comment) => comment.id(),
            Node::Album(album) => self.album_id(album),
            Node::Photo(photo) => self.photo_id(photo),
        }
    }

    /// A node by its id or name.
    pub(super) fn node(&self, id: &str) -> Result<Node, Refused> {
        if id == "me" {
            return self.owner().map(Node::Page).ok_or(Refused::NobodyAsks);
        }
        let is_number = |letter: char| letter.is_ascii_digit() || letter == '_';
        if !id.chars().all(is_number) {
            let now_us = self.view.now.at_us;
            let user = self.view.world.user_named(&id.to_lowercase(), now_us);
            let user = user.filter(|&user| self.is_page(user));
            return user
                .map(Node::Page)
                .ok_or_else(|| Refused::NoSuchAlias(id.to_owned()));
        }
        let found = match id.split_once('_') {
            Some((first, second)) => self.written(first, second),
            None => self.numbered(id),
        };
        found.ok_or_else(|| Refused::Missing(id.to_owned()))
    }

    pub(super) fn is_page(&self, user: u64) -> bool {
        self.view.world.is_active(user, self.view.now)
    }

    fn numbered(&self, id: &str) -> Option<Node> {
        let user = ids::parse(id).and_then(|id| self.view.world.user_with_id(id));
        if let Some(user) = user {
            return self.is_page(user).then_some(Node::Page(user));
        }
        let album = self.album_with_id(id).map(Node::Album);
        album.or_else(|| self.photo_with_id(id).map(Node::Photo))
    }

    /// A post, or a comment, also with the page before it.
    fn written(&self, first: &str, second: &str) -> Option<Node> {
        if let Some((post, comment)) = second.split_once('_') {
            let Node::Post(_) = self.written(first, post)? else {
                return None;
            };
            return self.comment_with_id(post, comment).map(Node::Comment);
        }
        let user = ids::parse(first).and_then(|id| self.view.world.user_with_id(id));
        if let Some(user) = user {
            let post = self.post_with_id(ids::parse(second)?)?;
            return (post.user() == user).then_some(Node::Post(post));
        }
        self.comment_with_id(first, second).map(Node::Comment)
    }

    /// A node with the fields that were asked for, and always its id.
    pub(super) fn written_node(&self, node: &Node, fields: &[Field<'_>]) -> Result<Value, Refused> {
        let usual: Vec<Field<'_>>;
        let fields = if fields.is_empty() {
            let names = node.kind().usual_fields().iter();
            usual = names.map(|name| Field::plain(name)).collect();
            &usual
        } else {
            fields
        };
        let mut written = Map::new();
        for field in fields {
            if let Some(value) = self.field(node, field)? {
                written.insert(field.label().to_owned(), value);
            }
        }
        written.insert("id".to_owned(), self.id(node).into());
        Ok(Value::Object(written))
    }

    fn field(&self, node: &Node, field: &Field<'_>) -> Result<Option<Value>, Refused> {
        if field.name == "id" {
            return Ok(None);
        }
        if let Some(list) = self.nested(node, field)? {
            return Ok(Some(list));
        }
        let found = match node {
            Node::Page(user) => self.page_field(*user, field),
            Node::Post(post) => self.post_field(post, field),
            Node::Comment(comment) => self.comment_field(comment, field),
            Node::Album(album) => self.album_field(album, field),
            Node::Photo(photo) => self.photo_field(photo, field),
        };
        found.ok_or_else(|| Refused::NoSuchField(field.name.to_owned(), node.kind()))
    }
}
