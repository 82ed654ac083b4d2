//! A small Lemmy, written from the code of its version 0.19: strict about parameters, and with the
//! buckets by which it limits calls.

use crate::counterpart::{Call, reply};
use crate::lemmy::world::{Comment, Community, Person, Post, World};
use crate::strict::Asked;
use serde_json::{Map, Value, json};
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

pub(crate) struct Server {
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) world: World,
    /// Calls that the code would refuse.
    pub(crate) faults: Vec<String>,
    /// Calls beyond a limit.
    pub(crate) violations: Vec<String>,
    message: Bucket,
    search: Bucket,
    started: Instant,
}

/// Fills up by `capacity` in so many seconds, in whole tokens.
struct Bucket {
    capacity: u64,
    refill_seconds: u64,
    tokens: u64,
    checked_seconds: u64,
}

impl Bucket {
    const fn new(capacity: u64, refill_seconds: u64) -> Self {
        Self {
            capacity,
            refill_seconds,
            tokens: capacity,
            checked_seconds: 0,
        }
    }

    /// Takes a token, if there is one.
    fn take(&mut self, now_seconds: u64) -> bool {
        let passed = now_seconds.saturating_sub(self.checked_seconds);
        let tokens = self.tokens + passed * self.capacity / self.refill_seconds;
        if tokens == 0 {
            return false;
        }
        (self.tokens, self.checked_seconds) = (tokens.min(self.capacity) - 1, now_seconds);
        true
    }
}

/// An answer, or the word of an error with its status.
type Answer = Result<Value, (&'static str, &'static str)>;

const NOT_FOUND: &str = "404 Not Found";

impl Server {
    pub(crate) fn new(world: World) -> Self {
        let state = State {
            world,
            faults: Vec::new(),
            violations: Vec::new(),
            message: Bucket::new(180, 60),
            search: Bucket::new(60, 600),
            started: Instant::now(),
        };
        Self {
            state: Mutex::new(state),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn answer(&self, call: &Call, stream: &mut TcpStream) -> std::io::Result<()> {
        // Somebody who was killed before saying anything.
        if call.method.is_empty() {
            return Ok(());
        }
        let (status, body) = match self.state().answer(call) {
            Ok(body) => ("200 OK", body),
            Err((status, word)) => (status, json!({ "error": word })),
        };
        reply(stream, status, "", body.to_string().as_bytes())
    }
}

impl State {
    fn answer(&mut self, call: &Call) -> Answer {
        let now_seconds = self.started.elapsed().as_secs();
        let is_search = call.target.starts_with("/api/v3/search");
        let bucket = if is_search {
            &mut self.search
        } else {
            &mut self.message
        };
        if !bucket.take(now_seconds) {
            self.violations.push(call.target.clone());
            return Err(("400 Bad Request", "rate_limit_error"));
        }
        let shown = Shown {
            world: &self.world,
            host: &call.host,
        };
        let answer = Asked::of(call).and_then(|asked| shown.respond(&asked));
        answer.unwrap_or_else(|fault| {
            self.faults.push(format!("{}: {fault}", call.target));
            Err(("400 Bad Request", "unknown"))
        })
    }
}

/// The world as one server shows it.
pub(crate) struct Shown<'a> {
    pub(crate) world: &'a World,
    /// The server's own name.
    pub(crate) host: &'a str,
}

/// What is empty is left out.
fn without_nulls(mut value: Value) -> Value {
    if let Some(entries) = value.as_object_mut() {
        entries.retain(|_, value| !value.is_null());
    }
    value
}

fn time(id: u64) -> String {
    format!(
        "2026-10-01T{:02}:{:02}:{:02}.5Z",
        id / 3600 % 24,
        id / 60 % 60,
        id % 60
    )
}

impl Shown<'_> {
    /// The outer error is a call that the code would refuse.
    fn respond(&self, asked: &Asked) -> Result<Answer, String> {
        match asked.path.as_str() {
            "/api/v3/user" => self.user(asked),
            "/api/v3/post" => {
                asked.expect(&[("id", "*")], &[])?;
                let id = asked.get("id").and_then(|id| id.parse().ok());
                let mut posts = self.world.posts.iter();
                let found = posts.find(|it| Some(it.id) == id && !it.is_deleted);
                let found = found.ok_or((NOT_FOUND, "couldnt_find_post"));
                Ok(found.map(|it| json!({ "post_view": self.post_view(it), "cross_posts": [], "moderators": [] })))
            }
            "/api/v3/post/list" => self.community_posts(asked),
            "/api/v3/comment/list" => self.comments(asked),
            "/api/v3/community" => {
                asked.expect(&[("name", "*")], &[])?;
                let found = self.community_named(asked.get("name").unwrap_or_default());
                let found = found.ok_or((NOT_FOUND, "couldnt_find_community"));
                Ok(found.map(|it| {
                    let moderators = it.moderators.iter().map(|id| {
                        json!({ "community": self.community(it), "moderator": self.person(self.world.person(*id)) })
                    });
                    let moderators: Vec<Value> = moderators.collect();
                    json!({ "community_view": self.community_view(it), "moderators": moderators, "discussion_languages": [0] })
                }))
            }
            "/api/v3/search" => self.search(asked),
            "/api/v3/site" => {
                asked.expect(&[], &[])?;
                Ok(Ok(self.site()))
            }
            "/api/v3/federated_instances" => {
                asked.expect(&[], &[])?;
                let peer = |domain: &str| json!({ "id": 4, "domain": domain, "published": time(0), "software": "lemmy" });
                let peers = json!({ "linked": [peer("sky.example")], "allowed": [], "blocked": [peer("spam.example")] });
                Ok(Ok(json!({ "federated_instances": peers })))
            }
            _ => Err("there is no such address".to_owned()),
        }
    }

    pub(crate) fn address(&self, home: Option<&str>, place: &str) -> String {
        match home {
            None => format!("http://{}/{place}", self.host),
            Some(home) => format!("https://{home}/{place}"),
        }
    }

    /// Whether a name with or without a host is this one.
    fn is_called(&self, asked: &str, name: &str, home: Option<&str>) -> bool {
        let (called, host) = asked.split_once('@').unwrap_or((asked, self.host));
        called == name && host == home.unwrap_or(self.host)
    }

    fn community_named(&self, name: &str) -> Option<&Community> {
        let mut all = self.world.communities.iter();
        all.find(|it| self.is_called(name, it.name, it.home))
    }

    fn user(&self, asked: &Asked) -> Result<Answer, String> {
        let by = if asked.get("username").is_some() {
            "username"
        } else {
            "person_id"
        };
        asked.expect(&[(by, "*"), ("limit", "*")], &["sort", "page"])?;
        if asked.get("sort").is_some_and(|sort| sort != "New") {
            return Err("there is no such order".to_owned());
        }
        let wanted = asked.get(by).unwrap_or_default();
        let mut people = self.world.people.iter();
        let found = people.find(|it| match by {
            "username" => self.is_called(wanted, it.name, it.home),
            _ => it.id.to_string() == wanted,
        });
        let Some(found) = found else {
            return Ok(Err((NOT_FOUND, "couldnt_find_person")));
        };
        let posts = self.posts(asked, |it| it.creator == found.id)?;
        let comments = self
            .world
            .comments
            .iter()
            .filter(|it| it.creator == found.id);
        let comments = page_of(comments.rev().collect(), asked)?;
        let comments: Vec<Value> = comments
            .into_iter()
            .map(|it| self.comment_view(it))
            .collect();
        Ok(Ok(json!({
            "person_view": self.person_view(found), "posts": posts, "comments": comments, "moderates": [],
        })))
    }

    /// A page of posts, the newest first. Some are left out after the page is cut.
    fn posts(
        &self,
        asked: &Asked,
        is_wanted: impl Fn(&Post) -> bool,
    ) -> Result<Vec<Value>, String> {
        let posts = self
            .world
            .posts
            .iter()
            .filter(|it| is_wanted(it) && !it.is_deleted);
        let mut posts = page_of(posts.rev().collect(), asked)?;
        posts.retain(|it| !it.is_hidden);
        Ok(posts.into_iter().map(|it| self.post_view(it)).collect())
    }

    fn comments(&self, asked: &Asked) -> Result<Answer, String> {
        let ordered = [
            ("post_id", "*"),
            ("type_", "All"),
            ("sort", "New"),
            ("limit", "50"),
        ];
        asked.expect(&ordered, &["page"])?;
        let post = asked.get("post_id").unwrap_or_default();
        let comments = self
            .world
            .comments
            .iter()
            .filter(|it| it.post.to_string() == post);
        let comments = page_of(comments.rev().collect(), asked)?;
        let comments: Vec<Value> = comments
            .into_iter()
            .map(|it| self.comment_view(it))
            .collect();
        Ok(Ok(json!({ "comments": comments })))
    }

    /// The posts of a community, by cursors that only the server understands.
    fn community_posts(&self, asked: &Asked) -> Result<Answer, String> {
        let ordered = [
            ("community_name", "*"),
            ("type_", "All"),
            ("sort", "New"),
            ("limit", "50"),
        ];
        asked.expect(&ordered, &["page_cursor"])?;
        let Some(found) = self.community_named(asked.get("community_name").unwrap_or_default())
        else {
            return Ok(Err((NOT_FOUND, "couldnt_find_community")));
        };
        let below = match asked.get("page_cursor") {
            None => u64::MAX,
            Some(cursor) => {
                let id = cursor
                    .strip_prefix('P')
                    .and_then(|id| u64::from_str_radix(id, 16).ok());
                id.ok_or("no cursor of this server")?
            }
        };
        let posts = self.world.posts.iter().rev();
        let posts = posts.filter(|it| it.community == found.id && !it.is_deleted && it.id < below);
        let page: Vec<&Post> = posts.take(50).collect();
        let next = page.last().map(|last| format!("P{:x}", last.id));
        let shown = page.iter().filter(|it| !it.is_hidden);
        let posts: Vec<Value> = shown.map(|it| self.post_view(it)).collect();
        Ok(Ok(without_nulls(
            json!({ "posts": posts, "next_page": next }),
        )))
    }

    fn search(&self, asked: &Asked) -> Result<Answer, String> {
        let ordered = [
            ("q", "*"),
            ("type_", "All"),
            ("listing_type", "All"),
            ("sort", "New"),
            ("limit", "50"),
        ];
        asked.expect(&ordered, &["page"])?;
        let words = asked.get("q").unwrap_or_default();
        let posts = self.posts(asked, |it| it.title.contains(words))?;
        let comments = self
            .world
            .comments
            .iter()
            .filter(|it| it.text.contains(words) && !it.is_deleted && !it.is_removed);
        let comments = page_of(comments.rev().collect(), asked)?;
        let comments: Vec<Value> = comments
            .into_iter()
            .map(|it| self.comment_view(it))
            .collect();
        Ok(Ok(
            json!({ "type_": "All", "posts": posts, "comments": comments, "communities": [], "users": [] }),
        ))
    }

    fn site(&self) -> Value {
        let admin = self.person_view(self.world.person(3));
        let site = json!({ "id": 1, "name": "Reed", "published": time(0), "actor_id": self.address(None, "") });
        let local = json!({ "id": 1, "private_instance": false });
        let limits = json!({ "message": 180, "message_per_second": 60, "search": 60, "search_per_second": 600 });
        let counts = json!({ "site_id": 1, "users": 8, "posts": self.world.posts.len(), "comments": 9, "communities": 2 });
        json!({
            "site_view": { "site": site, "local_site": local, "local_site_rate_limit": limits, "counts": counts },
            "admins": [admin], "version": "0.19.13", "all_languages": [], "discussion_languages": [], "taglines": [],
            "custom_emojis": [], "blocked_urls": [],
        })
    }

    fn person(&self, person: &Person) -> Value {
        without_nulls(json!({
            "id": person.id, "name": person.name, "display_name": person.display_name, "bio": person.bio,
            "banned": person.is_banned, "deleted": person.is_deleted, "bot_account": person.is_bot,
            "actor_id": self.person_address(person.id), "local": person.home.is_none(),
            "published": time(0), "instance_id": 1,
        }))
    }

    fn person_view(&self, person: &Person) -> Value {
        let (posts, comments) = self.world.counts_of(person.id);
        let counts =
            json!({ "person_id": person.id, "post_count": posts, "comment_count": comments });
        json!({ "person": self.person(person), "counts": counts, "is_admin": person.id == 3 })
    }

    fn community(&self, community: &Community) -> Value {
        json!({
            "id": community.id, "name": community.name, "title": community.name, "actor_id": self.community_address(community.id),
            "local": community.home.is_none(), "removed": false, "deleted": false, "nsfw": false, "hidden": false,
            "published": time(0), "posting_restricted_to_mods": false, "instance_id": 1, "visibility": "Public",
        })
    }

    fn community_view(&self, community: &Community) -> Value {
        let posts = self
            .world
            .posts
            .iter()
            .filter(|it| it.community == community.id);
        let counts = json!({ "community_id": community.id, "subscribers": 5, "posts": posts.count(), "comments": 1, "published": time(0) });
        json!({ "community": self.community(community), "counts": counts, "subscribed": "NotSubscribed", "blocked": false })
    }

    fn post(&self, post: &Post) -> Value {
        without_nulls(json!({
            "id": post.id, "name": post.title, "body": post.body, "creator_id": post.creator,
            "community_id": post.community, "removed": false, "deleted": post.is_deleted, "locked": false,
            "nsfw": false, "ap_id": self.post_address(post.id), "local": true, "published": time(post.id),
            "language_id": 0, "featured_community": false, "featured_local": false,
        }))
    }

    fn post_view(&self, post: &Post) -> Value {
        let counts = json!({
            "post_id": post.id, "comments": self.world.comments_under(post.id), "score": post.upvotes,
            "upvotes": post.upvotes, "downvotes": 0, "published": time(post.id), "newest_comment_time": time(post.id),
        });
        self.viewed(
            post.creator,
            post.community,
            counts,
            [("post", self.post(post))],
        )
    }

    fn comment_view(&self, comment: &Comment) -> Value {
        let is_gone = comment.is_deleted || comment.is_removed;
        let above = comment.above.iter().map(u64::to_string);
        let path: Vec<String> = std::iter::once("0".to_owned()).chain(above).collect();
        let told = json!({
            "id": comment.id, "creator_id": comment.creator, "post_id": comment.post,
            "content": if is_gone { "" } else { &comment.text }, "removed": comment.is_removed,
            "deleted": comment.is_deleted, "published": time(comment.id), "local": true,
            "ap_id": self.comment_address(comment.id), "path": format!("{}.{}", path.join("."), comment.id),
            "distinguished": false, "language_id": 0,
        });
        let counts = json!({
            "comment_id": comment.id, "score": 1, "upvotes": 1, "downvotes": 0, "published": time(comment.id),
            "child_count": self.world.comments_below(comment.id),
        });
        let post = self.world.post(comment.post);
        self.viewed(
            comment.creator,
            post.community,
            counts,
            [("comment", told), ("post", self.post(post))],
        )
    }

    /// What is told of everything that somebody wrote.
    fn viewed<const N: usize>(
        &self,
        creator: u64,
        community: u64,
        counts: Value,
        own: [(&str, Value); N],
    ) -> Value {
        let mut view: Map<String, Value> = own
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        view.insert("creator".into(), self.person(self.world.person(creator)));
        view.insert(
            "community".into(),
            self.community(self.world.community(community)),
        );
        view.insert("counts".into(), counts);
        for name in [
            "creator_banned_from_community",
            "banned_from_community",
            "creator_is_moderator",
            "creator_is_admin",
            "saved",
            "creator_blocked",
        ] {
            view.insert(name.into(), false.into());
        }
        view.insert("subscribed".into(), "NotSubscribed".into());
        Value::Object(view)
    }

    pub(crate) fn person_address(&self, id: u64) -> String {
        let person = self.world.person(id);
        self.address(person.home, &format!("u/{}", person.name))
    }

    pub(crate) fn community_address(&self, id: u64) -> String {
        let community = self.world.community(id);
        self.address(community.home, &format!("c/{}", community.name))
    }

    pub(crate) fn post_address(&self, id: u64) -> String {
        self.address(None, &format!("post/{id}"))
    }

    pub(crate) fn comment_address(&self, id: u64) -> String {
        self.address(None, &format!("comment/{id}"))
    }
}

/// One page; a limit out of range is an error.
fn page_of<T>(items: Vec<T>, asked: &Asked) -> Result<Vec<T>, String> {
    let limit = asked.get("limit").and_then(|limit| limit.parse().ok());
    let limit = limit.filter(|limit| (1..=50).contains(limit));
    let limit: usize = limit.ok_or("Fetch limit is > 50")?;
    let page = asked.page()?;
    Ok(items
        .into_iter()
        .skip((page - 1) * limit)
        .take(limit)
        .collect())
}
