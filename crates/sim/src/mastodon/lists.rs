//! The answer to each route.

use serde::Serialize;
use serde_json::json;

use super::answer::{Answer, Problem};
use super::entities::Status;
use super::paging::{Bounds, LinkBase, PageEnds};
use super::render::Renderer;
use super::route::{Params, Route};
use crate::HOST;
use crate::world::{Follow, Link, Post, Standing, ThreadLimits, ids};

const ACCOUNTS_PER_BATCH_MAX: usize = 40;
const STATUSES_PER_BATCH_MAX: usize = 20;
const ACCOUNTS_PER_PAGE: usize = 40;
const STATUSES_PER_PAGE: usize = 20;
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
}

#[derive(Debug, Serialize)]
struct Context {
    ancestors: Vec<Status>,
    descendants: Vec<Status>,
}

impl Renderer<'_> {
    pub(crate) fn answer(&self, asking: Asking<'_>) -> Answer {
        self.try_answer(asking).unwrap_or_else(Answer::from)
    }

    fn try_answer(&self, asking: Asking<'_>) -> Result<Answer, Problem> {
        match asking.route {
            Route::Lookup { acct } => self.lookup(acct),
            Route::Account { id } => self.account_by_id(id),
            Route::Accounts { ids } => self.accounts_by_ids(ids),
            Route::Following { id } => {
                let user = self.present_user(id)?;
                let edges = self.world.following_at(user, self.at_us);
                self.follow_page(asking, edges, |edge| edge.target)
            }
            Route::Followers { id } => {
                let user = self.present_user(id)?;
                let edges = self.world.followers_at(user, self.at_us);
                self.follow_page(asking, edges, |edge| edge.source)
            }
            Route::Timeline { id } => self.timeline(asking, id),
            Route::Status { id } => Ok(Answer::json(&self.status(&self.post(id)?)?)),
            Route::Statuses { ids } => self.statuses_by_ids(ids),
            Route::Context { id } => self.context(id),
            Route::RebloggedBy { id } => {
                let reposts = self.world.reposts(&self.original(id)?, self.at_us);
                self.account_page(asking, reposts, Post::id, Post::user)
            }
            Route::FavouritedBy { id } => {
                let likes = self.world.likes_at(&self.original(id)?, self.at_us);
                self.account_page(asking, likes, crate::world::Like::id, |like| like.user)
            }
            Route::Instance => Ok(Answer::json(&self.instance())),
            Route::Unknown => Err(Problem::NoSuchRoute),
        }
    }

    fn lookup(&self, acct: &str) -> Result<Answer, Problem> {
        let handle = acct.strip_prefix('@').unwrap_or(acct);
        let username = match handle.split_once('@') {
            Some((username, host)) if host.eq_ignore_ascii_case(HOST) => username,
            Some(_) => return Err(Problem::NoSuchRecord),
            None => handle,
        };
        let user = self
            .world
            .user_named(username, self.at_us)
            .ok_or(Problem::NoSuchRecord)?;
        Ok(Answer::json(&self.account(self.present(user)?)?))
    }

    fn account_by_id(&self, id: &str) -> Result<Answer, Problem> {
        Ok(Answer::json(&self.account(self.present_user(id)?)?))
    }

    /// Ids that stand for nobody, or nobody any more, are left out without a word.
    fn accounts_by_ids(&self, ids: &[String]) -> Result<Answer, Problem> {
        let found = sorted_ids(ids, ACCOUNTS_PER_BATCH_MAX)?
            .into_iter()
            .filter_map(|id| self.world.user_with_id(id))
            .filter(|&user| self.world.standing(user, self.at_us) != Standing::Gone)
            .map(|user| self.account(user))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Answer::json(&found))
    }

    fn statuses_by_ids(&self, ids: &[String]) -> Result<Answer, Problem> {
        let found: Vec<Post> = sorted_ids(ids, STATUSES_PER_BATCH_MAX)?
            .into_iter()
            .filter_map(|id| self.world.visible_post(id, self.at_us))
            .collect();
        Ok(Answer::json(&self.statuses(&found)?))
    }

    fn follow_page(
        &self,
        asking: Asking<'_>,
        edges: Vec<Follow>,
        other_end: impl Fn(&Follow) -> u64,
    ) -> Result<Answer, Problem> {
        self.account_page(asking, edges, |edge| edge.id, other_end)
    }

    fn account_page<T>(
        &self,
        asking: Asking<'_>,
        list: Vec<T>,
        id_of: impl Fn(&T) -> u64,
        user_of: impl Fn(&T) -> u64,
    ) -> Result<Answer, Problem> {
        let bounds = Bounds::read(asking.params, ACCOUNTS_PER_PAGE);
        let page = bounds.cut(list, &id_of);
        let accounts = page
            .iter()
            .map(|item| self.account(user_of(item)))
            .collect::<Result<Vec<_>, _>>()?;
        let base = LinkBase {
            url: asking.url,
            params: asking.params,
            newer_name: "since_id",
        };
        let link = base.header(PageEnds::of(&page, id_of), bounds.limit);
        Ok(Answer::json(&accounts).with_link(link))
    }

    fn timeline(&self, asking: Asking<'_>, id: &str) -> Result<Answer, Problem> {
        let user = self.present_user(id)?;
        let bounds = Bounds::read(asking.params, STATUSES_PER_PAGE);
        let page = self.timeline_page(user, bounds, asking.params);
        let base = LinkBase {
            url: asking.url,
            params: asking.params,
            newer_name: "min_id",
        };
        let link = base.header(PageEnds::of(&page, Post::id), bounds.limit);
        Ok(Answer::json(&self.statuses(&page)?).with_link(link))
    }

    /// A page of posts, newest first, reading no more of the history than it needs.
    fn timeline_page(&self, user: u64, bounds: Bounds, params: &Params) -> Vec<Post> {
        // Nobody in this world pins posts.
        if params.is_true("pinned") || !self.world.is_active(user, self.at_us) {
            return Vec::new();
        }
        let below_id = bounds.max_id.unwrap_or(i64::MAX as u64);
        if let Some(above_id) = bounds.min_id {
            let mut page: Vec<Post> = self
                .world
                .timeline_up(user, self.at_us, above_id)
                .take_while(|post| post.id() < below_id)
                .filter(|post| self.is_wanted(post, params))
                .take(bounds.limit)
                .collect();
            page.reverse();
            return page;
        }
        let above_id = bounds.since_id.unwrap_or(0);
        self.world
            .timeline_down(user, self.at_us, below_id)
            .take_while(|post| post.id() > above_id)
            .filter(|post| self.is_wanted(post, params))
            .take(bounds.limit)
            .collect()
    }

    fn is_wanted(&self, post: &Post, params: &Params) -> bool {
        let is_reply = matches!(post.link, Link::Reply(_));
        if (is_reply && params.is_true("exclude_replies"))
            || (post.is_repost() && params.is_true("exclude_reblogs"))
        {
            return false;
        }
        let tagged = params.get("tagged").map(str::to_lowercase);
        if tagged.is_none() && !params.is_true("only_media") {
            return true;
        }
        let content = self.world.content(post, self.at_us);
        tagged.is_none_or(|tag| content.tags.contains(&tag.as_str()))
            && (!content.media.is_empty() || !params.is_true("only_media"))
    }

    fn context(&self, id: &str) -> Result<Answer, Problem> {
        let post = self.post(id)?;
        let limits = if self.is_signed_in {
            THREAD_SIGNED_IN
        } else {
            THREAD_ANONYMOUS
        };
        let ancestors = self.world.ancestors(&post, self.at_us, limits.ancestors);
        let descendants = self.world.descendants(&post, self.at_us, limits);
        Ok(Answer::json(&Context {
            ancestors: self.statuses(&ancestors)?,
            descendants: self.statuses(&descendants)?,
        }))
    }

    fn instance(&self) -> serde_json::Value {
        json!({
            "domain": HOST,
            "title": "A synthetic network",
            "version": "4.7.3",
            "source_url": "https://github.com/mastodon/mastodon",
            "description": "",
            "usage": { "users": { "active_month": self.world.users() } },
            "languages": ["en"],
            "configuration": {
                "accounts": { "max_featured_tags": 10, "max_pinned_statuses": 5 },
                "statuses": { "max_characters": 500, "max_media_attachments": 4 },
                "limited_federation": false,
            },
            "registrations": { "enabled": false, "approval_required": false, "message": null },
            "api_versions": { "mastodon": 11 },
            "contact": { "email": "", "account": null },
            "rules": [],
        })
    }

    fn present_user(&self, id: &str) -> Result<u64, Problem> {
        let user = ids::parse(id).and_then(|id| self.world.user_with_id(id));
        self.present(user.ok_or(Problem::NoSuchRecord)?)
    }

    /// Nothing is told of an account that was deleted. One that is only suspended is still named,
    /// and its lists are empty.
    fn present(&self, user: u64) -> Result<u64, Problem> {
        match self.world.standing(user, self.at_us) {
            Standing::Gone => Err(Problem::Gone),
            Standing::Active | Standing::Suspended => Ok(user),
        }
    }

    fn post(&self, id: &str) -> Result<Post, Problem> {
        ids::parse(id)
            .and_then(|id| self.world.visible_post(id, self.at_us))
            .ok_or(Problem::NoSuchRecord)
    }

    /// Reactions to a repost are those of what it repeats.
    fn original(&self, id: &str) -> Result<Post, Problem> {
        let post = self.post(id)?;
        match post.link {
            Link::Repost(target) => self
                .world
                .visible_post(target.id(), self.at_us)
                .ok_or(Problem::NoSuchRecord),
            Link::None | Link::Reply(_) => Ok(post),
        }
    }
}

/// Ids of a batch in the order in which the network's database gives its rows.
fn sorted_ids(ids: &[String], ids_max: usize) -> Result<Vec<u64>, Problem> {
    if ids.len() > ids_max {
        return Err(Problem::TooManyIds);
    }
    let mut numbers: Vec<u64> = ids.iter().filter_map(|id| ids::parse(id)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}
