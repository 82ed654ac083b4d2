//! What was found.

use super::views::{Counts, Label, Link, Object, Post, Relation, User, Version};
use super::{Answer, Known, Page, Path, Query, ROWS, key, keys};
use crate::api::refusal::{Invalid, Missing};
use crate::{Problem, Shared};
use axum::Json;
use axum::extract::State;
use kittiwake_model::{Key, Reference, Table, Value};
use kittiwake_store::browse::{
    CommentsQuestion, Hit, Indexed, LinkDirection, LinksQuestion, ObjectView, PostsQuestion,
    RelationsList, RelationsQuestion, SearchIn, SearchQuestion, UsersOrder, UsersQuestion,
    VersionsQuestion,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which page of a list is wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuestion {
    /// The `next` of the page before.
    pub after: Option<String>,
    /// Rows of a page, at most 200; 50 if it is missing.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
}

pub(crate) fn rows(limit: Option<u32>) -> usize {
    limit.map_or(ROWS, |limit| limit as usize)
}

#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Whoever was met last comes first.
    #[default]
    Newest,
    /// The most followers first.
    Followers,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct UsersParameters {
    #[serde(default)]
    order: Order,
    after: Option<String>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// People.
#[utoipa::path(get, path = "/api/users", tag = "objects", params(UsersParameters), responses(
    (status = 200, body = Page<User>),
    Invalid))]
pub(crate) async fn users(
    State(shared): Known,
    Query(asked): Query<UsersParameters>,
) -> Answer<Page<User>> {
    let question = UsersQuestion {
        order: match asked.order {
            Order::Newest => UsersOrder::Newest,
            Order::Followers => UsersOrder::Followers,
        },
        after: asked.after,
        limit: rows(asked.limit),
    };
    Ok(Json(Page::of(shared.browser.users(question).await?)))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PostsParameters {
    /// The author's key; posts of everybody if it is missing.
    #[param(pattern = "^[0-9]{1,18}$")]
    author: Option<String>,
    after: Option<String>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// Posts, the newest first.
#[utoipa::path(get, path = "/api/posts", tag = "objects", params(PostsParameters), responses(
    (status = 200, body = Page<Post>),
    Invalid))]
pub(crate) async fn posts(
    State(shared): Known,
    Query(asked): Query<PostsParameters>,
) -> Answer<Page<Post>> {
    let author = asked.author.as_deref().map(key).transpose()?;
    if let Some(author) = author {
        shared.count_request(author);
    }
    let question = PostsQuestion {
        author,
        after: asked.after,
        limit: rows(asked.limit),
    };
    Ok(Json(Page::of(shared.browser.posts(question).await?)))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FindParameters {
    /// An id, a handle or an address, as the network has it; or a key.
    #[param(max_length = 2000)]
    id: String,
}

/// Whoever or whatever is called so, a few at the most.
#[utoipa::path(get, path = "/api/find", tag = "objects", params(FindParameters), responses(
    (status = 200, body = Vec<Label>),
    Invalid))]
pub(crate) async fn find(
    State(shared): Known,
    Query(asked): Query<FindParameters>,
) -> Answer<Vec<Label>> {
    let mut found = keys(&shared, &asked.id).await?;
    found.sort_unstable();
    found.dedup();
    let labels = shared.browser.labels(found).await?;
    Ok(Json(labels.into_iter().map(Into::into).collect()))
}

#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Within {
    #[default]
    All,
    /// Handles, names and descriptions.
    Users,
    /// Posts and comments.
    Posts,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchParameters {
    /// Words that all have to be there; `"several words"` next to one another, `-word` not at all, `word*` as
    /// a beginning.
    #[param(max_length = 1000)]
    words: String,
    #[serde(default, rename = "in")]
    within: Within,
    after: Option<String>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// What was found by words.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Found {
    rows: Vec<FoundRow>,
    /// What to ask the next page with (`after`). Where much has some of the words and little has all, a page may
    /// have few rows, or none, and a next one all the same, which looks further back.
    next: Option<String>,
    /// Whether everything has been gone through that was there when the server began.
    is_indexed: bool,
    /// How far that has come, in thousandths.
    indexed_permille: u32,
    /// Calls of the log that have yet to be looked at.
    calls_behind: u64,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FoundRow {
    User(Box<User>),
    Post(Box<Post>),
}

impl From<Hit> for FoundRow {
    fn from(hit: Hit) -> Self {
        match hit {
            Hit::User(user) => Self::User(Box::new(user.into())),
            Hit::Post(post) => Self::Post(Box::new(post.into())),
        }
    }
}

/// Looks for words in what is stored. It costs no call.
#[utoipa::path(get, path = "/api/search", tag = "objects", params(SearchParameters), responses(
    (status = 200, body = Found),
    Invalid))]
pub(crate) async fn search(
    State(shared): Known,
    Query(asked): Query<SearchParameters>,
) -> Answer<Found> {
    let question = SearchQuestion {
        words: asked.words,
        within: match asked.within {
            Within::All => SearchIn::All,
            Within::Users => SearchIn::Users,
            Within::Posts => SearchIn::Posts,
        },
        after: asked.after,
        limit: rows(asked.limit),
    };
    let page = shared.browser.search(question).await?;
    let Indexed {
        is_filled,
        permille,
        calls_behind,
    } = shared.browser.indexed().await?;
    Ok(Json(Found {
        rows: page.rows.into_iter().map(Into::into).collect(),
        next: page.next,
        is_indexed: is_filled,
        indexed_permille: permille,
        calls_behind,
    }))
}

fn no_object() -> Problem {
    Problem::missing("nothing has this key; /api/find finds objects by their ids")
}

/// One object, with when and by which call each part of it was observed.
#[utoipa::path(get, path = "/api/objects/{key}", tag = "objects",
    params(("key" = String, Path, pattern = "^[0-9]{1,18}$")), responses(
    (status = 200, body = Object),
    Invalid, Missing))]
pub(crate) async fn object(State(shared): Known, Path(asked): Path<String>) -> Answer<Object> {
    let found = shared.browser.object(key(&asked)?).await?;
    let found = found.ok_or_else(no_object)?;
    shared.count_request_of(&found);
    Ok(Json(found.into()))
}

/// What answers a post.
#[utoipa::path(get, path = "/api/objects/{key}/comments", tag = "objects",
    params(("key" = String, Path, pattern = "^[0-9]{1,18}$"), PageQuestion), responses(
    (status = 200, body = Page<Post>),
    Invalid))]
pub(crate) async fn comments(
    State(shared): Known,
    Path(post): Path<String>,
    Query(asked): Query<PageQuestion>,
) -> Answer<Page<Post>> {
    let question = CommentsQuestion {
        post: key(&post)?,
        after: asked.after,
        limit: rows(asked.limit),
    };
    Ok(Json(Page::of(shared.browser.comments_of(question).await?)))
}

#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum List {
    #[default]
    Following,
    Followers,
    /// Whom the user followed once.
    GoneFollowing,
    /// Who followed the user once.
    GoneFollowers,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RelationsParameters {
    #[serde(default)]
    list: List,
    after: Option<String>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// Whom a user follows, or who follows them.
#[utoipa::path(get, path = "/api/objects/{key}/relations", tag = "objects",
    params(("key" = String, Path, pattern = "^[0-9]{1,18}$"), RelationsParameters), responses(
    (status = 200, body = Page<Relation>),
    Invalid))]
pub(crate) async fn relations(
    State(shared): Known,
    Path(user): Path<String>,
    Query(asked): Query<RelationsParameters>,
) -> Answer<Page<Relation>> {
    let user = key(&user)?;
    shared.count_request(user);
    let question = RelationsQuestion {
        user,
        list: match asked.list {
            List::Following => RelationsList::Following,
            List::Followers => RelationsList::Followers,
            List::GoneFollowing => RelationsList::GoneFollowing,
            List::GoneFollowers => RelationsList::GoneFollowers,
        },
        after: asked.after,
        limit: rows(asked.limit),
    };
    Ok(Json(Page::of(shared.browser.relations(question).await?)))
}

#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Direction {
    /// Links that begin at the object.
    #[default]
    From,
    /// Links that lead to it.
    To,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LinksParameters {
    #[serde(default)]
    direction: Direction,
    /// Only links of one kind: `mention`, `tag`, `repost`, …
    #[param(max_length = 100)]
    kind: Option<String>,
    after: Option<String>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// Links of an object, also to objects of other networks.
#[utoipa::path(get, path = "/api/objects/{key}/links", tag = "objects",
    params(("key" = String, Path, pattern = "^[0-9]{1,18}$"), LinksParameters), responses(
    (status = 200, body = Page<Link>),
    Invalid))]
pub(crate) async fn links(
    State(shared): Known,
    Path(object): Path<String>,
    Query(asked): Query<LinksParameters>,
) -> Answer<Page<Link>> {
    let question = LinksQuestion {
        key: key(&object)?,
        direction: match asked.direction {
            Direction::From => LinkDirection::From,
            Direction::To => LinkDirection::To,
        },
        kind: asked.kind,
        after: asked.after,
        limit: rows(asked.limit),
    };
    Ok(Json(Page::of(shared.browser.links(question).await?)))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LimitParameters {
    /// At most 200; 50 if it is missing.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
}

/// The counts of an object over time, the newest first.
#[utoipa::path(get, path = "/api/objects/{key}/counts", tag = "objects",
    params(("key" = String, Path, pattern = "^[0-9]{1,18}$"), LimitParameters), responses(
    (status = 200, body = Vec<Counts>),
    Invalid))]
pub(crate) async fn counts(
    State(shared): Known,
    Path(object): Path<String>,
    Query(asked): Query<LimitParameters>,
) -> Answer<Vec<Counts>> {
    let counts = shared.browser.counts(key(&object)?, rows(asked.limit));
    Ok(Json(counts.await?.into_iter().map(Into::into).collect()))
}

/// What the fields of an object were before, the newest change first.
#[utoipa::path(get, path = "/api/objects/{key}/versions", tag = "objects",
    params(("key" = String, Path, pattern = "^[0-9]{1,18}$"), PageQuestion), responses(
    (status = 200, body = Page<Version>),
    Invalid))]
pub(crate) async fn versions(
    State(shared): Known,
    Path(object): Path<String>,
    Query(asked): Query<PageQuestion>,
) -> Answer<Page<Version>> {
    let question = VersionsQuestion {
        key: key(&object)?,
        after: asked.after,
        limit: rows(asked.limit),
    };
    Ok(Json(Page::of(shared.browser.versions(question).await?)))
}

impl Shared {
    /// Counts a request for somebody's objects.
    pub fn count_request(&self, user: Key) {
        self.interest.count(user, (self.now)());
    }

    /// The same, of whoever the object is, or is by.
    pub fn count_request_of(&self, object: &ObjectView) {
        if object.table == Some(Table::Users) {
            return self.count_request(object.label.key);
        }
        let mut fields = object.groups.iter().flat_map(|group| &group.fields);
        let author = fields.find(|field| &*field.name == "author");
        if let Some(Value::Object(Reference::Key(author))) = author.map(|field| &field.value) {
            self.count_request(*author);
        }
    }
}
