//! The networks that this one can speak like, and what is the same for all of them but Mastodon.
//!
//! A dialect is a folder: it reads a request, answers it out of the world, words its own refusals and
//! has a file of limits beside it. It is written by hand from the network's documentation and recorded
//! answers, never from a definition. Counting, the ledger and faults are here, once for all.
//!
//! Tokens are named as for Mastodon (`APP/USER:NAME`), wherever a dialect looks for them. One that begins with
//! `bad` is none; `revoked` one that its owner has taken back, `narrow` one without the permissions
//! that lists of people need.

use std::fmt::Debug;
use std::sync::Arc;

use axum::http::Method;
use axum::http::header::{AUTHORIZATION, HeaderName, IF_NONE_MATCH, USER_AGENT};
use axum::http::request::Parts;
use axum::response::Response;

use crate::Limits;
use crate::answer::Answer;
use crate::bluesky::Bluesky;
use crate::facebook::Facebook;
use crate::faults::{Disturbance, Walk, Walked};
use crate::http::{self, Sending, Shared};
use crate::limits::{Allowance, Caller, DeclaredLimits, Refusal, StatusAnswer};
use crate::mastodon::{AccountCache, QUERIES, other_side};
use crate::params::Params;
use crate::question::{Reply, Topic, host_of, target_of};
use crate::reddit::Reddit;
use crate::spoil::{OVERLAP, Spoil};
use crate::stay::Stay;
use crate::weibo::Weibo;
use crate::wire::Peer;
use crate::world::{Moment, World};
use crate::x::X;
use crate::youtube::YouTube;

/// Whose API the network has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    #[default]
    Mastodon,
    Bluesky,
    X,
    Weibo,
    YouTube,
    Reddit,
    Facebook,
}

impl Dialect {
    /// None for the first dialect, which has instances and lies of its own.
    pub(crate) const fn speech(self) -> Option<&'static dyn Speech> {
        match self {
            Self::Mastodon => None,
            Self::Bluesky => Some(&Bluesky),
            Self::X => Some(&X),
            Self::Weibo => Some(&Weibo),
            Self::YouTube => Some(&YouTube),
            Self::Reddit => Some(&Reddit),
            Self::Facebook => Some(&Facebook),
        }
    }

    /// The names of all queries that limits can be for.
    pub(crate) fn queries(self) -> &'static [&'static str] {
        self.speech().map_or(&QUERIES, Speech::queries)
    }

    /// The limits of the real network.
    pub(crate) fn strict_limits(self) -> Limits {
        let Some(speech) = self.speech() else {
            return Limits::Strict;
        };
        DeclaredLimits::parse_for(speech.limits(), self).map_or(Limits::Off, Limits::Declared)
    }
}

/// A request, as a dialect hears it.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) path: String,
    pub(crate) params: Params,
    pub(crate) authorization: Option<String>,
    /// The mark of the answer that the caller has already.
    pub(crate) if_none_match: Option<String>,
    pub(crate) host: String,
    /// What the program calls itself.
    pub(crate) user_agent: String,
}

impl Heard {
    /// The parts of the path, escapes taken away.
    pub(crate) fn segments(&self) -> Vec<&str> {
        self.path.trim_matches('/').split('/').collect()
    }

    /// What stands behind `Bearer`.
    pub(crate) fn bearer(&self) -> Option<&str> {
        let shown = self.authorization.as_deref()?;
        Some(shown.strip_prefix("Bearer ").unwrap_or_default())
    }
}

/// What a dialect makes of a request.
#[derive(Debug, Clone)]
pub(crate) struct Matter {
    /// One of the dialect's queries.
    pub(crate) query: &'static str,
    /// Whom or what it is about; several ids are joined by commas.
    pub(crate) subject: String,
    /// What chose the page; empty for a first one.
    pub(crate) cursor: String,
    /// Whose list is walked, if one is.
    pub(crate) walk: Option<Walk>,
    /// Asking what is left of limits costs nothing of them.
    pub(crate) is_free: bool,
    /// Whether the answer may take long, because it is made from many users.
    pub(crate) is_wide: bool,
    /// Whether the answer tells what is left of limits.
    pub(crate) tells_limits: bool,
}

/// What a caller has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Nothing,
    /// What is no token at all.
    Wrong,
    Revoked,
    /// A token without the permissions that lists of people need.
    Narrow,
    Good,
}

/// What an answer is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) world: &'a World,
    /// Whatever a dialect writes of users, whole: their counts cost as much as their lists.
    pub(crate) accounts: &'a AccountCache,
    pub(crate) now: Moment<'a>,
    pub(crate) shown: Shown,
    /// The name of the user whose token it is; none if it is the application's own.
    pub(crate) owner: Option<&'a str>,
    /// How the caller stands, if the answer tells it and there are limits.
    pub(crate) limits: Option<&'a StatusAnswer>,
    /// How a page is to be spoilt, if the answer has one.
    pub(crate) spoil: Option<Spoil>,
}

/// Somebody asks what is left of limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AllowanceAsked<'a> {
    pub(crate) heard: &'a Heard,
    pub(crate) shown: Shown,
    /// The buckets that can cover the caller; none where there are no limits.
    pub(crate) left: &'a [Allowance],
    /// The time of limits.
    pub(crate) now_us: i64,
}

/// How a network speaks. Pure: the world, its time and what goes wrong are arguments.
pub(crate) trait Speech: Debug + Send + Sync {
    fn queries(&self) -> &'static [&'static str];

    /// The network's own limits, in the form that docs/sim.md describes.
    fn limits(&self) -> &'static str;

    /// The token of a call, wherever the network looks for it; an empty text if there is something
    /// that cannot be one.
    fn token<'a>(&self, heard: &'a Heard) -> Option<&'a str>;

    fn matter(&self, heard: &Heard, world: &World) -> Matter;

    /// The answer, or the network's words for why there is none. What the caller has shown is for the
    /// dialect to judge.
    fn answer(&self, view: View<'_>, heard: &Heard) -> Answer;

    /// The network's page about what is left of limits, where that is what is asked for. It costs
    /// nothing, and nothing happens to it.
    fn allowance(&self, _asked: AllowanceAsked<'_>) -> Option<Answer> {
        None
    }

    /// What this page of a user's list and the one before show, as far as faults need to know.
    fn walked(&self, view: View<'_>, heard: &Heard) -> Option<Walked>;
}

/// A part of a list.
#[derive(Debug)]
pub(crate) struct Slice<T> {
    pub(crate) items: Vec<T>,
    /// The place in the list at which the next page begins.
    pub(crate) next: Option<usize>,
    pub(crate) spoilt: Option<Spoil>,
}

/// Cuts a page out of a list and spoils it as asked, or in another way if it does not lend itself to
/// that. Whoever follows the pages still sees everything.
pub(crate) fn slice<T: Clone>(
    list: &[T],
    start: usize,
    size: usize,
    spoil: Option<Spoil>,
) -> Slice<T> {
    let start = start.min(list.len());
    let end = start.saturating_add(size).min(list.len());
    let mut items = list[start..end].to_vec();
    let mut next = (end < list.len()).then_some(end);
    let before = &list[start.saturating_sub(OVERLAP)..start];
    let spoilt = spoil
        .filter(|_| !items.is_empty())
        .map(|spoil| match spoil {
            // Most networks have no name for the place before the first item.
            Spoil::RepeatedNext if next.is_some() && start > 0 => {
                next = Some(start);
                spoil
            }
            Spoil::Shuffled if items.len() > 1 => {
                items.reverse();
                spoil
            }
            Spoil::Shifted
                if next.is_some() && !before.is_empty() && items.len() > before.len() =>
            {
                items.truncate(items.len() - before.len());
                items.splice(..0, before.iter().cloned());
                next = Some(end - before.len());
                spoil
            }
            _ => {
                let repeated = if before.is_empty() {
                    items.iter().take(OVERLAP).cloned().collect()
                } else {
                    before.to_vec()
                };
                items.extend(repeated);
                Spoil::Duplicates
            }
        });
    Slice {
        items,
        next,
        spoilt,
    }
}

/// The words of a post without the marks of HTML.
pub(crate) fn plain_text(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(begin) = rest.find('<') {
        text.push_str(&rest[..begin]);
        rest = &rest[begin..];
        let Some(length) = rest.find('>') else {
            break;
        };
        match &rest[..=length] {
            "<br />" | "</p>" => text.push('\n'),
            _ => {}
        }
        rest = &rest[length + 1..];
    }
    text.push_str(rest);
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    let text = text.replace("&quot;", "\"").replace("&#39;", "'");
    text.replace("&amp;", "&").trim().to_owned()
}

/// Answers a call in a dialect: counts it, lets happen what is to happen, and sends it.
pub(crate) async fn handle(
    shared: Arc<Shared>,
    speech: &'static dyn Speech,
    peer: Peer,
    request: Parts,
) -> Response {
    let header = |name: HeaderName| {
        let value = request.headers.get(name)?;
        Some(value.to_str().unwrap_or_default().to_owned())
    };
    let heard = Heard {
        path: request.uri.path().to_owned(),
        params: Params::read(request.uri.query().unwrap_or_default()),
        authorization: header(AUTHORIZATION),
        if_none_match: header(IF_NONE_MATCH),
        host: host_of(&request),
        user_agent: header(USER_AGENT).unwrap_or_default(),
    };
    let token = speech.token(&heard);
    let (caller, is_token) = http::caller(token, peer.address);
    let shown = shown(&caller, is_token);
    let is_loop = heard.path.starts_with("/loop/") && !shared.faults.is_off();
    let is_get = request.method == Method::GET;
    let matter = speech.matter(&heard, &shared.world);
    let topic = Topic {
        query: matter.query,
        subject: matter.subject.clone(),
        is_paging: !matter.cursor.is_empty(),
        cursor: matter.cursor.clone(),
        target: target_of(&request),
        host: heard.host.clone(),
        is_loop,
    };
    let (mut verdict, entered) = http::count(&shared, &caller, &topic, matter.is_free);
    let stay = Stay::new(&shared, verdict.take_held());
    let refused = match &verdict.refusal {
        Some(refusal) => Some(refused(refusal, &heard.path)),
        None if matter.is_free => allowance(&shared, speech, &heard, (&caller, shown)),
        None if is_loop => {
            let url = format!("http://{}{}", heard.host, heard.path);
            Some(Answer::redirect(other_side(&url)))
        }
        None if !is_get => Some(Answer::json_with(405, &serde_json::json!({}))),
        None => None,
    };
    let disturbance = match refused {
        None => shared.disturb(&topic),
        Some(_) => None,
    };
    if !shared.latency.is_zero() {
        tokio::time::sleep(shared.latency).await;
    }
    let reply = if let Some(answer) = refused {
        answer.into()
    } else {
        let limits = if matter.tells_limits {
            let now = shared.clock.limit();
            shared.books().limiter.status(&caller, now)
        } else {
            None
        };
        let asked = Asked {
            speech,
            heard,
            walk: matter.walk,
            shown,
            owner: owner(&caller),
            limits,
            disturbance,
        };
        asked.reply(&shared, matter.is_wide).await
    };
    let sending = Sending {
        verdict,
        entered,
        payer: caller.payer().to_owned(),
        peer,
        stay,
    };
    http::finish(&shared, &topic, reply, sending)
}

/// The words of a refusal, in which `{path}` stands for what was asked.
fn refused(refusal: &Refusal, path: &str) -> Answer {
    let mut answer = http::refused(refusal);
    if let Some(body) = &refusal.body {
        let path = serde_json::json!(path).to_string();
        // Without the quotation marks, which stand in the body.
        let body = body.replace("{path}", &path[1..path.len() - 1]);
        answer.body = body.into_bytes();
    }
    answer
}

fn allowance(
    shared: &Shared,
    speech: &dyn Speech,
    heard: &Heard,
    (caller, shown): (&Caller, Shown),
) -> Option<Answer> {
    let now = shared.clock.limit();
    let left = shared.books().limiter.allowances(caller, now);
    speech.allowance(AllowanceAsked {
        heard,
        shown,
        left: &left,
        now_us: now.micros(),
    })
}

fn shown(caller: &Caller, is_token: bool) -> Shown {
    match caller {
        Caller::Anonymous { .. } if is_token => Shown::Nothing,
        Caller::Anonymous { .. } => Shown::Wrong,
        Caller::Token { token, .. } if token.starts_with("revoked") => Shown::Revoked,
        Caller::Token { token, .. } if token.starts_with("narrow") => Shown::Narrow,
        Caller::Token { .. } => Shown::Good,
    }
}

fn owner(caller: &Caller) -> Option<String> {
    match caller {
        Caller::Token {
            user,
            is_of_user: true,
            ..
        } => Some(user.clone()),
        _ => None,
    }
}

/// A call that is to be answered.
#[derive(Debug)]
struct Asked {
    speech: &'static dyn Speech,
    heard: Heard,
    walk: Option<Walk>,
    shown: Shown,
    owner: Option<String>,
    limits: Option<StatusAnswer>,
    disturbance: Option<Disturbance>,
}

impl Asked {
    async fn reply(self, shared: &Arc<Shared>, is_wide: bool) -> Reply {
        if !is_wide {
            return self.answer(shared);
        }
        // Long work: the requests of others must not wait behind it.
        let shared = Arc::clone(shared);
        tokio::task::spawn_blocking(move || self.answer(&shared))
            .await
            .unwrap_or_else(|_| Answer::json_with(500, &serde_json::json!({})).into())
    }

    fn answer(&self, shared: &Shared) -> Reply {
        let now_us = shared.clock.world().micros();
        let withdrawn = shared.faults.withdrawn();
        let mut view = View {
            world: &shared.world,
            accounts: &shared.accounts,
            now: Moment::new(now_us, &withdrawn),
            shown: self.shown,
            owner: self.owner.as_deref(),
            limits: self.limits.as_ref(),
            spoil: None,
        };
        match self.disturbance {
            Some(Disturbance::Transport(kind)) => {
                return Reply {
                    answer: self.speech.answer(view, &self.heard),
                    broken: Some(kind),
                    strike: None,
                };
            }
            Some(Disturbance::Spoil(spoil)) => view.spoil = Some(spoil),
            None => {}
        }
        let unspoilt = View {
            spoil: None,
            ..view
        };
        let strike = self.walk.and_then(|walk| {
            let walked = || self.speech.walked(unspoilt, &self.heard);
            shared.faults.strike(view.world, view.now, walk, walked)
        });
        let Some(strike) = strike else {
            return self.speech.answer(view, &self.heard).into();
        };
        let before = strike
            .is_after_answer
            .then(|| self.speech.answer(unspoilt, &self.heard));
        shared.faults.apply(&strike, now_us);
        let answer = before.unwrap_or_else(|| {
            let withdrawn = shared.faults.withdrawn();
            let now = Moment::new(now_us, &withdrawn);
            self.speech.answer(View { now, ..unspoilt }, &self.heard)
        });
        Reply {
            answer,
            broken: None,
            strike: Some(strike),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_has_no_marks() {
        let html = "<p>a &amp; <a href=\"x\">#b</a><br />c</p><p>d</p>";
        assert_eq!(plain_text(html), "a & #b\nc\nd");
        assert_eq!(plain_text("a < b"), "a < b");
    }

    #[test]
    fn the_limits_of_every_dialect_can_be_read() {
        for dialect in [
            Dialect::Bluesky,
            Dialect::X,
            Dialect::Weibo,
            Dialect::YouTube,
            Dialect::Reddit,
            Dialect::Facebook,
        ] {
            let speech = dialect.speech().unwrap();
            DeclaredLimits::parse_for(speech.limits(), dialect).unwrap();
        }
    }

    proptest! {
        /// Whoever goes on from where a page says sees every item, whatever happens to the pages.
        #[test]
        fn a_walk_over_spoilt_pages_sees_everything(
            count in 0_usize..60,
            size in 1_usize..9,
            choices in prop::collection::vec(0_usize..5, 1..8),
        ) {
            let list: Vec<usize> = (0..count).collect();
            let mut seen = std::collections::BTreeSet::new();
            let mut place = Some(0);
            for turn in 0..2_000 {
                let Some(start) = place else { break };
                // A page that leads to itself does so once.
                let spoil = Spoil::ALL.get(choices[turn % choices.len()]).copied();
                let spoil = spoil.filter(|_| turn % 2 == 0);
                let slice = slice(&list, start, size, spoil);
                seen.extend(slice.items);
                place = slice.next;
            }
            prop_assert_eq!(place, None);
            prop_assert_eq!(seen.len(), count);
        }
    }
}
