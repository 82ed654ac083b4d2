//! What stands beside the objects that were asked for: only what expansions name, each once.

use serde_json::{Map, Value, json};

use super::ask::Ask;
use super::identity::post_id;
use super::post::media_object;
use super::problem::Named;
use crate::answer::Answer;
use crate::bill::Thing;
use crate::dialect::View;
use crate::spoil::Spoil;
use crate::world::{Link, Media, Post};

/// Prices, in millionths of a dollar. What stands beside a list is billed like what stands in it, but
/// for media: the page of prices says "per resource returned", and what a resource is.
const POST_PRICE: u64 = 5_000;
const USER_PRICE: u64 = 10_000;

/// What was asked for.
#[derive(Debug, Clone)]
pub(super) enum Data {
    One(Value),
    Many(Vec<Value>),
}

/// An answer before it is written.
#[derive(Debug)]
pub(super) struct Draft<'v> {
    view: View<'v>,
    ask: &'v Ask<'v>,
    users: Vec<u64>,
    posts: Vec<Post>,
    media: Vec<Media>,
    pub(super) errors: Vec<Value>,
}

impl<'v> Draft<'v> {
    pub(super) const fn new(view: View<'v>, ask: &'v Ask<'v>) -> Self {
        Self {
            view,
            ask,
            users: Vec::new(),
            posts: Vec::new(),
            media: Vec::new(),
            errors: Vec::new(),
        }
    }

    pub(super) fn users(mut self, users: &[u64], meta: Option<Value>) -> Answer {
        if self.ask.expands("most_recent_tweet_id") {
            for &user in users {
                let latest = self.view.latest_post(user);
                if let Some(post) = latest {
                    self.add_post(post);
                }
            }
        }
        let data = users
            .iter()
            .map(|&user| self.view.user_object(self.ask, user));
        let data = data.collect();
        Answer {
            billed: self.billed(users, &[]),
            ..self.write(Data::Many(data), meta, None)
        }
    }

    pub(super) fn user(self, user: u64) -> Answer {
        let data = self.view.user_object(self.ask, user);
        Answer {
            billed: self.billed(&[user], &[]),
            ..self.write(Data::One(data), None, None)
        }
    }

    pub(super) fn posts(
        mut self,
        posts: &[Post],
        meta: Option<Value>,
        spoilt: Option<Spoil>,
    ) -> Answer {
        for post in posts {
            self.expand(post);
        }
        let data = posts
            .iter()
            .map(|post| self.view.post_object(self.ask, post));
        let data = data.collect();
        let written = self.posts.len() + posts.len();
        Answer {
            items: Some(written as u64),
            billed: self.billed(&[], posts),
            ..self.write(Data::Many(data), meta, spoilt)
        }
    }

    pub(super) fn post(mut self, post: &Post) -> Answer {
        self.expand(post);
        let data = self.view.post_object(self.ask, post);
        let written = self.posts.len() + 1;
        Answer {
            items: Some(written as u64),
            billed: self.billed(&[], std::slice::from_ref(post)),
            ..self.write(Data::One(data), None, None)
        }
    }

    fn expand(&mut self, post: &Post) {
        let words = self.view.words(post);
        if self.ask.expands("author_id") {
            self.add_user(post.user());
        }
        if self.ask.expands("attachments.media_keys") {
            self.add_media(&words.media);
        }
        if self.ask.expands("entities.mentions.username") {
            for user in words.mentions {
                self.name_user(user, "entities.mentions.username");
            }
        }
        if let Link::Reply(target) = post.link
            && self.ask.expands("in_reply_to_user_id")
        {
            self.name_user(target.user, "in_reply_to_user_id");
        }
        let (Link::Reply(target) | Link::Repost(target)) = post.link else {
            return;
        };
        let id = post_id(&target);
        if !self.ask.expands("referenced_tweets.id") {
            return;
        }
        match self.view.shown_post(id) {
            Ok(found) => {
                self.add_post(found);
                if self.ask.expands("referenced_tweets.id.author_id") {
                    self.add_user(found.user());
                }
                if self
                    .ask
                    .expands("referenced_tweets.id.attachments.media_keys")
                {
                    let media = self.view.words(&found).media;
                    self.add_media(&media);
                }
            }
            Err(hidden) => {
                let named = Named {
                    resource: "tweet",
                    parameter: "referenced_tweets.id",
                    value: &id.to_string(),
                };
                self.add_error(named.error(hidden));
            }
        }
    }

    /// An account that is named somewhere, and may not be shown.
    fn name_user(&mut self, user: u64, parameter: &str) {
        match self.view.hidden_user(user) {
            None => self.add_user(user),
            Some(hidden) => {
                let named = Named {
                    resource: "user",
                    parameter,
                    value: &self.view.account_id(user),
                };
                self.add_error(named.error(hidden));
            }
        }
    }

    fn add_user(&mut self, user: u64) {
        if !self.users.contains(&user) {
            self.users.push(user);
        }
    }

    fn add_post(&mut self, post: Post) {
        if !self.posts.contains(&post) {
            self.posts.push(post);
        }
    }

    fn add_media(&mut self, media: &[Media]) {
        for one in media {
            if self.media.iter().all(|known| known.id != one.id) {
                self.media.push(*one);
            }
        }
    }

    fn add_error(&mut self, error: Value) {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// What an answer with these things costs.
    fn billed(&self, users: &[u64], posts: &[Post]) -> Vec<Thing> {
        let users = users.iter().chain(&self.users);
        let users = users.map(|&user| Thing {
            kind: "user",
            id: Some(user),
            price: USER_PRICE,
        });
        let posts = posts.iter().chain(&self.posts);
        let posts = posts.map(|post| Thing {
            kind: "post",
            id: Some(post_id(&post.draft)),
            price: POST_PRICE,
        });
        users.chain(posts).collect()
    }

    fn write(self, data: Data, meta: Option<Value>, spoilt: Option<Spoil>) -> Answer {
        let mut body = Map::new();
        let mut items = 1;
        match data {
            Data::One(one) => {
                body.insert("data".to_owned(), one);
            }
            Data::Many(many) => {
                items = many.len() as u64;
                if !many.is_empty() {
                    body.insert("data".to_owned(), json!(many));
                }
            }
        }
        let mut includes = Map::new();
        let mut put = |name: &str, list: Vec<Value>| {
            if !list.is_empty() {
                includes.insert(name.to_owned(), json!(list));
            }
        };
        let users = self.users.iter();
        put(
            "users",
            users
                .map(|&user| self.view.user_object(self.ask, user))
                .collect(),
        );
        let posts = self.posts.iter();
        put(
            "tweets",
            posts
                .map(|post| self.view.post_object(self.ask, post))
                .collect(),
        );
        let media = self.media.iter();
        put(
            "media",
            media.map(|one| media_object(self.ask, one)).collect(),
        );
        if !includes.is_empty() {
            body.insert("includes".to_owned(), Value::Object(includes));
        }
        if !self.errors.is_empty() {
            body.insert("errors".to_owned(), json!(self.errors));
        }
        if let Some(meta) = meta {
            body.insert("meta".to_owned(), meta);
        }
        Answer {
            items: Some(items),
            spoilt,
            ..Answer::json(&body)
        }
    }
}
