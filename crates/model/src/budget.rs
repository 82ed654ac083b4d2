//! Limits and the permission to spend them.

use crate::{LimitTime, Name};
use serde::{Deserialize, Serialize};

/// One limit that a network sets, as its definition declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetRule {
    pub name: Name,
    pub scope: Scope,
    pub counter: Counter,
    pub unit: Unit,
    /// Units per window, or at once; of money, millionths.
    pub limit: u64,
    pub kind: WindowKind,
}

/// Whom a limit is counted by. Whatever it is, every host counts for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The address that the calls come from.
    Ip,
    /// Everybody who shares the ledger, wherever they call from.
    Host,
    /// The application behind the credential.
    App,
    /// The account behind the credential.
    User,
    /// The credential itself.
    Token,
}

/// Which queries a limit counts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// All that it covers: one endpoint, a group of them, or everything.
    Together,
    /// Every query has a count of its own.
    EachQuery,
}

/// What a limit counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Calls,
    /// What a call costs depends on what it asks.
    Points,
    /// Millionths of a currency, by its code.
    Money(Name),
}

/// Millionths in one unit of a currency.
pub const MONEY_SCALE: u64 = 1_000_000;

/// When what was spent comes back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowKind {
    /// All at once, at multiples of the length since 1970.
    Aligned { length_us: i64 },
    /// All at once, a length after the first call.
    FromFirst { length_us: i64 },
    /// Each call a length after it was made.
    Sliding { length_us: i64 },
    /// All at once, at midnight in a time zone.
    Day { zone: Name },
    /// All at once, when a month begins in a time zone.
    Month { zone: Name },
    /// Each call a length after it was made; only the server knows the limit, and tells which part
    /// of it is used.
    Percent { length_us: i64 },
    /// When the call is answered.
    Concurrency,
}

impl WindowKind {
    /// The length of a window, roughly where months and days differ; nothing for what is counted at
    /// once.
    pub const fn length_us(&self) -> Option<i64> {
        const DAY_US: i64 = 86_400_000_000;
        match self {
            Self::Aligned { length_us }
            | Self::FromFirst { length_us }
            | Self::Sliding { length_us }
            | Self::Percent { length_us } => Some(*length_us),
            Self::Day { .. } => Some(DAY_US),
            Self::Month { .. } => Some(30 * DAY_US),
            Self::Concurrency => None,
        }
    }
}

/// What one call takes of one budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    pub budget: Name,
    /// Units for the call itself.
    pub call: u64,
    /// Units for each item of the answer.
    pub item: u64,
    /// Units that may come on top of each item, for what stands beside it.
    pub beside: u64,
    /// Items that an answer can have at most.
    pub items_max: u64,
}

impl Cost {
    /// What is set aside before the call is sent.
    pub const fn most(&self) -> u64 {
        let each = self.item.saturating_add(self.beside);
        self.call
            .saturating_add(each.saturating_mul(self.items_max))
    }

    /// What an answer of so many items has cost.
    pub const fn of(&self, items: u64) -> u64 {
        self.call.saturating_add(self.item.saturating_mul(items))
    }
}

/// One limit as it binds one host and one credential or address. Holds no secret: a credential
/// appears as a fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BudgetId(pub String);

/// One window of one budget, `start` inclusive, `end` exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Window {
    pub start: LimitTime,
    pub end: LimitTime,
}

impl Window {
    pub fn contains(&self, at: LimitTime) -> bool {
        self.start <= at && at < self.end
    }
}
