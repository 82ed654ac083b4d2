//! What a running crawl can be told.

use crate::Name;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A row of the table `control`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    pub id: i64,
    pub command: ControlCommand,
    /// The robot that is meant; all of them when it is missing.
    pub robot: Option<Name>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlCommand {
    /// Send nothing more, also after a restart, until it is resumed.
    Pause,
    Resume,
    /// End the run, or switch the robot off until the next run.
    Stop,
}

impl ControlCommand {
    pub const ALL: &[Self] = &[Self::Pause, Self::Resume, Self::Stop];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Stop => "stop",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|command| command.name() == name)
    }
}

impl fmt::Display for ControlCommand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
