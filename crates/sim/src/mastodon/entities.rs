//! The network's entities, with the keys and in the order of recorded answers.

use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;

use crate::HOST;
use crate::world::Media;
use crate::world::time::iso_ms;

#[derive(Debug, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are the network's own switches"
)]
pub(crate) struct Account {
    pub(crate) id: String,
    pub(crate) username: String,
    pub(crate) acct: String,
    pub(crate) display_name: String,
    pub(crate) locked: bool,
    pub(crate) bot: bool,
    pub(crate) discoverable: Option<bool>,
    pub(crate) indexable: bool,
    pub(crate) group: bool,
    pub(crate) created_at: String,
    pub(crate) note: String,
    pub(crate) url: String,
    pub(crate) uri: String,
    pub(crate) avatar: String,
    pub(crate) avatar_static: String,
    pub(crate) avatar_description: &'static str,
    pub(crate) header: String,
    pub(crate) header_static: String,
    pub(crate) header_description: &'static str,
    pub(crate) followers_count: u64,
    pub(crate) following_count: u64,
    pub(crate) statuses_count: u64,
    pub(crate) last_status_at: Option<String>,
    pub(crate) hide_collections: Option<bool>,
    pub(crate) show_media: bool,
    pub(crate) show_media_replies: bool,
    pub(crate) show_featured: bool,
    /// Present only on accounts that have moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) moved: Option<Arc<RawValue>>,
    /// Present only on banned accounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) suspended: Option<bool>,
    pub(crate) noindex: bool,
    pub(crate) feature_approval: Approval,
    pub(crate) emojis: [(); 0],
    pub(crate) roles: [(); 0],
    pub(crate) fields: Vec<Field>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) verified_at: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Approval {
    automatic: &'static [&'static str],
    manual: [(); 0],
    current_user: &'static str,
}

impl Approval {
    pub(crate) const OPEN: Self = Self {
        automatic: &["public"],
        manual: [],
        current_user: "automatic",
    };
    pub(crate) const CLOSED: Self = Self {
        automatic: &[],
        manual: [],
        current_user: "denied",
    };
}

#[derive(Debug, Serialize)]
pub(crate) struct Status {
    pub(crate) id: String,
    pub(crate) created_at: String,
    pub(crate) in_reply_to_id: Option<String>,
    pub(crate) in_reply_to_account_id: Option<String>,
    pub(crate) sensitive: bool,
    pub(crate) spoiler_text: &'static str,
    pub(crate) visibility: &'static str,
    pub(crate) language: Option<&'static str>,
    pub(crate) uri: String,
    pub(crate) url: String,
    pub(crate) replies_count: u64,
    pub(crate) reblogs_count: u64,
    pub(crate) favourites_count: u64,
    pub(crate) quotes_count: u64,
    pub(crate) edited_at: Option<String>,
    #[serde(flatten)]
    pub(crate) viewer: Option<ViewerPart>,
    pub(crate) content: String,
    pub(crate) reblog: Option<Box<Self>>,
    pub(crate) application: Option<Application>,
    pub(crate) account: Arc<RawValue>,
    pub(crate) media_attachments: Vec<MediaAttachment>,
    pub(crate) mentions: Vec<Mention>,
    pub(crate) tags: Vec<Tag>,
    pub(crate) emojis: [(); 0],
    pub(crate) tagged_collections: [(); 0],
    pub(crate) quote: Option<()>,
    pub(crate) card: Option<()>,
    pub(crate) poll: Option<()>,
    pub(crate) quote_approval: Approval,
}

/// What only those who are signed in are told.
#[derive(Debug, Default, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are the network's own switches"
)]
pub(crate) struct ViewerPart {
    favourited: bool,
    reblogged: bool,
    muted: bool,
    bookmarked: bool,
    filtered: [(); 0],
}

#[derive(Debug, Serialize)]
pub(crate) struct Application {
    pub(crate) name: &'static str,
    pub(crate) website: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Mention {
    pub(crate) id: String,
    pub(crate) username: String,
    pub(crate) url: String,
    pub(crate) acct: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Tag {
    pub(crate) name: &'static str,
    pub(crate) url: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct MediaAttachment {
    id: String,
    r#type: &'static str,
    url: String,
    preview_url: String,
    remote_url: Option<()>,
    preview_remote_url: Option<()>,
    text_url: Option<()>,
    meta: MediaMeta,
    description: Option<&'static str>,
    blurhash: &'static str,
}

#[derive(Debug, Serialize)]
struct MediaMeta {
    original: MediaSize,
    small: MediaSize,
}

#[derive(Debug, Serialize)]
struct MediaSize {
    width: u64,
    height: u64,
    size: String,
    aspect: f64,
}

impl MediaSize {
    fn new(width: u64, height: u64) -> Self {
        let aspect = width as f64 / height as f64;
        Self {
            width,
            height,
            size: format!("{width}x{height}"),
            aspect,
        }
    }
}

impl From<Media> for MediaAttachment {
    fn from(media: Media) -> Self {
        let folder = format!("https://{HOST}/system/media_attachments/files/{}", media.id);
        let ending = if media.is_video { "mp4" } else { "jpg" };
        Self {
            id: media.id.to_string(),
            r#type: if media.is_video { "video" } else { "image" },
            url: format!("{folder}/original/file.{ending}"),
            preview_url: format!("{folder}/small/file.jpg"),
            remote_url: None,
            preview_remote_url: None,
            text_url: None,
            meta: MediaMeta {
                original: MediaSize::new(media.width, media.height),
                small: MediaSize::new(media.width / 2, media.height / 2),
            },
            description: media.description,
            blurhash: "UGC~-#M{0JfkNFofR%M{IURj%Mt7E0oM%MR*",
        }
    }
}

impl From<crate::world::ProfileField> for Field {
    fn from(field: crate::world::ProfileField) -> Self {
        Self {
            name: field.name,
            value: field.value_html,
            verified_at: field.verified_us.map(iso_ms),
        }
    }
}
