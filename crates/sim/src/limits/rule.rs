//! What a declared limit says, checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::period::Period;
use super::{Call, Caller};
use crate::dialect::Dialect;
use crate::limits::file::{self, LimitsError};

/// Limits that a file declares, in place of the network's own.
#[derive(Debug, Clone)]
pub struct DeclaredLimits {
    rules: Arc<[Rule]>,
    queries: &'static [&'static str],
}

impl DeclaredLimits {
    /// Reads TOML with one `[[bucket]]` for every limit; docs/sim.md lists its keys.
    pub fn parse(text: &str) -> Result<Self, LimitsError> {
        Self::parse_for(text, Dialect::Mastodon)
    }

    /// The same for a dialect, which says which queries can be named.
    pub fn parse_for(text: &str, dialect: Dialect) -> Result<Self, LimitsError> {
        let queries = dialect.queries();
        let rules = file::read(text, queries)?;
        Ok(Self {
            rules: rules.into(),
            queries,
        })
    }

    /// All queries there are.
    pub(super) const fn queries(&self) -> &'static [&'static str] {
        self.queries
    }

    pub(super) fn rules(&self) -> &Arc<[Rule]> {
        &self.rules
    }
}

/// One bucket.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) scope: Scope,
    /// Every query has a counter of its own.
    pub(super) is_each_query: bool,
    /// Only these queries; all if there are none.
    pub(super) queries: Vec<&'static str>,
    pub(super) is_paging_only: bool,
    /// Only calls with a token, or only calls without.
    pub(super) authenticated: Option<bool>,
    /// Only calls with tokens of users, or only calls with the application's own.
    pub(super) of_users: Option<bool>,
    pub(super) kind: Kind,
    pub(super) limit: u64,
    /// What a call of a query costs; 1 if it is not listed.
    pub(super) cost: BTreeMap<&'static str, u64>,
    pub(super) item_cost: u64,
    pub(super) headers: Option<HeaderRule>,
    pub(super) usage: Option<UsageRule>,
    pub(super) refusal: RefusalRule,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Windows(Period),
    /// What was let through in the last so many microseconds counts.
    Sliding {
        window_us: i64,
    },
    /// Calls count from their arrival to the end of their answers.
    Concurrency,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The address that a call comes from.
    Ip,
    App,
    User,
    Token,
    /// Everybody together.
    Host,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeaderRule {
    pub(super) prefix: String,
    /// Whether `-used` is sent in the place of `-limit`, and what remains as a number with a point.
    pub(super) tells_used: bool,
    /// None where no time can be named.
    pub(super) reset: Option<ResetForm>,
}

/// The header that tells what is used in percent, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UsageRule {
    pub(super) header: String,
    pub(super) form: UsageForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UsageForm {
    /// Calls alone.
    Calls,
    /// Calls, and the time that they took.
    App,
    /// The same of somebody, with the minutes until calls are let in again.
    Business,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResetForm {
    Iso8601,
    EpochSeconds,
    SecondsLeft,
}

/// When whoever is refused is told to come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryAfter {
    WhenItCanPass,
    Seconds(u32),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RefusalRule {
    pub(super) status: u16,
    pub(super) retry_after: Option<RetryAfter>,
    pub(super) body: Option<String>,
}

impl Scope {
    /// Whom a caller's calls count for; none if they do not count here.
    pub(super) fn of(self, caller: &Caller) -> Option<&str> {
        match (self, caller) {
            (Self::Host, _) => Some("host"),
            (Self::Ip, Caller::Anonymous { address } | Caller::Token { address, .. }) => {
                Some(address)
            }
            (Self::App, Caller::Token { app, .. }) => Some(app),
            (Self::User, Caller::Token { user, .. }) => Some(user),
            (Self::Token, Caller::Token { token, .. }) => Some(token),
            (Self::App | Self::User | Self::Token, Caller::Anonymous { .. }) => None,
        }
    }
}

impl Rule {
    /// Whom a caller counts for in this bucket; none if it is not for such callers.
    pub(super) fn scope_of<'a>(&self, caller: &'a Caller) -> Option<&'a str> {
        let is_authenticated = matches!(caller, Caller::Token { .. });
        if self
            .authenticated
            .is_some_and(|only| only != is_authenticated)
        {
            return None;
        }
        let is_of_user = matches!(
            caller,
            Caller::Token {
                is_of_user: true,
                ..
            }
        );
        if self.of_users.is_some_and(|only| only != is_of_user) {
            return None;
        }
        self.scope.of(caller)
    }

    /// Whom a call counts for in this bucket; none if it is not covered.
    pub(super) fn covers<'a>(&self, call: Call<'a>) -> Option<&'a str> {
        let is_query_covered = self.queries.is_empty() || self.queries.contains(&call.query);
        if !is_query_covered || (self.is_paging_only && !call.is_paging) {
            return None;
        }
        self.scope_of(call.caller)
    }

    pub(super) fn cost_of(&self, query: &str) -> u64 {
        self.cost.get(query).copied().unwrap_or(1)
    }

    /// Whether a call of this cost may pass where so much is used. What items cost is known only
    /// afterwards, so they can take more than there was.
    pub(super) const fn has_room(&self, used: u64, cost: u64) -> bool {
        let is_spent = self.item_cost > 0 && used >= self.limit;
        !is_spent && used.saturating_add(cost) <= self.limit
    }
}
