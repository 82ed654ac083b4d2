//! Lists: newest first, a thousand things at the most, by `after`.

use serde_json::{Value, json};

use super::names::{self, Subreddit, base36, fullname, is_comment};
use super::{Problem, Route, Teller, route};
use crate::answer::Answer;
use crate::dialect::{Slice, slice};
use crate::faults::Walked;
use crate::spoil::OVERLAP;
use crate::world::Post;

const ITEMS_MAX: usize = 1_000;
const PER_PAGE: usize = 25;
const PER_PAGE_MAX: usize = 100;
const INFO_MAX: usize = 100;
const NEWEST: u64 = i64::MAX as u64;

impl Teller<'_> {
    /// What a user wrote, as far as it is asked for.
    pub(super) fn history(&self) -> Result<Vec<Post>, Problem> {
        let route = route(self.heard);
        let user = self.present_user(route.history_of().ok_or(Problem::NotFound)?)?;
        let is_wanted = |post: &Post| {
            !post.is_repost()
                && match route {
                    Route::Submitted(_) => !is_comment(post),
                    Route::Comments(_) => is_comment(post),
                    _ => true,
                }
        };
        let posts = self.view.world.timeline_down(user, self.view.now, NEWEST);
        Ok(posts.filter(is_wanted).take(ITEMS_MAX).collect())
    }

    fn subreddit_named(&self, name: &str) -> Result<Subreddit, Problem> {
        Subreddit::named(self.view.world, name, self.view.now.at_us).ok_or(Problem::NotFound)
    }

    /// What was posted in a subreddit.
    pub(super) fn new_posts(&self, name: &str) -> Result<Vec<Post>, Problem> {
        let (world, now) = (self.view.world, self.view.now);
        let subreddit = self.subreddit_named(name)?;
        let is_there = |post: &Post| {
            !post.is_repost() && !is_comment(post) && Subreddit::of(world, post) == subreddit
        };
        Ok(match subreddit {
            Subreddit::Tag(place) => {
                let posts = world.tagged_down(vec![place], now, NEWEST);
                posts.filter(is_there).take(ITEMS_MAX).collect()
            }
            Subreddit::Own(user) => {
                let posts = world.timeline_down(user, now, NEWEST);
                posts.filter(is_there).take(ITEMS_MAX).collect()
            }
        })
    }

    pub(super) fn new_comments(&self, name: &str) -> Result<Vec<Post>, Problem> {
        let posts = self.new_posts(name)?;
        let below = posts.iter();
        let mut comments: Vec<Post> = below
            .flat_map(|post| self.view.world.all_below(post, self.view.now))
            .collect();
        comments.sort_unstable_by_key(|comment| std::cmp::Reverse(comment.id()));
        comments.truncate(ITEMS_MAX);
        Ok(comments)
    }

    /// Where a page begins: behind what `after` names, whether or not that is still there.
    fn start(&self, list: &[Post]) -> usize {
        let after = self.heard.params.get("after").unwrap_or_default();
        let id = after.split_once('_').and_then(|(_, id)| names::number(id));
        id.map_or(0, |id| list.partition_point(|post| post.id() >= id))
    }

    fn size(&self) -> usize {
        let size = self.heard.params.number("limit").unwrap_or(0) as usize;
        if size == 0 {
            PER_PAGE
        } else {
            size.min(PER_PAGE_MAX)
        }
    }

    pub(super) fn listing(&self, list: &[Post]) -> Answer {
        let start = self.start(list);
        let Slice {
            items,
            next,
            spoilt,
        } = slice(list, start, self.size(), self.view.spoil);
        let after = next.map(|next| match next.checked_sub(1) {
            Some(place) => fullname(&list[place]),
            // The page leads to itself, and there is nothing before it.
            None => format!("t3_{}", base36(list[next].id() + 1)),
        });
        let children: Vec<Value> = items.iter().map(|post| self.thing(post)).collect();
        Answer {
            items: Some(children.len() as u64),
            spoilt,
            ..Answer::json(&listing(&children, after.as_deref()))
        }
    }

    /// Posts and comments by their names; who asks for what never was gets nothing.
    pub(super) fn info(&self) -> Answer {
        let names = self.heard.params.get("id").unwrap_or_default();
        let found = names.split(',').take(INFO_MAX).filter_map(|name| {
            let (_, id) = name.split_once('_')?;
            let post = self.view.world.post_with_id(names::number(id)?)?;
            let is_there = !post.is_repost() && post.draft.at_us <= self.view.now.at_us;
            (is_there && fullname(&post) == name).then(|| self.thing(&post))
        });
        let found: Vec<Value> = found.collect();
        Answer {
            items: Some(found.len() as u64),
            ..Answer::json(&listing(&found, None))
        }
    }

    /// See [`crate::dialect::Speech::walked`].
    pub(super) fn walked(&self) -> Option<Walked> {
        let list = self.history().ok()?;
        let start = self.start(&list);
        let end = (start + self.size()).min(list.len());
        Some(Walked::Posts {
            page: list[start..end].to_vec(),
            before: list[start.saturating_sub(OVERLAP)..start].to_vec(),
        })
    }
}

pub(super) fn listing(children: &[Value], after: Option<&str>) -> Value {
    json!({
        "kind": "Listing",
        "data": {
            "after": after,
            "dist": children.len(),
            "modhash": null,
            "geo_filter": "",
            "children": children,
            "before": null,
        },
    })
}
