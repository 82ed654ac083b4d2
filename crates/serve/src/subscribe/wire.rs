//! Subscriptions as they go over the wire: server-sent events, or a WebSocket on the same address.

use super::filter::{ASKED_MAX, Filter};
use super::queue::{Package, Taking, queue};
use super::reader::Reader;
use crate::api::Query;
use crate::live::{KEEP_ALIVE, too_many};
use crate::{Problem, Shared};
use axum::body::Body;
use axum::extract::State;
use axum::extract::ws::{
    Message, Utf8Bytes, WebSocket, WebSocketUpgrade, rejection::WebSocketUpgradeRejection,
};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_core::Stream;
use kittiwake_store::browse::EventId;
use serde::Deserialize;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Interval, interval};
use utoipa::IntoParams;

/// The largest message that a subscriber may send; none is needed.
const INCOMING_BYTES_MAX: usize = 4_096;
/// How long a subscriber may take nothing at all.
const SEND_PATIENCE: Duration = Duration::from_mins(2);

/// What is wanted. Several values of one kind are separated by commas, and any of them will do.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SubscribeQuestion {
    /// `user`, `status`, `comment`, `object`, `relation`, `link`.
    #[serde(default, rename = "type")]
    #[param(max_length = 2000)]
    pub kind: String,
    /// Ids, handles or keys of those whom it is about, or by. They need not be known yet.
    #[serde(default)]
    #[param(max_length = 2000)]
    pub user: String,
    /// Words that are in it.
    #[serde(default)]
    #[param(max_length = 1000)]
    pub word: String,
    /// The last event that was received; `0.0` is before all. The header `Last-Event-ID` counts more. Without
    /// either, the stream begins now.
    #[param(max_length = 50)]
    pub after: Option<String>,
}

/// Sends what the crawl finds and changes.
///
/// Server-sent events named by type, whose ids can be resumed from; as a WebSocket, the same JSON as text
/// messages. Whoever does not take events in time is sent `dropped` with their number, and with the last of
/// them.
#[utoipa::path(get, path = "/api/subscribe", tag = "feed", params(SubscribeQuestion), responses(
    (status = 200, description = "events, each with the object as JSON", body = String,
     content_type = "text/event-stream"),
    (status = 101, description = "a WebSocket, for requests that ask for one"),
    (status = 400, description = "there is no such type, word or event", body = Problem,
     content_type = "application/problem+json"),
    (status = 503, description = "too many streams are open", body = Problem,
     content_type = "application/problem+json"),
))]
pub(crate) async fn subscribe(
    State(shared): State<Arc<Shared>>,
    Query(question): Query<SubscribeQuestion>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let filter = filter(&shared, &question).await?;
    let told = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = told
        .or(question.after.as_deref())
        .filter(|id| !id.is_empty());
    let after: Option<EventId> = after.map(str::parse).transpose()?;
    let place = shared.hub.place().ok_or_else(too_many)?;
    // Listening begins before the place in the feed is known, so that nothing is in between.
    let batches = shared.hub.listen();
    let at = match after {
        Some(after) => after,
        None => shared.hub.at().await?,
    };
    let (queue, taking) = queue();
    let reader = Reader {
        shared: Arc::clone(&shared),
        batches,
        filter,
        at,
        queue,
        place,
    };
    tokio::spawn(reader.run());
    Ok(match upgrade {
        Ok(upgrade) => upgrade
            .max_message_size(INCOMING_BYTES_MAX)
            .max_frame_size(INCOMING_BYTES_MAX)
            .on_upgrade(move |socket| talk(socket, taking)),
        Err(_) => frames(taking, at),
    })
}

async fn filter(shared: &Shared, question: &SubscribeQuestion) -> Result<Filter, Problem> {
    let mut filter = Filter::default();
    for kind in words(&question.kind)? {
        filter.want_kind(kind).map_err(Problem::invalid)?;
    }
    for word in words(&question.word)? {
        filter.want_word(word).map_err(Problem::invalid)?;
    }
    for user in words(&question.user)? {
        let known = crate::api::keys(shared, user).await?;
        filter.want_person(user.trim_start_matches('@'), known);
    }
    Ok(filter)
}

/// What is between the commas.
fn words(text: &str) -> Result<Vec<&str>, Problem> {
    let words: Vec<&str> = text
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .collect();
    if words.len() > ASKED_MAX {
        return Err(Problem::invalid(format!(
            "at most {ASKED_MAX} of one kind can be asked for; open another stream for more"
        )));
    }
    Ok(words)
}

fn frames(taking: Taking, at: EventId) -> Response {
    let stream = Frames {
        // The first id is told at once: whoever is cut off before the first event can resume, too.
        first: Some(Bytes::from(format!(
            "retry: 2000\nid: {at}\nevent: begin\ndata: {{}}\n\n"
        ))),
        taking,
        rest: interval(KEEP_ALIVE),
    };
    let mut response = Body::from_stream(stream).into_response();
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Packages as server-sent events, with a sign of life now and then.
struct Frames {
    first: Option<Bytes>,
    taking: Taking,
    rest: Interval,
}

impl Stream for Frames {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(first) = self.first.take() {
            self.rest.reset();
            return Poll::Ready(Some(Ok(first)));
        }
        if let Poll::Ready(package) = self.taking.receiver.poll_recv(context) {
            let Some(package) = package else {
                return Poll::Ready(None);
            };
            self.rest.reset();
            self.taking.took(&package);
            return Poll::Ready(Some(Ok(package.frames())));
        }
        self.rest
            .poll_tick(context)
            .map(|_| Some(Ok(Bytes::from_static(b":\n\n"))))
    }
}

/// Packages as messages. What the other side says is not listened to.
async fn talk(mut socket: WebSocket, mut taking: Taking) {
    let mut rest = interval(KEEP_ALIVE);
    loop {
        let package = tokio::select! {
            package = taking.receiver.recv() => package,
            said = socket.recv() => match said {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => continue,
            },
            _ = rest.tick() => {
                if !send(&mut socket, Message::Ping(Bytes::new())).await {
                    return;
                }
                continue;
            }
        };
        let Some(package) = package else {
            let _ = send(&mut socket, Message::Close(None)).await;
            return;
        };
        taking.took(&package);
        if !send_all(&mut socket, &package).await {
            return;
        }
    }
}

async fn send_all(socket: &mut WebSocket, package: &Package) -> bool {
    for text in package.texts() {
        let Ok(text) = Utf8Bytes::try_from(text) else {
            continue;
        };
        if !send(socket, Message::Text(text)).await {
            return false;
        }
    }
    true
}

async fn send(socket: &mut WebSocket, message: Message) -> bool {
    let sent = tokio::time::timeout(SEND_PATIENCE, socket.send(message));
    matches!(sent.await, Ok(Ok(())))
}
