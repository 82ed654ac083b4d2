//! Why there is no answer, in the network's words.

use serde_json::json;

use super::nodes::Kind;
use crate::answer::Answer;

/// Why a call is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    NoToken,
    WrongToken,
    RevokedToken,
    /// `me`, and nobody in particular is asking.
    NobodyAsks,
    /// A permission that the token lacks: for what people wrote, or for anything else.
    UserContent,
    Permission(&'static str),
    Syntax,
    NoSuchField(String, Kind),
    NoSuchEdge(String),
    /// Missing, or not to be seen: which of the two is not told.
    Missing(String),
    NoSuchAlias(String),
    TooManyIds(usize),
    MissingParameter(&'static str),
    InvalidParameter(&'static str),
    TooMuchData,
}

const OAUTH: &str = "OAuthException";
const METHOD: &str = "GraphMethodException";

impl Refused {
    /// HTTP's number, the kind of error, the network's two numbers, and its words.
    fn words(&self) -> (u16, &'static str, u32, Option<u32>, String) {
        match self {
            Self::NoToken => (
                400,
                OAUTH,
                104,
                None,
                "An access token is required to request this resource.".to_owned(),
            ),
            Self::WrongToken => (
                400,
                OAUTH,
                190,
                None,
                "Invalid OAuth access token - Cannot parse access token".to_owned(),
            ),
            Self::RevokedToken => (
                400,
                OAUTH,
                190,
                Some(460),
                "Error validating access token: The session has been invalidated because the user changed their password or Facebook has changed the session for security reasons.".to_owned(),
            ),
            Self::NobodyAsks => (
                400,
                OAUTH,
                2500,
                None,
                "An active access token must be used to query information about the current user."
                    .to_owned(),
            ),
            Self::UserContent => (
                403,
                OAUTH,
                10,
                None,
                "(#10) This endpoint requires the 'pages_read_user_content' permission or the 'Page Public Content Access' feature. Refer to https://developers.facebook.com/docs/apps/review/login-permissions#manage-pages for details.".to_owned(),
            ),
            Self::Permission(name) => (
                403,
                OAUTH,
                200,
                None,
                format!("(#200) Requires {name} permission to manage the object"),
            ),
            Self::Syntax => (
                400,
                OAUTH,
                2500,
                None,
                "Syntax error \"Expected end of string instead of \"{\".\"".to_owned(),
            ),
            Self::NoSuchField(name, kind) => (
                400,
                OAUTH,
                100,
                None,
                format!(
                    "(#100) Tried accessing nonexisting field ({name}) on node type ({})",
                    kind.name()
                ),
            ),
            Self::NoSuchEdge(path) => (
                400,
                OAUTH,
                2500,
                None,
                format!("Unknown path components: /{path}"),
            ),
            Self::Missing(id) => (
                400,
                METHOD,
                100,
                Some(33),
                format!(
                    "Unsupported get request. Object with ID '{id}' does not exist, cannot be loaded due to missing permissions, or does not support this operation. Please read the Graph API documentation at https://developers.facebook.com/docs/graph-api"
                ),
            ),
            Self::NoSuchAlias(name) => (
                404,
                OAUTH,
                803,
                None,
                format!("(#803) Some of the aliases you requested do not exist: {name}"),
            ),
            Self::TooManyIds(given) => (
                400,
                OAUTH,
                100,
                None,
                format!("(#100) Too many IDs. Maximum: {}. Provided: {given}.", super::IDS_MAX),
            ),
            Self::MissingParameter(name) => (
                400,
                OAUTH,
                100,
                None,
                format!("(#100) The parameter {name} is required"),
            ),
            Self::InvalidParameter(name) => (
                400,
                OAUTH,
                100,
                None,
                format!("(#100) Invalid parameter: {name}"),
            ),
            Self::TooMuchData => (
                500,
                OAUTH,
                1,
                None,
                "Please reduce the amount of data you're asking for, then retry your request"
                    .to_owned(),
            ),
        }
    }

    pub(super) fn answer(&self) -> Answer {
        let (status, kind, code, subcode, message) = self.words();
        let mut error = json!({
            "message": message,
            "type": kind,
            "code": code,
            "fbtrace_id": "AbQ2lH7vN0dYp3c1Xr9sT4k",
        });
        if let Some(subcode) = subcode {
            error["error_subcode"] = json!(subcode);
        }
        Answer::json_with(status, &json!({ "error": error }))
    }
}
