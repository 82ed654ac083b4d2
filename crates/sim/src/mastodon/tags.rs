//! Tags on profiles, and the timelines of tags.

use serde::Serialize;

use super::answer::Problem;
use super::lists::{Asking, STATUSES_PER_PAGE, cut_posts, posts_before};
use super::paging::Page;
use super::render::Renderer;
use crate::answer::Answer;
use crate::params::Params;
use crate::world::time::iso_day;
use crate::world::{Post, TAGS, tag_path, tag_place};

/// Further tags that a timeline takes of each sort; more are not looked at.
const FURTHER_TAGS_MAX: usize = 4;

#[derive(Debug, Serialize)]
struct FeaturedTagEntity {
    id: String,
    name: &'static str,
    url: String,
    statuses_count: String,
    last_status_at: Option<String>,
}

impl Renderer<'_> {
    pub(super) fn featured_tags(&self, id: &str) -> Result<Answer, Problem> {
        let user = self.present_user(id)?;
        let tags = self.world.featured_tags(user, self.now);
        let counted = self.world.tag_uses(user, self.now, &tags);
        let profile_url = self.world.account_url(user, self.now.at_us);
        let entities: Vec<FeaturedTagEntity> = tags
            .iter()
            .zip(counted)
            .map(|(tag, tag_use)| FeaturedTagEntity {
                id: tag.id.to_string(),
                name: tag.name,
                url: format!("{profile_url}/tagged/{}", tag_path(tag.name)),
                statuses_count: tag_use.statuses.to_string(),
                last_status_at: tag_use.last_post_day.map(iso_day),
            })
            .collect();
        Ok(Answer::json(&entities))
    }

    /// Public posts with a tag. A page that is not empty always has a next one: unlike other lists,
    /// this one is at its end only when a page is empty.
    pub(super) fn tag_timeline(&self, asking: Asking<'_>, tag: &str) -> Result<Answer, Problem> {
        let bounds = self.bounds(asking.params, STATUSES_PER_PAGE);
        let Some(search) = TagSearch::read(tag, asking.params, self.instance.is_none()) else {
            return self.status_page(asking, &Page::new(Vec::new(), 1, Post::id));
        };
        let is_wanted = |post: &Post| self.is_tagged_as_wanted(post, &search, asking.params);
        let down = |below_id| {
            self.world
                .tagged_down(search.any.clone(), self.now, below_id)
        };
        let up = |above_id| self.world.tagged_up(search.any.clone(), self.now, above_id);
        let page = Page::new(cut_posts(bounds, is_wanted, down, up), 1, Post::id);
        let before = || posts_before(bounds, is_wanted, down, up);
        self.status_page(asking, &page.spoil(asking.spoil, bounds, before, Post::id))
    }

    fn is_tagged_as_wanted(&self, post: &Post, search: &TagSearch, params: &Params) -> bool {
        let own = self.world.post_tags(post);
        let carries = |&place: &usize| own.contains(&TAGS[place]);
        search.all.iter().all(carries)
            && !search.none.iter().any(carries)
            && self.has_wanted_media(post, params)
            && self.shows(post)
            && (!params.is_true("local") || self.is_own(post.user()))
            && (!params.is_true("remote")
                || params.is_true("local")
                || self.instance.is_none()
                || !self.is_own(post.user()))
    }
}

/// Which tags the posts of a timeline have, by their places in the vocabulary.
#[derive(Debug)]
struct TagSearch {
    any: Vec<usize>,
    all: Vec<usize>,
    none: Vec<usize>,
}

impl TagSearch {
    /// None if there can be no such posts.
    fn read(tag: &str, params: &Params, is_everybody_local: bool) -> Option<Self> {
        if is_everybody_local && params.is_true("remote") && !params.is_true("local") {
            return None;
        }
        let mut any = further_tags(params, "any[]");
        any.push(tag_place(tag)?);
        Some(Self {
            any,
            all: further_tags(params, "all[]"),
            none: further_tags(params, "none[]"),
        })
    }
}

fn further_tags(params: &Params, name: &str) -> Vec<usize> {
    params
        .all(name)
        .take(FURTHER_TAGS_MAX)
        .filter_map(tag_place)
        .collect()
}
