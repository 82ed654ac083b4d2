//! The YouTube Data API v3 over the world: what is asked, and what is answered.
//!
//! Users are channels, posts of their own are videos, follows are subscriptions. What answers a video, at
//! whatever depth, is a comment: what answers it directly begins a thread, and everything below that lies flat in
//! the thread. Likes are counts. Reposts are not shown. Whoever approves followers by hand has comments
//! switched off, and whoever hides their lists keeps subscriptions and the number of subscribers to themselves.
//!
//! Written by hand from the network's documentation and recorded answers. Pure: the time of the answer is an
//! argument.

mod channels;
mod comments;
mod ids;
mod listing;
mod refusal;
mod search;
mod subscriptions;
mod uploads;
mod videos;

use self::ids::{ChannelId, PlaylistId};
use self::listing::Listed;
use self::refusal::Refused;
use crate::answer::Answer;
use crate::dialect::{Heard, Matter, Shown, Speech, View};
use crate::faults::{List, Walk, Walked};
use crate::params::Params;
use crate::world::World;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct YouTube;

const QUERIES: [&str; 9] = [
    "channels",
    "videos",
    "playlistItems",
    "playlists",
    "commentThreads",
    "comments",
    "subscriptions",
    "search",
    "unknown",
];

/// The parameters that say what a call is about; one of them has to be there.
const FILTERS: [&str; 9] = [
    "id",
    "forHandle",
    "forUsername",
    "playlistId",
    "videoId",
    "allThreadsRelatedToChannelId",
    "parentId",
    "channelId",
    "q",
];

/// A request that came to the right place.
#[derive(Debug, Clone, Copy)]
struct Call<'a> {
    params: &'a Params,
    /// The parts that are to be sent.
    parts: Parts<'a>,
}

/// What of a resource is to be sent.
#[derive(Debug, Clone, Copy)]
struct Parts<'a>(&'a str);

impl Parts<'_> {
    fn has(self, name: &str) -> bool {
        self.0.split(',').any(|part| part.trim() == name)
    }

    /// Every part has to be one that the resource has.
    fn check(self, known: &[&str]) -> Result<(), Refused> {
        let mut parts = self.0.split(',').map(str::trim);
        match parts.find(|part| *part != "id" && !known.contains(part)) {
            Some(part) => Err(Refused::UnknownPart(part.to_owned())),
            None => Ok(()),
        }
    }
}

fn query_of(path: &str) -> &'static str {
    let name = path.strip_prefix("/youtube/v3/").unwrap_or_default();
    let known = QUERIES.iter().find(|query| **query == name);
    known.copied().unwrap_or("unknown")
}

impl Speech for YouTube {
    fn queries(&self) -> &'static [&'static str] {
        &QUERIES
    }

    fn limits(&self) -> &'static str {
        include_str!("limits.toml")
    }

    fn token<'a>(&self, heard: &'a Heard) -> Option<&'a str> {
        heard.bearer().or_else(|| heard.params.get("key"))
    }

    fn matter(&self, heard: &Heard, world: &World) -> Matter {
        let params = &heard.params;
        let query = query_of(&heard.path);
        let mut filters = FILTERS.iter().filter_map(|name| params.get(name));
        let cursor = params.get("pageToken").unwrap_or_default();
        let walked = match query {
            "subscriptions" => Some(List::Following).zip(
                params
                    .get("channelId")
                    .and_then(|id| ChannelId::user(world, id)),
            ),
            "playlistItems" => Some(List::Timeline).zip(
                params
                    .get("playlistId")
                    .and_then(|id| PlaylistId::user(world, id)),
            ),
            _ => None,
        };
        Matter {
            query,
            subject: filters.next().unwrap_or_default().to_owned(),
            cursor: cursor.to_owned(),
            walk: walked.map(|(list, user)| Walk {
                user,
                list,
                is_later_page: !cursor.is_empty(),
            }),
            tells_limits: false,
            is_free: false,
            is_wide: matches!(query, "search" | "commentThreads" | "channels" | "videos"),
        }
    }

    fn answer(&self, view: View<'_>, heard: &Heard) -> Answer {
        let query = query_of(&heard.path);
        if query == "unknown" {
            return Answer::with_body(404, "text/html; charset=UTF-8", Vec::new());
        }
        match let_in(view.shown, heard, query).and_then(|()| view.resources(heard, query)) {
            Ok(list) => list.answer(heard.if_none_match.as_deref()),
            Err(refused) => refused.answer(),
        }
    }

    fn walked(&self, view: View<'_>, heard: &Heard) -> Option<Walked> {
        match query_of(&heard.path) {
            "subscriptions" => view.subscriptions_walked(&heard.params),
            "playlistItems" => view.uploads_walked(&heard.params),
            _ => None,
        }
    }
}

/// Whether a caller may ask at all. A key is good for everything that is public or for nothing; a token of
/// somebody who logged in may lack the permission that comments need.
fn let_in(shown: Shown, heard: &Heard, query: &str) -> Result<(), Refused> {
    let is_key = heard.bearer().is_none();
    match shown {
        Shown::Nothing => Err(Refused::NoKey),
        Shown::Wrong if is_key => Err(Refused::WrongKey),
        Shown::Revoked if is_key => Err(Refused::ExpiredKey),
        Shown::Narrow if is_key => Err(Refused::BlockedKey),
        Shown::Wrong | Shown::Revoked => Err(Refused::InvalidCredentials),
        Shown::Narrow if matches!(query, "commentThreads" | "comments") => {
            Err(Refused::MissingScope)
        }
        Shown::Narrow | Shown::Good => Ok(()),
    }
}

impl View<'_> {
    fn resources(&self, heard: &Heard, query: &str) -> Result<Listed, Refused> {
        let parts = heard.params.get("part").filter(|part| !part.is_empty());
        let call = Call {
            params: &heard.params,
            parts: Parts(parts.ok_or(Refused::MissingPart)?),
        };
        match query {
            "channels" => self.channels(call),
            "videos" => self.videos(call),
            "playlistItems" => self.uploads(call),
            "playlists" => self.playlists(call),
            "commentThreads" => self.threads(call),
            "comments" => self.comments(call),
            "subscriptions" => self.subscriptions(call),
            _ => self.search_list(call),
        }
    }
}
