//! The AppView of Bluesky over the world: what is asked, and what is answered.
//!
//! Written by hand from the lexicons and from answers of real servers. Pure: the time of the answer is
//! an argument. Users, follows, posts, answers, reposts and likes are the world's; nobody quotes, and
//! lists cannot be hidden. Who asks not to be indexed has the label `!no-unauthenticated`. Repositories
//! and the directory of accounts are not here: the real ones can be had (`docs/networks/bluesky.md`).

mod names;
mod people;
mod posts;
mod refusals;
mod route;

use std::ops::Deref;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::dialect::{Heard, Matter, Shown, Slice, Speech, View, slice};
use crate::faults::{List, Walk, Walked};
use crate::world::{Follow, Post, World};
use names::Cursor;
use refusals::Refusal;
use route::Route;

/// The names of all queries that limits can be for.
const QUERIES: [&str; 13] = [
    "resolve_handle",
    "profile",
    "profiles",
    "follows",
    "followers",
    "author_feed",
    "thread",
    "posts",
    "likes",
    "reposted_by",
    "quotes",
    "search",
    "unknown",
];

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Bluesky;

impl Speech for Bluesky {
    fn queries(&self) -> &'static [&'static str] {
        &QUERIES
    }

    fn limits(&self) -> &'static str {
        include_str!("limits.toml")
    }

    fn token<'a>(&self, heard: &'a Heard) -> Option<&'a str> {
        heard.bearer()
    }

    fn matter(&self, heard: &Heard, world: &World) -> Matter {
        let route = Route::read(heard);
        let cursor = heard.params.get("cursor").unwrap_or_default();
        let list = match route {
            Route::Follows(_) => Some(List::Following),
            Route::Followers(_) => Some(List::Followers),
            Route::AuthorFeed(_) => Some(List::Timeline),
            _ => None,
        };
        let user = names::user_with_did(world, &route.subject());
        let walk = list.zip(user).map(|(list, user)| Walk {
            user,
            list,
            is_later_page: !cursor.is_empty(),
        });
        Matter {
            query: route.query(),
            subject: route.subject(),
            cursor: cursor.to_owned(),
            walk,
            is_free: false,
            tells_limits: false,
            is_wide: matches!(route, Route::SearchActors(_) | Route::SearchPosts(_)),
        }
    }

    fn answer(&self, view: View<'_>, heard: &Heard) -> Answer {
        let refusal = match view.shown {
            Shown::Wrong => Some(Refusal::InvalidToken),
            Shown::Revoked => Some(Refusal::ExpiredToken),
            Shown::Nothing | Shown::Narrow | Shown::Good => None,
        };
        match refusal {
            Some(refusal) => refusal.into(),
            None => AppView(view)
                .told(&Route::read(heard), heard)
                .unwrap_or_else(Answer::from),
        }
    }

    fn walked(&self, view: View<'_>, heard: &Heard) -> Option<Walked> {
        let view = AppView(view);
        let page = Page::read(heard).ok()?;
        match Route::read(heard) {
            Route::Follows(actor) => {
                let user = view.actor(&actor).ok()?;
                let list = view.world.following_at(user, view.now);
                Some(walked_follows(&list, &page))
            }
            Route::Followers(actor) => {
                let user = view.actor(&actor).ok()?;
                let list = view.world.followers_at(user, view.now);
                Some(walked_follows(&list, &page))
            }
            Route::AuthorFeed(actor) => {
                let user = view.actor(&actor).ok()?;
                let list = view.feed(user);
                let start = page.start(&list, Post::id);
                Some(Walked::Posts {
                    page: slice(&list, start, page.limit, None).items,
                    before: before(&list, start),
                })
            }
            _ => None,
        }
    }
}

fn walked_follows(list: &[Follow], page: &Page) -> Walked {
    let start = page.start(list, |edge| edge.id);
    Walked::Follows {
        page: slice(list, start, page.limit, None).items,
        before: before(list, start),
    }
}

fn before<T: Clone>(list: &[T], start: usize) -> Vec<T> {
    list[start.saturating_sub(crate::spoil::OVERLAP)..start].to_vec()
}

/// The world as this network tells it.
#[derive(Debug)]
struct AppView<'a>(View<'a>);

impl<'a> Deref for AppView<'a> {
    type Target = View<'a>;

    fn deref(&self) -> &View<'a> {
        &self.0
    }
}

/// Which part of a list is asked for.
#[derive(Debug)]
struct Page {
    limit: usize,
    cursor: Option<Cursor>,
}

const LIMIT_DEFAULT: usize = 50;
const LIMIT_MAX: usize = 100;

impl Page {
    fn read(heard: &Heard) -> Result<Self, Refusal> {
        let limit = match heard.params.get("limit") {
            None => LIMIT_DEFAULT,
            Some(text) => match text.parse() {
                Ok(0) => return Err(Refusal::LimitTooSmall),
                Ok(limit) if limit > LIMIT_MAX => return Err(Refusal::LimitTooLarge),
                Ok(limit) => limit,
                Err(_) => return Err(Refusal::LimitNoNumber),
            },
        };
        let cursor = match heard.params.get("cursor").filter(|text| !text.is_empty()) {
            None => None,
            Some(text) => Some(Cursor::read(text).ok_or(Refusal::MalformedCursor)?),
        };
        Ok(Self { limit, cursor })
    }

    /// The place of the first item that is older than the cursor, in a list that is newest first.
    fn start<T>(&self, list: &[T], id_of: impl Fn(&T) -> u64) -> usize {
        let Some(cursor) = &self.cursor else {
            return 0;
        };
        list.iter()
            .position(|item| id_of(item) < cursor.id)
            .unwrap_or(list.len())
    }

    /// Cuts the page; the cursor of the next one stands on the last item before it.
    fn cut<T: Clone>(
        &self,
        view: &View<'_>,
        list: &[T],
        id_of: impl Fn(&T) -> u64,
    ) -> (Slice<T>, Option<String>) {
        let start = self.start(list, &id_of);
        let part = slice(list, start, self.limit, view.spoil);
        let next = match part.next {
            Some(0) | None => None,
            Some(next) => Some(Cursor::after(id_of(&list[next - 1])).write()),
        };
        (part, next)
    }
}

impl AppView<'_> {
    fn told(&self, route: &Route, heard: &Heard) -> Result<Answer, Refusal> {
        match route {
            Route::ResolveHandle(handle) => self.resolve_handle(handle),
            Route::Profile(actor) => {
                let user = self.actor(actor)?;
                Ok(Answer::json(&self.profile_detailed(user)))
            }
            Route::Profiles(actors) => self.profiles(actors),
            Route::Follows(actor) => {
                let user = self.actor(actor)?;
                let edges = self.world.following_at(user, self.now);
                Ok(
                    self.people_page(&Page::read(heard)?, ("follows", user), &edges, |edge| {
                        (edge.id, edge.target)
                    }),
                )
            }
            Route::Followers(actor) => {
                let user = self.actor(actor)?;
                let edges = self.world.followers_at(user, self.now);
                Ok(
                    self.people_page(&Page::read(heard)?, ("followers", user), &edges, |edge| {
                        (edge.id, edge.source)
                    }),
                )
            }
            Route::AuthorFeed(actor) => self.author_feed(heard, actor),
            Route::Thread(uri) => self.thread(heard, uri),
            Route::Posts(uris) => self.posts_by_uris(uris),
            Route::Likes(uri) => self.likes(&Page::read(heard)?, uri),
            Route::RepostedBy(uri) => self.reposted_by(&Page::read(heard)?, uri),
            Route::Quotes(uri) => {
                Page::read(heard)?;
                Ok(Answer::json(&json!({ "uri": uri, "posts": [] })))
            }
            Route::SearchActors(words) => Ok(self.search_actors(&Page::read(heard)?, words)),
            Route::SearchPosts(words) => self.search_posts(heard, words),
            Route::Unknown => Err(Refusal::MethodNotImplemented),
        }
    }

    /// A page of people beside the one whose list it is.
    fn people_page<T: Clone>(
        &self,
        page: &Page,
        (name, subject): (&str, u64),
        list: &[T],
        of: impl Fn(&T) -> (u64, u64),
    ) -> Answer {
        let (part, next) = page.cut(self, list, |item| of(item).0);
        let people: Vec<Value> = part
            .items
            .iter()
            .map(|item| self.profile_view(of(item).1))
            .collect();
        let mut body = json!({ "subject": self.profile_view(subject) });
        body[name] = json!(people);
        paged(body, next, part.spoilt)
    }
}

/// An answer with the cursor of the next page, if there is one.
fn paged(mut body: Value, next: Option<String>, spoilt: Option<crate::spoil::Spoil>) -> Answer {
    if let Some(next) = next {
        body["cursor"] = json!(next);
    }
    Answer {
        spoilt,
        ..Answer::json(&body)
    }
}
