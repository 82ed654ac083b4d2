//! Named places at which a test may stop the process for good.
//!
//! Durability is proved by dying: a test asks for one of these places, the program says when it
//! has come there, and the test kills it. In ordinary runs the hook is empty.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The gaps between one step and the next in which a crash could lose or double something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CrashPoint {
    /// A call was granted and not yet sent.
    GrantAndSend,
    /// The request is on its way and nothing has come back.
    SendAndAnswer,
    /// The answer was read and is not yet committed.
    AnswerAndCommit,
    /// The commit is durable and not yet acknowledged.
    CommitAndAcknowledge,
    /// A credential was renewed and what was given for it is not yet saved.
    RenewAndSave,
}

impl CrashPoint {
    pub const ALL: [Self; 5] = [
        Self::GrantAndSend,
        Self::SendAndAnswer,
        Self::AnswerAndCommit,
        Self::CommitAndAcknowledge,
        Self::RenewAndSave,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::GrantAndSend => "grant-and-send",
            Self::SendAndAnswer => "send-and-answer",
            Self::AnswerAndCommit => "answer-and-commit",
            Self::CommitAndAcknowledge => "commit-and-acknowledge",
            Self::RenewAndSave => "renew-and-save",
        }
    }
}

impl FromStr for CrashPoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::name);
        Self::ALL
            .into_iter()
            .find(|point| point.name() == text)
            .ok_or_else(|| format!("unknown crash point {text:?}; one of {}", known.join(", ")))
    }
}

/// What is called at each crash point.
#[derive(Clone, Default)]
pub struct CrashHook(Option<Arc<dyn Fn(CrashPoint) + Send + Sync>>);

impl CrashHook {
    pub fn new(hook: impl Fn(CrashPoint) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }

    pub fn reached(&self, point: CrashPoint) {
        if let Some(hook) = &self.0 {
            hook(point);
        }
    }
}

impl fmt::Debug for CrashHook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() {
            "CrashHook(set)"
        } else {
            "CrashHook(none)"
        })
    }
}
