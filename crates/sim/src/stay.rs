//! The time from a call's arrival to the end of its answer, for limits on how many there are at once.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http_body::{Frame, SizeHint};

use crate::http::Shared;
use crate::limits::Held;

/// A call that counts until this is dropped, which happens when its answer was handed over for
/// sending, and also when the caller has gone away before.
#[derive(Debug)]
pub(crate) struct Stay {
    shared: Arc<Shared>,
    held: Held,
}

impl Stay {
    /// None where nothing counts for as long as a call lasts.
    pub(crate) fn new(shared: &Arc<Shared>, held: Option<Held>) -> Option<Self> {
        let shared = Arc::clone(shared);
        held.map(|held| Self { shared, held })
    }

    /// The answer keeps it until its body has been sent.
    pub(crate) fn until_sent(self, response: Response) -> Response {
        response.map(|body| Body::new(StayingBody { body, _stay: self }))
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let mut books = self.shared.books();
        // Read under the lock, so that the books see times in their order.
        let now = self.shared.clock.limit();
        books.limiter.release(&self.held, now);
    }
}

struct StayingBody {
    body: Body,
    _stay: Stay,
}

impl HttpBody for StayingBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
