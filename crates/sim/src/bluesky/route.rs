//! What a request asks for.

use crate::dialect::Heard;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    ResolveHandle(String),
    Profile(String),
    Profiles(Vec<String>),
    Follows(String),
    Followers(String),
    AuthorFeed(String),
    Thread(String),
    Posts(Vec<String>),
    Likes(String),
    RepostedBy(String),
    Quotes(String),
    SearchActors(String),
    SearchPosts(String),
    Unknown,
}

impl Route {
    pub(super) fn read(heard: &Heard) -> Self {
        let one = |name: &str| heard.params.get(name).unwrap_or_default().to_owned();
        let all = |name| heard.params.all(name).map(str::to_owned).collect();
        let Some(method) = heard.path.strip_prefix("/xrpc/") else {
            return Self::Unknown;
        };
        match method {
            "com.atproto.identity.resolveHandle" => Self::ResolveHandle(one("handle")),
            "app.bsky.actor.getProfile" => Self::Profile(one("actor")),
            "app.bsky.actor.getProfiles" => Self::Profiles(all("actors")),
            "app.bsky.graph.getFollows" => Self::Follows(one("actor")),
            "app.bsky.graph.getFollowers" => Self::Followers(one("actor")),
            "app.bsky.feed.getAuthorFeed" => Self::AuthorFeed(one("actor")),
            "app.bsky.feed.getPostThread" => Self::Thread(one("uri")),
            "app.bsky.feed.getPosts" => Self::Posts(all("uris")),
            "app.bsky.feed.getLikes" => Self::Likes(one("uri")),
            "app.bsky.feed.getRepostedBy" => Self::RepostedBy(one("uri")),
            "app.bsky.feed.getQuotes" => Self::Quotes(one("uri")),
            "app.bsky.actor.searchActors" => Self::SearchActors(one("q")),
            "app.bsky.feed.searchPosts" => Self::SearchPosts(one("q")),
            _ => Self::Unknown,
        }
    }

    /// The name of the query in the ledger.
    pub(super) const fn query(&self) -> &'static str {
        match self {
            Self::ResolveHandle(_) => "resolve_handle",
            Self::Profile(_) => "profile",
            Self::Profiles(_) => "profiles",
            Self::Follows(_) => "follows",
            Self::Followers(_) => "followers",
            Self::AuthorFeed(_) => "author_feed",
            Self::Thread(_) => "thread",
            Self::Posts(_) => "posts",
            Self::Likes(_) => "likes",
            Self::RepostedBy(_) => "reposted_by",
            Self::Quotes(_) => "quotes",
            Self::SearchActors(_) | Self::SearchPosts(_) => "search",
            Self::Unknown => "unknown",
        }
    }

    pub(super) fn subject(&self) -> String {
        match self {
            Self::ResolveHandle(one)
            | Self::Profile(one)
            | Self::Follows(one)
            | Self::Followers(one)
            | Self::AuthorFeed(one)
            | Self::Thread(one)
            | Self::Likes(one)
            | Self::RepostedBy(one)
            | Self::Quotes(one)
            | Self::SearchActors(one)
            | Self::SearchPosts(one) => one.clone(),
            Self::Profiles(all) | Self::Posts(all) => all.join(","),
            Self::Unknown => String::new(),
        }
    }
}
