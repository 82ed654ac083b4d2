//! Why a call is not answered, in the network's words.

use serde_json::json;

use crate::answer::Answer;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    InvalidToken,
    ExpiredToken,
    BadScope,
    ProfileNotFound,
    NoSuchHandle,
    AccountTakedown,
    PostNotFound,
    TooManyActors,
    TooManyUris,
    LimitTooSmall,
    LimitTooLarge,
    LimitNoNumber,
    MalformedCursor,
    InvalidActor,
    InvalidUri,
    MethodNotImplemented,
    /// The public AppView lets nobody look for posts.
    NoSearchForStrangers,
}

const FORBIDDEN_PAGE: &str = "<html><head><title>403 Forbidden</title></head>\
     <body><center><h1>403 Forbidden</h1></center></body></html>";

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let (status, error, message) = match refusal {
            Refusal::NoSearchForStrangers => {
                return Self::with_body(403, "text/html", FORBIDDEN_PAGE.into());
            }
            Refusal::InvalidToken => (401, "InvalidToken", "Token could not be verified"),
            Refusal::ExpiredToken => (400, "ExpiredToken", "Token has been revoked"),
            Refusal::BadScope => (400, "InvalidToken", "Bad token scope"),
            Refusal::ProfileNotFound => (400, "InvalidRequest", "Profile not found"),
            Refusal::NoSuchHandle => (400, "InvalidRequest", "Unable to resolve handle"),
            Refusal::AccountTakedown => (400, "AccountTakedown", "Account has been suspended"),
            Refusal::PostNotFound => (400, "NotFound", "Post not found"),
            Refusal::TooManyActors => (
                400,
                "InvalidRequest",
                "Error: actors must not have more than 25 elements",
            ),
            Refusal::TooManyUris => (
                400,
                "InvalidRequest",
                "Error: uris must not have more than 25 elements",
            ),
            Refusal::LimitTooSmall => {
                (400, "InvalidRequest", "Error: limit can not be less than 1")
            }
            Refusal::LimitTooLarge => (
                400,
                "InvalidRequest",
                "Error: limit can not be greater than 100",
            ),
            Refusal::LimitNoNumber => (400, "InvalidRequest", "Error: limit must be an integer"),
            Refusal::MalformedCursor => (400, "InvalidRequest", "Malformed cursor"),
            Refusal::InvalidActor => (
                400,
                "InvalidRequest",
                "Error: actor must be a valid did or a handle",
            ),
            Refusal::InvalidUri => (400, "InvalidRequest", "Error: uri must be a valid at-uri"),
            Refusal::MethodNotImplemented => {
                (501, "MethodNotImplemented", "Method Not Implemented")
            }
        };
        Self::json_with(status, &json!({ "error": error, "message": message }))
    }
}
