//! Weibo's open API 2.0 over the world, and the business API beside it.
//!
//! Written by hand from notes on the network's wiki and from memory; no answer of the real server was at
//! hand, and the definition's paths and error codes were known. Originals and reposts are posts here;
//! what answers them, at any depth, are comments under the post that the thread began with, as long as
//! that is there. Reposts of comments are not shown. The tags that people feature are what they call themselves. A banned account is
//! said not to exist, nobody hides lists, and texts are never cut.
//!
//! An account that is asked for is anybody's: that is how it was in 2011. A token that begins with
//! `narrow` is one of today, which is told of its own account only. Whose a token is, its name says: an
//! id or a name, or else it belongs to the most followed user.
//!
//! - `users.rs`: accounts and tags; `statuses.rs`: posts, comments, likes; `lists.rs`: how lists are cut

mod lists;
mod statuses;
mod users;

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::dialect::{AllowanceAsked, Heard, Matter, Shown, Speech, View};
use crate::faults::{List, Walk, Walked};
use crate::world::time::{SECOND_US, in_beijing};
use crate::world::{Link, Post, World, ids};

/// What chooses a page of a list.
const PAGING: [&str; 5] = ["max_id", "since_id", "page", "cursor", "max_time"];
const FRIENDS_PER_PAGE_MAX: usize = 5;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Weibo;

/// What can be asked, and its name in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    User,
    OwnId,
    Allowance,
    UsersOther,
    Timeline,
    TimelineIds,
    TimelineOther,
    Home,
    Status,
    StatusesBiz,
    Counts,
    CountsBiz,
    Reposts,
    RepostIds,
    Comments,
    Likes,
    LikesBiz,
    Friends,
    FriendIds,
    FriendsOther,
    Followers,
    FollowerIds,
    FollowersOther,
    MutualIds,
    Tags,
    TagsBatch,
    TagsBatchOther,
    Topic,
    Unknown,
}

/// Paths below `/2/`, without `.json`.
const ROUTES: [(&str, Route, &str); 28] = [
    ("users/show", Route::User, "user"),
    ("account/get_uid", Route::OwnId, "own_id"),
    ("account/rate_limit_status", Route::Allowance, "allowance"),
    ("users/show_batch/other", Route::UsersOther, "users_other"),
    ("statuses/user_timeline", Route::Timeline, "timeline"),
    (
        "statuses/user_timeline/ids",
        Route::TimelineIds,
        "timeline_ids",
    ),
    (
        "statuses/user_timeline/other",
        Route::TimelineOther,
        "timeline_other",
    ),
    ("statuses/friends_timeline", Route::Home, "home"),
    ("statuses/show", Route::Status, "status"),
    (
        "statuses/show_batch/biz",
        Route::StatusesBiz,
        "statuses_biz",
    ),
    ("statuses/count", Route::Counts, "counts"),
    ("statuses/count/biz", Route::CountsBiz, "counts_biz"),
    ("statuses/repost_timeline", Route::Reposts, "reposts"),
    (
        "statuses/repost_timeline/ids",
        Route::RepostIds,
        "repost_ids",
    ),
    ("comments/show", Route::Comments, "comments"),
    ("attitudes/show", Route::Likes, "likes"),
    ("attitudes/show/biz", Route::LikesBiz, "likes_biz"),
    ("friendships/friends", Route::Friends, "friends"),
    ("friendships/friends/ids", Route::FriendIds, "friend_ids"),
    (
        "friendships/friends/other_all",
        Route::FriendsOther,
        "friends_other",
    ),
    ("friendships/followers", Route::Followers, "followers"),
    (
        "friendships/followers/ids",
        Route::FollowerIds,
        "follower_ids",
    ),
    (
        "friendships/followers/other_all",
        Route::FollowersOther,
        "followers_other",
    ),
    (
        "friendships/friends/bilateral/ids",
        Route::MutualIds,
        "mutual_ids",
    ),
    ("tags", Route::Tags, "tags"),
    ("tags/tags_batch", Route::TagsBatch, "tags_batch"),
    (
        "tags/tags_batch/other",
        Route::TagsBatchOther,
        "tags_batch_other",
    ),
    ("search/topics", Route::Topic, "topic"),
];

const QUERIES: [&str; ROUTES.len() + 1] = {
    let mut names = ["unknown"; ROUTES.len() + 1];
    let mut place = 0;
    while place < ROUTES.len() {
        names[place] = ROUTES[place].2;
        place += 1;
    }
    names
};

fn route(heard: &Heard) -> (Route, &'static str) {
    let path = heard.path.strip_prefix("/2/").unwrap_or_default();
    let path = path.strip_suffix(".json").unwrap_or_default();
    let found = ROUTES.iter().find(|(known, _, _)| *known == path);
    found.map_or((Route::Unknown, "unknown"), |&(_, route, name)| {
        (route, name)
    })
}

impl Route {
    /// What is for applications with a contract.
    const fn is_business(self) -> bool {
        matches!(
            self,
            Self::UsersOther
                | Self::TimelineOther
                | Self::StatusesBiz
                | Self::CountsBiz
                | Self::LikesBiz
                | Self::FriendsOther
                | Self::FollowersOther
                | Self::TagsBatchOther
        )
    }

    const fn list(self) -> Option<List> {
        match self {
            Self::Timeline | Self::TimelineIds | Self::TimelineOther => Some(List::Timeline),
            Self::Friends | Self::FriendIds | Self::FriendsOther => Some(List::Following),
            Self::Followers | Self::FollowerIds | Self::FollowersOther => Some(List::Followers),
            _ => None,
        }
    }

    /// What an account of today is told of itself only.
    const fn is_own_only(self) -> bool {
        self.list().is_some() || matches!(self, Self::MutualIds | Self::Tags | Self::TagsBatch)
    }
}

/// Why there is no answer: HTTP's number, Weibo's, and its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Problem {
    NoToken,
    InvalidToken,
    ExpiredToken,
    OwnOnly,
    Permissions,
    Parameters,
    MissingParameter,
    TooManyIds,
    NoSuchUser,
    NoSuchStatus,
    NoSuchApi,
}

impl Problem {
    /// The numbers of HTTP are assumed where the wiki does not tell them.
    const fn words(self) -> (u16, u32, &'static str) {
        match self {
            Self::NoToken => (403, 10_006, "source paramter(appkey) is missing"),
            Self::InvalidToken => (403, 21_332, "invalid_access_token"),
            Self::ExpiredToken => (403, 21_327, "expired_token"),
            Self::OwnOnly => (400, 21_335, "request uid's value must be the current user"),
            Self::Permissions => (403, 10_014, "Insufficient app permissions!"),
            Self::Parameters => (400, 10_008, "param error, see doc for more info."),
            Self::MissingParameter => (
                400,
                10_016,
                "miss required parameter (uid), see doc for more info.",
            ),
            Self::TooManyIds => (400, 20_009, "IDs is too many!"),
            Self::NoSuchUser => (400, 20_003, "User does not exists!"),
            Self::NoSuchStatus => (400, 20_101, "target weibo does not exist!"),
            Self::NoSuchApi => (404, 10_020, "Request Api not found!"),
        }
    }

    fn answer(self, path: &str) -> Answer {
        let (status, code, words) = self.words();
        let body = json!({ "error": words, "error_code": code, "request": path });
        Answer::json_with(status, &body)
    }
}

/// Whether a caller is let in at all.
const fn entry(shown: Shown) -> Result<(), Problem> {
    match shown {
        Shown::Nothing => Err(Problem::NoToken),
        Shown::Wrong => Err(Problem::InvalidToken),
        Shown::Revoked => Err(Problem::ExpiredToken),
        Shown::Narrow | Shown::Good => Ok(()),
    }
}

impl Speech for Weibo {
    fn queries(&self) -> &'static [&'static str] {
        &QUERIES
    }

    fn limits(&self) -> &'static str {
        include_str!("limits.toml")
    }

    fn token<'a>(&self, heard: &'a Heard) -> Option<&'a str> {
        heard.params.get("access_token")
    }

    fn matter(&self, heard: &Heard, world: &World) -> Matter {
        let (route, query) = route(heard);
        let subjects = ["uid", "screen_name", "uids", "id", "ids", "q"];
        let subject = subjects.iter().find_map(|name| heard.params.get(name));
        let number = |name| heard.params.number(name).unwrap_or(0);
        let is_later_page = number("max_id") > 0
            || number("page") > 1
            || number("cursor") > 0
            || number("max_time") > 0;
        let is_paging = is_later_page || number("since_id") > 0;
        let walk = route.list().and_then(|list| {
            let user = heard.params.get("uid").and_then(ids::parse);
            Some(Walk {
                user: world.user_with_id(user?)?,
                list,
                is_later_page,
            })
        });
        Matter {
            query,
            subject: subject.unwrap_or_default().to_owned(),
            cursor: if is_paging {
                heard.params.only(&PAGING)
            } else {
                String::new()
            },
            walk,
            tells_limits: false,
            is_free: route == Route::Allowance,
            is_wide: matches!(route, Route::Home | Route::Topic),
        }
    }

    fn answer(&self, view: View<'_>, heard: &Heard) -> Answer {
        let teller = Teller::new(view, heard);
        teller
            .answer()
            .unwrap_or_else(|problem| problem.answer(&heard.path))
    }

    fn allowance(&self, asked: AllowanceAsked<'_>) -> Option<Answer> {
        if let Err(problem) = entry(asked.shown) {
            return Some(problem.answer(&asked.heard.path));
        }
        Some(Answer::json(&allowance(&asked)))
    }

    fn walked(&self, view: View<'_>, heard: &Heard) -> Option<Walked> {
        Teller::new(view, heard).walked()
    }
}

/// `account/rate_limit_status`, with the time in Beijing.
fn allowance(asked: &AllowanceAsked<'_>) -> Value {
    const HOUR_US: i64 = 3_600 * SECOND_US;
    let left = |name: &str| asked.left.iter().find(|bucket| bucket.bucket == name);
    // What an application of a partner has, where nothing is counted.
    let pair =
        |name, unlimited| left(name).map_or((unlimited, unlimited), |it| (it.limit, it.remaining));
    let ((ip_limit, ip_left), (user_limit, user_left)) = (pair("ip", 40_000), pair("user", 1_000));
    let hour_us = (asked.now_us.div_euclid(HOUR_US) + 1) * HOUR_US;
    let reset_us = left("user")
        .or_else(|| left("ip"))
        .map_or(hour_us, |it| it.reset_us);
    let api = |name: &str, limit: u64| json!({ "api": name, "limit": limit, "limit_time_unit": "HOURS", "remaining_hits": limit });
    json!({
        "ip_limit": ip_limit,
        "limit_time_unit": "HOURS",
        "remaining_ip_hits": ip_left,
        "remaining_user_hits": user_left,
        "reset_time": in_beijing(reset_us, "%Y-%m-%d %H:%M:%S"),
        "reset_time_in_seconds": -(asked.now_us - reset_us).div_euclid(SECOND_US),
        "user_limit": user_limit,
        "api_rate_limits": [
            api("/statuses/update", 30),
            api("/comments/create", 60),
            api("/direct_messages/new", 30),
            api("/friendships/create", 60),
        ],
    })
}

/// One answer in the making.
struct Teller<'a> {
    view: View<'a>,
    heard: &'a Heard,
    /// Accounts that were written already: a list names the same ones again and again.
    users: RefCell<HashMap<u64, Value>>,
}

impl<'a> Teller<'a> {
    fn new(view: View<'a>, heard: &'a Heard) -> Self {
        Self {
            view,
            heard,
            users: RefCell::default(),
        }
    }

    fn answer(&self) -> Result<Answer, Problem> {
        entry(self.view.shown)?;
        let (route, _) = route(self.heard);
        let is_narrow = self.view.shown == Shown::Narrow;
        if is_narrow && route.is_business() {
            return Err(Problem::Permissions);
        }
        if is_narrow && route.is_own_only() && !self.is_about_oneself() {
            return Err(Problem::OwnOnly);
        }
        match route {
            Route::User => self.user(),
            Route::OwnId => {
                let own = self.view.world.account_id(self.owner());
                Ok(Answer::json(&json!({ "uid": own })))
            }
            Route::UsersOther => self.users_batch(),
            Route::Timeline | Route::TimelineOther => self.timeline(),
            Route::TimelineIds => self.timeline_ids(),
            Route::Home => Ok(self.home()),
            Route::Status => self.status(),
            Route::StatusesBiz => self.statuses_batch(),
            Route::Counts | Route::CountsBiz => self.counts(),
            Route::Reposts => self.reposts(),
            Route::RepostIds => self.repost_ids(),
            Route::Comments => self.comments(),
            Route::Likes | Route::LikesBiz => self.likes(),
            Route::Friends | Route::Followers | Route::FriendsOther | Route::FollowersOther => {
                self.contacts()
            }
            Route::FriendIds | Route::FollowerIds => self.contact_ids(),
            Route::MutualIds => self.mutual_ids(),
            Route::Tags => self.tags(),
            Route::TagsBatch | Route::TagsBatchOther => self.tags_batch(),
            Route::Topic => self.topic(),
            // What is left of limits is answered before.
            Route::Allowance | Route::Unknown => Err(Problem::NoSuchApi),
        }
    }

    /// Whose token it is.
    fn owner(&self) -> u64 {
        let token = self.heard.params.get("access_token").unwrap_or_default();
        let name = token.split_once('/').map_or(token, |(_, rest)| rest);
        let name = name.split_once(':').map_or(name, |(user, _)| user);
        let world = self.view.world;
        ids::parse(name)
            .and_then(|id| world.user_with_id(id))
            .or_else(|| world.user_named(name, self.view.now.at_us))
            .or_else(|| world.seed_users(self.view.now).next())
            .unwrap_or(0)
    }

    fn is_about_oneself(&self) -> bool {
        let own = self.view.world.account_id(self.owner()).to_string();
        ["uid", "uids"]
            .iter()
            .all(|name| self.heard.params.get(name).is_none_or(|uid| uid == own))
    }

    /// Originals and reposts of them are posts, what answers is a comment. Nobody can repeat those.
    fn is_status(&self, post: &Post) -> bool {
        let is_comment = |post: &Post| matches!(post.link, Link::Reply(_));
        match post.link {
            Link::None => true,
            Link::Reply(_) => false,
            Link::Repost(target) => {
                let original = self.view.world.post_with_id(target.id());
                original.is_some_and(|original| !is_comment(&original))
            }
        }
    }
}
