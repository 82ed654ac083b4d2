//! Limits and the permission to spend them.

use crate::{LimitTime, Name};
use serde::{Deserialize, Serialize};

/// One limit that a network sets, as its definition declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetRule {
    pub name: Name,
    pub scope: Scope,
    /// Calls per window.
    pub limit: u32,
    pub window_us: i64,
    pub kind: WindowKind,
}

/// What a limit is counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The address that the calls come from.
    Ip,
    /// The account behind the credential.
    User,
    /// The credential itself.
    Token,
}

/// How the windows of a limit lie in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowKind {
    /// Windows begin at multiples of their length since 1970.
    Aligned,
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

/// The right to send `calls` calls in one window of one budget. It was durable before the first
/// call is sent, and counts as spent until its window ends unless it is handed back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub id: i64,
    pub budget: BudgetId,
    pub window: Window,
    pub calls: u32,
}
