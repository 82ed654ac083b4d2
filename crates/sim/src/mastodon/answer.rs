//! What this network says where it does not answer, and its pages.

use serde::Serialize;

use super::paging::{LinkBase, Page};
use crate::answer::Answer;

/// Why a call is not answered with what it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    InvalidToken,
    NoSuchRecord,
    NoSuchRoute,
    Gone,
    TooManyIds,
    TooManyRequests,
    NoQuery,
    NegativePaging,
    SearchPaging,
    SearchResolving,
    /// Nothing is told without a token.
    NoToken,
    /// What is asked for is not named.
    NoResource,
    Broken,
}

impl Problem {
    const fn status_and_text(self) -> (u16, &'static str) {
        match self {
            Self::InvalidToken => (401, "The access token is invalid"),
            Self::NoSuchRecord => (404, "Record not found"),
            Self::NoSuchRoute => (404, "Not Found"),
            Self::Gone => (410, "Gone"),
            Self::TooManyIds => (422, "Validation failed: too many ids"),
            Self::NoQuery => (400, "param is missing or the value is empty or invalid: q"),
            Self::NegativePaging => (
                400,
                "Pagination values for `offset` and `limit` must be positive",
            ),
            Self::SearchPaging => (
                401,
                "Search queries pagination is not supported without authentication",
            ),
            Self::SearchResolving => (
                401,
                "Search queries that resolve remote resources are not supported without \
                 authentication",
            ),
            Self::NoToken => (401, "Unauthorized: token not supplied"),
            Self::NoResource => (400, "Bad Request"),
            Self::TooManyRequests => (429, "Too many requests"),
            Self::Broken => (500, "This page is not correct"),
        }
    }
}

impl Answer {
    /// A page of a list with the links to its neighbours.
    pub(super) fn page<T>(value: &impl Serialize, page: &Page<T>, base: &LinkBase<'_>) -> Self {
        let link = base.header(page);
        Self {
            headers: link.into_iter().map(|link| ("link".into(), link)).collect(),
            spoilt: page.spoilt,
            ..Self::json(value)
        }
    }
}

impl From<Problem> for Answer {
    fn from(problem: Problem) -> Self {
        let (status, text) = problem.status_and_text();
        Self::json_with(status, &serde_json::json!({ "error": text }))
    }
}
