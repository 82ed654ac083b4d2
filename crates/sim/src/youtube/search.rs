//! Searches: videos by their words, newest first, and channels by their names.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Call;
use super::comments::marked_up;
use super::ids::{ChannelId, VideoId};
use super::listing::{End, Listed, OF_RESOURCES, listed, resource};
use super::refusal::Refused;
use super::videos::stills;
use crate::dialect::{View, plain_text};
use crate::world::Post;
use crate::world::time::{DAY_US, iso_s};

const PARTS: [&str; 1] = ["snippet"];
/// More is never shown of a search, however much there is.
const SHOWN_MAX: usize = 500;
/// Descriptions are cut short.
const DESCRIPTION_LETTERS: usize = 120;

#[derive(Debug, Clone, Copy)]
enum Found {
    Video(Post),
    Channel(u64),
}

impl View<'_> {
    pub(super) fn search_list(&self, call: Call<'_>) -> Result<Listed, Refused> {
        call.parts.check(&PARTS)?;
        let kinds = call.params.get("type").unwrap_or("video,channel,playlist");
        let is_wanted = |kind: &str| kinds.split(',').any(|wanted| wanted == kind);
        let words = call.params.get("q").unwrap_or_default().to_lowercase();
        let words: Vec<&str> = words.split_whitespace().collect();
        let (after_us, before_us) = (
            bound(call, "publishedAfter")?,
            bound(call, "publishedBefore")?,
        );
        let owner = call.params.get("channelId");
        let owner = owner.map(|id| ChannelId::user(self.world, id));
        let mut found: Vec<Found> = Vec::new();
        for user in self.world.sampled_users() {
            if !self.world.is_active(user, self.now) || owner.is_some_and(|it| it != Some(user)) {
                continue;
            }
            if is_wanted("channel") && has_all(&self.channel_title(user), &words) {
                found.push(Found::Channel(user));
            }
            if is_wanted("video") {
                let videos = self.videos_of(user).into_iter().filter(|video| {
                    let at_us = video.draft.at_us;
                    after_us.is_none_or(|bound| at_us >= bound)
                        && before_us.is_none_or(|bound| at_us < bound)
                        && has_all(&self.title_and_text(video).1, &words)
                });
                found.extend(videos.map(Found::Video));
            }
        }
        found.sort_unstable_by_key(|it| self.order_of_found(*it));
        let total = found.len();
        found.truncate(SHOWN_MAX);
        let page = call.page(
            &found,
            OF_RESOURCES,
            End::Known,
            self.spoil,
            |it| match it {
                Found::Video(post) => post.id(),
                Found::Channel(user) => self.world.account_id(*user),
            },
            |it, after| {
                let last = match self.world.user_with_id(after) {
                    Some(_) => (true, after),
                    None => (false, u64::MAX - after),
                };
                self.order_of_found(*it) <= last
            },
        )?;
        let mut list = listed("search", page.map(|it| self.result(it, call)), total);
        list.body["regionCode"] = json!("DE");
        Ok(list)
    }

    /// Videos first, the newest first.
    fn order_of_found(&self, found: Found) -> (bool, u64) {
        match found {
            Found::Video(post) => (false, u64::MAX - post.id()),
            Found::Channel(user) => (true, self.world.account_id(user)),
        }
    }

    fn result(&self, found: Found, call: Call<'_>) -> Value {
        let (id, published, user, title, description, pictures) = match found {
            Found::Video(post) => {
                let video = VideoId::of(post.id());
                let (title, description) = self.title_and_text(&post);
                let id = json!({ "kind": "youtube#video", "videoId": video });
                let published = iso_s(post.draft.at_us);
                let pictures = stills(&video);
                (id, published, post.user(), title, description, pictures)
            }
            Found::Channel(user) => {
                let channel = ChannelId::of(self.world, user);
                let id = json!({ "kind": "youtube#channel", "channelId": channel });
                let note = self.world.profile(user, self.now.at_us).note_html;
                let published = iso_s(self.world.traits(user).created_day * DAY_US);
                let (title, pictures) = (self.channel_title(user), self.avatar(user));
                (id, published, user, title, plain_text(&note), pictures)
            }
        };
        let mut parts = Map::new();
        if call.parts.has("snippet") {
            let cut: String = description.chars().take(DESCRIPTION_LETTERS).collect();
            let snippet = json!({
                "publishedAt": published,
                "channelId": ChannelId::of(self.world, user),
                "title": marked_up(&title),
                "description": cut,
                "thumbnails": pictures,
                "channelTitle": self.channel_title(user),
                "liveBroadcastContent": "none",
                "publishTime": published,
            });
            parts.insert("snippet".to_owned(), snippet);
        }
        resource("searchResult", id, parts)
    }
}

fn has_all(text: &str, words: &[&str]) -> bool {
    let text = text.to_lowercase();
    words.iter().all(|word| text.contains(word))
}

fn bound(call: Call<'_>, name: &'static str) -> Result<Option<i64>, Refused> {
    let Some(text) = call.params.get(name) else {
        return Ok(None);
    };
    let time: Result<Timestamp, _> = text.parse();
    let invalid = |_| {
        let message = format!("Invalid value for field '{name}': {text}");
        Refused::Invalid(name, message)
    };
    time.map(|time| Some(time.as_microsecond()))
        .map_err(invalid)
}
