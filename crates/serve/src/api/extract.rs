//! What requests bring, with problems in our own words where they bring something else.

use crate::Problem;
use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

/// The parameters after the question mark.
#[derive(Debug)]
pub(crate) struct Query<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        match read {
            Ok(axum::extract::Query(read)) => Ok(Self(read)),
            Err(error) => Err(Problem::invalid(format!(
                "the parameters cannot be read: {}",
                error.body_text()
            ))),
        }
    }
}

/// The parts of the address.
#[derive(Debug)]
pub(crate) struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        match read {
            Ok(axum::extract::Path(read)) => Ok(Self(read)),
            Err(error) => Err(Problem::invalid(format!(
                "the address cannot be read: {}",
                error.body_text()
            ))),
        }
    }
}

/// A body of JSON. What is wrong with it is told by its place, never by its words: it may hold secrets.
#[derive(Debug)]
pub(crate) struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        use axum::extract::rejection::JsonRejection as Wrong;
        match Json::<T>::from_request(request, state).await {
            Ok(Json(read)) => Ok(Self(read)),
            Err(Wrong::MissingJsonContentType(_)) => Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "send JSON, with Content-Type: application/json",
            )),
            Err(Wrong::JsonDataError(_)) => Err(Problem::invalid(
                "the JSON has not the fields that are wanted; /api/openapi.json lists them",
            )),
            Err(Wrong::JsonSyntaxError(_)) => Err(Problem::invalid("the body is not JSON")),
            Err(_) => Err(Problem::invalid("the body cannot be read")),
        }
    }
}
