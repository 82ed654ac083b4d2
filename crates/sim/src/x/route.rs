//! Which endpoint a path is, and what each of them takes.

/// The names of all endpoints in the ledger and in files of limits.
pub(super) const QUERIES: [&str; 23] = [
    "users",
    "users_by",
    "user",
    "user_by_name",
    "me",
    "users_search",
    "following",
    "followers",
    "timeline",
    "mentions",
    "liked_tweets",
    "tweets",
    "tweet",
    "retweeted_by",
    "retweets",
    "quote_tweets",
    "liking_users",
    "search_recent",
    "search_all",
    "counts_recent",
    "counts_all",
    "usage",
    "unknown",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route<'a> {
    Users,
    UsersBy,
    User(&'a str),
    UserByName(&'a str),
    Me,
    UsersSearch,
    Following(&'a str),
    Followers(&'a str),
    Timeline(&'a str),
    Mentions(&'a str),
    Liked(&'a str),
    Posts,
    Post(&'a str),
    RepostedBy(&'a str),
    Reposts(&'a str),
    Quotes(&'a str),
    LikingUsers(&'a str),
    SearchRecent,
    SearchAll,
    CountsRecent,
    CountsAll,
    Usage,
    Unknown,
}

/// How many items a page may have, and has if nobody says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) least: u64,
    pub(super) most: u64,
    pub(super) usual: u64,
}

/// What an endpoint's objects are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Users,
    Posts,
    Numbers,
}

const USER_PARAMETERS: &[&str] = &["expansions", "tweet.fields", "user.fields"];
const POST_PARAMETERS: &[&str] = &[
    "expansions",
    "tweet.fields",
    "user.fields",
    "media.fields",
    "poll.fields",
    "place.fields",
];
const PAGE_PARAMETERS: &[&str] = &["max_results", "pagination_token"];
const TIMELINE_PARAMETERS: &[&str] = &[
    "max_results",
    "pagination_token",
    "since_id",
    "until_id",
    "start_time",
    "end_time",
];
const SEARCH_PARAMETERS: &[&str] = &[
    "query",
    "max_results",
    "next_token",
    "pagination_token",
    "since_id",
    "until_id",
    "start_time",
    "end_time",
    "sort_order",
];
const COUNT_PARAMETERS: &[&str] = &[
    "query",
    "next_token",
    "pagination_token",
    "since_id",
    "until_id",
    "start_time",
    "end_time",
    "granularity",
    "search_count.fields",
];

impl<'a> Route<'a> {
    pub(super) fn read(segments: &[&'a str]) -> Self {
        match segments {
            ["2", "users"] => Self::Users,
            ["2", "users", "by"] => Self::UsersBy,
            ["2", "users", "by", "username", name] => Self::UserByName(name),
            ["2", "users", "me"] => Self::Me,
            ["2", "users", "search"] => Self::UsersSearch,
            ["2", "users", id] => Self::User(id),
            ["2", "users", id, "following"] => Self::Following(id),
            ["2", "users", id, "followers"] => Self::Followers(id),
            ["2", "users", id, "tweets"] => Self::Timeline(id),
            ["2", "users", id, "mentions"] => Self::Mentions(id),
            ["2", "users", id, "liked_tweets"] => Self::Liked(id),
            ["2", "tweets"] => Self::Posts,
            ["2", "tweets", "search", "recent"] => Self::SearchRecent,
            ["2", "tweets", "search", "all"] => Self::SearchAll,
            ["2", "tweets", "counts", "recent"] => Self::CountsRecent,
            ["2", "tweets", "counts", "all"] => Self::CountsAll,
            ["2", "tweets", id] => Self::Post(id),
            ["2", "tweets", id, "retweeted_by"] => Self::RepostedBy(id),
            ["2", "tweets", id, "retweets"] => Self::Reposts(id),
            ["2", "tweets", id, "quote_tweets"] => Self::Quotes(id),
            ["2", "tweets", id, "liking_users"] => Self::LikingUsers(id),
            ["2", "usage", "tweets"] => Self::Usage,
            _ => Self::Unknown,
        }
    }

    pub(super) const fn query(self) -> &'static str {
        match self {
            Self::Users => "users",
            Self::UsersBy => "users_by",
            Self::User(_) => "user",
            Self::UserByName(_) => "user_by_name",
            Self::Me => "me",
            Self::UsersSearch => "users_search",
            Self::Following(_) => "following",
            Self::Followers(_) => "followers",
            Self::Timeline(_) => "timeline",
            Self::Mentions(_) => "mentions",
            Self::Liked(_) => "liked_tweets",
            Self::Posts => "tweets",
            Self::Post(_) => "tweet",
            Self::RepostedBy(_) => "retweeted_by",
            Self::Reposts(_) => "retweets",
            Self::Quotes(_) => "quote_tweets",
            Self::LikingUsers(_) => "liking_users",
            Self::SearchRecent => "search_recent",
            Self::SearchAll => "search_all",
            Self::CountsRecent => "counts_recent",
            Self::CountsAll => "counts_all",
            Self::Usage => "usage",
            Self::Unknown => "unknown",
        }
    }

    /// The id or name in the path.
    pub(super) const fn subject(self) -> &'a str {
        match self {
            Self::User(id)
            | Self::UserByName(id)
            | Self::Following(id)
            | Self::Followers(id)
            | Self::Timeline(id)
            | Self::Mentions(id)
            | Self::Liked(id)
            | Self::Post(id)
            | Self::RepostedBy(id)
            | Self::Reposts(id)
            | Self::Quotes(id)
            | Self::LikingUsers(id) => id,
            _ => "",
        }
    }

    pub(super) const fn kind(self) -> Kind {
        match self {
            Self::Users
            | Self::UsersBy
            | Self::User(_)
            | Self::UserByName(_)
            | Self::Me
            | Self::UsersSearch
            | Self::Following(_)
            | Self::Followers(_)
            | Self::RepostedBy(_)
            | Self::LikingUsers(_) => Kind::Users,
            Self::CountsRecent | Self::CountsAll | Self::Usage | Self::Unknown => Kind::Numbers,
            _ => Kind::Posts,
        }
    }

    pub(super) const fn sizes(self) -> Option<Sizes> {
        let (least, most, usual) = match self {
            Self::Following(_) | Self::Followers(_) | Self::UsersSearch => (1, 1_000, 100),
            Self::Timeline(_) | Self::Mentions(_) => (5, 100, 10),
            Self::Liked(_) => (5, 100, 100),
            Self::RepostedBy(_) | Self::Reposts(_) | Self::LikingUsers(_) => (1, 100, 100),
            Self::Quotes(_) | Self::SearchRecent => (10, 100, 10),
            Self::SearchAll => (10, 500, 10),
            _ => return None,
        };
        Some(Sizes { least, most, usual })
    }

    /// The parameters that belong to the endpoint alone, and those of what it shows.
    pub(super) const fn parameters(self) -> (&'static [&'static str], &'static [&'static str]) {
        let own: &[&str] = match self {
            Self::Users | Self::Posts => &["ids"],
            Self::UsersBy => &["usernames"],
            Self::Timeline(_) => {
                return (
                    &[
                        "max_results",
                        "pagination_token",
                        "since_id",
                        "until_id",
                        "start_time",
                        "end_time",
                        "exclude",
                    ],
                    POST_PARAMETERS,
                );
            }
            Self::Mentions(_) => TIMELINE_PARAMETERS,
            Self::Quotes(_) => &["max_results", "pagination_token", "exclude"],
            Self::SearchRecent | Self::SearchAll => SEARCH_PARAMETERS,
            Self::CountsRecent | Self::CountsAll => COUNT_PARAMETERS,
            Self::UsersSearch => &["query", "max_results", "next_token"],
            Self::Usage => &["days", "usage.fields"],
            _ if self.sizes().is_some() => PAGE_PARAMETERS,
            _ => &[],
        };
        let shared = match self.kind() {
            Kind::Users => USER_PARAMETERS,
            Kind::Posts => POST_PARAMETERS,
            Kind::Numbers => &[],
        };
        (own, shared)
    }

    pub(super) const fn is_search(self) -> bool {
        matches!(
            self,
            Self::SearchRecent
                | Self::SearchAll
                | Self::CountsRecent
                | Self::CountsAll
                | Self::UsersSearch
        )
    }

    /// Made from many users.
    pub(super) const fn is_wide(self) -> bool {
        self.is_search()
            || matches!(
                self,
                Self::Mentions(_) | Self::Liked(_) | Self::Followers(_) | Self::Following(_)
            )
    }

    pub(super) const fn is_for_users_only(self) -> bool {
        matches!(
            self,
            Self::Me | Self::UsersSearch | Self::Liked(_) | Self::LikingUsers(_)
        )
    }

    pub(super) const fn is_for_apps_only(self) -> bool {
        matches!(self, Self::CountsRecent | Self::CountsAll | Self::Usage)
    }

    /// Lists of people, for which a token needs permissions of their own.
    pub(super) const fn shows_people(self) -> bool {
        matches!(
            self,
            Self::Following(_) | Self::Followers(_) | Self::Liked(_) | Self::LikingUsers(_)
        )
    }
}
