//! Accounts, with the fields that were asked for.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::ask::Ask;
use super::identity::post_id;
use super::post::hashtags;
use crate::dialect::{View, plain_text};
use crate::world::Post;
use crate::world::time::{DAY_US, iso_ms};

/// Beyond every id.
const NO_BOUND: u64 = i64::MAX as u64;

impl View<'_> {
    pub(super) fn user_object(&self, ask: &Ask<'_>, user: u64) -> Value {
        let mut whole = self.whole_user(user);
        whole.retain(|name, _| ask.user_fields.contains(name.as_str()));
        Value::Object(whole)
    }

    /// The latest post that everybody sees.
    pub(super) fn latest_post(&self, user: u64) -> Option<Post> {
        if self.is_protected(user) {
            return None;
        }
        let mut posts = self.world.timeline_down(user, self.now, NO_BOUND);
        posts.find(|post| self.shows(post))
    }

    fn whole_user(&self, user: u64) -> Map<String, Value> {
        let version = self.now.version();
        let kept = self.accounts.get(user, version);
        if let Some(kept) = kept.and_then(|kept| serde_json::from_str(kept.get()).ok()) {
            return kept;
        }
        let whole = self.write_user(user);
        if let Ok(written) = serde_json::value::to_raw_value(&whole) {
            self.accounts.put(user, version, Arc::from(written));
        }
        whole
    }

    fn write_user(&self, user: u64) -> Map<String, Value> {
        let world = self.world;
        let profile = world.profile(user, self.now.at_us);
        let traits = world.traits(user);
        let counts = world.counts(user, self.now);
        let description = plain_text(&profile.note_html);
        let mut whole = Map::new();
        let mut put = |name: &str, value: Value| whole.insert(name.to_owned(), value);
        let tags = hashtags(&description);
        if !tags.is_empty() {
            put("entities", json!({ "description": { "hashtags": tags } }));
        }
        put("id", json!(self.account_id(user)));
        put("name", json!(profile.display_name));
        put("username", json!(world.username(user, self.now.at_us)));
        put("created_at", json!(iso_ms(traits.created_day * DAY_US)));
        put("description", json!(description));
        put("protected", json!(traits.is_locked));
        put("verified", json!(false));
        put("verified_type", json!("none"));
        put("is_identity_verified", json!(false));
        put("parody", json!(false));
        put("subscription_type", json!("None"));
        put("verified_followers_count", json!(0));
        put("url", json!(""));
        let image = if traits.has_avatar {
            format!("https://pbs.twimg.example/profile_images/{user}/face_normal.jpg")
        } else {
            "https://abs.twimg.example/sticky/default_profile_images/default_profile_normal.png"
                .to_owned()
        };
        put("profile_image_url", json!(image));
        if let Some(latest) = self.latest_post(user) {
            let id = post_id(&latest.draft).to_string();
            put("most_recent_tweet_id", json!(id));
        }
        let metrics = json!({
            "followers_count": counts.followers,
            "following_count": counts.following,
            "tweet_count": counts.statuses,
            "listed_count": 0,
            "like_count": world.liked_by(user, self.now).count(),
            "media_count": 0,
        });
        put("public_metrics", metrics);
        whole
    }
}
