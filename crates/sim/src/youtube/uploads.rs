//! The playlist of everything that a channel has uploaded, and playlists.

use serde_json::{Map, Value, json};

use super::Call;
use super::Parts;
use super::ids::{ChannelId, PlaylistId, VideoId, letters};
use super::listing::{End, Listed, OF_RESOURCES, Page, listed, resource};
use super::refusal::Refused;
use super::videos::stills;
use crate::dialect::View;
use crate::faults::Walked;
use crate::params::Params;
use crate::spoil::{OVERLAP, Spoil};
use crate::world::Post;
use crate::world::time::{DAY_US, iso_s};

const ITEM_PARTS: [&str; 3] = ["snippet", "contentDetails", "status"];
const PLAYLIST_PARTS: [&str; 5] = [
    "snippet",
    "contentDetails",
    "status",
    "player",
    "localizations",
];

impl View<'_> {
    /// The newest first. Without any, the playlist is not there.
    pub(super) fn uploads(&self, call: Call<'_>) -> Result<Listed, Refused> {
        call.parts.check(&ITEM_PARTS)?;
        let (user, videos) = self.uploaded(call.params)?;
        let page = uploads_page(call, &videos, self.spoil)?;
        let places = page.map(|post| {
            let place = videos.partition_point(|video| video.id() > post.id());
            self.upload(user, place, &post, call)
        });
        Ok(listed("playlistItem", places, videos.len()))
    }

    fn uploaded(&self, params: &Params) -> Result<(u64, Vec<Post>), Refused> {
        let Some(id) = params.get("playlistId") else {
            return Err(Refused::NoFilter("id, playlistId"));
        };
        let user = PlaylistId::user(self.world, id);
        let user = user.filter(|&user| self.world.is_active(user, self.now));
        let videos = user.map(|user| (user, self.videos_of(user)));
        let videos = videos.filter(|(_, videos)| !videos.is_empty());
        videos.ok_or_else(|| Refused::PlaylistNotFound(id.to_owned()))
    }

    pub(super) fn uploads_walked(&self, params: &Params) -> Option<Walked> {
        let call = Call {
            params,
            parts: Parts(""),
        };
        let (_, videos) = self.uploaded(params).ok()?;
        let page = uploads_page(call, &videos, None).ok()?.items;
        let start = videos
            .partition_point(|video| page.first().is_none_or(|first| video.id() > first.id()));
        Some(Walked::Posts {
            before: videos[start.saturating_sub(OVERLAP)..start].to_vec(),
            page,
        })
    }

    fn upload(&self, user: u64, place: usize, post: &Post, call: Call<'_>) -> Value {
        let video = VideoId::of(post.id());
        let (title, description) = self.title_and_text(post);
        let channel = ChannelId::of(self.world, user);
        let channel_title = self.channel_title(user);
        let published = iso_s(post.draft.at_us);
        let mut parts = Map::new();
        if call.parts.has("snippet") {
            let snippet = json!({
                "publishedAt": published,
                "channelId": channel,
                "title": title,
                "description": description,
                "thumbnails": stills(&video),
                "channelTitle": channel_title,
                "playlistId": PlaylistId::of(self.world, user),
                "position": place,
                "resourceId": { "kind": "youtube#video", "videoId": video },
                "videoOwnerChannelTitle": channel_title,
                "videoOwnerChannelId": channel,
            });
            parts.insert("snippet".to_owned(), snippet);
        }
        if call.parts.has("contentDetails") {
            let details = json!({ "videoId": video, "videoPublishedAt": published });
            parts.insert("contentDetails".to_owned(), details);
        }
        if call.parts.has("status") {
            parts.insert("status".to_owned(), json!({ "privacyStatus": "public" }));
        }
        let id = format!(
            "VVU{}{}",
            letters(self.world.account_id(user)),
            letters(post.id())
        );
        resource("playlistItem", json!(id), parts)
    }

    /// Nobody here makes playlists of their own; that of uploads is found by its id.
    pub(super) fn playlists(&self, call: Call<'_>) -> Result<Listed, Refused> {
        call.parts.check(&PLAYLIST_PARTS)?;
        let size = call.size(OF_RESOURCES)?;
        let mut users: Vec<u64> = Vec::new();
        if let Some(ids) = call.ids()? {
            let found = ids.into_iter().map(|id| PlaylistId::user(self.world, id));
            users = found.flatten().collect();
            users.retain(|&user| self.world.is_active(user, self.now));
            users.retain(|&user| !self.videos_of(user).is_empty());
        } else if let Some(id) = call.params.get("channelId") {
            self.present(id, Refused::ChannelNotFound)?;
        } else {
            return Err(Refused::NoFilter("channelId, id, mine"));
        }
        let items: Vec<Value> = users
            .iter()
            .map(|&user| self.playlist(user, call))
            .collect();
        let total = items.len();
        let page = Page {
            size,
            ..Page::whole(items)
        };
        Ok(listed("playlist", page, total))
    }

    fn playlist(&self, user: u64, call: Call<'_>) -> Value {
        let title = format!("Uploads from {}", self.channel_title(user));
        let mut parts = Map::new();
        if call.parts.has("snippet") {
            let snippet = json!({
                "publishedAt": iso_s(self.world.traits(user).created_day * DAY_US),
                "channelId": ChannelId::of(self.world, user),
                "title": title,
                "description": "",
                "thumbnails": self.avatar(user),
                "channelTitle": self.channel_title(user),
                "localized": { "title": title, "description": "" },
            });
            parts.insert("snippet".to_owned(), snippet);
        }
        if call.parts.has("contentDetails") {
            let count = self.videos_of(user).len();
            parts.insert("contentDetails".to_owned(), json!({ "itemCount": count }));
        }
        if call.parts.has("status") {
            parts.insert("status".to_owned(), json!({ "privacyStatus": "public" }));
        }
        resource("playlist", json!(PlaylistId::of(self.world, user)), parts)
    }
}

fn uploads_page(
    call: Call<'_>,
    videos: &[Post],
    spoil: Option<Spoil>,
) -> Result<Page<Post>, Refused> {
    call.page(
        videos,
        OF_RESOURCES,
        End::Known,
        spoil,
        Post::id,
        |post, after| post.id() >= after,
    )
}
