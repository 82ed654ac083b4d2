//! What the server says about itself.

use serde_json::{Value, json};

use super::render::Renderer;
use crate::fediverse::Software;

/// What the newest servers call themselves.
pub(crate) const VERSION: &str = "4.7.3";

impl Renderer<'_> {
    pub(super) fn instance(&self) -> Value {
        let (origin, host) = (self.origin(), self.host());
        json!({
            "domain": host,
            "title": "A synthetic network",
            "version": self.software().version(),
            "source_url": self.software().source_url(),
            "description": "A world computed from a seed. Nobody here is real.",
            "usage": { "users": { "active_month": self.world.people_of(self.home()) } },
            "thumbnail": {
                "url": format!("{origin}/packs/assets/preview.png"),
                "description": "A kittiwake on a ledge.",
            },
            "icon": [{
                "src": format!("{origin}/packs/assets/icon-48x48.png"),
                "size": "48x48",
            }],
            "languages": ["en"],
            "configuration": configuration(origin, host),
            "registrations": {
                "enabled": false,
                "approval_required": false,
                "reason_required": false,
                "message": null,
                "min_age": null,
                "url": null,
            },
            "api_versions": { "mastodon": 11 },
            "wrapstodon": null,
            "contact": { "email": format!("staff@{host}"), "account": null },
            "rules": rules(),
        })
    }

    /// The same as servers before 4.0 told it, and later ones still do.
    pub(super) fn instance_before_4(&self) -> Value {
        let (origin, host) = (self.origin(), self.host());
        let people = self.world.people_of(self.home());
        json!({
            "uri": host,
            "title": "A synthetic instance",
            "short_description": "One of many, all computed from a seed.",
            "description": "",
            "email": format!("staff@{host}"),
            "version": self.software().version(),
            "urls": { "streaming_api": format!("wss://streaming.{host}") },
            "stats": {
                "user_count": people,
                "status_count": people,
                "domain_count": self.instance.map_or(0, |instance| instance.hosts.len() - 1),
            },
            "thumbnail": format!("{origin}/packs/assets/preview.png"),
            "languages": ["en"],
            "registrations": false,
            "approval_required": false,
            "invites_enabled": false,
            "configuration": { "statuses": { "max_characters": 500, "max_media_attachments": 4 } },
            "contact_account": null,
            "rules": rules(),
        })
    }

    fn software(&self) -> Software {
        self.instance
            .map_or(Software::Mastodon, |instance| instance.software)
    }
}

/// What the server asks of its people.
pub(super) fn rules() -> Value {
    json!([
        {
            "id": "1",
            "text": "Ask no more often than the limits say.",
            "hint": "Every call is entered in the ledger.",
            "translations": {},
        },
        {
            "id": "2",
            "text": "Respect what people wish.",
            "hint": "",
            "translations": {},
        },
    ])
}

fn configuration(origin: &str, host: &str) -> Value {
    let open = json!({ "local": "public", "remote": "public" });
    json!({
        "urls": {
            // Real servers always name one. Nothing is streamed here.
            "streaming": format!("wss://streaming.{host}"),
            "status": null,
            "about": format!("{origin}/about"),
            "privacy_policy": format!("{origin}/privacy-policy"),
            "terms_of_service": null,
        },
        "vapid": { "public_key": "" },
        "accounts": {
            "max_display_name_length": 40,
            "max_note_length": 500,
            "max_avatar_description_length": 150,
            "max_header_description_length": 150,
            "max_featured_tags": 10,
            "max_pinned_statuses": 5,
            "max_profile_fields": 4,
            "profile_field_name_limit": 255,
            "profile_field_value_limit": 255,
        },
        "statuses": {
            "max_characters": 500,
            "max_media_attachments": 4,
            "characters_reserved_per_url": 23,
        },
        "media_attachments": {
            "description_limit": 10_000,
            "image_matrix_limit": 33_177_600,
            "image_size_limit": 16_777_216,
            "supported_mime_types": ["image/jpeg", "image/png", "video/mp4"],
            "video_frame_rate_limit": 120,
            "video_matrix_limit": 8_294_400,
            "video_size_limit": 103_809_024,
        },
        "polls": {
            "max_options": 4,
            "max_characters_per_option": 50,
            "min_expiration": 300,
            "max_expiration": 2_629_746,
        },
        "translation": { "enabled": false },
        "timelines_access": {
            // There are no live feeds: see the routes.
            "live_feeds": { "local": "disabled", "remote": "disabled" },
            "hashtag_feeds": open,
            "trending_link_feeds": { "local": "disabled", "remote": "disabled" },
        },
        "limited_federation": false,
    })
}
