//! The words for what cannot be shown: problems of a whole call, and of one resource among others.

use serde_json::{Value, json};

use crate::answer::Answer;

const TYPES: &str = "https://api.twitter.com/2/problems";

/// Why one resource is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    NotFound,
    /// An account that is suspended.
    Suspended,
    /// Of an account that is protected or, for posts, suspended.
    NotAuthorized,
}

/// What was asked for, and where it was named.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    /// `user` or `tweet`.
    pub(super) resource: &'static str,
    /// The parameter, or the expansion, that named it.
    pub(super) parameter: &'a str,
    pub(super) value: &'a str,
}

impl Named<'_> {
    /// An entry of `errors` in an answer that is otherwise good.
    pub(super) fn error(self, hidden: Hidden) -> Value {
        let Self {
            resource,
            parameter,
            value,
        } = self;
        let section = if parameter.contains('.') || parameter.ends_with("_id") {
            "includes"
        } else {
            "data"
        };
        match hidden {
            Hidden::NotFound => json!({
                "value": value,
                "detail": format!("Could not find {resource} with {parameter}: [{value}]."),
                "title": "Not Found Error",
                "resource_type": resource,
                "parameter": parameter,
                "resource_id": value,
                "type": format!("{TYPES}/resource-not-found"),
            }),
            Hidden::Suspended => json!({
                "resource_id": value,
                "parameter": parameter,
                "resource_type": resource,
                "section": section,
                "title": "Forbidden",
                "value": value,
                "detail": format!("User has been suspended: [{value}]."),
                "type": format!("{TYPES}/resource-not-found"),
            }),
            Hidden::NotAuthorized => json!({
                "resource_id": value,
                "parameter": parameter,
                "resource_type": resource,
                "section": section,
                "title": "Authorization Error",
                "value": value,
                "detail": format!(
                    "Sorry, you are not authorized to see the {} with {parameter}: [{value}].",
                    if resource == "tweet" { "Tweet" } else { resource }
                ),
                "type": format!("{TYPES}/not-authorized-for-resource"),
            }),
        }
    }

    /// The same where nothing else was asked for.
    pub(super) fn answer(self, hidden: Hidden) -> Answer {
        Answer {
            items: Some(0),
            ..Answer::json(&json!({ "errors": [self.error(hidden)] }))
        }
    }
}

fn blank(status: u16, words: &str) -> Answer {
    let body = json!({ "title": words, "detail": words, "type": "about:blank", "status": status });
    Answer::json_with(status, &body)
}

pub(super) fn unauthorized() -> Answer {
    blank(401, "Unauthorized")
}

pub(super) fn forbidden() -> Answer {
    blank(403, "Forbidden")
}

pub(super) fn not_found() -> Answer {
    blank(404, "Not Found")
}

pub(super) fn unsupported_authentication(shown: &str, supported: &str) -> Answer {
    let body = json!({
        "title": "Unsupported Authentication",
        "detail": format!(
            "Authenticating with {shown} is forbidden for this endpoint.  Supported authentication \
             types are [{supported}]."
        ),
        "type": format!("{TYPES}/unsupported-authentication"),
        "status": 403,
    });
    Answer::json_with(403, &body)
}

/// A parameter that is not valid, as `errors` tells it.
pub(super) fn invalid(parameter: &str, values: &[&str], message: &str) -> Value {
    let parameters = if values.is_empty() {
        json!({})
    } else {
        json!({ parameter: values })
    };
    json!({ "parameters": parameters, "message": message })
}

pub(super) fn invalid_request(errors: &[Value]) -> Answer {
    let body = json!({
        "errors": errors,
        "title": "Invalid Request",
        "detail": "One or more parameters to your request was invalid.",
        "type": format!("{TYPES}/invalid-request"),
    });
    Answer::json_with(400, &body)
}
