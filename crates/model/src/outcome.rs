//! What came of asking for an id.

use crate::{Key, Name};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

macro_rules! outcome_codes {
    ($($(#[$meta:meta])* $variant:ident = $code:literal),+ $(,)?) => {
        /// The end of one question to a network, for one subject.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum OutcomeCode {
            $($(#[$meta])* #[serde(rename = $code)] $variant),+
        }

        impl OutcomeCode {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code),+ }
            }
        }

        impl FromStr for OutcomeCode {
            type Err = UnknownOutcome;

            fn from_str(text: &str) -> Result<Self, UnknownOutcome> {
                match text {
                    $($code => Ok(Self::$variant),)+
                    other => Err(UnknownOutcome(other.to_owned())),
                }
            }
        }
    };
}

outcome_codes! {
    /// It was there.
    Ok = "ok",
    /// The list was there and had nothing in it.
    Empty = "empty",
    NotModified = "not modified",
    /// It was stored once and is no longer there.
    Gone = "gone",
    Suspended = "suspended",
    Deactivated = "deactivated",
    Protected = "protected",
    Blocked = "blocked",
    NotFound = "not found",
    /// The answer, or the id itself, could not be read.
    Malformed = "malformed",
    Forbidden = "forbidden",
    AuthExpired = "auth expired",
    RateLimited = "rate limited",
    QuotaExhausted = "quota exhausted",
    TooMuchData = "too much data",
    /// A fault that may pass: a 5xx, a reset, a time-out.
    Transient = "transient",
    BadRequest = "bad request",
    HostDown = "host down",
    /// A bound of ours, or of the network, ended the walk early.
    CapReached = "cap reached",
    OptedOut = "opted out",
}

/// A word that is no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown outcome {0:?}; the outcomes are listed in docs/definition-format.md")]
pub struct UnknownOutcome(pub String);

/// What the crawl does about an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consequence {
    /// The question is answered, well or badly; go on with the next.
    Settled,
    /// Ask again after a pause; nothing is wrong with the question.
    Retry,
    /// A limit was met: wait for it, then ask again.
    Wait,
    /// Nothing more can be asked with this credential.
    Stop,
}

impl OutcomeCode {
    pub const fn consequence(self) -> Consequence {
        match self {
            Self::Transient | Self::HostDown => Consequence::Retry,
            Self::RateLimited | Self::QuotaExhausted => Consequence::Wait,
            Self::AuthExpired => Consequence::Stop,
            _ => Consequence::Settled,
        }
    }

    /// Whether a user with this outcome is recorded in `invalid_users`.
    pub const fn invalidates_user(self) -> bool {
        matches!(
            self,
            Self::Gone | Self::Suspended | Self::Deactivated | Self::NotFound
        )
    }

    /// Whether the subject was there and gave what was asked.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Ok | Self::Empty | Self::NotModified)
    }
}

impl fmt::Display for OutcomeCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.code())
    }
}

/// The outcome of one query for one subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub subject: Key,
    pub query: Name,
    pub code: OutcomeCode,
    /// A short reason, for example `http 404`, `absent from batch` or `repeating cursor`.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_read_back_as_themselves() {
        for code in OutcomeCode::ALL {
            assert_eq!(code.code().parse(), Ok(*code));
        }
        assert!("lost".parse::<OutcomeCode>().is_err());
    }
}
