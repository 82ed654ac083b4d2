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
    /// The application wants a proof that its secret is known, or has got a wrong one.
    NoProof,
    WrongProof,
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

/// An error as the network tells it: HTTP's number, the kind, the network's two numbers, and its words.
struct Words {
    status: u16,
    kind: &'static str,
    code: u32,
    subcode: Option<u32>,
    message: String,
}

fn oauth(status: u16, code: u32, message: impl Into<String>) -> Words {
    Words {
        status,
        kind: "OAuthException",
        code,
        subcode: None,
        message: message.into(),
    }
}

impl Refused {
    fn words(&self) -> Words {
        match self {
            Self::NoToken | Self::WrongToken | Self::RevokedToken | Self::NobodyAsks => {
                self.words_of_tokens()
            }
            Self::NoProof => Words {
                kind: "GraphMethodException",
                ..oauth(
                    400,
                    100,
                    "API calls from the server require an appsecret_proof argument",
                )
            },
            Self::WrongProof => Words {
                kind: "GraphMethodException",
                ..oauth(
                    400,
                    100,
                    "Invalid appsecret_proof provided in the API argument",
                )
            },
            Self::UserContent => oauth(
                403,
                10,
                "(#10) This endpoint requires the 'pages_read_user_content' permission or the 'Page Public Content Access' feature. Refer to https://developers.facebook.com/docs/apps/review/login-permissions#manage-pages for details.",
            ),
            Self::Permission(name) => oauth(
                403,
                200,
                format!("(#200) Requires {name} permission to manage the object"),
            ),
            Self::Syntax => oauth(
                400,
                2500,
                "Syntax error \"Expected end of string instead of \"{\".\"",
            ),
            Self::NoSuchField(name, kind) => oauth(
                400,
                100,
                format!(
                    "(#100) Tried accessing nonexisting field ({name}) on node type ({})",
                    kind.name()
                ),
            ),
            Self::NoSuchEdge(path) => oauth(400, 2500, format!("Unknown path components: /{path}")),
            Self::Missing(id) => Words {
                kind: "GraphMethodException",
                subcode: Some(33),
                ..oauth(
                    400,
                    100,
                    format!(
                        "Unsupported get request. Object with ID '{id}' does not exist, cannot be loaded due to missing permissions, or does not support this operation. Please read the Graph API documentation at https://developers.facebook.com/docs/graph-api"
                    ),
                )
            },
            Self::NoSuchAlias(name) => oauth(
                404,
                803,
                format!("(#803) Some of the aliases you requested do not exist: {name}"),
            ),
            Self::TooManyIds(given) => {
                let most = super::IDS_MAX;
                oauth(
                    400,
                    100,
                    format!("(#100) Too many IDs. Maximum: {most}. Provided: {given}."),
                )
            }
            Self::MissingParameter(name) => {
                oauth(400, 100, format!("(#100) The parameter {name} is required"))
            }
            Self::InvalidParameter(name) => {
                oauth(400, 100, format!("(#100) Invalid parameter: {name}"))
            }
            Self::TooMuchData => oauth(
                500,
                1,
                "Please reduce the amount of data you're asking for, then retry your request",
            ),
        }
    }

    fn words_of_tokens(&self) -> Words {
        match self {
            Self::NoToken => oauth(
                400,
                104,
                "An access token is required to request this resource.",
            ),
            Self::RevokedToken => Words {
                subcode: Some(460),
                ..oauth(
                    400,
                    190,
                    "Error validating access token: The session has been invalidated because the user changed their password or Facebook has changed the session for security reasons.",
                )
            },
            Self::NobodyAsks => oauth(
                400,
                2500,
                "An active access token must be used to query information about the current user.",
            ),
            _ => oauth(
                400,
                190,
                "Invalid OAuth access token - Cannot parse access token",
            ),
        }
    }

    pub(super) fn answer(&self) -> Answer {
        let words = self.words();
        let mut error = json!({
            "message": words.message,
            "type": words.kind,
            "code": words.code,
            "fbtrace_id": "AbQ2lH7vN0dYp3c1Xr9sT4k",
        });
        if let Some(subcode) = words.subcode {
            error["error_subcode"] = json!(subcode);
        }
        Answer::json_with(words.status, &json!({ "error": error }))
    }
}
