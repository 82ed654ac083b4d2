//! `/api/events`: the feed in pages, for whoever would rather ask than be told.

use super::batch::Sent;
use crate::api::refusal::Invalid;
use crate::api::{Answer, Known, Query, value};
use axum::Json;
use axum::extract::State;
use kittiwake_store::browse::EventId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsParameters {
    /// The last event that is known; the beginning if it is missing.
    #[param(max_length = 50)]
    after: Option<String>,
    /// At most 200; 50 if it is missing.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// A stretch of the feed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Stretch {
    /// As subscribers are sent them.
    #[schema(value_type = Vec<value::Any>)]
    events: Vec<Box<RawValue>>,
    /// Ask with `after=` this for what follows, also where no event was found.
    next: String,
    /// Whether that is the end for now.
    is_end: bool,
}

/// What the crawl found and changed, in its order, in pages.
#[utoipa::path(get, path = "/api/events", tag = "feed", params(EventsParameters), responses(
    (status = 200, body = Stretch),
    Invalid))]
pub(crate) async fn events(
    State(shared): Known,
    Query(asked): Query<EventsParameters>,
) -> Answer<Stretch> {
    let after = asked.after.as_deref().map(str::parse).transpose()?;
    let limit = asked.limit.unwrap_or(50).clamp(1, 200) as usize;
    let feed = shared
        .browser
        .feed(after.unwrap_or(EventId::FIRST), limit)
        .await?;
    let texts = feed.events.iter().filter_map(|event| {
        let text = String::from_utf8(Sent::new(event).json.to_vec()).ok()?;
        RawValue::from_string(text).ok()
    });
    Ok(Json(Stretch {
        events: texts.collect(),
        next: feed.next.to_string(),
        is_end: feed.is_end,
    }))
}
