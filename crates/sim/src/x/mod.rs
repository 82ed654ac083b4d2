//! The X API v2 over the world: what is asked, and what is answered.
//!
//! Written by hand from the network's documentation and from answers that others have quoted. Pure: the time of the
//! answer is an argument.
//!
//! - `route.rs`: which endpoint a path is, and what each of them takes
//! - `ask.rs`: parameters, and the refusal of those that are not valid
//! - `problem.rs`: the words for what cannot be shown
//! - `identity.rs`: ids of posts, which tell their times; what is shown of whom
//! - `user.rs`, `post.rs`, `includes.rs`: accounts, posts, and what stands beside them
//! - `lookup.rs`, `lists.rs`, `search.rs`, `matching.rs`, `counts.rs`: the endpoints
//!
//! The world's people are accounts; who is locked is protected, and shows no posts and no lists. Replies, reposts and
//! posts are posts, content warnings are left away. There are no quotes, no lists and no edits: a post that was edited
//! in the world is shown in its last words, without a word about it. Reposts go when what they repeat can no longer be
//! seen; answers stay, and name what they answered. Whoever hides lists elsewhere does not do so here.
//!
//! A token with `/` is a user's, one without the application's own.

mod ask;
mod counts;
mod identity;
mod includes;
mod lists;
mod lookup;
mod matching;
mod post;
mod problem;
mod route;
mod search;
mod user;

use serde_json::json;

use crate::answer::Answer;
use crate::dialect::{Heard, Matter, Shown, Speech, View};
use crate::faults::{List, Walk, Walked};
use crate::world::{World, ids};
use ask::Ask;
use route::Route;

/// Posts in a month, if no limit says otherwise.
const PROJECT_CAP: u64 = 3_000_000;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct X;

impl Speech for X {
    fn queries(&self) -> &'static [&'static str] {
        &route::QUERIES
    }

    fn limits(&self) -> &'static str {
        include_str!("limits.toml")
    }

    fn token<'a>(&self, heard: &'a Heard) -> Option<&'a str> {
        heard.bearer()
    }

    fn matter(&self, heard: &Heard, world: &World) -> Matter {
        let segments = heard.segments();
        let route = Route::read(&segments);
        let cursor = heard.params.only(&["pagination_token", "next_token"]);
        let list = match route {
            Route::Following(_) => Some(List::Following),
            Route::Followers(_) => Some(List::Followers),
            Route::Timeline(_) => Some(List::Timeline),
            _ => None,
        };
        let user = ids::parse(route.subject()).and_then(|id| world.user_with_id(id));
        let walk = list.zip(user).map(|(list, user)| Walk {
            user,
            list,
            is_later_page: !cursor.is_empty(),
        });
        let subject = match route {
            Route::Users | Route::Posts => heard.params.get("ids").unwrap_or_default(),
            Route::UsersBy => heard.params.get("usernames").unwrap_or_default(),
            route if route.is_search() => heard.params.get("query").unwrap_or_default(),
            _ => route.subject(),
        };
        Matter {
            query: route.query(),
            subject: subject.to_owned(),
            cursor,
            walk,
            is_free: false,
            is_wide: route.is_wide(),
            tells_limits: route == Route::Usage,
        }
    }

    fn answer(&self, view: View<'_>, heard: &Heard) -> Answer {
        if !matches!(view.shown, Shown::Good | Shown::Narrow) {
            return problem::unauthorized();
        }
        let segments = heard.segments();
        let route = Route::read(&segments);
        if let Some(refusal) = view.refusal(route) {
            return refusal;
        }
        Ask::read(heard, route)
            .and_then(|ask| view.answered(route, &ask))
            .unwrap_or_else(|refusal| refusal)
    }

    fn walked(&self, view: View<'_>, heard: &Heard) -> Option<Walked> {
        let segments = heard.segments();
        let route = Route::read(&segments);
        let ask = Ask::read(heard, route).ok()?;
        view.walked_page(route, &ask)
    }
}

impl View<'_> {
    /// Why a token of this kind is not answered here.
    fn refusal(&self, route: Route<'_>) -> Option<Answer> {
        if route.is_for_users_only() && self.owner.is_none() {
            return Some(problem::unsupported_authentication(
                "OAuth 2.0 Application-Only",
                "OAuth 1.0a User Context, OAuth 2.0 User Context",
            ));
        }
        if route.is_for_apps_only() && self.owner.is_some() {
            return Some(problem::unsupported_authentication(
                "OAuth 2.0 User Context",
                "OAuth 2.0 Application-Only",
            ));
        }
        let is_narrow = self.shown == Shown::Narrow && route.shows_people();
        is_narrow.then(problem::forbidden)
    }

    fn answered(&self, route: Route<'_>, ask: &Ask<'_>) -> Result<Answer, Answer> {
        match route {
            Route::Users => self.users(ask),
            Route::UsersBy => self.users_by(ask),
            Route::User(id) => self.user(ask, id),
            Route::UserByName(name) => self.user_by_name(ask, name),
            Route::Me => Ok(self.me(ask)),
            Route::UsersSearch => self.users_search(ask),
            Route::Posts => self.posts(ask),
            Route::Post(id) => self.post(ask, id),
            Route::Following(id) | Route::Followers(id) => self.follows(route, ask, id),
            Route::Timeline(id) => self.timeline(ask, id),
            Route::Mentions(id) => self.mentions(ask, id),
            Route::Liked(id) => self.liked(ask, id),
            Route::RepostedBy(id) => self.reposted_by(ask, id),
            Route::Reposts(id) => self.reposts(ask, id),
            Route::Quotes(id) => self.quotes(ask, id),
            Route::LikingUsers(id) => self.liking_users(ask, id),
            Route::SearchRecent | Route::SearchAll => self.search(route, ask),
            Route::CountsRecent | Route::CountsAll => self.counts(route, ask),
            Route::Usage => Ok(self.usage()),
            Route::Unknown => Err(problem::not_found()),
        }
    }

    /// What the project has read of its cap.
    fn usage(&self) -> Answer {
        let known = self.limits.and_then(|limits| limits.used("cap"));
        let (cap, used) = known.unwrap_or((PROJECT_CAP, 0));
        Answer::json(&json!({ "data": {
            "project_id": "1500000000000000001",
            "project_cap": cap.to_string(),
            "project_usage": used.to_string(),
            "cap_reset_day": 1,
        } }))
    }
}
