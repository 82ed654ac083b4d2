//! The answer to each route.

use serde::Serialize;
use serde_json::json;

use super::answer::Problem;
use super::entities::Status;
use super::instance::rules;
use super::paging::{Bounds, Page, is_paging};
use super::render::Renderer;
use super::route::Route;
use crate::answer::Answer;
use crate::faults::{List, Walk, Walked};
use crate::params::Params;
use crate::spoil::{OVERLAP, Spoil};
use crate::world::{Follow, Link, Post, Standing, ThreadLimits};

const ACCOUNTS_PER_BATCH_MAX: usize = 40;
const STATUSES_PER_BATCH_MAX: usize = 20;
pub(super) const ACCOUNTS_PER_PAGE: usize = 40;
pub(super) const STATUSES_PER_PAGE: usize = 20;
const THREAD_ANONYMOUS: ThreadLimits = ThreadLimits {
    ancestors: 40,
    descendants: 60,
    depth: 20,
};
const THREAD_SIGNED_IN: ThreadLimits = ThreadLimits {
    ancestors: 4_096,
    descendants: 4_096,
    depth: 4_096,
};

/// A request as far as an answer depends on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) route: &'a Route,
    pub(crate) params: &'a Params,
    /// Scheme, host and path, for the links to other pages.
    pub(crate) url: &'a str,
    /// How the page is to be spoilt.
    pub(crate) spoil: Option<Spoil>,
}

#[derive(Debug, Serialize)]
struct Context {
    ancestors: Vec<Status>,
    descendants: Vec<Status>,
}

impl Renderer<'_> {
    pub(crate) fn answer(&self, asking: Asking<'_>) -> Answer {
        let answer = match self.refused(asking.route) {
            Some(refused) => refused,
            None => self.try_answer(asking).unwrap_or_else(Answer::from),
        };
        match self.instance {
            Some(instance) => instance.in_its_own_way(self, asking.route, answer),
            None => answer,
        }
    }

    fn try_answer(&self, asking: Asking<'_>) -> Result<Answer, Problem> {
        match asking.route {
            Route::Lookup { acct } => self.lookup(acct),
            Route::Account { id } => self.account_by_id(id),
            Route::Accounts { ids } => self.accounts_by_ids(ids),
            Route::Following { id } => {
                let edges = self.follows(asking.route, self.present_user(id)?);
                self.account_page(asking, edges, |edge| edge.id, |edge| edge.target)
            }
            Route::Followers { id } => {
                let edges = self.follows(asking.route, self.present_user(id)?);
                self.account_page(asking, edges, |edge| edge.id, |edge| edge.source)
            }
            Route::Timeline { id } => self.timeline(asking, id),
            Route::FeaturedTags { id } => self.featured_tags(id),
            Route::TagTimeline { tag } => self.tag_timeline(asking, tag),
            Route::Search { query } => self.search(query, asking.params),
            Route::Status { id } => Ok(Answer::json(&self.status(&self.post(id)?)?)),
            Route::Statuses { ids } => self.statuses_by_ids(ids),
            Route::Context { id } => self.context(id),
            Route::RebloggedBy { id } => {
                let post = self.original(id)?;
                let mut reposts = self.world.reposts(&post, self.now);
                reposts.retain(|repost| self.is_involved(post.user(), repost.user()));
                self.account_page(asking, reposts, Post::id, Post::user)
            }
            Route::FavouritedBy { id } => {
                let post = self.original(id)?;
                let mut likes = self.world.likes_at(&post, self.now);
                likes.retain(|like| self.is_involved(post.user(), like.user));
                self.account_page(asking, likes, crate::world::Like::id, |like| like.user)
            }
            Route::Instance => Ok(Answer::json(&self.instance())),
            Route::InstanceV1 => Ok(Answer::json(&self.instance_before_4())),
            Route::Rules => Ok(Answer::json(&rules())),
            Route::WebFinger { .. }
            | Route::NodeInfoLinks
            | Route::NodeInfo { .. }
            | Route::Peers => match (self.instance, asking.route) {
                (Some(instance), route) => instance.about_itself(self, route),
                // Nobody else is there.
                (None, Route::Peers) => Ok(Answer::json(&json!([]))),
                (None, _) => Err(Problem::NoSuchRoute),
            },
            Route::Loop => Ok(Answer::redirect(other_side(asking.url))),
            // What a caller has left is not a matter of the world.
            Route::Limits | Route::Unknown => Err(Problem::NoSuchRoute),
        }
    }

    fn lookup(&self, acct: &str) -> Result<Answer, Problem> {
        let user = self.user_by_handle(acct).ok_or(Problem::NoSuchRecord)?;
        Ok(Answer::json(&self.account(self.present(user)?)?))
    }

    fn account_by_id(&self, id: &str) -> Result<Answer, Problem> {
        Ok(Answer::json(&self.account(self.present_user(id)?)?))
    }

    /// Ids that stand for nobody, or nobody any more, are left out without a word.
    fn accounts_by_ids(&self, ids: &[String]) -> Result<Answer, Problem> {
        let found = sorted_ids(ids, ACCOUNTS_PER_BATCH_MAX)?
            .into_iter()
            .filter_map(|id| self.user_with_id(id))
            .filter(|&user| self.world.standing(user, self.now) != Standing::Gone)
            .map(|user| self.account(user))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Answer::json(&found))
    }

    fn statuses_by_ids(&self, ids: &[String]) -> Result<Answer, Problem> {
        let found: Vec<Post> = sorted_ids(ids, STATUSES_PER_BATCH_MAX)?
            .into_iter()
            .filter_map(|id| self.post(id).ok())
            .collect();
        Ok(Answer::json(&self.statuses(&found)?))
    }

    /// A user's list of follows, newest first. The lists of those who hide them are empty to
    /// everybody.
    fn follows(&self, route: &Route, user: u64) -> Vec<Follow> {
        if self.hides_lists(user) {
            return Vec::new();
        }
        let mut follows = match route {
            Route::Following { .. } => self.world.following_at(user, self.now),
            _ => self.world.followers_at(user, self.now),
        };
        follows.retain(|edge| self.is_involved(edge.source, edge.target));
        follows
    }

    /// Whose list is walked with a call, if one is.
    pub(crate) fn walk(&self, asking: Asking<'_>) -> Option<Walk> {
        let list = match asking.route {
            Route::Following { .. } => List::Following,
            Route::Followers { .. } => List::Followers,
            Route::Timeline { .. } => List::Timeline,
            _ => return None,
        };
        Some(Walk {
            user: self.user_with_id(&asking.route.subject())?,
            list,
            is_later_page: is_paging(asking.params),
        })
    }

    /// What this page of a user's list and the one before show, as far as faults need to know.
    pub(crate) fn walked(&self, asking: Asking<'_>) -> Option<Walked> {
        let user = self.present_user(&asking.route.subject()).ok()?;
        if matches!(asking.route, Route::Timeline { .. }) {
            let bounds = self.bounds(asking.params, STATUSES_PER_PAGE);
            return Some(Walked::Posts {
                page: self.timeline_page(user, bounds, asking.params),
                before: self.timeline_before(user, bounds, asking.params),
            });
        }
        let bounds = self.bounds(asking.params, ACCOUNTS_PER_PAGE);
        let edges = self.follows(asking.route, user);
        Some(Walked::Follows {
            before: bounds.before(&edges, |edge| edge.id),
            page: bounds.cut(edges, |edge| edge.id),
        })
    }

    fn account_page<T: Clone>(
        &self,
        asking: Asking<'_>,
        list: Vec<T>,
        id_of: impl Fn(&T) -> u64,
        user_of: impl Fn(&T) -> u64,
    ) -> Result<Answer, Problem> {
        let bounds = self.bounds(asking.params, ACCOUNTS_PER_PAGE);
        let before = asking.spoil.map(|_| bounds.before(&list, &id_of));
        let next_from_count = self.next_from_count(bounds);
        let page = Page::new(bounds.cut(list, &id_of), next_from_count, &id_of).spoil(
            asking.spoil,
            bounds,
            || before.unwrap_or_default(),
            &id_of,
        );
        let accounts = page
            .items
            .iter()
            .map(|item| self.account(user_of(item)))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Answer::page(
            &accounts,
            &page,
            &self.links(asking, "since_id"),
        ))
    }

    fn timeline(&self, asking: Asking<'_>, id: &str) -> Result<Answer, Problem> {
        let user = self.present_user(id)?;
        let bounds = self.bounds(asking.params, STATUSES_PER_PAGE);
        let page = Page::new(
            self.timeline_page(user, bounds, asking.params),
            self.next_from_count(bounds),
            Post::id,
        );
        let before = || self.timeline_before(user, bounds, asking.params);
        self.status_page(asking, &page.spoil(asking.spoil, bounds, before, Post::id))
    }

    pub(super) fn status_page(
        &self,
        asking: Asking<'_>,
        page: &Page<Post>,
    ) -> Result<Answer, Problem> {
        let statuses = self.statuses(&page.items)?;
        Ok(Answer::page(&statuses, page, &self.links(asking, "min_id")))
    }

    fn timeline_before(&self, user: u64, bounds: Bounds, params: &Params) -> Vec<Post> {
        let reception = self.reception(user);
        posts_before(
            bounds,
            |post| self.is_received(post, reception) && self.is_wanted(post, params),
            |below_id| self.world.timeline_down(user, self.now, below_id),
            |above_id| self.world.timeline_up(user, self.now, above_id),
        )
    }

    fn timeline_page(&self, user: u64, bounds: Bounds, params: &Params) -> Vec<Post> {
        // Nobody in this world pins posts.
        if params.is_true("pinned") || !self.world.is_active(user, self.now) {
            return Vec::new();
        }
        let reception = self.reception(user);
        cut_posts(
            bounds,
            |post| self.is_received(post, reception) && self.is_wanted(post, params),
            |below_id| self.world.timeline_down(user, self.now, below_id),
            |above_id| self.world.timeline_up(user, self.now, above_id),
        )
    }

    fn is_wanted(&self, post: &Post, params: &Params) -> bool {
        let is_reply = matches!(post.link, Link::Reply(_));
        if (is_reply && params.is_true("exclude_replies"))
            || (post.is_repost() && params.is_true("exclude_reblogs"))
        {
            return false;
        }
        let tagged = params.get("tagged").map(str::to_lowercase);
        tagged.is_none_or(|tag| self.world.post_tags(post).contains(&tag.as_str()))
            && self.has_wanted_media(post, params)
    }

    pub(super) fn has_wanted_media(&self, post: &Post, params: &Params) -> bool {
        !params.is_true("only_media") || !self.world.content(post, self.now.at_us).media.is_empty()
    }

    fn context(&self, id: &str) -> Result<Answer, Problem> {
        let post = self.post(id)?;
        let limits = if self.is_signed_in {
            THREAD_SIGNED_IN
        } else {
            THREAD_ANONYMOUS
        };
        let mut ancestors = self.world.ancestors(&post, self.now, limits.ancestors);
        let mut descendants = self.world.descendants(&post, self.now, limits);
        // The home of a post hears of its whole thread, others of what reached them.
        if !self.is_own(post.user()) {
            ancestors.retain(|other| self.shows(other));
            descendants.retain(|other| self.shows(other));
        }
        Ok(Answer::json(&Context {
            ancestors: self.statuses(&ancestors)?,
            descendants: self.statuses(&descendants)?,
        }))
    }

    pub(super) fn present_user(&self, id: &str) -> Result<u64, Problem> {
        self.present(self.user_with_id(id).ok_or(Problem::NoSuchRecord)?)
    }

    /// Nothing is told of an account that was deleted. One that is only suspended is still named,
    /// and its lists are empty.
    fn present(&self, user: u64) -> Result<u64, Problem> {
        match self.world.standing(user, self.now) {
            Standing::Gone if !self.names_the_deleted() => Err(Problem::Gone),
            Standing::Active | Standing::Suspended | Standing::Gone => Ok(user),
        }
    }

    fn post(&self, id: &str) -> Result<Post, Problem> {
        self.world
            .item_with_local_id(self.home(), id)
            .and_then(|id| self.world.visible_post(id, self.now))
            .ok_or(Problem::NoSuchRecord)
    }

    /// Reactions to a repost are those of what it repeats.
    fn original(&self, id: &str) -> Result<Post, Problem> {
        let post = self.post(id)?;
        match post.link {
            Link::Repost(target) => self
                .world
                .visible_post(target.id(), self.now)
                .ok_or(Problem::NoSuchRecord),
            Link::None | Link::Reply(_) => Ok(post),
        }
    }
}

/// From each of two pages to the other.
pub(crate) fn other_side(url: &str) -> String {
    match url.strip_suffix("/loop/1") {
        Some(base) => format!("{base}/loop/2"),
        None => url
            .rsplit_once('/')
            .map_or_else(String::new, |(base, _)| format!("{base}/1")),
    }
}

/// A page of posts, newest first, reading no more of the history than it needs. The walks are given
/// by functions from a bound to the posts below it, newest first, or above it, oldest first.
pub(super) fn cut_posts<Down, Up>(
    bounds: Bounds,
    is_wanted: impl Fn(&Post) -> bool,
    down: impl FnOnce(u64) -> Down,
    up: impl FnOnce(u64) -> Up,
) -> Vec<Post>
where
    Down: Iterator<Item = Post>,
    Up: Iterator<Item = Post>,
{
    let below_id = bounds.max_id.unwrap_or(i64::MAX as u64);
    if let Some(above_id) = bounds.min_id {
        let mut page: Vec<Post> = up(above_id)
            .take_while(|post| post.id() < below_id)
            .filter(is_wanted)
            .take(bounds.limit)
            .collect();
        page.reverse();
        return page;
    }
    let above_id = bounds.since_id.unwrap_or(0);
    down(below_id)
        .take_while(|post| post.id() > above_id)
        .filter(is_wanted)
        .take(bounds.limit)
        .collect()
}

/// The posts that a walk saw just before a page, newest first; see [`Bounds::before`].
pub(super) fn posts_before<Down, Up>(
    bounds: Bounds,
    is_wanted: impl Fn(&Post) -> bool,
    down: impl FnOnce(u64) -> Down,
    up: impl FnOnce(u64) -> Up,
) -> Vec<Post>
where
    Down: Iterator<Item = Post>,
    Up: Iterator<Item = Post>,
{
    if let Some(min_id) = bounds.min_id {
        let older = down(min_id.saturating_add(1)).filter(is_wanted);
        return older.take(OVERLAP).collect();
    }
    let Some(max_id) = bounds.max_id else {
        return Vec::new();
    };
    let newer = up(max_id.saturating_sub(1)).filter(is_wanted);
    let mut before: Vec<Post> = newer.take(OVERLAP).collect();
    before.reverse();
    before
}

/// Ids of a batch in the order in which the network's database gives its rows.
fn sorted_ids(ids: &[String], ids_max: usize) -> Result<Vec<&str>, Problem> {
    if ids.len() > ids_max {
        return Err(Problem::TooManyIds);
    }
    let mut texts: Vec<&str> = ids.iter().map(String::as_str).collect();
    // Ids have no leading zeros, so that shorter ones are less.
    texts.sort_unstable_by_key(|text| (text.len(), *text));
    texts.dedup();
    Ok(texts)
}
