//! People, posts and whatever else was collected, as they are shown.

use kittiwake_model::{Key, Name, Table, Value, WorldTime};
use serde::Serialize;

/// Bytes of a text that lists show at the most.
pub(crate) const EXCERPT_BYTES_MAX: usize = 1_000;

/// A text, or its beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Excerpt {
    pub text: String,
    /// Whether there is more of it.
    pub is_cut: bool,
}

impl Excerpt {
    /// The beginning of a text, cut between two characters.
    pub(crate) fn of(mut text: String, bytes_max: usize) -> Self {
        let is_cut = text.len() > bytes_max;
        if is_cut {
            text.truncate(text.floor_char_boundary(bytes_max));
        }
        Self { text, is_cut }
    }
}

/// How an object is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Label {
    pub key: Key,
    pub network: String,
    /// The definition's type: `user`, `status`, …
    pub kind: String,
    /// The best of its ids, as exports name it.
    pub id: String,
    /// The handle of a user, the name of a tag, as far as it is known.
    pub name: Option<String>,
    /// A user's name as shown beside posts.
    pub display_name: Option<Excerpt>,
}

/// In which order users are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UsersOrder {
    /// Whoever was met last comes first.
    #[default]
    Newest,
    /// The most followers first. Knows those whom the index has reached (see [`super::Indexed`]).
    Followers,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsersQuestion {
    pub order: UsersOrder,
    /// [`super::Page::next`] of the page before.
    pub after: Option<String>,
    /// Between 1 and 200, clamped.
    pub limit: usize,
}

/// A user in a list.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own that networks tell"
)]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UserRow {
    pub label: Label,
    /// Whether anything but the name is known yet.
    pub is_described: bool,
    pub description: Option<Excerpt>,
    pub url: Option<String>,
    pub avatar_url: Option<String>,
    pub followers: Option<i64>,
    pub following: Option<i64>,
    pub posts: Option<i64>,
    pub created: Option<WorldTime>,
    pub last_posted: Option<WorldTime>,
    pub is_bot: bool,
    pub is_protected: bool,
    pub opted_out: bool,
    /// Since when, and why, the user is not there.
    pub gone: Option<(WorldTime, String)>,
    /// `inactive`, `regular`, `unstable` or `authority`, where the crawl has found it out.
    pub class: Option<String>,
}

/// Posts, newest first: of one author by the time they were made, of everybody by when they were
/// first met.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostsQuestion {
    pub author: Option<Key>,
    pub after: Option<String>,
    pub limit: usize,
}

/// What answers a post, the first found first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentsQuestion {
    pub post: Key,
    pub after: Option<String>,
    pub limit: usize,
}

/// A post or a comment in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PostRow {
    pub label: Label,
    /// `statuses` or `comments`.
    pub table: Table,
    pub author: Option<Label>,
    pub created: Option<WorldTime>,
    /// `None` where there is no text, or nothing was told of the post but whose it is.
    pub text: Option<Excerpt>,
    pub content_warning: Option<Excerpt>,
    pub is_sensitive: bool,
    pub language: Option<String>,
    pub url: Option<String>,
    pub reply_to: Option<Key>,
    pub repost_of: Option<Key>,
    pub quote_of: Option<Key>,
    pub replies: Option<i64>,
    pub reposts: Option<i64>,
    pub likes: Option<i64>,
    /// When it was first seen to be gone.
    pub deleted: Option<WorldTime>,
}

/// Which relations of a user are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RelationsList {
    Following,
    Followers,
    /// Whom the user followed once.
    GoneFollowing,
    /// Who followed the user once.
    GoneFollowers,
}

/// Relations of a user, those who were met last first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationsQuestion {
    pub user: Key,
    pub list: RelationsList,
    pub after: Option<String>,
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RelationRow {
    /// The other end.
    pub user: UserRow,
    pub first_seen: WorldTime,
    pub last_seen: WorldTime,
    /// When it was found to have vanished.
    pub vanished: Option<WorldTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkDirection {
    /// Links that begin at the object.
    From,
    /// Links that lead to it.
    To,
}

/// Links of an object, by their kind; also the tags that users gave to themselves (`user_tag`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinksQuestion {
    pub key: Key,
    pub direction: LinkDirection,
    /// Only links of one kind.
    pub kind: Option<String>,
    pub after: Option<String>,
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkRow {
    pub kind: String,
    /// The other end.
    pub other: Label,
    /// The beginning of what the other end says, if it is a post or a comment.
    pub text: Option<Excerpt>,
    /// When it began, as far as the network says.
    pub at: Option<WorldTime>,
    pub first_seen: WorldTime,
    pub last_seen: WorldTime,
}

/// Everything that is known of one object, with where each part of it comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectView {
    pub label: Label,
    /// `None` if it was only named and never described.
    pub table: Option<Table>,
    pub ids: Vec<IdView>,
    pub groups: Vec<GroupView>,
    /// How the objects are called that its fields name.
    pub labels: Vec<Label>,
    /// When a post was first seen to be gone.
    pub deleted: Option<WorldTime>,
    /// Spells during which a user was not there, the newest first.
    pub spells: Vec<SpellView>,
    /// Steps from a seed; of a post, its author's.
    pub depth: Option<u32>,
    pub visits: Vec<VisitView>,
}

/// One of the ids of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IdView {
    pub network: String,
    pub kind: String,
    /// Empty for the canonical id.
    pub alias: String,
    /// Empty when it is valid everywhere.
    pub host: String,
    pub id: String,
    pub is_canonical: bool,
    /// Whether it may be somebody else's later.
    pub is_movable: bool,
    pub first_seen: WorldTime,
    pub last_seen: WorldTime,
}

/// Fields that were observed together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupView {
    pub name: Name,
    pub observed: ObservedView,
    pub fields: Vec<FieldView>,
}

/// When something was observed, and by which call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ObservedView {
    pub at: WorldTime,
    /// The row of the log; `None` where there is none: the call was made for another file, or the
    /// crawl itself found it out.
    pub call: Option<i64>,
    /// Told by somebody else than the object's own host.
    pub is_hearsay: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldView {
    pub name: Name,
    /// Whole, however long it is.
    pub value: Value,
    /// Where the newest observation of the group did not show the field: the one that last did.
    pub observed: Option<ObservedView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpellView {
    pub reason: String,
    pub from: WorldTime,
    pub until: Option<WorldTime>,
}

/// A robot that visits the object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VisitView {
    pub robot: String,
    pub lane: String,
    pub visits: i64,
    pub visited: Option<WorldTime>,
    pub due: WorldTime,
}

/// The counts of an object at one time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CountsRow {
    pub observed: ObservedView,
    /// Fields and values.
    pub counts: Vec<(Name, i64)>,
}

/// What an object's fields were before, the newest change first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionsQuestion {
    pub key: Key,
    pub after: Option<String>,
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VersionRow {
    pub group: String,
    /// When the values were observed that another observation has overruled since.
    pub observed: ObservedView,
    pub fields: Vec<(Name, Value)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        let cut = |text: &str| Excerpt::of(text.to_owned(), 4);
        assert_eq!(
            (cut("abcd").text.as_str(), cut("abcd").is_cut),
            ("abcd", false)
        );
        assert_eq!(
            (cut("abcé").text.as_str(), cut("abcé").is_cut),
            ("abc", true)
        );
        assert_eq!(
            (cut("🐦🐦").text.as_str(), cut("🐦🐦").is_cut),
            ("🐦", true)
        );
    }
}
