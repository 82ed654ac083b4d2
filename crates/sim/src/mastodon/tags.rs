//! Tags on profiles, and the timelines of tags.

use serde::Serialize;

use super::answer::{Answer, Problem};
use super::entities::account_url;
use super::lists::{Asking, STATUSES_PER_PAGE, cut_posts};
use super::paging::{Bounds, LinkBase, PageEnds};
use super::render::Renderer;
use super::route::Params;
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
        let tags = self.world.featured_tags(user, self.at_us);
        let counted = self.world.tag_uses(user, self.at_us, &tags);
        let profile_url = account_url(&self.world.username(user, self.at_us));
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
        let bounds = Bounds::read(asking.params, STATUSES_PER_PAGE);
        let page = self.tag_page(tag, bounds, asking.params);
        let base = LinkBase {
            url: asking.url,
            params: asking.params,
            newer_name: "min_id",
        };
        let link = base.header(PageEnds::of(&page, Post::id), 1);
        Ok(Answer::json(&self.statuses(&page)?).with_link(link))
    }

    fn tag_page(&self, tag: &str, bounds: Bounds, params: &Params) -> Vec<Post> {
        let Some(place) = tag_place(tag) else {
            return Vec::new();
        };
        // Everybody in this world is local.
        if params.is_true("remote") && !params.is_true("local") {
            return Vec::new();
        }
        let mut any = further_tags(params, "any[]");
        any.push(place);
        let all = further_tags(params, "all[]");
        let none = further_tags(params, "none[]");
        let is_wanted = |post: &Post| {
            let own = self.world.post_tags(post);
            let carries = |&place: &usize| own.contains(&TAGS[place]);
            all.iter().all(carries)
                && !none.iter().any(carries)
                && self.has_wanted_media(post, params)
        };
        cut_posts(
            bounds,
            is_wanted,
            |below_id| self.world.tagged_down(any.clone(), self.at_us, below_id),
            |above_id| self.world.tagged_up(any.clone(), self.at_us, above_id),
        )
    }
}

fn further_tags(params: &Params, name: &str) -> Vec<usize> {
    params
        .all(name)
        .take(FURTHER_TAGS_MAX)
        .filter_map(tag_place)
        .collect()
}
