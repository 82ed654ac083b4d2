//! Searching for posts of seven days, or of all times, and for accounts.
//!
//! Which users are found in a large world: `world/sample.rs`.

use super::ask::{self, Ask};
use super::identity::{post_id, post_with_id, time_of};
use super::lists::{Bounds, Page};
use super::matching::Query;
use super::route::Route;
use crate::answer::Answer;
use crate::dialect::View;
use crate::world::Post;
use crate::world::time::{DAY_US, SECOND_US, day_of, iso_ms};

const RECENT_US: i64 = 7 * DAY_US;
/// The latest seconds are not found yet.
const DELAY_US: i64 = 10 * SECOND_US;
const RECENT_LETTERS_MAX: usize = 512;
const ALL_LETTERS_MAX: usize = 1_024;

impl View<'_> {
    pub(super) fn search(&self, route: Route<'_>, ask: &Ask<'_>) -> Result<Answer, Answer> {
        if let Some(order) = ask.get("sort_order")
            && !["recency", "relevancy"].contains(&order)
        {
            let message = format!(
                "The `sort_order` query parameter value [{order}] is not one of [recency,relevancy]"
            );
            return Err(ask::refused("sort_order", order, &message));
        }
        let query = read_query(route, ask)?;
        let bounds = self.search_bounds(route, ask)?;
        let mut posts = self.posts_found(&query, bounds.from_us);
        posts.retain(|post| bounds.hold(post));
        Ok(self.post_page(ask, &posts))
    }

    /// What a search covers; what lies too far back is refused.
    pub(super) fn search_bounds(&self, route: Route<'_>, ask: &Ask<'_>) -> Result<Bounds, Answer> {
        let mut bounds = Bounds::read(ask)?;
        let newest_us = self.now.at_us - DELAY_US;
        if let Some(text) = ask.get("end_time")
            && bounds.until_us > newest_us
        {
            let message = format!(
                "Invalid 'end_time':'{text}'. 'end_time' must be a minimum of 10 seconds prior to \
                 the request time."
            );
            return Err(ask::refused("end_time", text, &message));
        }
        bounds.until_us = bounds.until_us.min(newest_us);
        let is_recent = matches!(route, Route::SearchRecent | Route::CountsRecent);
        if !is_recent {
            // All times only if somebody says so; else the last 30 days.
            if ask.get("start_time").is_none() && ask.get("since_id").is_none() {
                bounds.from_us = self.now.at_us - 30 * DAY_US;
            }
            return Ok(bounds);
        }
        let oldest_us = self.now.at_us - RECENT_US;
        if let Some(text) = ask.get("start_time")
            && bounds.from_us < oldest_us
        {
            let message = format!(
                "Invalid 'start_time':'{text}'. 'start_time' must be on or after {}",
                iso_ms(oldest_us)
            );
            return Err(ask::refused("start_time", text, &message));
        }
        if let Some(text) = ask.get("since_id")
            && time_of(ask.id_bound("since_id")?.unwrap_or(0)) < oldest_us
        {
            let message = format!(
                "'since_id' must be a tweet id created after {}. Please use a 'since_id' that is \
                 larger than {text}",
                iso_ms(oldest_us)
            );
            return Err(ask::refused("since_id", text, &message));
        }
        bounds.from_us = bounds.from_us.max(oldest_us);
        Ok(bounds)
    }

    /// Posts that a query is true of, newest first.
    pub(super) fn posts_found(&self, query: &Query, from_us: i64) -> Vec<Post> {
        let Some(threads) = query.threads() else {
            return self.posts_since(from_us, |post| query.is_true_of(self, post));
        };
        // Nothing but parts of conversations is asked for: nobody else's posts are looked at.
        let mut posts: Vec<Post> = Vec::new();
        for id in threads {
            if let Some(post) = post_with_id(self.world, id) {
                posts.push(post);
                posts.extend(self.answers(&post, true));
            }
        }
        posts.retain(|post| self.shows(post) && query.is_true_of(self, post));
        sort(&mut posts);
        posts
    }

    /// Posts that everybody sees and somebody wants, newest first.
    pub(super) fn posts_since(&self, from_us: i64, is_wanted: impl Fn(&Post) -> bool) -> Vec<Post> {
        let first_day = day_of(from_us).max(self.world.history_start_day());
        let mut posts = Vec::new();
        for user in self.world.sampled_users() {
            if self.is_protected(user) {
                continue;
            }
            for day in first_day..=day_of(self.now.at_us) {
                let written = self.world.posts(user, day).into_iter();
                posts.extend(written.filter(|post| self.shows(post) && is_wanted(post)));
            }
        }
        sort(&mut posts);
        posts
    }

    pub(super) fn users_search(&self, ask: &Ask<'_>) -> Result<Answer, Answer> {
        let text = ask.get("query").unwrap_or_default();
        if text.is_empty() {
            let message = "The `query` query parameter can not be empty".to_owned();
            return Err(ask::refused("query", text, &message));
        }
        let beginning = text.to_lowercase();
        let found = self.world.users_named_like(&beginning, self.now);
        // The most followed first, which is where a page can go on.
        let place = |user: &u64| u64::MAX - 1 - self.world.place_by_fame(*user);
        let found: Vec<u64> = found.collect();
        let page = Page::cut(&found, ask, self.spoil, place);
        Ok(self.user_page(ask, &page.items, page.meta, page.spoilt))
    }
}

fn sort(posts: &mut Vec<Post>) {
    posts.sort_unstable_by_key(|post| std::cmp::Reverse(post_id(&post.draft)));
    posts.dedup();
}

pub(super) fn read_query(route: Route<'_>, ask: &Ask<'_>) -> Result<Query, Answer> {
    let text = ask.get("query").unwrap_or_default();
    let refused = |message: String| ask::refused("query", text, &message);
    let letters_max = if matches!(route, Route::SearchRecent | Route::CountsRecent) {
        RECENT_LETTERS_MAX
    } else {
        ALL_LETTERS_MAX
    };
    if text.trim().is_empty() {
        return Err(refused(
            "The `query` query parameter can not be empty".to_owned(),
        ));
    }
    let letters = text.chars().count();
    if letters > letters_max {
        return Err(refused(format!(
            "The `query` query parameter value length [{letters}] is not between 1 and \
             {letters_max}"
        )));
    }
    Query::read(text).map_err(|problem| {
        refused(format!(
            "There were errors processing your request: {problem} (at position 1)"
        ))
    })
}
