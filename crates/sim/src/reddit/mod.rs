//! Reddit's API for programs over the world.
//!
//! Written by hand from notes on the network's documentation and from memory; refusals were held against
//! recorded answers of the real one, and the definition's paths were known. Originals are
//! posts, what answers them are comments, and reposts, follows and featured tags are not shown: Reddit
//! has none. A post is in the subreddit of its first tag, or in its author's own (`u_NAME`). What was
//! deleted is in no list, but keeps its place in trees, with `[deleted]` for its author and its words.
//!
//! Every program has to say who it is. A token that begins with `narrow` lacks the scope `history`.
//! Subreddits whose names begin with `private_`, `quarantined_` or `banned_` are what they are called.
//!
//! - `names.rs`: how things are called; `things.rs`: posts, comments, people, subreddits; `listings.rs`:
//!   lists that go by `after`; `trees.rs`: conversations with stubs for what is left out

mod listings;
mod names;
mod things;
mod trees;

use serde_json::json;

use crate::answer::Answer;
use crate::dialect::{Heard, Matter, Shown, Speech, View};
use crate::faults::{List, Walk, Walked};
use crate::world::{Post, Standing, World};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Reddit;

/// What can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route<'a> {
    Me,
    About(&'a str),
    Submitted(&'a str),
    Comments(&'a str),
    Overview(&'a str),
    Cards,
    Subreddit(&'a str),
    Moderators(&'a str),
    New(&'a str),
    NewComments(&'a str),
    Tree {
        post: &'a str,
        comment: Option<&'a str>,
    },
    MoreChildren,
    Info,
    Unknown,
}

const QUERIES: [&str; 14] = [
    "me",
    "about",
    "submitted",
    "comments",
    "overview",
    "cards",
    "subreddit",
    "moderators",
    "new",
    "new_comments",
    "tree",
    "more_children",
    "info",
    "unknown",
];

fn route(heard: &Heard) -> Route<'_> {
    match heard.segments().as_slice() {
        ["api", "v1", "me"] => Route::Me,
        ["user", name, "about"] => Route::About(name),
        ["user", name, "submitted"] => Route::Submitted(name),
        ["user", name, "comments"] => Route::Comments(name),
        ["user", name] | ["user", name, "overview"] => Route::Overview(name),
        ["api", "user_data_by_account_ids"] => Route::Cards,
        ["r", name, "about"] => Route::Subreddit(name),
        ["r", name, "about", "moderators"] => Route::Moderators(name),
        ["r", name, "new"] => Route::New(name),
        ["r", name, "comments"] => Route::NewComments(name),
        ["comments", post] | ["r", _, "comments", post] => Route::Tree {
            post,
            comment: None,
        },
        ["comments", post, _, comment] | ["r", _, "comments", post, _, comment] => Route::Tree {
            post,
            comment: Some(comment),
        },
        ["api", "morechildren"] => Route::MoreChildren,
        ["api", "info"] => Route::Info,
        _ => Route::Unknown,
    }
}

impl<'a> Route<'a> {
    /// The name in the ledger, and what is asked about.
    fn topic(self, heard: &'a Heard) -> (&'static str, &'a str) {
        let parameter = |name| heard.params.get(name).unwrap_or_default();
        match self {
            Self::Me => ("me", ""),
            Self::About(name) => ("about", name),
            Self::Submitted(name) => ("submitted", name),
            Self::Comments(name) => ("comments", name),
            Self::Overview(name) => ("overview", name),
            Self::Cards => ("cards", parameter("ids")),
            Self::Subreddit(name) => ("subreddit", name),
            Self::Moderators(name) => ("moderators", name),
            Self::New(name) => ("new", name),
            Self::NewComments(name) => ("new_comments", name),
            Self::Tree { post, comment } => ("tree", comment.unwrap_or(post)),
            Self::MoreChildren => ("more_children", parameter("children")),
            Self::Info => ("info", parameter("id")),
            Self::Unknown => ("unknown", ""),
        }
    }

    /// In which subreddit it is.
    const fn subreddit(self) -> Option<&'a str> {
        match self {
            Self::Subreddit(name)
            | Self::Moderators(name)
            | Self::New(name)
            | Self::NewComments(name) => Some(name),
            _ => None,
        }
    }

    /// Whose history it is.
    const fn history_of(self) -> Option<&'a str> {
        match self {
            Self::Submitted(name) | Self::Comments(name) | Self::Overview(name) => Some(name),
            _ => None,
        }
    }
}

const BANNED: &str = "banned";
/// Why a subreddit is not shown; names of those begin with it.
const CLOSED: [&str; 3] = ["private", "quarantined", BANNED];

fn is_called(name: &str, reason: &str) -> bool {
    let rest = name.strip_prefix(reason);
    rest.is_some_and(|rest| rest.starts_with('_'))
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Problem {
    Unauthorized,
    Forbidden,
    /// The token has not been given the permission.
    Scope,
    /// A subreddit that is not shown, and why.
    Closed(&'static str),
    NotFound,
    TooManyRequests,
}

impl From<Problem> for Answer {
    fn from(problem: Problem) -> Self {
        let (status, words) = match problem {
            Problem::Closed(reason) => {
                let status = if reason == BANNED { 404 } else { 403 };
                let words = if reason == BANNED {
                    "Not Found"
                } else {
                    "Forbidden"
                };
                let body = json!({ "reason": reason, "message": words, "error": status });
                return Self::json_with(status, &body);
            }
            Problem::Scope => {
                let told = "Bearer realm=\"reddit\", error=\"insufficient_scope\"".to_owned();
                return Self {
                    headers: vec![("www-authenticate".into(), told)],
                    ..Self::from(Problem::Forbidden)
                };
            }
            Problem::Unauthorized => (401, "Unauthorized"),
            Problem::Forbidden => (403, "Forbidden"),
            Problem::NotFound => (404, "Not Found"),
            Problem::TooManyRequests => (429, "Too Many Requests"),
        };
        Self::json_with(status, &json!({ "message": words, "error": status }))
    }
}

impl Speech for Reddit {
    fn queries(&self) -> &'static [&'static str] {
        &QUERIES
    }

    fn limits(&self) -> &'static str {
        include_str!("limits.toml")
    }

    fn token<'a>(&self, heard: &'a Heard) -> Option<&'a str> {
        heard.bearer()
    }

    fn matter(&self, heard: &Heard, world: &World) -> Matter {
        let route = route(heard);
        let (query, subject) = route.topic(heard);
        let after = heard.params.get("after").unwrap_or_default();
        // Both lists of a user are timelines, as far as what is withdrawn is concerned.
        let walk = route.history_of().and_then(|name| {
            Some(Walk {
                // Whatever the time is: some take another name once.
                user: [i64::MIN, i64::MAX]
                    .iter()
                    .find_map(|&at_us| world.user_named(name, at_us))?,
                list: List::Timeline,
                is_later_page: !after.is_empty(),
            })
        });
        Matter {
            query,
            subject: subject.to_owned(),
            cursor: after.to_owned(),
            walk,
            tells_limits: false,
            is_free: false,
            is_wide: matches!(route, Route::New(_) | Route::NewComments(_)),
        }
    }

    fn answer(&self, view: View<'_>, heard: &Heard) -> Answer {
        Teller { view, heard }.answer().unwrap_or_else(Answer::from)
    }

    fn walked(&self, view: View<'_>, heard: &Heard) -> Option<Walked> {
        Teller { view, heard }.walked()
    }
}

/// One answer in the making.
struct Teller<'a> {
    view: View<'a>,
    heard: &'a Heard,
}

impl Teller<'_> {
    fn answer(&self) -> Result<Answer, Problem> {
        if self.heard.user_agent.is_empty() {
            return Err(Problem::TooManyRequests);
        }
        match self.view.shown {
            Shown::Nothing => return Err(Problem::Forbidden),
            Shown::Wrong | Shown::Revoked => return Err(Problem::Unauthorized),
            Shown::Narrow | Shown::Good => {}
        }
        let route = route(self.heard);
        if self.view.shown == Shown::Narrow && route.history_of().is_some() {
            return Err(Problem::Scope);
        }
        let closed = route.subreddit().and_then(|name| {
            let mut reasons = CLOSED.into_iter();
            reasons.find(|reason| is_called(name, reason))
        });
        if let Some(reason) = closed {
            return Err(Problem::Closed(reason));
        }
        match route {
            Route::Me => Ok(Answer::json(&self.own_account())),
            Route::About(name) => self.about(name),
            Route::Submitted(_) | Route::Comments(_) | Route::Overview(_) => {
                Ok(self.listing(&self.history()?))
            }
            Route::Cards => self.cards(),
            Route::Subreddit(name) => self.subreddit_about(name),
            Route::Moderators(name) => self.moderators(name),
            Route::New(name) => Ok(self.listing(&self.new_posts(name)?)),
            Route::NewComments(name) => Ok(self.listing(&self.new_comments(name)?)),
            Route::Tree { post, comment } => self.tree(post, comment),
            Route::MoreChildren => self.more_children(),
            Route::Info => Ok(self.info()),
            Route::Unknown => Err(Problem::NotFound),
        }
    }

    /// Somebody whose pages can be seen.
    fn present_user(&self, name: &str) -> Result<u64, Problem> {
        let (world, now) = (self.view.world, self.view.now);
        let user = world.user_named(name, now.at_us);
        let user = user.ok_or(Problem::NotFound)?;
        match world.standing(user, now) {
            Standing::Active => Ok(user),
            Standing::Suspended => Err(Problem::Forbidden),
            Standing::Gone => Err(Problem::NotFound),
        }
    }

    fn is_visible(&self, post: &Post) -> bool {
        self.view.world.is_visible(post, self.view.now)
    }
}
