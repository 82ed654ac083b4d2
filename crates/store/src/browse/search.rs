//! Looking for words.

use super::objects::{PostRow, UserRow};
use serde::Serialize;

/// What is looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchIn {
    #[default]
    All,
    /// Handles, names and descriptions.
    Users,
    /// Posts and comments.
    Posts,
}

/// Words that all have to be there, in any order: `"several words"` next to one another, `-word` not at
/// all, `word*` as a beginning. Nothing else has a meaning, and nothing is a mistake. What was met
/// last comes first. Where much has some of the words and little has all, a page may have few rows, or
/// none, and a next one that looks further back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchQuestion {
    pub words: String,
    pub within: SearchIn,
    pub after: Option<String>,
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hit {
    User(UserRow),
    /// Also comments.
    Post(PostRow),
}

/// How far the index of words has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Indexed {
    /// Whether everything that was there at the beginning has been gone through: from then on the index
    /// only follows the crawl.
    pub is_filled: bool,
    /// How far filling has come, in thousandths.
    pub permille: u32,
    /// Calls of the log that have yet to be looked at.
    pub calls_behind: u64,
}
