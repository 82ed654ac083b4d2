//! Who asks, and what they may do.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// What somebody may do.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Looks at everything that is no secret, and changes nothing.
    Viewer,
    /// Does everything.
    Operator,
}

impl Role {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Viewer, Self::Operator]
            .into_iter()
            .find(|role| role.name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Who makes a request. Every handler can take it as `Extension<Caller>`: the guard has put it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    pub role: Role,
    /// Whether they logged in on a page, and can log out again.
    pub has_session: bool,
}
