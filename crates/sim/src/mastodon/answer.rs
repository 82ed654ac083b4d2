//! Answers before they become HTTP.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::IgnoredAny;

use super::paging::{LinkBase, Page, Spoil};

pub(crate) const JSON: &str = "application/json; charset=utf-8";

/// What a call is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
    /// The `Link` header.
    pub(crate) link: Option<String>,
    /// The `Location` header.
    pub(crate) location: Option<String>,
    /// How the page was spoilt.
    pub(crate) spoilt: Option<Spoil>,
}

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
    pub(crate) fn json(value: &impl Serialize) -> Self {
        serde_json::to_vec(value).map_or_else(
            |_| Problem::Broken.into(),
            |body| Self {
                status: 200,
                content_type: JSON,
                body,
                link: None,
                location: None,
                spoilt: None,
            },
        )
    }

    pub(crate) const fn redirect(location: String) -> Self {
        Self {
            status: 302,
            content_type: JSON,
            body: Vec::new(),
            link: None,
            location: Some(location),
            spoilt: None,
        }
    }

    pub(crate) const fn with_body(status: u16, content_type: &'static str, body: Vec<u8>) -> Self {
        Self {
            status,
            content_type,
            body,
            link: None,
            location: None,
            spoilt: None,
        }
    }

    /// The number of things in it: the items of a list, or of all lists together; anything else is
    /// one thing, and an error none.
    pub(crate) fn items(&self) -> u64 {
        if self.status != 200 {
            return 0;
        }
        if let Ok(list) = serde_json::from_slice::<Vec<IgnoredAny>>(&self.body) {
            return list.len() as u64;
        }
        let lists = serde_json::from_slice::<BTreeMap<&str, Vec<IgnoredAny>>>(&self.body);
        lists.map_or(1, |lists| {
            lists.values().map(|list| list.len() as u64).sum()
        })
    }

    /// A page of a list with the links to its neighbours.
    pub(crate) fn page<T>(value: &impl Serialize, page: &Page<T>, base: &LinkBase<'_>) -> Self {
        let mut answer = Self::json(value);
        answer.link = base.header(page);
        answer.spoilt = page.spoilt;
        answer
    }
}

impl From<Problem> for Answer {
    fn from(problem: Problem) -> Self {
        let (status, text) = problem.status_and_text();
        let body = serde_json::json!({ "error": text })
            .to_string()
            .into_bytes();
        Self {
            status,
            content_type: JSON,
            body,
            link: None,
            location: None,
            spoilt: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_counted_in_lists_and_in_lists_of_lists() {
        let items = |value: serde_json::Value| Answer::json(&value).items();
        assert_eq!(items(serde_json::json!([])), 0);
        assert_eq!(items(serde_json::json!([{ "id": "1" }, { "id": "2" }])), 2);
        assert_eq!(items(serde_json::json!({ "id": "1", "tags": [1, 2] })), 1);
        let context = serde_json::json!({ "ancestors": [{}], "descendants": [{}, {}] });
        assert_eq!(items(context), 3);
        assert_eq!(Answer::from(Problem::Gone).items(), 0);
    }
}
