//! The documented columns of the tables that types may fill.
//!
//! A field of a definition that is named like a column is kept there; every other field goes to
//! the row's `extra`, as JSON. Definitions are checked against this list, stores are built on it.

use serde::{Deserialize, Serialize};

/// The tables that hold objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    Users,
    Statuses,
    Comments,
    Tags,
    /// Types that have no table of their own; all their fields are in `extra`.
    Objects,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    Text,
    Integer,
    Real,
    Boolean,
    /// Microseconds since 1970 UTC.
    Time,
    /// The key of an object of that table.
    Reference(Table),
    /// JSON text.
    Json,
}

/// One documented column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    pub kind: ColumnKind,
    pub meaning: &'static str,
}

const fn column(name: &'static str, kind: ColumnKind, meaning: &'static str) -> Column {
    Column {
        name,
        kind,
        meaning,
    }
}

const USERS: &[Column] = &[
    column(
        "handle",
        ColumnKind::Text,
        "the name by which people address the user, with its host",
    ),
    column(
        "display_name",
        ColumnKind::Text,
        "the name shown beside posts",
    ),
    column(
        "description",
        ColumnKind::Text,
        "what the user says about themselves, as plain text",
    ),
    column("url", ColumnKind::Text, "the profile's web page"),
    column("avatar_url", ColumnKind::Text, "the profile picture"),
    column(
        "banner_url",
        ColumnKind::Text,
        "the picture across the profile",
    ),
    column("location", ColumnKind::Text, "where the user says to be"),
    column("is_bot", ColumnKind::Boolean, "declared to be automated"),
    column(
        "is_protected",
        ColumnKind::Boolean,
        "followers have to be approved",
    ),
    column(
        "is_verified",
        ColumnKind::Boolean,
        "verified by the network",
    ),
    column(
        "opted_out",
        ColumnKind::Boolean,
        "asks not to be indexed or collected",
    ),
    column("created_us", ColumnKind::Time, "when the account was made"),
    column(
        "last_posted_us",
        ColumnKind::Time,
        "when the user last posted, as far as the network says",
    ),
    column(
        "followers_count",
        ColumnKind::Integer,
        "how many follow the user",
    ),
    column(
        "following_count",
        ColumnKind::Integer,
        "how many the user follows",
    ),
    column(
        "statuses_count",
        ColumnKind::Integer,
        "how many posts the user has",
    ),
];

const STATUSES: &[Column] = &[
    column(
        "author",
        ColumnKind::Reference(Table::Users),
        "who posted it",
    ),
    column("created_us", ColumnKind::Time, "when it was posted"),
    column("edited_us", ColumnKind::Time, "when it was last edited"),
    column("text", ColumnKind::Text, "what it says, as plain text"),
    column(
        "html",
        ColumnKind::Text,
        "what it says, as the network serves it, where that is HTML",
    ),
    column("language", ColumnKind::Text, "the declared language"),
    column("url", ColumnKind::Text, "its web page"),
    column(
        "visibility",
        ColumnKind::Text,
        "who may see it, in the network's word",
    ),
    column("is_sensitive", ColumnKind::Boolean, "marked as sensitive"),
    column(
        "content_warning",
        ColumnKind::Text,
        "the warning shown before it",
    ),
    column(
        "reply_to",
        ColumnKind::Reference(Table::Statuses),
        "the post it answers",
    ),
    column(
        "reply_to_author",
        ColumnKind::Reference(Table::Users),
        "whose post it answers",
    ),
    column(
        "repost_of",
        ColumnKind::Reference(Table::Statuses),
        "the post it repeats",
    ),
    column(
        "quote_of",
        ColumnKind::Reference(Table::Statuses),
        "the post it quotes",
    ),
    column("source", ColumnKind::Text, "the program it was posted with"),
    column("media", ColumnKind::Json, "pictures, videos and sounds"),
    column(
        "place",
        ColumnKind::Text,
        "the name of the place it was posted from",
    ),
    column("longitude", ColumnKind::Real, "degrees east"),
    column("latitude", ColumnKind::Real, "degrees north"),
    column(
        "replies_count",
        ColumnKind::Integer,
        "how many replies it has",
    ),
    column(
        "reposts_count",
        ColumnKind::Integer,
        "how many reposts it has",
    ),
    column("likes_count", ColumnKind::Integer, "how many likes it has"),
    column(
        "quotes_count",
        ColumnKind::Integer,
        "how many quotes it has",
    ),
    column("views_count", ColumnKind::Integer, "how many views it has"),
];

const COMMENTS: &[Column] = &[
    column(
        "status",
        ColumnKind::Reference(Table::Statuses),
        "the post under which it stands",
    ),
    column(
        "parent",
        ColumnKind::Reference(Table::Statuses),
        "what it answers",
    ),
    column(
        "root",
        ColumnKind::Reference(Table::Statuses),
        "the first post of the conversation",
    ),
    column(
        "author",
        ColumnKind::Reference(Table::Users),
        "who wrote it",
    ),
    column("created_us", ColumnKind::Time, "when it was written"),
    column(
        "text",
        ColumnKind::Text,
        "what it says, where comments are not posts themselves",
    ),
];

const TAGS: &[Column] = &[
    column("name", ColumnKind::Text, "the tag, without a number sign"),
    column("url", ColumnKind::Text, "its web page"),
];

impl Table {
    pub const ALL: &[Self] = &[
        Self::Users,
        Self::Statuses,
        Self::Comments,
        Self::Tags,
        Self::Objects,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Users => "users",
            Self::Statuses => "statuses",
            Self::Comments => "comments",
            Self::Tags => "tags",
            Self::Objects => "objects",
        }
    }

    pub const fn columns(self) -> &'static [Column] {
        match self {
            Self::Users => USERS,
            Self::Statuses => STATUSES,
            Self::Comments => COMMENTS,
            Self::Tags => TAGS,
            Self::Objects => &[],
        }
    }

    pub fn column(self, name: &str) -> Option<&'static Column> {
        self.columns().iter().find(|column| column.name == name)
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|table| table.name() == name)
    }
}
