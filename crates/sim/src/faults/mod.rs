//! Faults: what goes wrong on purpose, when, and the log of it.
//!
//! Which fault strikes a call depends on the seed, on the target and on how often this target was
//! asked for, and on nothing else: a run is repeatable per target, whatever the order of its calls.
//! The same target never meets more than two transport faults in a row.
//!
//! - `plan.rs`: who meets what, a pure function
//! - `script.rs`: what a transport fault puts on the wire; `wire.rs` beside this folder plays it
//! - `strike.rs`: faults that change the world
//! - `state.rs`: how often each target was asked for, and what was taken away
//! - `log.rs`: what happened, for `/_sim/faults`

mod log;
mod plan;
mod script;
mod state;
mod strike;

use serde::Serialize;

pub(crate) use log::{FaultLog, Happened};
pub(crate) use plan::List;
pub(crate) use script::{Told, script};
pub(crate) use state::{Disturbance, FaultState};
pub(crate) use strike::{Strike, Walk, Walked, Withdrew};

use crate::spoil::Spoil;

/// How much goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Faults {
    #[default]
    None,
    /// Rare transport faults that pass.
    Mild,
    /// Faults of every kind, often.
    Hostile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Class {
    /// The answer is broken or late; asked again, it comes.
    Transport,
    /// The answer can be read, but its page is not what the walk expects.
    Page,
    /// Something is taken out of the world for the rest of the run.
    World,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// 500.
    InternalError,
    /// 502.
    BadGateway,
    /// 503.
    Unavailable,
    /// 503 with `Retry-After`.
    UnavailableForNow,
    /// The connection is reset instead of an answer.
    ResetBeforeAnswer,
    /// The connection is reset in the middle of the body.
    ResetInBody,
    /// Headers, then nothing for a while, then the rest.
    Stall,
    /// The body comes in small pieces.
    SlowBytes,
    /// A chunked body that just ends.
    TruncatedBody,
    MalformedJson,
    /// Valid JSON, but something quite different.
    WrongShape,
    /// Status 200 and a page for people.
    HtmlPage,
    /// The right answer, labelled `text/html`.
    JsonAsHtml,
    /// 429 without a word about when to come back.
    BareTooManyRequests,
    LengthTooLarge,
    LengthTooSmall,
    /// Labelled gzip, and is none.
    GzipGarbage,
    /// A redirect to another host.
    RedirectElsewhere,
    /// A redirect to an address that nobody outside may reach.
    RedirectPrivate,
    /// A redirect that leads back to itself.
    RedirectLoop,
    /// The page repeats items of the one before, or its own.
    DuplicateItems,
    /// Everything has moved on by some places, as if items had come in at the top.
    ShiftedPage,
    ShuffledItems,
    /// The link to the next page leads to this one.
    RepeatedNext,
    /// An account is suspended or deleted while it is walked.
    Ban,
    PostsWithdrawn,
    RelationsWithdrawn,
}

impl Kind {
    pub(crate) const TRANSPORT: [Self; 20] = [
        Self::InternalError,
        Self::BadGateway,
        Self::Unavailable,
        Self::UnavailableForNow,
        Self::ResetBeforeAnswer,
        Self::ResetInBody,
        Self::Stall,
        Self::SlowBytes,
        Self::TruncatedBody,
        Self::MalformedJson,
        Self::WrongShape,
        Self::HtmlPage,
        Self::JsonAsHtml,
        Self::BareTooManyRequests,
        Self::LengthTooLarge,
        Self::LengthTooSmall,
        Self::GzipGarbage,
        Self::RedirectElsewhere,
        Self::RedirectPrivate,
        Self::RedirectLoop,
    ];
    /// What happens on the best of servers.
    pub(crate) const MILD: [Self; 8] = [
        Self::InternalError,
        Self::BadGateway,
        Self::Unavailable,
        Self::UnavailableForNow,
        Self::ResetBeforeAnswer,
        Self::ResetInBody,
        Self::Stall,
        Self::TruncatedBody,
    ];
    pub(crate) const PAGE: [Self; 4] = [
        Self::DuplicateItems,
        Self::ShiftedPage,
        Self::ShuffledItems,
        Self::RepeatedNext,
    ];
    pub(crate) const WORLD: [Self; 3] = [Self::Ban, Self::PostsWithdrawn, Self::RelationsWithdrawn];

    pub(crate) const fn class(self) -> Class {
        match self {
            Self::DuplicateItems | Self::ShiftedPage | Self::ShuffledItems | Self::RepeatedNext => {
                Class::Page
            }
            Self::Ban | Self::PostsWithdrawn | Self::RelationsWithdrawn => Class::World,
            _ => Class::Transport,
        }
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let [transport, page, world] = [&Self::TRANSPORT[..], &Self::PAGE, &Self::WORLD];
        transport.iter().chain(page).chain(world).copied()
    }
}

impl From<Spoil> for Kind {
    fn from(spoil: Spoil) -> Self {
        match spoil {
            Spoil::Duplicates => Self::DuplicateItems,
            Spoil::Shifted => Self::ShiftedPage,
            Spoil::Shuffled => Self::ShuffledItems,
            Spoil::RepeatedNext => Self::RepeatedNext,
        }
    }
}
