//! What went wrong, as RFC 9457 has it, in words that say what to do.

use crate::{DeskError, DeskErrorKind};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kittiwake_store::{StoreError, StoreErrorKind};
use serde::Serialize;
use utoipa::ToSchema;

/// A refusal or a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the status says what kind it is.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub title: &'static str,
    pub status: u16,
    /// What happened and what to do.
    pub detail: String,
}

impl Problem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Problem"),
            status: status.as_u16(),
            detail: detail.into(),
        }
    }

    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub fn missing(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = (status, Json(self)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let status = match error.kind() {
            StoreErrorKind::Invalid => StatusCode::BAD_REQUEST,
            StoreErrorKind::Missing => StatusCode::NOT_FOUND,
            StoreErrorKind::Locked | StoreErrorKind::Unreachable | StoreErrorKind::DiskFull => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<DeskError> for Problem {
    fn from(error: DeskError) -> Self {
        let status = match error.kind {
            DeskErrorKind::Invalid => StatusCode::BAD_REQUEST,
            DeskErrorKind::Missing => StatusCode::NOT_FOUND,
            DeskErrorKind::Conflict => StatusCode::CONFLICT,
            DeskErrorKind::Exhausted => StatusCode::TOO_MANY_REQUESTS,
            DeskErrorKind::Network => StatusCode::FAILED_DEPENDENCY,
            DeskErrorKind::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.message)
    }
}
