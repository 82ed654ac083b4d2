//! Videos: posts that answer nothing and repeat nothing.

use serde_json::{Map, Value, json};

use super::Call;
use super::ids::{ChannelId, VideoId};
use super::listing::{Listed, OF_RESOURCES, Page, listed, resource, thumbnails};
use super::refusal::Refused;
use crate::dialect::{View, plain_text};
use crate::world::time::iso_s;
use crate::world::{Link, Post, ThreadLimits};

const PARTS: [&str; 12] = [
    "snippet",
    "contentDetails",
    "statistics",
    "status",
    "topicDetails",
    "recordingDetails",
    "liveStreamingDetails",
    "paidProductPlacementDetails",
    "localizations",
    "player",
    "fileDetails",
    "processingDetails",
];
/// Titles are no longer.
const TITLE_LETTERS_MAX: usize = 100;
/// Everything below a post.
pub(super) const WHOLE_THREAD: ThreadLimits = ThreadLimits {
    ancestors: usize::MAX,
    descendants: usize::MAX,
    depth: usize::MAX,
};

impl View<'_> {
    pub(super) const fn is_video(post: &Post) -> bool {
        matches!(post.link, Link::None)
    }

    /// What is deleted, or no video, is missing.
    pub(super) fn videos(&self, call: Call<'_>) -> Result<Listed, Refused> {
        call.parts.check(&PARTS)?;
        // Not meant for ids, and then without a meaning; still it has to be a number that could be one.
        call.size(OF_RESOURCES)?;
        let Some(ids) = call.ids()? else {
            return Err(Refused::NoFilter("chart, id, myRating"));
        };
        let found = ids.into_iter().filter_map(|id| self.video_with_id(id));
        let videos: Vec<Value> = found.map(|post| self.video(&post, call)).collect();
        let total = videos.len();
        Ok(listed("video", Page::whole(videos), total))
    }

    pub(super) fn video_with_id(&self, id: &str) -> Option<Post> {
        let post = self.world.visible_post(VideoId::post(id)?, self.now)?;
        Self::is_video(&post).then_some(post)
    }

    /// Title and description.
    pub(super) fn title_and_text(&self, post: &Post) -> (String, String) {
        let text = plain_text(&self.world.content(post, self.now.at_us).html);
        let first = text.lines().next().unwrap_or_default();
        let title: String = first.chars().take(TITLE_LETTERS_MAX).collect();
        (title, text)
    }

    /// Everybody who likes or answers a video has seen it, and many others.
    pub(super) fn views(&self, post: &Post) -> u64 {
        let likes = self.world.likes_at(post, self.now).len() as u64;
        post.id() % 97 + 40 * likes
    }

    pub(super) fn has_comments(&self, video: &Post) -> bool {
        !self.world.traits(video.user()).is_locked
    }

    fn video(&self, post: &Post, call: Call<'_>) -> Value {
        let id = VideoId::of(post.id());
        let mut parts = Map::new();
        let mut put = |name: &str, make: &dyn Fn() -> Value| {
            if call.parts.has(name) {
                parts.insert(name.to_owned(), make());
            }
        };
        put("snippet", &|| self.video_snippet(post, &id));
        put("contentDetails", &|| self.video_details(post));
        put("status", &|| {
            json!({
                "uploadStatus": "processed",
                "privacyStatus": "public",
                "license": "youtube",
                "embeddable": true,
                "publicStatsViewable": true,
                "madeForKids": false,
            })
        });
        put("statistics", &|| self.video_statistics(post));
        put("recordingDetails", &|| json!({}));
        put(
            "paidProductPlacementDetails",
            &|| json!({ "hasPaidProductPlacement": false }),
        );
        resource("video", json!(id), parts)
    }

    fn video_snippet(&self, post: &Post, id: &str) -> Value {
        let (title, description) = self.title_and_text(post);
        let content = self.world.content(post, self.now.at_us);
        let mut snippet = json!({
            "publishedAt": iso_s(post.draft.at_us),
            "channelId": ChannelId::of(self.world, post.user()),
            "title": title,
            "description": description,
            "thumbnails": stills(id),
            "channelTitle": self.channel_title(post.user()),
            "categoryId": "22",
            "liveBroadcastContent": "none",
            "localized": { "title": title, "description": description },
        });
        if !content.tags.is_empty() {
            snippet["tags"] = json!(content.tags);
        }
        if let Some(language) = content.language {
            snippet["defaultLanguage"] = json!(language);
            snippet["defaultAudioLanguage"] = json!(language);
        }
        snippet
    }

    fn video_details(&self, post: &Post) -> Value {
        let seconds = 20 + post.id() % 1_180;
        let is_sensitive = self.world.content(post, self.now.at_us).is_sensitive;
        json!({
            "duration": format!("PT{}M{}S", seconds / 60, seconds % 60),
            "dimension": "2d",
            "definition": "hd",
            "caption": "false",
            "licensedContent": false,
            "contentRating": if is_sensitive { json!({ "ytRating": "ytAgeRestricted" }) } else { json!({}) },
            "projection": "rectangular",
        })
    }

    /// Where comments are switched off, their number is missing.
    fn video_statistics(&self, post: &Post) -> Value {
        let likes = self.world.likes_at(post, self.now).len();
        let mut statistics = json!({
            "viewCount": self.views(post).to_string(),
            "likeCount": likes.to_string(),
            "favoriteCount": "0",
        });
        if self.has_comments(post) {
            let comments = self.world.descendants(post, self.now, WHOLE_THREAD);
            statistics["commentCount"] = json!(comments.len().to_string());
        }
        statistics
    }
}

/// Pictures of a video.
pub(super) fn stills(id: &str) -> Value {
    let url = |name: &str| format!("https://i.sim.example/vi/{id}/{name}.jpg");
    let (small, medium, high) = (url("default"), url("mqdefault"), url("hqdefault"));
    thumbnails(&[
        ("default", &small, 120, 90),
        ("medium", &medium, 320, 180),
        ("high", &high, 480, 360),
    ])
}
