//! Channels.

use serde_json::{Map, Value, json};

use super::Call;
use super::ids::{ChannelId, PlaylistId};
use super::listing::{End, Listed, OF_RESOURCES, listed, resource, thumbnails};
use super::refusal::Refused;
use crate::dialect::{View, plain_text};
use crate::world::time::{DAY_US, iso_s};
use crate::world::{Post, Standing};

const PARTS: [&str; 10] = [
    "snippet",
    "contentDetails",
    "statistics",
    "topicDetails",
    "status",
    "brandingSettings",
    "localizations",
    "auditDetails",
    "contentOwnerDetails",
    "player",
];

/// From so many subscribers on, only three digits are shown.
const ROUNDED_FROM: u64 = 1_000;

/// The number of subscribers as everybody is shown it: rounded down to three digits.
pub(super) const fn rounded(subscribers: u64) -> u64 {
    let mut unit = 1;
    while subscribers / unit >= ROUNDED_FROM {
        unit *= 10;
    }
    subscribers / unit * unit
}

impl View<'_> {
    /// Who is gone or suspended is missing, and so is a list without any.
    pub(super) fn channels(&self, call: Call<'_>) -> Result<Listed, Refused> {
        call.parts.check(&PARTS)?;
        let named = |handle: &str| {
            let name = handle.strip_prefix('@').unwrap_or(handle);
            self.world.user_named(name, self.now.at_us)
        };
        let users: Vec<u64> = if let Some(ids) = call.ids()? {
            let users = ids.into_iter().map(|id| ChannelId::user(self.world, id));
            users.flatten().collect()
        } else if let Some(handle) = call.params.get("forHandle") {
            named(handle).into_iter().collect()
        } else if call.params.get("forUsername").is_some() {
            // All channels of this world have come since there are handles.
            Vec::new()
        } else {
            return Err(Refused::NoFilter(
                "forHandle, forUsername, id, managedByMe, mine, mySubscribers, categoryId",
            ));
        };
        let mut shown: Vec<u64> = users
            .into_iter()
            .filter(|&user| self.world.is_active(user, self.now))
            .collect();
        shown.sort_unstable();
        let page = call.page(
            &shown,
            OF_RESOURCES,
            End::Known,
            self.spoil,
            |&user| self.world.account_id(user),
            |&user, after| {
                self.world
                    .user_with_id(after)
                    .is_some_and(|last| user <= last)
            },
        )?;
        let page = page.map(|user| self.channel(user, call));
        let mut list = listed("channel", page, shown.len());
        if shown.is_empty()
            && let Some(list) = list.body.as_object_mut()
        {
            list.remove("items");
        }
        Ok(list)
    }

    pub(super) fn channel_title(&self, user: u64) -> String {
        let title = self.world.profile(user, self.now.at_us).display_name;
        if title.is_empty() {
            self.world.username(user, self.now.at_us)
        } else {
            title
        }
    }

    /// Videos of a user, newest first.
    pub(super) fn videos_of(&self, user: u64) -> Vec<Post> {
        let all = self.world.timeline_down(user, self.now, i64::MAX as u64);
        all.filter(Self::is_video).collect()
    }

    fn channel(&self, user: u64, call: Call<'_>) -> Value {
        let id = ChannelId::of(self.world, user);
        let title = self.channel_title(user);
        let note = self.world.profile(user, self.now.at_us).note_html;
        let description = plain_text(&note);
        let mut parts = Map::new();
        let mut put = |name: &str, make: &dyn Fn() -> Value| {
            if call.parts.has(name) {
                parts.insert(name.to_owned(), make());
            }
        };
        put("snippet", &|| {
            let created_us = self.world.traits(user).created_day * DAY_US;
            json!({
                "title": title,
                "description": description,
                "customUrl": format!("@{}", self.world.username(user, self.now.at_us)),
                "publishedAt": iso_s(created_us),
                "thumbnails": self.avatar(user),
                "localized": { "title": title, "description": description },
            })
        });
        put("contentDetails", &|| {
            let uploads = PlaylistId::of(self.world, user);
            json!({ "relatedPlaylists": { "likes": "", "uploads": uploads } })
        });
        put("statistics", &|| self.channel_statistics(user));
        put("status", &|| {
            json!({
                "privacyStatus": "public",
                "isLinked": true,
                "longUploadsStatus": "longUploadsUnspecified",
                "madeForKids": false,
            })
        });
        put("brandingSettings", &|| {
            json!({
                "channel": { "title": title, "description": description },
                "image": { "bannerExternalUrl": format!("https://yt3.sim.example/{id}=banner") },
            })
        });
        resource("channel", json!(id), parts)
    }

    fn channel_statistics(&self, user: u64) -> Value {
        let subscribers = self.world.followers_at(user, self.now).len() as u64;
        let is_hidden = self.world.hides_lists(user);
        let videos = self.videos_of(user);
        let views: u64 = videos.iter().map(|video| self.views(video)).sum();
        json!({
            "viewCount": views.to_string(),
            "subscriberCount": if is_hidden { 0 } else { rounded(subscribers) }.to_string(),
            "hiddenSubscriberCount": is_hidden,
            "videoCount": videos.len().to_string(),
        })
    }

    pub(super) fn avatar(&self, user: u64) -> Value {
        let picture = ChannelId::of(self.world, user);
        let url = |side: u32| format!("https://yt3.sim.example/{picture}=s{side}");
        let (small, medium, high) = (url(88), url(240), url(800));
        thumbnails(&[
            ("default", &small, 88, 88),
            ("medium", &medium, 240, 240),
            ("high", &high, 800, 800),
        ])
    }

    /// A user whose lists can be asked for, or why they cannot.
    pub(super) fn present(&self, id: &str, missing: Refused) -> Result<u64, Refused> {
        let user = ChannelId::user(self.world, id).ok_or(missing)?;
        match self.world.standing(user, self.now) {
            Standing::Active => Ok(user),
            Standing::Suspended => Err(Refused::AccountSuspended),
            Standing::Gone => Err(Refused::AccountClosed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn three_digits_of_many_subscribers_are_shown() {
        let shown = [0, 7, 999, 1_000, 1_239, 45_678, 1_234_567].map(rounded);
        assert_eq!(shown, [0, 7, 999, 1_000, 1_230, 45_600, 1_230_000]);
    }
}
