//! `/api/live`: the picture of the crawl whenever it changes, so that pages move without being loaded again.

use crate::connection::stopped;
use crate::standing::Standing;
use crate::subscribe::Place;
use crate::{Problem, Shared};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_core::Stream;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

/// The least time between two pictures that one reader is sent.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A stream of what a task sends.
#[derive(Debug)]
pub(crate) struct Received<T>(pub mpsc::Receiver<T>);

impl<T> Stream for Received<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_recv(context)
    }
}

/// Sends the picture of the crawl as server-sent events named `standing`, at most one each second.
#[utoipa::path(get, path = "/api/live", tag = "crawl", responses(
    (status = 200, description = "events named `standing`, each with the picture as JSON",
     body = String, content_type = "text/event-stream"),
    (status = 503, description = "too many streams are open", body = Problem,
     content_type = "application/problem+json"),
))]
pub(crate) async fn live(
    State(shared): State<Arc<Shared>>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let place = shared.hub.place().ok_or_else(too_many)?;
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(send_pictures(Arc::clone(&shared), sender, place));
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(Received(receiver)).keep_alive(keep_alive))
}

pub(crate) fn too_many() -> Problem {
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "too many streams are open; close some, or come back later",
    )
}

async fn send_pictures(
    shared: Arc<Shared>,
    sender: mpsc::Sender<Result<Event, Infallible>>,
    _place: Place,
) {
    let mut changes = shared.standing_changes();
    let mut stop = shared.stop.clone();
    loop {
        let standing = Arc::clone(&changes.borrow_and_update());
        // A reader that is slow gets the picture of when it is ready, not all that were in between.
        let Ok(permit) = sender.reserve().await else {
            return;
        };
        permit.send(Ok(event(&standing)));
        tokio::select! {
            changed = async {
                tokio::time::sleep(LEAST_PAUSE).await;
                changes.changed().await
            } => if changed.is_err() { return },
            () = sender.closed() => return,
            () = stopped(&mut stop) => return,
        }
    }
}

fn event(standing: &Standing) -> Event {
    let text = serde_json::to_string(standing).unwrap_or_default();
    Event::default()
        .event("standing")
        .id(standing.version.to_string())
        .data(text)
}
