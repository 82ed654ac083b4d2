//! Why there is no answer, in the network's words.

use serde_json::{Value, json};

use crate::answer::Answer;

/// Why a call is refused.
#[derive(Debug)]
pub(super) enum Refused {
    NoKey,
    WrongKey,
    ExpiredKey,
    /// A key that is meant for something else.
    BlockedKey,
    InvalidCredentials,
    MissingScope,
    MissingPart,
    UnknownPart(String),
    NoFilter(&'static str),
    /// A parameter, and what is wrong with its value.
    Invalid(&'static str, String),
    InvalidPageToken,
    TooManyIds,
    ChannelNotFound,
    SubscriberNotFound,
    PlaylistNotFound(String),
    VideoNotFound,
    CommentNotFound,
    CommentsDisabled,
    SubscriptionsForbidden,
    AccountSuspended,
    AccountClosed,
}

/// The old form of an error, which most methods still have.
fn plain(code: u16, domain: &str, reason: &str, message: &str, location: Option<&str>) -> Value {
    let mut error = json!({ "message": message, "domain": domain, "reason": reason });
    if let Some(location) = location {
        error["location"] = json!(location);
        error["locationType"] = json!("parameter");
    }
    json!({ "error": { "code": code, "message": message, "errors": [error] } })
}

/// The form that stands before all methods: who calls is looked at there.
fn at_the_door(code: u16, reason: &str, status: &str, message: &str, detail: &str) -> Value {
    let mut body = plain(code, "global", reason, message, None);
    body["error"]["status"] = json!(status);
    if !detail.is_empty() {
        body["error"]["details"] = json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": detail,
            "domain": "googleapis.com",
            "metadata": { "service": "youtube.googleapis.com" },
        }]);
    }
    body
}

impl Refused {
    pub(super) fn answer(self) -> Answer {
        let body = self.body();
        let code = body["error"]["code"].as_u64().unwrap_or(500) as u16;
        Answer::json_with(code, &body)
    }

    fn body(self) -> Value {
        match self {
            Self::NoKey => at_the_door(
                403,
                "forbidden",
                "PERMISSION_DENIED",
                "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.",
                "",
            ),
            Self::WrongKey => at_the_door(
                400,
                "badRequest",
                "INVALID_ARGUMENT",
                "API key not valid. Please pass a valid API key.",
                "API_KEY_INVALID",
            ),
            Self::ExpiredKey => at_the_door(
                400,
                "badRequest",
                "INVALID_ARGUMENT",
                "API key expired. Please renew the API key.",
                "API_KEY_INVALID",
            ),
            Self::BlockedKey => at_the_door(
                403,
                "forbidden",
                "PERMISSION_DENIED",
                "Requests to this API youtube method are blocked.",
                "API_KEY_SERVICE_BLOCKED",
            ),
            Self::InvalidCredentials => {
                let mut body = at_the_door(
                    401,
                    "authError",
                    "UNAUTHENTICATED",
                    "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.",
                    "",
                );
                let error = &mut body["error"]["errors"][0];
                error["message"] = json!("Invalid Credentials");
                error["location"] = json!("Authorization");
                error["locationType"] = json!("header");
                body
            }
            Self::MissingScope => {
                let mut body = at_the_door(
                    403,
                    "insufficientPermissions",
                    "PERMISSION_DENIED",
                    "Request had insufficient authentication scopes.",
                    "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
                );
                body["error"]["errors"][0]["message"] = json!("Insufficient Permission");
                body
            }
            other => other.of_a_method(),
        }
    }

    fn of_a_method(self) -> Value {
        match self {
            Self::MissingPart => plain(
                400,
                "youtube.part",
                "missingRequiredParameter",
                "No part specified.",
                Some("part"),
            ),
            Self::UnknownPart(part) => plain(
                400,
                "youtube.part",
                "unknownPart",
                &format!("'{part}'"),
                Some("part"),
            ),
            Self::NoFilter(expected) => plain(
                400,
                "youtube.parameter",
                "missingRequiredParameter",
                &format!("No filter selected. Expected one of: {expected}"),
                Some("parameters."),
            ),
            Self::Invalid(name, message) => {
                plain(400, "global", "invalidParameter", &message, Some(name))
            }
            Self::InvalidPageToken => plain(
                400,
                "youtube.parameter",
                "invalidPageToken",
                "The request specifies an invalid page token.",
                Some("pageToken"),
            ),
            Self::TooManyIds => plain(
                400,
                "youtube.parameter",
                "invalidFilters",
                "The request specifies an invalid filter parameter.",
                Some("parameters.id"),
            ),
            Self::ChannelNotFound => {
                not_found("channelNotFound", "Channel not found.", "channelId")
            }
            Self::SubscriberNotFound => not_found(
                "subscriberNotFound",
                "The subscriber identified with the request cannot be found.",
                "channelId",
            ),
            Self::PlaylistNotFound(id) => plain(
                404,
                "youtube.playlistItem",
                "playlistNotFound",
                &format!(
                    "The playlist identified with the request's <code>playlistId</code> parameter cannot be found. ({id})"
                ),
                Some("playlistId"),
            ),
            Self::VideoNotFound => plain(
                404,
                "youtube.commentThread",
                "videoNotFound",
                "The video identified by the <code><a href=\"/youtube/v3/docs/commentThreads/list#videoId\">videoId</a></code> parameter could not be found.",
                Some("videoId"),
            ),
            Self::CommentNotFound => plain(
                404,
                "youtube.comment",
                "commentNotFound",
                "One or more of the specified comments cannot be found.",
                Some("parentId"),
            ),
            Self::CommentsDisabled => plain(
                403,
                "youtube.commentThread",
                "commentsDisabled",
                "The video identified by the <code><a href=\"/youtube/v3/docs/commentThreads/list#videoId\">videoId</a></code> parameter has disabled comments.",
                Some("videoId"),
            ),
            Self::SubscriptionsForbidden => forbidden(
                "subscriptionForbidden",
                "The requester is not allowed to access the requested subscriptions.",
            ),
            Self::AccountSuspended => forbidden(
                "accountSuspended",
                "Subscriptions could not be retrieved because the subscriber's account is suspended.",
            ),
            _ => forbidden(
                "accountClosed",
                "Subscriptions could not be retrieved because the subscriber's account is closed.",
            ),
        }
    }
}

fn not_found(reason: &str, message: &str, location: &str) -> Value {
    plain(404, "youtube.channel", reason, message, Some(location))
}

fn forbidden(reason: &str, message: &str) -> Value {
    plain(403, "youtube.subscription", reason, message, None)
}
