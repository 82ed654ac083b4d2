//! Lists of accounts and of posts, page by page.
//!
//! A token holds the id that a page begins below, so that what is withdrawn does not shift the pages.

use serde_json::{Value, json};

use super::ask::{self, Ask};
use super::identity::post_id;
use super::includes::Draft;
use super::lookup::post_named;
use super::problem;
use super::route::Route;
use crate::answer::Answer;
use crate::dialect::{View, slice};
use crate::faults::Walked;
use crate::spoil::Spoil;
use crate::world::{Follow, Like, Link, Post};

/// Only so many of an account's posts are shown, and of posts that mention it.
const TIMELINE_MAX: usize = 3_200;
const MENTIONS_MAX: usize = 800;
/// Beyond every id.
const NO_BOUND: u64 = i64::MAX as u64;

/// A page of a list that is sorted by ids, the greatest first.
#[derive(Debug)]
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    pub(super) meta: Value,
    pub(super) spoilt: Option<Spoil>,
}

impl<T: Clone> Page<T> {
    pub(super) fn cut(
        list: &[T],
        ask: &Ask<'_>,
        spoil: Option<Spoil>,
        id: impl Fn(&T) -> u64,
    ) -> Self {
        let start = start(list, ask, &id);
        let slice = slice(list, start, ask.size, spoil);
        let token_of = |place: usize| {
            let before = place.checked_sub(1).and_then(|place| list.get(place));
            ask::token(before.map_or(u64::MAX, &id))
        };
        let mut meta = json!({ "result_count": slice.items.len() });
        if let Some(next) = slice.next {
            meta["next_token"] = json!(token_of(next));
        }
        if !ask.is_first_page && start > 0 {
            meta["previous_token"] = json!(token_of(start.saturating_sub(ask.size)));
        }
        Self {
            items: slice.items,
            meta,
            spoilt: slice.spoilt,
        }
    }
}

fn start<T>(list: &[T], ask: &Ask<'_>, id: impl Fn(&T) -> u64) -> usize {
    list.partition_point(|item| id(item) >= ask.below)
}

/// A page and the one before.
fn page_and_before<T: Clone>(
    list: &[T],
    ask: &Ask<'_>,
    id: impl Fn(&T) -> u64,
) -> (Vec<T>, Vec<T>) {
    let start = start(list, ask, id);
    let end = start.saturating_add(ask.size).min(list.len());
    let before = start.saturating_sub(ask.size);
    (list[start..end].to_vec(), list[before..start].to_vec())
}

fn id_of(post: &Post) -> u64 {
    post_id(&post.draft)
}

/// Posts within bounds of ids and times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    above_id: u64,
    below_id: u64,
    pub(super) from_us: i64,
    pub(super) until_us: i64,
}

impl Bounds {
    pub(super) fn read(ask: &Ask<'_>) -> Result<Self, Answer> {
        Ok(Self {
            above_id: ask.id_bound("since_id")?.unwrap_or(0),
            below_id: ask.id_bound("until_id")?.unwrap_or(u64::MAX),
            from_us: ask.time("start_time")?.unwrap_or(i64::MIN),
            until_us: ask.time("end_time")?.unwrap_or(i64::MAX),
        })
    }

    pub(super) fn hold(&self, post: &Post) -> bool {
        let (id, at_us) = (id_of(post), post.draft.at_us);
        id > self.above_id && id < self.below_id && (self.from_us..self.until_us).contains(&at_us)
    }
}

impl View<'_> {
    pub(super) fn follows(
        &self,
        route: Route<'_>,
        ask: &Ask<'_>,
        id: &str,
    ) -> Result<Answer, Answer> {
        let user = self.open_user(id)?;
        let edges = self.edges(route, user);
        let page = Page::cut(&edges, ask, self.spoil, |edge: &Follow| edge.id);
        let other = |edge: &Follow| {
            if edge.source == user {
                edge.target
            } else {
                edge.source
            }
        };
        let users: Vec<u64> = page.items.iter().map(other).collect();
        let mut answer = self.user_page(ask, &users, page.meta, page.spoilt);
        // An entry in a list of relations is a thing of its own on the page of prices.
        for thing in &mut answer.billed {
            thing.kind = route.query();
            thing.id = thing.id.map(|other| user << 32 | other);
        }
        Ok(answer)
    }

    fn edges(&self, route: Route<'_>, user: u64) -> Vec<Follow> {
        if matches!(route, Route::Following(_)) {
            self.world.following_at(user, self.now)
        } else {
            self.world.followers_at(user, self.now)
        }
    }

    pub(super) fn user_page(
        &self,
        ask: &Ask<'_>,
        users: &[u64],
        meta: Value,
        spoilt: Option<Spoil>,
    ) -> Answer {
        Answer {
            spoilt,
            ..Draft::new(*self, ask).users(users, Some(meta))
        }
    }

    pub(super) fn post_page(&self, ask: &Ask<'_>, list: &[Post]) -> Answer {
        let mut page = Page::cut(list, ask, self.spoil, id_of);
        let ids = || page.items.iter().map(id_of);
        if let (Some(newest), Some(oldest)) = (ids().max(), ids().min()) {
            page.meta["newest_id"] = json!(newest.to_string());
            page.meta["oldest_id"] = json!(oldest.to_string());
        }
        Draft::new(*self, ask).posts(&page.items, Some(page.meta), page.spoilt)
    }

    pub(super) fn timeline(&self, ask: &Ask<'_>, id: &str) -> Result<Answer, Answer> {
        let user = self.open_user(id)?;
        Ok(self.post_page(ask, &self.timeline_list(ask, user)?))
    }

    fn timeline_list(&self, ask: &Ask<'_>, user: u64) -> Result<Vec<Post>, Answer> {
        let bounds = Bounds::read(ask)?;
        let excluded: Vec<&str> = ask
            .get("exclude")
            .map_or_else(Vec::new, |text| text.split(',').collect());
        if let Some(wrong) = excluded
            .iter()
            .find(|name| !["replies", "retweets"].contains(name))
        {
            let message = format!(
                "The `exclude` query parameter value [{wrong}] is not one of [replies,retweets]"
            );
            return Err(ask::refused("exclude", wrong, &message));
        }
        let is_wanted = |post: &Post| {
            let name = match post.link {
                Link::Reply(_) => "replies",
                Link::Repost(_) => "retweets",
                Link::None => return true,
            };
            !excluded.contains(&name)
        };
        let newest = self.world.timeline_down(user, self.now, NO_BOUND);
        let newest = newest.filter(|post| self.shows(post)).take(TIMELINE_MAX);
        Ok(newest
            .filter(|post| bounds.hold(post) && is_wanted(post))
            .collect())
    }

    pub(super) fn mentions(&self, ask: &Ask<'_>, id: &str) -> Result<Answer, Answer> {
        let user = self.open_user(id)?;
        let bounds = Bounds::read(ask)?;
        let mut posts = self.posts_since(i64::MIN, |post| {
            post.user() != user
                && !post.is_repost()
                && self.world.mentions_and_tags(post).0.contains(&user)
        });
        posts.truncate(MENTIONS_MAX);
        posts.retain(|post| bounds.hold(post));
        Ok(self.post_page(ask, &posts))
    }

    /// Likes are private: only one's own are shown.
    pub(super) fn liked(&self, ask: &Ask<'_>, id: &str) -> Result<Answer, Answer> {
        let user = self.path_user(id)?;
        if self.owner_account() != Some(user) {
            return Err(problem::forbidden());
        }
        let mut liked: Vec<(u64, Post)> = Vec::new();
        for (day, place, target) in self.world.liked_by(user, self.now) {
            let found = self.world.post_with_id(target.id());
            let found = found.filter(|post| self.shows(post));
            let order = ((day as u64) << 8) | place as u64;
            liked.extend(found.map(|post| (order, post)));
        }
        liked.reverse();
        let page = Page::cut(&liked, ask, self.spoil, |&(order, _)| order);
        let posts: Vec<Post> = page.items.iter().map(|&(_, post)| post).collect();
        Ok(Draft::new(*self, ask).posts(&posts, Some(page.meta), page.spoilt))
    }

    /// The post that a path names.
    fn path_post(&self, id: &str) -> Result<Post, Answer> {
        let number = ask::id("id", id)?;
        let found = self.shown_post(number);
        found.map_err(|hidden| post_named("id", id).answer(hidden))
    }

    fn reposts_of(&self, post: &Post) -> Vec<Post> {
        let mut reposts = self.world.reposts(post, self.now);
        reposts.retain(|repost| self.shows(repost));
        reposts.sort_unstable_by_key(|repost| std::cmp::Reverse(id_of(repost)));
        reposts
    }

    pub(super) fn reposted_by(&self, ask: &Ask<'_>, id: &str) -> Result<Answer, Answer> {
        let reposts = self.reposts_of(&self.path_post(id)?);
        let page = Page::cut(&reposts, ask, self.spoil, id_of);
        let users: Vec<u64> = page.items.iter().map(Post::user).collect();
        Ok(self.user_page(ask, &users, page.meta, page.spoilt))
    }

    pub(super) fn reposts(&self, ask: &Ask<'_>, id: &str) -> Result<Answer, Answer> {
        let reposts = self.reposts_of(&self.path_post(id)?);
        Ok(self.post_page(ask, &reposts))
    }

    /// Nobody quotes anything in this world.
    pub(super) fn quotes(&self, ask: &Ask<'_>, id: &str) -> Result<Answer, Answer> {
        self.path_post(id)?;
        Ok(self.post_page(ask, &[]))
    }

    /// Likes are private: only the author sees them.
    pub(super) fn liking_users(&self, ask: &Ask<'_>, id: &str) -> Result<Answer, Answer> {
        let post = self.path_post(id)?;
        if self.owner_account() != Some(post.user()) {
            return Err(problem::forbidden());
        }
        let likes = self.world.likes_at(&post, self.now);
        let page = Page::cut(&likes, ask, self.spoil, Like::id);
        let users: Vec<u64> = page.items.iter().map(|like| like.user).collect();
        Ok(self.user_page(ask, &users, page.meta, page.spoilt))
    }

    pub(super) fn walked_page(&self, route: Route<'_>, ask: &Ask<'_>) -> Option<Walked> {
        let user = self.open_user(route.subject()).ok()?;
        match route {
            Route::Timeline(_) => {
                let list = self.timeline_list(ask, user).ok()?;
                let (page, before) = page_and_before(&list, ask, id_of);
                Some(Walked::Posts { page, before })
            }
            Route::Following(_) | Route::Followers(_) => {
                let list = self.edges(route, user);
                let (page, before) = page_and_before(&list, ask, |edge: &Follow| edge.id);
                Some(Walked::Follows { page, before })
            }
            _ => None,
        }
    }
}
