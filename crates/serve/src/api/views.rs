//! What the API shows of a crawl. Keys and ids are text, times are microseconds since 1970, UTC.

use super::value;
use kittiwake_model::{Key, Name, Value, WorldTime};
use kittiwake_store::browse as store;
use serde::Serialize;
use serde_json::Map;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    pub rows: Vec<T>,
    /// Ask with `after=` this for the next page; missing on the last one. A page may have few rows, or none,
    /// and a next one all the same.
    pub next: Option<String>,
}

impl<T> Page<T> {
    pub(crate) fn of<S>(page: store::Page<S>) -> Self
    where
        T: From<S>,
    {
        Self {
            rows: page.rows.into_iter().map(T::from).collect(),
            next: page.next,
        }
    }
}

pub(crate) fn key_text(key: Key) -> String {
    key.0.to_string()
}

fn us(at: Option<WorldTime>) -> Option<i64> {
    at.map(WorldTime::micros)
}

/// A text, or its beginning.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Excerpt {
    pub text: String,
    /// Whether there is more of it: the object has it whole.
    pub is_cut: bool,
}

impl From<store::Excerpt> for Excerpt {
    fn from(it: store::Excerpt) -> Self {
        Self {
            text: it.text,
            is_cut: it.is_cut,
        }
    }
}

/// How an object is called.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Label {
    /// What this crawl calls it: ask `/api/objects/` with it.
    pub key: String,
    pub network: String,
    /// `user`, `status`, … as the definition has it.
    #[serde(rename = "type")]
    pub kind: String,
    pub id: String,
    pub name: Option<String>,
    pub display_name: Option<Excerpt>,
}

impl From<store::Label> for Label {
    fn from(it: store::Label) -> Self {
        Self {
            key: key_text(it.key),
            network: it.network,
            kind: it.kind,
            id: it.id,
            name: it.name,
            display_name: it.display_name.map(Into::into),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct User {
    #[serde(flatten)]
    pub label: Label,
    /// Whether anything but the name is known yet.
    pub is_described: bool,
    pub description: Option<Excerpt>,
    pub url: Option<String>,
    pub avatar_url: Option<String>,
    pub followers: Option<i64>,
    pub following: Option<i64>,
    pub posts: Option<i64>,
    pub created_us: Option<i64>,
    pub last_posted_us: Option<i64>,
    pub is_bot: bool,
    pub is_protected: bool,
    pub opted_out: bool,
    pub gone_us: Option<i64>,
    pub gone_reason: Option<String>,
    pub class: Option<String>,
}

impl From<store::UserRow> for User {
    fn from(it: store::UserRow) -> Self {
        let (gone, gone_reason) = it.gone.unzip();
        Self {
            label: it.label.into(),
            is_described: it.is_described,
            description: it.description.map(Into::into),
            url: it.url,
            avatar_url: it.avatar_url,
            followers: it.followers,
            following: it.following,
            posts: it.posts,
            created_us: us(it.created),
            last_posted_us: us(it.last_posted),
            is_bot: it.is_bot,
            is_protected: it.is_protected,
            opted_out: it.opted_out,
            gone_us: us(gone),
            gone_reason,
            class: it.class,
        }
    }
}

/// A post or a comment.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Post {
    #[serde(flatten)]
    pub label: Label,
    /// `statuses` or `comments`.
    pub table: String,
    pub author: Option<Label>,
    pub created_us: Option<i64>,
    pub text: Option<Excerpt>,
    pub content_warning: Option<Excerpt>,
    pub is_sensitive: bool,
    pub language: Option<String>,
    pub url: Option<String>,
    pub reply_to: Option<String>,
    pub repost_of: Option<String>,
    pub quote_of: Option<String>,
    pub replies: Option<i64>,
    pub reposts: Option<i64>,
    pub likes: Option<i64>,
    pub deleted_us: Option<i64>,
}

impl From<store::PostRow> for Post {
    fn from(it: store::PostRow) -> Self {
        Self {
            label: it.label.into(),
            table: it.table.name().to_owned(),
            author: it.author.map(Into::into),
            created_us: us(it.created),
            text: it.text.map(Into::into),
            content_warning: it.content_warning.map(Into::into),
            is_sensitive: it.is_sensitive,
            language: it.language,
            url: it.url,
            reply_to: it.reply_to.map(key_text),
            repost_of: it.repost_of.map(key_text),
            quote_of: it.quote_of.map(key_text),
            replies: it.replies,
            reposts: it.reposts,
            likes: it.likes,
            deleted_us: us(it.deleted),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Relation {
    /// The other end.
    pub user: User,
    pub first_seen_us: i64,
    pub last_seen_us: i64,
    pub vanished_us: Option<i64>,
}

impl From<store::RelationRow> for Relation {
    fn from(it: store::RelationRow) -> Self {
        Self {
            user: it.user.into(),
            first_seen_us: it.first_seen.micros(),
            last_seen_us: it.last_seen.micros(),
            vanished_us: us(it.vanished),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Link {
    pub kind: String,
    /// The other end.
    pub other: Label,
    pub text: Option<Excerpt>,
    pub at_us: Option<i64>,
    pub first_seen_us: i64,
    pub last_seen_us: i64,
}

impl From<store::LinkRow> for Link {
    fn from(it: store::LinkRow) -> Self {
        Self {
            kind: it.kind,
            other: it.other.into(),
            text: it.text.map(Into::into),
            at_us: us(it.at),
            first_seen_us: it.first_seen.micros(),
            last_seen_us: it.last_seen.micros(),
        }
    }
}

/// When something was observed, and by which call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Observed {
    pub at_us: i64,
    /// Ask `/api/calls/` with it.
    pub call: Option<String>,
    /// Told by somebody else than the object's own host.
    pub is_hearsay: bool,
}

impl From<store::ObservedView> for Observed {
    fn from(it: store::ObservedView) -> Self {
        Self {
            at_us: it.at.micros(),
            call: it.call.map(|call| call.to_string()),
            is_hearsay: it.is_hearsay,
        }
    }
}

/// Everything that is known of one object.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Object {
    #[serde(flatten)]
    pub label: Label,
    pub table: Option<String>,
    pub ids: Vec<Id>,
    pub groups: Vec<Group>,
    /// How the objects are called that its fields name.
    pub labels: Vec<Label>,
    pub deleted_us: Option<i64>,
    /// When a user was not there, the newest first.
    pub spells: Vec<Spell>,
    /// Steps from a seed.
    pub depth: Option<u32>,
    pub visits: Vec<Visit>,
}

impl From<store::ObjectView> for Object {
    fn from(it: store::ObjectView) -> Self {
        Self {
            label: it.label.into(),
            table: it.table.map(|table| table.name().to_owned()),
            ids: it.ids.into_iter().map(Into::into).collect(),
            groups: it.groups.into_iter().map(Into::into).collect(),
            labels: it.labels.into_iter().map(Into::into).collect(),
            deleted_us: us(it.deleted),
            spells: it.spells.into_iter().map(Into::into).collect(),
            depth: it.depth,
            visits: it.visits.into_iter().map(Into::into).collect(),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Id {
    pub network: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// Empty for the canonical id.
    pub alias: String,
    /// Empty where it is valid everywhere.
    pub host: String,
    pub id: String,
    pub is_canonical: bool,
    pub first_seen_us: i64,
    pub last_seen_us: i64,
}

impl From<store::IdView> for Id {
    fn from(it: store::IdView) -> Self {
        Self {
            network: it.network,
            kind: it.kind,
            alias: it.alias,
            host: it.host,
            id: it.id,
            is_canonical: it.is_canonical,
            first_seen_us: it.first_seen.micros(),
            last_seen_us: it.last_seen.micros(),
        }
    }
}

/// Fields that were observed together.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Group {
    pub name: String,
    pub observed: Observed,
    pub fields: Vec<Field>,
}

impl From<store::GroupView> for Group {
    fn from(it: store::GroupView) -> Self {
        Self {
            name: it.name.to_string(),
            observed: it.observed.into(),
            fields: it.fields.into_iter().map(Into::into).collect(),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Field {
    pub name: String,
    /// Anything that JSON has; another object is its key or id, as text.
    #[schema(value_type = value::Any)]
    pub value: serde_json::Value,
    /// Where the newest observation did not show it: the one that last did.
    pub observed: Option<Observed>,
}

impl From<store::FieldView> for Field {
    fn from(it: store::FieldView) -> Self {
        Self {
            name: it.name.to_string(),
            value: value::json(&it.value),
            observed: it.observed.map(Into::into),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Spell {
    pub reason: String,
    pub from_us: i64,
    pub until_us: Option<i64>,
}

impl From<store::SpellView> for Spell {
    fn from(it: store::SpellView) -> Self {
        Self {
            reason: it.reason,
            from_us: it.from.micros(),
            until_us: us(it.until),
        }
    }
}

/// A robot that visits the object.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Visit {
    pub robot: String,
    pub lane: String,
    pub visits: i64,
    pub visited_us: Option<i64>,
    pub due_us: i64,
}

impl From<store::VisitView> for Visit {
    fn from(it: store::VisitView) -> Self {
        Self {
            robot: it.robot,
            lane: it.lane,
            visits: it.visits,
            visited_us: us(it.visited),
            due_us: it.due.micros(),
        }
    }
}

/// The counts of an object at one time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Counts {
    pub observed: Observed,
    pub counts: BTreeMap<String, i64>,
}

impl From<store::CountsRow> for Counts {
    fn from(it: store::CountsRow) -> Self {
        let counts = it.counts.into_iter();
        Self {
            observed: it.observed.into(),
            counts: counts
                .map(|(name, count)| (name.to_string(), count))
                .collect(),
        }
    }
}

/// What fields were before.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Version {
    pub group: String,
    pub observed: Observed,
    #[schema(value_type = Object)]
    pub fields: Map<String, serde_json::Value>,
}

impl From<store::VersionRow> for Version {
    fn from(it: store::VersionRow) -> Self {
        Self {
            group: it.group,
            observed: it.observed.into(),
            fields: fields(&it.fields),
        }
    }
}

fn fields(fields: &[(Name, Value)]) -> Map<String, serde_json::Value> {
    let fields = fields.iter();
    fields
        .map(|(name, value)| (name.to_string(), value::json(value)))
        .collect()
}
