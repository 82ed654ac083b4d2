//! Accounts and lists of them.

use serde_json::{Value, json};

use super::names::{self, HANDLE_DOMAIN};
use super::refusals::Refusal;
use super::{AppView, Page, paged};
use crate::answer::Answer;
use crate::dialect::plain_text;
use crate::world::time::{DAY_US, iso_ms};
use crate::world::{Like, Post, Standing};

const ACTORS_MAX: usize = 25;

impl AppView<'_> {
    /// An account that is there, by its name or its handle.
    pub(super) fn actor(&self, actor: &str) -> Result<u64, Refusal> {
        let user = if let Some(did) = actor.strip_prefix("did:") {
            if !is_did(did) {
                return Err(Refusal::InvalidActor);
            }
            names::user_with_did(self.world, actor).ok_or(Refusal::ProfileNotFound)?
        } else if actor.contains('.') {
            self.user_with_handle(actor)
                .ok_or(Refusal::ProfileNotFound)?
        } else {
            return Err(Refusal::InvalidActor);
        };
        match self.world.standing(user, self.now) {
            Standing::Active => Ok(user),
            Standing::Suspended => Err(Refusal::AccountTakedown),
            Standing::Gone => Err(Refusal::ProfileNotFound),
        }
    }

    fn user_with_handle(&self, handle: &str) -> Option<u64> {
        let handle = handle.to_ascii_lowercase();
        let name = handle.strip_suffix(HANDLE_DOMAIN)?.strip_suffix('.')?;
        self.world.user_named(&underscored(name), self.now.at_us)
    }

    fn handle(&self, user: u64) -> String {
        let name = self.world.username(user, self.now.at_us);
        format!("{}.{HANDLE_DOMAIN}", name.replace('_', "-"))
    }

    pub(super) fn resolve_handle(&self, handle: &str) -> Result<Answer, Refusal> {
        let user = self.user_with_handle(handle);
        let user = user.filter(|&user| self.world.is_active(user, self.now));
        let user = user.ok_or(Refusal::NoSuchHandle)?;
        Ok(Answer::json(
            &json!({ "did": names::did(self.world, user) }),
        ))
    }

    /// What stands beside a post.
    pub(super) fn profile_basic(&self, user: u64) -> Value {
        let profile = self.world.profile(user, self.now.at_us);
        let wishes = self.world.wishes(user);
        let created_us = self.world.traits(user).created_day * DAY_US;
        let did = names::did(self.world, user);
        // They ask to be shown to nobody who is not logged in.
        let is_shy = wishes.is_noindex || !wishes.is_indexable;
        let labels = is_shy.then(|| {
            json!({
                "src": did,
                "uri": format!("at://{did}/app.bsky.actor.profile/self"),
                "cid": names::cid(user),
                "val": "!no-unauthenticated",
                "cts": iso_ms(created_us),
            })
        });
        let mut basic = json!({
            "did": did,
            "handle": self.handle(user),
            "displayName": profile.display_name,
            "associated": { "activitySubscription": { "allowSubscriptions": "followers" } },
            "labels": labels.into_iter().collect::<Vec<_>>(),
            "createdAt": iso_ms(created_us),
        });
        if self.world.traits(user).has_avatar {
            let place = format!("https://cdn.{HANDLE_DOMAIN}/img/avatar/plain/{did}/a@jpeg");
            basic["avatar"] = json!(place);
        }
        basic
    }

    /// What stands in lists of people.
    pub(super) fn profile_view(&self, user: u64) -> Value {
        let mut view = self.profile_basic(user);
        let profile = self.world.profile(user, self.now.at_us);
        view["description"] = json!(plain_text(&profile.note_html));
        view["indexedAt"] = view["createdAt"].clone();
        view
    }

    pub(super) fn profile_detailed(&self, user: u64) -> Value {
        let mut view = self.profile_view(user);
        let counts = self.world.counts(user, self.now);
        let feed = self.feed(user);
        let reposts = feed.iter().filter(|post| post.is_repost()).count();
        for name in ["lists", "feedgens", "starterPacks"] {
            view["associated"][name] = json!(0);
        }
        view["associated"]["labeler"] = json!(false);
        view["followersCount"] = json!(counts.followers);
        view["followsCount"] = json!(counts.following);
        view["postsCount"] = json!(feed.len() - reposts);
        view
    }

    /// Up to 25 accounts; who is not there is left out without a word.
    pub(super) fn profiles(&self, actors: &[String]) -> Result<Answer, Refusal> {
        if actors.len() > ACTORS_MAX {
            return Err(Refusal::TooManyActors);
        }
        let mut profiles = Vec::new();
        for actor in actors {
            match self.actor(actor) {
                Ok(user) => profiles.push(self.profile_detailed(user)),
                // What cannot be a name at all fails the whole call.
                Err(Refusal::InvalidActor) => return Err(Refusal::InvalidActor),
                Err(_) => {}
            }
        }
        Ok(Answer::json(&json!({ "profiles": profiles })))
    }

    pub(super) fn likes(&self, page: &Page, uri: &str) -> Result<Answer, Refusal> {
        let post = self.post(uri)?;
        let likes = self.world.likes_at(&post, self.now);
        let (part, next) = page.cut(self, &likes, Like::id);
        let like = |like: &Like| {
            let at = iso_ms(like.at_us);
            json!({ "actor": self.profile_view(like.user), "createdAt": at, "indexedAt": at })
        };
        let likes: Vec<Value> = part.items.iter().map(like).collect();
        let body = json!({ "uri": uri, "likes": likes });
        Ok(paged(body, next, part.spoilt))
    }

    pub(super) fn reposted_by(&self, page: &Page, uri: &str) -> Result<Answer, Refusal> {
        let post = self.post(uri)?;
        let reposts = self.world.reposts(&post, self.now);
        let (part, next) = page.cut(self, &reposts, Post::id);
        let people = part
            .items
            .iter()
            .map(|repost| self.profile_view(repost.user()));
        let body = json!({ "uri": uri, "repostedBy": people.collect::<Vec<_>>() });
        Ok(paged(body, next, part.spoilt))
    }

    pub(super) fn search_actors(&self, page: &Page, words: &str) -> Answer {
        let words = words.to_lowercase();
        let mut users: Vec<u64> = self.world.users_named_like(&words, self.now).collect();
        let id_of = |user: &u64| self.world.account_id(*user);
        users.sort_unstable_by_key(|user| std::cmp::Reverse(id_of(user)));
        let (part, next) = page.cut(self, &users, id_of);
        let actors = part.items.iter().map(|&user| self.profile_view(user));
        let body = json!({ "actors": actors.collect::<Vec<_>>() });
        paged(body, next, part.spoilt)
    }
}

/// Handles are names of hosts and have no underscores.
fn underscored(name: &str) -> String {
    name.replace('-', "_")
}

/// Whether what follows `did:` can be a method and a name, by the protocol's grammar.
fn is_did(rest: &str) -> bool {
    let Some((method, name)) = rest.split_once(':') else {
        return false;
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._:%-".contains(&byte);
    !method.is_empty()
        && method.bytes().all(|byte| byte.is_ascii_lowercase())
        && !name.is_empty()
        && name.bytes().all(is_name)
        && !name.ends_with([':', '%'])
}
